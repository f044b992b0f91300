//! What the pages of `/_auth` look like: the app's own colours, families and corners, as far as they can be read.

use crate::page::theme;

/// What an app's pages look like.
#[derive(Debug, Clone, Default)]
pub struct Style {
    /// The app's name.
    pub name: String,
    /// Its picture, https or a path.
    pub logo: Option<String>,
    /// Colours as its theme writes them; one that cannot be read is left out.
    pub primary: String,
    /// Behind everything.
    pub background: String,
    /// Of words.
    pub text: String,
    /// Of what is written into, and of lines around it.
    pub surface: Option<String>,
    /// As above.
    pub border: Option<String>,
    /// Families as its theme writes them.
    pub font: String,
    /// Length as its theme writes it.
    pub radius: Option<String>,
    /// Its icon, https or a path.
    pub icon: Option<String>,
}

/// The app's colours, as far as they are colours, with words on them that can be read.
pub(super) fn css(style: &Style) -> String {
    let colour = |text: &str| csscolorparser::parse(text).ok();
    let background = colour(&style.background);
    let dark = background
        .as_ref()
        .is_some_and(|colour| luminance(colour) < 0.3);
    let back = background.as_ref().map_or_else(
        || "#fff".to_owned(),
        |colour| colour.to_css_hex().to_string(),
    );
    let words = words(style, background.as_ref(), dark);
    let surface = surface(style, &words).unwrap_or_else(|| "transparent".to_owned());
    let primary =
        colour(&style.primary).unwrap_or(csscolorparser::Color::new(0.23, 0.36, 0.86, 1.0));
    let on_primary = if luminance(&primary) > 0.18 {
        "#000"
    } else {
        "#fff"
    };
    let primary = primary.to_css_hex().to_string();
    let (soft, scheme) = if dark {
        ("#ffffff24", "dark")
    } else {
        ("#0000002e", "light")
    };
    let line = line(style, background.as_ref()).unwrap_or_else(|| soft.to_owned());
    let font = theme::font_stack(&style.font);
    let radius = style.radius.as_deref();
    let radius = radius.and_then(|radius| theme::length(radius, ROUNDEST));
    let radius = radius.unwrap_or_else(|| "8px".to_owned());
    let bad = if dark { "#ff9a9a" } else { "#b42318" };
    format!(
        ":root{{color-scheme:{scheme}}}*{{box-sizing:border-box}}body{{margin:0;min-height:100vh;display:grid;place-items:center;background:{back};color:{words};font:16px/1.5 {font}}}\
main{{width:min(24rem,100%);padding:2rem 1.25rem}}h1{{font-size:1.5rem;line-height:1.2;margin:0 0 .5rem}}p{{margin:0 0 1rem}}.app{{margin:0;font-weight:600}}.logo{{height:40px;max-width:100%;margin-bottom:1rem}}\
.error{{color:{bad};border-left:3px solid;padding-left:.75rem}}.or{{text-align:center;margin:.75rem 0}}label{{display:block;font-weight:600;margin:.75rem 0 .25rem}}small{{display:block;margin-top:.25rem}}\
input{{width:100%;min-height:44px;padding:.5rem .75rem;border:1px solid {line};border-radius:{radius};background:{surface};color:inherit;font:inherit}}\
button{{width:100%;min-height:44px;margin-top:1rem;border:0;border-radius:{radius};background:{primary};color:{on_primary};font:inherit;font-weight:600;cursor:pointer}}\
.other{{margin-top:.5rem;background:{surface};color:inherit;border:1px solid {line}}}.secret{{position:relative}}\
.show{{position:absolute;top:-.5rem;right:0;width:auto;min-height:36px;margin:0;padding:0 .25rem;background:none;color:inherit;font-weight:400;text-decoration:underline}}:focus-visible{{outline:3px solid {primary};outline-offset:2px}}\
.keys{{list-style:none;margin:1rem 0;padding:0}}.keys li{{display:flex;align-items:center;gap:.75rem;padding:.5rem 0;border-top:1px solid {line}}}.keys div{{flex:1;min-width:0;overflow-wrap:anywhere}}.keys button{{width:auto;margin:0;padding:0 .75rem}}\
[data-passkey] .error{{margin:1rem 0 0}}.links{{margin-top:1.25rem}}a{{color:inherit}}time{{white-space:nowrap}}"
    )
}

/// The contrast that words need to be read (WCAG 2, level AA).
const READABLE: f32 = 4.5;

/// The contrast of lines where a theme says nothing of them.
const SEEN: f32 = 1.5;

/// Pixels of the roundest corners.
const ROUNDEST: f64 = 40.0;

/// The colour of words: the app's own where everybody can read it, else one that fits the background.
fn words(style: &Style, background: Option<&csscolorparser::Color>, dark: bool) -> String {
    let own = csscolorparser::parse(&style.text).ok();
    let white = csscolorparser::Color::new(1.0, 1.0, 1.0, 1.0);
    let back = background.unwrap_or(&white);
    // What shines through is not known.
    let is_read = |own: &csscolorparser::Color| {
        own.a >= 1.0 && back.a >= 1.0 && contrast(own, back) >= READABLE
    };
    match own.filter(is_read) {
        Some(own) => own.to_css_hex().to_string(),
        None if dark => "#f4f5f7".to_owned(),
        None => "#1a1d24".to_owned(),
    }
}

/// What is written into has the app's own ground where the words are read on it, too.
fn surface(style: &Style, words: &str) -> Option<String> {
    let own = csscolorparser::parse(style.surface.as_deref()?).ok()?;
    let words = csscolorparser::parse(words).ok()?;
    let is_read = own.a >= 1.0 && contrast(&words, &own) >= READABLE;
    is_read.then(|| own.to_css_hex().to_string())
}

/// The app's own lines, unless they are fainter than those without a theme.
fn line(style: &Style, background: Option<&csscolorparser::Color>) -> Option<String> {
    let own = csscolorparser::parse(style.border.as_deref()?).ok()?;
    let white = csscolorparser::Color::new(1.0, 1.0, 1.0, 1.0);
    let back = background.unwrap_or(&white);
    let is_seen = own.a >= 1.0 && back.a >= 1.0 && contrast(&own, back) >= SEEN;
    is_seen.then(|| own.to_css_hex().to_string())
}

fn contrast(one: &csscolorparser::Color, other: &csscolorparser::Color) -> f32 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: &csscolorparser::Color) -> f32 {
    let linear = |part: f32| {
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(colour.r) + 0.7152 * linear(colour.g) + 0.0722 * linear(colour.b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_apps_colour_where_it_can_be_read() {
        for (background, text, words) in [
            ("#fff8e7", "#5b3a29", "#5b3a29"),
            ("#101014", "#ffe9c0", "#ffe9c0"),
            ("", "#767676", "#767676"),
            ("", "#777777", "#1a1d24"),
            ("#101014", "#374151", "#f4f5f7"),
            ("#ffffff", "#37415180", "#1a1d24"),
            ("#ffffff00", "#374151", "#1a1d24"),
            ("#ffffff", "red;}", "#1a1d24"),
        ] {
            let style = Style {
                background: background.into(),
                text: text.into(),
                ..Style::default()
            };
            let css = css(&style);
            let found = format!(";color:{words};font:16px");
            assert!(css.contains(&found), "{background} {text}: {css}");
        }
    }

    #[test]
    fn forms_look_as_the_theme_says_where_they_can_be_read() {
        let of = |surface: &str, border: &str, font: &str, radius: &str| {
            css(&Style {
                background: "#fff8e7".into(),
                text: "#5b3a29".into(),
                surface: Some(surface.into()),
                border: Some(border.into()),
                font: font.into(),
                radius: Some(radius.into()),
                ..Style::default()
            })
        };
        let own = of("#fffdf5", "#5b3a29", "Georgia, serif", "2px");
        let input = "border:1px solid #5b3a29;border-radius:2px;background:#fffdf5;";
        assert!(
            own.contains(input) && own.contains("Georgia,serif"),
            "{own}"
        );
        // No word is read on the one, nobody sees the other, and the rest is no CSS of the grammar.
        let other = of("#5b3a29", "#fff8e8", "evil;}", "expression(1)");
        let input = "border:1px solid #0000002e;border-radius:8px;background:transparent;";
        assert!(other.contains(input) && !other.contains("evil"), "{other}");
        assert!(of("", "", "", "9000px").contains("border-radius:40px"));
    }
}
