//! What a taxonomy may say: its retrievers and collections exist, find each other, and its levels make a tree.

use std::collections::HashMap;

use loupe_wire::{
    EnrichmentField, FlatTaxonomyConfig, HierarchicalNode, HierarchicalTaxonomyConfig,
    InputMapping, InputSourceType, NamespaceOperation, RetrieverModelOutput, TaxonomyConfig, Value,
};

use super::inferring::infer;
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result, Violation},
    v1::{collections, retrievers},
};

/// Nodes of a hierarchy.
pub(super) const MAX_LEVELS: usize = 200;
const MAX_MAPPINGS: usize = 50;
const MAX_FIELDS: usize = 100;
const MAX_PATH: usize = 500;
/// Members of documents that only the server writes.
const SYSTEM: [&str; 4] = [
    "_internal",
    "document_id",
    "collection_id",
    "document_blobs",
];

/// What is wrong with a member of the configuration.
pub(super) fn fault(
    path: &[&str],
    kind: &str,
    msg: impl Into<String>,
    input: impl Into<Value>,
) -> ApiError {
    let mut whole = vec!["config"];
    whole.extend_from_slice(path);
    Violation::body(&whole, kind, msg, input.into()).into()
}

/// Checks a configuration and puts ids in place of names.
///
/// # Errors
/// The 422 list for what cannot be, 404 for retrievers and collections that are not there, 403 for those out of the key's
/// scopes.
pub async fn check<L: Level>(
    app: &App,
    scope: &Scope<L>,
    config: &mut TaxonomyConfig,
) -> Result<()> {
    let steps = match config {
        TaxonomyConfig::Flat(one) => &one.step_analytics,
        TaxonomyConfig::Hierarchical(one) => &one.step_analytics,
    };
    if steps.is_some() {
        let msg = "the steps that documents go through are not analysed by this version";
        return Err(fault(&["step_analytics"], "not_enabled", msg, Value::Null));
    }
    match config {
        TaxonomyConfig::Flat(flat) => check_flat(app, scope, flat).await,
        TaxonomyConfig::Hierarchical(tree) => check_tree(app, scope, tree).await,
    }
}

async fn check_flat<L: Level>(
    app: &App,
    scope: &Scope<L>,
    flat: &mut FlatTaxonomyConfig,
) -> Result<()> {
    if !(1..=50).contains(&flat.top_k) {
        return Err(fault(
            &["top_k"],
            "out_of_range",
            "must be between 1 and 50",
            flat.top_k,
        ));
    }
    let retriever = retriever(app, scope, &flat.retriever_id).await?;
    let source = &mut flat.source_collection;
    source.collection_id = collection(app, scope, &source.collection_id).await?;
    finds(
        &["source_collection", "collection_id"],
        &retriever,
        &source.collection_id,
    )?;
    check_mappings(&["input_mappings"], &flat.input_mappings, &retriever)?;
    let fields = source.enrichment_fields.as_deref();
    check_fields(&["source_collection", "enrichment_fields"], fields)?;
    flat.retriever_id = retriever.retriever_id.unwrap_or_default();
    Ok(())
}

async fn check_tree<L: Level>(
    app: &App,
    scope: &Scope<L>,
    tree: &mut HierarchicalTaxonomyConfig,
) -> Result<()> {
    infer(app, scope, tree).await?;
    let own = match &tree.retriever_id {
        Some(id) => {
            let found = retriever(app, scope, id).await?;
            tree.retriever_id.clone_from(&found.retriever_id);
            Some(found)
        }
        None => None,
    };
    if let (Some(own), Some(mappings)) = (&own, &tree.input_mappings) {
        check_mappings(&["input_mappings"], mappings, own)?;
    }
    match (&tree.path_field, &mut tree.hierarchical_nodes) {
        (Some(field), None) => check_path(field, own.is_some(), tree.input_mappings.is_some()),
        (None, Some(nodes)) => {
            check_tree_shape(nodes)?;
            let mappings = tree.input_mappings.clone();
            let mut ids: HashMap<String, String> = HashMap::new();
            for (place, node) in nodes.iter_mut().enumerate() {
                let named = node.collection_id.clone();
                check_level(app, scope, place, node, own.as_ref(), mappings.as_deref()).await?;
                ids.insert(named, node.collection_id.clone());
            }
            // A parent is named as its own node is, by id or name.
            let parents = nodes.iter_mut();
            for parent in parents.filter_map(|node| node.parent_collection_id.as_mut()) {
                if let Some(id) = ids.get(parent.as_str()) {
                    parent.clone_from(id);
                }
            }
            Ok(())
        }
        _ => {
            let msg = "a hierarchical taxonomy has hierarchical_nodes (a collection a node) or path_field (the documents tell \
                their place), one of them";
            Err(fault(
                &["hierarchical_nodes"],
                "value_error",
                msg,
                Value::Null,
            ))
        }
    }
}

fn check_path(field: &str, retriever: bool, mappings: bool) -> Result<()> {
    if field.is_empty() || field.len() > MAX_PATH {
        let msg = format!("a path has 1 to {MAX_PATH} characters");
        return Err(fault(&["path_field"], "value_error", msg, field));
    }
    if !retriever || !mappings {
        let msg = "a tree that its documents tell needs retriever_id and input_mappings";
        return Err(fault(&["retriever_id"], "missing", msg, Value::Null));
    }
    Ok(())
}

/// Every collection once, every parent there, and nobody above itself.
pub(super) fn check_tree_shape(nodes: &[HierarchicalNode]) -> Result<()> {
    if nodes.is_empty() || nodes.len() > MAX_LEVELS {
        let msg = format!("a hierarchy has 1 to {MAX_LEVELS} nodes");
        return Err(fault(
            &["hierarchical_nodes"],
            "value_error",
            msg,
            nodes.len(),
        ));
    }
    let mut parents: HashMap<&str, Option<&str>> = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let parent = node.parent_collection_id.as_deref();
        if parents.insert(&node.collection_id, parent).is_some() {
            let path = ["hierarchical_nodes", &place.to_string(), "collection_id"];
            let msg = "a collection is one node of a hierarchy";
            return Err(fault(&path, "value_error", msg, node.collection_id.clone()));
        }
    }
    for (place, node) in nodes.iter().enumerate() {
        let mut at = node.parent_collection_id.as_deref();
        for step in 0.. {
            let Some(parent) = at else { break };
            let known = parents.get(parent);
            if known.is_none() || step > nodes.len() {
                let path = [
                    "hierarchical_nodes",
                    &place.to_string(),
                    "parent_collection_id",
                ];
                let msg = "a parent is another node of the hierarchy, and no node is above itself";
                return Err(fault(&path, "value_error", msg, parent));
            }
            at = known.copied().flatten();
        }
    }
    Ok(())
}

async fn check_level<L: Level>(
    app: &App,
    scope: &Scope<L>,
    place: usize,
    node: &mut HierarchicalNode,
    own: Option<&RetrieverModelOutput>,
    mappings: Option<&[InputMapping]>,
) -> Result<()> {
    let place = place.to_string();
    let at = |member: &'static str| ["hierarchical_nodes", place.as_str(), member];
    node.collection_id = collection(app, scope, &node.collection_id).await?;
    let stored;
    let retriever = match (&node.retriever_id, own) {
        (Some(id), _) => {
            stored = retriever(app, scope, id).await?;
            node.retriever_id.clone_from(&stored.retriever_id);
            &stored
        }
        (None, Some(own)) => own,
        (None, None) => {
            let msg = "a node has a retriever, or the taxonomy has one for all";
            return Err(fault(&at("retriever_id"), "missing", msg, Value::Null));
        }
    };
    finds(&at("collection_id"), retriever, &node.collection_id)?;
    match node.input_mappings.as_deref().or(mappings) {
        Some(mappings) => check_mappings(&at("input_mappings"), mappings, retriever)?,
        None => {
            let msg = "a node has input mappings, or the taxonomy has some for all";
            return Err(fault(&at("input_mappings"), "missing", msg, Value::Null));
        }
    }
    check_fields(&at("enrichment_fields"), node.enrichment_fields.as_deref())
}

async fn retriever<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<RetrieverModelOutput> {
    let found = retrievers::known(app, scope, identifier).await?;
    Ok(found.data.0.clone())
}

async fn collection<L: Level>(app: &App, scope: &Scope<L>, identifier: &str) -> Result<String> {
    let operation = NamespaceOperation::ReadData;
    let found = collections::known(app, scope, identifier, operation).await?;
    Ok(found.id.clone())
}

/// A retriever finds nodes in its own collections alone.
fn finds(path: &[&str], retriever: &RetrieverModelOutput, collection_id: &str) -> Result<()> {
    if retriever
        .collection_ids
        .iter()
        .any(|id| id == collection_id)
    {
        return Ok(());
    }
    let name = &retriever.retriever_name;
    let msg = format!("the retriever '{name}' does not search this collection");
    Err(fault(path, "value_error", msg, collection_id))
}

fn check_mappings(
    path: &[&str],
    mappings: &[InputMapping],
    retriever: &RetrieverModelOutput,
) -> Result<()> {
    if mappings.is_empty() || mappings.len() > MAX_MAPPINGS {
        let msg = format!("map 1 to {MAX_MAPPINGS} inputs of the retriever");
        return Err(fault(path, "value_error", msg, mappings.len()));
    }
    for (place, mapping) in mappings.iter().enumerate() {
        let place = place.to_string();
        let at = |member: &'static str| [path, &[place.as_str(), member]].concat();
        let known = &retriever.input_schema;
        if !known.is_empty() && !known.contains_key(&mapping.input_key) {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let msg = format!(
                "the retriever has no such input; it has: {}",
                names.join(", ")
            );
            return Err(fault(
                &at("input_key"),
                "value_error",
                msg,
                mapping.input_key.clone(),
            ));
        }
        let fixed = mapping
            .r#override
            .as_ref()
            .is_some_and(|value| !value.is_null());
        match mapping.source_type.unwrap_or_default() {
            InputSourceType::Blob => {
                let msg = "files of documents cannot be inputs yet: map a vector of theirs";
                return Err(fault(&at("source_type"), "not_enabled", msg, "blob"));
            }
            InputSourceType::Literal if !fixed && mapping.path.is_none() => {
                let msg = "a literal is written in override";
                return Err(fault(&at("override"), "missing", msg, Value::Null));
            }
            _ => {}
        }
        if mapping
            .path
            .as_ref()
            .is_some_and(|path| path.len() > MAX_PATH)
        {
            let msg = format!("a path has at most {MAX_PATH} characters");
            return Err(fault(&at("path"), "string_too_long", msg, Value::Null));
        }
    }
    Ok(())
}

fn check_fields(path: &[&str], fields: Option<&[EnrichmentField]>) -> Result<()> {
    let fields = fields.unwrap_or_default();
    if fields.len() > MAX_FIELDS {
        let msg = format!("at most {MAX_FIELDS} fields are taken over");
        return Err(fault(path, "too_long", msg, fields.len()));
    }
    for (place, field) in fields.iter().enumerate() {
        let place = place.to_string();
        let (member, target) = match &field.target_field {
            Some(target) => ("target_field", target),
            None => ("field_path", &field.field_path),
        };
        let at = [path, &[place.as_str(), member]].concat();
        let first = target.split('.').next().unwrap_or_default();
        if SYSTEM.contains(&first) {
            let msg = "only the server writes this member: name another target_field";
            return Err(fault(&at, "value_error", msg, target.clone()));
        }
        if [&field.field_path, target]
            .iter()
            .any(|path| path.is_empty() || path.len() > MAX_PATH)
        {
            let msg = format!("a path has 1 to {MAX_PATH} characters");
            return Err(fault(&at, "value_error", msg, target.clone()));
        }
    }
    Ok(())
}

/// The retriever and the mappings that a taxonomy has for all of its levels.
pub fn core(config: &TaxonomyConfig) -> (Option<String>, Option<Vec<InputMapping>>) {
    match config {
        TaxonomyConfig::Flat(flat) => (
            Some(flat.retriever_id.clone()),
            Some(flat.input_mappings.clone()),
        ),
        TaxonomyConfig::Hierarchical(tree) => {
            (tree.retriever_id.clone(), tree.input_mappings.clone())
        }
    }
}

/// Refuses a version that changes how nodes are found or what is taken over from them.
///
/// # Errors
/// The 422 list with the member that stays.
pub fn keeps_core(before: &TaxonomyConfig, after: &TaxonomyConfig) -> Result<()> {
    let refuse = |member: &str| {
        let msg = format!(
            "{member} of a taxonomy cannot be changed: clone the taxonomy with the new value"
        );
        Err(fault(&[member], "immutable_field", msg, Value::Null))
    };
    if core(before).0 != core(after).0 {
        return refuse("retriever_id");
    }
    if core(before).1 != core(after).1 {
        return refuse("input_mappings");
    }
    match (before, after) {
        (TaxonomyConfig::Flat(before), TaxonomyConfig::Flat(after)) => {
            if before.source_collection != after.source_collection {
                return refuse("source_collection");
            }
        }
        (TaxonomyConfig::Hierarchical(before), TaxonomyConfig::Hierarchical(after)) => {
            for old in before.hierarchical_nodes.iter().flatten() {
                let mut kept = after.hierarchical_nodes.iter().flatten();
                let same = kept.find(|new| new.collection_id == old.collection_id);
                if same.is_some_and(|new| {
                    new.retriever_id != old.retriever_id
                        || new.input_mappings != old.input_mappings
                        || new.enrichment_fields != old.enrichment_fields
                }) {
                    return refuse("hierarchical_nodes");
                }
            }
        }
        _ => return refuse("taxonomy_type"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_is_a_tree() {
        let node = |id: &str, parent: Option<&str>| HierarchicalNode {
            collection_id: id.into(),
            parent_collection_id: parent.map(Into::into),
            ..Default::default()
        };
        let refused = |nodes: &[HierarchicalNode]| check_tree_shape(nodes).is_err();
        assert!(!refused(&[
            node("col_a", None),
            node("col_b", Some("col_a"))
        ]));
        assert!(refused(&[]));
        assert!(refused(&[node("col_a", None), node("col_a", None)]));
        assert!(refused(&[node("col_a", Some("col_x"))]));
        assert!(refused(&[
            node("col_a", Some("col_b")),
            node("col_b", Some("col_a"))
        ]));
    }
}
