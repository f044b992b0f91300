//! The system members of a document.

use loupe_wire::Value;
use serde_json::json;

use super::{CollectionPlan, ObjectInput};
use crate::extract::{Generated, Part};

/// What a file is, in the words of blob references.
fn kind(property: &str) -> &str {
    match property {
        "image" | "video" | "audio" | "pdf" | "text" => property,
        _ => "other",
    }
}

/// References to the object's own files, or to those that the document before named; `types` are the detected ones.
pub(super) fn source_blobs(object: &ObjectInput, types: &[String]) -> Vec<Value> {
    if let Some(origin) = &object.origin {
        return origin.source_blobs.clone();
    }
    let blobs = object.blobs.iter().zip(types);
    blobs
        .map(|(blob, mime)| {
            json!({
                "field": blob.property, "role": "source", "type": kind(&blob.kind), "url": blob.url,
                "filename": blob.filename, "size_bytes": blob.bytes.len(), "content_type": mime,
                "source_blob_id": blob.blob_id,
            })
        })
        .collect()
}

pub(super) fn generated_blob(file: &Generated, key: &str) -> Value {
    json!({
        "field": file.field, "role": if file.field == "thumbnail" { "thumbnail" } else { "processed" },
        "type": file.kind, "url": format!("blob://{key}"), "filename": file.filename,
        "size_bytes": file.bytes.len(), "content_type": file.content_type,
    })
}

/// `_internal`: where the document comes from and which files belong to it. `types` are the detected types of the
/// object's files.
pub(super) fn internal(
    plan: &CollectionPlan,
    object: &ObjectInput,
    types: &[String],
    id: &str,
    part: &Part,
    blobs: Vec<Value>,
    now: &str,
) -> Value {
    let file = part
        .blob
        .and_then(|number| Some((object.blobs.get(number)?, types.get(number)?)));
    let mut internal = json!({
        "internal_id": plan.org_id,
        "namespace_id": plan.spec.namespace_id,
        "document_id": id,
        "collection_id": plan.spec.collection_id,
        "created_at": now,
        "updated_at": now,
        "lineage": lineage(plan, object, part),
        "processing": {
            "history": [{"extractor": plan.extractor.feature_extractor_id, "at": now}],
        },
        "source_blobs": source_blobs(object, types),
        "document_blobs": blobs,
        "modality": file.map_or("text", |(blob, _)| kind(&blob.kind)),
        "metadata": part.metadata,
        "mime_type": file.map(|(_, mime)| mime),
        "size_bytes": file.map(|(blob, _)| blob.bytes.len()),
        "content_hash": object.content_hash,
    });
    if let Some(batch_id) = &plan.batch_id {
        internal["batch_id"] = batch_id.as_str().into();
    }
    if !object.edges.is_empty() {
        internal["edges"] = Value::Array(object.edges.clone());
    }
    if let Some(acl) = object.origin.as_ref().and_then(|origin| origin.acl.clone()) {
        internal["_acl"] = acl;
    }
    internal
}

/// Where a document comes from: the object, or the document of the tier before.
fn lineage(plan: &CollectionPlan, object: &ObjectInput, part: &Part) -> Value {
    let Some(origin) = &object.origin else {
        return json!({
            "root_object_id": object.object_id,
            "root_bucket_id": object.bucket_id,
            "source_type": "bucket",
            "source_object_id": object.object_id,
            "path": format!("{}/{}/{}", object.bucket_id, object.object_id, part.key),
            "chain": [],
            "tier": 0,
        });
    };
    let bucket = (!object.bucket_id.is_empty()).then_some(&object.bucket_id);
    json!({
        "root_object_id": origin.root_object_id,
        "root_bucket_id": bucket,
        "root_document_id": origin.root_document_id,
        "source_type": "collection",
        "source_object_id": origin.root_object_id,
        "source_document_id": object.object_id,
        "source_collection_id": origin.collection_id,
        "path": format!("{}/{}/{}", origin.path, plan.spec.collection_id, part.key),
        "chain": origin.chain,
        "tier": origin.chain.len(),
    })
}
