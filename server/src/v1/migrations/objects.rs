//! Objects that come along: their rows under ids of their own, their files beside those of the new namespace. Ids are made of the
//! migration's and the old ones, so that what was cut off goes on where it stood and nothing comes twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use loupe_wire::{BucketResponse, ObjectResponse, TaskStatusEnum, reading};
use sha2::{Digest, Sha256};

use super::{
    running::is_wanted,
    work::{Refill, Work},
};
use crate::{
    app::App,
    args,
    db::{Arg, Json, Tx},
    error::Result,
    jobs::Claim,
    v1::{
        buckets::{BUCKETS, destinations, sources},
        namespaces::push_event,
        objects::{self, blobs, shelving::is_shelved},
        tasks::name_of,
    },
};

/// Objects of one step.
const STEP: usize = 100;

/// How long files are copied until it is asked again whether somebody wants them.
const LOOK: Duration = Duration::from_secs(1);

crate::sql! {
    // In the order of the index that leads to them.
    const PAGE = "SELECT object_id, key_prefix, unique_key, content_hash, status, size_bytes, created_at, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $3 AND (created_at < $3 OR object_id > $4) ORDER BY created_at DESC, object_id LIMIT $5";
    const INSERT = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
}

crate::row! {
    /// An object with its columns.
    struct Row {
        object_id: String,
        key_prefix: Option<String>,
        unique_key: Option<String>,
        content_hash: String,
        status: String,
        size_bytes: i64,
        created_at: i64,
        data: Json<ObjectResponse>,
    }
}

/// A file and where its copy goes.
type File = (String, String);

/// The id of an object's copy. It begins as the old one does: rows lie beside each other in the indexes, in the same order.
fn copied_id(migration_id: &str, id: &str) -> String {
    let digest = hex::encode(Sha256::digest(format!("{migration_id}/{id}")));
    id.chars()
        .take("obj_".len() + 9)
        .chain(digest.chars().take(20))
        .collect()
}

/// What becomes of the objects of one bucket.
struct Place<'a> {
    migration_id: &'a str,
    bucket_id: &'a str,
    /// What keys of its files begin with.
    root: String,
    /// Collections of the source and their copies.
    collections: &'a BTreeMap<String, String>,
}

impl Place<'_> {
    /// The copy of an object as it is before any batch, and its files.
    fn copied(&self, mut row: Row) -> (Row, Vec<File>) {
        row.object_id = copied_id(self.migration_id, &row.object_id);
        let folder = blobs::folder(&self.root, &row.object_id);
        let object = &mut row.data.0;
        object.object_id = Some(row.object_id.clone());
        self.bucket_id.clone_into(&mut object.bucket_id);
        let mut files = Vec::new();
        for blob in &mut object.blobs {
            let Some(key) = blobs::key(blob).map(ToOwned::to_owned) else {
                continue;
            };
            // The folder of the file says whether it is a link.
            let mut pieces = key.rsplitn(3, '/');
            let (name, own) = (pieces.next(), pieces.next());
            let (name, own) = (name.unwrap_or_default(), own.unwrap_or_default());
            let copy = format!("{folder}/{own}/{name}");
            blob.properties
                .insert("url".into(), format!("blob://{copy}").into());
            files.push((key, copy));
        }
        for edge in &mut object.edges {
            if edge.target_object_id.starts_with("obj_") {
                edge.target_object_id = copied_id(self.migration_id, &edge.target_object_id);
            }
            if let Some(named) = &mut edge.target_collection_id
                && let Some(new) = self.collections.get(named.as_str())
            {
                named.clone_from(new);
            }
        }
        let status = reading::from_value(&row.status.as_str().into()).unwrap_or_default();
        if !is_shelved(status) {
            // No batch has processed it.
            row.status = name_of(TaskStatusEnum::Draft);
            object.status = TaskStatusEnum::Draft;
            object.error = None;
        }
        (row, files)
    }
}

/// How far objects have come.
pub(super) enum Brought {
    All,
    /// Nobody wants them any more.
    Stopped,
}

/// Brings the objects of the buckets along; `note` is told after each step how many have come, and answers whether to go on.
///
/// # Errors
/// A store or the database fails; what came stays, and is passed over when this is done again.
pub(super) async fn bring<N, F>(
    app: &App,
    claim: &Claim,
    (work, refill): (&Work, &Refill),
    note: N,
) -> Result<Brought>
where
    N: Fn(i64) -> F + Send + Sync,
    F: Future<Output = Result<bool>> + Send,
{
    let target = claim.namespace_id.as_deref().unwrap_or_default();
    let mut count = 0;
    for (from, to) in &refill.buckets {
        let bucket: BucketResponse = match BUCKETS.find(app.db(), target, to).await {
            Ok(found) => found.data.0,
            // Removed meanwhile.
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let place = Place {
            migration_id: &work.migration_id,
            bucket_id: to,
            root: destinations::root(target, &bucket),
            collections: &refill.collections,
        };
        let mut after = (refill.until, String::new());
        loop {
            let limit = i64::try_from(STEP).unwrap_or(i64::MAX);
            let source = &work.copy.from_namespace;
            let args = args![source, from, after.0, &after.1, limit];
            let rows: Vec<Row> = app.db().all(PAGE, args).await?;
            let Some(last) = rows.last() else { break };
            after = (last.created_at, last.object_id.clone());
            count += i64::try_from(rows.len()).unwrap_or(0);
            if !step(app, claim, work, &place, rows).await? || !note(count).await? {
                return Ok(Brought::Stopped);
            }
        }
    }
    Ok(Brought::All)
}

/// Brings those of some objects that are not there yet; false once nobody wants them.
async fn step(
    app: &App,
    claim: &Claim,
    work: &Work,
    place: &Place<'_>,
    rows: Vec<Row>,
) -> Result<bool> {
    let target = claim.namespace_id.as_deref().unwrap_or_default();
    let ids = rows
        .iter()
        .map(|row| copied_id(place.migration_id, &row.object_id));
    let ids: Vec<String> = ids.collect();
    let there = objects::store::find_named(app.db(), target, &ids).await?;
    let there: BTreeSet<Option<String>> = there.into_iter().map(|one| one.object_id).collect();
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let (mut coming, mut asked) = (Vec::new(), None::<Instant>);
    for row in rows {
        let (row, files) = place.copied(row);
        if there.contains(&row.data.0.object_id) {
            continue;
        }
        if asked.is_none_or(|at| at.elapsed() > LOOK) {
            if !is_wanted(app, claim, &work.migration_id).await? {
                return Ok(false);
            }
            asked = Some(Instant::now());
        }
        copy_files(app, &files).await?;
        coming.push(row);
    }
    if coming.is_empty() {
        return Ok(true);
    }
    let (org_id, target) = (claim.org_id.clone(), target.to_owned());
    let (bucket_id, now) = (place.bucket_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move { insert(tx, (&org_id, &target, &bucket_id), coming, now).await })
        })
        .await?;
    Ok(true)
}

/// Files on one disk take no room twice. An object whose file is gone comes without it: its batch says what it failed of.
async fn copy_files(app: &App, files: &[File]) -> Result<()> {
    for (from, to) in files {
        match app.blobs().copy(from, to).await {
            Err(error) if error.is_not_found() => {}
            copied => copied?,
        }
    }
    Ok(())
}

async fn insert(
    tx: &mut Tx,
    (org_id, namespace_id, bucket_id): (&str, &str, &str),
    rows: Vec<Row>,
    now: i64,
) -> Result<()> {
    match BUCKETS.find_in(tx, namespace_id, bucket_id).await {
        // Removed meanwhile.
        Err(error) if error.is_not_found() => return Ok(()),
        found => drop(found?),
    }
    let mut made = Vec::with_capacity(rows.len());
    for row in rows {
        let args = args![
            &row.object_id,
            namespace_id,
            bucket_id,
            row.key_prefix.as_deref(),
            row.unique_key.as_deref(),
            &row.content_hash,
            &row.status,
            row.size_bytes,
            row.created_at,
            now,
            Arg::json(&row.data.0)
        ];
        if tx.run(INSERT, args).await? == 1 {
            made.push(row.data.0);
        }
    }
    let read = blobs::sources(made.iter());
    for object in &made {
        let payload = objects::payload(object);
        push_event(tx, org_id, namespace_id, "object.created", payload, now).await?;
    }
    sources::hold(tx, (org_id, namespace_id), read, now).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(data: serde_json::Value) -> Row {
        Row {
            object_id: "obj_0VfTabcdeABCDEFGHIJK".into(),
            key_prefix: None,
            unique_key: None,
            content_hash: "hash".into(),
            status: "FAILED".into(),
            size_bytes: 1,
            created_at: 1,
            data: Json(serde_json::from_value(data).unwrap()),
        }
    }

    #[test]
    fn a_copy_is_an_object_of_its_own_that_no_batch_has_seen() {
        let collections = BTreeMap::from([("col_1".to_owned(), "col_2".to_owned())]);
        let place = Place {
            migration_id: "mig_1",
            bucket_id: "bkt_2",
            root: "ns_2/at_1".into(),
            collections: &collections,
        };
        let other = "obj_0VfTabcdfABCDEFGHIJK";
        let data = || {
            json!({
                "object_id": "obj_0VfTabcdeABCDEFGHIJK", "bucket_id": "bkt_1", "error": "no such picture", "title": "red",
                "blobs": [{"property": "image", "type": "image", "properties": {"url": "blob://ns_1/objects/obj_0/link_1/a.png"}}],
                "edges": [{"type": "next", "target_object_id": other, "target_collection_id": "col_1"}],
            })
        };
        let (copy, files) = place.copied(row(data()));
        let id = copied_id("mig_1", "obj_0VfTabcdeABCDEFGHIJK");
        assert!(id.starts_with("obj_0VfTabcde") && id.len() == 33, "{id}");
        let key = format!("ns_2/at_1/objects/{id}/link_1/a.png");
        assert_eq!(
            files,
            [("ns_1/objects/obj_0/link_1/a.png".to_owned(), key.clone())]
        );
        let object = &copy.data.0;
        assert_eq!(
            (&object.object_id, object.bucket_id.as_str()),
            (&Some(id.clone()), "bkt_2")
        );
        assert_eq!(blobs::key(&object.blobs[0]), Some(key.as_str()));
        assert_eq!(object.edges[0].target_object_id, copied_id("mig_1", other));
        assert_eq!(
            object.edges[0].target_collection_id.as_deref(),
            Some("col_2")
        );
        assert_eq!((copy.status.as_str(), &object.error), ("DRAFT", &None));
        // The same again is the same object; what was taken away stays so.
        let mut shelved = row(data());
        shelved.status = "ARCHIVED".into();
        let (again, _) = place.copied(shelved);
        assert_eq!((again.object_id, again.status.as_str()), (id, "ARCHIVED"));
        assert_ne!(copied_id("mig_2", other), copied_id("mig_1", other));
    }
}
