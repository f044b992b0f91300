//! The page of one item: whether it is shown, and with what around it.

use std::time::Duration;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;

use super::head::Head;
use super::look::Look;
use super::query::{Query, View};
use super::reply::{self, Cache};
use super::results::Outcome;
use super::shell::{body_class, document, notice};
use super::theme::Theme;
use super::{Shared, ask_for, card, closed, expose, item, open, refuse};
use crate::{Hit, Host, HostError, Page, SearchRequest, Visitor};

/// How long an item waits for the ones beside it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers for one item.
pub async fn show(
    State(host): Shared,
    Path((public_name, document_id)): Path<(String, String)>,
    RawQuery(raw): RawQuery,
    visitor: Visitor,
    address: Uri,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name, &visitor, &address).await {
        Ok(page) => page,
        Err(reply) => return *reply,
    };
    let look = Look::of_page(&page);
    let raw = raw.as_deref().unwrap_or_default();
    let query = Query::read(&page, &look, raw, View::Page);
    let mut hit = match item_of(&*host, &page, &visitor, &document_id, &headers).await {
        Ok(hit) => hit,
        Err(reply) => return *reply,
    };
    expose(&page, &mut hit);
    let neighbours = neighbours(&*host, &page, &visitor, &look, &query, &document_id).await;
    let document = document(
        &*host,
        item_head(&*host, &page, &look, &query, &hit),
        &Theme::of(&page.display_config, &look),
        format!("{} item-page", body_class(&look, true)),
        || {
            let told = !visitor.unfollowed;
            item::item(&page, &look, &query, &hit, neighbours, host.now(), told)
        },
    );
    let cache = if page.is_protected {
        Cache::Never
    } else {
        Cache::Revalidate
    };
    reply::page(StatusCode::OK, document, cache, &headers)
}

/// The picture of an item, under an address that lasts: the file's own is signed and does not. Whoever shows links to the item
/// keeps this one.
pub async fn picture(
    State(host): Shared,
    Path((public_name, document_id)): Path<(String, String)>,
    visitor: Visitor,
    address: Uri,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name, &visitor, &address).await {
        Ok(page) => page,
        Err(reply) => return closed(*reply),
    };
    let mut hit = match item_of(&*host, &page, &visitor, &document_id, &headers).await {
        Ok(hit) => hit,
        Err(reply) => return closed(*reply),
    };
    expose(&page, &mut hit);
    match card::picture(&Look::of_page(&page), &hit) {
        Some((picture, _)) => reply::found(&picture.url, page.is_protected),
        None => reply::missing(),
    }
}

/// The item of this id, or the reply that says why it is not shown.
async fn item_of(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    document_id: &str,
    headers: &HeaderMap,
) -> Result<Hit, Box<Response>> {
    let (status, title, text) = match host.item(&page.public_name, visitor, document_id).await {
        Ok(Some(hit)) => return Ok(hit),
        Ok(None) => (
            StatusCode::NOT_FOUND,
            "Item not found",
            "It may have been removed from this page.",
        ),
        Err(HostError::Busy { retry_after_s }) => {
            let (title, text) = (
                "Too many searches just now",
                "Wait a moment, then try again.",
            );
            let mut reply = refuse(host, StatusCode::TOO_MANY_REQUESTS, title, text);
            reply
                .headers_mut()
                .insert(axum::http::header::RETRY_AFTER, retry_after_s.into());
            return Err(Box::new(reply));
        }
        Err(error) => {
            tracing::error!(%error, public_name = page.public_name, "an item could not be read");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Something went wrong",
                "The item could not be loaded. Try again in a moment.",
            )
        }
    };
    let told = notice(host, title, text);
    Err(Box::new(reply::page(status, told, Cache::Never, headers)))
}

/// The way to the items beside this one. It costs a search, and only visitors who came from one have it. An item is whole without
/// them: where they take long it is shown without.
async fn neighbours(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    look: &Look,
    query: &Query,
    document_id: &str,
) -> item::Neighbours {
    if query.is_empty() {
        return item::Neighbours::default();
    }
    let request = SearchRequest {
        facets: Vec::new(),
        is_beside: true,
        ..query.request(look.page_size)
    };
    let asked = ask_for(host, page, visitor, query, request);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Outcome::Answer(answer)) => {
            item::Neighbours::of(look, query, &answer.documents, document_id)
        }
        _ => item::Neighbours::default(),
    }
}

fn item_head(host: &dyn Host, page: &Page, look: &Look, query: &Query, hit: &Hit) -> Head {
    let text = look.texts(&hit.fields).into_iter().next();
    let text = text.map(|(_, text)| text);
    // Whoever shows links has no password, and finds no picture.
    let has_picture = !page.is_protected && card::picture(look, hit).is_some();
    let mut head = Head::of_item(
        page,
        &host.base_url(),
        hit,
        &card::title(look, hit),
        text.as_deref(),
        has_picture,
    );
    if !query.is_empty() && !page.is_protected {
        head.robots = "noindex, follow".to_owned();
    }
    head
}
