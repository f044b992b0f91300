//! What an execution tells: its clusters with their names, and its figures.

use loupe_engine::cluster::{Cluster, Drift, drift};
use loupe_wire::{
    ClusterExecutionCentroid, ClusterExecutionMetrics, ClusterModel, RepresentativeDocument,
};
use serde_json::json;

use super::{computing::Computed, hierarchy, labels, members::Members, store::Run};
use crate::{
    app::App,
    auth::{Scope, Write},
    words::said,
};

/// Documents that each cluster names as its middle.
const REPRESENTATIVES: usize = 5;

/// Fills in the clusters with their names; answers what the language model could not do.
pub async fn tell(
    app: &App,
    scope: &Scope<Write>,
    run: &mut Run,
    model: &ClusterModel,
    computed: &Computed,
    before: Option<&Run>,
) -> Vec<String> {
    let words = labels::by_words(&computed.gathered, &computed.found);
    let is_assigned = computed.algorithm == "assign";
    let known = before
        .and_then(|before| before.result.centroids.clone())
        .unwrap_or_default();
    let names = labels::labels(&words).into_iter().zip(words);
    let clusters = computed.found.clusters.iter().zip(names).enumerate();
    let told = clusters.map(|(place, (one, own))| {
        let named = known.get(place).filter(|_| is_assigned);
        centroid(computed, place, one, own, named)
    });
    let mut told: Vec<ClusterExecutionCentroid> = told.collect();
    let asked = run
        .request
        .llm_labeling
        .as_ref()
        .or(model.llm_labeling.as_ref());
    let named = match asked.filter(|asked| asked.enabled && !is_assigned) {
        Some(asked) => {
            let naming = labels::Naming {
                app,
                org_id: &scope.caller.org_id,
                asked,
                computed,
                before,
            };
            naming.by_model(&mut told).await
        }
        // The names that are taken over are still answers to what was asked for them.
        None => labels::Named {
            asked: before
                .filter(|_| is_assigned)
                .map(|before| before.asked.clone())
                .unwrap_or_default(),
            ..Default::default()
        },
    };
    run.result.centroids = Some(told);
    run.asked = named.asked;
    named.errors
}

/// One cluster: with the name that it had before, or one of its own words or of the attributes that its members share.
fn centroid(
    computed: &Computed,
    place: usize,
    one: &Cluster,
    (label, words): (String, Vec<String>),
    named: Option<&ClusterExecutionCentroid>,
) -> ClusterExecutionCentroid {
    let (gathered, cosines) = (&computed.gathered, &computed.quality.cosines);
    let (mean, least) = cosines.get(place).copied().unwrap_or_default();
    let by_vectors = !gathered.vectors.is_empty() && !one.members.is_empty();
    let label = match one.members.first() {
        Some(first) if !by_vectors => gathered.points[*first].attributes.join(" / "),
        _ => label,
    };
    let document = |place: &usize| {
        let point = &gathered.points[*place];
        RepresentativeDocument {
            document_id: point.document_id.clone(),
            collection_id: Some(point.collection_id.clone()),
        }
    };
    let members = one.members.iter();
    ClusterExecutionCentroid {
        cluster_id: format!("cl_{place}"),
        num_members: i64::try_from(one.members.len()).unwrap_or(i64::MAX),
        label: named.and_then(|named| named.label.clone()).or(Some(label)),
        summary: named.and_then(|named| named.summary.clone()),
        keywords: named
            .and_then(|named| named.keywords.clone())
            .or(Some(words)),
        mean_cosine_similarity: by_vectors.then_some(mean),
        min_cosine_similarity: by_vectors.then_some(least),
        representative_ids: members.take(REPRESENTATIVES).map(document).collect(),
        ..Default::default()
    }
}

/// Fills in the figures.
pub fn measure(run: &mut Run, computed: &Computed, before: Option<&Run>, was: Option<&Members>) {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let gathered = &computed.gathered;
    let noise = computed
        .found
        .labels
        .iter()
        .filter(|label| **label < 0)
        .count();
    let result = &mut run.result;
    result.num_clusters = count(computed.found.clusters.len());
    result.num_points = count(gathered.points.len());
    result.source_documents = i64::try_from(gathered.source).ok();
    result.vectors_retrieved = Some(count(gathered.points.len()));
    result.vectors_clustered = Some(count(gathered.points.len() - noise));
    result.index_gap = i64::try_from(gathered.without).ok();
    result.pipeline_drop = Some(count(noise));
    result.pipeline_drop_expected_as_noise = Some(computed.finds_noise);
    let reasons = reasons(computed);
    if let Some(composed) = &gathered.composed {
        result.source_execution_ids.clone_from(&composed.run_ids);
        result.composite_mapping = composed.mapping(&computed.found);
    }
    result.hierarchy_relationships = hierarchy::told(computed);
    result.input_reconciliation_ok = Some(reasons.is_empty());
    result.input_reconciliation_reasons = reasons;
    result.metrics = Some(metrics(computed, before, was));
}

/// Why clusters are not of all documents that the filter finds.
fn reasons(computed: &Computed) -> Vec<String> {
    let gathered = &computed.gathered;
    let mut reasons = computed.said.clone();
    if gathered.read < gathered.source {
        reasons.push(format!(
            "{} of {} documents were read: more vectors than fit into memory; narrow the filter",
            gathered.read, gathered.source
        ));
    }
    if gathered.without > 0 {
        let why = match gathered.composed.is_some() {
            true => (
                "is in no cluster of the executions either",
                "are in no cluster of the executions either",
            ),
            false => (
                "has no vector to compare and is in no cluster",
                "have no vector to compare and are in no cluster",
            ),
        };
        reasons.push(said(gathered.without, "document", why));
    }
    reasons
}

/// How good the clusters are, and how far they have moved since the execution before.
fn metrics(
    computed: &Computed,
    before: Option<&Run>,
    was: Option<&Members>,
) -> ClusterExecutionMetrics {
    let (gathered, quality) = (&computed.gathered, &computed.quality);
    let members = |pick: fn(&(f64, f64)) -> f64| quality.cosines.iter().map(pick);
    let by_vectors = !gathered.vectors.is_empty() && !quality.cosines.is_empty();
    let mut metrics = ClusterExecutionMetrics {
        silhouette_score: quality.silhouette.map(|score| score.clamp(-1.0, 1.0)),
        davies_bouldin_index: quality.davies_bouldin,
        calinski_harabasz_score: quality.calinski_harabasz,
        avg_cluster_size: Some(quality.mean_size),
        noise_ratio: Some(quality.noise),
        cluster_size_entropy: Some(quality.entropy),
        mean_cosine_to_centroid: by_vectors
            .then(|| members(|one| one.0).sum::<f64>() / quality.cosines.len() as f64),
        min_cosine_to_centroid: by_vectors.then(|| members(|one| one.1).fold(1.0, f64::min)),
        ..Default::default()
    };
    metrics
        .extra
        .insert("algorithm".into(), computed.algorithm.into());
    let why = degenerate(computed);
    metrics.degenerate = Some(why.is_some().into());
    metrics.degenerate_detail = why.map(Into::into);
    let known = was.filter(|was| by_vectors && !was.centroids.is_empty());
    if let (Some(before), Some(was)) = (before, known) {
        let moved = moved(before, was, computed);
        // Clusters that documents are assigned to stay where they are: those that are like none tell that they moved.
        let outside = match computed.algorithm {
            "assign" => quality.noise,
            _ => 0.0,
        };
        metrics.should_recluster = Some(moved.distance.max(outside).clamp(0.0, 1.0));
        let told = json!({
            "distance": moved.distance, "furthest": moved.furthest, "new_clusters": moved.new,
            "since_run_id": before.result.run_id,
            "nearest_before": moved.nearest.iter().map(|place| place.map(|place| format!("cl_{place}"))).collect::<Vec<_>>(),
        });
        metrics.extra.insert("drift".into(), told);
    }
    metrics
}

/// Why the clusters tell no documents apart, where they do not.
fn degenerate(computed: &Computed) -> Option<&'static str> {
    let clusters = computed.found.clusters.iter();
    match clusters.filter(|one| !one.members.is_empty()).count() {
        0 => Some("no document is in a cluster"),
        1 => Some("all documents that are in a cluster are in one"),
        _ => None,
    }
}

fn moved(before: &Run, was: &Members, computed: &Computed) -> Drift {
    let sizes = before
        .result
        .centroids
        .iter()
        .flatten()
        .map(|one| usize::try_from(one.num_members).unwrap_or(0));
    let old: Vec<(Vec<f32>, usize)> = was.centroids.iter().cloned().zip(sizes).collect();
    let new = computed
        .found
        .clusters
        .iter()
        .map(|one| (one.centroid.clone(), one.members.len()));
    drift(&old, &new.collect::<Vec<_>>())
}
