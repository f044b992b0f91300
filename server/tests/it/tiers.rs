//! Collections over collections: the documents of a tier are the objects of the next.

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
    async fn what_a_tier_writes_the_next_one_reads(server) {
        let namespace = server.namespace("tiers").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let pairs = cut(&server, &namespace, "pairs", over(&["pages"]), 2).await;
        let copies = json!({
            "collection_name": "copies", "source": over(&[&pairs]),
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let copies = made(&server, &namespace, copies).await;
        let found = server.call_in(&namespace, "GET", "/v1/collections/pairs", Value::Null).await.ok();
        assert_eq!((&found["source"]["collection_ids"], &found["source"]["inherited_bucket_ids"]), (&json!([pages]), &json!([bucket])));
        let (long, short) = (json!({"note": "one two three four five six", "topic": "numbers"}), json!({"note": "seven eight"}));
        let long = note(&server, &namespace, &bucket, long).await;
        note(&server, &namespace, &bucket, short).await;

        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["total_tiers"]), (&json!("COMPLETED"), &json!(3)), "{batch:#}");
        assert_eq!(batch["dag_tiers"], json!([[pages], [pairs], [copies]]));
        assert_eq!((&batch["current_tier"], &batch["documents_written"]), (&json!(2), &json!(11)));
        let tiers = batch["tier_tasks"].as_array().unwrap();
        let written: Vec<_> = tiers.iter().map(|tier| tier["documents_written"].as_i64().unwrap()).collect();
        assert_eq!(written, [3, 4, 4]);
        for (number, tier) in tiers.iter().enumerate() {
            assert_eq!((&tier["tier_num"], &tier["status"]), (&json!(number), &json!("COMPLETED")), "{tier:#}");
            assert!(tier["started_at"].is_string() && tier["completed_at"].is_string(), "{tier:#}");
            assert!(number == 0 || tiers[number - 1]["completed_at"].as_str() <= tier["started_at"].as_str());
        }
        assert_eq!((&tiers[0]["source_type"], &tiers[2]["source_collection_ids"]), (&json!("bucket"), &json!([pairs])));
        assert_eq!((&tiers[1]["source_documents_fetched"], &tiers[1]["documents_submitted_to_engine"]), (&json!(3), &json!(3)));
        let task = server.call("GET", &format!("/v1/tasks/{}", batch["task_id"].as_str().unwrap()), Value::Null).await.ok();
        let data = &task["additional_data"];
        assert_eq!((&task["status"], &data["total_tiers"], &data["current_tier"]), (&json!("COMPLETED"), &json!(3), &json!(2)));
        assert_eq!(data["collection_ids"], json!([pages, pairs, copies]));

        // Nothing that was written is untold, in any tier.
        let told = server.events("collection.documents.written").await;
        for event in server.events("collection.documents.batch_completed").await {
            let of = |one: &&Value| one["payload"]["collection_id"] == event["payload"]["collection_id"];
            let ids: BTreeSet<&str> = told.iter().filter(of).flat_map(|one| one["payload"]["document_ids"].as_array().unwrap()).map(|id| id.as_str().unwrap()).collect();
            assert_eq!(event["payload"]["total_documents"], ids.len(), "{event:#}");
        }
        assert_eq!(texts(&server, &namespace, &pages).await, ["five six", "one two three four", "seven eight"]);
        let expected = ["five six", "one two", "seven eight", "three four"];
        assert_eq!(texts(&server, &namespace, &pairs).await, expected);
        assert_eq!(texts(&server, &namespace, &copies).await, expected);

        // Where a document comes from.
        let copies_made = documents(&server, &namespace, &copies).await;
        let copy = copies_made.iter().find(|one| one["text"] == "three four").unwrap();
        assert_eq!(copy["topic"], "numbers");
        let lineage = &copy["_internal"]["lineage"];
        let members = ["source_type", "root_object_id", "root_bucket_id", "source_collection_id", "tier"];
        assert_eq!(json!(members.map(|member| lineage[member].clone())), json!(["collection", long, bucket, pairs, 2]));
        let path = format!("/v1/collections/{copies}/documents/{}", copy["document_id"].as_str().unwrap());
        let shown = server.call_in(&namespace, "GET", &format!("{path}?expand=parent,ancestors,root_object"), Value::Null).await.ok();
        let expanded = &shown["expanded"];
        assert_eq!((&expanded["parent"]["text"], &expanded["parent"]["collection_id"]), (&json!("three four"), &json!(pairs)));
        assert_eq!(expanded["ancestors"][0]["text"], "one two three four");
        let root = |expanded: &Value| (expanded["root_object"]["object_id"].clone(), expanded["root_object"]["bucket_id"].clone());
        assert_eq!(root(expanded), (json!(long), json!(bucket)), "{expanded:#}");
        // The object is shown to keys that may read its bucket.
        let narrow = json!({"name": "narrow", "permissions": ["read"], "scopes": [{"resource_type": "collection", "resource_id": "*"}]});
        let narrow = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", narrow).await.ok();
        let asked = server.request("GET", &format!("{path}?expand=root_object")).bearer_auth(narrow["key"].as_str().unwrap());
        let shown_less = Server::send(asked.header("X-Namespace", &namespace)).await.ok();
        assert_eq!(shown_less["expanded"]["root_object"], Value::Null, "{shown_less:#}");
        let parent = expanded["parent"]["document_id"].as_str().unwrap();
        let path_of_parent = format!("/v1/collections/{pairs}/documents/{parent}?expand=children");
        let shown = server.call_in(&namespace, "GET", &path_of_parent, Value::Null).await.ok();
        assert_eq!(shown["expanded"]["children"][0]["document_id"], copy["document_id"]);
        let lineage = server.call_in(&namespace, "GET", &format!("{path}/lineage"), Value::Null).await.ok();
        assert_eq!((&lineage["depth"], &lineage["lineage"]["source_document_id"]), (&json!(2), &json!(parent)));
        assert_eq!(lineage["lineage"]["lineage_chain"][0]["collection_id"], pages.as_str());
        let tree = server.call_in(&namespace, "GET", &format!("/v1/objects/{long}/decomposition-tree"), Value::Null).await.ok();
        let below = &tree["nodes"][0]["children"][0];
        assert_eq!((&tree["nodes"][0]["document_count"], &below["document_count"], &below["children"][0]["tier"]), (&json!(2), &json!(3), &json!(2)), "{tree:#}");
    }

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

    async fn a_failure_of_a_tier_is_retried_there(server) {
        let namespace = server.namespace("failures").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let strict = json!({
            "collection_name": "strict", "source": over(&[&pages]),
            "feature_extractor": {
                "feature_extractor_name": "text_extractor", "version": "v1",
                "field_passthrough": [{"source_path": "topic", "required": true}],
            },
        });
        let strict = made(&server, &namespace, strict).await;
        let last = cut(&server, &namespace, "last", over(&[&strict]), 1).await;
        note(&server, &namespace, &bucket, json!({"note": "one two", "topic": "numbers"})).await;
        let without = note(&server, &namespace, &bucket, json!({"note": "three four"})).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(1)), "{batch:#}");
        let tiers: Vec<&str> = batch["tier_tasks"].as_array().unwrap().iter().map(|tier| tier["status"].as_str().unwrap()).collect();
        assert_eq!(tiers, ["COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED"]);
        assert_eq!(texts(&server, &namespace, &last).await, ["one", "two"]);
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let failed = async |query: &str| {
            let path = format!("{path}/failed-documents?{query}");
            server.call_in(&namespace, "GET", &path, Value::Null).await.ok()
        };
        assert_eq!(failed("tier_num=0").await["total"], 0);
        assert_eq!(failed(&format!("collection_id={last}")).await["total"], 0);
        let failure = failed(&format!("tier_num=1&collection_id={strict}")).await["results"][0].clone();
        assert_eq!((&failure["object_id"], &failure["tier_num"], &failure["collection_id"]), (&json!(without), &json!(1), &json!(strict)), "{failure:#}");
        let document = failure["document_id"].as_str().unwrap();
        assert!(failure["error"].as_str().unwrap().contains("topic"), "{failure:#}");
        // What each collection should hold, and what it does.
        let reconcile = async |collection: &str, query: &str| {
            let path = format!("/v1/collections/{collection}/reconciliation{query}");
            server.call_in(&namespace, "GET", &path, Value::Null).await
        };
        let figures = |one: &Value| ["source_object_count", "produced_object_count", "delta"].map(|name| one[name].as_i64().unwrap());
        let state = reconcile("strict", "").await.ok();
        assert_eq!((figures(&state), &state["document_count"]), ([2, 1, 1], &json!(1)), "{state:#}");
        let missing = &state["discrepancies"][0];
        assert_eq!((&missing["object_id"], &missing["bucket_id"], &missing["reason"]), (&json!(without), &json!(bucket), &json!("failed")), "{state:#}");
        assert_eq!(figures(&reconcile("pages", "?limit=1").await.ok()), [2, 2, 0]);
        for limit in ["0", "1001", "many"] {
            assert_eq!(reconcile("pages", &format!("?limit={limit}")).await.status, 422, "{limit}");
        }
        assert_eq!(reconcile("none", "").await.status, 404);

        // The document is mended: only what failed is done again, from the tier where it did.
        let mend = format!("/v1/collections/{pages}/documents/{document}");
        server.call_in(&namespace, "PATCH", &mend, json!({"topic": "numbers too"})).await.ok();
        server.call_in(&namespace, "POST", &format!("{path}/retry"), json!({"retry_mode": "all"})).await.ok();
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");
        assert_eq!(texts(&server, &namespace, &last).await, ["four", "one", "three", "two"]);
        let state = reconcile("strict", "").await.ok();
        assert_eq!((figures(&state), &state["discrepancies"]), ([2, 2, 0], &json!([])), "{state:#}");
        let tiers: Vec<&str> = batch["tier_tasks"].as_array().unwrap().iter().map(|tier| tier["status"].as_str().unwrap()).collect();
        assert_eq!(tiers, ["SKIPPED", "COMPLETED", "COMPLETED"]);

        // From a tier on, whatever became of it.
        server.call_in(&namespace, "POST", &format!("{path}/resubmit?from_tier=3"), json!({})).await.invalid(&["query", "from_tier"], "range");
        server.call_in(&namespace, "POST", &format!("{path}/resubmit?from_tier=1"), json!({})).await.ok();
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["total_tiers"]), (&json!("COMPLETED"), &json!(3)), "{batch:#}");
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

    async fn a_batch_is_looked_into_and_undone(server) {
        let namespace = server.namespace("looking").await;
        let bucket = bucket(&server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(&server, &namespace, "pages", source, 4).await;
        let strict = json!({
            "collection_name": "strict", "source": over(&[&pages]),
            "feature_extractor": {
                "feature_extractor_name": "text_extractor", "version": "v1",
                "field_passthrough": [{"source_path": "topic", "required": true}],
            },
        });
        let strict = made(&server, &namespace, strict).await;
        note(&server, &namespace, &bucket, json!({"note": "one two", "topic": "numbers"})).await;
        note(&server, &namespace, &bucket, json!({"note": "three four"})).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let ask = async |method: &str, path: &str| server.call_in(&namespace, method, path, Value::Null).await;
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", draft["batch_id"].as_str().unwrap());
        let estimate = ask("POST", &format!("{path}/estimate-cost")).await.ok();
        assert_eq!((&estimate["object_count"], &estimate["already_extracted_count"]), (&json!(2), &json!(0)), "{estimate:#}");
        assert_eq!((&estimate["collection_ids"], &estimate["estimated_credits"]), (&json!([pages, strict]), &json!(1)));
        let empty = json!({"object_ids": []});
        let refused = server.call_in(&namespace, "POST", &batches, empty).await;
        assert_eq!(refused.status, 422, "{:#}", refused.body);
        let answer = ask("POST", &format!("{batches}/submit-all")).await.ok();
        assert_eq!((&answer["submitted"], &answer["failed"], &answer["batches"][0]["object_count"]), (&json!(1), &json!(0), &json!(2)), "{answer:#}");
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");

        let audit = ask("GET", &format!("{path}/audit")).await.ok();
        assert_eq!((&audit["all_balanced"], &audit["has_lost_objects"]), (&json!(true), &json!(false)), "{audit:#}");
        let figures = |tier: usize| ["submitted", "processed", "failed", "skipped"].map(|name| audit["tiers"][tier][name].clone());
        assert_eq!((figures(0), figures(1)), ([2, 2, 0, 0].map(Value::from), [2, 1, 1, 0].map(Value::from)));
        let diagnosis = ask("GET", &format!("{path}/diagnose")).await.ok();
        assert_eq!((&diagnosis["health"], &diagnosis["failures_by_type"]["permanent"]), (&json!("degraded"), &json!(1)), "{diagnosis:#}");
        assert_eq!(diagnosis["findings"][0]["code"], "failures");
        let logs = ask("GET", &format!("{path}/logs?tier_num=1")).await.ok();
        let logs = logs["logs"].as_array().unwrap();
        assert!(logs.iter().all(|entry| entry["tier_num"] == 1), "{logs:#?}");
        assert!(logs.iter().any(|entry| entry["level"] == "error" && entry["message"].as_str().unwrap().contains("topic")), "{logs:#?}");
        ask("POST", &format!("{path}/tiers/0/retry")).await.error(400, "BadRequestError");
        ask("POST", &format!("{path}/tiers/first/retry")).await.error(404, "NotFoundError");
        let again = ask("POST", &format!("{path}/tiers/1/retry")).await.ok();
        assert_eq!(again["retried_count"], 1);
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["failed_object_count"], 1, "{batch:#}");

        // What it wrote goes, and can be written again.
        let removed = ask("DELETE", &format!("{path}/documents")).await.ok();
        assert_eq!((texts(&server, &namespace, &pages).await.len(), texts(&server, &namespace, &strict).await.len()), (0, 0), "{removed:#}");
        process(&server, &namespace, &bucket).await;
        assert_eq!(texts(&server, &namespace, &pages).await, ["one two", "three four"]);
        assert_eq!(texts(&server, &namespace, &strict).await, ["one two"]);
        let estimate = ask("POST", &format!("{path}/estimate-cost")).await.ok();
        assert_eq!((&estimate["already_extracted_count"], &estimate["estimated_credits"]), (&json!(2), &json!(0)), "{estimate:#}");
    }
}
