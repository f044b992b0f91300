//! What expressions may call, bounded in work and output.

use std::cell::Cell;
use std::sync::LazyLock;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use minijinja::value::{Kwargs, Rest, Value as Any, ValueOrKwargs};
use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior, filters, tests as checks,
};

use super::MAX_OUTPUT_BYTES;

/// What values are passed through.
pub(super) const FILTERS: [&str; 11] = [
    "tojson", "join", "length", "first", "last", "truncate", "map", "list", "default", "lower",
    "upper",
];

/// Instructions that one expression may take.
const FUEL: u64 = 20_000;
/// Bytes of the inputs that one expression reads and of what its filters make: fuel counts instructions, and one may make a lot.
const MAX_MADE: usize = 32 << 20;

thread_local! {
    /// Bytes of the expression that runs: it stays on one thread from its beginning to its end.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// Begins to count for another expression.
pub(super) fn begin() {
    MADE.set(0);
}

/// Counts bytes, before they are made where that can be told.
pub(super) fn make(bytes: usize) -> std::result::Result<(), Error> {
    MADE.set(MADE.get().saturating_add(bytes));
    within()
}

/// Whether the expression took no more than it may.
pub(super) fn within() -> std::result::Result<(), Error> {
    if MADE.get() <= MAX_MADE {
        return Ok(());
    }
    let reason = format!("it takes more than {MAX_MADE} bytes of memory");
    Err(Error::new(ErrorKind::InvalidOperation, reason))
}

/// A text that a filter made.
fn made(text: String) -> std::result::Result<String, Error> {
    make(size_of::<Any>() + text.len())?;
    Ok(text)
}

/// Room for a list that a filter makes of another.
fn make_list(list: &Any) -> std::result::Result<(), Error> {
    let length = list.len().unwrap_or_default();
    make(length.saturating_mul(size_of::<Any>()))
}

/// What is written out is counted and not kept: a list of a thousand times the same text is small until then.
struct Counted;

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        make(bytes.len()).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Counts what a value takes once it is written out, without making that.
pub(super) fn measure(value: &Any) -> std::result::Result<(), Error> {
    // What cannot be written for another reason is refused by whoever needs it.
    let _ = serde_json::to_writer(Counted, value);
    within()
}

fn list(state: &State<'_, '_>, value: Any) -> std::result::Result<Any, Error> {
    make_list(&value)?;
    filters::list(state, value)
}

fn map(
    state: &mut State<'_, '_>,
    value: Any,
    how: Rest<ValueOrKwargs>,
) -> std::result::Result<Vec<Any>, Error> {
    make_list(&value)?;
    let list = filters::map(state, value, how)?;
    list.iter().try_for_each(measure)?;
    Ok(list)
}

pub(super) fn moment(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(super) fn time_ago(now: DateTime<Utc>, by: &Kwargs) -> std::result::Result<String, Error> {
    let mut seconds = 0.0;
    for (unit, length) in [
        ("seconds", 1.0),
        ("minutes", 60.0),
        ("hours", 3600.0),
        ("days", 86400.0),
        ("weeks", 604_800.0),
    ] {
        seconds += by.get::<Option<f64>>(unit)?.unwrap_or(0.0) * length;
    }
    by.assert_all_used()?;
    let refused = || {
        Error::new(
            ErrorKind::InvalidOperation,
            "time_ago takes minutes, hours or days within a century",
        )
    };
    if !seconds.is_finite() || seconds.abs() > 3.2e9 {
        return Err(refused());
    }
    let delta = TimeDelta::milliseconds((seconds * 1000.0) as i64);
    now.checked_sub_signed(delta)
        .map(moment)
        .ok_or_else(refused)
}

fn truncate(text: &str, length: Option<usize>, end: Option<String>) -> String {
    let (length, end) = (
        length.unwrap_or(255),
        end.unwrap_or_else(|| "...".to_owned()),
    );
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let kept = length.saturating_sub(end.chars().count());
    text.chars()
        .take(kept)
        .chain(end.chars())
        .take(length)
        .collect()
}

/// Text that ends where no template may give more: one filter after another would double it each time.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(std::io::Error::other(format!(
                "more than {MAX_OUTPUT_BYTES} bytes"
            )));
        }
        make(bytes.len()).map_err(std::io::Error::other)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bounded {
    fn text(self) -> std::result::Result<String, Error> {
        String::from_utf8(self.0)
            .map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))
    }
}

fn to_json(value: &Any) -> std::result::Result<String, Error> {
    let mut out = Bounded::default();
    serde_json::to_writer(&mut out, value)
        .map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))?;
    out.text()
}

fn join(list: &Any, between: Option<String>) -> std::result::Result<String, Error> {
    use std::io::Write;
    if list.is_undefined() || list.is_none() {
        return Ok(String::new());
    }
    let between = between.unwrap_or_default();
    let mut out = Bounded::default();
    for (place, item) in list.try_iter()?.enumerate() {
        let between = if place > 0 { between.as_str() } else { "" };
        write!(out, "{between}{item}")
            .map_err(|e| Error::new(ErrorKind::InvalidOperation, e.to_string()))?;
    }
    out.text()
}

/// What expressions run in: these filters and tests, and nothing else.
pub(super) static SANDBOX: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Chainable);
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(50);
    env.set_debug(false);
    env.add_filter("tojson", |value: Any| to_json(&value));
    env.add_filter(
        "truncate",
        |text: String, length: Option<usize>, end: Option<String>| {
            made(truncate(&text, length, end))
        },
    );
    env.add_filter("join", |list: Any, between: Option<String>| {
        join(&list, between)
    });
    env.add_filter("length", filters::length);
    env.add_filter("first", filters::first);
    env.add_filter("last", filters::last);
    env.add_filter("map", map);
    env.add_filter("list", list);
    env.add_filter("default", filters::default);
    env.add_filter("lower", |text: String| made(text.to_lowercase()));
    env.add_filter("upper", |text: String| made(text.to_uppercase()));
    env.add_test("defined", checks::is_defined);
    env.add_test("undefined", checks::is_undefined);
    env.add_test("none", checks::is_none);
    env
});
