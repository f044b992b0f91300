//! What an app was: versions that somebody's page may be of still, and names that it had.

use axum::{
    http::{HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use loupe_hosted::app::files;

use super::{Known, url};
use crate::{
    app::App,
    error::Result,
    v1::apps::{Environment, store},
};

/// How long pages that are open find the files of the versions before, and how many of those there are.
const EARLIER: i64 = 24 * 3600 * 1_000_000;
const EARLIER_VERSIONS: usize = 5;

/// The versions that this environment served before, for as long as pages of theirs may be open: those that were taken back, and
/// those that others came after.
pub(super) fn earlier(app: &App, environment: Option<&Environment>) -> Vec<i64> {
    let Some(environment) = environment else {
        return Vec::new();
    };
    let is_fresh = |since: i64| app.clock().micros() - since < EARLIER;
    let taken_back = environment.taken_back.iter().rev();
    let taken_back = taken_back
        .filter(|(version, at)| *version != environment.version && is_fresh(*at))
        .map(|(version, _)| version);
    let before = environment.before.iter().rev();
    let before = before.filter(|_| is_fresh(environment.since));
    let mut earlier: Vec<i64> = Vec::with_capacity(EARLIER_VERSIONS);
    for version in taken_back.chain(before) {
        if earlier.len() < EARLIER_VERSIONS && !earlier.contains(version) {
            earlier.push(*version);
        }
    }
    earlier
}

/// How long the name that an app had leads to the one that it has.
const LEADS: i64 = 90 * 24 * 3600 * 1_000_000;

/// Where the app is that had this name before, if one did.
pub(super) async fn moved(app: &App, slug: &str, label: Option<&str>) -> Result<Known> {
    if label.is_none() || slug.is_empty() || slug.contains('.') {
        return Ok(Known::Nobodys);
    }
    let since = app.clock().micros() - LEADS;
    let there = store::by_former_slug(app.db(), slug, since).await?;
    Ok(there.map_or(Known::Nobodys, |now| Known::Moved(url(app, &now).into())))
}

/// Leads whoever comes by the name that an app had to the same path at the one that it has. The name may be another app's one day:
/// nobody keeps this.
pub fn lead(to: &str, uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |all| all.as_str());
    let Ok(target) = HeaderValue::from_str(&format!("{to}{path}")) else {
        return super::nothing_here();
    };
    let mut response = StatusCode::PERMANENT_REDIRECT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, target);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    files::common(headers);
    response
}
