//! What an app's own pages are told of people.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppEndUser {
    pub id: String,
    pub email: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// A word of the app's owner. Of others nobody is told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `false` where nobody has proven that the address is the person's; absent where it is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_verified: Option<bool>,
    /// What this session began with: `password`, `passkey`, `google`, `github` or `oidc`. Of others nobody is told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in_with: Option<String>,
}
