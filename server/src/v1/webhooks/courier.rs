//! From the change feed to receivers. Every process looks what is new and sends what is due; the database decides who does
//! which: an event becomes deliveries once, a delivery is sent by one at a time, and both outlive the process.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use loupe_wire::{NotificationPriority, NotificationType, Object, Value};
use rand::Rng;
use reqwest::StatusCode;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use super::{
    READER, WEBHOOKS, Webhook,
    message::{Outcome, post},
    store::{self, Delivery, End, Most, New},
};
use crate::{
    app::App,
    db::{Record, Tx},
    error::Result,
    v1::{
        events::{self, EventRow},
        notifications::{self, Notice},
    },
};

/// Seconds before each further attempt; after the last one the channel is paused if it took nothing else meanwhile.
const PAUSES: [i64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/// How often the feed and the deliveries are looked at.
const ROUND: Duration = Duration::from_millis(250);

/// Events that become deliveries in one transaction.
const EVENTS: i64 = 200;

/// Attempts to one channel that are under way at once: a receiver that hangs holds up its own alone. Once it has failed it gets
/// one at a time.
const OF_ONE: i64 = 8;

/// How long an attempt may take, whatever it waits for, and who holds a delivery longer is dead.
const LONGEST: Duration = Duration::from_secs(45);
const HELD: i64 = 60_000_000;

/// What a receiver answers that wants nothing any more.
const GONE: i64 = 410;

/// Microseconds within which a success may be written down too early: [`store::succeeded`] does it once a minute.
const SLACK: i64 = 60_000_000;

/// Days that deliveries are kept.
const KEPT_DAYS: i64 = 30;

/// Reads and sends until the process stops.
pub fn start(app: &App) {
    let reader = app.clone();
    app.spawn(async move {
        while !reader.leaving.is_cancelled() {
            if let Err(error) = dispatch(&reader).await {
                tracing::warn!(%error, "the change feed could not be read for webhooks");
            }
            pause(&reader).await;
        }
    });
    let sender = app.clone();
    app.spawn(async move { deliver(sender).await });
}

/// Begins what is due until the process stops.
async fn deliver(app: App) {
    let room = Semaphore::new(app.config().outbound.at_once());
    let (room, freed) = (Arc::new(room), Arc::new(Notify::new()));
    while !app.leaving.is_cancelled() {
        // There may be more than was claimed at once.
        let more = match begin(&app, &room, &freed).await {
            Ok(begun) => begun > 0,
            Err(error) => {
                tracing::warn!(%error, "webhooks could not be delivered");
                false
            }
        };
        if !more {
            tokio::select! {
                () = freed.notified() => {}
                () = pause(&app) => {}
            }
        }
    }
}

async fn pause(app: &App) {
    tokio::select! {
        () = tokio::time::sleep(ROUND) => {}
        () = app.leaving.cancelled() => {}
    }
}

/// Makes deliveries of the events that nobody looked at yet.
///
/// # Errors
/// The database does not answer.
pub async fn dispatch(app: &App) -> Result<()> {
    for (org_id, mut seen, _) in READER.behind(app.db()).await? {
        loop {
            let events = events::list(app.db(), &org_id, seen, "", "", EVENTS).await?;
            let Some(last) = events.last().map(|event| event.seq) else {
                break;
            };
            let webhooks = WEBHOOKS.all(app.db(), &org_id).await?;
            let new = new_deliveries(&webhooks, &events);
            if !advance(app, &org_id, seen, last, new).await? {
                // Another process was faster.
                break;
            }
            seen = last;
        }
    }
    Ok(())
}

fn new_deliveries(webhooks: &[Record<Webhook>], events: &[EventRow]) -> Vec<New> {
    let mut new = Vec::new();
    for event in events {
        for webhook in webhooks
            .iter()
            .filter(|webhook| webhook.wants(&event.event_type, &event.payload))
        {
            let channels = webhook.keys().zip(&webhook.channels);
            for (channel, _) in channels.filter(|(_, kept)| !kept.is_paused) {
                new.push(New {
                    delivery_id: format!("msg_{}_{}_{channel}", &webhook.id[3..], event.seq),
                    webhook_id: webhook.id.clone(),
                    channel,
                    seq: event.seq,
                    event_type: event.event_type.clone(),
                });
            }
        }
    }
    new
}

async fn advance(app: &App, org_id: &str, from: i64, to: i64, new: Vec<New>) -> Result<bool> {
    let (org_id, now) = (org_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !READER.advance(tx, &org_id, from, to).await? {
                    return Ok(false);
                }
                for delivery in new {
                    store::insert(tx, &org_id, &delivery, now).await?;
                }
                Ok(true)
            })
        })
        .await
}

/// Begins to send what is due, as far as there is room, and answers how many attempts that are. Those to one channel end
/// together before it gets more; no channel waits for another, and no organization for one whose receivers are slow.
async fn begin(app: &App, room: &Arc<Semaphore>, freed: &Arc<Notify>) -> Result<usize> {
    let (free, now) = (room.available_permits(), app.clock().micros());
    let share = app.config().outbound.of_organization();
    if free == 0 || !store::is_due(app.db(), now, share).await? {
        return Ok(0);
    }
    let most = Most {
        in_all: i64::try_from(free).unwrap_or(1),
        of_organization: share,
        of_channel: OF_ONE,
    };
    let claimed = app
        .db()
        .write(move |tx| Box::pin(async move { store::claim(tx, now, now + HELD, most).await }))
        .await?;
    let count = claimed.len();
    let mut channels: BTreeMap<(String, i64), Vec<Delivery>> = BTreeMap::new();
    for delivery in claimed {
        let channel = (delivery.webhook_id.clone(), delivery.channel);
        channels.entry(channel).or_default().push(delivery);
    }
    for deliveries in channels.into_values() {
        // There is room: nobody else takes any.
        let number = u32::try_from(deliveries.len()).unwrap_or(1);
        let taken = room.clone().acquire_many_owned(number).await;
        let (app, freed) = (app.clone(), freed.clone());
        app.clone().spawn(async move {
            let attempts = deliveries.into_iter().map(|one| attempt(&app, one));
            let ends = join_all(attempts).await;
            for error in ends.into_iter().filter_map(Result::err) {
                tracing::warn!(%error, "how a webhook's delivery ended could not be written down");
            }
            drop(taken);
            freed.notify_one();
        });
    }
    Ok(count)
}

async fn attempt(app: &App, delivery: Delivery) -> Result<()> {
    let sent = tokio::select! {
        sent = tokio::time::timeout(LONGEST, send(app, &delivery)) => sent,
        // Whoever goes on sends it again.
        () = app.leaving.cancelled() => return release(app, delivery).await,
    };
    let outcome = match sent {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Outcome::Failed(0, error.message()),
        Err(_) => Outcome::Failed(0, "it took too long".into()),
    };
    let (of, now) = (app.clone(), app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { end(&of, tx, &delivery, outcome, now).await }))
        .await
}

async fn release(app: &App, delivery: Delivery) -> Result<()> {
    app.db()
        .write(move |tx| Box::pin(async move { store::release(tx, &delivery).await }))
        .await
}

async fn send(app: &App, delivery: &Delivery) -> Result<Outcome> {
    let org_id = &delivery.org_id;
    let webhook = WEBHOOKS
        .find(app.db(), org_id, &delivery.webhook_id)
        .await?;
    let unset = |why: &str| Ok(Outcome::Unset(why.into()));
    let place = webhook.place_of(delivery.channel);
    let Some(kept) = place.and_then(|place| webhook.channels.get(place)) else {
        return unset("the channel was removed");
    };
    if !webhook.is_active {
        return unset("the webhook was not active: send it once more when it is");
    }
    if kept.is_paused {
        return unset("the channel was paused: set the webhook active and send it once more");
    }
    let events = events::list(app.db(), org_id, delivery.seq - 1, "", "", 1).await?;
    let Some(event) = events.into_iter().find(|event| event.seq == delivery.seq) else {
        return unset("the event is kept no longer");
    };
    let channel = kept.open(app, org_id, &webhook.id)?;
    let body = body(org_id, event);
    post(app, &channel, &delivery.delivery_id, body).await
}

/// What a receiver is told of an event.
fn body(org_id: &str, event: EventRow) -> Object {
    let told = events::told(event);
    let body = json!({
        "event_id": format!("evt_{}", told.seq),
        "event_type": told.event_type,
        "occurred_at": told.created_at,
        "organization_id": org_id,
        "namespace_id": told.namespace_id,
        "resource_type": told.resource_type,
        "operation": told.operation,
        "seq": told.seq,
        "payload": told.payload,
    });
    match body {
        Value::Object(body) => body,
        _ => Object::new(),
    }
}

/// Writes down how an attempt ended, and what follows from it.
async fn end(
    app: &App,
    tx: &mut Tx,
    delivery: &Delivery,
    outcome: Outcome,
    now: i64,
) -> Result<()> {
    let is_unset = matches!(outcome, Outcome::Unset(_));
    let is_gone = matches!(outcome, Outcome::Over(GONE, _));
    let (status, error) = match outcome {
        Outcome::Delivered(status) => return delivered(tx, delivery, status, now).await,
        Outcome::Failed(status, error) | Outcome::Over(status, error) => (status, error),
        Outcome::Unset(error) => (0, error),
    };
    let pause = usize::try_from(delivery.attempts - 1)
        .ok()
        .and_then(|attempt| PAUSES.get(attempt));
    let again = pause.filter(|_| !is_unset && !is_gone);
    let webhook = match again {
        // Held before its deliveries, as by whoever changes or removes it.
        None if !is_unset => held(tx, delivery).await?,
        _ => None,
    };
    let end = End {
        status: if again.is_some() { "pending" } else { "failed" },
        due_at: now + again.map_or(0, |seconds| with_jitter(*seconds)),
        last_status: status,
        last_error: error.clone(),
        ended_at: if again.is_some() { 0 } else { now },
    };
    // What was not sent says nothing of the receiver.
    if !store::finish(tx, delivery, &end).await? || is_unset {
        return Ok(());
    }
    store::failed(tx, delivery, &error, now).await?;
    let Some(webhook) = webhook else {
        return Ok(());
    };
    // One message that is never taken keeps no other from its receiver.
    if is_gone || !store::has_succeeded(tx, delivery, delivery.created_at - SLACK).await? {
        stop(app, tx, webhook, delivery, (&error, now)).await?;
    }
    Ok(())
}

/// The webhook of a delivery, unless it is removed or not active.
async fn held(tx: &mut Tx, delivery: &Delivery) -> Result<Option<Webhook>> {
    match WEBHOOKS
        .hold(tx, &delivery.org_id, &delivery.webhook_id)
        .await
    {
        Ok(found) => Ok(Some(found.data.0).filter(|webhook| webhook.is_active)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn delivered(tx: &mut Tx, delivery: &Delivery, status: StatusCode, now: i64) -> Result<()> {
    let end = End {
        status: "delivered",
        due_at: now,
        last_status: i64::from(status.as_u16()),
        last_error: String::new(),
        ended_at: now,
    };
    if store::finish(tx, delivery, &end).await? {
        store::succeeded(tx, delivery, now).await?;
    }
    Ok(())
}

/// Microseconds of a pause, 20 % more or less: receivers that come back are not met by everything at once.
fn with_jitter(seconds: i64) -> i64 {
    let range = seconds * 200_000;
    seconds * 1_000_000 + rand::rng().random_range(-range..=range)
}

/// Pauses a channel whose receiver is gone, or took nothing for as long as the schedule lasts, and tells people; with the last
/// channel that was left the webhook.
async fn stop(
    app: &App,
    tx: &mut Tx,
    mut webhook: Webhook,
    delivery: &Delivery,
    (why, now): (&str, i64),
) -> Result<()> {
    let (org_id, id) = (&delivery.org_id, &delivery.webhook_id);
    let place = webhook.place_of(delivery.channel);
    let Some(kept) = place.and_then(|place| webhook.channels.get_mut(place)) else {
        return Ok(());
    };
    if kept.is_paused {
        return Ok(());
    }
    kept.is_paused = true;
    let receiver = kept.open(app, org_id, id)?.receiver();
    webhook.is_active = webhook.channels.iter().any(|kept| !kept.is_paused);
    let name = webhook.webhook_name.as_str();
    WEBHOOKS.update(tx, org_id, id, name, now, &webhook).await?;
    store::pause(tx, delivery, why).await?;
    let (what, others) = match webhook.is_active {
        true => ("A channel of webhook", " Its other channels go on."),
        false => ("Webhook", ""),
    };
    let notice = Notice {
        kind: NotificationType::SystemAlert,
        priority: NotificationPriority::High,
        title: format!("{what} {name} was paused"),
        content: format!(
            "{receiver} could not be reached: {why}.{others} Set the webhook active again when the receiver is back; what failed can be sent once more from its log."
        ),
        about: json!({ "webhook_id": id }),
    };
    notifications::notify(tx, org_id, notice, now).await
}

/// Removes what was kept long enough.
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
