//! Tiers of which something fails: looked into, mended, tried again and undone.

use serde_json::{Value, json};

use super::{bucket, cut, made, note, over, texts};
use crate::{
    batches::{ended, process},
    both,
    harness::{Answer, Server},
};

/// A collection over another that fails for documents without a topic.
async fn strict(server: &Server, namespace: &str, pages: &str) -> String {
    let strict = json!({
        "collection_name": "strict", "source": over(&[pages]),
        "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1",
            "field_passthrough": [{"source_path": "topic", "required": true}],
        },
    });
    made(server, namespace, strict).await
}

/// How each tier of a batch ended.
fn ends(batch: &Value) -> Vec<&str> {
    let tiers = batch["tier_tasks"].as_array().unwrap().iter();
    tiers.map(|tier| tier["status"].as_str().unwrap()).collect()
}

async fn reconciliation(server: &Server, namespace: &str, collection: &str, query: &str) -> Answer {
    let path = format!("/v1/collections/{collection}/reconciliation{query}");
    server.call_in(namespace, "GET", &path, Value::Null).await
}

/// Of how many objects a collection should hold something, of how many it does, and the difference.
fn figures(state: &Value) -> [i64; 3] {
    let members = ["source_object_count", "produced_object_count", "delta"];
    members.map(|member| state[member].as_i64().unwrap())
}

/// What each collection should hold, and what it does.
async fn check_reconciliation(server: &Server, namespace: &str, bucket: &str, missed: &str) {
    let ask = async |collection: &str, query: &str| {
        reconciliation(server, namespace, collection, query).await
    };
    let state = ask("strict", "").await.ok();
    assert_eq!(
        (figures(&state), &state["document_count"]),
        ([2, 1, 1], &json!(1)),
        "{state:#}"
    );
    let missing = &state["discrepancies"][0];
    let found = ["object_id", "bucket_id", "reason"].map(|member| missing[member].clone());
    assert_eq!(json!(found), json!([missed, bucket, "failed"]), "{state:#}");
    assert_eq!(figures(&ask("pages", "?limit=1").await.ok()), [2, 2, 0]);
    for limit in ["0", "1001", "many"] {
        let refused = ask("pages", &format!("?limit={limit}")).await;
        assert_eq!(refused.status, 422, "{limit}");
    }
    assert_eq!(ask("none", "").await.status, 404);
}

both! {
    async fn a_failure_of_a_tier_is_retried_there(server) {
        let namespace = server.namespace("failures").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let strict = strict(&server, &namespace, &pages).await;
        let last = cut(&server, &namespace, "last", over(&[&strict]), 1).await;
        note(&server, &namespace, &bucket, json!({"note": "one two", "topic": "numbers"})).await;
        let without = note(&server, &namespace, &bucket, json!({"note": "three four"})).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(1)), "{batch:#}");
        assert_eq!(ends(&batch), ["COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED"]);
        assert_eq!(texts(&server, &namespace, &last).await, ["one", "two"]);
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let failed = async |query: &str| {
            let path = format!("{path}/failed-documents?{query}");
            server.call_in(&namespace, "GET", &path, Value::Null).await.ok()
        };
        assert_eq!(failed("tier_num=0").await["total"], 0);
        assert_eq!(failed(&format!("collection_id={last}")).await["total"], 0);
        let failure = failed(&format!("tier_num=1&collection_id={strict}")).await["results"][0].clone();
        assert_eq!((&failure["object_id"], &failure["tier_num"], &failure["collection_id"]), (&json!(without), &json!(1), &json!(strict)), "{failure:#}");
        let document = failure["document_id"].as_str().unwrap();
        assert!(failure["error"].as_str().unwrap().contains("topic"), "{failure:#}");
        check_reconciliation(&server, &namespace, &bucket, &without).await;

        // The document is mended: only what failed is done again, from the tier where it did.
        let mend = format!("/v1/collections/{pages}/documents/{document}");
        server.call_in(&namespace, "PATCH", &mend, json!({"topic": "numbers too"})).await.ok();
        server.call_in(&namespace, "POST", &format!("{path}/retry"), json!({"retry_mode": "all"})).await.ok();
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");
        assert_eq!(texts(&server, &namespace, &last).await, ["four", "one", "three", "two"]);
        let state = reconciliation(&server, &namespace, "strict", "").await.ok();
        assert_eq!((figures(&state), &state["discrepancies"]), ([2, 2, 0], &json!([])), "{state:#}");
        assert_eq!(ends(&batch), ["SKIPPED", "COMPLETED", "COMPLETED"]);

        // From a tier on, whatever became of it.
        server.call_in(&namespace, "POST", &format!("{path}/resubmit?from_tier=3"), json!({})).await.invalid(&["query", "from_tier"], "range");
        server.call_in(&namespace, "POST", &format!("{path}/resubmit?from_tier=1"), json!({})).await.ok();
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["total_tiers"]), (&json!("COMPLETED"), &json!(3)), "{batch:#}");
    }

    async fn a_batch_is_looked_into_and_undone(server) {
        let namespace = server.namespace("looking").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let strict = strict(&server, &namespace, &pages).await;
        note(&server, &namespace, &bucket, json!({"note": "one two", "topic": "numbers"})).await;
        note(&server, &namespace, &bucket, json!({"note": "three four"})).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let ask = async |method: &str, path: &str| server.call_in(&namespace, method, path, Value::Null).await;
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", draft["batch_id"].as_str().unwrap());
        let estimate = ask("POST", &format!("{path}/estimate-cost")).await.ok();
        assert_eq!((&estimate["object_count"], &estimate["already_extracted_count"]), (&json!(2), &json!(0)), "{estimate:#}");
        assert_eq!((&estimate["collection_ids"], &estimate["estimated_credits"]), (&json!([pages, strict]), &json!(1)));
        let empty = json!({"object_ids": []});
        let refused = server.call_in(&namespace, "POST", &batches, empty).await;
        assert_eq!(refused.status, 422, "{:#}", refused.body);
        let answer = ask("POST", &format!("{batches}/submit-all")).await.ok();
        assert_eq!((&answer["submitted"], &answer["failed"], &answer["batches"][0]["object_count"]), (&json!(1), &json!(0), &json!(2)), "{answer:#}");
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");

        let audit = ask("GET", &format!("{path}/audit")).await.ok();
        assert_eq!((&audit["all_balanced"], &audit["has_lost_objects"]), (&json!(true), &json!(false)), "{audit:#}");
        let figures = |tier: usize| ["submitted", "processed", "failed", "skipped"].map(|name| audit["tiers"][tier][name].clone());
        assert_eq!((figures(0), figures(1)), ([2, 2, 0, 0].map(Value::from), [2, 1, 1, 0].map(Value::from)));
        let diagnosis = ask("GET", &format!("{path}/diagnose")).await.ok();
        assert_eq!((&diagnosis["health"], &diagnosis["failures_by_type"]["permanent"]), (&json!("degraded"), &json!(1)), "{diagnosis:#}");
        assert_eq!(diagnosis["findings"][0]["code"], "failures");
        let logs = ask("GET", &format!("{path}/logs?tier_num=1")).await.ok();
        let logs = logs["logs"].as_array().unwrap();
        assert!(logs.iter().all(|entry| entry["tier_num"] == 1), "{logs:#?}");
        assert!(logs.iter().any(|entry| entry["level"] == "error" && entry["message"].as_str().unwrap().contains("topic")), "{logs:#?}");
        ask("POST", &format!("{path}/tiers/0/retry")).await.error(400, "BadRequestError");
        ask("POST", &format!("{path}/tiers/first/retry")).await.error(404, "NotFoundError");
        let again = ask("POST", &format!("{path}/tiers/1/retry")).await.ok();
        assert_eq!(again["retried_count"], 1);
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["failed_object_count"], 1, "{batch:#}");

        // What it wrote goes, and can be written again.
        let removed = ask("DELETE", &format!("{path}/documents")).await.ok();
        assert_eq!((texts(&server, &namespace, &pages).await.len(), texts(&server, &namespace, &strict).await.len()), (0, 0), "{removed:#}");
        process(&server, &namespace, &bucket).await;
        assert_eq!(texts(&server, &namespace, &pages).await, ["one two", "three four"]);
        assert_eq!(texts(&server, &namespace, &strict).await, ["one two"]);
        let estimate = ask("POST", &format!("{path}/estimate-cost")).await.ok();
        assert_eq!((&estimate["already_extracted_count"], &estimate["estimated_credits"]), (&json!(2), &json!(0)), "{estimate:#}");
    }
}
