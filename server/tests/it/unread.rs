//! Connections outlive answers that are given before the body of the request was read; and heads and bodies that come too slowly
//! are not waited for.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{Database, Server, config};

async fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// One answer off a connection that may stay open: its head in small letters.
async fn answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    head
}

fn head(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\n{headers}\r\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_nobody_read_does_not_cost_the_next_request() {
    let server = Server::start(Database::Sqlite).await;
    let key = format!("authorization: Bearer {}\r\n", server.key);
    let nowhere = format!("{key}x-namespace: ns_unknown\r\n");
    for (path, headers, status) in [
        ("/v1/buckets/list", "", 401),
        ("/v1/buckets/list", key.as_str(), 403),
        ("/v1/buckets/bkt_x/objects/list", nowhere.as_str(), 200),
        ("/v1/nowhere", key.as_str(), 404),
        ("/v1/me", key.as_str(), 405),
    ] {
        let mut stream = connect(&server).await;
        for (length, body) in [
            ("content-length: 2", "{}"),
            ("transfer-encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"),
            ("content-length: 2", "{}"),
        ] {
            let head = head(path, &format!("{headers}{length}\r\n"));
            stream.write_all(head.as_bytes()).await.unwrap();
            // The body comes after its head, as most clients send it: here, after another one was answered.
            server.call("GET", "/v1/me", Value::Null).await.ok();
            stream.write_all(body.as_bytes()).await.unwrap();
            let told = answer(&mut stream).await;
            assert!(
                told.starts_with(&format!("http/1.1 {status}")),
                "{path}: {told}"
            );
            assert!(!told.contains("connection: close"), "{path}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_with_much_on_its_way_ends_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.limits.request_seconds = 1;
    let server = Server::start_with(config, folder, None).await;
    for (length, sent) in [
        // More than anybody waits for; more than it said, piece by piece; and what does not come in time.
        ("content-length: 1000000", String::new()),
        (
            "transfer-encoding: chunked",
            format!("20000\r\n{}\r\n", "x".repeat(0x20000)),
        ),
        ("content-length: 2", "{".to_owned()),
    ] {
        let mut stream = connect(&server).await;
        let head = head("/v1/buckets/list", &format!("{length}\r\n"));
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may end the connection before it has taken everything.
        let _ = stream.write_all(sent.as_bytes()).await;
        let told = answer(&mut stream).await;
        assert!(told.starts_with("http/1.1 401"), "{length}: {told}");
        assert!(
            told.contains("\r\nconnection: close\r\n"),
            "{length}: {told}"
        );
    }
}

/// whoever sends a byte now and then keeps no place of a request until the longest time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_comes_a_byte_at_a_time_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.limits.body_seconds = 1;
    let server = Server::start_with(config, folder, None).await;
    let key = format!("authorization: Bearer {}\r\n", server.key);
    let slow = async |path: &str, headers: String| {
        let (mut reading, mut writing) = connect(&server).await.into_split();
        // More than is taken off the wire for nobody.
        let head = head(path, &format!("{headers}content-length: 100000\r\n"));
        writing.write_all(head.as_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while writing.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let mut told = vec![0; 12];
        reading.read_exact(&mut told).await.unwrap();
        dripping.abort();
        String::from_utf8(told).unwrap()
    };
    let start = Instant::now();
    let (plain, closing, named, stranger) = tokio::join!(
        slow("/v1/namespaces/list", key.clone()),
        // Whoever ends the connection waits no longer.
        slow("/v1/namespaces/list", format!("{key}connection: close\r\n")),
        slow("/v1/namespaces", format!("{key}idempotency-key: one\r\n")),
        slow("/v1/public/retrievers/nothing/interactions", String::new()),
    );
    for told in [plain, closing, named, stranger] {
        assert_eq!(told, "HTTP/1.1 504");
    }
    // The longest time of a request is a minute.
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// Whoever sends the head of a request a byte at a time, or nothing at all, holds no connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.limits.head_seconds = 1;
    let server = Server::start_with(config, folder, None).await;
    // What is sent, a letter of more now and then, and how often a request was answered before the end.
    let told_until_the_end = async |sent: &str, drips: bool| {
        let (mut reading, mut writing) = connect(&server).await.into_split();
        writing.write_all(sent.as_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while !drips || writing.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let mut told = Vec::new();
        let ended = reading.read_to_end(&mut told);
        // The end may be one that leaves letters unread.
        let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
        assert!(ended.is_ok(), "the connection stays: {sent:?}");
        dripping.abort();
        String::from_utf8(told)
            .unwrap()
            .matches("HTTP/1.1 200")
            .count()
    };
    let request = "GET /healthz HTTP/1.1\r\nhost: here\r\n";
    let (whole, slow) = (format!("{request}\r\n"), format!("{request}x-slow: "));
    let (nothing, slow, idle) = tokio::join!(
        told_until_the_end("", false),
        told_until_the_end(&slow, true),
        told_until_the_end(&whole, false),
    );
    assert_eq!((nothing, slow, idle), (0, 0, 1));
}
