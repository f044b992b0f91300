//! What was made of objects that are removed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use loupe_engine::{
    filter::Filter,
    store::{Document, ListQuery, Reach, Selection},
};
use loupe_wire::{CollectionResponse, Value};
use serde_json::json;

use crate::{
    app::App,
    blob,
    db::Record,
    error::{ApiError, Result},
    v1::{
        annotations::signal,
        collections::{self, COLLECTIONS, lifecycle},
        documents,
        namespaces::push_event,
    },
};

/// Documents read at once to find their files.
const PAGE: usize = 1000;

/// Removes documents made from these objects, in every collection of the namespace. Those that are put away lose them as
/// they are brought back.
pub(super) async fn remove_documents(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    object_ids: &[String],
) -> Result<()> {
    let mut before = moments(app, namespace_id).await?;
    if before.is_empty() || object_ids.is_empty() {
        return Ok(());
    }
    loop {
        // What was written through the API before must not come back behind it.
        documents::settle_all(app, namespace_id).await?;
        let reach = Reach {
            namespace_id: namespace_id.into(),
            collection_ids: before.keys().cloned().collect(),
            principal: None,
        };
        remove_from(app, org_id, &reach, object_ids).await?;
        note_away(app, namespace_id, object_ids).await?;
        // What came back in between may have brought them along.
        let now = moments(app, namespace_id).await?;
        if now.iter().all(|(id, at)| before.get(id) == Some(at)) {
            break;
        }
        before = now;
    }
    Ok(())
}

/// When each collection of the namespace last came into its state.
async fn moments(app: &App, namespace_id: &str) -> Result<BTreeMap<String, Option<DateTime<Utc>>>> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    let moment = |record: Record<CollectionResponse>| {
        let at = record.last_lifecycle_transition;
        (record.id, at)
    };
    Ok(all.into_iter().map(moment).collect())
}

/// Notes the objects for every collection that is put away, under the lock of whoever brings it back.
async fn note_away(app: &App, namespace_id: &str, object_ids: &[String]) -> Result<()> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    if !all.iter().any(|one| lifecycle::is_away(one)) {
        return Ok(());
    }
    let (namespace_id, ids) = (namespace_id.to_owned(), object_ids.to_vec());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let away = |one: &Record<CollectionResponse>| lifecycle::is_away(one);
                for one in COLLECTIONS.hold_some(tx, &namespace_id, away).await? {
                    if lifecycle::is_away(&one) {
                        collections::store::forget(tx, &namespace_id, &one.id, &ids).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

/// Removes documents made from these objects in some collections, with the files made with them.
///
/// # Errors
/// A store fails; safe to repeat.
pub async fn remove_from(
    app: &App,
    org_id: &str,
    reach: &Reach,
    object_ids: &[String],
) -> Result<()> {
    if object_ids.is_empty() {
        return Ok(());
    }
    for some in object_ids.chunks(PAGE) {
        let filter = json!({
            "field": "_internal.lineage.root_object_id", "operator": "in", "value": some,
        });
        let filter = Filter::parse(&filter).map_err(|error| ApiError::internal(error.msg))?;
        let mut query = ListQuery {
            filter: Some(filter.clone()),
            limit: PAGE,
            ..Default::default()
        };
        let (mut gone, mut annotated) = (Vec::new(), Vec::new());
        loop {
            let page = app.store().list(reach, query.clone()).await?;
            tell(app, org_id, &reach.namespace_id, &page.documents).await?;
            remove_generated(app, &reach.namespace_id, &page.documents).await?;
            let ids = page.documents.into_iter().map(|one| one.document_id);
            let ids: Vec<String> = ids.collect();
            if signal::note_removal(app, &reach.namespace_id, &ids).await? {
                annotated.extend(ids.iter().cloned());
            }
            gone.extend(ids);
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        // Who changes one of them right now has read it, and is done before.
        let turn = app.writers.turn(&gone).await;
        app.store()
            .delete(reach, Selection::Matching(Some(filter)))
            .await?;
        drop(turn);
        signal::forget_documents(app, &reach.namespace_id, &annotated).await?;
    }
    Ok(app.store().flush().await?)
}

/// Tells that documents go. A process that dies before they are gone tells it once more: better twice than never.
async fn tell(app: &App, org_id: &str, namespace_id: &str, documents: &[Document]) -> Result<()> {
    let events = documents::removal_events(namespace_id, documents);
    tell_events(app, org_id, namespace_id, events).await
}

/// The same of events that were made already.
///
/// # Errors
/// The database fails.
pub async fn tell_events(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    events: Vec<(&'static str, Value)>,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (kind, payload) in events {
                    push_event(tx, &org_id, &namespace_id, kind, payload, now).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Removes thumbnails and other files that were made with documents.
async fn remove_generated(app: &App, namespace_id: &str, documents: &[Document]) -> Result<()> {
    for document in documents {
        let Document {
            collection_id,
            document_id,
            ..
        } = document;
        let internal = document.payload.get("_internal");
        let files = internal.and_then(|internal| internal.get("document_blobs")?.as_array());
        let own = |file: &Value| {
            let key = file.get("url")?.as_str()?.strip_prefix("blob://")?;
            let root = blob::root(key);
            let folder = format!("{root}/documents/{collection_id}/{document_id}");
            let is_in = key.strip_prefix(&folder)?.starts_with('/');
            (is_in && root.split('/').next() == Some(namespace_id)).then_some(folder)
        };
        let folders: BTreeSet<String> = files.into_iter().flatten().filter_map(own).collect();
        for folder in &folders {
            app.blobs().delete_all(folder).await?;
        }
    }
    Ok(())
}
