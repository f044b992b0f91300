use loupe_wire::CollectionResponse;

use super::archiving::MOVE;
use crate::{
    args,
    db::{Args, Db, Tx},
    error::Result,
};

crate::table!(pub static COLLECTIONS: CollectionResponse = "collections", "collection");

crate::sql! {
    // Over all organizations: whether this installation has anything to search.
    const COUNT_ALL = "SELECT CAST(COUNT(*) AS BIGINT) FROM collections";
    // Ids need no other form in JSON, and have no sign that LIKE reads.
    const MOVING = "SELECT task_id FROM tasks WHERE org_id = $1 AND namespace_id = $2 AND kind = $3 AND status IN ('QUEUED', 'PROCESSING') AND CAST(work AS TEXT) LIKE $4 ESCAPE '!' ORDER BY created_at LIMIT 1";
}

fn moving_args(org_id: &str, namespace_id: &str, id: &str) -> Args {
    let named = format!("%\"{}\"%", id.replace('_', "!_"));
    args![org_id, namespace_id, MOVE, named]
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

/// Whether there is no collection at all.
pub async fn is_empty(db: &Db) -> Result<bool> {
    Ok(db.number(COUNT_ALL, vec![]).await? == 0)
}
