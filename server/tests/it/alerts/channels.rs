//! Channels of alerts: each leads somewhere, and what is masked of one stays with whom it is for.

use serde_json::{Value, json};

use super::{execute, id, make, results};
use crate::{
    both,
    harness::{Server, other_organization, retriever},
    webhooks::Receiver,
};

/// One without an address, or whose settings are none.
pub(super) async fn none_is_taken_that_leads_nowhere(
    server: &Server,
    namespace: &str,
    alert: &Value,
) {
    for (channel, member, kind) in [
        (
            json!({"channel_type": "slack"}),
            Some("webhook_url"),
            "missing",
        ),
        (
            json!({"channel_type": "webhook", "config": {"url": ""}}),
            Some("url"),
            "missing",
        ),
        (
            json!({"channel_type": "batch", "config": {"bucket_id": "bkt_1"}}),
            Some("collection_id"),
            "missing",
        ),
        (
            json!({"channel_type": "email"}),
            Some("to_addresses"),
            "missing",
        ),
        (
            json!({"channel_type": "email", "config": {"to_addresses": []}}),
            Some("to_addresses"),
            "missing",
        ),
        (
            json!({"channel_type": "email", "config": {"to_addresses": "desk@example.com"}}),
            None,
            "value_error",
        ),
        (
            json!({"channel_type": "webhook", "config": {"url": "http://127.0.0.2:4321/", "timeout": "soon"}}),
            None,
            "value_error",
        ),
        (
            json!({"channel_type": "email", "config": {"to_addresses": ["desk@example.com"], "subject_template": "{{ INPUT.text"}}),
            None,
            "value_error",
        ),
    ] {
        let mut loc = vec!["body", "notification_config", "channels", "0", "config"];
        loc.extend(member);
        let mut nowhere = alert.clone();
        nowhere["notification_config"]["channels"] = json!([channel]);
        let refused = server.call_in(namespace, "POST", "/v1/alerts", nowhere);
        refused.await.invalid(&loc, kind);
    }
}

both! {
    async fn channels_are_masked_and_tried_again(server) {
        let (namespace, retriever) = retriever(&server, "masked").await;
        let receiver = Receiver::start().await;
        let webhook = server.call("POST", "/v1/organizations/webhooks", json!({
            "webhook_name": "own", "event_types": ["collection.created"],
            "channels": [{"channel": "webhook", "configs": {"url": receiver.url}}],
        })).await.ok();
        let removed = server.call("POST", "/v1/organizations/webhooks", json!({
            "webhook_name": "removed", "event_types": ["collection.created"],
            "channels": [{"channel": "webhook", "configs": {"url": receiver.url}}],
        })).await.ok();
        let body = json!({
            "name": "secret", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
            "notification_config": {"channels": [
                {"channel_type": "slack", "config": {"webhook_url": receiver.url}},
                {"channel_type": "webhook", "channel_id": webhook["webhook_id"]},
                {"channel_type": "webhook", "channel_id": removed["webhook_id"]},
            ]},
        });
        let made = make(&server, &namespace, body).await;
        let id = id(&made);
        assert_eq!(made["notification_config"]["channels"][0]["config"]["webhook_url"], "********");
        let gone = server.call("DELETE", "/v1/organizations/webhooks/removed", Value::Null).await;
        assert_eq!(gone.status, 204);
        // What is masked stays what it was, and a webhook that is gone holds up no change.
        let path = format!("/v1/alerts/{id}");
        let patch = json!({"notification_config": made["notification_config"]});
        server.call_in(&namespace, "PATCH", &path, patch).await.ok();
        receiver.answer(&[500]);
        execute(&server, &namespace, &id).await;
        let told = results(&server, &namespace, &id, |one| {
            one["deliveries"].as_array().unwrap().iter().all(|one| one["status"] != "deferred")
        }).await;
        let outcomes: Vec<_> = told["deliveries"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
        assert_eq!(outcomes, ["delivered", "delivered", "not_configured"]);
        let messages = receiver.wait(3).await;
        let chat = messages.iter().find(|(headers, _)| !headers.contains_key("webhook-id")).unwrap();
        let chat: Value = serde_json::from_slice(&chat.1).unwrap();
        assert!(chat["text"].as_str().unwrap().starts_with("secret: masked"), "{chat}");
        assert!(messages.iter().any(|(headers, _)| headers.contains_key("webhook-signature")));
    }

    async fn what_is_masked_stays_with_whom_it_is_for(server) {
        let (namespace, retriever) = retriever(&server, "moved").await;
        let (first, second) = (Receiver::start().await, Receiver::start().await);
        let chat = |url: &str, room: &str| json!({"channel_type": "slack", "config": {"webhook_url": url, "channel": room}});
        let own = json!({"channel_type": "webhook", "config": {"url": first.url, "headers": {"authorization": "secret"}}});
        let made = make(&server, &namespace, json!({
            "name": "moved", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
            "notification_config": {"channels": [chat(&first.url, "#one"), chat(&second.url, "#two"), own]},
        })).await;
        let id = id(&made);
        let shown = &made["notification_config"]["channels"];
        let patch = async |channels: Value| {
            let mut config = made["notification_config"].clone();
            config["channels"] = channels;
            let body = json!({"notification_config": config});
            server.call_in(&namespace, "PATCH", &format!("/v1/alerts/{id}"), body).await
        };
        patch(json!([shown[1], shown[2]])).await.ok();
        execute(&server, &namespace, &id).await;
        let chat: Value = serde_json::from_slice(&second.wait(1).await[0].1).unwrap();
        assert_eq!(chat["channel"], "#two");
        assert_eq!(first.wait(1).await[0].0["authorization"], "secret");

        // A header is told nobody else, and two chats that look alike are not taken for one another.
        let mut elsewhere = shown[2].clone();
        elsewhere["config"]["url"] = json!(second.url);
        patch(json!([elsewhere])).await
            .invalid(&["body", "notification_config", "channels", "0", "config", "headers"], "value_error");
        let alike = json!({"channel_type": "slack", "config": {"webhook_url": first.url, "channel": "#two"}});
        patch(json!([alike, shown[1]])).await.ok();
        patch(json!([shown[1], shown[1]])).await.ok();
        patch(json!([shown[1]])).await
            .invalid(&["body", "notification_config", "channels", "0", "config", "webhook_url"], "value_error");
    }

    async fn what_a_channel_names_is_there(server) {
        let (namespace, retriever) = retriever(&server, "named").await;
        let theirs = other_organization(&server).await;
        let webhook = json!({
            "webhook_name": "theirs", "event_types": ["collection.created"],
            "channels": [{"channel": "webhook", "configs": {"url": "http://127.0.0.2:4321/"}}],
        });
        let create = async |key: &str| {
            let request = server.request("POST", "/v1/organizations/webhooks").bearer_auth(key).json(&webhook);
            Server::send(request).await.ok()["webhook_id"].as_str().unwrap().to_owned()
        };
        let theirs = create(&theirs.key).await;
        let alert = |channel: Value| json!({
            "name": "naming", "retriever_id": retriever, "execution_mode": "on_demand",
            "notification_config": {"channels": [channel]},
        });
        let unknown = "wh_0000000000000000";
        let mut told = Vec::new();
        for id in [unknown, theirs.as_str()] {
            for channel in [
                json!({"channel_type": "webhook", "channel_id": id}),
                json!({"channel_type": "webhook", "config": {"channel_id": id}}),
                json!({"channel_type": "slack", "channel_id": id}),
            ] {
                let refused = server.call_in(&namespace, "POST", "/v1/alerts", alert(channel)).await.error(404, "NotFoundError");
                told.push(refused["error"]["message"].as_str().unwrap().replace(id, ""));
            }
            let channel = json!({"channel_type": "webhook", "channel_id": id});
            server.call("POST", "/v1/organizations/alerts", alert(channel)).await.error(404, "NotFoundError");
        }
        told.dedup();
        assert_eq!(told.len(), 1, "an id of others is one that there is not: {told:?}");
        // What has an address of its own may be called anything.
        let hook = json!({"channel_type": "webhook", "channel_id": "desk", "config": {"url": "http://127.0.0.2:4321/"}});
        let mut called = alert(hook);
        called["name"] = json!("called");
        make(&server, &namespace, called).await;
        let mail = json!({"channel_type": "email", "channel_id": "desk", "config": {"to_addresses": ["desk@example.com"]}});
        make(&server, &namespace, alert(mail)).await;
        let patch = json!({"notification_config": {"channels": [{"channel_type": "webhook", "channel_id": unknown}]}});
        server.call_in(&namespace, "PATCH", "/v1/alerts/naming", patch).await.error(404, "NotFoundError");
        let own = create(&server.key).await;
        let patch = json!({"notification_config": {"channels": [{"channel_type": "webhook", "channel_id": own}]}});
        server.call_in(&namespace, "PATCH", "/v1/alerts/naming", patch).await.ok();

        let batch = |bucket: &str, dedup: &str| {
            let config = json!({"bucket_id": bucket, "collection_id": "things", "dedup_strategy": dedup});
            let mut body = alert(json!({"channel_type": "batch", "config": config}));
            body["name"] = json!("batch");
            body
        };
        server.call_in(&namespace, "POST", "/v1/alerts", batch("bkt_none", "skip")).await.error(404, "NotFoundError");
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        server.call_in(&namespace, "POST", "/v1/alerts", batch("files", "often")).await
            .invalid(&["body", "notification_config", "channels", "0", "config", "dedup_strategy"], "enum");
        server.call("POST", "/v1/organizations/alerts", batch("files", "skip")).await
            .invalid(&["body", "notification_config", "channels", "0", "channel_type"], "value_error");
        make(&server, &namespace, batch("files", "skip")).await;
    }
}
