use loupe_wire::UserModel;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const INSERT = "INSERT INTO users (user_id, org_id, email, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const FIND = "SELECT data FROM users WHERE org_id = $1 AND email = $2 AND deleted_at IS NULL";
    const FIND_BY_ID = "SELECT data FROM users WHERE org_id = $1 AND user_id = $2 AND deleted_at IS NULL";
    const LIST = "SELECT data FROM users WHERE org_id = $1 AND deleted_at IS NULL ORDER BY created_at, user_id";
    const UPDATE = "UPDATE users SET updated_at = $3, data = $4 WHERE org_id = $1 AND user_id = $2";
    // The address is free again; the id takes its place, because addresses of an organization differ.
    const DELETE = "UPDATE users SET deleted_at = $3, email = user_id WHERE org_id = $1 AND user_id = $2 AND deleted_at IS NULL";
    // Those who went still have their names in the audit log.
    const LIST_EVER = "SELECT data FROM users WHERE org_id = $1";
}

type Row = (Json<UserModel>,);

pub async fn insert(tx: &mut Tx, user: &UserModel, now: i64) -> Result<()> {
    tx.run(
        INSERT,
        args![
            &user.user_id,
            &user.organization_id,
            &user.email,
            now,
            now,
            Arg::json(user)
        ],
    )
    .await?;
    Ok(())
}

pub async fn find(db: &Db, org_id: &str, email: &str) -> Result<UserModel> {
    let found: Option<Row> = db.one(FIND, args![org_id, email.to_lowercase()]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("user", email))
}

/// As [`find`], inside a transaction. Whoever changes what is read holds the keys and people of the organization first.
pub async fn find_in(tx: &mut Tx, org_id: &str, email: &str) -> Result<UserModel> {
    let found: Option<Row> = tx.one(FIND, args![org_id, email.to_lowercase()]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("user", email))
}

pub async fn list(db: &Db, org_id: &str) -> Result<Vec<UserModel>> {
    let rows: Vec<Row> = db.all(LIST, args![org_id]).await?;
    Ok(rows.into_iter().map(|(data,)| data.0).collect())
}

pub(super) async fn update(tx: &mut Tx, user: &UserModel, now: i64) -> Result<()> {
    tx.run(
        UPDATE,
        args![&user.organization_id, &user.user_id, now, Arg::json(user)],
    )
    .await?;
    Ok(())
}

/// None for who went, and for keys of nobody.
pub async fn find_by_id(db: &Db, org_id: &str, user_id: &str) -> Result<Option<UserModel>> {
    let found: Option<Row> = db.one(FIND_BY_ID, args![org_id, user_id]).await?;
    Ok(found.map(|(data,)| data.0))
}

pub async fn find_by_id_in(tx: &mut Tx, org_id: &str, user_id: &str) -> Result<UserModel> {
    let found: Option<Row> = tx.one(FIND_BY_ID, args![org_id, user_id]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("user", user_id))
}

/// Users of now and of before.
pub async fn list_ever(db: &Db, org_id: &str) -> Result<Vec<UserModel>> {
    let rows: Vec<Row> = db.all(LIST_EVER, args![org_id]).await?;
    Ok(rows.into_iter().map(|(data,)| data.0).collect())
}

pub(super) async fn delete(tx: &mut Tx, user: &UserModel, now: i64) -> Result<()> {
    tx.run(DELETE, args![&user.organization_id, &user.user_id, now])
        .await?;
    Ok(())
}
