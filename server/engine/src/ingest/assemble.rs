//! Embedded parts to documents, with the files made on the way.

use loupe_wire::{Object, Value};

use super::{
    BlobInput, CollectionPlan, Failure, GeneratedBlob, ObjectInput, ObjectOutcome, Work, claim,
    fields, payload,
};
use crate::{
    extract::{Params, Part, decode},
    store::{Document, document_id},
};

/// What every document of one object has in common.
struct Making<'a> {
    plan: &'a CollectionPlan,
    object: &'a ObjectInput,
    /// Texts of fields that the extractor read: the parts carry the words that are theirs.
    read: &'a [String],
    /// Detected types of the object's files.
    types: Vec<String>,
    now: &'a str,
    generated: Vec<GeneratedBlob>,
}

/// The documents of one object. Blocking: a file of rows becomes up to a hundred thousand.
pub(super) fn finish(plan: &CollectionPlan, work: Work, now: &str) -> ObjectOutcome {
    let Work {
        object,
        parts,
        notes,
    } = work;
    let mut making = Making {
        plan,
        object: &object,
        read: &notes.read,
        types: object.blobs.iter().map(detected).collect(),
        now,
        generated: Vec::new(),
    };
    let documents = parts.and_then(|parts| making.documents(parts).map_err(permanent));
    let generated = match documents {
        Ok(_) => making.generated,
        Err(_) => Vec::new(),
    };
    ObjectOutcome {
        object_id: object.object_id,
        documents,
        generated,
        cut_short: notes.cut_short,
        dropped: notes.dropped,
    }
}

fn permanent(error: String) -> Failure {
    Failure {
        error,
        error_type: "permanent",
    }
}

fn detected(blob: &BlobInput) -> String {
    decode::mime(&claim(blob), blob.bytes.sample())
}

impl Making<'_> {
    fn documents(&mut self, parts: Vec<Part>) -> Result<Vec<Document>, String> {
        let cut = if parts.len() > 1 { self.read } else { &[] };
        let of_object = self.plan.pass_through(&self.object.fields, cut);
        let mut documents = Vec::with_capacity(parts.len());
        for mut part in parts {
            let passed = match part.row.take() {
                None => of_object.clone()?,
                // A row says more than the file it is of.
                Some(row) => {
                    let mut source = self.object.fields.clone();
                    source.extend(row.clone());
                    part.extras.extend(row);
                    self.plan.pass_through(&source, &[])?
                }
            };
            documents.push(self.document(passed, part));
        }
        Ok(documents)
    }

    fn document(&mut self, passed: Object, mut part: Part) -> Document {
        let collection = &self.plan.spec.collection_id;
        let id = document_id(collection, &self.object.object_id, &part.key);
        let blobs = self.blobs(&id, &mut part);
        let internal = payload::internal(
            self.plan,
            self.object,
            &self.types,
            &id,
            &part,
            blobs,
            self.now,
        );
        let mut keywords = std::mem::take(&mut part.keywords);
        let mut payload = std::mem::take(&mut part.extras);
        if matches!(self.plan.params, Params::Passthrough(_)) {
            payload.extend(passed);
            payload.extend(std::mem::take(&mut part.fields));
            payload
                .values()
                .for_each(|value| fields::texts(value, &mut keywords));
        } else {
            let mut texts = Vec::new();
            passed
                .values()
                .for_each(|value| fields::texts(value, &mut texts));
            // A chunk would be found by every word of the text that it was cut from, a whole text counted twice.
            keywords.extend(texts.into_iter().filter(|text| !self.read.contains(text)));
            payload.extend(passed);
            payload.extend(std::mem::take(&mut part.fields));
        }
        payload.insert("_internal".into(), internal);
        Document {
            document_id: id,
            collection_id: collection.clone(),
            payload,
            vectors: part.vectors,
            keywords: Some(keywords.join("\n")),
        }
    }

    /// The files of the object, or those that the document before names. A thumbnail of its own takes the place of that
    /// one's.
    fn inherited(&self, part: &Part) -> Vec<Value> {
        let Some(origin) = &self.object.origin else {
            return payload::source_blobs(self.object, &self.types);
        };
        let own = part.generated.iter().any(|file| file.field == "thumbnail");
        let files = origin.document_blobs.iter();
        files
            .filter(|file| !(own && file["role"] == "thumbnail"))
            .cloned()
            .collect()
    }

    /// The files of the object and those made of this part, which are kept in [`Making::generated`].
    fn blobs(&mut self, id: &str, part: &mut Part) -> Vec<Value> {
        let mut blobs = self.inherited(part);
        let spec = &self.plan.spec;
        for file in std::mem::take(&mut part.generated) {
            let key = format!(
                "{}/documents/{}/{id}/{}",
                spec.namespace_id, spec.collection_id, file.filename
            );
            blobs.push(payload::generated_blob(&file, &key));
            self.generated.push(GeneratedBlob {
                key,
                content_type: file.content_type,
                bytes: file.bytes,
            });
        }
        blobs
    }
}
