//! One chunk of a batch: objects in, documents with vectors and failures with reasons out.
//!
//! Files are decoded one by one in worker processes; embedding happens once for the whole chunk.

pub mod fields;
mod payload;
mod plan;
mod source;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bytes::Bytes;
use futures::StreamExt;
use loupe_wire::{Object, Value};

pub use plan::{CollectionPlan, PlanError};

use crate::{
    embed::{EmbedError, Encoders},
    extract::{
        Claim, Decoded, ErrorKind, ExtractError, Extraction, Params, Part, TextFile, Want,
        document, image, passthrough, registry::Source as Fills, text,
    },
    store::{Document, document_id},
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
}

/// An object of a bucket with its files.
#[derive(Debug, Clone, Default)]
pub struct ObjectInput {
    pub object_id: String,
    pub bucket_id: String,
    pub fields: Object,
    pub blobs: Vec<BlobInput>,
    pub content_hash: Option<String>,
}

/// A file made on the way, to be stored under `key` before its document is.
#[derive(Debug, Clone)]
pub struct GeneratedBlob {
    pub key: String,
    pub content_type: String,
    pub bytes: Bytes,
}

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
}

/// Where an ingestion runs.
#[derive(Clone)]
pub struct Ingest {
    pub extraction: Extraction,
    pub encoders: Arc<dyn Encoders>,
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

/// The parts of one object, or why there are none.
type Extracted = Result<Vec<Part>, Failure>;

impl Ingest {
    /// Turns objects into documents of the collection, in the order given. `now` is RFC 3339.
    ///
    /// # Errors
    /// A model that is not available or fails: nothing of the chunk can be embedded then.
    pub async fn run(
        &self,
        plan: &CollectionPlan,
        objects: Vec<ObjectInput>,
        now: &str,
    ) -> Result<Vec<ObjectOutcome>, EmbedError> {
        let mut extracted: Vec<(ObjectInput, Extracted)> = futures::stream::iter(objects)
            .map(|object| async move {
                let parts = self.extract(plan, &object).await.map_err(Failure::from);
                (object, parts)
            })
            .buffered(DECODING)
            .collect()
            .await;
        let mut parts: Vec<&mut Part> = extracted
            .iter_mut()
            .filter_map(|(_, parts)| parts.as_mut().ok())
            .flatten()
            .collect();
        self.embed_pictures(plan, &mut parts).await?;
        self.embed_texts(plan, &mut parts).await?;
        Ok(extracted
            .into_iter()
            .map(|(object, parts)| finish(plan, object, parts, now))
            .collect())
    }

    async fn extract(
        &self,
        plan: &CollectionPlan,
        object: &ObjectInput,
    ) -> Result<Vec<Part>, ExtractError> {
        if let Params::Passthrough(params) = &plan.params {
            return self.pass(params, object);
        }
        let pieces = source::pieces(plan, object)?;
        let mut parts = Vec::new();
        for (name, piece) in pieces {
            parts.extend(self.parts(plan, &name, piece).await?);
        }
        Ok(parts)
    }

    async fn parts(
        &self,
        plan: &CollectionPlan,
        name: &str,
        piece: Piece<'_>,
    ) -> Result<Vec<Part>, ExtractError> {
        let started = Instant::now();
        match &plan.params {
            Params::Text(params) => text::parts(params, name, &self.text(Want::Text, piece).await?),
            Params::Document(params) => {
                document::parts(params, name, &self.text(Want::Pages, piece).await?)
            }
            Params::Image(params) => {
                let Piece::File(blob) = piece else {
                    return Err(ExtractError::permanent(
                        "the input is a text, not a picture",
                    ));
                };
                let want = Want::Picture {
                    thumbnail: params.thumbnails,
                };
                let decoded = self
                    .extraction
                    .decode(want, claim(blob), blob.bytes.clone())
                    .await?;
                let Decoded::Picture(picture) = decoded else {
                    return Err(ExtractError::permanent("the file is not a picture"));
                };
                let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                Ok(vec![image::part(name, picture, &claim(blob), milliseconds)])
            }
            Params::Passthrough(_) => Ok(Vec::new()),
        }
    }

    async fn text(&self, want: Want, piece: Piece<'_>) -> Result<TextFile, ExtractError> {
        match piece {
            Piece::Text(_) if want == Want::Pages => {
                Err(ExtractError::permanent("the input is a text, not a PDF"))
            }
            Piece::Text(text) => Ok(TextFile::plain(text)),
            Piece::File(blob) => match self
                .extraction
                .decode(want, claim(blob), blob.bytes.clone())
                .await?
            {
                Decoded::Text(file) => Ok(file),
                Decoded::Picture(_) => {
                    Err(ExtractError::permanent("the file is a picture, not a text"))
                }
            },
        }
    }

    /// The object as it is; with rows, one part for each row of its files.
    fn pass(
        &self,
        params: &passthrough::PassthroughParams,
        object: &ObjectInput,
    ) -> Result<Vec<Part>, ExtractError> {
        let mut rows = Vec::new();
        if params.rows {
            for blob in &object.blobs {
                rows.extend(passthrough::rows(&blob.bytes)?);
            }
        }
        let single = rows.is_empty();
        if single {
            rows.push(object.fields.clone());
        }
        rows.into_iter()
            .enumerate()
            .map(|(number, mut row)| {
                let mut part = Part {
                    key: format!("row/{number}"),
                    ..Part::default()
                };
                passthrough::take_vectors(params, &mut row, &mut part)?;
                if !single {
                    part.extras.insert("row_index".into(), number.into());
                }
                if params.preserve_metadata || !single {
                    part.extras.extend(row);
                }
                Ok(part)
            })
            .collect()
    }

    async fn embed_pictures(
        &self,
        plan: &CollectionPlan,
        parts: &mut [&mut Part],
    ) -> Result<(), EmbedError> {
        let indexes: Vec<_> = plan
            .params
            .indexes()
            .iter()
            .filter(|index| index.source == Fills::ImageModel)
            .collect();
        let siglip = indexes.len() > 1;
        for (number, index) in indexes.into_iter().enumerate() {
            let mut with: Vec<&mut Part> = parts
                .iter_mut()
                .filter(|part| part.pixels.is_some())
                .map(|part| &mut **part)
                .collect();
            if with.is_empty() {
                continue;
            }
            let encoder = self.encoders.image(&index.output).await?;
            let pixels = with.iter().filter_map(|part| part.pixels.clone()).collect();
            let features = encoder.embed(pixels).await?;
            for (part, features) in with.iter_mut().zip(features) {
                // The first model is the one that labels; the others only place the picture in their space.
                if number == 0 {
                    image::describe(part, &features, siglip);
                }
                part.vectors.insert(index.name.clone(), features.vector);
            }
        }
        Ok(())
    }

    async fn embed_texts(
        &self,
        plan: &CollectionPlan,
        parts: &mut [&mut Part],
    ) -> Result<(), EmbedError> {
        for index in plan
            .params
            .indexes()
            .iter()
            .filter(|index| index.source == Fills::TextModel)
        {
            let mut with: Vec<&mut Part> = parts
                .iter_mut()
                .filter(|part| part.text.is_some())
                .map(|part| &mut **part)
                .collect();
            if with.is_empty() {
                continue;
            }
            let encoder = self.encoders.text(&index.output).await?;
            let texts = with.iter().filter_map(|part| part.text.clone()).collect();
            for (part, vector) in with.iter_mut().zip(encoder.embed(texts).await?) {
                part.vectors.insert(index.name.clone(), vector);
            }
        }
        Ok(())
    }
}

fn claim(blob: &BlobInput) -> Claim {
    Claim {
        filename: blob.filename.clone(),
        mime: blob.mime.clone(),
        property_type: Some(blob.kind.clone()),
    }
}

/// The documents of one object, with the files made on the way.
fn finish(
    plan: &CollectionPlan,
    object: ObjectInput,
    parts: Extracted,
    now: &str,
) -> ObjectOutcome {
    let mut generated = Vec::new();
    let passed = plan.pass_through(&object.fields);
    let documents = parts.and_then(|parts| {
        let passed = passed.map_err(|error| Failure {
            error,
            error_type: "permanent",
        })?;
        Ok(parts
            .into_iter()
            .map(|part| build(plan, &object, &passed, part, now, &mut generated))
            .collect())
    });
    if documents.is_err() {
        generated.clear();
    }
    ObjectOutcome {
        object_id: object.object_id,
        documents,
        generated,
    }
}

fn build(
    plan: &CollectionPlan,
    object: &ObjectInput,
    passed: &Object,
    mut part: Part,
    now: &str,
    generated: &mut Vec<GeneratedBlob>,
) -> Document {
    let collection = &plan.spec.collection_id;
    let id = document_id(collection, &object.object_id, &part.key);
    let made = std::mem::take(&mut part.generated);
    let mut blobs: Vec<Value> = object.blobs.iter().map(payload::source_blob).collect();
    for file in made {
        let key = format!(
            "{}/documents/{collection}/{id}/{}",
            plan.spec.namespace_id, file.filename
        );
        blobs.push(payload::generated_blob(&file, &key));
        generated.push(GeneratedBlob {
            key,
            content_type: file.content_type,
            bytes: file.bytes,
        });
    }
    let internal = payload::internal(plan, object, &id, &part, blobs, now);
    let mut payload = std::mem::take(&mut part.extras);
    payload.extend(passed.clone());
    payload.extend(std::mem::take(&mut part.fields));
    let mut keywords = std::mem::take(&mut part.keywords);
    for value in passed.values() {
        fields::texts(value, &mut keywords);
    }
    if matches!(plan.params, Params::Passthrough(_)) {
        payload
            .values()
            .for_each(|value| fields::texts(value, &mut keywords));
    }
    payload.insert("_internal".into(), internal);
    let vectors: BTreeMap<String, Vec<f32>> = part.vectors;
    Document {
        document_id: id,
        collection_id: collection.clone(),
        payload,
        vectors,
        keywords: Some(keywords.join("\n")),
    }
}
