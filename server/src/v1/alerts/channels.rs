//! Where an alert is told. What a channel is set to lies encrypted, and is shown with its secrets masked.

use loupe_wire::{NotificationChannel, NotificationChannelConfig, Object, Value, reading};

use crate::{
    app::App,
    error::{ApiError, Result, Violation},
    v1::webhooks::Channel,
};

/// Channels of one alert.
const MOST: usize = 10;

/// What a secret is shown as; sent back, it stays what it was.
const MASK: &str = "********";

/// Members that let whoever knows them speak for the organization.
const SECRETS: [&str; 3] = ["webhook_url", "signing_secret", "headers"];

/// The kinds of channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message(NotificationChannel),
    /// Documents that were found are processed further.
    Batch,
}

impl Kind {
    pub(super) fn read(channel_type: &str) -> Option<Self> {
        match channel_type {
            "webhook" => Some(Self::Message(NotificationChannel::Webhook)),
            "slack" => Some(Self::Message(NotificationChannel::Slack)),
            "email" => Some(Self::Message(NotificationChannel::Email)),
            "batch" => Some(Self::Batch),
            _ => None,
        }
    }
}

/// Channels as they are kept: what is shown of each, and what it is set to, encrypted.
type Kept<'k> = (&'k Vec<NotificationChannelConfig>, &'k Vec<String>);

/// Checks channels and encrypts what they are set to; what stays in `channels` may be shown. Masked members take what the
/// `old` channel that they were shown of has.
pub(super) fn seal(
    app: &App,
    names: (&str, &str),
    channels: &mut [NotificationChannelConfig],
    old: Option<Kept<'_>>,
) -> Result<Vec<String>> {
    if channels.len() > MOST {
        let msg = format!("an alert has at most {MOST} channels");
        let path = ["notification_config", "channels"];
        return Err(Violation::body(&path, "too_long", msg, channels.len().into()).into());
    }
    let sent = channels.to_vec();
    let mut sealed = Vec::new();
    for (number, channel) in channels.iter_mut().enumerate() {
        let Some(kind) = Kind::read(&channel.channel_type) else {
            let msg = "a channel is of the type webhook, slack, email or batch";
            let input = channel.channel_type.as_str().into();
            return Err(fault(number, &["channel_type"], "enum", msg, input));
        };
        let mut config = channel.config.take().unwrap_or_default();
        if masked(&config).is_some() {
            if let Some(before) = old.and_then(|old| shown_of(&sent, number, old)) {
                unmask(&mut config, &open(app, names, before)?);
            }
            if let Some(name) = masked(&config) {
                let msg = "it is not known what was masked here: send the value itself";
                let path = ["config", name];
                return Err(fault(number, &path, "value_error", msg, MASK.into()));
            }
        }
        if let Some(name) = lacking(kind, channel.channel_id.as_deref(), &config) {
            let msg = "without it this channel delivers nothing";
            let path = ["config", name];
            return Err(fault(number, &path, "missing", msg, Value::Null));
        }
        reachable(app, &config, number)?;
        if let Some(why) = unreadable(kind, &config) {
            let msg = format!("these are no settings of the channel: {why}");
            return Err(fault(number, &["config"], "value_error", msg, Value::Null));
        }
        let text = serde_json::to_string(&config).map_err(ApiError::internal)?;
        sealed.push(app.vault().seal(&[names.0, names.1], &text)?);
        mask(&mut config);
        channel.config = (!config.is_empty()).then_some(config);
    }
    Ok(sealed)
}

/// What the channel is set to that a masked one was shown of: the one that sends to the same place. Of several, those
/// that look the same, in their order, as long as there are as many of them as before. Not the one of the same number: a
/// channel that was removed would leave its secrets to the next one.
fn shown_of<'k>(
    sent: &[NotificationChannelConfig],
    number: usize,
    (channels, sealed): Kept<'k>,
) -> Option<&'k String> {
    let channel = sent.get(number)?;
    let same_place: Vec<usize> = (0..channels.len())
        .filter(|old| place(&channels[*old]) == place(channel))
        .collect();
    if let [only] = same_place[..] {
        return sealed.get(only);
    }
    let look = |one: &NotificationChannelConfig| {
        let mut config = one.config.clone().unwrap_or_default();
        mask(&mut config);
        config
    };
    let is_like = |one: &NotificationChannelConfig| {
        place(one) == place(channel) && look(one) == look(channel)
    };
    let alike: Vec<usize> = same_place
        .into_iter()
        .filter(|old| is_like(&channels[*old]))
        .collect();
    // One that was sent with its secrets in the open was shown of none.
    let hides = |one: &NotificationChannelConfig| {
        one.config
            .as_ref()
            .is_some_and(|config| masked(config).is_some())
    };
    let peers: Vec<usize> = (0..sent.len())
        .filter(|one| hides(&sent[*one]) && is_like(&sent[*one]))
        .collect();
    let rank = peers.iter().position(|one| *one == number)?;
    let old = alike.get(rank).filter(|_| alike.len() == peers.len())?;
    sealed.get(*old)
}

/// Where a channel sends to, as far as that may be shown.
fn place(channel: &NotificationChannelConfig) -> (&str, Option<&str>, Option<&Value>) {
    let url = channel.config.as_ref().and_then(|config| config.get("url"));
    (
        channel.channel_type.as_str(),
        channel.channel_id.as_deref(),
        url,
    )
}

/// What a channel is set to.
pub(super) fn open(app: &App, names: (&str, &str), sealed: &str) -> Result<Object> {
    let text = app.vault().open(&[names.0, names.1], sealed)?;
    reading::from_str(&text).map_err(ApiError::internal)
}

fn mask(config: &mut Object) {
    for name in SECRETS {
        match config.get_mut(name) {
            Some(Value::Object(members)) => {
                members.values_mut().for_each(|value| *value = MASK.into());
            }
            Some(value) => *value = MASK.into(),
            None => {}
        }
    }
}

fn unmask(config: &mut Object, old: &Object) {
    for name in SECRETS {
        match (config.get_mut(name), old.get(name)) {
            (Some(Value::Object(members)), Some(Value::Object(old))) => {
                for (name, value) in members.iter_mut() {
                    if let (true, Some(old)) = (value == MASK, old.get(name)) {
                        *value = old.clone();
                    }
                }
            }
            (Some(value), Some(old)) if value == MASK => *value = old.clone(),
            _ => {}
        }
    }
}

/// A member that is masked, still.
fn masked(config: &Object) -> Option<&'static str> {
    SECRETS.into_iter().find(|name| match config.get(*name) {
        Some(Value::Object(members)) => members.values().any(|value| value == MASK),
        Some(value) => value == MASK,
        None => false,
    })
}

/// A member without which a channel leads nowhere. What names a webhook of the organization goes where that one leads.
fn lacking(kind: Kind, webhook_id: Option<&str>, config: &Object) -> Option<&'static str> {
    let is_named = |name: &str| {
        let text = config.get(name).and_then(Value::as_str);
        text.is_some_and(|text| !text.is_empty())
    };
    let needed: &[&'static str] = match kind {
        Kind::Message(_) if webhook_id.is_some() || is_named("channel_id") => &[],
        Kind::Message(NotificationChannel::Webhook) => &["url"],
        Kind::Message(NotificationChannel::Slack) => &["webhook_url"],
        Kind::Message(NotificationChannel::Email) => match config.get("to_addresses") {
            Some(Value::Array(addresses)) if !addresses.is_empty() => &[],
            _ => &["to_addresses"],
        },
        Kind::Batch => &["bucket_id", "collection_id"],
    };
    needed.iter().copied().find(|name| !is_named(name))
}

/// Why the settings of a channel with an address of its own are none: it would deliver nothing.
fn unreadable(kind: Kind, config: &Object) -> Option<String> {
    let Kind::Message(kind) = kind else {
        return None;
    };
    let address = match kind {
        NotificationChannel::Webhook => "url",
        NotificationChannel::Slack => "webhook_url",
        NotificationChannel::Email => "to_addresses",
    };
    config.get(address)?;
    match Channel::plain(kind, config.clone().into()) {
        Ok(channel) => {
            let (member, why) = channel.broken_template()?;
            Some(format!("{member}: {why}"))
        }
        Err(why) => Some(why),
    }
}

/// Addresses that this server would never send to are refused at once.
fn reachable(app: &App, config: &Object, number: usize) -> Result<()> {
    for name in ["url", "webhook_url"] {
        let Some(Value::String(url)) = config.get(name) else {
            continue;
        };
        if let Err(error) = app.outbound().check(url) {
            let path = ["config", name];
            let input = Value::from(url.as_str());
            return Err(fault(
                number,
                &path,
                "value_error",
                error.to_string(),
                input,
            ));
        }
    }
    Ok(())
}

pub(super) fn fault(
    number: usize,
    member: &[&str],
    kind: &str,
    msg: impl Into<String>,
    input: Value,
) -> ApiError {
    let number = number.to_string();
    let mut path = vec!["notification_config", "channels", &number];
    path.extend(member);
    Violation::body(&path, kind, msg, input).into()
}
