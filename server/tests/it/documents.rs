//! Documents written by callers, and retrievers over them.

use serde_json::{Value, json};

use crate::{both, harness::Server};

/// A namespace with a collection of own vectors of three numbers; answers their ids.
async fn collection(server: &Server) -> (String, String) {
    let namespace = server.namespace("documents").await;
    let body = json!({
        "collection_name": "films",
        "source": {"type": "direct_upsert"},
        "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor",
            "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]},
        },
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/collections", body)
        .await
        .ok();
    (
        namespace,
        made["collection_id"].as_str().unwrap().to_owned(),
    )
}

async fn films(server: &Server) -> (String, String) {
    let (namespace, collection) = collection(server).await;
    let index = server
        .call_in(
            &namespace,
            "GET",
            &format!("/v1/collections/{collection}"),
            Value::Null,
        )
        .await
        .ok();
    let index = index["vector_indexes"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    for (title, year, vector) in [
        ("Metropolis", 1927, [1.0, 0.0, 0.0]),
        ("Nosferatu", 1922, [0.0, 1.0, 0.0]),
        ("Faust", 1926, [0.7, 0.7, 0.0]),
    ] {
        let body = json!({"title": title, "year": year, "vectors": {index.clone(): vector}});
        server
            .call_in(
                &namespace,
                "POST",
                &format!("/v1/collections/{collection}/documents"),
                body,
            )
            .await
            .ok();
    }
    (namespace, collection)
}

both! {
    async fn what_a_caller_says_of_a_documents_origin_is_kept(server) {
        let (namespace, collection) = collection(&server).await;
        let path = format!("/v1/collections/{collection}/documents");
        let step = json!({"collection_id": "col_before", "feature_extractor_id": "text_extractor_v1", "document_id": "doc_before"});
        let body = json!({"title": "Faust", "source_type": "collection", "source_collection_id": "col_before", "lineage_chain": [step],
            "document_schema_version": "3"});
        let made = server.call_in(&namespace, "POST", &path, body).await.ok();
        let one = format!("{path}/{}", made["document_id"].as_str().unwrap());
        let internal = server.call_in(&namespace, "GET", &one, Value::Null).await.ok()["_internal"].clone();
        let lineage = &internal["lineage"];
        let told = [&lineage["source_collection_id"], &lineage["chain"][0]["document_id"], &internal["document_schema_version"]];
        assert_eq!(told, [&json!("col_before"), &json!("doc_before"), &json!("3")], "{internal:#}");
        let features = json!({"title": "Faust", "features": [{"feature_extractor_id": "text_extractor_v1", "payload": {"text": "x"}}]});
        server.call_in(&namespace, "POST", &path, features).await.invalid(&["body", "features"], "not_enabled");
    }

    async fn a_text_that_no_database_keeps_is_refused_by_both(server) {
        let (namespace, collection) = films(&server).await;
        let path = format!("/v1/collections/{collection}/documents");
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let page = call("POST", &format!("{path}/list"), json!({})).await.ok();
        let id = page["results"][0]["document_id"].as_str().unwrap();
        let one = format!("{path}/{id}");
        let bad = "a\u{0}b";
        let update = json!({"updates": [{"document_id": id, "update_data": {"note": bad}}]});
        for (method, path, body) in [
            ("POST", path.clone(), json!({"title": bad})),
            ("POST", path.clone(), json!({"title": "a", bad: 1})),
            ("PATCH", one.clone(), json!({"note": {"inner": [null, bad]}})),
            ("PUT", one.clone(), json!({"note": bad})),
            ("POST", format!("{path}/batch"), update),
            ("PATCH", format!("{path}/bulk"), json!({"update_data": {"note": bad}})),
            ("POST", "/v1/annotations".into(), json!({"document_id": id, "label": bad})),
        ] {
            let told = call(method, &path, body).await.error(400, "BadRequestError");
            assert!(told["error"]["message"].as_str().unwrap().contains("U+0000"), "{method} {path}: {told:#}");
        }
        // What is done many at a time is refused one by one.
        let create = json!([{"document_id": id, "label": bad}, {"document_id": id, "label": "good", "payload": {"a": null}}]);
        let made = call("POST", "/v1/annotations/bulk", json!({"create": create})).await.ok();
        assert_eq!((&made["created_count"], &made["failed_count"], &made["results"][0]["success"]), (&json!(1), &json!(1), &json!(false)), "{made:#}");
        let good = &made["results"][1]["annotation_id"];
        let changes = json!({"update": [{"annotation_id": good, "reasoning": bad}, {"annotation_id": bad, "label": "x"}, {"annotation_id": good, "label": "better"}], "delete": [bad]});
        let made = call("POST", "/v1/annotations/bulk", changes).await.ok();
        assert_eq!((&made["updated_count"], &made["failed_count"]), (&json!(1), &json!(3)), "{made:#}");
        // The text of an escape is another one, and nothing is something.
        let kept = json!({"note": "a\\u0000b", "none": null});
        call("PATCH", &format!("{path}/bulk"), json!({"update_data": kept})).await.ok();
        let now = call("GET", &one, Value::Null).await.ok();
        assert_eq!((&now["note"], &now["none"], now.get("title").is_some()), (&kept["note"], &Value::Null, true), "{now:#}");
        let count = call("GET", &format!("{path}/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 3);
    }

    async fn what_words_find_goes_on_by_offset(server) {
        let (namespace, collection) = films(&server).await;
        let path = format!("/v1/collections/{collection}/documents");
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let told = call("PATCH", &format!("{path}/bulk"), json!({"update_data": {"kind": "a silent film"}})).await.ok();
        assert_eq!((&told["updated_count"], &told["status"]), (&json!(3), &json!("COMPLETED")), "{told:#}");
        let list = async |body: Value| call("POST", &format!("{path}/list"), body).await.ok();
        let first = list(json!({"search": "silent", "limit": 2, "include_total": true, "sort": {"field": "year", "direction": "asc"}})).await;
        assert_eq!((first["results"].as_array().unwrap().len(), &first["pagination"]["next_page"]), (2, &json!("?limit=2&offset=2")), "{first:#}");
        // What cannot be had with words is said.
        let unheard: Vec<&Value> = first["warnings"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(unheard, ["sort", "include_total"]);
        let rest = list(json!({"search": "silent", "limit": 2, "offset": 2})).await;
        assert_eq!((rest["results"].as_array().unwrap().len(), rest["pagination"].get("next_page"), &rest["warnings"]), (1, None, &json!([])), "{rest:#}");

        // An empty form is no wish to lose everything.
        for empty in [json!({}), json!({"AND": []})] {
            call("DELETE", &format!("{path}/batch"), json!({"filters": empty})).await.invalid(&["body", "filters"], "value_error");
        }
        // One thing is asked for, and what matches nothing is said, too.
        let both = json!({"updates": [{"document_id": "doc_x", "update_data": {}}], "filters": {"field": "year", "operator": "eq", "value": 1927}});
        call("POST", &format!("{path}/batch"), both).await.invalid(&["body", "filters"], "value_error");
        let none = json!({"filters": {"field": "year", "operator": "eq", "value": 1}, "update_data": {"kind": "x"}});
        let told = call("PATCH", &format!("{path}/bulk"), none).await.ok();
        assert_eq!((&told["updated_count"], &told["message"]), (&json!(0), &json!("no document matches")), "{told:#}");
    }

    async fn a_document_is_written_read_changed_and_removed(server) {
        let (namespace, collection) = films(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        let list = json!({"filters": {"field": "year", "operator": "gte", "value": 1926}, "sort": {"field": "year", "direction": "desc"}, "include_total": true});
        let page = server.call_in(&namespace, "POST", &format!("{documents}/list"), list).await.ok();
        let titles: Vec<&str> = page["results"].as_array().unwrap().iter().map(|d| d["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["Metropolis", "Faust"]);
        assert_eq!(page["pagination"]["total"], 2);

        let id = page["results"][0]["document_id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("doc_"));
        let one = format!("{documents}/{id}");
        let found = server.call_in(&namespace, "GET", &format!("{one}?return_vectors=true&return_vector_names=true"), Value::Null).await.ok();
        assert_eq!(found["_vectors"].as_array().unwrap().len(), 1);
        assert_eq!(found["vectors"].as_object().unwrap().values().next().unwrap(), &json!([1.0, 0.0, 0.0]));
        let patched = server.call_in(&namespace, "PATCH", &one, json!({"director": "Lang"})).await.ok();
        assert_eq!((&patched["title"], &patched["director"]), (&json!("Metropolis"), &json!("Lang")));
        // What was read is sent back whole; ids are those of the address.
        let same = server.call_in(&namespace, "PUT", &one, patched).await.ok();
        assert_eq!((&same["title"], &same["document_id"]), (&json!("Metropolis"), &json!(id)));
        for (method, path, member) in [("POST", &documents, "collection_id"), ("PATCH", &one, "collection_id"), ("PUT", &one, "document_id")] {
            let elsewhere = json!({"title": "lost", member: "elsewhere"});
            server.call_in(&namespace, method, path, elsewhere).await.invalid(&["body", member], "immutable_field");
        }
        let replaced = server.call_in(&namespace, "PUT", &one, json!({"title": "M"})).await.ok();
        assert!(replaced["director"].is_null());
        let kept = server.call_in(&namespace, "GET", &format!("{one}?return_vectors=true"), Value::Null).await.ok();
        assert_eq!(kept["vectors"].as_object().unwrap().len(), 1);

        server.call_in(&namespace, "DELETE", &one, Value::Null).await.ok();
        server.call_in(&namespace, "GET", &one, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&namespace, "DELETE", &one, Value::Null).await.error(404, "NotFoundError");
        let count = server.call_in(&namespace, "GET", &format!("{documents}/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 2);
    }

    async fn a_list_says_what_cannot_be_asked_of_it(server) {
        let (namespace, collection) = films(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        let get = async |query: &str| server.call_in(&namespace, "GET", &format!("{documents}?{query}"), Value::Null).await;
        for page in ["0", "-3"] {
            get(&format!("page={page}")).await.invalid(&["query", "page"], "greater_than_equal");
        }
        for name in ["cursor", "next_cursor", "after"] {
            get(&format!("{name}=nonsense")).await.invalid(&["query", "cursor"], "cursor_invalid");
        }
        // A cursor of one order is none of another.
        let sorted = get("sort=year&limit=2").await.ok();
        let next = sorted["pagination"]["next_cursor"].as_str().unwrap();
        get(&format!("sort=title&cursor={next}")).await.invalid(&["query", "cursor"], "cursor_invalid");
        let rest = get(&format!("sort=year&limit=2&cursor={next}")).await.ok();
        assert_eq!((&rest["results"][0]["title"], &rest["pagination"]["next_page"]), (&json!("Metropolis"), &Value::Null));
        let second = get("sort=year&limit=1&page=2").await.ok();
        assert_eq!((&second["results"][0]["title"], &second["pagination"]["next_page"]), (&json!("Faust"), &json!("?limit=1&offset=2")));
        let end = get("offset=10000&limit=50").await.ok();
        assert_eq!((&end["results"], &end["pagination"]["next_page"]), (&json!([]), &Value::Null));
        get("offset=10001").await.invalid(&["query", "offset"], "range");
    }

    async fn a_member_of_its_own_is_what_a_filter_on_batches_means(server) {
        let (namespace, collection) = films(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        server.call_in(&namespace, "POST", &documents, json!({"title": "own", "batch_id": "mine"})).await.ok();
        for (operator, count) in [("eq", 1), ("ne", 3)] {
            let filters = json!({"AND": [{"field": "batch_id", "operator": operator, "value": "mine"}]});
            let page = server.call_in(&namespace, "POST", &format!("{documents}/list"), json!({"filters": filters})).await.ok();
            assert_eq!(page["results"].as_array().unwrap().len(), count, "{operator}");
        }
    }

    async fn one_set_of_members_goes_to_every_document_that_matches(server) {
        let (namespace, collection) = films(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        let bulk = json!({"filters": {"AND": [{"field": "year", "operator": "lt", "value": 1927}]}, "update_data": {"era": "silent"}});
        let answer = server.call_in(&namespace, "PATCH", &format!("{documents}/bulk"), bulk).await.ok();
        assert_eq!((&answer["updated_count"], &answer["status"]), (&json!(2), &json!("COMPLETED")));
        let list = json!({"filters": {"field": "era", "operator": "eq", "value": "silent"}, "sort": {"field": "year", "direction": "asc"}});
        let page = server.call_in(&namespace, "POST", &format!("{documents}/list"), list).await.ok();
        let titles: Vec<&str> = page["results"].as_array().unwrap().iter().map(|d| d["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["Nosferatu", "Faust"]);
        let all = server.call_in(&namespace, "PATCH", &format!("{documents}/bulk"), json!({"update_data": {"kind": "film"}})).await.ok();
        assert_eq!(all["updated_count"], 3);
        let none = server.call_in(&namespace, "PATCH", &format!("{documents}/bulk"), json!({"filters": null})).await;
        none.invalid(&["body", "update_data"], "missing");
    }

    async fn at_most_fifty_different_references_are_expanded(server) {
        let (namespace, collection) = collection(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        let make = async |body: Value| {
            let made = server.call_in(&namespace, "POST", &documents, body).await.ok();
            made["document_id"].as_str().unwrap().to_owned()
        };
        let two = [make(json!({"number": 0})).await, make(json!({"number": 1})).await];
        let repeated: Vec<&String> = two.iter().cycle().take(52).collect();
        let one = make(json!({"collection_id": collection, "all": repeated})).await;
        let path = format!("{documents}/{one}?expand=all,root_object");
        let expanded = server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["expanded"].clone();
        let numbers: Vec<&Value> = expanded["all"].as_array().unwrap().iter().map(|one| &one["number"]).collect();
        assert_eq!(numbers, [&json!(0), &json!(1)], "{expanded:#}");
        assert_eq!(expanded.get("root_object"), Some(&Value::Null), "no object is behind it");

        let names = |from: i32| (from..from + 30).map(|number| format!("doc_{number}")).collect::<Vec<String>>();
        let wide = make(json!({"first": names(0), "again": names(0), "second": names(30)})).await;
        let path = format!("{documents}/{wide}?expand=first,again");
        server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        server.call_in(&namespace, "GET", &format!("{path},second"), Value::Null).await.invalid(&["query", "expand"], "too_long");
    }

    async fn wrong_vectors_are_refused_before_the_store(server) {
        let (namespace, collection) = films(&server).await;
        let documents = format!("/v1/collections/{collection}/documents");
        let found = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        let index = found["vector_indexes"][0]["name"].as_str().unwrap().to_owned();
        let wrong = json!({"title": "x", "vectors": {index.clone(): [1.0, 2.0]}});
        server.call_in(&namespace, "POST", &documents, wrong).await.invalid(&["body", "vectors", &index], "vector_dimensions");
        let unknown = json!({"title": "x", "vectors": {"other": [1.0, 2.0, 3.0]}});
        server.call_in(&namespace, "POST", &documents, unknown).await.invalid(&["body", "vectors", "other"], "value_error");
        let huge = format!(r#"{{"title": "x", "vectors": {{"{index}": [1e39, 0, 0]}}}}"#);
        let request = server.request("POST", &documents).bearer_auth(&server.key).header("X-Namespace", &namespace).body(huge);
        Server::send(request).await.invalid(&["body", "vectors", &index], "finite_number");
        let count = server.call_in(&namespace, "GET", &format!("{documents}/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 3);
    }

    async fn documents_survive_a_restart(server) {
        let (namespace, collection) = films(&server).await;
        let again = server.restart().await;
        let count = again.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 3);
    }

    async fn a_retriever_searches_explains_and_is_immutable(server) {
        let (namespace, collection) = films(&server).await;
        let found = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        let index = found["vector_indexes"][0]["feature_uri"].as_str().or(found["vector_indexes"][0]["name"].as_str()).unwrap().to_owned();
        let body = json!({
            "retriever_name": "nearest films",
            "collection_identifiers": ["films"],
            "input_schema": {"vector": {"type": "array", "required": true}, "since": {"type": "integer"}},
            "stages": [
                {"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                    "searches": [{"feature_uri": index, "query": {"input_mode": "vector", "value": "{{INPUT.vector}}"}, "top_k": 10}],
                    "final_top_k": 10,
                }}},
                {"stage_name": "recent", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                    "conditions": {"AND": [{"field": "year", "operator": "gte", "value": "{{INPUT.since}}"}]},
                }}},
            ],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", body.clone()).await.ok();
        let id = retriever["retriever_id"].as_str().unwrap();
        server.call_in(&namespace, "POST", "/v1/retrievers", body).await.error(409, "AlreadyExistsError");
        let execute = format!("/v1/retrievers/{id}/execute");

        let answer = server.call_in(&namespace, "POST", &execute, json!({"inputs": {"vector": [1.0, 0.0, 0.0]}})).await.ok();
        let titles: Vec<&str> = answer["documents"].as_array().unwrap().iter().map(|d| d["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["Metropolis", "Faust", "Nosferatu"]);
        assert!(answer["stage_statistics"]["stages"]["search"]["output_count"].as_i64().unwrap() == 3, "{answer:#}");
        let since = json!({"inputs": {"vector": [1.0, 0.0, 0.0], "since": 1927}});
        let answer = server.call_in(&namespace, "POST", &execute, since).await.ok();
        assert_eq!(answer["documents"].as_array().unwrap().len(), 1);
        server.call_in(&namespace, "POST", &execute, json!({})).await.invalid(&["body", "inputs", "vector"], "missing");

        let explained = server.call_in(&namespace, "POST", &format!("{execute}/explain"), json!({})).await.ok();
        assert_eq!(explained["total_estimated_stages"], 2);
        let patch = json!({"stages": []});
        server.call_in(&namespace, "PATCH", &format!("/v1/retrievers/{id}"), patch).await.invalid(&["body", "stages"], "immutable_field");
        let clone = json!({"retriever_name": "another"});
        let clone = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/clone"), clone).await.ok();
        assert_ne!(clone["retriever_id"], retriever["retriever_id"]);
        assert_eq!(clone["source_retriever_id"], retriever["retriever_id"]);
        // Stages are sent as they are read; nothing is said of a member that is null.
        let found = server.call_in(&namespace, "GET", &format!("/v1/retrievers/{id}"), Value::Null).await.ok();
        assert_eq!(found.get("fusion"), Some(&Value::Null), "{found:#}");
        let mut stages = found["stages"].clone();
        assert!(stages[0]["parameters"].is_object(), "{stages:#}");
        stages[0]["config"]["parameters"]["final_top_k"] = json!(1);
        let narrower = json!({"retriever_name": "narrower", "stages": stages});
        let narrower = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/clone"), narrower).await.ok();
        assert_eq!(narrower["retriever"]["stages"][0]["parameters"]["final_top_k"], 1, "{narrower:#}");
    }

    async fn an_unknown_feature_gives_no_rows_and_a_warning(server) {
        let (namespace, _) = films(&server).await;
        let body = json!({
            "retriever_name": "mismatched",
            "collection_identifiers": ["films"],
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "loupe://text_extractor@v1/all_minilm_l6_v2_v1", "query": {"input_mode": "text", "value": "robots"}}],
            }}}],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let id = retriever["retriever_id"].as_str().unwrap();
        let answer = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/execute"), json!({})).await.ok();
        assert_eq!(answer["documents"], json!([]));
        assert!(!answer["warnings"].as_array().unwrap().is_empty());
    }

    async fn a_published_page_shows_exposed_fields_only(server) {
        let (namespace, _) = films(&server).await;
        let body = json!({
            "retriever_name": "by year",
            "collection_identifiers": ["films"],
            "stages": [{"stage_name": "sorted", "stage_type": "sort", "config": {"stage_id": "sort_attribute", "parameters": {"field": "year", "direction": "asc"}}}],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let publish = format!("/v1/retrievers/{}/publish", retriever["retriever_id"].as_str().unwrap());
        let lookup = server.call_in(&namespace, "GET", &publish, Value::Null).await;
        assert_eq!((lookup.status, lookup.body), (200, Value::Null));
        let display = json!({"title": "Old films", "inputs": [], "exposed_fields": ["title"]});
        let published = json!({"public_name": "old-films", "display_config": display});
        let made = server.call_in(&namespace, "POST", &publish, published.clone()).await.ok();
        assert!(made["public_url"].as_str().unwrap().ends_with("/r/old-films"));
        assert!(made["public_api_key"].is_null());
        let again = server.call_in(&namespace, "POST", &publish, published).await.ok();
        assert_eq!(again["public_id"], made["public_id"]);

        let answer = Server::send(server.request("POST", "/v1/public/retrievers/old-films/execute").json(&json!({}))).await.ok();
        assert_eq!(answer["documents"][0]["title"], "Nosferatu");
        assert!(answer["documents"].as_array().unwrap().iter().all(|document| document.get("year").is_none()));
        let page = Server::send(server.request("GET", "/r/old-films")).await;
        assert_eq!(page.status, 200);
        let html = page.body.as_str().unwrap().to_owned();
        assert!(html.contains("Nosferatu") && html.contains("<title>") && !html.contains("1922"));

        server.call_in(&namespace, "PATCH", &publish, json!({"is_active": false})).await.ok();
        let gone = Server::send(server.request("GET", "/r/old-films")).await;
        assert!(gone.status == 404 || gone.status == 410, "{}", gone.status);
        assert!(!gone.body.to_string().contains("Old films"));
        Server::send(server.request("POST", "/v1/public/retrievers/old-films/execute").json(&json!({}))).await.error(404, "NotFoundError");
    }
}
