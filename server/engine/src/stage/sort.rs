//! `sort_attribute` and `score_normalize`.

use loupe_wire::{Object, SortDirection, StageCategory, StageParamsSortAttribute, Value};
use serde_json::json;

use super::execution::{Execution, typed};
use super::schema::{Kind, inside, member, problem};
use super::working::Working;
use super::{Definition, RunError, StageProblem, document_enrich};
use crate::filter::sort_values;
use crate::store::{Direction, Sort};

pub(crate) static ATTRIBUTE: Definition = Definition {
    id: "sort_attribute",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "arrow-down-up",
    about: "Orders the documents by a field",
    members: &[
        member(
            "field",
            Kind::Text,
            r#""metadata.created_at""#,
            "Dot path of the field",
        ),
        member(
            "direction",
            Kind::Choice(&["asc", "desc"]),
            r#""desc""#,
            "The order",
        ),
        member(
            "nulls_last",
            Kind::Boolean,
            "true",
            "Whether documents without the field come last, else first",
        ),
    ],
};

pub(crate) async fn attribute(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let p: StageParamsSortAttribute = typed(at, parameters)?;
    let descending = p.direction != Some(SortDirection::Asc);
    // The store's own order puts absent values last, so only that can be handed to it.
    if let (Working::Unread { filter, sort: None }, true) = (&set, p.nulls_last) {
        let direction = if descending {
            Direction::Descending
        } else {
            Direction::Ascending
        };
        let sort = Some(Sort {
            field: document_enrich::lineage(&p.field),
            direction,
        });
        at.report.output = Some(at.run.store.count(&at.reach(&[]), filter.as_ref()).await?);
        return Ok(Working::Unread {
            filter: filter.clone(),
            sort,
        });
    }
    let mut rows = at.rows(set).await?;
    rows.sort_by(|a, b| {
        let (x, y) = (a.at(&p.field), b.at(&p.field));
        let absent = |v: Option<&Value>| v.is_none_or(Value::is_null);
        match (absent(x), absent(y)) {
            (false, false) if descending => sort_values(y, x),
            (false, false) => sort_values(x, y),
            (gone_a, gone_b) if p.nulls_last => gone_a.cmp(&gone_b),
            (gone_a, gone_b) => gone_b.cmp(&gone_a),
        }
    });
    Ok(Working::Rows(rows))
}

pub(crate) static NORMALIZE: Definition = Definition {
    id: "score_normalize",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "scale",
    about: "Brings scores to a common scale",
    members: &[
        member(
            "method",
            Kind::Choice(&["min_max", "z_score", "softmax", "l2"]),
            r#""min_max""#,
            "How",
        ),
        member(
            "score_field",
            Kind::Text,
            r#""score""#,
            "Dot path of the score",
        ),
        member(
            "output_field",
            Kind::Text,
            "",
            "Where the result goes; the score's own place where not given",
        ),
        member(
            "min_value",
            Kind::Number(f64::MIN, f64::MAX),
            "",
            "The lower end for min_max; the least score where not given",
        ),
        member(
            "max_value",
            Kind::Number(f64::MIN, f64::MAX),
            "",
            "The upper end for min_max; the greatest score where not given",
        ),
    ],
};

/// What the table cannot say: the ends that are told are in their order.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let number = |name: &str| parameters.get(name).and_then(Value::as_f64);
    let ends = number("min_value").zip(number("max_value"));
    if ends.is_some_and(|(low, high)| low >= high) {
        let msg = "must be less than `max_value`".to_owned();
        out.push(problem(inside(loc, "min_value"), "value_error", msg));
    }
}

pub(crate) async fn normalize(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let number = |name: &str| parameters.get(name).and_then(Value::as_f64);
    let field = text("score_field").unwrap_or("score");
    let target = text("output_field").unwrap_or(field);
    let mut rows = at.rows(set).await?;
    let scores: Vec<Option<f64>> = rows
        .iter()
        .map(|r| r.at(field).and_then(Value::as_f64))
        .collect();
    let known: Vec<f64> = scores.iter().copied().flatten().collect();
    if known.is_empty() {
        return Ok(Working::Rows(rows));
    }
    let scale = Scale::of(
        text("method").unwrap_or("min_max"),
        &known,
        number("min_value"),
        number("max_value"),
    );
    for (row, score) in rows.iter_mut().zip(scores) {
        if let Some(score) = score {
            row.set(target, json!(scale.apply(score)));
        }
    }
    Ok(Working::Rows(rows))
}

/// `apply(x)` = f((x - shift) / by)
struct Scale {
    shift: f64,
    by: f64,
    exponential: bool,
    /// What every score becomes where all are equal.
    flat: Option<f64>,
}

impl Scale {
    fn of(method: &str, scores: &[f64], least: Option<f64>, most: Option<f64>) -> Scale {
        let (count, sum) = (scores.len() as f64, scores.iter().sum::<f64>());
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let min = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let (shift, by, exponential, flat) = match method {
            "z_score" => {
                let mean = sum / count;
                let variance = scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / count;
                (mean, variance.sqrt(), false, 0.0)
            }
            // Shifted by the greatest score, so that nothing overflows.
            "softmax" => (max, scores.iter().map(|s| (s - max).exp()).sum(), true, 1.0),
            "l2" => (
                0.0,
                scores.iter().map(|s| s * s).sum::<f64>().sqrt(),
                false,
                0.0,
            ),
            // An end that is told may lie behind all scores: then they are at that end, and none is turned round.
            _ => match (least, most) {
                (Some(low), None) if low > max => (low, 0.0, false, 0.0),
                (None, Some(high)) if high < min => (high, 0.0, false, 1.0),
                (least, most) => {
                    let low = least.unwrap_or(min);
                    (low, (most.unwrap_or(max) - low).max(0.0), false, 1.0)
                }
            },
        };
        Scale {
            shift,
            by,
            exponential,
            flat: (by == 0.0).then_some(flat),
        }
    }

    fn apply(&self, score: f64) -> f64 {
        match self.flat {
            Some(flat) => flat,
            None if self.exponential => (score - self.shift).exp() / self.by,
            None => (score - self.shift) / self.by,
        }
    }
}
