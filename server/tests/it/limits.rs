//! Rate limits: the four figures on every answer, the refusal, the wait that helps; one bucket over several processes.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    both,
    harness::{Answer, Database, Server, config},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

async fn limited(server: &Server, name: &str, per_minute: i64) -> String {
    let body = json!({"name": name, "rate_limit_override": per_minute});
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

async fn me(server: &Server, key: &str) -> Answer {
    Server::send(server.request("GET", "/v1/me").bearer_auth(key)).await
}

fn figure(answer: &Answer, name: &str) -> i64 {
    let name = format!("x-ratelimit-{name}");
    let value = answer.headers.get(&name);
    let value = value.unwrap_or_else(|| panic!("no {name} in {:?}", answer.headers));
    value.to_str().unwrap().parse().unwrap()
}

/// Asks the servers in turn until every one has refused; answers how many requests passed.
async fn drained(servers: &[Server], key: &str) -> i64 {
    let (mut passed, mut refusals) = (0, 0);
    for server in servers.iter().cycle() {
        match me(server, key).await.status {
            200 => (passed, refusals) = (passed + 1, 0),
            429 => refusals += 1,
            other => panic!("{other}"),
        }
        if refusals == servers.len() {
            break;
        }
    }
    passed
}

/// The reference: a bucket that holds 60 tokens, and into which one flows each second. What passes after pauses of chance
/// is what it has by then, to the token.
async fn as_the_reference(servers: &[Server], key: &str) {
    let seed = std::env::var("LOUPE_SEED").ok();
    let seed: u64 = seed
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_123);
    println!("LOUPE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // The clocks of several differ by the microseconds between these lines, which is less than a token.
    for server in servers {
        server.app.clock().hold();
    }
    let mut level = 60;
    for _ in 0..8 {
        assert_eq!(drained(servers, key).await, level);
        let pause = random.random_range(1..=100);
        for server in servers {
            server.app.clock().advance(pause);
        }
        // Nothing is left of what was there before.
        level = pause.min(60);
    }
}

both! {
    async fn one_process_lets_through_what_the_reference_does(server) {
        let key = limited(&server, "exact", 60).await;
        as_the_reference(&[server], &key).await;
    }

    async fn a_key_is_refused_beyond_its_limit_and_served_after_the_wait(server) {
        let key = limited(&server, "slow", 5).await;
        // What a key may ask again comes with time, and none passes by itself.
        server.app.clock().hold();
        for left in (0..5).rev() {
            let answer = me(&server, &key).await;
            assert_eq!(figure(&answer, "remaining"), left);
            assert_eq!((figure(&answer, "limit"), figure(&answer, "window")), (5, 60));
            let now = server.app.clock().now().timestamp();
            assert!((now..=now + 61).contains(&figure(&answer, "reset")));
            assert_eq!(answer.ok()["rate_limits"]["requests_per_minute"], 5);
        }
        for _ in 0..3 {
            let refused = me(&server, &key).await;
            assert_eq!(figure(&refused, "remaining"), 0);
            let wait: i64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
            let body = refused.error(429, "TooManyRequestsError");
            let details = &body["error"]["details"];
            assert_eq!((&details["limit"], &details["window"], &details["retry_after"]), (&json!(5), &json!("minute"), &json!(wait)));
            assert!((1..=12).contains(&wait), "{wait}");
            server.app.clock().advance(wait);
            me(&server, &key).await.ok();
        }
        // Another key is not concerned.
        server.call("GET", "/v1/me", Value::Null).await.ok();
    }

    async fn every_answer_carries_the_figures(server) {
        let answers = [
            server.call("GET", "/v1/me", Value::Null).await,
            server.call("GET", "/v1/namespaces/ns_unknown", Value::Null).await,
            server.call("POST", "/v1/namespaces", json!({"colour": "red"})).await,
            Server::send(server.request("GET", "/v1/me")).await,
            Server::send(server.request("GET", "/v1/me").bearer_auth("nonsense")).await,
            Server::send(server.request("GET", "/v1/public/retrievers/unknown/config")).await,
            // What no operation answers has those of the caller's network.
            server.call("PATCH", "/v1/me", json!({})).await,
            server.call("GET", "/v1/nothing", Value::Null).await,
            server.call("BREW", "/v1/me", Value::Null).await,
            Server::send(server.request("GET", "/v1/openapi.json")).await,
        ];
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 404, 422, 401, 401, 404, 405, 404, 405, 200]);
        for answer in answers {
            for name in ["limit", "remaining", "reset", "window"] {
                figure(&answer, name);
            }
        }
    }

    async fn a_changed_cap_holds_at_once(server) {
        let key = limited(&server, "changing", 2).await;
        server.app.clock().hold();
        for expected in [200, 200, 429] {
            assert_eq!(me(&server, &key).await.status, expected);
        }
        server.call("PATCH", &format!("{KEYS}/changing"), json!({"rate_limit_override": null})).await.ok();
        server.app.clock().advance(1);
        for _ in 0..20 {
            me(&server, &key).await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organization_has_only_so_many_requests_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.rates.concurrent = 2;
    let server = Server::start_with(config, folder, None).await;
    // Requests whose bodies have not come whole are under way.
    let mut open = Vec::new();
    for _ in 0..3 {
        let address = server.url.strip_prefix("http://").unwrap();
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/namespaces/list HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{",
            server.key
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        open.push(stream);
    }
    // Two of them wait for the rest of their bodies; the third is answered without it.
    let third = tokio::select! {
        _ = open[0].readable() => 0,
        _ = open[1].readable() => 1,
        _ = open[2].readable() => 2,
    };
    let mut answer = [0; 12];
    open.remove(third).read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
    let refused = server.call("GET", "/v1/me", Value::Null).await;
    assert_eq!(refused.headers["retry-after"], "1");
    let body = refused.error(429, "TooManyRequestsError");
    assert_eq!(body["error"]["details"]["window"], "concurrent");
    for mut stream in open {
        stream.write_all(b"}").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.call("GET", "/v1/me", Value::Null).await.ok();
}

/// Three processes on one database.
async fn three() -> Vec<Server> {
    let mut servers = vec![Server::start(Database::Postgres).await];
    for _ in 0..2 {
        let first = &servers[0];
        let folder = tempfile::tempdir().unwrap();
        let mut config = first.app.config().clone();
        config.data = folder.path().join("data");
        config.listen.set_port(0);
        let beside = Server::start_with(config, folder, Some(first.key.clone())).await;
        servers.push(beside);
    }
    servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_processes_let_through_what_the_reference_does() {
    let servers = three().await;
    let key = limited(&servers[0], "exact", 60).await;
    as_the_reference(&servers, &key).await;
}

/// Three processes on one database let through what one would, and at most 5 % more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_processes_share_one_bucket() {
    const LASTS: Duration = Duration::from_secs(4);
    let servers = three().await;
    let (per_minute, burst) = (120.0, 120.0);
    let key = limited(&servers[0], "shared", 120).await;
    let start = Instant::now();
    let counts = servers.iter().map(|server| async {
        let (mut passed, mut refused) = (0_u32, false);
        // Also on a busy machine until there is nothing left.
        while start.elapsed() < LASTS || !refused {
            let answers = futures::future::join_all((0..8).map(|_| me(server, &key))).await;
            refused |= answers.iter().any(|one| one.status == 429);
            passed += answers
                .iter()
                .map(|one| u32::from(one.status == 200))
                .sum::<u32>();
        }
        passed
    });
    let counts: Vec<u32> = futures::future::join_all(counts).await;
    let passed = f64::from(counts.iter().sum::<u32>());
    let allowed = burst + per_minute / 60.0 * start.elapsed().as_secs_f64();
    println!("passed {passed} of {allowed:.1} allowed: {counts:?}");
    assert!(
        passed <= allowed * 1.05,
        "{passed} of {allowed}: {counts:?}"
    );
    // A machine that stands still at the end asks for nothing that comes meanwhile.
    let owed = burst + per_minute / 60.0 * LASTS.as_secs_f64();
    assert!(passed >= owed * 0.9, "{passed} of {owed}: {counts:?}");
}
