//! Which field fills which place: what the owner says, else what the names of fields suggest.

use loupe_wire::{DisplayConfig, FieldFormatType};

use super::template::Own;

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
    pub fn of(display: &DisplayConfig, own: Option<&Own>) -> Self {
        let card = display
            .components
            .as_ref()
            .and_then(|components| components.result_card.as_ref());
        let exposed = |name: &String| display.exposed_fields.contains(name);
        let mapped = |names: &[&str]| -> Vec<String> {
            let mappings = display.field_mappings.as_ref();
            names
                .iter()
                .filter_map(|name| mappings?.get(*name).cloned())
                .filter(exposed)
                .collect()
        };
        let named = |names: &[&str]| -> Vec<String> {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .filter(exposed)
                .collect()
        };
        let format = |name: &String| display.field_config.get(name).map(|config| config.format);
        let mut title: Vec<String> = card
            .and_then(|card| card.title_field.clone())
            .into_iter()
            .filter(exposed)
            .collect();
        title.extend(mapped(&["title", "name", "heading"]));
        title.extend(named(&[
            "title",
            "name",
            "headline",
            "subject",
            "filename",
            "file_name",
            "label",
        ]));
        let mut text = mapped(&[
            "description",
            "subtitle",
            "snippet",
            "text",
            "body",
            "caption",
        ]);
        text.extend(named(&[
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
        if title.is_empty() {
            title.extend(
                display
                    .exposed_fields
                    .iter()
                    .find(|name| {
                        format(name).is_none_or(|format| format == FieldFormatType::Text)
                            && !text.contains(name)
                    })
                    .cloned(),
            );
        }
        text.retain(|name| !title.contains(name));
        let thumbnail = card
            .and_then(|card| card.thumbnail_field.clone())
            .filter(exposed)
            .or_else(|| {
                mapped(&["thumbnail", "image", "picture", "poster", "cover"])
                    .into_iter()
                    .next()
            })
            .or_else(|| {
                display
                    .exposed_fields
                    .iter()
                    .find(|name| format(name) == Some(FieldFormatType::Image))
                    .cloned()
            });
        let badge = mapped(&["badge", "duration"]).into_iter().take(1).collect();
        let mut link = mapped(&["url", "link", "href"]);
        link.extend(
            display
                .exposed_fields
                .iter()
                .filter(|name| format(name) == Some(FieldFormatType::Url))
                .cloned(),
        );
        let mut slots = Self {
            title,
            reading: text.clone(),
            texts: 1,
            text,
            thumbnail,
            badge,
            link,
            ..Self::default()
        };
        let order = card
            .map(|card| card.field_order.clone())
            .unwrap_or_default();
        let ordered = |wanted: Option<Vec<String>>| -> Vec<String> {
            let wanted = wanted.unwrap_or_else(|| display.exposed_fields.clone());
            let mut fields: Vec<String> = order
                .iter()
                .filter(|name| wanted.contains(name))
                .cloned()
                .collect();
            fields.extend(wanted.into_iter().filter(|name| !order.contains(name)));
            fields.retain(exposed);
            fields
        };
        // Unless the owner lists fields, a card shows only what the owner gave a format or an order: the rest is on the item's page.
        let chosen = card.and_then(|card| card.card_fields.clone()).or_else(|| {
            Some(
                display
                    .exposed_fields
                    .iter()
                    .filter(|name| order.contains(name) || display.field_config.contains_key(*name))
                    .cloned()
                    .collect(),
            )
        });
        slots.card = ordered(chosen);
        slots.item = ordered(card.and_then(|card| card.modal_fields.clone()));
        if let Some(own) = own {
            slots.follow(own);
        }
        slots
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
