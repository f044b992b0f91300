//! The pages of `/_auth`: one form each, in the app's own colours.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    passkeys::{self, Passkeys},
    sessions::{self, Session},
};

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
}

/// A way to sign in that is another service's.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its name in the form.
    pub id: String,
    /// What people call it.
    pub label: String,
}

/// One input of a form.
#[derive(Debug, Clone)]
pub struct Field {
    /// Name in the form.
    pub name: &'static str,
    /// What it asks for.
    pub label: &'static str,
    /// `email`, `password`, `text` or `hidden`.
    pub kind: &'static str,
    /// What the browser may fill in.
    pub autocomplete: &'static str,
    /// What is in it already.
    pub value: String,
    /// A line below it.
    pub hint: &'static str,
}

/// A page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Its heading.
    pub title: String,
    /// A sentence below it.
    pub text: String,
    /// What went wrong.
    pub error: Option<String>,
    /// Seconds until another try, where that is what went wrong: a script lets them pass.
    pub wait: Option<u64>,
    /// Other services to sign in with.
    pub providers: Vec<Provider>,
    /// Where the form goes; without one there is none.
    pub action: Option<&'static str>,
    /// Its inputs.
    pub fields: Vec<Field>,
    /// The words of its button.
    pub button: &'static str,
    /// Address and words of further ways.
    pub links: Vec<(String, &'static str)>,
    /// Path of the app that all this leads back to.
    pub return_to: String,
    /// The page tells other tabs, and closes if it is a popup.
    pub done: bool,
    /// What it does with passkeys.
    pub passkeys: Passkeys,
    /// The sessions that it shows.
    pub sessions: Vec<Session>,
}

/// The page as an answer.
pub fn render(status: StatusCode, style: &Style, page: &Page) -> Response {
    let nonce = STANDARD.encode(rand::random::<[u8; 18]>());
    let html = html(style, page, &nonce);
    // A form's way may lead to the service that people sign in with.
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'self'; connect-src 'self'; img-src 'self' https: data:; \
         form-action 'self' https: http://localhost:* http://127.0.0.1:* http://127.0.0.2:*; base-uri 'none'; object-src 'none'; \
         frame-ancestors 'none'"
    );
    let mut response = (status, Body::from(html)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn html(style: &Style, page: &Page, nonce: &str) -> String {
    let (title, name) = (escape(&page.title), escape(&style.name));
    let css = css(style);
    let logo = style.logo.as_deref().filter(|url| is_picture(url));
    let logo = logo.map_or(String::new(), |url| {
        format!(r#"<img class="logo" src="{}" alt="">"#, escape(url))
    });
    let text = paragraph("", &page.text);
    let script = match &page.passkeys {
        _ if page.done => r#"<script src="/_auth/sdk.js"></script>"#,
        Passkeys::None => "",
        _ => r#"<script src="/_auth/passkeys.js" defer></script>"#,
    };
    let asks = page.fields.iter().any(|field| field.kind == PASSWORD);
    let more = if asks || page.wait.is_some() {
        r#"<script src="/_auth/form.js" defer></script>"#
    } else {
        ""
    };
    let error = error(page);
    let (providers, form, links) = (providers(page), form(page), links(page));
    let keys = passkeys::html(&page.passkeys, &page.return_to);
    let sessions = sessions::html(&page.sessions, &page.return_to);
    format!(
        r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>{title} · {name}</title><link rel="icon" href="data:,"><style nonce="{nonce}">{css}</style>{script}{more}</head><body><main>{logo}<p class="app">{name}</p><h1>{title}</h1>{text}{error}{providers}{form}{keys}{sessions}{links}</main></body></html>"#
    )
}

/// The kind of a field that only its own person may read.
const PASSWORD: &str = "password";

/// What went wrong. The seconds that it tells are told to nobody again as they pass.
fn error(page: &Page) -> String {
    let Some(error) = page.error.as_deref() else {
        return String::new();
    };
    let mut text = escape(error);
    if let Some(wait) = page.wait {
        let passing = format!(r#" <span data-wait aria-live="off">{wait}</span> s"#);
        text = text.replacen(&format!(" {wait} s"), &passing, 1);
    }
    format!(r#"<p class="error" role="alert" id="error">{text}</p>"#)
}

fn paragraph(class: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!(r#"<p class="{class}">{}</p>"#, escape(text))
}

fn providers(page: &Page) -> String {
    let return_to = escape(&page.return_to);
    let button = |provider: &Provider| {
        let (id, label) = (escape(&provider.id), escape(&provider.label));
        format!(
            r#"<form method="post" action="/_auth/start"><input type="hidden" name="provider" value="{id}"><input type="hidden" name="return_to" value="{return_to}"><button class="other">Continue with {label}</button></form>"#
        )
    };
    let mut all: String = page.providers.iter().map(button).collect();
    if !all.is_empty() && page.action.is_some() {
        all.push_str(r#"<p class="or">or</p>"#);
    }
    all
}

fn form(page: &Page) -> String {
    let Some(action) = page.action else {
        return String::new();
    };
    let fields: String = page.fields.iter().map(|one| field(one, page)).collect();
    let (return_to, button) = (escape(&page.return_to), escape(page.button));
    format!(
        r#"<form method="post" action="{action}">{fields}<input type="hidden" name="return_to" value="{return_to}"><button>{button}</button></form>"#
    )
}

fn field(field: &Field, page: &Page) -> String {
    let (name, value) = (field.name, escape(&field.value));
    if field.kind == "hidden" {
        return hidden(name, &field.value);
    }
    let (label, kind, fill) = (escape(field.label), field.kind, field.autocomplete);
    let hint = if field.hint.is_empty() {
        String::new()
    } else {
        format!(r#"<small id="{name}-hint">{}</small>"#, escape(field.hint))
    };
    let mut described = String::new();
    if !field.hint.is_empty() {
        described.push_str(&format!("{name}-hint "));
    }
    if page.error.is_some() {
        described.push_str("error");
    }
    let required = if name == "name" { "" } else { " required" };
    let input = format!(
        r#"<label for="{name}">{label}</label><input id="{name}" name="{name}" type="{kind}" autocomplete="{fill}" value="{value}" maxlength="254" aria-describedby="{}"{required}>"#,
        described.trim()
    );
    if kind != PASSWORD {
        return format!("{input}{hint}");
    }
    // Hidden until there is a script that shows anything.
    format!(
        r#"<div class="secret">{input}<button type="button" class="show" data-shows="{name}" aria-controls="{name}" hidden>Show password</button></div>{hint}"#
    )
}

/// An input that nobody sees.
pub(super) fn hidden(name: &str, value: &str) -> String {
    format!(
        r#"<input type="hidden" name="{name}" value="{}">"#,
        escape(value)
    )
}

fn links(page: &Page) -> String {
    let link = |(address, words): &(String, &str)| {
        format!(r#"<a href="{}">{}</a>"#, escape(address), escape(words))
    };
    let all: Vec<String> = page.links.iter().map(link).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(r#"<p class="links">{}</p>"#, all.join(" · "))
}

/// The app's colours, as far as they are colours, with words on them that can be read.
fn css(style: &Style) -> String {
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
    let bad = if dark { "#ff9a9a" } else { "#b42318" };
    format!(
        ":root{{color-scheme:{scheme}}}*{{box-sizing:border-box}}body{{margin:0;min-height:100vh;display:grid;place-items:center;background:{back};color:{words};font:16px/1.5 system-ui,sans-serif}}\
main{{width:min(24rem,100%);padding:2rem 1.25rem}}h1{{font-size:1.5rem;line-height:1.2;margin:0 0 .5rem}}p{{margin:0 0 1rem}}.app{{margin:0;font-weight:600}}.logo{{height:40px;max-width:100%;margin-bottom:1rem}}\
.error{{color:{bad};border-left:3px solid;padding-left:.75rem}}.or{{text-align:center;margin:.75rem 0}}label{{display:block;font-weight:600;margin:.75rem 0 .25rem}}small{{display:block;margin-top:.25rem}}\
input{{width:100%;min-height:44px;padding:.5rem .75rem;border:1px solid {soft};border-radius:8px;background:transparent;color:inherit;font:inherit}}\
button{{width:100%;min-height:44px;margin-top:1rem;border:0;border-radius:8px;background:{primary};color:{on_primary};font:inherit;font-weight:600;cursor:pointer}}\
.other{{margin-top:.5rem;background:transparent;color:inherit;border:1px solid {soft}}}.secret{{position:relative}}\
.show{{position:absolute;top:-.5rem;right:0;width:auto;min-height:36px;margin:0;padding:0 .25rem;background:none;color:inherit;font-weight:400;text-decoration:underline}}:focus-visible{{outline:3px solid {primary};outline-offset:2px}}\
.keys{{list-style:none;margin:1rem 0;padding:0}}.keys li{{display:flex;align-items:center;gap:.75rem;padding:.5rem 0;border-top:1px solid {soft}}}.keys div{{flex:1;min-width:0;overflow-wrap:anywhere}}.keys button{{width:auto;margin:0;padding:0 .75rem}}\
[data-passkey] .error{{margin:1rem 0 0}}.links{{margin-top:1.25rem}}a{{color:inherit}}"
    )
}

/// The contrast that words need to be read (WCAG 2, level AA).
const READABLE: f32 = 4.5;

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

fn is_picture(url: &str) -> bool {
    url.starts_with("https://") || (url.starts_with('/') && !url.starts_with("//"))
}

/// Text that stays text in HTML, in and out of attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::auth::{Passkey, SDK};

    const HOSTILE: &str = r#""><script>alert(1)</script>"#;

    #[test]
    fn nothing_that_was_typed_becomes_markup() {
        let style = Style {
            name: HOSTILE.into(),
            logo: Some("javascript:alert(1)".into()),
            primary: "red;}</style><script>".into(),
            background: "#101014".into(),
            text: HOSTILE.into(),
        };
        let page = Page {
            title: HOSTILE.into(),
            text: HOSTILE.into(),
            error: Some(HOSTILE.into()),
            wait: None,
            providers: vec![Provider {
                id: HOSTILE.into(),
                label: HOSTILE.into(),
            }],
            action: Some("/_auth/sign-in"),
            fields: vec![Field {
                name: "email",
                label: "E-mail",
                kind: "email",
                autocomplete: "username",
                value: HOSTILE.into(),
                hint: "",
            }],
            button: "Sign in",
            links: vec![(HOSTILE.into(), "elsewhere")],
            return_to: HOSTILE.into(),
            passkeys: Passkeys::Own {
                known: vec![Passkey {
                    id: HOSTILE.into(),
                    name: HOSTILE.into(),
                    about: HOSTILE.into(),
                }],
                may_add: true,
            },
            sessions: vec![Session {
                id: HOSTILE.into(),
                name: HOSTILE.into(),
                about: HOSTILE.into(),
            }],
            done: false,
        };
        let html = html(&style, &page, "n");
        let own = r#"<script src="/_auth/passkeys.js" defer></script>"#;
        assert!(html.contains(own), "{html}");
        let html = html.replace(own, "");
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("javascript:"), "{html}");
        assert_eq!(html.matches("</style>").count(), 1);
    }

    #[test]
    fn seconds_pass_where_the_message_tells_them() {
        let mut page = Page {
            error: Some("Too many tries. Wait 2 seconds & try 12 seconds.".into()),
            wait: Some(2),
            ..Page::default()
        };
        let passing =
            "Wait <span data-wait aria-live=\"off\">2</span> seconds &amp; try 12 seconds.";
        let told = html(&Style::default(), &page, "n");
        assert!(told.contains(passing), "{told}");
        assert!(told.contains("/_auth/form.js"), "{told}");
        page.wait = None;
        let told = html(&Style::default(), &page, "n");
        assert!(
            !told.contains("data-wait") && !told.contains("<script"),
            "{told}"
        );
    }

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
    fn the_script_is_small() {
        let mut packed = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut packed, 4096, 11, 22);
        writer.write_all(SDK.as_bytes()).unwrap();
        drop(writer);
        assert!(packed.len() < 8 * 1024, "{} bytes", packed.len());
    }
}
