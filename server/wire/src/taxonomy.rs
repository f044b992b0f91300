//! Wire types of the interface: taxonomy.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Filter, InputMapping, Object, SortOption, TaxonomyConfig};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneTaxonomyRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub taxonomy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<TaxonomyConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneTaxonomyResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub taxonomy: TaxonomyModel,
    pub source_taxonomy_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTaxonomyRequest {
    pub taxonomy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub config: TaxonomyConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTaxonomyVersionRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<TaxonomyConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteTaxonomyRequest {
    /// Typed clients repeat the taxonomy of the path here; one of another id is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub taxonomy: Option<Object>,
    /// `{retriever_id}`: a stored retriever that finds the nodes in place of the taxonomy's own, for this execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub retriever: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<std::collections::HashMap<String, serde_json::Value>>>))]
    pub source_documents: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default = "crate::defaults::join_mode_on_demand")]
    pub join_mode: JoinMode,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
    pub batch_size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_filters: Option<Filter>,
}

impl Default for ExecuteTaxonomyRequest {
    fn default() -> Self {
        Self {
            taxonomy: None,
            retriever: None,
            source_documents: None,
            source_collection_id: None,
            target_collection_id: None,
            join_mode: crate::defaults::join_mode_on_demand(),
            batch_size: crate::defaults::i64_1000(),
            scroll_filters: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum JoinMode {
    #[default]
    #[serde(rename = "on_demand")]
    OnDemand,
    #[serde(rename = "batch")]
    Batch,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct JoinResponse {
    pub stats: JoinStats,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub results: Option<Vec<Object>>,
    #[serde(default)]
    pub matches: Vec<TaxonomyMatch>,
    /// The task of an execution that stores what it finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The first reason why a document was not matched, where some were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct JoinStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub processed_docs: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub batches: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub errors: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub enriched: i64,
}

impl Default for JoinStats {
    fn default() -> Self {
        Self {
            processed_docs: crate::defaults::i64_0(),
            batches: crate::defaults::i64_0(),
            errors: crate::defaults::i64_0(),
            enriched: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTaxonomiesRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub page_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 10000)))]
    pub offset: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub page: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTaxonomiesResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<TaxonomyResponse>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<TaxonomyListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchTaxonomyRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_taxonomies: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub flat_taxonomies: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub hierarchical_taxonomies: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub taxonomies_with_retrievers: i64,
}

impl Default for TaxonomyListStats {
    fn default() -> Self {
        Self {
            total_taxonomies: crate::defaults::i64_0(),
            flat_taxonomies: crate::defaults::i64_0(),
            hierarchical_taxonomies: crate::defaults::i64_0(),
            taxonomies_with_retrievers: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyMatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(default)]
    pub path: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchy_level: Option<i64>,
    #[serde(default)]
    pub enriched_fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_id: Option<String>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub version: i64,
    pub taxonomy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Vec<InputMapping>>,
    pub config: TaxonomyConfig,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub nodes: Vec<TaxonomyPathNode>,
    #[serde(default = "crate::defaults::yes")]
    pub ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}

impl Default for TaxonomyModel {
    fn default() -> Self {
        Self {
            taxonomy_id: None,
            version: crate::defaults::i64_1(),
            taxonomy_name: Default::default(),
            description: None,
            retriever_id: None,
            input_mappings: None,
            config: Default::default(),
            nodes: Default::default(),
            ready: crate::defaults::yes(),
            created_at: None,
            metadata: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyPathNode {
    pub node_id: String,
    pub label: String,
    pub path: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub level: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_id: Option<String>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub version: i64,
    pub taxonomy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Vec<InputMapping>>,
    pub config: TaxonomyConfig,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub nodes: Vec<TaxonomyPathNode>,
    #[serde(default = "crate::defaults::yes")]
    pub ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}

impl Default for TaxonomyResponse {
    fn default() -> Self {
        Self {
            taxonomy_id: None,
            version: crate::defaults::i64_1(),
            taxonomy_name: Default::default(),
            description: None,
            retriever_id: None,
            input_mappings: None,
            config: Default::default(),
            nodes: Default::default(),
            ready: crate::defaults::yes(),
            created_at: None,
            metadata: Default::default(),
        }
    }
}
