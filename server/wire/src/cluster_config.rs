//! Wire types of the interface: cluster config.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{InputMapping, Object, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AttributeBasedConfig {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub attributes: Vec<String>,
    #[serde(default)]
    pub hierarchical_grouping: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation_method: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ClusteringAlgorithm {
    #[default]
    #[serde(rename = "kmeans")]
    Kmeans,
    #[serde(rename = "dbscan")]
    Dbscan,
    #[serde(rename = "hdbscan")]
    Hdbscan,
    #[serde(rename = "agglomerative")]
    Agglomerative,
    #[serde(rename = "spectral")]
    Spectral,
    #[serde(rename = "gaussian_mixture")]
    GaussianMixture,
    #[serde(rename = "mean_shift")]
    MeanShift,
    #[serde(rename = "optics")]
    Optics,
    #[serde(rename = "leiden")]
    Leiden,
    #[serde(rename = "evoc")]
    Evoc,
    #[serde(rename = "attribute_based")]
    AttributeBased,
    #[serde(rename = "auto")]
    Auto,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentFieldMapping {
    pub source_field: String,
    pub target_field: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FaceClusterMergeConfig {
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default = "crate::defaults::f64_0_55")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub centroid_cosine_threshold: f64,
    #[serde(default = "crate::defaults::f64_0_4")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub bbox_iou_threshold: f64,
    #[serde(default = "crate::defaults::f64_0_3")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub scene_jaccard_threshold: f64,
    #[serde(default = "crate::defaults::text_bbox")]
    pub bbox_field: String,
    #[serde(default = "crate::defaults::text_frame_number")]
    pub frame_field: String,
    #[serde(default = "crate::defaults::text_scene_id")]
    pub scene_field: String,
}

impl Default for FaceClusterMergeConfig {
    fn default() -> Self {
        Self {
            enabled: crate::defaults::yes(),
            centroid_cosine_threshold: crate::defaults::f64_0_55(),
            bbox_iou_threshold: crate::defaults::f64_0_4(),
            scene_jaccard_threshold: crate::defaults::f64_0_3(),
            bbox_field: crate::defaults::text_bbox(),
            frame_field: crate::defaults::text_frame_number(),
            scene_field: crate::defaults::text_scene_id(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LLMLabelingInput {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub labeling_inputs: Option<LLMLabelingInputInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<LLMProvider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<Value>,
    #[serde(default = "crate::defaults::yes")]
    pub include_summary: bool,
    #[serde(default = "crate::defaults::yes")]
    pub include_keywords: bool,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 20)))]
    pub max_samples_per_cluster: i64,
    #[serde(default = "crate::defaults::i64_200")]
    #[cfg_attr(feature = "schema", validate(range(min = 50, max = 500)))]
    pub sample_text_max_length: i64,
    #[serde(default = "crate::defaults::sample_selection_strategy_nearest")]
    pub sample_selection_strategy: SampleSelectionStrategy,
    #[serde(default = "crate::defaults::yes")]
    pub use_embedding_dedup: bool,
    #[serde(default = "crate::defaults::f64_0_8")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.5, max = 1.0)))]
    pub embedding_similarity_threshold: f64,
    #[serde(default = "crate::defaults::i64_604800")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 2592000)))]
    pub cache_ttl_seconds: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 2000)))]
    pub labeling_context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_shape: Option<Value>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub parameters: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_labels: Option<Value>,
}

impl Default for LLMLabelingInput {
    fn default() -> Self {
        Self {
            enabled: false,
            labeling_inputs: None,
            provider: None,
            model_name: None,
            include_summary: crate::defaults::yes(),
            include_keywords: crate::defaults::yes(),
            max_samples_per_cluster: crate::defaults::i64_10(),
            sample_text_max_length: crate::defaults::i64_200(),
            sample_selection_strategy: crate::defaults::sample_selection_strategy_nearest(),
            use_embedding_dedup: crate::defaults::yes(),
            embedding_similarity_threshold: crate::defaults::f64_0_8(),
            cache_ttl_seconds: crate::defaults::i64_604800(),
            labeling_context: None,
            custom_prompt: None,
            response_shape: None,
            parameters: Default::default(),
            candidate_labels: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SampleSelectionStrategy {
    #[default]
    #[serde(rename = "nearest")]
    Nearest,
    #[serde(rename = "representative")]
    Representative,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LLMLabelingInputInput {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub input_mappings: Vec<InputMapping>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LLMProvider {
    #[default]
    #[serde(rename = "openai")]
    Openai,
    #[serde(rename = "google")]
    Google,
    #[serde(rename = "anthropic")]
    Anthropic,
    #[serde(rename = "typesafe")]
    Typesafe,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceEnrichmentConfig {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_mappings: Vec<EnrichmentFieldMapping>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorBasedConfigInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub feature_uris: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractor_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_name: Option<String>,
    pub clustering_method: ClusteringAlgorithm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(max = 1000000)))]
    pub sample_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kmeans_parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dbscan_parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdbscan_parameters: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm_params: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_feature_strategy: Option<VectorBasedConfigInputMultiFeatureStrategy>,
    #[serde(default = "crate::defaults::yes")]
    pub normalize_features: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_weights: Option<IndexMap<String, f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub weight_learning_config: Option<WeightLearningConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_strategy: Option<VectorBasedConfigInputOutputStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_feature_method: Option<VectorBasedConfigInputEffectiveFeatureMethod>,
    #[serde(default)]
    pub enrich_source: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub face_cluster_merge: Option<FaceClusterMergeConfig>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preprocessing_steps: Vec<Value>,
    #[serde(default)]
    pub hierarchical: bool,
    #[serde(default = "crate::defaults::i64_3")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 5)))]
    pub max_hierarchy_depth: i64,
    #[serde(default = "crate::defaults::i64_2")]
    pub vis_n_components: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability: Option<LayoutStability>,
}

impl Default for VectorBasedConfigInput {
    fn default() -> Self {
        Self {
            feature_uri: None,
            feature_uris: None,
            feature_extractor_name: None,
            version: None,
            output_name: None,
            clustering_method: Default::default(),
            sample_size: None,
            kmeans_parameters: None,
            dbscan_parameters: None,
            hdbscan_parameters: None,
            algorithm_params: None,
            multi_feature_strategy: None,
            normalize_features: crate::defaults::yes(),
            feature_weights: None,
            weight_learning_config: None,
            output_strategy: None,
            effective_feature_method: None,
            enrich_source: false,
            face_cluster_merge: None,
            preprocessing_steps: Default::default(),
            hierarchical: false,
            max_hierarchy_depth: crate::defaults::i64_3(),
            vis_n_components: crate::defaults::i64_2(),
            layout_stability: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorBasedConfigInputMultiFeatureStrategy {
    #[default]
    #[serde(rename = "concatenate")]
    Concatenate,
    #[serde(rename = "independent")]
    Independent,
    #[serde(rename = "weighted")]
    Weighted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorBasedConfigInputOutputStrategy {
    #[default]
    #[serde(rename = "single")]
    Single,
    #[serde(rename = "per_feature")]
    PerFeature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum VectorBasedConfigInputEffectiveFeatureMethod {
    #[default]
    #[serde(rename = "mean")]
    Mean,
    #[serde(rename = "median")]
    Median,
    #[serde(rename = "medoid")]
    Medoid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LayoutStability {
    #[default]
    #[serde(rename = "none")]
    None,
    #[serde(rename = "transform")]
    Transform,
    #[serde(rename = "align")]
    Align,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WeightLearningConfig {
    #[serde(default = "crate::defaults::weight_learning_config_method_bayesian")]
    pub method: WeightLearningConfigMethod,
    #[serde(default = "crate::defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 5, max = 100)))]
    pub max_iterations: i64,
    #[serde(default = "crate::defaults::weight_learning_config_metric_silhouette")]
    pub metric: WeightLearningConfigMetric,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 100)))]
    pub sample_size: Option<i64>,
    #[serde(default = "crate::defaults::i64_42")]
    pub random_state: i64,
}

impl Default for WeightLearningConfig {
    fn default() -> Self {
        Self {
            method: crate::defaults::weight_learning_config_method_bayesian(),
            max_iterations: crate::defaults::i64_20(),
            metric: crate::defaults::weight_learning_config_metric_silhouette(),
            sample_size: None,
            random_state: crate::defaults::i64_42(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum WeightLearningConfigMethod {
    #[serde(rename = "grid_search")]
    GridSearch,
    #[default]
    #[serde(rename = "bayesian")]
    Bayesian,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum WeightLearningConfigMetric {
    #[default]
    #[serde(rename = "silhouette")]
    Silhouette,
    #[serde(rename = "davies_bouldin")]
    DaviesBouldin,
    #[serde(rename = "calinski_harabasz")]
    CalinskiHarabasz,
}
