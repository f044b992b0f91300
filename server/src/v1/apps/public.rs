//! What strangers may ask of an app through the API: its page, searches of its tabs, and what they did there.

use std::collections::{HashMap, HashSet};

use axum::extract::{Path, State};
use loupe_wire::{
    DisplayConfig, FeaturedGalleryConfig, GenericSuccessResponse, InteractionRequest, PageTab,
    PublicAppConfigResponse, PublicAppSearchRequest, PublicExecuteResponse, TaxonomyPathNode,
    TaxonomyTreeResponse, Value,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{Hosted, PRODUCTION, insight, store};
use crate::{
    app::App,
    body::Body,
    error::{ApiError, Result},
    hosting::{
        self,
        visits::{self, MINUTE, Tally},
    },
    id,
    json::Json,
    openapi::routes,
    v1::{
        public::{Open, Proof},
        retrievers::{self, Asked, Execute, Settings, cast},
    },
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_public_app))
        .routes(routes!(search_public_app))
        .routes(routes!(get_public_gallery))
        .routes(routes!(get_public_tree))
        .routes(routes!(note_interaction))
}

/// Bytes of one interaction, and of what is kept of it: anybody sends them.
const LARGEST: usize = 16 << 10;
const KEPT: usize = 2 << 10;

/// Letters that each text of a larger one keeps.
const LETTERS: usize = 300;

/// An app that strangers may see, with its organization; anything else does not exist for them.
async fn open(app: &App, slug: &str) -> Result<(String, Hosted)> {
    let found = store::by_slug(app.db(), slug).await?;
    found
        .filter(|(_, hosted)| hosted.is_active && hosted.published.is_some())
        .ok_or_else(|| ApiError::not_found("app", slug))
}

/// An app's page as it was published.
#[utoipa::path(get, path = "/v1/public/apps/{slug}/config", tag = "public_apps", security(()), responses((status = 200, body = PublicAppConfigResponse)))]
async fn get_public_app(
    State(app): State<App>,
    Path(slug): Path<String>,
) -> Result<Json<PublicAppConfigResponse>> {
    let (_, hosted) = open(&app, &slug).await?;
    without_password(&hosted)?;
    let mut told = json!(hosted.page());
    told["slug"] = json!(hosted.slug);
    told["is_active"] = json!(hosted.is_active);
    told["password_protected"] = json!(hosted.is_password_protected());
    if hosted.environments.contains_key(PRODUCTION) {
        told["bundle_url"] = json!(format!("{}/", hosting::url(&app, &hosted.slug)));
    }
    cast(&told).map(Json)
}

/// Searches with a tab of an app: its retriever runs, and only what the tab exposes is answered. `settings` has `limit`,
/// `pagination`, `filters` and `skip_cache`.
#[utoipa::path(post, path = "/v1/public/apps/{slug}/search", tag = "public_apps", security(()), request_body = PublicAppSearchRequest, responses((status = 200, body = PublicExecuteResponse)))]
async fn search_public_app(
    State(app): State<App>,
    Path(slug): Path<String>,
    Asked(request): Asked<PublicAppSearchRequest>,
) -> Result<Json<PublicExecuteResponse>> {
    let (org_id, hosted) = open(&app, &slug).await?;
    for_everybody(&hosted)?;
    let tabs = &hosted.page().tabs;
    let tab = tabs.iter().find(|tab| tab.tab_id == request.tab_id);
    let tab = tab.ok_or_else(|| ApiError::not_found("tab", &request.tab_id))?;
    let open = open_tab(&app, &org_id, &hosted, tab).await?;
    let settings = Settings::read(request.settings)?;
    let ask = Execute {
        inputs: request.inputs.unwrap_or_default(),
        filters: settings.filters,
        pagination: settings.pagination,
        limit: settings.limit,
        skip_cache: settings.skip_cache,
        presigned_urls: true,
        ..Default::default()
    };
    let (answer, _) = open.execute(&app, ask).await?;
    Ok(Json(answer))
}

/// Of an app with a password strangers are told that it has one.
fn without_password(hosted: &Hosted) -> Result<()> {
    if !hosted.is_password_protected() {
        return Ok(());
    }
    let message = "this app has a password: give it at its own address";
    Err(ApiError::unauthenticated("password_required", message).with("password_protected", true))
}

/// Strangers search nothing of an app that people sign in to, that is called with tokens or keys, or that has a password.
fn for_everybody(hosted: &Hosted) -> Result<()> {
    without_password(hosted)?;
    if super::has_sign_in(hosted.auth_config.as_ref()) {
        return Err(ApiError::unauthenticated(
            "sign_in_required",
            "this app is searched by people who signed in to it: use its own address",
        ));
    }
    if super::has_bearers(hosted.auth_config.as_ref()) {
        let message = "this app is searched with a token or a key: use its own /api";
        return Err(ApiError::unauthenticated("token_required", message));
    }
    Ok(())
}

/// What an app shows before anybody searches: its gallery's retriever with the gallery's own inputs. Only fields that
/// `field_config` names are answered.
#[utoipa::path(get, path = "/v1/public/apps/{slug}/gallery", tag = "public_apps", security(()), responses((status = 200, body = PublicExecuteResponse)))]
async fn get_public_gallery(
    State(app): State<App>,
    Path(slug): Path<String>,
) -> Result<Json<PublicExecuteResponse>> {
    let (org_id, hosted) = open(&app, &slug).await?;
    for_everybody(&hosted)?;
    let (gallery, shown) = gallery(&hosted).ok_or_else(|| ApiError::not_found("gallery", &slug))?;
    let ask = Execute {
        inputs: gallery.default_inputs.clone(),
        presigned_urls: true,
        ..Default::default()
    };
    let open = open_tab(&app, &org_id, &hosted, &shown).await?;
    let (answer, _) = open.execute(&app, ask).await?;
    Ok(Json(answer))
}

/// The gallery of an app that shows one, and the tab that it is.
fn gallery(hosted: &Hosted) -> Option<(&FeaturedGalleryConfig, PageTab)> {
    let gallery = hosted.page().featured_gallery.as_ref();
    let gallery = gallery.filter(|gallery| gallery.enabled)?;
    let tab = PageTab {
        tab_id: "gallery".into(),
        retriever_id: gallery.retriever_id.clone(),
        public_name: gallery.public_name.clone(),
        display_config: DisplayConfig {
            title: gallery.title.clone(),
            exposed_fields: gallery.field_config.keys().cloned().collect(),
            field_config: gallery.field_config.clone(),
            layout: gallery.layout.clone(),
            ..Default::default()
        },
        ..Default::default()
    };
    Some((gallery, tab))
}

/// The tree of a taxonomy that a tab of the app, or its gallery, sorts its documents by: nodes with `node_id`, `label`, `path`,
/// `level` and `children`. Any other taxonomy does not exist for strangers.
#[utoipa::path(get, path = "/v1/public/apps/{slug}/taxonomies/{taxonomy_id}/tree", tag = "public_apps", security(()), responses((status = 200, body = TaxonomyTreeResponse)))]
async fn get_public_tree(
    State(app): State<App>,
    Path((slug, taxonomy_id)): Path<(String, String)>,
) -> Result<Json<TaxonomyTreeResponse>> {
    let (org_id, hosted) = open(&app, &slug).await?;
    for_everybody(&hosted)?;
    let shown = gallery(&hosted).map(|(_, tab)| tab);
    for tab in hosted.page().tabs.iter().chain(&shown) {
        // A tab whose retriever is gone shows nothing.
        let open = match open_tab(&app, &org_id, &hosted, tab).await {
            Err(error) if error.is_not_found() => continue,
            open => open?,
        };
        if let Some(places) = open.tree(&app, &taxonomy_id).await? {
            let nodes = nested(places);
            return Ok(Json(TaxonomyTreeResponse { taxonomy_id, nodes }));
        }
    }
    Err(ApiError::not_found("taxonomy", &taxonomy_id))
}

/// Places, each within the one above it. One whose upper one is not told stands by itself.
fn nested(places: Vec<TaxonomyPathNode>) -> Vec<Value> {
    let known: HashSet<String> = places.iter().map(|place| place.node_id.clone()).collect();
    let mut below: HashMap<Option<String>, Vec<TaxonomyPathNode>> = HashMap::new();
    for place in places {
        let above = place.parent_id.clone().filter(|id| known.contains(id));
        below.entry(above).or_default().push(place);
    }
    under(None, &mut below)
}

fn under(
    above: Option<String>,
    below: &mut HashMap<Option<String>, Vec<TaxonomyPathNode>>,
) -> Vec<Value> {
    let places = below.remove(&above).unwrap_or_default().into_iter();
    let node = |place: TaxonomyPathNode| {
        json!({
            "node_id": place.node_id, "label": place.label, "path": place.path, "level": place.level,
            "children": under(Some(place.node_id.clone()), below),
        })
    };
    places.map(node).collect()
}

/// The retriever of a tab: one that is published under a name, or one of the organization.
async fn open_tab(app: &App, org_id: &str, hosted: &Hosted, tab: &PageTab) -> Result<Open> {
    let missing = || ApiError::not_found("retriever", tab.retriever_id.as_deref().unwrap_or(""));
    if let Some(id) = &tab.retriever_id {
        let namespace = retrievers::namespace_of(app.db(), org_id, id).await?;
        let namespace = namespace.ok_or_else(missing)?;
        return Open::of_tab(app, org_id, namespace, id, (hosted.app_id.as_str(), tab)).await;
    }
    let name = tab.public_name.as_deref().ok_or_else(missing)?;
    let open = crate::v1::public::open(app, name, &Proof::default()).await?;
    if open.org_id() == org_id {
        Ok(open)
    } else {
        Err(ApiError::not_found("published_retriever", name))
    }
}

/// Notes what a visitor did.
#[utoipa::path(post, path = "/v1/public/apps/{slug}/interactions", tag = "public_apps", security(()), request_body = InteractionRequest, responses((status = 200, body = GenericSuccessResponse)))]
async fn note_interaction(
    State(app): State<App>,
    Path(slug): Path<String>,
    Body(request): Body<InteractionRequest>,
) -> Result<Json<GenericSuccessResponse>> {
    let (org_id, hosted) = open(&app, &slug).await?;
    keep_interaction(&app, &org_id, &hosted, request)
        .await
        .map(Json)
}

/// Keeps what a page of an app tells of a visit, where its owner wants to know.
///
/// # Errors
/// 413 for what is too large, 429 for too much from there, or of the app.
pub async fn keep_interaction(
    app: &App,
    org_id: &str,
    hosted: &Hosted,
    request: InteractionRequest,
) -> Result<GenericSuccessResponse> {
    hosting::limits::take_note(app, &hosted.app_id)?;
    let size = serde_json::to_vec(&request).map_err(ApiError::internal)?;
    if size.len() > LARGEST {
        let message = format!("an interaction is larger than {LARGEST} bytes");
        return Err(ApiError::payload_too_large("", message));
    }
    if !visits::is_on(hosted) {
        return Ok(GenericSuccessResponse::default());
    }
    let kept = cut(&request, size.len());
    let (org_id, app_id) = (org_id.to_owned(), hosted.app_id.clone());
    let (event_id, now) = (id::new("ixn_"), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let place = (org_id.as_str(), app_id.as_str());
                let kind = insight::kind_of(&request.event_type);
                if kind == insight::REPORTED {
                    let failed = Tally {
                        errors: 1,
                        ..Tally::default()
                    };
                    visits::add(tx, place, now.div_euclid(MINUTE), failed).await?;
                }
                store::insert_event(tx, place, &event_id, kind, &kept, now).await
            })
        })
        .await?;
    Ok(GenericSuccessResponse::default())
}

/// What is kept of an interaction of this size.
fn cut(request: &InteractionRequest, size: usize) -> Value {
    let mut kept = json!(request);
    if size > KEPT {
        shorten(&mut kept);
    }
    if kept.to_string().len() > KEPT {
        kept = json!({ "event_type": request.event_type, "document_id": request.document_id, "cut": true });
    }
    kept
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(LETTERS) {
                text.truncate(end);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}
