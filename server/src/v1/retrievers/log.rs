//! The executions of a retriever as a list: narrowed by filters, in any order.

use loupe_wire::{ListExecutionsResponse, PaginationMetadata, RetrieverExecutionSummary};

use super::{
    cast,
    store::{self, Wanted},
};
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
    list::{ListParams, Sieve, SortKey, Walk},
};

/// What an execution is filtered and sorted by.
const MEMBERS: [&str; 12] = [
    "execution_id",
    "status",
    "created_at",
    "completed_at",
    "duration_ms",
    "credits_used",
    "total_processed",
    "total_returned",
    "cache_hit_rate",
    "inputs_hash",
    "query_summary",
    "trace_id",
];

/// A page of executions.
///
/// # Errors
/// The 422 list for a member that executions do not have; a page of a sorted list that lies too far behind.
pub(super) async fn list(
    app: &App,
    mut params: ListParams,
    wanted: Wanted<'_>,
) -> Result<ListExecutionsResponse> {
    check(&params)?;
    if is_newest_first(&params.sorts) {
        params.sorts.clear();
    }
    let (results, total) = match params.is_plain() {
        true => plain(app, &params, wanted).await?,
        false => sifted(app, &mut params, wanted).await?,
    };
    let shown = i64::try_from(results.len()).unwrap_or(0);
    Ok(ListExecutionsResponse {
        results,
        pagination: PaginationMetadata {
            total,
            limit: params.limit,
            offset: params.offset,
            has_next: params.offset + shown < total,
        },
        ..Default::default()
    })
}

type Found = (Vec<RetrieverExecutionSummary>, i64);

/// The database counts and cuts.
async fn plain(app: &App, params: &ListParams, wanted: Wanted<'_>) -> Result<Found> {
    let total = store::count_executions(app.db(), wanted).await?;
    let rows = store::list_executions(app.db(), wanted, (params.limit, params.offset)).await?;
    let results = rows.iter().map(cast).collect::<Result<Vec<_>>>()?;
    Ok((results, total))
}

/// What matches is looked for in what the database does not rule out. With a filter all of it is counted: the answer tells how
/// much there is.
async fn sifted(app: &App, params: &mut ListParams, wanted: Wanted<'_>) -> Result<Found> {
    let all = match params.filter {
        Some(_) => None,
        None => Some(store::count_executions(app.db(), wanted).await?),
    };
    params.include_total = all.is_none();
    let walk = Walk::of(params);
    let mut sieve = Sieve::along(params, &walk)?;
    while let Some(mark) = sieve.goes_on() {
        sieve.take(store::piece(app.db(), wanted, &walk, mark).await?)?;
    }
    let page = sieve.page();
    Ok((page.results, page.total.or(all).unwrap_or_default()))
}

fn check(params: &ListParams) -> Result<()> {
    let mut faults = Vec::new();
    let mut expect = |path: &[&str], field: &str| {
        let member = field.split('.').next().unwrap_or_default();
        if !MEMBERS.contains(&member) {
            let msg = format!("executions have {}", MEMBERS.join(", "));
            faults.push(Violation::body(path, "unknown_field", msg, field.into()));
        }
    };
    if let Some(filter) = &params.filter {
        filter.for_each_condition(&mut |one| expect(&["filters", &one.field], &one.field));
    }
    for (place, sort) in params.sorts.iter().enumerate() {
        expect(&["sorts", &place.to_string(), "field"], &sort.field);
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Validation(faults)),
    }
}

/// The order that the list has anyway.
fn is_newest_first(sorts: &[SortKey]) -> bool {
    matches!(sorts, [only] if only.field == "created_at" && only.descending)
}
