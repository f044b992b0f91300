//! Wire types of the interface: audit.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditAction {
    UserCreated,
    UserUpdated,
    UserDeleted,
    ApiKeyCreated,
    ApiKeyRotated,
    ApiKeyRevoked,
    ApiKeyScopeUpdated,
    ApiKeyInternalFlagged,
    PermissionUpdated,
    PermissionDenied,
    OrganizationUpdated,
    StorageConnectionCreated,
    StorageConnectionUpdated,
    StorageConnectionDeleted,
    StorageConnectionTested,
    StorageConnectionFailed,
    NamespaceCreated,
    NamespaceUpdated,
    NamespaceDeleted,
    NamespaceAccessed,
    CollectionCreated,
    CollectionUpdated,
    CollectionDeleted,
    CollectionAccessed,
    DocumentDeleted,
    DocumentBulkSoftDeleted,
    BucketCreated,
    BucketUpdated,
    BucketDeleted,
    BucketAccessed,
    RetrieverCreated,
    RetrieverUpdated,
    RetrieverDeleted,
    RetrieverAccessed,
    RetrieverQueried,
    ClusterCreated,
    ClusterUpdated,
    ClusterDeleted,
    ClusterExecuted,
    ClusterAccessed,
    TaxonomyCreated,
    TaxonomyUpdated,
    TaxonomyDeleted,
    TaxonomyAccessed,
    AlertCreated,
    AlertUpdated,
    AlertDeleted,
    AlertAccessed,
    AlertTriggered,
    AnnotationCreated,
    AnnotationUpdated,
    AnnotationDeleted,
    SecretCreated,
    SecretUpdated,
    SecretDeleted,
    SecretAccessed,
    WebhookCreated,
    WebhookUpdated,
    WebhookDeleted,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuditEventListResponse {
    pub results: Vec<AuditEventResponse>,
    pub total: i64,
    pub skip: i64,
    pub limit: i64,
}

/// Who did what to which resource, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuditEventResponse {
    pub audit_id: String,
    pub timestamp: Option<DateTime<Utc>>,
    pub resource_type: String,
    pub resource_id: String,
    pub action: String,
    pub actor_id: String,
    /// `user`, `system` for what nobody asked for, or `anonymous` for whoever proved to be nobody.
    pub actor_type: String,
    /// `success` or `denied`.
    pub status: String,
    /// What changed; members that were changed have their value before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Value>,
    /// What the caller gave in `X-Change-Reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_key_name: Option<String>,
}

/// What of an organization the audit log is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuditSettings {
    /// Whether reading resources is recorded as well as changing them.
    #[serde(default)]
    pub read_auditing_enabled: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuditSettingsUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_auditing_enabled: Option<bool>,
}
