//! Triggers that the server keeps for collections with a schedule: each processes its collection.

use loupe_wire::{
    CollectionResponse, CollectionScheduleConfig, Trigger, TriggerActionType, TriggerStatus,
    TriggerType, reading,
};
use serde_json::json;

use super::{
    READER, check_looked_at, check_room, keeping, schedule, schedule::Schedule, schedule_anew,
    set_status, store, tell,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
};

/// What a schedule passes by: its moments come again, and nobody did anything wrong.
const PASSED: [&str; 2] = ["collection_disabled", "collection_not_active"];

/// Who made the trigger of a collection.
pub(super) fn maker(collection_id: &str) -> String {
    format!("schedule of {collection_id}")
}

/// The collection whose schedule the trigger is.
pub(super) fn collection_of(trigger: &Trigger) -> Option<&str> {
    trigger.created_by.as_deref()?.strip_prefix("schedule of ")
}

/// Whether the firing of a schedule is passed by for this reason.
pub(super) fn passes(trigger: &Trigger, error: &ApiError) -> bool {
    collection_of(trigger).is_some() && PASSED.iter().any(|code| error.has_code(code))
}

/// Refuses to change when a collection is processed anywhere but at the collection.
pub(super) fn check_own(trigger: &Trigger) -> Result<()> {
    let Some(collection_id) = collection_of(trigger) else {
        return Ok(());
    };
    let message = "the collection says when: change its schedule";
    Err(ApiError::conflict("", message).with("collection_id", collection_id))
}

/// The id of the trigger that a collection with a schedule gets.
pub fn new_id(schedule: Option<&CollectionScheduleConfig>) -> Option<String> {
    schedule.map(|_| id::new("trg_"))
}

/// Checks when a collection is to be processed.
///
/// # Errors
/// The 422 list for what cannot be followed, 404 for another collection that is not there.
pub async fn check_schedule(
    app: &App,
    scope: &Scope<Write>,
    schedule: &mut CollectionScheduleConfig,
) -> Result<()> {
    let kind = kind_of(schedule)?;
    schedule::normal(kind, &mut schedule.schedule_config);
    let read = Schedule::read(kind, &schedule.schedule_config).and_then(|read| {
        // One that says no moment is found out now.
        read.next(app.clock().micros())?;
        Ok(read)
    });
    let (read, config) = (read.map_err(inside)?, &mut schedule.schedule_config);
    let looked_at = check_looked_at(app, scope, &read, config, None).await;
    looked_at.map_err(inside)
}

fn kind_of(schedule: &CollectionScheduleConfig) -> Result<TriggerType> {
    let sent = schedule.trigger_type.as_str();
    reading::from_value(&sent.into()).map_err(|_| {
        let msg = "cron, interval, event or conditional";
        Violation::body(&["schedule", "trigger_type"], "enum", msg, sent.into()).into()
    })
}

/// Faults of a schedule, told where a collection has it.
fn inside(error: ApiError) -> ApiError {
    match error {
        ApiError::Validation(mut violations) => {
            for violation in &mut violations {
                violation.loc.insert(1, "schedule".into());
            }
            ApiError::Validation(violations)
        }
        error => error,
    }
}

/// Begins the schedule of a collection under the id that it says, in place of the trigger that it had before.
///
/// # Errors
/// 409 where the namespace has as many triggers as it may have.
pub async fn begin_schedule(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    collection: &CollectionResponse,
    before: Option<&str>,
    now: i64,
) -> Result<()> {
    let (Some(schedule), Some(trigger_id)) = (&collection.schedule, &collection.trigger_id) else {
        return Ok(());
    };
    let kind = kind_of(schedule)?;
    // Before the triggers, as whoever counts events holds it; and they before the first event.
    if kind == TriggerType::Event {
        READER.ensure(tx, &caller.org_id).await?;
    }
    let before = match before {
        Some(id) => living(tx, namespace_id, id).await?,
        None => None,
    };
    let held = held(tx, namespace_id, trigger_id).await?;
    // Before its room is looked for: it gives up its own.
    if let Some(trigger) = before {
        keeping::end(tx, trigger, now).await?;
    }
    match held {
        // The collection was deleted, and comes back.
        Some(mut trigger) => {
            set_status(&mut trigger, TriggerStatus::Active);
            trigger.schedule_config = schedule.schedule_config.clone();
            trigger.updated_at = Some(clock::time(now));
            schedule_anew(&mut trigger, now)?;
            store::update(tx, &trigger, now).await?;
            tell(tx, &trigger, "trigger.updated", now).await
        }
        None => {
            check_room(store::count_in(tx, namespace_id).await?)?;
            let next = Schedule::read(kind, &schedule.schedule_config)?.first(now)?;
            let trigger = Trigger {
                trigger_id: Some(trigger_id.clone()),
                namespace_id: namespace_id.to_owned(),
                internal_id: caller.org_id.clone(),
                trigger_type: kind,
                schedule_config: schedule.schedule_config.clone(),
                description: schedule.description.clone(),
                next_scheduled_at: next.map(clock::time),
                ..made(collection, now)
            };
            let collection_id = collection.collection_id.as_deref().unwrap_or_default();
            store::insert(tx, &caller.org_id, &trigger, collection_id, now).await?;
            tell(tx, &trigger, "trigger.created", now).await
        }
    }
}

/// What processes the collection, whenever that is.
fn made(collection: &CollectionResponse, now: i64) -> Trigger {
    let collection_id = collection.collection_id.as_deref().unwrap_or_default();
    Trigger {
        name: Some(format!("{} by its schedule", collection.collection_name)),
        action_type: TriggerActionType::CollectionTrigger,
        action_config: keeping::object(json!({ "collection_id": collection_id })),
        status: TriggerStatus::Active,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        created_by: Some(maker(collection_id)),
        ..Default::default()
    }
}

/// The trigger, if it is there; nobody else changes it until the transaction ends.
async fn held(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<Option<Trigger>> {
    match store::hold(tx, namespace_id, id).await {
        Ok(trigger) => Ok(Some(trigger)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`held`], unless it was removed.
async fn living(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<Option<Trigger>> {
    let found = held(tx, namespace_id, id).await?;
    Ok(found.filter(|trigger| trigger.status != TriggerStatus::Disabled))
}

/// Ends the schedule of a collection that goes.
///
/// # Errors
/// The database does not answer.
pub async fn end_schedule(
    tx: &mut Tx,
    namespace_id: &str,
    collection: &CollectionResponse,
    now: i64,
) -> Result<()> {
    let Some(trigger_id) = &collection.trigger_id else {
        return Ok(());
    };
    match living(tx, namespace_id, trigger_id).await? {
        Some(trigger) => keeping::end(tx, trigger, now).await,
        None => Ok(()),
    }
}
