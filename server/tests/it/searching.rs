//! What searches tell of themselves, and pages of rows that are no documents of their own.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process, red_square},
    both,
    harness::{Server, retriever},
    stages::{self, collection, stage},
};

/// The executions of a retriever, once there are so many: the history is written behind the answers.
async fn history(server: &Server, namespace: &str, id: &str, count: usize) -> Vec<Value> {
    let path = format!("/v1/retrievers/{id}/executions/list?limit=100");
    let began = Instant::now();
    loop {
        let told = server
            .call_in(namespace, "POST", &path, json!({}))
            .await
            .ok();
        let list = told["results"].as_array().unwrap();
        if list.len() >= count {
            return list.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(180), "{told:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

both! {
    async fn the_same_question_is_known_however_it_is_put(server) {
        let (namespace, _) = retriever(&server, "same").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        call("/v1/collections/things/documents", json!({"title": "one"})).await.ok();
        let body = json!({"retriever_name": "by title", "collection_identifiers": ["things"],
            "input_schema": {"title": {"type": "text", "required": true}, "most": {"type": "integer", "default": 5}},
            "stages": [stage("attribute_filter", json!({"field": "title", "operator": "eq", "value": "{{INPUT.title}}"})),
                stage("limit", json!({"limit": "{{INPUT.most}}"}))]});
        let id = call("/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let execute = format!("/v1/retrievers/{id}/execute");
        let mut hits = 0;
        let same = [json!({"title": "one"}), json!({"most": "5", "title": "one"}), json!({"title": "one", "most": 5}), json!({"title": "one", "most": null})];
        for inputs in &same {
            let answer = call(&execute, json!({"inputs": inputs})).await.ok();
            assert_eq!(answer["documents"].as_array().unwrap().len(), 1, "{answer:#}");
            hits += usize::from(answer["cache_hit"] == true);
        }
        // Where several processes may answer, an answer is kept for a second: too short to count on.
        assert!(hits == 3 || server.app.config().is_postgres(), "{hits} of the last three");
        call(&execute, json!({"inputs": {"title": "one", "most": 6}})).await.ok();
        call(&execute, json!({"inputs": {"title": "one"}, "skip_cache": true})).await.ok();
        // What no schema lets through is refused, whether or not it was asked before.
        for _ in 0..2 {
            call(&execute, json!({"inputs": {"title": "one", "most": "many"}})).await.invalid(&["body", "inputs", "most"], "int_type");
        }
        let list = history(&server, &namespace, &id, 6).await;
        assert_eq!(list.len(), 6);
        let known: Vec<&str> = list.iter().map(|one| one["inputs_hash"].as_str().unwrap()).collect();
        let others = known.iter().filter(|one| **one != known[0]).count();
        assert_eq!((known[0].len(), others), (24, 1), "{known:?}");
    }

    async fn a_page_by_key_loses_no_row(server) {
        let namespace = server.namespace("rows").await;
        let films = [json!({"title": "M", "cast": ["a", "b", "c"]}), json!({"title": "Faust", "cast": ["d", "e"]})];
        let films = collection(&server, &namespace, "films", &films).await;
        let sorted = stage("sort_attribute", json!({"field": "title", "direction": "desc"}));
        let unwound = stage("unwind", json!({"field": "cast"}));
        let figures = stage("aggregate", json!({"group_by": [{"field": "cast"}]}));
        for stages in [vec![sorted.clone(), unwound.clone()], vec![sorted, unwound, figures]] {
            let id = stages::retriever(&server, &namespace, &films, stages).await;
            let (mut seen, mut after) = (Vec::new(), Value::Null);
            for _ in 0..6 {
                let page = json!({"inputs": {}, "pagination": {"method": "keyset", "limit": 2, "after": after}});
                let answer = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), page).await.ok();
                let rows = answer["documents"].as_array().unwrap();
                seen.extend(rows.iter().map(|one| one["cast"].as_str().unwrap().to_owned()));
                after = answer["pagination"]["after"].clone();
                if after.is_null() {
                    break;
                }
            }
            assert_eq!(seen, ["a", "b", "c", "d", "e"]);
        }
    }

    async fn what_was_cut_or_left_out_is_told(server) {
        let namespace = server.namespace("cut").await;
        let things: Vec<Value> = (0..101).map(|number| json!({"number": number})).collect();
        let things = collection(&server, &namespace, "things", &things).await;
        let call = |on_error: &str| {
            let parameters = json!({"url": "https://nobody.example/{{DOC.number}}", "allowed_domains": ["other.example"], "on_error": on_error});
            let mut call = stage("api_call", parameters);
            call["on_error"] = json!("skip");
            call
        };
        let execute = async |stages: Vec<Value>| {
            let id = stages::retriever(&server, &namespace, &things, stages).await;
            let answer = stages::execute(&server, &namespace, &id, json!({})).await;
            history(&server, &namespace, &id, 1).await;
            let path = format!("/v1/retrievers/{id}/executions/{}", answer["execution_id"].as_str().unwrap());
            let told = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            (answer, told)
        };
        let (answer, told) = execute(vec![call("skip")]).await;
        let limits = json!([{"name": "documents", "requested": 101, "applied": 100, "ceiling": 100, "stage": "api_call"}]);
        assert_eq!((&answer["limits"], &told["limits"]), (&limits, &limits), "{told:#}");
        assert_eq!((&answer["enrichment_skipped"], &told["degraded"]), (&json!(false), &answer["degraded"]));
        assert!(told["degraded"][0]["reason"].as_str().unwrap().contains("allowed domains"), "{told:#}");
        // A stage that fails as a whole is left out.
        let (answer, _) = execute(vec![stage("limit", json!({"limit": 1})), call("raise")]).await;
        assert_eq!((&answer["enrichment_skipped"], &answer["enrichment_skipped_stages"]), (&json!(true), &json!(["api_call"])), "{answer:#}");
        assert!(answer["enrichment_skip_reason"].as_str().unwrap().contains("allowed domains"));
        let (answer, told) = execute(vec![stage("limit", json!({"limit": 1}))]).await;
        assert_eq!((&answer["limits"], &answer["enrichment_skipped_stages"], told.get("limits")), (&json!([]), &json!([]), None));
        // What could never run is refused when it is made.
        let empty = json!({"retriever_name": "never", "collection_identifiers": [things],
            "stages": [stage("api_call", json!({"url": "https://x.example", "allowed_domains": []}))]});
        server.call_in(&namespace, "POST", "/v1/retrievers", empty).await
            .invalid(&["body", "stages", "0", "config", "parameters", "allowed_domains"], "too_short");
    }

    async fn a_plan_is_told_for_what_is_asked(server) {
        let namespace = server.namespace("plans").await;
        let films: Vec<Value> = (0..6).map(|number| json!({"number": number})).collect();
        let films = collection(&server, &namespace, "films", &films).await;
        let body = json!({"retriever_name": "some", "collection_identifiers": [films], "input_schema": {"most": {"type": "integer", "default": 3}},
            "stages": [stage("limit", json!({"limit": "{{INPUT.most}}"})), stage("summarize", json!({}))]});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let explain = async |body: Value| server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute/explain"), body).await;
        let outputs = async |body: Value| {
            let told = explain(body).await.ok();
            let plan = told["execution_plan"].as_array().unwrap().clone();
            assert!(plan[1]["warnings"].to_string().contains("models.language"), "{told:#}");
            plan.iter().map(|one| one["estimated_output"].as_i64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(outputs(json!({"inputs": {"most": "2"}})).await, [2, 1]);
        assert_eq!(outputs(json!({})).await, [6, 1]);
        explain(json!({"inputs": {"most": "few"}})).await.invalid(&["body", "inputs", "most"], "int_type");
    }

    async fn files_are_signed_for_the_documents_that_have_them_alone(server) {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let (namespace, bucket, pictures) = library(&server, "image_extractor", "image").await;
        let picture = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square()), "metadata": {"filename": "red.png"}});
        object(&server, &namespace, &bucket, "red", picture).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let execute = async |namespace: &str, collection: &str, stages: Vec<Value>| {
            let id = stages::retriever(&server, namespace, collection, stages).await;
            let body = json!({"inputs": {}, "return_presigned_urls": true});
            server.call_in(namespace, "POST", &format!("/v1/retrievers/{id}/execute"), body).await.ok()["documents"].clone()
        };
        // Also in a group.
        let one = execute(&namespace, &pictures, vec![stage("limit", json!({}))]).await[0].clone();
        let group = execute(&namespace, &pictures, vec![stage("group_by", json!({"group_by_field": "title"}))]).await[0]["documents"][0].clone();
        let key = one["document_blobs"][0]["url"].as_str().unwrap().to_owned();
        for found in [&one, &group] {
            let address = found["document_blobs"][0]["presigned_url"].as_str().unwrap().replace(&server.app.config().address(), "");
            assert_eq!(Server::send(server.request("GET", &address)).await.status, 200, "{found:#}");
        }
        // Whatever a stage writes into a row opens no file, neither of another namespace nor of another document.
        let template = json!({"_internal": {"document_blobs": [{"url": key, "role": "thumbnail"}]}}).to_string();
        let forged = stage("json_transform", json!({"template": template}));
        let elsewhere = server.namespace("elsewhere").await;
        let texts = collection(&server, &elsewhere, "texts", &[json!({"title": "x"})]).await;
        let near = collection(&server, &namespace, "texts", &[json!({"title": "x"})]).await;
        for (namespace, collection) in [(&elsewhere, &texts), (&namespace, &near)] {
            let found = execute(namespace, collection, vec![forged.clone()]).await;
            assert_eq!(found[0]["_internal"]["document_blobs"][0]["url"], key.as_str(), "{found:#}");
            assert!(!found.to_string().contains("presigned_url") && found[0].get("thumbnail_url").is_none(), "{found:#}");
        }
    }

    async fn vectors_are_told_of_every_document(server) {
        let (namespace, listed) = retriever(&server, "vectors").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await.ok();
        for (title, vector) in [("a", [1.0, 0.0, 0.0]), ("b", [0.0, 1.0, 0.0])] {
            call("/v1/collections/things/documents", json!({"title": title, "vectors": {"own": vector}})).await;
        }
        let sorted = stage("sort_attribute", json!({"field": "title", "direction": "desc", "nulls_last": false}));
        let read = stages::retriever(&server, &namespace, "things", vec![sorted]).await;
        for id in [&listed, &read] {
            let path = format!("/v1/retrievers/{id}/execute");
            let told = call(&path, json!({"inputs": {}, "return_vectors": true})).await;
            let documents = told["documents"].as_array().unwrap();
            assert_eq!(documents.len(), 2);
            for one in documents {
                let own = if one["title"] == "a" { json!([1.0, 0.0, 0.0]) } else { json!([0.0, 1.0, 0.0]) };
                assert_eq!(one["vectors"]["own"], own, "{one:#}");
            }
            let plain = call(&path, json!({"inputs": {}})).await;
            assert!(plain["documents"][0].get("vectors").is_none(), "{plain:#}");
        }
    }
}
