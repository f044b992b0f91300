//! What is refused before a run, and what is told without one.

use super::*;

fn problems(stage: Value) -> Vec<(String, &'static str, String)> {
    let stage = serde_json::from_value(stage).unwrap();
    let found = Plan::compile(&[stage], &IndexMap::new())
        .err()
        .unwrap_or_default();
    found
        .into_iter()
        .map(|p| (p.loc.join("."), p.r#type, p.msg))
        .collect()
}

#[test]
fn what_is_wrong_with_a_stage_is_told_with_its_place() {
    let of = |id: &str, parameters: Value| {
        problems(json!({"stage_name": "s", "config": {"stage_id": id, "parameters": parameters}}))
    };
    let found = of(
        "feature_search",
        json!({"searches": [search(json!({"top_k": 0, "topk": 5}))], "final_top_k": "x"}),
    );
    let places: Vec<(&str, &str)> = found.iter().map(|(loc, t, _)| (loc.as_str(), *t)).collect();
    let at = "stages.0.config.parameters";
    assert_eq!(
        places,
        [
            (format!("{at}.searches.0.top_k").as_str(), "out_of_range"),
            (format!("{at}.searches.0.topk").as_str(), "extra_forbidden"),
            (format!("{at}.final_top_k").as_str(), "int_type"),
        ]
    );
    assert!(found[1].2.contains("top_k, min_score"));
    assert_eq!(
        of("traverse_edge", json!({"max_depth": 6}))[0].1,
        "out_of_range"
    );
    assert_eq!(of("nonsense", json!({}))[0].1, "invalid_stage");
    assert_eq!(of("feature_search", json!({}))[0].1, "missing");
    assert_eq!(
        of("limit", json!({"limit": "{{ 1 + }}"}))[0].1,
        "invalid_template"
    );
    assert_eq!(
        of(
            "attribute_filter",
            json!({"conditions": {"AND": [{"field": "a", "operator": "eqq", "value": 1}]}})
        )[0]
        .0,
        format!("{at}.conditions.AND.0.operator")
    );
    assert_eq!(
        of(
            "feature_search",
            json!({"searches": [search(json!({"feature_uri": "http://x"}))]})
        )[0]
        .1,
        "invalid_feature_uri"
    );
    assert_eq!(of("feature_search", json!({"searches": [{"feature_uri": FLAT, "query": {"input_mode": "text", "vallue": "x", "value": "y"}}]}))[0].0,
        format!("{at}.searches.0.query.vallue"));
    assert!(of("limit", json!({"limit": "{{INPUT.k}}"})).is_empty());
}

#[test]
fn the_obsolete_shape_is_answered_with_the_current_one() {
    for stage in [
        json!({"stage_name": "semantic_search", "config": {"feature_uri": FLAT, "query": "x"}}),
        json!({"stage_name": "s", "config": {"stage_id": "semantic_search", "parameters": {}}}),
        json!({"stage_name": "s", "config": {"stage_id": "feature_search", "parameters": {"queries": [], "vector_index": "x"}}}),
    ] {
        let found = problems(stage);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, "invalid_stage");
        assert!(
            found[0].2.contains("searches: [{feature_uri"),
            "{}",
            found[0].2
        );
    }
}

#[test]
fn a_stage_hides_nothing_that_templates_read() {
    for (alias, is_refused) in [("found", false), ("time_elapsed_ms", true), ("", false)] {
        let mut list = stages(json!({"limit": {}}));
        list[0].output_alias = Some(alias.into());
        let problems = Plan::compile(&list, &IndexMap::new()).err();
        let told = problems.map(|all| all[0].loc[2].clone());
        assert_eq!(
            told,
            is_refused.then(|| "output_alias".to_owned()),
            "{alias}"
        );
        assert!(Plan::stored(&list, &IndexMap::new()).is_ok());
    }
}

#[test]
fn every_stage_of_the_interface_is_built() {
    assert_eq!(BUILT.len(), 34);
    let told = catalogue(Configured::default());
    let search = told
        .iter()
        .find(|d| d.stage_id == "feature_search")
        .unwrap();
    let schema = search.parameter_schema.as_ref().unwrap();
    assert_eq!(schema["properties"]["final_top_k"]["default"], 25);
    assert_eq!(
        schema["properties"]["searches"]["items"]["required"],
        json!(["feature_uri", "query"])
    );
}

#[test]
fn a_plan_explains_itself() {
    let list = json!({"feature_search": {"searches": [search(json!({"lexical": true})), search(json!({"feature_uri": "loupe://x@v1/y"}))], "final_top_k": 30},
        "limit": {"limit": 5}});
    let around = collections();
    let told = plan(list).explain(Surroundings {
        collections: &around,
        documents: 1000,
        inputs: None,
        now: chrono::DateTime::UNIX_EPOCH,
        configured: Configured::default(),
    });
    assert_eq!(
        (
            told[0].estimated_input,
            told[0].estimated_output,
            told[1].estimated_output
        ),
        (1000, 30, 5)
    );
    assert!(told[0].optimization_notes[0].contains("and by keywords"));
    assert!(told[0].warnings[0].contains("loupe://x@v1/y"));
    assert_eq!(told[1].stage_type, "reduce");
}

#[test]
fn a_plan_explains_what_it_would_do_with_inputs() {
    let around = collections();
    let inputs = json!({"k": 4});
    let told = |list: Value, inputs: Option<&Value>| {
        plan(list).explain(Surroundings {
            collections: &around,
            documents: 1000,
            inputs: inputs.and_then(Value::as_object),
            now: chrono::DateTime::UNIX_EPOCH,
            configured: Configured::default(),
        })
    };
    let outputs = |list: &Value, inputs: Option<&Value>| -> Vec<i64> {
        let told = told(list.clone(), inputs).into_iter();
        told.map(|one| one.estimated_output).collect()
    };
    let searched = |more: Value| {
        let mut search = json!({"searches": [search(json!({}))], "final_top_k": "{{INPUT.k}}"});
        for (name, value) in more.as_object().unwrap() {
            search[name] = value.clone();
        }
        search
    };
    let list = json!({"feature_search": searched(json!({})), "limit": {"limit": 30}});
    assert_eq!(outputs(&list, Some(&inputs)), [4, 4]);
    assert_eq!(outputs(&list, None), [25, 25]);
    let list =
        json!({"query_expand": {"feature_search_config": searched(json!({}))}, "summarize": {}});
    assert_eq!(outputs(&list, Some(&inputs)), [4, 1]);
    let one = told(list, None);
    assert!(one[1].warnings[0].contains("models.language"), "{one:?}");
    // A stage that asks a language model takes longer than a search.
    assert!(one[1].estimated_duration_ms > one[0].estimated_duration_ms);
    let list = json!({"attribute_filter": {"field": "n", "operator": "gt", "value": 1, "post_filters": {"n": 2}}});
    assert_eq!(outputs(&list, None), [90]);

    let likely = |list: Value| -> Vec<bool> {
        let told = told(list, None).into_iter();
        told.map(|one| one.cache_likely).collect()
    };
    let plain = searched(json!({}));
    let off = searched(json!({"cache_behavior": "disabled"}));
    let filter = json!({"field": "n", "operator": "gt", "value": 1});
    assert_eq!(likely(json!({"feature_search": plain})), [true]);
    assert_eq!(likely(json!({"feature_search": off})), [false]);
    let learned = searched(json!({"fusion": "learned"}));
    assert_eq!(likely(json!({ "feature_search": learned })), [false]);
    let asked = searched(json!({"fusion": "{{INPUT.fusion}}"}));
    assert_eq!(likely(json!({ "feature_search": asked })), [false]);
    // What stands before a search is a part of its question, unless it has read documents.
    let list = json!({"attribute_filter": filter, "feature_search": plain, "rerank": {}});
    assert_eq!(likely(list), [false, true, true]);
    let list = json!({"limit": {}, "feature_search": plain});
    assert_eq!(likely(list), [false, false]);
}

#[test]
fn a_plan_says_what_would_do_it_good() {
    let told = |more: Value| -> Vec<(String, String)> {
        let mut list =
            json!({"feature_search": {"searches": [search(json!({}))], "final_top_k": 30}});
        for (name, value) in more.as_object().unwrap() {
            list[name] = value.clone();
        }
        let found = plan(list).suggestions().into_iter();
        let text = |one: &Object, name: &str| one[name].as_str().unwrap().to_owned();
        found
            .map(|one| (text(&one, "stage_name"), text(&one, "suggestion")))
            .collect()
    };
    let pair = |stage: &str, suggestion: &str| vec![(stage.to_owned(), suggestion.to_owned())];
    let filter =
        |field: &str| json!({"attribute_filter": {"field": field, "operator": "gte", "value": 1}});
    assert_eq!(
        told(filter("n")),
        pair("attribute_filter", "put it before `feature_search`")
    );
    // A score is known behind the search alone.
    assert!(told(filter("score")).is_empty());
    assert_eq!(
        told(json!({"rerank": {}})),
        pair("rerank", "raise max_candidates to 30")
    );
    assert!(told(json!({"rerank": {"top_k": 10}})).is_empty());
    assert!(told(json!({"limit": {"limit": 10}, "rerank": {}})).is_empty());
    let call = json!({"url": "https://x.example", "allowed_domains": ["x.example"]});
    assert_eq!(
        told(json!({"api_call": call, "limit": {"limit": 3}})),
        pair("api_call", "put `limit` before it")
    );
    assert!(told(json!({"limit": {"limit": 3}, "api_call": call})).is_empty());
}

fn checked(schema: Value, inputs: Value) -> Result<Object, Vec<(String, &'static str)>> {
    let schema = serde_json::from_value(schema).unwrap();
    check_inputs(&schema, inputs.as_object().unwrap()).map_err(|list| {
        list.into_iter()
            .map(|v| (v.loc.join("."), v.r#type))
            .collect()
    })
}

#[test]
fn inputs_are_checked_against_their_schema() {
    let schema = || {
        json!({
            "query": {"type": "text", "required": true}, "k": {"type": "integer", "default": 10},
            "sort": {"type": "string", "enum": ["new", "old"]}, "on": {"type": "boolean"}, "day": {"type": "date"},
            "tags": {"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]}, "like": {"type": "document_reference"},
            "more": {"type": "object", "properties": {"least": {"type": "number", "required": true}}},
        })
    };
    let good = checked(
        schema(),
        json!({"query": "x", "k": "5", "on": "true", "tags": ["a"], "more": {"least": 1.5}, "day": null}),
    );
    assert_eq!(
        Value::Object(good.unwrap()),
        json!({"query": "x", "k": 5, "on": true, "tags": ["a"], "more": {"least": 1.5}})
    );
    assert_eq!(checked(schema(), json!({"query": "x"})).unwrap()["k"], 10);
    let bad = json!({"k": 1.5, "sort": "best", "on": 3, "day": "tomorrow", "tags": ["c"], "like": {"id": 1}, "more": {}, "typo": 1});
    let mut found = checked(schema(), bad).unwrap_err();
    found.sort();
    let expected = [
        ("inputs.day", "date_type"),
        ("inputs.k", "int_type"),
        ("inputs.like", "document_reference_type"),
        ("inputs.more.least", "missing"),
        ("inputs.on", "bool_type"),
        ("inputs.query", "missing"),
        ("inputs.sort", "enum"),
        ("inputs.tags", "enum"),
        ("inputs.typo", "extra_forbidden"),
    ];
    assert_eq!(
        found
            .iter()
            .map(|(l, t)| (l.as_str(), *t))
            .collect::<Vec<_>>(),
        expected
    );
    assert!(checked(json!({}), json!({"anything": 1})).is_ok());
    let schema =
        serde_json::from_value(json!({"k": {"type": "integer", "default": "many"}})).unwrap();
    let problems = Plan::compile(&stages(json!({"limit": {}})), &schema)
        .err()
        .unwrap();
    assert_eq!(problems[0].loc, ["input_schema", "k", "default"]);
}
