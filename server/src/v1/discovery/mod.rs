//! What this server can do, told to whoever asks, and what a namespace has, found by its name.

mod schemas;

use axum::extract::State;
use chrono::{DateTime, Utc};
use loupe_engine::{extract, stage};
use loupe_wire::{
    DiscoveryResponse, ExtractorDiscovery, FeatureExtractorResponseModel, ManifestSchemaDiscovery,
    NamespaceOperation, Object, ResourceType, SearchRequest, SearchResourceType, SearchResponse,
    SearchResultItem, StageDiscovery, Value, reading,
};
use serde::{Serialize, de::DeserializeOwned};
use utoipa_axum::router::OpenApiRouter;

use super::{
    buckets::BUCKETS, clusters::CLUSTERS, collections, collections::COLLECTIONS,
    namespaces::NAMESPACES, publishing, retrievers, retrievers::RETRIEVERS, tasks::name_of,
    taxonomies::TAXONOMIES,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    body::Body,
    db::Table,
    error::{ApiError, Result},
    json::Json,
    list::ListParams,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(discover))
        .routes(routes!(discover_extractors))
        .routes(routes!(discover_stages))
        .routes(routes!(discover_schema))
        .routes(routes!(search_resources))
}

/// The extractors and stages of this server.
#[utoipa::path(get, path = "/v1/discovery", tag = "discovery", responses((status = 200, body = DiscoveryResponse)))]
async fn discover(State(app): State<App>) -> Json<DiscoveryResponse> {
    Json(DiscoveryResponse {
        extractors: extractors(&app),
        stages: stages(&app),
        manifest_schema: Some(schemas::all().clone()),
    })
}

/// The extractors: what each takes and gives, and whether this server has what it needs.
#[utoipa::path(get, path = "/v1/discovery/extractors", tag = "discovery", responses((status = 200, body = Vec<ExtractorDiscovery>)))]
async fn discover_extractors(State(app): State<App>) -> Json<Vec<ExtractorDiscovery>> {
    Json(extractors(&app))
}

/// The stages of retrievers, with their parameters.
#[utoipa::path(get, path = "/v1/discovery/stages", tag = "discovery", responses((status = 200, body = Vec<StageDiscovery>)))]
async fn discover_stages(State(app): State<App>) -> Json<Vec<StageDiscovery>> {
    Json(stages(&app))
}

/// What namespaces are made of: each type of resource with the schema of the request that makes it, an example, and what is
/// made before it.
#[utoipa::path(get, path = "/v1/discovery/schema", tag = "discovery", responses((status = 200, body = ManifestSchemaDiscovery)))]
async fn discover_schema(State(app): State<App>) -> Json<ManifestSchemaDiscovery> {
    Json(ManifestSchemaDiscovery {
        extractor_catalog: extractors(&app).iter().map(object).collect(),
        stage_catalog: stages(&app).iter().map(object).collect(),
        ..schemas::all().clone()
    })
}

/// Resources whose names have the words, newest first: of the namespace, and the namespaces themselves.
#[utoipa::path(post, path = "/v1/resources/search", tag = "discovery", request_body = SearchRequest, responses((status = 200, body = SearchResponse)))]
async fn search_resources(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<SearchRequest>,
) -> Result<Json<SearchResponse>> {
    search(&app, &scope, request).await.map(Json)
}

fn extractors(app: &App) -> Vec<ExtractorDiscovery> {
    let told = |info| told(collections::describe(info, app.outputs()));
    extract::catalogue().iter().map(told).collect()
}

fn told(one: FeatureExtractorResponseModel) -> ExtractorDiscovery {
    let indexes = one.required_vector_indexes.unwrap_or_default();
    let indexes: Vec<Object> = indexes.iter().map(object).collect();
    ExtractorDiscovery {
        name: one.feature_extractor_name,
        version: one.version,
        description: one.description,
        supported_modalities: one.supported_input_types.clone(),
        output_features: indexes.clone(),
        input_schema: Some(one.input_schema),
        parameter_schema: one.parameter_schema.unwrap_or_default(),
        output_schema: one.output_schema,
        costs: one.costs,
        type_mode: one.type_mode,
        expected_input_types: one.expected_input_types,
        inference_type: one.inference_type,
        supported_input_types: one.supported_input_types,
        max_inputs: one.max_inputs,
        default_parameters: one.default_parameters,
        required_vector_indexes: indexes,
        position_fields: one.position_fields,
        capabilities: one.capabilities,
        example_usage: one.example_usage,
        realtime_available: one.realtime_available.unwrap_or(false),
        serve_apps: one.serve_apps,
    }
}

fn object(one: &impl Serialize) -> Object {
    match serde_json::to_value(one) {
        Ok(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

/// Stages that read collections by themselves.
const READING: [&str; 7] = [
    "feature_search",
    "attribute_filter",
    "query_expand",
    "agent_search",
    "cross_compare",
    "document_enrich",
    "traverse_edge",
];

/// What a stage asks for: nothing, a model that embeds or ranks, or one that writes and services that are paid.
fn cost_tier(stage_id: &str) -> &'static str {
    match stage_id {
        "llm_filter"
        | "llm_enrich"
        | "summarize"
        | "agent_search"
        | "agentic_enrich"
        | "external_web_search"
        | "external_reverse_image" => "high",
        "feature_search" | "query_expand" | "rerank" | "maxsim_rerank" | "cross_compare"
        | "taxonomy_enrich" => "moderate",
        _ => "low",
    }
}

fn stages(app: &App) -> Vec<StageDiscovery> {
    let all = stage::catalogue(retrievers::configured(app)).into_iter();
    all.map(|one| StageDiscovery {
        category: name_of(one.category),
        cost_tier: cost_tier(&one.stage_id).to_owned(),
        requires_collections: READING.contains(&one.stage_id.as_str()),
        stage_id: one.stage_id,
        description: one.description,
        icon: one.icon,
        parameter_schema: one.parameter_schema,
        available: one.available,
        unavailable_reason: one.unavailable_reason,
    })
    .collect()
}

fn text(object: &Object, member: &str) -> Option<String> {
    object.get(member)?.as_str().map(ToOwned::to_owned)
}

async fn search(app: &App, scope: &Scope<Read>, request: SearchRequest) -> Result<SearchResponse> {
    let wanted = |kind| {
        let kinds = request.resource_types.as_ref();
        kinds.is_none_or(|kinds| kinds.contains(&kind))
    };
    let found = Found {
        app,
        scope,
        params: ListParams {
            // As many of each kind as the page could hold of it.
            limit: request.offset + request.limit,
            offset: 0,
            include_total: true,
            behind: None,
            search: Some(request.query.clone()),
            filter: None,
            sorts: Vec::new(),
        },
    };
    let (namespace, org) = (&scope.namespace_id, &scope.caller.org_id);
    let mut answer = SearchResponse {
        limit: request.limit,
        offset: request.offset,
        ..Default::default()
    };
    macro_rules! add {
        ($($kind:ident: $table:expr, $of:expr, $names:expr;)*) => {$(
            if wanted(SearchResourceType::$kind) {
                let kinds = (SearchResourceType::$kind, ResourceType::$kind);
                found.add(&mut answer, $table, kinds, $of, $names).await?;
            }
        )*};
    }
    add! {
        Bucket: &BUCKETS, namespace, ["bucket_id", "bucket_name"];
        Collection: &COLLECTIONS, namespace, ["collection_id", "collection_name"];
        Retriever: &RETRIEVERS, namespace, ["retriever_id", "retriever_name"];
        Taxonomy: &TAXONOMIES, namespace, ["taxonomy_id", "taxonomy_name"];
        Cluster: &CLUSTERS, namespace, ["cluster_id", "cluster_name"];
        Namespace: &NAMESPACES, org, ["namespace_id", "namespace_name"];
    }
    if wanted(SearchResourceType::PublishedRetriever) {
        found.add_pages(&mut answer).await?;
    }
    let newest =
        |one: &SearchResultItem| (std::cmp::Reverse(one.created_at), one.resource_id.clone());
    answer.results.sort_by_cached_key(newest);
    let [from, size] = [request.offset, request.limit].map(|n| usize::try_from(n).unwrap_or(0));
    answer.results = answer.results.into_iter().skip(from).take(size).collect();
    Ok(answer)
}

/// A search under way.
struct Found<'a> {
    app: &'a App,
    scope: &'a Scope<Read>,
    params: ListParams,
}

impl Found<'_> {
    async fn add<T>(
        &self,
        answer: &mut SearchResponse,
        table: &Table<T>,
        (resource_type, kind): (SearchResourceType, ResourceType),
        owner: &str,
        [id, name]: [&str; 2],
    ) -> Result<()>
    where
        T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
    {
        let caller = &self.scope.caller;
        let page = caller
            .list(self.app, table, kind, owner, &self.params)
            .await?;
        answer.total += page.total_count(&self.params);
        for one in &page.results {
            let one = object(one);
            let time = |member: &str| -> Option<DateTime<Utc>> {
                reading::from_value(one.get(member)?).ok()
            };
            let missing = || ApiError::internal(format!("a {id} without its name or time"));
            answer.results.push(SearchResultItem {
                resource_type,
                resource_id: text(&one, id).ok_or_else(missing)?,
                resource_name: text(&one, name).ok_or_else(missing)?,
                description: text(&one, "description"),
                created_at: time("created_at").ok_or_else(missing)?,
                updated_at: time("updated_at"),
            });
        }
        Ok(())
    }

    /// Published pages are few, and named by the name that strangers know.
    async fn add_pages(&self, answer: &mut SearchResponse) -> Result<()> {
        let words = self
            .params
            .search
            .clone()
            .unwrap_or_default()
            .to_lowercase();
        let read = NamespaceOperation::ReadData;
        for page in publishing::list(self.app.db(), &self.scope.namespace_id).await? {
            let covered =
                self.scope
                    .caller
                    .covers(ResourceType::Retriever, &page.retriever_id, read);
            if !covered || !page.public_name.to_lowercase().contains(&words) {
                continue;
            }
            answer.total += 1;
            answer.results.push(SearchResultItem {
                resource_type: SearchResourceType::PublishedRetriever,
                resource_id: page.public_id,
                resource_name: page.public_name,
                description: page.description,
                created_at: page.created_at,
                updated_at: Some(page.updated_at),
            });
        }
        Ok(())
    }
}
