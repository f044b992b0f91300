//! Buckets that keep their files in a storage of the organization's own, through one of its connections.
//!
//! Each destination of a bucket is a place of its own, whose name is in the keys of the files that went there: they are found
//! again whatever becomes of the bucket.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use loupe_engine::ingest::PLACE;
use loupe_wire::{BucketDestination, BucketResponse, NamespaceOperation};
use moka::sync::Cache;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};

use super::{
    BUCKETS,
    places::{self, Place},
};
use crate::{
    app::App,
    args,
    auth::Caller,
    blob::{Found, Places},
    db::{Db, Tx},
    error::{ApiError, Result, Violation},
    outbound::Outbound,
    v1::connections::{self, CONNECTIONS, Link},
    vault::Vault,
};

/// How long a storage is asked with what was read of its connection.
const FRESH: Duration = Duration::from_secs(10);

/// Buckets that are named where a connection is held.
const NAMED: i64 = 20;

crate::sql! {
    const FIND = "SELECT org_id, bucket_id, connection_id, address FROM blob_places WHERE namespace_id = $1 AND place_id = $2";
    const LIST = "SELECT place_id FROM blob_places WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) ORDER BY place_id";
    const DELETE = "DELETE FROM blob_places WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2)";
    const LEAVE = "DELETE FROM blob_places WHERE namespace_id = $1 AND place_id = $2";
    const OTHERS = "SELECT bucket_id, address FROM blob_places WHERE org_id = $1 AND bucket_id <> $2 AND address <> ''";
    const HOLDERS = "SELECT DISTINCT COALESCE(b.name, p.bucket_id) AS holder FROM blob_places p LEFT JOIN buckets b ON b.owner = p.namespace_id AND b.id = p.bucket_id WHERE p.org_id = $1 AND p.connection_id = $2 ORDER BY holder LIMIT $3";
    const HELD = "SELECT CAST(CASE WHEN EXISTS (SELECT 1 FROM objects WHERE namespace_id = $1 AND bucket_id = $2) OR EXISTS (SELECT 1 FROM uploads WHERE namespace_id = $1 AND bucket_id = $2) THEN 1 ELSE 0 END AS BIGINT)";
}

fn place_id(namespace_id: &str, bucket_id: &str, destination: &BucketDestination) -> String {
    let connection_id = destination.connection_id.as_str();
    let prefix = destination.prefix.as_str();
    let mut hash = Sha256::new();
    for piece in [namespace_id, bucket_id, connection_id, prefix] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece.as_bytes());
    }
    format!("{PLACE}{}", hex::encode(&hash.finalize()[..12]))
}

/// What keys of files begin with that go into the bucket from now on.
pub fn root(namespace_id: &str, bucket: &BucketResponse) -> String {
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    match &bucket.destination {
        Some(destination) => {
            let place_id = place_id(namespace_id, bucket_id, destination);
            format!("{namespace_id}/{place_id}")
        }
        None => namespace_id.to_owned(),
    }
}

/// Whether the caller may have a bucket keep its files there. The connection is known by its id from then on.
///
/// # Errors
/// There is no such connection, it or the key is not for writing, or the prefix is no place.
pub(super) async fn check(
    app: &App,
    caller: &Caller,
    destination: Option<BucketDestination>,
) -> Result<Option<BucketDestination>> {
    let Some(mut destination) = destination else {
        return Ok(None);
    };
    check_user(caller)?;
    let (connection, prefix) = (&destination.connection_id, &destination.prefix);
    let found = connections::for_writing(app, caller, connection, prefix).await?;
    destination.connection_id = found.connection_id;
    Ok(Some(destination))
}

fn check_user(caller: &Caller) -> Result<()> {
    if caller.principal().is_some() {
        let message = "a key of an end user writes into no storage of the organization";
        return Err(ApiError::forbidden("permission_denied", message));
    }
    Ok(())
}

/// Whether the caller may have a bucket that is made after another keep its files where that one does. A connection that is
/// gone is no matter of the key: the bucket is [settled] without it.
///
/// # Errors
/// The key is not for writing through the connection.
pub async fn check_copied(
    tx: &mut Tx,
    (caller, namespace_id): (&Caller, &str),
    bucket: &BucketResponse,
) -> Result<()> {
    let Some(destination) = &bucket.destination else {
        return Ok(());
    };
    let id = &destination.connection_id;
    match CONNECTIONS.find_in(tx, &caller.org_id, id).await {
        Err(error) if error.is_not_found() => return Ok(()),
        found => drop(found?),
    }
    check_user(caller)?;
    // As if the bucket were made there.
    let mut caller = caller.clone();
    caller.within = Some(namespace_id.into());
    connections::allow(&caller, id, NamespaceOperation::WriteData)
}

/// What becomes of the place of a bucket's destination.
#[derive(PartialEq, Eq)]
enum Keeping {
    Kept,
    /// Its connection is gone, or leads nowhere any more.
    Gone,
    /// It is part of another bucket's place, or has another's in it.
    Shared,
}

/// Whether what lies at one of these is removed with a bucket that keeps its files at the other.
fn overlap(one: (&str, &str), other: (&str, &str)) -> bool {
    // Of all that may lie in a folder, a bucket has the folder of its own id.
    let folder = |(bucket_id, address): (&str, &str)| {
        format!("{}/{bucket_id}/", address.trim_end_matches('/'))
    };
    let (one, other) = (folder(one), folder(other));
    one.starts_with(&other) || other.starts_with(&one)
}

/// Keeps the place of a bucket's destination, if it may have it.
async fn keep(
    tx: &mut Tx,
    (org_id, namespace_id): (&str, &str),
    bucket: &BucketResponse,
    now: i64,
) -> Result<Keeping> {
    let Some(destination) = &bucket.destination else {
        return Ok(Keeping::Kept);
    };
    let (connection_id, prefix) = (&destination.connection_id, &destination.prefix);
    // Held, so that nobody deletes it meanwhile.
    let connection = match CONNECTIONS.hold(tx, org_id, connection_id).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(Keeping::Gone),
        Err(error) => return Err(error),
    };
    let Some(address) = connections::address(&connection, prefix) else {
        return Ok(Keeping::Gone);
    };
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    let others: Vec<(String, String)> = tx.all(OTHERS, args![org_id, bucket_id]).await?;
    let own = (bucket_id, address.as_str());
    let shares = |(id, address): &(String, String)| overlap(own, (id, address));
    if others.iter().any(shares) {
        return Ok(Keeping::Shared);
    }
    let place = Place {
        id: place_id(namespace_id, bucket_id, destination),
        org_id,
        namespace_id,
        bucket_id,
        connection_id,
        address: &address,
    };
    places::hold(tx, place, now).await?;
    Ok(Keeping::Kept)
}

/// Keeps the place of a new bucket's destination.
///
/// # Errors
/// 404 where the connection is gone, the 422 list for a folder that would be removed with another bucket, or that bucket's
/// with this one.
pub(super) async fn open(
    tx: &mut Tx,
    owner: (&str, &str),
    bucket: &BucketResponse,
    now: i64,
) -> Result<()> {
    let named = bucket.destination.clone().unwrap_or_default();
    match keep(tx, owner, bucket, now).await? {
        Keeping::Kept => Ok(()),
        Keeping::Gone => Err(ApiError::not_found("connection", &named.connection_id)),
        Keeping::Shared => {
            let msg = "this folder is in that of another bucket, or has it in it: files of the one would go with the other";
            let path = ["destination", "prefix"];
            Err(Violation::body(&path, "value_error", msg, named.prefix.into()).into())
        }
    }
}

/// The same for a bucket that may have got another destination.
///
/// # Errors
/// 409 where something is in the bucket: its files stay together.
pub(super) async fn change(
    tx: &mut Tx,
    (org_id, namespace_id): (&str, &str),
    before: &BucketResponse,
    bucket: &BucketResponse,
    now: i64,
) -> Result<()> {
    if bucket.destination == before.destination {
        return Ok(());
    }
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    let held = tx.number(HELD, args![namespace_id, bucket_id]).await?;
    if held > 0 {
        let message = "objects or uploads are in this bucket, and its destination stays where their files are: make another \
                       bucket, or remove them first";
        return Err(ApiError::conflict("destination_in_use", message));
    }
    open(tx, (org_id, namespace_id), bucket, now).await
}

/// Lets the places go that a bucket had before its destination changed, and their connections with them, unless something is
/// there: then they stay as long as the bucket, whose removal looks there again.
pub(super) async fn leave(app: &App, namespace_id: &str, bucket: &BucketResponse) {
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    // One that has a destination keeps one: without it there is nothing to leave.
    if bucket.destination.is_none() || bucket_id.is_empty() {
        return;
    }
    let current = root(namespace_id, bucket);
    if let Err(error) = leave_empty(app, namespace_id, bucket_id, &current).await {
        tracing::info!(%error, bucket_id, "a destination that a bucket left is kept until the bucket is removed");
    }
}

async fn leave_empty(app: &App, namespace_id: &str, bucket_id: &str, current: &str) -> Result<()> {
    for place_id in place_ids(app, namespace_id, bucket_id).await? {
        let left = format!("{namespace_id}/{place_id}");
        if left == current || !app.blobs().is_empty(&left).await? {
            continue;
        }
        let (namespace_id, bucket_id) = (namespace_id.to_owned(), bucket_id.to_owned());
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    // Held, so that it does not come back there meanwhile.
                    let bucket = BUCKETS.hold(tx, &namespace_id, &bucket_id).await?;
                    if root(&namespace_id, &bucket) == left {
                        return Ok(());
                    }
                    let args = args![namespace_id, place_id];
                    tx.run(LEAVE, args).await.map(drop)
                })
            })
            .await?;
    }
    Ok(())
}

/// A bucket that comes from elsewhere, a snapshot or another namespace: without its destination where the connection is gone,
/// or another bucket has that place by now.
///
/// # Errors
/// The database fails.
pub async fn settled(
    tx: &mut Tx,
    owner: (&str, &str),
    mut bucket: BucketResponse,
    now: i64,
) -> Result<BucketResponse> {
    if keep(tx, owner, &bucket, now).await? != Keeping::Kept {
        bucket.destination = None;
    }
    Ok(bucket)
}

/// Refuses while buckets keep files through the connection, or have objects whose files are read through it. Those that are
/// being removed do.
///
/// # Errors
/// 409 that names them.
pub async fn check_unused(tx: &mut Tx, org_id: &str, connection_id: &str) -> Result<()> {
    let args = args![org_id, connection_id, NAMED];
    let holders: Vec<(String,)> = tx.all(HOLDERS, args).await?;
    let names: Vec<String> = holders.into_iter().map(|row| row.0).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "files of buckets are kept or read through this connection: {}; remove them first",
        names.join(", ")
    );
    Err(ApiError::conflict("connection_in_use", message).with("buckets", names))
}

async fn place_ids(app: &App, namespace_id: &str, bucket_id: &str) -> Result<Vec<String>> {
    let found: Vec<(String,)> = app.db().all(LIST, args![namespace_id, bucket_id]).await?;
    let ids = found.into_iter().map(|row| row.0);
    // Sources of files are no places of this server.
    Ok(ids.filter(|id| id.starts_with(PLACE)).collect())
}

/// Removes folders of a namespace's files wherever they are kept. A storage that is away is in no other's way.
///
/// # Errors
/// A store fails; safe to repeat.
pub async fn delete_all(app: &App, namespace_id: &str, folders: &[String]) -> Result<()> {
    let mut removed = delete_in(app, namespace_id, folders).await;
    for place_id in place_ids(app, namespace_id, "").await? {
        let root = format!("{namespace_id}/{place_id}");
        removed = removed.and(delete_in(app, &root, folders).await);
    }
    removed
}

async fn delete_in(app: &App, root: &str, folders: &[String]) -> Result<()> {
    for folder in folders {
        let folder = format!("{root}/{folder}");
        app.blobs().delete_all(&folder).await?;
    }
    Ok(())
}

/// Forgets the places of a bucket that is removed (of the whole namespace, without one), once nothing is left in them.
///
/// # Errors
/// A store or the database fails; safe to repeat.
pub async fn forget(app: &App, namespace_id: &str, bucket_id: &str) -> Result<()> {
    for place_id in place_ids(app, namespace_id, bucket_id).await? {
        let folder = format!("{namespace_id}/{place_id}");
        app.blobs().delete_all(&folder).await?;
    }
    let (namespace_id, bucket_id) = (namespace_id.to_owned(), bucket_id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                tx.run(DELETE, args![namespace_id, bucket_id])
                    .await
                    .map(drop)
            })
        })
        .await
}

/// The storages behind places, asked as their connections say.
pub struct Destinations {
    db: Db,
    vault: Vault,
    outbound: Outbound,
    /// Those that are open, for a short time.
    open: Cache<String, Found>,
}

impl fmt::Debug for Destinations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Destinations")
            .finish_non_exhaustive()
    }
}

impl Destinations {
    pub fn new(db: Db, vault: Vault, outbound: Outbound) -> Self {
        let open = Cache::builder().max_capacity(1_000).time_to_live(FRESH);
        Self {
            db,
            vault,
            outbound,
            open: open.build(),
        }
    }

    async fn read(&self, namespace_id: &str, place_id: &str) -> Result<Found> {
        let args = args![namespace_id, place_id];
        let kept: Option<(String, String, String, String)> = self.db.one(FIND, args).await?;
        let Some((org_id, bucket_id, connection_id, address)) = kept else {
            return Ok(Found::Nowhere);
        };
        let connection = match CONNECTIONS.find(&self.db, &org_id, &connection_id).await {
            Ok(found) if found.is_active => found,
            Ok(_) => return Ok(Found::Closed),
            Err(error) if error.is_not_found() => return Ok(Found::Closed),
            Err(error) => return Err(error),
        };
        let access = (&self.vault, &self.outbound);
        let store = connections::kept_at(access, &org_id, &connection, &address, &bucket_id)?;
        Ok(Found::Open {
            store: Arc::new(store),
            writes: connection.write_enabled,
        })
    }

    async fn source(&self, link: &str) -> Result<(Found, Key)> {
        let link = Link::open(&self.vault, link)?;
        let key = Key::parse(&link.key).map_err(ApiError::internal)?;
        let name = format!("{}/{}/{}", link.org_id, link.connection_id, link.bucket);
        if let Some(found) = self.open.get(&name) {
            return Ok((found, key));
        }
        let named = CONNECTIONS.find(&self.db, &link.org_id, &link.connection_id);
        let connection = match named.await {
            Ok(found) if found.is_active => found,
            Ok(_) => return Ok((Found::Closed, key)),
            Err(error) if error.is_not_found() => return Ok((Found::Nowhere, key)),
            Err(error) => return Err(error),
        };
        let store = link.store((&self.vault, &self.outbound), &connection)?;
        let found = Found::Open {
            store: Arc::new(store),
            writes: false,
        };
        self.open.insert(name, found.clone());
        Ok((found, key))
    }
}

#[async_trait]
impl Places for Destinations {
    async fn find(&self, namespace_id: &str, place_id: &str) -> std::result::Result<Found, String> {
        let name = format!("{namespace_id}/{place_id}");
        if let Some(found) = self.open.get(&name) {
            return Ok(found);
        }
        let found = self.read(namespace_id, place_id).await;
        let found = found.map_err(|error| {
            tracing::warn!(%error, place_id, "the storage of a bucket's destination cannot be opened");
            format!("the bucket's destination cannot be used: {}", error.message())
        })?;
        if matches!(found, Found::Open { .. }) {
            self.open.insert(name, found.clone());
        }
        Ok(found)
    }

    async fn follow(&self, link: &str) -> std::result::Result<(Found, Key), String> {
        let found = self.source(link).await;
        found.map_err(|error| {
            tracing::warn!(%error, "the source of a file cannot be opened");
            format!("the file's source cannot be used: {}", error.message())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_go_with_another_bucket_is_known() {
        let kept = ("bkt_1", "s3://files/a");
        for (id, address, expected) in [
            ("bkt_2", "s3://files/a", false),
            ("bkt_2", "s3://files/a/bkt_1", true),
            ("bkt_2", "s3://files/a/bkt_1/deep/er", true),
            ("bkt_2", "s3://files/a/bkt_10", false),
            ("bkt_2", "s3://other/a/bkt_1", false),
            ("bkt_2", "s3://files/", false),
            ("a", "s3://files/", true),
        ] {
            assert_eq!(overlap(kept, (id, address)), expected, "{address}");
            assert_eq!(overlap((id, address), kept), expected, "{address}");
        }
    }

    #[test]
    fn a_destination_is_a_place_of_its_bucket_alone() {
        let bucket = |id: &str, prefix: Option<&str>| BucketResponse {
            bucket_id: Some(id.into()),
            destination: prefix.map(|prefix| BucketDestination {
                connection_id: "conn_1".into(),
                prefix: prefix.into(),
            }),
            ..Default::default()
        };
        let one = root("ns_1", &bucket("bkt_1", Some("a")));
        assert!(one.starts_with("ns_1/at_"), "{one}");
        assert_eq!(one, root("ns_1", &bucket("bkt_1", Some("a"))));
        assert_eq!(crate::blob::root(&format!("{one}/objects/obj_1")), one);
        for other in [
            root("ns_1", &bucket("bkt_1", Some("b"))),
            root("ns_1", &bucket("bkt_2", Some("a"))),
            root("ns_2", &bucket("bkt_1", Some("a"))),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(root("ns_1", &bucket("bkt_1", None)), "ns_1");
    }
}
