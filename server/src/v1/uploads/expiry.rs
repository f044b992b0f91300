//! Uploads that nobody confirmed: their files go, and they have failed.

use std::collections::BTreeSet;

use chrono::{DateTime, Duration, Utc};
use loupe_wire::{TaskStatusEnum, UploadResponse};

use super::{parts, store};
use crate::{
    app::App,
    blob,
    error::{ApiError, Result},
};

/// Hours after the end of its address in which an upload may still be confirmed: a slow file ends after it began.
const GRACE_HOURS: i64 = 1;

const MESSAGE: &str = "the upload expired before it was confirmed: create a new one";

/// Whether the upload can no longer be confirmed.
pub(super) fn is_over(upload: &UploadResponse, now: DateTime<Utc>) -> bool {
    upload.expires_at + Duration::hours(GRACE_HOURS) <= now
}

pub(super) fn gone() -> ApiError {
    ApiError::gone("", MESSAGE)
}

/// Confirmations that began before this moment are dead: no request takes longer.
pub(super) fn dead_before(app: &App) -> i64 {
    let seconds = i64::try_from(app.config().limits.request_seconds).unwrap_or(60);
    app.clock().micros() - seconds * 1_000_000
}

/// Storages of buckets that are away in this sweep, as keys begin with them. Files stay there until their buckets go: nobody else
/// waits for them.
#[derive(Default)]
struct Away(BTreeSet<String>);

impl Away {
    fn has(&self, key: &str) -> bool {
        self.0.contains(blob::root(key))
    }

    /// Passes over a removal that failed because the storage is away.
    fn pass(&mut self, key: &str, removed: Result<()>) -> Result<()> {
        match removed {
            Err(error) if error.code() == Some(blob::AWAY) => {
                tracing::warn!(%error, "files of uploads stay in the storage of their bucket");
                self.0.insert(blob::root(key).to_owned());
                Ok(())
            }
            removed => removed,
        }
    }
}

/// Ends uploads that were not confirmed in time and removes what arrived of their files. A sweep that is cut off is
/// done again by the next.
///
/// # Errors
/// The database or the blob store fails.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let (expired, dead) = (
        now - Duration::hours(GRACE_HOURS).num_microseconds().unwrap_or(0),
        dead_before(app),
    );
    let mut away = Away::default();
    loop {
        let due = store::due(app.db(), expired, dead).await?;
        if due.is_empty() {
            return clear_late(app, expired, away).await;
        }
        let failed = app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let mut failed = Vec::with_capacity(due.len());
                    for (namespace_id, mut upload) in due {
                        // One that failed before keeps its reason.
                        if upload.status != TaskStatusEnum::Failed {
                            upload.status = TaskStatusEnum::Failed;
                            upload.message = Some(MESSAGE.into());
                        }
                        if store::fail(tx, &namespace_id, &upload, now, dead).await? {
                            failed.push((namespace_id, upload));
                        }
                    }
                    Ok(failed)
                })
            })
            .await?;
        for (namespace_id, upload) in &failed {
            parts::abandon(app, namespace_id, upload).await?;
            let folder = super::folder(upload);
            if !away.has(&folder) {
                let removed = app.blobs().delete_all(&folder).await;
                away.pass(&folder, removed)?;
            }
        }
        tracing::info!(uploads = failed.len(), "uploads expired");
        retire(app, ids(failed)).await?;
    }
}

/// Removes what lies where confirmed uploads arrived.
async fn clear_late(app: &App, expired: i64, mut away: Away) -> Result<()> {
    loop {
        let late = store::late(app.db(), expired).await?;
        if late.is_empty() {
            return Ok(());
        }
        for (namespace_id, upload) in &late {
            parts::abandon(app, namespace_id, upload).await?;
            let arrival = super::arrival(upload);
            // Uploads of older versions keep their file there.
            if arrival != upload.s3_key && !away.has(&arrival) {
                let removed = app.blobs().delete(&arrival).await;
                away.pass(&arrival, removed)?;
            }
        }
        retire(app, ids(late)).await?;
    }
}

fn ids(uploads: Vec<(String, UploadResponse)>) -> Vec<(String, String)> {
    let uploads = uploads.into_iter();
    uploads
        .map(|(namespace_id, upload)| (namespace_id, upload.upload_id))
        .collect()
}

/// The sweep has been.
async fn retire(app: &App, uploads: Vec<(String, String)>) -> Result<()> {
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (namespace_id, upload_id) in &uploads {
                    store::retire(tx, namespace_id, upload_id).await?;
                }
                Ok(())
            })
        })
        .await
}
