//! Collections that are only read: those that people made, and the signal of annotations, which is nobody's to change.

use std::sync::Arc;

use loupe_wire::{CollectionResponse, NamespaceOperation, ResourceType};

use super::{COLLECTIONS, known};
use crate::{
    app::App,
    auth::{Caller, Level, Scope},
    db::Record,
    error::{ApiError, Result},
    v1::annotations::signal,
};

/// As [`known`], or the signal.
pub async fn readable<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<Arc<Record<CollectionResponse>>> {
    match known(app, scope, identifier, NamespaceOperation::ReadData).await {
        Err(error) if error.is_not_found() => signal_of(&scope.caller, identifier, error),
        found => found,
    }
}

/// The signal, if that is what is meant and the caller may read what it mirrors.
pub(super) fn signal_of(
    caller: &Caller,
    identifier: &str,
    unknown: ApiError,
) -> Result<Arc<Record<CollectionResponse>>> {
    let found = signal::named(identifier).ok_or(unknown)?;
    allow_reading(caller, &found.id)?;
    Ok(found)
}

/// Whether the caller may read a collection by its id: the signal is covered by the scope of what it mirrors.
///
/// # Errors
/// 403 if not.
pub fn allow_reading(caller: &Caller, id: &str) -> Result<()> {
    let (kind, id) = match id {
        signal::SIGNAL => (ResourceType::Annotation, "ann_"),
        id => (ResourceType::Collection, id),
    };
    caller.allow(kind, id, NamespaceOperation::ReadData)
}

/// As [`super::resolve`]; the signal may be among them.
pub async fn searched(
    app: &App,
    namespace_id: &str,
    identifiers: &[String],
) -> Result<Vec<Arc<Record<CollectionResponse>>>> {
    let mut found = Vec::with_capacity(identifiers.len());
    for identifier in identifiers {
        let one = COLLECTIONS.known(app.db(), namespace_id, identifier).await;
        found.push(match one {
            Err(error) if error.is_not_found() => signal::named(identifier).ok_or(error)?,
            one => one?,
        });
    }
    Ok(found)
}
