//! `aggregate`: figures over the documents, of all of them or of each group.

mod figures;

use std::collections::HashMap;

use loupe_wire::{Object, StageCategory, Value};

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, inside, member, problem, required};
use super::working::{Row, Working};
use super::{Definition, RunError, StageProblem};
use crate::filter::sort_values;

const FUNCTIONS: &[&str] = &[
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "first",
    "last",
    "collect",
    "collect_distinct",
    "percentile",
    "stddev",
    "variance",
    "frequency",
    "co_occurrence",
    "correlation",
];

const OPERATION: &[Member] = &[
    required("function", Kind::Choice(FUNCTIONS), "What is computed"),
    member(
        "field",
        Kind::Text,
        "",
        "Dot path of the values; only `count` goes without",
    ),
    member(
        "field_b",
        Kind::Text,
        "",
        "Dot path of the other values, for co_occurrence and correlation",
    ),
    member(
        "percentile_value",
        Kind::Number(0.0, 100.0),
        "50.0",
        "For percentile: the share of values below, interpolated between two values",
    ),
    member(
        "top_k",
        Kind::Integer(1, 100),
        "10",
        "Most values of frequency and pairs of co_occurrence",
    ),
    required("alias", Kind::Text, "The name of the result"),
];

const GROUP: &[Member] = &[
    required("field", Kind::Text, "Dot path of the field"),
    member(
        "alias",
        Kind::Text,
        "",
        "Its name in the rows; the path where not given",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "aggregate",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "sigma",
    about: "Computes figures over the documents: one row, or one row a group",
    members: &[
        member(
            "aggregations",
            Kind::Objects(OPERATION, 50),
            r#"[{"function": "count", "alias": "count"}]"#,
            "The figures; the number of documents where not given",
        ),
        member(
            "group_by",
            Kind::Objects(GROUP, 10),
            "[]",
            "The fields whose values make a group",
        ),
        member(
            "sort_by",
            Kind::Text,
            "",
            "The alias or field that orders the rows; the best document's place where not given",
        ),
        member(
            "sort_order",
            Kind::Choice(&["asc", "desc"]),
            r#""desc""#,
            "The order",
        ),
        member("limit", Kind::Integer(1, 1000), "", "Most rows"),
        member(
            "include_documents",
            Kind::Boolean,
            "false",
            "Whether each row has its documents",
        ),
    ],
};

/// What the table cannot say: which members each function needs.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let all = parameters.get("aggregations").and_then(Value::as_array);
    for (place, one) in all.into_iter().flatten().enumerate() {
        let function = one.get("function").and_then(Value::as_str);
        let needed: &[&str] = match function {
            // A function that there is not was told of, and what a template gives is told when it runs.
            None | Some("count") => &[],
            Some(function) if !FUNCTIONS.contains(&function) => &[],
            Some("correlation") => &["field", "field_b"],
            Some(_) => &["field"],
        };
        let here = inside(&inside(loc, "aggregations"), &place.to_string());
        let lacking = needed
            .iter()
            .filter(|name| one.get(**name).is_none_or(Value::is_null));
        for name in lacking {
            let msg = format!("`{}` needs `{name}`", function.unwrap_or_default());
            out.push(problem(inside(&here, name), "missing", msg));
        }
    }
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    let operations: Vec<figures::Operation> = p
        .objects("aggregations")
        .iter()
        .map(figures::Operation::of)
        .collect::<Result<_, _>>()
        .map_err(|reason| RunError::Invalid(format!("stage `{}`: {reason}", at.stage)))?;
    if operations.is_empty() {
        return Err(RunError::Invalid(format!(
            "stage `{}`: `aggregations` has one figure at least",
            at.stage
        )));
    }
    if let Some(reason) = operations.iter().find_map(|one| one.refusal(&rows)) {
        return Err(RunError::Invalid(format!("stage `{}`: {reason}", at.stage)));
    }
    let by: Vec<(String, String)> = p
        .objects("group_by")
        .iter()
        .map(|g| {
            let field = g.word("field");
            (g.text("alias").unwrap_or_else(|| field.clone()), field)
        })
        .collect();
    let documents = p.flag("include_documents");
    let grouping = by.clone();
    let mut made =
        super::execution::offload(move || compute(rows, &grouping, &operations, documents)).await?;
    if let Some(field) = p.text("sort_by") {
        sort(at, &mut made, &field, p.word("sort_order") != "asc");
    }
    made.truncate(p.count("limit").unwrap_or(usize::MAX));
    Ok(Working::Rows(made))
}

fn compute(
    rows: Vec<Row>,
    by: &[(String, String)],
    operations: &[figures::Operation],
    documents: bool,
) -> Vec<Row> {
    let mut groups: Vec<(Vec<Value>, Vec<Row>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    // Without fields there is one group, of no documents too: a sum over nothing is an answer.
    if by.is_empty() {
        groups.push((Vec::new(), rows));
    } else {
        for row in rows {
            let values: Vec<Value> = by
                .iter()
                .map(|(_, field)| row.at(field).cloned().unwrap_or(Value::Null))
                .collect();
            let key = serde_json::to_string(&values).unwrap_or_default();
            let place = *places.entry(key).or_insert_with(|| {
                groups.push((values, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(row);
        }
    }
    groups
        .into_iter()
        .map(|(values, members)| {
            let mut made = Object::new();
            for ((alias, _), value) in by.iter().zip(values) {
                made.insert(alias.clone(), value);
            }
            for operation in operations {
                made.insert(operation.alias.clone(), operation.compute(&members));
            }
            if documents {
                let list = members.into_iter().map(|row| row.value.into()).collect();
                made.insert("documents".into(), Value::Array(list));
            }
            Row { value: made.into() }
        })
        .collect()
}

/// Orders by a member of the rows; rows without it come last.
fn sort(at: &mut Execution, rows: &mut [Row], field: &str, descending: bool) {
    let of = |row: &Row| row.value.get(field).filter(|v| !v.is_null()).cloned();
    if !rows.is_empty() && rows.iter().all(|row| row.value.get(field).is_none()) {
        at.warn(format!(
            "stage `{}`: no row has `{field}`, so the rows were not sorted",
            at.stage
        ));
        return;
    }
    rows.sort_by(|a, b| match (of(a), of(b)) {
        (Some(x), Some(y)) if descending => sort_values(Some(&y), Some(&x)),
        (Some(x), Some(y)) => sort_values(Some(&x), Some(&y)),
        (x, y) => x.is_none().cmp(&y.is_none()),
    });
}
