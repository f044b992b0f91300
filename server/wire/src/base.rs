//! The scalars that the other types are made of.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize, de::Error as _};

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

/// Reads a moment as RFC 3339 writes it. One without a zone is of UTC.
///
/// # Errors
/// It is no moment.
pub fn moment<'de, D>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let zoned = DateTime::parse_from_rfc3339(&text).map(|at| at.to_utc());
    let at = zoned.or_else(|_| text.parse::<NaiveDateTime>().map(|at| at.and_utc()));
    let none = |_| D::Error::custom("this is no moment such as 2026-01-31T12:00:00Z");
    at.map(Some).map_err(none)
}

/// As [`moment`], where `null` means something else than absence.
///
/// # Errors
/// As [`moment`].
pub fn sent_moment<'de, D>(deserializer: D) -> Result<Option<Option<DateTime<Utc>>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    moment(deserializer).map(Some)
}
