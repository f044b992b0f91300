//! Namespaces: isolation boundaries inside an organization.

mod cloning;
mod expiring;
mod indexes;
mod own_vectors;
mod promoting;
mod routes;
mod standalone;
mod stats;
mod store;
mod unbuilt;

use chrono::{DateTime, Duration, Utc};
use loupe_wire::{
    AuditAction, CreateNamespaceRequest, NamespaceDeleteResponse, NamespaceModel,
    NamespaceOperation, PatchNamespaceRequest, ResourceType, TaskType,
};

pub use cloning::{
    Clone, Ids, NOT_READY, Pattern, clone, is_being_made, remap_inside, set_clone_status,
};
pub use expiring::sweep;
pub use routes::router;
pub use store::{NAMESPACES, first_two, only_one};

use super::{
    alerts, api_keys,
    audit::{self, Change},
    batches,
    events::{self, Event},
    removal, tasks,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
    id,
    limits::quota::{self, Resource},
};

/// Whether the caller's organization has this namespace and the key's scopes cover it.
pub async fn exists(app: &App, caller: &Caller, namespace_id: &str) -> Result<bool> {
    let pair = (caller.org_id.clone(), namespace_id.to_owned());
    if !app.namespaces.contains_key(&pair) {
        // Ids only: the header never carries a name.
        match NAMESPACES
            .find(app.db(), &caller.org_id, namespace_id)
            .await
        {
            Ok(record) if record.id == namespace_id => app.namespaces.insert(pair, ()),
            Ok(_) => return Ok(false),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The name without spaces around it.
pub fn check_name(sent: &str) -> Result<String> {
    let name = sent.trim().to_owned();
    let well_formed = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '.'));
    if well_formed && name.len() >= 3 {
        return Ok(name);
    }
    let msg = "use letters, digits, spaces, dots, hyphens and underscores; at least 3 characters";
    Err(Violation::body(
        &["namespace_name"],
        "string_pattern_mismatch",
        msg,
        sent.into(),
    )
    .into())
}

/// The longest time that a namespace may be said to last, in seconds: a hundred years.
const LONGEST: i64 = 3_153_600_000;

/// When a namespace that lasts so long expires.
fn expiry(from: DateTime<Utc>, ttl_seconds: Option<i64>) -> Result<Option<DateTime<Utc>>> {
    match ttl_seconds {
        Some(seconds) if seconds > LONGEST => {
            let msg = format!("input should be less than or equal to {LONGEST}");
            let path = ["ttl_seconds"];
            Err(Violation::body(&path, "less_than_equal", msg, seconds.into()).into())
        }
        Some(seconds) => Ok(Some(from + Duration::seconds(seconds))),
        None => Ok(None),
    }
}

/// When a namespace is to expire from now on, if the change says so; never, by a null.
fn new_expiry(request: &PatchNamespaceRequest, now: i64) -> Result<Option<Option<DateTime<Utc>>>> {
    match request.expires_at {
        Some(Some(at)) if at.timestamp_micros() <= now => {
            let msg = "expires_at lies in the past: DELETE removes the namespace at once";
            let sent = serde_json::json!(at);
            Err(Violation::body(&["expires_at"], "value_error", msg, sent).into())
        }
        Some(Some(at)) => Ok(Some(Some(at))),
        sent => {
            let at = expiry(clock::time(now), request.ttl_seconds)?;
            Ok(at.map(Some).or(sent))
        }
    }
}

pub async fn create(
    app: &App,
    caller: &Caller,
    request: CreateNamespaceRequest,
) -> Result<NamespaceModel> {
    caller.allow(
        ResourceType::Namespace,
        "*",
        NamespaceOperation::ModifyInfrastructure,
    )?;
    let name = check_name(&request.namespace_name)?;
    unbuilt::check_new(&request)?;
    if let Some(asked) = &request.namespace_id
        && !asked
            .strip_prefix("ns_")
            .is_some_and(|rest| rest.len() >= 6 && rest.chars().all(|c| c.is_ascii_alphanumeric()))
    {
        let msg = "an own id starts with ns_ and goes on with at least 6 letters or digits";
        return Err(Violation::body(
            &["namespace_id"],
            "string_pattern_mismatch",
            msg,
            asked.clone().into(),
        )
        .into());
    }
    let (caller, now) = (caller.clone(), app.clock().micros());
    let at = clock::time(now);
    let expires_at = expiry(at, request.ttl_seconds)?;
    let namespace = NamespaceModel {
        namespace_id: Some(request.namespace_id.unwrap_or_else(|| id::new("ns_"))),
        namespace_name: name,
        namespace_type: request.namespace_type.unwrap_or_default(),
        scope: request.scope,
        description: request.description,
        payload_indexes: request.payload_indexes,
        auto_create_indexes: request.auto_create_indexes.unwrap_or(false),
        adaptive_indexing: request.adaptive_indexing.unwrap_or(false),
        mode: Some(request.mode),
        namespace_ready: true,
        created_at: Some(at),
        updated_at: Some(at),
        expires_at,
        ..Default::default()
    };
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                insert(tx, &caller, &namespace, now).await?;
                Ok(namespace)
            })
        })
        .await
}

/// Writes a new namespace and its record.
async fn insert(tx: &mut Tx, caller: &Caller, namespace: &NamespaceModel, now: i64) -> Result<()> {
    let id = namespace.namespace_id.as_deref().unwrap_or_default();
    if store::id_taken(tx, id, &caller.org_id, now).await? {
        let message = "this namespace id is taken";
        return Err(ApiError::already_exists("name_taken", message));
    }
    let (org_id, name) = (&caller.org_id, &namespace.namespace_name);
    quota::check(tx, org_id, Resource::Namespaces).await?;
    store::insert(tx, org_id, namespace, now).await?;
    let change = Change {
        action: AuditAction::NamespaceCreated,
        resource: (ResourceType::Namespace, id),
        changes: serde_json::json!({ "namespace_name": name }),
    };
    audit::record(tx, caller, change, now).await
}

/// With the counts of what it holds, which are not for end users.
pub async fn get(app: &App, caller: &Caller, identifier: &str) -> Result<NamespaceModel> {
    let record = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    caller.allow(
        ResourceType::Namespace,
        &record.id,
        NamespaceOperation::ReadData,
    )?;
    counted(app, caller, record.data.0).await
}

async fn counted(
    app: &App,
    caller: &Caller,
    mut namespace: NamespaceModel,
) -> Result<NamespaceModel> {
    if caller.principal().is_none() {
        let id = namespace.namespace_id.clone().unwrap_or_default();
        store::count(app.db(), &id, &mut namespace).await?;
    }
    Ok(namespace)
}

/// Changes the members that are sent; answers as [`get`].
pub async fn update(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: PatchNamespaceRequest,
) -> Result<NamespaceModel> {
    let name = request.namespace_name.as_deref().map(check_name);
    let name = name.transpose()?;
    unbuilt::check_change(&request)?;
    let (acting, identifier, now) = (caller.clone(), identifier.to_owned(), app.clock().micros());
    let expires_at = new_expiry(&request, now)?;
    let namespace = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let record = NAMESPACES.hold(tx, &acting.org_id, &identifier).await?;
                acting.allow(
                    ResourceType::Namespace,
                    &record.id,
                    NamespaceOperation::ModifyInfrastructure,
                )?;
                let mut namespace = record.data.0;
                let before = namespace.clone();
                namespace.namespace_name = name.unwrap_or(namespace.namespace_name);
                namespace.description = request.description.unwrap_or(namespace.description);
                namespace.payload_indexes = request.payload_indexes.or(namespace.payload_indexes);
                namespace.auto_create_indexes = request
                    .auto_create_indexes
                    .unwrap_or(namespace.auto_create_indexes);
                namespace.adaptive_indexing = request
                    .adaptive_indexing
                    .unwrap_or(namespace.adaptive_indexing);
                if let Some(at) = expires_at {
                    namespace.expires_at = at;
                    store::set_expiry(tx, &acting.org_id, &record.id, at).await?;
                }
                namespace.updated_at = Some(clock::time(now));
                NAMESPACES
                    .update(
                        tx,
                        &acting.org_id,
                        &record.id,
                        &namespace.namespace_name,
                        now,
                        &namespace,
                    )
                    .await?;
                let change = Change {
                    action: AuditAction::NamespaceUpdated,
                    resource: (ResourceType::Namespace, &record.id),
                    changes: audit::difference(&before, &namespace),
                };
                audit::record(tx, &acting, change, now).await?;
                Ok(namespace)
            })
        })
        .await?;
    counted(app, caller, namespace).await
}

/// Takes the namespace with all it holds out of everybody's reach; a task frees what it held.
pub async fn delete(
    app: &App,
    caller: &Caller,
    identifier: &str,
    force: bool,
) -> Result<NamespaceDeleteResponse> {
    let record = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    caller.allow(
        ResourceType::Namespace,
        &record.id,
        NamespaceOperation::ModifyInfrastructure,
    )?;
    let (acting, id, now) = (caller.clone(), record.id.clone(), app.clock().micros());
    let (answer, hashes) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let record = NAMESPACES.hold(tx, &acting.org_id, &record.id).await?;
                remove(tx, &acting, record, force, now).await
            })
        })
        .await?;
    removed(app, &caller.org_id, id, &hashes).await;
    Ok(answer)
}

/// Takes a namespace out of reach, and leaves the task that frees what it held. Whoever calls holds the namespace: all take
/// the locks in this order. Answers with it which keys the caches must forget after the commit.
async fn remove(
    tx: &mut Tx,
    caller: &Caller,
    record: Record<NamespaceModel>,
    force: bool,
    now: i64,
) -> Result<(NamespaceDeleteResponse, Vec<String>)> {
    let closed = removal::close_batches(tx, &record.id, "", force, now).await?;
    removal::unpublish(tx, &record.id).await?;
    let hashes = api_keys::revoke_all_of_namespace(tx, caller, &record.id, now).await?;
    alerts::forget_namespace(tx, caller, &record.id, now).await?;
    NAMESPACES.delete(tx, &caller.org_id, &record.id).await?;
    let change = Change {
        action: AuditAction::NamespaceDeleted,
        resource: (ResourceType::Namespace, &record.id),
        changes: serde_json::json!({ "namespace_name": record.name }),
    };
    audit::record(tx, caller, change, now).await?;
    let (kind, task_type) = (removal::REMOVE_NAMESPACE, TaskType::ApiNamespacesDelete);
    let task = removal::task(&caller.org_id, &record.id, task_type, kind, &record.id);
    let task = tasks::insert(tx, task, now).await?;
    batches::tell_closed(tx, (&caller.org_id, &record.id), closed, now).await?;
    let answer = NamespaceDeleteResponse {
        task_id: task.task_id,
        status: task.status,
        namespace_id: record.id,
        namespace_name: Some(record.name),
    };
    Ok((answer, hashes))
}

/// What a process does once a namespace is out of reach.
async fn removed(app: &App, org_id: &str, id: String, hashes: &[String]) {
    api_keys::forget(app, hashes);
    app.namespaces.invalidate(&(org_id.to_owned(), id));
    app.work.notify_one();
}

/// Pushes an event of a resource inside a namespace.
pub async fn push_event(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    kind: &'static str,
    payload: serde_json::Value,
    now: i64,
) -> Result<()> {
    events::push(
        tx,
        Event::new(org_id, Some(namespace_id), kind, payload),
        now,
    )
    .await
}
