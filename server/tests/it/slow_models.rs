//! Public pages whose model does not answer in time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};

use crate::{
    batches::library,
    both,
    harness::Server,
    machine::with_embedder,
    stages::{retriever, stage},
};

/// Whether the model takes its time.
type Slow = Arc<AtomicBool>;

async fn embed(State(slow): State<Slow>, Json(body): Json<Value>) -> Json<Value> {
    if slow.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let texts = body["inputs"].as_array().unwrap().iter();
    let vector = |_| [[1.0].as_slice(), &[0.0; 383]].concat();
    Json(json!(texts.map(vector).collect::<Vec<_>>()))
}

/// The server again, with such a model.
async fn with_model(server: Server) -> (Server, Slow) {
    let slow = Slow::default();
    let router = Router::new().route("/embed", post(embed));
    let router = router.with_state(slow.clone());
    (with_embedder(server, router).await, slow)
}

/// Publishes a search for words under a name, by meaning alone or by keywords, too.
async fn publish(
    server: &Server,
    (namespace, collection): (&str, &str),
    name: &str,
    lexical: bool,
) {
    let known = server
        .call_in(
            namespace,
            "GET",
            &format!("/v1/collections/{collection}"),
            Value::Null,
        )
        .await
        .ok();
    let search = json!({"feature_uri": known["vector_indexes"][0]["feature_uri"], "top_k": 10, "lexical": lexical,
        "query": {"input_mode": "text", "value": "{{INPUT.query}}"}});
    let search = stage(
        "feature_search",
        json!({"searches": [search], "final_top_k": 10}),
    );
    let id = retriever(server, namespace, collection, vec![search]).await;
    let input = json!({"field_name": "query", "field_schema": {"type": "text"}, "input_type": "text", "label": "Words"});
    let page = json!({"public_name": name, "display_config": {"title": name, "inputs": [input], "exposed_fields": ["title"]}});
    let path = format!("/v1/retrievers/{id}/publish");
    server.call_in(namespace, "POST", &path, page).await.ok();
}

/// The page as a visitor gets it: its status, its text, and how long it took.
async fn visit(server: &Server, name: &str) -> (u16, String, Duration) {
    let began = Instant::now();
    let page = Server::send(server.request("GET", &format!("/r/{name}?query=dough"))).await;
    let text = page.body.as_str().unwrap_or_default().to_owned();
    (page.status, text, began.elapsed())
}

const PARTIAL: &str = "Something that this search needs did not answer";

both! {
    async fn a_page_waits_for_no_slow_model(server) {
        let (server, slow) = with_model(server).await;
        let (namespace, _, collection) = library(&server, "text_extractor", "text").await;
        let documents = format!("/v1/collections/{collection}/documents");
        let bread = json!({"title": "Bread", "text": "Knead flour and yeast and bake the dough."});
        server.call_in(&namespace, "POST", &documents, bread).await.ok();
        let place = (namespace.as_str(), collection.as_str());
        publish(&server, place, "by-both", true).await;
        publish(&server, place, "by-meaning", false).await;
        slow.store(true, Ordering::Release);
        let (both, meaning) = tokio::join!(visit(&server, "by-both"), visit(&server, "by-meaning"));
        // Keywords need no model: they find within the page's five seconds, and the visitor is told that there may be more.
        let (status, text, took) = both;
        assert!(status == 200 && text.contains("Bread") && text.contains(PARTIAL), "{status} {text}");
        assert!(took < Duration::from_secs(6), "{took:?}");
        let (status, text, took) = meaning;
        assert!(status == 503 && text.contains("The search was not finished"), "{status} {text}");
        assert!(took < Duration::from_secs(9), "{took:?}");
        // Nothing of that is kept for those who come when the model is back.
        slow.store(false, Ordering::Release);
        let (status, text, _) = visit(&server, "by-both").await;
        assert!(status == 200 && text.contains("Bread") && !text.contains(PARTIAL), "{status} {text}");
    }
}
