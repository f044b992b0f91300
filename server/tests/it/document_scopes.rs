//! Scopes of documents: an id, the beginning of ids, or all, on every path that reads, writes or counts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::{Answer, Server},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";
const THINGS: &str = "/v1/collections/things/documents";

/// A key of level delete in a namespace.
struct Key<'a> {
    server: &'a Server,
    namespace: &'a str,
    secret: String,
}

impl<'a> Key<'a> {
    async fn new(server: &'a Server, namespace: &'a str, name: &str, scopes: Value) -> Self {
        let body = json!({"name": name, "permissions": ["delete"], "scopes": scopes});
        let made = server.call("POST", KEYS, body).await.ok();
        let secret = made["key"].as_str().unwrap().to_owned();
        Self {
            server,
            namespace,
            secret,
        }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let mut request = self
            .server
            .request(method, path)
            .bearer_auth(&self.secret)
            .header("x-namespace", self.namespace);
        if !body.is_null() {
            request = request.json(&body);
        }
        Server::send(request).await
    }

    async fn refused(&self, method: &str, path: &str, body: Value) {
        let answer = self.call(method, path, body).await;
        let refused = answer.error(403, "ForbiddenError");
        assert_eq!(refused["error"]["code"], "scope_denied", "{method} {path}");
    }
}

fn of_documents(pattern: &str) -> Value {
    json!({"resource_type": "document", "resource_id": pattern})
}

/// A collection `others` beside `things`, with documents in both: four and one.
async fn documents(server: &Server, name: &str) -> (String, String, Vec<String>) {
    let (namespace, retriever) = crate::harness::retriever(server, name).await;
    let others = json!({"collection_name": "others", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    server
        .call_in(&namespace, "POST", "/v1/collections", others)
        .await
        .ok();
    let mut ids: Vec<String> = Vec::new();
    for number in 0..5 {
        let collection = if number < 4 { "things" } else { "others" };
        let path = format!("/v1/collections/{collection}/documents");
        let body = json!({"title": format!("paper {number}"), "next": ids.last()});
        let made = server.call_in(&namespace, "POST", &path, body).await.ok();
        ids.push(made["document_id"].as_str().unwrap().to_owned());
    }
    (namespace, retriever, ids)
}

fn ids_of(documents: &Value) -> BTreeSet<&str> {
    let documents = documents.as_array().unwrap().iter();
    documents
        .map(|document| document["document_id"].as_str().unwrap())
        .collect()
}

/// The ids in an export of `things`.
async fn exported(key: &Key<'_>, filters: &Value) -> BTreeSet<String> {
    let mut body = json!({"format": "json"});
    if !filters.is_null() {
        body["filters"] = filters.clone();
    }
    let path = "/v1/collections/things/export";
    let told = key.call("POST", path, body).await.ok();
    let url = told["download_url"].as_str().unwrap();
    let url = url.replace(&key.server.app.config().address(), "");
    let file = Server::send(key.server.request("GET", &url)).await.ok();
    let rows = file.as_array().unwrap().iter();
    let ids: BTreeSet<String> = rows
        .map(|row| row["document_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told["document_count"], ids.len());
    ids
}

/// The paths of `things` show these of them.
async fn shows_in_things(key: &Key<'_>, things: &BTreeSet<&str>) {
    let listed = format!("{THINGS}?limit=100&include_total=true");
    let list = key.call("GET", &listed, Value::Null).await.ok();
    assert_eq!(
        (ids_of(&list["results"]), &list["total_documents"]),
        (things.clone(), &json!(things.len()))
    );
    let wanted = json!({"field": "title", "operator": "starts_with", "value": "paper"});
    for body in [
        json!({"filters": wanted, "limit": 100}),
        json!({"search": "paper", "limit": 100}),
    ] {
        let list = key.call("POST", &format!("{THINGS}/list"), body).await.ok();
        assert_eq!(ids_of(&list["results"]), *things);
    }
    for filters in [&Value::Null, &wanted] {
        let ids = exported(key, filters).await;
        assert!(ids.iter().map(String::as_str).eq(things.iter().copied()));
    }
    let count = key
        .call("GET", &format!("{THINGS}/count"), Value::Null)
        .await
        .ok();
    assert_eq!(count["count"], things.len());
    let figures = json!({"aggregations": [{"function": "count", "alias": "n"}]});
    let figures = key
        .call("POST", &format!("{THINGS}/aggregate"), figures)
        .await
        .ok();
    assert_eq!(figures["results"][0]["metrics"]["n"], things.len());
    let distinct = key
        .call(
            "POST",
            &format!("{THINGS}/distinct"),
            json!({"field": "title"}),
        )
        .await
        .ok();
    assert_eq!(distinct["total_distinct"], things.len());
}

/// The paths of the whole namespace show these.
async fn shows_in_the_namespace(key: &Key<'_>, everything: &[String], seen: &BTreeSet<&str>) {
    let list = key
        .call(
            "POST",
            "/v1/documents/list?include_total=true",
            json!({"limit": 100}),
        )
        .await
        .ok();
    assert_eq!(
        (ids_of(&list["results"]), &list["total_documents"]),
        (seen.clone(), &json!(seen.len()))
    );
    let many = json!({"queries": [{"key": "all", "request": {"limit": 100}}]});
    let many = key
        .call("POST", "/v1/documents/list/batch", many)
        .await
        .ok();
    assert_eq!(ids_of(&many["results"][0]["response"]["results"]), *seen);
    let some = key
        .call(
            "POST",
            "/v1/documents/batch-get",
            json!({"document_ids": everything}),
        )
        .await
        .ok();
    assert_eq!(ids_of(&some["documents"]), *seen);
    assert_eq!(
        some["not_found"].as_array().unwrap().len(),
        everything.len() - seen.len()
    );
}

/// Each is read, with what it refers to, or is not there.
async fn shows_each(key: &Key<'_>, everything: &[String], seen: &BTreeSet<&str>) {
    for (place, id) in everything.iter().enumerate() {
        let collection = if place < 4 { "things" } else { "others" };
        let path = format!("/v1/collections/{collection}/documents/{id}");
        let anywhere = format!("/v1/documents/{id}");
        if !seen.contains(id.as_str()) {
            key.refused("GET", &path, Value::Null).await;
            key.refused("GET", &format!("{path}/lineage"), Value::Null)
                .await;
            key.call("GET", &anywhere, Value::Null)
                .await
                .error(404, "NotFoundError");
            continue;
        }
        key.call("GET", &anywhere, Value::Null).await.ok();
        // What a document refers to is shown if it is covered, too.
        let shown = key
            .call("GET", &format!("{path}?expand=next"), Value::Null)
            .await
            .ok();
        let next = everything[..place]
            .last()
            .filter(|id| seen.contains(id.as_str()));
        assert_eq!(
            shown["expanded"]["next"]["document_id"],
            json!(next),
            "{shown}"
        );
    }
}

/// Every path that reads shows exactly these documents: those of `things`, and those of the whole namespace.
async fn shows(key: &Key<'_>, everything: &[String], seen: &BTreeSet<&str>) {
    let things: BTreeSet<&str> = everything[..4].iter().map(String::as_str).collect();
    let things: BTreeSet<&str> = things.intersection(seen).copied().collect();
    shows_in_things(key, &things).await;
    shows_in_the_namespace(key, everything, seen).await;
    shows_each(key, everything, seen).await;
}

both! {
    async fn a_scope_of_documents_shows_them_and_nothing_else(server) {
        let (namespace, retriever, ids) = documents(&server, "reads").await;
        let one = Key::new(&server, &namespace, "one", json!([of_documents(&ids[1])])).await;
        shows(&one, &ids, &[ids[1].as_str()].into()).await;
        let pattern = format!("{}*", &ids[4][..28]);
        let two = Key::new(&server, &namespace, "two", json!([of_documents(&ids[0]), of_documents(&pattern)])).await;
        shows(&two, &ids, &[ids[0].as_str(), ids[4].as_str()].into()).await;
        let others = server.call_in(&namespace, "GET", "/v1/collections/others", Value::Null).await.ok();
        let whole = json!({"resource_type": "collection", "resource_id": others["collection_id"]});
        let mixed = Key::new(&server, &namespace, "mixed", json!([of_documents(&ids[2]), whole])).await;
        shows(&mixed, &ids, &[ids[2].as_str(), ids[4].as_str()].into()).await;
        let all = Key::new(&server, &namespace, "all", json!([of_documents("*")])).await;
        shows(&all, &ids, &ids.iter().map(String::as_str).collect()).await;

        // It is no scope of the collection, nor of what searches it.
        assert_eq!(one.call("GET", "/v1/collections", Value::Null).await.ok()["results"], json!([]));
        for (method, path, body) in [
            ("GET", "/v1/collections/things".to_owned(), Value::Null),
            ("PATCH", "/v1/collections/things".to_owned(), json!({"description": "mine"})),
            ("POST", format!("/v1/retrievers/{retriever}/execute"), json!({"inputs": {}})),
            ("GET", "/v1/events".to_owned(), Value::Null),
        ] {
            one.refused(method, &path, body).await;
        }
        let unknown = format!("{THINGS}/doc_{}", "0".repeat(32));
        one.call("GET", &unknown, Value::Null).await.error(404, "NotFoundError");
        one.call("GET", "/v1/collections/unknown/documents", Value::Null).await.error(404, "NotFoundError");
        // Whoever sees documents may ask what they must look like, and take nothing else with them in a table.
        let checked = one.call("POST", &format!("{THINGS}/schema/validate"), json!({"title": "x"})).await.ok();
        assert_eq!(checked["valid"], true);
        for format in ["csv", "parquet"] {
            let told = one.call("POST", "/v1/collections/things/export", json!({"format": format})).await.ok();
            assert_eq!(told["document_count"], 1);
        }
        // An operation that the scope does not name is refused, and a scope of something else opens no document.
        let blind = json!([{"resource_type": "document", "resource_id": ids[1], "operations": ["delete_data"]}]);
        let blind = Key::new(&server, &namespace, "blind", blind).await;
        blind.refused("GET", &format!("{THINGS}/{}", ids[1]), Value::Null).await;
        blind.refused("GET", THINGS, Value::Null).await;
        blind.refused("POST", "/v1/collections/things/export", json!({})).await;
        blind.refused("POST", &format!("{THINGS}/schema/validate"), json!({"title": "x"})).await;
        blind.call("DELETE", &format!("{THINGS}/{}", ids[1]), Value::Null).await.ok();
    }

    async fn a_scope_of_documents_lets_them_be_written_and_nothing_else(server) {
        let (namespace, _, ids) = documents(&server, "writes").await;
        let [mine, other] = [0, 1].map(|place: usize| format!("{THINGS}/{}", ids[place]));
        let key = Key::new(&server, &namespace, "mine", json!([of_documents(&ids[0])])).await;
        for (method, path, body) in [
            ("PATCH", "", json!({"title": "patched"})),
            ("PUT", "", json!({"title": "replaced"})),
            ("PATCH", "/acl", json!({"public": true})),
        ] {
            key.call(method, &format!("{mine}{path}"), body.clone()).await.ok();
            key.refused(method, &format!("{other}{path}"), body).await;
        }
        key.call("PATCH", &format!("/v1/documents/{}", ids[0]), json!({"mark": 1})).await.ok();
        key.call("PATCH", &format!("/v1/documents/{}", ids[1]), json!({"mark": 1})).await.error(404, "NotFoundError");
        key.refused("POST", THINGS, json!({"title": "new"})).await;
        key.refused("DELETE", &other, Value::Null).await;
        let both = json!({"updates": [{"document_id": ids[0], "update_data": {"mark": 2}}, {"document_id": ids[1], "update_data": {"mark": 2}}]});
        let updated = key.call("POST", &format!("{THINGS}/batch"), both).await.ok();
        assert_eq!((&updated["updated_count"], &updated["failed_count"]), (&json!(1), &json!(1)));
        let updated = key.call("PATCH", &format!("{THINGS}/bulk"), json!({"update_data": {"mark": 3}})).await.ok();
        assert_eq!(updated["updated_count"], 1);
        let every = json!({"filters": {"field": "title", "operator": "exists", "value": true}});
        let deleted = key.call("DELETE", &format!("{THINGS}/batch"), every).await.ok();
        assert_eq!(deleted["deleted_count"], 1);
        let deleted = key.call("DELETE", &format!("{THINGS}/batch"), json!({"document_ids": ids[1..4]})).await.ok();
        assert_eq!((&deleted["deleted_count"], &deleted["failed_count"]), (&json!(0), &json!(3)));
        for (place, id) in ids.iter().enumerate().take(4).skip(1) {
            let untouched = server.call_in(&namespace, "GET", &format!("{THINGS}/{id}"), Value::Null).await.ok();
            assert_eq!((&untouched["title"], &untouched["mark"]), (&json!(format!("paper {place}")), &Value::Null));
        }
        // Whoever may write every document may make one.
        let all = Key::new(&server, &namespace, "all", json!([of_documents("doc_*")])).await;
        all.call("POST", THINGS, json!({"title": "new"})).await.ok();
        let reader = json!([{"resource_type": "document", "resource_id": "*", "operations": ["read_data"]}]);
        let reader = Key::new(&server, &namespace, "reader", reader).await;
        reader.call("GET", &other, Value::Null).await.ok();
        reader.refused("PATCH", &other, json!({"title": "mine"})).await;
        reader.refused("POST", THINGS, json!({"title": "mine"})).await;
        reader.refused("DELETE", &other, Value::Null).await;
    }

    async fn a_scope_of_documents_tells_nothing_of_ids_of_ones_own(server) {
        let namespace = "scoped-films";
        let body = json!({"namespace_id": namespace, "vector_configs": [{"name": "plot", "dimension": 3}]});
        server.call("POST", "/v1/namespaces/standalone", body).await.ok();
        let others = json!({"collection_name": "others", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(namespace, "POST", "/v1/collections", others).await.ok();
        let path = format!("/v1/namespaces/{namespace}/documents");
        let mut given = Vec::new();
        for collection in ["documents", "others"] {
            let documents = ["one", "two"].map(|id| json!({"document_id": id, "vectors": {}, "payload": {"title": collection}}));
            let body = json!({"documents": documents, "collection_id": collection});
            let written = server.call("POST", &format!("{path}/upsert"), body).await.ok();
            given.push(written["document_ids"][0].as_str().unwrap().to_owned());
        }
        for (place, title) in ["documents", "others"].into_iter().enumerate() {
            let key = Key::new(&server, namespace, title, json!([of_documents(&given[place])])).await;
            for id in ["one", &given[place]] {
                assert_eq!(key.call("GET", &format!("{path}/{id}"), Value::Null).await.ok()["title"], title);
            }
            // What is there and not covered answers as what is not there.
            for id in ["two", "three", &given[1 - place]] {
                key.call("GET", &format!("{path}/{id}"), Value::Null).await.error(404, "NotFoundError");
            }
        }
        // The namespace's own collection comes first.
        let all = Key::new(&server, namespace, "all", json!([of_documents("*")])).await;
        assert_eq!(all.call("GET", &format!("{path}/two"), Value::Null).await.ok()["title"], "documents");
    }

    async fn a_batch_is_undone_by_who_may_remove_all_that_it_made(server) {
        let (namespace, bucket, collection) = library(&server, "passthrough_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a text"});
        let made = object(&server, &namespace, &bucket, "a title", text).await;
        let batch = process(&server, &namespace, &bucket).await;
        let batch = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let of_bucket = json!({"resource_type": "bucket", "resource_id": bucket});
        let bare = Key::new(&server, &namespace, "bare", json!([of_bucket])).await;
        let narrow = Key::new(&server, &namespace, "narrow", json!([of_bucket, of_documents("*")])).await;
        let of_collection = json!({"resource_type": "collection", "resource_id": collection});
        let whole = Key::new(&server, &namespace, "whole", json!([of_bucket, of_collection])).await;
        // What was made of an object is counted where it is covered.
        for (key, count) in [(&bare, 0), (&narrow, 1), (&whole, 1)] {
            let shown = key.call("GET", &format!("/v1/buckets/{bucket}/objects/{made}"), Value::Null).await.ok();
            assert_eq!(shown["document_count"], count, "{shown:#}");
        }
        for key in [&bare, &narrow] {
            key.refused("DELETE", &format!("{batch}/documents"), Value::Null).await;
        }
        let processed = async || {
            let estimate = server.call_in(&namespace, "POST", &format!("{batch}/estimate-cost"), Value::Null).await.ok();
            estimate["already_extracted_count"].clone()
        };
        assert_eq!(processed().await, 1, "nothing is forgotten");
        let removed = whole.call("DELETE", &format!("{batch}/documents"), Value::Null).await.ok();
        assert_eq!((&removed["updated_count"], processed().await), (&json!(1), json!(0)));
    }

    async fn documents_in_scope_are_annotated_and_no_others(server) {
        let (namespace, _, ids) = documents(&server, "decided").await;
        let annotations = json!({"resource_type": "annotation", "resource_id": "*"});
        let key = Key::new(&server, &namespace, "mine", json!([annotations, of_documents(&ids[0])])).await;
        for collection in [Value::Null, json!("things")] {
            let body = |id: &str| json!({"document_id": id, "collection_id": collection, "label": "good"});
            key.call("POST", "/v1/annotations", body(&ids[0])).await.ok();
            key.call("POST", "/v1/annotations", body(&ids[1])).await.error(404, "NotFoundError");
        }
        let signal = json!({"document_id": ids[0], "collection_id": "loupe_document_annotations", "label": "good"});
        key.call("POST", "/v1/annotations", signal).await.error(404, "NotFoundError");
        let blind = Key::new(&server, &namespace, "blind", json!([annotations])).await;
        let body = json!({"document_id": ids[0], "label": "good"});
        blind.call("POST", "/v1/annotations", body).await.error(404, "NotFoundError");
        blind.refused("POST", "/v1/annotations", json!({"document_id": ids[0], "collection_id": "things", "label": "good"})).await;
    }
}
