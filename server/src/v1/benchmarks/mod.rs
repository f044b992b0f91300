//! Benchmarks: retrievers asked again what people asked before, and measured by what people did then.

mod figures;
mod nodes;
mod routes;
mod run;
mod store;

use loupe_wire::{
    BenchmarkListResponse, BenchmarkResponse, BenchmarkStatus, CreateBenchmarkRequest,
    InteractionType, NamespaceOperation, ResourceType, SessionFilterInput, SessionFilterOutput,
    TaskType, Value, reading,
};
use serde_json::json;

pub use routes::router;
pub use run::{REPLAY, give_up, run};

use super::{
    audit::{self, PartOf},
    retrievers,
    tasks::{self, NewTask},
};
use crate::{
    app::App,
    auth::{Delete, Level, Read, Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
};

/// Benchmarks of a namespace that may wait or be under way.
const UNDER_WAY: i64 = 3;

/// Greatest weight of an interaction: sums of gains stay numbers.
const MAX_WEIGHT: f64 = 1e6;

async fn retriever<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<String> {
    let found = retrievers::find(app, scope, identifier, operation).await?;
    Ok(found.retriever_id.unwrap_or_default())
}

/// Leaves the task of a benchmark.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateBenchmarkRequest,
) -> Result<BenchmarkResponse> {
    let execute = NamespaceOperation::ExecuteRetriever;
    let baseline = retriever(app, scope, &request.baseline_retriever_id, execute).await?;
    let mut candidates = Vec::new();
    for named in &request.candidate_retriever_ids {
        let id = retriever(app, scope, named, execute).await?;
        if id == baseline || candidates.contains(&id) {
            let msg = "each retriever is named once, and none is held against itself";
            let sent = named.clone().into();
            return Err(Violation::body(&["candidate_retriever_ids"], "unique", msg, sent).into());
        }
        candidates.push(id);
    }
    let filter = match request.session_filter {
        Some(filter) => Some(checked(app, scope, filter).await?),
        None => None,
    };
    let now = app.clock().micros();
    let benchmark = BenchmarkResponse {
        benchmark_id: id::new("bench_"),
        benchmark_name: request.benchmark_name,
        baseline_retriever_id: baseline,
        candidate_retriever_ids: candidates,
        session_filter: filter,
        session_count: request.session_count,
        status: BenchmarkStatus::Pending,
        created_at: clock::time(now),
        ..Default::default()
    };
    leave(app, scope, benchmark, now).await
}

async fn leave(
    app: &App,
    scope: &Scope<Write>,
    benchmark: BenchmarkResponse,
    now: i64,
) -> Result<BenchmarkResponse> {
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let benchmark = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let under_way = store::under_way(tx, &namespace_id).await?;
                if under_way >= UNDER_WAY {
                    let message = format!("{under_way} benchmarks wait or run: wait for their end");
                    return Err(ApiError::conflict("", message).with("benchmarks", under_way));
                }
                store::insert(tx, &namespace_id, &benchmark, now).await?;
                let work = json!({ "benchmark_id": benchmark.benchmark_id });
                let kind = TaskType::ApiEvaluationsRun;
                let mut task = NewTask::work(&org_id, &namespace_id, kind, REPLAY, work);
                task.inputs = vec![benchmark.benchmark_id.clone().into()];
                task.description = format!("benchmark {}", benchmark.benchmark_name);
                tasks::insert(tx, task, now).await?;
                Ok(benchmark)
            })
        })
        .await?;
    app.work.notify_one();
    Ok(benchmark)
}

/// The filter as it is kept, with ids in place of names.
async fn checked(
    app: &App,
    scope: &Scope<Write>,
    filter: SessionFilterInput,
) -> Result<SessionFilterOutput> {
    let fault = |member: &str, kind: &str, msg: &str, sent: Value| -> ApiError {
        Violation::body(&["session_filter", member], kind, msg, sent).into()
    };
    if !matches!(filter.sample_strategy.as_str(), "random" | "recent") {
        let sent = filter.sample_strategy.into();
        return Err(fault(
            "sample_strategy",
            "enum",
            "it is random or recent",
            sent,
        ));
    }
    let weights = filter
        .interaction_weights
        .as_ref()
        .map(|weights| weights.weights.keys());
    let named = filter.interaction_types.iter().flatten();
    for name in named.chain(weights.into_iter().flatten()) {
        if reading::from_value::<InteractionType>(&name.clone().into()).is_err() {
            let msg = "this is no type of interaction";
            return Err(fault("interaction_types", "enum", msg, name.clone().into()));
        }
    }
    let weights = filter.interaction_weights.iter();
    for (name, weight) in weights.flat_map(|weights| &weights.weights) {
        if !(0.0..=MAX_WEIGHT).contains(weight) {
            let msg = "a weight is a number from 0 to 1000000";
            return Err(fault(
                "interaction_weights",
                "range",
                &format!("{name}: {msg}"),
                (*weight).into(),
            ));
        }
    }
    let mut retriever_ids = None;
    if let Some(named) = filter.retriever_ids.filter(|named| !named.is_empty()) {
        let mut ids = Vec::new();
        for one in named {
            ids.push(retriever(app, scope, &one, NamespaceOperation::ReadData).await?);
        }
        retriever_ids = Some(ids);
    }
    let time_range = match &filter.time_range {
        Some(range) => Some(retrievers::cast(range)?),
        None => None,
    };
    Ok(SessionFilterOutput {
        retriever_ids,
        taxonomy_node_ids: filter.taxonomy_node_ids.filter(|nodes| !nodes.is_empty()),
        time_range,
        min_interactions: filter.min_interactions,
        interaction_types: filter.interaction_types,
        sample_strategy: filter.sample_strategy,
        interaction_weights: filter.interaction_weights,
    })
}

/// One benchmark, if the caller may read its baseline.
pub async fn get<L: Level>(
    app: &App,
    scope: &Scope<L>,
    id: &str,
    operation: NamespaceOperation,
) -> Result<BenchmarkResponse> {
    let found = store::find(app.db(), &scope.namespace_id, id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("benchmark", id))?;
    let baseline = &found.baseline_retriever_id;
    scope
        .caller
        .allow(ResourceType::Retriever, baseline, operation)?;
    Ok(found)
}

/// Benchmarks that a retriever is a part of, or all, newest first.
pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    (retriever_id, status): (Option<String>, Option<String>),
    (page, page_size): (i64, i64),
) -> Result<BenchmarkListResponse> {
    let status = status.unwrap_or_default();
    let offset = (page - 1).saturating_mul(page_size);
    let (benchmarks, total) = match retriever_id.filter(|id| !id.is_empty()) {
        Some(named) => of_retriever(app, scope, &named, &status, (page_size, offset)).await?,
        None => {
            let operation = NamespaceOperation::ReadData;
            scope
                .caller
                .allow(ResourceType::Retriever, "*", operation)?;
            store::list(app.db(), &scope.namespace_id, &status, page_size, offset).await?
        }
    };
    Ok(BenchmarkListResponse {
        benchmarks,
        total,
        page,
        page_size,
        ..Default::default()
    })
}

/// A page of the benchmarks that a retriever is a part of, of those whose baseline the caller may read, and how many there are.
async fn of_retriever(
    app: &App,
    scope: &Scope<Read>,
    named: &str,
    status: &str,
    (limit, offset): (i64, i64),
) -> Result<(Vec<BenchmarkResponse>, i64)> {
    let operation = NamespaceOperation::ReadData;
    let id = retriever(app, scope, named, operation).await?;
    let mut found = store::of_retriever(app.db(), &scope.namespace_id, &id, status).await?;
    found.retain(|one| {
        let baseline = &one.baseline_retriever_id;
        let allowed = scope
            .caller
            .allow(ResourceType::Retriever, baseline, operation);
        allowed.is_ok()
    });
    let total = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let place = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = found.into_iter().skip(place(offset)).take(place(limit));
    Ok((page.collect(), total))
}

/// Removes a benchmark; one that runs ends without a trace.
pub async fn delete(app: &App, scope: &Scope<Delete>, id: &str) -> Result<()> {
    get(app, scope, id, NamespaceOperation::DeleteData).await?;
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::delete(tx, &namespace_id, &id).await?;
                let changes = json!({"change": "benchmark_deleted", "benchmark_id": id});
                let whole = PartOf::Namespace(&namespace_id);
                audit::record_part(tx, &caller, whole, changes, now).await
            })
        })
        .await
}
