//! Taxonomies: the nodes that a document belongs to, found by retrievers over collections of nodes, and what the document
//! takes over from them.
//!
//! A flat taxonomy has one [`Level`], whose collection holds the nodes themselves. A hierarchical one has a level a
//! collection, each below another: a document is led from a root to the child that fits best, and on from there. Where the
//! nodes tell their own place (`path`), one level holds the whole tree.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use loupe_wire::{
    EnrichmentField, EnrichmentMergeMode, HierarchicalEnrichmentStyle, InputMapping,
    InputSourceType, Object, RetrieverInputSchemaField, Value,
};
use serde_json::json;

use super::targets::targets;
use super::working::Row;
use super::{Outcome, Plan, Run, RunError, Searchable, check_inputs};

/// Members of a found document that are its own and never taken over.
const OWN: [&str; 6] = [
    "document_id",
    "collection_id",
    "score",
    "_internal",
    "document_blobs",
    "scores",
];
/// Where a node's label is looked for, in this order.
const LABELS: [&str; 4] = ["node_label", "label", "name", "title"];

/// A retriever that finds nodes.
pub struct Finder {
    pub plan: Plan,
    pub input_schema: IndexMap<String, RetrieverInputSchemaField>,
    /// Collections that its stages name.
    pub references: Vec<Searchable>,
    /// Values of the secrets that its stages send.
    pub secrets: HashMap<String, String>,
    /// Datasets over which its own last evaluation fell behind; see [`Plan::datasets`].
    pub fallen: Arc<[String]>,
}

/// One collection of nodes, or the collections of a tree that its nodes tell.
pub struct Level {
    pub collections: Vec<Searchable>,
    /// The place of the level above.
    pub parent: Option<usize>,
    pub label: String,
    pub finder: Arc<Finder>,
    pub mappings: Vec<InputMapping>,
    /// What is taken over; all of the user's members that the document lacks where absent.
    pub fields: Option<Vec<EnrichmentField>>,
}

/// How levels become a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Every document of the one level is a node.
    Flat,
    /// The nodes of the one level tell their place in this field, in pieces between the separator.
    Path { field: String, separator: String },
    /// The levels are the nodes.
    Levels,
}

/// A taxonomy, ready to be asked.
pub struct Taxonomy {
    pub taxonomy_id: String,
    pub name: String,
    pub version: i64,
    pub shape: Shape,
    pub levels: Vec<Level>,
    /// Nodes that a document is given, where the caller does not say.
    pub top_k: usize,
}

/// A document in search of its nodes.
pub struct Subject<'a> {
    /// As rows of a retriever are: ids and the user's members at the top.
    pub value: &'a Value,
    pub vectors: &'a BTreeMap<String, Vec<f32>>,
    /// The collection that it is of, for mappings that name a vector by its feature.
    pub collection: Option<&'a Searchable>,
}

/// A node that a document belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub node_id: String,
    pub label: String,
    pub score: Option<f64>,
    /// Labels from the root to the node.
    pub path: Vec<String>,
    pub depth: usize,
    /// The level whose fields are taken over.
    pub level: usize,
    /// The document found.
    pub document: Value,
}

impl Taxonomy {
    /// The nodes of a document: best first, or from the root down where the levels are the nodes. `ground` is what the
    /// searches run on; its own inputs and collections are not used.
    ///
    /// # Errors
    /// A mapping gives an input that the retriever does not take, or a search fails.
    pub async fn classify(
        &self,
        ground: &Run,
        subject: &Subject<'_>,
        top_k: usize,
    ) -> Result<Vec<Match>, RunError> {
        if self.shape != Shape::Levels {
            let found = self.find(ground, subject, 0, top_k).await?;
            let made = found.into_iter().filter_map(|row| self.node(row));
            return Ok(made.collect());
        }
        let mut chain: Vec<Match> = Vec::new();
        loop {
            let above = chain.last().map(|found| found.level);
            let mut best: Option<Match> = None;
            for (place, level) in self.levels.iter().enumerate() {
                if level.parent != above {
                    continue;
                }
                let found = self.find(ground, subject, place, 1).await?;
                let Some(row) = found.into_iter().next() else {
                    continue;
                };
                let score = row.score();
                if best.as_ref().is_none_or(|best| score > best.score) {
                    best = Some(self.step(place, level, row, chain.last()));
                }
            }
            match best {
                Some(best) => chain.push(best),
                None => return Ok(chain),
            }
        }
    }

    fn step(&self, place: usize, level: &Level, row: Row, above: Option<&Match>) -> Match {
        let mut path = above.map(|above| above.path.clone()).unwrap_or_default();
        path.push(level.label.clone());
        let collection = level.collections.first();
        Match {
            node_id: collection
                .map(|one| one.collection_id.clone())
                .unwrap_or_default(),
            label: level.label.clone(),
            score: row.score(),
            depth: path.len() - 1,
            path,
            level: place,
            document: row.value.into(),
        }
    }

    /// A document of the one level as a node; without a place in the tree it is none.
    fn node(&self, row: Row) -> Option<Match> {
        let (node_id, path) = match &self.shape {
            Shape::Path { field, separator } => {
                let path = pieces(row.at(field)?, separator);
                (path.join(separator), path)
            }
            _ => (row.id().to_owned(), vec![label_of(&row)]),
        };
        Some(Match {
            node_id,
            label: path.last()?.clone(),
            score: row.score(),
            depth: path.len() - 1,
            path,
            level: 0,
            document: row.value.into(),
        })
    }

    /// What the retriever of a level finds for the document, which is not found itself.
    async fn find(
        &self,
        ground: &Run,
        subject: &Subject<'_>,
        place: usize,
        most: usize,
    ) -> Result<Vec<Row>, RunError> {
        let Some(level) = self.levels.get(place) else {
            return Ok(Vec::new());
        };
        let sent = inputs(&level.mappings, subject);
        let inputs = check_inputs(&level.finder.input_schema, &sent).map_err(|faults| {
            let told: Vec<String> = faults
                .into_iter()
                .map(|fault| format!("{}: {}", fault.loc.join("."), fault.msg))
                .collect();
            let name = &self.name;
            RunError::Invalid(format!("taxonomy `{name}`: {}", told.join("; ")))
        })?;
        let finder = &level.finder;
        let mut run = ground.inner(
            level.collections.clone(),
            finder.references.clone(),
            finder.secrets.clone(),
            inputs,
            most + 1,
        );
        run.outside.fallen = finder.fallen.clone();
        let outcome = search(&finder.plan, run).await?;
        let own = subject.value.get("document_id");
        let rows = outcome.documents.into_iter().map(|document| Row {
            value: document.into(),
        });
        let others = rows.filter(|row| own.is_none() || row.value.get("document_id") != own);
        Ok(others.take(most).collect())
    }

    /// Takes over what the nodes give; answers the fields that were written.
    pub fn enrich(
        &self,
        document: &mut Value,
        matches: &[Match],
        fields: Option<&[EnrichmentField]>,
        style: HierarchicalEnrichmentStyle,
    ) -> Vec<String> {
        let mut row = Row {
            value: std::mem::take(document).into(),
        };
        let mut written = Vec::new();
        if self.shape == Shape::Levels {
            self.take_chain(&mut row, matches, fields, style, &mut written);
        } else {
            let fields = fields.or_else(|| self.levels.first()?.fields.as_deref());
            take(
                &mut row,
                &matches.iter().collect::<Vec<_>>(),
                fields,
                &mut written,
            );
        }
        *document = row.value.into();
        written
    }

    fn take_chain(
        &self,
        row: &mut Row,
        chain: &[Match],
        fields: Option<&[EnrichmentField]>,
        style: HierarchicalEnrichmentStyle,
        written: &mut Vec<String>,
    ) {
        let of = |found: &Match| {
            let level = self.levels.get(found.level);
            fields.or_else(|| level?.fields.as_deref())
        };
        match style {
            HierarchicalEnrichmentStyle::BestMatch => {
                let best = chain.iter().max_by(|a, b| {
                    let (a, b) = (a.score.unwrap_or(0.0), b.score.unwrap_or(0.0));
                    a.total_cmp(&b)
                });
                if let Some(best) = best {
                    take(row, &[best], of(best), written);
                }
            }
            // The deepest wins: it is the last one written, also of what the document lacks.
            HierarchicalEnrichmentStyle::Combined => {
                let before = row.clone();
                for found in chain {
                    match of(found) {
                        Some(fields) => take(row, &[found], Some(fields), written),
                        None => take_all(row, &before, &as_row(found), written),
                    }
                }
            }
            HierarchicalEnrichmentStyle::FullChain => take_lists(row, chain, of, written),
        }
    }

    /// What the document's record says of where it belongs.
    pub fn assignment(&self, found: &Match, written: &[String], at: &str) -> Value {
        json!({
            "taxonomy_id": self.taxonomy_id, "taxonomy_name": self.name, "version": self.version,
            "node_id": found.node_id, "label": found.label, "path": found.path, "score": found.score,
            "hierarchy_level": found.depth, "document_id": found.document.get("document_id"),
            "collection_id": found.document.get("collection_id"), "enriched_fields": written, "at": at,
        })
    }
}

/// A retriever inside a retriever's stage: a future that were not boxed would hold itself.
pub(super) fn search(plan: &Plan, run: Run) -> BoxFuture<'_, Result<Outcome, RunError>> {
    Box::pin(plan.run(run))
}

/// The pieces of a place: a text between separators, or a list of texts.
pub fn pieces(value: &Value, separator: &str) -> Vec<String> {
    let words: Vec<String> = match value {
        Value::String(text) => text
            .split(separator)
            .map(|word| word.trim().to_owned())
            .collect(),
        Value::Array(items) => items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

fn label_of(row: &Row) -> String {
    let found = LABELS.iter().find_map(|name| row.at(name)?.as_str());
    found.unwrap_or_else(|| row.id()).to_owned()
}

/// The inputs that the mappings make of a document. What it lacks is not sent.
fn inputs(mappings: &[InputMapping], subject: &Subject<'_>) -> Object {
    let mut out = Object::new();
    for mapping in mappings {
        let value = input(mapping, subject);
        if let Some(value) = value.filter(|value| !value.is_null()) {
            out.insert(mapping.input_key.clone(), value);
        }
    }
    out
}

fn input(mapping: &InputMapping, subject: &Subject<'_>) -> Option<Value> {
    if let Some(fixed) = mapping.r#override.as_ref().filter(|value| !value.is_null()) {
        return Some(fixed.clone());
    }
    let path = mapping.path.as_deref();
    match mapping.source_type.unwrap_or_default() {
        InputSourceType::Literal => path.map(Into::into),
        InputSourceType::Payload => {
            let row = Row {
                value: subject.value.clone().into(),
            };
            row.at(path.unwrap_or(&mapping.input_key)).cloned()
        }
        InputSourceType::Vector => vector(subject, path).map(|vector| json!(vector)),
        // Refused when a taxonomy is made.
        InputSourceType::Blob => None,
    }
}

/// The vector of a feature or an index, or the document's first.
fn vector<'a>(subject: &Subject<'a>, name: Option<&str>) -> Option<&'a Vec<f32>> {
    let Some(name) = name else {
        return subject.vectors.values().next();
    };
    let named = || {
        let collection = subject.collection?;
        let target = targets(std::slice::from_ref(collection), name, &[])
            .into_iter()
            .next()?;
        subject.vectors.get(&target.index)
    };
    subject.vectors.get(name).or_else(named)
}

/// One value a field: of the first match that has one, or of all where they are appended.
fn take(
    row: &mut Row,
    matches: &[&Match],
    fields: Option<&[EnrichmentField]>,
    written: &mut Vec<String>,
) {
    let found: Vec<Row> = matches.iter().map(|found| as_row(found)).collect();
    let Some(fields) = fields else {
        if let Some(first) = found.first() {
            let before = row.clone();
            take_all(row, &before, first, written);
        }
        return;
    };
    for field in fields {
        let target = field.target_field.as_ref().unwrap_or(&field.field_path);
        let values = found.iter().filter_map(|one| one.at(&field.field_path));
        let values: Vec<Value> = values.filter(|value| !value.is_null()).cloned().collect();
        let Some(first) = values.first().cloned() else {
            continue;
        };
        let value = match field.merge_mode {
            EnrichmentMergeMode::Replace => first,
            EnrichmentMergeMode::Append => appended(row.at(target).cloned(), values),
        };
        row.set(target, value);
        note(written, target);
    }
}

fn as_row(found: &Match) -> Row {
    Row {
        value: found.document.clone().into(),
    }
}

/// The members that the document lacked before anything was taken over.
fn take_all(row: &mut Row, before: &Row, found: &Row, written: &mut Vec<String>) {
    for (name, value) in lacking(before, found) {
        note(written, &name);
        row.value[name] = value;
    }
}

/// The members of a found document that another one lacks, but those that are its own.
fn lacking(row: &Row, found: &Row) -> Vec<(String, Value)> {
    let members = found.value.as_object().into_iter().flatten();
    let is_lacking = |name: &str| row.value.get(name).is_none_or(Value::is_null);
    members
        .filter(|(name, value)| {
            !OWN.contains(&name.as_str()) && !value.is_null() && is_lacking(name)
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The values of every level, from the root down: of the fields that are taken over, or of all members that the document lacks.
fn take_lists<'f>(
    row: &mut Row,
    chain: &[Match],
    of: impl Fn(&Match) -> Option<&'f [EnrichmentField]>,
    written: &mut Vec<String>,
) {
    let mut lists: IndexMap<String, Vec<Value>> = IndexMap::new();
    for found in chain {
        let one = as_row(found);
        let taken: Vec<(String, Value)> = match of(found) {
            Some(fields) => of_fields(&one, fields),
            None => lacking(row, &one),
        };
        for (target, value) in taken {
            lists.entry(target).or_default().push(value);
        }
    }
    for (target, values) in lists {
        row.set(&target, Value::Array(values));
        note(written, &target);
    }
}

/// What a level gives of the fields that are taken over, by where it goes.
fn of_fields(found: &Row, fields: &[EnrichmentField]) -> Vec<(String, Value)> {
    let value = |field: &EnrichmentField| {
        let value = found
            .at(&field.field_path)
            .filter(|value| !value.is_null())?;
        let target = field.target_field.as_ref().unwrap_or(&field.field_path);
        Some((target.clone(), value.clone()))
    };
    fields.iter().filter_map(value).collect()
}

/// The list with the values that it lacks: a document that is enriched again does not grow.
fn appended(before: Option<Value>, values: Vec<Value>) -> Value {
    let mut list = match before {
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None => Vec::new(),
        Some(one) => vec![one],
    };
    for value in values {
        let items = match value {
            Value::Array(items) => items,
            one => vec![one],
        };
        for item in items {
            if !list.contains(&item) {
                list.push(item);
            }
        }
    }
    Value::Array(list)
}

fn note(written: &mut Vec<String>, name: &str) {
    if !written.iter().any(|known| known == name) {
        written.push(name.to_owned());
    }
}
