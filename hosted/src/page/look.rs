//! How one page looks: the template's character, with the owner's words over it.

use loupe_wire::{
    ComponentsConfig, DisplayConfig, FieldConfig, LayoutConfig, Object, ThemeConfig, Value,
};

use super::slots::{Around, Slots};
use super::template::{Side, built_in, own};
use super::text::capitalized;
use super::theme::{card_style, hover, length};
use crate::Page;

/// Character of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// Tall pictures, few words.
    PortraitGallery,
    /// Wide pictures with length and date.
    MediaSearch,
    /// Words first: a reading list with snippets.
    DocumentSearch,
    /// Whatever the owner configured.
    Custom,
}

/// Arrangement of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Equal cells.
    Grid,
    /// One a row.
    List,
    /// Columns of pictures in their own proportions.
    Masonry,
}

/// Edge of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardStyle {
    /// A hairline.
    Bordered,
    /// A soft shadow.
    Elevated,
    /// Nothing at all.
    Flat,
    /// Translucent.
    Glass,
}

/// What a card does under the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hover {
    /// Rises a little.
    Lift,
    /// Takes the brand's colour at its edge.
    Glow,
    /// Its picture grows a little.
    Scale,
    /// Nothing.
    Still,
}

/// Where a card leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Click {
    /// To the item's own page.
    Item,
    /// To the address in the document.
    Link,
    /// To what is like it.
    Similar,
    /// Nowhere.
    Nowhere,
}

/// Proportions of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(pub u32, pub u32);

impl Ratio {
    /// `16/9`, `16:9`, `16x9` or `1`, both parts between 1 and 10 000.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text
            .split(['/', ':', 'x'])
            .map(|part| part.trim().parse::<u32>());
        let width = parts.next()?.ok()?;
        let height = parts.next().unwrap_or(Ok(1)).ok()?;
        let sane = |part| (1..=10_000).contains(&part);
        (parts.next().is_none() && sane(width) && sane(height)).then_some(Self(width, height))
    }

    /// Value of `aspect-ratio`.
    pub fn css(self) -> String {
        format!("{}/{}", self.0, self.1)
    }
}

/// Everything the views ask about the looks.
#[derive(Debug, Clone)]
pub struct Look {
    pub template: Template,
    /// Whether the owner says what stands where.
    pub is_own: bool,
    pub mode: Mode,
    pub columns: u32,
    pub gap: String,
    pub full_width: bool,
    pub ratio: Ratio,
    pub fit: &'static str,
    pub card: CardStyle,
    pub hover: Hover,
    pub horizontal: bool,
    pub thumbnail: bool,
    pub score: bool,
    pub find_similar: bool,
    pub click: Click,
    pub title_chars: usize,
    pub text_chars: usize,
    pub hero: bool,
    pub search: bool,
    pub filters: bool,
    pub header: bool,
    pub page_size: u32,
    slots: Slots,
}

impl Look {
    /// Looks of a page, with as many results as its owner allows at once.
    pub fn of_page(page: &Page) -> Self {
        let mut look = Self::of(&page.display_config);
        if let Some(most) = page.most_results {
            look.page_size = look.page_size.min(most.max(1));
        }
        look
    }

    /// Looks of a display configuration.
    pub fn of(display: &DisplayConfig) -> Self {
        let own = own(display);
        let components = display.components.clone().unwrap_or_default();
        let given = components.result_card.as_ref();
        let of_card = || of_card(given?.card_style.as_deref()?);
        let named = display.template_type.as_deref().and_then(built_in);
        let named = named.or_else(of_card);
        let template = own
            .as_ref()
            .map(|own| own.character)
            .or(named)
            .unwrap_or(Template::Custom);
        let side = own.as_ref().map(|own| own.side).unwrap_or_default();
        let (usual, columns, ratio) = arrangement(template);
        let (text_chars, page_size) = amounts(template);
        let card = given.cloned().unwrap_or_default();
        let layout = display.layout.as_ref();
        let theme = display.theme.as_ref();
        let mode = chosen_mode(layout, &components).unwrap_or(usual);
        // A list that is to have columns has as many as any page.
        let columns = match usual == Mode::List && mode != usual {
            true => COLUMNS,
            false => columns,
        };
        Self {
            template,
            mode,
            columns: layout
                .and_then(|layout| layout.columns)
                .map_or(columns, |chosen| chosen.clamp(1, 6).unsigned_abs() as u32),
            gap: layout
                .and_then(|layout| length(&layout.gap, 64.0))
                .unwrap_or_else(|| "16px".to_owned()),
            full_width: layout.is_some_and(|layout| layout.full_width),
            ratio: given
                .and_then(|card| Ratio::parse(card.thumbnail_aspect_ratio.as_deref()?))
                .or_else(|| own.as_ref()?.ratio)
                .unwrap_or(ratio),
            fit: fit(&card.thumbnail_fit),
            card: card_style(chosen_style(card.card_style.as_deref(), theme)),
            hover: hover(theme.and_then(|theme| theme.card_hover_effect.as_deref())),
            horizontal: match card.layout.as_deref() {
                Some("vertical") => false,
                Some("horizontal") => true,
                _ => side == Side::Beside,
            },
            thumbnail: card.show_thumbnail && side != Side::Nowhere,
            score: card.show_score,
            find_similar: card.show_find_similar,
            click: click(&card.card_click_action),
            title_chars: chars(card.truncate_title, 120),
            text_chars: chars(card.truncate_description, text_chars),
            hero: components.show_hero,
            search: components.show_search,
            filters: components.show_filters,
            header: components.show_results_header,
            page_size,
            slots: Slots::of(display, own.as_ref(), template),
            is_own: own.is_some(),
        }
    }

    /// Title of a document and the field it came from.
    pub fn title(&self, fields: &Object) -> Option<(&str, String)> {
        self.slots
            .title
            .iter()
            .find_map(|name| Some((name.as_str(), text_of(get(fields, name)?)?)))
    }

    /// Running text of a document and the field it came from.
    pub fn text(&self, fields: &Object) -> Option<(&str, String)> {
        self.slots
            .text
            .iter()
            .find_map(|name| Some((name.as_str(), text_of(get(fields, name)?)?)))
    }

    /// Address kept in a field that stands in for the thumbnail.
    pub fn thumbnail_url(&self, fields: &Object) -> Option<(&str, String)> {
        let name = self.slots.thumbnail.as_deref()?;
        Some((name, text_of(get(fields, name)?)?))
    }

    /// Short word laid over the picture: a length, a page number.
    pub fn badge<'a>(&'a self, fields: &'a Object) -> Option<(&'a str, &'a Value)> {
        let mut names = self.slots.badge.iter();
        names.find_map(|name| Some((name.as_str(), get(fields, name)?)))
    }

    /// Address the document points to.
    pub fn link(&self, fields: &Object) -> Option<String> {
        self.slots
            .link
            .iter()
            .find_map(|name| text_of(get(fields, name)?))
    }

    /// Running texts of a document on its own page, each with the field it came from.
    pub fn texts(&self, fields: &Object) -> Vec<(&str, String)> {
        let texts = self.slots.reading.iter();
        texts
            .filter_map(|name| Some((name.as_str(), text_of(get(fields, name)?)?)))
            .take(self.slots.texts)
            .collect()
    }

    /// Fields above and beneath the heading of a card.
    pub fn around(&self) -> &Around {
        &self.slots.around
    }

    /// Fields above and beneath the heading of an item's page.
    pub fn around_item(&self) -> &Around {
        &self.slots.around_item
    }

    /// Fields listed on a card, in order, without those shown elsewhere.
    pub fn card_fields(&self) -> &[String] {
        &self.slots.card
    }

    /// Fields listed on an item's page, in order.
    pub fn item_fields(&self) -> &[String] {
        &self.slots.item
    }
}

/// The template whose cards a card's style names.
fn of_card(style: &str) -> Option<Template> {
    match style {
        "portrait-discovery" => Some(Template::PortraitGallery),
        other => built_in(other),
    }
}

/// Columns of a page whose owner and whose template say nothing of them.
const COLUMNS: u32 = 3;

/// How a template lays its cards out: in which mode, in how many columns, their pictures in which proportions.
fn arrangement(template: Template) -> (Mode, u32, Ratio) {
    match template {
        Template::PortraitGallery => (Mode::Grid, 4, Ratio(4, 5)),
        Template::DocumentSearch => (Mode::List, 1, Ratio(3, 4)),
        Template::MediaSearch | Template::Custom => (Mode::Grid, COLUMNS, Ratio(16, 9)),
    }
}

/// How much a template shows at once: letters of a text, and results.
fn amounts(template: Template) -> (usize, u32) {
    match template {
        Template::DocumentSearch => (320, 10),
        Template::PortraitGallery | Template::MediaSearch | Template::Custom => (140, 24),
    }
}

/// The style of cards that the owner chose, else the theme's.
fn chosen_style<'a>(given: Option<&'a str>, theme: Option<&'a ThemeConfig>) -> Option<&'a str> {
    // The others are the templates' own.
    let given = given.filter(|style| ["elevated", "flat", "bordered", "glass"].contains(style));
    // A theme that says nothing of its cards has them stand out.
    given.or_else(|| Some(theme?.card_style.as_deref().unwrap_or("elevated")))
}

fn click(action: &str) -> Click {
    match action {
        "none" => Click::Nowhere,
        "findSimilar" => Click::Similar,
        "openUrl" | "openLink" | "openExternal" | "link" => Click::Link,
        _ => Click::Item,
    }
}

/// The arrangement that the owner chose. Two members name one, and others send `grid` with either where nothing was chosen:
/// anything else in one of them is the choice. Who says in how many columns, and of what no more, wants columns.
fn chosen_mode(layout: Option<&LayoutConfig>, components: &ComponentsConfig) -> Option<Mode> {
    let of = |name: &str| match name {
        "list" => Some(Mode::List),
        "masonry" => Some(Mode::Masonry),
        _ => None,
    };
    let said = [
        layout.and_then(|layout| layout.mode.as_deref()),
        components.result_layout.as_deref(),
    ];
    let columns = layout.and_then(|layout| layout.columns);
    let is_grid = said.contains(&Some("grid"))
        || (said[0].is_none() && columns.is_some_and(|columns| columns > 1));
    let mut named = said.into_iter().flatten();
    named.find_map(of).or(is_grid.then_some(Mode::Grid))
}

/// Value of a field: the whole name first, then as a path of members.
pub fn get<'a>(fields: &'a Object, name: &str) -> Option<&'a Value> {
    if let Some(value) = fields.get(name) {
        return Some(value).filter(|value| !value.is_null());
    }
    let (first, rest) = name.split_once('.')?;
    get(fields.get(first)?.as_object()?, rest)
}

/// Label and options of a field.
pub fn label(display: &DisplayConfig, name: &str) -> String {
    let set = display
        .field_config
        .get(name)
        .and_then(|config: &FieldConfig| config.format_options.as_ref()?.label.clone());
    set.filter(|label| !label.trim().is_empty())
        .unwrap_or_else(|| humanize(name))
}

/// `release_date` as `Release date`.
fn humanize(name: &str) -> String {
    let words = name
        .rsplit('.')
        .next()
        .unwrap_or(name)
        .replace(['_', '-'], " ");
    capitalized(&words)
}

/// A value that reads as one line of text.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One of the words `object-fit` knows.
pub fn fit(text: &str) -> &'static str {
    match text {
        "contain" => "contain",
        "fill" => "fill",
        "none" => "none",
        "scale-down" => "scale-down",
        _ => "cover",
    }
}

fn chars(set: Option<i64>, default: usize) -> usize {
    set.and_then(|set| usize::try_from(set).ok())
        .unwrap_or(default)
        .clamp(1, 5_000)
}
