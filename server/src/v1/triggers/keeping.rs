//! Triggers that the server keeps for clusters and collections: one for every cluster that is executed as batches end in a
//! collection. Who they are kept for is who made them.

use loupe_wire::{Object, Trigger, TriggerActionType, TriggerStatus, TriggerType, Value};
use serde_json::json;

use super::{READER, check_room, member, schedule_anew, scheduled, store, tell};
use crate::{auth::Caller, clock, db::Tx, error::Result, id};

/// A cluster that is executed as batches end.
pub struct Kept {
    pub cluster_id: String,
    pub collection_id: String,
    /// So many since it was executed.
    pub documents: i64,
    /// Seconds that it rests.
    pub cooldown: i64,
}

impl Kept {
    fn is(&self, trigger: &Trigger) -> bool {
        member(&trigger.action_config, "cluster_id") == Some(&self.cluster_id)
            && member(&trigger.schedule_config, "collection_id") == Some(&self.collection_id)
    }

    fn schedule(&self) -> Object {
        object(json!({
            "event_type": "collection.documents.batch_completed", "event_threshold": self.documents,
            "count_documents": true, "collection_id": self.collection_id, "cooldown_seconds": self.cooldown,
        }))
    }

    fn made(&self, caller: &Caller, namespace_id: &str, maker: &str, now: i64) -> Trigger {
        Trigger {
            trigger_id: Some(id::new("trg_")),
            name: Some(format!("{} as batches end", self.cluster_id)),
            description: Some(format!("kept for {maker}, which says when")),
            namespace_id: namespace_id.to_owned(),
            internal_id: caller.org_id.clone(),
            action_type: TriggerActionType::Cluster,
            action_config: object(json!({ "cluster_id": self.cluster_id })),
            trigger_type: TriggerType::Event,
            schedule_config: self.schedule(),
            status: TriggerStatus::Active,
            created_at: Some(clock::time(now)),
            updated_at: Some(clock::time(now)),
            created_by: Some(maker.to_owned()),
            ..Default::default()
        }
    }
}

pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Keeps exactly what is wanted for a maker: what is new is made, what is not wanted any more ends, what changed goes on by
/// what it says now. One that people paused stays paused.
///
/// # Errors
/// 409 where the namespace has as many triggers as it may have.
pub async fn keep(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    maker: &str,
    wanted: &[Kept],
    now: i64,
) -> Result<()> {
    // Before the triggers, as whoever counts events holds it.
    if !wanted.is_empty() {
        READER.ensure(tx, &caller.org_id).await?;
    }
    let mut count = store::count_in(tx, namespace_id).await?;
    let kept = held(tx, namespace_id, |one| is_of(one, maker)).await?;
    for one in wanted {
        if let Some(trigger) = kept.iter().find(|trigger| one.is(trigger)) {
            let schedule = one.schedule();
            if trigger.schedule_config != schedule {
                let mut trigger = trigger.clone();
                trigger.schedule_config = schedule;
                trigger.updated_at = Some(clock::time(now));
                schedule_anew(&mut trigger, now)?;
                store::update(tx, &trigger, now).await?;
                tell(tx, &trigger, "trigger.updated", now).await?;
            }
            continue;
        }
        check_room(count)?;
        count += 1;
        let trigger = one.made(caller, namespace_id, maker, now);
        store::insert(tx, &caller.org_id, &trigger, &one.cluster_id, now).await?;
        tell(tx, &trigger, "trigger.created", now).await?;
    }
    for trigger in kept {
        if !wanted.iter().any(|one| one.is(&trigger)) {
            end(tx, trigger, now).await?;
        }
    }
    Ok(())
}

/// Holds every trigger that is kept for a collection: the one of its schedule, and those of the clusters that it applies. For
/// who changes both: the first change holds the organization's feed, and whoever counts events wants that while it holds
/// triggers.
///
/// # Errors
/// The database does not answer.
pub async fn hold_all_of(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    collection_id: &str,
) -> Result<()> {
    READER.ensure(tx, org_id).await?;
    let by_schedule = scheduled::maker(collection_id);
    let is_its = |one: &Trigger| is_of(one, collection_id) || is_of(one, &by_schedule);
    held(tx, namespace_id, is_its).await?;
    Ok(())
}

/// Ends what is kept for a cluster, whoever it is kept for.
///
/// # Errors
/// The database does not answer.
pub async fn forget_kept(
    tx: &mut Tx,
    namespace_id: &str,
    cluster_id: &str,
    now: i64,
) -> Result<()> {
    let is_kept = |trigger: &Trigger| {
        let acts = member(&trigger.action_config, "cluster_id") == Some(cluster_id);
        let collection = member(&trigger.schedule_config, "collection_id");
        let mut makers = [cluster_id].into_iter().chain(collection);
        acts && makers.any(|maker| is_of(trigger, maker))
    };
    for trigger in held(tx, namespace_id, is_kept).await? {
        end(tx, trigger, now).await?;
    }
    Ok(())
}

/// Those that are wanted, as they are now; nobody else changes them until the transaction ends.
pub(super) async fn held(
    tx: &mut Tx,
    namespace_id: &str,
    wanted: impl Fn(&Trigger) -> bool + Send,
) -> Result<Vec<Trigger>> {
    let all = store::all_in(tx, namespace_id).await?;
    let wanted_ids = all.into_iter().filter(|one| wanted(one));
    let mut ids: Vec<String> = wanted_ids.filter_map(|one| one.trigger_id).collect();
    // In the order in which events hold them: no two wait for each other.
    ids.sort();
    let mut held = Vec::with_capacity(ids.len());
    for id in ids {
        held.push(store::hold(tx, namespace_id, &id).await?);
    }
    held.retain(|one| wanted(one));
    Ok(held)
}

fn is_of(trigger: &Trigger, maker: &str) -> bool {
    trigger.status != TriggerStatus::Disabled && trigger.created_by.as_deref() == Some(maker)
}

pub(super) async fn end(tx: &mut Tx, mut trigger: Trigger, now: i64) -> Result<()> {
    trigger.status = TriggerStatus::Disabled;
    trigger.updated_at = Some(clock::time(now));
    schedule_anew(&mut trigger, now)?;
    store::update(tx, &trigger, now).await?;
    tell(tx, &trigger, "trigger.deleted", now).await
}
