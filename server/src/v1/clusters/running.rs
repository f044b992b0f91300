//! Executions: begun one at a time, computed, told, and ended once.

use std::time::Instant;

use loupe_wire::{
    AuditAction, ClusterRunStatus, ClusterStats, ExecuteClusterByIdRequest, NamespaceOperation,
    NotificationPriority, NotificationType, ResourceType, TaskResponse, TaskStatusEnum, TaskType,
    Value,
};
use serde_json::json;

use super::{
    computing::{How, Job, compute},
    config,
    members::{self, Members},
    reading,
    store::{self, CLUSTERS, Run, Stored},
    telling,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    jobs::{Claim, text},
    limits::quota,
    v1::{
        audit::{self, Change},
        namespaces::push_event,
        notifications::{self, Notice},
        removal,
        tasks::{self, NewTask},
    },
};

/// The queue's word for an execution.
pub const RUN: &str = "cluster_run";

/// Executions of one cluster that are kept.
pub const MAX_RUNS: i64 = 100;

/// Begins an execution: a task does it.
///
/// # Errors
/// 409 while another one goes on.
pub async fn execute(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: ExecuteClusterByIdRequest,
) -> Result<TaskResponse> {
    quota::check_spend(app, &scope.caller.org_id).await?;
    let stored = super::find(app, scope, identifier, NamespaceOperation::ExecuteJob).await?;
    config::check_request(&request, &stored.model)?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let cluster_id = stored.told.cluster_id.unwrap_or_default();
                let run_id = id::new("run_");
                let work = json!({ "cluster_id": cluster_id, "run_id": run_id });
                let kind = TaskType::EngineClusterBuild;
                let mut task = NewTask::work(&caller.org_id, &namespace_id, kind, RUN, work);
                task.inputs = vec![cluster_id.clone().into()];
                task.description = format!("cluster {}", stored.told.cluster_name);
                let data = &mut task.additional_data;
                data.insert("cluster_id".into(), cluster_id.clone().into());
                data.insert("run_id".into(), run_id.clone().into());
                // The lock comes first: whoever waits for it begins nothing beside this one.
                store::lock(tx, &namespace_id, &cluster_id, now).await?;
                let task = tasks::insert(tx, task, now).await?;
                let begin = Begin {
                    cluster_id: &cluster_id,
                    run_id,
                    task_id: &task.task_id,
                    triggered: false,
                    request,
                };
                begin.write(tx, &caller, &namespace_id, now).await?;
                Ok(task)
            })
        })
        .await?;
    app.work.notify_one();
    Ok(task)
}

/// An execution that begins.
pub struct Begin<'a> {
    pub cluster_id: &'a str,
    pub run_id: String,
    pub task_id: &'a str,
    /// A trigger's task does it, and ends as the trigger says.
    pub triggered: bool,
    pub request: ExecuteClusterByIdRequest,
}

impl Begin<'_> {
    /// Writes it down, in the transaction that holds the cluster's lock. What a task began before it was cut off is taken up
    /// again.
    ///
    /// # Errors
    /// 409 while another one goes on.
    pub async fn write(
        self,
        tx: &mut Tx,
        caller: &Caller,
        namespace_id: &str,
        now: i64,
    ) -> Result<Run> {
        if let Some(active) = store::active(tx, namespace_id, self.cluster_id).await? {
            if active.task_id == self.task_id {
                return Ok(active);
            }
            let message = "the cluster is being executed: wait for it, or cancel it";
            return Err(ApiError::conflict("cluster_run_in_progress", message)
                .with("run_id", active.result.run_id.as_str()));
        }
        let mut run = Run {
            task_id: self.task_id.to_owned(),
            triggered: self.triggered,
            ..Default::default()
        };
        run.result.run_id = self.run_id;
        run.result.cluster_id = self.cluster_id.to_owned();
        run.result.created_at = clock::time(now);
        run.result.mode = Some(self.request.mode);
        run.request = self.request;
        store::insert(tx, namespace_id, &run, now).await?;
        forget_old(tx, caller, namespace_id, self.cluster_id, now).await?;
        let run_id = run.result.run_id.clone();
        amend(tx, namespace_id, self.cluster_id, now, |stored| {
            stored.told.status = TaskStatusEnum::Queued;
            stored.told.last_execution_task_id = Some(self.task_id.to_owned());
            stored.told.last_run_id = Some(run_id.clone());
            stored.told.error = None;
        })
        .await?;
        let change = Change {
            action: AuditAction::ClusterExecuted,
            resource: (ResourceType::Cluster, self.cluster_id),
            changes: json!({ "run_id": run_id }),
        };
        audit::record(tx, caller, change, now).await?;
        Ok(run)
    }
}

/// Removes executions beyond those that are kept, with their files.
async fn forget_old(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    cluster_id: &str,
    now: i64,
) -> Result<()> {
    let old = store::list_in(tx, namespace_id, cluster_id, MAX_RUNS + 20).await?;
    let kept = usize::try_from(MAX_RUNS).unwrap_or(usize::MAX);
    let mut files = Vec::new();
    for run in old.into_iter().skip(kept).filter(|run| !run.is_active()) {
        let run_id = &run.result.run_id;
        store::delete(tx, namespace_id, cluster_id, run_id).await?;
        files.push(members::key(namespace_id, cluster_id, run_id));
    }
    removal::enqueue(
        tx,
        &caller.org_id,
        namespace_id,
        removal::Gone::files(files),
        now,
    )
    .await
}

/// Changes what is kept of a cluster; one that is gone stays gone.
async fn amend(
    tx: &mut Tx,
    namespace_id: &str,
    cluster_id: &str,
    now: i64,
    edit: impl FnOnce(&mut Stored) + Send,
) -> Result<()> {
    let mut stored = match CLUSTERS.find_in(tx, namespace_id, cluster_id).await {
        Ok(found) => found.data.0,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    edit(&mut stored);
    stored.told.updated_at = Some(clock::time(now));
    stored.model.updated_at = stored.told.updated_at;
    stored.model.status = stored.told.status;
    stored
        .model
        .last_run_id
        .clone_from(&stored.told.last_run_id);
    stored
        .model
        .task_id
        .clone_from(&stored.told.last_execution_task_id);
    let name = stored.told.cluster_name.clone();
    CLUSTERS
        .update(tx, namespace_id, cluster_id, &name, now, &stored)
        .await
}

/// Runs the task of an execution.
///
/// # Errors
/// What may pass is tried again; the rest ends the execution.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let scope: Scope<Write> = Scope::internal(Caller::system(&claim.org_id), namespace_id);
    let (cluster_id, run_id) = (text(claim, "cluster_id"), text(claim, "run_id"));
    let found = store::find(app.db(), &scope.namespace_id, cluster_id, run_id).await;
    let run = match found {
        Ok(run) => run,
        // The cluster was removed, and its task with it.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    let done = match run.is_active() {
        true => perform(app, &scope, run, Some(claim)).await?,
        // Ended by a worker that was cut off before it could say so.
        false => Some(run),
    };
    match done {
        Some(run) if run.result.status == ClusterRunStatus::Completed => {
            tasks::succeed(app, claim, vec![output(&run)]).await
        }
        _ => Ok(()),
    }
}

/// What a task tells of an execution.
pub fn output(run: &Run) -> Value {
    json!({
        "cluster_id": run.result.cluster_id, "run_id": run.result.run_id,
        "num_clusters": run.result.num_clusters, "num_points": run.result.num_points,
        "drift": run.result.metrics.as_ref().and_then(|metrics| metrics.extra.get("drift")),
    })
}

async fn note(app: &App, claim: Option<&Claim>, phase: &str, done: usize) -> Result<()> {
    match claim {
        Some(claim) => {
            let told = json!({ "phase": phase, "documents": done });
            tasks::note(app, claim, "progress", told).await
        }
        None => Ok(()),
    }
}

/// Does an execution; nothing when it was canceled meanwhile.
///
/// # Errors
/// There is nothing to gather, or a store does not answer.
pub async fn perform(
    app: &App,
    scope: &Scope<Write>,
    mut run: Run,
    claim: Option<&Claim>,
) -> Result<Option<Run>> {
    let began = Instant::now();
    let (namespace_id, cluster_id) = (&scope.namespace_id, run.result.cluster_id.clone());
    let Stored { model, .. } = CLUSTERS
        .find(app.db(), namespace_id, &cluster_id)
        .await?
        .data
        .0;
    if !start(app, scope, &mut run).await? {
        return Ok(None);
    }
    let before = store::last(app.db(), namespace_id, &cluster_id).await?;
    let was = match &before {
        Some(before) => {
            let key = members::key(namespace_id, &cluster_id, &before.result.run_id);
            Some(Members::read(app, &key).await?)
        }
        None => None,
    };
    note(app, claim, "reading", 0).await?;
    let gathered = reading::gather(app, namespace_id, &model, &run).await?;
    if gathered.points.is_empty() {
        let message =
            "there is nothing to gather: no document matches and has what the cluster compares";
        return Err(ApiError::bad_request("", message));
    }
    note(app, claim, "clustering", gathered.points.len()).await?;
    let picture = !gathered.vectors.is_empty() && run.request.defer_visualization != Some(true);
    let dims = run
        .request
        .vis_n_components
        .or(model.vector_config.as_ref().map(|one| one.vis_n_components));
    let job = Job {
        how: How::of(&model, &run, was.as_ref().map(|was| was.centroids.clone()))?,
        dims: picture.then(|| usize::try_from(dims.unwrap_or(2)).unwrap_or(2)),
        gathered,
    };
    let Some(computed) = compute(app, namespace_id, &run, job).await? else {
        return Ok(None);
    };
    note(app, claim, "naming", computed.gathered.points.len()).await?;
    let errors = telling::tell(app, scope, &mut run, &model, &computed, before.as_ref()).await;
    telling::measure(&mut run, &computed, before.as_ref(), was.as_ref());
    let members = Members::of(&computed);
    let key = members::key(namespace_id, &cluster_id, &run.result.run_id);
    members.save(app, &key).await?;
    if members::is_told(&model) {
        note(app, claim, "writing", members.members.len()).await?;
        let told = run.result.centroids.clone().unwrap_or_default();
        if !members::tell(app, scope, &model, &run, &members, &told).await? {
            return Ok(None);
        }
    }
    run.result.llm_labeling_errors = (!errors.is_empty()).then_some(errors);
    finish(app, scope, run, began.elapsed().as_secs_f64()).await
}

/// Marks the execution as begun, once; false where it was canceled.
async fn start(app: &App, scope: &Scope<Write>, run: &mut Run) -> Result<bool> {
    let first = run.result.status == ClusterRunStatus::Pending;
    run.result.status = ClusterRunStatus::Processing;
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let (started, now) = (run.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::advance(tx, &namespace_id, &started, now).await? {
                    return Ok(false);
                }
                let cluster_id = &started.result.cluster_id;
                amend(tx, &namespace_id, cluster_id, now, |stored| {
                    stored.told.status = TaskStatusEnum::Processing;
                })
                .await?;
                if first {
                    let kind = "cluster.execution.started";
                    push_event(tx, &org_id, &namespace_id, kind, payload(&started), now).await?;
                }
                Ok(true)
            })
        })
        .await
}

fn payload(run: &Run) -> Value {
    json!({
        "cluster_id": run.result.cluster_id, "run_id": run.result.run_id, "task_id": run.task_id,
        "status": tasks::name_of(run.result.status), "num_clusters": run.result.num_clusters,
        "num_points": run.result.num_points, "error": run.result.error_message,
    })
}

/// Ends the execution as completed, in one transaction with what the cluster tells of it; nothing where it was canceled.
async fn finish(
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
                let result = &run.result;
                let metrics = match serde_json::to_value(&result.metrics) {
                    Ok(Value::Object(metrics)) => metrics,
                    _ => loupe_wire::Object::new(),
                };
                amend(tx, &namespace_id, &result.cluster_id, now, |stored| {
                    stored.told.status = TaskStatusEnum::Completed;
                    stored.told.num_clusters = Some(result.num_clusters);
                    stored.told.num_documents_clustered = result.vectors_clustered;
                    stored.told.execution_time_seconds = Some(seconds);
                    stored.told.quality_metrics = metrics;
                    stored.told.last_executed_at = Some(clock::time(now));
                    stored.told.completed_at = Some(clock::time(now));
                    stored
                        .told
                        .llm_labeling_errors
                        .clone_from(&result.llm_labeling_errors);
                    stored.model.num_clusters = Some(result.num_clusters);
                    let key = members::key(&namespace_id, &result.cluster_id, &result.run_id);
                    stored.model.members_key = Some(key);
                    stored.model.cluster_stats = Some(ClusterStats {
                        num_clusters: result.num_clusters,
                        noise_points: result.pipeline_drop,
                        silhouette_score: result
                            .metrics
                            .as_ref()
                            .and_then(|one| one.silhouette_score),
                        ..Default::default()
                    });
                })
                .await?;
                let kind = "cluster.execution.completed";
                push_event(tx, &org_id, &namespace_id, kind, payload(&run), now).await?;
                Ok(Some(run))
            })
        })
        .await
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
