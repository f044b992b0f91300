//! Ways to ask beside the execution of one retriever: without a retriever, several questions at once, while typing; what
//! was marked, and where the time went.

use serde_json::{Value, json};

use crate::{
    both,
    harness::Server,
    stages::{collection, execute, retriever, stage},
};

fn films() -> [Value; 3] {
    [
        json!({"title": "M", "content": "a murderer in the city", "tags": ["crime"], "owner": "ann"}),
        json!({"title": "Nosferatu", "content": "a vampire comes by ship", "tags": ["night", "ship stories"]}),
        json!({"title": "Faust", "content": "a bet with the devil", "tags": ["night"]}),
    ]
}

fn only(decade: &str) -> Vec<Value> {
    vec![
        stage(
            "attribute_filter",
            json!({"field": "tags", "operator": "contains", "value": decade}),
        ),
        stage(
            "sort_attribute",
            json!({"field": "title", "direction": "asc"}),
        ),
    ]
}

/// An operation whose answer comes a moment after what it tells of.
async fn soon(server: &Server, namespace: &str, path: &str) -> Value {
    for _ in 0..1_200 {
        let answer = server.call_in(namespace, "GET", path, Value::Null).await;
        if answer.status == 200 {
            return answer.body;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{path} did not come");
}

both! {
    async fn stages_run_without_a_retriever(server) {
        let namespace = server.namespace("adhoc").await;
        collection(&server, &namespace, "films", &films()).await;
        let ask = json!({"collection_identifiers": ["films"], "stages": only("{{INPUT.tag}}"), "input_schema": {"tag": {"type": "text", "required": true}},
            "inputs": {"tag": "night"}, "limit": 1});
        let answer = server.call_in(&namespace, "POST", "/v1/retrievers/execute", ask.clone()).await.ok();
        assert_eq!((&answer["documents"][0]["title"], &answer["retriever_id"]), (&json!("Faust"), &json!("")), "{answer:#}");
        let id = answer["execution_id"].as_str().unwrap();
        let told = soon(&server, &namespace, &format!("/v1/retrievers/executions/{id}")).await;
        assert_eq!((&told["execution_mode"], &told["stages_completed"], &told["total_stages"], &told["total_returned"]),
            (&json!("adhoc"), &json!(2), &json!(2), &json!(1)), "{told:#}");
        assert!(told["inputs"].as_str().unwrap().contains("night") && told["timestamp"].is_string());
        let list = async |body: Value| server.call_in(&namespace, "POST", "/v1/retrievers/executions/list", body).await;
        let all = list(json!({})).await.ok();
        assert_eq!((all["results"].as_array().unwrap().len(), &all["total"], &all["results"][0]["execution_id"]), (1, &json!(1), &json!(id)));
        let counted = list(json!({"count_only": true, "status": "completed"})).await.ok();
        assert_eq!((&counted["results"], &counted["total"]), (&json!([]), &json!(1)));
        assert_eq!(list(json!({"status": "failed"})).await.ok()["total"], 0);
        assert_eq!(list(json!({"end_time": "2020-01-01T00:00:00Z"})).await.ok()["total"], 0);
        list(json!({"start_time": "yesterday"})).await.invalid(&["body", "start_time"], "value_error");
        // The same is asked of the stages as of a retriever's, and nothing of other namespaces is reached.
        let wrong = json!({"collection_identifiers": ["films"], "stages": [stage("limit", json!({"limit": 0}))]});
        server.call_in(&namespace, "POST", "/v1/retrievers/execute", wrong).await.invalid(&["body", "stages", "0", "config", "parameters", "limit"], "out_of_range");
        let other = server.namespace("other").await;
        server.call_in(&other, "POST", "/v1/retrievers/execute", ask.clone()).await.error(404, "NotFoundError");
        server.call_in(&other, "GET", &format!("/v1/retrievers/executions/{id}"), Value::Null).await.error(404, "NotFoundError");
        let mut streamed = ask;
        streamed["stream"] = json!(true);
        let request = server.request("POST", "/v1/retrievers/execute").bearer_auth(&server.key).header("X-Namespace", &namespace).json(&streamed);
        let text = request.send().await.unwrap().text().await.unwrap();
        assert!(text.contains("stage_start") && text.contains("execution_complete"), "{text}");
        // The last line tells what an answer in one piece tells: here that there is more, and what was left out of it.
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["status"], &last["pagination"]["method"], &last["pagination"]["total"]),
            (&json!("completed"), &json!("cursor"), &answer["pagination"]["total"]), "{last:#}");
        streamed["stages"] = json!([stage("rerank", json!({"query": "night", "document_field": "title", "inference_name": "of_nobody"}))]);
        let mut whole = streamed.clone();
        whole["stream"] = json!(false);
        let whole = server.call_in(&namespace, "POST", "/v1/retrievers/execute", whole).await.ok();
        let told = whole["warnings"].as_array().unwrap().len() + whole["degraded"].as_array().unwrap().len();
        assert_eq!(told, 1, "{whole:#}");
        let request = server.request("POST", "/v1/retrievers/execute").bearer_auth(&server.key).header("X-Namespace", &namespace).json(&streamed);
        let text = request.send().await.unwrap().text().await.unwrap();
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        let same = |member: &str| last.get(member).cloned().unwrap_or(json!([])) == whole[member];
        assert!(same("warnings") && same("degraded"), "{last:#}");
    }

    async fn several_questions_are_asked_at_once(server) {
        let namespace = server.namespace("batch").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let body = json!({"retriever_name": "by tag", "collection_identifiers": [films], "stages": only("{{INPUT.tag}}"), "input_schema": {"tag": {"type": "text", "required": true}}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/retrievers/{id}/execute/batch");
        let ask = json!({"queries": [{"inputs": {"tag": "night"}}, {"inputs": {}}, {"inputs": {"tag": "night"}, "filters": {"title": "Faust"}}],
            "settings": {"limit": 5}, "concurrency": 2});
        let answer = server.call_in(&namespace, "POST", &path, ask).await.ok();
        assert_eq!((&answer["total"], &answer["succeeded"], &answer["failed"]), (&json!(3), &json!(2), &json!(1)), "{answer:#}");
        let found = |place: usize| answer["results"][place]["documents"].as_array().unwrap().len();
        assert_eq!((found(0), found(1), found(2)), (2, 0, 1));
        assert_eq!((&answer["results"][1]["status"], &answer["results"][2]["index"]), (&json!("failed"), &json!(2)));
        let many: Vec<Value> = (0..17).map(|_| json!({"inputs": {"tag": "night"}})).collect();
        assert_eq!(server.call_in(&namespace, "POST", &path, json!({"queries": many})).await.status, 422);
        let one = json!({"inputs": {"tag": "night"}});
        server.call_in(&namespace, "POST", &path, json!({"queries": [one], "settings": {"top": 1}})).await.invalid(&["body", "settings"], "value_error");
        server.call_in(&namespace, "POST", &path, json!({"queries": [one], "stream": true})).await.invalid(&["body", "stream"], "value_error");
        server.call_in(&namespace, "POST", "/v1/retrievers/ret_of_nobody/execute/batch", json!({"queries": [one]})).await.error(404, "NotFoundError");
    }

    async fn each_of_several_answers_tells_what_it_lacks(server) {
        let namespace = server.namespace("lacking").await;
        let near = collection(&server, &namespace, "near", &films()).await;
        let away = collection(&server, &namespace, "away", &films()).await;
        let mut stages = only("night");
        stages.push(stage("web_scrape", json!({"url": "http://127.0.0.3:8080/", "on_error": "skip"})));
        let body = json!({"retriever_name": "both", "collection_identifiers": [near, away], "stages": stages});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let put_away = json!({"lifecycle_state": "archived", "async_transition": false});
        server.call_in(&namespace, "PATCH", &format!("/v1/collections/{away}/lifecycle"), put_away).await.ok();
        let alone = execute(&server, &namespace, &id, json!({})).await;
        let path = format!("/v1/retrievers/{id}/execute/batch");
        let answer = server.call_in(&namespace, "POST", &path, json!({"queries": [{"inputs": {}}, {"inputs": {}}]})).await.ok();
        assert!(alone["warnings"].to_string().contains("'away' is archived"), "{alone:#}");
        assert_ne!(alone["degraded"], json!([]), "{alone:#}");
        for one in answer["results"].as_array().unwrap() {
            assert_eq!((&one["warnings"], &one["degraded"]), (&alone["warnings"], &alone["degraded"]), "{one:#}");
        }
    }

    async fn an_execution_tells_how_far_it_came_and_where_its_time_went(server) {
        let namespace = server.namespace("profile").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let id = retriever(&server, &namespace, &films, only("night")).await;
        let answer = execute(&server, &namespace, &id, json!({})).await;
        let path = format!("/v1/retrievers/{id}/executions/{}", answer["execution_id"].as_str().unwrap());
        let status = soon(&server, &namespace, &format!("{path}/status")).await;
        assert_eq!((&status["status"], &status["stages_completed"], &status["total_stages"]), (&json!("completed"), &json!(2), &json!(2)), "{status:#}");
        let profile = soon(&server, &namespace, &format!("{path}/profile")).await;
        let stages = profile["stages"].as_array().unwrap();
        assert_eq!((stages.len(), &profile["slowest_stage"]), (2, &stages[0]["stage_name"]), "{profile:#}");
        assert!(stages[0]["duration_ms"].as_f64() >= stages[1]["duration_ms"].as_f64());
        assert!(stages.iter().all(|one| (0.0..=1.0).contains(&one["share"].as_f64().unwrap())));
        let other = retriever(&server, &namespace, &films, only("crime")).await;
        let stray = path.replace(&id, &other);
        server.call_in(&namespace, "GET", &format!("{stray}/profile"), Value::Null).await.error(404, "NotFoundError");
    }

    async fn what_is_typed_is_completed(server) {
        let namespace = server.namespace("typing").await;
        let films = collection(&server, &namespace, "nights", &films()).await;
        let ask = json!({"collection_identifiers": [films], "stages": only("night"), "inputs": {"query": "nights at sea"}, "input_schema": {"query": {"type": "text"}}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers/execute", ask).await.ok()["execution_id"].as_str().unwrap().to_owned();
        soon(&server, &namespace, &format!("/v1/retrievers/executions/{id}")).await;
        let typed = async |query: &str| server.call_in(&namespace, "GET", &format!("/v1/retrievers/typeahead?{query}"), Value::Null).await;
        let told = typed("q=Nig").await.ok();
        assert_eq!(told["values"], json!([{"field": "tags", "value": "night", "count": 2}]), "{told:#}");
        assert_eq!(told["collections"][0]["collection_name"], "nights");
        assert_eq!(told["suggestions"], json!(["nights at sea", "night"]));
        // The beginning of any word, not what is in the middle of one.
        assert_eq!(typed("q=stories").await.ok()["values"][0]["value"], "ship stories");
        assert_eq!(typed("q=ories").await.ok()["values"], json!([]));
        assert_eq!(typed("q=nos&fields=title").await.ok()["values"][0]["value"], "Nosferatu");
        assert_eq!(typed("q=%20").await.status, 422);
        assert_eq!(typed("q=a&limit=51").await.status, 422);
        let other = server.namespace("typing elsewhere").await;
        let elsewhere = server.call_in(&other, "GET", "/v1/retrievers/typeahead?q=nig", Value::Null).await.ok();
        assert_eq!((&elsewhere["values"], &elsewhere["recent_searches"]), (&json!([]), &json!([])));
    }

    async fn words_of_the_query_are_marked_where_asked(server) {
        let namespace = server.namespace("marked").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let body = json!({"retriever_name": "all", "collection_identifiers": [films], "stages": only("night"), "input_schema": {"query": {"type": "text"}}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/retrievers/{id}/execute");
        let ask = async |more: bool| server.call_in(&namespace, "POST", &path, json!({"inputs": {"query": "Vampire"}, "return_highlights": more})).await.ok();
        let answer = ask(true).await;
        let nosferatu = answer["documents"][1]["document_id"].as_str().unwrap();
        assert_eq!(answer["highlights"], json!({nosferatu: {"content": [{"text": "a ", "marked": false}, {"text": "vampire", "marked": true}, {"text": " comes by ship", "marked": false}]}}));
        // A kept answer is one of the same question, with marks and without.
        // Where several processes may answer, one is kept for a second: too short to count on.
        let again = ask(true).await;
        assert!(again["cache_hit"] == true || server.app.config().is_postgres(), "{again:#}");
        assert_eq!((&again["highlights"], ask(false).await.get("highlights")), (&answer["highlights"], None));
        let publish = json!({"public_name": "marked-films", "display_config": {"title": "Films", "inputs": [], "exposed_fields": ["title"]}});
        let published = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), publish).await;
        assert_eq!(published.status, 200, "{:#}", published.body);
        let asked = json!({"inputs": {"query": "vampire nosferatu"}, "return_highlights": true});
        let public = Server::send(server.request("POST", "/v1/public/retrievers/marked-films/execute").json(&asked)).await.ok();
        // Only exposed fields are told.
        assert_eq!(public["highlights"], json!({nosferatu: {"title": [{"text": "Nosferatu", "marked": true}]}}), "{public:#}");
    }

    async fn members_that_a_page_does_not_have_are_refused(server) {
        let namespace = server.namespace("paging").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let id = retriever(&server, &namespace, &films, only("night")).await;
        let adhoc = json!({"collection_identifiers": ["films"], "stages": only("night"), "inputs": {}});
        for (page, stray, accepted) in [
            (json!({"method": "offset", "cursor": "x"}), "cursor", json!(["method", "page_size", "page_number"])),
            (json!({"method": "cursor", "page": 2}), "page", json!(["method", "limit", "cursor"])),
            (json!({"method": "scroll", "after": {}}), "after", json!(["method", "limit", "scroll_id", "scroll_ttl"])),
            (json!({"method": "keyset", "size": 2}), "size", json!(["method", "limit", "after"])),
        ] {
            let mut adhoc = adhoc.clone();
            adhoc["pagination"] = page.clone();
            for (path, body) in [(format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}, "pagination": page})), ("/v1/retrievers/execute".into(), adhoc)] {
                let fault = server.call_in(&namespace, "POST", &path, body).await.invalid(&["body", "pagination", stray], "extra_forbidden");
                assert_eq!(fault["ctx"]["accepted"], accepted, "{fault:#}");
            }
            let several = json!({"queries": [{"inputs": {}}], "settings": {"pagination": page}});
            let path = format!("/v1/retrievers/{id}/execute/batch");
            server.call_in(&namespace, "POST", &path, several).await.invalid(&["body", "settings", "pagination", stray], "extra_forbidden");
        }
    }

    async fn stages_without_a_retriever_and_streams_explain_themselves(server) {
        let namespace = server.namespace("explained").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        // What no stage has read has no way through them.
        let read = || vec![stage("limit", json!({"limit": 100})), stage("sort_attribute", json!({"field": "title", "direction": "asc"}))];
        let mut ask = json!({"collection_identifiers": ["films"], "stages": read(), "inputs": {}, "explain": true});
        let answer = server.call_in(&namespace, "POST", "/v1/retrievers/execute", ask.clone()).await.ok();
        let ways = answer["diagnostics"]["ranking"].as_object().unwrap();
        assert_eq!(ways.len(), 3, "{answer:#}");
        assert_eq!(answer["explain_plan"]["total_estimated_stages"], 2, "{answer:#}");
        ask["stream"] = json!(true);
        let id = retriever(&server, &namespace, &films, read()).await;
        for (path, body) in [("/v1/retrievers/execute".to_owned(), ask), (format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}, "explain": true, "stream": true}))] {
            let request = server.request("POST", &path).bearer_auth(&server.key).header("X-Namespace", &namespace).json(&body);
            let text = request.send().await.unwrap().text().await.unwrap();
            let last = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap();
            let last: Value = serde_json::from_str(last).unwrap();
            assert_eq!((&last["diagnostics"], &last["explain_plan"]["execution_plan"]), (&answer["diagnostics"], &answer["explain_plan"]["execution_plan"]), "{last:#}");
        }
    }

    async fn no_time_is_none(server) {
        let namespace = server.namespace("timeless").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let body = json!({"retriever_name": "timeless", "collection_identifiers": [films], "stages": only("night"), "budget_limits": {"max_time_ms": 0}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let refused = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}})).await;
        assert_eq!(refused.error(403, "QuotaExceededError")["error"]["code"], "quota_exceeded");
    }

    async fn cursors_and_scrolls_tell_no_row_twice(server) {
        let namespace = server.namespace("steady").await;
        let films = collection(&server, &namespace, "films", &films()).await;
        let sorted = || stage("sort_attribute", json!({"field": "title", "direction": "asc"}));
        // The store lists the one; stages have read the other.
        let listed = retriever(&server, &namespace, &films, vec![sorted()]).await;
        let read = retriever(&server, &namespace, &films, vec![stage("limit", json!({"limit": 100})), sorted()]).await;
        let page = async |id: &str, pagination: Value| {
            let body = json!({"inputs": {}, "pagination": pagination});
            server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), body).await.ok()
        };
        let first = |answer: &Value| answer["documents"][0]["title"].as_str().unwrap().to_owned();
        let mut number = 9;
        for id in [&listed, &read] {
            for (method, told, sent) in [("cursor", "next_cursor", "cursor"), ("scroll", "scroll_id", "scroll_id")] {
                let one = page(id, json!({"method": method, "limit": 2})).await;
                let last = one["documents"][1]["title"].as_str().unwrap().to_owned();
                let next = one["pagination"][told].clone();
                // It comes before all others.
                let path = format!("/v1/collections/{films}/documents");
                server.call_in(&namespace, "POST", &path, json!({"title": format!("A{number}")})).await.ok();
                number -= 1;
                let two = page(id, json!({"method": method, "limit": 2, sent: next})).await;
                assert!(first(&two) > last, "{method}: {two:#}");
            }
        }
    }
}
