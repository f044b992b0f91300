//! Connections through which files are read that stay at their source: each is held while objects of a bucket have such files.

use std::collections::BTreeSet;

use loupe_wire::ObjectResponse;

use super::places::{self, Place};
use crate::{
    app::App,
    args,
    db::{Json, Tx},
    error::Result,
    v1::{connections::CONNECTIONS, objects::blobs},
};

/// Objects of a bucket that are looked at at once.
const STEP: i64 = 500;

crate::sql! {
    const HELD = "SELECT namespace_id, place_id, bucket_id, created_at FROM blob_places WHERE org_id = $1 AND connection_id = $2 AND address = ''";
    // In the order of the index that leads to them.
    const OBJECTS = "SELECT object_id, created_at, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $3 AND (created_at < $3 OR object_id > $4) ORDER BY created_at DESC, object_id LIMIT $5";
    const RELEASE = "DELETE FROM blob_places WHERE namespace_id = $1 AND place_id = $2 AND created_at = $3";
}

/// Holds the connections of objects that were just written: ids of connections and buckets. Comes last in its transaction, as
/// those who make buckets have the organization first.
///
/// # Errors
/// 404 where a connection is gone.
pub async fn hold(
    tx: &mut Tx,
    (org_id, namespace_id): (&str, &str),
    sources: BTreeSet<(String, String)>,
    now: i64,
) -> Result<()> {
    for (connection_id, bucket_id) in sources {
        // So that nobody deletes it meanwhile.
        CONNECTIONS.hold(tx, org_id, &connection_id).await?;
        let place = Place {
            id: format!("from_{bucket_id}_{connection_id}"),
            org_id,
            namespace_id,
            bucket_id: &bucket_id,
            connection_id: &connection_id,
            address: "",
        };
        places::hold(tx, place, now).await?;
    }
    Ok(())
}

/// Lets a connection go for the buckets of which no object has files any more that are read through it.
///
/// # Errors
/// The database fails.
pub async fn release(app: &App, org_id: &str, connection_id: &str) -> Result<()> {
    let args = args![org_id, connection_id];
    let held: Vec<(String, String, String, i64)> = app.db().all(HELD, args).await?;
    for (namespace_id, place_id, bucket_id, seen) in held {
        if is_used(app, (&namespace_id, &bucket_id), connection_id).await? {
            continue;
        }
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    let args = args![namespace_id, place_id, seen];
                    tx.run(RELEASE, args).await.map(drop)
                })
            })
            .await?;
    }
    Ok(())
}

async fn is_used(
    app: &App,
    (namespace_id, bucket_id): (&str, &str),
    connection_id: &str,
) -> Result<bool> {
    let mut after = (i64::MAX, String::new());
    loop {
        let args = args![namespace_id, bucket_id, after.0, &after.1, STEP];
        let rows: Vec<(String, i64, Json<ObjectResponse>)> = app.db().all(OBJECTS, args).await?;
        let objects = rows.iter().map(|(_, _, object)| &object.0);
        let found = blobs::sources(objects);
        if found.iter().any(|(id, _)| id == connection_id) {
            return Ok(true);
        }
        match rows.into_iter().next_back() {
            Some((last, made, _)) => after = (made, last),
            None => return Ok(false),
        }
    }
}
