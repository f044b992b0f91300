//! Webhooks: events of the change feed sent to receivers of the organization, signed, tried again on a schedule, and kept
//! in a log that can be replayed.

mod channels;
mod courier;
mod health;
mod message;
mod replacing;
mod routes;
mod signature;
mod store;
pub mod trial;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use loupe_wire::{
    AuditAction, ChannelTestResponse, ListWebhooksRequest, NamespaceOperation, Object,
    ResourceType, WebhookDeliveryLog, WebhookDeliveryLogResponse, WebhookEventType, WebhookInput,
    WebhookOutput,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use channels::Channel;
pub use courier::{dispatch, start, sweep};
pub use message::{Outcome, post};
pub use replacing::replace;
pub use routes::router;

use self::{
    channels::Kept,
    trial::{Receiver, Trial},
};
use super::{
    audit::{self, Change},
    events::Reader,
    tasks,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
    list::{ListParams, Page},
};

/// What reads the change feed for webhooks.
const READER: Reader = Reader("webhooks");

/// Webhooks of one organization.
const MOST: i64 = 50;

/// A webhook as the database has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Webhook {
    webhook_id: String,
    webhook_name: String,
    event_types: Vec<WebhookEventType>,
    resource_types: Vec<String>,
    channels: Vec<Kept>,
    /// Keys that its channels were given so far: none is given twice.
    #[serde(default)]
    keys_given: i64,
    is_active: bool,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

crate::table!(pub static WEBHOOKS: Webhook = "webhooks", "webhook");

impl Webhook {
    /// Whether it is for this event. Its resource types, where it names some, are what the event is about.
    fn wants(&self, event_type: &str, payload: &Object) -> bool {
        let named = payload.get("resource_type").and_then(Value::as_str);
        let is_of = |kind: &String| is_about(event_type, kind, named == Some(kind.as_str()));
        self.is_active
            && self
                .event_types
                .iter()
                .any(|wanted| name_of(*wanted) == event_type)
            && (self.resource_types.is_empty() || self.resource_types.iter().any(is_of))
    }

    /// What deliveries know its channels by, in the order of these.
    fn keys(&self) -> impl Iterator<Item = i64> {
        let numbered = (0..).zip(&self.channels);
        numbered.map(|(place, kept)| kept.key.unwrap_or(place))
    }

    /// Where the channel of a key stands; nowhere once it is removed.
    fn place_of(&self, key: i64) -> Option<usize> {
        self.keys().position(|one| one == key)
    }

    /// The key of the next channel that it gets.
    fn next_key(&self) -> i64 {
        let held = i64::try_from(self.channels.len()).unwrap_or(0);
        self.keys_given.max(held)
    }

    /// As the interface has it; signing secrets only where they are `told`.
    fn view(
        self,
        app: &App,
        org_id: &str,
        health: &[store::Health],
        told: bool,
    ) -> Result<WebhookOutput> {
        let delivery_health = health::told(&self, health);
        let open = |kept: &Kept| kept.open(app, org_id, &self.webhook_id)?.view(told);
        Ok(WebhookOutput {
            channels: self.channels.iter().map(open).collect::<Result<_>>()?,
            webhook_id: Some(self.webhook_id),
            webhook_name: self.webhook_name,
            event_types: self.event_types,
            resource_types: self.resource_types,
            is_active: self.is_active,
            delivery_health,
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
        })
    }
}

fn name_of(event_type: WebhookEventType) -> String {
    match serde_json::to_value(event_type) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Whether an event is about resources of a kind: by its first word, which may be of several (`objects.created.batch`), or by
/// its payload where anything may have been executed.
fn is_about(event_type: &str, kind: &str, is_named: bool) -> bool {
    match event_type.split('.').next().unwrap_or_default() {
        "resource" if is_named => true,
        first => first == kind || first.strip_suffix('s') == Some(kind),
    }
}

/// A type of resource that none of the events is about would silence the webhook without a word.
fn check_resources(request: &WebhookInput) -> Result<()> {
    let types = request.event_types.iter().map(|one| name_of(*one));
    let types: Vec<String> = types.collect();
    for (number, kind) in request.resource_types.iter().enumerate() {
        let is_of = |one: &String| is_about(one, kind, true);
        if !types.iter().any(is_of) {
            let msg = "none of the event types begins with this word";
            let path = ["resource_types", &number.to_string()];
            return Err(Violation::body(&path, "value_error", msg, kind.as_str().into()).into());
        }
    }
    Ok(())
}

/// Keeps a new webhook, and answers its signing secrets: this once.
pub async fn create(app: &App, caller: &Caller, request: WebhookInput) -> Result<WebhookOutput> {
    let org_id = caller.org_id.clone();
    // The pattern of the interface wants hexadecimal digits.
    let webhook_id = format!("wh_{}", hex::encode(rand::random::<[u8; 8]>()));
    allow(caller, &webhook_id)?;
    check_resources(&request)?;
    let channels = request.channels.into_iter().zip(0..);
    let channels: Vec<Kept> = channels
        .map(|(sent, key)| {
            let number = usize::try_from(key).unwrap_or(usize::MAX);
            Channel::read(app, sent, number)?.seal(app, (&org_id, &webhook_id), key)
        })
        .collect::<Result<_>>()?;
    let now = app.clock().micros();
    let webhook = Webhook {
        webhook_id,
        webhook_name: request.webhook_name,
        event_types: request.event_types,
        resource_types: request.resource_types,
        keys_given: i64::try_from(channels.len()).unwrap_or(0),
        channels,
        is_active: request.is_active,
        created_at: clock::time(now),
        updated_at: clock::time(now),
    };
    let (kept, by) = (webhook.clone(), caller.clone());
    app.db()
        .write(move |tx| Box::pin(async move { insert(tx, &by, &kept, now).await }))
        .await?;
    webhook.view(app, &org_id, &[], true)
}

async fn insert(tx: &mut Tx, caller: &Caller, webhook: &Webhook, now: i64) -> Result<()> {
    let org_id = &caller.org_id;
    let held = WEBHOOKS.count_in(tx, org_id).await?;
    if held >= MOST {
        let message = format!("an organization has at most {MOST} webhooks: remove one first");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    let (id, name) = (&webhook.webhook_id, &webhook.webhook_name);
    WEBHOOKS.insert(tx, org_id, id, name, now, webhook).await?;
    READER.ensure(tx, org_id).await?;
    let changes = audited(webhook);
    let what = (AuditAction::WebhookCreated, id.as_str());
    record(tx, caller, what, changes, now).await
}

/// What the audit log is told of a webhook: of its channels the kinds alone, for they hold secrets.
fn audited(webhook: &Webhook) -> Value {
    let channels: Vec<_> = webhook.channels.iter().map(|one| &one.channel).collect();
    json!({
        "webhook_name": webhook.webhook_name,
        "event_types": webhook.event_types,
        "resource_types": webhook.resource_types,
        "is_active": webhook.is_active,
        "channels": channels,
    })
}

async fn record(
    tx: &mut Tx,
    caller: &Caller,
    (action, id): (AuditAction, &str),
    changes: Value,
    now: i64,
) -> Result<()> {
    let change = Change {
        action,
        resource: (ResourceType::Webhook, id),
        changes,
    };
    audit::record(tx, caller, change, now).await
}

pub async fn list(
    app: &App,
    caller: &Caller,
    params: &ListParams,
    request: ListWebhooksRequest,
) -> Result<(Page<Webhook>, Vec<WebhookOutput>)> {
    let records = WEBHOOKS.all(app.db(), &caller.org_id).await?;
    let covered = |id: &str| caller.covers(ResourceType::Webhook, id, NamespaceOperation::ReadData);
    let wanted = |record: &Record<Webhook>| {
        covered(&record.id)
            && request
                .is_active
                .is_none_or(|active| active == record.is_active)
            && request.event_type.as_ref().is_none_or(|kind| {
                record
                    .event_types
                    .iter()
                    .any(|held| name_of(*held) == *kind)
            })
    };
    let kept = records.into_iter().filter(wanted);
    let mut page = Page::from_marked(kept.map(Record::marked).collect(), params)?;
    let mut health: HashMap<String, Vec<store::Health>> = HashMap::new();
    for one in store::health(app.db(), &caller.org_id).await? {
        health.entry(one.webhook_id.clone()).or_default().push(one);
    }
    let view = |webhook: Webhook| {
        let health = health.remove(&webhook.webhook_id).unwrap_or_default();
        webhook.view(app, &caller.org_id, &health, false)
    };
    let results = std::mem::take(&mut page.results);
    let views = results.into_iter().map(view).collect::<Result<_>>()?;
    Ok((page, views))
}

pub async fn get(app: &App, caller: &Caller, identifier: &str) -> Result<WebhookOutput> {
    let record = find(app, caller, identifier, NamespaceOperation::ReadData).await?;
    let health = store::health_of(app.db(), &caller.org_id, &record.id).await?;
    record.data.0.view(app, &caller.org_id, &health, false)
}

async fn find(
    app: &App,
    caller: &Caller,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<Record<Webhook>> {
    let record = WEBHOOKS.find(app.db(), &caller.org_id, identifier).await?;
    caller.allow(ResourceType::Webhook, &record.id, operation)?;
    Ok(record)
}

/// The channels of a webhook that messages go to which are not of the feed, with their keys: none where it is removed or paused.
///
/// # Errors
/// The database does not answer.
pub async fn channels_of(app: &App, org_id: &str, webhook_id: &str) -> Result<Vec<(i64, Channel)>> {
    let record = match WEBHOOKS.find(app.db(), org_id, webhook_id).await {
        Ok(record) if record.is_active => record,
        Ok(_) => return Ok(Vec::new()),
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let channels = record.keys().zip(&record.channels);
    let sending = channels.filter(|(_, kept)| !kept.is_paused);
    let open = |(key, kept): (i64, &Kept)| Ok((key, kept.open(app, org_id, &record.id)?));
    sending.map(open).collect()
}

/// The channel of an active webhook that sends to this address.
///
/// # Errors
/// The database does not answer.
pub async fn channel_to(app: &App, org_id: &str, url: &str) -> Result<Option<Channel>> {
    let webhooks = WEBHOOKS.all(app.db(), org_id).await?;
    for webhook in webhooks.iter().filter(|webhook| webhook.is_active) {
        for kept in &webhook.channels {
            let channel = kept.open(app, org_id, &webhook.id)?;
            if channel.url() == Some(url) {
                return Ok(Some(channel));
            }
        }
    }
    Ok(None)
}

/// Removes a webhook with its log; what waits is not sent.
pub async fn delete(app: &App, caller: &Caller, identifier: &str) -> Result<()> {
    let found = find(
        app,
        caller,
        identifier,
        NamespaceOperation::ManagePermissions,
    )
    .await?;
    let (by, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let (org_id, id) = (&by.org_id, &found.id);
                WEBHOOKS.delete(tx, org_id, id).await?;
                store::forget(tx, org_id, id).await?;
                if WEBHOOKS.count_in(tx, org_id).await? == 0 {
                    READER.stop(tx, org_id).await?;
                }
                let what = (AuditAction::WebhookDeleted, id.as_str());
                record(tx, &by, what, audited(&found.data.0), now).await
            })
        })
        .await
}

/// What was sent, newest first.
pub async fn deliveries(
    app: &App,
    caller: &Caller,
    identifier: &str,
    status: &str,
    params: &ListParams,
) -> Result<WebhookDeliveryLogResponse> {
    let webhook = find(app, caller, identifier, NamespaceOperation::ReadData).await?;
    let (org_id, id) = (&caller.org_id, &webhook.id);
    let rows = store::list(app.db(), org_id, id, status, params.window()).await?;
    let total = store::count(app.db(), org_id, id, status).await?;
    let marked = |row: store::Delivery| {
        let mark = (row.created_at, row.delivery_id.clone());
        (logged(&webhook, row), mark)
    };
    let rows = rows.into_iter().map(marked).collect();
    let page = Page::from_window(rows, params, params.include_total.then_some(total));
    Ok(WebhookDeliveryLogResponse {
        results: page.results,
        pagination: page.pagination,
        total,
    })
}

/// Sends a delivery once more, under the id it had.
pub async fn replay(
    app: &App,
    caller: &Caller,
    identifier: &str,
    delivery_id: &str,
) -> Result<WebhookDeliveryLog> {
    let webhook = find(
        app,
        caller,
        identifier,
        NamespaceOperation::ManagePermissions,
    )
    .await?;
    let (org_id, now) = (caller.org_id.clone(), app.clock().micros());
    let (id, delivery_id) = (webhook.id.clone(), delivery_id.to_owned());
    let again = app
        .db()
        .write(move |tx| {
            Box::pin(async move { store::replay(tx, &org_id, &id, &delivery_id, now).await })
        })
        .await?;
    Ok(logged(&webhook, again))
}

/// Sends a test through every channel, also while the webhook is paused: whether its receiver is back is what people want
/// to know.
pub async fn test(app: &App, caller: &Caller, identifier: &str) -> Result<ChannelTestResponse> {
    let operation = NamespaceOperation::ManagePermissions;
    let webhook = find(app, caller, identifier, operation).await?;
    let of_channel = |(number, kept): (usize, &Kept)| -> Result<Trial> {
        let channel = kept.open(app, &caller.org_id, &webhook.id)?;
        Ok(Trial {
            number,
            channel_type: tasks::name_of(kept.channel),
            receiver: Receiver::Channel(Box::new(channel)),
        })
    };
    let channels = webhook.channels.iter().enumerate();
    let trials = channels.map(of_channel).collect::<Result<Vec<_>>>()?;
    let of = (
        caller.org_id.as_str(),
        webhook.id.as_str(),
        webhook.webhook_name.as_str(),
    );
    trial::run(app, of, trials).await
}

fn logged(webhook: &Webhook, delivery: store::Delivery) -> WebhookDeliveryLog {
    let at = |micros: i64| (micros > 0).then(|| clock::time(micros));
    let waits = delivery.status == "pending";
    WebhookDeliveryLog {
        delivery_id: delivery.delivery_id,
        channel: webhook
            .place_of(delivery.channel)
            .and_then(|place| i64::try_from(place).ok()),
        seq: delivery.seq,
        event_type: delivery.event_type,
        status: delivery.status,
        attempts: delivery.attempts,
        response_status: (delivery.last_status > 0).then_some(delivery.last_status),
        error: (!delivery.last_error.is_empty()).then_some(delivery.last_error),
        created_at: clock::time(delivery.created_at),
        next_attempt_at: waits.then(|| clock::time(delivery.due_at)),
        ended_at: at(delivery.ended_at),
    }
}

fn allow(caller: &Caller, id: &str) -> Result<()> {
    caller.allow(
        ResourceType::Webhook,
        id,
        NamespaceOperation::ManagePermissions,
    )
}
