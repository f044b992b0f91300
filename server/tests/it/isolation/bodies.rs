//! What is sent with an operation that asks for a body.

use serde_json::{Value, json};

/// A list of operations with what is sent to each.
type Bodies = Vec<(&'static str, Value)>;

/// Bodies that carry an id, by operation; `$name` is the id under test, `@name` one of the caller's own.
pub fn bodies() -> Bodies {
    [
        buckets(),
        batches(),
        collections(),
        documents(),
        retrievers(),
        interactions(),
        templates(),
        clusters(),
        taxonomies(),
        lists(),
        namespaces(),
    ]
    .concat()
}

/// What is sent to buckets, their objects and batches.
fn buckets() -> Bodies {
    vec![
        (
            "POST /v1/buckets",
            json!({"bucket_name": "filtered", "bucket_schema": {"properties": {}}, "ingest_filter": {"retriever_id": "$retriever_id"}}),
        ),
        (
            "PATCH /v1/buckets/@bucket_identifier",
            json!({"ingest_filter": {"retriever_id": "$retriever_id"}}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/batches",
            json!({"object_ids": ["$object_identifier"]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/batches",
            json!({"object_ids": ["@object_identifier"], "collection_ids": ["$collection_identifier"]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/batches/@batch_id/objects",
            json!({"object_ids": ["$object_identifier"]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/batches/bulk-submit",
            json!({"collection_ids": ["$collection_identifier"]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/objects",
            json!({"title": "x", "blobs": [{"property": "text", "type": "text", "upload_id": "$upload_id"}]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/objects",
            json!({"title": "x", "blobs": [{"property": "picture", "type": "image", "data": "s3://b/k", "metadata": {"connection_id": "$connection_identifier"}}]}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/objects/bulk-soft-delete",
            json!({"object_ids": ["$object_identifier"], "reason": "not ours"}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/batches/$batch_id/tiers/0/heal",
            json!({"action": "auto"}),
        ),
        (
            "PATCH /v1/collections/$collection_identifier/lifecycle",
            json!({"lifecycle_state": "cold"}),
        ),
        (
            "POST /v1/buckets/@bucket_identifier/objects/list",
            json!({"filters": {"field": "object_id", "operator": "eq", "value": "$object_identifier"}}),
        ),
    ]
}

/// What is sent to uploads, and asked of batches.
fn batches() -> Bodies {
    vec![
        (
            "POST /v1/buckets/@bucket_identifier/uploads/confirm/batch",
            json!({"confirmations": [{"upload_id": "$upload_id"}]}),
        ),
        (
            "POST /v1/batches/list",
            json!({"bucket_id": "$bucket_identifier"}),
        ),
        (
            "POST /v1/batches/list",
            json!({"namespace_id": "$namespace_identifier"}),
        ),
        (
            "POST /v1/batches/list",
            json!({"collection_id": "$collection_identifier"}),
        ),
    ]
}

/// What is sent to collections.
fn collections() -> Bodies {
    vec![
        (
            "POST /v1/collections",
            json!({"collection_name": "from elsewhere", "source": {"type": "bucket", "bucket_ids": ["$bucket_identifier"]}, "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}}),
        ),
        (
            "POST /v1/collections",
            json!({"collection_name": "over elsewhere", "source": {"type": "collection", "collection_ids": ["$collection_identifier"]}, "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}}),
        ),
        (
            "POST /v1/collections/@collection_identifier/clone",
            json!({"collection_name": "a clone", "source": {"type": "bucket", "bucket_ids": ["$bucket_identifier"]}}),
        ),
        (
            "POST /v1/collections/@collection_identifier/trigger",
            json!({"object_ids": ["$object_identifier"]}),
        ),
        (
            "POST /v1/collections/@collection_identifier/trigger",
            json!({"include_buckets": ["$bucket_identifier"]}),
        ),
    ]
}

/// What is sent to documents.
fn documents() -> Bodies {
    let documents = "/v1/collections/@collection_identifier/documents";
    let filter = json!({"field": "document_id", "operator": "eq", "value": "$document_id"});
    let list = |path: &str| -> &'static str { Box::leak(format!("POST {path}").into_boxed_str()) };
    vec![
        (
            list(&format!("{documents}/list")),
            json!({"filters": filter}),
        ),
        (
            list(&format!("{documents}/list")),
            json!({"cursor": "$cursor"}),
        ),
        (
            list(documents),
            json!({"title": "pointing", "source_document_id": "$document_id", "related": "$document_id"}),
        ),
        (
            list(&format!("{documents}/list")),
            json!({"filters": {"field": "title", "operator": "eq", "value": "pointing"}, "expand": ["parent", "related", "ancestors", "children"], "limit": 1}),
        ),
        (
            list(documents),
            json!({"document_id": "$document_id", "title": "taken"}),
        ),
        (
            list(&format!("{documents}/batch")),
            json!({"updates": [{"document_id": "$document_id", "update_data": {"title": "taken"}}]}),
        ),
        (
            "DELETE /v1/collections/@collection_identifier/documents/batch",
            json!({"document_ids": ["$document_id"]}),
        ),
        (
            "DELETE /v1/collections/@collection_identifier/documents/batch",
            json!({"filters": filter}),
        ),
        (
            "PATCH /v1/collections/@collection_identifier/documents/bulk",
            json!({"filters": filter, "update_data": {"title": "taken"}}),
        ),
    ]
}

/// What is sent to retrievers.
fn retrievers() -> Bodies {
    let filter = json!({"field": "document_id", "operator": "eq", "value": "$document_id"});
    let stage = json!([{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {"conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}]);
    let like = json!([{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
        "searches": [{"feature_uri": "own", "query": {"input_mode": "document", "document_ref": {"document_id": "$document_id"}}}]}}}]);
    vec![
        (
            "POST /v1/retrievers",
            json!({"retriever_name": "over theirs", "collection_identifiers": ["$collection_identifier"], "input_schema": {}, "stages": stage}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/clone",
            json!({"retriever_name": "over theirs too", "collection_identifiers": ["$collection_identifier"]}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/clone",
            json!({"retriever_name": "like $document_id", "stages": like}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/execute",
            json!({"inputs": {}, "filters": filter}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/execute",
            json!({"inputs": {}, "target_collection_id": "$collection_identifier"}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/evaluations",
            json!({"dataset_name": "$dataset_identifier"}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/evaluations",
            json!({"dataset_name": "@dataset_identifier", "baseline_evaluation_id": "$evaluation_id"}),
        ),
        (
            "POST /v1/retrievers/benchmarks",
            json!({"benchmark_name": "b", "baseline_retriever_id": "$retriever_id", "candidate_retriever_ids": ["@retriever_id"]}),
        ),
        (
            "POST /v1/retrievers/benchmarks",
            json!({"benchmark_name": "b", "baseline_retriever_id": "@retriever_id", "candidate_retriever_ids": ["$retriever_id"]}),
        ),
    ]
}

/// What is sent of interactions and pages.
fn interactions() -> Bodies {
    vec![
        (
            "POST /v1/features/search",
            json!({"query": {"text": "x"}, "collection_identifiers": ["$collection_identifier"]}),
        ),
        (
            "POST /v1/retrievers/interactions",
            json!({"feature_id": "$document_id", "interaction_type": ["click"], "position": 0, "retriever_id": "$retriever_id"}),
        ),
        (
            "POST /v1/retrievers/interactions/batch",
            json!({"interactions": [{"feature_id": "$document_id", "interaction_type": ["click"], "position": 0, "retriever_id": "$retriever_id"}]}),
        ),
        (
            "POST /v1/retrievers/interactions/list",
            json!({"retriever_id": "$retriever_id"}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/publish",
            json!({"password_secret_name": "$secret_name"}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/publish/move",
            json!({"retriever_id": "$retriever_id"}),
        ),
        (
            "POST /v1/retrievers/$retriever_id/publish/move",
            json!({"retriever_id": "@retriever_id"}),
        ),
        (
            "POST /v1/apps",
            json!({"slug": "gated", "meta": {"title": "Gated"}, "password_secret_name": "$secret_name"}),
        ),
        (
            "POST /v1/retrievers/@retriever_id/execute",
            json!({"inputs": {}, "pagination": {"method": "cursor", "limit": 5, "cursor": "$cursor"}}),
        ),
    ]
}

/// What is sent to templates.
fn templates() -> Bodies {
    vec![
        (
            "POST /v1/templates/buckets/from-bucket/$bucket_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/collections/from-collection/$collection_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/retrievers/from-retriever/$retriever_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/taxonomies/from-taxonomy/$taxonomy_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/clusters/from-cluster/$cluster_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/namespaces/from-namespace/$namespace_id",
            json!({"template_name": "theirs"}),
        ),
        (
            "POST /v1/templates/retrievers/$template_id/instantiate",
            json!({"retriever_name": "of their template", "collection_identifiers": ["@collection_identifier"]}),
        ),
        (
            "POST /v1/templates/retrievers/@template_id/instantiate",
            json!({"retriever_name": "on theirs", "collection_identifiers": ["$collection_identifier"]}),
        ),
        (
            "POST /v1/templates/collections/tmpl_collection_texts/instantiate",
            json!({"collection_name": "of theirs", "bucket_ids": ["$bucket_id"]}),
        ),
        (
            "POST /v1/templates/collections/tmpl_collection_texts/instantiate",
            json!({"collection_name": "over theirs", "collection_id": "$collection_id"}),
        ),
        (
            "POST /v1/templates/clusters/tmpl_cluster_shelves/instantiate",
            json!({"cluster_name": "of theirs", "collection_ids": ["$collection_id"]}),
        ),
        (
            "POST /v1/templates/taxonomies/tmpl_taxonomy_topics/instantiate",
            json!({"taxonomy_name": "of theirs", "collection_config": {"source_collection": "$collection_id", "retriever": "@retriever_id"}}),
        ),
        (
            "POST /v1/templates/taxonomies/tmpl_taxonomy_topics/instantiate",
            json!({"taxonomy_name": "by theirs", "collection_config": {"source_collection": "@collection_identifier", "retriever": "$retriever_id"}}),
        ),
    ]
}

/// What is sent to clusters and triggers.
fn clusters() -> Bodies {
    vec![
        (
            "POST /v1/clusters",
            json!({"cluster_name": "of theirs", "collection_ids": ["$collection_identifier"], "cluster_type": "attribute", "attribute_config": {"attributes": ["title"]}}),
        ),
        (
            "POST /v1/clusters",
            json!({"cluster_name": "of their clusters", "source_cluster_ids": ["$cluster_id"], "vector_config": {"clustering_method": "kmeans"}}),
        ),
        (
            "POST /v1/clusters/@cluster_id/execute",
            json!({"mode": "composite", "source_execution_ids": ["$run_id"]}),
        ),
        (
            "POST /v1/clusters/triggers",
            json!({"trigger_type": "interval", "schedule_config": {"interval_seconds": 3600}, "cluster_id": "$cluster_id"}),
        ),
        (
            "POST /v1/triggers",
            json!({"name": "t", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600}, "action_type": "cluster", "action_config": {"cluster_id": "$cluster_id"}}),
        ),
        (
            "POST /v1/triggers",
            json!({"name": "t", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600}, "action_type": "taxonomy_enrichment", "action_config": {"taxonomy_id": "$taxonomy_id", "collection_id": "@collection_identifier"}}),
        ),
    ]
}

/// What is sent to taxonomies.
fn taxonomies() -> Bodies {
    vec![
        (
            "POST /v1/taxonomies",
            json!({"taxonomy_name": "of theirs", "config": {"taxonomy_type": "flat", "retriever_id": "$retriever_id", "input_mappings": [{"input_key": "x", "path": "x"}], "source_collection": {"collection_id": "@collection_identifier"}}}),
        ),
        (
            "POST /v1/taxonomies",
            json!({"taxonomy_name": "on theirs", "config": {"taxonomy_type": "flat", "retriever_id": "@retriever_id", "input_mappings": [{"input_key": "x", "path": "x"}], "source_collection": {"collection_id": "$collection_identifier"}}}),
        ),
        (
            "POST /v1/taxonomies/@taxonomy_identifier/execute",
            json!({"source_collection_id": "$collection_identifier"}),
        ),
        (
            "POST /v1/taxonomies/@taxonomy_identifier/execute",
            json!({"source_documents": [{"title": "x"}], "retriever": {"retriever_id": "$retriever_id"}}),
        ),
        (
            "POST /v1/taxonomies/@taxonomy_identifier/execute",
            json!({"source_collection_id": "@collection_identifier", "target_collection_id": "$collection_identifier", "join_mode": "batch"}),
        ),
        (
            "POST /v1/taxonomies/@taxonomy_identifier/clone",
            json!({"taxonomy_name": "cloned", "retriever_id": "$retriever_id"}),
        ),
        (
            "POST /v1/collections/@collection_identifier/apply-taxonomy",
            json!({"taxonomy_id": "$taxonomy_id"}),
        ),
        (
            "PATCH /v1/collections/@collection_identifier",
            json!({"taxonomy_applications": [{"taxonomy_id": "$taxonomy_id"}]}),
        ),
        (
            "POST /v1/retrievers",
            json!({"retriever_name": "by their kinds", "collection_identifiers": ["@collection_identifier"], "stages": [{"stage_name": "kinds", "config": {"stage_id": "taxonomy_enrich", "parameters": {"taxonomy_id": "$taxonomy_id"}}}]}),
        ),
    ]
}

/// What is sent to the organization, and asked of lists that tell of more than one resource.
fn lists() -> Bodies {
    vec![
        (
            "POST /v1/organizations/users/owner@localhost/api-keys",
            json!({"name": "scoped $collection_identifier", "scopes": [{"resource_type": "collection", "resource_id": "$collection_identifier"}]}),
        ),
        (
            "GET /v1/events?namespace_id=$namespace_identifier",
            Value::Null,
        ),
        (
            "GET /v1/organizations/audit/logs?resource_id=$bucket_identifier",
            Value::Null,
        ),
        (
            "GET /v1/organizations/audit/logs?actor_id=$key_id",
            Value::Null,
        ),
        (
            "GET /v1/collections/@collection_identifier/documents?cursor=$cursor",
            Value::Null,
        ),
        (
            "GET /v1/collections/@collection_identifier/documents/@document_id?expand=$document_id",
            Value::Null,
        ),
        (
            "GET /v1/retrievers/published?namespace_id=$namespace_identifier",
            Value::Null,
        ),
    ]
}

/// What is sent to namespaces.
fn namespaces() -> Bodies {
    vec![
        (
            "POST /v1/namespaces/@namespace_identifier/documents/upsert",
            json!({"collection_id": "$collection_identifier", "documents": [{"document_id": "x", "vectors": {}}]}),
        ),
        (
            "POST /v1/namespaces/$namespace_identifier/documents/upsert",
            json!({"documents": [{"document_id": "x", "vectors": {}}]}),
        ),
        (
            "POST /v1/namespaces/$namespace_identifier/promote",
            json!({"vector_mappings": [{"existing_index": "own", "inference_service": "all_minilm_l6_v2_v1"}]}),
        ),
        ("POST /v1/tasks/list", json!({"search": "$task_id"})),
        (
            "GET /v1/manifest/export?namespace_id=$namespace_identifier",
            Value::Null,
        ),
        (
            "POST /v1/manifest/export",
            json!({"namespace_ids": ["$namespace_identifier"]}),
        ),
        (
            "POST /v1/namespaces/list",
            json!({"search": "$namespace_identifier"}),
        ),
        (
            "POST /v1/collections/list",
            json!({"filters": {"field": "collection_id", "operator": "eq", "value": "$collection_identifier"}}),
        ),
    ]
}
