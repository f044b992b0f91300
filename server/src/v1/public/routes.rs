use axum::{
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use loupe_wire::{
    BulkInteractionsResponse, InteractionResponse, ListPublicRetrieversResponse,
    PublicExecuteResponse, PublicInteractionBatchRequest, PublicInteractionRequest,
    PublicRetrieverConfigResponse, PublicRetrieverListItem, PublicRetrieverListStats,
    PublicRetrieverTemplateResponse, PublishedRetrieverResponse, RetrieverExecutionRequest, Value,
    VerifyPasswordRequest, VerifyPasswordResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Execute, Open,
    door::{self, Proof, Unlocked},
    template::template,
};
use crate::{
    app::App,
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
    list::{self, within},
    openapi::routes,
    v1::{publishing, retrievers::Asked},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_public_retrievers))
        .routes(routes!(get_public_config))
        .routes(routes!(execute_public))
        .routes(routes!(get_public_template))
        .routes(routes!(create_public_interaction))
        .routes(routes!(create_public_interactions))
        .routes(routes!(verify_public_password))
}

/// Letters of what is searched for in the list, and entries of a page of it that is not long.
const LONGEST_SEARCH: usize = 200;
const LONG: i64 = 100;

/// Bytes of icons in one page of the list: those beyond come without.
const ICONS: usize = 4 << 20;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PublicQuery {
    /// 1 to 500.
    page: Option<i64>,
    /// 1 to 1000, default 20.
    page_size: Option<i64>,
    /// Words of the title or the name, at most 200 letters.
    search: Option<String>,
    #[allow(
        dead_code,
        reason = "accepted by the interface; strangers never see inactive pages"
    )]
    include_inactive: Option<bool>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExecuteQuery {
    /// Default true.
    return_presigned_urls: Option<bool>,
}

macro_rules! query_extractor {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        })*
    };
}
query_extractor!(PublicQuery, ExecuteQuery);

/// A page of the list; `room` is what is left for icons.
fn item(
    app: &App,
    published: PublishedRetrieverResponse,
    room: &mut usize,
) -> PublicRetrieverListItem {
    let display = published.display_config;
    // Links to the page are shown with the picture that is drawn of it, where its owner has no other.
    let drawn = || {
        let base_url = app.config().address();
        loupe_hosted::page::picture_address(&display, &published.public_name, &base_url)
    };
    let own = display
        .seo
        .as_ref()
        .and_then(|seo| seo.og_image_url.clone());
    let og_image_url = (!published.password_protected).then(|| own.unwrap_or_else(drawn));
    let icon = display.icon_base64.or(published.icon_base64);
    let icon = icon.filter(|icon| !icon.is_empty() && icon.len() <= *room);
    *room -= icon.as_ref().map_or(0, String::len);
    PublicRetrieverListItem {
        public_url: publishing::public_url(app, &published.public_name),
        public_name: published.public_name,
        title: display.title,
        description: display.description.or(published.description),
        logo_url: display.logo_url,
        icon_base64: icon,
        og_image_url,
        password_protected: published.password_protected,
        is_active: published.is_active,
        external_links: display.external_links,
        created_at: published.created_at,
        updated_at: published.updated_at,
    }
}

/// A page of the list, and how many there are in all. It is read in parts: with all their icons, a thousand are too much at once.
async fn items(
    app: &App,
    words: &str,
    most: i64,
    offset: i64,
) -> Result<(Vec<PublicRetrieverListItem>, i64)> {
    let (mut items, mut room, mut done) = (Vec::new(), ICONS, 0);
    loop {
        let part = LONG.min(most - done);
        let (found, total) = publishing::list_open(app.db(), words, part, offset + done).await?;
        done += part;
        let is_last = done >= most || offset + done >= total;
        let found = found.into_iter();
        items.extend(found.map(|published| item(app, published.data.0, &mut room)));
        if is_last {
            return Ok((items, total));
        }
    }
}

/// Public pages.
#[utoipa::path(get, path = "/v1/public/retrievers/", tag = "public_retrievers", params(PublicQuery), responses((status = 200, body = ListPublicRetrieversResponse)))]
async fn list_public_retrievers(
    State(app): State<App>,
    query: PublicQuery,
) -> Result<Json<ListPublicRetrieversResponse>> {
    let page = within("page", query.page, 1, (1, 500))?;
    let page_size = within("page_size", query.page_size, 20, (1, 1000))?;
    let words = query.search.unwrap_or_default();
    if words.chars().count() > LONGEST_SEARCH {
        let msg = format!("search has at most {LONGEST_SEARCH} letters");
        return Err(Violation::query("search", "string_too_long", msg, Value::Null).into());
    }
    // A long page reads as much as a search.
    let _turn = match page_size > LONG {
        true => Some(app.turns.take().await?),
        false => None,
    };
    let (active, locked) = publishing::count_public(app.db()).await?;
    let stats = PublicRetrieverListStats {
        total_active: active,
        total_password_protected: locked,
        total_open: active - locked,
    };
    let offset = (page - 1).saturating_mul(page_size);
    let (results, total_count) = items(&app, &words, page_size, offset).await?;
    let total_pages = (total_count + page_size - 1) / page_size;
    Ok(Json(ListPublicRetrieversResponse {
        results,
        total_count,
        page,
        page_size,
        total_pages,
        stats: Some(stats),
    }))
}

/// Leads from a name that a page had before to the one that it has. Another page may take the old name: nobody keeps this.
fn moved(published: &PublishedRetrieverResponse, asked: &str, what: &str) -> Option<Response> {
    let name = &published.public_name;
    let there = || Redirect::permanent(&format!("/v1/public/retrievers/{name}/{what}"));
    (name != asked).then(|| ([(header::CACHE_CONTROL, "no-cache")], there()).into_response())
}

/// How a page looks. A name that the page had before leads to the one that it has (308).
#[utoipa::path(get, path = "/v1/public/retrievers/{public_name}/config", tag = "public_retrievers", responses((status = 200, body = PublicRetrieverConfigResponse)))]
async fn get_public_config(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
) -> Result<Response> {
    let published = super::open(&app, &name, &proof).await?.published;
    if let Some(there) = moved(&published, &name, "config") {
        return Ok(there);
    }
    Ok(Json(config(published)).into_response())
}

/// How a page looks, as strangers are told.
pub fn config(published: PublishedRetrieverResponse) -> PublicRetrieverConfigResponse {
    PublicRetrieverConfigResponse {
        public_name: published.public_name,
        public_api_key: None,
        display_config: published.display_config,
        password_protected: published.password_protected,
        retriever_metadata: published.retriever_metadata,
    }
}

/// Searches a page.
#[utoipa::path(post, path = "/v1/public/retrievers/{public_name}/execute", tag = "public_retrievers", params(ExecuteQuery), request_body = RetrieverExecutionRequest, responses((status = 200, body = PublicExecuteResponse), (status = 304, description = "the answer has the tag that `If-None-Match` names")))]
async fn execute_public(
    State(app): State<App>,
    Path(name): Path<String>,
    query: ExecuteQuery,
    proof: Proof,
    headers: HeaderMap,
    Asked(request): Asked<RetrieverExecutionRequest>,
) -> Result<Response> {
    let open = super::open(&app, &name, &proof).await?;
    let presigned_urls = query.return_presigned_urls.unwrap_or(true);
    search(&app, &open, request, presigned_urls, &headers).await
}

/// What a caller asks for that no page does: it is told, and the search runs without it.
fn undone(request: &RetrieverExecutionRequest) -> impl Iterator<Item = String> + use<> {
    let expands = request.expand.as_ref().is_some_and(|all| !all.is_empty());
    let asked = [
        (request.stream, "stream"),
        (expands, "expand"),
        (request.return_vectors, "return_vectors"),
        (request.write_token.is_some(), "write_token"),
        (request.consistency.is_some(), "consistency"),
    ];
    let asked = asked.into_iter().filter(|(is_asked, _)| *is_asked);
    asked.map(|(_, member)| format!("a page does without '{member}': it was left out"))
}

/// Searches a page, and answers that nothing changed where the caller knows the answer.
///
/// # Errors
/// As an execution.
pub async fn search(
    app: &App,
    open: &Open,
    request: RetrieverExecutionRequest,
    presigned_urls: bool,
    headers: &HeaderMap,
) -> Result<Response> {
    let undone = undone(&request);
    let ask = Execute {
        inputs: request.inputs.unwrap_or_default(),
        filters: request.filters,
        pagination: request.pagination,
        limit: request.limit,
        presigned_urls,
        skip_cache: request.skip_cache,
        highlights: request.return_highlights,
        ..Default::default()
    };
    let (mut shown, answered) = open.execute(app, ask).await?;
    shown.warnings.extend(undone);
    let mut response = match answered.mark.is_known(headers) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Json(shown).into_response(),
    };
    answered.mark.put(&mut response);
    Ok(response)
}

/// What another owner needs to build the same page.
#[utoipa::path(get, path = "/v1/public/retrievers/{public_name}/template", tag = "public_retrievers", responses((status = 200, body = PublicRetrieverTemplateResponse)))]
async fn get_public_template(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
) -> Result<Json<PublicRetrieverTemplateResponse>> {
    let open = super::open(&app, &name, &proof).await?;
    template(&app, open).map(Json)
}

/// The visitor's session, where the body names none.
struct Session(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let sent = parts.headers.get("x-session-id");
        let text = sent.and_then(|value| value.to_str().ok());
        Ok(Self(text.map(ToOwned::to_owned)))
    }
}

/// Tells what a visitor did with a result. Nothing else of a visitor is kept than what is sent.
#[utoipa::path(post, path = "/v1/public/retrievers/{public_name}/interactions", tag = "public_retrievers", request_body = PublicInteractionRequest, responses((status = 200, body = InteractionResponse)))]
async fn create_public_interaction(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
    Session(session): Session,
    Body(request): Body<PublicInteractionRequest>,
) -> Result<Json<InteractionResponse>> {
    let open = super::open(&app, &name, &proof).await?;
    open.tell(&app, session, request).await.map(Json)
}

/// Tells up to 100 things that a visitor did, as a beacon when the page is left.
#[utoipa::path(post, path = "/v1/public/retrievers/{public_name}/interactions/batch", tag = "public_retrievers", request_body = PublicInteractionBatchRequest, responses((status = 200, body = BulkInteractionsResponse)))]
async fn create_public_interactions(
    State(app): State<App>,
    Path(name): Path<String>,
    proof: Proof,
    Session(session): Session,
    Body(request): Body<PublicInteractionBatchRequest>,
) -> Result<Json<BulkInteractionsResponse>> {
    let open = super::open(&app, &name, &proof).await?;
    open.tell_all(&app, session, request.interactions)
        .await
        .map(Json)
}

/// Tries the password of a page. A right one is answered with a cookie that opens the page for a day; callers without
/// cookies send it in `X-Retriever-Password`.
#[utoipa::path(post, path = "/v1/public/retrievers/{public_name}/verify", tag = "public_retrievers", request_body = VerifyPasswordRequest, responses((status = 200, body = VerifyPasswordResponse)))]
async fn verify_public_password(
    State(app): State<App>,
    Path(name): Path<String>,
    Body(request): Body<VerifyPasswordRequest>,
) -> Result<Response> {
    verify(&app, &name, &request.password).await
}

/// Tries the password of a page.
///
/// # Errors
/// 404 for what does not exist for strangers, 429 for too many wrong passwords.
pub async fn verify(app: &App, name: &str, password: &str) -> Result<Response> {
    let unlocked = door::unlock(app, name, password).await?;
    let answer = VerifyPasswordResponse {
        valid: !matches!(unlocked, Unlocked::Wrong),
        public_api_key: None,
    };
    Ok(match unlocked {
        Unlocked::Cookie(cookie) => ([(header::SET_COOKIE, cookie)], Json(answer)).into_response(),
        _ => Json(answer).into_response(),
    })
}
