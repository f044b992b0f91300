//! Collections that are processed by a schedule of their own: a trigger that the server keeps does it.

use loupe_wire::{
    CollectionResponse, CollectionScheduleConfig, NamespaceOperation, ResourceType, SourceConfig,
    SourceType, Value,
};

use super::{COLLECTIONS, lifecycle};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{Result, Violation},
    v1::triggers,
};

/// Checks when a collection is to be processed: the one with this id, or `*` where it is new.
///
/// # Errors
/// 403 for who may not process it, the 422 list for what cannot be followed, and for a collection that nothing is processed
/// into.
pub(super) async fn check(
    app: &App,
    scope: &Scope<Write>,
    schedule: Option<CollectionScheduleConfig>,
    (id, source): (&str, &SourceConfig),
) -> Result<Option<CollectionScheduleConfig>> {
    let Some(mut schedule) = schedule else {
        return Ok(None);
    };
    let operation = NamespaceOperation::ExecuteJob;
    scope
        .caller
        .allow(ResourceType::Collection, id, operation)?;
    if !matches!(source.r#type, SourceType::Bucket | SourceType::Collection) {
        let msg = "nothing is processed into this collection: its documents are written";
        return Err(Violation::body(&["schedule"], "value_error", msg, Value::Null).into());
    }
    triggers::check_schedule(app, scope, &mut schedule).await?;
    Ok(Some(schedule))
}

/// Gives a collection that is held another schedule. The same again goes on as it is.
///
/// # Errors
/// 409 where the namespace has as many triggers as it may have.
pub(super) async fn change(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    collection: &mut CollectionResponse,
    schedule: Option<CollectionScheduleConfig>,
    now: i64,
) -> Result<()> {
    if schedule.is_none() || schedule == collection.schedule {
        return Ok(());
    }
    let before = collection.trigger_id.take();
    collection.trigger_id = triggers::new_id(schedule.as_ref());
    collection.schedule = schedule;
    triggers::begin_schedule(tx, caller, namespace_id, collection, before.as_deref(), now).await
}

/// The collection whose schedule a trigger is; nobody else changes it until the transaction ends.
///
/// # Errors
/// The database does not answer.
pub async fn hold_scheduled(
    tx: &mut Tx,
    namespace_id: &str,
    trigger_id: &str,
) -> Result<Option<Record<CollectionResponse>>> {
    let is_its = |one: &Record<CollectionResponse>| one.trigger_id.as_deref() == Some(trigger_id);
    let mut held = COLLECTIONS.hold_some(tx, namespace_id, is_its).await?;
    Ok(held.pop())
}

/// Takes its schedule from a collection that is held.
///
/// # Errors
/// The database does not answer.
pub async fn unschedule(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    held: Record<CollectionResponse>,
    now: i64,
) -> Result<()> {
    let mut collection = held.data.0;
    collection.schedule = None;
    collection.trigger_id = None;
    collection.updated_at = Some(clock::time(now));
    lifecycle::write(tx, org_id, namespace_id, &collection, now).await
}
