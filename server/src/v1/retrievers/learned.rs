//! What people did with a retriever's answers, for fusion that learns from it.

use std::{sync::Arc, time::Duration};

use loupe_engine::stage::{Act, ranks_of};
use loupe_wire::{InteractionResponse, Object, Value};
use moka::sync::Cache;

use super::store;
use crate::{app::App, error::Result};

/// Acts that are learned from, the newest first.
const MOST: i64 = 5_000;

/// How long they are known before they are read again: nobody waits for what the last click taught.
const SECONDS: i64 = 60;

/// Inputs of one question that are remembered, and bytes of one.
const MOST_INPUTS: usize = 10;
const SHORT: usize = 100;

/// Namespace, retriever, and the minute.
type Key = (String, String, i64);

/// The acts of retrievers that learn.
pub struct Acts(Cache<Key, Arc<Vec<Act>>>);

impl Default for Acts {
    fn default() -> Self {
        let acts = Cache::builder()
            .max_capacity(1_000)
            .time_to_live(Duration::from_secs(SECONDS.unsigned_abs()));
        Self(acts.build())
    }
}

/// What was done with the retriever's answers within the last ten years, as far as the history of executions goes.
///
/// # Errors
/// The database does not answer.
pub async fn acts(app: &App, namespace_id: &str, retriever_id: &str) -> Result<Arc<Vec<Act>>> {
    let now = app.clock().micros();
    let minute = now.div_euclid(SECONDS * 1_000_000);
    let key = (namespace_id.to_owned(), retriever_id.to_owned(), minute);
    if let Some(known) = app.acts.0.get(&key) {
        return Ok(known);
    }
    let rows = store::acts(app.db(), namespace_id, retriever_id, MOST).await?;
    let acts: Vec<Act> = rows
        .into_iter()
        .flat_map(|(interaction, execution)| read(&interaction, &execution, now))
        .collect();
    let acts = Arc::new(acts);
    app.acts.0.insert(key, acts.clone());
    Ok(acts)
}

/// What [`acts`] knows within a time; nothing where it takes longer, for the next answer to know.
///
/// # Errors
/// The database does not answer.
pub async fn acts_within(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    patience: Duration,
) -> Result<Arc<Vec<Act>>> {
    let known = acts(app, namespace_id, retriever_id);
    match tokio::time::timeout(patience, known).await {
        Ok(known) => known,
        Err(_) => {
            tracing::warn!(retriever_id, "what was learned was not read in time");
            Ok(Arc::default())
        }
    }
}

/// The inputs that questions may be alike by: short ones.
fn short(execution: &Value) -> Object {
    let inputs = execution.get("inputs").and_then(Value::as_object);
    let inputs = inputs
        .into_iter()
        .flatten()
        .filter(|(_, value)| match value {
            Value::String(text) => text.len() <= SHORT,
            Value::Number(_) | Value::Bool(_) => true,
            _ => false,
        });
    inputs
        .take(MOST_INPUTS)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn read(interaction: &InteractionResponse, execution: &Value, now: i64) -> Vec<Act> {
    let at = interaction
        .occurred_at
        .map_or(now, |at| at.timestamp_micros());
    let context = execution.get("learned_fusion").unwrap_or(&Value::Null);
    let ranks = ranks_of(context, &interaction.feature_id).into_iter();
    let inputs = Arc::new(short(execution));
    ranks
        .map(|(stage, ranks)| Act {
            stage,
            ranks,
            inputs: inputs.clone(),
            kinds: interaction.interaction_type.clone(),
            age_days: (now - at).max(0) as f64 / 86_400e6,
        })
        .collect()
}
