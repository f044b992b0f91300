use leptos::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    load::{Change, navigator},
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
    text,
};

const TYPES: [&str; 12] = [
    "text", "image", "pdf", "audio", "video", "excel", "string", "integer", "float", "boolean",
    "datetime", "object",
];

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Fields", ""),
    Column("Objects", "num"),
    Column("Failed", "num"),
    Column("Size", "num"),
    Column("Last upload", ""),
];

const BLANK: Blank = Blank {
    icon: "bucket",
    title: "No bucket here",
    text: "A bucket takes your files: drop them in, then process them into searchable documents.",
    link: None,
};

pub fn buckets() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/buckets/list", move || session.api_in(ns.get()));
    let create = RwSignal::new(false);
    view! {
        <ListPage title="Buckets" text="Files as they came, by the fields they have." load search offset columns=COLUMNS row blank=BLANK
            create=Create::Dialog("Create bucket", create)/>
        <Make open=create ns/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let id = one.first(&["bucket_id", "bucket_name"]);
    let fields = one.record("bucket_schema").record("properties").members();
    let count = |field: &str| number(Some(one.int(field).unwrap_or(0)));
    line(vec![
        name(
            Some(format!("/console/ns/{}/buckets/{id}", namespace())),
            one.text("bucket_name"),
            id.clone(),
        ),
        tags(fields.into_iter().map(|(name, _)| name).collect()),
        count("object_count"),
        count("failed_object_count"),
        words(
            "num nowrap",
            text::size(one.int("total_size_bytes").unwrap_or(0)),
        ),
        cell("nowrap", when(one.opt("last_upload_at"))),
    ])
}

/// A line of the schema form.
#[derive(Clone, Copy)]
struct Line {
    id: usize,
    name: RwSignal<String>,
    kind: RwSignal<String>,
}

impl Line {
    fn new(id: usize, name: &str, kind: &str) -> Self {
        Self {
            id,
            name: RwSignal::new(name.into()),
            kind: RwSignal::new(kind.into()),
        }
    }
}

/// The schema as the server takes it: fields without a name are left out.
fn properties(lines: Vec<Line>) -> Value {
    let mut properties = Map::new();
    for one in lines {
        let field = one.name.get_untracked().trim().to_owned();
        if !field.is_empty() {
            properties.insert(field, json!({"type": one.kind.get_untracked()}));
        }
    }
    json!({"properties": properties})
}

/// What becomes of what comes in by its key, and how that is called.
const POLICIES: [(&str, &str); 3] = [
    ("insert", "New objects only"),
    ("update", "Changes only"),
    ("upsert", "New and changed objects"),
];

/// The unique key of fields with commas between them; none where there is no field.
fn unique_key(fields: &str, policy: &str) -> Option<Value> {
    let fields = fields.split(',').map(str::trim);
    let fields: Vec<&str> = fields.filter(|one| !one.is_empty()).collect();
    (!fields.is_empty()).then(|| json!({"fields": fields, "default_policy": policy}))
}

#[component]
fn Make(open: RwSignal<bool>, ns: Memo<String>) -> AnyView {
    let session = use_session();
    let (name, description) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (key, policy) = (
        RwSignal::new(String::new()),
        RwSignal::new("insert".to_owned()),
    );
    let policies = POLICIES.map(|(one, label)| (one.to_owned(), label.to_owned()));
    let policies = Signal::stored(policies.to_vec());
    let lines = RwSignal::new(vec![Line::new(0, "content", "text")]);
    let change = Change::new();
    let go = navigator();
    let submit = Callback::new(move |()| {
        let mut body = json!({"bucket_name": name.get_untracked().trim(), "bucket_schema": properties(lines.get_untracked())});
        if !description.get_untracked().is_empty() {
            body["description"] = description.get_untracked().into();
        }
        if let Some(key) = unique_key(&key.get_untracked(), &policy.get_untracked()) {
            body["unique_key"] = key;
        }
        let ns = ns.get_untracked();
        let call = session.api_in(ns.clone()).post("/v1/buckets", &body);
        change.run(call, move |made| {
            let id = made.first(&["bucket_id", "bucket_name"]);
            go(&format!("/ns/{ns}/buckets/{id}"));
        });
    });
    view! {
        <Ask open title="Create a bucket".to_owned() label="Create" change submit>
            <Field id="bucket-name" label="Name" value=name required=true placeholder="articles"/>
            <Field id="bucket-text" label="Description" value=description/>
            <Lines lines/>
            <div class="form-row">
                <Field id="bucket-key" label="Unique key" value=key placeholder="sku" hint="Fields that tell an object from every other, with commas between."/>
                <Choice id="bucket-policy" label="With a key it takes" value=policy options=policies/>
            </div>
        </Ask>
    }
    .into_any()
}

#[component]
fn Lines(lines: RwSignal<Vec<Line>>) -> AnyView {
    let next = StoredValue::new(1usize);
    let add = move |_| {
        next.update_value(|n| *n += 1);
        lines.update(|all| all.push(Line::new(next.get_value(), "", "string")));
    };
    let line = move |one: Line| {
        let types = TYPES.into_iter().map(|t| {
            view! { <option value=t selected={one.kind.get_untracked() == t}>{t}</option> }
                .into_any()
        });
        view! {
            <div class="schema-row">
                <input class="input" aria-label="Field name" placeholder="field" bind:value=one.name/>
                <select class="select" aria-label="Type" on:change=move |e| one.kind.set(event_target_value(&e))>{types.collect::<Vec<_>>()}</select>
                <button type="button" class="btn ghost icon" aria-label="Remove this field"
                    on:click=move |_| { lines.update(|all| all.retain(|l| l.id != one.id)); schema::lead("#add-field".to_owned()); }><Icon name="close"/></button>
            </div>
        }
        .into_any()
    };
    view! {
        <fieldset class="stack-sm">
            <legend><strong>"Fields of an object"</strong></legend>
            <For each=move || lines.get() key=|l| l.id children=line/>
            <div><button type="button" class="btn small" id="add-field" on:click=add><Icon name="plus" size=14/>"Add a field"</button></div>
        </fieldset>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{UniqueKeyConfig, UniqueKeyConfigDefaultPolicy};

    use super::*;

    #[test]
    fn a_key_has_the_fields_between_the_commas() {
        assert_eq!(unique_key(" , ", "upsert"), None);
        let key = unique_key("sku, shop,", "upsert").expect("a key");
        let key: UniqueKeyConfig = serde_json::from_value(key).expect("a key of the server");
        assert_eq!(key.fields, ["sku", "shop"]);
        let policy = UniqueKeyConfigDefaultPolicy::Upsert;
        assert_eq!(key.default_policy, Some(policy));
    }
}
