//! What the pages of an app tell of their visits, at its own host: also a page whose policy lets it connect to nothing else.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use futures::future::BoxFuture;
use loupe_hosted::app::files;
use loupe_wire::{GenericSuccessResponse, InteractionRequest};

use super::{Site, api, auth};
use crate::{
    app::App,
    body::Body,
    error::{ApiError, Result},
    idempotency,
    json::Json,
    v1::apps::keep_interaction,
};

/// Beside the addresses of sign-in, as no file of an app is there.
pub(super) const PATH: &str = "/_auth/interactions";

pub(super) async fn answer(app: &App, site: &Arc<Site>, request: Request) -> Response {
    let mut response = match request.headers().contains_key(idempotency::HEADER) {
        true => once(app, site, request).await.into_response(),
        false => note(app, site, request).await.into_response(),
    };
    let headers = response.headers_mut();
    files::common(headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The note, or what the first one with its name was answered.
async fn once(app: &App, site: &Arc<Site>, request: Request) -> Result<Response> {
    let owner = idempotency::Owner::stranger(app, &[site.app_id(), PATH].concat())?;
    let (state, site) = (app.clone(), site.clone());
    let work = move |request| -> BoxFuture<'static, Response> {
        Box::pin(async move { note(&state, &site, request).await.into_response() })
    };
    Ok(idempotency::run(app, owner, request, Box::new(work)).await)
}

async fn note(app: &App, site: &Site, request: Request) -> Result<Json<GenericSuccessResponse>> {
    if request.method() != Method::POST {
        let message = "this address is posted to";
        return Err(ApiError::method_not_allowed("", message));
    }
    auth::same_origin(request.headers(), request.uri())?;
    api::is_json(request.headers())?;
    let Body(told) = Body::<InteractionRequest>::from_request(request, app).await?;
    if site.preview {
        // Previews are the owner's own.
        return Ok(Json(GenericSuccessResponse::default()));
    }
    keep_interaction(app, &site.org_id, &site.hosted, told)
        .await
        .map(Json)
}
