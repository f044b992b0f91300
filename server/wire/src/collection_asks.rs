//! Wire types of the interface: what is asked of collections, and answered.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AlertApplicationConfig, BatchCostEstimate, BucketSchema, ClusterApplicationConfig,
    CollectionListStats, CollectionModel, CollectionResponse, CollectionScheduleConfig,
    DedupStrategy, DegradedEntry, FeatureExtractorConfigInput, Filter, Object, PaginationResponse,
    RetrieverEnrichmentConfig, RetrieverTransformConfigInput, SortOption, SourceConfig,
    StoredTextReembedRequest, TaxonomyApplicationConfig, TieringOverride,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneCollectionRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source: Option<SourceConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractor: Option<FeatureExtractorConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub taxonomy_applications: Option<Vec<TaxonomyApplicationConfig>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneCollectionResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub collection: CollectionModel,
    pub source_collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateCollectionRequest {
    pub collection_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source: SourceConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractor: Option<FeatureExtractorConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<CollectionScheduleConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub taxonomy_applications: Option<Vec<TaxonomyApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cluster_applications: Option<Vec<ClusterApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub alert_applications: Option<Vec<AlertApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub retriever_enrichments: Option<Vec<RetrieverEnrichmentConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub retriever_transform: Option<RetrieverTransformConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<String>,
}

impl Default for CreateCollectionRequest {
    fn default() -> Self {
        Self {
            collection_name: Default::default(),
            description: None,
            source: Default::default(),
            input_schema: None,
            feature_extractor: None,
            features: None,
            enabled: crate::defaults::yes(),
            metadata: None,
            schedule: None,
            taxonomy_applications: None,
            cluster_applications: None,
            alert_applications: None,
            retriever_enrichments: None,
            retriever_transform: None,
            embedding_task: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListCollectionsRequest {
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
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default)]
    pub include_system: bool,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListCollectionsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<CollectionResponse>,
    pub pagination: PaginationResponse,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<CollectionListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerCollectionRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_buckets: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_collections: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub reembed: Option<StoredTextReembedRequest>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerCollectionResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<String>,
    pub task_id: String,
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_count: Option<i64>,
    #[serde(default)]
    pub batch_ids: Vec<String>,
    #[serde(default)]
    pub task_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    pub total_tiers: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<BatchCostEstimate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateCollectionRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 100)))]
    pub collection_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub taxonomy_applications: Option<Vec<TaxonomyApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cluster_applications: Option<Vec<ClusterApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub alert_applications: Option<Vec<AlertApplicationConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub retriever_enrichments: Option<Vec<RetrieverEnrichmentConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<CollectionScheduleConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub document_schema: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_validation: Option<UpdateCollectionRequestSchemaValidation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_sync_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_map: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum UpdateCollectionRequestSchemaValidation {
    #[default]
    #[serde(rename = "strict")]
    Strict,
    #[serde(rename = "warn")]
    Warn,
    #[serde(rename = "off")]
    Off,
}
