//! Executions as a list, as pages by key, and as documents of another collection.

use std::time::{Duration, Instant};

use loupe_server::v1::retrievers::RETRIEVERS;
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, retriever},
    stages::{self, stage},
};

const THINGS: &str = "/v1/collections/things/documents";
const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

async fn with_key(server: &Server, key: &str, namespace: &str, path: &str, body: Value) -> Answer {
    let request = server.request("POST", path).bearer_auth(key);
    Server::send(request.header("x-namespace", namespace).json(&body)).await
}

/// One member of every result.
fn members<'a>(told: &'a Value, list: &str, member: &str) -> Vec<&'a Value> {
    let rows = told[list].as_array().unwrap();
    rows.iter().map(|one| &one[member]).collect()
}

both! {
    async fn executions_are_filtered_and_sorted(server) {
        let (namespace, id) = retriever(&server, "log").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        for title in ["one", "two", "three"] {
            call(THINGS, json!({"title": title, "vectors": {"own": [1.0, 0.0, 0.0]}})).await.ok();
        }
        let execute = format!("/v1/retrievers/{id}/execute");
        for (query, limit) in [("red figs", 2), ("lemons", 1), ("green figs", 3)] {
            call(&execute, json!({"inputs": {"query": query}, "limit": limit})).await.ok();
        }
        let stray = json!({"method": "cursor", "cursor": "??"});
        call(&execute, json!({"inputs": {"query": "pears"}, "pagination": stray})).await.error(400, "BadRequestError");
        let path = format!("/v1/retrievers/{id}/executions/list");
        let list = async |query: &str, body: Value| call(&format!("{path}{query}"), body).await;
        // The history is written behind the answers.
        let began = Instant::now();
        let all = loop {
            let all = list("", json!({})).await.ok();
            if all["pagination"]["total"] == 4 {
                break all;
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{all:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let asked = async |body: Value| {
            let told = list("", body).await.ok();
            let asked = members(&told, "results", "query_summary");
            assert_eq!(told["pagination"]["total"], asked.len(), "{told:#}");
            asked.into_iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let newest = ["pears", "green figs", "lemons", "red figs"];
        let by = |field: &str, direction: &str| json!({"sorts": [{"field": field, "direction": direction}]});
        assert_eq!(asked(by("created_at", "desc")).await, newest);
        assert_eq!(asked(by("created_at", "asc")).await, ["red figs", "lemons", "green figs", "pears"]);
        assert_eq!(asked(by("total_returned", "desc")).await, ["green figs", "red figs", "lemons", "pears"]);
        let filter = |field: &str, operator: &str, value: Value| json!({"filters": {"AND": [{"field": field, "operator": operator, "value": value}]}});
        assert_eq!(asked(filter("total_returned", "gte", json!(2))).await, ["green figs", "red figs"]);
        assert_eq!(asked(filter("query_summary", "contains", json!("FIGS"))).await, ["green figs", "red figs"]);
        assert_eq!(asked(filter("created_at", "gt", all["results"][2]["created_at"].clone())).await, ["pears", "green figs"]);
        assert_eq!(asked(json!({"filters": {"status": "failed"}})).await, ["pears"]);
        assert_eq!(asked(json!({"filters": {"status": "failed"}, "status": "completed"})).await, Vec::<String>::new());
        // A page of what matches knows how much that is.
        let mut both = filter("total_returned", "gte", json!(1));
        both["sorts"] = json!([{"field": "query_summary"}]);
        let page = list("?limit=1&offset=1", both).await.ok();
        assert_eq!(members(&page, "results", "query_summary"), ["lemons"]);
        assert_eq!(page["pagination"], json!({"total": 3, "limit": 1, "offset": 1, "has_next": true}));

        let bad = async |body: Value, loc: &[&str], kind: &str| list("", body).await.invalid(loc, kind);
        bad(filter("inputs.query", "eq", json!("x")), &["body", "filters", "inputs.query"], "unknown_field").await;
        bad(by("inputs", "asc"), &["body", "sorts", "0", "field"], "unknown_field").await;
        bad(by("status", "up"), &["body", "sorts", "0"], "sort").await;
        assert_eq!(list("", filter("status", "like", json!("x"))).await.status, 422);
    }

    async fn an_execution_tells_what_it_did_and_what_it_cost(server) {
        let (namespace, id) = retriever(&server, "costs").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        for title in ["one", "two", "three"] {
            call(THINGS, json!({"title": title})).await.ok();
        }
        let execute = format!("/v1/retrievers/{id}/execute");
        let ask = json!({"inputs": {"query": "figs"}, "limit": 2});
        let made = call(&execute, ask.clone()).await.ok();
        assert_eq!((&made["budget"]["credits"], &made["stage_statistics"]["credits_used"]), (&json!(0.002), &json!(0.002)));
        let path = format!("/v1/retrievers/{id}/executions/{}", made["execution_id"].as_str().unwrap());
        // The history is written behind the answers.
        let began = Instant::now();
        let told = loop {
            let told = server.call_in(&namespace, "GET", &path, Value::Null).await;
            if told.status == 200 {
                break told.ok();
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{:#}", told.body);
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!((&told["stages_completed"], &told["total_stages"]), (&json!(1), &json!(1)), "{told:#}");
        let list = call(&format!("/v1/retrievers/{id}/executions/list"), json!({})).await.ok();
        let one = list["results"].as_array().unwrap().iter().find(|one| one["execution_id"] == made["execution_id"]).unwrap();
        assert_eq!((&one["credits_used"], &one["total_processed"], &one["total_returned"]), (&json!(0.002), &json!(3), &json!(2)), "{one:#}");
        assert_eq!(one["inputs_hash"].as_str().unwrap().len(), 24);
        // What comes from memory costs nothing.
        let began = Instant::now();
        let kept = loop {
            let kept = call(&execute, ask.clone()).await.ok();
            if kept["cache_hit"] == true {
                break kept;
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{kept:#}");
        };
        assert_eq!((&kept["budget"]["credits"], &kept["stage_statistics"]["credits_used"]), (&json!(0.0), &json!(0.0)));
        let plan = call(&format!("{execute}/explain"), json!({})).await.ok();
        assert_eq!(plan["estimated_cost"]["total_credits"], 0.002);
        // A budget that does not cover it is no budget for a search.
        let poor = json!({"retriever_name": "poor", "collection_identifiers": ["things"], "stages": [stage("limit", json!({}))],
            "budget_limits": {"max_credits": 0.001}});
        let poor = call("/v1/retrievers", poor).await.ok();
        let poor = format!("/v1/retrievers/{}/execute", poor["retriever_id"].as_str().unwrap());
        let refused = call(&poor, json!({"inputs": {}})).await.error(403, "QuotaExceededError");
        assert_eq!((&refused["error"]["code"], &refused["error"]["details"]["limit"]), (&json!("quota_exceeded"), &json!(0.001)));
        for member in ["resource", "current", "tier"] {
            assert!(!refused["error"]["details"][member].is_null(), "{member} {refused:#}");
        }
    }

    async fn stages_that_would_be_refused_today_run_as_they_did(server) {
        let (namespace, id) = retriever(&server, "older").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        call(THINGS, json!({"title": "one", "vectors": {"own": [1.0, 0.0, 0.0]}})).await.ok();
        let parameters = |value: &str| json!({"conditions": {"OR": [
            {"field": "title", "operator": "exists", "value": true}, {"field": "title", "operator": "eq", "value": value}]}});
        for (name, value, told) in [
            ("secret", "{{ SECRET.key }}", "secrets are read by the templates of `api_call` alone"),
            ("filter", "{{ INPUT.q | shell if INPUT.q else 'x' }}", "filter shell is unknown"),
        ] {
            // Whoever makes one is told.
            let sent = json!([stage("attribute_filter", parameters(value))]);
            let path = format!("/v1/retrievers/{id}/clone");
            for (path, mut body) in [
                ("/v1/retrievers", json!({"retriever_name": name, "collection_identifiers": ["things"]})),
                (path.as_str(), json!({"retriever_name": name})),
                ("/v1/retrievers/execute", json!({"collection_identifiers": ["things"]})),
            ] {
                body["stages"] = sent.clone();
                let refused = call(path, body).await;
                assert!(refused.status == 422 && refused.body.to_string().contains(told), "{path}: {:#}", refused.body);
            }
            // One from before there was this rule goes on, and says what is wrong with it.
            let made = call(&path, json!({"retriever_name": name})).await.ok()["retriever_id"].as_str().unwrap().to_owned();
            let mut stored = RETRIEVERS.find(server.app.db(), &namespace, &made).await.unwrap().data.0;
            stored.stages[0].config.insert("parameters".into(), parameters(value));
            let now = server.app.clock().micros();
            let (of, which) = (namespace.clone(), made.clone());
            server.app.db().write(move |tx| Box::pin(async move {
                RETRIEVERS.update(tx, &of, &which, name, now, &stored).await
            })).await.unwrap();
            let execute = format!("/v1/retrievers/{made}/execute");
            for _ in 0..2 {
                let answer = call(&execute, json!({"inputs": {}})).await.ok();
                assert_eq!(members(&answer, "documents", "title"), ["one"], "{answer:#}");
                assert!(answer["warnings"].to_string().contains(told), "{answer:#}");
            }
            call(&format!("{execute}/explain"), json!({})).await.ok();
        }
        let answer = call(&format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}})).await.ok();
        assert!(answer["warnings"].as_array().is_none_or(Vec::is_empty), "{answer:#}");
    }

    async fn an_answer_tells_why_documents_stand_where_they_do(server) {
        let (namespace, _) = retriever(&server, "ways").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        for (title, vector) in [("c", [1.0, 0.0, 0.0]), ("b", [0.9, 0.4, 0.0]), ("a", [0.5, 0.9, 0.0])] {
            call(THINGS, json!({"title": title, "vectors": {"own": vector}})).await.ok();
        }
        let near = json!({"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 3});
        let stages = vec![stage("feature_search", json!({"searches": [near], "final_top_k": 3})),
            stage("sort_attribute", json!({"field": "title", "direction": "asc"}))];
        let mut late = stages.clone();
        late.push(stage("attribute_filter", json!({"field": "title", "operator": "ne", "value": "c"})));
        let late = stages::retriever(&server, &namespace, "things", late).await;
        let plan = call(&format!("/v1/retrievers/{late}/execute/explain"), json!({})).await.ok();
        assert_eq!(plan["optimization_suggestions"][0]["suggestion"], "put it before `feature_search`", "{plan:#}");
        let id = stages::retriever(&server, &namespace, "things", stages).await;
        let execute = format!("/v1/retrievers/{id}/execute");
        let answer = call(&execute, json!({"inputs": {}, "explain": true, "limit": 2})).await.ok();
        assert_eq!(members(&answer, "documents", "title"), ["a", "b"]);
        let ways = answer["diagnostics"]["ranking"].as_object().unwrap();
        assert_eq!(ways.len(), 2, "{answer:#}");
        let first = &answer["documents"][0];
        let way = &ways[first["document_id"].as_str().unwrap()];
        assert_eq!((&way[0]["stage"], &way[0]["rank"], &way[0]["score"]), (&json!("feature_search"), &json!(3), &first["score"]));
        assert_eq!((&way[1]["stage"], &way[1]["rank"], &way[1]["rank_before"]), (&json!("sort_attribute"), &json!(1), &json!(3)));
        assert_eq!(answer["explain_plan"]["optimization_suggestions"], json!([]));
        let plain = call(&execute, json!({"inputs": {}})).await.ok();
        assert!(plain.get("diagnostics").is_none(), "{plain:#}");
    }

    async fn pages_and_consistency_are_what_was_asked_for(server) {
        let (namespace, id) = retriever(&server, "asked").await;
        let execute = format!("/v1/retrievers/{id}/execute");
        let ask = async |more: Value| {
            let mut body = json!({"inputs": {}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.call_in(&namespace, "POST", &execute, body).await
        };
        for (page, member, kind) in [
            (json!({"method": "scroll", "scroll_ttl": 59}), "scroll_ttl", "greater_than_equal"),
            (json!({"method": "scroll", "limit": 1001}), "limit", "less_than_equal"),
            (json!({"method": "offset", "page_size": 501}), "page_size", "less_than_equal"),
            (json!({"method": "offset", "page_number": 0}), "page_number", "greater_than_equal"),
        ] {
            ask(json!({"pagination": page})).await.invalid(&["body", "pagination", member], kind);
        }
        let several = json!({"queries": [{"inputs": {}}], "settings": {"pagination": {"method": "cursor", "limit": 501}}});
        let several = server.call_in(&namespace, "POST", &format!("{execute}/batch"), several).await;
        several.invalid(&["body", "settings", "pagination"], "out_of_range");
        for mode in ["strong", "eventual"] {
            let answer = ask(json!({"consistency": {"mode": mode}})).await.ok();
            assert_eq!(answer["consistency_mode"], mode, "{answer:#}");
        }
        assert_eq!(ask(json!({"write_token": "after"})).await.ok()["consistency_mode"], "strong");
        assert!(ask(json!({})).await.ok().get("consistency_mode").is_none());
    }

    async fn pages_by_key_go_on_behind_what_is_gone(server) {
        let (namespace, by_id) = retriever(&server, "keys").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        for title in ["a", "b", "c", "d", "e"] {
            call(THINGS, json!({"title": title, "vectors": {"own": [1.0, 0.0, 0.0]}})).await.ok();
        }
        let sorted = stage("sort_attribute", json!({"field": "title", "direction": "desc"}));
        let by_title = stages::retriever(&server, &namespace, "things", vec![sorted]).await;
        let page = async |id: &str, after: &Value| {
            let pagination = json!({"method": "keyset", "limit": 2, "after": after});
            call(&format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}, "pagination": pagination})).await
        };
        for id in [&by_id, &by_title] {
            let (mut seen, mut after) = (Vec::new(), Value::Null);
            loop {
                let told = page(id, &after).await.ok();
                assert_eq!(told["pagination"]["total"], 5);
                seen.extend(members(&told, "documents", "title").into_iter().map(|one| one.as_str().unwrap().to_owned()));
                after = told["pagination"]["after"].clone();
                if after.is_null() {
                    break;
                }
            }
            if *id == by_id {
                seen.sort();
                seen.reverse();
            }
            assert_eq!(seen, ["e", "d", "c", "b", "a"]);
        }
        let first = page(&by_title, &Value::Null).await.ok();
        let last = first["documents"][1]["document_id"].as_str().unwrap();
        server.call_in(&namespace, "DELETE", &format!("{THINGS}/{last}"), Value::Null).await.ok();
        let next = page(&by_title, &first["pagination"]["after"]).await.ok();
        assert_eq!(members(&next, "documents", "title"), ["c", "b"]);
        assert_eq!((&next["pagination"]["total"], &next["pagination"]["has_next"]), (&json!(4), &json!(true)));
        // Somebody else's words for a key are told, and a document is one.
        let made = json!({"document_id": next["documents"][0]["document_id"]});
        assert_eq!(members(&page(&by_title, &made).await.ok(), "documents", "title"), ["b", "a"]);
        for stray in [json!({"document_id": last}), json!({"position": "??"})] {
            let refused = page(&by_title, &stray).await.error(400, "BadRequestError");
            assert_eq!(refused["error"]["code"], "cursor_invalid", "{refused:#}");
        }
    }

    async fn strangers_are_not_told_what_a_page_is_sorted_by(server) {
        let (namespace, _) = retriever(&server, "hidden").await;
        for (title, price) in [("a", 30), ("b", 10), ("c", 20)] {
            server.call_in(&namespace, "POST", THINGS, json!({"title": title, "price": price})).await.ok();
        }
        let sorted = stage("sort_attribute", json!({"field": "price", "direction": "asc"}));
        let by_price = stages::retriever(&server, &namespace, "things", vec![sorted]).await;
        let public = json!({"public_name": "bargains", "display_config": {"title": "Bargains", "inputs": [], "exposed_fields": ["title"]}});
        server.call_in(&namespace, "POST", &format!("/v1/retrievers/{by_price}/publish"), public).await.ok();
        let page = async |after: Value| {
            let body = json!({"inputs": {}, "pagination": {"method": "keyset", "limit": 1, "after": after}});
            Server::send(server.request("POST", "/v1/public/retrievers/bargains/execute").json(&body)).await
        };
        let first = page(Value::Null).await.ok();
        assert_eq!(members(&first, "documents", "title"), ["b"]);
        let after = &first["pagination"]["after"];
        assert_eq!(after, &json!({"document_id": first["documents"][0]["document_id"]}));
        assert_eq!(members(&page(after.clone()).await.ok(), "documents", "title"), ["c"]);
        // The word that the owner is told opens nothing here.
        let body = json!({"inputs": {}, "pagination": {"method": "keyset", "limit": 1}});
        let told = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{by_price}/execute"), body).await.ok();
        let position = &told["pagination"]["after"]["position"];
        assert!(position.is_string(), "{told:#}");
        assert_eq!(members(&page(json!({"position": position})).await.ok(), "documents", "title"), ["b"]);
    }

    async fn executions_write_what_they_find(server) {
        let (namespace, id) = retriever(&server, "writing").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        let shelf = json!({"collection_name": "shelf", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}});
        let shelf = call("/v1/collections", shelf).await.ok()["collection_id"].clone();
        let one = call(THINGS, json!({"title": "one", "vectors": {"own": [0.0, 1.0, 0.0]}})).await.ok();
        call(THINGS, json!({"title": "two", "vectors": {"own": [1.0, 0.0, 0.0]}})).await.ok();
        let execute = format!("/v1/retrievers/{id}/execute");
        let to = |target: &str| json!({"inputs": {}, "target_collection_id": target});
        let written = async || call(&execute, to("shelf")).await.ok()["written_to"].clone();
        let told = written().await;
        assert_eq!((&told["collection_id"], &told["count"]), (&shelf, &json!(2)), "{told:#}");
        let copies = async || {
            let path = "/v1/collections/shelf/documents/list";
            let list = call(path, json!({"sort": {"field": "title", "direction": "asc"}})).await.ok();
            list["results"].as_array().unwrap().clone()
        };
        let there = copies().await;
        assert_eq!(there.iter().map(|copy| &copy["title"]).collect::<Vec<_>>(), ["one", "two"]);
        let path = format!("/v1/collections/shelf/documents/{}", there[0]["document_id"].as_str().unwrap());
        let lineage = server.call_in(&namespace, "GET", &format!("{path}/lineage"), Value::Null).await.ok();
        assert_eq!((&lineage["lineage"]["source_document_id"], &lineage["depth"]), (&one["document_id"], &json!(1)), "{lineage:#}");
        // Copies are searched by the vectors of their sources.
        let like = json!({"searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [0.0, 1.0, 0.0]}, "top_k": 1}]});
        let search = stages::retriever(&server, &namespace, "shelf", vec![stage("feature_search", like)]).await;
        let found = call(&format!("/v1/retrievers/{search}/execute"), json!({"inputs": {}})).await.ok();
        assert_eq!(members(&found, "documents", "title"), ["one"]);
        // What is found again is the same copy, and no event is told of it; what has changed changes.
        assert_eq!(written().await, told);
        let of_shelf = async |kind: &str| {
            let events = server.events(kind).await;
            events.iter().filter(|event| event["payload"]["collection_id"] == shelf).count()
        };
        assert_eq!((of_shelf("collection.documents.written").await, of_shelf("documents.updated.batch").await), (1, 0));
        let source = format!("{THINGS}/{}", one["document_id"].as_str().unwrap());
        server.call_in(&namespace, "PATCH", &source, json!({"title": "one more"})).await.ok();
        assert_eq!(written().await, told);
        assert_eq!(copies().await[0]["title"], "one more");
        assert_eq!(of_shelf("document.updated").await, 1);

        // A collection is not written into itself.
        let same = call(&execute, to("things")).await.ok();
        assert_eq!((&same["written_to"]["count"], same["warnings"].as_array().unwrap().len()), (&json!(0), 1), "{same:#}");
        call(&execute, to("nowhere")).await.error(404, "NotFoundError");
        let mut stream = to("shelf");
        stream["stream"] = json!(true);
        call(&execute, stream).await.invalid(&["body", "target_collection_id"], "value_error");
        call(&execute, json!({"inputs": {}, "target_collection_id": null})).await.ok();
        let reader = server.call("POST", KEYS, json!({"name": "reader", "permissions": ["read"]})).await.ok();
        let reader = reader["key"].as_str().unwrap();
        with_key(&server, reader, &namespace, &execute, json!({"inputs": {}})).await.ok();
        with_key(&server, reader, &namespace, &execute, to("shelf")).await.error(403, "ForbiddenError");
    }

    async fn a_copy_is_seen_by_whoever_sees_its_source(server) {
        let (namespace, id) = retriever(&server, "private").await;
        let shelf = json!({"collection_name": "shelf", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", shelf).await.ok();
        let mut keys = Vec::new();
        for user in ["eve", "adam"] {
            let body = json!({"name": user, "principal_id": user, "permissions": ["write"]});
            let made = server.call("POST", KEYS, body).await.ok();
            keys.push(made["key"].as_str().unwrap().to_owned());
        }
        with_key(&server, &keys[0], &namespace, THINGS, json!({"title": "of eve", "team": "red"})).await.ok();
        let execute = format!("/v1/retrievers/{id}/execute");
        let body = json!({"inputs": {}, "target_collection_id": "shelf"});
        let told = server.call_in(&namespace, "POST", &execute, body).await.ok();
        assert_eq!(told["written_to"]["count"], 1, "{told:#}");
        for (key, count) in keys.iter().zip([1, 0]) {
            let list = with_key(&server, key, &namespace, "/v1/collections/shelf/documents/list", json!({})).await.ok();
            assert_eq!(list["results"].as_array().unwrap().len(), count, "{list:#}");
        }

        // A row that gathers the documents of several people is copied for none of them.
        with_key(&server, &keys[1], &namespace, THINGS, json!({"title": "of adam", "team": "red"})).await.ok();
        stages::collection(&server, &namespace, "groups", &[]).await;
        let group = stage("group_by", json!({"group_by_field": "team"}));
        let gathered = stages::retriever(&server, &namespace, "things", vec![group]).await;
        let body = json!({"inputs": {}, "target_collection_id": "groups"});
        let told = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{gathered}/execute"), body).await.ok();
        assert_eq!((&told["written_to"]["count"], &told["documents"][0]["count"]), (&json!(1), &json!(2)), "{told:#}");
        let path = "/v1/collections/groups/documents/list";
        for key in &keys {
            let list = with_key(&server, key, &namespace, path, json!({})).await.ok();
            assert_eq!(list["results"], json!([]), "{list:#}");
        }
        let list = server.call_in(&namespace, "POST", path, json!({})).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 1, "{list:#}");
    }

    async fn each_row_of_a_source_is_a_copy_of_its_own(server) {
        let namespace = server.namespace("unwound").await;
        stages::collection(&server, &namespace, "things", &[json!({"title": "one", "tags": ["a", "b", "c", "b"]})]).await;
        stages::collection(&server, &namespace, "shelf", &[]).await;
        let unwind = stage("unwind", json!({"field": "tags"}));
        let id = stages::retriever(&server, &namespace, "things", vec![unwind]).await;
        let written = async |page: i64| {
            let pagination = json!({"method": "offset", "page_number": page, "page_size": 2});
            let body = json!({"inputs": {}, "pagination": pagination, "target_collection_id": "shelf"});
            let told = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), body).await.ok();
            told["written_to"]["document_ids"].as_array().unwrap().clone()
        };
        // Also where they are on several pages; the same row is the same copy.
        let (first, second) = (written(1).await, written(2).await);
        assert_eq!((first.len(), second.len(), &first[1]), (2, 2, &second[1]));
        assert_eq!(written(1).await, first);
        let body = json!({"sort": {"field": "tags", "direction": "asc"}});
        let list = server.call_in(&namespace, "POST", "/v1/collections/shelf/documents/list", body).await.ok();
        assert_eq!(members(&list, "results", "tags"), ["a", "b", "c"]);
    }
}
