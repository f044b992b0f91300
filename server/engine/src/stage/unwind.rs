//! `unwind`: a document for each member of a list.

use loupe_wire::{StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member, required};
use super::working::{MAX_ROWS, Row, Working};
use super::{Definition, RunError};
use crate::weight;

/// Bytes that the documents made may take together: each has everything that its own had beside the list.
const MAX_BYTES: usize = 256 << 20;

pub(crate) static DEFINITION: Definition = Definition {
    id: "unwind",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "unfold-vertical",
    about: "Makes a document of each member of a list",
    members: &[
        required("field", Kind::Text, "Dot path of the list"),
        member(
            "preserve_null_and_empty",
            Kind::Boolean,
            "false",
            "Whether documents without the list, or with an empty one, stay",
        ),
        member(
            "include_array_index",
            Kind::Text,
            "",
            "Where the member's place in the list goes",
        ),
        member(
            "output_field",
            Kind::Text,
            "",
            "Where the member goes; the list's own place where not given",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    let field = p.word("field");
    let target = p.text("output_field").unwrap_or_else(|| field.clone());
    let (index, keep) = (
        p.text("include_array_index"),
        p.flag("preserve_null_and_empty"),
    );
    let mut out: Vec<Row> = Vec::with_capacity(rows.len());
    let (mut bytes, mut cut) = (0_usize, false);
    for row in rows {
        cut = out.len() >= MAX_ROWS;
        if cut {
            break;
        }
        match row.at(&field).cloned() {
            Some(Value::Array(items)) if !items.is_empty() => {
                let mut of = row;
                if target == field {
                    // Each gets one member, and is not made with the whole list first.
                    of.set(&field, Value::Null);
                }
                let places = (target.as_str(), index.as_deref());
                cut = !members(&of, items, places, &mut out, &mut bytes);
                if cut {
                    break;
                }
            }
            Some(Value::Null | Value::Array(_)) | None if !keep => {}
            // A single value counts as a list of one; what is kept has no place in a list.
            Some(value) => {
                let mut made = row;
                let empty = matches!(value, Value::Null | Value::Array(_));
                made.set(&target, if empty { Value::Null } else { value });
                if let Some(index) = &index {
                    made.set(index, if empty { Value::Null } else { json!(0) });
                }
                out.push(made);
            }
            None => {
                let mut made = row;
                if let Some(index) = &index {
                    made.set(index, Value::Null);
                }
                out.push(made);
            }
        }
    }
    if cut {
        at.warn(format!(
            "stage `{}`: more came of it than {MAX_ROWS} documents or {} MiB; the rest was left out",
            at.stage,
            MAX_BYTES >> 20
        ));
    }
    Ok(Working::Rows(out))
}

/// A document for each member, as far as there is room; whether there was room for all.
fn members(
    of: &Row,
    items: Vec<Value>,
    (target, index): (&str, Option<&str>),
    out: &mut Vec<Row>,
    bytes: &mut usize,
) -> bool {
    let each = weight::of(&of.value);
    for (place, item) in items.into_iter().enumerate() {
        *bytes = bytes.saturating_add(each);
        if out.len() >= MAX_ROWS || *bytes > MAX_BYTES {
            return false;
        }
        let mut made = of.clone();
        made.set(target, item);
        if let Some(index) = index {
            made.set(index, json!(place));
        }
        out.push(made);
    }
    true
}
