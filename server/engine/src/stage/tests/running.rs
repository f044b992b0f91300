//! The cheap stages, pages, and runs that end early.

use super::local::searched;
use super::*;

#[tokio::test]
async fn sorting_limits_and_the_cheap_stages() {
    let all = || json!({"feature_search": {"searches": [search(json!({}))]}});
    let with = |stage: &str, parameters: Value| {
        let mut list = all();
        list[stage] = parameters;
        list
    };
    let q = || json!({"query": "1,0"});
    let list = with("sort_attribute", json!({"field": "n", "direction": "desc"}));
    assert_eq!(
        ids(&answer(list, q()).await),
        ["a", "c", "b", "d"],
        "absent values last both ways"
    );
    let list = with(
        "sort_attribute",
        json!({"field": "n", "direction": "asc", "nulls_last": false}),
    );
    assert_eq!(ids(&answer(list, q()).await), ["d", "b", "c", "a"]);
    assert_eq!(
        ids(&answer(with("limit", json!({"limit": 2, "offset": 1})), q()).await),
        ["b", "c"]
    );
    assert_eq!(
        ids(&answer(with("deduplicate", json!({"fields": ["color"]})), q()).await),
        ["a", "b", "d"]
    );
    let out = answer(
        with(
            "sample",
            json!({"count": 2, "seed": 7, "preserve_top_k": 1}),
        ),
        q(),
    )
    .await;
    assert_eq!((out.documents.len(), ids(&out)[0]), (2, "a"));
    let out = answer(with("score_normalize", json!({})), q()).await;
    assert_eq!(
        (&out.documents[0]["score"], &out.documents[3]["score"]),
        (&json!(1.0), &json!(0.0))
    );
    let out = answer(with("mmr", json!({"lambda": 0.3, "top_k": 2})), q()).await;
    assert_eq!(
        ids(&out),
        ["a", "d"],
        "what is unlike the first comes second"
    );
    let out = answer(
        with(
            "group_by",
            json!({"group_by_field": "g", "output_mode": "first"}),
        ),
        q(),
    )
    .await;
    assert_eq!(ids(&out), ["a", "c", "d"]);
}

#[tokio::test]
async fn pages_by_cursor_scroll_and_key_follow_each_other() {
    let page = |pagination: Value, inputs: Value| {
        let mut with = run(store(), inputs);
        with.pagination = Some(serde_json::from_value::<RetrieverPagination>(pagination).unwrap());
        async move { plan(one(json!({}))).run(with).await }
    };
    let q = || json!({"query": "1,0"});
    for (method, name, sent) in [
        ("cursor", "next_cursor", "cursor"),
        ("scroll", "scroll_id", "scroll_id"),
        ("keyset", "after", "after"),
    ] {
        let (mut seen, mut next) = (Vec::new(), Value::Null);
        loop {
            let out = page(json!({"method": method, "limit": 3, sent: next}), q())
                .await
                .unwrap();
            seen.extend(ids(&out).into_iter().map(str::to_owned));
            next = out.pagination[name].clone();
            if next.is_null() {
                break;
            }
            assert_eq!(out.pagination["has_next"], true);
        }
        assert_eq!(seen, ["a", "b", "c", "d"], "{method}");
    }
    let first = page(json!({"method": "cursor", "limit": 2}), q())
        .await
        .unwrap();
    let cursor = first.pagination["next_cursor"].clone();
    let other = page(
        json!({"method": "cursor", "limit": 2, "cursor": cursor}),
        json!({"query": "0,1"}),
    )
    .await;
    assert!(matches!(other, Err(RunError::Cursor(_))));
    assert!(matches!(
        page(json!({"method": "cursor", "cursor": "??"}), q()).await,
        Err(RunError::Cursor(_))
    ));
    assert!(matches!(
        page(json!({"method": "offset", "page_size": 501}), q()).await,
        Err(RunError::Invalid(_))
    ));
    let list = json!({"feature_search": {"searches": [search(json!({}))], "final_top_k": 3}});
    let out = answer(list, q()).await;
    assert_eq!(
        (
            out.documents.len(),
            &out.pagination["limit"],
            &out.pagination["method"]
        ),
        (3, &json!(3), &json!("cursor"))
    );
}

#[tokio::test]
async fn a_run_out_of_time_says_so_and_a_skipped_error_is_told() {
    let mut with = run(
        Memory {
            delay: std::time::Duration::from_secs(5),
            ..store()
        },
        json!({"query": "1,0"}),
    );
    with.max_time_ms = Some(30);
    let out = plan(one(json!({}))).run(with).await.unwrap();
    assert!(out.timed_out && out.documents.is_empty());
    assert!(out.degraded[0].reason.contains("30 ms"));
    let mut list = stages(
        json!({"feature_search": {"searches": [search(json!({}))]}, "limit": {"limit": "{{INPUT.k}}"}}),
    );
    list[1].on_error = Some("skip".into());
    let plan = Plan::compile(&list, &IndexMap::new())
        .map_err(|p| panic!("{p:?}"))
        .unwrap();
    let out = plan
        .run(run(store(), json!({"query": "1,0", "k": "many"})))
        .await
        .unwrap();
    assert_eq!(out.documents.len(), 4);
    assert!(
        out.statistics.stages["limit"]
            .error
            .as_ref()
            .unwrap()
            .contains("whole number")
    );
    let out = plan
        .run(run(store(), json!({"query": "1,0", "k": 1})))
        .await
        .unwrap();
    assert_eq!(out.documents.len(), 1);
}

#[tokio::test]
async fn stages_begin_with_a_row_that_is_there() {
    let row = json!({"document_id": "own", "list": [1, 2]});
    let row = row.as_object().unwrap().clone();
    let plan = plan(json!({"unwind": {"field": "list"}}));
    let out = plan.run_on(run(store(), json!({})), row).await.unwrap();
    assert_eq!(ids(&out), ["own", "own"]);
    let members: Vec<&Value> = out.documents.iter().map(|one| &one["list"]).collect();
    assert_eq!(members, [&json!(1), &json!(2)]);
}

#[tokio::test]
async fn pages_by_key_lose_no_row_of_a_document_that_is_several() {
    let lists = Memory {
        documents: ["x", "y"]
            .map(|id| document(id, [1.0, 0.0], "", json!({"list": [1, 2, 3]})))
            .into(),
        ..Memory::default()
    };
    let lists = Arc::new(lists);
    let unwound = json!({"unwind": {"field": "list"}});
    // Rows of figures are of no document at all.
    let figures = json!({"unwind": {"field": "list"}, "aggregate": {"group_by": [{"field": "document_id", "alias": "of"}, {"field": "list"}]}});
    for (stages, of) in [(unwound, "document_id"), (figures, "of")] {
        let plan = plan(stages);
        let (mut seen, mut after, mut pages) = (Vec::new(), Value::Null, 0);
        while pages < 10 {
            let mut with = run(Memory::default(), json!({}));
            with.store = lists.clone();
            let page = json!({"method": "keyset", "limit": 2, "after": after});
            with.pagination = Some(serde_json::from_value(page).unwrap());
            let out = plan.run(with).await.unwrap();
            let row = |one: &Object| format!("{}{}", one[of].as_str().unwrap(), one["list"]);
            seen.extend(out.documents.iter().map(row));
            after = out.pagination["after"].clone();
            pages += 1;
            if after.is_null() {
                break;
            }
        }
        assert_eq!(seen, ["x1", "x2", "x3", "y1", "y2", "y3"], "by {of}");
    }
}

#[tokio::test]
async fn pages_by_key_go_on_where_a_document_was_that_is_gone() {
    let page = async |store: Memory, list: Value, after: Value| {
        let mut with = run(store, json!({"query": "1,0"}));
        let page = json!({"method": "keyset", "limit": 2, "after": after});
        with.pagination = Some(serde_json::from_value(page).unwrap());
        let out = plan(list).run(with).await.unwrap();
        let ids: Vec<String> = ids(&out).into_iter().map(str::to_owned).collect();
        (ids, out.pagination["after"].clone())
    };
    let without = |gone: &[&str]| {
        let mut left = store();
        left.documents
            .retain(|one| !gone.contains(&one.document_id.as_str()));
        left
    };
    // By score: behind the score that it had, however many went.
    let (first, after) = page(store(), one(json!({})), Value::Null).await;
    assert_eq!(first, ["a", "b"]);
    let (next, _) = page(without(&["a", "b"]), one(json!({})), after).await;
    assert_eq!(next, ["c", "d"]);
    // In another order than that of scores: behind its number.
    let mut sorted = one(json!({}));
    sorted["sort_attribute"] = json!({"field": "document_id", "direction": "desc"});
    let (first, after) = page(store(), sorted.clone(), Value::Null).await;
    assert_eq!(first, ["d", "c"]);
    let (next, _) = page(without(&["c"]), sorted, after).await;
    assert_eq!(next, ["b", "a"]);
}

#[tokio::test]
async fn a_page_is_as_long_as_the_search_is_asked_to_be() {
    let list =
        json!({"feature_search": {"searches": [search(json!({}))], "final_top_k": "{{INPUT.k}}"}});
    for (k, size) in [(json!(3), 3), (json!("2"), 2), (Value::Null, 25)] {
        let out = plan(list.clone())
            .run(run(store(), json!({"query": "1,0", "k": k})))
            .await;
        match out {
            Ok(out) => assert_eq!(out.pagination["limit"], size),
            // A text is no number of documents, and the stage says so.
            Err(error) => assert!(k == "2" && error.to_string().contains("whole number")),
        }
    }
}

#[tokio::test]
async fn searches_that_differ_in_case_alone_are_not_taken_for_one_another() {
    let kept = Arc::new(Kept::new(std::time::Duration::from_secs(60)));
    let found = async |case_sensitive: bool| {
        let mut with = run(store(), json!({"query": "1,0"}));
        with.keeping = Some(Keeping {
            kept: kept.clone(),
            whose: "a".into(),
            version: (1, 0),
            most: None,
        });
        let red = json!({"field": "color", "operator": "eq", "value": "RED", "case_sensitive": case_sensitive});
        with.filter = Some(crate::filter::Filter::parse(&red).unwrap());
        let out = plan(one(json!({}))).run(with).await.unwrap();
        (
            out.documents.len(),
            out.statistics.stages["feature_search"].stage_cache_hit,
        )
    };
    assert_eq!(found(false).await, (2, Some(false)));
    assert_eq!(found(true).await, (0, Some(false)));
    assert_eq!(found(false).await, (2, Some(true)));
}

#[tokio::test]
async fn documents_by_chance_are_any_of_them() {
    let many = Memory {
        documents: (0..300)
            .map(|number| document(&format!("a{number:03}"), [1.0, 0.0], "", json!({})))
            .collect(),
        ..Memory::default()
    };
    let many = Arc::new(many);
    let list = one(json!({"on_empty": "random", "top_k": 3}));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..60 {
        let mut with = run(Memory::default(), json!({"query": ""}));
        with.store = many.clone();
        let out = plan(list.clone()).run(with).await.unwrap();
        assert_eq!(out.documents.len(), 3);
        seen.extend(ids(&out).into_iter().map(str::to_owned));
    }
    assert!(
        seen.first().is_some_and(|id| id.as_str() < "a100")
            && seen.last().is_some_and(|id| id.as_str() > "a200"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn what_points_the_other_way_is_most_unlike() {
    let around = Memory {
        documents: vec![
            document("a", [1.0, 0.0], "", json!({"score": 1.0})),
            document("b", [0.0, 1.0], "", json!({"score": 1.0})),
            document("c", [-1.0, 0.0], "", json!({"score": 1.0})),
        ],
        ..Memory::default()
    };
    let out = plan(json!({"mmr": {"lambda": 0.5}}))
        .run(run(around, json!({})))
        .await
        .unwrap();
    assert_eq!(ids(&out), ["a", "c", "b"]);
}

#[tokio::test]
async fn documents_are_known_by_their_objects_in_every_stage() {
    let part = |id: &str, object: &str| {
        let payload = json!({"_internal": {"lineage": {"source_object_id": object}}});
        document(id, [1.0, 0.0], "", payload)
    };
    let parts = || Memory {
        documents: vec![part("a", "o_2"), part("b", "o_2"), part("c", "o_1")],
        ..Memory::default()
    };
    let out = async |list: Value| plan(list).run(run(parts(), json!({}))).await.unwrap();
    let once = out(json!({"deduplicate": {"fields": ["source_object_id"]}})).await;
    assert_eq!(ids(&once), ["a", "c"]);
    for nulls_last in [true, false] {
        let sort =
            json!({"field": "source_object_id", "direction": "asc", "nulls_last": nulls_last});
        let sorted = out(json!({ "sort_attribute": sort })).await;
        assert_eq!(ids(&sorted)[0], "c");
    }
    let sample = json!({"count": 2, "strategy": "stratified", "stratify_by": "source_object_id"});
    let sampled = out(json!({ "sample": sample })).await;
    assert!(ids(&sampled).contains(&"c"), "one of each object");
}

#[tokio::test]
async fn an_answer_tells_what_was_not_enriched_and_what_was_cut() {
    let mut list = stages(
        json!({"limit": {"limit": "{{CONTEXT.time_elapsed_ms + 2}}"}, "api_call": {
        "url": "https://x.example", "allowed_domains": ["x.example"]}}),
    );
    list[1].on_error = Some("skip".into());
    let plan = Plan::compile(&list, &IndexMap::new())
        .map_err(|p| panic!("{p:?}"))
        .unwrap();
    let out = plan.run(run(store(), json!({}))).await.unwrap();
    // The first stage knows how much time has gone: none.
    assert_eq!(
        (out.documents.len(), out.skipped),
        (2, vec!["api_call".to_owned()])
    );
    assert!(
        out.skip_reason
            .is_some_and(|why| why.contains("not enabled"))
    );
    let many = Memory {
        documents: (0..1_005)
            .map(|number| document(&format!("a{number:04}"), [1.0, 0.0], "", json!({})))
            .collect(),
        ..Memory::default()
    };
    let out = self::plan(json!({"mmr": {"top_k": 1}}))
        .run(run(many, json!({})))
        .await
        .unwrap();
    let limit = &out.limits[0];
    assert_eq!(
        (
            limit.name.as_str(),
            limit.requested,
            limit.applied,
            limit.ceiling
        ),
        ("candidates", 1_005, 1_000, 1_000)
    );
    assert_eq!(limit.stage.as_deref(), Some("mmr"));
}

#[tokio::test]
async fn a_run_that_fails_tells_the_stages_before() {
    let list = searched(json!({"limit": {"limit": 3}, "external_web_search": {"query": "x"}}));
    let failed = plan(list)
        .run_told(run(store(), json!({"query": "1,0"})))
        .await;
    let failed = failed.unwrap_err();
    assert!(
        matches!(failed.error, RunError::Embed(_)),
        "{}",
        failed.error
    );
    let stages = &failed.so_far.statistics.stages;
    let told: Vec<(&str, i64, bool)> = stages
        .iter()
        .map(|(name, stage)| (name.as_str(), stage.output_count, stage.error.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("feature_search", 4, false),
            ("limit", 3, false),
            ("external_web_search", 0, true)
        ]
    );
    assert!(failed.so_far.documents.is_empty());
}

#[tokio::test]
async fn pages_by_cursor_and_scroll_go_on_behind_what_changed() {
    let listed = || json!({"attribute_filter": {"field": "n", "operator": "gte", "value": 0}});
    let page = async |list: Value, memory: Memory, pagination: Value, shown: bool| {
        let mut with = run(memory, json!({"query": "1,0"}));
        with.shown = shown.then(|| Vec::new().into());
        with.pagination = Some(serde_json::from_value(pagination).unwrap());
        plan(list).run(with).await.unwrap()
    };
    // Another document comes before those that were told.
    let more = || {
        let mut memory = store();
        let earlier = document("Z", [0.95, 0.0], "", json!({"n": 9}));
        memory.documents.push(earlier);
        memory
    };
    for (method, name, sent) in [
        ("cursor", "next_cursor", "cursor"),
        ("scroll", "scroll_id", "scroll_id"),
    ] {
        let asked = json!({"method": method, "limit": 2});
        let first = page(one(json!({})), store(), asked, false).await;
        let next = first.pagination[name].clone();
        assert_eq!(ids(&first), ["a", "b"]);
        let asked = json!({"method": method, "limit": 2, sent: next});
        let second = page(one(json!({})), more(), asked, false).await;
        assert_eq!(ids(&second)[0], "c", "{method}");
    }
    // Whoever is shown a part of the documents gets numbers, and nothing of what they are sorted by.
    let first = page(
        listed(),
        store(),
        json!({"method": "cursor", "limit": 2}),
        true,
    )
    .await;
    let token = first.pagination["next_cursor"].as_str().unwrap().to_owned();
    let token = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, token);
    assert!(
        String::from_utf8(token.unwrap())
            .unwrap()
            .ends_with(",null]")
    );
}

#[tokio::test]
async fn contents_that_are_meant_together_are_each_what_they_are() {
    let red = {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let picture = image::RgbImage::from_pixel(2, 2, image::Rgb([255, 0, 0]));
        picture
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        let packed = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            bytes.into_inner(),
        );
        format!("data:image/png;base64,{packed}")
    };
    let by = async |query: Value| {
        let list = json!({"feature_search": {"final_top_k": 2, "searches": [
            {"feature_uri": IMAGE, "query": query, "top_k": 2}]}});
        plan(list).run(run(store(), json!({}))).await
    };
    let several = json!({"input_mode": "multi_content", "values": [red, red]});
    let out = by(several).await.unwrap();
    assert_eq!(ids(&out), ["pic1", "pic2"]);
    let score = out.documents[0]["score"].as_f64().unwrap();
    let listed = json!({"input_mode": "content", "value": [red, {"base64": red}]});
    let same = by(listed).await.unwrap().documents[0]["score"]
        .as_f64()
        .unwrap();
    assert!((score - same).abs() < 1e-6, "{score} {same}");
    let many = json!({"input_mode": "multi_content", "values": vec![red; 11]});
    let told = by(many).await.unwrap_err().to_string();
    assert!(told.contains("10 files at most"), "{told}");
    let stray = by(json!({"input_mode": "content", "value": [1]})).await;
    assert!(matches!(stray, Err(RunError::Invalid(_))));
}
