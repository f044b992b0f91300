//! A retriever being written: anew for chosen collections, or from another one, whose stages never change.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::template;
use crate::{
    load::{Change, Load, navigator},
    part::*,
    record::{Record, items},
    route::param,
    session::use_session,
    text,
};

/// A retriever for collections that are chosen here.
pub fn new_retriever() -> AnyView {
    frame(
        "Create a retriever".into(),
        "A saved search. Choose collections and a hybrid search is written for them: by meaning and by letter, fused by rank.",
        None,
    )
}

/// Another retriever with the stages of this one, changed.
pub fn change_stages() -> AnyView {
    let id = param("retriever");
    frame(
        "Change the stages".into(),
        "The stages of a retriever never change under those who use it: what you save here is a copy with a name of its own.",
        Some(id),
    )
}

fn frame(title: String, about: &'static str, from: Option<Memo<String>>) -> AnyView {
    let session = use_session();
    let ns = param("ns");
    // Collections, stages that run here, and the retriever to start from, in one answer.
    let load = Load::new(move || {
        let (api, from) = (session.api_in(ns.get()), from.map(|id| id.get()));
        async move {
            let all = api
                .post("/v1/collections/list?limit=100", &json!({}))
                .await?;
            let kinds = api.get("/v1/retrievers/stages").await?;
            let from = match from {
                Some(id) => {
                    api.get(&format!("/v1/retrievers/{}", text::escape(&id)))
                        .await?
                }
                None => Record::default(),
            };
            let all: Vec<Value> = all.list("results").into_iter().map(|one| one.0).collect();
            Ok(Record(
                json!({"collections": all, "kinds": kinds.0, "from": from.0}),
            ))
        }
    });
    let form = move |sources: Record| {
        if sources.list("collections").is_empty() {
            return view! {
                <Empty icon="grid" title="First a collection" text="A retriever searches collections, and there is none in this namespace.">
                    <a class="btn primary" href=format!("/console/ns/{}/collections", ns.get_untracked())>"To the collections"</a>
                </Empty>
            }
            .into_any();
        }
        view! { <Form ns sources/> }.into_any()
    };
    view! { <Head title text=about/>{loaded(load, waiting(8), form)} }.into_any()
}

/// A line of the inputs: what a search asks for.
#[derive(Clone, Copy)]
struct Line {
    id: usize,
    name: RwSignal<String>,
    required: RwSignal<bool>,
    field: RwSignal<Value>,
}

type Lines = RwSignal<Vec<Line>>;

fn lines_of(inputs: &Value) -> Vec<Line> {
    let all = Record(inputs.clone()).members().into_iter().enumerate();
    all.map(|(id, (name, field))| Line {
        id,
        name: RwSignal::new(name),
        required: RwSignal::new(field.flag("required")),
        field: RwSignal::new(field.0),
    })
    .collect()
}

/// The inputs as the server takes them; those without a name are left out.
fn inputs_of(lines: Vec<Line>) -> Value {
    let mut out = Map::new();
    for line in lines {
        let (name, mut field) = (line.name.get_untracked(), line.field.get_untracked());
        if !name.trim().is_empty() {
            field["required"] = line.required.get_untracked().into();
            out.insert(name.trim().to_owned(), field);
        }
    }
    Value::Object(out)
}

fn id_of(collection: &Record) -> String {
    collection.first(&["collection_id", "collection_name"])
}

/// Stages as they are sent: answers say some of it twice, which a request may not.
fn sendable(mut stages: Value) -> Value {
    const TAKEN: [&str; 7] = [
        "stage_name",
        "stage_type",
        "config",
        "batch_size",
        "description",
        "on_error",
        "output_alias",
    ];
    for stage in stages.as_array_mut().into_iter().flatten() {
        if let Some(members) = stage.as_object_mut() {
            members.retain(|name, value| TAKEN.contains(&name.as_str()) && !value.is_null());
        }
    }
    stages
}

/// The name of a copy.
fn copied(name: &str) -> String {
    match name
        .rsplit_once("-v")
        .map(|(stem, n)| (stem, n.parse::<u32>()))
    {
        Some((stem, Ok(n))) => format!("{stem}-v{}", n + 1),
        _ if name.is_empty() => String::new(),
        _ => format!("{name}-v2"),
    }
}

#[component]
fn Form(ns: Memo<String>, sources: Record) -> AnyView {
    let session = use_session();
    let all = StoredValue::new(sources.list("collections"));
    let from = StoredValue::new(sources.record("from"));
    let source = from.with_value(|from| from.first(&["retriever_id", "retriever_name"]));
    let (name, description) = (
        RwSignal::new(from.with_value(|from| copied(&from.text("retriever_name")))),
        RwSignal::new(from.with_value(|from| from.text("description"))),
    );
    let chosen = RwSignal::new(first_chosen(all, from));
    let picked = Signal::derive(move || picked(all, chosen));
    let features = Signal::derive(move || template::uris(&picked.get()));
    let editor = stages::Editor::new(items(&sources.record("kinds").0), features);
    let lines: Lines = RwSignal::new(Vec::new());
    fill(from, picked, editor, lines);
    let change = Change::new();
    let go = navigator();
    let path = match source.is_empty() {
        true => "/v1/retrievers".to_owned(),
        false => format!("/v1/retrievers/{}/clone", text::escape(&source)),
    };
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let ns = ns.get_untracked();
        let (api, path) = (session.api_in(ns.clone()), path.clone());
        let stages = untrack(|| editor.value());
        let mut body = json!({
            "retriever_name": name.get_untracked().trim(), "collection_identifiers": chosen.get_untracked(),
            "input_schema": inputs_of(lines.get_untracked()),
        });
        if !description.get_untracked().is_empty() {
            body["description"] = description.get_untracked().into();
        }
        let work = async move {
            body["stages"] = stages?;
            api.post(&path, &body).await
        };
        change.run(work, move |made| {
            let id = made_id(&made);
            go(&format!("/ns/{ns}/retrievers/{id}"));
        });
    };
    view! {
        <form class="form" on:submit=submit>
            <div class="card form">
                <div class="form-row">
                    <Field id="retriever-name" label="Name" value=name required=true placeholder="article-search"/>
                    <Field id="retriever-text" label="Description" value=description/>
                </div>
                <Collections all chosen/>
            </div>
            <Inputs lines/>
            <stages::Stages editor/>
            {refusal(change)}
            <footer class="row end">
                <a class="btn" href=move || format!("/console/ns/{}/retrievers", ns.get())>"Cancel"</a>
                <button class="btn primary" aria-busy=move || change.busy.get().to_string()>
                    {if source.is_empty() { "Create" } else { "Save as a new retriever" }}</button>
            </footer>
        </form>
    }
    .into_any()
}

/// Writes the stages and inputs to start with: those of the retriever, else anew for what is chosen.
fn fill(
    from: StoredValue<Record>,
    picked: Signal<Vec<Record>>,
    editor: stages::Editor,
    lines: Lines,
) {
    let from = from.get_value();
    if from.0.is_object() {
        editor.set(&sendable(from.record("stages").0));
        lines.set(lines_of(&from.record("input_schema").0));
        return;
    }
    Effect::new(move |_| {
        let picked = picked.get();
        editor.set(&template::stages(&picked));
        lines.set(lines_of(&template::inputs(&picked)));
    });
}

/// The id of what was made: a copy's answer has it one level down.
fn made_id(made: &Record) -> String {
    let names = ["retriever_id", "retriever_name"];
    let inner = made.record("retriever").first(&names);
    Some(inner)
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| made.first(&names))
}

type Known = StoredValue<Vec<Record>>;

/// Those of the retriever to start from, or the only one there is.
fn first_chosen(all: Known, from: StoredValue<Record>) -> Vec<String> {
    let ids = from.with_value(|from| from.strings("collection_ids"));
    all.with_value(|all| match all.as_slice() {
        [only] if ids.is_empty() => vec![id_of(only)],
        _ => ids,
    })
}

fn picked(all: Known, chosen: RwSignal<Vec<String>>) -> Vec<Record> {
    let chosen = chosen.get();
    let mut all = all.get_value();
    all.retain(|one| chosen.contains(&id_of(one)));
    all
}

#[component]
fn Collections(all: Known, chosen: RwSignal<Vec<String>>) -> AnyView {
    let boxes = all.get_value().into_iter().map(|one| {
        let id = id_of(&one);
        let same = id.clone();
        let uris = template::uris(std::slice::from_ref(&one)).join(", ");
        let set = move |on| {
            chosen.update(|ids| {
                ids.retain(|one| *one != id);
                if on {
                    ids.push(id.clone());
                }
            })
        };
        view! { <Check label=one.text("collection_name") hint=uris checked=Signal::derive(move || chosen.with(|ids| ids.contains(&same))) set/> }.into_any()
    });
    view! { <fieldset class="stack-sm"><legend><strong>"Collections"</strong></legend>{boxes.collect::<Vec<_>>()}</fieldset> }.into_any()
}

const KINDS: [&str; 10] = [
    "string",
    "text",
    "integer",
    "number",
    "boolean",
    "date",
    "datetime",
    "array",
    "image",
    "document_reference",
];

#[component]
fn Inputs(lines: Lines) -> AnyView {
    let next = StoredValue::new(100usize);
    let add = move |_| {
        next.update_value(|n| *n += 1);
        lines.update(|all| {
            all.push(Line {
                id: next.get_value(),
                name: RwSignal::new(String::new()),
                required: RwSignal::new(false),
                field: RwSignal::new(json!({"type": "string"})),
            })
        });
    };
    let templates = move || {
        let all = lines.get().into_iter().map(|line| {
            view! { <option value=move || format!("{{{{INPUT.{}}}}}", line.name.get())></option> }.into_any()
        });
        all.collect::<Vec<_>>()
    };
    view! {
        <section class="card stack-sm" aria-labelledby="inputs-head">
            <h2 id="inputs-head">"Inputs"</h2>
            <p class="muted">"What a search asks for. Stages read an input as {{INPUT.name}}."</p>
            <For each=move || lines.get() key=|line| line.id children=move |line| input(lines, line)/>
            <div><button type="button" class="btn small" on:click=add><Icon name="plus" size=14/>"Add an input"</button></div>
            <datalist id="templates">{templates}</datalist>
        </section>
    }
    .into_any()
}

fn input(lines: Lines, line: Line) -> AnyView {
    let now = Record(line.field.get_untracked());
    let kind = now.text("type");
    let mut kinds: Vec<String> = KINDS.map(str::to_owned).to_vec();
    if !kinds.contains(&kind) {
        kinds.push(kind.clone());
    }
    let kinds = kinds.into_iter().map(|one| {
        let selected = one == kind;
        view! { <option value=one.clone() selected=selected>{one.replace('_', " ")}</option> }
            .into_any()
    });
    let set = move |member: &'static str, text: String| {
        line.field.update(|field| field[member] = text.into())
    };
    view! {
        <div class="input-row">
            <input class="input" aria-label="Name of the input" placeholder="name" bind:value=line.name autocomplete="off" spellcheck="false"/>
            <select class="select" aria-label="Type" on:change=move |e| set("type", event_target_value(&e))>{kinds.collect::<Vec<_>>()}</select>
            <input class="input" aria-label="Description" placeholder="what it is for" prop:value=now.text("description") on:input=move |e| set("description", event_target_value(&e))/>
            <Check label="Required" checked=line.required set=move |on| line.required.set(on)/>
            <button type="button" class="btn ghost icon" aria-label="Remove this input" on:click=move |_| lines.update(|all| all.retain(|one| one.id != line.id))><Icon name="close"/></button>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered() {
        assert_eq!(copied("films"), "films-v2");
        assert_eq!(copied("films-v9"), "films-v10");
    }

    #[test]
    fn what_is_sent_is_what_a_request_takes() {
        let config = json!({"stage_id": "limit", "parameters": {"limit": 1}});
        let answered = json!([{"stage_name": "a", "stage_type": "reduce", "parameters": {}, "batch_size": null, "config": config}]);
        let sent = json!([{"stage_name": "a", "stage_type": "reduce", "config": config}]);
        assert_eq!(sendable(answered), sent);
    }

    #[test]
    fn inputs_come_back_as_they_were() {
        let owner = Owner::new();
        owner.set();
        let inputs = json!({"query": {"type": "string", "examples": ["a"], "required": true}});
        assert_eq!(inputs_of(lines_of(&inputs)), inputs);
    }
}
