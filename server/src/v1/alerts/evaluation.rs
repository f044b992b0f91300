//! Looking: what an alert asks is measured, and what was found decides whether people are told. The decision and what
//! follows from it are one transaction, so that a cause is told once.

use std::{cmp::Ordering, collections::BTreeSet, time::Instant};

use loupe_engine::filter;
use loupe_wire::{
    AlertChannelDelivery, AlertExecutionResult, AlertMatchResult, AlertSource, AlertThreshold,
    AlertThresholdOperator, AuditAction, NotificationPriority, NotificationType, Object,
    ResourceType, TaskType, TriggerOn, Value,
};
use serde_json::json;

use super::{
    Alert, again, conditions,
    delivery::{self, CHANNELS, DELIVER},
    failing,
    selecting::namespaces_of,
    sentence::{asked, sentence},
    store, tell,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::Result,
    id,
    v1::{
        audit::{self, Change},
        notifications::{self, Notice},
        retrievers::{self, Execute},
        tasks::{self, NewTask},
    },
};

/// Matches of one look that are kept, and documents that it was made for.
const KEPT: usize = 100;

/// The member of a baseline that has the ids of what people know of.
const KNOWN: &str = "known";

/// Why an alert looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Cause {
    /// A second look for the same key changes nothing.
    pub key: String,
    /// The collection that was written to, where that is the cause, and the namespace that it is in.
    pub namespace_id: String,
    pub collection_id: String,
    pub documents: Vec<String>,
    /// Inputs from the document; they win over the alert's own.
    pub inputs: Object,
    /// Asks something else than the last look did: what held then says nothing about it.
    pub is_new_question: bool,
    /// Somebody asked for it, and is told of it also when nothing was found.
    pub is_request: bool,
    /// What may pass is tried again: until then the look is not over.
    pub comes_again: bool,
}

impl Cause {
    /// Somebody asks.
    pub(super) fn request() -> Self {
        Self {
            key: id::new("ask_"),
            is_request: true,
            ..Self::default()
        }
    }
}

/// What a look finds.
#[derive(Debug, Default)]
struct Found {
    holds: bool,
    count: usize,
    matches: Vec<AlertMatchResult>,
    /// The retriever that was asked, by name and with what; where it is documents.
    asked: String,
    /// What was found, in words, where it is no documents.
    findings: Vec<conditions::Finding>,
    /// The namespaces that it was found in.
    within: Vec<String>,
    baseline: Option<Object>,
}

/// Looks once for a cause, and leaves what people are to be told.
///
/// # Errors
/// The alert cannot be evaluated; that is in the feed as well.
pub(super) async fn look(
    app: &App,
    owner: &str,
    alert: &Alert,
    cause: Cause,
) -> Result<AlertExecutionResult> {
    if let Some(done) = store::of_cause(app.db(), owner, alert.id(), &cause.key).await? {
        return Ok(done);
    }
    let (started, now) = (Instant::now(), app.clock().micros());
    let found = match alert.source() {
        AlertSource::Retriever => search(app, alert, &cause).await,
        AlertSource::System => measure(app, owner, alert, now).await,
    };
    let result = AlertExecutionResult {
        alert_id: alert.id().to_owned(),
        collection_id: cause.collection_id.clone(),
        execution_id: Some(id::new("aex_")),
        source_documents: cause.documents.iter().take(KEPT).cloned().collect(),
        executed_at: clock::time(now).to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        duration_ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        ..AlertExecutionResult::default()
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let is_over = !(cause.comes_again && error.is_transient());
            failing::note(app, owner, alert, (result, is_over), &error, now).await?;
            return Err(error);
        }
    };
    let result = AlertExecutionResult {
        match_count: i64::try_from(found.count).unwrap_or(i64::MAX),
        matches: Some(found.matches.clone()),
        ..result
    };
    let (owner, alert) = (owner.to_owned(), alert.clone());
    let result = app
        .db()
        .write(move |tx| {
            Box::pin(async move { decide(tx, &owner, &alert, cause, found, result, now).await })
        })
        .await?;
    if result.triggered {
        app.work.notify_one();
    }
    Ok(result)
}

/// Runs the retriever with the rights of the server itself in its namespace.
async fn search(app: &App, alert: &Alert, cause: &Cause) -> Result<Found> {
    let ask = &alert.alert;
    let retriever_id = ask.retriever_id.as_deref().unwrap_or_default();
    let namespace_id = match &ask.namespace_id {
        Some(namespace_id) => namespace_id.clone(),
        None => store::retriever_namespace(app.db(), &alert.org_id, retriever_id).await?,
    };
    let within = vec![namespace_id.clone()];
    let scope: Scope<Write> = Scope::internal(Caller::system(&alert.org_id), namespace_id);
    let retriever = retrievers::known(app, &scope, retriever_id).await?;
    let mut inputs = ask.inputs.clone();
    inputs.extend(cause.inputs.clone());
    let asked = asked(&retriever.name, &inputs);
    let execute = Execute {
        inputs,
        behind: !cause.is_request,
        ..Execute::default()
    };
    let documents = retrievers::execute(app, &scope, &retriever, execute)
        .await?
        .documents;
    let least = usize::try_from(ask.min_count.unwrap_or(1)).unwrap_or(usize::MAX);
    let holds = match ask.trigger_on.unwrap_or_default() {
        TriggerOn::NoResults => documents.is_empty(),
        TriggerOn::Results => {
            let first = documents.first().map(|first| Value::Object(first.clone()));
            documents.len() >= least
                && ask
                    .threshold
                    .as_ref()
                    .is_none_or(|threshold| first.is_some_and(|first| is_beyond(threshold, &first)))
        }
    };
    Ok(Found {
        holds,
        count: documents.len(),
        matches: documents.iter().take(KEPT).map(matched).collect(),
        asked,
        within,
        ..Found::default()
    })
}

/// Whether the first result's member compares as it should; one that is not there never does.
fn is_beyond(threshold: &AlertThreshold, first: &Value) -> bool {
    use AlertThresholdOperator::{Eq, Gt, Gte, Lt, Lte, Ne};
    let Some(found) = filter::value_at(first, &threshold.field) else {
        return false;
    };
    let wanted = threshold.value.clone().unwrap_or_default();
    let equal = || match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => found == wanted,
        _ => *found == wanted,
    };
    let order = match (found, &wanted) {
        (Value::Number(found), Value::Number(wanted)) => found
            .as_f64()
            .zip(wanted.as_f64())
            .and_then(|(found, wanted)| found.partial_cmp(&wanted)),
        (Value::String(found), Value::String(wanted)) => Some(found.cmp(wanted)),
        _ => None,
    };
    match threshold.operator {
        Eq => equal(),
        Ne => !equal(),
        Gt => order == Some(Ordering::Greater),
        Gte => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Lt => order == Some(Ordering::Less),
        Lte => matches!(order, Some(Ordering::Less | Ordering::Equal)),
    }
}

fn matched(document: &Object) -> AlertMatchResult {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    AlertMatchResult {
        document_id: text("document_id").unwrap_or_default().to_owned(),
        asset_id: object_of(document).map(ToOwned::to_owned),
        score: document
            .get("score")
            .and_then(Value::as_f64)
            .unwrap_or_default()
            .clamp(0.0, 1.0),
        matched_features: features(document),
        metadata: text("collection_id").map(|id| {
            [("collection_id".to_owned(), Value::from(id))]
                .into_iter()
                .collect()
        }),
    }
}

/// The object that a document was made from.
fn object_of(document: &Object) -> Option<&str> {
    let lineage = document.get("_internal")?.get("lineage")?;
    lineage.get("root_object_id")?.as_str()
}

/// What each part of a search of several gave the document, as the search tells it: parts that did not find it are not there.
fn features(document: &Object) -> Option<Object> {
    let scores = document.get("scores")?.as_object()?;
    let told = !scores.is_empty() && scores.values().all(Value::is_number);
    told.then(|| scores.clone())
}

async fn measure(app: &App, owner: &str, alert: &Alert, now: i64) -> Result<Found> {
    let Some(condition) = &alert.alert.system_condition else {
        return Ok(Found::default());
    };
    let state = store::state(app.db(), owner, alert.id()).await?;
    let mut look = conditions::Look::new(app, &alert.org_id, condition, now, state.baseline.0);
    for namespace_id in namespaces_of(app, alert).await? {
        look.measure(&namespace_id).await?;
    }
    look.measure_organization().await?;
    let within = look.findings.iter();
    let within: BTreeSet<&String> = within.flat_map(|one| &one.namespace_id).collect();
    Ok(Found {
        within: within.into_iter().cloned().collect(),
        holds: !look.findings.is_empty(),
        count: look.findings.len(),
        findings: look.findings,
        baseline: Some(look.baseline),
        ..Found::default()
    })
}

/// Decides what follows, and writes it down. A fire is a rise of the condition, something that it holds for besides, or its
/// standing for as long as people want to hear of it again; never within the cooldown.
async fn decide(
    tx: &mut Tx,
    owner: &str,
    alert: &Alert,
    cause: Cause,
    found: Found,
    mut result: AlertExecutionResult,
    now: i64,
) -> Result<AlertExecutionResult> {
    let mut state = store::state_in(tx, owner, alert.id()).await?;
    // One that began later may have decided first.
    let since = (now - state.fired_at).max(0);
    let rested = state.fired_at == 0 || since >= alert.alert.cooldown_seconds * 1_000_000;
    let snoozed = alert.alert.snoozed_until;
    let rested = rested && snoozed.is_none_or(|until| until.timestamp_micros() <= now);
    let (known, news) = known(&state.baseline.0, &found.findings, rested);
    let rises = !state.holds || news || cause.is_new_question || cause.is_request;
    let again = alert
        .alert
        .renotify_interval_seconds
        .is_some_and(|seconds| since >= seconds * 1_000_000);
    result.triggered = found.holds && (rises || again) && rested;
    if result.triggered {
        result.deliveries = waiting(alert);
    }
    if !store::insert(tx, owner, &cause.key, &result, now).await? {
        // Somebody else looked for the same cause meanwhile.
        result.triggered = false;
        result.deliveries.clear();
        return Ok(result);
    }
    let before = (state.holds, state.fired_at);
    // A rise within the cooldown is none yet: it is told when the cooldown ends.
    state.holds = found.holds && (rested || state.holds);
    if result.triggered {
        state.fired_at = now.max(state.fired_at);
    }
    let mut noted = again::note(&mut state, &cause, found.holds, rises && !result.triggered);
    noted |= store::end_failures(tx, owner, &mut state).await?;
    if let Some(baseline) = found.baseline {
        state.baseline.0 = baseline;
        state.baseline.0.insert(KNOWN.into(), json!(known));
        noted = true;
    }
    if noted || before != (state.holds, state.fired_at) {
        store::keep_state(tx, owner, &state).await?;
    }
    if found.holds || cause.is_request {
        let payload = json!({
            "execution_id": result.execution_id, "triggered": result.triggered,
            "match_count": result.match_count, "collection_id": cause.collection_id,
        });
        tell(tx, alert, "alert.execution.completed", payload, now).await?;
    }
    if result.triggered {
        let text = sentence(alert, &result, &found.asked, &found.findings);
        let told = (text, found.findings.as_slice(), found.within.as_slice());
        fire(tx, owner, alert, &result, told, now).await?;
    }
    Ok(result)
}

/// The findings that people know of after this look, and whether there are some that they did not know of. A state that was
/// written before ids were kept knows of all; what came within the cooldown is told when that ends.
fn known<'f>(
    baseline: &Object,
    findings: &'f [conditions::Finding],
    rested: bool,
) -> (Vec<&'f str>, bool) {
    let all = ids_of(findings);
    let Some(before) = baseline.get(KNOWN).and_then(Value::as_array) else {
        return (all, false);
    };
    let is_known = |id: &&str| before.iter().any(|known| known.as_str() == Some(*id));
    let known: Vec<&str> = all.iter().copied().filter(is_known).collect();
    let news = known.len() < all.len();
    (if rested { all } else { known }, news)
}

fn ids_of(findings: &[conditions::Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// What the channels have to send.
fn waiting(alert: &Alert) -> Vec<AlertChannelDelivery> {
    let channels = alert.alert.notification_config.channels.iter();
    let waits = |channel: &loupe_wire::NotificationChannelConfig| AlertChannelDelivery {
        channel_type: channel.channel_type.clone(),
        status: "deferred".into(),
        error: None,
    };
    channels.map(waits).collect()
}

/// Tells the feed, the audit log and the people's inbox, and leaves the task that sends to the channels.
async fn fire(
    tx: &mut Tx,
    owner: &str,
    alert: &Alert,
    result: &AlertExecutionResult,
    (text, findings, within): (String, &[conditions::Finding], &[String]),
    now: i64,
) -> Result<()> {
    let ids = ids_of(findings);
    let payload = json!({
        "execution_id": result.execution_id, "match_count": result.match_count, "text": text,
        "collection_id": result.collection_id, "resource_ids": ids, "namespace_ids": within,
    });
    tell(tx, alert, "alert.triggered", payload, now).await?;
    let change = Change {
        action: AuditAction::AlertTriggered,
        resource: (ResourceType::Alert, alert.id()),
        changes: json!({ "execution_id": result.execution_id }),
    };
    audit::record(tx, &Caller::system(&alert.org_id), change, now).await?;
    let system = alert.source() == AlertSource::System;
    let notice = Notice {
        kind: match system {
            true => NotificationType::SystemAlert,
            false => NotificationType::Custom,
        },
        priority: match system {
            true => NotificationPriority::High,
            false => NotificationPriority::Medium,
        },
        title: format!("Alert {}", alert.alert.name),
        content: text.clone(),
        about: json!({
            "alert_id": alert.id(), "execution_id": result.execution_id,
            "namespace_id": alert.alert.namespace_id, "resource_ids": ids, "namespace_ids": within,
        }),
    };
    notifications::notify(tx, &alert.org_id, notice, now).await?;
    let work = json!({
        "owner": owner, "alert_id": alert.id(), "execution_id": result.execution_id, "text": text,
        "resource_ids": ids, "namespace_ids": within, CHANNELS: delivery::kept(alert),
    });
    let mut task = NewTask::work(
        &alert.org_id,
        alert.alert.namespace_id.as_deref().unwrap_or_default(),
        TaskType::ApiRetrieversExecute,
        DELIVER,
        work,
    );
    task.namespace_id = alert.alert.namespace_id.clone();
    // Inner work: what came of it is told by the execution.
    task.parent_id = Some(alert.id().to_owned());
    task.description = format!("deliveries of the alert {}", alert.alert.name);
    tasks::insert(tx, task, now).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_matched_is_what_the_search_tells() {
        let of = |document: Value| {
            let found = matched(document.as_object().unwrap());
            found.matched_features.map(Value::Object)
        };
        let scores = json!({"search_0": 0.42, "search_0_lexical": 6.1});
        assert_eq!(of(json!({"score": 0.1, "scores": scores})), Some(scores));
        for document in [
            json!({"score": 0.1}),
            json!({"scores": {}}),
            json!({"scores": {"home": "three"}}),
            json!({"scores": [3]}),
        ] {
            assert_eq!(of(document), None);
        }
    }

    #[test]
    fn a_match_tells_the_object_that_its_document_was_made_from() {
        for (document, object) in [
            (
                json!({"_internal": {"lineage": {"root_object_id": "obj_1"}}}),
                Some("obj_1"),
            ),
            (
                json!({"_internal": {"lineage": {"root_object_id": null}}}),
                None,
            ),
            (json!({"title": "by hand"}), None),
        ] {
            let found = matched(document.as_object().unwrap());
            assert_eq!(found.asset_id.as_deref(), object, "{document}");
        }
    }

    #[test]
    fn thresholds_compare_numbers_and_texts_and_nothing_else() {
        let first = json!({"score": 0.8, "state": "open", "deep": {"size": 3}});
        for (field, operator, value, holds) in [
            ("score", "gt", json!(0.5), true),
            ("score", "gt", json!(0.8), false),
            ("score", "gte", json!(0.8), true),
            ("score", "lt", json!(1), true),
            ("score", "lte", json!(0.1), false),
            ("deep.size", "eq", json!(3.0), true),
            ("deep.size", "ne", json!(3), false),
            ("state", "eq", json!("open"), true),
            ("state", "gt", json!("closed"), true),
            ("state", "gt", json!(1), false),
            ("absent", "ne", json!(1), false),
        ] {
            let threshold: AlertThreshold = serde_json::from_value(
                json!({"field": field, "operator": operator, "value": value}),
            )
            .unwrap();
            assert_eq!(is_beyond(&threshold, &first), holds, "{threshold:?}");
        }
    }
}
