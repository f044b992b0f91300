//! The next moments of a cron expression, so that a schedule is read before it is kept. What only the server understands
//! (seconds, `L`, `W`, `#`, names such as `@daily`) says none.

/// A minute of a clock on a wall: year, month, day, hour, minute.
pub type Minute = (u32, u32, u32, u32, u32);

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Days that are looked at: a leap day comes within eight years.
const FAR: usize = 2923;

/// The numbers of one field, a bit each.
fn field(text: &str, low: u32, high: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| {
        let named = |name: &&str| name.eq_ignore_ascii_case(text);
        let at = names.iter().position(named);
        let number = match at {
            // Months are counted from 1, days from Sunday as 0.
            Some(at) => at as u32 + low,
            None => text.parse().ok()?,
        };
        (low..=high).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for piece in text.split(',') {
        let (range, step) = match piece.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok()?)),
            None => (piece, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if range == "*" => (low, high),
            None if step.is_some() => (number(range)?, high),
            None => (number(range)?, number(range)?),
        };
        let step = step.unwrap_or(1);
        if first > last || step == 0 {
            return None;
        }
        for number in (first..=last).step_by(step as usize) {
            bits |= 1 << number;
        }
    }
    Some(bits)
}

fn is_leap(year: u32) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn length(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Sunday is 0.
fn weekday(year: u32, month: u32, day: u32) -> u32 {
    let shift = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4][month as usize - 1];
    let year = year - u32::from(month < 3);
    (year + year / 4 - year / 100 + year / 400 + shift + day) % 7
}

fn tomorrow(year: u32, month: u32, day: u32) -> (u32, u32, u32) {
    match (day < length(year, month), month) {
        (true, _) => (year, month, day + 1),
        (false, 12) => (year + 1, 1, 1),
        (false, _) => (year, month + 1, 1),
    }
}

/// So many minutes later.
pub fn later((mut year, mut month, mut day, hour, minute): Minute, minutes: u64) -> Minute {
    let at = u64::from(hour * 60 + minute) + minutes;
    for _ in 0..at / 1440 {
        (year, month, day) = tomorrow(year, month, day);
    }
    let at = (at % 1440) as u32;
    (year, month, day, at / 60, at % 60)
}

/// A day in words.
pub fn date(year: u32, month: u32, day: u32) -> String {
    let name = DAYS[weekday(year, month, day) as usize];
    format!("{name} {day} {}", MONTHS[month as usize - 1])
}

/// Common schedules in words; none where it takes the moments themselves to tell.
pub fn words(expression: &str) -> Option<String> {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [minute, hour, day, "*", weekday] = fields[..] else {
        return None;
    };
    let step = |text: &str| text.strip_prefix("*/")?.parse::<u32>().ok();
    let number = |text: &str| text.parse::<u32>().ok();
    if (hour, day, weekday) == ("*", "*", "*") {
        return match (minute, step(minute), number(minute)) {
            ("*", ..) => Some("every minute".to_owned()),
            (_, Some(step), _) => Some(format!("every {step} minutes")),
            (.., Some(minute)) => Some(format!("every hour at minute {minute}")),
            _ => None,
        };
    }
    let minute = number(minute)?;
    if let (Some(hours), "*", "*") = (step(hour), day, weekday) {
        return Some(format!("every {hours} hours at minute {minute}"));
    }
    let at = format!("at {:02}:{minute:02}", number(hour)?);
    let named = |text: &str| {
        let bits = field(text, 0, 7, &DAYS)?;
        let all = (0..=7).filter(|day| bits >> day & 1 == 1);
        let all: Vec<&str> = all.map(|day| DAYS[day % 7]).collect();
        Some(all.join(", "))
    };
    match (day, weekday) {
        ("*", "*") => Some(format!("every day {at}")),
        ("*", days) => Some(format!("{} {at}", named(days)?)),
        (day, "*") => Some(format!("on day {} of the month {at}", number(day)?)),
        _ => None,
    }
}

/// The first moments after `now`, in words; none where the expression is not understood here.
pub fn next(expression: &str, now: Minute, count: usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    each(expression, now, |(year, month, day, hour, minute)| {
        let date = date(year, month, day);
        found.push(format!("{date} {hour:02}:{minute:02}"));
        found.len() < count
    })?;
    Some(found)
}

/// The moments after `now` and before `end`; none where the expression is not understood here.
pub fn until(expression: &str, now: Minute, end: Minute) -> Option<Vec<Minute>> {
    let mut found = Vec::new();
    each(expression, now, |moment| {
        let before = moment < end;
        if before {
            found.push(moment);
        }
        before
    })?;
    Some(found)
}

/// Tells the moments after `now` one by one, until the answer is no more.
fn each(expression: &str, now: Minute, mut go_on: impl FnMut(Minute) -> bool) -> Option<()> {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return None;
    };
    let any = |text: &str| text.starts_with('*');
    let both = any(days) || any(weekdays);
    let minutes = field(minutes, 0, 59, &[])?;
    let hours = field(hours, 0, 23, &[])?;
    let days = field(days, 1, 31, &[])?;
    let months = field(months, 1, 12, &MONTHS)?;
    let mut weekdays = field(weekdays, 0, 7, &DAYS)?;
    // Sunday is 0 and 7.
    weekdays |= weekdays >> 7 & 1;
    let has = |bits: u64, number: u32| bits >> number & 1 == 1;
    let (mut year, mut month, mut day, hour, minute) = now;
    let mut first = hour * 60 + minute + 1;
    for _ in 0..FAR {
        let on = weekday(year, month, day);
        // Where both are told, either is enough.
        let right = match both {
            true => has(days, day) && has(weekdays, on),
            false => has(days, day) || has(weekdays, on),
        };
        if right && has(months, month) {
            for at in first..1440 {
                let (hour, minute) = (at / 60, at % 60);
                let is_one = has(hours, hour) && has(minutes, minute);
                if is_one && !go_on((year, month, day, hour, minute)) {
                    return Some(());
                }
            }
        }
        first = 0;
        (year, month, day) = tomorrow(year, month, day);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(expression: &str, count: usize) -> Vec<String> {
        // A Saturday.
        next(expression, (2026, 11, 21, 17, 20), count).expect("understood")
    }

    #[test]
    fn the_next_moments_are_told() {
        assert_eq!(
            said("0 9 * * 1-5", 2),
            ["Mon 23 Nov 09:00", "Tue 24 Nov 09:00"]
        );
        assert_eq!(
            said("*/20 * * * *", 3),
            ["Sat 21 Nov 17:40", "Sat 21 Nov 18:00", "Sat 21 Nov 18:20"]
        );
        assert_eq!(
            said("20-22 17 * * *", 2),
            ["Sat 21 Nov 17:21", "Sat 21 Nov 17:22"]
        );
        assert_eq!(said("0 0 * * *", 1), ["Sun 22 Nov 00:00"]);
        assert_eq!(said("30 6 29 2 *", 1), ["Tue 29 Feb 06:30"]);
        assert_eq!(
            said("0 12 1 jan,jul SUN", 2),
            ["Fri 1 Jan 12:00", "Sun 3 Jan 12:00"]
        );
        assert_eq!(said("0 0 * * 7", 1), ["Sun 22 Nov 00:00"]);
        assert_eq!(said("0 0 30 2 *", 1), Vec::<String>::new());
    }

    #[test]
    fn common_schedules_have_words() {
        for (expression, said) in [
            ("* * * * *", "every minute"),
            ("*/10 * * * *", "every 10 minutes"),
            ("5 * * * *", "every hour at minute 5"),
            ("0 */6 * * *", "every 6 hours at minute 0"),
            ("0 9 * * *", "every day at 09:00"),
            ("30 9 * * 1-3", "Mon, Tue, Wed at 09:30"),
            ("0 0 1 * *", "on day 1 of the month at 00:00"),
        ] {
            assert_eq!(words(expression).as_deref(), Some(said));
        }
        for expression in ["@daily", "0 9 1 1 *", "0 9 1 * 1", "0,30 9 * * *"] {
            assert_eq!(words(expression), None, "{expression}");
        }
    }

    #[test]
    fn moments_before_an_end_and_after_some_minutes() {
        let now = (2026, 12, 30, 23, 50);
        let week = later(now, 7 * 1440);
        assert_eq!(week, (2027, 1, 6, 23, 50));
        assert_eq!(later(now, 15), (2026, 12, 31, 0, 5));
        assert_eq!(
            until("0 9 * * 1-2", now, week),
            Some(vec![(2027, 1, 4, 9, 0), (2027, 1, 5, 9, 0)])
        );
        assert_eq!(until("0 0 30 2 *", now, week), Some(Vec::new()));
        assert_eq!(until("@daily", now, week), None);
        assert_eq!(later((2028, 2, 28, 12, 0), 1440), (2028, 2, 29, 12, 0));
    }

    #[test]
    fn what_is_not_understood_says_nothing() {
        for expression in [
            "",
            "@daily",
            "61 * * * *",
            "0 0 L * *",
            "* * * * * *",
            "5-1 * * * *",
        ] {
            assert_eq!(
                next(expression, (2026, 1, 1, 0, 0), 5),
                None,
                "{expression}"
            );
        }
    }
}
