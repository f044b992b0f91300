//! Storage connections of an organization: where files outside are fetched from and exports are written to. Secrets are
//! encrypted at rest, each for its own connection, and are never answered.

mod databases;
mod linking;
mod marking;
mod postgres;
mod routes;
mod s3;
mod store;
mod using;
mod writing;

use loupe_wire::{
    AuditAction, ListStorageConnectionsRequest, NamespaceOperation, Object, ResourceType,
    StorageConnectionCreateRequest, StorageConnectionModel, StorageConnectionTestResponse,
    StorageConnectionUpdateRequest, StorageProvider, TaskStatusEnum, Value,
};
use serde_json::json;

pub use databases::{Databases, check_database};
pub use linking::Link;
pub use routes::router;
pub use s3::{Access, Entry, Opened, is_refused};
pub use store::CONNECTIONS;
pub use using::note_use;
pub use writing::{Folder, address, for_writing, kept_at};

use super::{
    audit::{self, Change},
    buckets::{destinations, sources},
    syncs,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
    list::{ListParams, Page},
    vault::Vault,
};

/// What a secret is shown as.
const MASK: &str = "********";

/// What a connection answers: secrets masked.
fn shown(mut connection: StorageConnectionModel) -> StorageConnectionModel {
    each_secret(&mut connection.provider_config, |_, secret| {
        *secret = MASK.into();
        Ok::<_, ApiError>(())
    })
    .unwrap_or_default();
    connection
}

/// Visits the secrets of a configuration.
fn each_secret<E>(
    config: &mut Object,
    mut visit: impl FnMut(&str, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    let credentials = config.get_mut("credentials").and_then(Value::as_object_mut);
    for (name, value) in credentials.into_iter().flatten() {
        if let (true, Value::String(secret)) = (s3::SECRETS.contains(&name.as_str()), value) {
            visit(name, secret)?;
        }
    }
    Ok(())
}

/// The configuration with its secrets encrypted for this connection.
fn sealed(app: &App, org_id: &str, id: &str, mut config: Object) -> Result<Object> {
    each_secret(&mut config, |name, secret| {
        *secret = app.vault().seal(&[org_id, id, name], secret)?;
        Ok::<_, ApiError>(())
    })?;
    Ok(config)
}

/// The configuration with its secrets open.
fn opened(app: &App, org_id: &str, connection: &StorageConnectionModel) -> Result<Object> {
    opened_by(app.vault(), org_id, connection)
}

fn opened_by(vault: &Vault, org_id: &str, connection: &StorageConnectionModel) -> Result<Object> {
    let id = connection.connection_id.as_deref().unwrap_or_default();
    let mut config = connection.provider_config.clone();
    each_secret(&mut config, |name, secret| {
        *secret = vault.open(&[org_id, id, name], secret)?;
        Ok::<_, ApiError>(())
    })?;
    Ok(config)
}

/// Whether the key's scopes let a connection be used.
///
/// # Errors
/// 403 where they do not.
pub fn allow(caller: &Caller, id: &str, operation: NamespaceOperation) -> Result<()> {
    caller.allow(ResourceType::StorageConnection, id, operation)
}

/// The organization's connections that match, newest first.
pub async fn list(
    app: &App,
    caller: &Caller,
    params: &ListParams,
    request: &ListStorageConnectionsRequest,
) -> Result<Page<StorageConnectionModel>> {
    let records = CONNECTIONS.all(app.db(), &caller.org_id).await?;
    let kind = ResourceType::StorageConnection;
    let wanted = |one: &StorageConnectionModel| {
        let id = one.connection_id.as_deref().unwrap_or_default();
        request
            .provider_type
            .is_none_or(|kind| kind == one.provider_type)
            && request.status.is_none_or(|status| status == one.status)
            && request
                .is_active
                .is_none_or(|active| active == one.is_active)
            && caller.covers(kind, id, NamespaceOperation::ReadData)
    };
    let records = records.into_iter().filter(|record| wanted(record));
    let marked = records.map(|record| {
        let (connection, mark) = record.marked();
        (shown(connection), mark)
    });
    let params = ListParams {
        include_total: true,
        ..params.clone()
    };
    Page::from_marked(marked.collect(), &params)
}

/// One connection, by id or name.
pub async fn get(app: &App, caller: &Caller, identifier: &str) -> Result<StorageConnectionModel> {
    let record = CONNECTIONS
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    allow(caller, &record.id, NamespaceOperation::ReadData)?;
    Ok(shown(record.data.0))
}

/// Keeps a connection that works, or one that was not to be tested.
pub async fn create(
    app: &App,
    caller: &Caller,
    request: StorageConnectionCreateRequest,
) -> Result<StorageConnectionModel> {
    allow(caller, "*", NamespaceOperation::ModifyInfrastructure)?;
    let place = Place::read(app, request.provider_type, &request.provider_config)?;
    if request.test_before_save {
        works(app, &place).await?;
    }
    let (id, now) = (id::new("conn_"), app.clock().micros());
    let connection = StorageConnectionModel {
        connection_id: Some(id.clone()),
        internal_id: caller.org_id.clone(),
        provider_type: request.provider_type,
        provider_config: sealed(app, &caller.org_id, &id, request.provider_config)?,
        write_enabled: request.write_enabled,
        name: request.name,
        description: request.description,
        status: TaskStatusEnum::Active,
        is_active: true,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        created_by_user_id: caller.key.user_id.clone(),
        metadata: request.metadata.unwrap_or_default(),
        ..Default::default()
    };
    let caller = caller.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let name = connection.name.as_str();
                CONNECTIONS
                    .insert(tx, &caller.org_id, &id, name, now, &connection)
                    .await?;
                let action = AuditAction::StorageConnectionCreated;
                let changes = json!({ "name": name, "provider_type": connection.provider_type });
                record(tx, &caller, action, &id, changes, now).await?;
                Ok(shown(connection))
            })
        })
        .await
}

/// Where a connection leads.
enum Place {
    Files(Access),
    Rows(postgres::Target),
}

impl Place {
    /// Reads a configuration whose secrets are open.
    fn read(app: &App, provider: StorageProvider, config: &Object) -> Result<Self> {
        if let Some(target) = postgres::Target::read(provider, config)? {
            return Ok(Self::Rows(target));
        }
        Access::read(provider, config, app.outbound()).map(Self::Files)
    }

    /// Whether secrets for this place are told to nobody else at the other one.
    fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Files(one), Self::Files(other)) => one.told() == other.told(),
            (Self::Rows(one), Self::Rows(other)) => one.told() == other.told(),
            _ => false,
        }
    }

    async fn test(&self, app: &App) -> Result<&'static str, String> {
        match self {
            Self::Files(access) => access.test(app.outbound()).await,
            Self::Rows(target) => target.test(app.outbound()).await,
        }
    }
}

async fn works(app: &App, place: &Place) -> Result<()> {
    let tested = place.test(app).await;
    tested.map(drop).map_err(|message| {
        let message =
            format!("{message}: nothing was saved (test_before_save: false saves it anyway)");
        ApiError::bad_request("connection_failed", message)
    })
}

/// Puts the secrets that the connection has where they were sent as they are answered. They stay with the place that they
/// were given for: who may change a connection may not have them told elsewhere.
fn unmask(
    app: &App,
    org_id: &str,
    before: &StorageConnectionModel,
    config: &mut Object,
) -> Result<()> {
    let new = Place::read(app, before.provider_type, config)?;
    let old = opened(app, org_id, before)?;
    // The settings may have closed the old place: then it is not known to be the same.
    let stays = Place::read(app, before.provider_type, &old).is_ok_and(|old| old.is_as(&new));
    each_secret(config, |name, secret| {
        if secret != MASK {
            return Ok(());
        }
        let path = ["provider_config", "credentials", name];
        let refused = |msg: &str| Violation::body(&path, "value_error", msg, Value::Null);
        if !stays {
            let msg = "the connection leads elsewhere or as somebody else now: send the secret itself, not how it is shown";
            return Err(refused(msg).into());
        }
        let kept = old
            .get("credentials")
            .and_then(|kept| kept.get(name)?.as_str());
        *secret = kept
            .map(ToOwned::to_owned)
            .ok_or_else(|| refused("there is no secret to keep"))?;
        Ok::<_, ApiError>(())
    })
}

/// Changes a connection. Secrets that are sent as they are answered stay what they are.
pub async fn update(
    app: &App,
    caller: &Caller,
    identifier: &str,
    mut request: StorageConnectionUpdateRequest,
) -> Result<StorageConnectionModel> {
    let before = CONNECTIONS
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    allow(caller, &before.id, NamespaceOperation::ModifyInfrastructure)?;
    if let Some(mut config) = request.provider_config.take() {
        unmask(app, &caller.org_id, &before, &mut config)?;
        request.provider_config = Some(sealed(app, &caller.org_id, &before.id, config)?);
    }
    let (caller, id, now) = (caller.clone(), before.id.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let before = CONNECTIONS.hold(tx, &caller.org_id, &id).await?.data.0;
                let after = changed(before.clone(), request, now);
                let name = after.name.as_str();
                CONNECTIONS
                    .update(tx, &caller.org_id, &id, name, now, &after)
                    .await?;
                let action = AuditAction::StorageConnectionUpdated;
                let (before, after) = (shown(before), shown(after));
                let changes = audit::difference(&before, &after);
                record(tx, &caller, action, &id, changes, now).await?;
                Ok(after)
            })
        })
        .await
}

fn changed(
    mut connection: StorageConnectionModel,
    request: StorageConnectionUpdateRequest,
    now: i64,
) -> StorageConnectionModel {
    connection.name = request.name.unwrap_or(connection.name);
    connection.description = request.description.or(connection.description);
    connection.metadata = request.metadata.unwrap_or(connection.metadata);
    connection.status = request.status.unwrap_or(connection.status);
    connection.is_active = request.is_active.unwrap_or(connection.is_active);
    connection.write_enabled = request.write_enabled.unwrap_or(connection.write_enabled);
    if let Some(config) = request.provider_config {
        connection.provider_config = config;
        connection.last_error = None;
        connection.consecutive_failures = 0;
    }
    connection.updated_at = Some(clock::time(now));
    connection
}

/// Forgets a connection through which no bucket keeps its files, no sync looks, nor are read any files that stay at their
/// source. What was fetched through it stays.
pub async fn delete(app: &App, caller: &Caller, identifier: &str) -> Result<()> {
    let found = CONNECTIONS
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    allow(caller, &found.id, NamespaceOperation::ModifyInfrastructure)?;
    sources::release(app, &caller.org_id, &found.id).await?;
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // As whoever makes a bucket that keeps its files there, or a sync.
                CONNECTIONS.hold(tx, &caller.org_id, &found.id).await?;
                destinations::check_unused(tx, &caller.org_id, &found.id).await?;
                syncs::check_unused(tx, &caller.org_id, &found.id).await?;
                CONNECTIONS.delete(tx, &caller.org_id, &found.id).await?;
                let action = AuditAction::StorageConnectionDeleted;
                let changes = json!({ "name": found.name });
                record(tx, &caller, action, &found.id, changes, now).await
            })
        })
        .await
}

/// Asks the storage whether it takes the credentials, and notes what it says.
pub async fn test(
    app: &App,
    caller: &Caller,
    identifier: &str,
) -> Result<StorageConnectionTestResponse> {
    let found = CONNECTIONS
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    allow(caller, &found.id, NamespaceOperation::ModifyInfrastructure)?;
    let config = opened(app, &caller.org_id, &found)?;
    // The settings may have closed a network since the connection was made.
    let tested = match Place::read(app, found.provider_type, &config) {
        Ok(place) => place.test(app).await,
        Err(error) => Err(error.message()),
    };
    note(app, caller, &found.id, tested.as_ref().err().cloned()).await?;
    let details = json!({ "connection_id": found.id, "provider_type": found.provider_type });
    Ok(StorageConnectionTestResponse {
        success: tested.is_ok(),
        message: match tested {
            Ok(message) => message.to_owned(),
            Err(message) => message,
        },
        details: details.as_object().cloned(),
    })
}

/// Notes a use of the connection, and its failure if it failed.
async fn note(app: &App, caller: &Caller, id: &str, error: Option<String>) -> Result<()> {
    let (caller, id, now) = (caller.clone(), id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut connection = CONNECTIONS.hold(tx, &caller.org_id, &id).await?.data.0;
                let action = match error {
                    Some(_) => AuditAction::StorageConnectionFailed,
                    None => AuditAction::StorageConnectionTested,
                };
                using::used(&mut connection, error.as_deref(), now);
                let name = connection.name.as_str();
                CONNECTIONS
                    .update(tx, &caller.org_id, &id, name, now, &connection)
                    .await?;
                record(tx, &caller, action, &id, Value::Null, now).await
            })
        })
        .await
}

/// The connection that an `s3://` address is read through: the one named, else the only one. Answers its id, too.
///
/// # Errors
/// None is there, several are, or the key's scopes do not cover it.
pub async fn for_s3(app: &App, caller: &Caller, named: Option<&str>) -> Result<(String, Access)> {
    let found = match named {
        Some(identifier) => {
            CONNECTIONS
                .find(app.db(), &caller.org_id, identifier)
                .await?
        }
        None => {
            let mut all = CONNECTIONS.all(app.db(), &caller.org_id).await?;
            let kinds = [StorageProvider::S3, StorageProvider::Tigris];
            all.retain(|one| one.is_active && kinds.contains(&one.provider_type));
            match (all.pop(), all.is_empty()) {
                (Some(only), true) => only,
                (None, _) => {
                    let message = "there is no active storage connection: POST /v1/organizations/connections makes one";
                    return Err(ApiError::bad_request("", message));
                }
                _ => {
                    let message =
                        "there are several storage connections: name one in metadata.connection_id";
                    return Err(ApiError::bad_request("", message));
                }
            }
        }
    };
    allow(caller, &found.id, NamespaceOperation::ReadData)?;
    if !found.is_active {
        return Err(ApiError::bad_request(
            "",
            "this storage connection is not active",
        ));
    }
    let config = opened(app, &caller.org_id, &found)?;
    let access = Access::read(found.provider_type, &config, app.outbound())?;
    Ok((found.id.clone(), access))
}

async fn record(
    tx: &mut Tx,
    caller: &Caller,
    action: AuditAction,
    id: &str,
    changes: Value,
    now: i64,
) -> Result<()> {
    let change = Change {
        action,
        resource: (ResourceType::StorageConnection, id),
        changes,
    };
    audit::record(tx, caller, change, now).await
}
