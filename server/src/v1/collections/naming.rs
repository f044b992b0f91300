//! New names of a collection's vector indexes: a search finds an index by them as by its own name, so that collections whose
//! indexes differ are searched by one name.

use std::collections::HashSet;

use indexmap::IndexMap;
use loupe_engine::stage::SearchIndex;
use loupe_wire::CollectionResponse;

use super::indexes;
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// Letters of a name.
const LONGEST: usize = 100;

/// Checks new names, and puts the indexes' own names in place of addresses.
///
/// # Errors
/// 422 for an index that the collection does not have, and for a name that no index can have.
pub(super) fn check(
    app: &App,
    collection: &CollectionResponse,
    sent: IndexMap<String, String>,
) -> Result<IndexMap<String, String>> {
    let own = indexes(app, collection);
    let (mut map, mut taken) = (IndexMap::new(), HashSet::new());
    for (which, name) in sent {
        let fault = |msg: String| {
            let path = ["index_map", which.as_str()];
            ApiError::from(Violation::body(
                &path,
                "value_error",
                msg,
                name.as_str().into(),
            ))
        };
        let mut meant = own.iter();
        let Some(index) = meant.find(|one| one.name == which || one.feature_uri == which) else {
            let names: Vec<&str> = own.iter().map(|one| one.name.as_str()).collect();
            let msg = format!("there is no such index; there are: {}", names.join(", "));
            return Err(fault(msg));
        };
        if !is_name(&name) {
            let msg = format!("a name has 1 to {LONGEST} letters, digits, dots, _ and -");
            return Err(fault(msg));
        }
        if own.iter().any(|one| one.name == name) || !taken.insert(name.clone()) {
            return Err(fault("another index has this name".into()));
        }
        if map.contains_key(&index.name) {
            return Err(fault("this index has another new name".into()));
        }
        map.insert(index.name.clone(), name);
    }
    Ok(map)
}

fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    (1..=LONGEST).contains(&name.len()) && name.chars().all(fits)
}

/// Adds the indexes once more under their new names, behind those that have such a name of their own.
pub(super) fn add(collection: &CollectionResponse, all: &mut Vec<SearchIndex>) {
    for (own, name) in &collection.index_map {
        if let Some(index) = all.iter().find(|index| index.name == *own).cloned() {
            all.push(SearchIndex {
                feature_uri: Some(name.clone()),
                ..index
            });
        }
    }
}
