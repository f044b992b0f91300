//! Objects that a restoration in place puts back: those that are gone under their ids, those that changed as they were; and
//! files, where the snapshot has them.

use std::collections::BTreeSet;

use loupe_engine::store::Document;
use loupe_wire::{Object, ObjectResponse, SnapshotModel, TaskStatusEnum, Value, reading};
use tokio::io::AsyncBufReadExt;

use super::{
    restore::{STEP, files},
    streams::ObjectRow,
};
use crate::{
    app::App,
    args, blob, clock,
    db::{Arg, Json, Tx},
    error::{ApiError, Result},
    jobs::Claim,
    v1::{
        buckets::sources,
        namespaces::push_event,
        objects::{
            self, blobs,
            shelving::is_shelved,
            store::{Columns, Same},
        },
        removal::{self, Gone},
    },
    words::counted,
};

/// Objects that are named where something is told of many.
const NAMED: usize = 10;

crate::sql! {
    const PUT_OBJECT = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
    const SAME = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND object_id = $2 AND content_hash = $3";
    const DELETED = "SELECT payload FROM events WHERE org_id = $1 AND seq > $2 AND namespace_id = $3 AND event_type = 'object.deleted' ORDER BY seq";
    const IS_THERE = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND object_id = $2";
    // What collections hold of it is of another content, or will be: the next batch makes it again.
    const UNMAKE = "UPDATE processed SET content_hash = '' WHERE namespace_id = $1 AND object_id = $2";
}

/// Has the documents removed of objects that were deleted since a place in the feed, while both were put back: whoever deleted
/// one may have looked for its documents before they were there, and would leave them to be found for good.
pub(super) async fn take_away(app: &App, claim: &Claim, since: i64) -> Result<()> {
    let (org_id, owner) = (claim.org_id.clone(), claim.namespace_id.clone());
    let (owner, now) = (owner.unwrap_or_default(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let args = args![&org_id, since, &owner];
                let deleted: Vec<(Json<Object>,)> = tx.all(DELETED, args).await?;
                let mut gone = Vec::new();
                for (Json(payload),) in deleted {
                    let id = payload.get("object_id").and_then(Value::as_str);
                    let id = id.unwrap_or_default();
                    if tx.number(IS_THERE, args![&owner, id]).await? == 0 {
                        gone.push(id.to_owned());
                    }
                }
                removal::enqueue(tx, &org_id, &owner, Gone::documents(gone), now).await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}

pub(super) async fn put_files(
    app: &App,
    snapshot: &SnapshotModel,
    document: &Document,
) -> Result<()> {
    let named = document
        .payload
        .get("_internal")
        .and_then(|internal| internal.get("document_blobs")?.as_array());
    for blob in named.into_iter().flatten() {
        let url = blob["url"].as_str().unwrap_or_default();
        if let Some(key) = url.strip_prefix("blob://") {
            put_file(app, snapshot, key).await?;
        }
    }
    Ok(())
}

/// Whether the file is in its place, now if not before.
async fn put_file(app: &App, snapshot: &SnapshotModel, key: &str) -> Result<bool> {
    let blobs = app.blobs();
    if blobs.head(key).await?.is_some() {
        return Ok(true);
    }
    let Some(folder) = files(snapshot) else {
        return Ok(false);
    };
    let kept = format!("{folder}/{key}");
    if blobs.head(&kept).await?.is_none() {
        return Ok(false);
    }
    match blobs.copy(&kept, key).await {
        // What comes back is the way to a file at its source, which may be gone.
        Ok(()) if blob::is_linked(key) => {
            let is_there = blobs.head(key).await?.is_some();
            if !is_there {
                blobs.delete(key).await?;
            }
            Ok(is_there)
        }
        Ok(()) => Ok(true),
        // Its place is no more: the connection behind the bucket's destination is gone.
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts the objects back; what could not be is told.
pub(super) async fn put_objects(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
) -> Result<Vec<String>> {
    let pass = Pass {
        app,
        org_id: &claim.org_id,
        snapshot,
    };
    let (lost, mut taken) = pass.run(None).await?;
    // What one has of another's unique key is given back by the other's turn: again, as long as that helps.
    while !taken.is_empty() {
        let (_, left) = pass.run(Some(&taken)).await?;
        let is_stuck = left.len() == taken.len();
        taken = left;
        if is_stuck {
            break;
        }
    }
    app.work.notify_one();
    let mut told = Vec::new();
    if lost > 0 {
        let objects = counted(lost, "object");
        told.push(format!(
            "{objects}: files are gone, and not in the snapshot"
        ));
    }
    if !taken.is_empty() {
        let objects = counted(taken.len(), "object");
        let named: Vec<&str> = taken.iter().take(NAMED).map(String::as_str).collect();
        let named = named.join(", ");
        told.push(format!(
            "{objects}: other objects have their unique keys now ({named})"
        ));
    }
    Ok(told)
}

/// The objects of a snapshot being put back.
struct Pass<'a> {
    app: &'a App,
    org_id: &'a str,
    snapshot: &'a SnapshotModel,
}

impl Pass<'_> {
    /// Puts back all of them, or only some; answers how many have lost their files, and which ones have no unique key any
    /// more.
    async fn run(&self, only: Option<&BTreeSet<String>>) -> Result<(usize, BTreeSet<String>)> {
        let key = format!("{}/objects.ndjson", self.snapshot.s3_prefix);
        let mut lines = self.app.blobs().reader(&key).await?.lines();
        let (mut lost, mut taken, mut rows) = (0, BTreeSet::new(), Vec::new());
        loop {
            let line = lines.next_line().await.map_err(ApiError::internal)?;
            let is_last = line.is_none();
            if let Some(line) = line {
                let row: ObjectRow = reading::from_str(&line).map_err(ApiError::internal)?;
                if only.is_some_and(|only| !only.contains(&row.object_id)) {
                    continue;
                }
                match self.is_whole(&row).await? {
                    true => rows.push(row),
                    false => lost += 1,
                }
            }
            if rows.len() == STEP || (is_last && !rows.is_empty()) {
                taken.extend(self.write(std::mem::take(&mut rows)).await?);
            }
            if is_last {
                return Ok((lost, taken));
            }
        }
    }

    /// Whether the files of an object are in their places, now if not before.
    async fn is_whole(&self, row: &ObjectRow) -> Result<bool> {
        let mut whole = true;
        for key in blobs::keys(&row.data.0) {
            whole &= put_file(self.app, self.snapshot, &key).await?;
        }
        Ok(whole)
    }

    /// Answers the ids of those whose unique keys other objects have.
    async fn write(&self, mut rows: Vec<ObjectRow>) -> Result<Vec<String>> {
        // In one order for all who hold several: no two wait for each other.
        rows.sort_by(|one, other| one.object_id.cmp(&other.object_id));
        let place = Place {
            org_id: self.org_id.to_owned(),
            namespace_id: self.snapshot.namespace_id.clone(),
            now: self.app.clock().micros(),
        };
        self.app
            .db()
            .write(move |tx| Box::pin(async move { place.put_all(tx, rows).await }))
            .await
    }
}

/// Where objects are put back, and when.
struct Place {
    org_id: String,
    namespace_id: String,
    now: i64,
}

/// What became of one.
enum Put {
    Kept,
    /// Its unique key is that of another object.
    Taken,
    Made(Box<ObjectResponse>),
    Changed(Box<(ObjectResponse, ObjectResponse)>),
}

impl Place {
    async fn put_all(&self, tx: &mut Tx, rows: Vec<ObjectRow>) -> Result<Vec<String>> {
        // Events come last: the first of them is a lock.
        let (mut taken, mut changed, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let id = row.object_id.clone();
            match self.put(tx, row).await? {
                Put::Kept => {}
                Put::Taken => taken.push(id),
                Put::Made(object) => told.push(("object.created", *object)),
                Put::Changed(pair) => {
                    told.push(("object.updated", pair.1.clone()));
                    changed.push(*pair);
                }
            }
        }
        self.free(tx, &changed).await?;
        let (org_id, namespace_id, now) = (&self.org_id, &self.namespace_id, self.now);
        let read = blobs::sources(told.iter().map(|(_, object)| object));
        for (kind, object) in told {
            let payload = objects::payload(&object);
            push_event(tx, org_id, namespace_id, kind, payload, now).await?;
        }
        sources::hold(tx, (org_id, namespace_id), read, now).await?;
        Ok(taken)
    }

    async fn put(&self, tx: &mut Tx, row: ObjectRow) -> Result<Put> {
        let (owner, id) = (&self.namespace_id, &row.object_id);
        let is_there = objects::store::hold(tx, owner, id).await?;
        if let Some(key) = &row.unique_key {
            let same = Same::UniqueKey(key);
            let other = objects::store::find_same(tx, owner, &row.bucket_id, same).await?;
            if other.is_some_and(|other| other.object_id.as_ref() != Some(id)) {
                return Ok(Put::Taken);
            }
        }
        match is_there {
            true => self.change(tx, row).await,
            false => self.insert(tx, row).await,
        }
    }

    async fn insert(&self, tx: &mut Tx, row: ObjectRow) -> Result<Put> {
        // Lists are in the order of what they show.
        let made = row.data.0.created_at;
        let made = made.map_or(self.now, |made| made.timestamp_micros());
        let args = args![
            &row.object_id,
            &self.namespace_id,
            &row.bucket_id,
            row.key_prefix.as_deref(),
            row.unique_key.as_deref(),
            &row.content_hash,
            &row.status,
            row.size_bytes,
            made,
            self.now,
            Arg::json(&row.data.0)
        ];
        match tx.run(PUT_OBJECT, args).await? {
            // Made by somebody else right now, with its unique key.
            0 => Ok(Put::Taken),
            _ => Ok(Put::Made(Box::new(row.data.0))),
        }
    }

    async fn change(&self, tx: &mut Tx, row: ObjectRow) -> Result<Put> {
        let (owner, id) = (&self.namespace_id, &row.object_id);
        let found = objects::store::find_in(tx, owner, &row.bucket_id, id).await?;
        let Some(before) = found else {
            return Ok(Put::Kept);
        };
        let same = args![owner, id, &row.content_hash];
        let is_same = tx.number(SAME, same).await? > 0;
        let mut then = row.data.0;
        then.status = reading::from_value(&row.status.into()).unwrap_or(TaskStatusEnum::Unknown);
        then.updated_at = before.updated_at;
        // What batches say of it is about the documents that there are; who took it away, or back, is turned back.
        if is_same && !is_shelved(before.status) && !is_shelved(then.status) {
            then.status = before.status;
            then.error.clone_from(&before.error);
        }
        if then == before {
            return Ok(Put::Kept);
        }
        then.updated_at = Some(clock::time(self.now));
        let columns = Columns {
            unique_key: row.unique_key,
            content_hash: row.content_hash,
            idempotency_key: None,
            size_bytes: row.size_bytes,
        };
        objects::store::update(tx, owner, &then, &columns, self.now).await?;
        if !is_same {
            tx.run(UNMAKE, args![owner, id]).await?;
        }
        Ok(Put::Changed(Box::new((before, then))))
    }

    /// Frees the files that objects had instead, and what was made of those that are soft deleted again.
    async fn free(&self, tx: &mut Tx, changed: &[(ObjectResponse, ObjectResponse)]) -> Result<()> {
        let (org_id, owner, now) = (&self.org_id, &self.namespace_id, self.now);
        let mut replaced = Vec::new();
        for (before, then) in changed {
            let own: BTreeSet<String> = blobs::keys(then).collect();
            replaced.extend(blobs::keys(before).filter(|key| !own.contains(key)));
        }
        removal::enqueue(tx, org_id, owner, Gone::files(replaced), now).await?;
        let shelved = changed
            .iter()
            .filter(|(before, then)| is_shelved(then.status) && !is_shelved(before.status));
        let shelved = shelved.filter_map(|(_, then)| then.object_id.clone());
        let gone = Gone::documents(shelved.collect());
        removal::enqueue(tx, org_id, owner, gone, now).await
    }
}
