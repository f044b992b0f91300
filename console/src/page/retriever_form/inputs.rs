//! What a search asks for: the inputs of a retriever, line by line.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use crate::{part::*, record::Record};

/// A line of the inputs: what a search asks for.
#[derive(Clone, Copy)]
pub struct Line {
    id: usize,
    name: RwSignal<String>,
    required: RwSignal<bool>,
    field: RwSignal<Value>,
}

pub type Lines = RwSignal<Vec<Line>>;

pub fn lines_of(inputs: &Value) -> Vec<Line> {
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
pub fn inputs_of(lines: Vec<Line>) -> Value {
    let mut out = Map::new();
    for line in lines {
        let (name, mut field) = (line.name.get(), line.field.get());
        if !name.trim().is_empty() {
            field["required"] = line.required.get().into();
            out.insert(name.trim().to_owned(), field);
        }
    }
    Value::Object(out)
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
pub fn Inputs(lines: Lines) -> AnyView {
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
            <div><button type="button" class="btn small" id="add-input" on:click=add><Icon name="plus" size=14/>"Add an input"</button></div>
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
    let take = move |_| {
        lines.update(|all| all.retain(|one| one.id != line.id));
        schema::lead("#add-input".to_owned());
    };
    view! {
        <div class="input-row">
            <input class="input" aria-label="Name of the input" placeholder="name" bind:value=line.name autocomplete="off" spellcheck="false"/>
            <select class="select" aria-label="Type" on:change=move |e| set("type", event_target_value(&e))>{kinds.collect::<Vec<_>>()}</select>
            <input class="input" aria-label="Description" placeholder="what it is for" prop:value=now.text("description") on:input=move |e| set("description", event_target_value(&e))/>
            <Check label="Required" checked=line.required set=move |on| line.required.set(on)/>
            <button type="button" class="btn ghost icon" aria-label="Remove this input" on:click=take><Icon name="close"/></button>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_back_as_they_were() {
        let owner = Owner::new();
        owner.set();
        let inputs = json!({"query": {"type": "string", "examples": ["a"], "required": true}});
        assert_eq!(inputs_of(lines_of(&inputs)), inputs);
    }
}
