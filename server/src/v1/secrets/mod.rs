//! Secrets of an organization: keys of other services, encrypted at rest. Values go in and are never answered.

mod routes;
mod store;

use loupe_wire::{
    AuditAction, CreateSecretRequest, NamespaceOperation, Permission, ResourceType, Value,
};

pub use routes::router;

use super::{
    audit::{self, Change},
    publishing,
};
use crate::{
    app::App,
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
};

/// Names in order, as far as the key's scopes cover them.
pub async fn list(app: &App, caller: &Caller) -> Result<Vec<String>> {
    let mut names = store::names(app.db(), &caller.org_id).await?;
    names.retain(|name| caller.covers(ResourceType::Secret, name, NamespaceOperation::ReadData));
    Ok(names)
}

/// Keeps a new secret; a name that is taken is a conflict.
pub async fn create(app: &App, caller: &Caller, request: CreateSecretRequest) -> Result<String> {
    let name = request.secret_name;
    allow(caller, &name)?;
    let sealed = app
        .vault()
        .seal(&[&caller.org_id, &name], &request.secret_value)?;
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::insert(tx, &caller.org_id, &name, &sealed, now).await? {
                    let message = format!("a secret named '{name}' exists already: PUT changes it");
                    return Err(
                        ApiError::already_exists("name_taken", message).with("secret_name", name)
                    );
                }
                record(tx, &caller, AuditAction::SecretCreated, &name, now).await?;
                Ok(name)
            })
        })
        .await
}

/// Puts another value in place of a secret's own.
pub async fn replace(app: &App, caller: &Caller, name: &str, value: &str) -> Result<()> {
    allow(caller, name)?;
    let sealed = app.vault().seal(&[&caller.org_id, name], value)?;
    let hash = publishing::hash_for_pages(app, &caller.org_id, name, value).await?;
    let (caller, name, now) = (caller.clone(), name.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::update(tx, &caller.org_id, &name, &sealed, now).await? {
                    return Err(ApiError::not_found("secret", &name));
                }
                if let Some(hash) = hash {
                    publishing::relock(tx, &caller.org_id, &name, &hash, now).await?;
                }
                record(tx, &caller, AuditAction::SecretUpdated, &name, now).await
            })
        })
        .await
}

/// Removes a secret.
pub async fn delete(app: &App, caller: &Caller, name: &str) -> Result<()> {
    allow(caller, name)?;
    let (caller, name, now) = (caller.clone(), name.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::delete(tx, &caller.org_id, &name).await? {
                    return Err(ApiError::not_found("secret", &name));
                }
                record(tx, &caller, AuditAction::SecretDeleted, &name, now).await
            })
        })
        .await
}

/// A secret's value, for what runs inside the server.
///
/// # Errors
/// The organization has no such secret, or it was encrypted with another master key.
pub async fn value(app: &App, org_id: &str, name: &str) -> Result<String> {
    let sealed = store::find(app.db(), org_id, name).await?;
    let sealed = sealed.ok_or_else(|| ApiError::not_found("secret", name))?;
    app.vault().open(&[org_id, name], &sealed)
}

/// Whoever says where a secret is sent could read it: that is for keys that may manage secrets.
///
/// # Errors
/// 403 for every other key, 404 where there is no such secret.
pub async fn check_sender(app: &App, caller: &Caller, name: &str) -> Result<()> {
    if !caller.has(Permission::Admin) {
        let message = "what sends a secret elsewhere is set up with a key of the permission admin";
        return Err(ApiError::forbidden("permission_denied", message));
    }
    allow(caller, name)?;
    value(app, &caller.org_id, name).await?;
    Ok(())
}

fn allow(caller: &Caller, name: &str) -> Result<()> {
    caller.allow(
        ResourceType::Secret,
        name,
        NamespaceOperation::ManagePermissions,
    )
}

async fn record(
    tx: &mut Tx,
    caller: &Caller,
    action: AuditAction,
    name: &str,
    now: i64,
) -> Result<()> {
    let change = Change {
        action,
        resource: (ResourceType::Secret, name),
        changes: Value::Null,
    };
    audit::record(tx, caller, change, now).await
}
