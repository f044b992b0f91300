//! Batches that are told to stop: the whole, a tier, or one collection of a tier.

use std::time::{Duration, Instant};

use loupe_wire::{
    BatchModel, CancellationOutcome, ExtractorJobInfo, Object, TaskResponse, TaskStatusEnum,
    TaskType, TierTaskInfo, Value,
};
use serde_json::json;

use super::{
    callbacks,
    ending::tell_end,
    fillings::{Held, count_held, tell_untold},
    flow::{Owner, UNCOUNTED, go_on},
    store, supervising,
};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs,
    v1::tasks::{self, NewTask, name_of},
    words::counted,
};

/// The batch that a caller names; empty texts match everything.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub org_id: String,
    pub namespace_id: String,
    pub bucket_id: String,
    pub batch_id: String,
}

impl Named {
    /// Holds the batch against every other change and reads it.
    pub async fn lock(&self, tx: &mut Tx, now: i64) -> Result<BatchModel> {
        store::lock(tx, &self.batch_id, now).await?;
        let (org_id, namespace_id) = (&self.org_id, &self.namespace_id);
        store::find_in(tx, org_id, namespace_id, &self.bucket_id, &self.batch_id).await
    }

    fn owner(&self, batch: &BatchModel) -> Owner {
        Owner {
            org_id: self.org_id.clone(),
            namespace_id: batch.namespace_id.clone().unwrap_or_default(),
        }
    }
}

/// What of a batch is stopped, and why.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    pub tier: i64,
    /// One job of the tier; none: the whole.
    pub job_id: Option<String>,
    pub reason: Option<String>,
}

/// Cancels a batch that waits, for its turn or for a retry, or runs, and keeps the reason. Chunks that run lose their lease and
/// write nothing more.
pub async fn cancel(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
    reason: Option<String>,
) -> Result<TaskResponse> {
    let named = Named {
        org_id: org_id.to_owned(),
        namespace_id: namespace_id.to_owned(),
        bucket_id: bucket_id.to_owned(),
        batch_id: batch_id.to_owned(),
    };
    // Only what is the caller's is stopped and counted.
    store::find(app.db(), org_id, namespace_id, bucket_id, batch_id).await?;
    let stopped = quiet(app, &named, None).await?;
    let held = count_held(app, batch_id).await?;
    let (id, now) = (batch_id.to_owned(), app.clock().micros());
    let (task_id, canceled) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut batch = named.lock(tx, now).await?;
                if tasks::is_terminal(batch.status) && !supervising::is_retried(&batch) {
                    return Err(ApiError::conflict("", "the batch has ended already"));
                }
                let had_ended = tasks::is_terminal(batch.status);
                supervising::forget_retry(tx, &mut batch).await?;
                let owner = named.owner(&batch);
                let task_id = match batch.task_id.clone() {
                    Some(task_id) => task_id,
                    None => insert_task(tx, &mut batch, &owner, now).await?,
                };
                let canceled = stopped + jobs::cancel_children(tx, &task_id, now).await?;
                tell_untold(tx, &mut batch, &owner, &held, now).await?;
                store::cancel_objects(tx, &id, now).await?;
                end(&mut batch, reason.clone(), now);
                store::update(tx, &batch, now).await?;
                tasks::store::change(tx, &task_id, TaskStatusEnum::Canceled, now, |task| {
                    if let Some(reason) = reason {
                        let data = task.additional_data.get_or_insert_default();
                        data.insert("cancellation_reason".into(), reason.into());
                    }
                })
                .await?;
                // What it wrote was told when it ended first.
                match had_ended {
                    true => callbacks::enqueue(tx, &batch, &owner, now).await?,
                    false => tell_end(tx, &batch, &owner, &held, now).await?,
                }
                Ok((task_id, canceled))
            })
        })
        .await?;
    answer(app, org_id, batch_id, &task_id, canceled).await
}

/// Ends a batch as canceled, with the tiers of it that have not ended.
fn end(batch: &mut BatchModel, reason: Option<String>, now: i64) {
    batch.status = TaskStatusEnum::Canceled;
    batch.status_message = reason;
    batch.updated_at = Some(clock::time(now));
    let tiers = batch.tier_tasks.iter_mut();
    tiers
        .filter(|tier| !tasks::is_terminal(tier.status))
        .for_each(|tier| end_tier(tier, now));
}

/// The task of a draft that is canceled before it had one.
async fn insert_task(
    tx: &mut Tx,
    batch: &mut BatchModel,
    owner: &Owner,
    now: i64,
) -> Result<String> {
    let batch_id = batch.batch_id.as_deref().unwrap_or_default();
    let objects = store::counts(tx, batch_id).await?.total;
    let data = json!({
        "batch_id": batch_id, "bucket_id": batch.bucket_id, "namespace_id": owner.namespace_id,
        "total_tiers": batch.total_tiers, "collection_ids": batch.collection_ids.clone().unwrap_or_default(),
        "object_count": objects,
    });
    let task = NewTask {
        org_id: owner.org_id.clone(),
        namespace_id: Some(owner.namespace_id.clone()),
        task_type: TaskType::ApiBucketsBatchesProcess,
        status: TaskStatusEnum::Canceled,
        parent_id: None,
        kind: None,
        work: Value::Null,
        inputs: vec![batch_id.into()],
        additional_data: data.as_object().cloned().unwrap_or_default(),
        description: format!("Process {}", counted(objects, "object")),
    };
    let task = tasks::insert(tx, task, now).await?;
    batch.task_id = Some(task.task_id.clone());
    Ok(task.task_id)
}

/// How long what is being written may take before a batch ends without it.
const WRITING: Duration = Duration::from_secs(10);

/// Cancels the chunks of a batch that is about to be canceled, and waits until what they are writing is written: only then can
/// its documents be counted. Of a tier: if it is still the one that runs. Answers how many chunks that were.
pub(super) async fn quiet(app: &App, named: &Named, tier: Option<i64>) -> Result<i64> {
    let (named, now) = (named.clone(), app.clock().micros());
    let (task_id, canceled) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let batch = named.lock(tx, now).await?;
                let task_id = batch.task_id.clone().unwrap_or_default();
                let goes_on = tier.is_some() && batch.current_tier != tier;
                if !store::is_running(batch.status) || goes_on {
                    return Ok((task_id, 0));
                }
                let canceled = jobs::cancel_children(tx, &task_id, now).await?;
                Ok((task_id, canceled))
            })
        })
        .await?;
    let start = Instant::now();
    while canceled > 0 && start.elapsed() < WRITING && jobs::is_writing(app, &task_id).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(canceled)
}

/// The batch's task, with what the cancellation reached.
async fn answer(
    app: &App,
    org_id: &str,
    batch_id: &str,
    task_id: &str,
    canceled: i64,
) -> Result<TaskResponse> {
    let task = tasks::store::find(app.db(), org_id, None, task_id).await?;
    // Its record may have been removed.
    let task = task.unwrap_or_else(|| TaskResponse {
        task_id: task_id.to_owned(),
        description: Some(format!("Process the objects of {batch_id}")),
        task_type: TaskType::ApiBucketsBatchesProcess,
        status: TaskStatusEnum::Canceled,
        additional_data: Some(Object::from_iter([(
            "batch_id".to_owned(),
            Value::from(batch_id),
        )])),
        ..Default::default()
    });
    Ok(TaskResponse {
        cancellation: Some(outcome(canceled)),
        ..task
    })
}

fn outcome(canceled: i64) -> CancellationOutcome {
    CancellationOutcome {
        ray_jobs_requested: canceled,
        ray_jobs_accepted: canceled,
        ray_jobs_refused: 0,
    }
}

/// Cancels a tier that has not ended. What came out of it goes on, what waits for it or comes to it goes no further.
pub(super) async fn cancel_tier(app: &App, named: Named, stop: Stop) -> Result<TaskResponse> {
    let stopped = stop_part(app, &named, stop).await?;
    let (org_id, batch_id) = (&named.org_id, &named.batch_id);
    answer(app, org_id, batch_id, &stopped.task_id, stopped.chunks).await
}

/// Cancels one job: its collection gets nothing more of this batch. With the last job of a tier the tier is canceled.
pub(super) async fn cancel_job(app: &App, named: Named, stop: Stop) -> Result<Object> {
    let stopped = stop_part(app, &named, stop.clone()).await?;
    let told = json!({
        "batch_id": named.batch_id, "tier_num": stop.tier, "job_id": stop.job_id,
        "status": name_of(TaskStatusEnum::Canceled), "collection_ids": stopped.collection_ids,
        "tier_status": name_of(stopped.tier_status), "reason": stop.reason,
        "cancellation": outcome(stopped.chunks),
    });
    match told {
        Value::Object(members) => Ok(members),
        _ => Ok(Object::new()),
    }
}

/// What a stop reached.
#[derive(Debug, Default)]
struct Stopped {
    task_id: String,
    /// Chunks that were canceled, or handed to other workers.
    chunks: i64,
    collection_ids: Vec<String>,
    tier_status: TaskStatusEnum,
}

/// The batch's documents are counted when it turns out that it ends with the stop.
async fn stop_part(app: &App, named: &Named, stop: Stop) -> Result<Stopped> {
    let stopped = match write(app, named.clone(), stop.clone(), None).await {
        Err(error) if error.has_code(UNCOUNTED) => {
            let chunks = quiet(app, named, Some(stop.tier)).await?;
            let held = count_held(app, &named.batch_id).await?;
            let mut stopped = write(app, named.clone(), stop, Some(held)).await?;
            stopped.chunks += chunks;
            stopped
        }
        stopped => stopped?,
    };
    app.work.notify_waiters();
    Ok(stopped)
}

async fn write(app: &App, named: Named, stop: Stop, held: Option<Held>) -> Result<Stopped> {
    let (chunk, now) = (app.config().jobs.chunk_objects, app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut batch = named.lock(tx, now).await?;
                let mut stopped = Stopped {
                    task_id: batch.task_id.clone().unwrap_or_default(),
                    ..Default::default()
                };
                let tier = find_tier(&mut batch, stop.tier)?;
                match &stop.job_id {
                    None => tier.extractor_jobs.iter_mut().for_each(|job| {
                        end_job(job, stop.reason.as_deref(), now);
                    }),
                    Some(id) => {
                        let job = find_job(tier, id)?;
                        end_job(job, stop.reason.as_deref(), now);
                        stopped.collection_ids.clone_from(&job.collection_ids);
                    }
                }
                let canceled = |job: &ExtractorJobInfo| job.status == TaskStatusEnum::Canceled;
                let is_whole = tier.extractor_jobs.iter().all(canceled);
                if is_whole {
                    end_tier(tier, now);
                }
                stopped.tier_status = tier.status;
                let runs = batch.status == TaskStatusEnum::Processing
                    && batch.current_tier == Some(stop.tier);
                stopped.chunks = match (runs, is_whole) {
                    (false, _) => 0,
                    (true, true) => jobs::cancel_children(tx, &stopped.task_id, now).await?,
                    (true, false) => jobs::hand_back(tx, &stopped.task_id, true, now).await?,
                };
                batch.updated_at = Some(clock::time(now));
                note(tx, &batch, &stop, now).await?;
                if is_whole {
                    store::cancel_tier(tx, &named.batch_id, stop.tier, now).await?;
                    let waits = store::next_tier(tx, &named.batch_id).await?.is_some();
                    if runs || !waits {
                        let owner = named.owner(&batch);
                        go_on(tx, batch, &owner, held, chunk, now).await?;
                        return Ok(stopped);
                    }
                }
                store::update(tx, &batch, now).await?;
                Ok(stopped)
            })
        })
        .await
}

/// The tier, if it has not ended.
fn find_tier(batch: &mut BatchModel, number: i64) -> Result<&mut TierTaskInfo> {
    let ended = tasks::is_terminal(batch.status);
    let mut tiers = batch.tier_tasks.iter_mut();
    let tier = tiers.find(|tier| tier.tier_num == number);
    let tier = tier.ok_or_else(|| ApiError::not_found("tier", &number.to_string()))?;
    if ended {
        return Err(ApiError::conflict("", "the batch has ended already"));
    }
    if tasks::is_terminal(tier.status) {
        return Err(ApiError::conflict("", "the tier has ended already"));
    }
    Ok(tier)
}

fn find_job<'t>(tier: &'t mut TierTaskInfo, id: &str) -> Result<&'t mut ExtractorJobInfo> {
    let mut jobs = tier.extractor_jobs.iter_mut();
    let job = jobs.find(|job| job.ray_job_id.as_deref() == Some(id));
    let job = job.ok_or_else(|| ApiError::not_found("job", id))?;
    if tasks::is_terminal(job.status) {
        return Err(ApiError::conflict("", "the job has ended already"));
    }
    Ok(job)
}

fn end_job(job: &mut ExtractorJobInfo, reason: Option<&str>, now: i64) {
    if tasks::is_terminal(job.status) {
        return;
    }
    job.status = TaskStatusEnum::Canceled;
    job.completed_at = Some(clock::time(now));
    job.error = Some(reason.map_or_else(|| "canceled".into(), |why| format!("canceled: {why}")));
}

fn end_tier(tier: &mut TierTaskInfo, now: i64) {
    tier.status = TaskStatusEnum::Canceled;
    tier.completed_at = Some(clock::time(now));
}

/// The batch's task keeps what was stopped.
async fn note(tx: &mut Tx, batch: &BatchModel, stop: &Stop, now: i64) -> Result<()> {
    let task_id = batch.task_id.as_deref().unwrap_or_default();
    let told = json!({
        "tier_num": stop.tier, "job_id": stop.job_id, "reason": stop.reason,
        "at": clock::time(now).to_rfc3339(),
    });
    tasks::store::change(tx, task_id, batch.status, now, |task| {
        let data = task.additional_data.get_or_insert_default();
        let stops = data
            .entry("cancellations")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(stops) = stops {
            stops.push(told);
        }
    })
    .await
}
