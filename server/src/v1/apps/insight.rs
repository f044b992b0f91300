//! What an app's owner learns of its visits: how many, what failed, how fast pages were, and the lines of each request.

use std::collections::BTreeMap;

use loupe_wire::{
    AppAnalyticsResponse, AppLogsResponse, ErrorBucket, ErrorRateResponse, RecentError, Value,
    VitalsSummary,
};
use serde_json::json;

use super::store::Deploy;
use crate::{
    app::App,
    args,
    auth::Caller,
    clock,
    db::Json,
    error::{Result, Violation},
    figures::{Sorted, count},
    hosting::visits::{self, MINUTE},
};

/// Measurements that figures are made of, the newest ones.
const MEASURED: i64 = 5_000;

/// Errors that are shown.
const SHOWN: i64 = 20;

/// Rows of lines that are read at once.
const ROWS: usize = 50;

crate::sql! {
    const SUMS = "SELECT CAST(minute / $4 AS BIGINT) AS bucket, CAST(SUM(pages) AS BIGINT) AS pages, CAST(SUM(errors) AS BIGINT) AS errors FROM app_minutes WHERE org_id = $1 AND app_id = $2 AND minute >= $3 GROUP BY 1 ORDER BY 1";
    const EVENTS = "SELECT kind, created_at, data FROM app_events WHERE org_id = $1 AND app_id = $2 AND kind LIKE $3 AND created_at >= $4 ORDER BY created_at DESC, event_id LIMIT $5";
    const EVENTS_AFTER = "SELECT event_id, kind, created_at, data FROM app_events WHERE org_id = $1 AND app_id = $2 AND kind LIKE $3 AND created_at >= $4 AND (created_at < $6 OR (created_at = $6 AND event_id > $7)) ORDER BY created_at DESC, event_id LIMIT $5";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM app_events WHERE org_id = $1 AND app_id = $2 AND kind NOT LIKE 'request.%' AND created_at >= $3";
    const DEPLOYS = "SELECT status, created_at, data FROM app_deploys WHERE org_id = $1 AND app_id = $2 AND created_at >= $3 AND ((status = 'failed' AND CAST($5 AS BIGINT) = 1) OR (status <> 'failed' AND CAST($6 AS BIGINT) = 1)) ORDER BY created_at DESC, deploy_id LIMIT $4";
}

/// The kind under which something that a page reports is kept.
pub(super) fn kind_of(event_type: &str) -> &'static str {
    match event_type {
        "error" | "js_error" | "exception" | "unhandledrejection" => REPORTED,
        "web_vital" | "web_vitals" | "vital" => VITAL,
        _ => "interaction",
    }
}

pub(super) const REPORTED: &str = "report.error";
const VITAL: &str = "report.vital";

/// An app of the caller's, as the tables name it.
struct Place<'a> {
    app: &'a App,
    org_id: &'a str,
    app_id: String,
}

type Event = (String, i64, Json<Value>);

/// The lines of a row, the newest first. Those from before have one each.
fn lines((kind, at, Json(mut data)): Event) -> Vec<Event> {
    let Some(Value::Array(lines)) = data.get_mut("lines").map(Value::take) else {
        return vec![(kind, at, Json(data))];
    };
    let lines = lines.into_iter().rev().map(|mut line| {
        let members = line.as_object_mut();
        let at = members.and_then(|members| members.remove("at")?.as_i64());
        (kind.clone(), at.unwrap_or_default(), Json(line))
    });
    lines.collect()
}

impl Place<'_> {
    async fn sums(&self, since: i64, minutes: i64) -> Result<Vec<(i64, i64, i64)>> {
        let args = args![self.org_id, &self.app_id, since.div_euclid(MINUTE), minutes];
        self.app.db().all(SUMS, args).await
    }

    async fn events(&self, kind: &str, since: i64, most: i64) -> Result<Vec<Event>> {
        let args = args![self.org_id, &self.app_id, kind, since, most];
        self.app.db().all(EVENTS, args).await
    }

    /// Lines of requests, the newest first. A row lies where the newest of its lines does, and others may reach into it.
    async fn requests(&self, level: &str, since: i64, most: i64) -> Result<Vec<Event>> {
        let kind = format!("request.{level}");
        let most = usize::try_from(most).unwrap_or(0);
        let mut all: Vec<Event> = Vec::new();
        let mut after = (i64::MAX, String::new());
        loop {
            let (org_id, app_id, last) = (self.org_id, &self.app_id, &after.1);
            let args = args![org_id, app_id, &kind, since, ROWS, after.0, last];
            let rows: Vec<(String, String, i64, Json<Value>)> =
                self.app.db().all(EVENTS_AFTER, args).await?;
            let is_last = rows.len() < ROWS;
            for (event_id, kind, at, data) in rows {
                after = (at, event_id);
                all.extend(lines((kind, at, data)));
            }
            all.retain(|(_, at, _)| *at >= since);
            all.sort_by_key(|(_, at, _)| -at);
            all.truncate(most);
            // Nothing in the rows that follow is newer than the last of these.
            let is_whole = all.len() == most && all.last().is_none_or(|last| last.1 >= after.0);
            if is_last || is_whole {
                return Ok(all);
            }
        }
    }
}

async fn place<'a>(app: &'a App, caller: &'a Caller, app_id: &str) -> Result<Place<'a>> {
    let record = super::find(app, caller, app_id).await?;
    visits::flush(app).await?;
    Ok(Place {
        app,
        org_id: &caller.org_id,
        app_id: record.id,
    })
}

/// The first of these members that is there, among what the page sent along or beside it.
fn said<'v>(data: &'v Value, names: &[&str]) -> Option<&'v Value> {
    let within = |all: &'v Value| names.iter().find_map(|name| all.get(*name));
    within(&data["metadata"]).or_else(|| within(data))
}

fn words(data: &Value, names: &[&str]) -> Option<String> {
    said(data, names)
        .and_then(Value::as_str)
        .map(|text| text.chars().take(1_000).collect())
}

/// Errors per minute.
#[expect(clippy::cast_precision_loss, reason = "counts of errors are small")]
fn rate(errors: i64, minutes: i64) -> f64 {
    errors as f64 / minutes.max(1) as f64
}

/// What came of an app's visits within so many hours.
pub async fn analytics(
    app: &App,
    caller: &Caller,
    app_id: &str,
    hours: i64,
) -> Result<AppAnalyticsResponse> {
    let place = place(app, caller, app_id).await?;
    let now = app.clock().micros();
    let since = now - hours * 60 * MINUTE;
    // By the hour for a week, by the day for more.
    let minutes = if hours <= 168 { 60 } else { 24 * 60 };
    let sums = place.sums(since, minutes).await?;
    let total_errors = sums.iter().map(|(_, _, errors)| errors).sum();
    let args = args![place.org_id, &place.app_id, since];
    Ok(AppAnalyticsResponse {
        period_hours: hours,
        total_errors,
        error_rate_per_minute: rate(total_errors, hours * 60),
        errors_over_time: over_time(&sums, (since, now), minutes),
        vitals: vitals(place.events(VITAL, since, MEASURED).await?),
        recent_errors: recent(&place, since).await?,
        total_events: app.db().number(COUNT, args).await?,
        total_pageviews: sums.iter().map(|(_, pages, _)| pages).sum(),
        app_id: place.app_id,
    })
}

/// Every stretch of the time asked for, also those in which nothing failed.
fn over_time(sums: &[(i64, i64, i64)], (since, now): (i64, i64), minutes: i64) -> Vec<ErrorBucket> {
    let long = minutes * MINUTE;
    let failed: BTreeMap<i64, i64> = sums.iter().map(|(at, _, errors)| (*at, *errors)).collect();
    let all = since.div_euclid(long)..=now.div_euclid(long);
    all.map(|at| ErrorBucket {
        timestamp: clock::time(at * long).to_rfc3339(),
        count: failed.get(&at).copied().unwrap_or(0),
    })
    .collect()
}

/// How long things took for visitors: of each measure, what half of them, three quarters and 95 % stayed below.
fn vitals(events: Vec<Event>) -> Vec<VitalsSummary> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (_, _, data) in events {
        let name = words(&data.0, &["metric_name", "metric", "name"]);
        let value = said(&data.0, &["value"]).and_then(Value::as_f64);
        if let (Some(name), Some(value)) = (name, value)
            && (all.len() < 50 || all.contains_key(&name))
        {
            all.entry(name).or_default().push(value);
        }
    }
    let summary = |(metric_name, values)| {
        let values = Sorted::new(values);
        VitalsSummary {
            metric_name,
            p50: values.percentile(0.5),
            p75: values.percentile(0.75),
            p95: values.percentile(0.95),
            sample_count: count(values.len()),
        }
    };
    all.into_iter().map(summary).collect()
}

/// The newest errors: those that pages reported, and requests that this server failed at.
async fn recent(place: &Place<'_>, since: i64) -> Result<Vec<RecentError>> {
    let mut all = place.events(REPORTED, since, SHOWN).await?;
    all.extend(place.requests("error", since, SHOWN).await?);
    all.sort_by_key(|(_, at, _)| -at);
    let shown = usize::try_from(SHOWN).unwrap_or(20);
    let told = all.into_iter().take(shown).map(|(kind, at, data)| {
        let data = data.0;
        let (error_type, error_message, url) = if kind == REPORTED {
            (
                words(&data, &["error_type", "type", "name"]),
                words(&data, &["error_message", "message"]),
                words(&data, &["url", "page_url"]),
            )
        } else {
            let line = format!(
                "{} {} answered {}",
                text(&data, "method"),
                text(&data, "path"),
                data["status"]
            );
            (None, Some(line), words(&data, &["path"]))
        };
        RecentError {
            timestamp: clock::time(at).to_rfc3339(),
            error_type: error_type.unwrap_or_else(|| "error".into()),
            error_message: error_message.unwrap_or_default(),
            url,
        }
    });
    Ok(told.collect())
}

fn text<'v>(data: &'v Value, name: &str) -> &'v str {
    data[name].as_str().unwrap_or_default()
}

/// How much failed within so many minutes.
pub async fn error_rate(
    app: &App,
    caller: &Caller,
    app_id: &str,
    minutes: i64,
) -> Result<ErrorRateResponse> {
    let place = place(app, caller, app_id).await?;
    let since = app.clock().micros() - minutes * MINUTE;
    let sums = place.sums(since, minutes).await?;
    let error_count = sums.iter().map(|(_, _, errors)| errors).sum();
    Ok(ErrorRateResponse {
        app_id: place.app_id,
        error_count,
        period_minutes: minutes,
        rate_per_minute: rate(error_count, minutes),
    })
}

/// Which lines an owner wants to read.
#[derive(Debug)]
pub struct Wanted {
    pub log_type: Option<String>,
    pub hours: i64,
    pub level: Option<String>,
    pub limit: i64,
}

fn refused(name: &str, message: &str, sent: &str) -> crate::error::ApiError {
    Violation::query(name, "value_error", message, sent.into()).into()
}

/// Lines of an app, the newest first.
pub async fn logs(
    app: &App,
    caller: &Caller,
    app_id: &str,
    wanted: &Wanted,
) -> Result<AppLogsResponse> {
    let level = wanted.level.as_deref();
    if let Some(level) = level.filter(|level| !["info", "warn", "error"].contains(level)) {
        return Err(refused("level", "levels are info, warn and error", level));
    }
    let log_type = wanted.log_type.as_deref().unwrap_or("requests");
    let place = place(app, caller, app_id).await?;
    let since = app.clock().micros() - wanted.hours * 60 * MINUTE;
    let results = match log_type {
        "requests" => {
            let level = level.unwrap_or("%");
            place.requests(level, since, wanted.limit).await?
        }
        // What fails has one level, and what visitors do another.
        "errors" if level.is_some_and(|level| level != "error") => Vec::new(),
        "interactions" if level.is_some_and(|level| level != "info") => Vec::new(),
        "errors" => {
            let reported = place.events(REPORTED, since, wanted.limit).await?;
            let mut all = place.requests("error", since, wanted.limit).await?;
            all.extend(reported);
            all.sort_by_key(|(_, at, _)| -at);
            all.truncate(usize::try_from(wanted.limit).unwrap_or(0));
            all
        }
        "interactions" => place.events("interaction", since, wanted.limit).await?,
        "deploys" => {
            let lines = deploys(&place, since, level, wanted.limit).await?;
            return Ok(answer(place.app_id, log_type, lines));
        }
        other => {
            let message = "log types are requests, errors, interactions and deploys";
            return Err(refused("log_type", message, other));
        }
    };
    let lines = results.into_iter().map(|(kind, at, data)| {
        let mut line = data.0;
        line["timestamp"] = clock::time(at).to_rfc3339().into();
        if kind == REPORTED {
            line["level"] = "error".into();
        }
        line
    });
    Ok(answer(place.app_id, log_type, lines.collect()))
}

/// The interface has two names for the lines.
fn answer(app_id: String, log_type: &str, lines: Vec<Value>) -> AppLogsResponse {
    AppLogsResponse {
        app_id,
        log_type: log_type.to_owned(),
        entries: lines.clone(),
        results: lines,
    }
}

async fn deploys(
    place: &Place<'_>,
    since: i64,
    level: Option<&str>,
    most: i64,
) -> Result<Vec<Value>> {
    // A deploy that failed is an error, every other is information.
    let (failed, others): (i64, i64) = match level {
        None => (1, 1),
        Some("error") => (1, 0),
        Some("info") => (0, 1),
        Some(_) => return Ok(Vec::new()),
    };
    let args = args![place.org_id, &place.app_id, since, most, failed, others];
    let rows: Vec<(String, i64, Json<Deploy>)> = place.app.db().all(DEPLOYS, args).await?;
    let line = |(status, at, deploy): (String, i64, Json<Deploy>)| {
        let deploy = deploy.0;
        let lines = deploy
            .log
            .into_iter()
            .map(|(at, line)| json!({"timestamp": clock::time(at).to_rfc3339(), "message": line}));
        json!({
            "timestamp": clock::time(at).to_rfc3339(), "level": if status == "failed" { "error" } else { "info" },
            "deploy_id": deploy.deploy_id, "status": status, "environment": deploy.environment, "message": deploy.message,
            "version": deploy.version, "error": deploy.error, "lines": lines.collect::<Vec<_>>(),
        })
    };
    Ok(rows.into_iter().map(line).collect())
}
