//! A stored taxonomy made ready to be asked: its retrievers compiled, its collections as searches see them.

use std::{collections::HashMap, sync::Arc};

use loupe_engine::stage::taxonomy::{Finder, Level as Stage, Shape, Taxonomy};
use loupe_wire::{
    EnrichmentField, HierarchicalTaxonomyConfig, InputMapping, TaxonomyConfig, TaxonomyResponse,
};

use super::store::TAXONOMIES;
use crate::{
    app::App,
    error::Result,
    v1::{
        collections,
        retrievers::{self, RETRIEVERS},
    },
};

/// One taxonomy being made ready.
struct Building<'a> {
    app: &'a App,
    org_id: &'a str,
    namespace_id: &'a str,
    /// Finds nodes in place of the taxonomy's own retrievers.
    instead: Option<&'a str>,
    finders: HashMap<String, Arc<Finder>>,
}

/// Makes a taxonomy ready. Whoever may use the taxonomy may use what it is made of: that was asked when it was made.
///
/// # Errors
/// 404 for a retriever or a collection that is gone meanwhile.
pub async fn build(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    taxonomy: &TaxonomyResponse,
    instead: Option<&str>,
) -> Result<Taxonomy> {
    let mut building = Building {
        app,
        org_id,
        namespace_id,
        instead,
        finders: HashMap::new(),
    };
    let (shape, levels, top_k) = match &taxonomy.config {
        TaxonomyConfig::Flat(flat) => {
            let source = &flat.source_collection;
            let level = building
                .level(
                    &flat.retriever_id,
                    Some(&source.collection_id),
                    None,
                    &flat.input_mappings,
                    source.enrichment_fields.clone(),
                )
                .await?;
            let top_k = usize::try_from(flat.top_k).unwrap_or(1);
            (Shape::Flat, vec![level], top_k)
        }
        TaxonomyConfig::Hierarchical(tree) => match &tree.path_field {
            Some(field) => {
                let retriever = tree.retriever_id.as_deref().unwrap_or_default();
                let mappings = tree.input_mappings.as_deref().unwrap_or_default();
                let level = building
                    .level(retriever, None, None, mappings, None)
                    .await?;
                let shape = Shape::Path {
                    field: field.clone(),
                    separator: tree.path_separator.clone(),
                };
                (shape, vec![level], 1)
            }
            None => (Shape::Levels, building.levels(tree).await?, 1),
        },
    };
    Ok(Taxonomy {
        taxonomy_id: taxonomy.taxonomy_id.clone().unwrap_or_default(),
        name: taxonomy.taxonomy_name.clone(),
        version: taxonomy.version,
        shape,
        levels,
        top_k,
    })
}

impl Building<'_> {
    async fn levels(&mut self, tree: &HierarchicalTaxonomyConfig) -> Result<Vec<Stage>> {
        let nodes = tree.hierarchical_nodes.as_deref().unwrap_or_default();
        let mut levels = Vec::with_capacity(nodes.len());
        for node in nodes {
            let own = node
                .retriever_id
                .as_deref()
                .or(tree.retriever_id.as_deref());
            let mappings = node
                .input_mappings
                .as_deref()
                .or(tree.input_mappings.as_deref());
            let mut level = self
                .level(
                    own.unwrap_or_default(),
                    Some(&node.collection_id),
                    node.label.clone(),
                    mappings.unwrap_or_default(),
                    node.enrichment_fields.clone(),
                )
                .await?;
            let parent = node.parent_collection_id.as_ref();
            level.parent = nodes
                .iter()
                .position(|one| Some(&one.collection_id) == parent);
            levels.push(level);
        }
        Ok(levels)
    }

    /// Nodes of one collection, or of all that the retriever searches.
    async fn level(
        &mut self,
        retriever: &str,
        collection: Option<&str>,
        label: Option<String>,
        mappings: &[InputMapping],
        fields: Option<Vec<EnrichmentField>>,
    ) -> Result<Stage> {
        let (app, namespace_id) = (self.app, self.namespace_id);
        let retriever = self.instead.unwrap_or(retriever);
        let stored = RETRIEVERS.known(app.db(), namespace_id, retriever).await?;
        let finder = match self.finders.get(&stored.id) {
            Some(finder) => finder.clone(),
            None => {
                let finder = retrievers::finder(app, self.org_id, namespace_id, &stored).await?;
                let finder = Arc::new(finder);
                self.finders.insert(stored.id.clone(), finder.clone());
                finder
            }
        };
        let named = match collection {
            Some(id) => vec![id.to_owned()],
            None => stored.collection_ids.clone(),
        };
        let found = collections::resolve(app, namespace_id, &named).await?;
        let label = label.or_else(|| found.first().map(|one| one.collection_name.clone()));
        Ok(Stage {
            collections: found
                .iter()
                .filter(|one| !collections::lifecycle::is_away(one))
                .map(|one| collections::searchable(app, one))
                .collect(),
            parent: None,
            label: label.unwrap_or_default(),
            finder,
            mappings: mappings.to_vec(),
            fields,
        })
    }
}

/// The taxonomies that the stages of a retriever name, ready. One that is gone is told by the stage that needs it.
///
/// # Errors
/// The database does not answer.
pub async fn ready(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    named: &[String],
) -> Result<Vec<Arc<Taxonomy>>> {
    let mut taxonomies = Vec::with_capacity(named.len());
    for identifier in named {
        let built = async {
            let found = TAXONOMIES.known(app.db(), namespace_id, identifier).await?;
            build(app, org_id, namespace_id, &found, None).await
        };
        match built.await {
            Ok(taxonomy) => taxonomies.push(Arc::new(taxonomy)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taxonomies)
}
