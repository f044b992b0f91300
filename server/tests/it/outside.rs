//! Stages that reach beyond the documents: an agent that works with tools, databases of others, pages of the web, search by
//! picture, code. The machines that they ask are small servers that speak the same protocols.

mod rows;

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Query, State},
    response::Html,
    routing::{get, post},
};
use loupe_engine::stage::{CodeConfig, ReverseImageConfig};
use serde_json::{Value, json};

use crate::{
    harness::{self, Database, Server},
    stages::{collection, execute, retriever, stage},
};

/// Bodies and queries as they came.
type Seen = Arc<Mutex<Vec<Value>>>;

fn call(name: &str, arguments: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{name}"), "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()}}]})
}

/// A model that looks once, reads what came, and answers.
async fn chat(State(seen): State<Seen>, Json(body): Json<Value>) -> Json<Value> {
    let messages = body["messages"].as_array().unwrap();
    let task = messages[0]["content"].as_str().unwrap();
    let told: Vec<&str> = messages
        .iter()
        .filter(|one| one["role"] == "tool")
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    let said = if task.contains("never stop") {
        call("filter_documents", json!({"limit": 1}))
    } else if task.contains("You search") {
        match told.as_slice() {
            [] => call("filter_documents", json!({"filters": {"decade": 1920}})),
            [list] => {
                let list: Vec<Value> = serde_json::from_str(list).unwrap();
                let one = list.iter().filter_map(|one| {
                    let one: Value = serde_json::from_str(one.as_str()?).ok()?;
                    (one["title"] == "Nosferatu").then(|| one["document_id"].clone())
                });
                let ids: Vec<Value> = one.chain([json!("doc_of_nobody")]).collect();
                call(
                    "finish",
                    json!({"document_ids": ids, "reason": "it has the vampire"}),
                )
            }
            _ => panic!("{told:?}"),
        }
    } else {
        match told.as_slice() {
            [] => call("answer", json!({"mood": "bright"})),
            // The first answer was none of the choices.
            [fault] if fault.contains("must be one of") => {
                call("filter_examples", json!({"limit": 3}))
            }
            [_, examples] if examples.contains("an example") => {
                call("answer", json!({"mood": "dark"}))
            }
            other => panic!("{other:?}"),
        }
    };
    seen.lock().unwrap().push(body.clone());
    Json(json!({"choices": [{"message": said}]}))
}

async fn pictures(
    State(seen): State<Seen>,
    Query(asked): Query<std::collections::HashMap<String, String>>,
) -> Json<Value> {
    seen.lock().unwrap().push(json!(asked));
    Json(json!({"visual_matches": [
        {"position": 1, "title": "A poster", "link": "https://a.example/poster", "source": "A", "thumbnail": "https://a.example/t.jpg"},
        {"position": 2, "title": "Another", "link": "https://b.example/", "source": "B"}]}))
}

async fn page() -> Html<&'static str> {
    Html("<title>Facts</title><body><p>It was filmed in the Carpathians.</p></body>")
}

async fn server() -> (Server, Seen, String, String, String) {
    let seen = Seen::default();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/search.json", get(pictures))
        .route("/facts", get(page))
        .with_state(seen.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Sqlite, &folder).await;
    let language = json!({"url": format!("{address}/v1"), "model": "small"});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    config.reverse_image = Some(ReverseImageConfig {
        url: address.clone(),
        api_key: "picture-key".to_owned().into(),
    });
    config.code = CodeConfig {
        enabled: true,
        memory_mb: 16,
    };
    // The PostgreSQL of the tests.
    config.outbound.allow.push("127.0.0.1".into());
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("outside").await;
    let films = [
        json!({"title": "M", "content": "a murderer in the city", "decade": 1930}),
        json!({"title": "Nosferatu", "content": "a vampire comes by ship", "decade": 1920}),
        json!({"title": "Faust", "content": "a bet with the devil", "decade": 1920}),
    ];
    let films = collection(&server, &namespace, "films", &films).await;
    (server, seen, namespace, films, address)
}

fn sorted() -> Value {
    stage(
        "sort_attribute",
        json!({"field": "title", "direction": "asc"}),
    )
}

fn titles(answer: &Value) -> Vec<&str> {
    let documents = answer["documents"].as_array().unwrap().iter();
    documents
        .map(|one| one["title"].as_str().unwrap_or("-"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_searches_with_tools_until_it_has_the_answer() {
    let (server, seen, namespace, films, _) = server().await;
    let run = async |parameters: Value| {
        let one = retriever(
            &server,
            &namespace,
            &films,
            vec![stage("agent_search", parameters)],
        )
        .await;
        execute(
            &server,
            &namespace,
            &one,
            json!({"query": "the one with the vampire"}),
        )
        .await
    };
    let answer = run(json!({"stages": ["attribute_filter"]})).await;
    // A document that no tool has shown is no answer.
    assert_eq!(titles(&answer), ["Nosferatu"], "{answer:#}");
    let told = &answer["stage_statistics"]["stages"]["agent_search"];
    assert_eq!(
        (
            &told["metadata"]["ended"],
            &told["metadata"]["turns"],
            &told["metadata"]["seen"],
            &told["llm_calls"]
        ),
        (&json!("answered"), &json!(2), &json!(2), &json!(2)),
        "{told:#}"
    );
    assert_eq!(told["metadata"]["reason"], "it has the vampire");
    {
        let seen = seen.lock().unwrap();
        let tools: Vec<&str> = seen[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(tools, ["filter_documents", "read_documents", "finish"]);
        let asked = seen[0]["messages"][1]["content"].as_str().unwrap();
        assert!(
            asked.contains("the one with the vampire") && asked.contains("films"),
            "{asked}"
        );
    }
    // One that does not come to an end is ended, and what it saw is the answer.
    let answer = run(json!({"system_prompt": "never stop", "max_iterations": 3})).await;
    assert_eq!(answer["documents"].as_array().unwrap().len(), 1);
    let reason = answer["degraded"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("all turns were taken"), "{answer:#}");
    let last = seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!(last["tool_choice"]["function"]["name"], "finish");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_looks_into_each_document_and_answers_in_a_shape() {
    let (server, seen, namespace, films, _) = server().await;
    let examples = [json!({"content": "an example", "mood": "dark"})];
    let examples = collection(&server, &namespace, "examples", &examples).await;
    let parameters = json!({"system_prompt": "How does {{ DOC.title }} feel?", "max_concurrency": 3,
        "output_schema": {"type": "object", "required": ["mood"], "properties": {"mood": {"type": "string", "enum": ["dark", "light"]}}},
        "example_collection_ids": ["examples"], "when": {"decade": 1920}, "max_turns": 5});
    let one = retriever(
        &server,
        &namespace,
        &films,
        vec![sorted(), stage("agentic_enrich", parameters.clone())],
    )
    .await;
    let answer = execute(&server, &namespace, &one, json!({})).await;
    assert_eq!(titles(&answer), ["Faust", "M", "Nosferatu"]);
    assert_eq!(
        (
            &answer["documents"][0]["metadata"]["classification"],
            answer["documents"][1].get("metadata")
        ),
        (&json!({"mood": "dark"}), None),
        "{answer:#}"
    );
    let told = &answer["stage_statistics"]["stages"]["agentic_enrich"];
    assert_eq!(told["llm_calls"], 6, "{told:#}");
    assert!(seen.lock().unwrap().iter().any(|body| {
        let task = body["messages"][0]["content"].as_str().unwrap();
        task.contains("How does Faust feel?")
    }));
    // The examples are read for whoever executes: who makes the retriever must be allowed to.
    let mut other = parameters;
    other["example_collection_ids"] = json!(["nowhere"]);
    let body = json!({"retriever_name": "n", "collection_identifiers": [films], "stages": [stage("agentic_enrich", other)]});
    server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .error(404, "NotFoundError");
    drop(examples);
}

async fn stages_tell_what_they_lack(server: &Server) {
    let stages = server
        .call("GET", "/v1/retrievers/stages", Value::Null)
        .await
        .ok();
    let of = |id: &str| {
        stages
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["stage_id"] == id)
            .cloned()
            .unwrap()
    };
    assert_eq!(
        (
            &of("code_execution")["available"],
            &of("external_web_search")["available"]
        ),
        (&json!(true), &json!(false))
    );
    assert!(
        of("external_web_search")["unavailable_reason"]
            .as_str()
            .unwrap()
            .contains("web_search")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_pictures_and_code_come_beside_documents() {
    let (server, seen, namespace, films, address) = server().await;
    let run = async |stages: Vec<Value>, inputs: Value| {
        let one = retriever(&server, &namespace, &films, stages).await;
        execute(&server, &namespace, &one, inputs).await
    };
    let limit = stage("limit", json!({"limit": 1}));
    let read = stage(
        "web_scrape",
        json!({"url": format!("{address}/facts"), "output_field": "page"}),
    );
    let answer = run(vec![sorted(), limit.clone(), read], json!({})).await;
    let page = &answer["documents"][0]["page"];
    assert_eq!(page["title"], "Facts", "{answer:#}");
    assert!(page["content"].as_str().unwrap().contains("Carpathians"));
    let own = stage(
        "web_scrape",
        json!({"url": "http://127.0.0.3:8080/", "on_error": "skip"}),
    );
    let answer = run(vec![sorted(), limit.clone(), own], json!({})).await;
    let reason = answer["degraded"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("not on the public internet"), "{answer:#}");
    let found = run(
        vec![
            sorted(),
            limit.clone(),
            stage("external_reverse_image", json!({"top_k": 1})),
        ],
        json!({"image_url": "https://a.example/x.jpg"}),
    )
    .await;
    assert_eq!(titles(&found), ["Faust", "A poster"]);
    assert_eq!(
        found["documents"][1]["document_id"],
        "web:https://a.example/poster"
    );
    {
        let seen = seen.lock().unwrap();
        let asked = seen.last().unwrap();
        assert_eq!(
            (&asked["url"], &asked["engine"], &asked["api_key"]),
            (
                &json!("https://a.example/x.jpg"),
                &json!("google_lens"),
                &json!("picture-key")
            )
        );
    }
    assert!(!found.to_string().contains("picture-key"));
    let code = stage(
        "code_execution",
        json!({"language": "javascript", "code": "const result = DOC.title.length"}),
    );
    let answer = run(vec![sorted(), code], json!({})).await;
    assert_eq!(answer["documents"][0]["computed"], 5, "{answer:#}");
    stages_tell_what_they_lack(&server).await;
}
