//! Several questions of one retriever at once.

use std::sync::Arc;

use axum::{
    extract::{FromRef, FromRequest, Path, Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures::StreamExt as _;
use loupe_wire::{ExecuteBatchItem, ExecuteBatchRequest, ExecuteBatchResponse, Object, Value};
use utoipa_axum::router::OpenApiRouter;

use super::{Answered, Execute, Mark, Questions, Settings, Source, adhoc::ReturnQuery, answer};
use crate::{
    app::App,
    auth::{Read, Scope},
    body,
    error::{ApiError, Result, Violation},
    figures::count,
    json::Json,
    openapi::routes,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(execute_retriever_batch))
}

/// The questions. Their inputs are of any shape: they are taken as they came.
struct Asked(ExecuteBatchRequest);

impl<S: Send + Sync> FromRequest<S> for Asked
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (mut value, ignored) = body::receive(request, &App::from_ref(state)).await?;
        let queries = value.get_mut("queries").and_then(Value::as_array_mut);
        let taken: Vec<Option<Object>> = queries
            .into_iter()
            .flatten()
            .map(|query| {
                let inputs = query.get_mut("inputs").and_then(Value::as_object_mut);
                inputs.map(std::mem::take)
            })
            .collect();
        let mut asked: ExecuteBatchRequest = body::from_value(value, ignored.as_ref())?;
        for (query, inputs) in asked.queries.iter_mut().zip(taken) {
            query.inputs = inputs.unwrap_or_default();
        }
        Ok(Self(asked))
    }
}

/// Asks a retriever up to 16 questions. One that fails is told in its place, and the others go on. Each counts as a search, but
/// those that are answered from memory.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/execute/batch", tag = "retrievers", params(ReturnQuery), request_body = ExecuteBatchRequest, responses((status = 200, body = ExecuteBatchResponse), (status = 304, description = "the answer has the tag that `If-None-Match` names")))]
async fn execute_retriever_batch(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    query: ReturnQuery,
    headers: HeaderMap,
    Asked(request): Asked,
) -> Result<Response> {
    if request.stream {
        let msg = "a batch is answered as a whole: stream the execution of one question";
        return Err(Violation::body(&["stream"], "value_error", msg, true.into()).into());
    }
    let retriever = super::known(&app, &scope, &id).await?;
    let settings = Settings::read(request.settings)?;
    let asks = request.queries.into_iter().map(|one| Execute {
        inputs: one.inputs,
        filters: Some(one.filters)
            .filter(|own| !own.is_empty())
            .or_else(|| settings.filters.clone()),
        pagination: settings.pagination.clone(),
        limit: settings.limit,
        expand: settings.expand.clone(),
        skip_cache: settings.skip_cache,
        presigned_urls: query
            .return_presigned_urls
            .unwrap_or(request.return_presigned_urls),
        vectors: query.return_vectors.unwrap_or(request.return_vectors),
        ..Execute::default()
    });
    let work: Vec<_> = asks
        .map(|ask| {
            let (app, scope, retriever) = (&app, &scope, &retriever);
            async move { answer(app, scope, retriever, ask).await }
        })
        .collect();
    let at_once = usize::try_from(request.concurrency).unwrap_or(1).max(1);
    let answered: Vec<Result<Answered>> = futures::stream::iter(work)
        .buffered(at_once)
        .collect()
        .await;
    Ok(told(answered, &headers))
}

/// The answers in one, with what they cost together.
fn told(answered: Vec<Result<Answered>>, headers: &HeaderMap) -> Response {
    let mark = Mark::of_several(&answered);
    let total = count(answered.len());
    let failed = count(answered.iter().filter(|one| one.is_err()).count());
    let is_kept = |one: &&Answered| one.mark.source == Source::Kept;
    let kept = count(answered.iter().flatten().filter(is_kept).count());
    let mut response = match mark.is_known(headers) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let results = answered.into_iter().enumerate();
            Json(ExecuteBatchResponse {
                results: results.map(|(index, one)| item(index, one)).collect(),
                total,
                succeeded: total - failed,
                failed,
            })
            .into_response()
        }
    };
    mark.put(&mut response);
    response.extensions_mut().insert(Questions {
        made: total - failed - kept,
        kept,
        failed,
    });
    response
}

fn item(index: usize, answered: Result<Answered>) -> ExecuteBatchItem {
    let index = count(index);
    match answered {
        Ok(answered) => ExecuteBatchItem {
            index,
            execution_id: Some(answered.answer.execution_id),
            status: answered.answer.status,
            documents: Arc::unwrap_or_clone(answered.answer.documents),
            warnings: answered.answer.warnings,
            degraded: answered.answer.degraded,
            error: None,
        },
        Err(error) => ExecuteBatchItem {
            index,
            status: "failed".into(),
            error: Some(error.message()),
            ..Default::default()
        },
    }
}
