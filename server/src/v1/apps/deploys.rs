//! Deploys: a bundle goes up by a signed address, is unpacked by a worker, and becomes a version that is switched to at once.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{StreamExt, stream};
use loupe_hosted::app::bundle::{LARGEST_ARCHIVE, check_names, check_path};
use loupe_wire::{
    DeployRequest, DeployRequestEnvironment, DeployResponse, DeployResponseStatus,
    DeployStatusResponse, SmokeTestResult, TaskType, UploadUrlRequest, UploadUrlResponse, Value,
    VerifyUploadResponse,
};
use serde_json::json;

use super::{
    PRODUCTION, STAGING, noted,
    store::{self, Deploy},
};
use crate::{
    app::App,
    auth::Caller,
    blob, clock,
    error::{ApiError, Result, Violation},
    hosting, id,
    v1::{
        retrievers::cast,
        tasks::{self, name_of},
    },
};

/// The queue's word for a deploy.
pub const DEPLOY: &str = "app_deploy";

/// Seconds that an address takes a bundle.
const TTL: u64 = 3600;

/// How long a bundle waits for its deploy, in microseconds: longer than its address takes anything.
const ABANDONED: i64 = 2 * 3600 * 1_000_000;

/// Abandoned bundles that are removed in one round.
const ROUND: i64 = 100;

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
    let (org_id, app_id, place) = (caller.org_id.clone(), record.id, key.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::insert_bundle(tx, (&org_id, &app_id), &place, now).await })
        })
        .await?;
    Ok(UploadUrlResponse {
        upload_url: app.blobs().signed_put_url(&key, TTL),
        bundle_s3_key: key,
        expires_in: i64::try_from(TTL).unwrap_or(3600),
    })
}

/// Removes bundles that came and that nobody deployed.
///
/// # Errors
/// The database or the files fail; what was removed stays removed.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - ABANDONED;
    for (org_id, place) in store::old_bundles(app.db(), before, ROUND).await? {
        let named = place.clone();
        let taken = app.db().write(move |tx| {
            Box::pin(async move { store::take_bundle(tx, &org_id, &named).await })
        });
        // One that is deployed at last is its deploy's.
        if taken.await? {
            app.blobs().delete(&place).await?;
        }
    }
    // Nothing is kept in clear any more: one look at all of them is enough.
    if !app.hosting.has_cleared.load(Ordering::Relaxed) {
        super::forget_clear_keys(app).await?;
        app.hosting.has_cleared.store(true, Ordering::Relaxed);
    }
    Ok(())
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
        last_modified: found
            .as_ref()
            .and_then(|found| found.last_modified)
            .map(|at| at.to_rfc3339()),
        etag: found.map(|found| found.etag),
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
    let (by, id, now) = (caller.clone(), record.id, app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                enqueue(tx, &by.org_id, &id, &deploy, now).await?;
                let about =
                    json!({"deploy_id": deploy.deploy_id, "environment": deploy.environment});
                noted::app(tx, &by, (&id, "app_deployed"), about, now).await
            })
        })
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
    // The deploy removes it from now on.
    if let Some(place) = &deploy.bundle {
        store::take_bundle(tx, org_id, place).await?;
    }
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
    let smoke_test = deploy.smoke_test.zip(deploy.version);
    let smoke_test = smoke_test.map(|(test, version)| SmokeTestResult {
        url: hosting::url(app, &format!("{}--v{version}", record.slug)),
        ..test
    });
    cast(&json!({
        "deploy_id": deploy.deploy_id, "status": status, "environment": deploy.environment, "source": deploy.source,
        "bundle_s3_key": deploy.bundle, "message": deploy.message, "queued_at": clock::time(at).to_rfc3339(),
        "queued_by": deploy.queued_by, "error": deploy.error, "smoke_test": smoke_test,
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
                    let end = json!({ "status": status, "error": deploy.error, "version": deploy.version, "environment": deploy.environment });
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
