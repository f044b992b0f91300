//! Files of objects and documents, read as far as they fit into memory together.

use loupe_engine::ingest::{BlobInput, BlobRole, CollectionPlan, ObjectInput};
use loupe_wire::{BlobModel, ObjectResponse};
use serde_json::json;

use crate::{
    app::App,
    error::{ApiError, Result},
    v1::{objects, tasks},
};

/// Bytes of files in memory at once, for each worker. A larger object is alone there.
const BYTES_AT_ONCE: i64 = 128 << 20;

/// Things in their order, cut where the files of a group would become too much. None is cut itself.
pub(super) fn groups<T>(things: Vec<T>, size: impl Fn(&T) -> i64) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<_>> = Vec::new();
    let mut bytes = 0;
    for thing in things {
        let size = size(&thing);
        match groups.last_mut() {
            Some(group) if bytes + size <= BYTES_AT_ONCE => group.push(thing),
            _ => {
                bytes = 0;
                groups.push(vec![thing]);
            }
        }
        bytes += size;
    }
    groups
}

/// What an object with so many bytes of files counts in memory: nobody knows how much is read of the web for it, so it is
/// alone there.
pub(super) const fn weight(plan: &CollectionPlan, files: i64) -> i64 {
    match plan.reads_web() {
        true => BYTES_AT_ONCE,
        false => files,
    }
}

/// Bytes of all files of an object.
pub(super) fn size(object: &ObjectResponse) -> i64 {
    let blobs = object.blobs.iter();
    blobs
        .filter_map(|blob| blob.details.as_ref()?.size_bytes)
        .fold(0, i64::saturating_add)
}

/// An object with the bytes of its files.
pub(super) async fn object(app: &App, object: ObjectResponse, hash: String) -> Result<ObjectInput> {
    let mut blobs = Vec::with_capacity(object.blobs.len());
    for blob in &object.blobs {
        blobs.push(read_blob(app, blob).await?);
    }
    Ok(ObjectInput {
        object_id: object.object_id.unwrap_or_default(),
        bucket_id: object.bucket_id,
        fields: object.extra,
        edges: object.edges.iter().map(|edge| json!(edge)).collect(),
        content_hash: Some(hash),
        blobs,
        origin: None,
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
        role: BlobRole::Source,
    })
}

/// A document in place of an object, with the bytes of those files that the extractor reads; the others it keeps by name.
pub(super) async fn document(
    app: &App,
    plan: &CollectionPlan,
    mut document: ObjectInput,
) -> Result<ObjectInput> {
    let read = plan.files_read(&document);
    let mut blobs = Vec::with_capacity(read.len());
    for (place, mut blob) in document.blobs.into_iter().enumerate() {
        if !read.contains(&place) {
            continue;
        }
        let key = blob.url.strip_prefix("blob://");
        let key = key.ok_or_else(|| ApiError::not_found("blob", &blob.property))?;
        blob.bytes = app.blobs().get(key).await?;
        blobs.push(blob);
    }
    document.blobs = blobs;
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_in_memory_together_are_not_too_many() {
        let sizes = vec![1, 100, 27, 1, 500, 500, 64, 64, 0, 1];
        let groups = groups(sizes, |mebibytes: &i64| mebibytes << 20);
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
