//! Wire types of the interface: secrets. Values go in and never come out.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateSecretRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub secret_name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 65536)))]
    pub secret_value: String,
}

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateSecretRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 65536)))]
    pub secret_value: String,
}

// A value that is printed for debugging ends in a log.
impl std::fmt::Debug for CreateSecretRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CreateSecretRequest")
            .field("secret_name", &self.secret_name)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UpdateSecretRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UpdateSecretRequest")
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SecretResponse {
    pub secret_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SecretsListResponse {
    /// Names; values are never told.
    pub secrets: Vec<String>,
    pub count: i64,
}
