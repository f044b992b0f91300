//! Stages as sent, checked and made the steps of a plan.

use indexmap::IndexMap;
use loupe_wire::{Object, RetrieverInputSchemaField, StageConfigInput, Value};

use super::execution::MAX_BATCH;
use super::plan::{Filters, Plan, Step};
use super::schema::{self, When, inside, problem};
use super::{
    BUILT, Definition, StageProblem, agent_search, agentic_enrich, aggregate, called,
    code_execution, cross_compare, document_enrich, feature_table, inputs, mmr, query_expand,
    shipped, sort, sql_lookup,
};
use crate::template::{self, is_template};

/// Most stages of one retriever.
const MAX_STAGES: usize = 20;
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

impl Plan {
    /// Checks the stages and the defaults of the inputs. The problems name their place and what would be right.
    pub fn compile(
        stages: &[StageConfigInput],
        input_schema: &IndexMap<String, RetrieverInputSchemaField>,
    ) -> Result<Plan, Vec<StageProblem>> {
        Self::compile_when(When::Written, stages, input_schema)
    }

    /// The same of stages that were checked when they were stored: what is refused since then goes on as it did.
    pub fn stored(
        stages: &[StageConfigInput],
        input_schema: &IndexMap<String, RetrieverInputSchemaField>,
    ) -> Result<Plan, Vec<StageProblem>> {
        Self::compile_when(When::Stored, stages, input_schema)
    }

    pub(super) fn compile_when(
        when: When,
        stages: &[StageConfigInput],
        input_schema: &IndexMap<String, RetrieverInputSchemaField>,
    ) -> Result<Plan, Vec<StageProblem>> {
        let root = vec!["stages".to_owned()];
        let (mut steps, mut problems) = (Vec::new(), Vec::new());
        if stages.is_empty() || stages.len() > MAX_STAGES {
            problems.push(problem(
                root.clone(),
                "out_of_range",
                format!("a retriever has 1 to {MAX_STAGES} stages"),
            ));
        }
        problems.extend(inputs::check_schema(input_schema));
        for (i, stage) in stages.iter().enumerate() {
            let loc = inside(&root, &i.to_string());
            steps.extend(compile_stage(stage, when, &loc, &mut problems));
        }
        if problems.is_empty() {
            Ok(Plan { steps })
        } else {
            Err(problems)
        }
    }
}

/// The step, or nothing where there are problems; they go to `out`.
fn compile_stage(
    stage: &StageConfigInput,
    when: When,
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
    let mut parameters = parameters_of(stage, definition, when, &place, out)?;
    let filters = filters_of(definition, &mut parameters);
    let lenient = is_lenient(stage, loc, out);
    if when == When::Written {
        check_alias(stage, loc, out);
    }
    let batch_size = batch_size(stage, when, loc, out);
    let inner = called::compile(&parameters, when, &place, out);
    (out.len() == before).then(|| Step {
        name: stage.stage_name.clone(),
        definition,
        parameters,
        lenient,
        alias: stage.output_alias.clone(),
        filters,
        batch_size,
        inner,
    })
}

/// What `CONTEXT` tells by itself.
const CONTEXT: [&str; 3] = ["INDEX", "time_elapsed_ms", "budget_remaining"];

/// What templates are to read a stage by.
fn check_alias(stage: &StageConfigInput, loc: &[String], out: &mut Vec<StageProblem>) {
    let alias = stage.output_alias.as_deref().unwrap_or_default();
    if CONTEXT.contains(&alias) {
        let msg = format!("must be another name than {}", CONTEXT.join(", "));
        out.push(problem(inside(loc, "output_alias"), "value_error", msg));
    }
}

/// Whether an error of the stage leaves it out.
fn is_lenient(stage: &StageConfigInput, loc: &[String], out: &mut Vec<StageProblem>) -> bool {
    match stage.on_error.as_deref() {
        None | Some("fail" | "error" | "raise" | "abort") => false,
        Some("skip" | "continue" | "ignore") => true,
        Some(_) => {
            let msg = "must be one of fail, skip".into();
            out.push(problem(inside(loc, "on_error"), "enum", msg));
            false
        }
    }
}

/// The parameters in their full form, checked.
fn parameters_of(
    stage: &StageConfigInput,
    definition: &Definition,
    written: When,
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
    if definition.id == query_expand::DEFINITION.id {
        query_expand::normalize(&mut parameters);
    }
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
    let (common, own): (Object, Object) = parameters
        .clone()
        .into_iter()
        .partition(|(name, _)| is_common(definition, name));
    schema::check(definition.members, &own, written, place, out);
    schema::check(schema::COMMON, &without_when(&common), written, place, out);
    if let Some(when) = common.get("when") {
        let when = Object::from_iter([("when".to_owned(), when.clone())]);
        schema::check(&[schema::WHEN], &when, written, place, out);
    }
    // Those that were stored before have nothing there, and go on so.
    if written == When::Written && reads_secrets(definition, &parameters) {
        let msg = "secrets are read by the templates of `api_call` alone".to_owned();
        out.push(problem(place.to_vec(), "invalid_template", msg));
    }
    check_own(definition, &parameters, place, out);
    // Those that were stored before are told when they run.
    if written == When::Written {
        check_new(definition, &parameters, place, out);
    }
    Some(parameters)
}

/// What could never run.
fn check_new(
    definition: &Definition,
    parameters: &Object,
    place: &[String],
    out: &mut Vec<StageProblem>,
) {
    let needed: &[&str] = match definition.id {
        "api_call" => &["allowed_domains"],
        "aggregate" => &["aggregations"],
        "json_transform" => &["template"],
        _ => &[],
    };
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    for name in needed {
        if parameters.get(*name).is_some_and(is_empty) {
            let msg = format!("`{name}` must not be empty");
            out.push(problem(inside(place, name), "too_short", msg));
        }
    }
    match definition.id {
        "aggregate" => aggregate::check(parameters, place, out),
        "mmr" => mmr::check(parameters, place, out),
        "score_normalize" => sort::check(parameters, place, out),
        _ => {}
    }
}

/// What the tables of parameters do not tell.
fn check_own(
    definition: &Definition,
    parameters: &Object,
    place: &[String],
    out: &mut Vec<StageProblem>,
) {
    match definition.id {
        "query_expand" => query_expand::check(parameters, place, out),
        "feature_search" => feature_table::check(parameters, place, out),
        "agent_search" => agent_search::check(parameters, place, out),
        "agentic_enrich" => agentic_enrich::check(parameters, place, out),
        "document_enrich" => document_enrich::check(parameters, place, out),
        "code_execution" => code_execution::check(parameters, place, out),
        "cross_compare" => cross_compare::check(parameters, place, out),
        "rerank" => shipped::check_rerank(parameters.get("learning_config"), place, out),
        "sql_lookup" => sql_lookup::check(parameters, place, out),
        _ => {}
    }
}

/// Parameters that are read in ways of their own: the names of keys, code, and retrievers with stages of their own.
const READ_ELSEWHERE: [&str; 4] = ["api_key", "analysis_provider", "code", "retriever_config"];

/// Whether templates read secrets that are not for them: what stages make is shown to whoever executes the retriever.
fn reads_secrets(definition: &Definition, parameters: &Object) -> bool {
    let mut written = parameters
        .iter()
        .filter(|(name, _)| !READ_ELSEWHERE.contains(&name.as_str()));
    definition.id != "api_call"
        && written.any(|(_, value)| !template::secrets_read(value).is_empty())
}

/// Whether a parameter is one that every stage of this kind takes.
fn is_common(definition: &Definition, name: &str) -> bool {
    let own = definition.members.iter().any(|m| m.name == name);
    match name {
        "when" => definition.is_per_document(),
        _ => !own && schema::COMMON.iter().any(|m| m.name == name),
    }
}

fn without_when(common: &Object) -> Object {
    let members = common.iter().filter(|(name, _)| *name != "when");
    members.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Takes the conditions around the stage out of its parameters.
fn filters_of(definition: &Definition, parameters: &mut Object) -> Filters {
    let mut take = |name: &str| {
        is_common(definition, name)
            .then(|| parameters.shift_remove(name))
            .flatten()
            .filter(|value| !value.is_null())
    };
    Filters {
        before: take("pre_filters"),
        after: take("post_filters"),
        when: take("when"),
    }
}

fn batch_size(
    stage: &StageConfigInput,
    when: When,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) -> Option<String> {
    let text = stage.batch_size.clone()?;
    let here = || inside(loc, "batch_size");
    if is_template(&text) {
        schema::check_template(&text, when, here(), out);
    } else if !text
        .trim()
        .parse()
        .is_ok_and(|size| (1..=MAX_BATCH).contains(&size))
    {
        let msg = format!("must be a whole number from 1 to {MAX_BATCH}, or a template");
        out.push(problem(here(), "int_parsing", msg));
    }
    Some(text)
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
    problem(
        loc,
        "invalid_stage",
        format!("there is no stage `{id}`; there are {known}"),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use loupe_wire::{StageConfigInput, Value, reading};
    use serde_json::json;

    use super::Plan;

    fn stages(list: &Value) -> Vec<StageConfigInput> {
        reading::from_value(list).unwrap()
    }

    fn stage(id: &str, parameters: Value) -> Value {
        json!({"stage_name": id, "config": {"stage_id": id, "parameters": parameters}})
    }

    #[test]
    fn what_is_refused_of_new_stages_is_let_be_in_stored_ones() {
        let by = |value: &str| {
            let condition = json!({"field": "a", "operator": "eq", "value": value});
            stage("attribute_filter", condition)
        };
        let never = "{{ INPUT.a if INPUT.b else (INPUT.a | shell) }}";
        let inner = stage(
            "document_enrich",
            json!({"retriever_config": {"stages": [by("{{ SECRET.key }}")]}}),
        );
        let transform = stage("json_transform", json!({"template": never}));
        let mut sized = stage("json_transform", json!({"template": "{}"}));
        sized["batch_size"] = "{{ INPUT.size | shell }}".into();
        for (stage, told) in [
            (by("{{ SECRET.key }}"), "api_call"),
            (by(never), "filter shell is unknown"),
            (inner, "api_call"),
            (transform, "filter shell is unknown"),
            (sized, "filter shell is unknown"),
        ] {
            let list = stages(&json!([stage]));
            let refused = Plan::compile(&list, &Default::default());
            let problems = refused.err().unwrap();
            assert!(problems[0].msg.contains(told), "{problems:?}");
            assert_eq!(problems[0].r#type, "invalid_template");
            let stored = Plan::stored(&list, &Default::default());
            assert!(stored.is_ok(), "{stage}: {:?}", stored.err());
        }
        let broken = stages(&json!([by("{{ 1 + }}")]));
        assert!(Plan::stored(&broken, &Default::default()).is_err());
    }
}
