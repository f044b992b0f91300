//! Restoring: into a new namespace, as a clone of what the snapshot holds; or in place, where everything that the snapshot
//! holds becomes what it was, and what was made since stays.

use std::collections::BTreeMap;

use loupe_engine::store::{CollectionSpec, Document};
use loupe_wire::{
    LifecycleState, NamespaceModel, NamespaceOperation, ResourceType, RestoreCollectionOutcome,
    RestoreReport, RestoreSnapshotRequest, RestoreSnapshotResponse, SnapshotModel, TaskType, Value,
    reading,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncBufReadExt;

use super::{
    SNAPSHOTS, change, complete,
    decided::{self, Annotated},
    find, record_change,
    renewing::Renewed,
    returning, rows,
};
use crate::{
    app::App,
    args,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
    jobs::Claim,
    v1::{
        alerts,
        annotations::Target,
        clusters,
        collections::{self, COLLECTIONS, lifecycle},
        copying::Pair,
        events,
        namespaces::{self, NAMESPACES},
        notifications::{self, Failure},
        tasks::{self, NewTask, name_of},
        triggers,
    },
};

/// The queue's word for a restoration.
pub const RESTORE: &str = "snapshot_restore";

crate::sql! {
    const UNDER_WAY = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND kind = $2 AND status IN ('QUEUED', 'PROCESSING')";
}

/// Documents written at once.
pub(super) const STEP: usize = 200;

/// What the task restores.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Work {
    snapshot_id: String,
    /// The namespace that the snapshot is of.
    source: String,
    /// Collection of the snapshot and the one that it is restored to; the same in place.
    collections: BTreeMap<String, String>,
    /// The same of retrievers.
    #[serde(default)]
    retrievers: BTreeMap<String, String>,
    in_place: bool,
    /// What of the snapshot is not in the new namespace.
    #[serde(default)]
    skipped: Vec<String>,
    /// What waits for people there.
    #[serde(default)]
    waiting: Vec<String>,
}

/// The rows of `resources.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Resources {
    pub namespace: NamespaceModel,
    pub buckets: Vec<loupe_wire::BucketResponse>,
    pub collections: Vec<loupe_wire::CollectionResponse>,
    pub retrievers: Vec<loupe_wire::RetrieverModelOutput>,
    pub taxonomies: Vec<loupe_wire::TaxonomyResponse>,
    // Snapshots of before have none of these.
    #[serde(default)]
    pub clusters: Vec<clusters::Kept>,
    #[serde(default)]
    pub alerts: Vec<alerts::Kept>,
    #[serde(default)]
    pub triggers: Vec<triggers::Whole>,
}

/// Reads them again.
async fn resources(app: &App, snapshot: &SnapshotModel) -> Result<Resources> {
    let bytes = app
        .blobs()
        .get(&format!("{}/resources.json", snapshot.s3_prefix))
        .await?;
    let mut resources: Resources = reading::from_slice(&bytes).map_err(ApiError::internal)?;
    // Documents come back into the search engine, wherever they were.
    for collection in &mut resources.collections {
        if collection.s3_vector_index.take().is_some() {
            collection.lifecycle_state = name_of(LifecycleState::Active);
        }
    }
    Ok(resources)
}

/// Leaves the task that restores it.
pub(super) async fn start(
    app: &App,
    caller: &Caller,
    identifier: &str,
    snapshot_id: &str,
    request: RestoreSnapshotRequest,
) -> Result<RestoreSnapshotResponse> {
    let refuse = |member: &str, kind: &str, msg: &str| {
        ApiError::from(Violation::body(&[member], kind, msg, Value::Null))
    };
    if request.restore_point.is_some() || request.isolated {
        let msg =
            "this server restores to the moment of the snapshot, to where everybody may read it";
        let member = if request.isolated {
            "isolated"
        } else {
            "restore_point"
        };
        return Err(refuse(member, "not_enabled", msg));
    }
    let snapshot = find(app, caller, identifier, snapshot_id).await?;
    complete(&snapshot)?;
    let resources = resources(app, &snapshot).await?;
    match (request.target_namespace_name, request.confirm_in_place) {
        (Some(name), _) => into_new(app, caller, snapshot, resources, &name).await,
        (None, true) => in_place(app, caller, snapshot, resources).await,
        (None, false) => {
            let msg = "name the new namespace, or confirm that this one is restored in place";
            Err(refuse("target_namespace_name", "missing", msg))
        }
    }
}

fn answer(
    snapshot: &SnapshotModel,
    target: &str,
    task_id: String,
    message: &str,
) -> RestoreSnapshotResponse {
    RestoreSnapshotResponse {
        task_id,
        snapshot_id: snapshot.snapshot_id.clone().unwrap_or_default(),
        target_namespace_id: target.to_owned(),
        message: message.into(),
        ..RestoreSnapshotResponse::default()
    }
}

async fn into_new(
    app: &App,
    caller: &Caller,
    snapshot: SnapshotModel,
    resources: Resources,
    name: &str,
) -> Result<RestoreSnapshotResponse> {
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, "*", operation)?;
    let (now, target) = (app.clock().micros(), id::new("ns_"));
    let at = Some(clock::time(now));
    let then = resources.namespace.clone();
    let namespace = NamespaceModel {
        namespace_id: Some(target.clone()),
        namespace_name: namespaces::check_name(name)?,
        clone_status: Some("cloning".into()),
        clone_phase: Some("queued".into()),
        clone_error: None,
        clone_dispatched_at: at,
        source_namespace_id: Some(snapshot.namespace_id.clone()),
        namespace_ready: false,
        created_at: at,
        updated_at: at,
        // The time of what it is made of is not its own.
        expires_at: None,
        ..then
    };
    let mut renewed = Renewed::of(app, caller, namespace, resources, now)?;
    let ids = &renewed.clone.ids;
    let work = Work {
        snapshot_id: snapshot.snapshot_id.clone().unwrap_or_default(),
        source: snapshot.namespace_id.clone(),
        collections: ids.collections.clone().into_iter().collect(),
        retrievers: ids.retrievers.clone().into_iter().collect(),
        in_place: false,
        skipped: std::mem::take(&mut renewed.skipped),
        waiting: std::mem::take(&mut renewed.waiting),
    };
    let caller = caller.clone();
    let task_id = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let namespace = &mut renewed.clone.namespace;
                let namespace_id = namespace.namespace_id.clone().unwrap_or_default();
                let task_id = enqueue(tx, &caller, &namespace_id, &work, now).await?;
                namespace.clone_task_id = Some(task_id.clone());
                let changes = json!({ "restored_from": work.snapshot_id });
                renewed.insert(tx, &caller, changes, now).await?;
                Ok(task_id)
            })
        })
        .await?;
    app.work.notify_one();
    let message = "the snapshot is being restored into the new namespace";
    Ok(answer(&snapshot, &target, task_id, message))
}

async fn in_place(
    app: &App,
    caller: &Caller,
    snapshot: SnapshotModel,
    resources: Resources,
) -> Result<RestoreSnapshotResponse> {
    // Its documents would come over those that are there, and take their vectors.
    if !snapshot.include_vectors {
        let message = "the snapshot was taken without vectors: restore it into a new namespace";
        return Err(ApiError::conflict("", message));
    }
    let ids = resources
        .collections
        .iter()
        .filter_map(|one| one.collection_id.clone());
    let work = Work {
        snapshot_id: snapshot.snapshot_id.clone().unwrap_or_default(),
        source: snapshot.namespace_id.clone(),
        collections: ids.map(|id| (id.clone(), id)).collect(),
        in_place: true,
        ..Work::default()
    };
    let (caller, target, now) = (
        caller.clone(),
        snapshot.namespace_id.clone(),
        app.clock().micros(),
    );
    let task_id = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                check_alone(tx, &caller.org_id, &target).await?;
                for id in work.collections.keys() {
                    match COLLECTIONS.find_in(tx, &target, id).await {
                        Ok(found) => lifecycle::check_active(&found)?,
                        // Gone: it is written again.
                        Err(error) if error.is_not_found() => {}
                        Err(error) => return Err(error),
                    }
                }
                let changes = json!({ "restored_from": work.snapshot_id });
                record_change(tx, &caller, &target, changes, now).await?;
                enqueue(tx, &caller, &target, &work, now).await
            })
        })
        .await?;
    app.work.notify_one();
    let message = "the snapshot is being restored in place: what was made since stays";
    let target = snapshot.namespace_id.clone();
    Ok(answer(&snapshot, &target, task_id, message))
}

/// Refuses to restore a namespace that is being restored already: of two at once nobody could tell what it becomes. Of two that
/// ask, the second waits for what the first one leaves.
async fn check_alone(tx: &mut Tx, org_id: &str, namespace_id: &str) -> Result<()> {
    NAMESPACES.hold(tx, org_id, namespace_id).await?;
    match tx.number(UNDER_WAY, args![namespace_id, RESTORE]).await? {
        0 => Ok(()),
        _ => {
            let message = "the namespace is being restored already: wait for the end of that";
            Err(ApiError::conflict("restore_running", message))
        }
    }
}

async fn enqueue(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    work: &Work,
    now: i64,
) -> Result<String> {
    let body = serde_json::to_value(work).map_err(ApiError::internal)?;
    let task_type = TaskType::ApiNamespacesSnapshotRestore;
    let mut task = NewTask::work(&caller.org_id, namespace_id, task_type, RESTORE, body);
    task.inputs = vec![work.snapshot_id.clone().into()];
    task.description = format!("restoration of {}", work.snapshot_id);
    Ok(tasks::insert(tx, task, now).await?.task_id)
}

pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    let target = claim.namespace_id.as_deref().unwrap_or_default();
    let snapshot = SNAPSHOTS
        .find(app.db(), &work.source, &work.snapshot_id)
        .await?
        .data
        .0;
    let begun = events::newest(app.db(), &claim.org_id).await?;
    let mut skipped = work.skipped.clone();
    if work.in_place {
        let resources = resources(app, &snapshot).await?;
        skipped = rows::put(app, claim, &snapshot, resources).await?;
        skipped.extend(returning::put_objects(app, claim, &snapshot).await?);
    } else {
        namespaces::set_clone_status(app, claim, "cloning", Some("copying"), None).await?;
    }
    let outcomes = fill(app, claim, &snapshot, &work).await?;
    match work.in_place {
        true => returning::take_away(app, claim, begun).await?,
        false => namespaces::set_clone_status(app, claim, "ready", None, None).await?,
    }
    let mut report = report(&snapshot, target, outcomes, skipped);
    report.skipped_summary.extend(work.waiting);
    change(app, claim, &work.source, move |snapshot| {
        snapshot.last_restore = Some(report);
    })
    .await?;
    Ok(())
}

/// Writes the documents of every collection, then what people decided of them.
async fn fill(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
    work: &Work,
) -> Result<Vec<RestoreCollectionOutcome>> {
    let manifest = snapshot.manifest.as_ref();
    let mut annotated = match work.in_place {
        true => Annotated::default(),
        false => Annotated::read(app, snapshot).await?,
    };
    let mut outcomes = Vec::new();
    for (from, to) in &work.collections {
        let expected = manifest.and_then(|held| held.mongo_collections.get(from));
        let place = (from.as_str(), to.as_str());
        let restored = collection(app, claim, snapshot, place, work, &mut annotated).await?;
        outcomes.push(outcome(to, expected.copied().unwrap_or(0), restored));
    }
    if work.in_place {
        decided::put_back(app, claim, snapshot).await?;
        return Ok(outcomes);
    }
    let target = Target {
        org_id: &claim.org_id,
        namespace_id: claim.namespace_id.as_deref().unwrap_or_default(),
        collections: &work.collections,
        retrievers: &work.retrievers,
    };
    annotated.copy(app, snapshot, &target).await?;
    Ok(outcomes)
}

fn outcome(collection: &str, expected: i64, restored: Option<i64>) -> RestoreCollectionOutcome {
    RestoreCollectionOutcome {
        collection: collection.to_owned(),
        expected,
        restored: restored.unwrap_or(0),
        status: match restored {
            Some(restored) if restored == expected => "restored",
            Some(_) => "partial",
            None => "skipped",
        }
        .into(),
        reason: restored
            .is_none()
            .then(|| "the collection was removed meanwhile".into()),
    }
}

fn report(
    snapshot: &SnapshotModel,
    target: &str,
    collections: Vec<RestoreCollectionOutcome>,
    skipped_summary: Vec<String>,
) -> RestoreReport {
    let vectors = |count: i64| if snapshot.include_vectors { count } else { 0 };
    let expected = collections.iter().map(|one| one.expected).sum();
    let restored = collections.iter().map(|one| one.restored).sum();
    RestoreReport {
        snapshot_id: snapshot.snapshot_id.clone().unwrap_or_default(),
        target_namespace_id: target.to_owned(),
        complete: skipped_summary.is_empty()
            && collections.iter().all(|one| one.status == "restored"),
        collections,
        vector_expected: vectors(expected),
        vector_restored: vectors(restored),
        vector_status: match snapshot.include_vectors {
            true => "restored",
            false => "none",
        }
        .into(),
        skipped_summary,
        ..RestoreReport::default()
    }
}

pub(super) async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    if !work.in_place {
        namespaces::set_clone_status(app, claim, "failed", None, Some(reason)).await?;
    }
    let target = claim.namespace_id.clone().unwrap_or_default();
    let advice = match work.in_place {
        true => "What was put back already stays: restore it again when the cause is gone.",
        false => "Remove the new namespace, and restore it again when the cause is gone.",
    };
    let notice = Failure {
        title: format!("The snapshot {} could not be restored", work.snapshot_id),
        content: format!("{reason}. {advice}"),
        about: json!({ "namespace_id": target, "snapshot_id": work.snapshot_id }),
    };
    let reason = reason.to_owned();
    change(app, claim, &work.source, move |snapshot| {
        snapshot.last_restore = Some(RestoreReport {
            snapshot_id: snapshot.snapshot_id.clone().unwrap_or_default(),
            target_namespace_id: target,
            skipped_summary: vec![reason],
            ..RestoreReport::default()
        });
    })
    .await?;
    notifications::tell_failure(app, claim, notice).await
}

/// Writes the documents of one collection, and answers how many; none if it was removed meanwhile.
async fn collection(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
    (from, to): (&str, &str),
    work: &Work,
    annotated: &mut Annotated,
) -> Result<Option<i64>> {
    let target = claim.namespace_id.as_deref().unwrap_or_default();
    let spec: CollectionSpec = match COLLECTIONS.find(app.db(), target, to).await {
        Ok(record) => collections::spec(app, target, &record.data.0),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let pair = Pair {
        app,
        claim,
        from_namespace: &snapshot.namespace_id,
        from,
        target: &spec,
        ids: &work.collections,
        files: files(snapshot),
    };
    let key = format!("{}/documents/{from}.ndjson", snapshot.s3_prefix);
    let mut lines = app.blobs().reader(&key).await?.lines();
    let (mut step, mut count) = (Vec::with_capacity(STEP), 0);
    loop {
        let line = lines.next_line().await.map_err(ApiError::internal)?;
        let is_last = line.is_none();
        if let Some(line) = line {
            let document: Document = reading::from_str(&line).map_err(ApiError::internal)?;
            if work.in_place {
                returning::put_files(app, snapshot, &document).await?;
            }
            step.push(document);
            count += 1;
        }
        if step.len() == STEP || (is_last && !step.is_empty()) {
            let documents = std::mem::take(&mut step);
            if work.in_place {
                pair.put(documents).await?;
            } else {
                let ids = documents.iter().map(|one| one.document_id.clone());
                let ids: Vec<String> = ids.collect();
                let copies = pair.write(documents).await?;
                for (id, copy) in ids.iter().zip(copies) {
                    annotated.note(id, copy);
                }
            }
        }
        if is_last {
            return Ok(Some(count));
        }
    }
}

/// The folder of copied files, if the snapshot has them.
pub(super) fn files(snapshot: &SnapshotModel) -> Option<String> {
    let folder = format!("{}/files", snapshot.s3_prefix);
    snapshot.s3_objects_copied.then_some(folder)
}
