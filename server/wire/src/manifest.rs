//! Wire types of the interface: manifests, which describe namespaces and what they hold in one file.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Value;

/// What becomes of resources that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApplyMode {
    /// Nothing is made if one of them is there.
    CreateOnly,
    /// They stay as they are.
    CreateMissing,
    /// They are changed to what the manifest says.
    #[default]
    Upsert,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApplyResult {
    pub success: bool,
    #[serde(default)]
    pub resources: Vec<ResourceResult>,
    #[serde(default)]
    pub created_count: i64,
    #[serde(default)]
    pub failed_count: i64,
    #[serde(default)]
    pub skipped_count: i64,
    #[serde(default)]
    pub would_create_count: i64,
    #[serde(default)]
    pub updated_count: i64,
    #[serde(default)]
    pub errors: Vec<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default)]
    pub rollback_performed: bool,
    #[serde(default)]
    pub rollback_orphans: Vec<String>,
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResourceResult {
    pub resource_type: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    pub status: ResourceResultStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_reason: Option<String>,
    /// Members that are otherwise than the manifest says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// Those of them that cannot be changed in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Members that are not told once they are set, such as secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift_not_compared: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResourceResultStatus {
    Created,
    Skipped,
    Failed,
    #[default]
    Exists,
    Drifted,
    Updated,
    WouldCreate,
    Pending,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DiffItem {
    pub resource_type: String,
    pub name: String,
    /// `create`, `update`, `conflict` for what cannot be changed in place, or `none`.
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DiffResult {
    #[serde(default)]
    pub to_create: Vec<DiffItem>,
    #[serde(default)]
    pub in_system_only: Vec<DiffItem>,
    #[serde(default)]
    pub differences: Vec<DiffItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LintResponse {
    pub valid: bool,
    #[serde(default)]
    pub results: Vec<LintResult>,
    /// How many there are of each severity.
    #[serde(default)]
    pub summary: IndexMap<String, i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LintResult {
    pub code: String,
    pub severity: LintSeverity,
    pub message: String,
    pub location: String,
    pub suggestion: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_example: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LintSeverity {
    Error,
    #[default]
    Warning,
    Info,
}

/// A value that a manifest asks for whenever it is applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ManifestParameterSpec {
    pub name: String,
    #[serde(default)]
    pub r#type: ManifestParameterType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<ManifestParameterType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub r#enum: Option<Vec<Value>>,
    #[serde(default = "crate::defaults::yes")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ManifestParameterType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Array,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ValidateResult {
    pub valid: bool,
    /// How many there are of each type.
    #[serde(default)]
    pub resources: IndexMap<String, i64>,
    #[serde(default)]
    pub missing_secrets: Vec<String>,
    #[serde(default)]
    pub errors: Vec<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub parameters: Vec<ManifestParameterSpec>,
}

/// A manifest that was written by the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WrittenManifest {
    /// The manifest as YAML.
    pub manifest: String,
    pub format: String,
    pub manifest_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A manifest as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ManifestForm {
    /// The manifest, YAML or JSON.
    pub manifest_file: String,
    /// The values of its parameters, a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
}
