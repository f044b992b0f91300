//! Stages that ask other machines, against a small server that speaks their protocols.

mod ailing;
mod calling;
mod remembering;

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
    server_on(Database::Sqlite).await
}

pub async fn server_on(database: Database) -> (Server, Seen, String, String, String) {
    let (address, seen) = machine().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(database, &folder).await;
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

/// The three films, asked by a retriever made for each question.
struct Films<'a> {
    server: &'a Server,
    seen: &'a Seen,
    namespace: &'a str,
    films: &'a str,
}

impl Films<'_> {
    async fn ask(&self, stages: Vec<Value>) -> Value {
        let one = retriever(self.server, self.namespace, self.films, stages).await;
        let inputs = json!({"query": "vampire"});
        execute(self.server, self.namespace, &one, inputs).await
    }

    async fn are_filtered(&self) {
        let filter = stage(
            "llm_filter",
            json!({"criteria": "about {{INPUT.query}}s", "include_reasoning": true}),
        );
        let answer = self.ask(vec![sorted(), filter]).await;
        assert_eq!(titles(&answer), ["Nosferatu"]);
        assert_eq!(
            answer["documents"][0]["llm_filter"]["reason"],
            "a vampire or not"
        );
        let told = &answer["stage_statistics"]["stages"]["llm_filter"];
        assert_eq!(told["llm_calls"], 1);
        assert!(told["tokens_used"].as_i64().unwrap() > 1000);
        let seen = self.seen.lock().unwrap();
        let (_, headers, body) = &seen[0];
        assert_eq!(
            (headers["authorization"].to_str().unwrap(), &body["model"]),
            ("Bearer sk-test", &json!("small"))
        );
        let asked = body["messages"][1]["content"].as_str().unwrap();
        assert!(asked.starts_with("Criteria: about vampires\n"), "{asked}");
        assert!(!body.to_string().contains("_internal"));
    }

    async fn are_enriched(&self) {
        let enrich = stage(
            "llm_enrich",
            json!({"prompt": "Rate {{ DOC.title }}", "output_field": "rating", "when": {"decade": 1920}, "model_name": "large"}),
        );
        let answer = self.ask(vec![sorted(), enrich]).await;
        assert_eq!(titles(&answer), ["Faust", "M", "Nosferatu"]);
        let documents = &answer["documents"];
        assert_eq!(
            (&documents[0]["rating"], documents[1].get("rating")),
            (&json!("said of: Rate Faust"), None)
        );
        assert_eq!(
            self.seen.lock().unwrap().last().unwrap().2["model"],
            "large"
        );
        let shaped = stage(
            "llm_enrich",
            json!({"prompt": "Mood of {{ DOC.title }}", "output_field": "mood", "schema": {"type": "object"}}),
        );
        let answer = self.ask(vec![shaped]).await;
        assert_eq!(answer["documents"][0]["mood"], json!({"mood": "dark"}));
    }

    async fn are_summarized(&self) {
        let groups = stage(
            "summarize",
            json!({"group_by": "decade", "prompt": "{{GROUP_VALUE}}: {{DOCUMENTS}} ({{DOC_COUNT}})", "document_template": "{{INDEX}} {{DOC.title}}"}),
        );
        let answer = self.ask(vec![sorted(), groups]).await;
        let documents = answer["documents"].as_array().unwrap();
        let summaries: Vec<&Value> = documents.iter().map(|one| &one["summary"]).collect();
        assert_eq!(
            summaries,
            [
                &json!("said of: 1920: 0 Faust\n\n1 Nosferatu (2)"),
                &json!("said of: 1930: 0 M (1)")
            ]
        );
        assert_eq!(documents[0]["sources"].as_array().unwrap().len(), 2);
    }

    /// 100,000 tokens a minute are the organization's: a stage that wants more is told when to come again.
    async fn cost_no_more_than_a_minute_has(&self) {
        let much = stage("summarize", json!({"max_output_tokens": 16000}));
        let much = vec![much; 7];
        let much = retriever(self.server, self.namespace, self.films, much).await;
        let path = format!("/v1/retrievers/{much}/execute");
        let body = json!({"inputs": {}});
        let refused = self.server.call_in(self.namespace, "POST", &path, body);
        let refused = refused.await;
        let wait = refused.headers["retry-after"].to_str().unwrap();
        assert!(wait.parse::<u64>().unwrap() <= 60, "{wait}");
        refused.error(429, "TooManyRequestsError");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_filters_enriches_and_summarizes() {
    let (server, seen, namespace, films, _) = server().await;
    server.app.clock().hold();
    let films = Films {
        server: &server,
        seen: &seen,
        namespace: &namespace,
        films: &films,
    };
    films.are_filtered().await;
    films.are_enriched().await;
    films.are_summarized().await;
    films.cost_no_more_than_a_minute_has().await;
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

/// What an execution tells, event by event.
async fn streamed(server: &Server, namespace: &str, retriever: &str, inputs: Value) -> Vec<Value> {
    let path = format!("/v1/retrievers/{retriever}/execute");
    let request = server
        .request("POST", &path)
        .bearer_auth(&server.key)
        .header("X-Namespace", namespace)
        .json(&json!({"inputs": inputs, "stream": true}));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Of each stage the start and the end, then the answer.
fn check_events(told: &[Value]) {
    let kind = |event: &Value, member: &str| event[member].as_str().unwrap_or("-").to_owned();
    let kinds: Vec<_> = told
        .iter()
        .map(|event| (kind(event, "event_type"), kind(event, "stage_name")))
        .collect();
    let expected: Vec<_> = ["sort_attribute", "sample", "llm_enrich", "limit"]
        .into_iter()
        .flat_map(|name| [("stage_start", name), ("stage_complete", name)])
        .chain([("execution_complete", "-")])
        .map(|(kind, name)| (kind.to_owned(), name.to_owned()))
        .collect();
    assert_eq!(kinds, expected);
    let id = &told[0]["execution_id"];
    assert!(told.iter().all(|event| event["execution_id"] == *id));
    let documents = |event: usize| told[event]["documents"].as_array().unwrap();
    assert_eq!(
        (
            &told[5]["total_stages"],
            &told[5]["statistics"]["output_count"],
            documents(5).len()
        ),
        (&json!(4), &json!(3), 3)
    );
    assert_eq!(
        (documents(8).len(), &documents(8)[0]["said"]),
        (2, &json!("said of: Faust"))
    );
    assert!(told[8]["budget_used"]["time_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_tells_its_stages_as_they_go() {
    let (server, _, namespace, films, _) = server().await;
    let stages = vec![
        sorted(),
        stage("sample", json!({"count": 3, "seed": 1})),
        stage(
            "llm_enrich",
            json!({"prompt": "{{ DOC.title }}", "output_field": "said"}),
        ),
        stage("limit", json!({"limit": "{{INPUT.k}}"})),
    ];
    let one = retriever(&server, &namespace, &films, stages).await;
    check_events(&streamed(&server, &namespace, &one, json!({"k": 2})).await);
    // What a stage refuses is told; the execution is in the history under the same id where it ended.
    let failed = streamed(&server, &namespace, &one, json!({"k": "many"})).await;
    let [.., before, last] = failed.as_slice() else {
        panic!("{failed:#?}");
    };
    assert_eq!(
        (&last["event_type"], &before["event_type"]),
        (&json!("execution_error"), &json!("stage_error"))
    );
    let error = last["error"].as_str().unwrap();
    assert!(error.contains("whole number"), "{error}");
    // What is refused before a stage is an answer like any other.
    let path = format!("/v1/retrievers/{one}/execute");
    let body =
        json!({"filters": {"field": "x", "operator": "resembles", "value": 1}, "stream": true});
    let refused = server.call_in(&namespace, "POST", &path, body).await;
    assert_eq!(refused.status, 422);
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
