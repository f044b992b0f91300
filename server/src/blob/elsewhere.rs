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

use super::links;

/// The code of refusals while a place is away.
pub const AWAY: &str = "destination_unavailable";

/// What failures of a place are told by.
pub(super) const NAME: &str = "bucket's destination";

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

    /// The storage that a link leads to, and the key of its file there.
    ///
    /// # Errors
    /// A sentence that says why nobody can tell right now.
    async fn follow(&self, link: &str) -> std::result::Result<(Found, Key), String>;
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
pub(super) fn away(
    whose: &'static str,
    message: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Generic {
        store: whose,
        source: message.into(),
    }
}

/// What a storage said, without the addresses and signatures that the library's own text holds.
fn told(whose: &'static str, error: Error) -> Error {
    let said = match error {
        Error::Generic {
            store: NAME | links::NAME,
            ..
        } => return error,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "refuses the connection's credentials"
        }
        _ => "is not available",
    };
    tracing::warn!(%error, "the storage of a {whose} {said}");
    away(whose, format!("the storage of the {whose} {said}"))
}

/// Where one file is.
pub(super) struct At {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) key: Key,
    /// The whole key of a file that is elsewhere, and what failures are told by.
    pub(super) asked: Option<(Key, &'static str)>,
}

impl At {
    /// A failure to read.
    fn unread(&self, error: Error) -> Error {
        match (&self.asked, error) {
            (None, error) => error,
            (Some((asked, _)), Error::NotFound { source, .. }) => Error::NotFound {
                path: asked.to_string(),
                source,
            },
            (Some((_, whose)), error) => told(whose, error),
        }
    }

    /// A failure to write: that nothing is found is then the bucket's absence.
    fn unwritten(&self, error: Error) -> Error {
        match (&self.asked, error) {
            (None, error) => error,
            (Some((_, whose)), Error::NotFound { .. }) => away(
                whose,
                format!("the storage of the {whose} has no such bucket"),
            ),
            (Some((_, whose)), error) => told(whose, error),
        }
    }

    /// What is at this place itself.
    pub(super) async fn get(self, options: GetOptions) -> Result<GetResult> {
        let found = self.store.get_opts(&self.key, options).await;
        let found = found.map_err(|error| self.unread(error))?;
        let Some((location, whose)) = self.asked else {
            return Ok(found);
        };
        let payload = match found.payload {
            GetResultPayload::Stream(pieces) => {
                let pieces = pieces.map_err(move |error| told(whose, error));
                GetResultPayload::Stream(pieces.boxed())
            }
            file => file,
        };
        let meta = ObjectMeta {
            location,
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

    pub(super) fn places(&self) -> &dyn Places {
        &*self.places
    }

    /// The place that a key names, and the file's key there.
    async fn find(&self, location: &Key) -> Result<Option<(Found, Key)>> {
        let Some((namespace_id, place_id, rest)) = split(location.as_ref()) else {
            return Ok(None);
        };
        let key = Key::parse(rest)?;
        let found = self.places.find(namespace_id, place_id).await;
        Ok(Some((found.map_err(|error| away(NAME, error))?, key)))
    }

    fn here(&self, location: &Key) -> At {
        At {
            store: self.own.clone(),
            key: location.clone(),
            asked: None,
        }
    }

    async fn reading(&self, location: &Key) -> Result<At> {
        let asked = Some((location.clone(), NAME));
        match self.find(location).await? {
            None => Ok(self.here(location)),
            Some((Found::Open { store, .. }, key)) => Ok(At { store, key, asked }),
            Some((Found::Closed, _)) => Err(away(
                NAME,
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
                NAME,
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
                asked: Some((location.clone(), NAME)),
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

    /// Copies a file from one store to another, a few pieces of it in memory. A link stays one.
    async fn carry(&self, from: &Key, to: &Key) -> Result<()> {
        let found = self.reading(from).await?.get(GetOptions::default()).await?;
        let mut pieces = found.into_stream();
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
        let at = match links::is_linked(location.as_ref()) {
            true => self.followed(at, location).await?,
            false => at,
        };
        at.get(options).await
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
        Box::pin(async move { sent.await.map_err(|error| told(NAME, error)) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let whole = self.0.complete().await;
        whole.map_err(|error| told(NAME, error))
    }

    async fn abort(&mut self) -> Result<()> {
        let aborted = self.0.abort().await;
        aborted.map_err(|error| told(NAME, error))
    }
}

#[cfg(test)]
mod tests;
