//! `group_by`, also as a part of `feature_search`.

use loupe_wire::{FeatureSearchGroupByOutputMode as Mode, Object, StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};

pub(crate) const MODES: &[&str] = &["first", "all", "flatten"];

pub(crate) static DEFINITION: Definition = Definition {
    id: "group_by",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "group",
    about: "Gathers the documents that share a field's value, best group first",
    members: &[
        member(
            "group_by_field",
            Kind::Text,
            r#""source_object_id""#,
            "Dot path of the field",
        ),
        member(
            "max_per_group",
            Kind::Integer(1, 1000),
            "10",
            "Most documents of one group",
        ),
        member(
            "output_mode",
            Kind::Choice(MODES),
            r#""all""#,
            "first: the best document of each group; all: one row a group with its documents; flatten: the documents of all groups",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    let field = parameters
        .get("group_by_field")
        .and_then(Value::as_str)
        .unwrap_or("source_object_id");
    let most = parameters
        .get("max_per_group")
        .and_then(Value::as_u64)
        .unwrap_or(10) as usize;
    let mode = match parameters.get("output_mode").and_then(Value::as_str) {
        Some("first") => Mode::First,
        Some("flatten") => Mode::Flatten,
        _ => Mode::All,
    };
    let before = rows.len();
    let rows = group(rows, field, most, usize::MAX, mode);
    at.report
        .metadata
        .insert("rows_grouped".into(), json!(before));
    Ok(Working::Rows(rows))
}

/// Groups rows by a field, in the order of each group's first row. A row without the field is a group of its own.
pub(crate) fn group(
    rows: Vec<Row>,
    field: &str,
    max_per_group: usize,
    limit: usize,
    mode: Mode,
) -> Vec<Row> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in rows {
        let value = row.at(field).filter(|v| !v.is_null()).cloned();
        let place = value
            .as_ref()
            .and_then(|v| places.get(&v.to_string()).copied())
            .unwrap_or_else(|| {
                if let Some(value) = &value {
                    places.insert(value.to_string(), groups.len());
                }
                groups.push(Group {
                    value: value.unwrap_or(Value::Null),
                    count: 0,
                    rows: Vec::new(),
                });
                groups.len() - 1
            });
        let group: &mut Group = &mut groups[place];
        group.count += 1;
        if group.rows.len() < max_per_group {
            group.rows.push(row);
        }
    }
    groups.truncate(limit);
    groups
        .into_iter()
        .flat_map(|group| group.rows(field, mode))
        .collect()
}

struct Group {
    value: Value,
    count: usize,
    rows: Vec<Row>,
}

impl Group {
    fn rows(self, field: &str, mode: Mode) -> Vec<Row> {
        match mode {
            Mode::First => self.rows.into_iter().take(1).collect(),
            Mode::Flatten => self.rows,
            Mode::All => {
                // The row stands for its best document, so that later stages and pages can name and rank it.
                let best = self.rows.first().map(|row| {
                    let member = |name: &str| row.value.get(name).cloned().unwrap_or(Value::Null);
                    (
                        member("document_id"),
                        member("collection_id"),
                        member("score"),
                    )
                });
                let Some((document_id, collection_id, score)) = best else {
                    return Vec::new();
                };
                let documents: Vec<Value> =
                    self.rows.into_iter().map(|row| row.value.into()).collect();
                let value = json!({
                    "document_id": document_id, "collection_id": collection_id, "score": score,
                    "group_field": field, "group_value": self.value, "count": self.count, "documents": documents,
                });
                vec![Row {
                    value: value.into(),
                }]
            }
        }
    }
}
