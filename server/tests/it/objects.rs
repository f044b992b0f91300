//! Objects and their files: checked against the bucket, kept, found, changed, removed.

mod together;

pub use together::{beside, held_up, release, run};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{process, red_square},
    both,
    harness::Server,
};

/// A namespace and a bucket with these members.
async fn bucket(server: &Server, extra: Value) -> (String, String) {
    let namespace = server.namespace("catalogue").await;
    let mut body = json!({"bucket_name": "things", "bucket_schema": {"properties": {
        "title": {"type": "string", "required": true},
        "year": {"type": "integer"},
        "body": {"type": "text"},
        "photo": {"type": "image"},
    }}});
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let id = bucket["bucket_id"].as_str().unwrap();
    (namespace, format!("/v1/buckets/{id}"))
}

fn id(object: &Value) -> String {
    object["object_id"].as_str().unwrap().to_owned()
}

both! {
    async fn an_object_keeps_members_and_files(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let body = json!({"title": "one", "own": [1, 2], "blobs": [
            {"property": "body", "type": "text", "data": "some words"},
            {"property": "photo", "type": "image", "data": "data:image/png;base64,iVBORw0KGgo="},
        ]});
        let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), body).await.ok();
        assert_eq!(made["status"], "DRAFT");
        let path = format!("{bucket}/objects/{}?return_presigned_urls=true", id(&made));
        let found = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&found["title"], &found["own"]), (&json!("one"), &json!([1, 2])));
        let details = &found["blobs"][0]["details"];
        assert_eq!((&details["filename"], &details["size_bytes"]), (&json!("body.txt"), &json!(10)));
        let url = found["blobs"][0]["presigned_url"].as_str().unwrap();
        let answer = Server::send(server.request("GET", url)).await;
        assert_eq!((answer.status, answer.body), (200, json!("some words")));
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        let part = Server::send(server.request("GET", url).header("Range", "bytes=5-")).await;
        assert_eq!((part.status, part.body), (206, json!("words")));
        assert_eq!(part.headers["content-range"], "bytes 5-9/10");
        let same = server.request("GET", url).header("If-None-Match", &answer.headers["etag"]);
        assert_eq!(Server::send(same).await.status, 304);
        // A signature opens its own file alone.
        let other = url.replace("body.txt", "other.txt");
        Server::send(server.request("GET", &other)).await.error(403, "ForbiddenError");
        Server::send(server.request("PUT", url).body("x")).await.error(403, "ForbiddenError");
        let photo = found["blobs"][1]["presigned_url"].as_str().unwrap();
        let photo = Server::send(server.request("GET", photo)).await;
        assert_eq!(photo.headers["content-type"], "image/png");

        let page = server.call_in(&namespace, "GET", &format!("{bucket}/objects?include_total=true"), Value::Null).await.ok();
        assert_eq!(page["pagination"]["total"], 1);
        let events = server.call("GET", "/v1/events?event_type=object.created", Value::Null).await.ok();
        assert_eq!(events["results"][0]["payload"]["object_id"], made["object_id"]);
    }

    async fn wrong_objects_are_refused_with_their_place(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let path = format!("{bucket}/objects");
        let send = async |body: Value| server.call_in(&namespace, "POST", &path, body).await;
        send(json!({"year": 1})).await.invalid(&["body", "title"], "missing");
        send(json!({"title": "a", "year": "b"})).await.invalid(&["body", "year"], "int_type");
        send(json!({"title": "a", "object_id": "b"})).await.invalid(&["body", "object_id"], "extra_forbidden");
        let blob = |blob: Value| json!({"title": "a", "blobs": [blob]});
        let film = json!({"property": "film", "type": "video", "data": "AAAA"});
        send(blob(film)).await.invalid(&["body", "blobs", "0", "property"], "value_error");
        let fetched = json!({"property": "photo", "type": "image", "data": "http://169.254.169.254/"});
        send(blob(fetched)).await.invalid(&["body", "blobs", "0", "data"], "value_error");
        // Nothing but files of a storage connection stays at its source.
        let linked = json!({"property": "photo", "type": "image", "data": "https://example.com/a.png"});
        let mut sent = blob(linked);
        sent["canonicalize_source"] = false.into();
        send(sent.clone()).await.invalid(&["body", "blobs", "0", "canonicalize_source"], "not_enabled");
        sent["blobs"][0]["data"] = "data:image/png;base64,AAAA".into();
        sent["blobs"][0]["canonicalize_source"] = false.into();
        send(sent).await.invalid(&["body", "blobs", "0", "canonicalize_source"], "not_enabled");
        let garbled = json!({"property": "photo", "type": "image", "data": "not base64!"});
        send(blob(garbled)).await.invalid(&["body", "blobs", "0", "data"], "value_error");
        let page = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(page["results"], json!([]));
    }

    async fn unique_keys_follow_their_policy(server) {
        let (namespace, bucket) = bucket(&server, json!({"unique_key": {"fields": ["title"]}})).await;
        let path = format!("{bucket}/objects");
        let send = async |query: &str, body: Value| {
            server.call_in(&namespace, "POST", &format!("{path}{query}"), body).await
        };
        send("?policy=update", json!({"title": "a"})).await.error(404, "NotFoundError");
        let first = send("", json!({"title": "a", "year": 1})).await.ok();
        let refused = send("", json!({"title": "a", "year": 2})).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "unique_key_conflict");
        let second = send("?policy=upsert", json!({"title": "a", "year": 3})).await.ok();
        assert_eq!((id(&second), &second["year"]), (id(&first), &json!(3)));
        send("?policy=replace", json!({"title": "a"})).await.invalid(&["query", "policy"], "enum");
        let many = json!({"objects": [{"title": "a", "year": 7}, {"title": "c", "year": 7}]});
        let made = send("/batch?policy=update", many.clone()).await.ok();
        assert_eq!((id(&made["succeeded"][0]), &made["succeeded"][0]["year"]), (id(&first), &json!(7)), "{made:#}");
        assert_eq!((&made["failed"][0]["object_index"], &made["failed"][0]["error_type"]), (&json!(1), &json!("NotFoundError")));
        send("/batch?policy=replace", many).await.invalid(&["query", "policy"], "enum");
        // Changing another object into this key is refused too.
        let other = send("", json!({"title": "b"})).await.ok();
        let rename = json!({"title": "a"});
        let answer = server.call_in(&namespace, "PATCH", &format!("{path}/{}", id(&other)), rename).await;
        answer.error(409, "ConflictError");
    }

    async fn repetitions_answer_the_first(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let path = format!("{bucket}/objects");
        let body = json!({"objects": [
            {"title": "a", "year": 1},
            {"year": 1},
            {"year": 1, "title": "a", "skip_duplicates": true},
            {"title": "b", "idempotency_key": "k"},
            {"title": "c", "idempotency_key": "k"},
        ]});
        let made = server.call_in(&namespace, "POST", &format!("{path}/batch"), body).await.ok();
        assert_eq!((&made["succeeded_count"], &made["failed_count"]), (&json!(4), &json!(1)));
        assert_eq!(made["failed"][0]["object_index"], 1);
        let (first, again) = (&made["succeeded"][0], &made["succeeded"][1]);
        assert_eq!((id(again), &again["replayed_by"]), (id(first), &json!("skip_duplicates")));
        assert_eq!(made["succeeded"][3]["replayed_by"], "idempotency_key");
        let page = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(page["results"].as_array().unwrap().len(), 2);
        // One that is changed stays the one that it is.
        for method in ["PATCH", "PUT"] {
            let change = json!({"title": "a", "year": 2, "skip_duplicates": true});
            server.call_in(&namespace, method, &format!("{path}/{}", id(first)), change).await.invalid(&["body", "skip_duplicates"], "not_enabled");
        }
        let events = server.call("GET", "/v1/events?event_type=objects.created.batch", Value::Null).await.ok();
        assert_eq!(events["results"][0]["payload"]["count"], 2);
    }

    async fn objects_are_changed_replaced_and_removed(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let path = format!("{bucket}/objects");
        let made = server.call_in(&namespace, "POST", &path, json!({"title": "a", "year": 1})).await.ok();
        let one = format!("{path}/{}", id(&made));
        let patched = server.call_in(&namespace, "PATCH", &one, json!({"year": 2})).await.ok();
        assert_eq!((&patched["title"], &patched["year"]), (&json!("a"), &json!(2)));
        let replaced = server.call_in(&namespace, "PUT", &one, json!({"title": "b"})).await.ok();
        assert_eq!((&replaced["title"], &replaced["year"]), (&json!("b"), &Value::Null));
        let stranger = server.namespace("stranger").await;
        server.call_in(&stranger, "GET", &one, Value::Null).await.error(404, "NotFoundError");
        let answer = server.call_in(&namespace, "DELETE", &one, Value::Null).await;
        assert_eq!(answer.status, 204);
        server.call_in(&namespace, "GET", &one, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&namespace, "DELETE", &one, Value::Null).await.error(404, "NotFoundError");
    }
    async fn replaced_files_go_and_new_ones_go_with_their_object(server) {
        let (namespace, bucket) = bucket(&server, json!({"unique_key": {"fields": ["title"], "default_policy": "upsert"}})).await;
        let (path, files) = (format!("{bucket}/objects"), format!("{namespace}/objects"));
        let text = |words: &str| json!({"property": "body", "type": "text", "data": words});
        let photo = json!({"property": "photo", "type": "image", "data": "data:image/png;base64,iVBORw0KGgo="});
        let send = async |query: &str, body: Value| server.call_in(&namespace, "POST", &format!("{path}{query}"), body).await;
        let first = send("", json!({"title": "a", "blobs": [text("one"), photo]})).await.ok();
        let other = send("", json!({"title": "b", "blobs": [text("other")]})).await.ok();
        assert_eq!(server.files(&files).len(), 3);
        // Another object's update takes the two old files away and brings one.
        let second = send("", json!({"title": "a", "blobs": [text("two")]})).await.ok();
        assert_eq!(id(&second), id(&first));
        server.files_become(&files, 2).await;
        // A batch replaces twice: only the last file stays.
        let body = json!({"objects": [{"title": "a", "blobs": [text("three")]}, {"title": "a", "blobs": [text("four")]}]});
        server.call_in(&namespace, "POST", &format!("{path}/batch"), body).await.ok();
        server.files_become(&files, 2).await;
        let one = format!("{path}/{}", id(&first));
        let found = server.call_in(&namespace, "GET", &format!("{one}?return_presigned_urls=true"), Value::Null).await.ok();
        let url = found["blobs"][0]["presigned_url"].as_str().unwrap();
        assert_eq!(Server::send(server.request("GET", url)).await.body, json!("four"));
        // What is refused leaves nothing behind.
        send("?policy=insert", json!({"title": "a", "blobs": [text("five")]})).await.error(409, "ConflictError");
        assert_eq!(server.files(&files).len(), 2);
        assert_eq!(server.call_in(&namespace, "DELETE", &one, Value::Null).await.status, 204);
        server.files_become(&files, 1).await;
        assert!(server.files(&files)[0].contains(&id(&other)));
    }

    async fn a_deleted_object_takes_its_documents_and_thumbnails_along(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let bucket_id = bucket.rsplit('/').next().unwrap();
        let collection = json!({
            "collection_name": "photos", "source": {"type": "bucket", "bucket_ids": [bucket_id]},
            "feature_extractor": {"feature_extractor_name": "image_extractor", "version": "v1"},
        });
        let collection = server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        let picture = STANDARD.encode(red_square());
        let body = json!({"title": "a", "blobs": [{"property": "photo", "type": "image", "data": picture}]});
        let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), body).await.ok();
        let batch = process(&server, &namespace, bucket_id).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!(server.files(&format!("{namespace}/documents")).len(), 1);
        let one = format!("{bucket}/objects/{}", id(&made));
        assert_eq!(server.call_in(&namespace, "DELETE", &one, Value::Null).await.status, 204);
        server.files_become(&namespace, 0).await;
        let count = format!("/v1/collections/{}/documents/count", collection["collection_id"].as_str().unwrap());
        let count = server.call_in(&namespace, "GET", &count, Value::Null).await.ok();
        assert_eq!(count["count"], 0);
        // Whoever follows the feed hears of the document, too.
        let feed = server.call("GET", "/v1/events?event_type=document.deleted", Value::Null).await.ok();
        let told: Vec<&Value> = feed["results"].as_array().unwrap().iter().map(|event| &event["payload"]["collection_id"]).collect();
        assert_eq!(told, [&collection["collection_id"]], "{feed:#}");
    }
}
