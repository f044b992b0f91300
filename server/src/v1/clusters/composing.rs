//! Executions made of others: the clusters of those are gathered as documents are, by their middles, and every document
//! goes where its cluster goes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use indexmap::IndexMap;
use loupe_engine::cluster::{self, Clustering, NOISE, Settings, Stopped};
use loupe_wire::{
    ClusterCompositeSource, ClusterExecutionMode, ClusterModel, ClusterRunStatus,
    ExecuteClusterByIdRequest, NamespaceOperation, ResourceType, Value,
};

use super::{
    config::fault,
    members::{self, Members},
    reading::{Gathered, MAX_DOCUMENTS, MAX_NUMBERS, Point},
    store::{self, Run},
};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result},
};

/// Executions that one is made of, and clusters that one is.
pub(super) const MAX_SOURCES: usize = store::NAMED;

/// A cluster of one of the executions.
#[derive(Debug)]
pub struct Source {
    told: ClusterCompositeSource,
    middle: Vec<f32>,
}

/// The clusters that others are made of.
#[derive(Debug, Default)]
pub struct Composed {
    pub run_ids: Vec<String>,
    sources: Vec<Source>,
    /// By document, its cluster's place.
    of: Vec<usize>,
}

/// Whether an execution is made of others.
pub fn is_composed(model: &ClusterModel, request: &ExecuteClusterByIdRequest) -> bool {
    request.mode == ClusterExecutionMode::Composite || !model.source_cluster_ids.is_empty()
}

/// Refuses executions that are not there, that did not end well, or that the caller may not read.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, the 422 list for what is not completed.
pub async fn check<L: Level>(
    app: &App,
    scope: &Scope<L>,
    request: &ExecuteClusterByIdRequest,
) -> Result<()> {
    let Some(ids) = &request.source_execution_ids else {
        return Ok(());
    };
    let runs = store::named(app.db(), &scope.namespace_id, ids).await?;
    for (place, id) in ids.iter().enumerate() {
        let Some(run) = runs.iter().find(|run| run.result.run_id == *id) else {
            return Err(ApiError::not_found("cluster execution", id));
        };
        let operation = NamespaceOperation::ReadData;
        let cluster_id = &run.result.cluster_id;
        let allowed = scope
            .caller
            .allow(ResourceType::Cluster, cluster_id, operation);
        allowed?;
        if run.result.status != ClusterRunStatus::Completed {
            let path = ["source_execution_ids", &place.to_string()];
            let msg = "only executions that were completed can be composed";
            return Err(fault(&path, "value_error", msg, id.as_str()));
        }
    }
    Ok(())
}

/// What of other executions is asked of one can be done.
///
/// # Errors
/// The 422 list.
pub fn check_request(request: &ExecuteClusterByIdRequest, model: &ClusterModel) -> Result<()> {
    use ClusterExecutionMode::{Assign, Composite};
    let sources = request.source_execution_ids.as_deref();
    let path = ["source_execution_ids"];
    if request.mode != Composite && sources.is_some() {
        let msg = "executions are composed with mode composite";
        return Err(fault(&path, "value_error", msg, Value::Null));
    }
    if request.mode == Composite {
        let count = sources.map_or(0, <[String]>::len);
        let different: HashSet<&String> = sources.into_iter().flatten().collect();
        if count == 0 || count > MAX_SOURCES || different.len() < count {
            let msg = format!("name 1 to {MAX_SOURCES} executions, each once");
            return Err(fault(&path, "missing", msg, count));
        }
        if model.vector_config.is_none() {
            let msg = "the clusters of executions are gathered by their vectors: this cluster is by attributes";
            return Err(fault(&["mode"], "value_error", msg, "composite"));
        }
    }
    if !is_composed(model, request) {
        return Ok(());
    }
    if request.mode == Assign {
        let msg = "documents go where their clusters go; execute in full";
        return Err(fault(&["mode"], "value_error", msg, "assign"));
    }
    if request.filters.is_some() {
        let msg = "what is composed of executions has their documents";
        return Err(fault(&["filters"], "value_error", msg, Value::Null));
    }
    Ok(())
}

/// The executions that one is made of: those that are named, or the newest of each cluster.
async fn sources(
    app: &App,
    namespace_id: &str,
    model: &ClusterModel,
    run: &Run,
) -> Result<Vec<Run>> {
    let refused = |message: String| ApiError::bad_request("", message);
    if let Some(ids) = &run.request.source_execution_ids {
        let mut runs = store::named(app.db(), namespace_id, ids).await?;
        if runs.len() < ids.len() {
            return Err(refused(
                "an execution that it is composed of is gone".into(),
            ));
        }
        runs.sort_by_key(|run| ids.iter().position(|id| *id == run.result.run_id));
        return Ok(runs);
    }
    let ids = &model.source_cluster_ids;
    let mut runs = store::newest(app.db(), namespace_id, ids).await?;
    let executed = |id: &&String| runs.iter().any(|run| run.result.cluster_id == **id);
    if let Some(id) = ids.iter().find(|id| !executed(id)) {
        let message = format!("the cluster {id}, which it is made of, has no completed execution");
        return Err(refused(message));
    }
    runs.sort_by_key(|run| ids.iter().position(|id| *id == run.result.cluster_id));
    Ok(runs)
}

/// The documents of the executions, each at the middle of its cluster. A document that is in several of them is where the
/// first one has it.
///
/// # Errors
/// An execution is gone or has no vectors, or they are of different sizes.
pub async fn gather(
    app: &App,
    namespace_id: &str,
    model: &ClusterModel,
    run: &Run,
) -> Result<Gathered> {
    let mut out = Gathered::default();
    let mut composed = Composed::default();
    let (mut known, mut numbers) = (HashSet::new(), 0);
    for source in sources(app, namespace_id, model, run).await? {
        let (cluster_id, run_id) = (&source.result.cluster_id, &source.result.run_id);
        let kept = Members::read(app, &members::key(namespace_id, cluster_id, run_id)).await?;
        let first = composed.sources.len();
        let texts = add(&mut composed, &source, &kept)?;
        for member in kept.members {
            if !known.insert((member.collection_id.clone(), member.document_id.clone())) {
                continue;
            }
            out.source += 1;
            let Some(place) = member.cluster.filter(|place| *place < texts.len()) else {
                out.without += 1;
                out.read += 1;
                continue;
            };
            let middle = &composed.sources[first + place].middle;
            if out.points.len() >= MAX_DOCUMENTS || numbers >= MAX_NUMBERS {
                continue;
            }
            out.read += 1;
            numbers += middle.len();
            out.vectors.push(middle.clone());
            composed.of.push(first + place);
            out.points.push(Point {
                document_id: member.document_id,
                collection_id: member.collection_id,
                text: texts[place].clone(),
                ..Default::default()
            });
        }
        composed.run_ids.push(source.result.run_id);
    }
    out.composed = Some(composed);
    Ok(out)
}

/// Adds the clusters of an execution; answers what each is named by.
fn add(composed: &mut Composed, run: &Run, kept: &Members) -> Result<Vec<String>> {
    let run_id = &run.result.run_id;
    let clusters = run.result.centroids.as_deref().unwrap_or_default();
    if kept.centroids.is_empty() || kept.centroids.len() != clusters.len() {
        let message = format!("the execution {run_id} has no clusters by vectors");
        return Err(ApiError::bad_request("", message));
    }
    let size = |middle: &Vec<f32>| middle.len();
    let width = composed.sources.first().map(|one| size(&one.middle));
    let width = width.or(kept.centroids.first().map(size));
    if kept.centroids.iter().any(|one| Some(one.len()) != width) {
        let message = format!("the execution {run_id} has vectors of another size than the others");
        return Err(ApiError::bad_request("", message));
    }
    let mut texts = Vec::with_capacity(clusters.len());
    for (one, middle) in clusters.iter().zip(&kept.centroids) {
        let mut words = one.keywords.clone().unwrap_or_default();
        words.extend(one.label.clone());
        texts.push(words.join("\n"));
        composed.sources.push(Source {
            told: ClusterCompositeSource {
                source_run_id: run_id.clone(),
                original_cluster_id: one.cluster_id.clone(),
                num_members: one.num_members,
            },
            middle: middle.clone(),
        });
    }
    Ok(texts)
}

impl Composed {
    /// Gathers the clusters; every document goes along.
    ///
    /// # Errors
    /// The work was stopped.
    pub fn cluster(
        &self,
        points: &[Vec<f32>],
        gather: impl FnOnce(&[Vec<f32>]) -> Result<(Clustering, Settings), Stopped>,
    ) -> Result<(Clustering, Settings), Stopped> {
        let middles: Vec<Vec<f32>> = self.sources.iter().map(|one| one.middle.clone()).collect();
        let (found, settings) = gather(&middles)?;
        let labels = self.of.iter().map(|place| found.labels[*place]).collect();
        Ok((cluster::gathered(points, labels, points.len()), settings))
    }

    /// Which clusters every cluster is made of.
    pub fn mapping(&self, found: &Clustering) -> IndexMap<String, Vec<ClusterCompositeSource>> {
        let mut made: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
        for (label, place) in found.labels.iter().zip(&self.of) {
            if *label > NOISE {
                made.entry(*label).or_default().insert(*place);
            }
        }
        let told = |(label, places): (i32, BTreeSet<usize>)| {
            let sources = places
                .into_iter()
                .map(|place| self.sources[place].told.clone());
            (format!("cl_{label}"), sources.collect())
        };
        made.into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use loupe_engine::cluster::Stop;

    use super::*;

    #[test]
    fn documents_go_where_their_clusters_go() {
        let source = |name: &str, x: f32| Source {
            told: ClusterCompositeSource {
                source_run_id: "run_a".into(),
                original_cluster_id: name.into(),
                num_members: 1,
            },
            middle: vec![x, 0.0],
        };
        let composed = Composed {
            run_ids: Vec::new(),
            sources: vec![
                source("cl_0", 0.0),
                source("cl_1", 0.1),
                source("cl_2", 9.0),
            ],
            of: vec![0, 2, 1, 1],
        };
        let points = vec![vec![0.0; 2]; 4];
        let settings = Settings {
            clusters: Some(2),
            ..Settings::new(cluster::Algorithm::Kmeans)
        };
        let by = |middles: &[Vec<f32>]| {
            let found = cluster::cluster(middles, &settings, None, &Stop::default())?;
            Ok((found, settings.clone()))
        };
        let (found, _) = composed.cluster(&points, by).expect("nothing stops it");
        assert_eq!(found.labels, [0, 1, 0, 0]);
        let mapping = composed.mapping(&found);
        let names = |label: &str| -> Vec<&str> {
            let sources = mapping[label].iter();
            sources
                .map(|one| one.original_cluster_id.as_str())
                .collect()
        };
        assert_eq!(
            (names("cl_0"), names("cl_1")),
            (vec!["cl_0", "cl_1"], vec!["cl_2"])
        );
    }
}
