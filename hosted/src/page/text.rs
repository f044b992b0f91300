//! Texts of strangers and owners: Markdown cleaned, addresses checked, words marked.

use std::collections::HashSet;

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

/// A run of text, marked when it answers the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub text: String,
    pub marked: bool,
}

/// The words of a query that are worth marking.
#[derive(Debug, Clone, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Words of at least two letters.
    pub fn of(query: &str) -> Self {
        let mut words: Vec<String> = words(query)
            .map(|(_, word)| word.to_lowercase())
            .filter(|word| word.chars().count() >= 2)
            .take(32)
            .collect();
        words.dedup();
        // "of the sea": only when the query has nothing better do the small words count.
        let small = [
            "the", "of", "and", "or", "in", "on", "at", "to", "is", "an", "for", "with", "by",
        ];
        if words.iter().any(|word| !small.contains(&word.as_str())) {
            words.retain(|word| !small.contains(&word.as_str()));
        }
        Self(words)
    }

    fn answers(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.0.iter().any(|wanted| {
            word == *wanted
                || (wanted.chars().count() >= 4 && word.starts_with(wanted.as_str()))
                || (word.chars().count() >= 4
                    && wanted
                        .strip_prefix(word.as_str())
                        .is_some_and(|rest| rest.len() <= 2))
        })
    }

    /// The text in runs.
    pub fn runs(&self, text: &str) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut from = 0;
        if !self.0.is_empty() {
            for (at, word) in words(text) {
                if self.answers(word) {
                    if at > from {
                        runs.push(Run {
                            text: text[from..at].to_owned(),
                            marked: false,
                        });
                    }
                    runs.push(Run {
                        text: word.to_owned(),
                        marked: true,
                    });
                    from = at + word.len();
                }
            }
        }
        if from < text.len() {
            runs.push(Run {
                text: text[from..].to_owned(),
                marked: false,
            });
        }
        runs
    }

    /// At most `most` characters, around the first word that answers the query.
    pub fn snippet(&self, text: &str, most: usize) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = words(&text)
            .find(|(_, word)| self.answers(word))
            .map_or(0, |(at, _)| at);
        let before = text[..first].chars().count();
        if before + 20 < most || text.chars().count() <= most {
            return truncate(&text, most);
        }
        let skip = before.saturating_sub(most / 3);
        let tail: String = text.chars().skip(skip).collect();
        // Begin at a word.
        let tail = tail.split_once(' ').map_or(tail.as_str(), |(_, rest)| rest);
        format!("… {}", truncate(tail, most.saturating_sub(2).max(1)))
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(move |word| {
            // The part lies inside the text it was split from.
            (word.as_ptr() as usize - text.as_ptr() as usize, word)
        })
}

/// At most `most` characters, cut at a word where there is one near, with an ellipsis.
pub fn truncate(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let cut = &text[..end];
    let cut = match cut.rfind(char::is_whitespace) {
        Some(space) if cut.len() - space < 24 && space > cut.len() / 2 => &cut[..space],
        _ => cut,
    };
    format!(
        "{}…",
        cut.trim_end_matches(|c: char| c.is_whitespace() || c == ',' || c == ';')
    )
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

    #[test]
    fn marks_fall_on_whole_words_in_any_script() {
        let runs = Marks::of("Hat of größe").runs("The hat that has Größe");
        let marked: Vec<&str> = runs
            .iter()
            .filter(|run| run.marked)
            .map(|run| run.text.as_str())
            .collect();
        assert_eq!(marked, ["hat", "Größe"]);
        assert_eq!(
            runs.iter().map(|run| run.text.as_str()).collect::<String>(),
            "The hat that has Größe"
        );
    }

    #[test]
    fn a_snippet_goes_where_the_answer_is() {
        let text = format!("{} needle in the end", "hay ".repeat(100));
        let snippet = Marks::of("needle").snippet(&text, 60);
        assert!(
            snippet.starts_with("… ")
                && snippet.contains("needle")
                && snippet.chars().count() <= 62
        );
        assert_eq!(truncate("äöü äöü", 5), "äöü…");
    }
}
