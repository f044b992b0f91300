//! What is told of three tiers while and after they are filled: by the batch, its task, the feed, documents and their object.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{bucket, cut, documents, made, note, over, texts};
use crate::{batches::process, both, harness::Server};

/// Three tiers over a bucket, each made of the one before.
struct Chain {
    namespace: String,
    bucket: String,
    /// Texts cut in pieces of four words, those cut in pairs, and copies of the pairs.
    pages: String,
    pairs: String,
    copies: String,
    /// The object of six words, whose topic is numbers.
    long: String,
}

impl Chain {
    async fn new(server: &Server) -> Self {
        let namespace = server.namespace("tiers").await;
        let bucket = bucket(server, &namespace).await;
        let source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let pages = cut(server, &namespace, "pages", source, 4).await;
        let pairs = cut(server, &namespace, "pairs", over(&["pages"]), 2).await;
        let copies = json!({
            "collection_name": "copies", "source": over(&[&pairs]),
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let copies = made(server, &namespace, copies).await;
        let long = json!({"note": "one two three four five six", "topic": "numbers"});
        let long = note(server, &namespace, &bucket, long).await;
        let short = json!({"note": "seven eight"});
        note(server, &namespace, &bucket, short).await;
        Self {
            namespace,
            bucket,
            pages,
            pairs,
            copies,
            long,
        }
    }

    async fn get(&self, server: &Server, path: &str) -> Value {
        let found = server.call_in(&self.namespace, "GET", path, Value::Null);
        found.await.ok()
    }

    async fn texts(&self, server: &Server, collection: &str) -> Vec<String> {
        texts(server, &self.namespace, collection).await
    }

    /// What the batch and its task tell of the tiers.
    async fn is_told_by_batch_and_task(&self, server: &Server, batch: &Value) {
        let (pages, pairs, copies) = (&self.pages, &self.pairs, &self.copies);
        assert_eq!(
            (&batch["status"], &batch["total_tiers"]),
            (&json!("COMPLETED"), &json!(3)),
            "{batch:#}"
        );
        assert_eq!(batch["dag_tiers"], json!([[pages], [pairs], [copies]]));
        assert_eq!(
            (&batch["current_tier"], &batch["documents_written"]),
            (&json!(2), &json!(11))
        );
        let tiers = batch["tier_tasks"].as_array().unwrap();
        let written = tiers
            .iter()
            .map(|tier| tier["documents_written"].as_i64().unwrap());
        assert_eq!(written.collect::<Vec<_>>(), [3, 4, 4]);
        for (number, tier) in tiers.iter().enumerate() {
            assert_eq!(
                (&tier["tier_num"], &tier["status"]),
                (&json!(number), &json!("COMPLETED")),
                "{tier:#}"
            );
            assert!(
                tier["started_at"].is_string() && tier["completed_at"].is_string(),
                "{tier:#}"
            );
            assert!(
                number == 0
                    || tiers[number - 1]["completed_at"].as_str() <= tier["started_at"].as_str()
            );
        }
        assert_eq!(
            (&tiers[0]["source_type"], &tiers[2]["source_collection_ids"]),
            (&json!("bucket"), &json!([pairs]))
        );
        assert_eq!(
            (
                &tiers[1]["source_documents_fetched"],
                &tiers[1]["documents_submitted_to_engine"]
            ),
            (&json!(3), &json!(3))
        );
        let path = format!("/v1/tasks/{}", batch["task_id"].as_str().unwrap());
        let task = server.call("GET", &path, Value::Null).await.ok();
        let data = &task["additional_data"];
        assert_eq!(
            (&task["status"], &data["total_tiers"], &data["current_tier"]),
            (&json!("COMPLETED"), &json!(3), &json!(2))
        );
        assert_eq!(data["collection_ids"], json!([pages, pairs, copies]));
    }

    /// Nothing that was written is untold, in any tier.
    async fn is_told_by_the_feed(&self, server: &Server) {
        let told = server.events("collection.documents.written").await;
        for event in server.events("collection.documents.batch_completed").await {
            let of =
                |one: &&Value| one["payload"]["collection_id"] == event["payload"]["collection_id"];
            let ids = told
                .iter()
                .filter(of)
                .flat_map(|one| one["payload"]["document_ids"].as_array().unwrap());
            let ids: BTreeSet<&str> = ids.map(|id| id.as_str().unwrap()).collect();
            assert_eq!(event["payload"]["total_documents"], ids.len(), "{event:#}");
        }
    }

    /// Each tier has the pieces of the one before.
    async fn has_pieces_in_each_tier(&self, server: &Server) {
        assert_eq!(
            self.texts(server, &self.pages).await,
            ["five six", "one two three four", "seven eight"]
        );
        let expected = ["five six", "one two", "seven eight", "three four"];
        assert_eq!(self.texts(server, &self.pairs).await, expected);
        assert_eq!(self.texts(server, &self.copies).await, expected);
    }

    /// A document of the last tier, and its path.
    async fn copy(&self, server: &Server) -> (Value, String) {
        let all = documents(server, &self.namespace, &self.copies).await;
        let copy = all.into_iter().find(|one| one["text"] == "three four");
        let copy = copy.unwrap();
        let id = copy["document_id"].as_str().unwrap();
        let path = format!("/v1/collections/{}/documents/{id}", self.copies);
        (copy, path)
    }

    /// Where a document of the last tier comes from.
    async fn is_told_of_a_document(&self, server: &Server) {
        let (copy, path) = self.copy(server).await;
        assert_eq!(copy["topic"], "numbers");
        let told = &copy["_internal"]["lineage"];
        let members = [
            "source_type",
            "root_object_id",
            "root_bucket_id",
            "source_collection_id",
            "tier",
        ];
        assert_eq!(
            json!(members.map(|member| told[member].clone())),
            json!(["collection", self.long, self.bucket, self.pairs, 2])
        );
        let told = self.get(server, &format!("{path}/lineage")).await;
        assert_eq!(told["depth"], 2);
        let chain = &told["lineage"]["lineage_chain"];
        assert_eq!(chain[0]["collection_id"], self.pages.as_str());
        let shown = self.get(server, &format!("{path}?expand=parent")).await;
        let parent = shown["expanded"]["parent"]["document_id"].as_str();
        assert_eq!(told["lineage"]["source_document_id"], parent.unwrap());
    }

    /// A document is shown with what it was made of, and that one with it.
    async fn is_shown_with_a_document(&self, server: &Server) {
        let (copy, path) = self.copy(server).await;
        let expand = "expand=parent,ancestors,root_object";
        let shown = self.get(server, &format!("{path}?{expand}")).await;
        let expanded = &shown["expanded"];
        let (parent, root) = (&expanded["parent"], &expanded["root_object"]);
        assert_eq!(
            (&parent["text"], &parent["collection_id"]),
            (&json!("three four"), &json!(self.pairs))
        );
        assert_eq!(expanded["ancestors"][0]["text"], "one two three four");
        assert_eq!(
            (&root["object_id"], &root["bucket_id"]),
            (&json!(self.long), &json!(self.bucket)),
            "{expanded:#}"
        );
        let parent = parent["document_id"].as_str().unwrap();
        let path = format!("/v1/collections/{}/documents/{parent}", self.pairs);
        let shown = self.get(server, &format!("{path}?expand=children")).await;
        assert_eq!(
            shown["expanded"]["children"][0]["document_id"],
            copy["document_id"]
        );
    }

    /// The object is shown to keys that may read its bucket.
    async fn hides_the_object_from_other_keys(&self, server: &Server) {
        let (_, document) = self.copy(server).await;
        let narrow = json!({"name": "narrow", "permissions": ["read"], "scopes": [{"resource_type": "collection", "resource_id": "*"}]});
        let narrow = server
            .call(
                "POST",
                "/v1/organizations/users/owner@localhost/api-keys",
                narrow,
            )
            .await
            .ok();
        let asked = server
            .request("GET", &format!("{document}?expand=root_object"))
            .bearer_auth(narrow["key"].as_str().unwrap());
        let shown = Server::send(asked.header("X-Namespace", &self.namespace))
            .await
            .ok();
        assert_eq!(shown["expanded"]["root_object"], Value::Null, "{shown:#}");
    }

    /// What was made of an object, tier by tier.
    async fn is_shown_with_an_object(&self, server: &Server) {
        let path = format!("/v1/objects/{}/decomposition-tree", self.long);
        let tree = self.get(server, &path).await;
        let node = &tree["nodes"][0];
        let below = &node["children"][0];
        let found = (
            &node["document_count"],
            &below["document_count"],
            &below["children"][0]["tier"],
        );
        assert_eq!(found, (&json!(2), &json!(3), &json!(2)), "{tree:#}");
    }
}

both! {
    async fn what_a_tier_writes_the_next_one_reads(server) {
        let chain = Chain::new(&server).await;
        let source = chain.get(&server, "/v1/collections/pairs").await["source"].clone();
        assert_eq!((&source["collection_ids"], &source["inherited_bucket_ids"]), (&json!([chain.pages]), &json!([chain.bucket])));
        let batch = process(&server, &chain.namespace, &chain.bucket).await;
        chain.is_told_by_batch_and_task(&server, &batch).await;
        chain.is_told_by_the_feed(&server).await;
        chain.has_pieces_in_each_tier(&server).await;
        chain.is_told_of_a_document(&server).await;
        chain.is_shown_with_a_document(&server).await;
        chain.hides_the_object_from_other_keys(&server).await;
        chain.is_shown_with_an_object(&server).await;
    }

    async fn a_clone_has_lines_of_its_own(server) {
        let chain = Chain::new(&server).await;
        process(&server, &chain.namespace, &chain.bucket).await;
        let clone = format!("/v1/namespaces/{}/clone", chain.namespace);
        let answer = server.call("POST", &clone, json!({"namespace_name": "tiers again"})).await.ok();
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let new = |old: &str| answer["cloned_resources"]["collections"][old].as_str().unwrap().to_owned();
        let own = Chain {
            namespace: answer["namespace"]["namespace_id"].as_str().unwrap().to_owned(),
            pages: new(&chain.pages),
            pairs: new(&chain.pairs),
            copies: new(&chain.copies),
            ..chain
        };
        own.has_pieces_in_each_tier(&server).await;
        own.is_told_of_a_document(&server).await;
        let (copy, path) = own.copy(&server).await;
        let shown = own.get(&server, &format!("{path}?expand=parent,ancestors")).await;
        let (parent, page) = (&shown["expanded"]["parent"], &shown["expanded"]["ancestors"][0]);
        assert_eq!((&parent["text"], &parent["collection_id"]), (&json!("three four"), &json!(own.pairs)), "{shown:#}");
        assert_eq!((&page["text"], &page["collection_id"]), (&json!("one two three four"), &json!(own.pages)), "{shown:#}");
        let path = format!("/v1/collections/{}/documents/{}", own.pairs, parent["document_id"].as_str().unwrap());
        let shown = own.get(&server, &format!("{path}?expand=children")).await;
        assert_eq!(shown["expanded"]["children"][0]["document_id"], copy["document_id"]);
        // What was made of a document goes with it.
        let page = format!("/v1/collections/{}/documents/{}", own.pages, page["document_id"].as_str().unwrap());
        server.call_in(&own.namespace, "DELETE", &page, Value::Null).await.ok();
        assert_eq!(own.texts(&server, &own.copies).await, ["five six", "seven eight"]);
    }
}
