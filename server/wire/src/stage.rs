//! Wire types of the interface: stage.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Filter, LearnedFusionConfig, Object, SearchQueryInput, SortDirection, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocStageLimit {
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
    pub limit: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 10000)))]
    pub offset: i64,
}

impl Default for DocStageLimit {
    fn default() -> Self {
        Self {
            limit: crate::defaults::i64_10(),
            offset: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ContentInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ContentQueryInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentInput>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentQueryInput {
    pub document_ref: DocumentReference,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DocumentReference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FacetFieldConfig {
    pub key: String,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: i64,
    #[serde(default)]
    pub exact: bool,
}

impl Default for FacetFieldConfig {
    fn default() -> Self {
        Self {
            key: Default::default(),
            limit: crate::defaults::i64_10(),
            exact: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureSearchConfig {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub feature_uri: String,
    pub query: SearchQueryInput,
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 5000)))]
    pub top_k: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub min_score: Option<f64>,
    #[serde(default = "crate::defaults::f64_1_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub weight: f64,
    #[serde(default)]
    pub lexical: bool,
    #[serde(default)]
    pub optional: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmptyBehavior>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub query_preprocessing: Option<QueryPreprocessing>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collection_identifiers: Vec<String>,
}

impl Default for FeatureSearchConfig {
    fn default() -> Self {
        Self {
            feature_uri: Default::default(),
            query: Default::default(),
            top_k: crate::defaults::i64_100(),
            min_score: None,
            weight: crate::defaults::f64_1_0(),
            lexical: false,
            optional: false,
            on_empty: None,
            query_preprocessing: None,
            collection_identifiers: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureSearchGroupBy {
    pub field: String,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub max_per_group: i64,
    #[serde(default = "crate::defaults::i64_25")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub limit: i64,
    #[serde(default = "crate::defaults::feature_search_group_by_output_mode_all")]
    pub output_mode: FeatureSearchGroupByOutputMode,
}

impl Default for FeatureSearchGroupBy {
    fn default() -> Self {
        Self {
            field: Default::default(),
            max_per_group: crate::defaults::i64_1(),
            limit: crate::defaults::i64_25(),
            output_mode: crate::defaults::feature_search_group_by_output_mode_all(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FeatureSearchGroupByOutputMode {
    #[serde(rename = "first")]
    First,
    #[default]
    #[serde(rename = "all")]
    All,
    #[serde(rename = "flatten")]
    Flatten,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FusionStrategy {
    #[default]
    #[serde(rename = "rrf")]
    Rrf,
    #[serde(rename = "dbsf")]
    Dbsf,
    #[serde(rename = "weighted")]
    Weighted,
    #[serde(rename = "max")]
    Max,
    #[serde(rename = "learned")]
    Learned,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MultiContentQueryInput {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum OnEmptyBehavior {
    #[default]
    #[serde(rename = "error")]
    Error,
    #[serde(rename = "skip")]
    Skip,
    #[serde(rename = "random")]
    Random,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct QueryPreprocessing {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub params: Object,
    #[serde(default = "crate::defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 500)))]
    pub max_chunks: i64,
    #[serde(default = "crate::defaults::text_rrf")]
    pub aggregation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_field: Option<String>,
}

impl Default for QueryPreprocessing {
    fn default() -> Self {
        Self {
            feature_uri: None,
            params: Default::default(),
            max_chunks: crate::defaults::i64_20(),
            aggregation: crate::defaults::text_rrf(),
            dedup_field: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StageCacheBehavior {
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "disabled")]
    Disabled,
    #[serde(rename = "aggressive")]
    Aggressive,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TextQueryInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_task: Option<TextQueryInputEmbeddingTask>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TextQueryInputEmbeddingTask {
    #[default]
    #[serde(rename = "retrieval_query")]
    RetrievalQuery,
    #[serde(rename = "retrieval_document")]
    RetrievalDocument,
    #[serde(rename = "semantic_similarity")]
    SemanticSimilarity,
    #[serde(rename = "classification")]
    Classification,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorQueryInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageParamsAttributeFilter {
    #[serde(default = "crate::defaults::text_metadata_status")]
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub natural_language: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_hints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Filter>,
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub batch_size: i64,
    #[serde(default)]
    pub case_insensitive: bool,
}

impl Default for StageParamsAttributeFilter {
    fn default() -> Self {
        Self {
            field: crate::defaults::text_metadata_status(),
            operator: None,
            value: None,
            natural_language: None,
            field_hints: Default::default(),
            conditions: None,
            batch_size: crate::defaults::i64_100(),
            case_insensitive: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageParamsFeatureSearch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_behavior: Option<StageCacheBehavior>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub cache_ttl_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 10), nested))]
    pub searches: Vec<FeatureSearchConfig>,
    #[serde(default = "crate::defaults::i64_25")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 5000)))]
    pub final_top_k: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub hard_timeout_ms: Option<i64>,
    #[serde(default)]
    pub interactive: bool,
    #[serde(default)]
    pub degrade_retry: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<FusionStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub learning_config: Option<LearnedFusionConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub query_preprocessing: Option<QueryPreprocessing>,
    #[serde(default = "crate::defaults::yes")]
    pub auto_preprocess: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collection_identifiers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub facets: Vec<FacetFieldConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub group_by: Option<FeatureSearchGroupBy>,
}

impl Default for StageParamsFeatureSearch {
    fn default() -> Self {
        Self {
            cache_behavior: None,
            cache_ttl_seconds: None,
            searches: Default::default(),
            final_top_k: crate::defaults::i64_25(),
            hard_timeout_ms: None,
            interactive: false,
            degrade_retry: false,
            fusion: None,
            learning_config: None,
            query_preprocessing: None,
            auto_preprocess: crate::defaults::yes(),
            collection_identifiers: Default::default(),
            facets: Default::default(),
            group_by: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageParamsSortAttribute {
    #[serde(default = "crate::defaults::text_metadata_created_at")]
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<SortDirection>,
    #[serde(default = "crate::defaults::yes")]
    pub nulls_last: bool,
}

impl Default for StageParamsSortAttribute {
    fn default() -> Self {
        Self {
            field: crate::defaults::text_metadata_created_at(),
            direction: None,
            nulls_last: crate::defaults::yes(),
        }
    }
}
