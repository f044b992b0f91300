//! Documents as rows of a file: the fields that are asked for under the names that the file has for them.

use loupe_engine::{ingest::fields, store::Document};
use loupe_wire::{CollectionExportRequest, Object, Value};
use serde_json::json;

/// The row of one document.
pub fn row(document: Document, request: &CollectionExportRequest) -> Object {
    let Document {
        document_id,
        collection_id,
        mut payload,
        vectors,
        ..
    } = document;
    let internal = payload.shift_remove("_internal").unwrap_or_default();
    let mut row = Object::new();
    row.insert("document_id".into(), document_id.into());
    row.insert("collection_id".into(), collection_id.into());
    match &request.select_fields {
        Some(wanted) => {
            for path in wanted {
                if let Some(value) = fields::get(&payload, path) {
                    row.entry(path.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        None => {
            for (name, value) in payload {
                row.entry(name).or_insert(value);
            }
        }
    }
    if request.include_lineage {
        row.insert(
            "lineage".into(),
            internal.get("lineage").cloned().unwrap_or_default(),
        );
    }
    if request.include_vectors {
        for (name, vector) in vectors {
            row.insert(format!("vectors.{name}"), json!(vector));
        }
    }
    row
}

/// Rows of a JSON array.
pub fn json(rows: &[Object], is_first: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if !is_first || number > 0 {
            out.extend_from_slice(b",\n");
        }
        // A tree of JSON values is always written.
        out.extend_from_slice(&serde_json::to_vec(row).unwrap_or_default());
    }
    out
}

/// A line of comma-separated values.
pub fn csv<'v>(values: impl Iterator<Item = Option<&'v Value>>) -> Vec<u8> {
    let mut line = String::new();
    for (number, value) in values.enumerate() {
        if number > 0 {
            line.push(',');
        }
        let text = match value {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        if text.contains([',', '"', '\n', '\r']) || text.is_empty() {
            line.push('"');
            line.push_str(&text.replace('"', "\"\""));
            line.push('"');
        } else {
            line.push_str(&text);
        }
    }
    line.push_str("\r\n");
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        let values = [
            json!("plain"),
            json!("a, \"b\"\nc"),
            Value::Null,
            json!(""),
            json!(1.5),
            json!(["x"]),
        ];
        let line = csv(values.iter().map(Some));
        let expected = "plain,\"a, \"\"b\"\"\nc\",,\"\",1.5,\"[\"\"x\"\"]\"\r\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }
}
