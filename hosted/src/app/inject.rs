//! The sign-in script goes into every page of an app, first in its head.

use std::cell::Cell;

use lol_html::{RewriteStrSettings, element, html_content::ContentType, rewrite_str};

/// The page with the script, and the configuration it reads, before everything else of the head. A page without a head gets
/// them behind its document type.
pub fn inject(page: &str, config: &str) -> String {
    let tag = format!(
        r#"<script src="/_auth/sdk.js" data-config="{}"></script>"#,
        escaped(config)
    );
    let done = Cell::new(false);
    let head = element!("head", |head| {
        if !done.replace(true) {
            head.prepend(&tag, ContentType::Html);
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new().append_element_content_handler(head);
    // What the parser cannot read, such as a tag longer than its memory, is left as its owner wrote it.
    let rewritten = rewrite_str(page, settings).unwrap_or_else(|_| page.to_owned());
    if done.get() {
        return rewritten;
    }
    let at = after_doctype(&rewritten);
    let (start, rest) = rewritten.split_at(at);
    format!("{start}{tag}{rest}")
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::inject;

    #[test]
    fn the_script_is_first_in_the_head() {
        let page = "<!doctype html><html><!-- <head> --><head class=x><title>A</title></head><body><script>'<head>'</script></body></html>";
        let made = inject(page, r#"{"a":"<&>"}"#);
        let tag = r#"<head class=x><script src="/_auth/sdk.js" data-config="{&quot;a&quot;:&quot;&lt;&amp;&gt;&quot;}"></script><title>"#;
        assert!(made.contains(tag), "{made}");
        assert_eq!(made.matches("/_auth/sdk.js").count(), 1);
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
