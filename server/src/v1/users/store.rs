use loupe_wire::UserModel;
use sqlx::types::Json;

use crate::{
    args,
    db::{Arg, Db, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const INSERT = "INSERT INTO users (user_id, org_id, email, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const FIND = "SELECT data FROM users WHERE org_id = $1 AND email = $2";
    const LIST = "SELECT data FROM users WHERE org_id = $1 ORDER BY created_at, user_id";
    const UPDATE = "UPDATE users SET updated_at = $3, data = $4 WHERE org_id = $1 AND user_id = $2";
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
