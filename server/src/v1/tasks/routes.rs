use axum::extract::{Path, State};
use loupe_wire::{
    GenericDeleteResponse, ListTasksRequest, ListTasksResponse, TaskResponse, TaskStatusEnum,
    TaskType,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{name_of, store};
use crate::{
    app::App,
    auth::{Delete, OptionalScope, Read},
    body::Body,
    error::Result,
    json::Json,
    list::{self, ListParams, ListQuery, Page, Sieve, Walk},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_tasks))
        .routes(routes!(search_tasks))
        .routes(routes!(get_task, delete_task))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TasksQuery {
    status: Option<TaskStatusEnum>,
    task_type: Option<TaskType>,
    /// 1 to 1000, default 10.
    limit: Option<i64>,
    /// 0 to 10000, default 0.
    offset: Option<i64>,
    cursor: Option<String>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for TasksQuery {
    type Rejection = crate::error::ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

async fn page(
    app: &App,
    scope: &OptionalScope<Read>,
    query: ListQuery,
    request: ListTasksRequest,
) -> Result<Json<ListTasksResponse>> {
    let params = ListParams::new(query, &request)?;
    let (status, kind) = (
        request.status.map(name_of).unwrap_or_default(),
        request.task_type.map(name_of).unwrap_or_default(),
    );
    let asked = store::Asked {
        org_id: &scope.caller.org_id,
        namespace_id: scope.namespace_id.as_deref().unwrap_or_default(),
        status: &status,
        task_type: &kind,
    };
    let page = if params.is_plain() {
        let rows = store::list(app.db(), &asked, params.window()).await?;
        let total = if params.include_total {
            Some(store::count(app.db(), &asked).await?)
        } else {
            None
        };
        Page::from_window(rows, &params, total)
    } else {
        let walk = Walk::blind(&params);
        let mut sieve = Sieve::along(&params, &walk)?;
        while let Some(mark) = sieve.goes_on() {
            sieve.take(store::piece(app.db(), &asked, &walk, mark).await?)?;
        }
        sieve.page()
    };
    Ok(Json(ListTasksResponse {
        results: page.results,
        pagination: page.pagination,
        ..Default::default()
    }))
}

/// Tasks of the last day, newest first; X-Namespace narrows.
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", params(TasksQuery), responses((status = 200, body = ListTasksResponse)))]
async fn list_tasks(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: TasksQuery,
) -> Result<Json<ListTasksResponse>> {
    let request = ListTasksRequest {
        status: query.status,
        task_type: query.task_type,
        ..Default::default()
    };
    let query = ListQuery {
        limit: query.limit,
        offset: query.offset,
        cursor: query.cursor,
        ..Default::default()
    };
    page(&app, &scope, query, request).await
}

/// Tasks that match.
#[utoipa::path(post, path = "/v1/tasks/list", tag = "tasks", params(ListQuery), request_body = ListTasksRequest, responses((status = 200, body = ListTasksResponse)))]
async fn search_tasks(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: ListQuery,
    Body(request): Body<ListTasksRequest>,
) -> Result<Json<ListTasksResponse>> {
    page(&app, &scope, query, request).await
}

/// One task; one that ended long ago is read from the archive and says so. The key that started a task may follow it, whatever its
/// scopes are.
#[utoipa::path(get, path = "/v1/tasks/{task_id}", tag = "tasks", responses((status = 200, body = TaskResponse)))]
async fn get_task(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    Path(task_id): Path<String>,
) -> Result<Json<TaskResponse>> {
    let namespace = scope.namespace_id.as_deref();
    super::follow(&app, &scope.caller, namespace, &task_id)
        .await
        .map(Json)
}

/// Removes the record of a task that has ended.
#[utoipa::path(delete, path = "/v1/tasks/{task_id}", tag = "tasks", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_task(
    State(app): State<App>,
    scope: OptionalScope<Delete>,
    Path(task_id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    let namespace = scope.namespace_id.as_deref();
    super::delete(&app, &scope.caller, namespace, &task_id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}
