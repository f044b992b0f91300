//! Numbers, sizes and moments as people read them; addresses and commands as machines do.

use serde_json::Value;

/// `48210` as `48,210`.
pub fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if n < 0 { format!("-{out}") } else { out }
}

/// `1 document`, `48,210 documents`.
pub fn counted(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// So many of what the server names in the plural: `1 taxonomy`, `2 buckets`.
pub fn counted_as(n: i64, name: &str) -> String {
    let many = words(name);
    let one = match (many.strip_suffix("ies"), many.strip_suffix('s')) {
        (Some(start), _) => format!("{start}y"),
        (None, Some(start)) => start.to_owned(),
        (None, None) => many.clone(),
    };
    counted(n, &one, &many)
}

/// `1536` as `1.5 KB`.
pub fn size(bytes: i64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1024.0 {
            return if unit == "B" || value >= 100.0 {
                format!("{value:.0} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TB")
}

pub fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms if ms < 600_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.0} min", ms / 60_000.0),
    }
}

/// Where a batch is looked at, below the base. One of documents has no bucket.
pub fn batch(ns: &str, bucket: &str, id: &str) -> String {
    let of = match bucket {
        "" => String::new(),
        bucket => format!("{}/", escape(bucket)),
    };
    format!("/ns/{}/batches/{of}{}", escape(ns), escape(id))
}

/// A difference, with its sign where there is one.
pub fn signed(value: f64) -> String {
    match format!("{value:+.3}") {
        none if none.ends_with("0.000") && value.abs() < 1.0 => "0.000".to_owned(),
        some => some,
    }
}

/// `2026-11-20T22:41:07Z` as `2026-11-20 22:41`, by the clock of whoever looks.
pub fn moment(at: &str) -> String {
    let (at, _) = here(at);
    at.get(..16).unwrap_or(&at).replace('T', " ")
}

/// The same to the second, with how far that clock is from UTC.
pub fn exact(at: &str) -> String {
    let (at, ahead) = here(at);
    let at = at.get(..19).unwrap_or(&at).replace('T', " ");
    format!("{at} {}", zone(ahead))
}

/// How far a clock is ahead of UTC, by its minutes.
fn zone(ahead: i64) -> String {
    let sign = if ahead < 0 { '-' } else { '+' };
    match (ahead.abs() / 60, ahead.abs() % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

/// A moment as the clock of the browser shows it, and the minutes that it is ahead of UTC.
#[cfg(target_family = "wasm")]
fn here(at: &str) -> (String, i64) {
    let date = js_sys::Date::new(&at.into());
    let ahead = -date.get_timezone_offset();
    let shifted = date.get_time() + ahead * 60_000.0;
    // What is no moment stays what it is.
    if !shifted.is_finite() {
        return (at.to_owned(), 0);
    }
    let shifted = js_sys::Date::new(&shifted.into()).to_iso_string();
    (shifted.into(), ahead as i64)
}

/// Tests have no browser, and the clock of UTC.
#[cfg(not(target_family = "wasm"))]
fn here(at: &str) -> (String, i64) {
    (at.to_owned(), 0)
}

/// Dollars, to as many places as a small sum needs.
pub fn dollars(usd: f64) -> String {
    match usd.abs() {
        none if none < 0.000_000_5 => "$0".to_owned(),
        small if small < 0.000_1 => format!("${usd:.6}"),
        small if small < 0.01 => format!("${usd:.4}"),
        _ => format!("${usd:.2}"),
    }
}

/// How long something was, by seconds since, or will be; its day when that was weeks ago.
pub fn ago(at: &str, seconds: f64) -> String {
    let seconds = seconds as i64;
    match seconds {
        ..=-86_400 => format!("in {} d", -seconds / 86_400),
        -86_399..=-3600 => format!("in {} h", -seconds / 3600),
        -3599..=-60 => format!("in {} min", -seconds / 60),
        -59..=-5 => format!("in {} s", -seconds),
        -4..5 => "just now".into(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..1_209_600 => format!("{} d ago", seconds / 86_400),
        _ => moment(at).chars().take(10).collect(),
    }
}

/// So many seconds, as people say it.
pub fn span(seconds: i64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let fits = |(long, _): &&(i64, &str)| seconds > 0 && seconds % long == 0;
    match units.iter().find(fits) {
        Some((long, unit)) => format!("{} {unit}", seconds / long),
        None => format!("{seconds} s"),
    }
}

/// The moment so many days ago, or ahead when negative, as the API writes it.
pub fn before(days: f64) -> String {
    let at = js_sys::Date::new(&(js_sys::Date::now() - days * 86_400_000.0).into());
    at.to_iso_string().into()
}

/// A piece of an address.
pub fn escape(piece: &str) -> String {
    piece
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// The same call for a shell. The key stays out: commands end in histories.
pub fn curl(origin: &str, namespace: Option<&str>, path: &str, body: &Value) -> String {
    let namespace =
        namespace.map_or_else(String::new, |id| format!("-H 'X-Namespace: {id}' \\\n  "));
    let body = body.to_string().replace('\'', "'\\''");
    format!(
        "curl -sS {origin}{path} \\\n  -H \"Authorization: Bearer $LOUPE_API_KEY\" \\\n  {namespace}-H 'Content-Type: application/json' \\\n  -d '{body}'"
    )
}

/// `COMPLETED_WITH_ERRORS` as `completed with errors`.
pub fn words(name: &str) -> String {
    name.replace('_', " ").to_lowercase()
}

/// A cell of a CSV file. What a spreadsheet would take for a formula is text: names are chosen by strangers, too.
pub fn quoted(text: &str) -> String {
    let guard = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => "'",
        false => "",
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_sizes_read_well() {
        assert_eq!(count(48_210), "48,210");
        assert_eq!(count(-1000), "-1,000");
        assert_eq!(count(7), "7");
        let queries = |n| counted(n, "query", "queries");
        assert_eq!(
            [0, 1, 2000].map(queries),
            ["0 queries", "1 query", "2,000 queries"]
        );
        assert_eq!(
            [(1, "taxonomies"), (1, "api_keys"), (2, "buckets")]
                .map(|(n, name)| counted_as(n, name)),
            ["1 taxonomy", "1 api key", "2 buckets"]
        );
        assert_eq!(size(512), "512 B");
        assert_eq!(size(1536), "1.5 KB");
        assert_eq!(size(200 * 1024 * 1024), "200 MB");
    }

    #[test]
    fn moments_say_by_which_clock_they_are() {
        assert_eq!(moment("2026-11-20T22:41:07Z"), "2026-11-20 22:41");
        assert_eq!(exact("2026-11-20T22:41:07Z"), "2026-11-20 22:41:07 UTC");
        assert_eq!(moment("soon"), "soon");
        assert_eq!(
            [0, 60, 330, -210].map(zone),
            ["UTC", "UTC+1", "UTC+5:30", "UTC-3:30"]
        );
    }

    #[test]
    fn what_takes_long_is_told_in_minutes() {
        assert_eq!(
            [0.4, 42.0, 61_000.0, 5_400_000.0].map(millis),
            ["0.4 ms", "42 ms", "61.0 s", "90 min"]
        );
    }

    #[test]
    fn small_sums_are_not_nothing() {
        assert_eq!(
            [0.0, 0.000_002, 0.0031, 0.5, 90.06].map(dollars),
            ["$0", "$0.000002", "$0.0031", "$0.50", "$90.06"]
        );
    }

    #[test]
    fn differences_have_a_sign_unless_there_is_none() {
        assert_eq!(
            [0.25, -0.25, -1e-9, 2.0].map(signed),
            ["+0.250", "-0.250", "0.000", "+2.000"]
        );
    }

    #[test]
    fn what_was_and_what_will_be_are_told() {
        for (seconds, said) in [
            (3.0, "just now"),
            (-3.0, "just now"),
            (90.0, "1 min ago"),
            (-42.0, "in 42 s"),
            (-7200.0, "in 2 h"),
            (-172_900.0, "in 2 d"),
            (2e6, "2026-11-01"),
        ] {
            assert_eq!(ago("2026-11-01T00:00:00Z", seconds), said);
        }
        assert_eq!(
            [span(7200), span(90), span(172_800)],
            ["2 h", "90 s", "2 d"]
        );
    }

    #[test]
    fn a_command_survives_quotes_and_holds_no_key() {
        let line = curl("http://h", Some("n"), "/v1/x", &json!({"q": "it's"}));
        assert!(line.contains(r"it'\''s"), "{line}");
        assert!(line.contains("$LOUPE_API_KEY"));
    }

    #[test]
    fn pieces_of_addresses_are_escaped() {
        assert_eq!(escape("a b/ü"), "a%20b%2F%C3%BC");
        assert_eq!(
            batch("n", "my bucket", "btch_1"),
            "/ns/n/batches/my%20bucket/btch_1"
        );
        assert_eq!(batch("n", "", "btch_1"), "/ns/n/batches/btch_1");
    }
}
