//! What a migration would take along, and what stands against it.

use std::collections::BTreeSet;

use loupe_engine::store::Reach;
use loupe_wire::{
    CollectionResponse, DependencyGraph, DependencyNode, MigrationConfig, MigrationResourceType,
    MigrationType, ResourceFilter, RetrieverModelOutput, ValidationError, ValidationResult,
};

use super::allow;
use crate::{
    app::App,
    auth::Caller,
    error::Result,
    v1::{
        buckets::BUCKETS,
        collections::COLLECTIONS,
        namespaces::{self, NAMESPACES, Pattern},
        retrievers::RETRIEVERS,
        taxonomies::TAXONOMIES,
    },
};

/// Documents that are copied in a second, as a rule.
const DOCUMENTS_A_SECOND: u64 = 500;

/// A configuration, held against what is there.
pub(super) struct Checked {
    pub source_id: String,
    pub pattern: Pattern,
    pub result: ValidationResult,
    pub graph: DependencyGraph,
}

impl Checked {
    /// # Errors
    /// The source is no namespace that the caller may read.
    pub(super) async fn of(app: &App, caller: &Caller, config: &MigrationConfig) -> Result<Self> {
        let source = NAMESPACES
            .find(app.db(), &caller.org_id, &config.source_namespace_id)
            .await?;
        allow(caller, &source.id)?;
        let mut errors = refused(config);
        errors.extend(target(app, caller, config).await?);
        let filter = config.filters.clone().unwrap_or_default();
        let (pattern, missing) = chosen(app, &source.id, &filter).await?;
        errors.extend(missing);
        let documents = count(app, &source.id, &pattern.collections).await?;
        let seconds = i64::try_from(documents / DOCUMENTS_A_SECOND).unwrap_or(i64::MAX) + 1;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let estimated = [
            ("buckets", number(pattern.buckets.len())),
            ("collections", number(pattern.collections.len())),
            ("taxonomies", number(pattern.taxonomies.len())),
            ("retrievers", number(pattern.retrievers.len())),
            ("documents", i64::try_from(documents).unwrap_or(i64::MAX)),
        ];
        Ok(Self {
            graph: graph(&pattern),
            result: ValidationResult {
                valid: errors.is_empty(),
                errors,
                warnings: Vec::new(),
                estimated_resources: estimated
                    .into_iter()
                    .map(|(name, count)| (name.to_owned(), count))
                    .collect(),
                estimated_duration_seconds: Some(seconds),
            },
            source_id: source.id,
            pattern,
        })
    }
}

fn error(code: &str, message: impl Into<String>) -> ValidationError {
    ValidationError {
        error_code: code.into(),
        message: message.into(),
        ..ValidationError::default()
    }
}

/// What this server does not do.
fn refused(config: &MigrationConfig) -> Vec<ValidationError> {
    let mut errors = Vec::new();
    let mut refuse = |is: bool, message: &str| {
        if is {
            errors.push(error("not_enabled", message));
        }
    };
    refuse(
        config.migration_type != MigrationType::Copy,
        "this server migrates by copying: documents are extracted anew by cloning a collection with another extractor",
    );
    refuse(
        config.preserve_resource_ids,
        "ids are unique over all namespaces: a copy has ids of its own",
    );
    refuse(
        config.feature_extractors.is_some(),
        "a copy keeps its extractors",
    );
    refuse(
        config.webhook_url.is_some(),
        "subscribe a webhook to the change feed instead of naming an address here",
    );
    let filter = config.filters.clone().unwrap_or_default();
    refuse(
        !filter.date_range.unwrap_or_default().is_empty(),
        "a copy takes whole collections, not a range of time",
    );
    refuse(
        filter.cluster_ids.is_some_and(|ids| !ids.is_empty()),
        "clusters are not copied",
    );
    errors
}

async fn target(
    app: &App,
    caller: &Caller,
    config: &MigrationConfig,
) -> Result<Vec<ValidationError>> {
    if config.target_namespace_id.is_some() {
        let message = "a copy goes into a new namespace: name it by target_namespace_name";
        return Ok(vec![error("not_enabled", message)]);
    }
    let Some(name) = &config.target_namespace_name else {
        return Ok(vec![error("missing_target", "name the new namespace")]);
    };
    if let Err(refused) = namespaces::check_name(name) {
        return Ok(vec![error("invalid_target", refused.message())]);
    }
    match NAMESPACES.find(app.db(), &caller.org_id, name).await {
        Ok(_) => {
            let message = format!("a namespace named '{name}' exists already");
            Ok(vec![error("name_taken", message)])
        }
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What the filter chooses, and what it names that is not there or would miss something.
async fn chosen(
    app: &App,
    source_id: &str,
    filter: &ResourceFilter,
) -> Result<(Pattern, Vec<ValidationError>)> {
    let db = app.db();
    let mut errors = Vec::new();
    let mut retrievers = by_id(RETRIEVERS.all(db, source_id).await?);
    let mut collections = by_id(COLLECTIONS.all(db, source_id).await?);
    let mut taxonomies = by_id(TAXONOMIES.all(db, source_id).await?);
    keep(
        &mut retrievers,
        filter.retriever_ids.as_ref(),
        MigrationResourceType::Retriever,
        &mut errors,
    );
    keep(
        &mut taxonomies,
        filter.taxonomy_ids.as_ref(),
        MigrationResourceType::Taxonomy,
        &mut errors,
    );
    let needed: BTreeSet<String> = retrievers
        .iter()
        .flat_map(|(_, retriever)| retriever.collection_ids.clone())
        .collect();
    let wanted = filter.collection_ids.as_ref().map(|ids| {
        let mut ids: BTreeSet<String> = ids.iter().cloned().collect();
        if filter.auto_include_dependencies {
            ids.extend(needed.iter().cloned());
        }
        ids.into_iter().collect::<Vec<_>>()
    });
    keep(
        &mut collections,
        wanted.as_ref(),
        MigrationResourceType::Collection,
        &mut errors,
    );
    for id in &needed {
        if !collections.iter().any(|(held, _)| held == id) {
            let message = format!("a retriever searches {id}, which is not taken along");
            errors.push(error("missing_dependency", message));
        }
    }
    let pattern = Pattern {
        buckets: data(BUCKETS.all(db, source_id).await?),
        collections: collections.into_iter().map(|(_, one)| one).collect(),
        retrievers: retrievers.into_iter().map(|(_, one)| one).collect(),
        taxonomies: taxonomies.into_iter().map(|(_, one)| one).collect(),
    };
    Ok((pattern, errors))
}

fn data<T: serde::de::DeserializeOwned>(records: Vec<crate::db::Record<T>>) -> Vec<T> {
    records.into_iter().map(|record| record.data.0).collect()
}

fn by_id<T: serde::de::DeserializeOwned>(records: Vec<crate::db::Record<T>>) -> Vec<(String, T)> {
    let records = records.into_iter();
    records.map(|record| (record.id, record.data.0)).collect()
}

/// Leaves what is wanted, and tells what is not there.
fn keep<T>(
    held: &mut Vec<(String, T)>,
    wanted: Option<&Vec<String>>,
    kind: MigrationResourceType,
    errors: &mut Vec<ValidationError>,
) {
    let Some(wanted) = wanted else { return };
    for id in wanted {
        if !held.iter().any(|(held, _)| held == id) {
            errors.push(ValidationError {
                resource_id: Some(id.clone()),
                resource_type: Some(kind),
                ..error("not_found", format!("{id} is not in the namespace"))
            });
        }
    }
    held.retain(|(id, _)| wanted.contains(id));
}

async fn count(app: &App, source_id: &str, collections: &[CollectionResponse]) -> Result<u64> {
    let ids = collections
        .iter()
        .filter_map(|one| one.collection_id.clone());
    let reach = Reach {
        namespace_id: source_id.to_owned(),
        collection_ids: ids.collect(),
        principal: None,
    };
    match reach.collection_ids.is_empty() {
        true => Ok(0),
        false => Ok(app.store().count(&reach, None).await?),
    }
}

/// Buckets first, then what reads them.
fn graph(pattern: &Pattern) -> DependencyGraph {
    use MigrationResourceType::{Bucket, Collection, Retriever};
    let node = |id: Option<&String>, kind, dependencies: Vec<String>, tier| DependencyNode {
        resource_id: id.cloned().unwrap_or_default(),
        resource_type: kind,
        dependencies,
        tier,
    };
    let of_collection = |one: &CollectionResponse| {
        let sources = one
            .source
            .bucket_ids
            .iter()
            .chain(&one.source.collection_ids);
        let sources = sources.flatten().cloned().collect();
        node(one.collection_id.as_ref(), Collection, sources, 1)
    };
    let of_retriever = |one: &RetrieverModelOutput| {
        let collections = one.collection_ids.clone();
        node(one.retriever_id.as_ref(), Retriever, collections, 2)
    };
    let buckets = pattern.buckets.iter();
    let nodes: Vec<DependencyNode> = buckets
        .map(|one| node(one.bucket_id.as_ref(), Bucket, Vec::new(), 0))
        .chain(pattern.collections.iter().map(of_collection))
        .chain(pattern.retrievers.iter().map(of_retriever))
        .collect();
    DependencyGraph {
        execution_order: nodes.iter().map(|node| node.resource_id.clone()).collect(),
        nodes,
    }
}
