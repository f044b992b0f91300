//! Wire types of the interface: trigger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{ClusterExecutionMode, DegradedEntry, Object};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTriggerRequest {
    pub action_type: TriggerActionType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub action_config: Object,
    pub trigger_type: TriggerType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default = "crate::defaults::trigger_status_active")]
    pub status: TriggerStatus,
}

impl Default for CreateTriggerRequest {
    fn default() -> Self {
        Self {
            action_type: Default::default(),
            action_config: Default::default(),
            trigger_type: Default::default(),
            schedule_config: Default::default(),
            name: None,
            description: None,
            status: crate::defaults::trigger_status_active(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTriggersRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<TriggerActionType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<TriggerType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TriggerStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: i64,
    #[serde(default = "crate::defaults::i64_50")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: i64,
    #[serde(default = "crate::defaults::text_created_at")]
    pub sort_by: String,
    #[serde(default = "crate::defaults::text_desc")]
    pub direction: String,
}

impl Default for ListTriggersRequest {
    fn default() -> Self {
        Self {
            action_type: None,
            trigger_type: None,
            status: None,
            resource_id: None,
            offset: crate::defaults::i64_0(),
            limit: crate::defaults::i64_50(),
            sort_by: crate::defaults::text_created_at(),
            direction: crate::defaults::text_desc(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTriggersResponse {
    pub results: Vec<Trigger>,
    pub total: i64,
    pub offset: i64,
    pub limit: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct Trigger {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    pub namespace_id: String,
    pub internal_id: String,
    pub action_type: TriggerActionType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub action_config: Object,
    pub trigger_type: TriggerType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default = "crate::defaults::trigger_status_active")]
    pub status: TriggerStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_triggered_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_scheduled_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::i64_0")]
    pub execution_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub consecutive_failures: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_error: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub event_counter: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_cooldown_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub baseline_snapshot: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub last_drift_measurement: Option<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub last_volume_measurement: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_condition_check_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    pub is_overdue: bool,
}

impl Default for Trigger {
    fn default() -> Self {
        Self {
            trigger_id: None,
            namespace_id: Default::default(),
            internal_id: Default::default(),
            action_type: Default::default(),
            action_config: Default::default(),
            trigger_type: Default::default(),
            schedule_config: Default::default(),
            status: crate::defaults::trigger_status_active(),
            last_triggered_at: None,
            last_execution_task_id: None,
            next_scheduled_at: None,
            execution_count: crate::defaults::i64_0(),
            consecutive_failures: crate::defaults::i64_0(),
            last_execution_status: None,
            last_execution_error: None,
            event_counter: crate::defaults::i64_0(),
            last_cooldown_at: None,
            baseline_snapshot: None,
            last_drift_measurement: None,
            last_volume_measurement: Default::default(),
            last_condition_check_at: None,
            name: None,
            description: None,
            created_at: None,
            updated_at: None,
            created_by: None,
            is_overdue: Default::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TriggerActionType {
    #[default]
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "taxonomy_enrichment")]
    TaxonomyEnrichment,
    #[serde(rename = "batch_rerun")]
    BatchRerun,
    #[serde(rename = "collection_trigger")]
    CollectionTrigger,
    #[serde(rename = "retriever_execution")]
    RetrieverExecution,
    #[serde(rename = "alert_evaluation")]
    AlertEvaluation,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerExecutionHistory {
    pub task_id: String,
    pub triggered_at: DateTime<Utc>,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerHistoryResponse {
    pub trigger_id: String,
    pub executions: Vec<TriggerExecutionHistory>,
    pub total: i64,
    pub offset: i64,
    pub limit: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TriggerStatus {
    #[default]
    #[serde(rename = "active")]
    Active,
    #[serde(rename = "paused")]
    Paused,
    #[serde(rename = "disabled")]
    Disabled,
    #[serde(rename = "failed")]
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TriggerType {
    #[default]
    #[serde(rename = "cron")]
    Cron,
    #[serde(rename = "interval")]
    Interval,
    #[serde(rename = "event")]
    Event,
    #[serde(rename = "conditional")]
    Conditional,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateTriggerRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub schedule_config: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TriggerStatus>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerActionConfigBatchRerun {
    pub batch_id: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub filters: Object,
    #[serde(default)]
    pub retry_failed_only: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerActionConfigCollectionTrigger {
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_buckets: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_collections: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub source_filters: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerActionConfigRetrieverExecution {
    pub retriever_id: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub inputs: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub filters: Object,
    #[serde(default = "crate::defaults::yes")]
    pub skip_cache: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub acceptance: Option<TriggerDefsRetrieverAcceptanceCriteria>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub notification_config: Option<TriggerDefsRetrieverCanaryNotificationConfig>,
}

impl Default for TriggerActionConfigRetrieverExecution {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            inputs: Default::default(),
            filters: Default::default(),
            skip_cache: crate::defaults::yes(),
            acceptance: None,
            notification_config: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerDefsRetrieverAcceptanceCriteria {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_time_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub max_stage_latency_breaches: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub min_results: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub min_pass_ratio: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerDefsRetrieverCanaryNotificationConfig {
    #[serde(default)]
    pub include_internal_diagnostics: bool,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub channels: Vec<Object>,
    #[serde(default = "crate::defaults::text_change")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P6)))]
    pub notify_on: String,
}

impl Default for TriggerDefsRetrieverCanaryNotificationConfig {
    fn default() -> Self {
        Self {
            include_internal_diagnostics: false,
            channels: Default::default(),
            notify_on: crate::defaults::text_change(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerActionConfigTaxonomyEnrichment {
    pub taxonomy_id: String,
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub filters: Object,
    #[serde(default)]
    pub incremental: bool,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 100, max = 10000)))]
    pub batch_size: i64,
    #[serde(default = "crate::defaults::i64_4")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 16)))]
    pub parallelism: i64,
}

impl Default for TriggerActionConfigTaxonomyEnrichment {
    fn default() -> Self {
        Self {
            taxonomy_id: Default::default(),
            collection_id: Default::default(),
            target_collection_id: None,
            filters: Default::default(),
            incremental: false,
            batch_size: crate::defaults::i64_1000(),
            parallelism: crate::defaults::i64_4(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerActionConfigCluster {
    /// The cluster, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// In place of the cluster: the newest one over this collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub filters: Object,
    #[serde(default = "crate::defaults::cluster_execution_mode_full")]
    pub mode: ClusterExecutionMode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_execution_ids: Vec<String>,
    #[serde(default = "crate::defaults::f64_0_5")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub assignment_threshold: f64,
}

impl Default for TriggerActionConfigCluster {
    fn default() -> Self {
        Self {
            cluster_id: None,
            collection_id: None,
            output_collection_ids: Default::default(),
            filters: Default::default(),
            mode: crate::defaults::cluster_execution_mode_full(),
            source_execution_ids: Default::default(),
            assignment_threshold: crate::defaults::f64_0_5(),
        }
    }
}
