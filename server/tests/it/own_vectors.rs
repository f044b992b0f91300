//! Namespaces for vectors of one's own: made, written to, searched, promoted.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, other_organization},
};

const NAMESPACE: &str = "films-of-ours";

async fn make(server: &Server, body: Value) -> Answer {
    server.call("POST", "/v1/namespaces/standalone", body).await
}

/// A namespace with one index of three numbers.
async fn films(server: &Server) -> String {
    let body =
        json!({"namespace_id": NAMESPACE, "vector_configs": [{"name": "plot", "dimension": 3}]});
    let made = make(server, body).await.ok();
    assert_eq!(
        (&made["mode"], &made["status"]),
        (&json!("standalone"), &json!("active"))
    );
    assert_eq!(
        made["vector_configs"],
        json!([{"name": "plot", "dimension": 3, "metric": "cosine"}])
    );
    format!("/v1/namespaces/{NAMESPACE}/documents")
}

fn film(id: &str, vector: Value, title: &str) -> Value {
    json!({"document_id": id, "vectors": {"plot": vector}, "payload": {"title": title}})
}

async fn upsert(server: &Server, path: &str, documents: Value) -> Answer {
    server
        .call(
            "POST",
            &format!("{path}/upsert"),
            json!({"documents": documents}),
        )
        .await
}

/// Titles that a search finds, best first; with the query of a feature search.
async fn search(server: &Server, namespace: &str, index: &str, query: Value) -> Vec<String> {
    let stage = json!({"stage_name": "near", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
        "searches": [{"feature_uri": index, "query": query, "top_k": 10}], "final_top_k": 10}}});
    let body = json!({"collection_identifiers": ["documents"], "input_schema": {}, "stages": [stage], "inputs": {}});
    let found = server
        .call_in(namespace, "POST", "/v1/retrievers/execute", body)
        .await
        .ok();
    let titles = found["documents"].as_array().unwrap().iter();
    titles
        .map(|one| one["title"].as_str().unwrap().to_owned())
        .collect()
}

async fn count(server: &Server) -> i64 {
    let path = format!("/v1/namespaces/{NAMESPACE}/stats");
    server.call("GET", &path, Value::Null).await.ok()["document_count"]
        .as_i64()
        .unwrap()
}

async fn person(server: &Server, name: &str) -> String {
    let body = json!({"name": name, "principal_id": name, "permissions": ["write"]});
    let keys = "/v1/organizations/users/owner@localhost/api-keys";
    server.call("POST", keys, body).await.ok()["key"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn call_as(server: &Server, key: &str, method: &str, path: &str, body: Value) -> Answer {
    let mut request = server.request(method, path).bearer_auth(key);
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await
}

both! {
    async fn documents_are_written_under_own_ids_and_found_by_their_vectors(server) {
        let path = films(&server).await;
        let sent = json!([film("one", json!([1, 0, 0]), "Metropolis"), film("zwei/2", json!([0, 1, 0]), "Nosferatu"), film("3", json!([0.9, 0.4, 0]), "Faust")]);
        let written = upsert(&server, &path, sent.clone()).await.ok();
        assert_eq!(written["inserted"], 3);
        assert_eq!(written["consistency"]["retriever_visible"], "immediate");
        let ids = written["document_ids"].as_array().unwrap().clone();
        assert!(ids.iter().all(|id| id.as_str().unwrap().starts_with("doc_")), "{ids:?}");

        let near = json!({"input_mode": "vector", "value": [1.0, 0.1, 0.0]});
        assert_eq!(search(&server, NAMESPACE, "plot", near).await, ["Metropolis", "Faust", "Nosferatu"]);
        for id in ["zwei%2F2", ids[1].as_str().unwrap()] {
            let found = server.call("GET", &format!("{path}/{id}?return_vectors=true"), Value::Null).await.ok();
            assert_eq!(found["title"], "Nosferatu", "{id}");
            assert_eq!(found["document_id"], ids[1]);
            assert_eq!(found["vectors"]["plot"], json!([0.0, 1.0, 0.0]));
            assert_eq!(found["_internal"]["external_id"], "zwei/2");
        }
        server.call("GET", &format!("{path}/four"), Value::Null).await.error(404, "NotFoundError");

        // The same again changes nothing, and nobody is told of it.
        let before = server.call("GET", &format!("{path}/one"), Value::Null).await.ok();
        let events = server.call("GET", "/v1/events?limit=1000", Value::Null).await.ok()["results"].as_array().unwrap().len();
        let again = upsert(&server, &path, sent).await.ok();
        assert_eq!(again["document_ids"], written["document_ids"]);
        assert_eq!(server.call("GET", &format!("{path}/one"), Value::Null).await.ok(), before);
        let after = server.call("GET", "/v1/events?limit=1000", Value::Null).await.ok()["results"].as_array().unwrap().len();
        assert_eq!((count(&server).await, after), (3, events));

        // A document that is sent anew is replaced as a whole, under the id that it has.
        let new = json!([{"document_id": "one", "vectors": {"plot": [0, 0, 1]}, "payload": {"name": "M"}}]);
        assert_eq!(upsert(&server, &path, new).await.ok()["document_ids"][0], ids[0]);
        let found = server.call("GET", &format!("{path}/one"), Value::Null).await.ok();
        assert_eq!((&found["name"], &found["title"]), (&json!("M"), &Value::Null));
        assert_eq!(found["_internal"]["created_at"], before["_internal"]["created_at"]);
        let by_given = json!([{"document_id": ids[0], "vectors": {"plot": [0, 0, 1]}, "payload": {"title": "again"}}]);
        assert_eq!(upsert(&server, &path, by_given).await.ok()["document_ids"][0], ids[0]);
        assert_eq!(server.call("GET", &format!("{path}/one"), Value::Null).await.ok()["title"], "again");
        // What was changed by other means is written again although it was sent before.
        let things = format!("/v1/collections/documents/documents/{}", ids[2].as_str().unwrap());
        server.call_in(NAMESPACE, "PATCH", &things, json!({"title": "patched"})).await.ok();
        upsert(&server, &path, json!([film("3", json!([0.9, 0.4, 0]), "Faust")])).await.ok();
        assert_eq!(server.call("GET", &format!("{path}/3"), Value::Null).await.ok()["title"], "Faust");
        assert_eq!(count(&server).await, 3);

        let kinds = |kind: &'static str| server.events(kind);
        let many = kinds("collection.documents.written").await;
        assert_eq!(many.len(), 1, "{many:#?}");
        assert_eq!((&many[0]["operation"], &many[0]["payload"]["document_ids"]), (&json!("insert"), &written["document_ids"]));
        // It has every member of one that a batch tells, though these documents are of none.
        let told = many[0]["payload"].as_object().unwrap();
        assert_eq!((&told["namespace_id"], &told["batch_id"], &told["count"]), (&many[0]["namespace_id"], &Value::Null, &json!(3)));
        assert_eq!(kinds("document.updated").await.len(), 4);
    }

    async fn what_no_index_takes_is_refused_as_a_whole(server) {
        let path = films(&server).await;
        let good = film("good", json!([1, 0, 0]), "good");
        for (vector, kind) in [
            (json!([1, 0]), "vector_dimensions"),
            (json!([1, 0, 1e39]), "finite_number"),
            (json!([1, 0, null]), "finite_number"),
            (json!("1,0,0"), "vector_dimensions"),
            (json!([[1, 0, 0], [0, 1, 0]]), "vector_kind"),
            (json!({"indices": [1], "values": [0.5]}), "vector_kind"),
        ] {
            let sent = json!([good, film("bad", vector, "bad")]);
            upsert(&server, &path, sent).await.invalid(&["body", "documents", "1", "vectors", "plot"], kind);
        }
        let other = json!([{"document_id": "x", "vectors": {"cover": [1, 0, 0]}}]);
        upsert(&server, &path, other).await.invalid(&["body", "documents", "0", "vectors", "cover"], "value_error");
        upsert(&server, &path, json!([good, good])).await.invalid(&["body", "documents", "1", "document_id"], "value_error");
        for id in [" ", "a\u{7}", &"x".repeat(513)] {
            upsert(&server, &path, json!([film(id, json!([1, 0, 0]), "x")])).await.invalid(&["body", "documents", "0", "document_id"], "value_error");
        }
        let many: Vec<Value> = (0..1001).map(|number| film(&number.to_string(), json!([1, 0, 0]), "x")).collect();
        upsert(&server, &path, json!(many)).await.invalid(&["body", "documents"], "too_long");
        assert_eq!(count(&server).await, 0, "nothing of a refused request is kept");

        let told = json!([{"document_id": "bare", "vectors": {}, "metadata": {"a": 1}, "payload": {"title": "bare", "document_id": "mine", "_internal": {"_acl": {}}, "metadata": 2}}]);
        let written = upsert(&server, &path, told).await.ok();
        assert_eq!(written["unsearchable_document_ids"], json!(["bare"]));
        assert_eq!(written["dropped_payload_fields"], json!({"bare": ["document_id", "_internal", "metadata"]}));
        let found = server.call("GET", &format!("{path}/bare"), Value::Null).await.ok();
        assert_eq!(found["metadata"], json!({"a": 1}));
        let none = upsert(&server, &path, json!([])).await.ok();
        assert_eq!((&none["inserted"], &none["document_ids"]), (&json!(0), &json!([])));
        let token = server.call("POST", &format!("{path}/upsert"), json!({"documents": [good], "options": {"write_token": true}})).await.ok();
        assert!(token["write_token"].as_str().is_some_and(|token| token.len() > 5), "{token}");
    }

    async fn a_namespace_is_made_as_asked_or_not_at_all(server) {
        for (member, body) in [
            ("namespace_id", json!({"namespace_id": "-x"})),
            ("namespace_id", json!({"namespace_id": "a b"})),
        ] {
            make(&server, body).await.invalid(&["body", member], "string_pattern_mismatch");
        }
        for word in ["list", "Apps"] {
            make(&server, json!({"namespace_id": word})).await.invalid(&["body", "namespace_id"], "value_error");
        }
        let with = |configs: Value| json!({"namespace_id": "mine", "vector_configs": configs});
        make(&server, with(json!([{"name": "a", "dimension": 0}]))).await.invalid(&["body", "vector_configs", "0", "dimension"], "greater_than_equal");
        make(&server, with(json!([{"name": "a", "dimension": 70000}]))).await.invalid(&["body", "vector_configs", "0", "dimension"], "value_error");
        make(&server, with(json!([{"name": "a", "dimension": 3, "metric": "taxicab"}]))).await.invalid(&["body", "vector_configs", "0", "metric"], "value_error");
        make(&server, with(json!([{"name": "a", "dimension": 3}, {"name": "a", "dimension": 4}]))).await.invalid(&["body", "vector_configs", "1", "name"], "value_error");
        make(&server, json!({"namespace_id": "mine", "storage": {"connection_id": "conn_x"}})).await.invalid(&["body", "storage", "connection_id"], "value_error");
        make(&server, json!({"namespace_id": "mine", "config": {"shards": 3}})).await.invalid(&["body", "config", "shards"], "value_error");
        server.call("GET", "/v1/namespaces/mine", Value::Null).await.error(404, "NotFoundError");

        // Without indexes the first vectors say what they are.
        make(&server, json!({"namespace_id": "mine"})).await.ok();
        make(&server, json!({"namespace_id": "mine"})).await.error(409, "AlreadyExistsError");
        let path = "/v1/namespaces/mine/documents/upsert";
        let first = json!({"documents": [{"document_id": "1", "vectors": {"a": [1, 0], "b": [1, 2, 3]}, "payload": {"title": "first"}}]});
        server.call("POST", path, first).await.ok();
        let second = json!({"documents": [{"document_id": "2", "vectors": {"a": [1, 0, 0]}}]});
        server.call("POST", path, second).await.invalid(&["body", "documents", "0", "vectors", "a"], "vector_dimensions");
        let third = json!({"documents": [{"document_id": "2", "vectors": {"c": [0, 1]}, "payload": {"title": "second"}}]});
        server.call("POST", path, third).await.ok();
        let shown = server.call("GET", "/v1/namespaces/mine", Value::Null).await.ok();
        let names: Vec<&str> = shown["vector_configs"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        // Documents from before an index was added are found, and replaced, as ever.
        let near = |vector: Value| json!({"input_mode": "vector", "value": vector});
        assert_eq!(search(&server, "mine", "a", near(json!([1, 0]))).await, ["first"]);
        assert_eq!(search(&server, "mine", "c", near(json!([0, 1]))).await, ["second"]);
        let again = json!({"documents": [{"document_id": "1", "vectors": {"c": [1, 0]}, "payload": {"title": "moved"}}]});
        server.call("POST", path, again).await.ok();
        assert_eq!(search(&server, "mine", "c", near(json!([1, 0]))).await, ["moved", "second"]);
        assert!(search(&server, "mine", "a", near(json!([1, 0]))).await.is_empty());
    }

    async fn a_name_that_no_index_can_have_is_refused_and_never_keeps_the_server_down(server) {
        let with = |name: &str| json!({"namespace_id": "named", "vector_configs": [{"name": name, "dimension": 3}]});
        make(&server, json!({"namespace_id": "free"})).await.ok();
        let long = "x".repeat(201);
        for name in ["", " ", ".", "..", "../x", "a/b", "a:b", "a\u{1f}", &long] {
            make(&server, with(name)).await.invalid(&["body", "vector_configs", "0", "name"], "value_error");
            let documents = json!({"documents": [{"document_id": "1", "vectors": {name: [1, 0]}}]});
            server.call("POST", "/v1/namespaces/free/documents/upsert", documents).await
                .invalid(&["body", "documents", "0", "vectors", name, "name"], "value_error");
            let body = json!({"collection_name": "own", "source": {"type": "direct_upsert"}, "feature_extractor": {
                "feature_extractor_name": "passthrough_extractor", "version": "v1",
                "parameters": {"vector_fields": [{"field": "v", "name": name, "dimensions": 3}]}}});
            server.call_in("free", "POST", "/v1/collections", body).await
                .invalid(&["body", "feature_extractor", "parameters", "vector_fields"], "value_error");
        }
        make(&server, with(&"é".repeat(100))).await.ok();

        // What a document was journalled under before there was this rule is dropped; what is good beside it is written.
        let path = "/v1/namespaces/free/documents";
        upsert(&server, path, json!([{"document_id": "kept", "vectors": {"a": [1, 0]}, "payload": {"title": "kept"}}])).await.ok();
        let spec = json!({"namespace_id": "free", "collection_id": "col_x", "vectors": [{"name": "..", "dims": 2, "distance": "cosine"}]});
        let document = json!({"document_id": format!("doc_{}", "0".repeat(32)), "collection_id": "col_x", "payload": {}, "vectors": {"..": [1.0, 0.0]}, "keywords": null});
        let entry = json!({"operation": "upsert", "collection": spec, "documents": [document]});
        let insert = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES (1, 'free', 'col_x', 'upsert', 1, $1)";
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(insert, loupe_server::args![loupe_server::db::Arg::json(&entry)]).await
        })).await.unwrap();
        let server = server.restart().await;
        assert_eq!(server.call("GET", &format!("{path}/kept"), Value::Null).await.ok()["title"], "kept");
        let left = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM document_journal WHERE seq = 1", vec![]).await.unwrap();
        assert_eq!(left, 0);
    }

    async fn documents_that_are_refused_leave_no_index_behind(server) {
        make(&server, json!({"namespace_id": "mine"})).await.ok();
        let path = "/v1/namespaces/mine/documents";
        let configs = async || server.call("GET", "/v1/namespaces/mine", Value::Null).await.ok()["vector_configs"].clone();
        let sent = json!([{"document_id": "1", "vectors": {"a": [1, 0]}}, {"document_id": "2", "vectors": {"a": [1, 0, 0]}}]);
        upsert(&server, path, sent).await.invalid(&["body", "documents", "1", "vectors", "a"], "vector_dimensions");
        let twice = json!([{"document_id": "1", "vectors": {"a": [1, 0]}}, {"document_id": "1", "vectors": {"a": [1, 0]}}]);
        upsert(&server, path, twice).await.invalid(&["body", "documents", "1", "document_id"], "value_error");
        assert_eq!(configs().await, Value::Null);
        upsert(&server, path, json!([{"document_id": "1", "vectors": {"a": [1, 0, 0]}}])).await.ok();
        assert_eq!(configs().await[0]["dimension"], 3);
        // Many that bring an index each at once lose none.
        let asks = (0..6).map(|number| {
            let document = json!({"document_id": format!("n{number}"), "vectors": {format!("n{number}"): [1, 0]}});
            upsert(&server, path, json!([document]))
        });
        for answer in futures::future::join_all(asks).await {
            answer.ok();
        }
        assert_eq!(configs().await.as_array().unwrap().len(), 7);
    }

    async fn a_promoted_namespace_is_asked_in_words(server) {
        let configs = json!([{"name": "text", "dimension": 384}, {"name": "small", "dimension": 3}]);
        make(&server, json!({"namespace_id": NAMESPACE, "vector_configs": configs})).await.ok();
        let base = format!("/v1/namespaces/{NAMESPACE}");
        let embedded = json!({"inference_name": "all_minilm_l6_v2_v1", "inputs": {"texts": ["a ship on the sea", "bread and butter"]}});
        let vectors = server.call_in(NAMESPACE, "POST", "/v1/inference", embedded).await.ok()["data"]["embeddings"].clone();
        let documents = json!([
            {"document_id": "1", "vectors": {"text": vectors[0]}, "payload": {"title": "ship"}},
            {"document_id": "2", "vectors": {"text": vectors[1], "small": [1, 0, 0]}, "payload": {"title": "bread"}},
        ]);
        upsert(&server, &format!("{base}/documents"), documents).await.ok();

        let told = server.call("POST", &format!("{base}/promote/validate"), Value::Null).await.ok();
        assert_eq!((&told["valid"], &told["current_mode"]), (&json!(true), &json!("standalone")));
        assert_eq!(told["suggestions"][0], json!({"existing_index": "text", "dimension": 384, "inference_services": ["all_minilm_l6_v2_v1"]}));
        let wrong = json!({"vector_mappings": [{"existing_index": "small", "inference_service": "all_minilm_l6_v2_v1"}, {"existing_index": "none", "inference_service": "x"}],
            "add_vectors": [{"name": "text", "dimension": 3}]});
        let told = server.call("POST", &format!("{base}/promote/validate"), wrong.clone()).await.ok();
        assert_eq!((&told["valid"], told["errors"].as_array().unwrap().len()), (&json!(false), 3), "{told:#}");
        server.call("POST", &format!("{base}/promote"), wrong).await
            .invalid(&["body", "vector_mappings", "0", "inference_service"], "value_error");
        assert_eq!(server.call("GET", &base, Value::Null).await.ok()["mode"], "standalone");

        let body = json!({"vector_mappings": [{"existing_index": "text", "inference_service": "loupe://text_extractor@v1/all_minilm_l6_v2_v1"}],
            "add_vectors": [{"name": "cover", "dimension": 2, "metric": "dot"}]});
        let made = server.call("POST", &format!("{base}/promote"), body.clone()).await.ok();
        assert_eq!((&made["previous_mode"], &made["mode"]), (&json!("standalone"), &json!("managed")));
        assert_eq!(made["vector_inference_map"], json!({"text": "all_minilm_l6_v2_v1"}));
        assert_eq!(made["vector_configs"].as_array().unwrap().len(), 3);
        let words = json!({"input_mode": "text", "value": "a boat"});
        assert_eq!(search(&server, NAMESPACE, "text", words).await[0], "ship");
        let near = json!({"input_mode": "vector", "value": [1, 0, 0]});
        assert_eq!(search(&server, NAMESPACE, "small", near).await, ["bread"]);
        upsert(&server, &format!("{base}/documents"), json!([{"document_id": "3", "vectors": {"cover": [1, 1]}, "payload": {"title": "cover"}}])).await.ok();
        assert_eq!(count(&server).await, 3);
        server.call("POST", &format!("{base}/promote"), body).await.error(409, "ConflictError");
        let told = server.call("POST", &format!("{base}/promote/validate"), json!({})).await.ok();
        assert_eq!(told["valid"], false);
    }

    async fn end_users_meet_their_own_documents_and_nobody_elses(server) {
        let path = films(&server).await;
        let (ann, bob) = (person(&server, "ann").await, person(&server, "bob").await);
        let put = |key: String, document: Value| {
            let (server, path) = (&server, format!("{path}/upsert"));
            async move { call_as(server, &key, "POST", &path, json!({"documents": [document]})).await }
        };
        upsert(&server, &path, json!([film("one", json!([1, 0, 0]), "office")])).await.ok();
        // The same id is a document of each: none learns of the others'.
        let of_ann = put(ann.clone(), film("one", json!([1, 0, 0]), "ann")).await.ok()["document_ids"][0].clone();
        let of_bob = put(bob.clone(), film("one", json!([1, 0, 0]), "bob")).await.ok()["document_ids"][0].clone();
        assert_ne!(of_ann, of_bob);
        assert_eq!(count(&server).await, 3);
        for (key, title) in [(&ann, "ann"), (&bob, "bob"), (&server.key, "office")] {
            let found = call_as(&server, key, "GET", &format!("{path}/one"), Value::Null).await.ok();
            assert_eq!(found["title"], title);
        }
        let given = format!("{path}/{}", of_ann.as_str().unwrap());
        call_as(&server, &bob, "GET", &given, Value::Null).await.error(404, "NotFoundError");
        // An id of somebody else is no more than a text: what is written under it is one's own.
        let taken = film(of_ann.as_str().unwrap(), json!([0, 1, 0]), "not ann's");
        let written = put(bob.clone(), taken).await.ok()["document_ids"][0].clone();
        assert_ne!(written, of_ann);
        assert_eq!(call_as(&server, &ann, "GET", &format!("{path}/one"), Value::Null).await.ok()["title"], "ann");
        // What is shared for reading is read, and not written.
        let mut shared = film("one", json!([1, 0, 0]), "ann");
        shared["acl"] = json!({"read": ["bob"]});
        put(ann.clone(), shared.clone()).await.ok();
        assert_eq!(call_as(&server, &bob, "GET", &given, Value::Null).await.ok()["title"], "ann");
        let other = film(of_ann.as_str().unwrap(), json!([0, 1, 0]), "bob's");
        put(bob.clone(), other.clone()).await.error(403, "ForbiddenError");
        // What may be written to is, but who may see it stays its owner's word.
        shared["acl"] = json!({"write": ["bob"]});
        put(ann.clone(), shared).await.ok();
        let mut open = other.clone();
        open["acl"] = json!({"public": true});
        put(bob.clone(), open).await.error(403, "ForbiddenError");
        assert_eq!(put(bob.clone(), other).await.ok()["document_ids"][0], of_ann);
        let found = call_as(&server, &ann, "GET", &format!("{path}/one"), Value::Null).await.ok();
        assert_eq!((&found["title"], &found["_internal"]["_acl"]["owner"]), (&json!("bob's"), &json!("ann")));
        call_as(&server, &ann, "POST", "/v1/namespaces/standalone", json!({"namespace_id": "anns"})).await.error(403, "ForbiddenError");
        call_as(&server, &ann, "POST", &format!("/v1/namespaces/{NAMESPACE}/promote"), json!({})).await.error(403, "ForbiddenError");
    }

    async fn a_namespace_of_somebody_else_is_not_there(server) {
        let path = films(&server).await;
        upsert(&server, &path, json!([film("one", json!([1, 0, 0]), "ours")])).await.ok();
        let other = other_organization(&server).await;
        let theirs = |method: &'static str, path: String, body: Value| {
            let (server, key) = (&server, other.key.clone());
            async move { call_as(server, &key, method, &path, body).await }
        };
        theirs("GET", format!("{path}/one"), Value::Null).await.error(404, "NotFoundError");
        theirs("POST", format!("{path}/upsert"), json!({"documents": []})).await.error(404, "NotFoundError");
        theirs("POST", format!("/v1/namespaces/{NAMESPACE}/promote"), json!({})).await.error(404, "NotFoundError");
        theirs("POST", format!("/v1/namespaces/{NAMESPACE}/promote/validate"), json!({})).await.error(404, "NotFoundError");
        theirs("POST", "/v1/namespaces/standalone".into(), json!({"namespace_id": "theirs", "vector_configs": [{"name": "plot", "dimension": 3}]})).await.ok();
        let found = theirs("POST", "/v1/namespaces/theirs/documents/upsert".into(), json!({"documents": [film("one", json!([1, 0, 0]), "theirs")]})).await.ok();
        assert_eq!(found["inserted"], 1);
        assert_eq!(server.call("GET", &format!("{path}/one"), Value::Null).await.ok()["title"], "ours");

        // An id that is being freed is not free yet; then it is, and empty.
        let gone = server.call("DELETE", &format!("/v1/namespaces/{NAMESPACE}"), Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        films(&server).await;
        assert_eq!(count(&server).await, 0);
        server.call("GET", &format!("{path}/one"), Value::Null).await.error(404, "NotFoundError");
    }
}
