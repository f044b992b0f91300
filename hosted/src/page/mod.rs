//! Public search pages: `/r/{public_name}` and what belongs to it.

mod card;
mod form;
mod format;
mod head;
mod icon;
mod item;
mod look;
mod query;
mod reply;
mod results;
mod shell;
mod text;
mod theme;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use leptos::prelude::*;

use self::card::Cards;
use self::head::Head;
use self::look::Look;
use self::query::Query;
use self::reply::Cache;
use self::results::Outcome;
use self::shell::{Document, body_class, document, notice};
use self::text::Marks;
use self::theme::Theme;
use crate::{Hit, Host, HostError, Page};

type Shared = State<Arc<dyn Host>>;

/// Routes of the public pages, for the server to merge.
pub fn router(host: Arc<dyn Host>) -> Router {
    Router::new()
        .route("/r/{public_name}", get(search_page))
        .route("/r/{public_name}/icon", get(icon_file))
        .route("/r/{public_name}/item/{document_id}", get(item_page))
        .route("/sitemap.xml", get(sitemap))
        .route("/robots.txt", get(robots))
        .with_state(host)
}

/// The page of this name, or the reply that says why not and nothing more.
async fn open(host: &dyn Host, public_name: &str) -> Result<Page, Box<Response>> {
    let refuse = |status, title, text| {
        Err(Box::new(reply::page(
            status,
            notice(host, title, text),
            Cache::Never,
            &HeaderMap::new(),
        )))
    };
    let plausible = public_name.len() <= 64
        && public_name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let page = if plausible {
        host.page(public_name).await
    } else {
        Ok(None)
    };
    match page {
        Ok(None) => refuse(
            StatusCode::NOT_FOUND,
            "Page not found",
            "There is no search page at this address.",
        ),
        Ok(Some(page)) if !page.is_active => refuse(
            StatusCode::GONE,
            "Page no longer available",
            "This search page was taken down.",
        ),
        Ok(Some(page)) if page.password_protected => refuse(
            StatusCode::FORBIDDEN,
            "This page is protected",
            "A password is needed to see it.",
        ),
        Ok(Some(page)) => Ok(page),
        Err(error) => {
            tracing::error!(%error, public_name, "a public page could not be read");
            refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "Something went wrong",
                "The page could not be loaded. Try again in a moment.",
            )
        }
    }
}

async fn search_page(
    State(host): Shared,
    Path(public_name): Path<String>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name).await {
        Ok(page) => page,
        Err(reply) => return *reply,
    };
    let look = Look::of(&page.display_config);
    let query = Query::read(&page, &look, raw.as_deref().unwrap_or_default());
    let outcome = ask(&*host, &page, &look, &query).await;
    let status = match &outcome {
        Outcome::Failed(HostError::Invalid(_)) | Outcome::Refused => StatusCode::BAD_REQUEST,
        Outcome::Failed(HostError::Busy { .. }) => StatusCode::TOO_MANY_REQUESTS,
        Outcome::Failed(HostError::Timeout) => StatusCode::GATEWAY_TIMEOUT,
        Outcome::Failed(HostError::Failed(_)) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let cache = if status == StatusCode::OK && query.is_empty() {
        Cache::Revalidate
    } else {
        Cache::Never
    };
    let document = render_search(&*host, &page, &look, &query, &outcome);
    let mut reply = reply::page(status, document, cache, &headers);
    if let Outcome::Failed(HostError::Busy { retry_after_s }) = outcome {
        reply
            .headers_mut()
            .insert(axum::http::header::RETRY_AFTER, retry_after_s.into());
    }
    reply
}

async fn ask(host: &dyn Host, page: &Page, look: &Look, query: &Query) -> Outcome {
    if query.has_errors() {
        return Outcome::Refused;
    }
    if query.is_empty() && !page.allows_empty_query {
        return Outcome::Waiting;
    }
    match host
        .search(&page.public_name, query.request(look.page_size))
        .await
    {
        Ok(mut answer) => {
            for warning in &answer.warnings {
                tracing::warn!(
                    public_name = page.public_name,
                    warning,
                    "a public search warned"
                );
            }
            answer
                .documents
                .iter_mut()
                .for_each(|hit| expose(page, hit));
            Outcome::Answer(answer)
        }
        Err(error) => {
            tracing::warn!(%error, public_name = page.public_name, "a public search failed");
            Outcome::Failed(error)
        }
    }
}

/// Cuts away every field that is not exposed. The host has done it; a page must not depend on that.
fn expose(page: &Page, hit: &mut Hit) {
    let exposed = &page.display_config.exposed_fields;
    let fields = exposed
        .iter()
        .filter_map(|name| Some((name.clone(), look::get(&hit.fields, name)?.clone())))
        .collect();
    hit.fields = fields;
}

fn render_search(
    host: &dyn Host,
    page: &Page,
    look: &Look,
    query: &Query,
    outcome: &Outcome,
) -> Document {
    let base_url = host.base_url();
    let asked = !query.is_empty() || query.page > 1;
    let theme = Theme::of(&page.display_config, look);
    let mut head = Head::of_page(page, &base_url, asked, &query.words());
    if let (Outcome::Answer(answer), false) = (outcome, asked) {
        let items: Vec<_> = answer
            .documents
            .iter()
            .take(12)
            .map(|hit| (card::title(look, hit), query.item(&hit.document_id)))
            .collect();
        head.add_list(&base_url, &items);
    }
    document(host, head, &theme, body_class(look, asked), || {
        let display = &page.display_config;
        let cards = Cards {
            page,
            look,
            query,
            marks: Marks::of(&query.words()),
            now: host.now(),
        };
        let hero = if look.hero && !asked {
            "hero"
        } else if look.hero {
            "hero small"
        } else {
            "hero sr"
        };
        let waiting = matches!(outcome, Outcome::Waiting);
        view! {
            {shell::top(page, &query.path)}
            <main class="shell">
                <div class="intro">
                    <div class=hero>
                        <h1>{display.title.clone()}</h1>
                        {display.description.clone().filter(|_| !asked).map(|text| view! { <p class="lede">{text}</p> })}
                    </div>
                    {look.search.then(|| form::form(query, waiting))}
                    {(!asked).then(|| form::suggestions(query))}
                </div>
                {results::results(&cards, outcome)}
                {shell::sections(page)}
            </main>
            {shell::foot()}
        }
        .into_any()
    })
}

async fn item_page(
    State(host): Shared,
    Path((public_name, document_id)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name).await {
        Ok(page) => page,
        Err(reply) => return *reply,
    };
    let look = Look::of(&page.display_config);
    let query = Query::read(&page, &look, raw.as_deref().unwrap_or_default());
    let mut hit = match host.item(&page.public_name, &document_id).await {
        Ok(Some(hit)) => hit,
        Ok(None) => {
            let missing = notice(
                &*host,
                "Item not found",
                "It may have been removed from this page.",
            );
            return reply::page(StatusCode::NOT_FOUND, missing, Cache::Never, &headers);
        }
        Err(error) => {
            tracing::error!(%error, public_name, "an item could not be read");
            let failed = notice(
                &*host,
                "Something went wrong",
                "The item could not be loaded. Try again in a moment.",
            );
            return reply::page(
                StatusCode::SERVICE_UNAVAILABLE,
                failed,
                Cache::Never,
                &headers,
            );
        }
    };
    expose(&page, &mut hit);
    // The way to the neighbours costs one search, and only for visitors who came from one.
    let neighbours = if query.is_empty() {
        item::Neighbours::default()
    } else {
        match ask(&*host, &page, &look, &query).await {
            Outcome::Answer(answer) => {
                item::Neighbours::of(&look, &query, &answer.documents, &document_id)
            }
            _ => item::Neighbours::default(),
        }
    };
    let title = card::title(&look, &hit);
    let text = look.text(&hit.fields).map(|(_, text)| text);
    let picture = card::picture(&look, &hit).map(|(picture, _)| picture.url);
    let mut head = Head::of_item(
        &page,
        &host.base_url(),
        &hit,
        &title,
        text.as_deref(),
        picture.as_deref(),
    );
    if !query.is_empty() {
        head.robots = "noindex, follow".to_owned();
    }
    let theme = Theme::of(&page.display_config, &look);
    let document = document(
        &*host,
        head,
        &theme,
        format!("{} item-page", body_class(&look, true)),
        || item::item(&page, &look, &query, &hit, neighbours, host.now()),
    );
    reply::page(StatusCode::OK, document, Cache::Revalidate, &headers)
}

async fn icon_file(
    State(host): Shared,
    Path(public_name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match open(&*host, &public_name).await {
        Ok(page) => match page
            .display_config
            .icon_base64
            .as_deref()
            .and_then(icon::decode)
        {
            Some((kind, bytes)) => reply::file(kind, bytes, &headers),
            None => reply::missing(),
        },
        Err(_) => reply::missing(),
    }
}

async fn sitemap(State(host): Shared) -> Response {
    match host.listed().await {
        Ok(pages) => reply::sitemap(&host.base_url(), &pages),
        Err(error) => {
            tracing::error!(%error, "the sitemap could not be read");
            reply::unavailable()
        }
    }
}

async fn robots(State(host): Shared) -> Response {
    reply::text(format!(
        "User-agent: *\nAllow: /r/\nDisallow: /v1/\n\nSitemap: {}/sitemap.xml\n",
        host.base_url()
    ))
}
