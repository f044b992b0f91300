//! Wire types of the interface: parameters of the extractors of sounds, films and web pages.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    CostsInfo, ExtractorSource, Object, PayloadIndexConfig, ServeAppStatus, Value,
    VectorIndexDefinition,
};

/// Where recordings are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SplitMethod {
    #[default]
    Time,
    Scene,
    Silence,
}

/// How a language model writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
#[serde(default)]
pub struct GenerationConfig {
    pub candidate_count: i64,
    pub max_output_tokens: i64,
    pub temperature: f64,
    pub top_p: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(max = 24.0)))]
    pub video_fps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub response_schema: Option<Object>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            candidate_count: 1,
            max_output_tokens: 1024,
            temperature: 0.2,
            top_p: 0.8,
            video_fps: None,
            response_mime_type: None,
            response_schema: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
#[serde(default)]
pub struct MultimodalExtractorParams {
    pub extractor_type: String,
    pub split_method: SplitMethod,
    pub description_prompt: String,
    pub time_split_interval: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence_db_threshold: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scene_detection_threshold: Option<f64>,
    pub run_transcription: bool,
    pub transcription_language: String,
    pub run_video_description: bool,
    pub run_transcription_embedding: bool,
    pub run_ocr_embedding: bool,
    pub run_description_embedding: bool,
    pub run_multimodal_embedding: bool,
    pub run_ocr: bool,
    pub max_segment_duration: f64,
    pub sensitivity: String,
    pub enable_thumbnails: bool,
    pub use_cdn: bool,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub generation_config: GenerationConfig,
    pub output_dimensionality: i64,
    pub task_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_shape: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<String>,
}

impl Default for MultimodalExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: "multimodal_extractor".to_owned(),
            split_method: SplitMethod::Time,
            description_prompt:
                "Describe what is seen and what happens, in two or three plain sentences."
                    .to_owned(),
            time_split_interval: Some(10),
            silence_db_threshold: None,
            scene_detection_threshold: None,
            run_transcription: false,
            transcription_language: "en".to_owned(),
            run_video_description: false,
            run_transcription_embedding: false,
            run_ocr_embedding: false,
            run_description_embedding: false,
            run_multimodal_embedding: true,
            run_ocr: false,
            max_segment_duration: 30.0,
            sensitivity: "low".to_owned(),
            enable_thumbnails: true,
            use_cdn: false,
            generation_config: GenerationConfig::default(),
            output_dimensionality: 3072,
            task_type: "RETRIEVAL_DOCUMENT".to_owned(),
            response_shape: None,
            embedding_task: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
#[serde(default)]
pub struct UniversalExtractorParams {
    pub extractor_type: String,
    #[cfg_attr(feature = "schema", validate(range(min = 256, max = 3072)))]
    pub output_dimensionality: i64,
    pub task_type: String,
    pub generate_description: bool,
    pub extract_text: bool,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 50)))]
    pub max_video_segments: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 200)))]
    pub max_document_pages: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1024)))]
    pub max_file_download_mb: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 32)))]
    pub max_concurrency: i64,
}

impl Default for UniversalExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: "universal_extractor".to_owned(),
            output_dimensionality: 3072,
            task_type: "RETRIEVAL_DOCUMENT".to_owned(),
            generate_description: true,
            extract_text: true,
            max_video_segments: 10,
            max_document_pages: 50,
            max_file_download_mb: 500,
            max_concurrency: 4,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
#[serde(default)]
pub struct TranscodingExtractorParams {
    pub extractor_type: String,
    pub output_codec: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 51)))]
    pub crf: i64,
    pub preset: String,
    #[cfg_attr(feature = "schema", validate(range(min = 144, max = 4320)))]
    pub max_resolution: i64,
    pub audio_codec: String,
    pub require_native_sdks: bool,
}

impl Default for TranscodingExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: "transcoding_extractor".to_owned(),
            output_codec: "libx264".to_owned(),
            crf: 23,
            preset: "medium".to_owned(),
            max_resolution: 1080,
            audio_codec: "aac".to_owned(),
            require_native_sdks: false,
        }
    }
}

/// What became of the check of an uploaded extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExtractorValidationStatus {
    Passed,
    Failed,
    #[default]
    Pending,
}

/// The extractors that a namespace may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UnifiedExtractorListResponse {
    #[serde(default = "crate::defaults::yes")]
    pub success: bool,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub extractors: Vec<UnifiedExtractorResponse>,
    pub total: i64,
    pub namespace_id: String,
    pub builtin_count: i64,
    pub custom_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UnifiedExtractorResponse {
    pub feature_extractor_name: String,
    pub version: String,
    pub feature_extractor_id: String,
    pub source: ExtractorSource,
    pub description: String,
    #[serde(default)]
    pub icon: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub input_schema: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub output_schema: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameter_schema: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_mode: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub expected_input_types: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_type: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported_input_types: Vec<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub max_inputs: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub default_parameters: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub costs: Option<CostsInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub required_vector_indexes: Option<Vec<VectorIndexDefinition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub required_payload_indexes: Option<Vec<PayloadIndexConfig>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub position_fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub example_usage: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_available: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serve_apps: Vec<ServeAppStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_status: Option<ExtractorValidationStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

/// Which links of a site are followed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CrawlMode {
    #[default]
    Deterministic,
    Semantic,
}

/// Whether scripts of pages are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RenderStrategy {
    Static,
    Javascript,
    #[default]
    Auto,
}

/// Where pages are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChunkStrategy {
    #[default]
    None,
    Sentences,
    Paragraphs,
    Words,
    Characters,
}

/// What a document is known by when its site is crawled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DocumentIdStrategy {
    #[default]
    Url,
    Position,
    Content,
}

/// Whether addresses of videos are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum YoutubeMode {
    #[default]
    Auto,
    Off,
    Force,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct WebScraperExtractorParams {
    pub extractor_type: String,
    pub max_depth: i64,
    pub max_pages: i64,
    pub crawl_timeout: i64,
    pub crawl_mode: CrawlMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl_goal: Option<String>,
    pub render_strategy: RenderStrategy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_patterns: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_patterns: Option<Vec<String>>,
    pub chunk_strategy: ChunkStrategy,
    pub chunk_size: i64,
    pub chunk_overlap: i64,
    pub document_id_strategy: DocumentIdStrategy,
    pub generate_text_embeddings: bool,
    pub generate_code_embeddings: bool,
    pub generate_image_embeddings: bool,
    pub generate_structure_embeddings: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_shape: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_api_key: Option<String>,
    pub max_retries: i64,
    pub retry_base_delay: f64,
    pub retry_max_delay: f64,
    pub respect_retry_after: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxies: Option<Vec<String>>,
    pub rotate_proxy_on_error: bool,
    pub rotate_proxy_every_n_requests: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captcha_service_provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captcha_service_api_key: Option<String>,
    pub detect_captcha: bool,
    pub persist_cookies: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_headers: Option<IndexMap<String, String>>,
    pub youtube_mode: YoutubeMode,
    pub youtube_max_videos: i64,
    pub youtube_backfill_months: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub youtube_show_filter: Option<String>,
    pub youtube_download_videos: bool,
    pub youtube_format_ladder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub youtube_cookies_path: Option<String>,
    pub youtube_request_sleep: f64,
    pub delay_between_requests: f64,
}

impl Default for WebScraperExtractorParams {
    fn default() -> Self {
        Self {
            extractor_type: "web_scraper".to_owned(),
            max_depth: 2,
            max_pages: 50,
            crawl_timeout: 300,
            crawl_mode: CrawlMode::default(),
            crawl_goal: None,
            render_strategy: RenderStrategy::default(),
            include_patterns: None,
            exclude_patterns: None,
            chunk_strategy: ChunkStrategy::default(),
            chunk_size: 500,
            chunk_overlap: 50,
            document_id_strategy: DocumentIdStrategy::default(),
            generate_text_embeddings: true,
            generate_code_embeddings: true,
            generate_image_embeddings: true,
            generate_structure_embeddings: true,
            response_shape: None,
            llm_provider: None,
            llm_model: None,
            llm_api_key: None,
            max_retries: 3,
            retry_base_delay: 1.0,
            retry_max_delay: 30.0,
            respect_retry_after: true,
            proxies: None,
            rotate_proxy_on_error: true,
            rotate_proxy_every_n_requests: 0,
            captcha_service_provider: None,
            captcha_service_api_key: None,
            detect_captcha: true,
            persist_cookies: true,
            custom_headers: None,
            youtube_mode: YoutubeMode::default(),
            youtube_max_videos: 50,
            youtube_backfill_months: 6,
            youtube_show_filter: None,
            youtube_download_videos: true,
            youtube_format_ladder: "b[height<=720]/bv*[height<=720]+ba/best".to_owned(),
            youtube_cookies_path: None,
            youtube_request_sleep: 1.0,
            delay_between_requests: 0.0,
        }
    }
}
