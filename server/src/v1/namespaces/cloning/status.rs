//! How far a namespace is that is being made.

use loupe_wire::NamespaceModel;

use crate::{app::App, clock, error::Result, jobs::Claim, v1::namespaces::NAMESPACES};

/// Notes how far the copy of a cloned namespace is.
///
/// # Errors
/// The database fails.
pub async fn set_clone_status(
    app: &App,
    claim: &Claim,
    status: &'static str,
    phase: Option<&'static str>,
    error: Option<&str>,
) -> Result<()> {
    let (org_id, now) = (claim.org_id.clone(), app.clock().micros());
    let id = claim.namespace_id.clone().unwrap_or_default();
    let error = error.map(ToOwned::to_owned);
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let record = match NAMESPACES.hold(tx, &org_id, &id).await {
                    Ok(record) => record,
                    // Removed meanwhile.
                    Err(error) if error.is_not_found() => return Ok(()),
                    Err(error) => return Err(error),
                };
                let namespace = NamespaceModel {
                    clone_status: Some(status.into()),
                    clone_phase: phase.map(Into::into),
                    clone_error: error,
                    namespace_ready: status == "ready",
                    updated_at: Some(clock::time(now)),
                    ..record.data.0
                };
                NAMESPACES
                    .update(tx, &org_id, &id, &record.name, now, &namespace)
                    .await
            })
        })
        .await
}
