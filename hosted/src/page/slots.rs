//! Which field fills which place: what the owner says, else what the names of fields suggest.

use loupe_wire::{DisplayConfig, FieldFormatType, ResultCardProperties};

use super::look::Template;
use super::template::Own;

/// Fields that say where in a recording a result begins, or how long it is: the first that a document has.
const MARKS: [&str; 4] = [
    "start_time",
    "duration",
    "duration_seconds",
    "length_seconds",
];

/// Fields that say when something was made.
const DATES: [&str; 13] = [
    "date",
    "published_at",
    "published",
    "publish_date",
    "published_date",
    "release_date",
    "recorded_at",
    "recorded_on",
    "taken_at",
    "uploaded_at",
    "upload_date",
    "created_at",
    "year",
];

/// Which field fills which place.
#[derive(Debug, Clone, Default)]
pub struct Slots {
    pub title: Vec<String>,
    pub text: Vec<String>,
    pub thumbnail: Option<String>,
    pub badge: Vec<String>,
    pub link: Vec<String>,
    /// Particulars of a card.
    pub card: Vec<String>,
    /// Above and beneath the heading of a card.
    pub around: Around,
    /// Particulars of an item's page.
    pub item: Vec<String>,
    /// Above and beneath the heading of an item's page.
    pub around_item: Around,
    /// Running texts of an item's page, and how many of them it shows.
    pub reading: Vec<String>,
    pub texts: usize,
}

/// Fields above and beneath a heading.
#[derive(Debug, Clone, Default)]
pub struct Around {
    pub eyebrow: Vec<String>,
    pub line: Vec<String>,
}

impl Slots {
    /// Places of a page.
    pub fn of(display: &DisplayConfig, own: Option<&Own>, template: Template) -> Self {
        let fields = Fields::of(display);
        let mut text = fields.texts();
        let title = fields.title(&text);
        text.retain(|name| !title.contains(name));
        let mut slots = Self {
            title,
            reading: text.clone(),
            texts: 1,
            text,
            thumbnail: fields.thumbnail(),
            badge: fields.badge(),
            link: fields.links(),
            card: fields.ordered(fields.chosen()),
            item: fields.ordered(fields.card.and_then(|card| card.modal_fields.clone())),
            ..Self::default()
        };
        slots.befit(template, &fields);
        if let Some(own) = own {
            slots.follow(own);
        }
        slots
    }

    /// What the character of a template shows of each result, where the owner names nothing else: when it is heard or seen and
    /// how long it lasts, when it was made, on which page it stands.
    fn befit(&mut self, template: Template, fields: &Fields<'_>) {
        match template {
            Template::MediaSearch => {
                if self.badge.is_empty() {
                    self.badge = fields.named(&MARKS);
                }
                self.around.line = fields.date().into_iter().collect();
            }
            Template::DocumentSearch => self.around.line = fields.named(&["page_number"]),
            Template::PortraitGallery | Template::Custom => {}
        }
        // Each in one place.
        let taken = |name: &String| self.title.contains(name) || self.badge.contains(name);
        self.around.line.retain(|name| !taken(name));
        self.card.retain(|name| !self.around.line.contains(name));
    }

    /// What the owner's own template says stands before every other way to say it.
    fn follow(&mut self, own: &Own) {
        if own.picture.is_some() {
            self.thumbnail.clone_from(&own.picture);
        }
        if let Some(card) = own.card.clone() {
            if !card.heading.is_empty() {
                self.title = card.heading;
            }
            (self.badge, self.text, self.card) = (card.badge, card.text, card.facts);
            (self.around.eyebrow, self.around.line) = (card.eyebrow, card.line);
        }
        if let Some(item) = own.item.clone() {
            self.texts = item.text.len();
            (self.reading, self.item) = (item.text, item.facts);
            (self.around_item.eyebrow, self.around_item.line) = (item.eyebrow, item.line);
        }
    }
}

/// The fields that a page may show, and what the owner says of them.
struct Fields<'a> {
    display: &'a DisplayConfig,
    card: Option<&'a ResultCardProperties>,
}

impl<'a> Fields<'a> {
    fn of(display: &'a DisplayConfig) -> Self {
        let components = display.components.as_ref();
        Self {
            display,
            card: components.and_then(|components| components.result_card.as_ref()),
        }
    }

    fn is_exposed(&self, name: &String) -> bool {
        self.display.exposed_fields.contains(name)
    }

    fn format(&self, name: &str) -> Option<FieldFormatType> {
        let config = self.display.field_config.get(name);
        config.map(|config| config.format)
    }

    /// The fields that the owner gave these places.
    fn mapped(&self, places: &[&str]) -> Vec<String> {
        let mappings = self.display.field_mappings.as_ref();
        places
            .iter()
            .filter_map(|place| mappings?.get(*place).cloned())
            .filter(|name| self.is_exposed(name))
            .collect()
    }

    /// Those of the fields that have such names.
    fn named(&self, names: &[&str]) -> Vec<String> {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .filter(|name| self.is_exposed(name))
            .collect()
    }

    fn texts(&self) -> Vec<String> {
        let mut text = self.mapped(&[
            "description",
            "subtitle",
            "snippet",
            "text",
            "body",
            "caption",
        ]);
        text.extend(self.named(&[
            "description",
            "summary",
            "caption",
            "snippet",
            "text",
            "content",
            "body",
            "transcription",
            "ocr_text",
        ]));
        text
    }

    /// Where nothing says what the title is, the first text that is no running one.
    fn title(&self, texts: &[String]) -> Vec<String> {
        let own = self.card.and_then(|card| card.title_field.clone());
        let own = own.into_iter().filter(|name| self.is_exposed(name));
        let mut title: Vec<String> = own.collect();
        title.extend(self.mapped(&["title", "name", "heading"]));
        title.extend(self.named(&[
            "title",
            "name",
            "headline",
            "subject",
            "filename",
            "file_name",
            "label",
        ]));
        if title.is_empty() {
            let is_text = |name: &str| {
                let format = self.format(name);
                format.is_none_or(|format| format == FieldFormatType::Text)
            };
            let mut exposed = self.display.exposed_fields.iter();
            title.extend(
                exposed
                    .find(|name| is_text(name) && !texts.contains(name))
                    .cloned(),
            );
        }
        title
    }

    fn thumbnail(&self) -> Option<String> {
        let own = self.card.and_then(|card| card.thumbnail_field.clone());
        own.filter(|name| self.is_exposed(name))
            .or_else(|| {
                let places = ["thumbnail", "image", "picture", "poster", "cover"];
                self.mapped(&places).into_iter().next()
            })
            .or_else(|| {
                let mut exposed = self.display.exposed_fields.iter();
                exposed
                    .find(|name| self.format(name) == Some(FieldFormatType::Image))
                    .cloned()
            })
    }

    fn badge(&self) -> Vec<String> {
        let mapped = self.mapped(&["badge", "duration"]);
        mapped.into_iter().take(1).collect()
    }

    /// The field that says when something was made: one of the owner's dates, else one that is called so.
    fn date(&self) -> Option<String> {
        let mut exposed = self.display.exposed_fields.iter();
        let own = exposed.find(|name| self.format(name) == Some(FieldFormatType::Date));
        own.cloned()
            .or_else(|| self.named(&DATES).into_iter().next())
    }

    fn links(&self) -> Vec<String> {
        let mut links = self.mapped(&["url", "link", "href"]);
        let exposed = self.display.exposed_fields.iter();
        let urls = exposed.filter(|name| self.format(name) == Some(FieldFormatType::Url));
        links.extend(urls.cloned());
        links
    }

    /// The owner's order.
    fn order(&self) -> &'a [String] {
        match self.card {
            Some(card) => &card.field_order,
            None => &[],
        }
    }

    /// Unless the owner lists fields, a card shows only what the owner gave a format or an order: the rest is on the item's page.
    fn chosen(&self) -> Option<Vec<String>> {
        let listed = self.card.and_then(|card| card.card_fields.clone());
        listed.or_else(|| {
            let exposed = self.display.exposed_fields.iter();
            let told = exposed.filter(|name| {
                self.order().contains(name) || self.display.field_config.contains_key(*name)
            });
            Some(told.cloned().collect())
        })
    }

    /// Those that are wanted, of all where nobody says which, as the owner orders them.
    fn ordered(&self, wanted: Option<Vec<String>>) -> Vec<String> {
        let order = self.order();
        let wanted = wanted.unwrap_or_else(|| self.display.exposed_fields.clone());
        let mut fields: Vec<String> = order
            .iter()
            .filter(|name| wanted.contains(name))
            .cloned()
            .collect();
        fields.extend(wanted.into_iter().filter(|name| !order.contains(name)));
        fields.retain(|name| self.is_exposed(name));
        fields
    }
}
