//! What of a retriever is the same from one execution to the next, made once: its stages never change.

use std::{collections::BTreeSet, sync::Arc};

use loupe_engine::{stage::Plan, weight};
use loupe_wire::RetrieverModelOutput;
use moka::sync::Cache;

use super::{answers, filtered, stage_inputs, stages::compile_stored};
use crate::{app::App, error::Result};

/// Bytes in memory of all that are kept ready, and of one.
const ROOM: u64 = 32 << 20;
const LARGEST: usize = 4 << 20;
/// Of one beside the parameters of its stages.
const REST: usize = 4 << 10;

/// Its id, and the microsecond in which it was changed last.
type Key = (String, i64);

/// A stored retriever as executions use it.
pub(super) struct Ready {
    pub plan: Plan,
    /// The collections and taxonomies that stages name, and the secrets that they send.
    pub references: Vec<String>,
    pub taxonomies: Vec<String>,
    pub secrets: Vec<String>,
    /// The fields that its stages filter on.
    pub fields: BTreeSet<String>,
    /// The same question has the same answer, while the documents are the same.
    pub is_repeatable: bool,
    /// What would be refused today of stages that were stored by another version.
    pub warnings: Vec<String>,
    bytes: u32,
}

/// The retrievers that were executed lately.
pub struct ReadyRetrievers(Cache<Key, Arc<Ready>>);

impl Default for ReadyRetrievers {
    fn default() -> Self {
        let ready = Cache::builder()
            .max_capacity(ROOM)
            .weigher(|_: &Key, one: &Arc<Ready>| one.bytes);
        Self(ready.build())
    }
}

/// The retriever made ready, from memory if it was before. One that nobody has stored is made ready anew.
///
/// # Errors
/// The 422 list of [`super::compile`], for stages that were stored by another version and cannot be run any more.
pub(super) fn ready(app: &App, retriever: &RetrieverModelOutput) -> Result<Arc<Ready>> {
    let stored = retriever.retriever_id.clone().zip(retriever.updated_at);
    let key = stored.map(|(id, at)| (id, at.timestamp_micros()));
    if let Some(ready) = key.as_ref().and_then(|key| app.ready.0.get(key)) {
        return Ok(ready);
    }
    let stages = stage_inputs(&retriever.stages);
    let (plan, warnings) = compile_stored(&stages, &retriever.input_schema)?;
    let bytes = bytes(retriever);
    let ready = Arc::new(Ready {
        references: plan.references(),
        taxonomies: plan.taxonomies(),
        secrets: plan.secrets(),
        fields: filtered::fields(retriever),
        is_repeatable: plan.learns().is_none() && answers::is_repeatable(retriever),
        warnings,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        plan,
    });
    if let Some(key) = key.filter(|_| bytes <= LARGEST) {
        app.ready.0.insert(key, ready.clone());
    }
    Ok(ready)
}

/// Bytes of one, roughly: a plan has the parameters in full, and once more where they are made ready.
fn bytes(retriever: &RetrieverModelOutput) -> usize {
    let stages = retriever.stages.iter();
    let parameters = stages.map(|stage| 2 * weight::of_object(&stage.config));
    REST + parameters.sum::<usize>()
}
