//! Wire types of the interface: who may enter a namespace.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Object;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceAdminClaim {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceAuthorizationConfig {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default = "crate::defaults::namespace_authorization_config_provider_openfga")]
    pub provider: NamespaceAuthorizationConfigProvider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token_secret_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token: Option<String>,
    #[serde(default = "crate::defaults::text_document")]
    pub object_type: String,
    #[serde(default = "crate::defaults::text_viewer")]
    pub relation: String,
    #[serde(default = "crate::defaults::text_user")]
    pub user_type: String,
    #[serde(default = "crate::defaults::namespace_authorization_config_mode_auto")]
    pub mode: NamespaceAuthorizationConfigMode,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100000)))]
    pub list_objects_max: i64,
    #[serde(default = "crate::defaults::i64_2")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10)))]
    pub over_fetch_factor: i64,
    #[serde(default = "crate::defaults::i64_30")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 3600)))]
    pub cache_ttl_seconds: i64,
}

impl Default for NamespaceAuthorizationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            provider: crate::defaults::namespace_authorization_config_provider_openfga(),
            api_url: None,
            store_id: None,
            model_id: None,
            api_token_secret_ref: None,
            api_token: None,
            object_type: crate::defaults::text_document(),
            relation: crate::defaults::text_viewer(),
            user_type: crate::defaults::text_user(),
            mode: crate::defaults::namespace_authorization_config_mode_auto(),
            list_objects_max: crate::defaults::i64_1000(),
            over_fetch_factor: crate::defaults::i64_2(),
            cache_ttl_seconds: crate::defaults::i64_30(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceAuthorizationConfigProvider {
    #[default]
    #[serde(rename = "openfga")]
    Openfga,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceAuthorizationConfigMode {
    #[serde(rename = "push")]
    Push,
    #[serde(rename = "pull_list_objects")]
    PullListObjects,
    #[serde(rename = "pull_batch_check")]
    PullBatchCheck,
    #[default]
    #[serde(rename = "auto")]
    Auto,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceClaimFilter {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceGroupClaim {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 64)))]
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceTrustedIssuer {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub issuer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub jwks_url: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub jwks: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub algorithms: Option<Vec<String>>,
    #[serde(default = "crate::defaults::text_sub")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub principal_claim: String,
    #[serde(default = "crate::defaults::text_jwt")]
    #[cfg_attr(feature = "schema", validate(length(max = 64)))]
    pub principal_prefix: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub claim_filters: Vec<NamespaceClaimFilter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrievers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_writable_collections: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 8), nested))]
    pub group_claims: Vec<NamespaceGroupClaim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub admin_claim: Option<NamespaceAdminClaim>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
}

impl Default for NamespaceTrustedIssuer {
    fn default() -> Self {
        Self {
            issuer: Default::default(),
            jwks_url: None,
            jwks: Default::default(),
            audience: Default::default(),
            algorithms: None,
            principal_claim: crate::defaults::text_sub(),
            principal_prefix: crate::defaults::text_jwt(),
            claim_filters: Default::default(),
            retrievers: Default::default(),
            collections: Default::default(),
            owner_writable_collections: Default::default(),
            allowed_origins: Default::default(),
            group_claims: Default::default(),
            admin_claim: None,
            enabled: crate::defaults::yes(),
        }
    }
}
