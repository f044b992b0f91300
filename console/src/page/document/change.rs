//! The fields of a document, changed by hand, and its end.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::{Place, own};
use crate::{
    api::Problem,
    load::{Change, Load},
    page::documents::name_of,
    part::{schema::Form, *},
    record::Record,
};

/// A longer text has a field of several lines.
const LINE: usize = 60;

/// The places of fields, and what is wrong there.
type Wrong = Vec<(String, String)>;

/// What can be done with the document.
pub(super) fn tools(place: Place, one: &Record) -> AnyView {
    let id = one.text("document_id");
    let name = name_of(one).map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty() && name.chars().count() <= LINE);
    let open = RwSignal::new(false);
    // As it is by now, and without the addresses of its files, which are no fields.
    let fresh = Load::of(
        move || place.api.get(),
        move || match open.get() {
            true => place.path.get(),
            false => String::new(),
        },
    );
    view! {
        <div class="row">
            <button type="button" class="btn small" on:click=move |_| open.set(true)>"Change fields"</button>
            <Remove what="document" name=name.unwrap_or(id) loses="Its vectors and what was made of it go with it." api=place.api path=place.path done=place.removed/>
        </div>
        <Modal open title="Change the fields".to_owned() class="wide">{loaded(fresh, waiting(4), move |one| form(place, open, &one))}</Modal>
    }
    .into_any()
}

fn form(place: Place, open: RwSignal<bool>, one: &Record) -> AnyView {
    let toasts: Toasts = expect_context();
    let (change, form) = (Change::new(), Form::plain("document"));
    let fields = own(one).into_iter();
    let fields = fields.filter(|(name, _)| name != "collection_id");
    let old = fields.map(|(name, value)| (name, value.0)).collect();
    let old = Record(Value::Object(old));
    let shape = shape(&old);
    form.value.set(old.0.clone());
    // What is refused stands beside its field, and leads there.
    Effect::new(move |_| {
        let notes = change.problem.get().map(|problem| problem.notes);
        let notes = notes.unwrap_or_default();
        if !notes.is_empty() {
            schema::lead("dialog[open] [aria-invalid=\"true\"]".to_owned());
        }
        form.faults.0.set(notes);
    });
    let submit = Callback::new(move |()| {
        let (whole, body) = match sent(&old, &form.value.get_untracked()) {
            Ok(sent) => sent,
            Err(notes) => {
                let problem = Problem::local("some fields hold something else");
                change.problem.set(Some(Problem { notes, ..problem }));
                return;
            }
        };
        let (api, path) = (place.api.get_untracked(), place.path.get_untracked());
        let call = match whole {
            true => api.put(&path, &body),
            false => api.patch(&path, &body),
        };
        change.run(call, move |_| {
            // The page may be gone by now.
            let _ = open.try_set(false);
            toasts.say("The document is changed");
            let _ = place.changed.try_run(());
        });
    });
    view! {
        <Sheet change submit label="Save" open>
            <p class="muted">"A field that is left empty is taken away. Vectors stay as they are, and the next run of the object behind the document writes its fields anew."</p>
            {schema::fields(form, "", &shape)}
        </Sheet>
    }
    .into_any()
}

/// The form of these fields, each by what is in it. Names that a place cannot have stay as they are.
fn shape(old: &Record) -> Record {
    let all = old.members().into_iter();
    let all = all.filter(|(name, _)| !name.contains(['/', '~']));
    let all = all.map(|(name, value)| {
        let mut field = field(&value.0);
        field["title"] = name.as_str().into();
        (name, field)
    });
    let properties: Map<String, Value> = all.collect();
    Record(json!({"plain": true, "properties": properties}))
}

fn field(value: &Value) -> Value {
    let is_line = |one: &Value| one.as_str().is_some_and(|one| !one.contains('\n'));
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::String(text) if text.len() > LINE || text.contains('\n') => {
            json!({"type": "string", "format": "text", "verbatim": true})
        }
        Value::String(_) => json!({"type": "string", "verbatim": true}),
        Value::Array(all) if !all.is_empty() && all.iter().all(is_line) => {
            json!({"type": "array", "format": "lines", "items": {"type": "string"}})
        }
        Value::Array(_) => json!({"type": "array"}),
        Value::Object(_) => json!({"type": "object"}),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What is sent of the changed fields, and whether it takes the place of all that there are.
fn sent(old: &Record, new: &Value) -> Result<(bool, Value), Wrong> {
    let (mut whole, mut changed) = (new.clone(), Map::new());
    let (mut wrong, mut gone) = (Wrong::new(), false);
    for (name, was) in old.members() {
        let now = match (&was.0, new.get(&name)) {
            // The form leaves out what is not so.
            (Value::Bool(_), None) => Value::from(false),
            (_, None) => {
                gone = true;
                continue;
            }
            (_, Some(now)) => now.clone(),
        };
        if now == was.0 {
            continue;
        }
        if !was.0.is_null() && kind(&now) != kind(&was.0) {
            wrong.push((name, format!("this has to be {}", kind(&was.0))));
            continue;
        }
        whole[name.as_str()] = now.clone();
        changed.insert(name, now);
    }
    match (wrong.is_empty(), gone) {
        (false, _) => Err(wrong),
        (true, true) => Ok((true, whole)),
        (true, false) => Ok((false, Value::Object(changed))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_sent_unless_a_field_goes() {
        let old =
            Record(json!({"title": "Owl", "year": 1999, "seen": true, "tags": ["a"], "x": null}));
        let with = |change: fn(&mut Value)| {
            let mut new = old.0.clone();
            change(&mut new);
            sent(&old, &new)
        };
        assert_eq!(with(|_| ()), Ok((false, json!({}))));
        let year = with(|new| new["year"] = 2000.into());
        assert_eq!(year, Ok((false, json!({"year": 2000}))));
        let unseen = with(|new| {
            let members = new.as_object_mut().expect("an object");
            members.shift_remove("seen");
        });
        assert_eq!(unseen, Ok((false, json!({"seen": false}))));
        let bare = with(|new| *new = json!({"year": 1999, "seen": true, "tags": ["b"], "x": null}));
        let rest = json!({"year": 1999, "seen": true, "tags": ["b"], "x": null});
        assert_eq!(bare, Ok((true, rest)));
        let wrong = with(|new| new["year"] = "soon".into());
        assert_eq!(
            wrong,
            Err(vec![(
                "year".to_owned(),
                "this has to be a number".to_owned()
            )])
        );
    }

    #[test]
    fn a_field_is_edited_as_what_is_in_it() {
        let old = Record(json!({"title": "Owl", "tags": ["a, b"], "a/b": 1, "plot": "One\ntwo"}));
        let fields = shape(&old).record("properties");
        assert_eq!(fields.members().len(), 3);
        assert_eq!(fields.record("tags").text("format"), "lines");
        assert_eq!(fields.record("plot").text("format"), "text");
        assert_eq!(fields.record("title").text("title"), "title");
    }
}
