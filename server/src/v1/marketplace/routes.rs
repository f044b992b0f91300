use axum::{
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, request::Parts},
    response::Response,
};
use loupe_wire::{
    MarketplaceListing, PublicExecuteResponse, PublicRetrieverConfigResponse,
    PublicRetrieverTemplateResponse, RetrieverExecutionRequest, VerifyPasswordRequest,
    VerifyPasswordResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::Asked;
use crate::{
    app::App,
    auth::{Org, Read},
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
    list::{Params, within},
    openapi::routes,
    v1::{
        public::{self, Proof},
        retrievers,
    },
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_catalog))
        .routes(routes!(get_catalog_listing))
        .routes(routes!(get_catalog_config))
        .routes(routes!(get_catalog_template))
        .routes(routes!(execute_catalog_listing))
        .routes(routes!(verify_catalog_password))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct CatalogQuery {
    category: Option<String>,
    /// No listing is in a group.
    group: Option<String>,
    /// Words of the title or the name.
    search: Option<String>,
    /// From 0.
    skip: Option<i64>,
    /// 1 to 100, default 20.
    limit: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExecuteQuery {
    /// Default true.
    return_presigned_urls: Option<bool>,
    /// Default false. Pages show no vectors.
    return_vectors: Option<bool>,
}

/// The tags of a query: each on its own, or several with commas between them.
struct Tags(Vec<String>);

impl<S: Send + Sync> FromRequestParts<S> for Tags {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let query = parts.uri.query().unwrap_or_default();
        let sent = url::form_urlencoded::parse(query.as_bytes());
        let mut tags = Vec::new();
        for (_, value) in sent.filter(|(name, _)| name == "tags") {
            let words = value.split(',').map(str::trim);
            tags.extend(words.filter(|tag| !tag.is_empty()).map(ToOwned::to_owned));
        }
        Ok(Self(tags))
    }
}

/// Published retrievers that everybody may search, the newest first.
#[utoipa::path(get, path = "/v1/marketplace/catalog", tag = "marketplace", params(CatalogQuery, ("tags" = Option<Vec<String>>, Query, description = "Those that a listing has all of.")), responses((status = 200, body = Vec<MarketplaceListing>)))]
async fn list_catalog(
    State(app): State<App>,
    Params(query): Params<CatalogQuery>,
    Tags(tags): Tags,
) -> Result<Json<Vec<MarketplaceListing>>> {
    let asked = Asked {
        words: query.search.unwrap_or_default(),
        category: query.category.filter(|text| !text.is_empty()),
        group: query.group.filter(|text| !text.is_empty()),
        tags,
        skip: within("skip", query.skip, 0, (0, i64::from(i32::MAX)))?,
        limit: within("limit", query.limit, 20, (1, 100))?,
    };
    super::list(&app, &asked).await.map(Json)
}

/// One listing, with what its searches take.
#[utoipa::path(get, path = "/v1/marketplace/catalog/{public_name}", tag = "marketplace", responses((status = 200, body = MarketplaceListing)))]
async fn get_catalog_listing(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
) -> Result<Json<MarketplaceListing>> {
    let open = public::open(&app, &name, &proof).await?;
    Ok(Json(super::whole(&app, &open)))
}

/// How the page of a listing looks.
#[utoipa::path(get, path = "/v1/marketplace/catalog/{public_name}/config", tag = "marketplace", responses((status = 200, body = PublicRetrieverConfigResponse)))]
async fn get_catalog_config(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
) -> Result<Json<PublicRetrieverConfigResponse>> {
    let open = public::open(&app, &name, &proof).await?;
    Ok(Json(public::config(open.published)))
}

/// What another owner needs to build the same page.
#[utoipa::path(get, path = "/v1/marketplace/catalog/{public_name}/template", tag = "marketplace", responses((status = 200, body = PublicRetrieverTemplateResponse)))]
async fn get_catalog_template(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
) -> Result<Json<PublicRetrieverTemplateResponse>> {
    let open = public::open(&app, &name, &proof).await?;
    public::template(&app, open).map(Json)
}

/// Searches a listing, as its page does: with the page's limits, and only what the page shows.
#[utoipa::path(post, path = "/v1/marketplace/catalog/{public_name}/execute", tag = "marketplace", params(ExecuteQuery), request_body = RetrieverExecutionRequest, responses((status = 200, body = PublicExecuteResponse), (status = 304, description = "the answer has the tag that `If-None-Match` names")))]
async fn execute_catalog_listing(
    State(app): State<App>,
    _: Org<Read>,
    Path(name): Path<String>,
    Params(query): Params<ExecuteQuery>,
    proof: Proof,
    headers: HeaderMap,
    retrievers::Asked(request): retrievers::Asked<RetrieverExecutionRequest>,
) -> Result<Response> {
    if query.return_vectors == Some(true) {
        let msg = "pages show no vectors";
        return Err(Violation::query("return_vectors", "not_enabled", msg, true.into()).into());
    }
    let open = public::open(&app, &name, &proof).await?;
    let presigned_urls = query.return_presigned_urls.unwrap_or(true);
    public::search(&app, &open, request, presigned_urls, &headers).await
}

/// Tries the password of a listing, as that of its page.
#[utoipa::path(post, path = "/v1/marketplace/catalog/{public_name}/verify", tag = "marketplace", request_body = VerifyPasswordRequest, responses((status = 200, body = VerifyPasswordResponse)))]
async fn verify_catalog_password(
    State(app): State<App>,
    Path(name): Path<String>,
    Body(request): Body<VerifyPasswordRequest>,
) -> Result<Response> {
    public::verify(&app, &name, &request.password).await
}
