//! `aggregate`, and the algorithms of `cluster`.

use super::*;

/// Six documents of two makers.
fn cars() -> Memory {
    let car = |id: &str, vector: [f32; 2], payload: Value| document(id, vector, "car", payload);
    Memory {
        documents: vec![
            car(
                "c1",
                [1.0, 0.0],
                json!({"maker": "A", "price": 10, "power": 1.0, "tags": ["x", "y"]}),
            ),
            car(
                "c2",
                [0.99, 0.1],
                json!({"maker": "A", "price": 20, "power": 2.0, "tags": ["x"]}),
            ),
            car(
                "c3",
                [0.98, 0.15],
                json!({"maker": "A", "price": 60, "power": 6.0, "tags": ["y", "x"]}),
            ),
            car(
                "c4",
                [0.0, 1.0],
                json!({"maker": "B", "price": 40, "power": 4.0, "tags": ["z"]}),
            ),
            car(
                "c5",
                [0.1, 0.99],
                json!({"maker": "B", "price": null, "power": 5.0}),
            ),
            car(
                "c6",
                [0.15, 0.98],
                json!({"maker": "B", "price": 30, "power": 3.0, "tags": ["z", "x"]}),
            ),
        ],
        ..Memory::default()
    }
}

async fn over_cars(list: Value) -> Outcome {
    plan(list).run(run(cars(), json!({}))).await.unwrap()
}

#[tokio::test]
async fn figures_over_all_documents() {
    let figure = |function: &str, more: Value| {
        let mut one = json!({"function": function, "field": "price", "alias": function});
        for (name, value) in more.as_object().unwrap() {
            one[name] = value.clone();
        }
        one
    };
    let none = || json!({});
    let out = over_cars(json!({"aggregate": {"aggregations": [
        {"function": "count", "alias": "all"}, figure("count", none()), figure("sum", none()), figure("avg", none()),
        figure("min", none()), figure("max", none()), figure("first", none()), figure("last", none()),
        figure("percentile", json!({"percentile_value": 75})), figure("variance", none()), figure("stddev", none()),
        figure("count_distinct", json!({"field": "tags"})), figure("collect_distinct", json!({"field": "maker"})),
        figure("frequency", json!({"field": "tags", "top_k": 2})), figure("collect", none()),
        figure("co_occurrence", json!({"field": "tags", "top_k": 1})),
        figure("correlation", json!({"field_b": "power"})),
    ]}})).await;
    let [row] = out.documents.as_slice() else {
        panic!("{:?}", out.documents)
    };
    // The prices are 10, 20, 60, 40, 30: numpy gives percentile 40, variance 296.
    assert_eq!(
        (&row["all"], &row["count"], &row["sum"], &row["avg"]),
        (&json!(6), &json!(5), &json!(160.0), &json!(32.0))
    );
    assert_eq!(
        (&row["min"], &row["max"], &row["first"], &row["last"]),
        (&json!(10), &json!(60), &json!(10), &json!(30))
    );
    assert_eq!(
        (&row["percentile"], &row["variance"]),
        (&json!(40.0), &json!(296.0))
    );
    assert!((row["stddev"].as_f64().unwrap() - 296.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(
        (&row["count_distinct"], &row["collect_distinct"]),
        (&json!(3), &json!(["A", "B"]))
    );
    assert_eq!(
        row["frequency"],
        json!([{"value": "x", "count": 4}, {"value": "y", "count": 2}])
    );
    assert_eq!(row["collect"], json!([10, 20, 60, 40, 30]));
    assert_eq!(
        row["co_occurrence"],
        json!([{"value": "x", "value_b": "y", "count": 2}])
    );
    assert_eq!(row["correlation"], json!(1.0));
    assert_eq!(out.statistics.stages["aggregate"].output_count, 1);
}

#[tokio::test]
async fn figures_of_each_group_are_sorted_and_cut() {
    let out = over_cars(json!({"aggregate": {
        "aggregations": [{"function": "sum", "field": "price", "alias": "worth"}, {"function": "count", "alias": "n"}],
        "group_by": [{"field": "maker", "alias": "by"}], "sort_by": "worth", "sort_order": "asc", "include_documents": true}}))
    .await;
    let told: Vec<_> = out
        .documents
        .iter()
        .map(|d| (&d["by"], &d["worth"], &d["n"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("B"), &json!(70.0), &json!(3)),
            (&json!("A"), &json!(90.0), &json!(3))
        ]
    );
    assert_eq!(out.documents[0]["documents"][0]["document_id"], "c4");
    let out = over_cars(
        json!({"aggregate": {"aggregations": [{"function": "count", "alias": "n"}],
        "group_by": [{"field": "maker"}], "limit": 1}}),
    )
    .await;
    assert_eq!(out.documents.len(), 1);
    // Nothing is left: a sum over nothing is null, a count 0.
    let out = over_cars(json!({"aggregate": {"pre_filters": {"maker": "C"}, "aggregations": [
        {"function": "sum", "field": "price", "alias": "s"}, {"function": "count", "alias": "n"}]}})).await;
    assert_eq!(
        (&out.documents[0]["s"], &out.documents[0]["n"]),
        (&Value::Null, &json!(0))
    );
    let sum = json!({"aggregate": {"aggregations": [{"function": "sum", "field": "{{INPUT.of}}", "alias": "s"}]}});
    let wrong = failure(sum, json!({})).await;
    assert!(wrong.contains("`sum` needs `field`"), "{wrong}");
}

#[test]
fn figures_that_could_never_be_computed_are_refused() {
    let refused = |parameters: Value| -> Vec<(String, &str)> {
        let list = stages(json!({"aggregate": parameters}));
        let found = Plan::compile(&list, &IndexMap::new()).err();
        let found = found.unwrap_or_default().into_iter();
        found
            .map(|one| (one.loc[4..].join("."), one.r#type))
            .collect()
    };
    let figure = |function: &str| json!({"aggregations": [{"function": "count", "alias": "n"}, {"function": function, "alias": "x"}]});
    let missing = |name: &str| (format!("aggregations.1.{name}"), "missing");
    assert_eq!(refused(figure("sum")), [missing("field")]);
    assert_eq!(
        refused(figure("correlation")),
        [missing("field"), missing("field_b")]
    );
    assert!(refused(figure("count")).is_empty());
    assert_eq!(
        refused(json!({"aggregations": []})),
        [("aggregations".to_owned(), "too_short")]
    );
    let calls = stages(json!({"api_call": {"url": "https://x.example", "allowed_domains": []}}));
    let found = Plan::compile(&calls, &IndexMap::new()).err().unwrap();
    assert_eq!(
        (found[0].loc[4].as_str(), found[0].r#type),
        ("allowed_domains", "too_short")
    );
    // One from before runs as far as it did.
    assert!(Plan::stored(&calls, &IndexMap::new()).is_ok());
}

#[tokio::test]
async fn every_algorithm_finds_the_two_makers() {
    for algorithm in [
        "kmeans",
        "hdbscan",
        "dbscan",
        "agglomerative",
        "spectral",
        "gaussian_mixture",
    ] {
        let mut parameters =
            json!({"algorithm": algorithm, "min_cluster_size": 3, "feature_uri": FLAT});
        if !["hdbscan", "dbscan"].contains(&algorithm) {
            parameters["n_clusters"] = json!(2);
        }
        let out = over_cars(json!({"cluster": parameters})).await;
        let mut groups: Vec<Vec<String>> = out
            .documents
            .iter()
            .map(|c| {
                let mut ids: Vec<String> = c["documents"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|d| d["document_id"].as_str().unwrap().to_owned())
                    .collect();
                ids.sort();
                assert_eq!(c["size"], ids.len());
                assert_eq!(c["centroid"].as_array().unwrap().len(), 2);
                ids
            })
            .collect();
        groups.sort();
        assert_eq!(
            groups,
            [["c1", "c2", "c3"], ["c4", "c5", "c6"]],
            "{algorithm}"
        );
    }
}

#[tokio::test]
async fn clusters_are_told_in_three_ways_and_documents_without_a_vector_are_in_none() {
    let mut memory = cars();
    memory.documents[5].vectors.clear();
    let list = |mode: &str| json!({"cluster": {"algorithm": "kmeans", "n_clusters": 2, "output_mode": mode}});
    let out = plan(list("labeled"))
        .run(run(memory, json!({})))
        .await
        .unwrap();
    assert_eq!(out.documents.len(), 6);
    let label = |i: usize| &out.documents[i]["cluster_id"];
    assert!(label(0) == label(1) && label(3) == label(4) && label(0) != label(3));
    assert_eq!(label(5), &json!(-1));
    assert!(out.warnings[0].contains("1 documents have no vector"));
    // What is like nothing is left out, and that is said.
    let alone = |mode: &str| json!({"cluster": {"algorithm": "hdbscan", "min_cluster_size": 7, "output_mode": mode}});
    let out = over_cars(alone("clusters")).await;
    assert!(out.documents.is_empty() && out.warnings[0].contains("6 of 6 documents"));
    let out = over_cars(alone("labeled")).await;
    assert!(out.documents.len() == 6 && out.warnings.is_empty());
    let out = over_cars(list("representatives")).await;
    // The middle of each three, by angle.
    assert_eq!(ids(&out), ["c2", "c5"]);
    assert_eq!(out.documents[0]["cluster_size"], 3);
    assert_eq!(out.documents[0]["maker"], "A");
}
