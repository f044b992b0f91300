//! Annotations: what people decide about documents. An edit makes a version; what it replaced stays readable, by number
//! and as of a moment.

mod bulk;
mod returning;
mod routes;
pub mod signal;
mod store;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use loupe_engine::store::WithVectors;
use loupe_wire::{
    AnnotationResponse, AnnotationRevision, AnnotationStatsResponse, AnnotationVersionDescriptor,
    AnnotationVersionsResponse, AuditAction, CreateAnnotationRequest, ListAnnotationsRequest,
    ListAnnotationsResponse, NamespaceOperation, Object, PatchAnnotationRequest, ResourceType,
};
use serde_json::{Value, json};

pub use returning::{Line, NEWEST, Target, copy, page, put_back};
pub use routes::router;

use self::signal::Changed;
use super::{
    audit::{self, Change},
    collections::COLLECTIONS,
    documents,
    namespaces::push_event,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Level, Read, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
};

/// Lists as of a moment have what was deleted since for so long, as the change feed has its events.
const KEPT_DAYS: i64 = 90;

/// What the ids of annotations begin with: who may do something to all of these may do it to every one.
const ANY: &str = "ann_";

/// Records a decision on a document that is there.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateAnnotationRequest,
) -> Result<AnnotationResponse> {
    allow(&scope.caller, ANY, NamespaceOperation::WriteData)?;
    let wanted = (request.collection_id.clone(), request.document_id.clone());
    let homes = homes(app, scope, vec![wanted.clone()]).await?;
    let Some(collection) = homes.get(&wanted).cloned() else {
        return Err(ApiError::not_found("document", &request.document_id));
    };
    let annotation = new(app, scope, request, collection);
    let (kept, edit) = (annotation.clone(), Edit::new(app, &scope.caller));
    app.db()
        .write(move |tx| Box::pin(async move { edit.insert(tx, &kept).await }))
        .await?;
    mirror(app, &scope.namespace_id, &annotation).await;
    Ok(annotation)
}

/// Brings the signal up to an annotation that was made or changed.
async fn mirror(app: &App, namespace_id: &str, annotation: &AnnotationResponse) {
    let mut changed = Changed::default();
    changed.current(annotation);
    signal::mirror(app, namespace_id, changed).await;
}

/// A collection and a document in it; without the collection, wherever in the namespace.
type Wanted = (Option<String>, String);

/// The collections that documents are in, of those that the key's scopes cover.
async fn homes<L: Level>(
    app: &App,
    scope: &Scope<L>,
    wanted: Vec<Wanted>,
) -> Result<HashMap<Wanted, String>> {
    let mut by_collection: HashMap<Option<String>, Vec<String>> = HashMap::new();
    for (collection, document) in wanted {
        by_collection.entry(collection).or_default().push(document);
    }
    let mut found = HashMap::new();
    for (collection, ids) in by_collection {
        let sight = match &collection {
            // The signal has no documents that anybody decides about.
            Some(one) if signal::named(one).is_some() => continue,
            Some(one) => {
                match documents::open(app, scope, one, NamespaceOperation::ReadData).await {
                    Ok((_, sight)) => sight,
                    Err(error) if error.is_not_found() => continue,
                    Err(error) => return Err(error),
                }
            }
            None => documents::everywhere(app, scope).await?,
        };
        for document in sight.get(app, &ids, WithVectors::No).await? {
            let key = (collection.clone(), document.document_id);
            found.insert(key, document.collection_id);
        }
    }
    Ok(found)
}

fn new<L>(
    app: &App,
    scope: &Scope<L>,
    request: CreateAnnotationRequest,
    collection_id: String,
) -> AnnotationResponse {
    let now = clock::time(app.clock().micros());
    let (actor_id, actor_type) = actor(&scope.caller);
    AnnotationResponse {
        annotation_id: Some(id::new(ANY)),
        document_id: request.document_id,
        collection_id: Some(collection_id),
        namespace_id: scope.namespace_id.clone(),
        label: request.label,
        confidence: request.confidence,
        reasoning: request.reasoning,
        payload: request.payload.unwrap_or_default(),
        metadata: request.metadata.unwrap_or_default(),
        retriever_id: request.retriever_id,
        execution_id: request.execution_id,
        stage_name: request.stage_name,
        actor_id,
        actor_type,
        created_at: Some(now),
        updated_at: Some(now),
        version: 1,
        revisions: Vec::new(),
    }
}

/// Who decided: a key, or the server itself.
fn actor(caller: &Caller) -> (String, String) {
    let kind = match caller.actor() {
        "system" => "system",
        _ => "api_key",
    };
    (caller.actor().to_owned(), kind.to_owned())
}

async fn tell(
    tx: &mut Tx,
    org_id: &str,
    kind: &'static str,
    annotation: &AnnotationResponse,
    now: i64,
) -> Result<()> {
    let payload = json!({
        "annotation_id": annotation.annotation_id,
        "document_id": annotation.document_id,
        "collection_id": annotation.collection_id,
        "label": annotation.label,
        "version": annotation.version,
    });
    push_event(tx, org_id, &annotation.namespace_id, kind, payload, now).await
}

pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    request: ListAnnotationsRequest,
    limit: i64,
    skip: i64,
) -> Result<ListAnnotationsResponse> {
    allow(&scope.caller, ANY, NamespaceOperation::ReadData)?;
    let wanted = store::Wanted {
        as_of: request.as_of.map(|at| at.timestamp_micros()),
        document_id: request.document_id.unwrap_or_default(),
        collection_id: collection_id(app, scope, request.collection_id).await?,
        label: request.label.unwrap_or_default(),
        actor_id: request.actor_id.unwrap_or_default(),
        retriever_id: request.retriever_id.unwrap_or_default(),
    };
    let (results, total_count) =
        store::list(app.db(), &scope.namespace_id, &wanted, limit, skip).await?;
    Ok(ListAnnotationsResponse {
        results,
        total_count,
        ..Default::default()
    })
}

/// The id of a collection that is named by id or name. One that is not there stays as sent: nothing is in it.
async fn collection_id(
    app: &App,
    scope: &Scope<Read>,
    identifier: Option<String>,
) -> Result<String> {
    let Some(identifier) = identifier.filter(|identifier| !identifier.is_empty()) else {
        return Ok(String::new());
    };
    match COLLECTIONS
        .known(app.db(), &scope.namespace_id, &identifier)
        .await
    {
        Ok(found) => Ok(found.id.clone()),
        Err(error) if error.is_not_found() => Ok(identifier),
        Err(error) => Err(error),
    }
}

pub async fn stats(
    app: &App,
    scope: &Scope<Read>,
    document_id: Option<String>,
    collection: Option<String>,
) -> Result<AnnotationStatsResponse> {
    allow(&scope.caller, ANY, NamespaceOperation::ReadData)?;
    let collection = collection_id(app, scope, collection).await?;
    let document = document_id.unwrap_or_default();
    let counts =
        store::count_by_label(app.db(), &scope.namespace_id, &document, &collection).await?;
    Ok(AnnotationStatsResponse {
        total: counts.iter().map(|(_, count)| count).sum(),
        by_label: counts.into_iter().collect(),
    })
}

pub async fn get(app: &App, scope: &Scope<Read>, id: &str) -> Result<AnnotationResponse> {
    allow(&scope.caller, id, NamespaceOperation::ReadData)?;
    store::find(app.db(), &scope.namespace_id, id).await
}

/// Changes what is sent; a change of nothing makes no version.
pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    id: &str,
    request: PatchAnnotationRequest,
) -> Result<AnnotationResponse> {
    allow(&scope.caller, id, NamespaceOperation::WriteData)?;
    let edit = Edit::new(app, &scope.caller);
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let annotation = app
        .db()
        .write(move |tx| Box::pin(async move { edit.apply(tx, &namespace_id, &id, request).await }))
        .await?;
    mirror(app, &scope.namespace_id, &annotation).await;
    Ok(annotation)
}

pub async fn delete(app: &App, scope: &Scope<Delete>, id: &str) -> Result<()> {
    allow(&scope.caller, id, NamespaceOperation::DeleteData)?;
    let edit = Edit::new(app, &scope.caller);
    let mut changed = Changed::default();
    changed.gone(id.to_owned());
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    app.db()
        .write(move |tx| Box::pin(async move { edit.remove(tx, &namespace_id, &id).await }))
        .await?;
    signal::mirror(app, &scope.namespace_id, changed).await;
    Ok(())
}

fn allow(caller: &Caller, id: &str, operation: NamespaceOperation) -> Result<()> {
    caller.allow(ResourceType::Annotation, id, operation)
}

/// Somebody who changes annotations, now.
#[derive(Debug, Clone)]
struct Edit {
    caller: Caller,
    actor_id: String,
    actor_type: String,
    now: i64,
}

impl Edit {
    fn new(app: &App, caller: &Caller) -> Self {
        let (actor_id, actor_type) = actor(caller);
        Self {
            caller: caller.clone(),
            actor_id,
            actor_type,
            now: app.clock().micros(),
        }
    }

    async fn insert(&self, tx: &mut Tx, annotation: &AnnotationResponse) -> Result<()> {
        store::insert(tx, annotation, self.now, self.now).await?;
        let what = ("annotation.created", AuditAction::AnnotationCreated);
        self.tell(tx, what, annotation, about(annotation)).await
    }

    /// Tells the change feed and the audit log, and notes it for the signal.
    async fn tell(
        &self,
        tx: &mut Tx,
        (kind, action): (&'static str, AuditAction),
        annotation: &AnnotationResponse,
        changes: Value,
    ) -> Result<()> {
        tell(tx, &self.caller.org_id, kind, annotation, self.now).await?;
        signal::note(tx, annotation, self.now).await?;
        let id = annotation.annotation_id.as_deref().unwrap_or_default();
        let change = Change {
            action,
            resource: (ResourceType::Annotation, id),
            changes,
        };
        audit::record(tx, &self.caller, change, self.now).await
    }

    async fn apply(
        &self,
        tx: &mut Tx,
        namespace_id: &str,
        id: &str,
        request: PatchAnnotationRequest,
    ) -> Result<AnnotationResponse> {
        let (created_at, before) = store::find_in(tx, namespace_id, id).await?;
        let mut before = before.0;
        let mut after = before.clone();
        patch(&mut after, request);
        let changes = audit::difference(&edited(&before), &edited(&after));
        let prior = prior(&changes);
        if prior.is_empty() {
            return Ok(before);
        }
        self.revise(&before, &mut after, prior);
        // The current version carries the history; the ones before need not repeat it.
        before.revisions.clear();
        if !store::supersede(tx, &before, self.now).await? {
            let message = "the annotation was edited a moment ago: read it again";
            return Err(ApiError::conflict("", message).with("annotation_id", id));
        }
        store::insert(tx, &after, created_at, self.now).await?;
        let what = ("annotation.updated", AuditAction::AnnotationUpdated);
        self.tell(tx, what, &after, changes).await?;
        Ok(after)
    }

    /// Makes what it says from now on the version after the one before.
    fn revise(&self, before: &AnnotationResponse, after: &mut AnnotationResponse, prior: Object) {
        let at = clock::time(self.now);
        after.version = before.version + 1;
        after.updated_at = Some(at);
        after.revisions.push(AnnotationRevision {
            version: before.version,
            prior,
            edited_at: at,
            edited_by: self.actor_id.clone(),
            edited_by_type: self.actor_type.clone(),
        });
    }

    async fn remove(&self, tx: &mut Tx, namespace_id: &str, id: &str) -> Result<()> {
        loop {
            let (_, last) = store::find_in(tx, namespace_id, id).await?;
            // An edit that came between left another version to end.
            if store::end(tx, namespace_id, id, self.now).await? {
                let what = ("annotation.deleted", AuditAction::AnnotationDeleted);
                return self.tell(tx, what, &last.0, about(&last.0)).await;
            }
        }
    }
}

/// Removes what was deleted long ago.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let ended = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { store::delete(tx, ended).await }))
        .await?;
    Ok(())
}

/// What the audit log says of an annotation that came or went.
fn about(annotation: &AnnotationResponse) -> Value {
    json!({
        "document_id": annotation.document_id,
        "collection_id": annotation.collection_id,
        "label": annotation.label,
    })
}

fn patch(annotation: &mut AnnotationResponse, request: PatchAnnotationRequest) {
    let PatchAnnotationRequest {
        label,
        confidence,
        reasoning,
        payload,
        metadata,
    } = request;
    if let Some(label) = label {
        annotation.label = label;
    }
    if let Some(confidence) = confidence {
        annotation.confidence = confidence;
    }
    if let Some(reasoning) = reasoning {
        annotation.reasoning = reasoning;
    }
    if let Some(payload) = payload {
        annotation.payload = payload.unwrap_or_default();
    }
    if let Some(metadata) = metadata {
        annotation.metadata = metadata.unwrap_or_default();
    }
}

/// The members that an edit may change.
fn edited(of: &AnnotationResponse) -> Value {
    json!({
        "label": of.label,
        "confidence": of.confidence,
        "reasoning": of.reasoning,
        "payload": of.payload,
        "metadata": of.metadata,
    })
}

/// The members that changed, with what they were.
fn prior(changes: &Value) -> Object {
    let members = changes.as_object().into_iter().flatten();
    members
        .map(|(name, change)| (name.clone(), change["before"].clone()))
        .collect()
}

/// Every version, the current one first.
pub async fn versions(
    app: &App,
    scope: &Scope<Read>,
    id: &str,
) -> Result<AnnotationVersionsResponse> {
    let annotation = get(app, scope, id).await?;
    let first = AnnotationVersionDescriptor {
        version: 1,
        edited_at: annotation.created_at,
        edited_by: Some(annotation.actor_id),
        edited_by_type: Some(annotation.actor_type),
        ..Default::default()
    };
    let edits = annotation.revisions.into_iter().map(|revision| {
        let edited_at: DateTime<Utc> = revision.edited_at;
        AnnotationVersionDescriptor {
            version: revision.version + 1,
            current: false,
            edited_at: Some(edited_at),
            edited_by: Some(revision.edited_by),
            edited_by_type: Some(revision.edited_by_type),
            changed_fields: revision.prior.keys().cloned().collect(),
        }
    });
    let mut versions: Vec<_> = std::iter::once(first).chain(edits).collect();
    versions.reverse();
    if let Some(current) = versions.first_mut() {
        current.current = true;
    }
    Ok(AnnotationVersionsResponse {
        annotation_id: id.to_owned(),
        current_version: annotation.version,
        versions,
    })
}

/// The annotation as it was in one version.
pub async fn version(
    app: &App,
    scope: &Scope<Read>,
    id: &str,
    version: i64,
) -> Result<AnnotationResponse> {
    allow(&scope.caller, id, NamespaceOperation::ReadData)?;
    let found = store::find_version(app.db(), &scope.namespace_id, id, version).await?;
    found.ok_or_else(|| ApiError::not_found("annotation version", &format!("{id}/{version}")))
}
