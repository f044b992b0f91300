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

/// A collection that is put away elsewhere with its one document, counted as so many; answers its namespace.
pub async fn put_away(server: &Server, documents: i64) -> String {
    let (namespace, _) = crate::harness::retriever(server, "filed").await;
    let things = "/v1/collections/things";
    let document = json!({"title": "one"});
    let path = format!("{things}/documents");
    server
        .call_in(&namespace, "POST", &path, document)
        .await
        .ok();
    let away = json!({"lifecycle_state": "archived", "async_transition": false});
    let path = format!("{things}/lifecycle");
    server.call_in(&namespace, "PATCH", &path, away).await.ok();
    count_as(server, documents).await;
    namespace
}

/// Says how many documents the only collection of this name has.
async fn count_as(server: &Server, documents: i64) {
    let db = server.app.db();
    let find = "SELECT id, data FROM collections WHERE name = 'things'";
    let mut rows: Vec<(String, Json<Value>)> = db.all(find, vec![]).await.unwrap();
    let (id, Json(mut collection)) = rows.remove(0);
    collection["document_count"] = documents.into();
    db.write(move |tx| {
        Box::pin(async move {
            let args = loupe_server::args![id, loupe_server::db::Arg::json(&collection)];
            tx.run("UPDATE collections SET data = $2 WHERE id = $1", args)
                .await
        })
    })
    .await
    .unwrap();
}

#[track_caller]
fn quota(answer: crate::harness::Answer, resource: &str, current: i64, limit: i64) {
    let body = answer.error(403, "QuotaExceededError");
    let details = json!({"resource": resource, "current": current, "limit": limit, "tier": "free"});
    assert_eq!(body["error"]["details"], details);
}

/// Makes things until one is refused; answers how many were made.
async fn fill(
    server: &Server,
    namespace: &str,
    path: &str,
    body: impl Fn(String) -> Value,
) -> (i64, crate::harness::Answer) {
    for made in 0..10 {
        // Nobody is refused for asking too often.
        server.app.clock().advance(5);
        let sent = body(format!("number {made}"));
        let answer = server.call_in(namespace, "POST", path, sent).await;
        if answer.status != 200 {
            return (made, answer);
        }
    }
    panic!("nothing of {path} was refused");
}

both! {
    async fn every_row_of_the_table_is_kept(server) {
        let (namespace, _) = crate::harness::retriever(&server, "rows").await;
        let code = json!({"field": "code", "operator": "eq", "value": "{{INPUT.code}}"});
        let finder = |name: String| json!({
            "retriever_name": name, "collection_identifiers": ["things"],
            "input_schema": {"code": {"type": "string", "required": true}},
            "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {"conditions": {"AND": [code]}}}}],
        });
        let found = server.call_in(&namespace, "POST", "/v1/retrievers", finder("finder".into())).await.ok();
        set(&server, "free", false).await;
        let collection = |name: String| json!({"collection_name": name, "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let taxonomy = |name: String| json!({"taxonomy_name": name, "config": {
            "taxonomy_type": "flat", "retriever_id": found["retriever_id"],
            "input_mappings": [{"input_key": "code", "source_type": "payload", "path": "code"}],
            "source_collection": {"collection_id": "things"},
        }});
        let cluster = |name: String| crate::clusters::by_vectors(&name, "kmeans", json!({}));
        // One collection and two retrievers are there.
        let (made, refused) = fill(&server, &namespace, "/v1/collections", collection).await;
        assert_eq!(made, 4);
        quota(refused, "collections", 5, 5);
        let (made, refused) = fill(&server, &namespace, "/v1/retrievers", finder).await;
        assert_eq!(made, 1);
        quota(refused, "retrievers", 3, 3);
        let (made, refused) = fill(&server, &namespace, "/v1/taxonomies", taxonomy).await;
        assert_eq!(made, 2);
        quota(refused, "taxonomies", 2, 2);
        let (made, refused) = fill(&server, &namespace, "/v1/clusters", cluster).await;
        assert_eq!(made, 1);
        quota(refused, "clusters", 1, 1);
        // The next tier has room.
        set(&server, "pro", false).await;
        for (path, body) in [
            ("/v1/collections", collection("more".into())), ("/v1/taxonomies", taxonomy("more".into())), ("/v1/clusters", cluster("more".into())),
        ] {
            server.call_in(&namespace, "POST", path, body).await.ok();
        }
    }

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

    async fn a_draft_takes_no_more_objects_than_a_batch_may_have(server) {
        let namespace = server.namespace("drafts").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let made = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let bucket = format!("/v1/buckets/{}", made["bucket_id"].as_str().unwrap());
        let mut ids = Vec::new();
        for count in [100, 1] {
            let objects: Vec<Value> = (0..count).map(|number| json!({"note": format!("{number} of {count}")})).collect();
            let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects/batch"), json!({"objects": objects})).await.ok();
            ids.extend(made["succeeded"].as_array().unwrap().iter().map(|one| one["object_id"].clone()));
        }
        assert_eq!(ids.len(), 101);
        set(&server, "free", false).await;
        let batch = server.call_in(&namespace, "POST", &format!("{bucket}/batches"), json!({"object_ids": ids[..99]})).await.ok();
        let path = format!("{bucket}/batches/{}/objects", batch["batch_id"].as_str().unwrap());
        let add = async |ids: &[Value]| server.call_in(&namespace, "POST", &path, json!({"object_ids": ids})).await;
        quota(add(&ids[99..]).await, "batch_objects", 101, 100);
        // Nothing of that was kept, and what is there already takes no place.
        let full = add(&ids[90..100]).await.ok();
        assert_eq!(full["object_ids"].as_array().unwrap().len(), 100);
        quota(add(&ids[100..]).await, "batch_objects", 101, 100);
    }

    async fn a_quota_is_told_of_once_when_it_is_nearly_and_when_it_is_used_up(server) {
        let namespace = server.namespace("filled").await;
        let add = async |name: &str| {
            let body = json!({"bucket_name": name, "bucket_schema": {"properties": {}}});
            server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
        };
        let told = async || {
            // Twice: the leader may look in between, and what it noted is left to the next look.
            for _ in 0..2 {
                loupe_server::v1::notifications::quotas::tick(&server.app).await.unwrap();
            }
            let list = server.call("POST", "/v1/notifications/list", json!({"notification_type": "quota_alert"})).await.ok();
            let all = list["results"].as_array().unwrap().iter();
            let mut all: Vec<String> = all.map(|one| format!("{} {}", one["metadata"]["resource"].as_str().unwrap(), one["metadata"]["threshold"])).collect();
            all.sort();
            all
        };
        for name in ["one", "two", "three"] {
            add(name).await;
        }
        assert_eq!(told().await, [""; 0], "who may have any number is told nothing");
        set(&server, "free", false).await;
        assert_eq!(told().await, ["namespaces 100"]);
        add("four").await;
        assert_eq!(told().await, ["buckets 80", "namespaces 100"]);
        add("five").await;
        for _ in 0..2 {
            assert_eq!(told().await, ["buckets 100", "buckets 80", "namespaces 100"]);
        }
        let list = server.call("POST", "/v1/notifications/list", json!({"notification_type": "quota_alert", "priority": "high"})).await.ok();
        let full = list["results"].as_array().unwrap().iter().find(|one| one["metadata"]["resource"] == "buckets").unwrap();
        assert_eq!(full["title"], "The quota of buckets is used up");
        assert!(full["content"].as_str().unwrap().starts_with("This organization has 5 of 5 buckets."), "{full:#}");
        // What falls and rises again is told of again.
        set(&server, "pro", false).await;
        assert_eq!(told().await.len(), 3);
        set(&server, "free", false).await;
        assert_eq!(told().await, ["buckets 100", "buckets 100", "buckets 80", "namespaces 100", "namespaces 100"]);
    }

    async fn documents_that_are_put_away_count_as_those_that_are_here(server) {
        let namespace = put_away(&server, 1).await;
        // An end user is told nothing of how many documents others have.
        let person = json!({"name": "person", "principal_id": "ann", "permissions": ["read"]});
        let person = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", person).await.ok();
        for (key, count) in [(server.key.as_str(), json!(1)), (person["key"].as_str().unwrap(), Value::Null)] {
            let request = server.request("GET", "/v1/collections/things").bearer_auth(key).header("x-namespace", &namespace);
            assert_eq!(Server::send(request).await.ok()["document_count"], count);
        }
        let others = json!({"collection_name": "others", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&namespace, "POST", "/v1/collections", others).await.ok();
        count_as(&server, 10_000).await;
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
        put_away(&server, 999_999).await;
        set(&server, "pro", false).await;
        let batch = process(&server, &namespace, &bucket).await;
        let failed = batch["failed_objects"].as_array().unwrap();
        assert_eq!((failed.len(), &batch["documents_written"]), (1, &json!(1)), "{batch:#}");
        assert!(failed[0]["error"].as_str().unwrap().contains("quota of documents"), "{batch:#}");
        let path = format!("/v1/collections/{collection}/documents/count");
        let count = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert!(count.as_object().unwrap().values().any(|value| *value == 1), "{count}");
    }

    async fn a_clone_without_room_for_its_documents_fails_and_says_so(server) {
        // All but one of a million documents are put away elsewhere.
        put_away(&server, 999_999).await;
        let (namespace, _) = crate::harness::retriever(&server, "pattern").await;
        let things = "/v1/collections/things/documents";
        server.call_in(&namespace, "POST", things, json!({"title": "the last one"})).await.ok();
        set(&server, "pro", false).await;
        let clone = format!("/v1/namespaces/{namespace}/clone");
        let answer = server.call("POST", &clone, json!({"namespace_name": "copy"})).await.ok();
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "FAILED", "{task:#}");
        let path = format!("/v1/namespaces/{}", answer["namespace"]["namespace_id"].as_str().unwrap());
        let found = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&found["clone_status"], &found["namespace_ready"]), (&json!("failed"), &json!(false)), "{found:#}");
        assert!(found["clone_error"].as_str().is_some_and(|why| !why.is_empty()), "{found:#}");
    }

    async fn documents_wait_for_a_plan_like_other_work(server) {
        let (namespace, _) = crate::harness::retriever(&server, "unplanned").await;
        set(&server, "build", true).await;
        let things = "/v1/collections/things/documents";
        let refused = server.call_in(&namespace, "POST", things, json!({"title": "one"})).await;
        refused.error(403, "PlanRequiredError");
        server.call_in(&namespace, "GET", things, Value::Null).await.ok();
    }

    async fn one_answer_tells_how_much_of_each_quota_is_used(server) {
        let (namespace, _) = crate::harness::retriever(&server, "counted").await;
        server.call_in(&namespace, "POST", "/v1/collections/things/documents", json!({"title": "one"})).await.ok();
        for name in ["one", "two"] {
            let bucket = json!({"bucket_name": name, "bucket_schema": {"properties": {}}});
            server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        }
        let at = server.app.clock().now() + chrono::Duration::seconds(30);
        const OWN: &str = "/v1/organizations/users/owner@localhost/api-keys";
        server.call("POST", OWN, json!({"name": "brief", "expires_at": at})).await.ok();
        let reader = server.call("POST", OWN, json!({"name": "reader", "permissions": ["read"]})).await.ok();
        server.app.clock().advance(31);
        let told = async || {
            let request = server.request("GET", "/v1/organizations/quotas").bearer_auth(reader["key"].as_str().unwrap());
            Server::send(request).await.ok()
        };
        let one = |quotas: &Value, name: &str| {
            let found = quotas["quotas"].as_array().unwrap().iter().find(|one| one["resource"] == name).unwrap();
            (found["current"].as_i64(), found["limit"].as_i64())
        };
        set(&server, "free", false).await;
        let quotas = told().await;
        assert_eq!(quotas["tier"], "free");
        // An expired key takes no place, though nobody marked it yet; nor does the organization's own.
        for (name, current, limit) in [
            ("namespaces", Some(1), 1), ("buckets", Some(2), 5), ("collections", Some(1), 5), ("documents", Some(1), 10_000),
            ("retrievers", Some(1), 3), ("taxonomies", Some(0), 2), ("clusters", Some(0), 1), ("api_keys", Some(1), 2), ("batch_objects", None, 100),
        ] {
            assert_eq!(one(&quotas, name), (current, Some(limit)), "{name}: {quotas:#}");
        }
        // What is told is what is enforced.
        quota(server.call("POST", "/v1/namespaces", json!({"namespace_name": "more"})).await, "namespaces", 1, 1);
        set(&server, "team", false).await;
        assert_eq!(one(&told().await, "namespaces"), (Some(1), Some(10)));
        set(&server, "enterprise", false).await;
        assert_eq!(one(&told().await, "namespaces"), (Some(1), None));
    }

    async fn an_expired_key_takes_no_place_whoever_held_it(server) {
        const OWN: &str = "/v1/organizations/users/owner@localhost/api-keys";
        const HERS: &str = "/v1/organizations/users/ada@example.org/api-keys";
        set(&server, "free", false).await;
        let ada = json!({"email": "ada@example.org", "user_name": "Ada"});
        server.call("POST", "/v1/organizations/users", ada).await.ok();
        let at = server.app.clock().now() + chrono::Duration::seconds(30);
        server.call("POST", HERS, json!({"name": "one", "expires_at": at})).await.ok();
        server.call("POST", OWN, json!({"name": "two"})).await.ok();
        quota(server.call("POST", OWN, json!({"name": "three"})).await, "api_keys", 2, 2);
        server.app.clock().advance(31);
        server.call("POST", OWN, json!({"name": "three"})).await.ok();
        assert_eq!(server.call("GET", HERS, Value::Null).await.ok()["results"][0]["status"], "expired");
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
        let namespace = server.namespace("before").await;
        set(&server, "free", true).await;
        // What is paid for waits for a plan before anything else is looked at; what is not is answered.
        for path in ["/v1/inference", "/v1/features/search", "/v1/quickstart/demo", "/v1/collections/none/trigger", "/v1/buckets/none/uploads", "/v1/retrievers/execute",
            "/v1/collections/none/export", "/v1/apps/none/deploy", "/v1/apps/none/deploy/upload-url", "/v1/apps/none/deploy/verify-upload", "/v1/manifest/apply"] {
            server.call_in(&namespace, "POST", path, json!({})).await.error(403, "PlanRequiredError");
            server.app.clock().advance(1);
        }
        let snapshots = format!("/v1/namespaces/{namespace}/snapshots");
        server.call("POST", &snapshots, json!({})).await.error(403, "PlanRequiredError");
        server.app.clock().advance(60);
        let bucket = json!({"bucket_name": "free", "bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
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
