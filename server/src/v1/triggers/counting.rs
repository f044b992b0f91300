//! Events that triggers wait for: counted as they come, in one transaction with what they fill.

use loupe_wire::{Trigger, TriggerStatus, Value};

use super::{
    READER,
    firing::{fire, is_rested, rested_at},
    member,
    schedule::Schedule,
    store,
};
use crate::{
    app::App,
    cause::Cause,
    clock,
    db::Tx,
    error::Result,
    v1::events::{self, EventRow},
};

/// Events that are counted in one transaction.
const EVENTS: i64 = 500;

/// Counts the events that nobody looked at yet, and fires what they fill. What is written meanwhile is for the next call:
/// firing writes events itself, and whoever leads has other things to do.
///
/// # Errors
/// The database does not answer.
pub async fn count_events(app: &App) -> Result<()> {
    for (org_id, mut seen, newest) in READER.behind(app.db()).await? {
        while seen < newest {
            let events = events::list(app.db(), &org_id, seen, "", "", EVENTS).await?;
            let Some(last) = events.last().map(|event| event.seq) else {
                break;
            };
            if !count(app, &org_id, seen, last, events).await? {
                // Another process was faster.
                break;
            }
            seen = last;
        }
    }
    Ok(())
}

async fn count(app: &App, org_id: &str, from: i64, to: i64, events: Vec<EventRow>) -> Result<bool> {
    let (org_id, now) = (org_id.to_owned(), app.clock().micros());
    let counted = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                if !READER.advance(tx, &org_id, from, to).await? {
                    return Ok(None);
                }
                let waiting = store::waiting(tx, &org_id).await?;
                if waiting.is_empty() {
                    READER.stop(tx, &org_id).await?;
                }
                // All are held before the first fires: firing holds the organization's feed, which others want while they
                // hold a trigger.
                let mut held = Vec::new();
                for trigger in waiting.iter().filter(|one| brought(one, &events).0 > 0) {
                    let id = trigger.trigger_id.as_deref().unwrap_or_default();
                    held.push(store::hold(tx, &trigger.namespace_id, id).await?);
                }
                let mut fired = false;
                for trigger in held {
                    fired |= take(tx, trigger, &events, now).await?;
                }
                Ok(Some(fired))
            })
        })
        .await?;
    if counted == Some(true) {
        app.work.notify_one();
    }
    Ok(counted.is_some())
}

/// What the events count for a trigger, and what led to them. Those that it led to itself count nothing.
fn brought(trigger: &Trigger, events: &[EventRow]) -> (i64, Cause) {
    let schedule = Schedule::read(trigger.trigger_type, &trigger.schedule_config);
    // One that cannot be followed any more waits for nothing: it must not stop the others.
    let Ok(Schedule::Event {
        event_types,
        collection_id,
        by_documents,
        ..
    }) = schedule
    else {
        return (0, Cause::default());
    };
    let id = trigger.trigger_id.as_deref().unwrap_or_default();
    let of_interest = events.iter().filter(|event| {
        event_types.contains(&event.event_type)
            && event.namespace_id.as_deref() == Some(&trigger.namespace_id)
            && collection_id
                .as_deref()
                .is_none_or(|wanted| member(&event.payload, "collection_id") == Some(wanted))
            && event.cause().lets(id)
    });
    let (mut sum, mut cause) = (0, Cause::default());
    for event in of_interest {
        sum += weight(event, by_documents);
        cause.join(&event.cause());
    }
    (sum, cause)
}

/// Adds what the events bring to a trigger that is held; whether it fired.
async fn take(tx: &mut Tx, mut trigger: Trigger, events: &[EventRow], now: i64) -> Result<bool> {
    let schedule = Schedule::read(trigger.trigger_type, &trigger.schedule_config)?;
    let Schedule::Event {
        threshold,
        cooldown,
        ..
    } = schedule
    else {
        return Ok(false);
    };
    let (brought, mut cause) = brought(&trigger, events);
    if brought == 0 || trigger.status != TriggerStatus::Active {
        return Ok(false);
    }
    if trigger.event_counter > 0 {
        cause.join(&store::cause(tx, &trigger).await?);
    }
    store::keep_cause(tx, &trigger, &cause).await?;
    trigger.event_counter += brought;
    if trigger.event_counter < threshold {
        store::update(tx, &trigger, now).await?;
        return Ok(false);
    }
    let waits = trigger.next_scheduled_at.map(|at| at.timestamp_micros());
    if waits.is_some_and(|at| at > now) {
        store::update(tx, &trigger, now).await?;
        return Ok(false);
    }
    if !is_rested(&trigger, cooldown, now) {
        // It fires when the cooldown ends, whether or not more comes.
        trigger.next_scheduled_at = rested_at(&trigger, cooldown).map(clock::time);
        store::update(tx, &trigger, now).await?;
        return Ok(false);
    }
    trigger.event_counter = 0;
    trigger.next_scheduled_at = None;
    if cooldown > 0 {
        trigger.last_cooldown_at = Some(clock::time(now));
    }
    fire(tx, &mut trigger, cause, now).await?;
    Ok(true)
}

/// What an event counts: the documents or objects that it tells of, else one.
fn weight(event: &EventRow, by_documents: bool) -> i64 {
    let held = event.payload.get("total_documents").and_then(Value::as_i64);
    if let Some(held) = held.filter(|_| by_documents) {
        return held;
    }
    let listed = |name: &str| event.payload.get(name).and_then(Value::as_array);
    let ids = listed("document_ids").or_else(|| listed("object_ids"));
    ids.map_or(1, |ids| i64::try_from(ids.len()).unwrap_or(1))
}
