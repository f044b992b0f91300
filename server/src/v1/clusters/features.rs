//! The features whose vectors are clustered, as a cluster names and weighs them.

use loupe_wire::{Value, VectorBasedConfigInput};

use super::config::fault;
use crate::error::Result;

/// Greatest weight of a feature: distances of what is weighed stay numbers.
const MAX_WEIGHT: f64 = 1_000.0;

/// The features whose vectors are clustered; none: the first of each collection.
pub(super) fn named(config: &VectorBasedConfigInput) -> Vec<String> {
    if let Some(features) = config.feature_uris.clone().filter(|list| !list.is_empty()) {
        return features;
    }
    if let Some(feature) = &config.feature_uri {
        return vec![feature.clone()];
    }
    match (
        &config.feature_extractor_name,
        &config.version,
        &config.output_name,
    ) {
        (Some(name), Some(version), Some(output)) => {
            vec![format!("loupe://{name}@{version}/{output}")]
        }
        _ => Vec::new(),
    }
}

/// Whether a feature is named as a whole, and weights are those of features that are clustered.
///
/// # Errors
/// The 422 list.
pub(super) fn check(config: &VectorBasedConfigInput) -> Result<()> {
    let at = |member: &'static str| ["vector_config", member];
    let parts = [
        ("feature_extractor_name", &config.feature_extractor_name),
        ("version", &config.version),
        ("output_name", &config.output_name),
    ];
    let said = parts.iter().filter(|(_, part)| part.is_some()).count();
    let lacking = parts.iter().find(|(_, part)| part.is_none());
    let is_named = config.feature_uri.is_some() || config.feature_uris.is_some();
    if let (Some((member, _)), false, true) = (lacking, is_named, said > 0) {
        let msg = "a feature is named by feature_uri, or by feature_extractor_name, version and output_name together";
        return Err(fault(&at(member), "missing", msg, Value::Null));
    }
    let features = named(config);
    for (feature, weight) in config.feature_weights.iter().flatten() {
        let refuse = |msg: &str| {
            let path = ["vector_config", "feature_weights", feature.as_str()];
            Err(fault(&path, "value_error", msg, *weight))
        };
        if !features.contains(feature) {
            return refuse(
                "weights are those of the features in feature_uri or feature_uris, as they are named there",
            );
        }
        if !(0.0..=MAX_WEIGHT).contains(weight) {
            return refuse("a weight is a number from 0 to 1000");
        }
    }
    let weight = |feature: &String| config.feature_weights.as_ref()?.get(feature).copied();
    if !features.is_empty() && features.iter().all(|one| weight(one) == Some(0.0)) {
        let msg = "one feature at least weighs more than 0";
        return Err(fault(
            &at("feature_weights"),
            "value_error",
            msg,
            Value::Null,
        ));
    }
    Ok(())
}
