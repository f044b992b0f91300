//! `taxonomy_enrich`: what documents take over from the nodes of a taxonomy that they belong to.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use loupe_wire::{
    EnrichmentField, EnrichmentMergeMode, HierarchicalEnrichmentStyle, InputSourceType,
    StageCategory, Value,
};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, member, required};
use super::taxonomy::{Match, Subject, Taxonomy};
use super::working::{Row, Working};
use super::{Definition, RunError, Searchable};
use crate::store::WithVectors;

/// Documents that are enriched by one stage: each is a search of its own.
const MAX_DOCUMENTS: usize = 100;
/// Documents whose nodes are looked for at once.
const AT_ONCE: usize = 4;

const FIELD: &[Member] = &[
    required("field_path", Kind::Text, "Dot path in the node's document"),
    member(
        "target_field",
        Kind::Text,
        "",
        "Dot path in the document found; the same where not given",
    ),
    member(
        "merge_mode",
        Kind::Choice(&["replace", "append"]),
        r#""replace""#,
        "replace: the value of the best node; append: a list of the values of all",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "taxonomy_enrich",
    aliases: &["taxonomy_join"],
    category: StageCategory::Enrich,
    icon: "network",
    about: "Looks for the nodes of a taxonomy that each document belongs to, adds their members, and tells the nodes in \
        `taxonomy_matches`",
    members: &[
        required(
            "taxonomy_id",
            Kind::Text,
            "Id or name of the taxonomy; written out, for whoever makes the retriever must be allowed to use it",
        ),
        member(
            "fields",
            Kind::Objects(FIELD, 50),
            "[]",
            "What is taken over; what the taxonomy says where not given",
        ),
        member(
            "top_k",
            Kind::Integer(1, 50),
            "3",
            "Nodes of each document, of a taxonomy without levels",
        ),
        member(
            "min_score",
            Kind::Number(0.0, 1.0),
            "0.0",
            "Nodes below this score are left out",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let named = p.word("taxonomy_id");
    let taxonomy = find(at, &named)?;
    if rows.len() > MAX_DOCUMENTS {
        at.warn(format!(
            "stage `{}`: only the first {MAX_DOCUMENTS} of {} documents were enriched",
            at.stage,
            rows.len()
        ));
        at.capped("documents", rows.len(), MAX_DOCUMENTS);
    }
    let count = rows.len().min(MAX_DOCUMENTS);
    let found = classify(at, p, &taxonomy, &rows[..count]).await?;
    let fields = fields(p);
    let least = p.number("min_score").unwrap_or(0.0);
    let (mut matched, mut failed) = (0, None);
    for (row, found) in rows.iter_mut().zip(found) {
        let mut found: Vec<Match> = match found {
            Ok(found) => found,
            // One document without what the mappings want leaves the others as they are.
            Err(RunError::Invalid(reason) | RunError::Away(reason)) => {
                failed.get_or_insert(reason);
                continue;
            }
            Err(error) => return Err(error),
        };
        found.retain(|one| one.score.is_none_or(|score| score >= least));
        if !found.is_empty() {
            matched += 1;
            put(&taxonomy, row, &found, fields.as_deref());
        }
    }
    if let Some(reason) = failed {
        at.warn(format!(
            "stage `{}`: some documents were left as they are: {reason}",
            at.stage
        ));
    }
    at.report.metadata.insert("matched".into(), json!(matched));
    Ok(Working::Rows(rows))
}

/// The taxonomy of that id or name, among those that the retriever names.
pub(super) fn find(at: &Execution, named: &str) -> Result<Arc<Taxonomy>, RunError> {
    let known = at.run.taxonomies.iter();
    let mut found = known.filter(|one| one.taxonomy_id == named || one.name == named);
    found.next().cloned().ok_or_else(|| {
        RunError::Invalid(format!(
            "stage `{}`: there is no taxonomy `{named}` here; a retriever that finds nodes of a taxonomy uses none itself",
            at.stage
        ))
    })
}

fn fields(p: &Parameters) -> Option<Vec<EnrichmentField>> {
    let list: Vec<EnrichmentField> = p
        .objects("fields")
        .iter()
        .map(|one| EnrichmentField {
            field_path: one.word("field_path"),
            target_field: one.text("target_field"),
            merge_mode: match one.word("merge_mode").as_str() {
                "append" => EnrichmentMergeMode::Append,
                _ => EnrichmentMergeMode::Replace,
            },
        })
        .collect();
    (!list.is_empty()).then_some(list)
}

/// The nodes of each row, in the order of the rows.
async fn classify(
    at: &Execution,
    p: &Parameters,
    taxonomy: &Taxonomy,
    rows: &[Row],
) -> Result<Vec<Result<Vec<Match>, RunError>>, RunError> {
    let vectors = vectors(at, taxonomy, rows).await?;
    let top_k = p.count("top_k").unwrap_or(3);
    let none = BTreeMap::new();
    let work = rows.iter().map(|row| {
        let collection = row.at("collection_id").and_then(Value::as_str);
        let known = at.run.collections.iter();
        let collection: Option<&Searchable> =
            collection.and_then(|id| known.into_iter().find(|one| one.collection_id == id));
        let subject = Subject {
            value: &row.value,
            vectors: vectors.get(row.id()).unwrap_or(&none),
            collection,
        };
        async move { taxonomy.classify(&at.run, &subject, top_k).await }
    });
    // Collected first: a stream over borrowing closures is no future of its own for every lifetime.
    let work: Vec<_> = work.collect();
    Ok(futures::stream::iter(work)
        .buffered(AT_ONCE)
        .collect()
        .await)
}

/// The vectors of the rows by document, read only where a mapping wants one.
async fn vectors(
    at: &Execution,
    taxonomy: &Taxonomy,
    rows: &[Row],
) -> Result<BTreeMap<String, BTreeMap<String, Vec<f32>>>, RunError> {
    let mut mappings = taxonomy.levels.iter().flat_map(|level| &level.mappings);
    if !mappings.any(|one| one.source_type == Some(InputSourceType::Vector)) {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    let reach = at.reach(&[]);
    let found = at.run.store.get(&reach, &ids, WithVectors::Yes).await?;
    Ok(found
        .into_iter()
        .map(|one| (one.document_id, one.vectors))
        .collect())
}

fn put(taxonomy: &Taxonomy, row: &mut Row, found: &[Match], fields: Option<&[EnrichmentField]>) {
    let style = HierarchicalEnrichmentStyle::Combined;
    let written = taxonomy.enrich(&mut row.value, found, fields, style);
    let told = found.iter().map(|one| {
        json!({
            "taxonomy_id": taxonomy.taxonomy_id, "taxonomy_name": taxonomy.name, "node_id": one.node_id,
            "label": one.label, "score": one.score, "path": one.path, "hierarchy_level": one.depth,
            "enriched_fields": written,
        })
    });
    let mut list = match row.at("taxonomy_matches") {
        Some(Value::Array(before)) => before.clone(),
        _ => Vec::new(),
    };
    // The document may have been enriched by the same taxonomy before.
    list.retain(|one| one["taxonomy_id"] != taxonomy.taxonomy_id.as_str());
    list.extend(told);
    row.set("taxonomy_matches", Value::Array(list));
}
