//! Limits by kind of operation, which an organization may set for each of its keys.

use loupe_wire::RateLimitOverrides;

/// What begins with these searches; what else executes is work that goes on after its request.
const SEARCHES: [&str; 4] = [
    "/v1/retrievers/",
    "/v1/marketplace/",
    "/v1/alerts/",
    "/v1/organizations/alerts/",
];

/// What leaves work, or is work for a model.
const WORK: [&str; 7] = [
    "/execute",
    "/batches",
    "/trigger",
    "/clone",
    "/tasks",
    "/inference",
    "/evaluations",
];

/// The kind of an operation, and its requests a second where the organization has set them. Who looks at work that goes on
/// begins none.
pub(super) fn of(operation: &str, set: &RateLimitOverrides) -> (&'static str, Option<i64>) {
    let has = |pieces: &[&str]| pieces.iter().any(|piece| operation.contains(piece));
    let (method, path) = operation.split_once(' ').unwrap_or_default();
    let looks = method == "GET" || path.ends_with("/list");
    let searches = SEARCHES.iter().any(|start| path.starts_with(start));
    if searches && has(&["/execute"]) {
        ("search", set.search)
    } else if has(&["/uploads", "/blobs"]) {
        ("upload", set.upload)
    } else if !looks && has(&WORK) {
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
            ("POST /v1/inference", ("compute", None)),
            ("POST /v1/clusters/{cluster_id}/execute", ("compute", None)),
            ("POST /v1/triggers/{trigger_id}/execute", ("compute", None)),
            (
                "POST /v1/alerts/{alert_identifier}/execute",
                ("search", Some(3)),
            ),
            // Whoever waits for work does none.
            ("GET /v1/tasks/{task_id}", ("metadata", Some(1))),
            ("POST /v1/batches/list", ("metadata", Some(1))),
        ] {
            assert_eq!(of(operation, &set), kind, "{operation}");
        }
    }
}
