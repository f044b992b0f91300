//! How a batch moves: admitted, its chunks ended, itself ended. Every step is one transaction.

use std::collections::{BTreeMap, BTreeSet};

use loupe_engine::extract::web_scraper;
use loupe_wire::{BatchModel, BatchType, TaskStatusEnum, TaskType, TierTaskInfo};
use serde_json::json;

use super::{
    dropping::{self, LeftOut},
    ending::{end_batch, end_tier},
    fillings::{self, Held, count_held},
    progress::{self, Ended},
    store::{self, ObjectEnd, Processed, Step},
    supervising,
};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{self, Claim},
    v1::{
        billing::{self, Ingested},
        namespaces::push_event,
        objects,
        tasks::{self, NewTask},
    },
};

/// The queue's word for a chunk of a batch.
pub const CHUNK: &str = "batch_chunk";

/// A chunk that reads pages of the web: a site takes up to an hour, nearly all of it waiting.
pub const CRAWL: &str = "batch_crawl";

/// Chunks of a tier that reads the web, at most: each is a row.
const CRAWLS: usize = 1_000;

/// The kind of a tier's chunks, and the objects of one: each site is work of its own, as far as that is not too much of it.
fn kind(batch: &BatchModel, tier: i64, objects: i64, chunk: usize) -> (&'static str, usize) {
    let mut tiers = batch.tier_tasks.iter().filter(|one| one.tier_num == tier);
    let crawls = tiers.any(|tier| {
        let mut jobs = tier.extractor_jobs.iter();
        jobs.any(|job| job.extractor_type == web_scraper::INFO.name)
    });
    let objects = usize::try_from(objects).unwrap_or(0);
    match crawls {
        true => (CRAWL, objects.div_ceil(CRAWLS).max(1)),
        false => (CHUNK, chunk.max(1)),
    }
}

/// Starts waiting batches, oldest first, while fewer than the configured number run. Called by the leader alone.
pub async fn admit(app: &App) -> Result<()> {
    let (limit, chunk, now) = (
        app.config().jobs.running_batches,
        app.config().jobs.chunk_objects,
        app.clock().micros(),
    );
    let limit = i64::try_from(limit).unwrap_or(1);
    let started = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut room = limit - store::working_in(tx).await?;
                let mut started = 0;
                for waiting in store::waiting_in(tx).await? {
                    if room <= 0 {
                        break;
                    }
                    start(tx, &waiting.batch_id, chunk, now).await?;
                    room -= 1;
                    started += 1;
                }
                Ok(started)
            })
        })
        .await?;
    if started > 0 {
        crate::fail_point!("batch.after_admit");
        app.work.notify_waiters();
    }
    Ok(())
}

/// Starts a batch that waits: with the first tier that an object waits for.
async fn start(tx: &mut Tx, batch_id: &str, chunk: usize, now: i64) -> Result<()> {
    store::lock(tx, batch_id, now).await?;
    let Some((mut batch, org_id, namespace_id)) = store::read(tx, batch_id).await? else {
        return Ok(());
    };
    // Canceled while it waited for the lock.
    if batch.status != TaskStatusEnum::Queued {
        return Ok(());
    }
    batch.status = TaskStatusEnum::Processing;
    let tier = store::next_tier(tx, batch_id).await?.unwrap_or(0);
    let owner = Owner {
        org_id,
        namespace_id,
    };
    start_tier(tx, &mut batch, &owner, tier, chunk, now).await
}

/// Whose a batch is.
pub(super) struct Owner {
    pub org_id: String,
    pub namespace_id: String,
}

/// Inserts the chunks of a tier, over all objects of the batch; answers how many. What does not wait for the tier is passed
/// over by the chunk that it lies in. The batch's task tells from now on how far it is.
pub(super) async fn insert_chunks(
    tx: &mut Tx,
    batch: &BatchModel,
    owner: &Owner,
    tier: i64,
    chunk: usize,
    now: i64,
) -> Result<i64> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let counts = store::counts(tx, &batch_id).await?;
    progress::show(tx, batch, &counts, now).await?;
    let total = counts.total;
    let (kind, chunk) = kind(batch, tier, total, chunk);
    let mut inserted = 0;
    for from in (0..total).step_by(chunk) {
        let to = from + i64::try_from(chunk).unwrap_or(1);
        let work = json!({"batch_id": batch_id, "from": from, "to": to, "tier": tier});
        let mut task = NewTask::work(
            &owner.org_id,
            &owner.namespace_id,
            TaskType::EngineObjectProcessing,
            kind,
            work,
        );
        task.parent_id.clone_from(&batch.task_id);
        tasks::insert(tx, task, now).await?;
        inserted += 1;
    }
    Ok(inserted)
}

/// Inserts the chunks of a tier and marks it running.
pub(super) async fn start_tier(
    tx: &mut Tx,
    batch: &mut BatchModel,
    owner: &Owner,
    tier: i64,
    chunk: usize,
    now: i64,
) -> Result<()> {
    insert_chunks(tx, batch, owner, tier, chunk, now).await?;
    let task_id = batch.task_id.clone().unwrap_or_default();
    batch.current_tier = Some(tier);
    batch.updated_at = Some(clock::time(now));
    for running in batch
        .tier_tasks
        .iter_mut()
        .filter(|one| one.tier_num == tier)
    {
        running.status = TaskStatusEnum::Processing;
        running.started_at = Some(clock::time(now));
        running.completed_at = None;
        let jobs = running.extractor_jobs.iter_mut();
        for job in jobs.filter(|job| job.status != TaskStatusEnum::Canceled) {
            job.status = TaskStatusEnum::Processing;
            job.started_at = Some(clock::time(now));
        }
    }
    store::update(tx, batch, now).await?;
    supervising::watch(tx, batch, now).await?;
    tasks::store::change(tx, &task_id, TaskStatusEnum::Processing, now, |task| {
        let data = task.additional_data.get_or_insert_default();
        data.insert("current_tier".into(), tier.into());
    })
    .await
}

/// Documents of the tier before that a chunk was made from.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceDocuments {
    pub found: i64,
    pub submitted: i64,
    /// Those that had nothing for the extractor.
    pub without_input: i64,
}

/// What a chunk gave: where each object ended, and the documents written into each collection.
#[derive(Debug, Clone, Default)]
pub struct ChunkEnd {
    pub tier: i64,
    pub objects: Vec<ObjectEnd>,
    /// Collection id and the ids of documents that are safely stored.
    pub written: Vec<(String, Vec<String>)>,
    /// Documents of earlier runs that were removed.
    pub deleted: i64,
    pub processed: Vec<Processed>,
    pub documents: SourceDocuments,
    /// Collections and objects of which not all could be read this time.
    pub cut_short: BTreeSet<(String, String)>,
    pub left_out: Vec<LeftOut>,
    /// Who holds the objects: the end lets go of them.
    pub holder: String,
}

/// Documents of one event: a chunk may have written a hundred thousand of one object.
const TOLD_AT_ONCE: usize = 5_000;

/// The code of what the last chunk of a batch ends in until the documents have been counted; no caller ever sees it.
pub(super) const UNCOUNTED: &str = "batch_uncounted";

/// Ends a chunk, fenced by its claim: a worker that lost its lease changes nothing. The last chunk of a tier starts the
/// next one, that of the last tier ends the batch.
pub async fn end_chunk(app: &App, claim: &Claim, batch_id: &str, end: ChunkEnd) -> Result<()> {
    let started = match write_end(app, claim, batch_id, end.clone(), None).await {
        Err(error) if error.has_code(UNCOUNTED) => {
            let held = count_held(app, batch_id).await?;
            crate::fail_point!("batch.after_count");
            write_end(app, claim, batch_id, end, Some(held)).await?
        }
        ended => ended?,
    };
    crate::fail_point!("batch.after_commit");
    if started {
        app.work.notify_waiters();
    }
    Ok(())
}

/// True when another tier was started.
async fn write_end(
    app: &App,
    claim: &Claim,
    batch_id: &str,
    end: ChunkEnd,
    held: Option<Held>,
) -> Result<bool> {
    let (claim, batch_id, now) = (claim.clone(), batch_id.to_owned(), app.clock().micros());
    let chunk = app.config().jobs.chunk_objects;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &batch_id, now).await?;
                if !jobs::finish(tx, &claim, TaskStatusEnum::Completed, now).await? {
                    return Err(ApiError::conflict("", "the lease of this chunk was lost"));
                }
                let let_go = jobs::let_go(tx, &end.holder).await?;
                if !end.holder.is_empty() && let_go < end.objects.len() as u64 {
                    let message = "objects of this chunk were taken over";
                    return Err(ApiError::unavailable("", message));
                }
                crate::fail_point!("batch.after_task_finish");
                let Some((mut batch, org_id, namespace_id)) = store::read(tx, &batch_id).await?
                else {
                    return Ok(false);
                };
                let owner = Owner {
                    org_id,
                    namespace_id,
                };
                let mut ended = note_end(tx, &mut batch, &owner, end, now).await?;
                // A chunk without anything to do may come after the last one that had.
                if batch.status != TaskStatusEnum::Processing {
                    return Ok(false);
                }
                ended.objects += stop_arrivals(tx, &batch, now).await?;
                let tier = batch.current_tier.unwrap_or(0);
                if store::waits_for(tx, &batch_id, tier).await? {
                    ended.show(tx, &batch, now).await?;
                    batch.updated_at = Some(clock::time(now));
                    store::update(tx, &batch, now).await?;
                    return Ok(false);
                }
                let counts = store::counts(tx, &batch_id).await?;
                progress::show(tx, &batch, &counts, now).await?;
                end_tier(tx, &mut batch, tier, now).await?;
                crate::fail_point!("batch.after_tier_end");
                go_on(tx, batch, &owner, held, chunk, now).await
            })
        })
        .await
}

/// Objects that came to a tier which was canceled before go no further; answers how many those are.
async fn stop_arrivals(tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<i64> {
    let batch_id = batch.batch_id.as_deref().unwrap_or_default();
    let canceled = |tier: &&TierTaskInfo| tier.status == TaskStatusEnum::Canceled;
    let mut stopped = 0;
    for tier in batch.tier_tasks.iter().filter(canceled) {
        stopped += store::cancel_tier(tx, batch_id, tier.tier_num, now).await?;
    }
    Ok(i64::try_from(stopped).unwrap_or(0))
}

/// What comes after a tier: the next one that an object waits for, or the end. True when a tier was started.
///
/// # Errors
/// [`UNCOUNTED`] at the end when what the collections hold was not counted.
pub(super) async fn go_on(
    tx: &mut Tx,
    mut batch: BatchModel,
    owner: &Owner,
    held: Option<Held>,
    chunk: usize,
    now: i64,
) -> Result<bool> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    match (store::next_tier(tx, &batch_id).await?, held) {
        (Some(tier), _) => {
            start_tier(tx, &mut batch, owner, tier, chunk, now).await?;
            crate::fail_point!("batch.after_tier_advance");
            Ok(true)
        }
        (None, None) => {
            let message = "the documents of the batch are to be counted first";
            Err(ApiError::conflict(UNCOUNTED, message))
        }
        (None, Some(held)) => {
            end_batch(tx, batch, owner, &held, now).await?;
            crate::fail_point!("batch.after_finish");
            Ok(false)
        }
    }
}

/// Writes what a chunk gave; answers how much of the batch has ended with it.
async fn note_end(
    tx: &mut Tx,
    batch: &mut BatchModel,
    owner: &Owner,
    end: ChunkEnd,
    now: i64,
) -> Result<Ended> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let namespace_id = &owner.namespace_id;
    let step = Step {
        tier: end.tier,
        is_last: end.tier + 1 >= batch.total_tiers,
        of_objects: batch.r#type == BatchType::Bucket,
    };
    let mut worked = Ingested {
        org_id: &owner.org_id,
        namespace_id,
        batch_id: &batch_id,
        objects: 0,
        documents: 0,
        filled: filled(&end.processed),
    };
    let mut ended = Ended::default();
    for object in &end.objects {
        let processed = store::end_object(tx, namespace_id, &batch_id, object, step, now).await?;
        worked.objects += i64::from(processed);
        worked.documents += object.documents;
        ended.note(object, step);
    }
    billing::note(tx, &worked, now).await?;
    for one in &end.processed {
        store::set_processed(tx, namespace_id, one, now).await?;
        let place = (namespace_id.as_str(), one.collection_id.as_str());
        fillings::end(tx, place, &one.object_id).await?;
    }
    crate::fail_point!("batch.after_object_mark");
    if step.of_objects {
        let made = end.objects.iter().filter(|one| one.documents > 0);
        let made = made.map(|one| one.object_id.clone()).collect();
        objects::shelving::withdraw(tx, &owner.org_id, namespace_id, made, now).await?;
    }
    for (collection_id, document_ids) in end.written.iter().filter(|(_, ids)| !ids.is_empty()) {
        for some in document_ids.chunks(TOLD_AT_ONCE) {
            tell_written(tx, batch, owner, collection_id, some, now).await?;
        }
        // Some of what was written of an object that failed is told of with the rest.
        let place = (namespace_id.as_str(), collection_id.as_str());
        for object in end.objects.iter().filter(|one| one.status == "FAILED") {
            fillings::told(tx, place, &batch_id, &object.object_id).await?;
        }
    }
    count_deleted(batch, end.tier, end.deleted);
    dropping::note(batch, end.tier, &end.left_out);
    crate::fail_point!("batch.after_event");
    count_sources(batch, end.tier, end.documents);
    Ok(ended)
}

/// How many objects each collection was filled from. Those that its bucket does not let in any more were not.
fn filled(processed: &[Processed]) -> BTreeMap<&str, i64> {
    let mut filled: BTreeMap<&str, i64> = BTreeMap::new();
    let made = processed
        .iter()
        .filter(|one| one.documents > 0 || !one.content_hash.is_empty());
    for one in made {
        *filled.entry(one.collection_id.as_str()).or_default() += 1;
    }
    filled
}

/// Adds to the figures of a tier the documents that one of its chunks was made from.
fn count_sources(batch: &mut BatchModel, tier: i64, read: SourceDocuments) {
    let add = |figure: &mut Option<i64>, more| *figure = Some(figure.unwrap_or(0) + more);
    let tiers = batch.tier_tasks.iter_mut();
    for tier in tiers.filter(|one| one.tier_num == tier && one.source_type == "collection") {
        add(&mut tier.source_documents_fetched, read.found);
        add(&mut tier.documents_submitted_to_engine, read.submitted);
        add(&mut tier.documents_missing_input_fields, read.without_input);
    }
}

/// Tells of documents that are safely stored, and counts them.
pub(super) async fn tell_written(
    tx: &mut Tx,
    batch: &mut BatchModel,
    owner: &Owner,
    collection_id: &str,
    document_ids: &[String],
    now: i64,
) -> Result<()> {
    let namespace_id = &owner.namespace_id;
    let payload = json!({
        "namespace_id": namespace_id, "collection_id": collection_id, "batch_id": batch.batch_id,
        "document_ids": document_ids, "count": document_ids.len(),
    });
    let kind = "collection.documents.written";
    push_event(tx, &owner.org_id, namespace_id, kind, payload, now).await?;
    count_written(batch, collection_id, document_ids.len());
    Ok(())
}

/// Adds to the documents that the batch has written into a collection.
fn count_written(batch: &mut BatchModel, collection_id: &str, documents: usize) {
    let jobs = batch
        .tier_tasks
        .iter_mut()
        .flat_map(|tier| &mut tier.extractor_jobs);
    for job in jobs.filter(|job| job.collection_ids.iter().any(|id| id == collection_id)) {
        let before = job.documents_written.unwrap_or(0);
        job.documents_written = Some(before + i64::try_from(documents).unwrap_or(0));
    }
}

/// Adds to the documents of earlier runs that the batch, and this tier of it, has removed.
fn count_deleted(batch: &mut BatchModel, tier: i64, documents: i64) {
    if documents == 0 {
        return;
    }
    let tiers = batch.tier_tasks.iter_mut();
    let of_tier = tiers.filter(|one| one.tier_num == tier);
    for deleted in of_tier
        .map(|one| &mut one.documents_deleted)
        .chain([&mut batch.documents_deleted])
    {
        *deleted = Some(deleted.unwrap_or(0) + documents);
    }
}
