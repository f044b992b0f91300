//! Versions: what an app served, kept as it was, so that going back is a switch.

use std::{collections::BTreeSet, time::Duration};

use loupe_wire::{
    AppResponse, DownloadUrlResponse, Object, PromoteResponse, RestoreVersionRequestEnvironment,
    RestoreVersionResponse, Value, VersionDetailResponse, VersionListResponse, VersionRecord,
};
use serde_json::json;

use super::{
    APPS, Environment, Hosted, PRODUCTION, STAGING, asset_prefix, noted, packing,
    store::{self, Version},
};
use crate::{
    app::App,
    args,
    auth::Caller,
    clock,
    db::{Arg, Tx},
    error::{ApiError, Result},
    id, jobs,
    v1::retrievers::cast,
};

crate::sql! {
    const KEEP_PAGE = "UPDATE app_versions SET data = $4 WHERE org_id = $1 AND app_id = $2 AND version = $3";
}

/// Versions of an app that are kept.
const KEPT: i64 = 50;

/// Versions that going back remembers.
const REMEMBERED: usize = 50;

/// Versions that were taken back and are remembered.
const TAKEN_BACK: usize = 5;

/// Serves a version in an environment.
pub(super) fn switch(hosted: &mut Hosted, environment: &str, version: &Version, now: i64) {
    let number = version.record.version.unwrap_or_default();
    let held = hosted.environments.remove(environment).unwrap_or_default();
    let mut before = held.before;
    if held.version > 0 && held.version != number {
        before.push(held.version);
    }
    let forgotten = before.len().saturating_sub(REMEMBERED);
    before.drain(..forgotten);
    let served = Environment {
        version: number,
        deploy_id: version.deploy_id.clone(),
        before,
        keys: version.keys.clone(),
        since: now,
        taken_back: held.taken_back,
    };
    hosted.environments.insert(environment.to_owned(), served);
}

/// Shows visitors the page as it is edited: a new version with the files of the one before.
pub(super) async fn publish(
    tx: &mut Tx,
    org_id: &str,
    hosted: &mut Hosted,
    by: &str,
    message: &str,
    now: i64,
) -> Result<()> {
    let live = hosted.version();
    let before = if live > 0 {
        store::find_version_in(tx, org_id, &hosted.app_id, live).await?
    } else {
        Version::default()
    };
    let number = hosted.last_version + 1;
    hosted.last_version = number;
    hosted.published = Some(hosted.draft.clone());
    let record = VersionRecord {
        version: Some(number),
        asset_prefix: Some(asset_prefix(&hosted.app_id, number)),
        deployed_by: Some(by.to_owned()),
        deployed_at: Some(clock::time(now)),
        environment: PRODUCTION.into(),
        message: (!message.is_empty()).then(|| message.to_owned()),
        ..Default::default()
    };
    let version = Version {
        record,
        page: hosted.published.clone(),
        ..before
    };
    switch(hosted, PRODUCTION, &version, now);
    store::insert_version(tx, org_id, &hosted.app_id, &version, now).await
}

/// The newest records, without their files.
pub(super) async fn newest(app: &App, org_id: &str, app_id: &str) -> Result<Vec<VersionRecord>> {
    let versions = store::versions(app.db(), org_id, app_id, 10).await?;
    Ok(versions.into_iter().map(short).collect())
}

fn short(version: Version) -> VersionRecord {
    let mut record = version.record;
    record.source_files.clear();
    record
}

/// Every version that is kept, the newest first.
pub async fn list(app: &App, caller: &Caller, app_id: &str) -> Result<VersionListResponse> {
    let record = super::find(app, caller, app_id).await?;
    let versions = store::versions(app.db(), &caller.org_id, &record.id, 1000).await?;
    let told: Vec<Value> = versions
        .into_iter()
        .map(|version| {
            let mut told = json!(short(version.clone()));
            told["files"] = version.files.len().into();
            told["is_active"] = json!(active(&record, version.record.version));
            told
        })
        .collect();
    Ok(VersionListResponse {
        total: i64::try_from(told.len()).unwrap_or(i64::MAX),
        versions: told,
    })
}

/// In which environments a version is served.
fn active(hosted: &Hosted, version: Option<i64>) -> Object {
    [PRODUCTION, STAGING]
        .into_iter()
        .map(|name| {
            let served = hosted.environments.get(name).map(|one| one.version);
            (
                name.to_owned(),
                (served.is_some() && served == version).into(),
            )
        })
        .collect()
}

/// One version with its files.
pub async fn get(
    app: &App,
    caller: &Caller,
    app_id: &str,
    version: i64,
) -> Result<VersionDetailResponse> {
    let record = super::find(app, caller, app_id).await?;
    let found = store::find_version(app.db(), &caller.org_id, &record.id, version).await?;
    let mut told = json!(found.record);
    told["asset_manifest"] = json!(found.files);
    told["is_active"] = json!(active(&record, found.record.version));
    cast(&told)
}

/// The version that going back would serve; none where there is no way back.
pub(super) async fn previous(app: &App, org_id: &str, hosted: &Hosted) -> Result<Option<i64>> {
    let Some(held) = hosted.environments.get(PRODUCTION) else {
        return Ok(None);
    };
    let earlier = held.before.iter().rev().copied();
    let mut earlier = earlier.filter(|number| *number != held.version).peekable();
    if earlier.peek().is_none() {
        return Ok(None);
    }
    // Some may be too old, and gone.
    let kept = store::version_numbers(app.db(), org_id, &hosted.app_id).await?;
    Ok(earlier.find(|number| kept.contains(number)))
}

/// Goes back to what production served before.
pub async fn rollback(app: &App, caller: &Caller, app_id: &str) -> Result<AppResponse> {
    let record = super::find(app, caller, app_id).await?;
    serve(app, caller, &record.id, PRODUCTION, Target::Before).await?;
    super::get(app, caller, &record.id).await
}

/// Which version to serve.
#[derive(Debug, Clone, Copy)]
enum Target {
    Version(i64),
    /// The one before, which is then forgotten as such: going back twice goes back two.
    Before,
    /// What staging serves.
    Staging,
}

impl Target {
    /// The version itself, of an app that is held.
    async fn find(
        self,
        tx: &mut Tx,
        org_id: &str,
        hosted: &mut Hosted,
        environment: &str,
    ) -> Result<Version> {
        let number = match self {
            Self::Version(number) => number,
            Self::Before => return before(tx, org_id, hosted, environment).await,
            Self::Staging => {
                let staging = hosted.environments.get(STAGING);
                let message = "staging serves nothing that could be promoted";
                staging
                    .ok_or_else(|| ApiError::conflict("nothing_staged", message))?
                    .version
            }
        };
        store::find_version_in(tx, org_id, &hosted.app_id, number).await
    }
}

/// What an environment served before and still could; it is forgotten as such.
async fn before(
    tx: &mut Tx,
    org_id: &str,
    hosted: &mut Hosted,
    environment: &str,
) -> Result<Version> {
    while let Some(held) = hosted.environments.get_mut(environment)
        && let Some(number) = held.before.pop()
    {
        if number == held.version {
            continue;
        }
        match store::find_version_in(tx, org_id, &hosted.app_id, number).await {
            // Too old, and gone.
            Err(error) if error.is_not_found() => {}
            found => return found,
        }
    }
    Err(ApiError::conflict(
        "nothing_to_roll_back",
        "production has served nothing else before",
    ))
}

/// Shows visitors the page that goes with a version of production, and notes with the version that they saw it. Going back, or to
/// a version that was served before, brings its page along: publishing makes a version too, and is taken back like a deploy. What
/// is promoted was tried for its files: the page stays what was published last. Where nothing was, it is the page as it is edited.
async fn show(
    tx: &mut Tx,
    org_id: &str,
    hosted: &mut Hosted,
    mut version: Version,
    target: Target,
) -> Result<()> {
    let own = match target {
        Target::Staging => None,
        Target::Version(_) | Target::Before => version.page.clone(),
    };
    let page = own
        .or_else(|| hosted.published.clone())
        .unwrap_or_else(|| hosted.draft.clone());
    let page = Some(page);
    hosted.published.clone_from(&page);
    if version.page == page {
        return Ok(());
    }
    version.page = page;
    let data = Arg::json(&version);
    let args = args![org_id, &hosted.app_id, number(&version), data];
    tx.run(KEEP_PAGE, args).await?;
    Ok(())
}

/// What was switched away from is no step to go back to; pages of it are open still.
fn take_back(held: &mut Environment, now: i64) {
    let from = held.before.pop().map(|version| (version, now));
    held.taken_back.extend(from);
    let forgotten = held.taken_back.len().saturating_sub(TAKEN_BACK);
    held.taken_back.drain(..forgotten);
}

/// Switches an environment, and answers what is served then.
async fn serve(
    app: &App,
    caller: &Caller,
    app_id: &str,
    environment: &'static str,
    target: Target,
) -> Result<Environment> {
    let (by, id, now) = (caller.clone(), app_id.to_owned(), app.clock().micros());
    let served = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let org_id = &by.org_id;
                let mut hosted = APPS.hold(tx, org_id, &id).await?.data.0;
                let version = target.find(tx, org_id, &mut hosted, environment).await?;
                switch(&mut hosted, environment, &version, now);
                if let (Target::Before, Some(held)) =
                    (target, hosted.environments.get_mut(environment))
                {
                    take_back(held, now);
                }
                if environment == PRODUCTION {
                    show(tx, org_id, &mut hosted, version, target).await?;
                }
                let served = hosted.environments.get(environment).cloned();
                super::save(tx, org_id, &mut hosted, now).await?;
                let served = served.unwrap_or_default();
                let about = json!({"environment": environment, "version": served.version});
                noted::app(tx, &by, (&hosted.app_id, "app_served"), about, now).await?;
                Ok(served)
            })
        })
        .await?;
    app.hosting.forget();
    Ok(served)
}

/// Serves in production what staging serves.
pub async fn promote(app: &App, caller: &Caller, app_id: &str) -> Result<PromoteResponse> {
    let record = super::find(app, caller, app_id).await?;
    let served = serve(app, caller, &record.id, PRODUCTION, Target::Staging).await?;
    Ok(PromoteResponse {
        asset_prefix: asset_prefix(&record.id, served.version),
        app_id: record.id,
        version: Some(served.version),
        deploy_id: served.deploy_id,
        environment: PRODUCTION.into(),
    })
}

/// Serves a version again.
pub async fn restore(
    app: &App,
    caller: &Caller,
    app_id: &str,
    version: i64,
    environment: RestoreVersionRequestEnvironment,
) -> Result<RestoreVersionResponse> {
    let record = super::find(app, caller, app_id).await?;
    let environment = match environment {
        RestoreVersionRequestEnvironment::Production => PRODUCTION,
        RestoreVersionRequestEnvironment::Staging => STAGING,
    };
    let target = Target::Version(version);
    let served = serve(app, caller, &record.id, environment, target).await?;
    Ok(RestoreVersionResponse {
        asset_prefix: asset_prefix(&record.id, served.version),
        app_id: record.id,
        version: served.version,
        deploy_id: served.deploy_id,
        environment: environment.into(),
    })
}

/// A version as one archive.
pub async fn download(
    app: &App,
    caller: &Caller,
    app_id: &str,
    version: i64,
) -> Result<DownloadUrlResponse> {
    const TTL: u64 = 3600;
    let record = super::find(app, caller, app_id).await?;
    let found = store::find_version(app.db(), &caller.org_id, &record.id, version).await?;
    let key = archive_key(&record.id, version);
    if app.blobs().head(&key).await?.is_none() {
        packing::archive(app, &record.id, &found.files, &key).await?;
    }
    let name = format!("{}-v{version}.zip", record.slug);
    Ok(DownloadUrlResponse {
        download_url: app.blobs().signed_get_url(&key, Some(&name), TTL),
        version,
        asset_prefix: asset_prefix(&record.id, version),
        expires_in: i64::try_from(TTL).unwrap_or(3600),
    })
}

/// The lease of whoever removes files of an app.
fn pruning(app_id: &str) -> String {
    format!("files of {app_id}")
}

/// Seconds that it is held without a sign.
const PRUNING: u64 = 60;

/// Waits while files of the app are removed: a deploy counts on those that it finds. What begins to be removed after this
/// finds the deploy that waits or runs, and leaves everything.
///
/// # Errors
/// The database fails.
pub(super) async fn wait_for_prune(app: &App, app_id: &str, deploy_id: &str) -> Result<()> {
    let name = pruning(app_id);
    while !jobs::hold_lease(app, &name, deploy_id, 1).await? {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    jobs::drop_lease(app, &name, deploy_id).await
}

/// Removes versions that are too old and served nowhere, with the files that no other version has.
pub(super) async fn prune(app: &App, org_id: &str, app_id: &str) -> Result<()> {
    let all = store::versions(app.db(), org_id, app_id, KEPT + 200).await?;
    let old = all.get(usize::try_from(KEPT).unwrap_or(50)..);
    let old = old.unwrap_or_default();
    let (name, holder) = (pruning(app_id), id::new("prune_"));
    let held = app.clock().micros();
    if old.is_empty() || !jobs::hold_lease(app, &name, &holder, PRUNING).await? {
        return Ok(());
    }
    let numbers = old.iter().map(number).collect();
    let done = match forget(app, org_id, app_id, numbers).await {
        Ok(gone) => {
            let gone = old.iter().filter(|one| gone.contains(&number(one)));
            let gone: Vec<&Version> = gone.collect();
            remove_files(app, (org_id, app_id), &gone, (&name, &holder), held).await
        }
        Err(error) => Err(error),
    };
    jobs::drop_lease(app, &name, &holder).await?;
    done
}

fn number(version: &Version) -> i64 {
    version.record.version.unwrap_or_default()
}

/// Removes those of the versions that nothing serves; answers which.
async fn forget(
    app: &App,
    org_id: &str,
    app_id: &str,
    mut numbers: BTreeSet<i64>,
) -> Result<BTreeSet<i64>> {
    let (org_id, app_id) = (org_id.to_owned(), app_id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Nobody switches to one of them meanwhile.
                let hosted = APPS.hold(tx, &org_id, &app_id).await?;
                // A deploy under way counts on the files that it found.
                if store::waiting(tx, &org_id, &app_id).await? > 0 {
                    return Ok(BTreeSet::new());
                }
                for served in hosted.environments.values() {
                    numbers.remove(&served.version);
                }
                for number in &numbers {
                    store::delete_version(tx, &org_id, &app_id, *number).await?;
                }
                Ok(numbers)
            })
        })
        .await
}

/// Removes the archives of versions that are gone, and their files that no other version has.
async fn remove_files(
    app: &App,
    (org_id, app_id): (&str, &str),
    gone: &[&Version],
    (lease, holder): (&str, &str),
    mut held: i64,
) -> Result<()> {
    let mut hashes = BTreeSet::new();
    for version in gone {
        let archive = archive_key(app_id, number(version));
        app.blobs().delete(&archive).await?;
        hashes.extend(version.files.values().map(|file| file.hash.as_str()));
    }
    // What was published since has the files of a version that stays.
    for version in store::versions(app.db(), org_id, app_id, i64::MAX).await? {
        for file in version.files.values() {
            hashes.remove(file.hash.as_str());
        }
    }
    for hash in hashes {
        let now = app.clock().micros();
        // A lease that ended is not taken again: whoever waited may have begun. What is left is only space.
        if now - held > 50_000_000 {
            return Ok(());
        }
        if now - held > 10_000_000 {
            if !jobs::hold_lease(app, lease, holder, PRUNING).await? {
                return Ok(());
            }
            held = now;
        }
        let key = packing::file_key(app_id, hash);
        for ending in ["", ".br", ".gz"] {
            app.blobs().delete(&format!("{key}{ending}")).await?;
        }
    }
    Ok(())
}

fn archive_key(app_id: &str, version: i64) -> String {
    format!("apps/{app_id}/archives/v{version}.zip")
}
