//! What a migration would take along, and what stands against it.

use loupe_engine::store::Reach;
use loupe_wire::{
    CollectionResponse, DependencyGraph, MigrationConfig, MigrationResourceType, MigrationType,
    NamespaceModel, RetrieverOptions, TaxonomyOptions, ValidationError, ValidationResult,
};

use super::{
    allow,
    choosing::{Chosen, chosen},
    targeting::{self, Target},
    telling,
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result},
    v1::{
        collections,
        namespaces::{self, NAMESPACES, Pattern},
    },
};

/// Documents that are copied in a second, as a rule.
const DOCUMENTS_A_SECOND: u64 = 500;

/// A configuration, held against what is there.
pub(super) struct Checked {
    pub source_id: String,
    /// The namespace that is extended; none: a new one is made.
    pub extended: Option<NamespaceModel>,
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
        errors.extend(telling::refused(app, config));
        let target = Target::of(app, caller, config, &source.id).await?;
        errors.extend(target.errors);
        if namespaces::is_being_made(&source) {
            errors.push(error("source_not_ready", namespaces::NOT_READY));
        }
        let filter = config.filters.clone().unwrap_or_default();
        let all_buckets = config.migration_type != MigrationType::Extend;
        let chosen = chosen(app, &source.id, &filter, all_buckets).await?;
        let Chosen { pattern, graph, .. } = chosen;
        errors.extend(chosen.errors);
        if let Some(extended) = &target.extended {
            errors.extend(targeting::taken(app, extended, &pattern).await?);
            errors.extend(unusable(app, &pattern.collections)?);
        }
        let mut warnings = without_effect(config);
        warnings.extend(target.warnings);
        warnings.extend(chosen.warnings);
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
            graph,
            result: ValidationResult {
                valid: errors.is_empty(),
                errors,
                warnings,
                estimated_resources: estimated
                    .into_iter()
                    .map(|(name, count)| (name.to_owned(), count))
                    .collect(),
                estimated_duration_seconds: Some(seconds),
            },
            source_id: source.id,
            extended: target.extended,
            pattern,
        })
    }
}

pub(super) fn error(code: &str, message: impl Into<String>) -> ValidationError {
    ValidationError {
        error_code: code.into(),
        message: message.into(),
        ..ValidationError::default()
    }
}

/// What does not stand against it, and should be known.
pub(super) fn warning(code: &str, message: impl Into<String>) -> ValidationError {
    ValidationError {
        severity: "warning".into(),
        ..error(code, message)
    }
}

/// What was sent and changes nothing.
fn without_effect(config: &MigrationConfig) -> Vec<ValidationError> {
    let mut idle = vec![
        (
            config.batch_options.is_some(),
            "batch_options",
            "a copy runs no batches",
        ),
        (
            config.cluster_options.is_some(),
            "cluster_options",
            "clusters are not copied",
        ),
    ];
    if let Some(options) = &config.taxonomy_options {
        idle.extend(of_taxonomies(options));
    }
    if let Some(options) = &config.retriever_options {
        idle.extend(of_retrievers(options));
    }
    let idle = idle.into_iter().filter(|(is, ..)| *is);
    idle.map(|(_, member, why)| warning("no_effect", format!("{member} has no effect: {why}")))
        .collect()
}

/// Whether a member says something that has no effect, which one, and why.
type Idle = (bool, &'static str, &'static str);

/// Why ids are not kept.
const OWN_IDS: &str = "ids are unique over all namespaces, a copy has ids of its own";

fn of_taxonomies(options: &TaxonomyOptions) -> [Idle; 4] {
    [
        (
            options.preserve_taxonomy_ids,
            "taxonomy_options.preserve_taxonomy_ids",
            OWN_IDS,
        ),
        (
            !options.preserve_enrichment_fields,
            "taxonomy_options.preserve_enrichment_fields",
            "documents are copied as they are",
        ),
        (
            options.re_run_enrichment,
            "taxonomy_options.re_run_enrichment",
            "documents are copied as they are, execute the taxonomies of the copy",
        ),
        (
            !options.migrate_reference_collections,
            "taxonomy_options.migrate_reference_collections",
            "filters say which collections are taken along",
        ),
    ]
}

fn of_retrievers(options: &RetrieverOptions) -> [Idle; 4] {
    [
        (
            options.preserve_retriever_ids,
            "retriever_options.preserve_retriever_ids",
            OWN_IDS,
        ),
        (
            options.migrate_interactions,
            "retriever_options.migrate_interactions",
            "interactions stay with the retrievers that they were told of",
        ),
        (
            options.migrate_execution_history,
            "retriever_options.migrate_execution_history",
            "executions stay with the retrievers that made them",
        ),
        (
            !options.validate_references,
            "retriever_options.validate_references",
            "what a retriever names is always looked for",
        ),
    ]
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
        config.migration_type == MigrationType::ReExtract,
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

/// Collections whose extractors no namespace of this server may use, or not as they are told to.
fn unusable(app: &App, collections: &[CollectionResponse]) -> Result<Vec<ValidationError>> {
    let mut errors = Vec::new();
    for one in collections {
        if let Err(refused) = collections::check_extractor(app, one) {
            errors.push(of_collection(one, "extractor_unavailable", refused)?);
        }
    }
    Ok(errors)
}

/// What stands against a collection; an error that is nobody's but the server's stays one.
pub(super) fn of_collection(
    collection: &CollectionResponse,
    code: &str,
    refused: ApiError,
) -> Result<ValidationError> {
    if !refused.is_callers() {
        return Err(refused);
    }
    let id = collection.collection_id.clone().unwrap_or_default();
    let message = format!("{id}: {}", refused.message());
    Ok(ValidationError {
        resource_id: Some(id),
        resource_type: Some(MigrationResourceType::Collection),
        ..error(code, message)
    })
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
