//! The endpoint-specific limits of the interface: what is at the limit is taken, what is beyond is refused by its name. How
//! often web pages and language models are asked is in `machines`, one execution of a cluster at a time in `clusters`.

use serde_json::{Value, json};

use crate::{alerts::watch, both, harness::Answer};

/// The member that a 422 is about.
#[track_caller]
fn refused(answer: Answer, members: &[&str]) {
    assert_eq!(answer.status, 422, "{members:?}: {:#}", answer.body);
    let loc = answer.body["detail"][0]["loc"].as_array().unwrap();
    let is_meant = loc
        .iter()
        .any(|piece| members.iter().any(|member| piece == member));
    assert!(is_meant, "{members:?}: {:#}", answer.body);
}

/// A body with one member changed.
fn with(body: &Value, member: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[member] = value;
    body
}

/// What the description says of a member of the body of a POST.
fn described(document: &Value, path: &str, member: &str) -> Value {
    let path = path.replace("owner@localhost", "{user_email}");
    let body = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
    let schema = body["schema"]["$ref"].as_str().unwrap();
    document.pointer(&schema[1..]).unwrap()["properties"][member].clone()
}

/// Whether a value keeps the limits of a schema.
fn keeps(schema: &Value, value: &Value) -> bool {
    let (least, most, size) = match value.as_str() {
        Some(text) => ("minLength", "maxLength", text.len() as f64),
        None => ("minimum", "maximum", value.as_f64().unwrap()),
    };
    let bound = |name: &str| schema[name].as_f64();
    bound(least).is_none_or(|least| size >= least) && bound(most).is_none_or(|most| size <= most)
}

both! {
    async fn texts_and_numbers_are_as_long_and_large_as_the_interface_says(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "figures").await;
        let made = server.call_in(&namespace, "POST", "/v1/collections/things/documents", json!({"title": "one"})).await.ok();
        let alert = watch("a name", &retriever, "http://127.0.0.2:4321/hook");
        let annotation = json!({"document_id": made["document_id"], "label": "good"});
        let key = json!({"name": "k"});
        let x = |count: usize| json!("x".repeat(count));
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let document = serde_json::to_value(loupe_server::openapi::document()).unwrap();
        for (number, (path, body, member, most, beyond)) in [
            ("/v1/alerts", &alert, "name", x(200), x(201)),
            ("/v1/alerts", &alert, "description", x(1000), x(1001)),
            ("/v1/alerts", &alert, "cooldown_seconds", json!(2_592_000), json!(2_592_001)),
            ("/v1/alerts", &alert, "cooldown_seconds", json!(0), json!(-1)),
            ("/v1/alerts", &alert, "renotify_interval_seconds", json!(2_592_000), json!(2_592_001)),
            ("/v1/alerts", &alert, "renotify_interval_seconds", json!(60), json!(59)),
            ("/v1/annotations", &annotation, "label", x(100), x(101)),
            ("/v1/annotations", &annotation, "reasoning", x(5000), x(5001)),
            (keys, &key, "name", x(100), x(101)),
            (keys, &key, "note", x(500), x(501)),
            (keys, &key, "description", x(500), x(501)),
            (keys, &key, "rate_limit_override", json!(1), json!(0)),
        ].into_iter().enumerate() {
            let names: &[&str] = match member {
                "note" | "description" => &["note", "description"],
                _ => &[member],
            };
            let schema = described(&document, path, member);
            assert!(keeps(&schema, &most) && !keeps(&schema, &beyond), "{path} {member}: {schema}");
            refused(server.call_in(&namespace, "POST", path, with(body, member, beyond)).await, names);
            let mut taken = with(body, member, most);
            // Names are taken once.
            if member != "name" && !taken["name"].is_null() {
                taken["name"] = format!("number {number}").into();
            }
            let answer = server.call_in(&namespace, "POST", path, taken).await;
            assert_eq!(answer.status, 200, "{path} {member}: {:#}", answer.body);
        }
        let icon = json!({"public_name": "a-page", "display_name": "A page", "icon_base64": "x".repeat(300_001)});
        let publish = format!("/v1/retrievers/{retriever}/publish");
        refused(server.call_in(&namespace, "POST", &publish, icon).await, &["icon_base64"]);
    }

    async fn lists_answer_pages_as_the_interface_says(server) {
        let (namespace, _) = crate::harness::retriever(&server, "pages").await;
        let post = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        for (member, wrong, right) in [("limit", 0, 1), ("limit", 1001, 1000), ("offset", -1, 0)] {
            refused(post("/v1/triggers/list", json!({member: wrong})).await, &[member]);
            assert_eq!(post("/v1/triggers/list", json!({member: right})).await.ok()[member], right);
        }
        let page = post("/v1/triggers/list", json!({})).await.ok();
        assert_eq!((&page["limit"], &page["offset"]), (&json!(50), &json!(0)));
        for (member, wrong, right) in [
            ("limit", 0, 1), ("limit", 1001, 1000), ("page_size", 0, 1), ("page_size", 1001, 1000), ("offset", -1, 0), ("offset", 10_001, 10_000), ("page", 0, 1),
        ] {
            let path = |number: i64| format!("/v1/notifications/list?{member}={number}");
            refused(post(&path(wrong), json!({})).await, &[member]);
            post(&path(right), json!({})).await.ok();
        }
        for (member, wrong, right) in [("limit", 0, 1), ("limit", 1001, 1000), ("page_size", 0, 1), ("page_size", 1001, 1000)] {
            for list in ["/v1/events", "/v1/collections/things/documents"] {
                let path = |number: i64| format!("{list}?{member}={number}");
                refused(server.call_in(&namespace, "GET", &path(wrong), Value::Null).await, &[member]);
                server.call_in(&namespace, "GET", &path(right), Value::Null).await.ok();
            }
        }
        // No list of documents goes deeper than ten thousand.
        let documents = "/v1/collections/things/documents";
        refused(server.call_in(&namespace, "GET", &format!("{documents}?offset=10001"), Value::Null).await, &["offset"]);

        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        let bucket = post("/v1/buckets", bucket).await.ok();
        let bucket = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        for chunk in [0, 50_001] {
            refused(post(&format!("{bucket}/batches/bulk-submit"), json!({"chunk_size": chunk})).await, &["chunk_size"]);
        }
        let large = json!({"filename": "a.txt", "content_type": "text/plain", "file_size_bytes": (500 << 20) + 1});
        refused(post(&format!("{bucket}/uploads"), large).await, &["file_size_bytes"]);
    }

    async fn a_batch_is_submitted_once_a_minute(server) {
        use crate::batches::{ended, library, object, process};
        let server = server.restart_with(|config| config.jobs.resubmit_seconds = 60).await;
        let (namespace, bucket, _) = library(&server, "passthrough_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a text"});
        object(&server, &namespace, &bucket, "a title", text).await;
        let batch = process(&server, &namespace, &bucket).await;
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let resubmit = format!("{path}/resubmit");
        let refused = server.call_in(&namespace, "POST", &resubmit, json!({})).await;
        let wait: i64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        let body = refused.error(429, "TooManyRequestsError");
        let details = &body["error"]["details"];
        assert_eq!((&details["limit"], &details["window"], &details["retry_after"]), (&json!(1), &json!("minute"), &json!(wait)));
        // Nothing was put back by what was refused.
        let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(shown["status"], "COMPLETED");
        server.app.clock().advance(wait);
        server.call_in(&namespace, "POST", &resubmit, json!({})).await.ok();
        assert_eq!(ended(&server, &namespace, &path).await["status"], "COMPLETED");
    }
}
