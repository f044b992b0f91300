//! Wire types of the interface: sign-in of apps.

use serde::{Deserialize, Serialize};

use crate::Object;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuthConfigInput {
    #[serde(default = "crate::defaults::auth_config_input_mode_public")]
    pub mode: AuthConfigInputMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clerk_org_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 10)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clerk_allowed_providers: Vec<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 8, max = 128)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_idp_metadata_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_sp_entity_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_acs_url: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_issuer: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 300)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_client_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 200)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_client_secret_name: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 20)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oidc_scopes: Vec<String>,
    /// Where the keys lie that sign the tokens of the mode `jwt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_jwks_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_audience: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_issuer: Option<String>,
    /// The keys of the mode `api_key`, each a `name` and a `key`; without a `key` it is the one that had the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub api_keys: Vec<Object>,
}

impl Default for AuthConfigInput {
    fn default() -> Self {
        Self {
            mode: crate::defaults::auth_config_input_mode_public(),
            clerk_org_id: None,
            clerk_allowed_providers: Default::default(),
            password: None,
            password_hash: None,
            saml_idp_metadata_url: None,
            saml_sp_entity_id: None,
            saml_acs_url: None,
            oidc_issuer: None,
            oidc_client_id: None,
            oidc_client_secret_name: None,
            oidc_scopes: Default::default(),
            jwt_jwks_url: None,
            jwt_audience: None,
            jwt_issuer: None,
            api_keys: Default::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AuthConfigInputMode {
    #[default]
    #[serde(rename = "public")]
    Public,
    #[serde(rename = "clerk")]
    Clerk,
    #[serde(rename = "password")]
    Password,
    #[serde(rename = "api_key")]
    ApiKey,
    #[serde(rename = "jwt")]
    Jwt,
    #[serde(rename = "sso_oidc")]
    SsoOidc,
    #[serde(rename = "sso_saml")]
    SsoSaml,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AuthConfigOutput {
    #[serde(default = "crate::defaults::auth_config_output_mode_public")]
    pub mode: AuthConfigOutputMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clerk_org_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clerk_allowed_providers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_idp_metadata_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_sp_entity_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml_acs_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_client_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_client_secret_name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oidc_scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_jwks_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_audience: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt_issuer: Option<String>,
    /// The names of the keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub api_keys: Vec<Object>,
}

impl Default for AuthConfigOutput {
    fn default() -> Self {
        Self {
            mode: crate::defaults::auth_config_output_mode_public(),
            clerk_org_id: None,
            clerk_allowed_providers: Default::default(),
            password_hash: None,
            saml_idp_metadata_url: None,
            saml_sp_entity_id: None,
            saml_acs_url: None,
            oidc_issuer: None,
            oidc_client_id: None,
            oidc_client_secret_name: None,
            oidc_scopes: Default::default(),
            jwt_jwks_url: None,
            jwt_audience: None,
            jwt_issuer: None,
            api_keys: Default::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AuthConfigOutputMode {
    #[default]
    #[serde(rename = "public")]
    Public,
    #[serde(rename = "clerk")]
    Clerk,
    #[serde(rename = "password")]
    Password,
    #[serde(rename = "api_key")]
    ApiKey,
    #[serde(rename = "jwt")]
    Jwt,
    #[serde(rename = "sso_oidc")]
    SsoOidc,
    #[serde(rename = "sso_saml")]
    SsoSaml,
}
