//! Wire types of the interface: schema.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Object, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BlobURLRef {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
    #[serde(default = "crate::defaults::blob_u_r_l_ref_role_source")]
    pub role: BlobURLRefRole,
    #[serde(default = "crate::defaults::blob_u_r_l_ref_type_other")]
    pub r#type: BlobURLRefType,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_blob_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub presigned_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
}

impl Default for BlobURLRef {
    fn default() -> Self {
        Self {
            field: Default::default(),
            role: crate::defaults::blob_u_r_l_ref_role_source(),
            r#type: crate::defaults::blob_u_r_l_ref_type_other(),
            url: Default::default(),
            filename: None,
            size_bytes: None,
            content_type: None,
            checksum: None,
            created_at: None,
            source_blob_id: None,
            presigned_url: None,
            unavailable_reason: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BlobURLRefRole {
    #[default]
    #[serde(rename = "source")]
    Source,
    #[serde(rename = "processed")]
    Processed,
    #[serde(rename = "thumbnail")]
    Thumbnail,
    #[serde(rename = "artifact")]
    Artifact,
    #[serde(rename = "aux")]
    Aux,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BlobURLRefType {
    #[serde(rename = "video")]
    Video,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "audio")]
    Audio,
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "pdf")]
    Pdf,
    #[default]
    #[serde(rename = "other")]
    Other,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketSchema {
    pub properties: IndexMap<String, BucketSchemaField>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketSchemaField {
    pub r#type: BucketSchemaFieldType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub items: Option<Box<BucketSchemaField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub properties: Option<IndexMap<String, BucketSchemaField>>,
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
pub enum BucketSchemaFieldType {
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
}
