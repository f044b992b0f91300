//! API keys: minted once, kept as a hash, found by it.

mod check;
mod lifecycle;
mod retriever;
mod routes;
mod store;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use chrono::{DateTime, Utc};
use loupe_wire::{
    APIKeyCreateRequest, APIKeyModel, APIKeyType, AuditAction, KeyStatus, NamespaceOperation,
    Permission, ResourceType, UserModel,
};

pub use lifecycle::{
    check_unembedded_of_user, revoke, revoke_all_of_namespace, revoke_all_of_retriever,
    revoke_all_of_user, rotate, update,
};
pub use retriever::{create_for_retriever, list_for_retriever, revoke_for_retriever};
pub use routes::router;
pub use store::hold;

use super::{
    audit::{self, Change},
    users,
};
use crate::{
    app::App,
    auth::{Caller, key},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    limits::quota::{self, Resource},
};

/// How a key is made, besides what its owner asks for.
pub struct Mint<'a> {
    pub kind: key::Kind,
    /// The organization's own key cannot be updated, rotated or deleted.
    pub protected: bool,
    pub caller: &'a Caller,
    pub now: i64,
}

/// Inserts a key and answers it with its secret, the only time the secret is seen.
pub async fn mint(
    tx: &mut Tx,
    user: &UserModel,
    request: APIKeyCreateRequest,
    how: Mint<'_>,
) -> Result<(APIKeyModel, String)> {
    let org_id = &user.organization_id;
    store::expire(tx, org_id, how.now).await?;
    quota::check(tx, org_id, Resource::ApiKeys).await?;
    check_name(tx, user, &request.name, None).await?;
    let (secret, hash, prefix) = new_secret(how.kind);
    let description = request.description.or(request.note).unwrap_or_default();
    let model = APIKeyModel {
        key_id: Some(id::new("key_")),
        key_hash: fingerprint(&hash),
        key_prefix: Some(prefix),
        key_type: match how.kind {
            key::Kind::Standard => APIKeyType::Standard,
            key::Kind::UserScoped => APIKeyType::UserScoped,
            key::Kind::Retriever => APIKeyType::Retriever,
        },
        internal_id: org_id.clone(),
        organization_id: Some(org_id.clone()),
        user_id: user.user_id.clone(),
        name: request.name,
        note: description.clone(),
        description,
        permissions: request
            .permissions
            .unwrap_or_else(|| vec![Permission::Read, Permission::Write, Permission::Delete]),
        scopes: request.scopes.unwrap_or_default(),
        rate_limit_override: request.rate_limit_override,
        expires_at: request.expires_at,
        principal_id: request.principal_id,
        allowed_origins: request
            .allowed_origins
            .filter(|origins| !origins.is_empty())
            .map(check::as_sent),
        created_at: Some(clock::time(how.now)),
        created_by: Some(how.caller.actor().to_owned()),
        ..Default::default()
    };
    store::insert(tx, &model, &hash, how.protected, how.now).await?;
    let change = Change {
        action: AuditAction::ApiKeyCreated,
        resource: (
            ResourceType::ApiKey,
            model.key_id.as_deref().unwrap_or_default(),
        ),
        changes: serde_json::json!({
            "name": model.name, "key_type": model.key_type, "permissions": model.permissions,
            "scopes": model.scopes, "expires_at": model.expires_at, "principal_id": model.principal_id,
        }),
    };
    audit::record(tx, how.caller, change, how.now).await?;
    Ok((model, secret))
}

/// A secret, what is stored of it, and the prefix that tells it apart.
fn new_secret(kind: key::Kind) -> (String, String, String) {
    let secret = key::generate(kind);
    let hash = key::hash(&secret);
    let prefix = secret[..kind.prefix().len() + 4].to_owned();
    (secret, hash, prefix)
}

/// The stored hash never leaves the database; callers get enough of it to tell secrets apart.
fn fingerprint(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// Active keys of one user have different names; `own` is the key that may keep its name. None is the id of another: paths take
/// both, and whoever means that one would end this one.
async fn check_name(tx: &mut Tx, user: &UserModel, name: &str, own: Option<&str>) -> Result<()> {
    if own != Some(name) && store::is_id(tx, &user.organization_id, name).await? {
        let message = format!("'{name}' is the id of a key");
        return Err(ApiError::already_exists("name_taken", message).with("name", name));
    }
    let found = store::find_by_name(tx, &user.organization_id, &user.user_id, name).await?;
    let taken = found.is_some_and(|other| {
        other.model.status == KeyStatus::Active
            && other.model.name == name
            && other.model.key_id.as_deref() != own
    });
    if taken {
        let message = format!("an active key named '{name}' exists already");
        return Err(ApiError::already_exists("name_taken", message).with("name", name));
    }
    Ok(())
}

pub async fn create(
    app: &App,
    caller: &Caller,
    email: &str,
    request: APIKeyCreateRequest,
) -> Result<(APIKeyModel, String)> {
    caller.allow(
        ResourceType::ApiKey,
        "*",
        NamespaceOperation::ManagePermissions,
    )?;
    let now = app.clock().micros();
    check::create(&request, now)?;
    let kind = if request.principal_id.is_some() {
        key::Kind::UserScoped
    } else {
        key::Kind::Standard
    };
    let (caller, email) = (caller.clone(), email.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                hold(tx, &caller.org_id).await?;
                let user = users::find_in(tx, &caller.org_id, &email).await?;
                check::is_active(&user)?;
                let how = Mint {
                    kind,
                    protected: false,
                    caller: &caller,
                    now,
                };
                mint(tx, &user, request, how).await
            })
        })
        .await
}

/// Keys of a user that the caller's scopes cover, newest first, with expiry applied.
pub async fn list(
    app: &App,
    caller: &Caller,
    email: &str,
    include_revoked: bool,
) -> Result<Vec<APIKeyModel>> {
    let user = users::find(app.db(), &caller.org_id, email).await?;
    let mut keys = store::list(app.db(), &caller.org_id, &user.user_id).await?;
    keep_covered(caller, &mut keys);
    Ok(shown(app, keys, include_revoked))
}

/// Keys of the whole organization that the caller's scopes cover, whatever their status, newest first.
///
/// # Errors
/// The database does not answer.
pub async fn list_all(app: &App, caller: &Caller) -> Result<Vec<APIKeyModel>> {
    let mut keys = store::list_all(app.db(), &caller.org_id).await?;
    keep_covered(caller, &mut keys);
    Ok(keys)
}

fn keep_covered(caller: &Caller, keys: &mut Vec<APIKeyModel>) {
    let (kind, operation) = (ResourceType::ApiKey, NamespaceOperation::ReadData);
    keys.retain(|key| caller.covers(kind, key.key_id.as_deref().unwrap_or_default(), operation));
}

/// With expiry applied, and without revoked ones unless asked for.
fn shown(app: &App, mut keys: Vec<APIKeyModel>, include_revoked: bool) -> Vec<APIKeyModel> {
    let now = app.clock().now();
    for key in &mut keys {
        if key.status == KeyStatus::Active && key.expires_at.is_some_and(|at| at <= now) {
            key.status = KeyStatus::Expired;
        }
    }
    keys.retain(|key| include_revoked || key.status != KeyStatus::Revoked);
    keys
}

/// When a key of each user was last used, those of retrievers aside.
///
/// # Errors
/// The database does not answer.
pub async fn last_uses(app: &App, org_id: &str) -> Result<HashMap<String, DateTime<Utc>>> {
    let uses = store::last_uses(app.db(), org_id).await?.into_iter();
    Ok(uses.map(|(user, at)| (user, clock::time(at))).collect())
}

/// The key with this id, whatever its status.
///
/// # Errors
/// The organization has no such key.
pub async fn find(app: &App, org_id: &str, key_id: &str) -> Result<APIKeyModel> {
    store::find(app.db(), org_id, key_id)
        .await?
        .ok_or_else(|| ApiError::not_found("api_key", key_id))
}

/// The key with this SHA-256, from the cache or one indexed read.
pub async fn find_by_hash(app: &App, hash: &str) -> Result<Option<Arc<APIKeyModel>>> {
    if let Some(key) = app.keys.get(hash) {
        return Ok(Some(key));
    }
    let before = app.keys_changed.load(Ordering::SeqCst);
    let Some(found) = store::find_by_hash(app.db(), hash).await? else {
        return Ok(None);
    };
    let found = Arc::new(found);
    app.keys.insert(hash.to_owned(), found.clone());
    // A change between the read and the insertion would leave what was read in the cache.
    if app.keys_changed.load(Ordering::SeqCst) != before {
        app.keys.invalidate(hash);
    }
    Ok(Some(found))
}

/// After a change of keys was committed: the next request reads them anew.
pub fn forget(app: &App, hashes: &[String]) {
    app.keys_changed.fetch_add(1, Ordering::SeqCst);
    for hash in hashes {
        app.keys.invalidate(hash);
    }
}

/// Records the use of a key, at most once a minute. It is known at once, and written beside the request's path.
pub async fn touch(app: &App, key: &APIKeyModel) {
    let Some(key_id) = key.key_id.clone() else {
        return;
    };
    if app.touched.contains_key(&key_id) {
        return;
    }
    // Of several requests at once, one finds that nobody was before it.
    let entry = app.touched.entry_by_ref(&key_id).or_insert(());
    if !entry.is_fresh() {
        return;
    }
    let (app, org_id) = (app.clone(), key.organization_id.clone().unwrap_or_default());
    app.clone().spawn(async move {
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
