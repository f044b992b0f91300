//! Hierarchies that nobody wrote down: what collections have in common says which lies below which.

use std::collections::{BTreeMap, HashSet};

use loupe_wire::{
    HierarchicalNode, HierarchicalTaxonomyConfig, HierarchyInferenceStrategy, NamespaceOperation,
    Value,
};

use super::config::{MAX_LEVELS, fault};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
    v1::{clusters, collections},
};

/// Clusters that one hierarchy is inferred from.
const MAX_CLUSTERS: usize = 20;

/// How many documents of a collection lie in which clusters: by the place of the execution and that of the cluster in it.
type Spread = BTreeMap<(usize, usize), u64>;

/// A collection whose place is looked for.
#[derive(Default)]
struct Found {
    id: String,
    name: String,
    fields: HashSet<String>,
    spread: Spread,
}

/// Makes the nodes of a hierarchy that is to be inferred; those that are sent, or were inferred before, stay.
///
/// # Errors
/// The 422 list for what nothing can be inferred from, 404 and 403 for collections and clusters.
pub(super) async fn infer<L: Level>(
    app: &App,
    scope: &Scope<L>,
    tree: &mut HierarchicalTaxonomyConfig,
) -> Result<()> {
    let Some(strategy) = tree.inference_strategy else {
        return Ok(());
    };
    if strategy == HierarchyInferenceStrategy::Llm {
        let msg = "hierarchies are inferred by schema or by cluster: else name the nodes, or let documents tell their place by path_field";
        let path = ["inference_strategy"];
        return Err(fault(&path, "not_enabled", msg, Value::Null));
    }
    if tree.hierarchical_nodes.is_some() {
        return Ok(());
    }
    let nodes = match strategy {
        HierarchyInferenceStrategy::Cluster => by_clusters(app, scope, tree).await?,
        _ => {
            let named = tree.inference_collections.as_deref().unwrap_or_default();
            by_schema(&find(app, scope, named).await?)
        }
    };
    tree.hierarchical_nodes = Some(nodes);
    Ok(())
}

async fn find<L: Level>(app: &App, scope: &Scope<L>, named: &[String]) -> Result<Vec<Found>> {
    if named.is_empty() || named.len() > MAX_LEVELS {
        let msg = format!("name 1 to {MAX_LEVELS} collections");
        let path = ["inference_collections"];
        return Err(fault(&path, "value_error", msg, named.to_vec()));
    }
    let mut found = Vec::with_capacity(named.len());
    for identifier in named {
        let operation = NamespaceOperation::ReadData;
        let one = collections::find(app, scope, identifier, operation).await?;
        let schema = one.output_schema.unwrap_or_default();
        found.push(Found {
            id: one.collection_id.unwrap_or_default(),
            name: one.collection_name,
            fields: schema.properties.into_keys().collect(),
            spread: Spread::new(),
        });
    }
    Ok(found)
}

fn node(one: &Found, parent: Option<&Found>) -> HierarchicalNode {
    HierarchicalNode {
        collection_id: one.id.clone(),
        parent_collection_id: parent.map(|parent| parent.id.clone()),
        label: Some(one.name.clone()),
        ..Default::default()
    }
}

/// A collection is below the one whose fields it has too, and most of them.
fn by_schema(found: &[Found]) -> Vec<HierarchicalNode> {
    let placed = |one: &Found| {
        let above = found.iter().filter(|other| {
            let fewer = other.fields.len() < one.fields.len();
            fewer && other.fields.is_subset(&one.fields)
        });
        // The id decides between equals, so that the same schemas make the same tree.
        let parent = above.max_by(|a, b| (a.fields.len(), &b.id).cmp(&(b.fields.len(), &a.id)));
        node(one, parent)
    };
    found.iter().map(placed).collect()
}

async fn by_clusters<L: Level>(
    app: &App,
    scope: &Scope<L>,
    tree: &HierarchicalTaxonomyConfig,
) -> Result<Vec<HierarchicalNode>> {
    let threshold = tree.cluster_overlap_threshold;
    if !(threshold > 0.0 && threshold <= 1.0) {
        let msg = "must be above 0 and at most 1";
        let path = ["cluster_overlap_threshold"];
        return Err(fault(&path, "out_of_range", msg, threshold));
    }
    let mut spread = spread(app, scope, tree.cluster_ids.as_deref().unwrap_or_default()).await?;
    let named = match &tree.inference_collections {
        Some(named) => named.clone(),
        None => still_there(app, scope, &spread).await?,
    };
    let mut found = find(app, scope, &named).await?;
    for one in &mut found {
        one.spread = spread.remove(&one.id).unwrap_or_default();
    }
    Ok(by_overlap(&found, threshold))
}

/// Where the documents of each collection lie, after the newest execution of each cluster.
async fn spread<L: Level>(
    app: &App,
    scope: &Scope<L>,
    named: &[String],
) -> Result<BTreeMap<String, Spread>> {
    if named.is_empty() || named.len() > MAX_CLUSTERS {
        let msg = format!("name 1 to {MAX_CLUSTERS} clusters");
        return Err(fault(&["cluster_ids"], "value_error", msg, named.to_vec()));
    }
    let mut all: BTreeMap<String, Spread> = BTreeMap::new();
    for (place, identifier) in named.iter().enumerate() {
        let Some(lies) = clusters::spread(app, scope, identifier).await? else {
            let msg = "no execution of the cluster was completed: execute it first";
            let path = ["cluster_ids", &place.to_string()];
            return Err(fault(&path, "value_error", msg, identifier.as_str()));
        };
        for (collection_id, cluster) in lies {
            let own = all.entry(collection_id).or_default();
            *own.entry((place, cluster)).or_default() += 1;
        }
    }
    Ok(all)
}

/// Those of the collections that were not removed since.
async fn still_there<L: Level>(
    app: &App,
    scope: &Scope<L>,
    all: &BTreeMap<String, Spread>,
) -> Result<Vec<String>> {
    let mut there = Vec::new();
    for id in all.keys() {
        match collections::find(app, scope, id, NamespaceOperation::ReadData).await {
            Ok(_) => there.push(id.clone()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

/// A collection is below one that lies in more clusters, among them those of most of its own documents: below the one that
/// lies in the fewest.
fn by_overlap(found: &[Found], threshold: f64) -> Vec<HierarchicalNode> {
    let placed = |one: &Found| {
        let all: u64 = one.spread.values().sum();
        let above = found.iter().filter(|other| {
            let shared = one.spread.iter();
            let shared = shared.filter(|(cluster, _)| other.spread.contains_key(*cluster));
            let shared: u64 = shared.map(|(_, documents)| documents).sum();
            let wider = other.spread.len() > one.spread.len();
            wider && all > 0 && shared as f64 >= threshold * all as f64
        });
        // The id decides between equals, so that the same clusters make the same tree.
        let parent = above.min_by(|a, b| (a.spread.len(), &a.id).cmp(&(b.spread.len(), &b.id)));
        node(one, parent)
    };
    found.iter().map(placed).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{config::check_tree_shape, nodes::level_nodes};
    use super::*;

    fn parents(nodes: Vec<HierarchicalNode>) -> Vec<Option<String>> {
        let parents = nodes.into_iter();
        parents.map(|node| node.parent_collection_id).collect()
    }

    #[test]
    fn a_collection_is_below_the_one_that_most_of_it_lies_in() {
        let lies = |id: &str, clusters: &[(usize, u64)]| Found {
            id: id.into(),
            spread: clusters
                .iter()
                .map(|(place, documents)| ((0, *place), *documents))
                .collect(),
            ..Found::default()
        };
        let found = [
            lies("everything", &[(0, 9), (1, 9), (2, 9), (3, 9)]),
            lies("some", &[(0, 5), (1, 5), (2, 5)]),
            // Seven of ten lie where the others do.
            lies("few", &[(0, 7), (7, 3)]),
            lies("elsewhere", &[(8, 1)]),
            lies("nowhere", &[]),
        ];
        let above = |threshold: f64| parents(by_overlap(&found, threshold));
        let (everything, some) = (Some("everything".to_owned()), Some("some".to_owned()));
        assert_eq!(above(0.7), [None, everything.clone(), some, None, None]);
        assert_eq!(above(0.71), [None, everything, None, None, None]);
    }

    #[test]
    fn schemas_tell_who_is_above_whom() {
        let collection = |id: &str, fields: &[&str]| Found {
            id: id.into(),
            name: id.into(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            ..Found::default()
        };
        let found = [
            collection("col_things", &["name"]),
            collection("col_phones", &["name", "brand", "screen"]),
            collection("col_goods", &["name", "brand"]),
            collection("col_people", &["born"]),
        ];
        let nodes = by_schema(&found);
        check_tree_shape(&nodes).unwrap();
        let told = level_nodes(&nodes);
        assert_eq!(told[1].path, ["col_things", "col_goods", "col_phones"]);
        assert_eq!(told[1].level, 2);
        let (goods, things) = (Some("col_goods".to_owned()), Some("col_things".to_owned()));
        assert_eq!(parents(nodes), [None, goods, things, None]);
    }
}
