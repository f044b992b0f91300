//! Retrievers that run inside of other work, made ready once for many inputs.

use std::sync::Arc;

use indexmap::IndexMap;
use loupe_engine::{
    filter::Filter,
    stage::{
        Outcome, Run, RunError, Searchable, check_inputs,
        taxonomy::{Finder, Taxonomy},
    },
};
use loupe_wire::{
    Object, RetrieverInputSchemaField, RetrieverModelOutput, StageConfigOutput, Value,
};

use super::lifecycle;
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result},
    v1::{
        retrievers::{self, RETRIEVERS},
        taxonomies,
    },
};

/// A retriever made ready.
pub struct Ready {
    finder: Finder,
    collections: Vec<Searchable>,
    taxonomies: Vec<Arc<Taxonomy>>,
    max_time_ms: u64,
    /// Names of the stages of which somebody wrote that their errors are passed over.
    skipping: Vec<String>,
}

/// Why an answer is not all that there is to be found: something was in the way of a search. Whether that may be gone at the next
/// try is what the error says of itself.
pub fn hindered(outcome: &Outcome) -> Option<ApiError> {
    let entry = outcome.degraded.first();
    let message = match entry {
        _ if outcome.timed_out => "the time of the retriever ran out".to_owned(),
        Some(entry) => {
            let stage = entry.stage.as_deref().unwrap_or_default();
            let reason = &entry.reason;
            format!("the answer of the retriever is not whole: stage `{stage}`: {reason}")
        }
        None => return None,
    };
    Some(match outcome.timed_out || outcome.may_pass {
        true => ApiError::unavailable("", message),
        // A service has said its last word, say: another try is answered the same.
        false => ApiError::bad_request("", message),
    })
}

/// Whether it is written of a stage that documents stay as they are where it fails. What it does without a word is for those
/// who look at an answer.
fn is_skipping(stage: &StageConfigOutput) -> bool {
    let inside = stage.config.get("parameters");
    let inside = inside.and_then(|parameters| parameters.get("on_error"));
    matches!(
        stage.on_error.as_deref(),
        Some("skip" | "continue" | "ignore")
    ) || inside.and_then(Value::as_str) == Some("skip")
}

impl Ready {
    /// One search takes `longest_ms` at most, whatever the retriever says.
    ///
    /// # Errors
    /// 404 for a retriever that is gone, or a collection that it reads; the database does not answer.
    pub async fn of(
        app: &App,
        scope: &Scope<Write>,
        retriever_id: &str,
        longest_ms: u64,
    ) -> Result<Self> {
        let stored = RETRIEVERS
            .known(app.db(), &scope.namespace_id, retriever_id)
            .await?;
        Self::made_of(app, scope, &stored, longest_ms).await
    }

    /// The same of a retriever that is at hand.
    ///
    /// # Errors
    /// 404 for a collection that it reads and that is gone; the database does not answer.
    pub async fn made_of(
        app: &App,
        scope: &Scope<Write>,
        retriever: &RetrieverModelOutput,
        longest_ms: u64,
    ) -> Result<Self> {
        let (namespace_id, org_id) = (&scope.namespace_id, &scope.caller.org_id);
        let finder = retrievers::finder(app, org_id, namespace_id, retriever).await?;
        let found = super::resolve(app, namespace_id, &retriever.collection_ids).await?;
        let here = found.iter().filter(|one| !lifecycle::is_away(one));
        let named = finder.plan.taxonomies();
        let skipping = retriever.stages.iter().filter(|stage| is_skipping(stage));
        let skipping = skipping.map(|stage| stage.stage_name.clone()).collect();
        Ok(Self {
            collections: here.map(|one| super::searchable(app, one)).collect(),
            taxonomies: taxonomies::ready(app, org_id, namespace_id, &named).await?,
            max_time_ms: retrievers::budget_ms(retriever)
                .map_or(longest_ms, |own| own.min(longest_ms)),
            skipping,
            finder,
        })
    }

    /// The inputs that it knows; without any it takes what it is given.
    pub fn input_schema(&self) -> &IndexMap<String, RetrieverInputSchemaField> {
        &self.finder.input_schema
    }

    /// Refuses an answer that something hindered, as what is missing in it would look as if it were gone. Where it gives
    /// documents all the same, stages may have failed of which it is written that this is passed over.
    ///
    /// # Errors
    /// Why it is not whole, and whether that may pass.
    pub fn check_whole(&self, outcome: &Outcome) -> Result<()> {
        let is_wanted =
            |stage: Option<&String>| stage.is_some_and(|one| self.skipping.contains(one));
        let mut entries = outcome.degraded.iter();
        let is_chosen = !outcome.timed_out
            && !outcome.documents.is_empty()
            && entries.all(|entry| entry.resource == "stage" && is_wanted(entry.stage.as_ref()));
        match hindered(outcome) {
            Some(error) if !is_chosen => Err(error),
            _ => Ok(()),
        }
    }

    /// The first documents that it finds, of those that the filter lets through.
    ///
    /// # Errors
    /// Inputs that break its schema; whatever ends a search.
    pub async fn search(
        &self,
        app: &App,
        scope: &Scope<Write>,
        sent: &Object,
        filter: Option<Filter>,
        most: usize,
    ) -> Result<Outcome, RunError> {
        let run = self.run(app, scope, sent, filter, most).await?;
        self.finder.plan.run(run).await
    }

    /// What its stages make of one row that is there already: the first documents of that.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn pass(
        &self,
        app: &App,
        scope: &Scope<Write>,
        sent: &Object,
        row: Object,
        most: usize,
    ) -> Result<Outcome, RunError> {
        let run = self.run(app, scope, sent, None, most).await?;
        self.finder.plan.run_on(run, row).await
    }

    async fn run(
        &self,
        app: &App,
        scope: &Scope<Write>,
        sent: &Object,
        filter: Option<Filter>,
        most: usize,
    ) -> Result<Run, RunError> {
        let finder = &self.finder;
        let inputs = check_inputs(&finder.input_schema, sent).map_err(|faults| {
            let told = faults.into_iter();
            let told = told.map(|fault| format!("{}: {}", fault.loc.join("."), fault.msg));
            RunError::Invalid(told.collect::<Vec<String>>().join("; "))
        })?;
        let mut run = retrievers::ground(app, scope).await;
        run.collections.clone_from(&self.collections);
        run.references.clone_from(&finder.references);
        run.taxonomies.clone_from(&self.taxonomies);
        run.secrets.clone_from(&finder.secrets);
        run.outside.fallen = finder.fallen.clone();
        run.inputs = inputs;
        run.filter = filter;
        run.limit = i64::try_from(most).ok();
        run.max_time_ms = Some(self.max_time_ms);
        Ok(run)
    }
}
