//! Documents wherever they are, where they come from, and figures over them.

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::{Answer, Server},
};

async fn as_key(
    server: &Server,
    key: &str,
    namespace: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Answer {
    let mut request = server
        .request(method, path)
        .bearer_auth(key)
        .header("x-namespace", namespace);
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await
}

fn ids(documents: &Value) -> Vec<String> {
    let mut ids: Vec<String> = documents
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["document_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// What is told of the documents of a collection.
async fn figures_are_told(server: &Server, namespace: &str) {
    let call = async |what: &str, body: Value| {
        let path = format!("/v1/collections/others/documents/{what}");
        server.call_in(namespace, "POST", &path, body).await
    };
    let figures = json!({
        "group_by": [{"field": "color"}], "sort_by": "total",
        "aggregations": [{"function": "count", "alias": "n"}, {"function": "sum", "field": "size", "alias": "total"}],
    });
    let figures = call("aggregate", figures).await.ok();
    assert_eq!(
        figures["results"],
        json!([
            {"group": {"color": "red"}, "metrics": {"n": 1, "total": 4}},
            {"group": {"color": "blue"}, "metrics": {"n": 1, "total": 2.5}},
        ])
    );
    let wrong = json!({"aggregations": [{"function": "sum", "alias": "x"}]});
    call("aggregate", wrong)
        .await
        .invalid(&["body", "aggregations", "0", "field"], "value_error");
    let values = call("distinct", json!({"field": "color"})).await.ok();
    assert_eq!(
        (
            values["values"].as_array().unwrap().len(),
            values["total_distinct"].as_i64()
        ),
        (2, Some(2)),
        "{values:#}"
    );
    let checked = call("schema/validate", json!({"title": "x"})).await.ok();
    assert_eq!(
        (checked["valid"].as_bool(), &checked["errors"]),
        (Some(true), &json!([]))
    );
}

both! {
    async fn what_was_made_of_an_object_is_told_from_both_ends(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = |text: &str| json!({"property": "text", "type": "text", "data": text});
        let bread = object(&server, &namespace, &bucket, "Bread", text("Knead flour and water.")).await;
        object(&server, &namespace, &bucket, "Ice", text("A slow river of ice.")).await;
        process(&server, &namespace, &bucket).await;
        let get = |path: String| { let (server, namespace) = (&server, &namespace); async move { server.call_in(namespace, "GET", &path, Value::Null).await } };
        let made = get(format!("/v1/objects/{bread}/documents")).await.ok();
        assert_eq!(made["total_documents"], 1);
        let document = made["results"][0]["document_id"].as_str().unwrap().to_owned();
        assert_eq!(made["results"][0]["title"], "Bread");
        let none = get(format!("/v1/objects/{bread}/documents?collection_ids=col_unknown")).await.ok();
        assert_eq!(none["total_documents"], 0);
        let tree = get(format!("/v1/objects/{bread}/decomposition-tree?include_document_ids=true")).await.ok();
        assert_eq!(tree["nodes"], json!([{
            "collection_id": collection, "collection_name": "documents", "tier": 0, "document_count": 1,
            "document_ids": [document], "children": [],
        }]));
        get("/v1/objects/obj_unknown/decomposition-tree".into()).await.error(404, "NotFoundError");

        let path = format!("/v1/collections/{collection}/documents/{document}");
        let lineage = get(format!("{path}/lineage")).await.ok();
        assert_eq!(lineage["lineage"]["root_object_id"], bread.as_str());
        assert_eq!((lineage["depth"].as_i64(), lineage["total_steps"].as_i64()), (Some(0), Some(1)));
        let told = get(format!("{path}/diagnostics")).await.ok();
        assert_eq!(told["visibility_reason"]["searchable"], true);
        assert_eq!(told["diagnostic_history"]["entries"][1]["detail"]["extractor"], "text_extractor_v1");
        assert_eq!(told["recent_failures"]["reason"], "the object's last run did not fail");
        let download = get(format!("{path}/download")).await.ok();
        let file = server.request("GET", download["download_url"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(file.text().await.unwrap(), "Knead flour and water.");

        let figures = json!({"group_by": [{"field": "status"}], "aggregations": [{"function": "count", "alias": "n"}]});
        let path = format!("/v1/buckets/{bucket}/objects/aggregate");
        let figures = server.call_in(&namespace, "POST", &path, figures).await.ok();
        assert_eq!(figures["results"], json!([{"group": {"status": "COMPLETED"}, "metrics": {"n": 2}}]), "{figures:#}");
    }

    async fn documents_are_found_without_their_collection(server) {
        let (namespace, _) = crate::harness::retriever(&server, "anywhere").await;
        let other = json!({"collection_name": "others", "source": {"type": "direct_upsert"}, "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let other = server.call_in(&namespace, "POST", "/v1/collections", other).await.ok()["collection_id"].as_str().unwrap().to_owned();
        let write = |collection: &'static str, body: Value| {
            let (server, namespace) = (&server, &namespace);
            async move {
                let path = format!("/v1/collections/{collection}/documents");
                let made = server.call_in(namespace, "POST", &path, body).await.ok();
                made["document_id"].as_str().unwrap().to_owned()
            }
        };
        let parent = write("things", json!({"title": "parent", "color": "red", "size": 1})).await;
        let child = write("others", json!({"title": "child", "color": "red", "size": 4, "source_document_id": parent})).await;
        let grandchild = write("others", json!({"title": "grandchild", "color": "blue", "size": 2.5, "source_document_id": child})).await;
        let call = |method: &'static str, path: String, body: Value| {
            let (server, namespace) = (&server, &namespace);
            async move { server.call_in(namespace, method, &path, body).await }
        };
        // By id alone: read, changed, replaced.
        let found = call("GET", format!("/v1/documents/{child}?expand=parent"), Value::Null).await.ok();
        assert_eq!((&found["collection_id"], &found["expanded"]["parent"]["title"]), (&json!(other), &json!("parent")));
        call("PATCH", format!("/v1/documents/{child}"), json!({"mood": "glad"})).await.ok();
        let replaced = call("PUT", format!("/v1/documents/{child}"), json!({"title": "child", "color": "red", "size": 4})).await.ok();
        assert!(replaced["mood"].is_null(), "{replaced:#}");
        call("GET", "/v1/documents/doc_00000000000000000000000000000000".into(), Value::Null).await.error(404, "NotFoundError");
        // Several at once, in the order asked for.
        let some = call("POST", "/v1/documents/batch-get".into(), json!({"document_ids": [grandchild, "doc_unknown", parent]})).await.ok();
        let titles: Vec<&str> = some["documents"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
        assert_eq!((titles, &some["not_found"]), (vec!["grandchild", "parent"], &json!(["doc_unknown"])));
        // Lists over collections.
        let list = call("POST", "/v1/documents/list".into(), json!({"filters": {"field": "color", "operator": "eq", "value": "red"}, "include_total": true})).await.ok();
        assert_eq!(ids(&list["results"]), { let mut both = vec![parent.clone(), child.clone()]; both.sort(); both });
        assert_eq!(list["total_documents"], 2);
        let list = call("POST", "/v1/documents/list".into(), json!({"collection_ids": [other, "col_unknown"], "limit": 50})).await.ok();
        assert_eq!((list["results"].as_array().unwrap().len(), &list["unknown_collection_ids"]), (2, &json!(["col_unknown"])));
        // What the body says counts before the query, whatever it is.
        for (query, body, count) in [("?limit=1", json!({"limit": 10}), 3), ("?limit=1", json!({}), 1), ("?offset=2", json!({"offset": 0}), 3)] {
            let list = call("POST", format!("/v1/documents/list{query}"), body.clone()).await.ok();
            assert_eq!(list["results"].as_array().unwrap().len(), count, "{query} {body}");
        }
        for (query, body, told) in [("", json!({}), false), ("?return_vectors=true", json!({}), true), ("?return_vectors=true", json!({"return_vectors": false}), false)] {
            let list = call("POST", format!("/v1/documents/list{query}"), body.clone()).await.ok();
            assert_eq!(list["results"][0]["vectors"].is_object(), told, "{query} {body}");
        }
        let many = json!({"queries": [
            {"key": "blue", "request": {"filters": {"field": "color", "operator": "eq", "value": "blue"}}},
            {"key": "broken", "request": {"filters": {"field": "color", "operator": "~"}}},
        ]});
        let many = call("POST", "/v1/documents/list/batch".into(), many).await.ok();
        assert_eq!(ids(&many["results"][0]["response"]["results"]), std::slice::from_ref(&grandchild));
        assert!(many["results"][1]["error"].as_str().is_some_and(|error| !error.is_empty()), "{many:#}");
        // Up and down.
        let up = call("GET", format!("/v1/collections/others/documents/{child}/ancestors"), Value::Null).await.ok();
        assert_eq!(ids(&up), std::slice::from_ref(&parent));
        let down = call("GET", format!("/v1/collections/things/documents/{parent}/descendants"), Value::Null).await.ok();
        assert_eq!(ids(&down), { let mut both = vec![child.clone(), grandchild.clone()]; both.sort(); both });
        figures_are_told(&server, &namespace).await;
    }

    /// S-6 on the paths that find documents without their collection.
    async fn end_users_find_their_own_documents_alone(server) {
        let (namespace, _) = crate::harness::retriever(&server, "people").await;
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let mut people = Vec::new();
        for name in ["ada", "bob"] {
            let made = server.call("POST", keys, json!({"name": name, "principal_id": name, "permissions": ["delete"]})).await.ok();
            let key = made["key"].as_str().unwrap().to_owned();
            let path = "/v1/collections/things/documents";
            let made = as_key(&server, &key, &namespace, "POST", path, json!({"title": name, "color": name})).await.ok();
            people.push((key, made["document_id"].as_str().unwrap().to_owned()));
        }
        let (ada, hers) = &people[0];
        let (_, his) = &people[1];
        let send = |method: &'static str, path: String, body: Value| {
            let (server, namespace) = (&server, &namespace);
            async move { as_key(server, ada, namespace, method, &path, body).await }
        };
        for (method, body) in [("GET", Value::Null), ("PATCH", json!({"title": "taken"})), ("PUT", json!({"title": "taken"}))] {
            send(method, format!("/v1/documents/{his}"), body.clone()).await.error(404, "NotFoundError");
            send(method, format!("/v1/documents/{hers}"), body).await.ok();
        }
        for path in ["ancestors", "descendants", "lineage", "download"] {
            send("GET", format!("/v1/collections/things/documents/{his}/{path}"), Value::Null).await.error(404, "NotFoundError");
        }
        let some = send("POST", "/v1/documents/batch-get".into(), json!({"document_ids": [hers, his]})).await.ok();
        assert_eq!((ids(&some["documents"]), &some["not_found"]), (vec![hers.clone()], &json!([his])));
        let list = send("POST", "/v1/documents/list".into(), json!({"include_total": true})).await.ok();
        assert_eq!((ids(&list["results"]), &list["total_documents"]), (vec![hers.clone()], &json!(1)));
        let many = send("POST", "/v1/documents/list/batch".into(), json!({"queries": [{"key": "all", "request": {}}]})).await.ok();
        assert_eq!(ids(&many["results"][0]["response"]["results"]), vec![hers.clone()]);
        let figures = json!({"aggregations": [{"function": "count", "alias": "n"}]});
        let figures = send("POST", "/v1/collections/things/documents/aggregate".into(), figures).await.ok();
        assert_eq!(figures["results"][0]["metrics"]["n"], 1);
        let values = send("POST", "/v1/collections/things/documents/distinct".into(), json!({"field": "title"})).await.ok();
        assert_eq!(values["total_distinct"], 1);
    }
}
