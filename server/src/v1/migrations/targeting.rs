//! Where a migration goes: into a new namespace, or into one that is there.

use std::collections::HashMap;

use loupe_wire::{
    MigrationConfig, MigrationResourceType, MigrationType, NamespaceModel, ValidationError,
};

use super::{
    allow,
    checking::{error, warning},
};
use crate::{
    app::App,
    auth::Caller,
    db::Record,
    error::Result,
    v1::{
        buckets::BUCKETS,
        collections::COLLECTIONS,
        namespaces::{self, NAMESPACES, Pattern},
        retrievers::RETRIEVERS,
        taxonomies::TAXONOMIES,
    },
};

/// The namespace that is extended, where the migration is such a one, and what is to be said of where it goes.
#[derive(Default)]
pub(super) struct Target {
    pub extended: Option<NamespaceModel>,
    pub errors: Vec<ValidationError>,
    pub warnings: Vec<ValidationError>,
}

impl Target {
    fn refused(code: &str, message: impl Into<String>) -> Self {
        Self {
            errors: vec![error(code, message)],
            ..Self::default()
        }
    }

    /// # Errors
    /// The caller may not change the namespace that is named.
    pub(super) async fn of(
        app: &App,
        caller: &Caller,
        config: &MigrationConfig,
        source_id: &str,
    ) -> Result<Self> {
        match config.migration_type {
            MigrationType::Extend => extended(app, caller, config, source_id).await,
            MigrationType::Copy | MigrationType::ReExtract => new(app, caller, config).await,
        }
    }
}

async fn new(app: &App, caller: &Caller, config: &MigrationConfig) -> Result<Target> {
    if config.target_namespace_id.is_some() {
        let message = "this goes into a new namespace: name it by target_namespace_name";
        return Ok(Target::refused("not_enabled", message));
    }
    let Some(name) = &config.target_namespace_name else {
        return Ok(Target::refused("missing_target", "name the new namespace"));
    };
    if let Err(refused) = namespaces::check_name(name) {
        return Ok(Target::refused("invalid_target", refused.message()));
    }
    match NAMESPACES.find(app.db(), &caller.org_id, name).await {
        Ok(_) => {
            let message = format!("a namespace named '{name}' exists already");
            Ok(Target::refused("name_taken", message))
        }
        Err(error) if error.is_not_found() => Ok(Target::default()),
        Err(error) => Err(error),
    }
}

async fn extended(
    app: &App,
    caller: &Caller,
    config: &MigrationConfig,
    source_id: &str,
) -> Result<Target> {
    let Some(id) = &config.target_namespace_id else {
        let message = "name the namespace that is extended by target_namespace_id";
        return Ok(Target::refused("missing_target", message));
    };
    let found = match NAMESPACES.find(app.db(), &caller.org_id, id).await {
        Ok(found) => found,
        // That of another organization is none here.
        Err(error) if error.is_not_found() => {
            let message = format!("there is no namespace '{id}'");
            return Ok(Target::refused("target_not_found", message));
        }
        Err(error) => return Err(error),
    };
    allow(caller, &found.id)?;
    if found.id == source_id {
        let message = "a namespace is not extended by what it holds: name another one";
        return Ok(Target::refused("same_namespace", message));
    }
    let mut target = Target::default();
    if namespaces::is_being_made(&found) {
        let message = "the namespace that is extended is being made still";
        target.errors.push(error("target_not_ready", message));
    }
    if config.target_namespace_name.is_some() {
        let message = "target_namespace_name has no effect: the namespace keeps its name";
        target.warnings.push(warning("no_effect", message));
    }
    target.extended = Some(found.data.0);
    Ok(target)
}

/// What of the namespace that is extended has the name of something that comes.
pub(super) async fn taken(
    app: &App,
    target: &NamespaceModel,
    pattern: &Pattern,
) -> Result<Vec<ValidationError>> {
    use MigrationResourceType::{Bucket, Collection, Retriever, Taxonomy};
    let (db, id) = (app.db(), target.namespace_id.as_deref().unwrap_or_default());
    let held = by_name(BUCKETS.all(db, id).await?);
    let coming = pattern.buckets.iter();
    let coming = coming.map(|one| (&one.bucket_id, one.bucket_name.as_str()));
    let mut errors = both(Bucket, coming, &held);
    let held = by_name(COLLECTIONS.all(db, id).await?);
    let coming = pattern.collections.iter();
    let coming = coming.map(|one| (&one.collection_id, one.collection_name.as_str()));
    errors.extend(both(Collection, coming, &held));
    let held = by_name(RETRIEVERS.all(db, id).await?);
    let coming = pattern.retrievers.iter();
    let coming = coming.map(|one| (&one.retriever_id, one.retriever_name.as_str()));
    errors.extend(both(Retriever, coming, &held));
    let held = by_name(TAXONOMIES.all(db, id).await?);
    let coming = pattern.taxonomies.iter();
    let coming = coming.map(|one| (&one.taxonomy_id, one.taxonomy_name.as_str()));
    errors.extend(both(Taxonomy, coming, &held));
    Ok(errors)
}

fn by_name<T: serde::de::DeserializeOwned>(held: Vec<Record<T>>) -> HashMap<String, String> {
    held.into_iter().map(|one| (one.name, one.id)).collect()
}

fn both<'p>(
    kind: MigrationResourceType,
    coming: impl Iterator<Item = (&'p Option<String>, &'p str)>,
    held: &HashMap<String, String>,
) -> Vec<ValidationError> {
    let taken = coming.filter_map(|(id, name)| {
        let (id, other) = (id.as_deref()?, held.get(name)?);
        let message = format!(
            "{id} is named '{name}', as {other} is in the namespace that is extended: rename one of them"
        );
        Some(ValidationError {
            resource_id: Some(id.to_owned()),
            resource_type: Some(kind),
            ..error("name_taken", message)
        })
    });
    taken.collect()
}
