//! What a page asks for, what stands around its results and how fields are written: parts of its configuration that forms
//! made of schemas edit.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::{cards, draft::put, form, frames};
use crate::{
    part::schema::{Form, fields, named},
    record::{Record, items},
};

/// Members of the configuration that are in the forms as they are in the configuration; one within another after it. Those
/// with nothing in them are left out.
const HELD: [&[&str]; 12] = [
    &["seo"],
    &["seo", "structured_data"],
    &["logo_url"],
    &["field_mappings"],
    &["markdowns"],
    &["extensions", "markdowns"],
    &["custom_cta"],
    &["external_links"],
    &["components", "result_card"],
    &["components", "show_search"],
    &["components", "show_results_header"],
    &["extensions", "progress"],
];

/// What each of them has to have before it can be shown.
const NEEDED: [(&str, [&str; 2]); 4] = [
    ("inputs", ["field_name", "label"]),
    ("markdowns", ["title", "content"]),
    ("external_links", ["name", "url"]),
    ("custom_cta", ["label", "markdown_content"]),
];

/// A part of the page's form: its id, its head, what is to be known of it, its schema.
type Section = (&'static str, &'static str, &'static str, &'static str);

const INPUTS: Section = (
    "page-inputs",
    "What visitors are asked",
    "Without inputs of its own the page asks for those of the retriever.",
    "publish/inputs",
);
const RESULTS: Section = (
    "page-results",
    "Results and their fields",
    "Where nothing is chosen, fields stand where their names suggest, and are written as what they hold suggests.",
    "publish/results",
);
const TEXTS: Section = (
    "page-texts",
    "Around the search",
    "Texts beneath it, and a button and links at the top.",
    "publish/texts",
);
const FRAMES: Section = (
    "page-frames",
    "Frames of other sites",
    "A page with a password is shown in none, whatever is chosen.",
    "publish/frames",
);

#[derive(Clone, Copy)]
pub struct Parts {
    form: Form,
    /// The inputs of the retriever, by their names.
    known: StoredValue<Record>,
}

impl Parts {
    /// Of a configuration, and of the retriever behind it.
    pub fn new(display: &Record, retriever: &Record) -> Self {
        let mut value = json!({});
        for path in HELD {
            put(&mut value, path, at(&display.0, path).cloned());
        }
        let mut inputs = display.list("inputs");
        inputs.sort_by_key(|one| one.int("order").unwrap_or(0));
        value["inputs"] = inputs.into_iter().map(|one| one.0).collect();
        let formats = display.record("field_config").members().into_iter();
        let formats = formats.filter_map(|(field, config)| {
            let mut one = config.0.as_object()?.clone();
            one.insert("field".to_owned(), field.into());
            Some(Value::Object(one))
        });
        value["formats"] = formats.collect();
        frames::read(&display.0, &mut value);
        let form = Form::plain("part");
        form.value.set(value);
        let known = retriever.record("input_schema");
        let names = known.members().into_iter().map(|(name, _)| name);
        let names: Vec<String> = names.collect();
        let choices =
            json!({"inputs": chosen(&names), "fields": chosen(&display.strings("exposed_fields"))});
        form.choices.set(Record(choices));
        Self {
            form,
            known: StoredValue::new(known),
        }
    }

    /// Puts them into a configuration. Fields that visitors do not see have no format.
    pub fn put_into(self, all: &mut Value, exposed: &[String]) {
        let mut value = self.form.value.get();
        cards::settle(&mut value, all);
        for path in HELD {
            let held = at(&value, path).filter(|held| !is_bare(held));
            put(all, path, held.cloned());
        }
        let inputs = items(&value["inputs"]).into_iter().enumerate();
        all["inputs"] = inputs.map(|(order, one)| self.input(order, one)).collect();
        let formats = formats(&value["formats"], exposed);
        let formats = Some(formats).filter(|formats| !formats.is_empty());
        put(all, &["field_config"], formats.map(Value::Object));
        frames::write(&value, all);
    }

    /// Whether sites are named that are none.
    pub fn is_wrong(self) -> bool {
        let wrong = |value: &Value| frames::fault(value).is_some();
        self.form.value.with_untracked(wrong)
    }

    /// An input as it is sent: with what the retriever says of it, in its place.
    fn input(self, order: usize, one: Record) -> Value {
        let name = one.text("field_name");
        let mut schema = one.record("field_schema");
        if is_bare(&schema.0) {
            let known = self.known.with_value(|known| known.record(&name));
            schema = match is_bare(&known.0) {
                true => Record(json!({"type": kind(&one.text("input_type"))})),
                false => known,
            };
        }
        let mut sent = one.0;
        if sent.get("input_type").is_none() {
            sent["input_type"] = usual(&schema).into();
        }
        sent["field_schema"] = schema.0;
        sent["order"] = order.into();
        sent
    }

    /// Shows what was refused beside its field; places are those of the whole request.
    pub fn refused(self, notes: &[(String, String)]) {
        let formats = self.form.value.with_untracked(|value| {
            let all = items(&value["formats"]).into_iter();
            all.map(|one| one.text("field")).collect::<Vec<_>>()
        });
        let here = notes.iter().filter_map(|(place, what)| {
            let place = place.strip_prefix("display_config.")?;
            Some((in_form(place, &formats), what.clone()))
        });
        let own = self.form.value.with_untracked(frames::fault);
        self.form.faults.0.set(here.chain(own).collect());
    }
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |at, piece| at.get(*piece))
}

/// Whether there is nothing in it.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.values().all(is_bare),
        _ => false,
    }
}

/// Names as a form chooses from them.
fn chosen(names: &[String]) -> Value {
    let all = names.iter();
    all.map(|name| json!({"id": name, "name": name})).collect()
}

/// The formats by their fields.
fn formats(value: &Value, exposed: &[String]) -> Map<String, Value> {
    let mut all = Map::new();
    for one in items(value) {
        let field = one.text("field");
        if !exposed.contains(&field) {
            continue;
        }
        let mut config = one.0;
        if let Some(members) = config.as_object_mut() {
            members.shift_remove("field");
            if members.get("format_options").is_some_and(is_bare) {
                members.shift_remove("format_options");
            }
        }
        all.insert(field, config);
    }
    all
}

/// Where a place of the configuration is in the form: formats are named by their fields there, and listed here.
fn in_form(place: &str, formats: &[String]) -> String {
    let of = |rest: &str| {
        let all = formats.iter().enumerate().filter_map(|(n, field)| {
            let after = rest.strip_prefix(field.as_str())?;
            let is_it = after.is_empty() || after.starts_with('.');
            is_it.then(|| (field.len(), format!("formats.{n}{after}")))
        });
        // Names have dots, too: the longest one is meant.
        all.max_by_key(|(long, _)| *long).map(|(_, place)| place)
    };
    let named = place.strip_prefix("field_config.").and_then(of);
    let named = named.or_else(|| frames::in_form(place));
    named.unwrap_or_else(|| place.to_owned())
}

/// What an input is asked for as, where nobody said so.
fn usual(schema: &Record) -> &'static str {
    match schema.text("type").as_str() {
        "image" | "audio" | "video" | "pdf" | "excel" => "file",
        "number" | "integer" | "float" => "number",
        "boolean" => "boolean",
        "date" | "datetime" => "date",
        "array" => "multiselect",
        _ if schema.value("enum").is_some() => "select",
        _ => "text",
    }
}

/// What is taken by an input that the retriever does not name.
fn kind(input_type: &str) -> &str {
    match input_type {
        "multiselect" => "array",
        "number" | "date" | "datetime" | "boolean" | "image" => input_type,
        _ => "text",
    }
}

/// Leaves out what is still being written, so that the rest can be looked at meanwhile. Whether all was there.
pub fn finished(display: &mut Value) -> bool {
    let before = display.clone();
    for (member, needed) in NEEDED {
        let is_whole = |one: &Value| {
            let has = |name: &&str| {
                one[*name]
                    .as_str()
                    .is_some_and(|text| !text.trim().is_empty())
            };
            needed.iter().all(has)
        };
        if let Some(Value::Array(all)) = display.get_mut(member) {
            all.retain(is_whole);
        } else if display.get(member).is_some_and(|one| !is_whole(one)) {
            put(display, &[member], None);
        }
    }
    *display == before
}

/// Offers the fields that visitors see, as they change.
pub fn follow(parts: Parts, exposed: RwSignal<Vec<String>>) {
    let form = parts.form;
    Effect::new(move |before: Option<Vec<String>>| {
        let now = exposed.get();
        if before.is_some_and(|before| before != now) {
            form.choices.update(|all| all.0["fields"] = chosen(&now));
            form.shape.update(|n| *n += 1);
        }
        now
    });
}

pub fn inputs(parts: Parts) -> AnyView {
    let mut schema = named(INPUTS.3);
    // A retriever without a schema takes inputs of any name.
    let nameless = parts.known.with_value(|known| is_bare(&known.0));
    let field = "/properties/inputs/items/properties/field_name";
    let field = schema.0.pointer_mut(field).and_then(Value::as_object_mut);
    if let Some(field) = field.filter(|_| nameless) {
        field.shift_remove("of");
    }
    section(parts.form, INPUTS, schema)
}

pub fn results(parts: Parts) -> AnyView {
    section(parts.form, RESULTS, named(RESULTS.3))
}

pub fn texts(parts: Parts) -> AnyView {
    section(parts.form, TEXTS, named(TEXTS.3))
}

pub fn framing(parts: Parts) -> AnyView {
    section(parts.form, FRAMES, named(FRAMES.3))
}

/// What else search engines and links in messages are told: a part of the section about them.
pub fn seo(parts: Parts) -> AnyView {
    inside(parts.form, named("publish/seo"))
}

fn inside(form: Form, schema: Record) -> AnyView {
    let schema = StoredValue::new(schema);
    let inside = move || {
        form.shape.track();
        schema.with_value(|schema| fields(form, "", schema))
    };
    inside.into_any()
}

fn section(form: Form, (id, title, about, _): Section, schema: Record) -> AnyView {
    let about = view! { <p class="muted">{about}</p> };
    form::section(id, title, vec![about.into_any(), inside(form, schema)])
}

#[cfg(test)]
mod tests {
    use loupe_wire::DisplayConfig;

    use super::*;

    /// What the forms hold, after a change, as it is sent.
    fn sent(display: &Value, exposed: &[&str], change: impl FnOnce(&mut Value)) -> Value {
        let retriever = json!({"input_schema": {
            "query": {"type": "text"}, "kind": {"type": "string", "enum": ["a", "b"]}, "photo": {"type": "image"},
        }});
        let parts = Parts::new(&Record(display.clone()), &Record(retriever));
        parts.form.value.update(change);
        let exposed: Vec<String> = exposed.iter().map(|one| (*one).to_owned()).collect();
        let mut all = display.clone();
        parts.put_into(&mut all, &exposed);
        all
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was() {
        let owner = Owner::new();
        owner.set();
        let display = json!({
            "title": "Films", "exposed_fields": ["year"],
            "inputs": [{"field_name": "query", "field_schema": {"type": "text", "examples": ["x"]}, "input_type": "text", "label": "Ask",
                "required": false, "order": 0}],
            "field_config": {"year": {"format": "number", "format_options": {"label": "Year", "lazy_load": true}}},
            "markdowns": [{"title": "About", "content": "# Films"}], "extensions": {"markdowns": "tabs", "facets": ["year"], "progress": true},
            "custom_cta": {"label": "More", "markdown_content": "text"},
            "external_links": [{"name": "Us", "url": "https://example.com/"}], "logo_url": "https://example.com/logo.svg",
            "components": {"show_hero": false, "show_search": false, "result_card": {"layout": "horizontal", "show_score": true, "modal_fields": []}},
            "field_mappings": {"title": "year", "subtitle": "plot"},
            "seo": {"meta_title": "Old films", "keywords": ["film"], "canonical_url": "https://example.com/films", "locale": "de_DE"},
        });
        assert_eq!(sent(&display, &["year"], |_| ()), display);
        serde_json::from_value::<DisplayConfig>(display).expect("a configuration");
    }

    #[test]
    fn what_is_written_is_what_the_server_takes() {
        let owner = Owner::new();
        owner.set();
        let bare = json!({"title": "Films", "exposed_fields": ["year", "plot"]});
        let made = sent(&bare, &["year", "plot"], |form| {
            form["inputs"] = json!([
                {"field_name": "kind", "label": "Kind", "field_schema": {}},
                {"field_name": "photo", "label": "Photo"},
                {"field_name": "query", "label": "Ask", "input_type": "text", "suggestions": ["lions, tigers"]},
            ]);
            form["formats"] = json!([
                {"field": "year", "format": "date", "format_options": {"date_format": "YYYY"}},
                {"field": "plot", "format": "text", "format_options": {}}, {"field": "gone", "format": "text"}, {"format": "text"},
            ]);
            form["custom_cta"] = json!({});
        });
        assert_eq!(made["inputs"][0]["input_type"], "select");
        assert_eq!(made["inputs"][0]["field_schema"]["enum"], json!(["a", "b"]));
        assert_eq!(made["inputs"][1]["input_type"], "file");
        assert_eq!(made["inputs"][2]["order"], 2);
        let formats = json!({"year": {"format": "date", "format_options": {"date_format": "YYYY"}}, "plot": {"format": "text"}});
        assert_eq!(made["field_config"], formats);
        assert!(made.get("custom_cta").is_none() && made.get("components").is_none());
        serde_json::from_value::<DisplayConfig>(made).expect("a configuration");
        // What is taken away is gone, and a page without inputs says so.
        let had = json!({"title": "x", "exposed_fields": ["year"], "inputs": [{"field_name": "query"}], "field_config": {"year": {"format": "date"}}});
        let left = sent(&had, &[], |form| form["inputs"] = Value::Null);
        assert_eq!(left["inputs"], json!([]));
        assert!(left.get("field_config").is_none());
    }

    #[test]
    fn places_and_words_for_search_engines_are_set_and_taken_away() {
        let owner = Owner::new();
        owner.set();
        let display = json!({
            "title": "x", "inputs": [], "exposed_fields": ["year"], "field_mappings": {"title": "year"},
            "seo": {"author": "Somebody", "structured_data": {"type": "Dataset"}},
        });
        let made = sent(&display, &["year"], |form| {
            form["field_mappings"]["badge"] = "year".into();
            form["seo"]["keywords"] = json!(["film", "silent"]);
            form["seo"]["canonical_url"] = "https://example.com/films".into();
        });
        let mappings = json!({"title": "year", "badge": "year"});
        assert_eq!(made["field_mappings"], mappings);
        assert_eq!(made["seo"]["keywords"], json!(["film", "silent"]));
        assert_eq!(made["seo"]["author"], "Somebody");
        let read = serde_json::from_value::<DisplayConfig>(made).expect("a configuration");
        let seo = read.seo.expect("what search engines are told");
        assert_eq!(
            seo.canonical_url.as_deref(),
            Some("https://example.com/films")
        );
        // What is cleared is left out, or something else would be told in its place.
        let bare = sent(&display, &["year"], |form| {
            form["field_mappings"] = json!({});
            form["seo"] =
                json!({"author": "Somebody", "structured_data": {"additional_properties": {}}});
        });
        assert!(bare.get("field_mappings").is_none());
        assert_eq!(bare["seo"], json!({"author": "Somebody"}));
    }

    #[test]
    fn what_is_half_written_is_not_shown_yet() {
        let mut display = json!({
            "markdowns": [{"title": "About"}, {"title": "Help", "content": "Ask."}], "inputs": [{"label": " ", "field_name": "q"}],
            "custom_cta": {"label": "More"}, "title": "x",
        });
        assert!(!finished(&mut display));
        assert!(finished(&mut display.clone()));
        assert_eq!(
            display,
            json!({"markdowns": [{"title": "Help", "content": "Ask."}], "inputs": [], "title": "x"})
        );
    }

    #[test]
    fn a_refusal_is_told_where_it_was_written() {
        let formats = ["title".to_owned(), "title.de".to_owned()];
        let options = in_form("field_config.title.de.format_options.decimals", &formats);
        assert_eq!(options, "formats.1.format_options.decimals");
        assert_eq!(in_form("field_config.title", &formats), "formats.0");
        assert_eq!(in_form("inputs.0.label", &formats), "inputs.0.label");
        for (form, member) in [
            ("publish/inputs", "inputs"),
            ("publish/results", "formats"),
            ("publish/texts", "markdowns"),
            ("publish/frames", "sites"),
        ] {
            let fields = named(form).record("properties");
            assert_eq!(fields.record(member).text("type"), "array", "{form}");
        }
        let seo = named("publish/seo").record("properties").record("seo");
        let fields = seo.record("properties").members();
        let whole = loupe_wire::SEOConfig {
            og_image_alt: Some("x".into()),
            keywords: vec!["x".into()],
            canonical_url: Some("x".into()),
            author: Some("x".into()),
            twitter_site: Some("x".into()),
            twitter_creator: Some("x".into()),
            favicon_url: Some("x".into()),
            logo_url: Some("x".into()),
            structured_data: Some(loupe_wire::StructuredDataConfig::default()),
            ..Default::default()
        };
        let (whole, usual) = (json!(whole), json!(loupe_wire::SEOConfig::default()));
        for (name, field) in fields {
            assert!(
                whole.get(&name).is_some(),
                "{name} is a field of the interface"
            );
            let default = field.value("default");
            assert_eq!(
                default,
                usual.get(&name),
                "{name} has the default of the interface"
            );
        }
    }
}
