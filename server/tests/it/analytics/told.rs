//! What is told of searches that were counted.

use serde_json::{Value, json};

use super::{counted, get};
use crate::harness::Server;

/// What a retriever was asked, and what was clicked, by day.
pub async fn a_retriever_is_told_of(server: &Server, namespace: &str, id: &str, hits: u8) {
    let place = format!("retrievers/{id}");
    let told = counted(
        server,
        namespace,
        &format!("{place}/performance?group_by=day"),
        5,
    )
    .await;
    let sum = &told["summary"];
    assert_eq!(
        (
            &told["retriever_id"],
            &sum["zero_result_count"],
            &sum["cache_hit_count"]
        ),
        (&json!(id), &json!(2), &json!(hits)),
        "{told:#}"
    );
    assert_eq!(
        (
            &sum["clicks"],
            &sum["click_through_rate"],
            &sum["avg_click_position"]
        ),
        (&json!(2), &json!(0.2), &json!(3.0))
    );
    assert_eq!(
        sum["interactions"],
        json!({"click": 2, "purchase": 1, "view": 1})
    );
    assert_eq!(
        (
            &sum["top_queries"][0]["query"],
            &sum["top_queries"][0]["count"]
        ),
        (&json!("sour"), &json!(3))
    );
    // By what the newest answer to each found.
    let not_found: Vec<&str> = sum["zero_result_queries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["query"].as_str().unwrap())
        .collect();
    assert_eq!(not_found, ["sour", "bitter"]);
    let days = told["metrics"].as_array().unwrap();
    let in_days: i64 = days
        .iter()
        .map(|day| day["execution_count"].as_i64().unwrap())
        .sum();
    assert!(
        in_days == 5 && days[0]["p95_latency_ms"].as_f64().unwrap() > 0.0,
        "{told:#}"
    );
}

/// By the page and by callers, and in a time in which nothing was asked.
pub async fn its_ways_are_told_apart(server: &Server, namespace: &str, id: &str) {
    let place = format!("retrievers/{id}");
    let page = get(
        server,
        namespace,
        &format!("{place}/performance?source=page"),
    )
    .await;
    assert_eq!(
        (
            &page["summary"]["execution_count"],
            &page["summary"]["clicks"],
            &page["summary"]["top_queries"][0]["query"]
        ),
        (&json!(1), &json!(0), &json!("sweet"))
    );
    let callers = get(
        server,
        namespace,
        &format!("{place}/performance?source=api"),
    )
    .await;
    assert_eq!(
        (
            &callers["summary"]["execution_count"],
            &callers["summary"]["clicks"]
        ),
        (&json!(4), &json!(2))
    );
    let before = get(
        server,
        namespace,
        &format!("{place}/performance?end_date=2020-01-01"),
    )
    .await;
    assert_eq!(
        (&before["metrics"], &before["summary"]["execution_count"]),
        (&json!([]), &json!(0))
    );
}

/// Its stages and its cache.
pub async fn what_is_inside_is_told_of(server: &Server, namespace: &str, id: &str, hits: u8) {
    let (place, made) = (format!("retrievers/{id}"), 5 - hits);
    let stages = get(server, namespace, &format!("{place}/stages")).await;
    let first = &stages["stages"][0];
    assert_eq!(
        (
            &first["stage_name"],
            &first["stage_type"],
            &first["execution_count"]
        ),
        (
            &json!("attribute_filter"),
            &json!("attribute_filter"),
            &json!(made)
        ),
        "{stages:#}"
    );
    assert!(
        stages["total_latency_ms"].as_f64().unwrap() > 0.0
            && stages["stages"][1]["avg_documents_out"].as_f64().unwrap() <= 1.0
    );
    let cache = get(server, namespace, &format!("{place}/cache-performance")).await;
    assert_eq!(
        (
            &cache["total_cache_hits"],
            &cache["total_cache_misses"],
            &cache["cache_hit_rate"]
        ),
        (&json!(hits), &json!(made), &json!(f64::from(hits) / 5.0))
    );
}

/// What came of its answers, and the slowest of them.
pub async fn its_signals_are_told_of(server: &Server, namespace: &str, id: &str) {
    let place = format!("retrievers/{id}");
    let signals = get(server, namespace, &format!("{place}/signals")).await;
    let kinds = |kind: &str| {
        signals
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["signal_type"] == kind)
            .count()
    };
    assert_eq!(
        (kinds("click"), kinds("purchase"), kinds("zero_results")),
        (2, 1, 2),
        "{signals:#}"
    );
    let only = get(
        server,
        namespace,
        &format!("{place}/signals?signal_type=zero_results&limit=1"),
    )
    .await;
    assert_eq!(
        (
            only.as_array().unwrap().len(),
            &only[0]["signal_data"]["results"]
        ),
        (1, &json!(0))
    );
    let slow = get(server, namespace, &format!("{place}/slow-queries?limit=2")).await;
    assert!(
        slow[0]["latency_ms"].as_f64() >= slow[1]["latency_ms"].as_f64()
            && slow[0]["slowest_stage"].is_string(),
        "{slow:#}"
    );
}

/// Of the namespace: the fields that were filtered on.
pub async fn a_namespace_is_told_of(server: &Server, namespace: &str, made: u8) {
    let fields = get(server, namespace, "namespaces/fields/most-queried").await;
    let names: Vec<(&Value, &Value)> = fields["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["field_name"], &one["query_count"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("about.kind"), &json!(made)),
            (&json!("price"), &json!(made)),
            (&json!("title"), &json!(1))
        ]
    );
    let together = get(
        server,
        namespace,
        "namespaces/indexes/compound-patterns?limit=1",
    )
    .await;
    assert_eq!(
        (
            &together["total_patterns"],
            &together["patterns"][0]["field_combination"]
        ),
        (&json!(2), &json!(["about.kind", "price"]))
    );
    let performance = get(server, namespace, "namespaces/fields/performance").await;
    assert_eq!(
        (
            &performance["total_fields"],
            &performance["coverage"]["filtered_queries"],
            &performance["coverage"]["total_queries"]
        ),
        (&json!(3), &json!(made), &json!(made))
    );
    assert_eq!(
        get(server, namespace, "namespaces/indexes/recommendations").await["recommendations"],
        json!([])
    );
    let slow = get(server, namespace, "namespaces/queries/slow").await;
    assert_eq!(
        (&slow["total_is_exact"], &slow["latency_threshold_ms"]),
        (&json!(true), &json!(500.0))
    );
    let summary = get(server, namespace, "namespaces/summary?days=1").await;
    assert_eq!(
        (
            &summary["summary"]["execution_count"],
            &summary["most_queried_fields"][0]["field_name"]
        ),
        (&json!(5), &json!("about.kind"))
    );
}
