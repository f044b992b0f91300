//! The catalogue of extractors, what it refuses, and files of several kinds through a batch.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::{
    batches::{object, process},
    both,
    harness::Server,
};

/// A collection of the extractor over a bucket.
fn collection(name: &str, bucket: &str, parameters: Value) -> Value {
    json!({
        "collection_name": format!("{name} things"), "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": name, "version": "v1", "parameters": parameters},
    })
}

async fn bucket(server: &Server, namespace: &str) -> String {
    let body = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}, "file": {"type": "text"}}}});
    let made = server
        .call_in(namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    made["bucket_id"].as_str().unwrap().to_owned()
}

both! {
    async fn the_catalogue_tells_what_runs_here_and_what_is_lacking(server) {
        let all = server.call("GET", "/v1/collections/features/extractors", Value::Null).await.ok();
        let all = all.as_array().unwrap();
        assert_eq!(all.len(), 14, "all of the interface");
        let always = ["parameter_schema", "required_vector_indexes", "required_payload_indexes"];
        assert!(all.iter().all(|one| always.iter().all(|member| one.get(*member).is_some())), "{all:#?}");
        let of = |name: &str| all.iter().find(|one| one["feature_extractor_name"] == name).unwrap().clone();
        let text = of("text_extractor");
        assert_eq!(text["realtime_available"], true);
        let uri = &text["required_vector_indexes"][0]["feature_uri"];
        assert_eq!(uri, "loupe://text_extractor@v1/all_minilm_l6_v2_v1");
        let speech = of("multimodal_extractor")["serve_apps"].as_array().unwrap().iter()
            .find(|app| app["name"] == "speech model").unwrap()["status"].clone();
        assert!(speech.as_str().unwrap().contains("models.transcription"), "{speech}");
        assert_eq!(of("face_identity_extractor")["realtime_available"], false);

        let features = server.call("GET", "/v1/collections/features", Value::Null).await.ok();
        let video = features["modalities"].as_array().unwrap().iter().find(|one| one["modality"] == "video").unwrap().clone();
        let face = video["features"].as_array().unwrap().iter()
            .find(|one| one["feature_extractor_name"] == "face_identity_extractor").unwrap().clone();
        assert!(face["unavailable_reason"].as_str().unwrap().contains("ArcFace"), "{face}");

        let namespace = server.namespace("catalogue").await;
        let path = format!("/v1/namespaces/{namespace}/extractors");
        let ours = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let every = server.call_in(&namespace, "GET", &format!("{path}?include_disabled=true"), Value::Null).await.ok();
        assert_eq!(every["total"], 14);
        assert!(ours["total"].as_i64().unwrap() < 14);
        let none = server.call_in(&namespace, "GET", &format!("{path}?source=custom"), Value::Null).await.ok();
        assert_eq!(none["total"], 0);
        let one = server.call_in(&namespace, "GET", &format!("{path}/image_extractor_v1"), Value::Null).await.ok();
        assert_eq!(one["feature_uri"], "loupe://image_extractor@v1/efficientnet_lite0_v1");
        server.call_in(&namespace, "GET", &format!("{path}/nothing_v1"), Value::Null).await.error(404, "NotFoundError");
        let other = server.namespace("other").await;
        server.call_in(&other, "GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn what_cannot_be_done_here_is_refused_when_the_collection_is_made(server) {
        let namespace = server.namespace("refusals").await;
        let bucket = bucket(&server, &namespace).await;
        let create = async |name: &str, parameters: Value| {
            server.call_in(&namespace, "POST", "/v1/collections", collection(name, &bucket, parameters)).await
        };
        create("colbert_extractor", json!({})).await
            .invalid(&["body", "feature_extractor", "feature_extractor_name"], "feature_extractor_unavailable");
        create("multimodal_extractor", json!({"run_transcription": true})).await
            .invalid(&["body", "feature_extractor", "parameters", "run_transcription"], "value_error");
        create("text_extractor", json!({"response_shape": {"year": "integer"}})).await
            .invalid(&["body", "feature_extractor", "parameters", "response_shape"], "value_error");
        for (name, parameters, path) in [
            ("document_graph_extractor", json!({"layout_detector": "docling"}), vec!["layout_detector"]),
            ("document_graph_extractor", json!({"thumbnail_mode": "segment"}), vec!["thumbnail_mode"]),
            ("image_extractor", json!({"use_cdn": true}), vec!["use_cdn"]),
            ("multimodal_extractor", json!({"output_dimensionality": 768}), vec!["output_dimensionality"]),
            ("multimodal_extractor", json!({"generation_config": {"top_p": 0.1}}), vec!["generation_config", "top_p"]),
            ("universal_extractor", json!({"max_concurrency": 8}), vec!["max_concurrency"]),
            ("text_extractor", json!({"embedding_task": "clustering"}), vec!["embedding_task"]),
        ] {
            let at = [vec!["body", "feature_extractor", "parameters"], path].concat();
            create(name, parameters).await.invalid(&at, "not_enabled");
        }
        // What is sent as it is by default, or switched off, is no reason to refuse.
        let usual = json!({"render_dpi": 150, "thumbnail_mode": "both", "vlm_provider": "google", "use_vlm_correction": false,
            "vertical_threshold": 15, "fast_mode": true});
        create("document_graph_extractor", usual).await.ok();
        let made = create("multimodal_extractor", json!({"split_method": "scene"})).await.ok();
        let properties = &made["output_schema"]["properties"];
        assert_eq!(properties["start_time"]["type"], "number", "known before anything is processed: {properties}");
    }

    async fn a_language_model_of_somebody_else_is_refused(server) {
        let server = server.restart_with(|config| {
            let language = json!({"url": "http://127.0.0.2:9", "model": "small", "provider": "openai"});
            config.models.language = Some(serde_json::from_value(language).unwrap());
        }).await;
        let namespace = server.namespace("providers").await;
        let bucket = bucket(&server, &namespace).await;
        let create = async |provider: &str| {
            let parameters = json!({"response_shape": {"year": "integer"}, "llm_provider": provider});
            server.call_in(&namespace, "POST", "/v1/collections", collection("text_extractor", &bucket, parameters)).await
        };
        create("google").await.invalid(&["body", "feature_extractor", "parameters", "llm_provider"], "not_enabled");
        create("OpenAI").await.ok();
    }

    async fn a_mail_and_a_broken_archive_go_through_a_batch(server) {
        let namespace = server.namespace("mails").await;
        let bucket = bucket(&server, &namespace).await;
        let parameters = json!({"split_by": "pages", "chunk_size": 1});
        let made = server.call_in(&namespace, "POST", "/v1/collections", collection("text_extractor", &bucket, parameters)).await.ok();
        let mail = "From: a@example.com\r\nTo: b@example.com\r\nSubject: Bees\r\nMIME-Version: 1.0\r\n\r\nThe hive is full.\r\n";
        for (name, mime, bytes) in [("a.eml", "message/rfc822", mail.as_bytes()), ("a.docx", "application/zip", b"PK\x03\x04 no archive".as_slice())] {
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            let blob = json!({"property": "file", "type": "text", "data": format!("data:{mime};base64,{data}")});
            object(&server, &namespace, &bucket, name, blob).await;
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch}");
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let collection = made["collection_id"].as_str().unwrap();
        let documents = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents"), Value::Null).await.ok();
        let documents = documents["results"].as_array().unwrap();
        assert_eq!(documents.len(), 1, "{documents:?}");
        assert_eq!((&documents[0]["text"], &documents[0]["title"]), (&json!("The hive is full."), &json!("Bees")));
        let failed = server.call_in(&namespace, "GET", &format!("{path}/failed-documents"), Value::Null).await;
        assert!(failed.ok().to_string().contains("begins as an archive but cannot be unpacked"));
    }

    async fn a_batch_tells_what_it_left_out(server) {
        let namespace = server.namespace("leftovers").await;
        let bucket = bucket(&server, &namespace).await;
        let parameters = json!({"max_document_pages": 2});
        let made = server.call_in(&namespace, "POST", "/v1/collections", collection("universal_extractor", &bucket, parameters)).await.ok();
        let attached: String = (0..52)
            .map(|number| format!("--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=\"{number}.txt\"\r\n\r\nword {number}\r\n"))
            .collect();
        let mail = format!(
            "From: a@example.com\r\nTo: b@example.com\r\nSubject: Bees\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThe hive.\r\n{attached}--b--\r\n"
        );
        let data = base64::engine::general_purpose::STANDARD.encode(mail);
        let blob = json!({"property": "file", "type": "text", "data": format!("data:message/rfc822;base64,{data}")});
        let id = object(&server, &namespace, &bucket, "a.eml", blob).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch}");
        let collection = made["collection_id"].as_str().unwrap();
        let documents = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents"), Value::Null).await.ok();
        assert_eq!(documents["results"].as_array().unwrap().len(), 2, "the mail and what is attached first: {documents}");
        // Two are not read at all; of the other fifty-one pages two are asked for.
        let reasons = json!({"attachment_limit": 2, "max_document_pages": 49});
        let told = "left out: 2 pages (attachment_limit), 49 pages (max_document_pages)";
        assert_eq!((&batch["pages_dropped"], &batch["pages_dropped_reasons"]), (&json!(51), &reasons), "{batch}");
        assert_eq!(batch["segments_dropped"], Value::Null);
        assert_eq!(batch["progress"]["status_warnings"], json!([told]));
        let job = &batch["tier_tasks"][0]["extractor_jobs"][0];
        assert_eq!((&job["pages_dropped"], &job["pages_dropped_reasons"]), (&json!(51), &reasons), "{job}");
        assert_eq!(job["warnings"], json!([format!("object {id}: {told}")]));
        let path = format!("/v1/buckets/{bucket}/batches/{}/logs", batch["batch_id"].as_str().unwrap());
        let logs = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let warned = logs["logs"].as_array().unwrap().iter().find(|one| one["level"] == "warning").unwrap();
        assert_eq!(warned["message"], format!("object {id}: {told}"));
        let task = server.call_in(&namespace, "GET", &format!("/v1/tasks/{}", batch["task_id"].as_str().unwrap()), Value::Null).await.ok();
        assert_eq!(task["additional_data"]["pages_dropped_reasons"], reasons, "{task}");
    }
}
