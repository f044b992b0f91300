//! Collections that are made after others elsewhere: whether their extractors work here, and as what they come if these are told
//! something else.

use indexmap::IndexMap;
use loupe_engine::extract::IndexInfo;
use loupe_wire::{CollectionResponse, CollectionVectorIndex, Object, Value};

use super::{cloning::as_sent, configuring, headers, mappings, sources, vector_index};
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// Whether the extractor of a stored collection can be used here, as it is told to.
///
/// # Errors
/// 422 where it cannot.
pub fn check_extractor(app: &App, collection: &CollectionResponse) -> Result<()> {
    let own = as_sent(collection.feature_extractor.clone());
    configuring::check(app, &own, false).map(drop)
}

/// The collection of a namespace with another version of its extractor, or some of its parameters told anew.
///
/// # Errors
/// 422 for a version that there is not, for parameters that it does not take, and for secrets.
pub async fn with_extractor(
    app: &App,
    namespace_id: &str,
    mut collection: CollectionResponse,
    version: Option<&str>,
    parameters: Option<&Object>,
) -> Result<CollectionResponse> {
    let mut asked = as_sent(collection.feature_extractor.clone());
    if let Some(version) = version {
        version.clone_into(&mut asked.version);
    }
    let is_told = parameters.is_some_and(|told| !told.is_empty());
    if let Some(told) = parameters.filter(|_| is_told) {
        check_secrets(&collection, told)?;
        let mut all = match asked.parameters.take() {
            Some(Value::Object(own)) => own,
            _ => std::mem::take(&mut asked.params),
        };
        all.extend(told.clone());
        asked.parameters = Some(Value::Object(all));
    }
    let (extractor, indexes) = configuring::check(app, &asked, is_told)?;
    if collection.retriever_transform.is_none() {
        let schemas = sources::schemas(app, namespace_id, &collection.source).await?;
        mappings::check(&asked, &schemas)?;
    }
    let input = collection.input_schema.as_ref();
    collection.output_schema = Some(configuring::output_schema(app, &extractor, input));
    collection.vector_indexes = vector_indexes(&collection.vector_indexes, &indexes);
    let before = super::indexes(app, &collection);
    let names = std::mem::take(&mut collection.index_map);
    collection.index_map = renamed(names, &before, &indexes);
    collection.feature_extractor = extractor;
    Ok(collection)
}

/// Headers are kept sealed in their collection alone, for what it reads now: what is asked for is kept as it was sent, and may
/// name something else to read.
fn check_secrets(collection: &CollectionResponse, told: &Object) -> Result<()> {
    if !told.contains_key(headers::HEADERS) && !headers::are_sealed(&collection.feature_extractor) {
        return Ok(());
    }
    let path = ["feature_extractor", "parameters", headers::HEADERS];
    let msg =
        "headers are secrets of their collection: clone it with its extractor and its headers";
    Err(ApiError::from(Violation::body(
        &path,
        "sealed_headers",
        msg,
        Value::Null,
    )))
}

/// New names of indexes stay with those of the same output.
fn renamed(
    names: IndexMap<String, String>,
    before: &[IndexInfo],
    indexes: &[IndexInfo],
) -> IndexMap<String, String> {
    let same = |own: &str| {
        let old = before.iter().find(|one| one.name == own)?;
        indexes.iter().find(|one| one.output == old.output)
    };
    let kept = names.into_iter();
    kept.filter_map(|(own, name)| Some((same(&own)?.name.clone(), name)))
        .collect()
}

/// The indexes as they are shown: one that stays the same keeps what else is known of it.
fn vector_indexes(
    before: &[CollectionVectorIndex],
    indexes: &[IndexInfo],
) -> Vec<CollectionVectorIndex> {
    let dims = |one: &CollectionVectorIndex| {
        let about = one.index.as_ref();
        about.and_then(|about| about.get("dimensions").cloned())
    };
    let shown = indexes.iter().map(|index| {
        let new = vector_index(index);
        let mut same = before.iter();
        let same = same.find(|one| one.name == new.name && dims(one) == dims(&new));
        same.cloned().unwrap_or(new)
    });
    shown.collect()
}
