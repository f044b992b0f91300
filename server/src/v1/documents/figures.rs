//! Figures over the documents of a collection, as the caller's key sees them.

use axum::extract::{Path, State};
use loupe_engine::{
    filter::Filter,
    store::{ListQuery, Reach},
};
use loupe_wire::{
    CollectionResponse, DistinctValue, DistinctValuesRequest, DistinctValuesResponse,
    DocumentAggregationRequest, DocumentAggregationResponse, DocumentReplaceRequest,
    DocumentValidationFault, DocumentValidationResponse, NamespaceOperation, Object, Value,
};
use utoipa_axum::router::OpenApiRouter;

use super::checking::{aside, own, schema_of};
use crate::{
    aggregate::{Aggregation, Plan},
    app::App,
    auth::{Read, Scope},
    body::Body,
    error::Result,
    json::Json,
    list::parse_filter,
    openapi::routes,
    v1::collections,
};

/// Documents read at once.
const PAGE: usize = 1000;
/// Values of a field that are told apart.
const DISTINCT: usize = 10_000;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(aggregate_documents))
        .routes(routes!(list_distinct_values))
        .routes(routes!(validate_document))
}

fn filter(filters: Option<&loupe_wire::Filter>) -> Result<Option<Filter>> {
    let sent = filters.map(|filters| &filters.0);
    let sent = sent.filter(|sent| sent.as_object().is_none_or(|tree| !tree.is_empty()));
    sent.map(|sent| parse_filter(sent, "filters")).transpose()
}

/// Counts, sums and other figures, by groups.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents/aggregate", tag = "documents", request_body = DocumentAggregationRequest, responses((status = 200, body = DocumentAggregationResponse)))]
async fn aggregate_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    Body(request): Body<DocumentAggregationRequest>,
) -> Result<Json<DocumentAggregationResponse>> {
    let operation = NamespaceOperation::ReadData;
    let (collection, sight) = super::open(&app, &scope, &collection, operation).await?;
    collections::lifecycle::check_here(&collection)?;
    let filter = sight.filter(filter(request.filters.as_ref())?);
    let aggregation = Aggregation::new(Plan::from(request))?;
    let (aggregation, read) = aggregate(&app, &sight.reach, filter, aggregation).await?;
    let cut = aggregation.cut_short();
    let (results, total_groups) = aggregation.finish();
    let mut query_info = Object::from_iter([("documents_read".to_owned(), Value::from(read))]);
    if !cut.is_empty() {
        query_info.insert("cut_short".to_owned(), cut.into());
    }
    Ok(Json(DocumentAggregationResponse {
        results,
        total_groups,
        query_info,
    }))
}

/// Gives every document that matches to the aggregation; answers how many they were.
async fn aggregate(
    app: &App,
    reach: &Reach,
    filter: Option<Filter>,
    mut aggregation: Aggregation,
) -> Result<(Aggregation, usize)> {
    let mut query = ListQuery {
        filter,
        limit: PAGE,
        ..Default::default()
    };
    let mut read = 0;
    loop {
        let page = app.store().list(reach, query.clone()).await?;
        read += page.documents.len();
        for document in page.documents {
            let mut row = Value::from(document.payload);
            row["document_id"] = document.document_id.into();
            row["collection_id"] = document.collection_id.into();
            aggregation.add(&row)?;
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok((aggregation, read));
        }
    }
}

/// The values that a field has, the most frequent first.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents/distinct", tag = "documents", request_body = DistinctValuesRequest, responses((status = 200, body = DistinctValuesResponse)))]
async fn list_distinct_values(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    Body(request): Body<DistinctValuesRequest>,
) -> Result<Json<DistinctValuesResponse>> {
    let operation = NamespaceOperation::ReadData;
    let (collection, sight) = super::open(&app, &scope, &collection, operation).await?;
    collections::lifecycle::check_here(&collection)?;
    let filter = sight.filter(filter(request.filters.as_ref())?);
    let store = app.store();
    // One more than is told tells whether that is all.
    let most = DISTINCT + 1;
    let found = store
        .facet(&sight.reach, filter.as_ref(), &request.field, most)
        .await?;
    let is_all = found.len() <= DISTINCT;
    let total_distinct = i64::try_from(found.len().min(DISTINCT)).unwrap_or(i64::MAX);
    let limit = usize::try_from(request.limit.unwrap_or(100)).unwrap_or(DISTINCT);
    let value = |one: loupe_engine::store::FacetCount| DistinctValue {
        value: one.value,
        count: i64::try_from(one.count).unwrap_or(i64::MAX),
    };
    Ok(Json(DistinctValuesResponse {
        field: request.field,
        values: found.into_iter().take(limit).map(value).collect(),
        total_distinct,
        query_info: Object::from_iter([("total_is_exact".to_owned(), is_all.into())]),
    }))
}

/// Whether a document has the types that the collection's schema says; nothing is written.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/documents/schema/validate", tag = "documents", request_body = DocumentReplaceRequest, responses((status = 200, body = DocumentValidationResponse)))]
async fn validate_document(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    Body(request): Body<DocumentReplaceRequest>,
) -> Result<Json<DocumentValidationResponse>> {
    let operation = NamespaceOperation::ReadData;
    // Whoever may see documents of it may ask what they must look like.
    let (collection, _) = super::open(&app, &scope, &collection, operation).await?;
    let mut document = request.extra;
    if let Some(metadata) = request.metadata {
        document.insert("metadata".into(), Value::Object(metadata));
    }
    let errors = match collection.document_schema.is_empty() {
        true => faults(&collection, &document),
        false => faults_of_schema(&collection, &document).await?,
    };
    Ok(Json(DocumentValidationResponse {
        valid: errors.is_empty(),
        collection_id: collection.id.clone(),
        errors,
    }))
}

/// The same by the schema that the collection checks documents against, whether or not it does so now.
async fn faults_of_schema(
    collection: &CollectionResponse,
    document: &Object,
) -> Result<Vec<DocumentValidationFault>> {
    let (schema, document) = (schema_of(collection)?, own(document));
    let faults = aside(move || schema.faults(&document)).await?;
    let told = faults.into_iter().map(|fault| DocumentValidationFault {
        field: fault.path.join("."),
        message: format!("the schema expects {}", fault.expected),
        expected: fault.expected,
        found: kind(&fault.found).into(),
    });
    Ok(told.collect())
}

/// Members that are not of the type that the schema declares.
fn faults(collection: &CollectionResponse, document: &Object) -> Vec<DocumentValidationFault> {
    let declared = collection.output_schema.as_ref();
    let properties = declared.into_iter().flat_map(|schema| &schema.properties);
    let fault = |(name, field): (&String, &loupe_wire::BucketSchemaField)| {
        let value = document.get(name)?;
        let expected = crate::v1::tasks::name_of(field.r#type);
        let found = kind(value);
        let fits = match expected.as_str() {
            "integer" => value.is_i64() || value.is_u64(),
            "float" | "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" | "json" => value.is_object() || value.is_array(),
            "string" | "text" | "date" | "datetime" => value.is_string(),
            _ => true,
        };
        (!fits && !value.is_null()).then(|| DocumentValidationFault {
            field: name.clone(),
            message: format!("this is {found}; the schema says {expected}"),
            expected,
            found: found.into(),
        })
    };
    properties.filter_map(fault).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
