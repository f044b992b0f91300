//! Wire types of the interface: public.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    DisplayConfig, ExternalLink, InteractionType, Object, RetrieverInputSchemaField,
    RetrieverMetadata,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListPublicRetrieversResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<PublicRetrieverListItem>,
    pub total_count: i64,
    pub page: i64,
    pub page_size: i64,
    pub total_pages: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<PublicRetrieverListStats>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicExecuteResponse {
    pub execution_id: String,
    pub status: String,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub documents: Vec<Object>,
    /// By document and field: a piece of its text in runs, `{text, marked}`. Only where asked for.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub highlights: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub facets: Vec<Object>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicInteractionBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100), nested))]
    pub interactions: Vec<PublicInteractionRequest>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicInteractionRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 256)))]
    pub document_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 22)))]
    pub interaction_type: Vec<InteractionType>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub position: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub query_snapshot: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub result_set_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicRetrieverConfigResponse {
    pub public_name: String,
    #[serde(default)]
    pub public_api_key: Option<String>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: DisplayConfig,
    pub password_protected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_metadata: Option<RetrieverMetadata>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicRetrieverListItem {
    pub public_name: String,
    pub public_url: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub og_image_url: Option<String>,
    pub password_protected: bool,
    pub is_active: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub external_links: Vec<ExternalLink>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicRetrieverListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_active: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_password_protected: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_open: i64,
}

impl Default for PublicRetrieverListStats {
    fn default() -> Self {
        Self {
            total_active: crate::defaults::i64_0(),
            total_password_protected: crate::defaults::i64_0(),
            total_open: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicRetrieverTemplateResponse {
    pub retriever_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub collection_identifiers: Vec<String>,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub stages: Vec<Object>,
    pub input_schema: IndexMap<String, RetrieverInputSchemaField>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub budget_limits: Object,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
    pub source_public_name: String,
    pub source_public_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub feature_extractors: Option<Vec<Object>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VerifyPasswordRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1024)))]
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VerifyPasswordResponse {
    pub valid: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_api_key: Option<String>,
}
