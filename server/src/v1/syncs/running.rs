//! Looking into a storage: its list beside what is known of it, both in the same order. What is new gets an object, what
//! changed gets another one, what is gone loses its own. A look that dies is done again and finds what it had done.

use futures::{Stream, StreamExt, TryStreamExt};
use loupe_wire::{
    BucketResponse, CreateBatchRequest, NamespaceOperation, SyncConfigurationModel, SyncJobModel,
    SyncJobStatus, SyncJobTrigger, TaskResponse, TaskStatusEnum, TaskType,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    ending::account,
    files::Rules,
    memory::Memory,
    store::{self, Known, Place},
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    jobs::{Claim, text},
    v1::{
        batches,
        connections::{self, Entry},
        objects::{self, Outcome, Policy},
        tasks::{self, NewTask},
    },
};

/// The queue's word for a look into a storage.
pub const LOOK: &str = "sync_storage";

/// Letters of an error that are kept.
pub const TOLD: usize = 1000;

/// Begins the looks whose moment has come.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    let now = app.clock().micros();
    for model in store::due(app.db(), now).await? {
        let begun = app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let trigger = SyncJobTrigger::Scheduled;
                    begin(tx, &Place::of(&model), trigger, false, now).await
                })
            })
            .await?;
        if begun.is_some() {
            app.work.notify_one();
        }
    }
    Ok(())
}

/// Removes looks that are old.
///
/// # Errors
/// The database does not answer.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, now).await }))
        .await
}

/// Leaves the task of a look; none while another one is under way. `full` reads files again that did not change.
pub async fn begin(
    tx: &mut Tx,
    place: &Place,
    trigger: SyncJobTrigger,
    full: bool,
    now: i64,
) -> Result<Option<TaskResponse>> {
    let job_id = id::new("syncjob_");
    if !store::begin(tx, place, &job_id).await? {
        return Ok(None);
    }
    let mut model = store::find_in(tx, place).await?;
    let job = SyncJobModel {
        sync_job_id: Some(job_id.clone()),
        sync_config_id: place.sync_id.clone(),
        internal_id: model.internal_id.clone(),
        namespace_id: place.namespace_id.clone(),
        status: Some(SyncJobStatus::Running),
        trigger: Some(trigger),
        phase: Some("queued".into()),
        started_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    store::insert_job(tx, &job, now).await?;
    let work = json!({
        "bucket_id": place.bucket_id, "sync_id": place.sync_id, "job_id": job_id, "full": full,
    });
    let mut task = NewTask::work(
        &model.internal_id,
        &place.namespace_id,
        TaskType::ApiBucketsObjectsCreate,
        LOOK,
        work,
    );
    task.inputs = vec![json!({ "sync_config_id": place.sync_id, "sync_job_id": job_id })];
    task.description = format!("Sync of {}", model.source_path);
    let task = tasks::insert(tx, task, now).await?;
    model.sync_run_counter += 1;
    model.status = TaskStatusEnum::InProgress;
    model.next_sync_at = None;
    // The tasks of the last looks, for whoever wants their logs.
    model.task_ids.push(task.task_id.clone());
    let old = model.task_ids.len().saturating_sub(10);
    model.task_ids.drain(..old);
    store::update(tx, &model, now).await?;
    Ok(Some(task))
}

pub fn place_of(claim: &Claim) -> Place {
    Place {
        namespace_id: claim.namespace_id.clone().unwrap_or_default(),
        bucket_id: text(claim, "bucket_id").to_owned(),
        sync_id: text(claim, "sync_id").to_owned(),
    }
}

/// What a look has brought so far.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    pub discovered: i64,
    pub synced: i64,
    pub unchanged: i64,
    pub removed: i64,
    pub failed: i64,
    pub bytes: i64,
    pub batches: Vec<String>,
    /// The first failure in words.
    pub error: Option<String>,
}

impl Tally {
    fn fail(&mut self, path: &str, error: &ApiError) {
        self.failed += 1;
        let said = || {
            format!("{path}: {}", error.message())
                .chars()
                .take(TOLD)
                .collect()
        };
        self.error.get_or_insert_with(said);
    }
}

/// What a look works with.
struct Look<'l> {
    app: &'l App,
    scope: Scope<Write>,
    bucket: &'l BucketResponse,
    place: Place,
    model: &'l SyncConfigurationModel,
    job: SyncJobModel,
    rules: Rules,
    full: bool,
    tally: Tally,
}

/// Looks into a storage.
///
/// # Errors
/// The storage or the connection fails; what was made stays.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let place = place_of(claim);
    let model = store::find(app.db(), &place).await?;
    let job = store::find_job(app.db(), &place, text(claim, "job_id")).await?;
    let scope: Scope<Write> = Scope::internal(
        Caller::system(&model.internal_id),
        place.namespace_id.clone(),
    );
    let operation = NamespaceOperation::WriteData;
    let bucket = objects::bucket(app, &scope, &place.bucket_id, operation).await?;
    let access = connections::for_s3(app, &scope.caller, Some(&model.connection_id)).await?;
    let rules = Rules::read(&model)?;
    let source = rules.source().clone();
    let listing = access.list(app.outbound(), &source.bucket, &source.folder)?;
    let mut look = Look {
        app,
        scope,
        bucket: &bucket,
        place,
        model: &model,
        job,
        rules,
        full: claim.work["full"] == true,
        tally: Tally::default(),
    };
    look.over(listing).await?;
    let outputs = json!({
        "files_synced": look.tally.synced, "files_failed": look.tally.failed,
        "files_unchanged": look.tally.unchanged, "files_removed": look.tally.removed,
        "batch_ids": look.tally.batches,
    });
    look.finish().await?;
    tasks::succeed(app, claim, vec![outputs]).await
}

impl Look<'_> {
    /// Walks over the list and what is known side by side.
    async fn over(&mut self, listing: impl Stream<Item = Result<Entry>>) -> Result<()> {
        let size = usize::try_from(self.model.batch_size).unwrap_or(50);
        let mut listing = std::pin::pin!(listing.try_chunks(size).map_err(|error| error.1));
        let mut known = Memory::new(self.app, self.place.clone());
        let mut last = String::new();
        while let Some(files) = listing.next().await.transpose()? {
            let mut fresh = Vec::new();
            for file in files {
                // Deletions follow from the order: a storage that keeps none must not cost objects.
                if file.key <= last {
                    let message = "the storage does not list its files in order";
                    return Err(ApiError::bad_request("", message));
                }
                last.clone_from(&file.key);
                let before = known.up_to(&file.key).await?;
                self.gone(before.gone).await?;
                if !self.rules.take(&file) {
                    self.shut_out(before.same).await?;
                    continue;
                }
                self.tally.discovered += 1;
                if self.is_unchanged(&file, before.same.as_ref()) {
                    self.tally.unchanged += 1;
                } else {
                    fresh.push((file, before.same));
                }
            }
            self.make(fresh).await?;
            if !self.tell(&last).await? {
                return Err(ApiError::not_found("sync", &self.place.sync_id));
            }
            if self.tally.synced >= self.model.max_objects_per_run {
                // The next look goes on: nothing is known of what lies behind.
                return Ok(());
            }
        }
        loop {
            let rest = known.rest().await?;
            if rest.is_empty() {
                return Ok(());
            }
            self.gone(rest).await?;
        }
    }

    fn is_unchanged(&self, file: &Entry, known: Option<&Known>) -> bool {
        let follows = self
            .model
            .reconcile
            .as_ref()
            .is_none_or(|one| one.on_update);
        known.is_some_and(|known| !self.full && (known.version == file.version || !follows))
    }

    /// Makes the objects of files that are new or changed, and a batch of them.
    async fn make(&mut self, files: Vec<(Entry, Option<Known>)>) -> Result<()> {
        let mut asked = Vec::with_capacity(files.len());
        let mut requests = Vec::with_capacity(files.len());
        for (file, known) in files {
            match self.rules.request(self.bucket, &file) {
                Ok(mut request) => {
                    request.idempotency_key = Some(self.name(&file));
                    requests.push(request);
                    asked.push((file, known));
                }
                Err(error) => self.tally.fail(&file.key, &error),
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let policy = match self.bucket.unique_key {
            Some(_) => Policy::Upsert,
            None => Policy::Insert,
        };
        let made =
            objects::create_many(self.app, &self.scope, self.bucket, requests, policy).await?;
        let (mut kept, mut replaced, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
        for ((file, known), made) in asked.into_iter().zip(made) {
            let (object, outcome) = match made {
                Ok(made) => made,
                // The server itself is in trouble: the whole look is tried again.
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    self.tally.fail(&file.key, &error);
                    continue;
                }
            };
            self.tally.synced += 1;
            self.tally.bytes += i64::try_from(file.size).unwrap_or(i64::MAX);
            // The same content in an object that was there already makes none, and that one is not the sync's to remove.
            let object_id = match outcome {
                Outcome::Replayed => String::new(),
                _ => object.object_id.unwrap_or_default(),
            };
            if !object_id.is_empty() {
                fresh.push(object_id.clone());
            }
            let before = known.map(|known| known.object_id);
            replaced.extend(before.filter(|old| !old.is_empty() && *old != object_id));
            kept.push(Known {
                path: file.key,
                version: file.version,
                object_id,
            });
        }
        // In this order: what is kept is not looked at again, so it has to be on its way by then.
        self.process(fresh).await?;
        self.keep(kept, replaced).await
    }

    /// The name of a state of a file: a look that is done again after a crash finds the object that it made. A file that
    /// became again what it was before is another state: its object may hold what came between.
    fn name(&self, file: &Entry) -> String {
        let (sync_id, modified) = (&self.place.sync_id, file.modified);
        let state = format!("{sync_id}\n{}\n{}\n{modified}", file.key, file.version);
        hex::encode(Sha256::digest(state))
    }

    /// Remembers files with their objects; objects that they had before go.
    async fn keep(&self, kept: Vec<Known>, replaced: Vec<String>) -> Result<()> {
        let (place, bucket_id) = (self.place.clone(), self.place.bucket_id.clone());
        let (org_id, now) = (self.model.internal_id.clone(), self.app.clock().micros());
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    for file in &kept {
                        store::keep_file(tx, &place, file).await?;
                    }
                    let namespace_id = &place.namespace_id;
                    objects::remove_in(tx, &org_id, namespace_id, &bucket_id, &replaced, now).await
                })
            })
            .await
    }

    /// Files that are gone: their objects go where the sync says so.
    async fn gone(&mut self, gone: Vec<Known>) -> Result<()> {
        match &self.model.reconcile {
            Some(one) if !one.on_delete => Ok(()),
            _ => self.forget(gone).await,
        }
    }

    /// A file that the filters let in no more.
    async fn shut_out(&mut self, file: Option<Known>) -> Result<()> {
        match &self.model.reconcile {
            Some(one) if !one.on_filter_drift => Ok(()),
            _ => self.forget(file.into_iter().collect()).await,
        }
    }

    async fn forget(&mut self, gone: Vec<Known>) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        self.tally.removed += i64::try_from(gone.len()).unwrap_or(i64::MAX);
        let (place, bucket_id) = (self.place.clone(), self.place.bucket_id.clone());
        let (org_id, now) = (self.model.internal_id.clone(), self.app.clock().micros());
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let mut ids = Vec::with_capacity(gone.len());
                    for file in gone {
                        store::forget_file(tx, &place, &file.path).await?;
                        ids.extend(Some(file.object_id).filter(|id| !id.is_empty()));
                    }
                    let namespace_id = &place.namespace_id;
                    objects::remove_in(tx, &org_id, namespace_id, &bucket_id, &ids, now).await
                })
            })
            .await?;
        self.app.work.notify_one();
        Ok(())
    }

    async fn process(&mut self, object_ids: Vec<String>) -> Result<()> {
        if object_ids.is_empty() || self.model.skip_batch_submission {
            return Ok(());
        }
        let collections = &self.model.batch_collection_ids;
        let request = CreateBatchRequest {
            object_ids: Some(object_ids),
            collection_ids: (!collections.is_empty()).then(|| collections.clone()),
            auto_submit: Some(true),
            ..Default::default()
        };
        match batches::create(self.app, &self.scope, &self.place.bucket_id, request).await {
            Ok(batch) => self.tally.batches.extend(batch.batch_id),
            Err(error) if error.is_transient() => return Err(error),
            // The objects are there: a bucket without collections, or an exhausted quota, costs their processing alone.
            Err(error) => {
                let said = format!("the objects are not processed: {}", error.message());
                self.tally.error.get_or_insert(said);
            }
        }
        Ok(())
    }

    fn told(&self, status: SyncJobStatus, phase: &str) -> SyncJobModel {
        let (tally, now) = (&self.tally, self.app.clock().now());
        let began = self.job.started_at.unwrap_or(now);
        let minutes = (now - began).num_milliseconds() as f64 / 60_000.0;
        SyncJobModel {
            status: Some(status),
            phase: Some(phase.into()),
            total_files: Some(tally.discovered),
            files_synced: tally.synced,
            files_failed: tally.failed,
            files_verified: Some(tally.unchanged),
            updated_at: Some(now),
            error: tally.error.clone(),
            throughput_files_per_min: (minutes > 0.0).then(|| tally.synced as f64 / minutes),
            metadata: json!({
                "files_removed": tally.removed, "bytes_synced": tally.bytes, "batch_ids": tally.batches,
            })
            .as_object()
            .cloned(),
            ..self.job.clone()
        }
    }

    /// Tells how far the look is; false when its sync was removed.
    async fn tell(&self, cursor: &str) -> Result<bool> {
        let mut job = self.told(SyncJobStatus::Running, "listing");
        job.current_cursor = Some(cursor.to_owned());
        self.app
            .db()
            .write(move |tx| Box::pin(async move { store::update_job(tx, &job).await }))
            .await
    }

    /// Ends the look, and says when the next one is.
    async fn finish(self) -> Result<()> {
        let now = self.app.clock().micros();
        let mut job = self.told(SyncJobStatus::Completed, "done");
        job.completed_at = Some(clock::time(now));
        job.progress_percent = Some(100.0);
        let (place, tally) = (self.place.clone(), self.tally.clone());
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let job_id = job.sync_job_id.clone().unwrap_or_default();
                    if !store::end(tx, &place, &job_id).await? {
                        return Err(ApiError::not_found("sync", &place.sync_id));
                    }
                    store::update_job(tx, &job).await?;
                    let mut model = store::find_in(tx, &place).await?;
                    account(&mut model, &job, &tally, now);
                    store::update(tx, &model, now).await
                })
            })
            .await
    }
}
