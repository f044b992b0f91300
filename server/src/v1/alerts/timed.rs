//! Alerts that look by the clock: by their own mode, because a collection applies them so, and because they are to look again.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use loupe_wire::{AlertExecutionMode, AlertSource, TaskType, Value};
use serde_json::json;

use super::{
    Alert, again,
    evaluation::Cause,
    ingest::{inputs, look_all, needs_document, watchers},
    store::{self, ALERTS},
};
use crate::{
    app::App,
    error::Result,
    jobs::Claim,
    v1::{
        collections::COLLECTIONS,
        tasks::{self, NewTask},
    },
};

/// The queue's word for alerts that look by the clock.
pub const CLOCK: &str = "alert_clock";

/// Microseconds between two moments of the clock.
pub(super) fn period(app: &App) -> i64 {
    let seconds = i64::try_from(app.config().jobs.alert_seconds.max(1)).unwrap_or(300);
    seconds.saturating_mul(1_000_000)
}

/// The number of the moment that was last.
pub(super) fn moment(app: &App) -> i64 {
    app.clock().micros() / period(app)
}

/// Leaves a task for each organization with alerts that look by the clock, once for each of its moments.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    let (now, moment) = (app.clock().micros(), moment(app));
    if app.alert_moment.load(Ordering::Relaxed) == moment {
        return Ok(());
    }
    for org_id in organizations(app).await? {
        // What one organization does not get this time is in no other's way.
        if let Err(error) = enqueue(app, &org_id, moment, now).await {
            tracing::warn!(%error, org_id, "alerts of an organization do not look at this moment");
        }
    }
    app.alert_moment.store(moment, Ordering::Relaxed);
    Ok(())
}

async fn enqueue(app: &App, org_id: &str, moment: i64, now: i64) -> Result<()> {
    if store::under_way(app.db(), org_id, CLOCK).await? {
        return Ok(());
    }
    let mut task = NewTask::work(
        org_id,
        "",
        TaskType::ApiRetrieversExecute,
        CLOCK,
        json!({ "moment": moment }),
    );
    task.namespace_id = None;
    task.parent_id = Some(org_id.to_owned());
    app.db()
        .write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }))
        .await?;
    app.work.notify_one();
    Ok(())
}

/// Those with an alert that looks by the clock, or is to look again.
async fn organizations(app: &App) -> Result<BTreeSet<String>> {
    let (mut timed, mut others) = (BTreeSet::new(), BTreeSet::new());
    for alert in store::everywhere(app.db()).await? {
        if is_timed(&alert) {
            timed.insert(alert.org_id);
        } else if alert.alert.enabled && alert.source() == AlertSource::Retriever {
            others.insert(alert.org_id);
        }
    }
    let again = again::due(app).await?.into_iter();
    timed.extend(again.map(|one| one.alert.org_id));
    for org_id in others {
        if !timed.contains(&org_id) && !applied(app, &org_id).await?.is_empty() {
            timed.insert(org_id);
        }
    }
    Ok(timed)
}

fn is_timed(alert: &Alert) -> bool {
    let mode = alert.mode();
    alert.alert.enabled
        && (mode == AlertExecutionMode::Scheduled
            || (alert.source() == AlertSource::System && mode != AlertExecutionMode::OnDemand))
}

/// Namespaces and collections that apply an alert by the clock with inputs that need no document. Those that need one wait for
/// what is written.
async fn applied(app: &App, org_id: &str) -> Result<Vec<(String, String)>> {
    let mut applied = Vec::new();
    for namespace_id in store::namespace_ids(app.db(), org_id).await? {
        for record in COLLECTIONS.all(app.db(), &namespace_id).await? {
            let mut applications = record.alert_applications.iter().flatten();
            let by_the_clock = applications.any(|application| {
                application.execution_mode == AlertExecutionMode::Scheduled
                    && !needs_document(&application.input_mappings)
            });
            if by_the_clock {
                applied.push((namespace_id.clone(), record.id));
            }
        }
    }
    Ok(applied)
}

/// Lets the alerts of an organization look that look by the clock. What a collection gives an alert to ask with comes in place
/// of its own inputs: two questions in turn would each be news to the other.
///
/// # Errors
/// One of them may do better later: the queue tries again those that have not looked yet.
pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let key = format!("clock:{}", claim.work.get("moment").unwrap_or(&Value::Null));
    let (mut looks, mut asked) = (Vec::new(), BTreeSet::new());
    for (namespace_id, collection_id) in applied(app, &claim.org_id).await? {
        for watcher in watchers(app, &claim.org_id, &namespace_id, &collection_id).await? {
            if !watcher.is_timed() {
                continue;
            }
            asked.insert(watcher.alert.id().to_owned());
            let cause = Cause {
                key: format!("{key}:{collection_id}"),
                collection_id: collection_id.clone(),
                inputs: inputs(app, &watcher.mappings, &Value::Null),
                ..Cause::default()
            };
            looks.push((watcher.owner, watcher.alert, cause));
        }
    }
    let mut owners = store::namespace_ids(app.db(), &claim.org_id).await?;
    owners.push(claim.org_id.clone());
    for owner in owners {
        for record in ALERTS.all(app.db(), &owner).await? {
            if is_timed(&record) && !asked.contains(&record.id) {
                let cause = Cause {
                    key: key.clone(),
                    ..Cause::default()
                };
                looks.push((owner.clone(), record.data.0, cause));
            }
        }
    }
    looks.extend(again::looks(app, &claim.org_id, &key).await?);
    look_all(app, claim, looks).await
}
