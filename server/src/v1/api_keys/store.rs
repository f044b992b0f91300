use loupe_wire::{APIKeyModel, APIKeyType, KeyStatus};

use crate::{
    args, clock,
    db::{Arg, Db, Json, Tx},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO api_keys (key_id, org_id, user_id, name, secret_hash, status, is_protected, expires_at, created_at, updated_at, data, retriever_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    const LIST = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 AND user_id = $2 ORDER BY created_at DESC, key_id";
    const LIST_ALL = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 ORDER BY created_at DESC, key_id";
    const LIST_RETRIEVER = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 AND retriever_id = $2 ORDER BY created_at DESC, key_id";
    const NEWEST_BY_NAME = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 AND user_id = $2 AND (name = $3 OR key_id = $3) ORDER BY CASE WHEN status = 'active' THEN 0 ELSE 1 END, created_at DESC LIMIT 1";
    const FIND = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 AND key_id = $2";
    // Visitors of pages use those of retrievers.
    const LAST_USES = "SELECT user_id, CAST(MAX(last_used_at) AS BIGINT) FROM api_keys WHERE org_id = $1 AND retriever_id IS NULL AND last_used_at IS NOT NULL GROUP BY user_id";
    const LIVE_IN_NAMESPACE = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE org_id = $1 AND status = 'active' AND retriever_id IN (SELECT id FROM retrievers WHERE owner = $2) ORDER BY created_at DESC, key_id";
    // The one read without an owner: the hash of the secret is what proves the owner.
    const FIND_BY_HASH = "SELECT key_id, secret_hash, status, is_protected, last_used_at, data FROM api_keys WHERE secret_hash = $1";
    const TOUCH = "UPDATE api_keys SET last_used_at = $3 WHERE org_id = $1 AND key_id = $2";
    const UPDATE = "UPDATE api_keys SET name = $3, secret_hash = $4, status = $5, expires_at = $6, updated_at = $7, data = $8 WHERE org_id = $1 AND key_id = $2";
    // An expired key keeps nobody from its name, nor from its place in the quota, whoever held it.
    const EXPIRE = "UPDATE api_keys SET status = 'expired' WHERE org_id = $1 AND status = 'active' AND expires_at <= $2";
}

crate::row! {
    /// A stored key. The status of a key whose time is over may still read `active`.
    struct Row {
        key_id: String,
        secret_hash: String,
        status: String,
        is_protected: bool,
        last_used_at: Option<i64>,
        data: Json<APIKeyModel>,
    }
}

/// A key with what callers never see.
pub(super) struct Stored {
    pub model: APIKeyModel,
    pub hash: String,
    /// The organization's own key cannot be updated, rotated or revoked.
    pub is_protected: bool,
}

impl From<Row> for Stored {
    fn from(row: Row) -> Self {
        let status = match row.status.as_str() {
            "active" => KeyStatus::Active,
            "expired" => KeyStatus::Expired,
            _ => KeyStatus::Revoked,
        };
        let mut model = row.data.0;
        model.key_id = Some(row.key_id);
        model.status = status;
        model.note.clone_from(&model.description);
        model.last_used_at = row.last_used_at.map(clock::time);
        Self {
            model,
            hash: row.secret_hash,
            is_protected: row.is_protected,
        }
    }
}

/// As the column keeps it.
const fn word(status: KeyStatus) -> &'static str {
    match status {
        KeyStatus::Active => "active",
        KeyStatus::Expired => "expired",
        KeyStatus::Revoked => "revoked",
    }
}

/// Nobody else changes keys and people of the organization until the transaction ends. What reads one and writes it back
/// begins here: on PostgreSQL two that read beside each other would each undo what the other wrote, and a key would be made
/// for somebody who is suspended just then.
pub async fn hold(tx: &mut Tx, org_id: &str) -> Result<()> {
    tx.lock(&format!("keys of {org_id}")).await
}

pub(super) async fn insert(
    tx: &mut Tx,
    key: &APIKeyModel,
    hash: &str,
    protected: bool,
    now: i64,
) -> Result<()> {
    let retriever_id = (key.key_type == APIKeyType::Retriever)
        .then(|| key.scopes.first().map(|scope| scope.resource_id.clone()))
        .flatten();
    let args = args![
        key.key_id.clone(),
        &key.internal_id,
        &key.user_id,
        &key.name,
        hash,
        word(key.status),
        protected,
        key.expires_at.map(|at| at.timestamp_micros()),
        now,
        now,
        Arg::json(key),
        retriever_id,
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

/// Marks the organization's keys whose time is over.
pub(super) async fn expire(tx: &mut Tx, org_id: &str, now: i64) -> Result<()> {
    tx.run(EXPIRE, args![org_id, now]).await?;
    Ok(())
}

pub(super) async fn list(db: &Db, org_id: &str, user_id: &str) -> Result<Vec<APIKeyModel>> {
    let rows: Vec<Row> = db.all(LIST, args![org_id, user_id]).await?;
    Ok(rows
        .into_iter()
        .map(|row| Stored::from(row).model)
        .collect())
}

pub(super) async fn list_all(db: &Db, org_id: &str) -> Result<Vec<APIKeyModel>> {
    let rows: Vec<Row> = db.all(LIST_ALL, args![org_id]).await?;
    Ok(rows
        .into_iter()
        .map(|row| Stored::from(row).model)
        .collect())
}

pub(super) async fn list_in(tx: &mut Tx, org_id: &str, user_id: &str) -> Result<Vec<Stored>> {
    let rows: Vec<Row> = tx.all(LIST, args![org_id, user_id]).await?;
    Ok(rows.into_iter().map(Stored::from).collect())
}

pub(super) async fn list_retriever(
    db: &Db,
    org_id: &str,
    retriever_id: &str,
) -> Result<Vec<APIKeyModel>> {
    let rows: Vec<Row> = db.all(LIST_RETRIEVER, args![org_id, retriever_id]).await?;
    Ok(rows
        .into_iter()
        .map(|row| Stored::from(row).model)
        .collect())
}

pub(super) async fn list_retriever_in(
    tx: &mut Tx,
    org_id: &str,
    retriever_id: &str,
) -> Result<Vec<Stored>> {
    let rows: Vec<Row> = tx.all(LIST_RETRIEVER, args![org_id, retriever_id]).await?;
    Ok(rows.into_iter().map(Stored::from).collect())
}

/// Keys that still open a retriever of a namespace.
pub(super) async fn list_live_in_namespace(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
) -> Result<Vec<Stored>> {
    let rows: Vec<Row> = tx
        .all(LIVE_IN_NAMESPACE, args![org_id, namespace_id])
        .await?;
    Ok(rows.into_iter().map(Stored::from).collect())
}

/// The active key of this name or id; the newest of the others when none is active.
pub(super) async fn find_by_name(
    tx: &mut Tx,
    org_id: &str,
    user_id: &str,
    name: &str,
) -> Result<Option<Stored>> {
    let row: Option<Row> = tx.one(NEWEST_BY_NAME, args![org_id, user_id, name]).await?;
    Ok(row.map(Stored::from))
}

/// Whether a key of the organization has this id.
pub(super) async fn is_id(tx: &mut Tx, org_id: &str, key_id: &str) -> Result<bool> {
    let row: Option<Row> = tx.one(FIND, args![org_id, key_id]).await?;
    Ok(row.is_some())
}

pub(super) async fn find(db: &Db, org_id: &str, key_id: &str) -> Result<Option<APIKeyModel>> {
    let row: Option<Row> = db.one(FIND, args![org_id, key_id]).await?;
    Ok(row.map(|row| Stored::from(row).model))
}

/// Users and when a key of theirs was last used.
pub(super) async fn last_uses(db: &Db, org_id: &str) -> Result<Vec<(String, i64)>> {
    db.all(LAST_USES, args![org_id]).await
}

pub(super) async fn find_by_hash(db: &Db, hash: &str) -> Result<Option<APIKeyModel>> {
    let row: Option<Row> = db.one(FIND_BY_HASH, args![hash]).await?;
    Ok(row.map(|row| Stored::from(row).model))
}

pub(super) async fn touch(tx: &mut Tx, org_id: &str, key_id: &str, now: i64) -> Result<()> {
    tx.run(TOUCH, args![org_id, key_id, now]).await?;
    Ok(())
}

pub(super) async fn update(tx: &mut Tx, key: &APIKeyModel, hash: &str, now: i64) -> Result<()> {
    let args = args![
        &key.internal_id,
        key.key_id.clone(),
        &key.name,
        hash,
        word(key.status),
        key.expires_at.map(|at| at.timestamp_micros()),
        now,
        Arg::json(key),
    ];
    tx.run(UPDATE, args).await?;
    Ok(())
}
