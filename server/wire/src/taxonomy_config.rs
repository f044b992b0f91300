//! Wire types of the interface: what a taxonomy is made of.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::InputMapping;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CovariateConfig {
    pub field_path: String,
    pub covariate_type: CovariateType,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binning_strategy: Option<CovariateConfigBinningStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_method: Option<CovariateConfigClusteringMethod>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 2, max = 100)))]
    pub n_clusters: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CovariateConfigBinningStrategy {
    #[default]
    #[serde(rename = "quartiles")]
    Quartiles,
    #[serde(rename = "deciles")]
    Deciles,
    #[serde(rename = "custom")]
    Custom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CovariateConfigClusteringMethod {
    #[default]
    #[serde(rename = "kmeans")]
    Kmeans,
    #[serde(rename = "hdbscan")]
    Hdbscan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CovariateType {
    #[default]
    #[serde(rename = "categorical")]
    Categorical,
    #[serde(rename = "numeric")]
    Numeric,
    #[serde(rename = "embedding")]
    Embedding,
    #[serde(rename = "cluster_id")]
    ClusterId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentField {
    pub field_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_field: Option<String>,
    #[serde(default = "crate::defaults::enrichment_merge_mode_replace")]
    pub merge_mode: EnrichmentMergeMode,
}

impl Default for EnrichmentField {
    fn default() -> Self {
        Self {
            field_path: Default::default(),
            target_field: None,
            merge_mode: crate::defaults::enrichment_merge_mode_replace(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum EnrichmentMergeMode {
    #[default]
    #[serde(rename = "replace")]
    Replace,
    #[serde(rename = "append")]
    Append,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FlatTaxonomyConfig {
    pub retriever_id: String,
    pub input_mappings: Vec<InputMapping>,
    pub source_collection: SourceCollection,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 50)))]
    pub top_k: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub step_analytics: Option<StepAnalyticsConfig>,
}

impl Default for FlatTaxonomyConfig {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            input_mappings: Default::default(),
            source_collection: Default::default(),
            top_k: crate::defaults::i64_1(),
            step_analytics: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HierarchicalNode {
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P7)))]
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P7)))]
    pub parent_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keywords: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P8)))]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment_fields: Option<Vec<EnrichmentField>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Vec<InputMapping>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HierarchicalTaxonomyConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mappings: Option<Vec<InputMapping>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_strategy: Option<HierarchyInferenceStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_collections: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_provider: Option<HierarchicalTaxonomyConfigLlmProvider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_prompt_template: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub llm_sample_size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ids: Option<Vec<String>>,
    #[serde(default = "crate::defaults::f64_0_7")]
    pub cluster_overlap_threshold: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub hierarchical_nodes: Option<Vec<HierarchicalNode>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub step_analytics: Option<StepAnalyticsConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_field: Option<String>,
    #[serde(default = "crate::defaults::text_slash")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub path_separator: String,
}

impl Default for HierarchicalTaxonomyConfig {
    fn default() -> Self {
        Self {
            retriever_id: None,
            input_mappings: None,
            inference_strategy: None,
            inference_collections: None,
            llm_provider: None,
            llm_model: None,
            llm_prompt_template: None,
            llm_sample_size: crate::defaults::i64_0(),
            cluster_ids: None,
            cluster_overlap_threshold: crate::defaults::f64_0_7(),
            hierarchical_nodes: None,
            step_analytics: None,
            path_field: None,
            path_separator: crate::defaults::text_slash(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HierarchicalTaxonomyConfigLlmProvider {
    #[default]
    #[serde(rename = "openai_chat_v1")]
    OpenaiChatV1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HierarchyInferenceStrategy {
    #[default]
    #[serde(rename = "schema")]
    Schema,
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "llm")]
    Llm,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceCollection {
    pub collection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment_fields: Option<Vec<EnrichmentField>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StepAnalyticsConfig {
    pub timestamp_field: String,
    pub sequence_id_field: String,
    #[serde(default = "crate::defaults::step_key_source_assignment_label")]
    pub step_key_source: StepKeySource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_key_field_path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 20), nested))]
    pub covariates: Vec<CovariateConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 365)))]
    pub max_sequence_duration_days: Option<i64>,
}

impl Default for StepAnalyticsConfig {
    fn default() -> Self {
        Self {
            timestamp_field: Default::default(),
            sequence_id_field: Default::default(),
            step_key_source: crate::defaults::step_key_source_assignment_label(),
            step_key_field_path: None,
            covariates: Default::default(),
            max_sequence_duration_days: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StepKeySource {
    #[default]
    #[serde(rename = "assignment_label")]
    AssignmentLabel,
    #[serde(rename = "assignment_node_id")]
    AssignmentNodeId,
    #[serde(rename = "field_path")]
    FieldPath,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "taxonomy_type")]
pub enum TaxonomyConfig {
    #[serde(rename = "flat")]
    Flat(FlatTaxonomyConfig),
    #[serde(rename = "hierarchical")]
    Hierarchical(HierarchicalTaxonomyConfig),
}

impl Default for TaxonomyConfig {
    fn default() -> Self {
        Self::Flat(Default::default())
    }
}
