mod columns;
mod narrow;
mod picked;
mod process;

use leptos::prelude::*;
use serde_json::{Value, json};

use self::{columns::Shown, narrow::Narrow, picked::Picked};
use super::{
    collections::clone,
    document::Document,
    exports::{self, Exports},
    lineage::lineage,
};
use crate::{
    api::{Api, Problem},
    load::{Load, Query, navigator},
    part::*,
    record::{Record, plain},
    route::param,
    session::use_session,
    text,
};

const TABS: &[(&str, &str)] = &[
    ("", "Documents"),
    ("schema", "Schema"),
    ("lineage", "Lineage"),
    (exports::TAB, "Exports"),
];

const FIELDS: &[Column] = &[Column("Field", ""), Column("Type", ""), Column("About", "")];

const INDEXES: &[Column] = &[
    Column("Vector index", ""),
    Column("Feature", ""),
    Column("Dimensions", "num"),
    Column("Distance", ""),
];

const COLUMNS: &[Column] = &[
    Column("Select", ""),
    Column("Document", ""),
    Column("", "actions"),
];

/// A collection: its indexes, and its documents to look through.
pub fn documents() -> AnyView {
    let session = use_session();
    let (ns, collection) = (param("ns"), param("collection"));
    let tab = Query::new("tab");
    let base =
        Signal::derive(move || format!("/v1/collections/{}", text::escape(&collection.get())));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let about = Load::of(move || api.get(), move || base.get());
    let title = Signal::derive(move || {
        about
            .good()
            .map_or_else(|| collection.get(), |c| c.text("collection_name"))
    });
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/collections", ns.get_untracked())));
    let at = Signal::derive(move || {
        format!("/console/ns/{}/collections/{}", ns.get(), collection.get())
    });
    let exports = Exports::new(api, about, tab);
    let cloning = RwSignal::new(false);
    view! {
        <Head title text="Documents of one collection, with their fields, files and vectors.">
            <button type="button" class="btn" disabled=move || about.good().is_none() on:click=move |_| exports.open.set(true)>"Export"</button>
            <button type="button" class="btn" disabled=move || about.good().is_none() on:click=move |_| cloning.set(true)>"Clone"</button>
            {process::tools(api, about, base, ns)}
            {while_there(about, move || view! { <Remove what="collection" name=title loses="Its documents and vectors go with it; the files stay in their bucket." api path=base done=removed/> }.into_any())}
            <a class="btn" href=move || format!("/console/ns/{}/retrievers", ns.get())>"Search it"</a>
        </Head>
        {loaded(about, waiting(2), indexes)}
        {tabs("Parts of the collection", TABS, tab, at)}
        {move || match tab.value.get().as_str() {
            "schema" => loaded(about, waiting(5), output),
            "lineage" => lineage(api, collection),
            exports::TAB => exports.list(),
            _ => list(api, about, base, (ns, collection)),
        }}
        {exports.dialog(base, tab)}
        {clone::dialog(cloning, api, about, base, ns)}
    }
    .into_any()
}

/// The documents, and one beside them.
fn list(
    api: Signal<Api>,
    about: Load,
    base: Signal<String>,
    (ns, collection): (Memo<String>, Memo<String>),
) -> AnyView {
    let (search, filter, sort, offset, open, kept) = (
        Query::new("q"),
        Query::new("filter"),
        Query::new("sort"),
        Query::new("offset"),
        Query::new("document"),
        Query::new("columns"),
    );
    let load = Load::new(move || {
        let path = format!("{}/documents/list{}", base.get(), page_query(offset));
        let api = api.get();
        let body = body(&search.value.get(), &filter.value.get(), &sort.value.get());
        async move { api.post(&path, &body?).await }
    });
    let (columns, picked) = (columns::shown(kept, about), Picked::new(load));
    provide_context(List {
        open,
        columns,
        picked,
    });
    let more = Signal::derive(move || {
        let all = columns.get().into_iter();
        all.map(|(_, head, class)| (head, class))
            .collect::<Vec<_>>()
    });
    let changed = Callback::new(move |()| load.reload());
    let empty = move || {
        none_match([search, filter].iter()).unwrap_or_else(|| {
            view! { <Empty icon="file" title="No document yet" text="Process the bucket behind this collection to fill it."><a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a></Empty> }.into_any()
        })
    };
    view! {
        <div class="row">
            <SearchBox query=search label="Search in these documents".to_owned()/>
            <Narrow filter sort about/>
            {columns::chooser(kept, about)}
        </div>
        {picked.bar(api, base, changed)}
        <Listing load offset=Some(offset) label="Documents" empty=ViewFn::from(empty) row columns=COLUMNS more/>
        <Document open ns collection about changed/>
    }
    .into_any()
}

/// What its documents have: fields with their types, and vectors to search by.
fn output(about: Record) -> AnyView {
    let fields = about.record("output_schema").record("properties").members();
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, field)| {
            line(vec![
                titled(None, name, String::new()),
                words("", type_of(&field)),
                words("text-cell", field.text("description")),
            ])
        })
        .collect();
    let indexes: Vec<_> = about
        .list("vector_indexes")
        .into_iter()
        .map(|one| {
            let index = one.record("index");
            line(vec![
                titled(None, one.text("name"), String::new()),
                cell(
                    "cut",
                    view! { <code>{one.text("feature_uri")}</code> }.into_any(),
                ),
                number(index.int("dimensions")),
                words("", index.text("distance")),
            ])
        })
        .collect();
    let none = |what: &'static str| view! { <p class="muted">{what}</p> }.into_any();
    let settled = Signal::stored(false);
    let fields = match fields.is_empty() {
        true => none("Its schema names no field."),
        false => table("Fields of its documents", FIELDS, fields, settled),
    };
    let indexes = match indexes.is_empty() {
        true => none("It has no vector index."),
        false => table("Vector indexes", INDEXES, indexes, settled),
    };
    view! { <h2>"Fields of its documents"</h2>{fields}<h2>"Vector indexes"</h2>{indexes} }
        .into_any()
}

/// `array of string`, and whether it has to be there.
fn type_of(field: &Record) -> String {
    let mut kind = field.text("type");
    if let Some(item) = field.record("items").opt("type") {
        kind = format!("{kind} of {item}");
    }
    if field.flag("required") {
        kind.push_str(", required");
    }
    kind
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

fn indexes(about: Record) -> AnyView {
    let count = about
        .int("document_count")
        .map(|n| format!("{}, ", text::counted(n, "document", "documents")));
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

/// The documents with these ids by their ids, in one call; none where it is refused: names are no reason to show nothing.
pub async fn by_ids(api: &Api, mut ids: Vec<String>) -> Value {
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(1000);
    if ids.is_empty() {
        return json!({});
    }
    let found = api
        .post("/v1/documents/batch-get", &json!({ "document_ids": ids }))
        .await;
    let found = found.map(|all| all.list("documents")).unwrap_or_default();
    found
        .into_iter()
        .map(|one| (one.text("document_id"), one.0))
        .collect()
}

/// What a document is called, or begins with; its id where it says nothing.
pub fn called(one: &Record, id: &str) -> String {
    let said = name_of(one).unwrap_or_else(|| text_of(one));
    let said: String = said.chars().take(80).collect();
    match said.trim() {
        "" => id.to_owned(),
        said => said.to_owned(),
    }
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

/// The list that a row is of.
#[derive(Clone, Copy)]
struct List {
    /// The document that is open beside it.
    open: Query,
    columns: Memo<Vec<Shown>>,
    picked: Picked,
}

fn row(one: Record) -> AnyView {
    let List {
        open,
        columns,
        picked,
    } = expect_context();
    let id = one.text("document_id");
    let name = name_of(&one).unwrap_or_else(|| id.clone());
    let (label, chosen) = (format!("Open {name}"), id.clone());
    let button = view! { <button type="button" class="btn small" aria-label=label on:click=move |_| open.set(&chosen)>"Open"</button> };
    let own = id.clone();
    let mut cells = vec![
        picked.tick(id.clone(), &name),
        pictured(None, picture_of(&one), name, id),
    ];
    columns.with(|all| cells.extend(all.iter().map(|column| columns::cell_of(&one, column))));
    cells.push(cell("actions", button.into_any()));
    view! { <tr class:selected=move || picked.has(&own)>{cells}</tr> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_tells_what_is_in_it() {
        let field: loupe_wire::BucketSchema = serde_json::from_value(json!({"properties": {
            "tags": {"type": "array", "items": {"type": "string"}, "required": true}}}))
        .expect("a schema");
        let schema = crate::record::tests::sent(&field);
        let tags = schema.record("properties").record("tags");
        assert_eq!(type_of(&tags), "array of string, required");
    }

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
