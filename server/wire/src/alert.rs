//! Wire types of the interface: alert.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{AlertExecutionMode, DegradedEntry, Object, PaginationResponse, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertChannelDelivery {
    pub channel_type: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertExecutionListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<AlertExecutionResult>,
    pub pagination: PaginationResponse,
    pub total_count: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertExecutionResult {
    pub alert_id: String,
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    pub triggered: bool,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub match_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub matches: Option<Vec<AlertMatchResult>>,
    #[serde(default)]
    pub source_documents: Vec<String>,
    pub executed_at: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub duration_ms: i64,
    #[serde(default)]
    pub deliveries: Vec<AlertChannelDelivery>,
    /// Why it failed; nothing was found then, and nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Failed looks in a row that it stands for, itself the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_alerts: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub enabled_alerts: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub disabled_alerts: i64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub alerts_by_channel_type: IndexMap<String, i64>,
}

impl Default for AlertListStats {
    fn default() -> Self {
        Self {
            total_alerts: crate::defaults::i64_0(),
            enabled_alerts: crate::defaults::i64_0(),
            disabled_alerts: crate::defaults::i64_0(),
            alerts_by_channel_type: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertMatchResult {
    pub document_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub matched_features: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertNotificationConfig {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub channels: Vec<NotificationChannelConfig>,
    #[serde(default = "crate::defaults::yes")]
    pub include_matches: bool,
    #[serde(default = "crate::defaults::yes")]
    pub include_scores: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
}

impl Default for AlertNotificationConfig {
    fn default() -> Self {
        Self {
            channels: Default::default(),
            include_matches: crate::defaults::yes(),
            include_scores: crate::defaults::yes(),
            template_id: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AlertSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_on: Option<TriggerOn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub min_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub threshold: Option<AlertThreshold>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub inputs: Object,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 2592000)))]
    pub cooldown_seconds: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60, max = 2592000)))]
    pub renotify_interval_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fired_at: Option<DateTime<Utc>>,
    /// Until then it tells nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<DateTime<Utc>>,
    /// Looks that failed since the last one that did not.
    #[serde(default = "crate::defaults::i64_0")]
    pub consecutive_failures: i64,
    /// Why the last of them did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_condition: Option<SystemCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub notification_config: AlertNotificationConfig,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<AlertExecutionMode>,
}

impl Default for AlertResponse {
    fn default() -> Self {
        Self {
            alert_id: None,
            namespace_id: None,
            name: Default::default(),
            description: None,
            source: None,
            retriever_id: None,
            trigger_on: None,
            min_count: None,
            threshold: None,
            inputs: Default::default(),
            cooldown_seconds: crate::defaults::i64_0(),
            renotify_interval_seconds: None,
            last_fired_at: None,
            snoozed_until: None,
            consecutive_failures: crate::defaults::i64_0(),
            last_execution_error: None,
            system_condition: None,
            namespace_selector: None,
            notification_config: Default::default(),
            enabled: crate::defaults::yes(),
            created_at: None,
            updated_at: None,
            metadata: Default::default(),
            execution_mode: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AlertSource {
    #[default]
    #[serde(rename = "retriever")]
    Retriever,
    #[serde(rename = "system")]
    System,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertThreshold {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
    pub operator: AlertThresholdOperator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AlertThresholdOperator {
    #[default]
    #[serde(rename = "gt")]
    Gt,
    #[serde(rename = "gte")]
    Gte,
    #[serde(rename = "lt")]
    Lt,
    #[serde(rename = "lte")]
    Lte,
    #[serde(rename = "eq")]
    Eq,
    #[serde(rename = "ne")]
    Ne,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<NamespaceSelectorMode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceSelectorMode {
    #[default]
    #[serde(rename = "all")]
    All,
    #[serde(rename = "selected")]
    Selected,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NotificationChannelConfig {
    pub channel_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub config: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchAlertRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 1000)))]
    pub description: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_on: Option<TriggerOn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub min_count: Option<i64>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(nested), schema(value_type = Option<AlertThreshold>))]
    pub threshold: Option<Option<AlertThreshold>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 2592000)))]
    pub cooldown_seconds: Option<i64>,
    /// `null` takes it away: what stands is told once.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>), validate(range(min = 60, max = 2592000)))]
    pub renotify_interval_seconds: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_condition: Option<SystemCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub notification_config: Option<AlertNotificationConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<AlertExecutionMode>,
    /// It looks, but tells nobody until then; `null` ends that.
    #[serde(
        default,
        deserialize_with = "crate::sent_moment",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<DateTime<Utc>>))]
    pub snoozed_until: Option<Option<DateTime<Utc>>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SystemCondition {
    pub r#type: SystemConditionType,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SystemConditionType {
    #[default]
    #[serde(rename = "collection_empty")]
    CollectionEmpty,
    #[serde(rename = "batch_failed")]
    BatchFailed,
    #[serde(rename = "batch_stalled")]
    BatchStalled,
    #[serde(rename = "retriever_latency")]
    RetrieverLatency,
    #[serde(rename = "retriever_no_results")]
    RetrieverNoResults,
    #[serde(rename = "batch_error_rate")]
    BatchErrorRate,
    #[serde(rename = "collection_drift")]
    CollectionDrift,
    #[serde(rename = "retriever_accuracy")]
    RetrieverAccuracy,
    #[serde(rename = "retriever_alignment_regression")]
    RetrieverAlignmentRegression,
    #[serde(rename = "task_queue_degraded")]
    TaskQueueDegraded,
    #[serde(rename = "dlq_growth")]
    DlqGrowth,
    #[serde(rename = "provider_quota_exhausted")]
    ProviderQuotaExhausted,
    #[serde(rename = "retriever_no_interactions")]
    RetrieverNoInteractions,
    #[serde(rename = "collection_stale")]
    CollectionStale,
    #[serde(rename = "budget_threshold")]
    BudgetThreshold,
    #[serde(rename = "ingest_stalled")]
    IngestStalled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TriggerOn {
    #[default]
    #[serde(rename = "results")]
    Results,
    #[serde(rename = "no_results")]
    NoResults,
}
