//! Datasets: written by people, or made of what people did.

use std::collections::HashSet;

use loupe_wire::{
    CreateDatasetRequest, DatasetListResponse, EvaluationDataset, GenerateFromInteractionsRequest,
    GroundTruthQuery, NamespaceOperation, Object,
};
use serde_json::json;

use super::{learning, store};
use crate::{
    app::App,
    auth::{Read, Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
    v1::{
        audit::{self, PartOf},
        retrievers,
    },
};

/// Datasets of a namespace.
const MOST: i64 = 1_000;

/// Documents that one query judges.
const JUDGED: usize = 1_000;

/// Keeps queries with the documents that are right for them.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateDatasetRequest,
) -> Result<EvaluationDataset> {
    let mut ids = HashSet::new();
    for (place, query) in request.queries.iter().enumerate() {
        if !ids.insert(query.query_id.as_str()) {
            let (place, msg) = (place.to_string(), "another query has this id");
            let path = ["queries", &place, "query_id"];
            let sent = query.query_id.clone().into();
            return Err(Violation::body(&path, "unique", msg, sent).into());
        }
        let scores = query
            .relevance_scores
            .as_ref()
            .map_or(0, |scores| scores.len());
        if scores > JUDGED {
            let (place, msg) = (
                place.to_string(),
                format!("must hold at most {JUDGED} documents"),
            );
            let path = ["queries", &place, "relevance_scores"];
            return Err(Violation::body(&path, "too_long", msg, scores.into()).into());
        }
    }
    keep(app, scope, request).await
}

async fn keep(
    app: &App,
    scope: &Scope<Write>,
    request: CreateDatasetRequest,
) -> Result<EvaluationDataset> {
    let now = app.clock().micros();
    let queries = request.queries;
    let dataset = EvaluationDataset {
        dataset_id: id::new("dset_"),
        dataset_name: request.dataset_name,
        description: request.description,
        queries: Vec::new(),
        created_at: clock::time(now),
        updated_at: clock::time(now),
        namespace_id: scope.namespace_id.clone(),
        internal_id: scope.caller.org_id.clone(),
        query_count: i64::try_from(queries.len()).unwrap_or(i64::MAX),
        metadata: request.metadata,
    };
    let caller = scope.caller.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let count = store::count_datasets(tx, &dataset.namespace_id).await?;
                if count >= MOST {
                    let what = "evaluation_datasets";
                    return Err(ApiError::quota_exceeded(what, count, MOST, "every"));
                }
                let name = &dataset.dataset_name;
                if store::is_name_taken(tx, &dataset.namespace_id, name).await? {
                    let message = format!("a dataset named '{name}' exists already");
                    return Err(
                        ApiError::already_exists("name_taken", message).with("name", name.clone())
                    );
                }
                store::insert_dataset(tx, &dataset, &queries, now).await?;
                let changes = json!({
                    "change": "evaluation_dataset_created", "dataset_id": dataset.dataset_id,
                    "dataset_name": dataset.dataset_name, "query_count": dataset.query_count,
                });
                let whole = PartOf::Namespace(&dataset.namespace_id);
                audit::record_part(tx, &caller, whole, changes, now).await?;
                Ok(EvaluationDataset { queries, ..dataset })
            })
        })
        .await
}

/// The dataset of this id or name, with its queries.
pub async fn get(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<EvaluationDataset> {
    store::find_dataset(app.db(), &scope.namespace_id, identifier).await
}

/// Newest first, without their queries: a dataset's own address tells those.
pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    (page, page_size): (i64, i64),
) -> Result<DatasetListResponse> {
    let offset = (page - 1).saturating_mul(page_size);
    let (datasets, total) =
        store::list_datasets(app.db(), &scope.namespace_id, page_size, offset).await?;
    Ok(DatasetListResponse {
        datasets,
        total,
        page,
        page_size,
        ..Default::default()
    })
}

/// Makes a dataset of what people did with the retriever's results: queries with enough interactions, the most frequent
/// first, and how much the documents were worth to those who asked.
pub async fn generate(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: GenerateFromInteractionsRequest,
) -> Result<EvaluationDataset> {
    let operation = NamespaceOperation::ExecuteRetriever;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    let kinds = learning::positive(request.positive_interaction_types.as_deref())?;
    let now = app.clock().micros();
    let since = now - request.lookback_days * 86_400_000_000;
    let retriever_id = retriever.retriever_id.clone().unwrap_or_default();
    let judged =
        learning::judgements(app, &scope.namespace_id, &retriever_id, kinds, since).await?;
    let asked = judged.len();
    let queries: Vec<GroundTruthQuery> = judged
        .into_iter()
        .filter(|one| one.interactions >= request.min_interactions && !one.relevance.is_empty())
        .enumerate()
        .take(2_000)
        .map(|(place, one)| GroundTruthQuery {
            query_id: format!("q{}", place + 1),
            query_input: one.inputs,
            relevant_documents: one.relevance.keys().take(1_000).cloned().collect(),
            relevance_scores: Some(one.relevance.into_iter().take(1_000).collect()),
        })
        .collect();
    if queries.is_empty() {
        let (least, days) = (request.min_interactions, request.lookback_days);
        let message = format!(
            "of {asked} queries none has {least} positive interactions within {days} days that tell their query"
        );
        return Err(ApiError::bad_request("too_few_interactions", message));
    }
    let at = clock::time(now).format("%Y-%m-%d %H:%M:%S");
    let name = format!("{:.150} as used until {at}", retriever.retriever_name);
    let made = json!({"source": "interactions", "retriever_id": retriever_id, "lookback_days": request.lookback_days,
        "min_interactions": request.min_interactions});
    let dataset = CreateDatasetRequest {
        dataset_name: request.dataset_name.unwrap_or(name),
        description: Some("made of interactions".into()),
        queries,
        metadata: made.as_object().cloned().or(Some(Object::new())),
    };
    keep(app, scope, dataset).await
}
