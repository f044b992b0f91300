//! What is used, in dollars: the spend of a period, the rate card, and the price of a workload before it runs.

mod account;
mod breakdown;
mod caps;
mod card;
mod current;
mod routes;
mod store;
mod stored;
mod transactions;

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, Utc};
use loupe_engine::{
    filter::{Filter, Operator},
    store::Reach,
};
use loupe_wire::{
    EstimateItem, EstimateRequest, EstimateResponse, Object, OrgUsageResponse,
    OrganizationModelResponse, SpendByCategory, UsagePool, Value, VectorBackendUsageResponse,
    VectorUsageBreakdown,
};
use serde_json::json;

pub use account::month;
pub use caps::{Spending, tick};
pub use card::{OBJECT_USD, QUERY_CREDITS, QUERY_USD, STORAGE_GB_MONTH_USD, extractor_costs};
pub use current::credits;
pub use routes::router;
pub use store::{Ingested, note};
pub use stored::Stored;

use crate::{
    app::App,
    auth::Caller,
    error::Result,
    limits::Overspent,
    usage,
    v1::{
        collections::{self, COLLECTIONS},
        namespaces::NAMESPACES,
        organizations,
        tasks::name_of,
    },
};

/// A period, its end not included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    start: DateTime<Utc>,
    end: DateTime<Utc>,
}

impl Period {
    /// The calendar month that a moment lies in.
    fn month_of(at: DateTime<Utc>) -> Self {
        let first = at.date_naive() - Days::new(u64::from(at.day0()));
        let start = first.and_time(NaiveTime::MIN).and_utc();
        Self {
            start,
            end: start + Months::new(1),
        }
    }

    /// How much of the period has passed.
    fn passed(self, now: DateTime<Utc>) -> f64 {
        let whole = (self.end - self.start).as_seconds_f64().max(1.0);
        let passed = now.clamp(self.start, self.end) - self.start;
        passed.as_seconds_f64() / whole
    }

    /// Its length in months of 30 days, as storage is paid, up to now.
    fn months(self, now: DateTime<Utc>) -> f64 {
        self.passed(now) * (self.end - self.start).as_seconds_f64() / (30.0 * 86_400.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
const fn float(count: i64) -> f64 {
    count as f64
}

fn gigabyte_months(bytes: i64, months: f64) -> f64 {
    float(bytes) / 1e9 * months
}

/// What the organization spent in a period on what.
async fn spend(app: &App, org_id: &str, period: Period) -> Result<SpendByCategory> {
    let (from, to) = (
        period.start.timestamp_micros(),
        period.end.timestamp_micros(),
    );
    let searches = usage::searches(app, org_id, from, to).await?;
    let objects = store::processed(app.db(), org_id, from, to).await?;
    let bytes = stored::bytes(app, org_id, to).await?;
    let months = period.months(app.clock().now());
    let (search_usd, ingestion_usd, storage_usd) = (
        float(searches) * card::QUERY_USD,
        float(objects) * card::OBJECT_USD,
        gigabyte_months(bytes, months) * card::STORAGE_GB_MONTH_USD,
    );
    Ok(SpendByCategory {
        ingestion_usd,
        search_usd,
        storage_usd,
        total_usd: ingestion_usd + search_usd + storage_usd,
    })
}

/// The first limit of the organization's own that its spend has reached. Without limits nothing is read.
pub async fn overspent(
    app: &App,
    organization: &OrganizationModelResponse,
) -> Result<Option<Overspent>> {
    let spent = of_limits(app, organization).await?;
    Ok(spent
        .into_iter()
        .find(|spent| spent.spent_usd >= spent.limit_usd))
}

/// What is spent of each limit of the organization's own.
pub async fn of_limits(
    app: &App,
    organization: &OrganizationModelResponse,
) -> Result<Vec<Overspent>> {
    let mut of_limits = Vec::new();
    let now = app.clock().now();
    let start = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let day = Period {
        start,
        end: start + Days::new(1),
    };
    for (member, resource, period) in [
        ("daily_usd", "daily_spend_usd", day),
        ("monthly_usd", "monthly_spend_usd", Period::month_of(now)),
    ] {
        let limit = organization.spend_limits.get(member);
        let Some(limit_usd) = limit.and_then(Value::as_f64) else {
            continue;
        };
        let org_id = &organization.organization_id;
        let spent_usd = spend(app, org_id, period).await?.total_usd;
        of_limits.push(Overspent {
            resource,
            spent_usd,
            limit_usd,
        });
    }
    of_limits.extend(caps::of_cap(app, &organization.organization_id).await?);
    Ok(of_limits)
}

/// The spend of a period and what is left of this month's pool.
pub(crate) async fn of_organization(
    app: &App,
    caller: &Caller,
    period: Option<Period>,
) -> Result<OrgUsageResponse> {
    let month = Period::month_of(app.clock().now());
    let period = period.unwrap_or(month);
    let tier = organizations::find(app.db(), &caller.org_id)
        .await?
        .account_type;
    let used_usd = spend(app, &caller.org_id, month).await?.total_usd;
    let total_usd = card::pool_usd(tier);
    Ok(OrgUsageResponse {
        period_start: period.start,
        period_end: period.end,
        tier: name_of(tier),
        currency: "usd".into(),
        spend: spend(app, &caller.org_id, period).await?,
        pool: UsagePool {
            total_usd,
            used_usd,
            remaining_usd: (total_usd - used_usd).max(0.0),
            reset_date: month.end,
        },
    })
}

/// Namespaces of the organization, and vectors and bytes that their collections hold; of what is there and was made before
/// a moment, where one is named.
async fn vectors(
    app: &App,
    caller: &Caller,
    before: Option<DateTime<Utc>>,
) -> Result<(i64, i64, i64)> {
    let is_earlier =
        |created_at: i64| before.is_none_or(|before| created_at < before.timestamp_micros());
    let filter =
        before.map(|before| Filter::leaf("_internal.created_at", Operator::Lt, json!(before)));
    let mut namespaces = NAMESPACES.all(app.db(), &caller.org_id).await?;
    namespaces.retain(|namespace| is_earlier(namespace.created_at));
    let (mut count, mut bytes) = (0_i64, 0_i64);
    for namespace in &namespaces {
        let mut records = COLLECTIONS.all(app.db(), &namespace.id).await?;
        records.retain(|record| is_earlier(record.created_at));
        for record in records {
            let indexes = collections::indexes(app, &record.data.0);
            let reach = Reach {
                namespace_id: namespace.id.clone(),
                collection_ids: vec![record.id],
                principal: None,
            };
            let documents = app.store().count(&reach, filter.as_ref()).await?;
            let documents = i64::try_from(documents).unwrap_or(i64::MAX);
            let dims: usize = indexes.iter().map(|index| index.dims).sum();
            let numbers = i64::try_from(dims).unwrap_or(i64::MAX).saturating_mul(4);
            count += documents * i64::try_from(indexes.len()).unwrap_or(0);
            bytes = bytes.saturating_add(documents.saturating_mul(numbers));
        }
    }
    let namespaces = i64::try_from(namespaces.len()).unwrap_or(i64::MAX);
    Ok((namespaces, count, bytes))
}

/// What the vectors of the organization take in a month.
pub(crate) async fn of_vectors(
    app: &App,
    caller: &Caller,
    month: Period,
) -> Result<VectorBackendUsageResponse> {
    let (from, to) = (month.start.timestamp_micros(), month.end.timestamp_micros());
    let queries = usage::searches(app, &caller.org_id, from, to).await?;
    let writes = store::written(app.db(), &caller.org_id, from, to).await?;
    let data = stored::bytes(app, &caller.org_id, to).await?;
    let now = app.clock().now();
    // Nothing is there yet of a month to come; of one that is over counts what was there at its end.
    let (namespace_count, vectors_stored, bytes) = if month.start > now {
        (0, 0, 0)
    } else {
        vectors(app, caller, (month.end <= now).then_some(month.end)).await?
    };
    let months = month.months(now);
    let cost = |bytes| gigabyte_months(bytes, months) * card::STORAGE_GB_MONTH_USD;
    let mut costs = VectorUsageBreakdown {
        backend: "loupe".into(),
        vector_storage_usd: cost(bytes),
        data_storage_usd: cost(data),
        query_usd: float(queries) * card::QUERY_USD,
        // What is written is paid for as storage.
        write_usd: 0.0,
        ..Default::default()
    };
    costs.total_usd = costs.vector_storage_usd + costs.data_storage_usd + costs.query_usd;
    let credits = current::credits(costs.total_usd);
    costs.total_credits = credits;
    Ok(VectorBackendUsageResponse {
        vector_backend: "loupe".into(),
        billing_month: month.start.format("%Y-%m").to_string(),
        namespace_count,
        vectors_stored,
        storage_bytes: bytes,
        queries,
        writes,
        total_credits: credits,
        total_cost_usd: costs.total_usd,
        cost_breakdown: costs,
    })
}

/// The price of one kind of file.
fn line(item: &EstimateItem, features: f64, full: bool) -> (Object, f64) {
    use loupe_wire::CostUnit;
    let (unit, modality) = card::unit_of(&item.mime_type);
    let count = item.count.unwrap_or(1.0);
    // A figure of the whole wins; files that tell no size count as one unit each.
    let told = match unit {
        CostUnit::Minute => item.minutes,
        CostUnit::Page => item.pages,
        CostUnit::V1kTokens => item.tokens.map(|tokens| tokens / 1000.0),
        _ => None,
    };
    let quantity = told.or(item.units).unwrap_or(count);
    let more = full && matches!(modality, "image" | "video");
    let price =
        card::credits(unit) * card::CREDIT_USD * if more { card::FULL_RESOLUTION } else { 1.0 };
    let cost = quantity * price * features;
    let told = json!({
        "mime_type": item.mime_type, "modality": modality, "unit": unit, "quantity": quantity,
        "unit_price_usd": price, "features": features, "cost_usd": cost,
    });
    (told.as_object().cloned().unwrap_or_default(), cost)
}

/// What a workload would cost, and how much of it the month's pool still covers.
pub(crate) async fn estimate(
    app: &App,
    caller: &Caller,
    request: EstimateRequest,
) -> Result<EstimateResponse> {
    let features = request.features.map_or(0, |features| features.len()).max(1);
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
    let lines = request
        .items
        .iter()
        .map(|item| line(item, features as f64, request.full_res));
    let (line_items, costs): (Vec<Object>, Vec<f64>) = lines.unzip();
    let total_usd: f64 = costs.iter().sum();
    let pool = of_organization(app, caller, None).await?.pool;
    let covered = pool.remaining_usd.min(total_usd);
    Ok(EstimateResponse {
        pricing_model: "v2".into(),
        placeholder_rates: true,
        line_items,
        total_usd,
        batch_minimum_applied: false,
        allowance_pool_usd: Some(pool.total_usd),
        allowance_covered_usd: covered,
        estimated_overage_usd: total_usd - covered,
        ..Default::default()
    })
}
