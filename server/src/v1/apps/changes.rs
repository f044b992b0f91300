//! What one version of an app has and another has not: which files, and what changed inside of those that are texts.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use loupe_hosted::app::files::{Asset, Manifest};
use loupe_wire::{FileDiff, FileDiffStatus, VersionDiffResponse};

use super::{
    packing::{blocking, file_key},
    store,
    unified::unified,
};
use crate::{app::App, auth::Caller, error::Result};

/// Bytes of a text that is compared, and of all of them; what is written by hand is smaller.
const TEXT: u64 = 64 << 10;
const TEXTS: u64 = 1 << 20;

/// Files that are read for it, one after the other, while somebody waits.
const FILES: usize = 200;

/// What one version has and another has not.
pub async fn between(
    app: &App,
    caller: &Caller,
    app_id: &str,
    from: i64,
    to: i64,
) -> Result<VersionDiffResponse> {
    let record = super::find(app, caller, app_id).await?;
    let (org_id, id) = (&caller.org_id, &record.id);
    let old = store::find_version(app.db(), org_id, id, from).await?.files;
    let new = store::find_version(app.db(), org_id, id, to).await?.files;
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let files = paths.into_iter().map(|path| one(path, &old, &new));
    let files: Vec<FileDiff> = files.collect();
    let count = |status| {
        let count = files.iter().filter(|file| file.status == status).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    let summary = [
        ("added", FileDiffStatus::Added),
        ("removed", FileDiffStatus::Removed),
        ("modified", FileDiffStatus::Modified),
        ("unchanged", FileDiffStatus::Unchanged),
    ];
    let summary = summary.map(|(name, status)| (name.to_owned(), count(status)));
    let changed: Vec<&FileDiff> = (files.iter())
        .filter(|file| file.status != FileDiffStatus::Unchanged)
        .collect();
    let source_diff = texts(app, id, &changed, (&old, &new)).await?;
    Ok(VersionDiffResponse {
        app_id: record.id,
        from_version: from,
        to_version: to,
        summary: summary.into_iter().collect(),
        files,
        source_diff,
    })
}

/// What became of one file.
fn one(path: &str, old: &Manifest, new: &Manifest) -> FileDiff {
    let (before, after) = (old.get(path), new.get(path));
    let size = |file: &Asset| i64::try_from(file.size).unwrap_or(i64::MAX);
    let (old_size, new_size) = (before.map(size), after.map(size));
    FileDiff {
        path: path.to_owned(),
        status: match (before, after) {
            (None, _) => FileDiffStatus::Added,
            (_, None) => FileDiffStatus::Removed,
            (Some(old), Some(new)) if old.hash == new.hash => FileDiffStatus::Unchanged,
            _ => FileDiffStatus::Modified,
        },
        old_hash: before.map(|file| file.hash.clone()),
        new_hash: after.map(|file| file.hash.clone()),
        size_delta: Some(new_size.unwrap_or(0) - old_size.unwrap_or(0)),
        old_size,
        new_size,
    }
}

/// Files that people write and read.
fn is_text(asset: &Asset) -> bool {
    let kind = asset.r#type.as_str();
    kind.starts_with("text/")
        || matches!(
            kind,
            "application/json" | "application/manifest+json" | "application/xml" | "image/svg+xml"
        )
}

/// What changed inside of the texts, by path, in the order of the paths. Large ones are left out.
async fn texts(
    app: &App,
    app_id: &str,
    changed: &[&FileDiff],
    (old, new): (&Manifest, &Manifest),
) -> Result<IndexMap<String, String>> {
    let (mut told, mut compared, mut read) = (IndexMap::new(), 0, 0);
    for file in changed {
        let sides = [old.get(&file.path), new.get(&file.path)];
        let small = |side: &Asset| is_text(side) && side.size <= TEXT;
        let size: u64 = sides.iter().flatten().map(|side| side.size).sum();
        let fits = compared + size <= TEXTS && read < FILES;
        if !fits || !sides.iter().flatten().all(|side| small(side)) {
            continue;
        }
        (compared, read) = (compared + size, read + 1);
        let (before, after) = (
            text(app, app_id, sides[0]).await?,
            text(app, app_id, sides[1]).await?,
        );
        let (Some(before), Some(after)) = (before, after) else {
            continue;
        };
        let path = file.path.clone();
        let work = move || Ok(unified(&path, &before, &after));
        told.insert(file.path.clone(), blocking(work).await?);
    }
    Ok(told)
}

/// The text of a file, empty where there is none; absent when it is no text after all.
async fn text(app: &App, app_id: &str, asset: Option<&Asset>) -> Result<Option<String>> {
    let Some(asset) = asset else {
        return Ok(Some(String::new()));
    };
    let bytes = app.blobs().get(&file_key(app_id, &asset.hash)).await?;
    Ok(String::from_utf8(bytes.to_vec()).ok())
}
