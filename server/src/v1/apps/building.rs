//! A deploy on its way to being a version: unpacked, kept, switched to.

use std::collections::BTreeSet;

use loupe_hosted::app::{
    bundle::{Bundle, BundleError, Limits},
    faults,
    files::Manifest,
    headers::{self, Rules},
};
use loupe_wire::{SmokeTestResult, VersionRecord};

use super::{
    APPS, Hosted, PRODUCTION, asset_prefix,
    packing::{Local, Packed, blocking, file_key, pack},
    store::{self, Deploy, Version},
    versions,
};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{self, Claim},
};

/// Runs one deploy; safe to repeat.
///
/// # Errors
/// The bundle is at fault, or the database or the files fail.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let (app_id, deploy_id) = (jobs::text(claim, "app_id"), jobs::text(claim, "deploy_id"));
    let found = store::find_deploy(app.db(), &claim.org_id, app_id, deploy_id).await;
    let (status, queued_at, deploy) = match found {
        Ok(found) => found,
        // Removed with its app; a bundle that came later is nobody's.
        Err(error) if error.is_not_found() => return clean(app, &claim.org_id, app_id).await,
        Err(error) => return Err(error),
    };
    if status == "complete" {
        return Ok(());
    }
    let mut job = Job {
        app,
        org_id: &claim.org_id,
        app_id,
        deploy,
        queued_at,
        started: app.clock().micros(),
    };
    match job.build().await {
        Ok(()) => Ok(()),
        Err(error) if error.is_transient() => Err(error),
        Err(error) => job.fail(&error.message()).await,
    }
}

/// Ends a deploy that was given up.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let (app_id, deploy_id) = (jobs::text(claim, "app_id"), jobs::text(claim, "deploy_id"));
    let found = store::find_deploy(app.db(), &claim.org_id, app_id, deploy_id).await;
    let Ok((_, queued_at, deploy)) = found else {
        return Ok(());
    };
    let mut job = Job {
        app,
        org_id: &claim.org_id,
        app_id,
        deploy,
        queued_at,
        started: app.clock().micros(),
    };
    job.fail(reason).await
}

/// What a bundle came to.
#[derive(Debug, Default)]
struct Built {
    files: Manifest,
    headers: Rules,
    /// Hashes of the keys that are in the files.
    keys: BTreeSet<String>,
    /// What every visitor begins with.
    page: String,
}

/// One deploy being worked on.
struct Job<'a> {
    app: &'a App,
    org_id: &'a str,
    app_id: &'a str,
    deploy: Deploy,
    queued_at: i64,
    started: i64,
}

impl Job<'_> {
    async fn build(&mut self) -> Result<()> {
        self.tell("building", "building").await?;
        versions::wait_for_prune(self.app, self.app_id, &self.deploy.deploy_id).await?;
        self.app
            .blobs()
            .check_room(self.app.config().limits.free_disk_bytes)?;
        let built = match self.deploy.bundle.clone() {
            Some(key) => self.unpack(&key).await?,
            None => self.take_files().await?,
        };
        let files = &built.files;
        let size: u64 = files.values().map(|file| file.size).sum();
        let line = format!("unpacked {} files, {size} bytes", files.len());
        self.tell("building", &line).await?;
        let built = self.look_at(built).await?;
        self.activate(built).await
    }

    /// Tells what the page asks for and does not get. The version is served all the same: its owner may mean it.
    async fn look_at(&mut self, built: Built) -> Result<Built> {
        let started = self.app.clock().micros();
        let looking = blocking(move || Ok((faults(&built.page, &built.files), built)));
        let (errors, built) = looking.await?;
        let now = self.app.clock().micros();
        let lines = errors.iter().map(|error| (now, error.clone()));
        self.deploy.log.extend(lines);
        self.deploy.smoke_test = Some(SmokeTestResult {
            passed: errors.is_empty(),
            errors,
            duration_ms: (now - started) / 1000,
            tested_at: Some(clock::time(now).to_rfc3339()),
            ..Default::default()
        });
        Ok(built)
    }

    /// Keeps what is told of the deploy.
    async fn tell(&mut self, status: &'static str, line: &str) -> Result<()> {
        let now = self.app.clock().micros();
        self.deploy.log.push((now, line.to_owned()));
        let (org_id, app_id) = (self.org_id.to_owned(), self.app_id.to_owned());
        let deploy = self.deploy.clone();
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    store::update_deploy(tx, &org_id, &app_id, &deploy, status, now).await
                })
            })
            .await?;
        Ok(())
    }

    async fn fail(&mut self, reason: &str) -> Result<()> {
        self.deploy.error = Some(reason.to_owned());
        self.tell("failed", &format!("failed: {reason}")).await?;
        self.drop_bundle().await;
        Ok(())
    }

    async fn drop_bundle(&self) {
        if let Some(key) = &self.deploy.bundle
            && let Err(error) = self.app.blobs().delete(key).await
        {
            tracing::warn!(%error, "a bundle that was unpacked is still there");
        }
    }

    async fn take_files(&self) -> Result<Built> {
        has_page(self.deploy.source_files.keys().map(String::as_str))?;
        let headers = self.deploy.source_files.get(headers::FILE);
        let mut built = Built {
            headers: rules(headers.map_or("", String::as_str).as_bytes())?,
            ..Built::default()
        };
        for (path, text) in &self.deploy.source_files {
            let (path, bytes) = (path.clone(), text.clone().into_bytes());
            let packed = blocking(move || Ok(pack(path, bytes))).await?;
            self.keep(packed, &mut built).await?;
        }
        Ok(built)
    }

    async fn unpack(&self, key: &str) -> Result<Built> {
        let local = Local::fetch(self.app, key).await?;
        let path = local.0.clone();
        let bundle = blocking(move || {
            let file = std::fs::File::open(path).map_err(ApiError::internal)?;
            let mut bundle = Bundle::open(file, Limits::default()).map_err(refused)?;
            has_page(bundle.entries().iter().map(|entry| entry.path.as_str()))?;
            let mut files = bundle.entries().iter();
            // Before anything of the bundle is kept.
            let headers = match files.position(|entry| entry.path == headers::FILE) {
                Some(number) => rules(&bundle.read(number).map_err(refused)?)?,
                None => Rules::default(),
            };
            bundle.begin();
            Ok((bundle, headers))
        });
        let (mut bundle, headers) = bundle.await?;
        let mut built = Built {
            headers,
            ..Built::default()
        };
        for number in 0..bundle.entries().len() {
            let (back, packed) = blocking(move || {
                let bytes = bundle.read(number).map_err(refused)?;
                let path = bundle.entries()[number].path.clone();
                Ok((bundle, pack(path, bytes)))
            })
            .await?;
            bundle = back;
            self.keep(packed, &mut built).await?;
        }
        Ok(built)
    }

    /// Files are named by their content: what a version before had is there already, and never changes.
    async fn keep(&self, packed: Packed, built: &mut Built) -> Result<()> {
        if packed.path == "index.html" {
            built.page = String::from_utf8_lossy(&packed.bytes).into_owned();
        }
        let key = file_key(self.app_id, &packed.asset.hash);
        let blobs = self.app.blobs();
        for (ending, bytes) in [(".br", packed.br), (".gz", packed.gzip)] {
            let key = format!("{key}{ending}");
            if let Some(bytes) = bytes
                && blobs.head(&key).await?.is_none()
            {
                blobs.put(&key, bytes).await?;
            }
        }
        // The plain form comes last: where it is, the others are.
        if blobs.head(&key).await?.is_none() {
            blobs.put(&key, packed.bytes).await?;
        }
        built.files.insert(packed.path, packed.asset);
        built.keys.extend(packed.keys);
        Ok(())
    }

    /// Makes the version and switches to it, in one transaction.
    async fn activate(&mut self, built: Built) -> Result<()> {
        let now = self.app.clock().micros();
        let (org_id, app_id) = (self.org_id.to_owned(), self.app_id.to_owned());
        let (deploy, times) = (self.deploy.clone(), (self.queued_at, self.started, now));
        let done = self
            .app
            .db()
            .write(move |tx| {
                Box::pin(async move { switch(tx, (&org_id, &app_id), deploy, built, times).await })
            })
            .await;
        match done {
            Ok(deploy) => self.deploy = deploy,
            // Removed while it was built.
            Err(error) if error.is_not_found() => {
                return clean(self.app, self.org_id, self.app_id).await;
            }
            Err(error) => return Err(error),
        }
        self.app.hosting.forget();
        self.drop_bundle().await;
        // It is served by now, whatever comes of what is old.
        if let Err(error) = versions::prune(self.app, self.org_id, self.app_id).await {
            tracing::warn!(%error, app_id = self.app_id, "old versions of an app are still there");
        }
        Ok(())
    }
}

/// Removes files that a deploy kept for an app that is gone.
async fn clean(app: &App, org_id: &str, app_id: &str) -> Result<()> {
    match APPS.find(app.db(), org_id, app_id).await {
        // Only the deploy is gone.
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() && !app_id.is_empty() => {
            app.blobs().delete_all(&format!("apps/{app_id}")).await
        }
        Err(error) => Err(error),
    }
}

/// Keeps the version, and serves it unless a deploy that was asked for later was faster.
async fn switch(
    tx: &mut Tx,
    (org_id, app_id): (&str, &str),
    mut deploy: Deploy,
    built: Built,
    (queued_at, started, now): (i64, i64, i64),
) -> Result<Deploy> {
    let mut hosted = APPS.hold(tx, org_id, app_id).await?.data.0;
    let environment = deploy.environment.clone();
    let late = store::is_overtaken(tx, org_id, app_id, &environment, queued_at).await?;
    let version = new_version(&mut hosted, &mut deploy, built, started, now);
    let number = hosted.last_version;
    let line = if late {
        format!("version {number} is kept; a newer deploy is live in {environment} already")
    } else {
        versions::switch(&mut hosted, &environment, &version, now);
        format!("version {number} is live in {environment}")
    };
    deploy.log.push((now, line));
    store::insert_version(tx, org_id, app_id, &version, now).await?;
    let slug = hosted.slug.clone();
    APPS.update(tx, org_id, app_id, &slug, now, &hosted).await?;
    store::update_deploy(tx, org_id, app_id, &deploy, "complete", now).await?;
    Ok(deploy)
}

fn new_version(
    hosted: &mut Hosted,
    deploy: &mut Deploy,
    built: Built,
    started: i64,
    now: i64,
) -> Version {
    let number = hosted.last_version + 1;
    hosted.last_version = number;
    deploy.version = Some(number);
    let production = deploy.environment == PRODUCTION;
    if production && hosted.published.is_none() {
        hosted.published = Some(hosted.draft.clone());
    }
    let record = VersionRecord {
        version: Some(number),
        asset_prefix: Some(asset_prefix(&hosted.app_id, number)),
        deployed_by: Some(deploy.queued_by.clone()),
        deployed_at: Some(clock::time(now)),
        environment: deploy.environment.clone(),
        build_duration_ms: Some((now - started) / 1000),
        message: Some(deploy.message.clone()),
        source_files: deploy.source_files.clone().into_iter().collect(),
        git_commit_sha: deploy.git_commit_sha.clone(),
        git_commit_message: deploy.git_commit_message.clone(),
        git_author: deploy.git_author.clone(),
        ..Default::default()
    };
    // The version has them now.
    deploy.source_files.clear();
    Version {
        record,
        deploy_id: deploy.deploy_id.clone(),
        files: built.files,
        headers: built.headers,
        keys: built.keys,
        // What is only tried was seen with no page yet.
        page: hosted.published.clone().filter(|_| production),
    }
}

fn has_page<'p>(mut paths: impl Iterator<Item = &'p str>) -> Result<()> {
    if paths.any(|path| path == "index.html") {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "",
        "the bundle has no index.html: pack what the build made, not its sources",
    ))
}

/// What the app says of its files.
fn rules(text: &[u8]) -> Result<Rules> {
    Rules::parse(text).map_err(refused)
}

fn refused(error: BundleError) -> ApiError {
    ApiError::bad_request("bundle_refused", error.to_string())
}
