//! Figures of what was asked and of what was done.

mod told;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::{Server, other_organization},
    stages::stage,
};

async fn get(server: &Server, namespace: &str, path: &str) -> Value {
    let path = format!("/v1/analytics/{path}");
    server
        .call_in(namespace, "GET", &path, Value::Null)
        .await
        .ok()
}

/// Two fruits, and a retriever that takes them by the kind that is asked for.
async fn fruits(server: &Server) -> (String, String) {
    let namespace = server.namespace("fruits").await;
    let collection = json!({"collection_name": "fruits", "source": {"type": "direct_upsert"}, "feature_extractor": {
        "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    server
        .call_in(&namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    for (title, kind) in [("Lemon", "sour"), ("Fig", "sweet")] {
        let body = json!({"title": title, "about": {"kind": kind}, "price": 3});
        server
            .call_in(&namespace, "POST", "/v1/collections/fruits/documents", body)
            .await
            .ok();
    }
    let conditions = json!({"AND": [{"field": "about.kind", "operator": "eq", "value": "{{INPUT.query}}"}, {"field": "price", "operator": "lt", "value": 9}]});
    let body = json!({"retriever_name": "fruits", "collection_identifiers": ["fruits"], "input_schema": {"query": {"type": "text", "required": true}},
        "stages": [stage("attribute_filter", json!({"conditions": conditions})), stage("limit", json!({"limit": 5}))]});
    let made = server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    (namespace, made["retriever_id"].as_str().unwrap().to_owned())
}

/// The history is written behind the answers.
async fn counted(server: &Server, namespace: &str, path: &str, count: i64) -> Value {
    let began = Instant::now();
    loop {
        let told = get(server, namespace, path).await;
        if told["summary"]["execution_count"] == count {
            return told;
        }
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "{count} executions do not come: {told:#}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both! {
    async fn searches_are_counted(server) {
        let (namespace, id) = fruits(&server).await;
        let execute = format!("/v1/retrievers/{id}/execute");
        let ask = async |body: Value| server.call_in(&namespace, "POST", &execute, body).await.ok();
        // Twice the same, the second time from memory; once nothing; and on the page once.
        let sour = ask(json!({"inputs": {"query": "sour"}})).await;
        let again = ask(json!({"inputs": {"query": "sour"}})).await;
        // Where several processes may answer, an answer is kept for a second: too short to count on.
        let hits = u8::from(again["cache_hit"] == true);
        assert!(hits == 1 || server.app.config().is_postgres(), "{again:#}");
        let made = 5 - hits;
        ask(json!({"inputs": {"query": "Sour "}})).await;
        ask(json!({"inputs": {"query": "bitter"}, "filters": {"title": "Fig"}, "skip_cache": true})).await;
        let page = json!({"public_name": "fruits", "display_config": {"title": "Fruits", "inputs": [], "exposed_fields": ["title"]}});
        server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), page).await.ok();
        let seen = server.call("POST", "/v1/public/retrievers/fruits/execute", json!({"inputs": {"query": "sweet"}})).await.ok();
        let acts = [
            (&sour["execution_id"], json!(["click"]), 0), (&sour["execution_id"], json!(["click", "purchase"]), 4), (&seen["execution_id"], json!(["view"]), 0),
        ];
        for (execution, kinds, position) in acts {
            let body = json!({"feature_id": "doc_1", "interaction_type": kinds, "position": position, "retriever_id": id, "execution_id": execution});
            server.call_in(&namespace, "POST", "/v1/retrievers/interactions", body).await.ok();
        }

        told::a_retriever_is_told_of(&server, &namespace, &id, hits).await;
        told::its_ways_are_told_apart(&server, &namespace, &id).await;
        told::what_is_inside_is_told_of(&server, &namespace, &id, hits).await;
        told::its_signals_are_told_of(&server, &namespace, &id).await;
        told::a_namespace_is_told_of(&server, &namespace, made).await;

        // After a year the history is forgotten.
        server.app.clock().advance(401 * 86_400);
        server.call_in(&namespace, "POST", &execute, json!({"inputs": {"query": "sour"}})).await.ok();
        loupe_server::v1::retrievers::sweep(&server.app).await.unwrap();
        let left = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions";
        assert!(server.app.db().number(left, vec![]).await.unwrap() <= 1);
    }

    async fn what_failed_is_in_the_history_and_in_no_figure(server) {
        let (namespace, id) = fruits(&server).await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        let execute = format!("/v1/retrievers/{id}/execute");
        let stray = json!({"method": "cursor", "cursor": "??"});
        let failed = json!({"inputs": {"query": "sour grapes"}, "pagination": stray});
        call(&execute, failed).await.error(400, "BadRequestError");
        let adhoc = json!({"collection_identifiers": ["fruits"], "stages": [stage("limit", json!({"limit": 5}))], "inputs": {"query": "sour wine"},
            "input_schema": {"query": {"type": "text"}}, "pagination": stray});
        call("/v1/retrievers/execute", adhoc).await.error(400, "BadRequestError");
        let batch = call(&format!("{execute}/batch"), json!({"queries": [{"inputs": {"query": "sour milk"}}], "settings": {"pagination": stray}})).await.ok();
        assert_eq!((&batch["results"][0]["status"], &batch["failed"]), (&json!("failed"), &json!(1)));
        // What is refused for how it was asked has not begun.
        assert_eq!(call(&execute, json!({"inputs": {}})).await.status, 422);
        call(&execute, json!({"inputs": {"query": "sour"}})).await.ok();

        // The history is written in order: with the last, all are there.
        let told = counted(&server, &namespace, &format!("retrievers/{id}/performance"), 1).await;
        let summary = &told["summary"];
        assert_eq!((&summary["failed_count"], &summary["zero_result_count"], &summary["zero_result_queries"]), (&json!(2), &json!(0), &json!([])), "{summary:#}");
        let list = async |body: Value| call(&format!("/v1/retrievers/{id}/executions/list"), body).await.ok();
        for (status, total) in [(Value::Null, 3), (json!("completed"), 1), (json!("failed"), 2), (json!("of_nobody"), 0)] {
            let told = list(json!({"status": status})).await;
            let results = told["results"].as_array().unwrap();
            assert_eq!((&told["pagination"]["total"], results.len()), (&json!(total), total), "{told:#}");
            assert!(results.iter().all(|one| status.is_null() || one["status"] == status));
        }
        let failed = list(json!({"status": "failed"})).await["results"].as_array().unwrap().clone();
        let first = failed.iter().find(|one| one["query_summary"] == "sour grapes").expect("the first");
        let execution = first["execution_id"].as_str().unwrap();
        let path = format!("/v1/retrievers/{id}/executions/{execution}");
        let one = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert!(one["error"].as_str().is_some_and(|error| error.contains("cursor")), "{one:#}");
        assert_eq!((&one["status"], &one["total_stages"], &one["total_returned"]), (&json!("failed"), &json!(2), &json!(0)));
        let status = server.call_in(&namespace, "GET", &format!("{path}/status"), Value::Null).await.ok();
        assert_eq!((&status["status"], &status["stages_completed"]), (&json!("failed"), &json!(2)), "a cursor of another search is told once the stages ran");
        let adhoc = call("/v1/retrievers/executions/list", json!({"status": "failed"})).await.ok();
        assert_eq!((&adhoc["total"], &adhoc["results"][0]["query_summary"]), (&json!(1), &json!("sour wine")), "{adhoc:#}");

        // No figure, no signal and no suggestion is made of them.
        for of in ["slow-queries", "signals"] {
            let told = get(&server, &namespace, &format!("retrievers/{id}/{of}?limit=1000")).await;
            assert!(told.as_array().unwrap().iter().all(|one| one["execution_id"] != execution), "{told:#}");
        }
        assert_eq!(get(&server, &namespace, "namespaces/summary").await["summary"]["execution_count"], 1);
        let typed = server.call_in(&namespace, "GET", "/v1/retrievers/typeahead?q=sour", Value::Null).await.ok();
        assert_eq!(typed["recent_searches"], json!(["sour"]), "{typed:#}");
    }

    async fn words_that_are_not_finished_are_no_queries(server) {
        let (namespace, id) = fruits(&server).await;
        for query in ["s", "so", "sou", "sour", "figs"] {
            server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), json!({"inputs": {"query": query}})).await.ok();
        }
        let told = counted(&server, &namespace, &format!("retrievers/{id}/performance"), 5).await;
        let queries: Vec<&str> = told["summary"]["top_queries"].as_array().unwrap().iter().map(|one| one["query"].as_str().unwrap()).collect();
        assert_eq!(queries, ["figs", "sour"]);
    }

    async fn advice_follows_from_what_came_of_the_answers(server) {
        let (namespace, id) = fruits(&server).await;
        let path = format!("/v1/analytics/retrievers/{id}/analyze-tuning");
        let none = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
        assert_eq!((&none["recommendations"], &none["current_performance"]["execution_count"]), (&json!([]), &json!(0)));
        for number in 0..20 {
            let query = if number % 2 == 0 { "sour" } else { "bitter" };
            let made = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), json!({"inputs": {"query": query}})).await.ok();
            let body = json!({"feature_id": "doc_1", "interaction_type": ["click"], "position": 6, "retriever_id": id, "execution_id": made["execution_id"]});
            server.call_in(&namespace, "POST", "/v1/retrievers/interactions", body).await.ok();
        }
        counted(&server, &namespace, &format!("retrievers/{id}/performance"), 20).await;
        let told = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
        let advice: Vec<&str> = told["recommendations"].as_array().unwrap().iter().map(|one| one["recommendation_type"].as_str().unwrap()).collect();
        assert_eq!(advice, ["query_expand", "rerank"], "{told:#}");
        let reasons = &told["recommendations"][0];
        assert_eq!(reasons["reasoning"], "10 of 20 searches found nothing");
        assert!((0.28..0.29).contains(&reasons["confidence"].as_f64().unwrap()), "{told:#}");
    }

    async fn ingestion_is_counted(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = |data: &str| json!({"property": "text", "type": "text", "data": data});
        object(&server, &namespace, &bucket, "Bread", text("Flour and water.")).await;
        object(&server, &namespace, &bucket, "Glacier", text("A river of ice.")).await;
        let none = text("");
        let body = json!({"title": "empty", "blobs": [none]});
        server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects"), body).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");

        let place = format!("collections/{collection}");
        let overview = get(&server, &namespace, &format!("{place}/overview")).await;
        assert_eq!((&overview["total_documents"], &overview["documents_last_24h"], &overview["documents_last_7d"]), (&json!(2), &json!(2), &json!(2)), "{overview:#}");
        assert!(overview["avg_processing_time_ms"].as_f64().unwrap() > 0.0 && overview["last_indexed"].is_string(), "{overview:#}");
        assert!((overview["success_rate"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
        let growth = get(&server, &namespace, &format!("{place}/growth?group_by=month")).await;
        assert_eq!((&growth["summary"]["documents_added"], &growth["summary"]["objects_failed"], &growth["metrics"][0]["documents_added"]), (&json!(2), &json!(1), &json!(2)));
        let latency = get(&server, &namespace, &format!("{place}/latency?group_by=month")).await;
        assert_eq!((&latency["metrics"][0]["document_count"], latency["slowest_documents"].as_array().unwrap().len()), (&json!(2), 2), "{latency:#}");
        let extractors = get(&server, &namespace, &format!("{place}/extractors")).await;
        let one = &extractors["extractors"][0];
        assert_eq!((&one["extractor_name"], &one["success_count"], &one["failure_count"]), (&json!("text_extractor"), &json!(2), &json!(1)));
        let failures = get(&server, &namespace, &format!("{place}/failures")).await;
        assert_eq!((&failures["total_errors"], &failures["error_distribution"][0]["percentage"]), (&json!(1), &json!(100.0)));
        assert!(failures["error_distribution"][0]["recent_message"].as_str().unwrap().len() > 5);
        let errors = get(&server, &namespace, "namespaces/errors").await;
        assert_eq!((&errors["total_errors"], &errors["collections"][0]), (&json!(1), &json!({"resource_id": collection, "error_count": 1})));

        let health = get(&server, &namespace, &format!("buckets/{bucket}/health")).await;
        assert_eq!((&health["overall_health"], &health["total_errors"], &health["sync_health"]), (&json!("degraded"), &json!(1), &json!([])));
        let all = get(&server, &namespace, "buckets/health").await;
        let own = |health: &Value| (health["bucket_id"].clone(), health["overall_health"].clone(), health["error_breakdown"].clone());
        assert_eq!(all["buckets"].as_array().unwrap().iter().map(own).collect::<Vec<_>>(), [own(&health)]);
        let storage = get(&server, &namespace, &format!("buckets/{bucket}/storage?group_by=week")).await;
        let last = storage["metrics"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["object_count"], &last["total_size_bytes"]), (&json!(3), &storage["summary"]["total_size_bytes"]));
        assert!(last["total_size_bytes"].as_i64().unwrap() > 20, "{storage:#}");
        let uploads = get(&server, &namespace, &format!("buckets/{bucket}/upload-performance")).await;
        assert_eq!((&uploads["metrics"], &uploads["summary"]["upload_count"]), (&json!([]), &json!(0)));
        for figures in ["sync-performance", "sync-comparison"] {
            get(&server, &namespace, &format!("buckets/{bucket}/{figures}")).await;
        }
    }

    async fn what_is_used_is_told_with_its_cost(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let nothing = get(&server, &namespace, &format!("buckets/{bucket}/usage")).await;
        assert_eq!((&nothing["metrics"], &nothing["total_credits"], &nothing["cost_breakdown"]["storage_percent"]), (&json!([]), &json!(0), &json!(0.0)), "{nothing:#}");
        let text = |data: &str| json!({"property": "text", "type": "text", "data": data});
        object(&server, &namespace, &bucket, "Bread", text("Flour and water.")).await;
        object(&server, &namespace, &bucket, "Glacier", text("A river of ice.")).await;
        assert_eq!(process(&server, &namespace, &bucket).await["status"], "COMPLETED");
        let filter = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let search = json!({"collection_identifiers": ["documents"], "stages": [filter], "inputs": {}, "input_schema": {}});
        server.call_in(&namespace, "POST", "/v1/retrievers/execute", search).await.ok();

        server.app.clock().advance(10 * 86_400);
        let bytes = get(&server, &namespace, &format!("buckets/{bucket}/storage")).await["summary"]["total_size_bytes"].as_f64().unwrap();
        let used = get(&server, &namespace, &format!("buckets/{bucket}/usage?group_by=day")).await;
        let sum = |member: &str| -> f64 { used["metrics"].as_array().unwrap().iter().map(|one| one[member].as_f64().unwrap()).sum() };
        // Ten days, and the hour that had begun.
        let hours = sum("storage_gb_hours") * 1e9 / bytes;
        assert!((240.0..241.1).contains(&hours), "{hours}: {used:#}");
        assert_eq!((sum("upload_operations"), sum("sync_operations"), &used["total_credits"]), (2.0, 0.0, &json!(1)), "{used:#}");
        let storage = sum("storage_gb_hours") / 720.0 * 0.33;
        let total = used["total_cost_usd"].as_f64().unwrap();
        assert!((total - storage - 2e-4).abs() < 1e-9 && (sum("estimated_cost_usd") - total).abs() < 1e-9, "{used:#}");
        let shares = &used["cost_breakdown"];
        assert!((shares["storage_percent"].as_f64().unwrap() + shares["other_percent"].as_f64().unwrap() - 100.0).abs() < 1e-6, "{shares:#}");
        let before = get(&server, &namespace, &format!("buckets/{bucket}/usage?end_date=2020-01-01")).await;
        assert_eq!((&before["metrics"], &before["total_cost_usd"]), (&json!([]), &json!(0.0)));

        // The same of the namespace, with its search: the history is written behind the answer.
        let began = Instant::now();
        let summary = loop {
            let summary = get(&server, &namespace, "usage/summary").await;
            if summary["search"]["queries"] == 1 {
                break summary;
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{summary:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((&summary["ingestion"]["objects"], &summary["ingestion"]["documents"], &summary["storage"]["objects"]), (&json!(2), &json!(2), &json!(2)), "{summary:#}");
        assert!((summary["total_cost_usd"].as_f64().unwrap() - total - 2e-6).abs() < 1e-9, "{summary:#}");
        let other = server.namespace("empty").await;
        let none = get(&server, &other, "usage/summary").await;
        assert_eq!((&none["ingestion"]["objects"], &none["search"]["queries"], &none["total_credits"]), (&json!(0), &json!(0), &json!(0)));

        // An answer has an end.
        server.app.clock().advance(200 * 86_400);
        let path = format!("/v1/analytics/buckets/{bucket}/usage?group_by=hour&start_date=2020-01-01");
        server.call_in(&namespace, "GET", &path, Value::Null).await.invalid(&["query", "group_by"], "value_error");
    }

    async fn what_is_asked_wrongly_is_refused(server) {
        let (namespace, id) = fruits(&server).await;
        let ask = async |path: &str| server.call_in(&namespace, "GET", &format!("/v1/analytics/{path}"), Value::Null).await;
        for (path, name, kind) in [
            (format!("retrievers/{id}/performance?group_by=year"), "group_by", "enum"),
            (format!("retrievers/{id}/performance?source=moon"), "source", "enum"),
            (format!("retrievers/{id}/performance?start_date=soon"), "start_date", "datetime_parsing"),
            (format!("retrievers/{id}/performance?start_date=2026-02-02&end_date=2026-01-01"), "start_date", "value_error"),
            (format!("retrievers/{id}/stages?hours=721"), "hours", "range"),
            (format!("retrievers/{id}/signals?limit=0"), "limit", "range"),
            ("namespaces/queries/slow?latency_threshold_ms=99".into(), "latency_threshold_ms", "range"),
            ("namespaces/summary?days=91".into(), "days", "range"),
            ("collections/fruits/growth?group_by=minute".into(), "group_by", "enum"),
            ("usage/summary?start_date=soon".into(), "start_date", "datetime_parsing"),
        ] {
            ask(&path).await.invalid(&["query", name], kind);
        }
        for path in ["retrievers/ret_none/performance", "collections/none/overview", "buckets/none/health", "clusters/none/failures"] {
            ask(path).await.error(404, "NotFoundError");
        }
        // Nothing of another organization is counted.
        let other = other_organization(&server).await;
        let theirs = server.request("GET", &format!("/v1/analytics/retrievers/{id}/performance")).bearer_auth(&other.key).header("x-namespace", &namespace);
        Server::send(theirs).await.error(404, "NotFoundError");
    }
}
