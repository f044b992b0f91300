//! What an organization has already of what a manifest describes.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use loupe_wire::{NamespaceOperation, Permission, ResourceType};

use super::{
    document::Manifest,
    kinds::{Current, Kind},
    references::Names,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    v1::{
        annotations::signal::{NAME as SIGNAL_NAME, SIGNAL},
        connections::CONNECTIONS,
        namespaces::NAMESPACES,
        secrets,
        webhooks::WEBHOOKS,
    },
};

/// A namespace that is there.
#[derive(Debug)]
pub struct Space {
    pub namespace: Current,
    pub resources: Vec<Current>,
    /// What can be named in it, the organization's things among them.
    pub names: Names,
}

#[derive(Debug, Default)]
pub struct State {
    /// What can be named everywhere.
    pub names: Names,
    /// Every namespace of the organization.
    pub namespaces: Vec<Current>,
    /// Those that were asked for, by their names.
    pub spaces: HashMap<String, Space>,
    /// The names of the organization's secrets, for callers who may know them.
    pub secrets: Option<BTreeSet<String>>,
}

impl State {
    /// What is there of the namespaces that a manifest names.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn of(app: &App, caller: &Caller, manifest: &Manifest) -> Result<Self> {
        let mut state = Self::everywhere(app, caller).await?;
        let named: BTreeSet<&String> = manifest
            .resources
            .iter()
            .map(|one| &one.namespace)
            .collect();
        for name in named {
            let found = state
                .namespaces
                .iter()
                .find(|one| one.name == *name)
                .cloned();
            if let Some(namespace) = found {
                state.open(app, caller, namespace).await?;
            }
        }
        Ok(state)
    }

    /// What the organization has beside its namespaces.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn everywhere(app: &App, caller: &Caller) -> Result<Self> {
        let org_id = caller.org_id.as_str();
        let mut state = Self::default();
        let reads = |kind, id: &str| caller.covers(kind, id, NamespaceOperation::ReadData);
        for record in NAMESPACES.all(app.db(), org_id).await? {
            state
                .names
                .add(Kind::Namespace.name(), &record.id, &record.name);
            let data = serde_json::to_value(&record.data.0).map_err(ApiError::internal)?;
            let mut data = data.as_object().cloned().unwrap_or_default();
            if !reads(ResourceType::Namespace, &record.id) {
                // A comparison would tell whether somebody guessed it.
                data.clear();
            }
            state.namespaces.push(Current {
                kind: Kind::Namespace,
                data,
                id: record.id,
                name: record.name,
            });
        }
        for record in CONNECTIONS.all(app.db(), org_id).await? {
            if reads(ResourceType::StorageConnection, &record.id) {
                state.names.add_connection(&record.id, &record.name);
            }
        }
        for record in WEBHOOKS.all(app.db(), org_id).await? {
            if reads(ResourceType::Webhook, &record.id) {
                state.names.add_webhook(&record.id, &record.name);
            }
        }
        if caller.has(Permission::Admin) {
            let names = secrets::list(app, caller).await?;
            state.secrets = Some(names.into_iter().collect());
        }
        Ok(state)
    }

    /// Reads what a namespace holds, as far as the caller may.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn open(&mut self, app: &App, caller: &Caller, namespace: Current) -> Result<()> {
        let scope: Scope<Write> = Scope::internal(caller.clone(), namespace.id.clone());
        let mut resources = Vec::new();
        for kind in Kind::ALL {
            resources.extend(kind.all(app, &scope).await?);
        }
        let mut names = self.names.clone();
        // Every namespace has it from its first annotation on.
        names.add(Kind::Collection.name(), SIGNAL, SIGNAL_NAME);
        for one in &resources {
            names.add(one.kind.name(), &one.id, &one.name);
        }
        let space = Space {
            namespace,
            resources,
            names,
        };
        self.spaces.insert(space.namespace.name.clone(), space);
        Ok(())
    }

    /// The resources of this kind and name in a namespace: one, none, or triggers that are called the same.
    pub fn find(&self, kind: Kind, namespace: &str, name: &str) -> Vec<&Current> {
        let Some(space) = self.spaces.get(namespace) else {
            return Vec::new();
        };
        if kind == Kind::Namespace {
            return vec![&space.namespace];
        }
        let found = space.resources.iter();
        found
            .filter(|one| one.kind == kind && one.name == name)
            .collect()
    }

    /// What can be named in a namespace that may not be there yet.
    pub fn names_in(&self, namespace: &str) -> Cow<'_, Names> {
        match self.spaces.get(namespace) {
            Some(space) => Cow::Borrowed(&space.names),
            None => {
                let mut names = self.names.clone();
                names.add(Kind::Collection.name(), SIGNAL, SIGNAL_NAME);
                Cow::Owned(names)
            }
        }
    }
}
