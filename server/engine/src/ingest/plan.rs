//! A collection's extractor, parsed once for all its chunks.

use loupe_wire::{FeatureExtractorConfigOutput, FieldPassthrough, Object, Value};
use serde::Deserialize;

use super::fields;
use crate::{
    extract::{self, ExtractorInfo, Outputs, Params},
    store::CollectionSpec,
};

/// Why a stored collection cannot be processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// Where one input of the extractor comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum From {
    /// A field's path or a property's name.
    Path(String),
    Literal(Value),
}

/// A collection as ingestion needs it.
#[derive(Debug, Clone)]
pub struct CollectionPlan {
    pub spec: CollectionSpec,
    /// Kept in the documents' `_internal`.
    pub org_id: String,
    pub extractor: &'static ExtractorInfo,
    pub params: Params,
    pub(super) mappings: Vec<(String, From)>,
    pub(super) passthrough: Vec<FieldPassthrough>,
    pub(super) include_all: bool,
}

impl CollectionPlan {
    /// Reads the stored configuration.
    ///
    /// # Errors
    /// An extractor or model that this server does not have, or mappings that cannot be read.
    pub fn new(
        spec: CollectionSpec,
        org_id: &str,
        config: &FeatureExtractorConfigOutput,
        outputs: &Outputs,
    ) -> Result<Self, PlanError> {
        let name = &config.feature_extractor_name;
        let extractor = extract::find(name, &config.version).ok_or_else(|| {
            PlanError(format!(
                "there is no extractor {name}@{} on this server",
                config.version
            ))
        })?;
        let parameters = config.parameters.clone().unwrap_or(Value::Null);
        let params = extractor
            .check_params(&parameters, outputs)
            .map_err(|fault| PlanError(fault.to_string()))?;
        Ok(Self {
            spec,
            org_id: org_id.to_owned(),
            extractor,
            mappings: mappings(config.input_mappings.as_ref())?,
            passthrough: config.field_passthrough.clone(),
            include_all: config.include_all_source_fields
                || matches!(params, Params::Passthrough(_)),
            params,
        })
    }

    /// The source fields that documents keep.
    ///
    /// # Errors
    /// A required field that the object does not have.
    pub(super) fn pass_through(&self, source: &Object) -> Result<Object, String> {
        let mut passed = Object::new();
        if self.include_all && !matches!(self.params, Params::Passthrough(_)) {
            passed.extend(source.clone());
        }
        for rule in &self.passthrough {
            let target = rule.target_path.as_ref().unwrap_or(&rule.source_path);
            match fields::get(source, &rule.source_path)
                .cloned()
                .or_else(|| rule.default.clone())
            {
                Some(value) => fields::set(&mut passed, target, value),
                None if rule.required => {
                    return Err(format!(
                        "the object has no field {}, which the collection requires",
                        rule.source_path
                    ));
                }
                None => {}
            }
        }
        Ok(passed)
    }
}

/// One entry of the list form.
#[derive(Deserialize)]
struct Entry {
    input_key: String,
    /// payload, literal, vector or blob.
    source_type: Option<String>,
    path: Option<String>,
    r#override: Option<Value>,
}

/// `{"text": "description"}`, `{"text": {"path": …}}` or a list of mappings.
fn mappings(config: Option<&Value>) -> Result<Vec<(String, From)>, PlanError> {
    let wrong =
        || PlanError("input_mappings is {input: path} or a list of {input_key, path}".into());
    match config {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => members
            .iter()
            .map(|(input, source)| match source {
                Value::String(path) => Ok((input.clone(), From::Path(path.clone()))),
                Value::Object(inner) => {
                    let path = inner
                        .get("path")
                        .and_then(Value::as_str)
                        .ok_or_else(wrong)?;
                    Ok((input.clone(), From::Path(path.to_owned())))
                }
                _ => Err(wrong()),
            })
            .collect(),
        Some(list @ Value::Array(_)) => {
            let list: Vec<Entry> = serde_json::from_value(list.clone()).map_err(|_| wrong())?;
            list.into_iter()
                .map(|mapping| {
                    let literal = mapping.r#override.or_else(|| {
                        let is_literal = mapping.source_type.as_deref() == Some("literal");
                        is_literal
                            .then(|| mapping.path.clone().map(Value::String))
                            .flatten()
                    });
                    match (literal, mapping.path) {
                        (Some(value), _) => Ok((mapping.input_key, From::Literal(value))),
                        (None, Some(path)) => Ok((mapping.input_key, From::Path(path))),
                        (None, None) => Err(wrong()),
                    }
                })
                .collect()
        }
        Some(_) => Err(wrong()),
    }
}
