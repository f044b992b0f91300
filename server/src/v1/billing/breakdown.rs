//! What a month's spend went to: operations, extractors, namespaces, retrievers.

use std::collections::HashMap;

use indexmap::IndexMap;
use loupe_wire::{CollectionResponse, UsageBreakdownResponse};

use super::{Period, card, current::credits, float, spend, store};
use crate::{
    app::App,
    auth::Caller,
    db::Record,
    error::Result,
    v1::{collections::COLLECTIONS, namespaces::NAMESPACES},
};

/// Dollars by what they were spent on, the largest first as credits.
#[derive(Default)]
struct Sums(HashMap<String, f64>);

impl Sums {
    fn add(&mut self, name: &str, usd: f64) {
        *self.0.entry(name.to_owned()).or_default() += usd;
    }

    fn credits(self) -> IndexMap<String, i64> {
        let mut all: Vec<_> = self.0.into_iter().filter(|(_, usd)| *usd > 0.0).collect();
        all.sort_by(|(a, usd), (b, other)| other.total_cmp(usd).then_with(|| a.cmp(b)));
        let told = all.into_iter().map(|(name, usd)| (name, credits(usd)));
        told.collect()
    }
}

/// Objects and searches are told of what is still there; sums by operation are of everything.
///
/// # Errors
/// The database does not answer.
pub(super) async fn of_month(
    app: &App,
    caller: &Caller,
    month: Period,
) -> Result<UsageBreakdownResponse> {
    let (db, org_id) = (app.db(), caller.org_id.as_str());
    let (from, to) = (month.start.timestamp_micros(), month.end.timestamp_micros());
    let spend = spend(app, org_id, month).await?;
    let [
        mut operations,
        mut extractors,
        mut namespaces,
        mut retrievers,
    ]: [Sums; 4] = Default::default();
    for (name, usd) in [
        ("ingestion", spend.ingestion_usd),
        ("search", spend.search_usd),
        ("storage", spend.storage_usd),
    ] {
        operations.add(name, usd);
    }
    add_ingestion(app, org_id, (from, to), &mut namespaces, &mut extractors).await?;
    for (namespace_id, retriever_id, searches) in
        store::searches_by_retriever(db, org_id, from, to).await?
    {
        let usd = float(searches) * card::QUERY_USD;
        namespaces.add(&namespace_id, usd);
        retrievers.add(&retriever_id, usd);
    }
    Ok(UsageBreakdownResponse {
        billing_month: month.start.format("%Y-%m").to_string(),
        total_credits: credits(spend.total_usd),
        total_cost_usd: spend.total_usd,
        by_operation: operations.credits(),
        by_extractor: extractors.credits(),
        by_namespace: namespaces.credits(),
        by_retriever: retrievers.credits(),
        period_start: month.start,
        period_end: month.end,
    })
}

/// What namespaces paid for objects, and the extractors of their collections. An object that fills several collections is paid
/// for once, and each time that it is processed: the collections of a namespace share what it paid.
async fn add_ingestion(
    app: &App,
    org_id: &str,
    (from, to): (i64, i64),
    namespaces: &mut Sums,
    extractors: &mut Sums,
) -> Result<()> {
    let paid = store::processed_by_namespace(app.db(), org_id, from, to).await?;
    let paid: HashMap<String, i64> = paid.into_iter().collect();
    for (namespace_id, objects) in &paid {
        namespaces.add(namespace_id, float(*objects) * card::OBJECT_USD);
    }
    let known = collections(app, org_id).await?;
    let processed = store::processed_by_collection(app.db(), org_id, from, to).await?;
    let mut filled: HashMap<&str, i64> = HashMap::new();
    for (namespace_id, _, objects) in &processed {
        *filled.entry(namespace_id).or_default() += objects;
    }
    for (namespace_id, collection_id, objects) in &processed {
        if let Some(extractor) = known.get(collection_id) {
            let all = filled.get(namespace_id.as_str()).copied().unwrap_or(1);
            let own = paid.get(namespace_id).copied().unwrap_or_default();
            // What filled collections that are gone is nobody's, nor what filled none.
            let share = (float(own) / float(all.max(1))).min(1.0);
            extractors.add(extractor, float(*objects) * share * card::OBJECT_USD);
        }
    }
    Ok(())
}

/// The extractor of every collection of the organization.
async fn collections(app: &App, org_id: &str) -> Result<HashMap<String, String>> {
    let mut known = HashMap::new();
    for namespace in NAMESPACES.all(app.db(), org_id).await? {
        let told = |record: Record<CollectionResponse>| {
            let extractor = record.feature_extractor.feature_extractor_name.clone();
            (record.id, extractor)
        };
        let all = COLLECTIONS.all(app.db(), &namespace.id).await?;
        known.extend(all.into_iter().map(told));
    }
    Ok(known)
}
