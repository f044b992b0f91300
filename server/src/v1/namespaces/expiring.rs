//! Namespaces whose time is over go as those that somebody deletes.

use std::sync::Arc;

use super::{NAMESPACES, remove, removed, store};
use crate::{
    app::App,
    auth::{Caller, Via},
    error::Result,
};

/// Namespaces of one sweep; what is left is for the next.
const ROUND: i64 = 100;

/// How long batches may go on in a namespace whose time is over, in microseconds: no batch takes longer. Then they are
/// canceled, so that nobody keeps a namespace by beginning one after the other.
const GRACE: i64 = 86_400_000_000;

/// Takes namespaces that expired out of everybody's reach; tasks free what they held. Each goes once, however many
/// processes sweep.
///
/// # Errors
/// The database fails; what is left is found again.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let late = now - GRACE;
    for (org_id, id, ended) in store::expired(app.db(), now, late, ROUND).await? {
        match expire(app, &org_id, &id, ended <= late, now).await {
            Ok(true) => {
                tracing::info!(namespace_id = id, "a namespace expired");
                removed(app, &org_id, id).await;
            }
            // Prolonged or removed meanwhile.
            Ok(false) => {}
            // A batch began meanwhile.
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                tracing::warn!(%error, namespace_id = id, "a namespace that expired could not be removed");
            }
        }
    }
    Ok(())
}

/// Whether it was this call that removed the namespace.
async fn expire(app: &App, org_id: &str, id: &str, force: bool, now: i64) -> Result<bool> {
    let (caller, id) = (by_itself(org_id), id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::hold_expired(tx, &caller.org_id, &id, now).await? {
                    return Ok(false);
                }
                let record = NAMESPACES.find_in(tx, &caller.org_id, &id).await?;
                remove(tx, &caller, record, force, now).await?;
                Ok(true)
            })
        })
        .await
}

/// The server itself: the audit log says why.
fn by_itself(org_id: &str) -> Caller {
    let via = Via {
        reason: Some("expired".into()),
        ..Via::default()
    };
    Caller {
        via: Arc::new(via),
        ..Caller::system(org_id)
    }
}
