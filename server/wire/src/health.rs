//! Wire types of the interface: health.

use serde::{Deserialize, Serialize};

use crate::Object;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HealthCheckResponse {
    pub status: HealthStatusOutput,
    pub data: HealthServiceStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<HealthServiceErrors>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub meta: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HealthServiceErrors {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_store: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_storage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analytics: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HealthServiceStatus {
    pub cache: bool,
    pub metadata: bool,
    pub vector_store: bool,
    pub object_storage: bool,
    pub task_queue: bool,
    pub inference: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analytics: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HealthStatusOutput {
    #[default]
    #[serde(rename = "OK")]
    Ok,
    #[serde(rename = "DEGRADED")]
    Degraded,
}
