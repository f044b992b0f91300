//! Headers that a crawler is to send: their values are secrets. They are kept sealed in the collection itself, so whatever
//! shows or copies a collection shows and copies what nobody can read.

use loupe_wire::{FeatureExtractorConfigOutput, Value};

use crate::{
    app::App,
    error::{Result, Violation},
};

/// The parameter of extractors that holds them.
pub(super) const HEADERS: &str = "custom_headers";
/// How a value begins that is sealed.
const SEALED: &str = "sealed:";

/// Every header with its value, wherever the request put the parameters.
fn headers(
    extractor: &mut FeatureExtractorConfigOutput,
) -> impl Iterator<Item = (&str, &mut String)> {
    let parameters = extractor.parameters.iter_mut();
    let parameters = parameters.filter_map(Value::as_object_mut);
    let all = parameters.chain([&mut extractor.params]);
    let all = all.filter_map(|one| one.get_mut(HEADERS)?.as_object_mut());
    all.flatten().filter_map(|(name, value)| match value {
        Value::String(value) => Some((name.as_str(), value)),
        _ => None,
    })
}

/// Seals the values that a caller sent.
///
/// # Errors
/// A value that was sealed before: who may see it may not have it sent somewhere else.
pub(super) fn seal(
    app: &App,
    org_id: &str,
    extractor: &mut FeatureExtractorConfigOutput,
) -> Result<()> {
    for (name, value) in headers(extractor) {
        if value.starts_with(SEALED) {
            let path = ["feature_extractor", "parameters", HEADERS, name];
            let msg = "this is how a value is shown, not the value: send the value itself";
            return Err(Violation::body(&path, "value_error", msg, value.as_str().into()).into());
        }
        let sealed = app.vault().seal(&[org_id, HEADERS, name], value)?;
        *value = format!("{SEALED}{sealed}");
    }
    Ok(())
}

/// Whether the extractor sends headers that somebody sealed.
pub(super) fn are_sealed(extractor: &FeatureExtractorConfigOutput) -> bool {
    headers(&mut extractor.clone()).any(|(_, value)| value.starts_with(SEALED))
}

/// Takes the headers out, for what is made elsewhere; answers whether there were some.
pub fn leave_out(extractor: &mut FeatureExtractorConfigOutput) -> bool {
    let is_sending = headers(extractor).next().is_some();
    let parameters = extractor.parameters.iter_mut();
    let parameters = parameters.filter_map(Value::as_object_mut);
    for one in parameters.chain([&mut extractor.params]) {
        one.retain(|name, _| name != HEADERS);
    }
    is_sending
}

/// The extractor with the values as they are to be sent.
///
/// # Errors
/// They were sealed with another master key.
pub fn opened(
    app: &App,
    org_id: &str,
    extractor: &FeatureExtractorConfigOutput,
) -> Result<FeatureExtractorConfigOutput> {
    let mut extractor = extractor.clone();
    for (name, value) in headers(&mut extractor) {
        if let Some(sealed) = value.strip_prefix(SEALED) {
            *value = app.vault().open(&[org_id, HEADERS, name], sealed)?;
        }
    }
    Ok(extractor)
}
