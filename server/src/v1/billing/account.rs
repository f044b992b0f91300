//! What an organization has left of its month, and the plan that it has chosen.

use loupe_wire::{
    AccountTier, CreditBalanceResponse, Object, SubscribeRequest, SubscribeResponse,
    SubscriptionStatusResponse, Value, reading,
};
use serde_json::json;

use super::{Period, card, current::credits, float, spend};
use crate::{
    app::App,
    auth::Caller,
    error::{Result, Violation},
    id,
    v1::{organizations, tasks::name_of},
};

/// A month in credits.
struct Month {
    period: Period,
    tier: AccountTier,
    /// What the plan includes.
    included: i64,
    used: i64,
}

impl Month {
    async fn of(app: &App, caller: &Caller) -> Result<Self> {
        let period = Period::month_of(app.clock().now());
        let tier = organizations::find(app.db(), &caller.org_id)
            .await?
            .account_type;
        let spent = spend(app, &caller.org_id, period).await?;
        Ok(Self {
            period,
            tier,
            included: credits(card::pool_usd(tier)),
            used: credits(spent.total_usd),
        })
    }

    fn left(&self) -> i64 {
        (self.included - self.used).max(0)
    }
}

/// What is left of the month's pool, and what was used of it, in credits.
///
/// # Errors
/// The database does not answer.
pub async fn month(app: &App, caller: &Caller) -> Result<(i64, i64)> {
    let month = Month::of(app, caller).await?;
    Ok((month.left(), month.used))
}

/// What is left of the month's pool, and how long it lasts at the month's pace.
///
/// # Errors
/// The database does not answer.
pub(super) async fn balance(app: &App, caller: &Caller) -> Result<CreditBalanceResponse> {
    let month = Month::of(app, caller).await?;
    let passed = app.clock().now() - month.period.start;
    // Days that have begun count as whole: an hour's work is no pace of a month.
    let days = (passed.as_seconds_f64() / 86_400.0).floor().max(0.0) + 1.0;
    let burn = float(month.used) / days;
    let lasts = (burn > 0.0 && month.included > 0).then(|| whole(float(month.left()) / burn));
    let mut larger = card::PLANS
        .into_iter()
        .filter(|plan| card::rank(*plan) > card::rank(month.tier));
    Ok(CreditBalanceResponse {
        organization_id: caller.org_id.clone(),
        credit_balance: month.left(),
        account_tier: name_of(month.tier),
        next_tier: larger.next().map(name_of),
        // A plan is chosen; nobody is moved to it by using much.
        credits_until_next_tier: None,
        estimated_days_remaining: lasts,
        daily_burn_rate: burn,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "days, far below 2^63")]
fn whole(days: f64) -> i64 {
    days.floor() as i64
}

/// The month in credits.
///
/// # Errors
/// The database does not answer.
pub(super) async fn credits_of(app: &App, caller: &Caller) -> Result<Object> {
    let month = Month::of(app, caller).await?;
    let told = json!({
        "organization_id": caller.org_id, "account_tier": name_of(month.tier),
        "credit_balance": month.left(), "credits_included": month.included, "credits_used": month.used,
        "credits_beyond": (month.used - month.included).max(0), "credit_rate_usd": card::CREDIT_USD,
        "billing_month": month.period.start.format("%Y-%m").to_string(),
        "period_start": month.period.start, "period_end": month.period.end,
    });
    match told {
        Value::Object(members) => Ok(members),
        _ => Ok(Object::new()),
    }
}

/// The plan that the organization is on.
///
/// # Errors
/// The database does not answer.
pub(super) async fn subscription(app: &App, caller: &Caller) -> Result<SubscriptionStatusResponse> {
    let organization = organizations::find(app.db(), &caller.org_id).await?;
    if organization.requires_plan {
        return Ok(SubscriptionStatusResponse::default());
    }
    let month = Period::month_of(app.clock().now());
    Ok(SubscriptionStatusResponse {
        has_subscription: true,
        plan_slug: Some(name_of(organization.account_type)),
        status: Some("active".into()),
        current_period_end: Some(month.end.timestamp()),
        ..Default::default()
    })
}

/// Chooses a plan. Nothing is paid here, so it holds at once.
///
/// # Errors
/// 422 for a plan that is not on the card.
pub(super) async fn subscribe(
    app: &App,
    caller: &Caller,
    request: SubscribeRequest,
) -> Result<SubscribeResponse> {
    let named = reading::from_value::<AccountTier>(&request.plan.clone().into()).ok();
    let Some(plan) = named.filter(|plan| card::PLANS.contains(plan)) else {
        let names = card::PLANS.map(name_of).join(", ");
        let msg = format!("the plans are {names}");
        return Err(Violation::body(&["plan"], "enum", msg, request.plan.into()).into());
    };
    organizations::choose_plan(app, caller, plan).await?;
    let console = || format!("{}/console/", app.config().address());
    Ok(SubscribeResponse {
        checkout_url: request.success_url.unwrap_or_else(console),
        session_id: id::new("sub_"),
    })
}
