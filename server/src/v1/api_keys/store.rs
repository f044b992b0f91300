use loupe_wire::APIKeyModel;
use sqlx::types::Json;

use crate::{
    args, clock,
    db::{Arg, Db, Tx},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO api_keys (key_id, org_id, user_id, name, secret_hash, status, is_protected, expires_at, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const NAME_TAKEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM api_keys WHERE org_id = $1 AND user_id = $2 AND name = $3 AND status = 'active'";
    const LIST = "SELECT data, last_used_at FROM api_keys WHERE org_id = $1 AND user_id = $2 ORDER BY created_at DESC, key_id";
    // The one read without an owner: the hash of the secret is what proves the owner.
    const FIND_BY_HASH = "SELECT data, last_used_at FROM api_keys WHERE secret_hash = $1";
    const TOUCH = "UPDATE api_keys SET last_used_at = $3 WHERE org_id = $1 AND key_id = $2";
}

type Row = (Json<APIKeyModel>, Option<i64>);

fn model((data, last_used_at): Row) -> APIKeyModel {
    APIKeyModel {
        last_used_at: last_used_at.map(clock::time),
        ..data.0
    }
}

pub(super) async fn insert(
    tx: &mut Tx,
    key: &APIKeyModel,
    hash: &str,
    protected: bool,
    now: i64,
) -> Result<()> {
    let args = args![
        key.key_id.clone(),
        &key.internal_id,
        &key.user_id,
        &key.name,
        hash,
        "active",
        protected,
        key.expires_at.map(|at| at.timestamp_micros()),
        now,
        now,
        Arg::json(key),
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

pub(super) async fn is_name_taken(
    tx: &mut Tx,
    org_id: &str,
    user_id: &str,
    name: &str,
) -> Result<bool> {
    Ok(tx.number(NAME_TAKEN, args![org_id, user_id, name]).await? > 0)
}

pub(super) async fn list(db: &Db, org_id: &str, user_id: &str) -> Result<Vec<APIKeyModel>> {
    let rows: Vec<Row> = db.all(LIST, args![org_id, user_id]).await?;
    Ok(rows.into_iter().map(model).collect())
}

pub(super) async fn find_by_hash(db: &Db, hash: &str) -> Result<Option<APIKeyModel>> {
    Ok(db.one::<Row>(FIND_BY_HASH, args![hash]).await?.map(model))
}

pub(super) async fn touch(tx: &mut Tx, org_id: &str, key_id: &str, now: i64) -> Result<()> {
    tx.run(TOUCH, args![org_id, key_id, now]).await?;
    Ok(())
}
