//! What other processes have journalled of documents. The document store may not have it yet: whoever changes a document changes
//! it as it was journalled last, and has it come behind nothing older.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use loupe_engine::store::{Document, Reach, WithVectors};
use loupe_wire::Value;

use super::{
    journal::{self, Entry},
    shows,
};
use crate::{app::App, args, db::Json, error::Result};

crate::sql! {
    const WAITING = "SELECT seq FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND applied = FALSE ORDER BY seq";
    const BEHIND = "SELECT seq FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND seq > $3 ORDER BY seq";
    const ENTRY = "SELECT data FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND seq = $3";
}

/// Entries that this process puts into the document store by itself, until they are marked or forgotten. Who has the turn of a
/// document finds nothing in them that the store does not have, unless others come over it.
#[derive(Debug, Default)]
pub struct Journalled {
    own: Mutex<HashSet<i64>>,
    is_shared: AtomicBool,
}

impl Journalled {
    /// Other processes write to the document store, too: from here on their entries are looked for. Who has it alone has nothing
    /// to look for among the entries of its own, which are thousands while it writes much.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, seq: i64) {
        if self.is_shared() {
            self.entries(|own| own.insert(seq));
        }
    }

    pub(super) fn forget(&self, seqs: &[i64]) {
        self.entries(|own| {
            for seq in seqs {
                own.remove(seq);
            }
        });
    }

    fn others(&self, rows: Vec<(i64,)>) -> Vec<i64> {
        let seqs = rows.into_iter().map(|(seq,)| seq);
        self.entries(|own| seqs.filter(|seq| !own.contains(seq)).collect())
    }

    fn entries<T>(&self, work: impl FnOnce(&mut HashSet<i64>) -> T) -> T {
        work(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Namespace and collection.
type Place<'p> = (&'p str, &'p str);

/// What others have journalled of a collection behind an entry, in its order.
pub(super) async fn behind(app: &App, place: Place<'_>, seq: i64) -> Result<Vec<(i64, Entry)>> {
    if !app.journalled.is_shared() {
        return Ok(Vec::new());
    }
    let rows = app.db().all(BEHIND, args![place.0, place.1, seq]).await?;
    read(app, place, rows).await
}

async fn read(app: &App, place: Place<'_>, rows: Vec<(i64,)>) -> Result<Vec<(i64, Entry)>> {
    let mut entries = Vec::new();
    for seq in app.journalled.others(rows) {
        let args = args![place.0, place.1, seq];
        let row: Option<(Json<Entry>,)> = app.db().one(ENTRY, args).await?;
        // One that was forgotten meanwhile is in the store.
        entries.extend(row.map(|(Json(entry),)| (seq, entry)));
    }
    Ok(entries)
}

/// The documents in reach as they were journalled last, for whoever has their turn and changes them.
///
/// # Errors
/// The store or the database does not answer.
pub(super) async fn current(
    app: &App,
    reach: &Reach,
    ids: &[String],
    vectors: WithVectors,
) -> Result<Vec<Document>> {
    // Before the store is asked, which has by then what does not wait any more.
    let waiting = waiting(app, reach, ids).await?;
    let mut found = app.store().get(reach, ids, vectors).await?;
    if waiting.is_empty() {
        return Ok(found);
    }
    found.retain(|one| !waiting.contains_key(&one.document_id));
    let is_seen = |one: &Document| {
        let internal = one.payload.get("_internal");
        let acl = internal.map_or(&Value::Null, |internal| &internal["_acl"]);
        let mut user = reach.principal.iter();
        user.all(|user| shows(acl, user))
    };
    found.extend(waiting.into_values().flatten().filter(is_seen));
    Ok(found)
}

/// Documents of these ids that others have journalled and may not have put into the store, as they were journalled last; nothing for
/// one that was removed. What came behind is in the store, or was: who puts an older one over it has yet to mend that.
async fn waiting(
    app: &App,
    reach: &Reach,
    ids: &[String],
) -> Result<HashMap<String, Option<Document>>> {
    let wanted: HashSet<&String> = ids.iter().collect();
    let mut waiting = HashMap::new();
    if !app.journalled.is_shared() {
        return Ok(waiting);
    }
    for collection_id in &reach.collection_ids {
        let place = (reach.namespace_id.as_str(), collection_id.as_str());
        let rows = app.db().all(WAITING, args![place.0, place.1]).await?;
        let entries = read(app, place, rows).await?;
        let named = entries.iter().flat_map(|(_, entry)| entry.ids());
        let named = named.filter(|id| wanted.contains(id)).cloned();
        let named: HashSet<String> = named.collect();
        let Some((first, _)) = entries.first().filter(|_| !named.is_empty()) else {
            continue;
        };
        for (_, _, _, Json(mut entry)) in journal::behind(app, place, first - 1).await? {
            entry.retain(|id| named.contains(id));
            waiting.extend(documents(entry));
        }
    }
    Ok(waiting)
}

/// What becomes of each document of an entry.
fn documents(entry: Entry) -> Vec<(String, Option<Document>)> {
    match entry {
        Entry::Upsert { documents, .. } => {
            let documents = documents.into_iter();
            documents
                .map(|one| (one.document_id.clone(), Some(one)))
                .collect()
        }
        Entry::Delete { document_ids, .. } => {
            document_ids.into_iter().map(|id| (id, None)).collect()
        }
    }
}
