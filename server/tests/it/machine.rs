//! A small server that speaks the protocols of machines that stages ask.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    routing::{get, post},
};
use serde_json::{Value, json};

use crate::harness::Server;

/// Requests as they came: path, headers, body.
pub type Seen = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

/// The server again, whose texts become vectors at this one's `/embed` (TEI). It is waited for as long as it takes.
pub async fn with_embedder(server: Server, router: Router) -> Server {
    // Beside the server's own address, whose ports it may not take.
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let endpoint = json!({"output": "all_minilm_l6_v2_v1", "protocol": "tei", "url": url, "dims": 384, "timeout_seconds": 60});
    let server = server.restart_with(|config| {
        config.models.endpoints = vec![serde_json::from_value(endpoint).unwrap()];
    });
    server.await
}

fn note(seen: &Seen, path: &str, headers: HeaderMap, body: Value) {
    seen.lock().unwrap().push((path.to_owned(), headers, body));
}

/// The filter of a sentence; of one that it does not know a filter that is none.
fn filter_of(text: &str) -> Value {
    match text {
        text if text.contains("silent") => {
            json!({"AND": [{"field": "decade", "operator": "lt", "value": 1930}]})
        }
        text if text.contains("secret") => json!({"title": "{{ SECRET.key }}"}),
        // It mends what it was told to be wrong.
        text if text.contains("no field `names`") => json!({"title": {"$starts_with": "F"}}),
        text if text.contains("called F") => json!({"names": "F"}),
        _ => json!({"field": "title", "operator": "like", "value": "x"}),
    }
}

/// Answers as a language model would that knows the films of the tests.
async fn chat(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let (task, content) = (
        body["messages"][0]["content"].as_str().unwrap(),
        &body["messages"][1]["content"],
    );
    // Beside pictures the text is the first part.
    let text = content.as_str().or(content[0]["text"].as_str()).unwrap();
    let said = if task.contains("judge") {
        let judged: Vec<Value> = text.lines().filter(|line| line.starts_with('[')).enumerate()
            .map(|(index, line)| json!({"index": index, "keep": line.contains("vampire") || text.contains(&format!("of: [{index}]")), "reason": "a vampire or not"})).collect();
        json!({"documents": judged}).to_string()
    } else if task.contains("search queries") {
        json!({"queries": ["blood", text, "blood"]}).to_string()
    } else if task.contains("rate how relevant") {
        let rated: Vec<Value> = text.lines().filter(|line| line.starts_with('[')).enumerate()
            .map(|(index, line)| json!({"index": index, "score": if line.contains("vampire") { 0.9 } else { 0.1 }})).collect();
        json!({"documents": rated}).to_string()
    } else if task.contains("filter of documents") {
        json!({"filter": filter_of(text)}).to_string()
    } else if body.get("response_format").is_some() {
        format!("Here it is: {}", json!({"mood": "dark"}))
    } else {
        format!("said of: {text}")
    };
    note(&seen, "chat", headers, body);
    Json(json!({"choices": [{"message": {"content": said}}]}))
}

/// Judges by the number of letters that text and query share.
async fn rerank(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let texts = body["texts"]
        .as_array()
        .or(body["documents"].as_array())
        .unwrap()
        .clone();
    let tei = body["texts"].is_array();
    let query = body["query"].as_str().unwrap().to_owned();
    let mut judged: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let score = if text.as_str().unwrap().contains(&query) {
                0.9
            } else {
                0.1
            };
            if tei {
                json!({"index": index, "score": score})
            } else {
                json!({"index": index, "relevance_score": score})
            }
        })
        .collect();
    judged.reverse();
    note(&seen, "rerank", headers, body);
    Json(if tei {
        json!(judged)
    } else {
        json!({"results": judged})
    })
}

/// Fails for `passing` the first time, and for `lasting` each time.
async fn pages(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Result<Json<Value>, (StatusCode, [(&'static str, &'static str); 1])> {
    let query = body["query"].clone();
    let is_first = seen
        .lock()
        .unwrap()
        .iter()
        .all(|(_, _, asked)| asked["query"] != query);
    note(&seen, "search", headers, body);
    let failure = match query.as_str() {
        Some("passing") if is_first => Some(StatusCode::SERVICE_UNAVAILABLE),
        Some("lasting") => Some(StatusCode::BAD_REQUEST),
        _ => None,
    };
    match failure {
        Some(status) => Err((status, [("retry-after", "0")])),
        None => Ok(Json(
            json!({"results": [{"url": "https://a.example/x", "title": "A", "text": "about a"}, {"url": "https://b.example", "title": "B"}]}),
        )),
    }
}

async fn facts(
    State(seen): State<Seen>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let status = if uri.path().ends_with("/Faust") {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::OK
    };
    note(
        &seen,
        &uri.to_string(),
        headers,
        serde_json::from_str(&body).unwrap_or(Value::Null),
    );
    (
        status,
        json!({"data": {"of": uri.path(), "minutes": 94}}).to_string(),
    )
}

/// The other machine; answers its address and what it was asked.
pub async fn machine() -> (String, Seen) {
    let seen = Seen::default();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/rerank", post(rerank))
        .route("/search", post(pages))
        .route("/facts/{title}", get(facts).post(facts))
        .with_state(seen.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, seen)
}
