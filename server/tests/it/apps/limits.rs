//! Visitors who are signed in have what a visitor has each for themselves, wherever they come from.

use loupe_server::hosting::limits::Together;
use serde_json::json;

use super::at;
use crate::{
    app_sign_in::sign_up,
    browser::{Browser, Mails, app},
    harness::{Database, Server, config},
};

/// A call of `/api` that comes from this address, as the proxy says.
async fn call(visitor: &mut Browser<'_>, address: &str) -> u16 {
    let request = at(visitor.server, visitor.slug, "GET", "/api/retrievers");
    let request = request.header("x-forwarded-for", address);
    visitor.send(request).await.status
}

/// What is counted lies in memory, on either database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_signed_in_is_counted_by_person_and_not_by_address() {
    const HOME: &str = "203.0.113.7";
    const AWAY: &str = "198.51.100.9";
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.mail.url = url.into();
    // A proxy names the addresses here.
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    server.namespace("things").await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&server, "club", auth).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let mut bob = Browser::new(&server, "club");
    sign_up(&mut bob, &mails, "bob@example.com", 2).await;

    // No time passes: a slow machine would ask too seldom.
    server.app.clock().hold();
    let mut served = 0;
    while served < 400 && call(&mut ada, HOME).await == 200 {
        served += 1;
    }
    assert!((1..=120).contains(&served), "{served}");
    // She has used up what she has, from wherever she comes; he has his own, from where she is.
    assert_eq!(call(&mut ada, AWAY).await, 429);
    // She has no key, and is told of none.
    let again = at(&server, "club", "GET", "/api/retrievers").header("x-forwarded-for", AWAY);
    let told = ada.send(again).await;
    let words = told.body["error"]["message"].as_str().unwrap();
    assert!(told.status == 429 && !words.contains("key"), "{words}");
    assert_eq!(call(&mut bob, HOME).await, 200);
    assert_eq!(call(&mut bob, AWAY).await, 200);
    assert_eq!(call(&mut ada, HOME).await, 429);
    server.app.clock().advance(60);
    assert_eq!(call(&mut ada, AWAY).await, 200);
}

/// However many visitors there are, and however they are counted themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_of_an_app_have_a_limit_together() {
    let server = Server::start(Database::Sqlite).await;
    let of = |id: &str| Together::of(&server.app, "org_one", id);
    server.app.clock().hold();
    let club = of("app_club");
    let taken = || {
        let calls = 0..1_000;
        calls.take_while(|_| club.take(&server.app).is_ok()).count()
    };
    assert_eq!(taken(), 300, "in one second");
    // It is the app's, whoever asks, and of this app alone.
    assert!(of("app_club").take(&server.app).is_err());
    assert!(of("app_other").take(&server.app).is_ok());
    let mut minute = 300;
    for _ in 0..59 {
        server.app.clock().advance(1);
        minute += taken();
    }
    // What it saved up, and what comes within the minute.
    assert!((7_000..=8_000).contains(&minute), "{minute}");
}
