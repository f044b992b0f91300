//! The rate card: what is paid for what, and what the tiers include.

use loupe_engine::extract;
use loupe_wire::{
    AccountTier, CostRate, CostUnit, CostsInfo, ExtractorPricing, Object, PlanDefinitionResponse,
    PricingConfigResponse, Value,
};
use serde_json::json;

use crate::{
    config::Config,
    limits::{self, quota::Resource},
    v1::tasks::name_of,
};

/// Dollars of a credit.
pub const CREDIT_USD: f64 = 0.001;
/// Dollars of a gigabyte kept for a month.
pub const STORAGE_GB_MONTH_USD: f64 = 0.33;
/// Dollars of a search: 2 for a million.
pub const QUERY_USD: f64 = 2.0e-6;
/// The same in credits.
pub const QUERY_CREDITS: f64 = QUERY_USD / CREDIT_USD;
/// Dollars of an object that was processed without a rate of its own: a tenth of a credit.
pub const OBJECT_USD: f64 = 0.1 * CREDIT_USD;
/// Pictures and films in full resolution take more.
pub const FULL_RESOLUTION: f64 = 2.0;

/// What an organization may choose, the smallest first.
pub const PLANS: [AccountTier; 3] = [
    AccountTier::Build,
    AccountTier::Scale,
    AccountTier::Enterprise,
];

/// Credits of one unit of extraction.
pub const fn credits(unit: CostUnit) -> f64 {
    match unit {
        CostUnit::Minute => 10.0,
        CostUnit::Image | CostUnit::Page => 1.0,
        CostUnit::V1kTokens | CostUnit::Extraction => 0.1,
        CostUnit::Face => 0.5,
    }
}

/// What files of this kind are counted in, and their modality.
pub fn unit_of(mime_type: &str) -> (CostUnit, &'static str) {
    let kind = mime_type.to_ascii_lowercase();
    match kind.split('/').next().unwrap_or_default() {
        "image" => (CostUnit::Image, "image"),
        "video" => (CostUnit::Minute, "video"),
        "audio" => (CostUnit::Minute, "audio"),
        "text" => (CostUnit::V1kTokens, "text"),
        _ if kind == "application/pdf" => (CostUnit::Page, "document"),
        _ => (CostUnit::Extraction, "other"),
    }
}

/// Which of two tiers is the larger one.
pub const fn rank(tier: AccountTier) -> u8 {
    match tier {
        AccountTier::Free => 0,
        AccountTier::Build => 1,
        AccountTier::Pro => 2,
        AccountTier::Scale | AccountTier::Team => 3,
        AccountTier::Enterprise => 4,
    }
}

/// The dollars that a tier includes each month. `enterprise` pays by contract.
pub const fn pool_usd(tier: AccountTier) -> f64 {
    match tier {
        AccountTier::Free | AccountTier::Build => 10.0,
        AccountTier::Pro | AccountTier::Scale | AccountTier::Team => 100.0,
        AccountTier::Enterprise => 0.0,
    }
}

/// The whole card.
pub fn pricing(config: &Config) -> PricingConfigResponse {
    PricingConfigResponse {
        credit_rate_usd: CREDIT_USD,
        managed_plans: PLANS.into_iter().map(|tier| plan(tier, config)).collect(),
        mvs_plans: Vec::new(),
        mvs_usage_rates: object(json!({
            "storage_gb_month_usd": STORAGE_GB_MONTH_USD, "query_million_usd": QUERY_USD * 1e6,
        })),
        enterprise_defaults: object(json!({
            "rate_limits": rates(AccountTier::Enterprise, config), "resource_limits": {},
        })),
        extractors: extract::catalogue().iter().map(extractor).collect(),
        pricing_model: "v2".into(),
        currency: "usd".into(),
        // Storage and queries are the interface's own; rates of extraction are this installation's.
        placeholder_rates: true,
        modalities: [
            "image/*",
            "video/*",
            "audio/*",
            "text/*",
            "application/pdf",
            "*/*",
        ]
        .into_iter()
        .map(modality)
        .collect(),
        usage_pools: PLANS
            .into_iter()
            .map(|tier| (name_of(tier), json!(pool_usd(tier))))
            .collect(),
        reads: object(json!({"query_million_usd": QUERY_USD * 1e6, "cached_queries_usd": 0.0})),
        full_res_multiplier: FULL_RESOLUTION,
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

fn rates(tier: AccountTier, config: &Config) -> Value {
    let rate = limits::rate_of(tier, config);
    json!({
        "requests_per_minute": rate.per_minute, "requests_per_second": rate.per_second,
        "concurrent": rate.concurrent, "burst": rate.burst,
    })
}

/// What people call a tier.
pub fn plan_name(tier: AccountTier) -> String {
    let name = name_of(tier);
    format!("{}{}", name[..1].to_uppercase(), &name[1..])
}

fn plan(tier: AccountTier, config: &Config) -> PlanDefinitionResponse {
    let name = name_of(tier);
    let limits = Resource::ALL
        .iter()
        .filter_map(|resource| Some((resource.name().to_owned(), json!(resource.of(tier)?))));
    PlanDefinitionResponse {
        product: "managed".into(),
        name: plan_name(tier),
        tier: name,
        // What a plan costs is between an installation and its users.
        monthly_price_cents: 0,
        self_serve: true,
        features: Vec::new(),
        usage_pool_usd: Some(pool_usd(tier)),
        resource_limits: limits.collect(),
        rate_limits: object(rates(tier, config)),
    }
}

fn modality(mime_type: &str) -> Object {
    let (unit, modality) = unit_of(mime_type);
    object(json!({
        "mime_type": mime_type, "modality": modality, "unit": unit, "unit_price_usd": credits(unit) * CREDIT_USD,
    }))
}

fn extractor(info: &extract::ExtractorInfo) -> ExtractorPricing {
    ExtractorPricing {
        feature_extractor_name: info.name.into(),
        description: info.description.into(),
        costs: Some(extractor_costs(info)),
    }
}

/// What an extractor's work is counted in, and what each costs.
pub fn extractor_costs(info: &extract::ExtractorInfo) -> CostsInfo {
    let (unit, tier, label) = match info.name {
        name if name.starts_with("text") => (CostUnit::V1kTokens, 1, "simple"),
        name if name.starts_with("image") => (CostUnit::Image, 2, "moderate"),
        name if name.starts_with("document") => (CostUnit::Page, 2, "moderate"),
        _ => (CostUnit::Extraction, 1, "simple"),
    };
    let rate = CostRate {
        unit,
        credits_per_unit: credits(unit),
        description: None,
    };
    CostsInfo {
        tier,
        tier_label: label.into(),
        rates: vec![rate],
    }
}
