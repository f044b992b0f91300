//! Which alerts watch a namespace, and which namespaces an alert watches.

use std::collections::BTreeSet;

use loupe_wire::{
    AlertResponse, AlertSource, AuditAction, NamespaceSelector, NamespaceSelectorMode,
    NotificationPriority, NotificationType, ResourceType, Value,
};
use serde_json::json;

use super::{
    Alert, Place,
    checking::Asked,
    store::{self, ALERTS},
    tell,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Record, Tx},
    error::Result,
    v1::{
        audit::{self, Change},
        namespaces::NAMESPACES,
        notifications::{self, Notice},
        retrievers::RETRIEVERS,
    },
};

/// Enabled alerts that watch the namespace: its own, and those of the organization that select it, each with its owner.
pub(super) async fn watching(
    app: &App,
    org_id: &str,
    namespace_id: &str,
) -> Result<Vec<(String, Alert)>> {
    let own = ALERTS.all(app.db(), namespace_id).await?;
    let over = ALERTS.all(app.db(), org_id).await?;
    let selects = |alert: &Alert| match &alert.alert.namespace_selector {
        Some(selector) if selector.mode == Some(NamespaceSelectorMode::Selected) => {
            selector.namespace_ids.iter().any(|id| id == namespace_id)
        }
        _ => true,
    };
    let own = own
        .into_iter()
        .map(|record| (namespace_id.to_owned(), record.data.0));
    let over = over
        .into_iter()
        .map(|record| (org_id.to_owned(), record.data.0))
        .filter(|(_, alert)| selects(alert));
    Ok(own
        .chain(over)
        .filter(|(_, alert)| alert.alert.enabled)
        .collect())
}

/// Namespaces that a condition is measured in.
pub(super) async fn namespaces_of(app: &App, alert: &Alert) -> Result<Vec<String>> {
    if let Some(namespace_id) = &alert.alert.namespace_id {
        return Ok(vec![namespace_id.clone()]);
    }
    let mut all = store::namespace_ids(app.db(), &alert.org_id).await?;
    if let Some(selector) = &alert.alert.namespace_selector
        && selector.mode == Some(NamespaceSelectorMode::Selected)
    {
        all.retain(|id| selector.namespace_ids.contains(id));
    }
    Ok(all)
}

/// Holds what an alert is to watch until the transaction ends, the namespaces that one of the organization selects and the
/// retriever that it asks: whoever removes one was first, or finds the alert. Comes before the alert is held, as they do it.
///
/// # Errors
/// 404 for what is gone.
pub(super) async fn hold(
    tx: &mut Tx,
    place: &Place,
    selector: Option<&NamespaceSelector>,
    retriever: Option<&Asked>,
) -> Result<()> {
    // An alert of a namespace is removed with it.
    if place.namespace_id.is_none() {
        let named = selector.into_iter().flat_map(|one| &one.namespace_ids);
        // In the order of the ids, so that no two wait for each other.
        for id in named.collect::<BTreeSet<_>>() {
            NAMESPACES.hold(tx, &place.caller.org_id, id).await?;
        }
    }
    if let Some((namespace_id, id)) = retriever {
        RETRIEVERS.hold(tx, namespace_id, id).await?;
    }
    Ok(())
}

/// Takes a namespace that is removed out of the selectors of the organization's alerts. One that is left with nothing to watch
/// is turned off: it would seem to watch.
///
/// # Errors
/// The database does not answer.
pub async fn forget_namespace(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    now: i64,
) -> Result<()> {
    let org_id = &caller.org_id;
    let names = |record: &Record<Alert>| names(&record.alert, namespace_id);
    for record in ALERTS.hold_some(tx, org_id, names).await? {
        let mut after = record.data.0.clone();
        without(&mut after.alert, namespace_id);
        write(tx, caller, org_id, (&record.data.0, after), now).await?;
    }
    Ok(())
}

/// Turns off the alerts that watch a retriever which is removed, the namespace's and the organization's, and tells people: they
/// would seem to watch. Whoever calls holds the retriever.
///
/// # Errors
/// The database does not answer.
pub async fn forget_retriever(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    (id, name): (&str, &str),
    now: i64,
) -> Result<()> {
    let mut held = Vec::new();
    // The organization's know retrievers by their ids alone.
    for (owner, names) in [(namespace_id, vec![id, name]), (&caller.org_id, vec![id])] {
        let is_its = |one: &Record<Alert>| one.alert.enabled && watches(&one.alert, &names);
        let found = ALERTS.hold_some(tx, owner, is_its).await?.into_iter();
        // Some may have been given another one meanwhile.
        held.extend(found.filter(is_its).map(|one| (owner, one.data.0)));
    }
    for (owner, before) in held {
        let mut after = before.clone();
        after.alert.enabled = false;
        write(tx, caller, owner, (&before, after), now).await?;
        let notice = Notice {
            kind: NotificationType::SystemAlert,
            priority: NotificationPriority::High,
            title: format!("Alert {} was turned off", before.alert.name),
            content: format!(
                "The retriever {name} that it watches was removed. Give it another one and turn it on, or remove it too."
            ),
            about: json!({
                "alert_id": before.id(), "namespace_id": before.alert.namespace_id, "retriever_id": id,
            }),
        };
        notifications::notify(tx, &before.org_id, notice, now).await?;
    }
    Ok(())
}

/// Whether an alert asks a retriever of one of these names, or is about what is asked of it.
fn watches(alert: &AlertResponse, names: &[&str]) -> bool {
    watched(alert).is_some_and(|watched| names.contains(&watched))
}

/// The retriever that an alert asks, or that its condition is about.
pub(super) fn watched(alert: &AlertResponse) -> Option<&str> {
    match &alert.system_condition {
        Some(condition) if alert.source == Some(AlertSource::System) => {
            condition.params.get("retriever_id").and_then(Value::as_str)
        }
        _ => alert.retriever_id.as_deref(),
    }
}

/// Writes an alert that is held as it is to be from now on.
pub(super) async fn write(
    tx: &mut Tx,
    caller: &Caller,
    owner: &str,
    (before, mut after): (&Alert, Alert),
    now: i64,
) -> Result<()> {
    after.alert.updated_at = Some(clock::time(now));
    let (id, name) = (after.id(), &after.alert.name);
    ALERTS.update(tx, owner, id, name, now, &after).await?;
    tell(tx, &after, "alert.updated", json!({}), now).await?;
    let change = Change {
        action: AuditAction::AlertUpdated,
        resource: (ResourceType::Alert, id),
        changes: audit::difference(&before.alert, &after.alert),
    };
    audit::record(tx, caller, change, now).await
}

fn names(alert: &AlertResponse, namespace_id: &str) -> bool {
    let selector = alert.namespace_selector.as_ref();
    selector.is_some_and(|selector| selector.namespace_ids.iter().any(|id| id == namespace_id))
}

fn without(alert: &mut AlertResponse, namespace_id: &str) {
    let Some(selector) = &mut alert.namespace_selector else {
        return;
    };
    selector.namespace_ids.retain(|id| id != namespace_id);
    let selects = selector.mode == Some(NamespaceSelectorMode::Selected);
    if selects && selector.namespace_ids.is_empty() {
        alert.enabled = false;
    }
}
