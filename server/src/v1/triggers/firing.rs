//! Firing: by the clock, by events, and what comes of it. What decides that a trigger fires and the task that it leaves are
//! one transaction, fenced, so a moment fires once however many processes look at it.

use std::time::Duration;

use futures::{StreamExt, stream};
use loupe_wire::{
    NotificationPriority, NotificationType, TaskResponse, TaskType, Trigger, TriggerActionType,
    TriggerStatus, TriggerType, Value,
};
use serde_json::json;

use super::{
    action, canary,
    condition::{self, Measurement},
    schedule::{Condition, Measured, Schedule},
    scheduled,
    store::{self, Due},
    tell,
};
use crate::{
    app::App,
    cause::Cause,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{Claim, text},
    v1::{
        alerts, batches, clusters,
        notifications::{self, Notice},
        tasks::{self, NewTask},
    },
};

/// The queue's word for a trigger that fired.
pub const RUN: &str = "trigger";

/// Failures in a row after which a trigger fires no more.
const PATIENCE: i64 = 5;

/// Microseconds until an event trigger fires again whose cluster was busy, and until one is looked at again that could not be.
const LATER: i64 = 60_000_000;

/// Triggers that are looked at at once, and how long each may take: conditions ask the document store, and one that answers
/// slowly must not hold up what else the leader does.
const LOOKS: usize = 16;
const LONGEST_LOOK: Duration = Duration::from_secs(3);

/// Days that firings, and triggers that were removed, are kept.
const KEPT_DAYS: i64 = 90;

/// Fires what is due. A moment that passed while nothing ran fires once, whatever number of them passed.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let due = store::due(app.db(), now).await?;
    let found = !due.is_empty();
    let looks = stream::iter(due).for_each_concurrent(LOOKS, |due| async move {
        let id = due.data.0.trigger_id.clone();
        if let Err(error) = fire_due(app, due, now).await {
            tracing::warn!(%error, trigger_id = id, "a trigger could not be fired");
        }
    });
    looks.await;
    if found {
        app.work.notify_one();
    }
    Ok(())
}

async fn fire_due(app: &App, due: Due, now: i64) -> Result<()> {
    let (mut trigger, due) = (due.data.0, (due.next_at, due.updated_at));
    let decided = tokio::time::timeout(LONGEST_LOOK, decide(app, &mut trigger, now)).await;
    let decided = decided.unwrap_or_else(|_| {
        let message = "the condition could not be looked at in time";
        Err(ApiError::unavailable("", message))
    });
    let fires = match decided {
        Ok(fires) => fires,
        Err(error) => return miss(app, trigger, due, &error, now).await,
    };
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if store::advance(tx, &trigger, due, now).await? && fires {
                    let cause = match trigger.trigger_type {
                        TriggerType::Event => store::cause(tx, &trigger).await?,
                        _ => Cause::default(),
                    };
                    fire(tx, &mut trigger, cause, now).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Whether a trigger fires whose moment has come. Its next moment is set whatever comes of this one.
async fn decide(app: &App, trigger: &mut Trigger, now: i64) -> Result<bool> {
    trigger.next_scheduled_at = Some(clock::time(now + LATER));
    let schedule = Schedule::read(trigger.trigger_type, &trigger.schedule_config)?;
    trigger.next_scheduled_at = schedule.next(now)?.map(clock::time);
    let fires = match &schedule {
        Schedule::Condition(condition) => look(app, trigger, condition, now).await?,
        // It waited for its cooldown to end.
        Schedule::Event { threshold, .. } => trigger.event_counter >= *threshold,
        _ => true,
    };
    if fires && let Schedule::Event { cooldown, .. } = schedule {
        trigger.event_counter = 0;
        if cooldown > 0 {
            trigger.last_cooldown_at = Some(clock::time(now));
        }
    }
    Ok(fires)
}

/// Goes on to the next moment of a trigger that could not be looked at: one that stayed due would be in everybody's way. It
/// is a failure, as one of the action is, unless it may pass: then it is looked at again soon.
async fn miss(
    app: &App,
    mut trigger: Trigger,
    due: (i64, i64),
    error: &ApiError,
    now: i64,
) -> Result<()> {
    let id = trigger.trigger_id.as_deref().unwrap_or_default();
    tracing::warn!(%error, trigger_id = id, "a trigger could not be looked at");
    let passes = error.is_transient();
    if passes {
        let soon = clock::time(now + LATER);
        trigger.next_scheduled_at = trigger.next_scheduled_at.map(|at| at.min(soon));
    } else {
        // No task came of it.
        trigger.last_execution_task_id = None;
        note(&mut trigger, &End::Failed(error.message()), now);
    }
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if store::advance(tx, &trigger, due, now).await? && !passes {
                    store::update(tx, &trigger, now).await?;
                    tell_failure(tx, &trigger, now).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Whether a condition holds and the last firing is long enough ago.
async fn look(app: &App, trigger: &mut Trigger, condition: &Condition, now: i64) -> Result<bool> {
    trigger.last_condition_check_at = Some(clock::time(now));
    let Measurement {
        holds,
        found,
        baseline,
        renews,
    } = condition::measure(app, trigger, condition).await?;
    match condition.kind {
        Measured::Drift => trigger.last_drift_measurement = Some(found),
        // How much of something there is.
        Measured::Volume | Measured::Metric => trigger.last_volume_measurement = found,
    }
    let fires = holds && is_rested(trigger, condition.cooldown, now);
    if fires || renews {
        trigger.baseline_snapshot = Some(baseline);
    }
    if fires && condition.cooldown > 0 {
        trigger.last_cooldown_at = Some(clock::time(now));
    }
    Ok(fires)
}

/// Whether so many seconds have passed since it fired.
pub(super) fn is_rested(trigger: &Trigger, cooldown: i64, now: i64) -> bool {
    rested_at(trigger, cooldown).is_none_or(|at| at <= now)
}

/// The moment at which so many seconds have passed since it fired; none if it never did.
pub(super) fn rested_at(trigger: &Trigger, cooldown: i64) -> Option<i64> {
    let fired = trigger.last_triggered_at?;
    Some(fired.timestamp_micros() + cooldown * 1_000_000)
}

/// Leaves the task of the action. What comes of it bears the trigger and what led to its firing.
///
/// # Errors
/// The database does not answer.
pub(super) async fn fire(
    tx: &mut Tx,
    trigger: &mut Trigger,
    cause: Cause,
    now: i64,
) -> Result<TaskResponse> {
    let id = trigger.trigger_id.clone().unwrap_or_default();
    let task_type = match trigger.action_type {
        TriggerActionType::RetrieverExecution => TaskType::ApiRetrieversExecute,
        TriggerActionType::CollectionTrigger => TaskType::ApiCollectionsTrigger,
        // The task of the batch itself is another: this one queues it.
        TriggerActionType::BatchRerun => TaskType::ApiBucketsBatchesSubmit,
        TriggerActionType::Cluster => TaskType::EngineClusterBuild,
        TriggerActionType::TaxonomyEnrichment => TaskType::ApiTaxonomiesExecute,
        TriggerActionType::AlertEvaluation => TaskType::ApiRetrieversExecute,
    };
    let work = json!({ "trigger_id": id });
    let mut task = NewTask::work(
        &trigger.internal_id,
        &trigger.namespace_id,
        task_type,
        RUN,
        work,
    );
    task.inputs = vec![id.clone().into()];
    task.description = format!("trigger {}", trigger.name.as_deref().unwrap_or(&id));
    task.additional_data
        .insert("trigger_id".into(), id.as_str().into());
    let outer = tx.cause().clone();
    tx.set_cause(cause.then(&id));
    let task = tasks::insert(tx, task, now).await?;
    trigger.last_triggered_at = Some(clock::time(now));
    trigger.last_execution_task_id = Some(task.task_id.clone());
    trigger.last_execution_status = Some("QUEUED".into());
    trigger.last_execution_error = None;
    trigger.execution_count += 1;
    store::update(tx, trigger, now).await?;
    store::insert_firing(tx, trigger, &task.task_id, now).await?;
    tell(tx, trigger, "trigger.fired", now).await?;
    tx.set_cause(outer);
    Ok(task)
}

/// How a firing ended.
enum End {
    /// With what came of it.
    Completed(Vec<Value>),
    /// What it is for was being done already, in words.
    Busy(String),
    /// There was nothing to do, in words.
    Idle(String),
    Failed(String),
}

impl End {
    const fn status(&self) -> &'static str {
        match self {
            Self::Completed(_) => "COMPLETED",
            Self::Busy(_) | Self::Idle(_) => "SKIPPED",
            Self::Failed(_) => "FAILED",
        }
    }

    /// What came of what was done, or was tried.
    fn outputs(&self) -> Option<&[Value]> {
        match self {
            Self::Completed(outputs) => Some(outputs.as_slice()),
            Self::Failed(_) => Some(&[]),
            Self::Busy(_) | Self::Idle(_) => None,
        }
    }

    /// Why nothing came of it.
    fn why(&self) -> &str {
        match self {
            Self::Completed(_) => "",
            Self::Busy(why) | Self::Idle(why) | Self::Failed(why) => why,
        }
    }
}

/// Does what a fired trigger is for.
///
/// # Errors
/// What the action ends in; the queue tries again what may pass.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let trigger = store::find(app.db(), &namespace_id, text(claim, "trigger_id")).await?;
    match action::perform(app, &trigger, claim).await {
        Ok(outputs) => {
            settle(app, claim, End::Completed(outputs.clone())).await?;
            tasks::succeed(app, claim, outputs).await
        }
        Err(error) => match passed_over(&trigger, &error) {
            Some(end) => {
                settle(app, claim, end).await?;
                tasks::skip(app, claim, &error.message()).await
            }
            None => Err(error),
        },
    }
}

/// How a firing ended that did nothing and is no failure: what it is for is under way, or there was nothing to do.
fn passed_over(trigger: &Trigger, error: &ApiError) -> Option<End> {
    if clusters::is_busy(error) || batches::is_busy(error) {
        return Some(End::Busy(error.message()));
    }
    let idle =
        alerts::is_off(error) || batches::is_nothing(error) || scheduled::passes(trigger, error);
    idle.then(|| End::Idle(error.message()))
}

/// Writes down that the action failed for good.
///
/// # Errors
/// The database does not answer.
pub async fn fail(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    settle(app, claim, End::Failed(reason.to_owned())).await
}

async fn settle(app: &App, claim: &Claim, end: End) -> Result<()> {
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let (id, task_id) = (text(claim, "trigger_id").to_owned(), claim.task_id.clone());
    let (mut cause, now) = (claim.cause.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let ended = (end.status(), end.why());
                store::end_firing(tx, &namespace_id, &task_id, ended, now).await?;
                let mut trigger = match store::hold(tx, &namespace_id, &id).await {
                    Ok(trigger) => trigger,
                    // Its namespace went meanwhile.
                    Err(error) if error.is_not_found() => return Ok(()),
                    Err(error) => return Err(error),
                };
                let was_failing = trigger.consecutive_failures > 0;
                let told = note_of(&mut trigger, &task_id, &end, now);
                store::update(tx, &trigger, now).await?;
                if matches!(end, End::Busy(_)) {
                    cause.join(&store::cause(tx, &trigger).await?);
                    store::keep_cause(tx, &trigger, &cause).await?;
                }
                if let Some(outputs) = end.outputs() {
                    canary::tell(tx, &told, was_failing, outputs, now).await?;
                }
                match end {
                    End::Completed(_) => tell(tx, &told, "trigger.execution.completed", now).await,
                    End::Failed(_) => tell_failure(tx, &told, now).await,
                    End::Busy(_) | End::Idle(_) => Ok(()),
                }
            })
        })
        .await
}

/// Tells of a failure; of the one that stopped the trigger people are told too.
async fn tell_failure(tx: &mut Tx, trigger: &Trigger, now: i64) -> Result<()> {
    tell(tx, trigger, "trigger.execution.failed", now).await?;
    if trigger.status == TriggerStatus::Failed && trigger.consecutive_failures == PATIENCE {
        give_notice(tx, trigger, now).await?;
    }
    Ok(())
}

/// Notes how one firing ended; answers the trigger as that firing is told of. Where another one came after it, the last execution
/// is that one, and stays so.
fn note_of(trigger: &mut Trigger, task_id: &str, end: &End, now: i64) -> Trigger {
    let before = trigger.clone();
    note(trigger, end, now);
    let told = Trigger {
        last_execution_task_id: Some(task_id.to_owned()),
        ..trigger.clone()
    };
    if before.last_execution_task_id.as_deref() != Some(task_id) {
        trigger.last_execution_status = before.last_execution_status;
        trigger.last_execution_error = before.last_execution_error;
    }
    told
}

fn note(trigger: &mut Trigger, end: &End, now: i64) {
    trigger.last_execution_status = Some(end.status().to_owned());
    trigger.last_execution_error = None;
    match end {
        End::Completed(_) => trigger.consecutive_failures = 0,
        End::Busy(_) => wait_for_more(trigger, now),
        End::Idle(_) => {}
        End::Failed(why) => {
            trigger.last_execution_error = Some(why.clone());
            trigger.consecutive_failures += 1;
        }
    }
    if trigger.consecutive_failures >= PATIENCE && trigger.status == TriggerStatus::Active {
        trigger.status = TriggerStatus::Failed;
        trigger.next_scheduled_at = None;
    }
}

/// Events that were counted for a firing which did nothing count on: it fires again when what was under way may be over.
fn wait_for_more(trigger: &mut Trigger, now: i64) {
    let schedule = Schedule::read(trigger.trigger_type, &trigger.schedule_config);
    if trigger.status == TriggerStatus::Active
        && let Ok(Schedule::Event { threshold, .. }) = schedule
    {
        trigger.event_counter = trigger.event_counter.max(threshold);
        trigger.next_scheduled_at = Some(clock::time(now + LATER));
    }
}

async fn give_notice(tx: &mut Tx, trigger: &Trigger, now: i64) -> Result<()> {
    let name = trigger.name.as_deref().unwrap_or_default();
    let why = trigger.last_execution_error.as_deref().unwrap_or_default();
    let notice = Notice {
        kind: NotificationType::SystemAlert,
        priority: NotificationPriority::High,
        title: format!("Trigger {name} was stopped"),
        content: format!(
            "It failed {PATIENCE} times in a row, the last time with: {why}. Resume it when the cause is gone."
        ),
        about: json!({ "trigger_id": trigger.trigger_id, "namespace_id": trigger.namespace_id }),
    };
    notifications::notify(tx, &trigger.internal_id, notice, now).await
}

/// Forgets firings and removed triggers that were kept long enough.
///
/// # Errors
/// The database does not answer.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, before).await }))
        .await?;
    Ok(())
}
