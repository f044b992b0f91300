//! Clusters, alerts and triggers that a restoration in place puts back.

use loupe_wire::SnapshotModel;

use super::{members_path, rows::Rows};
use crate::{
    app::App,
    db::{Record, Tx},
    error::Result,
    v1::{
        alerts::{self, ALERTS, Alert},
        clusters::{self, CLUSTERS},
        triggers,
    },
};

/// Takes out alerts that would tell nobody: what their channels are set to was encrypted with another key. Says so of each.
pub(super) fn leave_unreadable(app: &App, kept: &mut Vec<alerts::Kept>) -> Vec<String> {
    let mut left = Vec::new();
    kept.retain(|one| {
        let is_readable = one.is_readable(app);
        if !is_readable {
            let name = one.names().1;
            let why = "what its channels are set to was encrypted with another master key";
            left.push(format!("the alert {name}: {why}"));
        }
        is_readable
    });
    left
}

/// Puts the files of clusters back that are gone: those that are there have what executions made of them since.
pub(super) async fn put_members(
    app: &App,
    snapshot: &SnapshotModel,
    kept: &[clusters::Kept],
) -> Result<()> {
    for one in kept {
        let Some(key) = one.members() else { continue };
        match CLUSTERS
            .find(app.db(), &snapshot.namespace_id, one.id())
            .await
        {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {
                let from = format!("{}/{}", snapshot.s3_prefix, members_path(one.id()));
                app.blobs().copy(&from, &key).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Rows {
    /// What executions made of it since stays.
    pub(super) async fn cluster(
        &mut self,
        tx: &mut Tx,
        then: clusters::Kept,
        today: Option<Record<clusters::Stored>>,
    ) -> Result<()> {
        let told = &then.cluster.told;
        let names = (then.id(), told.cluster_name.as_str());
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let Some(name) = self.name(tx, &CLUSTERS, names, today_name).await? else {
            return Ok(());
        };
        let (caller, owner, now) = (&self.caller, &self.namespace_id, self.now);
        match today {
            Some(today) => {
                let today = (today.data.0, name);
                then.turn_back(tx, caller, owner, today, now).await
            }
            None => then.come_back(tx, caller, owner, name, now).await,
        }
    }

    pub(super) async fn alert(
        &mut self,
        tx: &mut Tx,
        then: alerts::Kept,
        today: Option<Record<Alert>>,
    ) -> Result<()> {
        let (id, name) = then.names();
        let id = id.cloned().unwrap_or_default();
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let names = (id.as_str(), name.as_str());
        let Some(name) = self.name(tx, &ALERTS, names, today_name).await? else {
            return Ok(());
        };
        let (caller, owner, now) = (&self.caller, &self.namespace_id, self.now);
        let why = then.put_back(tx, caller, owner, (today, name), now).await?;
        self.skipped.extend(why.map(|why| format!("{id}: {why}")));
        Ok(())
    }

    pub(super) async fn trigger(
        &mut self,
        tx: &mut Tx,
        then: triggers::Whole,
        today: &triggers::Held,
    ) -> Result<()> {
        let name = then.name().to_owned();
        let why = then.put_back(tx, &self.caller, today, self.now).await?;
        let told = why.map(|why| format!("the trigger {name} is paused: {why}"));
        self.skipped.extend(told);
        Ok(())
    }
}
