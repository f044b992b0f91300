//! Files of objects and documents: small ones in memory, as far as they fit into it together, large ones on the disk.

use bytes::Bytes;
use futures::StreamExt;
use loupe_engine::{
    extract::{Data, Folder, Place},
    ingest::{BlobInput, BlobRole, CollectionPlan, GeneratedBlob, ObjectInput},
};
use loupe_wire::{BlobModel, ObjectResponse};
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::io::ReaderStream;

use crate::{
    app::App,
    error::{ApiError, Result},
    v1::{objects, tasks},
};

/// Bytes of files in work at once, for each worker. A larger object is worked on alone.
const BYTES_AT_ONCE: i64 = 128 << 20;

/// The same for all workers of the process: four are never kept waiting, and more share what four have, so that their number
/// does not decide how much memory a server needs.
static ROOM: Semaphore = Semaphore::const_new(512 << 20);

/// Larger files are read from the disk, and by the process that decodes them: a film is never in this one.
const IN_MEMORY: u64 = 4 << 20;

/// Bytes of one object's files that are in memory: the rest of its files are read from the disk, however small.
const OF_OBJECT: u64 = 32 << 20;

/// Bytes of a file that go to the store at once.
const PIECE: usize = 64 << 10;

/// Things in their order, cut where the files of a group would become too much. None is cut itself.
pub(super) fn groups<T>(things: Vec<T>, size: impl Fn(&T) -> i64) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<_>> = Vec::new();
    let mut bytes = 0;
    for thing in things {
        let size = size(&thing);
        match groups.last_mut() {
            Some(group) if bytes + size <= BYTES_AT_ONCE => group.push(thing),
            _ => {
                bytes = 0;
                groups.push(vec![thing]);
            }
        }
        bytes += size;
    }
    groups
}

/// What an object with so many bytes of files counts in memory: nobody knows how much is read of the web for it, so it is
/// alone there.
pub(super) const fn weight(plan: &CollectionPlan, files: i64) -> i64 {
    match plan.reads_web() {
        true => BYTES_AT_ONCE,
        false => files,
    }
}

/// Waits until files of so many bytes may be worked on; held for as long as they are. A crawl waits for nobody here, as it has
/// no files.
pub(super) async fn room(bytes: i64) -> Option<SemaphorePermit<'static>> {
    let bytes = u32::try_from(bytes.clamp(0, BYTES_AT_ONCE)).unwrap_or(0);
    // Never closed.
    ROOM.acquire_many(bytes).await.ok()
}

/// Bytes of all files of an object.
pub(super) fn size(object: &ObjectResponse) -> i64 {
    let blobs = object.blobs.iter();
    blobs
        .filter_map(|blob| blob.details.as_ref()?.size_bytes)
        .fold(0, i64::saturating_add)
}

/// The files of one object while they are read.
struct Files<'a> {
    app: &'a App,
    /// Bytes that may yet be kept in memory.
    left: u64,
    /// Where the others are. Gone with the last of them.
    folder: Option<Folder>,
    /// How many those are.
    count: usize,
}

impl<'a> Files<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            left: OF_OBJECT,
            folder: None,
            count: 0,
        }
    }

    async fn read(&mut self, key: &str) -> Result<Data> {
        let blobs = self.app.blobs();
        let found = blobs.head(key).await?;
        let size = found.ok_or_else(|| ApiError::not_found("blob", key))?.size;
        if size <= IN_MEMORY.min(self.left) {
            self.left -= size;
            return Ok(blobs.get(key).await?.into());
        }
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => Folder::new().map_err(ApiError::internal)?,
        };
        self.folder = Some(folder.clone());
        let name = self.count.to_string();
        self.count += 1;
        let place = folder.path().join(&name);
        blobs.get_to(key, &place, u64::MAX).await?;
        let data = Data::on_disk(&folder, &name).await;
        data.map_err(ApiError::internal)
    }
}

/// Keeps a file that was made of an object. One on the disk goes to the store piece by piece.
pub(super) async fn keep(app: &App, file: &GeneratedBlob) -> Result<()> {
    let path = match file.bytes.place() {
        Place::Memory(bytes) => {
            app.blobs().put(&file.key, bytes.clone()).await?;
            return Ok(());
        }
        Place::Disk(path) => path,
    };
    let made = tokio::fs::File::open(path).await;
    let made = made.map_err(ApiError::internal)?;
    let pieces =
        ReaderStream::with_capacity(made, PIECE).map(|piece| piece.map_err(ApiError::internal));
    app.blobs()
        .put_stream(&file.key, pieces, u64::MAX, |_, _| Ok(()))
        .await?;
    Ok(())
}

/// An object with the bytes of its files.
pub(super) async fn object(app: &App, object: ObjectResponse, hash: String) -> Result<ObjectInput> {
    let mut files = Files::new(app);
    let mut blobs = Vec::with_capacity(object.blobs.len());
    for blob in &object.blobs {
        let key =
            objects::blobs::key(blob).ok_or_else(|| ApiError::not_found("blob", &blob.property))?;
        blobs.push(blob_input(blob, key, files.read(key).await?));
    }
    Ok(input(object, hash, blobs))
}

/// An object whose files are named and not read.
pub(super) fn named(object: ObjectResponse, hash: String) -> ObjectInput {
    let blobs = object.blobs.iter().filter_map(|blob| {
        let key = objects::blobs::key(blob)?;
        Some(blob_input(blob, key, Data::from(Bytes::new())))
    });
    let blobs = blobs.collect();
    input(object, hash, blobs)
}

fn input(object: ObjectResponse, hash: String, blobs: Vec<BlobInput>) -> ObjectInput {
    ObjectInput {
        object_id: object.object_id.unwrap_or_default(),
        bucket_id: object.bucket_id,
        fields: object.extra,
        edges: object.edges.iter().map(|edge| json!(edge)).collect(),
        content_hash: Some(hash),
        blobs,
        origin: None,
        result: None,
    }
}

fn blob_input(blob: &BlobModel, key: &str, bytes: Data) -> BlobInput {
    let details = blob.details.clone().unwrap_or_default();
    BlobInput {
        blob_id: blob.blob_id.clone().unwrap_or_default(),
        property: blob.property.clone(),
        kind: tasks::name_of(blob.r#type),
        filename: details.filename,
        mime: details.mime_type,
        url: format!("blob://{key}"),
        bytes,
        role: BlobRole::Source,
    }
}

/// A document in place of an object, with the bytes of the files that are to be `read`; the others it keeps by name.
pub(super) async fn document(
    app: &App,
    read: &[usize],
    mut document: ObjectInput,
) -> Result<ObjectInput> {
    let mut files = Files::new(app);
    let mut blobs = Vec::with_capacity(read.len());
    for (place, mut blob) in document.blobs.into_iter().enumerate() {
        if !read.contains(&place) {
            continue;
        }
        let key = blob.url.strip_prefix("blob://");
        let key = key.ok_or_else(|| ApiError::not_found("blob", &blob.property))?;
        blob.bytes = files.read(key).await?;
        blobs.push(blob);
    }
    document.blobs = blobs;
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_in_memory_together_are_not_too_many() {
        let sizes = vec![1, 100, 27, 1, 500, 500, 64, 64, 0, 1];
        let groups = groups(sizes, |mebibytes: &i64| mebibytes << 20);
        let expected = [
            vec![1, 100, 27],
            vec![1],
            vec![500],
            vec![500],
            vec![64, 64, 0],
            vec![1],
        ];
        assert_eq!(groups, expected);
    }
}
