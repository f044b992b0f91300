//! Keys of end users see the documents that they own or were granted, on every path that reads.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{both, harness::Server};

struct Person {
    key: String,
    /// Ids of the documents that this person wrote.
    own: Vec<String>,
}

async fn call(
    server: &Server,
    key: &str,
    namespace: &str,
    method: &str,
    path: &str,
    body: Value,
) -> crate::harness::Answer {
    let mut request = server
        .request(method, path)
        .bearer_auth(key)
        .header("x-namespace", namespace);
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await
}

async fn person(server: &Server, namespace: &str, name: &str, documents: usize) -> Person {
    let body = json!({"name": name, "principal_id": name, "permissions": ["delete"]});
    let keys = "/v1/organizations/users/owner@localhost/api-keys";
    let made = server.call("POST", keys, body).await.ok();
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("usr_sk_"));
    let mut own = Vec::new();
    for number in 0..documents {
        let body = json!({"title": format!("{name} {number}"), "author": name});
        let made = call(
            server,
            &key,
            namespace,
            "POST",
            "/v1/collections/things/documents",
            body,
        )
        .await
        .ok();
        own.push(made["document_id"].as_str().unwrap().to_owned());
    }
    Person { key, own }
}

fn ids(documents: &Value) -> BTreeSet<String> {
    documents
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["document_id"].as_str().unwrap().to_owned())
        .collect()
}

both! {
    async fn each_path_shows_exactly_the_documents_of_the_person(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "people").await;
        let things = "/v1/collections/things/documents";
        let mut unowned = Vec::new();
        for number in 0..3 {
            let made = server.call_in(&namespace, "POST", things, json!({"title": format!("office {number}")})).await.ok();
            unowned.push(made["document_id"].as_str().unwrap().to_owned());
        }
        let ada = person(&server, &namespace, "ada", 4).await;
        let bob = person(&server, &namespace, "bob", 3).await;
        // Ada is granted one of Bob's by Bob, and one of the office's; one of Bob's is everybody's.
        call(&server, &bob.key, &namespace, "PATCH", &format!("{things}/{}/acl", bob.own[0]), json!({"read": ["ada"]})).await.ok();
        call(&server, &bob.key, &namespace, "PATCH", &format!("{things}/{}/acl", bob.own[1]), json!({"public": true})).await.ok();
        server.call_in(&namespace, "PATCH", &format!("{things}/{}/acl", unowned[0]), json!({"read": ["ada"]})).await.ok();

        let mut adas: BTreeSet<String> = ada.own.iter().cloned().collect();
        adas.extend([bob.own[0].clone(), bob.own[1].clone(), unowned[0].clone()]);
        let bobs: BTreeSet<String> = bob.own.iter().cloned().collect();
        let everything: BTreeSet<String> = ada.own.iter().chain(&bob.own).chain(&unowned).cloned().collect();
        for (key, seen) in [(&ada.key, &adas), (&bob.key, &bobs), (&server.key, &everything)] {
            let list = call(&server, key, &namespace, "GET", &format!("{things}?limit=100&include_total=true"), Value::Null).await.ok();
            assert_eq!(&ids(&list["results"]), seen);
            let list = call(&server, key, &namespace, "POST", &format!("{things}/list?include_total=true"), json!({"filters": {"field": "title", "operator": "exists", "value": true}, "limit": 100})).await.ok();
            assert_eq!(&ids(&list["results"]), seen);
            let count = call(&server, key, &namespace, "GET", &format!("{things}/count"), Value::Null).await.ok();
            assert!(count.as_object().unwrap().values().any(|value| *value == json!(seen.len())), "{count}");
            let body = json!({"inputs": {}, "pagination": {"method": "offset", "page_size": 100}});
            let found = call(&server, key, &namespace, "POST", &format!("/v1/retrievers/{retriever}/execute"), body).await.ok();
            assert_eq!(&ids(&found["documents"]), seen, "{found}");
            for id in &everything {
                let answer = call(&server, key, &namespace, "GET", &format!("{things}/{id}"), Value::Null).await;
                assert_eq!(answer.status, if seen.contains(id) { 200 } else { 404 });
                if !seen.contains(id) {
                    let unknown = "doc_00000000000000000000000000000000";
                    let missing = call(&server, key, &namespace, "GET", &format!("{things}/{unknown}"), Value::Null).await;
                    assert_eq!(answer.body.to_string().replace(id, "ID"), missing.body.to_string().replace(unknown, "ID"));
                }
            }
        }
        // What may be read may not therefore be changed, and nobody gives away what is another's.
        for (method, path, body, status) in [
            ("PATCH", format!("{things}/{}", bob.own[0]), json!({"title": "taken"}), 403),
            ("DELETE", format!("{things}/{}", bob.own[0]), Value::Null, 404),
            ("PATCH", format!("{things}/{}/acl", bob.own[0]), json!({"write": ["ada"]}), 403),
            ("PATCH", format!("{things}/{}", bob.own[2]), json!({"title": "taken"}), 404),
            ("DELETE", format!("{things}/{}", bob.own[2]), Value::Null, 404),
        ] {
            let answer = call(&server, &ada.key, &namespace, method, &path, body).await;
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        }
        let still = server.call_in(&namespace, "GET", &format!("{things}/{}", bob.own[0]), Value::Null).await.ok();
        assert_eq!(still["title"], "bob 0");
    }
}
