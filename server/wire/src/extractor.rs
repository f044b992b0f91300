//! Wire types of the interface: extractor.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    CostsInfo, EmbeddingModel, ExtractorSource, Object, PayloadIndexConfig, ServeAppStatus,
    TextSplitStrategy, Value, VectorFieldSpec, VectorIndexDefinition,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentGraphExtractorParams {
    #[serde(
        default = "crate::defaults::document_graph_extractor_params_extractor_type_document_graph_extractor"
    )]
    pub extractor_type: DocumentGraphExtractorParamsExtractorType,
    #[serde(default = "crate::defaults::yes")]
    pub use_layout_detection: bool,
    #[serde(default = "crate::defaults::document_graph_extractor_params_layout_detector_pymupdf")]
    pub layout_detector: DocumentGraphExtractorParamsLayoutDetector,
    #[serde(default = "crate::defaults::f64_15_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 1.0, max = 100.0)))]
    pub vertical_threshold: f64,
    #[serde(default = "crate::defaults::f64_50_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 1.0, max = 200.0)))]
    pub horizontal_threshold: f64,
    #[serde(default = "crate::defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub min_text_length: i64,
    #[serde(default = "crate::defaults::f64_0_85")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub base_confidence: f64,
    #[serde(default = "crate::defaults::f64_0_6")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub min_confidence_for_vlm: f64,
    #[serde(default = "crate::defaults::yes")]
    pub use_vlm_correction: bool,
    #[serde(default)]
    pub fast_mode: bool,
    #[serde(default = "crate::defaults::text_google")]
    pub vlm_provider: String,
    #[serde(default = "crate::defaults::text_gemini_2_5_flash")]
    pub vlm_model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_api_key: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub run_text_embedding: bool,
    #[serde(default = "crate::defaults::i64_150")]
    #[cfg_attr(feature = "schema", validate(range(min = 72, max = 300)))]
    pub render_dpi: i64,
    #[serde(default = "crate::defaults::yes")]
    pub generate_thumbnails: bool,
    #[serde(default = "crate::defaults::text_both")]
    pub thumbnail_mode: String,
    #[serde(default = "crate::defaults::i64_72")]
    #[cfg_attr(feature = "schema", validate(range(min = 36, max = 150)))]
    pub thumbnail_dpi: i64,
}

impl Default for DocumentGraphExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: crate::defaults::document_graph_extractor_params_extractor_type_document_graph_extractor(),
            use_layout_detection: crate::defaults::yes(),
            layout_detector: crate::defaults::document_graph_extractor_params_layout_detector_pymupdf(),
            vertical_threshold: crate::defaults::f64_15_0(),
            horizontal_threshold: crate::defaults::f64_50_0(),
            min_text_length: crate::defaults::i64_20(),
            base_confidence: crate::defaults::f64_0_85(),
            min_confidence_for_vlm: crate::defaults::f64_0_6(),
            use_vlm_correction: crate::defaults::yes(),
            fast_mode: false,
            vlm_provider: crate::defaults::text_google(),
            vlm_model: crate::defaults::text_gemini_2_5_flash(),
            llm_api_key: None,
            run_text_embedding: crate::defaults::yes(),
            render_dpi: crate::defaults::i64_150(),
            generate_thumbnails: crate::defaults::yes(),
            thumbnail_mode: crate::defaults::text_both(),
            thumbnail_dpi: crate::defaults::i64_72(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DocumentGraphExtractorParamsExtractorType {
    #[default]
    #[serde(rename = "document_graph_extractor")]
    DocumentGraphExtractor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DocumentGraphExtractorParamsLayoutDetector {
    #[default]
    #[serde(rename = "pymupdf")]
    Pymupdf,
    #[serde(rename = "docling")]
    Docling,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureDiscoveryResponse {
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub modalities: Vec<Object>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub custom_features: Vec<Object>,
    pub full_res_multiplier: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureExtractorResponseModel {
    pub feature_extractor_name: String,
    pub version: String,
    pub feature_extractor_id: String,
    pub description: String,
    pub icon: String,
    #[serde(default = "crate::defaults::text_general")]
    pub category: String,
    #[serde(default = "crate::defaults::extractor_source_builtin")]
    pub source: ExtractorSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_mode: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub expected_input_types: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_type: Option<String>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub input_schema: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub output_schema: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameter_schema: Option<Object>,
    pub supported_input_types: Vec<String>,
    pub max_inputs: IndexMap<String, i64>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub default_parameters: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub costs: Option<CostsInfo>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub required_vector_indexes: Option<Vec<VectorIndexDefinition>>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub required_payload_indexes: Option<Vec<PayloadIndexConfig>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub position_fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub example_usage: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_available: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serve_apps: Vec<ServeAppStatus>,
}

impl Default for FeatureExtractorResponseModel {
    fn default() -> Self {
        Self {
            feature_extractor_name: Default::default(),
            version: Default::default(),
            feature_extractor_id: Default::default(),
            description: Default::default(),
            icon: Default::default(),
            category: crate::defaults::text_general(),
            source: crate::defaults::extractor_source_builtin(),
            type_mode: None,
            expected_input_types: Default::default(),
            inference_type: None,
            input_schema: Default::default(),
            output_schema: Default::default(),
            parameter_schema: None,
            supported_input_types: Default::default(),
            max_inputs: Default::default(),
            default_parameters: Default::default(),
            costs: None,
            required_vector_indexes: None,
            required_payload_indexes: None,
            position_fields: Default::default(),
            capabilities: Default::default(),
            example_usage: Default::default(),
            realtime_available: None,
            serve_apps: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ImageExtractorParams {
    #[serde(default = "crate::defaults::image_extractor_params_extractor_type_image_extractor")]
    pub extractor_type: ImageExtractorParamsExtractorType,
    #[serde(default = "crate::defaults::yes")]
    pub enable_thumbnails: bool,
    #[serde(default)]
    pub use_cdn: bool,
}

impl Default for ImageExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: crate::defaults::image_extractor_params_extractor_type_image_extractor(
            ),
            enable_thumbnails: crate::defaults::yes(),
            use_cdn: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ImageExtractorParamsExtractorType {
    #[default]
    #[serde(rename = "image_extractor")]
    ImageExtractor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PassthroughExtractorParams {
    #[serde(
        default = "crate::defaults::passthrough_extractor_params_extractor_type_passthrough_extractor"
    )]
    pub extractor_type: PassthroughExtractorParamsExtractorType,
    #[serde(default = "crate::defaults::yes")]
    pub preserve_metadata: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_fields: Vec<VectorFieldSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_format: Option<PassthroughExtractorParamsRowFormat>,
}

impl Default for PassthroughExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type:
                crate::defaults::passthrough_extractor_params_extractor_type_passthrough_extractor(),
            preserve_metadata: crate::defaults::yes(),
            vector_fields: Default::default(),
            row_format: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum PassthroughExtractorParamsExtractorType {
    #[default]
    #[serde(rename = "passthrough_extractor")]
    PassthroughExtractor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum PassthroughExtractorParamsRowFormat {
    #[default]
    #[serde(rename = "jsonl")]
    Jsonl,
    #[serde(rename = "parquet")]
    Parquet,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TextExtractorParams {
    #[serde(default = "crate::defaults::text_extractor_params_extractor_type_text_extractor")]
    pub extractor_type: TextExtractorParamsExtractorType,
    #[serde(default = "crate::defaults::text_extractor_params_source_type_text")]
    pub source_type: TextExtractorParamsSourceType,
    #[serde(default = "crate::defaults::text_split_strategy_none")]
    pub split_by: TextSplitStrategy,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
    pub chunk_size: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 5000)))]
    pub chunk_overlap: i64,
    #[serde(default = "crate::defaults::i64_120")]
    #[cfg_attr(feature = "schema", validate(range(min = 30, max = 600)))]
    pub segment_length_seconds: i64,
    #[serde(default = "crate::defaults::text_en")]
    pub language: String,
    #[serde(default = "crate::defaults::yes")]
    pub extract_captions: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_shape: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<EmbeddingModel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<String>,
}

impl Default for TextExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: crate::defaults::text_extractor_params_extractor_type_text_extractor(),
            source_type: crate::defaults::text_extractor_params_source_type_text(),
            split_by: crate::defaults::text_split_strategy_none(),
            chunk_size: crate::defaults::i64_1000(),
            chunk_overlap: crate::defaults::i64_0(),
            segment_length_seconds: crate::defaults::i64_120(),
            language: crate::defaults::text_en(),
            extract_captions: crate::defaults::yes(),
            response_shape: None,
            llm_provider: None,
            llm_model: None,
            llm_api_key: None,
            embedding_model: None,
            embedding_task: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TextExtractorParamsExtractorType {
    #[default]
    #[serde(rename = "text_extractor")]
    TextExtractor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TextExtractorParamsSourceType {
    #[default]
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "youtube")]
    Youtube,
}
