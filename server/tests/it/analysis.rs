//! Agents that have a second model look at the content of their document.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};

use crate::{
    deciding::illustrated_by,
    harness::Server,
    machines::{sorted, titles},
    stages::{execute, retriever, stage},
};

/// Keys and bodies as they came.
type Seen = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// An agent that asks about its document once, and answers with what it was told; without tools, the model that it asks.
async fn chat(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let key = headers.get("authorization");
    let key = key.map(|key| key.to_str().unwrap().to_owned());
    let messages = body["messages"].as_array().unwrap();
    let told = messages.iter().find(|one| one["role"] == "tool");
    let call = |name: &str, arguments: Value| {
        json!({"content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}]})
    };
    let said = match (body.get("tools"), told) {
        (None, _) => json!({"content": " red all over "}),
        (_, None) => call("analyze_content", json!({"question": "Which color is it?"})),
        (_, Some(told)) => call("answer", json!({"said": told["content"]})),
    };
    seen.lock().unwrap().push((key, body));
    Json(json!({"choices": [{"message": said}]}))
}

async fn server(pictures: bool) -> (Server, Seen, String, String) {
    let seen = Seen::default();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .with_state(seen.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let (server, namespace, things) = illustrated_by(&address, pictures).await;
    let secret = json!({"secret_name": "mine", "secret_value": "sk-of-our-own-1"});
    server
        .call("POST", "/v1/organizations/secrets", secret)
        .await
        .ok();
    (server, seen, namespace, things)
}

fn agentic(more: Value) -> Value {
    let mut parameters = json!({"system_prompt": "What is it?", "output_schema": {"said": "string"}, "max_turns": 3});
    let members = parameters.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    stage("agentic_enrich", parameters)
}

/// What the model without tools was asked, and with which keys; forgets what was seen.
fn analyses(seen: &Seen) -> Vec<(Option<String>, Value)> {
    let all = std::mem::take(&mut *seen.lock().unwrap());
    let is_analysis = |(_, body): &(Option<String>, Value)| body.get("tools").is_none();
    all.into_iter().filter(is_analysis).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_another_model_look_at_its_document() {
    let (server, seen, namespace, things) = server(true).await;
    let own = Some("Bearer sk-of-our-own-1".to_owned());
    let stages = vec![
        sorted(),
        agentic(
            json!({"analysis_provider": {"provider": "google", "model_name": "looker", "api_key": "mine"}}),
        ),
    ];
    let one = retriever(&server, &namespace, &things, stages).await;
    let answer = execute(&server, &namespace, &one, json!({})).await;
    assert_eq!(titles(&answer), ["plain", "red"]);
    for document in answer["documents"].as_array().unwrap() {
        let said = &document["metadata"]["classification"]["said"];
        assert_eq!(said, r#"{"answer":"red all over"}"#, "{answer:#}");
    }
    let told = &answer["stage_statistics"]["stages"]["agentic_enrich"];
    assert_eq!(
        (&told["llm_calls"], &told["metadata"]["pictures"]),
        (&json!(6), &json!(1)),
        "{told:#}"
    );
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("`google` is not configured"), "{warning}");
    {
        let seen = seen.lock().unwrap();
        let (key, body) = &seen[0];
        assert_eq!((key, &body["model"]), (&None, &json!("small")));
        let tools = body["tools"].as_array().unwrap().iter();
        let tools: Vec<&Value> = tools.map(|one| &one["function"]["name"]).collect();
        assert!(tools.contains(&&json!("analyze_content")), "{tools:?}");
    }
    // The second model is asked with its own key, and shown the picture of the document that has one.
    let asked = analyses(&seen);
    assert_eq!(asked.len(), 2);
    for (key, body) in &asked {
        assert_eq!((key, &body["model"]), (&own, &json!("looker")));
    }
    let plain = asked[0].1["messages"][1]["content"].as_str().unwrap();
    assert!(
        plain.contains("Which color is it?") && plain.contains("plain"),
        "{plain}"
    );
    let red = &asked[1].1["messages"][1]["content"];
    let picture = red[1]["image_url"]["url"].as_str().unwrap();
    assert!(picture.starts_with("data:image/jpeg;base64,"), "{picture}");
    assert!(!answer.to_string().contains("sk-of-our-own"));
    // A secret that is none is found out when the retriever is made.
    let stages = [agentic(
        json!({"analysis_provider": {"api_key": "nobodys"}}),
    )];
    let body = json!({"retriever_name": "n", "collection_identifiers": [things], "stages": stages});
    server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .error(404, "NotFoundError");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_the_tools_that_are_enabled() {
    let (server, seen, namespace, things) = server(false).await;
    let run = async |more: Value| {
        let one = retriever(&server, &namespace, &things, vec![sorted(), agentic(more)]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        answer["documents"][1]["metadata"]["classification"]["said"].clone()
    };
    // Named among the tools it asks the configured model, with the stage's key; this one looks at no pictures.
    let said = run(json!({"enabled_tools": ["analyze_content"], "api_key": "mine"})).await;
    assert_eq!(said, r#"{"answer":"red all over"}"#);
    let asked = analyses(&seen);
    assert_eq!(asked.len(), 2);
    for (key, body) in &asked {
        let key = key.as_deref();
        assert_eq!(key, Some("Bearer sk-of-our-own-1"));
        assert_eq!(body["model"], "small");
        assert!(body["messages"][1]["content"].is_string(), "{body:#}");
    }
    for without in [
        json!({}),
        json!({"enabled_tools": [], "analysis_provider": {}}),
    ] {
        let said = run(without).await;
        assert_eq!(said, "error: there is no tool `analyze_content`");
        assert!(analyses(&seen).is_empty());
    }
}
