use axum::extract::{Path, State};
use loupe_wire::{
    ClusterExecutionResult, ClusterGroupsResponse, ClusterMetadata, ClusterModel,
    ClusterVisualization, CreateClusterRequest, ExecuteClusterByIdRequest, GenericDeleteResponse,
    ListClusterExecutionsRequest, ListClusterExecutionsResponse, ListClustersRequest,
    ListClustersResponse, PatchClusterRequest, PatchExecutionLabelsRequest,
    PatchExecutionLabelsResponse, PatchExecutionRunNameRequest, PatchExecutionRunNameResponse,
    TaskResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::showing::{self, Picture};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{Result, Violation},
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_clusters, create_cluster))
        .routes(routes!(search_clusters))
        .routes(routes!(get_cluster, update_cluster, delete_cluster))
        .routes(routes!(execute_cluster))
        .routes(routes!(latest_execution))
        .routes(routes!(list_cluster_executions))
        .routes(routes!(get_cluster_execution))
        .routes(routes!(cancel_execution))
        .routes(routes!(label_execution))
        .routes(routes!(name_execution))
        .routes(routes!(cluster_groups))
        .routes(routes!(cluster_picture))
        .merge(super::exporting::router())
}

async fn page(
    app: &App,
    scope: Scope<Read>,
    query: ListQuery,
    request: ListClustersRequest,
) -> Result<Json<ListClustersResponse>> {
    let params = ListParams::new(query, &request)?;
    super::list(app, &scope, &params).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Words that clusters are looked for by.
    search: Option<String>,
    /// Page size, 1 to 1000; wins over `page_size`.
    limit: Option<i64>,
    /// Page size where `limit` is left out, 1 to 1000, default 10.
    page_size: Option<i64>,
    /// 0 to 10000; wins over `page`.
    offset: Option<i64>,
    /// From 1, default 1.
    page: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    next_cursor: Option<String>,
    after: Option<String>,
    /// Totals are counted only when asked for.
    include_total: Option<bool>,
}

/// Clusters of the namespace, newest first.
#[utoipa::path(get, path = "/v1/clusters", tag = "clusters", params(SearchQuery), responses((status = 200, body = ListClustersResponse)))]
async fn list_clusters(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<SearchQuery>,
) -> Result<Json<ListClustersResponse>> {
    let request = ListClustersRequest {
        search: query.search,
        ..Default::default()
    };
    let query = ListQuery {
        limit: query.limit,
        page_size: query.page_size,
        offset: query.offset,
        page: query.page,
        cursor: query.cursor,
        next_cursor: query.next_cursor,
        after: query.after,
        include_total: query.include_total,
    };
    page(&app, scope, query, request).await
}

/// Clusters that match.
#[utoipa::path(post, path = "/v1/clusters/list", tag = "clusters", params(ListQuery), request_body = Option<ListClustersRequest>, responses((status = 200, body = ListClustersResponse)))]
async fn search_clusters(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListClustersRequest>,
) -> Result<Json<ListClustersResponse>> {
    page(&app, scope, query, request).await
}

/// Makes a cluster: collections, and how their documents are gathered. Nothing is gathered before it is executed.
#[utoipa::path(post, path = "/v1/clusters", tag = "clusters", request_body = CreateClusterRequest, responses((status = 200, body = ClusterMetadata)))]
async fn create_cluster(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateClusterRequest>,
) -> Result<Json<ClusterMetadata>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// One cluster, by id or name, with the figures of its last execution.
#[utoipa::path(get, path = "/v1/clusters/{cluster_identifier}", tag = "clusters", responses((status = 200, body = ClusterMetadata)))]
async fn get_cluster(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<ClusterMetadata>> {
    super::get(&app, &scope, &identifier).await.map(Json)
}

/// Changes a cluster; the next execution follows it.
#[utoipa::path(patch, path = "/v1/clusters/{cluster_identifier}", tag = "clusters", request_body = PatchClusterRequest, responses((status = 200, body = ClusterModel)))]
async fn update_cluster(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<PatchClusterRequest>,
) -> Result<Json<ClusterModel>> {
    super::update(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DeleteQuery {
    /// Executions write into documents, not into collections of their own: there is nothing more to remove.
    #[serde(rename = "cascade_output_collections")]
    _cascade_output_collections: Option<bool>,
}

/// Removes a cluster with its executions; one that goes on ends.
#[utoipa::path(delete, path = "/v1/clusters/{cluster_identifier}", tag = "clusters", params(DeleteQuery), responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_cluster(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(identifier): Path<String>,
    Params(_query): Params<DeleteQuery>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &identifier).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Gathers the documents, by a task. One execution of a cluster at a time.
#[utoipa::path(post, path = "/v1/clusters/{cluster_id}/execute", tag = "clusters", request_body = Option<ExecuteClusterByIdRequest>, responses((status = 200, body = TaskResponse)))]
async fn execute_cluster(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<ExecuteClusterByIdRequest>,
) -> Result<Json<TaskResponse>> {
    super::running::execute(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct VectorsQuery {
    /// With the mean vector of each cluster.
    include_vectors: Option<bool>,
}

/// The newest execution.
#[utoipa::path(get, path = "/v1/clusters/{cluster_id}/executions", tag = "clusters", params(VectorsQuery), responses((status = 200, body = ClusterExecutionResult)))]
async fn latest_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    Params(query): Params<VectorsQuery>,
) -> Result<Json<ClusterExecutionResult>> {
    let vectors = query.include_vectors.unwrap_or(false);
    showing::execution(&app, &scope, &identifier, None, vectors)
        .await
        .map(Json)
}

/// Executions, newest first; the newest hundred are kept.
#[utoipa::path(post, path = "/v1/clusters/{cluster_id}/executions/list", tag = "clusters", params(ListQuery), request_body = Option<ListClusterExecutionsRequest>, responses((status = 200, body = ListClusterExecutionsResponse)))]
async fn list_cluster_executions(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    query: ListQuery,
    Body(request): Body<ListClusterExecutionsRequest>,
) -> Result<Json<ListClusterExecutionsResponse>> {
    let params = ListParams::new(query, &request)?;
    showing::executions(&app, &scope, &identifier, &params)
        .await
        .map(Json)
}

/// One execution.
#[utoipa::path(get, path = "/v1/clusters/{cluster_id}/executions/{run_id}", tag = "clusters", params(VectorsQuery), responses((status = 200, body = ClusterExecutionResult)))]
async fn get_cluster_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((identifier, run_id)): Path<(String, String)>,
    Params(query): Params<VectorsQuery>,
) -> Result<Json<ClusterExecutionResult>> {
    let vectors = query.include_vectors.unwrap_or(false);
    showing::execution(&app, &scope, &identifier, Some(&run_id), vectors)
        .await
        .map(Json)
}

/// Cancels an execution that waits or goes on.
#[utoipa::path(post, path = "/v1/clusters/{cluster_id}/executions/{run_id}/cancel", tag = "clusters", responses((status = 200, body = ClusterExecutionResult)))]
async fn cancel_execution(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((identifier, run_id)): Path<(String, String)>,
) -> Result<Json<ClusterExecutionResult>> {
    let run = super::ending::cancel(&app, &scope, &identifier, &run_id).await?;
    Ok(Json(run.result))
}

/// Gives clusters of an execution labels of one's own.
#[utoipa::path(patch, path = "/v1/clusters/{cluster_id}/executions/{run_id}/labels", tag = "clusters", request_body = PatchExecutionLabelsRequest, responses((status = 200, body = PatchExecutionLabelsResponse)))]
async fn label_execution(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((identifier, run_id)): Path<(String, String)>,
    Body(request): Body<PatchExecutionLabelsRequest>,
) -> Result<Json<PatchExecutionLabelsResponse>> {
    showing::set_labels(&app, &scope, &identifier, &run_id, request.labels)
        .await
        .map(Json)
}

/// Names an execution.
#[utoipa::path(patch, path = "/v1/clusters/{cluster_id}/executions/{run_id}/name", tag = "clusters", request_body = PatchExecutionRunNameRequest, responses((status = 200, body = PatchExecutionRunNameResponse)))]
async fn name_execution(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((identifier, run_id)): Path<(String, String)>,
    Body(request): Body<PatchExecutionRunNameRequest>,
) -> Result<Json<PatchExecutionRunNameResponse>> {
    showing::set_name(&app, &scope, &identifier, &run_id, request.run_name)
        .await
        .map(Json)
}

/// The clusters of the newest execution, largest first.
#[utoipa::path(get, path = "/v1/clusters/{cluster_id}/groups", tag = "clusters", responses((status = 200, body = ClusterGroupsResponse)))]
async fn cluster_groups(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<ClusterGroupsResponse>> {
    showing::groups(&app, &scope, &identifier).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PictureQuery {
    /// 1 to 1000000, default 5000: of more documents, evenly fewer.
    max_points: Option<i64>,
    /// Without the documents.
    centroids_only: Option<bool>,
    /// A point as `[position, cluster]`.
    compact: Option<bool>,
    /// An execution before the newest one.
    run_id: Option<String>,
}

/// The picture of an execution: the documents and the middles of their clusters as points.
#[utoipa::path(get, path = "/v1/clusters/{cluster_id}/visualization", tag = "clusters", params(PictureQuery), responses((status = 200, body = ClusterVisualization)))]
async fn cluster_picture(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    Params(query): Params<PictureQuery>,
) -> Result<Json<ClusterVisualization>> {
    let most = query.max_points.unwrap_or(5_000);
    if !(1..=1_000_000).contains(&most) {
        let msg = "must be between 1 and 1000000";
        return Err(Violation::query("max_points", "range", msg, most.into()).into());
    }
    let asked = Picture {
        most: usize::try_from(most).unwrap_or(1),
        centroids_only: query.centroids_only.unwrap_or(false),
        compact: query.compact.unwrap_or(false),
        run_id: query.run_id,
    };
    showing::picture(&app, &scope, &identifier, asked)
        .await
        .map(Json)
}
