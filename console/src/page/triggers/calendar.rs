//! What triggers of the clock do within the next seven days, day by day.

use std::collections::BTreeMap;

use crate::{
    cron::{self, Minute},
    record::Record,
};

/// Moments of one trigger on one day that are told one by one.
const TOLD: usize = 3;

const WEEK: u64 = 7 * 1440;

/// A day of a clock on a wall, and what runs on it.
pub type Day = (String, Vec<String>);

/// The minute that a time is in.
pub fn minute(time: &str) -> Option<Minute> {
    let pieces = time.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u32> = pieces.filter_map(|piece| piece.parse().ok()).collect();
    match numbers[..] {
        [year, month, day, hour, minute, ..] => Some((year, month, day, hour, minute)),
        _ => None,
    }
}

/// What active triggers do by the clock, each by that of its own zone: `wall` tells what that shows now.
pub fn days(triggers: &[Record], wall: impl Fn(&str) -> Option<Minute>) -> Vec<Day> {
    let mut all: BTreeMap<(u32, u32, u32), Vec<(u32, String)>> = BTreeMap::new();
    for one in triggers.iter().filter(|one| one.text("status") == "active") {
        let Some((zone, moments)) = moments(one, &wall) else {
            continue;
        };
        let mut own: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
        for (year, month, day, hour, minute) in moments {
            let times = own.entry((year, month, day)).or_default();
            times.push(hour * 60 + minute);
        }
        for (day, times) in own {
            let said = told(&times, &one.text("name"), &zone);
            let first = times.first().copied().unwrap_or(0);
            all.entry(day).or_default().push((first, said));
        }
    }
    let in_order = |((year, month, day), mut lines): ((u32, u32, u32), Vec<(u32, String)>)| {
        lines.sort();
        let lines = lines.into_iter().map(|(_, said)| said).collect();
        (cron::date(year, month, day), lines)
    };
    all.into_iter().map(in_order).collect()
}

fn moments(one: &Record, wall: impl Fn(&str) -> Option<Minute>) -> Option<(String, Vec<Minute>)> {
    let config = one.record("schedule_config");
    match one.text("trigger_type").as_str() {
        "cron" => {
            let zone = config.opt("timezone").unwrap_or_else(|| "UTC".into());
            let now = wall(&zone)?;
            let expression = config.first(&["cron_expression", "cron"]);
            let found = cron::until(&expression, now, cron::later(now, WEEK))?;
            Some((zone, found))
        }
        "interval" => {
            let seconds = u64::try_from(config.int("interval_seconds")?).ok()?;
            let (next, now) = (minute(&one.opt("next_scheduled_at")?)?, wall("UTC")?);
            let end = cron::later(now, WEEK);
            let found = (0..=WEEK * 60)
                .step_by(usize::try_from(seconds.max(60)).ok()?)
                .map(|seconds| cron::later(next, seconds / 60))
                .skip_while(|moment| *moment < now)
                .take_while(|moment| *moment < end);
            Some(("UTC".into(), found.collect()))
        }
        _ => None,
    }
}

fn told(times: &[u32], name: &str, zone: &str) -> String {
    let clock = |at: &u32| format!("{:02}:{:02}", at / 60, at % 60);
    let when = match times {
        [first, .., last] if times.len() > TOLD => {
            let (first, last) = (clock(first), clock(last));
            format!("{first} to {last}, {} times", times.len())
        }
        _ => times.iter().map(clock).collect::<Vec<_>>().join(", "),
    };
    match zone {
        "UTC" => format!("{when} {name}"),
        _ => format!("{when} {name} ({zone})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_day_tells_what_runs_the_earliest_first() {
        let wall = |zone: &str| match zone {
            // A Saturday.
            "UTC" => Some((2026, 11, 21, 17, 20)),
            "Europe/Vienna" => Some((2026, 11, 21, 18, 20)),
            _ => None,
        };
        let cron = |name: &str, config: Value| json!({"name": name, "status": "active", "trigger_type": "cron", "schedule_config": config});
        let paused = json!({"name": "paused", "status": "paused", "trigger_type": "cron", "schedule_config": {"cron": "0 9 * * *"}});
        let interval = json!({"name": "every two days", "status": "active", "trigger_type": "interval",
            "schedule_config": {"interval_seconds": 172_800}, "next_scheduled_at": "2026-11-22T08:30:00Z"});
        let event = json!({"name": "event", "status": "active", "trigger_type": "event", "schedule_config": {"event_type": "object.created"}});
        let all = [
            cron(
                "mornings",
                json!({"cron_expression": "0 9 * * 0-1", "timezone": "Europe/Vienna"}),
            ),
            cron("often", json!({"cron": "0 */6 23 * *"})),
            cron(
                "nowhere",
                json!({"cron": "0 9 * * *", "timezone": "Mars/Olympus"}),
            ),
            paused,
            interval,
            event,
        ];
        let told = days(&all.map(Record), wall);
        let told: Vec<(&str, Vec<&str>)> = told
            .iter()
            .map(|(day, lines)| (day.as_str(), lines.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "Sun 22 Nov",
                    vec!["08:30 every two days", "09:00 mornings (Europe/Vienna)"]
                ),
                (
                    "Mon 23 Nov",
                    vec![
                        "00:00 to 18:00, 4 times often",
                        "09:00 mornings (Europe/Vienna)"
                    ]
                ),
                ("Tue 24 Nov", vec!["08:30 every two days"]),
                ("Thu 26 Nov", vec!["08:30 every two days"]),
                ("Sat 28 Nov", vec!["08:30 every two days"]),
            ]
        );
    }
}
