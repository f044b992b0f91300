//! The scalars that the other types are made of.

use serde::{Deserialize, Serialize};

pub use serde_json::Value;

/// A JSON object with its members in the order sent.
pub type Object = serde_json::Map<String, Value>;

/// A moment, RFC 3339 in UTC on the wire.
pub type Timestamp = chrono::DateTime<chrono::Utc>;

/// A filter tree: `AND`, `OR`, `NOT` nodes over leaves `{field, operator, value}`, or the shorthand `{field: value}`.
/// Parsed and evaluated by the engine, in one place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
#[serde(transparent)]
pub struct Filter(pub Value);

/// Reads a member whose `null` means something else than its absence: absent is `None`, `null` is `Some(None)`.
///
/// # Errors
/// As the member's own type.
pub fn sent<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
