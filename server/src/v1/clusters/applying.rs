//! Clusters that are executed as documents come: by what a cluster says of itself, and by what collections apply. Both are
//! triggers that the server keeps; they count batches, rest, fail and are told as any other.

use loupe_wire::{ClusterApplicationConfig, ClusterModel, CollectionResponse, NamespaceOperation};
use serde_json::json;

use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{Result, Violation},
    v1::{
        collections::COLLECTIONS,
        namespaces::push_event,
        triggers::{self, Kept},
    },
};

/// Clusters that one collection applies.
const MAX_APPLICATIONS: usize = 20;

/// Checks what a collection is to apply, and puts ids in place of names.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, the 422 list for what is out of bounds.
pub async fn check_applications(
    app: &App,
    scope: &Scope<Write>,
    applications: Option<Vec<ClusterApplicationConfig>>,
) -> Result<Option<Vec<ClusterApplicationConfig>>> {
    let Some(mut applications) = applications else {
        return Ok(None);
    };
    if applications.len() > MAX_APPLICATIONS {
        let msg = format!("a collection applies at most {MAX_APPLICATIONS} clusters");
        let path = ["cluster_applications"];
        return Err(Violation::body(&path, "too_long", msg, applications.len().into()).into());
    }
    for (place, one) in applications.iter_mut().enumerate() {
        let place = place.to_string();
        let refuse = |member: &str, msg: &str, input: i64| {
            let path = ["cluster_applications", &place, member];
            Err(Violation::body(&path, "value_error", msg, input.into()).into())
        };
        match one.min_document_threshold {
            Some(least) if !(1..=1_000_000_000).contains(&least) => {
                let msg = "must be between 1 and 1000000000";
                return refuse("min_document_threshold", msg, least);
            }
            _ => {}
        }
        if !(0..=31_536_000).contains(&one.cooldown_seconds) {
            let msg = "must be between 0 and 31536000";
            return refuse("cooldown_seconds", msg, one.cooldown_seconds);
        }
        let operation = NamespaceOperation::ExecuteJob;
        let found = super::find(app, scope, &one.cluster_id, operation).await?;
        one.cluster_id = found.told.cluster_id.unwrap_or_default();
    }
    let mut known = std::collections::HashSet::new();
    applications.retain(|one| known.insert(one.cluster_id.clone()));
    Ok(Some(applications))
}

/// Keeps the triggers of what a collection applies.
///
/// # Errors
/// 409 where the namespace has as many triggers as it may have.
pub async fn apply(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    collection: &CollectionResponse,
    now: i64,
) -> Result<()> {
    let Some(applied) = &collection.cluster_applications else {
        return Ok(());
    };
    let id = collection.collection_id.as_deref().unwrap_or_default();
    let applied = applied.iter().filter(|one| one.auto_execute_on_batch);
    let wanted: Vec<Kept> = applied
        .map(|one| Kept {
            cluster_id: one.cluster_id.clone(),
            collection_id: id.to_owned(),
            documents: one.min_document_threshold.unwrap_or(1),
            cooldown: one.cooldown_seconds,
        })
        .collect();
    triggers::keep(tx, caller, namespace_id, id, &wanted, now).await
}

/// Ends the triggers of a collection that goes.
///
/// # Errors
/// The database does not answer.
pub async fn forget_collection(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    id: &str,
    now: i64,
) -> Result<()> {
    triggers::keep(tx, caller, namespace_id, id, &[], now).await
}

/// Keeps the triggers of a cluster that is executed as batches end in its collections.
///
/// # Errors
/// 409 where the namespace has as many triggers as it may have.
pub(super) async fn keep_own(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    model: &ClusterModel,
    now: i64,
) -> Result<()> {
    if !model.auto_execute_on_batch {
        return Ok(());
    }
    let id = model.cluster_id.as_deref().unwrap_or_default();
    let collections = model.collection_ids.iter().flatten();
    let wanted: Vec<Kept> = collections
        .map(|collection_id| Kept {
            cluster_id: id.to_owned(),
            collection_id: collection_id.clone(),
            documents: model.auto_execute_min_documents.unwrap_or(1),
            cooldown: model.auto_execute_cooldown_seconds,
        })
        .collect();
    triggers::keep(tx, caller, namespace_id, id, &wanted, now).await
}

/// Ends the triggers that are kept for a cluster, and takes it out of what collections apply, with an event of each.
///
/// # Errors
/// The database does not answer.
pub(super) async fn forget_cluster(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    id: &str,
    now: i64,
) -> Result<()> {
    let applies = |one: &Record<CollectionResponse>| {
        let mut applied = one.cluster_applications.iter().flatten();
        applied.any(|applied| applied.cluster_id == id)
    };
    let held = COLLECTIONS.hold_some(tx, namespace_id, applies).await?;
    triggers::forget_kept(tx, namespace_id, id, now).await?;
    for record in held {
        let mut collection = record.data.0;
        let Some(applications) = &mut collection.cluster_applications else {
            continue;
        };
        let before = applications.len();
        applications.retain(|one| one.cluster_id != id);
        if applications.len() < before {
            collection.updated_at = Some(clock::time(now));
            let (id, name) = (&record.id, &record.name);
            COLLECTIONS
                .update(tx, namespace_id, id, name, now, &collection)
                .await?;
            let told = json!({ "collection_id": id });
            push_event(tx, org_id, namespace_id, "collection.updated", told, now).await?;
        }
    }
    Ok(())
}
