//! Embedded parts to documents, with the files made on the way.

use loupe_wire::{Object, Value};

use super::{
    BlobInput, CollectionPlan, Failure, GeneratedBlob, ObjectInput, ObjectOutcome, PLACE, Work,
    claim, fields, payload,
    slices::{SLICE, Sliced, Source},
};
use crate::{
    extract::{Params, Part, decode},
    store::{Document, document_id},
};

/// What every document of one object has in common.
pub(super) struct Making<'a> {
    pub plan: &'a CollectionPlan,
    pub object: &'a ObjectInput,
    /// Texts that were cut into several documents.
    pub cut: &'a [String],
    /// Texts of fields that the extractor read: the parts carry the words that are theirs.
    pub read: &'a [String],
    /// Detected types of the object's files.
    pub types: &'a [String],
    pub now: &'a str,
    pub generated: Vec<GeneratedBlob>,
}

/// The documents of one object, those of a large one still to be made. Blocking.
pub(super) fn finish(plan: &CollectionPlan, work: Work, now: &str) -> ObjectOutcome {
    let Work {
        object,
        parts,
        notes,
    } = work;
    let mut outcome = ObjectOutcome {
        object_id: object.object_id.clone(),
        documents: Ok(Vec::new()),
        generated: Vec::new(),
        sliced: None,
        cut_short: notes.cut_short,
        dropped: notes.dropped,
    };
    let types: Vec<String> = object.blobs.iter().map(detected).collect();
    match parts {
        Err(failure) => outcome.documents = Err(failure),
        Ok(mut parts) if notes.many_rows || parts.len() > SLICE => {
            // They have their vectors: what these were made of is needed no more.
            for part in &mut parts {
                (part.text, part.pixels) = (None, None);
            }
            outcome.sliced = Some(Sliced::new(Source {
                plan: plan.clone(),
                object,
                read: notes.read,
                types,
                now: now.to_owned(),
                parts: (!notes.many_rows).then_some(parts),
            }));
        }
        Ok(parts) => {
            let mut making = Making {
                plan,
                object: &object,
                cut: if parts.len() > 1 { &notes.read } else { &[] },
                read: &notes.read,
                types: &types,
                now,
                generated: Vec::new(),
            };
            outcome.documents = making.documents(parts).map_err(permanent);
            if outcome.documents.is_ok() {
                outcome.generated = making.generated;
            }
        }
    }
    outcome
}

pub(super) fn permanent(error: String) -> Failure {
    Failure {
        error,
        error_type: "permanent",
    }
}

fn detected(blob: &BlobInput) -> String {
    decode::mime(&claim(blob), blob.bytes.sample())
}

impl Making<'_> {
    pub fn documents(&mut self, parts: Vec<Part>) -> Result<Vec<Document>, String> {
        let of_object = self.plan.pass_through(&self.object.fields, self.cut);
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
        if let Some(result) = &self.object.result {
            part.key = format!("{result}/{}", part.key);
        }
        let id = document_id(collection, &self.object.object_id, &part.key);
        let blobs = self.blobs(&id, &mut part);
        let internal = payload::internal(
            self.plan,
            self.object,
            self.types,
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
            payload: payload.into(),
            vectors: part.vectors,
            keywords: Some(keywords.join("\n")),
        }
    }

    /// The files of the object, or those that the document before names. A thumbnail of its own takes the place of that
    /// one's.
    fn inherited(&self, part: &Part) -> Vec<Value> {
        let Some(origin) = &self.object.origin else {
            return payload::source_blobs(self.object, self.types);
        };
        let own = part.generated.iter().any(|file| file.field == "thumbnail");
        let files = origin.document_blobs.iter();
        files
            .filter(|file| !(own && file["role"] == "thumbnail"))
            .cloned()
            .collect()
    }

    /// What keys of files begin with that are made of the object: they go where its own are.
    fn root(&self) -> String {
        let namespace_id = &self.plan.spec.namespace_id;
        let own = self.object.blobs.iter().map(|blob| blob.url.as_str());
        let origin = self.object.origin.iter();
        let named = origin.flat_map(|origin| origin.document_blobs.iter());
        let named = named.filter_map(|file| file.get("url")?.as_str());
        let place = own.chain(named).find_map(|url| {
            let key = url.strip_prefix("blob://")?;
            let rest = key.strip_prefix(namespace_id.as_str())?;
            let (place, _) = rest.strip_prefix('/')?.split_once('/')?;
            place.starts_with(PLACE).then_some(place)
        });
        match place {
            Some(place) => format!("{namespace_id}/{place}"),
            None => namespace_id.clone(),
        }
    }

    /// The files of the object and those made of this part, which are kept in [`Making::generated`].
    fn blobs(&mut self, id: &str, part: &mut Part) -> Vec<Value> {
        let mut blobs = self.inherited(part);
        let (spec, root) = (&self.plan.spec, self.root());
        for file in std::mem::take(&mut part.generated) {
            let key = format!(
                "{root}/documents/{}/{id}/{}",
                spec.collection_id, file.filename
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
