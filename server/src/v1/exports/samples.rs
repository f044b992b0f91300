//! Web datasets: tar files of so many samples each. A sample is a document: its row as JSON, and its files where they are
//! asked for, in members whose names begin alike.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures::{
    Stream, StreamExt, TryStreamExt,
    stream::{self, BoxStream, try_unfold},
};
use loupe_engine::store::Document;
use loupe_wire::{ExportMediaSummary, Value};
use tokio::sync::Mutex;

use super::{
    pages::Pages,
    rows,
    running::{Written, signed},
    tar,
};
use crate::{
    app::App,
    blob::{Blobs, safe_name},
    error::{ApiError, Result},
};

/// Shards of one export.
const MOST: usize = 1_000;

type Pieces = BoxStream<'static, Result<Bytes>>;

/// Writes the shards; answers them, and what became of the documents' files where these are asked for. Without a document
/// there is one shard without a sample.
pub(super) async fn write(
    app: &App,
    pages: Pages,
    folder: &str,
    collection: &str,
) -> Result<(Vec<Written>, Option<ExportMediaSummary>)> {
    let with_media = pages.request.include_media;
    let samples = Arc::new(Mutex::new(Samples::new(app, pages)));
    let mut shards: Vec<Written> = Vec::new();
    while samples.lock().await.any().await? || shards.is_empty() {
        if shards.len() >= MOST {
            let message =
                format!("the documents make more than {MOST} shards: raise samples_per_shard");
            return Err(ApiError::bad_request("too_many_shards", message));
        }
        app.blobs()
            .check_room(app.config().limits.free_disk_bytes)?;
        let name = safe_name(&format!("{collection}-{:06}.tar", shards.len()));
        let key = format!("{folder}/{name}");
        let before = samples.lock().await.taken;
        let pieces = shard(samples.clone()).await;
        let kept = app
            .blobs()
            .put_stream(&key, pieces, u64::MAX, |_, _| Ok(()))
            .await?;
        shards.push(Written {
            name,
            key,
            size: kept.size,
            sha256: kept.sha256,
            documents: samples.lock().await.taken - before,
        });
    }
    let media = samples.lock().await.media.clone();
    Ok((shards, with_media.then_some(media)))
}

/// The names of all shards, in the notation of shells.
pub(super) fn pattern(first: &str, count: usize) -> String {
    let stem = first.strip_suffix("000000.tar").unwrap_or(first);
    format!("{stem}{{000000..{:06}}}.tar", count.saturating_sub(1))
}

/// The bytes of the next shard, as they come.
async fn shard(samples: Arc<Mutex<Samples>>) -> Pieces {
    let left = samples.lock().await.pages.request.samples_per_shard;
    let found = try_unfold((samples, left), |(samples, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let sample = samples.lock().await.next().await?;
        Ok::<_, ApiError>(sample.map(|sample| (sample, (samples, left - 1))))
    });
    let end = stream::once(async { Ok(Bytes::from(tar::end())) });
    found.try_flatten().chain(end).boxed()
}

/// A file of a document.
struct Media {
    key: String,
    /// Its member's.
    name: String,
    size: u64,
}

/// The documents, one by one.
struct Samples {
    app: App,
    pages: Pages,
    read: VecDeque<Document>,
    taken: i64,
    media: ExportMediaSummary,
}

impl Samples {
    fn new(app: &App, pages: Pages) -> Self {
        Self {
            app: app.clone(),
            pages,
            read: VecDeque::new(),
            taken: 0,
            media: ExportMediaSummary::default(),
        }
    }

    /// Whether there is another one.
    async fn any(&mut self) -> Result<bool> {
        while self.read.is_empty() {
            match self.pages.documents().await? {
                Some(found) => self.read.extend(found),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The members of the next one.
    async fn next(&mut self) -> Result<Option<Pieces>> {
        if !self.any().await? {
            return Ok(None);
        }
        let Some(document) = self.read.pop_front() else {
            return Ok(None);
        };
        let at = self.app.clock().micros() / 1_000_000;
        let id = document.document_id.clone();
        let files = match self.pages.request.include_media {
            true => {
                let internal = document.payload.get("_internal");
                let internal = internal.cloned().unwrap_or_default();
                self.files(&id, &internal).await?
            }
            false => Vec::new(),
        };
        let row = rows::row(document, &self.pages.request);
        let row = serde_json::to_vec(&row).map_err(ApiError::internal)?;
        let size = row.len() as u64;
        let row = [
            tar::head(&format!("{id}.json"), size, at),
            row,
            tar::rest(size),
        ]
        .concat();
        let blobs = self.app.blobs().clone();
        let files = stream::iter(files)
            .then(move |file| opened(blobs.clone(), file, at))
            .try_flatten();
        self.taken += 1;
        let row = stream::once(async { Ok(Bytes::from(row)) });
        Ok(Some(row.chain(files).boxed()))
    }

    /// The files of a document that there are, counted.
    async fn files(&mut self, id: &str, internal: &Value) -> Result<Vec<Media>> {
        let most = self.app.config().limits.upload_bytes.min(tar::LARGEST);
        let (mut found, mut names) = (Vec::new(), HashSet::new());
        for blob in internal["document_blobs"].as_array().into_iter().flatten() {
            let url = blob["url"].as_str().unwrap_or_default();
            let Some(key) = url.strip_prefix("blob://") else {
                continue;
            };
            match self.app.blobs().head(key).await {
                Ok(Some(stored)) if stored.size <= most => found.push(Media {
                    key: key.to_owned(),
                    name: format!("{id}.{}", member(blob, &mut names)),
                    size: stored.size,
                }),
                Ok(Some(_)) => self.media.members_skipped_too_large += 1,
                Ok(None) => self.media.objects_not_found += 1,
                // The store may be back soon: the whole export is tried again.
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => self.media.download_failures += 1,
            }
        }
        self.media.members_written += i64::try_from(found.len()).unwrap_or(i64::MAX);
        self.media.media_bytes += signed(found.iter().map(|file| file.size).sum());
        match found.is_empty() {
            true => self.media.samples_without_media += 1,
            false => self.media.samples_with_media += 1,
        }
        Ok(found)
    }
}

/// What a member is called behind the document's id: the field that the file is of, and what it ends in.
fn member(blob: &Value, taken: &mut HashSet<String>) -> String {
    let plain = |text: &str, most: usize| -> String {
        let plain = text
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c));
        plain.take(most).collect()
    };
    let field = plain(blob["field"].as_str().unwrap_or_default(), 40);
    let field = if field.is_empty() {
        "file".to_owned()
    } else {
        field
    };
    let filename = blob["filename"].as_str().unwrap_or_default();
    let end = filename.rsplit_once('.').map_or("", |(_, end)| end);
    let end = plain(end, 8).to_ascii_lowercase();
    let end = if end.is_empty() {
        "bin".to_owned()
    } else {
        end
    };
    let mut name = format!("{field}.{end}");
    let mut number = 1;
    while !taken.insert(name.clone()) {
        name = format!("{field}_{number}.{end}");
        number += 1;
    }
    name
}

/// The bytes of a member, in whole blocks.
async fn opened(
    blobs: Blobs,
    file: Media,
    at: i64,
) -> Result<impl Stream<Item = Result<Bytes>> + Send> {
    let Media { key, name, size } = file;
    // It was there a moment ago, and is counted.
    let broken = || ApiError::unavailable("", "a file changed while it was exported");
    let pieces = blobs.stream(&key, None).await.map_err(|_| broken())?;
    let exactly = try_unfold(
        (pieces.boxed(), size),
        move |(mut pieces, left)| async move {
            match pieces.try_next().await.map_err(ApiError::internal)? {
                Some(piece) => match left.checked_sub(piece.len() as u64) {
                    Some(left) => Ok(Some((piece, (pieces, left)))),
                    None => Err(broken()),
                },
                None if left > 0 => Err(broken()),
                None => Ok(None),
            }
        },
    );
    let head = stream::once(async move { Ok(Bytes::from(tar::head(&name, size, at))) });
    let rest = stream::once(async move { Ok(Bytes::from(tar::rest(size))) });
    Ok(head.chain(exactly).chain(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_a_sample_have_names_of_their_own() {
        let mut taken = HashSet::new();
        let mut name = |field: &str, filename: &str| {
            member(&json!({"field": field, "filename": filename}), &mut taken)
        };
        assert_eq!(name("image", "a.b.PNG"), "image.png");
        assert_eq!(name("image", "other.png"), "image_1.png");
        assert_eq!(name("image", "other.jpg"), "image.jpg");
        assert_eq!(name("my.field/../x", "no end"), "myfieldx.bin");
        assert_eq!(name("", ""), "file.bin");
    }

    #[test]
    fn shards_are_named_together() {
        assert_eq!(
            pattern("films-000000.tar", 12),
            "films-{000000..000011}.tar"
        );
    }
}
