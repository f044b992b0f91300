//! A template of the owner's own, being written: which field stands where on a card and on an item's page.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::draft::Draft;
use crate::{part::*, record::Record};

/// What a page calls a template that is written here.
pub const NAME: &str = "custom";

const BUILT_IN: [&str; 3] = ["document-search", "media-search", "portrait-gallery"];

const CHARACTERS: &[(&str, &str)] = &[
    ("plain", "Plain"),
    ("document-search", "Documents"),
    ("media-search", "Media"),
    ("portrait-gallery", "Portraits"),
];

const SIDES: &[(&str, &str)] = &[
    ("above", "Above the words"),
    ("beside", "Beside the words"),
    ("none", "No picture"),
];

const RATIOS: &[(&str, &str)] = &[
    ("", "As the character has it"),
    ("16/9", "Wide (16/9)"),
    ("4/3", "4/3"),
    ("1/1", "Square"),
    ("4/5", "Tall (4/5)"),
    ("2/3", "Poster (2/3)"),
];

type Places = &'static [(&'static str, &'static str)];

const ON_CARD: Places = &[
    ("", "Not on the card"),
    ("badge", "On the picture"),
    ("eyebrow", "Above the title"),
    ("heading", "Title"),
    ("line", "Beneath the title"),
    ("text", "Text"),
    ("facts", "Particulars"),
];

const ON_ITEM: Places = &[
    ("", "Not on its page"),
    ("eyebrow", "Above the title"),
    ("line", "Beneath the title"),
    ("text", "Text"),
    ("facts", "Particulars"),
];

/// Where each field stands.
type Placed = BTreeMap<String, String>;
type Chosen = RwSignal<Placed>;

#[derive(Clone, Copy)]
pub struct Own {
    /// The template that the form began with.
    base: StoredValue<Record>,
    /// What the form showed when it began.
    begun: StoredValue<([String; 3], [Placed; 2])>,
    pub(super) character: RwSignal<String>,
    side: RwSignal<String>,
    ratio: RwSignal<String>,
    card: Chosen,
    item: Chosen,
}

/// Whether a page's template is its owner's own.
pub fn is_own(template: &str) -> bool {
    !template.is_empty() && !BUILT_IN.contains(&template)
}

impl Own {
    /// Of the template that a configuration holds, or of what the names of its fields suggest.
    pub fn new(display: &Record) -> Self {
        let base = display.record("extensions").record("template");
        let or =
            |of: &Record, name: &str, usual: &str| of.opt(name).unwrap_or_else(|| usual.to_owned());
        let picture = base.record("picture");
        let fields = display.strings("exposed_fields");
        let view = |name: &str, places: Places| match base.value(name) {
            Some(_) => placed(&base.record(name), places),
            None => suggested(&fields, name == "card"),
        };
        let words = [
            or(&base, "character", "plain"),
            or(&picture, "place", "above"),
            or(&picture, "ratio", ""),
        ];
        let places = [view("card", ON_CARD), view("item", ON_ITEM)];
        let begun = StoredValue::new((words.clone(), places.clone()));
        let [character, side, ratio] = words.map(RwSignal::new);
        let [card, item] = places.map(RwSignal::new);
        Self {
            base: StoredValue::new(base),
            begun,
            character,
            side,
            ratio,
            card,
            item,
        }
    }

    /// Whether anything was chosen since the form began.
    pub fn is_changed(self) -> bool {
        let words = [self.character.get(), self.side.get(), self.ratio.get()];
        let places = [self.card.get(), self.item.get()];
        self.begun.get_value() != (words, places)
    }

    /// The template as data, of the fields that visitors see.
    pub fn value(self, exposed: &[String]) -> Value {
        let base = self.base.get_value();
        let mut picture = json!({"place": self.side.get()});
        let ratio = Some(self.ratio.get()).filter(|ratio| !ratio.is_empty());
        if let Some(ratio) = ratio {
            picture["ratio"] = ratio.into();
        }
        let field = base.record("picture").opt("field");
        if let Some(field) = field.filter(|field| exposed.contains(field)) {
            picture["field"] = field.into();
        }
        let view = |name: &str, places: Places, chosen: Chosen| {
            chosen.with(|chosen| written(&base.record(name), places, chosen, exposed))
        };
        json!({
            "character": self.character.get(), "picture": picture,
            "card": view("card", ON_CARD, self.card), "item": view("item", ON_ITEM, self.item),
        })
    }
}

/// The place of each field.
fn placed(view: &Record, places: Places) -> Placed {
    let of = |place: &str| {
        let fields = view.strings(place).into_iter();
        let place = place.to_owned();
        fields.map(move |field| (field, place.clone()))
    };
    places.iter().flat_map(|(place, _)| of(place)).collect()
}

fn suggested(fields: &[String], is_card: bool) -> Placed {
    let place = |field: &str| match field {
        "title" | "name" | "headline" if is_card => "heading",
        "title" | "name" | "headline" => "",
        "description" | "summary" | "text" | "content" => "text",
        _ if is_card => "",
        _ => "facts",
    };
    let all = fields.iter();
    all.map(|field| (field.clone(), place(field).to_owned()))
        .collect()
}

/// A view as data: in each place the fields in the order that they had, then the others.
fn written(before: &Record, places: Places, chosen: &Placed, exposed: &[String]) -> Value {
    let mut view = Map::new();
    for (place, _) in places.iter().filter(|(place, _)| !place.is_empty()) {
        let mut seen = BTreeSet::new();
        let mut fields = before.strings(place);
        fields.extend(exposed.iter().cloned());
        fields.retain(|field| {
            let is_here = chosen.get(field).is_some_and(|at| at == place);
            is_here && exposed.contains(field) && seen.insert(field.clone())
        });
        if !fields.is_empty() {
            view.insert((*place).to_owned(), json!(fields));
        }
    }
    Value::Object(view)
}

/// The form of the template, where the page has one of its own.
pub fn form(draft: Draft) -> impl Fn() -> Option<AnyView> {
    let is_shown = Memo::new(move |_| is_own(&draft.template.get()));
    move || is_shown.get().then(|| editor(draft))
}

fn editor(draft: Draft) -> AnyView {
    let own = draft.own;
    let listed = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        let all = all.iter();
        all.map(|(value, label)| ((*value).to_owned(), (*label).to_owned()))
            .collect()
    };
    view! {
        <fieldset class="stack-sm"><legend class="label">"What stands where"</legend>
            <div class="form-row">
                <Choice id="own-character" label="Character" value=own.character options=listed(CHARACTERS)/>
                <Choice id="own-side" label="Picture" value=own.side options=listed(SIDES)/>
                <Choice id="own-ratio" label="Its proportions" value=own.ratio options=listed(RATIOS)/>
            </div>
            <div class="stack-sm">
                <For each=move || draft.exposed.get() key=|field| field.clone() children=move |field| row(own, field)/>
            </div>
        </fieldset>
    }
    .into_any()
}

/// One field and its two places.
fn row(own: Own, field: String) -> AnyView {
    let on_card = place("On the card", own.card, field.clone(), ON_CARD);
    let on_item = place("On its own page", own.item, field.clone(), ON_ITEM);
    view! { <div class="place-row" role="group" aria-label=field.clone()><span>{field.clone()}</span>{on_card}{on_item}</div> }
        .into_any()
}

fn place(label: &'static str, chosen: Chosen, field: String, places: Places) -> AnyView {
    let now = chosen.with_untracked(|all| all.get(&field).cloned().unwrap_or_default());
    let options: Vec<_> = places
        .iter()
        .map(|&(value, label)| {
            let selected = now == value;
            view! { <option value=value selected=selected>{label}</option> }.into_any()
        })
        .collect();
    let set = move |event: leptos::ev::Event| {
        let place = event_target_value(&event);
        chosen.update(|all| drop(all.insert(field.clone(), place)));
    };
    view! { <select class="select" aria-label=label on:change=set>{options}</select> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_read_and_written_without_a_loss() {
        let owner = Owner::new();
        owner.set();
        let template = json!({
            "character": "media-search", "picture": {"place": "beside", "ratio": "2/3", "field": "poster"},
            "card": {"heading": ["title"], "line": ["year", "country"]},
            "item": {"text": ["plot"], "facts": ["country"]},
        });
        let display = Record(
            json!({"exposed_fields": ["country", "plot", "poster", "title", "year"],
            "extensions": {"template": template}}),
        );
        let own = Own::new(&display);
        assert_eq!(own.value(&display.strings("exposed_fields")), template);
        // A field that visitors no longer see has no place, and one that moves is in one place.
        own.card
            .update(|all| drop(all.insert("country".into(), "facts".into())));
        let fewer: Vec<String> = vec!["country".into(), "plot".into(), "year".into()];
        let value = own.value(&fewer);
        assert_eq!(
            value["card"],
            json!({"line": ["year"], "facts": ["country"]})
        );
        assert_eq!(value["picture"], json!({"place": "beside", "ratio": "2/3"}));
    }

    #[test]
    fn a_new_template_begins_with_what_names_suggest() {
        let owner = Owner::new();
        owner.set();
        let display = Record(json!({"exposed_fields": ["title", "text", "year"]}));
        let value = Own::new(&display).value(&display.strings("exposed_fields"));
        assert_eq!(
            value["card"],
            json!({"heading": ["title"], "text": ["text"]})
        );
        assert_eq!(value["item"], json!({"text": ["text"], "facts": ["year"]}));
        assert!(is_own("shop-window") && !is_own("") && !is_own("media-search"));
    }
}
