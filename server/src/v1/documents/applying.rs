//! What was journalled, put into the document store.

use std::collections::HashSet;

use loupe_engine::store::{Reach, Selection, StoreError};

use super::{journal::Entry, others};
use crate::{app::App, error::Result};

/// Applies an entry that was just written. One that is refused for good is taken back: a start would find it refused again.
///
/// Where other processes may write its documents at the same time, `in_order` has what was journalled last stay, whoever comes to
/// the store first. Answers the documents that were written behind this entry.
pub(super) async fn apply(
    app: &App,
    seq: i64,
    entry: Entry,
    in_order: bool,
) -> Result<HashSet<String>> {
    let (namespace_id, collection_id) = entry.place();
    let place = (namespace_id.to_owned(), collection_id.to_owned());
    let ids: HashSet<String> = match in_order {
        true => entry.ids().cloned().collect(),
        false => HashSet::new(),
    };
    app.journalled.note(seq);
    let applied = put(app, entry).await;
    // The journal keeps what comes behind an entry until that one is known to be applied.
    let behind = match applied.is_ok() && in_order {
        true => put_behind(app, (&place.0, &place.1), seq, &ids).await,
        false => Ok(HashSet::new()),
    };
    match (&applied, &behind) {
        (Ok(()), Ok(_)) | (Err(StoreError::Invalid(_)), _) => app.journal_applied(seq),
        // Whichever process puts it into the store again.
        _ => app.journalled.forget(&[seq]),
    }
    applied?;
    behind
}

/// Puts again what others have journalled of documents behind an entry, until nothing more comes.
async fn put_behind(
    app: &App,
    place: (&str, &str),
    mut after: i64,
    ids: &HashSet<String>,
) -> Result<HashSet<String>> {
    let mut behind = HashSet::new();
    loop {
        let mut is_more = false;
        for (seq, mut entry) in others::behind(app, place, after).await? {
            after = seq;
            entry.retain(|id| ids.contains(id));
            let its: Vec<String> = entry.ids().cloned().collect();
            if its.is_empty() {
                continue;
            }
            is_more = true;
            match put(app, entry).await {
                // Its own caller is told.
                Err(StoreError::Invalid(_)) => {}
                other => {
                    other?;
                    behind.extend(its);
                }
            }
        }
        if !is_more {
            return Ok(behind);
        }
    }
}

pub(super) async fn put(app: &App, entry: Entry) -> std::result::Result<(), StoreError> {
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
