//! Wire types of the interface: what a collection should hold and what it does.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionReconciliationResponse {
    pub collection_id: String,
    pub source_object_count: i64,
    pub produced_object_count: i64,
    pub document_count: i64,
    pub delta: i64,
    #[serde(default)]
    pub discrepancies: Vec<ReconciliationDiscrepancy>,
    #[serde(default)]
    pub discrepancies_truncated: bool,
    pub limit: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ReconciliationDiscrepancy {
    pub object_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_id: Option<String>,
    pub reason: ReconciliationReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ReconciliationReason {
    #[default]
    #[serde(rename = "no_document")]
    NoDocument,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "skipped")]
    Skipped,
    #[serde(rename = "unknown")]
    Unknown,
}
