//! The stages of a retriever, in order: added, moved, copied, left out, each a form by its own schema; or all as JSON.

mod list;

pub use list::{Picked, Stages};

use leptos::prelude::*;
use serde_json::{Value, json};

use super::schema;
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
    rest: RwSignal<Value>,
    form: schema::Form,
    /// What is switched off stays in the draft, and is neither run nor saved.
    on: RwSignal<bool>,
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
    /// The stage whose form is open.
    open: RwSignal<Option<usize>>,
    /// What each stage did in the last run, by its name.
    pub ran: RwSignal<Record>,
    /// Stages live as long as the draft, whichever button made them.
    owner: StoredValue<Owner>,
}

impl Editor {
    pub fn new(kinds: Vec<Record>, features: Signal<Vec<String>>) -> Self {
        Self {
            stages: RwSignal::new(Vec::new()),
            next: StoredValue::new(0),
            kinds: StoredValue::new(kinds),
            features,
            json: RwSignal::new(None),
            open: RwSignal::new(None),
            ran: RwSignal::new(Record::default()),
            owner: StoredValue::new(Owner::current().unwrap_or_default()),
        }
    }

    fn stage(self, one: &Record) -> Stage {
        self.owner.get_value().with(|| self.made(one))
    }

    fn made(self, one: &Record) -> Stage {
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
            rest: RwSignal::new(one.0.clone()),
            form,
            on: RwSignal::new(true),
        }
    }

    /// Takes these in place of what is there.
    pub fn set(self, stages: &Value) {
        let made: Vec<Stage> = items(stages).iter().map(|one| self.stage(one)).collect();
        self.open.set(made.first().map(|one| one.id));
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
        let on = self.stages.get().into_iter().filter(|one| one.on.get());
        Ok(on.map(Stage::value).collect())
    }

    /// The stages as they stand, those that are off and text that is no JSON too.
    pub fn kept(self) -> Value {
        match self.json.get() {
            Some(typed) => typed.into(),
            None => self
                .stages
                .get()
                .into_iter()
                .map(|one| json!([one.on.get(), one.value()]))
                .collect(),
        }
    }

    /// Kinds of the stages that are on.
    pub fn kinds(self) -> Vec<String> {
        let on = self.stages.get().into_iter().filter(|one| one.on.get());
        on.map(|one| one.kind.get_value()).collect()
    }

    fn definition(self, kind: &str) -> Record {
        self.kinds.with_value(|all| {
            let found = all.iter().find(|one| one.text("stage_id") == kind);
            found.cloned().unwrap_or_default()
        })
    }

    fn taken(self) -> Vec<String> {
        let all = self.stages.get_untracked();
        all.iter().map(|one| one.name.get_untracked()).collect()
    }

    fn add(self, kind: &str) {
        let about = self.definition(kind);
        let one = json!({
            "stage_name": free(kind, &self.taken()), "stage_type": about.text("category"),
            "config": {"stage_id": kind, "parameters": first_parameters(kind)},
        });
        let stage = self.stage(&Record(one));
        self.stages.update(|all| all.push(stage));
        self.open.set(Some(stage.id));
    }

    /// Another one like it, below it.
    fn copy(self, stage: Stage) {
        let mut one = untrack(|| stage.value());
        one["stage_name"] = free(&stage.kind.get_value(), &self.taken()).into();
        let made = self.stage(&Record(one));
        let at = self.place(stage.id) + 1;
        self.stages.update(|all| all.insert(at, made));
        self.open.set(Some(made.id));
    }

    fn remove(self, id: usize) {
        let at = untrack(|| self.place(id));
        self.stages.update(|all| all.retain(|one| one.id != id));
        let left = self.stages.get_untracked();
        let next = left.get(at).or(left.last()).map(|one| one.id);
        self.open.set(next);
    }

    /// Puts a stage where another one is.
    fn drop_at(self, id: usize, at: usize) {
        self.stages.update(|all| {
            if let Some(from) = all.iter().position(|one| one.id == id) {
                let one = all.remove(from);
                all.insert(at.min(all.len()), one);
            }
        });
    }

    fn place(self, id: usize) -> usize {
        let all = |all: &Vec<Stage>| all.iter().position(|one| one.id == id);
        self.stages.with(all).unwrap_or(0)
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
    /// Writes what stands beside the parameters; an empty text takes it away.
    fn put(self, member: &str, text: &str) {
        self.rest.update(|rest| {
            if let Some(members) = rest.as_object_mut() {
                match text {
                    "" => members.shift_remove(member),
                    text => members.insert(member.to_owned(), text.into()),
                };
            }
        });
    }

    fn value(self) -> Value {
        let mut one = self.rest.get();
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

    #[test]
    fn a_draft_is_copied_reordered_and_left_out_of() {
        let owner = Owner::new();
        owner.set();
        let editor = Editor::new(Vec::new(), Signal::stored(Vec::new()));
        let one = |name: &str| json!({"stage_name": name, "stage_type": "reduce", "config": {"stage_id": "limit", "parameters": {"limit": 1}}});
        editor.set(&json!([one("a"), one("b")]));
        let names = || -> Vec<String> {
            let all = editor.value().expect("stages");
            items(&all)
                .iter()
                .map(|one| one.text("stage_name"))
                .collect()
        };
        let first = editor.stages.get_untracked()[0];
        editor.copy(first);
        assert_eq!(names(), ["a", "limit", "b"]);
        assert_eq!(editor.open.get_untracked(), Some(2));
        editor.drop_at(2, 0);
        assert_eq!(names(), ["limit", "a", "b"]);
        first.on.set(false);
        assert_eq!(
            (names(), editor.kinds().len()),
            (vec!["limit".to_owned(), "b".into()], 2)
        );
        editor.remove(2);
        assert_eq!(names(), ["b"]);
        assert_eq!(editor.open.get_untracked(), Some(first.id));
    }
}
