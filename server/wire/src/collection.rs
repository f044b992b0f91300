//! Wire types of the interface: collection.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AlertExecutionMode, BatchCostEstimate, BucketSchema, BudgetLimits, DedupStrategy,
    DegradedEntry, Filter, Object, PaginationResponse, SortOption, SourceType, StageConfigInput,
    StageConfigOutput, TieringOverride, Value, VectorIndex,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertApplicationConfig {
    pub alert_id: String,
    #[serde(default = "crate::defaults::alert_execution_mode_on_ingest")]
    pub execution_mode: AlertExecutionMode,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub input_mappings: Vec<AlertInputMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_phase: Option<PostProcessingPhase>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
}

impl Default for AlertApplicationConfig {
    fn default() -> Self {
        Self {
            alert_id: Default::default(),
            execution_mode: crate::defaults::alert_execution_mode_on_ingest(),
            input_mappings: Default::default(),
            execution_phase: None,
            priority: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertInputMapping {
    pub input_key: String,
    pub source: InputMappingSource,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApplyTaxonomyRequest {
    pub taxonomy_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub scroll_filters: Option<Object>,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 100, max = 5000)))]
    pub batch_size: i64,
    #[serde(default = "crate::defaults::i64_4")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 20)))]
    pub parallelism: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
}

impl Default for ApplyTaxonomyRequest {
    fn default() -> Self {
        Self {
            taxonomy_id: Default::default(),
            scroll_filters: None,
            batch_size: crate::defaults::i64_1000(),
            parallelism: crate::defaults::i64_4(),
            budget_limits: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApplyTaxonomyResponse {
    pub task_id: String,
    pub status: String,
    pub collection_id: String,
    pub taxonomy_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_documents: Option<i64>,
}

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
pub struct ClusterApplicationConfig {
    pub cluster_id: String,
    #[serde(default = "crate::defaults::yes")]
    pub auto_execute_on_batch: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_document_threshold: Option<i64>,
    #[serde(default = "crate::defaults::i64_3600")]
    pub cooldown_seconds: i64,
    #[serde(default = "crate::defaults::i64_2")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 3)))]
    pub execution_phase: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
}

impl Default for ClusterApplicationConfig {
    fn default() -> Self {
        Self {
            cluster_id: Default::default(),
            auto_execute_on_batch: crate::defaults::yes(),
            min_document_threshold: None,
            cooldown_seconds: crate::defaults::i64_3600(),
            execution_phase: crate::defaults::i64_2(),
            priority: crate::defaults::i64_0(),
        }
    }
}

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionExportRequest {
    #[serde(default = "crate::defaults::export_format_parquet")]
    pub format: ExportFormat,
    #[serde(default)]
    pub include_vectors: bool,
    #[serde(default)]
    pub include_lineage: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select_fields: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000000)))]
    pub sample_size: Option<i64>,
    #[serde(default)]
    pub include_media: bool,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100000)))]
    pub samples_per_shard: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<ExportDestination>,
}

impl Default for CollectionExportRequest {
    fn default() -> Self {
        Self {
            format: crate::defaults::export_format_parquet(),
            include_vectors: false,
            include_lineage: false,
            select_fields: None,
            filters: None,
            sample_size: None,
            include_media: false,
            samples_per_shard: crate::defaults::i64_1000(),
            destination: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionExportResponse {
    pub download_url: String,
    pub s3_path: String,
    pub format: ExportFormat,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub document_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub file_size_bytes: i64,
    pub exported_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_download_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_s3_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub shard_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_pattern: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub shards: Vec<ExportShard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub media: Option<ExportMediaSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub destination: Option<ExportDestinationResult>,
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
pub struct CollectionScheduleConfig {
    pub trigger_type: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
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
pub struct DescribeCollectionFeaturesResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub features: Vec<CollectionFeatureDescriptor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum EmbeddingModel {
    #[default]
    #[serde(rename = "laion_clip_vit_l_14_v1")]
    LaionClipVitL14V1,
    #[serde(rename = "multilingual_e5_large_instruct_v1")]
    MultilingualE5LargeInstructV1,
    #[serde(rename = "vertex_multimodal_embedding")]
    VertexMultimodalEmbedding,
    #[serde(rename = "multimodalembedding@001")]
    Multimodalembedding001,
    #[serde(rename = "gemini-embedding-2")]
    GeminiEmbedding2,
    #[serde(rename = "google_siglip_base_v1")]
    GoogleSiglipBaseV1,
    #[serde(rename = "google_siglip_so400m_v1")]
    GoogleSiglipSo400mV1,
    #[serde(rename = "text-embedding-3-small")]
    TextEmbedding3Small,
    #[serde(rename = "text-embedding-3-large")]
    TextEmbedding3Large,
    #[serde(rename = "face_identity_arcface_r100_v1")]
    FaceIdentityArcfaceR100V1,
    #[serde(rename = "all_minilm_l6_v2_v1")]
    AllMinilmL6V2V1,
    #[serde(rename = "colbertv2_v1")]
    Colbertv2V1,
    #[serde(rename = "colqwen2_v1")]
    Colqwen2V1,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentInputMapping {
    pub input_key: String,
    pub source: InputMappingSource,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportDestination {
    pub connection_id: String,
    #[serde(default)]
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportDestinationResult {
    pub connection_id: String,
    pub prefix: String,
    pub files: Vec<String>,
    pub manifest_key: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub bytes_written: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ExportFormat {
    #[default]
    #[serde(rename = "json")]
    Json,
    #[serde(rename = "csv")]
    Csv,
    #[serde(rename = "parquet")]
    Parquet,
    #[serde(rename = "webdataset")]
    Webdataset,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportMediaSummary {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub samples_with_media: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub samples_without_media: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub members_written: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub members_skipped_too_large: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub objects_not_found: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub download_failures: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub media_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportShard {
    pub filename: String,
    pub s3_path: String,
    pub download_url: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sample_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub file_size_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureExtractorConfigInput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_passthrough: Vec<FieldPassthrough>,
    #[serde(default)]
    pub include_all_source_fields: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureExtractorConfigOutput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_passthrough: Vec<FieldPassthrough>,
    #[serde(default)]
    pub include_all_source_fields: bool,
    pub feature_extractor_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldPassthrough {
    pub source_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default)]
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HierarchicalEnrichmentStyle {
    #[default]
    #[serde(rename = "full_chain")]
    FullChain,
    #[serde(rename = "best_match")]
    BestMatch,
    #[serde(rename = "combined")]
    Combined,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InputMappingSource {
    pub source_type: InputMappingSourceSourceType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum InputMappingSourceSourceType {
    #[default]
    #[serde(rename = "document_field")]
    DocumentField,
    #[serde(rename = "constant")]
    Constant,
    #[serde(rename = "source_blob")]
    SourceBlob,
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

/// One of 1, 2, 3, 4.
pub type PostProcessingPhase = i64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverEnrichmentConfig {
    pub retriever_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_phase: Option<PostProcessingPhase>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_filters: Option<Filter>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
}

impl Default for RetrieverEnrichmentConfig {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            input_mappings: Default::default(),
            write_back_fields: Default::default(),
            execution_phase: None,
            priority: crate::defaults::i64_0(),
            scroll_filters: None,
            enabled: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverTransformConfigInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub retriever_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigInput>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id_field: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverTransformConfigOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub retriever_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigOutput>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id_field: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SingleLineageEntry {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_config: SourceConfig,
    pub feature_extractor: FeatureExtractorConfigOutput,
    pub output_schema: BucketSchema,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceConfig {
    pub r#type: SourceType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_filters: Option<SourceFilters>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub field_map: IndexMap<String, Vec<FieldPassthrough>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceFilters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StoredTextReembedRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 10000)))]
    pub document_ids: Option<Vec<String>>,
    #[serde(default = "crate::defaults::yes")]
    pub only_missing: bool,
    #[serde(default)]
    pub dry_run: bool,
}

impl Default for StoredTextReembedRequest {
    fn default() -> Self {
        Self {
            outputs: None,
            target_feature_uri: None,
            document_ids: None,
            only_missing: crate::defaults::yes(),
            dry_run: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyApplicationConfig {
    pub taxonomy_id: String,
    #[serde(default = "crate::defaults::taxonomy_execution_mode_materialize")]
    pub execution_mode: TaxonomyExecutionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_filters: Option<Filter>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 3)))]
    pub execution_phase: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
    #[serde(default = "crate::defaults::hierarchical_enrichment_style_combined")]
    pub hierarchical_enrichment_style: HierarchicalEnrichmentStyle,
}

impl Default for TaxonomyApplicationConfig {
    fn default() -> Self {
        Self {
            taxonomy_id: Default::default(),
            execution_mode: crate::defaults::taxonomy_execution_mode_materialize(),
            target_collection_id: None,
            scroll_filters: None,
            execution_phase: crate::defaults::i64_1(),
            priority: crate::defaults::i64_0(),
            hierarchical_enrichment_style: crate::defaults::hierarchical_enrichment_style_combined(
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TaxonomyExecutionMode {
    #[default]
    #[serde(rename = "materialize")]
    Materialize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TextSplitStrategy {
    #[default]
    #[serde(rename = "characters")]
    Characters,
    #[serde(rename = "words")]
    Words,
    #[serde(rename = "sentences")]
    Sentences,
    #[serde(rename = "paragraphs")]
    Paragraphs,
    #[serde(rename = "pages")]
    Pages,
    #[serde(rename = "time_segments")]
    TimeSegments,
    #[serde(rename = "markdown")]
    Markdown,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TieringRule {
    pub rule_type: TieringRuleRuleType,
    #[serde(default)]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_days: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TieringRuleRuleType {
    #[default]
    #[serde(rename = "auto_evict")]
    AutoEvict,
    #[serde(rename = "auto_archive")]
    AutoArchive,
    #[serde(rename = "auto_rehydrate")]
    AutoRehydrate,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorFieldSpec {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
    pub name: String,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 65536)))]
    pub dimensions: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<VectorFieldSpecDistance>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorFieldSpecDistance {
    #[default]
    #[serde(rename = "cosine")]
    Cosine,
    #[serde(rename = "dot")]
    Dot,
    #[serde(rename = "euclidean")]
    Euclidean,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WriteBackFieldMapping {
    pub source_field: String,
    pub target_field: String,
    #[serde(default = "crate::defaults::write_back_field_mapping_mode_first")]
    pub mode: WriteBackFieldMappingMode,
}

impl Default for WriteBackFieldMapping {
    fn default() -> Self {
        Self {
            source_field: Default::default(),
            target_field: Default::default(),
            mode: crate::defaults::write_back_field_mapping_mode_first(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum WriteBackFieldMappingMode {
    #[default]
    #[serde(rename = "first")]
    First,
    #[serde(rename = "all_as_array")]
    AllAsArray,
    #[serde(rename = "concat")]
    Concat,
}
