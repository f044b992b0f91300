//! Every operation with what it takes to call it: the one table that the gate enforces, that the description of the API
//! shows, and that a test compares with both. An operation without a row takes an admin key.

use std::{collections::HashMap, sync::LazyLock};

use axum::http::Method;
use loupe_wire::Permission;

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No key: health, public pages, addresses that carry their own signature.
    Public,
    /// Every valid key, those of retrievers included.
    AnyKey,
    /// Keys of this level or a higher one.
    Level(Permission),
    /// As `Level(Read)`, and keys of the retriever that is executed.
    Execute,
}

/// Where the scopes of a key are held against the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoped {
    /// The rules of the operation ask, once the resource is known.
    InRules,
    /// The operation is about the whole namespace or organization: a key with scopes needs one that covers it.
    Whole,
    /// The operation is about the organization, whatever namespace the request names: a key with scopes needs one that
    /// covers the organization.
    Organization,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Method and path, as the description of the API writes them.
    pub operation: &'static str,
    pub access: Access,
    pub scoped: Scoped,
    /// Whether keys of end users may call it. They read and write documents, each its own; what tells of the documents of
    /// others, or would change them, is not for them.
    pub end_users: bool,
}

const READ: Access = Access::Level(Permission::Read);
const WRITE: Access = Access::Level(Permission::Write);
const DELETE: Access = Access::Level(Permission::Delete);
const ADMIN: Access = Access::Level(Permission::Admin);

/// Marks what keys of end users may call too.
const END_USERS: bool = true;

macro_rules! rows {
    ($($scoped:ident { $($operation:literal $access:expr $(=> $who:ident)?,)* })*) => {
        &[$($(Row {
            operation: $operation,
            access: $access,
            scoped: Scoped::$scoped,
            end_users: matches!($access, Access::Public | Access::AnyKey | Access::Execute) $(|| $who)?,
        },)*)*]
    };
}

/// Every operation of `/v1`.
pub const TABLE: &[Row] = rows! {
    InRules {
        "GET /v1/me" Access::AnyKey,
        "GET /v1/health" Access::Public,
        "GET /v1/health/liveness" Access::Public,
        "GET /v1/health/beat" Access::Public,
        "GET /v1/health/deep" Access::AnyKey,
        "GET /v1/discovery" Access::Public,
        "GET /v1/discovery/extractors" Access::Public,
        "GET /v1/discovery/stages" Access::Public,
        "GET /v1/discovery/schema" Access::Public,
        "GET /v1/blobs/{*key}" Access::Public,
        "PUT /v1/blobs/{*key}" Access::Public,
        "GET /v1/public/apps/{slug}/config" Access::Public,
        "POST /v1/public/apps/{slug}/search" Access::Public,
        "GET /v1/public/apps/{slug}/gallery" Access::Public,
        "GET /v1/public/apps/{slug}/taxonomies/{taxonomy_id}/tree" Access::Public,
        "POST /v1/public/apps/{slug}/interactions" Access::Public,
        "GET /v1/public/retrievers/" Access::Public,
        "GET /v1/public/retrievers/{public_name}/config" Access::Public,
        "POST /v1/public/retrievers/{public_name}/execute" Access::Public,
        "GET /v1/public/retrievers/{public_name}/template" Access::Public,
        "POST /v1/public/retrievers/{public_name}/interactions" Access::Public,
        "POST /v1/public/retrievers/{public_name}/interactions/batch" Access::Public,
        "POST /v1/public/retrievers/{public_name}/verify" Access::Public,

        "GET /v1/organizations/users/{user_email}/api-keys" ADMIN,
        "POST /v1/organizations/users/{user_email}/api-keys" ADMIN,
        "PATCH /v1/organizations/users/{user_email}/api-keys/{key_name}" ADMIN,
        "DELETE /v1/organizations/users/{user_email}/api-keys/{key_name}" ADMIN,
        "POST /v1/organizations/users/{user_email}/api-keys/{key_name}/rotate" ADMIN,
        "GET /v1/organizations/api-keys/{key_id}/usage" ADMIN,
        "GET /v1/organizations/api-keys/{key_id}/usage/endpoints" ADMIN,
        "GET /v1/organizations/usage/api-keys/{key_id}" ADMIN,
        "GET /v1/retrievers/{retriever_id}/api-keys" ADMIN,
        "POST /v1/retrievers/{retriever_id}/api-keys" ADMIN,
        "DELETE /v1/retrievers/{retriever_id}/api-keys/{key_id}" ADMIN,
        "GET /v1/billing/pricing" Access::Public,
        "GET /v1/organizations/secrets" ADMIN,
        "POST /v1/organizations/secrets" ADMIN,
        "PUT /v1/organizations/secrets/{secret_name}" ADMIN,
        "DELETE /v1/organizations/secrets/{secret_name}" ADMIN,
        "POST /v1/organizations/connections" ADMIN,
        "POST /v1/organizations/connections/list" READ,
        "GET /v1/organizations/connections/{connection_identifier}" READ,
        "PATCH /v1/organizations/connections/{connection_identifier}" ADMIN,
        "DELETE /v1/organizations/connections/{connection_identifier}" ADMIN,
        "POST /v1/organizations/connections/{connection_identifier}/test" ADMIN,
        "GET /v1/organizations/alerts" ADMIN,
        "POST /v1/organizations/alerts" ADMIN,
        "POST /v1/organizations/alerts/list" ADMIN,
        "GET /v1/organizations/alerts/{alert_identifier}" ADMIN,
        "PATCH /v1/organizations/alerts/{alert_identifier}" ADMIN,
        "DELETE /v1/organizations/alerts/{alert_identifier}" ADMIN,
        "POST /v1/organizations/alerts/{alert_identifier}/test" ADMIN,
        "POST /v1/organizations/webhooks" ADMIN,
        "POST /v1/organizations/webhooks/list" ADMIN,
        "GET /v1/organizations/webhooks/{identifier}" ADMIN,
        "PUT /v1/organizations/webhooks/{identifier}" ADMIN,
        "DELETE /v1/organizations/webhooks/{identifier}" ADMIN,
        "GET /v1/organizations/webhooks/{identifier}/deliveries" ADMIN,
        "POST /v1/organizations/webhooks/{identifier}/deliveries/{delivery_id}/replay" ADMIN,
        "POST /v1/organizations/webhooks/{identifier}/test" ADMIN,
        "GET /v1/organizations/users" READ,
        "GET /v1/organizations/users/{user_email}" READ,
        "POST /v1/organizations/users" ADMIN,
        "PATCH /v1/organizations/users/{user_email}" ADMIN,
        "DELETE /v1/organizations/users/{user_email}" ADMIN,

        "GET /v1/namespaces" READ => END_USERS,
        "POST /v1/namespaces/list" READ => END_USERS,
        "POST /v1/namespaces" ADMIN,
        "POST /v1/namespaces/standalone" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/documents/upsert" WRITE => END_USERS,
        "GET /v1/namespaces/{namespace_identifier}/documents/{document_id}" READ => END_USERS,
        "POST /v1/namespaces/{namespace_identifier}/promote/validate" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/promote" ADMIN,
        "GET /v1/namespaces/{namespace_identifier}" READ => END_USERS,
        "GET /v1/namespaces/{namespace_identifier}/extractors" READ => END_USERS,
        "GET /v1/namespaces/{namespace_identifier}/stats" READ,
        "POST /v1/namespaces/stats/batch" READ,
        "POST /v1/resources/search" READ,
        "GET /v1/namespaces/{namespace_identifier}/extractors/{extractor_id}" READ => END_USERS,
        "PATCH /v1/namespaces/{namespace_identifier}" ADMIN,
        "PUT /v1/namespaces/{namespace_identifier}" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/clone" ADMIN,
        "DELETE /v1/namespaces/{namespace_identifier}" ADMIN,
        "POST /v1/namespaces/migrations/" ADMIN,
        "POST /v1/namespaces/migrations/list" ADMIN,
        "POST /v1/namespaces/migrations/validate" ADMIN,
        "GET /v1/namespaces/migrations/{migration_id}" ADMIN,
        "DELETE /v1/namespaces/migrations/{migration_id}" ADMIN,
        "POST /v1/namespaces/migrations/{migration_id}/cancel" ADMIN,
        "POST /v1/namespaces/migrations/{migration_id}/start" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/snapshots" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/snapshots/list" ADMIN,
        "GET /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}" ADMIN,
        "DELETE /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}" ADMIN,
        "POST /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/restore" ADMIN,
        "GET /v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/verify" ADMIN,

        "POST /v1/annotations" WRITE,
        "POST /v1/annotations/bulk" WRITE,
        "POST /v1/annotations/list" READ,
        "GET /v1/annotations/stats" READ,
        "GET /v1/annotations/{annotation_id}" READ,
        "PATCH /v1/annotations/{annotation_id}" WRITE,
        "DELETE /v1/annotations/{annotation_id}" DELETE,
        "GET /v1/annotations/{annotation_id}/versions" READ,
        "GET /v1/annotations/{annotation_id}/versions/{version}" READ,

        "GET /v1/alerts" READ,
        "POST /v1/alerts" WRITE,
        "POST /v1/alerts/list" READ,
        "GET /v1/alerts/executions" READ,
        "GET /v1/alerts/executions/{execution_id}" READ,
        "GET /v1/alerts/{alert_identifier}" READ,
        "PATCH /v1/alerts/{alert_identifier}" WRITE,
        "DELETE /v1/alerts/{alert_identifier}" DELETE,
        "GET /v1/alerts/{alert_identifier}/executions" READ,
        "GET /v1/alerts/{alert_identifier}/results" READ,
        "POST /v1/alerts/{alert_identifier}/execute" WRITE,
        "POST /v1/alerts/{alert_identifier}/test" WRITE,

        "GET /v1/buckets" READ,
        "POST /v1/buckets/list" READ,
        "POST /v1/buckets" WRITE,
        "GET /v1/buckets/{bucket_identifier}" READ,
        "PATCH /v1/buckets/{bucket_identifier}" WRITE,
        "PUT /v1/buckets/{bucket_identifier}" WRITE,
        "DELETE /v1/buckets/{bucket_identifier}" DELETE,
        "POST /v1/buckets/{bucket_identifier}/batches" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/bulk-submit" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/list" READ,
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}" READ,
        "PATCH /v1/buckets/{bucket_identifier}/batches/{batch_id}" WRITE,
        "DELETE /v1/buckets/{bucket_identifier}/batches/{batch_id}" DELETE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/cancel" WRITE,
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}/failed-documents" READ,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/objects" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/resubmit" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/retry" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/cancel" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/jobs/{job_id}/cancel" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/heal" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/submit-all" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/estimate-cost" READ,
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}/audit" READ,
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}/diagnose" READ,
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}/logs" READ,
        "DELETE /v1/buckets/{bucket_identifier}/batches/{batch_id}/documents" DELETE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/retry" WRITE,
        "POST /v1/buckets/{bucket_identifier}/batches/{batch_id}/submit" WRITE,
        "GET /v1/buckets/{bucket_identifier}/objects" READ,
        "POST /v1/buckets/{bucket_identifier}/objects/list" READ,
        "POST /v1/buckets/{bucket_identifier}/objects" WRITE,
        "POST /v1/buckets/{bucket_identifier}/objects/batch" WRITE,
        "POST /v1/buckets/{bucket_identifier}/objects/bulk-soft-delete" DELETE,
        "GET /v1/buckets/{bucket_identifier}/objects/{object_identifier}" READ,
        "PATCH /v1/buckets/{bucket_identifier}/objects/{object_identifier}" WRITE,
        "PUT /v1/buckets/{bucket_identifier}/objects/{object_identifier}" WRITE,
        "DELETE /v1/buckets/{bucket_identifier}/objects/{object_identifier}" DELETE,
        "POST /v1/buckets/{bucket_id}/syncs" WRITE,
        "POST /v1/buckets/{bucket_id}/syncs/list" READ,
        "GET /v1/buckets/{bucket_id}/syncs/{sync_config_id}" READ,
        "PATCH /v1/buckets/{bucket_id}/syncs/{sync_config_id}" WRITE,
        "DELETE /v1/buckets/{bucket_id}/syncs/{sync_config_id}" DELETE,
        "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/pause" WRITE,
        "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/resume" WRITE,
        "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/trigger" WRITE,
        "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs" READ,
        "GET /v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs/{sync_job_id}" READ,
        "POST /v1/buckets/{bucket_identifier}/uploads" WRITE,
        "POST /v1/buckets/{bucket_identifier}/uploads/batch" WRITE,
        "POST /v1/buckets/{bucket_identifier}/uploads/confirm/batch" WRITE,
        "POST /v1/buckets/{bucket_identifier}/uploads/list" READ,
        "GET /v1/buckets/{bucket_identifier}/uploads/{upload_id}" READ,
        "DELETE /v1/buckets/{bucket_identifier}/uploads/{upload_id}" DELETE,
        "POST /v1/buckets/{bucket_identifier}/uploads/{upload_id}/confirm" WRITE,

        "GET /v1/collections" READ => END_USERS,
        "POST /v1/collections/list" READ => END_USERS,
        "POST /v1/collections" WRITE,
        "GET /v1/collections/features" Access::AnyKey,
        "GET /v1/collections/features/extractors" Access::AnyKey,
        "GET /v1/collections/features/extractors/{feature_extractor_id}" Access::AnyKey,
        "GET /v1/collections/{collection_identifier}" READ => END_USERS,
        "PATCH /v1/collections/{collection_identifier}" WRITE,
        "GET /v1/collections/{collection_identifier}/lifecycle" READ,
        "PATCH /v1/collections/{collection_identifier}/lifecycle" WRITE,
        "POST /v1/collections/{collection_id}/sync-schema" WRITE,
        "POST /v1/collections/{collection_identifier}/clone" WRITE,
        "DELETE /v1/collections/{collection_identifier}" DELETE,
        "GET /v1/collections/{collection_identifier}/documents" READ => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents/list" READ => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents" WRITE => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents/batch" WRITE => END_USERS,
        "PATCH /v1/collections/{collection_identifier}/documents/bulk" WRITE => END_USERS,
        "DELETE /v1/collections/{collection_identifier}/documents/batch" DELETE => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/count" READ => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}" READ => END_USERS,
        "PATCH /v1/collections/{collection_identifier}/documents/{document_id}" WRITE => END_USERS,
        "PUT /v1/collections/{collection_identifier}/documents/{document_id}" WRITE => END_USERS,
        "DELETE /v1/collections/{collection_identifier}/documents/{document_id}" DELETE => END_USERS,
        "PATCH /v1/collections/{collection_identifier}/documents/{document_id}/acl" WRITE => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents/aggregate" READ => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents/distinct" READ => END_USERS,
        "POST /v1/collections/{collection_identifier}/documents/schema/validate" READ => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}/ancestors" READ => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}/descendants" READ => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}/diagnostics" READ,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}/download" READ => END_USERS,
        "GET /v1/collections/{collection_identifier}/documents/{document_id}/lineage" READ => END_USERS,
        "GET /v1/documents/{document_id}" READ => END_USERS,
        "PATCH /v1/documents/{document_id}" WRITE => END_USERS,
        "PUT /v1/documents/{document_id}" WRITE => END_USERS,
        "POST /v1/documents/batch-get" READ => END_USERS,
        "POST /v1/documents/list" READ => END_USERS,
        "POST /v1/documents/list/batch" READ => END_USERS,
        "GET /v1/objects/{object_id}/documents" READ,
        "GET /v1/objects/{object_id}/decomposition-tree" READ,
        "POST /v1/buckets/{bucket_identifier}/objects/aggregate" READ,
        "GET /v1/collections/{collection_identifier}/features" READ => END_USERS,
        "POST /v1/collections/{collection_identifier}/trigger" WRITE,
        "GET /v1/collections/{collection_identifier}/reconciliation" READ,
        "POST /v1/collections/{collection_identifier}/export" READ => END_USERS,

        "GET /v1/clusters" READ,
        "POST /v1/clusters" WRITE,
        "POST /v1/clusters/list" READ,
        "GET /v1/clusters/{cluster_identifier}" READ,
        "PATCH /v1/clusters/{cluster_identifier}" WRITE,
        "DELETE /v1/clusters/{cluster_identifier}" DELETE,
        "POST /v1/clusters/{cluster_id}/execute" WRITE,
        "GET /v1/clusters/{cluster_id}/executions" READ,
        "POST /v1/clusters/{cluster_id}/executions/list" READ,
        "GET /v1/clusters/{cluster_id}/executions/{run_id}" READ,
        "GET /v1/clusters/{cluster_id}/executions/{run_id}/export" READ,
        "POST /v1/clusters/{cluster_id}/executions/{run_id}/cancel" WRITE,
        "PATCH /v1/clusters/{cluster_id}/executions/{run_id}/labels" WRITE,
        "PATCH /v1/clusters/{cluster_id}/executions/{run_id}/name" WRITE,
        "GET /v1/clusters/{cluster_id}/groups" READ,
        "GET /v1/clusters/{cluster_id}/visualization" READ,

        "GET /v1/taxonomies" READ,
        "POST /v1/taxonomies" WRITE,
        "POST /v1/taxonomies/list" READ,
        "POST /v1/taxonomies/from-documents" WRITE,
        "POST /v1/taxonomies/{taxonomy_identifier}/nodes/from-documents" WRITE,
        "GET /v1/taxonomies/{taxonomy_identifier}" READ,
        "PATCH /v1/taxonomies/{taxonomy_identifier}" WRITE,
        "DELETE /v1/taxonomies/{taxonomy_identifier}" DELETE,
        "POST /v1/taxonomies/{taxonomy_identifier}/clone" WRITE,
        "POST /v1/taxonomies/{taxonomy_identifier}/execute" WRITE,
        "POST /v1/taxonomies/execute/{taxonomy_identifier}" WRITE,
        "GET /v1/taxonomies/{taxonomy_id}/versions" READ,
        "POST /v1/taxonomies/{taxonomy_id}/versions" WRITE,
        "POST /v1/collections/{collection_identifier}/apply-taxonomy" WRITE,

        "GET /v1/analytics/buckets/health" READ,
        "GET /v1/analytics/buckets/{bucket_id}/health" READ,
        "GET /v1/analytics/buckets/{bucket_id}/storage" READ,
        "GET /v1/analytics/buckets/{bucket_id}/sync-comparison" READ,
        "GET /v1/analytics/buckets/{bucket_id}/sync-performance" READ,
        "GET /v1/analytics/buckets/{bucket_id}/upload-performance" READ,
        "GET /v1/analytics/clusters/{cluster_id}/execution-history" READ,
        "GET /v1/analytics/clusters/{cluster_id}/failures" READ,
        "GET /v1/analytics/collections/{collection_id}/extractors" READ,
        "GET /v1/analytics/collections/{collection_id}/failures" READ,
        "GET /v1/analytics/collections/{collection_id}/growth" READ,
        "GET /v1/analytics/collections/{collection_id}/latency" READ,
        "GET /v1/analytics/collections/{collection_id}/overview" READ,
        "GET /v1/analytics/namespaces/errors" READ,
        "GET /v1/analytics/namespaces/fields/most-queried" READ,
        "GET /v1/analytics/namespaces/fields/performance" READ,
        "GET /v1/analytics/namespaces/indexes/compound-patterns" READ,
        "GET /v1/analytics/namespaces/indexes/recommendations" READ,
        "GET /v1/analytics/namespaces/queries/slow" READ,
        "GET /v1/analytics/namespaces/summary" READ,
        "GET /v1/analytics/retrievers/{retriever_id}/cache-performance" READ,
        "GET /v1/analytics/retrievers/{retriever_id}/performance" READ,
        "GET /v1/analytics/retrievers/{retriever_id}/signals" READ,
        "GET /v1/analytics/retrievers/{retriever_id}/slow-queries" READ,
        "GET /v1/analytics/retrievers/{retriever_id}/stages" READ,
        "POST /v1/analytics/retrievers/{retriever_id}/analyze-tuning" READ,

        "GET /v1/retrievers" READ => END_USERS,
        "POST /v1/retrievers/list" READ => END_USERS,
        "POST /v1/retrievers" WRITE,
        "GET /v1/retrievers/stages" Access::Public,
        "POST /v1/features/search" READ,
        "GET /v1/retrievers/{retriever_id}/evaluations" READ,
        "POST /v1/retrievers/{retriever_id}/evaluations" WRITE,
        "POST /v1/retrievers/{retriever_id}/evaluations/generate-from-interactions" WRITE,
        "GET /v1/retrievers/{retriever_id}/evaluations/{evaluation_id}" READ,
        "GET /v1/retrievers/benchmarks" READ,
        "POST /v1/retrievers/benchmarks" WRITE,
        "GET /v1/retrievers/benchmarks/{benchmark_id}" READ,
        "DELETE /v1/retrievers/benchmarks/{benchmark_id}" DELETE,
        "POST /v1/retrievers/interactions" WRITE,
        "POST /v1/retrievers/interactions/batch" WRITE,
        "POST /v1/retrievers/interactions/list" READ,
        "GET /v1/retrievers/interactions/{interaction_id}" READ,
        "DELETE /v1/retrievers/interactions/{interaction_id}" DELETE,
        "GET /v1/retrievers/{retriever_id}" READ => END_USERS,
        "PATCH /v1/retrievers/{retriever_id}" WRITE,
        "DELETE /v1/retrievers/{retriever_id}" DELETE,
        "POST /v1/retrievers/{retriever_id}/clone" WRITE,
        "POST /v1/retrievers/{retriever_id}/execute" Access::Execute,
        "POST /v1/retrievers/{retriever_id}/execute/batch" Access::Execute,
        "POST /v1/retrievers/{retriever_id}/execute/explain" READ => END_USERS,
        "POST /v1/retrievers/execute" READ,
        "GET /v1/retrievers/typeahead" READ,
        "POST /v1/retrievers/{retriever_id}/executions/list" READ,
        "GET /v1/retrievers/{retriever_id}/executions/{execution_id}" READ,
        "GET /v1/retrievers/{retriever_id}/executions/{execution_id}/profile" READ,
        "GET /v1/retrievers/{retriever_id}/executions/{execution_id}/status" READ,
        "GET /v1/retrievers/{retriever_id}/publish" READ,
        "POST /v1/retrievers/{retriever_id}/publish" WRITE,
        "POST /v1/retrievers/{retriever_id}/publish/preview" WRITE,
        "PATCH /v1/retrievers/{retriever_id}/publish" WRITE,
        "DELETE /v1/retrievers/{retriever_id}/publish" DELETE,
        "GET /v1/retrievers/{retriever_id}/publish/availability" READ,
    }
    Whole {
        "POST /v1/retrievers/executions/list" READ,
        "GET /v1/retrievers/executions/{execution_id}" READ,
        "GET /v1/events" READ => END_USERS,
        "GET /v1/tasks" READ,
        "POST /v1/tasks/list" READ,
        "GET /v1/tasks/{task_id}" READ,
        "DELETE /v1/tasks/{task_id}" DELETE,
        "POST /v1/batches/list" READ,
        "GET /v1/batches/queue" READ,
        "GET /v1/batches/{batch_id}" READ,
        "POST /v1/batches/{batch_id}/cancel" WRITE,
        "POST /v1/inference" READ,
        "GET /v1/evaluations" READ,
        "POST /v1/evaluations/score" READ,
        "GET /v1/retrievers/evaluations/datasets" READ,
        "POST /v1/retrievers/evaluations/datasets" WRITE,
        "GET /v1/retrievers/evaluations/datasets/{dataset_identifier}" READ,
        "GET /v1/triggers" READ,
        "POST /v1/triggers" WRITE,
        "POST /v1/triggers/list" READ,
        "GET /v1/triggers/{trigger_id}" READ,
        "PATCH /v1/triggers/{trigger_id}" WRITE,
        "DELETE /v1/triggers/{trigger_id}" DELETE,
        "POST /v1/triggers/{trigger_id}/execute" WRITE,
        "POST /v1/triggers/{trigger_id}/pause" WRITE,
        "POST /v1/triggers/{trigger_id}/resume" WRITE,
        "GET /v1/triggers/{trigger_id}/history" READ,
        "POST /v1/clusters/triggers" WRITE,
        "POST /v1/clusters/triggers/list" READ,
        "GET /v1/clusters/triggers/{trigger_id}" READ,
        "PATCH /v1/clusters/triggers/{trigger_id}" WRITE,
        "DELETE /v1/clusters/triggers/{trigger_id}" DELETE,
        "POST /v1/clusters/triggers/{trigger_id}/pause" WRITE,
        "POST /v1/clusters/triggers/{trigger_id}/resume" WRITE,
        "POST /v1/clusters/triggers/{trigger_id}/history" READ,
        "GET /v1/retrievers/publish/stats" READ,
        "GET /v1/retrievers/published" READ,
    }
    Organization {
        "GET /v1/organizations" READ,
        "PATCH /v1/organizations" ADMIN,
        "GET /v1/organizations/audit/logs" ADMIN,
        "GET /v1/organizations/audit/logs/export" ADMIN,
        "GET /v1/organizations/audit/logs/{audit_id}" ADMIN,
        "GET /v1/organizations/audit/settings" ADMIN,
        "PATCH /v1/organizations/audit/settings" ADMIN,
        "GET /v1/organizations/usage" READ,
        "GET /v1/organizations/billing/usage/breakdown" READ,
        "GET /v1/organizations/billing/usage/current" READ,
        "GET /v1/organizations/billing/usage/vector-backend" READ,
        "POST /v1/organizations/billing/estimate" READ,
        "GET /v1/organizations/billing/balance" READ,
        "GET /v1/organizations/credits" READ,
        "GET /v1/organizations/billing/spending-caps" READ,
        "POST /v1/organizations/billing/spending-caps" ADMIN,
        "GET /v1/organizations/billing/transactions" READ,
        "GET /v1/organizations/billing/subscription" READ,
        "POST /v1/organizations/billing/subscribe" ADMIN,
        "GET /v1/apps" READ,
        "POST /v1/apps" WRITE,
        "GET /v1/apps/{app_id}" READ,
        "PATCH /v1/apps/{app_id}" WRITE,
        "DELETE /v1/apps/{app_id}" DELETE,
        "POST /v1/apps/{app_id}/publish" WRITE,
        "POST /v1/apps/{app_id}/deploy" WRITE,
        "POST /v1/apps/{app_id}/deploy/upload-url" WRITE,
        "POST /v1/apps/{app_id}/deploy/verify-upload" WRITE,
        "GET /v1/apps/{app_id}/deploys/{deploy_id}" READ,
        "GET /v1/apps/{app_id}/deploys/{deploy_id}/logs/stream" READ,
        "GET /v1/apps/{app_id}/versions" READ,
        "GET /v1/apps/{app_id}/versions/{version}" READ,
        "GET /v1/apps/{app_id}/versions/{version}/download" READ,
        "POST /v1/apps/{app_id}/versions/{version}/restore" WRITE,
        "GET /v1/apps/{app_id}/versions/{from_version}/diff/{to_version}" READ,
        "POST /v1/apps/{app_id}/rollback" WRITE,
        "POST /v1/apps/{app_id}/promote" WRITE,
        "POST /v1/apps/{app_id}/sign-in/test" WRITE,
        "GET /v1/apps/{app_id}/analytics" READ,
        "GET /v1/apps/{app_id}/error-rate" READ,
        "GET /v1/apps/{app_id}/logs" READ,
        "GET /v1/apps/{app_id}/domains" READ,
        "POST /v1/apps/{app_id}/domains" WRITE,
        "DELETE /v1/apps/{app_id}/domains/{domain}" DELETE,
        "POST /v1/apps/{app_id}/domains/{domain}/verify" WRITE,
        "GET /v1/apps/{app_id}/users" ADMIN,
        "DELETE /v1/apps/{app_id}/users/{user_id}" ADMIN,
        "PATCH /v1/apps/{app_id}/users/{user_id}/role" ADMIN,
        "POST /v1/apps/{app_id}/users/invite" ADMIN,
        "GET /v1/apps/{app_id}/users/invitations" ADMIN,
        "DELETE /v1/apps/{app_id}/users/invitations/{invitation_id}" ADMIN,
        "POST /v1/quickstart/demo" ADMIN,
        "POST /v1/notifications/list" READ,
        "POST /v1/notifications/read/all" READ,
        "GET /v1/notifications/unread/count" READ,
        "GET /v1/notifications/preferences" READ,
        "PUT /v1/notifications/preferences" ADMIN,
        "GET /v1/notifications/{notification_id}" READ,
        "POST /v1/notifications/{notification_id}/read" READ,
        "DELETE /v1/notifications/{notification_id}" READ,
    }
};

/// Rows by path, so that a request finds its own without building a string.
static BY_PATH: LazyLock<HashMap<&'static str, Vec<(&'static str, usize)>>> = LazyLock::new(|| {
    let mut paths: HashMap<_, Vec<_>> = HashMap::new();
    for (number, row) in TABLE.iter().enumerate() {
        if let Some((method, path)) = row.operation.split_once(' ') {
            paths.entry(path).or_default().push((method, number));
        }
    }
    paths
});

/// The row of an operation. A path that has rows, but none for the method, has no such operation.
pub fn find(method: &Method, path: &str) -> Found {
    if !BY_PATH.contains_key(path) {
        return Found::Undeclared;
    }
    number(method, path)
        .and_then(|number| TABLE.get(number))
        .map_or(Found::NoSuchMethod, Found::Row)
}

/// The place of an operation's row in the table.
pub fn number(method: &Method, path: &str) -> Option<usize> {
    let rows = BY_PATH.get(path)?;
    // A HEAD is a GET without its body.
    let method = if method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    let found = rows.iter().find(|(name, _)| *name == method);
    found.map(|(_, number)| *number)
}

/// What the table says about a request.
#[derive(Debug)]
pub enum Found {
    Row(&'static Row),
    /// Answered with 405 by the router.
    NoSuchMethod,
    Undeclared,
}
