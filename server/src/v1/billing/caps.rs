//! What an organization lets itself spend in a month: a budget whose parts it is told of, and a cap that nothing passes.

use chrono::{DateTime, Utc};
use loupe_wire::{
    AuditAction, NotificationPriority, NotificationType, ResourceType, SpendingCapsResponse,
    UpdateSpendingCapsRequest, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Period, float, spend};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
    limits::Overspent,
    v1::{
        audit::{self, Change},
        notifications::{self, Notice},
        organizations::settings,
    },
};

/// Most thresholds of a budget.
const MOST: usize = 20;

/// Settings of an organization; what was never set is as at first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// Cents.
    budget: Option<i64>,
    /// Percent of the budget.
    thresholds: Vec<i64>,
    alerts: bool,
    /// Cents.
    cap: Option<i64>,
    cap_enabled: bool,
    /// The month that `sent` is about, as `YYYY-MM`.
    month: String,
    /// Thresholds that were told of.
    sent: Vec<i64>,
}

impl Default for Spending {
    fn default() -> Self {
        Self {
            budget: None,
            thresholds: vec![80, 95],
            alerts: true,
            cap: None,
            cap_enabled: false,
            month: String::new(),
            sent: Vec::new(),
        }
    }
}

impl Spending {
    /// Thresholds that were told of in this month.
    fn sent_in(&self, month: &str) -> &[i64] {
        if self.month == month { &self.sent } else { &[] }
    }

    /// Thresholds that so much spending has passed and that nobody was told of.
    fn passed(&self, spent_usd: f64, month: &str) -> Vec<i64> {
        let Some(budget) = self.budget.filter(|_| self.alerts) else {
            return Vec::new();
        };
        let sent = self.sent_in(month);
        let passed =
            |percent: &&i64| spent_usd > 0.0 && spent_usd * 1e4 >= float(**percent) * float(budget);
        let new = self.thresholds.iter().filter(|one| !sent.contains(one));
        new.filter(passed).copied().collect()
    }

    fn change(&mut self, request: UpdateSpendingCapsRequest) -> Result<()> {
        let first = Self::default();
        if let Some(budget) = request.monthly_spending_budget {
            self.budget = check_amount("monthly_spending_budget", budget)?;
        }
        if let Some(cap) = request.hard_spending_cap {
            self.cap = check_amount("hard_spending_cap", cap)?;
        }
        if let Some(thresholds) = request.spending_alert_thresholds {
            self.thresholds = check_thresholds(thresholds.unwrap_or(first.thresholds))?;
        }
        if let Some(alerts) = request.spending_alerts_enabled {
            self.alerts = alerts.unwrap_or(first.alerts);
        }
        if let Some(enabled) = request.hard_cap_enabled {
            self.cap_enabled = enabled.unwrap_or(first.cap_enabled);
        }
        if self.cap_enabled && self.cap.is_none() {
            let msg = "a cap that is enabled needs hard_spending_cap";
            let fault = Violation::body(&["hard_spending_cap"], "missing", msg, Value::Null);
            return Err(fault.into());
        }
        Ok(())
    }
}

fn check_amount(member: &str, amount: Option<i64>) -> Result<Option<i64>> {
    match amount {
        Some(cents) if cents < 0 => {
            let msg = "cents are 0 or more";
            Err(Violation::body(&[member], "greater_than_equal", msg, cents.into()).into())
        }
        amount => Ok(amount),
    }
}

fn check_thresholds(mut thresholds: Vec<i64>) -> Result<Vec<i64>> {
    let refuse = |kind: &str, msg: String, input: Value| {
        Violation::body(&["spending_alert_thresholds"], kind, msg, input)
    };
    if let Some(wrong) = thresholds.iter().find(|one| !(1..=1000).contains(*one)) {
        let msg = "a threshold is 1 to 1000 percent".to_owned();
        return Err(refuse("range", msg, (*wrong).into()).into());
    }
    thresholds.sort_unstable();
    thresholds.dedup();
    if thresholds.len() > MOST {
        let msg = format!("at most {MOST} thresholds");
        return Err(refuse("too_long", msg, Value::Null).into());
    }
    Ok(thresholds)
}

fn name_of(month: Period) -> String {
    month.start.format("%Y-%m").to_string()
}

/// Begun cents are whole.
#[expect(clippy::cast_possible_truncation, reason = "a sum far below 2^63")]
fn cents(usd: f64) -> i64 {
    (usd * 100.0).ceil() as i64
}

fn told(spending: &Spending, spent_usd: f64, now: DateTime<Utc>) -> SpendingCapsResponse {
    let usd = |cents: Option<i64>| cents.map(|cents| float(cents) / 100.0);
    let budget = usd(spending.budget).filter(|budget| *budget > 0.0);
    SpendingCapsResponse {
        monthly_spending_budget: spending.budget,
        monthly_spending_budget_usd: usd(spending.budget),
        spending_alert_thresholds: spending.thresholds.clone(),
        spending_alerts_enabled: spending.alerts,
        spending_alerts_sent: spending.sent_in(&name_of(Period::month_of(now))).to_vec(),
        hard_spending_cap: spending.cap,
        hard_spending_cap_usd: usd(spending.cap),
        hard_cap_enabled: spending.cap_enabled,
        current_spending_cents: cents(spent_usd),
        current_spending_usd: spent_usd,
        budget_percentage_used: budget.map(|budget| spent_usd / budget * 100.0),
    }
}

/// The caps, and what this month has cost.
///
/// # Errors
/// The database does not answer.
pub(super) async fn show(app: &App, caller: &Caller) -> Result<SpendingCapsResponse> {
    let spending = settings::find(app.db(), &caller.org_id).await?.spending;
    let now = app.clock().now();
    let spent = spend(app, &caller.org_id, Period::month_of(now)).await?;
    Ok(told(&spending, spent.total_usd, now))
}

/// Changes what was sent; it holds from the next request on.
///
/// # Errors
/// 422 for what is no amount or threshold.
pub(super) async fn update(
    app: &App,
    caller: &Caller,
    request: UpdateSpendingCapsRequest,
) -> Result<SpendingCapsResponse> {
    let (by, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &by.org_id).await?;
                let before = settings.spending.clone();
                settings.spending.change(request)?;
                settings::update(tx, &by.org_id, &settings, now).await?;
                let change = Change {
                    action: AuditAction::OrganizationUpdated,
                    resource: (ResourceType::Organization, &by.org_id),
                    changes: audit::difference(&before, &settings.spending),
                };
                audit::record(tx, &by, change, now).await
            })
        })
        .await?;
    app.limits.forget_tiers();
    show(app, caller).await
}

/// What is spent of the cap, if there is one that holds.
///
/// # Errors
/// The database does not answer.
pub(super) async fn of_cap(app: &App, org_id: &str) -> Result<Option<Overspent>> {
    let spending = settings::find(app.db(), org_id).await?.spending;
    let Some(cap) = spending.cap.filter(|_| spending.cap_enabled) else {
        return Ok(None);
    };
    let month = Period::month_of(app.clock().now());
    Ok(Some(Overspent {
        resource: "hard_spending_cap_usd",
        spent_usd: spend(app, org_id, month).await?.total_usd,
        limit_usd: float(cap) / 100.0,
    }))
}

/// Tells of the parts of budgets that were spent since the last look, each once a month.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    let month = Period::month_of(app.clock().now());
    for (org_id, settings) in settings::all(app.db()).await? {
        if settings.spending.budget.is_none() || !settings.spending.alerts {
            continue;
        }
        let spent_usd = spend(app, &org_id, month).await?.total_usd;
        if settings
            .spending
            .passed(spent_usd, &name_of(month))
            .is_empty()
        {
            continue;
        }
        tell(app, org_id, spent_usd, name_of(month)).await?;
    }
    Ok(())
}

/// Notes what is told of in the same transaction, so that it is told once.
async fn tell(app: &App, org_id: String, spent_usd: f64, month: String) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &org_id).await?;
                let spending = &mut settings.spending;
                let passed = spending.passed(spent_usd, &month);
                let (Some(highest), Some(budget)) = (passed.last().copied(), spending.budget)
                else {
                    return Ok::<_, ApiError>(());
                };
                spending.sent = [spending.sent_in(&month), &passed].concat();
                spending.month.clone_from(&month);
                settings::update(tx, &org_id, &settings, now).await?;
                let notice = notice(highest, budget, spent_usd, &month);
                notifications::notify(tx, &org_id, notice, now).await
            })
        })
        .await
}

fn notice(percent: i64, budget: i64, spent_usd: f64, month: &str) -> Notice {
    let budget_usd = float(budget) / 100.0;
    Notice {
        kind: NotificationType::BillingAlert,
        priority: match percent {
            ..95 => NotificationPriority::Medium,
            _ => NotificationPriority::High,
        },
        title: format!("{percent} % of this month's budget are spent"),
        content: format!(
            "{spent_usd:.2} of {budget_usd:.2} dollars are spent in {month}. A hard cap refuses what goes beyond an amount."
        ),
        about: json!({"billing_month": month, "threshold": percent, "spent_usd": spent_usd}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_threshold_is_told_of_once_a_month() {
        let mut spending = Spending {
            budget: Some(1000),
            ..Spending::default()
        };
        assert_eq!(spending.passed(7.99, "2026-01"), [0_i64; 0]);
        assert_eq!(spending.passed(8.0, "2026-01"), [80]);
        assert_eq!(spending.passed(12.0, "2026-01"), [80, 95]);
        (spending.month, spending.sent) = ("2026-01".into(), vec![80]);
        assert_eq!(spending.passed(12.0, "2026-01"), [95]);
        assert_eq!(spending.passed(9.0, "2026-02"), [80]);
        spending.alerts = false;
        assert_eq!(spending.passed(12.0, "2026-02"), [0_i64; 0]);
    }
}
