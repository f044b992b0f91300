//! `sort_relevance`: the documents by a score that a stage before gave them.

use std::cmp::Ordering;

use loupe_wire::{StageCategory, Value};

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};

pub(crate) static DEFINITION: Definition = Definition {
    id: "sort_relevance",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "arrow-down-wide-narrow",
    about: "Orders the documents by a score",
    members: &[
        member(
            "score_field",
            Kind::Text,
            r#""score""#,
            "Dot path of the score",
        ),
        member(
            "direction",
            Kind::Choice(&["asc", "desc"]),
            r#""desc""#,
            "The order",
        ),
        member(
            "feature_address",
            Kind::Text,
            "",
            "Takes the score that the last search gave for this feature, in place of `score_field`",
        ),
        member(
            "missing_score",
            Kind::Choice(&["bottom", "top", "preserve"]),
            r#""bottom""#,
            "Where documents without the score go; preserve: they keep their places",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    let field = match p.text("feature_address") {
        None => p.word("score_field"),
        Some(address) => of_feature(at, &address).unwrap_or_else(|| {
            at.warn(format!(
                "stage `{}`: no search before gave a score for `{address}`; `{}` was taken",
                at.stage,
                p.word("score_field")
            ));
            p.word("score_field")
        }),
    };
    let descending = p.word("direction") != "asc";
    let order = |a: &Row, b: &Row| match (score(a, &field), score(b, &field)) {
        (Some(x), Some(y)) if descending => y.total_cmp(&x),
        (Some(x), Some(y)) => x.total_cmp(&y),
        _ => Ordering::Equal,
    };
    let missing = p.word("missing_score");
    if missing == "preserve" {
        return Ok(Working::Rows(in_place(rows, &field, order)));
    }
    let (mut known, unknown): (Vec<Row>, Vec<Row>) = rows
        .into_iter()
        .partition(|row| score(row, &field).is_some());
    known.sort_by(order);
    Ok(Working::Rows(if missing == "top" {
        unknown.into_iter().chain(known).collect()
    } else {
        known.into_iter().chain(unknown).collect()
    }))
}

/// Where rows keep what the last search gave for a feature.
fn of_feature(at: &Execution, address: &str) -> Option<String> {
    let (leg, _) = at.legs.iter().find(|(_, feature)| feature == address)?;
    Some(if at.legs.len() > 1 {
        format!("scores.{leg}")
    } else {
        "score".to_owned()
    })
}

fn score(row: &Row, field: &str) -> Option<f64> {
    row.at(field).and_then(Value::as_f64)
}

/// Sorts the rows that have a score among the places that such rows have.
fn in_place(rows: Vec<Row>, field: &str, order: impl Fn(&Row, &Row) -> Ordering) -> Vec<Row> {
    let has: Vec<bool> = rows.iter().map(|row| score(row, field).is_some()).collect();
    let (mut known, unknown): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .zip(has.iter().copied())
        .partition(|(_, has)| *has);
    known.sort_by(|a, b| order(&a.0, &b.0));
    let (mut known, mut unknown) = (known.into_iter(), unknown.into_iter());
    let next = has.iter().filter_map(|has| {
        let from = if *has { &mut known } else { &mut unknown };
        from.next().map(|(row, _)| row)
    });
    next.collect()
}
