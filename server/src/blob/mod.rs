//! Files of objects and documents: kept by `object_store`, addressed by URLs that the server signs.
//!
//! A key is `{namespace}/{kind}/{id}/{name}`; nobody outside picks one, and a key without a signature opens nothing.

pub(crate) mod parts;
mod routes;

use std::{path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use hmac::{Hmac, KeyInit, Mac};
use object_store::{
    ObjectStore, ObjectStoreExt, WriteMultipart, local::LocalFileSystem, path::Path as Key,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::io::AsyncBufRead;
use tokio_util::io::StreamReader;

pub use routes::router;

use crate::{
    clock::Clock,
    error::{ApiError, Result},
};

/// Cheap to clone.
#[derive(Clone)]
pub struct Blobs(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    /// Local files: what the free space is measured on.
    folder: std::path::PathBuf,
    secret: [u8; 32],
    address: String,
    clock: Clock,
}

/// What is known of a stored file.
#[derive(Debug, Clone)]
pub struct Stored {
    pub size: u64,
    pub etag: String,
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

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Signed {
    /// Unix time at which the address ends.
    #[serde(default)]
    expires: i64,
    #[serde(default)]
    signature: String,
    /// The name that a download gets.
    filename: Option<String>,
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
            folder: folder.to_owned(),
            secret,
            address,
            clock,
        })))
    }

    pub async fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<Stored> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let put = self
            .0
            .store
            .put(&parse(key)?, bytes.into())
            .await
            .map_err(failed)?;
        Ok(Stored {
            size,
            etag: put.e_tag.unwrap_or_default(),
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

    /// Removes every file whose key starts with these whole segments, and what interrupted writes left among them.
    pub async fn delete_all(&self, prefix: &str) -> Result<()> {
        let prefix = parse(prefix)?;
        let mut files = self.0.store.list(Some(&prefix));
        while let Some(file) = files.try_next().await.map_err(failed)? {
            self.delete(file.location.as_ref()).await?;
        }
        // The store lists whole files only.
        match tokio::fs::remove_dir_all(self.0.folder.join(prefix.as_ref())).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ApiError::internal(error))
            }
            _ => Ok(()),
        }
    }

    /// An address that reads the file for `ttl` seconds.
    pub fn signed_get_url(&self, key: &str, filename: Option<&str>, ttl: u64) -> String {
        self.signed("GET", key, filename, ttl)
    }

    /// An address that reads the file for `ttl` seconds at least and twice as long at most. It stays the same for as long, so
    /// that browsers find again what they have kept.
    pub fn steady_get_url(&self, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let window = i64::try_from(ttl).unwrap_or(i64::MAX / 4).max(1);
        let expires = (self.0.clock.now().timestamp().div_euclid(window) + 2) * window;
        self.address("GET", key, filename, expires)
    }

    /// An address that takes the file's bytes for `ttl` seconds.
    pub fn signed_put_url(&self, key: &str, ttl: u64) -> String {
        self.signed("PUT", key, None, ttl)
    }

    fn signed(&self, method: &str, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let expires = self.0.clock.now().timestamp() + i64::try_from(ttl).unwrap_or(0);
        self.address(method, key, filename, expires)
    }

    fn address(&self, method: &str, key: &str, filename: Option<&str>, expires: i64) -> String {
        let signature = hex::encode(
            self.mac(method, key, filename, expires)
                .finalize()
                .into_bytes(),
        );
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("expires", &expires.to_string())
            .append_pair("signature", &signature);
        if let Some(filename) = filename {
            query.append_pair("filename", filename);
        }
        format!("{}/v1/blobs/{key}?{}", self.0.address, query.finish())
    }

    fn mac(&self, method: &str, key: &str, filename: Option<&str>, expires: i64) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0.secret)
            .expect("HMAC takes keys of any length");
        for piece in [
            "blob",
            method,
            key,
            filename.unwrap_or_default(),
            &expires.to_string(),
        ] {
            mac.update(&(piece.len() as u64).to_be_bytes());
            mac.update(piece.as_bytes());
        }
        mac
    }

    fn check(&self, method: &str, key: &str, signed: &Signed) -> Result<()> {
        let refused = || {
            ApiError::forbidden(
                "",
                "the signature of this address is wrong or has expired: ask for a new one",
            )
        };
        let signature = hex::decode(&signed.signature).map_err(|_| refused())?;
        // Compares in constant time.
        self.mac(method, key, signed.filename.as_deref(), signed.expires)
            .verify_slice(&signature)
            .map_err(|_| refused())?;
        if signed.expires <= self.0.clock.now().timestamp() {
            return Err(refused());
        }
        Ok(())
    }

    /// Refuses writes when too little of the disk is free: max of `least` and 5 %.
    pub fn check_room(&self, least: u64) -> Result<()> {
        let Ok(disk) = rustix::fs::statvfs(&self.0.folder) else {
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
        other => ApiError::internal(other),
    }
}

/// A file name's last segment without anything that a path, a header or a shell could misread.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let safe = safe.trim_start_matches('.');
    let start = safe.len().saturating_sub(100);
    if safe.is_empty() {
        "file".into()
    } else {
        safe[start..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs(folder: &tempfile::TempDir, clock: &Clock) -> Blobs {
        Blobs::open(folder.path(), [7; 32], "http://here".into(), clock.clone()).unwrap()
    }

    fn signed(address: &str) -> (String, Signed) {
        let url = url::Url::parse(address).unwrap();
        let pairs: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
        let key = url.path().strip_prefix("/v1/blobs/").unwrap().to_owned();
        let signed = Signed {
            expires: pairs["expires"].parse().unwrap(),
            signature: pairs["signature"].clone(),
            filename: pairs.get("filename").cloned(),
        };
        (key, signed)
    }

    #[test]
    fn a_signature_opens_its_key_method_and_time_alone() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let (key, signed) = signed(&blobs.signed_get_url("ns_1/a/b.txt", Some("my file.txt"), 60));
        assert!(blobs.check("GET", &key, &signed).is_ok());
        assert!(blobs.check("PUT", &key, &signed).is_err());
        assert!(blobs.check("GET", "ns_2/a/b.txt", &signed).is_err());
        clock.advance(61);
        assert!(blobs.check("GET", &key, &signed).is_err());
    }

    #[test]
    fn a_steady_address_lasts_as_promised_and_stays_for_a_while() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let address = || blobs.steady_get_url("ns_1/a/b.png", None, 3600);
        // The beginning of a window.
        clock.advance(3600 - clock.now().timestamp().rem_euclid(3600));
        let first = address();
        clock.advance(3500);
        let late = address();
        assert_eq!(late, first);
        let (key, signed) = signed(&late);
        clock.advance(3600);
        assert!(blobs.check("GET", &key, &signed).is_ok());
        assert_ne!(address(), first);
        clock.advance(200);
        assert!(blobs.check("GET", &key, &signed).is_err());
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
