//! Stages that ask other machines, against a small server that speaks their protocols.

use loupe_engine::{
    embed::{RerankEndpoint, RerankProtocol},
    stage::{WebSearchConfig, WebSearchProtocol},
};
use serde_json::{Value, json};

use crate::{
    harness::{self, Database, Server},
    machine::{Seen, machine},
    stages::{collection, execute, retriever, stage},
};

/// A server with every endpoint configured, a namespace and a collection of three films.
pub async fn server() -> (Server, Seen, String, String, String) {
    let (address, seen) = machine().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Sqlite, &folder).await;
    let language = json!({"url": format!("{address}/v1"), "model": "small", "api_key": "sk-test"});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    for (name, protocol) in [
        ("tei", RerankProtocol::Tei),
        ("cohere", RerankProtocol::OpenAi),
    ] {
        config.models.rerankers.push(RerankEndpoint {
            name: name.into(),
            protocol,
            url: address.clone(),
            model: Some("judge".into()),
            api_key: None,
            timeout_seconds: 5,
        });
    }
    config.web_search = Some(WebSearchConfig {
        protocol: WebSearchProtocol::Exa,
        url: address.clone(),
        api_key: Some("exa-key".to_owned().into()),
    });
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("machines").await;
    let films = [
        json!({"title": "M", "content": "a murderer in the city", "decade": 1930}),
        json!({"title": "Nosferatu", "content": "a vampire comes by ship", "decade": 1920}),
        json!({"title": "Faust", "content": "a bet with the devil", "decade": 1920}),
    ];
    let films = collection(&server, &namespace, "films", &films).await;
    (server, seen, namespace, films, address)
}

pub fn sorted() -> Value {
    stage(
        "sort_attribute",
        json!({"field": "title", "direction": "asc"}),
    )
}

pub fn titles(answer: &Value) -> Vec<&str> {
    answer["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["title"].as_str().unwrap_or("-"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_filters_enriches_and_summarizes() {
    let (server, seen, namespace, films, _) = server().await;
    server.app.clock().hold();
    let run = async |stages: Vec<Value>| {
        let one = retriever(&server, &namespace, &films, stages).await;
        execute(&server, &namespace, &one, json!({"query": "vampire"})).await
    };
    let filter = stage(
        "llm_filter",
        json!({"criteria": "about {{INPUT.query}}s", "include_reasoning": true}),
    );
    let answer = run(vec![sorted(), filter]).await;
    assert_eq!(titles(&answer), ["Nosferatu"]);
    assert_eq!(
        answer["documents"][0]["llm_filter"]["reason"],
        "a vampire or not"
    );
    let told = &answer["stage_statistics"]["stages"]["llm_filter"];
    assert_eq!(told["llm_calls"], 1);
    assert!(told["tokens_used"].as_i64().unwrap() > 1000);
    {
        let seen = seen.lock().unwrap();
        let (_, headers, body) = &seen[0];
        assert_eq!(
            (headers["authorization"].to_str().unwrap(), &body["model"]),
            ("Bearer sk-test", &json!("small"))
        );
        assert!(
            body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .starts_with("Criteria: about vampires\n")
        );
        assert!(!body.to_string().contains("_internal"));
    }
    let enrich = stage(
        "llm_enrich",
        json!({"prompt": "Rate {{ DOC.title }}", "output_field": "rating", "when": {"decade": 1920}, "model_name": "large"}),
    );
    let answer = run(vec![sorted(), enrich]).await;
    assert_eq!(titles(&answer), ["Faust", "M", "Nosferatu"]);
    assert_eq!(
        (
            &answer["documents"][0]["rating"],
            answer["documents"][1].get("rating")
        ),
        (&json!("said of: Rate Faust"), None)
    );
    assert_eq!(seen.lock().unwrap().last().unwrap().2["model"], "large");
    let shaped = stage(
        "llm_enrich",
        json!({"prompt": "Mood of {{ DOC.title }}", "output_field": "mood", "schema": {"type": "object"}}),
    );
    assert_eq!(
        run(vec![shaped]).await["documents"][0]["mood"],
        json!({"mood": "dark"})
    );
    let groups = stage(
        "summarize",
        json!({"group_by": "decade", "prompt": "{{GROUP_VALUE}}: {{DOCUMENTS}} ({{DOC_COUNT}})", "document_template": "{{INDEX}} {{DOC.title}}"}),
    );
    let answer = run(vec![sorted(), groups]).await;
    let summaries: Vec<&Value> = answer["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["summary"])
        .collect();
    assert_eq!(
        summaries,
        [
            &json!("said of: 1920: 0 Faust\n\n1 Nosferatu (2)"),
            &json!("said of: 1930: 0 M (1)")
        ]
    );
    assert_eq!(
        answer["documents"][0]["sources"].as_array().unwrap().len(),
        2
    );
    // 100,000 tokens a minute are the organization's: a stage that wants more is told when to come again.
    let much = stage("summarize", json!({"max_output_tokens": 16000}));
    let much = retriever(
        &server,
        &namespace,
        &films,
        vec![
            much.clone(),
            much.clone(),
            much.clone(),
            much.clone(),
            much.clone(),
            much.clone(),
            much,
        ],
    )
    .await;
    let path = format!("/v1/retrievers/{much}/execute");
    let refused = server
        .call_in(&namespace, "POST", &path, json!({"inputs": {}}))
        .await;
    assert!(
        refused.headers["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            <= 60
    );
    refused.error(429, "TooManyRequestsError");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rerankers_answer_by_both_protocols() {
    let (server, seen, namespace, films, _) = server().await;
    for name in ["tei", "cohere"] {
        let rerank = stage(
            "rerank",
            json!({"inference_name": name, "max_candidates": 3, "top_k": 2, "batch_size": 2}),
        );
        let one = retriever(&server, &namespace, &films, vec![sorted(), rerank]).await;
        let answer = execute(&server, &namespace, &one, json!({"query": "vampire"})).await;
        assert_eq!(titles(&answer), ["Nosferatu", "Faust"], "{name}");
        assert_eq!(answer["documents"][0]["scores"]["rerank"], 0.9);
        assert_eq!(
            answer["stage_statistics"]["stages"]["rerank"]["metadata"]["model"],
            name
        );
        assert_eq!(answer["warnings"], json!([]));
    }
    let seen = seen.lock().unwrap();
    assert_eq!(
        (seen.len(), &seen[3].2["model"]),
        (4, &json!("judge")),
        "two batches each"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_the_web_come_beside_documents_ten_times_a_minute() {
    let (server, seen, namespace, films, _) = server().await;
    server.app.clock().hold();
    let web = || {
        stage(
            "external_web_search",
            json!({"num_results": 2, "start_published_date": "2026-01-01"}),
        )
    };
    let one = retriever(
        &server,
        &namespace,
        &films,
        vec![sorted(), stage("limit", json!({"limit": 1})), web()],
    )
    .await;
    let answer = execute(&server, &namespace, &one, json!({"query": "films"})).await;
    assert_eq!(titles(&answer), ["Faust", "A", "B"]);
    assert_eq!(
        (
            &answer["documents"][1]["content"],
            &answer["documents"][1]["document_id"]
        ),
        (&json!("about a"), &json!("web:https://a.example/x"))
    );
    {
        let seen = seen.lock().unwrap();
        let (_, headers, body) = &seen[0];
        assert_eq!(
            (
                headers["x-api-key"].to_str().unwrap(),
                &body["numResults"],
                &body["startPublishedDate"]
            ),
            ("exa-key", &json!(2), &json!("2026-01-01"))
        );
    }
    let alone = retriever(&server, &namespace, &films, vec![web()]).await;
    for _ in 0..9 {
        assert_eq!(
            titles(&execute(&server, &namespace, &alone, json!({"query": "films"})).await),
            ["A", "B"]
        );
    }
    let path = format!("/v1/retrievers/{alone}/execute");
    server
        .call_in(&namespace, "POST", &path, json!({"inputs": {"query": "x"}}))
        .await
        .error(429, "TooManyRequestsError");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_service_is_asked_once_more_where_its_trouble_may_pass() {
    let (server, seen, namespace, films, _) = server().await;
    let web = stage("external_web_search", json!({}));
    let one = retriever(&server, &namespace, &films, vec![web]).await;
    let answer = execute(&server, &namespace, &one, json!({"query": "passing"})).await;
    assert_eq!(titles(&answer), ["A", "B"]);
    assert_eq!(seen.lock().unwrap().len(), 2);
    let path = format!("/v1/retrievers/{one}/execute");
    let body = json!({"inputs": {"query": "lasting"}});
    let refused = server.call_in(&namespace, "POST", &path, body).await;
    assert!(refused.status >= 400, "{:#}", refused.body);
    assert_eq!(seen.lock().unwrap().len(), 3, "what lasts is asked once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_services_are_called_for_each_document_within_their_domains() {
    let (server, seen, namespace, films, address) = server().await;
    server.app.clock().hold();
    server
        .call(
            "POST",
            "/v1/organizations/secrets",
            json!({"secret_name": "facts", "secret_value": "s3cret"}),
        )
        .await
        .ok();
    let call = |more: Value| {
        let mut parameters = json!({"url": format!("{address}/facts/{{{{ DOC.title }}}}"), "allowed_domains": ["127.0.0.2"],
            "auth": {"type": "bearer", "secret_ref": "facts"}, "headers": {"X-Decade": "{{ DOC.decade }}"}, "output_field": "facts",
            "response_path": "data.minutes"});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        vec![sorted(), stage("api_call", parameters)]
    };
    let one = retriever(&server, &namespace, &films, call(json!({}))).await;
    let answer = execute(&server, &namespace, &one, json!({})).await;
    assert_eq!(
        (
            titles(&answer),
            answer["documents"][0].get("facts"),
            &answer["documents"][1]["facts"]
        ),
        (vec!["Faust", "M", "Nosferatu"], None, &json!(94))
    );
    assert!(
        answer["degraded"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("404"),
        "{answer:#}"
    );
    assert!(!answer.to_string().contains("s3cret"));
    {
        let seen = seen.lock().unwrap();
        let (_, headers, _) = seen.iter().find(|(path, ..)| path == "/facts/M").unwrap();
        assert_eq!(
            (
                headers["authorization"].to_str().unwrap(),
                headers["x-decade"].to_str().unwrap()
            ),
            ("Bearer s3cret", "1930")
        );
    }
    let posted = call(
        json!({"on_error": "remove", "method": "POST", "body": {"name": "{{ DOC.title }}"}, "auth": {"type": "api_key", "secret_ref": "facts", "location": "query", "key": "k"}}),
    );
    let one = retriever(&server, &namespace, &films, posted).await;
    assert_eq!(
        titles(&execute(&server, &namespace, &one, json!({})).await),
        ["M", "Nosferatu"]
    );
    assert!(
        seen.lock()
            .unwrap()
            .iter()
            .any(|(path, _, body)| path == "/facts/M?k=s3cret" && body == &json!({"name": "M"}))
    );
    // No more often than the stage says, whoever asks.
    let paced = call(
        json!({"url": format!("{address}/facts/M"), "rate_limit": {"requests_per_minute": 2}}),
    );
    let one = retriever(&server, &namespace, &films, paced).await;
    for (count, told) in [(2, "1 documents"), (0, "3 documents")] {
        let answer = execute(&server, &namespace, &one, json!({})).await;
        let documents = answer["documents"].as_array().unwrap();
        let has = documents.iter().filter(|one| one["facts"] == 94).count();
        assert_eq!((documents.len(), has), (3, count), "{answer:#}");
        let reason = answer["degraded"][0]["reason"].as_str().unwrap();
        assert!(
            reason.contains(told) && reason.contains("2 calls a minute"),
            "{reason}"
        );
    }
    server.app.clock().advance(61);
    let answer = execute(&server, &namespace, &one, json!({})).await;
    assert_eq!(answer["documents"][1]["facts"], 94, "{answer:#}");
    // Another domain, and an address of this machine that is not open, are not asked.
    let asked = seen.lock().unwrap().len();
    for parameters in [
        json!({"allowed_domains": ["*.example.com"]}),
        json!({"url": "http://127.0.0.1:1/x", "allowed_domains": ["127.0.0.1"]}),
    ] {
        let one = retriever(&server, &namespace, &films, call(parameters)).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!(answer["degraded"][0]["resource"], "stage", "{answer:#}");
    }
    assert_eq!(seen.lock().unwrap().len(), asked);
    // Only keys that manage secrets make stages that send them.
    let missing = json!({"retriever_name": "n", "collection_identifiers": [films], "stages": call(json!({"auth": {"type": "bearer", "secret_ref": "nothing"}}))});
    server
        .call_in(&namespace, "POST", "/v1/retrievers", missing)
        .await
        .error(404, "NotFoundError");
    let users = server
        .call("GET", "/v1/organizations/users", Value::Null)
        .await
        .ok();
    let email = users["results"][0]["email"].as_str().unwrap().to_owned();
    let key = server
        .call(
            "POST",
            &format!("/v1/organizations/users/{email}/api-keys"),
            json!({"name": "writer", "permissions": ["write"]}),
        )
        .await
        .ok();
    let body = json!({"retriever_name": "w", "collection_identifiers": [films], "stages": call(json!({}))});
    let request = server
        .request("POST", "/v1/retrievers")
        .bearer_auth(key["key"].as_str().unwrap())
        .header("X-Namespace", &namespace)
        .json(&body);
    Server::send(request).await.error(403, "ForbiddenError");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_tells_its_stages_as_they_go() {
    let (server, _, namespace, films, _) = server().await;
    let enrich = stage(
        "llm_enrich",
        json!({"prompt": "{{ DOC.title }}", "output_field": "said"}),
    );
    let broken = stage("limit", json!({"limit": "{{INPUT.k}}"}));
    let one = retriever(
        &server,
        &namespace,
        &films,
        vec![
            sorted(),
            stage("sample", json!({"count": 3, "seed": 1})),
            enrich,
            broken,
        ],
    )
    .await;
    let ask = async |inputs: Value| {
        let path = format!("/v1/retrievers/{one}/execute");
        let request = server
            .request("POST", &path)
            .bearer_auth(&server.key)
            .header("X-Namespace", &namespace);
        let answer = request
            .json(&json!({"inputs": inputs, "stream": true}))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let text = answer.text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    let told = ask(json!({"k": 2})).await;
    let kinds: Vec<_> = told
        .iter()
        .map(|e| {
            (
                e["event_type"].as_str().unwrap(),
                e["stage_name"].as_str().unwrap_or("-"),
            )
        })
        .collect();
    let expected: Vec<_> = ["sort_attribute", "sample", "llm_enrich", "limit"]
        .into_iter()
        .flat_map(|name| [("stage_start", name), ("stage_complete", name)])
        .chain([("execution_complete", "-")])
        .collect();
    assert_eq!(kinds, expected);
    assert!(
        told.iter()
            .all(|e| e["execution_id"] == told[0]["execution_id"])
    );
    assert_eq!(
        (
            &told[5]["total_stages"],
            &told[5]["statistics"]["output_count"],
            told[5]["documents"].as_array().unwrap().len()
        ),
        (&json!(4), &json!(3), 3)
    );
    assert_eq!(
        (
            told[8]["documents"].as_array().unwrap().len(),
            &told[8]["documents"][0]["said"]
        ),
        (2, &json!("said of: Faust"))
    );
    assert!(told[8]["budget_used"]["time_ms"].as_f64().unwrap() > 0.0);
    // What a stage refuses is told; the execution is in the history under the same id where it ended.
    let failed = ask(json!({"k": "many"})).await;
    let last: Vec<_> = failed
        .iter()
        .rev()
        .take(2)
        .map(|e| e["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(last, ["execution_error", "stage_error"]);
    assert!(
        failed.last().unwrap()["error"]
            .as_str()
            .unwrap()
            .contains("whole number")
    );
    // What is refused before a stage is an answer like any other.
    let path = format!("/v1/retrievers/{one}/execute");
    let body =
        json!({"filters": {"field": "x", "operator": "resembles", "value": 1}, "stream": true});
    assert_eq!(
        server.call_in(&namespace, "POST", &path, body).await.status,
        422
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_said_in_other_words() {
    let (server, seen, namespace, films, _) = server().await;
    let expand = stage(
        "query_expand",
        json!({"num_expansions": 2, "feature_search_config": {
        "feature_uri": "loupe://text_extractor@v1/all_minilm_l6_v2_v1", "query": "{{INPUT.query}}"}}),
    );
    let one = retriever(&server, &namespace, &films, vec![expand]).await;
    let answer = execute(&server, &namespace, &one, json!({"query": "night"})).await;
    let told = &answer["stage_statistics"]["stages"]["query_expand"]["metadata"];
    // The model said "blood" twice, and repeated what it was asked.
    assert_eq!(
        (&told["method"], &told["expansions"]),
        (
            &json!("language_model"),
            &json!(["blood", "Give 2 other ways to search for: night"])
        )
    );
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_reranker_reads_query_and_document_together() {
    let server = Server::start(Database::Sqlite).await;
    let namespace = server.namespace("reranked").await;
    let said = [
        "Bananas are yellow and sweet.",
        "Berlin had 3,520,031 inhabitants at the last count.",
        "Berlin is well known for its museums.",
        "How many people live in a city is called its population.",
    ];
    let said: Vec<Value> = said
        .iter()
        .map(|text| json!({"title": text[..10], "content": text}))
        .collect();
    let said = collection(&server, &namespace, "said", &said).await;
    let one = retriever(
        &server,
        &namespace,
        &said,
        vec![sorted(), stage("rerank", json!({}))],
    )
    .await;
    let answer = execute(
        &server,
        &namespace,
        &one,
        json!({"query": "How many people live in Berlin?"}),
    )
    .await;
    assert_eq!(answer["degraded"], json!([]), "{answer:#}");
    // The order and the sign of the model's card: the count is an answer, bananas are none.
    assert!(
        answer["documents"][0]["content"]
            .as_str()
            .unwrap()
            .contains("3,520,031"),
        "{answer:#}"
    );
    assert_eq!(titles(&answer)[3], "Bananas ar");
    let score = |i: usize| answer["documents"][i]["scores"]["rerank"].as_f64().unwrap();
    assert!(
        score(0) > 0.99 && score(3) < 0.01,
        "{} {}",
        score(0),
        score(3)
    );
    assert!(
        answer["warnings"][0]
            .as_str()
            .unwrap()
            .contains("`ms_marco_minilm_l12_v2` took its place")
    );
}
