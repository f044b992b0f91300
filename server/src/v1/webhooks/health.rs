//! How the receivers of a webhook do, as the interface's `delivery_health` tells it: all in one, and each by itself.

use loupe_wire::Object;
use serde_json::json;

use super::{Webhook, store::Health};
use crate::clock;

/// Nothing where nothing was sent yet.
pub(super) fn told(webhook: &Webhook, health: &[Health]) -> Object {
    let of_channel = |key: i64| health.iter().find(|one| one.channel == key);
    let channels: Vec<_> = webhook.keys().map(of_channel).collect();
    let known: Vec<&Health> = channels.iter().flatten().copied().collect();
    if known.is_empty() {
        return Object::new();
    }
    let status = match known.iter().any(|one| is_paused(one)) {
        true if !webhook.is_active => "paused",
        true => "degraded",
        false if known.iter().any(|one| one.failures > 0) => "failing",
        false => "healthy",
    };
    let numbered = channels.iter().enumerate();
    let each = numbered.map(|(place, found)| of_one(place, *found));
    let newest = known.iter().max_by_key(|one| one.last_failure_at);
    let mut told = members(&Health {
        webhook_id: String::new(),
        channel: 0,
        failures: known.iter().map(|one| one.failures).max().unwrap_or(0),
        last_success_at: most(&known, |one| one.last_success_at),
        last_failure_at: most(&known, |one| one.last_failure_at),
        last_error: newest.map_or_else(String::new, |one| one.last_error.clone()),
        paused_for: match status {
            "paused" => reason(&known),
            _ => String::new(),
        },
    });
    told.insert("status".into(), json!(status));
    told.insert("channels".into(), each.collect());
    told
}

fn most(known: &[&Health], of: impl Fn(&Health) -> i64) -> i64 {
    known.iter().map(|one| of(one)).max().unwrap_or(0)
}

/// Why the channel was paused that was paused last.
fn reason(known: &[&Health]) -> String {
    let paused = known.iter().filter(|one| is_paused(one));
    let last = paused.max_by_key(|one| one.last_failure_at);
    last.map_or_else(String::new, |one| one.paused_for.clone())
}

const fn is_paused(one: &Health) -> bool {
    !one.paused_for.is_empty()
}

fn of_one(place: usize, health: Option<&Health>) -> Object {
    let (status, mut told) = match health {
        // Nothing was sent to it yet.
        None => ("healthy", Object::new()),
        Some(one) if is_paused(one) => ("paused", members(one)),
        Some(one) if one.failures > 0 => ("failing", members(one)),
        Some(one) => ("healthy", members(one)),
    };
    told.insert("channel".into(), json!(place));
    told.insert("status".into(), json!(status));
    told
}

fn members(health: &Health) -> Object {
    let at = |micros: i64| (micros > 0).then(|| clock::time(micros));
    let mut told = Object::new();
    told.insert("consecutive_failures".into(), json!(health.failures));
    told.insert("last_success_at".into(), json!(at(health.last_success_at)));
    told.insert("last_failure_at".into(), json!(at(health.last_failure_at)));
    if !health.last_error.is_empty() {
        told.insert("last_error".into(), json!(health.last_error));
    }
    if is_paused(health) {
        told.insert("paused_for".into(), json!(health.paused_for));
    }
    told
}
