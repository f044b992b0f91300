//! What chunks write, noted before they write it. The document store takes part in no transaction: a chunk that died, was
//! canceled or given up may have written documents that nobody was told of. They are told of as their batch ends.

use std::collections::BTreeMap;

use loupe_engine::{
    filter::{Filter, Operator},
    ingest::root,
    store::{ListQuery, Reach},
};
use loupe_wire::{BatchModel, Value};

use super::{
    flow::{Owner, tell_written},
    store,
};
use crate::{
    app::App,
    args,
    db::{Db, Tx},
    error::Result,
};

crate::sql! {
    const BEGIN = "INSERT INTO fillings (object_id, collection_id, namespace_id, batch_id) VALUES ($1, $2, $3, $4) ON CONFLICT (object_id, collection_id) DO UPDATE SET batch_id = $4";
    const END = "DELETE FROM fillings WHERE namespace_id = $1 AND collection_id = $2 AND object_id = $3";
    const TOLD = "UPDATE fillings SET batch_id = '' WHERE namespace_id = $1 AND collection_id = $2 AND object_id = $3 AND batch_id = $4";
    const UNTOLD = "SELECT collection_id, object_id FROM fillings WHERE namespace_id = $1 AND batch_id = $2 ORDER BY collection_id, object_id";
    const FORGET_COLLECTION = "DELETE FROM fillings WHERE namespace_id = $1 AND collection_id = $2";
    const ADD_DOCUMENTS = "UPDATE batch_objects SET documents = documents + $3 WHERE batch_id = $1 AND object_id = $2";
}

/// Objects whose documents are listed at once, and documents of one page or one event.
const OBJECTS: usize = 500;
const PAGE: usize = 1_000;

/// Notes that documents of an object are about to be written into a collection: what `processed` says of them is not true
/// before the end of that.
pub async fn begin(
    tx: &mut Tx,
    (namespace_id, collection_id): (&str, &str),
    batch_id: &str,
    object_id: &str,
) -> Result<()> {
    let args = args![object_id, collection_id, namespace_id, batch_id];
    tx.run(BEGIN, args).await?;
    Ok(())
}

/// The collection holds what `processed` says of the object.
pub(super) async fn end(
    tx: &mut Tx,
    (namespace_id, collection_id): (&str, &str),
    object_id: &str,
) -> Result<()> {
    tx.run(END, args![namespace_id, collection_id, object_id])
        .await?;
    Ok(())
}

/// Somebody is told of what the batch has written of the object; whether nobody was before.
pub(super) async fn told(
    tx: &mut Tx,
    (namespace_id, collection_id): (&str, &str),
    batch_id: &str,
    object_id: &str,
) -> Result<bool> {
    let args = args![namespace_id, collection_id, object_id, batch_id];
    Ok(tx.run(TOLD, args).await? > 0)
}

/// Forgets what was being written into a collection that is gone.
pub async fn forget_collection(tx: &mut Tx, namespace_id: &str, collection_id: &str) -> Result<()> {
    tx.run(FORGET_COLLECTION, args![namespace_id, collection_id])
        .await?;
    Ok(())
}

/// What the collections of a batch hold of it as it ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// How many documents carry its id; none where they could not be counted.
    counts: BTreeMap<String, Option<u64>>,
    /// What chunks that did not end have written, by collection.
    untold: BTreeMap<String, Untold>,
}

#[derive(Debug, Clone, Default)]
struct Untold {
    object_ids: Vec<String>,
    /// Objects, and documents that were made of them.
    documents: Vec<(String, String)>,
}

impl Held {
    pub fn count(&self, collection_id: &str) -> Option<u64> {
        self.counts.get(collection_id).copied().flatten()
    }
}

/// Counts the documents that carry the batch's id, in each of its collections, and finds those that nobody was told of.
pub(super) async fn count_held(app: &App, batch_id: &str) -> Result<Held> {
    let Some((batch, _, namespace_id)) = store::read_from(app.db(), batch_id).await? else {
        return Ok(Held::default());
    };
    let mut held = Held::default();
    for (collection_id, object_ids) in noted(app.db(), &namespace_id, batch_id).await? {
        let reach = reach(&namespace_id, &collection_id);
        match written(app, &reach, batch_id, object_ids).await {
            Ok(untold) => {
                held.untold.insert(collection_id, untold);
            }
            Err(error) => {
                tracing::warn!(%error, batch_id, "documents of chunks that did not end could not be listed");
            }
        }
    }
    if !held.untold.is_empty() {
        app.store().flush().await?;
    }
    let filter = Filter::eq("_internal.batch_id", batch_id);
    for collection_id in batch.dag_tiers.into_iter().flatten().flatten() {
        let reach = reach(&namespace_id, &collection_id);
        let count = app.store().count(&reach, Some(&filter)).await;
        if let Err(error) = &count {
            tracing::warn!(%error, batch_id, "the documents of a batch could not be counted");
        }
        held.counts.insert(collection_id, count.ok());
    }
    Ok(held)
}

fn reach(namespace_id: &str, collection_id: &str) -> Reach {
    Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: vec![collection_id.to_owned()],
        principal: None,
    }
}

/// Objects by collection of which the batch began to write and did not end.
async fn noted(
    db: &Db,
    namespace_id: &str,
    batch_id: &str,
) -> Result<BTreeMap<String, Vec<String>>> {
    let rows: Vec<(String, String)> = db.all(UNTOLD, args![namespace_id, batch_id]).await?;
    let mut noted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (collection_id, object_id) in rows {
        noted.entry(collection_id).or_default().push(object_id);
    }
    Ok(noted)
}

/// The documents that the batch has written of these objects.
async fn written(
    app: &App,
    reach: &Reach,
    batch_id: &str,
    object_ids: Vec<String>,
) -> Result<Untold> {
    let mut documents = Vec::new();
    for some in object_ids.chunks(OBJECTS) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        let filter = Filter::eq("_internal.batch_id", batch_id);
        let mut query = ListQuery {
            filter: Some(filter.and(belonging(&some))),
            limit: PAGE,
            ..Default::default()
        };
        loop {
            let page = app.store().list(reach, query.clone()).await?;
            let found = page.documents.into_iter();
            documents.extend(found.map(|one| (root(&one).to_owned(), one.document_id)));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
    }
    Ok(Untold {
        object_ids,
        documents,
    })
}

/// Documents that belong to these objects or first documents, whatever tier they are of: see
/// [`loupe_engine::ingest::root`].
pub fn belonging(roots: &[&str]) -> Filter {
    let is = |field: &str, ids: &[&str]| {
        let ids = ids.iter().map(|id| Value::from(*id)).collect();
        Filter::leaf(field, Operator::In, Value::Array(ids))
    };
    let documents: Vec<&str> = roots
        .iter()
        .copied()
        .filter(|id| id.starts_with("doc_"))
        .collect();
    let of_objects = is("_internal.lineage.root_object_id", roots);
    if documents.is_empty() {
        return of_objects;
    }
    Filter::Any(vec![
        of_objects,
        is("_internal.lineage.root_document_id", &documents),
        is("document_id", &documents),
    ])
}

/// Tells of what chunks that did not end have written, and counts it.
pub(super) async fn tell_untold(
    tx: &mut Tx,
    batch: &mut BatchModel,
    owner: &Owner,
    held: &Held,
    now: i64,
) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    for (collection_id, untold) in &held.untold {
        let place = (owner.namespace_id.as_str(), collection_id.as_str());
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for object_id in &untold.object_ids {
            // Those of the chunk that ends in this transaction were told of by it.
            if told(tx, place, &batch_id, object_id).await? {
                counts.insert(object_id, 0);
            }
        }
        let mut ids = Vec::new();
        for (object_id, document_id) in &untold.documents {
            if let Some(count) = counts.get_mut(object_id.as_str()) {
                *count += 1;
                ids.push(document_id.clone());
            }
        }
        for some in ids.chunks(PAGE) {
            tell_written(tx, batch, owner, collection_id, some, now).await?;
        }
        for (object_id, documents) in counts.into_iter().filter(|(_, count)| *count > 0) {
            tx.run(ADD_DOCUMENTS, args![&batch_id, object_id, documents])
                .await?;
        }
    }
    Ok(())
}
