//! What is paid for, what it is told as, and the budget that it is held against.

use serde_json::{Value, json};

use super::{CAPS, close};
use crate::harness::Server;

/// Batches are paid for too, and what was done of one stays paid for. Answers its id.
pub async fn batches_are_paid_for_too(server: &Server, namespace: &str) -> Value {
    let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
    let bucket = server
        .call_in(namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok()["bucket_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let collection = json!({"collection_name": "notes", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    server
        .call_in(namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    server
        .call_in(
            namespace,
            "POST",
            &format!("/v1/buckets/{bucket}/objects"),
            json!({"note": "x"}),
        )
        .await
        .ok();
    let batches = format!("/v1/buckets/{bucket}/batches");
    let draft = server
        .call_in(namespace, "POST", &batches, json!({}))
        .await
        .ok();
    let batch = format!("{batches}/{}", draft["batch_id"].as_str().unwrap());
    server
        .call_in(namespace, "POST", &format!("{batch}/submit"), json!({}))
        .await
        .error(403, "QuotaExceededError");
    server
        .call("POST", CAPS, json!({"hard_spending_cap": 1000}))
        .await
        .ok();
    server
        .call_in(namespace, "POST", &format!("{batch}/submit"), json!({}))
        .await
        .ok();
    crate::batches::ended(server, namespace, &batch).await;
    // What was done is paid for, whatever becomes of the batch.
    let usage = "/v1/organizations/billing/usage/current";
    let before = server.call("GET", usage, Value::Null).await.ok();
    close(&before["usage_v2"]["ingestion_usd"], 1e-4);
    server
        .call_in(namespace, "DELETE", &batch, Value::Null)
        .await
        .ok();
    let after = server.call("GET", usage, Value::Null).await.ok();
    assert_eq!(
        after["usage_v2"]["ingestion_usd"],
        before["usage_v2"]["ingestion_usd"]
    );
    draft["batch_id"].clone()
}

/// Nothing is spent of a budget of nothing without passing every threshold of it.
pub async fn a_budget_is_told_of(server: &Server) {
    server
        .call(
            "POST",
            CAPS,
            json!({"monthly_spending_budget": 0, "spending_alert_thresholds": [90, 50, 50]}),
        )
        .await
        .ok();
    server.app.clock().advance(61);
    let start = std::time::Instant::now();
    let caps = loop {
        let caps = server.call("GET", CAPS, Value::Null).await.ok();
        if caps["spending_alerts_sent"] == json!([50, 90]) || start.elapsed().as_secs() > 180 {
            break caps;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(
        (
            &caps["spending_alerts_sent"],
            &caps["spending_alert_thresholds"]
        ),
        (&json!([50, 90]), &json!([50, 90])),
        "{caps:#}"
    );
    let told = server
        .call(
            "POST",
            "/v1/notifications/list",
            json!({"notification_type": "billing_alert"}),
        )
        .await
        .ok();
    assert_eq!(
        (&told["total"], &told["results"][0]["metadata"]["threshold"]),
        (&json!(1), &json!(90)),
        "{told:#}"
    );
}

pub async fn bad_caps_are_refused(server: &Server) {
    for (body, member, kind) in [
        (
            json!({"monthly_spending_budget": -1}),
            "monthly_spending_budget",
            "greater_than_equal",
        ),
        (
            json!({"spending_alert_thresholds": [0]}),
            "spending_alert_thresholds",
            "range",
        ),
        (
            json!({"hard_spending_limit": 1}),
            "hard_spending_limit",
            "extra_forbidden",
        ),
    ] {
        server
            .call("POST", CAPS, body)
            .await
            .invalid(&["body", member], kind);
    }
}

/// What was paid for, act by act.
pub async fn what_was_paid_for_is_told_act_by_act(
    server: &Server,
    namespace: &str,
    batch_id: &Value,
) {
    let path = "/v1/organizations/billing/transactions";
    let list = server.call("GET", path, Value::Null).await.ok();
    let acts = list["transactions"].as_array().unwrap();
    assert_eq!(
        (&list["total"], &list["has_more"], acts.len() > 1),
        (&json!(acts.len()), &json!(false), true),
        "{list:#}"
    );
    let of = |kind: &str| -> f64 {
        acts.iter()
            .filter(|act| act["operation_type"] == kind)
            .map(|act| act["cost_usd"].as_f64().unwrap())
            .sum()
    };
    close(&json!(of("search")), 4e-6);
    close(&json!(of("ingestion")), 1e-4);
    let ingested = acts
        .iter()
        .find(|act| act["operation_type"] == "ingestion")
        .unwrap();
    assert_eq!(
        (
            &ingested["resource_id"],
            &ingested["namespace_id"],
            &ingested["metadata"]["objects"]
        ),
        (batch_id, &json!(namespace), &json!(1))
    );
    let month = ingested["billing_month"].as_str().unwrap();
    let page = server
        .call(
            "GET",
            &format!("{path}?limit=1&billing_month={month}"),
            Value::Null,
        )
        .await
        .ok();
    assert_eq!(
        (
            page["transactions"].as_array().unwrap().len(),
            &page["has_more"]
        ),
        (1, &json!(true)),
        "{page:#}"
    );
    assert_eq!(
        server
            .call("GET", &format!("{path}?billing_month=2020-01"), Value::Null)
            .await
            .ok()["total"],
        0
    );
}

pub async fn nobody_is_billed(server: &Server) {
    let invoices = "/v1/organizations/billing/invoices";
    assert_eq!(
        server.call("GET", invoices, Value::Null).await.ok(),
        json!({"invoices": [], "total": 0, "has_more": false})
    );
}

/// Lists that are asked for wrongly.
pub async fn bad_lists_are_refused(server: &Server) {
    for (list, member, kind) in [
        ("transactions?limit=201", "limit", "range"),
        (
            "transactions?billing_month=soon",
            "billing_month",
            "string_pattern_mismatch",
        ),
        ("invoices?limit=101", "limit", "range"),
    ] {
        let path = format!("/v1/organizations/billing/{list}");
        server
            .call("GET", &path, Value::Null)
            .await
            .invalid(&["query", member], kind);
    }
}

pub async fn vectors_are_counted_by_the_month(server: &Server) {
    let path = "/v1/organizations/billing/usage/vector-backend";
    let vectors = server.call("GET", path, Value::Null).await.ok();
    assert_eq!(
        (
            &vectors["vectors_stored"],
            &vectors["storage_bytes"],
            &vectors["queries"]
        ),
        (&json!(4), &json!(48), &json!(3))
    );
    assert_eq!(vectors["namespace_count"], 1);
    assert_eq!(
        vectors["cost_breakdown"]["total_usd"],
        vectors["total_cost_usd"]
    );
    for month in ["2020-02", "2999-01"] {
        let other = server
            .call("GET", &format!("{path}?billing_month={month}"), Value::Null)
            .await
            .ok();
        assert_eq!(
            (&other["billing_month"], &other["queries"]),
            (&json!(month), &json!(0))
        );
        for member in [
            "namespace_count",
            "vectors_stored",
            "storage_bytes",
            "total_credits",
        ] {
            assert_eq!(other[member], 0, "{member}: {other:#}");
        }
        close(&other["total_cost_usd"], 0.0);
    }
    for wrong in ["2020-13", "2020-2", "soon"] {
        server
            .call("GET", &format!("{path}?billing_month={wrong}"), Value::Null)
            .await
            .invalid(&["query", "billing_month"], "string_pattern_mismatch");
    }
}
