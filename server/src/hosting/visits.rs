//! What visitors of apps asked for and how it went: counted in memory by the minute, and the calls of `/api` and what
//! failed kept as lines. Both go to the database every few seconds.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    http::{Method, StatusCode, header},
    response::Response,
};
use serde::Serialize;

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

/// Apps that wait for the database.
const APPS: usize = 20_000;

/// Bytes of a path that are kept.
const PATH: usize = 300;

crate::sql! {
    const ADD = "INSERT INTO app_minutes (app_id, minute, org_id, pages, calls, errors) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (app_id, minute) DO UPDATE SET pages = app_minutes.pages + excluded.pages, calls = app_minutes.calls + excluded.calls, errors = app_minutes.errors + excluded.errors";
}

/// One request of a visitor, as the owner reads of it, and when it was.
#[derive(Debug, Serialize)]
struct Line {
    at: i64,
    level: &'static str,
    method: String,
    path: String,
    status: u16,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
}

/// Lines of an app of one level, the oldest first: one row, as each row costs more than all that is in it.
#[derive(Debug, Serialize)]
struct Lines {
    lines: Vec<Line>,
}

/// What a minute of an app came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub pages: i64,
    pub calls: i64,
    pub errors: i64,
}

/// What waits of an app.
#[derive(Default)]
struct OfApp {
    org_id: String,
    minutes: BTreeMap<i64, Tally>,
    lines: Vec<Line>,
}

#[derive(Default)]
struct Waiting {
    apps: BTreeMap<String, OfApp>,
    lines: usize,
}

impl Waiting {
    /// What waits of an app; none of a new one where too many wait.
    fn of(&mut self, site: &Site) -> Option<&mut OfApp> {
        if !self.apps.contains_key(site.app_id()) {
            if self.apps.len() >= APPS {
                return None;
            }
            let org_id = site.org_id.clone();
            let fresh = OfApp {
                org_id,
                ..OfApp::default()
            };
            self.apps.insert(site.app_id().to_owned(), fresh);
        }
        self.apps.get_mut(site.app_id())
    }

    /// Counts a request, and keeps its line where there is one and room for it: nobody's visitors take the room of other apps.
    fn add(&mut self, site: &Site, minute: i64, tally: Tally, line: impl FnOnce() -> Option<Line>) {
        let has_room = self.lines < LINES;
        let Some(of_app) = self.of(site) else {
            return;
        };
        let counted = of_app.minutes.entry(minute).or_default();
        counted.pages += tally.pages;
        counted.calls += tally.calls;
        counted.errors += tally.errors;
        if has_room
            && of_app.lines.len() < LINES_OF_APP
            && let Some(line) = line()
        {
            of_app.lines.push(line);
            self.lines += 1;
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
    let page = !asked.call && asked.navigates && is_page(response);
    if !(asked.call || failed || page) {
        return;
    }
    let now = app.clock().micros();
    let tally = Tally {
        pages: i64::from(page),
        calls: i64::from(asked.call),
        errors: i64::from(failed),
    };
    let line = || {
        let told = (asked.call && !is_turned_away(status)) || failed;
        told.then(|| Line {
            at: now,
            level: level(status),
            method: asked.method.to_string(),
            path: cut(asked.path),
            status: status.as_u16(),
            duration_ms: took.as_secs_f64() * 1_000.0,
            user_id: asked.user_id,
        })
    };
    let waiting = &app.hosting.visits.0;
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.add(site, now.div_euclid(MINUTE), tally, line);
}

/// The beginning of a path.
fn cut(mut path: String) -> String {
    path.truncate(path.floor_char_boundary(PATH));
    path
}

/// A page that somebody opened, or opened again: an icon or a drawing is none.
fn is_page(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_html = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    is_html && matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED)
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
    if waiting.apps.is_empty() {
        return Ok(());
    }
    app.db()
        .write(move |tx| Box::pin(async move { write(tx, waiting).await }))
        .await
}

async fn write(tx: &mut Tx, waiting: Waiting) -> Result<()> {
    // In one order everywhere, as the maps have them: two processes that add to the same rows must not wait for each other.
    for (app_id, of_app) in waiting.apps {
        let place = (of_app.org_id.as_str(), app_id.as_str());
        for (minute, tally) in of_app.minutes {
            add(tx, place, minute, tally).await?;
        }
        let mut levels: BTreeMap<_, Vec<Line>> = BTreeMap::new();
        for line in of_app.lines {
            levels.entry(line.level).or_default().push(line);
        }
        for (level, lines) in levels {
            let newest = lines.iter().map(|line| line.at).max().unwrap_or_default();
            let kind = format!("request.{level}");
            store::insert_event(tx, place, &id::new("apl_"), &kind, &Lines { lines }, newest)
                .await?;
        }
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
