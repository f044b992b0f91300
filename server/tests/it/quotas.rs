//! Quotas of the tiers, and the plan that a workspace must have.

use loupe_server::db::Json;
use loupe_wire::OrganizationModelResponse;
use serde_json::{Value, json};

use crate::{both, harness::Server};

/// Changes the organization as whoever sells plans would.
pub async fn set(server: &Server, tier: &str, requires_plan: bool) {
    let mut rows: Vec<(String, Json<Value>)> = server
        .app
        .db()
        .all("SELECT org_id, data FROM organizations", vec![])
        .await
        .unwrap();
    let (org_id, Json(mut organization)) = rows.remove(0);
    organization["account_type"] = tier.into();
    organization["requires_plan"] = requires_plan.into();
    let organization: OrganizationModelResponse = serde_json::from_value(organization).unwrap();
    server
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let args = loupe_server::args![org_id, loupe_server::db::Arg::json(&organization)];
                tx.run("UPDATE organizations SET data = $2 WHERE org_id = $1", args)
                    .await
            })
        })
        .await
        .unwrap();
    server.app.limits.forget_tiers();
    // An idle key has its burst again.
    server.app.clock().advance(60);
}

#[track_caller]
fn quota(answer: crate::harness::Answer, resource: &str, current: i64, limit: i64) {
    let body = answer.error(403, "QuotaExceededError");
    let details = json!({"resource": resource, "current": current, "limit": limit, "tier": "free"});
    assert_eq!(body["error"]["details"], details);
}

both! {
    async fn a_free_organization_holds_what_its_tier_allows(server) {
        set(&server, "free", false).await;
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        assert_eq!(me["rate_limits"], json!({"requests_per_minute": 60, "requests_per_second": 10, "burst": 20, "concurrent_requests": 5}));
        let namespace = server.namespace("the only one").await;
        let second = server.call("POST", "/v1/namespaces", json!({"namespace_name": "one more"})).await;
        quota(second, "namespaces", 1, 1);
        server.app.clock().advance(60);
        for number in 0..6 {
            let body = json!({"bucket_name": format!("bucket {number}"), "bucket_schema": {"properties": {}}});
            let answer = server.call_in(&namespace, "POST", "/v1/buckets", body).await;
            if number < 5 {
                answer.ok();
            } else {
                quota(answer, "buckets", 5, 5);
            }
        }
        server.app.clock().advance(60);
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        for number in 0..3 {
            let answer = server.call("POST", keys, json!({"name": format!("key {number}")})).await;
            if number < 2 {
                answer.ok();
            } else {
                quota(answer, "api_keys", 2, 2);
            }
        }
        // A revoked key makes room.
        server.call("DELETE", &format!("{keys}/key 0"), Value::Null).await.ok();
        server.call("POST", keys, json!({"name": "key 3"})).await.ok();
        server.app.clock().advance(60);
        let objects: Vec<String> = (0..101).map(|number| format!("obj_{number}")).collect();
        let batch = server.call_in(&namespace, "POST", "/v1/buckets/bucket 0/batches", json!({"object_ids": objects})).await;
        quota(batch, "batch_objects", 101, 100);
    }

    async fn documents_that_are_put_away_count_as_those_that_are_here(server) {
        let (namespace, _) = crate::harness::retriever(&server, "filed").await;
        let things = "/v1/collections/things";
        server.call_in(&namespace, "POST", &format!("{things}/documents"), json!({"title": "one"})).await.ok();
        let away = json!({"lifecycle_state": "archived", "async_transition": false});
        server.call_in(&namespace, "PATCH", &format!("{things}/lifecycle"), away).await.ok();
        // An end user is told nothing of how many documents others have.
        let person = json!({"name": "person", "principal_id": "ann", "permissions": ["read"]});
        let person = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", person).await.ok();
        for (key, count) in [(server.key.as_str(), json!(1)), (person["key"].as_str().unwrap(), Value::Null)] {
            let request = server.request("GET", things).bearer_auth(key).header("x-namespace", &namespace);
            assert_eq!(Server::send(request).await.ok()["document_count"], count);
        }
        let others = json!({"collection_name": "others", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", others).await.ok();
        let mut rows: Vec<(String, Json<Value>)> = server.app.db().all("SELECT id, data FROM collections WHERE name = 'things'", vec![]).await.unwrap();
        let (id, Json(mut filed)) = rows.remove(0);
        filed["document_count"] = 10_000.into();
        server.app.db().write(move |tx| Box::pin(async move {
            let args = loupe_server::args![id, loupe_server::db::Arg::json(&filed)];
            tx.run("UPDATE collections SET data = $2 WHERE id = $1", args).await
        })).await.unwrap();
        set(&server, "free", false).await;
        let one_more = server.call_in(&namespace, "POST", "/v1/collections/others/documents", json!({"title": "two"})).await;
        quota(one_more, "documents", 10_000, 10_000);
    }

    async fn a_batch_makes_as_many_documents_as_there_is_room_for(server) {
        use crate::batches::{library, object, process};
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = |words: &str| json!({"property": "text", "type": "text", "data": words});
        for title in ["one", "two"] {
            object(&server, &namespace, &bucket, title, text("a few words")).await;
        }
        // All but one of a million documents are put away elsewhere.
        let (filed, _) = crate::harness::retriever(&server, "filed").await;
        let things = "/v1/collections/things";
        server.call_in(&filed, "POST", &format!("{things}/documents"), json!({"title": "one"})).await.ok();
        let away = json!({"lifecycle_state": "archived", "async_transition": false});
        server.call_in(&filed, "PATCH", &format!("{things}/lifecycle"), away).await.ok();
        let mut rows: Vec<(String, Json<Value>)> = server.app.db().all("SELECT id, data FROM collections WHERE name = 'things'", vec![]).await.unwrap();
        let (id, Json(mut put_away)) = rows.remove(0);
        put_away["document_count"] = 999_999.into();
        server.app.db().write(move |tx| Box::pin(async move {
            let args = loupe_server::args![id, loupe_server::db::Arg::json(&put_away)];
            tx.run("UPDATE collections SET data = $2 WHERE id = $1", args).await
        })).await.unwrap();
        set(&server, "pro", false).await;
        let batch = process(&server, &namespace, &bucket).await;
        let failed = batch["failed_objects"].as_array().unwrap();
        assert_eq!((failed.len(), &batch["documents_written"]), (1, &json!(1)), "{batch:#}");
        assert!(failed[0]["error"].as_str().unwrap().contains("quota of documents"), "{batch:#}");
        let path = format!("/v1/collections/{collection}/documents/count");
        let count = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert!(count.as_object().unwrap().values().any(|value| *value == 1), "{count}");
    }

    async fn documents_wait_for_a_plan_like_other_work(server) {
        let (namespace, _) = crate::harness::retriever(&server, "unplanned").await;
        set(&server, "build", true).await;
        let things = "/v1/collections/things/documents";
        let refused = server.call_in(&namespace, "POST", things, json!({"title": "one"})).await;
        refused.error(403, "PlanRequiredError");
        server.call_in(&namespace, "GET", things, Value::Null).await.ok();
    }

    async fn two_requests_cannot_both_take_the_last_place(server) {
        set(&server, "free", false).await;
        let answers = futures::future::join_all((0..4).map(|number| {
            let body = json!({"namespace_name": format!("rival {number}")});
            let server = &server;
            async move { server.call("POST", "/v1/namespaces", body).await.status }
        })).await;
        assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|status| **status == 403).count(), 3, "{answers:?}");
    }

    async fn a_workspace_without_a_plan_makes_no_namespace(server) {
        set(&server, "free", true).await;
        assert_eq!(server.call("GET", "/v1/organizations", Value::Null).await.ok()["requires_plan"], true);
        let refused = server.call("POST", "/v1/namespaces", json!({"namespace_name": "mine"})).await;
        refused.error(403, "PlanRequiredError");
    }

    async fn nothing_is_stored_without_a_plan(server) {
        let namespace = server.namespace("stored").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let made = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let objects = format!("/v1/buckets/{}/objects", made["bucket_id"].as_str().unwrap());
        let batch = json!({"objects": [{"note": "x"}]});
        for (requires_plan, status) in [(true, 403), (false, 200)] {
            set(&server, "build", requires_plan).await;
            for (path, body) in [(objects.clone(), json!({"note": "x"})), (format!("{objects}/batch"), batch.clone())] {
                let answer = server.call_in(&namespace, "POST", &path, body).await;
                assert_eq!(answer.status, status, "{path}: {:#}", answer.body);
                if requires_plan {
                    answer.error(403, "PlanRequiredError");
                }
            }
        }
    }

    async fn a_search_waits_for_a_plan_like_other_work(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "plan").await;
        let execute = format!("/v1/retrievers/{retriever}/execute");
        server.call_in(&namespace, "POST", &execute, json!({"inputs": {}})).await.ok();
        set(&server, "build", true).await;
        let refused = server.call_in(&namespace, "POST", &execute, json!({"inputs": {}})).await;
        refused.error(403, "PlanRequiredError");
        server.call_in(&namespace, "GET", "/v1/collections/things/documents", Value::Null).await.ok();
        set(&server, "build", false).await;
        server.call_in(&namespace, "POST", &execute, json!({"inputs": {}})).await.ok();
    }
}
