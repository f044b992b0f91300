//! Many who write one document at once: what each of them says stands, and what is removed stays away.

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use loupe_engine::store::{Document, ListQuery, Reach, WithVectors};
use loupe_server::{
    auth::{Caller, Scope, Write},
    v1::{collections, documents},
};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    clusters::{by_vectors, executed, make, things},
    harness::{Server, retriever},
};

const THINGS: &str = "/v1/collections/things/documents";

async fn write(server: &Server, namespace: &str, title: &str) -> String {
    let body = json!({"title": title, "count": 0, "vectors": {"own": [1.0, 0.0, 0.0]}});
    let made = server.call_in(namespace, "POST", THINGS, body).await.ok();
    made["document_id"].as_str().unwrap().to_owned()
}

async fn read(server: &Server, namespace: &str, id: &str) -> Value {
    let path = format!("{THINGS}/{id}");
    server
        .call_in(namespace, "GET", &path, Value::Null)
        .await
        .ok()
}

/// The collection as work of the server writes to it.
async fn spec(server: &Server, namespace: &str) -> loupe_engine::store::CollectionSpec {
    let found = collections::COLLECTIONS.find(server.app.db(), namespace, "things");
    collections::spec(&server.app, namespace, &found.await.unwrap())
}

/// Who work of the server is done by.
async fn within(server: &Server, namespace: &str) -> Scope<Write> {
    let me = server.call("GET", "/v1/me", Value::Null).await.ok();
    let caller = Caller::system(me["organization_id"].as_str().unwrap());
    Scope::internal(caller, namespace.to_owned())
}

both! {
    async fn changes_of_one_document_at_once_all_stand(server) {
        let (namespace, _) = retriever(&server, "turns").await;
        let id = write(&server, &namespace, "one").await;
        let call = async |method: &str, path: String, body: Value| server.call_in(&namespace, method, &path, body).await.ok();
        let patches = join_all((0..15).map(|n| call("PATCH", format!("{THINGS}/{id}"), json!({format!("patched_{n}"): n}))));
        let named = join_all((0..5).map(|n| {
            let update = json!({"document_id": id, "update_data": {format!("named_{n}"): n}});
            call("POST", format!("{THINGS}/batch"), json!({"updates": [update]}))
        }));
        let matching = join_all((0..5).map(|n| {
            let filters = json!({"AND": [{"field": "title", "operator": "eq", "value": "one"}]});
            call("PATCH", format!("{THINGS}/bulk"), json!({"filters": filters, "update_data": {format!("matched_{n}"): n}}))
        }));
        let shared = join_all([json!({"public": true}), json!({"read": ["ada"]}), json!({"write": ["bob"]})].map(|acl| {
            call("PATCH", format!("{THINGS}/{id}/acl"), acl)
        }));
        // What work of the server counts is counted once each.
        let scope = within(&server, &namespace).await;
        let (spec, ids) = (spec(&server, &namespace).await, [id.clone()]);
        let count = |document: &mut Document| {
            let counted = document.payload["count"].as_i64().unwrap();
            document.payload.insert("count".into(), json!(counted + 1));
            true
        };
        let counts = join_all((0..10).map(|_| documents::rewrite(&server.app, &scope, &spec, &ids, &count)));
        let (_, (_, (_, (_, counts)))) = join(patches, join(named, join(matching, join(shared, counts)))).await;
        assert!(counts.into_iter().all(|written| written.unwrap() == ids));

        let one = read(&server, &namespace, &id).await;
        for (kind, many) in [("patched", 15), ("named", 5), ("matched", 5)] {
            for n in 0..many {
                assert_eq!(one[format!("{kind}_{n}")], n, "{kind}_{n}: {one:#}");
            }
        }
        let acl = &one["_internal"]["_acl"];
        assert_eq!((&acl["public"], &acl["read"], &acl["write"]), (&json!(true), &json!(["ada"]), &json!(["bob"])), "{one:#}");
        assert_eq!(one["count"], 10, "{one:#}");
    }

    async fn a_removed_document_does_not_come_back(server) {
        let (namespace, _) = retriever(&server, "removed").await;
        let scope = within(&server, &namespace).await;
        let spec = spec(&server, &namespace).await;
        for number in 0..8 {
            let id = write(&server, &namespace, "one").await;
            let path = format!("{THINGS}/{id}");
            let (path, namespace, server) = (path.as_str(), namespace.as_str(), &server);
            let patches = join_all((0..6).map(|n| server.call_in(namespace, "PATCH", path, json!({"n": n}))));
            let bulk = server.call_in(namespace, "PATCH", &format!("{THINGS}/bulk"), json!({"update_data": {"all": number}})).await;
            bulk.ok();
            let all = async { server.call_in(namespace, "PATCH", &format!("{THINGS}/bulk"), json!({"update_data": {"all": number}})).await };
            let acl = async { server.call_in(namespace, "PATCH", &format!("{path}/acl"), json!({"public": true})).await };
            let gone = server.call_in(namespace, "DELETE", path, Value::Null);
            let ((patched, acl), (gone, all)) = join(join(patches, acl), join(gone, all)).await;
            gone.ok();
            all.ok();
            for answer in patched.into_iter().chain([acl]) {
                assert!(matches!(answer.status, 200 | 404), "{:#}", answer.body);
            }
            server.call_in(namespace, "GET", path, Value::Null).await.error(404, "NotFoundError");
            // Nor by work of the server that read it before.
            let told = |document: &mut Document| document.payload.insert("told".into(), json!(true)).is_none();
            assert!(documents::rewrite(&server.app, &scope, &spec, &[id], &told).await.unwrap().is_empty());
        }
        let left = server.call_in(&namespace, "GET", &format!("{THINGS}/count"), Value::Null).await.ok();
        assert_eq!(left["count"], 0);
    }

    async fn what_goes_with_its_object_does_not_come_back(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a few words"});
        let object = object(&server, &namespace, &bucket, "one", text).await;
        process(&server, &namespace, &bucket).await;
        let reach = Reach { namespace_id: namespace.clone(), collection_ids: vec![collection.clone()], principal: None };
        let query = ListQuery { limit: 10, vectors: WithVectors::Yes, ..Default::default() };
        let made = server.app.store().list(&reach, query).await.unwrap().documents;
        let ids: Vec<String> = made.iter().map(|one| one.document_id.clone()).collect();
        // Somebody has read it, and writes it once its removal was told.
        let turn = server.app.writers.turn(&ids).await;
        let gone = server.call_in(&namespace, "DELETE", &format!("/v1/buckets/{bucket}/objects/{object}"), Value::Null).await;
        assert_eq!(gone.status, 204);
        let start = Instant::now();
        while server.events("document.deleted").await.is_empty() {
            assert!(start.elapsed().as_secs() < 180, "no removal is told");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Long enough for who does not wait.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let found = collections::COLLECTIONS.find(server.app.db(), &namespace, &collection);
        let spec = collections::spec(&server.app, &namespace, &found.await.unwrap());
        server.app.store().upsert(&spec, made).await.unwrap();
        drop(turn);
        while server.app.store().count(&reach, None).await.unwrap() > 0 {
            assert!(start.elapsed().as_secs() < 180, "the document stays");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn documents_that_are_sent_again_keep_who_sees_them(server) {
        let body = json!({"namespace_id": "films", "vector_configs": [{"name": "plot", "dimension": 3}]});
        server.call("POST", "/v1/namespaces/standalone", body).await.ok();
        let path = "/v1/namespaces/films/documents/upsert";
        let film = |title: String| json!({"documents": [{"document_id": "film", "vectors": {"plot": [1, 0, 0]}, "payload": {"title": title}}]});
        // Sent by several at once it is made once.
        let sent = join_all((0..8).map(|n| server.call("POST", path, film(format!("first {n}"))))).await;
        let id = sent[0].body["document_ids"][0].as_str().unwrap().to_owned();
        sent.into_iter().for_each(|answer| assert_eq!(answer.ok()["document_ids"][0], id));
        assert_eq!(server.events("document.created").await.len(), 1);
        assert_eq!(server.events("document.updated").await.len(), 7);

        let acl = format!("/v1/collections/documents/documents/{id}/acl");
        let again = join_all((0..8).map(|n| server.call("POST", path, film(format!("again {n}")))));
        let (_, shared) = join(again, server.call_in("films", "PATCH", &acl, json!({"read": ["ada"], "public": true}))).await;
        shared.ok();
        let now = server.call_in("films", "GET", &format!("/v1/collections/documents/documents/{id}"), Value::Null).await.ok();
        assert_eq!((&now["_internal"]["_acl"]["public"], &now["_internal"]["_acl"]["read"]), (&json!(true), &json!(["ada"])), "{now:#}");
        assert!(now["title"].as_str().unwrap().starts_with("again"), "{now:#}");
    }

    async fn what_callers_write_while_clusters_are_told_stands(server) {
        let namespace = things(&server, "told").await;
        let mut body = by_vectors("kinds", "kmeans", json!({"n_clusters": 3}));
        body["enrich_source_collection"] = json!(true);
        let cluster = make(&server, &namespace, body).await;
        let list = async || {
            let page = server.call_in(&namespace, "POST", &format!("{THINGS}/list"), json!({"limit": 100})).await.ok();
            page["results"].as_array().unwrap().clone()
        };
        let before = list().await;
        let patches = before.iter().enumerate().map(|(n, one)| {
            let path = format!("{THINGS}/{}", one["document_id"].as_str().unwrap());
            let (server, namespace) = (&server, &namespace);
            async move {
                let answer = match n {
                    0 => server.call_in(namespace, "DELETE", &path, Value::Null).await,
                    _ => server.call_in(namespace, "PATCH", &path, json!({"note": n})).await,
                };
                answer.ok();
            }
        });
        join(executed(&server, &namespace, &cluster, Value::Null), join_all(patches)).await;
        let after = list().await;
        assert_eq!(after.len(), before.len() - 1);
        for (n, one) in before.iter().enumerate().skip(1) {
            let now = after.iter().find(|now| now["document_id"] == one["document_id"]).unwrap();
            assert_eq!((&now["note"], now["cluster_id"].is_string()), (&json!(n), true), "{now:#}");
        }
    }
}
