use leptos::prelude::*;
use serde_json::{Value, json};

use super::document::Document;
use crate::{
    api::Problem,
    load::{Load, Query, navigator},
    part::*,
    record::{Record, plain},
    route::param,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Document", ""),
    Column("Text", ""),
    Column("Files", "num"),
    Column("Vectors", ""),
    Column("", "actions"),
];

/// A collection: its indexes, and its documents to look through.
pub fn documents() -> AnyView {
    let session = use_session();
    let (ns, collection) = (param("ns"), param("collection"));
    let (search, filter, sort, offset, open) = (
        Query::new("q"),
        Query::new("filter"),
        Query::new("sort"),
        Query::new("offset"),
        Query::new("document"),
    );
    let base =
        Signal::derive(move || format!("/v1/collections/{}", text::escape(&collection.get())));
    let api = Signal::derive(move || session.api_in(ns.get()));
    provide_context(Open(open));
    let about = Load::of(move || api.get(), move || base.get());
    let load = Load::new(move || {
        let path = format!("{}/documents/list{}", base.get(), page_query(offset));
        let api = api.get();
        let body = body(&search.value.get(), &filter.value.get(), &sort.value.get());
        async move { api.post(&path, &body?).await }
    });
    let title = Signal::derive(move || {
        about
            .good()
            .map_or_else(|| collection.get(), |c| c.text("collection_name"))
    });
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/collections", ns.get_untracked())));
    let narrowed = move || !(search.value.get().is_empty() && filter.value.get().is_empty());
    let empty = move || {
        if narrowed() {
            view! { <Empty icon="search" title="No document matches" text="Nothing in this collection passes the search and the filter."><button type="button" class="btn" on:click=move |_| { search.set(""); filter.set(""); }>"Drop search and filter"</button></Empty> }
        } else {
            view! { <Empty icon="file" title="No document yet" text="Process the bucket behind this collection to fill it."><a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a></Empty> }
        }
    };
    view! {
        <Head title text="Documents of one collection, with their fields, files and vectors.">
            <Remove what="collection" name=title loses="Its documents and vectors go with it; the files stay in their bucket." api path=base done=removed/>
            <a class="btn" href=move || format!("/console/ns/{}/retrievers", ns.get())>"Search it"</a>
        </Head>
        {loaded(about, waiting(2), indexes)}
        <div class="row">
            <SearchBox query=search label="Search in these documents".to_owned()/>
            <Narrow filter sort/>
        </div>
        <Listing load offset=Some(offset) label="Documents" empty=ViewFn::from(empty) row columns=COLUMNS/>
        <Document open ns collection/>
    }
    .into_any()
}

/// The list's body from the words in the address.
fn body(search: &str, filter: &str, sort: &str) -> Result<Value, Problem> {
    let mut body = json!({"return_presigned_urls": true, "return_vector_names": true});
    if !search.is_empty() {
        body["search"] = search.into();
    }
    if !filter.is_empty() {
        body["filters"] = serde_json::from_str(filter)
            .map_err(|e| Problem::local(format!("the filter is not JSON: {e}")))?;
    }
    if let Some((direction, field)) = sort
        .split_at_checked(1)
        .filter(|(_, field)| !field.is_empty())
    {
        body["sort"] =
            json!({"field": field, "direction": if direction == "-" { "desc" } else { "asc" }});
    }
    Ok(body)
}

/// Filter and sort, kept in the address.
#[component]
fn Narrow(filter: Query, sort: Query) -> AnyView {
    let open = RwSignal::new(false);
    let (condition, field, descending) = (
        RwSignal::new(String::new()),
        RwSignal::new(String::new()),
        RwSignal::new(false),
    );
    let show = move |_| {
        condition.set(filter.value.get_untracked());
        let sort = sort.value.get_untracked();
        descending.set(sort.starts_with('-'));
        field.set(sort.trim_start_matches(['-', '+']).to_owned());
        open.set(true);
    };
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let field = field.get_untracked();
        let order = if descending.get_untracked() { "-" } else { "+" };
        filter.set(condition.get_untracked().trim());
        sort.set(&if field.is_empty() {
            String::new()
        } else {
            format!("{order}{field}")
        });
        open.set(false);
    };
    let active = move || !filter.value.get().is_empty() || !sort.value.get().is_empty();
    view! {
        <button type="button" class="btn" on:click=show>{move || if active() { "Filter and sort (on)" } else { "Filter and sort" }}</button>
        <Modal open title="Filter and sort".to_owned()>
            <form class="form" on:submit=submit>
                <Area id="filter" label="Filter (JSON)" value=condition rows=6
                    hint="For example {\"AND\": [{\"field\": \"category\", \"operator\": \"eq\", \"value\": \"birds\"}]}, or {\"category\": \"birds\"}."/>
                <Field id="sort" label="Sort by field" value=field/>
                <Check label="Largest first" checked=descending set=move |on| descending.set(on)/>
                <footer><button class="btn primary">"Apply"</button></footer>
            </form>
        </Modal>
    }
    .into_any()
}

fn indexes(about: Record) -> AnyView {
    let count = about
        .int("document_count")
        .map(|n| format!("{} documents, ", text::count(n)));
    view! {
        <div class="card stack-sm">
            <p class="muted">{count}"made by "<code>{about.record("feature_extractor").text("feature_extractor_id")}</code></p>
            {about.list("vector_indexes").into_iter().filter_map(|index| Some((index.opt("feature_uri")?, index.record("index")))).map(|(uri, index)| {
                let dims = index.text("dimensions");
                view! { <div class="uri"><code>{uri.clone()}</code><span class="row nowrap"><span class="muted nowrap">{dims}" dims"</span><Copy text=Signal::stored(uri)/></span></div> }.into_any()
            }).collect::<Vec<_>>()}
        </div>
    }
    .into_any()
}

/// What a document is called, as far as its fields tell.
pub fn name_of(fields: &Record) -> Option<String> {
    Some(fields.first(&["title", "name", "filename", "headline", "label"]))
        .filter(|name| !name.is_empty())
}

/// The picture to show for a document or a result: a thumbnail where there is one.
pub fn picture_of(one: &Record) -> Option<String> {
    let blobs = one.list("document_blobs");
    let images = blobs.iter().filter(|b| b.text("type") == "image");
    images
        .max_by_key(|b| b.text("role") == "thumbnail")
        .and_then(|b| b.opt("presigned_url"))
}

/// The longest text among the fields, cut to a few lines.
pub fn text_of(fields: &Record) -> String {
    let mut text = fields.first(&["text", "description", "content", "body"]);
    if text.is_empty() {
        let shown =
            |name: &str| !name.starts_with('_') && !name.ends_with("_id") && !name.ends_with("url");
        let texts = fields
            .members()
            .into_iter()
            .filter(|(name, value)| shown(name) && value.0.is_string());
        text = texts
            .map(|(_, value)| plain(&value.0))
            .max_by_key(String::len)
            .unwrap_or_default();
    }
    text.chars().take(220).collect()
}

/// Opens a document beside the list.
#[derive(Clone, Copy)]
struct Open(Query);

fn row(one: Record) -> AnyView {
    let Open(open) = expect_context();
    let id = one.text("document_id");
    let name = name_of(&one).unwrap_or_else(|| id.clone());
    let (label, chosen) = (format!("Open {name}"), id.clone());
    let button = view! { <button type="button" class="btn small" aria-label=label on:click=move |_| open.set(&chosen)>"Open"</button> };
    line(vec![
        pictured(picture_of(&one), name, id),
        words("text-cell", text_of(&one)),
        number(Some(one.list("document_blobs").len() as i64)),
        tags(one.strings("_vectors")),
        cell("actions", button.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_the_list_says_what_the_address_says() {
        let body = body("owl", r#"{"a": 1}"#, "-year").expect("a body");
        assert_eq!(body["search"], "owl");
        assert_eq!(body["filters"], json!({"a": 1}));
        assert_eq!(body["sort"], json!({"field": "year", "direction": "desc"}));
        assert!(super::body("", "{", "").is_err());
        assert!(
            super::body("", "", "")
                .expect("a body")
                .get("sort")
                .is_none()
        );
    }
}
