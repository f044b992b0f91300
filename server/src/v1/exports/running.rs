//! The task of an export: documents page by page into the blob store, and from there to where they are wanted.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream::try_unfold};
use loupe_engine::store::Reach;
use loupe_wire::{CollectionExportResponse, ExportFormat, ExportMediaSummary, ExportShard, Object};
use serde::Deserialize;
use serde_json::json;

use super::{
    KEPT_SECONDS, Work, columns::Columns, delivering, folder, pages::Pages, parquet, rows, samples,
};
use crate::{
    app::App,
    blob::safe_name,
    clock,
    error::{ApiError, Result},
    jobs::Claim,
    v1::{
        collections::{COLLECTIONS, lifecycle},
        connections,
        notifications::{self, Failure},
        tasks,
    },
};

/// A file of an export as the store keeps it.
pub(super) struct Written {
    pub name: String,
    pub key: String,
    pub size: u64,
    /// In hex.
    pub sha256: String,
    pub documents: i64,
}

/// Writes the files and ends the task with what tells of them.
///
/// # Errors
/// The collection is gone or put away, or a store fails.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let collection = COLLECTIONS
        .find(app.db(), &namespace_id, &work.collection_id)
        .await?;
    lifecycle::check_here(&collection)?;
    // Where nothing may be written any more, nothing is read.
    let destination = delivering::open(app, claim, &work).await?;
    let reach = Reach {
        namespace_id: namespace_id.clone(),
        collection_ids: vec![collection.id.clone()],
        principal: work.principal.clone(),
    };
    let pages = Pages::new(app, reach, &work)?;
    let folder = folder(&namespace_id, &work.export_id);
    let (files, media) = match work.request.format {
        ExportFormat::Webdataset => samples::write(app, pages, &folder, &collection.name).await?,
        _ => (
            vec![table(app, pages, &folder, &collection.name).await?],
            None,
        ),
    };
    // What was put away in between was not read whole. A namespace that is removed loses its collections before its files, so
    // a file that came behind its removal is known by that.
    if let Err(error) = lifecycle::still_here(app, &namespace_id, &collection.id).await {
        app.blobs().delete_all(&folder).await?;
        return Err(error);
    }
    let mut made = told(app, &work, &files, media);
    if let Some(destination) = destination {
        let delivered = delivering::deliver(app, &work, &destination, &made, &files).await;
        let why = delivered.as_ref().err().map(ApiError::message);
        let (org_id, connection_id) = (&claim.org_id, &destination.connection_id);
        connections::note_use(app, org_id, connection_id, why.as_deref()).await;
        made.destination = Some(delivered?);
    }
    let made = serde_json::to_value(made).map_err(ApiError::internal)?;
    tasks::succeed(app, claim, vec![made]).await
}

/// Tells people of an export that could not be written.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = COLLECTIONS.find(app.db(), namespace_id, &work.collection_id);
    let name = found.await.map(|found| found.name);
    let name = name.unwrap_or_else(|_| work.collection_id.clone());
    let failure = Failure {
        title: format!("The collection {name} could not be exported"),
        content: format!("{reason}. Export it again when the cause is gone."),
        about: json!({ "namespace_id": namespace_id, "collection_id": work.collection_id }),
    };
    notifications::tell_failure(app, claim, failure).await
}

/// What the answer says of the files: of several, the first one stands for itself, and all are shards.
fn told(
    app: &App,
    work: &Work,
    files: &[Written],
    media: Option<ExportMediaSummary>,
) -> CollectionExportResponse {
    let address = |file: &Written| {
        let blobs = app.blobs();
        blobs.signed_get_url(&file.key, Some(&file.name), KEPT_SECONDS)
    };
    let format = work.request.format;
    let mut made = CollectionExportResponse {
        download_url: files.first().map(address).unwrap_or_default(),
        s3_path: files
            .first()
            .map(|file| file.key.clone())
            .unwrap_or_default(),
        format,
        document_count: files.iter().map(|file| file.documents).sum(),
        file_size_bytes: signed(files.iter().map(|file| file.size).sum()),
        exported_at: clock::time(app.clock().micros()),
        media,
        ..Default::default()
    };
    if format == ExportFormat::Webdataset {
        let shard = |file: &Written| ExportShard {
            filename: file.name.clone(),
            s3_path: file.key.clone(),
            download_url: address(file),
            sample_count: file.documents,
            file_size_bytes: signed(file.size),
        };
        made.shards = files.iter().map(shard).collect();
        made.shard_count = i64::try_from(files.len()).ok();
        made.shard_pattern = files
            .first()
            .map(|file| samples::pattern(&file.name, files.len()));
    }
    made
}

pub(super) fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// All documents as one file.
async fn table(app: &App, pages: Pages, folder: &str, collection: &str) -> Result<Written> {
    let format = pages.request.format;
    let file = match format {
        ExportFormat::Csv => File::Csv(columns(pages.again()).await?),
        ExportFormat::Parquet => {
            let columns = columns(pages.again()).await?;
            File::Parquet(Box::new(parquet::Writer::new(columns)))
        }
        _ => File::Json,
    };
    let name = safe_name(&format!("{collection}.{}", tasks::name_of(format)));
    let key = format!("{folder}/{name}");
    let count = pages.count.clone();
    let pieces = std::pin::pin!(pieces(pages, file));
    let kept = app
        .blobs()
        .put_stream(&key, pieces, u64::MAX, |_, _| Ok(()))
        .await?;
    Ok(Written {
        name,
        key,
        size: kept.size,
        sha256: kept.sha256,
        documents: count.load(Ordering::Relaxed),
    })
}

/// The columns of everything that is asked for.
async fn columns(mut pages: Pages) -> Result<Columns> {
    let mut columns = Columns::default();
    while let Some(rows) = pages.rows().await? {
        rows.iter().try_for_each(|row| columns.add(row))?;
    }
    Ok(columns)
}

/// A file as far as it is written.
enum File {
    Json,
    Csv(Columns),
    Parquet(Box<parquet::Writer>),
}

impl File {
    fn start(&mut self) -> Vec<u8> {
        match self {
            Self::Json => b"[".to_vec(),
            Self::Csv(columns) => {
                let names: Vec<loupe_wire::Value> =
                    columns.iter().map(|(name, _)| name.into()).collect();
                rows::csv(names.iter().map(Some))
            }
            Self::Parquet(writer) => writer.start(),
        }
    }

    fn rows(&mut self, found: &[Object], is_first: bool) -> Vec<u8> {
        match self {
            Self::Json => rows::json(found, is_first),
            Self::Csv(columns) => {
                let line = |row: &Object| rows::csv(columns.iter().map(|(name, _)| row.get(name)));
                found.iter().flat_map(line).collect()
            }
            Self::Parquet(writer) => writer.rows(found),
        }
    }

    fn end(self) -> Vec<u8> {
        match self {
            Self::Json => b"]\n".to_vec(),
            Self::Csv(_) => Vec::new(),
            Self::Parquet(writer) => writer.end(),
        }
    }
}

/// The bytes of the file, as they come.
fn pieces(pages: Pages, mut file: File) -> impl Stream<Item = Result<Bytes>> {
    let start = Bytes::from(file.start());
    let state = Some((pages, file, true));
    let rest = try_unfold(state, |state| async move {
        let Some((mut pages, mut file, is_first)) = state else {
            return Ok(None);
        };
        Ok::<_, ApiError>(match pages.rows().await? {
            Some(rows) => {
                let bytes = Bytes::from(file.rows(&rows, is_first));
                let is_first = is_first && rows.is_empty();
                Some((bytes, Some((pages, file, is_first))))
            }
            None => Some((Bytes::from(file.end()), None)),
        })
    });
    let start = futures::stream::once(async move { Ok(start) });
    futures::StreamExt::chain(start, rest).try_filter(|bytes| {
        let any = !bytes.is_empty();
        async move { any }
    })
}
