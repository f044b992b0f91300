//! Templates cut into text and expressions.

use super::{MAX_TEMPLATE_BYTES, Result, TemplateError};

/// A template cut into text and expressions.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Expression(&'a str),
}

/// Operators, steps of paths, filters and calls of one expression. Each may make its tree one deeper, and the tree is walked by
/// recursion: a long chain would take the whole stack.
const MAX_LINKS: usize = 128;
/// Texts or lists that one expression puts together: each step copies what was put together before.
const MAX_JOINS: usize = 32;
/// Operators that are words.
const WORDS: [&str; 6] = ["not", "and", "or", "is", "in", "if"];

/// Cuts a template; it is too long, or an expression is never closed.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece<'_>>> {
    if template.len() > MAX_TEMPLATE_BYTES {
        return Err(TemplateError(format!(
            "a template has {MAX_TEMPLATE_BYTES} bytes at most"
        )));
    }
    let (mut rest, mut list) = (template, Vec::new());
    while let Some(start) = rest.find("{{") {
        if start > 0 {
            list.push(Piece::Text(&rest[..start]));
        }
        let inner = &rest[start + 2..];
        let Some(end) = closing(inner) else {
            return Err(TemplateError(
                "a `{{` of the template is never closed by `}}`".to_owned(),
            ));
        };
        list.push(Piece::Expression(inner[..end].trim()));
        rest = &inner[end + 2..];
    }
    if !rest.is_empty() {
        list.push(Piece::Text(rest));
    }
    Ok(list)
}

/// Where the `}}` is that ends an expression: outside quotes and of no object literal.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut quote, mut depth, mut i) = (None, 0usize, 0);
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, c @ (b'"' | b'\'')) => quote = Some(c),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if bytes.get(i + 1) == Some(&b'}') => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Refuses an expression that would take more of the stack or of memory than one may, before anything reads it.
pub(super) fn bounded(source: &str) -> Result<()> {
    let bytes = source.as_bytes();
    let (mut links, mut joins, mut i) = (0_usize, 0_usize, 0);
    while i < bytes.len() {
        match bytes[i] {
            quote @ (b'"' | b'\'') => i += quoted(&bytes[i + 1..], quote),
            c if is_word(c) => {
                let rest = bytes[i..].iter().position(|c| !is_word(*c));
                let end = rest.map_or(bytes.len(), |length| i + length);
                links += usize::from(WORDS.contains(&&source[i..end]));
                i = end;
                continue;
            }
            // `'x' * 100000000` is a small expression and a large text.
            b'*' => return Err(TemplateError("templates do not multiply".to_owned())),
            b'~' | b'+' => {
                links += 1;
                joins += 1;
            }
            b'-' | b'/' | b'%' | b'|' | b'.' | b'[' | b'(' | b'{' | b'<' | b'>' | b'=' | b'!'
            | b',' => {
                links += 1;
            }
            _ => {}
        }
        i += 1;
    }
    let refused = |most: usize, what: &str| {
        Err(TemplateError(format!(
            "an expression of a template has {most} {what} at most; use several expressions"
        )))
    };
    if links > MAX_LINKS {
        return refused(MAX_LINKS, "operators, steps, filters and calls");
    }
    if joins > MAX_JOINS {
        return refused(MAX_JOINS, "`~` and `+`");
    }
    Ok(())
}

/// The names of the filters that an expression uses.
pub(super) fn filters(source: &str) -> Vec<&str> {
    let bytes = source.as_bytes();
    let (mut found, mut i) = (Vec::new(), 0);
    while i < bytes.len() {
        match bytes[i] {
            quote @ (b'"' | b'\'') => i += quoted(&bytes[i + 1..], quote),
            b'|' => {
                let rest = source[i + 1..].trim_start();
                let end = rest.bytes().position(|c| !is_word(c));
                found.push(&rest[..end.unwrap_or(rest.len())]);
            }
            _ => {}
        }
        i += 1;
    }
    found
}

pub(super) fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// Bytes up to the quote that ends a text, or to the end.
pub(super) fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut i = 0;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == b'\\' { 2 } else { 1 };
    }
    i + 1
}
