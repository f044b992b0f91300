//! Wire types of the interface: retrievers.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BudgetLimits, DegradedEntry, DisplayConfig, Object, PaginationResponse,
    RetrieverInputSchemaField, RetrieverVisibility, SortOption, StageConfigInput,
    StageConfigOutput,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneRetrieverRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_identifiers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stages: Option<Vec<StageConfigInput>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<IndexMap<String, RetrieverInputSchemaField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneRetrieverResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub retriever: RetrieverConfig,
    pub source_retriever_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateRetrieverRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default = "crate::defaults::retriever_visibility_private")]
    pub visibility: RetrieverVisibility,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace_listing_id: Option<String>,
    #[serde(default)]
    pub requires_subscription: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_identifiers: Option<Vec<String>>,
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<IndexMap<String, RetrieverInputSchemaField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
}

impl Default for CreateRetrieverRequest {
    fn default() -> Self {
        Self {
            retriever_name: Default::default(),
            description: None,
            visibility: crate::defaults::retriever_visibility_private(),
            marketplace_listing_id: None,
            requires_subscription: false,
            collection_identifiers: None,
            stages: Default::default(),
            input_schema: None,
            budget_limits: None,
            tags: None,
            metadata: None,
            display_config: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureAddress {
    #[serde(default = "crate::defaults::text_loupe")]
    pub scheme: String,
    pub extractor: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl Default for FeatureAddress {
    fn default() -> Self {
        Self {
            scheme: crate::defaults::text_loupe(),
            extractor: Default::default(),
            version: Default::default(),
            output: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListRetrieversRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListRetrieversResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<RetrieverModelOutput>,
    #[serde(default = "crate::defaults::i64_0")]
    pub total: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<PaginationResponse>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

impl Default for ListRetrieversResponse {
    fn default() -> Self {
        Self {
            results: Default::default(),
            total: crate::defaults::i64_0(),
            pagination: None,
            warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<RetrieverVisibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace_listing_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_subscription: Option<bool>,
    /// `null` takes all away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>))]
    pub tags: Option<Option<Vec<String>>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<DisplayConfig>), validate(nested))]
    pub display_config: Option<Option<DisplayConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_identifiers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stages: Option<Vec<StageConfigInput>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<IndexMap<String, RetrieverInputSchemaField>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchRetrieverResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub retriever: RetrieverConfig,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collection_ids: Vec<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigOutput>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub input_schema: IndexMap<String, RetrieverInputSchemaField>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_dependencies: Option<Vec<FeatureAddress>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub display_config: Option<Object>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    #[serde(default)]
    pub fusion: Option<String>,
    pub collection_identifiers: Vec<String>,
}

impl Default for RetrieverConfig {
    fn default() -> Self {
        Self {
            retriever_id: None,
            retriever_name: Default::default(),
            description: None,
            collection_ids: Default::default(),
            stages: Default::default(),
            input_schema: Default::default(),
            budget_limits: None,
            feature_dependencies: None,
            tags: Default::default(),
            metadata: Default::default(),
            display_config: None,
            version: crate::defaults::i64_1(),
            created_at: None,
            updated_at: None,
            created_by: None,
            updated_by: None,
            fusion: None,
            collection_identifiers: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverModelOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collection_ids: Vec<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigOutput>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub input_schema: IndexMap<String, RetrieverInputSchemaField>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_dependencies: Option<Vec<FeatureAddress>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub display_config: Option<Object>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    #[serde(default)]
    pub is_published: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace_listing_id: Option<String>,
    #[serde(default)]
    pub fusion: Option<String>,
    pub collection_identifiers: Vec<String>,
}

impl Default for RetrieverModelOutput {
    fn default() -> Self {
        Self {
            retriever_id: None,
            retriever_name: Default::default(),
            description: None,
            collection_ids: Default::default(),
            stages: Default::default(),
            input_schema: Default::default(),
            budget_limits: None,
            feature_dependencies: None,
            tags: Default::default(),
            metadata: Default::default(),
            display_config: None,
            version: crate::defaults::i64_1(),
            created_at: None,
            updated_at: None,
            created_by: None,
            updated_by: None,
            is_published: false,
            marketplace_listing_id: None,
            fusion: None,
            collection_identifiers: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverStageDefinition {
    pub stage_id: String,
    pub description: String,
    pub category: StageCategory,
    pub icon: String,
    /// Whether this server is configured with what the stage needs.
    #[serde(default)]
    pub available: bool,
    /// What it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameter_schema: Option<Object>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StageCategory {
    #[default]
    #[serde(rename = "filter")]
    Filter,
    #[serde(rename = "sort")]
    Sort,
    #[serde(rename = "reduce")]
    Reduce,
    #[serde(rename = "apply")]
    Apply,
    #[serde(rename = "enrich")]
    Enrich,
}
