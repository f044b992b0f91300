use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_engine::{
    filter::Filter,
    store::{Direction, Sort, WithVectors},
};
use loupe_wire::{
    BatchDeleteDocumentsRequest, BatchDeleteDocumentsResponse, BatchDocumentDeleteResult,
    BatchDocumentUpdateResult, BatchUpdateDocumentsRequest, BatchUpdateDocumentsResponse,
    BulkUpdateDocumentsRequest, BulkUpdateDocumentsResponse, DocumentCountResponse,
    DocumentCreateRequest, DocumentPatchRequest, DocumentReplaceRequest, DocumentResponse,
    GenericDeleteResponse, ListDocumentsRequest, ListDocumentsResponse, NamespaceOperation,
    SortDirection, UpdateDocumentACLRequest, Value,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Listing, Shape, VectorNames,
    answers::{Answer, One, list_page, show_one},
    listing::of_part,
    view::Shown,
};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
    list::{self, parse_filter},
    openapi::routes,
    v1::collections,
    words::said,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_documents, create_document))
        .routes(routes!(search_documents))
        .routes(routes!(count_documents))
        .routes(routes!(update_documents, delete_documents))
        .routes(routes!(update_matching_documents))
        .routes(routes!(
            get_document,
            patch_document,
            replace_document,
            delete_document
        ))
        .routes(routes!(set_document_acl))
        .merge(super::anywhere::router())
        .merge(super::figures::router())
        .merge(super::related::router())
}

macro_rules! query_extractor {
    ($name:ident) => {
        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        }
    };
}

/// The query of a document list; the body of a POST wins over it.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DocumentsQuery {
    return_presigned_urls: Option<bool>,
    return_vectors: Option<bool>,
    /// A filter tree as JSON.
    filters: Option<String>,
    search: Option<String>,
    /// `field`, `-field`, `field:desc`.
    sort: Option<String>,
    /// 1 to 1000; wins over `page_size`.
    limit: Option<i64>,
    /// 1 to 1000, default 10.
    page_size: Option<i64>,
    /// 0 to 10000; wins over `page`.
    offset: Option<i64>,
    /// From 1, default 1.
    page: Option<i64>,
    cursor: Option<String>,
    next_cursor: Option<String>,
    after: Option<String>,
    include_total: Option<bool>,
}
query_extractor!(DocumentsQuery);

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DocumentQuery {
    /// Fresh addresses of the blobs.
    pub(super) return_presigned_urls: Option<bool>,
    pub(super) return_vectors: Option<bool>,
    /// `true`, or a comma list of names.
    pub(super) return_vector_names: Option<String>,
    /// parent, root_object, ancestors, children, or paths of fields that hold document ids; comma-separated.
    pub(super) expand: Option<String>,
}
query_extractor!(DocumentQuery);

pub(super) fn listing(query: &DocumentsQuery, request: &ListDocumentsRequest) -> Result<Listing> {
    let (limit, offset) = part(query, request)?;
    let filter = filter_sent(query, request)?.filter(|filter| {
        !filter.is_null() && filter.as_object().is_none_or(|tree| !tree.is_empty())
    });
    let sort = match &request.sort {
        Some(sort) => Some(Sort {
            field: sort.field.clone(),
            direction: match sort.direction {
                SortDirection::Asc => Direction::Ascending,
                SortDirection::Desc => Direction::Descending,
            },
        }),
        None => query.sort.as_deref().map(super::parse_sort),
    };
    let shape = shape(query, request);
    let text = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let filter = filter
        .map(|filter| parse_filter(&filter, "filters").map(super::by_batch))
        .transpose()?;
    let part = request.partition.as_ref().map(of_part).transpose()?;
    Ok(Listing {
        filter: match (part, filter) {
            (Some(part), Some(filter)) => Some(Filter::All(vec![part, filter])),
            (part, filter) => part.or(filter),
        },
        sort,
        search: text(&request.search).or(text(&query.search)),
        limit: usize::try_from(limit).unwrap_or(10),
        offset: usize::try_from(offset).unwrap_or(0),
        cursor: text(&request.cursor)
            .or(text(&query.cursor))
            .or(text(&query.next_cursor))
            .or(text(&query.after)),
        include_total: request
            .include_total
            .or(query.include_total)
            .unwrap_or(false),
        vectors: if shape.needs_vectors() {
            WithVectors::Yes
        } else {
            WithVectors::No
        },
    })
}

/// How many documents are asked for, from which on.
fn part(query: &DocumentsQuery, request: &ListDocumentsRequest) -> Result<(i64, i64)> {
    let page_size = list::within("page_size", query.page_size, 10, (1, 1000))?;
    let limit = list::within("limit", request.limit.or(query.limit), page_size, (1, 1000))?;
    if let Some(page) = query.page {
        list::bounded("page", page, 1, i64::MAX)?;
    }
    let page = query.page.map(|page| (page - 1).saturating_mul(limit));
    let offset = request
        .offset
        .or(query.offset)
        .filter(|offset| *offset != 0)
        .or(page)
        .unwrap_or(0);
    if !(0..=10_000).contains(&offset) {
        let msg = "must be between 0 and 10000; go on with the cursor";
        return Err(Violation::query("offset", "range", msg, offset.into()).into());
    }
    Ok((limit, offset))
}

fn filter_sent(query: &DocumentsQuery, request: &ListDocumentsRequest) -> Result<Option<Value>> {
    match (&request.filters, &query.filters) {
        (Some(filter), _) => Ok(Some(filter.0.clone())),
        (None, Some(text)) => serde_json::from_str(text).map(Some).map_err(|error| {
            let msg = format!("not valid JSON: {error}");
            Violation::query("filters", "json_invalid", msg, text.clone().into()).into()
        }),
        (None, None) => Ok(None),
    }
}

pub(super) fn shape(query: &DocumentsQuery, request: &ListDocumentsRequest) -> Shape {
    Shape {
        presigned_urls: request.return_presigned_urls
            || query.return_presigned_urls.unwrap_or(false),
        vectors: request
            .return_vectors
            .or(query.return_vectors)
            .unwrap_or(false),
        vector_names: VectorNames::from_value(request.return_vector_names.as_ref()),
        select: request.select.clone(),
    }
}

async fn page(
    app: &App,
    scope: &Scope<Read>,
    collection: &str,
    query: DocumentsQuery,
    request: ListDocumentsRequest,
) -> Result<Json<Answer>> {
    let operation = NamespaceOperation::ReadData;
    let (collection, sight) = super::open(app, scope, collection, operation).await?;
    collections::lifecycle::check_here(&collection)?;
    list_page(app, scope, &sight, &query, request)
        .await
        .map(Json)
}

/// Documents of a collection.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents", tag = "documents", params(DocumentsQuery), responses((status = 200, body = ListDocumentsResponse)))]
async fn list_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    query: DocumentsQuery,
) -> Result<Json<Answer>> {
    page(
        &app,
        &scope,
        &collection,
        query,
        ListDocumentsRequest::default(),
    )
    .await
}

/// Documents of a collection that match, sorted, searched or grouped.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents/list", tag = "documents", params(DocumentsQuery), request_body = ListDocumentsRequest, responses((status = 200, body = ListDocumentsResponse)))]
async fn search_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    query: DocumentsQuery,
    Body(request): Body<ListDocumentsRequest>,
) -> Result<Json<Answer>> {
    page(&app, &scope, &collection, query, request).await
}

/// Writes one document, with vectors of its own when the collection has indexes for them.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents", tag = "documents", request_body = DocumentCreateRequest, responses((status = 200, body = DocumentResponse)))]
async fn create_document(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(collection): Path<String>,
    Body(request): Body<DocumentCreateRequest>,
) -> Result<Json<Shown>> {
    let document = super::create(&app, &scope, &collection, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// How many documents a collection holds, as this key sees them.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/count", tag = "documents", responses((status = 200, body = DocumentCountResponse)))]
async fn count_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
) -> Result<Json<DocumentCountResponse>> {
    let operation = NamespaceOperation::ReadData;
    let (found, sight) = super::open(&app, &scope, &collection, operation).await?;
    let count = if sight.is_narrow() {
        collections::lifecycle::check_here(&found)?;
        i64::try_from(sight.count(&app, None).await?).ok()
    } else {
        let collection = collections::get(&app, &scope, &collection).await?;
        collection.document_count
    };
    Ok(Json(DocumentCountResponse {
        collection_id: found.id.clone(),
        count: count.unwrap_or(0),
    }))
}

/// One document.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}", tag = "documents", params(DocumentQuery), responses((status = 200, body = DocumentResponse)))]
async fn get_document(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
    query: DocumentQuery,
) -> Result<Json<One>> {
    show_one(&app, &scope, &collection, &document_id, query)
        .await
        .map(Json)
}

/// Sets the members sent and keeps the others.
#[utoipa::path(patch, path = "/v1/collections/{collection_identifier}/documents/{document_id}", tag = "documents", request_body = DocumentPatchRequest, responses((status = 200, body = DocumentResponse)))]
async fn patch_document(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((collection, document_id)): Path<(String, String)>,
    Body(request): Body<DocumentPatchRequest>,
) -> Result<Json<Shown>> {
    let document = super::patch(&app, &scope, &collection, &document_id, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// Replaces every user field.
#[utoipa::path(put, path = "/v1/collections/{collection_identifier}/documents/{document_id}", tag = "documents", request_body = DocumentReplaceRequest, responses((status = 200, body = DocumentResponse)))]
async fn replace_document(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((collection, document_id)): Path<(String, String)>,
    Body(request): Body<DocumentReplaceRequest>,
) -> Result<Json<Shown>> {
    let document = super::replace(&app, &scope, &collection, &document_id, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// Removes one document.
#[utoipa::path(delete, path = "/v1/collections/{collection_identifier}/documents/{document_id}", tag = "documents", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_document(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    let deleted = super::delete(&app, &scope, &collection, vec![document_id.clone()]).await?;
    if deleted.is_empty() {
        return Err(ApiError::not_found("document", &document_id));
    }
    Ok(Json(GenericDeleteResponse::default()))
}

/// Who may see and change a document.
#[utoipa::path(patch, path = "/v1/collections/{collection_identifier}/documents/{document_id}/acl", tag = "documents", request_body = UpdateDocumentACLRequest, responses((status = 200, body = DocumentResponse)))]
async fn set_document_acl(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((collection, document_id)): Path<(String, String)>,
    Body(request): Body<UpdateDocumentACLRequest>,
) -> Result<Json<Shown>> {
    let document = super::set_acl(&app, &scope, &collection, &document_id, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// Changes many documents, each its own or all that match.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents/batch", tag = "documents", request_body = BatchUpdateDocumentsRequest, responses((status = 200, body = BatchUpdateDocumentsResponse)))]
async fn update_documents(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(collection): Path<String>,
    Body(request): Body<BatchUpdateDocumentsRequest>,
) -> Result<Json<BatchUpdateDocumentsResponse>> {
    let results = super::update_many(&app, &scope, &collection, request).await?;
    let number = |success: bool| {
        let count = results
            .iter()
            .filter(|result| result.success == success)
            .count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    let (updated_count, failed_count) = (number(true), number(false));
    Ok(Json(BatchUpdateDocumentsResponse {
        updated_count,
        failed_count,
        results: Some(results),
        ..Default::default()
    }))
}

/// Sets members of every document that matches; of all without a filter.
#[utoipa::path(patch, path = "/v1/collections/{collection_identifier}/documents/bulk", tag = "documents", request_body = BulkUpdateDocumentsRequest, responses((status = 200, body = BulkUpdateDocumentsResponse)))]
async fn update_matching_documents(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(collection): Path<String>,
    Body(request): Body<BulkUpdateDocumentsRequest>,
) -> Result<Json<BulkUpdateDocumentsResponse>> {
    let request = BatchUpdateDocumentsRequest {
        updates: None,
        filters: request.filters,
        update_data: Some(request.update_data),
    };
    let updated = super::update_many(&app, &scope, &collection, request).await?;
    Ok(Json(told(&updated)))
}

/// What became of documents that were updated together: those that stay as they are, and why the first of them does.
fn told(updated: &[BatchDocumentUpdateResult]) -> BulkUpdateDocumentsResponse {
    let count = updated.iter().filter(|one| one.success).count();
    let mut refused = updated.iter().filter_map(|one| one.error.as_deref());
    let (status, message) = match (refused.next(), updated.len() - count) {
        (Some(reason), several) => (
            "COMPLETED_WITH_ERRORS",
            format!(
                "{}: {reason}",
                said(several, "document", ("stays as it is", "stay as they are"))
            ),
        ),
        (None, _) if count == 0 => ("COMPLETED", "no document matches".to_owned()),
        (None, _) => ("COMPLETED", "the documents are updated".to_owned()),
    };
    BulkUpdateDocumentsResponse {
        status: Some(status.into()),
        updated_count: i64::try_from(count).ok(),
        message,
        ..Default::default()
    }
}

/// Removes many documents by id.
#[utoipa::path(delete, path = "/v1/collections/{collection_identifier}/documents/batch", tag = "documents", request_body = BatchDeleteDocumentsRequest, responses((status = 200, body = BatchDeleteDocumentsResponse)))]
async fn delete_documents(
    State(app): State<App>,
    mut scope: Scope<Delete>,
    Path(collection): Path<String>,
    Body(request): Body<BatchDeleteDocumentsRequest>,
) -> Result<Json<BatchDeleteDocumentsResponse>> {
    scope.caller.gives(request.reason);
    let ids = match (request.document_ids, request.filters) {
        (Some(ids), None) => ids,
        (None, Some(filters)) => {
            super::bulk::matching(&app, &scope, &collection, &filters.0).await?
        }
        _ => {
            let msg = "send either document_ids or filters";
            return Err(Violation::body(&["document_ids"], "missing", msg, Value::Null).into());
        }
    };
    let deleted = super::delete(&app, &scope, &collection, ids.clone()).await?;
    let results: Vec<BatchDocumentDeleteResult> = ids
        .iter()
        .map(|id| {
            let success = deleted.contains(id);
            let error = (!success).then(|| "document not found".to_owned());
            BatchDocumentDeleteResult {
                document_id: id.clone(),
                success,
                error,
            }
        })
        .collect();
    let failed = results.iter().filter(|result| !result.success).count();
    Ok(Json(BatchDeleteDocumentsResponse {
        status: Some("COMPLETED".into()),
        deleted_count: i64::try_from(deleted.len()).ok(),
        failed_count: i64::try_from(failed).unwrap_or(i64::MAX),
        results,
        ..Default::default()
    }))
}
