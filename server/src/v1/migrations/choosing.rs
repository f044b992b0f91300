//! What a migration takes along: what its filter names, what that needs, and in which order it is there.

use std::collections::{BTreeMap, BTreeSet};

use loupe_wire::{
    CollectionResponse, DependencyGraph, DependencyNode, MigrationResourceType, ResourceFilter,
    RetrieverModelOutput, TaxonomyResponse, ValidationError, Value,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::checking::{error, warning};
use crate::{
    app::App,
    db::Record,
    error::Result,
    v1::{
        buckets::BUCKETS, collections::COLLECTIONS, namespaces::Pattern, retrievers::RETRIEVERS,
        taxonomies::TAXONOMIES,
    },
};

type Ids = BTreeSet<String>;

/// What is taken along, and what is to be said of that.
pub(super) struct Chosen {
    pub pattern: Pattern,
    pub graph: DependencyGraph,
    pub errors: Vec<ValidationError>,
    pub warnings: Vec<ValidationError>,
}

/// What a namespace holds besides buckets, which all come along.
struct Held {
    collections: Vec<CollectionResponse>,
    retrievers: Vec<RetrieverModelOutput>,
    taxonomies: Vec<TaxonomyResponse>,
    /// Of each of them by its id: of which kind it is, and what it needs.
    about: BTreeMap<String, (MigrationResourceType, Ids)>,
}

/// What the filter chooses, and what it names that is not there or would miss something. Of the buckets all, or those alone
/// that the chosen collections need.
pub(super) async fn chosen(
    app: &App,
    source_id: &str,
    filter: &ResourceFilter,
    all_buckets: bool,
) -> Result<Chosen> {
    use MigrationResourceType::{Collection, Retriever, Taxonomy};
    let held = Held::read(app, source_id).await?;
    let (mut ids, mut errors) = (Ids::new(), Vec::new());
    // Taxonomies that nobody named come along as far as retrievers that somebody named let them.
    let follow = filter.retriever_ids.is_some() && filter.taxonomy_ids.is_none();
    for (kind, named) in [
        (Collection, &filter.collection_ids),
        (Retriever, &filter.retriever_ids),
        (Taxonomy, &filter.taxonomy_ids),
    ] {
        match named {
            Some(named) => errors.extend(held.take(&mut ids, kind, named)),
            None if kind == Taxonomy && follow => {}
            None => ids.extend(held.of(kind).cloned()),
        }
    }
    if filter.auto_include_dependencies {
        held.include_needed(&mut ids);
    }
    let warnings = match follow {
        true => held.take_whole(&mut ids, Taxonomy),
        false => Vec::new(),
    };
    errors.extend(held.missing(&ids));
    let buckets = data(BUCKETS.all(app.db(), source_id).await?);
    let about = held.about;
    let is_chosen = |id: &Option<String>| id.as_ref().is_some_and(|id| ids.contains(id));
    let mut pattern = Pattern {
        buckets,
        collections: held.collections,
        retrievers: held.retrievers,
        taxonomies: held.taxonomies,
    };
    pattern
        .collections
        .retain(|one| is_chosen(&one.collection_id));
    pattern
        .retrievers
        .retain(|one| is_chosen(&one.retriever_id));
    pattern.taxonomies.retain(|one| is_chosen(&one.taxonomy_id));
    if !all_buckets {
        let needed = below(&pattern.collections);
        let is_needed = |id: &Option<String>| id.as_ref().is_some_and(|id| needed.contains(id));
        pattern.buckets.retain(|one| is_needed(&one.bucket_id));
    }
    Ok(Chosen {
        graph: graph(&pattern, &about),
        pattern,
        errors,
        warnings,
    })
}

fn data<T: DeserializeOwned>(records: Vec<Record<T>>) -> Vec<T> {
    records.into_iter().map(|record| record.data.0).collect()
}

/// The buckets that collections are filled from, at once or over other collections.
fn below(collections: &[CollectionResponse]) -> Ids {
    let sources = collections.iter().map(|one| &one.source);
    let named = sources.flat_map(|one| one.bucket_ids.iter().chain(&one.inherited_bucket_ids));
    named.flatten().cloned().collect()
}

/// What of the known ids is named somewhere inside.
fn named(value: &Value, known: &Ids, found: &mut Ids) {
    match value {
        Value::String(text) if known.contains(text) => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, known, found)),
        Value::Object(members) => members.values().for_each(|item| named(item, known, found)),
        _ => {}
    }
}

impl Held {
    async fn read(app: &App, source_id: &str) -> Result<Self> {
        let db = app.db();
        let mut held = Self {
            collections: data(COLLECTIONS.all(db, source_id).await?),
            retrievers: data(RETRIEVERS.all(db, source_id).await?),
            taxonomies: data(TAXONOMIES.all(db, source_id).await?),
            about: BTreeMap::new(),
        };
        held.about = held.relations();
        Ok(held)
    }

    fn relations(&self) -> BTreeMap<String, (MigrationResourceType, Ids)> {
        use MigrationResourceType::{Collection, Retriever, Taxonomy};
        let collections = self.collections.iter().map(|one| &one.collection_id);
        let retrievers = self.retrievers.iter().map(|one| &one.retriever_id);
        let taxonomies = self.taxonomies.iter().map(|one| &one.taxonomy_id);
        let all = collections.chain(retrievers).chain(taxonomies);
        let known: Ids = all.flatten().cloned().collect();
        let mut about = BTreeMap::new();
        let mut note = |id: &Option<String>, kind, mut needs: Ids, inside: Value| {
            let id = id.clone().unwrap_or_default();
            named(&inside, &known, &mut needs);
            needs.remove(&id);
            about.insert(id, (kind, needs));
        };
        for one in &self.collections {
            // Taxonomies that it applies it applies no more without them; a source that was deleted is missed nowhere.
            let inside = json!([
                one.source.collection_ids,
                one.source.collection_id,
                one.retriever_enrichments,
                one.retriever_transform
            ]);
            note(&one.collection_id, Collection, Ids::new(), inside);
        }
        for one in &self.retrievers {
            let needs = one.collection_ids.iter().cloned().collect();
            note(&one.retriever_id, Retriever, needs, json!(one.stages));
        }
        for one in &self.taxonomies {
            note(&one.taxonomy_id, Taxonomy, Ids::new(), json!(one.config));
        }
        about
    }

    fn of(&self, kind: MigrationResourceType) -> impl Iterator<Item = &String> {
        let all = self.about.iter();
        all.filter(move |(_, (is, _))| *is == kind)
            .map(|(id, _)| id)
    }

    /// Takes what is named, and tells what is not there.
    fn take(
        &self,
        ids: &mut Ids,
        kind: MigrationResourceType,
        named: &[String],
    ) -> Vec<ValidationError> {
        let mut errors = Vec::new();
        for id in named {
            if self.about.get(id).is_some_and(|(is, _)| *is == kind) {
                ids.insert(id.clone());
                continue;
            }
            errors.push(ValidationError {
                resource_id: Some(id.clone()),
                resource_type: Some(kind),
                ..error("not_found", format!("{id} is not in the namespace"))
            });
        }
        errors
    }

    /// Takes what is needed by what is taken, and by that in turn.
    fn include_needed(&self, ids: &mut Ids) {
        let mut next: Vec<String> = ids.iter().cloned().collect();
        while let Some(id) = next.pop() {
            let needs = self.about.get(&id).map(|(_, needs)| needs);
            for needed in needs.into_iter().flatten() {
                if self.about.contains_key(needed) && ids.insert(needed.clone()) {
                    next.push(needed.clone());
                }
            }
        }
    }

    /// Takes those of a kind that miss nothing, and tells which are left out.
    fn take_whole(&self, ids: &mut Ids, kind: MigrationResourceType) -> Vec<ValidationError> {
        let mut warnings = Vec::new();
        for (id, (_, needs)) in self.about.iter().filter(|(_, (is, _))| *is == kind) {
            let needed = needs.difference(ids).next().cloned();
            let Some(needed) = needed else {
                ids.insert(id.clone());
                continue;
            };
            // One that is taken because something needs it is missed nowhere: what it misses is told as an error.
            if !ids.contains(id) {
                let message =
                    format!("{id} is left out: it needs {needed}, which is not taken along");
                warnings.push(ValidationError {
                    resource_id: Some(id.clone()),
                    resource_type: Some(kind),
                    ..warning("left_out", message)
                });
            }
        }
        warnings
    }

    /// What is taken and would name something in the old namespace.
    fn missing(&self, ids: &Ids) -> Vec<ValidationError> {
        let taken = self.about.iter().filter(|(id, _)| ids.contains(*id));
        let missing = taken.flat_map(move |(id, (kind, needs))| {
            needs.difference(ids).map(move |needed| {
                let message = format!("{id} needs {needed}, which is not taken along");
                ValidationError {
                    resource_id: Some(id.clone()),
                    resource_type: Some(*kind),
                    ..error("missing_dependency", message)
                }
            })
        });
        missing.collect()
    }
}

/// What is copied, each behind what it needs.
fn graph(
    pattern: &Pattern,
    about: &BTreeMap<String, (MigrationResourceType, Ids)>,
) -> DependencyGraph {
    use MigrationResourceType::{Bucket, Collection, Retriever, Taxonomy};
    let node = |id: &Option<String>, kind, tier| {
        let resource_id = id.clone().unwrap_or_default();
        let needs = about.get(&resource_id).map(|(_, needs)| needs);
        DependencyNode {
            dependencies: needs.into_iter().flatten().cloned().collect(),
            resource_id,
            resource_type: kind,
            tier,
        }
    };
    let of_collection = |one: &CollectionResponse| {
        let mut made = node(&one.collection_id, Collection, 1);
        let buckets = one.source.bucket_ids.iter().flatten();
        made.dependencies.extend(buckets.cloned());
        made
    };
    let buckets = pattern.buckets.iter();
    let retrievers = pattern.retrievers.iter();
    let taxonomies = pattern.taxonomies.iter();
    let nodes: Vec<DependencyNode> = buckets
        .map(|one| node(&one.bucket_id, Bucket, 0))
        .chain(pattern.collections.iter().map(of_collection))
        .chain(retrievers.map(|one| node(&one.retriever_id, Retriever, 2)))
        .chain(taxonomies.map(|one| node(&one.taxonomy_id, Taxonomy, 3)))
        .collect();
    DependencyGraph {
        execution_order: order(&nodes),
        nodes,
    }
}

/// What others need comes first; those that need each other come as they are.
fn order(nodes: &[DependencyNode]) -> Vec<String> {
    let mut left: Vec<&DependencyNode> = nodes.iter().collect();
    let mut order = Vec::with_capacity(nodes.len());
    while !left.is_empty() {
        let waiting: Ids = left.iter().map(|node| node.resource_id.clone()).collect();
        let (free, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|node| {
            let mut needs = node.dependencies.iter();
            !needs.any(|needed| waiting.contains(needed))
        });
        let (next, later) = match free.is_empty() {
            true => (rest, Vec::new()),
            false => (free, rest),
        };
        order.extend(next.into_iter().map(|node| node.resource_id.clone()));
        left = later;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let node = |id: &str, needs: &[&str]| DependencyNode {
            resource_id: id.into(),
            dependencies: needs.iter().map(|id| (*id).to_owned()).collect(),
            ..DependencyNode::default()
        };
        let nodes = [
            node("tax", &["ret", "col"]),
            node("ret", &["col", "gone"]),
            node("col", &["bkt"]),
            node("bkt", &[]),
        ];
        assert_eq!(order(&nodes), ["bkt", "col", "ret", "tax"]);
        let each_other = [node("one", &["two"]), node("two", &["one"])];
        assert_eq!(order(&each_other), ["one", "two"]);
    }
}
