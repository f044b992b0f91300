//! What a template keeps of a resource: the request that would make it again, without its name. Collections that it names are named
//! anew where the template is used; other resources of its namespace are called by their names, and ids that nothing is known of
//! make no template.

use std::collections::HashMap;

use loupe_wire::{
    NamespaceOperation, Object, ResourceType, TaxonomyConfig, TaxonomyResponse, TemplateType,
};
use serde::Serialize;

use super::{Kept, allow, requests, slots};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    v1::{
        buckets::{self, BUCKETS},
        clusters::CLUSTERS,
        collections::{self, COLLECTIONS},
        retrievers::{self, RETRIEVERS, cast},
        taxonomies::{self, TAXONOMIES},
    },
};

/// Whoever keeps a template may write what is the organization's.
pub fn may_keep(caller: &Caller) -> Result<()> {
    allow(caller, NamespaceOperation::WriteData)
}

/// Names of what a namespace holds, by id.
pub async fn names(app: &App, namespace_id: &str) -> Result<HashMap<String, String>> {
    let db = app.db();
    let mut names = HashMap::new();
    let all = BUCKETS.all(db, namespace_id).await?;
    names.extend(all.into_iter().map(|one| (one.id, one.name)));
    let all = COLLECTIONS.all(db, namespace_id).await?;
    names.extend(all.into_iter().map(|one| (one.id, one.name)));
    let all = RETRIEVERS.all(db, namespace_id).await?;
    names.extend(all.into_iter().map(|one| (one.id, one.name)));
    let all = TAXONOMIES.all(db, namespace_id).await?;
    names.extend(all.into_iter().map(|one| (one.id, one.name)));
    let all = CLUSTERS.all(db, namespace_id).await?;
    names.extend(all.into_iter().map(|one| (one.id, one.name)));
    Ok(names)
}

/// A request as a template keeps it.
pub fn configuration(request: &impl Serialize, without: &[&str]) -> Result<Object> {
    let mut configuration: Object = cast(request)?;
    configuration.retain(|name, value| !value.is_null() && !without.contains(&name.as_str()));
    Ok(configuration)
}

/// Refuses what names something that is nowhere else.
pub fn check(configuration: &mut Object, what: &str) -> Result<()> {
    match slots::left(configuration) {
        Some(id) => {
            let message = format!(
                "{what} names {id}, which means nothing elsewhere: a template is made of what does without it"
            );
            Err(ApiError::conflict("", message).with("id", id))
        }
        None => Ok(()),
    }
}

/// What has to be there under its name.
fn needed(id: &str, names: &HashMap<String, String>) -> String {
    let kind = match id.split_once('_').map(|(prefix, _)| prefix) {
        Some("bkt") => "bucket",
        Some("clust") => "cluster",
        Some("ret") => "retriever",
        Some("tax") => "taxonomy",
        _ => "collection",
    };
    let name = names.get(id).map_or(id, String::as_str);
    format!("a {kind} named '{name}'")
}

pub(super) async fn bucket(app: &App, scope: &Scope<Write>, identifier: &str) -> Result<Kept> {
    may_keep(&scope.caller)?;
    let bucket = buckets::get(app, scope, identifier).await?;
    let request = requests::bucket(&bucket);
    let mut configuration = configuration(&request, &["bucket_name", "description"])?;
    check(&mut configuration, "the bucket")?;
    Ok(Kept {
        kind: TemplateType::Bucket,
        requirements: requests::left_of_bucket(&bucket),
        source_id: bucket.bucket_id.unwrap_or_default(),
        description: bucket.description,
        configuration,
    })
}

pub(super) async fn collection(app: &App, scope: &Scope<Write>, identifier: &str) -> Result<Kept> {
    may_keep(&scope.caller)?;
    let operation = NamespaceOperation::ReadData;
    let collection = collections::find(app, scope, identifier, operation).await?;
    let request = requests::collection(&collection)?;
    let mut configuration = configuration(&request, &["collection_name", "description"])?;
    let names = names(app, &scope.namespace_id).await?;
    let found = slots::stand_in(&mut configuration, &names);
    check(&mut configuration, "the collection")?;
    let mut requirements = requests::left_of_collection(&collection);
    requirements.extend(found.iter().map(|id| needed(id, &names)));
    Ok(Kept {
        kind: TemplateType::Collection,
        source_id: collection.collection_id.unwrap_or_default(),
        description: collection.description,
        configuration,
        requirements,
    })
}

/// The name of the place of a retriever's collection, counted from 1.
pub fn of_retriever(number: usize) -> String {
    format!("collection_{number}")
}

pub(super) async fn retriever(app: &App, scope: &Scope<Write>, identifier: &str) -> Result<Kept> {
    may_keep(&scope.caller)?;
    let operation = NamespaceOperation::ReadData;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    let request = requests::retriever(&retriever)?;
    let mut configuration = configuration(&request, &["retriever_name", "description"])?;
    let names = names(app, &scope.namespace_id).await?;
    let own = &retriever.collection_ids;
    let places = own.iter().zip(1..);
    let places = places.map(|(id, number)| (id.clone(), slots::slot(&of_retriever(number))));
    slots::stand_in(&mut configuration, &places.collect());
    let found = slots::stand_in(&mut configuration, &names);
    check(&mut configuration, "the retriever")?;
    Ok(Kept {
        kind: TemplateType::Retriever,
        requirements: found.iter().map(|id| needed(id, &names)).collect(),
        source_id: retriever.retriever_id.unwrap_or_default(),
        description: retriever.description,
        configuration,
    })
}

pub(super) async fn cluster(app: &App, scope: &Scope<Write>, identifier: &str) -> Result<Kept> {
    may_keep(&scope.caller)?;
    let (db, namespace_id) = (app.db(), &scope.namespace_id);
    let record = CLUSTERS.find(db, namespace_id, identifier).await?;
    let operation = NamespaceOperation::ReadData;
    let kind = ResourceType::Cluster;
    scope.caller.allow(kind, &record.id, operation)?;
    let model = &record.data.0.model;
    if !model.source_cluster_ids.is_empty() {
        let message = "this cluster is made of clusters: a template is used on collections";
        return Err(ApiError::conflict("", message));
    }
    let request = requests::cluster(model);
    let mut configuration = configuration(&request, &["cluster_name", "description"])?;
    let names = names(app, namespace_id).await?;
    let found = slots::stand_in(&mut configuration, &names);
    check(&mut configuration, "the cluster")?;
    Ok(Kept {
        kind: TemplateType::Cluster,
        requirements: found.iter().map(|id| needed(id, &names)).collect(),
        description: model.description.clone(),
        source_id: record.id,
        configuration,
    })
}

/// Collections and retrievers of a taxonomy, each with the name of its place.
fn places(taxonomy: &TaxonomyResponse, names: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut places: Vec<(String, String)> = Vec::new();
    let mut place = |id: &str, wanted: &str| {
        if places.iter().any(|(other, _)| other == id) {
            return;
        }
        let plain = plain(wanted);
        let mut name = plain.clone();
        for number in 2.. {
            if !places.iter().any(|(_, other)| *other == name) {
                break;
            }
            name = format!("{plain}_{number}");
        }
        places.push((id.to_owned(), name));
    };
    match &taxonomy.config {
        TaxonomyConfig::Flat(flat) => {
            place(&flat.source_collection.collection_id, "source_collection");
            place(&flat.retriever_id, "retriever");
        }
        TaxonomyConfig::Hierarchical(tree) => {
            if let Some(id) = &tree.retriever_id {
                place(id, "retriever");
            }
            let name_of = |id: &str| names.get(id).cloned().unwrap_or_default();
            for node in tree.hierarchical_nodes.iter().flatten() {
                place(&node.collection_id, &name_of(&node.collection_id));
                if let Some(id) = &node.retriever_id {
                    place(id, &format!("retriever {}", name_of(id)));
                }
            }
        }
    }
    places
}

/// A name with letters, digits and underscores alone.
fn plain(name: &str) -> String {
    let kept = |c: char| match c.is_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    let name: String = name.chars().map(kept).collect();
    match name.is_empty() {
        true => "collection".to_owned(),
        false => name,
    }
}

pub(super) async fn taxonomy(app: &App, scope: &Scope<Write>, identifier: &str) -> Result<Kept> {
    may_keep(&scope.caller)?;
    let operation = NamespaceOperation::ReadData;
    let taxonomy = taxonomies::find(app, scope, identifier, operation).await?;
    let request = requests::taxonomy(&taxonomy);
    let mut configuration = configuration(&request, &["taxonomy_name", "description"])?;
    let names = names(app, &scope.namespace_id).await?;
    let places = places(&taxonomy, &names);
    let stands = places.iter();
    let stands = stands.map(|(id, name)| (id.clone(), slots::slot(name)));
    slots::stand_in(&mut configuration, &stands.collect());
    let found = slots::stand_in(&mut configuration, &names);
    check(&mut configuration, "the taxonomy")?;
    let mut requirements: Vec<String> = Vec::new();
    for (id, name) in &places {
        requirements.push(format!("`{name}`: was {}", needed(id, &names)));
    }
    requirements.extend(found.iter().map(|id| needed(id, &names)));
    Ok(Kept {
        kind: TemplateType::Taxonomy,
        source_id: taxonomy.taxonomy_id.unwrap_or_default(),
        description: taxonomy.description,
        configuration,
        requirements,
    })
}
