//! What a restoration into a new namespace makes: what a clone has, and the clusters, alerts and triggers that no clone has. What
//! would act by itself waits for people: the namespace that the snapshot is of may go on, and would tell the same people of the
//! same.

use loupe_wire::{
    AlertApplicationConfig, ClusterApplicationConfig, CollectionResponse, CollectionScheduleConfig,
    NamespaceModel, Value, reading,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{acting, restore::Resources};
use crate::{
    app::App,
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
    id,
    v1::{
        alerts, clusters,
        namespaces::{Clone, Ids, Pattern, remap_inside},
        triggers,
    },
    words::counted,
};

pub(super) struct Renewed {
    pub clone: Clone,
    clusters: Vec<clusters::Stored>,
    alerts: Vec<alerts::Kept>,
    triggers: Vec<triggers::Whole>,
    /// What of the snapshot is not in the new namespace, and why.
    pub skipped: Vec<String>,
    /// What waits for people there.
    pub waiting: Vec<String>,
}

/// What a collection acts by, which its clone leaves out.
struct Acts {
    schedule: Option<CollectionScheduleConfig>,
    clusters: Option<Vec<ClusterApplicationConfig>>,
    alerts: Option<Vec<AlertApplicationConfig>>,
}

impl Acts {
    fn of(collection: &CollectionResponse) -> Self {
        Self {
            schedule: collection.schedule.clone(),
            clusters: collection.cluster_applications.clone(),
            alerts: collection.alert_applications.clone(),
        }
    }

    /// Gives it to the copy of the collection, as far as what it names is there.
    fn give(self, collection: &mut CollectionResponse, here: &Here) -> Result<()> {
        let Self {
            schedule,
            clusters,
            alerts,
        } = self;
        collection.schedule = here.renamed(schedule)?;
        collection.trigger_id = triggers::new_id(collection.schedule.as_ref());
        let clusters = clusters.map(|mut applied| {
            applied.retain(|one| here.ids.contains_key(&one.cluster_id));
            applied
        });
        let alerts = alerts.map(|mut applied| {
            applied.retain(|one| here.alerts.contains(&one.alert_id));
            applied
        });
        let clusters = clusters.filter(|applied| !applied.is_empty());
        let alerts = alerts.filter(|applied| !applied.is_empty());
        collection.cluster_applications = here.renamed(clusters)?;
        collection.alert_applications = here.renamed(alerts)?;
        Ok(())
    }
}

/// What is in the new namespace.
struct Here {
    /// New ids by old ones, of every kind.
    ids: Ids,
    /// Names and old ids of the alerts.
    alerts: Vec<String>,
}

impl Here {
    fn rename(&self, value: &mut Value) {
        remap_inside(value, &self.ids);
    }

    fn renamed<T: Serialize + DeserializeOwned>(&self, one: T) -> Result<T> {
        let mut value = serde_json::to_value(one).map_err(ApiError::internal)?;
        self.rename(&mut value);
        reading::from_value(&value).map_err(ApiError::internal)
    }

    /// Gives what no clone has its new ids.
    fn of(clone: &Clone, acting: &Acting) -> Self {
        let (mut ids, cloned) = (Ids::new(), &clone.ids);
        for known in [
            &cloned.buckets,
            &cloned.collections,
            &cloned.retrievers,
            &cloned.taxonomies,
        ] {
            ids.extend(known.clone());
        }
        let clusters = acting.clusters.iter();
        ids.extend(clusters.map(|one| (one.id().to_owned(), id::new("clust_"))));
        let triggers = acting.triggers.iter();
        ids.extend(triggers.map(|one| (one.id().to_owned(), id::new("trg_"))));
        let mut alerts = Vec::new();
        for (old, name) in acting.alerts.iter().map(alerts::Kept::names) {
            let old = old.cloned().unwrap_or_default();
            ids.insert(old.clone(), id::new("alt_"));
            alerts.extend([old, name.clone()]);
        }
        Self { ids, alerts }
    }
}

/// What acts by itself, as the snapshot has it.
struct Acting {
    clusters: Vec<clusters::Kept>,
    alerts: Vec<alerts::Kept>,
    triggers: Vec<triggers::Whole>,
}

impl Acting {
    /// Takes out what cannot be copied; says so of each.
    fn leave(&mut self, app: &App) -> Vec<String> {
        let mut left = acting::leave_unreadable(app, &mut self.alerts);
        self.triggers.retain(|one| {
            let stays = one.names_what_stays();
            if stays {
                let why = "batches and executions are not in the new namespace";
                left.push(format!("the trigger {}: {why}", one.name()));
            }
            !stays
        });
        left
    }

    /// What waits for people in the new namespace.
    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        if !self.alerts.is_empty() {
            let alerts = counted(self.alerts.len(), "alert");
            waiting.push(format!("turned off in the new namespace: {alerts}"));
        }
        if !self.triggers.is_empty() {
            let triggers = counted(self.triggers.len(), "trigger");
            waiting.push(format!("paused in the new namespace: {triggers}"));
        }
        waiting
    }
}

impl Renewed {
    /// Gives everything that a snapshot holds new ids.
    pub(super) fn of(
        app: &App,
        caller: &Caller,
        namespace: NamespaceModel,
        resources: Resources,
        now: i64,
    ) -> Result<Self> {
        let acts: Vec<Acts> = resources.collections.iter().map(Acts::of).collect();
        let pattern = Pattern {
            buckets: resources.buckets,
            collections: resources.collections,
            retrievers: resources.retrievers,
            taxonomies: resources.taxonomies,
        };
        let mut acting = Acting {
            clusters: resources.clusters,
            alerts: resources.alerts,
            triggers: resources.triggers,
        };
        let skipped = acting.leave(app);
        let waiting = acting.waiting();
        // What they are made for makes its own.
        acting.triggers.retain(|one| !one.is_made_for_others());
        let mut clone = Clone::of(namespace, pattern)?;
        let here = Here::of(&clone, &acting);
        // In the order in which they were taken.
        for (acts, collection) in acts.into_iter().zip(&mut clone.collections) {
            acts.give(collection, &here)?;
        }
        // Clusters that their trees were made of.
        for taxonomy in &mut clone.taxonomies {
            *taxonomy = here.renamed(std::mem::take(taxonomy))?;
        }
        let rename = |value: &mut Value| here.rename(value);
        let namespace_id = clone.namespace.namespace_id.clone().unwrap_or_default();
        let clusters = acting.clusters.into_iter();
        let clusters = clusters.map(|one| one.copied(&namespace_id, rename, now));
        let alerts = acting.alerts.into_iter();
        let alerts = alerts.map(|one| one.copied(app, &namespace_id, rename, now));
        let triggers = acting.triggers.into_iter();
        let triggers = triggers.map(|one| one.copied(caller, &namespace_id, rename, now));
        Ok(Self {
            clusters: clusters.collect::<Result<_>>()?,
            alerts: alerts.collect::<Result<_>>()?,
            triggers: triggers.collect(),
            clone,
            skipped,
            waiting,
        })
    }

    /// Writes the namespace with its rows, what waits for people paused.
    pub(super) async fn insert(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        changes: Value,
        now: i64,
    ) -> Result<()> {
        let namespace_id = self.clone.namespace.namespace_id.as_deref();
        let namespace_id = namespace_id.unwrap_or_default();
        self.clone.insert(tx, caller, changes, now).await?;
        for one in &self.clusters {
            clusters::insert(tx, caller, namespace_id, one, now).await?;
        }
        for one in &self.alerts {
            one.insert(tx, caller, now).await?;
        }
        for one in &self.triggers {
            one.insert(tx, caller, now).await?;
        }
        // Also those that were made for collections and clusters just now.
        triggers::pause_all(tx, caller, namespace_id, now).await
    }
}
