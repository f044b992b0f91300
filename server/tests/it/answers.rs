//! Answers kept while nothing they were made of changes, and fusion that learns from what people do with answers.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, retriever},
};

const THINGS: &str = "/v1/collections/things/documents";

async fn add(server: &Server, namespace: &str, title: &str) -> String {
    let body = json!({"title": title, "vectors": {"own": [1.0, 0.0, 0.0]}});
    let made = server.call_in(namespace, "POST", THINGS, body).await.ok();
    made["document_id"].as_str().unwrap().to_owned()
}

async fn ask(
    server: &Server,
    key: &str,
    namespace: &str,
    id: &str,
    body: Value,
    tag: Option<&str>,
) -> Answer {
    let mut request = server
        .request("POST", &format!("/v1/retrievers/{id}/execute"))
        .bearer_auth(key)
        .header("x-namespace", namespace)
        .json(&body);
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    Server::send(request).await
}

fn cache(answer: &Answer) -> &str {
    answer.headers["x-cache"].to_str().unwrap()
}

/// Whether an answer came from where it should. Where several processes may answer, one is kept for a second: too short to
/// count on.
fn came(server: &Server, answer: &Answer, expected: &str) -> bool {
    cache(answer) == expected || (expected == "HIT" && server.app.config().is_postgres())
}

fn count(answer: &Answer) -> usize {
    answer.body["documents"].as_array().unwrap().len()
}

both! {
    async fn an_answer_is_kept_until_a_document_changes(server) {
        let (namespace, id) = retriever(&server, "kept").await;
        let first = add(&server, &namespace, "one").await;
        let search = async |body: Value| ask(&server, &server.key, &namespace, &id, body, None).await;
        let plain = json!({"inputs": {}});
        let made = search(plain.clone()).await;
        assert_eq!((cache(&made), count(&made), &made.body["cache_hit"]), ("MISS", 1, &json!(false)));
        let kept = search(plain.clone()).await;
        let hit = cache(&kept) == "HIT";
        assert!(came(&server, &kept, "HIT"), "{}", cache(&kept));
        assert_eq!((&kept.body["documents"], &kept.body["cache_hit"]), (&made.body["documents"], &json!(hit)));
        assert_ne!(kept.body["execution_id"], made.body["execution_id"]);
        assert!(!hit || kept.body["cached_at"].is_f64());
        // The time is that of this execution.
        let (took, before) = (&kept.body["budget"]["time_ms"], &made.body["budget"]["time_ms"]);
        assert_eq!(took, &kept.body["stage_statistics"]["total_time_ms"]);
        assert!(took.as_f64().unwrap() > 0.0 && took != before, "{took} {before}");
        assert_eq!((&kept.headers["etag"], &kept.headers["cache-control"]), (&made.headers["etag"], &"private, no-cache".parse::<reqwest::header::HeaderValue>().unwrap()));
        // Another question is another answer; who wants a fresh one gets it.
        assert_eq!(cache(&search(json!({"inputs": {}, "limit": 1})).await), "MISS");
        assert_eq!(cache(&search(json!({"inputs": {}, "filters": {"field": "title", "operator": "eq", "value": "x"}})).await), "MISS");
        assert_eq!(cache(&search(json!({"inputs": {}, "skip_cache": true})).await), "BYPASS");
        // Whoever has the answer is told only that it is still the answer.
        let tag = kept.headers["etag"].to_str().unwrap();
        let same = ask(&server, &server.key, &namespace, &id, plain.clone(), Some(tag)).await;
        assert_eq!((same.status, &same.body), (304, &json!("")));
        assert_eq!(same.headers["etag"], kept.headers["etag"]);
        // Written, changed, deleted: each is seen by the next search.
        let second = add(&server, &namespace, "two").await;
        let more = ask(&server, &server.key, &namespace, &id, plain.clone(), Some(tag)).await;
        assert_eq!((more.status, cache(&more), count(&more)), (200, "MISS", 2));
        server.call_in(&namespace, "PATCH", &format!("{THINGS}/{second}"), json!({"title": "three"})).await.ok();
        let changed = search(plain.clone()).await;
        assert!(cache(&changed) == "MISS" && changed.body.to_string().contains("three"));
        server.call_in(&namespace, "DELETE", &format!("{THINGS}/{first}"), Value::Null).await.ok();
        let less = search(plain.clone()).await;
        assert_eq!((cache(&less), count(&less)), ("MISS", 1));
        // The retriever's own change is one, too.
        server.call_in(&namespace, "PATCH", &format!("/v1/retrievers/{id}"), json!({"description": "d"})).await.ok();
        assert_eq!(cache(&search(plain).await), "MISS");
    }

    async fn an_answer_is_nobody_elses(server) {
        let (namespace, id) = retriever(&server, "apart").await;
        add(&server, &namespace, "of the office").await;
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let mut people = Vec::new();
        for name in ["ann", "bob"] {
            let made = server.call("POST", keys, json!({"name": name, "principal_id": name, "permissions": ["write"]})).await.ok();
            people.push(made["key"].as_str().unwrap().to_owned());
        }
        let body = json!({"title": "ann's own", "vectors": {"own": [1.0, 0.0, 0.0]}});
        let request = server.request("POST", THINGS).bearer_auth(&people[0]).header("x-namespace", &namespace).json(&body);
        Server::send(request).await.ok();
        let search = async |key: &str| ask(&server, key, &namespace, &id, json!({"inputs": {}}), None).await;
        let office = search(&server.key).await;
        assert_eq!((cache(&office), count(&office)), ("MISS", 2));
        for (key, sees) in [(&people[0], 1), (&people[1], 0)] {
            for expected in ["MISS", "HIT"] {
                let answer = search(key).await;
                assert!(came(&server, &answer, expected), "{} for {expected}", cache(&answer));
                assert_eq!(count(&answer), sees);
            }
        }
        // Answers that are kept cost nothing.
        let billed = async || loupe_server::usage::searches(&server.app, &organization(&server).await, 0, i64::MAX / 2).await.unwrap();
        let before = billed().await;
        let mut anew = 0;
        for _ in 0..3 {
            let answer = search(&server.key).await;
            assert!(came(&server, &answer, "HIT"), "{}", cache(&answer));
            anew += if cache(&answer) == "HIT" { 0 } else { 1 };
        }
        assert_eq!(billed().await, before + anew);
        add(&server, &namespace, "news").await;
        assert_eq!(cache(&search(&server.key).await), "MISS");
        assert_eq!(billed().await, before + anew + 1);
        // A page has answers of its own kind, known by the same tag.
        server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), json!({"public_name": "apart"})).await.ok();
        let page = async |tag: &str| Server::send(server.request("POST", "/v1/public/retrievers/apart/execute").header("if-none-match", tag).json(&json!({}))).await;
        let made = page("").await;
        assert_eq!((cache(&made), made.status), ("MISS", 200));
        let known = page(made.headers["etag"].to_str().unwrap()).await;
        assert!(came(&server, &known, "HIT"), "{}", cache(&known));
        assert_eq!(known.status, 304);
    }

    async fn each_question_of_a_batch_counts_unless_it_was_kept(server) {
        let (namespace, id) = retriever(&server, "together").await;
        add(&server, &namespace, "one").await;
        let by = |operator: &str| json!({"inputs": {}, "filters": {"field": "title", "operator": operator, "value": "one"}});
        let organization = organization(&server).await;
        let billed = async || loupe_server::usage::searches(&server.app, &organization, 0, i64::MAX / 2).await.unwrap();
        let batch = async |queries: Value, tag: &str| {
            let request = server.request("POST", &format!("/v1/retrievers/{id}/execute/batch")).bearer_auth(&server.key)
                .header("x-namespace", &namespace).header("if-none-match", tag).json(&json!({"queries": queries, "concurrency": 1}));
            let before = billed().await;
            let answer = Server::send(request).await;
            (billed().await - before, answer)
        };
        let two = json!([{"inputs": {}}, by("eq")]);
        let (cost, made) = batch(two.clone(), "").await;
        assert_eq!((cost, made.status, cache(&made)), (2, 200, "MISS"), "{:#}", made.body);
        let tag = made.headers["etag"].to_str().unwrap();
        // Where several processes may answer, an answer is kept for a second: too short to count on.
        let lasts = !server.app.config().is_postgres();
        let (cost, kept) = batch(two.clone(), "").await;
        assert_eq!((kept.status, &kept.headers["etag"]), (200, &made.headers["etag"]));
        assert!(!lasts || (cost, cache(&kept)) == (0, "HIT"), "{cost} {}", cache(&kept));
        let (cost, known) = batch(two, tag).await;
        assert_eq!(known.status, 304);
        assert!(!lasts || (cost, cache(&known)) == (0, "HIT"), "{cost} {}", cache(&known));
        // One from memory, one anew, and one that fails.
        let (cost, mixed) = batch(json!([{"inputs": {}}, by("ne"), by("of nobody")]), tag).await;
        assert_eq!((mixed.status, cache(&mixed), &mixed.body["failed"]), (200, "MISS", &json!(1)), "{:#}", mixed.body);
        assert!(!lasts || cost == 1, "{cost}");
        assert_ne!(mixed.headers["etag"], made.headers["etag"]);
        // Stages without a retriever are known by a tag, and never kept.
        let stages = json!([{"stage_name": "first", "config": {"stage_id": "limit", "parameters": {"limit": 5}}}]);
        let body = json!({"collection_identifiers": ["things"], "stages": stages, "inputs": {}});
        let adhoc = async |tag: &str| {
            let request = server.request("POST", "/v1/retrievers/execute").bearer_auth(&server.key);
            Server::send(request.header("x-namespace", &namespace).header("if-none-match", tag).json(&body)).await
        };
        let first = adhoc("").await;
        assert_eq!((first.status, cache(&first)), (200, "BYPASS"), "{:#}", first.body);
        let known = adhoc(first.headers["etag"].to_str().unwrap()).await;
        assert_eq!((known.status, cache(&known)), (304, "BYPASS"));
    }

    async fn an_answer_shows_no_key_what_its_scopes_leave_out(server) {
        let (namespace, id) = retriever(&server, "scoped").await;
        let others = json!({"collection_name": "others", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", others).await.ok();
        let hidden = server.call_in(&namespace, "POST", "/v1/collections/others/documents", json!({"title": "hidden"})).await.ok();
        let body = json!({"title": "one", "friend": hidden["document_id"], "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", THINGS, body).await.ok();
        let made = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/api-keys"), json!({"name": "browser"})).await.ok();
        let browser = made["key"].as_str().unwrap();
        let search = async |key: &str| ask(&server, key, &namespace, &id, json!({"inputs": {}, "expand": ["friend"]}), None).await;
        let whole = search(&server.key).await;
        assert_eq!((cache(&whole), &whole.body["documents"][0]["expanded"]["friend"]["title"]), ("MISS", &json!("hidden")), "{:#}", whole.body);
        for expected in ["MISS", "HIT"] {
            let answer = search(browser).await;
            assert!(came(&server, &answer, expected), "{} for {expected}", cache(&answer));
            assert_eq!(count(&answer), 1, "{:#}", answer.body);
            assert_eq!(answer.body["documents"][0]["expanded"]["friend"], Value::Null);
        }
    }

    async fn what_differs_each_time_is_asked_each_time(server) {
        let (namespace, _) = retriever(&server, "fresh").await;
        add(&server, &namespace, "one").await;
        for (name, stage) in [
            ("by the clock", json!({"stage_id": "attribute_filter", "parameters": {"conditions": {"AND": [
                {"field": "title", "operator": "ne", "value": "{{ utc_now() }}"}]}}})),
            ("by the clock, in capitals", json!({"stage_id": "attribute_filter", "parameters": {"conditions": {"AND": [
                {"field": "title", "operator": "ne", "value": "{{ UTC_Now() }}"}]}}})),
            ("by chance", json!({"stage_id": "sample", "parameters": {"count": 1}})),
        ] {
            let kind = if name == "by chance" { "reduce" } else { "filter" };
            let body = json!({"retriever_name": name, "collection_identifiers": ["things"], "input_schema": {},
                "stages": [{"stage_name": "all", "stage_type": kind, "config": stage}]});
            let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
            for _ in 0..2 {
                let answer = ask(&server, &server.key, &namespace, made["retriever_id"].as_str().unwrap(), json!({"inputs": {}}), None).await;
                assert_eq!((answer.status, cache(&answer)), (200, "BYPASS"), "{name}: {:#}", answer.body);
            }
        }
    }

    async fn fusion_learns_which_search_finds_what_people_want(server) {
        let asked = json!({"fusion": {"type": "string", "required": true}});
        let ways = [("learned", json!({}), json!({})), ("{{INPUT.fusion}}", asked, json!({"fusion": "learned"}))];
        for (number, (fusion, schema, inputs)) in ways.into_iter().enumerate() {
            let namespace = server.namespace(&format!("learning {number}")).await;
            let fields = json!([{"field": "a", "name": "shape", "dimensions": 3}, {"field": "b", "name": "color", "dimensions": 3}]);
            let collection = json!({"collection_name": "things", "source": {"type": "direct_upsert"}, "feature_extractor": {
                "feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {"vector_fields": fields}}});
            server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
            let mut ids = Vec::new();
            for number in 0..6 {
                // By shape the first is nearest, by color the last.
                let (near, far) = (f64::from(number), f64::from(5 - number));
                let body = json!({"title": number.to_string(), "vectors": {"shape": [1.0, near * 0.2, 0.0], "color": [1.0, far * 0.2, 0.0]}});
                let made = server.call_in(&namespace, "POST", THINGS, body).await.ok();
                ids.push(made["document_id"].as_str().unwrap().to_owned());
            }
            let search = |feature: &str| json!({"feature_uri": feature, "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 6});
            let body = json!({"retriever_name": "learning", "collection_identifiers": ["things"], "input_schema": schema,
                "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                    "searches": [search("shape"), search("color")], "fusion": fusion, "final_top_k": 6, "learning_config": {"min_interactions": 4}}}}]});
            let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
            let id = made["retriever_id"].as_str().unwrap();
            let search = async || ask(&server, &server.key, &namespace, id, json!({"inputs": inputs}), None).await;
            let first = search().await;
            assert_eq!(cache(&first), "BYPASS");
            let context = &first.body["learned_fusion_context"]["search"];
            assert_eq!((&context["applied"], &context["interactions"], &context["weights"]["search_0"]), (&json!(false), &json!(0), &json!(0.5)), "{context:#}");
            assert!(first.body["warnings"][0].as_str().unwrap().contains("4 interactions"), "{:#}", first.body["warnings"]);
            assert_eq!(context["ranks"], Value::Null, "places are for the history alone");
            // Six people want what color finds first.
            let execution = first.body["execution_id"].as_str().unwrap();
            for person in 0..6 {
                let act = json!({"feature_id": ids[5], "interaction_type": ["click"], "position": 0, "execution_id": execution, "session_id": format!("s{person}")});
                server.call_in(&namespace, "POST", "/v1/retrievers/interactions", act).await.ok();
            }
            // The history is written behind the answers.
            let path = format!("/v1/retrievers/{id}/executions/{execution}");
            while server.call_in(&namespace, "GET", &path, Value::Null).await.status != 200 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            server.app.clock().advance(61);
            let learned = search().await;
            let context = &learned.body["learned_fusion_context"]["search"];
            assert_eq!((&context["applied"], &context["interactions"]), (&json!(true), &json!(6)), "{context:#}");
            let weight = |name: &str| context["weights"][name].as_f64().unwrap();
            // 1 + 6 · part of each: 1/61 against 1/66.
            let part = (1.0 / 61.0) / (1.0 / 61.0 + 1.0 / 66.0);
            assert!((weight("search_1") - (1.0 + 6.0 * part) / 8.0).abs() < 1e-3, "{context:#}");
            assert_eq!(learned.body["documents"][0]["document_id"], json!(ids[5]));
            assert_eq!(learned.body["warnings"], json!([]));
        }
    }

    async fn a_feature_is_searched_and_models_are_asked_without_a_retriever(server) {
        let (namespace, _) = retriever(&server, "features").await;
        let near = add(&server, &namespace, "near").await;
        let far = json!({"title": "far", "vectors": {"own": [0.0, 1.0, 0.0]}});
        server.call_in(&namespace, "POST", THINGS, far).await.ok();
        let search = async |body: Value| server.call_in(&namespace, "POST", "/v1/features/search", body).await;
        let vector = json!({"input_mode": "vector", "vector": [1.0, 0.1, 0.0]});
        let found = search(json!({"feature_uri": "own", "query": vector, "top_k": 1})).await.ok();
        assert_eq!((&found["results"][0]["document_id"], &found["total"]), (&json!(near), &json!(1)));
        let filtered = json!({"feature_uri": "own", "query": vector, "collection_identifiers": ["things"], "filters": {"field": "title", "operator": "eq", "value": "far"}});
        assert_eq!(search(filtered).await.ok()["results"][0]["title"], "far");
        let nothing = search(json!({"query": {"text": "{{ 7 * 7 }}"}})).await.ok();
        assert!(nothing["results"] == json!([]) && nothing["warnings"][0].as_str().unwrap().contains("no collection"), "{nothing:#}");
        // A file by URL is read through the guarded client, which asks no machine of its own network.
        let refused = search(json!({"feature_uri": "own", "query": {"input_mode": "url", "url": "http://127.0.0.1:8888/a.png"}})).await;
        let refused = refused.error(400, "BadRequestError").to_string();
        assert!(refused.contains("cannot be read") && !refused.contains("not enabled"), "{refused}");
        search(json!({"query": {"input_mode": "text"}})).await.invalid(&["body", "query", "text"], "missing");
        search(json!({"query": {"input_mode": "smell"}})).await.invalid(&["body", "query", "input_mode"], "enum");
        search(json!({"query": vector, "collection_identifiers": ["unknown"]})).await.error(404, "NotFoundError");

        let infer = async |inputs: Value| server.call_in(&namespace, "POST", "/v1/inference", json!({"inputs": inputs})).await;
        let vectors = infer(json!({"texts": ["whales", "engines"]})).await.ok();
        assert_eq!((vectors["data"]["embeddings"].as_array().unwrap().len(), vectors["data"]["embeddings"][0].as_array().unwrap().len()), (2, 384));
        assert_eq!((&vectors["provider"], &vectors["model"]), (&json!("embedding"), &json!("all_minilm_l6_v2_v1")));
        // Who answers is told, not who was meant.
        let meant = json!({"provider": "openai", "inputs": {"texts": ["whales"]}});
        let told = server.call_in(&namespace, "POST", "/v1/inference", meant).await.ok();
        assert_eq!(told["provider"], "embedding", "{told:#}");
        let again = infer(json!({"texts": ["whales", "engines"]})).await.ok();
        assert_eq!((&vectors["cached"], &again["cached"], &again["data"]), (&json!(false), &json!(true), &vectors["data"]));
        let scores = infer(json!({"query": "animals of the sea", "documents": ["an engine of brass", "whales sing in the deep sea"]})).await.ok();
        let scores = scores["data"]["scores"].as_array().unwrap();
        assert!(scores[1].as_f64() > scores[0].as_f64(), "{scores:?}");
        infer(json!({})).await.invalid(&["body", "inputs"], "missing");
        infer(json!({"texts": []})).await.invalid(&["body", "inputs", "texts"], "value_error");
        infer(json!({"image": "???"})).await.invalid(&["body", "inputs", "image"], "value_error");
        infer(json!({"prompt": "hello"})).await.error(503, "InferenceServiceUnavailableError");
        let unknown = json!({"inputs": {"text": "x"}, "model": "nothing"});
        server.call_in(&namespace, "POST", "/v1/inference", unknown).await.error(503, "InferenceServiceUnavailableError");
    }
}

async fn organization(server: &Server) -> String {
    let found = server
        .call("GET", "/v1/organizations", Value::Null)
        .await
        .ok();
    found["organization_id"].as_str().unwrap().to_owned()
}
