//! `traverse_edge`: the documents that are linked with those found, step by step: along the edges of the objects that they
//! come from, or by fields that name each other.

mod ends;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use self::ends::{Ends, attach, ends};
use super::document_enrich::{OWN, lineage, members, targets};
use super::execution::{Execution, offload};
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working, list};
use super::{Definition, RunError};
use crate::filter::{Filter, MAX_MEMBERS, Operator};
use crate::store::Reach;

/// Most documents that one step reads.
const MAX_READ: usize = 5_000;
/// Where documents keep the edges of the object at the beginning of their line, and that object's id.
const EDGES: &str = "_internal.edges";
const ROOT: &str = "_internal.lineage.root_object_id";

pub(crate) static DEFINITION: Definition = Definition {
    id: "traverse_edge",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "waypoints",
    about: "Gives the documents that those found are linked with, along the edges of their objects or by fields, up to \
            some steps away",
    members: &[
        member(
            "edge_types",
            Kind::Texts,
            "[]",
            "The types of edges that are followed; all where not given",
        ),
        member(
            "direction",
            Kind::Choice(&["out", "in", "both"]),
            r#""out""#,
            "out: to what a document names; in: to what names it",
        ),
        member(
            "source_field",
            Kind::Text,
            "",
            "Dot path of the values that name other documents; the edges of the objects are followed where not given",
        ),
        member(
            "target_field",
            Kind::Text,
            r#""document_id""#,
            "Dot path, in the documents named, of the same value; only with `source_field`",
        ),
        member(
            "target_collection_id",
            Kind::Template,
            r#""{{COLLECTION_ID}}""#,
            "Id or name of the collection of the linked documents; the retriever's own where not given",
        ),
        member(
            "max_depth",
            Kind::Integer(1, 5),
            "1",
            "Most steps away from the documents found",
        ),
        member(
            "fan_out",
            Kind::Integer(1, 1000),
            "50",
            "Most documents that one document leads to",
        ),
        member(
            "limit",
            Kind::Integer(1, 5000),
            "500",
            "Most linked documents altogether",
        ),
        member(
            "filters",
            Kind::Filter,
            "",
            "Conditions of linked documents; the others are neither given nor gone through",
        ),
        member(
            "include_sources",
            Kind::Boolean,
            "false",
            "Whether the documents found stay, before those linked",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""edge""#,
            "Where a linked document tells how it was come to: depth, from_document_id, direction and what linked it",
        ),
    ],
};

/// What links documents.
enum Via {
    /// Edges of these types, or of all.
    Edges(Vec<String>),
    Fields {
        source: String,
        target: String,
    },
}

/// How a stage goes through the documents.
struct Walk {
    via: Via,
    out: bool,
    back: bool,
    /// Names of collections by their ids.
    names: HashMap<String, String>,
    reach: Reach,
    filter: Option<Filter>,
    fan_out: usize,
    output: String,
}

/// What a document says of its link to another one.
struct Statement {
    /// What the other one is known by.
    key: Value,
    /// Whether the link goes from this document to the other.
    outward: bool,
    /// The collection, by id or name, that the other one has to be of.
    collection: Option<String>,
    told: Object,
}

#[derive(Default)]
struct Cut {
    fan_out: usize,
    limit: bool,
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let sources = at.rows(set).await?;
    let walk = Arc::new(walk(at, p)?);
    let limit = p.count("limit").unwrap_or(usize::MAX);
    let mut seen: HashSet<String> = sources.iter().map(|row| row.id().to_owned()).collect();
    let (mut linked, mut hops, mut cut) = (0, Vec::new(), Cut::default());
    let mut steps = vec![Arc::new(sources)];
    for depth in 1..=p.count("max_depth").unwrap_or(1) {
        let Some(from) = steps.last().filter(|from| !from.is_empty()).cloned() else {
            break;
        };
        if linked >= limit {
            break;
        }
        // What is compared may be thousands of documents with thousands of edges.
        let (way, places) = (walk.clone(), from.clone());
        let mut ends = offload(move || ends(&way, &places)).await?;
        let question = asked(at, &walk, &mut ends);
        let found = read(at, &walk, question).await?;
        let read = found.len();
        let (way, places) = (walk.clone(), from.clone());
        let attached = offload(move || {
            let attached = attach(&way, &places, &ends, found, depth, &seen);
            (attached, seen)
        });
        let ((mut step, left_out), met) = attached.await?;
        seen = met;
        cut.fan_out += left_out;
        cut.limit |= step.len() > limit - linked;
        step.truncate(limit - linked);
        hops.push(json!({"depth": depth, "from": from.len(), "read": read, "linked": step.len()}));
        seen.extend(step.iter().map(|row| row.id().to_owned()));
        linked += step.len();
        steps.push(Arc::new(step));
    }
    tell(at, &walk, limit, &cut);
    at.report.metadata.insert("hops".into(), json!(hops));
    let sources = usize::from(!p.flag("include_sources"));
    let kept = steps.into_iter().skip(sources);
    Ok(Working::Rows(kept.flat_map(Arc::unwrap_or_clone).collect()))
}

fn walk(at: &mut Execution, p: &Parameters) -> Result<Walk, RunError> {
    let collections = targets(at, p)?;
    let own = p.word("target_collection_id").replace(' ', "") == OWN;
    let mut filter = p.get("filters").map(|raw| at.filter(&raw)).transpose()?;
    // What the request does not want of the retriever's collections is not come to by links either.
    if let Some(asked) = at.run.filter.clone().filter(|_| own) {
        filter = Some(match filter {
            Some(filter) => filter.and(asked),
            None => asked,
        });
    }
    let direction = p.word("direction");
    Ok(Walk {
        via: match p.text("source_field") {
            None => Via::Edges(p.texts("edge_types")),
            Some(source) => Via::Fields {
                source,
                target: p.word("target_field"),
            },
        },
        out: direction != "in",
        back: direction != "out",
        names: collections
            .iter()
            .chain(&at.run.collections)
            .map(|c| (c.collection_id.clone(), c.name.clone()))
            .collect(),
        reach: at.reach_of(&collections),
        filter,
        fan_out: p.count("fan_out").unwrap_or(usize::MAX),
        output: p.word("output_field"),
    })
}

impl Walk {
    /// Whether links that go out, or come in, are followed.
    fn follows(&self, outward: bool) -> bool {
        if outward { self.out } else { self.back }
    }

    fn statements(&self, row: &Row) -> Vec<Statement> {
        match &self.via {
            Via::Edges(types) => {
                let edges = row.all_at(EDGES).into_iter().flat_map(members);
                edges.filter_map(|edge| statement(edge, types)).collect()
            }
            Via::Fields { source, .. } => {
                let values = row.all_at(source).into_iter().flat_map(members);
                let said = |value: &Value| Statement {
                    key: value.clone(),
                    outward: true,
                    collection: None,
                    told: Object::from_iter([
                        ("field".to_owned(), json!(source)),
                        ("value".to_owned(), value.clone()),
                    ]),
                };
                values.filter(|value| !value.is_null()).map(said).collect()
            }
        }
    }

    /// What others name a document by.
    fn names<'a>(&self, row: &'a Row) -> Vec<&'a Value> {
        let path = match &self.via {
            Via::Edges(_) => ROOT,
            Via::Fields { target, .. } => target,
        };
        let values = row.all_at(path).into_iter().flat_map(members);
        values.filter(|value| !value.is_null()).collect()
    }

    /// Conditions that the other ends of links satisfy; more may.
    fn question(&self, ends: &Ends) -> Option<Filter> {
        let among =
            |path: String, values: &[Value]| Filter::leaf(path, Operator::In, json!(values));
        let mut parts = Vec::new();
        if !ends.named_values.is_empty() {
            let path = match &self.via {
                Via::Edges(_) => ROOT.to_owned(),
                Via::Fields { target, .. } => lineage(target),
            };
            parts.push(among(path, &ends.named_values));
        }
        if !ends.known_values.is_empty() {
            parts.push(match &self.via {
                Via::Edges(types) => {
                    let names = among(format!("{EDGES}.target_object_id"), &ends.known_values);
                    let types: Vec<Value> = types.iter().map(|word| json!(word)).collect();
                    let mut asked = names;
                    if !types.is_empty() {
                        asked = asked.and(among(format!("{EDGES}.type"), &types));
                    }
                    // Who says of itself that another leads to it says `in`.
                    if !self.back {
                        asked = asked.and(Filter::eq(format!("{EDGES}.direction"), "in"));
                    }
                    asked
                }
                Via::Fields { source, .. } => among(lineage(source), &ends.known_values),
            });
        }
        let question = (!parts.is_empty()).then_some(Filter::Any(parts))?;
        Some(match &self.filter {
            Some(filter) => question.and(filter.clone()),
            None => question,
        })
    }

    /// What a link may say of the collection of a document that it means.
    fn collections(&self, row: &Row) -> Vec<Option<String>> {
        let id = row.value.get("collection_id").and_then(Value::as_str);
        let id = id.unwrap_or_default().to_owned();
        let name = self.names.get(&id).cloned();
        [None, Some(id)].into_iter().chain(name.map(Some)).collect()
    }
}

fn statement(edge: &Value, types: &[String]) -> Option<Statement> {
    let word = edge.get("type")?.as_str()?;
    if !types.is_empty() && !types.iter().any(|one| one == word) {
        return None;
    }
    let mut told = Object::from_iter([("type".to_owned(), json!(word))]);
    if let Some(attributes) = edge.get("attributes") {
        told.insert("attributes".into(), attributes.clone());
    }
    let collection = edge.get("target_collection_id").and_then(Value::as_str);
    Some(Statement {
        key: edge.get("target_object_id")?.clone(),
        outward: edge.get("direction").and_then(Value::as_str) != Some("in"),
        collection: collection.map(str::to_owned),
        told,
    })
}

/// The question for the other ends; said where they are too many for one.
fn asked(at: &mut Execution, walk: &Walk, ends: &mut Ends) -> Option<Filter> {
    if ends.named_values.len().max(ends.known_values.len()) > MAX_MEMBERS {
        ends.named_values.truncate(MAX_MEMBERS);
        ends.known_values.truncate(MAX_MEMBERS);
        at.warn(format!(
            "stage `{}`: only the first {MAX_MEMBERS} values of a step were looked up",
            at.stage
        ));
    }
    walk.question(ends)
}

/// The documents that may be the other ends, in one question to the store.
async fn read(
    at: &mut Execution,
    walk: &Walk,
    question: Option<Filter>,
) -> Result<Vec<Row>, RunError> {
    let Some(question) = question else {
        return Ok(Vec::new());
    };
    let found = list(
        &*at.run.store,
        &walk.reach,
        Some(question),
        None,
        0,
        MAX_READ,
    )
    .await?;
    if found.len() == MAX_READ {
        at.warn(format!(
            "stage `{}`: only the first {MAX_READ} documents of a step were read; narrow `filters`",
            at.stage
        ));
    }
    Ok(found)
}

fn tell(at: &mut Execution, walk: &Walk, limit: usize, cut: &Cut) {
    let stage = at.stage.clone();
    if cut.fan_out > 0 {
        at.warn(format!(
            "stage `{stage}`: {} linked documents were left out: more than `fan_out` ({}) of one document",
            cut.fan_out, walk.fan_out
        ));
    }
    if cut.limit {
        at.warn(format!(
            "stage `{stage}`: only the first {limit} linked documents are given; raise `limit`"
        ));
    }
    let left = &mut at.report.metadata;
    left.insert("left_out_by_fan_out".into(), json!(cut.fan_out));
    left.insert("cut_by_limit".into(), json!(cut.limit));
}
