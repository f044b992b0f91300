//! Figures of what was asked and of what was done: counted when somebody asks, from the rows that the work leaves behind.

mod asks;
mod buckets;
mod clusters;
mod collections;
mod fields;
mod ingested;
mod namespaces;
mod retrievers;
mod searches;
mod store;
mod syncs;
mod taxonomies;
mod tuning;
mod usage;

use chrono::{DateTime, Duration, Utc};
use loupe_wire::{AnalyticsTimeRange, DateTruncUnit};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    aggregate::truncated,
    app::App,
    clock,
    error::{Result, Violation},
    list::{moment, within},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(buckets::router())
        .merge(clusters::router())
        .merge(collections::router())
        .merge(namespaces::router())
        .merge(retrievers::router())
        .merge(syncs::router())
        .merge(taxonomies::router())
        .merge(usage::router())
}

const HOUR: i64 = 3_600_000_000;

/// Days that figures reach back at most: so long is the history kept.
const MOST_DAYS: i64 = 90;

/// A stretch of time, its end left out.
#[derive(Debug, Clone, Copy)]
struct Span {
    since: i64,
    until: i64,
}

impl Span {
    /// The last hours, up to 30 days of them.
    fn hours(app: &App, sent: Option<i64>, default: i64) -> Result<Self> {
        let hours = within("hours", sent, default, (1, 720))?;
        Ok(Self::last(app, hours))
    }

    /// The last days.
    fn days(app: &App, sent: Option<i64>, default: i64) -> Result<(Self, i64)> {
        let days = within("days", sent, default, (1, MOST_DAYS))?;
        Ok((Self::last(app, 24 * days), days))
    }

    fn last(app: &App, hours: i64) -> Self {
        // What happened in this very moment counts.
        let until = app.clock().micros() + 1;
        Self {
            since: until - hours * HOUR,
            until,
        }
    }

    /// From one moment to another: up to now, and of minutes and hours the last day, else the last 30 days.
    fn between(
        app: &App,
        start: Option<&str>,
        end: Option<&str>,
        unit: DateTruncUnit,
    ) -> Result<Self> {
        let end = moment("end_date", end)?
            .unwrap_or_else(|| app.clock().now() + Duration::microseconds(1));
        let days = match unit {
            DateTruncUnit::Minute | DateTruncUnit::Hour => 1,
            _ => 30,
        };
        let start = moment("start_date", start)?
            .unwrap_or_else(|| end.checked_sub_signed(Duration::days(days)).unwrap_or(end));
        if start > end {
            let msg = "start_date lies after end_date";
            return Err(Violation::query(
                "start_date",
                "value_error",
                msg,
                start.to_rfc3339().into(),
            )
            .into());
        }
        Ok(Self {
            since: start.timestamp_micros(),
            until: end.timestamp_micros(),
        })
    }

    fn told(self) -> AnalyticsTimeRange {
        AnalyticsTimeRange {
            start: clock::time(self.since),
            end: clock::time(self.until),
        }
    }
}

/// The stretches of time that figures are told by.
fn unit(sent: Option<&str>, default: DateTruncUnit) -> Result<DateTruncUnit> {
    Ok(match sent {
        None | Some("") => default,
        Some("minute") => DateTruncUnit::Minute,
        Some("hour") => DateTruncUnit::Hour,
        Some("day") => DateTruncUnit::Day,
        Some("week") => DateTruncUnit::Week,
        Some("month") => DateTruncUnit::Month,
        Some(other) => {
            let msg = "group_by is minute, hour, day, week or month";
            return Err(Violation::query("group_by", "enum", msg, other.into()).into());
        }
    })
}

/// The beginning of the stretch that a moment is in.
fn bucket(micros: i64, unit: DateTruncUnit) -> DateTime<Utc> {
    let at = clock::time(micros);
    truncated(at, unit).unwrap_or(at)
}

/// The time and the stretches of figures that are kept by the hour: the last 30 days by the day, unless something else is
/// asked for.
fn by_hours(app: &App, asked: &asks::DatesQuery) -> Result<(Span, DateTruncUnit)> {
    let unit = unit(asked.group_by.as_deref(), DateTruncUnit::Day)?;
    if unit == DateTruncUnit::Minute {
        let msg = "these figures are kept by the hour";
        return Err(Violation::query("group_by", "enum", msg, "minute".into()).into());
    }
    let (start, end) = (asked.start_date.as_deref(), asked.end_date.as_deref());
    Ok((Span::between(app, start, end, unit)?, unit))
}
