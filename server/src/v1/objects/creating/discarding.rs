//! What becomes of the files of drafts that no object came of.

use super::{Draft, blobs, store};
use crate::{app::App, db::Tx, error::Result};

/// Removes the files of an object that was not made.
pub(super) async fn discard(app: &App, folder: &str) {
    if let Err(error) = app.blobs().delete_all(folder).await {
        tracing::warn!(%error, "files of an object that was not made stay behind");
    }
}

/// Where a draft may have been written.
pub(super) struct Drafted {
    bucket_id: String,
    object_id: String,
    pub folder: String,
    unique_key: Option<String>,
}

impl Drafted {
    pub(super) fn of(draft: &Draft) -> Self {
        Self {
            bucket_id: draft.object.bucket_id.clone(),
            object_id: draft.object.object_id.clone().unwrap_or_default(),
            folder: draft.folder.clone(),
            unique_key: draft.columns.unique_key.clone(),
        }
    }

    /// Whether an object has its files: its own, or the one that it updated.
    async fn is_there(&self, tx: &mut Tx, namespace_id: &str) -> Result<bool> {
        let (bucket_id, id) = (&self.bucket_id, &self.object_id);
        if store::find_in(tx, namespace_id, bucket_id, id)
            .await?
            .is_some()
        {
            return Ok(true);
        }
        let Some(key) = &self.unique_key else {
            return Ok(false);
        };
        let same = store::Same::UniqueKey(key);
        let found = store::find_same(tx, namespace_id, bucket_id, same).await?;
        let folder = format!("{}/", self.folder);
        let mut keys = found.iter().flat_map(blobs::keys);
        Ok(keys.any(|key| key.starts_with(&folder)))
    }
}

/// Removes the files of drafts after a write that failed. One whose answer alone was lost stands.
pub(super) async fn discard_unwritten(app: &App, namespace_id: &str, drafts: Vec<Drafted>) {
    let within = namespace_id.to_owned();
    let unwritten = app.db().write(move |tx| {
        Box::pin(async move {
            let mut unwritten = Vec::new();
            for draft in drafts {
                if !draft.is_there(tx, &within).await? {
                    unwritten.push(draft.folder);
                }
            }
            Ok(unwritten)
        })
    });
    match unwritten.await {
        Ok(unwritten) => {
            for folder in &unwritten {
                discard(app, folder).await;
            }
        }
        Err(error) => {
            tracing::warn!(%error, "files of objects that may not have been made stay behind");
        }
    }
}
