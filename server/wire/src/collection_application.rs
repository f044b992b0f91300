//! Wire types of the interface: what a collection applies to its documents.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AlertExecutionMode, BudgetLimits, Filter, Object, StageConfigInput, StageConfigOutput, Value,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertApplicationConfig {
    pub alert_id: String,
    #[serde(default = "crate::defaults::alert_execution_mode_on_ingest")]
    pub execution_mode: AlertExecutionMode,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub input_mappings: Vec<AlertInputMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_phase: Option<PostProcessingPhase>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
}

impl Default for AlertApplicationConfig {
    fn default() -> Self {
        Self {
            alert_id: Default::default(),
            execution_mode: crate::defaults::alert_execution_mode_on_ingest(),
            input_mappings: Default::default(),
            execution_phase: None,
            priority: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlertInputMapping {
    pub input_key: String,
    pub source: InputMappingSource,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApplyTaxonomyRequest {
    pub taxonomy_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub scroll_filters: Option<Object>,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 100, max = 5000)))]
    pub batch_size: i64,
    #[serde(default = "crate::defaults::i64_4")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 20)))]
    pub parallelism: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub budget_limits: Option<BudgetLimits>,
}

impl Default for ApplyTaxonomyRequest {
    fn default() -> Self {
        Self {
            taxonomy_id: Default::default(),
            scroll_filters: None,
            batch_size: crate::defaults::i64_1000(),
            parallelism: crate::defaults::i64_4(),
            budget_limits: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApplyTaxonomyResponse {
    pub task_id: String,
    pub status: String,
    pub collection_id: String,
    pub taxonomy_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_documents: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterApplicationConfig {
    pub cluster_id: String,
    #[serde(default = "crate::defaults::yes")]
    pub auto_execute_on_batch: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_document_threshold: Option<i64>,
    #[serde(default = "crate::defaults::i64_3600")]
    pub cooldown_seconds: i64,
    #[serde(default = "crate::defaults::i64_2")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 3)))]
    pub execution_phase: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
}

impl Default for ClusterApplicationConfig {
    fn default() -> Self {
        Self {
            cluster_id: Default::default(),
            auto_execute_on_batch: crate::defaults::yes(),
            min_document_threshold: None,
            cooldown_seconds: crate::defaults::i64_3600(),
            execution_phase: crate::defaults::i64_2(),
            priority: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentInputMapping {
    pub input_key: String,
    pub source: InputMappingSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HierarchicalEnrichmentStyle {
    #[default]
    #[serde(rename = "full_chain")]
    FullChain,
    #[serde(rename = "best_match")]
    BestMatch,
    #[serde(rename = "combined")]
    Combined,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InputMappingSource {
    pub source_type: InputMappingSourceSourceType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum InputMappingSourceSourceType {
    #[default]
    #[serde(rename = "document_field")]
    DocumentField,
    #[serde(rename = "constant")]
    Constant,
    #[serde(rename = "source_blob")]
    SourceBlob,
}

/// One of 1, 2, 3, 4.
pub type PostProcessingPhase = i64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverEnrichmentConfig {
    pub retriever_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_phase: Option<PostProcessingPhase>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_filters: Option<Filter>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
}

impl Default for RetrieverEnrichmentConfig {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            input_mappings: Default::default(),
            write_back_fields: Default::default(),
            execution_phase: None,
            priority: crate::defaults::i64_0(),
            scroll_filters: None,
            enabled: crate::defaults::yes(),
        }
    }
}

/// What a collection's documents are made of in place of its source's own fields: the results of a retriever, or of stages, that
/// run for each object or document of the source. Every result goes through the collection's extractor, which without a word
/// about it is `passthrough_extractor`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverTransformConfigInput {
    /// A stored retriever, by id or name, that searches its own collections. Either this or `stages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    /// The version of the retriever that is meant. It never changes: with other stages it is another retriever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub retriever_version: Option<i64>,
    /// Stages that work on the object or document itself: it is the one row that they begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Option<Vec<StageConfigInput>>,
    /// Without any, the fields of the source that have the names of inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    /// Without any, a document has the fields of its result. With some, it has those of its source, and of the result only these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    /// The field, or fields, by which a result is the same as one of an earlier run, among those for the same object or document.
    /// Without any, the document that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id_field: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverTransformConfigOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub retriever_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1), nested))]
    pub stages: Vec<StageConfigOutput>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_mappings: Vec<EnrichmentInputMapping>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_back_fields: Vec<WriteBackFieldMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id_field: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyApplicationConfig {
    pub taxonomy_id: String,
    #[serde(default = "crate::defaults::taxonomy_execution_mode_materialize")]
    pub execution_mode: TaxonomyExecutionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_filters: Option<Filter>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 3)))]
    pub execution_phase: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 1000)))]
    pub priority: i64,
    #[serde(default = "crate::defaults::hierarchical_enrichment_style_combined")]
    pub hierarchical_enrichment_style: HierarchicalEnrichmentStyle,
}

impl Default for TaxonomyApplicationConfig {
    fn default() -> Self {
        Self {
            taxonomy_id: Default::default(),
            execution_mode: crate::defaults::taxonomy_execution_mode_materialize(),
            target_collection_id: None,
            scroll_filters: None,
            execution_phase: crate::defaults::i64_1(),
            priority: crate::defaults::i64_0(),
            hierarchical_enrichment_style: crate::defaults::hierarchical_enrichment_style_combined(
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TaxonomyExecutionMode {
    #[default]
    #[serde(rename = "materialize")]
    Materialize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WriteBackFieldMapping {
    pub source_field: String,
    pub target_field: String,
    #[serde(default = "crate::defaults::write_back_field_mapping_mode_first")]
    pub mode: WriteBackFieldMappingMode,
}

impl Default for WriteBackFieldMapping {
    fn default() -> Self {
        Self {
            source_field: Default::default(),
            target_field: Default::default(),
            mode: crate::defaults::write_back_field_mapping_mode_first(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum WriteBackFieldMappingMode {
    #[default]
    #[serde(rename = "first")]
    First,
    #[serde(rename = "all_as_array")]
    AllAsArray,
    #[serde(rename = "concat")]
    Concat,
}
