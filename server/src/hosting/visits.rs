//! What visitors of apps asked for and how it went: counted in memory by the minute, and the calls of `/api` and what
//! failed kept as lines. Both go to the database every few seconds.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    http::{Method, StatusCode},
    response::Response,
};
use serde::{Deserialize, Serialize};

use super::Site;
use crate::{
    app::App,
    args,
    db::Tx,
    error::Result,
    id,
    v1::apps::{Hosted, store},
};

pub const MINUTE: i64 = 60_000_000;

/// Lines that wait for the database, of all apps and of one; what does not fit is counted and not kept.
const LINES: usize = 4_000;
const LINES_OF_APP: usize = 100;

/// Apps and minutes that wait for the database.
const SLOTS: usize = 20_000;

/// Bytes of a path that are kept.
const PATH: usize = 300;

crate::sql! {
    const ADD = "INSERT INTO app_minutes (app_id, minute, org_id, pages, calls, errors) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (app_id, minute) DO UPDATE SET pages = app_minutes.pages + excluded.pages, calls = app_minutes.calls + excluded.calls, errors = app_minutes.errors + excluded.errors";
}

/// One request of a visitor, as the owner reads of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    pub level: String,
    pub method: String,
    pub path: String,
    pub status: u16,
    pub duration_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

/// What a minute of an app came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub pages: i64,
    pub calls: i64,
    pub errors: i64,
}

/// An app, its organization and a minute.
type Slot = (String, String, i64);

/// A line on its way: organization, app, moment.
type Kept = (String, String, i64, Line);

#[derive(Default)]
struct Waiting {
    counts: BTreeMap<Slot, Tally>,
    lines: Vec<Kept>,
    /// How many of the lines are whose.
    lines_of: BTreeMap<String, usize>,
}

impl Waiting {
    /// Nobody's visitors take the room of other apps.
    fn keep(&mut self, line: Kept) {
        let own = self.lines_of.entry(line.1.clone()).or_default();
        if self.lines.len() < LINES && *own < LINES_OF_APP {
            *own += 1;
            self.lines.push(line);
        }
    }
}

/// What waits for the database.
#[derive(Default)]
pub struct Visits(Mutex<Waiting>);

/// What a visitor asked for.
#[derive(Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    /// A call of `/api`.
    pub call: bool,
    /// A browser goes to a page, or somebody's program says that it does.
    pub navigates: bool,
    /// Who asked, where somebody is signed in.
    pub user_id: Option<String>,
}

/// Whether the owner of an app wants to know what visitors do.
pub fn is_on(hosted: &Hosted) -> bool {
    let monitoring = hosted.monitoring_config.as_ref();
    monitoring.is_none_or(|monitoring| monitoring.enabled)
}

/// Notes an answered request. Previews are the owner's own.
pub fn note(app: &App, site: &Site, asked: Asked, response: &Response, took: Duration) {
    if site.preview || !is_on(&site.hosted) {
        return;
    }
    let status = response.status();
    let failed = status.is_server_error();
    let page = !asked.call && asked.navigates && is_page(status);
    if !(asked.call || failed || page) {
        return;
    }
    let now = app.clock().micros();
    let (app_id, org_id) = (site.app_id().to_owned(), site.org_id.clone());
    let visits = &app.hosting.visits.0;
    let mut waiting = visits.lock().unwrap_or_else(PoisonError::into_inner);
    let slot = (app_id.clone(), org_id.clone(), now.div_euclid(MINUTE));
    if waiting.counts.len() < SLOTS || waiting.counts.contains_key(&slot) {
        let tally = waiting.counts.entry(slot).or_default();
        tally.pages += i64::from(page);
        tally.calls += i64::from(asked.call);
        tally.errors += i64::from(failed);
    }
    if (asked.call && !is_turned_away(status)) || failed {
        let line = Line {
            level: level(status).into(),
            method: asked.method.to_string(),
            path: cut(asked.path),
            status: status.as_u16(),
            duration_ms: took.as_secs_f64() * 1_000.0,
            user_id: asked.user_id,
        };
        waiting.keep((org_id, app_id, now, line));
    }
}

/// The beginning of a path.
fn cut(mut path: String) -> String {
    path.truncate(path.floor_char_boundary(PATH));
    path
}

/// A page that somebody opened, or opened again.
fn is_page(status: StatusCode) -> bool {
    matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED)
}

/// Anybody can have this answer as often as wanted, and it says nothing of the app.
fn is_turned_away(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND | StatusCode::TOO_MANY_REQUESTS
    )
}

fn level(status: StatusCode) -> &'static str {
    match status.as_u16() {
        500.. => "error",
        400.. => "warn",
        _ => "info",
    }
}

/// Writes what was noted since the last call.
///
/// # Errors
/// The database does not answer; what was noted is lost then.
pub async fn flush(app: &App) -> Result<()> {
    let visits = &app.hosting.visits.0;
    let waiting = std::mem::take(&mut *visits.lock().unwrap_or_else(PoisonError::into_inner));
    if waiting.counts.is_empty() && waiting.lines.is_empty() {
        return Ok(());
    }
    app.db()
        .write(move |tx| Box::pin(async move { write(tx, waiting).await }))
        .await
}

async fn write(tx: &mut Tx, waiting: Waiting) -> Result<()> {
    // In one order everywhere, as the map has them: two processes that add to the same rows must not wait for each other.
    for ((app_id, org_id, minute), tally) in waiting.counts {
        add(tx, (&org_id, &app_id), minute, tally).await?;
    }
    for (org_id, app_id, at, line) in waiting.lines {
        let kind = format!("request.{}", line.level);
        let place = (org_id.as_str(), app_id.as_str());
        store::insert_event(tx, place, &id::new("apl_"), &kind, &line, at).await?;
    }
    Ok(())
}

/// Adds to a minute of an app: its organization, and its own id.
///
/// # Errors
/// The database does not answer.
pub async fn add(
    tx: &mut Tx,
    (org_id, app_id): (&str, &str),
    minute: i64,
    tally: Tally,
) -> Result<()> {
    let Tally {
        pages,
        calls,
        errors,
    } = tally;
    tx.run(ADD, args![app_id, minute, org_id, pages, calls, errors])
        .await?;
    Ok(())
}
