//! A namespace after the pattern of another: rows at once, documents by a task.

mod adding;
mod status;

use indexmap::IndexMap;
use loupe_wire::{
    AuditAction, BucketResponse, CloneNamespaceRequest, CloneNamespaceRequestMode,
    CloneNamespaceResponse, ClonedResourceSummary, CollectionResponse, NamespaceModel,
    NamespaceOperation, ResourceType, RetrieverModelOutput, SourceConfig, StageConfigOutput,
    TaxonomyResponse, Value, reading,
};
use serde::de::DeserializeOwned;

pub use status::set_clone_status;

use super::{NAMESPACES, check_name, store};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
    id,
    limits::quota::{self, Resource},
    v1::{
        audit::{self, Change},
        buckets::{BUCKETS, destinations},
        collections::{self, COLLECTIONS},
        copying::{self, Copy},
        retrievers::RETRIEVERS,
        taxonomies::{self, TAXONOMIES},
    },
};

/// New ids by old ones.
pub type Ids = IndexMap<String, String>;

fn check(caller: &Caller, request: &CloneNamespaceRequest) -> Result<()> {
    let refuse = |path: &[&str], msg: &str| {
        ApiError::from(Violation::body(path, "not_enabled", msg, Value::Null))
    };
    let wanted = request.include_resources.clone().unwrap_or_default();
    if wanted.taxonomies && !wanted.retrievers {
        let path = ["include_resources", "taxonomies"];
        let msg = "taxonomies find their nodes by retrievers: include both, or no taxonomies";
        return Err(Violation::body(&path, "value_error", msg, Value::Null).into());
    }
    if wanted.retrievers && !wanted.collections {
        let path = ["include_resources", "retrievers"];
        let msg = "retrievers search their collections: include both, or neither";
        return Err(Violation::body(&path, "value_error", msg, Value::Null).into());
    }
    if request.mode == CloneNamespaceRequestMode::Branch {
        return Err(refuse(&["mode"], "branches are not available yet: copy"));
    }
    let other = request.source_organization_id.as_ref();
    if other.is_some_and(|other| *other != caller.org_id) {
        return Err(ApiError::not_found(
            "organization",
            other.map(String::as_str).unwrap_or_default(),
        ));
    }
    Ok(())
}

/// What a clone is made after.
pub struct Pattern {
    pub buckets: Vec<BucketResponse>,
    pub collections: Vec<CollectionResponse>,
    pub retrievers: Vec<RetrieverModelOutput>,
    pub taxonomies: Vec<TaxonomyResponse>,
}

impl Pattern {
    /// What a namespace holds of what is wanted.
    async fn read(app: &App, source_id: &str, request: &CloneNamespaceRequest) -> Result<Self> {
        let wanted = request.include_resources.clone().unwrap_or_default();
        let db = app.db();
        let mut pattern = Self {
            buckets: data(BUCKETS.all(db, source_id).await?),
            collections: Vec::new(),
            retrievers: Vec::new(),
            taxonomies: Vec::new(),
        };
        if wanted.collections {
            pattern.collections = data(COLLECTIONS.all(db, source_id).await?);
            // A copy is made of what the search engine holds.
            let mut all = pattern.collections.iter();
            all.try_for_each(collections::lifecycle::check_here)?;
        }
        if wanted.retrievers {
            pattern.retrievers = data(RETRIEVERS.all(db, source_id).await?);
        }
        if wanted.taxonomies {
            pattern.taxonomies = data(TAXONOMIES.all(db, source_id).await?);
        }
        Ok(pattern)
    }
}

fn data<T: DeserializeOwned>(records: Vec<Record<T>>) -> Vec<T> {
    records.into_iter().map(|record| record.data.0).collect()
}

/// What is written for a clone.
pub struct Clone {
    pub namespace: NamespaceModel,
    buckets: Vec<BucketResponse>,
    pub collections: Vec<CollectionResponse>,
    retrievers: Vec<RetrieverModelOutput>,
    pub taxonomies: Vec<TaxonomyResponse>,
    pub ids: ClonedResourceSummary,
}

/// Collections that a collection reads, and the buckets below them.
fn sources(source: &mut SourceConfig, ids: &ClonedResourceSummary) {
    remap(source.collection_ids.iter_mut().flatten(), &ids.collections);
    remap(&mut source.collection_id, &ids.collections);
    remap(
        source.inherited_bucket_ids.iter_mut().flatten(),
        &ids.buckets,
    );
    let maps = std::mem::take(&mut source.field_map);
    source.field_map = maps
        .into_iter()
        .map(|(id, map)| (ids.collections.get(&id).cloned().unwrap_or(id), map))
        .collect();
}

/// What the stages of a retriever are told.
fn parameters(retriever: &mut RetrieverModelOutput) -> impl Iterator<Item = &mut Value> {
    retriever.stages.iter_mut().flat_map(parameters_of)
}

fn parameters_of(stage: &mut StageConfigOutput) -> impl Iterator<Item = &mut Value> {
    let config = stage.config.values_mut();
    config.chain(stage.parameters.values_mut())
}

impl Clone {
    /// Gives everything new ids.
    pub fn of(namespace: NamespaceModel, pattern: Pattern) -> Result<Self> {
        let mut clone = Self {
            namespace,
            buckets: Vec::new(),
            collections: Vec::new(),
            retrievers: Vec::new(),
            taxonomies: Vec::new(),
            ids: ClonedResourceSummary::default(),
        };
        clone.take_buckets(pattern.buckets);
        // Their new ids come first: collections and retrievers name them.
        for taxonomy in &pattern.taxonomies {
            let old = taxonomy.taxonomy_id.clone().unwrap_or_default();
            renamed(&mut clone.ids.taxonomies, old, "tax_");
        }
        clone.take_collections(pattern.collections);
        clone.take_retrievers(pattern.retrievers);
        clone.name_retrievers();
        clone.take_taxonomies(pattern.taxonomies)?;
        Ok(clone)
    }

    fn take_buckets(&mut self, buckets: Vec<BucketResponse>) {
        let at = self.namespace.created_at;
        for bucket in buckets {
            let old = bucket.bucket_id.clone().unwrap_or_default();
            let new = renamed(&mut self.ids.buckets, old, "bkt_");
            self.buckets.push(BucketResponse {
                bucket_id: Some(new),
                created_at: at,
                updated_at: at,
                ..bucket
            });
        }
    }

    fn take_collections(&mut self, collections: Vec<CollectionResponse>) {
        let at = self.namespace.created_at;
        for collection in collections {
            let old = collection.collection_id.clone().unwrap_or_default();
            let new = renamed(&mut self.ids.collections, old, "col_");
            let mut collection = CollectionResponse {
                collection_id: Some(new),
                created_at: at,
                updated_at: at,
                ..collection
            };
            remap(
                collection.source.bucket_ids.iter_mut().flatten(),
                &self.ids.buckets,
            );
            self.collections.push(collection);
        }
        // A collection may read one that comes after it.
        for collection in &mut self.collections {
            applications(collection, &self.ids);
            sources(&mut collection.source, &self.ids);
        }
    }

    fn take_retrievers(&mut self, retrievers: Vec<RetrieverModelOutput>) {
        let at = self.namespace.created_at;
        for retriever in retrievers {
            let old = retriever.retriever_id.clone().unwrap_or_default();
            let new = renamed(&mut self.ids.retrievers, old, "ret_");
            let mut retriever = RetrieverModelOutput {
                retriever_id: Some(new),
                created_at: at,
                updated_at: at,
                ..retriever
            };
            remap(&mut retriever.collection_ids, &self.ids.collections);
            remap(&mut retriever.collection_identifiers, &self.ids.collections);
            for value in parameters(&mut retriever) {
                remap_inside(value, &self.ids.collections);
                remap_inside(value, &self.ids.taxonomies);
            }
            self.retrievers.push(retriever);
        }
    }

    /// What names retrievers names those of the clone.
    fn name_retrievers(&mut self) {
        // A retriever may run one that comes after it.
        for value in self.retrievers.iter_mut().flat_map(parameters) {
            remap_inside(value, &self.ids.retrievers);
        }
        for bucket in &mut self.buckets {
            ingest_filter(bucket, &self.ids);
        }
        for collection in &mut self.collections {
            if let Some(applied) = &mut collection.retriever_enrichments {
                // Without the retriever there is nothing to run.
                applied.retain(|one| self.ids.retrievers.contains_key(&one.retriever_id));
                let named = applied.iter_mut().map(|one| &mut one.retriever_id);
                remap(named, &self.ids.retrievers);
            }
            if let Some(transform) = &mut collection.retriever_transform {
                remap(&mut transform.retriever_id, &self.ids.retrievers);
                for value in transform.stages.iter_mut().flat_map(parameters_of) {
                    for ids in [
                        &self.ids.collections,
                        &self.ids.taxonomies,
                        &self.ids.retrievers,
                    ] {
                        remap_inside(value, ids);
                    }
                }
            }
        }
    }

    fn take_taxonomies(&mut self, taxonomies: Vec<TaxonomyResponse>) -> Result<()> {
        for taxonomy in taxonomies {
            let mut value = serde_json::to_value(&taxonomy).map_err(ApiError::internal)?;
            for ids in [
                &self.ids.collections,
                &self.ids.retrievers,
                &self.ids.taxonomies,
            ] {
                remap_inside(&mut value, ids);
            }
            let copy: TaxonomyResponse = reading::from_value(&value).map_err(ApiError::internal)?;
            self.taxonomies.push(TaxonomyResponse {
                version: 1,
                created_at: self.namespace.created_at,
                ..copy
            });
        }
        Ok(())
    }

    /// Writes the namespace with its rows, and the audit log's record of it.
    pub async fn insert(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        changes: Value,
        now: i64,
    ) -> Result<()> {
        let namespace = &self.namespace;
        let namespace_id = namespace.namespace_id.as_deref().unwrap_or_default();
        quota::check(tx, &caller.org_id, Resource::Namespaces).await?;
        store::insert(tx, &caller.org_id, namespace, now).await?;
        self.insert_rows(tx, caller, namespace_id, now).await?;
        let change = Change {
            action: AuditAction::NamespaceCreated,
            resource: (ResourceType::Namespace, namespace_id),
            changes,
        };
        audit::record(tx, caller, change, now).await
    }

    /// Writes what it holds.
    async fn insert_rows(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        namespace_id: &str,
        now: i64,
    ) -> Result<()> {
        for bucket in &self.buckets {
            let id = bucket.bucket_id.as_deref().unwrap_or_default();
            quota::check(tx, &caller.org_id, Resource::Buckets).await?;
            destinations::check_copied(tx, (caller, namespace_id), bucket).await?;
            let owner = (caller.org_id.as_str(), namespace_id);
            let bucket = &destinations::settled(tx, owner, bucket.clone(), now).await?;
            BUCKETS
                .insert(tx, namespace_id, id, &bucket.bucket_name, now, bucket)
                .await?;
        }
        for collection in &self.collections {
            collections::insert(tx, caller, namespace_id, collection, now).await?;
        }
        for one in &self.retrievers {
            let id = one.retriever_id.as_deref().unwrap_or_default();
            quota::check(tx, &caller.org_id, Resource::Retrievers).await?;
            RETRIEVERS
                .insert(tx, namespace_id, id, &one.retriever_name, now, one)
                .await?;
        }
        for one in &self.taxonomies {
            taxonomies::insert(tx, caller, namespace_id, one, now).await?;
        }
        Ok(())
    }
}

/// The taxonomies that a cloned collection applies are those of the clone; without them it applies none. Clusters and alerts
/// are not cloned, nor is the time at which it is processed.
fn applications(collection: &mut CollectionResponse, ids: &ClonedResourceSummary) {
    collection.cluster_applications = None;
    collection.alert_applications = None;
    collection.schedule = None;
    collection.trigger_id = None;
    let Some(applied) = &mut collection.taxonomy_applications else {
        return;
    };
    applied.retain(|one| ids.taxonomies.contains_key(&one.taxonomy_id));
    for one in applied {
        remap([&mut one.taxonomy_id], &ids.taxonomies);
        remap(one.target_collection_id.as_mut(), &ids.collections);
    }
}

/// A cloned bucket is filtered by the clone's retriever; without it by none.
fn ingest_filter(bucket: &mut BucketResponse, ids: &ClonedResourceSummary) {
    let filter = bucket.ingest_filter.take();
    let filter = filter.filter(|one| ids.retrievers.contains_key(&one.retriever_id));
    bucket.ingest_filter = filter.map(|mut one| {
        remap([&mut one.retriever_id], &ids.retrievers);
        one
    });
}

/// A new id, noted beside the old one.
fn renamed(ids: &mut Ids, old: String, prefix: &'static str) -> String {
    let new = id::new(prefix);
    ids.insert(old, new.clone());
    new
}

/// Names stay as they are, for they are the clone's too.
fn remap<'a>(references: impl IntoIterator<Item = &'a mut String>, ids: &Ids) {
    for reference in references {
        if let Some(new) = ids.get(reference) {
            reference.clone_from(new);
        }
    }
}

/// The same for references inside the parameters of stages; an id is no other word by chance.
pub fn remap_inside(value: &mut Value, ids: &Ids) {
    match value {
        Value::String(text) => remap([text], ids),
        Value::Array(items) => items.iter_mut().for_each(|item| remap_inside(item, ids)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|item| remap_inside(item, ids)),
        _ => {}
    }
}

/// Why a namespace that is being made is no pattern for another one.
pub const NOT_READY: &str =
    "the namespace is being made still: what is made of it now would have a part of its documents";

/// Whether documents of the namespace are being copied into it.
pub fn is_being_made(namespace: &NamespaceModel) -> bool {
    namespace.clone_status.as_deref() == Some("cloning")
}

/// Clones collections with their documents, retrievers that search them, and buckets without their objects.
pub async fn clone(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: CloneNamespaceRequest,
) -> Result<CloneNamespaceResponse> {
    let source = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, "*", operation)?;
    caller.allow(ResourceType::Namespace, &source.id, operation)?;
    check(caller, &request)?;
    let name = check_name(&request.namespace_name)?;
    if is_being_made(&source) {
        return Err(ApiError::conflict("namespace_not_ready", NOT_READY));
    }
    let pattern = Pattern::read(app, &source.id, &request).await?;
    let (caller, now) = (caller.clone(), app.clock().micros());
    let at = clock::time(now);
    let expires_at = super::expiry(at, request.ttl_seconds)?;
    let namespace = NamespaceModel {
        namespace_id: Some(id::new("ns_")),
        namespace_name: name,
        description: request.description.or(source.data.0.description.clone()),
        clone_status: Some("cloning".into()),
        clone_phase: Some("queued".into()),
        clone_error: None,
        clone_dispatched_at: Some(at),
        source_namespace_id: Some(source.id.clone()),
        namespace_ready: false,
        created_at: Some(at),
        updated_at: Some(at),
        expires_at,
        ..source.data.0
    };
    let mut clone = Clone::of(namespace, pattern)?;
    let copy = Copy {
        from_namespace: source.id.clone(),
        collections: clone.ids.collections.clone().into_iter().collect(),
        whole: true,
    };
    let clone = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let id = clone.namespace.namespace_id.clone().unwrap_or_default();
                let task = copying::enqueue(tx, &caller.org_id, &id, &copy, now).await?;
                clone.namespace.clone_task_id = Some(task.task_id);
                let changes = serde_json::json!({ "cloned_from": copy.from_namespace });
                clone.insert(tx, &caller, changes, now).await?;
                Ok(clone)
            })
        })
        .await?;
    app.work.notify_one();
    Ok(answer(clone, source.id))
}

fn answer(clone: Clone, source_namespace_id: String) -> CloneNamespaceResponse {
    let counts = [
        ("collections", clone.collections.len()),
        ("retrievers", clone.retrievers.len()),
        ("buckets", clone.buckets.len()),
        ("taxonomies", clone.taxonomies.len()),
    ];
    let count = |(name, count): (&str, usize)| (name.to_owned(), i64::try_from(count).unwrap_or(0));
    CloneNamespaceResponse {
        source_namespace_id,
        status: "cloning".into(),
        task_id: clone.namespace.clone_task_id.clone(),
        cloned_resource_counts: counts.into_iter().map(count).collect(),
        primary_retriever_id: clone.ids.retrievers.first().map(|(_, new)| new.clone()),
        cloned_resources: Some(clone.ids),
        namespace: clone.namespace,
    }
}
