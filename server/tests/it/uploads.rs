//! Uploads: announced, sent to a signed address, confirmed into an object.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{both, harness::Server};

async fn bucket(server: &Server) -> (String, String) {
    let namespace = server.namespace("files").await;
    let body = json!({"bucket_name": "files", "bucket_schema": {"properties": {"text": {"type": "text"}, "scan": {"type": "pdf"}}}});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let id = bucket["bucket_id"].as_str().unwrap();
    (namespace, format!("/v1/buckets/{id}/uploads"))
}

async fn put(server: &Server, upload: &Value, bytes: &'static str) -> u16 {
    let url = upload["presigned_url"].as_str().unwrap();
    Server::send(server.request("PUT", url).body(bytes))
        .await
        .status
}

both! {
    async fn a_confirmed_file_becomes_an_object(server) {
        let (namespace, path) = bucket(&server).await;
        let hash = hex::encode(Sha256::digest("hello"));
        let body = json!({"filename": "../a b.txt", "content_type": "text/plain", "file_size_bytes": 5,
            "file_hash": hash, "object_metadata": {"lang": "en"}});
        let upload = server.call_in(&namespace, "POST", &path, body.clone()).await.ok();
        let one = format!("{path}/{}", upload["upload_id"].as_str().unwrap());
        let confirm = format!("{one}/confirm");
        server.call_in(&namespace, "POST", &confirm, Value::Null).await.error(400, "BadRequestError");
        assert_eq!(put(&server, &upload, "hello").await, 200);
        let confirmed = server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        assert_eq!((&confirmed["status"], &confirmed["file_hash"]), (&json!("COMPLETED"), &json!(hash)));
        let again = server.call_in(&namespace, "POST", &confirm, json!({})).await.ok();
        assert_eq!(again["object_id"], confirmed["object_id"]);

        let objects = path.replace("uploads", "objects");
        let object = format!("{objects}/{}?return_presigned_urls=true", confirmed["object_id"].as_str().unwrap());
        let found = server.call_in(&namespace, "GET", &object, Value::Null).await.ok();
        assert_eq!((&found["lang"], &found["blobs"][0]["property"]), (&json!("en"), &json!("text")));
        // The object's copy outlives the upload.
        assert_eq!(server.call_in(&namespace, "DELETE", &one, Value::Null).await.status, 204);
        let url = found["blobs"][0]["presigned_url"].as_str().unwrap();
        assert_eq!(Server::send(server.request("GET", url)).await.body, json!("hello"));
    }

    async fn files_that_differ_from_their_announcement_are_refused(server) {
        let (namespace, path) = bucket(&server).await;
        let announce = async |extra: Value| {
            let mut body = json!({"filename": "a.txt", "content_type": "text/plain"});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
            assert_eq!(put(&server, &upload, "hello").await, 200);
            let confirm = format!("{path}/{}/confirm", upload["upload_id"].as_str().unwrap());
            server.call_in(&namespace, "POST", &confirm, Value::Null).await
        };
        announce(json!({"file_size_bytes": 6})).await.error(400, "BadRequestError");
        announce(json!({"file_hash": "0".repeat(64)})).await.error(400, "BadRequestError");
        announce(json!({"create_object_on_confirm": false})).await.ok();
        let list = server.call_in(&namespace, "POST", &format!("{path}/list"), Value::Null).await.ok();
        assert_eq!(list["stats"]["uploads_by_status"], json!({"COMPLETED": 1, "FAILED": 2}));
        let upload = json!({"filename": "a.txt", "content_type": "text/plain"});
        let upload = server.call_in(&namespace, "POST", &path, upload).await.ok();
        let url = upload["presigned_url"].as_str().unwrap();
        let wrong = server.request("PUT", url).header("x-checksum-sha256", "0".repeat(64)).body("hello");
        Server::send(wrong).await.error(400, "BadRequestError");
        server.app.clock().advance(7200);
        assert_eq!(put(&server, &upload, "hello").await, 403);
        let confirm = format!("{path}/{}/confirm", upload["upload_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &confirm, Value::Null).await.error(410, "NotFoundError");
    }

    async fn the_same_file_is_sent_once(server) {
        let (namespace, path) = bucket(&server).await;
        let hash = hex::encode(Sha256::digest("hello"));
        let one = json!({"filename": "a.txt", "content_type": "text/plain", "file_hash": hash});
        let both = json!({"uploads": [one, {"filename": "b.txt", "content_type": "text/plain"}], "shared_object_metadata": {"lang": "en"}});
        let made = server.call_in(&namespace, "POST", &format!("{path}/batch"), both).await.ok();
        assert_eq!(made["total"], 2);
        assert_eq!(put(&server, &made["uploads"][0], "hello").await, 200);
        let ids: Vec<Value> = made["uploads"].as_array().unwrap().iter().map(|upload| json!({"upload_id": upload["upload_id"]})).collect();
        let answer = server.call_in(&namespace, "POST", &format!("{path}/confirm/batch"), json!({"confirmations": ids})).await.ok();
        assert_eq!((&answer["status"], &answer["confirmations_count"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(2)));
        let task = format!("/v1/tasks/{}", answer["task_id"].as_str().unwrap());
        let task = server.call("GET", &task, Value::Null).await.ok();
        assert_eq!(task["outputs"][1]["status"], "FAILED");
        let again = server.call_in(&namespace, "POST", &path, one).await.ok();
        assert_eq!((&again["is_duplicate"], &again["presigned_url"]), (&json!(true), &Value::Null));
        assert_eq!(again["existing_object_id"], task["outputs"][0]["object_id"]);
    }
}
