//! A namespace header that names no namespace of the caller's. On lists that is no error: an empty page with a header and a
//! warning, the same whether the namespace is another organization's or nobody's. Everything else answers as for an id that
//! does not exist. The gate asks here once an operation has refused the header, before a body is read: which part of the list
//! is asked for is taken from the query. No handler knows of it.

use axum::{
    Json,
    extract::Query,
    http::{HeaderName, HeaderValue, Uri},
    response::{IntoResponse, Response},
};
use loupe_wire::{
    AlertExecutionListResponse, BenchmarkListResponse, DatasetListResponse, DegradedEntry,
    EvaluationListResponse, ListAdhocExecutionsResponse, ListAlertsResponse,
    ListAnnotationsResponse, ListBatchesResponse, ListBucketsResponse,
    ListClusterExecutionsResponse, ListClusterTriggersResponse, ListClustersResponse,
    ListCollectionsResponse, ListDocumentsResponse, ListEventsResponse, ListExecutionsResponse,
    ListInteractionsResponse, ListObjectsResponse, ListRetrieversResponse, ListTasksResponse,
    ListTaxonomiesResponse, ListTriggersResponse, ListUploadsResponse, Object, PaginationMetadata,
    PublishedRetrieverListResponse, RetrieverAPIKeyListResponse, SyncJobListResponse,
    SyncListResponse, Value,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    error::{Result, Unresolved},
    list::{self, ListParams, ListQuery},
};

/// The header that marks the empty page.
const HEADER: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-namespace-unresolved"),
    HeaderValue::from_static("true"),
);

/// How a page says which part of the list it is, and how it warns.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `pagination`, as most lists have it.
    Pages,
    /// The same; its warnings are sentences.
    Documents,
    /// `pagination` of total, limit and offset.
    Runs,
    /// `limit` and `offset`.
    Window,
    /// `page` and `page_size`.
    Numbers,
    /// `next_cursor`: the one that was sent.
    Feed,
    /// Nothing: the list is whole.
    Whole,
}

macro_rules! lists {
    ($($page:ident $form:ident { $($operation:literal),+ })+) => {
        /// The page of a list without anything on it, as its own type writes it.
        fn empty(operation: &str) -> Option<(Form, Value)> {
            match operation {
                $($($operation)|+ => Some((Form::$form, value(&$page::default()))),)+
                _ => None,
            }
        }
    };
}

lists! {
    ListAlertsResponse Pages { "GET /v1/alerts", "POST /v1/alerts/list" }
    AlertExecutionListResponse Pages { "GET /v1/alerts/executions", "GET /v1/alerts/{alert_identifier}/executions" }
    ListAnnotationsResponse Whole { "POST /v1/annotations/list" }
    ListBatchesResponse Pages { "POST /v1/buckets/{bucket_identifier}/batches/list", "POST /v1/batches/list" }
    BenchmarkListResponse Numbers { "GET /v1/retrievers/benchmarks" }
    ListBucketsResponse Pages { "GET /v1/buckets", "POST /v1/buckets/list" }
    ListClustersResponse Pages { "GET /v1/clusters", "POST /v1/clusters/list" }
    ListClusterExecutionsResponse Pages { "POST /v1/clusters/{cluster_id}/executions/list" }
    ListClusterTriggersResponse Window { "POST /v1/clusters/triggers/list" }
    ListCollectionsResponse Pages { "GET /v1/collections", "POST /v1/collections/list" }
    ListDocumentsResponse Documents { "GET /v1/collections/{collection_identifier}/documents", "POST /v1/collections/{collection_identifier}/documents/list", "POST /v1/documents/list" }
    DatasetListResponse Numbers { "GET /v1/retrievers/evaluations/datasets" }
    EvaluationListResponse Numbers { "GET /v1/retrievers/{retriever_id}/evaluations" }
    ListEventsResponse Feed { "GET /v1/events" }
    ListInteractionsResponse Pages { "POST /v1/retrievers/interactions/list" }
    ListObjectsResponse Pages { "GET /v1/buckets/{bucket_identifier}/objects", "POST /v1/buckets/{bucket_identifier}/objects/list" }
    PublishedRetrieverListResponse Window { "GET /v1/retrievers/published" }
    ListRetrieversResponse Pages { "GET /v1/retrievers", "POST /v1/retrievers/list" }
    RetrieverAPIKeyListResponse Whole { "GET /v1/retrievers/{retriever_id}/api-keys" }
    ListExecutionsResponse Runs { "POST /v1/retrievers/{retriever_id}/executions/list" }
    ListAdhocExecutionsResponse Runs { "POST /v1/retrievers/executions/list" }
    SyncListResponse Pages { "POST /v1/buckets/{bucket_id}/syncs/list" }
    SyncJobListResponse Pages { "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs" }
    ListTasksResponse Pages { "GET /v1/tasks", "POST /v1/tasks/list" }
    ListTaxonomiesResponse Pages { "GET /v1/taxonomies", "POST /v1/taxonomies/list", "GET /v1/taxonomies/{taxonomy_id}/versions" }
    ListTriggersResponse Window { "GET /v1/triggers", "POST /v1/triggers/list" }
    ListUploadsResponse Pages { "POST /v1/buckets/{bucket_identifier}/uploads/list" }
}

fn value(page: &impl Serialize) -> Value {
    serde_json::to_value(page).unwrap_or_default()
}

/// What a list answers that refused the header; every other answer stays.
pub fn answer(operation: &str, uri: &Uri, response: Response) -> Response {
    let Some(Unresolved(sent)) = response.extensions().get::<Unresolved>() else {
        return response;
    };
    let Some((form, Value::Object(empty))) = empty(operation) else {
        return response;
    };
    match page(form, empty, uri, sent) {
        Ok(page) => ([HEADER], Json(page)).into_response(),
        Err(error) => error.into_response(),
    }
}

/// The empty page of what the query asks for.
fn page(form: Form, mut page: Object, uri: &Uri, sent: &str) -> Result<Object> {
    let Query(query) = Query::<ListQuery>::try_from_uri(uri)
        .map_err(|rejection| list::query_violation(&rejection.body_text()))?;
    if matches!(form, Form::Feed) {
        let sent = query.cursor.filter(|cursor| !cursor.is_empty());
        page.extend(sent.map(|cursor| ("next_cursor".to_owned(), Value::String(cursor))));
    } else {
        // A cursor leads nowhere in a list without anything.
        let query = ListQuery {
            cursor: None,
            next_cursor: None,
            after: None,
            page_size: query
                .page_size
                .or(matches!(form, Form::Numbers).then_some(20)),
            ..query
        };
        place(form, &mut page, &ListParams::new(query, &json!({}))?);
    }
    let entry = entry(sent);
    let warning = match form {
        Form::Documents => Value::String(format!(
            "the namespace {sent} is unresolved: {}",
            entry.next_step
        )),
        _ => value(&entry),
    };
    page.insert("warnings".into(), json!([warning]));
    Ok(page)
}

/// Writes which part of the list this is.
fn place(form: Form, page: &mut Object, params: &ListParams) {
    let mut set = |name: &str, value: Value| {
        page.insert(name.to_owned(), value);
    };
    match form {
        Form::Pages => set("pagination", value(&params.pagination(0, false, Some(0)))),
        Form::Documents => {
            set("pagination", value(&params.pagination(0, false, Some(0))));
            set("results", json!([]));
        }
        Form::Runs => {
            let pagination = PaginationMetadata {
                limit: params.limit,
                offset: params.offset,
                ..Default::default()
            };
            set("pagination", value(&pagination));
        }
        Form::Window => {
            set("limit", params.limit.into());
            set("offset", params.offset.into());
        }
        Form::Numbers => {
            set("page", (params.offset / params.limit + 1).into());
            set("page_size", params.limit.into());
        }
        Form::Feed | Form::Whole => {}
    }
}

fn entry(sent: &str) -> DegradedEntry {
    DegradedEntry {
        resource: "namespace".into(),
        id: Some(sent.into()),
        reason: "unresolved".into(),
        next_step: "send the id (ns_…) of a namespace of this organization in X-Namespace; GET /v1/namespaces lists them".into(),
        stage: None,
    }
}
