//! Removals that take longer than a request. The request takes the thing out of everybody's reach and leaves a task;
//! the task frees files, documents and rows. Each step may be repeated, so a removal that was cut off starts again.

mod closing;
mod gone;
mod leftover;
mod made;
mod uploaded;

use loupe_wire::{ObjectResponse, TaskType, UploadResponse, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use closing::close_batches;
pub use leftover::{Left, leave, leave_in, run as remove_files};
pub use made::{remove_from, tell_events};

use super::{
    annotations::signal,
    batches,
    buckets::destinations,
    collections::COLLECTIONS,
    namespaces::push_event,
    objects::{self, blobs},
    tasks, uploads,
};
use crate::{
    app::App,
    args,
    db::{Json, Tx},
    error::{ApiError, Result},
    jobs::Claim,
};

/// Kinds of the queue's work.
pub const REMOVE_OBJECTS: &str = "remove_objects";
pub const REMOVE_COLLECTION: &str = "remove_collection";
pub const REMOVE_BUCKET: &str = "remove_bucket";
pub const REMOVE_NAMESPACE: &str = "remove_namespace";
pub const REMOVE_FILES: &str = "remove_files";

/// Objects of one step.
const STEP: i64 = 500;

/// Rows of one transaction, of tables that grow with every search and every look.
const ROWS: i64 = 5_000;

crate::sql! {
    const OBJECTS = "SELECT data FROM objects WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) LIMIT $3";
    const DELETE_OBJECT = "DELETE FROM objects WHERE namespace_id = $1 AND object_id = $2";
    const DELETE_PROCESSED = "DELETE FROM processed WHERE namespace_id = $1 AND object_id = $2";
    const UPLOADS = "SELECT upload_id, data FROM uploads WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) LIMIT $3";
    const DELETE_UPLOAD = "DELETE FROM uploads WHERE namespace_id = $1 AND upload_id = $2";
    const DELETE_BATCH_OBJECTS = "DELETE FROM batch_objects WHERE batch_id IN (SELECT batch_id FROM batches WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2))";
    const DELETE_BATCHES = "DELETE FROM batches WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2)";
    // Buckets that were being split into batches.
    const DELETE_HELD = "DELETE FROM batch_objects WHERE batch_id IN (SELECT batch_id FROM batch_groups WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2))";
    const DELETE_MEMBERS = "DELETE FROM batch_group_members WHERE namespace_id = $1 AND group_id IN (SELECT group_id FROM batch_groups WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2))";
    const DELETE_GROUPS = "DELETE FROM batch_groups WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2)";
    const DELETE_SYNC_FILES = "DELETE FROM sync_files WHERE namespace_id = $1 AND sync_id IN (SELECT sync_id FROM syncs WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2))";
    const DELETE_SYNC_JOBS = "DELETE FROM sync_jobs WHERE namespace_id = $1 AND sync_id IN (SELECT sync_id FROM syncs WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2))";
    const DELETE_SYNCS = "DELETE FROM syncs WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2)";
    const DELETE_BUCKETS = "DELETE FROM buckets WHERE owner = $1";
    const DELETE_RETRIEVERS = "DELETE FROM retrievers WHERE owner = $1";
    const DELETE_PUBLISHED = "DELETE FROM published_retrievers WHERE namespace_id = $1";
    const DELETE_PASSWORDS = "DELETE FROM page_passwords WHERE namespace_id = $1";
    const DELETE_PAGE_NAMES = "DELETE FROM page_names WHERE namespace_id = $1";
    const DELETE_INTERACTIONS = "DELETE FROM interactions WHERE interaction_id IN (SELECT interaction_id FROM interactions WHERE namespace_id = $1 LIMIT $2)";
    const DELETE_DATASETS = "DELETE FROM evaluation_datasets WHERE namespace_id = $1";
    const DELETE_EVALUATIONS = "DELETE FROM evaluations WHERE namespace_id = $1";
    const DELETE_BENCHMARKS = "DELETE FROM benchmarks WHERE namespace_id = $1";
    const DELETE_EXECUTIONS = "DELETE FROM executions WHERE execution_id IN (SELECT execution_id FROM executions WHERE namespace_id = $1 LIMIT $2)";
    const DELETE_ANNOTATIONS = "DELETE FROM annotations WHERE annotation_id IN (SELECT annotation_id FROM annotations WHERE namespace_id = $1 LIMIT $2)";
    const DELETE_SIGNALS = "DELETE FROM annotation_signals WHERE namespace_id = $1";
    const DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE owner = $1";
    const DELETE_ALERT_STATES = "DELETE FROM alert_states WHERE owner = $1";
    const DELETE_ALERT_EXECUTIONS = "DELETE FROM alert_executions WHERE execution_id IN (SELECT execution_id FROM alert_executions WHERE owner = $1 LIMIT $2)";
    const DELETE_FIRINGS = "DELETE FROM trigger_firings WHERE task_id IN (SELECT task_id FROM trigger_firings WHERE namespace_id = $1 LIMIT $2)";
    const FORGET_FILLINGS = "DELETE FROM fillings WHERE namespace_id = $1";
    const DELETE_FILLINGS = "DELETE FROM fillings WHERE namespace_id = $1 AND object_id = $2";
    const DELETE_TAXONOMY_VERSIONS = "DELETE FROM taxonomy_versions WHERE namespace_id = $1";
    const DELETE_CLUSTER_RUNS = "DELETE FROM cluster_runs WHERE namespace_id = $1";
    const DELETE_EXPORTS = "DELETE FROM exports WHERE namespace_id = $1";
    const DELETE_AWAY_REMOVALS = "DELETE FROM away_removals WHERE namespace_id = $1";
    const DELETE_PREVIEWS = "DELETE FROM page_previews WHERE namespace_id = $1";
    const DELETE_JOURNAL = "DELETE FROM document_journal WHERE namespace_id = $1";
}

/// Published pages stop answering with the request that removes their namespace.
pub async fn unpublish(tx: &mut Tx, namespace_id: &str) -> Result<()> {
    tx.run(DELETE_PUBLISHED, args![namespace_id]).await?;
    tx.run(DELETE_PASSWORDS, args![namespace_id]).await?;
    tx.run(DELETE_PAGE_NAMES, args![namespace_id]).await?;
    Ok(())
}

/// The task of a removal.
pub fn task(
    org_id: &str,
    namespace_id: &str,
    task_type: TaskType,
    kind: &'static str,
    id: &str,
) -> tasks::NewTask {
    let mut task = tasks::NewTask::work(org_id, namespace_id, task_type, kind, json!({ "id": id }));
    task.inputs = vec![id.into()];
    task.description = format!("removal of {id}");
    task
}

/// What a removal of objects frees.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Gone {
    #[serde(default)]
    object_ids: Vec<String>,
    /// The store's keys of files; an object whose files were replaced has some outside its own folder.
    #[serde(default)]
    files: Vec<String>,
    /// What was made of the objects goes, their own files stay.
    #[serde(default)]
    keeps_files: bool,
}

impl Gone {
    /// What was made of objects that stay.
    pub fn documents(object_ids: Vec<String>) -> Self {
        Self {
            object_ids,
            keeps_files: true,
            ..Self::default()
        }
    }

    /// Whole objects: their files, and the documents made from them.
    pub fn objects(objects: &[ObjectResponse]) -> Self {
        let ids = objects.iter().filter_map(|one| one.object_id.clone());
        Self {
            object_ids: ids.collect(),
            files: objects.iter().flat_map(blobs::keys).collect(),
            keeps_files: false,
        }
    }

    /// Files that no object names any more.
    pub fn files(files: Vec<String>) -> Self {
        Self {
            files,
            ..Self::default()
        }
    }
}

/// Leaves the inner task that frees what is gone, in the transaction that takes it out of reach.
pub async fn enqueue(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    gone: Gone,
    now: i64,
) -> Result<()> {
    if gone.object_ids.is_empty() && gone.files.is_empty() {
        return Ok(());
    }
    let work = serde_json::to_value(&gone).map_err(ApiError::internal)?;
    let task_type = TaskType::ApiCollectionsDocumentsBulkDelete;
    let mut task = tasks::NewTask::work(org_id, namespace_id, task_type, REMOVE_OBJECTS, work);
    // Inner work: it is not listed.
    task.parent_id = Some(namespace_id.into());
    tasks::insert(tx, task, now).await?;
    Ok(())
}

/// Leaves the inner task that frees what a collection held.
pub async fn enqueue_collection(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    collection_id: &str,
    now: i64,
) -> Result<()> {
    let task_type = TaskType::ApiCollectionsDocumentsBulkDelete;
    let mut task = task(
        org_id,
        namespace_id,
        task_type,
        REMOVE_COLLECTION,
        collection_id,
    );
    task.parent_id = Some(namespace_id.into());
    tasks::insert(tx, task, now).await?;
    Ok(())
}

/// Runs one task of this file's kinds; safe to repeat.
///
/// # Errors
/// A store or the database fails; what was done stays done.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let (org_id, work) = (claim.org_id.as_str(), &claim.work);
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    match claim.kind.as_str() {
        REMOVE_OBJECTS => {
            let gone = Gone::deserialize(work).map_err(ApiError::internal)?;
            free(app, org_id, namespace_id, &gone).await
        }
        REMOVE_COLLECTION => remove_collection(app, namespace_id, named(work)?).await,
        REMOVE_BUCKET => remove_bucket(app, org_id, namespace_id, named(work)?).await,
        REMOVE_NAMESPACE => remove_namespace(app, org_id, namespace_id).await,
        other => Err(ApiError::bad_request(
            "",
            format!("there is no work of the kind {other}"),
        )),
    }
}

/// Whether this file runs work of the kind.
pub fn runs(kind: &str) -> bool {
    matches!(
        kind,
        REMOVE_OBJECTS | REMOVE_COLLECTION | REMOVE_BUCKET | REMOVE_NAMESPACE
    )
}

/// The id that the work is about; an empty one would mean everything.
fn named(work: &Value) -> Result<&str> {
    let id = work.get("id").and_then(Value::as_str);
    id.filter(|id| !id.is_empty())
        .ok_or_else(|| ApiError::bad_request("", "a removal without an id"))
}

/// Frees what a collection held.
///
/// # Errors
/// A store fails; safe to repeat.
pub async fn remove_collection(app: &App, namespace_id: &str, collection_id: &str) -> Result<()> {
    app.store()
        .drop_collection(namespace_id, collection_id)
        .await?;
    signal::forget_collection(app, namespace_id, collection_id).await?;
    let folder = format!("documents/{collection_id}");
    destinations::delete_all(app, namespace_id, &[folder]).await
}

async fn free(app: &App, org_id: &str, namespace_id: &str, gone: &Gone) -> Result<()> {
    let ids = match gone.keeps_files {
        true => still_gone(app, namespace_id, gone.object_ids.clone()).await?,
        false => gone.object_ids.clone(),
    };
    made::remove_documents(app, org_id, namespace_id, &ids).await?;
    for key in &gone.files {
        app.blobs().delete(key).await?;
    }
    if !gone.keeps_files {
        for folder in blobs::folders(namespace_id, &ids, &gone.files) {
            app.blobs().delete_all(&folder).await?;
        }
        uploaded::remove(app, namespace_id, &ids).await?;
    }
    delete_rows(app, DELETE_FILLINGS, namespace_id, ids.clone()).await?;
    delete_rows(app, DELETE_PROCESSED, namespace_id, ids).await
}

/// Those that were not taken back meanwhile: what was made of these stays.
async fn still_gone(app: &App, namespace_id: &str, ids: Vec<String>) -> Result<Vec<String>> {
    let namespace_id = namespace_id.to_owned();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let living = objects::store::living(tx, &namespace_id, &ids).await?;
                Ok(ids.into_iter().filter(|id| !living.contains(id)).collect())
            })
        })
        .await
}

async fn delete_rows(
    app: &App,
    sql: &'static str,
    namespace_id: &str,
    ids: Vec<String>,
) -> Result<()> {
    let namespace_id = namespace_id.to_owned();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for id in &ids {
                    tx.run(sql, args![&namespace_id, id]).await?;
                }
                Ok(())
            })
        })
        .await
}

async fn delete_objects(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    objects: Vec<ObjectResponse>,
) -> Result<()> {
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for object in &objects {
                    let id = object.object_id.as_deref().unwrap_or_default();
                    // Told once, even when two workers are at it.
                    if tx.run(DELETE_OBJECT, args![&namespace_id, id]).await? == 1 {
                        let payload = objects::payload(object);
                        push_event(tx, &org_id, &namespace_id, "object.deleted", payload, now)
                            .await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

/// Rows go last, so what is not freed yet is found again. The change feed tells of each object with its row.
async fn remove_bucket(app: &App, org_id: &str, namespace_id: &str, bucket_id: &str) -> Result<()> {
    loop {
        let args = args![namespace_id, bucket_id, STEP];
        let rows: Vec<(Json<ObjectResponse>,)> = app.db().all(OBJECTS, args).await?;
        if rows.is_empty() {
            break;
        }
        let objects: Vec<ObjectResponse> = rows.into_iter().map(|row| row.0.0).collect();
        free(app, org_id, namespace_id, &Gone::objects(&objects)).await?;
        delete_objects(app, org_id, namespace_id, objects).await?;
    }
    // A bucket of the file store keeps these, and asks for them to be paid, where nobody sees them.
    uploads::abandon_all(app, namespace_id, bucket_id).await?;
    loop {
        let args = args![namespace_id, bucket_id, STEP];
        let uploads: Vec<(String, Json<UploadResponse>)> = app.db().all(UPLOADS, args).await?;
        if uploads.is_empty() {
            break;
        }
        for (_, upload) in &uploads {
            app.blobs().delete_all(&uploads::folder(upload)).await?;
        }
        let ids = uploads.into_iter().map(|row| row.0);
        delete_rows(app, DELETE_UPLOAD, namespace_id, ids.collect()).await?;
    }
    destinations::forget(app, namespace_id, bucket_id).await?;
    let (namespace_id, bucket_id) = (namespace_id.to_owned(), bucket_id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let owner = || args![&namespace_id, &bucket_id];
                tx.run(DELETE_BATCH_OBJECTS, owner()).await?;
                tx.run(DELETE_BATCHES, owner()).await?;
                for sql in [DELETE_HELD, DELETE_MEMBERS, DELETE_GROUPS] {
                    tx.run(sql, owner()).await?;
                }
                for sql in [DELETE_SYNC_FILES, DELETE_SYNC_JOBS, DELETE_SYNCS] {
                    tx.run(sql, owner()).await?;
                }
                Ok(())
            })
        })
        .await
}

/// The collections of a namespace that is removed, one after another.
async fn remove_collections(app: &App, org_id: &str, namespace_id: &str) -> Result<()> {
    for collection in COLLECTIONS.all(app.db(), namespace_id).await? {
        app.store()
            .drop_collection(namespace_id, &collection.id)
            .await?;
        let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
        let now = app.clock().micros();
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    COLLECTIONS
                        .delete(tx, &namespace_id, &collection.id)
                        .await?;
                    batches::store::forget_collection(tx, &namespace_id, &collection.id).await?;
                    let payload = json!({ "collection_id": collection.id });
                    push_event(
                        tx,
                        &org_id,
                        &namespace_id,
                        "collection.deleted",
                        payload,
                        now,
                    )
                    .await
                })
            })
            .await?;
    }
    Ok(())
}

/// So many rows that one transaction would keep every other write waiting.
async fn delete_in_steps(app: &App, sql: &'static str, namespace_id: &str) -> Result<()> {
    loop {
        let namespace_id = namespace_id.to_owned();
        let deleted = app
            .db()
            .write(move |tx| Box::pin(async move { tx.run(sql, args![namespace_id, ROWS]).await }));
        if deleted.await? == 0 {
            return Ok(());
        }
    }
}

async fn remove_namespace(app: &App, org_id: &str, namespace_id: &str) -> Result<()> {
    remove_collections(app, org_id, namespace_id).await?;
    app.store()
        .drop_collection(namespace_id, signal::SIGNAL)
        .await?;
    // Every bucket of the namespace.
    remove_bucket(app, org_id, namespace_id, "").await?;
    app.blobs().delete_all(namespace_id).await?;
    for sql in [
        DELETE_INTERACTIONS,
        DELETE_EXECUTIONS,
        DELETE_ANNOTATIONS,
        DELETE_FIRINGS,
        DELETE_ALERT_EXECUTIONS,
    ] {
        delete_in_steps(app, sql, namespace_id).await?;
    }
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for sql in [
                    DELETE_BUCKETS,
                    DELETE_RETRIEVERS,
                    DELETE_PUBLISHED,
                    DELETE_PASSWORDS,
                    DELETE_PAGE_NAMES,
                    DELETE_DATASETS,
                    DELETE_EVALUATIONS,
                    DELETE_BENCHMARKS,
                    DELETE_SIGNALS,
                    DELETE_SNAPSHOTS,
                    DELETE_ALERT_STATES,
                    DELETE_TAXONOMY_VERSIONS,
                    DELETE_CLUSTER_RUNS,
                    DELETE_EXPORTS,
                    DELETE_AWAY_REMOVALS,
                    DELETE_PREVIEWS,
                    DELETE_JOURNAL,
                    FORGET_FILLINGS,
                ] {
                    tx.run(sql, args![&namespace_id]).await?;
                }
                gone::remove(tx, &org_id, &namespace_id, now).await
            })
        })
        .await
}
