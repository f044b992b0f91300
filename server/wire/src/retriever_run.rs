//! Wire types of the interface: executions of retrievers.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Object, ReadConsistencyOption, RetrieverPagination};

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
    #[cfg_attr(feature = "schema", validate(nested))]
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
    /// Whether the answer tells where documents have the words of the inputs.
    #[serde(default)]
    pub return_highlights: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub consistency: Option<ReadConsistencyOption>,
    /// A collection that the documents of the answer are written into, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default)]
    pub explain: bool,
}

/// A list that has several owners, as a list.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Object;

    pub fn serialize<S: Serializer>(
        list: &Arc<Vec<Object>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        list.as_ref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Vec<Object>>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::new)
    }
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
    // Shared: an answer is sent and remembered.
    #[serde(default, with = "shared")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub documents: Arc<Vec<Object>>,
    /// By document and field: a piece of its text in runs, `{text, marked}`. Only where asked for.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub highlights: Object,
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
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
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
