//! Triggers: actions that run by the clock, on events, or when a condition holds. Each moment fires once, over any number
//! of processes; one that was missed while nothing ran fires once when something runs again.

mod action;
mod canary;
pub mod condition;
mod counting;
mod firing;
mod keeping;
mod metric;
mod of_clusters;
mod returning;
mod routes;
pub(crate) mod schedule;
mod scheduled;
mod store;

use loupe_wire::{
    CreateTriggerRequest, ListTriggersRequest, ListTriggersResponse, Object, TaskResponse, Trigger,
    TriggerHistoryResponse, TriggerStatus, TriggerType, UpdateTriggerRequest, Value,
};
use serde_json::json;

pub use canary::send;
pub use counting::count_events;
pub use firing::{RUN, fail, run, sweep, tick};
pub use keeping::{Kept, forget_kept, hold_all_of, keep};
pub use returning::{Held, Whole, hold, pause_all, whole};
pub use routes::router;
pub use scheduled::{begin_schedule, check_schedule, end_schedule, new_id};

use self::schedule::Schedule;
use super::{
    audit::{self, PartOf},
    collections::COLLECTIONS,
    events::Reader,
    namespaces::push_event,
    tasks::name_of,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Level, Read, Scope, Write},
    cause::Cause,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
};

/// What counts events for triggers.
const READER: Reader = Reader("triggers");

/// Triggers of one namespace, without those that were removed.
const MOST: i64 = 200;

/// Seconds after its moment that an active trigger counts as overdue.
const OVERDUE: i64 = 60;

/// As the interface has it at this moment.
fn present(app: &App, mut trigger: Trigger) -> Trigger {
    let late = app.clock().now() - chrono::Duration::seconds(OVERDUE);
    trigger.is_overdue = trigger.status == TriggerStatus::Active
        && trigger.next_scheduled_at.is_some_and(|at| at < late);
    trigger
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateTriggerRequest,
) -> Result<Trigger> {
    let now = app.clock().micros();
    if !matches!(
        request.status,
        TriggerStatus::Active | TriggerStatus::Paused
    ) {
        return Err(not_settable(request.status));
    }
    let mut schedule_config = request.schedule_config;
    schedule::normal(request.trigger_type, &mut schedule_config);
    let schedule = Schedule::read(request.trigger_type, &schedule_config)?;
    schedule::check_members(request.trigger_type, &schedule_config)?;
    let action = &request.action_config;
    let resource_id = action::check(app, scope, request.action_type, action).await?;
    check_looked_at(app, scope, &schedule, &mut schedule_config, Some(action)).await?;
    let next = match request.status {
        TriggerStatus::Active => schedule.first(now)?,
        _ => None,
    };
    let trigger_id = id::new("trg_");
    let trigger = Trigger {
        name: Some(request.name.unwrap_or_else(|| trigger_id.clone())),
        trigger_id: Some(trigger_id),
        namespace_id: scope.namespace_id.clone(),
        internal_id: scope.caller.org_id.clone(),
        action_type: request.action_type,
        action_config: request.action_config,
        trigger_type: request.trigger_type,
        schedule_config,
        status: request.status,
        next_scheduled_at: next.map(clock::time),
        description: request.description,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        created_by: Some(scope.caller.actor().to_owned()),
        ..Default::default()
    };
    let (kept, caller) = (trigger.clone(), scope.caller.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                check_room(store::count_in(tx, &kept.namespace_id).await?)?;
                store::insert(tx, &caller.org_id, &kept, &resource_id, now).await?;
                if kept.trigger_type == TriggerType::Event {
                    READER.ensure(tx, &caller.org_id).await?;
                }
                record(tx, &caller, &kept, "trigger_created", now).await?;
                tell(tx, &kept, "trigger.created", now).await
            })
        })
        .await?;
    Ok(present(app, trigger))
}

/// Tells the audit log what somebody did to a trigger.
async fn record(
    tx: &mut Tx,
    caller: &Caller,
    trigger: &Trigger,
    change: &str,
    now: i64,
) -> Result<()> {
    let changes = json!({"change": change, "trigger_id": trigger.trigger_id, "name": trigger.name});
    let whole = PartOf::Namespace(&trigger.namespace_id);
    audit::record_part(tx, caller, whole, changes, now).await
}

/// Refuses one more than so many triggers where that is too many.
fn check_room(count: i64) -> Result<()> {
    if count < MOST {
        return Ok(());
    }
    let message = format!("a namespace has at most {MOST} triggers");
    Err(ApiError::conflict("", message).with("limit", MOST))
}

/// A schedule that looks at a collection looks at one that is there, and tells nothing that the caller may not read. Events tell
/// the id of theirs, so what waits for them keeps that, also of a collection that was named otherwise.
async fn check_looked_at<L: Level>(
    app: &App,
    scope: &Scope<L>,
    schedule: &Schedule,
    config: &mut Object,
    action: Option<&Object>,
) -> Result<()> {
    let (db, namespace_id) = (app.db(), &scope.namespace_id);
    match schedule {
        Schedule::Condition(condition) => {
            if let Some(named) = &condition.collection_id {
                COLLECTIONS.known(db, namespace_id, named).await?;
            }
            condition::check(app, scope, condition, action).await
        }
        Schedule::Event {
            event_types,
            collection_id: Some(named),
            ..
        } => {
            schedule::check_of_collection(event_types, named)?;
            let found = COLLECTIONS.known(db, namespace_id, named).await?;
            config.insert("collection_id".into(), found.id.as_str().into());
            Ok(())
        }
        _ => Ok(()),
    }
}

fn not_settable(status: TriggerStatus) -> ApiError {
    let msg = "a trigger is set active or paused: the other states come by themselves";
    Violation::body(&["status"], "value_error", msg, name_of(status).into()).into()
}

async fn tell(tx: &mut Tx, trigger: &Trigger, kind: &'static str, now: i64) -> Result<()> {
    let payload = json!({
        "trigger_id": trigger.trigger_id, "name": trigger.name, "action_type": trigger.action_type,
        "trigger_type": trigger.trigger_type, "status": trigger.status,
        "task_id": trigger.last_execution_task_id,
    });
    // The organization is what the interface calls the internal id.
    push_event(
        tx,
        &trigger.internal_id,
        &trigger.namespace_id,
        kind,
        payload,
        now,
    )
    .await
}

pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    request: ListTriggersRequest,
) -> Result<ListTriggersResponse> {
    let wanted = store::Wanted {
        action_type: request.action_type.map(name_of).unwrap_or_default(),
        trigger_type: request.trigger_type.map(name_of).unwrap_or_default(),
        status: request.status.map(name_of).unwrap_or_default(),
        resource_id: request.resource_id.unwrap_or_default(),
    };
    let descending = match request.direction.as_str() {
        "desc" => true,
        "asc" => false,
        other => {
            let msg = "a direction is asc or desc";
            return Err(Violation::body(&["direction"], "enum", msg, other.into()).into());
        }
    };
    let mut triggers = store::list(app.db(), &scope.namespace_id, &wanted).await?;
    sort(&mut triggers, &request.sort_by)?;
    if descending {
        triggers.reverse();
    }
    let total = i64::try_from(triggers.len()).unwrap_or(i64::MAX);
    let window = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = triggers
        .into_iter()
        .skip(window(request.offset))
        .take(window(request.limit));
    Ok(ListTriggersResponse {
        results: page.map(|trigger| present(app, trigger)).collect(),
        total,
        offset: request.offset,
        limit: request.limit,
        ..Default::default()
    })
}

/// Lowest first; what lacks the member comes before the rest. The list is short: a namespace has few triggers.
fn sort(triggers: &mut [Trigger], by: &str) -> Result<()> {
    match by {
        "created_at" => triggers.sort_by_key(|one| one.created_at),
        "updated_at" => triggers.sort_by_key(|one| one.updated_at),
        "name" => triggers.sort_by(|a, b| a.name.cmp(&b.name)),
        "status" => triggers.sort_by_key(|one| name_of(one.status)),
        "next_scheduled_at" => triggers.sort_by_key(|one| one.next_scheduled_at),
        "last_triggered_at" => triggers.sort_by_key(|one| one.last_triggered_at),
        "execution_count" => triggers.sort_by_key(|one| one.execution_count),
        other => {
            let msg = "triggers are sorted by created_at, updated_at, name, status, next_scheduled_at, last_triggered_at or execution_count";
            return Err(Violation::body(&["sort_by"], "enum", msg, other.into()).into());
        }
    }
    Ok(())
}

pub async fn get(app: &App, scope: &Scope<Read>, id: &str) -> Result<Trigger> {
    let trigger = store::find(app.db(), &scope.namespace_id, id).await?;
    Ok(present(app, trigger))
}

/// Changes what is sent. A schedule that is changed begins now.
pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    id: &str,
    request: UpdateTriggerRequest,
) -> Result<Trigger> {
    let before = store::find(app.db(), &scope.namespace_id, id).await?;
    let mut config = request.schedule_config.clone();
    if let Some(config) = &mut config {
        scheduled::check_own(&before)?;
        schedule::normal(before.trigger_type, config);
        let schedule = Schedule::read(before.trigger_type, config)?;
        schedule::check_members(before.trigger_type, config)?;
        let action = Some(&before.action_config);
        check_looked_at(app, scope, &schedule, config, action).await?;
    }
    let status = request.status;
    if let Some(status) = status
        && !matches!(status, TriggerStatus::Active | TriggerStatus::Paused)
    {
        return Err(not_settable(status));
    }
    change(app, scope, id, "trigger.updated", move |trigger, now| {
        trigger.name = request.name.or_else(|| trigger.name.take());
        if let Some(description) = request.description {
            trigger.description = description;
        }
        if let Some(status) = status {
            set_status(trigger, status);
        }
        // The same schedule again goes on as it is.
        let other = config.filter(|config| trigger.schedule_config != *config);
        let Some(config) = other else {
            return match status {
                Some(_) => schedule_anew(trigger, now),
                None => Ok(()),
            };
        };
        // What was counted and measured of something else says nothing of this.
        trigger.event_counter = 0;
        trigger.baseline_snapshot = None;
        trigger.schedule_config = config;
        set_next(trigger, |schedule, _| schedule.first(now))
    })
    .await
}

/// Sets a trigger active or paused. Whoever sets one active that was not forgives it what it failed at before: it would else be
/// stopped by the next failure, and nobody told.
fn set_status(trigger: &mut Trigger, status: TriggerStatus) {
    if status == TriggerStatus::Active && trigger.status != status {
        trigger.consecutive_failures = 0;
    }
    trigger.status = status;
}

/// The next moment of a trigger that was changed: none unless it is active.
fn schedule_anew(trigger: &mut Trigger, now: i64) -> Result<()> {
    set_next(trigger, |schedule, trigger| match schedule {
        // It was full before, and waited for its cooldown to end: it fires then, whether or not more comes.
        Schedule::Event {
            threshold,
            cooldown,
            ..
        } if trigger.event_counter >= *threshold => {
            let rested = firing::rested_at(trigger, *cooldown);
            Ok(Some(rested.map_or(now, |at| at.max(now))))
        }
        _ => schedule.next(now),
    })
}

/// The moment that a schedule says for a trigger: none unless it is active.
fn set_next(
    trigger: &mut Trigger,
    said: impl FnOnce(&Schedule, &Trigger) -> Result<Option<i64>>,
) -> Result<()> {
    trigger.next_scheduled_at = None;
    if trigger.status == TriggerStatus::Active {
        let schedule = Schedule::read(trigger.trigger_type, &trigger.schedule_config)?;
        trigger.next_scheduled_at = said(&schedule, trigger)?.map(clock::time);
    }
    Ok(())
}

pub async fn pause(app: &App, scope: &Scope<Write>, id: &str) -> Result<Trigger> {
    change(app, scope, id, "trigger.paused", |trigger, now| {
        trigger.status = TriggerStatus::Paused;
        schedule_anew(trigger, now)
    })
    .await
}

/// Runs it by its schedule again, also after it failed too often.
pub async fn resume(app: &App, scope: &Scope<Write>, id: &str) -> Result<Trigger> {
    change(app, scope, id, "trigger.resumed", |trigger, now| {
        trigger.status = TriggerStatus::Active;
        trigger.consecutive_failures = 0;
        schedule_anew(trigger, now)
    })
    .await
}

/// Removes a trigger: it stays readable as disabled, with its history, for 90 days.
/// A collection whose schedule it is has none any more.
pub async fn delete(app: &App, scope: &Scope<Delete>, id: &str) -> Result<()> {
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // First of all, as whoever changes a collection holds it.
                let collection = super::collections::hold_scheduled(tx, &namespace_id, &id).await?;
                let org_id = &caller.org_id;
                follow_feed(tx, org_id, &namespace_id, &id).await?;
                let end = |trigger: &mut Trigger, now| {
                    trigger.status = TriggerStatus::Disabled;
                    schedule_anew(trigger, now)
                };
                let place = (namespace_id.as_str(), id.as_str());
                change_in(tx, &caller, place, "trigger.deleted", end, now).await?;
                match collection {
                    Some(one) => {
                        super::collections::unschedule(tx, org_id, &namespace_id, one, now).await
                    }
                    None => Ok(()),
                }
            })
        })
        .await
}

async fn change<L: Level>(
    app: &App,
    scope: &Scope<L>,
    id: &str,
    kind: &'static str,
    edit: impl FnOnce(&mut Trigger, i64) -> Result<()> + Send + 'static,
) -> Result<Trigger> {
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    let changed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                follow_feed(tx, &caller.org_id, &namespace_id, &id).await?;
                change_in(tx, &caller, (&namespace_id, &id), kind, edit, now).await
            })
        })
        .await?;
    Ok(present(app, changed))
}

async fn change_in(
    tx: &mut Tx,
    caller: &Caller,
    (namespace_id, id): (&str, &str),
    kind: &'static str,
    edit: impl FnOnce(&mut Trigger, i64) -> Result<()> + Send,
    now: i64,
) -> Result<Trigger> {
    let mut trigger = store::hold(tx, namespace_id, id).await?;
    if trigger.status == TriggerStatus::Disabled {
        return Err(ApiError::conflict("", "the trigger was removed"));
    }
    edit(&mut trigger, now)?;
    trigger.updated_at = Some(clock::time(now));
    store::update(tx, &trigger, now).await?;
    record(tx, caller, &trigger, &kind.replace('.', "_"), now).await?;
    tell(tx, &trigger, kind, now).await?;
    Ok(trigger)
}

/// Has the feed read for a trigger on events: nobody reads it while none is active. A reader that is not needed ends at its
/// next look. Whoever counts holds the reader before the triggers, so it comes first here too.
async fn follow_feed(tx: &mut Tx, org_id: &str, namespace_id: &str, id: &str) -> Result<()> {
    let found = store::find_in(tx, namespace_id, id).await?;
    if found.trigger_type == TriggerType::Event {
        READER.ensure(tx, org_id).await?;
    }
    Ok(())
}

/// Runs the action now, whatever the schedule says.
pub async fn execute(app: &App, scope: &Scope<Write>, id: &str) -> Result<TaskResponse> {
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut trigger = store::hold(tx, &namespace_id, &id).await?;
                if trigger.status == TriggerStatus::Disabled {
                    return Err(ApiError::conflict("", "the trigger was removed"));
                }
                record(tx, &caller, &trigger, "trigger_executed", now).await?;
                firing::fire(tx, &mut trigger, Cause::default(), now).await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(task)
}

pub async fn history(
    app: &App,
    scope: &Scope<Read>,
    id: &str,
    limit: i64,
    offset: i64,
) -> Result<TriggerHistoryResponse> {
    store::find(app.db(), &scope.namespace_id, id).await?;
    let (executions, total) =
        store::firings(app.db(), &scope.namespace_id, id, "", (limit, offset)).await?;
    Ok(TriggerHistoryResponse {
        trigger_id: id.to_owned(),
        executions,
        total,
        offset,
        limit,
    })
}

/// The text of a member of an action.
fn member<'c>(config: &'c Object, name: &str) -> Option<&'c str> {
    config.get(name).and_then(Value::as_str)
}
