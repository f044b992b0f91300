//! Webhooks: events that reach their receivers, signed, more than once if need be, and never after the receiver is gone.

mod channels;
mod receiver;
mod trying;

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

pub use receiver::{HANG, Receiver, is_signed, verify};

use self::receiver::talkative;
use crate::{
    both,
    harness::{Server, other_organization},
};

const WEBHOOKS: &str = "/v1/organizations/webhooks";

pub fn webhook(name: &str, url: &str) -> Value {
    json!({
        "webhook_name": name, "event_types": ["collection.created"],
        "channels": [{"channel": "webhook", "configs": {"url": url, "headers": {"x-shop": "books"}}}],
    })
}

/// Something that happens.
pub async fn happen(server: &Server, namespace: &str, name: &str) {
    let collection = json!({
        "collection_name": name, "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
    });
    server
        .call_in(namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
}

/// The signing secret that a new webhook's answer tells.
pub fn secret(webhook: &Value) -> String {
    webhook["channels"][0]["configs"]["signing_secret"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The newest delivery once it has been tried so often, or more often where time passed meanwhile.
async fn tried(server: &Server, name: &str, attempts: i64) -> Value {
    let start = Instant::now();
    loop {
        let log = server
            .call("GET", &format!("{WEBHOOKS}/{name}/deliveries"), Value::Null)
            .await
            .ok();
        let newest = &log["results"][0];
        // Under way it still shows the moment that has passed.
        let next = newest["next_attempt_at"]
            .as_str()
            .map(|at| at.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        let over = next.is_none_or(|next| next > server.app.clock().now());
        if newest["attempts"].as_i64() >= Some(attempts) && over {
            return newest.clone();
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{log:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The log of what ended so, once it is that long.
async fn ended(server: &Server, name: &str, status: &str, count: i64) -> Value {
    let start = Instant::now();
    // A page holds ten where nothing else is asked for.
    let path = format!("{WEBHOOKS}/{name}/deliveries?status={status}&limit=100");
    loop {
        let log = server.call("GET", &path, Value::Null).await.ok();
        // The page and the total are read one after the other: only the page says what can be looked at.
        let there = log["results"].as_array().map_or(0, Vec::len);
        if i64::try_from(there).unwrap() >= count {
            return log;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{log:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

both! {
    async fn an_event_reaches_its_receiver_signed(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        happen(&server, &namespace, "before the webhook").await;
        let made = server.call("POST", WEBHOOKS, webhook("shop", &receiver.url)).await.ok();
        let id = made["webhook_id"].as_str().unwrap();
        assert!(id.len() == 19 && id.starts_with("wh_"), "{id}");
        assert!(secret(&made).starts_with("whsec_"));
        happen(&server, &namespace, "books").await;
        let bucket = json!({"bucket_name": "other kind of event", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();

        let received = receiver.wait(1).await;
        let (headers, body) = &received[0];
        assert!(is_signed(headers, body, &secret(&made)), "{headers:?}");
        assert_eq!((headers["content-type"].to_str().unwrap(), headers["x-shop"].to_str().unwrap()), ("application/json", "books"));
        let told: Value = serde_json::from_slice(body).unwrap();
        let event = &server.events("collection.created").await[1];
        for member in ["seq", "event_type", "namespace_id", "resource_type", "operation", "payload"] {
            assert_eq!(told[member], event[member], "{member}");
        }
        assert_eq!(told["occurred_at"], event["created_at"]);
        let log = tried(&server, "shop", 1).await;
        assert_eq!((&log["status"], &log["response_status"], &log["delivery_id"]), (&json!("delivered"), &json!(200), &json!(headers["webhook-id"].to_str().unwrap())));

        // The secret was told once.
        for shown in [
            server.call("GET", &format!("{WEBHOOKS}/{id}"), Value::Null).await.ok(),
            server.call("POST", &format!("{WEBHOOKS}/list"), json!({"is_active": true, "event_type": "collection.created"})).await.ok()["results"][0].clone(),
        ] {
            assert_eq!(shown["channels"][0]["configs"], json!({"url": receiver.url, "headers": {"x-shop": "books"}, "timeout": 10.0}));
            assert_eq!(shown["delivery_health"]["status"], "healthy");
        }
        let rows: Vec<(String,)> = server.app.db().all("SELECT CAST(data AS TEXT) FROM webhooks", vec![]).await.unwrap();
        assert!(!rows[0].0.contains("whsec_") && !rows[0].0.contains("/hook") && !rows[0].0.contains("books"), "{}", rows[0].0);

        let none = server.call("POST", &format!("{WEBHOOKS}/list"), json!({"is_active": false})).await.ok();
        assert_eq!(none["total"], 0);
        assert_eq!(server.call("DELETE", &format!("{WEBHOOKS}/{id}"), Value::Null).await.status, 204);
        server.call("GET", &format!("{WEBHOOKS}/{id}"), Value::Null).await.error(404, "NotFoundError");
        happen(&server, &namespace, "nobody is told").await;
        receiver.wait(1).await;
    }

    async fn what_fails_is_tried_again_on_a_schedule_until_the_receiver_is_gone(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, webhook("shop", &receiver.url)).await.ok();
        receiver.answer(&[500, 503, 302, 404, 500, 410]);
        server.app.clock().hold();
        happen(&server, &namespace, "books").await;
        for (attempt, pause) in [5, 300, 1_800, 7_200, 18_000].into_iter().enumerate() {
            let log = tried(&server, "shop", i64::try_from(attempt).unwrap() + 1).await;
            assert!(log["error"].as_str().unwrap().contains("what the receiver says"), "{log:#}");
            let next: chrono::DateTime<chrono::Utc> = log["next_attempt_at"].as_str().unwrap().parse().unwrap();
            let wait = (next - server.app.clock().now()).num_milliseconds() as f64 / 1000.0;
            let pause = f64::from(pause);
            assert!((pause * 0.8 - 2.0..=pause * 1.2).contains(&wait), "attempt {attempt} waits {wait} of {pause}");
            server.app.clock().advance((pause * 1.2) as i64 + 1);
        }
        let received = receiver.wait(6).await;
        let of = |name: &str| received.iter().map(|(headers, _)| headers[name].to_str().unwrap()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!((of("webhook-id").len(), of("webhook-timestamp").len()), (1, 6), "one message, signed anew each time");
        assert!(received.iter().all(|(_, body)| *body == received[0].1));

        // Gone is gone: the webhook is paused and people are told.
        let log = tried(&server, "shop", 6).await;
        assert_eq!((&log["status"], &log["response_status"]), (&json!("failed"), &json!(410)));
        let shown = server.call("GET", &format!("{WEBHOOKS}/shop"), Value::Null).await.ok();
        assert_eq!((&shown["is_active"], &shown["delivery_health"]["status"]), (&json!(false), &json!("paused")));
        let notices = server.call("POST", "/v1/notifications/list", json!({"notification_type": "system_alert"})).await.ok();
        assert_eq!((&notices["total"], &notices["results"][0]["title"]), (&json!(1), &json!("Webhook shop was paused")));
        happen(&server, &namespace, "unheard").await;
        receiver.wait(6).await;

        // Set active again it sends what comes, and the log can be replayed under the id it had.
        server.call("PUT", &format!("{WEBHOOKS}/shop"), webhook("shop", &receiver.url)).await.ok();
        let replay = format!("{WEBHOOKS}/shop/deliveries/{}/replay", log["delivery_id"].as_str().unwrap());
        assert_eq!(server.call("POST", &replay, Value::Null).await.ok()["status"], "pending");
        let received = receiver.wait(7).await;
        assert_eq!(received[6].0["webhook-id"], received[0].0["webhook-id"]);
        // The receiver knows of it before that is written.
        assert_eq!(ended(&server, "shop", "delivered", 1).await["results"].as_array().unwrap().len(), 1);
        server.call("POST", &format!("{WEBHOOKS}/shop/deliveries/msg_unknown/replay"), Value::Null).await.error(404, "NotFoundError");
    }

    /// R-26 in short form: fake hours pass, and the receiver hangs for longer than its channel allows.
    async fn every_way_to_fail_is_got_over_with_one_id_two_secrets_and_a_restart(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        let path = format!("{WEBHOOKS}/shop");
        let mut body = webhook("shop", &receiver.url);
        let old = secret(&server.call("POST", WEBHOOKS, body.clone()).await.ok());
        receiver.answer(&[500, 500, 500, 500, 500, HANG, 302, 410]);
        server.app.clock().hold();
        happen(&server, &namespace, "books").await;
        let mut passed = 0;
        for (attempt, pause) in (1..).zip([5, 300, 1_800, 7_200]) {
            assert_eq!(tried(&server, "shop", attempt).await["response_status"], 500);
            passed += pause * 6 / 5 + 1;
            server.app.clock().advance(pause * 6 / 5 + 1);
        }
        tried(&server, "shop", 5).await;
        let new = format!("whsec_{}", STANDARD.encode([9; 24]));
        body["channels"][0]["configs"]["signing_secret"] = json!(new);
        // The next attempt is the one that nobody answers; those that are answered have time enough on a busy machine.
        body["channels"][0]["configs"]["timeout"] = json!(0.3);
        server.call("PUT", &path, body).await.ok();
        let server = server.restart().await;
        server.app.clock().advance(passed + 18_000 * 6 / 5 + 1);
        let hung = tried(&server, "shop", 6).await;
        assert_eq!((&hung["status"], &hung["response_status"]), (&json!("pending"), &Value::Null), "{hung:#}");
        let patient = webhook("shop", &receiver.url);
        server.call("PUT", &path, patient.clone()).await.ok();
        for (attempt, status) in [(7, 302), (8, 410)] {
            server.app.clock().advance(36_000 * 6 / 5 + 1);
            assert_eq!(tried(&server, "shop", attempt).await["response_status"], status);
        }
        let received = receiver.wait(8).await;
        let of = |name: &str| received.iter().map(|(headers, _)| headers[name].to_str().unwrap()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!((of("webhook-id").len(), of("webhook-timestamp").len()), (1, 8), "one message, signed anew each time");
        let signed = |place: usize, secret: &str| is_signed(&received[place].0, &received[place].1, secret);
        assert!((0..7).all(|place| signed(place, &old)), "the old secret signs for a day more");
        assert!((5..7).all(|place| signed(place, &new)) && !signed(4, &new));
        assert_eq!(server.call("GET", &path, Value::Null).await.ok()["is_active"], false, "gone is gone");

        server.call("PUT", &path, patient).await.ok();
        let id = of("webhook-id").into_iter().next().unwrap();
        server.call("POST", &format!("{path}/deliveries/{id}/replay"), Value::Null).await.ok();
        let again = receiver.wait(9).await;
        assert_eq!(again[8].0["webhook-id"], id);
        assert!(is_signed(&again[8].0, &again[8].1, &new));
        ended(&server, "shop", "delivered", 1).await;
    }

    async fn a_receiver_that_hangs_holds_up_nobody_else(server) {
        const EVENTS: usize = 40;
        let (dead, well) = (Receiver::start().await, Receiver::start().await);
        dead.answer(&[HANG; EVENTS]);
        let namespace = server.namespace("shop").await;
        for (name, receiver) in [("dead", &dead), ("well", &well)] {
            let mut body = webhook(name, &receiver.url);
            body["channels"][0]["configs"]["timeout"] = json!(30);
            server.call("POST", WEBHOOKS, body).await.ok();
        }
        for number in 0..EVENTS {
            happen(&server, &namespace, &format!("books {number}")).await;
        }
        // Before the first attempt at the dead one ends.
        let start = Instant::now();
        ended(&server, "well", "delivered", EVENTS as i64).await;
        assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
        well.wait(EVENTS).await;
        let log = server.call("GET", &format!("{WEBHOOKS}/dead/deliveries?status=pending"), Value::Null).await.ok();
        assert_eq!(log["total"], EVENTS);
        assert!(dead.received.lock().unwrap().len() <= 8, "a few at a time");
    }

    async fn what_is_said_beside_the_status_and_a_missing_mail_server_pause_nothing(server) {
        let url = talkative().await;
        let namespace = server.namespace("shop").await;
        let mut body = webhook("shop", &format!("{url}/long"));
        let channels = body["channels"].as_array_mut().unwrap();
        channels.push(json!({"channel": "webhook", "configs": {"url": format!("{url}/packed")}}));
        channels.push(json!({"channel": "email", "configs": {"to_addresses": ["shop@example.com"]}}));
        server.call("POST", WEBHOOKS, body).await.ok();
        happen(&server, &namespace, "books").await;
        ended(&server, "shop", "delivered", 2).await;
        let failed = ended(&server, "shop", "failed", 1).await;
        assert!(failed["results"][0]["error"].as_str().unwrap().contains("no mail server"), "{failed:#}");
        let shown = server.call("GET", &format!("{WEBHOOKS}/shop"), Value::Null).await.ok();
        assert_eq!((&shown["is_active"], &shown["delivery_health"]["status"]), (&json!(true), &json!("healthy")));
    }

    async fn a_message_that_is_never_taken_pauses_only_what_delivers_nothing_else(server) {
        let (picky, deaf) = (Receiver::start().await, Receiver::start().await);
        picky.answer(&[400; 7]);
        deaf.answer(&[500; 40]);
        let namespace = server.namespace("shop").await;
        for (name, receiver) in [("picky", &picky), ("deaf", &deaf)] {
            server.call("POST", WEBHOOKS, webhook(name, &receiver.url)).await.ok();
        }
        happen(&server, &namespace, "books").await;
        for (attempt, pause) in (1..).zip([5, 300, 1_800, 7_200, 18_000, 36_000]) {
            tried(&server, "picky", attempt).await;
            tried(&server, "deaf", attempt).await;
            server.app.clock().advance(pause * 6 / 5 + 1);
        }
        tried(&server, "picky", 7).await;
        tried(&server, "deaf", 7).await;
        happen(&server, &namespace, "maps").await;
        ended(&server, "picky", "delivered", 1).await;
        picky.answer(&[400]);
        server.app.clock().advance(36_000 * 6 / 5 + 1);
        let failed = ended(&server, "picky", "failed", 1).await;
        assert_eq!(failed["results"][0]["attempts"], 8);
        let shown = server.call("GET", &format!("{WEBHOOKS}/picky"), Value::Null).await.ok();
        assert_eq!(shown["is_active"], true, "it takes other messages");
        ended(&server, "deaf", "failed", 1).await;
        let shown = server.call("GET", &format!("{WEBHOOKS}/deaf"), Value::Null).await.ok();
        assert_eq!((&shown["is_active"], &shown["delivery_health"]["status"]), (&json!(false), &json!("paused")));
    }

    async fn nothing_is_sent_while_a_webhook_is_paused(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, webhook("shop", &receiver.url)).await.ok();
        receiver.answer(&[500, 410]);
        happen(&server, &namespace, "books").await;
        tried(&server, "shop", 1).await;
        happen(&server, &namespace, "maps").await;
        ended(&server, "shop", "failed", 1).await;
        // What waited for another attempt waits no longer.
        server.app.clock().advance(7);
        let failed = ended(&server, "shop", "failed", 2).await;
        receiver.wait(2).await;
        let failed = failed["results"].as_array().unwrap();
        let skipped = failed.iter().find(|one| one["error"].as_str().unwrap().contains("not active")).unwrap();
        let path = format!("{WEBHOOKS}/shop");
        let shown = server.call("GET", &path, Value::Null).await.ok();
        assert!(shown["delivery_health"]["last_error"].as_str().unwrap().contains("410"), "{shown:#}");
        server.call("PUT", &path, webhook("shop", &receiver.url)).await.ok();
        let replay = format!("{path}/deliveries/{}/replay", skipped["delivery_id"].as_str().unwrap());
        server.call("POST", &replay, Value::Null).await.ok();
        receiver.wait(3).await;
        ended(&server, "shop", "delivered", 1).await;
    }

    async fn a_receiver_that_is_added_later_is_told_its_secret_once(server) {
        let receiver = Receiver::start().await;
        let first = webhook("shop", &receiver.url);
        server.call("POST", WEBHOOKS, first.clone()).await.ok();
        let mut two = first.clone();
        let added = json!({"channel": "webhook", "configs": {"url": format!("{}/second", receiver.url)}});
        two["channels"].as_array_mut().unwrap().push(added);
        let path = format!("{WEBHOOKS}/shop");
        let told = server.call("PUT", &path, two.clone()).await.ok();
        let secret = |answer: &Value, number: usize| answer["channels"][number]["configs"]["signing_secret"].clone();
        assert_eq!(secret(&told, 0), Value::Null, "it was told before");
        assert!(secret(&told, 1).as_str().unwrap().starts_with("whsec_"), "{told:#}");
        assert_eq!(secret(&server.call("PUT", &path, two).await.ok(), 1), Value::Null);
        assert_eq!(secret(&server.call("GET", &path, Value::Null).await.ok(), 1), Value::Null);
    }

    async fn a_changed_secret_leaves_the_old_one_valid_for_a_day(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        let made = server.call("POST", WEBHOOKS, webhook("shop", &receiver.url)).await.ok();
        let old = secret(&made);
        let new = format!("whsec_{}", STANDARD.encode([7; 24]));
        let mut changed = webhook("shop", &receiver.url);
        changed["channels"][0]["configs"]["signing_secret"] = json!(new);
        server.call("PUT", &format!("{WEBHOOKS}/shop"), changed).await.ok();
        // A change without a secret changes none.
        server.call("PUT", &format!("{WEBHOOKS}/shop"), webhook("shop", &receiver.url)).await.ok();
        happen(&server, &namespace, "books").await;
        let received = receiver.wait(1).await;
        assert!(is_signed(&received[0].0, &received[0].1, &old) && is_signed(&received[0].0, &received[0].1, &new));
        let verified = |(headers, body): &self::receiver::Message, secret: &str| {
            verify(headers, body, secret, server.app.clock().micros() / 1_000_000)
        };
        // Whoever holds either secret takes it, with a library.
        assert_eq!((verified(&received[0], &old), verified(&received[0], &new)), (Ok(()), Ok(())));
        assert!(verified(&received[0], &format!("whsec_{}", STANDARD.encode([8; 24]))).is_err());
        let mut forged = received[0].clone();
        forged.1.push(b' ');
        assert!(verified(&forged, &new).is_err());
        server.app.clock().advance(86_401);
        assert!(verified(&received[0], &new).is_err(), "it is of yesterday");
        happen(&server, &namespace, "maps").await;
        let received = receiver.wait(2).await;
        assert!(is_signed(&received[1].0, &received[1].1, &new) && !is_signed(&received[1].0, &received[1].1, &old));
        assert!(verified(&received[1], &new).is_ok() && verified(&received[1], &old).is_err());
    }

    async fn secrets_are_such_as_receivers_can_read(server) {
        let receiver = Receiver::start().await;
        let mut body = webhook("shop", &receiver.url);
        body["channels"][0]["configs"]["signing_secret"] = json!("whsec_not base64");
        let path = ["body", "channels", "0", "configs", "signing_secret"];
        server.call("POST", WEBHOOKS, body.clone()).await.invalid(&path, "value_error");
        // An empty one is none: nobody's messages are signed with nothing.
        body["channels"][0]["configs"]["signing_secret"] = json!("");
        let made = server.call("POST", WEBHOOKS, body.clone()).await.ok();
        assert!(secret(&made).starts_with("whsec_"), "{made:#}");
        server.call("PUT", &format!("{WEBHOOKS}/shop"), body).await.ok();
        let namespace = server.namespace("shop").await;
        happen(&server, &namespace, "books").await;
        let received = receiver.wait(1).await;
        let now = server.app.clock().micros() / 1_000_000;
        assert_eq!(verify(&received[0].0, &received[0].1, &secret(&made), now), Ok(()));
    }

    async fn deliveries_outlive_the_process(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        server.call("POST", WEBHOOKS, webhook("shop", &receiver.url)).await.ok();
        receiver.answer(&[500]);
        happen(&server, &namespace, "books").await;
        tried(&server, "shop", 1).await;
        let server = server.restart().await;
        server.app.clock().advance(3_600);
        let received = receiver.wait(2).await;
        assert_eq!(received[0].0["webhook-id"], received[1].0["webhook-id"]);
        assert_eq!(tried(&server, "shop", 2).await["status"], "delivered");
    }

    async fn chats_and_own_bodies_get_what_they_are_told(server) {
        let receiver = Receiver::start().await;
        let namespace = server.namespace("shop").await;
        let body = json!({
            "webhook_name": "both", "event_types": ["collection.created", "collection.deleted"], "resource_types": ["collection"],
            "channels": [
                {"channel": "slack", "configs": {"webhook_url": receiver.url, "channel": "#shop"}},
                {"channel": "webhook", "configs": {"url": receiver.url, "payload_template": {"what": "{{INPUT.event_type}}", "number": "{{INPUT.seq}}"}}},
                {"channel": "email", "configs": {"to_addresses": ["shop@example.com"]}},
            ],
        });
        server.call("POST", WEBHOOKS, body).await.ok();
        happen(&server, &namespace, "books").await;
        let received = receiver.wait(2).await;
        let mut bodies: Vec<Value> = received.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect();
        bodies.sort_by_key(|body| body["what"].is_null());
        assert_eq!(bodies[0], json!({"what": "collection.created", "number": server.events("collection.created").await[0]["seq"]}));
        assert!(bodies[1]["text"].as_str().unwrap().starts_with("collection.created · collection_id col_"), "{}", bodies[1]);
        assert_eq!(bodies[1]["channel"], "#shop");
    }

    async fn what_cannot_be_sent_to_is_refused(server) {
        let post = async |change: Value| {
            let mut body = webhook("shop", "https://example.com/hook");
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            server.call("POST", WEBHOOKS, body).await
        };
        let to = |configs: Value| json!({"channels": [{"channel": "webhook", "configs": configs}]});
        for url in ["http://127.0.0.1:8080/", "http://169.254.169.254/latest", "ftp://example.com/", "not an address", "http://[::1]/"] {
            post(to(json!({"url": url}))).await.invalid(&["body", "channels", "0", "configs", "url"], "value_error");
        }
        post(to(json!({}))).await.invalid(&["body", "channels", "0", "configs"], "value_error");
        post(to(json!({"url": "https://example.com/", "timeout": 300.0}))).await.invalid(&["body", "channels", "0", "configs", "timeout"], "value_error");
        post(to(json!({"url": "https://example.com/", "headers": {"two words": "x"}}))).await.invalid(&["body", "channels", "0", "configs", "headers"], "value_error");
        post(json!({"channels": []})).await.invalid(&["body", "channels"], "too_short");
        let many: Vec<Value> = (0..11).map(|_| json!({"channel": "webhook", "configs": {"url": "https://example.com/"}})).collect();
        post(json!({"channels": many})).await.invalid(&["body", "channels"], "too_long");
        post(json!({"event_types": ["collection.burnt"]})).await.invalid(&["body", "event_types", "0"], "enum");
        post(json!({})).await.ok();
        post(json!({})).await.error(409, "AlreadyExistsError");
        let other = other_organization(&server).await;
        for (method, path) in [("GET", format!("{WEBHOOKS}/shop")), ("DELETE", format!("{WEBHOOKS}/shop")), ("GET", format!("{WEBHOOKS}/shop/deliveries"))] {
            Server::send(server.request(method, &path).bearer_auth(&other.key)).await.error(404, "NotFoundError");
        }
        server.call("GET", &format!("{WEBHOOKS}/shop"), Value::Null).await.ok();
    }
}
