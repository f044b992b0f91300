//! Webhooks with several channels: each keeps its secret, its messages and its health, wherever it stands.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Receiver, WEBHOOKS, ended, happen, is_signed, receiver::Message, webhook};
use crate::{both, harness::Server};

const SHOP: &str = "/v1/organizations/webhooks/shop";

/// A webhook with a channel to each of these.
fn to(receivers: &[&Receiver]) -> Value {
    let mut body = webhook("shop", "");
    let each = receivers.iter();
    let each = each.map(|one| json!({"channel": "webhook", "configs": {"url": one.url}}));
    body["channels"] = each.collect();
    body
}

async fn put(server: &Server, receivers: &[&Receiver]) -> Value {
    server.call("PUT", SHOP, to(receivers)).await.ok()
}

async fn shown(server: &Server) -> Value {
    server.call("GET", SHOP, Value::Null).await.ok()
}

/// The secret that an answer tells of a channel.
fn secret(answer: &Value, place: usize) -> Option<String> {
    let told = answer["channels"][place]["configs"]["signing_secret"].as_str();
    told.map(ToOwned::to_owned)
}

fn signed_with((headers, body): &Message, secret: Option<&String>) -> bool {
    is_signed(headers, body, secret.unwrap())
}

/// What waits for its next attempt, once it was tried so often.
async fn waits(server: &Server, attempts: i64) -> Value {
    let start = Instant::now();
    loop {
        let path = format!("{SHOP}/deliveries?status=pending");
        let log = server.call("GET", &path, Value::Null).await.ok();
        let one = &log["results"][0];
        // Under way it still shows the moment that has passed.
        let next = one["next_attempt_at"].as_str();
        let next = next.map(|at| at.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        let is_over = next.is_some_and(|next| next > server.app.clock().now());
        if one["attempts"] == attempts && is_over {
            return one.clone();
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{log:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The webhook once its health is this.
async fn of_health(server: &Server, status: &str) -> Value {
    let start = Instant::now();
    loop {
        let shown = shown(server).await;
        if shown["delivery_health"]["status"] == status {
            return shown;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{shown:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What is said of the newest notification, and how many there are.
async fn notices(server: &Server) -> (i64, String, String) {
    let asked = json!({"notification_type": "system_alert"});
    let path = "/v1/notifications/list";
    let notices = server.call("POST", path, asked).await.ok();
    let text = |member: &str| notices["results"][0][member].as_str().unwrap().to_owned();
    let total = notices["total"].as_i64().unwrap();
    (total, text("title"), text("content"))
}

/// The webhook as it was written before its channels had keys.
async fn make_old(server: &Server) {
    let rows: Vec<(String, String)> = server
        .app
        .db()
        .all("SELECT id, CAST(data AS TEXT) FROM webhooks", vec![])
        .await
        .unwrap();
    let (id, data) = rows[0].clone();
    let mut data: Value = serde_json::from_str(&data).unwrap();
    data.as_object_mut().unwrap().remove("keys_given").unwrap();
    for kept in data["channels"].as_array_mut().unwrap() {
        let kept = kept.as_object_mut().unwrap();
        kept.remove("key").unwrap();
        kept.remove("is_paused").unwrap();
    }
    let update = "UPDATE webhooks SET data = $2 WHERE id = $1";
    let written = server.app.db().write(move |tx| {
        Box::pin(async move {
            let args = loupe_server::args![id, loupe_server::db::Arg::json(&data)];
            tx.run(update, args).await
        })
    });
    assert_eq!(written.await.unwrap(), 1);
}

both! {
    async fn a_receiver_keeps_its_secret_wherever_its_channel_stands(server) {
        let (a, b, c) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
        let namespace = server.namespace("shop").await;
        let made = server.call("POST", WEBHOOKS, to(&[&a, &b])).await.ok();
        let (of_a, of_b) = (secret(&made, 0), secret(&made, 1));
        // The first channel goes: the second is alone, and signs as it did.
        let alone = put(&server, &[&b]).await;
        assert_eq!(secret(&alone, 0), None, "it was told before");
        happen(&server, &namespace, "one").await;
        let received = b.wait(1).await;
        assert!(signed_with(&received[0], of_b.as_ref()) && !signed_with(&received[0], of_a.as_ref()));
        // What comes back is new, before what was there.
        let both = put(&server, &[&a, &b]).await;
        let anew = secret(&both, 0);
        assert_eq!((anew.is_some(), anew == of_a, secret(&both, 1)), (true, false, None));
        let turned = put(&server, &[&b, &a]).await;
        assert_eq!((secret(&turned, 0), secret(&turned, 1)), (None, None));
        happen(&server, &namespace, "two").await;
        assert!(signed_with(&b.wait(2).await[1], of_b.as_ref()));
        assert!(signed_with(&a.wait(1).await[0], anew.as_ref()));
        // An address that is changed where it stands keeps the secret; so do the others.
        let moved = put(&server, &[&b, &c]).await;
        assert_eq!((secret(&moved, 0), secret(&moved, 1)), (None, None));
        happen(&server, &namespace, "three").await;
        assert!(signed_with(&b.wait(3).await[2], of_b.as_ref()));
        assert!(signed_with(&c.wait(1).await[0], anew.as_ref()));
        a.wait(1).await;
    }

    async fn what_waits_reaches_the_channel_that_it_was_meant_for(server) {
        let (a, b) = (Receiver::start().await, Receiver::start().await);
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, to(&[&a, &b])).await.ok();
        make_old(&server).await;
        server.app.clock().hold();
        b.answer(&[500]);
        happen(&server, &namespace, "one").await;
        a.wait(1).await;
        let waiting = waits(&server, 1).await;
        assert_eq!(waiting["channel"], 1);
        put(&server, &[&b]).await;
        assert_eq!(waits(&server, 1).await["channel"], 0, "it is the first one now");
        server.app.clock().advance(7);
        let received = b.wait(2).await;
        assert_eq!(received[0].0["webhook-id"], received[1].0["webhook-id"]);
        a.wait(1).await;
        ended(&server, "shop", "delivered", 2).await;

        // What was meant for one that is gone goes nowhere, and the log says so: also when another one took its place.
        put(&server, &[&b, &a]).await;
        a.answer(&[500]);
        happen(&server, &namespace, "two").await;
        waits(&server, 1).await;
        put(&server, &[&b]).await;
        put(&server, &[&b, &a]).await;
        server.app.clock().advance(7);
        let failed = ended(&server, "shop", "failed", 1).await;
        let failed = &failed["results"][0];
        assert_eq!((&failed["error"], &failed["channel"]), (&json!("the channel was removed"), &Value::Null));
        a.wait(2).await;
        b.wait(3).await;
    }

    async fn a_receiver_that_is_gone_silences_no_other(server) {
        let (a, b) = (Receiver::start().await, Receiver::start().await);
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, to(&[&a, &b])).await.ok();
        a.answer(&[410]);
        happen(&server, &namespace, "one").await;
        b.wait(1).await;
        let paused = of_health(&server, "degraded").await;
        assert_eq!(paused["is_active"], true);
        let each = &paused["delivery_health"]["channels"];
        assert_eq!((&each[0]["status"], &each[1]["status"]), (&json!("paused"), &json!("healthy")), "{each:#}");
        assert!(each[0]["paused_for"].as_str().unwrap().contains("410"), "{each:#}");
        let (total, title, content) = notices(&server).await;
        assert_eq!((total, title.as_str()), (1, "A channel of webhook shop was paused"));
        assert!(content.contains(&a.url) && !content.contains(&b.url), "{content}");
        happen(&server, &namespace, "two").await;
        b.wait(2).await;
        a.wait(1).await;

        // With the last one the webhook is paused; set active again, all are.
        b.answer(&[410]);
        happen(&server, &namespace, "three").await;
        let paused = of_health(&server, "paused").await;
        assert_eq!(paused["is_active"], false);
        let (total, title, content) = notices(&server).await;
        assert_eq!((total, title.as_str()), (2, "Webhook shop was paused"));
        assert!(content.contains(&b.url), "{content}");
        let again = put(&server, &[&a, &b]).await;
        assert_eq!((&again["is_active"], &again["delivery_health"]["status"]), (&json!(true), &json!("healthy")));
        happen(&server, &namespace, "four").await;
        a.wait(2).await;
        b.wait(4).await;
    }

    async fn a_receiver_that_takes_nothing_for_too_long_stops_alone(server) {
        let (deaf, well) = (Receiver::start().await, Receiver::start().await);
        deaf.answer(&[500; 8]);
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, to(&[&deaf, &well])).await.ok();
        server.app.clock().hold();
        happen(&server, &namespace, "one").await;
        for (attempt, pause) in (1..).zip([5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]) {
            waits(&server, attempt).await;
            server.app.clock().advance(pause * 6 / 5 + 1);
        }
        let paused = of_health(&server, "degraded").await;
        let each = &paused["delivery_health"]["channels"];
        assert_eq!((&each[0]["consecutive_failures"], &each[1]["consecutive_failures"]), (&json!(8), &json!(0)));
        happen(&server, &namespace, "two").await;
        well.wait(2).await;
        deaf.wait(8).await;
    }
}
