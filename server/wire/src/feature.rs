//! Wire types of the interface: feature.

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureSearchQuery {
    #[serde(default = "crate::defaults::text_text")]
    pub input_mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 20000)))]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 4000)))]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Value>,
}

impl Default for FeatureSearchQuery {
    fn default() -> Self {
        Self {
            input_mode: crate::defaults::text_text(),
            text: None,
            url: None,
            image: None,
            vector: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeatureSearchRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub collection_identifiers: Option<Vec<String>>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub query: FeatureSearchQuery,
    #[serde(default = "crate::defaults::text_loupe_text_extractor_v1_embedding")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 500)))]
    pub feature_uri: String,
    #[serde(default = "crate::defaults::i64_25")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub top_k: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
}

impl Default for FeatureSearchRequest {
    fn default() -> Self {
        Self {
            collection_identifiers: None,
            query: Default::default(),
            feature_uri: crate::defaults::text_loupe_text_extractor_v1_embedding(),
            top_k: crate::defaults::i64_25(),
            filters: None,
        }
    }
}
