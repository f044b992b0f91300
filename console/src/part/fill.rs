//! Dialogs whose form is a schema: what is filled in is the body that is sent, so another form costs a text and no code.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    Ask,
    schema::{Form, fields, lead, named},
};
use crate::{
    api::{Answer, Api, Problem},
    load::{Change, Load},
    record::{Record, items},
};

/// A dialog that asks for a body and sends it.
#[component]
pub fn Fill(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// The words on the button.
    label: &'static str,
    form: Form,
    /// The name of a schema.
    schema: &'static str,
    /// What is filled in when it opens.
    start: Callback<(), Value>,
    send: Callback<Value, Answer>,
    done: Callback<Record>,
    /// What is told below the fields, from what is filled in.
    #[prop(optional)]
    note: Option<fn(&Value) -> String>,
    /// What stands below the fields and comes by other ways.
    #[prop(optional)]
    below: Option<ViewFn>,
) -> AnyView {
    let change = Change::new();
    // What is refused stands beside its field, and leads there.
    Effect::new(move |_| {
        let notes = change.problem.get().map(|problem| problem.notes);
        let notes = notes.unwrap_or_default();
        if !notes.is_empty() {
            lead("dialog[open] [aria-invalid=\"true\"]".to_owned());
        }
        form.faults.0.set(notes);
    });
    let submit = Callback::new(move |()| {
        change.run(send.run(form.value.get_untracked()), move |made| {
            // The page may be gone by now.
            let _ = open.try_set(false);
            let _ = done.try_run(made);
        });
    });
    let schema = StoredValue::new(named(schema));
    let told = move |note: fn(&Value) -> String| {
        view! { <p class="notice lines" role="status">{move || form.value.with(note)}</p> }
            .into_any()
    };
    view! {
        <Ask open title class="wide" label change submit>
            {form.value.set(untrack(|| start.run(())))}
            {move || {
                form.shape.track();
                schema.with_value(|schema| fields(form, "", schema))
            }}
            {note.map(told)}
            {below.as_ref().map(|below| below.run())}
        </Ask>
    }
    .into_any()
}

/// What things are called, by one look for each kind; their ids until that is known, and where it may not be.
#[derive(Clone, Copy)]
pub struct Names(Load);

impl Names {
    pub fn of(api: impl Fn() -> Api + 'static, kinds: &'static [&'static str]) -> Self {
        Self(Load::new(move || choices(api(), kinds)))
    }

    pub fn get(self, id: &str) -> String {
        let all = self.0.good().unwrap_or_default().members().into_iter();
        let mut all = all.flat_map(|(_, all)| items(&all.0));
        let found = all.find(|one| one.text("id") == id);
        found.map_or_else(|| id.to_owned(), |one| one.text("name"))
    }
}

/// What there is of each kind, as forms choose from it and rows name it.
pub async fn choices(api: Api, kinds: &[&str]) -> Result<Record, Problem> {
    let mut all = json!({});
    for kind in kinds {
        // The list of batches spans the organization.
        let body = match *kind {
            "batches" => json!({"namespace_id": api.namespace}),
            _ => json!({}),
        };
        let branch = kind.strip_suffix("es").filter(|word| word.ends_with("ch"));
        let word = branch.or(kind.strip_suffix('s'));
        let one = match kind.strip_suffix("ies") {
            Some(start) => format!("{start}y"),
            None => word.unwrap_or(kind).to_owned(),
        };
        let (id, name) = (format!("{one}_id"), format!("{one}_name"));
        let of = match *kind {
            "connections" => "organizations/connections",
            "webhooks" => "organizations/webhooks",
            kind => kind,
        };
        let path = format!("/v1/{of}/list?limit=100");
        let answer = api.post(&path, &body).await?;
        let found = answer.list("results").into_iter().map(
            |one| json!({"id": one.text(&id), "name": one.first(&[name.as_str(), "name", id.as_str()]), "inputs": one.value("input_schema")}),
        );
        all[*kind] = found.collect();
    }
    Ok(Record(all))
}
