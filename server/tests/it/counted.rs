//! What lists and single resources tell beside what they keep: counts, sizes, where collections are filled from.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{batches::process, both, harness::Server};

/// A bucket of three notes, the collection of their words, and the collection of the pairs of those.
async fn notes(server: &Server) -> (String, String, [String; 2]) {
    let namespace = server.namespace("counted").await;
    let make = async |path: &str, body: Value, id: &str| {
        let made = server.call_in(&namespace, "POST", path, body).await.ok();
        made[id].as_str().unwrap().to_owned()
    };
    let schema = json!({"properties": {"note": {"type": "text"}, "topic": {"type": "string"}}});
    let bucket = json!({"bucket_name": "notes", "bucket_schema": schema});
    let bucket = make("/v1/buckets", bucket, "bucket_id").await;
    let extractor = |words: i64| {
        json!({"feature_extractor_name": "text_extractor", "version": "v1",
        "parameters": {"split_by": "words", "chunk_size": words}, "field_passthrough": [{"source_path": "topic"}]})
    };
    let mut fours = json!({"collection_name": "fours", "source": {"type": "bucket", "bucket_ids": [bucket]}, "feature_extractor": extractor(4)});
    fours["feature_extractor"]["input_mappings"] = json!({"text": "note"});
    let fours = make("/v1/collections", fours, "collection_id").await;
    let pairs = json!({"collection_name": "pairs", "source": {"type": "collection", "collection_ids": ["fours"]}, "feature_extractor": extractor(2)});
    let pairs = make("/v1/collections", pairs, "collection_id").await;
    let objects = format!("/v1/buckets/{bucket}/objects");
    for (topic, text) in [
        ("a", "one two three four"),
        ("b", "five six seven eight"),
        ("b", "nine ten"),
    ] {
        let blob = json!({"property": "note", "type": "text", "data": text});
        let object = json!({"topic": topic, "blobs": [blob]});
        make(&objects, object, "object_id").await;
    }
    (namespace, bucket, [fours, pairs])
}

both! {
    async fn buckets_and_objects_are_counted(server) {
        let (namespace, bucket, _) = notes(&server).await;
        let get = async |path: &str| server.call_in(&namespace, "GET", path, Value::Null).await.ok();
        let path = format!("/v1/buckets/{bucket}");
        let before = get(&path).await;
        assert_eq!(before["batch_stats"], json!({"total": 0, "active": 0, "completed": 0, "failed": 0}));
        let sizes = json!({"total_size_bytes": 46, "avg_size_bytes": 15, "max_size_bytes": 20, "min_size_bytes": 8});
        assert_eq!(before["storage_stats"], sizes);
        assert!(before["last_upload_at"].is_string() && before["stats_updated_at"].is_string(), "{before:#}");
        assert_eq!(process(&server, &namespace, &bucket).await["status"], "COMPLETED");
        assert_eq!(get(&path).await["batch_stats"], json!({"total": 1, "active": 0, "completed": 1, "failed": 0}));

        let empty = json!({"bucket_name": "empty", "bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", empty).await.ok();
        let list = get("/v1/buckets").await;
        let stats = json!({"total_objects": 3, "total_size_bytes": 46, "avg_objects_per_bucket": 1.5, "avg_size_per_bucket": 23.0});
        assert_eq!(list["stats"], stats);
        let empty = get("/v1/buckets/empty").await;
        assert_eq!((&empty["storage_stats"]["max_size_bytes"], &empty["last_upload_at"]), (&json!(0), &Value::Null));

        // Objects are counted where totals are asked for.
        assert_eq!(get(&format!("{path}/objects")).await["stats"], Value::Null);
        let list = get(&format!("{path}/objects?include_total=true&limit=2")).await;
        let stats = json!({"total_objects": 3, "total_blobs": 2, "avg_blobs_per_object": 1.0, "objects_by_status": {"COMPLETED": 3}});
        assert_eq!(list["stats"], stats);
        // Of a filtered list those that match.
        let filters = json!({"filters": {"field": "topic", "operator": "eq", "value": "b"}});
        let list = format!("{path}/objects/list?include_total=true&limit=1");
        let list = server.call_in(&namespace, "POST", &list, filters).await.ok();
        let stats = json!({"total_objects": 2, "total_blobs": 1, "avg_blobs_per_object": 1.0, "objects_by_status": {"COMPLETED": 2}});
        assert_eq!((&list["stats"], &list["pagination"]["total"]), (&stats, &json!(2)));
    }

    async fn collections_tell_where_they_are_filled_from(server) {
        let (namespace, bucket, [fours, pairs]) = notes(&server).await;
        let get = async |path: &str| server.call_in(&namespace, "GET", path, Value::Null).await.ok();
        let lower = get("/v1/collections/fours").await;
        assert_eq!(lower["source_lineage"], json!([]));
        assert_eq!(lower["source_bucket_schemas"][&bucket]["properties"]["topic"]["type"], "string");
        assert_eq!((&lower["retriever_count"], &lower["taxonomy_count"]), (&json!(0), &json!(0)));
        let retriever = json!({"retriever_name": "words", "collection_identifiers": ["fours"], "input_schema": {"q": {"type": "text"}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": lower["vector_indexes"][0]["feature_uri"],
                    "query": {"input_mode": "text", "value": "{{INPUT.q}}"}, "top_k": 5}], "final_top_k": 5}}}]});
        server.call_in(&namespace, "POST", "/v1/retrievers", retriever).await.ok();
        assert_eq!(get(&format!("/v1/collections/{fours}")).await["retriever_count"], 1);

        assert_eq!(get("/v1/collections/pairs").await["retriever_count"], 0);
        // Stages name what they read, by id or by name; a key is told of the retrievers that it may read.
        let stage = |id: &str, parameters: Value| json!({"stage_name": id, "config": {"stage_id": id, "parameters": parameters}});
        let all = stage("attribute_filter", json!({"field": "topic", "operator": "exists", "value": true}));
        for (name, target) in [("by_name", "pairs"), ("by_id", pairs.as_str())] {
            let linked = stage("document_enrich", json!({"target_collection_id": target, "source_field": "topic", "target_field": "topic"}));
            let retriever = json!({"retriever_name": name, "collection_identifiers": ["fours"], "stages": [all.clone(), linked]});
            server.call_in(&namespace, "POST", "/v1/retrievers", retriever).await.ok();
        }
        let upper = get("/v1/collections/pairs").await;
        assert_eq!(upper["retriever_count"], 2);
        let key = json!({"name": "narrow", "permissions": ["read"], "scopes": [{"resource_type": "collection", "resource_id": pairs}]});
        let key = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", key).await.ok();
        let request = server.request("GET", "/v1/collections/pairs").bearer_auth(key["key"].as_str().unwrap());
        assert_eq!(Server::send(request.header("x-namespace", &namespace)).await.ok()["retriever_count"], 0);
        let lineage = upper["source_lineage"].as_array().unwrap();
        assert_eq!(lineage.len(), 1, "{upper:#}");
        assert_eq!(lineage[0]["source_config"]["bucket_ids"], json!([bucket]));
        assert_eq!(lineage[0]["feature_extractor"]["parameters"]["chunk_size"], 4);
        assert!(lineage[0]["output_schema"]["properties"]["text"].is_object(), "{upper:#}");
        assert!(upper["source_bucket_schemas"][&bucket].is_object(), "{upper:#}");
        // Three tiers: those first that are filled first.
        let top = json!({"collection_name": "words", "source": {"type": "collection", "collection_ids": [pairs]},
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", top).await.ok();
        let top = get("/v1/collections/words").await;
        let sizes: Vec<&Value> = top["source_lineage"].as_array().unwrap().iter()
            .map(|one| &one["feature_extractor"]["parameters"]["chunk_size"]).collect();
        assert_eq!(sizes, [&json!(4), &json!(2)]);

        process(&server, &namespace, &bucket).await;
        let stats = get("/v1/collections").await["stats"].clone();
        let documents = stats["total_documents"].as_i64().unwrap();
        assert!(documents >= 8, "three notes of at most four words, five pairs: {stats:#}");
        assert_eq!((&stats["total_feature_extractors"], &stats["collections_with_taxonomies"]), (&json!(1), &json!(0)));
    }

    async fn the_servers_own_collections_are_listed_when_asked_for(server) {
        let (namespace, ..) = notes(&server).await;
        let names = async |query: &str| -> Vec<String> {
            let list = server.call_in(&namespace, "GET", &format!("/v1/collections?{query}"), Value::Null).await.ok();
            let list = list["results"].as_array().unwrap().clone();
            list.iter().map(|one| one["collection_name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("include_system=false").await, ["pairs", "fours"]);
        assert_eq!(names("include_system=true").await, ["pairs", "fours", "loupe_document_annotations"]);
        assert_eq!(names("include_system=true&search=annot").await, ["loupe_document_annotations"]);
        assert_eq!(names(&format!("namespace_id={namespace}")).await.len(), 2);
        let other = server.call_in(&namespace, "GET", "/v1/collections?namespace_id=ns_other", Value::Null).await;
        other.error(400, "BadRequestError");
        let list = server.call_in(&namespace, "POST", "/v1/collections/list", json!({"include_system": true})).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 3);
    }

    async fn parts_of_a_collection_are_read_beside_each_other(server) {
        let (namespace, bucket, [fours, _]) = notes(&server).await;
        process(&server, &namespace, &bucket).await;
        let path = format!("/v1/collections/{fours}/documents/list");
        let list = async |body: Value| server.call_in(&namespace, "POST", &path, body).await;
        let all = list(json!({"include_total": true, "limit": 1000})).await.ok();
        let ids = |page: &Value| -> Vec<String> {
            let results = page["results"].as_array().unwrap().iter();
            results.map(|one| one["document_id"].as_str().unwrap().to_owned()).collect()
        };
        let whole: BTreeSet<String> = ids(&all).into_iter().collect();
        assert_eq!(all["stats"], json!({"total_documents": whole.len(), "avg_blobs_per_document": 1.0}));
        for count in [1, 2, 3, 16] {
            let mut seen = Vec::new();
            for index in 0..count {
                let page = list(json!({"limit": 1000, "include_total": true, "partition": {"index": index, "count": count}})).await.ok();
                let part = ids(&page);
                assert_eq!(page["total_documents"], part.len(), "{page:#}");
                seen.extend(part);
            }
            assert_eq!(seen.len(), whole.len(), "every document once in {count} parts");
            assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), whole);
        }
        let some = list(json!({"filters": {"field": "topic", "operator": "eq", "value": "b"}, "partition": {"index": 0, "count": 1}})).await.ok();
        assert_eq!(ids(&some).len(), 2, "{some:#}");
        // Bounds of one's own are read in the same way, with and without what is counted.
        let sorted: Vec<&String> = whole.iter().collect();
        let last = sorted.len() - 1;
        for (low, high, expected) in [("gte", "lte", &sorted[..]), ("gt", "lte", &sorted[1..]), ("gt", "lt", &sorted[1..last])] {
            let bounds = json!({"AND": [{"field": "document_id", "operator": low, "value": sorted[0]},
                {"field": "document_id", "operator": high, "value": sorted[last]}]});
            let page = list(json!({"filters": bounds, "include_total": true, "limit": 1})).await.ok();
            assert_eq!(page["total_documents"], expected.len(), "{low} {high}");
            let page = list(json!({"filters": bounds, "limit": 1000})).await.ok();
            let expected: BTreeSet<String> = expected.iter().map(|id| (*id).clone()).collect();
            assert_eq!(ids(&page).into_iter().collect::<BTreeSet<_>>(), expected, "{low} {high}");
        }
        list(json!({"partition": {"index": 2, "count": 2}})).await.invalid(&["body", "partition", "index"], "value_error");

        // Groups are counted of the page.
        let groups = list(json!({"group_by": "topic", "include_total": true})).await.ok();
        assert_eq!((&groups["stats"]["total_groups"], &groups["stats"]["avg_documents_per_group"]), (&json!(2), &json!(1.5)));
    }
}
