//! Files of objects and documents: kept by `object_store` in a folder or a bucket, addressed by URLs that are signed.
//!
//! A key is `{namespace}/{kind}/{id}/{name}`; nobody outside picks one, and a key without a signature opens nothing. Files of
//! buckets that have a destination are elsewhere, and their keys name the place; files that stay at their source are links.

mod addresses;
mod elsewhere;
mod links;
mod names;
pub(crate) mod parts;
mod routes;
mod s3;
mod sending;

use std::{
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, TryStreamExt};
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt, WriteMultipart, local::LocalFileSystem,
    path::Path as Key,
};
use sha2::{Digest, Sha256};
use tokio::io::AsyncBufRead;
use tokio_util::io::StreamReader;

pub use elsewhere::{AWAY, Found, Places, root};
pub use links::{LINK, is_linked};
pub use names::{safe_name, shown_name};
pub use routes::router;
pub use sending::Held;

use crate::{
    clock::Clock,
    config,
    error::{ApiError, Result},
};

/// Cheap to clone.
#[derive(Clone)]
pub struct Blobs(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    store: Arc<dyn ObjectStore>,
    place: Place,
    secret: [u8; 32],
    address: String,
    clock: Clock,
}

/// Where files are kept.
#[derive(Clone)]
enum Place {
    /// A folder of this machine, which has to have room.
    Folder(PathBuf),
    Bucket {
        bucket: s3::Bucket,
        /// Callers send and read files there themselves.
        direct: bool,
        /// What this machine keeps beside them has to have room.
        room: Option<PathBuf>,
    },
}

/// What is known of a stored file.
#[derive(Debug, Clone)]
pub struct Stored {
    pub size: u64,
    pub etag: String,
    /// When it was written, of a file that was looked at.
    pub last_modified: Option<DateTime<Utc>>,
}

/// A file that came in pieces.
#[derive(Debug, Clone)]
pub struct Kept {
    pub size: u64,
    /// In hex.
    pub sha256: String,
    pub etag: String,
}

/// Bytes that go to the store at once. At most two such parts wait for it.
const PART: usize = 5 << 20;

/// Files of a bucket that are deleted at once.
const DELETING: usize = 16;

/// Writes every piece; answers size and SHA-256 in hex.
async fn receive(
    writer: &mut WriteMultipart,
    pieces: &mut (impl Stream<Item = Result<Bytes>> + Unpin),
    limit: u64,
) -> Result<(u64, String)> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    while let Some(piece) = pieces.try_next().await? {
        size += piece.len() as u64;
        if size > limit {
            return Err(too_large(limit));
        }
        hash.update(&piece);
        writer.wait_for_capacity(2).await.map_err(failed)?;
        writer.put(piece);
    }
    Ok((size, hex::encode(hash.finalize())))
}

fn too_large(limit: u64) -> ApiError {
    ApiError::payload_too_large("", format!("the file is larger than {limit} bytes"))
}

impl Blobs {
    /// Files under `folder`; `secret` signs addresses that start with `address`.
    ///
    /// # Errors
    /// A folder that cannot be made or read.
    pub fn open(
        folder: &FilePath,
        secret: [u8; 32],
        address: String,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let store = LocalFileSystem::new_with_prefix(folder)?
            .with_automatic_cleanup(true)
            .with_fsync(true);
        Ok(Self(Arc::new(Inner {
            store: Arc::new(store),
            place: Place::Folder(folder.to_owned()),
            secret,
            address,
            clock,
        })))
    }

    /// Files in a bucket, which several processes share; `client` asks it. `room` is the folder of what this machine keeps
    /// beside them, if it keeps something.
    ///
    /// # Errors
    /// Settings that name no bucket or open none.
    pub fn open_bucket(
        config: &config::Blobs,
        client: reqwest::Client,
        room: Option<PathBuf>,
        secret: [u8; 32],
        address: String,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let bucket = s3::Bucket::open(config, client)?;
        Ok(Self(Arc::new(Inner {
            store: bucket.store(),
            place: Place::Bucket {
                bucket,
                direct: config.direct,
                room,
            },
            secret,
            address,
            clock,
        })))
    }

    /// The same, with the files of buckets that have a destination where `places` says.
    #[must_use]
    pub fn with_places(self, places: Arc<dyn Places>) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.store = Arc::new(elsewhere::Routed::new(inner.store, places));
        Self(Arc::new(inner))
    }

    /// The bucket that callers send this file to and read it from themselves. What is elsewhere goes through this server, so
    /// that nobody needs a way there, nor has a console to be let in.
    fn direct_for(&self, key: &str) -> Option<&s3::Bucket> {
        let is_here = !elsewhere::is_elsewhere(key) && !is_linked(key);
        self.direct().filter(|_| is_here)
    }

    /// The bucket that callers send files to and read them from themselves.
    fn direct(&self) -> Option<&s3::Bucket> {
        match &self.0.place {
            Place::Bucket {
                bucket,
                direct: true,
                ..
            } => Some(bucket),
            _ => None,
        }
    }

    /// The origin beside this server's that addresses of files lead to.
    pub fn origin(&self) -> Option<&str> {
        self.direct().map(s3::Bucket::origin)
    }

    pub async fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<Stored> {
        let mut bytes = bytes.into();
        let size = bytes.len() as u64;
        let is_far = matches!(self.0.place, Place::Bucket { .. }) || elsewhere::is_elsewhere(key);
        if bytes.len() > PART && is_far {
            // One request of any size would outlast the patience with the store.
            let pieces = std::iter::from_fn(|| {
                let piece = bytes.split_to(bytes.len().min(PART));
                (!piece.is_empty()).then_some(Ok(piece))
            });
            let pieces = futures::stream::iter(pieces);
            let kept = self.put_stream(key, pieces, size, |_, _| Ok(())).await?;
            let Kept { size, etag, .. } = kept;
            let last_modified = None;
            return Ok(Stored {
                size,
                etag,
                last_modified,
            });
        }
        let put = self
            .0
            .store
            .put(&parse(key)?, bytes.into())
            .await
            .map_err(failed)?;
        Ok(Stored {
            size,
            etag: put.e_tag.unwrap_or_default(),
            last_modified: None,
        })
    }

    /// Keeps pieces as they come, at most `limit` bytes of them, in flat memory. Nothing is kept unless all came and
    /// `check` accepts size and SHA-256 (hex).
    pub async fn put_stream(
        &self,
        key: &str,
        mut pieces: impl Stream<Item = Result<Bytes>> + Unpin,
        limit: u64,
        check: impl FnOnce(u64, &str) -> Result<()>,
    ) -> Result<Kept> {
        let location = parse(key)?;
        let upload = self
            .0
            .store
            .put_multipart(&location)
            .await
            .map_err(failed)?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PART);
        let received = receive(&mut writer, &mut pieces, limit).await;
        let checked = received.and_then(|(size, sha256)| {
            check(size, &sha256)?;
            Ok((size, sha256))
        });
        match checked {
            Ok((size, sha256)) => {
                let put = writer.finish().await.map_err(failed)?;
                let etag = put.e_tag.unwrap_or_default();
                Ok(Kept { size, sha256, etag })
            }
            Err(error) => {
                // What was written so far is a file of its own until it is finished; nothing replaces the old one.
                if let Err(error) = writer.abort().await {
                    tracing::warn!(%error, "an upload that failed left its part behind");
                }
                Err(error)
            }
        }
    }

    pub async fn get(&self, key: &str) -> Result<Bytes> {
        let found = self.0.store.get(&parse(key)?).await.map_err(failed)?;
        found.bytes().await.map_err(failed)
    }

    /// Writes the file, if it is no larger than `limit`, to a place of this machine, piece by piece.
    pub async fn get_to(&self, key: &str, place: &FilePath, limit: u64) -> Result<()> {
        use tokio::io::AsyncWriteExt;
        let found = self.0.store.get(&parse(key)?).await.map_err(failed)?;
        if found.meta.size > limit {
            return Err(too_large(limit));
        }
        let mut file = tokio::fs::File::create(place)
            .await
            .map_err(ApiError::internal)?;
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.try_next().await.map_err(failed)? {
            file.write_all(&piece).await.map_err(ApiError::internal)?;
        }
        file.flush().await.map_err(ApiError::internal)
    }

    /// The file, or a part of it, piece by piece.
    pub async fn stream(
        &self,
        key: &str,
        part: Option<std::ops::Range<u64>>,
    ) -> Result<impl Stream<Item = object_store::Result<Bytes>> + Send + use<>> {
        let options = object_store::GetOptions {
            range: part.map(object_store::GetRange::Bounded),
            ..Default::default()
        };
        let found = self.0.store.get_opts(&parse(key)?, options).await;
        Ok(found.map_err(failed)?.into_stream())
    }

    /// The file's bytes as they are read from the store.
    pub async fn reader(&self, key: &str) -> Result<impl AsyncBufRead + Unpin + Send + use<>> {
        let found = self.0.store.get(&parse(key)?).await.map_err(failed)?;
        Ok(StreamReader::new(
            found.into_stream().map_err(std::io::Error::from),
        ))
    }

    /// Absent when there is no such file.
    pub async fn head(&self, key: &str) -> Result<Option<Stored>> {
        match self.0.store.head(&parse(key)?).await {
            Ok(meta) => Ok(Some(Stored {
                size: meta.size,
                etag: meta.e_tag.unwrap_or_default(),
                last_modified: Some(meta.last_modified),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The file's SHA-256 in hex, read as a stream.
    pub async fn sha256(&self, key: &str) -> Result<String> {
        self.sha256_of(key, None).await
    }

    /// The same of the file or of a part of it.
    async fn sha256_of(&self, key: &str, part: Option<std::ops::Range<u64>>) -> Result<String> {
        let mut stream = self.stream(key, part).await?;
        let mut hash = Sha256::new();
        while let Some(piece) = stream.try_next().await.map_err(failed)? {
            hash.update(&piece);
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// A second file with the same bytes.
    pub async fn copy(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (parse(from)?, parse(to)?);
        self.0.store.copy(&from, &to).await.map_err(failed)
    }

    /// A file that is gone already counts as deleted.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.0.store.delete(&parse(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether no file's key starts with these whole segments.
    pub async fn is_empty(&self, prefix: &str) -> Result<bool> {
        let prefix = parse(prefix)?;
        let first = self.0.store.list(Some(&prefix)).try_next().await;
        Ok(first.map_err(failed)?.is_none())
    }

    /// Removes every file whose key starts with these whole segments, and what interrupted writes left among them.
    pub async fn delete_all(&self, prefix: &str) -> Result<()> {
        let prefix = parse(prefix)?;
        let mut files = self.0.store.list(Some(&prefix)).map_err(failed);
        let is_far = elsewhere::is_elsewhere(prefix.as_ref());
        let (Place::Folder(folder), false) = (&self.0.place, is_far) else {
            let delete =
                |file: ObjectMeta| async move { self.delete(file.location.as_ref()).await };
            return files.try_for_each_concurrent(DELETING, delete).await;
        };
        while let Some(file) = files.try_next().await? {
            self.delete(file.location.as_ref()).await?;
        }
        // The store lists whole files only.
        match tokio::fs::remove_dir_all(folder.join(prefix.as_ref())).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ApiError::internal(error))
            }
            _ => Ok(()),
        }
    }

    /// Refuses writes when too little of the disk is free: max of `least` and 5 %.
    pub fn check_room(&self, least: u64) -> Result<()> {
        let folder = match &self.0.place {
            Place::Folder(folder) => Some(folder),
            Place::Bucket { room, .. } => room.as_ref(),
        };
        let Some(Ok(disk)) = folder.map(rustix::fs::statvfs) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let floor = if least < 1 << 30 {
            // A floor below 1 GiB was set by hand: it is meant as it stands.
            least
        } else {
            least.max(disk.f_blocks.saturating_mul(disk.f_frsize) / 20)
        };
        if free < floor {
            return Err(ApiError::disk_full(
                "",
                "the disk is almost full: writes are refused until space is freed",
            ));
        }
        Ok(())
    }
}

fn parse(key: &str) -> Result<Key> {
    Key::parse(key).map_err(|_| ApiError::not_found("blob", key))
}

fn failed(error: object_store::Error) -> ApiError {
    match error {
        object_store::Error::NotFound { path, .. } => ApiError::not_found("blob", &path),
        object_store::Error::Generic {
            store: elsewhere::NAME,
            source,
        } => ApiError::unavailable(AWAY, source.to_string()).retry_after(2),
        object_store::Error::Generic {
            store: links::NAME,
            source,
        } => ApiError::unavailable("source_unavailable", source.to_string()).retry_after(2),
        object_store::Error::Generic { store: "S3", .. } => {
            tracing::error!(%error, "the file store is not available");
            ApiError::unavailable("", "the file store is not available").retry_after(2)
        }
        other => ApiError::internal(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn blobs(folder: &tempfile::TempDir, clock: &Clock) -> Blobs {
        Blobs::open(folder.path(), [7; 32], "http://here".into(), clock.clone()).unwrap()
    }

    #[tokio::test]
    async fn files_come_back_and_go_by_prefix() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        blobs.put("ns_1/a/x.txt", "one").await.unwrap();
        blobs.put("ns_1/ab/x.txt", "two").await.unwrap();
        assert_eq!(blobs.get("ns_1/a/x.txt").await.unwrap(), "one");
        blobs.delete_all("ns_1/a").await.unwrap();
        assert!(blobs.head("ns_1/a/x.txt").await.unwrap().is_none());
        assert_eq!(blobs.head("ns_1/ab/x.txt").await.unwrap().unwrap().size, 3);
        assert!(blobs.get("../secret").await.is_err());
        assert!(blobs.delete_all("../secret").await.is_err());
    }

    #[tokio::test]
    async fn what_an_interrupted_write_left_goes_with_its_folder() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let mut half = blobs
            .0
            .store
            .put_multipart(&parse("ns_1/uploads/one/a.txt").unwrap())
            .await
            .unwrap();
        half.put_part("some bytes".into()).await.unwrap();
        // The process dies: nothing finishes or aborts the write.
        std::mem::forget(half);
        let upload = folder.path().join("ns_1/uploads/one");
        assert_eq!(std::fs::read_dir(&upload).unwrap().count(), 1);
        blobs.delete_all("ns_1/uploads/one").await.unwrap();
        assert!(!upload.exists());
    }
}
