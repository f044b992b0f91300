//! Documents that carry what a taxonomy says of them.

use loupe_engine::{
    stage::taxonomy::{Match, Taxonomy},
    store::{CollectionSpec, Document, document_id},
};
use loupe_wire::{CollectionResponse, HierarchicalEnrichmentStyle, Value};

use crate::v1::documents;

/// Puts what a taxonomy says into the record of a document, in place of what it said before.
pub(super) fn note(
    document: &mut Document,
    taxonomy_id: &str,
    said: impl IntoIterator<Item = Value>,
) {
    let whose = ("taxonomy_id", taxonomy_id);
    documents::note_processing(document, "taxonomy_lineage", whose, said);
}

/// How a collection takes over the levels of a taxonomy: as it says where it applies it to that target, else as it says
/// where it applies it at all, else all of them.
pub(super) fn style_of(
    collection: &CollectionResponse,
    taxonomy_id: &str,
    target: Option<&str>,
) -> HierarchicalEnrichmentStyle {
    let applied = || {
        let all = collection.taxonomy_applications.iter().flatten();
        all.filter(|one| one.taxonomy_id == taxonomy_id)
    };
    let same = applied().find(|one| one.target_collection_id.as_deref() == target);
    same.or_else(|| applied().next())
        .map_or(HierarchicalEnrichmentStyle::Combined, |one| {
            one.hierarchical_enrichment_style
        })
}

/// Whether this version of the taxonomy was applied to the document before.
pub(super) fn is_done(document: &Document, taxonomy: &Taxonomy) -> bool {
    let internal = document.payload.get("_internal");
    let list = internal.and_then(|internal| internal["processing"]["taxonomy_lineage"].as_array());
    list.into_iter().flatten().any(|one| {
        one["taxonomy_id"] == taxonomy.taxonomy_id.as_str() && one["version"] == taxonomy.version
    })
}

/// Writes what the nodes give into the document, and into its record where it belongs, when that was and how long it took.
pub(super) fn put(
    taxonomy: &Taxonomy,
    document: &mut Document,
    matches: &[Match],
    style: HierarchicalEnrichmentStyle,
    (at, took_ms): (&str, f64),
) {
    let mut value = Value::from(std::mem::take(&mut document.payload));
    let written = taxonomy.enrich(&mut value, matches, None, style);
    if let Value::Object(payload) = value {
        document.payload = payload.into();
    }
    if let Some(internal) = document.payload.get_mut("_internal") {
        internal["updated_at"] = at.into();
    }
    let said = matches.iter().map(|one| {
        let mut said = taxonomy.assignment(one, &written, at);
        said["took_ms"] = took_ms.into();
        said
    });
    note(document, &taxonomy.taxonomy_id, said);
}

/// The id that a document's copy has in another collection: the same one again when it is copied again.
pub(super) fn copy_id(spec: &CollectionSpec, source_id: &str, taxonomy: &Taxonomy) -> String {
    let part = format!("taxonomy/{}", taxonomy.taxonomy_id);
    document_id(&spec.collection_id, source_id, &part)
}

/// The document as one of another collection.
pub(super) fn copied(
    mut document: Document,
    spec: &CollectionSpec,
    taxonomy: &Taxonomy,
) -> Document {
    let id = copy_id(spec, &document.document_id, taxonomy);
    if let Some(internal) = document.payload.get_mut("_internal") {
        internal["document_id"] = id.as_str().into();
        internal["collection_id"] = spec.collection_id.as_str().into();
        if internal["lineage"].is_object() {
            internal["lineage"]["source_document_id"] = document.document_id.as_str().into();
        }
    }
    // Vectors that the other collection has no index for stay behind.
    let fits = |name: &String, vector: &Vec<f32>| {
        spec.vectors
            .iter()
            .any(|index| index.name == *name && index.dims == vector.len())
    };
    document.vectors.retain(|name, vector| fits(name, vector));
    document.keywords = Some(documents::keywords(&document.payload));
    document.collection_id.clone_from(&spec.collection_id);
    document.document_id = id;
    document
}
