//! Wire types of the interface: what makes and lists alerts.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AlertExecutionMode, AlertListStats, AlertNotificationConfig, AlertResponse, AlertSource,
    AlertThreshold, DegradedEntry, Filter, NamespaceSelector, Object, PaginationResponse,
    SortOption, SystemCondition, TriggerOn,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateAlertRequest {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 2592000)))]
    pub cooldown_seconds: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60, max = 2592000)))]
    pub renotify_interval_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_condition: Option<SystemCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub notification_config: AlertNotificationConfig,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<AlertExecutionMode>,
}

impl Default for CreateAlertRequest {
    fn default() -> Self {
        Self {
            name: Default::default(),
            description: None,
            source: None,
            retriever_id: None,
            trigger_on: None,
            min_count: None,
            threshold: None,
            inputs: None,
            cooldown_seconds: crate::defaults::i64_0(),
            renotify_interval_seconds: None,
            system_condition: None,
            namespace_selector: None,
            notification_config: Default::default(),
            enabled: crate::defaults::yes(),
            metadata: None,
            execution_mode: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAlertsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAlertsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<AlertResponse>,
    pub pagination: PaginationResponse,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<AlertListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}
