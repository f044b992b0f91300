//! How single values stand in a page, and what they are in a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use loupe_wire::Value;
use serde_json::json;

use super::thrift::Struct;
use super::{Result, broken};

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    Fixed(usize),
}

impl Stored {
    pub fn of(element: &Struct) -> Result<Self> {
        Ok(match element.int(1) {
            Some(0) => Self::Boolean,
            Some(1) => Self::Int32,
            Some(2) => Self::Int64,
            Some(3) => Self::Int96,
            Some(4) => Self::Float,
            Some(5) => Self::Double,
            Some(6) => Self::Bytes,
            Some(7) => Self::Fixed(usize::try_from(element.size(2)?).unwrap_or(usize::MAX)),
            _ => return Err(broken("a column has no type")),
        })
    }

    /// Bytes of one value, where all have as many.
    fn width(self) -> usize {
        match self {
            Self::Int32 | Self::Float => 4,
            Self::Int64 | Self::Double => 8,
            Self::Int96 => 12,
            Self::Fixed(width) => width,
            Self::Boolean | Self::Bytes => 0,
        }
    }
}

/// What values mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Plain,
    Text,
    Json,
    /// Digits behind the point.
    Decimal(u32),
    Date,
    /// Units in a second.
    Time(i64),
    /// Units in a second, and whether it is of UTC.
    Moment(i64, bool),
    Unsigned,
    Half,
    Uuid,
}

/// Units in a second of a logical time.
fn unit(time: &Struct) -> i64 {
    match time.of(2) {
        Some(unit) if unit.has(1) => 1_000,
        Some(unit) if unit.has(3) => 1_000_000_000,
        _ => 1_000_000,
    }
}

impl Meaning {
    pub fn of(element: &Struct) -> Self {
        let scale = |number: Option<i64>| {
            let scale = number.and_then(|scale| u32::try_from(scale).ok());
            Self::Decimal(scale.unwrap_or(0))
        };
        if let Some(logical) = element.of(10) {
            let inner = |number: i64| logical.of(number);
            if logical.has(1) || logical.has(4) {
                return Self::Text;
            } else if let Some(decimal) = inner(5) {
                return scale(decimal.int(1));
            } else if logical.has(6) {
                return Self::Date;
            } else if let Some(time) = inner(7) {
                return Self::Time(unit(time));
            } else if let Some(time) = inner(8) {
                return Self::Moment(unit(time), time.bool(1) == Some(true));
            } else if let Some(whole) = inner(10) {
                return match whole.bool(2) {
                    Some(false) => Self::Unsigned,
                    _ => Self::Plain,
                };
            } else if logical.has(12) {
                return Self::Json;
            } else if logical.has(14) {
                return Self::Uuid;
            } else if logical.has(15) {
                return Self::Half;
            }
        }
        match element.int(6) {
            Some(0 | 4) => Self::Text,
            Some(5) => scale(element.int(7)),
            Some(6) => Self::Date,
            Some(7) => Self::Time(1_000),
            Some(8) => Self::Time(1_000_000),
            Some(9) => Self::Moment(1_000, true),
            Some(10) => Self::Moment(1_000_000, true),
            Some(11..=14) => Self::Unsigned,
            Some(19) => Self::Json,
            _ => Self::Plain,
        }
    }
}

/// Values that stand one behind the other.
#[derive(Debug, Clone)]
pub struct Plain {
    stored: Stored,
    meaning: Meaning,
    at: usize,
    /// Bits of the byte that are read, of truths.
    bit: u32,
}

fn cut() -> super::Fault {
    broken("a page ends too early")
}

impl Plain {
    pub fn new(stored: Stored, meaning: Meaning, at: usize) -> Self {
        Self {
            stored,
            meaning,
            at,
            bit: 0,
        }
    }

    pub fn next(&mut self, page: &[u8]) -> Result<Value> {
        if self.stored == Stored::Boolean {
            let byte = page.get(self.at).ok_or_else(cut)?;
            let truth = byte >> self.bit & 1 == 1;
            self.bit += 1;
            if self.bit == 8 {
                (self.at, self.bit) = (self.at + 1, 0);
            }
            return Ok(truth.into());
        }
        let width = match self.stored {
            Stored::Bytes => {
                let length = self.take(page, 4)?;
                usize::try_from(little(length)).map_err(|_| cut())?
            }
            stored => stored.width(),
        };
        let (stored, meaning) = (self.stored, self.meaning);
        self.take(page, width)
            .map(|bytes| value(stored, meaning, bytes))
    }

    fn take<'p>(&mut self, page: &'p [u8], length: usize) -> Result<&'p [u8]> {
        let end = self.at.checked_add(length).ok_or_else(cut)?;
        let taken = page.get(self.at..end).ok_or_else(cut)?;
        self.at = end;
        Ok(taken)
    }
}

/// A number of up to eight bytes, the lowest first.
fn little(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().take(8).rev();
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The same with its sign.
#[expect(clippy::cast_possible_wrap, reason = "the highest bit is the sign")]
fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(bytes.len().clamp(1, 8)).unwrap_or(8);
    (little(bytes) << unused) as i64 >> unused
}

/// What bytes of a page are in a document.
fn value(stored: Stored, meaning: Meaning, bytes: &[u8]) -> Value {
    match stored {
        Stored::Boolean => Value::Null,
        Stored::Int32 | Stored::Int64 => whole(meaning, bytes),
        Stored::Int96 => old_moment(bytes),
        Stored::Float => {
            let number = bytes.try_into().map(f32::from_le_bytes);
            number.map_or(Value::Null, |number| json!(number))
        }
        Stored::Double => {
            let number = bytes.try_into().map(f64::from_le_bytes);
            number.map_or(Value::Null, |number| json!(number))
        }
        Stored::Bytes | Stored::Fixed(_) => of_bytes(meaning, bytes),
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of JSON are so precise")]
fn decimal(unscaled: i128, scale: u32) -> Value {
    let power = 10f64.powi(i32::try_from(scale).unwrap_or(0));
    json!(unscaled as f64 / power)
}

fn whole(meaning: Meaning, bytes: &[u8]) -> Value {
    let number = signed(bytes);
    match meaning {
        Meaning::Decimal(scale) => decimal(number.into(), scale),
        Meaning::Date => day(number).unwrap_or_else(|| number.into()),
        Meaning::Time(units) => time(number, units).unwrap_or_else(|| number.into()),
        Meaning::Moment(units, utc) => moment(number, units, utc).unwrap_or_else(|| number.into()),
        Meaning::Unsigned => little(bytes).into(),
        _ => number.into(),
    }
}

fn of_bytes(meaning: Meaning, bytes: &[u8]) -> Value {
    match meaning {
        Meaning::Decimal(scale) if (1..=16).contains(&bytes.len()) => {
            let first = if bytes[0] >> 7 == 1 { -1 } else { 0i128 };
            let number = bytes
                .iter()
                .fold(first, |sum, byte| sum << 8 | i128::from(*byte));
            return decimal(number, scale);
        }
        Meaning::Half if bytes.len() == 2 => return json!(half(little(bytes))),
        Meaning::Uuid => {
            if let Ok(id) = uuid::Uuid::from_slice(bytes) {
                return id.to_string().into();
            }
        }
        Meaning::Json if bytes.len() <= super::ROW => {
            if let Ok(value) = serde_json::from_slice(bytes) {
                return value;
            }
        }
        _ => {}
    }
    // What is no text has no other form in JSON.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => STANDARD.encode(bytes).into(),
    }
}

/// A number of sixteen bits.
fn half(bits: u64) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, bits & 0x3ff);
    #[expect(clippy::cast_precision_loss, reason = "ten bits")]
    let fraction = fraction as f64 / 1024.0;
    let power = i32::try_from(exponent).unwrap_or(0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(power - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn day(days: i64) -> Option<Value> {
    let first = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    let day = first.checked_add_signed(TimeDelta::try_days(days)?)?;
    Some(day.to_string().into())
}

/// Seconds, and the nanoseconds beyond them.
fn parts(number: i64, units: i64) -> Option<(i64, u32)> {
    let beyond = number.rem_euclid(units) * (1_000_000_000 / units);
    Some((number.div_euclid(units), u32::try_from(beyond).ok()?))
}

fn time(number: i64, units: i64) -> Option<Value> {
    let (seconds, beyond) = parts(number, units)?;
    let time = NaiveTime::from_num_seconds_from_midnight_opt(u32::try_from(seconds).ok()?, beyond)?;
    Some(time.to_string().into())
}

/// What is of no zone is told without one.
fn moment(number: i64, units: i64, utc: bool) -> Option<Value> {
    let (seconds, beyond) = parts(number, units)?;
    let at = DateTime::<Utc>::from_timestamp(seconds, beyond)?;
    Some(match utc {
        true => at
            .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
            .into(),
        false => at.format("%Y-%m-%dT%H:%M:%S%.f").to_string().into(),
    })
}

/// Nanoseconds of a day, and the day as astronomers count: moments as they were once written.
fn old_moment(bytes: &[u8]) -> Value {
    const EPOCH: i64 = 2_440_588;
    let (Some(nanos), Some(day)) = (bytes.get(..8), bytes.get(8..12)) else {
        return Value::Null;
    };
    let seconds = (signed(day) - EPOCH).saturating_mul(86_400);
    let (more, beyond) = parts(signed(nanos), 1_000_000_000).unwrap_or_default();
    let at = DateTime::<Utc>::from_timestamp(seconds.saturating_add(more), beyond);
    at.map_or(Value::Null, |at| {
        at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
            .into()
    })
}

/// Small numbers in runs, or packed in so many bits each.
#[derive(Debug, Clone, Default)]
pub struct Hybrid {
    at: usize,
    end: usize,
    width: usize,
    left: u64,
    run: Run,
}

#[derive(Debug, Clone, Copy, Default)]
enum Run {
    #[default]
    None,
    Same(u64),
    /// The next bit, counted from the beginning of the page.
    Packed(usize),
}

/// The bits that numbers up to `most` take.
pub fn bits(most: u64) -> usize {
    usize::try_from(64 - most.leading_zeros()).unwrap_or(0)
}

impl Hybrid {
    /// Of the bytes of a page from `at` to `end`.
    pub fn new(at: usize, end: usize, width: usize) -> Self {
        Self {
            at,
            end,
            width,
            ..Self::default()
        }
    }

    pub fn next(&mut self, page: &[u8]) -> Result<u64> {
        // Without a bit there is one number.
        if self.width == 0 {
            return Ok(0);
        }
        while self.left == 0 {
            self.begin(page)?;
        }
        self.left -= 1;
        match &mut self.run {
            Run::None => Err(cut()),
            Run::Same(number) => Ok(*number),
            Run::Packed(bit) => {
                let mut number = 0;
                for place in 0..self.width {
                    let byte = page.get(*bit / 8).ok_or_else(cut)?;
                    number |= u64::from(byte >> (*bit % 8) & 1) << place;
                    *bit += 1;
                }
                Ok(number)
            }
        }
    }

    fn begin(&mut self, page: &[u8]) -> Result<()> {
        let page = page.get(..self.end).ok_or_else(cut)?;
        let mut head = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = page.get(self.at).ok_or_else(cut)?;
            self.at += 1;
            head |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        if head & 1 == 0 {
            let bytes = page
                .get(self.at..)
                .and_then(|rest| rest.get(..self.width.div_ceil(8)));
            let bytes = bytes.ok_or_else(cut)?;
            self.at += bytes.len();
            (self.left, self.run) = (head >> 1, Run::Same(little(bytes)));
            return Ok(());
        }
        let groups = head >> 1;
        let bytes = usize::try_from(groups)
            .ok()
            .and_then(|groups| groups.checked_mul(self.width));
        (self.left, self.run) = (groups * 8, Run::Packed(self.at * 8));
        // The last group may be cut off behind the numbers that it has.
        let end = bytes.and_then(|bytes| self.at.checked_add(bytes));
        self.at = end.ok_or_else(cut)?.min(self.end);
        Ok(())
    }
}
