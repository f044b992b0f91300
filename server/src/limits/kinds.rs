//! Limits by kind of operation, which an organization may set for each of its keys.

use loupe_wire::RateLimitOverrides;

/// The kind of an operation, and its requests a second where the organization has set them.
pub(super) fn of(operation: &str, set: &RateLimitOverrides) -> (&'static str, Option<i64>) {
    let has = |pieces: &[&str]| pieces.iter().any(|piece| operation.contains(piece));
    if has(&["/execute"]) {
        ("search", set.search)
    } else if has(&["/uploads", "/blobs"]) {
        ("upload", set.upload)
    } else if has(&["/batches", "/trigger", "/clone", "/tasks"]) {
        ("compute", set.compute)
    } else if has(&["/objects", "/documents"]) {
        ("data", set.data)
    } else {
        ("metadata", set.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_kinds() {
        let set = RateLimitOverrides {
            metadata: Some(1),
            data: Some(2),
            search: Some(3),
            upload: Some(4),
            compute: None,
        };
        for (operation, kind) in [
            ("GET /v1/buckets", ("metadata", Some(1))),
            (
                "POST /v1/collections/{collection_identifier}/documents/list",
                ("data", Some(2)),
            ),
            (
                "POST /v1/retrievers/{retriever_id}/execute",
                ("search", Some(3)),
            ),
            (
                "POST /v1/buckets/{bucket_identifier}/uploads",
                ("upload", Some(4)),
            ),
            (
                "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/objects",
                ("compute", None),
            ),
        ] {
            assert_eq!(of(operation, &set), kind, "{operation}");
        }
    }
}
