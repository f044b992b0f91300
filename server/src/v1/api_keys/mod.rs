//! API keys: minted once, kept as a hash, found by it.

mod routes;
mod store;

use std::sync::Arc;

use loupe_wire::{APIKeyCreateRequest, APIKeyModel, APIKeyType, KeyStatus, Permission, UserModel};

pub use routes::router;

use super::users;
use crate::{
    app::App,
    auth::{Caller, key},
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
};

/// How a key is made, besides what its owner asks for.
pub struct Mint<'a> {
    /// The organization's own key cannot be updated, rotated or deleted.
    pub protected: bool,
    pub actor: &'a str,
    pub now: i64,
}

/// Inserts a key and answers it with its secret, the only time the secret is seen.
pub async fn mint(
    tx: &mut Tx,
    user: &UserModel,
    request: APIKeyCreateRequest,
    how: Mint<'_>,
) -> Result<(APIKeyModel, String)> {
    if store::is_name_taken(tx, &user.organization_id, &user.user_id, &request.name).await? {
        let message = format!("an active key named '{}' exists already", request.name);
        return Err(ApiError::already_exists("name_taken", message).with("name", request.name));
    }
    let kind = if request.principal_id.is_some() {
        key::Kind::UserScoped
    } else {
        key::Kind::Standard
    };
    let secret = key::generate(kind);
    let hash = key::hash(&secret);
    let model = APIKeyModel {
        key_id: Some(id::new("key_")),
        // The stored hash never leaves the database; callers get a fingerprint to tell secrets apart.
        key_hash: hash[..12].to_owned(),
        key_prefix: Some(secret[..kind.prefix().len() + 4].to_owned()),
        key_type: if request.principal_id.is_some() {
            APIKeyType::UserScoped
        } else {
            APIKeyType::Standard
        },
        internal_id: user.organization_id.clone(),
        organization_id: Some(user.organization_id.clone()),
        user_id: user.user_id.clone(),
        name: request.name,
        description: request.description.unwrap_or_default(),
        permissions: request
            .permissions
            .unwrap_or_else(|| vec![Permission::Read, Permission::Write, Permission::Delete]),
        scopes: request.scopes.unwrap_or_default(),
        rate_limit_override: request.rate_limit_override,
        expires_at: request.expires_at,
        principal_id: request.principal_id,
        allowed_origins: request
            .allowed_origins
            .filter(|origins| !origins.is_empty()),
        created_at: Some(clock::time(how.now)),
        created_by: Some(how.actor.to_owned()),
        ..Default::default()
    };
    store::insert(tx, &model, &hash, how.protected, how.now).await?;
    Ok((model, secret))
}

pub async fn create(
    app: &App,
    caller: &Caller,
    email: &str,
    request: APIKeyCreateRequest,
) -> Result<(APIKeyModel, String)> {
    if request.permissions.as_ref().is_some_and(Vec::is_empty) {
        return Err(Violation::body(
            &["permissions"],
            "too_short",
            "name at least one permission",
            serde_json::json!([]),
        )
        .into());
    }
    let now = app.clock().micros();
    if request
        .expires_at
        .is_some_and(|at| at.timestamp_micros() <= now)
    {
        return Err(Violation::body(
            &["expires_at"],
            "value_error",
            "expires_at lies in the past",
            serde_json::Value::Null,
        )
        .into());
    }
    let (org_id, email, actor) = (
        caller.org_id.clone(),
        email.to_owned(),
        caller.actor().to_owned(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let user = users::find_in(tx, &org_id, &email).await?;
                mint(
                    tx,
                    &user,
                    request,
                    Mint {
                        protected: false,
                        actor: &actor,
                        now,
                    },
                )
                .await
            })
        })
        .await
}

/// Keys of a user, newest first, with expiry applied.
pub async fn list(
    app: &App,
    caller: &Caller,
    email: &str,
    include_revoked: bool,
) -> Result<Vec<APIKeyModel>> {
    let user = users::find(app.db(), &caller.org_id, email).await?;
    let now = app.clock().now();
    let mut keys = store::list(app.db(), &caller.org_id, &user.user_id).await?;
    for key in &mut keys {
        if key.status == KeyStatus::Active && key.expires_at.is_some_and(|at| at <= now) {
            key.status = KeyStatus::Expired;
        }
    }
    keys.retain(|key| include_revoked || key.status != KeyStatus::Revoked);
    Ok(keys)
}

/// The key with this SHA-256, from the cache or one indexed read.
pub async fn find_by_hash(app: &App, hash: &str) -> Result<Option<Arc<APIKeyModel>>> {
    if let Some(key) = app.keys.get(hash).await {
        return Ok(Some(key));
    }
    let Some(found) = store::find_by_hash(app.db(), hash).await? else {
        return Ok(None);
    };
    let found = Arc::new(found);
    app.keys.insert(hash.to_owned(), found.clone()).await;
    Ok(Some(found))
}

/// Records the use of a key, at most once a minute and never on the request's path.
pub fn touch(app: &App, key: &APIKeyModel) {
    let Some(key_id) = key.key_id.clone() else {
        return;
    };
    if app.touched.contains_key(&key_id) {
        return;
    }
    let (app, org_id) = (app.clone(), key.organization_id.clone().unwrap_or_default());
    app.clone().spawn(async move {
        if app.touched.contains_key(&key_id) {
            return;
        }
        app.touched.insert(key_id.clone(), ()).await;
        let now = app.clock().micros();
        let written = app
            .db()
            .write(move |tx| Box::pin(async move { store::touch(tx, &org_id, &key_id, now).await }))
            .await;
        if let Err(error) = written {
            tracing::warn!(%error, "cannot record the use of a key");
        }
    });
}
