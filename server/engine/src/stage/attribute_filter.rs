//! `attribute_filter`: keeps the rows that satisfy a condition or a tree of them.

use std::borrow::Cow;

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError, sentence};
use crate::filter::{Condition, Filter, Operator};
use crate::template::render_text;

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
            "Whether text is compared without regard to case, in `conditions`, too, unless they say it themselves",
        ),
        member(
            "batch_size",
            Kind::Integer(1, 1000),
            "100",
            "Rows that are filtered in one go; others get their turn in between",
        ),
        member(
            "natural_language",
            // Rendered when the stage runs: a sentence that turns out empty is no condition.
            Kind::Template,
            "",
            "The condition in words, which the configured language model makes a filter of; other conditions of the stage hold beside it",
        ),
        member(
            "field_hints",
            Kind::Texts,
            "[]",
            "Fields that `natural_language` is likely to mean",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let mut filter = at.resolve(written(&parameters)?)?;
    if let Some(said) = said(at, &parameters, &set).await? {
        filter = filter.and(said);
    }
    at.report
        .metadata
        .insert("filter".into(), json!(filter.to_string()));
    let size = parameters.get("batch_size").and_then(Value::as_u64);
    let size = at.batch.unwrap_or(size.unwrap_or(100) as usize);
    let kept = keep_in_batches(set, filter, size).await;
    // Not read yet: the store filters, with its indexes, when a later stage or the page reads it.
    if let Working::Unread { filter, .. } = &kept {
        let count = at.run.store.count(&at.reach(&[]), filter.as_ref()).await?;
        at.report.output = Some(count);
    }
    Ok(kept)
}

/// The conditions that are written out; none where a sentence stands in their place.
pub(super) fn written(parameters: &Object) -> Result<Filter, RunError> {
    if let Some(tree) = parameters.get("conditions") {
        return Ok(Filter::parse(&folded(tree, parameters))?);
    }
    let mut own = ["field", "operator", "value"].into_iter();
    if parameters.contains_key("natural_language") && !own.any(|name| parameters.contains_key(name))
    {
        return Ok(Filter::All(Vec::new()));
    }
    Ok(Filter::Leaf(leaf(parameters)?))
}

/// The tree with the case that the stage lets count, where it does not say so itself.
fn folded<'t>(tree: &'t Value, parameters: &Object) -> Cow<'t, Value> {
    let folds = parameters.get("case_insensitive").and_then(Value::as_bool) == Some(true);
    match tree {
        Value::Object(members) if folds && !members.contains_key("case_sensitive") => {
            let mut members = members.clone();
            members.insert("case_sensitive".to_owned(), Value::Bool(false));
            Cow::Owned(Value::Object(members))
        }
        tree => Cow::Borrowed(tree),
    }
}

/// The condition that is told in words.
async fn said(
    at: &mut Execution,
    parameters: &Object,
    set: &Working,
) -> Result<Option<Filter>, RunError> {
    let Some(template) = parameters.get("natural_language").and_then(Value::as_str) else {
        return Ok(None);
    };
    let sentence = render_text(template, &at.context)?;
    if sentence.trim().is_empty() {
        let removed = "natural_language: the sentence is empty";
        at.report.relaxations.push(removed.to_owned());
        return Ok(None);
    }
    let hints = parameters.get("field_hints").and_then(Value::as_array);
    let hints = hints.into_iter().flatten().filter_map(Value::as_str);
    let hints: Vec<String> = hints.map(str::to_owned).collect();
    sentence::filter(at, sentence.trim(), &hints, set).await
}

/// As [`keep`], so many rows in one go.
async fn keep_in_batches(set: Working, filter: Filter, size: usize) -> Working {
    let rows = match set {
        Working::Rows(rows) if rows.len() > size => rows,
        set => return keep(set, filter),
    };
    let mut kept = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter();
    loop {
        let batch: Vec<Row> = rows.by_ref().take(size.max(1)).collect();
        if batch.is_empty() {
            return Working::Rows(kept);
        }
        if let Working::Rows(batch) = keep(Working::Rows(batch), filter.clone()) {
            kept.extend(batch);
        }
        tokio::task::yield_now().await;
    }
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
fn leaf(parameters: &Object) -> Result<Condition, RunError> {
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
