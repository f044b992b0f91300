//! What of a display configuration says nothing here: it is passed over, and its owner is told.

use loupe_wire::{DisplayConfig, ResultCardProperties, ThemeConfig, Value};

use super::frame::origin;
use super::icon;
use super::look::Ratio;
use super::text::truncate;
use super::theme::{color, known_font, length};

/// Letters of a value that are told again.
const TOLD: usize = 60;

/// Most doubts that are told.
const MOST: usize = 50;

/// Places of templates whose field may lie in an exposed one.
const INSIDE: [&str; 5] = ["video", "audio", "pdf", "start_time", "page_number"];

/// A member, what it says, and what it may say.
struct Choice<'a>(&'a str, Option<&'a str>, &'static [&'static str]);

/// One sentence for each member that is passed over.
pub fn doubts(display: &DisplayConfig) -> Vec<String> {
    let mut all = Vec::new();
    fields(display, &mut all);
    if let Some(theme) = &display.theme {
        colors(theme, &mut all);
        sizes(
            "theme.border_radius",
            theme.border_radius.as_deref(),
            &mut all,
        );
        fonts(theme, &mut all);
    }
    if let Some(layout) = &display.layout {
        sizes("layout.gap", Some(&layout.gap), &mut all);
    }
    choices(display, &mut all);
    extensions(display, &mut all);
    let icon = display
        .icon_base64
        .as_deref()
        .filter(|icon| !icon.is_empty());
    if icon.is_some_and(|icon| icon::decode(icon).is_none()) {
        all.push("display_config.icon_base64 is no picture of a kind that is known: the page has no icon".to_owned());
    }
    all.truncate(MOST);
    all
}

fn passed(all: &mut Vec<String>, member: &str, value: &str, what: &str) {
    let value = truncate(value, TOLD);
    all.push(format!(
        "display_config.{member}: '{value}' {what}, and is passed over"
    ));
}

/// Names of fields that are shown nowhere.
fn fields(display: &DisplayConfig, all: &mut Vec<String>) {
    let exposed = &display.exposed_fields;
    let is_exposed = |name: &String| exposed.contains(name);
    let lies_inside = |name: &str| {
        let inside = |whole: &String| {
            let rest = name.strip_prefix(whole.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        exposed.iter().any(inside)
    };
    let what = "is not among exposed_fields";
    for (place, name) in display.field_mappings.iter().flatten() {
        let is_found = is_exposed(name) || (INSIDE.contains(&place.as_str()) && lies_inside(name));
        if !is_found {
            passed(
                all,
                &format!("field_mappings.{}", truncate(place, TOLD)),
                name,
                what,
            );
        }
    }
    let extensions = display.extensions.as_ref();
    let facets = extensions.and_then(|extensions| extensions.get("facets")?.as_array());
    for facet in facets.into_iter().flatten() {
        match facet {
            Value::String(name) if is_exposed(name) => {}
            Value::String(name) => passed(all, "extensions.facets", name, what),
            other => passed(
                all,
                "extensions.facets",
                &other.to_string(),
                "is no name of a field",
            ),
        }
    }
    let components = display.components.as_ref();
    if let Some(card) = components.and_then(|components| components.result_card.as_ref()) {
        for (member, name) in named(card) {
            if !is_exposed(name) {
                passed(all, &format!("components.result_card.{member}"), name, what);
            }
        }
    }
}

/// Every field that a card names.
fn named(card: &ResultCardProperties) -> impl Iterator<Item = (&'static str, &String)> {
    let several = [
        ("card_fields", card.card_fields.as_deref()),
        ("modal_fields", card.modal_fields.as_deref()),
        ("field_order", Some(card.field_order.as_slice())),
    ];
    let several = several.into_iter().flat_map(|(member, names)| {
        let names = names.unwrap_or_default().iter();
        names.map(move |name| (member, name))
    });
    let single = [
        ("title_field", card.title_field.as_ref()),
        ("thumbnail_field", card.thumbnail_field.as_ref()),
    ];
    let single = single.into_iter();
    let single = single.filter_map(|(member, name)| Some((member, name?)));
    single.chain(several)
}

fn colors(theme: &ThemeConfig, all: &mut Vec<String>) {
    for (member, value) in [
        ("primary_color", Some(theme.primary_color.as_str())),
        ("secondary_color", theme.secondary_color.as_deref()),
        ("background_color", Some(theme.background_color.as_str())),
        ("text_color", Some(theme.text_color.as_str())),
        ("surface_color", theme.surface_color.as_deref()),
        ("muted_color", theme.muted_color.as_deref()),
        ("border_color", theme.border_color.as_deref()),
    ] {
        if let Some(value) = value.filter(|value| color(value).is_none()) {
            passed(all, &format!("theme.{member}"), value, "is no colour");
        }
    }
}

fn sizes(member: &str, value: Option<&str>, all: &mut Vec<String>) {
    if let Some(value) = value.filter(|value| length(value, 64.0).is_none()) {
        passed(all, member, value, "is no length in px, rem or em");
    }
}

fn fonts(theme: &ThemeConfig, all: &mut Vec<String>) {
    let heading = theme.heading_font_family.as_deref();
    for (member, value) in [
        ("font_family", Some(theme.font_family.as_str())),
        ("heading_font_family", heading),
    ] {
        if let Some(value) = value.filter(|value| known_font(value).is_none()) {
            passed(
                all,
                &format!("theme.{member}"),
                value,
                "names no font that pages have",
            );
        }
    }
}

/// Words that choose one of a few.
fn choices(display: &DisplayConfig, all: &mut Vec<String>) {
    const MODES: &[&str] = &["grid", "list", "masonry"];
    const STYLES: &[&str] = &["elevated", "flat", "bordered", "glass"];
    const HOVERS: &[&str] = &["lift", "glow", "scale", "none"];
    let components = display.components.as_ref();
    let theme = display.theme.as_ref();
    let extensions = display.extensions.as_ref();
    let extension = |name: &str| extensions.and_then(|all| all.get(name)?.as_str());
    let layout = display.layout.as_ref();
    let mode = layout.and_then(|layout| layout.mode.as_deref());
    let layout = components.and_then(|all| all.result_layout.as_deref());
    let style = theme.and_then(|theme| theme.card_style.as_deref());
    let hover = theme.and_then(|theme| theme.card_hover_effect.as_deref());
    let scheme = extension("color_scheme");
    let markdowns = extension("markdowns");
    let of_page = [
        Choice("layout.mode", mode, MODES),
        Choice("components.result_layout", layout, MODES),
        Choice("theme.card_style", style, STYLES),
        Choice("theme.card_hover_effect", hover, HOVERS),
        Choice("extensions.color_scheme", scheme, &["auto"]),
        Choice("extensions.markdowns", markdowns, &["tabs", "modal"]),
    ];
    let card = components.and_then(|components| components.result_card.as_ref());
    for Choice(member, said, known) in of_page
        .into_iter()
        .chain(card.into_iter().flat_map(of_card))
    {
        if let Some(said) = said.filter(|said| !known.contains(said)) {
            let what = format!("is none of {}", known.join(", "));
            passed(all, member, said, &what);
        }
    }
    let ratio = card.and_then(|card| card.thumbnail_aspect_ratio.as_deref());
    if let Some(ratio) = ratio.filter(|ratio| Ratio::parse(ratio).is_none()) {
        let member = "components.result_card.thumbnail_aspect_ratio";
        passed(all, member, ratio, "is no ratio such as 16/9");
    }
}

fn of_card(card: &ResultCardProperties) -> [Choice<'_>; 4] {
    const SIDES: &[&str] = &["vertical", "horizontal"];
    const FITS: &[&str] = &["cover", "contain", "fill", "none", "scale-down"];
    const CLICKS: &[&str] = &[
        "viewDetails",
        "findSimilar",
        "none",
        "openUrl",
        "openLink",
        "openExternal",
        "link",
    ];
    const STYLES: &[&str] = &[
        "default",
        "elevated",
        "flat",
        "bordered",
        "glass",
        "portrait-discovery",
        "portrait-gallery",
        "media-search",
        "document-search",
    ];
    [
        Choice(
            "components.result_card.layout",
            card.layout.as_deref(),
            SIDES,
        ),
        Choice(
            "components.result_card.thumbnail_fit",
            Some(&card.thumbnail_fit),
            FITS,
        ),
        Choice(
            "components.result_card.card_click_action",
            Some(&card.card_click_action),
            CLICKS,
        ),
        Choice(
            "components.result_card.card_style",
            card.card_style.as_deref(),
            STYLES,
        ),
    ]
}

/// Sites that may show the page in a frame.
fn extensions(display: &DisplayConfig, all: &mut Vec<String>) {
    let extensions = display.extensions.as_ref();
    let listed = extensions.and_then(|all| all.get("embed")?.get("frame_ancestors"));
    let Some(listed) = listed else { return };
    let member = "extensions.embed.frame_ancestors";
    let Some(sites) = listed.as_array() else {
        return passed(all, member, &listed.to_string(), "is no list of origins");
    };
    for site in sites {
        if site.as_str().is_none_or(|site| origin(site).is_none()) {
            let site = site
                .as_str()
                .map_or_else(|| site.to_string(), str::to_owned);
            passed(
                all,
                member,
                &site,
                "is no origin such as https://www.example.com",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(over: &Value) -> Vec<String> {
        let mut display =
            json!({"title": "Films", "inputs": [], "exposed_fields": ["title", "meta"]});
        for (name, value) in over.as_object().unwrap() {
            display[name] = value.clone();
        }
        doubts(&serde_json::from_value(display).unwrap())
    }

    #[test]
    fn what_a_page_passes_over_is_told() {
        for (over, member) in [
            (
                json!({"field_mappings": {"title": "secret"}}),
                "field_mappings.title: 'secret'",
            ),
            (
                json!({"extensions": {"facets": ["title", "secret"]}}),
                "extensions.facets: 'secret'",
            ),
            (
                json!({"components": {"result_card": {"card_fields": ["x"]}}}),
                "components.result_card.card_fields: 'x'",
            ),
            (
                json!({"theme": {"primary_color": "reddish"}}),
                "theme.primary_color: 'reddish'",
            ),
            (
                json!({"theme": {"border_radius": "calc(1px)"}}),
                "theme.border_radius",
            ),
            (
                json!({"theme": {"font_family": "Papyrus"}}),
                "theme.font_family",
            ),
            (json!({"layout": {"gap": "wide"}}), "layout.gap"),
            (
                json!({"layout": {"mode": "carousel"}}),
                "layout.mode: 'carousel'",
            ),
            (
                json!({"components": {"result_card": {"thumbnail_aspect_ratio": "wide"}}}),
                "thumbnail_aspect_ratio",
            ),
            (
                json!({"extensions": {"embed": {"frame_ancestors": ["shop.example"]}}}),
                "frame_ancestors: 'shop.example'",
            ),
            (json!({"icon_base64": "AAAA"}), "icon_base64"),
        ] {
            let told = told(&over);
            assert!(
                told.len() == 1 && told[0].contains(member),
                "{over}: {told:?}"
            );
        }
        for fine in [
            json!({}),
            json!({"theme": {}, "layout": {}, "components": {"result_card": {"card_style": "default"}}}),
            json!({"field_mappings": {"video": "meta.url", "title": "title"}, "icon_base64": ""}),
            json!({"extensions": {"facets": ["title"], "color_scheme": "auto", "embed": {"frame_ancestors": []}}}),
        ] {
            assert!(told(&fine).is_empty(), "{fine}: {:?}", told(&fine));
        }
    }
}
