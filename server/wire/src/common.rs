//! Wire types of the interface: common.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BlobURLRef, ContentQueryInput, DocumentQueryInput, InternalPayloadModel,
    MultiContentQueryInput, Object, TextQueryInput, VectorQueryInput,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AlertExecutionMode {
    #[default]
    #[serde(rename = "on_ingest")]
    OnIngest,
    #[serde(rename = "scheduled")]
    Scheduled,
    #[serde(rename = "on_demand")]
    OnDemand,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchCostEstimate {
    pub batch_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collection_ids: Vec<String>,
    #[serde(default = "crate::defaults::text_skip")]
    pub dedup_strategy: String,
    #[serde(default = "crate::defaults::i64_0")]
    pub object_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub already_extracted_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub estimated_credits: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_usd: Option<f64>,
    #[serde(default = "crate::defaults::i64_0")]
    pub estimated_repay_credits: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extractors: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub content_summary: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_to_remove: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Default for BatchCostEstimate {
    fn default() -> Self {
        Self {
            batch_id: Default::default(),
            collection_ids: Default::default(),
            dedup_strategy: crate::defaults::text_skip(),
            object_count: crate::defaults::i64_0(),
            already_extracted_count: crate::defaults::i64_0(),
            estimated_credits: crate::defaults::i64_0(),
            estimated_usd: None,
            estimated_repay_credits: crate::defaults::i64_0(),
            features: Default::default(),
            extractors: Default::default(),
            content_summary: Default::default(),
            documents_to_remove: None,
            warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BudgetLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub max_credits: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub max_time_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkUpdateDocumentsResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_count: Option<i64>,
    #[serde(default = "crate::defaults::text_bulk_update_enqueued")]
    pub message: String,
}

impl Default for BulkUpdateDocumentsResponse {
    fn default() -> Self {
        Self {
            task_id: None,
            status: None,
            updated_count: None,
            message: crate::defaults::text_bulk_update_enqueued(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CancellationOutcome {
    #[serde(default = "crate::defaults::i64_0")]
    pub ray_jobs_requested: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub ray_jobs_accepted: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub ray_jobs_refused: i64,
}

impl Default for CancellationOutcome {
    fn default() -> Self {
        Self {
            ray_jobs_requested: crate::defaults::i64_0(),
            ray_jobs_accepted: crate::defaults::i64_0(),
            ray_jobs_refused: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CostRate {
    pub unit: CostUnit,
    pub credits_per_unit: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CostUnit {
    #[default]
    #[serde(rename = "minute")]
    Minute,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "1k_tokens")]
    V1kTokens,
    #[serde(rename = "page")]
    Page,
    #[serde(rename = "face")]
    Face,
    #[serde(rename = "extraction")]
    Extraction,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CostsInfo {
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 4)))]
    pub tier: i64,
    pub tier_label: String,
    pub rates: Vec<CostRate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DedupStrategy {
    #[default]
    #[serde(rename = "skip")]
    Skip,
    #[serde(rename = "replace")]
    Replace,
    #[serde(rename = "force")]
    Force,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DegradedEntry {
    pub resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub reason: String,
    pub next_step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentResponse {
    pub document_id: String,
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_hydration_incomplete: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searchable_at: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub document_blobs: Vec<BlobURLRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "_internal")]
    pub internal: Option<InternalPayloadModel>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub expanded: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[serde(rename = "_expanded")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub expanded_alias: Object,
    #[serde(default)]
    #[serde(rename = "_vectors")]
    pub vector_names: Vec<String>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ExtractorSource {
    #[default]
    #[serde(rename = "builtin")]
    Builtin,
    #[serde(rename = "custom")]
    Custom,
    #[serde(rename = "community")]
    Community,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FailureCategory {
    #[default]
    #[serde(rename = "timeout")]
    Timeout,
    #[serde(rename = "infrastructure")]
    Infrastructure,
    #[serde(rename = "orphaned")]
    Orphaned,
    #[serde(rename = "pipeline")]
    Pipeline,
    #[serde(rename = "mvs_durability")]
    MvsDurability,
    #[serde(rename = "validation")]
    Validation,
    #[serde(rename = "unknown")]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GenericDeleteResponse {
    #[serde(default = "crate::defaults::text_successfully_deleted")]
    pub message: String,
    #[serde(default = "crate::defaults::yes")]
    pub success: bool,
}

impl Default for GenericDeleteResponse {
    fn default() -> Self {
        Self {
            message: crate::defaults::text_successfully_deleted(),
            success: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GenericSuccessResponse {
    #[serde(default = "crate::defaults::text_successfully_completed")]
    pub message: String,
    #[serde(default = "crate::defaults::yes")]
    pub success: bool,
}

impl Default for GenericSuccessResponse {
    fn default() -> Self {
        Self {
            message: crate::defaults::text_successfully_completed(),
            success: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PaginationResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_pages: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_page: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum PayloadSchemaType {
    #[default]
    #[serde(rename = "keyword")]
    Keyword,
    #[serde(rename = "integer")]
    Integer,
    #[serde(rename = "float")]
    Float,
    #[serde(rename = "bool")]
    Bool,
    #[serde(rename = "geo")]
    Geo,
    #[serde(rename = "datetime")]
    Datetime,
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "uuid")]
    Uuid,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "input_mode")]
pub enum SearchQueryInput {
    #[serde(rename = "text")]
    Text(TextQueryInput),
    #[serde(rename = "content")]
    Content(ContentQueryInput),
    #[serde(rename = "document")]
    Document(DocumentQueryInput),
    #[serde(rename = "vector")]
    Vector(VectorQueryInput),
    #[serde(rename = "multi_content")]
    MultiContent(MultiContentQueryInput),
}

impl Default for SearchQueryInput {
    fn default() -> Self {
        Self::Text(Default::default())
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ServeAppStatus {
    pub name: String,
    pub status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SortDirection {
    #[default]
    #[serde(rename = "asc")]
    Asc,
    #[serde(rename = "desc")]
    Desc,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SortOption {
    pub field: String,
    #[serde(default = "crate::defaults::sort_direction_asc")]
    pub direction: SortDirection,
}

impl Default for SortOption {
    fn default() -> Self {
        Self {
            field: Default::default(),
            direction: crate::defaults::sort_direction_asc(),
        }
    }
}
