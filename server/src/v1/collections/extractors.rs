//! The catalogue of feature extractors.

use axum::{Json, extract::Path};
use loupe_engine::extract::{self, ExtractorInfo};
use loupe_wire::{FeatureExtractorResponseModel, Object, Value};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{Org, Read},
    error::{ApiError, Result},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_extractors))
        .routes(routes!(get_extractor))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn describe(info: &ExtractorInfo) -> FeatureExtractorResponseModel {
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
        default_parameters: object(info.default_parameters()),
        position_fields: info
            .position_fields
            .iter()
            .map(|field| (*field).to_owned())
            .collect(),
        realtime_available: Some(info.available),
        ..Default::default()
    }
}

/// Every feature extractor of this server.
#[utoipa::path(get, path = "/v1/collections/features/extractors", tag = "extractors", responses((status = 200, body = Vec<FeatureExtractorResponseModel>)))]
async fn list_extractors(_org: Org<Read>) -> Json<Vec<FeatureExtractorResponseModel>> {
    Json(extract::catalogue().iter().map(describe).collect())
}

/// One feature extractor.
#[utoipa::path(get, path = "/v1/collections/features/extractors/{feature_extractor_id}", tag = "extractors", responses((status = 200, body = FeatureExtractorResponseModel)))]
async fn get_extractor(
    _org: Org<Read>,
    Path(id): Path<String>,
) -> Result<Json<FeatureExtractorResponseModel>> {
    let found = extract::catalogue()
        .iter()
        .find(|info| info.feature_extractor_id == id);
    found
        .map(describe)
        .map(Json)
        .ok_or_else(|| ApiError::not_found("feature_extractor", &id))
}
