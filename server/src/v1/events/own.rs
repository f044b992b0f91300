//! The feed as an end user may read it: events of documents that the user sees, naming no other document.

use std::collections::{BTreeMap, BTreeSet};

use loupe_engine::store::{Reach, WithVectors};
use loupe_wire::{Object, Value};

use super::store::{self, EventRow};
use crate::{app::App, error::Result, v1::documents};

/// Member of a deletion's payload: who could see the documents that are gone. It never leaves the server.
pub const READERS: &str = "_readers";

/// Events read at a time; events of one request, whose page may then be short although more follow.
const STEP: i64 = 200;
const MOST: i64 = 2000;

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub org_id: &'a str,
    pub principal: &'a str,
    pub after: i64,
    pub namespace: &'a str,
    pub kind: &'a str,
    pub limit: i64,
}

/// A page of events, the place that the next one starts behind, and whether there may be a next one.
pub(super) async fn list(app: &App, wanted: Wanted<'_>) -> Result<(Vec<EventRow>, i64, bool)> {
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let (mut page, mut place, mut read) = (Vec::new(), wanted.after, 0);
    while read < MOST {
        let rows = store::list(
            app.db(),
            wanted.org_id,
            place,
            wanted.namespace,
            wanted.kind,
            STEP,
        )
        .await?;
        let count = i64::try_from(rows.len()).unwrap_or(STEP);
        let last = rows.last().map_or(place, |row| row.seq);
        for row in narrowed(app, wanted.principal, rows).await? {
            if page.len() == limit {
                return Ok((page, place, true));
            }
            place = row.seq;
            page.push(row);
        }
        place = last;
        read += count;
        if count < STEP {
            return Ok((page, place, false));
        }
    }
    Ok((page, place, true))
}

/// The rows that name documents which the principal sees, without the others.
async fn narrowed(app: &App, principal: &str, rows: Vec<EventRow>) -> Result<Vec<EventRow>> {
    // Namespace and collections, and the documents that are asked about in them.
    let mut places: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for row in &rows {
        let collection = row.payload.get("collection_id").and_then(Value::as_str);
        let (Some(namespace), Some(collection)) = (&row.namespace_id, collection) else {
            continue;
        };
        let (collections, documents) = places.entry(namespace.clone()).or_default();
        documents.extend(named(&row.payload).map(ToOwned::to_owned));
        collections.insert(collection.to_owned());
    }
    let mut seen = BTreeSet::new();
    for (namespace_id, (collections, ids)) in places {
        let ids: Vec<String> = ids.into_iter().collect();
        if ids.is_empty() {
            continue;
        }
        let reach = Reach {
            namespace_id,
            collection_ids: collections.into_iter().collect(),
            principal: Some(principal.to_owned()),
        };
        let found = app.store().get(&reach, &ids, WithVectors::No).await?;
        seen.extend(found.into_iter().map(|document| document.document_id));
    }
    let narrow = |mut row: EventRow| narrow(principal, &seen, &mut row.payload.0).then_some(row);
    Ok(rows.into_iter().filter_map(narrow).collect())
}

/// The documents that an event names, in either of its forms.
fn named(payload: &Object) -> impl Iterator<Item = &str> {
    let one = payload.get("document_id").into_iter();
    let many = payload.get("document_ids").and_then(Value::as_array);
    one.chain(many.into_iter().flatten())
        .filter_map(Value::as_str)
}

/// Leaves the documents that the principal sees, or saw before they were deleted; whether any is left.
fn narrow(principal: &str, seen: &BTreeSet<String>, payload: &mut Object) -> bool {
    let readers = payload.remove(READERS).unwrap_or_default();
    let sees = |id: &Value| {
        id.as_str()
            .is_some_and(|id| seen.contains(id) || documents::shows(&readers[id], principal))
    };
    if let Some(one) = payload.get("document_id") {
        return sees(one);
    }
    let Some(Value::Array(mut ids)) = payload.remove("document_ids") else {
        return false;
    };
    ids.retain(sees);
    let left = !ids.is_empty();
    payload.insert("count".into(), ids.len().into());
    payload.insert("document_ids".into(), ids.into());
    left
}
