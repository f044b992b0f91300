//! Wire types of the interface: access.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct APIKeyModel {
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
}

impl Default for APIKeyModel {
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
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum APIKeyType {
    #[default]
    #[serde(rename = "standard")]
    Standard,
    #[serde(rename = "marketplace_subscription")]
    MarketplaceSubscription,
    #[serde(rename = "retriever")]
    Retriever,
    #[serde(rename = "user_scoped")]
    UserScoped,
    #[serde(rename = "session")]
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum KeyStatus {
    #[default]
    #[serde(rename = "active")]
    Active,
    #[serde(rename = "revoked")]
    Revoked,
    #[serde(rename = "expired")]
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceOperation {
    #[default]
    #[serde(rename = "read_data")]
    ReadData,
    #[serde(rename = "write_data")]
    WriteData,
    #[serde(rename = "delete_data")]
    DeleteData,
    #[serde(rename = "execute_retriever")]
    ExecuteRetriever,
    #[serde(rename = "create_retriever")]
    CreateRetriever,
    #[serde(rename = "delete_retriever")]
    DeleteRetriever,
    #[serde(rename = "execute_job")]
    ExecuteJob,
    #[serde(rename = "cancel_job")]
    CancelJob,
    #[serde(rename = "create_cluster")]
    CreateCluster,
    #[serde(rename = "delete_cluster")]
    DeleteCluster,
    #[serde(rename = "modify_cluster")]
    ModifyCluster,
    #[serde(rename = "modify_infrastructure")]
    ModifyInfrastructure,
    #[serde(rename = "manage_permissions")]
    ManagePermissions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Permission {
    #[default]
    #[serde(rename = "read")]
    Read,
    #[serde(rename = "write")]
    Write,
    #[serde(rename = "delete")]
    Delete,
    #[serde(rename = "admin")]
    Admin,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResourceScope {
    pub resource_type: ResourceType,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub resource_id: String,
    /// All that the permissions grant, where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub operations: Option<Vec<NamespaceOperation>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ResourceType {
    #[default]
    #[serde(rename = "organization")]
    Organization,
    #[serde(rename = "user")]
    User,
    #[serde(rename = "api_key")]
    ApiKey,
    #[serde(rename = "namespace")]
    Namespace,
    #[serde(rename = "collection")]
    Collection,
    #[serde(rename = "document")]
    Document,
    #[serde(rename = "bucket")]
    Bucket,
    #[serde(rename = "retriever")]
    Retriever,
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "taxonomy")]
    Taxonomy,
    #[serde(rename = "storage_connection")]
    StorageConnection,
    #[serde(rename = "alert")]
    Alert,
    #[serde(rename = "annotation")]
    Annotation,
    #[serde(rename = "secret")]
    Secret,
    #[serde(rename = "webhook")]
    Webhook,
}
