//! One chunk of a tier of a batch: read what the tier is made from, make its documents, store and flush them, then tell
//! of it, in that order.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use loupe_wire::{
    BatchModel, BatchType, CollectionResponse, DedupStrategy, ObjectResponse, SourceType,
    TaskStatusEnum, Value,
};

use super::{
    Claim,
    admitting::{Admission, Hashed},
    filling::{Filling, REFUSED, is_wanted},
    holding::{self, Holding},
    text,
};
use crate::{
    app::App,
    error::{ApiError, Result},
    v1::{
        batches::{
            self, ChunkEnd,
            store::{self, ObjectEnd, Span},
        },
        collections::{
            COLLECTIONS,
            lifecycle::{is_active, is_away},
        },
        tasks,
    },
};

struct Chunk {
    batch: BatchModel,
    namespace_id: String,
    span: Span,
    /// Ids of the objects that wait for this tier.
    pending: Vec<String>,
}

impl Chunk {
    async fn load(app: &App, claim: &Claim) -> Result<Self> {
        let number = |member: &str| claim.work.get(member).and_then(Value::as_i64).unwrap_or(0);
        let span = Span {
            batch_id: text(claim, "batch_id").to_owned(),
            from: number("from"),
            to: number("to"),
            tier: number("tier"),
        };
        let found = store::read_from(app.db(), &span.batch_id).await?;
        let (batch, _, namespace_id) =
            found.ok_or_else(|| ApiError::not_found("batch", &span.batch_id))?;
        Ok(Self {
            pending: store::pending(app.db(), &span).await?,
            batch,
            namespace_id,
            span,
        })
    }

    /// The namespace and the bucket.
    fn place(&self) -> (&str, &str) {
        (self.namespace_id.as_str(), self.batch.bucket_id.as_str())
    }

    /// Whether the collection's job was canceled: it gets nothing more of the batch.
    fn is_canceled(&self, collection_id: &str) -> bool {
        let tiers = self.batch.tier_tasks.iter();
        let here = tiers.filter(|tier| tier.tier_num == self.span.tier);
        let mut jobs = here.flat_map(|tier| &tier.extractor_jobs);
        jobs.any(|job| {
            job.status == TaskStatusEnum::Canceled
                && job.collection_ids.iter().any(|id| id == collection_id)
        })
    }

    /// The collections that this tier fills and that are there still.
    async fn collections(&self, app: &App) -> Result<Vec<CollectionResponse>> {
        let tier = usize::try_from(self.span.tier).unwrap_or(0);
        let tiers = self.batch.dag_tiers.as_ref();
        let ids = tiers.and_then(|tiers| tiers.get(tier));
        let mut found = Vec::new();
        for id in ids
            .or(self.batch.collection_ids.as_ref())
            .into_iter()
            .flatten()
            .filter(|id| !self.is_canceled(id))
        {
            match COLLECTIONS.find(app.db(), &self.namespace_id, id).await {
                // Of a source that is put away nothing can be read: what was made of it would seem to have lost it.
                Ok(record) if is_active(&record) => match self.lacks_source(app, &record).await? {
                    true => {}
                    false => found.push(record.data.0),
                },
                // Brought into another state since: it gets nothing.
                Ok(_) => {}
                // Deleted since the batch was submitted: nothing to fill.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Whether a collection that it reads is put away.
    async fn lacks_source(&self, app: &App, collection: &CollectionResponse) -> Result<bool> {
        for id in collection.source.collection_ids.iter().flatten() {
            match COLLECTIONS.find(app.db(), &self.namespace_id, id).await {
                Ok(source) if is_away(&source) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

fn reads_documents(collection: &CollectionResponse) -> bool {
    collection.source.r#type == SourceType::Collection
}

/// Until a chunk asks again for objects that another one has in work.
const BUSY: Duration = Duration::from_millis(500);

/// Runs one chunk, once nobody else has its objects in work.
///
/// # Errors
/// Whatever keeps the whole chunk from being done; single objects fail by themselves.
pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    crate::fail_point!("batch.after_claim");
    let chunk = Chunk::load(app, claim).await?;
    let Some(holding) = Holding::take(app, claim, chunk.place(), &chunk.pending).await? else {
        return holding::postpone(app, claim, BUSY).await;
    };
    let end = tokio::select! {
        end = process(app, claim, &chunk, &holding) => end?,
        error = holding.lost() => return Err(error),
    };
    app.store().flush().await?;
    crate::fail_point!("batch.after_docstore_flush");
    batches::end_chunk(app, claim, &chunk.span.batch_id, end).await?;
    holding.over();
    Ok(())
}

/// Fills the collections of the tier.
async fn process(app: &App, claim: &Claim, chunk: &Chunk, holding: &Holding) -> Result<ChunkEnd> {
    // What the objects are is read after they were taken: whoever had them before has ended.
    let collections = chunk.collections(app).await?;
    let of_objects = chunk.batch.r#type == BatchType::Bucket
        && (chunk.span.tier == 0 && !collections.iter().all(reads_documents));
    let found = match of_objects {
        true => store::chunk_objects(app.db(), &chunk.namespace_id, &chunk.span).await?,
        false => Vec::new(),
    };
    let start = |id: &String| match of_objects {
        true => gone(id, &found),
        false => waiting(id),
    };
    let mut end = ChunkEnd {
        tier: chunk.span.tier,
        objects: chunk.pending.iter().map(start).collect(),
        holder: holding.holder().to_owned(),
        ..Default::default()
    };
    let mut admission = Admission::of(app, claim, chunk.place()).await?;
    // Objects that some collection was filled from before, and is not filled from again.
    let mut done: HashSet<String> = HashSet::new();
    for collection in &collections {
        let id = collection.collection_id.as_deref().unwrap_or_default();
        let before = store::processed(app.db(), &chunk.namespace_id, id, &chunk.span).await?;
        let filling = Filling {
            app,
            claim,
            holding,
            batch_id: &chunk.span.batch_id,
            namespace_id: &chunk.namespace_id,
            collection,
            again: before.iter().map(|(id, _)| id.clone()).collect(),
            several: collections.len() > 1,
            notes: BTreeMap::new(),
        };
        let strategy = chunk.batch.effective_dedup_strategy;
        let is_done = |id: &str, hash: &str| {
            // What a retriever finds changes without what it is run for.
            collection.retriever_transform.is_none()
                && strategy.unwrap_or(DedupStrategy::Skip) == DedupStrategy::Skip
                && before
                    .iter()
                    .any(|(done, content)| done == id && content == hash)
        };
        let unchanged = match reads_documents(collection) {
            true => filling.with_documents(&is_done, &mut end).await?,
            false => with_objects(filling, &found, &is_done, &mut admission, &mut end).await?,
        };
        done.extend(unchanged);
    }
    for object in &mut end.objects {
        settle(object, done.contains(&object.object_id));
    }
    Ok(end)
}

/// Fills a collection from objects of its bucket, as far as its filter lets them in; answers those that are unchanged.
async fn with_objects(
    mut filling: Filling<'_>,
    found: &[(ObjectResponse, String)],
    is_done: &(dyn Fn(&str, &str) -> bool + Sync),
    admission: &mut Admission<'_>,
    end: &mut ChunkEnd,
) -> Result<HashSet<String>> {
    let id = |object: &ObjectResponse| object.object_id.clone().unwrap_or_default();
    let filter = filling.source_filter()?;
    let wanted = found
        .iter()
        .filter(|(object, _)| is_wanted(filter.as_ref(), object));
    let (unchanged, todo): (Hashed, Hashed) = wanted
        .cloned()
        .partition(|(object, hash)| is_done(&id(object), hash));
    let (todo, refused) = admission.split(todo).await?;
    filling.notes = admission.notes();
    filling.with_objects(todo, end).await?;
    filling.refuse(refused, end).await?;
    Ok(unchanged.iter().map(|(object, _)| id(object)).collect())
}

/// Where an object stands after the last collection: one that none took although some were to fails for the reason noted
/// on the way, one that is unchanged is passed over.
fn settle(object: &mut ObjectEnd, is_done: bool) {
    match object.status {
        // Of no collection but those that took it before.
        "PENDING" if object.error_type.as_deref() == Some(REFUSED) => {
            object.status = "SKIPPED";
            object.error_type = None;
        }
        "PENDING" if object.error.is_some() && !is_done => {
            object.status = "FAILED";
            object.error_type = Some("permanent".into());
        }
        "PENDING" => {
            object.status = "SKIPPED";
            object.error = None;
        }
        // Let into a collection by way of another one that had it before.
        "COMPLETED" if object.error_type.as_deref() == Some(REFUSED) => {
            object.error_type = Some("permanent".into());
        }
        // What has a type besides is a note that stays.
        "COMPLETED" if object.error_type.is_none() => object.error = None,
        _ => {}
    }
}

/// An object before any collection was filled.
fn waiting(id: &str) -> ObjectEnd {
    ObjectEnd {
        object_id: id.to_owned(),
        status: "PENDING",
        error: None,
        error_type: None,
        collection_id: None,
        document_id: None,
        documents: 0,
    }
}

/// The same, if the object is there still.
fn gone(id: &str, found: &[(ObjectResponse, String)]) -> ObjectEnd {
    let mut end = waiting(id);
    let known = |(object, _): &(ObjectResponse, String)| object.object_id.as_deref() == Some(id);
    if !found.iter().any(known) {
        end.status = "FAILED";
        end.error = Some("the object was deleted or disabled before it was processed".to_owned());
        end.error_type = Some("permanent".to_owned());
    }
    end
}

/// Ends a chunk that cannot be done: its unfinished objects failed for this reason.
pub(super) async fn give_up(app: &App, claim: &Claim, reason: &str, kind: &str) -> Result<()> {
    let chunk = match Chunk::load(app, claim).await {
        // Removed with its batch: there are no objects to tell it of.
        Err(error) if error.is_not_found() => return tasks::fail(app, claim, reason).await,
        chunk => chunk?,
    };
    let fail = |id: &String| ObjectEnd {
        status: "FAILED",
        error: Some(reason.to_owned()),
        error_type: Some(kind.to_owned()),
        ..waiting(id)
    };
    let end = ChunkEnd {
        tier: chunk.span.tier,
        objects: chunk.pending.iter().map(fail).collect(),
        ..Default::default()
    };
    batches::end_chunk(app, claim, &chunk.span.batch_id, end).await
}
