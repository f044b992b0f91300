//! The pages of `/_auth`: one form each.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    passkeys::{self, Passkeys},
    sessions::{self, Session},
    style::{Style, css},
};

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
    let icon = style.icon.as_deref().filter(|url| is_picture(url));
    let icon = icon.map_or_else(|| "data:,".to_owned(), escape);
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
        r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>{title} · {name}</title><link rel="icon" href="{icon}"><style nonce="{nonce}">{css}</style>{script}{more}</head><body><main>{logo}<p class="app">{name}</p><h1>{title}</h1>{text}{error}{providers}{form}{keys}{sessions}{links}</main></body></html>"#
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

fn is_picture(url: &str) -> bool {
    url.starts_with("https://") || (url.starts_with('/') && !url.starts_with("//"))
}

/// Text in which days stay on one line: it would wrap at their hyphens.
pub(super) fn dated(text: &str) -> String {
    let is_day = |word: &str| {
        word.len() == 10
            && word.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    };
    let word = |word: &str| match word.trim_end_matches(',') {
        day if is_day(day) => format!("<time>{day}</time>{}", &word[day.len()..]),
        _ => escape(word),
    };
    let words: Vec<String> = text.split(' ').map(word).collect();
    words.join(" ")
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
            surface: Some(HOSTILE.into()),
            border: Some("red;}</style><script>".into()),
            font: "Georgia;}</style><script>".into(),
            radius: Some("4px;}</style><script>".into()),
            icon: Some("javascript:alert(1)".into()),
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
    fn an_icon_is_the_apps_own() {
        for (icon, shown) in [
            (Some("/favicon.svg"), "/favicon.svg"),
            (Some("https://a.example/i.png"), "https://a.example/i.png"),
            (Some("//evil.example/i.png"), "data:,"),
            (None, "data:,"),
        ] {
            let style = Style {
                icon: icon.map(str::to_owned),
                ..Style::default()
            };
            let told = html(&style, &Page::default(), "n");
            let link = format!(r#"<link rel="icon" href="{shown}">"#);
            assert!(told.contains(&link), "{told}");
        }
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
    fn days_are_not_broken() {
        let told = dated("Signed in 2026-11-27, last seen 2026-11-28 <here>");
        assert_eq!(
            told,
            "Signed in <time>2026-11-27</time>, last seen <time>2026-11-28</time> &lt;here&gt;"
        );
        assert_eq!(dated("for 10-20-30.example"), "for 10-20-30.example");
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
