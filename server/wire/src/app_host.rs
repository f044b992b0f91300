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
}
