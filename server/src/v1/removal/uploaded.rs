//! Files of confirmed uploads, once the object that was made of them is gone: every object has a copy of its own.

use loupe_wire::{TaskStatusEnum, UploadResponse};

use crate::{
    app::App,
    args,
    db::{Arg, Json},
    error::Result,
    v1::tasks::name_of,
};

crate::sql! {
    const OF_OBJECT = "SELECT data FROM uploads WHERE namespace_id = $1 AND object_id = $2 AND status IN ('COMPLETED', 'FAILED')";
    // Nothing can be made of it any more: the file may be sent again while its address is good.
    const FAIL = "UPDATE uploads SET status = $3, updated_at = $4, data = $5, batch_claimed_at = NULL WHERE namespace_id = $1 AND upload_id = $2 AND status = 'COMPLETED'";
    const FORGET = "UPDATE uploads SET object_id = NULL WHERE namespace_id = $1 AND upload_id = $2 AND status = 'FAILED'";
}

const MESSAGE: &str = "the object of this upload was deleted, and the file with it";

/// Removes the files of uploads of which these objects were made. An upload tells no longer of its object: what is sent again
/// is no duplicate of it.
///
/// # Errors
/// The database or the blob store fails; safe to repeat.
pub(super) async fn remove(app: &App, namespace_id: &str, object_ids: &[String]) -> Result<()> {
    for object_id in object_ids {
        let args = args![namespace_id, object_id];
        let found: Vec<(Json<UploadResponse>,)> = app.db().all(OF_OBJECT, args).await?;
        for (Json(upload),) in found {
            fail(app, namespace_id, upload.clone()).await?;
            // Not its folder: a file that was sent again may be there by now.
            app.blobs().delete(&upload.s3_key).await?;
            forget(app, namespace_id, upload.upload_id).await?;
        }
    }
    Ok(())
}

async fn fail(app: &App, namespace_id: &str, mut upload: UploadResponse) -> Result<()> {
    upload.status = TaskStatusEnum::Failed;
    (upload.object_id, upload.task_id) = (None, None);
    upload.message = Some(MESSAGE.into());
    let (namespace_id, now) = (namespace_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let status = name_of(upload.status);
                let id = upload.upload_id.clone();
                let args = args![namespace_id, id, status, now, Arg::json(&upload)];
                tx.run(FAIL, args).await.map(drop)
            })
        })
        .await
}

async fn forget(app: &App, namespace_id: &str, upload_id: String) -> Result<()> {
    let namespace_id = namespace_id.to_owned();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let args = args![namespace_id, upload_id];
                tx.run(FORGET, args).await.map(drop)
            })
        })
        .await
}
