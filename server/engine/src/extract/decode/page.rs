//! A page of the web as a crawler reads it: its text, where it leads, and what it says of itself.

use dom_query::{Document, NodeRef};
use serde::{Deserialize, Serialize};

use super::{TextFile, html};
use crate::extract::{Dropped, ExtractError, Result};

/// Links and pictures of one page that are looked at.
const MOST_LINKS: usize = 2_000;
const MOST_IMAGES: usize = 50;
/// Pieces of code, and characters of one.
const MOST_CODE: usize = 50;
const LONGEST_CODE: usize = 4_000;
/// Characters of an address, and of what is said about something.
const LONGEST: usize = 2_000;
const LONGEST_WORDS: usize = 300;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub href: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub src: String,
    pub alt: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Code {
    pub language: Option<String>,
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebPage {
    /// None where the page holds no text.
    pub text: Option<TextFile>,
    /// What its links are counted from, where it is not its own address.
    pub base: Option<String>,
    /// The address that it says it has.
    pub canonical: Option<String>,
    pub language: Option<String>,
    pub description: Option<String>,
    /// The picture that it shows of itself elsewhere.
    pub picture: Option<String>,
    pub links: Vec<Link>,
    pub images: Vec<Image>,
    pub code: Vec<Code>,
    /// Whether it lets itself be found,
    pub indexed: bool,
    /// and its links be followed.
    pub followed: bool,
    /// Whether it asks for a proof of being human.
    pub challenge: bool,
}

impl Default for WebPage {
    fn default() -> Self {
        Self {
            text: None,
            base: None,
            canonical: None,
            language: None,
            description: None,
            picture: None,
            links: Vec::new(),
            images: Vec::new(),
            code: Vec::new(),
            indexed: true,
            followed: true,
            challenge: false,
        }
    }
}

pub fn decode(text: &str) -> Result<WebPage> {
    if html::depth(text) > html::MAX_DEPTH {
        return Err(ExtractError::permanent(format!(
            "the page nests more than {} elements in each other; it cannot be read",
            html::MAX_DEPTH
        )));
    }
    let document = Document::from(text);
    let (indexed, followed) = robots(&document);
    let mut dropped = Dropped::default();
    let links = first(links(&document), MOST_LINKS, "links", &mut dropped);
    let images = first(images(&document), MOST_IMAGES, "pictures", &mut dropped);
    let (code, more) = code(&document);
    dropped.add_others("pieces of code", more);
    let mut file = html::decode(text).ok().filter(says_something);
    if let Some(file) = &mut file {
        file.gaps.dropped.add(&dropped);
    }
    Ok(WebPage {
        text: file,
        base: attribute(&document, "base[href]", "href"),
        canonical: attribute(&document, "link[rel~=canonical]", "href"),
        language: attribute(&document, "html[lang]", "lang")
            .filter(|language| language.chars().count() <= 35),
        description: attribute(&document, "meta[name=description]", "content"),
        picture: attribute(&document, "meta[property='og:image']", "content"),
        links,
        images,
        code,
        indexed,
        followed,
        challenge: document
            .select(
                ".g-recaptcha, .h-captcha, .cf-turnstile, #challenge-form, #cf-challenge-running",
            )
            .exists(),
    })
}

/// Whether there is a word or a number beside the addresses of links and pictures.
fn says_something(file: &TextFile) -> bool {
    file.pages.iter().any(|page| {
        let mut rest = page.as_str();
        while let Some((before, after)) = rest.split_once("](") {
            if before.contains(char::is_alphanumeric) {
                return true;
            }
            rest = after.split_once(')').map_or("", |(_, behind)| behind);
        }
        rest.contains(char::is_alphanumeric)
    })
}

/// A text as it is told: without blanks around it, and not endless.
fn words(text: &str, most: usize) -> Option<String> {
    let text: Vec<&str> = text.split_whitespace().collect();
    let text: String = text.join(" ").chars().take(most).collect();
    (!text.is_empty()).then_some(text)
}

fn attribute(document: &Document, place: &str, name: &str) -> Option<String> {
    let found = document.select(place);
    let value = found.nodes().first()?.attr(name)?;
    words(&value, LONGEST)
}

/// What the page asks of crawlers: whether it may be found, and its links followed.
fn robots(document: &Document) -> (bool, bool) {
    let mut asked = String::new();
    for node in document.select("meta[name][content]").nodes() {
        let name = node.attr("name").unwrap_or_default().to_ascii_lowercase();
        if name == "robots" || name == crate::crawl::robots::AGENT {
            asked.push_str(
                &node
                    .attr("content")
                    .unwrap_or_default()
                    .to_ascii_lowercase(),
            );
            asked.push(',');
        }
    }
    let says = |word: &str| asked.split(',').any(|one| one.trim() == word);
    let none = says("none");
    (!(none || says("noindex")), !(none || says("nofollow")))
}

/// As many as are looked at; the others are counted.
fn first<T>(mut found: Vec<T>, most: usize, name: &str, dropped: &mut Dropped) -> Vec<T> {
    dropped.add_others(name, found.len().saturating_sub(most));
    found.truncate(most);
    found
}

fn links(document: &Document) -> Vec<Link> {
    let found = document.select("a[href], area[href]");
    let link = |node: &NodeRef| {
        let href = node.attr("href")?.trim().to_owned();
        let usable = !href.is_empty() && href.len() <= LONGEST && !href.starts_with('#');
        usable.then(|| Link {
            href,
            text: words(&node.text(), LONGEST_WORDS).unwrap_or_default(),
        })
    };
    found.nodes().iter().filter_map(link).collect()
}

fn images(document: &Document) -> Vec<Image> {
    let found = document.select("img[src]");
    let image = |node: &NodeRef| {
        let src = node.attr("src")?.trim().to_owned();
        let usable = !src.is_empty() && src.len() <= LONGEST && !src.starts_with("data:");
        usable.then(|| Image {
            src,
            alt: node
                .attr("alt")
                .and_then(|alt| words(&alt, LONGEST_WORDS))
                .unwrap_or_default(),
        })
    };
    found.nodes().iter().filter_map(image).collect()
}

/// The first pieces of code, and how many more there are: the text of one may hold all the others.
fn code(document: &Document) -> (Vec<Code>, usize) {
    let found = document.select("pre");
    let piece = |node: &NodeRef| {
        let text: String = node.text().trim().chars().take(LONGEST_CODE).collect();
        let inner = node.attr("class").into_iter();
        let inside = node
            .descendants()
            .into_iter()
            .take(3)
            .filter_map(|one| one.attr("class"));
        let language = inner.chain(inside).find_map(|classes| language(&classes));
        (!text.is_empty()).then_some(Code {
            language,
            code: text,
        })
    };
    let mut nodes = found.nodes().iter();
    let kept: Vec<Code> = nodes.by_ref().filter_map(piece).take(MOST_CODE).collect();
    (kept, nodes.len())
}

/// `language-rust` and `lang-rust`, as pages say it.
fn language(classes: &str) -> Option<String> {
    let mut names = classes.split_whitespace();
    names.find_map(|class| {
        let name = class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))?;
        words(name, 40)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_of_itself() {
        let page = decode(
            "<!doctype html><html lang=de><head><title>Start</title><base href='/x/'>\
             <link rel='canonical' href='/start'><meta name=description content='  Was  es gibt '>\
             <meta property='og:image' content='/p.png'><meta name=robots content='NOFOLLOW, noarchive'></head>\
             <body><p>Hier steht, was es alles gibt und wo man es findet.</p>\
             <A class=l HREF='../y?a=1&amp;b=2'> Zum\n Y </A><a href='#top'>hinauf</a><a>nichts</a>\
             <img src=a.png alt='Ein Bild'><img src='data:image/png;base64,AA'>\
             <pre><code class='hl language-rust'>fn main() {}</code></pre>",
        )
        .unwrap();
        assert_eq!(page.base.as_deref(), Some("/x/"));
        assert_eq!(page.canonical.as_deref(), Some("/start"));
        assert_eq!(page.language.as_deref(), Some("de"));
        assert_eq!(page.description.as_deref(), Some("Was es gibt"));
        assert_eq!(page.picture.as_deref(), Some("/p.png"));
        assert_eq!(
            (page.indexed, page.followed, page.challenge),
            (true, false, false)
        );
        assert_eq!(page.links.len(), 1, "{:?}", page.links);
        assert_eq!(
            (page.links[0].href.as_str(), page.links[0].text.as_str()),
            ("../y?a=1&b=2", "Zum Y")
        );
        assert_eq!(page.images.len(), 1);
        assert_eq!(page.code[0].language.as_deref(), Some("rust"));
        let file = page.text.unwrap();
        assert!(file.pages[0].contains("was es alles gibt"));
        assert!(file.gaps.dropped.is_empty(), "{:?}", file.gaps);
    }

    #[test]
    fn pictures_beyond_the_first_are_counted() {
        let words = "<p>Words enough to be the text of a page that shows many pictures.</p>";
        let page = decode(&format!("{words}{}", "<img src=a.png>".repeat(53))).unwrap();
        assert_eq!(page.images.len(), MOST_IMAGES);
        let dropped = page.text.unwrap().gaps.dropped;
        assert_eq!(dropped.told(), "left out: 3 pictures");
    }

    #[test]
    fn broken_and_empty_pages_are_read_as_far_as_they_go() {
        let page = decode("<div><p>A paragraph that <b>never <i>ends<a href=/x>on").unwrap();
        assert_eq!(page.links[0].href, "/x");
        let empty = decode("<!doctype html><script>draw()</script><a href='/next'></a>").unwrap();
        assert!(empty.text.is_none());
        assert_eq!(empty.links[0].href, "/next");
        let asks = decode("<p>Prove it<div class='g-recaptcha'></div>").unwrap();
        assert!(asks.challenge);
        let hidden = decode("<meta name=Robots content=none><p>Hidden words").unwrap();
        assert!(!hidden.indexed && !hidden.followed);
        assert!(decode(&"<b>".repeat(5_000)).is_err());
    }
}
