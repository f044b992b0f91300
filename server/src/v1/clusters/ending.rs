//! How an execution ends: completed, failed or canceled, each told once.

use loupe_wire::{
    ClusterRunStatus, ClusterStats, NamespaceOperation, NotificationPriority, NotificationType,
    Object, TaskStatusEnum, Value,
};
use serde_json::json;

use super::{
    members,
    running::amend,
    store::{self, Run, Stored},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{Claim, text},
    v1::{
        namespaces::push_event,
        notifications::{self, Notice},
        tasks,
    },
};

pub(super) fn payload(run: &Run) -> Value {
    json!({
        "cluster_id": run.result.cluster_id, "run_id": run.result.run_id, "task_id": run.task_id,
        "status": tasks::name_of(run.result.status), "num_clusters": run.result.num_clusters,
        "num_points": run.result.num_points, "error": run.result.error_message,
    })
}

/// Ends the execution as completed, in one transaction with what the cluster tells of it; nothing where it was canceled.
pub(super) async fn finish(
    app: &App,
    scope: &Scope<Write>,
    mut run: Run,
    seconds: f64,
) -> Result<Option<Run>> {
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    run.result.status = ClusterRunStatus::Completed;
    run.result.completed_at = Some(clock::time(now));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::advance(tx, &namespace_id, &run, now).await? {
                    return Ok(None);
                }
                amend(tx, &namespace_id, &run.result.cluster_id, now, |stored| {
                    take_over(stored, &namespace_id, &run, seconds, now);
                })
                .await?;
                let kind = "cluster.execution.completed";
                push_event(tx, &org_id, &namespace_id, kind, payload(&run), now).await?;
                Ok(Some(run))
            })
        })
        .await
}

/// Has a cluster tell what its newest execution found.
fn take_over(stored: &mut Stored, namespace_id: &str, run: &Run, seconds: f64, now: i64) {
    let (told, model, result) = (&mut stored.told, &mut stored.model, &run.result);
    let relations = result.hierarchy_relationships.iter();
    let relations = relations.filter_map(|one| serde_json::to_value(one).ok());
    let relations: Vec<Object> = relations
        .filter_map(|one| one.as_object().cloned())
        .collect();
    told.status = TaskStatusEnum::Completed;
    told.num_clusters = Some(result.num_clusters);
    told.hierarchy_detected = !relations.is_empty();
    told.hierarchy_relationships = (!relations.is_empty()).then_some(relations);
    told.num_documents_clustered = result.vectors_clustered;
    told.execution_time_seconds = Some(seconds);
    told.quality_metrics = match serde_json::to_value(&result.metrics) {
        Ok(Value::Object(metrics)) => metrics,
        _ => Object::new(),
    };
    told.last_executed_at = Some(clock::time(now));
    told.completed_at = Some(clock::time(now));
    told.llm_labeling_errors
        .clone_from(&result.llm_labeling_errors);
    model.num_clusters = Some(result.num_clusters);
    model.members_key = Some(members::key(
        namespace_id,
        &result.cluster_id,
        &result.run_id,
    ));
    let metrics = result.metrics.as_ref();
    model.cluster_stats = Some(ClusterStats {
        num_clusters: result.num_clusters,
        noise_points: result.pipeline_drop,
        silhouette_score: metrics.and_then(|one| one.silhouette_score),
        ..Default::default()
    });
}

/// Ends an execution that cannot be done, and tells people of it.
///
/// # Errors
/// The database does not answer.
pub async fn fail(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    cluster_id: &str,
    run_id: &str,
    reason: &str,
) -> Result<()> {
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let (cluster_id, run_id, reason) =
        (cluster_id.to_owned(), run_id.to_owned(), reason.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut run = match store::find_in(tx, &namespace_id, &cluster_id, &run_id).await {
                    Ok(run) => run,
                    Err(error) if error.is_not_found() => return Ok(()),
                    Err(error) => return Err(error),
                };
                run.result.status = ClusterRunStatus::Failed;
                run.result.error_message = Some(reason.clone());
                run.result.completed_at = Some(clock::time(now));
                if !store::advance(tx, &namespace_id, &run, now).await? {
                    return Ok(());
                }
                let mut name = cluster_id.clone();
                amend(tx, &namespace_id, &cluster_id, now, |stored| {
                    name.clone_from(&stored.told.cluster_name);
                    stored.told.status = TaskStatusEnum::Failed;
                    stored.told.error = Some(reason.clone());
                })
                .await?;
                let kind = "cluster.execution.failed";
                push_event(tx, &org_id, &namespace_id, kind, payload(&run), now).await?;
                let notice = Notice {
                    kind: NotificationType::PipelineFailure,
                    priority: NotificationPriority::High,
                    title: format!("Cluster {name} could not be executed"),
                    content: format!("{reason}. Execute it again when the cause is gone; the execution before stays as it is."),
                    about: json!({
                        "namespace_id": namespace_id, "cluster_id": cluster_id, "run_id": run_id,
                        "task_id": run.task_id,
                    }),
                };
                notifications::notify(tx, &org_id, notice, now).await
            })
        })
        .await
}

/// Ends the execution of a task that was given up.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let (cluster_id, run_id) = (text(claim, "cluster_id"), text(claim, "run_id"));
    fail(app, &claim.org_id, namespace_id, cluster_id, run_id, reason).await
}

/// Cancels an execution that waits or goes on: its worker stops within a second and writes nothing more.
///
/// # Errors
/// 409 for one that has ended.
pub async fn cancel(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    run_id: &str,
) -> Result<Run> {
    let stored = super::find(app, scope, identifier, NamespaceOperation::CancelJob).await?;
    let cluster_id = stored.told.cluster_id.unwrap_or_default();
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let (run_id, now) = (run_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut run = store::find_in(tx, &namespace_id, &cluster_id, &run_id).await?;
                if !end_canceled(tx, &namespace_id, &mut run, now).await? {
                    let message = "the execution has ended already";
                    return Err(ApiError::conflict("", message)
                        .with("status", tasks::name_of(run.result.status)));
                }
                amend(tx, &namespace_id, &cluster_id, now, |stored| {
                    stored.told.status = TaskStatusEnum::Canceled;
                })
                .await?;
                let kind = "cluster.updated";
                push_event(tx, &org_id, &namespace_id, kind, payload(&run), now).await?;
                Ok(run)
            })
        })
        .await
}

/// Whether the execution had not ended. Its task ends with it, unless it is a trigger's.
pub async fn end_canceled(
    tx: &mut Tx,
    namespace_id: &str,
    run: &mut Run,
    now: i64,
) -> Result<bool> {
    if !run.is_active() {
        return Ok(false);
    }
    run.result.status = ClusterRunStatus::Canceled;
    run.result.completed_at = Some(clock::time(now));
    if !store::advance(tx, namespace_id, run, now).await? {
        return Ok(false);
    }
    if !run.triggered {
        tasks::store::change(tx, &run.task_id, TaskStatusEnum::Canceled, now, |_| ()).await?;
    }
    Ok(true)
}
