//! Files that buckets keep in storages of their own. Their keys say so, and stay what they are wherever they are named:
//! `{namespace}/{place}/{kind}/{id}/{name}`, where a place begins with [`PLACE`] and is looked up.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use loupe_engine::ingest::PLACE;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart, WriteMultipart, path::Path as Key,
};

/// The code of refusals while a place is away.
pub const AWAY: &str = "destination_unavailable";

/// What failures of a place are told by.
pub(super) const NAME: &str = "destination";

/// Bytes of a file that is carried from one store to another that are sent at once.
const PIECE: usize = 5 << 20;

/// What is known of a place.
#[derive(Debug, Clone)]
pub enum Found {
    Open {
        store: Arc<dyn ObjectStore>,
        /// Files may be put there and removed.
        writes: bool,
    },
    /// Its owner switched it off: what is there is left to them.
    Closed,
    /// There is no such place, or no more.
    Nowhere,
}

/// Where the places of keys are looked up.
#[async_trait]
pub trait Places: fmt::Debug + Send + Sync {
    /// # Errors
    /// A sentence that says why nobody can tell right now.
    async fn find(&self, namespace_id: &str, place_id: &str) -> std::result::Result<Found, String>;
}

/// Namespace, place and what follows, of a key that names a place.
fn split(key: &str) -> Option<(&str, &str, &str)> {
    let mut pieces = key.splitn(3, '/');
    let (namespace, place) = (pieces.next()?, pieces.next()?);
    let rest = pieces.next().unwrap_or_default();
    place.starts_with(PLACE).then_some((namespace, place, rest))
}

pub(super) fn is_elsewhere(key: &str) -> bool {
    split(key).is_some()
}

/// What a key begins with: its namespace, and the place if it names one.
pub fn root(key: &str) -> &str {
    let length = match split(key) {
        Some((namespace, place, _)) => namespace.len() + 1 + place.len(),
        None => key.find('/').unwrap_or(key.len()),
    };
    key.get(..length).unwrap_or(key)
}

/// A failure that is told to whoever asked for the file.
fn away(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: NAME,
        source: message.into(),
    }
}

/// What a storage said, without the addresses and signatures that the library's own text holds.
fn told(error: Error) -> Error {
    match error {
        Error::Generic { store: NAME, .. } => error,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            tracing::warn!(%error, "the storage of a bucket's destination refuses what was asked");
            away("the storage of the bucket's destination refuses the connection's credentials")
        }
        _ => {
            tracing::warn!(%error, "the storage of a bucket's destination is not available");
            away("the storage of the bucket's destination is not available")
        }
    }
}

/// Where one file is.
struct At {
    store: Arc<dyn ObjectStore>,
    key: Key,
    /// The whole key of a file that is elsewhere.
    asked: Option<Key>,
}

impl At {
    /// A failure to read.
    fn unread(&self, error: Error) -> Error {
        match (&self.asked, error) {
            (None, error) => error,
            (Some(asked), Error::NotFound { source, .. }) => Error::NotFound {
                path: asked.to_string(),
                source,
            },
            (Some(_), error) => told(error),
        }
    }

    /// A failure to write: that nothing is found is then the bucket's absence.
    fn unwritten(&self, error: Error) -> Error {
        match (&self.asked, error) {
            (None, error) => error,
            (Some(_), Error::NotFound { .. }) => {
                away("the storage of the bucket's destination has no such bucket")
            }
            (Some(_), error) => told(error),
        }
    }
}

/// The server's own store, and the places of files that are elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Routed {
    own: Arc<dyn ObjectStore>,
    places: Arc<dyn Places>,
}

impl Routed {
    pub(super) fn new(own: Arc<dyn ObjectStore>, places: Arc<dyn Places>) -> Self {
        Self { own, places }
    }

    /// The place that a key names, and the file's key there.
    async fn find(&self, location: &Key) -> Result<Option<(Found, Key)>> {
        let Some((namespace_id, place_id, rest)) = split(location.as_ref()) else {
            return Ok(None);
        };
        let key = Key::parse(rest)?;
        let found = self.places.find(namespace_id, place_id).await;
        Ok(Some((found.map_err(away)?, key)))
    }

    fn here(&self, location: &Key) -> At {
        At {
            store: self.own.clone(),
            key: location.clone(),
            asked: None,
        }
    }

    async fn reading(&self, location: &Key) -> Result<At> {
        let asked = Some(location.clone());
        match self.find(location).await? {
            None => Ok(self.here(location)),
            Some((Found::Open { store, .. }, key)) => Ok(At { store, key, asked }),
            Some((Found::Closed, _)) => Err(away(
                "the storage connection of the bucket's destination is not active",
            )),
            Some((Found::Nowhere, _)) => Err(Error::NotFound {
                path: location.to_string(),
                source: "there is no such place".into(),
            }),
        }
    }

    async fn writing(&self, location: &Key) -> Result<At> {
        match self.find(location).await? {
            Some((Found::Open { writes: false, .. }, _)) => Err(away(
                "the storage connection of the bucket's destination is not for writing: set its write_enabled",
            )),
            // The bucket was removed meanwhile.
            _ => self.reading(location).await,
        }
    }

    /// Nothing where what is there is left to its owner.
    async fn removing(&self, location: &Key) -> Result<Option<At>> {
        Ok(match self.find(location).await? {
            None => Some(self.here(location)),
            Some((Found::Open { store, writes }, key)) if writes => Some(At {
                store,
                key,
                asked: Some(location.clone()),
            }),
            Some(_) => {
                tracing::info!(key = %location, "a file is left in a storage that is closed to this server");
                None
            }
        })
    }

    async fn remove(self, location: Key) -> Result<Key> {
        if let Some(at) = self.removing(&location).await? {
            let removed = at.store.delete(&at.key).await;
            removed.map_err(|error| at.unread(error))?;
        }
        Ok(location)
    }

    /// Files below a folder. What is closed has none to remove.
    async fn listed(self, folder: Key) -> Result<BoxStream<'static, Result<ObjectMeta>>> {
        let Some(at) = self.removing(&folder).await? else {
            return Ok(stream::empty().boxed());
        };
        let root = root(folder.as_ref()).to_owned();
        let whole = move |meta: ObjectMeta| -> Result<ObjectMeta> {
            let location = Key::parse(format!("{root}/{}", meta.location))?;
            Ok(ObjectMeta { location, ..meta })
        };
        let files = at.store.list(Some(&at.key));
        let files = files.map(move |meta| meta.map_err(|error| at.unread(error)).and_then(&whole));
        Ok(files.boxed())
    }

    /// Copies a file from one store to another, a few pieces of it in memory.
    async fn carry(&self, from: &Key, to: &Key) -> Result<()> {
        let mut pieces = self
            .get_opts(from, GetOptions::default())
            .await?
            .into_stream();
        let upload = self.put_multipart_opts(to, PutMultipartOptions::default());
        let mut writer = WriteMultipart::new_with_chunk_size(upload.await?, PIECE);
        let sent = async {
            while let Some(piece) = pieces.try_next().await? {
                writer.wait_for_capacity(2).await?;
                writer.put(piece);
            }
            Ok::<_, Error>(())
        };
        let sent = sent.await;
        match sent {
            Ok(()) => writer.finish().await.map(drop),
            Err(error) => {
                if let Err(error) = writer.abort().await {
                    tracing::warn!(%error, "a copy that failed left its part behind");
                }
                Err(error)
            }
        }
    }
}

impl fmt::Display for Routed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} and places elsewhere", self.own)
    }
}

#[async_trait]
impl ObjectStore for Routed {
    async fn put_opts(
        &self,
        location: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let at = self.writing(location).await?;
        let put = at.store.put_opts(&at.key, payload, options).await;
        put.map_err(|error| at.unwritten(error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let at = self.writing(location).await?;
        let begun = at.store.put_multipart_opts(&at.key, options).await;
        let begun = begun.map_err(|error| at.unwritten(error))?;
        if at.asked.is_none() {
            return Ok(begun);
        }
        Ok(Box::new(Sent(begun)))
    }

    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        let at = self.reading(location).await?;
        let found = at.store.get_opts(&at.key, options).await;
        let found = found.map_err(|error| at.unread(error))?;
        if at.asked.is_none() {
            return Ok(found);
        }
        let payload = match found.payload {
            GetResultPayload::Stream(pieces) => {
                GetResultPayload::Stream(pieces.map_err(told).boxed())
            }
            file => file,
        };
        let meta = ObjectMeta {
            location: location.clone(),
            ..found.meta
        };
        Ok(GetResult {
            payload,
            meta,
            range: found.range,
            attributes: found.attributes,
            extensions: found.extensions,
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        let routed = self.clone();
        let removed = locations.and_then(move |location| routed.clone().remove(location));
        removed.boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        match prefix {
            Some(folder) if is_elsewhere(folder.as_ref()) => {
                let listed = self.clone().listed(folder.clone());
                stream::once(listed).try_flatten().boxed()
            }
            _ => self.own.list(prefix),
        }
    }

    /// Of the server's own files: nobody looks at the folders of a place.
    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.own.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        if root(from.as_ref()) != root(to.as_ref())
            && (is_elsewhere(from.as_ref()) || is_elsewhere(to.as_ref()))
        {
            return self.carry(from, to).await;
        }
        let (source, target) = (self.reading(from).await?, self.writing(to).await?);
        let copied = target.store.copy_opts(&source.key, &target.key, options);
        copied.await.map_err(|error| source.unread(error))
    }
}

/// A file in parts on its way to a place.
#[derive(Debug)]
struct Sent(Box<dyn MultipartUpload>);

#[async_trait]
impl MultipartUpload for Sent {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let sent = self.0.put_part(data);
        Box::pin(async move { sent.await.map_err(told) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.0.complete().await.map_err(told)
    }

    async fn abort(&mut self) -> Result<()> {
        self.0.abort().await.map_err(told)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[derive(Debug)]
    struct One(Found);

    #[async_trait]
    impl Places for One {
        async fn find(
            &self,
            namespace_id: &str,
            place_id: &str,
        ) -> std::result::Result<Found, String> {
            match (namespace_id, place_id) {
                ("ns_1", "at_1") => Ok(self.0.clone()),
                ("ns_1", "at_2") => Err("nobody can tell".into()),
                _ => Ok(Found::Nowhere),
            }
        }
    }

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn routed(found: Found) -> (Routed, Arc<dyn ObjectStore>) {
        let own: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        (Routed::new(own.clone(), Arc::new(One(found))), own)
    }

    async fn keys(store: &dyn ObjectStore, prefix: &str) -> Vec<String> {
        let listed = store.list(Some(&key(prefix)));
        let metas: Vec<ObjectMeta> = listed.try_collect().await.unwrap();
        metas
            .into_iter()
            .map(|one| one.location.to_string())
            .collect()
    }

    #[test]
    fn what_a_key_begins_with_tells_where_it_is() {
        for (text, expected) in [
            ("ns_1/objects/obj_1/a.txt", "ns_1"),
            ("ns_1/at_1/objects/obj_1/a.txt", "ns_1/at_1"),
            ("ns_1/at_1", "ns_1/at_1"),
            ("ns_1/snapshots/snap_1/files/ns_1/at_1/objects/a", "ns_1"),
            ("health", "health"),
        ] {
            assert_eq!(root(text), expected, "{text}");
            assert_eq!(is_elsewhere(text), expected.contains('/'), "{text}");
        }
    }

    #[tokio::test]
    async fn a_file_goes_to_its_place_and_comes_from_there() {
        let there: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let open = Found::Open {
            store: there.clone(),
            writes: true,
        };
        let (routed, own) = routed(open);
        let (here, away) = (key("ns_1/uploads/a.txt"), key("ns_1/at_1/objects/o/a.txt"));
        routed.put(&here, "a file".into()).await.unwrap();
        routed.copy(&here, &away).await.unwrap();
        assert_eq!(keys(&own, "ns_1").await, ["ns_1/uploads/a.txt"]);
        assert_eq!(keys(&there, "objects").await, ["objects/o/a.txt"]);
        let found = routed.get(&away).await.unwrap();
        assert_eq!(found.meta.location, away);
        assert_eq!(found.bytes().await.unwrap(), "a file");
        // Within the place, and back.
        let second = key("ns_1/at_1/objects/o/b.txt");
        routed.copy(&away, &second).await.unwrap();
        routed.copy(&second, &key("ns_1/back/b.txt")).await.unwrap();
        assert_eq!(keys(&own, "ns_1/back").await, ["ns_1/back/b.txt"]);
        let found = keys(&routed, "ns_1/at_1/objects/o").await;
        assert_eq!(found, [away.to_string(), second.to_string()]);
        routed.delete(&away).await.unwrap();
        assert_eq!(keys(&there, "objects").await, ["objects/o/b.txt"]);
    }

    #[tokio::test]
    async fn what_is_closed_is_neither_read_nor_emptied() {
        let there: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        there.put(&key("objects/a"), "a file".into()).await.unwrap();
        let reading = Found::Open {
            store: there.clone(),
            writes: false,
        };
        let file = key("ns_1/at_1/objects/a");
        for (found, is_read) in [(Found::Closed, false), (reading, true)] {
            let (routed, _) = routed(found);
            assert_eq!(routed.get(&file).await.is_ok(), is_read);
            assert!(routed.put(&file, "another".into()).await.is_err());
            routed.delete(&file).await.unwrap();
            assert!(keys(&routed, "ns_1/at_1").await.is_empty());
        }
        assert_eq!(keys(&there, "objects").await, ["objects/a"]);
    }

    #[tokio::test]
    async fn a_place_that_is_unknown_and_one_that_does_not_answer_are_told_apart() {
        let (routed, _) = routed(Found::Closed);
        let nowhere = routed.get(&key("ns_2/at_1/objects/a")).await;
        assert!(matches!(nowhere, Err(Error::NotFound { .. })));
        let unknown = routed.get(&key("ns_1/at_2/objects/a")).await;
        assert!(matches!(unknown, Err(Error::Generic { store: NAME, .. })));
        assert!(routed.delete(&key("ns_1/at_2/objects/a")).await.is_err());
    }
}
