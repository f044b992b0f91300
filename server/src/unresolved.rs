//! A namespace header that names no namespace of the caller's. On lists that is no error: an empty page with a header and a
//! warning, the same whether the namespace is another organization's or nobody's. Everything else answers as for an id that
//! does not exist. The list is read all the same, in a namespace that nobody has: what is wrong with its query or its body is
//! told as ever. No handler knows of it.

use std::sync::{Arc, OnceLock};

use axum::{
    body::{Body, to_bytes},
    extract::{Query, Request},
    http::{HeaderName, HeaderValue, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use loupe_wire::{
    AlertExecutionListResponse, BenchmarkListResponse, DatasetListResponse, DegradedEntry,
    EvaluationListResponse, ListAdhocExecutionsResponse, ListAlertsResponse,
    ListAnnotationsResponse, ListBatchesResponse, ListBucketsResponse,
    ListClusterExecutionsResponse, ListClusterTriggersResponse, ListClustersResponse,
    ListCollectionsResponse, ListDocumentsResponse, ListEventsResponse, ListExecutionsResponse,
    ListInteractionsResponse, ListNamespacesResponse, ListObjectsResponse, ListRetrieversResponse,
    ListSnapshotsResponse, ListTasksResponse, ListTaxonomiesResponse, ListTriggersResponse,
    ListUploadsResponse, Object, PaginationMetadata, PublishedRetrieverListResponse,
    RetrieverAPIKeyListResponse, SyncJobListResponse, SyncListResponse, Value,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    error::{ApiError, Result},
    json::Json,
    list::{self, ListParams, ListQuery},
};

/// A namespace that nobody has: neither an id nor a name has such a character.
const NOWHERE: &str = "ns_?";

/// Whether a list is read where nobody has anything.
pub fn is_nowhere(namespace_id: &str) -> bool {
    namespace_id == NOWHERE
}

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
    /// The same; its results may be left out for groups.
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
        fn form(operation: &str) -> Option<Form> {
            match operation {
                $($($operation)|+ => Some(Form::$form),)+
                _ => None,
            }
        }

        /// The page of a list without anything on it, as its own type writes it.
        fn empty(operation: &str) -> Option<Value> {
            match operation {
                $($($operation)|+ => Some(value(&$page::default())),)+
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
    ListNamespacesResponse Pages { "GET /v1/namespaces", "POST /v1/namespaces/list" }
    ListObjectsResponse Pages { "GET /v1/buckets/{bucket_identifier}/objects", "POST /v1/buckets/{bucket_identifier}/objects/list" }
    PublishedRetrieverListResponse Window { "GET /v1/retrievers/published" }
    ListRetrieversResponse Pages { "GET /v1/retrievers", "POST /v1/retrievers/list" }
    RetrieverAPIKeyListResponse Whole { "GET /v1/retrievers/{retriever_id}/api-keys" }
    ListExecutionsResponse Runs { "POST /v1/retrievers/{retriever_id}/executions/list" }
    ListAdhocExecutionsResponse Runs { "POST /v1/retrievers/executions/list" }
    SyncListResponse Pages { "POST /v1/buckets/{bucket_id}/syncs/list" }
    SyncJobListResponse Pages { "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs" }
    ListSnapshotsResponse Whole { "POST /v1/namespaces/{namespace_identifier}/snapshots/list" }
    ListTasksResponse Pages { "GET /v1/tasks", "POST /v1/tasks/list" }
    ListTaxonomiesResponse Pages { "GET /v1/taxonomies", "POST /v1/taxonomies/list", "GET /v1/taxonomies/{taxonomy_id}/versions" }
    ListTriggersResponse Window { "GET /v1/triggers", "POST /v1/triggers/list" }
    ListUploadsResponse Pages { "POST /v1/buckets/{bucket_identifier}/uploads/list" }
}

fn value(page: &impl Serialize) -> Value {
    serde_json::to_value(page).unwrap_or_default()
}

/// Rides in a request for a list and takes the header that does not resolve.
#[derive(Debug, Clone)]
pub struct Nowhere {
    operation: &'static str,
    sent: Arc<OnceLock<String>>,
}

/// Whether an operation is a list of a namespace, which an unresolved header leaves empty.
pub fn is_list(operation: &str) -> bool {
    form(operation).is_some()
}

impl Nowhere {
    /// For an operation that is a list of a namespace; nothing for any other.
    pub fn of(operation: &'static str) -> Option<Self> {
        form(operation)?;
        let sent = Arc::default();
        Some(Self { operation, sent })
    }

    /// Notes the header that was sent; answers where to read instead.
    pub fn instead_of(&self, sent: &str) -> String {
        self.sent.get_or_init(|| sent.to_owned());
        NOWHERE.to_owned()
    }
}

/// Goes with such a page: a repetition of the request is asked anew.
#[derive(Debug, Clone, Copy)]
pub struct Unresolved;

/// Runs a request; the answer of a list that was read nowhere is marked.
pub async fn run(request: Request, next: Next) -> Response {
    let Some(nowhere) = request.extensions().get::<Nowhere>().cloned() else {
        return next.run(request).await;
    };
    let uri = request.uri().clone();
    let response = next.run(request).await;
    match nowhere.sent.get() {
        Some(sent) => mark(nowhere.operation, sent, &uri, response).await,
        None => response,
    }
}

/// Says of an empty page why it is empty. What the list is a part of is nowhere either: that is an empty page, too, and the
/// part of the list that the query asks for; a limit or an offset in the body is not read again. What is wrong with the
/// request is told as it is.
async fn mark(operation: &str, sent: &str, uri: &Uri, response: Response) -> Response {
    let Some(form) = form(operation) else {
        return response;
    };
    let mut response = match response.status() {
        StatusCode::NOT_FOUND => match page(operation, form, uri) {
            Ok(mut page) => {
                warn(&mut page, sent);
                Json(page).into_response()
            }
            Err(error) => return error.into_response(),
        },
        status if status.is_success() => match warned(sent, response).await {
            Ok(response) => response,
            Err(error) => return error.into_response(),
        },
        _ => return response,
    };
    let (name, value) = HEADER;
    response.headers_mut().insert(name, value);
    response.extensions_mut().insert(Unresolved);
    response
}

/// The answer of a list with the warning in it. That to a HEAD has no body.
async fn warned(sent: &str, response: Response) -> Result<Response> {
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX)
        .await
        .map_err(ApiError::internal)?;
    let Ok(mut page) = serde_json::from_slice::<Object>(&bytes) else {
        return Ok(Response::from_parts(parts, Body::from(bytes)));
    };
    warn(&mut page, sent);
    parts.headers.remove(header::CONTENT_LENGTH);
    let text = serde_json::to_vec(&page).map_err(ApiError::internal)?;
    Ok(Response::from_parts(parts, Body::from(text)))
}

fn warn(page: &mut Object, sent: &str) {
    let warning = value(&entry(sent));
    match page.get_mut("warnings") {
        Some(Value::Array(warnings)) => warnings.push(warning),
        _ => {
            page.insert("warnings".into(), json!([warning]));
        }
    }
}

/// The empty page of what the query asks for.
fn page(operation: &str, form: Form, uri: &Uri) -> Result<Object> {
    let Some(Value::Object(mut page)) = empty(operation) else {
        return Ok(Object::new());
    };
    let Query(query) = Query::<ListQuery>::try_from_uri(uri)
        .map_err(|rejection| list::query_violation(&rejection.body_text()))?;
    if matches!(form, Form::Feed) {
        let sent = list::cursor([query.cursor, query.next_cursor, query.after]);
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
