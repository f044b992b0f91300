//! Wire types of the interface: what this server can do, and what an organization has by the name of it.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{CostsInfo, Object, ServeAppStatus, defaults};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExtractorDiscovery {
    pub name: String,
    pub version: String,
    pub description: String,
    #[serde(default)]
    pub supported_modalities: Vec<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub output_features: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub input_schema: Option<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub parameter_schema: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub output_schema: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub costs: Option<CostsInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_mode: Option<String>,
    #[serde(default)]
    pub expected_input_types: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_type: Option<String>,
    #[serde(default)]
    pub supported_input_types: Vec<String>,
    #[serde(default)]
    pub max_inputs: IndexMap<String, i64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub default_parameters: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub required_vector_indexes: Vec<Object>,
    #[serde(default)]
    pub position_fields: Vec<String>,
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// The member `feature_extractor` of a collection.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub example_usage: Object,
    /// Whether this server has what the extractor needs.
    #[serde(default)]
    pub realtime_available: bool,
    #[serde(default)]
    pub serve_apps: Vec<ServeAppStatus>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageDiscovery {
    pub stage_id: String,
    pub description: String,
    pub category: String,
    pub icon: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameter_schema: Option<Object>,
    /// `low` without a model, `moderate` with one that embeds or ranks, `high` with one that writes or a service that is paid.
    #[serde(default)]
    pub cost_tier: String,
    /// Whether it reads collections, rather than what the stages before it found.
    #[serde(default)]
    pub requires_collections: bool,
    /// Whether this server is configured with what the stage needs.
    #[serde(default)]
    pub available: bool,
    /// What it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DiscoveryResponse {
    pub extractors: Vec<ExtractorDiscovery>,
    pub stages: Vec<StageDiscovery>,
    /// As `GET /v1/discovery/schema` answers it, without the catalogues, which are beside it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub manifest_schema: Option<ManifestSchemaDiscovery>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SearchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub query: String,
    /// Left out: every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_types: Option<Vec<SearchResourceType>>,
    #[serde(default = "defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub limit: i64,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 10000)))]
    pub offset: i64,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            query: Default::default(),
            resource_types: None,
            limit: defaults::i64_20(),
            offset: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchResourceType {
    #[default]
    Bucket,
    Collection,
    Retriever,
    Taxonomy,
    Cluster,
    PublishedRetriever,
    Namespace,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SearchResponse {
    pub results: Vec<SearchResultItem>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SearchResultItem {
    pub resource_type: SearchResourceType,
    pub resource_id: String,
    pub resource_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

/// What namespaces are made of: for each type of resource the schema of the request that makes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ManifestSchemaDiscovery {
    /// The version of the interface whose requests these are.
    pub manifest_version: String,
    pub resource_types: Vec<String>,
    /// By type: a JSON schema that is whole in itself.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schemas: Object,
    /// By type: those that it names, which are made before it.
    pub dependency_graph: IndexMap<String, Vec<String>>,
    /// By type: a request as JSON. A name in double braces stands for the id that an earlier request answered.
    #[serde(default)]
    pub examples: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_manifest: Option<String>,
    /// How one comes from here to a search, step by step.
    #[serde(default)]
    pub authoring_loop: Vec<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub extractor_catalog: Vec<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub stage_catalog: Vec<Object>,
}
