//! Writing into a storage of the organization's own: the folder that a destination names, through the guarded client.

use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use loupe_wire::{NamespaceOperation, StorageConnectionModel, StorageProvider};
use object_store::{
    ObjectStoreExt, WriteMultipart, aws::AmazonS3, path::Path as Key, prefix::PrefixStore,
};

use super::{
    CONNECTIONS, allow,
    databases::active,
    opened, opened_by,
    s3::{Access, text},
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
    outbound::Outbound,
    vault::Vault,
};

/// Bytes that go to the storage at once; a file of fewer is sent whole.
const PART: usize = 5 << 20;

/// Parts of one file, as S3 has it.
const MOST_PARTS: u64 = 10_000;

/// Parts that are larger go one after the other: two of them are much to keep in memory.
const LARGE: usize = 64 << 20;

/// Letters of a prefix.
const MOST: usize = 500;

const NO_PLACE: &str = "a prefix is s3://BUCKET/FOLDER, or a FOLDER where the connection's provider_config has a bucket; a connection \
                        that has one is for that one alone";

/// A folder of a storage that files are written into.
pub struct Folder {
    pub connection_id: String,
    store: AmazonS3,
    bucket: String,
    folder: Key,
}

/// The folder that a destination names.
///
/// # Errors
/// 404 for an unknown connection, 403 where the key's scopes do not let it be written through, 400 where nobody may, the 422
/// list for a prefix that is no place.
pub async fn for_writing(
    app: &App,
    caller: &Caller,
    connection: &str,
    prefix: &str,
) -> Result<Folder> {
    let found = CONNECTIONS
        .find(app.db(), &caller.org_id, connection)
        .await?;
    allow(caller, &found.id, NamespaceOperation::WriteData)?;
    active(&found)?;
    if !found.write_enabled {
        let message = "this storage connection is not for writing: set its write_enabled";
        return Err(ApiError::bad_request("write_not_enabled", message));
    }
    let refused = |member: &str, msg: &str, sent: &str| {
        let path = ["destination", member];
        ApiError::from(Violation::body(&path, "value_error", msg, sent.into()))
    };
    let kinds = [StorageProvider::S3, StorageProvider::Tigris];
    if !kinds.contains(&found.provider_type) {
        let msg = "files are written through connections of the types s3 and tigris";
        return Err(refused("connection_id", msg, connection));
    }
    let config = opened(app, &caller.org_id, &found)?;
    let (bucket, folder) = place(prefix, text(&config, "bucket"))
        .ok_or_else(|| refused("prefix", NO_PLACE, prefix))?;
    let folder = Key::parse(folder)
        .map_err(|_| refused("prefix", "this is no folder of a bucket", prefix))?;
    let access = Access::read(found.provider_type, &config, app.outbound())?;
    Ok(Folder {
        connection_id: found.id.clone(),
        store: access.bucket(app.outbound(), bucket)?,
        bucket: bucket.to_owned(),
        folder,
    })
}

/// The whole address of the folder that a prefix of this connection names; none where it names nothing.
pub fn address(connection: &StorageConnectionModel, prefix: &str) -> Option<String> {
    let (bucket, folder) = place(prefix, text(&connection.provider_config, "bucket"))?;
    let folder = Key::parse(folder).ok()?;
    Some(format!("s3://{bucket}/{folder}"))
}

/// A folder at an [`address`], through the connection as it is now.
///
/// # Errors
/// The connection leads elsewhere by now, or to where this server may not go.
pub fn kept_at(
    (vault, outbound): (&Vault, &Outbound),
    org_id: &str,
    connection: &StorageConnectionModel,
    address: &str,
    name: &str,
) -> Result<PrefixStore<AmazonS3>> {
    let config = opened_by(vault, org_id, connection)?;
    let place = address.strip_prefix("s3://").unwrap_or(address);
    let (bucket, folder) = place.split_once('/').unwrap_or((place, ""));
    if text(&config, "bucket").is_some_and(|own| own != bucket) {
        let message = "the storage connection is for another bucket by now";
        return Err(ApiError::bad_request("", message));
    }
    let folder = Key::parse(folder).map_err(ApiError::internal)?.join(name);
    let access = Access::read(connection.provider_type, &config, outbound)?;
    Ok(PrefixStore::new(access.bucket(outbound, bucket)?, folder))
}

/// Bucket and folder of a prefix. A connection that names a bucket is for that one alone.
fn place<'p>(prefix: &'p str, own: Option<&'p str>) -> Option<(&'p str, &'p str)> {
    if prefix.len() > MOST {
        return None;
    }
    let (bucket, folder) = match (prefix.strip_prefix("s3://"), own) {
        (Some(rest), _) => rest.split_once('/').unwrap_or((rest, "")),
        (None, Some(own)) => (own, prefix),
        (None, None) => return None,
    };
    let begins = bucket.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_its = own.is_none_or(|own| own == bucket);
    (begins && bucket.chars().all(is_name) && is_its).then(|| (bucket, folder.trim_matches('/')))
}

/// Bytes of the parts of a file: as few as may be, and the same of all, as some storages want it.
fn part_of(size: u64) -> usize {
    let least = size.div_ceil(MOST_PARTS);
    usize::try_from(least).unwrap_or(usize::MAX).max(PART)
}

impl Folder {
    /// A folder in this one.
    #[must_use]
    pub fn below(mut self, name: &str) -> Self {
        self.folder = self.folder.join(name);
        self
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.folder)
    }

    /// The key of a file in it.
    pub fn key(&self, name: &str) -> String {
        self.folder.clone().join(name).to_string()
    }

    /// Writes a file of this size as its bytes come, a few parts of it in memory; answers how many came. A file that does not
    /// come whole is not there.
    ///
    /// # Errors
    /// What the bytes end in, or that the storage does not take them.
    pub async fn write(
        &self,
        (name, size): (&str, u64),
        mut pieces: impl Stream<Item = Result<Bytes>> + Unpin,
    ) -> Result<u64> {
        let key = self.folder.clone().join(name);
        let part = part_of(size);
        let mut start = BytesMut::new();
        while start.len() < PART {
            let Some(piece) = pieces.try_next().await? else {
                let size = start.len() as u64;
                let put = self.store.put(&key, start.freeze().into()).await;
                return put.map(|_| size).map_err(|error| refused(&error));
            };
            start.extend_from_slice(&piece);
        }
        let begun = start.len() as u64;
        let upload = self.store.put_multipart(&key).await;
        let upload = upload.map_err(|error| refused(&error))?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, part);
        writer.put(start.freeze());
        let at_once = if part > LARGE { 1 } else { 2 };
        match send(&mut writer, at_once, &mut pieces).await {
            Ok(rest) => {
                let whole = writer.finish().await;
                whole.map(|_| begun + rest).map_err(|error| refused(&error))
            }
            Err(error) => {
                if let Err(error) = writer.abort().await {
                    tracing::warn!(%error, "a file that did not come whole left parts in a storage");
                }
                Err(error)
            }
        }
    }
}

async fn send(
    writer: &mut WriteMultipart,
    at_once: usize,
    pieces: &mut (impl Stream<Item = Result<Bytes>> + Unpin),
) -> Result<u64> {
    let mut size = 0;
    while let Some(piece) = pieces.try_next().await? {
        size += piece.len() as u64;
        let free = writer.wait_for_capacity(at_once).await;
        free.map_err(|error| refused(&error))?;
        writer.put(piece);
    }
    Ok(size)
}

/// What the storage said, without the addresses and signatures that the library's own text holds. What may pass is tried again.
fn refused(error: &object_store::Error) -> ApiError {
    use object_store::Error;
    match error {
        Error::NotFound { .. } => ApiError::bad_request("", "the storage has no such bucket"),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            ApiError::bad_request("", "the storage does not let these credentials write there")
        }
        _ => {
            tracing::warn!(%error, "a storage connection took no file");
            ApiError::unavailable("", "the storage cannot be written to")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_that_a_storage_takes_goes_in_as_many_parts_as_it_takes() {
        assert_eq!((part_of(0), part_of(40 << 30)), (PART, PART));
        // Files of 100 GB, and of 5 TiB.
        for size in [100_000_000_000, 5_u64 << 40] {
            let part = part_of(size);
            assert!(size.div_ceil(part as u64) <= MOST_PARTS, "{size} {part}");
            assert!(part < 600 << 20, "{size} {part}");
        }
    }

    #[test]
    fn a_prefix_names_a_bucket_or_a_folder_of_the_connections_own() {
        let long = format!("s3://files/{}", "a".repeat(MOST));
        for (prefix, own, found) in [
            ("s3://files", None, Some(("files", ""))),
            ("s3://files/a/b/", None, Some(("files", "a/b"))),
            ("s3://files/a", Some("files"), Some(("files", "a"))),
            ("/a/b", Some("files"), Some(("files", "a/b"))),
            ("", Some("files"), Some(("files", ""))),
            ("", None, None),
            ("a/b", None, None),
            ("s3://", None, None),
            ("s3://../a", None, None),
            ("s3://fi les/a", None, None),
            ("s3://other/a", Some("files"), None),
            (long.as_str(), None, None),
        ] {
            assert_eq!(place(prefix, own), found, "{prefix} {own:?}");
        }
    }
}
