//! Alerts that look when something is written, and again by themselves while nothing is.

use serde_json::{Value, json};

use super::{id, is_delivered, make, results, watch, write};
use crate::{both, harness::retriever, webhooks::Receiver};

both! {
    async fn what_rose_within_a_rest_is_told_when_that_ends(server) {
        server.app.clock().hold();
        let (namespace, retriever) = retriever(&server, "held-back").await;
        let receiver = Receiver::start().await;
        let mut body = watch("rises", &retriever, &receiver.url);
        body["cooldown_seconds"] = json!(600);
        let id = id(&make(&server, &namespace, body).await);
        write(&server, &namespace, "whale").await;
        let first = results(&server, &namespace, &id, is_delivered).await;
        receiver.wait(1).await;
        // It asks for something else now, which nobody heard of.
        let path = format!("/v1/alerts/{id}");
        server.call_in(&namespace, "PATCH", &path, json!({"min_count": 2})).await.ok();
        server.app.clock().advance(1);
        write(&server, &namespace, "dolphin").await;
        let held = results(&server, &namespace, &id, |one| one["execution_id"] != first["execution_id"]).await;
        assert_eq!((&held["match_count"], &held["triggered"]), (&json!(2), &json!(false)), "{held:#}");
        // Nothing more is written.
        server.app.clock().advance(901);
        let told = results(&server, &namespace, &id, |one| {
            one["execution_id"] != first["execution_id"] && is_delivered(one)
        }).await;
        assert_eq!(told["match_count"], 2, "{told:#}");
        receiver.wait(2).await;
    }

    async fn what_stands_is_told_again_while_nothing_is_written(server) {
        server.app.clock().hold();
        let (namespace, retriever) = retriever(&server, "standing").await;
        let receiver = Receiver::start().await;
        let mut body = watch("stands", &retriever, &receiver.url);
        body["renotify_interval_seconds"] = json!(600);
        let id = id(&make(&server, &namespace, body).await);
        let document = write(&server, &namespace, "whale").await;
        let mut last = results(&server, &namespace, &id, is_delivered).await;
        for count in 2..4 {
            server.app.clock().advance(901);
            last = results(&server, &namespace, &id, |one| {
                one["execution_id"] != last["execution_id"] && is_delivered(one)
            }).await;
            receiver.wait(count).await;
        }
        // What does not hold any more is told no more.
        let path = format!("/v1/collections/things/documents/{document}");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.app.clock().advance(901);
        let over = results(&server, &namespace, &id, |one| one["execution_id"] != last["execution_id"]).await;
        assert_eq!((&over["match_count"], &over["triggered"]), (&json!(0), &json!(false)), "{over:#}");
        receiver.wait(3).await;
    }
}
