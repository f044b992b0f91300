//! `document_enrich`: members of documents that are linked to those found, from any collection that the retriever names.

use std::collections::{BTreeMap, HashMap, HashSet};

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, inside, member, problem};
use super::working::{Row, Working, list};
use super::{Definition, RunError, Searchable, StageProblem, called, kept};
use crate::filter::{Filter, MAX_MEMBERS, Operator};
use crate::store::Reach;

/// The default of `target_collection_id`: the collections of the retriever.
pub(super) const OWN: &str = "{{COLLECTION_ID}}";
/// Most linked documents that are read.
const MAX_LINKED: usize = 5_000;
/// Documents of a retriever that `append` merges.
const MAX_APPENDED: usize = 10;
/// What a search says of a document, not the document of itself.
const OF_A_SEARCH: [&str; 2] = ["score", "scores"];

pub(crate) static DEFINITION: Definition = Definition {
    id: "document_enrich",
    aliases: &[],
    category: StageCategory::Enrich,
    icon: "link",
    about: "Adds members of linked documents: those whose `target_field` has the value of `source_field`, or that a retriever finds",
    members: &[
        member(
            "target_collection_id",
            // Not rendered: the name belongs to this stage alone.
            Kind::Template,
            r#""{{COLLECTION_ID}}""#,
            "Id or name of the collection of the linked documents, in which alone `retriever_id` or `retriever_config` search, too; the \
             retriever's own where not given",
        ),
        member(
            "source_field",
            Kind::Text,
            r#""source_object_id""#,
            "Dot path, in the documents found, of the value that links",
        ),
        member(
            "target_field",
            Kind::Text,
            r#""document_id""#,
            "Dot path, in the linked documents, of the same value",
        ),
        member(
            "fields_to_merge",
            Kind::Texts,
            "[]",
            "Dot paths of the members that are added; all of the user's where not given",
        ),
        member(
            "output_field",
            Kind::Text,
            "",
            "Where they go, as one object; beside the document's own members where not given",
        ),
        member(
            "strategy",
            Kind::Choice(&["enrich", "replace", "append"]),
            r#""enrich""#,
            "enrich: members that the document has stay its own; replace: the linked ones win; append: both, as a list",
        ),
        member(
            "allow_missing",
            Kind::Boolean,
            "true",
            "Whether documents without a linked one stay",
        ),
        member(
            "cache_behavior",
            Kind::Choice(&["auto", "disabled", "aggressive"]),
            r#""auto""#,
            "Whether linked documents are kept for the same values of the same caller until a document changes; disabled: not",
        ),
        member(
            "cache_ttl_seconds",
            Kind::Integer(0, 31_536_000),
            "",
            "How long they are kept at most; a minute where not given, and never longer",
        ),
        member(
            "retriever_id",
            Kind::Verbatim,
            "",
            "Id or name of a retriever that is run for each document, in the place of `source_field` and `target_field`; written out, for \
             whoever makes this one must be allowed to execute it",
        ),
        member(
            "retriever_config",
            Kind::Templates,
            "",
            "The same, told here: `stages`, `collection_identifiers` (`target_collection_id` or the retriever's own where not given), \
             `input_schema`",
        ),
        member(
            "retriever_inputs",
            Kind::Templates,
            "",
            "Its inputs, with the document in them as DOC; those of this execution where not given",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    if at.inner.is_some() || p.text("retriever_id").is_some() {
        return run_for_each(at, p, rows).await;
    }
    let (source, target) = (p.word("source_field"), p.word("target_field"));
    let linked = linked(at, p, &rows, &source, &target).await?;
    let keep = p.flag("allow_missing");
    let (mut out, mut missing) = (Vec::with_capacity(rows.len()), 0);
    for mut row in rows {
        let found = row
            .all_at(&source)
            .into_iter()
            .flat_map(members)
            .find_map(|value| linked.get(&value.to_string()));
        match found {
            Some(other) => merge(p, &mut row, other),
            None => {
                missing += 1;
                if !keep {
                    continue;
                }
            }
        }
        out.push(row);
    }
    let metadata = &mut at.report.metadata;
    metadata.insert("linked".into(), json!(linked.len()));
    metadata.insert("without_link".into(), json!(missing));
    Ok(Working::Rows(out))
}

/// What the table cannot say.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let given = |name: &str| parameters.get(name).is_some_and(|value| !value.is_null());
    let (id, config) = (given("retriever_id"), given("retriever_config"));
    if id && config {
        let msg = "`retriever_id` and `retriever_config` are two ways to say the same";
        let loc = inside(loc, "retriever_config");
        out.push(problem(loc, "value_error", msg.into()));
    }
    if given("retriever_inputs") && !id && !config {
        let msg = "`retriever_inputs` are those of `retriever_id` or `retriever_config`";
        out.push(problem(inside(loc, "retriever_id"), "missing", msg.into()));
    }
}

/// Merges what a retriever finds for each document: the best, or with `append` the first few.
async fn run_for_each(
    at: &mut Execution,
    p: &Parameters,
    rows: Vec<Row>,
) -> Result<Working, RunError> {
    let most = match p.word("strategy").as_str() {
        "append" => MAX_APPENDED,
        _ => 1,
    };
    let found = called::run(at, p, &rows, most).await?;
    let all = rows.len();
    let (mut out, mut missing, mut failed) = (Vec::with_capacity(rows.len()), 0, Vec::new());
    for (mut row, found) in rows.into_iter().zip(found) {
        match found {
            // Nobody knows whether there is one.
            None => {}
            Some(Err(reason)) => failed.push(reason),
            Some(Ok(found)) if found.is_empty() => {
                missing += 1;
                if !p.flag("allow_missing") {
                    continue;
                }
            }
            Some(Ok(found)) => found
                .into_iter()
                .for_each(|one| merge(p, &mut row, &itself(p, one))),
        }
        out.push(row);
    }
    match failed.first() {
        Some(reason) if failed.len() == all => {
            let stage = &at.stage;
            return Err(RunError::Invalid(format!("stage `{stage}`: {reason}")));
        }
        Some(reason) => {
            let stage = at.stage.clone();
            let failed = failed.len();
            let reason = format!("{failed} of {all} documents were not enriched: {reason}");
            let next_step = "correct `retriever_inputs`, or the retriever";
            at.degrade("stage", &stage, &reason, next_step);
        }
        None => {}
    }
    let metadata = &mut at.report.metadata;
    metadata.insert("without_link".into(), json!(missing));
    Ok(Working::Rows(out))
}

/// A document found, without what its search says of it unless that is asked for.
fn itself(p: &Parameters, mut found: Row) -> Row {
    if let (true, Some(members)) = (
        p.texts("fields_to_merge").is_empty(),
        found.value.as_object_mut(),
    ) {
        for name in OF_A_SEARCH {
            members.shift_remove(name);
        }
    }
    found
}

/// The linked documents by the value that links, read in one question to the store.
async fn linked(
    at: &mut Execution,
    p: &Parameters,
    rows: &[Row],
    source: &str,
    target: &str,
) -> Result<HashMap<String, Row>, RunError> {
    let mut seen = HashSet::new();
    let mut values: Vec<Value> = rows
        .iter()
        .flat_map(|row| row.all_at(source))
        .flat_map(members)
        .filter(|value| !value.is_null() && seen.insert(value.to_string()))
        .cloned()
        .collect();
    if values.len() > MAX_MEMBERS {
        values.truncate(MAX_MEMBERS);
        at.warn(format!(
            "stage `{}`: only the first {MAX_MEMBERS} values were looked up",
            at.stage
        ));
    }
    if values.is_empty() {
        return Ok(HashMap::new());
    }
    let collections = targets(at, p)?;
    let reach = at.reach_of(&collections);
    let filter = Filter::leaf(lineage(target), Operator::In, Value::Array(values));
    let found = read(at, p, &reach, filter).await?;
    if found.len() == MAX_LINKED {
        at.warn(format!(
            "stage `{}`: only the first {MAX_LINKED} linked documents were read",
            at.stage
        ));
    }
    let mut linked = HashMap::new();
    for row in found {
        let keys: Vec<String> = row
            .all_at(target)
            .into_iter()
            .flat_map(members)
            .map(Value::to_string)
            .collect();
        for key in keys {
            linked.entry(key).or_insert_with(|| row.clone());
        }
    }
    Ok(linked)
}

/// The linked documents, from memory where the same caller asked for the same lately.
async fn read(
    at: &mut Execution,
    p: &Parameters,
    reach: &Reach,
    filter: Filter,
) -> Result<Vec<Row>, RunError> {
    let asked = json!([reach.collection_ids, format!("{filter:?}")]);
    let place = kept::beside(at, p, &asked);
    let known = place.as_ref().and_then(|place| place.rows(at));
    at.report.kept = place.is_some().then_some(known.is_some());
    if let Some(known) = known {
        return Ok(known);
    }
    let found = list(&*at.run.store, reach, Some(filter), None, 0, MAX_LINKED).await?;
    if let Some(place) = place {
        place.keep_rows(at, &[], &found);
    }
    Ok(found)
}

/// Whether they are those of the retriever.
pub(super) fn is_own(p: &Parameters) -> bool {
    p.word("target_collection_id").replace(' ', "") == OWN
}

/// The collections of the linked documents: those of `target_collection_id`.
pub(super) fn targets(at: &Execution, p: &Parameters) -> Result<Vec<Searchable>, RunError> {
    let written = p.word("target_collection_id");
    if is_own(p) {
        return Ok(at.run.collections.clone());
    }
    let identifier = crate::template::render_text(&written, &at.context)?;
    at.collections_named(&identifier)
}

/// The path under which the store keeps what documents are known by for short.
pub(super) fn lineage(path: &str) -> String {
    match path {
        "source_object_id" | "root_object_id" | "root_bucket_id" => {
            format!("_internal.lineage.{path}")
        }
        other => other.to_owned(),
    }
}

pub(super) fn members(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    }
}

fn merge(p: &Parameters, row: &mut Row, other: &Row) {
    let fields = p.texts("fields_to_merge");
    let added: BTreeMap<String, Value> = if fields.is_empty() {
        let object = other.value.as_object().into_iter().flatten();
        object
            .filter(|(name, _)| {
                !matches!(name.as_str(), "document_id" | "collection_id" | "_internal")
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    } else {
        fields
            .into_iter()
            .filter_map(|field| Some((field.clone(), other.at(&field)?.clone())))
            .collect()
    };
    let strategy = p.word("strategy");
    let prefix = p.text("output_field");
    for (name, value) in added {
        let path = match &prefix {
            Some(prefix) => format!("{prefix}.{name}"),
            None => name,
        };
        let own = row.at(&path).filter(|v| !v.is_null()).cloned();
        let value = match (strategy.as_str(), own) {
            (_, None) | ("replace", _) => value,
            ("append", Some(Value::Array(mut items))) => {
                items.push(value);
                Value::Array(items)
            }
            ("append", Some(own)) => json!([own, value]),
            (_, Some(own)) => own,
        };
        row.set(&path, value);
    }
}
