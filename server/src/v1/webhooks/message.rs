//! One message to one channel, once: what is sent, and what the answer means.

use std::time::Duration;

use loupe_engine::{
    template,
    web::{Answer, Ask},
};
use loupe_wire::{
    NotificationContentType, NotificationEmailConfig, Object, SlackConfig, Value, WebhookConfig,
};
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};

use super::{
    channels::{Channel, Config},
    signature,
};
use crate::{
    app::App,
    clock,
    error::{ApiError, Result},
    mail::Letter,
};

/// Largest answer that is read, and what of it is kept.
const ANSWER: u64 = 65_536;

const TOLD: usize = 500;

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
    Ok(match app.outbound().tell(ask).await {
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
