//! The audit log: who did what to which resource, and why. A record is written in the transaction of its change, so there
//! is one for each change and none for what was rolled back.

pub mod repeats;
mod routes;
mod sign_ins;
mod store;

use std::collections::HashMap;

use bytes::Bytes;
use futures::Stream;
use loupe_wire::{
    AuditAction, AuditEventResponse, AuditSettings, AuditSettingsUpdateRequest, ResourceType,
    UserModel, Value,
};

pub use routes::router;
use sign_ins::ANONYMOUS;
pub use sign_ins::{Stranger, made, signed_in, signed_out};
pub use store::Wanted;

use super::{organizations::settings, users};
use serde_json::json;

use crate::{
    app::App,
    auth::{Caller, Visitor},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    v1::tasks::name_of,
};

/// One change of one resource.
pub struct Change<'a> {
    pub action: AuditAction,
    pub resource: (ResourceType, &'a str),
    /// Never a secret.
    pub changes: Value,
}

/// Records a change in the transaction that makes it.
pub async fn record(tx: &mut Tx, caller: &Caller, change: Change<'_>, now: i64) -> Result<()> {
    let event = event(caller, &change, "success", now);
    store::insert(tx, &caller.org_id, &event, now).await
}

/// What a change is of that the log has no word for: the page of a retriever, a trigger of a namespace, a sync of a bucket, an
/// app of the organization.
#[derive(Debug, Clone, Copy)]
pub enum PartOf<'a> {
    Organization,
    Namespace(&'a str),
    Bucket(&'a str),
    Retriever(&'a str),
}

/// Records a change of a part as one of the whole; `changes` says in `change` what happened to which part.
pub async fn record_part(
    tx: &mut Tx,
    caller: &Caller,
    whole: PartOf<'_>,
    changes: Value,
    now: i64,
) -> Result<()> {
    let (action, resource) = match whole {
        PartOf::Organization => (
            AuditAction::OrganizationUpdated,
            (ResourceType::Organization, caller.org_id.as_str()),
        ),
        PartOf::Namespace(id) => (AuditAction::NamespaceUpdated, (ResourceType::Namespace, id)),
        PartOf::Bucket(id) => (AuditAction::BucketUpdated, (ResourceType::Bucket, id)),
        PartOf::Retriever(id) => (AuditAction::RetrieverUpdated, (ResourceType::Retriever, id)),
    };
    let change = Change {
        action,
        resource,
        changes,
    };
    record(tx, caller, change, now).await
}

fn event(caller: &Caller, change: &Change<'_>, status: &str, now: i64) -> AuditEventResponse {
    let is_user = !caller.key.user_id.is_empty();
    let (kind, id) = change.resource;
    // What an app does for a visitor is the visitor's doing; the app is told as the key is.
    let (actor_id, actor_type) = match &caller.via.visitor {
        Some(Visitor::Known(visitor)) => (visitor.as_str(), "user"),
        Some(Visitor::Anybody) => (ANONYMOUS, "anonymous"),
        None if is_user => (caller.key.user_id.as_str(), "user"),
        None if caller.actor() == ANONYMOUS => (caller.actor(), "anonymous"),
        None => (caller.actor(), "system"),
    };
    let is_told = is_user || caller.via.visitor.is_some();
    AuditEventResponse {
        audit_id: id::new("aud_"),
        timestamp: Some(clock::time(now)),
        resource_type: name_of(kind),
        resource_id: id.to_owned(),
        action: name_of(change.action),
        actor_id: actor_id.to_owned(),
        actor_type: actor_type.into(),
        status: status.into(),
        changes: (!change.changes.is_null()).then(|| change.changes.clone()),
        reason: caller.via.reason.clone(),
        ip_address: caller.via.address.clone(),
        user_agent: caller.via.user_agent.clone(),
        // People of apps come without a key.
        actor_key_name: (is_told && !caller.key.name.is_empty()).then(|| caller.key.name.clone()),
        ..Default::default()
    }
}

/// The members in which two forms of a resource differ, each with its value before and after.
pub fn difference(before: &impl serde::Serialize, after: &impl serde::Serialize) -> Value {
    let (before, after) = (
        serde_json::to_value(before).unwrap_or_default(),
        serde_json::to_value(after).unwrap_or_default(),
    );
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        return Value::Null;
    };
    let mut changes = loupe_wire::Object::new();
    for member in old.keys().chain(new.keys()) {
        let (from, to) = (
            old.get(member).unwrap_or(&Value::Null),
            new.get(member).unwrap_or(&Value::Null),
        );
        if from != to && member != "updated_at" {
            changes.insert(
                member.clone(),
                serde_json::json!({ "before": from, "after": to }),
            );
        }
    }
    changes.into()
}

/// The names of the members in which two forms differ, for what is too large or too private to be told whole.
pub fn changed_members(before: &impl serde::Serialize, after: &impl serde::Serialize) -> Value {
    let changes = difference(before, after);
    let names = changes.as_object().into_iter().flat_map(|one| one.keys());
    names.map(String::as_str).collect()
}

/// What of the organization the log is told.
///
/// # Errors
/// The database does not answer.
pub async fn settings(app: &App, caller: &Caller) -> Result<AuditSettings> {
    let settings = settings::find(app.db(), &caller.org_id).await?;
    Ok(AuditSettings {
        read_auditing_enabled: settings.audits_reads,
    })
}

/// Sets what of the organization the log is told.
///
/// # Errors
/// The database does not answer.
pub async fn update_settings(
    app: &App,
    caller: &Caller,
    request: AuditSettingsUpdateRequest,
) -> Result<AuditSettings> {
    let Some(audits_reads) = request.read_auditing_enabled else {
        return self::settings(app, caller).await;
    };
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &caller.org_id).await?;
                let before = std::mem::replace(&mut settings.audits_reads, audits_reads);
                settings::update(tx, &caller.org_id, &settings, now).await?;
                let change = Change {
                    action: AuditAction::OrganizationUpdated,
                    resource: (ResourceType::Organization, &caller.org_id),
                    changes: json!({
                        "read_auditing_enabled": { "before": before, "after": audits_reads },
                    }),
                };
                record(tx, &caller, change, now).await
            })
        })
        .await?;
    app.limits.forget_tiers();
    Ok(AuditSettings {
        read_auditing_enabled: audits_reads,
    })
}

/// Records read at a time for an export.
const EXPORT_PAGE: i64 = 500;

/// A page of records, the newest first, and how many there are.
pub async fn list(
    app: &App,
    caller: &Caller,
    wanted: &Wanted,
    skip: i64,
    limit: i64,
) -> Result<(Vec<AuditEventResponse>, i64)> {
    repeats::flush(app, false).await?;
    let rows = store::list(app.db(), &caller.org_id, wanted, skip, limit).await?;
    let total = store::count(app.db(), &caller.org_id, wanted).await?;
    let people = people(app, caller).await?;
    let records = rows
        .into_iter()
        .map(|row| named(row.data.0, &people))
        .collect();
    Ok((records, total))
}

/// One record.
pub async fn get(app: &App, caller: &Caller, audit_id: &str) -> Result<AuditEventResponse> {
    let record = store::find(app.db(), &caller.org_id, audit_id).await?;
    Ok(named(record, &people(app, caller).await?))
}

/// Lines of JSON, a page at a time: a long log is never held whole.
///
/// # Errors
/// The database does not answer.
pub async fn export(
    app: App,
    caller: Caller,
    wanted: Wanted,
    most: Option<i64>,
) -> Result<impl Stream<Item = Result<Bytes>>> {
    repeats::flush(&app, false).await?;
    // Before every record: the largest moment there is.
    let start = (Some((i64::MAX, String::new())), most.unwrap_or(i64::MAX));
    let lines = futures::stream::try_unfold(start, move |(place, left)| {
        let (app, caller, wanted) = (app.clone(), caller.clone(), wanted.clone());
        async move {
            let Some(place) = place.filter(|_| left > 0) else {
                return Ok(None);
            };
            let size = left.min(EXPORT_PAGE);
            let rows = store::after(app.db(), &caller.org_id, &wanted, place, size).await?;
            let Some(last) = rows.last().map(store::Row::place) else {
                return Ok(None);
            };
            let people = people(&app, &caller).await?;
            let count = i64::try_from(rows.len()).unwrap_or(size);
            let mut lines = Vec::new();
            for row in rows {
                let record = named(row.data.0, &people);
                serde_json::to_writer(&mut lines, &record).map_err(ApiError::internal)?;
                lines.push(b'\n');
            }
            let next = (count == size).then_some(last);
            Ok::<_, ApiError>(Some((Bytes::from(lines), (next, left - count))))
        }
    });
    Ok(lines)
}

/// Everybody who was ever a user, by id.
async fn people(app: &App, caller: &Caller) -> Result<HashMap<String, UserModel>> {
    let users = users::list_ever(app.db(), &caller.org_id).await?;
    Ok(users
        .into_iter()
        .map(|user| (user.user_id.clone(), user))
        .collect())
}

fn named(
    mut record: AuditEventResponse,
    people: &HashMap<String, UserModel>,
) -> AuditEventResponse {
    if let Some(user) = people.get(&record.actor_id) {
        record.actor_name = Some(user.user_name.clone());
        record.actor_email = Some(user.email.clone());
    }
    record
}
