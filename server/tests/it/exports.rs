//! Collections as files: every document once, in the format that is asked for.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    batches::{library, object, process, red_square},
    both,
    fake_s3::{Bucket, KEY},
    harness::{Server, other_organization},
};

const THINGS: &str = "/v1/collections/things/export";

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
    let bytes = download(server, &answer["download_url"]).await;
    assert_eq!(answer["file_size_bytes"], bytes.len());
    (answer, bytes)
}

async fn download(server: &Server, url: &Value) -> Vec<u8> {
    let url = url.as_str().unwrap();
    let url = url.replace(&server.app.config().address(), "");
    let file = server.request("GET", &url).send().await.unwrap();
    assert_eq!(file.status(), 200);
    file.bytes().await.unwrap().to_vec()
}

/// A connection to a storage, changed by `more`; its id.
async fn connect(server: &Server, storage: &Bucket, name: &str, more: Value) -> String {
    let mut connection = json!({
        "name": name, "provider_type": "s3", "write_enabled": true, "test_before_save": false,
        "provider_config": {"endpoint_url": storage.address, "credentials": {"access_key_id": KEY, "secret_access_key": "s"}},
    });
    for (member, value) in more.as_object().unwrap() {
        connection[member] = value.clone();
    }
    let path = "/v1/organizations/connections";
    let made = server.call("POST", path, connection).await.ok();
    made["connection_id"].as_str().unwrap().to_owned()
}

/// The files of a tar file by their names.
fn members(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    assert_eq!(tar.len() % 512, 0);
    let mut found = BTreeMap::new();
    let mut rest = tar;
    while rest[0] != 0 {
        let name: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != 0).collect();
        let size = std::str::from_utf8(&rest[124..135]).unwrap();
        let size = usize::from_str_radix(size, 8).unwrap();
        let bytes = rest[512..512 + size].to_vec();
        found.insert(String::from_utf8(name).unwrap(), bytes);
        rest = &rest[512 + size.next_multiple_of(512)..];
    }
    assert_eq!(rest, [0; 1024]);
    found
}

/// An export into a storage.
fn aimed(connection: &str, prefix: &str) -> Value {
    json!({"format": "json", "destination": {"connection_id": connection, "prefix": prefix}})
}

/// Who may only read writes nowhere, nor does a key that is for something else.
async fn only_keys_that_may_write_there(server: &Server, namespace: &str, own: &str) {
    let keys = "/v1/organizations/users/owner@localhost/api-keys";
    let scopes = json!([{"resource_type": "namespace", "resource_id": namespace}]);
    for (key, code) in [
        (
            json!({"name": "reader", "permissions": ["read"]}),
            "permission_denied",
        ),
        (
            json!({"name": "visitor", "principal_id": "anna", "permissions": ["write"]}),
            "permission_denied",
        ),
        (
            json!({"name": "inside", "permissions": ["write"], "scopes": [{"resource_type": "collection", "resource_id": "*"}]}),
            "scope_denied",
        ),
        (
            json!({"name": "whole", "permissions": ["write"], "scopes": scopes}),
            "",
        ),
    ] {
        let made = server.call("POST", keys, key).await.ok();
        let request = server
            .request("POST", THINGS)
            .bearer_auth(made["key"].as_str().unwrap())
            .header("x-namespace", namespace);
        let answer = Server::send(request.json(&aimed(own, "s3://files/by-key"))).await;
        if code.is_empty() {
            answer.ok();
        } else {
            assert_eq!(answer.error(403, "ForbiddenError")["error"]["code"], code);
        }
    }
}

/// Each document is there once, with its picture.
fn holds_documents_with(all: &BTreeMap<String, Vec<u8>>, pictures: &BTreeMap<&str, Vec<u8>>) {
    let mut titles = Vec::new();
    for (name, json) in all.iter().filter(|(name, _)| name.ends_with(".json")) {
        let row: Value = serde_json::from_slice(json).unwrap();
        let id = name.strip_suffix(".json").unwrap();
        assert_eq!(row["document_id"], id);
        let title = row["title"].as_str().unwrap();
        assert!(
            all.get(&format!("{id}.image.png")) == pictures.get(title),
            "{title}"
        );
        titles.push(title.to_owned());
    }
    titles.sort();
    assert_eq!(
        (titles, all.len()),
        (
            ["Four", "One", "Three", "Two"].map(String::from).to_vec(),
            7
        )
    );
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
        // A table has no place for files.
        ask(json!({"include_media": true})).await.invalid(&["body", "include_media"], "value_error");
        assert_eq!(ask(json!({"sample_size": 0})).await.status, 422);
        assert_eq!(ask(json!({"format": "xml"})).await.status, 422);
        let missing = "/v1/collections/nothing/export";
        server.call_in(&namespace, "POST", missing, json!({})).await.error(404, "NotFoundError");
        // Nothing is a file too.
        let (answer, file) = export(&server, &namespace, json!({"format": "json"})).await;
        assert_eq!((&answer["document_count"], file.as_slice()), (&json!(0), b"[]\n".as_slice()));
    }

    async fn an_export_goes_into_a_storage_of_ones_own(server) {
        let namespace = things(&server, 5).await;
        let storage = Bucket::start_at("127.0.0.2").await;
        let connection = connect(&server, &storage, "own", json!({})).await;
        let to = |connection: &str, prefix: &str| json!({"format": "json", "destination": {"connection_id": connection, "prefix": prefix}});
        let (answer, file) = export(&server, &namespace, to("own", "s3://files/out/")).await;
        let told = &answer["destination"];
        let folder = told["prefix"].as_str().unwrap().strip_prefix("s3://files/").unwrap();
        assert!(folder.starts_with("out/exp_"), "{answer:#}");
        let (key, manifest) = (format!("{folder}/things.json"), format!("{folder}/manifest.json"));
        assert_eq!(*told, json!({
            "connection_id": connection, "prefix": format!("s3://files/{folder}"), "files": [key], "manifest_key": manifest, "bytes_written": file.len(),
        }));
        let files = storage.files();
        assert_eq!((files.len(), &files[&key][..]), (2, &file[..]));
        let manifest: Value = serde_json::from_slice(&files[&manifest]).unwrap();
        assert_eq!(manifest["files"], json!([{
            "key": key, "size_bytes": file.len(), "sha256": hex::encode(Sha256::digest(&file)), "document_count": 5,
        }]));
        assert_eq!((&manifest["format"], &manifest["document_count"]), (&json!("json"), &json!(5)));

        // Each export has a folder of its own, also where the connection names the bucket.
        let config = json!({"endpoint_url": storage.address, "bucket": "files", "credentials": {"access_key_id": KEY, "secret_access_key": "s"}});
        let named = connect(&server, &storage, "named", json!({"provider_config": config})).await;
        for (connection, prefix, begins) in [("own", "s3://files/out", "out/exp_"), (named.as_str(), "deep/er", "deep/er/exp_"), (named.as_str(), "", "exp_"), (named.as_str(), "s3://files", "exp_")] {
            let (answer, _) = export(&server, &namespace, to(connection, prefix)).await;
            let key = answer["destination"]["files"][0].as_str().unwrap();
            assert!(key.starts_with(begins) && storage.files().contains_key(key), "{answer:#}");
        }
        assert_eq!(storage.files().len(), 10);

        // A storage that fails for a while is tried again, by the same try of the export and by the next one.
        storage.fail(4);
        let (answer, file) = export(&server, &namespace, to("own", "s3://files/late")).await;
        let key = answer["destination"]["files"][0].as_str().unwrap();
        assert_eq!(&storage.files()[key][..], &file[..]);
        assert_eq!(storage.files().keys().filter(|key| key.starts_with("late/")).count(), 2);

        // The documents of a collection that is called as the manifest is are not written over.
        let collection = json!({"collection_name": "manifest", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        let path = "/v1/collections/manifest/export";
        let answer = server.call_in(&namespace, "POST", path, to("own", "s3://files/same")).await.ok();
        let told = &answer["destination"];
        let files = storage.files();
        assert_eq!(&files[told["files"][0].as_str().unwrap()][..], b"[]\n");
        assert!(told["manifest_key"] != told["files"][0] && files.contains_key(told["manifest_key"].as_str().unwrap()), "{answer:#}");
    }

    async fn an_export_goes_only_where_it_may(server) {
        let namespace = things(&server, 1).await;
        let storage = Bucket::start_at("127.0.0.2").await;
        let ask = async |connection: &str, prefix: &str| server.call_in(&namespace, "POST", THINGS, aimed(connection, prefix)).await;
        let own = connect(&server, &storage, "own", json!({})).await;
        for prefix in ["", "out", "s3://", "s3://..", "s3://files/a//b", "s3://files/../b"] {
            ask(&own, prefix).await.invalid(&["body", "destination", "prefix"], "value_error");
        }
        let config = json!({"endpoint_url": storage.address, "bucket": "others", "credentials": {"access_key_id": KEY, "secret_access_key": "s"}});
        let others = connect(&server, &storage, "others", json!({"provider_config": config})).await;
        ask(&others, "s3://files").await.invalid(&["body", "destination", "prefix"], "value_error");
        let reads = connect(&server, &storage, "reads", json!({"write_enabled": false})).await;
        let refused = ask(&reads, "s3://files").await.error(400, "BadRequestError");
        assert_eq!(refused["error"]["code"], "write_not_enabled");

        // Unknown, and another organization's.
        let missing = ask("conn_missing", "s3://files").await.error(404, "NotFoundError");
        let other = other_organization(&server).await;
        let theirs = json!({
            "name": "theirs", "provider_type": "s3", "write_enabled": true, "test_before_save": false,
            "provider_config": {"endpoint_url": storage.address, "credentials": {"access_key_id": KEY, "secret_access_key": "s"}},
        });
        let request = server.request("POST", "/v1/organizations/connections").bearer_auth(&other.key).json(&theirs);
        let theirs = Server::send(request).await.ok();
        let found = ask(theirs["connection_id"].as_str().unwrap(), "s3://files").await.error(404, "NotFoundError");
        assert_eq!(found["error"]["message"], missing["error"]["message"]);

        only_keys_that_may_write_there(&server, &namespace, &own).await;
        assert_eq!(storage.files().len(), 2);

        // What the storage itself does not take ends the export at once, and says so.
        let config = json!({"endpoint_url": storage.address, "credentials": {"access_key_id": "AKIAWRONG", "secret_access_key": "s"}});
        let wrong = connect(&server, &storage, "wrong", json!({"provider_config": config})).await;
        for (connection, prefix, message) in [
            (&own, "s3://nothing", "the storage has no such bucket"),
            (&wrong, "s3://files", "the storage does not let these credentials write there"),
        ] {
            let failed = ask(connection, prefix).await.error(500, "ProcessingError");
            assert_eq!((&failed["error"]["code"], &failed["error"]["message"]), (&json!("export_failed"), &json!(message)));
        }
        assert_eq!(storage.files().len(), 2);
        let inactive = json!({"is_active": false});
        server.call("PATCH", "/v1/organizations/connections/own", inactive).await.ok();
        ask(&own, "s3://files").await.error(400, "BadRequestError");
    }

    async fn a_web_dataset_holds_documents_and_their_files(server) {
        let (namespace, bucket, _) = library(&server, "passthrough_extractor", "image").await;
        // More than goes to a storage at once.
        let mut large = red_square();
        large.resize(6 << 20, 7);
        let pictures = BTreeMap::from([("One", red_square()), ("Three", red_square()), ("Two", large)]);
        for (title, file) in &pictures {
            let blob = json!({"property": "image", "type": "image", "data": STANDARD.encode(file), "metadata": {"filename": "a picture.png"}});
            object(&server, &namespace, &bucket, title, blob).await;
        }
        let objects = format!("/v1/buckets/{bucket}/objects");
        server.call_in(&namespace, "POST", &objects, json!({"title": "Four"})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");

        let storage = Bucket::start_at("127.0.0.2").await;
        let connection = connect(&server, &storage, "own", json!({})).await;
        let path = "/v1/collections/documents/export";
        let body = json!({
            "format": "webdataset", "include_media": true, "samples_per_shard": 2, "select_fields": ["title"],
            "destination": {"connection_id": connection, "prefix": "s3://files/sets"},
        });
        let answer = server.call_in(&namespace, "POST", path, body.clone()).await.ok();
        assert_eq!((&answer["document_count"], &answer["shard_count"]), (&json!(4), &json!(2)));
        assert_eq!(answer["shard_pattern"], "documents-{000000..000001}.tar");
        let bytes: usize = pictures.values().map(Vec::len).sum();
        assert_eq!(answer["media"], json!({
            "samples_with_media": 3, "samples_without_media": 1, "members_written": 3, "members_skipped_too_large": 0,
            "objects_not_found": 0, "download_failures": 0, "media_bytes": bytes,
        }));
        let mut all = BTreeMap::new();
        let copies = storage.files();
        for (number, shard) in answer["shards"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&shard["filename"], &shard["sample_count"]), (&json!(format!("documents-{number:06}.tar")), &json!(2)));
            let tar = download(&server, &shard["download_url"]).await;
            assert_eq!(shard["file_size_bytes"], tar.len());
            let key = answer["destination"]["files"][number].as_str().unwrap();
            assert!(copies[key] == tar, "{key}");
            all.extend(members(&tar));
        }
        // The shard with the large file came in parts, and is whole.
        assert_eq!((storage.in_parts(), copies.len()), ((1, 0), 3));
        assert_eq!(answer["download_url"], answer["shards"][0]["download_url"]);
        holds_documents_with(&all, &pictures);

        // A file that is gone, and one that is larger than files may be, are left out and counted.
        let blobs = server.folder.path().join("data/blobs");
        let mut files = server.files(&format!("{namespace}/objects/")).into_iter().map(|key| blobs.join(key));
        let small = files.find(|file| file.metadata().unwrap().len() < 1 << 20).unwrap();
        std::fs::remove_file(small).unwrap();
        let server = server.restart_with(|config| config.limits.upload_bytes = 1 << 20).await;
        let mut here = body;
        here.as_object_mut().unwrap().remove("destination");
        let answer = server.call_in(&namespace, "POST", path, here).await.ok();
        assert_eq!(answer["media"], json!({
            "samples_with_media": 1, "samples_without_media": 3, "members_written": 1, "members_skipped_too_large": 1,
            "objects_not_found": 1, "download_failures": 0, "media_bytes": red_square().len(),
        }));
    }

    async fn a_web_dataset_of_nothing_is_one_shard(server) {
        let namespace = things(&server, 0).await;
        let (answer, file) = export(&server, &namespace, json!({"format": "webdataset"})).await;
        assert_eq!((&answer["document_count"], &answer["shard_count"], answer.get("media")), (&json!(0), &json!(1), None));
        assert!(members(&file).is_empty());
    }
}
