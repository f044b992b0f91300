//! Dates as a reader wants them.

use std::fmt::Write as _;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use loupe_wire::Value;

/// Letters of an owner's pattern.
const LONGEST: usize = 64;

/// What the letters of a pattern stand for.
const CODES: [(&str, &str); 25] = [
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("YY", "%y"),
    ("yy", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("DD", "%d"),
    ("dd", "%d"),
    ("D", "%-d"),
    ("d", "%-d"),
    ("dddd", "%A"),
    ("EEEE", "%A"),
    ("ddd", "%a"),
    ("EEE", "%a"),
    ("HH", "%H"),
    ("H", "%-H"),
    ("hh", "%I"),
    ("h", "%-I"),
    ("mm", "%M"),
    ("m", "%-M"),
    ("ss", "%S"),
    ("A", "%p"),
    ("a", "%P"),
];

/// The moment that a field holds: a date, a time, or seconds or milliseconds since 1970.
pub fn moment(value: &Value) -> Option<DateTime<Utc>> {
    if let Some(seconds) = value.as_f64() {
        // Thirteen digits are milliseconds.
        let seconds = if seconds.abs() > 1e11 {
            seconds / 1000.0
        } else {
            seconds
        };
        return DateTime::from_timestamp(seconds as i64, 0);
    }
    let text = value.as_str()?.trim();
    DateTime::parse_from_rfc3339(text)
        .map(|moment| moment.to_utc())
        .ok()
        .or_else(|| {
            Some(
                text.get(..10)?
                    .parse::<NaiveDate>()
                    .ok()?
                    .and_hms_opt(0, 0, 0)?
                    .and_utc(),
            )
        })
}

/// Whether a text is a date or a moment and nothing beside it.
pub fn is_date(text: &str) -> bool {
    let text = text.trim();
    let has_day = text
        .get(..10)
        .is_some_and(|day| day.parse::<NaiveDate>().is_ok());
    has_day
        && (text.len() == 10
            || DateTime::parse_from_rfc3339(text).is_ok()
            || text.parse::<NaiveDateTime>().is_ok())
}

/// The day in words.
pub fn long(moment: DateTime<Utc>) -> String {
    moment.format("%-d %B %Y").to_string()
}

/// The moment as the owner's `date_format` says: one of the known words, or a pattern. The day in words where it is neither.
pub fn shown(moment: DateTime<Utc>, format: &str, now: DateTime<Utc>) -> String {
    match format {
        "relative" => relative(moment, now),
        "short" => moment.format("%-d %b %Y").to_string(),
        "iso" => moment.format("%Y-%m-%d").to_string(),
        "year" => moment.format("%Y").to_string(),
        "datetime" | "full" => moment.format("%-d %B %Y, %H:%M UTC").to_string(),
        pattern => by_pattern(moment, pattern).unwrap_or_else(|| long(moment)),
    }
}

fn relative(moment: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let days = (now - moment).num_days();
    match days {
        ..0 => moment.format("%-d %b %Y").to_string(),
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        2..14 => format!("{days} days ago"),
        14..60 => format!("{} weeks ago", days / 7),
        60..730 => format!("{} months ago", days / 30),
        // Past a couple of years "12 years ago" says less than the year.
        _ => moment.format("%B %Y").to_string(),
    }
}

/// By `%d.%m.%Y`, or by `D MMMM YYYY`, in which words stand in brackets or quotes.
fn by_pattern(moment: DateTime<Utc>, pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST {
        return None;
    }
    let codes = match pattern.contains('%') {
        true => pattern.to_owned(),
        false => codes(pattern).filter(|codes| codes.contains('%'))?,
    };
    let items: Vec<Item<'_>> = StrftimeItems::new(&codes).collect();
    if items.contains(&Item::Error) {
        return None;
    }
    let mut text = String::new();
    // Some codes can be read and not be written.
    write!(text, "{}", moment.format_with_items(items.iter())).ok()?;
    Some(text)
}

/// The codes of a pattern; none where one of its letters stands for nothing.
fn codes(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '[' | '\'' => {
                let end = if first == '[' { ']' } else { first };
                let (words, _) = rest[1..].split_once(end)?;
                text.push_str(words);
                words.len() + 2
            }
            letter if letter.is_alphabetic() => {
                let end = rest
                    .find(|other: char| other != letter)
                    .unwrap_or(rest.len());
                let (_, code) = CODES.iter().find(|(known, _)| *known == &rest[..end])?;
                text.push_str(code);
                end
            }
            sign => {
                text.push(sign);
                sign.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_are_read_from_texts_and_numbers() {
        assert_eq!(
            moment(&json!("1889-06-01"))
                .map(|m| m.format("%Y").to_string())
                .as_deref(),
            Some("1889")
        );
        assert_eq!(
            moment(&json!(1_700_000_000_000_i64)).map(|m| m.timestamp()),
            Some(1_700_000_000)
        );
        assert!(moment(&json!("äöüäöüäöü")).is_none());
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(relative(now - chrono::Duration::days(3), now), "3 days ago");
    }

    #[test]
    fn owners_write_patterns_of_their_own() {
        let film = moment(&json!("1922-03-04T17:05:09Z")).unwrap();
        for (pattern, expected) in [
            ("DD.MM.YYYY", "04.03.1922"),
            ("D. MMMM YYYY", "4. March 1922"),
            ("EEE d MMM yy, HH:mm", "Sat 4 Mar 22, 17:05"),
            ("[at] h:mm A", "at 5:05 PM"),
            ("d 'of' MMMM", "4 of March"),
            ("%d/%m/%Y", "04/03/1922"),
            ("short", "4 Mar 1922"),
            // Neither a word that is known nor a pattern.
            ("medium", "4 March 1922"),
            ("", "4 March 1922"),
            ("--", "4 March 1922"),
            ("%Q %", "4 March 1922"),
            ("[open", "4 March 1922"),
            ("ÄÖ", "4 March 1922"),
        ] {
            assert_eq!(shown(film, pattern, film), expected, "{pattern}");
        }
        assert_eq!(shown(film, &"D".repeat(65), film), "4 March 1922");
    }
}
