//! Hosted apps: their domains, the people who sign in, and what visitors met with.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AddDomainRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 4, max = 253)))]
    pub domain: String,
    #[serde(default)]
    pub is_primary: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppAnalyticsResponse {
    pub app_id: String,
    pub period_hours: i64,
    pub total_errors: i64,
    pub error_rate_per_minute: f64,
    pub errors_over_time: Vec<ErrorBucket>,
    pub vitals: Vec<VitalsSummary>,
    pub recent_errors: Vec<RecentError>,
    pub total_events: i64,
    pub total_pageviews: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppInvitationResponse {
    pub invitation_id: String,
    pub email_address: String,
    pub role: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppLogsResponse {
    pub app_id: String,
    pub log_type: String,
    #[serde(default)]
    pub results: Vec<Value>,
    #[serde(default)]
    pub entries: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppUserResponse {
    pub user_id: String,
    pub membership_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
    pub role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<String>,
    /// `false` where nobody has proven that the address is the person's; absent where it is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_verified: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_signed_in_at: Option<String>,
    /// What they signed in with then: `password`, `passkey`, `google`, `github` or `oidc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_signed_in_with: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CustomDomainConfig {
    pub domain: String,
    #[serde(default = "crate::defaults::custom_domain_config_status_pending")]
    pub status: CustomDomainConfigStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cname_target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub is_primary: bool,
}

impl Default for CustomDomainConfig {
    fn default() -> Self {
        Self {
            domain: Default::default(),
            status: crate::defaults::custom_domain_config_status_pending(),
            verification_token: None,
            cname_target: None,
            tls_cert_id: None,
            tls_expires_at: None,
            verified_at: None,
            is_primary: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CustomDomainConfigStatus {
    #[default]
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "verifying")]
    Verifying,
    #[serde(rename = "provisioning_tls")]
    ProvisioningTls,
    #[serde(rename = "active")]
    Active,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DomainResponse {
    pub domain: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cname_target: Option<String>,
    pub is_primary: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ErrorBucket {
    pub timestamp: String,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ErrorRateResponse {
    pub app_id: String,
    pub error_count: i64,
    pub period_minutes: i64,
    pub rate_per_minute: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InviteUserRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 254)))]
    pub email_address: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 60)))]
    #[serde(default = "crate::defaults::text_org_member")]
    pub role: String,
}

impl Default for InviteUserRequest {
    fn default() -> Self {
        Self {
            email_address: Default::default(),
            role: crate::defaults::text_org_member(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListDomainsResponse {
    pub domains: Vec<DomainResponse>,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListInvitationsResponse {
    pub invitations: Vec<AppInvitationResponse>,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListUsersResponse {
    pub users: Vec<AppUserResponse>,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RecentError {
    pub timestamp: String,
    pub error_type: String,
    pub error_message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What was found of one way to sign in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SignInCheck {
    /// email, google, github, oidc, passkey, jwt or api_key.
    pub provider: String,
    pub label: String,
    pub success: bool,
    pub message: String,
    /// The address that the provider has to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SignInTestResponse {
    pub app_id: String,
    /// Whether every way works.
    pub success: bool,
    pub providers: Vec<SignInCheck>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateRoleRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 60)))]
    pub role: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VitalsSummary {
    pub metric_name: String,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    pub sample_count: i64,
}
