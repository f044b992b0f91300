//! Pages of batches, by offset or by cursor.

use loupe_wire::{ListBatchesRequest, ListBatchesResponse};
use serde_json::json;

use super::store::{self, Asked};
use crate::{
    app::App,
    error::{Result, Violation},
    list,
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
    let by_cursor = cursor.map(list::decode_offset).transpose()?;
    let offset = by_cursor.or(request.offset).or(offset).unwrap_or(0);
    if !(1..=1000).contains(&limit) || offset < 0 {
        let msg = "limit lies between 1 and 1000 and offset is at least 0";
        return Err(Violation::body(&["limit"], "range", msg, limit.into()).into());
    }
    let asked = Asked {
        status: request.status.map(name_of).unwrap_or_default(),
        collection_id: request.collection_id.clone().unwrap_or_default(),
        ..asked
    };
    let total_count = store::count(app.db(), &asked).await?;
    let mut results = store::list(app.db(), &asked, limit, offset).await?;
    super::complete(app, &asked.org_id, &mut results).await?;
    let next = offset.saturating_add(i64::try_from(results.len()).unwrap_or(0));
    let has_next = !results.is_empty() && next < total_count;
    let mut pagination = json!({ "limit": limit, "offset": offset, "has_next": has_next });
    if has_next {
        pagination["next_cursor"] = list::encode_offset(next).into();
    }
    Ok(ListBatchesResponse {
        results,
        total_count,
        pagination: pagination.as_object().cloned().unwrap_or_default(),
        ..Default::default()
    })
}
