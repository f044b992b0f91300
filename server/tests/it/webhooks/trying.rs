//! Channels that are tried out.

use serde_json::{Value, json};

use super::{HANG, Receiver, WEBHOOKS, is_signed, secret, webhook};
use crate::{
    both,
    harness::{Answer, Server},
};

/// Sends a test through every channel of a webhook.
async fn try_out(server: &Server, webhook: &Value) -> Answer {
    let id = webhook["webhook_id"].as_str().unwrap();
    let path = format!("{WEBHOOKS}/{id}/test");
    server.call("POST", &path, Value::Null).await
}

/// What came of a channel: its number, its type, its status and that of its answer.
fn of_channel(told: &Value, place: usize) -> [Value; 4] {
    let one = &told["results"][place];
    ["channel", "channel_type", "status", "response_status"].map(|member| one[member].clone())
}

/// Each channel gets a message of its own kind, whether or not the webhook is active.
async fn every_channel_is_sent_to(server: &Server, made: &Value, receiver: &Receiver) {
    let told = try_out(server, made).await.ok();
    assert_eq!(told["success"], false, "no mail server is set up");
    for (place, kind, status, answered) in [
        (0, "webhook", "delivered", json!(200)),
        (1, "slack", "delivered", json!(200)),
        (2, "email", "not_configured", Value::Null),
    ] {
        let expected = [json!(place), json!(kind), json!(status), answered];
        assert_eq!(of_channel(&told, place), expected);
    }
    let message = told["results"][2]["message"].as_str().unwrap();
    assert!(message.contains("no mail server"), "{message}");
    let received = receiver.wait(2).await;
    let mut signed = received.iter();
    let signed = signed.find(|(headers, _)| headers.contains_key("webhook-id"));
    let (headers, body) = signed.unwrap();
    assert!(is_signed(headers, body, &secret(made)));
    let message: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(message["event_type"], "test");
}

/// What goes wrong is told in words, and a receiver that hangs is not waited for.
async fn failures_are_told(server: &Server, made: &Value, receiver: &Receiver) {
    receiver.answer(&[503, 503, HANG]);
    let told = try_out(server, made).await.ok();
    let [_, _, status, answered] = of_channel(&told, 0);
    assert_eq!((status, answered), (json!("failed"), json!(503)));
    let message = told["results"][0]["message"].as_str().unwrap();
    assert!(message.contains("what the receiver says"), "{told:#}");
    let path = format!("{WEBHOOKS}/shop");
    let mut alone = webhook("shop", &receiver.url);
    alone["channels"][0]["configs"]["timeout"] = json!(0.3);
    server.call("PUT", &path, alone).await.ok();
    let told = try_out(server, made).await.ok();
    let results = told["results"].as_array().unwrap();
    let found = (&results[0]["status"], results.len());
    assert_eq!(found, (&json!("failed"), 1), "{told:#}");
    // Who answers has time enough, also on a busy machine.
    let patient = webhook("shop", &receiver.url);
    server.call("PUT", &path, patient).await.ok();
    assert_eq!(try_out(server, made).await.ok()["success"], true);
}

async fn what_would_tell_nothing_is_refused(server: &Server, url: &str) {
    // A template that no message can be made of is refused when it is sent.
    let mut broken = webhook("broken", url);
    broken["channels"][0]["configs"]["payload_template"] = json!({"said": "{{ INPUT.event_type"});
    let member = ["body", "channels", "0", "configs", "payload_template"];
    let refused = server.call("POST", WEBHOOKS, broken).await;
    refused.invalid(&member, "value_error");
    // What no event of it is about would silence it.
    let mut silent = webhook("silent", url);
    silent["resource_types"] = json!(["zebra"]);
    for (method, path) in [
        ("POST", WEBHOOKS.to_owned()),
        ("PUT", format!("{WEBHOOKS}/shop")),
    ] {
        let refused = server.call(method, &path, silent.clone()).await;
        refused.invalid(&["body", "resource_types", "0"], "value_error");
    }
    // What tells of several, or of what was executed, is about their kind.
    silent["event_types"] = json!(["documents.deleted.batch", "resource.executed"]);
    silent["resource_types"] = json!(["document", "taxonomy"]);
    server.call("POST", WEBHOOKS, silent).await.ok();
}

/// Nothing of it is in the log or counts for the health, and it is not for sending many.
async fn tests_leave_no_trace_and_are_few(server: &Server, made: &Value) {
    let path = format!("{WEBHOOKS}/shop");
    let log = format!("{path}/deliveries");
    let log = server.call("GET", &log, Value::Null).await.ok();
    assert_eq!(log["total"], 0);
    let shown = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(shown["delivery_health"], made["delivery_health"]);
    for _ in 0..2 {
        try_out(server, made).await.ok();
    }
    let refused = try_out(server, made).await;
    refused.error(429, "TooManyRequestsError");
    let unknown = format!("{WEBHOOKS}/unknown/test");
    let unknown = server.call("POST", &unknown, Value::Null).await;
    unknown.error(404, "NotFoundError");
}

/// An alert's channels, one of them this webhook.
async fn channels_of_an_alert_are_tried(
    server: &Server,
    namespace: &str,
    made: &Value,
    receiver: &Receiver,
) {
    let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {}}});
    let post =
        async |path: &str, body: Value| server.call_in(namespace, "POST", path, body).await.ok();
    post("/v1/buckets", bucket).await;
    let collection = json!({"collection_name": "notes", "source": {"type": "direct_upsert"}, "feature_extractor": {
        "feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    post("/v1/collections", collection).await;
    let mut alert = json!({"name": "failing", "source": "system", "system_condition": {"type": "batch_failed"}, "notification_config": {"channels": [
        {"channel_type": "webhook", "channel_id": made["webhook_id"]},
        {"channel_type": "slack", "config": {"webhook_url": receiver.url}},
        {"channel_type": "batch", "config": {"bucket_id": "files", "collection_id": "notes"}},
    ]}});
    post("/v1/alerts", alert.clone()).await;
    let told = post("/v1/alerts/failing/test", Value::Null).await;
    let statuses = [0, 1, 2].map(|place| told["results"][place]["status"].as_str().unwrap());
    assert_eq!(statuses, ["delivered", "delivered", "skipped"]);
    assert_eq!(told["results"].as_array().unwrap().len(), 3, "{told:#}");
    assert_eq!(told["success"], true, "{told:#}");
    let fired = server.events("alert.triggered").await;
    assert_eq!(fired.len(), 0, "it did not fire");
    // Over all namespaces there is no bucket.
    let channels = alert["notification_config"]["channels"].as_array_mut();
    channels.unwrap().pop();
    let path = "/v1/organizations/alerts";
    server.call("POST", path, alert).await.ok();
    receiver.answer(&[500, 500]);
    let path = format!("{path}/failing/test");
    let told = server.call("POST", &path, Value::Null).await.ok();
    assert_eq!(told["success"], false);
}

both! {
    async fn channels_are_tried_out_and_what_came_of_it_is_told(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        let mut body = webhook("shop", &receiver.url);
        body["is_active"] = json!(false);
        let channels = body["channels"].as_array_mut().unwrap();
        channels.push(json!({"channel": "slack", "configs": {"webhook_url": receiver.url}}));
        channels.push(json!({"channel": "email", "configs": {"to_addresses": ["shop@example.com"]}}));
        let made = server.call("POST", WEBHOOKS, body).await.ok();
        // Six in a minute of the clock, all of them in one.
        let second = server.app.clock().micros() / 1_000_000 % 60;
        server.app.clock().advance(60 - second);
        server.app.clock().hold();
        every_channel_is_sent_to(&server, &made, &receiver).await;
        failures_are_told(&server, &made, &receiver).await;
        what_would_tell_nothing_is_refused(&server, &receiver.url).await;
        tests_leave_no_trace_and_are_few(&server, &made).await;
        channels_of_an_alert_are_tried(&server, &namespace, &made, &receiver).await;
    }
}
