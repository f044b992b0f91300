//! Snapshots: taken whole, verified, restored into a new namespace or in place, with vectors and files.

mod acting;
mod decided;

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process, red_square},
    both,
    harness::{Server, other_organization},
    stages::stage,
};

fn path(namespace: &str) -> String {
    format!("/v1/namespaces/{namespace}/snapshots")
}

/// Takes a snapshot, and answers its path once it is complete.
pub async fn take(server: &Server, namespace: &str, body: Value) -> String {
    let made = server.call("POST", &path(namespace), body).await.ok();
    let task = server.task_end(made["task_id"].as_str().unwrap()).await;
    assert_eq!(task["status"], "COMPLETED", "{task:#}");
    let id = made["snapshot_id"].as_str().unwrap();
    format!("{}/{id}", path(namespace))
}

/// Restores it, to the end.
pub async fn restore(server: &Server, snapshot: &str, body: Value) -> Value {
    let started = server
        .call("POST", &format!("{snapshot}/restore"), body)
        .await
        .ok();
    let task = server.task_end(started["task_id"].as_str().unwrap()).await;
    assert_eq!(task["status"], "COMPLETED", "{task:#}");
    started
}

/// The one document of a collection, with vectors and addresses of its files.
async fn document(server: &Server, namespace: &str, collection: &str) -> Value {
    let list = json!({"return_presigned_urls": true, "return_vectors": true});
    let path = format!("/v1/collections/{collection}/documents/list");
    let found = server.call_in(namespace, "POST", &path, list).await.ok();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found:#}");
    found["results"][0].clone()
}

async fn thumbnail(server: &Server, document: &Value) -> u16 {
    let blobs = document["document_blobs"].as_array().unwrap();
    let found = blobs.iter().find(|blob| blob["role"] == "thumbnail");
    let url = found.unwrap()["presigned_url"].as_str().unwrap();
    Server::send(server.request("GET", url)).await.status
}

both! {
    async fn a_snapshot_outlives_what_it_holds(server) {
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let picture = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square())});
        let root = object(&server, &namespace, &bucket, "red", picture).await;
        process(&server, &namespace, &bucket).await;
        let before = document(&server, &namespace, &collection).await;
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"ttl_seconds": 86_400})).await.ok();
        let snapshot = take(&server, &namespace, json!({"copy_s3_objects": true})).await;
        let detail = server.call("GET", &format!("{snapshot}?download=true"), Value::Null).await.ok();
        assert_eq!((&detail["status"], &detail["manifest"]["vector_point_count"]), (&json!("completed"), &json!(1)));
        assert_eq!(detail["manifest"]["mongo_collections"][&collection], 1);
        let files = detail["download"]["artifacts"].as_array().unwrap();
        assert_eq!(files.len(), 4, "{files:#?}");
        for file in files {
            let url = file["url"].as_str().unwrap();
            let read = server.request("GET", url).send().await.unwrap().bytes().await.unwrap();
            assert_eq!(i64::try_from(read.len()).unwrap(), file["size"].as_i64().unwrap());
        }
        let verified = server.call("GET", &format!("{snapshot}/verify?deep=true"), Value::Null).await.ok();
        assert_eq!((&verified["status"], &verified["restorable"], &verified["digests_verified"]), (&json!("ok"), &json!(true), &json!(4)));

        // Object and collection go, with their files: the snapshot has them still.
        let gone = format!("/v1/buckets/{bucket}/objects/{root}");
        assert_eq!(server.call_in(&namespace, "DELETE", &gone, Value::Null).await.status, 204);
        server.call_in(&namespace, "DELETE", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        server.files_become(&format!("{namespace}/documents/{collection}"), 0).await;
        let again = restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        assert_eq!(again["target_namespace_id"], namespace.as_str());
        let after = document(&server, &namespace, &collection).await;
        for member in ["document_id", "vectors", "title"] {
            assert_eq!(after[member], before[member], "{member}");
        }
        assert_eq!(thumbnail(&server, &after).await, 200);
        server.call_in(&namespace, "GET", &gone, Value::Null).await.ok();
        let report = server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"].clone();
        assert_eq!((&report["complete"], &report["vector_restored"]), (&json!(true), &json!(1)), "{report:#}");

        // Into another namespace it is a clone, with ids of its own.
        let other = restore(&server, &snapshot, json!({"target_namespace_name": "yesterday"})).await;
        let other = other["target_namespace_id"].as_str().unwrap();
        let found = server.call("GET", &format!("/v1/namespaces/{other}"), Value::Null).await.ok();
        assert_eq!((&found["namespace_name"], &found["namespace_ready"]), (&json!("yesterday"), &json!(true)));
        assert_eq!(found["expires_at"], Value::Null, "it lasts longer than what it was made of: {found:#}");
        let collections = server.call_in(other, "POST", "/v1/collections/list", json!({})).await.ok();
        let copied = collections["results"][0]["collection_id"].as_str().unwrap();
        assert_ne!(copied, collection);
        let copy = document(&server, other, copied).await;
        assert_eq!((&copy["vectors"], &copy["title"]), (&before["vectors"], &before["title"]));
        assert_eq!(thumbnail(&server, &copy).await, 200);
    }

    async fn what_was_changed_since_is_turned_back(server) {
        let (namespace, bucket, collection) = library(&server, "passthrough_extractor", "text").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await.ok();
        let text = json!({"property": "text", "type": "text", "data": "Knead flour."});
        let root = object(&server, &namespace, &bucket, "Bread", text).await;
        process(&server, &namespace, &bucket).await;
        let body = json!({"retriever_name": "by title", "collection_identifiers": [collection], "input_schema": {"title": {"type": "text", "required": true}},
            "stages": [stage("attribute_filter", json!({"field": "title", "value": "{{INPUT.title}}"}))]});
        let finder = call("POST", "/v1/retrievers", body).await["retriever_id"].as_str().unwrap().to_owned();
        let body = json!({"taxonomy_name": "kinds", "config": {"taxonomy_type": "flat", "retriever_id": finder,
            "input_mappings": [{"input_key": "title", "path": "title"}], "source_collection": {"collection_id": collection}}});
        let taxonomy = call("POST", "/v1/taxonomies", body).await["taxonomy_id"].as_str().unwrap().to_owned();
        let of_bucket = format!("/v1/buckets/{bucket}");
        let of_object = format!("{of_bucket}/objects/{root}");
        let of_collection = format!("/v1/collections/{collection}");
        let of_finder = format!("/v1/retrievers/{finder}");
        let of_taxonomy = format!("/v1/taxonomies/{taxonomy}");
        let every = |seconds: i64| json!({"trigger_type": "interval", "schedule_config": {"interval_seconds": seconds}});
        call("PATCH", &of_collection, json!({"schedule": every(3600)})).await;
        let scheduled = call("GET", &of_collection, Value::Null).await;
        let snapshot = take(&server, &namespace, json!({})).await;

        call("PATCH", &of_object, json!({"title": "Stone"})).await;
        process(&server, &namespace, &bucket).await;
        assert_eq!(document(&server, &namespace, &collection).await["title"], "Stone");
        call("PATCH", &of_bucket, json!({"bucket_name": "renamed", "description": "after"})).await;
        call("PATCH", &of_collection, json!({"description": "after", "schedule": every(7200)})).await;
        call("PATCH", &of_finder, json!({"retriever_name": "other", "tags": ["after"]})).await;
        call("PATCH", &of_taxonomy, json!({"taxonomy_name": "other kinds", "metadata": {"after": true}})).await;
        // One that was made since has the bucket's name, and keeps it.
        let taker = json!({"bucket_name": "files", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        call("POST", "/v1/buckets", taker).await;

        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let found = call("GET", &of_object, Value::Null).await;
        assert_eq!((&found["title"], &found["status"]), (&json!("Bread"), &json!("COMPLETED")), "{found:#}");
        assert_eq!(document(&server, &namespace, &collection).await["title"], "Bread");
        let found = call("GET", &of_bucket, Value::Null).await;
        assert_eq!((&found["bucket_name"], &found["description"]), (&json!("renamed"), &Value::Null), "{found:#}");
        let found = call("GET", &of_collection, Value::Null).await;
        for member in ["collection_name", "description", "schedule", "trigger_id"] {
            assert_eq!(found[member], scheduled[member], "{member}: {found:#}");
        }
        let trigger = format!("/v1/triggers/{}", found["trigger_id"].as_str().unwrap());
        let trigger = call("GET", &trigger, Value::Null).await;
        assert_eq!((&trigger["status"], &trigger["schedule_config"]["interval_seconds"]), (&json!("active"), &json!(3600)), "{trigger:#}");
        let found = call("GET", &of_finder, Value::Null).await;
        assert_eq!(found["retriever_name"], "by title");
        assert!(!found.to_string().contains("after"), "{found:#}");
        let found = call("GET", &of_taxonomy, Value::Null).await;
        assert_eq!(found["taxonomy_name"], "kinds");
        assert!(!found["metadata"].to_string().contains("after"), "{found:#}");
        let report = server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"].clone();
        let skipped = report["skipped_summary"].as_array().unwrap();
        assert_eq!((skipped.len(), &report["complete"]), (1, &json!(false)), "{report:#}");
        assert!(skipped[0].as_str().unwrap().starts_with(&bucket), "{report:#}");
        // The next batch knows that it was changed, and makes the same of it.
        process(&server, &namespace, &bucket).await;
        assert_eq!(document(&server, &namespace, &collection).await["title"], "Bread");
        // Once more there is nothing to turn back.
        let changes = async || server.events("object.updated").await.len() + server.events("collection.updated").await.len();
        let before = changes().await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        assert_eq!(changes().await, before);
    }

    async fn objects_get_their_unique_keys_back(server) {
        let namespace = server.namespace("keyed").await;
        let schema = json!({"properties": {"code": {"type": "string"}}});
        let body = json!({"bucket_name": "keyed", "bucket_schema": schema, "unique_key": {"fields": ["code"]}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
        let objects = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
        let make = async |code: &str| {
            let made = server.call_in(&namespace, "POST", &objects, json!({"code": code})).await.ok();
            format!("{objects}/{}", made["object_id"].as_str().unwrap())
        };
        let code = async |path: &str| server.call_in(&namespace, "GET", path, Value::Null).await.ok()["code"].clone();
        let (zero, one, two, three) = (make("0").await, make("1").await, make("2").await, make("3").await);
        let snapshot = take(&server, &namespace, json!({})).await;
        // Each has the key that the next one had.
        for (path, code) in [(&three, "4"), (&two, "3"), (&one, "2"), (&zero, "8")] {
            server.call_in(&namespace, "PATCH", path, json!({"code": code})).await.ok();
        }
        let since = make("0").await;
        let shelved = json!({"object_ids": [three.rsplit('/').next().unwrap()], "reason": "wrong"});
        let soft = format!("{objects}/bulk-soft-delete");
        server.call_in(&namespace, "POST", &soft, shelved).await.ok();
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let codes = [code(&one).await, code(&two).await, code(&three).await];
        assert_eq!(codes, [json!("1"), json!("2"), json!("3")]);
        let found = server.call_in(&namespace, "GET", &three, Value::Null).await.ok();
        assert_eq!((&found["status"], found.get("error")), (&json!("DRAFT"), None), "{found:#}");
        // What was made since keeps its key.
        assert_eq!([code(&zero).await, code(&since).await], [json!("8"), json!("0")]);
        let report = server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"].clone();
        let told = report["skipped_summary"].as_array().unwrap();
        let id = zero.rsplit('/').next().unwrap();
        assert!(told.len() == 1 && told[0].as_str().unwrap().contains(id), "{report:#}");
    }

    async fn what_is_written_for_a_removed_snapshot_goes(server) {
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let namespace = server.namespace("forgotten").await;
        let made = server.call("POST", &path(&namespace), json!({})).await.ok();
        let id = made["snapshot_id"].as_str().unwrap();
        server.call("DELETE", &format!("{}/{id}", path(&namespace)), Value::Null).await.ok();
        // As if a worker that was at it had written on.
        let folder = format!("{namespace}/snapshots/{id}");
        server.app.blobs().put(&format!("{folder}/resources.json"), "{}").await.unwrap();
        let server = server.restart_with(|config| config.jobs.workers = 2).await;
        server.task_end(made["task_id"].as_str().unwrap()).await;
        assert_eq!(server.files(&folder), Vec::<String>::new());
    }

    async fn an_object_that_is_deleted_while_it_is_restored_leaves_no_document(server) {
        let (namespace, bucket, collection) = library(&server, "passthrough_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "Knead flour."});
        let root = object(&server, &namespace, &bucket, "Bread", text).await;
        process(&server, &namespace, &bucket).await;
        let snapshot = take(&server, &namespace, json!({"copy_s3_objects": true})).await;
        let empty = async || {
            let (path, begun) = (format!("/v1/collections/{collection}/documents/count"), Instant::now());
            while server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["count"] != 0 {
                assert!(begun.elapsed() < Duration::from_secs(180), "a document of no object stays");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let path = format!("/v1/buckets/{bucket}/objects/{root}");
        assert_eq!(server.call_in(&namespace, "DELETE", &path, Value::Null).await.status, 204);
        empty().await;
        // As if somebody deleted it, and all that was made of it, before its documents are back.
        let postgres = server.app.db().is_postgres();
        server.app.db().write(move |tx| Box::pin(async move {
            if postgres {
                tx.run("CREATE FUNCTION deletes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM objects; INSERT INTO events (org_id, seq, namespace_id, event_type, operation, payload, created_at) VALUES (NEW.org_id, NEW.seq + 1000, NEW.namespace_id, ''object.deleted'', ''delete'', NEW.payload, NEW.created_at); RETURN NEW; END'", vec![]).await?;
                tx.run("CREATE TRIGGER deleting AFTER INSERT ON events FOR EACH ROW WHEN (NEW.event_type = 'object.created') EXECUTE FUNCTION deletes()", vec![]).await
            } else {
                tx.run("CREATE TRIGGER deleting AFTER INSERT ON events WHEN NEW.event_type = 'object.created' BEGIN DELETE FROM objects; INSERT INTO events (org_id, seq, namespace_id, event_type, operation, payload, created_at) VALUES (NEW.org_id, NEW.seq + 1000, NEW.namespace_id, 'object.deleted', 'delete', NEW.payload, NEW.created_at); END", vec![]).await
            }
        })).await.unwrap();
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        empty().await;
    }

    async fn a_namespace_is_restored_once_at_a_time(server) {
        let namespace = server.namespace("busy").await;
        let snapshot = take(&server, &namespace, json!({})).await;
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (path, in_place) = (format!("{snapshot}/restore"), json!({"confirm_in_place": true}));
        let first = server.call("POST", &path, in_place.clone()).await.ok();
        let refused = server.call("POST", &path, in_place.clone()).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "restore_running", "{refused:#}");
        // Another namespace is none of its business.
        server.call("POST", &path, json!({"target_namespace_name": "beside"})).await.ok();
        let server = server.restart_with(|config| config.jobs.workers = 2).await;
        server.task_end(first["task_id"].as_str().unwrap()).await;
        restore(&server, &snapshot, in_place).await;
    }

    async fn what_a_snapshot_cannot_do_is_refused(server) {
        let namespace = server.namespace("snapped").await;
        let snapshot = take(&server, &namespace, json!({})).await;
        let restore = format!("{snapshot}/restore");
        server.call("POST", &restore, json!({})).await.invalid(&["body", "target_namespace_name"], "missing");
        server.call("POST", &restore, json!({"confirm_in_place": true, "isolated": true})).await.invalid(&["body", "isolated"], "not_enabled");
        server.call("POST", &restore, json!({"target_namespace_name": "x"})).await.invalid(&["body", "namespace_name"], "string_pattern_mismatch");
        // It would take the vectors of what is there.
        let bare = take(&server, &namespace, json!({"include_vectors": false})).await;
        server.call("POST", &format!("{bare}/restore"), json!({"confirm_in_place": true})).await.error(409, "ConflictError");
        server.call("DELETE", &bare, Value::Null).await.ok();
        let import = json!({"import_from": {"bucket": "b", "prefix": "p"}});
        server.call("POST", &path(&namespace), import).await.invalid(&["body", "import_from"], "not_enabled");
        let other = other_organization(&server).await;
        for (method, path) in [("GET", snapshot.clone()), ("DELETE", snapshot.clone()), ("GET", format!("{snapshot}/verify"))] {
            Server::send(server.request(method, &path).bearer_auth(&other.key)).await.error(404, "NotFoundError");
        }
        // A file that changed is found.
        let id = snapshot.rsplit('/').next().unwrap();
        let file = server.app.config().data.join(format!("blobs/{namespace}/snapshots/{id}/resources.json"));
        std::fs::write(&file, "{}").unwrap();
        let verified = server.call("GET", &format!("{snapshot}/verify"), Value::Null).await.ok();
        assert_eq!((&verified["restorable"], &verified["issues"][0]["code"]), (&json!(false), &json!("size")));
        let listed = server.call("POST", &format!("{}/list", path(&namespace)), json!({})).await.ok();
        assert_eq!(listed["total_count"], 1);
        server.call("DELETE", &snapshot, Value::Null).await.ok();
        assert!(!file.exists());
        server.call("GET", &snapshot, Value::Null).await.error(404, "NotFoundError");
    }
}
