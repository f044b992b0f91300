//! Resources that a restoration in place puts back: those that are gone under their ids, those that changed as they were.
//! What hangs on them goes on: published pages, versions of a taxonomy, executions of a cluster, triggers that people paused.

use std::collections::BTreeMap;

use loupe_wire::{
    AuditAction, BucketResponse, CollectionResponse, ResourceType, RetrieverModelOutput,
    SnapshotModel, TaxonomyResponse, Value,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{acting, restore::Resources};
use crate::{
    app::App,
    args,
    auth::Caller,
    clock,
    db::{Arg, Record, Table, Tx},
    error::Result,
    jobs::Claim,
    limits::quota::{self, Resource},
    v1::{
        alerts::{self, ALERTS},
        audit::{self, Change},
        buckets::{BUCKETS, destinations},
        clusters::{self, CLUSTERS},
        collections::COLLECTIONS,
        namespaces::{NAMESPACES, push_event},
        retrievers::RETRIEVERS,
        taxonomies::{self, TAXONOMIES},
        triggers,
    },
};

crate::sql! {
    // Versions made since stay: what a taxonomy was comes back as its next one.
    const KEEP_VERSION = "INSERT INTO taxonomy_versions (taxonomy_id, namespace_id, version, created_at, data) VALUES ($1, $2, $3, $4, $5)";
}

/// Resources of one kind as they are today, by their ids.
type Held<T> = BTreeMap<String, Record<T>>;

/// The resources of one namespace being put back.
pub(super) struct Rows {
    pub caller: Caller,
    pub namespace_id: String,
    pub now: i64,
    /// What could not be put back, or not as it was.
    pub skipped: Vec<String>,
}

/// Puts everything back in one transaction; what could not be is told.
pub(super) async fn put(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
    mut resources: Resources,
) -> Result<Vec<String>> {
    let mut rows = Rows {
        caller: Caller::system(&claim.org_id),
        namespace_id: snapshot.namespace_id.clone(),
        now: app.clock().micros(),
        skipped: acting::leave_unreadable(app, &mut resources.alerts),
    };
    NAMESPACES
        .find(app.db(), &claim.org_id, &rows.namespace_id)
        .await?;
    acting::put_members(app, snapshot, &resources.clusters).await?;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                rows.put(tx, resources).await?;
                Ok(rows.skipped)
            })
        })
        .await
}

/// Ids and names of the resources of one kind.
fn named<'r, T>(
    rows: &'r [T],
    of: impl Fn(&'r T) -> (Option<&'r String>, &'r String),
) -> BTreeMap<String, String> {
    let named = rows.iter().filter_map(|row| {
        let (id, name) = of(row);
        Some((id?.clone(), name.clone()))
    });
    named.collect()
}

/// Which other resource has a name.
async fn other<T>(
    tx: &mut Tx,
    table: &Table<T>,
    owner: &str,
    (id, name): (&str, &str),
) -> Result<Option<String>>
where
    T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
{
    match table.find_in(tx, owner, name).await {
        Ok(found) => Ok((found.id != id).then_some(found.id)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What there is today of what is put back; nobody else changes it until the transaction ends.
struct Today {
    buckets: Held<BucketResponse>,
    retrievers: Held<RetrieverModelOutput>,
    alerts: Held<alerts::Alert>,
    taxonomies: Held<TaxonomyResponse>,
    clusters: Held<clusters::Stored>,
    collections: Held<CollectionResponse>,
    triggers: triggers::Held,
}

impl Rows {
    async fn put(&mut self, tx: &mut Tx, then: Resources) -> Result<()> {
        let mut today = self.hold_all(tx, &then).await?;
        for one in then.buckets {
            let id = one.bucket_id.clone().unwrap_or_default();
            self.bucket(tx, one, today.buckets.remove(&id)).await?;
        }
        for one in then.retrievers {
            let id = one.retriever_id.clone().unwrap_or_default();
            self.retriever(tx, one, today.retrievers.remove(&id))
                .await?;
        }
        for one in then.taxonomies {
            let id = one.taxonomy_id.clone().unwrap_or_default();
            self.taxonomy(tx, one, today.taxonomies.remove(&id)).await?;
        }
        // Before the collections that apply them.
        for one in then.clusters {
            let held = today.clusters.remove(one.id());
            self.cluster(tx, one, held).await?;
        }
        for one in then.collections {
            let id = one.collection_id.clone().unwrap_or_default();
            self.collection(tx, one, today.collections.remove(&id))
                .await?;
        }
        for one in then.alerts {
            let id = one.names().0.cloned().unwrap_or_default();
            self.alert(tx, one, today.alerts.remove(&id)).await?;
        }
        for one in then.triggers {
            self.trigger(tx, one, &today.triggers).await?;
        }
        Ok(())
    }

    /// All of them before the first event, which is a lock too; in the order in which others hold several: who deletes a
    /// retriever its alerts, who deletes a taxonomy or a cluster their collections, and who changes those their triggers.
    async fn hold_all(&self, tx: &mut Tx, then: &Resources) -> Result<Today> {
        let (org_id, owner) = (&self.caller.org_id, &self.namespace_id);
        let names = named(&then.buckets, |one| {
            (one.bucket_id.as_ref(), &one.bucket_name)
        });
        let buckets = self.hold(tx, &BUCKETS, names).await?;
        let names = named(&then.retrievers, |one| {
            (one.retriever_id.as_ref(), &one.retriever_name)
        });
        let retrievers = self.hold(tx, &RETRIEVERS, names).await?;
        alerts::hold_watched(tx, owner, &then.alerts).await?;
        let names = named(&then.alerts, alerts::Kept::names);
        let alerts = self.hold(tx, &ALERTS, names).await?;
        alerts::hold_states(tx, (org_id, owner), &then.alerts, &alerts).await?;
        let names = named(&then.taxonomies, |one| {
            (one.taxonomy_id.as_ref(), &one.taxonomy_name)
        });
        let taxonomies = self.hold(tx, &TAXONOMIES, names).await?;
        let names = named(&then.clusters, |one| {
            let told = &one.cluster.told;
            (told.cluster_id.as_ref(), &told.cluster_name)
        });
        let clusters = self.hold(tx, &CLUSTERS, names).await?;
        let names = named(&then.collections, |one| {
            (one.collection_id.as_ref(), &one.collection_name)
        });
        let collections = self.hold(tx, &COLLECTIONS, names).await?;
        Ok(Today {
            buckets,
            retrievers,
            alerts,
            taxonomies,
            clusters,
            collections,
            triggers: triggers::hold(tx, org_id, owner, &then.triggers).await?,
        })
    }

    /// Those that are there; nobody else changes them until the transaction ends. Names that change are given up first, so
    /// that two which have each other's names now get their own back.
    async fn hold<T>(
        &self,
        tx: &mut Tx,
        table: &Table<T>,
        names: BTreeMap<String, String>,
    ) -> Result<Held<T>>
    where
        T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
    {
        let owner = &self.namespace_id;
        let held = table
            .hold_some(tx, owner, |one| names.contains_key(&one.id))
            .await?;
        for one in &held {
            if names.get(&one.id) != Some(&one.name) {
                table
                    .update(tx, owner, &one.id, &one.id, self.now, &one.data.0)
                    .await?;
            }
        }
        Ok(held.into_iter().map(|one| (one.id.clone(), one)).collect())
    }

    /// The name that a resource gets: its own; that of today where another one has its own now; none where it is gone, too.
    pub(super) async fn name<T>(
        &mut self,
        tx: &mut Tx,
        table: &Table<T>,
        (id, name): (&str, &str),
        today: Option<&str>,
    ) -> Result<Option<String>>
    where
        T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
    {
        let Some(taker) = other(tx, table, &self.namespace_id, (id, name)).await? else {
            return Ok(Some(name.to_owned()));
        };
        self.skipped
            .push(format!("{id}: {taker} has its name {name} now"));
        let Some(today) = today else {
            return Ok(None);
        };
        let taker = other(tx, table, &self.namespace_id, (id, today)).await?;
        // It may be that of one that was put back before.
        let free = if taker.is_some() { id } else { today };
        Ok(Some(free.to_owned()))
    }

    pub(super) async fn record(
        &self,
        tx: &mut Tx,
        action: AuditAction,
        resource: (ResourceType, &str),
        changes: Value,
    ) -> Result<()> {
        let change = Change {
            action,
            resource,
            changes,
        };
        audit::record(tx, &self.caller, change, self.now).await
    }

    async fn bucket(
        &mut self,
        tx: &mut Tx,
        then: BucketResponse,
        today: Option<Record<BucketResponse>>,
    ) -> Result<()> {
        let id = then.bucket_id.clone().unwrap_or_default();
        let names = (id.as_str(), then.bucket_name.as_str());
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let Some(name) = self.name(tx, &BUCKETS, names, today_name).await? else {
            return Ok(());
        };
        // Not before: a place without its bucket would hold its connection for good.
        let owner = (self.caller.org_id.as_str(), self.namespace_id.as_str());
        let was_aimed = then.destination.is_some();
        let then = destinations::settled(tx, owner, then, self.now).await?;
        if was_aimed && then.destination.is_none() {
            self.skipped
                .push(format!("{id}: the connection of its destination is gone"));
        }
        let Some(today) = today else {
            quota::check(tx, &self.caller.org_id, Resource::Buckets).await?;
            let owner = &self.namespace_id;
            return BUCKETS.insert(tx, owner, &id, &name, self.now, &then).await;
        };
        let kept_its_name = then.bucket_name == today.name;
        let before = today.data.0;
        let then = BucketResponse {
            bucket_name: name,
            updated_at: before.updated_at,
            ..then
        };
        if kept_its_name && then == before {
            return Ok(());
        }
        let then = BucketResponse {
            updated_at: Some(clock::time(self.now)),
            ..then
        };
        let (owner, name) = (&self.namespace_id, &then.bucket_name);
        BUCKETS
            .update(tx, owner, &id, name, self.now, &then)
            .await?;
        let changes = audit::difference(&before, &then);
        let resource = (ResourceType::Bucket, id.as_str());
        self.record(tx, AuditAction::BucketUpdated, resource, changes)
            .await
    }

    /// Its page goes on as it is: what it shows was said to the page.
    async fn retriever(
        &mut self,
        tx: &mut Tx,
        then: RetrieverModelOutput,
        today: Option<Record<RetrieverModelOutput>>,
    ) -> Result<()> {
        let id = then.retriever_id.clone().unwrap_or_default();
        let names = (id.as_str(), then.retriever_name.as_str());
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let Some(name) = self.name(tx, &RETRIEVERS, names, today_name).await? else {
            return Ok(());
        };
        let Some(today) = today else {
            quota::check(tx, &self.caller.org_id, Resource::Retrievers).await?;
            let owner = &self.namespace_id;
            return RETRIEVERS
                .insert(tx, owner, &id, &name, self.now, &then)
                .await;
        };
        let kept_its_name = then.retriever_name == today.name;
        let before = today.data.0;
        let then = RetrieverModelOutput {
            retriever_name: name,
            is_published: before.is_published,
            marketplace_listing_id: before.marketplace_listing_id.clone(),
            updated_at: before.updated_at,
            updated_by: before.updated_by.clone(),
            ..then
        };
        if kept_its_name && then == before {
            return Ok(());
        }
        let then = RetrieverModelOutput {
            updated_at: Some(clock::time(self.now)),
            updated_by: Some(self.caller.actor().to_owned()),
            ..then
        };
        let (owner, name) = (&self.namespace_id, &then.retriever_name);
        RETRIEVERS
            .update(tx, owner, &id, name, self.now, &then)
            .await?;
        let changes = audit::difference(&before, &then);
        let resource = (ResourceType::Retriever, id.as_str());
        self.record(tx, AuditAction::RetrieverUpdated, resource, changes)
            .await
    }

    async fn taxonomy(
        &mut self,
        tx: &mut Tx,
        then: TaxonomyResponse,
        today: Option<Record<TaxonomyResponse>>,
    ) -> Result<()> {
        let id = then.taxonomy_id.clone().unwrap_or_default();
        let names = (id.as_str(), then.taxonomy_name.as_str());
        let today_name = today.as_ref().map(|today| today.name.as_str());
        let Some(name) = self.name(tx, &TAXONOMIES, names, today_name).await? else {
            return Ok(());
        };
        let Some(today) = today else {
            let (caller, owner) = (&self.caller, &self.namespace_id);
            return taxonomies::insert(tx, caller, owner, &then, self.now).await;
        };
        let kept_its_name = then.taxonomy_name == today.name;
        let before = today.data.0;
        let is_new = then.config != before.config || then.nodes != before.nodes;
        let then = TaxonomyResponse {
            taxonomy_name: name,
            version: before.version + i64::from(is_new),
            ..then
        };
        if kept_its_name && then == before {
            return Ok(());
        }
        let (owner, name) = (&self.namespace_id, &then.taxonomy_name);
        TAXONOMIES
            .update(tx, owner, &id, name, self.now, &then)
            .await?;
        if is_new {
            let row = args![&id, owner, then.version, self.now, Arg::json(&then)];
            tx.run(KEEP_VERSION, row).await?;
        }
        let changes = audit::difference(&before, &then);
        let resource = (ResourceType::Taxonomy, id.as_str());
        self.record(tx, AuditAction::TaxonomyUpdated, resource, changes)
            .await?;
        let told = json!({ "taxonomy_id": id, "taxonomy_name": name, "version": then.version });
        self.tell(tx, "taxonomy.updated", told).await
    }

    pub(super) async fn tell(&self, tx: &mut Tx, kind: &'static str, told: Value) -> Result<()> {
        let org_id = &self.caller.org_id;
        push_event(tx, org_id, &self.namespace_id, kind, told, self.now).await
    }
}
