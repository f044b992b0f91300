//! Wire types of the interface: storage connections. Secrets in `provider_config` go in and never come out.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Object, PaginationResponse, TaskStatusEnum};

/// Where files can come from. Which of them this server connects to is told when a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StorageProvider {
    GoogleDrive,
    #[default]
    S3,
    Snowflake,
    Sharepoint,
    Tigris,
    Postgresql,
    Instagram,
    Tiktok,
    Rss,
    HttpApi,
    Box,
    Brightdata,
    Backblaze,
    Mux,
    Email,
    Supabase,
    Iconik,
    Gcs,
    AzureBlob,
    Rtsp,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageConnectionCreateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: String,
    pub provider_type: StorageProvider,
    /// For `s3`: `credentials` {type: access_key, access_key_id, secret_access_key, session_token}, `region`, `endpoint_url`,
    /// and `bucket` where exports go to one alone.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub provider_config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    /// Whether exports may be written through it.
    #[serde(default)]
    pub write_enabled: bool,
    /// Refuses a connection that does not work.
    #[serde(default = "crate::defaults::yes")]
    pub test_before_save: bool,
}

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageConnectionUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_enabled: Option<bool>,
    /// Takes the place of the whole configuration; a secret sent as it is answered (`********`) stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provider_config: Option<Object>,
}

// A configuration that is printed for debugging ends in a log.
impl std::fmt::Debug for StorageConnectionCreateRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StorageConnectionCreateRequest")
            .field("name", &self.name)
            .field("provider_type", &self.provider_type)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for StorageConnectionUpdateRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StorageConnectionUpdateRequest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageConnectionModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    /// The organization.
    pub internal_id: String,
    pub provider_type: StorageProvider,
    /// Secrets are shown as `********`.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub provider_config: Object,
    #[serde(default)]
    pub write_enabled: bool,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default = "active")]
    pub status: TaskStatusEnum,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default)]
    pub consecutive_failures: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    pub created_by_user_id: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}

const fn active() -> TaskStatusEnum {
    TaskStatusEnum::Active
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListStorageConnectionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<StorageProvider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageConnectionListResponse {
    pub results: Vec<StorageConnectionModel>,
    pub pagination: PaginationResponse,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageConnectionTestResponse {
    pub success: bool,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub details: Option<Object>,
}
