//! One chunk of a batch: objects in, documents with vectors and failures with reasons out.
//!
//! Files are decoded one by one in worker processes; embedding happens once for the whole chunk.

mod assemble;
mod embedding;
pub mod fields;
mod making;
mod mapping;
mod origin;
mod payload;
mod plan;
mod source;
mod structure;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use loupe_wire::{Object, Value};
use tokio::task::spawn_blocking;

pub use embedding::Try;
pub use mapping::check_mappings;
pub use origin::{Origin, root};
pub use plan::{CollectionPlan, PlanError};

use crate::{
    embed::{EmbedError, Encoders},
    extract::{Claim, ErrorKind, ExtractError, Extraction, Params, Part, passthrough},
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
    pub bytes: Bytes,
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
}

/// A file made on the way, to be stored under `key` before its document is.
#[derive(Debug, Clone)]
pub struct GeneratedBlob {
    pub key: String,
    pub content_type: String,
    pub bytes: Bytes,
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
    /// Not all that the object leads to could be read this time: what was made of it before and is not among the documents
    /// is not gone.
    pub cut_short: bool,
}

/// Where an ingestion runs.
#[derive(Clone)]
pub struct Ingest {
    pub extraction: Extraction,
    pub encoders: Arc<dyn Encoders>,
    /// Where pages are crawled.
    pub web: Option<Arc<dyn Web>>,
}

impl From<ExtractError> for Failure {
    fn from(error: ExtractError) -> Self {
        let error_type = match error.kind {
            ErrorKind::Permanent => "permanent",
            ErrorKind::Transient => "transient",
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
    /// More could have been made of it another time: see [`ObjectOutcome::cut_short`].
    cut_short: bool,
}

/// Why nothing of a chunk could be done.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A model that is not available or fails: nothing of the chunk can be embedded then.
    #[error(transparent)]
    Model(#[from] EmbedError),
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
            .map(|object| self.extract(plan, object))
            .buffered(DECODING)
            .collect()
            .await;
        embedding::embed(&*self.encoders, &plan.params, &mut work, attempt).await?;
        let (plan, now) = (plan.clone(), now.to_owned());
        spawn_blocking(move || {
            let finish = |work| assemble::finish(&plan, work, &now);
            work.into_iter().map(finish).collect()
        })
        .await
        .map_err(|_| IngestError::Stopped)
    }

    async fn extract(&self, plan: &CollectionPlan, object: ObjectInput) -> Work {
        let mut notes = Notes::default();
        let parts = self.parts(plan, &object, &mut notes).await;
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
    ) -> Result<Vec<Part>, ExtractError> {
        if let Params::Passthrough(params) = &plan.params {
            let (params, object) = (params.clone(), object.clone());
            return blocking(move || pass(&params, &object)).await;
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
            };
            let made = maker.parts(&plan.params, name, piece, notes).await?;
            parts.extend(made.into_iter().map(|part| Part { blob, ..part }));
        }
        if let Some(shape) = plan.params.shape() {
            structure::fill(&*self.encoders, shape, plan.params.llm_model(), &mut parts).await?;
        }
        Ok(parts)
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

/// The object as it is; with rows, one part for each row of its files. Blocking.
fn pass(
    params: &passthrough::PassthroughParams,
    object: &ObjectInput,
) -> Result<Vec<Part>, ExtractError> {
    let mut parts = Vec::new();
    if !params.rows || object.blobs.is_empty() {
        let blob = (!object.blobs.is_empty()).then_some(0);
        let mut fields = object.fields.clone();
        let mut part = Part {
            key: "row/0".to_owned(),
            blob,
            ..Part::default()
        };
        passthrough::take_vectors(params, &mut fields, &mut part)?;
        if params.preserve_metadata {
            part.extras = fields;
        }
        return Ok(vec![part]);
    }
    for (blob, file) in object.blobs.iter().enumerate() {
        for mut row in passthrough::rows(&file.bytes)? {
            let number = parts.len();
            let mut part = Part {
                key: format!("row/{number}"),
                blob: Some(blob),
                ..Part::default()
            };
            passthrough::take_vectors(params, &mut row, &mut part)
                .map_err(|error| error.at(&format!("row {number}")))?;
            part.extras.insert("row_index".into(), number.into());
            part.extras.extend(row.clone());
            part.row = Some(row);
            parts.push(part);
        }
    }
    Ok(parts)
}

fn claim(blob: &BlobInput) -> Claim {
    Claim {
        filename: blob.filename.clone(),
        mime: blob.mime.clone(),
        property_type: Some(blob.kind.clone()),
    }
}
