//! Uploads: announced, sent to a signed address, confirmed into an object.

use loupe_server::{args, v1::uploads::store};
use loupe_wire::{TaskStatusEnum, UploadResponse};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    batches::{ended, library},
    both,
    harness::Server,
};

const BATCHES: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1";

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
        let later = format!("{confirm}?async=true");
        let begun = server.call_in(&namespace, "POST", &later, Value::Null).await.ok();
        assert_eq!((&begun["status"], &begun["object_id"]), (&json!("PROCESSING"), &Value::Null));
        for _ in 0..3_000 {
            if server.call_in(&namespace, "GET", &one, Value::Null).await.ok()["status"] == "COMPLETED" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
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

    async fn of_several_files_that_are_announced_none_is_where_one_is_wrong(server) {
        let (namespace, path) = bucket(&server).await;
        let file = |kind: &str, size: i64| json!({"filename": "a.txt", "content_type": "text/plain", "blob_type": kind, "file_size_bytes": size});
        for (wrong, member, fault) in [(file("scroll", 1), "blob_type", "enum"), (file("text", 1 << 40), "file_size_bytes", "less_than_equal")] {
            let both = json!({"uploads": [file("text", 1), wrong]});
            let answer = server.call_in(&namespace, "POST", &format!("{path}/batch"), both).await;
            answer.invalid(&["body", "uploads", "1", member], fault);
        }
        // Nor has the bucket every property; where no object is made, none is asked for.
        let mut unknown = json!({"filename": "a.txt", "content_type": "text/plain", "blob_property": "cover"});
        let refused = server.call_in(&namespace, "POST", &path, unknown.clone()).await;
        refused.invalid(&["body", "blob_property"], "value_error");
        let list = server.call_in(&namespace, "POST", &format!("{path}/list"), json!({})).await.ok();
        assert_eq!(list["stats"]["total_uploads"], 0);
        unknown["create_object_on_confirm"] = false.into();
        server.call_in(&namespace, "POST", &path, unknown).await.ok();
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

    async fn an_upload_in_parts_goes_on_where_it_broke_off(server) {
        let (namespace, path) = bucket(&server).await;
        let text = "a letter that is long enough for three parts";
        let body = json!({"filename": "long.txt", "content_type": "text/plain", "file_size_bytes": text.len(), "file_hash": hex::encode(Sha256::digest(text))});
        let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
        let port = |server: &Server| server.url.rsplit(':').next().unwrap().to_owned();
        let url = url::Url::parse(upload["presigned_url"].as_str().unwrap()).unwrap();
        let send = async |server: &Server, range: String, bytes: &str| {
            let mut here = url.clone();
            here.set_port(Some(port(server).parse().unwrap())).unwrap();
            let request = server.request("PUT", here.as_str()).header("content-range", range);
            Server::send(request.body(bytes.to_owned())).await
        };
        let total = text.len();
        let there = |answer: &crate::harness::Answer| answer.headers.get("range").map(|range| range.to_str().unwrap().to_owned());
        let status = format!("bytes */{total}");
        let nothing = send(&server, status.clone(), "").await;
        assert_eq!((nothing.status, there(&nothing)), (202, None));
        let first = send(&server, format!("bytes 0-9/{total}"), &text[..10]).await;
        assert_eq!((first.status, there(&first).as_deref()), (202, Some("bytes=0-9")));
        // The last one before the one in the middle, which does not come whole at first.
        let last = send(&server, format!("bytes 30-{}/{total}", total - 1), &text[30..]).await;
        assert_eq!((last.status, there(&last).as_deref()), (202, Some("bytes=0-9")));
        send(&server, format!("bytes 10-29/{total}"), &text[10..20]).await.error(400, "BadRequestError");
        send(&server, format!("bytes 10-{total}/{total}"), "x").await.error(400, "BadRequestError");
        send(&server, "bytes 0-9/99999999999".into(), &text[..10]).await.error(413, "BadRequestError");

        // Another process goes on with what this one has.
        let server = server.restart().await;
        let resumed = send(&server, status.clone(), "").await;
        assert_eq!((resumed.status, there(&resumed).as_deref()), (202, Some("bytes=0-9")));
        let whole = send(&server, format!("bytes 10-29/{total}"), &text[10..30]).await;
        assert_eq!(whole.status, 200);
        assert!(whole.headers.contains_key("etag"));
        assert_eq!(send(&server, status.clone(), "").await.status, 200);
        // The answer to the last part may have been lost; nothing that is asked costs the file.
        assert_eq!(send(&server, format!("bytes 30-{}/{total}", total - 1), &text[30..]).await.status, 200);
        assert_eq!(send(&server, "bytes */0".into(), "").await.status, 202);
        assert_eq!(send(&server, status, "").await.status, 200);
        let folder = format!("{namespace}/uploads/{}", upload["upload_id"].as_str().unwrap());
        assert_eq!(server.files(&folder).len(), 1, "the parts are gone");
        let confirm = format!("{path}/{}/confirm", upload["upload_id"].as_str().unwrap());
        let confirmed = server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        assert_eq!(confirmed["file_size_bytes"], total);
    }

    async fn parts_of_an_upload_are_sent_where_it_says(server) {
        let (namespace, path) = bucket(&server).await;
        let text = "a letter";
        let announce = async |size: Value| {
            let body = json!({"filename": "a.txt", "content_type": "text/plain", "file_size_bytes": size});
            let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
            format!("{path}/{}", upload["upload_id"].as_str().unwrap())
        };
        let (one, unknown) = (announce(json!(text.len())).await, announce(Value::Null).await);
        let parts = async |one: &str| server.call_in(&namespace, "POST", &format!("{one}/parts"), Value::Null).await;
        parts(&unknown).await.error(400, "BadRequestError");
        parts(&format!("{path}/upl_none")).await.error(404, "NotFoundError");
        let told = parts(&one).await.ok();
        assert_eq!((&told["part_size_bytes"], told["parts"].as_array().unwrap().len()), (&json!(8 << 20), 1));
        let part = &told["parts"][0];
        assert_eq!((&part["part_number"], &part["first_byte"], &part["last_byte"]), (&json!(1), &json!(0), &json!(7)));
        assert_eq!((&part["headers"], &part["is_there"]), (&json!({"Content-Range": "bytes 0-7/8"}), &json!(false)));
        let confirm = format!("{one}/confirm");
        server.call_in(&namespace, "POST", &confirm, Value::Null).await.error(400, "BadRequestError");
        let sent = server.request("PUT", part["presigned_url"].as_str().unwrap());
        let sent = sent.header("content-range", part["headers"]["Content-Range"].as_str().unwrap()).body(text);
        assert_eq!(Server::send(sent).await.status, 200);
        assert_eq!(parts(&one).await.ok()["parts"][0]["is_there"], true);
        let confirmed = server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        assert_eq!(confirmed["file_hash"], hex::encode(Sha256::digest(text)));
        parts(&one).await.error(409, "ConflictError");
        let late = announce(json!(text.len())).await;
        server.app.clock().advance(3_600);
        parts(&late).await.error(410, "NotFoundError");
    }

    async fn an_upload_that_nobody_confirms_fails_and_its_file_goes(server) {
        let (namespace, path) = bucket(&server).await;
        let announce = async |name: &str| {
            let body = json!({"filename": name, "content_type": "text/plain", "skip_duplicates": false});
            server.call_in(&namespace, "POST", &path, body).await.ok()
        };
        let one = |upload: &Value| format!("{path}/{}", upload["upload_id"].as_str().unwrap());
        let (confirmed, late, lost, half) = (announce("a").await, announce("b").await, announce("c").await, announce("d").await);
        for upload in [&confirmed, &late, &lost] {
            assert_eq!(put(&server, upload, "hello").await, 200);
        }
        server.call_in(&namespace, "POST", &format!("{}/confirm", one(&confirmed)), Value::Null).await.ok();
        // What the store writes before a file is whole; its process died.
        let folder = server.folder.path().join(format!("data/blobs/{namespace}/uploads/{}", half["upload_id"].as_str().unwrap()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("d#1"), "hel").unwrap();
        let uploads = format!("{namespace}/uploads");
        assert_eq!(server.files(&uploads).len(), 4);
        // The address is over, but the file came in time.
        server.app.clock().advance(3_700);
        server.call_in(&namespace, "POST", &format!("{}/confirm", one(&late)), Value::Null).await.ok();
        server.app.clock().advance(3_700);
        server.files_become(&uploads, 2).await;
        for upload in [&lost, &half] {
            let found = server.call_in(&namespace, "GET", &one(upload), Value::Null).await.ok();
            assert_eq!(found["status"], "FAILED");
            assert!(found["message"].as_str().unwrap().contains("expired"), "{found:#}");
            server.call_in(&namespace, "POST", &format!("{}/confirm", one(upload)), Value::Null).await.error(410, "NotFoundError");
        }
        let found = server.call_in(&namespace, "GET", &one(&late), Value::Null).await.ok();
        assert_eq!(found["status"], "COMPLETED");
    }

    async fn a_page_has_twenty_uploads_where_nothing_is_said(server) {
        let (namespace, path) = bucket(&server).await;
        let file = |number: usize| json!({"filename": format!("{number}.txt"), "content_type": "text/plain"});
        let files: Vec<Value> = (0..21).map(file).collect();
        server.call_in(&namespace, "POST", &format!("{path}/batch"), json!({"uploads": files})).await.ok();
        let list = async |query: &str, body: Value| server.call_in(&namespace, "POST", &format!("{path}/list{query}"), body).await;
        for (query, body, count) in [
            ("", json!({}), 20), ("?page_size=3", json!({}), 3), ("?limit=21", json!({}), 21), ("?limit=4", json!({"limit": 5}), 5),
        ] {
            let page = list(query, body.clone()).await.ok();
            assert_eq!(page["results"].as_array().unwrap().len(), count, "{query} {body}");
            assert_eq!(page["pagination"]["page_size"], count, "{query} {body}");
        }
        assert_eq!(list("", json!({"limit": 101})).await.status, 422);
    }

    async fn a_confirmed_file_stays_and_only_who_may_write_sends_one(server) {
        let (namespace, path) = bucket(&server).await;
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let key = server.call("POST", keys, json!({"name": "reader", "permissions": ["read"]})).await.ok();
        let reader = key["key"].as_str().unwrap();
        let read = async |method: &str, path: &str| {
            let request = server.request(method, path).bearer_auth(reader).header("X-Namespace", &namespace);
            Server::send(if method == "POST" { request.json(&json!({"return_presigned_urls": true})) } else { request }).await.ok()
        };
        let announce = async |name: &str| {
            let body = json!({"filename": name, "content_type": "text/plain", "skip_duplicates": false});
            server.call_in(&namespace, "POST", &path, body).await.ok()
        };
        let shown = |upload: &Value| format!("{path}/{}?return_presigned_urls=true", upload["upload_id"].as_str().unwrap());
        let upload = announce("a.txt").await;
        assert_eq!(read("GET", &shown(&upload)).await["presigned_url"], Value::Null);
        let list = read("POST", &format!("{path}/list")).await;
        assert_eq!((&list["results"][0]["upload_id"], &list["results"][0]["presigned_url"]), (&upload["upload_id"], &Value::Null));
        let again = server.call_in(&namespace, "GET", &shown(&upload), Value::Null).await.ok();
        assert_eq!(put(&server, &again, "hello").await, 200);

        let confirm = format!("{path}/{}/confirm", upload["upload_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        let url = upload["presigned_url"].as_str().unwrap();
        let late = Server::send(server.request("PUT", url).body("other")).await.error(409, "ConflictError");
        assert_eq!(late["error"]["code"], "upload_confirmed");
        let part = server.request("PUT", url).header("content-range", "bytes 0-4/5").body("other");
        Server::send(part).await.error(409, "ConflictError");
        let confirmed = read("GET", &shown(&upload)).await;
        let url = confirmed["presigned_url"].as_str().unwrap();
        assert_eq!(Server::send(server.request("GET", url)).await.body, json!("hello"));
        Server::send(server.request("PUT", url).body("other")).await.error(403, "ForbiddenError");

        // One that was deleted, and one that expired, take nothing any more.
        let (gone, old) = (announce("b.txt").await, announce("c.txt").await);
        let one = format!("{path}/{}", gone["upload_id"].as_str().unwrap());
        assert_eq!(server.call_in(&namespace, "DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(put(&server, &gone, "hello").await, 410);
        server.app.clock().advance(3_500);
        let late = server.call_in(&namespace, "GET", &shown(&old), Value::Null).await.ok();
        server.app.clock().advance(200);
        assert_eq!(put(&server, &late, "hello").await, 403, "an address ends with its upload");
        let expired = server.call_in(&namespace, "GET", &shown(&old), Value::Null).await.ok();
        assert_eq!((&expired["status"], &expired["presigned_url"]), (&json!("PENDING"), &Value::Null));
    }

    async fn confirmations_at_once_submit_one_batch(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let path = format!("/v1/buckets/{bucket}/uploads");
        let body = json!({"filename": "a.txt", "content_type": "text/plain"});
        let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
        assert_eq!(put(&server, &upload, "some words to find").await, 200);
        let confirm = format!("{path}/{}/confirm", upload["upload_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &confirm, json!({})).await.ok();
        let auto = json!({"auto_submit_batch": true});
        let ask = || server.call_in(&namespace, "POST", &confirm, auto.clone());
        let (one, two, three, four) = tokio::join!(ask(), ask(), ask(), ask());
        let mut batches = Vec::new();
        for answer in [one, two, three, four] {
            if answer.status == 200 {
                batches.push(answer.body["batch_id"].as_str().unwrap().to_owned());
            } else {
                answer.error(409, "ConflictError");
            }
        }
        let last = ask().await.ok();
        batches.push(last["batch_id"].as_str().unwrap().to_owned());
        batches.dedup();
        assert_eq!(batches.len(), 1, "{batches:?}");
        let count = server.app.db().number(BATCHES, args![namespace]).await.unwrap();
        assert_eq!(count, 1);
    }

    async fn a_confirmation_that_was_cut_off_is_taken_over(server) {
        let (namespace, path) = bucket(&server).await;
        let body = json!({"filename": "a.txt", "content_type": "text/plain"});
        let upload = server.call_in(&namespace, "POST", &path, body.clone()).await.ok();
        assert_eq!(put(&server, &upload, "hello").await, 200);
        let id = upload["upload_id"].as_str().unwrap().to_owned();
        let now = server.app.clock().micros();
        assert!(claim(&server, &namespace, &id, now).await);
        let confirm = format!("{path}/{id}/confirm");
        let one = server.call_in(&namespace, "GET", &format!("{path}/{id}"), Value::Null).await.ok();
        assert_eq!(one["status"], "PROCESSING");
        // As long as it may be alive, nobody else confirms.
        server.call_in(&namespace, "POST", &confirm, Value::Null).await.error(409, "ConflictError");
        server.app.clock().advance(61);
        let confirmed = server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        assert_eq!(confirmed["status"], "COMPLETED");
        // The dead one wakes up: it changes nothing.
        let late = UploadResponse { upload_id: id.clone(), status: TaskStatusEnum::Failed, ..Default::default() };
        let within = namespace.clone();
        let finished = server.app.db().write(move |tx| Box::pin(async move { store::finish(tx, &within, &late, now, now).await })).await;
        assert!(!finished.unwrap());
        let again = server.call_in(&namespace, "POST", &confirm, Value::Null).await.ok();
        assert_eq!(again["object_id"], confirmed["object_id"]);

        // A process that starts on an SQLite folder knows that it is alone.
        let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
        assert_eq!(put(&server, &upload, "hello").await, 200);
        let id = upload["upload_id"].as_str().unwrap().to_owned();
        assert!(claim(&server, &namespace, &id, server.app.clock().micros()).await);
        let alone = !server.app.db().is_postgres();
        let server = server.restart().await;
        let answer = server.call_in(&namespace, "POST", &format!("{path}/{id}/confirm"), Value::Null).await;
        if alone {
            assert_eq!(answer.ok()["status"], "COMPLETED");
        } else {
            answer.error(409, "ConflictError");
        }
    }

    async fn confirmed_files_are_processed_when_asked_to(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let path = format!("/v1/buckets/{bucket}/uploads");
        let announce = async |name: &str, extra: Value| {
            let mut body = json!({"filename": name, "content_type": "text/plain", "skip_duplicates": false});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
            assert_eq!(put(&server, &upload, "some words to find").await, 200);
            upload["upload_id"].as_str().unwrap().to_owned()
        };
        let first = announce("a.txt", json!({})).await;
        let confirm = format!("{path}/{first}/confirm");
        let auto = json!({"auto_submit_batch": true});
        let confirmed = server.call_in(&namespace, "POST", &confirm, auto.clone()).await.ok();
        let batch = format!("/v1/batches/{}", confirmed["batch_id"].as_str().unwrap());
        let end = ended(&server, &namespace, &batch).await;
        assert_eq!((&end["status"], &end["object_ids"]), (&json!("COMPLETED"), &json!([confirmed["object_id"]])));
        assert_eq!(end["task_id"], confirmed["task_id"]);
        // A repetition answers the same batch and makes no other.
        let again = server.call_in(&namespace, "POST", &confirm, auto.clone()).await.ok();
        assert_eq!((&again["batch_id"], &again["task_id"]), (&confirmed["batch_id"], &confirmed["task_id"]));

        let (second, third) = (announce("b.txt", json!({})).await, announce("c.txt", json!({})).await);
        let confirmations = json!({"confirmations": [
            {"upload_id": second, "auto_submit_batch": true}, {"upload_id": third, "auto_submit_batch": true}, {"upload_id": "upl_unknown"},
        ]});
        let answer = server.call_in(&namespace, "POST", &format!("{path}/confirm/batch"), confirmations).await.ok();
        let outputs = &answer["task"]["outputs"];
        assert_eq!(outputs[0]["batch_id"], outputs[1]["batch_id"]);
        assert_eq!((&outputs[2]["upload_id"], &outputs[2]["status"]), (&json!("upl_unknown"), &json!("FAILED")));
        let batch = format!("/v1/batches/{}", outputs[0]["batch_id"].as_str().unwrap());
        assert_eq!(ended(&server, &namespace, &batch).await["documents_written"], 2);
        let count = format!("/v1/collections/{collection}/documents/count");
        assert_eq!(server.call_in(&namespace, "GET", &count, Value::Null).await.ok()["count"], 3);

        let bare = announce("d.txt", json!({"create_object_on_confirm": false})).await;
        let refused = server.call_in(&namespace, "POST", &format!("{path}/{bare}/confirm"), auto).await;
        refused.error(400, "BadRequestError");
    }
}

/// Claims an upload as a process that dies right after.
async fn claim(server: &Server, namespace: &str, upload_id: &str, now: i64) -> bool {
    let (namespace, upload_id) = (namespace.to_owned(), upload_id.to_owned());
    let claim = server.app.db().write(move |tx| {
        Box::pin(async move { store::claim(tx, &namespace, &upload_id, now, 0).await })
    });
    claim.await.unwrap()
}
