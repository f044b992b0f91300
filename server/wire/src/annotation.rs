//! Wire types of the interface: annotation.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Object};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnnotationResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_id: Option<String>,
    pub document_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    pub namespace_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub label: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub confidence: Option<f64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(length(max = 5000)))]
    pub reasoning: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub payload: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default)]
    pub retriever_id: Option<String>,
    #[serde(default)]
    pub execution_id: Option<String>,
    #[serde(default)]
    pub stage_name: Option<String>,
    #[serde(default = "crate::defaults::text_system")]
    pub actor_id: String,
    #[serde(default = "crate::defaults::text_system")]
    pub actor_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::i64_1")]
    pub version: i64,
    #[serde(default)]
    pub revisions: Vec<AnnotationRevision>,
}

impl Default for AnnotationResponse {
    fn default() -> Self {
        Self {
            annotation_id: None,
            document_id: Default::default(),
            collection_id: None,
            namespace_id: Default::default(),
            label: Default::default(),
            confidence: None,
            reasoning: None,
            payload: Default::default(),
            metadata: Default::default(),
            retriever_id: None,
            execution_id: None,
            stage_name: None,
            actor_id: crate::defaults::text_system(),
            actor_type: crate::defaults::text_system(),
            created_at: None,
            updated_at: None,
            version: crate::defaults::i64_1(),
            revisions: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnnotationRevision {
    pub version: i64,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub prior: Object,
    pub edited_at: DateTime<Utc>,
    pub edited_by: String,
    pub edited_by_type: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnnotationStatsResponse {
    #[serde(default = "crate::defaults::i64_0")]
    pub total: i64,
    #[serde(default)]
    pub by_label: IndexMap<String, i64>,
}

impl Default for AnnotationStatsResponse {
    fn default() -> Self {
        Self {
            total: crate::defaults::i64_0(),
            by_label: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnnotationVersionDescriptor {
    pub version: i64,
    #[serde(default)]
    pub current: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_by_type: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnnotationVersionsResponse {
    pub annotation_id: String,
    pub current_version: i64,
    #[serde(default)]
    pub versions: Vec<AnnotationVersionDescriptor>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkAnnotationCreate {
    pub document_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 5000)))]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub payload: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkAnnotationResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_id: Option<String>,
    pub operation: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkAnnotationUpdate {
    pub annotation_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub label: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>), validate(range(min = 0.0, max = 1.0)))]
    pub confidence: Option<Option<f64>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 5000)))]
    pub reasoning: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub payload: Option<Option<Object>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkAnnotationsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000), nested))]
    pub create: Option<Vec<BulkAnnotationCreate>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000), nested))]
    pub update: Option<Vec<BulkAnnotationUpdate>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub delete: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkAnnotationsResponse {
    #[serde(default = "crate::defaults::i64_0")]
    pub created_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub updated_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub deleted_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed_count: i64,
    #[serde(default)]
    pub results: Vec<BulkAnnotationResult>,
}

impl Default for BulkAnnotationsResponse {
    fn default() -> Self {
        Self {
            created_count: crate::defaults::i64_0(),
            updated_count: crate::defaults::i64_0(),
            deleted_count: crate::defaults::i64_0(),
            failed_count: crate::defaults::i64_0(),
            results: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateAnnotationRequest {
    pub document_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 5000)))]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub payload: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAnnotationsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAnnotationsResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<AnnotationResponse>,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_count: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

impl Default for ListAnnotationsResponse {
    fn default() -> Self {
        Self {
            results: Default::default(),
            total_count: crate::defaults::i64_0(),
            warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchAnnotationRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub label: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>), validate(range(min = 0.0, max = 1.0)))]
    pub confidence: Option<Option<f64>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 5000)))]
    pub reasoning: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub payload: Option<Option<Object>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
}
