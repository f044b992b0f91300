//! Which alerts watch a namespace, and which namespaces an alert watches.

use loupe_wire::NamespaceSelectorMode;

use super::{
    Alert,
    store::{self, ALERTS},
};
use crate::{app::App, error::Result};

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
