//! Documents of a collection on their way into one file, and back. Each step may be repeated: a file is whole before the
//! search engine forgets, and the search engine holds all before the file goes.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bytes::Bytes;
use futures::{Stream, stream};
use loupe_engine::store::{Document, ListQuery, Reach, WithVectors};
use loupe_wire::{CollectionResponse, LifecycleState, reading};
use serde::Deserialize;
use tokio::io::AsyncBufReadExt;

use super::{COLLECTIONS, lifecycle, spec};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{self, Claim},
    v1::{documents, tasks::name_of},
};

/// The queue's word for a move.
pub const MOVE: &str = "move_collection";

/// Documents read and written at once.
const PAGE: usize = 200;

#[derive(Debug, Deserialize)]
struct Work {
    collection_id: String,
    from: LifecycleState,
    to: LifecycleState,
}

impl Work {
    fn of(claim: &Claim) -> Result<Self> {
        Self::deserialize(&claim.work).map_err(ApiError::internal)
    }
}

/// Where the file is: with what else belongs to the collection's documents.
fn key(namespace_id: &str, collection_id: &str) -> String {
    format!("{namespace_id}/documents/{collection_id}/archive.ndjson")
}

/// Runs one move; safe to repeat.
///
/// # Errors
/// A store or the database fails, or documents came while they were put away.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::of(claim)?;
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = COLLECTIONS.find(app.db(), namespace_id, &work.collection_id);
    let collection = match found.await {
        Ok(record) => record.data.0,
        // Deleted meanwhile: nothing to move.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    let away = Away {
        app,
        claim,
        collection: &collection,
        reach: Reach {
            namespace_id: namespace_id.to_owned(),
            collection_ids: vec![work.collection_id.clone()],
            principal: None,
        },
        key: key(namespace_id, &work.collection_id),
    };
    match lifecycle::is_away(&collection) && work.to == lifecycle::state(&collection) {
        true => away.put().await,
        false => away.bring_back(work.to).await,
    }
}

/// A collection that could not be put away stays what it was.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::of(claim)?;
    change(app, claim, work.collection_id.clone(), move |collection| {
        if collection.s3_vector_index.is_none() {
            collection.lifecycle_state = name_of(work.from);
        }
    })
    .await
}

/// Changes the row, as long as the claim is held.
async fn change(
    app: &App,
    claim: &Claim,
    collection_id: String,
    edit: impl FnOnce(&mut CollectionResponse) + Send + 'static,
) -> Result<()> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    app.db()
        .write(move |tx: &mut Tx| {
            Box::pin(async move {
                if !jobs::holds(tx, &claim).await? {
                    return Err(ApiError::conflict("", "the lease of this move was lost"));
                }
                let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
                let found = COLLECTIONS.find_in(tx, namespace_id, &collection_id).await;
                let mut collection = match found {
                    Ok(record) => record.data.0,
                    Err(error) if error.is_not_found() => return Ok(()),
                    Err(error) => return Err(error),
                };
                edit(&mut collection);
                collection.last_lifecycle_transition = Some(clock::time(now));
                lifecycle::write(tx, &claim.org_id, namespace_id, &collection, now).await
            })
        })
        .await
}

/// One collection being moved.
struct Away<'a> {
    app: &'a App,
    claim: &'a Claim,
    collection: &'a CollectionResponse,
    reach: Reach,
    key: String,
}

impl Away<'_> {
    fn id(&self) -> String {
        self.collection.collection_id.clone().unwrap_or_default()
    }

    async fn put(&self) -> Result<()> {
        if self.collection.s3_vector_index.is_none() {
            self.file().await?;
        }
        let (store, namespace_id) = (self.app.store(), &self.reach.namespace_id);
        store.drop_collection(namespace_id, &self.id()).await?;
        store.flush().await?;
        // What was written through the API before must not come back with the next start.
        documents::trim(self.app).await
    }

    /// Writes the file and notes it once it is whole.
    async fn file(&self) -> Result<()> {
        let (app, counted) = (self.app, Arc::new(AtomicI64::new(0)));
        app.blobs()
            .check_room(app.config().limits.free_disk_bytes)?;
        let pieces = Box::pin(self.lines(counted.clone()));
        let kept = app
            .blobs()
            .put_stream(&self.key, pieces, u64::MAX, |_, _| Ok(()));
        kept.await?;
        let count = counted.load(Ordering::Relaxed);
        let here = app.store().count(&self.reach, None).await?;
        if i64::try_from(here).ok() != Some(count) {
            let message = "documents came or went while they were put away";
            return Err(ApiError::unavailable("", message));
        }
        let key = self.key.clone();
        change(app, self.claim, self.id(), move |collection| {
            collection.s3_vector_index = Some(key);
            collection.document_count = Some(count);
        })
        .await
    }

    fn lines(&self, counted: Arc<AtomicI64>) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, reach) = (self.app.clone(), self.reach.clone());
        let query = ListQuery {
            limit: PAGE,
            vectors: WithVectors::Yes,
            ..ListQuery::default()
        };
        stream::try_unfold(Some(query), move |query| {
            let (app, reach, counted) = (app.clone(), reach.clone(), counted.clone());
            async move {
                let Some(query) = query else { return Ok(None) };
                let page = app.store().list(&reach, query.clone()).await?;
                let mut text = Vec::new();
                for document in &page.documents {
                    serde_json::to_writer(&mut text, document).map_err(ApiError::internal)?;
                    text.push(b'\n');
                }
                let count = i64::try_from(page.documents.len()).unwrap_or(0);
                counted.fetch_add(count, Ordering::Relaxed);
                let next = page.next.map(|cursor| ListQuery {
                    cursor: Some(cursor),
                    ..query
                });
                Ok(Some((Bytes::from(text), next)))
            }
        })
    }

    /// The search engine holds every document before the collection is told to be there, and the file goes last.
    async fn bring_back(&self, to: LifecycleState) -> Result<()> {
        if lifecycle::is_away(self.collection) {
            if let Some(key) = &self.collection.s3_vector_index {
                self.read(key).await?;
            }
            change(self.app, self.claim, self.id(), move |collection| {
                collection.lifecycle_state = name_of(to);
                collection.s3_vector_index = None;
            })
            .await?;
        }
        self.app.blobs().delete(&self.key).await
    }

    async fn read(&self, key: &str) -> Result<()> {
        let spec = spec(self.app, &self.reach.namespace_id, self.collection);
        let mut lines = self.app.blobs().reader(key).await?.lines();
        let mut step: Vec<Document> = Vec::with_capacity(PAGE);
        loop {
            let line = lines.next_line().await.map_err(ApiError::internal)?;
            let is_last = line.is_none();
            if let Some(line) = line {
                let mut document: Document =
                    reading::from_str(&line).map_err(ApiError::internal)?;
                document.keywords = Some(documents::keywords(&document.payload));
                step.push(document);
            }
            if step.len() == PAGE || (is_last && !step.is_empty()) {
                let documents = std::mem::take(&mut step);
                self.app.store().upsert(&spec, documents).await?;
            }
            if is_last {
                return Ok(self.app.store().flush().await?);
            }
        }
    }
}
