//! Resources that a restoration in place puts back: those that are gone under their ids, those that changed as they were.
//! What hangs on them goes on: published pages, versions of a taxonomy, triggers that people paused.

use std::collections::BTreeMap;

use loupe_wire::{
    AuditAction, BucketResponse, CollectionResponse, ResourceType, RetrieverModelOutput,
    SnapshotModel, TaxonomyResponse, Value,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::restore::Resources;
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
        audit::{self, Change},
        buckets::{BUCKETS, destinations},
        clusters::{self, CLUSTERS},
        collections::{self, COLLECTIONS},
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
struct Rows {
    caller: Caller,
    namespace_id: String,
    now: i64,
    /// What could not be put back, or not as it was.
    skipped: Vec<String>,
}

/// Puts everything back in one transaction; what could not be is told.
pub(super) async fn put(
    app: &App,
    claim: &Claim,
    snapshot: &SnapshotModel,
    resources: Resources,
) -> Result<Vec<String>> {
    let mut rows = Rows {
        caller: Caller::system(&claim.org_id),
        namespace_id: snapshot.namespace_id.clone(),
        now: app.clock().micros(),
        skipped: Vec::new(),
    };
    NAMESPACES
        .find(app.db(), &claim.org_id, &rows.namespace_id)
        .await?;
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

/// Whether triggers are kept for a collection.
fn has_triggers(collection: &CollectionResponse) -> bool {
    collection.trigger_id.is_some()
        || collection.schedule.is_some()
        || collection.cluster_applications.is_some()
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

impl Rows {
    async fn put(&mut self, tx: &mut Tx, resources: Resources) -> Result<()> {
        let Resources {
            buckets,
            collections,
            retrievers,
            taxonomies,
            ..
        } = resources;
        // All of them before the first event, which is a lock too; taxonomies before collections, as whoever deletes one.
        let names = named(&buckets, |one| (one.bucket_id.as_ref(), &one.bucket_name));
        let mut held_buckets = self.hold(tx, &BUCKETS, names).await?;
        let names = named(&retrievers, |one| {
            (one.retriever_id.as_ref(), &one.retriever_name)
        });
        let mut held_retrievers = self.hold(tx, &RETRIEVERS, names).await?;
        let names = named(&taxonomies, |one| {
            (one.taxonomy_id.as_ref(), &one.taxonomy_name)
        });
        let mut held_taxonomies = self.hold(tx, &TAXONOMIES, names).await?;
        let names = named(&collections, |one| {
            (one.collection_id.as_ref(), &one.collection_name)
        });
        let mut held_collections = self.hold(tx, &COLLECTIONS, names).await?;
        self.hold_triggers(tx, &collections, &held_collections)
            .await?;
        for one in buckets {
            let id = one.bucket_id.clone().unwrap_or_default();
            self.bucket(tx, one, held_buckets.remove(&id)).await?;
        }
        for one in retrievers {
            let id = one.retriever_id.clone().unwrap_or_default();
            self.retriever(tx, one, held_retrievers.remove(&id)).await?;
        }
        for one in taxonomies {
            let id = one.taxonomy_id.clone().unwrap_or_default();
            self.taxonomy(tx, one, held_taxonomies.remove(&id)).await?;
        }
        for one in collections {
            let id = one.collection_id.clone().unwrap_or_default();
            self.collection(tx, one, held_collections.remove(&id))
                .await?;
        }
        Ok(())
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

    async fn hold_triggers(
        &self,
        tx: &mut Tx,
        collections: &[CollectionResponse],
        held: &Held<CollectionResponse>,
    ) -> Result<()> {
        for one in collections {
            let id = one.collection_id.as_deref().unwrap_or_default();
            let today = held.get(id);
            if has_triggers(one) || today.is_some_and(|today| has_triggers(&today.data.0)) {
                let org_id = &self.caller.org_id;
                triggers::hold_all_of(tx, org_id, &self.namespace_id, id).await?;
            }
        }
        Ok(())
    }

    /// The name that a resource gets: its own; that of today where another one has its own now; none where it is gone, too.
    async fn name<T>(
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

    async fn record(
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

    async fn collection(
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

    /// No snapshot has clusters: those that are gone are applied no more.
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

    async fn tell(&self, tx: &mut Tx, kind: &'static str, told: Value) -> Result<()> {
        let org_id = &self.caller.org_id;
        push_event(tx, org_id, &self.namespace_id, kind, told, self.now).await
    }
}
