//! One collection being filled from one chunk.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::StreamExt;
use loupe_engine::{
    embed::EmbedError,
    extract::Dropped,
    filter::Filter,
    ingest::{CollectionPlan, Failure, IngestError, NO_INPUT, ObjectInput, ObjectOutcome, root},
    store::{CollectionSpec, Document},
};
use loupe_wire::{CollectionResponse, ObjectResponse, Value};

use super::{
    Claim,
    holding::{Holding, Written},
    is_held, is_last_try, reading,
    slicing::Large,
    which_try,
};
use crate::{
    app::App,
    error::{ApiError, Result},
    limits::quota,
    list::parse_filter,
    v1::{
        batches::{
            ChunkEnd, LeftOut,
            store::{ObjectEnd, Processed},
            tell,
        },
        collections, documents, objects,
    },
};

/// What is noted of an object whose site was not crawled to its end.
const CUT_SHORT: &str = "the crawl was cut short: the site was busy, or time or requests ran out; documents of pages \
                         that were not read this time are kept";

/// The type of an object's end that the filter of its bucket did not let in, until the chunk ends.
pub(super) const REFUSED: &str = "refused";

/// Files read at once.
const READING: usize = 8;
/// Documents listed at once.
pub(super) const LISTED: usize = 1_000;

pub(super) struct Filling<'a> {
    pub app: &'a App,
    pub claim: &'a Claim,
    /// The objects of the chunk.
    pub holding: &'a Holding,
    pub batch_id: &'a str,
    pub namespace_id: &'a str,
    pub collection: &'a CollectionResponse,
    /// Objects that the collection was filled from before.
    pub again: HashSet<String>,
    /// Other collections of the tier are filled from the same objects.
    pub several: bool,
    /// What documents tell of the filter of the bucket, by their objects.
    pub notes: BTreeMap<String, Value>,
}

/// What was made of some objects or documents.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The documents, safely stored.
    pub ids: Vec<String>,
    /// The objects and documents that gave any, with how many.
    pub from: Vec<(String, i64)>,
}

/// Whether an object is of those that a collection takes.
pub(super) fn is_wanted(filter: Option<&Filter>, object: &ObjectResponse) -> bool {
    let Some(filter) = filter else { return true };
    serde_json::to_value(object).is_ok_and(|object| filter.matches(&object))
}

impl Filling<'_> {
    /// Which of its source the collection takes.
    pub fn source_filter(&self) -> Result<Option<Filter>> {
        let filters = self.collection.source.source_filters.as_ref();
        let filter = filters.and_then(|filters| filters.filters.as_ref());
        filter
            .map(|filter| parse_filter(&filter.0, "source_filters"))
            .transpose()
    }

    pub fn plan(&self) -> Result<CollectionPlan> {
        let spec = collections::spec(self.app, self.namespace_id, self.collection);
        let (org_id, extractor) = (&self.claim.org_id, &self.collection.feature_extractor);
        let extractor = collections::headers::opened(self.app, org_id, extractor)?;
        let outputs = self.app.outputs();
        let mut plan = CollectionPlan::new(spec, org_id, &extractor, outputs)
            .map_err(|error| ApiError::bad_request("", error.0))?;
        plan.batch_id = Some(self.batch_id.to_owned());
        Ok(plan)
    }

    /// Makes and stores the documents of objects and notes them in `end`.
    pub async fn with_objects(
        &self,
        objects: Vec<(ObjectResponse, String)>,
        end: &mut ChunkEnd,
    ) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let plan = self.plan()?;
        let collection_id = plan.spec.collection_id.clone();
        let (mut ids, mut done) = (Vec::new(), Vec::new());
        let weight = |object: &ObjectResponse| self.weight(&plan, self.size(object));
        for group in reading::groups(objects, |(object, _)| weight(object)) {
            let hashes: BTreeMap<String, String> = group
                .iter()
                .map(|(object, hash)| (object.object_id.clone().unwrap_or_default(), hash.clone()))
                .collect();
            let files = group.iter().map(|(object, _)| self.size(object));
            let _room = reading::room(files.fold(0, i64::saturating_add)).await;
            let inputs = self.read_files(group, &mut end.objects).await?;
            let made = self.make(&plan, inputs, &BTreeMap::new(), end).await?;
            done.extend(made.from.iter().map(|(object_id, _)| object_id.clone()));
            let processed = made
                .from
                .into_iter()
                .map(|(object_id, documents)| Processed {
                    content_hash: match end
                        .cut_short
                        .contains(&(collection_id.clone(), object_id.clone()))
                    {
                        // The next batch goes on where this one could not.
                        true => String::new(),
                        false => hashes.get(&object_id).cloned().unwrap_or_default(),
                    },
                    documents,
                    collection_id: collection_id.clone(),
                    object_id,
                });
            end.processed.extend(processed);
            ids.extend(made.ids);
        }
        let whole = |id: &String| {
            // What could not be read this time is not gone.
            let one = (collection_id.clone(), id.clone());
            !end.cut_short.contains(&one)
        };
        let done: Vec<String> = done.into_iter().filter(whole).collect();
        self.remove_stale(&done, &ids, end).await?;
        end.written.push((collection_id, ids));
        Ok(())
    }

    /// Takes objects that a filter does not let in out of the collection.
    pub async fn refuse(&self, refused: Vec<(String, String)>, end: &mut ChunkEnd) -> Result<()> {
        let ids: Vec<String> = refused.iter().map(|(id, _)| id.clone()).collect();
        self.remove_stale(&ids, &[], end).await?;
        for (object_id, reason) in refused {
            let mut ends = end.objects.iter_mut();
            if let Some(object) = ends.find(|object| object.object_id == object_id)
                && object.status == "PENDING"
            {
                object.error = Some(reason);
                object.error_type = Some(REFUSED.into());
            }
            let mut what = Dropped::default();
            what.add_others("object, by an ingest_filter", 1);
            end.left_out.push(LeftOut {
                collection_id: self.collection_id().to_owned(),
                object_id: object_id.clone(),
                what,
            });
            // It is no longer as it was when the collection was filled from it.
            if self.again.contains(&object_id) {
                end.processed.push(Processed {
                    object_id,
                    collection_id: self.collection_id().to_owned(),
                    content_hash: String::new(),
                    documents: 0,
                });
            }
        }
        Ok(())
    }

    /// Makes and stores the documents of what fits into memory together. `roots` tells what documents belong to that are
    /// read in place of objects.
    pub async fn make(
        &self,
        plan: &CollectionPlan,
        inputs: Vec<ObjectInput>,
        roots: &BTreeMap<String, String>,
        end: &mut ChunkEnd,
    ) -> Result<Made> {
        let app = self.app;
        let attempt = which_try(self.claim);
        let mut outcomes = self.run(plan, inputs, attempt).await?;
        crate::fail_point!("batch.after_extract");
        documents::hold_back(self.collection, &mut outcomes)?;
        quota::hold_back(app, &self.claim.org_id, &plan.spec, &mut outcomes).await?;
        let (mut documents, mut made, mut large) = (Vec::new(), Made::default(), Vec::new());
        for mut outcome in outcomes {
            let root = roots.get(&outcome.object_id).cloned();
            if let Some(sliced) = outcome.sliced.take() {
                large.push((outcome, sliced, root));
                continue;
            }
            let taken = self.take(plan, outcome, root, end).await?;
            let Some((from, its)) = taken else {
                continue;
            };
            made.from
                .push((from, i64::try_from(its.len()).unwrap_or(0)));
            documents.extend(its);
        }
        crate::fail_point!("batch.after_files");
        made.ids = self.keep(plan, documents).await?;
        for (outcome, sliced, root) in large {
            let walked = Large {
                outcome,
                sliced,
                root,
                attempt,
            };
            self.make_large(plan, walked, end, &mut made).await?;
        }
        Ok(made)
    }

    /// Writes documents of objects that nobody else writes of.
    pub async fn write(&self, spec: CollectionSpec, documents: Vec<Document>) -> Result<()> {
        if documents.is_empty() {
            return self.check_held().await;
        }
        let roots: BTreeSet<String> = documents.iter().map(|one| root(one).to_owned()).collect();
        let app = self.app.clone();
        let write = async move {
            let ids = documents.iter().map(|one| &one.document_id);
            let _turn = app.writers.turn(ids).await;
            // Nothing that was written through the API before comes over what is written now, also of what came a moment ago.
            documents::settle(&app, &spec.namespace_id, &spec.collection_id).await?;
            let written = app.store().upsert(&spec, documents).await;
            written.map_err(ApiError::from)
        };
        self.holding
            .write(self.written(roots.into_iter().collect()), write)
            .await
    }

    pub fn collection_id(&self) -> &str {
        self.collection.collection_id.as_deref().unwrap_or_default()
    }

    pub fn written(&self, object_ids: Vec<String>) -> Written {
        Written {
            namespace_id: self.namespace_id.to_owned(),
            collection_id: self.collection_id().to_owned(),
            batch_id: self.batch_id.to_owned(),
            object_ids,
        }
    }

    /// Keeps the files made on the way and notes how the object ended.
    pub async fn take(
        &self,
        plan: &CollectionPlan,
        outcome: ObjectOutcome,
        root: Option<String>,
        end: &mut ChunkEnd,
    ) -> Result<Option<(String, Vec<Document>)>> {
        let cut_short = outcome.cut_short;
        let document_id = root.as_ref().map(|_| outcome.object_id.clone());
        let object_id = root.unwrap_or_else(|| outcome.object_id.clone());
        let mut ends = end.objects.iter_mut();
        let Some(object) = ends.find(|object| object.object_id == object_id) else {
            return Ok(None);
        };
        match outcome.documents {
            // A document without the field is none of the next tier, as an object is none of one collection of several.
            Err(failure)
                if (self.several || document_id.is_some())
                    && failure.error.starts_with(NO_INPUT) =>
            {
                object.error.get_or_insert(failure.error);
                end.documents.without_input += i64::from(document_id.is_some());
                Ok(None)
            }
            Err(failure) => {
                self.fail(object, failure);
                object.document_id = document_id;
                Ok(None)
            }
            Ok(mut documents) => {
                if let Some(note) = self.notes.get(&object_id) {
                    documents.iter_mut().for_each(|one| mark(one, note));
                }
                for file in &outcome.generated {
                    reading::keep(self.app, file).await?;
                }
                if object.status == "PENDING" {
                    object.status = "COMPLETED";
                }
                if cut_short {
                    let collection_id = plan.spec.collection_id.clone();
                    object.error = Some(CUT_SHORT.into());
                    object.error_type = Some("transient".into());
                    end.cut_short.insert((collection_id, object_id));
                }
                if !outcome.dropped.is_empty() {
                    tell(object, &outcome.dropped);
                    end.left_out.push(LeftOut {
                        collection_id: plan.spec.collection_id.clone(),
                        object_id: object.object_id.clone(),
                        what: outcome.dropped,
                    });
                }
                object.documents += i64::try_from(documents.len()).unwrap_or(0);
                Ok(Some((outcome.object_id, documents)))
            }
        }
    }

    /// Notes that the collection got nothing of an object.
    fn fail(&self, object: &mut ObjectEnd, failure: Failure) {
        let mut error = failure.error;
        if self.again.contains(&object.object_id) {
            error += "; the collection keeps the documents of the object as it was before";
        }
        object.status = "FAILED";
        object.error = Some(error);
        object.error_type = Some(failure.error_type.to_owned());
        object.collection_id = Some(self.collection_id().to_owned());
    }

    /// Objects with their files' bytes; an object whose file is gone fails by itself.
    async fn read_files(
        &self,
        objects: Vec<(ObjectResponse, String)>,
        ends: &mut [ObjectEnd],
    ) -> Result<Vec<ObjectInput>> {
        let mut read = futures::stream::iter(objects)
            .map(|(object, hash)| async move {
                let input = self.read_object(object.clone(), hash).await;
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

    /// Refuses to write for a chunk that was canceled or given to another worker: asked right before each write, so that
    /// what is told to stop goes on for one step at most.
    pub async fn check_held(&self) -> Result<()> {
        match is_held(self.app.db(), self.claim).await? {
            true => Ok(()),
            false => Err(ApiError::conflict("", "the lease of this chunk was lost")),
        }
    }
}

/// Tells with a document what the filter of its bucket said.
pub(super) fn mark(document: &mut Document, note: &Value) {
    let internal = document.payload.entry("_internal");
    let internal = internal.or_insert_with(|| Value::Object(Default::default()));
    if let Some(internal) = internal.as_object_mut() {
        internal.insert("ingest_filter".into(), note.clone());
    }
}

/// Whether an extractor made the document.
pub(super) fn is_made(document: &Document) -> bool {
    let internal = document.payload.get("_internal");
    internal.is_some_and(|internal| internal.get("processing").is_some())
}

/// What the objects' owner reads when a whole chunk is given up.
pub(super) fn nothing_made(error: IngestError) -> ApiError {
    match error {
        IngestError::Model(error @ EmbedError::Failed(_)) => {
            ApiError::model_unavailable("", error.to_string()).retry_after(2)
        }
        IngestError::Away(message) => ApiError::model_unavailable("", message).retry_after(2),
        IngestError::Passing(message) => ApiError::unavailable("", message),
        IngestError::Model(error) => error.into(),
        IngestError::Stopped => ApiError::unavailable("", error.to_string()),
    }
}
