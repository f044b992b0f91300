//! What is paid for: nothing of it begins before the organization has a plan, whatever the request says. What the server
//! begins by itself, such as a trigger's batch, is asked in the rules (see [`super::quota`]).

use super::{Standing, quota};
use crate::{auth::table::Row, error::Result};

/// Operations that make a namespace, store, process or search. What is there can be read, changed and removed without a plan.
const OPERATIONS: &[&str] = &[
    "POST /v1/alerts/{alert_identifier}/execute",
    "POST /v1/apps/{app_id}/deploy",
    "POST /v1/apps/{app_id}/deploy/upload-url",
    "POST /v1/apps/{app_id}/deploy/verify-upload",
    "POST /v1/buckets/{bucket_id}/syncs",
    "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/trigger",
    "POST /v1/buckets/{bucket_identifier}/batches/bulk-submit",
    "POST /v1/buckets/{bucket_identifier}/batches/submit-all",
    "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/resubmit",
    "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/retry",
    "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/submit",
    "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/heal",
    "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/retry",
    "POST /v1/buckets/{bucket_identifier}/objects",
    "POST /v1/buckets/{bucket_identifier}/objects/batch",
    "POST /v1/buckets/{bucket_identifier}/uploads",
    "POST /v1/buckets/{bucket_identifier}/uploads/batch",
    "POST /v1/buckets/{bucket_identifier}/uploads/confirm/batch",
    "POST /v1/buckets/{bucket_identifier}/uploads/{upload_id}/confirm",
    "POST /v1/clusters/{cluster_id}/execute",
    "POST /v1/collections/{collection_identifier}/apply-taxonomy",
    "POST /v1/collections/{collection_identifier}/clone",
    "POST /v1/collections/{collection_identifier}/documents",
    "POST /v1/collections/{collection_identifier}/export",
    "POST /v1/collections/{collection_identifier}/trigger",
    "POST /v1/features/search",
    "POST /v1/inference",
    "POST /v1/manifest/apply",
    "POST /v1/manifest/generate",
    "POST /v1/namespaces",
    "POST /v1/namespaces/migrations/{migration_id}/start",
    "POST /v1/namespaces/standalone",
    "POST /v1/namespaces/{namespace_identifier}/clone",
    "POST /v1/namespaces/{namespace_identifier}/documents/upsert",
    "POST /v1/namespaces/{namespace_identifier}/promote",
    "POST /v1/namespaces/{namespace_identifier}/snapshots",
    "POST /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/restore",
    "POST /v1/organizations/alerts/{alert_identifier}/execute",
    "POST /v1/quickstart/demo",
    "POST /v1/retrievers/benchmarks",
    "POST /v1/retrievers/execute",
    "POST /v1/retrievers/{retriever_id}/evaluations",
    "POST /v1/retrievers/{retriever_id}/execute",
    "POST /v1/retrievers/{retriever_id}/execute/batch",
    "POST /v1/taxonomies/execute/{taxonomy_identifier}",
    "POST /v1/taxonomies/{taxonomy_identifier}/execute",
    "POST /v1/triggers/{trigger_id}/execute",
];

/// Whether an operation is paid for.
pub fn is(operation: &str) -> bool {
    OPERATIONS.contains(&operation)
}

/// Refuses what is paid for.
///
/// # Errors
/// There is no plan.
pub fn check(standing: Standing, row: &Row) -> Result<()> {
    match standing.requires_plan && is(row.operation) {
        true => Err(quota::no_plan()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::table::TABLE;

    #[test]
    fn what_is_paid_for_is_an_operation() {
        for paid in OPERATIONS {
            let known = TABLE.iter().any(|row| row.operation == *paid);
            assert!(known, "{paid}");
        }
        assert!(is("POST /v1/inference") && !is("GET /v1/me"));
    }
}
