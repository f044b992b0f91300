//! Documents of one collection that are read as objects by the next tier.

use loupe_wire::{Object, Value};
use serde_json::json;

use super::{BlobInput, BlobRole, ObjectInput, fields};
use crate::{extract::Data, store::Document};

/// Where a document comes from that is read in place of an object.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub collection_id: String,
    /// The object at the beginning; none where the line begins with a document that a caller wrote.
    pub root_object_id: Option<String>,
    /// The document at the beginning.
    pub root_document_id: String,
    /// Its place, as its own lineage tells it.
    pub path: String,
    /// The documents that lead to what is made of it, itself the last.
    pub chain: Vec<Value>,
    /// References to its files, as it keeps them.
    pub document_blobs: Vec<Value>,
    pub source_blobs: Vec<Value>,
    /// Who may see it: nobody else may see what is made of it.
    pub acl: Option<Value>,
}

/// What a document belongs to over all tiers: the object at the beginning of its line, else the first document of it.
pub fn root(document: &Document) -> &str {
    let of = |member: &str| {
        let lineage = document.payload.get("_internal")?.get("lineage")?;
        lineage.get(member)?.as_str().filter(|id| !id.is_empty())
    };
    of("root_object_id")
        .or_else(|| of("root_document_id"))
        .unwrap_or(&document.document_id)
}

impl ObjectInput {
    /// The document as the object of the next tier. Its files are named and still to be read: see
    /// [`super::CollectionPlan::files_read`].
    pub fn of_document(document: Document) -> Self {
        let root_document = first(&document.payload).unwrap_or(&document.document_id);
        let root_document = root_document.to_owned();
        let Document {
            document_id,
            collection_id,
            mut payload,
            ..
        } = document;
        let mut internal = payload.shift_remove("_internal").unwrap_or_default();
        let mut list = |member: &str| match internal.get_mut(member).map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let (document_blobs, source_blobs) = (list("document_blobs"), list("source_blobs"));
        let edges = list("edges");
        let lineage = internal["lineage"].take();
        let text = |member: &str| {
            let text = lineage[member].as_str().filter(|text| !text.is_empty());
            text.map(ToOwned::to_owned)
        };
        let mut chain = lineage["chain"].as_array().cloned().unwrap_or_default();
        chain.push(json!({
            "collection_id": collection_id, "document_id": document_id,
            "feature_extractor_id": internal["processing"]["history"][0]["extractor"],
            "timestamp": internal["updated_at"],
        }));
        Self {
            bucket_id: text("root_bucket_id").unwrap_or_default(),
            blobs: document_blobs.iter().filter_map(blob).collect(),
            content_hash: internal["content_hash"].as_str().map(ToOwned::to_owned),
            edges,
            origin: Some(Origin {
                root_object_id: text("root_object_id"),
                root_document_id: root_document,
                path: text("path").unwrap_or_else(|| document_id.clone()),
                chain,
                document_blobs,
                source_blobs,
                acl: internal.get("_acl").filter(|acl| acl.is_object()).cloned(),
                collection_id,
            }),
            object_id: document_id,
            fields: payload.into(),
            result: None,
        }
    }
}

/// The first document of a line.
fn first(payload: &Object) -> Option<&str> {
    let path = "_internal.lineage.chain.0.document_id";
    fields::get(payload, path)?.as_str()
}

fn blob(reference: &Value) -> Option<BlobInput> {
    let text = |member: &str| reference[member].as_str().map(ToOwned::to_owned);
    Some(BlobInput {
        blob_id: text("source_blob_id").unwrap_or_default(),
        property: text("field")?,
        kind: text("type").unwrap_or_default(),
        filename: text("filename"),
        mime: text("content_type"),
        url: text("url")?,
        bytes: Data::from(bytes::Bytes::new()),
        role: match reference["role"].as_str() {
            Some("processed") => BlobRole::Processed,
            Some("thumbnail") => BlobRole::Thumbnail,
            _ => BlobRole::Source,
        },
    })
}
