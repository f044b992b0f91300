//! Wire types of the interface: event.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{DegradedEntry, Object};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ChangeEventResponse {
    pub seq: i64,
    pub cursor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    pub event_type: String,
    pub resource_type: String,
    pub operation: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub payload: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListEventsResponse {
    pub results: Vec<ChangeEventResponse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    pub has_more: bool,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum WebhookEventType {
    #[default]
    #[serde(rename = "object.created")]
    ObjectCreated,
    #[serde(rename = "objects.created.batch")]
    ObjectsCreatedBatch,
    #[serde(rename = "object.updated")]
    ObjectUpdated,
    #[serde(rename = "object.deleted")]
    ObjectDeleted,
    #[serde(rename = "document.created")]
    DocumentCreated,
    #[serde(rename = "document.updated")]
    DocumentUpdated,
    #[serde(rename = "document.deleted")]
    DocumentDeleted,
    #[serde(rename = "documents.updated.batch")]
    DocumentsUpdatedBatch,
    #[serde(rename = "documents.deleted.batch")]
    DocumentsDeletedBatch,
    #[serde(rename = "collection.created")]
    CollectionCreated,
    #[serde(rename = "collection.updated")]
    CollectionUpdated,
    #[serde(rename = "collection.deleted")]
    CollectionDeleted,
    #[serde(rename = "collection.documents.written")]
    CollectionDocumentsWritten,
    #[serde(rename = "collection.documents.batch_completed")]
    CollectionDocumentsBatchCompleted,
    #[serde(rename = "cluster.created")]
    ClusterCreated,
    #[serde(rename = "cluster.updated")]
    ClusterUpdated,
    #[serde(rename = "cluster.deleted")]
    ClusterDeleted,
    #[serde(rename = "cluster.execution.started")]
    ClusterExecutionStarted,
    #[serde(rename = "cluster.execution.completed")]
    ClusterExecutionCompleted,
    #[serde(rename = "cluster.execution.failed")]
    ClusterExecutionFailed,
    #[serde(rename = "trigger.created")]
    TriggerCreated,
    #[serde(rename = "trigger.updated")]
    TriggerUpdated,
    #[serde(rename = "trigger.deleted")]
    TriggerDeleted,
    #[serde(rename = "trigger.paused")]
    TriggerPaused,
    #[serde(rename = "trigger.resumed")]
    TriggerResumed,
    #[serde(rename = "trigger.fired")]
    TriggerFired,
    #[serde(rename = "trigger.execution.completed")]
    TriggerExecutionCompleted,
    #[serde(rename = "trigger.execution.failed")]
    TriggerExecutionFailed,
    #[serde(rename = "taxonomy.created")]
    TaxonomyCreated,
    #[serde(rename = "taxonomy.updated")]
    TaxonomyUpdated,
    #[serde(rename = "taxonomy.deleted")]
    TaxonomyDeleted,
    #[serde(rename = "alert.created")]
    AlertCreated,
    #[serde(rename = "alert.updated")]
    AlertUpdated,
    #[serde(rename = "alert.deleted")]
    AlertDeleted,
    #[serde(rename = "alert.triggered")]
    AlertTriggered,
    #[serde(rename = "alert.execution.completed")]
    AlertExecutionCompleted,
    #[serde(rename = "alert.execution.failed")]
    AlertExecutionFailed,
    #[serde(rename = "annotation.created")]
    AnnotationCreated,
    #[serde(rename = "annotation.updated")]
    AnnotationUpdated,
    #[serde(rename = "annotation.deleted")]
    AnnotationDeleted,
    #[serde(rename = "resource.executed")]
    ResourceExecuted,
    #[serde(rename = "resource.execution_failed")]
    ResourceExecutionFailed,
    #[serde(rename = "manifest.apply.resource_state")]
    ManifestApplyResourceState,
}
