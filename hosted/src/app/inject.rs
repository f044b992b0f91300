//! The sign-in script goes into every page of an app, first in its head.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lol_html::{
    HandlerResult, HandlerTypes, HtmlRewriter, MemorySettings, RewriteStrSettings, Settings,
    bail_out, element, end,
    errors::RewritingError,
    html_content::{ContentType, Element},
    rewrite_str, send,
};

use super::permit;

/// The page with the script, and the configuration it reads, before everything else of the head. A page without a head gets
/// them behind its document type. A policy that the page says of itself gets room for what lies at `place`.
pub fn inject(page: &str, config: &str, place: &str) -> String {
    let tag = tag(config);
    let done = Cell::new(false);
    let head = element!("head", |head| {
        if !done.replace(true) {
            head.prepend(&tag, ContentType::Html);
        }
        Ok(())
    });
    let policy = element!(POLICY, |meta| make_room(meta, place));
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(head)
        .append_element_content_handler(policy);
    // What the parser cannot read, such as a tag longer than its memory, is left as its owner wrote it.
    let rewritten = rewrite_str(page, settings).unwrap_or_else(|_| page.to_owned());
    if done.get() {
        return rewritten;
    }
    let at = after_doctype(&rewritten);
    let (start, rest) = rewritten.split_at(at);
    format!("{start}{tag}{rest}")
}

fn tag(config: &str) -> String {
    let config = escaped(config);
    format!(r#"<script src="/_auth/sdk.js" data-config="{config}"></script>"#)
}

/// Bytes that are held of a page on its way: a tag until it is whole, and the names of those that are open.
const MEMORY: usize = 1 << 20;

/// Bytes that are parsed at once: together with what is held they are within its bounds, unless one tag is not.
const PART: usize = 64 << 10;

/// What a page says of itself in place of headers.
const POLICY: &str = "meta[http-equiv][content]";

/// Lets the script in where a page says a policy.
fn make_room<H: HandlerTypes>(meta: &mut Element<'_, '_, H>, place: &str) -> HandlerResult {
    let kind = meta.get_attribute("http-equiv").unwrap_or_default();
    let is_policy = kind.trim().eq_ignore_ascii_case("content-security-policy");
    let own = meta.get_attribute("content").filter(|_| is_policy);
    if let Some(own) = own.and_then(|own| decoded(&own)) {
        let permitted = permit(&own, place);
        if permitted != own {
            // Quotation marks are written by the parser.
            meta.set_attribute("content", &permitted.replace('&', "&amp;"))?;
        }
    }
    Ok(())
}

type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// A page on its way, too large to be held: pieces go in, and come out with the script among them. A page without a head gets it
/// before its first element.
pub struct Injector {
    /// Absent once the page had a tag that is too long to be held: the rest goes by as it came.
    rewriter: Option<send::HtmlRewriter<'static, Sink>>,
    made: Arc<Mutex<Vec<u8>>>,
}

impl Injector {
    /// As [`inject`], for a page that comes in pieces.
    pub fn new(config: &str, place: &str) -> Self {
        let (tag, place) = (tag(config), place.to_owned());
        let done = Arc::new(AtomicBool::new(false));
        let (last, told) = (tag.clone(), done.clone());
        let (early, given) = (tag.clone(), done.clone());
        let script = move |element: &mut send::Element<'_, '_>| -> HandlerResult {
            let name = element.tag_name();
            if name == "html" || done.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            match name.as_str() {
                "head" => element.prepend(&tag, ContentType::Html),
                _ => element.before(&tag, ContentType::Html),
            }
            Ok(())
        };
        let policy = move |meta: &mut send::Element<'_, '_>| make_room(meta, &place);
        let settings = Settings::new_send()
            // What the parser is not sure of goes on as it came.
            .with_strict(false)
            .with_memory_settings(
                MemorySettings::new()
                    .with_max_allowed_memory_usage(MEMORY)
                    .with_graceful_bail_out_on_memory_limit_exceeded(true),
            )
            .append_bail_out_handler(bail_out!(move |_, page| {
                if !given.swap(true, Ordering::Relaxed) {
                    page.append(&early, ContentType::Html);
                }
            }))
            .append_element_content_handler(element!("*", script))
            .append_element_content_handler(element!(POLICY, policy))
            .append_document_content_handler(end!(move |end| {
                if !told.swap(true, Ordering::Relaxed) {
                    end.append(&last, ContentType::Html);
                }
                Ok(())
            }));
        let made = Arc::new(Mutex::new(Vec::new()));
        let kept = made.clone();
        let sink: Sink = Box::new(move |piece: &[u8]| lock(&kept).extend_from_slice(piece));
        Self {
            rewriter: Some(HtmlRewriter::new(settings, sink)),
            made,
        }
    }

    /// What goes on once this piece has come.
    ///
    /// # Errors
    /// The page cannot be read; nothing more goes on.
    pub fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, RewritingError> {
        for part in piece.chunks(PART) {
            let Some(rewriter) = &mut self.rewriter else {
                lock(&self.made).extend_from_slice(part);
                continue;
            };
            if !goes_on(rewriter.write(part))? {
                self.rewriter = None;
            }
        }
        Ok(std::mem::take(&mut *lock(&self.made)))
    }

    /// What goes on once the last piece has come.
    ///
    /// # Errors
    /// The page cannot be read.
    pub fn end(self) -> Result<Vec<u8>, RewritingError> {
        if let Some(rewriter) = self.rewriter {
            goes_on(rewriter.end())?;
        }
        Ok(std::mem::take(&mut *lock(&self.made)))
    }
}

/// Whether the parser goes on. What it could not hold has come out as it was, and all that follows has to.
fn goes_on(outcome: Result<(), RewritingError>) -> Result<bool, RewritingError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(RewritingError::MemoryLimitExceeded(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock(made: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

fn after_doctype(page: &str) -> usize {
    let start = page.len()
        - page
            .trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t'])
            .len();
    let rest = &page[start..];
    let is_doctype = rest
        .get(..9)
        .is_some_and(|word| word.eq_ignore_ascii_case("<!doctype"));
    match rest.find('>') {
        Some(end) if is_doctype => start + end + 1,
        _ => start,
    }
}

/// The text of an attribute as browsers read it; absent where it is written with marks that are not known here.
fn decoded(text: &str) -> Option<String> {
    const MARKS: [(&str, char); 5] = [
        ("&#39;", '\''),
        ("&#x27;", '\''),
        ("&apos;", '\''),
        ("&quot;", '"'),
        ("&amp;", '&'),
    ];
    let (mut read, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('&') {
        let (before, mark) = rest.split_at(at);
        read.push_str(before);
        let known = MARKS.iter().find(|(known, _)| mark.starts_with(*known));
        let (long, letter) = match known {
            Some((known, letter)) => (known.len(), *letter),
            None if is_mark(mark) => return None,
            None => (1, '&'),
        };
        read.push(letter);
        rest = &mark[long..];
    }
    read.push_str(rest);
    Some(read)
}

/// Whether browsers may read another letter where a text goes on with this: a number or a name, unless it is one of an address,
/// such as `&page=`.
fn is_mark(text: &str) -> bool {
    let name = text.strip_prefix('&').unwrap_or(text);
    let after = name.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    name.starts_with('#') || (after.len() < name.len() && !after.starts_with('='))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    const PLACE: &str = "https://a.example/_auth/";

    fn inject(page: &str, config: &str) -> String {
        super::inject(page, config, PLACE)
    }

    #[test]
    fn the_script_is_first_in_the_head() {
        let page = "<!doctype html><html><!-- <head> --><head class=x><title>A</title></head><body><script>'<head>'</script></body></html>";
        let made = inject(page, r#"{"a":"<&>"}"#);
        let tag = r#"<head class=x><script src="/_auth/sdk.js" data-config="{&quot;a&quot;:&quot;&lt;&amp;&gt;&quot;}"></script><title>"#;
        assert!(made.contains(tag), "{made}");
        assert_eq!(made.matches("/_auth/sdk.js").count(), 1);
    }

    #[test]
    fn a_policy_of_the_page_gets_room_for_the_script() {
        let page = |policy: &str| {
            format!(
                r#"<head><meta http-equiv="Content-Security-policy" content="{policy}"></head>"#
            )
        };
        for (own, expected) in [
            ("default-src 'self'", "default-src 'self'"),
            (
                "script-src &#39;self&#39;; connect-src https://x.example/?a&amp;b",
                "script-src 'self'; connect-src https://x.example/?a&amp;b PLACE",
            ),
            (
                "connect-src https://x.example/?a&b=1&&amp;c=2",
                "connect-src https://x.example/?a&amp;b=1&amp;&amp;c=2 PLACE",
            ),
            // What this parser does not read as a browser does is left alone.
            (
                "connect-src&#32;'none'; img-src x&amp;y",
                "connect-src&#32;'none'; img-src x&amp;y",
            ),
            ("connect-src 'none'&semi; x", "connect-src 'none'&semi; x"),
            ("connect-src 'none' &amp", "connect-src 'none' &amp"),
            ("&#115;cript-src 'none'", "&#115;cript-src 'none'"),
        ] {
            let made = inject(&page(own), "{}");
            let expected = expected.replace("PLACE", PLACE);
            assert!(made.contains(&format!(r#"content="{expected}""#)), "{made}");
        }
        let other = r#"<head><meta name=x content="default-src 'none'"><meta http-equiv=refresh content="9"></head>"#;
        assert!(inject(other, "{}").ends_with(&other[6..]));
    }

    /// The page with the script, cut anywhere on its way.
    fn in_pieces(page: &str, long: usize) -> String {
        let mut injector = super::Injector::new("{}", PLACE);
        let mut made = Vec::new();
        for piece in page.as_bytes().chunks(long) {
            made.extend(injector.write(piece).unwrap());
        }
        made.extend(injector.end().unwrap());
        String::from_utf8(made).unwrap()
    }

    #[test]
    fn a_page_in_pieces_is_the_same_page() {
        let policy = r#"<meta http-equiv="content-security-policy" content="connect-src 'none'">"#;
        let long = format!(
            "<!doctype html><html><head class=x>{policy}<title>ä</title></head><body>{}<script>'<head>'</script></body></html>",
            "<p>Hi</p>".repeat(100)
        );
        let whole = inject(&long, "{}");
        assert!(whole.contains(&format!("connect-src {PLACE}")), "{whole}");
        for size in [1, 7, 100, 10_000] {
            assert_eq!(in_pieces(&long, size), whole, "{size}");
        }
        let tag = r#"<script src="/_auth/sdk.js" data-config="{}"></script>"#;
        for (page, expected) in [
            (
                "<!doctype html>\n<p>Hi",
                format!("<!doctype html>\n{tag}<p>Hi"),
            ),
            (
                "<html><title>A</title>",
                format!("<html>{tag}<title>A</title>"),
            ),
            ("Hi", format!("Hi{tag}")),
            ("", tag.to_owned()),
        ] {
            assert_eq!(in_pieces(page, 3), expected);
        }
    }

    #[test]
    fn what_is_too_long_to_be_held_goes_by_as_it_came() {
        let tag = r#"<script src="/_auth/sdk.js" data-config="{}"></script>"#;
        let long = format!("data:image/png;base64,{}", "iVBORw0K".repeat(3 << 17));
        assert!(long.len() > 3 << 20);
        let late = r#"<meta http-equiv="content-security-policy" content="connect-src 'none'">"#;
        for (start, rest) in [
            (
                "<!doctype html>",
                format!("<html data-x=\"{long}\"><head>{late}</head><p>ä</p></html>"),
            ),
            (
                "<!doctype html><html><head>",
                format!(r#"<link rel=icon href="{long}"></head><p>ä</p></html>"#),
            ),
            (
                "<!doctype html><html><head>",
                format!("</head><body><p>ä<img src='{long}'>{late}<p>ö</p></body></html>"),
            ),
            // As many that are open fill its memory, too.
            (
                "<!doctype html><html><head>",
                format!("</head><body>{}end", "<p class=x>ä".repeat(300_000)),
            ),
        ] {
            let (page, expected) = (format!("{start}{rest}"), format!("{start}{tag}{rest}"));
            for size in [10_001, 1 << 20, page.len()] {
                let made = in_pieces(&page, size);
                let first: String = made.chars().take(200).collect();
                assert!(made == expected, "{size}: {} bytes, {first}", made.len());
            }
        }
    }

    #[test]
    fn a_page_without_a_head_gets_it_behind_its_type() {
        let tag = r#"<script src="/_auth/sdk.js" data-config="{}"></script>"#;
        assert_eq!(
            inject("<!DOCTYPE html>\n<p>Hi", "{}"),
            format!("<!DOCTYPE html>{tag}\n<p>Hi")
        );
        assert_eq!(inject("<p>Hi", "{}"), format!("{tag}<p>Hi"));
        assert_eq!(inject("", "{}"), tag);
    }
}
