//! What reads of documents answer: one, or a page of them.

use std::sync::Arc;

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{
    DegradedEntry, DocumentListStats, ListDocumentsRequest, NamespaceOperation, Object,
    PaginationResponse, Value,
};
use serde::Serialize;
use serde_json::json;

use super::{
    Shape, Sight, VectorNames,
    routes::{DocumentQuery, DocumentsQuery, listing, shape},
    view,
    view::Shown,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
};

/// A document as it was read, or with what was asked for beside it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum One {
    Read(Shown),
    Expanded(Object),
}

/// One document, with its vectors where they are asked for.
///
/// # Errors
/// There is none that the caller may see.
pub async fn show(
    app: &App,
    scope: &Scope<Read>,
    collection: &str,
    document_id: &str,
    return_vectors: bool,
) -> Result<One> {
    let query = DocumentQuery {
        return_vectors: Some(return_vectors),
        ..Default::default()
    };
    show_one(app, scope, collection, document_id, query).await
}

/// One document as the query wants to see it.
pub(super) async fn show_one(
    app: &App,
    scope: &Scope<Read>,
    collection: &str,
    document_id: &str,
    query: DocumentQuery,
) -> Result<One> {
    let shape = Shape {
        presigned_urls: query.return_presigned_urls.unwrap_or(false),
        vectors: query.return_vectors.unwrap_or(false),
        vector_names: VectorNames::parse(query.return_vector_names.as_deref()),
        select: None,
    };
    let vectors = if shape.needs_vectors() {
        WithVectors::Yes
    } else {
        WithVectors::No
    };
    let operation = NamespaceOperation::ReadData;
    let (_, document) =
        super::find(app, scope, collection, document_id, operation, vectors).await?;
    let fields = query.expand.unwrap_or_default();
    let fields: Vec<String> = fields
        .split(',')
        .map(|field| field.trim().to_owned())
        .filter(|field| !field.is_empty())
        .collect();
    if fields.is_empty() {
        return Ok(One::Read(Shown::new(app, document, Arc::new(shape))));
    }
    let mut shown = [view(app, document, &shape)];
    super::expand(app, scope, &fields, &mut shown).await?;
    let [shown] = shown;
    Ok(One::Expanded(shown))
}

/// A page as it is answered.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pagination: PaginationResponse,
    warnings: Vec<DegradedEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_documents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<DocumentListStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Results>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by_field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown_collection_ids: Option<Vec<String>>,
}

/// Documents as they were read, or with what was asked for beside them.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Results {
    Read(Vec<Shown>),
    Expanded(Vec<Object>),
}

/// One page of what is in sight.
pub(super) async fn list_page(
    app: &App,
    scope: &Scope<Read>,
    sight: &Sight,
    query: &DocumentsQuery,
    request: ListDocumentsRequest,
) -> Result<Answer> {
    let (mut listing, shape) = (listing(query, &request)?, shape(query, &request));
    listing.filter = sight.filter(listing.filter);
    let page = super::list(app, &sight.reach, listing).await?;
    let mut answer = Answer {
        total_documents: page.pagination.total,
        stats: page
            .pagination
            .total
            .map(|total| stats(&page.documents, total)),
        pagination: page.pagination,
        warnings: page.warnings,
        results: None,
        groups: None,
        group_by_field: request.group_by,
        unknown_collection_ids: None,
    };
    let expand = request.expand.as_deref().unwrap_or_default();
    let documents = page.documents.into_iter();
    if expand.is_empty() && answer.group_by_field.is_none() {
        let shape = Arc::new(shape);
        let shown = documents.map(|document| Shown::new(app, document, shape.clone()));
        answer.results = Some(Results::Read(shown.collect()));
        return Ok(answer);
    }
    let mut shown: Vec<Object> = documents
        .map(|document| view(app, document, &shape))
        .collect();
    super::expand(app, scope, expand, &mut shown).await?;
    match &answer.group_by_field {
        None => answer.results = Some(Results::Expanded(shown)),
        Some(field) => {
            let (count, groups) = (shown.len(), groups(shown, field));
            if let Some(stats) = &mut answer.stats {
                add_groups(stats, count, &groups);
            }
            answer.groups = Some(groups);
        }
    }
    Ok(answer)
}

/// Counts of all that match, files of the ones shown.
#[expect(clippy::cast_precision_loss, reason = "an average for people")]
fn stats(shown: &[Document], total: i64) -> DocumentListStats {
    let blobs: usize = shown
        .iter()
        .map(|document| view::blobs(document).len())
        .sum();
    DocumentListStats {
        total_documents: total,
        avg_blobs_per_document: blobs as f64 / shown.len().max(1) as f64,
        ..Default::default()
    }
}

/// Groups are made of the page, and counted of it.
#[expect(clippy::cast_precision_loss, reason = "an average for people")]
fn add_groups(stats: &mut DocumentListStats, documents: usize, groups: &Value) {
    let groups = groups.as_array().map_or(0, Vec::len);
    stats.total_groups = i64::try_from(groups).ok();
    stats.avg_documents_per_group = Some(documents as f64 / groups.max(1) as f64);
}

/// The page's documents by the value of a field, in the order first met.
fn groups(documents: Vec<Object>, field: &str) -> Value {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for document in documents {
        let document = Value::Object(document);
        let key = loupe_engine::filter::value_at(&document, field)
            .cloned()
            .unwrap_or(Value::Null);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(document),
            None => groups.push((key, vec![document])),
        }
    }
    let group = |(key, members): (Value, Vec<Value>)| json!({"group_key": key, "count": members.len(), "documents": members});
    groups.into_iter().map(group).collect()
}
