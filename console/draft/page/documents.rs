use leptos::prelude::*;
use loupe_wire::{CollectionResponse, DocumentResponse, ListDocumentsResponse};
use serde_json::{Value, json};

use super::document::Document;
use crate::{
    api::{Problem, plain},
    load::{Load, Query, param},
    part::*,
    session::use_session,
    text,
};

/// A collection: its indexes, and its documents to look through.
#[component]
pub fn Documents() -> impl IntoView {
    let session = use_session();
    let (ns, collection) = (param("ns"), param("collection"));
    let (search, filter, sort, offset, open) = (Query::new("q"), Query::new("filter"), Query::new("sort"), Query::new("offset"), Query::new("document"));
    let base = Signal::derive(move || format!("/v1/collections/{}", text::escape(&collection.get())));
    let about = Load::<CollectionResponse>::new(move || {
        let (api, path) = (session.api_in(ns.get()), base.get());
        async move { api.get(&path).await }
    });
    let load = Load::new(move || {
        let (api, path) = (session.api_in(ns.get()), format!("{}/documents/list{}", base.get(), page_query(offset)));
        let body = body(&search.value.get(), &filter.value.get(), &sort.value.get());
        async move {
            let all: ListDocumentsResponse = api.post(&path, &body?).await?;
            let rows = all.results.unwrap_or_default();
            let total = all.total_documents.or(all.pagination.total).unwrap_or(rows.len() as i64);
            Ok((rows, total))
        }
    });
    let title = Signal::derive(move || about.good().map_or_else(|| collection.get(), |c| c.collection_name));
    let narrowed = move || !(search.value.get().is_empty() && filter.value.get().is_empty());
    let empty = move || if narrowed() {
        view! { <Empty icon="search" title="No document matches" text="Nothing in this collection passes the search and the filter."><button type="button" class="btn" on:click=move |_| { search.set(""); filter.set(""); }>"Drop search and filter"</button></Empty> }.into_any()
    } else {
        view! { <Empty icon="file" title="No document yet" text="Process the bucket behind this collection to fill it."><a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a></Empty> }.into_any()
    };
    view! {
        <Head title text="Documents of one collection, with their fields, files and vectors.">
            <a class="btn" href=move || format!("/console/ns/{}/retrievers", ns.get())>"Search it"</a>
        </Head>
        {move || match about.value.get() {
            None => view! { <Skeletons lines=2/> }.into_any(),
            Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| about.reload())/> }.into_any(),
            Some(Ok(about)) => indexes(about).into_any(),
        }}
        <div class="row">
            <SearchBox query=search label="Search in these documents"/>
            <Narrow filter sort/>
        </div>
        <Listing load offset label="Documents" empty=empty.into() row=move |one| row(open, one)
            columns=vec![Column("Document", ""), Column("Text", ""), Column("Files", "num"), Column("Vectors", ""), Column("", "actions")]/>
        <Document open ns collection/>
    }
}

/// The list's body from the words in the address.
fn body(search: &str, filter: &str, sort: &str) -> Result<Value, Problem> {
    let mut body = json!({"return_presigned_urls": true, "return_vector_names": true});
    if !search.is_empty() {
        body["search"] = search.into();
    }
    if !filter.is_empty() {
        body["filters"] = serde_json::from_str(filter).map_err(|e| Problem::local(format!("the filter is not JSON: {e}")))?;
    }
    if let Some((direction, field)) = sort.split_at_checked(1).filter(|(_, field)| !field.is_empty()) {
        body["sort"] = json!({"field": field, "direction": if direction == "-" { "desc" } else { "asc" }});
    }
    Ok(body)
}

/// Filter and sort, kept in the address.
#[component]
fn Narrow(filter: Query, sort: Query) -> impl IntoView {
    let open = RwSignal::new(false);
    let (condition, field, descending) = (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(false));
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
        sort.set(&if field.is_empty() { String::new() } else { format!("{order}{field}") });
        open.set(false);
    };
    let active = move || !filter.value.get().is_empty() || !sort.value.get().is_empty();
    view! {
        <button type="button" class="btn" on:click=show>{move || if active() { "Filter and sort (on)" } else { "Filter and sort" }}</button>
        <Modal open title="Filter and sort">
            <form class="form" on:submit=submit>
                <Area id="filter" label="Filter (JSON)" value=condition rows=6
                    hint="For example {\"AND\": [{\"field\": \"category\", \"operator\": \"eq\", \"value\": \"birds\"}]}, or {\"category\": \"birds\"}."/>
                <Field id="sort" label="Sort by field" value=field/>
                <Check label="Largest first" checked=descending set=move |on| descending.set(on)/>
                <footer><button class="btn primary">"Apply"</button></footer>
            </form>
        </Modal>
    }
}

fn indexes(about: CollectionResponse) -> impl IntoView {
    let count = about.document_count.map(|n| format!("{} documents, ", text::count(n)));
    view! {
        <div class="card stack-sm">
            <p class="muted">{count}"made by "<code>{about.feature_extractor.feature_extractor_id}</code></p>
            {about.vector_indexes.into_iter().filter_map(|index| index.feature_uri.map(|uri| (uri, index.index))).map(|(uri, index)| {
                let dims = index.as_ref().and_then(|i| i.get("dimensions")).map(plain).unwrap_or_default();
                view! { <div class="uri"><code>{uri.clone()}</code><span class="row nowrap"><span class="muted nowrap">{dims}" dims"</span><Copy text=Signal::stored(uri)/></span></div> }
            }).collect_view()}
        </div>
    }
}

/// What a document is called, as far as its fields tell.
pub fn name_of(fields: &loupe_wire::Object) -> Option<String> {
    ["title", "name", "filename", "headline", "label"].iter()
        .find_map(|field| fields.get(*field).map(plain).filter(|text| !text.is_empty()))
}

/// The longest text among the fields, cut to a few lines.
pub fn text_of(fields: &loupe_wire::Object) -> String {
    let preferred = ["text", "description", "content", "body"].iter().find_map(|f| fields.get(*f).and_then(Value::as_str));
    let text = preferred.unwrap_or_else(|| {
        let texts = fields.iter().filter(|(name, _)| !name.starts_with('_') && !name.ends_with("_id") && !name.ends_with("url"));
        texts.filter_map(|(_, v)| v.as_str()).max_by_key(|text| text.len()).unwrap_or_default()
    });
    text.chars().take(220).collect()
}

fn row(open: Query, one: DocumentResponse) -> AnyView {
    let id = one.document_id;
    let name = name_of(&one.extra).unwrap_or_else(|| id.clone());
    let picture = one.document_blobs.iter().filter(|b| text::wire_name(&b.r#type) == "image").max_by_key(|b| text::wire_name(&b.role) == "thumbnail");
    let thumb = match picture.and_then(|b| b.presigned_url.clone()) {
        Some(url) => view! { <img class="thumb" src=url alt="" loading="lazy" width="44" height="44"/> }.into_any(),
        None => view! { <span class="thumb"><Icon name="file"/></span> }.into_any(),
    };
    let show = { let id = id.clone(); move |_| open.set(&id) };
    view! {
        <tr>
            <th scope="row"><span class="row nowrap">{thumb}<span class="grow">{name.clone()}<span class="sub mono">{id.clone()}</span></span></span></th>
            <td class="text-cell">{text_of(&one.extra)}</td>
            <td class="num">{one.document_blobs.len()}</td>
            <td>{one.vector_names.into_iter().map(|v| view! { <span class="tag">{v}</span>" " }).collect_view()}</td>
            <td class="actions"><button type="button" class="btn small" aria-label=format!("Open {name}") on:click=show>"Open"</button></td>
        </tr>
    }
    .into_any()
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
        assert!(super::body("", "", "").expect("a body").get("sort").is_none());
    }
}
