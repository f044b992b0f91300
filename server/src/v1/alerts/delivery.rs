//! Sending: each channel of an alert that fired is tried until it is delivered, cannot be, or was tried often enough. How
//! each went is written to the execution.

use axum::http::StatusCode;
use futures::{StreamExt, stream::FuturesUnordered};
use loupe_wire::{
    AlertChannelDelivery, AlertExecutionResult, AlertNotificationConfig, ChannelTestResponse,
    CreateBatchRequest, DedupStrategy, NamespaceOperation, NotificationChannelConfig, Object,
    Value, reading,
};
use serde_json::json;

use super::{
    Alert,
    channels::{self, Kind},
    store::{self, ALERTS},
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    front,
    jobs::{Claim, text},
    v1::{
        batches,
        webhooks::{
            self, Channel, Outcome,
            trial::{self, Receiver, Trial},
        },
    },
};

/// The queue's word for what an alert has to send.
pub const DELIVER: &str = "alert_delivery";

/// The member of its work that has what was taken.
const TAKEN: &str = "taken";

/// The member of its work that has the channels as they were when the alert fired.
pub(super) const CHANNELS: &str = "channels";

/// The channels of an alert, and what they are set to, encrypted.
type Kept = Vec<(NotificationChannelConfig, String)>;

/// The channels that an alert fires through.
pub(super) fn kept(alert: &Alert) -> Kept {
    let channels = alert.alert.notification_config.channels.iter().cloned();
    channels.zip(alert.sealed.iter().cloned()).collect()
}

/// Whether documents are processed when the alert fires.
pub(super) fn processes(alert: &Alert) -> bool {
    let mut channels = alert.alert.notification_config.channels.iter();
    channels.any(|channel| Kind::read(&channel.channel_type) == Some(Kind::Batch))
}

/// Sends what was not delivered yet.
///
/// # Errors
/// A channel may take it later: the queue tries again.
pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let owner = text(claim, "owner");
    let Some((alert, mut execution)) = read(app, claim).await? else {
        return Ok(());
    };
    let (mut later, mut taken) = (None, taken_of(claim));
    let deferred = |number: &usize| execution.deliveries[*number].status == "deferred";
    let waiting: Vec<usize> = (0..execution.deliveries.len()).filter(deferred).collect();
    // All at once: a receiver that hangs holds up none of the others.
    let (found, before) = (execution.clone(), taken.clone());
    let mut sends: FuturesUnordered<_> = waiting
        .into_iter()
        .map(|number| send(app, &alert, &found, number, claim, before.clone()))
        .collect();
    while let Some((number, sent, took)) = sends.next().await {
        let (status, error) = match sent {
            Ok(Outcome::Delivered(_)) => ("delivered", None),
            Ok(Outcome::Failed(_, why)) => ("deferred", Some(why)),
            Ok(Outcome::Over(_, why)) => ("failed", Some(why)),
            Ok(Outcome::Unset(why)) => ("not_configured", Some(why)),
            Err(error) => ("deferred", Some(error.message())),
        };
        if status == "deferred" {
            later.clone_from(&error);
        }
        taken.extend(took);
        let delivery = &mut execution.deliveries[number];
        delivery.status = status.into();
        delivery.error = error;
        // At once: what is delivered is not sent again by whoever goes on after the death of this process.
        keep(app, owner, &execution, Some((claim, taken.as_slice()))).await?;
    }
    match later {
        Some(why) => {
            let message = format!("an alert could not be delivered: {why}");
            Err(ApiError::unavailable("", message))
        }
        None => Ok(()),
    }
}

/// The alert and what it found; none if it was removed meanwhile.
async fn read(app: &App, claim: &Claim) -> Result<Option<(Alert, AlertExecutionResult)>> {
    let owner = text(claim, "owner");
    let alert = ALERTS.find(app.db(), owner, text(claim, "alert_id")).await;
    let execution = store::find(app.db(), owner, text(claim, "execution_id")).await;
    match (alert, execution) {
        (Ok(alert), Ok(execution)) => Ok(Some((alert.data.0, execution))),
        (Err(error), _) | (_, Err(error)) if error.is_not_found() => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Messages that a receiver of a webhook has taken already: when another of its receivers is tried again, it is not.
fn taken_of(claim: &Claim) -> Vec<String> {
    let taken = claim.work.get(TAKEN).and_then(Value::as_array);
    let texts = taken.into_iter().flatten().filter_map(Value::as_str);
    texts.map(ToOwned::to_owned).collect()
}

/// Writes down how it went so far, and what was taken while the task is under way.
async fn keep(
    app: &App,
    owner: &str,
    execution: &AlertExecutionResult,
    task: Option<(&Claim, &[String])>,
) -> Result<()> {
    let (owner, execution) = (owner.to_owned(), execution.clone());
    let task = task
        .filter(|(_, taken)| !taken.is_empty())
        .map(|(claim, taken)| {
            let mut work = claim.work.clone();
            work[TAKEN] = json!(taken);
            (claim.org_id.clone(), claim.task_id.clone(), work)
        });
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if let Some((org_id, task_id, work)) = task {
                    store::keep_work(tx, &org_id, &task_id, &work).await?;
                }
                store::change(tx, &owner, &execution).await
            })
        })
        .await
}

/// What was tried often enough failed.
pub(super) async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let Some((_, mut execution)) = read(app, claim).await? else {
        return Ok(());
    };
    let waiting = execution
        .deliveries
        .iter_mut()
        .filter(|delivery| delivery.status == "deferred");
    for AlertChannelDelivery { status, error, .. } in waiting {
        *status = "failed".into();
        error.get_or_insert_with(|| reason.to_owned());
    }
    keep(app, text(claim, "owner"), &execution, None).await
}

/// Sends through one channel; answers what came of it, and messages that receivers of a webhook took just now.
async fn send(
    app: &App,
    alert: &Alert,
    execution: &AlertExecutionResult,
    number: usize,
    claim: &Claim,
    mut taken: Vec<String>,
) -> (usize, Result<Outcome>, Vec<String>) {
    let known = taken.len();
    let sent = send_through(app, alert, execution, number, claim, &mut taken).await;
    (number, sent, taken.split_off(known))
}

async fn send_through(
    app: &App,
    alert: &Alert,
    execution: &AlertExecutionResult,
    number: usize,
    claim: &Claim,
    taken: &mut Vec<String>,
) -> Result<Outcome> {
    let config = &alert.alert.notification_config;
    let place = place_of(app, alert, claim, number)?;
    let found = place.and_then(|at| Some((config.channels.get(at)?, alert.sealed.get(at)?)));
    let Some((channel, sealed)) = found else {
        return Ok(Outcome::Over(0, "the channel was removed".into()));
    };
    let names = (alert.org_id.as_str(), alert.id());
    let settings = channels::open(app, names, sealed)?;
    let id = execution.execution_id.as_deref().unwrap_or_default();
    let message = (format!("{id}_{number}"), body(alert, execution, claim));
    match Kind::read(&channel.channel_type) {
        Some(Kind::Batch) => process(app, alert, execution, &settings).await,
        Some(Kind::Message(kind)) => {
            if let Some(webhook_id) = subscription(channel, &settings) {
                return post_to(app, &alert.org_id, webhook_id, message, taken).await;
            }
            match Channel::plain(kind, settings.into()) {
                Ok(channel) => post(app, &channel, message).await,
                Err(why) => Ok(Outcome::Unset(lacking(&why))),
            }
        }
        None => Ok(Outcome::Over(0, "this version has no such channel".into())),
    }
}

/// Where the channel stands by now that the alert fired through: the same one, wherever it is; what it was changed into, where as
/// many stand as before and nothing else stands in its place; nowhere once it was removed.
fn place_of(app: &App, alert: &Alert, claim: &Claim, number: usize) -> Result<Option<usize>> {
    let then: Kept = (claim.work.get(CHANNELS))
        .and_then(|kept| reading::from_value(kept).ok())
        .unwrap_or_default();
    let now = kept(alert);
    let Some(meant) = then
        .get(number)
        .filter(|meant| now.get(number) != Some(meant))
    else {
        return Ok(Some(number));
    };
    for (at, channel) in now.iter().enumerate() {
        if is_same(app, alert, meant, channel)? {
            return Ok(Some(at));
        }
    }
    let Some(here) = now.get(number).filter(|_| now.len() == then.len()) else {
        return Ok(None);
    };
    for channel in &then {
        if is_same(app, alert, channel, here)? {
            return Ok(None);
        }
    }
    Ok(Some(number))
}

/// Whether two channels of an alert are set to the same, however that is sealed.
fn is_same(
    app: &App,
    alert: &Alert,
    (one, sealed): &(NotificationChannelConfig, String),
    (other, others): &(NotificationChannelConfig, String),
) -> Result<bool> {
    let names = (alert.org_id.as_str(), alert.id());
    let is_like = (&one.channel_type, &one.channel_id) == (&other.channel_type, &other.channel_id);
    Ok(is_like && channels::open(app, names, sealed)? == channels::open(app, names, others)?)
}

/// Sends a test through every channel of an alert.
///
/// # Errors
/// As of [`trial::run`].
pub(super) async fn test(app: &App, alert: &Alert) -> Result<ChannelTestResponse> {
    let channels = &alert.alert.notification_config.channels;
    let mut trials = Vec::new();
    for (number, (channel, sealed)) in channels.iter().zip(&alert.sealed).enumerate() {
        for receiver in receivers(app, alert, channel, sealed).await? {
            trials.push(Trial {
                number,
                channel_type: channel.channel_type.clone(),
                receiver,
            });
        }
    }
    let of = (alert.org_id.as_str(), alert.id(), alert.alert.name.as_str());
    trial::run(app, of, trials).await
}

/// What a message through a channel goes to.
async fn receivers(
    app: &App,
    alert: &Alert,
    channel: &NotificationChannelConfig,
    sealed: &str,
) -> Result<Vec<Receiver>> {
    let Some(Kind::Message(kind)) = Kind::read(&channel.channel_type) else {
        let why = "documents are processed when the alert fires: there is no message to send";
        return Ok(vec![Receiver::Skipped(why.into())]);
    };
    let settings = channels::open(app, (&alert.org_id, alert.id()), sealed)?;
    if let Some(webhook_id) = subscription(channel, &settings) {
        let found = webhooks::channels_of(app, &alert.org_id, webhook_id).await?;
        if found.is_empty() {
            return Ok(vec![Receiver::Unset(no_webhook(webhook_id))]);
        }
        let found = found.into_iter().map(|(_, channel)| Box::new(channel));
        return Ok(found.map(Receiver::Channel).collect());
    }
    Ok(vec![match Channel::plain(kind, settings.into()) {
        Ok(channel) => Receiver::Channel(Box::new(channel)),
        Err(why) => Receiver::Unset(lacking(&why)),
    }])
}

fn no_webhook(id: &str) -> String {
    format!("{id} is no active webhook of this organization")
}

fn lacking(why: &str) -> String {
    format!("the channel lacks settings: {why}")
}

/// The webhook of the organization that a channel names in place of an address of its own.
pub(super) fn subscription<'a>(
    channel: &'a NotificationChannelConfig,
    settings: &'a Object,
) -> Option<&'a str> {
    let named = settings.get("channel_id").and_then(Value::as_str);
    let is_address = |name: &&str| match settings.get(*name) {
        Some(Value::String(address)) => !address.is_empty(),
        Some(Value::Array(addresses)) => !addresses.is_empty(),
        _ => false,
    };
    let has_address = ["url", "webhook_url", "to_addresses"]
        .iter()
        .any(is_address);
    channel
        .channel_id
        .as_deref()
        .or(named)
        .filter(|_| !has_address)
}

/// A template of the channel that cannot be rendered will not be later.
async fn post(app: &App, channel: &Channel, (id, body): (String, Object)) -> Result<Outcome> {
    match webhooks::post(app, channel, &id, body).await {
        Err(error) if error.is_callers() => Ok(Outcome::Over(0, error.message())),
        sent => sent,
    }
}

/// Through every channel of a webhook that has not taken it; what may go better later counts before what will not.
async fn post_to(
    app: &App,
    org_id: &str,
    webhook_id: &str,
    (id, body): (String, Object),
    taken: &mut Vec<String>,
) -> Result<Outcome> {
    let channels = webhooks::channels_of(app, org_id, webhook_id).await?;
    let mut worst = None;
    for (key, channel) in &channels {
        let id = format!("{id}_{key}");
        let outcome = match taken.contains(&id) {
            true => Outcome::Delivered(StatusCode::OK),
            false => post(app, channel, (id.clone(), body.clone())).await?,
        };
        if matches!(outcome, Outcome::Delivered(_)) && !taken.contains(&id) {
            taken.push(id);
        }
        if worst
            .as_ref()
            .is_none_or(|worst| rank(&outcome) > rank(worst))
        {
            worst = Some(outcome);
        }
    }
    Ok(worst.unwrap_or_else(|| Outcome::Unset(no_webhook(webhook_id))))
}

const fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Delivered(_) => 0,
        Outcome::Unset(_) => 1,
        Outcome::Over(..) => 2,
        Outcome::Failed(..) => 3,
    }
}

/// What receivers are told.
fn body(alert: &Alert, execution: &AlertExecutionResult, claim: &Claim) -> Object {
    let AlertNotificationConfig {
        include_matches,
        include_scores,
        ..
    } = alert.alert.notification_config;
    let matches: Vec<Value> = execution
        .matches
        .iter()
        .flatten()
        .filter(|_| include_matches)
        .map(|one| {
            let mut told = serde_json::to_value(one).unwrap_or_default();
            if let (false, Some(members)) = (include_scores, told.as_object_mut()) {
                members.remove("score");
                members.remove("matched_features");
            }
            told
        })
        .collect();
    let kept = |name: &str| claim.work.get(name).cloned().unwrap_or_default();
    let body = json!({
        "event_type": "alert.triggered",
        "text": text(claim, "text"),
        "alert_id": alert.id(),
        "alert_name": alert.alert.name,
        "execution_id": execution.execution_id,
        "occurred_at": execution.executed_at,
        "organization_id": alert.org_id,
        "namespace_id": alert.alert.namespace_id,
        "collection_id": execution.collection_id,
        "match_count": execution.match_count,
        "matches": matches,
        "source_documents": execution.source_documents,
        "resource_ids": kept("resource_ids"),
        "namespace_ids": kept("namespace_ids"),
    });
    match body {
        Value::Object(body) => body,
        _ => Object::new(),
    }
}

/// The channel that processes the objects of what was found into another collection.
async fn process(
    app: &App,
    alert: &Alert,
    execution: &AlertExecutionResult,
    settings: &Object,
) -> Result<Outcome> {
    let named = |name: &str| settings.get(name).and_then(Value::as_str);
    let (Some(bucket), Some(collection), Some(namespace_id)) = (
        named("bucket_id"),
        named("collection_id"),
        &alert.alert.namespace_id,
    ) else {
        let why = "a batch needs bucket_id and collection_id, and an alert of one namespace";
        return Ok(Outcome::Unset(why.into()));
    };
    let dedup: Option<DedupStrategy> = settings
        .get("dedup_strategy")
        .and_then(|sent| reading::from_value(sent).ok());
    let mut object_ids: Vec<String> = execution
        .matches
        .iter()
        .flatten()
        .filter_map(|one| one.asset_id.clone())
        .collect();
    object_ids.sort_unstable();
    object_ids.dedup();
    let scope: Scope<Write> =
        Scope::internal(Caller::system(&alert.org_id), namespace_id.to_owned());
    let bucket = match batches::bucket_id(app, &scope, bucket, NamespaceOperation::ExecuteJob).await
    {
        Ok(bucket) => bucket,
        Err(error) if error.is_callers() => return Ok(Outcome::Over(0, error.message())),
        Err(error) => return Err(error),
    };
    let object_ids = batches::store::known(app.db(), namespace_id, &bucket, &object_ids).await?;
    if object_ids.is_empty() {
        let why = "what was found was made from no object of the bucket";
        return Ok(Outcome::Over(0, why.into()));
    }
    let create = CreateBatchRequest {
        object_ids: Some(object_ids),
        collection_ids: Some(vec![collection.to_owned()]),
        dedup_strategy: dedup,
        auto_submit: Some(true),
        ..Default::default()
    };
    let cause = front::cause().then(alert.id());
    match front::caused(cause, batches::create(app, &scope, &bucket, create)).await {
        Ok(_) => Ok(Outcome::Delivered(StatusCode::OK)),
        Err(error) if error.is_callers() => Ok(Outcome::Over(0, error.message())),
        Err(error) => Err(error),
    }
}
