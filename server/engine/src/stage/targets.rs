//! Where a feature is found.

use super::{SearchIndex, Searchable};

/// An index that a search reads, and the collections that have it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub index: String,
    pub output: String,
    pub dims: usize,
    pub collection_ids: Vec<String>,
}

/// Where a feature is found. The same output segment is the same embedding space, whichever extractor filled it.
pub(crate) fn targets(collections: &[Searchable], feature: &str, only: &[String]) -> Vec<Target> {
    let output = feature
        .strip_prefix("loupe://")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, output)| output);
    let extractor_alone = feature.starts_with("loupe://") && output.is_none();
    let mut list: Vec<Target> = Vec::new();
    for c in collections
        .iter()
        .filter(|c| only.is_empty() || only.contains(&c.collection_id) || only.contains(&c.name))
    {
        let by = |test: &dyn Fn(&SearchIndex) -> bool| c.indexes.iter().find(|i| test(i));
        let exact = by(&|i| i.feature_uri.as_deref() == Some(feature) || i.name == feature);
        let found = exact
            .or_else(|| by(&|i| output == Some(i.output.as_str())))
            .or_else(|| {
                by(&|i| {
                    extractor_alone
                        && i.feature_uri
                            .as_deref()
                            .is_some_and(|u| u.starts_with(&format!("{feature}/")))
                })
            });
        let Some(index) = found else { continue };
        match list
            .iter_mut()
            .find(|t| t.index == index.name && t.dims == index.dims)
        {
            Some(target) => target.collection_ids.push(c.collection_id.clone()),
            None => list.push(Target {
                index: index.name.clone(),
                output: index.output.clone(),
                dims: index.dims,
                collection_ids: vec![c.collection_id.clone()],
            }),
        }
    }
    list
}
