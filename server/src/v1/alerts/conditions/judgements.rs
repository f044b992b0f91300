//! Conditions of what people and datasets say about retrievers.

use std::collections::BTreeMap;

use loupe_wire::{EvaluationRecord, InteractionType};

use super::{HOUR, Look};
use crate::{
    args,
    db::Json,
    error::Result,
    v1::interactions::{KINDS, bit},
};

crate::sql! {
    const EVALUATIONS = "SELECT retriever_id, dataset_id, data FROM evaluations WHERE namespace_id = $1 AND status = 'completed' ORDER BY created_at DESC, evaluation_id LIMIT 500";
    const SEARCHES = "SELECT retriever_id, CAST(SUM(CASE WHEN created_at >= $3 THEN 1 ELSE 0 END) AS BIGINT), CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1 AND created_at >= $2 AND status <> 'failed' GROUP BY retriever_id";
    const INTERACTIONS = "SELECT retriever_id, CAST(SUM(CASE WHEN created_at >= $3 THEN 1 ELSE 0 END) AS BIGINT), CAST(COUNT(*) AS BIGINT) FROM interactions WHERE namespace_id = $1 AND created_at >= $2 AND (kinds & CAST($4 AS BIGINT)) <> 0 GROUP BY retriever_id";
}

const DAY: i64 = 24 * HOUR;

/// Searches that say something about a retriever.
const FEW: i64 = 20;

/// Something that is counted, of the last day and of the week before it.
type Counts = BTreeMap<String, (i64, i64)>;

fn counts(rows: Vec<(String, i64, i64)>) -> Counts {
    let split = |(id, day, all): (String, i64, i64)| (id, (day, all - day));
    rows.into_iter().map(split).collect()
}

async fn searches(look: &Look<'_>, namespace_id: &str) -> Result<Counts> {
    let (week, day) = (look.now - 8 * DAY, look.now - DAY);
    let rows = look
        .app
        .db()
        .all(SEARCHES, args![namespace_id, week, day])
        .await?;
    let mut found = counts(rows);
    found.retain(|id, _| look.is_meant("retriever_id", id));
    Ok(found)
}

/// Interactions of these kinds.
async fn interactions(
    look: &Look<'_>,
    namespace_id: &str,
    kinds: &[InteractionType],
) -> Result<Counts> {
    let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
    let args = args![namespace_id, look.now - 8 * DAY, look.now - DAY, bits];
    Ok(counts(look.app.db().all(INTERACTIONS, args).await?))
}

/// Searches of the last day, and nobody did anything with what they found. That a result was on the screen is nothing done.
pub(super) async fn no_interactions(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let mut acts = KINDS.to_vec();
    acts.retain(|kind| *kind != InteractionType::Impression);
    let acts = interactions(look, namespace_id, &acts).await?;
    for (retriever_id, (day, _)) in searches(look, namespace_id).await? {
        let done = acts.get(&retriever_id).map_or(0, |(day, _)| *day);
        if day >= FEW && done == 0 {
            let text = format!(
                "{day} searches of retriever {retriever_id} within a day, and nobody opened a result"
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}

/// Clicks a search: the last day against the week before.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) async fn alignment(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let most = look.number("drop_fraction", 0.3);
    let clicks = interactions(look, namespace_id, &[InteractionType::Click]).await?;
    for (retriever_id, (day, before)) in searches(look, namespace_id).await? {
        let (now, then) = clicks.get(&retriever_id).copied().unwrap_or_default();
        if day < FEW || before < FEW || then == 0 {
            continue;
        }
        let (now, then) = (now as f64 / day as f64, then as f64 / before as f64);
        if now < then * (1.0 - most) {
            let text = format!(
                "people open {now:.2} results a search of retriever {retriever_id}, {then:.2} in the week before"
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}

/// A metric of the last evaluation against the one before it, over the same dataset.
pub(super) async fn accuracy(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let most = look.number("drop_fraction", 0.1);
    let rows: Vec<(String, String, Json<EvaluationRecord>)> =
        look.app.db().all(EVALUATIONS, args![namespace_id]).await?;
    let mut runs: BTreeMap<(String, String), Vec<EvaluationRecord>> = BTreeMap::new();
    for (retriever_id, dataset_id, run) in rows {
        if look.is_meant("retriever_id", &retriever_id) {
            runs.entry((retriever_id, dataset_id))
                .or_default()
                .push(run.0);
        }
    }
    for ((retriever_id, _), runs) in runs {
        let [last, before, ..] = runs.as_slice() else {
            continue;
        };
        let (Some(now), Some(then)) = (&last.overall_metrics, &before.overall_metrics) else {
            continue;
        };
        let worst = then
            .iter()
            .filter_map(|(metric, then)| Some((metric, *then, *now.get(metric)?)))
            .find(|(_, then, now)| *now < then * (1.0 - most));
        if let Some((metric, then, now)) = worst {
            let text = format!(
                "{metric} of retriever {retriever_id} over {} fell from {then:.3} to {now:.3}",
                last.dataset_name
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}
