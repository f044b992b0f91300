//! The operations of namespaces that hold vectors of one's own. The namespace is that of the path, whatever the header says.

use axum::extract::{Path, State};
use loupe_wire::{
    BYOUpsertRequest, BYOUpsertResponse, CreateStandaloneNamespaceRequestModel, DocumentResponse,
    PromoteNamespaceRequestModel, PromoteNamespaceResponseModel, PromoteValidateResponseModel,
    StandaloneNamespaceResponseModel,
};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use super::{promoting, standalone};
use crate::{
    app::App,
    auth::{Admin, Org, Read, Write},
    body::Body,
    error::Result,
    json::Json,
    list::Params,
    openapi::routes,
    v1::documents,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_standalone_namespace))
        .routes(routes!(upsert_own_documents))
        .routes(routes!(get_own_document))
        .routes(routes!(validate_promotion))
        .routes(routes!(promote_namespace))
}

/// Makes a namespace for documents with vectors of one's own, under the id that is sent. Without `vector_configs` the first
/// vectors of a name say how long those of its index are.
#[utoipa::path(post, path = "/v1/namespaces/standalone", tag = "byo_vectors", request_body = CreateStandaloneNamespaceRequestModel, responses((status = 200, body = StandaloneNamespaceResponseModel)))]
async fn create_standalone_namespace(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<CreateStandaloneNamespaceRequestModel>,
) -> Result<Json<StandaloneNamespaceResponseModel>> {
    standalone::create(&app, &org.caller, request)
        .await
        .map(Json)
}

/// Writes up to 1,000 documents with their vectors; one that is there is replaced, one that is sent again as it was is left
/// alone. All of them are written, or none.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/documents/upsert", tag = "byo_vectors", request_body = BYOUpsertRequest, responses((status = 200, body = BYOUpsertResponse)))]
async fn upsert_own_documents(
    State(app): State<App>,
    org: Org<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<BYOUpsertRequest>,
) -> Result<Json<BYOUpsertResponse>> {
    standalone::upsert(&app, &org.caller, &identifier, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct OwnDocumentQuery {
    return_vectors: Option<bool>,
}

/// One document, by the id that it was sent with or the one that the server gave it.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/documents/{document_id}", tag = "byo_vectors", params(OwnDocumentQuery), responses((status = 200, body = DocumentResponse)))]
async fn get_own_document(
    State(app): State<App>,
    org: Org<Read>,
    Path((identifier, document_id)): Path<(String, String)>,
    Params(query): Params<OwnDocumentQuery>,
) -> Result<Json<documents::One>> {
    let (_, scope) = standalone::enter::<Read>(&app, &org.caller, &identifier).await?;
    let (collection, id) = standalone::find(&app, &scope, &document_id).await?;
    let vectors = query.return_vectors.unwrap_or(false);
    documents::show(&app, &scope, &collection, &id, vectors)
        .await
        .map(Json)
}

/// What a promotion would make of a standalone namespace, which models fit its indexes, and what stands against it.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/promote/validate", tag = "byo_vectors", request_body = PromoteNamespaceRequestModel, responses((status = 200, body = PromoteValidateResponseModel)))]
async fn validate_promotion(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<PromoteNamespaceRequestModel>,
) -> Result<Json<PromoteValidateResponseModel>> {
    promoting::validate(&app, &org.caller, &identifier, request)
        .await
        .map(Json)
}

/// Makes a standalone namespace a managed one: texts are searched for in indexes that are given an inference service, and
/// indexes are added.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/promote", tag = "byo_vectors", request_body = PromoteNamespaceRequestModel, responses((status = 200, body = PromoteNamespaceResponseModel)))]
async fn promote_namespace(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<PromoteNamespaceRequestModel>,
) -> Result<Json<PromoteNamespaceResponseModel>> {
    promoting::promote(&app, &org.caller, &identifier, request)
        .await
        .map(Json)
}
