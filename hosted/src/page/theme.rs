//! The owner's theme as CSS tokens. Every value is parsed and written anew: what the owner typed never reaches the
//! style sheet, and text stays readable on whatever ground was chosen.

use csscolorparser::Color;
use loupe_wire::{DisplayConfig, ThemeConfig};

use super::canvas::Rgb;
use super::look::{CardStyle, Hover, Look};

const BODY_CONTRAST: f64 = 4.5;
const EDGE_CONTRAST: f64 = 3.0;

/// Tokens that are made of the brand's colour.
const BRAND: [&str; 4] = ["primary", "on-primary", "primary-soft", "link"];

/// What a theme says of its corners where it says nothing.
const RADIUS: &str = "12px";

/// Which scheme the page follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The visitor's choice: no theme, or one that asks for it with `extensions.color_scheme: "auto"`.
    Visitor,
    /// The owner fixed a light ground.
    Light,
    /// The owner fixed a dark ground.
    Dark,
}

impl Scheme {
    /// Value of `data-theme` on the root; none leaves it to the visitor.
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Visitor => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }
}

/// The page's own style element and what the head says about it.
#[derive(Debug, Clone)]
pub struct Theme {
    /// Which scheme the page follows.
    pub scheme: Scheme,
    /// Colour for the browser's frame; none when the scheme is the visitor's.
    pub frame_color: Option<String>,
    /// Rules for the style element.
    pub css: String,
}

impl Theme {
    /// Tokens of a page.
    pub fn of(display: &DisplayConfig, look: &Look) -> Self {
        let mut tokens = layout_tokens(look);
        let Some(theme) = &display.theme else {
            return Self {
                scheme: Scheme::Visitor,
                frame_color: None,
                css: rule(&tokens),
            };
        };
        tokens.extend(shape_tokens(theme));
        if is_auto(display) {
            tokens.extend(adaptive_tokens(theme));
            return Self {
                scheme: Scheme::Visitor,
                frame_color: None,
                css: rule(&tokens),
            };
        }
        let ground = ground(theme);
        let scheme = if ink(&ground) == black() {
            Scheme::Light
        } else {
            Scheme::Dark
        };
        tokens.extend(fixed_tokens(theme, &ground));
        Self {
            scheme,
            frame_color: Some(hex(&ground)),
            css: rule(&tokens),
        }
    }
}

/// Whether the owner leaves it to the visitor how light the page is.
fn is_auto(display: &DisplayConfig) -> bool {
    let extensions = display.extensions.as_ref();
    let scheme = extensions.and_then(|extensions| extensions.get("color_scheme"));
    scheme.is_some_and(|value| value == "auto")
}

fn ground(theme: &ThemeConfig) -> Color {
    color(&theme.background_color).map_or_else(white, |color| over(&color, &white()))
}

/// Opaque colours by token, for what is drawn outside of a browser: those of the owner's theme, else the light ones of the
/// style sheet with the owner's brand colour.
pub fn colors(display: &DisplayConfig) -> Vec<(&'static str, Rgb)> {
    let owners = display.theme.as_ref();
    let brand = owners.map(|theme| theme.primary_color.clone());
    let light = ThemeConfig {
        background_color: "oklch(.985 .003 262)".into(),
        surface_color: Some("#fff".into()),
        text_color: "oklch(.24 .02 262)".into(),
        muted_color: Some("oklch(.49 .02 262)".into()),
        primary_color: brand.unwrap_or_else(|| "oklch(.52 .19 262)".into()),
        ..ThemeConfig::default()
    };
    let said = owners.filter(|theme| !is_auto(display) || !is_brand_alone(theme));
    let theme = said.unwrap_or(&light);
    let tokens = fixed_tokens(theme, &ground(theme)).into_iter();
    tokens
        .filter_map(|(name, text)| {
            let [red, green, blue, _] = color(&text)?.to_rgba8();
            Some((name, [red, green, blue]))
        })
        .collect()
}

fn rule(tokens: &[(&'static str, String)]) -> String {
    let mut css = String::from(":root{");
    for (name, value) in tokens {
        css.push_str("--");
        css.push_str(name);
        css.push(':');
        css.push_str(value);
        css.push(';');
    }
    css.push('}');
    css
}

fn layout_tokens(look: &Look) -> Vec<(&'static str, String)> {
    vec![
        ("columns", look.columns.to_string()),
        ("gap", look.gap.clone()),
        ("thumb-ratio", look.ratio.css()),
        ("thumb-fit", look.fit.to_owned()),
    ]
}

fn shape_tokens(theme: &ThemeConfig) -> Vec<(&'static str, String)> {
    let mut tokens = vec![("font", font_stack(&theme.font_family))];
    if let Some(heading) = &theme.heading_font_family {
        tokens.push(("font-heading", font_stack(heading)));
    }
    let radius = theme.border_radius.as_deref().unwrap_or(RADIUS);
    if let Some(radius) = length(radius, 40.0) {
        tokens.push(("radius", radius));
    }
    tokens
}

/// The owner's colours as they are on a ground as light or as dark as theirs, and mixed from them for the other: once for
/// visitors who have it light, once for those who have it dark.
fn adaptive_tokens(theme: &ThemeConfig) -> Vec<(&'static str, String)> {
    if is_brand_alone(theme) {
        // On the grounds of the style sheet.
        let on_sheet = ThemeConfig {
            background_color: hex(&gray(0.97)),
            text_color: hex(&gray(0.1)),
            ..theme.clone()
        };
        let mut tokens = both_tokens(&on_sheet);
        tokens.retain(|(name, _)| BRAND.contains(name));
        return tokens;
    }
    both_tokens(theme)
}

/// Whether a theme says nothing of its colours but the brand's.
fn is_brand_alone(theme: &ThemeConfig) -> bool {
    let usual = ThemeConfig::default();
    let others = [
        &theme.secondary_color,
        &theme.surface_color,
        &theme.muted_color,
        &theme.border_color,
    ];
    let is_usual = |given: &str, usual: &str| given.eq_ignore_ascii_case(usual);
    is_usual(&theme.background_color, &usual.background_color)
        && is_usual(&theme.text_color, &usual.text_color)
        && others.iter().all(|given| given.is_none())
}

fn both_tokens(theme: &ThemeConfig) -> Vec<(&'static str, String)> {
    let ground = ground(theme);
    let is_light = ink(&ground) == black();
    let turned = turned(theme, &ground, is_light);
    let own = seen_on(theme.clone(), &ground);
    let other = seen_on(turned.clone(), &self::ground(&turned));
    let (light, dark) = if is_light { (own, other) } else { (other, own) };
    light
        .into_iter()
        .zip(dark)
        .map(|((name, light), (_, dark))| match light == dark {
            true => (name, light),
            false => (name, format!("light-dark({light},{dark})")),
        })
        .collect()
}

/// The tokens of a theme whose brand colour stands out from its ground: one page has two of these.
fn seen_on(mut theme: ThemeConfig, ground: &Color) -> Vec<(&'static str, String)> {
    if let Some(brand) = color(&theme.primary_color) {
        let brand = readable(&over(&brand, ground), ground, EDGE_CONTRAST);
        theme.primary_color = hex(&brand);
    }
    fixed_tokens(&theme, ground)
}

/// The theme for the other ground: dark with a breath of the owner's where theirs is light, and the other way about. What is
/// written on it moves until it reads.
fn turned(theme: &ThemeConfig, own: &Color, is_light: bool) -> ThemeConfig {
    let (far, share) = if is_light {
        (black(), 0.11)
    } else {
        (white(), 0.04)
    };
    let ground = mix(&far, own, share);
    let given = |value: &Option<String>| {
        let color = value.as_deref().and_then(color)?;
        Some(over(&color, own))
    };
    let text = color(&theme.text_color).map_or_else(|| on(own), |color| over(&color, own));
    let ink = ink(&ground);
    // As far from its ground as it was from the owner's, in the same hue.
    let surface = given(&theme.surface_color).map(|surface| {
        let lift = if is_light { 0.04 } else { 0.5 };
        mix(&mix(&ground, &white(), lift), &surface, 0.02)
    });
    let border = given(&theme.border_color).map(|border| mix(&ground, &border, 0.3));
    ThemeConfig {
        background_color: hex(&ground),
        text_color: hex(&mix(&ink, &text, 0.12)),
        muted_color: given(&theme.muted_color).map(|muted| hex(&mix(&muted, &ink, 0.4))),
        surface_color: surface.as_ref().map(hex),
        border_color: border.as_ref().map(hex),
        ..theme.clone()
    }
}

fn fixed_tokens(theme: &ThemeConfig, ground: &Color) -> Vec<(&'static str, String)> {
    let ink = ink(ground);
    let dark = ink == white();
    let given = |value: &Option<String>| {
        value
            .as_deref()
            .and_then(color)
            .map(|color| over(&color, ground))
    };
    let surface = given(&theme.surface_color)
        .unwrap_or_else(|| mix(ground, &white(), if dark { 0.05 } else { 0.7 }));
    let surface = beside(&surface, ground, &ink);
    let sunken = mix(ground, &if dark { white() } else { black() }, 0.04);
    let sunken = beside(&sunken, ground, &ink);
    let grounds = [ground, &surface, &sunken];
    let text = color(&theme.text_color).map_or_else(|| on(ground), |color| over(&color, ground));
    let text = readable_on(&text, &grounds, BODY_CONTRAST);
    let muted = given(&theme.muted_color).unwrap_or_else(|| mix(&text, ground, 0.3));
    let muted = readable_on(&muted, &grounds, BODY_CONTRAST);
    let line = given(&theme.border_color).unwrap_or_else(|| mix(ground, &text, 0.13));
    let strong = readable_on(&mix(ground, &text, 0.5), &grounds, EDGE_CONTRAST);
    let primary = color(&theme.primary_color).map_or_else(|| text, |color| over(&color, ground));
    let secondary = given(&theme.secondary_color).unwrap_or(primary);
    let soft = beside(&mix(&surface, &primary, 0.1), ground, &ink);
    let link = readable_on(&primary, &[ground, &surface, &sunken, &soft], BODY_CONTRAST);
    let mark = mix(&surface, &secondary, 0.22);
    [
        ("bg", ground),
        ("surface", &surface),
        ("raised", &surface),
        ("sunken", &sunken),
        ("line", &line),
        ("line-strong", &strong),
        ("text", &text),
        ("muted", &muted),
        ("primary", &primary),
        ("on-primary", &on(&primary)),
        ("primary-soft", &soft),
        ("link", &link),
        ("mark", &mark),
        ("on-mark", &readable(&text, &mark, BODY_CONTRAST)),
    ]
    .map(|(name, color)| (name, hex(color)))
    .to_vec()
}

/// Card style as a class.
pub fn card_style(text: Option<&str>) -> CardStyle {
    match text {
        Some("elevated") => CardStyle::Elevated,
        Some("flat") => CardStyle::Flat,
        Some("glass") => CardStyle::Glass,
        _ => CardStyle::Bordered,
    }
}

/// Hover effect as a class.
pub fn hover(text: Option<&str>) -> Hover {
    match text {
        Some("glow") => Hover::Glow,
        Some("scale") => Hover::Scale,
        Some("none") => Hover::Still,
        _ => Hover::Lift,
    }
}

/// A CSS length of the owner, at most `most` pixels: digits and one of px, rem, em.
pub fn length(text: &str, most: f64) -> Option<String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..split]
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    let (unit, pixels) = match &text[split..] {
        "" | "px" => ("px", 1.0),
        "rem" => ("rem", 16.0),
        "em" => ("em", 16.0),
        _ => return None,
    };
    Some(format!("{}{unit}", number.min(most / pixels)))
}

/// What is there already: nothing is fetched, and nothing moves.
const SYSTEM: &str = "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",sans-serif";

/// Families are chosen from a fixed list: no request to a third party, no raw CSS.
pub(crate) fn font_stack(text: &str) -> String {
    known_font(text).unwrap_or(SYSTEM).to_owned()
}

/// The first of the families that is on the list.
pub fn known_font(text: &str) -> Option<&'static str> {
    text.split(',').find_map(|family| {
        let family = family.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
        Some(match family.as_str() {
            "inter" => "Inter,\"Inter fallback\",system-ui,sans-serif",
            "serif" | "georgia" | "times new roman" | "times" | "merriweather" | "lora"
            | "playfair display" | "source serif pro" | "cambria" | "charter" => {
                "Charter,\"Bitstream Charter\",\"Sitka Text\",Cambria,Georgia,serif"
            }
            "monospace" | "ui-monospace" | "menlo" | "courier new" | "jetbrains mono"
            | "fira code" | "consolas" => "ui-monospace,\"Cascadia Code\",Menlo,Consolas,monospace",
            "ui-rounded" | "nunito" | "quicksand" | "rounded" => {
                "ui-rounded,\"Hiragino Maru Gothic ProN\",Quicksand,Nunito,system-ui,sans-serif"
            }
            "helvetica" | "helvetica neue" | "arial" | "roboto" | "segoe ui" => {
                "\"Helvetica Neue\",Helvetica,Arial,sans-serif"
            }
            "verdana" | "tahoma" | "trebuchet ms" => "Verdana,Tahoma,sans-serif",
            "system-ui" | "-apple-system" | "sans-serif" => SYSTEM,
            _ => return None,
        })
    })
}

/// A colour as CSS writes them.
pub fn color(text: &str) -> Option<Color> {
    // Longer texts are no colours; the parser need not see them.
    (text.len() <= 64)
        .then(|| csscolorparser::parse(text).ok())
        .flatten()
        .map(|color| {
            let part = |value: f32| {
                if value.is_finite() {
                    value.clamp(0.0, 1.0)
                } else {
                    0.0
                }
            };
            Color::new(part(color.r), part(color.g), part(color.b), part(color.a))
        })
}

fn hex(color: &Color) -> String {
    let [r, g, b, _] = color.to_rgba8();
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn white() -> Color {
    gray(1.0)
}

fn black() -> Color {
    gray(0.0)
}

fn gray(level: f32) -> Color {
    Color::new(level, level, level, 1.0)
}

fn mix(a: &Color, b: &Color, share: f32) -> Color {
    let part = |x: f32, y: f32| x + (y - x) * share;
    Color::new(part(a.r, b.r), part(a.g, b.g), part(a.b, b.b), 1.0)
}

/// A see-through colour as it looks on a ground.
fn over(color: &Color, ground: &Color) -> Color {
    mix(ground, color, color.a)
}

fn luminance(color: &Color) -> f64 {
    let [r, g, b, _] = color.to_linear_rgba();
    0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
}

/// WCAG contrast of two colours, 1 to 21.
fn contrast(a: &Color, b: &Color) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// White where it reads, else the dark that does: one of the two always passes.
fn on(ground: &Color) -> Color {
    [white(), gray(0.07)]
        .into_iter()
        .find(|color| contrast(color, ground) >= BODY_CONTRAST)
        .unwrap_or_else(black)
}

/// Black or white, whichever stands out more.
fn ink(ground: &Color) -> Color {
    if contrast(&black(), ground) >= contrast(&white(), ground) {
        black()
    } else {
        white()
    }
}

/// A second ground, drawn to the first until one ink serves both: no text could be read on white and on black.
fn beside(color: &Color, ground: &Color, ink: &Color) -> Color {
    (0..=10u8)
        .map(|step| mix(color, ground, f32::from(step) / 10.0))
        .find(|color| contrast(color, ink) >= BODY_CONTRAST + 0.05)
        .unwrap_or(*ground)
}

fn readable(color: &Color, ground: &Color, least: f64) -> Color {
    readable_on(color, &[ground], least)
}

/// The colour, moved towards black or white only as far as every ground needs.
fn readable_on(color: &Color, grounds: &[&Color], least: f64) -> Color {
    let worst = |color: &Color| {
        grounds
            .iter()
            .map(|ground| contrast(color, ground))
            .fold(f64::MAX, f64::min)
    };
    let target = if worst(&black()) >= worst(&white()) {
        black()
    } else {
        white()
    };
    (0..=20u8)
        .map(|step| mix(color, &target, f32::from(step) / 20.0))
        // Rounding to eight bits must not undo it.
        .find(|color| worst(color) >= least + 0.05)
        .unwrap_or(target)
}

#[cfg(test)]
mod tests;
