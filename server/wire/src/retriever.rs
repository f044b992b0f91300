//! Wire types of the interface: retriever.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BudgetLimits, DegradedEntry, DisplayConfig, Object, PaginationResponse, ReadConsistencyOption,
    RetrieverInputSchemaField, RetrieverPagination, RetrieverVisibility, SortOption,
    StageConfigInput, StageConfigOutput,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<RetrieverPagination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: Option<i64>,
    #[serde(default)]
    pub stream: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expand: Option<Vec<String>>,
    #[serde(default)]
    pub skip_cache: bool,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default)]
    pub return_vectors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub consistency: Option<ReadConsistencyOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default)]
    pub explain: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteRetrieverResponse {
    #[serde(default)]
    pub retriever_id: String,
    pub execution_id: String,
    pub status: String,
    #[serde(default)]
    pub degraded: Vec<DegradedEntry>,
    #[serde(default)]
    pub limits: Vec<LimitEntry>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub documents: Vec<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub results: Vec<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stage_statistics: Option<RetrieverExecutionStatistics>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub facets: Vec<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub budget: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_at: Option<f64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub completeness: IndexMap<String, String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub interpretation: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    pub optimization_applied: bool,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub optimization_summary: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub learned_fusion_context: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub written_to: Object,
    #[serde(default)]
    pub cache_hit: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency_mode: Option<String>,
    #[serde(default)]
    pub enrichment_skipped: bool,
    #[serde(default)]
    pub enrichment_skipped_stages: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment_skip_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub diagnostics: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub explain_plan: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecutionDetail {
    #[serde(default)]
    pub retriever_id: String,
    pub execution_id: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<DegradedEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub documents: Vec<Object>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub results: Vec<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stage_statistics: Option<RetrieverExecutionStatistics>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub facets: Vec<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub budget: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_at: Option<f64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub completeness: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub interpretation: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    pub optimization_applied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub optimization_summary: Option<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub learned_fusion_context: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub stages_completed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_stages: i64,
    #[serde(default)]
    pub documents_retained: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_returned: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl Default for ExecutionDetail {
    fn default() -> Self {
        Self {
            retriever_id: String::new(),
            execution_id: Default::default(),
            status: Default::default(),
            degraded: Default::default(),
            limits: Default::default(),
            documents: Default::default(),
            results: Default::default(),
            pagination: Default::default(),
            stage_statistics: None,
            facets: Default::default(),
            budget: Default::default(),
            cached_at: None,
            completeness: Default::default(),
            warnings: Default::default(),
            interpretation: Default::default(),
            error: None,
            optimization_applied: false,
            optimization_summary: None,
            learned_fusion_context: Default::default(),
            created_at: None,
            completed_at: None,
            current_stage: None,
            stages_completed: crate::defaults::i64_0(),
            total_stages: crate::defaults::i64_0(),
            documents_retained: false,
            total_returned: None,
            trace_id: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExplainRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExplainRetrieverResponse {
    pub retriever_id: String,
    pub retriever_name: String,
    pub estimated_cost: IndexMap<String, f64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub execution_plan: Vec<ExplainStagePlan>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub optimization_suggestions: Vec<Object>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_estimated_stages: i64,
    #[serde(default)]
    pub bottleneck_stages: Vec<String>,
    #[serde(default = "crate::defaults::text_mvp")]
    pub optimization_level: String,
    #[serde(default)]
    pub optimization_applied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub optimization_details: Option<Object>,
}

impl Default for ExplainRetrieverResponse {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            retriever_name: Default::default(),
            estimated_cost: Default::default(),
            execution_plan: Default::default(),
            optimization_suggestions: Default::default(),
            total_estimated_stages: Default::default(),
            bottleneck_stages: Default::default(),
            optimization_level: crate::defaults::text_mvp(),
            optimization_applied: false,
            optimization_details: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExplainStagePlan {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub stage_index: i64,
    pub stage_name: String,
    pub stage_type: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub estimated_input: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub estimated_output: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub estimated_efficiency: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub estimated_cost_credits: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub estimated_duration_ms: f64,
    pub cache_likely: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optimization_notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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
pub struct LimitEntry {
    pub name: String,
    pub requested: i64,
    pub applied: i64,
    pub ceiling: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListExecutionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListExecutionsResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<RetrieverExecutionSummary>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub pagination: PaginationMetadata,
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
pub struct PaginationMetadata {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub limit: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: i64,
    pub has_next: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<RetrieverVisibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketplace_listing_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_subscription: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
pub struct RetrieverExecutionStatistics {
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub stages: IndexMap<String, StageStatistics>,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub total_time_ms: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub credits_used: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub server_service_ms: Option<f64>,
}

impl Default for RetrieverExecutionStatistics {
    fn default() -> Self {
        Self {
            stages: Default::default(),
            total_time_ms: crate::defaults::f64_0_0(),
            credits_used: crate::defaults::f64_0_0(),
            server_service_ms: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverExecutionSummary {
    pub execution_id: String,
    pub status: String,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub duration_ms: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub credits_used: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_processed: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_returned: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub cache_hit_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageStatistics {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub input_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub output_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub duration_ms: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub efficiency: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_cache_hit: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_at: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub llm_calls: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub tokens_used: Option<i64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}
