//! Which page an address means: tables of patterns. The router's own routes are typed views nested in one another,
//! which costs a tenth of the WebAssembly for the same work.

use std::{future::Future, pin::Pin};

use gloo_timers::future::TimeoutFuture;
use leptos::{
    prelude::*,
    wasm_split::{SplitLoaderError, wasm_split},
};
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate},
    location::{BrowserUrl, LocationProvider},
};
use wasm_bindgen_futures::spawn_local;

use crate::{
    frame::Lost,
    page::*,
    palette,
    part::{Empty, Skeletons},
};

/// What everything hangs below.
pub const BASE: &str = "/console";

pub type Page = fn() -> AnyView;

/// A page, once the piece of the program that it is in has come.
type Fetched = Pin<Box<dyn Future<Output = Result<Page, SplitLoaderError>>>>;

/// Pages whose code is a piece of the program of its own, fetched when the first of them is opened.
macro_rules! piece {
    ($name:ident, $patterns:ident: $($pattern:literal => $page:path,)*) => {
        const $patterns: &[&str] = &[$($pattern),*];

        #[wasm_split($name, wasm_split_path = leptos::wasm_split, fallible)]
        fn $name(at: usize) -> Result<Page, SplitLoaderError> {
            const PAGES: &[Page] = &[$($page),*];
            Ok(PAGES[at])
        }
    };
}

piece!(data, DATA:
    "ns/:ns/buckets" => buckets::buckets,
    "ns/:ns/buckets/:bucket" => bucket::bucket,
    "ns/:ns/buckets/:bucket/objects/:object" => object::object,
    "ns/:ns/batches" => batches::batches,
    "ns/:ns/batches/:bucket/:batch" => batch::batch,
    "ns/:ns/batches/:batch" => batch::batch,
    "tasks" => tasks::tasks,
);

piece!(documents, DOCUMENTS:
    "ns/:ns/collections" => collections::collections,
    "ns/:ns/collections/:collection" => documents::documents,
    "ns/:ns/templates" => templates::templates,
    "ns/:ns/templates/:kind/:template" => templates::one::template,
);

piece!(search, SEARCH:
    "ns/:ns/retrievers" => retrievers::retrievers,
    "ns/:ns/retrievers/:retriever" => playground::playground,
    "ns/:ns/retrievers/:retriever/edit" => retriever_form::change_stages,
    "ns/:ns/new-retriever" => retriever_form::new_retriever,
);

piece!(operate, OPERATE:
    "notifications" => notifications::notifications,
    "alerts" => alerts::everywhere::everywhere,
    "ns/:ns/activity" => activity::activity,
    "ns/:ns/triggers" => triggers::triggers,
    "ns/:ns/alerts" => alerts::alerts,
    "webhooks" => webhooks::webhooks,
    "ns/:ns/clusters" => clusters::clusters,
    "ns/:ns/clusters/:cluster" => clusters::one::cluster,
);

piece!(seldom, SELDOM:
    "ns/:ns/configuration" => manifest::manifest,
    "ns/:ns/review" => review::review,
    "ns/:ns/snapshots" => snapshots::snapshots,
    "ns/:ns/migrations" => migrations::migrations,
    "apps" => apps::apps,
    "apps/:app" => apps::one::app,
);

piece!(organization, ORGANIZATION:
    "organization" => organization::organization,
    "spending" => spending::spending,
    "users" => users::users,
    "keys" => keys::keys,
    "audit" => audit::audit,
    "connections" => connections::connections,
    "secrets" => secrets::secrets,
    "ns/:ns/published" => published::published,
);

piece!(design, DESIGN:
    "ns/:ns/retrievers/:retriever/page" => publish::publish,
    "ns/:ns/taxonomies" => taxonomies::taxonomies,
    "ns/:ns/taxonomies/:taxonomy" => taxonomies::one::taxonomy,
    "ns/:ns/evaluations" => evaluations::evaluations,
);

/// What the palette shows is no page, and not part of the first one.
#[wasm_split(jump, wasm_split_path = leptos::wasm_split, fallible)]
fn jump(at: usize) -> Result<Page, SplitLoaderError> {
    const PAGES: &[Page] = &[palette::inside];
    Ok(PAGES[at])
}

pub async fn palette() -> Page {
    fetched(|at| Box::pin(jump(at)), 0).await
}

/// Where everybody begins comes with the rest of the frame.
const FIRST: &[&str] = &["namespaces"];

/// How to get at the pages of a piece.
type Fetch = fn(usize) -> Fetched;

/// The addresses of each piece, and how to get at its pages.
const PIECES: [(&[&str], Fetch); 8] = [
    (FIRST, |_| {
        Box::pin(async { Ok(namespaces::namespaces as Page) })
    }),
    (DATA, |at| Box::pin(data(at))),
    (DOCUMENTS, |at| Box::pin(documents(at))),
    (SEARCH, |at| Box::pin(search(at))),
    (OPERATE, |at| Box::pin(operate(at))),
    (SELDOM, |at| Box::pin(seldom(at))),
    (ORGANIZATION, |at| Box::pin(organization(at))),
    (DESIGN, |at| Box::pin(design(at))),
];

fn pieces(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|piece| !piece.is_empty())
}

/// Whether `path`, below the base, is an address of `pattern`.
fn fits(pattern: &str, path: &str) -> bool {
    pieces(pattern).count() == pieces(path).count()
        && pieces(pattern)
            .zip(pieces(path))
            .all(|(wanted, got)| wanted.starts_with(':') || wanted == got)
}

/// The place of an address: its piece, and its page there.
fn found(path: &str) -> Option<(usize, usize)> {
    let path = path.strip_prefix(BASE).unwrap_or(path);
    let mut all = PIECES.iter().enumerate();
    all.find_map(|(piece, (patterns, _))| {
        let at = patterns.iter().position(|pattern| fits(pattern, path))?;
        Some((piece, at))
    })
}

/// The piece of `path` that a pattern calls `:name`.
fn named(path: &str, name: &str) -> Option<String> {
    let (piece, at) = found(path)?;
    let pattern = PIECES[piece].0[at];
    let at = pieces(pattern).position(|piece| piece.strip_prefix(':') == Some(name))?;
    let piece = pieces(path.strip_prefix(BASE).unwrap_or(path)).nth(at)?;
    Some(unescape(piece))
}

fn unescape(piece: &str) -> String {
    js_sys::decode_uri_component(piece).map_or_else(|_| piece.to_owned(), String::from)
}

/// A part of the address: `param("bucket")`. It keeps its last value while its page goes away.
pub fn param(name: &'static str) -> Memo<String> {
    let path = use_location().pathname;
    Memo::new(move |old: Option<&String>| {
        path.with(|path| named(path, name))
            .or_else(|| old.cloned())
            .unwrap_or_default()
    })
}

/// The namespace of the address as it is now, for links that are made anew with their page.
pub fn namespace() -> String {
    let path = window().location().pathname().unwrap_or_default();
    named(&path, "ns").unwrap_or_default()
}

/// The page of the address; another address of the same pattern keeps it and changes its parameters.
pub fn outlet() -> AnyView {
    let path = use_location().pathname;
    let location = use_context::<BrowserUrl>();
    let go = use_navigate();
    Effect::new(move |_| {
        let bare = path.with(|path| {
            pieces(path.strip_prefix(BASE).unwrap_or(path))
                .next()
                .is_none()
        });
        if bare {
            let replace = NavigateOptions {
                replace: true,
                ..Default::default()
            };
            go("/namespaces", replace);
        }
        // A link's address is written to the history once its page is there.
        if let Some(location) = &location {
            location.ready_to_complete();
        }
    });
    let at = Memo::new(move |_| path.with(|path| found(path)));
    let page = RwSignal::new(None::<Page>);
    Effect::new(move |_| {
        let now = at.get();
        page.set(None);
        let Some((piece, place)) = now else {
            page.set(Some(|| Lost().into_any()));
            return;
        };
        spawn_local(async move {
            let got = fetched(PIECES[piece].1, place).await;
            // Another page may have been asked for meanwhile.
            if at.try_get_untracked() == Some(now) {
                page.set(Some(got));
            }
        });
    });
    (move || match page.get() {
        None => view! { <Skeletons/> }.into_any(),
        Some(page) => untrack(page),
    })
    .into_any()
}

/// A piece that did not come is asked for once more: most faults of a network are over in a moment.
async fn fetched(piece: Fetch, at: usize) -> Page {
    if let Ok(page) = piece(at).await {
        return page;
    }
    TimeoutFuture::new(1000).await;
    piece(at).await.unwrap_or(stale)
}

/// The server has pieces of the newest console only.
fn stale() -> AnyView {
    let reload = |_| drop(window().location().reload());
    view! {
        <h1>"This page could not be fetched"</h1>
        <Empty icon="alert" title="A part of the console is missing" text="The server cannot be reached, or it has a newer console by now. Reloading fetches what there is.">
            <button type="button" class="btn primary" on:click=reload>"Reload"</button>
        </Empty>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_means_one_page() {
        assert!(fits("ns/:ns/buckets", "/ns/ns_1/buckets/"));
        assert!(!fits("ns/:ns/buckets", "/ns/ns_1/buckets/bkt_1"));
        let pattern = |(piece, at): (usize, usize)| PIECES[piece].0[at];
        let found_pattern = found("/console/ns/a/new-retriever").map(pattern);
        assert_eq!(found_pattern, Some("ns/:ns/new-retriever"));
        assert_eq!(found("/console/nothing"), None);
        for (piece, (patterns, _)) in PIECES.iter().enumerate() {
            for (at, pattern) in patterns.iter().enumerate() {
                assert_eq!(found(&format!("{BASE}/{pattern}")), Some((piece, at)));
            }
        }
    }
}
