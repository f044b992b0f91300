//! Wire types of the interface: execution.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, ReadConsistencyOption, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CursorPaginationParams {
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Default for CursorPaginationParams {
    fn default() -> Self {
        Self {
            limit: crate::defaults::i64_10(),
            cursor: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct KeysetPaginationParams {
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub after: Option<Object>,
}

impl Default for KeysetPaginationParams {
    fn default() -> Self {
        Self {
            limit: crate::defaults::i64_10(),
            after: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OffsetPaginationParams {
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub page_size: i64,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub page_number: i64,
}

impl Default for OffsetPaginationParams {
    fn default() -> Self {
        Self {
            page_size: crate::defaults::i64_10(),
            page_number: crate::defaults::i64_1(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverExecutionRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub pagination: Option<RetrieverPagination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: Option<i64>,
    #[serde(default)]
    pub stream: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expand: Option<Vec<String>>,
    #[serde(default)]
    pub skip_cache: bool,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default)]
    pub return_vectors: bool,
    /// Whether the answer tells where documents have the words of the inputs.
    #[serde(default)]
    pub return_highlights: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub consistency: Option<ReadConsistencyOption>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverInputSchemaField {
    pub r#type: RetrieverInputSchemaFieldType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub items: Option<Box<RetrieverInputSchemaField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub properties: Option<IndexMap<String, RetrieverInputSchemaField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#enum: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RetrieverInputSchemaFieldType {
    #[default]
    #[serde(rename = "string")]
    String,
    #[serde(rename = "number")]
    Number,
    #[serde(rename = "integer")]
    Integer,
    #[serde(rename = "float")]
    Float,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "object")]
    Object,
    #[serde(rename = "array")]
    Array,
    #[serde(rename = "date")]
    Date,
    #[serde(rename = "datetime")]
    Datetime,
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "audio")]
    Audio,
    #[serde(rename = "video")]
    Video,
    #[serde(rename = "pdf")]
    Pdf,
    #[serde(rename = "excel")]
    Excel,
    #[serde(rename = "document_reference")]
    DocumentReference,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "method")]
pub enum RetrieverPagination {
    #[serde(rename = "offset")]
    Offset(OffsetPaginationParams),
    #[serde(rename = "cursor")]
    Cursor(CursorPaginationParams),
    #[serde(rename = "scroll")]
    Scroll(ScrollPaginationParams),
    #[serde(rename = "keyset")]
    Keyset(KeysetPaginationParams),
}

#[cfg(feature = "schema")]
impl validator::Validate for RetrieverPagination {
    fn validate(&self) -> Result<(), validator::ValidationErrors> {
        match self {
            Self::Offset(page) => page.validate(),
            Self::Cursor(page) => page.validate(),
            Self::Scroll(page) => page.validate(),
            Self::Keyset(page) => page.validate(),
        }
    }
}

impl Default for RetrieverPagination {
    fn default() -> Self {
        Self::Offset(Default::default())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RetrieverVisibility {
    #[default]
    #[serde(rename = "private")]
    Private,
    #[serde(rename = "public")]
    Public,
    #[serde(rename = "marketplace")]
    Marketplace,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ScrollPaginationParams {
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_id: Option<String>,
    #[serde(default = "crate::defaults::i64_300")]
    #[cfg_attr(feature = "schema", validate(range(min = 60, max = 3600)))]
    pub scroll_ttl: i64,
}

impl Default for ScrollPaginationParams {
    fn default() -> Self {
        Self {
            limit: crate::defaults::i64_100(),
            scroll_id: None,
            scroll_ttl: crate::defaults::i64_300(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageConfigInput {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub stage_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_type: Option<StageType>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_alias: Option<String>,
    /// What the server shows of a stage beside its config, so that stages can be sent back as they were read; the config decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameters: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageConfigOutput {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub stage_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_type: Option<StageType>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_alias: Option<String>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub parameters: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StageType {
    #[default]
    #[serde(rename = "filter")]
    Filter,
    #[serde(rename = "sort")]
    Sort,
    #[serde(rename = "reduce")]
    Reduce,
    #[serde(rename = "apply")]
    Apply,
    #[serde(rename = "enrich")]
    Enrich,
}
