//! Wire types of the interface: clones of namespaces.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::NamespaceModel;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub namespace_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_resources: Option<CloneNamespaceResourcesConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_organization_id: Option<String>,
    #[serde(default = "crate::defaults::clone_namespace_request_mode_copy")]
    pub mode: CloneNamespaceRequestMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60)))]
    pub ttl_seconds: Option<i64>,
}

impl Default for CloneNamespaceRequest {
    fn default() -> Self {
        Self {
            namespace_name: Default::default(),
            include_resources: None,
            description: None,
            source_organization_id: None,
            mode: crate::defaults::clone_namespace_request_mode_copy(),
            ttl_seconds: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CloneNamespaceRequestMode {
    #[default]
    #[serde(rename = "copy")]
    Copy,
    #[serde(rename = "branch")]
    Branch,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceResourcesConfig {
    #[serde(default = "crate::defaults::yes")]
    pub collections: bool,
    #[serde(default = "crate::defaults::yes")]
    pub retrievers: bool,
    #[serde(default)]
    pub taxonomies: bool,
}

impl Default for CloneNamespaceResourcesConfig {
    fn default() -> Self {
        Self {
            collections: crate::defaults::yes(),
            retrievers: crate::defaults::yes(),
            taxonomies: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub namespace: NamespaceModel,
    pub source_namespace_id: String,
    #[serde(default = "crate::defaults::text_cloning")]
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_resources: Option<ClonedResourceSummary>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cloned_resource_counts: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_retriever_id: Option<String>,
}

impl Default for CloneNamespaceResponse {
    fn default() -> Self {
        Self {
            namespace: Default::default(),
            source_namespace_id: Default::default(),
            status: crate::defaults::text_cloning(),
            task_id: None,
            cloned_resources: None,
            cloned_resource_counts: Default::default(),
            primary_retriever_id: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClonedResourceSummary {
    pub collections: IndexMap<String, String>,
    pub retrievers: IndexMap<String, String>,
    pub taxonomies: IndexMap<String, String>,
    pub buckets: IndexMap<String, String>,
}
