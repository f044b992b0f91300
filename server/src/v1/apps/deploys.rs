//! Deploys: a bundle goes up by a signed address, is unpacked by a worker, and becomes a version that is switched to at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{StreamExt, stream};
use loupe_hosted::app::{
    bundle::{Bundle, BundleError, LARGEST_ARCHIVE, Limits, check_names, check_path},
    files::Manifest,
};
use loupe_wire::{
    DeployRequest, DeployRequestEnvironment, DeployResponse, DeployResponseStatus,
    DeployStatusResponse, TaskType, UploadUrlRequest, UploadUrlResponse, Value,
    VerifyUploadResponse, VersionRecord,
};
use serde_json::json;

use super::{
    APPS, Hosted, PRODUCTION, STAGING, asset_prefix,
    packing::{Local, Packed, blocking, file_key, pack},
    store::{self, Deploy, Version},
    versions,
};
use crate::{
    app::App,
    auth::Caller,
    blob, clock,
    error::{ApiError, Result, Violation},
    id,
    jobs::{self, Claim},
    v1::{
        retrievers::cast,
        tasks::{self, name_of},
    },
};

/// The queue's word for a deploy.
pub const DEPLOY: &str = "app_deploy";

/// Seconds that an address takes a bundle.
const TTL: u64 = 3600;

/// Deploys of one app that wait or run.
const MOST: i64 = 5;

/// How long finished deploys are kept.
const KEPT: i64 = 90 * 86_400_000_000;

/// Bytes of files that come in the request itself.
const INLINE: usize = 5 << 20;

/// A place for a bundle, and the address that takes it.
pub async fn upload_url(
    app: &App,
    caller: &Caller,
    app_id: &str,
    request: UploadUrlRequest,
) -> Result<UploadUrlResponse> {
    let record = super::find(app, caller, app_id).await?;
    let name = blob::safe_name(&request.filename);
    let key = format!("{}{}/{name}", bundles(&record.id), id::random_base62(20));
    Ok(UploadUrlResponse {
        upload_url: app.blobs().signed_put_url(&key, TTL),
        bundle_s3_key: key,
        expires_in: i64::try_from(TTL).unwrap_or(3600),
    })
}

fn bundles(app_id: &str) -> String {
    format!("apps/{app_id}/bundles/")
}

/// Whether a bundle has arrived. One of another app has not.
pub async fn verify(
    app: &App,
    caller: &Caller,
    app_id: &str,
    key: String,
) -> Result<VerifyUploadResponse> {
    let record = super::find(app, caller, app_id).await?;
    let found = if key.starts_with(&bundles(&record.id)) {
        app.blobs().head(&key).await.unwrap_or(None)
    } else {
        None
    };
    Ok(VerifyUploadResponse {
        bundle_s3_key: key,
        exists: found.is_some(),
        size_bytes: found
            .as_ref()
            .map(|found| i64::try_from(found.size).unwrap_or(i64::MAX)),
        etag: found.map(|found| found.etag),
        last_modified: None,
    })
}

/// Puts a deploy into the queue.
pub async fn deploy(
    app: &App,
    caller: &Caller,
    app_id: &str,
    request: DeployRequest,
) -> Result<DeployResponse> {
    let record = super::find(app, caller, app_id).await?;
    let environment = match request.environment {
        DeployRequestEnvironment::Production => PRODUCTION,
        DeployRequestEnvironment::Staging => STAGING,
    };
    let source_files: BTreeMap<String, String> = request
        .source_files
        .unwrap_or_default()
        .into_iter()
        .collect();
    check_source(
        app,
        &record.id,
        request.bundle_s3_key.as_deref(),
        &source_files,
    )
    .await?;
    let deploy = Deploy {
        deploy_id: id::new("dep_"),
        environment: environment.into(),
        source: name_of(request.source),
        message: request.message,
        bundle: request.bundle_s3_key,
        source_files,
        queued_by: caller.actor().to_owned(),
        git_commit_sha: request.git_commit_sha,
        git_commit_message: request.git_commit_message,
        git_author: request.git_author,
        log: vec![(app.clock().micros(), "queued".into())],
        ..Default::default()
    };
    let answer = DeployResponse {
        app_id: record.id.clone(),
        deploy_id: deploy.deploy_id.clone(),
        status: DeployResponseStatus::Queued,
        environment: environment.into(),
        message: Some(deploy.message.clone()),
    };
    let (org_id, id, now) = (caller.org_id.clone(), record.id, app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { enqueue(tx, &org_id, &id, &deploy, now).await }))
        .await?;
    app.work.notify_one();
    Ok(answer)
}

async fn enqueue(
    tx: &mut crate::db::Tx,
    org_id: &str,
    app_id: &str,
    deploy: &Deploy,
    now: i64,
) -> Result<()> {
    if store::waiting(tx, org_id, app_id).await? >= MOST {
        let message = format!("{MOST} deploys of this app wait already: let them end first");
        return Err(ApiError::conflict("deploys_waiting", message).with("limit", MOST));
    }
    store::forget_deploys(tx, org_id, app_id, now - KEPT).await?;
    store::insert_deploy(tx, org_id, app_id, deploy, now).await?;
    let work = json!({ "app_id": app_id, "deploy_id": deploy.deploy_id });
    let mut task = tasks::NewTask::work(org_id, "", TaskType::ApiManifestApply, DEPLOY, work);
    // The deploy is what callers see of it.
    task.parent_id = Some(deploy.deploy_id.clone());
    task.namespace_id = None;
    tasks::insert(tx, task, now).await?;
    Ok(())
}

/// A bundle of this app, or files in the request: one of them.
async fn check_source(
    app: &App,
    app_id: &str,
    bundle: Option<&str>,
    files: &BTreeMap<String, String>,
) -> Result<()> {
    let fault = |path: &[&str], message: &str| {
        Err(Violation::body(path, "value_error", message, Value::Null).into())
    };
    match (bundle, files.is_empty()) {
        (Some(_), false) => fault(&["source_files"], "send a bundle or files, not both"),
        (None, true) => fault(
            &["bundle_s3_key"],
            "name a bundle: ask for an upload address first, or send source_files",
        ),
        (Some(key), true) => {
            let known = key.starts_with(&bundles(app_id));
            let found = if known {
                app.blobs().head(key).await?
            } else {
                None
            };
            let found = found.ok_or_else(|| ApiError::not_found("bundle", key))?;
            if found.size > LARGEST_ARCHIVE {
                let message = format!("the bundle is larger than {LARGEST_ARCHIVE} bytes");
                return Err(ApiError::payload_too_large("", message));
            }
            Ok(())
        }
        (None, false) => {
            for path in files.keys() {
                if let Err(why) = check_path(path) {
                    return fault(&["source_files", path], why);
                }
            }
            if let Err(why) = check_names(files.keys().map(String::as_str)) {
                return fault(&["source_files"], &why.to_string());
            }
            if files.len() > 500 || files.values().map(String::len).sum::<usize>() > INLINE {
                let message = "more than 500 files or 5 MiB: send them as a bundle";
                return fault(&["source_files"], message);
            }
            Ok(())
        }
    }
}

/// How a deploy stands.
pub async fn status(
    app: &App,
    caller: &Caller,
    app_id: &str,
    deploy_id: &str,
) -> Result<DeployStatusResponse> {
    let record = super::find(app, caller, app_id).await?;
    let (status, at, deploy) =
        store::find_deploy(app.db(), &caller.org_id, &record.id, deploy_id).await?;
    cast(&json!({
        "deploy_id": deploy.deploy_id, "status": status, "environment": deploy.environment, "source": deploy.source,
        "bundle_s3_key": deploy.bundle, "message": deploy.message, "queued_at": clock::time(at).to_rfc3339(),
        "queued_by": deploy.queued_by, "error": deploy.error,
    }))
}

/// What is told of a deploy, as it is told: each line, and its end.
pub async fn stream(
    app: App,
    caller: Caller,
    app_id: String,
    deploy_id: String,
) -> Result<Response> {
    const ROUND: Duration = Duration::from_millis(300);
    let record = super::find(&app, &caller, &app_id).await?;
    let place = (caller.org_id.clone(), record.id);
    store::find_deploy(app.db(), &place.0, &place.1, &deploy_id).await?;
    let steps = stream::unfold(Some(0_usize), move |told| {
        let (app, place, deploy_id) = (app.clone(), place.clone(), deploy_id.clone());
        async move {
            let mut told = told?;
            loop {
                let found = store::find_deploy(app.db(), &place.0, &place.1, &deploy_id).await;
                let Ok((status, _, deploy)) = found else {
                    return None;
                };
                let mut events: Vec<_> = deploy.log.iter().skip(told).map(line).collect();
                told = told.max(deploy.log.len());
                let over = matches!(status.as_str(), "complete" | "failed");
                if over {
                    let end = json!({ "status": status, "error": deploy.error, "version": deploy.version });
                    events.push(event("end", &end));
                }
                if !events.is_empty() {
                    return Some((stream::iter(events), (!over).then_some(told)));
                }
                tokio::select! {
                    () = tokio::time::sleep(ROUND) => {}
                    () = app.leaving.cancelled() => return None,
                }
            }
        }
    });
    Ok(Sse::new(steps.flatten())
        .keep_alive(KeepAlive::default())
        .into_response())
}

type Told = std::result::Result<Event, std::convert::Infallible>;

fn line((at, line): &(i64, String)) -> Told {
    event(
        "log",
        &json!({ "timestamp": clock::time(*at), "message": line }),
    )
}

fn event(name: &str, data: &Value) -> Told {
    Ok(Event::default().event(name).data(data.to_string()))
}

/// Runs one deploy; safe to repeat.
///
/// # Errors
/// The bundle is at fault, or the database or the files fail.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let (app_id, deploy_id) = (jobs::text(claim, "app_id"), jobs::text(claim, "deploy_id"));
    let found = store::find_deploy(app.db(), &claim.org_id, app_id, deploy_id).await;
    let (status, _, deploy) = match found {
        Ok(found) => found,
        // Removed with its app.
        Err(error) if error.is_not_found() => return Ok(()),
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
    let Ok((_, _, deploy)) = found else {
        return Ok(());
    };
    let mut job = Job {
        app,
        org_id: &claim.org_id,
        app_id,
        deploy,
        started: app.clock().micros(),
    };
    job.fail(reason).await
}

/// What a bundle came to.
#[derive(Debug, Default)]
struct Built {
    files: Manifest,
    /// Hashes of the keys that are in the files.
    keys: BTreeSet<String>,
}

/// One deploy being worked on.
struct Job<'a> {
    app: &'a App,
    org_id: &'a str,
    app_id: &'a str,
    deploy: Deploy,
    started: i64,
}

impl Job<'_> {
    async fn build(&mut self) -> Result<()> {
        self.tell("building", "building").await?;
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
        self.activate(built).await
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
        let mut built = Built::default();
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
            Bundle::open(file, Limits::default()).map_err(refused)
        });
        let mut bundle = bundle.await?;
        has_page(bundle.entries().iter().map(|entry| entry.path.as_str()))?;
        let mut built = Built::default();
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
        let (deploy, started) = (self.deploy.clone(), self.started);
        let done = self
            .app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let mut hosted = APPS.find_in(tx, &org_id, &app_id).await?.data.0;
                    let mut deploy = deploy;
                    let version = new_version(&mut hosted, &mut deploy, built, started, now);
                    store::insert_version(tx, &org_id, &app_id, &version, now).await?;
                    let slug = hosted.slug.clone();
                    APPS.update(tx, &org_id, &app_id, &slug, now, &hosted)
                        .await?;
                    store::update_deploy(tx, &org_id, &app_id, &deploy, "complete", now).await?;
                    Ok(deploy)
                })
            })
            .await;
        match done {
            Ok(deploy) => self.deploy = deploy,
            // Removed while it was built.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
        self.app.hosting.forget();
        self.drop_bundle().await;
        versions::prune(self.app, self.org_id, self.app_id).await
    }
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
    deploy.log.push((
        now,
        format!("version {number} is live in {}", deploy.environment),
    ));
    if deploy.environment == PRODUCTION && hosted.published.is_none() {
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
    let version = Version {
        record,
        deploy_id: deploy.deploy_id.clone(),
        files: built.files,
        keys: built.keys,
        page: hosted.published.clone(),
    };
    versions::switch(hosted, &deploy.environment, &version);
    version
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

fn refused(error: BundleError) -> ApiError {
    ApiError::bad_request("bundle_refused", error.to_string())
}
