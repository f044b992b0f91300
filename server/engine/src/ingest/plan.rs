//! A collection's extractor, parsed once for all its chunks.

use loupe_wire::{FeatureExtractorConfigOutput, FieldPassthrough, Object, Value};

use super::{
    ObjectInput, fields,
    mapping::{self, Mapping},
    source::{self, Piece},
};
use crate::{
    extract::{self, ExtractorInfo, Outputs, Params},
    store::CollectionSpec,
};

/// Why a stored collection cannot be processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// A collection as ingestion needs it.
#[derive(Debug, Clone)]
pub struct CollectionPlan {
    pub spec: CollectionSpec,
    /// Kept in the documents' `_internal`.
    pub org_id: String,
    pub extractor: &'static ExtractorInfo,
    pub params: Params,
    /// Kept in the documents' `_internal`: the batch that writes them.
    pub batch_id: Option<String>,
    pub(super) mappings: Vec<Mapping>,
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
        let unreadable = |fault: extract::Violation| PlanError(fault.to_string());
        let params = extractor
            .check_params(&parameters, outputs)
            .map_err(unreadable)?;
        Ok(Self {
            spec,
            org_id: org_id.to_owned(),
            extractor,
            mappings: mapping::read(config.input_mappings.as_ref()).map_err(unreadable)?,
            passthrough: config.field_passthrough.clone(),
            include_all: config.include_all_source_fields
                || matches!(params, Params::Passthrough(_)),
            params,
            batch_id: None,
        })
    }

    /// Whether more than the object's own fields and files is read for it: pages of the web.
    pub const fn reads_web(&self) -> bool {
        matches!(self.params, Params::Scraper(_))
    }

    /// Positions of the files that will be read of an object whose files have not been.
    pub fn files_read(&self, object: &ObjectInput) -> Vec<usize> {
        if let Params::Passthrough(params) = &self.params {
            let all = 0..object.blobs.len();
            return if params.rows {
                all.collect()
            } else {
                Vec::new()
            };
        }
        let pieces = source::pieces(self, object).unwrap_or_default();
        let place = |file| {
            object
                .blobs
                .iter()
                .position(|blob| std::ptr::eq(blob, file))
        };
        let places = pieces.into_iter().filter_map(|(_, piece)| match piece {
            Piece::File(file) => place(file),
            Piece::Text(_) => None,
        });
        places.collect()
    }

    /// The source fields that documents keep. Texts that were `cut` into several documents are not repeated in each of
    /// them, unless a rule names their field.
    ///
    /// # Errors
    /// A required field that the object does not have.
    pub(super) fn pass_through(&self, source: &Object, cut: &[String]) -> Result<Object, String> {
        let mut passed = Object::new();
        if self.include_all && !matches!(self.params, Params::Passthrough(_)) {
            let fields = source.iter().filter(|(_, value)| !is_cut(value, cut));
            passed.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
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

/// Whether a field holds nothing but texts that were cut.
fn is_cut(value: &Value, cut: &[String]) -> bool {
    match value {
        Value::String(text) => cut.contains(text),
        Value::Array(texts) => !texts.is_empty() && texts.iter().all(|text| is_cut(text, cut)),
        _ => false,
    }
}
