//! How much each key is used: counted in memory, added to the hour's rows every few seconds.

mod latency;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{http::Method, response::Response};

use latency::Histogram;

use crate::{
    app::App,
    args,
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
    v1::retrievers::{Questions, Unbilled},
};

const HOUR: i64 = 3600 * 1_000_000;
/// How long the steps are kept that answers took; the sums stay.
const STEPS_KEPT: i64 = 90 * 24 * HOUR;

/// After the path of answers that were kept.
const KEPT: &str = " (cached)";

/// What searches of strangers are counted under, whichever page or app they were made on.
const OF_PAGES: &str = "/v1/public/retrievers/{public_name}/execute";

/// What searches of batches are counted under, whichever retriever they are of.
const OF_BATCHES: &str = "/v1/retrievers/{retriever_id}/execute";

crate::sql! {
    const ADD = "INSERT INTO key_usage (org_id, key_id, hour, method, path, requests, errors, micros, last_used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (org_id, key_id, hour, method, path) DO UPDATE SET requests = key_usage.requests + excluded.requests, errors = key_usage.errors + excluded.errors, micros = key_usage.micros + excluded.micros, last_used_at = excluded.last_used_at";
    const ADD_LATENCY = "INSERT INTO key_latency (org_id, key_id, hour, method, path, micros, answers) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (org_id, key_id, hour, method, path, micros) DO UPDATE SET answers = key_latency.answers + excluded.answers";
    const LATENCIES = "SELECT method, path, micros, CAST(SUM(answers) AS BIGINT) AS answers FROM key_latency WHERE org_id = $1 AND key_id = $2 AND hour >= $3 AND hour < $4 GROUP BY method, path, micros";
    const DAYS = "SELECT hour / 86400000000 AS day, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(errors) AS BIGINT) AS errors FROM key_usage WHERE org_id = $1 AND key_id = $2 AND hour >= $3 AND hour < $4 GROUP BY hour / 86400000000 ORDER BY hour / 86400000000";
    const DAYS_OF_KEYS = "SELECT key_id, hour / 86400000000 AS day, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(errors) AS BIGINT) AS errors FROM key_usage WHERE org_id = $1 AND key_id IN (SELECT key_id FROM api_keys WHERE org_id = $1) AND hour >= $2 AND hour < $3 GROUP BY key_id, hour / 86400000000 ORDER BY key_id, hour / 86400000000";
    const SUM_OF_KEYS = "SELECT key_id, method, path, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(errors) AS BIGINT) AS errors, CAST(SUM(micros) AS BIGINT) AS micros, MAX(last_used_at) AS last_used_at FROM key_usage WHERE org_id = $1 AND key_id IN (SELECT key_id FROM api_keys WHERE org_id = $1) AND hour >= $2 AND hour < $3 GROUP BY key_id, method, path";
    const SWEEP = "DELETE FROM key_latency WHERE hour < $1";
    const SUM = "SELECT method, path, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(errors) AS BIGINT) AS errors, CAST(SUM(micros) AS BIGINT) AS micros, MAX(last_used_at) AS last_used_at FROM key_usage WHERE org_id = $1 AND key_id = $2 AND hour >= $3 AND hour < $4 GROUP BY method, path ORDER BY CAST(SUM(requests) AS BIGINT) DESC, path, method";
}

crate::sql! {
    // As [`is_search`] says it.
    const SEARCHES = "SELECT CAST(COALESCE(SUM(requests - errors), 0) AS BIGINT) FROM key_usage WHERE org_id = $1 AND (path LIKE '/v1/retrievers/%execute' OR path LIKE '/v1/retrievers/%execute/batch' OR path = '/v1/public/retrievers/{public_name}/execute') AND hour >= $2 AND hour < $3";
}

/// Searches of an organization that were answered between two moments. Whole hours are counted.
pub async fn searches(app: &App, org_id: &str, from: i64, to: i64) -> Result<i64> {
    flush(app).await?;
    let from = from - from.rem_euclid(HOUR);
    app.db().number(SEARCHES, args![org_id, from, to]).await
}

/// Whether an operation is a search: a retriever that is executed, also with several questions at once.
pub fn is_search(path: &str) -> bool {
    let rest = path.strip_prefix("/v1/retrievers/");
    path == OF_PAGES
        || rest.is_some_and(|rest| rest.ends_with("execute") || rest.ends_with("execute/batch"))
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Slot {
    org_id: String,
    key_id: String,
    hour: i64,
    method: String,
    path: String,
}

#[derive(Default)]
struct Tally {
    requests: i64,
    errors: i64,
    micros: i64,
    last_used_at: i64,
    latency: Histogram,
}

/// Counts on their way to the database. One entry for each key, operation and hour.
#[derive(Default)]
pub struct Usage(Mutex<HashMap<Slot, Tally>>);

impl Usage {
    /// Counts again what did not come to the database.
    fn put_back(&self, counts: &HashMap<Slot, Tally>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, counted) in counts {
            let tally = waiting.entry(slot.clone()).or_default();
            tally.requests += counted.requests;
            tally.errors += counted.errors;
            tally.micros += counted.micros;
            tally.last_used_at = tally.last_used_at.max(counted.last_used_at);
            for (step, answers) in counted.latency.steps() {
                tally.latency.add(step, answers);
            }
        }
    }
}

crate::row! {
    /// One operation's share of a key's use.
    #[derive(Debug, Clone)]
    pub struct OperationUse {
        pub method: String,
        pub path: String,
        pub requests: i64,
        pub errors: i64,
        pub micros: i64,
        pub last_used_at: i64,
    }
}

/// Counts one answered request; each question of one that asks several.
pub fn count(
    app: &App,
    caller: &Caller,
    method: &Method,
    path: &str,
    response: &Response,
    took: Duration,
) {
    let now = app.clock().micros();
    let refused = i64::from(response.status().as_u16() >= 400);
    let extensions = response.extensions();
    let (made, kept, errors) = match extensions.get::<Questions>() {
        Some(asked) => (asked.made + asked.failed, asked.kept, asked.failed),
        None if extensions.get::<Unbilled>().is_some() => (0, 1, refused),
        None => (1, 0, refused),
    };
    let mut took = i64::try_from(took.as_micros()).ok();
    let mut counts = app.usage.0.lock().unwrap_or_else(PoisonError::into_inner);
    // What was answered from memory is told apart: it is no search that costs.
    let parts = [("", made, errors), (KEPT, kept, 0)];
    for (kind, requests, errors) in parts.into_iter().filter(|part| part.1 > 0) {
        let slot = Slot {
            org_id: caller.org_id.clone(),
            key_id: caller.actor().to_owned(),
            hour: now - now.rem_euclid(HOUR),
            method: method.to_string(),
            path: [path, kind].concat(),
        };
        let tally = counts.entry(slot).or_default();
        tally.requests += requests;
        tally.errors += errors;
        // One answer took it, whatever was asked for.
        if let Some(micros) = took.take() {
            tally.micros += micros;
            tally.latency.note(micros);
        }
        tally.last_used_at = now;
    }
}

/// Counts one search of a stranger for the owner of the page: one row for each retriever and hour, however many strangers
/// there are. How long it took is told by the retriever's history.
pub fn count_public(app: &App, org_id: &str, retriever_id: &str) {
    let now = app.clock().micros();
    let slot = Slot {
        org_id: org_id.to_owned(),
        key_id: retriever_id.to_owned(),
        hour: now - now.rem_euclid(HOUR),
        method: Method::POST.to_string(),
        path: OF_PAGES.to_owned(),
    };
    let mut counts = app.usage.0.lock().unwrap_or_else(PoisonError::into_inner);
    let tally = counts.entry(slot).or_default();
    tally.requests += 1;
    tally.last_used_at = now;
}

/// Counts searches that a batch made of a retriever: one that makes documents is paid for as one that people ask.
pub fn count_inside(app: &App, org_id: &str, retriever_id: &str, searches: usize) {
    if searches == 0 {
        return;
    }
    let now = app.clock().micros();
    let slot = Slot {
        org_id: org_id.to_owned(),
        key_id: retriever_id.to_owned(),
        hour: now - now.rem_euclid(HOUR),
        method: Method::POST.to_string(),
        path: OF_BATCHES.to_owned(),
    };
    let mut counts = app.usage.0.lock().unwrap_or_else(PoisonError::into_inner);
    let tally = counts.entry(slot).or_default();
    tally.requests += i64::try_from(searches).unwrap_or(i64::MAX);
    tally.last_used_at = now;
}

/// Writes what was counted since the last call. What could not be written waits for the next one.
///
/// # Errors
/// The database fails.
pub async fn flush(app: &App) -> Result<()> {
    let counts = std::mem::take(&mut *app.usage.0.lock().unwrap_or_else(PoisonError::into_inner));
    if counts.is_empty() {
        return Ok(());
    }
    let writer = app.clone();
    // Whoever asks for it may go away meanwhile: the counts are everybody's.
    let written = app.tracker.spawn(async move {
        let counts = Arc::new(counts);
        let kept = counts.clone();
        let ended = writer
            .db()
            .write(move |tx| Box::pin(async move { write(tx, &counts).await }))
            .await;
        if ended.is_err() {
            writer.usage.put_back(&kept);
        }
        ended
    });
    written.await.map_err(ApiError::internal)?
}

/// Forgets how long answers took that are older than 90 days.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - STEPS_KEPT;
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(SWEEP, args![before]).await.map(|_| ()) }))
        .await
}

async fn write(tx: &mut Tx, counts: &HashMap<Slot, Tally>) -> Result<()> {
    // In one order everywhere: two processes that add to the same rows must not wait for each other.
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(slot, _)| *slot);
    for (slot, tally) in counts {
        for (micros, answers) in tally.latency.steps() {
            let args = args![
                &slot.org_id,
                &slot.key_id,
                slot.hour,
                &slot.method,
                &slot.path,
                micros,
                answers,
            ];
            tx.run(ADD_LATENCY, args).await?;
        }
        let args = args![
            &slot.org_id,
            &slot.key_id,
            slot.hour,
            &slot.method,
            &slot.path,
            tally.requests,
            tally.errors,
            tally.micros,
            tally.last_used_at,
        ];
        tx.run(ADD, args).await?;
    }
    Ok(())
}

/// What a key did between two moments, by operation, the busiest first. Whole hours are counted.
pub async fn of_key(
    app: &App,
    org_id: &str,
    key_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<OperationUse>> {
    flush(app).await?;
    let from = from - from.rem_euclid(HOUR);
    app.db().all(SUM, args![org_id, key_id, from, to]).await
}

/// Requests of a key between two moments, and how many of them failed, by the day of UTC as it is counted from 1970. Whole hours
/// are counted.
///
/// # Errors
/// The database does not answer.
pub async fn days_of_key(
    app: &App,
    org_id: &str,
    key_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(i64, i64, i64)>> {
    let from = from - from.rem_euclid(HOUR);
    app.db().all(DAYS, args![org_id, key_id, from, to]).await
}

/// What a key did, and on which days, as [`days_of_key`] tells them.
#[derive(Default)]
pub struct KeyUse {
    pub operations: Vec<OperationUse>,
    pub days: Vec<(i64, i64, i64)>,
}

crate::row! {
    struct OfKey {
        key_id: String,
        method: String,
        path: String,
        requests: i64,
        errors: i64,
        micros: i64,
        last_used_at: i64,
    }
}

/// What each key of an organization did between two moments, by its id; those that did nothing are left out. Whole hours are
/// counted.
///
/// # Errors
/// The database does not answer.
pub async fn of_keys(
    app: &App,
    org_id: &str,
    from: i64,
    to: i64,
) -> Result<HashMap<String, KeyUse>> {
    flush(app).await?;
    let from = from - from.rem_euclid(HOUR);
    let args = args![org_id, from, to];
    let operations: Vec<OfKey> = app.db().all(SUM_OF_KEYS, args).await?;
    let mut keys: HashMap<String, KeyUse> = HashMap::new();
    for one in operations {
        keys.entry(one.key_id)
            .or_default()
            .operations
            .push(OperationUse {
                method: one.method,
                path: one.path,
                requests: one.requests,
                errors: one.errors,
                micros: one.micros,
                last_used_at: one.last_used_at,
            });
    }
    let args = args![org_id, from, to];
    let days: Vec<(String, i64, i64, i64)> = app.db().all(DAYS_OF_KEYS, args).await?;
    for (key_id, day, requests, errors) in days {
        let key = keys.entry(key_id).or_default();
        key.days.push((day, requests, errors));
    }
    Ok(keys)
}

/// Microseconds that 95 of 100 answers of a key took at most between two moments, by method and path. Whole hours are counted;
/// what is older than 90 days has no figure.
pub async fn slowest_of_key(
    app: &App,
    org_id: &str,
    key_id: &str,
    from: i64,
    to: i64,
) -> Result<HashMap<(String, String), i64>> {
    let from = from - from.rem_euclid(HOUR);
    let args = args![org_id, key_id, from, to];
    let steps: Vec<(String, String, i64, i64)> = app.db().all(LATENCIES, args).await?;
    let mut told: HashMap<_, Histogram> = HashMap::new();
    for (method, path, micros, answers) in steps {
        told.entry((method, path)).or_default().add(micros, answers);
    }
    let read = told
        .into_iter()
        .filter_map(|(operation, histogram)| Some((operation, histogram.percentile(95)?)));
    Ok(read.collect())
}
