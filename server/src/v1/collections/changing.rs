//! What becomes of a collection: changed, switched on again, deleted with what reads it.

use loupe_wire::{
    AuditAction, CollectionDisabledReason, CollectionDisabledReasonCode, CollectionResponse,
    NamespaceOperation, ResourceType, UpdateCollectionRequest, Value,
};
use serde_json::json;

use super::{
    super::{
        audit::{self, Change},
        batches, clusters,
        namespaces::push_event,
        removal, taxonomies,
    },
    COLLECTIONS, check_alerts, check_name, find, lifecycle, sources, store, unbuilt,
};
use crate::{
    app::App,
    auth::{Delete, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result},
};

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: UpdateCollectionRequest,
) -> Result<CollectionResponse> {
    if let Some(name) = &request.collection_name {
        check_name(name)?;
    }
    unbuilt::check_change(&request)?;
    check_alerts(app, scope, request.alert_applications.as_deref()).await?;
    let id = find(app, scope, identifier, NamespaceOperation::WriteData)
        .await?
        .collection_id
        .unwrap_or_default();
    let applications = request.taxonomy_applications;
    let applications = taxonomies::check_applications(app, scope, applications).await?;
    let applied = request.cluster_applications;
    let applied = clusters::check_applications(app, scope, applied).await?;
    let (caller, namespace_id, now) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut collection = COLLECTIONS.hold(tx, &namespace_id, &id).await?.data.0;
                let before = collection.clone();
                collection.collection_name = request
                    .collection_name
                    .unwrap_or(collection.collection_name);
                collection.description = request.description.or(collection.description);
                if request.enabled == Some(true) {
                    enable(tx, &namespace_id, &mut collection).await?;
                }
                collection.enabled = request.enabled.unwrap_or(collection.enabled);
                collection.schema_sync_enabled = request
                    .schema_sync_enabled
                    .unwrap_or(collection.schema_sync_enabled);
                collection.metadata = request.metadata.or(collection.metadata);
                collection.taxonomy_applications =
                    applications.or(collection.taxonomy_applications);
                collection.alert_applications =
                    request.alert_applications.or(collection.alert_applications);
                if applied.is_some() {
                    collection.cluster_applications = applied;
                    clusters::apply(tx, &caller, &namespace_id, &collection, now).await?;
                }
                collection.updated_at = Some(clock::time(now));
                COLLECTIONS
                    .update(
                        tx,
                        &namespace_id,
                        &id,
                        &collection.collection_name,
                        now,
                        &collection,
                    )
                    .await?;
                let change = Change {
                    action: AuditAction::CollectionUpdated,
                    resource: (ResourceType::Collection, &id),
                    changes: audit::difference(&before, &collection),
                };
                audit::record(tx, &caller, change, now).await?;
                push_event(
                    tx,
                    &caller.org_id,
                    &namespace_id,
                    "collection.updated",
                    json!({"collection_id": id}),
                    now,
                )
                .await?;
                Ok(collection)
            })
        })
        .await
}

/// Forgets why a collection was disabled, if it can be filled again.
async fn enable(
    tx: &mut Tx,
    namespace_id: &str,
    collection: &mut CollectionResponse,
) -> Result<()> {
    if collection.disabled_reason.is_none() {
        return Ok(());
    }
    let all = COLLECTIONS.all_in(tx, namespace_id).await?;
    let ids: Vec<String> = all.into_iter().map(|record| record.id).collect();
    if !sources::left(&collection.source, &ids) {
        let message = "every source of the collection was deleted: clone it with another source";
        return Err(ApiError::conflict("source_collection_deleted", message));
    }
    collection.disabled_reason = None;
    Ok(())
}

/// Disables the collections that read one that is gone: they keep their documents and get no more.
async fn disable_readers(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    (gone, name): (&str, &str),
    readers: Vec<Record<CollectionResponse>>,
    now: i64,
) -> Result<()> {
    for record in readers {
        let mut collection = record.data.0;
        collection.enabled = false;
        collection.updated_at = Some(clock::time(now));
        collection.disabled_reason = Some(CollectionDisabledReason {
            code: CollectionDisabledReasonCode::SourceCollectionDeleted,
            message: format!("the collection '{name}', which it reads, was deleted"),
            source_collection_id: Some(gone.to_owned()),
            source_collection_name: Some(name.to_owned()),
            disabled_at: Some(clock::time(now)),
        });
        let (id, own_name) = (&record.id, &record.name);
        COLLECTIONS
            .update(tx, namespace_id, id, own_name, now, &collection)
            .await?;
        let payload = json!({ "collection_id": id });
        push_event(tx, org_id, namespace_id, "collection.updated", payload, now).await?;
    }
    Ok(())
}

/// Takes the collection out of everybody's reach; a task frees its documents and their files.
pub async fn delete(app: &App, scope: &Scope<Delete>, identifier: &str) -> Result<()> {
    let id = find(app, scope, identifier, NamespaceOperation::DeleteData)
        .await?
        .collection_id
        .unwrap_or_default();
    let (caller, namespace_id, now) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let org_id = &caller.org_id;
                let reads = |one: &Record<CollectionResponse>| {
                    let mut sources = one.source.collection_ids.iter().flatten();
                    one.id == id || sources.any(|source| *source == id)
                };
                let mut held = COLLECTIONS.hold_some(tx, &namespace_id, reads).await?;
                let own = held.iter().position(|one| one.id == id);
                let gone = || ApiError::not_found("collection", &id);
                let found = held.swap_remove(own.ok_or_else(gone)?);
                lifecycle::check_deletable(&found)?;
                // Its documents would stay behind where the move leads.
                lifecycle::check_still(tx, org_id, &namespace_id, &id).await?;
                COLLECTIONS.delete(tx, &namespace_id, &id).await?;
                store::end_forgotten(tx, &namespace_id, &id).await?;
                let names = (id.as_str(), found.name.as_str());
                disable_readers(tx, org_id, &namespace_id, names, held, now).await?;
                batches::store::forget_collection(tx, &namespace_id, &id).await?;
                clusters::forget_collection(tx, &caller, &namespace_id, &id, now).await?;
                removal::enqueue_collection(tx, &caller.org_id, &namespace_id, &id, now).await?;
                let change = Change {
                    action: AuditAction::CollectionDeleted,
                    resource: (ResourceType::Collection, &id),
                    changes: Value::Null,
                };
                audit::record(tx, &caller, change, now).await?;
                let payload = json!({ "collection_id": id });
                let kind = "collection.deleted";
                push_event(tx, &caller.org_id, &namespace_id, kind, payload, now).await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}
