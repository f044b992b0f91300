//! What whoever runs a server sees: health, figures, request ids, methods, origins, the log.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    both,
    harness::{Answer, Database, Server, config},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// Bytes as they are, so that a request may break the rules of HTTP; answers all that comes back.
async fn raw(server: &Server, request: &str) -> String {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream
        .write_all(request.replace("ADDRESS", address).as_bytes())
        .await
        .unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn plain(server: &Server, path: &str) -> Answer {
    Server::send(server.request("GET", path)).await
}

both! {
    async fn health_tells_what_answers(server) {
        assert_eq!(plain(&server, "/healthz").await.ok(), "ok");
        assert_eq!(plain(&server, "/readyz").await.ok(), "ready");
        let health = plain(&server, "/v1/health").await.ok();
        assert_eq!(health["status"], "OK", "{health:#}");
        assert_eq!(health["data"]["vector_store"], true);
        assert_eq!(health["errors"], Value::Null);
        plain(&server, "/v1/health/beat").await.ok();
        // It asks nothing, so it tells of nothing that is unwell.
        let alive = plain(&server, "/v1/health/liveness").await.ok();
        let told = alive["data"].as_object().unwrap();
        assert!(alive["status"] == "OK" && told.values().all(|one| *one == json!(true)), "{alive:#}");
        plain(&server, "/v1/health/deep").await.error(401, "AuthenticationError");
        let deep = server.call("GET", "/v1/health/deep?metrics=true", Value::Null).await.ok();
        assert!(deep["meta"]["milliseconds"]["metadata"].as_f64().unwrap() >= 0.0, "{deep:#}");
        assert!(!deep["meta"]["models"].as_array().unwrap().is_empty());

        // A store that is closed is told, and the process that leaves is not ready.
        server.app.store().close().await.unwrap();
        let health = plain(&server, "/v1/health").await.ok();
        assert_eq!((&health["status"], &health["data"]["vector_store"]), (&json!("DEGRADED"), &json!(false)));
        assert!(health["errors"]["vector_store"].is_string(), "{health:#}");
        server.app.leave();
        assert_eq!(plain(&server, "/readyz").await.status, 503);
        let still = plain(&server, "/healthz").await;
        assert_eq!(still.headers["connection"], "close");
        still.ok();
    }

    async fn figures_count_what_was_answered(server) {
        let namespace = server.namespace("counted").await;
        for _ in 0..3 {
            server.call_in(&namespace, "GET", "/v1/buckets", Value::Null).await.ok();
        }
        server.call_in(&namespace, "GET", "/v1/buckets/bkt_unknown", Value::Null).await.error(404, "NotFoundError");
        let text = plain(&server, "/metrics").await.ok();
        let text = text.as_str().unwrap();
        for line in [
            r#"loupe_requests_total{operation="GET /v1/buckets",status="200"} 3"#,
            r#"loupe_requests_total{operation="GET /v1/buckets/{bucket_identifier}",status="404"} 1"#,
            r#"loupe_request_seconds_count{operation="GET /v1/buckets"} 3"#,
            r#"loupe_request_seconds_bucket{operation="GET /v1/buckets",le="+Inf"} 3"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        for name in ["loupe_requests_running 0", "loupe_store_bytes{store=\"documents\"} ", "loupe_database_connections ", "# TYPE loupe_batches gauge", "# TYPE loupe_queue gauge", "process_resident_memory_bytes "] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
        // Who comes over a proxy is not this machine.
        let forwarded = server.request("GET", "/metrics").header("x-forwarded-for", "203.0.113.9");
        Server::send(forwarded).await.error(403, "ForbiddenError");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.metrics_token = "scrape".to_owned().into();
    let server = Server::start_with(config, folder, None).await;
    plain(&server, "/metrics")
        .await
        .error(403, "ForbiddenError");
    for (token, status) in [("scrape", 200), ("scrapes", 403)] {
        let request = server.request("GET", "/metrics").bearer_auth(token);
        assert_eq!(Server::send(request).await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_have_ids_and_strange_ones_are_refused() {
    let server = Server::start(Database::Sqlite).await;
    let ids = [
        plain(&server, "/v1/me").await,
        plain(&server, "/nowhere").await,
    ];
    let ids = ids.map(|answer| answer.headers["x-request-id"].to_str().unwrap().to_owned());
    assert_eq!(ids[0].len(), 32);
    assert_ne!(ids[0], ids[1]);
    for (sent, kept) in [
        ("mine-1", true),
        (&"x".repeat(129), false),
        ("with space", false),
    ] {
        let answer =
            Server::send(server.request("GET", "/v1/me").header("x-request-id", sent)).await;
        assert_eq!(answer.headers["x-request-id"] == *sent, kept, "{sent}");
    }

    for (method, path) in [
        ("TRACE", "/v1/me"),
        ("BREW", "/v1/me"),
        ("CONNECT", "/v1/me"),
        ("TRACE", "/nowhere"),
        ("PUT", "/v1/me"),
        ("OPTIONS", "/v1/me"),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: ADDRESS\r\nconnection: close\r\nx-secret: told\r\n\r\n"
        );
        let answer = raw(&server, &request).await;
        assert!(
            answer.starts_with("HTTP/1.1 405") && answer.contains("\"success\":false"),
            "{method} {path}: {answer}"
        );
        assert!(!answer.contains("told"), "{answer}");
    }
    let head = format!(
        "POST /v1/namespaces/list HTTP/1.1\r\nhost: ADDRESS\r\nauthorization: Bearer {}\r\nconnection: close\r\n",
        server.key
    );
    for lengths in [
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "content-length: 2, 3\r\n\r\n{}",
        "transfer-encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "content-length: -2\r\n\r\n{}",
    ] {
        let answer = raw(&server, &format!("{head}{lengths}")).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{lengths:?}: {answer}");
    }
    // Both: the length is not believed, so that no second request can hide behind the first.
    let both = "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/me HTTP/1.1\r\nhost: hidden\r\n\r\n";
    let answer = raw(&server, &format!("{head}{both}")).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.limits.body_bytes = 1000;
    let server = Server::start_with(config, folder, None).await;
    let long = json!({"namespace_name": "x".repeat(1000)});
    let refused = server.call("POST", "/v1/namespaces", long.clone()).await;
    refused.error(413, "BadRequestError");
    let named = server
        .request("POST", "/v1/namespaces")
        .bearer_auth(&server.key)
        .header("idempotency-key", "1")
        .json(&long);
    Server::send(named).await.error(413, "BadRequestError");
}

/// What browsers ask before they ask.
async fn preflights_are_answered(server: &Server) {
    let preflight = async |path: &str, origin: &str| {
        let request = server
            .request("OPTIONS", path)
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization");
        let answer = Server::send(request).await;
        assert_eq!(
            (answer.status, answer.headers["vary"].to_str().unwrap()),
            (204, "origin")
        );
        answer
            .headers
            .get("access-control-allow-headers")
            .is_some_and(|value| value.to_str().unwrap().contains("x-namespace"))
    };
    assert!(preflight("/v1/me", "https://shop.example").await);
    assert!(preflight("/v1/public/retrievers/any/execute", "https://shop.example").await);
    assert!(!preflight("/v1/me", "null").await);
    assert!(!preflight("/console/", "https://shop.example").await);
    // Without an origin nothing about origins is said.
    let plain = server.call("GET", "/v1/me", Value::Null).await;
    assert!(
        !plain.headers.contains_key("access-control-allow-origin")
            && !plain.headers.contains_key("vary")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn origins_read_what_their_key_allows() {
    let server = Server::start(Database::Sqlite).await;
    let made = json!({"name": "browser", "allowed_origins": ["https://shop.example", "https://*.example.org"]});
    let made = server.call("POST", KEYS, made).await.ok();
    let listed = made["key"].as_str().unwrap();
    let ask = async |key: &str, origin: &str| {
        let request = server
            .request("GET", "/v1/me")
            .bearer_auth(key)
            .header("origin", origin);
        let answer = Server::send(request).await;
        let echoed = answer.headers.get("access-control-allow-origin");
        (
            answer.status,
            echoed.map(|value| value.to_str().unwrap().to_owned()),
        )
    };
    for origin in [
        "https://shop.example",
        "https://a.example.org",
        "https://a.b.example.org",
    ] {
        assert_eq!(ask(listed, origin).await, (200, Some(origin.to_owned())));
    }
    for origin in [
        "null",
        "https://shop.example.evil",
        "https://evil-shop.example",
        "https://shop.example:8443",
        "http://shop.example",
        "https://example.org",
        "https://a.example.org.evil",
        "https://evil-example.org",
        "http://a.example.org",
        "https://a.example.org:444",
    ] {
        assert_eq!(ask(listed, origin).await, (403, None), "{origin}");
    }
    // A key without a list is for every origin that has a name.
    assert_eq!(
        ask(&server.key, "https://anywhere.example").await,
        (200, Some("*".to_owned()))
    );
    assert_eq!(ask(&server.key, "null").await, (200, None));
    assert_eq!(
        ask("nonsense", "https://anywhere.example").await,
        (401, Some("*".to_owned()))
    );
    preflights_are_answered(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_answers_as_often_as_its_owner_says() {
    let server = Server::start(Database::Sqlite).await;
    let (namespace, retriever) = crate::harness::retriever(&server, "shop").await;
    let publish = format!("/v1/retrievers/{retriever}/publish");
    let limits =
        json!({"requests_per_minute": 3, "enable_ip_limits": true, "max_requests_per_ip_hour": 4});
    let body = json!({"public_name": "shop", "rate_limit_config": limits});
    server
        .call_in(&namespace, "POST", &publish, body)
        .await
        .ok();
    let search = async || {
        let request = server
            .request("POST", "/v1/public/retrievers/shop/execute")
            .json(&json!({}));
        Server::send(request).await
    };
    // A new hour of the clock, which goes no further by itself: the searches fall into one minute, and the next minute into
    // the same hour.
    let seconds = server.app.clock().now().timestamp().rem_euclid(3600);
    server.app.clock().advance(3600 - seconds);
    server.app.clock().hold();
    for _ in 0..3 {
        search().await.ok();
    }
    let refused = search().await;
    let wait = refused.headers["retry-after"].to_str().unwrap();
    let wait: i64 = wait.parse().unwrap();
    let body = refused.error(429, "TooManyRequestsError");
    let told = &body["error"]["details"];
    assert_eq!(
        (&told["limit"], &told["window"]),
        (&json!(3), &json!("minute"))
    );
    let page = plain(&server, "/r/shop").await;
    assert!(
        page.status == 429 && page.headers.contains_key("retry-after"),
        "{}",
        page.status
    );
    server.app.clock().advance(wait);
    let body = search().await.error(429, "TooManyRequestsError");
    let told = &body["error"]["details"];
    assert_eq!(
        (&told["limit"], &told["window"]),
        (&json!(4), &json!("hour"))
    );
    server
        .call_in(
            &namespace,
            "PATCH",
            &publish,
            json!({"rate_limit_config": {"enabled": false}}),
        )
        .await
        .ok();
    for _ in 0..6 {
        search().await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_shows_every_operation_and_loads_nothing_from_elsewhere() {
    let server = Server::start(Database::Sqlite).await;
    let document = plain(&server, "/v1/openapi.json").await.ok();
    let answer = plain(&server, "/docs").await;
    assert!(
        answer.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'")
    );
    let page = answer.ok();
    let page = page.as_str().unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item
            .as_object()
            .unwrap()
            .values()
            .filter(|operation| operation["responses"].is_object())
        {
            let id = operation["operationId"].as_str().unwrap();
            assert!(
                page.contains(&format!("<details id=\"{id}\"")),
                "{path} {id}"
            );
        }
    }
    assert!(
        page.contains("<h2>blobs</h2><p>Bytes of files,"),
        "areas are told in words"
    );
    let models = plain(&server, "/docs/models").await.ok();
    let models = models.as_str().unwrap();
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(
            models.contains(&format!("<details id=\"{name}\"")),
            "{name}"
        );
    }
    for text in [page, models] {
        for (place, _) in text
            .match_indices("src=\"")
            .chain(text.match_indices("href=\""))
        {
            let address = text[place..]
                .split('"')
                .nth(1)
                .unwrap()
                .replace("&#x2f;", "/");
            assert!(
                address.starts_with('/') && !address.starts_with("//")
                    || address.starts_with('#')
                    || address == "data:,",
                "{address}"
            );
        }
    }
    for path in ["/docs/style.css", "/docs/find.js"] {
        plain(&server, path).await.ok();
    }
}
