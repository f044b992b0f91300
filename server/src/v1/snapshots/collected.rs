//! Collections that a restoration in place puts back, with what is kept for them.

use loupe_wire::{AuditAction, CollectionResponse, ResourceType};
use serde_json::json;

use super::rows::Rows;
use crate::{
    clock,
    db::{Record, Tx},
    error::Result,
    v1::{
        audit,
        clusters::{self, CLUSTERS},
        collections::{self, COLLECTIONS},
        triggers,
    },
};

impl Rows {
    pub(super) async fn collection(
        &mut self,
        tx: &mut Tx,
        mut then: CollectionResponse,
        today: Option<Record<CollectionResponse>>,
    ) -> Result<()> {
        let id = then.collection_id.clone().unwrap_or_default();
        let names = (id.as_str(), then.collection_name.as_str());
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let Some(name) = self.name(tx, &COLLECTIONS, names, today_name).await? else {
            return Ok(());
        };
        self.leave_clusters(tx, &id, &mut then).await?;
        let Some(today) = today else {
            let (caller, owner) = (&self.caller, &self.namespace_id);
            return collections::insert(tx, caller, owner, &then, self.now).await;
        };
        let kept_its_name = then.collection_name == today.name;
        let before = today.data.0;
        let then = CollectionResponse {
            collection_name: name,
            // Where its documents are, and which models its indexes are asked by, is no setting of its own.
            lifecycle_state: before.lifecycle_state.clone(),
            s3_vector_index: before.s3_vector_index.clone(),
            last_lifecycle_transition: before.last_lifecycle_transition,
            document_count: before.document_count,
            vector_indexes: before.vector_indexes.clone(),
            updated_at: before.updated_at,
            ..then
        };
        if kept_its_name && then == before {
            return Ok(());
        }
        let then = CollectionResponse {
            updated_at: Some(clock::time(self.now)),
            ..then
        };
        self.change_collection(tx, &id, (&before, &then)).await
    }

    /// Writes a collection as it was, with the triggers that are kept for it.
    async fn change_collection(
        &self,
        tx: &mut Tx,
        id: &str,
        (before, then): (&CollectionResponse, &CollectionResponse),
    ) -> Result<()> {
        let (caller, owner, now) = (&self.caller, &self.namespace_id, self.now);
        if (&then.schedule, &then.trigger_id) != (&before.schedule, &before.trigger_id) {
            let ended = before.trigger_id.as_deref();
            match then.schedule {
                Some(_) => triggers::begin_schedule(tx, caller, owner, then, ended, now).await?,
                None => triggers::end_schedule(tx, owner, before, now).await?,
            }
        }
        if then.cluster_applications != before.cluster_applications {
            match then.cluster_applications {
                Some(_) => clusters::apply(tx, caller, owner, then, now).await?,
                None => clusters::forget_collection(tx, caller, owner, id, now).await?,
            }
        }
        COLLECTIONS
            .update(tx, owner, id, &then.collection_name, now, then)
            .await?;
        let changes = audit::difference(before, then);
        let resource = (ResourceType::Collection, id);
        self.record(tx, AuditAction::CollectionUpdated, resource, changes)
            .await?;
        let told = json!({ "collection_id": id });
        self.tell(tx, "collection.updated", told).await
    }

    /// Clusters that are gone, and are in no snapshot, are applied no more.
    async fn leave_clusters(
        &mut self,
        tx: &mut Tx,
        id: &str,
        collection: &mut CollectionResponse,
    ) -> Result<()> {
        let Some(applied) = collection.cluster_applications.take() else {
            return Ok(());
        };
        let mut kept = Vec::with_capacity(applied.len());
        for one in applied {
            let owner = &self.namespace_id;
            match CLUSTERS.find_in(tx, owner, &one.cluster_id).await {
                Ok(_) => kept.push(one),
                Err(error) if error.is_not_found() => {
                    let told = format!("{id}: the cluster {} is gone", one.cluster_id);
                    self.skipped.push(told);
                }
                Err(error) => return Err(error),
            }
        }
        collection.cluster_applications = Some(kept);
        Ok(())
    }
}
