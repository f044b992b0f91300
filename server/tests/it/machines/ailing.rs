//! Services that are away, refuse this server or answer nonsense: each is told as what it is, with the stages that ran before it.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use loupe_engine::stage::{WebSearchConfig, WebSearchProtocol};
use serde_json::{Value, json};

use super::{sorted, titles};
use crate::{
    harness::{self, Database, Server},
    stages::{collection, retriever, stage},
};

/// What the services say next, and what they were asked.
#[derive(Clone, Default)]
struct Script {
    says: Arc<Mutex<(u16, String)>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Script {
    fn will(&self, status: u16, text: impl ToString) {
        *self.says.lock().unwrap() = (status, text.to_string());
    }

    fn say(&self, asked: Value) -> Response {
        self.asked.lock().unwrap().push(asked);
        let (status, text) = self.says.lock().unwrap().clone();
        (StatusCode::from_u16(status).unwrap(), text).into_response()
    }

    /// Words of a language model, with the tokens of them where they are told.
    fn will_answer(&self, words: &str, usage: Value) {
        let message = json!({"role": "assistant", "content": words});
        self.will(
            200,
            json!({"choices": [{"message": message}], "usage": usage}),
        );
    }
}

async fn chat(State(script): State<Script>, Json(body): Json<Value>) -> Response {
    script.say(body)
}

async fn search(
    State(script): State<Script>,
    Query(asked): Query<std::collections::HashMap<String, String>>,
) -> Response {
    script.say(json!(asked))
}

struct Ailing {
    server: Server,
    script: Script,
    namespace: String,
    films: String,
}

async fn ailing() -> Ailing {
    let script = Script::default();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/search", get(search))
        .with_state(script.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Sqlite, &folder).await;
    let language = json!({"url": format!("{address}/v1"), "model": "small"});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    config.web_search = Some(WebSearchConfig {
        protocol: WebSearchProtocol::Searxng,
        url: address,
        api_key: None,
    });
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("ailing").await;
    let films = [
        json!({"title": "M", "content": "a murderer in the city", "decade": 1930}),
        json!({"title": "Faust", "content": "a bet with the devil", "decade": 1920}),
    ];
    let films = collection(&server, &namespace, "films", &films).await;
    Ailing {
        server,
        script,
        namespace,
        films,
    }
}

impl Ailing {
    async fn made(&self, stages: Vec<Value>) -> String {
        retriever(&self.server, &self.namespace, &self.films, stages).await
    }

    async fn ask(&self, id: &str) -> harness::Answer {
        let path = format!("/v1/retrievers/{id}/execute");
        let body = json!({"inputs": {"query": "films"}});
        self.server
            .call_in(&self.namespace, "POST", &path, body)
            .await
    }

    async fn refuses(&self, id: &str, code: Value) {
        let refused = self.ask(id).await;
        let told = refused.error(503, "InferenceServiceUnavailableError");
        assert_eq!(told["error"]["code"], code, "{told:#}");
    }
}

fn asking_a_model() -> [Value; 6] {
    let agentic = json!({"system_prompt": "its mood", "output_schema": {"mood": "string"}, "enabled_tools": []});
    [
        stage("llm_filter", json!({"criteria": "good"})),
        stage("llm_enrich", json!({"prompt": "x", "output_field": "y"})),
        stage("summarize", json!({})),
        stage(
            "attribute_filter",
            json!({"natural_language": "silent ones"}),
        ),
        stage("agent_search", json!({"max_iterations": 1})),
        stage("agentic_enrich", agentic),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_that_ails_is_no_fault_of_the_server() {
    let ailing = ailing().await;
    for stage in asking_a_model() {
        let name = stage["stage_name"].as_str().unwrap().to_owned();
        let id = ailing.made(vec![sorted(), stage]).await;
        ailing.script.will(500, "down");
        let refused = ailing.ask(&id).await;
        assert!(refused.headers.contains_key("retry-after"), "{name}");
        refused.error(503, "InferenceServiceUnavailableError");
        ailing.script.will(401, "who are you");
        ailing.refuses(&id, json!("model_refused")).await;
        ailing.script.will(200, "<html>");
        ailing.refuses(&id, Value::Null).await;
        // Words where a filter or a call of a tool was to come; others take them.
        let takes_words = matches!(name.as_str(), "llm_enrich" | "summarize");
        ailing.script.will_answer("I would rather not", Value::Null);
        match takes_words {
            true => drop(ailing.ask(&id).await.ok()),
            false => ailing.refuses(&id, Value::Null).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_service_that_ails_is_told_as_what_it_is() {
    let ailing = ailing().await;
    let web = stage("external_web_search", json!({"query": "films"}));
    let id = ailing.made(vec![sorted(), web]).await;
    ailing.script.will(500, "");
    ailing.ask(&id).await.error(503, "ServiceUnavailableError");
    for (status, text) in [(401, ""), (404, ""), (200, "<html>"), (200, "{}")] {
        ailing.script.will(status, text);
        ailing.refuses(&id, json!("model_refused")).await;
    }
    ailing.script.will(400, "");
    ailing.ask(&id).await.error(400, "BadRequestError");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_that_failed_keeps_the_stages_that_ran() {
    let ailing = ailing().await;
    let filter = stage("llm_filter", json!({"criteria": "good"}));
    let id = ailing.made(vec![sorted(), filter]).await;
    ailing.script.will(500, "down");
    ailing
        .ask(&id)
        .await
        .error(503, "InferenceServiceUnavailableError");
    let executions = format!("/v1/retrievers/{id}/executions");
    let call = async |method: &str, path: &str, body: Value| {
        let answer = ailing.server.call_in(&ailing.namespace, method, path, body);
        answer.await.ok()
    };
    // The history is written behind the answers.
    let failed = loop {
        let path = format!("{executions}/list");
        let list = call("POST", &path, json!({"status": "failed"})).await;
        if let Some(one) = list["results"].get(0) {
            break one["execution_id"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let told = call("GET", &format!("{executions}/{failed}"), Value::Null).await;
    assert_eq!(told["status"], "failed");
    let stages = &told["stage_statistics"]["stages"];
    assert!(stages["sort_attribute"]["error"].is_null(), "{told:#}");
    let reason = stages["llm_filter"]["error"].as_str().unwrap();
    assert!(reason.contains("500"), "{told:#}");
    let status = call("GET", &format!("{executions}/{failed}/status"), Value::Null).await;
    assert_eq!(
        (&status["stages_completed"], &status["total_stages"]),
        (&json!(1), &json!(2)),
        "{status:#}"
    );
    let profile = call(
        "GET",
        &format!("{executions}/{failed}/profile"),
        Value::Null,
    )
    .await;
    assert_eq!(
        profile["stages"].as_array().unwrap().len(),
        2,
        "{profile:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_those_that_the_endpoint_counts() {
    let ailing = ailing().await;
    let summarize = stage("summarize", json!({"max_output_tokens": 16_000}));
    let id = ailing.made(vec![sorted(), summarize]).await;
    ailing.script.will_answer(
        "films",
        json!({"prompt_tokens": 40, "completion_tokens": 2}),
    );
    // Counted as what may come, seven of these would be more than a minute has.
    for _ in 0..8 {
        let answer = ailing.ask(&id).await.ok();
        let told = &answer["stage_statistics"]["stages"]["summarize"];
        assert_eq!(
            (&told["llm_calls"], &told["tokens_used"]),
            (&json!(1), &json!(42))
        );
    }
    // What nobody answers is given back.
    ailing.script.will(500, "down");
    for _ in 0..8 {
        ailing
            .ask(&id)
            .await
            .error(503, "InferenceServiceUnavailableError");
    }
    ailing.script.will_answer(
        "films",
        json!({"prompt_tokens": 40, "completion_tokens": 2}),
    );
    let asked = json!({"inputs": {"prompt": "what is shown?"}});
    let call = ailing
        .server
        .call_in(&ailing.namespace, "POST", "/v1/inference", asked);
    let told = call.await.ok();
    let tokens = json!({"input": 40, "output": 2, "total": 42});
    assert_eq!(told["tokens_used"], tokens, "{told:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searxng_chooses_by_category_and_pages_by_their_day() {
    let ailing = ailing().await;
    let page = |title: &str, day: Value| json!({"title": title, "url": format!("https://a.example/{title}"), "content": "text", "publishedDate": day});
    let found = json!({"results": [page("old", json!("2025-12-31T10:00:00")), page("new", json!("2026-02-01T00:00:00")),
        page("undated", Value::Null), page("same day", json!("2026-01-31"))]});
    ailing.script.will(200, &found);
    let asked = json!({"query": "films", "category": "news", "start_published_date": "2026-01-31", "include_text": false, "num_results": 3});
    let id = ailing.made(vec![stage("external_web_search", asked)]).await;
    let answer = ailing.ask(&id).await.ok();
    assert_eq!(titles(&answer), ["new", "undated", "same day"]);
    assert!(answer["documents"][0]["content"].is_null(), "{answer:#}");
    let warned = answer["warnings"][0].as_str().unwrap();
    assert!(warned.contains("1 pages tell no day"), "{answer:#}");
    let sent = ailing.script.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        (&sent["categories"], &sent["format"]),
        (&json!("news"), &json!("json"))
    );
    let never = json!({"query": "films", "start_published_date": "last week"});
    let id = ailing.made(vec![stage("external_web_search", never)]).await;
    ailing.ask(&id).await.error(400, "BadRequestError");
}
