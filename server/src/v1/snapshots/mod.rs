//! Snapshots: what a namespace holds at a moment, as files beside its others. A snapshot can be downloaded, verified, and
//! restored: into a new namespace, or in place.

mod acting;
mod capture;
mod collected;
mod decided;
mod renewing;
mod restore;
mod returning;
mod routes;
mod rows;
mod streams;

use loupe_wire::{
    AuditAction, CreateSnapshotRequest, CreateSnapshotResponse, GenericDeleteResponse,
    ListSnapshotsRequest, ListSnapshotsResponse, NamespaceModel, NamespaceOperation, ResourceType,
    SnapshotDetailResponse, SnapshotDownload, SnapshotDownloadArtifact, SnapshotManifest,
    SnapshotModel, SnapshotStatus, SnapshotType, SnapshotVerifyIssue, SnapshotVerifyResponse,
    TaskType, Value,
};
use serde_json::json;

pub use capture::CAPTURE;
pub use restore::RESTORE;
pub use routes::router;

use super::{
    audit::{self, Change},
    collections::COLLECTIONS,
    namespaces::NAMESPACES,
    retrievers::cast,
    tasks::{self, NewTask},
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Record,
    error::{ApiError, Result, Violation},
    id,
    jobs::{Claim, text},
};

crate::table!(pub(super) static SNAPSHOTS: SnapshotModel = "snapshots", "snapshot");

/// Snapshots of one namespace.
const MOST: i64 = 100;

/// The file of annotations.
const ANNOTATIONS: &str = "annotations.ndjson";

/// Seconds that addresses of a download live.
const DOWNLOAD: u64 = 3600;

/// The folder of a snapshot's files. It lies with the files of the namespace, and goes with them.
fn prefix(namespace_id: &str, snapshot_id: &str) -> String {
    format!("{namespace_id}/snapshots/{snapshot_id}")
}

/// The file that says who is in which part of a cluster.
fn members_path(cluster_id: &str) -> String {
    format!("clusters/{cluster_id}.json")
}

async fn namespace(app: &App, caller: &Caller, identifier: &str) -> Result<Record<NamespaceModel>> {
    let record = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, &record.id, operation)?;
    Ok(record)
}

async fn find(
    app: &App,
    caller: &Caller,
    identifier: &str,
    snapshot_id: &str,
) -> Result<SnapshotModel> {
    let namespace = namespace(app, caller, identifier).await?;
    let record = SNAPSHOTS.find(app.db(), &namespace.id, snapshot_id).await?;
    Ok(record.data.0)
}

/// Leaves the task that takes it.
async fn create(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: CreateSnapshotRequest,
) -> Result<CreateSnapshotResponse> {
    let namespace = namespace(app, caller, identifier).await?;
    if request.import_from.is_some() {
        let msg = "this server takes its own snapshots only";
        return Err(Violation::body(&["import_from"], "not_enabled", msg, Value::Null).into());
    }
    for collection in COLLECTIONS.all(app.db(), &namespace.id).await? {
        if let Err(error) = capture::check_settled(&collection) {
            let message = format!("{}: wait for the task", error.message());
            return Err(ApiError::conflict("lifecycle_transition_running", message));
        }
    }
    let (snapshot_id, now) = (id::new("snap_"), app.clock().micros());
    let mut snapshot = SnapshotModel {
        snapshot_id: Some(snapshot_id.clone()),
        namespace_id: namespace.id.clone(),
        namespace_name: namespace.name.clone(),
        internal_id: caller.org_id.clone(),
        snapshot_type: SnapshotType::Manual,
        status: Some(SnapshotStatus::Pending),
        created_at: Some(clock::time(now)),
        dispatch_at: Some(clock::time(now)),
        s3_prefix: prefix(&namespace.id, &snapshot_id),
        include_vectors: request.include_vectors,
        s3_objects_copied: request.copy_s3_objects,
        ..SnapshotModel::default()
    };
    let (caller, id) = (caller.clone(), snapshot_id.clone());
    let task_id = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                snapshot.task_id = Some(queue(tx, &caller, &namespace, &id, now).await?);
                SNAPSHOTS
                    .insert(tx, &namespace.id, &id, &id, now, &snapshot)
                    .await?;
                let changes = json!({ "snapshot_created": id });
                record_change(tx, &caller, &namespace.id, changes, now).await?;
                Ok(snapshot.task_id.unwrap_or_default())
            })
        })
        .await?;
    app.work.notify_one();
    Ok(CreateSnapshotResponse {
        task_id,
        snapshot_id,
        message: "the snapshot is being taken: its task tells when it is complete".into(),
    })
}

/// Leaves the task of one snapshot more, where the namespace has room for it; answers its id.
async fn queue(
    tx: &mut crate::db::Tx,
    caller: &Caller,
    namespace: &Record<NamespaceModel>,
    snapshot_id: &str,
    now: i64,
) -> Result<String> {
    if SNAPSHOTS.count_in(tx, &namespace.id).await? >= MOST {
        let message = format!("a namespace has at most {MOST} snapshots");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    let task_type = TaskType::ApiNamespacesSnapshotCreate;
    let work = json!({ "snapshot_id": snapshot_id });
    let mut task = NewTask::work(&caller.org_id, &namespace.id, task_type, CAPTURE, work);
    task.inputs = vec![snapshot_id.into()];
    task.description = format!("snapshot of {}", namespace.name);
    Ok(tasks::insert(tx, task, now).await?.task_id)
}

async fn record_change(
    tx: &mut crate::db::Tx,
    caller: &Caller,
    namespace_id: &str,
    changes: Value,
    now: i64,
) -> Result<()> {
    let change = Change {
        action: AuditAction::NamespaceUpdated,
        resource: (ResourceType::Namespace, namespace_id),
        changes,
    };
    audit::record(tx, caller, change, now).await
}

/// Newest first.
async fn list(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: ListSnapshotsRequest,
) -> Result<ListSnapshotsResponse> {
    let namespace = namespace(app, caller, identifier).await?;
    let records = SNAPSHOTS.all(app.db(), &namespace.id).await?;
    let number = |number: i64| usize::try_from(number).unwrap_or(0);
    Ok(ListSnapshotsResponse {
        total_count: i64::try_from(records.len()).unwrap_or(i64::MAX),
        results: records
            .into_iter()
            .skip(number(request.skip))
            .take(number(request.limit))
            .map(|record| record.data.0)
            .collect(),
        warnings: Vec::new(),
    })
}

/// With addresses of its files, if they are asked for.
async fn get(
    app: &App,
    caller: &Caller,
    identifier: &str,
    snapshot_id: &str,
    download: bool,
) -> Result<SnapshotDetailResponse> {
    let snapshot = find(app, caller, identifier, snapshot_id).await?;
    let mut detail: SnapshotDetailResponse = cast(&snapshot)?;
    if download {
        let manifest = complete(&snapshot)?;
        let digests = manifest.frontier.clone().unwrap_or_default().digests;
        let artifact = |(path, digest): (String, loupe_wire::ArtifactDigest)| {
            let key = format!("{}/{path}", snapshot.s3_prefix);
            SnapshotDownloadArtifact {
                url: app.blobs().signed_get_url(&key, None, DOWNLOAD),
                path,
                sha256: digest.sha256,
                size: digest.size,
            }
        };
        let seconds = chrono::Duration::seconds(i64::try_from(DOWNLOAD).unwrap_or(0));
        detail.download = Some(SnapshotDownload {
            expires_at: app.clock().now() + seconds,
            artifacts: digests.into_iter().map(artifact).collect(),
        });
    }
    Ok(detail)
}

/// The manifest of a snapshot that is whole.
fn complete(snapshot: &SnapshotModel) -> Result<&SnapshotManifest> {
    match (&snapshot.manifest, snapshot.status) {
        (Some(manifest), Some(SnapshotStatus::Completed)) => Ok(manifest),
        (_, status) => {
            let message = "the snapshot is not complete";
            Err(ApiError::conflict("", message)
                .with("status", tasks::name_of(status.unwrap_or_default())))
        }
    }
}

/// Removes it with its files.
async fn delete(
    app: &App,
    caller: &Caller,
    identifier: &str,
    snapshot_id: &str,
) -> Result<GenericDeleteResponse> {
    let snapshot = find(app, caller, identifier, snapshot_id).await?;
    let (caller, now) = (caller.clone(), app.clock().micros());
    let files = snapshot.s3_prefix.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let (owner, id) = (
                    &snapshot.namespace_id,
                    snapshot.snapshot_id.unwrap_or_default(),
                );
                SNAPSHOTS.delete(tx, owner, &id).await?;
                record_change(tx, &caller, owner, json!({ "snapshot_deleted": id }), now).await
            })
        })
        .await?;
    app.blobs().delete_all(&files).await?;
    Ok(GenericDeleteResponse::default())
}

/// Whether every file is there in its size; `deep` reads them and compares their SHA-256.
async fn verify(
    app: &App,
    caller: &Caller,
    identifier: &str,
    snapshot_id: &str,
    deep: bool,
) -> Result<SnapshotVerifyResponse> {
    let snapshot = find(app, caller, identifier, snapshot_id).await?;
    let frontier = complete(&snapshot)?.frontier.clone().unwrap_or_default();
    let (mut issues, mut verified) = (Vec::new(), 0);
    for (path, digest) in &frontier.digests {
        let key = format!("{}/{path}", snapshot.s3_prefix);
        let stored = app.blobs().head(&key).await?;
        let fault = match stored {
            None => Some(("missing", "the file is gone")),
            Some(stored) if i64::try_from(stored.size).ok() != Some(digest.size) => {
                Some(("size", "the file has another size"))
            }
            Some(_) if deep && app.blobs().sha256(&key).await? != digest.sha256 => {
                Some(("digest", "the file has another content"))
            }
            Some(_) => None,
        };
        match fault {
            None => verified += 1,
            Some((code, what)) => issues.push(SnapshotVerifyIssue {
                code: code.into(),
                severity: "error".into(),
                detail: format!("{path}: {what}"),
            }),
        }
    }
    let documents = |path: &&String| path.starts_with("documents/");
    Ok(SnapshotVerifyResponse {
        snapshot_id: snapshot_id.to_owned(),
        status: if issues.is_empty() { "ok" } else { "broken" }.into(),
        restorable: issues.is_empty(),
        issues,
        collections_verified: i64::try_from(frontier.digests.keys().filter(documents).count())
            .unwrap_or(0),
        vector_capture: match snapshot.include_vectors {
            true => "captured",
            false => "not_included",
        }
        .into(),
        frontier: Some(frontier),
        digests_verified: verified,
        last_restore: snapshot.last_restore,
        ..SnapshotVerifyResponse::default()
    })
}

/// Changes a snapshot, unless it was removed meanwhile: then false.
async fn change(
    app: &App,
    claim: &Claim,
    owner: &str,
    edit: impl FnOnce(&mut SnapshotModel) + Send + 'static,
) -> Result<bool> {
    let (owner, id) = (owner.to_owned(), text(claim, "snapshot_id").to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut snapshot = match SNAPSHOTS.hold(tx, &owner, &id).await {
                    Ok(record) => record.data.0,
                    Err(error) if error.is_not_found() => return Ok(false),
                    Err(error) => return Err(error),
                };
                edit(&mut snapshot);
                SNAPSHOTS
                    .update(tx, &owner, &id, &id, now, &snapshot)
                    .await?;
                Ok(true)
            })
        })
        .await
}

/// Work of the queue.
///
/// # Errors
/// A file, the store or the database fails; both kinds may be repeated.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    match claim.kind.as_str() {
        CAPTURE => capture::run(app, claim).await,
        _ => restore::run(app, claim).await,
    }
}

/// Whether work of this kind is for snapshots.
pub fn runs(kind: &str) -> bool {
    [CAPTURE, RESTORE].contains(&kind)
}

/// Ends work that cannot be done.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    match claim.kind.as_str() {
        CAPTURE => capture::give_up(app, claim, reason).await,
        _ => restore::give_up(app, claim, reason).await,
    }
}
