//! Making batches and queueing them.

use loupe_wire::{
    BatchModel, BatchType, CollectionResponse, CreateBatchRequest, DedupStrategy, Filter,
    NamespaceOperation, SubmitBatchRequest, TaskResponse, TaskStatusEnum, TaskType, Value,
};
use serde_json::json;

use super::{Again, NOTHING_TO_PROCESS, bucket_id, callbacks, get, store, tiers, waiting};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
    limits::{self, quota},
    list,
    v1::{
        collections::COLLECTIONS,
        objects,
        tasks::{self, NewTask},
    },
    words::counted,
};

/// Objects that a task shows of its batch.
const SAMPLE: usize = 5;

/// Makes a draft of the objects named, of those that match the filter, or of every object of the bucket; submits it when asked to.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    mut request: CreateBatchRequest,
) -> Result<BatchModel> {
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let are_named = request.object_ids.is_some();
    let object_ids = chosen(app, scope, &bucket_id, &mut request).await?;
    // Two names for one thing.
    let is_submitted = [request.auto_submit, request.trigger_processing].contains(&Some(true));
    if is_submitted && object_ids.is_empty() {
        // Its draft would stay, and nobody asked for one.
        return Err(nothing(are_named, request.filters.is_some()));
    }
    quota::check_batch(app, &scope.caller, object_ids.len()).await?;
    let mut collection_ids = request.collection_ids;
    for identifier in collection_ids.iter_mut().flatten() {
        let found = COLLECTIONS
            .known(app.db(), namespace_id, identifier)
            .await?;
        identifier.clone_from(&found.id);
    }
    let now = app.clock().micros();
    let batch = BatchModel {
        batch_id: Some(id::new("btch_")),
        bucket_id: bucket_id.clone(),
        namespace_id: Some(namespace_id.clone()),
        batch_name: request.batch_name,
        status: TaskStatusEnum::Draft,
        dedup_strategy: request.dedup_strategy,
        collection_ids,
        metadata: request.metadata,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    let batch_id = insert_draft(app, scope, batch, object_ids, are_named, now).await?;
    if is_submitted {
        let ask = SubmitBatchRequest::default();
        submit(app, scope, &bucket_id, &batch_id, ask, Again::Unfinished).await?;
    }
    get(app, org_id, namespace_id, "", &batch_id).await
}

/// Why a batch that is to be submitted has no objects.
fn nothing(are_named: bool, are_filtered: bool) -> ApiError {
    let message = match (are_named, are_filtered) {
        (true, _) => "object_ids names no object",
        (_, true) => "no object of the bucket matches the filters: nothing is processed",
        _ => "the bucket holds no objects: nothing is processed",
    };
    ApiError::bad_request(NOTHING_TO_PROCESS, message)
}

/// The objects that a new batch is to have.
async fn chosen(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    request: &mut CreateBatchRequest,
) -> Result<Vec<String>> {
    let most = app.config().limits.batch_objects;
    let (object_ids, member) = match request.object_ids.take() {
        Some(_) if request.filters.is_some() => {
            let msg = "send object_ids or filters, not both";
            return Err(Violation::body(&["filters"], "value_error", msg, Value::Null).into());
        }
        Some(ids) => (ids, "object_ids"),
        None => {
            // One more than a batch may have tells whether something would be left out.
            let all = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
            let limit = request.limit.unwrap_or(all);
            let found = select(app, scope, bucket_id, request.filters.as_ref(), limit).await?;
            (found, "limit")
        }
    };
    match object_ids.len() > most {
        true => Err(too_large(most, member)),
        false => Ok(object_ids),
    }
}

/// A batch that would have more objects than this installation lets it.
fn too_large(most: usize, member: &str) -> ApiError {
    let msg = format!("a batch has at most {most} objects: bulk-submit splits a bucket");
    Violation::body(&[member], "too_long", msg, Value::Null).into()
}

/// Writes a draft with its objects, of which those that were named have to be there; answers with its id.
async fn insert_draft(
    app: &App,
    scope: &Scope<Write>,
    batch: BatchModel,
    object_ids: Vec<String>,
    are_named: bool,
    now: i64,
) -> Result<String> {
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if are_named {
                    check_objects(tx, &namespace_id, &batch.bucket_id, &object_ids).await?;
                }
                store::insert(tx, &org_id, &batch, now).await?;
                let id = batch.batch_id.unwrap_or_default();
                store::add_objects(tx, &id, &object_ids, now).await?;
                Ok(id)
            })
        })
        .await
}

/// Ids of the bucket's objects that match the filter (of all without one), oldest first.
pub async fn select(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    filters: Option<&Filter>,
    limit: i64,
) -> Result<Vec<String>> {
    let (db, namespace_id) = (app.db(), &scope.namespace_id);
    let Some(filters) = filters else {
        return store::bucket_objects(db, namespace_id, bucket_id, limit).await;
    };
    let filter = list::parse_filter(&filters.0, "filters")?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    objects::listing::matching(db, namespace_id, bucket_id, &filter, limit).await
}

/// Makes a batch of these objects and submits it.
pub async fn process(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    object_ids: Vec<String>,
) -> Result<BatchModel> {
    let request = CreateBatchRequest {
        object_ids: Some(object_ids),
        auto_submit: Some(true),
        ..Default::default()
    };
    create(app, scope, bucket_id, request).await
}

/// Refuses what [`process`] would refuse, before anything is written.
pub async fn check_process(app: &App, scope: &Scope<Write>, bucket: &str) -> Result<()> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    tiers::of_bucket(app, &scope.namespace_id, &bucket_id, None).await?;
    Ok(())
}

async fn check_objects(
    tx: &mut crate::db::Tx,
    namespace_id: &str,
    bucket_id: &str,
    ids: &[String],
) -> Result<()> {
    match store::first_unknown(tx, namespace_id, bucket_id, ids).await? {
        Some(unknown) => Err(ApiError::not_found("object", unknown)),
        None => Ok(()),
    }
}

/// Adds objects to a draft, which may have as many as one that is made with them.
pub async fn add_objects(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    object_ids: Vec<String>,
) -> Result<BatchModel> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let (id, bucket) = (batch_id.to_owned(), bucket_id.clone());
    let size = quota::BatchSize::of(app, &scope.caller).await?;
    let most = app.config().limits.batch_objects;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Whoever adds or submits at the same time comes behind.
                store::lock(tx, &id, now).await?;
                let batch = store::find_in(tx, &org_id, &namespace_id, &bucket, &id).await?;
                if batch.status != TaskStatusEnum::Draft {
                    return Err(ApiError::conflict(
                        "batch_not_draft",
                        "objects can be added to a draft only",
                    ));
                }
                check_objects(tx, &namespace_id, &bucket, &object_ids).await?;
                store::add_objects(tx, &id, &object_ids, now).await?;
                let held = store::counts(tx, &id).await?.total;
                if usize::try_from(held).is_ok_and(|held| held > most) {
                    return Err(too_large(most, "object_ids"));
                }
                size.check(held)
            })
        })
        .await?;
    get(
        app,
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        batch_id,
    )
    .await
}

/// Queues a batch: one transaction writes the batch, its task and the change. An answer means it is on disk. `again` tells
/// what is done again of one that has ended.
pub async fn submit(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    request: SubmitBatchRequest,
    again: Again,
) -> Result<TaskResponse> {
    if !request.include_processing_history {
        let msg = "documents always tell what they were made by (_internal.processing.history)";
        let path = ["include_processing_history"];
        return Err(Violation::body(&path, "not_enabled", msg, false.into()).into());
    }
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let queued = queue(app, scope, &bucket_id, batch_id, request, again).await?;
    Ok(queued.0)
}

/// What a batch is to do, as it is put into the queue.
pub(super) struct Submission {
    pub tiers: Vec<Vec<CollectionResponse>>,
    /// How many objects it has, and the first of them.
    pub objects: i64,
    pub sample: Vec<String>,
    /// Who submits it.
    pub actor: String,
    /// Who is told of the end, if not as before.
    pub webhook_url: Option<String>,
    /// What was made before is made again, whatever the batch says.
    pub is_forced: bool,
}

/// As [`submit`], of a bucket that the caller may use; an empty id is that of a batch of documents without a bucket. Answers
/// with the task how many objects were put back.
pub async fn queue(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    batch_id: &str,
    request: SubmitBatchRequest,
    again: Again,
) -> Result<(TaskResponse, u64)> {
    let mut submission = submission(app, scope, bucket_id, batch_id, request, &again).await?;
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let pause = i64::try_from(app.config().jobs.resubmit_seconds).unwrap_or(60) * 1_000_000;
    let (id, bucket_id, now) = (
        batch_id.to_owned(),
        bucket_id.to_owned(),
        app.clock().micros(),
    );
    let queued = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &id, now).await?;
                let mut batch = store::find_in(tx, &org_id, &namespace_id, &bucket_id, &id).await?;
                let put_back = again.put_back(tx, &batch, now).await?;
                again.renew(&mut batch);
                check_pause(tx, &batch, pause, now).await?;
                // Somebody may have added some since they were read.
                submission.objects = store::counts(tx, &id).await?.total;
                let task = write(tx, &org_id, &namespace_id, batch, submission, now).await?;
                Ok((task, put_back))
            })
        })
        .await?;
    let (mut task, put_back) = queued;
    // It is queued already, whether or not its wait can be told.
    if let Err(error) = waiting::tell(app, &mut task).await {
        tracing::warn!(%error, batch_id, "how long a batch waits cannot be told");
    }
    app.work.notify_waiters();
    Ok((task, put_back))
}

/// What the request makes of the batch as it is; refused where nothing can be done.
async fn submission(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    batch_id: &str,
    request: SubmitBatchRequest,
    again: &Again,
) -> Result<Submission> {
    quota::check_work(app, &scope.caller).await?;
    let webhook_url = callbacks::read(app, request.webhook_url)?;
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let draft = store::find(app.db(), org_id, namespace_id, bucket_id, batch_id).await?;
    let named = match (request.collection_ids, draft.collection_ids) {
        (Some(sent), _) => Some(sent),
        // What was submitted before names all that it filled: one that was deleted keeps the others from nothing.
        (None, Some(before)) if draft.status != TaskStatusEnum::Draft => {
            Some(tiers::left(app, namespace_id, before).await?)
        }
        (None, named) => named,
    };
    let tiers = match draft.r#type {
        BatchType::Bucket => {
            tiers::of_bucket(app, namespace_id, &draft.bucket_id, named.as_ref()).await?
        }
        BatchType::Collection => {
            tiers::of_collections(app, namespace_id, &named.unwrap_or_default()).await?
        }
    };
    let object_ids = store::object_ids(app.db(), batch_id).await?;
    if object_ids.is_empty() {
        let message = "the batch has no objects";
        return Err(ApiError::bad_request(NOTHING_TO_PROCESS, message));
    }
    Ok(Submission {
        tiers,
        objects: i64::try_from(object_ids.len()).unwrap_or(i64::MAX),
        sample: object_ids.into_iter().take(SAMPLE).collect(),
        actor: scope.caller.actor().to_owned(),
        webhook_url,
        is_forced: match again {
            Again::Everything => true,
            // What is retried is done as it was to be done.
            Again::Retry | Again::Asked { .. } | Again::Failed { .. } | Again::Missing(_) => {
                draft.effective_dedup_strategy == Some(DedupStrategy::Force)
            }
            Again::Unfinished | Again::Resubmitted | Again::From(_) => false,
        },
    })
}

/// Refuses a batch that is queued, runs, or was submitted less than `pause` microseconds ago.
async fn check_pause(
    tx: &mut crate::db::Tx,
    batch: &BatchModel,
    pause: i64,
    now: i64,
) -> Result<()> {
    if store::is_running(batch.status) {
        return Err(ApiError::conflict(
            "batch_not_draft",
            "the batch is queued or running already",
        ));
    }
    let last = store::submitted_at(tx, batch).await?;
    let Some(left) = last
        .map(|last| pause - (now - last))
        .filter(|left| *left > 0)
    else {
        return Ok(());
    };
    let wait = left.div_euclid(1_000_000) + 1;
    let message = "a batch is submitted at most once in 60 seconds";
    let code = "batch_submit_too_soon";
    Err(limits::too_many(code, message, 1, "minute", wait))
}

/// Puts a batch into the queue, with its task.
pub(super) async fn write(
    tx: &mut crate::db::Tx,
    org_id: &str,
    namespace_id: &str,
    mut batch: BatchModel,
    submission: Submission,
    now: i64,
) -> Result<TaskResponse> {
    let id = batch.batch_id.clone().unwrap_or_default();
    let tiers = tiers::ids(&submission.tiers);
    if batch.status != TaskStatusEnum::Draft && batch.dag_tiers.as_ref() != Some(&tiers) {
        store::back_to_first(tx, &id).await?;
    }
    let position = store::count_waiting(tx).await? + 1;
    let objects = (submission.objects, submission.sample.as_slice());
    let task = insert_task(tx, org_id, namespace_id, &batch, &tiers, objects, now).await?;
    batch.status = TaskStatusEnum::Queued;
    batch.task_id = Some(task.task_id.clone());
    batch.collection_ids = Some(tiers.concat());
    batch.current_tier = None;
    batch.total_tiers = i64::try_from(tiers.len()).unwrap_or(1);
    batch.dag_tiers = Some(tiers);
    batch.effective_dedup_strategy = match submission.is_forced {
        true => Some(DedupStrategy::Force),
        false => Some(batch.dedup_strategy.unwrap_or(DedupStrategy::Skip)),
    };
    batch.submitted_by_key_id = Some(submission.actor);
    batch.webhook_url = submission.webhook_url.or(batch.webhook_url);
    batch.error = None;
    batch.status_message = None;
    batch.tier_tasks = tiers::shown(&submission.tiers, &task.task_id);
    batch.updated_at = Some(clock::time(now));
    store::queue(tx, &batch, now).await?;
    Ok(TaskResponse {
        queue_position: Some(position),
        ..task
    })
}

async fn insert_task(
    tx: &mut crate::db::Tx,
    org_id: &str,
    namespace_id: &str,
    batch: &BatchModel,
    tiers: &[Vec<String>],
    (objects, sample): (i64, &[String]),
    now: i64,
) -> Result<TaskResponse> {
    let data = json!({
        "batch_id": batch.batch_id, "bucket_id": batch.bucket_id, "namespace_id": namespace_id, "total_tiers": tiers.len(),
        "collection_ids": tiers.concat(), "object_count": objects,
        "sample_object_ids": sample,
    });
    let task = NewTask {
        org_id: org_id.into(),
        namespace_id: Some(namespace_id.into()),
        task_type: TaskType::ApiBucketsBatchesProcess,
        status: TaskStatusEnum::Queued,
        parent_id: None,
        kind: None,
        work: Value::Null,
        inputs: vec![batch.batch_id.clone().into()],
        additional_data: data.as_object().cloned().unwrap_or_default(),
        description: format!("Process {}", counted(objects, "object")),
    };
    tasks::insert(tx, task, now).await
}

/// Puts objects of an ended batch back and queues it again; answers how many those are.
pub async fn retry(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    again: Again,
) -> Result<(TaskResponse, i64)> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let ask = SubmitBatchRequest::default();
    let (task, reset) = queue(app, scope, &bucket_id, batch_id, ask, again).await?;
    Ok((task, i64::try_from(reset).unwrap_or(i64::MAX)))
}

/// Queues an ended batch again; with a tier, all that came as far begins there again.
pub async fn resubmit(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    from_tier: Option<i64>,
) -> Result<TaskResponse> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let again = from_tier.map_or(Again::Resubmitted, Again::From);
    let ask = SubmitBatchRequest::default();
    let queued = queue(app, scope, &bucket_id, batch_id, ask, again).await?;
    Ok(queued.0)
}
