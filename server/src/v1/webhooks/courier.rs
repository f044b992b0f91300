//! From the change feed to receivers. Every process looks what is new and sends what is due; the database decides who does
//! which: an event becomes deliveries once, a delivery is sent by one at a time, and both outlive the process.

use std::time::Duration;

use futures::{StreamExt, stream};
use loupe_engine::{
    template,
    web::{Answer, Ask, Web},
};
use loupe_wire::{
    NotificationContentType, NotificationEmailConfig, NotificationPriority, NotificationType,
    Object, SlackConfig, Value, WebhookConfig,
};
use rand::Rng;
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::json;

use super::{
    READER, WEBHOOKS, Webhook,
    channels::{Channel, Config},
    signature,
    store::{self, Delivery, End, New},
};
use crate::{
    app::App,
    clock,
    db::{Record, Tx},
    error::{ApiError, Result},
    mail::Letter,
    v1::{
        events::{self, EventRow},
        notifications::{self, Notice},
    },
};

/// Seconds before each further attempt; after the last one the webhook is paused.
const PAUSES: [i64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];

/// How often the feed and the deliveries are looked at.
const ROUND: Duration = Duration::from_millis(250);

/// Events that become deliveries in one transaction.
const EVENTS: i64 = 200;

/// Senders of a process, and deliveries that each has under way at once: a receiver that hangs holds up one of them.
const SENDERS: usize = 4;
const TOGETHER: usize = 8;

/// Longer than any attempt: who holds a delivery longer is dead.
const HELD: i64 = 60_000_000;

/// Days that deliveries are kept.
const KEPT_DAYS: i64 = 30;

/// Largest answer that is read, and what of it is kept.
const ANSWER: u64 = 65_536;
const TOLD: usize = 500;

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
    for _ in 0..SENDERS {
        let sender = app.clone();
        app.spawn(async move {
            while !sender.leaving.is_cancelled() {
                // There may be more than fit into one round.
                let more = match deliver(&sender).await {
                    Ok(sent) => sent > 0,
                    Err(error) => {
                        tracing::warn!(%error, "webhooks could not be delivered");
                        false
                    }
                };
                if !more {
                    pause(&sender).await;
                }
            }
        });
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
    for (org_id, mut seen) in READER.behind(app.db()).await? {
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
            .filter(|webhook| webhook.wants(&event.event_type))
        {
            for channel in 0..webhook.channels.len() {
                new.push(New {
                    delivery_id: format!("msg_{}_{}_{channel}", &webhook.id[3..], event.seq),
                    webhook_id: webhook.id.clone(),
                    channel: i64::try_from(channel).unwrap_or(0),
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

/// Sends what is due, and answers how many attempts that were.
///
/// # Errors
/// The database does not answer.
pub async fn deliver(app: &App) -> Result<usize> {
    let now = app.clock().micros();
    if store::count_due(app.db(), now).await? == 0 {
        return Ok(0);
    }
    let most = i64::try_from(TOGETHER).unwrap_or(i64::MAX);
    let claimed = app
        .db()
        .write(move |tx| Box::pin(async move { store::claim(tx, now, now + HELD, most).await }))
        .await?;
    let count = claimed.len();
    let mut ends = stream::iter(claimed)
        .map(|delivery| attempt(app, delivery))
        .buffer_unordered(TOGETHER);
    while let Some(end) = ends.next().await {
        end?;
    }
    Ok(count)
}

/// How one attempt went.
#[derive(Debug)]
pub enum Outcome {
    Delivered(StatusCode),
    /// May go better later.
    Failed(i64, String),
    /// Will not: the receiver is gone, or may not be reached.
    Over(i64, String),
    /// Nothing is there to send it with.
    Unset(String),
}

async fn attempt(app: &App, delivery: Delivery) -> Result<()> {
    let sent = tokio::select! {
        sent = send(app, &delivery) => sent,
        // Whoever goes on sends it again once it is held no longer.
        () = app.leaving.cancelled() => return Ok(()),
    };
    let outcome = match sent {
        Ok(Some(outcome)) => outcome,
        // Removed or paused meanwhile, or the event is out of retention.
        Ok(None) => Outcome::Failed(0, "there is nothing to send any more".into()),
        Err(error) => Outcome::Failed(0, error.message()),
    };
    let now = app.clock().micros();
    app.db()
        .write(move |tx| Box::pin(async move { end(tx, &delivery, outcome, now).await }))
        .await
}

async fn send(app: &App, delivery: &Delivery) -> Result<Option<Outcome>> {
    let org_id = &delivery.org_id;
    let webhook = WEBHOOKS
        .find(app.db(), org_id, &delivery.webhook_id)
        .await?;
    let events = events::list(app.db(), org_id, delivery.seq - 1, "", "", 1).await?;
    let channel = usize::try_from(delivery.channel).unwrap_or(usize::MAX);
    let (Some(kept), Some(event)) = (webhook.channels.get(channel), events.into_iter().next())
    else {
        return Ok(None);
    };
    if event.seq != delivery.seq {
        return Ok(None);
    }
    let channel = kept.open(app, org_id, &webhook.id)?;
    let body = body(org_id, event);
    post(app, &channel, &delivery.delivery_id, body)
        .await
        .map(Some)
}

/// Sends one message to one channel, once.
///
/// # Errors
/// A template of the channel that cannot be rendered.
pub async fn post(app: &App, channel: &Channel, id: &str, body: Object) -> Result<Outcome> {
    let now = app.clock().micros();
    let ask = match &channel.config {
        Config::Webhook(config) => signed(config, channel, id, body, now)?,
        Config::Chat(config) => chat(config, body, now)?,
        Config::Email(config) => return letter(app, config, body, now).await,
    };
    Ok(match app.outbound().ask(ask).await {
        Ok(answer) => judge(&answer),
        Err(error) if error.is_transient() => Outcome::Failed(0, error.to_string()),
        Err(error) => Outcome::Over(0, error.to_string()),
    })
}

/// An e-mail, through the mail server that is configured.
async fn letter(
    app: &App,
    config: &NotificationEmailConfig,
    body: Object,
    now: i64,
) -> Result<Outcome> {
    let Some(mailer) = app.mailer() else {
        let why = "this server sends no e-mail: it has no mail server configured";
        return Ok(Outcome::Unset(why.into()));
    };
    let context = template::Context::new(&body, clock::time(now));
    let render = |template: &Option<String>, default: String| match template {
        None => Ok(default),
        Some(template) => template::render_text(template, &context)
            .map_err(|error| ApiError::bad_request("invalid_template", error.to_string())),
    };
    let pretty = serde_json::to_string_pretty(&body).map_err(ApiError::internal)?;
    let letter = Letter {
        to: &config.to_addresses,
        cc: &config.cc_addresses,
        bcc: &config.bcc_addresses,
        subject: render(&config.subject_template, line(&body))?,
        text: render(
            &config.body_template,
            format!("{}\n\n{pretty}\n", line(&body)),
        )?,
        html: config.content_type == Some(NotificationContentType::Html),
    };
    Ok(match mailer.send(letter).await {
        Ok(()) => Outcome::Delivered(StatusCode::OK),
        Err(error) if error.is_transient => Outcome::Failed(0, error.message),
        Err(error) => Outcome::Over(0, error.message),
    })
}

fn judge(answer: &Answer) -> Outcome {
    let status = i64::from(answer.status.as_u16());
    if answer.status.is_success() {
        return Outcome::Delivered(answer.status);
    }
    let said = String::from_utf8_lossy(&answer.body);
    let said: String = said.chars().take(TOLD).collect();
    let why = format!("the receiver answered {}: {said}", answer.status);
    if answer.status == StatusCode::GONE {
        Outcome::Over(status, why)
    } else {
        Outcome::Failed(status, why)
    }
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

fn signed(
    config: &WebhookConfig,
    channel: &Channel,
    id: &str,
    body: Object,
    now: i64,
) -> Result<Ask> {
    let body = match &config.payload_template {
        None => Value::Object(body),
        Some(template) => {
            let context = template::Context::new(&body, clock::time(now));
            template::render_value(&Value::Object(template.clone()), &context)
                .map_err(|error| ApiError::bad_request("invalid_template", error.to_string()))?
        }
    };
    let body = serde_json::to_vec(&body).map_err(ApiError::internal)?;
    let seconds = now / 1_000_000;
    let mut headers = headers(&config.headers);
    headers.extend(signature::headers(
        &channel.secrets(seconds),
        id,
        seconds,
        &body,
    ));
    Ok(Ask {
        headers,
        timeout: Duration::from_secs_f64(config.timeout.clamp(0.1, 30.0)),
        max_bytes: ANSWER,
        ..Ask::call(Method::POST, &config.url, body)
    })
}

fn headers<'h>(own: impl IntoIterator<Item = (&'h String, &'h String)>) -> HeaderMap {
    let own = own.into_iter().filter_map(|(name, value)| {
        Some((
            name.parse::<HeaderName>().ok()?,
            HeaderValue::from_str(value).ok()?,
        ))
    });
    let mut headers: HeaderMap = own.collect();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers
}

/// A message to a chat, in the form that incoming webhooks of chats take.
fn chat(config: &SlackConfig, body: Object, now: i64) -> Result<Ask> {
    let mut message = match &config.blocks_template {
        Some(template) => {
            let context = template::Context::new(&body, clock::time(now));
            let text = template::render_text(template, &context)
                .map_err(|error| ApiError::bad_request("invalid_template", error.to_string()))?;
            match serde_json::from_str(&text) {
                Ok(Value::Object(message)) => message,
                Ok(blocks @ Value::Array(_)) => {
                    [("blocks".to_owned(), blocks)].into_iter().collect()
                }
                _ => [("text".to_owned(), text.into())].into_iter().collect(),
            }
        }
        None => [("text".to_owned(), line(&body).into())]
            .into_iter()
            .collect(),
    };
    for (name, value) in [
        ("channel", &config.channel),
        ("username", &config.username),
        ("icon_emoji", &config.icon_emoji),
        ("icon_url", &config.icon_url),
    ] {
        if let Some(value) = value {
            message.insert(name.into(), value.as_str().into());
        }
    }
    let body = serde_json::to_vec(&message).map_err(ApiError::internal)?;
    Ok(Ask {
        headers: headers(None),
        timeout: Duration::from_secs(10),
        max_bytes: ANSWER,
        ..Ask::call(Method::POST, &config.webhook_url, body)
    })
}

/// A message in one line: what it says itself, or the event's type and the ids that it names.
fn line(body: &Object) -> String {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if !text("text").is_empty() {
        return text("text").to_owned();
    }
    let mut line = text("event_type").to_owned();
    if let Some(Value::Object(payload)) = body.get("payload") {
        for (name, value) in payload {
            if let (true, Some(value)) = (name.ends_with("_id"), value.as_str()) {
                line.push_str(&format!(" · {name} {value}"));
            }
        }
    }
    line
}

/// Writes down how an attempt ended, and what follows from it.
async fn end(tx: &mut Tx, delivery: &Delivery, outcome: Outcome, now: i64) -> Result<()> {
    let pause = usize::try_from(delivery.attempts - 1)
        .ok()
        .and_then(|attempt| PAUSES.get(attempt));
    let over = matches!(outcome, Outcome::Over(..) | Outcome::Unset(_));
    let (status, error) = match outcome {
        Outcome::Delivered(status) => {
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
            return Ok(());
        }
        Outcome::Failed(status, error) | Outcome::Over(status, error) => (status, error),
        Outcome::Unset(error) => (0, error),
    };
    let again = pause.filter(|_| !over);
    let end = End {
        status: if again.is_some() { "pending" } else { "failed" },
        due_at: now + again.map_or(0, |seconds| with_jitter(*seconds)),
        last_status: status,
        last_error: error.clone(),
        ended_at: if again.is_some() { 0 } else { now },
    };
    if !store::finish(tx, delivery, &end).await? {
        return Ok(());
    }
    store::failed(tx, delivery, &error, now).await?;
    if again.is_none() {
        stop(tx, delivery, &error, now).await?;
    }
    Ok(())
}

/// Microseconds of a pause, 20 % more or less: receivers that come back are not met by everything at once.
fn with_jitter(seconds: i64) -> i64 {
    let range = seconds * 200_000;
    seconds * 1_000_000 + rand::rng().random_range(-range..=range)
}

/// Pauses a webhook whose receiver is gone, or took nothing for as long as the schedule lasts, and tells people.
async fn stop(tx: &mut Tx, delivery: &Delivery, why: &str, now: i64) -> Result<()> {
    let (org_id, id) = (&delivery.org_id, &delivery.webhook_id);
    let mut webhook = match WEBHOOKS.find_in(tx, org_id, id).await {
        Ok(found) if found.is_active => found.data.0,
        // Removed or paused already.
        Ok(_) => return Ok(()),
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    webhook.is_active = false;
    let name = webhook.webhook_name.clone();
    WEBHOOKS
        .update(tx, org_id, id, &name, now, &webhook)
        .await?;
    store::pause(tx, org_id, id, why).await?;
    let notice = Notice {
        kind: NotificationType::SystemAlert,
        priority: NotificationPriority::High,
        title: format!("Webhook {name} was paused"),
        content: format!(
            "Its receiver could not be reached: {why}. Set it active again when the receiver is back; what failed can be sent once more from its log."
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
