//! How often which value of a field occurs: in all that a search may find, or in what was found.

use futures::future::try_join_all;
use loupe_wire::{Object, StageParamsFeatureSearch};
use serde_json::json;

use super::RunError;
use super::execution::Execution;
use super::targets::Target;
use super::working::Working;
use crate::filter::Filter;
use crate::store::{Counts, FacetCount};

/// Values of a field that are counted in what was found, the most frequent ones.
const MAX_VALUES: usize = 12;

/// Counts over the documents that the filters let through in the collections searched.
pub(crate) async fn of_all(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    places: &[Vec<Target>],
    filter: Option<&Filter>,
) -> Result<(), RunError> {
    if p.facets.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<String> = places
        .iter()
        .flatten()
        .flat_map(|t| t.collection_ids.clone())
        .collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        return Ok(());
    }
    let (reach, store) = (at.reach(&ids), at.run.store.clone());
    let counts = try_join_all(
        p.facets
            .iter()
            .map(|f| store.facet(&reach, filter, &f.key, f.limit.max(1) as usize)),
    )
    .await?;
    for (facet, values) in p.facets.iter().zip(counts) {
        at.report.facets.push(told(&facet.key, &values));
    }
    Ok(())
}

/// Counts the values of the fields that the run asks for in what was found, all pages of it. Of documents that no stage has read
/// nothing is known.
pub(crate) fn of_found(at: &mut Execution, set: &Working) {
    let Working::Rows(rows) = set else {
        return;
    };
    for field in std::mem::take(&mut at.run.counted) {
        let mut counts = Counts::default();
        for row in rows {
            counts.add(&row.value, &field);
        }
        let values = counts.most_frequent(MAX_VALUES);
        let facets = &mut at.report.facets;
        facets.retain(|facet| facet.get("key").is_none_or(|key| *key != field));
        facets.push(told(&field, &values));
    }
}

/// As an answer has a facet.
fn told(key: &str, values: &[FacetCount]) -> Object {
    let members = [("key".into(), json!(key)), ("values".into(), json!(values))];
    members.into_iter().collect()
}
