//! Collections made from names of features: what `GET /v1/collections/features` lists, by the name, the id or an address.

use loupe_engine::extract::{self, ExtractorInfo, passthrough};
use loupe_wire::{FeatureExtractorConfigInput, Value};

use super::extractors;
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// The extractor that a new collection names, or the one that its features are of: as it is without parameters, and with all
/// fields of the source, as there is no word about either beside the features. A collection that `transforms` may go without:
/// it has what was found as it is.
///
/// # Errors
/// 422 for neither or both, for features that are not known or not to be had here, and for those of several extractors.
pub(super) fn extractor(
    app: &App,
    sent: Option<FeatureExtractorConfigInput>,
    features: Option<Vec<String>>,
    transforms: bool,
) -> Result<FeatureExtractorConfigInput> {
    let features = features.unwrap_or_default();
    let (member, kind, msg) = match (sent, features.is_empty()) {
        (Some(config), true) => return Ok(config),
        (None, false) => return of(app, &features),
        (None, true) if transforms => return Ok(as_it_is()),
        (Some(_), false) => (
            "features",
            "value_error",
            "name the features or the feature_extractor, not both",
        ),
        (None, true) => (
            "feature_extractor",
            "missing",
            "name the extractor: {feature_extractor_name, version, parameters, input_mappings}",
        ),
    };
    Err(Violation::body(&[member], kind, msg, Value::Null).into())
}

fn as_it_is() -> FeatureExtractorConfigInput {
    FeatureExtractorConfigInput {
        feature_extractor_name: passthrough::INFO.name.into(),
        version: passthrough::INFO.version.into(),
        ..Default::default()
    }
}

fn of(app: &App, features: &[String]) -> Result<FeatureExtractorConfigInput> {
    let mut first: Option<&ExtractorInfo> = None;
    for (place, feature) in features.iter().enumerate() {
        let place = place.to_string();
        let fault = |kind: &str, msg: String| {
            let path = ["features", place.as_str()];
            ApiError::from(Violation::body(&path, kind, msg, feature.as_str().into()))
        };
        let info = find(app, feature).map_err(|msg| fault("feature_not_found", msg))?;
        if let Some(reason) = info.unavailable(app.outputs()) {
            return Err(fault("feature_extractor_unavailable", reason));
        }
        match first {
            Some(other) if other.feature_extractor_id != info.feature_extractor_id => {
                let msg = format!(
                    "the features before are of {}, and a collection has one extractor: make another one for those of {}",
                    other.name, info.name
                );
                return Err(fault("value_error", msg));
            }
            _ => first = Some(info),
        }
    }
    let info = first.ok_or_else(|| ApiError::internal("no feature of several was looked for"))?;
    Ok(FeatureExtractorConfigInput {
        feature_extractor_name: info.name.into(),
        version: info.version.into(),
        include_all_source_fields: true,
        ..Default::default()
    })
}

/// The addresses of what an extractor makes without parameters.
fn addresses(app: &App, info: &ExtractorInfo) -> Vec<String> {
    let made = extractors::indexes(info, app.outputs()).into_iter();
    made.filter_map(|index| index.feature_uri).collect()
}

/// The extractor that has a feature without being told to, or why there is none.
fn find(app: &App, feature: &str) -> Result<&'static ExtractorInfo, String> {
    for info in extract::catalogue() {
        let names = [info.name, info.feature_extractor_id];
        if names.contains(&feature) || addresses(app, info).iter().any(|one| one == feature) {
            return Ok(info);
        }
    }
    let is_of = |info: &&ExtractorInfo| {
        let address = format!("loupe://{}@{}/", info.name, info.version);
        feature.starts_with(&address)
    };
    Err(match extract::catalogue().iter().find(is_of) {
        Some(info) => format!(
            "without parameters {} makes: {}; name it as the feature_extractor, with its parameters, for others",
            info.name,
            addresses(app, info).join(", ")
        ),
        None => {
            let names = extract::catalogue().iter().map(|info| info.name);
            let names: Vec<&str> = names.collect();
            format!("there is no such feature; there are: {}", names.join(", "))
        }
    })
}
