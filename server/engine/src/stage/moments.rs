//! `moment_group`: the stretches of a recording that the documents found in it cover.
//!
//! The interface names the stage and its flow (every document stays and gets `moments[]`), not its parameters; these are
//! ours.

use std::collections::HashMap;

use loupe_wire::{StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};

pub(crate) static DEFINITION: Definition = Definition {
    id: "moment_group",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "film",
    about: "Tells for each document the moments of its recording that the documents found cover, best first",
    members: &[
        member(
            "group_by_field",
            Kind::Text,
            r#""source_object_id""#,
            "Dot path of what names the recording",
        ),
        member(
            "start_field",
            Kind::Text,
            r#""start_time""#,
            "Dot path of where a document begins, in seconds",
        ),
        member(
            "end_field",
            Kind::Text,
            r#""end_time""#,
            "Dot path of where it ends, in seconds",
        ),
        member(
            "max_gap",
            Kind::Number(0.0, 86_400.0),
            "2.0",
            "Seconds between two documents that are one moment still",
        ),
        member(
            "max_moments",
            Kind::Integer(1, 100),
            "10",
            "Most moments of one recording",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""moments""#,
            "Where the moments go",
        ),
    ],
};

/// A stretch of a recording and the documents in it.
struct Moment {
    start: f64,
    end: f64,
    score: f64,
    documents: Vec<String>,
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let (group, start, end) = (
        p.word("group_by_field"),
        p.word("start_field"),
        p.word("end_field"),
    );
    let mut spans: HashMap<String, Vec<Moment>> = HashMap::new();
    for row in &rows {
        let number = |field: &str| row.at(field).and_then(Value::as_f64);
        if let (Some(key), Some(from)) = (key(row, &group), number(&start)) {
            spans.entry(key).or_default().push(Moment {
                start: from,
                end: number(&end).unwrap_or(from).max(from),
                score: row.score().unwrap_or(0.0),
                documents: vec![row.id().to_owned()],
            });
        }
    }
    if spans.is_empty() && !rows.is_empty() {
        at.warn(format!(
            "stage `{}`: no document has a number at `{start}` and a value at `{group}`; there are no moments",
            at.stage
        ));
    }
    let (gap, most) = (
        p.number("max_gap").unwrap_or(0.0),
        p.count("max_moments").unwrap_or(1),
    );
    let moments: HashMap<String, Value> = spans
        .into_iter()
        .map(|(key, list)| (key, told(merge(list, gap), most)))
        .collect();
    let target = p.word("output_field");
    for row in &mut rows {
        let found = key(row, &group).and_then(|key| moments.get(&key).cloned());
        row.set(&target, found.unwrap_or_else(|| json!([])));
    }
    Ok(Working::Rows(rows))
}

fn key(row: &Row, field: &str) -> Option<String> {
    row.at(field)
        .filter(|value| !value.is_null())
        .map(Value::to_string)
}

/// Makes one of stretches that overlap or lie no further apart than the gap.
fn merge(mut list: Vec<Moment>, gap: f64) -> Vec<Moment> {
    list.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut out: Vec<Moment> = Vec::new();
    for next in list {
        match out.last_mut().filter(|last| next.start <= last.end + gap) {
            Some(last) => {
                last.end = last.end.max(next.end);
                last.score = last.score.max(next.score);
                last.documents.extend(next.documents);
            }
            None => out.push(next),
        }
    }
    out
}

fn told(mut moments: Vec<Moment>, most: usize) -> Value {
    moments.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(a.start.total_cmp(&b.start))
    });
    moments.truncate(most);
    let one = |m: &Moment| json!({"start_time": m.start, "end_time": m.end, "score": m.score, "document_ids": m.documents});
    moments.iter().map(one).collect()
}
