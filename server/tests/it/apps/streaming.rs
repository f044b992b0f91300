//! What `/api` of an app streams comes piece by piece: a visitor hears of a stage while the next one is under way.

use std::{sync::Arc, time::Duration};

use axum::{Router, http::StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{at, deploy, make};
use crate::{
    both,
    fetching::serve,
    harness::Server,
    stages::{collection, retriever, stage},
    transforming::asking,
};

/// A service that answers once somebody says so; its address.
async fn patient(said: Arc<Semaphore>) -> String {
    let answer = move || {
        let said = said.clone();
        async move {
            let _said = said.acquire().await.unwrap();
            (StatusCode::OK, json!("known").to_string())
        }
    };
    serve(Router::new().fallback(answer), "127.0.0.2").await
}

/// The next piece of an answer, until it is whole.
async fn piece(response: &mut reqwest::Response) -> Option<String> {
    let patience = Duration::from_secs(120);
    let piece = tokio::time::timeout(patience, response.chunk()).await;
    let piece = piece.unwrap().unwrap();
    piece.map(|piece| String::from_utf8_lossy(&piece).into_owned())
}

/// A retriever whose last stage asks that service.
async fn slow(server: &Server, namespace: &str, said: &Arc<Semaphore>) -> String {
    let films = collection(server, namespace, "films", &[json!({"title": "M"})]).await;
    let order = json!({"field": "title", "direction": "desc"});
    let mut asked = asking(&patient(said.clone()).await, None);
    // Long enough for a busy machine.
    asked["config"]["parameters"]["timeout"] = json!(30);
    let stages = vec![stage("sort_attribute", order), asked];
    retriever(server, namespace, &films, stages).await
}

both! {
    async fn a_visitor_hears_of_a_stage_before_the_next_one_ends(server) {
        let namespace = server.namespace("films").await;
        let said = Arc::new(Semaphore::new(0));
        let id = slow(&server, &namespace, &said).await;
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films"})).await;
        let path = format!("/api/retrievers/{id}/execute");
        let asked = at(&server, "films", "POST", &path).json(&json!({"inputs": {}, "stream": true}));
        let mut response = asked.send().await.unwrap();
        assert_eq!(response.status(), 200);

        let mut heard = String::new();
        while !heard.contains("stage_complete") {
            heard += &piece(&mut response).await.unwrap();
        }
        assert!(!heard.contains("execution_complete"), "{heard}");
        // Nothing but this lets the last stage end with an answer: had the events come together, the call would have been given up.
        said.add_permits(1);
        while let Some(piece) = piece(&mut response).await {
            heard += &piece;
        }
        let last = heard.lines().rfind(|line| line.contains("execution_complete"));
        let last: Value = serde_json::from_str(last.unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(last["documents"][0]["facts"], "known", "{last:#}");
    }
}
