//! Removing documents, with what was made of them.

use std::collections::BTreeMap;

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{NamespaceOperation, Object, Value};

use super::{
    journal::Entry,
    may, others,
    related::{Below, made_of},
    sight::Sight,
    turns::Turn,
    writing::{Beside, told_events, write_with},
};
use crate::{
    app::App,
    auth::{Delete, Scope},
    error::Result,
};

/// Removes those of these documents that the caller may remove; answers which.
///
/// # Errors
/// A single one that the caller may not remove; the collection is not active; a store or the database fails.
pub async fn delete(
    app: &App,
    scope: &Scope<Delete>,
    collection: &str,
    document_ids: Vec<String>,
) -> Result<Vec<String>> {
    let operation = NamespaceOperation::DeleteData;
    let (collection, sight) = super::open(app, scope, collection, operation).await?;
    // Asked before the turn, which is one of all that goes, and within it.
    let below = made_of(app, &scope.namespace_id, &document_ids).await?;
    let under = below.values().flatten().map(|one| &one.document_id);
    let turn = app.writers.turn(document_ids.iter().chain(under)).await;
    let found = removable(app, scope, &sight, &document_ids).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let removed: Vec<String> = found.iter().map(|one| one.document_id.clone()).collect();
    // What was made of them goes first: a process that dies in between leaves nothing without its source.
    for (below, made) in made_of(app, &scope.namespace_id, &removed).await? {
        remove(app, scope, below, made, &turn).await?;
    }
    let own = found
        .iter()
        .map(|one| Below::of(&scope.namespace_id, one))
        .collect();
    remove(app, scope, collection.id.clone(), own, &turn).await?;
    // Their files go once nothing shows them.
    app.work.notify_one();
    Ok(removed)
}

/// Those of these documents that the caller may remove.
async fn removable(
    app: &App,
    scope: &Scope<Delete>,
    sight: &Sight,
    document_ids: &[String],
) -> Result<Vec<Document>> {
    let reach = &sight.reach;
    let mut found = others::current(app, reach, document_ids, WithVectors::No).await?;
    // A single one that the scopes do not cover is refused; of many those go that they cover.
    if let ([_], [one]) = (document_ids, found.as_slice()) {
        sight.check(&scope.caller, one)?;
    }
    let operation = NamespaceOperation::DeleteData;
    found.retain(|one| {
        sight.check(&scope.caller, one).is_ok() && may(&scope.caller, one, operation)
    });
    Ok(found)
}

async fn remove(
    app: &App,
    scope: &Scope<Delete>,
    collection_id: String,
    removed: Vec<Below>,
    turn: &Turn,
) -> Result<()> {
    let mut beside = Beside {
        turn: Some(turn.clone()),
        ..Beside::default()
    };
    let mut ids = Vec::with_capacity(removed.len());
    for one in removed {
        // Nobody can ask later who could see a document that is gone.
        let acl = one.acl.map(|acl| (one.document_id.clone(), acl));
        beside.readers.extend(acl);
        beside.left.extend(one.left);
        ids.push(one.document_id);
    }
    let kind = removal_event(&ids);
    let entry = Entry::Delete {
        namespace_id: scope.namespace_id.clone(),
        collection_id,
        document_ids: ids.clone(),
    };
    let written = write_with(app, scope, entry, &[(kind, &ids)], beside).await;
    written.map(drop)
}

fn removal_event(ids: &[String]) -> &'static str {
    match ids.len() {
        1 => "document.deleted",
        _ => "documents.deleted.batch",
    }
}

/// The events that tell of documents which are removed with what they were made of, by collection.
pub fn removal_events(namespace_id: &str, documents: &[Document]) -> Vec<(&'static str, Value)> {
    let mut removed: BTreeMap<&str, (Vec<String>, Object)> = BTreeMap::new();
    for one in documents {
        let (ids, readers) = removed.entry(&one.collection_id).or_default();
        let internal = one.payload.get("_internal");
        // Nobody can ask later who could see a document that is gone.
        if let Some(acl) = internal.and_then(|internal| internal.get("_acl")) {
            readers.insert(one.document_id.clone(), acl.clone());
        }
        ids.push(one.document_id.clone());
    }
    let told = removed
        .into_iter()
        .flat_map(|(collection, (ids, readers))| {
            let told = [(removal_event(&ids), ids.as_slice())];
            told_events((namespace_id, collection), &told, &readers)
        });
    told.collect()
}
