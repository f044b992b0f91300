//! The stages of a retriever, in order: added, moved, taken out, each a form by its own schema; or all as JSON.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{Area, Icon, Toasts, schema};
use crate::{
    api::Problem,
    record::{Record, items},
    text,
};

/// One stage being edited. What the form has no field for is kept as it came.
#[derive(Clone, Copy)]
struct Stage {
    id: usize,
    name: RwSignal<String>,
    kind: StoredValue<String>,
    rest: StoredValue<Value>,
    form: schema::Form,
}

/// What is edited, and what it is edited with.
#[derive(Clone, Copy)]
pub struct Editor {
    stages: RwSignal<Vec<Stage>>,
    next: StoredValue<usize>,
    /// The stages that run on this server.
    kinds: StoredValue<Vec<Record>>,
    features: Signal<Vec<String>>,
    /// The same as text, while it is edited as text.
    json: RwSignal<Option<String>>,
}

impl Editor {
    pub fn new(kinds: Vec<Record>, features: Signal<Vec<String>>) -> Self {
        Self {
            stages: RwSignal::new(Vec::new()),
            next: StoredValue::new(0),
            kinds: StoredValue::new(kinds),
            features,
            json: RwSignal::new(None),
        }
    }

    fn stage(self, one: &Record) -> Stage {
        let id = self.next.get_value();
        self.next.set_value(id + 1);
        let config = one.record("config");
        let parameters = config.value("parameters").cloned();
        let form = schema::Form::new(
            format!("stage-{id}"),
            parameters.unwrap_or_else(|| json!({})),
            self.features,
        );
        Stage {
            id,
            name: RwSignal::new(one.text("stage_name")),
            kind: StoredValue::new(config.text("stage_id")),
            rest: StoredValue::new(one.0.clone()),
            form,
        }
    }

    /// Takes these in place of what is there.
    pub fn set(self, stages: &Value) {
        let made = items(stages).iter().map(|one| self.stage(one)).collect();
        self.stages.set(made);
        if self.json.with_untracked(Option::is_some) {
            self.json.set(Some(text::pretty(stages)));
        }
    }

    /// The stages as the server takes them.
    pub fn value(self) -> Result<Value, Problem> {
        if let Some(typed) = self.json.get() {
            return serde_json::from_str(&typed)
                .map_err(|e| Problem::local(format!("the stages are not JSON: {e}")));
        }
        Ok(self.stages.get().into_iter().map(Stage::value).collect())
    }

    fn definition(self, kind: &str) -> Record {
        self.kinds.with_value(|all| {
            let found = all.iter().find(|one| one.text("stage_id") == kind);
            found.cloned().unwrap_or_default()
        })
    }

    fn add(self, kind: &str) {
        let about = self.definition(kind);
        let taken = self.stages.get_untracked();
        let taken: Vec<String> = taken.iter().map(|one| one.name.get_untracked()).collect();
        let one = json!({
            "stage_name": free(kind, &taken), "stage_type": about.text("category"),
            "config": {"stage_id": kind, "parameters": first_parameters(kind)},
        });
        let stage = self.stage(&Record(one));
        self.stages.update(|all| all.push(stage));
    }

    fn place(self, id: usize) -> usize {
        self.stages
            .with(|all| all.iter().position(|one| one.id == id))
            .unwrap_or(0)
    }

    /// Moves a stage by one, up or down.
    fn shift(self, id: usize, down: bool) -> Option<usize> {
        let mut all = self.stages.get_untracked();
        let at = all.iter().position(|one| one.id == id)?;
        let to = if down { at + 1 } else { at.checked_sub(1)? };
        if to >= all.len() {
            return None;
        }
        all.swap(at, to);
        self.stages.set(all);
        Some(to + 1)
    }
}

impl Stage {
    /// Moves it and says so.
    fn shift(self, editor: Editor, toasts: Toasts, down: bool) {
        if let Some(to) = editor.shift(self.id, down) {
            toasts.say(format!("{} is now stage {to}", self.name.get_untracked()));
        }
    }

    fn value(self) -> Value {
        let mut one = self.rest.get_value();
        one["stage_name"] = self.name.get().trim().into();
        one["config"]["stage_id"] = self.kind.get_value().into();
        one["config"]["parameters"] = self.form.value.get();
        one
    }
}

/// A name that no other stage has.
fn free(kind: &str, taken: &[String]) -> String {
    let mut name = kind.to_owned();
    let mut n = 2;
    while taken.contains(&name) {
        name = format!("{kind}_{n}");
        n += 1;
    }
    name
}

/// What a new stage starts with: fields that it is nothing without.
fn first_parameters(kind: &str) -> Value {
    match kind {
        "feature_search" => {
            json!({"searches": [{"query": {"input_mode": "text", "value": "{{INPUT.query}}"}}], "final_top_k": 50})
        }
        "attribute_filter" => json!({"field": "", "operator": "eq", "value": ""}),
        "sort_attribute" => json!({"field": "", "direction": "desc"}),
        "limit" => json!({"limit": 10}),
        _ => json!({}),
    }
}

#[component]
pub fn Stages(editor: Editor) -> AnyView {
    // A memo: the text changes with every letter, what is shown only with the toggle.
    let as_json = Memo::new(move |_| editor.json.with(Option::is_some));
    let toggle = move |_| match editor.json.get_untracked() {
        None => {
            let now = editor.value().unwrap_or_default();
            editor.json.set(Some(text::pretty(&now)));
        }
        // Text that is not JSON stays, with what is wrong below it.
        Some(_) => {
            if let Ok(now) = untrack(|| editor.value()) {
                editor.json.set(None);
                editor.set(&now);
            }
        }
    };
    view! {
        <section class="stack-sm" aria-labelledby="stages-head">
            <div class="row between">
                <h2 id="stages-head">"Stages"</h2>
                <button type="button" class="btn small" aria-pressed=move || as_json.get().to_string() on:click=toggle>"Edit as JSON"</button>
            </div>
            {move || if as_json.get() { text_of(editor) } else { cards(editor) }}
        </section>
    }
    .into_any()
}

fn text_of(editor: Editor) -> AnyView {
    let typed = RwSignal::new(editor.json.get_untracked().unwrap_or_default());
    Effect::new(move |_| editor.json.set(Some(typed.get())));
    let fault = move || editor.value().err().map(|problem| problem.message);
    view! {
        <Area id="stages" label="Stages (JSON)" value=typed rows=20/>
        <p role="status" class="problem-line">{fault}</p>
    }
    .into_any()
}

fn cards(editor: Editor) -> AnyView {
    let chosen = RwSignal::new(String::new());
    let groups = ["filter", "sort", "reduce", "apply", "enrich"].map(|category| {
        let all = editor.kinds.get_value().into_iter();
        let all = all.filter(|one| one.text("category") == category).map(|one| {
            let id = one.text("stage_id");
            view! { <option value=id.clone()>{format!("{}: {}", text::words(&id), one.text("description"))}</option> }.into_any()
        });
        view! { <optgroup label=category>{all.collect::<Vec<_>>()}</optgroup> }.into_any()
    });
    let add = move |_| editor.add(&chosen.get_untracked());
    let none = move || {
        editor.stages.with(Vec::is_empty).then(|| view! { <p class="muted">"No stage yet. The first one finds documents: feature search, or attribute filter."</p> })
    };
    view! {
        {none}
        <ol class="stages"><For each=move || editor.stages.get() key=|one| one.id children=move |one| card(editor, one)/></ol>
        <div class="add-stage">
            <select class="select" aria-label="Stage to add" prop:value=move || chosen.get() on:change=move |event| chosen.set(event_target_value(&event))>
                <option value="">"Choose a stage"</option>{Vec::from(groups)}
            </select>
            <button type="button" class="btn" disabled=move || chosen.with(String::is_empty) on:click=add><Icon name="plus"/>"Add stage"</button>
        </div>
    }
    .into_any()
}

/// A button that moves a stage by one.
fn arrow(editor: Editor, stage: Stage, down: bool) -> AnyView {
    let toasts: Toasts = expect_context();
    let word = if down { "down" } else { "up" };
    let label = move || format!("Move {} {word}", stage.name.get());
    let end = move || match down {
        true => editor.place(stage.id) + 1 >= editor.stages.with(Vec::len),
        false => editor.place(stage.id) == 0,
    };
    view! {
        <button type="button" class="btn ghost icon small" aria-label=label title=format!("Alt and the arrow key move it {word}, too")
            aria-disabled=move || end().to_string() on:click=move |_| stage.shift(editor, toasts, down)><Icon name=word/></button>
    }
    .into_any()
}

fn card(editor: Editor, stage: Stage) -> AnyView {
    let toasts: Toasts = expect_context();
    let kind = stage.kind.get_value();
    let about = editor.definition(&kind);
    let keys = move |event: leptos::ev::KeyboardEvent| {
        let down = event.key() == "ArrowDown";
        if event.alt_key() && (down || event.key() == "ArrowUp") {
            event.prevent_default();
            stage.shift(editor, toasts, down);
        }
    };
    let remove = move |_| {
        editor
            .stages
            .update(|all| all.retain(|one| one.id != stage.id));
        toasts.say(format!("{} was taken out", stage.name.get_untracked()));
    };
    let shape = about.record("parameter_schema");
    let fields = move || {
        stage.form.shape.track();
        schema::fields(stage.form, "", &shape)
    };
    let id = format!("stage-{}-name", stage.id);
    view! {
        <li class="card stage" on:keydown=keys>
            <div class="stage-head">
                <span class="stage-head grow"><span class="step num">{move || editor.place(stage.id) + 1}</span>
                    <span class="grow"><strong>{text::words(&kind)}</strong><span class="sub muted">{about.text("description")}</span></span></span>
                <span class="tools">{arrow(editor, stage, false)}{arrow(editor, stage, true)}
                    <button type="button" class="btn ghost icon small" aria-label=move || format!("Take {} out", stage.name.get()) on:click=remove><Icon name="close"/></button></span>
            </div>
            <div class="field"><label for=id.clone()>"name"</label><input class="input" id=id bind:value=stage.name autocomplete="off" spellcheck="false"/></div>
            {fields}
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_stages_are_unlike() {
        let taken = ["limit".to_owned(), "limit_2".to_owned()];
        assert_eq!(free("limit", &taken), "limit_3");
        assert_eq!(free("mmr", &taken), "mmr");
    }

    #[test]
    fn what_came_is_what_is_sent() {
        let owner = Owner::new();
        owner.set();
        let editor = Editor::new(Vec::new(), Signal::stored(Vec::new()));
        let stages = json!([{"stage_name": "a", "stage_type": "filter", "when": "x", "config": {"stage_id": "limit", "parameters": {"limit": 3}}},
            {"stage_name": "b", "stage_type": "reduce", "config": {"stage_id": "sample", "parameters": {}}}]);
        editor.set(&stages);
        assert_eq!(editor.value().expect("stages"), stages);
        assert_eq!(editor.shift(0, true), Some(2));
        assert_eq!(editor.shift(0, true), None);
        assert_eq!(editor.value().expect("stages")[0]["stage_name"], "b");
    }
}
