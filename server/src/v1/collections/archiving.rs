//! Documents of a collection on their way into one file, and back. Each step may be repeated: a file is whole before the
//! search engine forgets, and the search engine holds all before the file goes.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bytes::Bytes;
use futures::{Stream, stream};
use loupe_engine::store::{CollectionSpec, Document, ListQuery, Reach, WithVectors};
use loupe_wire::{CollectionResponse, LifecycleState, reading};
use serde::Deserialize;
use tokio::io::AsyncBufReadExt;

use super::{COLLECTIONS, lifecycle, spec, store};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{self, Claim, text},
    v1::{documents, removal, tasks::name_of},
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
    /// The file that is brought back: it goes last, by this name alone.
    #[serde(default)]
    file: Option<String>,
}

impl Work {
    fn of(claim: &Claim) -> Result<Self> {
        Self::deserialize(&claim.work).map_err(ApiError::internal)
    }
}

/// Where the file is: with what else belongs to the collection's documents. Each attempt has its own, so that a worker that
/// wakes up after it lost its lease writes over nobody's.
fn key(claim: &Claim, collection_id: &str, attempt: i64) -> String {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let task_id = &claim.task_id;
    format!("{namespace_id}/documents/{collection_id}/archive/{task_id}-{attempt}.ndjson")
}

/// Runs one move; safe to repeat.
///
/// # Errors
/// A store or the database fails, or documents came while they were put away.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::of(claim)?;
    let moved = go(app, claim, &work).await;
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = COLLECTIONS.find(app.db(), namespace_id, &work.collection_id);
    match found.await {
        // Gone with its namespace meanwhile: what was on its way goes too.
        Err(error) if error.is_not_found() => {
            removal::remove_collection(app, namespace_id, &work.collection_id).await
        }
        _ => moved,
    }
}

async fn go(app: &App, claim: &Claim, work: &Work) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = COLLECTIONS.find(app.db(), namespace_id, &work.collection_id);
    let collection = found.await?.data.0;
    let away = Away {
        app,
        claim,
        collection: &collection,
        reach: Reach {
            namespace_id: namespace_id.to_owned(),
            collection_ids: vec![work.collection_id.clone()],
            principal: None,
        },
    };
    match lifecycle::is_away(&collection) && work.to == lifecycle::state(&collection) {
        true => away.put().await,
        false => away.bring_back(work).await,
    }
}

/// A collection that could not be put away stays what it was, without a file.
///
/// # Errors
/// The database or the blob store does not answer.
pub async fn give_up(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::of(claim)?;
    let collection_id = work.collection_id.clone();
    let changed = change(app, claim, collection_id, move |collection| {
        let back = collection.s3_vector_index.is_none();
        if back {
            collection.lifecycle_state = name_of(work.from);
        }
        back
    });
    match changed.await {
        Ok(true) => {
            let id = text(claim, "collection_id");
            remove_forgotten(app, claim, id).await?;
            forget_attempts(app, claim, id, claim.attempt).await
        }
        Ok(false) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what was made of objects that went while the collection was on its way: nothing more is noted once it is back.
async fn remove_forgotten(app: &App, claim: &Claim, id: &str) -> Result<()> {
    let reach = Reach {
        namespace_id: claim.namespace_id.clone().unwrap_or_default(),
        collection_ids: vec![id.to_owned()],
        principal: None,
    };
    let gone = store::forgotten(app.db(), &reach.namespace_id, id).await?;
    removal::remove_from(app, &claim.org_id, &reach, &gone).await?;
    let id = id.to_owned();
    app.db()
        .write(move |tx: &mut Tx| {
            Box::pin(async move { store::end_forgotten(tx, &reach.namespace_id, &id).await })
        })
        .await
}

/// Removes the files of the first attempts of a move: the collection names none of them.
async fn forget_attempts(app: &App, claim: &Claim, id: &str, attempts: i64) -> Result<()> {
    for attempt in 1..=attempts {
        app.blobs().delete(&key(claim, id, attempt)).await?;
    }
    Ok(())
}

/// The row, held against every other change, as long as the claim is held.
async fn held(tx: &mut Tx, claim: &Claim, collection_id: &str) -> Result<CollectionResponse> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let collection = COLLECTIONS.hold(tx, namespace_id, collection_id).await?;
    if !jobs::holds(tx, claim).await? {
        return Err(lost());
    }
    Ok(collection.data.0)
}

fn lost() -> ApiError {
    ApiError::conflict("", "the lease of this move was lost")
}

/// Changes the row, as long as the claim is held; false where `edit` changed nothing.
async fn change(
    app: &App,
    claim: &Claim,
    collection_id: String,
    edit: impl FnOnce(&mut CollectionResponse) -> bool + Send + 'static,
) -> Result<bool> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    app.db()
        .write(move |tx: &mut Tx| {
            Box::pin(async move {
                let mut collection = held(tx, &claim, &collection_id).await?;
                if !edit(&mut collection) {
                    return Ok(false);
                }
                write(tx, &claim, collection, now).await?;
                Ok(true)
            })
        })
        .await
}

async fn write(
    tx: &mut Tx,
    claim: &Claim,
    mut collection: CollectionResponse,
    now: i64,
) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    collection.last_lifecycle_transition = Some(clock::time(now));
    lifecycle::write(tx, &claim.org_id, namespace_id, &collection, now).await
}

/// One collection being moved.
struct Away<'a> {
    app: &'a App,
    claim: &'a Claim,
    collection: &'a CollectionResponse,
    reach: Reach,
}

impl Away<'_> {
    fn id(&self) -> String {
        self.collection.collection_id.clone().unwrap_or_default()
    }

    async fn put(&self) -> Result<()> {
        if self.collection.s3_vector_index.is_none() {
            // Writes that were let in before the state changed, by whichever process.
            if !documents::settle(self.app, &self.reach.namespace_id, &self.id()).await? {
                let message =
                    "documents that were written before are not in the document store yet";
                return Err(ApiError::unavailable("", message));
            }
            self.file().await?;
        }
        self.check_filed().await?;
        let (store, namespace_id) = (self.app.store(), &self.reach.namespace_id);
        store.drop_collection(namespace_id, &self.id()).await?;
        store.flush().await?;
        // What was written through the API before must not come back with the next start.
        documents::trim(self.app).await
    }

    /// Whether the row, as it is now, names a file that is there: nothing is dropped but what lies in it.
    async fn check_filed(&self) -> Result<()> {
        let (app, namespace_id) = (self.app, &self.reach.namespace_id);
        let now = COLLECTIONS.find(app.db(), namespace_id, &self.id()).await?;
        let filed = match now.s3_vector_index.as_deref() {
            Some(key) if lifecycle::is_away(&now) => app.blobs().head(key).await?.is_some(),
            _ => false,
        };
        match jobs::is_held(app.db(), self.claim).await? {
            true if filed => Ok(()),
            true => Err(ApiError::unavailable(
                "",
                "the file of the collection is not there",
            )),
            false => Err(lost()),
        }
    }

    /// Writes the file and notes it once it is whole.
    async fn file(&self) -> Result<()> {
        let (app, counted) = (self.app, Arc::new(AtomicI64::new(0)));
        app.blobs()
            .check_room(app.config().limits.free_disk_bytes)?;
        let key = key(self.claim, &self.id(), self.claim.attempt);
        let pieces = Box::pin(self.lines(counted.clone()));
        let kept = app
            .blobs()
            .put_stream(&key, pieces, u64::MAX, |_, _| Ok(()));
        kept.await?;
        let count = counted.load(Ordering::Relaxed);
        let here = app.store().count(&self.reach, None).await?;
        if i64::try_from(here).ok() != Some(count) {
            let message = "documents came or went while they were put away";
            return Err(ApiError::unavailable("", message));
        }
        change(app, self.claim, self.id(), move |collection| {
            collection.s3_vector_index = Some(key);
            collection.document_count = Some(count);
            true
        })
        .await?;
        forget_attempts(app, self.claim, &self.id(), self.claim.attempt - 1).await
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
    async fn bring_back(&self, work: &Work) -> Result<()> {
        let filed = self.collection.s3_vector_index.as_ref();
        if lifecycle::is_away(self.collection) {
            if let Some(key) = filed {
                self.read(key).await?;
            }
            while !self.here_again(work.to).await? {}
        }
        match work.file.as_ref().or(filed) {
            Some(key) => self.app.blobs().delete(key).await,
            None => Ok(()),
        }
    }

    /// Removes what was made of objects that went meanwhile, and tells that the collection is there; false where more of
    /// them went in between.
    async fn here_again(&self, to: LifecycleState) -> Result<bool> {
        let (app, namespace_id) = (self.app, self.reach.namespace_id.clone());
        let gone = store::forgotten(app.db(), &namespace_id, &self.id()).await?;
        removal::remove_from(app, &self.claim.org_id, &self.reach, &gone).await?;
        let (claim, id, now) = (self.claim.clone(), self.id(), app.clock().micros());
        let removed = gone.len();
        app.db()
            .write(move |tx: &mut Tx| {
                Box::pin(async move {
                    let mut collection = held(tx, &claim, &id).await?;
                    // Whoever removes objects notes them under the same lock.
                    if store::count_forgotten(tx, &namespace_id, &id).await? != removed {
                        return Ok(false);
                    }
                    store::end_forgotten(tx, &namespace_id, &id).await?;
                    collection.lifecycle_state = name_of(to);
                    collection.s3_vector_index = None;
                    write(tx, &claim, collection, now).await?;
                    Ok(true)
                })
            })
            .await
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
                // Files that were written before have none.
                if document.keywords.is_none() {
                    document.keywords = Some(documents::keywords(&document.payload));
                }
                step.push(document);
            }
            if step.len() == PAGE || (is_last && !step.is_empty()) {
                let documents = std::mem::take(&mut step);
                self.put_back(&spec, documents).await?;
            }
            if is_last {
                return Ok(self.app.store().flush().await?);
            }
        }
    }

    /// Writes documents of the file as long as this move has the collection: once it is here again, they are their callers'.
    async fn put_back(&self, spec: &CollectionSpec, documents: Vec<Document>) -> Result<()> {
        let ids = documents.iter().map(|one| &one.document_id);
        let _turn = self.app.writers.turn(ids).await;
        if !jobs::is_held(self.app.db(), self.claim).await? {
            return Err(lost());
        }
        Ok(self.app.store().upsert(spec, documents).await?)
    }
}
