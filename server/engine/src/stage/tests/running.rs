//! The cheap stages, pages, and runs that end early.

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
