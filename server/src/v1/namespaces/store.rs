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
}

/// How long an id that was freed is nobody else's: other processes know of a removal by then.
const FORGOTTEN: i64 = 10_000_000;

/// Ids are unique over all organizations; the answer must not tell whose it is.
pub(super) async fn id_taken(tx: &mut Tx, id: &str, org_id: &str, now: i64) -> Result<bool> {
    let args = args![id, org_id, now - FORGOTTEN];
    Ok(tx.number(ID_TAKEN, args).await? > 0)
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

/// The organization's namespace, if it has exactly one.
pub async fn only_one(db: &Db, org_id: &str) -> Result<Option<String>> {
    let mut rows: Vec<(String,)> = db.all(FIRST_TWO, args![org_id]).await?;
    Ok(if rows.len() == 1 {
        rows.pop().map(|(id,)| id)
    } else {
        None
    })
}
