//! A namespace that does not resolve is an empty page on every list, and on nothing else.

use std::collections::BTreeSet;

use loupe_server::auth::table::{Access, TABLE};
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, other_organization},
};

/// What has results and is no list of a namespace, and why.
const NO_LISTS: &[(&str, &str)] = &[
    (
        "GET /v1/analytics/clusters/{cluster_id}/execution-history",
        "figures of one cluster",
    ),
    (
        "GET /v1/buckets/{bucket_identifier}/batches/{batch_id}/failed-documents",
        "a part of one batch",
    ),
    (
        "GET /v1/objects/{object_id}/documents",
        "a part of one object",
    ),
    (
        "GET /v1/retrievers/benchmarks/{benchmark_id}",
        "one benchmark",
    ),
    (
        "GET /v1/retrievers/{retriever_id}/executions/{execution_id}",
        "one execution",
    ),
];

/// Members that hold what is listed.
const LISTED: [&str; 4] = ["results", "benchmarks", "datasets", "evaluations"];

/// What the description says of the answer to an operation.
fn schema(document: &Value, operation: &str) -> Value {
    let (method, path) = operation.split_once(' ').unwrap();
    let answer = &document["paths"][path][method.to_lowercase()]["responses"]["200"];
    let schema = &answer["content"]["application/json"]["schema"];
    let reference = schema["$ref"].as_str().unwrap_or_default();
    let found = document.pointer(reference.trim_start_matches('#'));
    found
        .filter(|_| !reference.is_empty())
        .unwrap_or(schema)
        .clone()
}

/// With ids of nothing in its path.
async fn ask(server: &Server, operation: &str, namespace: &str) -> Answer {
    let (method, path) = operation.split_once(' ').unwrap();
    let names = path.split('/').map(|name| match name.starts_with('{') {
        true => "thing_nowhere",
        false => name,
    });
    let path = names.collect::<Vec<_>>().join("/");
    let body = if method == "GET" {
        Value::Null
    } else {
        json!({})
    };
    server.call_in(namespace, method, &path, body).await
}

both! {
    async fn every_list_of_a_namespace_that_is_not_there_is_an_empty_page(server) {
        let elsewhere = other_organization(&server).await;
        let theirs = server.request("POST", "/v1/namespaces").bearer_auth(&elsewhere.key).json(&json!({"namespace_name": "theirs"}));
        let theirs = Server::send(theirs).await.ok()["namespace_id"].as_str().unwrap().to_owned();
        let ours = server.namespace("ours").await;
        let document = serde_json::to_value(loupe_server::openapi::document()).unwrap();
        let (mut lists, mut empty, mut refused) = (0, 0, BTreeSet::new());
        for row in TABLE.iter().filter(|row| row.access != Access::Public) {
            let name = row.operation;
            let schema = schema(&document, name);
            let listed = LISTED.iter().find(|member| schema["properties"].get(**member).is_some());
            let is_page = name.ends_with("/list") || (listed.is_some() && name.starts_with("GET "));
            if !is_page && !name.ends_with("/jobs") {
                continue;
            }
            let answer = ask(&server, name, "ns_unknown").await;
            if answer.status == 404 && answer.body["error"]["details"] == json!({"resource": "namespace", "id": "ns_unknown"}) {
                refused.insert(name);
                continue;
            }
            // Lists of the organization do not look at the header.
            let Some(marked) = answer.headers.get("x-namespace-unresolved") else {
                continue;
            };
            assert_eq!(marked, "true", "{name}");
            let body = answer.ok();
            assert_eq!(body[*listed.unwrap()], json!([]), "{name}: {body:#}");
            for member in schema["required"].as_array().into_iter().flatten() {
                assert!(!body[member.as_str().unwrap()].is_null(), "{name} lacks {member}: {body:#}");
            }
            let warnings = body["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 1, "{name}: {body:#}");
            let [resource, id, reason] = ["resource", "id", "reason"].map(|member| &warnings[0][member]);
            assert_eq!((resource, id, reason), (&json!("namespace"), &json!("ns_unknown"), &json!("unresolved")), "{name}");
            assert!(warnings[0]["next_step"].as_str().unwrap().contains("X-Namespace"), "{name}");
            assert!(schema["properties"]["warnings"]["items"]["$ref"].is_string(), "{name}");
            // Another organization's namespace is one that is not there.
            let same = ask(&server, name, &theirs).await;
            assert_eq!(same.headers["x-namespace-unresolved"], "true", "{name}");
            assert_eq!(same.ok().to_string().replace(&theirs, "ns_unknown"), body.to_string(), "{name}");
            lists += 1;
            // Where the namespace is there, an empty page is the true answer.
            let resolved = ask(&server, name, &ours).await;
            if resolved.status == 200 {
                assert!(!resolved.headers.contains_key("x-namespace-unresolved"), "{name}");
                assert_eq!(resolved.body["warnings"], json!([]), "{name}: {:#}", resolved.body);
                empty += 1;
            }
        }
        let expected: BTreeSet<&str> = NO_LISTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(refused, expected);
        assert!(lists > 35, "only {lists} lists");
        assert!(empty > 20, "only {empty} lists of what is there");
    }

    async fn what_is_wrong_with_a_list_is_told_whether_its_namespace_resolves_or_not(server) {
        let (namespace, _) = crate::harness::retriever(&server, "wrong").await;
        let lists = "/v1/collections/things/documents/list";
        for (method, path, body) in [
            ("GET", "/v1/buckets?limit=many", Value::Null),
            ("GET", "/v1/collections?cursor=nonsense", Value::Null),
            ("GET", "/v1/events?cursor=nonsense", Value::Null),
            ("GET", "/v1/events?limit=0", Value::Null),
            ("GET", "/v1/events?namespace_id=ns_another", Value::Null),
            ("GET", "/v1/tasks?status=LATE", Value::Null),
            ("POST", "/v1/buckets/list", json!({"limit": 0})),
            ("POST", "/v1/buckets/list", json!({"limit": "many"})),
            ("POST", "/v1/collections/list", json!({"filters": {"field": "a", "operator": "near", "value": 1}})),
            ("POST", "/v1/alerts/list", json!({"sort": {"field": "name", "direction": "sideways"}})),
            ("POST", "/v1/documents/list", json!({"filters": {"field": "a", "operator": "near", "value": 1}})),
            ("POST", lists, json!({"limit": "many"})),
            ("POST", "/v1/batches/list", json!({"limit": "many"})),
        ] {
            let resolved = server.call_in(&namespace, method, path, body.clone()).await;
            assert!([400, 422].contains(&resolved.status), "{method} {path}: {}", resolved.body);
            let not = server.call_in("ns_unknown", method, path, body).await;
            assert_eq!((not.status, &not.body), (resolved.status, &resolved.body), "{method} {path}");
            assert!(!not.headers.contains_key("x-namespace-unresolved"), "{method} {path}");
        }
        // What is read nowhere finds nothing, whatever it is asked for.
        let body = json!({"filters": {"field": "title", "operator": "eq", "value": "a"}, "search": "a", "limit": 2});
        for path in [lists, "/v1/documents/list", "/v1/collections/list"] {
            let page = server.call_in("ns_unknown", "POST", path, body.clone()).await;
            assert_eq!(page.headers["x-namespace-unresolved"], "true", "{path}");
            assert_eq!(page.ok()["results"], json!([]), "{path}");
        }
        let head = server.request("HEAD", "/v1/buckets").bearer_auth(&server.key).header("x-namespace", "ns_unknown");
        assert_eq!(Server::send(head).await.headers["x-namespace-unresolved"], "true");
    }

    async fn an_empty_page_is_the_one_that_was_asked_for(server) {
        let get = |path: &'static str| server.call_in("ns_unknown", "GET", path, Value::Null);
        let page = get("/v1/alerts?limit=5&offset=10").await.ok();
        assert_eq!((&page["pagination"]["page_size"], &page["pagination"]["page"]), (&json!(5), &json!(3)));
        let page = get("/v1/triggers?limit=7").await.ok();
        assert_eq!((&page["limit"], &page["offset"]), (&json!(7), &json!(0)));
        assert_eq!(get("/v1/events?cursor=ZTA&namespace_id=ns_unknown").await.ok()["next_cursor"], "ZTA");
        get("/v1/alerts?limit=0").await.invalid(&["query", "limit"], "greater_than_equal");
        let page = server.call_in("ns_unknown", "POST", "/v1/buckets/list?limit=7", json!({"limit": 3, "offset": 6})).await.ok();
        assert_eq!((&page["pagination"]["page_size"], &page["pagination"]["page"]), (&json!(3), &json!(3)), "the body wins");
        // Where the header is asked for it is still asked for, and a name is no id.
        server.call("GET", "/v1/alerts", Value::Null).await.error(403, "UnauthorizedError");
        let namespace = server.namespace("resolved").await;
        let page = server.call_in(&namespace, "GET", "/v1/alerts", Value::Null).await;
        assert!(!page.headers.contains_key("x-namespace-unresolved"));
        let page = server.call_in("resolved", "GET", "/v1/alerts", Value::Null).await;
        assert_eq!(page.headers["x-namespace-unresolved"], "true");
        // A repetition of the request is asked anew.
        for _ in 0..2 {
            let named = server.request("POST", "/v1/alerts/list").bearer_auth(&server.key).header("x-namespace", "ns_unknown").header("idempotency-key", "one").json(&json!({}));
            assert_eq!(Server::send(named).await.headers["x-namespace-unresolved"], "true");
        }
    }
}
