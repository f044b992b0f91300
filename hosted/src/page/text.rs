//! Texts of strangers and owners: Markdown cleaned, addresses checked, words marked.

use std::collections::HashSet;

pub use loupe_wire::marks::{Marks, truncate};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use url::Url;

/// Markdown as clean HTML. Headings start at the third level: the page owns the first two.
pub fn markdown(text: &str) -> String {
    html(events(text))
}

/// A text of Markdown, the heading that it begins with apart.
pub struct Titled {
    pub heading: Option<Heading>,
    pub rest: String,
}

pub struct Heading {
    /// Its words alone.
    pub words: String,
    /// Clean HTML, to stand inside of a heading.
    pub html: String,
}

/// Markdown as clean HTML, for places that show a title above it.
pub fn titled(text: &str) -> Titled {
    let mut all: Vec<Event<'_>> = events(text).collect();
    let is_end = |event: &Event<'_>| matches!(event, Event::End(TagEnd::Heading(_)));
    let end = match all.first() {
        Some(Event::Start(Tag::Heading { .. })) => all.iter().position(is_end),
        _ => None,
    };
    let words = end.map(|end| words(&all[..end])).unwrap_or_default();
    // A heading of a picture alone names nothing.
    let Some(end) = end.filter(|_| !words.is_empty()) else {
        return Titled {
            heading: None,
            rest: html(all.into_iter()),
        };
    };
    let rest = all.split_off(end + 1);
    let inside = all.into_iter().take(end).skip(1);
    Titled {
        heading: Some(Heading {
            words,
            html: html(inside),
        }),
        rest: html(rest.into_iter()),
    }
}

fn words(events: &[Event<'_>]) -> String {
    let words = events.iter().filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(&**text),
        Event::SoftBreak | Event::HardBreak => Some(" "),
        _ => None,
    });
    words.collect::<String>().trim().to_owned()
}

fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    Parser::new_ext(text, options).map(|event| match event {
        // Written as text: a reader sees what the owner typed, and no HTML gets in.
        Event::Html(html) | Event::InlineHtml(html) => {
            Event::Text(CowStr::from(html.into_string()))
        }
        other => other,
    })
}

fn html<'a>(events: impl Iterator<Item = Event<'a>>) -> String {
    let mut levels = Levels::default();
    let events = events.map(|event| match event {
        Event::Start(Tag::Heading {
            level,
            id,
            classes,
            attrs,
        }) => Event::Start(Tag::Heading {
            level: levels.enter(level),
            id,
            classes,
            attrs,
        }),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(levels.here())),
        other => other,
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    ammonia::Builder::default()
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean(&html)
        .to_string()
}

/// The levels of a text's headings on the page: none is left out on the way down, whichever the text begins with.
#[derive(Default)]
struct Levels {
    /// As they are written: that of the last heading, and of those that it is beneath.
    open: Vec<HeadingLevel>,
}

impl Levels {
    fn enter(&mut self, written: HeadingLevel) -> HeadingLevel {
        self.open.retain(|above| *above < written);
        self.open.push(written);
        self.here()
    }

    fn here(&self) -> HeadingLevel {
        match self.open.len() {
            0 | 1 => HeadingLevel::H3,
            2 => HeadingLevel::H4,
            3 => HeadingLevel::H5,
            _ => HeadingLevel::H6,
        }
    }
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

/// A text that begins with a capital letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
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
    fn headings_lie_one_below_the_other() {
        let tags = |text: &str| {
            let html = markdown(text);
            let starts = html
                .match_indices("<h")
                .map(|(at, _)| html[at + 1..at + 3].to_owned());
            starts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(tags("# a\n## b\n### c\n## d\n# e"), "h3 h4 h5 h4 h3");
        assert_eq!(tags("### a\n# b\n#### c\n###### d"), "h3 h3 h4 h5");
        assert_eq!(tags("# a\n## b\n### c\n#### d\n##### e"), "h3 h4 h5 h6 h6");
    }

    #[test]
    fn a_text_may_begin_with_its_title() {
        let of = |text: &str| {
            let Titled { heading, rest } = titled(text);
            let heading = heading.map(|heading| (heading.words, heading.html.trim().to_owned()));
            (heading, rest.trim().to_owned())
        };
        let own = Some(("A b".to_owned(), "A <em>b</em>".to_owned()));
        assert_eq!(of("## A *b*\n### c"), (own, "<h3>c</h3>".to_owned()));
        assert_eq!(of("c\n# A"), (None, "<p>c</p>\n<h3>A</h3>".to_owned()));
        assert_eq!(of("#\n\nc").0, None);
        assert_eq!(of("").0, None);
        let (heading, _) = of("# <script>x</script> [y](javascript:z)");
        let html = heading.unwrap().1;
        assert!(
            !html.contains("<script") && !html.contains("href"),
            "{html}"
        );
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
