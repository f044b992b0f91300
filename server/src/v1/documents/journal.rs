//! Single documents written through the API survive a power cut before the document store has flushed them: they are
//! journalled in the resource database first and re-applied on open. Re-applying is harmless, for a write is the whole
//! document under its own id.
//!
//! Entries of a collection are in the order in which they were acknowledged. One that the document store has is forgotten once
//! nothing older waits: whoever re-applies what was left of a process that died finds beside it what was written since, and
//! writes that again behind it.

use std::{
    collections::HashSet,
    sync::LazyLock,
    time::{Duration, Instant},
};

use loupe_engine::store::{CollectionSpec, Document, StoreError};
use serde::{Deserialize, Serialize};

use super::applying::put;
use crate::{
    app::App,
    args,
    db::{Arg, Json, Tx},
    error::Result,
    id, jobs,
    v1::{annotations::signal, collections::COLLECTIONS},
};

crate::sql! {
    const INSERT = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (seq) DO NOTHING";
    const NEWEST = "SELECT CAST(COALESCE(MAX(seq), 0) AS BIGINT) FROM document_journal WHERE namespace_id = $1 AND collection_id = $2";
    const WAITING = "SELECT CAST(COUNT(*) AS BIGINT) FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND applied = FALSE AND seq <= $3";
    const PLACES = "SELECT DISTINCT collection_id FROM document_journal WHERE namespace_id = $1 AND applied = FALSE";
    const BEHIND = "SELECT seq, created_at, applied, data FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND seq > $3 ORDER BY seq";
    const DELETE = "DELETE FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 AND seq = $3";
    const FORGET = "DELETE FROM document_journal WHERE namespace_id = $1 AND collection_id = $2";
    const TRIM = "DELETE FROM document_journal WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM document_journal older WHERE older.namespace_id = document_journal.namespace_id AND older.collection_id = document_journal.collection_id AND older.applied = FALSE AND older.seq < document_journal.seq)";
    const MARK = "UPDATE document_journal SET applied = TRUE WHERE seq = $1";
    // Sweeps over all namespaces: what a process left is found by whoever looks.
    const LEFT = "SELECT DISTINCT namespace_id, collection_id FROM document_journal WHERE applied = FALSE AND created_at <= $1";
    const KEPT = "SELECT CAST(COUNT(*) AS BIGINT) FROM document_journal WHERE applied = TRUE";
    const SWEEP = "DELETE FROM document_journal WHERE applied = TRUE AND NOT EXISTS (SELECT 1 FROM document_journal older WHERE older.namespace_id = document_journal.namespace_id AND older.collection_id = document_journal.collection_id AND older.applied = FALSE AND older.seq < document_journal.seq)";
}

/// One write, as it is applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Entry {
    Upsert {
        collection: CollectionSpec,
        documents: Vec<Document>,
    },
    Delete {
        namespace_id: String,
        collection_id: String,
        document_ids: Vec<String>,
    },
}

impl Entry {
    /// Namespace and collection.
    pub(super) fn place(&self) -> (&str, &str) {
        match self {
            Self::Upsert { collection, .. } => {
                (&collection.namespace_id, &collection.collection_id)
            }
            Self::Delete {
                namespace_id,
                collection_id,
                ..
            } => (namespace_id, collection_id),
        }
    }

    pub(super) fn ids(&self) -> Box<dyn Iterator<Item = &String> + '_> {
        match self {
            Self::Upsert { documents, .. } => {
                Box::new(documents.iter().map(|one| &one.document_id))
            }
            Self::Delete { document_ids, .. } => Box::new(document_ids.iter()),
        }
    }

    /// Leaves out the documents that are not wanted.
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(&String) -> bool) {
        match self {
            Self::Upsert { documents, .. } => documents.retain(|one| wanted(&one.document_id)),
            Self::Delete { document_ids, .. } => document_ids.retain(wanted),
        }
    }
}

/// Writes the entry in the transaction of its event, whose lock is the organization's: what was written before is there to
/// be seen, and comes before it whatever the clocks of processes say. Answers its number.
pub(super) async fn insert(tx: &mut Tx, seq: i64, entry: &Entry, now: i64) -> Result<i64> {
    let (namespace, collection) = entry.place();
    let operation = match entry {
        Entry::Upsert { .. } => "upsert",
        Entry::Delete { .. } => "delete",
    };
    let newest = tx.number(NEWEST, args![namespace, collection]).await?;
    let mut seq = seq.max(newest + 1);
    loop {
        let data = Arg::json(entry);
        let args = args![seq, namespace, collection, operation, now, data];
        if tx.run(INSERT, args).await? > 0 {
            return Ok(seq);
        }
        // Another collection's entry has the number.
        seq += 1;
    }
}

/// How long processes have for what they journalled, in microseconds: they apply it at once.
const SETTLED: i64 = 10_000_000;

/// How long the document store may fail at an entry before it is given up, and how many may wait behind it.
const HOPELESS: i64 = 3_600_000_000;
const MOST_BEHIND: usize = 10_000;

/// Seconds in which one process alone re-applies what was left of a collection.
const LEASE: u64 = 60;

/// Applies what a process before this one may have left between the journal and the flush. One entry that cannot be
/// applied does not keep the server from starting: what the store refuses for good was never acknowledged and is dropped,
/// what it fails at is kept and tried again.
///
/// # Errors
/// The document store does not answer or has no room; the journal is kept.
pub async fn recover(app: &App) -> Result<()> {
    // A cluster has other processes, that may be at what they journalled just now.
    if !app.config().qdrant_url.is_empty() {
        return reapply(app).await;
    }
    let left: Vec<Place> = app.db().all(LEFT, args![i64::MAX]).await?;
    for place in left {
        Replay::new(app, &place, i64::MAX, None).run().await?;
    }
    Ok(())
}

/// Applies what was journalled so long ago that its process must have died, its caller have gone away, or the store have failed
/// at it. One collection at which that fails keeps no other from it.
///
/// # Errors
/// As of [`recover`].
pub async fn reapply(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let left: Vec<Place> = app.db().all(LEFT, args![now - SETTLED]).await?;
    let mut outcome = Ok(());
    for place in left {
        outcome = replay(app, &place, now - SETTLED).await.and(outcome);
    }
    // What waited behind something older, whoever applied it.
    if app.db().number(KEPT, vec![]).await? > 0 {
        app.db()
            .write(|tx| Box::pin(async move { tx.run(SWEEP, vec![]).await.map(drop) }))
            .await?;
    }
    outcome
}

/// Re-applies what waits in a collection since before a time, unless another process is about it.
async fn replay(app: &App, place: &Place, until: i64) -> Result<()> {
    let lease = (format!("journal:{}", place.1), id::new("journal_"));
    if !jobs::hold_lease(app, &lease.0, &lease.1, LEASE).await? {
        return Ok(());
    }
    let replay = Replay::new(app, place, until, Some(&lease));
    let replayed = replay.run().await;
    jobs::drop_lease(app, &lease.0, &lease.1).await?;
    replayed
}

/// Namespace and collection.
type Place = (String, String);

/// Number, time, whether the store has it, and the write.
pub(super) type Row = (i64, i64, bool, Json<Entry>);

/// What a collection's journal has behind an entry, in its order.
pub(super) async fn behind(
    app: &App,
    (namespace_id, collection_id): (&str, &str),
    seq: i64,
) -> Result<Vec<Row>> {
    let args = args![namespace_id, collection_id, seq];
    app.db().all(BEHIND, args).await
}

/// What was left of one collection, being applied in its order.
struct Replay<'r> {
    app: &'r App,
    place: &'r Place,
    /// What was journalled later is its process's own matter.
    until: i64,
    /// Name and owner of the lease that keeps other processes from it.
    lease: Option<&'r (String, String)>,
    /// Documents that were written anew: what is journalled of them meanwhile is written again behind that.
    ids: HashSet<String>,
    /// Entries that need no other try.
    done: Vec<i64>,
}

impl<'r> Replay<'r> {
    fn new(
        app: &'r App,
        place: &'r Place,
        until: i64,
        lease: Option<&'r (String, String)>,
    ) -> Self {
        Self {
            app,
            place,
            until,
            lease,
            ids: HashSet::new(),
            done: Vec::new(),
        }
    }

    async fn run(mut self) -> Result<()> {
        let (namespace_id, collection_id) = self.place;
        match COLLECTIONS
            .find(self.app.db(), namespace_id, collection_id)
            .await
        {
            // What was written to a collection that is gone is gone.
            Err(error) if error.is_not_found() => return self.forget().await,
            found => drop(found?),
        }
        let mut behind = self.put_left().await?;
        while let Some(after) = behind {
            behind = self.put_since(after).await?;
        }
        self.end().await
    }

    async fn behind(&self, seq: i64) -> Result<Vec<Row>> {
        behind(self.app, (&self.place.0, &self.place.1), seq).await
    }

    /// Writes what was left, but of no document of which the store has a newer write, or will have it from its own process.
    /// Answers the last entry that was seen; none when nothing was written.
    async fn put_left(&mut self) -> Result<Option<i64>> {
        let rows = self.behind(0).await?;
        let Some(last) = rows.last().map(|row| row.0) else {
            return Ok(None);
        };
        let crowded = rows.len() > MOST_BEHIND;
        let (mut newer, mut coming) = (HashSet::new(), HashSet::new());
        let mut left = Vec::new();
        for (seq, created_at, is_applied, Json(mut entry)) in rows.into_iter().rev() {
            if is_applied {
                newer.extend(entry.ids().cloned());
            } else if created_at > self.until {
                coming.extend(entry.ids().cloned());
            } else {
                // Its process may yet be refused: the older write waits until that is known.
                let waits = entry.ids().any(|id| coming.contains(id));
                entry.retain(|id| !newer.contains(id) && !coming.contains(id));
                left.push((seq, created_at, waits, entry));
            }
        }
        for (seq, created_at, waits, entry) in left.into_iter().rev() {
            let ids: Vec<String> = entry.ids().cloned().collect();
            let hopeless = crowded || is_hopeless(self.app, created_at);
            if !self.holds().await? || !put_again(self.app, seq, entry, hopeless).await? {
                // What comes behind it waits with it.
                break;
            }
            self.ids.extend(ids);
            if !waits {
                self.done.push(seq);
            }
        }
        Ok((!self.ids.is_empty()).then_some(last))
    }

    /// Writes again what was journalled meanwhile of the documents that were written; none when that was nothing.
    async fn put_since(&mut self, after: i64) -> Result<Option<i64>> {
        let rows = self.behind(after).await?;
        let last = rows.last().map(|row| row.0);
        let mut wrote = false;
        for (seq, _, _, Json(mut entry)) in rows {
            entry.retain(|id| self.ids.contains(id));
            if entry.ids().next().is_none() {
                continue;
            }
            if !self.holds().await? || !put_again(self.app, seq, entry, false).await? {
                // What was written may lie over it: all of that is tried again.
                self.done.clear();
                return Ok(None);
            }
            wrote = true;
        }
        Ok(last.filter(|_| wrote))
    }

    /// Whether no other process can have begun.
    async fn holds(&self) -> Result<bool> {
        match self.lease {
            Some((name, owner)) => jobs::hold_lease(self.app, name, owner, LEASE).await,
            None => Ok(true),
        }
    }

    async fn end(self) -> Result<()> {
        if self.done.is_empty() {
            return Ok(());
        }
        let (place, done) = (self.place.clone(), self.done);
        let ids: Vec<String> = self.ids.into_iter().collect();
        let (entries, now) = (done.len(), self.app.clock().micros());
        tracing::info!(
            entries,
            collection_id = place.1,
            "documents written before a stop are applied"
        );
        self.app.store().flush().await?;
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    // Annotations were looked at before their documents came or went.
                    signal::note_documents(tx, &place.0, &ids, now).await?;
                    for seq in done {
                        tx.run(DELETE, args![&place.0, &place.1, seq]).await?;
                    }
                    tx.run(SWEEP, vec![]).await.map(drop)
                })
            })
            .await
    }

    async fn forget(self) -> Result<()> {
        let place = self.place.clone();
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move { tx.run(FORGET, args![&place.0, &place.1]).await.map(drop) })
            })
            .await
    }
}

/// Whether this process has tried an entry for as long as it is tried.
fn is_hopeless(app: &App, created_at: i64) -> bool {
    static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    let old = created_at < app.clock().micros() - HOPELESS;
    old && SINCE.elapsed().as_micros() > HOPELESS.unsigned_abs().into()
}

/// Whether the entry needs no other try.
async fn put_again(app: &App, seq: i64, entry: Entry, hopeless: bool) -> Result<bool> {
    match put(app, entry).await {
        Ok(()) => Ok(true),
        Err(StoreError::Invalid(why)) => {
            tracing::error!(seq, why, "a document of the journal is refused and dropped");
            Ok(true)
        }
        Err(StoreError::Internal(why)) if hopeless => {
            tracing::error!(
                seq,
                why,
                "a document of the journal cannot be written and is dropped"
            );
            Ok(true)
        }
        Err(StoreError::Internal(why)) => {
            tracing::error!(seq, why, "a document of the journal is not written yet");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits until everything that was journalled of a collection before is in the document store, so that it does not come over
/// what is written to it now. What is left after a while was journalled by a process that died, and is applied here. False when
/// the store fails at some of it.
///
/// # Errors
/// The document store or the database does not answer.
pub async fn settle(app: &App, namespace_id: &str, collection_id: &str) -> Result<bool> {
    let place = (namespace_id.to_owned(), collection_id.to_owned());
    let began = app.clock().micros();
    let newest = app
        .db()
        .number(NEWEST, args![namespace_id, collection_id])
        .await?;
    let waiting = async || {
        let args = args![namespace_id, collection_id, newest];
        app.db().number(WAITING, args).await
    };
    if newest == 0 {
        return Ok(true);
    }
    while app.clock().micros() < began + SETTLED {
        trim(app).await?;
        if waiting().await? == 0 {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    replay(app, &place, began).await?;
    Ok(waiting().await? == 0)
}

/// As [`settle`], for every collection of a namespace.
///
/// # Errors
/// As there.
pub async fn settle_all(app: &App, namespace_id: &str) -> Result<()> {
    let waiting: Vec<(String,)> = app.db().all(PLACES, args![namespace_id]).await?;
    for (collection_id,) in waiting {
        settle(app, namespace_id, &collection_id).await?;
    }
    Ok(())
}

/// Flushes the document store and forgets what is safely in it.
///
/// # Errors
/// The flush or the database fails; what was not forgotten is re-applied later.
pub async fn trim(app: &App) -> Result<()> {
    let mut applied = app.take_applied();
    if applied.is_empty() {
        return Ok(());
    }
    applied.sort_unstable();
    let marked = mark(app, applied.clone()).await;
    // What could not be marked is anybody's from here on.
    app.journalled.forget(&applied);
    marked
}

async fn mark(app: &App, applied: Vec<i64>) -> Result<()> {
    app.store().flush().await?;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for seq in applied {
                    // What waits behind something older goes with it.
                    if tx.run(TRIM, args![seq]).await? == 0 {
                        tx.run(MARK, args![seq]).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}
