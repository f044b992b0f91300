//! Which alerts watch a namespace, and which namespaces an alert watches.

use std::collections::BTreeSet;

use loupe_wire::{
    AlertResponse, AuditAction, NamespaceSelector, NamespaceSelectorMode, ResourceType,
};
use serde_json::json;

use super::{
    Alert, Place,
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

/// Holds the namespaces that an alert of the organization is to select until the transaction ends: whoever removes one was
/// first, or finds the alert. Comes before the alert is held, as they do it.
///
/// # Errors
/// 404 for one that is gone.
pub(super) async fn hold(
    tx: &mut Tx,
    place: &Place,
    selector: Option<&NamespaceSelector>,
) -> Result<()> {
    // An alert of a namespace is removed with it.
    if place.namespace_id.is_some() {
        return Ok(());
    }
    let named = selector.into_iter().flat_map(|one| &one.namespace_ids);
    // In the order of the ids, so that no two wait for each other.
    for id in named.collect::<BTreeSet<_>>() {
        NAMESPACES.hold(tx, &place.caller.org_id, id).await?;
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
        let before = record.data.0;
        let mut after = before.clone();
        without(&mut after.alert, namespace_id);
        after.alert.updated_at = Some(clock::time(now));
        let (id, name) = (after.id(), &after.alert.name);
        ALERTS.update(tx, org_id, id, name, now, &after).await?;
        tell(tx, &after, "alert.updated", json!({}), now).await?;
        let change = Change {
            action: AuditAction::AlertUpdated,
            resource: (ResourceType::Alert, id),
            changes: audit::difference(&before.alert, &after.alert),
        };
        audit::record(tx, caller, change, now).await?;
    }
    Ok(())
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
