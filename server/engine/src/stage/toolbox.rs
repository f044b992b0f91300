//! The tools of agents: they search, filter and read documents, and look for the nodes of a taxonomy.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use loupe_wire::{Object, StageConfigInput, Value, reading};
use serde_json::json;

use super::agent::Agent;
use super::analysis::{self, Analysis};
use super::execution::Execution;
use super::taxonomy::{Subject, Taxonomy};
use super::working::{Row, list};
use super::{Outcome, Plan, Run, RunError, Searchable};
use crate::filter::Filter;
use crate::store::WithVectors;
use crate::template::has_template;

/// Documents that one call shows.
const SHOWN: usize = 20;
/// Characters of a document in a list, and of one that is read.
const IN_A_LIST: usize = 1_200;
const READ: usize = 10_000;
/// Features that one search asks.
const FEATURES: usize = 4;
/// Documents that one agent may see.
const MOST_FOUND: usize = 500;

/// What agents may use.
#[derive(Default)]
pub(crate) struct Toolbox {
    /// By the word that the names of tools end with.
    pub places: Vec<Place>,
    pub taxonomy: Option<Arc<Taxonomy>>,
    pub analysis: Option<Analysis>,
}

/// Documents that tools read.
pub(crate) struct Place {
    /// `documents`, `examples`.
    pub word: &'static str,
    pub collections: Vec<Searchable>,
    pub filter: Option<Filter>,
    pub searches: bool,
    pub filters: bool,
    /// The features that a text can be searched by.
    features: Vec<String>,
}

impl Place {
    pub async fn new(
        at: &Execution,
        word: &'static str,
        collections: Vec<Searchable>,
        filter: Option<Filter>,
    ) -> Self {
        let mut features: Vec<String> = Vec::new();
        for index in collections.iter().flat_map(|one| &one.indexes) {
            let Some(uri) = &index.feature_uri else {
                continue;
            };
            if features.len() < FEATURES
                && !features.contains(uri)
                && at.run.encoders.text(&index.output).await.is_ok()
            {
                features.push(uri.clone());
            }
        }
        Self {
            word,
            collections,
            filter,
            searches: !features.is_empty(),
            filters: true,
            features,
        }
    }

    fn offered(&self) -> Vec<Value> {
        let word = self.word;
        let limit = json!({"type": "integer", "minimum": 1, "maximum": SHOWN});
        let filters = json!({"type": "object", "description":
            "conditions, such as {\"year\": {\"$gte\": 1990}} or {\"AND\": [{\"field\": \"color\", \"operator\": \"eq\", \"value\": \"red\"}]}"});
        let mut offered = Vec::new();
        if self.searches {
            offered.push(tool(
                &format!("search_{word}"),
                &format!("Finds {word} by the meaning and the words of a text, best first"),
                json!({"query": {"type": "string"}, "filters": filters, "limit": limit}),
                &["query"],
            ));
        }
        if self.filters {
            offered.push(tool(
                &format!("filter_{word}"),
                &format!("Lists {word} that satisfy conditions, from number `offset` on"),
                json!({"filters": filters, "limit": limit, "offset": {"type": "integer", "minimum": 0}}),
                &[],
            ));
        }
        offered.push(tool(
            &format!("read_{word}"),
            "Gives a document in full",
            json!({"document_id": {"type": "string"}}),
            &["document_id"],
        ));
        offered
    }
}

pub(super) fn tool(name: &str, about: &str, properties: Value, required: &[&str]) -> Value {
    json!({"type": "function", "function": {"name": name, "description": about,
        "parameters": {"type": "object", "properties": properties, "required": required}}})
}

impl Toolbox {
    /// The tools as a language model is told of them.
    pub fn offered(&self) -> Vec<Value> {
        let mut offered: Vec<Value> = self.places.iter().flat_map(Place::offered).collect();
        if let Some(taxonomy) = &self.taxonomy {
            offered.push(tool(
                "taxonomy_nodes",
                &format!(
                    "Gives the nodes of the taxonomy `{}` that fit the document best",
                    taxonomy.name
                ),
                json!({"limit": {"type": "integer", "minimum": 1, "maximum": SHOWN}}),
                &[],
            ));
        }
        offered.extend(self.analysis.iter().map(Analysis::offered));
        offered
    }

    /// What a tool gives. What is wrong with a call is [`RunError::Invalid`], for the model to mend.
    pub async fn call(
        &self,
        at: &mut Execution,
        agent: &mut Agent,
        name: &str,
        arguments: &Object,
    ) -> Result<Value, RunError> {
        if let (Some(taxonomy), "taxonomy_nodes") = (&self.taxonomy, name) {
            return nodes(at, taxonomy, agent.row.as_ref(), limit(arguments)).await;
        }
        if let (Some(analysis), analysis::NAME) = (&self.analysis, name) {
            return analysis.ask(at, agent.row.as_ref(), arguments).await;
        }
        let (does, word) = name.split_once('_').unwrap_or((name, ""));
        let place = self.places.iter().find(|place| place.word == word);
        let place = place.filter(|place| match does {
            "search" => place.searches,
            "filter" => place.filters,
            "read" => true,
            _ => false,
        });
        let Some(place) = place else {
            return Err(RunError::Invalid(format!("there is no tool `{name}`")));
        };
        if does == "read" {
            return read(at, place, agent, arguments).await;
        }
        let rows = match does {
            "search" => searched(at, place, arguments).await?,
            _ => filtered(at, place, arguments).await?,
        };
        let told = rows.iter().map(|row| json!(shown(row, IN_A_LIST)));
        let told = Value::Array(told.collect());
        for row in rows {
            if agent.found.len() < MOST_FOUND {
                agent.found.entry(row.id().to_owned()).or_insert(row);
            }
        }
        Ok(told)
    }
}

fn limit(arguments: &Object) -> usize {
    let asked = arguments.get("limit").and_then(Value::as_u64);
    asked.map_or(10, |limit| (limit as usize).clamp(1, SHOWN))
}

/// The place's own filter and the model's.
fn filter(
    at: &mut Execution,
    place: &Place,
    arguments: &Object,
) -> Result<Option<Filter>, RunError> {
    let Some(raw) = arguments
        .get("filters")
        .filter(|raw| raw.as_object().is_some_and(|raw| !raw.is_empty()))
    else {
        return Ok(place.filter.clone());
    };
    // What a document may have talked a model into is a value, never an expression.
    if has_template(raw) {
        return Err(RunError::Invalid("a filter holds values only".into()));
    }
    let wanted = at.filter(raw)?;
    Ok(Some(match place.filter.clone() {
        Some(own) => own.and(wanted),
        None => wanted,
    }))
}

async fn searched(
    at: &mut Execution,
    place: &Place,
    arguments: &Object,
) -> Result<Vec<Row>, RunError> {
    let query = arguments.get("query").and_then(Value::as_str);
    let query = query
        .map(str::trim)
        .filter(|query| !query.is_empty())
        .ok_or_else(|| RunError::Invalid("`query` is a text".into()))?;
    let most = limit(arguments);
    let searches: Vec<Value> = place
        .features
        .iter()
        .enumerate()
        .map(|(number, uri)| {
            json!({"feature_uri": uri, "top_k": most * 2, "lexical": number == 0, "optional": number > 0,
                "query": {"input_mode": "text", "value": "{{INPUT.query}}"}})
        })
        .collect();
    let stage = json!({"stage_name": "search", "config": {"stage_id": "feature_search",
        "parameters": {"searches": searches, "final_top_k": most}}});
    let stage: StageConfigInput =
        reading::from_value(&stage).map_err(|e| RunError::Invalid(e.to_string()))?;
    let plan = Plan::compile(&[stage], &IndexMap::new()).map_err(|problems| {
        let first = problems.into_iter().next();
        RunError::Invalid(first.map(|problem| problem.msg).unwrap_or_default())
    })?;
    let filter = filter(at, place, arguments)?;
    let inputs = Object::from_iter([("query".to_owned(), json!(query))]);
    let collections = place.collections.clone();
    let mut run = at
        .run
        .inner(collections, Vec::new(), HashMap::new(), inputs, most);
    run.filter = filter;
    let outcome = search(&plan, run).await?;
    let rows = outcome.documents.into_iter().map(|document| Row {
        value: document.into(),
    });
    Ok(rows.collect())
}

/// A plan inside a plan's stage: a future that were not boxed would hold itself.
fn search(plan: &Plan, run: Run) -> BoxFuture<'_, Result<Outcome, RunError>> {
    Box::pin(plan.run(run))
}

async fn filtered(
    at: &mut Execution,
    place: &Place,
    arguments: &Object,
) -> Result<Vec<Row>, RunError> {
    let filter = filter(at, place, arguments)?;
    let offset = arguments.get("offset").and_then(Value::as_u64);
    let offset = offset.unwrap_or(0).min(10_000) as usize;
    let reach = at.reach_of(&place.collections);
    list(
        &*at.run.store,
        &reach,
        filter,
        None,
        offset,
        limit(arguments),
    )
    .await
}

async fn read(
    at: &Execution,
    place: &Place,
    agent: &mut Agent,
    arguments: &Object,
) -> Result<Value, RunError> {
    let id = arguments.get("document_id").and_then(Value::as_str);
    let id = id.ok_or_else(|| RunError::Invalid("`document_id` is a text".into()))?;
    let reach = at.reach_of(&place.collections);
    let ids = [id.to_owned()];
    let found = at.run.store.get(&reach, &ids, WithVectors::No).await?;
    let row = found.into_iter().next().map(|one| Row::new(one, None));
    let matcher = place.filter.as_ref().map(|filter| filter.matcher());
    let row = row.filter(|row| {
        matcher
            .as_ref()
            .is_none_or(|matcher| matcher.matches(&row.value))
    });
    let row = row.ok_or_else(|| RunError::Invalid(format!("there is no document `{id}`")))?;
    let told = json!(shown(&row, READ));
    if agent.found.len() < MOST_FOUND {
        agent.found.entry(row.id().to_owned()).or_insert(row);
    }
    Ok(told)
}

async fn nodes(
    at: &Execution,
    taxonomy: &Taxonomy,
    row: Option<&Row>,
    most: usize,
) -> Result<Value, RunError> {
    let Some(row) = row else {
        return Err(RunError::Invalid("there is no document to place".into()));
    };
    let own = row.at("collection_id").and_then(Value::as_str);
    let known = at.run.collections.iter();
    let collection = own.and_then(|id| known.into_iter().find(|one| one.collection_id == id));
    let ids = [row.id().to_owned()];
    let reach = at.reach(&[]);
    let stored = at.run.store.get(&reach, &ids, WithVectors::Yes).await?;
    let vectors = stored.into_iter().next().map(|one| one.vectors);
    let subject = Subject {
        value: &row.value,
        vectors: &vectors.unwrap_or_else(BTreeMap::new),
        collection,
    };
    let found = taxonomy.classify(&at.run, &subject, most).await?;
    let told = found.iter().map(|one| {
        json!({"node_id": one.node_id, "label": one.label, "path": one.path, "score": one.score})
    });
    Ok(Value::Array(told.collect()))
}

/// A document as a language model is shown it: without what the server added, and not longer than asked.
pub(crate) fn shown(row: &Row, most: usize) -> String {
    let mut members = row.value.as_object().cloned().unwrap_or_default();
    for own in ["_internal", "vectors", "scores", "score"] {
        members.shift_remove(own);
    }
    let text = Value::Object(members).to_string();
    text.chars().take(most).collect()
}
