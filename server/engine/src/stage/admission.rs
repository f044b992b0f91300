//! What a plan says of one document before it is run: whatever is asked, by the conditions without templates that all its answers
//! keep, and for given inputs.

use chrono::{DateTime, Utc};
use loupe_wire::{Object, StageCategory, Value};

use super::attribute_filter;
use super::execution::operand;
use super::plan::{Plan, Step};
use super::working::Row;
use crate::filter::{Condition, Filter, Operator, dynamic_input, values_at};
use crate::store::Document;
use crate::template::{Context, has_template, is_template, reads_the_run};

/// A condition, and whether earlier stages may have made the field that it reads.
type Held = (Filter, bool);

impl Plan {
    /// Whether some answer may have this document, as far as that can be told without inputs: false where it breaks a
    /// condition of `attribute_filter` stages, or before or after other stages, that no input changes.
    pub fn admits(&self, document: &Document) -> bool {
        let row = Row::new(document.clone(), None).value;
        let refuses = |(filter, made): &Held| tell(filter, &row, *made) == Some(false);
        let mut ways = self.ways().into_iter();
        ways.any(|held| !held.iter().any(refuses))
    }

    /// The documents that an answer to these inputs may have, as a filter. None where more than conditions decides: a language
    /// model, a sentence, what stages made before.
    pub fn admitted(&self, inputs: &Object, now: DateTime<Utc>) -> Option<Filter> {
        if !self.steps.iter().all(decides_by_conditions) {
            return None;
        }
        let context = Context::new(inputs, now);
        let held = |(filter, made): Held| Some(may_hold(&asked(&filter, inputs, &context)?, made));
        let way = |all: Vec<Held>| {
            let all: Option<Vec<Filter>> = all.into_iter().map(held).collect();
            all.map(Filter::All)
        };
        let ways: Option<Vec<Filter>> = self.ways().into_iter().map(way).collect();
        ways.map(Filter::Any)
    }

    /// The ways for a document to come into an answer, each with the conditions that hold on it.
    fn ways(&self) -> Vec<Vec<Held>> {
        let (mut ways, mut made) = (vec![Vec::new()], false);
        for step in &self.steps {
            hold(&mut ways, read(step.filters.before.as_ref(), made));
            // A stage that is for some documents only leaves the others as they are.
            let is_for_all = step.filters.when.is_none();
            match step.definition.id {
                "attribute_filter" if is_for_all => {
                    let filter = written(&step.parameters);
                    hold(&mut ways, filter.map(|filter| (filter, made)));
                }
                "feature_search" if is_for_all => searched(&mut ways, &step.parameters, made),
                "query_expand" if is_for_all => {
                    let config = step.parameters.get("feature_search_config");
                    if let Some(Value::Object(config)) = config {
                        searched(&mut ways, config, made);
                    }
                }
                // It finds documents that no stage before it has seen, by conditions of its own.
                "traverse_edge" => {
                    let sources = step.parameters.get("include_sources");
                    let keeps_sources = sources.is_some_and(|wanted| *wanted != Value::Bool(false));
                    if is_for_all && !keeps_sources {
                        ways.clear();
                    }
                    let linked = read(step.parameters.get("filters"), false);
                    ways.push(linked.into_iter().collect());
                }
                // So does this, by what a language model says.
                "agent_search" => ways = vec![Vec::new()],
                _ => {}
            }
            made |= makes_fields(step);
            hold(&mut ways, read(step.filters.after.as_ref(), made));
        }
        ways
    }
}

/// Whether [`Plan::ways`] knows everything that keeps documents out of what a stage leaves.
fn decides_by_conditions(step: &Step) -> bool {
    let is_for_all = step.filters.when.is_none();
    match step.definition.id {
        "attribute_filter" => {
            let is_said = step.parameters.contains_key("natural_language");
            is_for_all && !is_said && written(&step.parameters).is_some()
        }
        "feature_search" | "query_expand" => is_for_all,
        // What code or another machine makes of documents may be fewer of them.
        "code_execution" | "api_call" | "sql_lookup" => false,
        _ => step.definition.category != StageCategory::Filter,
    }
}

/// A condition for these inputs; none where it reads anything else.
fn asked(filter: &Filter, inputs: &Object, context: &Context) -> Option<Filter> {
    let mut is_known = true;
    filter.for_each_condition(&mut |one| {
        is_known &= !is_template(&one.field) && !reads_the_run(&one.value);
    });
    if !is_known {
        return None;
    }
    let rule = &mut |value: &Value| operand(value, inputs, context);
    let (filter, _) = filter.resolve_with(rule).ok()?;
    // An input that looks like a template is none.
    filter.for_each_condition(&mut |one| is_known &= is_written(one));
    is_known.then_some(filter)
}

/// Conditions of a search.
fn searched(ways: &mut [Vec<Held>], parameters: &Object, made: bool) {
    for name in ["filters", "pre_filters"] {
        hold(ways, read(parameters.get(name), made));
    }
}

/// From here on a condition holds whichever way a document came.
fn hold(ways: &mut [Vec<Held>], condition: Option<Held>) {
    if let Some(condition) = condition {
        for way in ways {
            way.push(condition.clone());
        }
    }
}

/// Whether what comes out of a stage has other members than what went in.
fn makes_fields(step: &Step) -> bool {
    let keeps = matches!(step.definition.id, "limit" | "sample" | "deduplicate");
    let kind = step.definition.category;
    !keeps && !matches!(kind, StageCategory::Filter | StageCategory::Sort)
}

fn read(raw: Option<&Value>, made: bool) -> Option<Held> {
    let filter = Filter::parse(raw?).ok()?;
    Some((filter, made))
}

/// The filter of an `attribute_filter` as written, unless a template says which one it is.
fn written(parameters: &Object) -> Option<Filter> {
    if let Some(tree) = parameters.get("conditions") {
        return Filter::parse(tree).ok();
    }
    let mut others = parameters.iter().filter(|(name, _)| *name != "value");
    if others.any(|(_, value)| has_template(value)) {
        return None;
    }
    attribute_filter::written(parameters).ok()
}

/// Whether the document satisfies a filter; none where that takes an input, or a field that a stage makes.
fn tell(filter: &Filter, row: &Value, made: bool) -> Option<bool> {
    let any = |list: &[Filter], wanted: bool| {
        let told: Vec<_> = list.iter().map(|one| tell(one, row, made)).collect();
        match told.contains(&Some(wanted)) {
            true => Some(wanted),
            false if told.contains(&None) => None,
            false => Some(!wanted),
        }
    };
    match filter {
        Filter::All(list) => any(list, false),
        Filter::Any(list) => any(list, true),
        Filter::None(list) => any(list, true).map(|found| !found),
        Filter::Leaf(condition) => is_told(condition, row, made).then(|| filter.matches(row)),
    }
}

fn is_told(condition: &Condition, row: &Value, made: bool) -> bool {
    is_written(condition)
        && (!is_made(condition, made) || !values_at(row, &condition.field).is_empty())
}

/// Whether it says itself what it is, without inputs.
fn is_written(condition: &Condition) -> bool {
    !is_template(&condition.field)
        && !has_template(&condition.value)
        && dynamic_input(&condition.value).is_none()
}

/// Whether a stage may have made what it reads. Searches give scores.
fn is_made(condition: &Condition, made: bool) -> bool {
    made || condition.field == "score"
}

/// True of the documents of which [`tell`] does not say that the filter is false.
fn may_hold(filter: &Filter, made: bool) -> Filter {
    let all = |list: &[Filter]| list.iter().map(|one| may_hold(one, made)).collect();
    match filter {
        Filter::All(list) => Filter::All(all(list)),
        Filter::Any(list) => Filter::Any(all(list)),
        Filter::None(list) => Filter::None(list.iter().map(|one| holds(one, made)).collect()),
        Filter::Leaf(condition) if !is_written(condition) => Filter::All(Vec::new()),
        Filter::Leaf(condition) if is_made(condition, made) => Filter::Any(vec![
            filter.clone(),
            Filter::None(vec![has_field(condition)]),
        ]),
        Filter::Leaf(_) => filter.clone(),
    }
}

/// True of the documents of which [`tell`] says that the filter is true.
fn holds(filter: &Filter, made: bool) -> Filter {
    let all = |list: &[Filter]| list.iter().map(|one| holds(one, made)).collect();
    match filter {
        Filter::All(list) => Filter::All(all(list)),
        Filter::Any(list) => Filter::Any(all(list)),
        Filter::None(list) => Filter::None(list.iter().map(|one| may_hold(one, made)).collect()),
        Filter::Leaf(condition) if !is_written(condition) => Filter::Any(Vec::new()),
        Filter::Leaf(condition) if is_made(condition, made) => {
            Filter::All(vec![filter.clone(), has_field(condition)])
        }
        Filter::Leaf(_) => filter.clone(),
    }
}

fn has_field(condition: &Condition) -> Filter {
    Filter::leaf(condition.field.clone(), Operator::Exists, Value::Bool(true))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use loupe_wire::StageConfigInput;
    use serde_json::json;

    use super::*;

    fn plan(stages: Value) -> Plan {
        let stages: Vec<StageConfigInput> = serde_json::from_value(stages).unwrap();
        Plan::compile(&stages, &Default::default()).unwrap()
    }

    fn stage(id: &str, parameters: Value) -> Value {
        json!({"stage_name": id, "config": {"stage_id": id, "parameters": parameters}})
    }

    fn document(payload: Value) -> Document {
        Document {
            document_id: "doc_1".into(),
            collection_id: "col_1".into(),
            payload: payload.as_object().unwrap().clone().into(),
            vectors: Default::default(),
            keywords: None,
        }
    }

    #[test]
    fn conditions_that_no_input_changes_hold_for_every_answer() {
        let is =
            |field: &str, value: Value| json!({"field": field, "operator": "eq", "value": value});
        let filter = |parameters: Value| stage("attribute_filter", parameters);
        let public = filter(is("status", json!("public")));
        let sort = stage("sort_attribute", json!({"field": "year"}));
        let made = stage(
            "json_transform",
            json!({"template": "{\"label\": \"{{DOC.title}}\"}"}),
        );
        let links = |parameters: Value| stage("traverse_edge", parameters);
        let search = json!({"searches": [{"feature_uri": "loupe://text_extractor@v1/m", "query": "x"}],
            "filters": is("status", json!("public"))});
        let expand = stage("query_expand", json!({ "feature_search_config": search }));
        let inputs = json!({"status": "draft", "year": 1999});
        let inputs = inputs.as_object().unwrap().clone();
        let open = json!({"status": "public", "year": 1999});
        let hidden = json!({"status": "draft", "year": 1999});
        for (stages, shows, hides) in [
            (json!([public]), &open, Some(&hidden)),
            (json!([sort, public]), &open, Some(&hidden)),
            (
                json!([filter(
                    json!({"conditions": {"AND": [is("status", json!("public")), is("year", json!("{{INPUT.year}}"))]}})
                )]),
                &open,
                Some(&hidden),
            ),
            // An input could make it true.
            (
                json!([filter(
                    json!({"conditions": {"OR": [is("status", json!("public")), is("year", json!("{{INPUT.year}}"))]}})
                )]),
                &hidden,
                None,
            ),
            (
                json!([filter(
                    json!({"conditions": {"NOT": [is("status", json!("draft"))]}})
                )]),
                &open,
                Some(&hidden),
            ),
            (
                json!([filter(is("status", json!("{{INPUT.status}}")))]),
                &hidden,
                None,
            ),
            (
                json!([filter(
                    json!({"field": "score", "operator": "gt", "value": 0.5})
                )]),
                &hidden,
                None,
            ),
            // A field that a stage makes is not the document's.
            (
                json!([made, filter(is("label", json!("x")))]),
                &hidden,
                None,
            ),
            (json!([made, public]), &open, Some(&hidden)),
            (json!([expand]), &open, Some(&hidden)),
            // Links lead to other documents than those found, which have conditions of their own.
            (json!([public, links(json!({}))]), &hidden, None),
            (
                json!([links(json!({"filters": is("status", json!("public"))}))]),
                &open,
                Some(&hidden),
            ),
            (
                json!([
                    public,
                    links(json!({"filters": is("year", json!(2001)), "include_sources": true}))
                ]),
                &open,
                Some(&hidden),
            ),
            (
                json!([
                    filter(is("year", json!(2001))),
                    links(json!({"filters": is("status", json!("draft"))})),
                    filter(is("year", json!(1999)))
                ]),
                &hidden,
                Some(&open),
            ),
        ] {
            let plan = plan(stages.clone());
            let admitted = plan.admitted(&inputs, DateTime::UNIX_EPOCH).unwrap();
            assert!(plan.admits(&document(shows.clone())), "{stages}");
            assert!(admitted.matches(shows), "{stages}: {admitted:?}");
            if let Some(hides) = hides {
                assert!(!plan.admits(&document(hides.clone())), "{stages}");
                assert!(!admitted.matches(hides), "{stages}: {admitted:?}");
            }
        }
        // What an owner takes the word from is shown no more.
        assert!(!plan(json!([public])).admits(&document(json!({}))));
    }

    #[test]
    fn inputs_decide_what_their_answers_may_have() {
        let is = |value: Value| json!({"field": "code", "operator": "eq", "value": value});
        let (mine, other) = (
            json!({"code": "a", "year": 1}),
            json!({"code": "b", "year": 1}),
        );
        let inputs: Object = serde_json::from_value(json!({"code": "a"})).unwrap();
        for value in [
            json!("{{INPUT.code}}"),
            json!("{{ inputs['code'] }}"),
            json!({"type": "dynamic", "field": "INPUT.code"}),
        ] {
            let plan = plan(json!([stage("attribute_filter", is(value))]));
            let admitted = plan.admitted(&inputs, DateTime::UNIX_EPOCH).unwrap();
            assert!(admitted.matches(&mine), "{admitted:?}");
            assert!(!admitted.matches(&other), "{admitted:?}");
            // Without the input there is no condition.
            let admitted = plan.admitted(&Object::new(), DateTime::UNIX_EPOCH).unwrap();
            assert!(admitted.matches(&other), "{admitted:?}");
        }
        let literal: Object = serde_json::from_value(json!({"code": "{{ INPUT.code }}"})).unwrap();
        let by_input = plan(json!([stage(
            "attribute_filter",
            is(json!("{{INPUT.code}}"))
        )]));
        assert_eq!(by_input.admitted(&literal, DateTime::UNIX_EPOCH), None);
        let said =
            json!({"field": "code", "value": "a", "natural_language": "those of {{INPUT.code}}"});
        for untold in [
            stage("attribute_filter", said),
            stage("attribute_filter", is(json!("{{ CONTEXT.found }}"))),
            stage("llm_filter", json!({"criteria": "about trains"})),
        ] {
            let plan = plan(json!([untold]));
            assert_eq!(
                plan.admitted(&inputs, DateTime::UNIX_EPOCH),
                None,
                "{untold}"
            );
        }
    }
}
