//! The documents around one: what it was made of, what was made of it, and what is like it.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::Place;
use crate::{
    load::Load,
    page::{documents::name_of, results},
    part::*,
    record::Record,
    route::namespace,
    text,
};

/// Documents that are found like one.
const LIKE: i64 = 12;

/// The documents that lead to one, the first one first.
fn above(expanded: &Record) -> Vec<Record> {
    let mut all = expanded.list("ancestors");
    let parent = expanded.record("parent");
    let same = |one: &Record| one.text("document_id") == parent.text("document_id");
    if parent.0.is_object() && !all.iter().any(same) {
        all.push(parent);
    }
    all
}

/// What it was made of and what was made of it, where there is such.
pub(super) fn relations(expanded: &Record) -> AnyView {
    let part = |title: &'static str, all: Vec<Record>| {
        (!all.is_empty()).then(|| {
            view! { <section class="stack-sm"><h3>{title}</h3>{links(all)}</section> }
        })
    };
    view! {
        {part("Made of documents", above(expanded))}
        {part("Documents made of it", expanded.list("children"))}
    }
    .into_any()
}

/// Documents, each leading to its place, with how well it fits where a search found it.
fn links(all: Vec<Record>) -> AnyView {
    let ns = namespace();
    let all = all.into_iter().map(|one| {
        let id = one.text("document_id");
        let href = format!(
            "/console/ns/{ns}/collections/{}?document={}",
            one.text("collection_id"),
            text::escape(&id)
        );
        let score = one.float("score").map(|score| format!(" {score:.4}"));
        let name = name_of(&one).unwrap_or(id);
        view! { <li><a href=href>{name}</a><span class="muted">{score}</span></li> }.into_any()
    });
    view! { <ul class="sub-list">{all.collect::<Vec<_>>()}</ul> }.into_any()
}

/// The search for documents like one.
fn like(collection: &str, id: &str, feature: &str) -> Value {
    let query = json!({
        "input_mode": "document",
        "document_ref": {"collection_id": collection, "document_id": id},
    });
    let search = json!({"feature_uri": feature, "query": query, "top_k": LIKE});
    json!({
        "collection_identifiers": [collection],
        "stages": [{
            "stage_name": "similar",
            "stage_type": "filter",
            "config": {"stage_id": "feature_search", "parameters": {"searches": [search], "final_top_k": LIKE}},
        }],
    })
}

/// A button for each vector by which documents of the collection can be like it, and those that were found.
pub(super) fn similar(place: Place, id: String) -> AnyView {
    let wanted = RwSignal::new(String::new());
    let load = Load::settled(0, move || {
        let feature = wanted.get();
        if feature.is_empty() {
            return None;
        }
        let body = like(&place.collection.get_untracked(), &id, &feature);
        let api = place.api.get_untracked();
        Some(api.post("/v1/retrievers/execute", &body))
    });
    let indexes = Memo::new(move |_| {
        let about = place.about.good().unwrap_or_default();
        about.list("vector_indexes")
    });
    let buttons = move || {
        let all = indexes.get();
        let single = all.len() == 1;
        let each = all.into_iter().map(|index| {
            let feature = index.text("feature_uri");
            let label = match single {
                true => "Find similar".to_owned(),
                false => format!("Find similar by {}", index.text("name")),
            };
            view! { <button type="button" class="btn small" on:click=move |_| wanted.set(feature.clone())>{label}</button> }.into_any()
        });
        each.collect::<Vec<_>>()
    };
    let asked = Memo::new(move |_| !wanted.with(String::is_empty));
    let found = move || asked.get().then(|| loaded(load, waiting(3), hits));
    view! {
        <Show when=move || !indexes.with(Vec::is_empty)>
            <section class="stack-sm"><h3>"Similar documents"</h3><div class="row">{buttons}</div>{found}</section>
        </Show>
    }
    .into_any()
}

fn hits(answer: Record) -> AnyView {
    let warnings = results::warnings(&answer);
    let all = answer.list("documents");
    let all = match all.is_empty() {
        true => view! { <p class="muted">"None was found."</p> }.into_any(),
        false => links(all),
    };
    view! { {warnings}{all} }.into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::AdhocExecuteRequest;

    use super::*;

    #[test]
    fn the_document_before_it_stands_once_among_those_that_lead_to_it() {
        let of = |id: &str| json!({"document_id": id});
        let ids = |expanded: Value| {
            let all = above(&Record(expanded));
            all.iter()
                .map(|one| one.text("document_id"))
                .collect::<Vec<_>>()
        };
        let both = json!({"ancestors": [of("a"), of("b")], "parent": of("b")});
        assert_eq!(ids(both), ["a", "b"]);
        assert_eq!(
            ids(json!({"ancestors": [of("a")], "parent": of("b")})),
            ["a", "b"]
        );
        assert!(ids(json!({"ancestors": [], "parent": null})).is_empty());
    }

    #[test]
    fn likeness_is_asked_for_by_a_search() {
        let body = like("col_1", "doc_1", "feature");
        let asked: AdhocExecuteRequest = serde_json::from_value(body).expect("a body");
        assert_eq!(asked.collection_identifiers, Some(vec!["col_1".to_owned()]));
        assert_eq!(asked.stages.len(), 1);
    }
}
