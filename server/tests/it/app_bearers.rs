//! Apps that nobody signs in to, and whose `/api` is called with tokens of the owner's own service, or with keys.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures::future::join_all;
use loupe_server::v1::apps::{APPS, forget_clear_keys};
use serde_json::{Value, json};

use crate::{
    app_providers::Idp,
    apps::{at, visit},
    both,
    browser::app,
    harness::{Answer, Server},
};

/// A call of the app's API with this header.
async fn call(server: &Server, header: &str, value: &str) -> Answer {
    let request = at(server, "shop", "GET", "/api/collections");
    Server::send(request.header(header, value)).await
}

/// Whoever is refused hears nothing but why.
async fn is_refused(server: &Server, header: &str, value: &str, code: &str) {
    let answer = call(server, header, value).await;
    let refused = answer.error(401, "AuthenticationError");
    assert_eq!(refused["error"]["code"], code, "{header}: {value}");
}

/// Who called, as the owner reads of it, the newest first.
async fn callers(server: &Server, app: &str) -> Vec<Value> {
    let path = format!("/v1/apps/{app}/logs");
    let lines = server.call("GET", &path, Value::Null).await.ok();
    let lines = lines["results"].as_array().unwrap();
    lines.iter().map(|line| line["user_id"].clone()).collect()
}

async fn set(server: &Server, app: &str, auth: Value) -> Answer {
    let path = format!("/v1/apps/{app}");
    let change = json!({ "auth_config": auth });
    server.call("PATCH", &path, change).await
}

/// Puts into an app what one from before could have: a key in clear, and words of SAML.
async fn age(server: &Server, app: &str, key: &'static str) {
    let me = server.call("GET", "/v1/me", Value::Null).await.ok();
    let org_id = me["organization_id"].as_str().unwrap().to_owned();
    let app = app.to_owned();
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            let mut hosted = APPS.hold(tx, &org_id, &app).await?.data.0;
            let auth = hosted.auth_config.as_mut().unwrap();
            let key = json!({"name": "shop", "key": key});
            auth.api_keys = vec![key.as_object().unwrap().clone()];
            auth.saml_acs_url = Some("https://a.example".to_owned());
            let changed_at = hosted.updated_at.timestamp_micros();
            APPS.update(tx, &org_id, &app, &hosted.slug, changed_at, &hosted)
                .await
        })
    });
    write.await.unwrap();
}

/// Whether the database has this in an app.
async fn is_kept(server: &Server, text: &str) -> bool {
    let rows = "SELECT CAST(data AS TEXT) FROM apps";
    let rows: Vec<(String,)> = server.app.db().all(rows, vec![]).await.unwrap();
    rows.iter().any(|(row,)| row.contains(text))
}

both! {
    async fn a_token_of_the_owners_service_opens_the_api(server) {
        let idp = Idp::start().await;
        server.namespace("things").await;
        let keys = format!("{}/keys", idp.issuer);
        let auth = json!({"mode": "jwt", "jwt_jwks_url": keys, "jwt_issuer": idp.issuer, "jwt_audience": "club"});
        let id = app(&server, "shop", auth).await;
        let (head, good) = (json!({"alg": "ES256", "kid": "one"}), idp.claims(""));
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            idp.signed(&head, &claims, false)
        };
        let token = idp.signed(&head, &good, false);

        is_refused(&server, "accept", "*/*", "token_required").await;
        is_refused(&server, "x-api-key", &token, "token_required").await;
        let opened = call(&server, "authorization", &format!("Bearer {token}")).await.ok();
        assert!(opened["results"].is_array(), "{opened:#}");
        for wrong in [
            idp.signed(&head, &good, true),
            idp.signed(&json!({"alg": "none"}), &good, false),
            idp.signed(&json!({"alg": "HS256", "kid": "one"}), &good, false),
            idp.signed(&json!({"alg": "ES256", "kid": "two"}), &good, false),
            with("iss", json!("https://other.example")),
            with("aud", json!("other")),
            with("exp", json!(1_000)),
            with("exp", Value::Null),
            with("nbf", json!(4_000_000_000_i64)),
            with("sub", json!("")),
            "x.y.z".to_owned(),
        ] {
            is_refused(&server, "authorization", &format!("Bearer {wrong}"), "token_invalid").await;
        }
        assert_eq!(callers(&server, &id).await, ["1234"]);

        // Its pages are everybody's, what searches without a token is not, and there is no sign-in.
        let page = visit(&server, "shop", "/").await;
        assert!(page.status == 200 && !page.body.as_str().unwrap().contains("_auth"));
        assert_eq!(visit(&server, "shop", "/_auth/me").await.status, 404);
        let search = json!({"tab_id": "all"});
        let search = server.call("POST", "/v1/public/apps/shop/search", search).await;
        search.error(401, "AuthenticationError");
        let test = format!("/v1/apps/{id}/sign-in/test");
        let works = server.call("POST", &test, json!({})).await.ok();
        assert_eq!((&works["success"], &works["providers"][0]["provider"]), (&json!(true), &json!("jwt")), "{works:#}");

        // An owner who names no audience takes tokens for any; one whose keys are nowhere hears of it.
        set(&server, &id, json!({"mode": "jwt", "jwt_jwks_url": keys})).await.ok();
        let other = format!("Bearer {}", with("aud", json!("other")));
        call(&server, "authorization", &other).await.ok();
        let nowhere = format!("{}/nowhere", idp.issuer);
        set(&server, &id, json!({"mode": "jwt", "jwt_jwks_url": nowhere})).await.ok();
        assert_eq!(call(&server, "authorization", &other).await.status, 503);
        let fails = server.call("POST", &test, json!({})).await.ok();
        assert_eq!(fails["success"], false, "{fails:#}");
    }

    async fn a_key_of_the_owner_opens_the_api(server) {
        const SHOP: &str = "the-key-of-the-shop-itself";
        const DESK: &str = "the-key-of-the-desk-in-it";
        server.namespace("things").await;
        let keys = json!([{"name": "shop", "key": SHOP}, {"name": "desk", "key": DESK}]);
        let id = app(&server, "shop", json!({"mode": "api_key", "api_keys": keys})).await;
        let bearer = |key: &str| format!("Bearer {key}");
        is_refused(&server, "accept", "*/*", "token_required").await;
        is_refused(&server, "authorization", &format!("Basic {SHOP}"), "token_required").await;
        is_refused(&server, "authorization", &bearer(&SHOP[1..]), "token_invalid").await;
        is_refused(&server, "x-api-key", &server.key, "token_invalid").await;
        call(&server, "authorization", &bearer(SHOP)).await.ok();
        call(&server, "x-api-key", DESK).await.ok();
        assert_eq!(callers(&server, &id).await, ["desk", "shop"]);

        // They are told by name, and kept so that they open nothing.
        let path = format!("/v1/apps/{id}");
        let told = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!(told["auth_config"]["api_keys"], json!([{"name": "shop"}, {"name": "desk"}]));
        assert!(!is_kept(&server, SHOP).await && !is_kept(&server, DESK).await);

        // What was told can be sent again. A key that is left out opens nothing from then on, and none outlives the mode.
        let desk = json!({"mode": "api_key", "api_keys": [{"name": "desk"}]});
        set(&server, &id, desk.clone()).await.ok();
        is_refused(&server, "authorization", &bearer(SHOP), "token_invalid").await;
        call(&server, "authorization", &bearer(DESK)).await.ok();
        set(&server, &id, json!({"mode": "public", "api_keys": keys})).await.ok();
        call(&server, "accept", "*/*").await.ok();
        set(&server, &id, desk).await.invalid(&["body", "auth_config", "api_keys", "0", "key"], "value_error");
        let twice = json!({"mode": "api_key", "api_keys": [{"name": "a", "key": SHOP}, {"name": "a", "key": DESK}]});
        set(&server, &id, twice).await.invalid(&["body", "auth_config", "api_keys", "1", "name"], "value_error");
    }

    async fn keys_are_read_by_one_at_a_time_and_serve_until_they_are_over(server) {
        let idp = Idp::start().await;
        server.namespace("things").await;
        app(&server, "shop", json!({"mode": "jwt", "jwt_jwks_url": format!("{}/keys", idp.issuer)})).await;
        let bearer = |number: usize| {
            let mut claims = idp.claims("");
            claims["sub"] = json!(format!("caller {number}"));
            format!("Bearer {}", idp.signed(&json!({"alg": "ES256", "kid": "one"}), &claims, false))
        };
        let bearers: Vec<String> = (0..40).map(bearer).collect();
        let all = async |bearers: &[String]| {
            let calls = bearers.iter().map(|bearer| call(&server, "authorization", bearer));
            let answers = join_all(calls).await.into_iter();
            answers.map(|answer| answer.status).collect::<Vec<_>>()
        };
        idp.pause.store(500, Ordering::SeqCst);
        assert_eq!(all(&bearers).await, [200; 40]);
        assert_eq!(idp.reads.load(Ordering::SeqCst), 1);

        // The service hangs when its keys are to be read anew: nobody waits for it, and nobody reads them beside.
        idp.pause.store(600_000, Ordering::SeqCst);
        server.app.clock().advance(301);
        let began = Instant::now();
        assert_eq!(all(&bearers).await, [200; 40]);
        while idp.reads.load(Ordering::SeqCst) < 2 {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody reads the keys anew");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Nobody believes them for ever, nor waits for ever.
        server.app.clock().advance(300);
        let began = Instant::now();
        assert_eq!(all(&bearers[..3]).await, [503; 3]);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert!(idp.reads.load(Ordering::SeqCst) <= 3);
        idp.pause.store(0, Ordering::SeqCst);
        server.app.clock().advance(6);
        assert_eq!(all(&bearers[..1]).await, [200]);
    }

    async fn what_an_app_has_from_before_opens_nothing_and_is_in_nobodys_way(server) {
        const SHOP: &str = "the-key-of-the-shop-itself";
        const OLD: &str = "the-key-of-another-day-in-clear";
        server.namespace("things").await;
        let keys = json!([{"name": "shop", "key": SHOP}]);
        app(&server, "shop", json!({"mode": "api_key", "api_keys": keys})).await;
        let id = app(&server, "club", json!({"mode": "clerk"})).await;
        age(&server, &id, OLD).await;
        assert!(is_kept(&server, "saml_acs_url").await);
        forget_clear_keys(&server.app).await.unwrap();
        assert!(!is_kept(&server, OLD).await);
        call(&server, "x-api-key", SHOP).await.ok();

        // What is shown can be sent again, and forms send what is left empty.
        let told = server.call("GET", &format!("/v1/apps/{id}"), Value::Null).await.ok();
        let mut auth = told["auth_config"].clone();
        assert_eq!(auth["saml_acs_url"], Value::Null);
        set(&server, &id, auth.clone()).await.ok();
        auth["saml_acs_url"] = json!("");
        set(&server, &id, auth.clone()).await.ok();
        assert!(!is_kept(&server, "saml_acs_url").await);
        auth["saml_acs_url"] = json!("https://a.example");
        set(&server, &id, auth).await.invalid(&["body", "auth_config", "saml_acs_url"], "not_enabled");
    }
}
