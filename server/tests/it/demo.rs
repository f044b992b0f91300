//! The demo, from nothing to a page that finds what is asked for. Needs the models; see [`crate::harness`].

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{billing::amid_a_month, both, harness::Server};

/// The task once it has ended.
async fn ended(server: &Server, task_id: &str) -> Value {
    let start = Instant::now();
    loop {
        let task = server
            .call("GET", &format!("/v1/tasks/{task_id}"), Value::Null)
            .await
            .ok();
        if !["PENDING", "QUEUED", "IN_PROGRESS", "PROCESSING"]
            .contains(&task["status"].as_str().unwrap())
        {
            return task;
        }
        assert!(start.elapsed() < Duration::from_secs(1200), "{task:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Titles that the public page finds, best first.
async fn titles(server: &Server, name: &str, body: Value) -> Vec<String> {
    let request = server.request("POST", &format!("/v1/public/retrievers/{name}/execute"));
    let found = Server::send(request.json(&body)).await.ok();
    let title = |document: &Value| document["title"].as_str().unwrap().to_owned();
    found["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(title)
        .collect()
}

both! {
    async fn the_demo_goes_from_nothing_to_a_page_that_answers(server) {
        amid_a_month(&server);
        let demo = server.call("POST", "/v1/quickstart/demo", Value::Null).await.ok();
        let task = ended(&server, demo["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let progress = &task["additional_data"]["progress"];
        assert_eq!(progress["processed"], progress["total"], "{task:#}");
        assert_eq!(progress["failed"], 0, "{task:#}");

        // Its objects fill two collections, and are paid for once.
        let spent = server.call("GET", "/v1/organizations/billing/usage/breakdown", Value::Null).await.ok();
        let extractors = spent["by_extractor"].as_object().unwrap().values();
        let extractors = extractors.map(|credits| credits.as_i64().unwrap()).sum::<i64>();
        let ingestion = spent["by_operation"]["ingestion"].as_i64().unwrap();
        assert!(ingestion > 4 && (extractors - ingestion).abs() <= 2, "{spent:#}");

        let again = server.call("POST", "/v1/quickstart/demo", Value::Null).await.ok();
        assert_eq!(again, demo, "asked again, it answers what is there");

        let name = demo["public_name"].as_str().unwrap();
        for (query, good) in [
            ("a big cat", ["Lion", "Tiger", "Leopard", "Jaguar", "Cheetah"].as_slice()),
            ("something to make music with", &["Guitar", "Trumpet", "Drum", "Cello"]),
            ("a planet with rings", &["Saturn"]),
            ("ein Frosch", &["Frog"]),
        ] {
            let found = titles(&server, name, json!({"inputs": {"query": query}})).await;
            let is_good = |title: &String| good.iter().any(|good| title.to_lowercase().contains(&good.to_lowercase()));
            assert!(found.iter().take(3).any(is_good), "{query}: {found:?}");
        }
        assert!(!titles(&server, name, json!({})).await.is_empty(), "nothing asked shows some of everything");

        // What is like an example is ranked, and no hand of others comes with it.
        let request = server.request("POST", &format!("/v1/public/retrievers/{name}/execute"));
        let lion = Server::send(request.json(&json!({"inputs": {"query": "a lion"}}))).await.ok();
        let like = json!({"inputs": {"similar_to": lion["documents"][0]["document_id"]}});
        let found = titles(&server, name, like.clone()).await;
        assert_eq!(found, titles(&server, name, like).await);
        assert!((10..=24).contains(&found.len()) && found.iter().take(5).any(|title| title.contains("iger") || title.contains("Leopard")), "{found:?}");

        let page = Server::send(server.request("GET", demo["public_url"].as_str().unwrap())).await;
        let html = page.body.as_str().unwrap();
        assert!(html.matches("<img").count() >= 20, "{html}");
        let picture = html.split("<img src=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
        let picture = server.request("GET", &picture).send().await.unwrap();
        assert_eq!(picture.status(), 200);
        assert_eq!(picture.headers()["content-type"], "image/jpeg");
    }

    async fn the_demo_is_for_admins(server) {
        let path = "/v1/organizations/users/owner@localhost/api-keys";
        let made = server.call("POST", path, json!({"name": "writer", "permissions": ["write"]})).await.ok();
        let request = server.request("POST", "/v1/quickstart/demo").bearer_auth(made["key"].as_str().unwrap());
        Server::send(request).await.error(403, "ForbiddenError");
    }
}
