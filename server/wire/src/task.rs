//! Wire types of the interface: task.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    CancellationOutcome, DegradedEntry, Filter, Object, PaginationResponse, SortOption, Value,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTasksRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<TaskType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTasksResponse {
    pub results: Vec<TaskResponse>,
    pub pagination: PaginationResponse,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaskResponse {
    pub task_id: String,
    pub task_type: TaskType,
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub additional_data: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_wait_minutes: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it moved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    /// When it ended, however it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TaskStatusEnum {
    #[default]
    #[serde(rename = "PENDING")]
    Pending,
    #[serde(rename = "QUEUED")]
    Queued,
    #[serde(rename = "IN_PROGRESS")]
    InProgress,
    #[serde(rename = "PROCESSING")]
    Processing,
    #[serde(rename = "COMPLETED")]
    Completed,
    #[serde(rename = "COMPLETED_WITH_ERRORS")]
    CompletedWithErrors,
    #[serde(rename = "FAILED")]
    Failed,
    #[serde(rename = "CANCELED")]
    Canceled,
    #[serde(rename = "INTERRUPTED")]
    Interrupted,
    #[serde(rename = "UNKNOWN")]
    Unknown,
    #[serde(rename = "SKIPPED")]
    Skipped,
    #[serde(rename = "DRAFT")]
    Draft,
    #[serde(rename = "ACTIVE")]
    Active,
    #[serde(rename = "ARCHIVED")]
    Archived,
    #[serde(rename = "SUSPENDED")]
    Suspended,
    #[serde(rename = "DEACTIVATED")]
    Deactivated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TaskType {
    #[default]
    #[serde(rename = "api_namespaces_create")]
    ApiNamespacesCreate,
    #[serde(rename = "api_namespaces_delete")]
    ApiNamespacesDelete,
    #[serde(rename = "api_namespaces_snapshot_create")]
    ApiNamespacesSnapshotCreate,
    #[serde(rename = "api_namespaces_snapshot_restore")]
    ApiNamespacesSnapshotRestore,
    #[serde(rename = "api_namespaces_migrations_run")]
    ApiNamespacesMigrationsRun,
    #[serde(rename = "api_buckets_objects_create")]
    ApiBucketsObjectsCreate,
    #[serde(rename = "api_buckets_delete")]
    ApiBucketsDelete,
    #[serde(rename = "api_buckets_batches_process")]
    ApiBucketsBatchesProcess,
    #[serde(rename = "api_buckets_batches_submit")]
    ApiBucketsBatchesSubmit,
    #[serde(rename = "api_buckets_uploads_create")]
    ApiBucketsUploadsCreate,
    #[serde(rename = "api_buckets_uploads_confirm")]
    ApiBucketsUploadsConfirm,
    #[serde(rename = "api_buckets_uploads_batch_confirm")]
    ApiBucketsUploadsBatchConfirm,
    #[serde(rename = "api_collections_documents_create")]
    ApiCollectionsDocumentsCreate,
    #[serde(rename = "api_collections_documents_bulk_update")]
    ApiCollectionsDocumentsBulkUpdate,
    #[serde(rename = "api_collections_documents_bulk_delete")]
    ApiCollectionsDocumentsBulkDelete,
    #[serde(rename = "api_collections_reembed")]
    ApiCollectionsReembed,
    #[serde(rename = "api_collections_extraction_artifacts")]
    ApiCollectionsExtractionArtifacts,
    #[serde(rename = "api_taxonomies_create")]
    ApiTaxonomiesCreate,
    #[serde(rename = "api_taxonomies_execute")]
    ApiTaxonomiesExecute,
    #[serde(rename = "api_taxonomies_materialize")]
    ApiTaxonomiesMaterialize,
    #[serde(rename = "api_evaluations_run")]
    ApiEvaluationsRun,
    #[serde(rename = "api_evaluations_dataset_create")]
    ApiEvaluationsDatasetCreate,
    #[serde(rename = "api_retrievers_publish")]
    ApiRetrieversPublish,
    #[serde(rename = "api_manifest_apply")]
    ApiManifestApply,
    #[serde(rename = "api_retrievers_execute")]
    ApiRetrieversExecute,
    #[serde(rename = "api_collections_export")]
    ApiCollectionsExport,
    #[serde(rename = "api_collections_trigger")]
    ApiCollectionsTrigger,
    #[serde(rename = "engine_feature_extractor_run")]
    EngineFeatureExtractorRun,
    #[serde(rename = "engine_inference_run")]
    EngineInferenceRun,
    #[serde(rename = "engine_object_processing")]
    EngineObjectProcessing,
    #[serde(rename = "engine_cluster_build")]
    EngineClusterBuild,
    #[serde(rename = "thumbnail")]
    Thumbnail,
    #[serde(rename = "video_segment")]
    VideoSegment,
    #[serde(rename = "audio_segment")]
    AudioSegment,
    #[serde(rename = "converted_video")]
    ConvertedVideo,
    #[serde(rename = "materialize")]
    Materialize,
    #[serde(rename = "plugin_custom")]
    PluginCustom,
    #[serde(rename = "model_custom")]
    ModelCustom,
}
