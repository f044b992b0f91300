//! A retriever being written: anew for chosen collections, or from another one, whose stages never change.

mod changes;
mod inputs;
mod live;
mod saving;

use leptos::prelude::*;
use serde_json::{Value, json};

use super::template;
use crate::{
    api::Problem,
    leave::{self, Unsaved},
    load::{Change, Load, navigator},
    part::*,
    record::{Record, items},
    route::param,
    session::{Session, use_session},
    text,
};

use inputs::{Inputs, Lines, inputs_of, lines_of};

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
    let (session, go) = (use_session(), navigator());
    let (change, saving) = (Change::new(), RwSignal::new(false));
    let draft = Draft {
        ns,
        name,
        description,
        chosen,
        lines,
        editor,
    };
    let unsaved = leave::watch(move || draft.written());
    let is_new = source.is_empty();
    let save = move |_| match (is_new, name.get_untracked().trim().is_empty()) {
        (true, true) => change.refuse("it has no name yet"),
        (true, false) => draft.create(session, go, change, unsaved),
        (false, _) => saving.set(true),
    };
    let note = move || {
        let now = editor.value().ok().filter(|_| !is_new)?;
        Some(changes::told(&changes::of(&from.get_value(), &now)))
    };
    view! {
        // Not a form: the draft is run by a form of its own within it.
        <div class="form">
            <details class="card more" open=is_new>
                <summary>"Name, collections and inputs"</summary>
                <div class="form">
                    <div class="form-row">
                        <Field id="retriever-name" label="Name" value=name required=true placeholder="article-search"/>
                        <Field id="retriever-text" label="Description" value=description/>
                    </div>
                    <Collections all chosen/>
                    <Inputs lines/>
                </div>
            </details>
            <div class="builder">
                <stages::Stages editor/>
                <div class="stack-sm"><stages::Picked editor/></div>
                {live::live(draft)}
            </div>
            <footer class="form-foot">
                {refusal(change)}
                <div class="row end">
                    <span class="muted grow" role="status">{note}</span>
                    <a class="btn" href=move || format!("/console/ns/{}/retrievers", ns.get())>"Cancel"</a>
                    <button type="button" class="btn primary" aria-busy=move || change.busy.get().to_string() on:click=save>
                        {if is_new { "Create" } else { "Save as a new retriever" }}</button>
                </div>
            </footer>
        </div>
        {(!is_new).then(|| saving::dialog(saving, draft, from, unsaved))}
    }
    .into_any()
}

/// What is being written.
#[derive(Clone, Copy)]
struct Draft {
    ns: Memo<String>,
    name: RwSignal<String>,
    description: RwSignal<String>,
    chosen: RwSignal<Vec<String>>,
    lines: Lines,
    editor: stages::Editor,
}

impl Draft {
    /// As a request has it.
    fn body(self) -> Result<Value, Problem> {
        let mut body = json!({
            "retriever_name": self.name.get().trim(), "collection_identifiers": self.chosen.get(),
            "input_schema": inputs_of(self.lines.get()), "stages": self.editor.value()?,
        });
        let about = self.description.get();
        if !about.is_empty() {
            body["description"] = about.into();
        }
        Ok(body)
    }

    /// All of it, finished or not.
    fn written(self) -> Value {
        let kept = self.editor.kept();
        json!([
            self.name.get(),
            self.description.get(),
            self.chosen.get(),
            inputs_of(self.lines.get()),
            kept
        ])
    }

    fn create(
        self,
        session: Session,
        go: impl Fn(&str) + 'static,
        change: Change,
        unsaved: Unsaved,
    ) {
        let ns = self.ns.get_untracked();
        let (api, body) = (session.api_in(ns.clone()), untrack(|| self.body()));
        let work = async move { api.post("/v1/retrievers", &body?).await };
        change.run(work, move |made| {
            unsaved.saved();
            go(&format!("/ns/{ns}/retrievers/{}", made_id(&made)));
        });
    }
}

/// Writes the stages and inputs to start with: those of the retriever, else anew for what is chosen, until somebody changes them.
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
    let now = move || untrack(|| json!([editor.kept(), inputs_of(lines.get())]));
    Effect::new(move |written: Option<Value>| {
        let picked = picked.get();
        // What somebody has changed of it stays, whatever else is chosen.
        if let Some(written) = written.filter(|written| *written != now()) {
            return written;
        }
        editor.set(&template::stages(&picked));
        lines.set(lines_of(&template::inputs(&picked)));
        now()
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
}
