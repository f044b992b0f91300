//! Public search pages: `/r/{public_name}` and what belongs to it.

mod beside;
mod canvas;
mod card;
mod dates;
mod form;
mod format;
mod frame;
mod grammar;
mod head;
mod held;
mod icon;
mod input;
mod item;
mod item_page;
mod lock;
mod look;
mod media;
mod moments;
mod preview;
mod progress;
mod query;
mod reply;
mod results;
mod shell;
mod slots;
mod template;
mod text;
pub(crate) mod theme;
mod upload;
mod visitor;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use leptos::prelude::*;
use tokio::sync::mpsc;

use self::beside::Beside;
use self::card::Cards;
use self::head::Head;
use self::look::Look;
use self::query::{Query, View, encode};
use self::reply::Cache;
use self::results::Outcome;
use self::shell::{Document, body_class, document, notice};
use self::text::Marks;
use self::theme::Theme;
use crate::{Hit, Host, HostError, Page, SearchRequest, Seen, Visitor};

pub use self::grammar::doubts;
pub use self::input::drawn_as;
pub use self::preview::address_of as picture_address;
pub use self::template::{TemplateFault, faults as template_faults};

type Shared = State<Arc<dyn Host>>;

/// Routes of the public pages, for the server to merge.
pub fn router(host: Arc<dyn Host>) -> Router {
    Router::new()
        .route(
            "/r/{public_name}",
            get(search_page).post(upload::search_page),
        )
        .route(
            "/r/{public_name}/embed",
            get(frame::embedded).post(upload::embedded),
        )
        .layer(DefaultBodyLimit::max(upload::LARGEST_FORM))
        .route("/r/{public_name}/", get(slashed))
        .route("/r/{public_name}/icon", get(icon_file))
        .route("/r/{public_name}/preview.png", get(preview::picture))
        .route("/r/{public_name}/unlock", post(lock::unlock))
        .route("/r/{public_name}/item/{document_id}", get(item_page::show))
        .route(
            "/r/{public_name}/item/{document_id}/picture",
            get(item_page::picture),
        )
        .route("/sitemap.xml", get(sitemap))
        .route("/robots.txt", get(robots))
        .with_state(host)
}

/// A reply that says one thing and tells nothing else.
fn refuse(
    host: &dyn Host,
    status: StatusCode,
    title: &'static str,
    text: &'static str,
) -> Response {
    let document = notice(host, title, text);
    reply::page(status, document, Cache::Never, &HeaderMap::new())
}

/// What does not exist and what is not for strangers look the same.
fn nothing(host: &dyn Host) -> Response {
    let document = missing(host);
    reply::page(
        StatusCode::NOT_FOUND,
        document,
        Cache::Never,
        &HeaderMap::new(),
    )
}

fn missing(host: &dyn Host) -> Document {
    let text = "There is no search page at this address.";
    notice(host, "Page not found", text)
}

fn trouble(host: &dyn Host) -> Response {
    let text = "The page could not be loaded. Try again in a moment.";
    refuse(
        host,
        StatusCode::SERVICE_UNAVAILABLE,
        "Something went wrong",
        text,
    )
}

/// Whether a page can have this name.
fn is_plausible(public_name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    public_name.len() <= 64 && public_name.bytes().all(allowed)
}

/// An address of a page, under another name.
fn renamed(address: &Uri, public_name: &str) -> String {
    let before = address.path_and_query().map_or("", |to| to.as_str());
    let inside = before.strip_prefix("/r/").unwrap_or_default();
    let rest = inside.find(['/', '?']).map_or("", |end| &inside[end..]);
    format!("/r/{}{rest}", encode(public_name))
}

/// The page of this name as this visitor finds it, or the reply that says why not and nothing more.
async fn open(
    host: &dyn Host,
    public_name: &str,
    visitor: &Visitor,
    address: &Uri,
) -> Result<Page, Box<Response>> {
    let seen = if is_plausible(public_name) {
        host.page(public_name, visitor).await
    } else {
        Ok(Seen::Nothing)
    };
    match seen {
        Ok(Seen::Page(page)) if page.public_name != public_name => {
            Err(Box::new(reply::moved(&renamed(address, &page.public_name))))
        }
        Ok(Seen::Page(page)) => Ok(*page),
        Ok(Seen::Nothing) => Err(Box::new(nothing(host))),
        Ok(Seen::Locked) => {
            let to = address.path_and_query().map_or("", |to| to.as_str());
            Err(Box::new(lock::locked(
                host,
                public_name,
                to,
                lock::Asked::First,
            )))
        }
        Err(error) => {
            tracing::error!(%error, public_name, "a public page could not be read");
            Err(Box::new(trouble(host)))
        }
    }
}

/// An address that was written with a slash at its end.
async fn slashed(State(host): Shared, Path(public_name): Path<String>, address: Uri) -> Response {
    if !is_plausible(&public_name) {
        return nothing(&*host);
    }
    let query = address.query().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    reply::moved(&format!("/r/{}{query}", encode(&public_name)))
}

async fn search_page(
    State(host): Shared,
    Path(public_name): Path<String>,
    RawQuery(raw): RawQuery,
    mut visitor: Visitor,
    address: Uri,
    headers: HeaderMap,
) -> Response {
    let page = match open(&*host, &public_name, &visitor, &address).await {
        Ok(page) => page,
        Err(reply) => return *reply,
    };
    if progress::is_told(&page) && progress::is_asked(&headers) {
        let (steps, told) = mpsc::channel(progress::WAITING);
        visitor.steps = Some(steps);
        let headers = HeaderMap::new();
        let running =
            async move { search(&*host, &page, &visitor, raw, View::Page, &headers).await };
        return progress::follow(Box::pin(running), told).await;
    }
    search(&*host, &page, &visitor, raw, View::Page, &headers).await
}

/// The page with the answer to what the address asks.
async fn search(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    raw: Option<String>,
    view: View,
    headers: &HeaderMap,
) -> Response {
    let look = Look::of_page(page);
    let query = Query::read(page, &look, raw.as_deref().unwrap_or_default(), view);
    show(host, page, visitor, &look, &query, headers).await
}

/// The page with the answer to a query.
async fn show(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    look: &Look,
    query: &Query,
    headers: &HeaderMap,
) -> Response {
    let outcome = ask(host, page, visitor, look, query).await;
    let beside = Beside::of(host, page, visitor, look, query, &outcome).await;
    let status = match &outcome {
        Outcome::Failed(HostError::Invalid(_)) | Outcome::Refused => StatusCode::BAD_REQUEST,
        Outcome::Failed(HostError::Busy { .. }) => StatusCode::TOO_MANY_REQUESTS,
        Outcome::Failed(HostError::Timeout) => StatusCode::GATEWAY_TIMEOUT,
        Outcome::Failed(HostError::Failed(_)) => StatusCode::SERVICE_UNAVAILABLE,
        Outcome::Answer(answer) if answer.is_nothing_yet() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let is_partial = matches!(&outcome, Outcome::Answer(answer) if answer.is_partial);
    let lasts = status == StatusCode::OK && query.is_empty() && !is_partial;
    let cache = if lasts && !page.is_protected {
        Cache::Revalidate
    } else {
        Cache::Never
    };
    let told = !visitor.unfollowed;
    let document = render_search(host, page, look, query, (&outcome, &beside), told);
    let mut reply = reply::page(status, document, cache, headers);
    if let Outcome::Failed(HostError::Busy { retry_after_s }) = outcome {
        reply
            .headers_mut()
            .insert(axum::http::header::RETRY_AFTER, retry_after_s.into());
    }
    reply
}

async fn ask(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    look: &Look,
    query: &Query,
) -> Outcome {
    let request = query.request(look.page_size);
    ask_for(host, page, visitor, query, request).await
}

/// Asks what a query stands for, unless it cannot be asked.
async fn ask_for(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    query: &Query,
    request: SearchRequest,
) -> Outcome {
    if query.has_errors() {
        return Outcome::Refused;
    }
    if query.is_empty() && !page.allows_empty_query {
        return Outcome::Waiting;
    }
    match host.search(&page.public_name, visitor, request).await {
        Ok(mut answer) => {
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
    let parts = hit.media.iter_mut().flat_map(|media| &mut media.parts);
    parts.for_each(|part| expose(page, part));
}

/// Titles and addresses of the first items of an answer, as search engines are told.
fn first_items(look: &Look, query: &Query, hits: &[Hit]) -> Vec<(String, String)> {
    let first = hits.iter().take(12);
    let told = first.map(|hit| (card::title(look, hit), query.item(&hit.document_id)));
    told.collect()
}

/// The page's title, and what is said of it until something is asked.
fn hero(page: &Page, seen: bool, asked: bool) -> AnyView {
    let display = &page.display_config;
    let class = match (seen, asked) {
        (false, _) => "hero sr",
        (true, false) => "hero",
        (true, true) => "hero small",
    };
    let description = display.description.clone().filter(|_| !asked);
    view! {
        <div class=class>
            <h1>{display.title.clone()}</h1>
            {description.map(|text| view! { <p class="lede">{text}</p> })}
        </div>
    }
    .into_any()
}

fn render_search(
    host: &dyn Host,
    page: &Page,
    look: &Look,
    query: &Query,
    (outcome, beside): (&Outcome, &Beside),
    told: bool,
) -> Document {
    let asked = !query.is_empty() || query.page > 1;
    let theme = Theme::of(&page.display_config, look);
    let base_url = host.base_url();
    let about = beside.like.as_ref().map(|like| like.said());
    let about = about.unwrap_or_else(|| query.words());
    let mut head = Head::of_page(page, &base_url, asked, &about);
    if query.is_stray && !page.is_protected {
        "noindex, follow".clone_into(&mut head.robots);
    }
    if let (Outcome::Answer(answer), false) = (outcome, asked) {
        head.add_list(&base_url, &first_items(look, query, &answer.documents));
    }
    let framed = query.is_framed();
    let mut class = body_class(look, asked);
    if framed {
        class.push_str(" framed");
        "noindex, follow".clone_into(&mut head.robots);
    }
    let mut document = document(host, head, &theme, class, || {
        let display = &page.display_config;
        let cards = Cards {
            page,
            look,
            query,
            marks: Marks::of(&query.words()),
            now: host.now(),
            beside,
        };
        let waiting = matches!(outcome, Outcome::Waiting);
        // What was searched for stays on the visitor's machine, and not even there behind a password.
        let remembers = told && !framed && !page.is_protected;
        let tells = progress::is_told(page) && !framed;
        view! {
            {(!framed).then(|| shell::top(page, &query.home))}
            // The page around a frame has a main part of its own.
            <main class="shell" aria-label=framed.then(|| display.title.clone())>
                <div class="intro">
                    {hero(page, look.hero && !framed, asked)}
                    {match look.search {
                        true => form::form(query, waiting && !framed, remembers, tells),
                        false => form::unseen(query),
                    }}
                    {(!asked).then(|| form::suggestions(query))}
                </div>
                {results::results(&cards, outcome, told)}
                {if framed { None } else { shell::sections(page) }}
            </main>
            {if framed { shell::frame_foot(page, &query.home) } else { shell::foot_of(page) }}
        }
        .into_any()
    });
    if let Outcome::Answer(answer) = outcome {
        document.passing.clone_from(&answer.execution_id);
    }
    document.ancestors = framed.then(|| frame::ancestors(page));
    document
}

async fn icon_file(
    State(host): Shared,
    Path(public_name): Path<String>,
    visitor: Visitor,
    address: Uri,
    headers: HeaderMap,
) -> Response {
    match open(&*host, &public_name, &visitor, &address).await {
        Ok(page) => match page
            .display_config
            .icon_base64
            .as_deref()
            .and_then(icon::decode)
        {
            Some((kind, bytes)) => reply::file(kind, bytes, page.is_protected, &headers),
            None => reply::missing(),
        },
        Err(reply) => closed(*reply),
    }
}

/// What a file beside a page answers where the page does not open: it leads on where the page does, and tells nothing else.
fn closed(reply: Response) -> Response {
    match reply.status() {
        StatusCode::PERMANENT_REDIRECT | StatusCode::TOO_MANY_REQUESTS => reply,
        StatusCode::SERVICE_UNAVAILABLE => reply::unavailable(),
        _ => reply::missing(),
    }
}

async fn sitemap(State(host): Shared) -> Response {
    match host.listed().await {
        Ok(pages) => reply::sitemap(&host.base_url(), &pages),
        Err(HostError::Busy { retry_after_s }) => reply::busy(retry_after_s),
        Err(error) => {
            tracing::error!(%error, "the sitemap could not be read");
            reply::unavailable()
        }
    }
}

async fn robots(State(host): Shared) -> Response {
    // Pictures of pages are files with signed addresses.
    reply::text(format!(
        "User-agent: *\nAllow: /r/\nAllow: /v1/blobs/\nDisallow: /v1/\n\nSitemap: {}/sitemap.xml\n",
        host.base_url()
    ))
}
