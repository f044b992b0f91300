//! Wire types of the interface: where a collection's documents come from, and what makes them.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Filter, Object, SourceType, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionScheduleConfig {
    pub trigger_type: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub schedule_config: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum EmbeddingModel {
    #[default]
    #[serde(rename = "laion_clip_vit_l_14_v1")]
    LaionClipVitL14V1,
    #[serde(rename = "multilingual_e5_large_instruct_v1")]
    MultilingualE5LargeInstructV1,
    #[serde(rename = "vertex_multimodal_embedding")]
    VertexMultimodalEmbedding,
    #[serde(rename = "multimodalembedding@001")]
    Multimodalembedding001,
    #[serde(rename = "gemini-embedding-2")]
    GeminiEmbedding2,
    #[serde(rename = "google_siglip_base_v1")]
    GoogleSiglipBaseV1,
    #[serde(rename = "google_siglip_so400m_v1")]
    GoogleSiglipSo400mV1,
    #[serde(rename = "text-embedding-3-small")]
    TextEmbedding3Small,
    #[serde(rename = "text-embedding-3-large")]
    TextEmbedding3Large,
    #[serde(rename = "face_identity_arcface_r100_v1")]
    FaceIdentityArcfaceR100V1,
    #[serde(rename = "all_minilm_l6_v2_v1")]
    AllMinilmL6V2V1,
    #[serde(rename = "colbertv2_v1")]
    Colbertv2V1,
    #[serde(rename = "colqwen2_v1")]
    Colqwen2V1,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureExtractorConfigInput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_passthrough: Vec<FieldPassthrough>,
    #[serde(default)]
    pub include_all_source_fields: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureExtractorConfigOutput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_passthrough: Vec<FieldPassthrough>,
    #[serde(default)]
    pub include_all_source_fields: bool,
    pub feature_extractor_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldPassthrough {
    pub source_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default)]
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceConfig {
    pub r#type: SourceType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_filters: Option<SourceFilters>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub field_map: IndexMap<String, Vec<FieldPassthrough>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceFilters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StoredTextReembedRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 10000)))]
    pub document_ids: Option<Vec<String>>,
    #[serde(default = "crate::defaults::yes")]
    pub only_missing: bool,
    #[serde(default)]
    pub dry_run: bool,
}

impl Default for StoredTextReembedRequest {
    fn default() -> Self {
        Self {
            outputs: None,
            target_feature_uri: None,
            document_ids: None,
            only_missing: crate::defaults::yes(),
            dry_run: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TextSplitStrategy {
    #[default]
    #[serde(rename = "characters")]
    Characters,
    #[serde(rename = "words")]
    Words,
    #[serde(rename = "sentences")]
    Sentences,
    #[serde(rename = "paragraphs")]
    Paragraphs,
    #[serde(rename = "pages")]
    Pages,
    #[serde(rename = "time_segments")]
    TimeSegments,
    #[serde(rename = "markdown")]
    Markdown,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TieringRule {
    pub rule_type: TieringRuleRuleType,
    #[serde(default)]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_days: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TieringRuleRuleType {
    #[default]
    #[serde(rename = "auto_evict")]
    AutoEvict,
    #[serde(rename = "auto_archive")]
    AutoArchive,
    #[serde(rename = "auto_rehydrate")]
    AutoRehydrate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorFieldSpec {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
    pub name: String,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 65536)))]
    pub dimensions: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<VectorFieldSpecDistance>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorFieldSpecDistance {
    #[default]
    #[serde(rename = "cosine")]
    Cosine,
    #[serde(rename = "dot")]
    Dot,
    #[serde(rename = "euclidean")]
    Euclidean,
}
