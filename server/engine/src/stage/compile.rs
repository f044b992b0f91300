//! One stage as sent, checked and made a step.

use loupe_wire::{Object, StageConfigInput, Value};

use super::plan::Step;
use super::schema::{self, inside, problem};
use super::{BUILT, Definition, NOT_BUILT, StageProblem, feature_table};

/// Ids under which searches were known before; answered with the current shape.
const OBSOLETE_IDS: [&str; 6] = [
    "search",
    "semantic_search",
    "knn_search",
    "vector_search",
    "text_search",
    "hybrid_search",
];
/// Parameters of the obsolete search stage.
const OBSOLETE_KEYS: [&str; 6] = [
    "queries",
    "query_text",
    "vector_index",
    "feature_address",
    "feature_uris",
    "embedding_model",
];
const SHAPE: &str = "{stage_name, stage_type: \"filter\", config: {stage_id: \"feature_search\", parameters: {searches: \
    [{feature_uri, query: {input_mode: \"text\", value: \"{{INPUT.query}}\"}, top_k}], final_top_k}}}";

/// The step, or nothing where there are problems; they go to `out`.
pub(super) fn compile_stage(
    stage: &StageConfigInput,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) -> Option<Step> {
    let config = inside(loc, "config");
    if stage.stage_name.trim().is_empty() {
        out.push(problem(
            inside(loc, "stage_name"),
            "missing",
            "a stage has a name".into(),
        ));
    }
    for key in stage
        .config
        .keys()
        .filter(|k| !matches!(k.as_str(), "stage_id" | "parameters"))
    {
        let obsolete = !stage.config.contains_key("stage_id");
        let msg = format!("`config` has only stage_id and parameters, not `{key}`");
        if !obsolete {
            out.push(problem(inside(&config, key), "extra_forbidden", msg));
        }
    }
    let Some(id) = stage.config.get("stage_id").and_then(Value::as_str) else {
        let msg = format!("this is not the current shape of a stage; send {SHAPE}");
        out.push(problem(inside(&config, "stage_id"), "invalid_stage", msg));
        return None;
    };
    let Some(definition) = BUILT.iter().find(|d| d.id == id || d.aliases.contains(&id)) else {
        out.push(unknown_stage(id, inside(&config, "stage_id")));
        return None;
    };
    let place = inside(&config, "parameters");
    let before = out.len();
    let parameters = parameters_of(stage, definition, &place, out)?;
    let lenient = match stage.on_error.as_deref() {
        None | Some("fail" | "error" | "raise" | "abort") => false,
        Some("skip" | "continue" | "ignore") => true,
        Some(_) => {
            out.push(problem(
                inside(loc, "on_error"),
                "enum",
                "must be one of fail, skip".into(),
            ));
            false
        }
    };
    (out.len() == before).then(|| Step {
        name: stage.stage_name.clone(),
        definition,
        parameters,
        lenient,
        alias: stage.output_alias.clone(),
    })
}

/// The parameters in their full form, checked.
fn parameters_of(
    stage: &StageConfigInput,
    definition: &Definition,
    place: &[String],
    out: &mut Vec<StageProblem>,
) -> Option<Object> {
    let mut parameters = match stage.config.get("parameters") {
        Some(Value::Object(parameters)) => parameters.clone(),
        Some(Value::Null) | None => Object::new(),
        Some(_) => {
            out.push(problem(
                place.to_vec(),
                "dict_type",
                "must be an object".into(),
            ));
            return None;
        }
    };
    let searches = definition.id == feature_table::DEFINITION.id;
    if searches {
        if let Some(key) = parameters
            .keys()
            .find(|k| OBSOLETE_KEYS.contains(&k.as_str()))
        {
            let msg =
                format!("`{key}` belongs to an obsolete shape of the search stage; send {SHAPE}");
            out.push(problem(inside(place, key), "invalid_stage", msg));
            return None;
        }
        feature_table::normalize(&mut parameters);
    }
    schema::check(
        definition.members,
        &parameters,
        schema::When::Written,
        place,
        out,
    );
    if searches {
        feature_table::check(&parameters, place, out);
    }
    Some(parameters)
}

fn unknown_stage(id: &str, loc: Vec<String>) -> StageProblem {
    let known = BUILT.map(|d| d.id).join(", ");
    if OBSOLETE_IDS.contains(&id) {
        return problem(
            loc,
            "invalid_stage",
            format!("`{id}` is obsolete; send {SHAPE}"),
        );
    }
    if NOT_BUILT.contains(&id) {
        let msg = format!(
            "the stage `{id}` is part of the interface, but this version does not run it yet; it runs {known}"
        );
        return problem(loc, "not_implemented", msg);
    }
    problem(
        loc,
        "invalid_stage",
        format!("there is no stage `{id}`; there are {known}"),
    )
}
