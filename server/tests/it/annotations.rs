//! Annotations: decisions on documents, with versions that stay readable.

use std::time::{Duration, Instant};

use loupe_server::v1::annotations::signal;
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, other_organization, retriever},
    snapshots::{restore, take},
    stages::{self, stage},
};

/// The collection that mirrors annotations.
const SIGNAL: &str = "/v1/collections/loupe_document_annotations";

/// A namespace with two documents in `things`.
async fn documents(server: &Server) -> (String, String, String) {
    let (namespace, _) = retriever(server, "review").await;
    let mut ids = Vec::new();
    for title in ["On whales", "On ships"] {
        let path = "/v1/collections/things/documents";
        let made = server
            .call_in(
                &namespace,
                "POST",
                path,
                json!({"title": title, "embedding": [1.0, 0.0, 0.0]}),
            )
            .await
            .ok();
        ids.push(made["document_id"].as_str().unwrap().to_owned());
    }
    (namespace, ids.remove(0), ids.remove(0))
}

/// The labels of the mirrored annotations that match.
async fn mirrored(server: &Server, namespace: &str, filters: Value) -> Vec<String> {
    let path = format!("{SIGNAL}/documents/list");
    let list = server
        .call_in(namespace, "POST", &path, json!({"filters": filters}))
        .await
        .ok();
    let mut labels: Vec<String> = labels(&list).into_iter().map(Into::into).collect();
    labels.sort();
    labels
}

/// Waits until the mirrored annotations are these.
async fn mirror_becomes(server: &Server, namespace: &str, labels: &[&str]) {
    let start = Instant::now();
    loop {
        signal::settle(&server.app).await.unwrap();
        let now = mirrored(server, namespace, json!({})).await;
        if now == labels {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{now:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn labels(list: &Value) -> Vec<&str> {
    list["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["label"].as_str().unwrap())
        .collect()
}

both! {
    async fn an_edit_makes_a_version_and_keeps_what_it_replaced(server) {
        let (namespace, whales, _) = documents(&server).await;
        let body = json!({"document_id": whales, "label": "relevant", "confidence": 0.5, "payload": {"stars": 3}, "metadata": {"round": 1}});
        let made = server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        assert_eq!((&made["version"], &made["actor_type"], &made["namespace_id"]), (&json!(1), &json!("api_key"), &json!(namespace)));
        assert!(made["annotation_id"].as_str().unwrap().starts_with("ann_"));
        assert_eq!((&made["revisions"], made.get("reasoning")), (&json!([]), Some(&Value::Null)), "{made:#}");
        assert!(made["collection_id"].as_str().unwrap().starts_with("col_"), "the collection that the document is in");
        let path = format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap());

        // A change of nothing is no version.
        let same = server.call_in(&namespace, "PATCH", &path, json!({"label": "relevant"})).await.ok();
        assert_eq!(same, made);
        let middle = server.app.clock().now() + chrono::Duration::seconds(5);
        server.app.clock().advance(10);
        let edited = server.call_in(&namespace, "PATCH", &path, json!({"label": "irrelevant", "reasoning": "about fish"})).await.ok();
        assert_eq!((&edited["version"], &edited["label"], &edited["confidence"]), (&json!(2), &json!("irrelevant"), &json!(0.5)));
        let revision = &edited["revisions"][0];
        assert_eq!((&revision["version"], &revision["prior"]), (&json!(1), &json!({"label": "relevant", "reasoning": null})));
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok(), edited);

        let versions = server.call_in(&namespace, "GET", &format!("{path}/versions"), Value::Null).await.ok();
        assert_eq!(versions["current_version"], 2);
        assert_eq!((&versions["versions"][0]["version"], &versions["versions"][0]["current"]), (&json!(2), &json!(true)));
        assert_eq!(versions["versions"][0]["changed_fields"], json!(["label", "reasoning"]));
        assert_eq!(versions["versions"][1]["current"], false);
        let first = server.call_in(&namespace, "GET", &format!("{path}/versions/1"), Value::Null).await.ok();
        assert_eq!((&first["label"], &first["version"]), (&json!("relevant"), &json!(1)));
        server.call_in(&namespace, "GET", &format!("{path}/versions/3"), Value::Null).await.error(404, "NotFoundError");
        server.call_in(&namespace, "GET", &format!("{path}/versions/one"), Value::Null).await.invalid(&["path", "version"], "int_parsing");

        let list = "/v1/annotations/list";
        let then = server.call_in(&namespace, "POST", list, json!({"as_of": middle})).await.ok();
        assert_eq!((labels(&then), &then["total_count"]), (vec!["relevant"], &json!(1)));
        let then = server.call_in(&namespace, "POST", list, json!({"as_of": middle, "label": "irrelevant"})).await.ok();
        assert_eq!(labels(&then), Vec::<&str>::new());
        let before = json!({"as_of": "2020-01-01T00:00:00Z"});
        assert_eq!(server.call_in(&namespace, "POST", list, before).await.ok()["total_count"], 0);

        // What was deleted is nowhere but in lists as of an earlier moment, and a while later not there either.
        let last = server.app.clock().now() + chrono::Duration::seconds(5);
        server.app.clock().advance(10);
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        let then = async |at: chrono::DateTime<chrono::Utc>| server.call_in(&namespace, "POST", list, json!({"as_of": at})).await.ok();
        assert_eq!(labels(&then(middle).await), ["relevant"]);
        let was = then(last).await;
        assert_eq!((&was["results"][0]["label"], &was["results"][0]["version"], &was["total_count"]), (&json!("irrelevant"), &json!(2), &json!(1)));
        assert_eq!(then(server.app.clock().now()).await["total_count"], 0);
        assert_eq!(server.call_in(&namespace, "POST", list, json!({})).await.ok()["total_count"], 0);
        let stats = server.call_in(&namespace, "GET", "/v1/annotations/stats", Value::Null).await.ok();
        assert_eq!(stats, json!({"total": 0, "by_label": {}}));
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&namespace, "GET", &format!("{path}/versions/1"), Value::Null).await.error(404, "NotFoundError");
        for kind in ["annotation.created", "annotation.updated", "annotation.deleted"] {
            let told = server.events(kind).await;
            assert_eq!(told.len(), 1, "{kind}");
            assert_eq!((&told[0]["payload"]["document_id"], &told[0]["resource_type"]), (&json!(whales), &json!("annotation")));
        }
        let other = server.call_in(&namespace, "POST", "/v1/annotations", json!({"document_id": whales, "label": "first"})).await.ok();
        let other = format!("/v1/annotations/{}", other["annotation_id"].as_str().unwrap());
        server.call_in(&namespace, "PATCH", &other, json!({"label": "second"})).await.ok();
        server.app.clock().advance(91 * 86_400);
        loupe_server::v1::annotations::sweep(&server.app).await.unwrap();
        assert_eq!(then(last).await["total_count"], 0, "kept for 90 days");
        let kept = server.call_in(&namespace, "GET", &format!("{other}/versions/1"), Value::Null).await.ok();
        assert_eq!(kept["label"], "first", "what was edited keeps its versions");
    }

    async fn null_takes_away_what_was_said(server) {
        let (namespace, whales, _) = documents(&server).await;
        let said = json!({"confidence": 0.5, "reasoning": "about whales", "payload": {"stars": 3}, "metadata": {"round": 1}});
        let mut body = said.clone();
        body["document_id"] = json!(whales);
        body["label"] = json!("relevant");
        let made = server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        let id = made["annotation_id"].as_str().unwrap();
        let path = format!("/v1/annotations/{id}");
        let nulls = json!({"confidence": null, "reasoning": null, "payload": null, "metadata": null});
        let bare = server.call_in(&namespace, "PATCH", &path, nulls).await.ok();
        assert_eq!((&bare["version"], &bare["label"], &bare["revisions"][0]["prior"]), (&json!(2), &json!("relevant"), &said), "{bare:#}");
        assert_eq!((&bare["confidence"], &bare["reasoning"]), (&Value::Null, &Value::Null), "{bare:#}");
        assert_eq!((&bare["payload"], &bare["metadata"]), (&json!({}), &json!({})), "{bare:#}");
        // In bulk, too; what is not sent stays.
        server.call_in(&namespace, "PATCH", &path, json!({"confidence": 0.7, "reasoning": "again"})).await.ok();
        let bulk = json!({"update": [{"annotation_id": id, "reasoning": null}]});
        server.call_in(&namespace, "POST", "/v1/annotations/bulk", bulk).await.ok();
        let now = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&now["confidence"], &now["reasoning"], &now["version"]), (&json!(0.7), &Value::Null, &json!(4)), "{now:#}");
        let range = json!({"confidence": 1.5});
        assert_eq!(server.call_in(&namespace, "PATCH", &path, range).await.status, 422);
    }

    async fn annotations_are_a_signal_for_filters_and_stages(server) {
        let (namespace, whales, ships) = documents(&server).await;
        assert_eq!(mirrored(&server, &namespace, json!({})).await, Vec::<String>::new(), "there before anything is annotated");
        let body = json!({"document_id": whales, "label": "relevant", "confidence": 0.9, "payload": {"stars": 3}, "metadata": {"round": 1}});
        let made = server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        let path = format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap());
        let bulk = json!({"create": [{"document_id": ships, "label": "irrelevant", "confidence": 0.2}]});
        let bulk = server.call_in(&namespace, "POST", "/v1/annotations/bulk", bulk).await.ok();
        let other = bulk["results"][0]["annotation_id"].as_str().unwrap();
        let is = |field: &str, operator: &str, value: Value| json!({"field": field, "operator": operator, "value": value});
        for (filter, found) in [
            (json!({}), vec!["irrelevant", "relevant"]),
            (is("metadata.round", "eq", json!(1)), vec!["relevant"]),
            (is("payload.stars", "gte", json!(3)), vec!["relevant"]),
            (is("confidence", "lt", json!(0.5)), vec!["irrelevant"]),
            (is("annotated_document_id", "eq", json!(whales)), vec!["relevant"]),
            (is("label", "eq", json!("other")), vec![]),
        ] {
            assert_eq!(mirrored(&server, &namespace, filter.clone()).await, found, "{filter}");
        }

        // A retriever reads it alone, or beside what was annotated.
        let alone = vec![stage("attribute_filter", json!({"conditions": is("label", "eq", json!("irrelevant"))}))];
        let alone = stages::retriever(&server, &namespace, "loupe_document_annotations", alone).await;
        let found = stages::execute(&server, &namespace, &alone, json!({})).await;
        assert_eq!((found["documents"].as_array().unwrap().len(), &found["documents"][0]["annotated_document_id"]), (1, &json!(ships)));
        let linked = vec![
            stage("attribute_filter", json!({"conditions": is("title", "exists", json!(true))})),
            stage("document_enrich", json!({"target_collection_id": "loupe_document_annotations", "source_field": "document_id",
                "target_field": "annotated_document_id", "output_field": "decision", "allow_missing": false})),
            stage("attribute_filter", json!({"conditions": is("decision.label", "eq", json!("relevant"))})),
        ];
        let linked = stages::retriever(&server, &namespace, "things", linked).await;
        let titles = async || {
            let found = stages::execute(&server, &namespace, &linked, json!({})).await;
            let documents = found["documents"].as_array().unwrap().clone();
            documents.into_iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(titles().await, ["On whales"]);

        // Edits, in bulk too, and deletions follow.
        let update = json!({"update": [{"annotation_id": other, "label": "unsure"}, {"annotation_id": other, "label": "relevant"}]});
        server.call_in(&namespace, "POST", "/v1/annotations/bulk", update).await.ok();
        server.call_in(&namespace, "PATCH", &path, json!({"label": "irrelevant"})).await.ok();
        assert_eq!(titles().await, ["On ships"]);
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        assert_eq!(mirrored(&server, &namespace, json!({})).await, ["relevant"]);

        // A document takes its annotations out of the signal; they stay on record.
        server.call_in(&namespace, "DELETE", &format!("/v1/collections/things/documents/{ships}"), Value::Null).await.ok();
        assert_eq!(mirrored(&server, &namespace, json!({})).await, Vec::<String>::new());
        let list = server.call_in(&namespace, "POST", "/v1/annotations/list", json!({})).await.ok();
        assert_eq!(list["total_count"], 1);
        server.app.clock().advance(11);
        mirror_becomes(&server, &namespace, &[]).await;
        let body = json!({"document_id": whales, "label": "again"});
        server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        server.call_in(&namespace, "DELETE", "/v1/collections/things", Value::Null).await.ok();
        mirror_becomes(&server, &namespace, &[]).await;
    }

    async fn an_annotation_that_is_deleted_while_it_is_edited_stays_deleted(server) {
        let (namespace, whales, _) = documents(&server).await;
        for _ in 0..6 {
            let made = server.call_in(&namespace, "POST", "/v1/annotations", json!({"document_id": whales, "label": "new"})).await.ok();
            let path = format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap());
            let edits = (0..5).map(|n| server.call_in(&namespace, "PATCH", &path, json!({"label": format!("edit {n}")})));
            let edits: Vec<_> = edits.collect();
            let gone = server.call_in(&namespace, "DELETE", &path, Value::Null);
            let (edited, gone) = futures::future::join(futures::future::join_all(edits), gone).await;
            gone.ok();
            for answer in edited {
                assert!(matches!(answer.status, 200 | 404 | 409), "{:#}", answer.body);
            }
            server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
            // Nothing waits for a later look.
            assert_eq!(mirrored(&server, &namespace, json!({})).await, Vec::<String>::new());
        }
        let stats = server.call_in(&namespace, "GET", "/v1/annotations/stats", Value::Null).await.ok();
        assert_eq!(stats["total"], 0, "{stats:#}");
    }

    async fn a_document_that_is_written_again_under_its_own_id_has_its_annotations(server) {
        let body = json!({"namespace_id": "films", "vector_configs": [{"name": "plot", "dimension": 3}]});
        server.call("POST", "/v1/namespaces/standalone", body).await.ok();
        let film = |id: &str| json!({"document_id": id, "vectors": {"plot": [1, 0, 0]}, "payload": {"title": "Film"}});
        let upsert = json!({"documents": [film("film-1"), film("film-2")]});
        let path = "/v1/namespaces/films/documents/upsert";
        let made = server.call("POST", path, upsert.clone()).await.ok();
        let id = made["document_ids"][0].as_str().unwrap();
        let body = json!({"create": [{"document_id": id, "label": "relevant"}]});
        let made = server.call_in("films", "POST", "/v1/annotations/bulk", body).await.ok();
        assert_eq!(made["created_count"], 1, "{made:#}");
        server.call_in("films", "DELETE", &format!("/v1/collections/documents/documents/{id}"), Value::Null).await.ok();
        server.app.clock().advance(11);
        mirror_becomes(&server, "films", &[]).await;
        server.call("POST", path, upsert).await.ok();
        server.app.clock().advance(11);
        mirror_becomes(&server, "films", &["relevant"]).await;
    }

    async fn a_document_that_a_restoration_brings_back_has_its_annotations(server) {
        let (namespace, whales, ships) = documents(&server).await;
        let body = json!({"create": [{"document_id": whales, "label": "relevant"}, {"document_id": ships, "label": "irrelevant"}]});
        server.call_in(&namespace, "POST", "/v1/annotations/bulk", body).await.ok();
        let snapshot = take(&server, &namespace, json!({})).await;
        server.call_in(&namespace, "DELETE", &format!("/v1/collections/things/documents/{whales}"), Value::Null).await.ok();
        server.app.clock().advance(11);
        mirror_becomes(&server, &namespace, &["irrelevant"]).await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        server.app.clock().advance(11);
        mirror_becomes(&server, &namespace, &["irrelevant", "relevant"]).await;
    }

    async fn the_signal_is_nobodys_to_change_and_of_one_namespace(server) {
        let (namespace, whales, _) = documents(&server).await;
        let body = json!({"document_id": whales, "label": "relevant"});
        server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        let shown = server.call_in(&namespace, "GET", SIGNAL, Value::Null).await.ok();
        assert_eq!((&shown["source"]["type"], &shown["document_count"]), (&json!("signals"), &json!(1)));
        let document = format!("{SIGNAL}/documents");
        for (method, path, body) in [
            ("POST", document.clone(), json!({"label": "mine"})),
            ("PATCH", SIGNAL.to_owned(), json!({"description": "mine"})),
            ("DELETE", SIGNAL.to_owned(), Value::Null),
        ] {
            server.call_in(&namespace, method, &path, body).await.error(404, "NotFoundError");
        }
        let listed = server.call_in(&namespace, "POST", "/v1/collections/list", json!({})).await.ok();
        assert_eq!(listed["results"].as_array().unwrap().len(), 1, "it is not listed beside those that people made");
        let elsewhere = server.namespace("elsewhere").await;
        assert_eq!(mirrored(&server, &elsewhere, json!({})).await, Vec::<String>::new());
        // A key for collections alone reads no annotations by the way.
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let scopes = json!([{"resource_type": "collection", "resource_id": "*"}]);
        let narrow = server.call("POST", keys, json!({"name": "narrow", "permissions": ["write"], "scopes": scopes})).await.ok();
        let request = server.request("GET", SIGNAL).bearer_auth(narrow["key"].as_str().unwrap()).header("x-namespace", &namespace);
        Server::send(request).await.error(403, "ForbiddenError");
    }

    async fn a_signal_that_was_lost_is_made_again(server) {
        let (namespace, whales, ships) = documents(&server).await;
        let body = json!({"create": [{"document_id": whales, "label": "a"}, {"document_id": ships, "label": "b"}]});
        server.call_in(&namespace, "POST", "/v1/annotations/bulk", body).await.ok();
        // As if the process had died before it wrote.
        server.app.store().drop_collection(&namespace, signal::SIGNAL).await.unwrap();
        assert_eq!(mirrored(&server, &namespace, json!({})).await, Vec::<String>::new());
        server.app.clock().advance(11);
        mirror_becomes(&server, &namespace, &["a", "b"]).await;
        // The server looks by itself, too, and may not be done.
        let start = Instant::now();
        while server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM annotation_signals", vec![]).await.unwrap() > 0 {
            assert!(start.elapsed() < Duration::from_secs(180), "something is left to look at");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn lists_and_counts_are_narrowed(server) {
        let (namespace, whales, ships) = documents(&server).await;
        for (document, label) in [(&whales, "good"), (&whales, "bad"), (&ships, "good")] {
            server.app.clock().advance(1);
            let body = json!({"document_id": document, "collection_id": "things", "label": label});
            server.call_in(&namespace, "POST", "/v1/annotations", body).await.ok();
        }
        let list = async |query: &str, body: Value| server.call_in(&namespace, "POST", &format!("/v1/annotations/list{query}"), body).await;
        assert_eq!(labels(&list("", json!({})).await.ok()), ["good", "bad", "good"]);
        assert_eq!(labels(&list("", json!({"document_id": whales})).await.ok()), ["bad", "good"]);
        assert_eq!(labels(&list("", json!({"collection_id": "things", "label": "bad"})).await.ok()), ["bad"]);
        assert_eq!(labels(&list("", json!({"collection_id": "others"})).await.ok()), Vec::<&str>::new());
        let page = list("?skip=1&limit=1", json!({})).await.ok();
        assert_eq!((labels(&page), &page["total_count"]), (vec!["bad"], &json!(3)));
        list("?limit=501", json!({})).await.invalid(&["query", "limit"], "range");
        list("?skip=-1", json!({})).await.invalid(&["query", "skip"], "range");
        let stats = async |query: &str| server.call_in(&namespace, "GET", &format!("/v1/annotations/stats{query}"), Value::Null).await.ok();
        assert_eq!(stats("").await, json!({"total": 3, "by_label": {"bad": 1, "good": 2}}));
        assert_eq!(stats(&format!("?document_id={ships}&collection_id=things")).await, json!({"total": 1, "by_label": {"good": 1}}));
    }

    async fn a_decision_needs_a_document(server) {
        let (namespace, whales, _) = documents(&server).await;
        let post = async |body: Value| server.call_in(&namespace, "POST", "/v1/annotations", body).await;
        post(json!({"document_id": "doc_unknown", "label": "x"})).await.error(404, "NotFoundError");
        post(json!({"document_id": whales, "collection_id": "col_unknown", "label": "x"})).await.error(404, "NotFoundError");
        post(json!({"document_id": whales, "label": ""})).await.invalid(&["body", "label"], "string_too_short");
        post(json!({"document_id": whales, "label": "x", "confidence": 1.5})).await.invalid(&["body", "confidence"], "less_than_equal");
        post(json!({"document_id": whales, "label": "x", "reasoning": "r".repeat(5001)})).await.invalid(&["body", "reasoning"], "string_too_long");
        // Another namespace and another organization have no such document and no such annotation.
        let made = post(json!({"document_id": whales, "label": "x"})).await.ok();
        let path = format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap());
        let elsewhere = server.namespace("elsewhere").await;
        server.call_in(&elsewhere, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&elsewhere, "PATCH", &path, json!({"label": "y"})).await.error(404, "NotFoundError");
        server.call_in(&elsewhere, "POST", "/v1/annotations", json!({"document_id": whales, "label": "x"})).await.error(404, "NotFoundError");
        let other = other_organization(&server).await;
        let theirs = server.request("GET", &path).bearer_auth(&other.key).header("x-namespace", &namespace);
        assert!(matches!(Server::send(theirs).await.status, 403 | 404));
    }

    async fn in_bulk_each_is_done_or_refused_for_itself(server) {
        let (namespace, whales, ships) = documents(&server).await;
        let bulk = async |body: Value| server.call_in(&namespace, "POST", "/v1/annotations/bulk", body).await;
        let made = bulk(json!({"create": [
            {"document_id": whales, "label": "a"},
            {"document_id": "doc_unknown", "label": "b"},
            {"document_id": ships, "collection_id": "things", "label": "c"},
        ]})).await.ok();
        assert_eq!((&made["created_count"], &made["failed_count"]), (&json!(2), &json!(1)));
        assert_eq!(made["results"][1], json!({"operation": "create", "success": false, "error": made["results"][1]["error"]}));
        let id = |place: usize| made["results"][place]["annotation_id"].as_str().unwrap().to_owned();
        let changed = bulk(json!({
            "update": [{"annotation_id": id(0), "label": "z"}, {"annotation_id": "ann_unknown", "label": "z"}],
            "delete": [id(2), "ann_unknown"],
        })).await.ok();
        let counts = ["created_count", "updated_count", "deleted_count", "failed_count"].map(|name| changed[name].as_i64().unwrap());
        assert_eq!(counts, [0, 1, 1, 2]);
        let list = server.call_in(&namespace, "POST", "/v1/annotations/list", json!({})).await.ok();
        assert_eq!((labels(&list), &list["results"][0]["version"]), (vec!["z"], &json!(2)));
        bulk(json!({"delete": vec!["ann_x"; 1001]})).await.invalid(&["body", "delete"], "too_long");
        // Who may write may not delete.
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let writer = server.call("POST", keys, json!({"name": "writer", "permissions": ["write"]})).await.ok();
        let request = server.request("POST", "/v1/annotations/bulk").bearer_auth(writer["key"].as_str().unwrap())
            .header("x-namespace", &namespace).json(&json!({"delete": [id(0)]}));
        Server::send(request).await.error(403, "ForbiddenError");
    }
}
