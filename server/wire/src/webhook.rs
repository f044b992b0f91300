//! Wire types of the interface: webhook.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, PaginationResponse, Value, WebhookEventType};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListWebhooksRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListWebhooksResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<WebhookOutput>,
    pub pagination: PaginationResponse,
    pub total: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NotificationChannel {
    #[default]
    #[serde(rename = "email")]
    Email,
    #[serde(rename = "slack")]
    Slack,
    #[serde(rename = "webhook")]
    Webhook,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookChannel {
    pub channel: NotificationChannel,
    pub configs: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P5)))]
    pub webhook_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub webhook_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub event_types: Vec<WebhookEventType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_types: Vec<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub channels: Vec<WebhookChannel>,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub delivery_health: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for WebhookInput {
    fn default() -> Self {
        Self {
            webhook_id: None,
            webhook_name: Default::default(),
            internal_id: None,
            event_types: Default::default(),
            resource_types: Default::default(),
            channels: Default::default(),
            is_active: crate::defaults::yes(),
            delivery_health: Default::default(),
            created_at: None,
            updated_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P5)))]
    pub webhook_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub webhook_name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub event_types: Vec<WebhookEventType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_types: Vec<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub channels: Vec<WebhookChannel>,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub delivery_health: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for WebhookOutput {
    fn default() -> Self {
        Self {
            webhook_id: None,
            webhook_name: Default::default(),
            event_types: Default::default(),
            resource_types: Default::default(),
            channels: Default::default(),
            is_active: crate::defaults::yes(),
            delivery_health: Default::default(),
            created_at: None,
            updated_at: None,
        }
    }
}

/// One message to one channel of a webhook, as its log tells it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookDeliveryLog {
    /// Sent as `webhook-id` with every attempt.
    pub delivery_id: String,
    /// Place among the webhook's channels, from 0; none once the channel is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<i64>,
    /// The event in the change feed.
    pub seq: i64,
    pub event_type: String,
    /// pending, delivered or failed.
    pub status: String,
    pub attempts: i64,
    /// Status that the receiver answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_status: Option<i64>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookDeliveryLogResponse {
    pub results: Vec<WebhookDeliveryLog>,
    pub pagination: PaginationResponse,
    pub total: i64,
}

/// What came of a test message to one channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ChannelTestResult {
    /// Place among the channels, from 0.
    pub channel: i64,
    pub channel_type: String,
    /// delivered, failed, not_configured, or skipped where a channel takes no messages.
    pub status: String,
    /// What the receiver answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_status: Option<i64>,
    /// What happened, in words.
    pub message: String,
    pub duration_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ChannelTestResponse {
    /// Every channel that takes messages took this one.
    pub success: bool,
    pub results: Vec<ChannelTestResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NotificationContentType {
    #[default]
    #[serde(rename = "plain_text")]
    PlainText,
    #[serde(rename = "html")]
    Html,
    #[serde(rename = "markdown")]
    Markdown,
    #[serde(rename = "json")]
    Json,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NotificationEmailConfig {
    pub to_addresses: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_template: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_template: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<NotificationContentType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc_addresses: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc_addresses: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SlackConfig {
    pub webhook_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_emoji: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_template: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WebhookConfig {
    pub url: String,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub payload_template: Option<Object>,
    #[serde(default = "crate::defaults::f64_10_0")]
    pub timeout: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<String>,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            url: Default::default(),
            headers: Default::default(),
            payload_template: None,
            timeout: crate::defaults::f64_10_0(),
            signing_secret: None,
        }
    }
}
