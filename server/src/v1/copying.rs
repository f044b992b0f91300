//! Copies of collections: documents with their vectors and the files made with them; nothing is processed again. A copy
//! writes the ids that processing would write, so one that was cut off starts again, and a later run replaces its work.

mod lines;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use loupe_engine::store::{Document, ListQuery, Reach, WithVectors};
use loupe_wire::{TaskResponse, TaskType, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    annotations::signal,
    collections::{self, COLLECTIONS, lifecycle},
    documents,
    namespaces::{self, NAMESPACES, push_event},
    notifications::{self, Failure},
    tasks,
};
use crate::{
    app::App,
    args, blob,
    db::Tx,
    error::{ApiError, Result},
    jobs::Claim,
    limits::quota,
    words::counted,
};

/// The queue's word for a copy.
pub const COPY: &str = "copy_collections";

/// Documents of one step.
const PAGE: usize = 200;

/// How long the files of a step are copied until it is asked again whether somebody wants them.
const LOOK: Duration = Duration::from_secs(1);

/// Whether a copy that is under way is wanted still.
pub type Wanted<'w> = dyn Fn() -> BoxFuture<'w, Result<bool>> + Send + Sync + 'w;

crate::sql! {
    // What was made of each object is known of the copy too: its next batch passes over what is done.
    const COPY_PROCESSED = "INSERT INTO processed (object_id, collection_id, namespace_id, content_hash, documents, updated_at) SELECT object_id, $3, namespace_id, content_hash, documents, $4 FROM processed WHERE namespace_id = $1 AND collection_id = $2 ON CONFLICT (object_id, collection_id) DO NOTHING";
}

/// What is copied into the task's namespace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Copy {
    pub from_namespace: String,
    /// Source id and the id of its copy.
    pub collections: BTreeMap<String, String>,
    /// The namespace itself is a clone, and ready when its documents are there.
    pub whole: bool,
}

/// Leaves the task of a copy.
pub async fn enqueue(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    copy: &Copy,
    now: i64,
) -> Result<TaskResponse> {
    let work = serde_json::to_value(copy).map_err(ApiError::internal)?;
    let task_type = if copy.whole {
        TaskType::ApiNamespacesCreate
    } else {
        TaskType::ApiCollectionsDocumentsCreate
    };
    let mut task = tasks::NewTask::work(org_id, namespace_id, task_type, COPY, work);
    task.inputs = copy.collections.keys().cloned().map(Value::from).collect();
    task.description = format!("copy of {} collections", copy.collections.len());
    tasks::insert(tx, task, now).await
}

/// Runs one copy; safe to repeat.
///
/// # Errors
/// A store or the database fails; what was copied stays.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let copy = Copy::deserialize(&claim.work).map_err(ApiError::internal)?;
    if copy.whole {
        namespaces::set_clone_status(app, claim, "cloning", Some("copying"), None).await?;
    }
    let wanted = || async { Ok(true) }.boxed();
    for (from, to) in &copy.collections {
        fill(app, claim, &copy, (from, to), &wanted).await?;
    }
    if copy.whole {
        namespaces::set_clone_status(app, claim, "ready", None, None).await?;
    }
    Ok(())
}

/// Fills one collection of the task's namespace with the documents of another, of those that are copied, for as long as that is
/// wanted.
///
/// # Errors
/// A store or the database fails; what was copied stays.
pub async fn fill(
    app: &App,
    claim: &Claim,
    copy: &Copy,
    (from, to): (&str, &str),
    wanted: &Wanted<'_>,
) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let record = match COLLECTIONS.find(app.db(), namespace_id, to).await {
        Ok(record) => record,
        // Deleted meanwhile: nothing to fill.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    let target = collections::spec(app, namespace_id, &record.data.0);
    let from_namespace = &copy.from_namespace;
    let pair = Pair {
        app,
        claim,
        from_namespace,
        from,
        target: &target,
        ids: &copy.collections,
        files: None,
    };
    readable(app, from_namespace, from).await?;
    pair.copy(wanted).await?;
    // A source that was put away or deleted in between was not read whole.
    readable(app, from_namespace, from).await
}

/// Refuses to copy what is put away, and what was deleted: a part of it would pass for the whole.
async fn readable(app: &App, namespace_id: &str, from: &str) -> Result<()> {
    match lifecycle::still_here(app, namespace_id, from).await {
        Err(error) if error.is_not_found() => {
            let message = "a collection was deleted before all of it was copied";
            Err(ApiError::conflict("source_collection_deleted", message))
        }
        here => here,
    }
}

/// Marks what a copy that was given up was to fill.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let copy = Copy::deserialize(&claim.work).map_err(ApiError::internal)?;
    if copy.whole {
        namespaces::set_clone_status(app, claim, "failed", None, Some(reason)).await?;
    }
    notifications::tell_failure(app, claim, failure(app, claim, &copy, reason).await).await
}

/// What people are told of a copy that was given up.
async fn failure(app: &App, claim: &Claim, copy: &Copy, reason: &str) -> Failure {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let ids: Vec<&String> = copy.collections.values().collect();
    let what = match (copy.whole, ids.as_slice()) {
        (true, _) => {
            let found = NAMESPACES.find(app.db(), &claim.org_id, namespace_id);
            let name = found.await.map(|found| found.name);
            let name = name.unwrap_or_else(|_| namespace_id.to_owned());
            format!("The new namespace {name}")
        }
        (false, [id]) => {
            let found = COLLECTIONS.find(app.db(), namespace_id, id);
            let name = found.await.map(|found| found.name);
            let name = name.unwrap_or_else(|_| (*id).clone());
            format!("The new collection {name}")
        }
        (false, several) => counted(several.len(), "new collection"),
    };
    Failure {
        title: format!("{what} could not be filled"),
        content: format!(
            "{reason}. What was copied already stays: remove the clone, and make it again when the cause is gone."
        ),
        about: json!({ "namespace_id": namespace_id, "collection_ids": ids }),
    }
}

/// One collection being copied into another.
pub struct Pair<'a> {
    pub app: &'a App,
    pub claim: &'a Claim,
    pub from_namespace: &'a str,
    pub from: &'a str,
    pub target: &'a loupe_engine::store::CollectionSpec,
    /// Source id and the id of its copy, of this collection and of those that are copied with it.
    pub ids: &'a BTreeMap<String, String>,
    /// A folder that holds files under their keys, for those that are gone from their place.
    pub files: Option<String>,
}

impl Pair<'_> {
    async fn copy(&self, wanted: &Wanted<'_>) -> Result<()> {
        let store = self.app.store();
        let reach = Reach {
            namespace_id: self.from_namespace.into(),
            collection_ids: vec![self.from.into()],
            principal: None,
        };
        let mut query = ListQuery {
            limit: PAGE,
            vectors: WithVectors::Yes,
            ..Default::default()
        };
        loop {
            let page = store.list(&reach, query.clone()).await?;
            let Some(copies) = self.copies(page.documents, wanted).await? else {
                return Ok(());
            };
            self.put(copies).await?;
            query.cursor = page.next;
            if query.cursor.is_none() {
                return self.remember().await;
            }
        }
    }

    /// Copies of some documents; none once they are not wanted any more.
    async fn copies(
        &self,
        documents: Vec<Document>,
        wanted: &Wanted<'_>,
    ) -> Result<Option<Vec<Document>>> {
        let (mut copies, mut asked) = (Vec::with_capacity(documents.len()), None::<Instant>);
        for document in documents {
            if asked.is_none_or(|at| at.elapsed() > LOOK) {
                if !wanted().await? {
                    return Ok(None);
                }
                asked = Some(Instant::now());
            }
            copies.push(self.document(document).await?);
        }
        Ok(Some(copies))
    }

    /// Writes copies of some documents, safely, and tells of them. Answers their ids, in the order of the documents.
    ///
    /// # Errors
    /// The store or the database fails.
    pub async fn write(&self, documents: Vec<Document>) -> Result<Vec<String>> {
        let mut copies = Vec::with_capacity(documents.len());
        for document in documents {
            copies.push(self.document(document).await?);
        }
        let ids = copies.iter().map(|one| one.document_id.clone()).collect();
        self.put(copies).await?;
        Ok(ids)
    }

    /// As [`Pair::write`], documents as they are.
    ///
    /// # Errors
    /// The collection is put away, or gone; the store or the database fails.
    pub async fn put(&self, mut copies: Vec<Document>) -> Result<()> {
        let (store, target) = (self.app.store(), self.target);
        lifecycle::still_here(self.app, &target.namespace_id, &target.collection_id).await?;
        // The text that keyword search reads comes with the vectors: it is made anew only where it was not read.
        for document in copies.iter_mut().filter(|one| one.keywords.is_none()) {
            document.keywords = Some(documents::keywords(&document.payload));
        }
        let ids: Vec<String> = copies.iter().map(|one| one.document_id.clone()).collect();
        quota::check_written(self.app, &self.claim.org_id, target, &ids).await?;
        let turn = self.app.writers.turn(&ids).await;
        store.upsert(target, copies).await?;
        store.flush().await?;
        drop(turn);
        signal::note_return(self.app, &target.namespace_id, &ids).await?;
        self.tell(ids).await
    }

    /// Copies a file from its place, or from the folder that keeps it.
    async fn copy_file(&self, from: &str, to: &str) -> Result<()> {
        let blobs = self.app.blobs();
        match &self.files {
            Some(folder) if blobs.head(from).await?.is_none() => {
                blobs.copy(&format!("{folder}/{from}"), to).await
            }
            _ => blobs.copy(from, to).await,
        }
    }

    fn is_of_source(&self, root: &str) -> bool {
        root.split('/').next() == Some(self.from_namespace)
    }

    /// The copy of one document, its files copied.
    async fn document(&self, mut document: Document) -> Result<Document> {
        let (namespace_id, collection_id) = (&self.target.namespace_id, &self.target.collection_id);
        let (id, lineage) = lines::of(&document, collection_id, self.ids);
        let old = format!("/documents/{}/{}/", self.from, document.document_id);
        let new = format!("/documents/{collection_id}/{id}/");
        if let Some(internal) = document.payload.get_mut("_internal") {
            internal["namespace_id"] = namespace_id.as_str().into();
            internal["collection_id"] = collection_id.as_str().into();
            internal["document_id"] = id.as_str().into();
            if let Some(lineage) = lineage {
                internal["lineage"] = lineage;
            }
            let files = internal
                .get_mut("document_blobs")
                .and_then(Value::as_array_mut);
            for file in files.into_iter().flatten() {
                let url = file.get("url").and_then(Value::as_str);
                let Some(key) = url.and_then(|url| url.strip_prefix("blob://")) else {
                    continue;
                };
                let root = blob::root(key);
                let name = key
                    .strip_prefix(root)
                    .and_then(|key| key.strip_prefix(&old));
                let (Some(name), true) = (name, self.is_of_source(root)) else {
                    continue;
                };
                // Another namespace has no part in the places of this one.
                let here = match self.from_namespace == namespace_id {
                    true => root,
                    false => namespace_id.as_str(),
                };
                let to = format!("{here}{new}{name}");
                self.copy_file(key, &to).await?;
                file["url"] = format!("blob://{to}").into();
            }
        }
        document.collection_id.clone_from(collection_id);
        document.document_id = id;
        Ok(document)
    }

    /// Tells of documents that are safely stored.
    async fn tell(&self, document_ids: Vec<String>) -> Result<()> {
        if document_ids.is_empty() {
            return Ok(());
        }
        let (org_id, namespace_id) = (self.claim.org_id.clone(), self.target.namespace_id.clone());
        let payload = json!({
            "namespace_id": namespace_id, "collection_id": self.target.collection_id, "batch_id": null,
            "document_ids": document_ids, "count": document_ids.len(),
        });
        let now = self.app.clock().micros();
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let kind = "collection.documents.written";
                    push_event(tx, &org_id, &namespace_id, kind, payload, now).await
                })
            })
            .await
    }

    async fn remember(&self) -> Result<()> {
        // Objects are not copied into another namespace: nothing is known of its own.
        if self.from_namespace != self.target.namespace_id {
            return Ok(());
        }
        let (namespace_id, from, to, now) = (
            self.from_namespace.to_owned(),
            self.from.to_owned(),
            self.target.collection_id.clone(),
            self.app.clock().micros(),
        );
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    tx.run(COPY_PROCESSED, args![namespace_id, from, to, now])
                        .await?;
                    Ok(())
                })
            })
            .await
    }
}
