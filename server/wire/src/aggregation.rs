//! Wire types of the interface: figures over documents and objects.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Filter, Object, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AggregationFunction {
    #[default]
    Count,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AggregationOperation {
    pub function: AggregationFunction,
    /// Dot path; not needed to count rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The metric's name in the answer.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub alias: String,
    /// For `count_distinct`, in place of `field`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct_field: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DateTruncUnit {
    Year,
    Month,
    Week,
    #[default]
    Day,
    Hour,
    Minute,
    Second,
}

/// Days of the week count from 1, a Sunday; weeks as ISO 8601 counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum DatePartUnit {
    Year,
    Month,
    Week,
    #[default]
    Day,
    DayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GroupByField {
    /// Dot path.
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_trunc: Option<DateTruncUnit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_part: Option<DatePartUnit>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HavingCondition {
    /// An alias of an aggregation.
    pub field: String,
    /// eq, ne, gt, gte, lt, lte.
    pub operator: String,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RangeBucket {
    pub field: String,
    /// Rising; each pair of neighbours is a bucket, its lower end included.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub boundaries: Vec<f64>,
    /// The name of what lies in no bucket; without one those rows have the group null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_bucket: Option<String>,
}

macro_rules! aggregation_request {
    ($name:ident) => {
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
        pub struct $name {
            #[serde(default)]
            pub group_by: Vec<GroupByField>,
            #[cfg_attr(feature = "schema", validate(length(min = 1, max = 50), nested))]
            pub aggregations: Vec<AggregationOperation>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub filters: Option<Filter>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub having: Option<Vec<HavingCondition>>,
            /// A list whose items become rows of their own.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub unwind: Option<String>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", validate(nested))]
            pub range_buckets: Option<Vec<RangeBucket>>,
            /// An alias of an aggregation or of a group.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub sort_by: Option<String>,
            /// asc or desc.
            #[serde(default = "descending")]
            pub sort_direction: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
            pub limit: Option<i64>,
        }
    };
}

fn descending() -> String {
    "desc".into()
}

aggregation_request!(DocumentAggregationRequest);
aggregation_request!(ObjectAggregationRequest);

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AggregationResult {
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub group: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metrics: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentAggregationResponse {
    pub results: Vec<AggregationResult>,
    pub total_groups: i64,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub query_info: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ObjectAggregationResponse {
    pub results: Vec<AggregationResult>,
    pub total_groups: i64,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub query_info: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DistinctValuesRequest {
    /// Dot path.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 500)))]
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
    pub limit: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DistinctValue {
    pub value: Value,
    pub count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DistinctValuesResponse {
    pub field: String,
    /// The most frequent first.
    pub values: Vec<DistinctValue>,
    /// At most 10,000 are told apart.
    pub total_distinct: i64,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub query_info: Object,
}
