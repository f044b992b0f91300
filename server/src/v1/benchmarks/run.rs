//! A benchmark's run: sessions gathered from interactions, replayed by each retriever, compared.

use std::{
    cmp::Reverse,
    collections::HashSet,
    time::{Duration, Instant},
};

use indexmap::IndexMap;
use loupe_engine::judging::Metric;
use loupe_wire::{
    BenchmarkComparison, BenchmarkResponse, BenchmarkResult, BenchmarkStatus, InteractionResponse,
    InteractionType, Object, PipelineComparison, RetrieverModelOutput, SessionFilterOutput, Value,
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    figures::{self, Act, DEPTH, KS, Rankings, Session},
    nodes, store,
};
use crate::{
    app::App,
    auth::{Caller, Read, Scope},
    error::{ApiError, Result},
    jobs::{Claim, text},
    v1::{
        evaluations,
        retrievers::{self, Execute, RETRIEVERS},
        tasks,
    },
};

/// The queue's word for a replay.
pub const REPLAY: &str = "replay_sessions";

/// Days that are looked back where no range is given.
const DAYS: i64 = 365;

/// Times that a query is asked while the server is too busy with others.
const TRIES: u32 = 5;

/// The differences of sessions that a comparison is made of, and the chance that a finding is none.
const DECIDING_K: usize = 10;
const CHANCE: f64 = 0.05;

/// Runs one benchmark and ends its task; safe to repeat.
///
/// # Errors
/// A retriever is gone, a store or the database fails.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let found = store::find(app.db(), &namespace_id, text(claim, "benchmark_id")).await?;
    let Some(mut benchmark) = found else {
        // It was deleted meanwhile.
        return tasks::succeed(app, claim, Vec::new()).await;
    };
    benchmark.started_at = Some(app.clock().now());
    benchmark.status = BenchmarkStatus::BuildingSessions;
    save(app, &namespace_id, &benchmark).await?;
    let scope: Scope<Read> = Scope::internal(Caller::system(&claim.org_id), namespace_id.clone());
    let drawn = sessions(app, &scope, &benchmark).await?;
    let (queries, sessions) = (drawn.queries, drawn.sessions);
    if sessions.is_empty() {
        let message = "no interactions match the filter and tell their query";
        return Err(ApiError::bad_request("too_few_interactions", message));
    }
    benchmark.session_count = i64::try_from(sessions.len()).unwrap_or(i64::MAX);
    benchmark.status = BenchmarkStatus::Replaying;
    save(app, &namespace_id, &benchmark).await?;
    let mut replays = Vec::new();
    let named = std::iter::once(&benchmark.baseline_retriever_id);
    for id in named.chain(&benchmark.candidate_retriever_ids) {
        let retriever = RETRIEVERS.find(app.db(), &namespace_id, id).await?.data.0;
        replays.push(replay(app, &scope, retriever, &queries).await?);
    }
    benchmark.status = BenchmarkStatus::ComputingMetrics;
    save(app, &namespace_id, &benchmark).await?;
    // Drawing thousands of times keeps a processor busy.
    let counted = tokio::task::spawn_blocking(move || count(&sessions, &drawn.apart, replays));
    let (results, comparison) = counted.await.map_err(ApiError::internal)?;
    benchmark.results = Some(results);
    benchmark.comparison = comparison;
    benchmark.status = BenchmarkStatus::Completed;
    benchmark.completed_at = Some(app.clock().now());
    save(app, &namespace_id, &benchmark).await?;
    tasks::succeed(app, claim, vec![benchmark.benchmark_id.into()]).await
}

/// Marks a benchmark that was given up.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let found = store::find(app.db(), namespace_id, text(claim, "benchmark_id")).await?;
    if let Some(mut benchmark) = found {
        benchmark.status = BenchmarkStatus::Failed;
        benchmark.error_message = Some(reason.to_owned());
        benchmark.completed_at = Some(app.clock().now());
        save(app, namespace_id, &benchmark).await?;
    }
    Ok(())
}

async fn save(app: &App, namespace_id: &str, benchmark: &BenchmarkResponse) -> Result<()> {
    let (namespace_id, benchmark) = (namespace_id.to_owned(), benchmark.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::update(tx, &namespace_id, &benchmark).await })
        })
        .await
}

/// What is asked again.
struct Drawn {
    /// What people asked.
    queries: Vec<Object>,
    /// Who asked it, and what they did then.
    sessions: Vec<Session>,
    /// The places of the sessions of each node of a taxonomy.
    apart: IndexMap<String, Vec<usize>>,
}

/// The queries that people asked, and the sessions that asked them.
async fn sessions(app: &App, scope: &Scope<Read>, benchmark: &BenchmarkResponse) -> Result<Drawn> {
    let namespace_id = &scope.namespace_id;
    let filter = benchmark.session_filter.clone().unwrap_or_default();
    let range = filter.time_range.clone().unwrap_or_default();
    let now = app.clock().micros();
    let since = range
        .start
        .map_or(now - DAYS * 86_400_000_000, |at| at.timestamp_micros());
    let until = range.end.map_or(i64::MAX, |at| at.timestamp_micros());
    let asked = filter.retriever_ids.clone();
    let asked = asked.unwrap_or_else(|| vec![benchmark.baseline_retriever_id.clone()]);
    let mut acts = Vec::new();
    for retriever_id in &asked {
        acts.extend(evaluations::asked(app, namespace_id, retriever_id, 0, since).await?);
    }
    acts.retain(|(act, _)| {
        act.occurred_at
            .is_none_or(|at| at.timestamp_micros() <= until)
    });
    // Each retriever's come newest first: those of several are brought into one order.
    acts.sort_by_key(|(act, _)| Reverse(act.occurred_at));
    let (queries, mut all) = gather(acts, &filter);
    let nodes = nodes::of(app, scope, &all).await?;
    let wanted = filter.taxonomy_node_ids.as_deref();
    if let Some(wanted) = wanted {
        all.retain(|session| nodes::touches(session, &nodes, wanted));
    }
    if filter.sample_strategy != "recent" {
        // The same benchmark draws the same sessions, however often it is begun.
        let seed = Sha256::digest(&benchmark.benchmark_id);
        all.shuffle(&mut StdRng::from_seed(seed.into()));
    }
    all.truncate(usize::try_from(benchmark.session_count).unwrap_or(usize::MAX));
    Ok(Drawn {
        apart: nodes::apart(&all, &nodes, wanted),
        queries,
        sessions: all,
    })
}

/// Acts by person and query, the newest first.
fn gather(
    acts: Vec<(InteractionResponse, Object)>,
    filter: &SessionFilterOutput,
) -> (Vec<Object>, Vec<Session>) {
    let mut queries: IndexMap<String, Object> = IndexMap::new();
    let mut sessions: IndexMap<(String, usize), Session> = IndexMap::new();
    for (act, inputs) in acts {
        let Some(judged) = judged(&act, filter) else {
            continue;
        };
        let who = [
            &act.session_id,
            &act.user_id,
            &act.execution_id,
            &act.interaction_id,
        ];
        let who = who
            .into_iter()
            .flatten()
            .next()
            .cloned()
            .unwrap_or_default();
        let entry = queries.entry(evaluations::name(&inputs));
        let query = entry.index();
        entry.or_insert(inputs);
        let acts = Vec::new();
        let session = sessions
            .entry((who, query))
            .or_insert(Session { query, acts });
        session.acts.push(judged);
    }
    let least = usize::try_from(filter.min_interactions).unwrap_or(1);
    let kept = sessions
        .into_values()
        .filter(|session| session.acts.len() >= least);
    (queries.into_values().collect(), kept.collect())
}

/// What an act says; none where it says nothing for the document, or is not asked about.
fn judged(act: &InteractionResponse, filter: &SessionFilterOutput) -> Option<Act> {
    let weights = filter.interaction_weights.as_ref().map(|one| &one.weights);
    let weight = |kind: &InteractionType| {
        let name = tasks::name_of(*kind);
        if filter
            .interaction_types
            .as_ref()
            .is_some_and(|kinds| !kinds.contains(&name))
        {
            return 0.0;
        }
        let given = weights.and_then(|weights| weights.get(&name)).copied();
        given.unwrap_or(evaluations::grade(*kind) as f64)
    };
    let best = act.interaction_type.iter().map(weight).fold(0.0, f64::max);
    (best > 0.0).then(|| Act {
        document_id: act.feature_id.clone(),
        position: act.position,
        weight: best,
        clicked: act.interaction_type.contains(&InteractionType::Click),
        purchased: act.interaction_type.contains(&InteractionType::Purchase),
    })
}

/// One retriever's answers to every query.
struct Replay {
    retriever: RetrieverModelOutput,
    rankings: Rankings,
    took: Vec<f64>,
    stages: IndexMap<String, Vec<f64>>,
    errors: IndexMap<String, i64>,
    /// The queries that failed.
    failed: HashSet<usize>,
}

async fn replay(
    app: &App,
    scope: &Scope<Read>,
    retriever: RetrieverModelOutput,
    queries: &[Object],
) -> Result<Replay> {
    let mut replay = Replay {
        retriever,
        rankings: Vec::new(),
        took: Vec::new(),
        stages: IndexMap::new(),
        errors: IndexMap::new(),
        failed: HashSet::new(),
    };
    for (place, inputs) in queries.iter().enumerate() {
        match replay.ask(app, scope, inputs).await {
            Ok(ranking) => replay.rankings.push(Some(ranking)),
            // A query that this retriever cannot be asked says nothing of the others.
            Err(error) if error.is_callers() => {
                let told: String = error.message().chars().take(200).collect();
                *replay.errors.entry(told).or_default() += 1;
                replay.failed.insert(place);
                replay.rankings.push(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(replay)
}

impl Replay {
    async fn ask(
        &mut self,
        app: &App,
        scope: &Scope<Read>,
        inputs: &Object,
    ) -> Result<Vec<String>> {
        let mut tried = 0;
        let answer = loop {
            let ask = Execute {
                inputs: inputs.clone(),
                limit: i64::try_from(DEPTH).ok(),
                unrecorded: true,
                ..Default::default()
            };
            let began = Instant::now();
            match retrievers::execute(app, scope, &self.retriever, ask).await {
                Ok(answer) => {
                    self.took.push(began.elapsed().as_secs_f64() * 1e3);
                    break answer;
                }
                // Whoever waits for an answer goes first.
                Err(error) if error.wait().is_some() && tried < TRIES => {
                    tried += 1;
                    let pause = error.wait().unwrap_or(1).min(10);
                    tokio::time::sleep(Duration::from_secs(pause)).await;
                }
                Err(error) => return Err(error),
            }
        };
        let stages = answer
            .stage_statistics
            .map(|told| told.stages)
            .unwrap_or_default();
        for (name, told) in stages {
            self.stages.entry(name).or_default().push(told.duration_ms);
        }
        let id = |document: &Object| {
            document
                .get("document_id")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        Ok(answer.documents.iter().filter_map(id).collect())
    }

    fn result(self, sessions: &[Session], apart: &IndexMap<String, Vec<usize>>) -> BenchmarkResult {
        // One node's at a time: a session may be of many nodes.
        let of_node = |(node, places): (&String, &Vec<usize>)| {
            let own = places.iter().filter_map(|place| sessions.get(*place));
            let own: Vec<Session> = own.cloned().collect();
            let figures = figures::alignment(&own, &self.rankings);
            (node.clone(), figures)
        };
        let deltas = (!apart.is_empty()).then(|| apart.iter().map(of_node).collect());
        let stages = serde_json::to_string(&self.retriever.stages).unwrap_or_default();
        let failed = sessions
            .iter()
            .filter(|one| self.failed.contains(&one.query));
        BenchmarkResult {
            retriever_id: self.retriever.retriever_id.unwrap_or_default(),
            retriever_name: self.retriever.retriever_name,
            pipeline_hash: hex::encode(&Sha256::digest(stages)[..8]),
            metrics: figures::alignment(sessions, &self.rankings),
            taxonomy_deltas: deltas,
            latency: figures::latency(self.took, self.stages),
            failed_sessions: i64::try_from(failed.count()).unwrap_or(i64::MAX),
            error_summary: self.errors,
        }
    }
}

/// The results of every retriever, and each candidate beside the baseline, which is the first.
fn count(
    sessions: &[Session],
    apart: &IndexMap<String, Vec<usize>>,
    replays: Vec<Replay>,
) -> (Vec<BenchmarkResult>, Option<BenchmarkComparison>) {
    let deciding: Vec<Vec<Option<f64>>> = replays
        .iter()
        .map(|one| figures::by_session(sessions, &one.rankings, Metric::Ndcg, DECIDING_K))
        .collect();
    let results: Vec<BenchmarkResult> = replays
        .into_iter()
        .map(|one| one.result(sessions, apart))
        .collect();
    let (Some(baseline), Some(before)) = (results.first(), deciding.first()) else {
        return (results, None);
    };
    let pairs = results.iter().zip(&deciding).skip(1);
    let comparisons: Vec<PipelineComparison> = pairs
        .map(|(candidate, after)| compare(baseline, candidate, before, after))
        .collect();
    let comparison = BenchmarkComparison {
        baseline_retriever_id: baseline.retriever_id.clone(),
        recommendation: Some(recommendation(&comparisons)),
        comparisons,
    };
    (results, Some(comparison))
}

fn compare(
    baseline: &BenchmarkResult,
    candidate: &BenchmarkResult,
    before: &[Option<f64>],
    after: &[Option<f64>],
) -> PipelineComparison {
    let pairs = before.iter().zip(after);
    let differences: Vec<f64> = pairs
        .filter_map(|(was, is)| Some((*is)? - (*was)?))
        .collect();
    let chance = figures::chance(&differences);
    let delta = |was: &IndexMap<String, f64>, is: &IndexMap<String, f64>| {
        KS.iter()
            .filter_map(|k| {
                let k = k.to_string();
                let delta = is.get(&k)? - was.get(&k)?;
                Some((k, delta))
            })
            .collect()
    };
    PipelineComparison {
        candidate_retriever_id: candidate.retriever_id.clone(),
        ndcg_delta: delta(&baseline.metrics.ndcg_at_k, &candidate.metrics.ndcg_at_k),
        recall_delta: delta(
            &baseline.metrics.recall_at_k,
            &candidate.metrics.recall_at_k,
        ),
        latency_delta_ms: candidate.latency.p50_ms - baseline.latency.p50_ms,
        p_value: chance.map(|(p, _)| p),
        confidence_interval: chance.map(|(_, [low, high])| vec![json!(low), json!(high)]),
        taxonomy_wins: nodes_where(baseline, candidate, |was, is| is > was),
        taxonomy_losses: nodes_where(baseline, candidate, |was, is| is < was),
    }
}

/// The nodes whose sessions' nDCG changed in this way.
fn nodes_where(
    baseline: &BenchmarkResult,
    candidate: &BenchmarkResult,
    changed: impl Fn(f64, f64) -> bool,
) -> Vec<String> {
    let figure = |one: &BenchmarkResult, node: &str| {
        let of_node = one.taxonomy_deltas.as_ref()?.get(node)?;
        of_node.ndcg_at_k.get(&DECIDING_K.to_string()).copied()
    };
    let nodes = candidate.taxonomy_deltas.iter().flat_map(IndexMap::keys);
    let named = nodes.filter(|node| {
        let (was, is) = (figure(baseline, node), figure(candidate, node));
        was.zip(is).is_some_and(|(was, is)| changed(was, is))
    });
    named.cloned().collect()
}

fn recommendation(comparisons: &[PipelineComparison]) -> String {
    let gain = |one: &PipelineComparison| {
        one.ndcg_delta
            .get(&DECIDING_K.to_string())
            .copied()
            .unwrap_or(0.0)
    };
    let sure =
        |one: &&PipelineComparison| gain(one) > 0.0 && one.p_value.is_some_and(|p| p < CHANCE);
    let best = comparisons
        .iter()
        .filter(sure)
        .max_by(|one, other| gain(one).total_cmp(&gain(other)));
    match best {
        Some(best) => format!(
            "{} puts what people wanted higher: nDCG@{DECIDING_K} rises by {:.3}",
            best.candidate_retriever_id,
            gain(best)
        ),
        None => "keep the baseline: no candidate is surely better".to_owned(),
    }
}
