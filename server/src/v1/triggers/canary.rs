//! Searches that a trigger repeats to see whether they do as well as they should: what they are held to, and who is told.

use loupe_wire::{
    Object, TaskType, Trigger, TriggerActionConfigRetrieverExecution, TriggerActionType,
    TriggerDefsRetrieverAcceptanceCriteria, TriggerDefsRetrieverCanaryNotificationConfig, Value,
    reading,
};
use serde_json::json;

use super::member;
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    jobs::{Claim, text},
    v1::{
        batches::callbacks::CALL,
        tasks::{self, NewTask},
        webhooks::{self, Outcome, WEBHOOKS},
    },
    words::counted,
};

/// Channels of one trigger.
const MOST: usize = 10;

/// Refuses what a search cannot be held to, and channels that there are not.
///
/// # Errors
/// The 422 list, or 404 for a webhook that the organization does not have.
pub(super) async fn check(
    app: &App,
    org_id: &str,
    config: &TriggerActionConfigRetrieverExecution,
) -> Result<()> {
    if let Some(acceptance) = &config.acceptance {
        check_acceptance(acceptance)?;
    }
    let channels = config.notification_config.as_ref();
    let channels = channels.map_or(&[][..], |told| told.channels.as_slice());
    if channels.len() > MOST {
        let msg = format!("at most {MOST} channels");
        let path = ["notification_config", "channels"];
        return Err(fault(&path, "too_long", &msg, channels.len().into()));
    }
    for (number, channel) in channels.iter().enumerate() {
        let Some(webhook_id) = member(channel, "channel_id") else {
            let msg = "name a webhook of the organization: addresses lie encrypted there";
            let number = number.to_string();
            let path = ["notification_config", "channels", &number, "channel_id"];
            return Err(fault(&path, "missing", msg, Value::Null));
        };
        WEBHOOKS.find(app.db(), org_id, webhook_id).await?;
    }
    Ok(())
}

fn check_acceptance(acceptance: &TriggerDefsRetrieverAcceptanceCriteria) -> Result<()> {
    if let Some(breaches) = acceptance.max_stage_latency_breaches {
        let msg = "stages have no time of their own: max_total_time_ms is for all of them";
        let path = ["acceptance", "max_stage_latency_breaches"];
        return Err(fault(&path, "not_enabled", msg, breaches.into()));
    }
    if acceptance.min_pass_ratio.is_some() && acceptance.judge_field.is_none() {
        let msg = "a ratio is of the documents whose judge_field passes";
        let path = ["acceptance", "judge_field"];
        return Err(fault(&path, "missing", msg, Value::Null));
    }
    Ok(())
}

fn fault(path: &[&str], kind: &str, msg: &str, input: Value) -> ApiError {
    let path: Vec<&str> = ["action_config"].iter().chain(path).copied().collect();
    Violation::body(&path, kind, msg, input).into()
}

/// Whether a search did as well as it should.
///
/// # Errors
/// It did not.
pub(super) fn judge(
    acceptance: &TriggerDefsRetrieverAcceptanceCriteria,
    documents: &[Object],
    took_ms: f64,
) -> Result<()> {
    let found = i64::try_from(documents.len()).unwrap_or(i64::MAX);
    if let Some(least) = acceptance.min_results.filter(|least| found < *least) {
        let found = counted(found, "document");
        let message = format!("the retriever found {found} of at least {least}");
        return Err(ApiError::bad_request("", message));
    }
    if let Some(most) = acceptance.max_total_time_ms.filter(|most| took_ms > *most) {
        let message = format!("the retriever took {took_ms:.1} ms of at most {most}");
        return Err(ApiError::bad_request("", message));
    }
    let Some(field) = &acceptance.judge_field else {
        return Ok(());
    };
    let passed = documents.iter().filter(|one| passes(one, field)).count();
    let least = acceptance.min_pass_ratio.unwrap_or(1.0);
    // Where nothing is found nothing passes.
    if (passed as f64) < least * documents.len().max(1) as f64 {
        let found = counted(found, "document");
        let message = format!("{passed} of {found} pass by {field}, of at least a part of {least}");
        return Err(ApiError::bad_request("", message));
    }
    Ok(())
}

/// Whether what a field of a document says is a yes: true, a number above 0, or a word for it.
fn passes(document: &Object, field: &str) -> bool {
    let mut pieces = field.split('.');
    let first = pieces.next().and_then(|name| document.get(name));
    match first.and_then(|value| pieces.try_fold(value, |value, name| value.get(name))) {
        Some(Value::Bool(passes)) => *passes,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number > 0.0),
        Some(Value::String(word)) => {
            let word = word.trim().to_lowercase();
            ["pass", "passed", "true", "yes"].contains(&word.as_str())
        }
        _ => false,
    }
}

/// Has a search that ended told, in the transaction that notes its end. `was_failing`: the one before failed.
pub(super) async fn tell(
    tx: &mut Tx,
    trigger: &Trigger,
    was_failing: bool,
    outputs: &[Value],
    now: i64,
) -> Result<()> {
    let config = trigger.action_config.get("notification_config");
    let is_search = trigger.action_type == TriggerActionType::RetrieverExecution;
    let Some(config) = config.filter(|_| is_search) else {
        return Ok(());
    };
    let Ok(config) = reading::from_value::<TriggerDefsRetrieverCanaryNotificationConfig>(config)
    else {
        return Ok(());
    };
    let fails = trigger.consecutive_failures > 0;
    let is_wanted = match config.notify_on.as_str() {
        "always" => true,
        "failure" => fails,
        _ => fails != was_failing,
    };
    if !is_wanted {
        return Ok(());
    }
    let body = body(trigger, config.include_internal_diagnostics, outputs, now);
    let execution = trigger
        .last_execution_task_id
        .as_deref()
        .unwrap_or_default();
    for (number, channel) in config.channels.iter().enumerate() {
        let work = json!({
            "webhook_id": member(channel, "channel_id"), "message_id": format!("msg_{execution}_{number}"),
            "body": body,
        });
        let task_type = TaskType::ApiRetrieversExecute;
        let (org_id, namespace_id) = (&trigger.internal_id, &trigger.namespace_id);
        let mut task = NewTask::work(org_id, namespace_id, task_type, CALL, work);
        // Inner work.
        task.parent_id.clone_from(&trigger.trigger_id);
        let name = trigger.name.as_deref().unwrap_or_default();
        task.description = format!("a message of the trigger {name}");
        tasks::insert(tx, task, now).await?;
    }
    Ok(())
}

/// What receivers are told. What went wrong in words, and figures, are for those who look after the server.
fn body(trigger: &Trigger, with_diagnostics: bool, outputs: &[Value], now: i64) -> Value {
    let fails = trigger.consecutive_failures > 0;
    let name = trigger.name.as_deref().unwrap_or_default();
    let (event_type, said) = match fails {
        true => (
            "trigger.execution.failed",
            "does not do as well as it should",
        ),
        false => ("trigger.execution.completed", "does as well as it should"),
    };
    let mut body = json!({
        "event_type": event_type,
        "text": format!("{name}: the search {said}"),
        "occurred_at": clock::time(now),
        "organization_id": trigger.internal_id,
        "namespace_id": trigger.namespace_id,
        "trigger_id": trigger.trigger_id,
        "trigger_name": trigger.name,
        "retriever_id": trigger.action_config.get("retriever_id"),
        "status": trigger.last_execution_status,
        "consecutive_failures": trigger.consecutive_failures,
    });
    if with_diagnostics {
        body["diagnostics"] = json!({
            "task_id": trigger.last_execution_task_id, "error": trigger.last_execution_error, "outputs": outputs,
        });
    }
    body
}

/// Tells the receivers of one webhook. One that has it already gets it again with the same id when another is tried again.
///
/// # Errors
/// A receiver may take it later: the queue tries again.
pub async fn send(app: &App, claim: &Claim) -> Result<()> {
    let id = text(claim, "message_id");
    let body = claim.work.get("body").and_then(Value::as_object);
    let body = body.cloned().unwrap_or_default();
    let channels = webhooks::channels_of(app, &claim.org_id, text(claim, "webhook_id")).await?;
    let mut later = None;
    for (key, channel) in &channels {
        let id = format!("{id}_{key}");
        match webhooks::post(app, channel, &id, body.clone()).await? {
            Outcome::Delivered(_) => {}
            Outcome::Failed(_, why) => later = Some(why),
            Outcome::Over(_, why) | Outcome::Unset(why) => {
                tracing::warn!(why, "what a trigger found cannot be told");
            }
        }
    }
    match later {
        Some(why) => {
            let message = format!("what a trigger found could not be told: {why}");
            Err(ApiError::unavailable("", message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_held_to_what_its_documents_say() {
        let documents: Vec<Object> = [
            json!({"by": {"judge": true}}),
            json!({"by": {"judge": "no"}}),
        ]
        .iter()
        .filter_map(|one| one.as_object().cloned())
        .collect();
        let held = |field: &str, least: Option<f64>, documents: &[Object]| {
            let acceptance = TriggerDefsRetrieverAcceptanceCriteria {
                judge_field: Some(field.into()),
                min_pass_ratio: least,
                ..Default::default()
            };
            judge(&acceptance, documents, 1.0).is_ok()
        };
        assert!(held("by.judge", Some(0.5), &documents));
        assert!(!held("by.judge", None, &documents));
        assert!(!held("judge", Some(0.1), &documents));
        assert!(held("by.judge", None, &documents[..1]));
        assert!(!held("by.judge", Some(0.1), &[]));
    }
}
