//! Clusters that a language model names: as it is told to, and not twice for the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Names what it is shown by the first word of it.
async fn chat(axum::Json(body): axum::Json<Value>) -> axum::Json<Value> {
    ASKED.fetch_add(1, Ordering::SeqCst);
    let task = body["messages"][0]["content"].as_str().unwrap();
    let text = body["messages"][1]["content"].as_str().unwrap();
    assert!(task.contains("what people do"), "{task}");
    let first = text.split_whitespace().next().unwrap();
    let told = json!([body["model"], body["temperature"], body["max_tokens"]]);
    let named = json!({"label": format!("all about {first}"), "summary": format!("{} samples", text.split("---").count()),
        "keywords": [first, told.to_string()]});
    axum::Json(json!({"choices": [{"message": {"content": named.to_string()}}]}))
}

/// A server with a language model of its own.
async fn server() -> Server {
    let router = axum::Router::new().route("/v1/chat/completions", axum::routing::post(chat));
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::harness::config(crate::harness::Database::Sqlite, &folder).await;
    let language = json!({"url": address, "model": "small", "provider": "openai"});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    Server::start_with(config, folder, None).await
}

fn labels(run: &Value) -> Vec<&str> {
    let centroids = run["centroids"].as_array().unwrap().iter();
    let mut labels: Vec<&str> = centroids
        .map(|one| one["label"].as_str().unwrap())
        .collect();
    labels.sort_unstable();
    labels
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_names_clusters_and_remembers_them() {
    let server = server().await;
    let namespace = things(&server, "named").await;
    let asked = json!({"enabled": true, "labeling_context": "what people do", "max_samples_per_cluster": 4,
        "use_embedding_dedup": false, "labeling_inputs": {"input_mappings": [{"input_key": "text", "path": "title"}]},
        "provider": "openai", "model_name": "large", "parameters": {"temperature": 0.5, "max_tokens": 90}});
    let mut body = by_vectors("named", "kmeans", json!({"n_clusters": 3}));
    body["llm_labeling"] = asked.clone();
    let id = make(&server, &namespace, body).await;
    let run = async |request: Value| executed(&server, &namespace, &id, request).await.1;
    let named = ["all about bread", "all about sailors", "all about violins"];
    let first = run(Value::Null).await;
    assert_eq!(first.get("llm_labeling_errors"), None, "{first:#}");
    assert_eq!(labels(&first), named);
    let one = &first["centroids"][0];
    assert_eq!(
        (&one["summary"], &one["keywords"][1]),
        (&json!("4 samples"), &json!(r#"["large",0.5,90]"#)),
        "{one:#}"
    );
    assert_eq!(ASKED.load(Ordering::SeqCst), 3);

    // The same documents are not asked about again, whatever was assigned meanwhile.
    for request in [Value::Null, json!({"mode": "assign"}), Value::Null] {
        let again = run(request).await;
        assert_eq!(labels(&again), named);
        let (now, before) = (&again["centroids"][0], &first["centroids"][0]);
        assert_eq!(
            (&now["summary"], &now["keywords"]),
            (&before["summary"], &before["keywords"])
        );
    }
    assert_eq!(ASKED.load(Ordering::SeqCst), 3);
    // Another model is another question; and nothing is remembered for no time.
    let mut other = asked.clone();
    other["model_name"] = json!("larger");
    other["provider"] = json!("google");
    let told = run(json!({"llm_labeling": other})).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 6);
    assert_eq!(
        told["llm_labeling_errors"],
        json!(["the provider `google` is not configured; openai took its place"])
    );
    other["cache_ttl_seconds"] = json!(0);
    run(json!({"llm_labeling": other})).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 9);
    // What the cluster asks was not asked by the execution before; a week later it is asked anew.
    run(Value::Null).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 12);
    server.app.clock().advance(8 * 86_400);
    run(Value::Null).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 15);
}

both! {
    async fn what_no_model_would_follow_is_refused(server) {
        let namespace = things(&server, "unfollowed").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({}))).await;
        for (asked, loc, kind) in [
            (json!({"response_shape": {"type": "object"}}), vec!["response_shape"], "not_enabled"),
            (json!({"model_name": 7}), vec!["model_name"], "string_type"),
            (json!({"parameters": {"top_p": 0.5}}), vec!["parameters", "top_p"], "not_enabled"),
            (json!({"parameters": {"temperature": "warm"}}), vec!["parameters", "temperature"], "float_type"),
        ] {
            let loc: Vec<&str> = ["body", "llm_labeling"].into_iter().chain(loc).collect();
            let mut body = by_vectors("x", "kmeans", json!({}));
            body["llm_labeling"] = asked.clone();
            server.call_in(&namespace, "POST", "/v1/clusters", body).await.invalid(&loc, kind);
            let (path, body) = (format!("/v1/clusters/{id}"), json!({"llm_labeling": asked}));
            server.call_in(&namespace, "PATCH", &path, body.clone()).await.invalid(&loc, kind);
            server.call_in(&namespace, "POST", &format!("{path}/execute"), body).await.invalid(&loc, kind);
        }
    }
}
