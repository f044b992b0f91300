//! Limits by kind of operation, which an organization may set for each of its keys.

use loupe_wire::BaseRateLimits;

/// In the order of the figures.
const NAMES: [&str; 5] = ["metadata", "data", "search", "upload", "compute"];

/// The figures in requests a second; none where the organization has those that every one begins with.
pub(super) fn overrides(limits: &BaseRateLimits) -> Option<[i64; 5]> {
    let figures = |limits: &BaseRateLimits| {
        [
            limits.metadata,
            limits.data,
            limits.search,
            limits.upload,
            limits.compute,
        ]
    };
    (*limits != BaseRateLimits::default()).then(|| figures(limits))
}

/// The kind of an operation and its figure.
pub(super) fn of(operation: &str, figures: [i64; 5]) -> (&'static str, i64) {
    let has = |pieces: &[&str]| pieces.iter().any(|piece| operation.contains(piece));
    let kind = if has(&["/execute"]) {
        2
    } else if has(&["/uploads", "/blobs"]) {
        3
    } else if has(&["/batches", "/trigger", "/clone", "/tasks"]) {
        4
    } else if has(&["/objects", "/documents"]) {
        1
    } else {
        0
    };
    (NAMES[kind], figures[kind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_kinds() {
        let figures = [1, 2, 3, 4, 5];
        for (operation, kind) in [
            ("GET /v1/buckets", ("metadata", 1)),
            (
                "POST /v1/collections/{collection_identifier}/documents/list",
                ("data", 2),
            ),
            ("POST /v1/retrievers/{retriever_id}/execute", ("search", 3)),
            (
                "POST /v1/buckets/{bucket_identifier}/uploads",
                ("upload", 4),
            ),
            (
                "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/objects",
                ("compute", 5),
            ),
        ] {
            assert_eq!(of(operation, figures), kind, "{operation}");
        }
        assert!(overrides(&BaseRateLimits::default()).is_none());
    }
}
