//! What becomes of a collection: changed, switched on again, deleted with what reads it.

use loupe_wire::{
    AuditAction, CollectionDisabledReason, CollectionDisabledReasonCode, CollectionResponse,
    CollectionResponseSchemaValidation as Mode, NamespaceOperation, ResourceType,
    UpdateCollectionRequest, UpdateCollectionRequestSchemaValidation as WantedMode, Value,
};
use serde_json::json;

use super::{
    super::{
        audit::{self, Change},
        batches, clusters,
        documents::schema::Schema,
        namespaces::push_event,
        removal, taxonomies, triggers,
    },
    COLLECTIONS, check_alerts, check_name, count_documents, enriching, find, lifecycle, naming,
    scheduling, sources, store, unbuilt,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
};

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    mut request: UpdateCollectionRequest,
) -> Result<CollectionResponse> {
    check_alone(app, scope, &request).await?;
    let found = find(app, scope, identifier, NamespaceOperation::WriteData).await?;
    let names = request.index_map.take();
    request.index_map = names
        .map(|sent| naming::check(app, &found, sent))
        .transpose()?;
    let id = found.collection_id.unwrap_or_default();
    let applications = request.taxonomy_applications.take();
    request.taxonomy_applications =
        taxonomies::check_applications(app, scope, applications).await?;
    let applied = request.cluster_applications.take();
    let applied = clusters::check_applications(app, scope, applied).await?;
    let enrichments = request.retriever_enrichments.take();
    request.retriever_enrichments = enriching::check(app, scope, enrichments).await?;
    let schedule = request.schedule.take();
    let schedule = scheduling::check(app, scope, schedule, (id.as_str(), &found.source)).await?;
    let (caller, namespace_id, now) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let changed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut collection = COLLECTIONS.hold(tx, &namespace_id, &id).await?.data.0;
                let before = collection.clone();
                if schedule.is_some() && applied.is_some() {
                    triggers::hold_all_of(tx, &caller.org_id, &namespace_id, &id).await?;
                }
                if request.enabled == Some(true) {
                    enable(tx, &namespace_id, &mut collection).await?;
                }
                merge(&mut collection, request)?;
                scheduling::change(tx, &caller, &namespace_id, &mut collection, schedule, now)
                    .await?;
                if applied.is_some() {
                    collection.cluster_applications = applied;
                    clusters::apply(tx, &caller, &namespace_id, &collection, now).await?;
                }
                collection.updated_at = Some(clock::time(now));
                write(tx, &caller, &namespace_id, (&before, &collection), now).await?;
                Ok(collection)
            })
        })
        .await?;
    let mut changed = [changed];
    count_documents(app, scope, &mut changed).await?;
    let [changed] = changed;
    Ok(changed)
}

/// What is wrong with a request whatever its collection is.
async fn check_alone(
    app: &App,
    scope: &Scope<Write>,
    request: &UpdateCollectionRequest,
) -> Result<()> {
    if let Some(name) = &request.collection_name {
        check_name(name)?;
    }
    unbuilt::check_tiering(request.tiering.as_ref())?;
    check_schema(request)?;
    check_alerts(app, scope, request.alert_applications.as_deref()).await
}

/// Writes a collection that is other than before, its record and its event.
async fn write(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    (before, collection): (&CollectionResponse, &CollectionResponse),
    now: i64,
) -> Result<()> {
    let (id, name) = (
        collection.collection_id.as_deref().unwrap_or_default(),
        &collection.collection_name,
    );
    COLLECTIONS
        .update(tx, namespace_id, id, name, now, collection)
        .await?;
    let change = Change {
        action: AuditAction::CollectionUpdated,
        resource: (ResourceType::Collection, id),
        changes: audit::difference(before, collection),
    };
    audit::record(tx, caller, change, now).await?;
    let payload = json!({ "collection_id": id });
    push_event(
        tx,
        &caller.org_id,
        namespace_id,
        "collection.updated",
        payload,
        now,
    )
    .await
}

/// Refuses a schema that documents cannot be checked against.
fn check_schema(request: &UpdateCollectionRequest) -> Result<()> {
    let Some(schema) = &request.document_schema else {
        return Ok(());
    };
    match Schema::read(schema) {
        Ok(_) => Ok(()),
        Err(fault) => {
            let inside = fault.path.iter().map(String::as_str);
            let path: Vec<&str> = std::iter::once("document_schema").chain(inside).collect();
            Err(Violation::body(&path, "value_error", fault.msg, Value::Null).into())
        }
    }
}

/// Puts what is sent in place of what was there.
fn merge(collection: &mut CollectionResponse, request: UpdateCollectionRequest) -> Result<()> {
    fn put<T>(place: &mut T, sent: Option<T>) {
        if let Some(sent) = sent {
            *place = sent;
        }
    }
    fn put_some<T>(place: &mut Option<T>, sent: Option<T>) {
        if sent.is_some() {
            *place = sent;
        }
    }
    put(&mut collection.collection_name, request.collection_name);
    put(&mut collection.description, request.description);
    put(&mut collection.enabled, request.enabled);
    put(
        &mut collection.schema_sync_enabled,
        request.schema_sync_enabled,
    );
    put(&mut collection.metadata, request.metadata);
    let applications = request.taxonomy_applications;
    put_some(&mut collection.taxonomy_applications, applications);
    put_some(
        &mut collection.alert_applications,
        request.alert_applications,
    );
    let enrichments = request.retriever_enrichments;
    put_some(&mut collection.retriever_enrichments, enrichments);
    put(&mut collection.index_map, request.index_map);
    put(&mut collection.document_schema, request.document_schema);
    let mode = request.schema_validation.map(|mode| match mode {
        WantedMode::Strict => Mode::Strict,
        WantedMode::Warn => Mode::Warn,
        WantedMode::Off => Mode::Off,
    });
    put(&mut collection.schema_validation, mode);
    if collection.document_schema.is_empty() && collection.schema_validation != Mode::Off {
        let msg = "there is no document_schema to check documents against";
        return Err(
            Violation::body(&["schema_validation"], "value_error", msg, Value::Null).into(),
        );
    }
    Ok(())
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
                // Before the first event, of this collection or of those that read it.
                if found.cluster_applications.is_some() {
                    triggers::hold_all_of(tx, org_id, &namespace_id, &id).await?;
                }
                triggers::end_schedule(tx, &namespace_id, &found, now).await?;
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
