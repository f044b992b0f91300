//! A page being written: what the form changes of its configuration. What it does not know stays as it is.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    access::Access,
    own::{Own, is_own},
    parts::Parts,
    robots,
    theme::Theme,
};
use crate::record::Record;

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
    pub theme: Theme,
    pub arrangement: RwSignal<String>,
    pub columns: RwSignal<String>,
    /// Between results.
    pub gap: RwSignal<String>,
    /// Whether results take the whole width of the window.
    pub wide: RwSignal<bool>,
    /// A picture with what it is, as addresses of the scheme `data` have it; empty without one.
    pub icon: RwSignal<String>,
    /// The one that the page was published with beside its configuration.
    own_icon: StoredValue<String>,
    pub hero: RwSignal<bool>,
    pub filters: RwSignal<bool>,
    /// The fields to filter by; none leaves the choice to the server.
    pub filtered: RwSignal<Vec<String>>,
    pub meta_title: RwSignal<String>,
    pub meta_text: RwSignal<String>,
    pub image: RwSignal<String>,
    /// Whether search engines may list it.
    pub listed: RwSignal<bool>,
    /// What lists of pages know it by: words with commas between them.
    pub tags: RwSignal<String>,
    pub category: RwSignal<String>,
    pub access: Access,
    /// What visitors are asked, texts around, formats of fields.
    pub parts: Parts,
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
        let (seo, parts) = (base.record("seo"), base.record("components"));
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
        let layout = base.record("layout");
        let meta_text = own("meta_description", "description", 160);
        if is_made(&meta_text.get_untracked(), &base) {
            meta_text.set(String::new());
        }
        Self {
            name: RwSignal::new(name),
            title: text(&base, "title"),
            description: text(&base, "description"),
            exposed: RwSignal::new(base.strings("exposed_fields")),
            template: text(&base, "template_type"),
            own: Own::new(&base),
            theme: Theme::new(&base),
            arrangement: text(&layout, "mode"),
            columns: RwSignal::new(layout.opt("columns").unwrap_or_default()),
            gap: RwSignal::new(layout.opt("gap").unwrap_or_else(|| "16px".to_owned())),
            wide: RwSignal::new(layout.flag("full_width")),
            icon: match base.value("icon_base64") {
                Some(_) => text(&base, "icon_base64"),
                None => text(page, "icon_base64"),
            },
            own_icon: StoredValue::new(page.text("icon_base64")),
            hero: RwSignal::new(parts.value("show_hero").is_none() || parts.flag("show_hero")),
            filters: RwSignal::new(parts.flag("show_filters")),
            filtered: RwSignal::new(base.record("extensions").strings("facets")),
            meta_title: own("meta_title", "title", 60),
            meta_text,
            image: text(&seo, "og_image_url"),
            listed: RwSignal::new(robots::is_listed(&seo.text("robots"))),
            tags: RwSignal::new(page.strings("tags").join(", ")),
            category: text(page, "category"),
            access: Access::new(page),
            parts: Parts::new(&without_tags(&base, retriever, page), retriever),
            base: StoredValue::new(base.0),
        }
    }

    /// The icon that the configuration names: none where it is the page's own, an empty one where that was taken away.
    fn icon(self) -> Option<String> {
        let (icon, own) = (self.icon.get(), self.own_icon.get_value());
        (icon != own).then_some(icon)
    }

    /// The configuration as it would be published.
    pub fn display(self) -> Value {
        let mut all = self.base.get_value();
        if let Some(members) = all.as_object_mut() {
            members.shift_remove("retriever_config");
        }
        let own = self.own_template(&all);
        self.theme.put_into(&mut all);
        self.parts.put_into(&mut all, &self.exposed.get());
        let text = |value: RwSignal<String>| Some(value.get()).filter(|text| !text.is_empty());
        let mut put = |path: &[&str], value: Option<Value>| put(&mut all, path, value);
        put(&["title"], Some(self.title.get().into()));
        put(&["description"], text(self.description).map(Value::from));
        put(&["exposed_fields"], Some(json!(self.exposed.get())));
        put(&["template_type"], text(self.template).map(Value::from));
        put(&["extensions", "template"], own);
        put(&["icon_base64"], self.icon().map(Value::from));
        match text(self.arrangement) {
            None => put(&["layout"], None),
            Some(mode) => {
                put(&["layout", "mode"], Some(mode.into()));
                // What another member says of it would stand beside the choice made here.
                put(&["components", "result_layout"], None);
                let columns = self.columns.get().parse::<i64>().ok();
                put(&["layout", "columns"], columns.map(Value::from));
                put(&["layout", "gap"], text(self.gap).map(Value::from));
                put(&["layout", "full_width"], Some(self.wide.get().into()));
            }
        }
        put(&["components", "show_hero"], Some(self.hero.get().into()));
        let filters = self.filters.get();
        put(&["components", "show_filters"], Some(filters.into()));
        if filters {
            let mut fields = self.filtered.get();
            fields.retain(|field| self.exposed.with(|exposed| exposed.contains(field)));
            // An empty list is no filter at all, none leaves the choice to the server.
            let is_none = self
                .base
                .with_value(|base| base["extensions"]["facets"] == json!([]));
            let fields = (is_none || !fields.is_empty()).then(|| json!(fields));
            put(&["extensions", "facets"], fields);
        }
        put(
            &["seo", "meta_title"],
            text(self.meta_title).map(Value::from),
        );
        put(
            &["seo", "meta_description"],
            text(self.meta_text).map(Value::from),
        );
        put(&["seo", "og_image_url"], text(self.image).map(Value::from));
        self.tell_robots(&mut all);
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
        self.file_under(&mut body);
        body
    }

    /// What changing a page sends.
    pub fn change(self) -> Value {
        let mut body = json!({"display_config": self.display()});
        self.file_under(&mut body);
        body
    }

    /// Whoever leaves the box alone keeps what robots were told, in words that the form does not know.
    fn tell_robots(self, all: &mut Value) {
        let said = self
            .base
            .with_value(|base| Record(base["seo"].clone()).text("robots"));
        let listed = self.listed.get();
        if listed != robots::is_listed(&said) {
            let told = robots::told(&said, listed);
            put(all, &["seo", "robots"], told.map(Value::from));
        }
    }

    /// Puts the tags and the category into a request; empty ones take away what the page had.
    fn file_under(self, body: &mut Value) {
        let tags = self.tags.get();
        let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        body["tags"] = tags.collect::<Vec<_>>().into();
        body["category"] = self.category.get().trim().into();
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

/// Whether a text is what publishing writes where nobody has written one.
fn is_made(text: &str, base: &Record) -> bool {
    let made = format!("Search {}", base.text("title"));
    let is_made = text == made || text.starts_with(&format!("{made}: "));
    base.text("description").is_empty() && is_made
}

/// A configuration without the keywords that publishing made of tags: they follow the tags.
fn without_tags(base: &Record, retriever: &Record, page: &Record) -> Record {
    let mut tags = retriever.strings("tags");
    let own = page.strings("tags").into_iter();
    let own: Vec<String> = own.filter(|tag| !tags.contains(tag)).collect();
    tags.extend(own);
    let mut base = base.clone();
    if base.record("seo").strings("keywords") == tags {
        put(&mut base.0, &["seo", "keywords"], None);
    }
    base
}

/// Sets a member of members, or takes it away.
pub fn put(all: &mut Value, path: &[&str], value: Option<Value>) {
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
mod tests;
