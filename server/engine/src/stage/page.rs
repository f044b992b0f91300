//! The page of an answer: by number, cursor, scroll or key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use loupe_wire::{Object, RetrieverPagination as Pagination, Value, reading};
use serde_json::json;

use super::RunError;
use super::execution::Execution;
use super::working::{MAX_ROWS, Row, Working, list};

/// One page and the whole it is cut from.
pub(crate) struct Cut {
    pub rows: Vec<Row>,
    pub total: u64,
    pub pagination: Object,
}

/// The size of the page, within the limits of its method.
pub(crate) fn size(
    pagination: &Option<Pagination>,
    limit: Option<i64>,
    default: usize,
) -> Result<usize, RunError> {
    let (asked, most) = match pagination {
        Some(Pagination::Offset(p)) => (Some(p.page_size), 500),
        Some(Pagination::Cursor(p)) => (Some(p.limit), 500),
        Some(Pagination::Scroll(p)) => (Some(p.limit), 1000),
        Some(Pagination::Keyset(p)) => (Some(p.limit), 500),
        None => (None, 500),
    };
    match limit.or(asked) {
        None => Ok(default),
        Some(n) if (1..=most).contains(&n) => Ok(n as usize),
        Some(n) => Err(RunError::Invalid(format!(
            "a page has 1 to {most} rows, not {n}"
        ))),
    }
}

/// Names the search that a cursor belongs to. Made when a cursor is read or given: inputs may be long.
pub(crate) type Fingerprint<'a> = &'a (dyn Fn() -> String + Sync);

/// Cuts the page. A set that no stage has read is listed for this page alone.
pub(crate) async fn cut(
    at: &Execution,
    set: Working,
    size: usize,
    fingerprint: Fingerprint<'_>,
) -> Result<Cut, RunError> {
    let pagination = at
        .run
        .pagination
        .clone()
        .unwrap_or(Pagination::Cursor(Default::default()));
    let offset = match &pagination {
        Pagination::Offset(p) if p.page_number < 1 => {
            return Err(RunError::Invalid("pages are counted from 1".into()));
        }
        Pagination::Offset(p) => (p.page_number as usize - 1).saturating_mul(size),
        Pagination::Cursor(p) => p
            .cursor
            .as_deref()
            .map_or(Ok(0), |c| decode(c, &fingerprint(), at))?,
        Pagination::Scroll(p) => p
            .scroll_id
            .as_deref()
            .map_or(Ok(0), |c| decode(c, &fingerprint(), at))?,
        Pagination::Keyset(_) => 0,
    };
    let by_key = matches!(pagination, Pagination::Keyset(_));
    let reach = at.reach(&[]);
    let (rows, total, offset) = match set {
        Working::Unread { filter, sort } if !by_key => {
            if offset.saturating_add(size) > MAX_ROWS {
                return Err(RunError::Invalid(format!(
                    "a listing goes {MAX_ROWS} documents deep; narrow the filter"
                )));
            }
            let total = at.run.store.count(&reach, filter.as_ref()).await?;
            (
                list(&*at.run.store, &reach, filter, sort, offset, size).await?,
                total,
                offset,
            )
        }
        set => {
            let rows = set.rows(&*at.run.store, &reach).await?;
            let total = rows.len() as u64;
            let offset = match &pagination {
                Pagination::Keyset(p) => after_key(&rows, p.after.as_ref())?,
                _ => offset,
            };
            (
                rows.into_iter().skip(offset).take(size).collect(),
                total,
                offset,
            )
        }
    };
    let told = describe(
        at,
        &pagination,
        &rows,
        Place {
            offset,
            size,
            total,
        },
        fingerprint,
    );
    Ok(Cut {
        rows,
        total,
        pagination: told,
    })
}

struct Place {
    offset: usize,
    size: usize,
    total: u64,
}

fn describe(
    at: &Execution,
    pagination: &Pagination,
    rows: &[Row],
    place: Place,
    fingerprint: Fingerprint<'_>,
) -> Object {
    let next = place.offset + rows.len();
    let has_next = !rows.is_empty() && (next as u64) < place.total;
    let token = |expires: Option<i64>| has_next.then(|| encode(next, &fingerprint(), expires));
    let mut told = Object::new();
    let mut set = |name: &str, value: Value| told.insert(name.to_owned(), value);
    set("total", json!(place.total));
    set("has_next", json!(has_next));
    match pagination {
        Pagination::Offset(p) => {
            set("method", json!("offset"));
            set("page", json!(p.page_number));
            set("page_number", json!(p.page_number));
            set("page_size", json!(place.size));
            set(
                "total_pages",
                json!(place.total.div_ceil(place.size as u64)),
            );
            set("has_previous", json!(p.page_number > 1));
        }
        Pagination::Cursor(_) => {
            set("method", json!("cursor"));
            set("limit", json!(place.size));
            set("next_cursor", json!(token(None)));
        }
        Pagination::Scroll(p) => {
            let expires = at.run.now + TimeDelta::seconds(p.scroll_ttl.clamp(60, 3600));
            set("method", json!("scroll"));
            set("limit", json!(place.size));
            set("scroll_id", json!(token(Some(expires.timestamp()))));
            set("scroll_ttl", json!(p.scroll_ttl));
        }
        Pagination::Keyset(_) => {
            let last = rows.last().filter(|_| has_next);
            set("method", json!("keyset"));
            set("limit", json!(place.size));
            set(
                "after",
                json!(last.map(|row| json!({"document_id": row.id(), "score": row.score()}))),
            );
        }
    }
    told
}

fn encode(offset: usize, fingerprint: &str, expires: Option<i64>) -> String {
    URL_SAFE_NO_PAD.encode(json!([offset, fingerprint, expires]).to_string())
}

fn decode(token: &str, fingerprint: &str, at: &Execution) -> Result<usize, RunError> {
    let parts: Option<(usize, String, Option<i64>)> = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| reading::from_slice(&bytes).ok());
    match parts {
        None => Err(RunError::Cursor(
            "the cursor cannot be read; start again without one".into(),
        )),
        Some((_, of, _)) if of != fingerprint => Err(RunError::Cursor(
            "the cursor belongs to a search with other inputs or filters; start again without one"
                .into(),
        )),
        Some((_, _, Some(expires))) if expires < at.run.now.timestamp() => Err(RunError::Cursor(
            "the scroll has expired; start again without a scroll_id".into(),
        )),
        Some((offset, _, _)) => Ok(offset),
    }
}

/// Where the rows behind the key begin: behind its document, or where that is gone behind its score.
fn after_key(rows: &[Row], key: Option<&Object>) -> Result<usize, RunError> {
    let Some(key) = key.filter(|k| !k.is_empty()) else {
        return Ok(0);
    };
    let id = key.get("document_id").and_then(Value::as_str);
    let score = key.get("score").and_then(Value::as_f64);
    if let Some(at) = id.and_then(|id| rows.iter().position(|row| row.id() == id)) {
        return Ok(at + 1);
    }
    match score {
        Some(score) => Ok(rows
            .iter()
            .position(|row| row.score().is_some_and(|s| s < score))
            .unwrap_or(rows.len())),
        None => Err(RunError::Cursor(
            "`after` is {document_id, score} of the last row of the page before".into(),
        )),
    }
}
