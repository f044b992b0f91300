//! Looking into a storage: its list beside what is known of it, both in the same order. What is new gets an object, what
//! changed gets another one, what is gone loses its own. A look that dies is done again and finds what it had done.

use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use loupe_wire::{
    BucketResponse, NamespaceOperation, SyncConfigurationModel, SyncJobModel, SyncJobStatus,
    SyncJobTrigger, TaskResponse, TaskStatusEnum, TaskType,
};
use serde_json::json;

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
        connections::{self, Entry},
        objects,
        tasks::{self, NewTask},
    },
};

/// The queue's word for a look into a storage.
pub const LOOK: &str = "sync_storage";

/// Microseconds between two words of a look that makes nothing.
const TELLING: i64 = 1_000_000;

/// How often a look that waits for its storage asks whether it is wanted still.
const WATCHED: Duration = Duration::from_secs(1);

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
    let mut model = store::hold(tx, place).await?;
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
    /// The next look has something to do at once.
    pub unfinished: bool,
}

impl Tally {
    pub fn fail(&mut self, path: &str, error: &ApiError) {
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
pub struct Look<'l> {
    pub app: &'l App,
    pub scope: Scope<Write>,
    pub bucket: &'l BucketResponse,
    pub place: Place,
    pub model: &'l SyncConfigurationModel,
    pub job: SyncJobModel,
    pub rules: Rules,
    pub full: bool,
    pub tally: Tally,
    /// When the look last told how far it is.
    told_at: i64,
    /// Its sync was paused meanwhile.
    stopped: bool,
}

/// What comes of waiting for a storage.
enum Step {
    Files(Vec<Entry>),
    /// The list is at its end.
    End,
    /// The sync was paused.
    Stop,
}

/// Whether a sync was paused since the look began: one that is paused already may be looked into when somebody asks for it.
fn is_stopped(model: &SyncConfigurationModel, job: &SyncJobModel) -> bool {
    model.paused && model.paused_at > job.started_at
}

/// Looks into a storage.
///
/// # Errors
/// The storage or the connection fails; what was made stays.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let place = place_of(claim);
    let model = store::find(app.db(), &place).await?;
    let job = store::find_job(app.db(), &place, text(claim, "job_id")).await?;
    if model.current_sync_run_id != job.sync_job_id {
        // It ended, and its process died before it ended the task, too.
        return match job.status {
            Some(SyncJobStatus::Failed) => {
                tasks::fail(app, claim, job.error.as_deref().unwrap_or_default()).await
            }
            _ => tasks::succeed(app, claim, Vec::new()).await,
        };
    }
    let scope: Scope<Write> = Scope::internal(
        Caller::system(&model.internal_id),
        place.namespace_id.clone(),
    );
    let operation = NamespaceOperation::WriteData;
    let bucket = objects::bucket(app, &scope, &place.bucket_id, operation).await?;
    let named = Some(model.connection_id.as_str());
    let (connection_id, access) = connections::for_s3(app, &scope.caller, named).await?;
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
        told_at: 0,
        stopped: false,
    };
    let walked = look.over(listing).await;
    note_use(app, &model.internal_id, &connection_id, &walked).await;
    walked?;
    let outputs = json!({
        "files_synced": look.tally.synced, "files_failed": look.tally.failed,
        "files_unchanged": look.tally.unchanged, "files_removed": look.tally.removed,
        "batch_ids": look.tally.batches,
    });
    look.finish().await?;
    tasks::succeed(app, claim, vec![outputs]).await
}

/// Has the connection tell how its storage did: what else a look fails of is not its fault.
async fn note_use(app: &App, org_id: &str, connection_id: &str, walked: &Result<()>) {
    let why = match walked {
        Ok(()) => None,
        Err(error) if connections::is_refused(error) => Some(error.message()),
        Err(_) => return,
    };
    connections::note_use(app, org_id, connection_id, why.as_deref()).await;
}

impl Look<'_> {
    /// Walks over the list and what is known side by side.
    async fn over(&mut self, listing: impl Stream<Item = Result<Entry>>) -> Result<()> {
        let size = usize::try_from(self.model.batch_size).unwrap_or(50);
        let mut listing = std::pin::pin!(listing.try_chunks(size).map_err(|error| error.1));
        let mut known = Memory::new(self.app, self.place.clone());
        let mut last = String::new();
        loop {
            let goes_on = match self.wait(&mut listing).await? {
                Step::Files(files) => self.compare(files, &mut known, &mut last).await?,
                Step::Stop => false,
                Step::End => break,
            };
            if !goes_on {
                self.stop();
                return Ok(());
            }
            if self.tally.synced >= self.model.max_objects_per_run {
                // The next look goes on: nothing is known of what lies behind.
                self.tally.unfinished = true;
                return Ok(());
            }
        }
        loop {
            let rest = known.rest().await?;
            if rest.is_empty() {
                return Ok(());
            }
            self.gone(rest).await?;
            if !self.tell(&last, false).await? {
                self.stop();
                return Ok(());
            }
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.tally.unfinished = true;
    }

    /// The next files of the list, unless the sync is paused or removed before they come.
    async fn wait(
        &self,
        listing: &mut (impl Stream<Item = Result<Vec<Entry>>> + Unpin),
    ) -> Result<Step> {
        loop {
            tokio::select! {
                files = listing.next() => {
                    return Ok(files.transpose()?.map_or(Step::End, Step::Files));
                }
                () = tokio::time::sleep(WATCHED) => {
                    let model = store::find(self.app.db(), &self.place).await?;
                    if model.current_sync_run_id != self.job.sync_job_id {
                        return Err(ApiError::not_found("sync", &self.place.sync_id));
                    }
                    if is_stopped(&model, &self.job) {
                        return Ok(Step::Stop);
                    }
                }
            }
        }
    }

    /// Does what the next files of the list ask for. False when the sync was paused.
    async fn compare(
        &mut self,
        files: Vec<Entry>,
        known: &mut Memory<'_>,
        last: &mut String,
    ) -> Result<bool> {
        let mut fresh = Vec::new();
        for file in files {
            // Deletions follow from the order: a storage that keeps none must not cost objects.
            if file.key <= *last {
                let message = "the storage does not list its files in order";
                return Err(ApiError::bad_request("", message));
            }
            last.clone_from(&file.key);
            let same = loop {
                let before = known.up_to(&file.key).await?;
                self.gone(before.gone).await?;
                if !before.more {
                    break before.same;
                }
            };
            if !self.rules.take(&file) {
                self.shut_out(same).await?;
                continue;
            }
            self.tally.discovered += 1;
            if self.is_unchanged(&file, same.as_ref()) {
                self.tally.unchanged += 1;
            } else {
                fresh.push((file, same));
            }
        }
        let made = !fresh.is_empty();
        self.make(fresh).await?;
        self.tell(last, made).await
    }

    fn is_unchanged(&self, file: &Entry, known: Option<&Known>) -> bool {
        let follows = self
            .model
            .reconcile
            .as_ref()
            .is_none_or(|one| one.on_update);
        known.is_some_and(|known| !self.full && (known.version == file.version || !follows))
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

    /// Tells how far the look is, at once where something was made, else once a second: a list is longer than what is new in
    /// it. False when its sync was paused.
    async fn tell(&mut self, cursor: &str, made: bool) -> Result<bool> {
        let now = self.app.clock().micros();
        if !made && now - self.told_at < TELLING {
            return Ok(true);
        }
        self.told_at = now;
        let mut job = self.told(SyncJobStatus::Running, "listing");
        job.current_cursor = Some(cursor.to_owned());
        let place = self.place.clone();
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let model = store::hold_for(tx, &place, &job).await?;
                    store::update_job(tx, &job).await?;
                    Ok(!is_stopped(&model, &job))
                })
            })
            .await
    }

    /// Ends the look, and says when the next one is.
    async fn finish(self) -> Result<()> {
        let now = self.app.clock().micros();
        let mut job = match self.stopped {
            true => self.told(SyncJobStatus::Interrupted, "paused"),
            false => self.told(SyncJobStatus::Completed, "done"),
        };
        job.completed_at = Some(clock::time(now));
        job.progress_percent = (!self.stopped).then_some(100.0);
        let (place, tally) = (self.place.clone(), self.tally.clone());
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let mut model = store::hold_for(tx, &place, &job).await?;
                    store::end(tx, &place, store::job_id(&job)).await?;
                    store::update_job(tx, &job).await?;
                    account(&mut model, &job, &tally, now);
                    store::update(tx, &model, now).await
                })
            })
            .await
    }
}
