//! Listing documents: filtered, sorted, searched, page by page.

use loupe_engine::{
    filter::Filter,
    store::{Direction, Document, ListQuery, Ranking, Reach, SearchQuery, Sort, WithVectors},
};
use loupe_wire::PaginationResponse;

use crate::{
    app::App,
    error::{Result, Violation},
};

/// A list request, checked.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub filter: Option<Filter>,
    pub sort: Option<Sort>,
    pub search: Option<String>,
    pub limit: usize,
    pub offset: usize,
    pub cursor: Option<String>,
    pub include_total: bool,
    pub vectors: WithVectors,
}

/// One page of documents.
pub struct Page {
    pub documents: Vec<Document>,
    pub pagination: PaginationResponse,
}

/// `field`, `-field`, `field:desc` or `field:asc`.
pub fn parse_sort(text: &str) -> Sort {
    let (field, descending) = match (text.strip_prefix('-'), text.rsplit_once(':')) {
        (Some(field), _) => (field, true),
        (None, Some((field, "desc"))) => (field, true),
        (None, Some((field, "asc"))) => (field, false),
        _ => (text, false),
    };
    Sort {
        field: field.into(),
        direction: if descending {
            Direction::Descending
        } else {
            Direction::Ascending
        },
    }
}

/// Reads one page. A search ranks by keywords; otherwise the order is the sort's, or by id.
///
/// # Errors
/// A window beyond 10,000 documents, a cursor of another list.
pub async fn list(app: &App, reach: &Reach, listing: Listing) -> Result<Page> {
    if listing.offset + listing.limit > 10_000 + listing.limit && listing.cursor.is_none() {
        let msg = "an offset reaches at most 10,000 documents: use the cursor";
        return Err(
            Violation::query("offset", "less_than_equal", msg, listing.offset.into()).into(),
        );
    }
    let (limit, offset) = (listing.limit, listing.offset);
    let total = if listing.include_total && listing.search.is_none() {
        Some(app.store().count(reach, listing.filter.as_ref()).await?)
    } else {
        None
    };
    let (documents, next) = match &listing.search {
        Some(text) => search(app, reach, text, &listing).await?,
        None => {
            let query = ListQuery {
                filter: listing.filter,
                sort: listing.sort,
                limit,
                offset,
                cursor: listing.cursor,
                vectors: listing.vectors,
            };
            let page = app.store().list(reach, query).await?;
            (page.documents, page.next)
        }
    };
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let total = total.and_then(|total| i64::try_from(total).ok());
    let pagination = PaginationResponse {
        total,
        page: Some(number(offset / limit.max(1) + 1)),
        page_size: Some(number(limit)),
        total_pages: total.map(|total| (total + number(limit) - 1) / number(limit)),
        next_page: next
            .as_ref()
            .map(|_| format!("?limit={limit}&offset={}", offset + documents.len())),
        previous_page: (offset > 0)
            .then(|| format!("?limit={limit}&offset={}", offset.saturating_sub(limit))),
        next_cursor: next,
    };
    Ok(Page {
        documents,
        pagination,
    })
}

async fn search(
    app: &App,
    reach: &Reach,
    text: &str,
    listing: &Listing,
) -> Result<(Vec<Document>, Option<String>)> {
    let query = SearchQuery {
        ranking: Ranking::Keywords {
            text: text.to_owned(),
        },
        filter: listing.filter.clone(),
        limit: listing.offset + listing.limit,
        min_score: None,
        vectors: listing.vectors,
    };
    let hits = app.store().search(reach, query).await?;
    Ok((
        hits.into_iter()
            .skip(listing.offset)
            .map(|hit| hit.document)
            .collect(),
        None,
    ))
}
