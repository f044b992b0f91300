//! Exports into a storage of the organization's own: the files that were written here are copied there, the manifest last,
//! so that whoever finds it finds them all.

use bytes::Bytes;
use futures::TryStreamExt;
use loupe_wire::{
    CollectionExportResponse, ExportDestination, ExportDestinationResult, Permission, Value,
};
use serde_json::json;

use super::{
    Work,
    running::{Written, signed},
};
use crate::{
    app::App,
    auth::{Caller, check_level},
    error::{ApiError, Result},
    jobs::Claim,
    v1::connections::{self, Folder},
};

const MANIFEST: &str = "manifest.json";
/// What it is called where the documents' file is called that.
const OTHER: &str = "export-manifest.json";

/// Whether the caller may have an export written there. The connection is known by its id from then on.
///
/// # Errors
/// There is no such connection, it or the key is not for writing, or the prefix is no place.
pub async fn check(app: &App, caller: &Caller, destination: &mut ExportDestination) -> Result<()> {
    check_level(caller, Permission::Write)?;
    if caller.principal().is_some() {
        let message = "a key of an end user writes into no storage of the organization";
        return Err(ApiError::forbidden("permission_denied", message));
    }
    let ExportDestination {
        connection_id,
        prefix,
    } = destination;
    let found = connections::for_writing(app, caller, connection_id, prefix).await?;
    *connection_id = found.connection_id;
    Ok(())
}

/// The folder of this export, as its connection is now: every export has its own, and a try that is repeated the same one.
///
/// # Errors
/// The connection is gone, or not for writing any more.
pub(super) async fn open(app: &App, claim: &Claim, work: &Work) -> Result<Option<Folder>> {
    let Some(destination) = &work.request.destination else {
        return Ok(None);
    };
    let caller = Caller::system(&claim.org_id);
    let ExportDestination {
        connection_id,
        prefix,
    } = destination;
    let found = connections::for_writing(app, &caller, connection_id, prefix).await?;
    Ok(Some(found.below(&work.export_id)))
}

/// Copies the files there.
///
/// # Errors
/// The storage does not take them.
pub(super) async fn deliver(
    app: &App,
    work: &Work,
    folder: &Folder,
    made: &CollectionExportResponse,
    files: &[Written],
) -> Result<ExportDestinationResult> {
    let mut written = 0;
    for file in files {
        let pieces = app.blobs().stream(&file.key, None).await?;
        let pieces = std::pin::pin!(pieces.map_err(ApiError::internal));
        written += folder
            .write((file.name.as_str(), file.size), pieces)
            .await?;
    }
    let manifest = manifest(work, folder, made, files);
    let bytes = serde_json::to_vec_pretty(&manifest).map_err(ApiError::internal)?;
    let size = bytes.len() as u64;
    let whole = futures::stream::iter([Ok(Bytes::from(bytes))]);
    let name = match files.iter().any(|file| file.name == MANIFEST) {
        true => OTHER,
        false => MANIFEST,
    };
    folder.write((name, size), whole).await?;
    Ok(ExportDestinationResult {
        connection_id: folder.connection_id.clone(),
        prefix: folder.address(),
        files: files.iter().map(|file| folder.key(&file.name)).collect(),
        manifest_key: folder.key(name),
        bytes_written: signed(written),
    })
}

fn manifest(
    work: &Work,
    folder: &Folder,
    made: &CollectionExportResponse,
    files: &[Written],
) -> Value {
    let file = |file: &Written| {
        json!({
            "key": folder.key(&file.name), "size_bytes": file.size, "sha256": file.sha256,
            "document_count": file.documents,
        })
    };
    json!({
        "export_id": work.export_id, "collection_id": work.collection_id, "format": made.format,
        "document_count": made.document_count, "exported_at": made.exported_at,
        "media": made.media, "files": files.iter().map(file).collect::<Vec<_>>(),
    })
}
