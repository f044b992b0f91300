//! Files that were made with documents, once the documents are gone: thumbnails, films, pages.
//!
//! What was made of a document names the document's files as its own. All of that belongs to the same object, so the
//! documents of the object say which files are still shown; they are read while nobody else has the object in work.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use loupe_engine::{
    ingest::root,
    store::{Document, ListQuery, Reach},
};
use loupe_wire::{TaskType, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::REMOVE_FILES;
use crate::{
    app::App,
    args, blob,
    db::{Arg, Tx},
    error::{ApiError, Result},
    id,
    jobs::{self, Claim},
    v1::{
        batches::fillings::belonging,
        buckets::destinations,
        collections::{COLLECTIONS, lifecycle::is_away},
        documents, tasks,
    },
};

/// Documents read at once.
const PAGE: usize = 1_000;
/// Seconds that the object is held.
const LEASE: u64 = 60;
/// Until an object that is in work is asked for again, at first.
const BUSY: Duration = Duration::from_secs(1);

crate::sql! {
    // Fenced like the end of the task.
    const KEEP = "UPDATE tasks SET work = $5 WHERE org_id = $1 AND task_id = $2 AND lease_owner = $3 AND attempt = $4 AND status = 'PROCESSING'";
}

/// What a document shows, which goes with the last document that does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Left {
    /// The object that it belongs to, or the first document.
    root: String,
    /// Its own files, and those of documents that it was made of: collections and documents.
    shown: BTreeSet<(String, String)>,
}

impl Left {
    /// None if it shows no file that was made with a document.
    pub fn of(namespace_id: &str, document: &Document) -> Option<Self> {
        let shown: BTreeSet<(String, String)> = shown_by(namespace_id, document).collect();
        let root = root(document).to_owned();
        (!shown.is_empty()).then_some(Self { root, shown })
    }
}

/// Collections and documents with which files were made that this document shows.
fn shown_by<'d>(
    namespace_id: &str,
    document: &'d Document,
) -> impl Iterator<Item = (String, String)> + use<'d> {
    let namespace_id = namespace_id.to_owned();
    let internal = document.payload.get("_internal");
    let lists = ["document_blobs", "source_blobs"].into_iter();
    let files = lists.filter_map(move |list| internal?.get(list)?.as_array());
    files.flatten().filter_map(move |file| {
        let key = file.get("url")?.as_str()?.strip_prefix("blob://")?;
        let root = blob::root(key);
        let rest = key.strip_prefix(root)?.strip_prefix("/documents/")?;
        let (collection_id, rest) = rest.split_once('/')?;
        let (document_id, _) = rest.split_once('/')?;
        let is_own = root.split('/').next() == Some(namespace_id.as_str());
        is_own.then(|| (collection_id.to_owned(), document_id.to_owned()))
    })
}

/// Leaves the inner task that removes the files of documents which are about to be removed.
///
/// # Errors
/// The database fails.
pub async fn leave(app: &App, org_id: &str, namespace_id: &str, left: Vec<Left>) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move { leave_in(tx, &org_id, &namespace_id, &left, now).await })
        })
        .await
}

/// The same, in the transaction that journals the removal.
///
/// # Errors
/// The database fails.
pub async fn leave_in(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    left: &[Left],
    now: i64,
) -> Result<()> {
    for some in left.chunks(PAGE) {
        let task_type = TaskType::ApiCollectionsDocumentsBulkDelete;
        let work = json!({ "left": some });
        let mut task = tasks::NewTask::work(org_id, namespace_id, task_type, REMOVE_FILES, work);
        // Inner work: it is not listed.
        task.parent_id = Some(namespace_id.into());
        tasks::insert(tx, task, now).await?;
    }
    Ok(())
}

/// Removes the files of documents that are gone and that nothing else shows; waits for whoever has their object in work.
///
/// # Errors
/// A store or the database fails; safe to repeat.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let left = claim.work.get("left").cloned().unwrap_or_default();
    let left: Vec<Left> = serde_json::from_value(left).map_err(ApiError::internal)?;
    let mut by_root: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for one in left {
        by_root.entry(one.root).or_default().extend(one.shown);
    }
    let (owner, mut busy) = (id::new("files_"), Vec::new());
    for (root, left) in &by_root {
        let lease = jobs::object_lease(namespace_id, root);
        if !jobs::hold_lease(app, &lease, &owner, LEASE).await? {
            busy.push(Left {
                root: root.clone(),
                shown: left.clone(),
            });
            continue;
        }
        let freed = free(app, namespace_id, root, left).await;
        jobs::drop_lease(app, &lease, &owner).await?;
        freed?;
    }
    match busy.is_empty() {
        true => tasks::succeed(app, claim, Vec::new()).await,
        false => put_off(app, claim, &busy).await,
    }
}

/// Leaves what is in work for later, and for longer each time: an object may be in work for an hour.
async fn put_off(app: &App, claim: &Claim, busy: &[Left]) -> Result<()> {
    let waits = claim.work.get("waits").and_then(Value::as_u64).unwrap_or(0);
    let work = Arg::json(&json!({ "left": busy, "waits": waits + 1 }));
    let kept = claim.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let Claim {
                    org_id,
                    task_id,
                    owner,
                    attempt,
                    ..
                } = kept;
                tx.run(KEEP, args![org_id, task_id, owner, attempt, work])
                    .await
                    .map(drop)
            })
        })
        .await?;
    jobs::postpone(app, claim, BUSY * (1 << waits.min(6))).await
}

async fn free(
    app: &App,
    namespace_id: &str,
    root: &str,
    left: &BTreeSet<(String, String)>,
) -> Result<()> {
    // What was journalled before is seen as it will be.
    documents::settle_all(app, namespace_id).await?;
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    let (away, here): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| is_away(one));
    // What is put away cannot be asked which files it shows.
    let may_show = |collection_id: &String| {
        let mut away = away.iter();
        away.any(|one| one.id == *collection_id || one.source.collection_ids.is_some())
    };
    let reach = Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: here.into_iter().map(|one| one.id).collect(),
        principal: None,
    };
    let shown = shown(app, &reach, root).await?;
    let gone = left.difference(&shown);
    let gone = gone.filter(|(collection_id, _)| !may_show(collection_id));
    let folders: Vec<String> = gone
        .map(|(collection_id, document_id)| format!("documents/{collection_id}/{document_id}"))
        .collect();
    destinations::delete_all(app, namespace_id, &folders).await
}

/// What the documents that belong to an object show.
async fn shown(app: &App, reach: &Reach, root: &str) -> Result<BTreeSet<(String, String)>> {
    let mut shown = BTreeSet::new();
    let mut query = ListQuery {
        filter: Some(belonging(&[root])),
        limit: PAGE,
        ..Default::default()
    };
    loop {
        let page = app.store().list(reach, query.clone()).await?;
        for document in &page.documents {
            shown.extend(shown_by(&reach.namespace_id, document));
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_made_with_documents_are_left() {
        let document = |url: &str| Document {
            document_id: "doc_1".into(),
            collection_id: "col_1".into(),
            payload: json!({"_internal": {
                "lineage": {"root_object_id": "obj_1"}, "document_blobs": [{"url": url}],
            }})
            .as_object()
            .cloned()
            .unwrap()
            .into(),
            ..Default::default()
        };
        let left = |url: &str| {
            let left = Left::of("ns_1", &document(url))?;
            let mut shown = left.shown.into_iter();
            shown
                .next()
                .map(|(_, document_id)| (left.root, document_id))
        };
        for made in ["doc_1", "doc_0"] {
            let url = format!("blob://ns_1/documents/col_1/{made}/pages/a.png");
            let expected = ("obj_1".to_owned(), made.to_owned());
            assert_eq!(left(&url), Some(expected));
        }
        for other in [
            "blob://ns_2/documents/col_1/doc_1/a.png",
            "blob://ns_1/documents/col_1/a.png",
            "blob://ns_1/objects/obj_1/blob_1/a.png",
            "https://example.com/a.png",
        ] {
            assert_eq!(left(other), None, "{other}");
        }
    }
}
