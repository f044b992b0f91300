//! Wire types of the interface: migration.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BatchOptions, ClusterOptions, MigrationFeatureExtractorConfig, Object, ResourceFilter,
    RetrieverOptions, TaxonomyOptions,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CancelMigrationRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CancelMigrationResponse {
    pub migration_id: String,
    pub status: MigrationStatus,
    pub cancelled_at: DateTime<Utc>,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateMigrationRequest {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub config: MigrationConfig,
    #[serde(default)]
    pub start_immediately: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateMigrationResponse {
    pub migration_id: String,
    pub status: MigrationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_result: Option<ValidationResult>,
    pub created_at: DateTime<Utc>,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DependencyGraph {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub nodes: Vec<DependencyNode>,
    #[serde(default)]
    pub execution_order: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DependencyNode {
    pub resource_id: String,
    pub resource_type: MigrationResourceType,
    #[serde(default)]
    pub dependencies: Vec<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub tier: i64,
}

impl Default for DependencyNode {
    fn default() -> Self {
        Self {
            resource_id: Default::default(),
            resource_type: Default::default(),
            dependencies: Default::default(),
            tier: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GetMigrationResponse {
    pub migration_id: String,
    pub internal_id: String,
    pub namespace_id: String,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub config: MigrationConfig,
    pub status: MigrationStatus,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub progress: MigrationProgress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_result: Option<ValidationResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub dependency_graph: Option<DependencyGraph>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub additional_data: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListMigrationsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<MigrationStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_type: Option<MigrationType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_namespace_id: Option<String>,
    #[serde(default = "crate::defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: i64,
}

impl Default for ListMigrationsRequest {
    fn default() -> Self {
        Self {
            status: None,
            migration_type: None,
            source_namespace_id: None,
            limit: crate::defaults::i64_20(),
            offset: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListMigrationsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<GetMigrationResponse>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MigrationConfig {
    pub migration_type: MigrationType,
    pub source_namespace_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_namespace_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractors: Option<Vec<MigrationFeatureExtractorConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<ResourceFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub batch_options: Option<BatchOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_options: Option<TaxonomyOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_options: Option<ClusterOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_options: Option<RetrieverOptions>,
    #[serde(default)]
    pub preserve_resource_ids: bool,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MigrationProgress {
    pub overall_status: MigrationStatus,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 100.0)))]
    pub overall_progress_percent: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<MigrationStage>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stages: Vec<StageProgress>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub resources: Vec<ResourceProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_completion: Option<DateTime<Utc>>,
}

impl Default for MigrationProgress {
    fn default() -> Self {
        Self {
            overall_status: Default::default(),
            overall_progress_percent: crate::defaults::f64_0_0(),
            current_stage: None,
            stages: Default::default(),
            resources: Default::default(),
            started_at: None,
            estimated_completion: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MigrationResourceType {
    #[default]
    #[serde(rename = "bucket")]
    Bucket,
    #[serde(rename = "collection")]
    Collection,
    #[serde(rename = "taxonomy")]
    Taxonomy,
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "retriever")]
    Retriever,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MigrationStage {
    #[default]
    #[serde(rename = "namespace_setup")]
    NamespaceSetup,
    #[serde(rename = "batch_creation")]
    BatchCreation,
    #[serde(rename = "batch_processing")]
    BatchProcessing,
    #[serde(rename = "cluster_execution")]
    ClusterExecution,
    #[serde(rename = "taxonomy_enrichment")]
    TaxonomyEnrichment,
    #[serde(rename = "benchmark_evaluation")]
    BenchmarkEvaluation,
    #[serde(rename = "finalization")]
    Finalization,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MigrationStatus {
    #[default]
    #[serde(rename = "draft")]
    Draft,
    #[serde(rename = "validating")]
    Validating,
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "in_progress")]
    InProgress,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "cancelled")]
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MigrationType {
    #[default]
    #[serde(rename = "re_extract")]
    ReExtract,
    #[serde(rename = "copy")]
    Copy,
    #[serde(rename = "extend")]
    Extend,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResourceProgress {
    pub resource_id: String,
    pub resource_type: MigrationResourceType,
    pub status: MigrationStatus,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 100.0)))]
    pub progress_percent: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

impl Default for ResourceProgress {
    fn default() -> Self {
        Self {
            resource_id: Default::default(),
            resource_type: Default::default(),
            status: Default::default(),
            progress_percent: crate::defaults::f64_0_0(),
            error_message: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageProgress {
    pub stage: MigrationStage,
    pub status: MigrationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 100.0)))]
    pub progress_percent: f64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub items_total: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub items_completed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub items_failed: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

impl Default for StageProgress {
    fn default() -> Self {
        Self {
            stage: Default::default(),
            status: Default::default(),
            started_at: None,
            completed_at: None,
            progress_percent: crate::defaults::f64_0_0(),
            items_total: crate::defaults::i64_0(),
            items_completed: crate::defaults::i64_0(),
            items_failed: crate::defaults::i64_0(),
            error_message: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StartMigrationRequest {
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StartMigrationResponse {
    pub migration_id: String,
    pub status: MigrationStatus,
    pub task_id: String,
    pub started_at: DateTime<Utc>,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ValidateMigrationRequest {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub config: MigrationConfig,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ValidateMigrationResponse {
    pub validation_result: ValidationResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub dependency_graph: Option<DependencyGraph>,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ValidationError {
    pub error_code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<MigrationResourceType>,
    #[serde(default = "crate::defaults::text_error")]
    pub severity: String,
}

impl Default for ValidationError {
    fn default() -> Self {
        Self {
            error_code: Default::default(),
            message: Default::default(),
            resource_id: None,
            resource_type: None,
            severity: crate::defaults::text_error(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ValidationResult {
    pub valid: bool,
    #[serde(default)]
    pub errors: Vec<ValidationError>,
    #[serde(default)]
    pub warnings: Vec<ValidationError>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub estimated_resources: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration_seconds: Option<i64>,
}
