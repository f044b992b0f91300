//! Wire types of the interface: cluster trigger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{DegradedEntry, Object, TriggerStatus, TriggerType};

/// What a trigger executes: a cluster of its own over collections.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TriggerExecutionConfig {
    /// At least one where something is asked for; none of a cluster that is gone.
    pub collection_ids: Vec<String>,
    /// As a cluster is asked for: `vector_config` or `attribute_config`, `cluster_name`, `filters`.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub config: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateClusterTriggerRequest {
    /// The cluster, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// In place of the cluster: one that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_config: Option<TriggerExecutionConfig>,
    pub trigger_type: TriggerType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default = "crate::defaults::trigger_status_active")]
    pub status: TriggerStatus,
}

impl Default for CreateClusterTriggerRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            execution_config: None,
            trigger_type: Default::default(),
            schedule_config: Default::default(),
            description: None,
            status: crate::defaults::trigger_status_active(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterTrigger {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    pub namespace_id: String,
    pub internal_id: String,
    pub execution_config: TriggerExecutionConfig,
    pub trigger_type: TriggerType,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default = "crate::defaults::trigger_status_active")]
    pub status: TriggerStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_triggered_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_job_id: Option<String>,
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
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClusterTriggersRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<TriggerType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TriggerStatus>,
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

impl Default for ListClusterTriggersRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            trigger_type: None,
            status: None,
            offset: crate::defaults::i64_0(),
            limit: crate::defaults::i64_50(),
            sort_by: crate::defaults::text_created_at(),
            direction: crate::defaults::text_desc(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClusterTriggersResponse {
    pub results: Vec<ClusterTrigger>,
    pub total: i64,
    pub offset: i64,
    pub limit: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateClusterTriggerRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub schedule_config: Option<Object>,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerHistoryRequest {
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: i64,
    #[serde(default = "crate::defaults::i64_50")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: i64,
    /// Such as `FAILED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_filter: Option<String>,
}

impl Default for TriggerHistoryRequest {
    fn default() -> Self {
        Self {
            offset: crate::defaults::i64_0(),
            limit: crate::defaults::i64_50(),
            status_filter: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TriggerExecutionHistoryItem {
    pub job_id: String,
    pub triggered_at: DateTime<Utc>,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_clusters: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_documents: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterTriggerHistoryResponse {
    pub trigger_id: String,
    pub executions: Vec<TriggerExecutionHistoryItem>,
    pub total: i64,
    pub offset: i64,
    pub limit: i64,
}
