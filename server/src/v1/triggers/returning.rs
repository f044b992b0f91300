//! Triggers as snapshots keep them: put back where they were, or copied, paused, into another namespace. Nothing fires for a moment
//! that has passed, nor for what was counted before.

use std::collections::{BTreeMap, BTreeSet};

use loupe_wire::{Object, Trigger, TriggerActionType, TriggerStatus, Value};
use serde::{Deserialize, Serialize};

use super::{
    READER, check_room,
    keeping::{self, held},
    member, record, schedule_anew, scheduled, set_status, store, tell,
};
use crate::{
    args,
    auth::Caller,
    clock,
    db::{Db, Json, Tx},
    error::Result,
};

crate::sql! {
    // What was removed is kept for its history alone.
    const WHOLE = "SELECT resource_id, data FROM triggers WHERE namespace_id = $1 AND status <> 'disabled' ORDER BY created_at, trigger_id";
}

/// A trigger with the id of what it acts on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Whole {
    pub trigger: Trigger,
    resource_id: String,
}

/// The triggers of a namespace, the oldest first, also those that the server keeps for others.
///
/// # Errors
/// The database does not answer.
pub async fn whole(db: &Db, namespace_id: &str) -> Result<Vec<Whole>> {
    let rows: Vec<(String, Json<Trigger>)> = db.all(WHOLE, args![namespace_id]).await?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|(resource_id, Json(trigger))| Whole {
            trigger,
            resource_id,
        })
        .collect())
}

/// The triggers of a namespace as they are, by their ids; nobody else changes them until the transaction ends.
#[derive(Debug, Default)]
pub struct Held(BTreeMap<String, Trigger>);

/// Holds all that there are, and those that are to be put back. Comes before the first event, and after the collections whose
/// schedules they are.
///
/// # Errors
/// The database does not answer.
pub async fn hold(tx: &mut Tx, org_id: &str, namespace_id: &str, kept: &[Whole]) -> Result<Held> {
    // Before the triggers, as whoever counts events holds it.
    READER.ensure(tx, org_id).await?;
    let ids: BTreeSet<&str> = kept.iter().map(Whole::id).collect();
    let is_wanted = |one: &Trigger| {
        let id = one.trigger_id.as_deref().unwrap_or_default();
        one.status != TriggerStatus::Disabled || ids.contains(id)
    };
    let held = held(tx, namespace_id, is_wanted).await?;
    let named = held
        .into_iter()
        .filter_map(|one| Some((one.trigger_id.clone()?, one)));
    Ok(Held(named.collect()))
}

impl Held {
    fn is_living(&self, id: &str) -> bool {
        let found = self.0.get(id);
        found.is_some_and(|one| one.status != TriggerStatus::Disabled)
    }
}

impl Whole {
    pub fn id(&self) -> &str {
        self.trigger.trigger_id.as_deref().unwrap_or_default()
    }

    /// What people know it by.
    pub fn name(&self) -> &str {
        self.trigger.name.as_deref().unwrap_or(self.id())
    }

    /// Whether the server keeps it for a collection or a cluster, which makes it anew when that comes back.
    pub fn is_made_for_others(&self) -> bool {
        let maker = self.trigger.created_by.as_deref().unwrap_or_default();
        let made_for = [
            member(&self.trigger.action_config, "cluster_id"),
            member(&self.trigger.schedule_config, "collection_id"),
        ];
        scheduled::collection_of(&self.trigger).is_some() || made_for.contains(&Some(maker))
    }

    /// Whether another trigger is kept for the same.
    fn is_like(&self, other: &Trigger) -> bool {
        let what = |one: &Trigger| {
            let name = |config: &Object, name| member(config, name).map(ToOwned::to_owned);
            // A schedule is one, whatever it waits for.
            let waits_for = match scheduled::collection_of(one) {
                Some(_) => None,
                None => name(&one.schedule_config, "collection_id"),
            };
            let cluster = name(&one.action_config, "cluster_id");
            (one.created_by.clone(), cluster, waits_for)
        };
        what(&self.trigger) == what(other)
    }

    /// Whether it names what no copy of a namespace has: batches and executions.
    pub fn names_what_stays(&self) -> bool {
        let runs = self.trigger.action_config.get("source_execution_ids");
        let names_runs = runs
            .and_then(Value::as_array)
            .is_some_and(|ids| !ids.is_empty());
        self.trigger.action_type == TriggerActionType::BatchRerun || names_runs
    }

    /// Puts it back. One that is there has its name, its settings and its schedule again, and stays paused if it is; one that is
    /// gone comes back as it was. Answers why it is not as it was, if it is not.
    ///
    /// # Errors
    /// 409 where the namespace has as many triggers as it may have.
    pub async fn put_back(
        self,
        tx: &mut Tx,
        caller: &Caller,
        held: &Held,
        now: i64,
    ) -> Result<Option<String>> {
        if self.is_made_for_others() {
            return self.pause_again(tx, caller, held, now).await.map(|()| None);
        }
        match held.0.get(self.id()) {
            Some(today) => self.turn_back(tx, caller, today.clone(), now).await,
            None => self.come_back(tx, caller, now).await,
        }
    }

    /// What was paused is paused again where it was made anew just now.
    async fn pause_again(self, tx: &mut Tx, caller: &Caller, held: &Held, now: i64) -> Result<()> {
        if self.trigger.status != TriggerStatus::Paused {
            return Ok(());
        }
        for one in store::all_in(tx, &self.trigger.namespace_id).await? {
            let id = one.trigger_id.as_deref().unwrap_or_default();
            let is_new = one.status == TriggerStatus::Active && !held.is_living(id);
            if is_new && self.is_like(&one) {
                pause(tx, caller, one, now).await?;
            }
        }
        Ok(())
    }

    async fn turn_back(
        self,
        tx: &mut Tx,
        caller: &Caller,
        today: Trigger,
        now: i64,
    ) -> Result<Option<String>> {
        let then = self.trigger;
        let is_gone = today.status == TriggerStatus::Disabled;
        let mut trigger = Trigger {
            name: then.name,
            description: then.description,
            action_config: then.action_config,
            schedule_config: then.schedule_config,
            ..today.clone()
        };
        let is_resumed = then.status == TriggerStatus::Failed && !is_gone;
        if today.status != TriggerStatus::Paused && !is_resumed {
            set_status(&mut trigger, then.status);
        }
        if trigger == today {
            return Ok(None);
        }
        if is_gone {
            check_room(store::count_in(tx, &today.namespace_id).await?)?;
        }
        let begins = is_gone || trigger.schedule_config != today.schedule_config;
        if begins {
            forget(&mut trigger);
        }
        let mut told = None;
        if begins || trigger.status != today.status {
            told = schedule(&mut trigger, now);
        }
        trigger.updated_at = Some(clock::time(now));
        store::update(tx, &trigger, now).await?;
        let (change, kind) = match is_gone {
            true => ("trigger_created", "trigger.created"),
            false => ("trigger_updated", "trigger.updated"),
        };
        record(tx, caller, &trigger, change, now).await?;
        tell(tx, &trigger, kind, now).await?;
        Ok(told)
    }

    async fn come_back(self, tx: &mut Tx, caller: &Caller, now: i64) -> Result<Option<String>> {
        let mut trigger = self.trigger;
        forget(&mut trigger);
        trigger.updated_at = Some(clock::time(now));
        let told = schedule(&mut trigger, now);
        make(tx, caller, &trigger, &self.resource_id, now).await?;
        Ok(told)
    }

    /// The same trigger in another namespace, paused, with nothing behind it. `renamed` puts new ids in place of old ones.
    #[must_use]
    pub fn copied(
        self,
        caller: &Caller,
        namespace_id: &str,
        renamed: impl Fn(&mut Value),
        now: i64,
    ) -> Self {
        let text = |text: String| {
            let mut value = Value::from(text);
            renamed(&mut value);
            value.as_str().unwrap_or_default().to_owned()
        };
        let config = |config: Object| {
            let mut value = Value::Object(config);
            renamed(&mut value);
            keeping::object(value)
        };
        let then = self.trigger;
        let trigger = Trigger {
            trigger_id: then.trigger_id.map(text),
            name: then.name.map(text),
            description: then.description,
            namespace_id: namespace_id.to_owned(),
            internal_id: caller.org_id.clone(),
            action_type: then.action_type,
            action_config: config(then.action_config),
            trigger_type: then.trigger_type,
            schedule_config: config(then.schedule_config),
            status: TriggerStatus::Paused,
            created_at: Some(clock::time(now)),
            updated_at: Some(clock::time(now)),
            created_by: Some(caller.actor().to_owned()),
            ..Trigger::default()
        };
        Self {
            trigger,
            resource_id: text(self.resource_id),
        }
    }

    /// Writes one that is new, its record and its event.
    ///
    /// # Errors
    /// 409 where the namespace has as many triggers as it may have.
    pub async fn insert(&self, tx: &mut Tx, caller: &Caller, now: i64) -> Result<()> {
        make(tx, caller, &self.trigger, &self.resource_id, now).await
    }
}

/// What was counted and measured says nothing of what is there by now.
fn forget(trigger: &mut Trigger) {
    trigger.event_counter = 0;
    trigger.baseline_snapshot = None;
}

/// Gives it the next moment of its schedule. One that comes never again is paused; why is answered.
fn schedule(trigger: &mut Trigger, now: i64) -> Option<String> {
    let error = schedule_anew(trigger, now).err()?;
    trigger.status = TriggerStatus::Paused;
    trigger.next_scheduled_at = None;
    Some(error.message())
}

async fn make(
    tx: &mut Tx,
    caller: &Caller,
    trigger: &Trigger,
    resource_id: &str,
    now: i64,
) -> Result<()> {
    check_room(store::count_in(tx, &trigger.namespace_id).await?)?;
    store::insert(tx, &caller.org_id, trigger, resource_id, now).await?;
    record(tx, caller, trigger, "trigger_created", now).await?;
    tell(tx, trigger, "trigger.created", now).await
}

async fn pause(tx: &mut Tx, caller: &Caller, mut trigger: Trigger, now: i64) -> Result<()> {
    trigger.status = TriggerStatus::Paused;
    trigger.next_scheduled_at = None;
    trigger.updated_at = Some(clock::time(now));
    store::update(tx, &trigger, now).await?;
    record(tx, caller, &trigger, "trigger_paused", now).await?;
    tell(tx, &trigger, "trigger.paused", now).await
}

/// Pauses every trigger of a namespace that is being made.
///
/// # Errors
/// The database does not answer.
pub async fn pause_all(tx: &mut Tx, caller: &Caller, namespace_id: &str, now: i64) -> Result<()> {
    for one in store::all_in(tx, namespace_id).await? {
        if one.status == TriggerStatus::Active {
            pause(tx, caller, one, now).await?;
        }
    }
    Ok(())
}
