//! The inputs of a retriever that a form names, each as a field.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde_json::Value;

use super::{Form, beside, show};
use crate::{
    part::{Input, inputs},
    record::{Record, plain},
};

/// How the forms of a page draw the inputs of a retriever: the code for it is in no page that has none of them.
#[derive(Clone, Copy)]
pub struct DrawInputs(pub fn(Form, &str) -> Option<AnyView>);

impl DrawInputs {
    /// For the forms of the page that calls it.
    pub fn provide() {
        provide_context(Self(asking));
    }
}

/// What the retriever asks for that is chosen beside the inputs at `path`.
fn asked(form: Form, path: &str) -> Vec<(String, Record)> {
    let (above, _) = path.rsplit_once('/').unwrap_or_default();
    let chosen = plain(&form.get(&beside(above, "retriever_id")));
    let all = form.choices.with_untracked(|all| all.list("retrievers"));
    let one = all.into_iter().find(|one| one.text("id") == chosen);
    one.map(|one| one.record("inputs").members())
        .unwrap_or_default()
}

/// A field for each of them; none where nothing is known of them.
fn asking(form: Form, path: &str) -> Option<AnyView> {
    let (all, path) = (asked(form, path), path.to_owned());
    if all.is_empty() {
        return None;
    }
    let held = Record(form.get(&path)).members().into_iter();
    let held = held.map(|(name, value)| (name, show(&value.0)));
    let values = RwSignal::new(held.collect::<BTreeMap<_, _>>());
    let schema = all.clone();
    Effect::new(move |before: Option<()>| {
        let now = values.with(|values| inputs(&schema, values));
        if before.is_some() {
            form.set(&path, Value::Object(now));
        }
    });
    let all = all.into_iter();
    let all = all.map(|(name, field)| view! { <Input name field values/> }.into_any());
    Some(all.collect::<Vec<_>>().into_any())
}
