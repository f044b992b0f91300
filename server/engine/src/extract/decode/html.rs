//! Web pages to Markdown: the article where there is one, else the whole body.

use dom_smoothie::{Config, Readability};
use htmd::HtmlToMarkdown;
use loupe_wire::Object;

use super::{Format, Gaps, TextFile};
use crate::extract::{ExtractError, Result};

/// Deeper pages are attacks: parsers walk the tree by recursion.
pub const MAX_DEPTH: usize = 1_000;

/// An article shorter than this share of the body's text lost something: the body is taken.
const MIN_SHARE: f64 = 0.2;

const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "iframe", "head", "nav", "form", "button",
];

/// Elements that never have an end tag.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

pub fn decode(html: &str) -> Result<TextFile> {
    let depth = depth(html);
    if depth > MAX_DEPTH {
        return Err(ExtractError::permanent(format!(
            "the page nests more than {MAX_DEPTH} elements in each other; it cannot be read"
        )));
    }
    let body = markdown(html)?;
    let (title, article) = article(html);
    let text = match article {
        Some(article) if article.len() as f64 >= body.len() as f64 * MIN_SHARE => article,
        _ => body,
    };
    if text.trim().is_empty() {
        return Err(ExtractError::permanent("the page holds no text"));
    }
    Ok(TextFile {
        format: Format::Html,
        title,
        pages: vec![text.trim().to_owned()],
        info: Object::new(),
        gaps: Gaps::default(),
    })
}

/// The whole body of a page as Markdown, when it is not too deep to be read.
pub fn body(html: &str) -> Option<String> {
    if depth(html) > MAX_DEPTH {
        return None;
    }
    let text = markdown(html).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.replace('\0', ""))
}

/// The title and the main text of a page, when it has one.
fn article(html: &str) -> (Option<String>, Option<String>) {
    let config = Config {
        max_elements_to_parse: 100_000,
        ..Config::default()
    };
    let Ok(mut reader) = Readability::new(html, None, Some(config)) else {
        return (None, None);
    };
    let title = reader.get_article_title().trim().to_owned();
    let title = (!title.is_empty()).then_some(title);
    let article = reader
        .parse()
        .ok()
        .and_then(|article| markdown(&article.content).ok());
    (title, article)
}

fn markdown(html: &str) -> Result<String> {
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .build();
    converter
        .convert(html)
        .map_err(|error| ExtractError::permanent(format!("the page cannot be read: {error}")))
}

/// How deep the tags nest at most. Counted on the text: parsers that build a tree may not be asked.
pub fn depth(html: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
        } else if let Some(end_tag) = rest.strip_prefix('/') {
            if end_tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
                open = open.saturating_sub(1);
            }
        } else if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let length = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(rest.len());
            let name = rest[..length].to_ascii_lowercase();
            if !VOID.contains(&name.as_str()) {
                open += 1;
                deepest = deepest.max(open);
            }
            rest = &rest[length..];
            if name == "script" || name == "style" {
                rest = rest.find("</").map_or("", |end| &rest[end..]);
            }
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_open_elements() {
        assert_eq!(depth("<html><body><p>a<br>b</p><p>c</p></body></html>"), 3);
        assert_eq!(
            depth("<div><!-- <div><div> --><script>if (a<b) '<div>'</script></div>"),
            2
        );
        assert_eq!(depth(&"<b>".repeat(2_000)), 2_000);
    }
}
