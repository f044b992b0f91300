//! The types of resources that a manifest describes: what each is called, which members it takes, and the operations that
//! make, change and read it.

use std::{collections::HashMap, sync::LazyLock};

use loupe_wire::{
    BucketCreateRequest, BucketUpdateRequest, CreateAlertRequest, CreateClusterRequest,
    CreateCollectionRequest, CreateNamespaceRequest, CreateRetrieverRequest, CreateTaxonomyRequest,
    CreateTriggerRequest, ListTriggersRequest, NamespaceOperation, Object, PatchAlertRequest,
    PatchClusterRequest, PatchNamespaceRequest, PatchRetrieverRequest, PatchTaxonomyRequest,
    ResourceType, TriggerStatus, UpdateCollectionRequest, UpdateTriggerRequest, Value,
};
use serde::{Serialize, de::DeserializeOwned};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};
use validator::Validate;

use crate::{
    app::App,
    auth::{
        self, Caller, Read, Scope, Write,
        table::{self, Access, Found, Scoped},
    },
    body,
    db::Table,
    error::{ApiError, Result},
    limits,
    v1::{
        alerts, buckets, buckets::BUCKETS, clusters, clusters::CLUSTERS, collections,
        collections::COLLECTIONS, namespaces, retrievers, retrievers::RETRIEVERS, taxonomies,
        taxonomies::TAXONOMIES, triggers,
    },
};

/// A type of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Namespace,
    Bucket,
    Collection,
    Retriever,
    Taxonomy,
    Cluster,
    Alert,
    Trigger,
}

/// A resource that is there.
#[derive(Debug, Clone)]
pub struct Current {
    pub kind: Kind,
    pub id: String,
    pub name: String,
    pub data: Object,
}

/// Calls something for the requests that make and change a resource of a kind.
macro_rules! with_requests {
    ($kind:expr, $call:ident $arguments:tt) => {
        match $kind {
            Kind::Namespace => $call::<CreateNamespaceRequest, PatchNamespaceRequest> $arguments,
            Kind::Bucket => $call::<BucketCreateRequest, BucketUpdateRequest> $arguments,
            Kind::Collection => $call::<CreateCollectionRequest, UpdateCollectionRequest> $arguments,
            Kind::Retriever => $call::<CreateRetrieverRequest, PatchRetrieverRequest> $arguments,
            Kind::Taxonomy => $call::<CreateTaxonomyRequest, PatchTaxonomyRequest> $arguments,
            Kind::Cluster => $call::<CreateClusterRequest, PatchClusterRequest> $arguments,
            Kind::Alert => $call::<CreateAlertRequest, PatchAlertRequest> $arguments,
            Kind::Trigger => $call::<CreateTriggerRequest, UpdateTriggerRequest> $arguments,
        }
    };
}

impl Kind {
    /// In the order in which people think of them.
    pub const ALL: [Self; 8] = [
        Self::Namespace,
        Self::Bucket,
        Self::Collection,
        Self::Retriever,
        Self::Taxonomy,
        Self::Cluster,
        Self::Alert,
        Self::Trigger,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Bucket => "bucket",
            Self::Collection => "collection",
            Self::Retriever => "retriever",
            Self::Taxonomy => "taxonomy",
            Self::Cluster => "cluster",
            Self::Alert => "alert",
            Self::Trigger => "trigger",
        }
    }

    /// The member of a manifest that lists resources of this kind.
    pub fn section(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Bucket => "buckets",
            Self::Collection => "collections",
            Self::Retriever => "retrievers",
            Self::Taxonomy => "taxonomies",
            Self::Cluster => "clusters",
            Self::Alert => "alerts",
            Self::Trigger => "triggers",
        }
    }

    /// The member of the requests that names a resource.
    pub fn name_member(self) -> &'static str {
        match self {
            Self::Namespace => "namespace_name",
            Self::Bucket => "bucket_name",
            Self::Collection => "collection_name",
            Self::Retriever => "retriever_name",
            Self::Taxonomy => "taxonomy_name",
            Self::Cluster => "cluster_name",
            Self::Alert | Self::Trigger => "name",
        }
    }

    /// Whether the operation that makes a resource keeps blanks at the ends of its name.
    pub fn keeps_blanks(self) -> bool {
        !matches!(self, Self::Namespace | Self::Taxonomy | Self::Cluster)
    }

    fn operations(self) -> [&'static str; 2] {
        match self {
            Self::Namespace => [
                "POST /v1/namespaces",
                "PATCH /v1/namespaces/{namespace_identifier}",
            ],
            Self::Bucket => ["POST /v1/buckets", "PATCH /v1/buckets/{bucket_identifier}"],
            Self::Collection => [
                "POST /v1/collections",
                "PATCH /v1/collections/{collection_identifier}",
            ],
            Self::Retriever => ["POST /v1/retrievers", "PATCH /v1/retrievers/{retriever_id}"],
            Self::Taxonomy => [
                "POST /v1/taxonomies",
                "PATCH /v1/taxonomies/{taxonomy_identifier}",
            ],
            Self::Cluster => [
                "POST /v1/clusters",
                "PATCH /v1/clusters/{cluster_identifier}",
            ],
            Self::Alert => ["POST /v1/alerts", "PATCH /v1/alerts/{alert_identifier}"],
            Self::Trigger => ["POST /v1/triggers", "PATCH /v1/triggers/{trigger_id}"],
        }
    }

    /// Members that only a change takes, which follows at once when the resource is made.
    fn later(self) -> &'static [&'static str] {
        match self {
            Self::Collection => &[
                "document_schema",
                "schema_validation",
                "schema_sync_enabled",
                "index_map",
            ],
            _ => &[],
        }
    }

    /// Members that a change would take, and refuses.
    fn fixed(self) -> &'static [&'static str] {
        match self {
            Self::Retriever => &["stages", "collection_identifiers", "input_schema"],
            _ => &[],
        }
    }

    /// Members that are taken, and not told of afterwards.
    pub fn untold(self) -> &'static [&'static str] {
        match self {
            Self::Namespace => &["features", "feature_extractors", "ttl_seconds"],
            Self::Collection => &["features"],
            Self::Retriever => &[
                "visibility",
                "marketplace_listing_id",
                "requires_subscription",
            ],
            _ => &[],
        }
    }

    /// Every member that a manifest may say of a resource, beside its name.
    pub fn members(self) -> Vec<String> {
        let mut members = with_requests!(self, members_of()).0;
        members.retain(|name| name != self.name_member() && name != "namespace_id");
        members.extend(self.later().iter().map(|name| (*name).to_owned()));
        members
    }

    /// The members that can be changed in place.
    pub fn changeable(self) -> &'static [String] {
        // The descriptions of types are large: they are asked once.
        static ALL: LazyLock<HashMap<Kind, Vec<String>>> = LazyLock::new(|| {
            let members = Kind::ALL.into_iter().map(|kind| {
                let mut members = with_requests!(kind, members_of()).1;
                members.retain(|name| !kind.fixed().contains(&name.as_str()));
                (kind, members)
            });
            members.collect()
        });
        ALL.get(&self).map(Vec::as_slice).unwrap_or_default()
    }

    /// What is said of a resource as its requests understand it.
    ///
    /// # Errors
    /// The 422 list, as the operations give it.
    pub fn check(self, name: &str, sent: &Object) -> Result<Object> {
        let (mut first, later) = self.split(sent.clone());
        first.insert(self.name_member().into(), name.into());
        let (mut first, later) = with_requests!(self, normal((first, later)))?;
        first.shift_remove(self.name_member());
        first.extend(later);
        Ok(first)
    }

    /// What is said when a resource is made, and what is changed after that.
    pub fn split(self, sent: Object) -> (Object, Object) {
        let later = self.later();
        sent.into_iter()
            .partition(|(name, _)| !later.contains(&name.as_str()))
    }

    /// Whether this caller may make (or change) resources of this kind, as far as that is the same for all of them.
    ///
    /// # Errors
    /// 403, as the operation gives it.
    pub async fn permit(self, app: &App, scope: &Scope<Write>, changes: bool) -> Result<()> {
        let operation = self.operations()[usize::from(changes)];
        let found = operation.split_once(' ').and_then(|(method, path)| {
            let method = method.parse().ok()?;
            Some(table::find(&method, path))
        });
        let Some(Found::Row(row)) = found else {
            return Err(ApiError::internal(format!("{operation} has no row")));
        };
        let caller = &scope.caller;
        if let Access::Level(needed) = row.access {
            auth::check_level(caller, needed)?;
            if row.scoped == Scoped::Whole && !caller.key.scopes.is_empty() {
                let operation = auth::operation_of(needed);
                caller.allow(ResourceType::Namespace, &scope.namespace_id, operation)?;
            }
        }
        limits::paid::check(limits::standing(app, &caller.org_id).await?, row)
    }

    /// Makes a resource, as the operation does; answers its id.
    ///
    /// # Errors
    /// As the operation.
    pub async fn create(self, app: &App, scope: &Scope<Write>, sent: Object) -> Result<String> {
        let sent = Value::Object(sent);
        let id = match self {
            Self::Namespace => {
                namespaces::create(app, &scope.caller, read(sent)?)
                    .await?
                    .namespace_id
            }
            Self::Bucket => buckets::create(app, scope, read(sent)?).await?.bucket_id,
            Self::Collection => {
                collections::create(app, scope, read(sent)?)
                    .await?
                    .collection_id
            }
            Self::Retriever => {
                retrievers::create(app, scope, read(sent)?)
                    .await?
                    .retriever_id
            }
            Self::Taxonomy => {
                taxonomies::create(app, scope, read(sent)?)
                    .await?
                    .taxonomy_id
            }
            Self::Cluster => clusters::create(app, scope, read(sent)?).await?.cluster_id,
            Self::Alert => alerts::create_in(app, scope, read(sent)?).await?.alert_id,
            Self::Trigger => triggers::create(app, scope, read(sent)?).await?.trigger_id,
        };
        Ok(id.unwrap_or_default())
    }

    /// Changes members of a resource, as the operation does.
    ///
    /// # Errors
    /// As the operation.
    pub async fn update(
        self,
        app: &App,
        scope: &Scope<Write>,
        id: &str,
        sent: Object,
    ) -> Result<()> {
        let sent = Value::Object(sent);
        match self {
            Self::Namespace => namespaces::update(app, &scope.caller, id, read(sent)?)
                .await
                .map(drop),
            Self::Bucket => buckets::update(app, scope, id, read(sent)?, false)
                .await
                .map(drop),
            Self::Collection => collections::update(app, scope, id, read(sent)?)
                .await
                .map(drop),
            Self::Retriever => retrievers::update(app, scope, id, read(sent)?)
                .await
                .map(drop),
            Self::Taxonomy => taxonomies::update(app, scope, id, read(sent)?)
                .await
                .map(drop),
            Self::Cluster => clusters::update(app, scope, id, read(sent)?)
                .await
                .map(drop),
            Self::Alert => alerts::update_in(app, scope, id, read(sent)?)
                .await
                .map(drop),
            Self::Trigger => triggers::update(app, scope, id, read(sent)?)
                .await
                .map(drop),
        }
    }

    /// The resources of this kind in a namespace that the caller may read.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn all(self, app: &App, scope: &Scope<Write>) -> Result<Vec<Current>> {
        let owner = &scope.namespace_id;
        let mut all = match self {
            // They are the organization's.
            Self::Namespace => Vec::new(),
            Self::Bucket => all_of(app, &BUCKETS, self, owner).await?,
            Self::Collection => all_of(app, &COLLECTIONS, self, owner).await?,
            Self::Retriever => all_of(app, &RETRIEVERS, self, owner).await?,
            Self::Taxonomy => all_of(app, &TAXONOMIES, self, owner).await?,
            Self::Cluster => all_of(app, &CLUSTERS, self, owner).await?,
            Self::Alert => {
                let all = alerts::all_in(app, scope).await?.into_iter();
                let all = all.map(|one| current(self, one.alert_id.clone(), &one.name, &one));
                all.collect::<Result<_>>()?
            }
            Self::Trigger => all_triggers(app, scope).await?,
        };
        if self == Self::Cluster {
            // As it was asked for, not as it is told.
            for one in &mut all {
                if let Some(Value::Object(model)) = one.data.shift_remove("_model") {
                    one.data = model;
                }
            }
        }
        all.retain(|one| self.is_readable(&scope.caller, &scope.namespace_id, &one.id));
        Ok(all)
    }

    /// Whether the key's scopes let the caller read a resource.
    pub fn is_readable(self, caller: &Caller, namespace_id: &str, id: &str) -> bool {
        let (kind, id) = match self {
            Self::Namespace => (ResourceType::Namespace, id),
            Self::Bucket => (ResourceType::Bucket, id),
            Self::Collection => (ResourceType::Collection, id),
            Self::Retriever => (ResourceType::Retriever, id),
            Self::Taxonomy => (ResourceType::Taxonomy, id),
            Self::Cluster => (ResourceType::Cluster, id),
            Self::Alert => (ResourceType::Alert, id),
            // They are about the whole namespace.
            Self::Trigger => (ResourceType::Namespace, namespace_id),
        };
        caller.covers(kind, id, NamespaceOperation::ReadData)
    }
}

fn read<T: DeserializeOwned + Validate + ToSchema>(sent: Value) -> Result<T> {
    body::from_value(sent, None)
}

/// The members of the requests that make and change a resource.
fn members_of<C: ToSchema, U: ToSchema>() -> (Vec<String>, Vec<String>) {
    (names(C::schema()), names(U::schema()))
}

fn names(schema: RefOr<Schema>) -> Vec<String> {
    match schema {
        RefOr::T(Schema::Object(object)) => object.properties.keys().cloned().collect(),
        RefOr::T(Schema::AllOf(all)) => all.items.into_iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// What is sent to make a resource and to change it, with the values of both as their types have them.
fn normal<C, U>((first, later): (Object, Object)) -> Result<(Object, Object)>
where
    C: DeserializeOwned + Serialize + Validate + ToSchema,
    U: DeserializeOwned + Serialize + Validate + ToSchema,
{
    let later = match later.is_empty() {
        true => later,
        false => typed::<U>(later)?,
    };
    Ok((typed::<C>(first)?, later))
}

/// What is sent, as its type writes it.
fn typed<T>(sent: Object) -> Result<Object>
where
    T: DeserializeOwned + Serialize + Validate + ToSchema,
{
    let request: T = read(Value::Object(sent.clone()))?;
    let written = serde_json::to_value(&request).map_err(ApiError::internal)?;
    let Value::Object(mut written) = written else {
        return Ok(sent);
    };
    written.retain(|name, _| sent.contains_key(name));
    Ok(written)
}

fn current(kind: Kind, id: Option<String>, name: &str, data: &impl Serialize) -> Result<Current> {
    let data = match serde_json::to_value(data).map_err(ApiError::internal)? {
        Value::Object(data) => data,
        _ => Object::new(),
    };
    Ok(Current {
        kind,
        id: id.unwrap_or_default(),
        name: name.to_owned(),
        data,
    })
}

async fn all_of<T>(app: &App, table: &Table<T>, kind: Kind, owner: &str) -> Result<Vec<Current>>
where
    T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
{
    let records = table.all(app.db(), owner).await?.into_iter();
    let all = records.map(|one| current(kind, Some(one.id.clone()), &one.name, &one.data.0));
    all.collect()
}

/// Those that were made as such, and not with a collection's schedule, nor removed.
async fn all_triggers(app: &App, scope: &Scope<Write>) -> Result<Vec<Current>> {
    let reading: Scope<Read> = Scope::internal(scope.caller.clone(), scope.namespace_id.clone());
    let request = ListTriggersRequest {
        limit: i64::MAX,
        ..Default::default()
    };
    let collections = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let own: Vec<&String> = collections
        .iter()
        .filter_map(|one| one.trigger_id.as_ref())
        .collect();
    let triggers = triggers::list(app, &reading, request).await?.results;
    let kept = triggers.into_iter().filter(|one| {
        let id = one.trigger_id.as_ref();
        one.status != TriggerStatus::Disabled && !id.is_some_and(|id| own.contains(&id))
    });
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    kept.map(|one| {
        current(
            Kind::Trigger,
            one.trigger_id.clone(),
            &name(&one.name),
            &one,
        )
    })
    .collect()
}

#[cfg(test)]
mod tests;
