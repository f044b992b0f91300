//! Collections over collections: the documents of a tier are the objects of the next.

mod chain;
mod failing;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    batches::{ended, process},
    both,
    harness::Server,
};

/// A collection of texts cut into pieces of so many words.
async fn cut(server: &Server, namespace: &str, name: &str, source: Value, words: i64) -> String {
    let mappings = match source["type"] == "bucket" {
        true => json!({"text": "note"}),
        false => Value::Null,
    };
    let collection = json!({
        "collection_name": name,
        "source": source,
        "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": mappings,
            "parameters": {"split_by": "words", "chunk_size": words, "chunk_overlap": 0},
            "field_passthrough": [{"source_path": "topic"}],
        },
    });
    made(server, namespace, collection).await
}

async fn made(server: &Server, namespace: &str, collection: Value) -> String {
    let made = server
        .call_in(namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    made["collection_id"].as_str().unwrap().to_owned()
}

async fn bucket(server: &Server, namespace: &str) -> String {
    let schema = json!({"properties": {"note": {"type": "string"}, "topic": {"type": "string"}}});
    let bucket = json!({"bucket_name": "notes", "bucket_schema": schema});
    let bucket = server
        .call_in(namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    bucket["bucket_id"].as_str().unwrap().to_owned()
}

async fn note(server: &Server, namespace: &str, bucket: &str, body: Value) -> String {
    let path = format!("/v1/buckets/{bucket}/objects");
    let made = server.call_in(namespace, "POST", &path, body).await.ok();
    made["object_id"].as_str().unwrap().to_owned()
}

async fn documents(server: &Server, namespace: &str, collection: &str) -> Vec<Value> {
    let path = format!("/v1/collections/{collection}/documents/list");
    let list = json!({"limit": 1000});
    let list = server.call_in(namespace, "POST", &path, list).await.ok();
    list["results"].as_array().unwrap().clone()
}

/// The texts of a collection's documents, sorted.
async fn texts(server: &Server, namespace: &str, collection: &str) -> Vec<String> {
    let documents = documents(server, namespace, collection).await;
    let text = |document: &Value| document["text"].as_str().unwrap_or_default().to_owned();
    let mut texts: Vec<String> = documents.iter().map(text).collect();
    texts.sort();
    texts
}

/// Waits for the batch that a trigger made.
async fn triggered(server: &Server, namespace: &str, collection: &str, body: Value) -> Value {
    let path = format!("/v1/collections/{collection}/trigger");
    let answer = server.call_in(namespace, "POST", &path, body).await;
    assert_eq!(answer.status, 202, "{:#}", answer.body);
    let batch = format!("/v1/batches/{}", answer.body["batch_id"].as_str().unwrap());
    let mut ended = ended(server, namespace, &batch).await;
    ended["answer"] = answer.body;
    ended
}

fn over(collections: &[&str]) -> Value {
    json!({"type": "collection", "collection_ids": collections})
}

both! {
    async fn every_tier_is_replaced_with_its_object(server) {
        let namespace = server.namespace("again").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let pairs = cut(&server, &namespace, "pairs", over(&[&pages]), 2).await;
        let first = note(&server, &namespace, &bucket, json!({"note": "one two three four five six"})).await;
        let second = note(&server, &namespace, &bucket, json!({"note": "seven eight"})).await;
        process(&server, &namespace, &bucket).await;
        let before = documents(&server, &namespace, &pairs).await;

        // Nothing changed: nothing is made again.
        let again = process(&server, &namespace, &bucket).await;
        assert_eq!((&again["status"], &again["progress"]["objects_skipped"]), (&json!("COMPLETED"), &json!(2)), "{again:#}");
        assert_eq!(documents(&server, &namespace, &pairs).await, before);

        let path = format!("/v1/buckets/{bucket}/objects/{first}");
        server.call_in(&namespace, "PATCH", &path, json!({"note": "nine ten eleven"})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["progress"]["objects_skipped"]), (&json!("COMPLETED"), &json!(1)), "{batch:#}");
        assert_eq!(texts(&server, &namespace, &pages).await, ["nine ten eleven", "seven eight"]);
        assert_eq!(texts(&server, &namespace, &pairs).await, ["eleven", "nine ten", "seven eight"]);

        // By force everything is made again, under the same ids.
        let batches = format!("/v1/buckets/{bucket}/batches");
        let ids = async || {
            let documents = documents(&server, &namespace, &pairs).await;
            documents.iter().map(|one| one["document_id"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let before = ids().await;
        let force = json!({"dedup_strategy": "force", "auto_submit": true});
        let forced = server.call_in(&namespace, "POST", &batches, force).await.ok();
        let forced = ended(&server, &namespace, &format!("{batches}/{}", forced["batch_id"].as_str().unwrap())).await;
        assert_eq!((&forced["documents_written"], &forced["progress"]["objects_skipped"]), (&json!(5), &json!(0)), "{forced:#}");
        assert_eq!(ids().await, before);

        // An object takes what was made of it along, tier by tier.
        let path = format!("/v1/buckets/{bucket}/objects/{second}");
        assert_eq!(server.call_in(&namespace, "DELETE", &path, Value::Null).await.status, 204);
        let start = std::time::Instant::now();
        while texts(&server, &namespace, &pairs).await != ["eleven", "nine ten"] {
            assert!(start.elapsed().as_secs() < 180, "documents of a deleted object stay");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(texts(&server, &namespace, &pages).await, ["nine ten eleven"]);
    }

    async fn what_cannot_be_a_source_is_refused(server) {
        let namespace = server.namespace("refusals").await;
        let bucket = bucket(&server, &namespace).await;
        let elsewhere = server.namespace("elsewhere").await;
        let direct = json!({"type": "direct_upsert"});
        let foreign = cut(&server, &elsewhere, "foreign", direct.clone(), 4).await;
        let below = cut(&server, &namespace, "below", direct, 4).await;
        let ask = async |source: Value| {
            let collection = json!({
                "collection_name": "above", "source": source,
                "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1"},
            });
            server.call_in(&namespace, "POST", "/v1/collections", collection).await
        };
        // One of another namespace is as one that is nowhere.
        ask(over(&["col_unknown"])).await.error(404, "NotFoundError");
        ask(over(&[&foreign])).await.error(404, "NotFoundError");
        ask(over(&["above"])).await.error(404, "NotFoundError");
        ask(json!({"type": "collection"})).await.invalid(&["body", "source", "collection_ids"], "value_error");
        let there = json!({"type": "collection", "collection_ids": [foreign], "source_namespace_id": elsewhere});
        ask(there).await.invalid(&["body", "source", "source_namespace_id"], "value_error");
        let map = json!({"type": "collection", "collection_ids": [below], "field_map": {foreign: []}});
        ask(map).await.invalid(&["body", "source", "field_map"], "value_error");
        let filter = json!({"AND": [{"field": "topic", "operator": "like", "value": "x"}]});
        let filtered = json!({"type": "collection", "collection_ids": [below], "source_filters": {"filters": filter}});
        assert_eq!(ask(filtered).await.status, 422);
        let wrong = json!({
            "collection_name": "wrong", "source": over(&[&cut(&server, &namespace, "pages", json!({"type": "bucket", "bucket_ids": [bucket]}), 4).await]),
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "no_such_field"}},
        });
        assert_eq!(server.call_in(&namespace, "POST", "/v1/collections", wrong).await.status, 422);
        // Ten tiers are the most.
        let mut last = below;
        for number in 1..11 {
            let name = format!("tier-{number}");
            let collection = json!({
                "collection_name": name, "source": over(&[&last]),
                "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1"},
            });
            let answer = server.call_in(&namespace, "POST", "/v1/collections", collection).await;
            if number == 10 {
                answer.invalid(&["body", "source", "collection_ids"], "value_error");
            } else {
                last = answer.ok()["collection_id"].as_str().unwrap().to_owned();
            }
        }
    }

    async fn a_collection_whose_source_is_deleted_gets_no_more(server) {
        let namespace = server.namespace("lost").await;
        let direct = json!({"type": "direct_upsert"});
        let below = cut(&server, &namespace, "below", direct.clone(), 4).await;
        let beside = cut(&server, &namespace, "beside", direct, 4).await;
        let one = cut(&server, &namespace, "one", over(&[&below]), 2).await;
        let two = cut(&server, &namespace, "two", over(&[&below, &beside]), 2).await;
        let path = format!("/v1/collections/{below}/documents");
        server.call_in(&namespace, "POST", &path, json!({"text": "one two three"})).await.ok();
        triggered(&server, &namespace, &one, json!({})).await;
        server.call_in(&namespace, "DELETE", &format!("/v1/collections/{below}"), Value::Null).await.ok();
        for collection in [&one, &two] {
            let found = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
            let reason = &found["disabled_reason"];
            assert_eq!((&found["enabled"], &reason["code"]), (&json!(false), &json!("source_collection_deleted")), "{found:#}");
            assert_eq!((&reason["source_collection_id"], &reason["source_collection_name"]), (&json!(below), &json!("below")));
        }
        assert_eq!(texts(&server, &namespace, &one).await, ["one two", "three"]);
        let trigger = format!("/v1/collections/{one}/trigger");
        server.call_in(&namespace, "POST", &trigger, json!({})).await.error(400, "BadRequestError");
        // Only what has a source left can be filled again.
        let enable = json!({"enabled": true});
        server.call_in(&namespace, "PATCH", &format!("/v1/collections/{one}"), enable.clone()).await.error(409, "ConflictError");
        let found = server.call_in(&namespace, "PATCH", &format!("/v1/collections/{two}"), enable).await.ok();
        assert_eq!((&found["enabled"], &found["disabled_reason"]), (&json!(true), &Value::Null));
    }

    async fn a_collection_keeps_what_was_made_of_a_source_that_is_put_away(server) {
        let namespace = server.namespace("away").await;
        let bucket = bucket(&server, &namespace).await;
        let letters = cut(&server, &namespace, "letters", json!({"type": "direct_upsert"}), 4).await;
        let pages = cut(&server, &namespace, "pages", json!({"type": "bucket", "bucket_ids": [bucket]}), 4).await;
        let pairs = cut(&server, &namespace, "pairs", over(&[&letters, &pages]), 2).await;
        let path = format!("/v1/collections/{letters}/documents");
        server.call_in(&namespace, "POST", &path, json!({"text": "dear sir goodbye"})).await.ok();
        note(&server, &namespace, &bucket, json!({"note": "one two three"})).await;
        process(&server, &namespace, &bucket).await;
        triggered(&server, &namespace, &pairs, json!({})).await;
        let all = ["dear sir", "goodbye", "one two", "three"];
        assert_eq!(texts(&server, &namespace, &pairs).await, all);

        let change = async |collection: &str, state: &str| {
            let path = format!("/v1/collections/{collection}/lifecycle");
            let body = json!({"lifecycle_state": state, "async_transition": false});
            server.call_in(&namespace, "PATCH", &path, body).await.ok();
        };
        change(&pages, "archived").await;
        let refused = server.call_in(&namespace, "POST", &format!("/v1/collections/{pairs}/trigger"), json!({})).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "collection_archived");
        change(&pages, "active").await;
        change(&letters, "archived").await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["dag_tiers"]), (&json!("COMPLETED"), &json!([[pages]])), "{batch:#}");
        assert_eq!(texts(&server, &namespace, &pairs).await, all);
        // Named before its source was put away, it is passed over.
        let batches = format!("/v1/buckets/{bucket}/batches");
        let named = json!({"collection_ids": [pairs], "auto_submit": true});
        server.call_in(&namespace, "POST", &batches, named).await.error(400, "BadRequestError");
        change(&letters, "active").await;
        note(&server, &namespace, &bucket, json!({"note": "four"})).await;
        process(&server, &namespace, &bucket).await;
        assert_eq!(texts(&server, &namespace, &pairs).await, ["dear sir", "four", "goodbye", "one two", "three"]);
    }

    async fn a_collection_over_collections_is_triggered(server) {
        let namespace = server.namespace("triggered").await;
        let direct = json!({"type": "direct_upsert"});
        let letters = cut(&server, &namespace, "letters", direct.clone(), 4).await;
        let mails = cut(&server, &namespace, "mails", direct, 4).await;
        let source = json!({
            "type": "collection", "collection_ids": [letters, mails],
            "field_map": {"mails": [{"source_path": "content.words", "target_path": "text"}]},
            "source_filters": {"filters": {"NOT": [{"field": "topic", "operator": "eq", "value": "secret"}]}},
        });
        let pairs = cut(&server, &namespace, "pairs", source, 2).await;
        let last = cut(&server, &namespace, "last", over(&[&pairs]), 1).await;
        let write = async |collection: &str, body: Value| {
            let path = format!("/v1/collections/{collection}/documents");
            let made = server.call_in(&namespace, "POST", &path, body).await.ok();
            made["document_id"].as_str().unwrap().to_owned()
        };
        let trigger = format!("/v1/collections/{pairs}/trigger");
        server.call_in(&namespace, "POST", &trigger, json!({})).await.error(400, "BadRequestError");
        let letter = write(&letters, json!({"text": "dear sir goodbye", "topic": "letter"})).await;
        let mail = write(&mails, json!({"content": {"words": "hello there friend"}})).await;
        write(&letters, json!({"text": "not for you", "topic": "secret"})).await;
        let batch = triggered(&server, &namespace, &pairs, json!({})).await;
        assert_eq!((&batch["status"], &batch["type"], &batch["total_tiers"]), (&json!("COMPLETED"), &json!("COLLECTION"), &json!(2)), "{batch:#}");
        let answer = &batch["answer"];
        assert_eq!((&answer["document_count"], &answer["total_tiers"], &answer["source_collection_ids"]), (&json!(2), &json!(2), &json!([letters, mails])));
        assert_eq!(texts(&server, &namespace, &pairs).await, ["dear sir", "friend", "goodbye", "hello there"]);
        assert_eq!(texts(&server, &namespace, &last).await, ["dear", "friend", "goodbye", "hello", "sir", "there"]);
        let pair = documents(&server, &namespace, &last).await;
        let pair = pair.iter().find(|one| one["text"] == "sir").unwrap();
        let lineage = &pair["_internal"]["lineage"];
        assert_eq!((&lineage["root_document_id"], &lineage["root_object_id"], &lineage["tier"]), (&json!(letter), &Value::Null, &json!(2)));

        // What was changed is made again, the rest is passed over.
        let path = format!("/v1/collections/{letters}/documents/{letter}");
        server.call_in(&namespace, "PATCH", &path, json!({"text": "dear madam"})).await.ok();
        let batch = triggered(&server, &namespace, &pairs, json!({})).await;
        assert_eq!((&batch["progress"]["objects_skipped"], &batch["documents_written"]), (&json!(1), &json!(3)), "{batch:#}");
        assert_eq!(texts(&server, &namespace, &pairs).await, ["dear madam", "friend", "hello there"]);
        assert_eq!(texts(&server, &namespace, &last).await, ["dear", "friend", "hello", "madam", "there"]);
        // Only what is named.
        let named = json!({"include_collections": ["mails"], "dedup_strategy": "force"});
        let batch = triggered(&server, &namespace, &pairs, named).await;
        assert_eq!((&batch["object_ids"], &batch["documents_written"]), (&json!([mail]), &json!(5)), "{batch:#}");
        let named = json!({"object_ids": [letter], "dedup_strategy": "force"});
        assert_eq!(triggered(&server, &namespace, &pairs, named).await["object_ids"], json!([letter]));

        // A document takes what was made of it along.
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        assert_eq!(texts(&server, &namespace, &pairs).await, ["friend", "hello there"]);
        assert_eq!(texts(&server, &namespace, &last).await, ["friend", "hello", "there"]);
    }

    async fn what_is_made_of_somebodys_document_is_theirs(server) {
        let namespace = server.namespace("theirs").await;
        let direct = json!({"type": "direct_upsert"});
        let letters = cut(&server, &namespace, "letters", direct, 4).await;
        let pairs = cut(&server, &namespace, "pairs", over(&[&letters]), 2).await;
        let path = format!("/v1/collections/{letters}/documents");
        let letter = server.call_in(&namespace, "POST", &path, json!({"text": "for your eyes"})).await.ok();
        let one = format!("{path}/{}", letter["document_id"].as_str().unwrap());
        let acl = json!({"read": ["ada"], "public": false});
        server.call_in(&namespace, "PATCH", &format!("{one}/acl"), acl).await.ok();
        triggered(&server, &namespace, &pairs, json!({})).await;
        let made = documents(&server, &namespace, &pairs).await;
        assert_eq!(made.len(), 2);
        for document in made {
            let acl = &document["_internal"]["_acl"];
            assert_eq!((&acl["read"], &acl["public"]), (&json!(["ada"]), &json!(false)), "{document:#}");
        }
    }
}
