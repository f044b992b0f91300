//! Wire types of the interface: api_key.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{APIKeyModel, APIKeyType, DegradedEntry, KeyStatus, Permission, ResourceScope, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct APIKeyCreateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub description: Option<String>,
    /// The description under its other name, which gives way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub permissions: Option<Vec<Permission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub scopes: Option<Vec<ResourceScope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub rate_limit_override: Option<i64>,
    #[serde(
        default,
        deserialize_with = "crate::moment",
        skip_serializing_if = "Option::is_none"
    )]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub principal_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_origins: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct APIKeyCreateResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    pub key_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 64)))]
    pub key_prefix: Option<String>,
    #[serde(default = "crate::defaults::a_p_i_key_type_standard")]
    pub key_type: APIKeyType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<String>,
    #[serde(default)]
    pub is_internal: bool,
    pub internal_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    pub user_id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// The description under its other name.
    #[serde(default)]
    pub note: String,
    #[serde(default)]
    pub permissions: Vec<Permission>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub scopes: Vec<ResourceScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_override: Option<i64>,
    #[serde(default = "crate::defaults::key_status_active")]
    pub status: KeyStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_origins: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
    pub key: String,
    /// After a rotation: live apps that have the secret of before in them, which opens nothing any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub referencing_apps: Vec<Value>,
}

impl Default for APIKeyCreateResponse {
    fn default() -> Self {
        Self {
            key_id: None,
            key_hash: Default::default(),
            key_prefix: None,
            key_type: crate::defaults::a_p_i_key_type_standard(),
            subscription_id: None,
            is_internal: false,
            internal_id: Default::default(),
            organization_id: None,
            user_id: Default::default(),
            name: Default::default(),
            description: String::new(),
            note: String::new(),
            permissions: Default::default(),
            scopes: Default::default(),
            rate_limit_override: None,
            status: crate::defaults::key_status_active(),
            expires_at: None,
            last_used_at: None,
            created_at: None,
            created_by: None,
            revoked_at: None,
            revoked_by: None,
            allowed_origins: None,
            principal_id: None,
            key: Default::default(),
            referencing_apps: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct APIKeyUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: Option<String>,
    /// `null` takes the description away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 500)))]
    pub description: Option<Option<String>>,
    /// The description under its other name, which gives way to it.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 500)))]
    pub note: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub permissions: Option<Vec<Permission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub scopes: Option<Vec<ResourceScope>>,
    /// `null` takes the cap away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>, minimum = 1))]
    pub rate_limit_override: Option<Option<i64>>,
    /// `null` takes the expiry away.
    #[serde(
        default,
        deserialize_with = "crate::sent_moment",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<DateTime<Utc>>))]
    pub expires_at: Option<Option<DateTime<Utc>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<KeyStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_origins: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiKeyListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<APIKeyModel>,
    pub total: i64,
}

/// A key that executes one retriever and can do nothing else.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateRetrieverAPIKeyRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub description: Option<String>,
    /// The description under its other name, which gives way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub note: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::moment",
        skip_serializing_if = "Option::is_none"
    )]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_origins: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverAPIKeyListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<APIKeyModel>,
    #[serde(default)]
    pub total: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}
