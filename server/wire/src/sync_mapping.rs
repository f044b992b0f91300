//! Wire types of the interface: what becomes of the files of a storage.

use serde::{Deserialize, Serialize};

use crate::Value;

/// What becomes of a file's name, folder and content: members of the object by their names, and its files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SchemaMapping {
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, MappingEntry>))]
    pub mappings: indexmap::IndexMap<String, MappingEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "target_type")]
pub enum MappingEntry {
    #[serde(rename = "field")]
    Field(FieldMappingEntry),
    #[serde(rename = "blob")]
    Blob(BlobMappingEntry),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FieldMappingEntry {
    pub source: FieldSource,
    /// `lower`, `upper`, `trim`, `integer` or `number`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    #[serde(default)]
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlobMappingEntry {
    pub source: FieldSource,
    #[serde(default)]
    pub blob_type: BlobType,
    #[serde(default = "crate::defaults::text_content")]
    pub blob_property: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type_override: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BlobType {
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "video")]
    Video,
    #[serde(rename = "audio")]
    Audio,
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "pdf")]
    Pdf,
    #[serde(rename = "excel")]
    Excel,
}

/// Where a value is taken from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum FieldSource {
    #[serde(rename = "file")]
    File(FileSource),
    #[serde(rename = "filename_regex")]
    FilenameRegex(FilenameRegexSource),
    #[serde(rename = "folder_path")]
    FolderPath(FolderPathSource),
    #[serde(rename = "constant")]
    Constant(ConstantSource),
}

/// The file itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileSource {}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FilenameRegexSource {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FolderPathSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<i64>,
    #[serde(default)]
    pub full_path: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ConstantSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}
