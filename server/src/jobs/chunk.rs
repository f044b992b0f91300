//! One chunk of a batch: read the objects, make their documents, store and flush them, then tell of it, in that order.

use std::collections::{BTreeMap, HashSet};

use futures::StreamExt;
use loupe_engine::{
    embed::EmbedError,
    filter::{Filter, Operator},
    ingest::{BlobInput, CollectionPlan, IngestError, NO_INPUT, ObjectInput, ObjectOutcome, Try},
    store::{Document, ListQuery, Reach, Selection},
};
use loupe_wire::{BatchModel, BlobModel, CollectionResponse, DedupStrategy, ObjectResponse, Value};

use super::{Claim, is_last_try, text};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result},
    v1::{
        batches::{
            self, ChunkEnd,
            store::{self, ObjectEnd, Processed},
        },
        collections::{self, COLLECTIONS},
        objects, tasks, taxonomies,
    },
};

/// Files read at once.
const READING: usize = 8;
/// Bytes of files in memory at once, for each worker. A larger object is alone there.
const BYTES_AT_ONCE: i64 = 128 << 20;
/// Documents listed at once when those of an earlier run are looked for.
const LISTED: usize = 1_000;

struct Chunk {
    batch_id: String,
    batch: BatchModel,
    namespace_id: String,
    /// Positions in the batch, the second one excluded.
    from: i64,
    to: i64,
    /// Ids of the objects that have not ended.
    pending: Vec<String>,
}

async fn load(app: &App, claim: &Claim) -> Result<Chunk> {
    let batch_id = text(claim, "batch_id").to_owned();
    let number = |member: &str| claim.work.get(member).and_then(Value::as_i64).unwrap_or(0);
    let (from, to) = (number("from"), number("to"));
    let found = store::read_from(app.db(), &batch_id).await?;
    let (batch, _, namespace_id) = found.ok_or_else(|| ApiError::not_found("batch", &batch_id))?;
    let span = store::span(app.db(), &batch_id, from, to).await?;
    let pending = span
        .into_iter()
        .filter(|(_, status)| status == "PENDING")
        .map(|(id, _)| id)
        .collect();
    Ok(Chunk {
        batch_id,
        batch,
        namespace_id,
        from,
        to,
        pending,
    })
}

/// Runs one chunk.
///
/// # Errors
/// Whatever keeps the whole chunk from being done; single objects fail by themselves.
pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let chunk = load(app, claim).await?;
    let Chunk {
        batch_id,
        namespace_id,
        from,
        to,
        ..
    } = &chunk;
    let found = store::chunk_objects(app.db(), batch_id, namespace_id, *from, *to).await?;
    let mut end = ChunkEnd {
        objects: chunk.pending.iter().map(|id| gone(id, &found)).collect(),
        ..Default::default()
    };
    let strategy = chunk
        .batch
        .effective_dedup_strategy
        .unwrap_or(DedupStrategy::Skip);
    let several = chunk
        .batch
        .collection_ids
        .as_ref()
        .is_some_and(|ids| ids.len() > 1);
    // Objects that some collection was filled from before, and is not filled from again.
    let mut done: HashSet<String> = HashSet::new();
    for collection_id in chunk.batch.collection_ids.iter().flatten() {
        let record = match COLLECTIONS
            .find(app.db(), namespace_id, collection_id)
            .await
        {
            Ok(record) => record,
            // Deleted since the batch was submitted: nothing to fill.
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let before = store::processed(app.db(), batch_id, collection_id, *from, *to).await?;
        let is_done = |object: &ObjectResponse, hash: &String| {
            let id = object.object_id.as_deref().unwrap_or_default();
            strategy == DedupStrategy::Skip
                && before
                    .iter()
                    .any(|(done, content)| done == id && content == hash)
        };
        let (passed, todo): (Vec<_>, Vec<_>) = found
            .iter()
            .cloned()
            .partition(|(object, hash)| is_done(object, hash));
        done.extend(
            passed
                .into_iter()
                .filter_map(|(object, _)| object.object_id),
        );
        let again = before.iter().map(|(id, _)| id.clone()).collect();
        Filling {
            app,
            claim,
            namespace_id,
            collection: &record.data.0,
            again,
            several,
        }
        .fill(todo, &mut end)
        .await?;
    }
    for object in &mut end.objects {
        settle(object, done.contains(&object.object_id));
    }
    app.store().flush().await?;
    batches::end_chunk(app, claim, batch_id, end).await
}

/// Where an object stands after the last collection: one that none took although some were to fails for the reason noted
/// on the way, one that is unchanged is passed over.
fn settle(object: &mut ObjectEnd, is_done: bool) {
    match object.status {
        "PENDING" if object.error.is_some() && !is_done => {
            object.status = "FAILED";
            object.error_type = Some("permanent".into());
        }
        "PENDING" => {
            object.status = "SKIPPED";
            object.error = None;
        }
        "COMPLETED" => object.error = None,
        _ => {}
    }
}

/// Where an object stands before any collection was filled.
fn gone(id: &str, found: &[(ObjectResponse, String)]) -> ObjectEnd {
    let known = found
        .iter()
        .any(|(object, _)| object.object_id.as_deref() == Some(id));
    ObjectEnd {
        object_id: id.to_owned(),
        status: if known { "PENDING" } else { "FAILED" },
        error: (!known).then(|| "the object was deleted before it was processed".to_owned()),
        error_type: (!known).then(|| "permanent".to_owned()),
        collection_id: None,
        documents: 0,
    }
}

/// One collection being filled from one chunk.
struct Filling<'a> {
    app: &'a App,
    claim: &'a Claim,
    namespace_id: &'a str,
    collection: &'a CollectionResponse,
    /// Objects that the collection was filled from before.
    again: Vec<String>,
    /// Other collections are filled from the same objects.
    several: bool,
}

impl Filling<'_> {
    /// Makes and stores the documents and notes them in `end`.
    async fn fill(&self, objects: Vec<(ObjectResponse, String)>, end: &mut ChunkEnd) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let app = self.app;
        let spec = collections::spec(app, self.namespace_id, self.collection);
        let plan = CollectionPlan::new(
            spec.clone(),
            &self.claim.org_id,
            &self.collection.feature_extractor,
            app.outputs(),
        )
        .map_err(|error| ApiError::bad_request("", error.0))?;
        let mut ids = Vec::new();
        for group in groups(objects) {
            ids.extend(self.make(&plan, group, end).await?);
        }
        self.remove_stale(&spec.collection_id, &ids, end).await?;
        end.written.push((spec.collection_id, ids));
        Ok(())
    }

    /// Makes and stores the documents of objects that fit into memory together; answers their ids.
    async fn make(
        &self,
        plan: &CollectionPlan,
        objects: Vec<(ObjectResponse, String)>,
        end: &mut ChunkEnd,
    ) -> Result<Vec<String>> {
        let (app, collection_id) = (self.app, &plan.spec.collection_id);
        let inputs = self.read_files(objects, &mut end.objects).await?;
        let hashes: BTreeMap<String, String> = inputs
            .iter()
            .map(|input| {
                let hash = input.content_hash.clone().unwrap_or_default();
                (input.object_id.clone(), hash)
            })
            .collect();
        let attempt = match is_last_try(self.claim) {
            true => Try::Last,
            false => Try::More,
        };
        let outcomes = app
            .ingest()
            .run(plan, inputs, &app.clock().now().to_rfc3339(), attempt)
            .await
            .map_err(nothing_made)?;
        let mut documents = Vec::new();
        for outcome in outcomes {
            let taken = self.take(outcome, collection_id, &mut end.objects).await?;
            let Some((object_id, made)) = taken else {
                continue;
            };
            end.processed.push(Processed {
                content_hash: hashes.get(&object_id).cloned().unwrap_or_default(),
                documents: i64::try_from(made.len()).unwrap_or(0),
                collection_id: collection_id.clone(),
                object_id,
            });
            documents.extend(made);
        }
        let tried_again = !is_last_try(self.claim);
        let copies = taxonomies::at_ingest(
            app,
            &Caller::system(&self.claim.org_id),
            self.namespace_id,
            self.collection,
            &mut documents,
            tried_again,
        )
        .await?;
        let ids = documents
            .iter()
            .map(|document| document.document_id.clone())
            .collect();
        app.store().upsert(&plan.spec, documents).await?;
        taxonomies::keep(app, &self.claim.org_id, copies).await?;
        Ok(ids)
    }

    /// Keeps the files made on the way and notes how the object ended.
    async fn take(
        &self,
        outcome: ObjectOutcome,
        collection_id: &str,
        ends: &mut [ObjectEnd],
    ) -> Result<Option<(String, Vec<Document>)>> {
        let same = |end: &&mut ObjectEnd| end.object_id == outcome.object_id;
        let Some(end) = ends.iter_mut().find(same) else {
            return Ok(None);
        };
        match outcome.documents {
            Err(failure) if self.several && failure.error.starts_with(NO_INPUT) => {
                end.error.get_or_insert(failure.error);
                Ok(None)
            }
            Err(failure) => {
                let mut error = failure.error;
                if self.again.contains(&outcome.object_id) {
                    error += "; the collection keeps the documents of the object as it was before";
                }
                end.status = "FAILED";
                end.error = Some(error);
                end.error_type = Some(failure.error_type.to_owned());
                end.collection_id = Some(collection_id.to_owned());
                Ok(None)
            }
            Ok(documents) => {
                for file in outcome.generated {
                    self.app.blobs().put(&file.key, file.bytes).await?;
                }
                if end.status == "PENDING" {
                    end.status = "COMPLETED";
                }
                end.documents += i64::try_from(documents.len()).unwrap_or(0);
                Ok(Some((outcome.object_id, documents)))
            }
        }
    }

    /// Objects with their files' bytes; an object whose file is gone fails by itself.
    async fn read_files(
        &self,
        objects: Vec<(ObjectResponse, String)>,
        ends: &mut [ObjectEnd],
    ) -> Result<Vec<ObjectInput>> {
        let app = self.app;
        let mut read = futures::stream::iter(objects)
            .map(|(object, hash)| async move {
                let input = read_object(app, object.clone(), hash).await;
                (object, input)
            })
            .buffered(READING);
        let mut inputs = Vec::new();
        while let Some((object, input)) = read.next().await {
            match input {
                Ok(input) => inputs.push(input),
                Err(error) if error.is_not_found() => self.gone(&object, ends).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(inputs)
    }

    /// A file was not there. Where the object has other files by now, the chunk is done again with those.
    async fn gone(&self, object: &ObjectResponse, ends: &mut [ObjectEnd]) -> Result<()> {
        let id = object.object_id.as_deref().unwrap_or_default();
        let db = self.app.db();
        let now = objects::store::find_anywhere(db, self.namespace_id, id).await?;
        let keys = |object: &ObjectResponse| objects::blobs::keys(object).collect::<Vec<_>>();
        let (error, kind) = match now {
            None => (
                "the object was deleted before it was processed",
                "permanent",
            ),
            Some(now) if keys(&now) == keys(object) => {
                ("a file of the object is gone", "permanent")
            }
            Some(_) if is_last_try(self.claim) => (
                "the object's files changed each time it was processed",
                "transient",
            ),
            Some(_) => {
                let message = "files of an object changed while it was processed";
                return Err(ApiError::unavailable("", message));
            }
        };
        if let Some(end) = ends.iter_mut().find(|end| end.object_id == id) {
            end.status = "FAILED";
            end.error = Some(error.into());
            end.error_type = Some(kind.into());
        }
        Ok(())
    }

    /// Documents of an earlier run that this one did not write again: a shorter text has fewer chunks.
    async fn remove_stale(
        &self,
        collection_id: &str,
        ids: &[String],
        end: &ChunkEnd,
    ) -> Result<()> {
        let done = |id: &&String| {
            end.processed
                .iter()
                .any(|one| one.object_id == **id && one.collection_id == collection_id)
        };
        let objects: Vec<Value> = self
            .again
            .iter()
            .filter(done)
            .map(|id| id.as_str().into())
            .collect();
        if objects.is_empty() {
            return Ok(());
        }
        let written: HashSet<&String> = ids.iter().collect();
        let reach = Reach {
            namespace_id: self.namespace_id.to_owned(),
            collection_ids: vec![collection_id.to_owned()],
            principal: None,
        };
        let root = "_internal.lineage.root_object_id";
        let mut query = ListQuery {
            filter: Some(Filter::leaf(root, Operator::In, Value::Array(objects))),
            limit: LISTED,
            ..Default::default()
        };
        let mut stale = Vec::new();
        loop {
            let page = self.app.store().list(&reach, query.clone()).await?;
            let listed = page.documents.into_iter().map(|one| one.document_id);
            stale.extend(listed.filter(|id| !written.contains(id)));
            if page.next.is_none() {
                break;
            }
            query.cursor = page.next;
        }
        if !stale.is_empty() {
            let which = Selection::Ids(stale);
            self.app.store().delete(&reach, which).await?;
        }
        Ok(())
    }
}

/// Objects in their order, cut where the files of a group would become too much. An object is never cut.
fn groups(objects: Vec<(ObjectResponse, String)>) -> Vec<Vec<(ObjectResponse, String)>> {
    let mut groups: Vec<Vec<_>> = Vec::new();
    let mut bytes = 0;
    for object in objects {
        let size = size(&object.0);
        match groups.last_mut() {
            Some(group) if bytes + size <= BYTES_AT_ONCE => group.push(object),
            _ => {
                bytes = 0;
                groups.push(vec![object]);
            }
        }
        bytes += size;
    }
    groups
}

/// Bytes of all files of an object.
fn size(object: &ObjectResponse) -> i64 {
    let blobs = object.blobs.iter();
    blobs
        .filter_map(|blob| blob.details.as_ref()?.size_bytes)
        .fold(0, i64::saturating_add)
}

/// What the objects' owner reads when a whole chunk is given up.
fn nothing_made(error: IngestError) -> ApiError {
    match error {
        IngestError::Model(error @ EmbedError::Failed(_)) => {
            ApiError::model_unavailable("", error.to_string())
        }
        IngestError::Model(error) => error.into(),
        IngestError::Stopped => ApiError::unavailable("", error.to_string()),
    }
}

async fn read_object(app: &App, object: ObjectResponse, hash: String) -> Result<ObjectInput> {
    let mut blobs = Vec::with_capacity(object.blobs.len());
    for blob in &object.blobs {
        blobs.push(read_blob(app, blob).await?);
    }
    Ok(ObjectInput {
        object_id: object.object_id.unwrap_or_default(),
        bucket_id: object.bucket_id,
        fields: object.extra,
        content_hash: Some(hash),
        blobs,
    })
}

async fn read_blob(app: &App, blob: &BlobModel) -> Result<BlobInput> {
    let key =
        objects::blobs::key(blob).ok_or_else(|| ApiError::not_found("blob", &blob.property))?;
    let details = blob.details.clone().unwrap_or_default();
    Ok(BlobInput {
        blob_id: blob.blob_id.clone().unwrap_or_default(),
        property: blob.property.clone(),
        kind: tasks::name_of(blob.r#type),
        filename: details.filename,
        mime: details.mime_type,
        url: format!("blob://{key}"),
        bytes: app.blobs().get(key).await?,
    })
}

/// Ends a chunk that cannot be done: its unfinished objects failed for this reason.
pub(super) async fn give_up(app: &App, claim: &Claim, reason: &str, kind: &str) -> Result<()> {
    let chunk = load(app, claim).await?;
    batches::fail_chunk(app, claim, &chunk.batch_id, chunk.pending, reason, kind).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_that_are_in_memory_together_are_not_too_many() {
        let object = |mebibytes: i64| {
            let blob = json!({"property": "file", "type": "video", "details": {"size_bytes": mebibytes << 20}});
            let object = json!({"bucket_id": "bkt_1", "blobs": [blob]});
            (serde_json::from_value(object).unwrap(), String::new())
        };
        let sizes = [1, 100, 27, 1, 500, 500, 64, 64, 0, 1];
        let groups: Vec<Vec<i64>> = groups(sizes.map(object).to_vec())
            .iter()
            .map(|group| group.iter().map(|(one, _)| size(one) >> 20).collect())
            .collect();
        let expected = [
            vec![1, 100, 27],
            vec![1],
            vec![500],
            vec![500],
            vec![64, 64, 0],
            vec![1],
        ];
        assert_eq!(groups, expected);
    }
}
