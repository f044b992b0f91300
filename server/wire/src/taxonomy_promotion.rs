//! Wire types of the interface: taxonomies made of documents and clusters.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Object;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateTaxonomyFromDocumentsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub node_label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub documents: Option<Vec<DocumentRef>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub node_fields: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provenance: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cluster_run: Option<ClusterRunSource>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub taxonomy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment_target_field: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateNodeFromDocumentsRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub node_label: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub documents: Vec<DocumentRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub node_fields: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provenance: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyNodeFromDocumentsResponse {
    pub taxonomy_id: String,
    pub taxonomy_name: String,
    pub node_document_id: String,
    pub node_collection_id: String,
    pub node_label: String,
    pub vector_name: String,
    pub vector_dimensions: i64,
    pub documents_used: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub documents_skipped: Vec<SkippedDocumentRef>,
    #[serde(default)]
    pub taxonomy_created: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    pub enrichment_hint: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub nodes: Vec<PromotedNode>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentRef {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub document_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterRunSource {
    pub cluster_id: String,
    pub run_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SkippedDocumentRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PromotedNode {
    pub node_document_id: String,
    pub node_label: String,
    pub cluster_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_count: Option<i64>,
}
