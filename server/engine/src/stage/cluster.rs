//! `cluster`: the documents that are alike, gathered by their vectors.

use std::collections::HashMap;

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::{Execution, offload};
use super::likeness;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::cluster::{Algorithm, Cluster, NOISE, Settings, Stop, cluster};

/// Documents that are clustered: most algorithms compare each with each.
const MAX_POINTS: usize = 2_000;

pub(crate) static DEFINITION: Definition = Definition {
    id: "cluster",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "chart-scatter",
    about: "Gathers the documents that are alike",
    members: &[
        member(
            "algorithm",
            Kind::Choice(&[
                "kmeans",
                "hdbscan",
                "dbscan",
                "agglomerative",
                "spectral",
                "gaussian_mixture",
            ]),
            r#""hdbscan""#,
            "hdbscan and dbscan find how many clusters there are and leave documents out that are like nothing; the \
             others make `n_clusters` of all",
        ),
        member(
            "n_clusters",
            Kind::Integer(2, 100),
            "",
            "How many clusters; the square root of half the documents where not given",
        ),
        member(
            "min_cluster_size",
            Kind::Integer(2, 100),
            "5",
            "Fewest documents of a cluster, for hdbscan and dbscan",
        ),
        member(
            "feature_uri",
            Kind::Text,
            "",
            "The feature whose vectors are compared; the documents' first where not given",
        ),
        member(
            "output_mode",
            Kind::Choice(&["clusters", "labeled", "representatives"]),
            r#""clusters""#,
            "clusters: one row a cluster; labeled: each document with its cluster; representatives: the document in the \
             middle of each cluster",
        ),
        member(
            "include_centroids",
            Kind::Boolean,
            "true",
            "Whether clusters have the mean of their vectors",
        ),
        member(
            "max_members_per_cluster",
            Kind::Integer(1, 500),
            "50",
            "Most documents that a cluster lists",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    if rows.len() > MAX_POINTS {
        at.warn(format!(
            "stage `{}`: only the first {MAX_POINTS} of {} documents were clustered",
            at.stage,
            rows.len()
        ));
        at.capped("documents", rows.len(), MAX_POINTS);
        rows.truncate(MAX_POINTS);
    }
    let mut vectors = likeness::vectors(at, &rows, p.text("feature_uri").as_deref()).await?;
    let (places, points) = points(&rows, &mut vectors);
    if points.len() < rows.len() {
        at.warn(format!(
            "stage `{}`: {} documents have no vector to compare and are in no cluster",
            at.stage,
            rows.len() - points.len()
        ));
    }
    let settings = Settings {
        clusters: p.count("n_clusters"),
        least: p.count("min_cluster_size").unwrap_or(5),
        ..Settings::new(Algorithm::named(&p.word("algorithm")).unwrap_or(Algorithm::Hdbscan))
    };
    // Nobody stops it: it is as short as a search.
    let found = offload(move || cluster(&points, &settings, None, &Stop::default())).await?;
    let found = found.unwrap_or_default();
    let mut of_row = vec![NOISE; rows.len()];
    for (place, label) in places.iter().zip(&found.labels) {
        of_row[*place] = *label;
    }
    let noise = of_row.iter().filter(|label| **label == NOISE).count();
    let metadata = &mut at.report.metadata;
    metadata.insert("clusters".into(), json!(found.clusters.len()));
    metadata.insert("noise".into(), json!(noise));
    let mode = p.word("output_mode");
    // Those without a vector have been told.
    let alone = found.labels.iter().filter(|label| **label == NOISE).count();
    if alone > 0 && mode != "labeled" {
        at.warn(format!(
            "stage `{}`: {alone} of {} documents are in no cluster and were left out; lower `min_cluster_size`, or ask for \
             `labeled`",
            at.stage,
            of_row.len()
        ));
    }
    Ok(Working::Rows(match mode.as_str() {
        "labeled" => labeled(rows, &of_row),
        "representatives" => representatives(&rows, &places, &found.clusters),
        _ => told(p, &rows, &places, found.clusters),
    }))
}

/// The rows that have a vector, and the vectors at unit length: the nearer by angle, the nearer by distance. Vectors of
/// another size than the first are of another space.
fn points(rows: &[Row], vectors: &mut HashMap<String, Vec<f32>>) -> (Vec<usize>, Vec<Vec<f32>>) {
    let (mut places, mut points) = (Vec::new(), Vec::<Vec<f32>>::new());
    for (place, row) in rows.iter().enumerate() {
        if let Some(mut vector) = vectors.remove(row.id())
            && points
                .first()
                .is_none_or(|first| first.len() == vector.len())
        {
            crate::embed::normalize(&mut vector);
            places.push(place);
            points.push(vector);
        }
    }
    (places, points)
}

fn labeled(rows: Vec<Row>, labels: &[i32]) -> Vec<Row> {
    let told = rows.into_iter().zip(labels).map(|(mut row, label)| {
        row.set("cluster_id", json!(label));
        row
    });
    told.collect()
}

fn representatives(rows: &[Row], places: &[usize], clusters: &[Cluster]) -> Vec<Row> {
    let one = |(label, cluster): (usize, &Cluster)| {
        let mut row = rows[places[*cluster.members.first()?]].clone();
        row.set("cluster_id", json!(label));
        row.set("cluster_size", json!(cluster.members.len()));
        Some(row)
    };
    clusters.iter().enumerate().filter_map(one).collect()
}

fn told(p: &Parameters, rows: &[Row], places: &[usize], clusters: Vec<Cluster>) -> Vec<Row> {
    let most = p.count("max_members_per_cluster").unwrap_or(50);
    let one = |(label, cluster): (usize, Cluster)| {
        let members: Vec<&Row> = cluster.members.iter().map(|i| &rows[places[*i]]).collect();
        let mut row = Object::new();
        // The row stands for the document in its middle, so that later stages and pages can name it.
        for name in ["document_id", "collection_id", "score"] {
            let value = members.first().and_then(|first| first.at(name));
            row.insert(name.to_owned(), value.cloned().unwrap_or(Value::Null));
        }
        row.insert("cluster_id".into(), json!(label));
        row.insert("size".into(), json!(members.len()));
        let listed = members
            .iter()
            .take(most)
            .map(|row| Value::from(row.value.clone()));
        row.insert("documents".into(), listed.collect());
        if p.flag("include_centroids") {
            row.insert("centroid".into(), json!(cluster.centroid));
        }
        Row { value: row.into() }
    };
    clusters.into_iter().enumerate().map(one).collect()
}
