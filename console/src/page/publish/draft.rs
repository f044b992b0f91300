//! A page being written: what the form changes of its configuration. What it does not know stays as it is.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::own::{Own, is_own};
use crate::record::Record;

/// What a page has for colours when its owner chose none: it follows the light or dark of whoever looks.
const GROUND: &str = "#ffffff";
const INK: &str = "#374151";
const PRIMARY: &str = "#007aff";
const SYSTEM: &str = "system-ui, -apple-system, sans-serif";

#[derive(Clone, Copy)]
pub struct Draft {
    /// The configuration that the form began with.
    base: StoredValue<Value>,
    /// The name in the address.
    pub name: RwSignal<String>,
    pub title: RwSignal<String>,
    pub description: RwSignal<String>,
    pub exposed: RwSignal<Vec<String>>,
    pub template: RwSignal<String>,
    /// What stands where, when the template is the owner's own.
    pub own: Own,
    pub primary: RwSignal<String>,
    /// Whether the page has a ground and a text of its own in place of light and dark.
    pub fixed: RwSignal<bool>,
    pub ground: RwSignal<String>,
    pub ink: RwSignal<String>,
    pub font: RwSignal<String>,
    pub radius: RwSignal<String>,
    pub card: RwSignal<String>,
    pub arrangement: RwSignal<String>,
    pub columns: RwSignal<String>,
    pub hero: RwSignal<bool>,
    pub filters: RwSignal<bool>,
    pub meta_title: RwSignal<String>,
    pub meta_text: RwSignal<String>,
    pub image: RwSignal<String>,
    /// Whether search engines may list it.
    pub listed: RwSignal<bool>,
}

impl Draft {
    /// Of what is published, or of the retriever and the fields that its documents have.
    pub fn new(retriever: &Record, page: &Record, chosen: Vec<String>) -> Self {
        let published = page.value("public_name").is_some();
        let base = match published {
            true => page.record("display_config"),
            // Without inputs of its own the page asks for those of the retriever.
            false => Record(json!({
                "title": retriever.text("retriever_name"), "description": retriever.text("description"),
                "inputs": [], "exposed_fields": chosen,
            })),
        };
        let name = match published {
            true => page.text("public_name"),
            false => slug(&retriever.text("retriever_name")),
        };
        let (theme, seo) = (base.record("theme"), base.record("seo"));
        let parts = base.record("components");
        let color = |name: &str, usual: &str| {
            let given = theme.text(name);
            RwSignal::new(hex(&given).unwrap_or_else(|| usual.to_owned()))
        };
        let text = |of: &Record, name: &str| RwSignal::new(of.text(name));
        // What publishing filled in from the title follows the title.
        let own = |name: &str, from: &str, most: usize| {
            let (given, from) = (seo.text(name), base.text(from));
            let filled = from.chars().take(most).collect::<String>();
            RwSignal::new(if given == filled {
                String::new()
            } else {
                given
            })
        };
        let (ground, ink) = (color("background_color", GROUND), color("text_color", INK));
        let auto = base.record("extensions").text("color_scheme") == "auto";
        let fixed = base.value("theme").is_some() && !auto;
        let layout = base.record("layout");
        Self {
            name: RwSignal::new(name),
            title: text(&base, "title"),
            description: text(&base, "description"),
            exposed: RwSignal::new(base.strings("exposed_fields")),
            template: text(&base, "template_type"),
            own: Own::new(&base),
            primary: color("primary_color", PRIMARY),
            fixed: RwSignal::new(fixed),
            ground,
            ink,
            font: RwSignal::new(
                theme
                    .opt("font_family")
                    .filter(|font| font != SYSTEM)
                    .unwrap_or_default(),
            ),
            radius: text(&theme, "border_radius"),
            card: text(&theme, "card_style"),
            arrangement: text(&layout, "mode"),
            columns: RwSignal::new(layout.opt("columns").unwrap_or_else(|| "3".to_owned())),
            hero: RwSignal::new(parts.value("show_hero").is_none() || parts.flag("show_hero")),
            filters: RwSignal::new(parts.flag("show_filters")),
            meta_title: own("meta_title", "title", 60),
            meta_text: own("meta_description", "description", 160),
            image: text(&seo, "og_image_url"),
            listed: RwSignal::new(!seo.text("robots").contains("noindex")),
            base: StoredValue::new(base.0),
        }
    }

    /// The configuration as it would be published.
    pub fn display(self) -> Value {
        let mut all = self.base.get_value();
        if let Some(members) = all.as_object_mut() {
            members.shift_remove("retriever_config");
        }
        let own = self.own_template(&all);
        let text = |value: RwSignal<String>| Some(value.get()).filter(|text| !text.is_empty());
        let mut put = |path: &[&str], value: Option<Value>| put(&mut all, path, value);
        put(&["title"], Some(self.title.get().into()));
        put(&["description"], text(self.description).map(Value::from));
        put(&["exposed_fields"], Some(json!(self.exposed.get())));
        put(&["template_type"], text(self.template).map(Value::from));
        put(&["extensions", "template"], own);
        let fixed = self.fixed.get();
        let scheme = (!fixed).then(|| "auto".into());
        put(&["extensions", "color_scheme"], scheme);
        put(&["theme", "primary_color"], Some(self.primary.get().into()));
        let (ground, ink) = (self.ground.get(), self.ink.get());
        put(&["theme", "background_color"], Some(ground.into()));
        put(&["theme", "text_color"], Some(ink.into()));
        put(&["theme", "font_family"], text(self.font).map(Value::from));
        put(
            &["theme", "border_radius"],
            text(self.radius).map(Value::from),
        );
        put(&["theme", "card_style"], text(self.card).map(Value::from));
        match text(self.arrangement) {
            None => put(&["layout"], None),
            Some(mode) => {
                put(&["layout", "mode"], Some(mode.into()));
                // What another member says of it would stand beside the choice made here.
                put(&["components", "result_layout"], None);
                let columns = self.columns.get().parse::<i64>().ok();
                put(&["layout", "columns"], columns.map(Value::from));
            }
        }
        put(&["components", "show_hero"], Some(self.hero.get().into()));
        put(
            &["components", "show_filters"],
            Some(self.filters.get().into()),
        );
        put(
            &["seo", "meta_title"],
            text(self.meta_title).map(Value::from),
        );
        put(
            &["seo", "meta_description"],
            text(self.meta_text).map(Value::from),
        );
        put(&["seo", "og_image_url"], text(self.image).map(Value::from));
        let hidden = (!self.listed.get()).then(|| "noindex, nofollow".into());
        put(&["seo", "robots"], hidden);
        all
    }

    /// The template of the owner's own, where the page has one or gets one now. A name alone is none: such a page looks as
    /// pages without a template do, and stays so.
    fn own_template(self, before: &Value) -> Option<Value> {
        let template = self.template.get();
        let has = before["extensions"].get("template").is_some();
        let named = before["template_type"].as_str() == Some(template.as_str());
        let writes = is_own(&template) && (has || !named || self.own.is_changed());
        writes.then(|| self.own.value(&self.exposed.get()))
    }

    /// What publishing for the first time sends, and what looking at it before does.
    pub fn body(self) -> Value {
        let mut body = json!({"display_name": self.title.get(), "display_config": self.display()});
        let description = self.description.get();
        if !description.is_empty() {
            body["description"] = description.into();
        }
        body
    }

    /// The title and the text that search engines and cards show.
    pub fn told(self) -> (String, String) {
        let or = |own: RwSignal<String>, usual: RwSignal<String>, most: usize| {
            let text = Some(own.get()).filter(|text| !text.is_empty());
            let text = text.unwrap_or_else(|| usual.get());
            text.chars().take(most).collect::<String>()
        };
        (
            or(self.meta_title, self.title, 60),
            or(self.meta_text, self.description, 160),
        )
    }
}

/// Sets a member of members, or takes it away.
fn put(all: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut at = all;
    for parent in parents {
        if at.get(parent).is_none_or(|found| !found.is_object()) {
            if value.is_none() {
                return;
            }
            at[*parent] = json!({});
        }
        at = &mut at[*parent];
    }
    match (value, at.as_object_mut()) {
        (Some(value), Some(members)) => drop(members.insert((*last).to_owned(), value)),
        (None, Some(members)) => drop(members.shift_remove(*last)),
        _ => {}
    }
}

/// A colour as the browser's own chooser takes it.
fn hex(color: &str) -> Option<String> {
    let color = color.trim().to_ascii_lowercase();
    let digits = color.strip_prefix('#')?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match digits.len() {
        3 => Some(
            digits
                .chars()
                .fold("#".to_owned(), |all, one| format!("{all}{one}{one}")),
        ),
        6 => Some(format!("#{digits}")),
        _ => None,
    }
}

/// `My films` as `my-films`.
pub fn slug(name: &str) -> String {
    let mapped: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    mapped
        .split('-')
        .filter(|piece| !piece.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .take(50)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_addresses() {
        assert_eq!(slug("My  Films!"), "my-films");
    }

    #[test]
    fn what_the_form_does_not_know_stays() {
        let owner = Owner::new();
        owner.set();
        let page = Record(json!({"public_name": "films", "display_config": {
            "title": "Films", "inputs": [], "exposed_fields": ["title"], "custom_cta": {"label": "More"},
            "theme": {"primary_color": "#A0B", "muted_color": "#888888"}, "extensions": {"color_scheme": "auto"},
            "seo": {"meta_title": "Films", "author": "Somebody"}, "retriever_config": {"stages": []},
        }}));
        let draft = Draft::new(&Record::default(), &page, Vec::new());
        assert_eq!(
            (draft.primary.get(), draft.fixed.get()),
            ("#aa00bb".to_owned(), false)
        );
        draft.title.set("New films".into());
        draft.listed.set(false);
        let display = draft.display();
        assert_eq!(display["custom_cta"]["label"], "More");
        assert_eq!(display["theme"]["muted_color"], "#888888");
        assert_eq!(
            display["seo"],
            json!({"author": "Somebody", "robots": "noindex, nofollow"})
        );
        assert_eq!(draft.told().0, "New films");
        assert!(display.get("retriever_config").is_none() && display.get("layout").is_none());
        draft.template.set("custom".into());
        let own = draft.display()["extensions"]["template"].clone();
        assert_eq!(own["card"], json!({"heading": ["title"]}));
        draft.template.set(String::new());
        assert!(draft.display()["extensions"].get("template").is_none());
    }

    #[test]
    fn a_template_that_is_a_name_alone_stays_one_until_something_is_chosen() {
        let owner = Owner::new();
        owner.set();
        let page = Record(json!({"public_name": "films", "display_config": {
            "title": "Films", "exposed_fields": ["title"], "template_type": "shop-window",
        }}));
        let draft = Draft::new(&Record::default(), &page, Vec::new());
        draft.title.set("New films".into());
        let display = draft.display();
        assert_eq!(display["template_type"], "shop-window");
        assert!(
            display["extensions"].get("template").is_none(),
            "{display:#}"
        );
        draft.own.character.set("media-search".into());
        let own = draft.display()["extensions"]["template"].clone();
        assert_eq!(own["character"], "media-search");
        assert_eq!(own["card"], json!({"heading": ["title"]}));
    }
}
