use loupe_wire::CollectionResponse;

use super::archiving::MOVE;
use crate::{
    args,
    db::{Args, Db, Tx},
    error::Result,
    v1::snapshots::CAPTURE,
};

crate::table!(pub static COLLECTIONS: CollectionResponse = "collections", "collection");

crate::sql! {
    // Over all organizations: whether this installation has anything to search.
    const COUNT_ALL = "SELECT CAST(COUNT(*) AS BIGINT) FROM collections";
    // Ids need no other form in JSON, and have no sign that LIKE reads.
    const MOVING = "SELECT task_id FROM tasks WHERE org_id = $1 AND namespace_id = $2 AND kind = $3 AND status IN ('QUEUED', 'PROCESSING') AND CAST(work AS TEXT) LIKE $4 ESCAPE '!' ORDER BY created_at LIMIT 1";
    // A snapshot is of the whole namespace; an execution of a cluster names its cluster, which names the collection.
    const BUSY = "SELECT task_id FROM tasks WHERE org_id = $1 AND kind IS NOT NULL AND parent_id IS NULL AND status IN ('QUEUED', 'PROCESSING') AND ((namespace_id = $2 AND kind = $3) OR CAST(work AS TEXT) LIKE $4 ESCAPE '!') UNION ALL SELECT r.task_id FROM cluster_runs r JOIN clusters c ON c.owner = r.namespace_id AND c.id = r.cluster_id WHERE r.namespace_id = $2 AND r.status IN ('pending', 'processing') AND CAST(c.data AS TEXT) LIKE $4 ESCAPE '!' LIMIT 1";
    const FORGOTTEN = "SELECT object_id FROM away_removals WHERE namespace_id = $1 AND collection_id = $2 ORDER BY object_id";
    const FORGET = "INSERT INTO away_removals (namespace_id, collection_id, object_id) VALUES ($1, $2, $3) ON CONFLICT (namespace_id, collection_id, object_id) DO NOTHING";
    const COUNT_FORGOTTEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM away_removals WHERE namespace_id = $1 AND collection_id = $2";
    const DELETE_FORGOTTEN = "DELETE FROM away_removals WHERE namespace_id = $1 AND collection_id = $2";
}

/// What JSON that names the id looks like.
fn naming(id: &str) -> String {
    format!("%\"{}\"%", id.replace('_', "!_"))
}

fn moving_args(org_id: &str, namespace_id: &str, id: &str) -> Args {
    args![org_id, namespace_id, MOVE, naming(id)]
}

/// The task that moves the documents of a collection.
pub(super) async fn moving(
    db: &Db,
    org_id: &str,
    namespace_id: &str,
    id: &str,
) -> Result<Option<String>> {
    let args = moving_args(org_id, namespace_id, id);
    let found: Option<(String,)> = db.one(MOVING, args).await?;
    Ok(found.map(|(task_id,)| task_id))
}

/// Whether there is one.
pub(super) async fn moving_in(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    id: &str,
) -> Result<bool> {
    let args = moving_args(org_id, namespace_id, id);
    Ok(tx.one::<(String,)>(MOVING, args).await?.is_some())
}

/// A task that waits or runs and reads the collection or writes to it.
pub(super) async fn busy(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    id: &str,
) -> Result<Option<String>> {
    let args = args![org_id, namespace_id, CAPTURE, naming(id)];
    let found: Option<(String,)> = tx.one(BUSY, args).await?;
    Ok(found.map(|(task_id,)| task_id))
}

/// Notes objects whose documents a collection that is put away loses as it is brought back.
pub async fn forget(
    tx: &mut Tx,
    namespace_id: &str,
    collection_id: &str,
    object_ids: &[String],
) -> Result<()> {
    for object_id in object_ids {
        tx.run(FORGET, args![namespace_id, collection_id, object_id])
            .await?;
    }
    Ok(())
}

/// Those objects.
pub async fn forgotten(db: &Db, namespace_id: &str, collection_id: &str) -> Result<Vec<String>> {
    let args = args![namespace_id, collection_id];
    let rows: Vec<(String,)> = db.all(FORGOTTEN, args).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// How many they are.
pub(super) async fn count_forgotten(
    tx: &mut Tx,
    namespace_id: &str,
    collection_id: &str,
) -> Result<usize> {
    let args = args![namespace_id, collection_id];
    let count = tx.number(COUNT_FORGOTTEN, args).await?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Takes the notes of a collection away.
pub(super) async fn end_forgotten(
    tx: &mut Tx,
    namespace_id: &str,
    collection_id: &str,
) -> Result<()> {
    let args = args![namespace_id, collection_id];
    tx.run(DELETE_FORGOTTEN, args).await?;
    Ok(())
}

/// Whether there is no collection at all.
pub async fn is_empty(db: &Db) -> Result<bool> {
    Ok(db.number(COUNT_ALL, vec![]).await? == 0)
}
