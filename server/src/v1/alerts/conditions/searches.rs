//! Conditions of retrievers, read from the history of their executions.

use std::collections::BTreeMap;

use loupe_wire::{Object, Value};

use super::{HOUR, Look};
use crate::{args, db::Json, error::Result, v1::retrievers::AT_FAULT, words::counted};

crate::sql! {
    const EXECUTIONS = "SELECT retriever_id, created_at, data FROM executions WHERE namespace_id = $1 AND created_at >= $2 AND (status <> 'failed' OR CAST($3 AS BIGINT) = 1) ORDER BY created_at DESC LIMIT 5000";
    // As the engine says it of endpoints that refuse.
    const REFUSED_OBJECTS = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id WHERE b.namespace_id = $1 AND b.updated_at >= $2 AND o.status = 'FAILED' AND o.updated_at >= $2 AND (o.error LIKE '%answered 429%' OR o.error LIKE '%answered 402%')";
}

/// Executions that say something about a retriever.
const FEW: usize = 10;

/// Which executions are looked at.
#[derive(Clone, Copy)]
enum Ended {
    Answered,
    Anyhow,
}

/// Executions of a namespace's retrievers since a moment, newest first, by retriever; of the last 5,000.
async fn executions(
    look: &Look<'_>,
    namespace_id: &str,
    since: i64,
    ended: Ended,
) -> Result<BTreeMap<String, Vec<(i64, Object)>>> {
    let rows: Vec<(String, i64, Json<Object>)> = look
        .app
        .db()
        .all(EXECUTIONS, args![namespace_id, since, ended as i64])
        .await?;
    let mut by_retriever: BTreeMap<String, Vec<(i64, Object)>> = BTreeMap::new();
    for (retriever_id, at, data) in rows {
        if look.is_meant("retriever_id", &retriever_id) {
            by_retriever
                .entry(retriever_id)
                .or_default()
                .push((at, data.0));
        }
    }
    Ok(by_retriever)
}

fn number(execution: &Object, name: &str) -> f64 {
    execution
        .get(name)
        .and_then(Value::as_f64)
        .unwrap_or_default()
}

/// The middle of some durations.
fn median(mut durations: Vec<f64>) -> f64 {
    durations.sort_by(f64::total_cmp);
    durations
        .get(durations.len() / 2)
        .copied()
        .unwrap_or_default()
}

/// The median of the last hour against that of the day before it.
pub(super) async fn latency(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let most = look.number("latency_multiplier", 2.0);
    let hour = look.now - HOUR;
    let since = look.now - 25 * HOUR;
    for (retriever_id, all) in executions(look, namespace_id, since, Ended::Answered).await? {
        let (last, before): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at >= hour);
        if last.len() < FEW || before.len() < FEW {
            continue;
        }
        let [now, then] = [last, before].map(|side| {
            median(
                side.iter()
                    .map(|(_, data)| number(data, "duration_ms"))
                    .collect(),
            )
        });
        if now > then * most {
            let text = format!(
                "retriever {retriever_id} takes {now:.0} ms, {:.1} times what it took",
                now / then.max(0.001)
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}

/// Searches of the last hour that found nothing.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) async fn no_results(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let most = look.number("drop_fraction", 0.5);
    let since = look.now - HOUR;
    for (retriever_id, all) in executions(look, namespace_id, since, Ended::Answered).await? {
        let nothing = all
            .iter()
            .filter(|(_, data)| number(data, "total_returned") == 0.0)
            .count();
        if all.len() >= FEW && nothing as f64 >= most * all.len() as f64 {
            let text = format!(
                "{nothing} of the {} searches of retriever {retriever_id} within the last hour found nothing",
                all.len()
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}

/// Models and services elsewhere that refused for a quota or a bill, within the last hour: objects that failed of it, and
/// searches that failed of it or went on without.
pub(super) async fn refused(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let since = look.now - HOUR;
    let objects = look
        .app
        .db()
        .number(REFUSED_OBJECTS, args![namespace_id, since])
        .await?;
    if objects > 0 {
        let text = format!(
            "{} of {namespace_id} failed because a model's service refused: its quota is used up",
            counted(objects, "object")
        );
        look.find(namespace_id, text);
    }
    for (retriever_id, all) in executions(look, namespace_id, since, Ended::Anyhow).await? {
        let refused = all.iter().filter(|(_, data)| names_refusal(data)).count();
        if refused > 0 {
            let text = format!(
                "{refused} searches of retriever {retriever_id} were refused by a model's service: its quota is used up"
            );
            look.find(retriever_id, text);
        }
    }
    Ok(())
}

fn names_refusal(execution: &Object) -> bool {
    let warnings = execution.get("warnings").and_then(Value::as_array);
    // What a question brings on itself may repeat its words.
    let own = execution.get(AT_FAULT) != Some(&Value::Bool(false));
    warnings
        .into_iter()
        .flatten()
        .chain(execution.get("error").filter(|_| !own))
        .filter_map(Value::as_str)
        .any(|text| text.contains("answered 429") || text.contains("answered 402"))
}
