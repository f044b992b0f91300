//! A webhook that is put in the place of another: which of its channels go on, whatever their order, and which are new.

use loupe_wire::{
    AuditAction, NamespaceOperation, NotificationChannel, WebhookChannel, WebhookInput,
    WebhookOutput,
};

use super::{
    WEBHOOKS, Webhook, audited,
    channels::{self, Channel, Kept},
    check_resources, find, get, record, store,
};
use crate::{app::App, auth::Caller, clock, db::Tx, error::Result, v1::audit};

/// A channel that is sent, and whether with a signing secret.
type Sent = (Channel, bool);

/// Signing secrets that are told once, each with the place of its channel.
type Told = Vec<(usize, String)>;

/// Puts another webhook in its place: under its id, with its log. A channel goes on with the same address, or in the same place
/// with another one. A signing secret that is not sent stays; one that is changed signs alone after a day; one that a new
/// receiver was given is answered, this once. A paused webhook or channel that is set active sends again.
pub async fn replace(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: WebhookInput,
) -> Result<WebhookOutput> {
    let operation = NamespaceOperation::ManagePermissions;
    let id = find(app, caller, identifier, operation).await?.id;
    check_resources(&request)?;
    let read = |(place, sent): (usize, &WebhookChannel)| -> Result<Sent> {
        let sends_secret = channels::sends_secret(sent);
        Ok((Channel::read(app, sent.clone(), place)?, sends_secret))
    };
    let sent = request.channels.iter().enumerate();
    let sent = sent.map(read).collect::<Result<Vec<_>>>()?;
    let (of, by, kept_id) = (app.clone(), caller.clone(), id.clone());
    let told = app
        .db()
        .write(move |tx| {
            Box::pin(async move { put(&of, tx, &by, &kept_id, (request, sent)).await })
        })
        .await?;
    let mut answer = get(app, caller, &id).await?;
    for (place, secret) in told {
        if let Some(channel) = answer.channels.get_mut(place) {
            channel.configs["signing_secret"] = secret.into();
        }
    }
    Ok(answer)
}

async fn put(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: &str,
    (request, sent): (WebhookInput, Vec<Sent>),
) -> Result<Told> {
    let (org_id, now) = (&caller.org_id, app.clock().micros());
    let before = WEBHOOKS.hold(tx, org_id, id).await?.data.0;
    let (channels, told) = replaced(app, org_id, &before, sent, now)?;
    let given = channels.iter().filter_map(|kept| kept.key).max();
    let webhook = Webhook {
        webhook_id: before.webhook_id.clone(),
        webhook_name: request.webhook_name,
        event_types: request.event_types,
        resource_types: request.resource_types,
        channels,
        keys_given: before.next_key().max(given.map_or(0, |key| key + 1)),
        is_active: request.is_active,
        created_at: before.created_at,
        updated_at: clock::time(now),
    };
    let name = &webhook.webhook_name;
    WEBHOOKS.update(tx, org_id, id, name, now, &webhook).await?;
    if webhook.is_active {
        store::resume(tx, org_id, id).await?;
    }
    let removed = before.keys().filter(|key| webhook.place_of(*key).is_none());
    for key in removed {
        store::forget_channel(tx, org_id, id, key).await?;
    }
    let what = (AuditAction::WebhookUpdated, id);
    let changes = audit::difference(&audited(&before), &audited(&webhook));
    record(tx, caller, what, changes, now).await?;
    Ok(told)
}

/// The channels that take the place of a webhook's, and the secrets that new receivers were given.
fn replaced(
    app: &App,
    org_id: &str,
    before: &Webhook,
    sent: Vec<Sent>,
    now: i64,
) -> Result<(Vec<Kept>, Told)> {
    let of = (org_id, before.webhook_id.as_str());
    let open = |kept: &Kept| kept.open(app, of.0, of.1);
    let old: Vec<Channel> = before.channels.iter().map(open).collect::<Result<_>>()?;
    let keys: Vec<i64> = before.keys().collect();
    let sides: Vec<Side> = old.iter().map(Side::of).collect::<Result<_>>()?;
    let new_sides = sent.iter().map(|(channel, _)| Side::of(channel));
    let pairs = pair(&sides, &new_sides.collect::<Result<Vec<_>>>()?);
    let (mut kept, mut told, mut next) = (Vec::new(), Vec::new(), before.next_key());
    for (place, ((channel, sends_secret), at)) in sent.into_iter().zip(pairs).enumerate() {
        let goes_on = at.and_then(|at| Some((old.get(at)?.clone(), *keys.get(at)?)));
        let (channel, key) = match goes_on {
            Some((old, key)) => (channel.replacing(old, sends_secret, now), key),
            None => {
                let made = channel.secrets(now / 1_000_000).pop();
                told.extend(made.filter(|_| !sends_secret).map(|secret| (place, secret)));
                next += 1;
                (channel, next - 1)
            }
        };
        kept.push(channel.seal(app, of, key)?);
    }
    Ok((kept, told))
}

/// What channels are told apart by.
#[derive(Debug, PartialEq)]
struct Side {
    address: (NotificationChannel, String),
    /// All but its secret.
    settings: WebhookChannel,
}

impl Side {
    fn of(channel: &Channel) -> Result<Self> {
        Ok(Self {
            address: channel.address(),
            settings: channel.clone().view(false)?,
        })
    }
}

/// For each new channel the place of the old one that it goes on from: the one with the same settings, else with the same
/// address, the nearest where several have them; else the one in the same place, if its address was changed there: nobody gets
/// what another receiver has.
fn pair(old: &[Side], new: &[Side]) -> Vec<Option<usize>> {
    let mut pairs: Vec<Option<usize>> = vec![None; new.len()];
    let rules: [fn(&Side, &Side) -> bool; 2] = [Side::eq, |old, new| old.address == new.address];
    for rule in rules {
        for (place, new) in new.iter().enumerate() {
            let mut near = std::iter::once(place).chain(0..old.len());
            let goes_on = |at: &usize| {
                !pairs.contains(&Some(*at)) && old.get(*at).is_some_and(|old| rule(old, new))
            };
            if pairs.get(place).is_some_and(Option::is_none) {
                let found = near.find(goes_on);
                pairs[place] = found;
            }
        }
    }
    let is_among = |one: &Side, all: &[Side]| all.iter().any(|other| other.address == one.address);
    for (place, (old_one, new_one)) in old.iter().zip(new).enumerate() {
        let is_of_kind = old_one.address.0 == new_one.address.0;
        if is_of_kind && !is_among(old_one, new) && !is_among(new_one, old) {
            pairs[place] = Some(place);
        }
    }
    pairs
}
