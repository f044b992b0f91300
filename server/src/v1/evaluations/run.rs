//! A run: the retriever is asked every query of the dataset, and its rankings are measured.

use std::time::Duration;

use indexmap::IndexMap;
use loupe_engine::judging::{Judged, Truth, mean};
use loupe_wire::{
    EvaluationDataset, EvaluationRecord, EvaluationStatus, GroundTruthQuery, QueryOutcome,
    RetrieverModelOutput, Value,
};

use super::{Settings, store, verdict::verdict};
use crate::{
    app::App,
    auth::{Caller, Read, Scope},
    clock,
    error::Result,
    jobs::{Claim, text},
    v1::{
        retrievers::{self, Execute, RETRIEVERS},
        tasks,
    },
};

/// The queue's word for a run.
pub const EVALUATE: &str = "evaluate_retriever";

/// Times that a query is asked while the server is too busy with others.
const TRIES: u32 = 5;

/// What a run needs.
struct Run {
    scope: Scope<Read>,
    retriever: RetrieverModelOutput,
    settings: Settings,
}

/// Runs one evaluation and ends its task; safe to repeat.
///
/// # Errors
/// The retriever or the dataset is gone, a store or the database fails.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let id = text(claim, "evaluation_id");
    let Some(mut record) = store::find(app.db(), &namespace_id, id).await? else {
        // The namespace went meanwhile.
        return tasks::succeed(app, claim, Vec::new()).await;
    };
    let dataset = store::find_dataset(app.db(), &namespace_id, &record.dataset_id).await?;
    let retriever = RETRIEVERS
        .find(app.db(), &namespace_id, &record.retriever_id)
        .await?;
    let run = Run {
        settings: Settings::of(&record.config)?,
        scope: Scope::internal(Caller::system(&claim.org_id), namespace_id),
        retriever: retriever.data.0,
    };
    record.status = EvaluationStatus::InProgress;
    record.updated_at = app.clock().now();
    save(app, record.clone()).await?;
    let figures = run.measure(app, &dataset, &mut record).await?;
    run.summarize(app, &mut record, &figures).await?;
    let outputs = vec![record.evaluation_id.clone().into()];
    let failed = record.error_message.clone();
    save(app, record).await?;
    match failed {
        Some(reason) => tasks::fail(app, claim, &reason).await,
        None => tasks::succeed(app, claim, outputs).await,
    }
}

/// Marks an evaluation that was given up.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = store::find(app.db(), namespace_id, text(claim, "evaluation_id")).await?;
    if let Some(mut record) = found {
        record.status = EvaluationStatus::Failed;
        record.error_message = Some(reason.to_owned());
        record.updated_at = clock::time(app.clock().micros());
        save(app, record).await?;
    }
    Ok(())
}

async fn save(app: &App, record: EvaluationRecord) -> Result<()> {
    app.db()
        .write(move |tx| Box::pin(async move { store::update(tx, record).await }))
        .await
}

/// The figures of one query: metrics by cut-off, in the order of the settings.
type Figures = Vec<Vec<f64>>;

impl Run {
    async fn measure(
        &self,
        app: &App,
        dataset: &EvaluationDataset,
        record: &mut EvaluationRecord,
    ) -> Result<Vec<Figures>> {
        let (mut all, mut outcomes) = (Vec::new(), Vec::new());
        for query in &dataset.queries {
            let truth = Truth::new(
                &query.relevant_documents,
                query.relevance_scores.iter().flatten(),
            );
            if truth.is_empty() {
                outcomes.push(outcome(
                    query,
                    "skipped",
                    Some("no document is relevant".into()),
                ));
                continue;
            }
            match self.ask(app, query).await {
                Ok(ranking) => {
                    let judged = Judged::new(&ranking, &truth);
                    let at = |k: &usize| {
                        let metrics = self.settings.metrics.iter();
                        metrics.map(|metric| judged.figure(*metric, *k)).collect()
                    };
                    all.push(self.settings.ks.iter().map(at).collect());
                    outcomes.push(QueryOutcome {
                        retrieved_count: i64::try_from(ranking.len()).ok(),
                        ..outcome(query, "evaluated", None)
                    });
                }
                // What is wrong with one query says nothing about the others; what is wrong with the server does.
                Err(error) if error.is_callers() => {
                    outcomes.push(outcome(query, "failed", Some(error.message())));
                }
                Err(error) => return Err(error),
            }
        }
        record.query_results = outcomes;
        Ok(all)
    }

    /// The ids that the retriever finds, best first.
    async fn ask(&self, app: &App, query: &GroundTruthQuery) -> Result<Vec<String>> {
        let mut tried = 0;
        loop {
            let ask = Execute {
                inputs: query.query_input.clone(),
                limit: i64::try_from(self.settings.furthest()).ok(),
                unrecorded: true,
                ..Default::default()
            };
            match retrievers::execute(app, &self.scope, &self.retriever, ask).await {
                Ok(answer) => {
                    let id = |document: &loupe_wire::Object| {
                        document
                            .get("document_id")
                            .and_then(Value::as_str)
                            .map(ToOwned::to_owned)
                    };
                    return Ok(answer.documents.iter().filter_map(id).collect());
                }
                // Whoever waits for an answer goes first.
                Err(error) if error.wait().is_some() && tried < TRIES => {
                    tried += 1;
                    let pause = error.wait().unwrap_or(1).min(10);
                    tokio::time::sleep(Duration::from_secs(pause)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn summarize(
        &self,
        app: &App,
        record: &mut EvaluationRecord,
        figures: &[Figures],
    ) -> Result<()> {
        let now = app.clock().now();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let total = record.query_results.len();
        record.total_queries = Some(number(total));
        record.evaluated_queries = Some(number(figures.len()));
        record.skipped_queries = Some(number(total - figures.len()));
        record.updated_at = now;
        record.completed_at = Some(now);
        record.error_message = None;
        if figures.is_empty() {
            record.status = EvaluationStatus::Failed;
            record.error_message = Some(nothing_measured(&record.query_results));
            return Ok(());
        }
        let by_k: IndexMap<String, IndexMap<String, f64>> = self
            .settings
            .ks
            .iter()
            .enumerate()
            .map(|(place, k)| (k.to_string(), self.means(figures, place)))
            .collect();
        record.status = EvaluationStatus::Completed;
        record.overall_metrics = by_k.values().last().cloned();
        record.metrics_by_k = Some(by_k);
        if let Some(id) = &record.baseline_evaluation_id {
            let baseline = store::find(app.db(), &record.namespace_id, id).await?;
            record.verdict = baseline.map(|baseline| verdict(&baseline, record));
        }
        Ok(())
    }

    fn means(&self, figures: &[Figures], k: usize) -> IndexMap<String, f64> {
        let of = |place: usize| {
            figures
                .iter()
                .filter_map(move |one| one.get(k)?.get(place).copied())
        };
        let metrics = self.settings.metrics.iter().enumerate();
        metrics
            .map(|(place, metric)| (metric.name().to_owned(), mean(of(place))))
            .collect()
    }
}

fn outcome(query: &GroundTruthQuery, status: &str, error: Option<String>) -> QueryOutcome {
    QueryOutcome {
        query_id: query.query_id.clone(),
        status: status.to_owned(),
        error,
        retrieved_count: None,
    }
}

fn nothing_measured(outcomes: &[QueryOutcome]) -> String {
    let first = outcomes.iter().find_map(|one| one.error.as_deref());
    let first = first.unwrap_or("the dataset is empty");
    format!("no query could be measured; the first one: {first}")
}
