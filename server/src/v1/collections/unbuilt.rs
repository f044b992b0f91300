//! Members of collections that this version does not act on: that is said, not passed over. What asks for nothing is taken.

use loupe_wire::{CreateCollectionRequest, TieringOverride, Value};

use crate::error::{Result, Violation};

/// # Errors
/// 422, always.
pub fn refuse(member: &str, msg: &str) -> Result<()> {
    Err(Violation::body(&[member], "not_enabled", msg, Value::Null).into())
}

/// # Errors
/// 422 for what a new collection would not do.
pub(super) fn check_new(request: &CreateCollectionRequest) -> Result<()> {
    match request.retriever_transform {
        Some(_) => refuse(
            "retriever_transform",
            "objects are not transformed by a retriever yet: name a feature_extractor",
        ),
        None => Ok(()),
    }
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
