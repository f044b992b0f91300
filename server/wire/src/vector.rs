//! Wire types of the interface: vector.

use serde::{Deserialize, Serialize};

use crate::{BucketSchemaFieldType, PayloadSchemaType, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PayloadIndexConfig {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 255)))]
    pub field_name: String,
    pub r#type: PayloadSchemaType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_schema: Option<Value>,
    #[serde(default)]
    pub is_protected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorDataType {
    #[default]
    #[serde(rename = "float32")]
    Float32,
    #[serde(rename = "uint8")]
    Uint8,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorIndex {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 10)))]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub dimensions: Option<i64>,
    pub r#type: VectorType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datatype: Option<VectorDataType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disk: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported_inputs: Option<Vec<BucketSchemaFieldType>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_service_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<VectorPurpose>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_name_override: Option<String>,
    #[serde(default)]
    pub supports_multi_query: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorIndexDefinition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 10)))]
    pub description: String,
    pub r#type: VectorIndexDefinitionType,
    pub index: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorIndexDefinitionType {
    #[default]
    #[serde(rename = "single")]
    Single,
    #[serde(rename = "multi")]
    Multi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorPurpose {
    #[default]
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "code")]
    Code,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "multimodal")]
    Multimodal,
    #[serde(rename = "video")]
    Video,
    #[serde(rename = "audio")]
    Audio,
    #[serde(rename = "sparse")]
    Sparse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorType {
    #[default]
    #[serde(rename = "dense")]
    Dense,
    #[serde(rename = "sparse")]
    Sparse,
    #[serde(rename = "multi_dense")]
    MultiDense,
}
