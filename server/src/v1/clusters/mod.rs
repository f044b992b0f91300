//! Clusters: ways to gather documents by their vectors or attributes, executed one at a time, each execution with its
//! members, names, figures and picture.

mod applying;
mod classic;
mod composing;
mod computing;
mod config;
mod ending;
mod executed;
mod exporting;
mod features;
mod hierarchy;
mod labels;
mod members;
mod params;
mod picturing;
mod reading;
mod returning;
mod routes;
mod running;
mod settings;
mod showing;
mod steps;
mod store;
mod telling;
mod triggered;

use loupe_wire::{
    AuditAction, ClusterListStats, ClusterMetadata, ClusterModel, ClusterType,
    CreateClusterRequest, Filter, ListClustersResponse, NamespaceOperation, PatchClusterRequest,
    ResourceType, Value,
};
use serde_json::json;

pub use applying::{apply, check_applications, forget_collection};
pub use ending::give_up;
pub use executed::{Executed, executed, figures, known, made_by, spread};
pub use returning::{Kept, all};
pub use routes::router;
pub use running::{RUN, is_busy, run};
pub use showing::{middles, runs_of};
pub use store::{CLUSTERS, Stored};
pub use triggered::{fire, of_trigger};

use super::{
    audit::{self, Change},
    collections,
    namespaces::push_event,
    removal,
    tasks::name_of,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Level, Read, Scope, Write},
    clock,
    db::Tx,
    error::{Result, Violation},
    id,
    limits::quota::{self, Resource},
    list::ListParams,
};

/// The stored cluster, if the caller's scopes cover it. By id or name.
async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<Stored> {
    let record = CLUSTERS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Cluster, &record.id, operation)?;
    Ok(record.data.0)
}

/// What is told of a cluster follows from how it was asked for.
fn describe(stored: &mut Stored) {
    let (told, model) = (&mut stored.told, &stored.model);
    told.description.clone_from(&model.description);
    told.metadata.clone_from(&model.metadata);
    told.input_collections = model.collection_ids.clone().unwrap_or_default();
    told.source_cluster_ids
        .clone_from(&model.source_cluster_ids);
    told.filters = model
        .filters
        .as_ref()
        .and_then(|filter| filter.0.as_object().cloned());
    told.cluster_type = model.cluster_type;
    told.enrich_source = members::is_told(model);
    told.source_enrichment_config
        .clone_from(&model.source_enrichment_config);
    told.llm_labeling.clone_from(&model.llm_labeling);
    if let Some(attributes) = &model.attribute_config {
        told.clustered_attributes = Some(attributes.attributes.clone());
        told.hierarchical_grouping = Some(attributes.hierarchical_grouping);
        told.algorithm = Some("attribute_based".into());
    }
    if let Some(vectors) = &model.vector_config {
        let features = features::named(vectors);
        told.feature_uris = (!features.is_empty()).then_some(features);
        told.multi_feature_strategy = vectors.multi_feature_strategy.map(name_of);
        told.sample_size = vectors.sample_size;
        told.vis_n_components = Some(vectors.vis_n_components);
        told.layout_stability = vectors.layout_stability;
        told.hierarchical_vector = Some(vectors.hierarchical);
        told.max_hierarchy_depth = vectors.hierarchical.then_some(vectors.max_hierarchy_depth);
        let steps = vectors.preprocessing_steps.iter();
        told.preprocessing_steps = steps.filter_map(|one| one.as_object().cloned()).collect();
        told.algorithm = Some(name_of(vectors.clustering_method));
        let own = [
            &vectors.kmeans_parameters,
            &vectors.dbscan_parameters,
            &vectors.hdbscan_parameters,
        ];
        let sent = own
            .into_iter()
            .flatten()
            .next()
            .or(vectors.algorithm_params.as_ref());
        told.algorithm_params = sent.and_then(|sent| sent.as_object().cloned());
    }
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateClusterRequest,
) -> Result<ClusterMetadata> {
    let operation = NamespaceOperation::CreateCluster;
    scope.caller.allow(ResourceType::Cluster, "*", operation)?;
    let model = config::check(app, scope, request).await?;
    if members::is_told(&model) {
        may_write(
            app,
            scope,
            model.collection_ids.as_deref().unwrap_or_default(),
        )
        .await?;
    }
    let now = app.clock().micros();
    let stored = first_state(model, &scope.namespace_id, now);
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                insert(tx, &caller, &namespace_id, &stored, now).await?;
                Ok(stored.told)
            })
        })
        .await
}

/// Writes a new cluster, its record and its event.
///
/// # Errors
/// 409 for a name that is taken and for too many; the database does not answer.
pub async fn insert(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    stored: &Stored,
    now: i64,
) -> Result<()> {
    let id = stored.told.cluster_id.as_deref().unwrap_or_default();
    let (name, org_id) = (&stored.told.cluster_name, &caller.org_id);
    quota::check(tx, org_id, Resource::Clusters).await?;
    CLUSTERS
        .insert(tx, namespace_id, id, name, now, stored)
        .await?;
    applying::keep_own(tx, caller, namespace_id, &stored.model, now).await?;
    let told = json!({ "cluster_id": id, "cluster_name": name });
    let change = Change {
        action: AuditAction::ClusterCreated,
        resource: (ResourceType::Cluster, id),
        changes: told.clone(),
    };
    audit::record(tx, caller, change, now).await?;
    push_event(tx, org_id, namespace_id, "cluster.created", told, now).await
}

/// Writes a cluster that is other than before, its record and its event.
async fn write(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    (before, stored): (&ClusterModel, &Stored),
    now: i64,
) -> Result<()> {
    let id = stored.told.cluster_id.as_deref().unwrap_or_default();
    let (name, org_id) = (&stored.told.cluster_name, &caller.org_id);
    CLUSTERS
        .update(tx, namespace_id, id, name, now, stored)
        .await?;
    let change = Change {
        action: AuditAction::ClusterUpdated,
        resource: (ResourceType::Cluster, id),
        changes: audit::difference(before, &stored.model),
    };
    audit::record(tx, caller, change, now).await?;
    let told = json!({ "cluster_id": id, "cluster_name": name });
    push_event(tx, org_id, namespace_id, "cluster.updated", told, now).await
}

/// A new cluster with its id, named by that where its maker has no name for it.
fn first_state(model: ClusterModel, namespace_id: &str, now: i64) -> Stored {
    under(id::new("clust_"), model, namespace_id, now)
}

/// As [`first_state`], under an id that is there already.
fn under(cluster_id: String, mut model: ClusterModel, namespace_id: &str, now: i64) -> Stored {
    let name = model.cluster_name.take().map(|name| name.trim().to_owned());
    let name = name.unwrap_or_else(|| cluster_id.clone());
    model.cluster_name = Some(name.clone());
    model.cluster_id = Some(cluster_id.clone());
    model.created_at = Some(clock::time(now));
    model.updated_at = model.created_at;
    let mut stored = Stored {
        told: ClusterMetadata {
            cluster_id: Some(cluster_id),
            cluster_name: name,
            namespace_id: namespace_id.to_owned(),
            created_at: model.created_at,
            updated_at: model.created_at,
            ..Default::default()
        },
        model,
    };
    describe(&mut stored);
    stored
}

/// Whoever lets documents be told of their clusters could write them.
async fn may_write(app: &App, scope: &Scope<Write>, collection_ids: &[String]) -> Result<()> {
    for id in collection_ids {
        let operation = NamespaceOperation::WriteData;
        collections::known(app, scope, id, operation).await?;
    }
    Ok(())
}

pub async fn get(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<ClusterMetadata> {
    let operation = NamespaceOperation::ReadData;
    Ok(find(app, scope, identifier, operation).await?.told)
}

pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    params: &ListParams,
) -> Result<ListClustersResponse> {
    let (kind, owner) = (ResourceType::Cluster, &scope.namespace_id);
    let page = scope
        .caller
        .list(app, &CLUSTERS, kind, owner, params)
        .await?;
    let total_count = page.total_count(params);
    let results: Vec<ClusterMetadata> = page.results.into_iter().map(|one| one.told).collect();
    Ok(ListClustersResponse {
        stats: Some(stats(&results)),
        pagination: page.pagination,
        total_count,
        results,
        ..Default::default()
    })
}

/// What a page of clusters adds up to.
fn stats(clusters: &[ClusterMetadata]) -> ClusterListStats {
    let count = i64::try_from(clusters.len()).unwrap_or(i64::MAX);
    let documents: i64 = clusters
        .iter()
        .filter_map(|one| one.num_documents_clustered)
        .sum();
    let mut by_status = indexmap::IndexMap::new();
    for one in clusters {
        *by_status.entry(name_of(one.status)).or_insert(0) += 1;
    }
    ClusterListStats {
        total_clusters: count,
        total_documents: documents,
        avg_documents_per_cluster: documents as f64 / count.max(1) as f64,
        clusters_by_status: by_status,
    }
}

/// The clusters that a change names as sources, with their collections; none where it names none. A cluster that tells
/// documents of itself may do so in those, too.
async fn new_sources(
    app: &App,
    scope: &Scope<Write>,
    model: &ClusterModel,
    id: &str,
    request: &PatchClusterRequest,
) -> Result<Option<(Vec<String>, Vec<String>)>> {
    let Some(named) = &request.source_cluster_ids else {
        return Ok(None);
    };
    let sources = config::sources(app, scope, named, id).await?;
    if members::is_told(model) {
        may_write(app, scope, &sources.1).await?;
    }
    Ok(Some(sources))
}

/// Changes what is sent; the next execution follows it.
pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PatchClusterRequest,
) -> Result<ClusterModel> {
    let operation = NamespaceOperation::ModifyCluster;
    let before = find(app, scope, identifier, operation).await?;
    check_patch(&before.model, &request)?;
    let id = before.told.cluster_id.unwrap_or_default();
    let sources = new_sources(app, scope, &before.model, &id, &request).await?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut stored = CLUSTERS.hold(tx, &namespace_id, &id).await?.data.0;
                let before = stored.model.clone();
                patch(&mut stored, request);
                if let Some((source_cluster_ids, collection_ids)) = sources {
                    stored.model.source_cluster_ids = source_cluster_ids;
                    stored.model.collection_ids = Some(collection_ids);
                    applying::keep_own(tx, &caller, &namespace_id, &stored.model, now).await?;
                }
                // What runs is checked as it would be asked for anew.
                if let Some(vectors) = &stored.model.vector_config {
                    settings::settings(vectors)?;
                }
                stored.told.updated_at = Some(clock::time(now));
                stored.model.updated_at = stored.told.updated_at;
                describe(&mut stored);
                write(tx, &caller, &namespace_id, (&before, &stored), now).await?;
                Ok(stored.model)
            })
        })
        .await
}

fn check_patch(model: &ClusterModel, request: &PatchClusterRequest) -> Result<()> {
    let (name, description) = (
        request.cluster_name.as_deref(),
        request.description.as_ref().and_then(Option::as_deref),
    );
    let metadata = request.metadata.as_ref().and_then(Option::as_ref);
    config::texts(name, description, metadata)?;
    labels::check(request.llm_labeling.as_ref())?;
    let refuse = |member: &str, kind: &str, msg: &str| {
        Err(Violation::body(&[member], kind, msg, Value::Null).into())
    };
    if request.source_cluster_ids.is_some() && model.source_cluster_ids.is_empty() {
        let msg = "the cluster is made of collections";
        return refuse("source_cluster_ids", "value_error", msg);
    }
    let filters = request.filters.as_ref().and_then(Option::as_ref);
    if filters.is_some() && !model.source_cluster_ids.is_empty() {
        let msg = "a cluster of clusters has their documents";
        return refuse("filters", "value_error", msg);
    }
    if request
        .face_cluster_merge
        .as_ref()
        .is_some_and(|merge| merge.enabled)
    {
        let msg = "this version knows no faces";
        return refuse("face_cluster_merge", "not_enabled", msg);
    }
    let by_vectors = model.cluster_type == ClusterType::Vector;
    let is_sampled = request.sample_size.flatten().is_some();
    if !by_vectors && (request.algorithm_params.is_some() || is_sampled) {
        let msg = "a cluster by attributes has no algorithm";
        return refuse("algorithm_params", "value_error", msg);
    }
    if request.sample_size.flatten().is_some_and(|size| size < 2) {
        let msg = "a sample has 2 documents at least";
        return refuse("sample_size", "greater_than_equal", msg);
    }
    if let Some(filters) = filters {
        crate::list::parse_filter(&Value::Object(filters.clone()), "filters")?;
    }
    Ok(())
}

fn patch(stored: &mut Stored, request: PatchClusterRequest) {
    let model = &mut stored.model;
    if let Some(name) = request.cluster_name {
        stored.told.cluster_name = name.trim().to_owned();
        model.cluster_name = Some(stored.told.cluster_name.clone());
    }
    if let Some(description) = request.description {
        model.description = description;
    }
    if let Some(metadata) = request.metadata {
        model.metadata = metadata.unwrap_or_default();
    }
    model.llm_labeling = request.llm_labeling.or(model.llm_labeling.take());
    if let Some(filters) = request.filters {
        let filters = filters.filter(|filters| !filters.is_empty());
        model.filters = filters.map(|filters| Filter(Value::Object(filters)));
    }
    if let Some(vectors) = &mut model.vector_config {
        vectors.sample_size = request.sample_size.unwrap_or(vectors.sample_size);
        vectors.layout_stability = request.layout_stability.or(vectors.layout_stability);
        if let Some(sent) = request.algorithm_params {
            // One place for what is told, whichever it was in before.
            vectors.kmeans_parameters = None;
            vectors.dbscan_parameters = None;
            vectors.hdbscan_parameters = None;
            vectors.algorithm_params = Some(Value::Object(sent));
        }
    }
}

/// Removes a cluster with its executions; one that goes on ends. What documents were told stays theirs.
pub async fn delete(app: &App, scope: &Scope<Delete>, identifier: &str) -> Result<()> {
    let operation = NamespaceOperation::DeleteCluster;
    let id = find(app, scope, identifier, operation)
        .await?
        .told
        .cluster_id;
    let id = id.unwrap_or_default();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &namespace_id, &id, now).await?;
                if let Some(mut active) = store::active(tx, &namespace_id, &id).await? {
                    ending::end_canceled(tx, &namespace_id, &mut active, now).await?;
                }
                let runs = store::list_in(tx, &namespace_id, &id, running::MAX_RUNS * 2).await?;
                let files = runs
                    .iter()
                    .map(|run| members::key(&namespace_id, &id, &run.result.run_id));
                let gone = removal::Gone::files(files.collect());
                removal::enqueue(tx, &caller.org_id, &namespace_id, gone, now).await?;
                store::delete_all(tx, &namespace_id, &id).await?;
                applying::forget_cluster(tx, &caller.org_id, &namespace_id, &id, now).await?;
                CLUSTERS.delete(tx, &namespace_id, &id).await?;
                let change = Change {
                    action: AuditAction::ClusterDeleted,
                    resource: (ResourceType::Cluster, &id),
                    changes: Value::Null,
                };
                audit::record(tx, &caller, change, now).await?;
                let told = json!({ "cluster_id": id });
                push_event(
                    tx,
                    &caller.org_id,
                    &namespace_id,
                    "cluster.deleted",
                    told,
                    now,
                )
                .await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}
