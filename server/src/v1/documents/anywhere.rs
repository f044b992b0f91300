//! Documents of a namespace, in whichever collection they are.

use std::{collections::BTreeMap, sync::Arc};

use axum::extract::{Path, State};
use futures::StreamExt;
use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{
    BatchGetDocumentsRequest, BatchGetDocumentsResponse, BatchListDocumentsRequest,
    BatchListDocumentsResponse, BatchListQuery, DocumentPatchRequest, DocumentReplaceRequest,
    DocumentResponse, ListDocumentsRequest, ListDocumentsResponse, NamespaceListDocumentsRequest,
    NamespaceOperation, Value,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Shape,
    answers::{Answer, One, list_page, show_one},
    everywhere,
    routes::{DocumentQuery, DocumentsQuery},
    view::Shown,
};
use crate::{
    app::App,
    auth::{Level, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    openapi::routes,
    v1::collections::{self, lifecycle},
};

/// Lists of one request that are read at once.
const AT_ONCE: usize = 4;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_namespace_documents))
        .routes(routes!(list_many_documents))
        .routes(routes!(get_documents))
        .routes(routes!(
            get_any_document,
            patch_any_document,
            replace_any_document
        ))
}

/// The collection that a document is in, if the key's scopes cover the document.
async fn collection_of<L: Level>(app: &App, scope: &Scope<L>, document_id: &str) -> Result<String> {
    let sight = everywhere(app, scope).await?;
    let ids = [document_id.to_owned()];
    let mut found = sight.get(app, &ids, WithVectors::No).await?;
    let found = found.pop().map(|document| document.collection_id);
    found.ok_or_else(|| ApiError::not_found("document", document_id))
}

/// One document, whichever collection it is in.
#[utoipa::path(get, path = "/v1/documents/{document_id}", tag = "documents", params(DocumentQuery), responses((status = 200, body = DocumentResponse)))]
async fn get_any_document(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(document_id): Path<String>,
    query: DocumentQuery,
) -> Result<Json<One>> {
    let collection = collection_of(&app, &scope, &document_id).await?;
    show_one(&app, &scope, &collection, &document_id, query)
        .await
        .map(Json)
}

/// Sets the members sent and keeps the others.
#[utoipa::path(patch, path = "/v1/documents/{document_id}", tag = "documents", request_body = DocumentPatchRequest, responses((status = 200, body = DocumentResponse)))]
async fn patch_any_document(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(document_id): Path<String>,
    Body(request): Body<DocumentPatchRequest>,
) -> Result<Json<Shown>> {
    let collection = collection_of(&app, &scope, &document_id).await?;
    let document = super::patch(&app, &scope, &collection, &document_id, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// Replaces the user members.
#[utoipa::path(put, path = "/v1/documents/{document_id}", tag = "documents", request_body = DocumentReplaceRequest, responses((status = 200, body = DocumentResponse)))]
async fn replace_any_document(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(document_id): Path<String>,
    Body(request): Body<DocumentReplaceRequest>,
) -> Result<Json<Shown>> {
    let collection = collection_of(&app, &scope, &document_id).await?;
    let document = super::replace(&app, &scope, &collection, &document_id, request).await?;
    Ok(Json(Shown::whole(document)))
}

/// Up to 1,000 documents by their ids, in that order, and the ids that nothing was found for.
#[utoipa::path(post, path = "/v1/documents/batch-get", tag = "documents", request_body = BatchGetDocumentsRequest, responses((status = 200, body = BatchGetDocumentsResponse)))]
async fn get_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<BatchGetDocumentsRequest>,
) -> Result<Json<Value>> {
    let sight = everywhere(&app, &scope).await?;
    let ids = request.document_ids;
    let found = sight.get(&app, &ids, WithVectors::No).await?;
    let mut found: BTreeMap<String, Document> = found
        .into_iter()
        .map(|document| (document.document_id.clone(), document))
        .collect();
    let shape = Arc::new(Shape {
        presigned_urls: request.return_presigned_urls,
        ..Default::default()
    });
    let (mut documents, mut not_found) = (Vec::new(), Vec::new());
    for id in ids {
        match found.remove(&id) {
            Some(document) => documents.push(Shown::new(&app, document, shape.clone())),
            None => not_found.push(id),
        }
    }
    Ok(Json(
        json!({ "documents": documents, "not_found": not_found }),
    ))
}

/// Documents of several collections, or of every one.
#[utoipa::path(post, path = "/v1/documents/list", tag = "documents", params(DocumentsQuery), request_body = NamespaceListDocumentsRequest, responses((status = 200, body = ListDocumentsResponse)))]
async fn list_namespace_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    query: DocumentsQuery,
    Body(request): Body<NamespaceListDocumentsRequest>,
) -> Result<Json<Answer>> {
    page(&app, &scope, query, request).await.map(Json)
}

async fn page(
    app: &App,
    scope: &Scope<Read>,
    query: DocumentsQuery,
    request: NamespaceListDocumentsRequest,
) -> Result<Answer> {
    let mut sight = everywhere(app, scope).await?;
    let reach = &mut sight.reach;
    let mut unknown = Vec::new();
    if let Some(wanted) = &request.collection_ids {
        unknown.extend(
            wanted
                .iter()
                .filter(|id| !reach.collection_ids.contains(id))
                .cloned(),
        );
        reach.collection_ids.retain(|id| wanted.contains(id));
        for id in &unknown {
            match collections::known(app, scope, id, NamespaceOperation::ReadData).await {
                Ok(found) => lifecycle::check_here(&found)?,
                // Unknown, or no business of this key: told as such.
                Err(error) if error.is_callers() => {}
                Err(error) => return Err(error),
            }
        }
    }
    let request = ListDocumentsRequest {
        filters: request.filters,
        sort: request.sort,
        search: request.search,
        cursor: request.cursor,
        partition: request.partition,
        include_total: request.include_total,
        return_presigned_urls: request.return_presigned_urls,
        return_vectors: request.return_vectors,
        return_vector_names: request.return_vector_names,
        group_by: request.group_by,
        select: request.select,
        expand: request.expand,
        limit: request.limit,
        offset: request.offset,
    };
    let mut answer = list_page(app, scope, &sight, &query, request).await?;
    answer.unknown_collection_ids = Some(unknown);
    Ok(answer)
}

/// Up to 10 lists in one request; each is answered or refused by itself.
#[utoipa::path(post, path = "/v1/documents/list/batch", tag = "documents", request_body = BatchListDocumentsRequest, responses((status = 200, body = BatchListDocumentsResponse)))]
async fn list_many_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<BatchListDocumentsRequest>,
) -> Result<Json<Value>> {
    let (app, scope) = (&app, &scope);
    let one = |query: BatchListQuery| async move {
        match page(app, scope, DocumentsQuery::default(), query.request).await {
            Ok(answer) => json!({ "key": query.key, "response": answer }),
            Err(error) => json!({ "key": query.key, "error": error.message() }),
        }
    };
    let lists = futures::stream::iter(request.queries.into_iter().map(one));
    let results: Vec<Value> = lists.buffered(AT_ONCE).collect().await;
    Ok(Json(json!({ "results": results })))
}
