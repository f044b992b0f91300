//! What was paid for, act by act: batches, and searches by key and hour, those of strangers by retriever and hour. Storage is
//! no act; usage tells of it.

use loupe_wire::{TransactionInfo, TransactionsListResponse, Value};

use super::{Period, card, current::credits, float, store};
use crate::{app::App, auth::Caller, clock, error::Result, usage};

/// A page of them, the newest first; of one month, or of all time.
///
/// # Errors
/// The database does not answer.
pub(super) async fn list(
    app: &App,
    caller: &Caller,
    month: Option<Period>,
    limit: i64,
    offset: i64,
) -> Result<TransactionsListResponse> {
    usage::flush(app).await?;
    let (db, org_id) = (app.db(), caller.org_id.as_str());
    let micros = |month: Period| (month.start.timestamp_micros(), month.end.timestamp_micros());
    let span = month.map_or((0, i64::MAX), micros);
    let total = store::count_transactions(db, org_id, span).await?;
    let rows = store::transactions(db, org_id, span, limit, offset).await?;
    let returned = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Ok(TransactionsListResponse {
        transactions: rows.into_iter().map(told).collect(),
        total,
        limit,
        offset,
        has_more: offset.saturating_add(returned) < total,
    })
}

fn told(one: store::Worked) -> TransactionInfo {
    let (price, unit, resource_type) = match one.operation.as_str() {
        "search" if one.resource_id.starts_with("ret_") => {
            (card::QUERY_USD, "searches", "retriever")
        }
        "search" => (card::QUERY_USD, "searches", "api_key"),
        _ => (card::OBJECT_USD, "objects", "batch"),
    };
    let cost_usd = float(one.units) * price;
    let at = clock::time(one.occurred_at);
    TransactionInfo {
        record_id: format!("{}_{}", one.resource_id, one.occurred_at),
        occurred_at: at,
        billing_month: at.format("%Y-%m").to_string(),
        credits_consumed: credits(cost_usd),
        cost_usd,
        operation_type: one.operation,
        resource_id: Some(one.resource_id),
        resource_type: Some(resource_type.into()),
        namespace_id: Some(one.namespace_id).filter(|id| !id.is_empty()),
        metadata: [(unit.to_owned(), Value::from(one.units))]
            .into_iter()
            .collect(),
        ..Default::default()
    }
}
