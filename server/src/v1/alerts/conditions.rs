//! Conditions of the server itself, measured on its real state. What each means, its window and its defaults are in
//! docs/alerts.md.

mod batches;
mod collections;
mod judgements;
mod searches;
mod written;

use loupe_wire::{Object, SystemCondition, SystemConditionType, Value};

use crate::{
    app::App,
    args,
    error::{Result, Violation},
    v1::{billing, organizations},
    words::{counted, said},
};

crate::sql! {
    const WAITING = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE org_id = $1 AND kind IS NOT NULL AND status = 'QUEUED' AND created_at < $2 AND run_after < $2";
    const FAILED_TASKS = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE org_id = $1 AND status = 'FAILED' AND ended_at >= $2 AND ended_at < $3";
    const FAILED_OBJECTS = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id WHERE b.org_id = $1 AND o.status = 'FAILED' AND o.updated_at >= $2 AND o.updated_at < $3";
}

pub(super) const MINUTE: i64 = 60_000_000;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// Parameters that narrow a condition to one resource.
const IDS: [&str; 2] = ["collection_id", "retriever_id"];

/// Parameters that the interface has for conditions, without saying for which: any may be sent.
const OF_ANY: [&str; 4] = [
    "stall_minutes",
    "latency_multiplier",
    "error_rate_threshold",
    "drop_fraction",
];

/// Parameters that a condition looks at: ids, and numbers above 0.
const fn parameters(kind: SystemConditionType) -> &'static [&'static str] {
    use SystemConditionType as Is;
    match kind {
        Is::CollectionEmpty => &["collection_id"],
        Is::CollectionStale => &["stall_minutes", "collection_id"],
        Is::CollectionDrift => &["drift_threshold", "collection_id"],
        Is::BatchStalled | Is::IngestStalled | Is::TaskQueueDegraded => &["stall_minutes"],
        Is::BatchErrorRate => &["error_rate_threshold"],
        Is::RetrieverLatency => &["latency_multiplier", "retriever_id"],
        Is::RetrieverNoResults | Is::RetrieverAlignmentRegression | Is::RetrieverAccuracy => {
            &["drop_fraction", "retriever_id"]
        }
        Is::RetrieverNoInteractions | Is::ProviderQuotaExhausted => &["retriever_id"],
        Is::BudgetThreshold => &["budget_fraction"],
        Is::BatchFailed | Is::DlqGrowth => &[],
    }
}

/// Findings of one look; more of them are counted no further.
const MOST: usize = 50;

/// Something that a condition found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// What it is about.
    pub id: String,
    /// One sentence, without a full stop.
    pub text: String,
    /// Where it is; none of what is the organization's.
    pub namespace_id: Option<String>,
}

/// Refuses parameters that the condition does not look at, and that are none of the interface.
pub(super) fn check(condition: &SystemCondition) -> Result<()> {
    let accepted = parameters(condition.r#type);
    for (name, value) in &condition.params {
        if !accepted.contains(&name.as_str()) && !OF_ANY.contains(&name.as_str()) {
            let msg = match accepted {
                [] => "this condition has no parameters".to_owned(),
                some => format!("this condition has the parameters {}", some.join(", ")),
            };
            return Err(fault(name, msg, value.clone()));
        }
        let is_id = IDS.contains(&name.as_str());
        let is_good =
            |number: f64| number > 0.0 && number <= 1e9 && (!is_share(name) || number <= 1.0);
        let good = match is_id {
            true => value.is_string(),
            false => value.as_f64().is_some_and(is_good),
        };
        if !good {
            let msg = match is_id {
                true => "an id is a text",
                false if is_share(name) => "a share is above 0 and at most 1",
                false => "must be above 0",
            };
            return Err(fault(name, msg.into(), value.clone()));
        }
    }
    Ok(())
}

fn is_share(name: &str) -> bool {
    matches!(
        name,
        "error_rate_threshold" | "drop_fraction" | "budget_fraction"
    )
}

fn fault(name: &str, msg: String, input: Value) -> crate::error::ApiError {
    let path = ["system_condition", "params", name];
    Violation::body(&path, "value_error", msg, input).into()
}

/// One measurement of a condition, over one namespace or several.
pub(super) struct Look<'a> {
    pub(super) app: &'a App,
    pub(super) org_id: &'a str,
    condition: &'a SystemCondition,
    /// The namespace that is being measured.
    within: Option<String>,
    pub(super) now: i64,
    pub(super) findings: Vec<Finding>,
    /// What the next look is held against.
    pub(super) baseline: Object,
}

impl<'a> Look<'a> {
    pub(super) fn new(
        app: &'a App,
        org_id: &'a str,
        condition: &'a SystemCondition,
        now: i64,
        baseline: Object,
    ) -> Self {
        Self {
            app,
            org_id,
            condition,
            within: None,
            now,
            findings: Vec::new(),
            baseline,
        }
    }

    pub(super) fn number(&self, name: &str, default: f64) -> f64 {
        let sent = self.condition.params.get(name);
        sent.and_then(Value::as_f64).unwrap_or(default)
    }

    /// The moment that lies `stall_minutes` back.
    #[expect(clippy::cast_possible_truncation, reason = "bounded when it was sent")]
    pub(super) fn stalled(&self, default_minutes: f64) -> i64 {
        let minutes = self.number("stall_minutes", default_minutes);
        self.now - (minutes * MINUTE as f64) as i64
    }

    /// Whether a resource is one that the condition looks at.
    pub(super) fn is_meant(&self, name: &str, id: &str) -> bool {
        let wanted = self.condition.params.get(name).and_then(Value::as_str);
        wanted.is_none_or(|wanted| wanted == id)
    }

    pub(super) fn find(&mut self, id: impl Into<String>, text: impl Into<String>) {
        if self.findings.len() < MOST {
            let (id, text) = (id.into(), text.into());
            self.findings.push(Finding {
                id,
                text,
                namespace_id: self.within.clone(),
            });
        }
    }

    /// What is measured in each namespace.
    pub(super) async fn measure(&mut self, namespace_id: &str) -> Result<()> {
        use SystemConditionType as Is;
        self.within = Some(namespace_id.to_owned());
        match self.condition.r#type {
            Is::CollectionEmpty => collections::empty(self, namespace_id).await,
            Is::CollectionStale => collections::stale(self, namespace_id).await,
            Is::CollectionDrift => collections::drift(self, namespace_id).await,
            Is::BatchFailed => batches::failed(self, namespace_id).await,
            Is::BatchStalled => batches::stalled(self, namespace_id).await,
            Is::BatchErrorRate => batches::error_rate(self, namespace_id).await,
            Is::IngestStalled => batches::ingest_stalled(self, namespace_id).await,
            Is::RetrieverLatency => searches::latency(self, namespace_id).await,
            Is::RetrieverNoResults => searches::no_results(self, namespace_id).await,
            Is::ProviderQuotaExhausted => searches::refused(self, namespace_id).await,
            Is::RetrieverNoInteractions => judgements::no_interactions(self, namespace_id).await,
            Is::RetrieverAlignmentRegression => judgements::alignment(self, namespace_id).await,
            Is::RetrieverAccuracy => judgements::accuracy(self, namespace_id).await,
            // Of the organization.
            Is::TaskQueueDegraded | Is::DlqGrowth | Is::BudgetThreshold => Ok(()),
        }
    }

    /// What is measured once for the organization.
    pub(super) async fn measure_organization(&mut self) -> Result<()> {
        self.within = None;
        match self.condition.r#type {
            SystemConditionType::TaskQueueDegraded => self.queue_degraded().await,
            SystemConditionType::DlqGrowth => self.failures_grow().await,
            SystemConditionType::BudgetThreshold => self.budget().await,
            _ => Ok(()),
        }
    }

    async fn queue_degraded(&mut self) -> Result<()> {
        let args = args![self.org_id, self.stalled(15.0)];
        let waiting = self.app.db().number(WAITING, args).await?;
        if waiting > 0 {
            let minutes = self.number("stall_minutes", 15.0);
            let text = format!(
                "{} for longer than {}",
                said(waiting, "task", ("waits", "wait")),
                counted(minutes, "minute")
            );
            self.find(self.org_id, text);
        }
        Ok(())
    }

    /// Work that was given up: within the last hour more than within the hour before.
    async fn failures_grow(&mut self) -> Result<()> {
        let mut given_up = [0, 0];
        for (count, back) in given_up.iter_mut().zip([1, 2]) {
            let (from, to) = (self.now - back * HOUR, self.now - (back - 1) * HOUR);
            for sql in [FAILED_TASKS, FAILED_OBJECTS] {
                *count += self
                    .app
                    .db()
                    .number(sql, args![self.org_id, from, to])
                    .await?;
            }
        }
        let [last, before] = given_up;
        if last > before {
            let text = format!(
                "{last} tasks and objects were given up within the last hour, {before} in the hour before"
            );
            self.find(self.org_id, text);
        }
        Ok(())
    }

    async fn budget(&mut self) -> Result<()> {
        let share = self.number("budget_fraction", 0.8);
        let organization = organizations::find(self.app.db(), self.org_id).await?;
        for spent in billing::of_limits(self.app, &organization).await? {
            if spent.spent_usd >= spent.limit_usd * share {
                let text = format!(
                    "{:.2} of {:.2} dollars of {} are spent",
                    spent.spent_usd, spent.limit_usd, spent.resource
                );
                self.find(self.org_id, text);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_known_and_in_their_bounds() {
        let (stalled, stale) = ("batch_stalled", "collection_stale");
        for (kind, params, good) in [
            (stalled, json!({}), true),
            (
                stale,
                json!({"stall_minutes": 5, "collection_id": "col_1"}),
                true,
            ),
            (stale, json!({"collection_id": 1}), false),
            (stale, json!({"retriever_id": "ret_1"}), false),
            (stalled, json!({"stall_minutes": 0}), false),
            (stalled, json!({"stall_minutes": "often"}), false),
            (stalled, json!({"drop_fraction": 0.5}), true),
            (stalled, json!({"drift_threshold": 0.5}), false),
            (stalled, json!({"mood": 1}), false),
            ("retriever_accuracy", json!({"drop_fraction": 1}), true),
            ("retriever_accuracy", json!({"drop_fraction": 1.5}), false),
            ("batch_failed", json!({"stall_minutes": 5}), true),
            ("batch_failed", json!({"stall_minutes": 0}), false),
            ("batch_failed", json!({"collection_id": "col_1"}), false),
        ] {
            let condition: SystemCondition =
                serde_json::from_value(json!({"type": kind, "params": params})).unwrap();
            assert_eq!(check(&condition).is_ok(), good, "{condition:?}");
        }
    }
}
