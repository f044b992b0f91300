//! Which page an address means: a table of patterns. The router's own routes are typed views nested in one another,
//! which costs a tenth of the WebAssembly for the same work.

use leptos::prelude::*;
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate},
    location::{BrowserUrl, LocationProvider},
};

use crate::{frame::Lost, page::*};

/// What everything hangs below.
pub const BASE: &str = "/console";

type Page = fn() -> AnyView;

const PAGES: [(&str, Page); 24] = [
    ("namespaces", namespaces::namespaces),
    ("organization", organization::organization),
    ("users", users::users),
    ("keys", keys::keys),
    ("audit", audit::audit),
    ("tasks", tasks::tasks),
    ("ns/:ns/buckets", buckets::buckets),
    ("ns/:ns/buckets/:bucket", bucket::bucket),
    ("ns/:ns/batches", batches::batches),
    ("ns/:ns/batches/:bucket/:batch", batch::batch),
    ("ns/:ns/collections", collections::collections),
    ("ns/:ns/collections/:collection", documents::documents),
    ("ns/:ns/retrievers", retrievers::retrievers),
    ("ns/:ns/retrievers/:retriever", playground::playground),
    (
        "ns/:ns/retrievers/:retriever/edit",
        retriever_form::change_stages,
    ),
    ("ns/:ns/new-retriever", retriever_form::new_retriever),
    ("ns/:ns/published", published::published),
    ("notifications", notifications::notifications),
    ("webhooks", webhooks::webhooks),
    ("connections", connections::connections),
    ("ns/:ns/triggers", triggers::triggers),
    ("ns/:ns/alerts", alerts::alerts),
    ("apps", apps::apps),
    ("apps/:app", apps::one::app),
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

fn found(path: &str) -> Option<usize> {
    let path = path.strip_prefix(BASE).unwrap_or(path);
    PAGES.iter().position(|(pattern, _)| fits(pattern, path))
}

/// The piece of `path` that a pattern calls `:name`.
fn named(path: &str, name: &str) -> Option<String> {
    let (pattern, _) = PAGES[found(path)?];
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
    (move || match at.get() {
        Some(at) => untrack(PAGES[at].1),
        None => Lost().into_any(),
    })
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_means_one_page() {
        assert!(fits("ns/:ns/buckets", "/ns/ns_1/buckets/"));
        assert!(!fits("ns/:ns/buckets", "/ns/ns_1/buckets/bkt_1"));
        assert_eq!(found("/console/ns/a/new-retriever"), Some(15));
        assert_eq!(found("/console/nothing"), None);
        for (at, (pattern, _)) in PAGES.iter().enumerate() {
            assert_eq!(found(&format!("{BASE}/{pattern}")), Some(at));
        }
    }
}
