//! Wire types of the interface: collection.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AlertApplicationConfig, BucketSchema, ClusterApplicationConfig, CollectionScheduleConfig,
    FeatureExtractorConfigOutput, Object, RetrieverEnrichmentConfig,
    RetrieverTransformConfigOutput, SourceConfig, TaxonomyApplicationConfig, TieringOverride,
    TieringRule, Value, VectorIndex,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionDisabledReason {
    pub code: CollectionDisabledReasonCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CollectionDisabledReasonCode {
    #[default]
    #[serde(rename = "source_collection_deleted")]
    SourceCollectionDeleted,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionFeatureDescriptor {
    pub feature_address: String,
    pub feature_extractor_name: String,
    pub version: String,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_index: VectorIndex,
    #[serde(default)]
    pub primary: bool,
    pub feature_uri: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_documents: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_documents_per_collection: f64,
    #[serde(default = "crate::defaults::i64_0")]
    pub collections_with_taxonomies: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_feature_extractors: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_taxonomies: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_retrievers: i64,
}

impl Default for CollectionListStats {
    fn default() -> Self {
        Self {
            total_documents: crate::defaults::i64_0(),
            avg_documents_per_collection: crate::defaults::f64_0_0(),
            collections_with_taxonomies: crate::defaults::i64_0(),
            total_feature_extractors: crate::defaults::i64_0(),
            total_taxonomies: crate::defaults::i64_0(),
            total_retrievers: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 100)))]
    pub collection_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<BucketSchema>,
    pub feature_extractor: FeatureExtractorConfigOutput,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source: SourceConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_bucket_schemas: Option<IndexMap<String, BucketSchema>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_lineage: Vec<SingleLineageEntry>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub index_map: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vector_indexes: Vec<CollectionVectorIndex>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payload_indexes: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<CollectionDisabledReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<CollectionScheduleConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::text_active")]
    pub lifecycle_state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_vector_index: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lifecycle_transition: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiering_rules: Vec<TieringRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    #[serde(default = "crate::defaults::i64_1")]
    pub schema_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schema_sync: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::yes")]
    pub schema_sync_enabled: bool,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub document_schema: Object,
    #[serde(default = "crate::defaults::collection_model_schema_validation_off")]
    pub schema_validation: CollectionModelSchemaValidation,
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
    pub retriever_transform: Option<RetrieverTransformConfigOutput>,
}

impl Default for CollectionModel {
    fn default() -> Self {
        Self {
            collection_id: None,
            collection_name: Default::default(),
            description: None,
            input_schema: None,
            output_schema: None,
            feature_extractor: Default::default(),
            source: Default::default(),
            source_bucket_schemas: None,
            source_lineage: Default::default(),
            index_map: Default::default(),
            vector_indexes: Default::default(),
            payload_indexes: Default::default(),
            embedding_task: None,
            enabled: crate::defaults::yes(),
            disabled_reason: None,
            metadata: None,
            schedule: None,
            trigger_id: None,
            created_at: None,
            updated_at: None,
            lifecycle_state: crate::defaults::text_active(),
            s3_vector_index: None,
            last_lifecycle_transition: None,
            tiering_rules: Default::default(),
            tiering: None,
            document_count: None,
            schema_version: crate::defaults::i64_1(),
            last_schema_sync: None,
            schema_sync_enabled: crate::defaults::yes(),
            document_schema: Default::default(),
            schema_validation: crate::defaults::collection_model_schema_validation_off(),
            taxonomy_applications: None,
            cluster_applications: None,
            alert_applications: None,
            retriever_enrichments: None,
            retriever_transform: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CollectionModelSchemaValidation {
    #[serde(rename = "strict")]
    Strict,
    #[serde(rename = "warn")]
    Warn,
    #[default]
    #[serde(rename = "off")]
    Off,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 100)))]
    pub collection_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<BucketSchema>,
    pub feature_extractor: FeatureExtractorConfigOutput,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source: SourceConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_bucket_schemas: Option<IndexMap<String, BucketSchema>>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_lineage: Vec<SingleLineageEntry>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub index_map: IndexMap<String, String>,
    #[serde(default)]
    pub vector_indexes: Vec<CollectionVectorIndex>,
    #[serde(default)]
    pub payload_indexes: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<CollectionDisabledReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<CollectionScheduleConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::text_active")]
    pub lifecycle_state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_vector_index: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lifecycle_transition: Option<DateTime<Utc>>,
    #[serde(default)]
    pub tiering_rules: Vec<TieringRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    #[serde(default = "crate::defaults::i64_1")]
    pub schema_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schema_sync: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::yes")]
    pub schema_sync_enabled: bool,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub document_schema: Object,
    #[serde(default = "crate::defaults::collection_response_schema_validation_off")]
    pub schema_validation: CollectionResponseSchemaValidation,
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
    pub retriever_transform: Option<RetrieverTransformConfigOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexing_status_scoped: Option<bool>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Default for CollectionResponse {
    fn default() -> Self {
        Self {
            collection_id: None,
            collection_name: Default::default(),
            description: None,
            input_schema: None,
            output_schema: None,
            feature_extractor: Default::default(),
            source: Default::default(),
            source_bucket_schemas: None,
            source_lineage: Default::default(),
            index_map: Default::default(),
            vector_indexes: Default::default(),
            payload_indexes: Default::default(),
            embedding_task: None,
            enabled: crate::defaults::yes(),
            disabled_reason: None,
            metadata: None,
            schedule: None,
            trigger_id: None,
            created_at: None,
            updated_at: None,
            lifecycle_state: crate::defaults::text_active(),
            s3_vector_index: None,
            last_lifecycle_transition: None,
            tiering_rules: Default::default(),
            tiering: None,
            document_count: None,
            schema_version: crate::defaults::i64_1(),
            last_schema_sync: None,
            schema_sync_enabled: crate::defaults::yes(),
            document_schema: Default::default(),
            schema_validation: crate::defaults::collection_response_schema_validation_off(),
            taxonomy_applications: None,
            cluster_applications: None,
            alert_applications: None,
            retriever_enrichments: None,
            retriever_transform: None,
            vector_count: None,
            taxonomy_count: None,
            retriever_count: None,
            indexing_status: None,
            indexing_status_scoped: None,
            warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CollectionResponseSchemaValidation {
    #[serde(rename = "strict")]
    Strict,
    #[serde(rename = "warn")]
    Warn,
    #[default]
    #[serde(rename = "off")]
    Off,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionVectorIndex {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub index: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CollectionVectorIndexSource>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CollectionVectorIndexSource {
    #[default]
    #[serde(rename = "namespace_vector_config")]
    NamespaceVectorConfig,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DescribeCollectionFeaturesResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub features: Vec<CollectionFeatureDescriptor>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SingleLineageEntry {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_config: SourceConfig,
    pub feature_extractor: FeatureExtractorConfigOutput,
    pub output_schema: BucketSchema,
}
