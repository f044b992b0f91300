pub mod clone;
mod sources;

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use self::sources::Sources;
use crate::{
    api::{Answer, Api},
    load::{Change, Load, navigator},
    part::*,
    record::{Record, items, plain},
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Extractor", ""),
    Column("Documents", "num"),
    Column("Vector indexes", "num"),
    Column("State", ""),
    Column("Created", ""),
];

const BLANK: Blank = Blank {
    icon: "grid",
    title: "No collection here",
    text: "A collection reads buckets, or other collections, with an extractor and holds the documents and vectors that come out.",
    link: None,
};

pub fn collections() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/collections/list", move || session.api_in(ns.get()));
    let create = RwSignal::new(false);
    view! {
        <ListPage title="Collections" text="Documents and vectors, made from buckets by extractors." load search offset columns=COLUMNS row blank=BLANK
            create=Create::Dialog("Create collection", create)/>
        <Make open=create ns/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let id = one.first(&["collection_id", "collection_name"]);
    let extractor = one.record("feature_extractor");
    let state = if one.flag("enabled") {
        "active"
    } else {
        "disabled"
    };
    line(vec![
        name(
            Some(format!("/console/ns/{}/collections/{id}", namespace())),
            one.text("collection_name"),
            id,
        ),
        two(
            extractor.text("feature_extractor_name"),
            extractor.text("version"),
        ),
        number(one.int("document_count")),
        number(Some(one.list("vector_indexes").len() as i64)),
        cell("", badge(state)),
        cell("nowrap", when(one.opt("created_at"))),
    ])
}

#[component]
fn Make(open: RwSignal<bool>, ns: Memo<String>) -> AnyView {
    let session = use_session();
    // What the form asks the server for: buckets and collections with their fields, extractors with their inputs.
    let asked = move |api: Api| -> Answer {
        Box::pin(async move {
            let buckets = api.post("/v1/buckets/list?limit=100", &json!({})).await?;
            let collections = api
                .post("/v1/collections/list?limit=100", &json!({}))
                .await?;
            let extractors = api.get("/v1/collections/features/extractors").await?;
            let found = |answer: Record| answer.record("results").0;
            Ok(Record(
                json!({"buckets": found(buckets), "collections": found(collections), "extractors": extractors.0}),
            ))
        })
    };
    // What somebody fills in is not made anew by an answer that comes late.
    let sources = Load::wanted(move || open.get().then(|| asked(session.api_in(ns.get()))));
    let form = move |sources: Record| {
        if sources.list("buckets").is_empty() && sources.list("collections").is_empty() {
            return view! {
                <Empty icon="bucket" title="First a bucket" text="A collection reads one, and there is none in this namespace.">
                    <a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a>
                </Empty>
            }
            .into_any();
        }
        view! { <Form open ns sources/> }.into_any()
    };
    view! { <Modal open title="Create a collection".to_owned() class="wide">{loaded(sources, waiting(4), form)}</Modal> }.into_any()
}

/// The fields of a source with their types: of the objects of a bucket, or of the documents of a collection, which have those
/// of what they are made of, too.
pub fn fields_of(source: &Record) -> Vec<(String, String)> {
    let schemas = ["bucket_schema", "output_schema", "input_schema"].into_iter();
    let all = schemas.flat_map(|schema| source.record(schema).record("properties").members());
    all.map(|(name, field)| (name, field.text("type")))
        .collect()
}

/// The fields of sources that can feed an input of a kind such as `text|string`, the fitting ones first.
fn fitting(sources: &[Record], kind: &str) -> Vec<(String, String)> {
    let mut kinds: Vec<&str> = kind.split('|').map(str::trim).collect();
    // Texts are told in two words, and a bucket has either.
    if kinds.iter().any(|kind| matches!(*kind, "text" | "string")) {
        kinds.extend(["string", "text"]);
    }
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, field) in sources.iter().flat_map(fields_of) {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, field));
        }
    }
    all.sort_by_key(|(_, field)| !kinds.contains(&field.as_str()));
    all.into_iter()
        .map(|(name, field)| (name.clone(), format!("{name} ({field})")))
        .collect()
}

/// An input of the extractor, the chosen field, the fields to choose from.
type Input = (String, RwSignal<String>, Vec<(String, String)>);

const KIND: &str = "feature_extractor_name";

/// The extractors to choose from, and those that cannot be chosen: these say why.
fn kinds_of(extractors: &[Record]) -> (Vec<(String, String)>, Vec<String>) {
    let mut kinds = options(extractors, KIND, KIND);
    for ((_, name), one) in kinds.iter_mut().zip(extractors) {
        let lacks = lacks(one).map_or_else(String::new, |lacks| format!(": {lacks}"));
        *name = text::words(name) + &lacks;
    }
    let off = extractors.iter().filter(|one| lacks(one).is_some());
    (kinds, off.map(|one| one.text(KIND)).collect())
}

/// What this server has to get before the extractor runs here.
fn lacks(extractor: &Record) -> Option<String> {
    let told = extractor.value("realtime_available").is_some();
    // What it needs stands before what it only gains from.
    let mut apps = extractor
        .list("serve_apps")
        .into_iter()
        .map(|app| app.text("status"));
    let lacking = apps.find(|status| status != "available");
    let lacking =
        lacking.unwrap_or_else(|| "this server does not have all that it needs".to_owned());
    (told && !extractor.flag("realtime_available")).then_some(lacking)
}

/// One choice of a field for each input of the extractor.
fn inputs(extractor: &Record, sources: &[Record]) -> Vec<Input> {
    let asked = extractor.record("expected_input_types").members();
    let asked = asked.into_iter().filter(|(input, _)| input != "*");
    asked
        .map(|(input, kind)| {
            let fields = fitting(sources, &plain(&kind.0));
            let first = fields.first().map(|(name, _)| name.clone());
            (input, RwSignal::new(first.unwrap_or_default()), fields)
        })
        .collect()
}

/// The parameters of an extractor as a form: by its schema, or by its defaults where it has none.
fn parameters(extractor: &Record) -> (schema::Form, Record) {
    let form = schema::Form::new("parameter".into(), json!({}), Signal::stored(Vec::new()));
    let shape = match extractor.record("parameter_schema") {
        schema if schema.0.is_object() => schema,
        _ => schema::schema_of(&extractor.record("default_parameters")),
    };
    let mut shape = shape.0;
    // Which extractor it is was chosen above.
    for own in ["extractor_type", "source_type"] {
        if let Some(fields) = shape["properties"].as_object_mut() {
            fields.shift_remove(own);
        }
    }
    (form, Record(shape))
}

/// Id and name of each, for a choice.
fn options(all: &[Record], id: &str, label: &str) -> Vec<(String, String)> {
    all.iter()
        .map(|one| (one.first(&[id, label]), one.text(label)))
        .collect()
}

fn of(all: StoredValue<Vec<Record>>, id: &'static str, wanted: &str) -> Record {
    all.with_value(|all| all.iter().find(|one| one.text(id) == wanted).cloned())
        .unwrap_or_default()
}

#[component]
fn Form(open: RwSignal<bool>, ns: Memo<String>, sources: Record) -> AnyView {
    let session = use_session();
    let extractors = items(&sources.record("extractors").0);
    let sources = Sources::new(sources);
    let (kinds, off) = kinds_of(&extractors);
    let mut here = kinds
        .iter()
        .map(|(id, _)| id)
        .filter(|id| !off.contains(id));
    let first = here.next().cloned().unwrap_or_default();
    let (name, whole) = (RwSignal::new(String::new()), RwSignal::new(true));
    let extractor = RwSignal::new(first);
    let extractors = StoredValue::new(extractors);
    let chosen = Memo::new(move |_| of(extractors, KIND, &extractor.get()));
    let mapped = Memo::new(move |_| inputs(&chosen.get(), &sources.chosen()));
    let settings = StoredValue::new(parameters(&chosen.get_untracked()));
    let change = Change::new();
    let go = navigator();
    let submit = Callback::new(move |()| {
        let Some(source) = sources.body() else {
            change.refuse("choose what it is made from");
            return;
        };
        let mappings = mappings(mapped.get_untracked());
        let chosen = chosen.get_untracked();
        let body = json!({
            "collection_name": name.get_untracked().trim(),
            "source": source,
            "feature_extractor": {
                "feature_extractor_name": extractor.get_untracked(), "version": chosen.text("version"), "input_mappings": mappings,
                "parameters": settings.get_value().0.value.get_untracked(), "include_all_source_fields": whole.get_untracked(),
            },
        });
        let ns = ns.get_untracked();
        change.run(
            session.api_in(ns.clone()).post("/v1/collections", &body),
            move |made| {
                let id = made.first(&["collection_id", "collection_name"]);
                go(&format!("/ns/{ns}/collections/{id}"));
            },
        );
    });
    let extras = move || {
        let made = parameters(&chosen.get());
        settings.set_value(made.clone());
        schema::fields(made.0, "", &made.1)
    };
    view! {
        <Sheet change submit label="Create" open>
            <Field id="collection-name" label="Name" value=name required=true placeholder="articles-text"/>
            <div class="form-row">
                {sources.kinds()}
                <Choice id="collection-extractor" label="Extractor" value=extractor options=kinds off/>
            </div>
            {sources.ticks()}
            <p class="muted">{move || chosen.get().text("description")}</p>
            <div class="form-row">{move || mapped.get().into_iter().map(mapping).collect::<Vec<_>>()}</div>
            <Check label="Keep every field of the object on its documents" checked=whole set=move |on| whole.set(on)/>
            <fieldset class="stack-sm"><legend><strong>"Parameters"</strong></legend>{extras}</fieldset>
        </Sheet>
    }.into_any()
}

/// The chosen fields as they are sent.
fn mappings(inputs: Vec<Input>) -> Map<String, Value> {
    let all = inputs.into_iter();
    let all = all.map(|(input, field, _)| (input, Value::from(field.get_untracked())));
    all.filter(|(_, field)| field != "").collect()
}

fn mapping((input, mine, fields): Input) -> AnyView {
    // Ids must be still there when the labels ask for them.
    let (id, label) = match input.as_str() {
        "text" => ("input-text", "The text comes from"),
        "image" => ("input-image", "The picture comes from"),
        "pdf" => ("input-pdf", "The PDF comes from"),
        "video" => ("input-video", "The video comes from"),
        "gif" => ("input-gif", "The animation comes from"),
        _ => ("input-other", "The input comes from"),
    };
    view! { <Choice id label value=mine options=fields/> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitting_fields_come_first_and_parameters_have_fields() {
        let bucket = Record(
            json!({"bucket_schema": {"properties": {"title": {"type": "string"}, "photo": {"type": "image"}}}}),
        );
        let scenes = Record(
            json!({"output_schema": {"properties": {"start": {"type": "float"}}},
            "input_schema": {"properties": {"photo": {"type": "image"}}}}),
        );
        let both = [bucket, scenes];
        let first = fitting(&both, "image").remove(0);
        assert_eq!(first, ("photo".to_owned(), "photo (image)".to_owned()));
        assert_eq!(fitting(&both, "image").len(), 3);
        let extractor = Record(
            json!({"default_parameters": {"extractor_type": "text_extractor", "chunk_size": 1000}}),
        );
        let shape = parameters(&extractor).1.record("properties").members();
        assert_eq!(shape.len(), 1);
        assert_eq!(shape[0].1.text("type"), "integer");
    }
}
