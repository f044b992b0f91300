//! Migrations into a namespace that is there.

use serde_json::{Value, json};

use super::{MIGRATIONS, cancels_where_documents_come, codes, migrated, validated};
use crate::{
    batches::{library, object, process},
    both,
    harness::{Server, other_organization, retriever},
};

fn extend(source: &str, target: &str) -> Value {
    json!({"migration_type": "extend", "source_namespace_id": source, "target_namespace_id": target})
}

/// How many documents a collection has.
async fn count(server: &Server, namespace: &str, collection: &str) -> Value {
    let path = format!("/v1/collections/{collection}/documents/count");
    let found = server.call_in(namespace, "GET", &path, Value::Null);
    found.await.ok()["count"].clone()
}

/// A namespace with a document that somebody wrote.
async fn shelf(server: &Server, name: &str) -> String {
    let namespace = server.namespace(name).await;
    let body = json!({"collection_name": "notes", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    let made = server.call_in(&namespace, "POST", "/v1/collections", body);
    made.await.ok();
    let path = "/v1/collections/notes/documents";
    let made = server.call_in(&namespace, "POST", path, json!({"title": "mine"}));
    made.await.ok();
    namespace
}

/// As if the server had been given other extractors since the collections were made.
async fn loses_an_extractor(server: &Server) {
    let postgres = server.app.db().is_postgres();
    let lost = server.app.db().write(move |tx| Box::pin(async move {
        let sql = match postgres {
            true => "UPDATE collections SET data = CAST(REPLACE(CAST(data AS TEXT), 'passthrough_extractor', 'lost_extractor') AS JSONB) WHERE name = 'things'",
            false => "UPDATE collections SET data = REPLACE(data, 'passthrough_extractor', 'lost_extractor') WHERE name = 'things'",
        };
        tx.run(sql, vec![]).await
    }));
    assert_eq!(lost.await.unwrap(), 1);
}

both! {
    async fn a_namespace_is_extended_and_stays_what_it_was(server) {
        let (source, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "A slow river of ice."});
        object(&server, &source, &bucket, "Glacier", text).await;
        process(&server, &source, &bucket).await;
        // What nothing that comes is filled from stays.
        let empty = json!({"bucket_name": "empty", "bucket_schema": {"properties": {"title": {"type": "string"}}}});
        server.call_in(&source, "POST", "/v1/buckets", empty).await.ok();
        let target = shelf(&server, "shelf").await;
        let home = format!("/v1/namespaces/{target}");
        let before = server.call("GET", &home, Value::Null).await.ok();

        let config = extend(&source, &target);
        let checked = validated(&server, &config).await["validation_result"].clone();
        assert_eq!(checked["valid"], true, "{checked:#}");
        let coming = &checked["estimated_resources"];
        assert_eq!((&coming["buckets"], &coming["collections"], &coming["documents"]), (&json!(1), &json!(1), &json!(1)));
        let done = migrated(&server, config.clone()).await;
        assert_eq!((&done["status"], &done["additional_data"]["target_namespace_id"]), (&json!("completed"), &json!(target)), "{done:#}");

        let read = async |namespace: &str, collection: &str| {
            let path = format!("/v1/collections/{collection}/documents/list");
            let page = server.call_in(namespace, "POST", &path, json!({"return_vectors": true})).await.ok();
            page["results"].as_array().unwrap().clone()
        };
        let (old, new) = (read(&source, &collection).await, read(&target, "documents").await);
        assert_eq!((new.len(), &new[0]["title"], &new[0]["vectors"]), (1, &json!("Glacier"), &old[0]["vectors"]));
        assert!(new[0]["vectors"].as_object().is_some_and(|vectors| !vectors.is_empty()));
        assert_ne!(new[0]["document_id"], old[0]["document_id"]);
        let buckets = server.call_in(&target, "POST", "/v1/buckets/list", json!({})).await.ok();
        let names: Vec<&Value> = buckets["results"].as_array().unwrap().iter().map(|one| &one["bucket_name"]).collect();
        assert_eq!(names, ["files"]);

        let after = server.call("GET", &home, Value::Null).await.ok();
        for member in ["namespace_name", "clone_status", "source_namespace_id", "namespace_ready", "created_at", "expires_at"] {
            assert_eq!(after[member], before[member], "{member}");
        }
        assert_eq!(count(&server, &target, "notes").await, 1);
        let told = format!("/v1/organizations/audit/logs?action=namespace_updated&resource_id={target}");
        let told = server.call("GET", &told, Value::Null).await.ok();
        assert_eq!(told["results"][0]["changes"], json!({"change": "namespace_extended", "extended_from": source}), "{told:#}");

        // Now its names are there: each error names both.
        let again = validated(&server, &config).await["validation_result"].clone();
        assert_eq!(codes(&again["errors"]), ["name_taken", "name_taken"], "{again:#}");
        let taken = again["errors"].as_array().unwrap();
        let other = buckets["results"][0]["bucket_id"].as_str().unwrap();
        let message = taken[0]["message"].as_str().unwrap();
        assert!(message.contains(&bucket) && message.contains(other), "{message}");
        assert_eq!((&taken[1]["resource_id"], &taken[1]["resource_type"]), (&json!(collection), &json!("collection")));
    }

    async fn an_extension_that_is_canceled_leaves_the_namespace_ready(server) {
        let (source, bucket, _) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "A slow river of ice."});
        object(&server, &source, &bucket, "Glacier", text).await;
        process(&server, &source, &bucket).await;
        let target = shelf(&server, "shelf").await;
        let before = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        cancels_where_documents_come(&server).await;
        let stopped = migrated(&server, extend(&source, &target)).await;
        assert_eq!(stopped["status"], "cancelled", "{stopped:#}");
        let found = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        for member in ["namespace_ready", "clone_status"] {
            assert_eq!(found[member], before[member], "{member}");
        }
        assert_eq!(count(&server, &target, "notes").await, 1);
    }

    async fn what_cannot_be_extended_is_told(server) {
        let (source, _) = retriever(&server, "source").await;
        let target = shelf(&server, "target").await;
        let other = other_organization(&server).await;
        let theirs = server.request("POST", "/v1/namespaces").bearer_auth(&other.key);
        let theirs = Server::send(theirs.json(&json!({"namespace_name": "theirs"}))).await.ok();
        let theirs = theirs["namespace_id"].as_str().unwrap();
        let said = async |config: Value| validated(&server, &config).await["validation_result"]["errors"].clone();
        assert_eq!(said(extend(&source, &target)).await, json!([]));
        let mut nowhere = extend(&source, &target);
        nowhere.as_object_mut().unwrap().remove("target_namespace_id");
        for (config, code) in [
            (nowhere, "missing_target"),
            (extend(&source, &source), "same_namespace"),
            (extend(&source, "ns_none"), "target_not_found"),
            (extend(&source, theirs), "target_not_found"),
        ] {
            assert_eq!(codes(&said(config.clone()).await), [code], "{config}");
        }
        // That of others is as unknown as one that there is not.
        let unknown = said(extend(&source, "ns_none")).await.to_string();
        assert_eq!(said(extend(&source, theirs)).await.to_string(), unknown.replace("ns_none", theirs));
        let body = json!({"config": extend(&source, theirs), "start_immediately": true});
        let draft = server.call("POST", &format!("{MIGRATIONS}/"), body).await.ok();
        assert_eq!(draft["status"], "draft", "{draft:#}");

        loses_an_extractor(&server).await;
        let errors = said(extend(&source, &target)).await;
        assert_eq!((codes(&errors), &errors[0]["resource_type"]), (vec!["extractor_unavailable"], &json!("collection")), "{errors:#}");
    }
}
