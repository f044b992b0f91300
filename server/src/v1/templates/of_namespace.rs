//! What a template keeps of a namespace: the requests that make what it holds, in the order in which they are sent. They call each
//! other by names, so that they hold in any namespace.

use std::collections::HashMap;

use loupe_wire::{
    ClusterModel, CreateClusterRequest, NamespaceModel, NamespaceOperation, Object, ResourceType,
    TemplateType, Value,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    Kept,
    keeping::{check, configuration, may_keep, names},
    requests, slots,
};
use crate::{
    app::App,
    auth::Caller,
    db::Record,
    error::{ApiError, Result},
    v1::{
        buckets::BUCKETS, clusters::CLUSTERS, collections::COLLECTIONS, namespaces::NAMESPACES,
        retrievers::RETRIEVERS, taxonomies::TAXONOMIES,
    },
};

/// How a namespace is made that POST /v1/namespaces makes.
const MANAGED: &str = "managed";

pub(super) async fn namespace(app: &App, caller: &Caller, identifier: &str) -> Result<Kept> {
    may_keep(caller)?;
    let (db, org_id) = (app.db(), &caller.org_id);
    let record = NAMESPACES.find(db, org_id, identifier).await?;
    let operation = NamespaceOperation::ReadData;
    caller.allow(ResourceType::Namespace, &record.id, operation)?;
    let namespace = &record.data.0;
    if namespace
        .mode
        .as_deref()
        .is_some_and(|mode| mode != MANAGED)
    {
        let message = "a template is of a namespace that POST /v1/namespaces makes";
        return Err(ApiError::conflict("", message));
    }
    let mut whole = Whole {
        names: names(app, &record.id).await?,
        configuration: Object::new(),
        requirements: Vec::new(),
    };
    whole.put("namespace", Value::Object(own(namespace)?));
    whole.read(app, &record.id).await?;
    Ok(Kept {
        kind: TemplateType::Namespace,
        description: namespace.description.clone(),
        source_id: record.id,
        configuration: whole.configuration,
        requirements: whole.requirements,
    })
}

/// What a request for the namespace itself says besides its name.
fn own(namespace: &NamespaceModel) -> Result<Object> {
    let settings = json!({
        "description": namespace.description, "payload_indexes": namespace.payload_indexes,
        "auto_create_indexes": namespace.auto_create_indexes, "adaptive_indexing": namespace.adaptive_indexing,
    });
    configuration(&settings, &[])
}

/// Everything that a namespace holds, so far.
struct Whole {
    names: HashMap<String, String>,
    configuration: Object,
    requirements: Vec<String>,
}

/// Resources in the order in which they were made: what they name was there before them.
fn in_order<T: DeserializeOwned>(mut records: Vec<Record<T>>) -> Vec<T> {
    records.reverse();
    records.into_iter().map(|record| record.data.0).collect()
}

impl Whole {
    fn put(&mut self, member: &str, value: Value) {
        self.configuration.insert(member.to_owned(), value);
    }

    /// Notes once what is left out of some.
    fn leave(&mut self, left: Vec<String>) {
        for one in left {
            if !self.requirements.contains(&one) {
                self.requirements.push(one);
            }
        }
    }

    /// A request with names in the place of ids.
    fn named(&self, mut request: Object, what: &str) -> Result<Value> {
        slots::stand_in(&mut request, &self.names);
        check(&mut request, what)?;
        Ok(Value::Object(request))
    }

    async fn read(&mut self, app: &App, namespace_id: &str) -> Result<()> {
        let db = app.db();
        let mut made = Vec::new();
        for one in in_order(BUCKETS.all(db, namespace_id).await?) {
            self.leave(requests::left_of_bucket(&one));
            let request = configuration(&requests::bucket(&one), &[])?;
            made.push(self.named(request, &format!("the bucket '{}'", one.bucket_name))?);
        }
        self.put("buckets", made.into());
        let mut made = Vec::new();
        for one in in_order(COLLECTIONS.all(db, namespace_id).await?) {
            if one.retriever_transform.is_some() {
                let name = &one.collection_name;
                self.leave(vec![format!(
                    "left out: the collection '{name}', which a retriever makes"
                )]);
                continue;
            }
            self.leave(requests::left_of_collection(&one));
            let mut request = requests::collection(&one)?;
            request.source = one.source.clone();
            request.source.inherited_bucket_ids = None;
            request.source.source_namespace_id = None;
            // The same one stands among `collection_ids`; what is mapped of it is named by its id.
            request.source.collection_id = None;
            let maps = std::mem::take(&mut request.source.field_map).into_iter();
            let maps = maps.map(|(id, map)| (self.names.get(&id).cloned().unwrap_or(id), map));
            request.source.field_map = maps.collect();
            let request = configuration(&request, &[])?;
            made.push(self.named(
                request,
                &format!("the collection '{}'", one.collection_name),
            )?);
        }
        self.put("collections", made.into());
        self.read_searches(app, namespace_id).await
    }

    /// What reads collections.
    async fn read_searches(&mut self, app: &App, namespace_id: &str) -> Result<()> {
        let db = app.db();
        let mut made = Vec::new();
        for one in in_order(RETRIEVERS.all(db, namespace_id).await?) {
            let mut request = requests::retriever(&one)?;
            request.collection_identifiers = Some(one.collection_ids);
            let request = configuration(&request, &[])?;
            made.push(self.named(request, &format!("the retriever '{}'", one.retriever_name))?);
        }
        self.put("retrievers", made.into());
        let mut made = Vec::new();
        for one in in_order(TAXONOMIES.all(db, namespace_id).await?) {
            let request = configuration(&requests::taxonomy(&one), &[])?;
            made.push(self.named(request, &format!("the taxonomy '{}'", one.taxonomy_name))?);
        }
        self.put("taxonomies", made.into());
        let mut made = Vec::new();
        for one in in_order(CLUSTERS.all(db, namespace_id).await?) {
            let request = configuration(&cluster(&one.model), &[])?;
            let what = format!("the cluster '{}'", one.told.cluster_name);
            made.push(self.named(request, &what)?);
        }
        self.put("clusters", made.into());
        Ok(())
    }
}

/// A cluster over what it is over: collections, or other clusters.
fn cluster(model: &ClusterModel) -> CreateClusterRequest {
    let mut request = requests::cluster(model);
    // One that was given no name is called by its id.
    let named = |name: &String| model.cluster_id.as_ref() != Some(name);
    request.cluster_name = request.cluster_name.filter(named);
    match model.source_cluster_ids.is_empty() {
        true => request.collection_ids.clone_from(&model.collection_ids),
        false => request.source_cluster_ids = Some(model.source_cluster_ids.clone()),
    }
    request
}
