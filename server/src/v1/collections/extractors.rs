//! The catalogue of feature extractors: what each takes and gives, and what this server lacks for it.

use axum::extract::{Path, State};
use loupe_engine::extract::{self, ExtractorInfo, Outputs};
use loupe_wire::{
    FeatureDiscoveryResponse, FeatureExtractorResponseModel, Object, ServeAppStatus,
    UnifiedExtractorListResponse, UnifiedExtractorResponse, Value, VectorIndexDefinition,
    VectorIndexDefinitionType,
};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use super::parameters;
use crate::{
    app::App,
    auth::{Org, Read, Scope},
    error::{ApiError, Result},
    json::Json,
    openapi::routes,
    v1::{billing, namespaces::NAMESPACES},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(discover_features))
        .routes(routes!(list_extractors))
        .routes(routes!(get_extractor))
        .routes(routes!(list_namespace_extractors))
        .routes(routes!(get_namespace_extractor))
}

/// What a bucket may hold, with the words for people.
const MODALITIES: [(&str, &[&str]); 6] = [
    ("text", &["text", "string"]),
    ("document", &["pdf", "excel"]),
    ("image", &["image"]),
    ("video", &["video"]),
    ("audio", &["audio"]),
    ("any", &["any"]),
];

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// An extractor, as callers are told of it.
pub fn describe(info: &ExtractorInfo, outputs: &Outputs) -> FeatureExtractorResponseModel {
    let mut types: Vec<String> = info
        .inputs
        .iter()
        .flat_map(|input| input.types)
        .map(|kind| (*kind).to_owned())
        .collect();
    types.sort();
    types.dedup();
    let first =
        |input: &extract::registry::Input| input.types.first().copied().unwrap_or("any").to_owned();
    FeatureExtractorResponseModel {
        feature_extractor_name: info.name.into(),
        version: info.version.into(),
        feature_extractor_id: info.feature_extractor_id.into(),
        description: info.description.into(),
        icon: info.icon.into(),
        category: info.category.into(),
        expected_input_types: info
            .inputs
            .iter()
            .map(|input| (input.name.to_owned(), first(input)))
            .collect(),
        input_schema: object(info.input_schema()),
        output_schema: object(info.output_schema()),
        supported_input_types: types,
        max_inputs: info
            .inputs
            .iter()
            .map(|input| (input.name.to_owned(), 1))
            .collect(),
        parameter_schema: Some(parameters::schema(info)),
        default_parameters: object(info.default_parameters()),
        costs: Some(billing::extractor_costs(info)),
        example_usage: example(info),
        required_vector_indexes: Some(indexes(info, outputs)),
        position_fields: info
            .position_fields
            .iter()
            .map(|field| (*field).to_owned())
            .collect(),
        realtime_available: Some(info.unavailable(outputs).is_none()),
        serve_apps: states(info, outputs),
        ..Default::default()
    }
}

/// The member `feature_extractor` of a collection, with a field of the object that is named as the extractor's input is.
fn example(info: &ExtractorInfo) -> Object {
    let named = info.inputs.iter().filter(|input| input.name != "*");
    let mappings: Object = named
        .take(1)
        .map(|input| (input.name.to_owned(), input.name.into()))
        .collect();
    object(json!({
        "feature_extractor_name": info.name, "version": info.version, "input_mappings": mappings, "parameters": {},
    }))
}

/// The vector indexes that a collection gets when no parameter is set.
pub(super) fn indexes(info: &ExtractorInfo, outputs: &Outputs) -> Vec<VectorIndexDefinition> {
    let Ok(params) = info.check_params(&Value::Null, outputs) else {
        return Vec::new();
    };
    let indexes = params.indexes().iter();
    indexes
        .map(|index| VectorIndexDefinition {
            feature_uri: Some(index.feature_uri.clone()),
            display_name: Some(index.output.clone()),
            name: index.name.clone(),
            description: format!("Vectors of {} by {}", info.name, index.output),
            r#type: VectorIndexDefinitionType::Single,
            index: json!({
                "description": format!("{} dimensions of {}", index.dims, index.output),
                "dimensions": index.dims, "type": "dense", "distance": index.distance,
            }),
        })
        .collect()
}

/// Whether each thing that the extractor needs, or does more with, is there; if not, why.
fn states(info: &ExtractorInfo, outputs: &Outputs) -> Vec<ServeAppStatus> {
    info.needs
        .iter()
        .chain(info.gains)
        .map(|need| ServeAppStatus {
            name: need.name().into(),
            status: outputs
                .services
                .lacks(*need)
                .unwrap_or_else(|| "available".into()),
        })
        .collect()
}

/// The same for the list of a namespace, which will hold uploaded extractors beside the built-in ones.
fn unify(info: &ExtractorInfo, outputs: &Outputs) -> UnifiedExtractorResponse {
    let told = describe(info, outputs);
    let uri = told.required_vector_indexes.iter().flatten().next();
    UnifiedExtractorResponse {
        feature_uri: uri.and_then(|index| index.feature_uri.clone()),
        deployed: told.realtime_available,
        feature_extractor_name: told.feature_extractor_name,
        version: told.version,
        feature_extractor_id: told.feature_extractor_id,
        source: told.source,
        description: told.description,
        icon: told.icon,
        input_schema: told.input_schema,
        output_schema: told.output_schema,
        expected_input_types: told.expected_input_types,
        supported_input_types: told.supported_input_types,
        max_inputs: told.max_inputs,
        parameter_schema: told.parameter_schema,
        default_parameters: told.default_parameters,
        costs: told.costs,
        example_usage: told.example_usage,
        required_vector_indexes: told.required_vector_indexes,
        position_fields: told.position_fields,
        realtime_available: told.realtime_available,
        serve_apps: told.serve_apps,
        ..Default::default()
    }
}

fn by_id(id: &str) -> Result<&'static ExtractorInfo> {
    let found = extract::catalogue()
        .iter()
        .find(|info| info.feature_extractor_id == id);
    found.ok_or_else(|| ApiError::not_found("feature_extractor", id))
}

/// What can be found in files of each kind, and by which extractor.
#[utoipa::path(get, path = "/v1/collections/features", tag = "extractors", responses((status = 200, body = FeatureDiscoveryResponse)))]
async fn discover_features(
    State(app): State<App>,
    _org: Org<Read>,
) -> Json<FeatureDiscoveryResponse> {
    let modalities = MODALITIES.iter().map(|(modality, types)| {
        let takes = |info: &&ExtractorInfo| {
            let mut inputs = info.inputs.iter().flat_map(|input| input.types);
            inputs.any(|kind| types.contains(kind))
        };
        let features: Vec<Value> = extract::catalogue()
            .iter()
            .filter(takes)
            .map(|info| feature(info, app.outputs()))
            .collect();
        object(json!({"modality": modality, "input_types": types, "features": features}))
    });
    Json(FeatureDiscoveryResponse {
        modalities: modalities.collect(),
        custom_features: Vec::new(),
        full_res_multiplier: 1.0,
    })
}

fn feature(info: &ExtractorInfo, outputs: &Outputs) -> Value {
    let uris: Vec<String> = indexes(info, outputs)
        .into_iter()
        .filter_map(|index| index.feature_uri)
        .collect();
    let reason = info.unavailable(outputs);
    json!({
        "feature_extractor_id": info.feature_extractor_id, "feature_extractor_name": info.name,
        "version": info.version, "description": info.description, "feature_uris": uris,
        "available": reason.is_none(), "unavailable_reason": reason,
    })
}

/// Every feature extractor of the interface; `realtime_available` says whether this server runs it, `serve_apps` what it
/// lacks.
#[utoipa::path(get, path = "/v1/collections/features/extractors", tag = "extractors", responses((status = 200, body = Vec<FeatureExtractorResponseModel>)))]
async fn list_extractors(
    State(app): State<App>,
    _org: Org<Read>,
) -> Json<Vec<FeatureExtractorResponseModel>> {
    let all = extract::catalogue().iter();
    Json(all.map(|info| describe(info, app.outputs())).collect())
}

/// One feature extractor.
#[utoipa::path(get, path = "/v1/collections/features/extractors/{feature_extractor_id}", tag = "extractors", responses((status = 200, body = FeatureExtractorResponseModel)))]
async fn get_extractor(
    State(app): State<App>,
    _org: Org<Read>,
    Path(id): Path<String>,
) -> Result<Json<FeatureExtractorResponseModel>> {
    by_id(&id).map(|info| Json(describe(info, app.outputs())))
}

/// Which extractors are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceFilter {
    Builtin,
    Custom,
    #[default]
    All,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExtractorQuery {
    /// Built-in ones, uploaded ones, or all.
    #[serde(default)]
    #[param(inline)]
    source: SourceFilter,
    /// Those that this server cannot run, too.
    #[serde(default)]
    include_disabled: bool,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for ExtractorQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        crate::list::query(parts).await
    }
}

/// The namespace of the path must be the one of the header: another is as unknown as one that does not exist.
async fn same_namespace(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<()> {
    let record = NAMESPACES
        .find(app.db(), &scope.caller.org_id, identifier)
        .await?;
    if record.id == scope.namespace_id {
        return Ok(());
    }
    Err(ApiError::not_found("namespace", identifier))
}

/// The extractors that collections of a namespace may use.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/extractors", tag = "extractors", params(ExtractorQuery), responses((status = 200, body = UnifiedExtractorListResponse)))]
async fn list_namespace_extractors(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    query: ExtractorQuery,
) -> Result<Json<UnifiedExtractorListResponse>> {
    same_namespace(&app, &scope, &identifier).await?;
    let wanted = |info: &&ExtractorInfo| {
        query.source != SourceFilter::Custom
            && (query.include_disabled || info.unavailable(app.outputs()).is_none())
    };
    let extractors: Vec<UnifiedExtractorResponse> = extract::catalogue()
        .iter()
        .filter(wanted)
        .map(|info| unify(info, app.outputs()))
        .collect();
    let count = i64::try_from(extractors.len()).unwrap_or(0);
    Ok(Json(UnifiedExtractorListResponse {
        success: true,
        extractors,
        total: count,
        namespace_id: scope.namespace_id,
        builtin_count: count,
        custom_count: 0,
    }))
}

/// One extractor, as the namespace sees it.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/extractors/{extractor_id}", tag = "extractors", responses((status = 200, body = UnifiedExtractorResponse)))]
async fn get_namespace_extractor(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((identifier, id)): Path<(String, String)>,
) -> Result<Json<UnifiedExtractorResponse>> {
    same_namespace(&app, &scope, &identifier).await?;
    by_id(&id).map(|info| Json(unify(info, app.outputs())))
}
