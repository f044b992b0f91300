use chrono::{DateTime, Utc};
use loupe_wire::NamespaceModel;

use crate::{
    args,
    db::{Db, Tx},
    error::Result,
};

crate::table!(pub static NAMESPACES: NamespaceModel = "namespaces", "namespace");

crate::sql! {
    // An id that is being freed is not free yet: the removal would take along what is made under it, and whoever is given
    // it would find what is still there. A removal that ended otherwise than done leaves the id taken for good.
    const ID_TAKEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT id FROM namespaces WHERE id = $1 UNION ALL SELECT namespace_id FROM tasks WHERE namespace_id = $1 AND task_type = 'api_namespaces_delete' AND (status <> 'COMPLETED' OR (org_id <> $2 AND ended_at > $3)) UNION ALL SELECT namespace_id FROM tasks_archive WHERE namespace_id = $1 AND task_type = 'api_namespaces_delete' AND (status <> 'COMPLETED' OR (org_id <> $2 AND ended_at > $3))) AS taken";
    const FIRST_TWO = "SELECT id FROM namespaces WHERE owner = $1 ORDER BY created_at LIMIT 2";
    const COUNTS = "SELECT (SELECT CAST(COUNT(*) AS BIGINT) FROM buckets WHERE owner = $1) AS buckets, (SELECT CAST(COUNT(*) AS BIGINT) FROM collections WHERE owner = $1) AS collections, (SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1) AS objects";
    const SET_EXPIRY = "UPDATE namespaces SET expires_at = $3 WHERE owner = $1 AND id = $2";
    // Looks through every organization. Those in which batches wait or run come later, so that they are in nobody's way.
    const EXPIRED = "SELECT owner, id, expires_at FROM namespaces WHERE expires_at <= $1 AND (expires_at <= $2 OR NOT EXISTS (SELECT 1 FROM batches WHERE batches.namespace_id = namespaces.id AND batches.status IN ('QUEUED', 'PROCESSING'))) ORDER BY expires_at, id LIMIT $3";
    const HOLD_EXPIRED = "UPDATE namespaces SET updated_at = updated_at WHERE owner = $1 AND id = $2 AND expires_at <= $3";
}

/// How long an id that was freed is nobody else's: other processes know of a removal by then.
const FORGOTTEN: i64 = 10_000_000;

/// Ids are unique over all organizations; the answer must not tell whose it is.
pub(super) async fn id_taken(tx: &mut Tx, id: &str, org_id: &str, now: i64) -> Result<bool> {
    let args = args![id, org_id, now - FORGOTTEN];
    Ok(tx.number(ID_TAKEN, args).await? > 0)
}

/// Writes a new namespace's row.
pub(super) async fn insert(
    tx: &mut Tx,
    org_id: &str,
    namespace: &NamespaceModel,
    now: i64,
) -> Result<()> {
    let id = namespace.namespace_id.as_deref().unwrap_or_default();
    let name = &namespace.namespace_name;
    NAMESPACES
        .insert(tx, org_id, id, name, now, namespace)
        .await?;
    match namespace.expires_at {
        Some(at) => set_expiry(tx, org_id, id, Some(at)).await,
        None => Ok(()),
    }
}

/// The sweep goes by a column; what is shown is in the data.
pub(super) async fn set_expiry(
    tx: &mut Tx,
    org_id: &str,
    id: &str,
    at: Option<DateTime<Utc>>,
) -> Result<()> {
    let at = at.map(|at| at.timestamp_micros());
    tx.run(SET_EXPIRY, args![org_id, id, at]).await.map(drop)
}

/// Organizations, ids and ends of those whose time is over, in the order in which they ended. While batches wait or run,
/// only those that ended before `late`.
pub(super) async fn expired(
    db: &Db,
    now: i64,
    late: i64,
    most: i64,
) -> Result<Vec<(String, String, i64)>> {
    db.all(EXPIRED, args![now, late, most]).await
}

/// Whether the time of the namespace is over still; nobody else changes it until the transaction ends.
pub(super) async fn hold_expired(tx: &mut Tx, org_id: &str, id: &str, now: i64) -> Result<bool> {
    let held = tx.run(HOLD_EXPIRED, args![org_id, id, now]).await?;
    Ok(held == 1)
}

pub(super) async fn count(db: &Db, id: &str, namespace: &mut NamespaceModel) -> Result<()> {
    if let Some((buckets, collections, objects)) =
        db.one::<(i64, i64, i64)>(COUNTS, args![id]).await?
    {
        namespace.bucket_count = Some(buckets);
        namespace.collection_count = Some(collections);
        namespace.object_count = Some(objects);
    }
    Ok(())
}

/// Ids of the first two namespaces of an organization.
pub async fn first_two(db: &Db, org_id: &str) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db.all(FIRST_TWO, args![org_id]).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// The organization's namespace, if it has exactly one.
pub async fn only_one(db: &Db, org_id: &str) -> Result<Option<String>> {
    let mut ids = first_two(db, org_id).await?;
    Ok(ids.pop().filter(|_| ids.is_empty()))
}
