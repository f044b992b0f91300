//! The extractor of a collection: whether it can do what it is told, and what documents of it will hold.

use loupe_engine::extract::{self, ExtractorInfo, IndexInfo};
use loupe_wire::{
    BucketSchema, BucketSchemaFieldType, FeatureExtractorConfigInput, FeatureExtractorConfigOutput,
    Value, reading,
};
use serde_json::json;

use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// An extractor with its parameters checked: what a collection needs to know of it.
///
/// # Errors
/// 422 for one that there is not, or not here, and for parameters that it does not take.
pub(super) fn check(
    app: &App,
    config: &FeatureExtractorConfigInput,
    is_new: bool,
) -> Result<(FeatureExtractorConfigOutput, Vec<IndexInfo>)> {
    let info = find(app, config)?;
    let params = (!config.params.is_empty()).then(|| Value::Object(config.params.clone()));
    let sent = config.parameters.clone().or(params).unwrap_or(Value::Null);
    let checked = info.check_params(&sent, app.outputs()).and_then(|params| {
        info.check_available(&params, app.outputs())?;
        Ok(params)
    });
    let refused = |fault: extract::Violation, kind: &str| {
        let mut path = vec!["feature_extractor", "parameters"];
        path.extend(fault.loc.iter().map(String::as_str));
        Violation::body(&path, kind, fault.msg.clone(), sent.clone())
    };
    let params = checked.map_err(|fault| refused(fault, "value_error"))?;
    if is_new {
        info.check_built(&sent, &params)
            .and_then(|()| check_provider(app, &sent))
            .map_err(|fault| refused(fault, "not_enabled"))?;
    }
    let output = FeatureExtractorConfigOutput {
        feature_extractor_name: info.name.into(),
        version: info.version.into(),
        params: config.params.clone(),
        parameters: Some(if sent.is_null() {
            info.default_parameters()
        } else {
            sent
        }),
        input_mappings: config.input_mappings.clone(),
        field_passthrough: config.field_passthrough.clone(),
        include_all_source_fields: config.include_all_source_fields,
        feature_extractor_id: info.feature_extractor_id.into(),
    };
    Ok((output, params.indexes().to_vec()))
}

/// Refuses a language model of somebody else than whose it is here, where that is known.
fn check_provider(app: &App, sent: &Value) -> Result<(), extract::Violation> {
    let asked = sent.get("llm_provider").and_then(Value::as_str);
    let Some((asked, model)) = asked.zip(app.encoders().language()) else {
        return Ok(());
    };
    match model.provider() {
        Some(own) if !asked.is_empty() && !own.eq_ignore_ascii_case(asked) => {
            Err(extract::Violation {
                loc: vec!["llm_provider".into()],
                msg: format!("the language model of this server is one of {own}: leave it out"),
            })
        }
        _ => Ok(()),
    }
}

/// The extractor that is named, if this server can run it.
fn find(app: &App, config: &FeatureExtractorConfigInput) -> Result<&'static ExtractorInfo> {
    let name = &config.feature_extractor_name;
    let fault = |kind: &str, msg: String| {
        let path = ["feature_extractor", "feature_extractor_name"];
        ApiError::from(Violation::body(&path, kind, msg, name.clone().into()))
    };
    let info = extract::find(name, &config.version).ok_or_else(|| {
        let known: Vec<String> = extract::catalogue()
            .iter()
            .map(|info| format!("{}@{}", info.name, info.version))
            .collect();
        let msg = format!(
            "there is no extractor {name}@{}; known: {}",
            config.version,
            known.join(", ")
        );
        fault("feature_extractor_not_found", msg)
    })?;
    match info.unavailable(app.outputs()) {
        Some(msg) => Err(fault("feature_extractor_unavailable", msg)),
        None => Ok(info),
    }
}

/// What documents will hold, known before any processing.
pub(super) fn output_schema(
    app: &App,
    extractor: &FeatureExtractorConfigOutput,
    input: Option<&BucketSchema>,
) -> BucketSchema {
    let info = extract::find(&extractor.feature_extractor_name, &extractor.version);
    let sent = extractor.parameters.clone().unwrap_or(Value::Null);
    let mut schema = info.map_or(Value::Null, |info| {
        match info.check_params(&sent, app.outputs()) {
            Ok(params) => info.output_schema_with(&params),
            Err(_) => info.output_schema(),
        }
    });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for field in &extractor.field_passthrough {
            let target = field.target_path.as_ref().unwrap_or(&field.source_path);
            let known = input.and_then(|input| input.properties.get(&field.source_path));
            let kind = known.map_or(BucketSchemaFieldType::String, |known| known.r#type);
            properties
                .entry(target.clone())
                .or_insert_with(|| json!({"type": kind}));
        }
    }
    reading::from_value(&schema).unwrap_or_default()
}
