//! What a restoration in place puts back: rows that are gone, under their ids, and files.

use loupe_engine::store::Document;
use loupe_wire::{SnapshotModel, reading};
use serde::Serialize;
use tokio::io::AsyncBufReadExt;

use super::{
    capture::{ObjectRow, Resources},
    restore::{STEP, files},
};
use crate::{
    app::App,
    args,
    auth::Caller,
    db::{Arg, Tx},
    error::{ApiError, Result},
    jobs::Claim,
    limits::quota::{self, Resource},
    v1::{
        buckets::BUCKETS,
        collections::{self, COLLECTIONS},
        namespaces::NAMESPACES,
        objects::blobs,
        retrievers::RETRIEVERS,
        taxonomies::{self, TAXONOMIES},
    },
    words::counted,
};

crate::sql! {
    const PUT_OBJECT = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
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
    blobs.copy(&kept, key).await?;
    Ok(true)
}

/// Rows that are gone, written again under their ids; what could not be is told.
pub(super) async fn put_rows(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
    resources: Resources,
) -> Result<Vec<String>> {
    let target = snapshot.namespace_id.clone();
    NAMESPACES.find(app.db(), &claim.org_id, &target).await?;
    let (caller, now) = (Caller::system(&claim.org_id), app.clock().micros());
    let mut skipped = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut skipped = Vec::new();
                for one in resources.buckets {
                    let id = one.bucket_id.as_deref().unwrap_or_default();
                    if is_free(tx, &BUCKETS, &target, (id, &one.bucket_name), &mut skipped).await? {
                        let name = &one.bucket_name;
                        quota::check(tx, &caller.org_id, Resource::Buckets).await?;
                        BUCKETS.insert(tx, &target, id, name, now, &one).await?;
                    }
                }
                for one in resources.collections {
                    let id = one.collection_id.as_deref().unwrap_or_default();
                    let names = (id, one.collection_name.as_str());
                    if is_free(tx, &COLLECTIONS, &target, names, &mut skipped).await? {
                        collections::insert(tx, &caller, &target, &one, now).await?;
                    }
                }
                for one in resources.retrievers {
                    let id = one.retriever_id.as_deref().unwrap_or_default();
                    let names = (id, one.retriever_name.as_str());
                    if is_free(tx, &RETRIEVERS, &target, names, &mut skipped).await? {
                        let name = &one.retriever_name;
                        quota::check(tx, &caller.org_id, Resource::Retrievers).await?;
                        RETRIEVERS.insert(tx, &target, id, name, now, &one).await?;
                    }
                }
                for one in resources.taxonomies {
                    let id = one.taxonomy_id.as_deref().unwrap_or_default();
                    let names = (id, one.taxonomy_name.as_str());
                    if is_free(tx, &TAXONOMIES, &target, names, &mut skipped).await? {
                        taxonomies::insert(tx, &caller, &target, &one, now).await?;
                    }
                }
                Ok(skipped)
            })
        })
        .await?;
    skipped.extend(objects(app, snapshot).await?);
    Ok(skipped)
}

/// Whether a row is gone and its name is free.
async fn is_free<T>(
    tx: &mut Tx,
    table: &crate::db::Table<T>,
    owner: &str,
    (id, name): (&str, &str),
    skipped: &mut Vec<String>,
) -> Result<bool>
where
    T: Serialize + serde::de::DeserializeOwned + Send + Sync + Unpin + 'static,
{
    for wanted in [id, name] {
        match table.find_in(tx, owner, wanted).await {
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(found) if found.id == id => return Ok(false),
            Ok(found) => {
                skipped.push(format!("{id}: {} has its name {name} now", found.id));
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Objects that are gone, with their files where the snapshot has them.
async fn objects(app: &App, snapshot: &SnapshotModel) -> Result<Vec<String>> {
    let key = format!("{}/objects.ndjson", snapshot.s3_prefix);
    let mut lines = app.blobs().reader(&key).await?.lines();
    let (mut lost, mut rows) = (0, Vec::new());
    loop {
        let line = lines.next_line().await.map_err(ApiError::internal)?;
        let is_last = line.is_none();
        if let Some(line) = line {
            let row: ObjectRow = reading::from_str(&line).map_err(ApiError::internal)?;
            let mut whole = true;
            for key in blobs::keys(&row.data.0) {
                whole &= put_file(app, snapshot, &key).await?;
            }
            match whole {
                true => rows.push(row),
                false => lost += 1,
            }
        }
        if rows.len() == STEP || (is_last && !rows.is_empty()) {
            let (rows, owner) = (std::mem::take(&mut rows), snapshot.namespace_id.clone());
            let now = app.clock().micros();
            app.db()
                .write(move |tx| Box::pin(async move { put_objects(tx, &owner, rows, now).await }))
                .await?;
        }
        if is_last {
            let told = format!(
                "{}: files are gone, and not in the snapshot",
                counted(lost, "object")
            );
            return Ok(if lost > 0 { vec![told] } else { Vec::new() });
        }
    }
}

async fn put_objects(tx: &mut Tx, owner: &str, rows: Vec<ObjectRow>, now: i64) -> Result<()> {
    for row in rows {
        // Lists are in the order of what they show.
        let made = row.data.0.created_at;
        let made = made.map_or(now, |made| made.timestamp_micros());
        let args = args![
            &row.object_id,
            owner,
            &row.bucket_id,
            row.key_prefix.as_deref(),
            row.unique_key.as_deref(),
            &row.content_hash,
            &row.status,
            row.size_bytes,
            made,
            now,
            Arg::json(&row.data.0)
        ];
        tx.run(PUT_OBJECT, args).await?;
    }
    Ok(())
}
