//! What a plan says of one document whatever is asked: the conditions without templates that all its answers keep.

use loupe_wire::{Object, StageCategory, Value};

use super::attribute_filter;
use super::plan::{Plan, Step};
use super::working::Row;
use crate::filter::{Condition, Filter, dynamic_input, values_at};
use crate::store::Document;
use crate::template::{has_template, is_template};

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
    let written = !is_template(&condition.field)
        && !has_template(&condition.value)
        && dynamic_input(&condition.value).is_none();
    // Searches give scores.
    let made = made || condition.field == "score";
    written && (!made || !values_at(row, &condition.field).is_empty())
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
            assert!(plan.admits(&document(shows.clone())), "{stages}");
            if let Some(hides) = hides {
                assert!(!plan.admits(&document(hides.clone())), "{stages}");
            }
        }
        // What an owner takes the word from is shown no more.
        assert!(!plan(json!([public])).admits(&document(json!({}))));
    }
}
