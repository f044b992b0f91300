//! What a snapshot keeps page by page: objects, documents and annotations as lines of JSON, and the files that they name.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, stream};
use loupe_engine::store::{Document, ListQuery, Reach, WithVectors};
use loupe_wire::{ObjectResponse, reading};
use tokio::io::{AsyncBufRead, Lines};

use super::capture::Capture;
use crate::{
    app::App,
    args, blob,
    db::Json,
    error::{ApiError, Result},
    v1::{annotations, objects::blobs},
};

/// Rows read at once.
const PAGE: usize = 200;
/// Where the objects of a bucket begin: moment and id, the newest first.
const LATEST: (i64, String) = (i64::MAX, String::new());
/// Bytes of lines that are written at once.
const PIECE: usize = 1 << 20;

crate::sql! {
    // In the order of the index that leads to them.
    const OBJECTS = "SELECT object_id, bucket_id, key_prefix, unique_key, content_hash, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $3 AND (created_at < $3 OR object_id > $4) ORDER BY created_at DESC, object_id LIMIT $5";
}

crate::row! {
    /// An object with its columns, as a line has them.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct ObjectRow {
        pub object_id: String,
        pub bucket_id: String,
        pub key_prefix: Option<String>,
        pub unique_key: Option<String>,
        pub content_hash: String,
        pub status: String,
        pub size_bytes: i64,
        pub data: Json<ObjectResponse>,
    }
}

impl Capture<'_> {
    /// Keeps files beside the rows that name them.
    fn files(&self) -> Files {
        Files {
            app: self.app.clone(),
            folder: self
                .snapshot
                .s3_objects_copied
                .then(|| format!("{}/files", self.snapshot.s3_prefix)),
            copied: self.copied.clone(),
        }
    }

    pub(super) fn object_lines(
        &self,
        buckets: Vec<String>,
        counted: Arc<AtomicI64>,
    ) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, files) = (self.app.clone(), self.files());
        let namespace_id = self.snapshot.namespace_id.clone();
        stream::try_unfold((buckets, LATEST), move |(mut buckets, after)| {
            let (app, files) = (app.clone(), files.clone());
            let (namespace_id, counted) = (namespace_id.clone(), counted.clone());
            async move {
                let Some(bucket_id) = buckets.last() else {
                    return Ok(None);
                };
                let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
                let args = args![namespace_id, bucket_id, after.0, after.1, limit];
                let rows: Vec<ObjectRow> = app.db().all(OBJECTS, args).await?;
                for row in &rows {
                    for key in blobs::keys(&row.data.0) {
                        files.copy(&key).await?;
                    }
                }
                let next = match rows.last().filter(|_| rows.len() == PAGE) {
                    Some(row) => {
                        let made = row.data.0.created_at.map_or(0, |at| at.timestamp_micros());
                        (made, row.object_id.clone())
                    }
                    None => {
                        buckets.pop();
                        LATEST
                    }
                };
                Ok(Some((lines(&rows, &counted)?, (buckets, next))))
            }
        })
    }

    pub(super) fn document_lines(
        &self,
        collection_id: &str,
        counted: Arc<AtomicI64>,
    ) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, files) = (self.app.clone(), self.files());
        let reach = Reach {
            namespace_id: self.snapshot.namespace_id.clone(),
            collection_ids: vec![collection_id.to_owned()],
            principal: None,
        };
        let query = ListQuery {
            limit: PAGE,
            vectors: match self.snapshot.include_vectors {
                true => WithVectors::Yes,
                false => WithVectors::No,
            },
            ..ListQuery::default()
        };
        stream::try_unfold(Some(query), move |query| {
            let (app, files) = (app.clone(), files.clone());
            let (reach, counted) = (reach.clone(), counted.clone());
            async move {
                let Some(query) = query else { return Ok(None) };
                let page = app.store().list(&reach, query.clone()).await?;
                for document in &page.documents {
                    let named = document
                        .payload
                        .get("_internal")
                        .and_then(|internal| internal.get("document_blobs")?.as_array());
                    for url in named
                        .into_iter()
                        .flatten()
                        .filter_map(|blob| blob["url"].as_str())
                    {
                        if let Some(key) = url.strip_prefix("blob://") {
                            files.copy(key).await?;
                        }
                    }
                }
                let next = page.next.map(|cursor| ListQuery {
                    cursor: Some(cursor),
                    ..query
                });
                Ok(Some((lines(&page.documents, &counted)?, next)))
            }
        })
    }

    /// Annotations with all that they have said, the newest first.
    pub(super) fn annotation_lines(
        &self,
        counted: Arc<AtomicI64>,
    ) -> impl Stream<Item = Result<Bytes>> + use<> {
        let (app, namespace_id) = (self.app.clone(), self.snapshot.namespace_id.clone());
        stream::try_unfold(Some(annotations::NEWEST), move |after| {
            let (app, namespace_id) = (app.clone(), namespace_id.clone());
            let counted = counted.clone();
            async move {
                let Some(after) = after else { return Ok(None) };
                let rows = annotations::page(app.db(), &namespace_id, &after, PAGE).await?;
                let last = rows.last().filter(|_| rows.len() == PAGE);
                let next = last.map(annotations::Line::place);
                Ok(Some((lines(&rows, &counted)?, next)))
            }
        })
    }
}

/// Keeps files for a snapshot that copies them.
#[derive(Clone)]
struct Files {
    app: App,
    folder: Option<String>,
    copied: Arc<(AtomicI64, AtomicI64)>,
}

impl Files {
    async fn copy(&self, key: &str) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let blobs = self.app.blobs();
        // One that is gone was deleted since its row was read.
        let Some(stored) = blobs.head(key).await? else {
            return Ok(());
        };
        let copy = format!("{folder}/{key}");
        // Objects and documents name the same files.
        if blobs.head(&copy).await?.is_none() {
            blobs.copy(key, &copy).await?;
            self.copied.0.fetch_add(1, Ordering::Relaxed);
            // Of a file that stays at its source, where that is.
            let bytes = match blob::is_linked(key) {
                true => 0,
                false => i64::try_from(stored.size).unwrap_or(0),
            };
            self.copied.1.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn lines(rows: &[impl serde::Serialize], counted: &AtomicI64) -> Result<Bytes> {
    let mut text = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut text, row).map_err(ApiError::internal)?;
        text.push(b'\n');
    }
    let count = i64::try_from(rows.len()).unwrap_or(0);
    counted.fetch_add(count, Ordering::Relaxed);
    Ok(text.into())
}

/// The lines of a file of documents but those made of some objects.
pub(super) fn without(
    lines: Lines<impl AsyncBufRead + Unpin>,
    gone: HashSet<String>,
    counted: Arc<AtomicI64>,
) -> impl Stream<Item = Result<Bytes>> {
    stream::try_unfold((lines, gone), move |(mut lines, gone)| {
        let counted = counted.clone();
        async move {
            let mut piece = String::new();
            while piece.len() < PIECE {
                let Some(line) = lines.next_line().await.map_err(ApiError::internal)? else {
                    break;
                };
                let document: Document = reading::from_str(&line).map_err(ApiError::internal)?;
                let internal = document.payload.get("_internal");
                let root =
                    internal.and_then(|of| of.get("lineage")?.get("root_object_id")?.as_str());
                if root.is_some_and(|root| gone.contains(root)) {
                    continue;
                }
                piece += &line;
                piece.push('\n');
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), (lines, gone))))
        }
    })
}
