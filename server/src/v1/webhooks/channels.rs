//! Where a webhook sends to. What a channel is configured with lies encrypted: addresses of chats and headers of receivers
//! are secrets as much as the signing secret, which is told once and never again.

use loupe_engine::template;
use loupe_wire::{
    NotificationChannel, NotificationEmailConfig, SlackConfig, Value, WebhookChannel,
    WebhookConfig, reading,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

use super::signature;
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// Seconds that a secret stays valid beside the one that replaced it.
const OVERLAP: i64 = 86_400;

/// Channels of one webhook.
const MOST: usize = 10;

/// A channel as the database has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    pub channel: NotificationChannel,
    sealed: String,
    /// What deliveries know it by, wherever it stands; that of a webhook from before there were keys is its place.
    #[serde(default)]
    pub key: Option<i64>,
    /// Nothing is sent to it until the webhook is set active again: its receiver is gone, or took nothing for too long.
    #[serde(default)]
    pub is_paused: bool,
}

/// A channel in the open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Channel {
    pub config: Config,
    /// The secret before the last rotation, and the second until which it signs too.
    #[serde(default)]
    before: Option<(String, i64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Config {
    Webhook(Box<WebhookConfig>),
    Chat(Box<SlackConfig>),
    Email(Box<NotificationEmailConfig>),
}

impl Channel {
    /// Reads and checks what a caller sent as channel `number`; a receiver without a secret gets one.
    pub fn read(app: &App, sent: WebhookChannel, number: usize) -> Result<Self> {
        if number >= MOST {
            let msg = format!("a webhook has at most {MOST} channels");
            return Err(Violation::body(&["channels"], "too_long", msg, Value::Null).into());
        }
        let config = match sent.channel {
            NotificationChannel::Webhook => {
                let mut config: WebhookConfig = config(sent.configs, number)?;
                reachable(app, &config.url, number, "url")?;
                if !(0.1..=30.0).contains(&config.timeout) {
                    let msg = "a receiver may take 0.1 to 30 seconds";
                    return Err(fault(number, "timeout", msg, config.timeout.into()));
                }
                named(&config, number)?;
                let secret = config.signing_secret.take();
                let secret = secret
                    .filter(|secret| !secret.is_empty())
                    .unwrap_or_else(signature::generate);
                signature::check(&secret)
                    .map_err(|why| fault(number, "signing_secret", why, Value::Null))?;
                config.signing_secret = Some(secret);
                Config::Webhook(Box::new(config))
            }
            NotificationChannel::Slack => {
                let config: SlackConfig = config(sent.configs, number)?;
                reachable(app, &config.webhook_url, number, "webhook_url")?;
                Config::Chat(Box::new(config))
            }
            NotificationChannel::Email => Config::Email(Box::new(config(sent.configs, number)?)),
        };
        let channel = Self {
            config,
            before: None,
        };
        match channel.broken_template() {
            Some((member, why)) => Err(fault(number, member, why, Value::Null)),
            None => Ok(channel),
        }
    }

    /// A template of the channel that no message could be made of, and why.
    pub fn broken_template(&self) -> Option<(&'static str, String)> {
        let broken = |name: &'static str, template: Option<&String>| {
            let error = template::check(template?).err()?;
            Some((name, error.to_string()))
        };
        match &self.config {
            Config::Webhook(config) => {
                let template = Value::Object(config.payload_template.clone()?);
                let (_, error) = template::check_value(&template).err()?;
                Some(("payload_template", error.to_string()))
            }
            Config::Chat(config) => broken("blocks_template", config.blocks_template.as_ref()),
            Config::Email(config) => broken("subject_template", config.subject_template.as_ref())
                .or_else(|| broken("body_template", config.body_template.as_ref())),
        }
    }

    /// A channel with these settings, as they are.
    ///
    /// # Errors
    /// They are no settings of the kind, told in words.
    pub fn plain(kind: NotificationChannel, settings: Value) -> std::result::Result<Self, String> {
        let read = |error: reading::Fault| error.to_string();
        let config = match kind {
            NotificationChannel::Webhook => {
                Config::Webhook(reading::from_value(&settings).map_err(read)?)
            }
            NotificationChannel::Slack => {
                Config::Chat(reading::from_value(&settings).map_err(read)?)
            }
            NotificationChannel::Email => {
                Config::Email(reading::from_value(&settings).map_err(read)?)
            }
        };
        Ok(Self {
            config,
            before: None,
        })
    }

    /// Takes the place of a channel: a secret that was not sent stays, one that was changed leaves the other valid for a day.
    pub fn replacing(mut self, old: Self, sent_secret: bool, now: i64) -> Self {
        let (Config::Webhook(new), Config::Webhook(was)) = (&mut self.config, old.config) else {
            return self;
        };
        if !sent_secret {
            new.signing_secret = was.signing_secret;
            self.before = old.before;
        } else if new.signing_secret != was.signing_secret {
            self.before = was
                .signing_secret
                .map(|secret| (secret, now / 1_000_000 + OVERLAP));
        } else {
            self.before = old.before;
        }
        self
    }

    /// The secrets that sign at this second.
    pub fn secrets(&self, seconds: i64) -> Vec<String> {
        let Config::Webhook(config) = &self.config else {
            return Vec::new();
        };
        let before = self.before.iter().filter(|(_, until)| seconds < *until);
        let before = before.map(|(secret, _)| secret.clone());
        config
            .signing_secret
            .iter()
            .cloned()
            .chain(before)
            .filter(|secret| !secret.is_empty())
            .collect()
    }

    /// The address that signed messages go to.
    pub fn url(&self) -> Option<&str> {
        match &self.config {
            Config::Webhook(config) => Some(&config.url),
            Config::Chat(_) | Config::Email(_) => None,
        }
    }

    /// What tells it from the other channels: its kind, and whom it sends to.
    pub fn address(&self) -> (NotificationChannel, String) {
        match &self.config {
            Config::Webhook(config) => (NotificationChannel::Webhook, config.url.clone()),
            Config::Chat(config) => (NotificationChannel::Slack, config.webhook_url.clone()),
            Config::Email(config) => (NotificationChannel::Email, config.to_addresses.join(", ")),
        }
    }

    /// Whom it sends to, in words for everybody: the address of a chat, and what an address carries beside its path, are
    /// secrets.
    pub fn receiver(&self) -> String {
        let (kind, address) = self.address();
        let Ok(mut url) = Url::parse(&address) else {
            return address;
        };
        if kind == NotificationChannel::Slack {
            return format!("the chat at {}", url.host_str().unwrap_or_default());
        }
        url.set_query(None);
        // What has no host has neither.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }

    /// Whether it leads to people's mail.
    pub const fn is_mail(&self) -> bool {
        matches!(self.config, Config::Email(_))
    }

    /// As the interface has it; the signing secret only where it is `told`.
    pub fn view(self, told: bool) -> Result<WebhookChannel> {
        let (channel, configs) = match self.config {
            Config::Webhook(mut config) => {
                if !told {
                    config.signing_secret = None;
                }
                (NotificationChannel::Webhook, serde_json::to_value(config))
            }
            Config::Chat(config) => (NotificationChannel::Slack, serde_json::to_value(config)),
            Config::Email(config) => (NotificationChannel::Email, serde_json::to_value(config)),
        };
        Ok(WebhookChannel {
            channel,
            configs: configs.map_err(ApiError::internal)?,
        })
    }

    pub fn seal(&self, app: &App, (org_id, webhook_id): (&str, &str), key: i64) -> Result<Kept> {
        let text = serde_json::to_string(self).map_err(ApiError::internal)?;
        Ok(Kept {
            channel: self.address().0,
            sealed: app.vault().seal(&[org_id, webhook_id], &text)?,
            key: Some(key),
            is_paused: false,
        })
    }
}

impl Kept {
    pub fn open(&self, app: &App, org_id: &str, webhook_id: &str) -> Result<Channel> {
        let text = app.vault().open(&[org_id, webhook_id], &self.sealed)?;
        reading::from_str(&text).map_err(ApiError::internal)
    }
}

/// Whether the caller sent a signing secret; an empty one is none.
pub fn sends_secret(channel: &WebhookChannel) -> bool {
    let sent = channel.configs["signing_secret"].as_str();
    sent.is_some_and(|secret| !secret.is_empty())
}

fn config<T: DeserializeOwned>(sent: Value, number: usize) -> Result<T> {
    let input = sent.clone();
    reading::from_value(&sent).map_err(|error| {
        let msg = format!("these are no settings of the channel: {error}");
        fault(number, "", msg, input)
    })
}

fn reachable(app: &App, url: &str, number: usize, member: &str) -> Result<()> {
    match app.outbound().check(url) {
        Ok(_) => Ok(()),
        Err(error) => Err(fault(number, member, error.to_string(), url.into())),
    }
}

/// Headers that a request can carry.
fn named(config: &WebhookConfig, number: usize) -> Result<()> {
    use reqwest::header::{HeaderName, HeaderValue};
    for (name, value) in &config.headers {
        let good = name.parse::<HeaderName>().is_ok() && HeaderValue::from_str(value).is_ok();
        if !good {
            let msg = "this is no header of a request";
            return Err(fault(number, "headers", msg, name.as_str().into()));
        }
    }
    Ok(())
}

fn fault(number: usize, member: &str, msg: impl Into<String>, input: Value) -> ApiError {
    let number = number.to_string();
    let mut path = vec!["channels", &number, "configs"];
    if !member.is_empty() {
        path.push(member);
    }
    Violation::body(&path, "value_error", msg, input).into()
}
