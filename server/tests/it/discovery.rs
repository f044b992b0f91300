//! What a server can do, what namespaces hold, and what is found by its name.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, other_organization},
};

async fn make(server: &Server, namespace: &str, path: &str, body: Value) -> Value {
    server.call_in(namespace, "POST", path, body).await.ok()
}

/// A bucket of two objects, and a collection of three documents.
async fn fill(server: &Server, namespace: &str, word: &str) {
    let bucket = json!({"bucket_name": format!("{word} bucket"), "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
    let bucket = make(server, namespace, "/v1/buckets", bucket).await;
    let objects = format!(
        "/v1/buckets/{}/objects",
        bucket["bucket_id"].as_str().unwrap()
    );
    for number in 0..2 {
        make(server, namespace, &objects, json!({"n": number})).await;
    }
    let collection = json!({
        "collection_name": format!("{word}_collection"), "description": "of things",
        "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {
            "vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}},
    });
    make(server, namespace, "/v1/collections", collection).await;
    let documents = format!("/v1/collections/{word}_collection/documents");
    for number in 0..3 {
        let document = json!({"n": number, "vectors": {"own": [1.0, 0.5, number]}});
        make(server, namespace, &documents, document).await;
    }
    let retriever = json!({
        "retriever_name": format!("{word} retriever"), "collection_identifiers": [format!("{word}_collection")],
        "stages": [{"stage_name": "list", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {"field": "n", "operator": "gte", "value": 0}}}],
    });
    make(server, namespace, "/v1/retrievers", retriever).await;
}

both! {
    async fn what_a_namespace_is_made_of_is_told_without_a_key(server) {
        let told = Server::send(server.request("GET", "/v1/discovery/schema")).await.ok();
        assert_eq!(told["dependency_graph"]["retriever"], json!(["collection"]));
        let required = &told["schemas"]["bucket"]["$defs"]["BucketCreateRequest"]["required"];
        assert!(required.as_array().unwrap().contains(&json!("bucket_name")), "{required:#}");
        assert!(told["extractor_catalog"].as_array().unwrap().iter().any(|one| one["name"] == "text_extractor"));
        assert!(told["stage_catalog"].as_array().unwrap().iter().any(|one| one["stage_id"] == "feature_search"));
        // What it shows is what is taken.
        let namespace = server.namespace("from its own description").await;
        let example: Value = serde_json::from_str(told["examples"]["bucket"].as_str().unwrap()).unwrap();
        make(&server, &namespace, "/v1/buckets", example).await;
    }

    async fn what_a_namespace_has_is_counted(server) {
        let full = server.namespace("full").await;
        fill(&server, &full, "red").await;
        let empty = server.namespace("empty").await;
        let stats = server.call("GET", &format!("/v1/namespaces/{full}/stats"), Value::Null).await.ok();
        assert_eq!(stats, json!({"namespace_id": full, "document_count": 3, "document_count_complete": true,
            "bucket_count": 1, "collection_count": 1, "object_count": 2}));
        assert_eq!(server.call("GET", "/v1/namespaces/full/stats", Value::Null).await.ok(), stats);
        let ids = json!({"namespace_ids": [full, "ns_00000000000000000000", empty, "full"]});
        let all = server.call("POST", "/v1/namespaces/stats/batch", ids).await.ok()["stats"].clone();
        let known: Vec<&String> = all.as_object().unwrap().keys().collect();
        assert_eq!(known, [&full, &empty], "unknown ids and names are left out");
        assert_eq!((&all[&full], &all[&empty]["document_count"]), (&stats, &json!(0)));
        assert_eq!(server.call("GET", "/v1/namespaces/none/stats", Value::Null).await.status, 404);
        let many: Vec<String> = (0..101).map(|n| format!("ns_{n}")).collect();
        let refused = server.call("POST", "/v1/namespaces/stats/batch", json!({"namespace_ids": many})).await;
        assert_eq!(refused.status, 422, "{:#}", refused.body);

        // Another organization's namespace is one that is not there.
        let key = other_organization(&server).await.key;
        let ask = server.request("POST", "/v1/namespaces/stats/batch").bearer_auth(&key);
        let answer = ask.json(&json!({"namespace_ids": [full]})).send().await.unwrap();
        assert_eq!(answer.json::<Value>().await.unwrap()["stats"], json!({}));
    }

    async fn resources_are_found_by_their_names(server) {
        let namespace = server.namespace("colours").await;
        fill(&server, &namespace, "scarlet").await;
        fill(&server, &namespace, "starlet").await;
        let find = async |body: Value| make(&server, &namespace, "/v1/resources/search", body).await;
        let found = find(json!({"query": "SCARLET"})).await;
        let names: Vec<[&str; 2]> = found["results"].as_array().unwrap().iter()
            .map(|one| [one["resource_type"].as_str().unwrap(), one["resource_name"].as_str().unwrap()]).collect();
        assert_eq!(names, [["retriever", "scarlet retriever"], ["collection", "scarlet_collection"], ["bucket", "scarlet bucket"]], "newest first");
        assert_eq!((&found["total"], &found["limit"], &found["offset"]), (&json!(3), &json!(20), &json!(0)));
        assert_eq!(found["results"][1]["description"], "of things");
        let found = find(json!({"query": "colours"})).await;
        assert_eq!(found["results"][0]["resource_id"], namespace.as_str(), "{found:#}");
        // A page of it, and one kind. Ids are looked into, too: a shorter part may be in one.
        let second = find(json!({"query": "arlet", "limit": 2, "offset": 2})).await;
        let all = find(json!({"query": "arlet"})).await;
        assert_eq!(all["total"], 6, "a part of a name is enough: {all:#}");
        assert_eq!(second["results"].as_array().unwrap()[..], all["results"].as_array().unwrap()[2..4]);
        let some = find(json!({"query": "arlet", "resource_types": ["bucket"]})).await;
        assert_eq!(some["total"], 2, "{some:#}");
        for (body, at) in [(json!({"query": ""}), "query"), (json!({"query": "a", "limit": 101}), "limit"),
            (json!({"query": "a", "resource_types": ["secret"]}), "resource_types")] {
            let refused = server.call_in(&namespace, "POST", "/v1/resources/search", body).await;
            assert_eq!(refused.status, 422, "{at}: {:#}", refused.body);
            assert!(refused.body["detail"][0]["loc"].as_array().unwrap().contains(&json!(at)), "{:#}", refused.body);
        }
    }

    async fn what_the_server_can_do_is_told_without_a_key(server) {
        let told = server.request("GET", "/v1/discovery").send().await.unwrap().json::<Value>().await.unwrap();
        let find = |list: &str, id: &str, name: &str| {
            let one = told[list].as_array().unwrap().iter().find(|one| one[id] == name);
            one.unwrap_or_else(|| panic!("no {name} in {list}")).clone()
        };
        let text = find("extractors", "name", "text_extractor");
        assert_eq!((&text["version"], &text["realtime_available"]), (&json!("v1"), &json!(true)));
        assert!(text["output_features"][0]["feature_uri"].as_str().unwrap().starts_with("loupe://text_extractor@v1/"));
        let search = find("stages", "stage_id", "feature_search");
        assert_eq!((&search["category"], &search["available"]), (&json!("filter"), &json!(true)));
        assert_eq!((&search["cost_tier"], &search["requires_collections"]), (&json!("moderate"), &json!(true)));
        let first = find("stages", "stage_id", "limit");
        assert_eq!((&first["cost_tier"], &first["requires_collections"]), (&json!("low"), &json!(false)));
        assert!(told["manifest_schema"]["schemas"]["bucket"].is_object(), "{:#}", told["manifest_schema"]);
        // Parameters with their types, bounds and defaults, of what runs here and of what does not.
        assert_eq!(text["example_usage"]["input_mappings"], json!({"text": "text"}));
        assert_eq!(text["costs"]["rates"][0]["unit"], "1k_tokens");
        let about = |name: &str, parameter: &str| find("extractors", "name", name)["parameter_schema"]["properties"][parameter].clone();
        let size = about("text_extractor", "chunk_size");
        assert_eq!((&size["type"], &size["minimum"], &size["maximum"], &size["default"]), (&json!("integer"), &json!(1), &json!(10_000), &json!(1000)));
        let split = about("text_extractor", "split_by");
        assert!(split["enum"].as_array().unwrap().contains(&json!("sentences")), "{split:#}");
        let fields = about("passthrough_extractor", "vector_fields");
        assert!(fields["items"]["properties"]["dimensions"].is_object(), "{fields:#}");
        assert_eq!(about("face_identity_extractor", "min_face_size")["maximum"], 200);
        // Every parameter that has a default is told of, and no number has bounds that its default breaks.
        for one in told["extractors"].as_array().unwrap() {
            let properties = one["parameter_schema"]["properties"].as_object().unwrap();
            for (name, default) in one["default_parameters"].as_object().unwrap() {
                let property = properties.get(name).unwrap_or_else(|| panic!("{name}: {one:#}"));
                let beyond = |word: &str, least: bool| match (property[word].as_f64(), default.as_f64()) {
                    (Some(bound), Some(default)) => (default < bound) == least && (default - bound).abs() > f64::EPSILON,
                    _ => false,
                };
                assert!(!beyond("minimum", true) && !beyond("maximum", false), "{name}: {property:#}");
            }
        }
        for part in ["extractors", "stages"] {
            let alone = server.request("GET", &format!("/v1/discovery/{part}")).send().await.unwrap();
            assert_eq!(alone.json::<Value>().await.unwrap(), told[part]);
        }
    }
}
