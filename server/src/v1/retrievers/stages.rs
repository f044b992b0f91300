//! The stages of a retriever: compiled, in their two shapes, and the features that they name.

use indexmap::IndexMap;
use loupe_engine::stage::{Plan, StageProblem};
use loupe_wire::{
    FeatureAddress, RetrieverInputSchemaField, StageConfigInput, StageConfigOutput, Value,
};

use crate::error::{ApiError, Result, Violation};

/// Compiles stored stages. What is refused only since they were stored is none of their faults.
///
/// # Errors
/// The 422 list with the place of each fault in `stages`.
pub fn compile(
    stages: &[StageConfigInput],
    schema: &IndexMap<String, RetrieverInputSchemaField>,
) -> Result<Plan> {
    Plan::stored(stages, schema).map_err(|problems| refused(&[], problems))
}

/// Compiles stages that are sent, inside of the member that `base` leads to.
///
/// # Errors
/// As [`compile`].
pub fn compile_in(
    base: &[&str],
    stages: &[StageConfigInput],
    schema: &IndexMap<String, RetrieverInputSchemaField>,
) -> Result<Plan> {
    Plan::compile(stages, schema).map_err(|problems| refused(base, problems))
}

/// Compiles stored stages, and tells what would be refused of them today.
///
/// # Errors
/// As [`compile`].
pub(super) fn compile_stored(
    stages: &[StageConfigInput],
    schema: &IndexMap<String, RetrieverInputSchemaField>,
) -> Result<(Plan, Vec<String>)> {
    let problems = match Plan::compile(stages, schema) {
        Ok(plan) => return Ok((plan, Vec::new())),
        Err(problems) => problems,
    };
    let told = |one: &StageProblem| format!("{}: {}", one.loc.join("."), one.msg);
    let warnings = problems.iter().map(told).collect();
    Ok((compile(stages, schema)?, warnings))
}

fn refused(base: &[&str], problems: Vec<StageProblem>) -> ApiError {
    let violations = problems.into_iter().map(|problem| {
        let within = problem.loc.iter().map(String::as_str);
        let path: Vec<&str> = base.iter().copied().chain(within).collect();
        Violation::body(&path, problem.r#type, problem.msg, Value::Null)
    });
    ApiError::Validation(violations.collect())
}

/// Stored stages in the shape they are compiled from.
/// The fields that stages write a text of all documents to.
pub fn written_to(stages: &[StageConfigOutput]) -> impl Iterator<Item = String> {
    let writes = |stage: &&StageConfigOutput| {
        stage
            .config
            .get("stage_id")
            .is_some_and(|id| id == "summarize")
    };
    let field = |stage: &StageConfigOutput| {
        let parameters = stage.config.get("parameters");
        let field = parameters.and_then(|all| all.get("output_field")?.as_str());
        field.unwrap_or("summary").to_owned()
    };
    stages.iter().filter(writes).map(field)
}

pub fn stage_inputs(stages: &[StageConfigOutput]) -> Vec<StageConfigInput> {
    let input = |stage: &StageConfigOutput| StageConfigInput {
        stage_name: stage.stage_name.clone(),
        stage_type: stage.stage_type,
        config: stage.config.clone(),
        batch_size: stage.batch_size.clone(),
        description: stage.description.clone(),
        on_error: stage.on_error.clone(),
        output_alias: stage.output_alias.clone(),
        parameters: None,
    };
    stages.iter().map(input).collect()
}

/// A stage as it is stored.
pub fn stage_output(stage: StageConfigInput) -> StageConfigOutput {
    let parameters = stage
        .config
        .get("parameters")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    StageConfigOutput {
        stage_name: stage.stage_name,
        stage_type: stage.stage_type,
        config: stage.config,
        batch_size: stage.batch_size,
        description: stage.description,
        on_error: stage.on_error,
        output_alias: stage.output_alias,
        parameters,
    }
}

/// The features that the stages name, found anywhere in their parameters.
pub fn dependencies(stages: &[StageConfigInput]) -> Vec<FeatureAddress> {
    fn walk(value: &Value, out: &mut Vec<FeatureAddress>) {
        match value {
            Value::Object(members) => {
                members
                    .iter()
                    .for_each(|(name, member)| match member.as_str() {
                        Some(uri) if name == "feature_uri" => out.extend(address(uri)),
                        _ => walk(member, out),
                    })
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    stages
        .iter()
        .flat_map(|stage| stage.config.values())
        .for_each(|value| walk(value, &mut found));
    found.dedup();
    found
}

fn address(uri: &str) -> Option<FeatureAddress> {
    let (scheme, rest) = uri.split_once("://")?;
    let (extractor, rest) = rest.split_once('@')?;
    let (version, output) = rest
        .split_once('/')
        .map_or((rest, None), |(version, output)| (version, Some(output)));
    Some(FeatureAddress {
        scheme: scheme.into(),
        extractor: extractor.into(),
        version: version.into(),
        output: output.map(Into::into),
    })
}
