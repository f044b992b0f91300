//! Single documents written through the API survive a power cut before the document store has flushed them: they are
//! journalled in the resource database first and re-applied on open. Re-applying is harmless, for a write is the whole
//! document under its own id.

use std::time::{Duration, Instant};

use loupe_engine::store::{CollectionSpec, Document, Reach, Selection, StoreError};
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    args,
    db::{Arg, Json, Tx},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    // Sweeps over all namespaces: the whole journal is re-applied and trimmed by the process that opens the store.
    const ALL = "SELECT seq, data FROM document_journal ORDER BY seq";
    const OF_COLLECTION = "SELECT seq, data FROM document_journal WHERE namespace_id = $1 AND collection_id = $2 ORDER BY seq";
    const TRIM = "DELETE FROM document_journal WHERE seq = $1";
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

/// Writes the entry in the transaction of its event.
pub(super) async fn insert(tx: &mut Tx, seq: i64, entry: &Entry, now: i64) -> Result<()> {
    let (namespace, collection, operation) = match entry {
        Entry::Upsert { collection, .. } => (
            &collection.namespace_id,
            &collection.collection_id,
            "upsert",
        ),
        Entry::Delete {
            namespace_id,
            collection_id,
            ..
        } => (namespace_id, collection_id, "delete"),
    };
    tx.run(
        INSERT,
        args![seq, namespace, collection, operation, now, Arg::json(entry)],
    )
    .await?;
    Ok(())
}

/// Applies an entry that was just written to the document store. One that is refused for good is taken back: a start would
/// find it refused again.
pub(super) async fn apply(app: &App, seq: i64, entry: Entry) -> Result<()> {
    let applied = put(app, entry).await;
    if applied.is_ok() || matches!(applied, Err(StoreError::Invalid(_))) {
        app.journal_applied(seq);
    }
    Ok(applied?)
}

async fn put(app: &App, entry: Entry) -> std::result::Result<(), StoreError> {
    match entry {
        Entry::Upsert {
            collection,
            documents,
        } => app.store().upsert(&collection, documents).await?,
        Entry::Delete {
            namespace_id,
            collection_id,
            document_ids,
        } => {
            let reach = Reach {
                namespace_id,
                collection_ids: vec![collection_id],
                principal: None,
            };
            app.store()
                .delete(&reach, Selection::Ids(document_ids))
                .await?;
        }
    }
    Ok(())
}

/// Applies what a process before this one may have left between the journal and the flush. One entry that cannot be
/// applied does not keep the server from starting: what the store refuses for good was never acknowledged and is dropped,
/// what it fails at is kept for the next start.
///
/// # Errors
/// The document store does not answer or has no room; the journal is kept.
pub async fn recover(app: &App) -> Result<()> {
    let rows: Vec<(i64, Json<Entry>)> = app.db().all(ALL, vec![]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    tracing::info!(
        entries = rows.len(),
        "re-applying documents written before the last stop"
    );
    for (seq, entry) in rows {
        match put(app, entry.0).await {
            Ok(()) => app.journal_applied(seq),
            Err(StoreError::Invalid(why)) => {
                tracing::error!(seq, why, "a document of the journal is refused and dropped");
                app.journal_applied(seq);
            }
            Err(StoreError::Internal(why)) => {
                tracing::error!(seq, why, "a document of the journal is not written yet");
            }
            Err(error) => return Err(error.into()),
        }
    }
    trim(app).await
}

/// How long other processes have for what they journalled: they forget what they applied every two seconds.
const SETTLED: Duration = Duration::from_secs(10);

/// Waits until everything that was journalled of a collection is in the document store. What is left then was journalled by
/// a process that died, and is applied here. Only for a collection that nothing is written to any more.
///
/// # Errors
/// The document store or the database does not answer.
pub async fn settle(app: &App, namespace_id: &str, collection_id: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        trim(app).await?;
        let args = args![namespace_id, collection_id];
        let left: Vec<(i64, Json<Entry>)> = app.db().all(OF_COLLECTION, args).await?;
        if left.is_empty() {
            return Ok(());
        }
        if started.elapsed() < SETTLED {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        for (seq, entry) in left {
            apply(app, seq, entry.0).await?;
        }
    }
}

/// Flushes the document store and forgets what is safely in it.
///
/// # Errors
/// The flush or the database fails; nothing is forgotten.
pub async fn trim(app: &App) -> Result<()> {
    let applied = app.take_applied();
    if applied.is_empty() {
        return Ok(());
    }
    app.store().flush().await?;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for seq in applied {
                    tx.run(TRIM, args![seq]).await?;
                }
                Ok(())
            })
        })
        .await
}
