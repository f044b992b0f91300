//! Templates of owners' own: which fields stand where on a card and on an item's page, in which character, as data at
//! `display_config.extensions.template`. Names of fields and words of fixed lists are all there is to it: no markup, no style.

use loupe_wire::{DisplayConfig, Object, Value};

use super::look::{Ratio, Template};

/// Fields of one place on a card, and of one on an item's page.
const MOST_ON_CARD: usize = 8;
const MOST_ON_ITEM: usize = 40;

const CHARACTERS: [(&str, Template); 4] = [
    ("plain", Template::Custom),
    ("portrait-gallery", Template::PortraitGallery),
    ("media-search", Template::MediaSearch),
    ("document-search", Template::DocumentSearch),
];

const SIDES: [(&str, Side); 3] = [
    ("above", Side::Above),
    ("beside", Side::Beside),
    ("none", Side::Nowhere),
];

const ON_CARD: [&str; 6] = ["badge", "eyebrow", "heading", "line", "text", "facts"];
const ON_ITEM: [&str; 4] = ["eyebrow", "line", "text", "facts"];

/// Where the picture of a card stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Side {
    /// Above the words.
    #[default]
    Above,
    /// Beside the words.
    Beside,
    /// There is none.
    Nowhere,
}

/// A template of an owner's own.
#[derive(Debug, Clone)]
pub struct Own {
    /// The built-in template whose character it has.
    pub character: Template,
    /// Where the picture of a card stands.
    pub side: Side,
    /// Its proportions.
    pub ratio: Option<Ratio>,
    /// The field with its address.
    pub picture: Option<String>,
    /// The card; as without a template where nothing is said.
    pub card: Option<Places>,
    /// The page of an item; as without a template where nothing is said.
    pub item: Option<Places>,
}

/// Which fields stand in which place.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Over the picture: the first that a document has.
    pub badge: Vec<String>,
    /// Small, above the heading.
    pub eyebrow: Vec<String>,
    /// The title: the first that a document has.
    pub heading: Vec<String>,
    /// Beneath the heading.
    pub line: Vec<String>,
    /// Running text: on a card the first that a document has, on an item's page all of them.
    pub text: Vec<String>,
    /// Particulars, each with its label.
    pub facts: Vec<String>,
}

/// What is wrong with a template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// Members that lead there, from the display configuration on.
    pub path: Vec<String>,
    /// A sentence about it.
    pub message: String,
}

/// The built-in template of a name; none for whatever else owners call theirs.
pub fn built_in(name: &str) -> Option<Template> {
    let mut known = CHARACTERS.into_iter().skip(1);
    known.find(|(word, _)| *word == name).map(|(_, is)| is)
}

/// The owner's own template, where `template_type` names one that is not built in.
pub fn own(display: &DisplayConfig) -> Option<Own> {
    let name = display.template_type.as_deref()?;
    let written = written(display).filter(|_| !name.is_empty() && built_in(name).is_none())?;
    Reader::of(display).read(written).ok()
}

/// What is wrong with the template that a configuration holds; nothing where it holds none.
pub fn faults(display: &DisplayConfig) -> Vec<TemplateFault> {
    let read = written(display).map(|template| Reader::of(display).read(template));
    read.and_then(Result::err).unwrap_or_default()
}

fn written(display: &DisplayConfig) -> Option<&Value> {
    let found = display.extensions.as_ref()?.get("template")?;
    Some(found).filter(|found| !found.is_null())
}

struct Reader<'a> {
    exposed: &'a [String],
    faults: Vec<TemplateFault>,
}

impl<'a> Reader<'a> {
    fn of(display: &'a DisplayConfig) -> Self {
        Self {
            exposed: &display.exposed_fields,
            faults: Vec::new(),
        }
    }

    fn read(mut self, template: &Value) -> Result<Own, Vec<TemplateFault>> {
        let known = ["character", "picture", "card", "item"];
        let all = self.members(template, &[], &known).unwrap_or_default();
        let character = self.word(&all, &["character"], &CHARACTERS);
        let picture = all
            .get("picture")
            .and_then(|picture| self.members(picture, &["picture"], &["field", "place", "ratio"]))
            .unwrap_or_default();
        let own = Own {
            character: character.unwrap_or(Template::Custom),
            side: self
                .word(&picture, &["picture", "place"], &SIDES)
                .unwrap_or_default(),
            ratio: self.ratio(&picture),
            picture: picture
                .get("field")
                .and_then(|field| self.field(field, &["picture", "field"])),
            card: self.places(&all, "card", &ON_CARD, MOST_ON_CARD),
            item: self.places(&all, "item", &ON_ITEM, MOST_ON_ITEM),
        };
        if self.faults.is_empty() {
            return Ok(own);
        }
        Err(self.faults)
    }

    fn fault(&mut self, path: &[&str], message: impl Into<String>) {
        let whole = ["extensions", "template"].iter().chain(path);
        self.faults.push(TemplateFault {
            path: whole.map(|piece| (*piece).to_owned()).collect(),
            message: message.into(),
        });
    }

    /// The members of an object that has none but these.
    fn members(&mut self, value: &Value, path: &[&str], known: &[&str]) -> Option<Object> {
        let Some(members) = value.as_object() else {
            self.fault(path, format!("an object with {}", known.join(", ")));
            return None;
        };
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let message = format!("not known here: {} are", known.join(", "));
            self.fault(&[path, &[name.as_str()]].concat(), message);
        }
        Some(members.clone())
    }

    fn word<T: Copy>(&mut self, of: &Object, path: &[&str], words: &[(&str, T)]) -> Option<T> {
        let given = of.get(*path.last()?)?;
        let found = words.iter().find(|(word, _)| given == word);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault(path, format!("one of {}", words.join(", ")));
        }
        found.map(|(_, is)| *is)
    }

    fn ratio(&mut self, picture: &Object) -> Option<Ratio> {
        let given = picture.get("ratio")?;
        let ratio = given.as_str().and_then(Ratio::parse);
        if ratio.is_none() {
            self.fault(&["picture", "ratio"], "width/height, such as 2/3");
        }
        ratio
    }

    fn field(&mut self, given: &Value, path: &[&str]) -> Option<String> {
        let name = given.as_str().unwrap_or_default();
        if self.exposed.iter().any(|field| field == name) {
            return Some(name.to_owned());
        }
        self.fault(path, "the name of one of exposed_fields");
        None
    }

    /// The places of a card or an item's page. A field stands in one of them.
    fn places(&mut self, all: &Object, view: &str, known: &[&str], most: usize) -> Option<Places> {
        let given = self.members(all.get(view)?, &[view], known)?;
        let mut places = Places::default();
        let mut taken: Vec<String> = Vec::new();
        for name in known.iter().copied() {
            let Some(fields) = given.get(name) else {
                continue;
            };
            let fields = self.fields(fields, &[view, name], most);
            for field in &fields {
                if taken.contains(field) {
                    self.fault(&[view, name], format!("'{field}' stands there already"));
                }
            }
            taken.extend(fields.iter().cloned());
            *places.at(name) = fields;
        }
        Some(places)
    }

    fn fields(&mut self, given: &Value, path: &[&str], most: usize) -> Vec<String> {
        let listed = given.as_array().filter(|fields| fields.len() <= most);
        let Some(listed) = listed else {
            self.fault(path, format!("a list of at most {most} fields"));
            return Vec::new();
        };
        let mut fields = Vec::new();
        for (number, field) in listed.iter().enumerate() {
            let number = number.to_string();
            let at = [path, &[number.as_str()]].concat();
            fields.extend(self.field(field, &at));
        }
        fields
    }
}

impl Places {
    fn at(&mut self, name: &str) -> &mut Vec<String> {
        match name {
            "badge" => &mut self.badge,
            "eyebrow" => &mut self.eyebrow,
            "heading" => &mut self.heading,
            "line" => &mut self.line,
            "text" => &mut self.text,
            _ => &mut self.facts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn display(template: Value) -> DisplayConfig {
        DisplayConfig {
            template_type: Some("shop-window".into()),
            exposed_fields: vec!["title".into(), "year".into(), "poster".into()],
            extensions: json!({ "template": template }).as_object().cloned(),
            ..DisplayConfig::default()
        }
    }

    #[test]
    fn a_template_is_names_of_fields_in_places() {
        let written = display(json!({
            "character": "media-search", "picture": {"field": "poster", "place": "beside", "ratio": "2/3"},
            "card": {"heading": ["title"], "line": ["year"]},
        }));
        assert!(faults(&written).is_empty());
        let own = own(&written).unwrap();
        assert_eq!(
            (own.character, own.side, own.ratio),
            (Template::MediaSearch, Side::Beside, Some(Ratio(2, 3)))
        );
        assert_eq!(own.card.unwrap().line, ["year"]);
        assert!(own.item.is_none());
    }

    #[test]
    fn a_built_in_name_is_the_built_in_template() {
        let mut named = display(json!({"character": "media-search"}));
        named.template_type = Some("document-search".into());
        assert!(own(&named).is_none());
        named.template_type = None;
        assert!(own(&named).is_none());
    }

    #[test]
    fn nothing_else_is_a_template_and_each_fault_says_where() {
        let places = |template: Value| -> Vec<String> {
            let found = faults(&display(template)).into_iter();
            found.map(|fault| fault.path[2..].join(".")).collect()
        };
        assert_eq!(places(json!("<b>")), [""]);
        assert_eq!(
            places(json!({"css": "*{}", "character": "loud"})),
            ["css", "character"]
        );
        assert_eq!(
            places(json!({"picture": {"field": "salary", "place": 1, "ratio": "1/0"}})),
            ["picture.place", "picture.ratio", "picture.field"]
        );
        assert_eq!(
            places(
                json!({"card": {"heading": ["title", "salary"], "line": ["title"], "html": []}, "item": {"badge": []}})
            ),
            ["card.html", "card.heading.1", "card.line", "item.badge"]
        );
        assert_eq!(places(json!({"item": {"text": "title"}})), ["item.text"]);
    }
}
