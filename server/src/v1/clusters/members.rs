//! Who is in which cluster: kept in a file of the execution, and written into the documents where that is asked for.

use bytes::Bytes;
use loupe_engine::store::Document;
use loupe_wire::{
    ClusterExecutionCentroid, ClusterModel, EnrichmentFieldMapping, Object, Value, reading,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    computing::Computed,
    store::{self, Run},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result},
    v1::{
        collections::{self, COLLECTIONS, lifecycle},
        documents,
    },
};

/// Documents that are written at once.
const STEP: usize = 200;

/// What the file of an execution holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Members {
    pub members: Vec<Member>,
    /// One a cluster; empty of a cluster by attributes.
    pub centroids: Vec<Vec<f32>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Member {
    pub document_id: String,
    pub collection_id: String,
    /// Its cluster's place; none: in no cluster.
    pub cluster: Option<usize>,
    /// Where it is in the picture.
    pub at: Vec<f32>,
}

/// The file's key; in the folder of the namespace, so that it goes with it.
pub fn key(namespace_id: &str, cluster_id: &str, run_id: &str) -> String {
    format!("{namespace_id}/clusters/{cluster_id}/{run_id}.json")
}

impl Members {
    pub fn of(computed: &Computed) -> Self {
        let points = computed.gathered.points.iter().enumerate();
        let members = points.map(|(place, point)| Member {
            document_id: point.document_id.clone(),
            collection_id: point.collection_id.clone(),
            cluster: usize::try_from(computed.found.labels[place]).ok(),
            at: computed.picture.get(place).cloned().unwrap_or_default(),
        });
        let centroids = computed
            .found
            .clusters
            .iter()
            .map(|one| one.centroid.clone());
        Self {
            members: members.collect(),
            centroids: centroids.filter(|one| !one.is_empty()).collect(),
        }
    }

    pub async fn save(&self, app: &App, key: &str) -> Result<()> {
        let bytes = serde_json::to_vec(self).map_err(ApiError::internal)?;
        app.blobs().put(key, Bytes::from(bytes)).await?;
        Ok(())
    }

    /// Nothing where an execution left no file.
    pub async fn read(app: &App, key: &str) -> Result<Self> {
        match app.blobs().get(key).await {
            Ok(bytes) => reading::from_slice(&bytes).map_err(ApiError::internal),
            Err(error) if error.is_not_found() => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }
}

/// What documents are told where the cluster says nothing else.
fn default_mappings() -> Vec<EnrichmentFieldMapping> {
    let mapping = |source: &str, target: &str| EnrichmentFieldMapping {
        source_field: source.into(),
        target_field: target.into(),
    };
    vec![
        mapping("cluster_id", "cluster_id"),
        mapping("label", "cluster_label"),
    ]
}

/// Whether documents are told of their cluster.
pub fn is_told(model: &ClusterModel) -> bool {
    model.enrich_source_collection
        || model
            .vector_config
            .as_ref()
            .is_some_and(|one| one.enrich_source)
}

/// Writes its cluster into every document; those in none lose what an execution before told them. Whether the execution
/// went on to the end.
///
/// # Errors
/// A store or the database does not answer.
pub async fn tell(
    app: &App,
    scope: &Scope<Write>,
    model: &ClusterModel,
    run: &Run,
    members: &Members,
    told: &[ClusterExecutionCentroid],
) -> Result<bool> {
    let mappings = model
        .source_enrichment_config
        .as_ref()
        .map(|one| one.field_mappings.clone());
    let mappings = mappings
        .filter(|list| !list.is_empty())
        .unwrap_or_else(default_mappings);
    for collection_id in model.collection_ids.iter().flatten() {
        let own: Vec<&Member> = members
            .members
            .iter()
            .filter(|one| one.collection_id == *collection_id)
            .collect();
        for step in own.chunks(STEP) {
            let (namespace_id, result) = (&scope.namespace_id, &run.result);
            let now = store::find(app.db(), namespace_id, &result.cluster_id, &result.run_id).await;
            match now {
                Ok(now) if now.is_active() => {}
                Ok(_) => return Ok(false),
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(error),
            }
            write(app, scope, collection_id, step, &mappings, run, told).await?;
        }
    }
    Ok(true)
}

async fn write(
    app: &App,
    scope: &Scope<Write>,
    collection_id: &str,
    step: &[&Member],
    mappings: &[EnrichmentFieldMapping],
    run: &Run,
    told: &[ClusterExecutionCentroid],
) -> Result<()> {
    let namespace_id = &scope.namespace_id;
    let found = match COLLECTIONS
        .find(app.db(), namespace_id, collection_id)
        .await
    {
        Ok(found) if lifecycle::is_active(&found) => found,
        // Nothing is written to it in another state.
        Ok(_) => return Ok(()),
        // Removed meanwhile, with its documents.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    let spec = collections::spec(app, namespace_id, &found);
    let ids: Vec<String> = step.iter().map(|one| one.document_id.clone()).collect();
    let at = app.clock().now().to_rfc3339();
    let tell = |document: &mut Document| {
        let mut members = step.iter();
        let member = members.find(|one| one.document_id == document.document_id);
        let cluster = member.and_then(|one| told.get(one.cluster?));
        let is_other = put(document, mappings, run, cluster);
        if is_other && let Some(internal) = document.payload.get_mut("_internal") {
            internal["updated_at"] = at.as_str().into();
        }
        is_other
    };
    documents::rewrite(app, scope, &spec, &ids, &tell)
        .await
        .map(drop)
}

/// Whether the document says something else than before.
fn put(
    document: &mut Document,
    mappings: &[EnrichmentFieldMapping],
    run: &Run,
    cluster: Option<&ClusterExecutionCentroid>,
) -> bool {
    let before = document.payload.clone();
    for mapping in mappings {
        let value = cluster.map_or(Value::Null, |one| match mapping.source_field.as_str() {
            "cluster_id" => json!(one.cluster_id),
            "label" => json!(one.label),
            "summary" => json!(one.summary),
            "keywords" => json!(one.keywords),
            _ => json!(run.result.run_id),
        });
        set(&mut document.payload, &mapping.target_field, value);
    }
    document.payload != before
}

/// Sets a member by its dot path. What is not there is not made to hold nothing.
fn set(payload: &mut Object, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        if !value.is_null() || payload.contains_key(path) {
            payload.insert(path.to_owned(), value);
        }
        return;
    };
    if value.is_null() && !payload.contains_key(first) {
        return;
    }
    let inner = payload.entry(first.to_owned()).or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}
