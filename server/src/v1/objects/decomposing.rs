//! What was made of an object: its documents in every collection, as a list, a tree and in figures over objects.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_engine::{
    filter::Filter,
    store::{Document, ListQuery},
};
use loupe_wire::{
    DecompositionNode, DecompositionTreeResponse, NamespaceOperation, Object,
    ObjectAggregationRequest, ObjectAggregationResponse, ObjectDocumentsResponse, ObjectResponse,
    ResourceType, Value,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{listing, store};
use crate::{
    aggregate::{Aggregation, Plan},
    app::App,
    auth::{Read, Scope},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{self, Walk, parse_filter},
    openapi::routes,
    v1::{
        collections::COLLECTIONS,
        documents::{self, Sight},
    },
};

/// Documents that one answer shows.
const SHOWN: usize = 1000;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_object_documents))
        .routes(routes!(get_decomposition_tree))
        .routes(routes!(aggregate_objects))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DocumentsQuery {
    /// Ids of collections, comma-separated; every collection without it.
    collection_ids: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TreeQuery {
    /// Adds the ids of the documents, at most 1,000 of each collection.
    include_document_ids: Option<bool>,
}

macro_rules! query_extractor {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        })*
    };
}
query_extractor!(DocumentsQuery, TreeQuery);

/// An object of the namespace, if the key's scopes cover its bucket.
async fn find(app: &App, scope: &Scope<Read>, object_id: &str) -> Result<ObjectResponse> {
    let found = store::find_anywhere(app.db(), &scope.namespace_id, object_id).await?;
    let object = found.ok_or_else(|| ApiError::not_found("object", object_id))?;
    let operation = NamespaceOperation::ReadData;
    let caller = &scope.caller;
    caller.allow(ResourceType::Bucket, &object.bucket_id, operation)?;
    Ok(object)
}

fn made_of(object_id: &str) -> Filter {
    Filter::eq("_internal.lineage.root_object_id", object_id)
}

/// Documents that were made of an object, in every collection, at most 1,000.
#[utoipa::path(get, path = "/v1/objects/{object_id}/documents", tag = "objects", params(DocumentsQuery), responses((status = 200, body = ObjectDocumentsResponse)))]
async fn list_object_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(object_id): Path<String>,
    query: DocumentsQuery,
) -> Result<Json<Value>> {
    find(&app, &scope, &object_id).await?;
    let mut sight = documents::everywhere(&app, &scope).await?;
    if let Some(wanted) = query.collection_ids.filter(|wanted| !wanted.is_empty()) {
        let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
        sight
            .reach
            .collection_ids
            .retain(|id| wanted.contains(&id.as_str()));
    }
    let filter = made_of(&object_id);
    let total = sight.count(&app, Some(filter.clone())).await?;
    let query = ListQuery {
        filter: Some(filter),
        limit: SHOWN,
        ..Default::default()
    };
    let page = sight.list(&app, query).await?;
    let shape = documents::Shape::default();
    let shown = page.documents.into_iter();
    let results: Vec<Object> = shown
        .map(|document| documents::view(&app, document, &shape))
        .collect();
    Ok(Json(
        json!({ "object_id": object_id, "total_documents": total, "results": results }),
    ))
}

/// What was made of an object, collection by collection, each under the one that it was made from.
#[utoipa::path(get, path = "/v1/objects/{object_id}/decomposition-tree", tag = "objects", params(TreeQuery), responses((status = 200, body = DecompositionTreeResponse)))]
async fn get_decomposition_tree(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(object_id): Path<String>,
    query: TreeQuery,
) -> Result<Json<DecompositionTreeResponse>> {
    let object = find(&app, &scope, &object_id).await?;
    let sight = documents::everywhere(&app, &scope).await?;
    let mut made = collect(&app, &sight, &object_id).await?;
    let collections = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    for record in collections {
        if let Some(one) = made.get_mut(&record.id) {
            one.name = Some(record.name);
        }
    }
    let ids = query.include_document_ids.unwrap_or(false);
    let nodes = nodes(&mut made, None, 0, ids);
    Ok(Json(DecompositionTreeResponse {
        object_id,
        bucket_id: Some(object.bucket_id),
        nodes,
    }))
}

/// What one collection holds of an object.
#[derive(Default)]
struct Made {
    name: Option<String>,
    /// The collection that its documents were made from; none for those of the object itself.
    from: Option<String>,
    count: i64,
    ids: Vec<String>,
}

async fn collect(app: &App, sight: &Sight, object_id: &str) -> Result<BTreeMap<String, Made>> {
    let mut query = ListQuery {
        filter: Some(made_of(object_id)),
        limit: SHOWN,
        ..Default::default()
    };
    let mut made: BTreeMap<String, Made> = BTreeMap::new();
    loop {
        let page = sight.list(app, query.clone()).await?;
        for document in page.documents {
            let from = source_collection(&document);
            let one = made.entry(document.collection_id).or_default();
            one.count += 1;
            one.from = one.from.take().or(from);
            if one.ids.len() < SHOWN {
                one.ids.push(document.document_id);
            }
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    // A parent that holds nothing of the object, or that the key does not cover, hides nothing that was made from it.
    let known: Vec<String> = made.keys().cloned().collect();
    for (id, one) in &mut made {
        one.from = one
            .from
            .take()
            .filter(|from| known.contains(from) && from != id);
    }
    Ok(made)
}

fn source_collection(document: &Document) -> Option<String> {
    let lineage = document.payload.get("_internal")?.get("lineage")?;
    lineage
        .get("source_collection_id")?
        .as_str()
        .map(ToOwned::to_owned)
}

/// The nodes under a parent; each collection is taken once, so a circle ends.
fn nodes(
    made: &mut BTreeMap<String, Made>,
    parent: Option<&str>,
    tier: i64,
    with_ids: bool,
) -> Vec<DecompositionNode> {
    let below = |one: &Made| one.from.as_deref() == parent;
    let ids: Vec<String> = made
        .iter()
        .filter(|(_, one)| below(one))
        .map(|(id, _)| id.clone())
        .collect();
    let taken: Vec<(String, Made)> = ids
        .into_iter()
        .filter_map(|id| made.remove(&id).map(|one| (id, one)))
        .collect();
    let mut nodes = Vec::with_capacity(taken.len());
    for (id, one) in taken {
        nodes.push(DecompositionNode {
            children: self::nodes(made, Some(&id), tier + 1, with_ids),
            collection_id: id,
            collection_name: one.name,
            tier,
            document_count: one.count,
            document_ids: with_ids.then_some(one.ids),
        });
    }
    nodes
}

/// Counts, sums and other figures over the objects of a bucket, by groups.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/objects/aggregate", tag = "objects", request_body = ObjectAggregationRequest, responses((status = 200, body = ObjectAggregationResponse)))]
async fn aggregate_objects(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    Body(request): Body<ObjectAggregationRequest>,
) -> Result<Json<ObjectAggregationResponse>> {
    let bucket = super::bucket(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    let filter = request.filters.as_ref();
    let filter = filter.filter(|sent| sent.0.as_object().is_none_or(|tree| !tree.is_empty()));
    let filter = filter
        .map(|sent| parse_filter(&sent.0, "filters"))
        .transpose()?;
    let mut aggregation = Aggregation::new(Plan::from(request))?;
    let walk = Walk::oldest(filter.as_ref());
    let (mut read, mut mark) = (0_i64, walk.start());
    loop {
        let (db, namespace_id) = (app.db(), &scope.namespace_id);
        let page = listing::piece(db, namespace_id, &bucket.id, &walk, mark).await?;
        let Some((_, last)) = page.last() else {
            break;
        };
        mark = last.clone();
        for (object, _) in page {
            let row = serde_json::to_value(object).map_err(ApiError::internal)?;
            if filter.as_ref().is_none_or(|filter| filter.matches(&row)) {
                read += 1;
                aggregation.add(&row)?;
            }
        }
    }
    let cut = aggregation.cut_short();
    let (results, total_groups) = aggregation.finish();
    let mut query_info = Object::from_iter([("objects_read".to_owned(), Value::from(read))]);
    if !cut.is_empty() {
        query_info.insert("cut_short".to_owned(), cut.into());
    }
    Ok(Json(ObjectAggregationResponse {
        results,
        total_groups,
        query_info,
    }))
}
