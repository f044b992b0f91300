//! The page of an answer: by number, cursor, scroll or key.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use loupe_wire::{Object, RetrieverPagination as Pagination, Value, reading};
use serde_json::json;

use super::RunError;
use super::execution::Execution;
use super::working::{LIST_PAGE, MAX_ROWS, Row, Working, list};
use crate::store::{ListQuery, Reach, StoreError, WithVectors};

/// Where the key of a page keeps the number of its last row, of rows that stages have read.
const ROW: &str = "row";

/// Where the key of a page keeps the store's own word for its place, which holds what the documents are sorted by.
pub const POSITION: &str = "position";

/// One page and the whole it is cut from.
#[derive(Default)]
pub(crate) struct Cut {
    pub rows: Vec<Row>,
    pub total: u64,
    pub pagination: Object,
    /// What the page before ended with is gone, and nothing else says where this one begins.
    pub moved: bool,
}

/// Where a page begins.
#[derive(Default)]
struct Start {
    /// The number of its first row, where there is no key.
    number: usize,
    /// The last row of the page before.
    key: Option<Object>,
    /// What nobody has read is listed from the key on, not by number.
    by_key: bool,
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

/// What the page is cut to, and what tells of the next one.
struct Found {
    rows: Vec<Row>,
    total: u64,
    /// The number of the row behind the page.
    end: usize,
    has_next: bool,
    /// Where the store goes on, where it is the store that knows.
    position: Option<String>,
}

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
    let start = start(at, &pagination, size, fingerprint)?;
    let mut moved = false;
    let found = match set {
        Working::Unread { filter, sort } if start.by_key => {
            let listing = ListQuery {
                filter,
                sort,
                limit: size,
                ..Default::default()
            };
            behind(at, listing, start.key.as_ref()).await?
        }
        Working::Unread { filter, sort } => {
            let start = start.number;
            check_depth(start, size)?;
            let reach = at.reach(&[]);
            let total = at.run.store.count(&reach, filter.as_ref()).await?;
            let rows = list(&*at.run.store, &reach, filter, sort, start, size).await?;
            Found::numbered(rows, start, total)
        }
        Working::Rows(rows) => {
            let total = rows.len() as u64;
            let number = match start.key.as_ref().filter(|key| !key.is_empty()) {
                Some(key) => after_key(&rows, key, &mut moved)?,
                None => start.number,
            };
            let rows = rows.into_iter().skip(number).take(size).collect();
            Found::numbered(rows, number, total)
        }
    };
    let told = describe(at, &pagination, &found, size, fingerprint);
    let mut rows = found.rows;
    if at.run.return_vectors {
        add_vectors(at, &mut rows).await?;
    }
    Ok(Cut {
        rows,
        total: found.total,
        pagination: told,
        moved,
    })
}

/// Gives documents their vectors that no search has read.
async fn add_vectors(at: &Execution, rows: &mut [Row]) -> Result<(), RunError> {
    let is_bare = |row: &Row| row.at("vectors").is_none() && !row.id().is_empty();
    let mut ids = Vec::with_capacity(rows.len());
    for row in &*rows {
        if is_bare(row) {
            ids.push(row.id().to_owned());
        }
    }
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        return Ok(());
    }
    let all = at.run.collections.iter().chain(&at.run.references);
    let all: Vec<_> = all.cloned().collect();
    let reach = at.reach_of(&all);
    let found = at.run.store.get(&reach, &ids, WithVectors::Yes).await?;
    let vectors: HashMap<String, Value> = found
        .into_iter()
        .filter(|one| !one.vectors.is_empty())
        .map(|one| (one.document_id, json!(one.vectors)))
        .collect();
    for row in rows {
        if let Some(vectors) = vectors.get(row.id()).filter(|_| is_bare(row)) {
            row.set("vectors", vectors.clone());
        }
    }
    Ok(())
}

/// Where the page begins, as the request says it.
fn start(
    at: &Execution,
    pagination: &Pagination,
    size: usize,
    fingerprint: Fingerprint<'_>,
) -> Result<Start, RunError> {
    let of = |token: Option<&str>| {
        let place = token.map(|token| decode(token, &fingerprint(), at));
        let (number, key) = place.transpose()?.unwrap_or_default();
        let is_told = |key: &Object| key.contains_key(POSITION);
        let goes_on = number == 0 || key.as_ref().is_some_and(is_told);
        Ok(Start {
            by_key: is_keyed(at) && size <= LIST_PAGE && goes_on,
            number,
            key,
        })
    };
    match pagination {
        Pagination::Offset(p) if p.page_number < 1 => {
            Err(RunError::Invalid("pages are counted from 1".into()))
        }
        Pagination::Offset(p) => Ok(Start {
            number: (p.page_number as usize - 1).saturating_mul(size),
            ..Start::default()
        }),
        Pagination::Cursor(p) => of(p.cursor.as_deref()),
        Pagination::Scroll(p) => of(p.scroll_id.as_deref()),
        Pagination::Keyset(p) => Ok(Start {
            key: p.after.clone(),
            by_key: true,
            ..Start::default()
        }),
    }
}

/// Whether tokens hold keys. A key tells what documents are sorted and ranked by, and asks for what comes behind any of it: whoever is
/// shown a part of the documents gets numbers.
fn is_keyed(at: &Execution) -> bool {
    at.run.shown.is_none()
}

fn check_depth(start: usize, size: usize) -> Result<(), RunError> {
    if start.saturating_add(size) <= MAX_ROWS {
        return Ok(());
    }
    Err(RunError::Invalid(format!(
        "a listing goes {MAX_ROWS} documents deep; narrow the filter"
    )))
}

impl Found {
    /// A page whose place in the whole is known.
    fn numbered(rows: Vec<Row>, start: usize, total: u64) -> Self {
        let end = start + rows.len();
        Self {
            has_next: !rows.is_empty() && (end as u64) < total,
            rows,
            total,
            end,
            position: None,
        }
    }
}

/// The page behind a key of a set that nobody has read. The store goes on where the key says, however deep that is, and reads
/// the page alone.
async fn behind(
    at: &Execution,
    listing: ListQuery,
    key: Option<&Object>,
) -> Result<Found, RunError> {
    let (store, reach) = (&*at.run.store, at.reach(&[]));
    let total = store.count(&reach, listing.filter.as_ref()).await?;
    let key = key.filter(|key| !key.is_empty());
    let cursor = key.and_then(|key| key.get(POSITION)?.as_str());
    let offset = match (key, cursor) {
        (Some(key), None) => {
            let place = place_of(at, &reach, &listing, key).await?;
            check_depth(place, listing.limit)?;
            place
        }
        _ => 0,
    };
    let query = ListQuery {
        offset,
        cursor: cursor.map(str::to_owned),
        ..listing
    };
    let page = store.list(&reach, query).await;
    let page = page.map_err(|error| match error {
        StoreError::Cursor(_) => wrong_key(),
        error => error.into(),
    })?;
    let rows = page.documents.into_iter().map(|d| Row::new(d, None));
    let rows: Vec<Row> = rows.collect();
    Ok(Found {
        has_next: !rows.is_empty() && page.next.is_some(),
        end: offset + rows.len(),
        rows,
        total,
        position: page.next,
    })
}

/// How many documents come up to, and with, the one that a key names without the store's word for its place.
async fn place_of(
    at: &Execution,
    reach: &Reach,
    listing: &ListQuery,
    key: &Object,
) -> Result<usize, RunError> {
    let id = key.get("document_id").and_then(Value::as_str);
    let id = id.ok_or_else(wrong_key)?;
    let (mut before, mut query) = (0, listing.clone());
    query.limit = LIST_PAGE;
    while before < MAX_ROWS {
        let page = at.run.store.list(reach, query.clone()).await?;
        let mut documents = page.documents.iter();
        if let Some(place) = documents.position(|one| one.document_id == id) {
            return Ok(before + place + 1);
        }
        before += page.documents.len();
        query.cursor = page.next.filter(|_| !page.documents.is_empty());
        if query.cursor.is_none() {
            break;
        }
    }
    Err(RunError::Cursor(format!(
        "`after` names no document of the first {MAX_ROWS}: send it as the page before told it"
    )))
}

fn wrong_key() -> RunError {
    RunError::Cursor("`after` is what the page before told: send it as it is".into())
}

fn describe(
    at: &Execution,
    pagination: &Pagination,
    found: &Found,
    size: usize,
    fingerprint: Fingerprint<'_>,
) -> Object {
    let has_next = found.has_next;
    let last = found.rows.last().filter(|_| has_next);
    let key = last.map(|row| key(row, found));
    let token = |expires: Option<i64>| {
        let key = key.as_ref().filter(|_| is_keyed(at));
        has_next.then(|| encode(found.end, &fingerprint(), expires, key))
    };
    let mut told = Object::new();
    let mut set = |name: &str, value: Value| told.insert(name.to_owned(), value);
    set("total", json!(found.total));
    set("has_next", json!(has_next));
    match pagination {
        Pagination::Offset(p) => {
            set("method", json!("offset"));
            set("page", json!(p.page_number));
            set("page_number", json!(p.page_number));
            set("page_size", json!(size));
            set("total_pages", json!(found.total.div_ceil(size as u64)));
            set("has_previous", json!(p.page_number > 1));
        }
        Pagination::Cursor(_) => {
            set("method", json!("cursor"));
            set("limit", json!(size));
            set("next_cursor", json!(token(None)));
        }
        Pagination::Scroll(p) => {
            let expires = at.run.now + TimeDelta::seconds(p.scroll_ttl.clamp(60, 3600));
            set("method", json!("scroll"));
            set("limit", json!(size));
            set("scroll_id", json!(token(Some(expires.timestamp()))));
            set("scroll_ttl", json!(p.scroll_ttl));
        }
        Pagination::Keyset(_) => {
            set("method", json!("keyset"));
            set("limit", json!(size));
            set("after", json!(key));
        }
    }
    told
}

/// What the next page comes behind.
fn key(row: &Row, found: &Found) -> Value {
    let mut key = json!({"document_id": row.id(), "score": row.score()});
    match &found.position {
        Some(position) => key[POSITION] = json!(position),
        // One document may be several rows, and rows of figures are of none.
        None => key[ROW] = json!(found.end),
    }
    key
}

fn encode(number: usize, fingerprint: &str, expires: Option<i64>, key: Option<&Value>) -> String {
    URL_SAFE_NO_PAD.encode(json!([number, fingerprint, expires, key]).to_string())
}

/// What a token holds: the number of the first row, the search it belongs to, when it expires, and the last row of the page before.
type Token = (usize, String, Option<i64>, Option<Object>);

fn decode(
    token: &str,
    fingerprint: &str,
    at: &Execution,
) -> Result<(usize, Option<Object>), RunError> {
    let parts: Option<Token> = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| reading::from_slice(&bytes).ok());
    match parts {
        None => Err(RunError::Cursor(
            "the cursor cannot be read; start again without one".into(),
        )),
        Some((_, of, ..)) if of != fingerprint => Err(RunError::Cursor(
            "the cursor belongs to a search with other inputs or filters; start again without one"
                .into(),
        )),
        Some((_, _, Some(expires), _)) if expires < at.run.now.timestamp() => Err(
            RunError::Cursor("the scroll has expired; start again without a scroll_id".into()),
        ),
        Some((number, _, _, key)) => Ok((number, key.filter(|_| is_keyed(at)))),
    }
}

/// Where the rows behind the key begin: behind its document, or where that is gone behind its score, or its number, which says it no
/// longer for sure.
fn after_key(rows: &[Row], key: &Object, moved: &mut bool) -> Result<usize, RunError> {
    let id = key.get("document_id").and_then(Value::as_str);
    let number = key.get(ROW).and_then(Value::as_u64);
    let number = number.and_then(|number| usize::try_from(number).ok());
    if let Some(at) = id.and_then(|id| place_among(rows, id, number)) {
        return Ok(at + 1);
    }
    let score = key.get("score").and_then(Value::as_f64);
    // Equal scores stand in the order of their ids.
    let is_behind = |row: &Row, than: f64| {
        row.score().is_some_and(|score| {
            score < than || (score == than && id.is_some_and(|id| row.id() > id))
        })
    };
    match (score, number) {
        (Some(score), number) if number.is_none() || is_by_score(rows) => Ok(rows
            .iter()
            .position(|row| is_behind(row, score))
            .unwrap_or(rows.len())),
        // The rows behind the one that is gone have moved up by one.
        (_, Some(number)) => {
            *moved = true;
            Ok(number.saturating_sub(1).min(rows.len()))
        }
        (_, None) => Err(RunError::Cursor(
            "`after` is {document_id, score} of the last row of the page before".into(),
        )),
    }
}

/// The row of a document; of several the one that is nearest to where the page before ended.
fn place_among(rows: &[Row], id: &str, number: Option<usize>) -> Option<usize> {
    let mut places = (0..rows.len()).filter(|place| rows[*place].id() == id);
    match number {
        None => places.next(),
        Some(number) => places.min_by_key(|place| (place + 1).abs_diff(number)),
    }
}

/// Whether the best comes first.
fn is_by_score(rows: &[Row]) -> bool {
    rows.windows(2)
        .all(|pair| pair[0].score() >= pair[1].score())
}
