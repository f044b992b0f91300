//! `attribute_filter`: keeps the rows that satisfy a condition or a tree of them.

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::schema::{Kind, member};
use super::working::Working;
use super::{Definition, RunError};
use crate::filter::{Condition, Filter, Operator};

const OPERATORS: &[&str] = &[
    "eq",
    "ne",
    "gt",
    "gte",
    "lt",
    "lte",
    "in",
    "nin",
    "contains",
    "starts_with",
    "ends_with",
    "regex",
    "exists",
    "is_null",
    "text",
    "phrase",
    "words",
    "geo_radius",
    "geo_bounding_box",
    "geo_polygon",
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "attribute_filter",
    aliases: &[],
    category: StageCategory::Filter,
    icon: "filter",
    about: "Keeps the documents whose fields satisfy conditions; as the first stage it reads the collections",
    members: &[
        member(
            "field",
            Kind::Text,
            r#""metadata.status""#,
            "Dot path of the field",
        ),
        member(
            "operator",
            Kind::Choice(OPERATORS),
            r#""eq""#,
            "How the field is compared",
        ),
        member(
            "value",
            Kind::Operand,
            "",
            "What the field is compared with; a template without a value removes the condition",
        ),
        member(
            "conditions",
            Kind::Filter,
            "",
            "A tree of AND, OR and NOT; takes the place of field, operator and value",
        ),
        member(
            "case_insensitive",
            Kind::Boolean,
            "false",
            "Whether text is compared without regard to case",
        ),
        member(
            "batch_size",
            Kind::Integer(1, 1000),
            "100",
            "Accepted; rows are filtered in one go",
        ),
        member("natural_language", Kind::NotBuilt, "", ""),
        member(
            "field_hints",
            Kind::Texts,
            "[]",
            "Accepted for `natural_language`",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let filter = match parameters.get("conditions") {
        Some(tree) => Filter::parse(tree)?,
        None => Filter::Leaf(leaf(&parameters)?),
    };
    let filter = at.resolve(filter)?;
    at.report
        .metadata
        .insert("filter".into(), json!(filter.to_string()));
    let kept = keep(set, filter);
    // Not read yet: the store filters, with its indexes, when a later stage or the page reads it.
    if let Working::Unread { filter, .. } = &kept {
        let count = at.run.store.count(&at.reach(&[]), filter.as_ref()).await?;
        at.report.output = Some(count);
    }
    Ok(kept)
}

/// The documents of a set that satisfy the filter; of a set that no stage has read the store will tell them.
pub(super) fn keep(set: Working, filter: Filter) -> Working {
    match set {
        Working::Unread {
            filter: before,
            sort,
        } => Working::Unread {
            filter: Some(match before {
                Some(before) => before.and(filter),
                None => filter,
            }),
            sort,
        },
        Working::Rows(mut rows) => {
            let matcher = filter.matcher();
            rows.retain(|row| matcher.matches(&row.value));
            Working::Rows(rows)
        }
    }
}

/// The one condition of a stage without a tree of them.
pub(super) fn leaf(parameters: &Object) -> Result<Condition, RunError> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let operator = text("operator")
        .and_then(Operator::from_word)
        .unwrap_or(Operator::Eq);
    let value = match (parameters.get("value"), operator) {
        (Some(value), _) => value.clone(),
        (None, Operator::Exists | Operator::IsNull) => Value::Bool(true),
        (None, Operator::Eq | Operator::Ne) => Value::Null,
        (None, _) => {
            return Err(RunError::Invalid(format!(
                "`{}` needs a value",
                operator.word()
            )));
        }
    };
    Ok(Condition {
        field: text("field").unwrap_or("metadata.status").to_owned(),
        operator,
        value,
        case_sensitive: !parameters
            .get("case_insensitive")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    })
}
