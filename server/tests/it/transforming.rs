//! Collections whose documents are made of what a retriever finds, or stages make, for each object or document of their source.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode};
use serde_json::{Value, json};

use crate::{
    batches::ended,
    billing::amid_a_month,
    both,
    fetching::serve,
    harness::{Answer, Server},
    stages::{collection, stage},
    supervising::through,
};

/// A namespace with a collection of kinds by their codes, and a retriever that finds those of one code.
async fn kinds(server: &Server) -> (String, String) {
    let namespace = server.namespace("transforming").await;
    let kinds = [
        json!({"label": "Food", "code": "f"}),
        json!({"label": "Fruit", "code": "f"}),
        json!({"label": "Tools", "code": "t"}),
    ];
    let kinds = collection(server, &namespace, "kinds", &kinds).await;
    let by_code = json!({"AND": [{"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}]});
    let finder = json!({
        "retriever_name": "kinds of a code", "collection_identifiers": [kinds],
        "input_schema": {"code": {"type": "string", "required": true}},
        "stages": [stage("attribute_filter", json!({"conditions": by_code}))],
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/retrievers", finder)
        .await
        .ok();
    let finder = made["retriever_id"].as_str().unwrap().to_owned();
    (namespace, finder)
}

async fn bucket(server: &Server, namespace: &str) -> String {
    let schema = json!({"properties": {"code": {"type": "string"}, "title": {"type": "string"}}});
    let body = json!({"bucket_name": "things", "bucket_schema": schema});
    let made = server
        .call_in(namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    made["bucket_id"].as_str().unwrap().to_owned()
}

async fn thing(server: &Server, namespace: &str, bucket: &str, body: Value) -> String {
    let path = format!("/v1/buckets/{bucket}/objects");
    let made = server.call_in(namespace, "POST", &path, body).await.ok();
    made["object_id"].as_str().unwrap().to_owned()
}

fn asked(name: &str, source: &Value, transform: &Value) -> Value {
    json!({"collection_name": name, "source": source, "retriever_transform": transform})
}

async fn transformed(
    server: &Server,
    namespace: &str,
    name: &str,
    source: Value,
    transform: Value,
) -> Value {
    let body = asked(name, &source, &transform);
    server
        .call_in(namespace, "POST", "/v1/collections", body)
        .await
        .ok()
}

/// Begins to process the whole source of a collection; answers the path of the batch.
async fn begun(server: &Server, namespace: &str, collection: &str) -> String {
    let path = format!("/v1/collections/{collection}/trigger");
    let answer = server.call_in(namespace, "POST", &path, json!({})).await;
    assert_eq!(answer.status, 202, "{:#}", answer.body);
    let batch = answer.body["batch_id"].as_str().unwrap();
    format!("/v1/batches/{batch}")
}

/// Processes the whole source of a collection and waits for the end of that.
async fn triggered(server: &Server, namespace: &str, collection: &str) -> Value {
    let path = begun(server, namespace, collection).await;
    ended(server, namespace, &path).await
}

/// The same, past the pauses between tries; answers how many those were, too.
async fn tried(server: &Server, namespace: &str, collection: &str) -> (Value, usize) {
    let path = begun(server, namespace, collection).await;
    let (batch, pauses) = through(server, namespace, &path).await;
    (batch, pauses.len())
}

/// A service that knows everything, once it has failed so many times; its address.
pub async fn moody() -> (String, Arc<AtomicUsize>) {
    let failures = Arc::new(AtomicUsize::new(0));
    let left = failures.clone();
    let answer = move || {
        let (set, read) = (Ordering::SeqCst, Ordering::SeqCst);
        let fails = left.fetch_update(set, read, |left| left.checked_sub(1));
        async move {
            match fails {
                Ok(_) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
                Err(_) => (StatusCode::OK, json!("known").to_string()),
            }
        }
    };
    let address = serve(Router::new().fallback(answer), "127.0.0.2").await;
    (address, failures)
}

/// A stage that asks such a service about each document.
pub fn asking(address: &str, on_error: Option<&str>) -> Value {
    let mut parameters = json!({"url": format!("{address}/facts"), "allowed_domains": ["127.0.0.2"], "output_field": "facts"});
    if let Some(on_error) = on_error {
        parameters["on_error"] = on_error.into();
    }
    stage("api_call", parameters)
}

/// The documents of a collection, by one of their fields.
async fn documents(server: &Server, namespace: &str, collection: &str, by: &str) -> Vec<Value> {
    let path = format!("/v1/collections/{collection}/documents/list");
    let body = json!({"limit": 100});
    let page = server.call_in(namespace, "POST", &path, body).await.ok();
    let mut documents = page["results"].as_array().unwrap().clone();
    documents.sort_by_key(|one| one[by].to_string());
    documents
}

fn all(documents: &[Value], member: &str) -> Vec<Value> {
    documents.iter().map(|one| one[member].clone()).collect()
}

async fn searched_usd(server: &Server) -> f64 {
    let path = "/v1/organizations/usage";
    let usage = server.call("GET", path, Value::Null).await.ok();
    usage["spend"]["search_usd"].as_f64().unwrap()
}

/// Waits until so many searches are counted: some may be on their way to the database.
async fn searched(server: &Server, before: f64, count: f64) {
    let start = Instant::now();
    loop {
        let spent = searched_usd(server).await - before;
        if (spent - count * 2e-6).abs() < 1e-9 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{spent}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a key of an end user is answered.
async fn as_user(server: &Server, key: &str, namespace: &str, path: &str, body: Value) -> Answer {
    let request = server
        .request("POST", path)
        .bearer_auth(key)
        .header("x-namespace", namespace);
    Server::send(request.json(&body)).await
}

async fn user(server: &Server, name: &str) -> String {
    let body = json!({"name": name, "principal_id": name, "permissions": ["delete"]});
    let keys = "/v1/organizations/users/owner@localhost/api-keys";
    let made = server.call("POST", keys, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

both! {
    async fn what_a_retriever_finds_for_objects_becomes_documents(server) {
        amid_a_month(&server);
        let (namespace, finder) = kinds(&server).await;
        let bucket = bucket(&server, &namespace).await;
        let mut apple = String::new();
        for thing_of in [json!({"title": "stone", "code": "x"}), json!({"title": "bare"}), json!({"title": "saw", "code": "t"}), json!({"title": "apple", "code": "f"})] {
            apple = thing(&server, &namespace, &bucket, thing_of).await;
        }
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let made = transformed(&server, &namespace, "offers", source, json!({"retriever_id": "kinds of a code", "unique_id_field": "label"})).await;
        let told = &made["retriever_transform"];
        assert_eq!((&told["retriever_id"], &told["retriever_version"], &told["unique_id_field"]), (&json!(finder), &json!(1), &json!("label")), "{made:#}");
        assert_eq!(made["feature_extractor"]["feature_extractor_name"], "passthrough_extractor");
        let before = searched_usd(&server).await;

        let batch = triggered(&server, &namespace, "offers").await;
        assert_eq!((&batch["status"], &batch["failed_object_count"], &batch["documents_written"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(1), &json!(3)), "{batch:#}");
        let reason = batch["failed_objects"][0]["error"].as_str().unwrap();
        assert!(reason.contains("retriever_transform") && reason.contains("code"), "{reason}");
        let first = documents(&server, &namespace, "offers", "label").await;
        assert_eq!(all(&first, "label"), [json!("Food"), json!("Fruit"), json!("Tools")]);
        let food = &first[0];
        assert_eq!((&food["code"], food.get("title")), (&json!("f"), None), "a result says what it says itself: {food:#}");
        let internal = &food["_internal"];
        assert_eq!((&internal["lineage"]["root_object_id"], &internal["lineage"]["root_bucket_id"]), (&json!(apple), &json!(bucket)), "{internal:#}");
        let said = &internal["processing"]["retriever_transform"][0];
        assert_eq!(said["retriever_id"], json!(finder), "{internal:#}");
        let kinds = documents(&server, &namespace, "kinds", "label").await;
        assert_eq!(said["document_id"], kinds[0]["document_id"], "{internal:#}");
        // What is announced is there, and each search is paid for once.
        let written = server.events("collection.documents.written").await;
        let announced = written.iter().filter(|one| one["payload"]["collection_id"] == made["collection_id"]);
        let announced: BTreeSet<String> = announced.flat_map(|one| one["payload"]["document_ids"].as_array().unwrap()).map(Value::to_string).collect();
        let there: BTreeSet<String> = all(&first, "document_id").iter().map(Value::to_string).collect();
        assert_eq!(announced, there);
        // Three searches: one question was refused.
        searched(&server, before, 3.0).await;

        // Nothing of the source changes, what is found does: the same results are the same documents.
        let path = format!("/v1/collections/kinds/documents/{}", kinds[0]["document_id"].as_str().unwrap());
        server.call_in(&namespace, "DELETE", &path, Value::Null).await;
        server.call_in(&namespace, "POST", "/v1/collections/kinds/documents", json!({"label": "Vegetables", "code": "f"})).await.ok();
        triggered(&server, &namespace, "offers").await;
        let second = documents(&server, &namespace, "offers", "label").await;
        assert_eq!(all(&second, "label"), [json!("Fruit"), json!("Tools"), json!("Vegetables")]);
        assert_eq!(all(&second[..2], "document_id"), all(&first[1..], "document_id"));
        searched(&server, before, 6.0).await;

        // A retriever that is gone costs no document, and says so.
        server.call_in(&namespace, "DELETE", &format!("/v1/retrievers/{finder}"), Value::Null).await;
        let batch = triggered(&server, &namespace, "offers").await;
        assert_eq!(batch["failed_object_count"], 4, "{batch:#}");
        let reason = batch["failed_objects"].as_array().unwrap().iter().map(|one| one["error"].as_str().unwrap()).find(|one| one.contains("keeps the documents"));
        assert!(reason.is_some_and(|reason| reason.contains("retriever_transform")), "{batch:#}");
        assert_eq!(documents(&server, &namespace, "offers", "label").await.len(), 3);
    }

    async fn an_answer_that_is_not_whole_is_tried_again_and_takes_nothing_away(server) {
        let (namespace, _) = kinds(&server).await;
        let (address, failures) = moody().await;
        let by_code = json!({"AND": [{"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}]});
        for (name, on_error) in [("strict", None), ("patient", Some("skip"))] {
            let finder = json!({
                "retriever_name": name, "collection_identifiers": ["kinds"], "input_schema": {"code": {"type": "string", "required": true}},
                "stages": [stage("attribute_filter", json!({"conditions": by_code})), asking(&address, on_error)],
            });
            server.call_in(&namespace, "POST", "/v1/retrievers", finder).await.ok();
        }
        let bucket = bucket(&server, &namespace).await;
        thing(&server, &namespace, &bucket, json!({"title": "apple", "code": "f"})).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        transformed(&server, &namespace, "offers", source.clone(), json!({"retriever_id": "strict"})).await;
        let (batch, pauses) = tried(&server, &namespace, "offers").await;
        assert_eq!((&batch["status"], pauses), (&json!("COMPLETED"), 0), "{batch:#}");
        let ids = |documents: &[Value]| all(documents, "document_id");
        let whole = documents(&server, &namespace, "offers", "label").await;
        assert_eq!(all(&whole, "facts"), [json!("known"), json!("known")]);

        // The service fails for one of the two documents, and has come back when it is asked again.
        failures.store(1, Ordering::SeqCst);
        let (batch, pauses) = tried(&server, &namespace, "offers").await;
        assert_eq!((&batch["status"], pauses), (&json!("COMPLETED"), 1), "{batch:#}");
        let same = documents(&server, &namespace, "offers", "label").await;
        assert_eq!((ids(&same), all(&same, "facts")), (ids(&whole), all(&whole, "facts")));
        // It stays away: the object fails, and its documents are there still.
        failures.store(usize::MAX, Ordering::SeqCst);
        let (batch, pauses) = tried(&server, &namespace, "offers").await;
        assert_eq!((&batch["status"], pauses), (&json!("FAILED"), 2), "{batch:#}");
        let reason = batch["failed_objects"][0]["error"].as_str().unwrap();
        for part in ["not whole", "api_call", "503", "keeps the documents"] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        let same = documents(&server, &namespace, "offers", "label").await;
        assert_eq!((ids(&same), all(&same, "facts")), (ids(&whole), all(&whole, "facts")));

        // Who wrote that documents stay as they are where the call fails gets them.
        transformed(&server, &namespace, "guesses", source, json!({"retriever_id": "patient"})).await;
        let (batch, pauses) = tried(&server, &namespace, "guesses").await;
        assert_eq!((&batch["status"], pauses), (&json!("COMPLETED"), 0), "{batch:#}");
        let made = documents(&server, &namespace, "guesses", "label").await;
        assert_eq!((all(&made, "label"), made[0].get("facts")), (vec![json!("Food"), json!("Fruit")], None));
    }

    async fn a_services_last_word_fails_an_object_at_once(server) {
        let (namespace, _) = kinds(&server).await;
        let address = serve(Router::new().fallback(|| async { StatusCode::NOT_FOUND }), "127.0.0.2").await;
        let by_code = json!({"AND": [{"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}]});
        let finder = json!({
            "retriever_name": "strict", "collection_identifiers": ["kinds"], "input_schema": {"code": {"type": "string", "required": true}},
            "stages": [stage("attribute_filter", json!({"conditions": by_code})), asking(&address, None)],
        });
        server.call_in(&namespace, "POST", "/v1/retrievers", finder).await.ok();
        let bucket = bucket(&server, &namespace).await;
        thing(&server, &namespace, &bucket, json!({"title": "apple", "code": "f"})).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        transformed(&server, &namespace, "offers", source, json!({"retriever_id": "strict"})).await;
        let (batch, pauses) = tried(&server, &namespace, "offers").await;
        assert_eq!((&batch["status"], pauses), (&json!("FAILED"), 0), "{batch:#}");
        let failed = &batch["failed_objects"][0];
        assert!(failed["error"].as_str().is_some_and(|error| error.contains("404")), "{batch:#}");

        // One that is away for a moment is asked again, also where that is to end the search.
        let (address, failures) = moody().await;
        let finder = json!({
            "retriever_name": "loud", "collection_identifiers": ["kinds"], "input_schema": {"code": {"type": "string", "required": true}},
            "stages": [stage("attribute_filter", json!({"conditions": by_code})), asking(&address, Some("raise"))],
        });
        server.call_in(&namespace, "POST", "/v1/retrievers", finder).await.ok();
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        transformed(&server, &namespace, "answers", source, json!({"retriever_id": "loud"})).await;
        failures.store(1, Ordering::SeqCst);
        let (batch, pauses) = tried(&server, &namespace, "answers").await;
        assert_eq!((&batch["status"], pauses), (&json!("COMPLETED"), 1), "{batch:#}");
    }

    async fn results_are_written_onto_documents_of_another_collection(server) {
        let (namespace, _) = kinds(&server).await;
        let notes = [json!({"name": "apple", "article": {"code": "f"}}), json!({"name": "saw", "article": {"code": "t"}})];
        let notes = collection(&server, &namespace, "notes", &notes).await;
        let transform = json!({
            "retriever_id": "kinds of a code",
            "input_mappings": [{"input_key": "code", "source": {"source_type": "document_field", "path": "article.code"}}],
            "write_back_fields": [{"source_field": "label", "target_field": "kind.name"}],
        });
        let source = json!({"type": "collection", "collection_ids": ["notes"]});
        transformed(&server, &namespace, "sorted", source, transform).await;
        let batch = triggered(&server, &namespace, "sorted").await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(3)), "{batch:#}");
        let made = documents(&server, &namespace, "sorted", "kind").await;
        assert_eq!(all(&made, "kind"), [json!({"name": "Food"}), json!({"name": "Fruit"}), json!({"name": "Tools"})]);
        assert_eq!(all(&made, "name"), [json!("apple"), json!("apple"), json!("saw")]);
        assert_eq!(made[0].get("label"), None, "{:#}", made[0]);
        let lineage = &made[0]["_internal"]["lineage"];
        let apple = documents(&server, &namespace, "notes", "name").await.remove(0);
        assert_eq!((&lineage["source_document_id"], &lineage["source_collection_id"]), (&apple["document_id"], &json!(notes)), "{lineage:#}");

        // The clone is filled by the same retriever.
        server.call_in(&namespace, "POST", "/v1/collections/sorted/clone", json!({"collection_name": "sorted_again"})).await.ok();
        let pattern = server.call_in(&namespace, "GET", "/v1/collections/sorted", Value::Null).await.ok();
        let clone = server.call_in(&namespace, "GET", "/v1/collections/sorted_again", Value::Null).await.ok();
        assert_eq!(clone["retriever_transform"], pattern["retriever_transform"]);
    }

    async fn stages_work_on_the_documents_themselves(server) {
        let namespace = server.namespace("unwound").await;
        let orders = collection(&server, &namespace, "orders", &[]).await;
        let written = format!("/v1/collections/{orders}/documents");
        let order = json!({"number": 7, "lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}, {"sku": "b", "count": 9}]});
        let order = server.call_in(&namespace, "POST", &written, order).await.ok();
        let source = json!({"type": "collection", "collection_ids": [orders]});
        let stages = json!([stage("unwind", json!({"field": "lines"}))]);
        transformed(&server, &namespace, "lines", source, json!({"stages": stages, "unique_id_field": ["number", "lines.sku"]})).await;
        let batch = triggered(&server, &namespace, "lines").await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(2)), "{batch:#}");
        let first = documents(&server, &namespace, "lines", "lines").await;
        let lines: BTreeSet<String> = all(&first, "lines").iter().map(|one| one["sku"].to_string()).collect();
        assert_eq!(lines.len(), 2, "{first:#?}");
        assert!(first.iter().all(|one| one["number"] == 7), "{first:#?}");
        let of = |documents: &[Value], sku: &str| documents.iter().find(|one| one["lines"]["sku"] == sku).cloned().unwrap_or_default();
        assert_eq!(of(&first, "b")["lines"]["count"], 2, "the first of two that are the same");

        let path = format!("{written}/{}", order["document_id"].as_str().unwrap());
        let change = json!({"lines": [{"sku": "b", "count": 5}, {"sku": "c", "count": 1}]});
        server.call_in(&namespace, "PATCH", &path, change).await.ok();
        triggered(&server, &namespace, "lines").await;
        let second = documents(&server, &namespace, "lines", "lines").await;
        assert_eq!((second.len(), of(&second, "a"), &of(&second, "b")["lines"]["count"]), (2, Value::Null, &json!(5)), "{second:#?}");
        assert_eq!(of(&second, "b")["document_id"], of(&first, "b")["document_id"]);
    }

    async fn end_users_get_what_they_see_and_nobody_sees_more(server) {
        let (namespace, _) = kinds(&server).await;
        collection(&server, &namespace, "notes", &[json!({"name": "pear", "code": "f"})]).await;
        let (ann, ben) = (user(&server, "ann").await, user(&server, "ben").await);
        let kinds = "/v1/collections/kinds/documents";
        for (key, label) in [(&ann, "of Ann"), (&ben, "of Ben")] {
            as_user(&server, key, &namespace, kinds, json!({"label": label, "code": "f"})).await.ok();
        }
        as_user(&server, &ann, &namespace, "/v1/collections/notes/documents", json!({"name": "apple", "code": "f"})).await.ok();
        let transform = json!({"retriever_id": "kinds of a code", "write_back_fields": [{"source_field": "label", "target_field": "kind"}]});
        transformed(&server, &namespace, "sorted", json!({"type": "collection", "collection_ids": ["notes"]}), transform).await;
        let batch = triggered(&server, &namespace, "sorted").await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let made = documents(&server, &namespace, "sorted", "kind").await;
        let of = |name: &str| made.iter().filter(|one| one["name"] == name).map(|one| one["kind"].clone()).collect::<Vec<Value>>();
        assert_eq!(of("pear"), [json!("Food"), json!("Fruit"), json!("of Ann"), json!("of Ben")]);
        assert_eq!(of("apple"), [json!("of Ann")]);
        let list = "/v1/collections/sorted/documents/list";
        let seen = as_user(&server, &ann, &namespace, list, json!({"limit": 100})).await.ok();
        let seen = seen["results"].as_array().unwrap().clone();
        assert_eq!((all(&seen, "name"), all(&seen, "kind")), (vec![json!("apple")], vec![json!("of Ann")]));
        let seen = as_user(&server, &ben, &namespace, list, json!({"limit": 100})).await.ok();
        assert_eq!(seen["results"], json!([]));
    }

    async fn what_cannot_transform_is_refused(server) {
        let (namespace, finder) = kinds(&server).await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let send = async |name: &str, source: &Value, transform: Value| {
            server.call_in(&namespace, "POST", "/v1/collections", asked(name, source, &transform)).await
        };
        let mapped = |key: &str| json!({"retriever_id": finder, "input_mappings": [{"input_key": key, "source": {"source_type": "document_field", "path": "code"}}]});
        let written = |target: &str| json!({"retriever_id": finder, "write_back_fields": [{"source_field": "label", "target_field": target}]});
        let unwind = stage("unwind", json!({"field": "lines"}));
        for (transform, place, kind) in [
            (json!({}), &["retriever_id"][..], "missing"),
            (json!({"retriever_id": finder, "stages": [unwind]}), &["stages"][..], "value_error"),
            (json!({"retriever_id": finder, "retriever_version": 2}), &["retriever_version"][..], "value_error"),
            (json!({"stages": [unwind], "retriever_version": 1}), &["retriever_version"][..], "value_error"),
            (mapped("cod"), &["input_mappings", "0", "input_key"][..], "value_error"),
            (written("_internal.lineage"), &["write_back_fields", "0", "target_field"][..], "value_error"),
            (json!({"retriever_id": finder, "unique_id_field": [""]}), &["unique_id_field"][..], "value_error"),
            (json!({"retriever_id": finder, "unique_id_field": 7}), &["unique_id_field"][..], "value_error"),
        ] {
            let place = [&["body", "retriever_transform"][..], place].concat();
            send("refused", &source, transform).await.invalid(&place, kind);
        }
        let wrong = send("refused", &source, json!({"stages": [stage("unwind", json!({}))]})).await;
        assert_eq!(wrong.status, 422, "{:#}", wrong.body);
        let place = wrong.body["detail"][0]["loc"].as_array().unwrap();
        assert_eq!(place[..4], [json!("body"), json!("retriever_transform"), json!("stages"), json!("0")], "{:#}", wrong.body);
        let nothing = json!({"type": "direct_upsert"});
        send("refused", &nothing, json!({"retriever_id": finder})).await.invalid(&["body", "retriever_transform"], "value_error");
        // One that is not there, and one of another namespace, are the same.
        let elsewhere = server.namespace("elsewhere").await;
        let other = collection(&server, &elsewhere, "others", &[]).await;
        let other = crate::stages::retriever(&server, &elsewhere, &other, vec![unwind.clone()]).await;
        for unknown in ["ret_unknown", &other] {
            send("refused", &source, json!({"retriever_id": unknown})).await.error(404, "NotFoundError");
        }

        // A retriever names a collection that is gone: no other may come into its place and be read by what makes it.
        collection(&server, &namespace, "loop", &[]).await;
        let linked = stage("document_enrich", json!({"target_collection_id": "loop", "source_field": "code", "target_field": "code"}));
        let round = crate::stages::retriever(&server, &namespace, "kinds", vec![linked]).await;
        server.call_in(&namespace, "DELETE", "/v1/collections/loop", Value::Null).await.ok();
        send("loop", &source, json!({"retriever_id": round})).await.invalid(&["body", "retriever_transform", "retriever_id"], "value_error");
        send("circle", &source, json!({"retriever_id": round})).await.ok();
        server.call_in(&namespace, "PATCH", "/v1/collections/circle", json!({"collection_name": "loop"})).await.ok();
        thing(&server, &namespace, &bucket, json!({"title": "apple", "code": "f"})).await;
        let batch = triggered(&server, &namespace, "loop").await;
        let reason = batch["failed_objects"][0]["error"].as_str().unwrap_or_default();
        assert!(reason.contains("reads the collection itself"), "{batch:#}");
    }

    async fn a_clone_of_a_namespace_transforms_by_its_own_retriever(server) {
        let (namespace, finder) = kinds(&server).await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let made = transformed(&server, &namespace, "offers", source, json!({"retriever_id": finder})).await;
        let clone = format!("/v1/namespaces/{namespace}/clone");
        let answer = server.call("POST", &clone, json!({"namespace_name": "transforming too"})).await.ok();
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let ids = &answer["cloned_resources"];
        let (own, copy) = (&ids["retrievers"][&finder], &ids["collections"][made["collection_id"].as_str().unwrap()]);
        let path = format!("/v1/collections/{}", copy.as_str().unwrap());
        let found = server.call_in(answer["namespace"]["namespace_id"].as_str().unwrap(), "GET", &path, Value::Null).await.ok();
        assert_eq!(&found["retriever_transform"]["retriever_id"], own, "{found:#}");
        assert_ne!(own, &json!(finder));
    }
}
