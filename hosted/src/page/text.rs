//! Texts of strangers and owners: Markdown cleaned, addresses checked, words marked.

use std::collections::HashSet;

pub use loupe_wire::marks::{Marks, truncate};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use url::Url;

/// Markdown as clean HTML. Headings start at the third level: the page owns the first two.
pub fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let lower = |level| match level {
        HeadingLevel::H1 | HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        _ => HeadingLevel::H5,
    };
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Start(Tag::Heading {
            level,
            id,
            classes,
            attrs,
        }) => Event::Start(Tag::Heading {
            level: lower(level),
            id,
            classes,
            attrs,
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        // Written as text: a reader sees what the owner typed, and no HTML gets in.
        Event::Html(html) | Event::InlineHtml(html) => {
            Event::Text(CowStr::from(html.into_string()))
        }
        other => other,
    });
    let mut html = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut html, events);
    ammonia::Builder::default()
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean(&html)
        .to_string()
}

/// An address safe in `href` and `src`: http, https, or a path on this origin.
pub fn safe_url(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > 4096 || text.chars().any(|c| c.is_control() || c == '\\') {
        return None;
    }
    if text.starts_with('/') {
        return (!text.starts_with("//")).then(|| text.to_owned());
    }
    let url = Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// As [`safe_url`], and addresses of mail too.
pub fn safe_link(text: &str) -> Option<String> {
    safe_url(text).or_else(|| {
        let url = Url::parse(text.trim()).ok()?;
        (url.scheme() == "mailto").then(|| url.into())
    })
}

/// Host of an address, without `www.`.
pub fn domain(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    url.host_str()
        .map(|host| host.trim_start_matches("www.").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_keeps_words_and_drops_power() {
        let html = markdown(
            "# Top\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) [y](https://e.org) **b**",
        );
        assert!(html.contains("<h3>Top</h3>") && html.contains("<strong>b</strong>"));
        assert!(!html.contains("<script") && !html.contains("href=\"javascript"));
        assert!(html.contains("href=\"https://e.org\"") && html.contains("nofollow"));
    }

    #[test]
    fn only_web_addresses_pass() {
        for bad in [
            "javascript:alert(1)",
            "//evil.example/x",
            "data:text/html,x",
            " java\nscript:x",
            "/\\evil",
            "vbscript:x",
        ] {
            assert_eq!(safe_url(bad), None, "{bad}");
        }
        assert_eq!(safe_url("/v1/x?y=1").as_deref(), Some("/v1/x?y=1"));
        assert_eq!(safe_link("mailto:a@b.c").as_deref(), Some("mailto:a@b.c"));
    }
}
