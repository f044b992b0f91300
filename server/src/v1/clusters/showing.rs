//! What executions are read as: their results, lists of them, groups and pictures.

use indexmap::IndexMap;
use loupe_wire::{
    ClusterExecutionCentroid, ClusterExecutionListStats, ClusterExecutionResult, ClusterGroup,
    ClusterGroupsResponse, ClusterVisualization, ClusterVisualizationCentroid,
    ListClusterExecutionsResponse, NamespaceOperation, PatchExecutionLabelsResponse,
    PatchExecutionRunNameResponse, Value,
};
use serde_json::json;

use super::{
    find,
    members::{self, Member, Members},
    running::MAX_RUNS,
    store::{self, CLUSTERS, Run},
};
use crate::{
    app::App,
    auth::{Read, Scope, Write},
    error::{ApiError, Result, Violation},
    list::{ListParams, Page},
    v1::tasks::name_of,
};

/// Labels that people gave to clusters of one execution.
const MAX_LABELS: usize = 1_000;

/// An execution by its id, or the newest one.
async fn one(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    run_id: Option<&str>,
) -> Result<Run> {
    let operation = NamespaceOperation::ReadData;
    let stored = find(app, scope, identifier, operation).await?;
    let cluster_id = stored.told.cluster_id.unwrap_or_default();
    let namespace_id = &scope.namespace_id;
    if let Some(run_id) = run_id {
        return store::find(app.db(), namespace_id, &cluster_id, run_id).await;
    }
    let mut newest = store::list(app.db(), namespace_id, &cluster_id, 1).await?;
    newest
        .pop()
        .ok_or_else(|| ApiError::not_found("execution of the cluster", &cluster_id))
}

/// The newest execution that was completed, or the named one.
async fn completed(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    run_id: Option<&str>,
) -> Result<(String, Option<Run>)> {
    let operation = NamespaceOperation::ReadData;
    let stored = find(app, scope, identifier, operation).await?;
    let cluster_id = stored.told.cluster_id.unwrap_or_default();
    let run = match run_id {
        Some(run_id) => {
            Some(store::find(app.db(), &scope.namespace_id, &cluster_id, run_id).await?)
        }
        None => store::last(app.db(), &scope.namespace_id, &cluster_id).await?,
    };
    Ok((cluster_id, run))
}

async fn members_of(app: &App, scope: &Scope<Read>, run: &Run) -> Result<Members> {
    let (cluster_id, run_id) = (&run.result.cluster_id, &run.result.run_id);
    Members::read(app, &members::key(&scope.namespace_id, cluster_id, run_id)).await
}

pub async fn execution(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    run_id: Option<&str>,
    vectors: bool,
) -> Result<ClusterExecutionResult> {
    let run = one(app, scope, identifier, run_id).await?;
    let mut result = run.result.clone();
    if vectors {
        let kept = members_of(app, scope, &run).await?;
        for (told, centroid) in result.centroids.iter_mut().flatten().zip(kept.centroids) {
            told.centroid_vector = centroid.into_iter().map(f64::from).collect();
        }
    }
    Ok(result)
}

/// The id of a cluster and its executions, the newest first.
pub async fn runs_of(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
) -> Result<(String, Vec<ClusterExecutionResult>)> {
    let operation = NamespaceOperation::ReadData;
    let stored = find(app, scope, identifier, operation).await?;
    let cluster_id = stored.told.cluster_id.unwrap_or_default();
    let runs = store::list(app.db(), &scope.namespace_id, &cluster_id, MAX_RUNS).await?;
    let results = runs.into_iter().map(|run| run.result).collect();
    Ok((cluster_id, results))
}

pub async fn executions(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    params: &ListParams,
) -> Result<ListClusterExecutionsResponse> {
    let (_, results) = runs_of(app, scope, identifier).await?;
    let stats = stats(&results);
    let page = Page::from_all(results, params)?;
    Ok(ListClusterExecutionsResponse {
        total_count: page.total_count(params),
        results: page.results,
        pagination: page.pagination,
        stats: Some(stats),
        ..Default::default()
    })
}

fn stats(results: &[ClusterExecutionResult]) -> ClusterExecutionListStats {
    let count = i64::try_from(results.len()).unwrap_or(i64::MAX);
    let mut by_status = IndexMap::new();
    for one in results {
        *by_status.entry(name_of(one.status)).or_insert(0) += 1;
    }
    let took = results.iter().filter_map(|one| {
        let took = one.completed_at? - one.created_at;
        Some(took.num_microseconds()? as f64 / 1_000.0)
    });
    let took: Vec<f64> = took.collect();
    let clusters: i64 = results.iter().map(|one| one.num_clusters).sum();
    ClusterExecutionListStats {
        total_executions: count,
        executions_by_status: by_status,
        avg_execution_time_ms: took.iter().sum::<f64>() / took.len().max(1) as f64,
        total_documents_clustered: results.iter().filter_map(|one| one.vectors_clustered).sum(),
        avg_num_clusters: clusters as f64 / count.max(1) as f64,
    }
}

/// The label that a person gave, else its own.
fn label(
    result: &ClusterExecutionResult,
    cluster_id: &str,
    own: Option<&String>,
) -> Option<String> {
    result.label_overrides.get(cluster_id).or(own).cloned()
}

/// The clusters of the newest execution, largest first.
pub async fn groups(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
) -> Result<ClusterGroupsResponse> {
    let (cluster_id, run) = completed(app, scope, identifier, None).await?;
    let Some(Run { result, .. }) = run else {
        return Ok(ClusterGroupsResponse {
            cluster_id,
            ..Default::default()
        });
    };
    let group = |one: &loupe_wire::ClusterExecutionCentroid| ClusterGroup {
        cluster_id: one.cluster_id.clone(),
        label: label(&result, &one.cluster_id, one.label.as_ref()),
        summary: one.summary.clone(),
        keywords: one.keywords.clone().unwrap_or_default(),
        member_count: one.num_members,
    };
    let groups: Vec<ClusterGroup> = result.centroids.iter().flatten().map(group).collect();
    Ok(ClusterGroupsResponse {
        cluster_id,
        run_id: Some(result.run_id.clone()),
        total_groups: i64::try_from(groups.len()).unwrap_or(i64::MAX),
        total_documents: groups.iter().map(|one| one.member_count).sum(),
        member_counts_stale: false,
        groups,
    })
}

/// A document in its cluster.
#[derive(Debug)]
pub struct Grouped {
    pub document_id: String,
    pub collection_id: String,
    /// Absent: it is in no cluster.
    pub cluster_id: Option<String>,
    pub label: Option<String>,
    /// Where it is in the picture; empty without one.
    pub at: Vec<f32>,
}

/// Every document of an execution, or those of the clusters with a label.
pub async fn grouped(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    run_id: &str,
    wanted: Option<&str>,
) -> Result<Vec<Grouped>> {
    let run = one(app, scope, identifier, Some(run_id)).await?;
    let result = &run.result;
    let clusters = result.centroids.as_deref().unwrap_or_default();
    let members = members_of(app, scope, &run).await?.members;
    let told = members.into_iter().map(|member| {
        let cluster = member.cluster.and_then(|place| clusters.get(place));
        Grouped {
            document_id: member.document_id,
            collection_id: member.collection_id,
            cluster_id: cluster.map(|one| one.cluster_id.clone()),
            label: cluster.and_then(|one| label(result, &one.cluster_id, one.label.as_ref())),
            at: member.at,
        }
    });
    Ok(told
        .filter(|one| wanted.is_none() || one.label.as_deref() == wanted)
        .collect())
}

/// The clusters of an execution by vectors, with their middles, and the feature that they were gathered by.
///
/// # Errors
/// There is no such execution, or it is none by vectors that ended well.
pub async fn middles(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    run_id: &str,
) -> Result<(String, Vec<(ClusterExecutionCentroid, Vec<f32>)>)> {
    let stored = find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let run = one(app, scope, identifier, Some(run_id)).await?;
    let feature = stored.model.vector_config.and_then(|one| one.feature_uri);
    let kept = members_of(app, scope, &run).await?;
    let Some(feature) = feature.filter(|_| !kept.centroids.is_empty()) else {
        let message = "the execution has no clusters by vectors";
        return Err(ApiError::bad_request("", message));
    };
    let told = run.result.centroids.clone().unwrap_or_default();
    let named = told.into_iter().map(|mut one| {
        one.label = label(&run.result, &one.cluster_id, one.label.as_ref());
        one
    });
    Ok((feature, named.zip(kept.centroids).collect()))
}

/// What of a picture is asked for.
#[derive(Debug, Default)]
pub struct Picture {
    pub most: usize,
    pub centroids_only: bool,
    pub compact: bool,
    pub run_id: Option<String>,
}

/// The picture of an execution: every document as a point, evenly fewer where there are more than asked for.
pub async fn picture(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    asked: Picture,
) -> Result<ClusterVisualization> {
    let (cluster_id, run) = completed(app, scope, identifier, asked.run_id.as_deref()).await?;
    let Some(run) = run else {
        return Ok(ClusterVisualization {
            cluster_id,
            ..Default::default()
        });
    };
    let kept = members_of(app, scope, &run).await?;
    let drawn: Vec<_> = kept
        .members
        .iter()
        .filter(|one| !one.at.is_empty())
        .collect();
    let dims = drawn.first().map_or(0, |one| one.at.len());
    let centroids = centres(&run.result, &drawn, dims);
    let step = drawn.len().div_ceil(asked.most.max(1)).max(1);
    let points = drawn.iter().step_by(step).map(|one| {
        let cluster = one.cluster.map(|place| format!("cl_{place}"));
        match asked.compact {
            true => json!([one.at, one.cluster]),
            false => json!({
                "document_id": one.document_id, "collection_id": one.collection_id, "cluster_id": cluster,
                "position": one.at,
            }),
        }
    });
    let points: Vec<Value> = if asked.centroids_only {
        Vec::new()
    } else {
        points.collect()
    };
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(ClusterVisualization {
        cluster_id,
        dimensions: count(dims),
        total_points: count(drawn.len()),
        run_id: Some(run.result.run_id),
        points,
        centroids,
    })
}

/// The clusters of a picture, each in the middle of its members.
fn centres(
    result: &ClusterExecutionResult,
    drawn: &[&Member],
    dims: usize,
) -> Vec<ClusterVisualizationCentroid> {
    let clusters = || result.centroids.iter().flatten();
    let mut sums = vec![(vec![0.0_f64; dims], 0_usize); clusters().count()];
    for one in drawn {
        if let Some((sum, count)) = one.cluster.and_then(|place| sums.get_mut(place)) {
            *count += 1;
            sum.iter_mut()
                .zip(&one.at)
                .for_each(|(sum, x)| *sum += f64::from(*x));
        }
    }
    let centres = clusters().zip(sums);
    let centres = centres.map(|(one, (sum, count))| ClusterVisualizationCentroid {
        cluster_id: one.cluster_id.clone(),
        label: label(result, &one.cluster_id, one.label.as_ref()),
        num_members: one.num_members,
        position: sum.iter().map(|sum| sum / count.max(1) as f64).collect(),
    });
    centres.collect()
}

/// Gives clusters of an execution other labels; an empty one takes the label that was given back.
pub async fn set_labels(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    run_id: &str,
    labels: IndexMap<String, String>,
) -> Result<PatchExecutionLabelsResponse> {
    for (name, label) in &labels {
        if name.len() > 100 || label.chars().count() > 200 {
            let msg = "a label has at most 200 characters";
            return Err(
                Violation::body(&["labels", name], "string_too_long", msg, Value::Null).into(),
            );
        }
    }
    let run = amend(app, scope, identifier, run_id, move |run| {
        for (name, label) in labels {
            let mut known = run.result.centroids.iter().flatten();
            if !known.any(|one| one.cluster_id == name) {
                let msg = "the execution has no such cluster";
                return Err(Violation::body(
                    &["labels", &name],
                    "value_error",
                    msg,
                    name.clone().into(),
                )
                .into());
            }
            if label.trim().is_empty() {
                run.result.label_overrides.shift_remove(&name);
            } else {
                run.result
                    .label_overrides
                    .insert(name, label.trim().to_owned());
            }
        }
        if run.result.label_overrides.len() > MAX_LABELS {
            let msg = format!("at most {MAX_LABELS} labels");
            return Err(Violation::body(&["labels"], "too_long", msg, Value::Null).into());
        }
        Ok(())
    })
    .await?;
    Ok(PatchExecutionLabelsResponse {
        cluster_id: run.result.cluster_id,
        run_id: run.result.run_id,
        label_overrides: Some(run.result.label_overrides),
    })
}

/// Names an execution.
pub async fn set_name(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    run_id: &str,
    name: String,
) -> Result<PatchExecutionRunNameResponse> {
    let name = name.trim().to_owned();
    if name.chars().count() > 120 {
        let msg = "a name has at most 120 characters";
        return Err(Violation::body(&["run_name"], "string_too_long", msg, Value::Null).into());
    }
    let run = amend(app, scope, identifier, run_id, move |run| {
        run.result.run_name = (!name.is_empty()).then_some(name);
        Ok(())
    })
    .await?;
    Ok(PatchExecutionRunNameResponse {
        cluster_id: run.result.cluster_id,
        run_id: run.result.run_id,
        run_name: run.result.run_name,
    })
}

async fn amend(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    run_id: &str,
    edit: impl FnOnce(&mut Run) -> Result<()> + Send + 'static,
) -> Result<Run> {
    let operation = NamespaceOperation::ModifyCluster;
    let stored = find(app, scope, identifier, operation).await?;
    let cluster_id = stored.told.cluster_id.unwrap_or_default();
    let (namespace_id, run_id) = (scope.namespace_id.clone(), run_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Of two changes at once the second one sees the first.
                CLUSTERS.hold(tx, &namespace_id, &cluster_id).await?;
                let mut run = store::find_in(tx, &namespace_id, &cluster_id, &run_id).await?;
                if run.is_active() {
                    return Err(ApiError::conflict("", "the execution has not ended"));
                }
                edit(&mut run)?;
                store::amend(tx, &namespace_id, &run, now).await?;
                Ok(run)
            })
        })
        .await
}
