//! Executions: begun one at a time, computed, told, and ended once.

use std::time::Instant;

use loupe_wire::{
    AuditAction, ClusterModel, ClusterRunStatus, ExecuteClusterByIdRequest, NamespaceOperation,
    ResourceType, TaskResponse, TaskStatusEnum, TaskType, Value,
};
use serde_json::json;

use super::{
    composing,
    computing::{How, Job, compute},
    config, ending,
    members::{self, Members},
    picturing, reading,
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
        batches::NOTHING_TO_PROCESS,
        namespaces::push_event,
        removal,
        tasks::{self, NewTask},
    },
};

/// The queue's word for an execution.
pub const RUN: &str = "cluster_run";

/// The code of the refusal to execute a cluster twice at once.
const BUSY: &str = "cluster_run_in_progress";

/// Whether a cluster was not executed because it is being executed.
pub fn is_busy(error: &ApiError) -> bool {
    error.has_code(BUSY)
}

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
    composing::check(app, scope, &request).await?;
    reading::check_here(app, &scope.namespace_id, &stored.model).await?;
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
            return Err(
                ApiError::conflict(BUSY, message).with("run_id", active.result.run_id.as_str())
            );
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
pub(super) async fn amend(
    tx: &mut Tx,
    namespace_id: &str,
    cluster_id: &str,
    now: i64,
    edit: impl FnOnce(&mut Stored) + Send,
) -> Result<()> {
    let mut stored = match CLUSTERS.hold(tx, namespace_id, cluster_id).await {
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
        return Err(ApiError::bad_request(NOTHING_TO_PROCESS, message));
    }
    note(app, claim, "clustering", gathered.points.len()).await?;
    let job = Job {
        how: How::of(&model, &run, was.as_ref().map(|was| was.centroids.clone()))?,
        dims: dims(&model, &run).filter(|_| !gathered.vectors.is_empty()),
        gathered,
    };
    let Some(mut computed) = compute(app, namespace_id, &run, job).await? else {
        return Ok(None);
    };
    note(app, claim, "naming", computed.gathered.points.len()).await?;
    let errors = telling::tell(app, scope, &mut run, &model, &computed, before.as_ref()).await;
    telling::measure(&mut run, &computed, before.as_ref(), was.as_ref());
    picturing::lay(&mut run, &model, &mut computed, was.as_ref());
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
    ending::finish(app, scope, run, began.elapsed().as_secs_f64()).await
}

/// How many dimensions the picture has; none where it is not wanted now.
fn dims(model: &ClusterModel, run: &Run) -> Option<usize> {
    if run.request.defer_visualization == Some(true) {
        return None;
    }
    let own = model.vector_config.as_ref().map(|one| one.vis_n_components);
    let dims = run.request.vis_n_components.or(own).unwrap_or(2);
    Some(usize::try_from(dims).unwrap_or(2))
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
                    push_event(
                        tx,
                        &org_id,
                        &namespace_id,
                        kind,
                        ending::payload(&started),
                        now,
                    )
                    .await?;
                }
                Ok(true)
            })
        })
        .await
}
