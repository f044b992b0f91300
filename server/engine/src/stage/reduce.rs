//! `limit`, `sample` and `deduplicate`.

use std::collections::{HashMap, HashSet};

use loupe_wire::{DocStageLimit, Object, StageCategory, Value};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use super::execution::{Execution, offload, typed};
use super::schema::{Kind, member};
use super::working::{Row, Working, list};
use super::{Definition, RunError};

pub(crate) static LIMIT: Definition = Definition {
    id: "limit",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "list-end",
    about: "Keeps the first documents",
    members: &[
        member("limit", Kind::Integer(1, 10_000), "10", "How many"),
        member(
            "offset",
            Kind::Integer(0, 10_000),
            "0",
            "How many are left out before them",
        ),
    ],
};

pub(crate) async fn limit(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let p: DocStageLimit = typed(at, parameters)?;
    let (offset, limit) = (p.offset as usize, p.limit as usize);
    Ok(Working::Rows(match set {
        Working::Unread { filter, sort } => {
            list(&*at.run.store, &at.reach(&[]), filter, sort, offset, limit).await?
        }
        Working::Rows(rows) => rows.into_iter().skip(offset).take(limit).collect(),
    }))
}

pub(crate) static SAMPLE: Definition = Definition {
    id: "sample",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "dices",
    about: "Keeps some of the documents by chance",
    members: &[
        member("count", Kind::Integer(1, 1000), "10", "How many"),
        member(
            "strategy",
            Kind::Choice(&["random", "stratified", "reservoir"]),
            r#""random""#,
            "stratified: evenly over the values of `stratify_by`",
        ),
        member(
            "stratify_by",
            Kind::Text,
            "",
            "Dot path of the field whose values are sampled evenly",
        ),
        member(
            "min_per_stratum",
            Kind::Integer(0, i64::MAX),
            "1",
            "Documents that every value gets, as far as `count` goes",
        ),
        member(
            "seed",
            Kind::Integer(i64::MIN, i64::MAX),
            "",
            "The same seed keeps the same documents",
        ),
        member(
            "preserve_top_k",
            Kind::Integer(0, i64::MAX),
            "0",
            "The first documents that are kept in any case",
        ),
    ],
};

pub(crate) async fn sample(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let whole = |name: &str, default: i64| {
        parameters
            .get(name)
            .and_then(Value::as_i64)
            .unwrap_or(default)
    };
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let rows = at.rows(set).await?;
    let count = whole("count", 10) as usize;
    let top = (whole("preserve_top_k", 0) as usize)
        .min(count)
        .min(rows.len());
    let seed = parameters
        .get("seed")
        .and_then(Value::as_i64)
        .map_or_else(|| rand::rng().random(), |s| s as u64);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut chosen: HashSet<usize> = (0..top).collect();
    let mut rest: Vec<usize> = (top..rows.len()).collect();
    rest.shuffle(&mut rng);
    match (text("strategy"), text("stratify_by")) {
        (Some("stratified"), None) => {
            return Err(RunError::Invalid(
                "the strategy `stratified` needs `stratify_by`".into(),
            ));
        }
        (Some("stratified"), Some(field)) => {
            let least = whole("min_per_stratum", 1) as usize;
            for i in spread(&rows, &rest, field, least) {
                if chosen.len() < count {
                    chosen.insert(i);
                }
            }
        }
        _ => chosen.extend(rest.iter().take(count - top)),
    }
    // The order of the rows stays: a sample is no new ranking.
    let kept = rows
        .into_iter()
        .enumerate()
        .filter(|(i, _)| chosen.contains(i))
        .map(|(_, row)| row);
    Ok(Working::Rows(kept.collect()))
}

/// The rows in an order that takes `least` of every value of the field, then one of each value in turn.
fn spread(rows: &[Row], shuffled: &[usize], field: &str, least: usize) -> Vec<usize> {
    let mut strata: HashMap<String, Vec<usize>> = HashMap::new();
    for &i in shuffled {
        let value = rows[i].at(field).map(Value::to_string).unwrap_or_default();
        strata.entry(value).or_default().push(i);
    }
    let mut ordered: Vec<(String, Vec<usize>)> = strata.into_iter().collect();
    ordered.sort();
    let mut out = Vec::with_capacity(shuffled.len());
    for (_, members) in &mut ordered {
        out.extend(members.drain(..least.min(members.len())));
    }
    while out.len() < shuffled.len() {
        out.extend(ordered.iter_mut().filter_map(|(_, members)| members.pop()));
    }
    out
}

pub(crate) static DEDUPLICATE: Definition = Definition {
    id: "deduplicate",
    aliases: &[],
    category: StageCategory::Reduce,
    icon: "copy-minus",
    about: "Leaves out documents that repeat another's fields or text",
    members: &[
        member(
            "strategy",
            Kind::Choice(&["field", "content"]),
            r#""field""#,
            "field: equal fields; content: similar text",
        ),
        member(
            "fields",
            Kind::Texts,
            r#"["document_id"]"#,
            "Dot paths of the fields that make two documents equal",
        ),
        member(
            "content_field",
            Kind::Text,
            r#""content""#,
            "Dot path of the text that is compared",
        ),
        member(
            "similarity_threshold",
            Kind::Number(0.0, 1.0),
            "0.95",
            "Share of common words from which two texts are the same",
        ),
        member(
            "keep",
            Kind::Choice(&["first", "last"]),
            r#""first""#,
            "Which of the repeated documents stays",
        ),
        member(
            "case_sensitive",
            Kind::Boolean,
            "true",
            "Whether case makes a difference",
        ),
    ],
};

pub(crate) async fn deduplicate(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let mut rows = at.rows(set).await?;
    let fold = !parameters
        .get("case_sensitive")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    let last = text("keep") == Some("last");
    if last {
        rows.reverse();
    }
    if text("strategy") == Some("content") {
        let threshold = parameters
            .get("similarity_threshold")
            .and_then(Value::as_f64)
            .unwrap_or(0.95);
        let field = text("content_field").unwrap_or("content").to_owned();
        let compared = offload(move || {
            let whole = similar(&mut rows, &field, threshold, fold);
            (rows, whole)
        });
        let (kept, whole) = compared.await?;
        rows = kept;
        if !whole {
            at.warn(format!(
                "stage `{}`: there is too much text to compare all of it; some documents may repeat others",
                at.stage
            ));
        }
    } else {
        let fields: Vec<&str> = match parameters.get("fields").and_then(Value::as_array) {
            Some(list) if !list.is_empty() => list.iter().filter_map(Value::as_str).collect(),
            _ => vec!["document_id"],
        };
        let mut seen = HashSet::new();
        rows.retain(|row| key(row, &fields, fold).is_none_or(|key| seen.insert(key)));
    }
    if last {
        rows.reverse();
    }
    Ok(Working::Rows(rows))
}

/// What makes a row equal to another; nothing where it has none of the fields.
fn key(row: &Row, fields: &[&str], fold: bool) -> Option<String> {
    let values: Vec<Vec<&Value>> = fields.iter().map(|f| row.all_at(f)).collect();
    if values.iter().all(|found| found.iter().all(|v| v.is_null())) {
        return None;
    }
    let text = serde_json::to_string(&values).unwrap_or_default();
    Some(if fold { text.to_lowercase() } else { text })
}

/// Most rows whose texts are compared pairwise.
const MAX_COMPARED: usize = 2_000;
/// Most words that are looked for in other texts: some seconds of a processor.
const MAX_LOOKED_FOR: usize = 50_000_000;

/// Leaves out rows whose words are as good as those of a row before (Jaccard index). Whether all were compared.
fn similar(rows: &mut Vec<Row>, field: &str, threshold: f64, fold: bool) -> bool {
    let mut kept: Vec<HashSet<String>> = Vec::new();
    let (mut compared, mut looked_for, mut whole) = (0, 0, true);
    rows.retain(|row| {
        let Some(text) = row.at(field).and_then(Value::as_str) else {
            return true;
        };
        let text = if fold {
            text.to_lowercase()
        } else {
            text.to_owned()
        };
        let words: HashSet<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect();
        if words.is_empty() {
            return true;
        }
        compared += 1;
        if compared > MAX_COMPARED || looked_for > MAX_LOOKED_FOR {
            whole = false;
            return true;
        }
        let repeats = kept.iter().any(|other| {
            looked_for += words.len().min(other.len());
            let common = words.intersection(other).count() as f64;
            common / (words.len() as f64 + other.len() as f64 - common) >= threshold
        });
        if !repeats {
            kept.push(words);
        }
        !repeats
    });
    whole
}
