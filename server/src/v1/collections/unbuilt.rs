//! Members of collections that this version does not act on: that is said, not passed over. What asks for nothing is taken.

use loupe_wire::{TieringOverride, Value};

use crate::error::{Result, Violation};

/// # Errors
/// 422, always.
pub fn refuse(member: &str, msg: &str) -> Result<()> {
    Err(Violation::body(&[member], "not_enabled", msg, Value::Null).into())
}

/// Of a collection, or of all those of a namespace.
///
/// # Errors
/// 422 for when collections are to be put away, or not to be, by themselves.
pub fn check_tiering(tiering: Option<&TieringOverride>) -> Result<()> {
    let asks = |one: &TieringOverride| {
        one.enabled == Some(true) || one.idle_days.is_some() || one.exempt.is_some()
    };
    match tiering.is_some_and(asks) {
        true => refuse(
            "tiering",
            "collections are not put away by themselves yet: PATCH …/lifecycle does it",
        ),
        false => Ok(()),
    }
}
