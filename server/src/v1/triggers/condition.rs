//! What conditions measure: how a collection changed since the trigger last fired, and figures against a threshold.

use loupe_engine::store::{ListQuery, Reach, WithVectors};
use loupe_wire::{NamespaceOperation, Object, ResourceType, Trigger, reading};
use serde_json::json;

use super::{
    member,
    metric::{self, Compare, Figure, Of},
    schedule::{Condition, Measured},
};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
    v1::{
        clusters::CLUSTERS,
        collections::{self, COLLECTIONS},
        retrievers::RETRIEVERS,
    },
};

/// Documents whose vectors make a mean.
const SAMPLE: usize = 500;

/// A measurement and what it says.
pub(super) struct Measurement {
    pub holds: bool,
    /// What was found, for the trigger's record.
    pub found: Object,
    /// What the next measurement is held against once the trigger has fired.
    pub baseline: Object,
    /// The next one is held against it even if the trigger does not fire.
    pub renews: bool,
}

/// Measures. Where there is nothing to hold a change against, what was measured is the baseline, and nothing holds.
///
/// # Errors
/// What is measured is gone, or the store does not answer.
pub(super) async fn measure(
    app: &App,
    trigger: &Trigger,
    condition: &Condition,
) -> Result<Measurement> {
    let namespace_id = &trigger.namespace_id;
    let named = measured(app, namespace_id, &trigger.action_config, condition).await?;
    let reach = Reach {
        namespace_id: namespace_id.clone(),
        collection_ids: match named {
            Some(ids) => ids,
            None => all(app, namespace_id).await?,
        },
        principal: None,
    };
    let before = trigger.baseline_snapshot.as_ref();
    if let Some((figure, compare)) = condition.figure {
        let value = metric::value(app, trigger, &reach, figure).await?;
        return Ok(of_metric((figure, compare), value, before, condition));
    }
    match condition.kind {
        Measured::Drift => {
            let (index, mean) = match reach.collection_ids.is_empty() {
                true => (String::new(), Vec::new()),
                false => mean(app, &reach).await?,
            };
            let was = before.filter(|one| one.get("index") == Some(&json!(index)));
            let was: Option<Vec<f64>> =
                was.and_then(|one| reading::from_value(&one.get("mean")?.clone()).ok());
            Ok(drift(&index, mean, was, condition))
        }
        Measured::Volume | Measured::Metric => {
            let documents = match reach.collection_ids.is_empty() {
                true => 0,
                false => app.store().count(&reach, None).await?,
            };
            let was = before.and_then(|one| one.get("documents")?.as_u64());
            Ok(volume(documents, was, condition))
        }
    }
}

/// Refuses a condition that measures what a key with scopes may not read: what is found is told. Without an `action` what it is
/// for is not known yet, and whoever makes that is asked then.
///
/// # Errors
/// 403 for what is out of the key's scopes, 404 for what is not there.
pub(super) async fn check<L: Level>(
    app: &App,
    scope: &Scope<L>,
    condition: &Condition,
    action: Option<&Object>,
) -> Result<()> {
    let (caller, namespace_id) = (&scope.caller, &scope.namespace_id);
    if caller.key.scopes.is_empty() {
        return Ok(());
    }
    let read = NamespaceOperation::ReadData;
    let whole = || caller.allow(ResourceType::Namespace, namespace_id, read);
    let nothing = Object::new();
    let config = action.unwrap_or(&nothing);
    match condition.figure.map(|(figure, _)| figure.of()) {
        Some(Of::Batches) => return whole(),
        Some(Of::Searches) => {
            let Some(named) = member(config, "retriever_id") else {
                return whole();
            };
            let found = RETRIEVERS.known(app.db(), namespace_id, named).await?;
            return caller.allow(ResourceType::Retriever, &found.id, read);
        }
        Some(Of::Collections) | None => {}
    }
    if action.is_none() && condition.collection_id.is_none() {
        return Ok(());
    }
    match measured(app, namespace_id, config, condition).await? {
        Some(ids) => {
            let mut ids = ids.iter();
            ids.try_for_each(|id| collections::allow_reading(caller, id))
        }
        None => whole(),
    }
}

/// Ids of the collections that are measured: the one that the condition names, else those of what the action is for, else none:
/// all of the namespace are meant.
async fn measured(
    app: &App,
    namespace_id: &str,
    config: &Object,
    condition: &Condition,
) -> Result<Option<Vec<String>>> {
    let db = app.db();
    let named = condition.collection_id.as_deref();
    if let Some(named) = named.or_else(|| member(config, "collection_id")) {
        let found = collections::resolve(app, namespace_id, &[named.to_owned()]).await?;
        return Ok(Some(found.iter().map(|one| one.id.clone()).collect()));
    }
    if let Some(named) = member(config, "cluster_id") {
        let cluster = CLUSTERS.known(db, namespace_id, named).await?;
        return Ok(Some(cluster.told.input_collections.clone()));
    }
    if let Some(named) = member(config, "retriever_id") {
        let retriever = RETRIEVERS.known(db, namespace_id, named).await?;
        return Ok(Some(retriever.collection_ids.clone()));
    }
    Ok(None)
}

async fn all(app: &App, namespace_id: &str) -> Result<Vec<String>> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    Ok(all.into_iter().map(|one| one.id).collect())
}

fn object(value: serde_json::Value) -> Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn volume(documents: u64, was: Option<u64>, condition: &Condition) -> Measurement {
    let change = was.map(|was| {
        let by = documents.abs_diff(was) as f64;
        // From nothing, one document is as much as a doubling.
        if condition.absolute {
            by
        } else {
            by / was.max(1) as f64
        }
    });
    Measurement {
        holds: change.is_some_and(|change| change >= condition.threshold),
        found: object(json!({
            "documents": documents, "before": was, "change": change, "threshold": condition.threshold,
        })),
        baseline: object(json!({ "documents": documents })),
        renews: change.is_none(),
    }
}

/// A figure is told when it begins to hold, and again only when it did not hold in between.
fn of_metric(
    (figure, compare): (Figure, Compare),
    value: Option<f64>,
    before: Option<&Object>,
    condition: &Condition,
) -> Measurement {
    let is_so = value.is_some_and(|value| compare.holds(value, condition.threshold));
    let is_same = |one: &&Object| {
        one.get("metric") == Some(&json!(figure))
            && one.get("threshold") == Some(&json!(condition.threshold))
    };
    let before = before.filter(is_same);
    let was_so = before.is_some_and(|one| one.get("held") == Some(&json!(true)));
    let found = object(json!({
        "metric": figure, "value": value, "threshold": condition.threshold, "held": is_so,
    }));
    Measurement {
        holds: is_so && !was_so,
        baseline: found.clone(),
        found,
        // What rose while the trigger rests is still news when it has rested.
        renews: is_so == was_so || !is_so,
    }
}

fn drift(index: &str, mean: Vec<f64>, was: Option<Vec<f64>>, condition: &Condition) -> Measurement {
    let distance = was
        .as_ref()
        .filter(|was| was.len() == mean.len() && !mean.is_empty())
        .map(|was| cosine_distance(was, &mean));
    Measurement {
        holds: distance.is_some_and(|distance| distance >= condition.threshold),
        found: object(json!({
            "index": index, "distance": distance, "threshold": condition.threshold,
        })),
        baseline: object(json!({ "index": index, "mean": mean })),
        renews: distance.is_none(),
    }
}

/// 1 - cos(a, b); 0 where one has no length.
pub fn cosine_distance(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 {
        1.0 - dot(a, b) / length
    } else {
        0.0
    }
}

/// The mean vector of documents of the first index that they have, by name; empty where there is none.
///
/// # Errors
/// The store does not answer.
pub async fn mean(app: &App, reach: &Reach) -> Result<(String, Vec<f64>)> {
    let query = ListQuery {
        limit: SAMPLE,
        vectors: WithVectors::Yes,
        ..Default::default()
    };
    let documents = app.store().list(reach, query).await?.documents;
    let names = documents
        .iter()
        .flat_map(|document| document.vectors.keys());
    let Some(index) = names.min().cloned() else {
        return Ok((String::new(), Vec::new()));
    };
    let vectors: Vec<&Vec<f32>> = documents
        .iter()
        .filter_map(|document| document.vectors.get(&index))
        .collect();
    let mut mean = vec![0.0; vectors.first().map_or(0, |vector| vector.len())];
    for vector in &vectors {
        for (sum, number) in mean.iter_mut().zip(vector.iter()) {
            *sum += f64::from(*number) / vectors.len() as f64;
        }
    }
    Ok((index, mean))
}
