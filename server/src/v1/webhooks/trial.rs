//! Messages that try channels out: each is sent once, at once, and what came of it is told in words. Nothing of it is kept.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use loupe_wire::{ChannelTestResponse, ChannelTestResult, Object, Value};
use serde_json::json;

use super::{Channel, Outcome, post};
use crate::{app::App, clock, error::Result, id, limits::page};

/// How long a receiver has, whatever its channel allows.
const LONGEST: Duration = Duration::from_secs(10);

/// Receivers that are tried at the same time.
const TOGETHER: usize = 16;

/// One receiver to try, or why none is tried.
pub struct Trial {
    /// Place among the channels that it belongs to.
    pub number: usize,
    pub channel_type: String,
    pub receiver: Receiver,
}

/// What a message would go to.
pub enum Receiver {
    Channel(Box<Channel>),
    /// Nothing is set up that it could be sent with.
    Unset(String),
    /// It takes no messages.
    Skipped(String),
}

/// Sends a test through every channel of what is called `name`.
///
/// # Errors
/// 429 when it was tried too often; the database or the vault fails.
pub async fn run(
    app: &App,
    (org_id, of, name): (&str, &str, &str),
    trials: Vec<Trial>,
) -> Result<ChannelTestResponse> {
    page::take_trial(app, of)?;
    let body = body(app, org_id, name);
    let results: Vec<ChannelTestResult> = stream::iter(trials)
        .map(|trial| attempt(app, trial, body.clone()))
        .buffered(TOGETHER)
        .collect()
        .await;
    let mut sent = results.iter().filter(|one| one.status != "skipped");
    let success = sent.clone().count() > 0 && sent.all(|one| one.status == "delivered");
    Ok(ChannelTestResponse { success, results })
}

fn body(app: &App, org_id: &str, name: &str) -> Object {
    let body = json!({
        "event_type": "test",
        "text": format!("A test of \"{name}\": messages arrive here."),
        "occurred_at": clock::time(app.clock().micros()),
        "organization_id": org_id,
    });
    match body {
        Value::Object(body) => body,
        _ => Object::new(),
    }
}

async fn attempt(app: &App, trial: Trial, body: Object) -> ChannelTestResult {
    let started = Instant::now();
    let (status, response_status, message) = match trial.receiver {
        Receiver::Channel(channel) => sent(app, &channel, body).await,
        Receiver::Unset(why) => ("not_configured", None, why),
        Receiver::Skipped(why) => ("skipped", None, why),
    };
    ChannelTestResult {
        channel: i64::try_from(trial.number).unwrap_or(0),
        channel_type: trial.channel_type,
        status: status.into(),
        response_status,
        message,
        duration_ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
    }
}

async fn sent(app: &App, channel: &Channel, body: Object) -> (&'static str, Option<i64>, String) {
    let id = id::new("msg_test_");
    let outcome = match tokio::time::timeout(LONGEST, post(app, channel, &id, body)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Outcome::Over(0, error.message()),
        Err(_) => {
            let why = format!("no answer within {} s", LONGEST.as_secs());
            Outcome::Failed(0, why)
        }
    };
    match outcome {
        Outcome::Delivered(status) => {
            let status = i64::from(status.as_u16());
            let message = match channel.is_mail() {
                true => "the mail server took it".to_owned(),
                false => format!("the receiver answered {status}"),
            };
            let answered = (!channel.is_mail()).then_some(status);
            ("delivered", answered, message)
        }
        Outcome::Failed(status, why) | Outcome::Over(status, why) => {
            ("failed", (status > 0).then_some(status), why)
        }
        Outcome::Unset(why) => ("not_configured", None, why),
    }
}
