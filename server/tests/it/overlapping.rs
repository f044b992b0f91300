//! One object in several batches, batches that do not end as they should, and what documents leave behind. What another
//! process would do is done by hand.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use loupe_engine::store::{
    CollectionSpec, Document, ListQuery, Reach, Selection, WithVectors, document_id,
};
use loupe_server::{
    jobs,
    v1::{
        annotations::signal,
        removal::{self, Left},
    },
};
use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object, process, red_square},
    both,
    harness::Server,
};

/// A bucket of notes and a collection of their chunks, two words each.
struct Notes {
    namespace: String,
    bucket: String,
    collection: String,
}

impl Notes {
    async fn new(server: &Server) -> Self {
        let namespace = server.namespace("notes").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let bucket = server
            .call_in(&namespace, "POST", "/v1/buckets", bucket)
            .await
            .ok();
        let bucket = text(&bucket["bucket_id"]);
        let collection = json!({
            "collection_name": "chunks",
            "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {
                "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "note"},
                "parameters": {"split_by": "words", "chunk_size": 2, "chunk_overlap": 0},
            },
        });
        let collection = server
            .call_in(&namespace, "POST", "/v1/collections", collection)
            .await
            .ok();
        Self {
            namespace,
            bucket,
            collection: text(&collection["collection_id"]),
        }
    }

    async fn add(&self, server: &Server, note: &str) -> String {
        let path = format!("/v1/buckets/{}/objects", self.bucket);
        let body = json!({ "note": note });
        let made = server.call_in(&self.namespace, "POST", &path, body).await;
        text(&made.ok()["object_id"])
    }

    async fn change(&self, server: &Server, object: &str, note: &str) {
        let path = format!("/v1/buckets/{}/objects/{object}", self.bucket);
        let body = json!({ "note": note });
        let changed = server.call_in(&self.namespace, "PATCH", &path, body).await;
        changed.ok();
    }

    /// A batch of everything, submitted; its path.
    async fn submit(&self, server: &Server) -> String {
        let batches = format!("/v1/buckets/{}/batches", self.bucket);
        let body = json!({"auto_submit": true});
        let made = server
            .call_in(&self.namespace, "POST", &batches, body)
            .await;
        format!("{batches}/{}", text(&made.ok()["batch_id"]))
    }

    /// The documents, by their texts.
    async fn documents(&self, server: &Server) -> Vec<(String, String)> {
        let path = "/v1/collections/chunks/documents/list";
        let body = json!({"limit": 100});
        let list = server.call_in(&self.namespace, "POST", path, body).await;
        let list = list.ok();
        let documents = list["results"].as_array().unwrap().iter();
        let mut found: Vec<(String, String)> = documents
            .map(|one| (text(&one["text"]), text(&one["document_id"])))
            .collect();
        found.sort();
        found
    }

    async fn texts(&self, server: &Server) -> Vec<String> {
        let documents = self.documents(server).await.into_iter();
        documents.map(|(text, _)| text).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn number(server: &Server, sql: &'static str) -> i64 {
    server.app.db().number(sql, vec![]).await.unwrap()
}

/// Waits until a query counts this many.
async fn becomes(server: &Server, sql: &'static str, count: i64) {
    let start = Instant::now();
    loop {
        let found = number(server, sql).await;
        if found == count {
            return;
        }
        assert!(start.elapsed().as_secs() < 180, "{sql}: {found}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn run(server: &Server, sql: &'static str, values: Vec<String>) {
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            let args = values.iter().map(loupe_server::db::Arg::from).collect();
            tx.run(sql, args).await
        })
    });
    write.await.unwrap();
}

fn reach(namespace: &str, collection: &str) -> Reach {
    Reach {
        namespace_id: namespace.to_owned(),
        collection_ids: vec![collection.to_owned()],
        principal: None,
    }
}

/// Chunks that were put back for objects that others have.
const WAITING: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'batch_chunk' AND status = 'QUEUED' AND run_after > 0 AND attempt = 0";
const HELD: &str =
    "SELECT CAST(COUNT(*) AS BIGINT) FROM leases WHERE name LIKE 'object:%' OR name LIKE 'write:%'";
const BEGUN: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM fillings";
const CANCELED: &str =
    "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'batch_chunk' AND status = 'CANCELED'";
const REMOVING: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'remove_files' AND status IN ('QUEUED', 'PROCESSING')";

/// The one row that an object has become.
fn row_of(namespace: &str, collection: &str, object: &str, batch_id: &str) -> Document {
    let id = document_id(collection, object, "row");
    let internal = json!({
        "document_id": id, "collection_id": collection, "namespace_id": namespace, "batch_id": batch_id,
        "lineage": {"root_object_id": object}, "processing": {"history": []},
    });
    Document {
        document_id: id,
        collection_id: collection.to_owned(),
        payload: json!({"number": 1, "_internal": internal})
            .as_object()
            .cloned()
            .unwrap()
            .into(),
        ..Default::default()
    }
}

both! {
    async fn an_object_that_another_chunk_has_in_work_is_waited_for(server) {
        let notes = Notes::new(&server).await;
        let id = notes.add(&server, "one two three four").await;
        let lease = jobs::object_lease(&notes.namespace, &id);
        assert!(jobs::hold_lease(&server.app, &lease, "elsewhere", 600).await.unwrap());
        let path = notes.submit(&server).await;
        becomes(&server, WAITING, 1).await;
        assert_eq!(notes.texts(&server).await, Vec::<String>::new());
        // It is read once the other one is done with it: what came meanwhile is what the collection holds.
        notes.change(&server, &id, "five six").await;
        jobs::drop_lease(&server.app, &lease, "elsewhere").await.unwrap();
        let batch = ended(&server, &notes.namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!(notes.texts(&server).await, ["five six"]);
        becomes(&server, HELD, 0).await;
        assert_eq!(number(&server, BEGUN).await, 0);
    }

    async fn two_batches_of_one_object_end_with_its_newest_content(server) {
        let notes = Notes::new(&server).await;
        let id = notes.add(&server, "one two three four five six").await;
        let first = notes.submit(&server).await;
        notes.change(&server, &id, "seven eight").await;
        let second = notes.submit(&server).await;
        for path in [first, second] {
            let batch = ended(&server, &notes.namespace, &path).await;
            assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        }
        assert_eq!(notes.texts(&server).await, ["seven eight"]);
    }

    async fn a_run_that_did_not_end_leaves_no_tail(server) {
        let notes = Notes::new(&server).await;
        let id = notes.add(&server, "one two three four five six").await;
        process(&server, &notes.namespace, &notes.bucket).await;
        // As if it had died before its end: nothing says that the collection was ever filled.
        run(&server, "DELETE FROM processed WHERE namespace_id = $1", vec![notes.namespace.clone()]).await;
        notes.change(&server, &id, "seven eight").await;
        process(&server, &notes.namespace, &notes.bucket).await;
        assert_eq!(notes.texts(&server).await, ["seven eight"]);
    }

    async fn what_was_begun_and_did_not_end_is_done_again(server) {
        let notes = Notes::new(&server).await;
        let id = notes.add(&server, "one two").await;
        process(&server, &notes.namespace, &notes.bucket).await;
        // A batch of other content was canceled as it wrote, and the object became what it was.
        let begun = "INSERT INTO fillings (object_id, collection_id, namespace_id, batch_id) VALUES ($1, $2, $3, '')";
        run(&server, begun, vec![id, notes.collection.clone(), notes.namespace.clone()]).await;
        let documents = notes.documents(&server).await.into_iter();
        let gone = Selection::Ids(documents.map(|(_, id)| id).collect());
        server.app.store().delete(&reach(&notes.namespace, &notes.collection), gone).await.unwrap();
        let batch = process(&server, &notes.namespace, &notes.bucket).await;
        assert_eq!(batch["progress"]["objects_skipped"], 0, "{batch:#}");
        assert_eq!(notes.texts(&server).await, ["one two"]);
        assert_eq!(number(&server, BEGUN).await, 0);
        let batch = process(&server, &notes.namespace, &notes.bucket).await;
        assert_eq!(batch["progress"]["objects_skipped"], 1, "{batch:#}");
    }

    async fn what_a_canceled_chunk_has_written_is_told_of(server) {
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let namespace = server.namespace("dropped").await;
        let bucket = json!({"bucket_name": "rows", "bucket_schema": {"properties": {"number": {"type": "integer"}}}});
        let bucket = text(&server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"]);
        let collection = json!({
            "collection_name": "numbers", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let collection = text(&server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok()["collection_id"]);
        let objects = format!("/v1/buckets/{bucket}/objects");
        let object = text(&server.call_in(&namespace, "POST", &objects, json!({"number": 1})).await.ok()["object_id"]);
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({"auto_submit": true})).await.ok();
        let batch_id = text(&batch["batch_id"]);
        let path = format!("{batches}/{batch_id}");
        becomes(&server, "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE status = 'PROCESSING'", 1).await;
        let task = text(&server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["task_id"]);

        // A worker is at its write when the batch is canceled.
        let writing = format!("write:{task}:elsewhere");
        assert!(jobs::hold_lease(&server.app, &writing, "elsewhere", 600).await.unwrap());
        let begun = "INSERT INTO fillings (object_id, collection_id, namespace_id, batch_id) VALUES ($1, $2, $3, $4)";
        run(&server, begun, vec![object.clone(), collection.clone(), namespace.clone(), batch_id.clone()]).await;
        let document = row_of(&namespace, &collection, &object, &batch_id);
        let id = document.document_id.clone();
        let spec = CollectionSpec { namespace_id: namespace.clone(), collection_id: collection, vectors: Vec::new() };
        let ends = async {
            becomes(&server, CANCELED, 1).await;
            server.app.store().upsert(&spec, vec![document]).await.unwrap();
            jobs::drop_lease(&server.app, &writing, "elsewhere").await.unwrap();
        };
        let cancel = format!("{path}/cancel");
        let (canceled, ()) = tokio::join!(server.call_in(&namespace, "POST", &cancel, json!({})), ends);
        let canceled = canceled.ok();
        assert_eq!((&canceled["status"], &canceled["cancellation"]["ray_jobs_requested"]), (&json!("CANCELED"), &json!(1)), "{canceled:#}");

        let written = server.events("collection.documents.written").await;
        let told: BTreeSet<&str> =
            written.iter().flat_map(|event| event["payload"]["document_ids"].as_array().unwrap()).map(|id| id.as_str().unwrap()).collect();
        assert_eq!(told, BTreeSet::from([id.as_str()]));
        let completed = server.events("collection.documents.batch_completed").await;
        assert_eq!((completed.len(), &completed[0]["payload"]["total_documents"]), (1, &json!(1)), "{completed:#?}");
        let batch = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&batch["documents_written"], &batch["tier_tasks"][0]["documents_written"]), (&json!(1), &json!(1)), "{batch:#}");

        // The next run makes it anew, and tells of it by itself.
        let server = server.restart_with(|config| config.jobs.workers = 2).await;
        server.call_in(&namespace, "POST", &format!("{path}/resubmit"), Value::Null).await.ok();
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let list = server.call_in(&namespace, "POST", "/v1/collections/numbers/documents/list", json!({})).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 1, "what nobody knew of is gone: {list:#}");
        assert_eq!(number(&server, BEGUN).await, 0);
    }

    async fn files_go_with_the_last_document_that_shows_them(server) {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let over = json!({
            "collection_name": "over", "source": {"type": "collection", "collection_ids": [collection]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let over = text(&server.call_in(&namespace, "POST", "/v1/collections", over).await.ok()["collection_id"]);
        for title in ["first", "second"] {
            let blob = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square()), "metadata": {"filename": "red.png"}});
            object(&server, &namespace, &bucket, title, blob).await;
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let made = format!("{namespace}/documents/{collection}");
        let all = server.files(&made).len();
        assert!(all >= 2 && all.is_multiple_of(2), "a picture has a thumbnail");
        let query = ListQuery { limit: 10, ..Default::default() };
        let found = server.app.store().list(&reach(&namespace, &collection), query.clone()).await.unwrap().documents;
        assert_eq!(found.len(), 2);

        // One is deleted, and what was made of it with it.
        let path = format!("/v1/collections/{collection}/documents/{}", found[0].document_id);
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.files_become(&made, all / 2).await;

        // The other one goes alone, as what a run does not write again: what was made of it shows its files.
        let org_id = text(&found[1].payload["_internal"]["internal_id"]);
        let left = Left::of(&namespace, &found[1]).expect("it has files");
        let ids = Selection::Ids(vec![found[1].document_id.clone()]);
        server.app.store().delete(&reach(&namespace, &collection), ids).await.unwrap();
        removal::leave(&server.app, &org_id, &namespace, vec![left]).await.unwrap();
        becomes(&server, REMOVING, 0).await;
        assert_eq!(server.files(&made).len(), all / 2);
        let shows = server.app.store().list(&reach(&namespace, &over), query).await.unwrap().documents;
        let shows: Vec<String> = shows.into_iter().map(|one| one.document_id).collect();
        assert_eq!(shows.len(), 1);
        let path = format!("/v1/collections/{over}/documents/{}", shows[0]);
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.files_become(&made, 0).await;
        let left = server.app.store().get(&reach(&namespace, &over), &shows, WithVectors::No).await.unwrap();
        assert_eq!(left, Vec::new());
    }

    async fn what_a_batch_wrote_goes_with_its_files(server) {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let blob = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square()), "metadata": {"filename": "red.png"}});
        object(&server, &namespace, &bucket, "red", blob).await;
        let batch = process(&server, &namespace, &bucket).await;
        let made = format!("{namespace}/documents/{collection}");
        assert!(!server.files(&made).is_empty(), "{batch:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{}/documents", text(&batch["batch_id"]));
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.files_become(&made, 0).await;
        // Who processes it again has them again.
        process(&server, &namespace, &bucket).await;
        assert!(!server.files(&made).is_empty());
    }

    async fn the_file_of_an_upload_goes_with_its_object(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let uploads = format!("/v1/buckets/{bucket}/uploads");
        let mut confirmed = Vec::new();
        for (name, words) in [("a.txt", "some words"), ("b.txt", "other words")] {
            let upload = json!({"filename": name, "content_type": "text/plain"});
            let upload = server.call_in(&namespace, "POST", &uploads, upload).await.ok();
            let sent = Server::send(server.request("PUT", upload["presigned_url"].as_str().unwrap()).body(words)).await;
            assert_eq!(sent.status, 200);
            let path = format!("{uploads}/{}", text(&upload["upload_id"]));
            let done = server.call_in(&namespace, "POST", &format!("{path}/confirm"), Value::Null).await.ok();
            confirmed.push((path, text(&done["object_id"])));
        }
        let files = format!("{namespace}/uploads");
        let all = server.files(&files).len();
        assert!(all >= 2 && all.is_multiple_of(2), "{:#?}", server.files(&files));
        let (upload, object) = &confirmed[0];
        let gone = server.call_in(&namespace, "DELETE", &format!("/v1/buckets/{bucket}/objects/{object}"), Value::Null).await;
        assert_eq!(gone.status, 204);
        server.files_become(&files, all / 2).await;
        let found = server.call_in(&namespace, "GET", upload, Value::Null).await.ok();
        assert_eq!((&found["status"], &found["object_id"]), (&json!("FAILED"), &Value::Null), "{found:#}");
        // The other one is whole.
        let (upload, object) = &confirmed[1];
        let found = server.call_in(&namespace, "GET", upload, Value::Null).await.ok();
        assert_eq!((&found["status"], &found["object_id"]), (&json!("COMPLETED"), &json!(object)));
    }

    async fn documents_that_come_back_have_their_annotations_again(server) {
        let notes = Notes::new(&server).await;
        let id = notes.add(&server, "one two three four").await;
        process(&server, &notes.namespace, &notes.bucket).await;
        let tail = notes.documents(&server).await;
        let (_, tail) = tail.iter().find(|(text, _)| text == "three four").unwrap();
        let body = json!({"document_id": tail, "label": "kept"});
        server.call_in(&notes.namespace, "POST", "/v1/annotations", body).await.ok();
        let mirrored = async || {
            let path = "/v1/collections/loupe_document_annotations/documents/list";
            let list = server.call_in(&notes.namespace, "POST", path, json!({})).await.ok();
            list["results"].as_array().unwrap().len()
        };
        assert_eq!(mirrored().await, 1);
        for (note, count) in [("one two", 0), ("one two three four", 1)] {
            notes.change(&server, &id, note).await;
            process(&server, &notes.namespace, &notes.bucket).await;
            server.app.clock().advance(11);
            let start = Instant::now();
            loop {
                signal::settle(&server.app).await.unwrap();
                let found = mirrored().await;
                if found == count {
                    break;
                }
                assert!(start.elapsed().as_secs() < 180, "{note}: {found}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
