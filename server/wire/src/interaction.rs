//! Wire types of the interface: interaction.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Filter, Object, PaginationResponse, SortOption};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkInteractionsRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1000), nested))]
    pub interactions: Vec<SearchInteraction>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListInteractionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub feature_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub interaction_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub search: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListInteractionsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<InteractionResponse>,
    pub pagination: PaginationResponse,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub items: Vec<InteractionResponse>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SearchInteraction {
    /// The document that was acted on.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 256)))]
    pub feature_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 22)))]
    pub interaction_type: Vec<InteractionType>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub position: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub query_snapshot: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub result_set_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkInteractionItemResult {
    pub index: i64,
    pub interaction_id: String,
    #[serde(default = "crate::defaults::text_created")]
    pub status: String,
}

impl Default for BulkInteractionItemResult {
    fn default() -> Self {
        Self {
            index: Default::default(),
            interaction_id: Default::default(),
            status: crate::defaults::text_created(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkInteractionsResponse {
    pub created: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed: i64,
    #[serde(default)]
    pub errors: Vec<String>,
    #[serde(default)]
    pub results: Vec<BulkInteractionItemResult>,
}

impl Default for BulkInteractionsResponse {
    fn default() -> Self {
        Self {
            created: Default::default(),
            failed: crate::defaults::i64_0(),
            errors: Default::default(),
            results: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InteractionResponse {
    pub feature_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub interaction_type: Vec<InteractionType>,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub position: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub query_snapshot: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub result_set_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_id: Option<String>,
    #[serde(default)]
    pub deduplicated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum InteractionType {
    #[default]
    #[serde(rename = "impression")]
    Impression,
    #[serde(rename = "view")]
    View,
    #[serde(rename = "click")]
    Click,
    #[serde(rename = "dwell")]
    Dwell,
    #[serde(rename = "positive_feedback")]
    PositiveFeedback,
    #[serde(rename = "negative_feedback")]
    NegativeFeedback,
    #[serde(rename = "purchase")]
    Purchase,
    #[serde(rename = "add_to_cart")]
    AddToCart,
    #[serde(rename = "wishlist")]
    Wishlist,
    #[serde(rename = "long_view")]
    LongView,
    #[serde(rename = "share")]
    Share,
    #[serde(rename = "bookmark")]
    Bookmark,
    #[serde(rename = "query_refinement")]
    QueryRefinement,
    #[serde(rename = "zero_results")]
    ZeroResults,
    #[serde(rename = "filter_toggle")]
    FilterToggle,
    #[serde(rename = "skip")]
    Skip,
    #[serde(rename = "return_to_results")]
    ReturnToResults,
    #[serde(rename = "play")]
    Play,
    #[serde(rename = "download")]
    Download,
    #[serde(rename = "save")]
    Save,
    #[serde(rename = "add_to_project")]
    AddToProject,
    #[serde(rename = "rating")]
    Rating,
}
