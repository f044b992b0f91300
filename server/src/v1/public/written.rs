//! What a language model wrote of the documents of a search: rows that are no documents, shown above those that are.

use loupe_hosted::{Hit, Written};
use loupe_wire::{Object, Value};

use super::{Open, host::hit, retrievers};

/// Letters of one text; no stage writes as many.
const LONGEST: usize = 100_000;

impl Open {
    /// The documents of an answer, and what stages wrote beside them. Each row comes with what visitors are shown of it.
    pub(super) fn parted<'r>(
        &self,
        rows: impl Iterator<Item = (&'r Object, Object)>,
    ) -> (Vec<Hit>, Vec<Written>) {
        let (mut documents, mut written) = (Vec::new(), Vec::new());
        for (row, shown) in rows {
            match self.written(row) {
                Some(text) => written.push(text),
                None => documents.push(hit(shown)),
            }
        }
        (documents, written)
    }

    /// The text of a row that a stage wrote, where visitors are shown its field.
    fn written(&self, row: &Object) -> Option<Written> {
        if row.get("document_id").is_some_and(Value::is_string) {
            return None;
        }
        let mut fields = retrievers::written_to(&self.retriever.stages);
        let text = fields.find_map(|field| {
            let text = row.get(&field)?.as_str()?;
            self.shows(&field.into()).then_some(text)
        })?;
        let id = |source: &Value| Some(source.get("document_id")?.as_str()?.to_owned());
        let sources = row.get("sources").and_then(Value::as_array);
        Some(Written {
            text: text.chars().take(LONGEST).collect(),
            group: self.group(row),
            sources: sources.into_iter().flatten().filter_map(id).collect(),
        })
    }

    /// What the documents of a text share, where visitors are shown the field of it.
    fn group(&self, row: &Object) -> Option<String> {
        let field = row.get("group_field")?;
        match row.get("group_value").filter(|_| self.shows(field))? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        }
    }
}
