//! What a migration would take along, and what stands against it.

use indexmap::IndexMap;
use loupe_engine::store::Reach;
use loupe_wire::{
    CollectionResponse, DependencyGraph, MigrationConfig, MigrationResourceType, MigrationType,
    NamespaceModel, ResourceFilter, ValidationError, ValidationResult,
};

use super::{
    allow,
    choosing::{Chosen, chosen},
    idle::without_effect,
    refilling::Refilled,
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

/// Documents that are copied in a second, and objects that are processed, as a rule.
const DOCUMENTS_A_SECOND: i64 = 500;
const OBJECTS_A_SECOND: i64 = 10;

/// A configuration, held against what is there.
pub(super) struct Checked {
    pub source_id: String,
    /// The namespace that is extended; none: a new one is made.
    pub extended: Option<NamespaceModel>,
    pub pattern: Pattern,
    /// What is extracted anew; none: all documents are copied.
    pub refilled: Option<Refilled>,
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
        let chosen = chosen(app, &source.id, &filter, takes_all(config, &filter)).await?;
        let Chosen {
            mut pattern, graph, ..
        } = chosen;
        errors.extend(chosen.errors);
        if let Some(extended) = &target.extended {
            errors.extend(targeting::taken(app, extended, &pattern).await?);
            errors.extend(unusable(app, &pattern.collections)?);
        }
        let mut warnings = without_effect(config);
        warnings.extend(target.warnings);
        warnings.extend(chosen.warnings);
        let mut refilled = None;
        if config.migration_type == MigrationType::ReExtract {
            let mut anew = Refilled::of(app, caller, &source.id, config, &mut pattern).await?;
            errors.append(&mut anew.errors);
            warnings.append(&mut anew.warnings);
            refilled = Some(anew);
        }
        let (estimated_resources, seconds) =
            estimated(app, &source.id, &pattern, refilled.as_ref()).await?;
        Ok(Self {
            graph,
            result: ValidationResult {
                valid: errors.is_empty(),
                errors,
                warnings,
                estimated_resources,
                estimated_duration_seconds: Some(seconds),
            },
            source_id: source.id,
            extended: target.extended,
            pattern,
            refilled,
        })
    }
}

/// Whether buckets come that nothing is filled from. They are no more than rows of a copy.
fn takes_all(config: &MigrationConfig, filter: &ResourceFilter) -> bool {
    match config.migration_type {
        MigrationType::Copy => true,
        MigrationType::Extend => false,
        // With their objects.
        MigrationType::ReExtract => filter.collection_ids.is_none(),
    }
}

/// How much comes, and how many seconds that takes.
async fn estimated(
    app: &App,
    source_id: &str,
    pattern: &Pattern,
    refilled: Option<&Refilled>,
) -> Result<(IndexMap<String, i64>, i64)> {
    let copied = pattern.collections.iter().filter(|one| {
        let id = one.collection_id.as_ref();
        let is_filled = |anew: &Refilled| id.is_some_and(|id| anew.collections.contains(id));
        !refilled.is_some_and(is_filled)
    });
    let documents = count(app, source_id, copied).await?;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut all = vec![
        ("buckets", number(pattern.buckets.len())),
        ("collections", number(pattern.collections.len())),
        ("taxonomies", number(pattern.taxonomies.len())),
        ("retrievers", number(pattern.retrievers.len())),
        ("documents", documents),
    ];
    all.extend(refilled.map(|anew| ("objects", anew.objects)));
    let objects = refilled.map_or(0, |anew| anew.objects);
    let seconds = documents / DOCUMENTS_A_SECOND + objects / OBJECTS_A_SECOND + 1;
    let all = all.into_iter();
    Ok((all.map(|(name, n)| (name.to_owned(), n)).collect(), seconds))
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

/// What this server does not do.
fn refused(config: &MigrationConfig) -> Vec<ValidationError> {
    let mut errors = Vec::new();
    let mut refuse = |is: bool, message: &str| {
        if is {
            errors.push(error("not_enabled", message));
        }
    };
    refuse(
        config.preserve_resource_ids,
        "ids are unique over all namespaces: a copy has ids of its own",
    );
    refuse(
        config.feature_extractors.is_some() && config.migration_type != MigrationType::ReExtract,
        "a copy keeps its extractors: re_extract has others",
    );
    let filter = config.filters.clone().unwrap_or_default();
    refuse(
        !filter.date_range.unwrap_or_default().is_empty(),
        "a migration takes whole collections, not a range of time",
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

async fn count(
    app: &App,
    source_id: &str,
    collections: impl Iterator<Item = &CollectionResponse>,
) -> Result<i64> {
    let ids = collections.filter_map(|one| one.collection_id.clone());
    let reach = Reach {
        namespace_id: source_id.to_owned(),
        collection_ids: ids.collect(),
        principal: None,
    };
    if reach.collection_ids.is_empty() {
        return Ok(0);
    }
    let documents = app.store().count(&reach, None).await?;
    Ok(i64::try_from(documents).unwrap_or(i64::MAX))
}
