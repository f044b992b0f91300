//! Stages that work on the documents found: order, shape, links, comparison.

use super::*;

pub fn searched(more: Value) -> Value {
    let mut list = json!({"feature_search": {"searches": [search(json!({}))]}});
    for (name, value) in more.as_object().unwrap() {
        list[name] = value.clone();
    }
    list
}

pub fn q() -> Value {
    json!({"query": "1,0"})
}

#[tokio::test]
async fn conditions_stand_around_every_stage() {
    // In: without green. Worked on: only what is red. Out: without the first.
    let out = answer(searched(json!({"json_transform": {
        "template": r#"{"color": {{ DOC.color | upper | tojson }}, "place": {{ CONTEXT.INDEX }}, "id": {{ DOC.document_id | tojson }}}"#,
        "pre_filters": {"color": {"$ne": "green"}}, "when": {"color": "red"},
        "post_filters": {"NOT": {"document_id": "a"}}}})), q()).await;
    assert_eq!(ids(&out), ["b", "c"]);
    assert_eq!(
        (
            &out.documents[1]["color"],
            &out.documents[1]["place"],
            &out.documents[1]["id"]
        ),
        (&json!("RED"), &json!(1), &json!("c"))
    );
    assert!(
        out.documents[1].get("n").is_none(),
        "the template gives the whole shape"
    );
    let out = answer(
        searched(json!({"json_transform": {"template": "{\"x\": 1}", "when": {"color": "red"}}})),
        q(),
    )
    .await;
    assert_eq!(
        ids(&out),
        ["a", "b", "c", "d"],
        "the others keep their places"
    );
    assert_eq!(
        (out.documents[0].get("x"), &out.documents[1]["x"]),
        (None, &json!(1))
    );
    assert_eq!(
        out.statistics.stages["json_transform"].metadata["when_skipped"],
        2
    );
    // Conditions take inputs, and `when` is of stages that work on each document.
    let list =
        searched(json!({"limit": {"limit": 3, "pre_filters": {"n": {"$gte": "{{INPUT.least}}"}}}}));
    assert_eq!(
        ids(&answer(list, json!({"query": "1,0", "least": 2})).await),
        ["a", "c"]
    );
    let refused = Plan::compile(
        &stages(json!({"limit": {"limit": 3, "when": {"a": 1}}})),
        &IndexMap::new(),
    );
    assert_eq!(refused.err().unwrap()[0].r#type, "extra_forbidden");
}

#[tokio::test]
async fn a_document_that_cannot_be_transformed_stays_or_ends_the_execution() {
    let with = |strict: bool| {
        searched(
            json!({"json_transform": {"template": "{\"n\": {{ DOC.n }} }", "fail_on_error": strict}}),
        )
    };
    let out = answer(with(false), q()).await;
    assert_eq!(
        (&out.documents[0]["n"], &out.documents[3]["color"]),
        (&json!(3), &json!("green"))
    );
    assert!(
        out.warnings[0].contains("1 documents stayed"),
        "{:?}",
        out.warnings
    );
    assert!(failure(with(true), q()).await.contains("document `d`"));
    // What a document holds is data, never a template.
    let evil = Memory {
        documents: vec![document(
            "a",
            [1.0, 0.0],
            "",
            json!({"t": "{{ INPUT.query }}"}),
        )],
        ..Memory::default()
    };
    let list = json!({"json_transform": {"template": r#"{"t": {{ DOC.t | tojson }}}"#}, "rag_prepare": {"content_field": "t"}});
    let out = plan(list).run(run(evil, q())).await.unwrap();
    assert_eq!(out.documents[0]["rag_context"], "1. {{ INPUT.query }}");
}

#[tokio::test]
async fn scores_sort_and_documents_without_one_go_where_they_are_told() {
    let with = |missing: &str| {
        searched(
            json!({"sort_relevance": {"score_field": "n", "missing_score": missing, "direction": "asc"}}),
        )
    };
    assert_eq!(
        ids(&answer(with("bottom"), q()).await),
        ["b", "c", "a", "d"]
    );
    assert_eq!(ids(&answer(with("top"), q()).await), ["d", "b", "c", "a"]);
    let two = json!({"feature_search": {"searches": [search(json!({})),
        {"feature_uri": "flat_index", "query": {"input_mode": "text", "text": "0,1"}, "weight": 0.1}]},
        "sort_relevance": {"feature_address": "flat_index"}});
    assert_eq!(ids(&answer(two, q()).await), ["d", "b", "c", "a"]);
    let list = json!({"sort_attribute": {"field": "document_id", "direction": "desc"},
        "sort_relevance": {"score_field": "n", "missing_score": "preserve"}});
    // d, c, b, a (and pictures) by id from the end: the documents with n take each other's places.
    assert_eq!(
        ids(&answer(list, q()).await),
        ["pic2", "pic1", "d", "a", "c", "b"]
    );
}

#[tokio::test]
async fn lists_unfold_and_what_has_none_stays_on_request() {
    let memory = || Memory {
        documents: vec![
            document("a", [1.0, 0.0], "", json!({"parts": [{"k": 1}, {"k": 2}]})),
            document("b", [1.0, 0.0], "", json!({"parts": []})),
            document("c", [1.0, 0.0], "", json!({"parts": "one"})),
            document("d", [1.0, 0.0], "", json!({})),
        ],
        ..Memory::default()
    };
    let with = async |more: Value| {
        let mut parameters = json!({"field": "parts", "include_array_index": "at"});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        plan(json!({"unwind": parameters}))
            .run(run(memory(), q()))
            .await
            .unwrap()
    };
    let out = with(json!({"output_field": "part"})).await;
    assert_eq!(ids(&out), ["a", "a", "c"]);
    assert_eq!(
        (
            &out.documents[1]["part"],
            &out.documents[1]["at"],
            &out.documents[2]["part"]
        ),
        (&json!({"k": 2}), &json!(1), &json!("one"))
    );
    let out = with(json!({"preserve_null_and_empty": true})).await;
    assert_eq!(ids(&out), ["a", "a", "b", "c", "d"]);
    assert_eq!(
        (&out.documents[2]["parts"], &out.documents[2]["at"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn documents_of_one_id_keep_their_places_around_a_stage() {
    let parts = |id: &str, parts: Value| document(id, [1.0, 0.0], "", json!({"parts": parts}));
    let memory = Memory {
        documents: vec![parts("a", json!([1, 2, 1])), parts("b", json!([2, 1]))],
        ..Memory::default()
    };
    let list = json!({"unwind": {"field": "parts"}, "json_transform": {
        "template": r#"{"parts": {{ DOC.parts }}, "seen": true}"#, "when": {"parts": 1}}});
    let out = plan(list).run(run(memory, q())).await.unwrap();
    let of = |name: &str| -> Vec<Value> {
        let all = out.documents.iter();
        all.map(|one| one.get(name).cloned().unwrap_or_default())
            .collect()
    };
    assert_eq!(ids(&out), ["a", "a", "a", "b", "b"]);
    assert_eq!(of("parts"), [1, 2, 1, 2, 1]);
    assert_eq!(
        of("seen"),
        [
            json!(true),
            Value::Null,
            json!(true),
            Value::Null,
            json!(true)
        ]
    );
}

#[tokio::test]
async fn moments_are_the_stretches_that_documents_cover() {
    let part = |id: &str, object: &str, from: f64, to: f64| {
        document(
            id,
            [1.0 - from as f32 / 100.0, 0.0],
            "",
            json!({"start_time": from, "end_time": to,
            "_internal": {"lineage": {"source_object_id": object}}}),
        )
    };
    let memory = Memory {
        documents: vec![
            part("a", "o1", 0.0, 5.0),
            part("b", "o1", 6.0, 9.0),
            part("c", "o1", 30.0, 31.0),
            part("d", "o2", 1.0, 2.0),
        ],
        ..Memory::default()
    };
    let list =
        searched(json!({"moment_group": {"max_gap": 1.5}, "group_by": {"output_mode": "first"}}));
    let out = plan(list).run(run(memory, q())).await.unwrap();
    // `group_by` knows the object that a document came from by its short name.
    assert_eq!(ids(&out), ["a", "d"]);
    let moments = out.documents[0]["moments"].as_array().unwrap();
    assert_eq!(moments.len(), 2);
    assert_eq!(
        (
            &moments[0]["start_time"],
            &moments[0]["end_time"],
            &moments[0]["document_ids"]
        ),
        (&json!(0.0), &json!(9.0), &json!(["a", "b"]))
    );
    assert_eq!(moments[1]["start_time"], 30.0);
    assert_eq!(out.documents[1]["moments"][0]["end_time"], 2.0);
}

#[tokio::test]
async fn a_context_keeps_within_its_tokens() {
    let text = "one two three four five six seven eight nine ten ";
    let memory = || {
        Memory {
        documents: ["a", "b", "c"].iter().map(|id| {
            document(id, [1.0, 0.0], "", json!({"content": text.repeat(8), "title": format!("title {id}"), "url": "https://x.example"}))
        }).chain([document("d", [1.0, 0.0], "", json!({}))]).collect(),
        ..Memory::default()
    }
    };
    let with = async |parameters: Value| {
        plan(json!({"rag_prepare": parameters}))
            .run(run(memory(), q()))
            .await
            .unwrap()
    };
    let bpe = tiktoken_rs::cl100k_base_singleton();
    let whole = with(json!({})).await;
    let [row] = whole.documents.as_slice() else {
        panic!()
    };
    let context = row["rag_context"].as_str().unwrap();
    assert!(
        context.starts_with("1. one two") && context.contains("\n2. one"),
        "{context}"
    );
    assert_eq!(row["token_count"], bpe.count_ordinary(context));
    assert_eq!(
        (
            row["citations"].as_array().unwrap().len(),
            &row["citations"][0]["title"]
        ),
        (3, &json!("title a"))
    );
    assert!(row["citations"][0].get("url").is_none());
    assert!(whole.warnings[0].contains("1 documents have no text"));
    for (strategy, documents) in [
        ("priority_truncate", 2),
        ("proportional", 3),
        ("drop_last", 1),
    ] {
        let out = with(json!({"max_tokens": 120, "truncation_strategy": strategy, "citation": {"style": "bracketed", "include_url": true}})).await;
        let row = &out.documents[0];
        let tokens = bpe.count_ordinary(row["rag_context"].as_str().unwrap());
        assert!(tokens <= 120 && tokens > 80, "{strategy}: {tokens}");
        assert_eq!(
            (&row["document_count"], &row["citations"][0]["url"]),
            (&json!(documents), &json!("https://x.example")),
            "{strategy}"
        );
    }
    // What is cut is cited as the others are, and what has no text left is none.
    for strategy in ["priority_truncate", "proportional"] {
        let cut = json!({"max_tokens": 120, "truncation_strategy": strategy, "output_mode": "formatted_list", "citation": {"style": "footnote"}});
        for document in with(cut).await.documents {
            let (text, citation) = (&document["formatted_content"], &document["citations"]);
            let mark = format!(" [^{}]", citation["number"]);
            let text = text.as_str().unwrap();
            assert!(text.ends_with(&mark) && text.len() > mark.len(), "{text}");
        }
    }
    let out = with(json!({"output_mode": "formatted_list", "document_template": "{{ DOC.title | upper }}", "citation": {"style": "footnote"}})).await;
    assert_eq!(out.documents[1]["formatted_content"], "TITLE B [^2]");
    assert_eq!(out.documents[1]["citations"]["document_id"], "b");
}

#[tokio::test]
async fn stages_before_are_read_under_their_alias_and_batches_may_be_templates() {
    let mut list = stages(searched(json!({"json_transform": {
        "template": r#"{"of": {{ CONTEXT.found.output_count }}, "first": {{ CONTEXT.found.documents[0].document_id | tojson }}, "at": {{ CONTEXT.INDEX }}}"#}})));
    list[0].output_alias = Some("found".into());
    list[1].batch_size = Some("{{INPUT.size}}".into());
    let compiled = Plan::compile(&list, &IndexMap::new())
        .map_err(|p| panic!("{p:?}"))
        .unwrap();
    let out = compiled
        .run(run(store(), json!({"query": "1,0", "size": 2})))
        .await
        .unwrap();
    let row = &out.documents[2];
    assert_eq!(
        (&row["of"], &row["first"], &row["at"]),
        (&json!(4), &json!("a"), &json!(2))
    );
    let wrong = compiled
        .run(run(store(), json!({"query": "1,0", "size": "many"})))
        .await;
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("batch_size is a whole number")
    );
    list[1].batch_size = Some("0".into());
    assert_eq!(
        Plan::compile(&list, &IndexMap::new()).err().unwrap()[0].loc,
        ["stages", "1", "batch_size"]
    );
}

#[tokio::test]
async fn a_tree_of_conditions_folds_case_where_its_stage_does() {
    let found = async |filter: Value| {
        let out = answer(json!({"attribute_filter": filter}), json!({})).await;
        ids(&out).join(" ")
    };
    let tree =
        json!({"OR": [{"color": "RED"}, {"field": "color", "operator": "eq", "value": "GREEN"}]});
    assert_eq!(found(json!({"conditions": tree})).await, "");
    let folded = json!({"conditions": tree, "case_insensitive": true});
    assert_eq!(found(folded).await, "b c d pic1");
    // What the tree says itself wins, wherever it says it.
    let own = json!({"OR": [{"case_sensitive": true, "color": "RED"}, {"color": "GREEN"}]});
    assert_eq!(
        found(json!({"conditions": own, "case_insensitive": true})).await,
        "d"
    );
    let own = json!({"case_sensitive": true, "color": "RED"});
    assert_eq!(
        found(json!({"conditions": own, "case_insensitive": true})).await,
        ""
    );
}

#[tokio::test]
async fn what_several_ways_of_a_query_find_is_grouped_as_one() {
    let text = |id: &str, vector: [f32; 2], said: &str, g: i64| {
        document(id, vector, said, json!({"content": said, "g": g}))
    };
    let found = async |mode: &str| {
        // By the query itself `a` is the best of its group, by the query with `castle` it is `b`.
        let memory = Memory {
            documents: vec![
                text("a", [0.9, 0.0], "vampire night", 1),
                text("b", [0.8, 0.0], "vampire castle", 1),
                text("c", [0.7, 0.0], "vampire morning", 2),
                text("e", [0.6, 0.0], "castle vampire", 3),
            ],
            ..Memory::default()
        };
        let list = json!({"query_expand": {"num_expansions": 1, "feature_search_config": {"feature_uri": FLAT,
            "query": "{{INPUT.query}}", "lexical": true, "group_by": {"field": "g", "output_mode": mode}}}});
        let run = run(memory, json!({"query": "vampire"}));
        let out = plan(list).run(run).await.unwrap();
        let told = &out.statistics.stages["query_expand"].metadata;
        assert_eq!(told["expansions"], json!(["vampire castle"]), "{mode}");
        out.documents
    };
    for mode in ["first", "flatten", "all"] {
        let documents = found(mode).await;
        let of = |one: &Object| match mode {
            "all" => one["group_value"].clone(),
            _ => one["g"].clone(),
        };
        let mut groups: Vec<i64> = documents
            .iter()
            .filter_map(|one| of(one).as_i64())
            .collect();
        groups.sort_unstable();
        assert_eq!(groups, [1, 2, 3], "{mode}: {documents:?}");
    }
    assert_eq!(found("all").await[0]["count"], 2);
}

#[tokio::test]
async fn a_query_is_expanded_by_the_words_of_what_it_finds() {
    let text = |id: &str, vector: [f32; 2], said: &str| {
        document(id, vector, said, json!({"content": said}))
    };
    let memory = Memory {
        documents: vec![
            text("a", [0.9, 0.0], "castle vampire night"),
            text("b", [0.8, 0.0], "vampire castle coffin"),
            text("c", [0.7, 0.0], "vampire morning sunlight"),
            text("d", [0.1, 0.0], "castle architecture"),
        ],
        ..Memory::default()
    };
    let list = |more: Value| {
        let mut parameters = json!({"num_expansions": 1, "feature_search_config": {"feature_uri": FLAT, "query": "{{INPUT.query}}", "lexical": true,
            "top_k": 3, "final_top_k": 10, "facets": [{"key": "content"}]}});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        json!({"query_expand": parameters})
    };
    let store = Arc::new(memory);
    let with = |query: &str| {
        let mut with = run(Memory::default(), json!({"query": query}));
        with.store = store.clone();
        with
    };
    let out = plan(list(json!({}))).run(with("vampire")).await.unwrap();
    let told = &out.statistics.stages["query_expand"].metadata;
    // "castle" is in two of the three documents found; the other words are in one alone, "vampire" is the query's own.
    assert_eq!(
        (&told["method"], &told["expansions"]),
        (
            &json!("pseudo_relevance_feedback"),
            &json!(["vampire castle"])
        )
    );
    assert!(
        out.degraded[0]
            .reason
            .contains("no language model is configured"),
        "{:?}",
        out.degraded
    );
    assert_eq!(out.facets.len(), 1, "each field is counted once");
    // a and b are best by both queries: twice 1/61 for the first.
    assert_eq!(ids(&out)[..2], ["a", "b"]);
    let twice = plan(list(json!({"deduplicate": false})))
        .run(with("vampire"))
        .await
        .unwrap();
    assert!(twice.documents.len() > out.documents.len());
    let vector = list(
        json!({"feature_search_config": {"feature_uri": FLAT, "query": {"input_mode": "vector", "value": [1, 0]}}}),
    );
    let out = plan(vector).run(with("")).await.unwrap();
    assert!(out.warnings[0].contains("no text to say in other ways") && out.documents.len() == 4);
    let wrong = Plan::compile(
        &stages(json!({"query_expand": {"feature_search_config": {"final_top_k": 5}}})),
        &IndexMap::new(),
    );
    assert_eq!(
        wrong.err().unwrap()[0].loc.join("."),
        "stages.0.config.parameters.feature_search_config.searches"
    );
}

#[tokio::test]
async fn without_a_machine_to_ask_stages_say_so() {
    for (stage, parameters) in [
        ("llm_filter", json!({"criteria": "good"})),
        ("llm_enrich", json!({})),
        ("summarize", json!({})),
        ("external_web_search", json!({})),
    ] {
        let wrong = failure(searched(json!({stage: parameters})), q()).await;
        assert!(wrong.contains("is configured; set `"), "{stage}: {wrong}");
    }
    let call = json!({"url": "https://x.example", "allowed_domains": ["x.example"]});
    assert!(
        failure(searched(json!({"api_call": call})), q())
            .await
            .contains("not enabled")
    );
    // A rerank without its model leaves the order and says so.
    let out = answer(searched(json!({"rerank": {"top_k": 2}})), q()).await;
    assert_eq!((ids(&out), out.degraded.len()), (vec!["a", "b"], 1));
    assert!(
        out.warnings[0].contains("documents have no text at `content`"),
        "{:?}",
        out.warnings
    );
}
