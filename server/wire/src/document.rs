//! Wire types of the interface: document.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    DegradedEntry, DocumentResponse, Filter, Object, PaginationResponse, SortOption, Value,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchDeleteDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1000)))]
    pub document_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchDeleteDocumentsResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_count: Option<i64>,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed_count: i64,
    #[serde(default)]
    pub results: Vec<BatchDocumentDeleteResult>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub limits: IndexMap<String, i64>,
    #[serde(default = "crate::defaults::text_batch_delete_completed")]
    pub message: String,
}

impl Default for BatchDeleteDocumentsResponse {
    fn default() -> Self {
        Self {
            task_id: None,
            status: None,
            deleted_count: None,
            failed_count: crate::defaults::i64_0(),
            results: Default::default(),
            limits: Default::default(),
            message: crate::defaults::text_batch_delete_completed(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchDocumentDeleteResult {
    pub document_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchDocumentUpdate {
    pub document_id: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub update_data: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchDocumentUpdateResult {
    pub document_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchUpdateDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1000)))]
    pub updates: Option<Vec<BatchDocumentUpdate>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub update_data: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchUpdateDocumentsResponse {
    pub updated_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<BatchDocumentUpdateResult>>,
    #[serde(default = "crate::defaults::text_batch_update_completed")]
    pub message: String,
}

impl Default for BatchUpdateDocumentsResponse {
    fn default() -> Self {
        Self {
            updated_count: Default::default(),
            failed_count: crate::defaults::i64_0(),
            results: None,
            message: crate::defaults::text_batch_update_completed(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkUpdateDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub update_data: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentCountResponse {
    pub collection_id: String,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentCreateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_bucket_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<DocumentCreateRequestSourceType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage_chain: Option<Vec<LineageStep>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_schema_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<FeatureModel>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<IndexMap<String, Vec<f64>>>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DocumentCreateRequestSourceType {
    #[default]
    #[serde(rename = "bucket")]
    Bucket,
    #[serde(rename = "collection")]
    Collection,
    #[serde(rename = "direct_upsert")]
    DirectUpsert,
    #[serde(rename = "signal")]
    Signal,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentGroup {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_key: Option<Value>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub documents: Vec<DocumentResponse>,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_documents: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_blobs_per_document: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_groups: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_documents_per_group: Option<f64>,
}

impl Default for DocumentListStats {
    fn default() -> Self {
        Self {
            total_documents: crate::defaults::i64_0(),
            avg_blobs_per_document: crate::defaults::f64_0_0(),
            total_groups: None,
            avg_documents_per_group: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentPatchRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentReplaceRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureModel {
    pub feature_extractor_id: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub payload: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<Value>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LineageStep {
    pub collection_id: String,
    pub feature_extractor_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub partition: Option<ListPartition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_total: Option<bool>,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_vectors: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_vector_names: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expand: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListDocumentsResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Option<Vec<DocumentResponse>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub groups: Option<Vec<DocumentGroup>>,
    #[serde(default)]
    pub unknown_collection_ids: Vec<String>,
    pub pagination: PaginationResponse,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_documents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<DocumentListStats>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by_field: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListPartition {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub index: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 256)))]
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceListDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub partition: Option<ListPartition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_total: Option<bool>,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_vectors: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_vector_names: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expand: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateDocumentACLRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchGetDocumentsRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1000)))]
    pub document_ids: Vec<String>,
    #[serde(default = "crate::defaults::yes")]
    pub return_presigned_urls: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchGetDocumentsResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub documents: Vec<DocumentResponse>,
    #[serde(default)]
    pub not_found: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchListDocumentsRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 10), nested))]
    pub queries: Vec<BatchListQuery>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchListQuery {
    /// What the answer names this list.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 128)))]
    pub key: String,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub request: NamespaceListDocumentsRequest,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchListDocumentsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<BatchListResult>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchListResult {
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub response: Option<ListDocumentsResponse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
