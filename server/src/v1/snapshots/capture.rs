//! Taking: rows and documents as lines of JSON, each file with its SHA-256. Documents are read page by page, so memory stays
//! flat; what is written meanwhile may be in a snapshot or not, a document is never half in it.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use indexmap::IndexMap;
use loupe_engine::store::{Document, ListQuery, Reach, WithVectors};
use loupe_wire::{
    ArtifactDigest, CollectionResponse, ObjectFrontier, ObjectResponse, SnapshotFrontier,
    SnapshotManifest, SnapshotModel, SnapshotStatus, SnapshotType, reading,
};
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, Lines};

use super::{SNAPSHOTS, change, prefix};
use crate::{
    app::App,
    args, blob,
    db::{Json, Record},
    error::{ApiError, Result},
    jobs::{Claim, text},
    v1::{
        buckets::BUCKETS,
        collections::{self, COLLECTIONS, lifecycle},
        namespaces::NAMESPACES,
        notifications::{self, Failure},
        objects::blobs,
        retrievers::RETRIEVERS,
        tasks::name_of,
        taxonomies::TAXONOMIES,
    },
};

/// The queue's word for a snapshot that is to be taken.
pub const CAPTURE: &str = "snapshot_capture";

/// Documents and objects read at once.
const PAGE: usize = 200;
/// Where the objects of a bucket begin: moment and id, the newest first.
const LATEST: (i64, String) = (i64::MAX, String::new());
/// Bytes of lines that are written at once.
const PIECE: usize = 1 << 20;

crate::sql! {
    // In the order of the index that leads to them.
    const OBJECTS = "SELECT object_id, bucket_id, key_prefix, unique_key, content_hash, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $3 AND (created_at < $3 OR object_id > $4) ORDER BY created_at DESC, object_id LIMIT $5";
}

crate::row! {
    /// An object with its columns, as a line has them.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct ObjectRow {
        pub object_id: String,
        pub bucket_id: String,
        pub key_prefix: Option<String>,
        pub unique_key: Option<String>,
        pub content_hash: String,
        pub status: String,
        pub size_bytes: i64,
        pub data: Json<ObjectResponse>,
    }
}

/// One snapshot being taken.
struct Capture<'a> {
    app: &'a App,
    snapshot: SnapshotModel,
    digests: IndexMap<String, ArtifactDigest>,
    /// Files of objects and documents that were copied, and their bytes.
    copied: Arc<(AtomicI64, AtomicI64)>,
}

pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let owner = claim.namespace_id.as_deref().unwrap_or_default();
    let found = SNAPSHOTS.find(app.db(), owner, text(claim, "snapshot_id"));
    let snapshot = match found.await {
        Ok(record) => record.data.0,
        // Removed before it was taken, or while whoever died of it took it.
        Err(error) if error.is_not_found() => return forget(app, claim, owner).await,
        Err(error) => return Err(error),
    };
    let began = change(app, claim, owner, |snapshot| {
        snapshot.status = Some(SnapshotStatus::InProgress);
    });
    if !began.await? {
        return forget(app, claim, owner).await;
    }
    let mut capture = Capture {
        app,
        snapshot,
        digests: IndexMap::new(),
        copied: Arc::default(),
    };
    let manifest = capture.take(&claim.org_id).await?;
    let at = app.clock().now();
    let kept = end(app, claim, owner, move |snapshot| {
        snapshot.status = Some(SnapshotStatus::Completed);
        snapshot.completed_at = Some(at);
        snapshot.manifest = Some(manifest);
    });
    kept.await.map(drop)
}

pub(super) async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let owner = claim.namespace_id.as_deref().unwrap_or_default();
    let told = reason.to_owned();
    let kept = end(app, claim, owner, move |snapshot| {
        snapshot.status = Some(SnapshotStatus::Failed);
        snapshot.error = Some(told);
    });
    if !kept.await? {
        return Ok(());
    }
    let id = text(claim, "snapshot_id");
    let namespace = NAMESPACES.find(app.db(), &claim.org_id, owner).await;
    let name = namespace.map_or_else(|_| owner.to_owned(), |found| found.name);
    let failure = Failure {
        title: format!("A snapshot of {name} could not be taken"),
        content: format!("{reason}. Take another one when the cause is gone."),
        about: json!({ "namespace_id": owner, "snapshot_id": id }),
    };
    notifications::tell_failure(app, claim, failure).await
}

/// Writes down how it ended; false where nothing was left to write it on. What was written for a snapshot that was removed
/// meanwhile, or with its namespace, goes: whoever removed it did not see all of it.
async fn end(
    app: &App,
    claim: &Claim,
    owner: &str,
    edit: impl FnOnce(&mut SnapshotModel) + Send + 'static,
) -> Result<bool> {
    if !change(app, claim, owner, edit).await? {
        forget(app, claim, owner).await?;
        return Ok(false);
    }
    match NAMESPACES.find(app.db(), &claim.org_id, owner).await {
        Err(error) if error.is_not_found() => {
            forget(app, claim, owner).await?;
            Ok(false)
        }
        found => found.map(|_| true),
    }
}

/// Removes the files of a snapshot that is gone.
async fn forget(app: &App, claim: &Claim, owner: &str) -> Result<()> {
    let id = text(claim, "snapshot_id");
    // No id would mean all of them.
    if id.is_empty() {
        return Ok(());
    }
    app.blobs().delete_all(&prefix(owner, id)).await
}

impl Capture<'_> {
    async fn take(&mut self, org_id: &str) -> Result<SnapshotManifest> {
        let (app, id) = (self.app, self.snapshot.namespace_id.clone());
        let namespace = NAMESPACES.find(app.db(), org_id, &id).await?.data.0;
        let buckets = BUCKETS.all(app.db(), &id).await?;
        let collections = COLLECTIONS.all(app.db(), &id).await?;
        let retrievers = RETRIEVERS.all(app.db(), &id).await?;
        let taxonomies = TAXONOMIES.all(app.db(), &id).await?;
        let rows = json!({
            "namespace": namespace,
            "buckets": buckets.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "collections": collections.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "retrievers": retrievers.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "taxonomies": taxonomies.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
        });
        let rows = serde_json::to_vec(&rows).map_err(ApiError::internal)?;
        let pieces = Box::pin(stream::once(async move { Ok(Bytes::from(rows)) }));
        self.keep("resources.json", pieces).await?;
        let counted = Arc::new(AtomicI64::new(0));
        let ids = buckets.iter().map(|one| one.id.clone()).collect();
        let objects = Box::pin(self.objects(ids, counted.clone()));
        self.keep("objects.ndjson", objects).await?;
        let objects = counted.load(Ordering::Relaxed);
        let mut held: IndexMap<String, i64> = IndexMap::new();
        let mut documents = 0;
        for collection in &collections {
            let count = self.collection(collection).await?;
            held.insert(collection.id.clone(), count);
            documents += count;
        }
        for (name, count) in [
            ("buckets", buckets.len()),
            ("collections", collections.len()),
            ("retrievers", retrievers.len()),
            ("taxonomies", taxonomies.len()),
        ] {
            held.insert(name.into(), i64::try_from(count).unwrap_or(0));
        }
        Ok(self.manifest(held, objects, documents))
    }

    /// What is told of a snapshot that is taken: of how much of which kind, and what its files are to be.
    fn manifest(
        &mut self,
        held: IndexMap<String, i64>,
        objects: i64,
        documents: i64,
    ) -> SnapshotManifest {
        let (files, bytes) = &*self.copied;
        SnapshotManifest {
            snapshot_id: self.snapshot.snapshot_id.clone().unwrap_or_default(),
            namespace_id: self.snapshot.namespace_id.clone(),
            namespace_name: self.snapshot.namespace_name.clone(),
            created_at: self.app.clock().now(),
            snapshot_type: name_of(SnapshotType::Manual),
            mongo_collections: held,
            vector_point_count: if self.snapshot.include_vectors {
                documents
            } else {
                0
            },
            s3_object_count: files.load(Ordering::Relaxed),
            s3_total_bytes: bytes.load(Ordering::Relaxed),
            s3_objects_copied: self.snapshot.s3_objects_copied,
            include_vectors: self.snapshot.include_vectors,
            frontier: Some(SnapshotFrontier {
                objects: Some(ObjectFrontier {
                    objects_listed: objects,
                    ..ObjectFrontier::default()
                }),
                digests: std::mem::take(&mut self.digests),
                ..SnapshotFrontier::default()
            }),
            ..SnapshotManifest::default()
        }
    }

    /// Keeps the documents of a collection, from wherever they are; answers how many. One that is moved meanwhile is read
    /// again when it is there.
    async fn collection(&mut self, collection: &Record<CollectionResponse>) -> Result<i64> {
        let (app, namespace_id) = (self.app, self.snapshot.namespace_id.clone());
        check_settled(collection)?;
        let path = format!("documents/{}.ndjson", collection.id);
        let kept = match &collection.s3_vector_index {
            // Put away: its file has the same lines.
            Some(key) => self.filed(&path, key, &collection.id).await,
            None => {
                let counted = Arc::new(AtomicI64::new(0));
                let pieces = Box::pin(self.documents(&collection.id, counted.clone()));
                self.keep(&path, pieces)
                    .await
                    .map(|()| Some(counted.load(Ordering::Relaxed)))
            }
        };
        let now = COLLECTIONS
            .find(app.db(), &namespace_id, &collection.id)
            .await;
        match now {
            Ok(now) if now.s3_vector_index != collection.s3_vector_index => Err(moving(&now)),
            Ok(now) => check_settled(&now),
            // Deleted meanwhile: what was read of it is kept.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }?;
        Ok(kept?.or(collection.document_count).unwrap_or(0))
    }

    /// Keeps the file of a collection that is put away, without what was made of objects that went since; answers how many
    /// documents are left where some are not.
    async fn filed(&mut self, path: &str, key: &str, collection_id: &str) -> Result<Option<i64>> {
        let namespace_id = self.snapshot.namespace_id.clone();
        let gone = collections::store::forgotten(self.app.db(), &namespace_id, collection_id);
        let gone: HashSet<String> = gone.await?.into_iter().collect();
        if !gone.is_empty() {
            let counted = Arc::new(AtomicI64::new(0));
            let lines = self.app.blobs().reader(key).await?.lines();
            let pieces = Box::pin(without(lines, gone, counted.clone()));
            self.keep(path, pieces).await?;
            return Ok(Some(counted.load(Ordering::Relaxed)));
        }
        let pieces = self.app.blobs().stream(key, None).await?;
        let pieces = pieces.map_err(ApiError::internal);
        self.keep(path, pieces).await.map(|()| None)
    }

    /// Writes a file as its pieces come, and notes its digest.
    async fn keep(
        &mut self,
        path: &str,
        pieces: impl Stream<Item = Result<Bytes>> + Unpin,
    ) -> Result<()> {
        let blobs = self.app.blobs();
        blobs.check_room(self.app.config().limits.free_disk_bytes)?;
        let key = format!("{}/{path}", self.snapshot.s3_prefix);
        let kept = blobs
            .put_stream(&key, pieces, u64::MAX, |_, _| Ok(()))
            .await?;
        let digest = ArtifactDigest {
            sha256: kept.sha256,
            size: i64::try_from(kept.size).unwrap_or(i64::MAX),
        };
        self.digests.insert(path.to_owned(), digest);
        Ok(())
    }

    /// Keeps files beside the rows that name them.
    fn files(&self) -> Files {
        Files {
            app: self.app.clone(),
            folder: self
                .snapshot
                .s3_objects_copied
                .then(|| format!("{}/files", self.snapshot.s3_prefix)),
            copied: self.copied.clone(),
        }
    }

    fn objects(
        &self,
        buckets: Vec<String>,
        counted: Arc<AtomicI64>,
    ) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, files) = (self.app.clone(), self.files());
        let namespace_id = self.snapshot.namespace_id.clone();
        stream::try_unfold((buckets, LATEST), move |(mut buckets, after)| {
            let (app, files) = (app.clone(), files.clone());
            let (namespace_id, counted) = (namespace_id.clone(), counted.clone());
            async move {
                let Some(bucket_id) = buckets.last() else {
                    return Ok(None);
                };
                let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
                let args = args![namespace_id, bucket_id, after.0, after.1, limit];
                let rows: Vec<ObjectRow> = app.db().all(OBJECTS, args).await?;
                for row in &rows {
                    for key in blobs::keys(&row.data.0) {
                        files.copy(&key).await?;
                    }
                }
                let next = match rows.last().filter(|_| rows.len() == PAGE) {
                    Some(row) => {
                        let made = row.data.0.created_at.map_or(0, |at| at.timestamp_micros());
                        (made, row.object_id.clone())
                    }
                    None => {
                        buckets.pop();
                        LATEST
                    }
                };
                Ok(Some((lines(&rows, &counted)?, (buckets, next))))
            }
        })
    }

    fn documents(
        &self,
        collection_id: &str,
        counted: Arc<AtomicI64>,
    ) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, files) = (self.app.clone(), self.files());
        let reach = Reach {
            namespace_id: self.snapshot.namespace_id.clone(),
            collection_ids: vec![collection_id.to_owned()],
            principal: None,
        };
        let query = ListQuery {
            limit: PAGE,
            vectors: match self.snapshot.include_vectors {
                true => WithVectors::Yes,
                false => WithVectors::No,
            },
            ..ListQuery::default()
        };
        stream::try_unfold(Some(query), move |query| {
            let (app, files) = (app.clone(), files.clone());
            let (reach, counted) = (reach.clone(), counted.clone());
            async move {
                let Some(query) = query else { return Ok(None) };
                let page = app.store().list(&reach, query.clone()).await?;
                for document in &page.documents {
                    let named = document
                        .payload
                        .get("_internal")
                        .and_then(|internal| internal.get("document_blobs")?.as_array());
                    for url in named
                        .into_iter()
                        .flatten()
                        .filter_map(|blob| blob["url"].as_str())
                    {
                        if let Some(key) = url.strip_prefix("blob://") {
                            files.copy(key).await?;
                        }
                    }
                }
                let next = page.next.map(|cursor| ListQuery {
                    cursor: Some(cursor),
                    ..query
                });
                Ok(Some((lines(&page.documents, &counted)?, next)))
            }
        })
    }
}

/// Refuses a collection whose documents are on their way into its file.
pub(super) fn check_settled(collection: &CollectionResponse) -> Result<()> {
    match lifecycle::is_away(collection) && collection.s3_vector_index.is_none() {
        true => Err(moving(collection)),
        false => Ok(()),
    }
}

fn moving(collection: &CollectionResponse) -> ApiError {
    let name = &collection.collection_name;
    let message = format!("documents of the collection '{name}' are being moved");
    ApiError::unavailable("", message)
}

/// Keeps files for a snapshot that copies them.
#[derive(Clone)]
struct Files {
    app: App,
    folder: Option<String>,
    copied: Arc<(AtomicI64, AtomicI64)>,
}

impl Files {
    async fn copy(&self, key: &str) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let blobs = self.app.blobs();
        // One that is gone was deleted since its row was read.
        let Some(stored) = blobs.head(key).await? else {
            return Ok(());
        };
        let copy = format!("{folder}/{key}");
        // Objects and documents name the same files.
        if blobs.head(&copy).await?.is_none() {
            blobs.copy(key, &copy).await?;
            self.copied.0.fetch_add(1, Ordering::Relaxed);
            // Of a file that stays at its source, where that is.
            let bytes = match blob::is_linked(key) {
                true => 0,
                false => i64::try_from(stored.size).unwrap_or(0),
            };
            self.copied.1.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn lines(rows: &[impl serde::Serialize], counted: &AtomicI64) -> Result<Bytes> {
    let mut text = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut text, row).map_err(ApiError::internal)?;
        text.push(b'\n');
    }
    let count = i64::try_from(rows.len()).unwrap_or(0);
    counted.fetch_add(count, Ordering::Relaxed);
    Ok(text.into())
}

/// The lines of a file of documents but those made of some objects.
fn without(
    lines: Lines<impl AsyncBufRead + Unpin>,
    gone: HashSet<String>,
    counted: Arc<AtomicI64>,
) -> impl Stream<Item = Result<Bytes>> {
    stream::try_unfold((lines, gone), move |(mut lines, gone)| {
        let counted = counted.clone();
        async move {
            let mut piece = String::new();
            while piece.len() < PIECE {
                let Some(line) = lines.next_line().await.map_err(ApiError::internal)? else {
                    break;
                };
                let document: Document = reading::from_str(&line).map_err(ApiError::internal)?;
                let internal = document.payload.get("_internal");
                let root =
                    internal.and_then(|of| of.get("lineage")?.get("root_object_id")?.as_str());
                if root.is_some_and(|root| gone.contains(root)) {
                    continue;
                }
                piece += &line;
                piece.push('\n');
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), (lines, gone))))
        }
    })
}
