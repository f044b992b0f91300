//! Collections as files: every document once, in the format that is asked for.

use serde_json::{Value, json};

use crate::{both, harness::Server};

/// A collection with own vectors and documents of every kind of value.
async fn things(server: &Server, count: usize) -> String {
    let namespace = server.namespace("exports").await;
    let collection = json!({
        "collection_name": "things",
        "source": {"type": "direct_upsert"},
        "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]},
        },
    });
    let path = "/v1/collections";
    server
        .call_in(&namespace, "POST", path, collection)
        .await
        .ok();
    for number in 0..count {
        let document = json!({
            "title": format!("thing, \"{number}\""), "number": number, "price": 1.5, "even": number % 2 == 0,
            "tags": ["a", "b"], "vectors": {"own": [1.0, 0.5, 0.25]},
        });
        let path = "/v1/collections/things/documents";
        server
            .call_in(&namespace, "POST", path, document)
            .await
            .ok();
    }
    namespace
}

/// What the export tells, and the file.
async fn export(server: &Server, namespace: &str, body: Value) -> (Value, Vec<u8>) {
    let path = "/v1/collections/things/export";
    let answer = server.call_in(namespace, "POST", path, body).await.ok();
    let url = answer["download_url"].as_str().unwrap();
    let url = url.replace(&server.app.config().address(), "");
    let file = server.request("GET", &url).send().await.unwrap();
    assert_eq!(file.status(), 200);
    let bytes = file.bytes().await.unwrap().to_vec();
    assert_eq!(answer["file_size_bytes"], bytes.len());
    (answer, bytes)
}

both! {
    async fn a_collection_is_a_file(server) {
        let namespace = things(&server, 5).await;
        let all = json!({"format": "json", "include_vectors": true, "include_lineage": true});
        let (answer, file) = export(&server, &namespace, all).await;
        assert_eq!((&answer["document_count"], &answer["format"]), (&json!(5), &json!("json")));
        let mut rows: Vec<Value> = serde_json::from_slice(&file).unwrap();
        rows.sort_by_key(|row| row["number"].as_i64());
        assert_eq!(rows.len(), 5);
        assert_eq!((&rows[3]["title"], &rows[3]["tags"]), (&json!("thing, \"3\""), &json!(["a", "b"])));
        assert_eq!(rows[3]["vectors.own"].as_array().unwrap().len(), 3);
        assert_eq!(rows[3]["lineage"]["source_type"], "direct_upsert");
        assert!(rows[3].get("_internal").is_none());

        // Only what is asked for.
        let some = json!({
            "format": "csv", "select_fields": ["number", "title"],
            "filters": {"AND": [{"field": "even", "operator": "eq", "value": true}]},
        });
        let (answer, file) = export(&server, &namespace, some).await;
        assert_eq!(answer["document_count"], 3);
        let text = String::from_utf8(file).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.remove(0), "document_id,collection_id,number,title");
        assert!(lines.iter().any(|line| line.ends_with(",4,\"thing, \"\"4\"\"\"")), "{text}");
        let (answer, _) = export(&server, &namespace, json!({"format": "json", "sample_size": 2})).await;
        assert_eq!(answer["document_count"], 2);

        // Without a word about it, a table for analysis.
        let (answer, file) = export(&server, &namespace, json!({"include_vectors": true})).await;
        assert_eq!(answer["format"], "parquet");
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        let length = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap());
        let footer = &file[file.len() - 8 - usize::try_from(length).unwrap()..file.len() - 8];
        for name in ["title", "vectors.own", "element"] {
            assert!(footer.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
        }
        // The file is one of the namespace's, until its day is over.
        assert!(!server.files(&format!("{namespace}/exports/")).is_empty());
    }

    async fn what_is_not_written_is_refused(server) {
        let namespace = things(&server, 0).await;
        let path = "/v1/collections/things/export";
        let ask = async |body: Value| server.call_in(&namespace, "POST", path, body).await;
        ask(json!({"format": "webdataset"})).await.invalid(&["body", "format"], "not_enabled");
        ask(json!({"include_media": true})).await.invalid(&["body", "include_media"], "not_enabled");
        assert_eq!(ask(json!({"sample_size": 0})).await.status, 422);
        assert_eq!(ask(json!({"format": "xml"})).await.status, 422);
        let missing = "/v1/collections/nothing/export";
        server.call_in(&namespace, "POST", missing, json!({})).await.error(404, "NotFoundError");
        // Nothing is a file too.
        let (answer, file) = export(&server, &namespace, json!({"format": "json"})).await;
        assert_eq!((&answer["document_count"], file.as_slice()), (&json!(0), b"[]\n".as_slice()));
    }
}
