//! Wire types of the interface: templates that resources are made of.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Object;

/// What a template makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TemplateType {
    #[serde(rename = "namespace")]
    Namespace,
    #[default]
    #[serde(rename = "retriever")]
    Retriever,
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "collection")]
    Collection,
    #[serde(rename = "bucket")]
    Bucket,
    #[serde(rename = "taxonomy")]
    Taxonomy,
    #[serde(rename = "scaffold")]
    Scaffold,
}

/// How a template is used. This server's are configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TemplateMode {
    #[serde(rename = "scaffold")]
    Scaffold,
    #[default]
    #[serde(rename = "config")]
    Config,
    #[serde(rename = "clone")]
    Clone,
    #[serde(rename = "manifest")]
    Manifest,
}

/// Who sees a template: everybody what is the server's own, the organization, or one user of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TemplateScope {
    #[serde(rename = "system")]
    System,
    #[default]
    #[serde(rename = "organization")]
    Organization,
    #[serde(rename = "user")]
    User,
    #[serde(rename = "public")]
    Public,
}

/// A template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BaseTemplateModel {
    pub template_id: String,
    pub template_type: TemplateType,
    #[serde(default)]
    pub mode: TemplateMode,
    pub scope: TemplateScope,
    /// The organization whose it is; `system` for the server's own.
    pub internal_id: String,
    pub name: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The request that makes the resource, without its name. `{{TEMPLATE.…}}` stands for what is named when it is used. Of a
    /// namespace: the requests of all that it holds, in the order in which they are sent.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub configuration: Object,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[serde(default)]
    pub is_public: bool,
    #[serde(default)]
    pub use_cases: Vec<String>,
    /// What has to be there, or is to be set afterwards.
    #[serde(default)]
    pub requirements: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_resource_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_namespace_id: Option<String>,
    #[serde(default)]
    pub example_queries: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whats_inside: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialize_estimate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for BaseTemplateModel {
    fn default() -> Self {
        Self {
            template_id: Default::default(),
            template_type: Default::default(),
            mode: Default::default(),
            scope: Default::default(),
            internal_id: Default::default(),
            name: Default::default(),
            description: Default::default(),
            category: None,
            configuration: Default::default(),
            tags: Default::default(),
            is_active: crate::defaults::yes(),
            is_public: false,
            use_cases: Default::default(),
            requirements: Default::default(),
            created_by: None,
            source_resource_id: None,
            sample_namespace_id: None,
            example_queries: Default::default(),
            whats_inside: None,
            materialize_estimate: None,
            created_at: None,
            updated_at: None,
        }
    }
}

/// Keeps a resource as a template. The server's own are nobody's to make, and none is shared beyond the organization.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTemplateFromResourceRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub template_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
    #[serde(default)]
    pub scope: TemplateScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 50)))]
    pub category: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default)]
    pub is_public: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTemplateFromResourceResponse {
    pub template_id: String,
    pub template_name: String,
    pub template_type: TemplateType,
    pub scope: TemplateScope,
    pub source_resource_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTemplatesRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    /// `field` and `direction`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<TemplateScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    /// Those that a template has all of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl Default for ListTemplatesRequest {
    fn default() -> Self {
        Self {
            filters: None,
            sort: None,
            search: None,
            scope: None,
            category: None,
            is_active: crate::defaults::yes(),
            tags: None,
        }
    }
}

/// The organization's own, newest first, then the server's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListTemplatesResponse {
    pub results: Vec<BaseTemplateModel>,
    pub total_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiateBucketTemplateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub bucket_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiatedBucketTemplateResponse {
    pub bucket_id: String,
    pub bucket_name: String,
    pub template_id: String,
    /// `created`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiateCollectionTemplateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub collection_name: String,
    /// The buckets that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_ids: Option<Vec<String>>,
    /// The collection that it reads, where it reads no buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiatedCollectionTemplateResponse {
    pub collection_id: String,
    pub collection_name: String,
    pub template_id: String,
    /// `created`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiateRetrieverTemplateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub retriever_name: String,
    /// In their order the first, second … collection of the template, where its stages name collections.
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_identifiers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiatedRetrieverTemplateResponse {
    pub retriever_id: String,
    pub retriever_name: String,
    pub template_id: String,
    /// `created`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiateTaxonomyTemplateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub taxonomy_name: String,
    /// What stands in the place of each `{{TEMPLATE.…}}`, by its name.
    pub collection_config: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiatedTaxonomyTemplateResponse {
    pub taxonomy_id: String,
    pub taxonomy_name: String,
    pub template_id: String,
    /// `created`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiateClusterTemplateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub cluster_name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InstantiatedClusterTemplateResponse {
    pub cluster_id: String,
    pub cluster_name: String,
    pub template_id: String,
    /// `created`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
}
