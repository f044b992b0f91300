//! The tree of a taxonomy: told by its levels, or by its documents.

use std::collections::HashMap;

use loupe_engine::stage::taxonomy::pieces;
use loupe_wire::{
    HierarchicalNode, HierarchicalTaxonomyConfig, TaxonomyConfig, TaxonomyPathNode,
    TaxonomyResponse,
};

use crate::{app::App, error::Result, v1::retrievers};

/// Nodes of a tree that its documents tell.
const MAX_NODES: usize = 10_000;
/// Levels of a tree: documents tell their own, and JSON is not nested without end.
const DEEPEST: usize = 32;
/// Bytes of a path.
const LONGEST: usize = 4096;

/// The tree of a taxonomy as the interface tells it. A flat one has none: its nodes are documents.
///
/// # Errors
/// The store or the database does not answer.
pub async fn of(
    app: &App,
    namespace_id: &str,
    taxonomy: &TaxonomyResponse,
) -> Result<Vec<TaxonomyPathNode>> {
    let TaxonomyConfig::Hierarchical(tree) = &taxonomy.config else {
        return Ok(Vec::new());
    };
    match (&tree.path_field, &tree.hierarchical_nodes) {
        (Some(field), _) => told_nodes(app, namespace_id, tree, field).await,
        (None, Some(nodes)) => Ok(level_nodes(nodes)),
        (None, None) => Ok(Vec::new()),
    }
}

pub(super) fn level_nodes(nodes: &[HierarchicalNode]) -> Vec<TaxonomyPathNode> {
    let label = |node: &HierarchicalNode| {
        let label = node.label.clone();
        label.unwrap_or_else(|| node.collection_id.clone())
    };
    let by_id: HashMap<&str, &HierarchicalNode> = nodes
        .iter()
        .map(|node| (node.collection_id.as_str(), node))
        .collect();
    let told = nodes.iter().map(|node| {
        let mut path = vec![label(node)];
        let mut at = node;
        while let Some(parent) = at
            .parent_collection_id
            .as_deref()
            .and_then(|id| by_id.get(id))
        {
            path.insert(0, label(parent));
            at = parent;
        }
        TaxonomyPathNode {
            node_id: node.collection_id.clone(),
            label: label(node),
            level: i64::try_from(path.len() - 1).unwrap_or(0),
            path,
            parent_id: node.parent_collection_id.clone(),
        }
    });
    told.collect()
}

/// The places that documents tell, and those above them.
async fn told_nodes(
    app: &App,
    namespace_id: &str,
    tree: &HierarchicalTaxonomyConfig,
    field: &str,
) -> Result<Vec<TaxonomyPathNode>> {
    let id = tree.retriever_id.as_deref().unwrap_or_default();
    let found = retrievers::RETRIEVERS
        .known(app.db(), namespace_id, id)
        .await;
    let collection_ids = match found {
        Ok(found) => found.collection_ids.clone(),
        // Without its retriever a taxonomy finds nothing.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let reach = loupe_engine::store::Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids,
        principal: None,
    };
    let values = app.store().facet(&reach, None, field, MAX_NODES).await?;
    let separator = &tree.path_separator;
    let mut nodes = indexmap::IndexMap::new();
    for value in values {
        let mut path = pieces(&value.value, separator);
        // A document may tell any path: each level of it is a node with all that are above.
        path.truncate(DEEPEST);
        let long: usize = path.iter().map(String::len).sum();
        if nodes.len() >= MAX_NODES || long > LONGEST {
            continue;
        }
        for end in 1..=path.len() {
            let node_id = path[..end].join(separator);
            nodes
                .entry(node_id.clone())
                .or_insert_with(|| TaxonomyPathNode {
                    label: path[end - 1].clone(),
                    parent_id: (end > 1).then(|| path[..end - 1].join(separator)),
                    level: i64::try_from(end - 1).unwrap_or(0),
                    path: path[..end].to_vec(),
                    node_id,
                });
        }
    }
    nodes.sort_keys();
    Ok(nodes.into_values().take(MAX_NODES).collect())
}
