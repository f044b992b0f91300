//! Listing: the query and body that every list takes, and the page it answers.

mod place;
mod sieve;
mod walk;

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
};
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use loupe_engine::filter::Filter;
use loupe_wire::{PaginationResponse, Value, reading};
use serde::{Deserialize, Serialize};

pub use place::{Mark, Window};
pub use sieve::Sieve;
pub use walk::Walk;

use place::Place;

use crate::error::{ApiError, Result, Violation};

const DEFAULT_LIMIT: i64 = 10;
const MAX_LIMIT: i64 = 1000;
const MAX_OFFSET: i64 = 10_000;

/// The pagination query that `GET /x` and `POST /x/list` share.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Page size, 1 to 1000; wins over `page_size`.
    pub limit: Option<i64>,
    /// Page size where `limit` is left out, 1 to 1000, default 10.
    pub page_size: Option<i64>,
    /// 0 to 10000; wins over `page`.
    pub offset: Option<i64>,
    /// From 1, default 1.
    pub page: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    pub next_cursor: Option<String>,
    pub after: Option<String>,
    /// Totals are counted only when asked for.
    pub include_total: Option<bool>,
}

impl<S: Send + Sync> FromRequestParts<S> for ListQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        query(parts).await
    }
}

/// Query parameters of any type, with the 422 list on a fault.
pub async fn query<T: serde::de::DeserializeOwned + 'static>(parts: &mut Parts) -> Result<T> {
    match Query::<T>::try_from_uri(&parts.uri) {
        Ok(Query(query)) => Ok(query),
        Err(rejection) => Err(query_violation(&rejection.body_text()).into()),
    }
}

/// A query, read as every other: what cannot be read is in the 422 list.
pub struct Params<T>(pub T);

impl<T: serde::de::DeserializeOwned + 'static, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        query(parts).await.map(Self)
    }
}

/// A number of a query within its bounds.
///
/// # Errors
/// The 422 list when it lies outside.
pub fn within<T>(name: &str, sent: Option<T>, default: T, (least, most): (T, T)) -> Result<T>
where
    T: PartialOrd + std::fmt::Display + Copy + Into<Value>,
{
    let number = sent.unwrap_or(default);
    if least <= number && number <= most {
        return Ok(number);
    }
    let message = format!("{name} lies between {least} and {most}");
    Err(Violation::query(name, "range", message, number.into()).into())
}

/// A moment in a query: RFC 3339, the same without a zone, or a day; both are of UTC.
///
/// # Errors
/// The 422 list when it is neither.
pub fn moment(name: &str, text: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // A plus sign in a query reads as a blank.
    let rfc = DateTime::parse_from_rfc3339(&text.replace(' ', "+")).map(|at| at.to_utc());
    let bare = || text.parse::<NaiveDateTime>().ok();
    let day = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    match rfc
        .ok()
        .or_else(|| bare().or_else(day).map(|at| at.and_utc()))
    {
        Some(at) => Ok(Some(at)),
        None => Err(Violation::query(
            name,
            "datetime_parsing",
            "this is no moment such as 2026-01-31T12:00:00Z",
            text.into(),
        )
        .into()),
    }
}

/// The fault of a query that could not be read.
pub fn query_violation(text: &str) -> Violation {
    // The rejection reads "Failed to deserialize query string: limit: invalid digit found in string".
    let text = text
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(text);
    let (name, msg) = text.split_once(": ").unwrap_or(("", text));
    // What is missing has no place in the query, and is named in the words alone.
    let missing = msg.strip_prefix("missing field `");
    let (name, kind) = match missing.and_then(|rest| rest.strip_suffix('`')) {
        Some(missing) => (missing, "missing"),
        None if name.contains(' ') => ("", "parsing"),
        None => (name, "parsing"),
    };
    Violation::query(name, kind, msg, Value::Null)
}

/// What the body of a list adds; each resource's request type is read into it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ListBody {
    pub limit: Option<i64>,
    pub page_size: Option<i64>,
    pub offset: Option<i64>,
    pub page: Option<i64>,
    pub search: Option<String>,
    pub filters: Option<Value>,
    pub sort: Option<Value>,
    pub sorts: Option<Vec<Value>>,
    pub case_sensitive: Option<bool>,
}

/// One member to order by.
#[derive(Debug, Clone)]
pub struct SortKey {
    pub field: String,
    pub descending: bool,
}

/// A list request, checked.
#[derive(Debug, Clone, Default)]
pub struct ListParams {
    pub limit: i64,
    pub offset: i64,
    pub include_total: bool,
    /// The row that the page goes on behind, where its cursor says so: with it, rows that came or went meanwhile move no page.
    pub behind: Option<Mark>,
    pub search: Option<String>,
    pub filter: Option<Filter>,
    pub sorts: Vec<SortKey>,
}

impl ListParams {
    /// Body wins over query, `limit` over `page_size`, `offset` over `page`.
    ///
    /// # Errors
    /// A bound broken, a filter or sort that cannot be read.
    pub fn new(query: ListQuery, body: &impl Serialize) -> Result<Self> {
        let body: ListBody = reading::cast(body).unwrap_or_default();
        let page_size = body.page_size.or(query.page_size).unwrap_or(DEFAULT_LIMIT);
        bounded("page_size", page_size, 1, MAX_LIMIT)?;
        let limit = body.limit.or(query.limit).unwrap_or(page_size);
        bounded("limit", limit, 1, MAX_LIMIT)?;
        let page = body.page.or(query.page);
        if let Some(page) = page {
            bounded("page", page, 1, i64::MAX)?;
        }
        let cursor = cursor([query.cursor, query.next_cursor, query.after]);
        let by_page = page.map(|page| (page - 1).saturating_mul(limit));
        let by_cursor = cursor.as_deref().map(Place::read).transpose()?;
        let mut by_number = [body.offset.or(query.offset), by_page]
            .into_iter()
            .flatten();
        // The beginning is where a list begins anyway: beside a cursor it says nothing.
        let place = match by_number.find(|offset| *offset != 0) {
            Some(offset) => {
                bounded("offset", offset, 0, MAX_OFFSET)?;
                Place::at(offset)
            }
            None => by_cursor.unwrap_or_default(),
        };
        let filter = match &body.filters {
            None | Some(Value::Null) => None,
            Some(value) if value.as_object().is_some_and(serde_json::Map::is_empty) => None,
            Some(value) => Some(parse_filter(value, "filters")?),
        };
        let mut sorts = Vec::new();
        for (index, sort) in body
            .sort
            .iter()
            .chain(body.sorts.iter().flatten())
            .enumerate()
        {
            if sort.is_null() {
                continue;
            }
            sorts.push(sort_key(sort).ok_or_else(|| {
                let msg = "a sort is {field, direction: asc | desc}";
                Violation::body(&["sorts", &index.to_string()], "sort", msg, sort.clone())
            })?);
        }
        let search = body.search.filter(|search| !search.trim().is_empty());
        let include_total = query.include_total.unwrap_or(false);
        Ok(Self {
            limit,
            offset: place.offset,
            include_total,
            behind: place.behind,
            search,
            filter,
            sorts,
        })
    }

    /// Nothing but a window is asked for.
    pub fn is_plain(&self) -> bool {
        self.search.is_none() && self.filter.is_none() && self.sorts.is_empty()
    }

    /// The pagination block of a page of `returned` rows.
    pub fn pagination(
        &self,
        returned: usize,
        more: bool,
        total: Option<i64>,
    ) -> PaginationResponse {
        let page = self.offset / self.limit + 1;
        let next = self.behind_rows(returned);
        PaginationResponse {
            total,
            page: Some(page),
            page_size: Some(self.limit),
            total_pages: total.map(|total| (total + self.limit - 1) / self.limit),
            next_page: more.then(|| self.page_at(next)).flatten(),
            previous_page: (self.offset > 0)
                .then(|| self.page_at((self.offset - self.limit).max(0)))
                .flatten(),
            next_cursor: more.then(|| Place::at(next).text()),
        }
    }

    /// Rows up to the end of a page of so many.
    fn behind_rows(&self, returned: usize) -> i64 {
        let returned = i64::try_from(returned).unwrap_or(0);
        self.offset.saturating_add(returned)
    }

    /// Where a page is by its number; beyond what numbers reach there is the cursor alone.
    fn page_at(&self, offset: i64) -> Option<String> {
        let limit = self.limit;
        (offset <= MAX_OFFSET).then(|| format!("?limit={limit}&offset={offset}"))
    }

    /// The same of a page whose last row is known: the next one goes on behind it.
    fn pagination_behind(
        &self,
        returned: usize,
        more: bool,
        total: Option<i64>,
        last: Option<Mark>,
    ) -> PaginationResponse {
        let told = self.pagination(returned, more, total);
        let next = Place {
            offset: self.behind_rows(returned),
            behind: last,
        };
        PaginationResponse {
            next_cursor: told.next_cursor.map(|_| next.text()),
            ..told
        }
    }

    /// What a statement is asked for that reads one page, newest first.
    pub fn window(&self) -> Window {
        Window::new(self.limit, self.offset, self.behind.clone())
    }
}

/// Reads the one filter grammar; a fault names its place in the body.
pub fn parse_filter(value: &Value, member: &str) -> Result<Filter> {
    Filter::parse(value).map_err(|error| {
        let mut path = vec![member];
        path.extend(error.loc.iter().map(String::as_str));
        Violation::body(&path, "invalid_filter", error.msg.clone(), value.clone()).into()
    })
}

fn sort_key(sort: &Value) -> Option<SortKey> {
    let field = sort.get("field")?.as_str()?.to_owned();
    let descending = match sort
        .get("direction")
        .and_then(Value::as_str)
        .unwrap_or("asc")
    {
        "asc" => false,
        "desc" => true,
        _ => return None,
    };
    Some(SortKey { field, descending })
}

/// Refuses a number of a list's query that lies outside of its bounds.
///
/// # Errors
/// The 422 list says which bound.
pub fn bounded(name: &str, value: i64, least: i64, most: i64) -> Result<()> {
    if value < least {
        return Err(Violation::query(
            name,
            "greater_than_equal",
            format!("must be at least {least}"),
            value.into(),
        )
        .into());
    }
    if value > most {
        return Err(Violation::query(
            name,
            "less_than_equal",
            format!("must be at most {most}"),
            value.into(),
        )
        .into());
    }
    Ok(())
}

/// The place that a cursor says: rows before it, and the row that it lies behind.
///
/// # Errors
/// The 422 list for one that is none.
pub fn from_cursor(cursor: &str) -> Result<(i64, Option<Mark>)> {
    let Place { offset, behind } = Place::read(cursor)?;
    Ok((offset, behind))
}

/// The cursor of a query among its names, in the order in which one wins over the next.
pub fn cursor(sent: [Option<String>; 3]) -> Option<String> {
    let mut sent = sent.into_iter().flatten();
    sent.find(|cursor| !cursor.is_empty())
}

/// What every list says of a cursor that is none of its own.
pub fn wrong_cursor(sent: &str) -> Violation {
    let message = "this is not a cursor of this list";
    Violation::query("cursor", "cursor_invalid", message, sent.into())
}

/// A page of resources.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub results: Vec<T>,
    /// Only when asked for.
    pub total: Option<i64>,
    pub pagination: PaginationResponse,
}

impl<T: Serialize> Page<T> {
    /// `rows` holds one more than the limit when there is a next page, each with its mark.
    pub fn from_window(mut rows: Vec<(T, Mark)>, params: &ListParams, total: Option<i64>) -> Self {
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().map(|(_, mark)| mark.clone());
        Self {
            pagination: params.pagination_behind(rows.len(), more, total, last),
            results: rows.into_iter().map(|(row, _)| row).collect(),
            total,
        }
    }

    /// Searches, filters, sorts and cuts rows read whole.
    ///
    /// # Errors
    /// A row that cannot be written as JSON; a page of a sorted list that lies too far behind.
    pub fn from_all(rows: Vec<T>, params: &ListParams) -> Result<Self> {
        let mut sieve = Sieve::by_number(params)?;
        rows.into_iter().try_for_each(|row| sieve.add(row, None))?;
        Ok(sieve.page())
    }

    /// The same of rows with their marks, newest first.
    ///
    /// # Errors
    /// As [`Page::from_all`].
    pub fn from_marked(rows: Vec<(T, Mark)>, params: &ListParams) -> Result<Self> {
        let mut sieve = Sieve::new(params)?;
        let before = match params.behind.as_ref().filter(|_| params.sorts.is_empty()) {
            Some(behind) => place::passed(&rows, behind),
            None => 0,
        };
        for (place, (row, mark)) in rows.into_iter().enumerate() {
            match place < before {
                true => sieve.count(&row)?,
                false => sieve.add(row, Some(mark))?,
            }
        }
        Ok(sieve.page())
    }

    /// `total_count` is a required number of most lists; without `include_total` it is what is known to be there.
    pub fn total_count(&self, params: &ListParams) -> i64 {
        self.total
            .unwrap_or_else(|| params.behind_rows(self.results.len()))
    }
}
