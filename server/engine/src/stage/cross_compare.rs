//! `cross_compare`: the documents found held against those of a reference collection, item by item, by the strictest way
//! that finds a match: equal, nearly equal letters, the same meaning, the same look.

mod vectors;

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::{Execution, offload};
use super::likeness::cosine;
use super::parameters::Parameters;
use super::schema::{Kind, Member, inside, member, problem, required};
use super::working::{Row, Working};
use super::{Definition, RunError, Searchable, StageProblem};
use crate::store::ListQuery;
use crate::template::is_template;

/// Items of all documents that are compared.
const MAX_ITEMS: usize = 2_000;
/// Items of all references.
const MAX_REFERENCES: usize = 10_000;
/// Letters of an item that are compared with others': the work is the product of two lengths.
const MAX_FUZZY_CHARS: usize = 500;
/// Most work of comparing letters, in pairs of letters: some seconds of a processor.
const MAX_FUZZY_WORK: usize = 2_000_000_000;

const CLASSIFICATION: &[Member] = &[
    required("min_score", Kind::Number(0.0, 1.0), "From this score on"),
    required("label", Kind::Text, "The match is called this"),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "cross_compare",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "git-compare",
    about: "Compares the documents with those of a reference collection and tells what matches",
    members: &[
        required(
            "reference_collection_id",
            Kind::Text,
            "Id or name of the collection to compare with",
        ),
        member(
            "source_field",
            Kind::Text,
            r#""content""#,
            "Dot path of what is compared",
        ),
        member(
            "reference_field",
            Kind::Text,
            r#""content""#,
            "Dot path of it in the reference documents",
        ),
        member(
            "extraction_mode",
            Kind::Choice(&["raw", "lines", "labels", "list"]),
            r#""raw""#,
            "raw: the field as one text; lines: each line; labels: each part between commas, semicolons or bars; \
             list: each member",
        ),
        member(
            "match_tiers",
            Kind::Texts,
            r#"["exact", "fuzzy"]"#,
            "The ways tried, of exact, fuzzy, semantic and visual",
        ),
        member(
            "fuzzy_threshold",
            Kind::Number(0.0, 1.0),
            "0.75",
            "Least likeness of letters",
        ),
        member(
            "semantic_threshold",
            Kind::Number(0.0, 1.0),
            "0.85",
            "Least likeness of meaning",
        ),
        member(
            "visual_threshold",
            Kind::Number(0.0, 1.0),
            "0.55",
            "Least likeness of pictures",
        ),
        member(
            "classifications",
            Kind::Objects(CLASSIFICATION, 20),
            r#"[{"min_score": 0.95, "label": "exact_match"}, {"min_score": 0.85, "label": "close_match"}, {"min_score": 0.65, "label": "partial_match"}, {"min_score": 0.0, "label": "no_match"}]"#,
            "What a match of a score is called",
        ),
        member(
            "no_match_label",
            Kind::Text,
            r#""no_match""#,
            "What an item without a match is called",
        ),
        member(
            "output_mode",
            Kind::Choice(&["findings", "enrich"]),
            r#""findings""#,
            "findings: one row an item; enrich: each document with its findings",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""comparison_results""#,
            "Where the findings of a document go",
        ),
        member(
            "reference_limit",
            Kind::Integer(1, 5000),
            "200",
            "Most documents of the reference collection that are read",
        ),
    ],
};

const TIERS: [&str; 4] = ["exact", "fuzzy", "semantic", "visual"];

/// What is compared: a text of a document, its meaning and the document's look where they are asked for.
struct Item {
    document: usize,
    document_id: String,
    collection_id: Value,
    text: String,
    /// The beginning of the text in small letters.
    folded: Vec<char>,
    meaning: Option<Vec<f32>>,
    look: Option<Vec<f32>>,
}

/// A tier that is tried, with its least score.
type Tier = (&'static str, f64);

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let tiers = tiers(at, p)?;
    let rows = at.rows(set).await?;
    let collections = at.collections_named(&p.word("reference_collection_id"))?;
    let mode = p.word("extraction_mode");
    let mut sources = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        sources.extend(items(place, row, &p.word("source_field"), &mode));
    }
    if sources.len() > MAX_ITEMS {
        sources.truncate(MAX_ITEMS);
        at.warn(format!(
            "stage `{}`: only the first {MAX_ITEMS} items were compared",
            at.stage
        ));
    }
    let references = references(at, p, &collections).await?;
    let mut others = others(at, &references, &p.word("reference_field"), &mode);
    if tiers.iter().any(|(name, _)| *name == "fuzzy") {
        check_work(at, &sources, &others)?;
    }
    if tiers.iter().any(|(name, _)| *name == "semantic") {
        vectors::meanings(at, &collections, &mut sources, &mut others).await?;
    }
    if tiers.iter().any(|(name, _)| *name == "visual") {
        vectors::looks(at, &collections, &mut sources, &mut others).await?;
    }
    let labels: Vec<(f64, String)> = labels(p);
    let none = p.word("no_match_label");
    let compared = sources.len();
    let findings = offload(move || {
        let one = |item: &Item| {
            (
                item.document,
                finding(item, &others, &tiers, &labels, &none),
            )
        };
        sources.iter().map(one).collect::<Vec<_>>()
    });
    let findings = findings.await?;
    at.report.metadata.insert("items".into(), json!(compared));
    at.report
        .metadata
        .insert("references".into(), json!(references.len()));
    if p.word("output_mode") == "findings" {
        let row = |(_, value): (usize, Value)| Row {
            value: value.into(),
        };
        return Ok(Working::Rows(findings.into_iter().map(row).collect()));
    }
    let mut lists: Vec<Vec<Value>> = rows.iter().map(|_| Vec::new()).collect();
    for (document, value) in findings {
        lists[document].push(value);
    }
    let target = p.word("output_field");
    let told = rows.into_iter().zip(lists).map(|(mut row, list)| {
        row.set(&target, Value::Array(list));
        row
    });
    Ok(Working::Rows(told.collect()))
}

fn check_work(at: &Execution, sources: &[Item], others: &[Item]) -> Result<(), RunError> {
    let letters = |items: &[Item]| items.iter().map(|i| i.folded.len()).sum::<usize>();
    if letters(sources).saturating_mul(letters(others)) <= MAX_FUZZY_WORK {
        return Ok(());
    }
    Err(RunError::Invalid(format!(
        "stage `{}`: that is too much text to compare letter by letter; compare fewer documents, or leave the tier \
         `fuzzy` out",
        at.stage
    )))
}

/// What the table cannot say.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let tiers = parameters.get("match_tiers").and_then(Value::as_array);
    for (place, word) in tiers.into_iter().flatten().enumerate() {
        let Some(word) = word.as_str().filter(|word| !is_template(word)) else {
            continue;
        };
        if !TIERS.contains(&word) {
            let here = inside(&inside(loc, "match_tiers"), &place.to_string());
            let msg = format!("the match tiers are {}, not `{word}`", TIERS.join(", "));
            out.push(problem(here, "enum", msg));
        }
    }
}

fn tiers(at: &Execution, p: &Parameters) -> Result<Vec<Tier>, RunError> {
    let asked = p.texts("match_tiers");
    if let Some(word) = asked.iter().find(|word| !TIERS.contains(&word.as_str())) {
        return Err(RunError::Invalid(format!(
            "stage `{}`: there is no match tier `{word}`; there are {}",
            at.stage,
            TIERS.join(", ")
        )));
    }
    let least = |name: &str| match name {
        "exact" => 1.0,
        other => p.number(&format!("{other}_threshold")).unwrap_or(1.0),
    };
    let tried = TIERS
        .into_iter()
        .filter(|name| asked.iter().any(|a| a == name));
    Ok(tried.map(|name| (name, least(name))).collect())
}

fn labels(p: &Parameters) -> Vec<(f64, String)> {
    let mut list: Vec<(f64, String)> = p
        .objects("classifications")
        .iter()
        .map(|c| (c.number("min_score").unwrap_or(0.0), c.word("label")))
        .collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0));
    list
}

fn items(document: usize, row: &Row, field: &str, mode: &str) -> Vec<Item> {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let found: Vec<&Value> = row
        .all_at(field)
        .into_iter()
        .filter(|v| !v.is_null())
        .collect();
    let members = found.iter().flat_map(|value| match value {
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>(),
        other => vec![plain(other)],
    });
    let texts: Vec<String> = match mode {
        "lines" => members
            .flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect(),
        "labels" => members
            .flat_map(|t| {
                t.split([',', ';', '|'])
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect(),
        "list" => members.collect(),
        _ => vec![members.collect::<Vec<_>>().join("\n")],
    };
    let item = |text: String| {
        let text = text.trim().to_owned();
        let letters = text.chars().flat_map(char::to_lowercase);
        Item {
            document,
            document_id: row.id().to_owned(),
            collection_id: row.at("collection_id").cloned().unwrap_or(Value::Null),
            folded: letters.take(MAX_FUZZY_CHARS).collect(),
            text,
            meaning: None,
            look: None,
        }
    };
    // A picture has no text of its own, and is compared by its look.
    let made = texts.into_iter().map(item);
    made.filter(|item| mode == "raw" || !item.text.is_empty())
        .collect()
}

async fn references(
    at: &mut Execution,
    p: &Parameters,
    collections: &[Searchable],
) -> Result<Vec<Row>, RunError> {
    let limit = p.count("reference_limit").unwrap_or(200);
    let query = ListQuery {
        limit,
        ..ListQuery::default()
    };
    let page = at.run.store.list(&at.reach_of(collections), query).await?;
    // What matches none of these may match another.
    if page.next.is_some() {
        at.warn(format!(
            "stage `{}`: only the first {limit} documents of the reference collection were compared with; raise \
             `reference_limit`",
            at.stage
        ));
    }
    Ok(page
        .documents
        .into_iter()
        .map(|d| Row::new(d, None))
        .collect())
}

/// What is compared with.
fn others(at: &mut Execution, references: &[Row], field: &str, mode: &str) -> Vec<Item> {
    let mut others = Vec::new();
    for (place, row) in references.iter().enumerate() {
        others.extend(items(place, row, field, mode));
    }
    if others.len() > MAX_REFERENCES {
        others.truncate(MAX_REFERENCES);
        at.warn(format!(
            "stage `{}`: only the first {MAX_REFERENCES} items of the references were compared with",
            at.stage
        ));
    }
    others
}

/// What was found for one item: the best match of the strictest tier that has one.
fn finding(
    item: &Item,
    others: &[Item],
    tiers: &[Tier],
    labels: &[(f64, String)],
    none: &str,
) -> Value {
    let mut told = Object::new();
    let mut tell = |name: &str, value: Value| told.insert(name.to_owned(), value);
    tell("document_id", json!(item.document_id));
    tell("collection_id", item.collection_id.clone());
    tell("item", json!(item.text));
    let best = tiers.iter().find_map(|(tier, least)| {
        let scored = others.iter().map(|other| (score(tier, item, other), other));
        let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 >= *least && best.0 > 0.0).then_some((*tier, best))
    });
    let Some((tier, (score, other))) = best else {
        tell("score", json!(0.0));
        tell("classification", json!(none));
        tell("match_tier", Value::Null);
        tell("match", Value::Null);
        return Value::Object(told);
    };
    let label = labels.iter().find(|(least, _)| score >= *least);
    tell("score", json!(score));
    tell(
        "classification",
        json!(label.map_or(none, |(_, label)| label)),
    );
    tell("match_tier", json!(tier));
    let matched = json!({"document_id": other.document_id, "collection_id": other.collection_id, "item": other.text});
    tell("match", matched);
    Value::Object(told)
}

fn score(tier: &str, a: &Item, b: &Item) -> f64 {
    let vectors = |a: &Option<Vec<f32>>, b: &Option<Vec<f32>>| match (a, b) {
        (Some(a), Some(b)) => cosine(a, b),
        _ => 0.0,
    };
    match tier {
        "exact" => f64::from(u8::from(!a.text.is_empty() && a.text == b.text)),
        "fuzzy" => {
            let longest = a.folded.len().max(b.folded.len());
            if a.folded.is_empty() || b.folded.is_empty() {
                return 0.0;
            }
            let apart = strsim::generic_levenshtein(&a.folded, &b.folded);
            1.0 - apart as f64 / longest as f64
        }
        "semantic" => vectors(&a.meaning, &b.meaning),
        _ => vectors(&a.look, &b.look),
    }
}
