//! Which operations leave a record in the audit log, with the reason that the request gives.

/// As the story of the examples finds them; the test that tells it holds this list to what was recorded.
const OPERATIONS: &[&str] = &[
    "DELETE /v1/alerts/{alert_identifier}",
    "DELETE /v1/annotations/{annotation_id}",
    "DELETE /v1/buckets/{bucket_identifier}",
    "DELETE /v1/clusters/{cluster_identifier}",
    "DELETE /v1/collections/{collection_identifier}",
    "DELETE /v1/collections/{collection_identifier}/documents/batch",
    "DELETE /v1/collections/{collection_identifier}/documents/{document_id}",
    "DELETE /v1/namespaces/{namespace_identifier}",
    "DELETE /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}",
    "DELETE /v1/organizations/alerts/{alert_identifier}",
    "DELETE /v1/organizations/connections/{connection_identifier}",
    "DELETE /v1/organizations/secrets/{secret_name}",
    "DELETE /v1/organizations/users/{user_email}",
    "DELETE /v1/organizations/users/{user_email}/api-keys/{key_name}",
    "DELETE /v1/organizations/webhooks/{identifier}",
    "DELETE /v1/retrievers/{retriever_id}",
    "DELETE /v1/retrievers/{retriever_id}/api-keys/{key_id}",
    "DELETE /v1/taxonomies/{taxonomy_identifier}",
    "DELETE /v1/templates/{template_id}",
    "PATCH /v1/alerts/{alert_identifier}",
    "PATCH /v1/annotations/{annotation_id}",
    "PATCH /v1/buckets/{bucket_identifier}",
    "PATCH /v1/clusters/{cluster_identifier}",
    "PATCH /v1/collections/{collection_identifier}",
    "PATCH /v1/collections/{collection_identifier}/documents/{document_id}/acl",
    "PATCH /v1/collections/{collection_identifier}/lifecycle",
    "PATCH /v1/namespaces/{namespace_identifier}",
    "PATCH /v1/organizations",
    "PATCH /v1/organizations/alerts/{alert_identifier}",
    "PATCH /v1/organizations/audit/settings",
    "PATCH /v1/organizations/connections/{connection_identifier}",
    "PATCH /v1/organizations/users/{user_email}",
    "PATCH /v1/organizations/users/{user_email}/api-keys/{key_name}",
    "PATCH /v1/retrievers/{retriever_id}",
    "PATCH /v1/taxonomies/{taxonomy_identifier}",
    "POST /v1/alerts",
    "POST /v1/annotations",
    "POST /v1/annotations/bulk",
    "POST /v1/buckets",
    "POST /v1/buckets/{bucket_identifier}/objects/bulk-soft-delete",
    "POST /v1/clusters",
    "POST /v1/clusters/{cluster_id}/execute",
    "POST /v1/collections",
    "POST /v1/collections/{collection_identifier}/clone",
    "POST /v1/collections/{collection_id}/sync-schema",
    "POST /v1/manifest/apply",
    "POST /v1/namespaces",
    "POST /v1/namespaces/migrations/",
    "POST /v1/namespaces/migrations/{migration_id}/start",
    "POST /v1/namespaces/standalone",
    "POST /v1/namespaces/{namespace_identifier}/clone",
    "POST /v1/namespaces/{namespace_identifier}/promote",
    "POST /v1/namespaces/{namespace_identifier}/snapshots",
    "POST /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/restore",
    "POST /v1/organizations/alerts",
    "POST /v1/organizations/billing/spending-caps",
    "POST /v1/organizations/billing/subscribe",
    "POST /v1/organizations/connections",
    "POST /v1/organizations/connections/{connection_identifier}/test",
    "POST /v1/organizations/secrets",
    "POST /v1/organizations/users",
    "POST /v1/organizations/users/{user_email}/api-keys",
    "POST /v1/organizations/users/{user_email}/api-keys/{key_name}/rotate",
    "POST /v1/organizations/webhooks",
    "POST /v1/quickstart/demo",
    "POST /v1/retrievers",
    "POST /v1/retrievers/{retriever_id}/api-keys",
    "POST /v1/retrievers/{retriever_id}/clone",
    "POST /v1/taxonomies",
    "POST /v1/taxonomies/from-documents",
    "POST /v1/taxonomies/{taxonomy_identifier}/clone",
    "POST /v1/taxonomies/{taxonomy_id}/versions",
    "POST /v1/templates/buckets/from-bucket/{bucket_id}",
    "POST /v1/templates/buckets/{template_id}/instantiate",
    "POST /v1/templates/clusters/from-cluster/{cluster_id}",
    "POST /v1/templates/clusters/{template_id}/instantiate",
    "POST /v1/templates/collections/from-collection/{collection_id}",
    "POST /v1/templates/collections/{template_id}/instantiate",
    "POST /v1/templates/namespaces/from-namespace/{namespace_id}",
    "POST /v1/templates/retrievers/from-retriever/{retriever_id}",
    "POST /v1/templates/retrievers/{template_id}/instantiate",
    "POST /v1/templates/taxonomies/from-taxonomy/{taxonomy_id}",
    "POST /v1/templates/taxonomies/{template_id}/instantiate",
    "PUT /v1/buckets/{bucket_identifier}",
    "PUT /v1/namespaces/{namespace_identifier}",
    "PUT /v1/notifications/preferences",
    "PUT /v1/organizations/secrets/{secret_name}",
    "PUT /v1/organizations/webhooks/{identifier}",
];

/// Whether `X-Change-Reason` is kept of an operation.
pub(super) fn are_kept(operation: &str) -> bool {
    OPERATIONS.contains(&operation)
}

#[cfg(test)]
mod tests {
    use super::OPERATIONS;
    use crate::auth::table::TABLE;

    #[test]
    fn what_is_recorded_is_an_operation() {
        for recorded in OPERATIONS {
            let known = TABLE.iter().any(|row| row.operation == *recorded);
            assert!(known, "{recorded}");
        }
    }
}
