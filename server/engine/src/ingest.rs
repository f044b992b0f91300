//! One chunk of a batch: objects in, documents with vectors and failures with reasons out.
//!
//! Files are decoded one by one in worker processes; embedding happens once for the whole chunk.

mod assemble;
mod embedding;
pub mod fields;
mod making;
mod mapping;
mod origin;
mod pages;
mod payload;
mod plan;
mod rows;
mod slices;
mod source;
mod structure;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::StreamExt;
use loupe_wire::{Object, Value};
use tokio::task::spawn_blocking;

pub use embedding::Try;
pub use mapping::check_mappings;
pub use origin::{Origin, root};
pub use plan::{CollectionPlan, PlanError};
pub use slices::{Slice, Sliced, Walk};

use crate::{
    embed::{EmbedError, Encoders},
    extract::{Claim, Data, Dropped, ErrorKind, ExtractError, Extraction, Params, Part},
    store::Document,
    web::Web,
};
use source::Piece;

/// Files decoded at once.
const DECODING: usize = 4;

/// A file of an object.
#[derive(Debug, Clone)]
pub struct BlobInput {
    pub blob_id: String,
    /// Name of the bucket's property.
    pub property: String,
    /// Type of the bucket's property, such as `image`.
    pub kind: String,
    pub filename: Option<String>,
    pub mime: Option<String>,
    /// `blob://…`, kept in the documents.
    pub url: String,
    pub bytes: Data,
    pub role: BlobRole,
}

/// What a file is to the object or document that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlobRole {
    /// As it was sent.
    #[default]
    Source,
    /// Made for the document: a scene, a copy in another format.
    Processed,
    Thumbnail,
}

/// An object of a bucket with its files, or a document of another collection that is read as one.
#[derive(Debug, Clone, Default)]
pub struct ObjectInput {
    /// The object's id, or that of the document.
    pub object_id: String,
    pub bucket_id: String,
    pub fields: Object,
    pub blobs: Vec<BlobInput>,
    pub content_hash: Option<String>,
    /// What the object says of its links to others; its documents keep it.
    pub edges: Vec<Value>,
    /// Where the document comes from; none for an object.
    pub origin: Option<Origin>,
    /// Tells what is made of it apart where several things are made from one object: results of a retriever that ran for it.
    pub result: Option<String>,
}

/// What the names of places begin with where a bucket may keep its files elsewhere. The key of such a file names the place
/// behind the namespace.
pub const PLACE: &str = "at_";

/// A file made on the way, to be stored under `key` before its document is.
#[derive(Debug, Clone)]
pub struct GeneratedBlob {
    pub key: String,
    pub content_type: String,
    pub bytes: Data,
}

/// How the failure of an object begins that has nothing for the extractor: another collection may take it.
pub const NO_INPUT: &str = "the object has nothing for the extractor's input";

/// Why an object gave no documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub error: String,
    /// transient, permanent or resource.
    pub error_type: &'static str,
}

/// What became of one object.
#[derive(Debug)]
pub struct ObjectOutcome {
    pub object_id: String,
    pub documents: Result<Vec<Document>, Failure>,
    pub generated: Vec<GeneratedBlob>,
    /// Of an object that gives more documents than are held at once; there are none beside these then.
    pub sliced: Option<Sliced>,
    /// Not all that the object leads to could be read this time: what was made of it before and is not among the documents
    /// is not gone.
    pub cut_short: bool,
    /// What of it is in none of the documents.
    pub dropped: Dropped,
}

/// Where an ingestion runs.
#[derive(Clone)]
pub struct Ingest {
    pub extraction: Extraction,
    pub encoders: Arc<dyn Encoders>,
    /// Where pages are crawled.
    pub web: Option<Arc<dyn Web>>,
}

impl From<Failure> for ExtractError {
    fn from(failure: Failure) -> Self {
        match failure.error_type {
            "transient" => Self::transient(failure.error),
            "resource" => Self::resource(failure.error),
            _ => Self::permanent(failure.error),
        }
    }
}

impl From<ExtractError> for Failure {
    fn from(error: ExtractError) -> Self {
        let error_type = match error.kind {
            ErrorKind::Permanent => "permanent",
            ErrorKind::Transient | ErrorKind::Away => "transient",
            ErrorKind::Resource => "resource",
        };
        Self {
            error: error.message,
            error_type,
        }
    }
}

/// One object on its way through a chunk.
struct Work {
    object: ObjectInput,
    /// Or why there are none.
    parts: Result<Vec<Part>, Failure>,
    notes: Notes,
}

/// What is noted of an object while its parts are made.
#[derive(Default)]
struct Notes {
    /// Texts of fields that were read.
    read: Vec<String>,
    /// Its rows are too many to be held: they are read again as its documents are made.
    many_rows: bool,
    /// More could have been made of it another time: see [`ObjectOutcome::cut_short`].
    cut_short: bool,
    /// What of it is left out.
    dropped: Dropped,
    /// A model that was asked for it did not answer.
    away: bool,
    /// Why a model gave no vectors for pictures that could not wait for those of the other objects.
    model: Option<EmbedError>,
}

/// Why nothing of a chunk could be done.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A model that is not available or fails: nothing of the chunk can be embedded then.
    #[error(transparent)]
    Model(#[from] EmbedError),
    /// A model that was asked while objects were read answers for none of them.
    #[error("{0}")]
    Away(String),
    /// An object failed for a reason that may pass: the chunk is worth another try.
    #[error("{0}")]
    Passing(String),
    /// This process is stopping.
    #[error("the work was stopped")]
    Stopped,
}

impl Ingest {
    /// Turns objects into documents of the collection, in the order given. `now` is RFC 3339.
    ///
    /// # Errors
    /// Whatever keeps the whole chunk from being done; single objects fail by themselves.
    pub async fn run(
        &self,
        plan: &CollectionPlan,
        objects: Vec<ObjectInput>,
        now: &str,
        attempt: Try,
    ) -> Result<Vec<ObjectOutcome>, IngestError> {
        let mut work: Vec<Work> = futures::stream::iter(objects)
            .map(|object| self.extract(plan, object, attempt))
            .buffered(DECODING)
            .collect()
            .await;
        if let Some(error) = work.iter_mut().find_map(|one| one.notes.model.take()) {
            return Err(error.into());
        }
        check_passing(&work, attempt)?;
        embedding::embed(&*self.encoders, &plan.params, &mut work, attempt).await?;
        let (plan, now) = (plan.clone(), now.to_owned());
        spawn_blocking(move || {
            let finish = |work| assemble::finish(&plan, work, &now);
            work.into_iter().map(finish).collect()
        })
        .await
        .map_err(|_| IngestError::Stopped)
    }

    async fn extract(&self, plan: &CollectionPlan, object: ObjectInput, attempt: Try) -> Work {
        let mut notes = Notes::default();
        let parts = self.parts(plan, &object, &mut notes, attempt).await;
        notes.away = matches!(&parts, Err(error) if error.kind == ErrorKind::Away);
        Work {
            parts: parts.map_err(Failure::from),
            object,
            notes,
        }
    }

    /// The parts of one object.
    async fn parts(
        &self,
        plan: &CollectionPlan,
        object: &ObjectInput,
        notes: &mut Notes,
        attempt: Try,
    ) -> Result<Vec<Part>, ExtractError> {
        if let Params::Passthrough(params) = &plan.params {
            let (params, object) = (params.clone(), object.clone());
            let passed = blocking(move || rows::pass(&params, &object)).await?;
            notes.many_rows = passed.is_none();
            return Ok(passed.unwrap_or_default());
        }
        let mut parts = Vec::new();
        for (name, piece) in source::pieces(plan, object)? {
            let blob = match &piece {
                Piece::Text(text) => {
                    notes.read.push(text.clone());
                    None
                }
                Piece::File(file) => object
                    .blobs
                    .iter()
                    .position(|blob| std::ptr::eq(blob, *file)),
            };
            let maker = making::Maker {
                extraction: &self.extraction,
                encoders: &*self.encoders,
                web: self.web.as_deref(),
                params: &plan.params,
                attempt,
            };
            let made = maker.parts(name, piece, notes).await?;
            parts.extend(made.into_iter().map(|part| Part { blob, ..part }));
        }
        if let Some(shape) = plan.params.shape() {
            let model = plan.params.llm_model();
            let left = structure::fill(&*self.encoders, shape, model, &mut parts).await?;
            notes.dropped.add_others("members of answers", left);
        }
        Ok(parts)
    }
}

/// Refuses to go on without objects that another try may read.
fn check_passing(work: &[Work], attempt: Try) -> Result<(), IngestError> {
    let failures: Vec<(&Failure, bool)> = work
        .iter()
        .filter_map(|one| Some((one.parts.as_ref().err()?, one.notes.away)))
        .collect();
    let passing = failures
        .iter()
        .find(|(failure, _)| failure.error_type == "transient");
    let away = failures.iter().find(|(_, away)| *away);
    match (attempt, passing, away) {
        (Try::More, _, Some((failure, _))) if failures.len() == work.len() => {
            // Where some were read the model is there: it fails on the others alone.
            Err(IngestError::Away(failure.error.clone()))
        }
        (Try::More, Some((failure, _)), _) => Err(IngestError::Passing(failure.error.clone())),
        _ => Ok(()),
    }
}

/// Runs what would hold up the async runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExtractError> + Send + 'static,
) -> Result<T, ExtractError> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(ExtractError::transient("extraction was stopped")))
}

fn claim(blob: &BlobInput) -> Claim {
    Claim {
        filename: blob.filename.clone(),
        mime: blob.mime.clone(),
        property_type: Some(blob.kind.clone()),
    }
}
