//! Wire types of the interface: notification.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Object;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListNotificationsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification_type: Option<NotificationType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<NotificationPriority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListNotificationsResponse {
    pub results: Vec<Notification>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MarkAllReadResponse {
    pub success: bool,
    pub updated_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MarkAsReadRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct Notification {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub r#type: NotificationType,
    pub priority: NotificationPriority,
    pub title: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    pub organization_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub delivery_status: IndexMap<String, String>,
    #[serde(default)]
    pub read: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NotificationPriority {
    #[default]
    #[serde(rename = "low")]
    Low,
    #[serde(rename = "medium")]
    Medium,
    #[serde(rename = "high")]
    High,
    #[serde(rename = "critical")]
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NotificationType {
    #[default]
    #[serde(rename = "pipeline_success")]
    PipelineSuccess,
    #[serde(rename = "pipeline_failure")]
    PipelineFailure,
    #[serde(rename = "feature_extraction_success")]
    FeatureExtractionSuccess,
    #[serde(rename = "feature_extraction_failure")]
    FeatureExtractionFailure,
    #[serde(rename = "system_alert")]
    SystemAlert,
    #[serde(rename = "billing_alert")]
    BillingAlert,
    #[serde(rename = "quota_alert")]
    QuotaAlert,
    #[serde(rename = "audit_alert")]
    AuditAlert,
    #[serde(rename = "maintenance_alert")]
    MaintenanceAlert,
    #[serde(rename = "custom")]
    Custom,
    #[serde(rename = "onboarding_nudge")]
    OnboardingNudge,
    #[serde(rename = "engagement_nudge")]
    EngagementNudge,
    #[serde(rename = "feature_tip")]
    FeatureTip,
}

/// Which notifications reach people, and how.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NotificationPreferencesResponse {
    /// Type of notification -> `{"in_app": bool, "email": bool}`, for every type.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub preferences: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UnreadCountResponse {
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdatePreferencesRequest {
    /// Type of notification -> `{"in_app": bool, "email": bool}`. Types and channels that are left out are as at first: in
    /// the console, not by e-mail.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub preferences: Object,
}
