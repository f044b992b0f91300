//! Pages of batches, by offset or by cursor.

use loupe_wire::{ListBatchesRequest, ListBatchesResponse};
use serde_json::json;

use super::store::{self, Asked};
use crate::{
    app::App,
    error::{Result, Violation},
    list::{self, ListParams, Page},
    v1::tasks::name_of,
};

/// The batches that are asked for, newest first. `limit` and `offset` are those of the query; the body wins.
pub(super) async fn page(
    app: &App,
    asked: Asked,
    (limit, offset): (Option<i64>, Option<i64>),
    request: &ListBatchesRequest,
) -> Result<ListBatchesResponse> {
    let limit = request.limit.or(limit).unwrap_or(100);
    let cursor = request.cursor.as_deref().filter(|one| !one.is_empty());
    let by_number = request.offset.or(offset).unwrap_or(0);
    let (offset, behind) = match cursor {
        Some(cursor) => list::from_cursor(cursor)?,
        None => (by_number, None),
    };
    if !(1..=1000).contains(&limit) || offset < 0 {
        let msg = "limit lies between 1 and 1000 and offset is at least 0";
        return Err(Violation::body(&["limit"], "range", msg, limit.into()).into());
    }
    let asked = Asked {
        status: request.status.map(name_of).unwrap_or_default(),
        collection_id: request.collection_id.clone().unwrap_or_default(),
        ..asked
    };
    let params = ListParams {
        limit,
        offset,
        behind,
        ..ListParams::default()
    };
    let total_count = store::count(app.db(), &asked).await?;
    let rows = store::list(app.db(), &asked, params.window()).await?;
    let page = Page::from_window(rows, &params, None);
    let (mut results, next) = (page.results, page.pagination.next_cursor);
    super::complete(app, &asked.org_id, &mut results).await?;
    let mut pagination = json!({ "limit": limit, "offset": offset, "has_next": next.is_some() });
    if let Some(next) = next {
        pagination["next_cursor"] = next.into();
    }
    Ok(ListBatchesResponse {
        results,
        total_count,
        pagination: pagination.as_object().cloned().unwrap_or_default(),
        ..Default::default()
    })
}
