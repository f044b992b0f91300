//! Listing documents: filtered, sorted, searched, page by page.

use loupe_engine::{
    filter::{Condition, Filter, Operator},
    store::{Direction, Document, ListQuery, Ranking, Reach, SearchQuery, Sort, WithVectors},
};
use loupe_wire::{DegradedEntry, ListPartition, PaginationResponse};

use crate::{
    app::App,
    error::{Result, Violation},
};

/// Documents that a query without a cursor reaches.
const MOST: usize = 10_000;

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
    /// What was asked for and cannot be had.
    pub warnings: Vec<DegradedEntry>,
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

/// What a filter says of `batch_id` is said of the batch that wrote the document, unless the document has a member of its own
/// of that name.
pub fn by_batch(filter: Filter) -> Filter {
    let each = |members: Vec<Filter>| -> Vec<Filter> {
        let members = members.into_iter();
        members.map(by_batch).collect()
    };
    match filter {
        Filter::All(members) => Filter::All(each(members)),
        Filter::Any(members) => Filter::Any(each(members)),
        Filter::None(members) => Filter::None(each(members)),
        Filter::Leaf(own) if own.field == "batch_id" => {
            let has_own = Filter::leaf("batch_id", Operator::Exists, true.into());
            let written = Condition {
                field: "_internal.batch_id".into(),
                ..own.clone()
            };
            Filter::Any(vec![
                Filter::All(vec![has_own.clone(), Filter::Leaf(own)]),
                Filter::All(vec![Filter::None(vec![has_own]), Filter::Leaf(written)]),
            ])
        }
        leaf => leaf,
    }
}

/// The documents of one part of several that are read beside each other: parts are ranges of ids, over which documents are
/// spread evenly. Every document is in one of them.
///
/// # Errors
/// 422 for a part that is not among so many.
pub fn of_part(part: &ListPartition) -> Result<Filter> {
    let ListPartition { index, count } = *part;
    if index < 0 || index >= count {
        let msg = "parts are counted from 0: index is less than count";
        return Err(
            Violation::body(&["partition", "index"], "value_error", msg, index.into()).into(),
        );
    }
    let width = u128::MAX / u128::try_from(count).unwrap_or(1).max(1);
    let bound = |part: i64, operator: Operator| {
        let first = width.saturating_mul(u128::try_from(part).unwrap_or(0));
        Filter::leaf("document_id", operator, format!("doc_{first:032x}").into())
    };
    let mut bounds = Vec::new();
    if index > 0 {
        bounds.push(bound(index, Operator::Gte));
    }
    if index + 1 < count {
        bounds.push(bound(index + 1, Operator::Lt));
    }
    Ok(Filter::All(bounds))
}

/// How many documents a page of the window may have: none beyond the first so many.
fn room(offset: usize, limit: usize) -> usize {
    limit.min(MOST.saturating_sub(offset))
}

/// The page that begins at an offset; none behind the window.
fn page_at(offset: usize, limit: usize) -> Option<String> {
    (offset < MOST).then(|| format!("?limit={limit}&offset={offset}"))
}

/// Reads one page. A search ranks by keywords; otherwise the order is the sort's, or by id. By offset a list ends where the
/// window does; by cursor it goes on.
///
/// # Errors
/// A cursor of another list.
pub async fn list(app: &App, reach: &Reach, mut listing: Listing) -> Result<Page> {
    let (limit, offset) = (listing.limit, listing.offset);
    // What words find is ranked: it has no cursor.
    let by_offset = listing.cursor.is_none() || listing.search.is_some();
    if by_offset {
        listing.limit = room(offset, limit);
    }
    let total = if listing.include_total && listing.search.is_none() {
        Some(app.store().count(reach, listing.filter.as_ref()).await?)
    } else {
        None
    };
    let warnings = unheard(&listing);
    let (documents, next, is_more) = match &listing.search {
        Some(text) => {
            let (documents, is_more) = search(app, reach, text, &listing).await?;
            (documents, None, is_more)
        }
        None => {
            let query = ListQuery {
                filter: listing.filter,
                sort: listing.sort,
                limit: listing.limit,
                offset,
                cursor: listing.cursor,
                vectors: listing.vectors,
            };
            let page = app.store().list(reach, query).await?;
            let is_more = page.next.is_some();
            (page.documents, page.next, is_more)
        }
    };
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let total = total.and_then(|total| i64::try_from(total).ok());
    let pagination = PaginationResponse {
        total,
        page: Some(number(offset / limit.max(1) + 1)),
        page_size: Some(number(limit)),
        total_pages: total.map(|total| (total + number(limit) - 1) / number(limit)),
        next_page: (is_more && by_offset)
            .then(|| page_at(offset + documents.len(), limit))
            .flatten(),
        previous_page: (offset > 0)
            .then(|| format!("?limit={limit}&offset={}", offset.saturating_sub(limit))),
        next_cursor: next,
    };
    Ok(Page {
        documents,
        pagination,
        warnings,
    })
}

/// What is asked for beside words to search for, and cannot be had with them.
fn unheard(listing: &Listing) -> Vec<DegradedEntry> {
    if listing.search.is_none() {
        return Vec::new();
    }
    let asked = [
        (
            "sort",
            listing.sort.is_some(),
            "what words find is ranked by them: leave sort or search out",
        ),
        (
            "cursor",
            listing.cursor.is_some(),
            "what words find is ranked: go on by offset",
        ),
        (
            "include_total",
            listing.include_total,
            "what words find is not counted: count with filters, where words are a condition of a field",
        ),
    ];
    let asked = asked.into_iter().filter(|(_, is_asked, _)| *is_asked);
    let entry = |(member, _, next_step): (&str, bool, &str)| DegradedEntry {
        resource: "query".into(),
        id: Some(member.into()),
        reason: "not_with_search".into(),
        next_step: next_step.into(),
        stage: None,
    };
    asked.map(entry).collect()
}

/// What words find, and whether there is more.
async fn search(
    app: &App,
    reach: &Reach,
    text: &str,
    listing: &Listing,
) -> Result<(Vec<Document>, bool)> {
    let query = SearchQuery {
        ranking: Ranking::Keywords {
            text: text.to_owned(),
        },
        filter: listing.filter.clone(),
        limit: listing.offset + listing.limit + 1,
        min_score: None,
        vectors: listing.vectors,
    };
    let hits = app.store().search(reach, query).await?;
    let is_more = hits.len() > listing.offset + listing.limit;
    let shown = hits.into_iter().skip(listing.offset).take(listing.limit);
    Ok((shown.map(|hit| hit.document).collect(), is_more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_end_with_the_window() {
        for (offset, limit, left, next) in [
            (0, 10, 10, Some("?limit=10&offset=10")),
            (9_000, 1_000, 1_000, None),
            (9_940, 50, 50, Some("?limit=50&offset=9990")),
            (9_990, 50, 10, None),
            (10_000, 50, 0, None),
        ] {
            let shown = room(offset, limit);
            assert_eq!(shown, left, "{offset}");
            assert_eq!(page_at(offset + shown, limit).as_deref(), next, "{offset}");
        }
    }
}
