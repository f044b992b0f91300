//! The areas of the API in words: what each is about, for whoever reads the description from the top.

use utoipa::openapi::tag::{Tag, TagBuilder};

/// Names that operations carry as their tag, in an order of a reader's: first who calls, then what is kept, how it is searched,
/// shown and watched over.
const AREAS: &[(&str, &str)] = &[
    ("account", "Whose key this is, and what it may do."),
    (
        "api_keys",
        "Keys of people: made, changed, rotated, revoked. Secrets are shown once.",
    ),
    (
        "retriever_api_keys",
        "Keys that execute one retriever and can do nothing else, for browsers.",
    ),
    ("users", "People of the organization, who hold keys."),
    (
        "organizations",
        "The organization: its plan, its settings and how much of its quotas is used.",
    ),
    ("audit", "Who did what to which resource, and why."),
    (
        "usage",
        "What was used, by key, operation, day and category.",
    ),
    (
        "billing",
        "What it costs: the rate card, estimates, budgets, the plan.",
    ),
    (
        "secrets",
        "Values that other settings name instead of holding them; never shown again.",
    ),
    (
        "connections",
        "Storages and databases of others that buckets, syncs and lookups read.",
    ),
    (
        "namespaces",
        "Where everything else lives: each is searched, shared, copied and removed by itself.",
    ),
    ("snapshots", "States of a namespace that it can go back to."),
    (
        "migrations",
        "Namespaces that are copied, extend others, or are extracted anew.",
    ),
    (
        "buckets",
        "Objects of one shape, and the files that belong to them.",
    ),
    ("objects", "What a bucket holds: fields and files."),
    (
        "uploads",
        "Files that go straight to the storage and become objects.",
    ),
    ("syncs", "Buckets that follow a folder of a storage."),
    (
        "batches",
        "Objects on their way to documents: submitted, followed, retried, canceled.",
    ),
    ("tasks", "Work that goes on after its request was answered."),
    (
        "collections",
        "Documents that an extractor makes of objects or of other documents.",
    ),
    ("documents", "What is found: read, listed, written, shared."),
    (
        "annotations",
        "What people decided about documents, with every version of it.",
    ),
    (
        "extractors",
        "What makes documents of files, with the parameters that each takes.",
    ),
    ("features", "What collections can be searched by."),
    (
        "byo_vectors",
        "Namespaces of one's own vectors, without objects and extractors.",
    ),
    (
        "retrievers",
        "Searches of several stages, kept under a name: made, executed, explained.",
    ),
    ("stages", "Steps that a retriever may be made of."),
    ("inference", "One question to a model."),
    ("taxonomies", "Trees of terms that documents are given."),
    ("clusters", "Groups of documents that are like each other."),
    (
        "evaluations",
        "How well a retriever finds what people judged.",
    ),
    (
        "benchmarks",
        "Retrievers held against each other on the same questions.",
    ),
    (
        "interactions",
        "What people did with results; retrievers can learn of it.",
    ),
    ("publishing", "Pages that show a retriever to everybody."),
    (
        "public_retrievers",
        "Pages as their visitors use them, without a key.",
    ),
    ("marketplace", "Retrievers that others have published."),
    (
        "apps",
        "Front ends that run here, each on an origin of its own.",
    ),
    (
        "public_apps",
        "Apps that are made of sections, as their visitors use them, without a key.",
    ),
    (
        "triggers",
        "Work that begins by the clock, by events or when a condition holds.",
    ),
    (
        "alerts",
        "Who is told when results or the state of things say so.",
    ),
    ("notifications", "What people are told in the console."),
    ("webhooks", "Addresses that events are sent to, signed."),
    ("events", "Every change in order, for whoever follows them."),
    ("analytics", "Figures of searches, ingestion and use."),
    (
        "templates",
        "Beginnings of buckets, collections, retrievers and the like.",
    ),
    (
        "manifest",
        "A namespace as one file: written, compared, applied.",
    ),
    (
        "quickstart",
        "A namespace with pictures and a page over it, to begin with.",
    ),
    ("discovery", "What this server can do."),
    (
        "blobs",
        "Bytes of files, at addresses that carry their own signature.",
    ),
    ("health", "Whether this server and what it needs are well."),
    (
        "app_host",
        "What every app's own host answers its visitors: signing in, and who they are.",
    ),
];

/// The areas that operations are in.
pub(super) fn tags() -> Vec<Tag> {
    let tag = |(name, about): &(&str, &str)| {
        TagBuilder::new()
            .name(*name)
            .description(Some(*about))
            .build()
    };
    AREAS.iter().map(tag).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_area_is_told_in_words() {
        let document = super::super::document();
        let items = document.paths.paths.into_values();
        let mut used = BTreeSet::new();
        for mut item in items {
            for (_, operation) in super::super::made::operations(&mut item) {
                used.extend(operation.tags.take().unwrap_or_default());
            }
        }
        let told: BTreeSet<String> = AREAS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(used, told);
        assert_eq!(told.len(), AREAS.len(), "each is told once");
    }
}
