use axum::extract::State;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use loupe_wire::{ChangeEventResponse, ListEventsResponse, WebhookEventType};
use serde::{Deserialize, Deserializer, de::IntoDeserializer};
use utoipa_axum::router::OpenApiRouter;

use super::{
    own,
    store::{self, EventRow},
};
use crate::{
    app::App,
    auth::{Caller, OptionalScope, Read},
    clock,
    error::{ApiError, Result, Violation},
    json::Json,
    list,
    openapi::routes,
    v1::tasks::name_of,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_events))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// Opaque; omit to start at the oldest event in retention.
    cursor: Option<String>,
    /// The same as `cursor`, which wins.
    next_cursor: Option<String>,
    /// The same as `cursor`, which wins.
    after: Option<String>,
    /// Begins with so many of the newest events that are asked for, 0 to 1000: with 0 the answer has none, and the cursor
    /// behind the newest of all. Not with a cursor.
    tail: Option<i64>,
    namespace_id: Option<String>,
    #[serde(default, deserialize_with = "named")]
    event_type: Option<WebhookEventType>,
    /// 1 to 1000; wins over `page_size`.
    limit: Option<i64>,
    /// 1 to 1000, default 100.
    page_size: Option<i64>,
}

/// A type of event; an empty one is none.
fn named<'de, D: Deserializer<'de>>(
    sent: D,
) -> std::result::Result<Option<WebhookEventType>, D::Error> {
    match String::deserialize(sent)? {
        empty if empty.is_empty() => Ok(None),
        name => WebhookEventType::deserialize(name.into_deserializer()).map(Some),
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for EventsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Change feed: what changed, in order, resumable.
#[utoipa::path(get, path = "/v1/events", tag = "events", params(EventsQuery), responses((status = 200, body = ListEventsResponse)))]
async fn list_events(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: EventsQuery,
) -> Result<Json<ListEventsResponse>> {
    let limit = limit(&query)?;
    check_namespace(&scope.caller, &query)?;
    let namespace = scope
        .namespace_id
        .or(query.namespace_id)
        .unwrap_or_default();
    let cursor = list::cursor([query.cursor, query.next_cursor, query.after]);
    let kind = query.event_type.map(name_of).unwrap_or_default();
    let (after, cursor) = match tail(query.tail, cursor.as_deref())? {
        None => (cursor.as_deref().map_or(Ok(0), decode)?, cursor),
        Some(tail) => last(&app, &scope.caller.org_id, tail, (&namespace, &kind)).await?,
    };
    let (rows, place, has_more) =
        page(&app, &scope.caller, after, &namespace, &kind, limit).await?;
    // A page at the end of the feed without an event answers the cursor that was sent.
    let next_cursor = if rows.is_empty() && !has_more {
        cursor
    } else {
        Some(encode(place))
    };
    Ok(Json(ListEventsResponse {
        results: rows.into_iter().map(told).collect(),
        next_cursor,
        has_more,
        ..Default::default()
    }))
}

/// With how many of the newest events a reader begins who does not go on from a cursor.
fn tail(sent: Option<i64>, cursor: Option<&str>) -> Result<Option<i64>> {
    match (sent, cursor) {
        (None, _) => Ok(None),
        (Some(tail), Some(_)) => {
            let msg = "send a cursor or tail, not both";
            Err(Violation::query("tail", "value_error", msg, tail.into()).into())
        }
        (Some(tail), None) => list::within("tail", Some(tail), 0, (0, 1000)).map(Some),
    }
}

/// The place behind which so many of the newest events lie, and the end of the feed: where nothing is found, the next look goes on
/// behind what there is now.
async fn last(
    app: &App,
    org_id: &str,
    tail: i64,
    asked: (&str, &str),
) -> Result<(i64, Option<String>)> {
    let end = store::newest(app.db(), org_id).await?;
    let after = match tail {
        0 => end,
        _ => store::before_last(app.db(), org_id, asked, tail).await?,
    };
    Ok((after, Some(encode(end))))
}

fn limit(query: &EventsQuery) -> Result<i64> {
    let page_size = list::within("page_size", query.page_size, 100, (1, 1000))?;
    list::within("limit", query.limit, page_size, (1, 1000))
}

/// Refuses a request whose header and query name different namespaces.
fn check_namespace(caller: &Caller, query: &EventsQuery) -> Result<()> {
    if let (Some(header), Some(asked)) = (&caller.within, &query.namespace_id)
        && **header != **asked
    {
        return Err(ApiError::bad_request(
            "namespace_mismatch",
            "X-Namespace and namespace_id name different namespaces",
        ));
    }
    Ok(())
}

/// A page of the events that the caller may see, the place of its last one, and whether more follow.
async fn page(
    app: &App,
    caller: &Caller,
    after: i64,
    namespace: &str,
    kind: &str,
    limit: i64,
) -> Result<(Vec<EventRow>, i64, bool)> {
    let org_id = &caller.org_id;
    let Some(principal) = caller.principal() else {
        return all(app, org_id, after, namespace, kind, limit).await;
    };
    let wanted = own::Wanted {
        org_id,
        principal,
        after,
        namespace,
        kind,
        limit,
    };
    own::list(app, wanted).await
}

/// A page of all events, the place of its last one, and whether more follow.
async fn all(
    app: &App,
    org_id: &str,
    after: i64,
    namespace: &str,
    kind: &str,
    limit: i64,
) -> Result<(Vec<EventRow>, i64, bool)> {
    let mut rows = store::list(app.db(), org_id, after, namespace, kind, limit + 1).await?;
    let has_more = i64::try_from(rows.len()).unwrap_or(0) > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let place = rows.last().map_or(after, |row| row.seq);
    Ok((rows, place, has_more))
}

/// An event as the interface has it.
pub fn told(mut row: EventRow) -> ChangeEventResponse {
    row.payload.remove(own::READERS);
    ChangeEventResponse {
        seq: row.seq,
        cursor: encode(row.seq),
        namespace_id: row.namespace_id,
        resource_type: row
            .event_type
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned(),
        event_type: row.event_type,
        operation: row.operation,
        payload: row.payload.0,
        trace_id: row.trace_id,
        created_at: clock::time(row.created_at),
    }
}

fn encode(seq: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("e{seq}"))
}

fn decode(cursor: &str) -> Result<i64> {
    let text = URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let seq = text
        .as_deref()
        .and_then(|text| text.strip_prefix('e'))
        .and_then(|text| text.parse().ok());
    seq.ok_or_else(|| list::wrong_cursor(cursor).into())
}
