//! Stages of retrievers through a whole server: what reads other collections, what asks other machines.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::{both, harness::Server};

/// A collection of documents that callers write; answers its id.
pub async fn collection(
    server: &Server,
    namespace: &str,
    name: &str,
    documents: &[Value],
) -> String {
    let body = json!({"collection_name": name, "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    let made = server
        .call_in(namespace, "POST", "/v1/collections", body)
        .await
        .ok();
    let id = made["collection_id"].as_str().unwrap().to_owned();
    for document in documents {
        let path = format!("/v1/collections/{id}/documents");
        server
            .call_in(namespace, "POST", &path, document.clone())
            .await
            .ok();
    }
    id
}

pub fn stage(id: &str, parameters: Value) -> Value {
    json!({"stage_name": id, "config": {"stage_id": id, "parameters": parameters}})
}

/// Makes a retriever of one collection; answers its id.
pub async fn retriever(
    server: &Server,
    namespace: &str,
    collection: &str,
    stages: Vec<Value>,
) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("r{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let body =
        json!({"retriever_name": name, "collection_identifiers": [collection], "stages": stages});
    let made = server
        .call_in(namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    made["retriever_id"].as_str().unwrap().to_owned()
}

pub async fn execute(server: &Server, namespace: &str, retriever: &str, inputs: Value) -> Value {
    let path = format!("/v1/retrievers/{retriever}/execute");
    server
        .call_in(namespace, "POST", &path, json!({"inputs": inputs}))
        .await
        .ok()
}

both! {
    async fn a_retriever_reads_the_collections_that_its_stages_name(server) {
        let namespace = server.namespace("links").await;
        let films = [json!({"title": "M", "by": "Lang"}), json!({"title": "Faust", "by": "Murnau"})];
        let films = collection(&server, &namespace, "films", &films).await;
        let people = collection(&server, &namespace, "people", &[json!({"name": "Lang", "born": 1890})]).await;
        let enrich = |target: &str| stage("document_enrich", json!({"target_collection_id": target, "source_field": "by",
            "target_field": "name", "fields_to_merge": ["born"], "when": {"by": {"$exists": true}}}));
        let sorted = || stage("sort_attribute", json!({"field": "title", "direction": "desc"}));
        let one = retriever(&server, &namespace, &films, vec![sorted(), enrich(&people)]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!((&answer["documents"][0]["born"], answer["documents"][1].get("born")), (&json!(1890), None));

        // A key that may read the films alone makes no retriever that reads people; an unknown name is not found.
        let refused = |target: &str| json!({"retriever_name": "other", "collection_identifiers": [films], "stages": [enrich(target)]});
        server.call_in(&namespace, "POST", "/v1/retrievers", refused("nobody")).await.error(404, "NotFoundError");
        let elsewhere = server.namespace("elsewhere").await;
        let foreign = collection(&server, &elsewhere, "foreign", &[]).await;
        server.call_in(&namespace, "POST", "/v1/retrievers", refused(&foreign)).await.error(404, "NotFoundError");

        // A clone of the namespace reads its own copy.
        let cloned = server.call("POST", &format!("/v1/namespaces/{namespace}/clone"), json!({"namespace_name": "cloned"})).await.ok();
        server.task_end(cloned["task_id"].as_str().unwrap()).await;
        let ids = &cloned["cloned_resources"];
        let copy = ids["retrievers"][&one].as_str().unwrap();
        let cloned = cloned["namespace"]["namespace_id"].as_str().unwrap();
        let told = server.call_in(cloned, "GET", &format!("/v1/retrievers/{copy}"), Value::Null).await.ok();
        assert_eq!(told["stages"][1]["config"]["parameters"]["target_collection_id"], ids["collections"][&people]);
        assert_eq!(execute(&server, cloned, copy, json!({})).await["documents"][0]["born"], 1890);
    }

    async fn figures_clusters_and_explanations_come_through_the_api(server) {
        let namespace = server.namespace("figures").await;
        let films: Vec<Value> = [1920, 1921, 1931, 1932].iter().map(|year| json!({"year": year, "decade": year / 10 * 10})).collect();
        let films = collection(&server, &namespace, "films", &films).await;
        let aggregate = stage("aggregate", json!({"group_by": [{"field": "decade"}], "sort_by": "decade", "sort_order": "asc",
            "aggregations": [{"function": "max", "field": "year", "alias": "last"}], "post_filters": {"decade": {"$gt": 1920}}}));
        let one = retriever(&server, &namespace, &films, vec![aggregate]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!(answer["documents"], json!([{"decade": 1930, "last": 1932}]));
        let explained = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{one}/execute/explain"), json!({})).await.ok();
        let notes = explained["execution_plan"][0]["optimization_notes"].as_array().unwrap();
        assert!(notes.contains(&json!("computes 1 figures for each decade")) && notes.contains(&json!("then keeps documents where decade gt 1920")), "{notes:?}");
        let stages = server.call("GET", "/v1/retrievers/stages", Value::Null).await.ok();
        let aggregate = stages.as_array().unwrap().iter().find(|s| s["stage_id"] == "aggregate").unwrap();
        assert_eq!(aggregate["parameter_schema"]["properties"]["post_filters"]["format"], "filter");
        let wrong = json!({"retriever_name": "w", "collection_identifiers": [films], "stages": [stage("aggregate", json!({"aggregations": [{"function": "mode", "alias": "x"}]}))]});
        server.call_in(&namespace, "POST", "/v1/retrievers", wrong).await
            .invalid(&["body", "stages", "0", "config", "parameters", "aggregations", "0", "function"], "enum");
    }

    async fn edges_of_objects_lead_from_document_to_document(server) {
        let namespace = server.namespace("edges").await;
        let text = json!({"type": "string"});
        let bucket = json!({"bucket_name": "papers", "bucket_schema": {"properties": {"title": text}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let body = json!({"collection_name": "papers", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "field_passthrough": [{"source_path": "title"}]}});
        let papers = server.call_in(&namespace, "POST", "/v1/collections", body).await.ok()["collection_id"].as_str().unwrap().to_owned();
        // Each cites the one before it; the first cites the last in the words of the last.
        let mut ids: Vec<String> = Vec::new();
        for title in ["first", "second", "third"] {
            let mut edges: Vec<Value> = ids.last().map(|id| json!({"type": "cites", "target_object_id": id})).into_iter().collect();
            if title == "third" {
                edges.push(json!({"type": "cites", "target_object_id": ids[0], "direction": "in", "attributes": {"page": 7}}));
            }
            let object = json!({"title": title, "edges": edges});
            let made = server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects"), object).await.ok();
            ids.push(made["object_id"].as_str().unwrap().to_owned());
        }
        let batch = crate::batches::process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let only = |title: &str| stage("attribute_filter", json!({"field": "title", "operator": "eq", "value": title}));
        let titles = |answer: &Value| -> Vec<String> {
            answer["documents"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
        };
        let walk = stage("traverse_edge", json!({"max_depth": 4, "edge_types": ["cites"]}));
        let one = retriever(&server, &namespace, &papers, vec![only("second"), walk]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!(titles(&answer), ["first", "third"], "{answer:#}");
        let edge = &answer["documents"][1]["edge"];
        assert_eq!((&edge["depth"], &edge["attributes"]["page"], &edge["from_document_id"]), (&json!(2), &json!(7), &answer["documents"][0]["document_id"]));
        assert_eq!(answer["stage_statistics"]["stages"]["traverse_edge"]["metadata"]["hops"].as_array().unwrap().len(), 3);
        let back = stage("traverse_edge", json!({"direction": "in"}));
        let one = retriever(&server, &namespace, &papers, vec![only("first"), back]).await;
        assert_eq!(titles(&execute(&server, &namespace, &one, json!({})).await), ["second"]);
    }

    async fn links_lead_an_end_user_to_no_document_of_another(server) {
        let namespace = server.namespace("friends").await;
        let things = collection(&server, &namespace, "things", &[]).await;
        let path = format!("/v1/collections/{things}/documents");
        let mut keys: Vec<String> = Vec::new();
        let request = |path: &str, key: &str, body: Value| {
            server.request("POST", path).bearer_auth(key).header("x-namespace", &namespace).json(&body)
        };
        for person in ["ada", "bo"] {
            let body = json!({"name": person, "principal_id": person, "permissions": ["delete"]});
            let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
            keys.push(made["key"].as_str().unwrap().to_owned());
            for number in 0..2 {
                let thing = json!({"name": format!("{person} {number}"), "group": "all", "of": "all"});
                Server::send(request(&path, &keys[keys.len() - 1], thing)).await.ok();
            }
        }
        let first = stage("attribute_filter", json!({"field": "name", "operator": "ends_with", "value": " 0"}));
        let walk = stage("traverse_edge", json!({"source_field": "of", "target_field": "group", "direction": "both", "max_depth": 5}));
        let one = retriever(&server, &namespace, &things, vec![first, walk]).await;
        let path = format!("/v1/retrievers/{one}/execute");
        for (person, key) in ["ada", "bo"].iter().zip(&keys) {
            let answer = Server::send(request(&path, key, json!({"inputs": {}}))).await.ok();
            let names: Vec<&Value> = answer["documents"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
            assert_eq!(names, [&json!(format!("{person} 1"))]);
        }
    }
}
