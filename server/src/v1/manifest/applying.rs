//! Applies a manifest: what is missing is made, what is otherwise is changed, each by its ordinary operation. What was made
//! when a later one fails stays: the same manifest again goes on from there.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use loupe_wire::{ApplyMode, ApplyResult, Object, ResourceResult, ResourceResultStatus, Value};
use serde_json::json;

use super::{
    compare::{self, Differences},
    document::{Manifest, Resource},
    kinds::{Current, Kind},
    order::{self, Step},
    placeholders::{self, Of},
    references::Names,
    state::State,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    v1::{
        events::{self, Event},
        secrets,
    },
};

/// How a manifest is applied.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    pub mode: ApplyMode,
    pub dry_run: bool,
    /// After this time no further resource is begun.
    pub most: Duration,
}

/// How a resource stands to what a manifest says of it.
pub enum Standing<'s> {
    Absent,
    /// Triggers that are called the same: which one is meant nobody knows.
    Several(usize),
    There(&'s Current, Differences),
}

/// How a resource stands, as far as these members go (all of them where there are none).
pub fn standing<'s>(state: &'s State, resource: &Resource, said: &Object) -> Standing<'s> {
    let found = state.find(resource.kind, &resource.namespace, &resource.name);
    let [current] = found[..] else {
        return match found.len() {
            0 => Standing::Absent,
            many => Standing::Several(many),
        };
    };
    let names = state.names_in(&resource.namespace);
    let (mut said, mut there) = (said.clone(), current.data.clone());
    names.to_names(&mut said);
    names.to_names(&mut there);
    Standing::There(current, compare::differences(resource.kind, &said, &there))
}

/// The members of these that cannot be changed in place.
pub fn refused(kind: Kind, drift: &[String]) -> Vec<String> {
    let changeable = kind.changeable();
    let fixed = drift.iter().filter(|name| !changeable.contains(name));
    fixed.cloned().collect()
}

struct Applying<'a> {
    app: &'a App,
    caller: &'a Caller,
    manifest: &'a Manifest,
    state: &'a State,
    wishes: Wishes,
    /// What can be named by now in each namespace, and the namespaces' ids.
    names: HashMap<String, Names>,
    spaces: HashMap<String, String>,
    /// What each resource needs of the others.
    needs: Vec<Vec<(String, usize)>>,
    made: HashMap<usize, String>,
    /// What is done with: it failed, or was not begun.
    stopped: HashSet<usize>,
    results: Vec<ResourceResult>,
}

/// Applies a manifest without faults.
///
/// # Errors
/// The database does not answer. What resources are refused for is in the answer.
pub async fn apply(
    app: &App,
    caller: &Caller,
    (manifest, state, steps): (&Manifest, &State, Vec<Step>),
    wishes: Wishes,
) -> Result<ApplyResult> {
    let began = Instant::now();
    let blank = |one: &Resource| ResourceResult {
        resource_type: one.kind.name().into(),
        name: one.name.clone(),
        status: ResourceResultStatus::Skipped,
        ..Default::default()
    };
    let spaces = state.spaces.iter();
    let mut applying = Applying {
        app,
        caller,
        manifest,
        state,
        wishes,
        names: HashMap::new(),
        spaces: spaces
            .map(|(name, space)| (name.clone(), space.namespace.id.clone()))
            .collect(),
        needs: order::needs(&manifest.resources),
        made: HashMap::new(),
        stopped: HashSet::new(),
        results: manifest.resources.iter().map(blank).collect(),
    };
    if wishes.mode == ApplyMode::CreateOnly && applying.is_in_the_way() {
        return Ok(applying.answer(&steps));
    }
    for step in &steps {
        let in_time = began.elapsed() < wishes.most;
        applying.take(step, in_time).await;
    }
    applying.tell().await?;
    Ok(applying.answer(&steps))
}

impl Applying<'_> {
    /// Whether something is there already; says so of each.
    fn is_in_the_way(&mut self) -> bool {
        let mut any = false;
        for (place, one) in self.manifest.resources.iter().enumerate() {
            let found = self.state.find(one.kind, &one.namespace, &one.name);
            if let Some(found) = found.first() {
                any = true;
                let result = &mut self.results[place];
                result.status = ResourceResultStatus::Exists;
                result.resource_id = Some(found.id.clone());
                result.error = Some("it is there already: nothing was made".into());
            }
        }
        any
    }

    async fn take(&mut self, step: &Step, in_time: bool) {
        let (place, said) = match step {
            Step::Make { place, without } => {
                (*place, self.said(*place, |name| !without.contains(name)))
            }
            Step::Finish { place, members } => {
                (*place, self.said(*place, |name| members.contains(name)))
            }
        };
        let finishes = matches!(step, Step::Finish { .. });
        if finishes && self.stopped.contains(&place) {
            return;
        }
        if let Some(why) = self.obstacle(place, &said, in_time) {
            self.stopped.insert(place);
            let result = &mut self.results[place];
            match in_time {
                true => result.error = Some(why),
                false => {
                    result.status = ResourceResultStatus::Pending;
                    result.pending_reason = Some(why);
                }
            }
            return;
        }
        if let Err(error) = self.bring(place, said).await {
            self.stopped.insert(place);
            let result = &mut self.results[place];
            result.status = ResourceResultStatus::Failed;
            result.error = Some(error.message());
        }
    }

    /// What is said of a resource in these members.
    fn said(&self, place: usize, keep: impl Fn(&String) -> bool) -> Object {
        let said = self.manifest.resources[place].said.iter();
        said.filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Why a resource is not begun.
    fn obstacle(&self, place: usize, said: &Object, in_time: bool) -> Option<String> {
        if !in_time {
            return Some("the time was over: apply the manifest again".into());
        }
        let needed = |member: &str| member.is_empty() || said.contains_key(member);
        let missing = self.needs[place]
            .iter()
            .find(|(member, to)| needed(member) && self.is_missing(*to))?;
        let missing = &self.manifest.resources[missing.1];
        let (kind, name) = (missing.kind.name(), &missing.name);
        Some(format!("it needs the {kind} '{name}', which was not made"))
    }

    /// Whether a resource was to be made, and is not there.
    fn is_missing(&self, place: usize) -> bool {
        let one = &self.manifest.resources[place];
        self.stopped.contains(&place)
            && !self.made.contains_key(&place)
            && self
                .state
                .find(one.kind, &one.namespace, &one.name)
                .is_empty()
    }

    async fn bring(&mut self, place: usize, said: Object) -> Result<()> {
        let resource = &self.manifest.resources[place];
        if let Some(id) = self.made.get(&place).cloned() {
            // The second part of what was made just now.
            return self.update(resource, &id, said).await;
        }
        match standing(self.state, resource, &said) {
            Standing::Absent => self.create(place, said).await,
            Standing::Several(many) => {
                let message = format!("{many} of them are called '{}'", resource.name);
                Err(ApiError::conflict("", message))
            }
            Standing::There(current, found) => self.change(place, current, found, said).await,
        }
    }

    async fn create(&mut self, place: usize, said: Object) -> Result<()> {
        let resource = &self.manifest.resources[place];
        let scope = self.scope(resource);
        resource.kind.permit(self.app, &scope, false).await?;
        if self.wishes.dry_run {
            self.results[place].status = ResourceResultStatus::WouldCreate;
            return Ok(());
        }
        let (first, later) = resource.kind.split(said);
        let mut first = self.ready(resource, first).await?;
        first.insert(
            resource.kind.name_member().into(),
            resource.name.clone().into(),
        );
        let id = resource.kind.create(self.app, &scope, first).await?;
        self.note(resource, &id);
        self.results[place].resource_id = Some(id.clone());
        self.results[place].status = ResourceResultStatus::Created;
        self.made.insert(place, id.clone());
        match later.is_empty() {
            true => Ok(()),
            false => self.update(resource, &id, later).await,
        }
    }

    async fn change(
        &mut self,
        place: usize,
        current: &Current,
        found: Differences,
        mut said: Object,
    ) -> Result<()> {
        let resource = &self.manifest.resources[place];
        let refused = refused(resource.kind, &found.drift);
        let drift = found.drift.clone();
        let result = &mut self.results[place];
        let before = result.status;
        result.resource_id = Some(current.id.clone());
        result.drift.extend(found.drift);
        result.drift_not_compared.extend(found.unseen);
        result.refused.extend(refused.iter().cloned());
        if drift.is_empty() {
            if before == ResourceResultStatus::Skipped {
                result.status = ResourceResultStatus::Exists;
            }
            return Ok(());
        }
        if self.wishes.mode == ApplyMode::CreateMissing {
            result.status = ResourceResultStatus::Drifted;
            return Ok(());
        }
        if !refused.is_empty() {
            let message = format!(
                "{} cannot be changed in place: make another {} under another name, or remove this one first",
                refused.join(", "),
                resource.kind.name()
            );
            return Err(ApiError::conflict("", message));
        }
        resource
            .kind
            .permit(self.app, &self.scope(resource), true)
            .await?;
        if self.wishes.dry_run {
            self.results[place].status = ResourceResultStatus::Drifted;
            return Ok(());
        }
        said.retain(|name, _| drift.contains(name));
        self.update(resource, &current.id, said).await?;
        self.results[place].status = ResourceResultStatus::Updated;
        Ok(())
    }

    async fn update(&self, resource: &Resource, id: &str, said: Object) -> Result<()> {
        if self.wishes.dry_run {
            return Ok(());
        }
        let scope = self.scope(resource);
        resource.kind.permit(self.app, &scope, true).await?;
        let said = self.ready(resource, said).await?;
        resource.kind.update(self.app, &scope, id, said).await
    }

    /// Members as an operation takes them: with ids, and with secrets, which only those may send who may manage them.
    async fn ready(&self, resource: &Resource, mut said: Object) -> Result<Object> {
        match self.names.get(&resource.namespace) {
            Some(names) => names.to_ids(&mut said),
            None => self.state.names_in(&resource.namespace).to_ids(&mut said),
        }
        let mut said = Value::Object(said);
        let (mut open, mut values) = (Vec::new(), Object::new());
        placeholders::names(&said, Of::Secrets, &mut open);
        open.sort();
        open.dedup();
        for name in open {
            secrets::check_sender(self.app, self.caller, &name).await?;
            let value = secrets::value(self.app, &self.caller.org_id, &name).await?;
            values.insert(name, value.into());
        }
        placeholders::fill(&mut said, Of::Secrets, &values);
        match said {
            Value::Object(said) => Ok(said),
            _ => Ok(Object::new()),
        }
    }

    /// The caller in the resource's namespace.
    fn scope(&self, resource: &Resource) -> Scope<Write> {
        let id = match resource.kind {
            Kind::Namespace => None,
            _ => self.spaces.get(&resource.namespace),
        };
        Scope::internal(self.caller.clone(), id.cloned().unwrap_or_default())
    }

    /// Lets a new resource be named by those that follow.
    fn note(&mut self, resource: &Resource, id: &str) {
        let namespace = &resource.namespace;
        if resource.kind == Kind::Namespace {
            self.spaces.insert(namespace.clone(), id.to_owned());
        }
        let state = self.state;
        let names = self.names.entry(namespace.clone());
        let names = names.or_insert_with(|| state.names_in(namespace).into_owned());
        names.add(resource.kind.name(), id, &resource.name);
    }

    /// Tells the change feed what was done.
    async fn tell(&self) -> Result<()> {
        let done = [ResourceResultStatus::Created, ResourceResultStatus::Updated];
        let told = self.manifest.resources.iter().zip(&self.results);
        let told = told.filter(|(_, result)| done.contains(&result.status));
        let events: Vec<(Option<String>, Value)> = told
            .map(|(resource, result)| {
                let payload = json!({
                    "resource_type": result.resource_type, "name": result.name,
                    "resource_id": result.resource_id, "status": result.status,
                    "manifest_name": self.manifest.name,
                });
                (self.spaces.get(&resource.namespace).cloned(), payload)
            })
            .collect();
        if events.is_empty() {
            return Ok(());
        }
        let (org_id, now) = (self.caller.org_id.clone(), self.app.clock().micros());
        self.app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    for (namespace_id, payload) in events {
                        let kind = "manifest.apply.resource_state";
                        let event = Event::new(&org_id, namespace_id.as_deref(), kind, payload);
                        events::push(tx, event, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// What was done, in the order in which it was done.
    fn answer(self, steps: &[Step]) -> ApplyResult {
        let order = steps.iter().filter_map(|step| match step {
            Step::Make { place, .. } => Some(*place),
            Step::Finish { .. } => None,
        });
        let resources: Vec<ResourceResult> =
            order.map(|place| self.results[place].clone()).collect();
        let count = |status: ResourceResultStatus| {
            let of = resources.iter().filter(|one| one.status == status).count();
            i64::try_from(of).unwrap_or(i64::MAX)
        };
        let errors = resources.iter().filter_map(|one| {
            let why = one.error.as_ref().or(one.pending_reason.as_ref())?;
            Some(format!("{} '{}': {why}", one.resource_type, one.name))
        });
        let errors: Vec<String> = errors.collect();
        ApplyResult {
            success: errors.is_empty(),
            created_count: count(ResourceResultStatus::Created),
            failed_count: count(ResourceResultStatus::Failed),
            skipped_count: count(ResourceResultStatus::Skipped)
                + count(ResourceResultStatus::Exists),
            would_create_count: count(ResourceResultStatus::WouldCreate),
            updated_count: count(ResourceResultStatus::Updated),
            errors,
            dry_run: self.wishes.dry_run,
            resources,
            ..Default::default()
        }
    }
}
