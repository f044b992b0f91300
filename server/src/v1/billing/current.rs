//! What this month has cost so far, and how much of the plan is used.

use loupe_wire::{CurrentUsageResponse, Object, PlanUsage, SpendByCategory, Value};
use serde_json::json;

use super::{Period, card, float, spend, store, vectors};
use crate::{
    app::App,
    auth::Caller,
    error::Result,
    limits::quota::Resource,
    v1::{organizations, tasks::name_of},
};

/// The share of a cap from which on it is near.
const NEAR: f64 = 0.8;

/// Credits of an amount, begun ones whole.
#[expect(clippy::cast_possible_truncation, reason = "a sum far below 2^63")]
pub fn credits(usd: f64) -> i64 {
    (usd / card::CREDIT_USD).ceil() as i64
}

/// This month so far.
///
/// # Errors
/// The database or the document store does not answer.
pub(super) async fn of_month(app: &App, caller: &Caller) -> Result<CurrentUsageResponse> {
    let month = Period::month_of(app.clock().now());
    let organization = organizations::find(app.db(), &caller.org_id).await?;
    let spend = spend(app, &caller.org_id, month).await?;
    let (from, to) = (month.start.timestamp_micros(), month.end.timestamp_micros());
    let objects = store::processed(app.db(), &caller.org_id, from, to).await?;
    let (_, vectors, _) = vectors(app, caller, None).await?;
    let tier = organization.account_type;
    let pool = card::pool_usd(tier);
    // What a tier includes of each month is dollars; the cap of vectors is that of its documents.
    let cap = Resource::Documents.of(tier);
    let share = |used: f64, most: f64| if most > 0.0 { used / most } else { 0.0 };
    let used =
        share(spend.total_usd, pool).max(cap.map_or(0.0, |cap| share(float(vectors), float(cap))));
    Ok(CurrentUsageResponse {
        current_month_usage: credits(spend.total_usd),
        billing_month: month.start.format("%Y-%m").to_string(),
        billing_period_start: month.start,
        billing_period_end: month.end,
        estimated_cost_usd: (spend.total_usd - pool).max(0.0),
        credit_rate: card::CREDIT_USD,
        auto_billing_enabled: organization.auto_billing_enabled,
        next_invoice_date: month.end,
        plan_usage: Some(PlanUsage {
            product: "managed".into(),
            plan_name: card::plan_name(tier),
            tier: name_of(tier),
            monthly_minimum_cents: 0,
            period_start: Some(month.start),
            period_end: Some(month.end),
            objects_processed: Some(objects),
            object_cap: None,
            vectors_stored: Some(vectors),
            vectors_stored_complete: true,
            vector_cap: cap,
            usage_pct: Some(used * 100.0),
            cap_state: state(used).into(),
        }),
        usage_v2: told(&spend),
    })
}

fn state(used: f64) -> &'static str {
    match used {
        used if used >= 1.0 => "reached",
        used if used >= NEAR => "near",
        _ => "ok",
    }
}

fn told(spend: &SpendByCategory) -> Object {
    match json!(spend) {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}
