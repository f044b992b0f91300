//! What templates make: each kind the request that it is, through the same rules as a request that was sent.

use indexmap::IndexMap;
use loupe_wire::{
    BaseTemplateModel, InstantiateBucketTemplateRequest, InstantiateClusterTemplateRequest,
    InstantiateCollectionTemplateRequest, InstantiateRetrieverTemplateRequest,
    InstantiateTaxonomyTemplateRequest, InstantiatedBucketTemplateResponse,
    InstantiatedClusterTemplateResponse, InstantiatedCollectionTemplateResponse,
    InstantiatedRetrieverTemplateResponse, InstantiatedTaxonomyTemplateResponse, Object,
    TemplateType, Value,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use utoipa::ToSchema;
use validator::Validate;

use super::{find, keeping::of_retriever, slots};
use crate::{
    app::App,
    auth::{Scope, Write},
    body,
    error::{ApiError, Result, Violation},
    v1::{buckets, clusters, collections, retrievers, taxonomies},
};

/// What an answer says of what was made.
const CREATED: &str = "created";

/// The request that a template is, with what the caller says over it.
///
/// # Errors
/// The 422 list: what the template says is no longer taken.
fn request<T: DeserializeOwned + Validate + ToSchema>(
    template: BaseTemplateModel,
    said: Value,
) -> Result<T> {
    let mut body = template.configuration;
    body.entry("description")
        .or_insert_with(|| template.description.into());
    if let Value::Object(said) = said {
        body.extend(said.into_iter().filter(|(_, value)| !value.is_null()));
    }
    body::from_value(Value::Object(body), None)
}

pub async fn bucket(
    app: &App,
    scope: &Scope<Write>,
    template_id: &str,
    asked: InstantiateBucketTemplateRequest,
) -> Result<InstantiatedBucketTemplateResponse> {
    let template = find(app, &scope.caller, TemplateType::Bucket, template_id).await?;
    let said = json!({"bucket_name": asked.bucket_name, "description": asked.description});
    let made = buckets::create(app, scope, request(template, said)?).await?;
    Ok(InstantiatedBucketTemplateResponse {
        bucket_id: made.bucket_id.unwrap_or_default(),
        bucket_name: made.bucket_name,
        template_id: template_id.to_owned(),
        status: CREATED.to_owned(),
        created_at: made.created_at,
    })
}

/// Names what a collection reads. One whose documents are written reads nothing.
fn read_from(
    configuration: &mut Object,
    asked: &InstantiateCollectionTemplateRequest,
) -> Result<()> {
    let refuse = |member: &str, kind: &str, msg: &str| {
        Err(ApiError::from(Violation::body(
            &[member],
            kind,
            msg,
            Value::Null,
        )))
    };
    let kept = configuration.get("source").and_then(Value::as_object);
    let mut source = kept.cloned().unwrap_or_default();
    let kind = source.get("type").and_then(Value::as_str);
    let is_written = matches!(kind, Some("direct_upsert" | "none"));
    let buckets = asked.bucket_ids.as_ref().filter(|ids| !ids.is_empty());
    let named = match (buckets, &asked.collection_id) {
        (Some(_), Some(_)) => {
            let msg = "a collection reads buckets or a collection: name one of both";
            return refuse("collection_id", "value_error", msg);
        }
        (Some(ids), None) => json!({"type": "bucket", "bucket_ids": ids}),
        (None, Some(id)) => json!({"type": "collection", "collection_ids": [id]}),
        (None, None) if is_written => return Ok(()),
        (None, None) => {
            let msg = "name the buckets that the collection reads, or the collection";
            return refuse("bucket_ids", "missing", msg);
        }
    };
    source.extend(named.as_object().cloned().unwrap_or_default());
    configuration.insert("source".to_owned(), Value::Object(source));
    // It has the schema of what it reads.
    configuration.retain(|name, _| name != "input_schema");
    Ok(())
}

pub async fn collection(
    app: &App,
    scope: &Scope<Write>,
    template_id: &str,
    asked: InstantiateCollectionTemplateRequest,
) -> Result<InstantiatedCollectionTemplateResponse> {
    let kind = TemplateType::Collection;
    let mut template = find(app, &scope.caller, kind, template_id).await?;
    read_from(&mut template.configuration, &asked)?;
    if !asked.tags.is_empty() {
        // Collections have no tags of their own.
        let metadata = template.configuration.get("metadata");
        let metadata = metadata.and_then(Value::as_object);
        let mut metadata = metadata.cloned().unwrap_or_default();
        metadata.insert("tags".to_owned(), asked.tags.into());
        let metadata = Value::Object(metadata);
        let configuration = &mut template.configuration;
        configuration.insert("metadata".to_owned(), metadata);
    }
    let said = json!({"collection_name": asked.collection_name, "description": asked.description});
    let made = collections::create(app, scope, request(template, said)?).await?;
    Ok(InstantiatedCollectionTemplateResponse {
        collection_id: made.collection_id.unwrap_or_default(),
        collection_name: made.collection_name,
        template_id: template_id.to_owned(),
        status: CREATED.to_owned(),
        created_at: made.created_at,
    })
}

pub async fn retriever(
    app: &App,
    scope: &Scope<Write>,
    template_id: &str,
    asked: InstantiateRetrieverTemplateRequest,
) -> Result<InstantiatedRetrieverTemplateResponse> {
    let kind = TemplateType::Retriever;
    let mut template = find(app, &scope.caller, kind, template_id).await?;
    let named = asked.collection_identifiers;
    let places = named.iter().zip(1..);
    let places: IndexMap<String, String> = places
        .map(|(named, number)| (of_retriever(number), named.clone()))
        .collect();
    let missing = slots::fill(&mut template.configuration, &places).missing;
    if let Some(place) = missing.last() {
        let msg = format!("the stages of this template name more collections, up to {place}");
        let path = ["collection_identifiers"];
        return Err(Violation::body(&path, "too_short", msg, named.into()).into());
    }
    let tags = (!asked.tags.is_empty()).then_some(asked.tags);
    let said = json!({
        "retriever_name": asked.retriever_name, "description": asked.description,
        "collection_identifiers": named, "tags": tags,
    });
    let made = retrievers::create(app, scope, request(template, said)?).await?;
    Ok(InstantiatedRetrieverTemplateResponse {
        retriever_id: made.retriever_id.unwrap_or_default(),
        retriever_name: made.retriever_name,
        template_id: template_id.to_owned(),
        status: CREATED.to_owned(),
        created_at: made.created_at,
    })
}

pub async fn taxonomy(
    app: &App,
    scope: &Scope<Write>,
    template_id: &str,
    asked: InstantiateTaxonomyTemplateRequest,
) -> Result<InstantiatedTaxonomyTemplateResponse> {
    let kind = TemplateType::Taxonomy;
    let mut template = find(app, &scope.caller, kind, template_id).await?;
    let given = asked.collection_config;
    let filled = slots::fill(&mut template.configuration, &given);
    let fault = |name: &String, kind: &str, msg: &str| {
        let input = given.get(name).map_or(Value::Null, |id| id.clone().into());
        Violation::body(&["collection_config", name], kind, msg, input)
    };
    let missing = filled.missing.iter();
    let missing = missing.map(|name| fault(name, "missing", "the template asks for it"));
    let unused = filled.unused.iter();
    let unused =
        unused.map(|name| fault(name, "extra_forbidden", "the template has no such place"));
    let faults: Vec<Violation> = missing.chain(unused).collect();
    if !faults.is_empty() {
        return Err(ApiError::Validation(faults));
    }
    let said = json!({"taxonomy_name": asked.taxonomy_name, "description": asked.description});
    let made = taxonomies::create(app, scope, request(template, said)?).await?;
    Ok(InstantiatedTaxonomyTemplateResponse {
        taxonomy_id: made.taxonomy_id.unwrap_or_default(),
        taxonomy_name: made.taxonomy_name,
        template_id: template_id.to_owned(),
        status: CREATED.to_owned(),
        created_at: made.created_at,
    })
}

pub async fn cluster(
    app: &App,
    scope: &Scope<Write>,
    template_id: &str,
    asked: InstantiateClusterTemplateRequest,
) -> Result<InstantiatedClusterTemplateResponse> {
    let template = find(app, &scope.caller, TemplateType::Cluster, template_id).await?;
    let said = json!({
        "cluster_name": asked.cluster_name, "description": asked.description,
        "collection_ids": asked.collection_ids,
    });
    let made = clusters::create(app, scope, request(template, said)?).await?;
    Ok(InstantiatedClusterTemplateResponse {
        cluster_id: made.cluster_id.unwrap_or_default(),
        cluster_name: made.cluster_name,
        template_id: template_id.to_owned(),
        status: CREATED.to_owned(),
        created_at: made.created_at,
    })
}
