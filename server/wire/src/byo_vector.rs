//! Wire types of the interface: namespaces and documents with vectors of one's own.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DocumentCreateRequestSourceType, Object, WriteConsistency};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateStandaloneNamespaceRequestModel {
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P11)))]
    pub namespace_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_configs: Vec<VectorConfigSpecModel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub storage: Option<StandaloneStorageConfig>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_create_indexes: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorConfigSpecModel {
    pub name: String,
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub dimension: i64,
    /// cosine, dot or euclidean.
    #[serde(default = "crate::defaults::text_cosine")]
    pub metric: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StandaloneStorageConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StandaloneNamespaceResponseModel {
    pub namespace_id: String,
    #[serde(default = "crate::defaults::text_standalone")]
    pub mode: String,
    #[serde(default = "crate::defaults::text_active")]
    pub status: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub vector_configs: Vec<Object>,
    #[serde(default = "crate::defaults::text_auto")]
    pub tiering: String,
    #[serde(default)]
    pub document_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BYOUpsertRequest {
    /// A collection of the namespace, by id or name; the namespace's own where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 1000), nested))]
    pub documents: Vec<BYODocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub options: Option<UpsertOptions>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BYODocument {
    /// Any text: the caller's own id of the document, or the id that the server gave it.
    pub document_id: String,
    /// Vectors by the name of their index.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, BYOVector>))]
    pub vectors: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub payload: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub acl: Option<BYODocumentACL>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<DocumentCreateRequestSourceType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_bucket_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<std::collections::HashMap<String, serde_json::Value>>>))]
    pub lineage_chain: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
}

/// One vector, a vector for each piece of a document, or the numbers that are not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum BYOVector {
    Dense(Vec<f64>),
    Multi(Vec<Vec<f64>>),
    Sparse(BYOSparseVector),
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BYOSparseVector {
    pub indices: Vec<i64>,
    pub values: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BYODocumentACL {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub read: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub write: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpsertOptions {
    #[serde(default)]
    pub write_token: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BYOUpsertResponse {
    pub inserted: i64,
    /// The ids that the server knows the documents by, in the order sent.
    pub document_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token: Option<String>,
    /// Members of payloads that only the server writes, by the id that was sent.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub dropped_payload_fields: IndexMap<String, Vec<String>>,
    /// Ids that were sent of documents without any vector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsearchable_document_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub consistency: Option<WriteConsistency>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PromoteNamespaceRequestModel {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_mappings: Vec<VectorMappingModel>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub add_vectors: Vec<NewVectorConfigSpecModel>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorMappingModel {
    pub existing_index: String,
    pub inference_service: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NewVectorConfigSpecModel {
    pub name: String,
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub dimension: i64,
    /// cosine, dot or euclidean.
    #[serde(default = "crate::defaults::text_cosine")]
    pub metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_service: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PromoteNamespaceResponseModel {
    pub namespace_id: String,
    pub previous_mode: String,
    pub mode: String,
    pub status: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub vector_configs: Vec<Object>,
    #[serde(default)]
    pub vector_inference_map: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PromoteValidateResponseModel {
    pub namespace_id: String,
    pub current_mode: String,
    pub valid: bool,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub vector_configs: Vec<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub suggestions: Vec<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub errors: Vec<Object>,
    pub required_user_action: String,
}
