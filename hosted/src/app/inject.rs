//! The sign-in script goes into every page of an app, first in its head.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lol_html::{
    HandlerResult, HandlerTypes, HtmlRewriter, RewriteStrSettings, Settings, element, end,
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

/// What a page says of itself in place of headers.
const POLICY: &str = "meta[http-equiv][content]";

/// Lets the script in where a page says a policy.
fn make_room<H: HandlerTypes>(meta: &mut Element<'_, '_, H>, place: &str) -> HandlerResult {
    let kind = meta.get_attribute("http-equiv").unwrap_or_default();
    let is_policy = kind.trim().eq_ignore_ascii_case("content-security-policy");
    let own = meta.get_attribute("content").filter(|_| is_policy);
    if let Some(own) = own.map(|own| decoded(&own)) {
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
    rewriter: send::HtmlRewriter<'static, Sink>,
    made: Arc<Mutex<Vec<u8>>>,
}

impl Injector {
    /// As [`inject`], for a page that comes in pieces.
    pub fn new(config: &str, place: &str) -> Self {
        let (tag, place) = (tag(config), place.to_owned());
        let done = Arc::new(AtomicBool::new(false));
        let (last, told) = (tag.clone(), done.clone());
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
        let sink: Sink = Box::new(move |piece: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(piece);
        });
        Self {
            rewriter: HtmlRewriter::new(settings, sink),
            made,
        }
    }

    /// What goes on once this piece has come.
    ///
    /// # Errors
    /// The page cannot be read; nothing more goes on.
    pub fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, RewritingError> {
        self.rewriter.write(piece)?;
        Ok(taken(&self.made))
    }

    /// What goes on once the last piece has come.
    ///
    /// # Errors
    /// The page cannot be read.
    pub fn end(self) -> Result<Vec<u8>, RewritingError> {
        self.rewriter.end()?;
        Ok(taken(&self.made))
    }
}

fn taken(made: &Mutex<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner))
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

/// The text of an attribute, as far as a policy is written with such marks.
fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for (mark, letter) in [
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&apos;", "'"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        text = text.replace(mark, letter);
    }
    text
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
