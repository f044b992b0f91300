//! The theme of a page: its colours, its letters and its cards.

use leptos::prelude::*;
use serde_json::Value;

use super::draft::put;
use crate::record::Record;

/// What a page has for colours when its owner chose none: it follows the light or dark of whoever looks.
const GROUND: &str = "#ffffff";
const INK: &str = "#374151";
const PRIMARY: &str = "#007aff";
const SYSTEM: &str = "system-ui, -apple-system, sans-serif";

#[derive(Clone, Copy)]
pub struct Theme {
    pub primary: RwSignal<String>,
    /// Whether the page has a ground and a text of its own in place of light and dark.
    pub fixed: RwSignal<bool>,
    pub ground: RwSignal<String>,
    pub ink: RwSignal<String>,
    /// Colours of a page with a ground of its own; what is empty is made from the others.
    pub secondary: RwSignal<String>,
    pub surface: RwSignal<String>,
    pub muted: RwSignal<String>,
    pub line: RwSignal<String>,
    pub font: RwSignal<String>,
    pub heading: RwSignal<String>,
    pub radius: RwSignal<String>,
    pub card: RwSignal<String>,
    pub hover: RwSignal<String>,
}

impl Theme {
    /// Of a configuration.
    pub fn new(display: &Record) -> Self {
        let theme = display.record("theme");
        let text = |name: &str| RwSignal::new(theme.text(name));
        // A colour that the browser's chooser does not know stays in the words it was given in.
        let color = |name: &str, usual: &str| {
            let given = theme.opt(name).unwrap_or_else(|| usual.to_owned());
            RwSignal::new(hex(&given).unwrap_or(given))
        };
        let auto = display.record("extensions").text("color_scheme") == "auto";
        let fixed = display.value("theme").is_some() && !auto;
        let font = theme.opt("font_family").filter(|font| font != SYSTEM);
        Self {
            primary: color("primary_color", PRIMARY),
            fixed: RwSignal::new(fixed),
            ground: color("background_color", GROUND),
            ink: color("text_color", INK),
            secondary: text("secondary_color"),
            surface: text("surface_color"),
            muted: text("muted_color"),
            line: text("border_color"),
            font: RwSignal::new(font.unwrap_or_default()),
            heading: text("heading_font_family"),
            radius: text("border_radius"),
            card: text("card_style"),
            hover: text("card_hover_effect"),
        }
    }

    /// Puts it into a configuration.
    pub fn put_into(self, all: &mut Value) {
        let scheme = (!self.fixed.get()).then(|| "auto".into());
        put(all, &["extensions", "color_scheme"], scheme);
        for (name, value) in [
            ("primary_color", self.primary),
            ("background_color", self.ground),
            ("text_color", self.ink),
            ("secondary_color", self.secondary),
            ("surface_color", self.surface),
            ("muted_color", self.muted),
            ("border_color", self.line),
            ("font_family", self.font),
            ("heading_font_family", self.heading),
            ("border_radius", self.radius),
            ("card_style", self.card),
            ("card_hover_effect", self.hover),
        ] {
            let value = Some(value.get()).filter(|text| !text.is_empty());
            put(all, &["theme", name], value.map(Value::from));
        }
    }
}

/// The kind of field for a colour: the browser's own chooser, or a line of text where it would show another colour.
pub fn kind(color: RwSignal<String>) -> &'static str {
    match color.with_untracked(|color| hex(color)) {
        Some(_) => "color",
        None => "text",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn colours_in_other_words_stay_until_they_are_changed() {
        let owner = Owner::new();
        owner.set();
        let given = json!({"theme": {
            "primary_color": "oklch(.52 .19 262)", "background_color": "rgb(250 250 240 / .9)", "text_color": "black",
        }});
        let theme = Theme::new(&Record(given.clone()));
        let written = |theme: Theme| {
            let mut all = given.clone();
            theme.put_into(&mut all);
            all
        };
        assert_eq!(written(theme), given);
        assert_eq!((kind(theme.primary), kind(theme.ink)), ("text", "text"));
        theme.primary.set("#0f766e".to_owned());
        let all = written(theme);
        assert_eq!(all["theme"]["primary_color"], "#0f766e");
        assert_eq!(all["theme"]["text_color"], "black");
    }

    #[test]
    fn a_colour_that_nobody_chose_is_the_usual_one() {
        let owner = Owner::new();
        owner.set();
        let theme = Theme::new(&Record(
            json!({"theme": {"primary_color": "", "text_color": " #A0B "}}),
        ));
        assert_eq!(theme.primary.get(), PRIMARY);
        assert_eq!(theme.ink.get(), "#aa00bb");
        assert_eq!(
            (kind(theme.primary), kind(theme.ground)),
            ("color", "color")
        );
    }
}
