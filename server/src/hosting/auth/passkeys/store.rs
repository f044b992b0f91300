//! Passkeys in the database.

use serde::{Deserialize, Serialize};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    hosting::auth::store::Place,
};

crate::sql! {
    const INSERT = "INSERT INTO app_passkeys (app_id, credential_id, org_id, user_id, created_at, used_at, sign_count, data) VALUES ($1, $2, $3, $4, $5, 0, $6, $7) ON CONFLICT (app_id, credential_id) DO NOTHING";
    const FIND = "SELECT credential_id, user_id, created_at, used_at, sign_count, data FROM app_passkeys WHERE org_id = $1 AND app_id = $2 AND credential_id = $3";
    const OF_USER = "SELECT credential_id, user_id, created_at, used_at, sign_count, data FROM app_passkeys WHERE org_id = $1 AND app_id = $2 AND user_id = $3 ORDER BY created_at, credential_id";
    const USED = "UPDATE app_passkeys SET used_at = $5, sign_count = $6 WHERE org_id = $1 AND app_id = $2 AND user_id = $3 AND credential_id = $4";
    const DELETE = "DELETE FROM app_passkeys WHERE org_id = $1 AND app_id = $2 AND user_id = $3 AND credential_id = $4";
}

/// What is known of a passkey.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct About {
    /// What its owner calls it.
    pub name: String,
    /// The host it was made for: at another one no device offers it.
    pub host: String,
    /// Its public key, as COSE has it, in base64url.
    pub key: String,
}

crate::row! {
    /// A passkey of a person.
    #[derive(Debug, Clone)]
    pub struct Passkey {
        pub credential_id: String,
        pub user_id: String,
        pub created_at: i64,
        /// 0 before anybody signed in with it.
        pub used_at: i64,
        pub sign_count: i64,
        pub data: Json<About>,
    }
}

/// Whether it is there now: one with this id may be there already, whoever has it.
pub async fn insert(tx: &mut Tx, place: &Place, passkey: &Passkey) -> Result<bool> {
    let args = args![
        &place.app_id,
        &passkey.credential_id,
        &place.org_id,
        &passkey.user_id,
        passkey.created_at,
        passkey.sign_count,
        Arg::json(&passkey.data)
    ];
    Ok(tx.run(INSERT, args).await? > 0)
}

pub async fn find(db: &Db, place: &Place, credential_id: &str) -> Result<Option<Passkey>> {
    let args = args![&place.org_id, &place.app_id, credential_id];
    db.one(FIND, args).await
}

pub async fn find_in(tx: &mut Tx, place: &Place, credential_id: &str) -> Result<Option<Passkey>> {
    let args = args![&place.org_id, &place.app_id, credential_id];
    tx.one(FIND, args).await
}

/// The passkeys of a person, the oldest first.
pub async fn list(db: &Db, place: &Place, user_id: &str) -> Result<Vec<Passkey>> {
    let args = args![&place.org_id, &place.app_id, user_id];
    db.all(OF_USER, args).await
}

pub async fn list_in(tx: &mut Tx, place: &Place, user_id: &str) -> Result<Vec<Passkey>> {
    let args = args![&place.org_id, &place.app_id, user_id];
    tx.all(OF_USER, args).await
}

/// Notes that its device signed once more.
pub async fn update(
    tx: &mut Tx,
    place: &Place,
    passkey: &Passkey,
    sign_count: i64,
    now: i64,
) -> Result<()> {
    let args = args![
        &place.org_id,
        &place.app_id,
        &passkey.user_id,
        &passkey.credential_id,
        now,
        sign_count
    ];
    tx.run(USED, args).await?;
    Ok(())
}

/// Whether the person had such a passkey.
pub async fn delete(
    tx: &mut Tx,
    place: &Place,
    user_id: &str,
    credential_id: &str,
) -> Result<bool> {
    let args = args![&place.org_id, &place.app_id, user_id, credential_id];
    Ok(tx.run(DELETE, args).await? > 0)
}
