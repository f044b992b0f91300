//! Namespaces whose time is over go as those that somebody deletes.

use std::sync::Arc;

use super::{NAMESPACES, is_being_made, remove, removed, store};
use crate::{
    app::App,
    auth::{Caller, Via},
    db::Tx,
    error::Result,
};

/// Namespaces of one sweep; what is left is for the next.
const ROUND: i64 = 100;

/// How long batches may go on in a namespace whose time is over, and copies of it be made, in microseconds: nothing takes
/// longer. Then batches are canceled, so that nobody keeps a namespace by beginning one after the other.
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
            Ok(Some(hashes)) => {
                tracing::info!(namespace_id = id, "a namespace expired");
                removed(app, &org_id, id, &hashes).await;
            }
            // Prolonged or removed meanwhile, or copied from still.
            Ok(None) => {}
            // A batch began meanwhile.
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                tracing::warn!(%error, namespace_id = id, "a namespace that expired could not be removed");
            }
        }
    }
    Ok(())
}

/// The keys that ended with the namespace, where it was this call that removed it.
async fn expire(
    app: &App,
    org_id: &str,
    id: &str,
    force: bool,
    now: i64,
) -> Result<Option<Vec<String>>> {
    let (caller, id) = (by_itself(org_id), id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::hold_expired(tx, &caller.org_id, &id, now).await? {
                    return Ok(None);
                }
                let record = NAMESPACES.find_in(tx, &caller.org_id, &id).await?;
                // What is shown counts. A process of an older version, beside this one, changes nothing else.
                let ended = record
                    .expires_at
                    .is_some_and(|at| at.timestamp_micros() <= now);
                if !ended {
                    store::set_expiry(tx, &caller.org_id, &id, record.expires_at).await?;
                    return Ok(None);
                }
                if !force && is_copied(tx, &caller.org_id, &id).await? {
                    return Ok(None);
                }
                let (_, hashes) = remove(tx, &caller, record, force, now).await?;
                Ok(Some(hashes))
            })
        })
        .await
}

/// Whether another namespace is being made of this one: it would have a part of the documents, and look whole.
async fn is_copied(tx: &mut Tx, org_id: &str, id: &str) -> Result<bool> {
    let all = NAMESPACES.all_in(tx, org_id).await?;
    Ok(all
        .iter()
        .any(|one| one.source_namespace_id.as_deref() == Some(id) && is_being_made(one)))
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
