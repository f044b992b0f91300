//! The task of an export: documents page by page into the blob store.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream::try_unfold};
use loupe_engine::{
    filter::Filter,
    store::{ListQuery, Reach, WithVectors},
};
use loupe_wire::{CollectionExportRequest, CollectionExportResponse, ExportFormat, Object};
use serde::Deserialize;

use super::{KEPT_SECONDS, Work, columns::Columns, folder, parquet, rows};
use crate::{
    app::App,
    blob::safe_name,
    clock,
    error::{ApiError, Result},
    jobs::Claim,
    list::parse_filter,
    v1::{
        collections::{COLLECTIONS, lifecycle},
        documents, tasks,
    },
};

/// Documents read at once; with vectors of a thousand numbers a page is some megabytes.
const PAGE: usize = 500;

/// Writes the file and ends the task with what tells of it.
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
    let reach = Reach {
        namespace_id: namespace_id.clone(),
        collection_ids: vec![collection.id.clone()],
        principal: work.principal.clone(),
    };
    let pages = Pages::new(app, reach, &work)?;
    let file = match work.request.format {
        ExportFormat::Csv => File::Csv(columns(pages.clone()).await?),
        ExportFormat::Parquet => {
            let columns = columns(pages.clone()).await?;
            File::Parquet(Box::new(parquet::Writer::new(columns)))
        }
        _ => File::Json,
    };
    let extension = tasks::name_of(work.request.format);
    let name = safe_name(&format!("{}.{extension}", collection.name));
    let key = format!("{}/{name}", folder(&namespace_id, &work.export_id));
    let count = pages.count.clone();
    let pieces = std::pin::pin!(pieces(pages, file));
    let kept = app
        .blobs()
        .put_stream(&key, pieces, u64::MAX, |_, _| Ok(()))
        .await?;
    // What was put away in between was not read whole. A namespace that is removed loses its collections before its files, so
    // a file that came behind its removal is known by that.
    if let Err(error) = lifecycle::still_here(app, &namespace_id, &collection.id).await {
        let folder = folder(&namespace_id, &work.export_id);
        app.blobs().delete_all(&folder).await?;
        return Err(error);
    }
    let made = CollectionExportResponse {
        download_url: app.blobs().signed_get_url(&key, Some(&name), KEPT_SECONDS),
        s3_path: key,
        format: work.request.format,
        document_count: count.load(Ordering::Relaxed),
        file_size_bytes: i64::try_from(kept.size).unwrap_or(i64::MAX),
        exported_at: clock::time(app.clock().micros()),
        ..Default::default()
    };
    let made = serde_json::to_value(made).map_err(ApiError::internal)?;
    tasks::succeed(app, claim, vec![made]).await
}

/// The rows that are asked for, page by page.
#[derive(Clone)]
struct Pages {
    app: App,
    reach: Reach,
    request: CollectionExportRequest,
    /// None when the last page was read.
    query: Option<ListQuery>,
    left: usize,
    /// Rows of this walk so far.
    count: Arc<AtomicI64>,
}

impl Pages {
    fn new(app: &App, reach: Reach, work: &Work) -> Result<Self> {
        let request = &work.request;
        let asked: Option<Filter> = request
            .filters
            .as_ref()
            .map(|filter| parse_filter(&filter.0, "filters"))
            .transpose()?;
        let filter = match (asked, only(work)) {
            (Some(asked), Some(only)) => Some(asked.and(only)),
            (asked, only) => asked.or(only),
        };
        let query = ListQuery {
            filter,
            limit: PAGE,
            vectors: match request.include_vectors {
                true => WithVectors::Yes,
                false => WithVectors::No,
            },
            ..Default::default()
        };
        let most = request.sample_size.map(usize::try_from);
        Ok(Self {
            app: app.clone(),
            reach,
            request: request.clone(),
            query: Some(query),
            left: most.and_then(std::result::Result::ok).unwrap_or(usize::MAX),
            count: Arc::default(),
        })
    }

    async fn next(&mut self) -> Result<Option<Vec<Object>>> {
        let Some(query) = self.query.take().filter(|_| self.left > 0) else {
            return Ok(None);
        };
        let page = self.app.store().list(&self.reach, query.clone()).await?;
        self.query = page.next.map(|next| ListQuery {
            cursor: Some(next),
            ..query
        });
        let documents = page.documents.into_iter().take(self.left);
        let found: Vec<Object> = documents
            .map(|document| rows::row(document, &self.request))
            .collect();
        self.left -= found.len();
        let added = i64::try_from(found.len()).unwrap_or(0);
        self.count.fetch_add(added, Ordering::Relaxed);
        Ok(Some(found))
    }
}

/// What the key's scopes leave of the collection; nothing where they cover it.
fn only(work: &Work) -> Option<Filter> {
    let patterns = work.only.as_ref()?.iter().map(String::as_str);
    // What names no document covers none.
    Some(documents::of_patterns(patterns).unwrap_or(Filter::Any(Vec::new())))
}

/// The columns of everything that is asked for.
async fn columns(pages: Pages) -> Result<Columns> {
    let mut pages = Pages {
        count: Arc::default(),
        ..pages
    };
    let mut columns = Columns::default();
    while let Some(rows) = pages.next().await? {
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
        Ok::<_, ApiError>(match pages.next().await? {
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
