//! What happens to a key after it was made: changed, rotated, revoked. Every one ends with the caches forgetting it.

use loupe_wire::{
    APIKeyModel, APIKeyType, APIKeyUpdateRequest, AuditAction, KeyStatus, NamespaceOperation,
    ResourceType, UserModel, Value,
};
use serde_json::json;

use super::{check, check_name, fingerprint, forget, new_secret, store};
use crate::{
    app::App,
    auth::{Caller, key},
    clock,
    db::Tx,
    error::{ApiError, Result},
    v1::{
        apps,
        audit::{self, Change},
        users,
    },
};

/// A key that was used within this time is not revoked without force.
const RECENT_MICROS: i64 = 7 * 24 * 3600 * 1_000_000;

/// The named key as something that may be changed. The keys of the organization are held.
async fn find_changeable(
    tx: &mut Tx,
    caller: &Caller,
    user: &UserModel,
    name: &str,
    now: i64,
) -> Result<store::Stored> {
    let found = store::find_by_name(tx, &caller.org_id, &user.user_id, name).await?;
    let found = found.ok_or_else(|| ApiError::not_found("api_key", name))?;
    let key_id = found.model.key_id.clone().unwrap_or_default();
    caller.allow(
        ResourceType::ApiKey,
        &key_id,
        NamespaceOperation::ManagePermissions,
    )?;
    if found.is_protected {
        return Err(ApiError::forbidden(
            "protected_key",
            "the organization's own key cannot be changed, rotated or revoked",
        )
        .with("key_id", key_id));
    }
    if found.model.status == KeyStatus::Revoked {
        return Err(ApiError::conflict(
            "api_key_revoked",
            "this key was revoked, and that is final",
        )
        .with("key_id", key_id));
    }
    let over = found
        .model
        .expires_at
        .is_some_and(|at| at.timestamp_micros() <= now);
    if found.model.status == KeyStatus::Expired || over {
        return Err(ApiError::conflict(
            "api_key_expired",
            "this key has expired, and that is final: make a new one",
        )
        .with("key_id", key_id));
    }
    Ok(found)
}

/// Changes a key's settings; its secret stays.
pub async fn update(
    app: &App,
    caller: &Caller,
    email: &str,
    name: &str,
    request: APIKeyUpdateRequest,
) -> Result<APIKeyModel> {
    let now = app.clock().micros();
    check::update(&request, now)?;
    let (caller, email, name) = (caller.clone(), email.to_owned(), name.to_owned());
    let (model, hash) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::hold(tx, &caller.org_id).await?;
                let user = users::find_in(tx, &caller.org_id, &email).await?;
                let found = find_changeable(tx, &caller, &user, &name, now).await?;
                if found.model.key_type == APIKeyType::Retriever
                    && (request.permissions.is_some() || request.scopes.is_some())
                {
                    return Err(ApiError::conflict(
                        "immutable_field",
                        "permissions and scope of a retriever's key are fixed",
                    ));
                }
                let before = found.model.clone();
                let after = changed(found.model, request);
                if after.name != before.name {
                    store::expire(tx, &user.organization_id, now).await?;
                    check_name(tx, &user, &after.name, after.key_id.as_deref()).await?;
                }
                store::update(tx, &after, &found.hash, now).await?;
                let change = Change {
                    action: AuditAction::ApiKeyScopeUpdated,
                    resource: (
                        ResourceType::ApiKey,
                        after.key_id.as_deref().unwrap_or_default(),
                    ),
                    changes: audit::difference(&before, &after),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok((after, found.hash))
            })
        })
        .await?;
    forget(app, &[hash]);
    Ok(model)
}

fn changed(mut key: APIKeyModel, request: APIKeyUpdateRequest) -> APIKeyModel {
    key.name = request.name.unwrap_or(key.name);
    if let Some(description) = request.description.or(request.note) {
        key.description = description.unwrap_or_default();
    }
    key.note.clone_from(&key.description);
    key.permissions = request.permissions.unwrap_or(key.permissions);
    // An empty list widens the key to the whole organization.
    key.scopes = request.scopes.unwrap_or(key.scopes);
    if let Some(cap) = request.rate_limit_override {
        key.rate_limit_override = cap;
    }
    if let Some(at) = request.expires_at {
        key.expires_at = at;
    }
    if let Some(origins) = request.allowed_origins {
        key.allowed_origins = (!origins.is_empty()).then(|| check::as_sent(origins));
    }
    key
}

/// A new secret for the same key; the old one is refused by the very next request. Answers which live apps have that in them.
pub async fn rotate(
    app: &App,
    caller: &Caller,
    email: &str,
    name: &str,
) -> Result<(APIKeyModel, String, Vec<Value>)> {
    let now = app.clock().micros();
    let embedding = apps::Embedding::read(app, &caller.org_id).await?;
    let (caller, email, name) = (caller.clone(), email.to_owned(), name.to_owned());
    let (model, secret, old) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::hold(tx, &caller.org_id).await?;
                let user = users::find_in(tx, &caller.org_id, &email).await?;
                let found = find_changeable(tx, &caller, &user, &name, now).await?;
                let kind = match found.model.key_type {
                    APIKeyType::UserScoped => key::Kind::UserScoped,
                    APIKeyType::Retriever => key::Kind::Retriever,
                    _ => key::Kind::Standard,
                };
                let (secret, hash, prefix) = new_secret(kind);
                let mut model = found.model;
                let before = std::mem::replace(&mut model.key_hash, fingerprint(&hash));
                model.key_prefix = Some(prefix);
                store::update(tx, &model, &hash, now).await?;
                let change = Change {
                    action: AuditAction::ApiKeyRotated,
                    resource: (
                        ResourceType::ApiKey,
                        model.key_id.as_deref().unwrap_or_default(),
                    ),
                    changes: json!({ "key_hash": { "before": before, "after": model.key_hash } }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok((model, secret, found.hash))
            })
        })
        .await?;
    let referencing = embedding.of(&old);
    forget(app, &[old]);
    Ok((model, secret, referencing))
}

/// Revokes a key for good. Without `force` one that was used within the last 7 days is kept.
pub async fn revoke(
    app: &App,
    caller: &Caller,
    email: &str,
    name: &str,
    force: bool,
) -> Result<()> {
    let now = app.clock().micros();
    let (acting, email, name) = (caller.clone(), email.to_owned(), name.to_owned());
    let state = app.clone();
    let embedding = apps::Embedding::read(app, &caller.org_id).await?;
    let hash = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::hold(tx, &acting.org_id).await?;
                let user = users::find_in(tx, &acting.org_id, &email).await?;
                let found = find_changeable(tx, &acting, &user, &name, now).await?;
                if !force {
                    check_unused(&state, &found, &embedding, now)?;
                }
                end(tx, &acting, &found, now).await?;
                Ok(found.hash)
            })
        })
        .await?;
    forget(app, &[hash]);
    Ok(())
}

/// Refuses with what was found. Holders outside this server's records cannot be seen.
fn check_unused(
    app: &App,
    found: &store::Stored,
    embedding: &apps::Embedding,
    now: i64,
) -> Result<()> {
    let key = &found.model;
    let referencing = embedding.of(&found.hash);
    let key_id = key.key_id.clone().unwrap_or_default();
    // The use of the last minute may not be written yet.
    let used = if app.touched.contains_key(&key_id) {
        Some(clock::time(now))
    } else {
        key.last_used_at
    };
    let recent = used.filter(|at| at.timestamp_micros() > now - RECENT_MICROS);
    let message = match (recent, referencing.is_empty()) {
        (None, true) => return Ok(()),
        (_, false) => "live apps have this key in them: revoke it with force=true",
        (Some(_), true) => "this key was used within the last 7 days: revoke it with force=true",
    };
    Err(ApiError::conflict("key_in_use", message)
        .with("key_id", key_id)
        .with("referencing_apps", referencing)
        .with("last_used_at", json!(used))
        .with("retryable", false))
}

/// Marks a key revoked and records it.
async fn end(tx: &mut Tx, caller: &Caller, found: &store::Stored, now: i64) -> Result<()> {
    let mut model = found.model.clone();
    model.status = KeyStatus::Revoked;
    model.revoked_at = Some(clock::time(now));
    model.revoked_by = Some(caller.actor().to_owned());
    store::update(tx, &model, &found.hash, now).await?;
    let change = Change {
        action: AuditAction::ApiKeyRevoked,
        resource: (
            ResourceType::ApiKey,
            model.key_id.as_deref().unwrap_or_default(),
        ),
        changes: json!({ "name": model.name }),
    };
    audit::record(tx, caller, change, now).await
}

async fn end_all(
    tx: &mut Tx,
    caller: &Caller,
    keys: Vec<store::Stored>,
    now: i64,
) -> Result<Vec<String>> {
    let mut hashes = Vec::new();
    for key in keys {
        if key.is_protected {
            return Err(ApiError::forbidden(
                "protected_key",
                "this user holds the organization's own key and cannot be suspended or removed",
            ));
        }
        if key.model.status == KeyStatus::Active {
            end(tx, caller, &key, now).await?;
            hashes.push(key.hash);
        }
    }
    Ok(hashes)
}

/// Refuses while live apps have a key of the user in them.
pub async fn check_unembedded_of_user(
    tx: &mut Tx,
    caller: &Caller,
    user_id: &str,
    embedding: &apps::Embedding,
) -> Result<()> {
    let keys = store::list_in(tx, &caller.org_id, user_id).await?;
    let live = keys
        .iter()
        .filter(|key| key.model.status == KeyStatus::Active);
    let mut referencing: Vec<Value> = Vec::new();
    for found in live.flat_map(|key| embedding.of(&key.hash)) {
        if !referencing.contains(&found) {
            referencing.push(found);
        }
    }
    if referencing.is_empty() {
        return Ok(());
    }
    let message = "live apps have keys of this user in them: remove the user with force=true";
    Err(ApiError::conflict("key_in_use", message)
        .with("referencing_apps", referencing)
        .with("retryable", false))
}

/// Ends every key of a user who is suspended or removed; answers what the caches must forget after the commit. Whoever calls
/// holds the keys of the organization.
pub async fn revoke_all_of_user(
    tx: &mut Tx,
    caller: &Caller,
    user_id: &str,
    now: i64,
) -> Result<Vec<String>> {
    let keys = store::list_in(tx, &caller.org_id, user_id).await?;
    end_all(tx, caller, keys, now).await
}

/// Ends every key of a retriever; answers what the caches must forget after the commit.
pub async fn revoke_all_of_retriever(
    tx: &mut Tx,
    caller: &Caller,
    retriever_id: &str,
    now: i64,
) -> Result<Vec<String>> {
    store::hold(tx, &caller.org_id).await?;
    let keys = store::list_retriever_in(tx, &caller.org_id, retriever_id).await?;
    end_all(tx, caller, keys, now).await
}

/// Ends the keys of every retriever of a namespace that is removed; answers what the caches must forget after the commit.
pub async fn revoke_all_of_namespace(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    now: i64,
) -> Result<Vec<String>> {
    store::hold(tx, &caller.org_id).await?;
    let keys = store::list_live_in_namespace(tx, &caller.org_id, namespace_id).await?;
    end_all(tx, caller, keys, now).await
}

/// Ends one key of a retriever. Without `force` one that is in use is kept, as [`revoke`] keeps it.
pub(super) async fn revoke_of_retriever(
    app: &App,
    caller: &Caller,
    retriever_id: &str,
    key_id: &str,
    force: bool,
) -> Result<()> {
    let now = app.clock().micros();
    let state = app.clone();
    let embedding = apps::Embedding::read(app, &caller.org_id).await?;
    let (caller, retriever_id, key_id) =
        (caller.clone(), retriever_id.to_owned(), key_id.to_owned());
    let hash = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::hold(tx, &caller.org_id).await?;
                let keys = store::list_retriever_in(tx, &caller.org_id, &retriever_id).await?;
                let found = keys
                    .into_iter()
                    .find(|key| key.model.key_id.as_deref() == Some(&key_id))
                    .ok_or_else(|| ApiError::not_found("api_key", &key_id))?;
                if found.model.status == KeyStatus::Active {
                    if !force {
                        check_unused(&state, &found, &embedding, now)?;
                    }
                    end(tx, &caller, &found, now).await?;
                }
                Ok(found.hash)
            })
        })
        .await?;
    forget(app, &[hash]);
    Ok(())
}
