use super::*;

fn run(plan: Value, rows: &[Value]) -> Value {
    let request: loupe_wire::DocumentAggregationRequest = serde_json::from_value(plan).unwrap();
    let mut aggregation = Aggregation::new(request.into()).unwrap();
    for row in rows {
        aggregation.add(row).unwrap();
    }
    let (results, total) = aggregation.finish();
    json!([results, total])
}

fn rows() -> Vec<Value> {
    vec![
        json!({"kind": "a", "size": 1, "at": "2026-01-05T10:20:30Z", "tags": ["x", "y"]}),
        json!({"kind": "a", "size": 4, "at": "2026-01-11T00:00:00Z", "tags": ["x"]}),
        json!({"kind": "b", "size": 2.5, "at": "2026-02-01"}),
        json!({"size": null}),
    ]
}

#[test]
fn rows_are_grouped_counted_and_summed() {
    let plan = json!({"group_by": [{"field": "kind"}], "sort_direction": "asc", "sort_by": "kind", "aggregations": [
        {"function": "count", "alias": "n"}, {"function": "sum", "field": "size", "alias": "sum"},
        {"function": "avg", "field": "size", "alias": "avg"}, {"function": "min", "field": "size", "alias": "min"},
        {"function": "max", "field": "size", "alias": "max"}, {"function": "first", "field": "size", "alias": "first"},
        {"function": "last", "field": "size", "alias": "last"}, {"function": "push", "field": "tags", "alias": "push"},
        {"function": "add_to_set", "field": "tags", "alias": "set"},
        {"function": "count_distinct", "distinct_field": "tags", "alias": "tags"},
    ]});
    let answer = run(plan, &rows());
    assert_eq!(answer[1], 3);
    let a = answer[0]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["group"]["kind"] == "a")
        .unwrap();
    assert_eq!(
        a["metrics"],
        json!({
            "n": 2, "sum": 5, "avg": 2.5, "min": 1, "max": 4, "first": 1, "last": 4,
            "push": ["x", "y", "x"], "set": ["x", "y"], "tags": 2,
        })
    );
    let none = answer[0]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["group"]["kind"].is_null())
        .unwrap();
    assert_eq!(
        (&none["metrics"]["sum"], &none["metrics"]["avg"]),
        (&json!(0), &Value::Null)
    );
}

#[test]
fn dates_ranges_lists_and_conditions() {
    let count = json!([{"function": "count", "alias": "n"}]);
    let weeks = json!({"group_by": [{"field": "at", "alias": "week", "date_trunc": "week"}], "aggregations": count});
    let answer = run(weeks, &rows()[..2]);
    assert_eq!(
        answer,
        json!([[{"group": {"week": "2026-01-05T00:00:00Z"}, "metrics": {"n": 2}}], 1])
    );
    let days = json!({"group_by": [{"field": "at", "date_part": "dayOfWeek"}], "aggregations": count, "having": [{"field": "n", "operator": "gte", "value": 2}]});
    let answer = run(days, &rows()[..3]);
    assert_eq!(
        answer,
        json!([[{"group": {"at": 1}, "metrics": {"n": 2}}], 1])
    );
    let ranges = json!({"range_buckets": [{"field": "size", "boundaries": [0, 2, 4], "default_bucket": "other"}], "aggregations": count, "limit": 1});
    let answer = run(ranges, &rows());
    assert_eq!(
        answer,
        json!([[{"group": {"size": "other"}, "metrics": {"n": 2}}], 3])
    );
    let unwound = json!({"group_by": [{"field": "tags"}], "unwind": "tags", "aggregations": count});
    let answer = run(unwound, &rows());
    assert_eq!(
        answer[0][0],
        json!({"group": {"tags": "x"}, "metrics": {"n": 2}})
    );
}

#[test]
fn lists_and_counts_that_are_not_whole_are_named() {
    let request = json!({"aggregations": [{"function": "count_distinct", "field": "n", "alias": "kinds"},
        {"function": "push", "field": "n", "alias": "all"}, {"function": "count", "alias": "rows"}]});
    let request: loupe_wire::DocumentAggregationRequest = serde_json::from_value(request).unwrap();
    let mut aggregation = Aggregation::new(request.into()).unwrap();
    for number in 0..VALUES {
        aggregation.add(&json!({ "n": number })).unwrap();
    }
    // Values that are there already are no more of them.
    assert!(aggregation.cut_short().is_empty());
    aggregation.add(&json!({"n": 0})).unwrap();
    assert_eq!(aggregation.cut_short(), ["all"]);
    aggregation.add(&json!({"n": VALUES})).unwrap();
    assert_eq!(aggregation.cut_short(), ["kinds", "all"]);
    let (results, _) = aggregation.finish();
    assert_eq!(results[0].metrics["kinds"], json!(VALUES));
}

#[test]
fn a_field_that_values_are_told_apart_by_is_not_summed() {
    let plan = json!({"aggregations": [{"function": "sum", "field": "size", "distinct_field": "kind", "alias": "x"},
        {"function": "count_distinct", "field": "size", "distinct_field": "kind", "alias": "y"}]});
    assert_eq!(
        run(plan, &rows())[0][0]["metrics"],
        json!({"x": 7.5, "y": 2})
    );
}

#[test]
fn groups_are_sorted_by_any_of_their_names() {
    for by in ["x", "kind", "made", "size"] {
        let plan = json!({"aggregations": [{"function": "count", "alias": "x"}], "sort_by": by,
            "group_by": [{"field": "kind"}, {"field": "at", "alias": "made", "date_trunc": "year"}],
            "range_buckets": [{"field": "size", "boundaries": [0, 2]}]});
        assert!(run(plan, &rows())[1].as_i64() > Some(0), "{by}");
    }
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_at_its_place() {
    for plan in [
        json!({"aggregations": [{"function": "sum", "alias": "x"}]}),
        json!({"aggregations": [{"function": "count", "alias": "x"}, {"function": "count", "alias": "x"}]}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "having": [{"field": "y", "operator": "gt", "value": 1}]}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "having": [{"field": "x", "operator": "~", "value": 1}]}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "range_buckets": [{"field": "s", "boundaries": [2, 1]}]}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "sort_direction": "up"}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "sort_by": "y"}),
        json!({"aggregations": [{"function": "count", "alias": "x"}], "group_by": [{"field": "at", "date_trunc": "week", "date_part": "year"}]}),
    ] {
        let request: loupe_wire::DocumentAggregationRequest =
            serde_json::from_value(plan.clone()).unwrap();
        assert!(
            matches!(
                Aggregation::new(request.into()),
                Err(ApiError::Validation(_))
            ),
            "{plan}"
        );
    }
}
