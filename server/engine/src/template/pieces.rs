//! Templates cut into text and expressions.

use super::{MAX_TEMPLATE_BYTES, Result, TemplateError};

/// A template cut into text and expressions.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Expression(&'a str),
}

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
