//! What is filled into the form of a PDF: it stands beside the content of the pages, in fields that are shown on them.

use std::collections::HashSet;

use pdf_extract::{Dictionary, Document, Object, ObjectId};

/// How deep fields may lie in one another.
const DEEPEST: usize = 32;
/// The bit of fields whose values are not to be shown.
const PASSWORD: i64 = 1 << 13;

/// The fields of a document, each told of on the first page that shows it.
pub struct Form<'a> {
    document: &'a Document,
    told: HashSet<ObjectId>,
}

impl<'a> Form<'a> {
    pub fn of(document: &'a Document) -> Self {
        Self {
            document,
            told: HashSet::new(),
        }
    }

    /// A line for each filled field that a page shows and none before it did, `name: value`.
    pub fn on_page(&mut self, page: ObjectId) -> Vec<String> {
        let document = self.document;
        let shown = document.get_dictionary(page).ok();
        let shown = shown.and_then(|page| self.get(page, b"Annots"));
        let shown = shown.and_then(|shown| shown.as_array().ok());
        let shown = shown.into_iter().flatten();
        shown.filter_map(|field| self.line(field)).collect()
    }

    fn line(&mut self, field: &'a Object) -> Option<String> {
        let (id, widget) = self.document.dereference(field).ok()?;
        let widget = widget.as_dict().ok()?;
        if self.get(widget, b"Subtype")?.as_name().ok()? != b"Widget" {
            return None;
        }
        let (holder, value) = self.inherited(id, widget, b"V")?;
        if holder.is_some_and(|holder| !self.told.insert(holder)) {
            return None;
        }
        let flags = self.inherited(id, widget, b"Ff");
        let flags = flags.and_then(|(_, flags)| flags.as_i64().ok());
        let value = written(self.document, value)?;
        if flags.unwrap_or_default() & PASSWORD != 0 {
            return None;
        }
        // The name for people, else that for programs unless it is made of numbers and brackets.
        let name = |key| {
            self.inherited(id, widget, key)
                .and_then(|(_, name)| text(name))
        };
        let name = name(b"TU").or_else(|| name(b"T").filter(|name| !name.contains('[')));
        Some(match name {
            Some(name) => format!("{name}: {value}"),
            None => value,
        })
    }

    fn get(&self, dictionary: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
        let value = dictionary.get(key).ok()?;
        Some(self.document.dereference(value).ok()?.1)
    }

    /// What a field says, or the next one above that does, and which one this is.
    fn inherited(
        &self,
        mut id: Option<ObjectId>,
        mut field: &'a Dictionary,
        key: &[u8],
    ) -> Option<(Option<ObjectId>, &'a Object)> {
        for _ in 0..DEEPEST {
            if let Some(value) = self.get(field, key) {
                return Some((id, value));
            }
            let (above, parent) = self.document.dereference(field.get(b"Parent").ok()?).ok()?;
            (id, field) = (above, parent.as_dict().ok()?);
        }
        None
    }
}

/// A value in words: a text, what is chosen of a list, the state of a box that is checked.
fn written(document: &Document, value: &Object) -> Option<String> {
    match value {
        Object::Name(state) if state != b"Off" => Some(String::from_utf8_lossy(state).into_owned()),
        Object::Array(chosen) => {
            let chosen = chosen
                .iter()
                .filter_map(|one| document.dereference(one).ok());
            let chosen: Vec<String> = chosen.filter_map(|(_, one)| text(one)).collect();
            (!chosen.is_empty()).then(|| chosen.join(", "))
        }
        other => text(other),
    }
}

/// A text of a PDF; none where it is blank.
pub fn text(text: &Object) -> Option<String> {
    let text = match text.as_str().ok()? {
        [0xfe, 0xff, text @ ..] => encoding_rs::UTF_16BE.decode(text).0,
        [0xef, 0xbb, 0xbf, text @ ..] => String::from_utf8_lossy(text),
        text => encoding_rs::WINDOWS_1252.decode(text).0,
    };
    let text = text.trim().replace(['\r', '\0'], "\n");
    (!text.is_empty()).then_some(text)
}
