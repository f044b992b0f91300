//! Wire types of the interface: executions without a retriever, in batches, their state, and what completes a search.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BudgetLimits, DegradedEntry, ExecuteRetrieverResponse, Object, RetrieverInputSchemaField,
    RetrieverPagination, StageConfigInput, Value,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AdhocExecuteRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_identifiers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<IndexMap<String, RetrieverInputSchemaField>>,
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub pagination: Option<RetrieverPagination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: Option<i64>,
    #[serde(default)]
    pub stream: bool,
    /// Whether the answer tells the plan, and why its documents stand where they do.
    #[serde(default)]
    pub explain: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AdhocExecutionDetail {
    pub execution_id: String,
    pub execution_mode: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Value>,
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
    pub query_summary: Option<String>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub stages_completed: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_stages: i64,
    #[serde(default)]
    pub collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_hash: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AdhocExecutionSummary {
    pub execution_id: String,
    pub execution_mode: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Value>,
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
    pub query_summary: Option<String>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub stages_completed: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_stages: i64,
    #[serde(default)]
    pub collection_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchQueryItem {
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub inputs: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub filters: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteBatchItem {
    pub index: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    pub status: String,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub documents: Vec<Object>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<DegradedEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 16)))]
    pub queries: Vec<BatchQueryItem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub settings: Option<Object>,
    #[serde(default = "crate::defaults::i64_5")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 20)))]
    pub concurrency: i64,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default)]
    pub return_vectors: bool,
    #[serde(default)]
    pub stream: bool,
}

impl Default for ExecuteBatchRequest {
    fn default() -> Self {
        Self {
            queries: Default::default(),
            settings: None,
            concurrency: crate::defaults::i64_5(),
            return_presigned_urls: false,
            return_vectors: false,
            stream: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteBatchResponse {
    pub results: Vec<ExecuteBatchItem>,
    pub total: i64,
    pub succeeded: i64,
    pub failed: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecutionStatusResponse {
    pub execution_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<String>,
    pub stages_completed: i64,
    pub total_stages: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub result: Option<ExecuteRetrieverResponse>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAdhocExecutionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Value>,
    #[serde(default)]
    pub count_only: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAdhocExecutionsResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<AdhocExecutionSummary>,
    #[serde(default = "crate::defaults::i64_0")]
    pub total: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Value>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

impl Default for ListAdhocExecutionsResponse {
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
pub struct TypeaheadCollectionSuggestion {
    pub collection_id: String,
    pub collection_name: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TypeaheadResponse {
    pub query: String,
    #[serde(default)]
    pub suggestions: Vec<String>,
    #[serde(default)]
    pub values: Vec<TypeaheadValueSuggestion>,
    #[serde(default)]
    pub collections: Vec<TypeaheadCollectionSuggestion>,
    #[serde(default)]
    pub recent_searches: Vec<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TypeaheadValueSuggestion {
    pub field: String,
    pub value: String,
    pub count: i64,
}
