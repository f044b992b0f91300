use crate::{
    args,
    db::{Db, Tx},
    error::Result,
};

crate::sql! {
    const NAMES = "SELECT name FROM secrets WHERE org_id = $1 ORDER BY name";
    const FIND = "SELECT sealed FROM secrets WHERE org_id = $1 AND name = $2";
    const INSERT = "INSERT INTO secrets (org_id, name, sealed, created_at, updated_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (org_id, name) DO NOTHING";
    const UPDATE = "UPDATE secrets SET sealed = $3, updated_at = $4 WHERE org_id = $1 AND name = $2";
    const DELETE = "DELETE FROM secrets WHERE org_id = $1 AND name = $2";
}

pub(super) async fn names(db: &Db, org_id: &str) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db.all(NAMES, args![org_id]).await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

pub(super) async fn find(db: &Db, org_id: &str, name: &str) -> Result<Option<String>> {
    let row: Option<(String,)> = db.one(FIND, args![org_id, name]).await?;
    Ok(row.map(|(sealed,)| sealed))
}

/// Whether the name was free.
pub(super) async fn insert(
    tx: &mut Tx,
    org_id: &str,
    name: &str,
    sealed: &str,
    now: i64,
) -> Result<bool> {
    Ok(tx
        .run(INSERT, args![org_id, name, sealed, now, now])
        .await?
        > 0)
}

/// Whether there is such a secret.
pub(super) async fn update(
    tx: &mut Tx,
    org_id: &str,
    name: &str,
    sealed: &str,
    now: i64,
) -> Result<bool> {
    Ok(tx.run(UPDATE, args![org_id, name, sealed, now]).await? > 0)
}

/// Whether there was such a secret.
pub(super) async fn delete(tx: &mut Tx, org_id: &str, name: &str) -> Result<bool> {
    Ok(tx.run(DELETE, args![org_id, name]).await? > 0)
}
