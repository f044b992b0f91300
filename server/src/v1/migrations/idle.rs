//! What was sent and changes nothing.

use loupe_wire::{
    BatchOptions, MigrationConfig, MigrationType, RetrieverOptions, TaxonomyOptions,
    ValidationError,
};

use super::checking::warning;

/// Whether a member says something that has no effect, which one, and why.
type Idle = (bool, &'static str, &'static str);

/// Why ids are not kept.
const OWN_IDS: &str = "ids are unique over all namespaces, a copy has ids of its own";

pub(super) fn without_effect(config: &MigrationConfig) -> Vec<ValidationError> {
    let anew = config.migration_type == MigrationType::ReExtract;
    let options = config.batch_options.as_ref();
    let workers = BatchOptions::default().max_workers;
    let mut idle = vec![
        (
            options.is_some() && !anew,
            "batch_options",
            "a copy runs no batches",
        ),
        (
            anew && options.is_some_and(|one| one.max_workers != workers),
            "batch_options.max_workers",
            "batches are run by the workers of this server",
        ),
        (
            config.cluster_options.is_some(),
            "cluster_options",
            "clusters are not copied",
        ),
    ];
    if let Some(options) = &config.taxonomy_options {
        idle.extend(of_taxonomies(options, anew));
    }
    if let Some(options) = &config.retriever_options {
        idle.extend(of_retrievers(options, anew));
    }
    let idle = idle.into_iter().filter(|(is, ..)| *is);
    idle.map(|(_, member, why)| warning("no_effect", format!("{member} has no effect: {why}")))
        .collect()
}

fn of_taxonomies(options: &TaxonomyOptions, anew: bool) -> [Idle; 4] {
    let run = match anew {
        true => "batches apply the taxonomies of their collections",
        false => "documents are copied as they are, execute the taxonomies of the copy",
    };
    [
        (
            options.preserve_taxonomy_ids,
            "taxonomy_options.preserve_taxonomy_ids",
            OWN_IDS,
        ),
        (
            // Documents that are written anew have none of before.
            !options.preserve_enrichment_fields && !anew,
            "taxonomy_options.preserve_enrichment_fields",
            "documents are copied as they are",
        ),
        (
            options.re_run_enrichment,
            "taxonomy_options.re_run_enrichment",
            run,
        ),
        (
            !options.migrate_reference_collections,
            "taxonomy_options.migrate_reference_collections",
            "filters say which collections are taken along",
        ),
    ]
}

fn of_retrievers(options: &RetrieverOptions, anew: bool) -> [Idle; 4] {
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
            !options.validate_references && !anew,
            "retriever_options.validate_references",
            "what a retriever names is always looked for",
        ),
    ]
}
