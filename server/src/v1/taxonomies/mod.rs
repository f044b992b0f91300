//! Taxonomies: nodes that documents belong to, found by retrievers, and what documents take over from them. How nodes are
//! found and what is taken over never changes: other ways are clones.

mod applying;
mod building;
mod config;
mod enriched;
mod executing;
mod inferring;
mod ingesting;
pub mod nodes;
mod promoting;
mod routes;
mod store;

use loupe_wire::{
    AuditAction, CloneTaxonomyRequest, CloneTaxonomyResponse, CollectionResponse,
    CreateTaxonomyRequest, CreateTaxonomyVersionRequest, ListTaxonomiesResponse,
    NamespaceOperation, Object, PatchTaxonomyRequest, ResourceType, TaxonomyConfig,
    TaxonomyResponse, Value,
};
use serde_json::json;

pub use applying::{APPLY, Apply, apply, check, give_up, keep, run};
pub use building::ready;
pub use executing::outputs;
pub use ingesting::{at_ingest, check_applications, keywords_with};
pub use routes::router;
pub use store::TAXONOMIES;

use super::{
    audit::{self, Change},
    collections::COLLECTIONS,
    namespaces::push_event,
    retrievers::cast,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Level, Read, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
    id,
    limits::quota::{self, Resource},
    list::ListParams,
};

/// Versions of one taxonomy.
const MAX_VERSIONS: i64 = 1_000;
const MAX_METADATA: usize = 64 << 10;

fn check_texts(
    name: Option<&str>,
    description: Option<&str>,
    metadata: Option<&Object>,
) -> Result<()> {
    let refuse = |member: &str, kind: &str, msg: &str| {
        ApiError::from(Violation::body(&[member], kind, msg, Value::Null))
    };
    if name.is_some_and(|name| !(1..=200).contains(&name.trim().chars().count())) {
        let msg = "a name has 1 to 200 characters";
        return Err(refuse("taxonomy_name", "string_too_short", msg));
    }
    if description.is_some_and(|text| text.chars().count() > 2_000) {
        let msg = "a description has at most 2000 characters";
        return Err(refuse("description", "string_too_long", msg));
    }
    let size = metadata.map_or(0, |one| json!(one).to_string().len());
    if size > MAX_METADATA {
        let msg = "metadata is at most 64 KiB of JSON";
        return Err(refuse("metadata", "too_long", msg));
    }
    Ok(())
}

/// The stored taxonomy, if the caller's scopes cover it. By id or name.
pub async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<TaxonomyResponse> {
    let record = TAXONOMIES
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Taxonomy, &record.id, operation)?;
    Ok(record.data.0)
}

/// As it was in that version, with its name of today.
async fn at_version<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    version: Option<i64>,
    operation: NamespaceOperation,
) -> Result<TaxonomyResponse> {
    let now = find(app, scope, identifier, operation).await?;
    match version.filter(|version| *version != now.version) {
        None => Ok(now),
        Some(version) => {
            let id = now.taxonomy_id.as_deref().unwrap_or_default();
            let mut then = store::version(app.db(), &scope.namespace_id, id, version).await?;
            then.taxonomy_name = now.taxonomy_name;
            Ok(then)
        }
    }
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateTaxonomyRequest,
) -> Result<TaxonomyResponse> {
    let operation = NamespaceOperation::WriteData;
    scope.caller.allow(ResourceType::Taxonomy, "*", operation)?;
    let (name, description) = (&request.taxonomy_name, request.description.as_deref());
    check_texts(Some(name), description, request.metadata.as_ref())?;
    let mut config = request.config;
    config::check(app, scope, &mut config).await?;
    let now = app.clock().micros();
    let (retriever_id, input_mappings) = config::core(&config);
    let mut taxonomy = TaxonomyResponse {
        taxonomy_id: Some(id::new("tax_")),
        version: 1,
        taxonomy_name: request.taxonomy_name.trim().to_owned(),
        description: request.description,
        retriever_id,
        input_mappings,
        config,
        created_at: Some(clock::time(now)),
        metadata: request.metadata.unwrap_or_default(),
        ..Default::default()
    };
    taxonomy.nodes = nodes::of(app, &scope.namespace_id, &taxonomy).await?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                insert(tx, &caller, &namespace_id, &taxonomy, now).await?;
                Ok(taxonomy)
            })
        })
        .await
}

/// Writes a new taxonomy, its first version, its record and its event.
pub async fn insert(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    taxonomy: &TaxonomyResponse,
    now: i64,
) -> Result<()> {
    let id = taxonomy.taxonomy_id.as_deref().unwrap_or_default();
    let name = &taxonomy.taxonomy_name;
    quota::check(tx, &caller.org_id, Resource::Taxonomies).await?;
    TAXONOMIES
        .insert(tx, namespace_id, id, name, now, taxonomy)
        .await?;
    store::insert_version(tx, namespace_id, taxonomy, now).await?;
    let told = json!({ "taxonomy_id": id, "taxonomy_name": name, "version": taxonomy.version });
    let change = Change {
        action: AuditAction::TaxonomyCreated,
        resource: (ResourceType::Taxonomy, id),
        changes: told.clone(),
    };
    audit::record(tx, caller, change, now).await?;
    let kind = "taxonomy.created";
    push_event(tx, &caller.org_id, namespace_id, kind, told, now).await
}

/// One taxonomy, as it is or as a version of it was. What its documents tell of its tree is told as it is now.
pub async fn get(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    version: Option<i64>,
) -> Result<TaxonomyResponse> {
    let operation = NamespaceOperation::ReadData;
    let mut taxonomy = at_version(app, scope, identifier, version, operation).await?;
    if version.is_none() {
        taxonomy.nodes = nodes::of(app, &scope.namespace_id, &taxonomy).await?;
    }
    Ok(taxonomy)
}

pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    params: &ListParams,
) -> Result<ListTaxonomiesResponse> {
    let (kind, owner) = (ResourceType::Taxonomy, &scope.namespace_id);
    let page = scope
        .caller
        .list(app, &TAXONOMIES, kind, owner, params)
        .await?;
    Ok(ListTaxonomiesResponse {
        total_count: page.total_count(params),
        pagination: cast(&page.pagination)?,
        stats: Some(store::stats(&page.results)),
        results: page.results,
        ..Default::default()
    })
}

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PatchTaxonomyRequest,
) -> Result<TaxonomyResponse> {
    let (name, description) = (
        request.taxonomy_name.as_deref(),
        request.description.as_ref().and_then(Option::as_deref),
    );
    let metadata = request.metadata.as_ref().and_then(Option::as_ref);
    check_texts(name, description, metadata)?;
    change(app, scope, identifier, move |taxonomy| {
        if let Some(name) = request.taxonomy_name {
            taxonomy.taxonomy_name = name.trim().to_owned();
        }
        if let Some(description) = request.description {
            taxonomy.description = description;
        }
        if let Some(metadata) = request.metadata {
            taxonomy.metadata = metadata.unwrap_or_default();
        }
        Ok(())
    })
    .await
}

/// Edits the taxonomy in one transaction; a version that rises is kept beside those before it.
async fn change(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    edit: impl FnOnce(&mut TaxonomyResponse) -> Result<()> + Send + 'static,
) -> Result<TaxonomyResponse> {
    let operation = NamespaceOperation::WriteData;
    let found = find(app, scope, identifier, operation).await?;
    let id = found.taxonomy_id.unwrap_or_default();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let before = TAXONOMIES.hold(tx, &namespace_id, &id).await?.data.0;
                let mut taxonomy = before.clone();
                edit(&mut taxonomy)?;
                let name = &taxonomy.taxonomy_name;
                TAXONOMIES
                    .update(tx, &namespace_id, &id, name, now, &taxonomy)
                    .await?;
                if taxonomy.version > before.version {
                    store::insert_version(tx, &namespace_id, &taxonomy, now).await?;
                }
                let change = Change {
                    action: AuditAction::TaxonomyUpdated,
                    resource: (ResourceType::Taxonomy, &id),
                    changes: audit::difference(&before, &taxonomy),
                };
                audit::record(tx, &caller, change, now).await?;
                let told = json!({ "taxonomy_id": id, "taxonomy_name": name, "version": taxonomy.version });
                push_event(tx, &caller.org_id, &namespace_id, "taxonomy.updated", told, now).await?;
                Ok(taxonomy)
            })
        })
        .await
}

/// A new version: other settings around the same core, and the tree as it is now.
pub async fn new_version(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: CreateTaxonomyVersionRequest,
) -> Result<TaxonomyResponse> {
    check_texts(None, request.description.as_deref(), None)?;
    let operation = NamespaceOperation::WriteData;
    let mut next = find(app, scope, identifier, operation).await?;
    if let Some(mut config) = request.config {
        config::check(app, scope, &mut config).await?;
        config::keeps_core(&next.config, &config)?;
        next.config = config;
    }
    next.nodes = nodes::of(app, &scope.namespace_id, &next).await?;
    let from = next.version;
    if from >= MAX_VERSIONS {
        let message = format!("a taxonomy has at most {MAX_VERSIONS} versions: clone it");
        return Err(ApiError::conflict("", message));
    }
    change(app, scope, identifier, move |taxonomy| {
        if taxonomy.version != from {
            let message = "another version was made at the same time: read the taxonomy again";
            return Err(ApiError::conflict("", message));
        }
        taxonomy.config = next.config;
        taxonomy.nodes = next.nodes;
        taxonomy.version += 1;
        taxonomy.description = request.description.or(taxonomy.description.take());
        Ok(())
    })
    .await
}

/// Every version, newest first.
pub async fn versions(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
) -> Result<ListTaxonomiesResponse> {
    let operation = NamespaceOperation::ReadData;
    let taxonomy = find(app, scope, identifier, operation).await?;
    let id = taxonomy.taxonomy_id.as_deref().unwrap_or_default();
    let results = store::versions(app.db(), &scope.namespace_id, id, MAX_VERSIONS).await?;
    let total = i64::try_from(results.len()).unwrap_or(i64::MAX);
    let params = ListParams {
        limit: total.max(1),
        ..Default::default()
    };
    Ok(ListTaxonomiesResponse {
        pagination: cast(&params.pagination(results.len(), false, Some(total)))?,
        total_count: total,
        results,
        ..Default::default()
    })
}

/// A copy with another name, and another configuration or retriever where sent.
pub async fn clone(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: CloneTaxonomyRequest,
) -> Result<CloneTaxonomyResponse> {
    let source = find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let mut config = request.config.unwrap_or(source.config);
    if let Some(retriever) = request.retriever_id {
        match &mut config {
            TaxonomyConfig::Flat(flat) => flat.retriever_id = retriever,
            TaxonomyConfig::Hierarchical(tree) => tree.retriever_id = Some(retriever),
        }
    }
    let create_request = CreateTaxonomyRequest {
        taxonomy_name: request.taxonomy_name,
        description: request.description.or(source.description),
        config,
        metadata: Some(source.metadata),
    };
    let made = create(app, scope, create_request).await?;
    Ok(CloneTaxonomyResponse {
        // Two faces of one resource: the members are the same.
        taxonomy: cast(&made)?,
        source_taxonomy_id: source.taxonomy_id.unwrap_or_default(),
        taxonomy_id: made.taxonomy_id,
    })
}

/// Removes a taxonomy with its versions; collections apply it no more. What documents took over stays theirs.
pub async fn delete(app: &App, scope: &Scope<Delete>, identifier: &str) -> Result<()> {
    let operation = NamespaceOperation::DeleteData;
    let found = find(app, scope, identifier, operation).await?;
    let id = found.taxonomy_id.unwrap_or_default();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                TAXONOMIES.delete(tx, &namespace_id, &id).await?;
                store::delete_versions(tx, &namespace_id, &id).await?;
                forget(tx, &caller.org_id, &namespace_id, &id, now).await?;
                let change = Change {
                    action: AuditAction::TaxonomyDeleted,
                    resource: (ResourceType::Taxonomy, &id),
                    changes: Value::Null,
                };
                audit::record(tx, &caller, change, now).await?;
                let told = json!({ "taxonomy_id": id });
                push_event(
                    tx,
                    &caller.org_id,
                    &namespace_id,
                    "taxonomy.deleted",
                    told,
                    now,
                )
                .await
            })
        })
        .await
}

/// Takes a taxonomy out of what collections apply, and tells of each.
async fn forget(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    taxonomy_id: &str,
    now: i64,
) -> Result<()> {
    let applies = |one: &Record<CollectionResponse>| {
        let mut applied = one.taxonomy_applications.iter().flatten();
        applied.any(|applied| applied.taxonomy_id == taxonomy_id)
    };
    for record in COLLECTIONS.hold_some(tx, namespace_id, applies).await? {
        let mut collection = record.data.0;
        if let Some(applications) = &mut collection.taxonomy_applications {
            applications.retain(|one| one.taxonomy_id != taxonomy_id);
        }
        collection.updated_at = Some(clock::time(now));
        let (id, name) = (&record.id, &record.name);
        COLLECTIONS
            .update(tx, namespace_id, id, name, now, &collection)
            .await?;
        let told = json!({ "collection_id": id });
        push_event(tx, org_id, namespace_id, "collection.updated", told, now).await?;
    }
    Ok(())
}
