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
use loupe_wire::{
    ArtifactDigest, CollectionResponse, ObjectFrontier, SnapshotFrontier, SnapshotManifest,
    SnapshotModel, SnapshotStatus, SnapshotType,
};
use serde_json::json;
use tokio::io::AsyncBufReadExt;

use super::{ANNOTATIONS, SNAPSHOTS, change, members_path, prefix, streams::without};
use crate::{
    app::App,
    db::Record,
    error::{ApiError, Result},
    jobs::{Claim, text},
    v1::{
        alerts,
        buckets::BUCKETS,
        clusters,
        collections::{self, COLLECTIONS, lifecycle},
        namespaces::NAMESPACES,
        notifications::{self, Failure},
        retrievers::RETRIEVERS,
        tasks::name_of,
        taxonomies::TAXONOMIES,
        triggers,
    },
};

/// The queue's word for a snapshot that is to be taken.
pub const CAPTURE: &str = "snapshot_capture";

/// How many there are of each kind, and documents of each collection.
type Counts = IndexMap<String, i64>;

/// One snapshot being taken.
pub(super) struct Capture<'a> {
    pub app: &'a App,
    pub snapshot: SnapshotModel,
    digests: IndexMap<String, ArtifactDigest>,
    /// Files of objects and documents that were copied, and their bytes.
    pub copied: Arc<(AtomicI64, AtomicI64)>,
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
        let clusters = self.clusters().await?;
        let alerts = alerts::kept(app.db(), &id).await?;
        let triggers = triggers::whole(app.db(), &id).await?;
        let rows = json!({
            "namespace": namespace,
            "buckets": buckets.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "collections": collections.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "retrievers": retrievers.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "taxonomies": taxonomies.iter().map(|one| &one.data.0).collect::<Vec<_>>(),
            "clusters": clusters,
            "alerts": alerts,
            "triggers": triggers,
        });
        let rows = serde_json::to_vec(&rows).map_err(ApiError::internal)?;
        let pieces = Box::pin(stream::once(async move { Ok(Bytes::from(rows)) }));
        self.keep("resources.json", pieces).await?;
        let ids = buckets.iter().map(|one| one.id.clone()).collect();
        let objects = self.objects(ids).await?;
        let mut held = Counts::new();
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
            ("clusters", clusters.len()),
            ("alerts", alerts.len()),
            ("triggers", triggers.len()),
        ] {
            held.insert(name.into(), i64::try_from(count).unwrap_or(0));
        }
        held.insert("annotations".into(), self.annotations().await?);
        Ok(self.manifest(held, objects, documents))
    }

    async fn objects(&mut self, buckets: Vec<String>) -> Result<i64> {
        let counted = Arc::new(AtomicI64::new(0));
        let lines = Box::pin(self.object_lines(buckets, counted.clone()));
        self.keep("objects.ndjson", lines).await?;
        Ok(counted.load(Ordering::Relaxed))
    }

    async fn annotations(&mut self) -> Result<i64> {
        let counted = Arc::new(AtomicI64::new(0));
        let lines = Box::pin(self.annotation_lines(counted.clone()));
        self.keep(ANNOTATIONS, lines).await?;
        Ok(counted.load(Ordering::Relaxed))
    }

    /// The clusters, with the files that say who is in which.
    async fn clusters(&mut self) -> Result<Vec<clusters::Kept>> {
        let mut all = clusters::all(self.app, &self.snapshot.namespace_id).await?;
        for one in &mut all {
            let Some(key) = one.members() else { continue };
            match self.app.blobs().stream(&key, None).await {
                Ok(pieces) => {
                    let pieces = pieces.map_err(ApiError::internal);
                    self.keep(&members_path(one.id()), pieces).await?;
                }
                // Removed since its row was read.
                Err(error) if error.is_not_found() => one.forget_run(),
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// What is told of a snapshot that is taken: of how much of which kind, and what its files are to be.
    fn manifest(&mut self, held: Counts, objects: i64, documents: i64) -> SnapshotManifest {
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
                let pieces = Box::pin(self.document_lines(&collection.id, counted.clone()));
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
