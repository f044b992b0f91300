//! Clusters as snapshots keep them: put back where they were, or copied over copies of their collections.

use loupe_wire::{ClusterMetadata, ClusterModel, TaskStatusEnum, Value, reading};
use serde::{Deserialize, Serialize};

use super::{
    CLUSTERS, applying, describe, insert, members,
    store::{self, Run, Stored},
    under, write,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result},
};

/// A cluster with its newest execution that was completed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    pub cluster: Stored,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

/// The clusters of a namespace, the newest first.
///
/// # Errors
/// The database does not answer.
pub async fn all(app: &App, namespace_id: &str) -> Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for record in CLUSTERS.all(app.db(), namespace_id).await? {
        let run = store::last(app.db(), namespace_id, &record.id).await?;
        let cluster = record.data.0;
        kept.push(Kept { cluster, run });
    }
    Ok(kept)
}

impl Kept {
    pub fn id(&self) -> &str {
        self.cluster.told.cluster_id.as_deref().unwrap_or_default()
    }

    /// The file that says who is in which cluster, where it was executed.
    pub fn members(&self) -> Option<String> {
        let (run, namespace_id) = (self.run.as_ref()?, &self.cluster.told.namespace_id);
        Some(members::key(namespace_id, self.id(), &run.result.run_id))
    }

    /// Forgets the execution: it was removed meanwhile.
    pub fn forget_run(&mut self) {
        self.run = None;
    }

    /// Writes a cluster that is gone, as it was when it was executed last.
    ///
    /// # Errors
    /// The organization holds as many as its tier allows; the database does not answer.
    pub async fn come_back(
        self,
        tx: &mut Tx,
        caller: &Caller,
        namespace_id: &str,
        name: String,
        now: i64,
    ) -> Result<()> {
        let Self { cluster, run } = self;
        let stored = match &run {
            Some(run) => executed(cluster, name, run),
            None => never_executed(cluster.model, name, namespace_id, now),
        };
        insert(tx, caller, namespace_id, &stored, now).await?;
        match run {
            Some(run) => {
                let began = run.result.created_at.timestamp_micros();
                store::insert(tx, namespace_id, &run, began).await
            }
            None => Ok(()),
        }
    }

    /// Has a cluster that is held say again what it said, with what executions have made of it since.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn turn_back(
        self,
        tx: &mut Tx,
        caller: &Caller,
        namespace_id: &str,
        (today, name): (Stored, String),
        now: i64,
    ) -> Result<()> {
        let before = today.model.clone();
        let mut stored = said(today, self.cluster.model, name);
        // Whose name was given up while it was held is written again.
        let kept_its_name = self.cluster.told.cluster_name == stored.told.cluster_name;
        if kept_its_name && stored.model == before {
            return Ok(());
        }
        stored.told.updated_at = Some(clock::time(now));
        stored.model.updated_at = stored.told.updated_at;
        write(tx, caller, namespace_id, (&before, &stored), now).await?;
        match stored.model.collection_ids == before.collection_ids {
            true => Ok(()),
            false => applying::keep_own(tx, caller, namespace_id, &stored.model, now).await,
        }
    }

    /// The same cluster under a new id, which nobody has executed yet. `renamed` puts new ids in place of old ones.
    ///
    /// # Errors
    /// Never: what was kept is a cluster.
    pub fn copied(
        self,
        namespace_id: &str,
        renamed: impl Fn(&mut Value),
        now: i64,
    ) -> Result<Stored> {
        let mut model = serde_json::to_value(self.cluster.model).map_err(ApiError::internal)?;
        renamed(&mut model);
        let model: ClusterModel = reading::from_value(&model).map_err(ApiError::internal)?;
        let name = model.cluster_name.clone().unwrap_or_default();
        let model = ClusterModel {
            created_at: None,
            ..model
        };
        Ok(never_executed(model, name, namespace_id, now))
    }
}

/// A cluster as its execution left it.
fn executed(cluster: Stored, name: String, run: &Run) -> Stored {
    let Stored { told, model } = cluster;
    let (run_id, task_id) = (run.result.run_id.clone(), run.task_id.clone());
    Stored {
        told: ClusterMetadata {
            cluster_name: name.clone(),
            status: TaskStatusEnum::Completed,
            error: None,
            failure_category: None,
            last_run_id: Some(run_id.clone()),
            last_execution_task_id: Some(task_id.clone()),
            ..told
        },
        model: ClusterModel {
            cluster_name: Some(name),
            status: TaskStatusEnum::Completed,
            last_run_id: Some(run_id),
            task_id: Some(task_id),
            ..model
        },
    }
}

/// A cluster as it is before its first execution.
fn never_executed(model: ClusterModel, name: String, namespace_id: &str, now: i64) -> Stored {
    let (id, made) = (model.cluster_id.clone(), model.created_at);
    let asked = ClusterModel {
        cluster_name: Some(name),
        ..of(ClusterModel::default(), model)
    };
    let mut stored = under(id.unwrap_or_default(), asked, namespace_id, now);
    if made.is_some() {
        stored.told.created_at = made;
        stored.model.created_at = made;
    }
    stored
}

/// A cluster of today that says what it said then.
fn said(today: Stored, then: ClusterModel, name: String) -> Stored {
    let mut stored = Stored {
        told: ClusterMetadata {
            cluster_name: name.clone(),
            ..today.told
        },
        model: ClusterModel {
            cluster_name: Some(name),
            ..of(today.model, then)
        },
    };
    describe(&mut stored);
    stored
}

/// What was asked for then, with what came of it by now.
fn of(now: ClusterModel, then: ClusterModel) -> ClusterModel {
    ClusterModel {
        cluster_id: now.cluster_id,
        parquet_path: now.parquet_path,
        members_key: now.members_key,
        num_clusters: now.num_clusters,
        cluster_stats: now.cluster_stats,
        status: now.status,
        task_id: now.task_id,
        last_run_id: now.last_run_id,
        created_at: now.created_at,
        updated_at: now.updated_at,
        ..then
    }
}
