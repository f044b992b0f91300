//! Passwords of hosted apps that are guessed, and mails that strangers ask for: slowed, while the owner gets in.

use serde_json::json;

use crate::{
    app_sign_in::sign_up,
    apps::{at, host},
    browser::{Browser, GOOD, Mails, app, filled},
    harness::{Answer, Database, Server, config},
};

/// A password that is guessed from this address.
async fn guess(server: &Server, address: &str, number: usize) -> Answer {
    let password = format!("guess number {number}");
    let form = [
        ("email", "ada@example.com".to_owned()),
        ("password", password),
    ];
    let origin = format!("http://{}", host(server, "club"));
    let request = at(server, "club", "POST", "/_auth/sign-in").header("origin", origin);
    Server::send(filled(request.header("x-forwarded-for", address), &form)).await
}

/// Guesses from 100 addresses within ten minutes: 1,000, or 10,000 with `LOUPE_TEST_LONG`.
async fn few_guesses_reach_the_hash(server: &Server) {
    let in_a_minute = if std::env::var_os("LOUPE_TEST_LONG").is_some() {
        1_000
    } else {
        100
    };
    let (mut reached, all) = (0, 10 * in_a_minute);
    for number in 0..all {
        let answer = guess(server, &format!("203.0.113.{}", number % 100), number).await;
        match answer.status {
            401 => reached += 1,
            429 => assert!(answer.headers.contains_key("retry-after")),
            other => panic!("{other}: {:#}", answer.body),
        }
        if (number + 1) % in_a_minute == 0 {
            server.app.clock().advance(60);
        }
    }
    assert!(
        (5..=200).contains(&reached),
        "{reached} guesses reached the hash"
    );
    println!("{reached} of {all} guesses reached the hash");
}

/// One address at one account waits longer each time.
async fn each_wait_is_longer(server: &Server) {
    server.app.clock().advance(900);
    let mut waits = Vec::new();
    for number in 0..12 {
        let answer = guess(server, "198.51.100.7", number).await;
        if answer.status == 429 {
            let wait: i64 = answer.headers["retry-after"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            waits.push(wait);
            server.app.clock().advance(wait);
        }
    }
    assert!(
        waits.len() >= 3 && waits.is_sorted() && waits[0] < waits[2],
        "{waits:?}"
    );
}

/// Mails to one address are as many, whoever asks for them and whether or not there is such an account.
async fn mails_to_an_address_are_as_many(server: &Server) {
    let origin = format!("http://{}", host(server, "club"));
    server.app.clock().advance(3_600);
    for email in ["ada@example.com", "nobody@example.com"] {
        let mut taken = 0;
        for number in 0..20 {
            let request = at(server, "club", "POST", "/_auth/forgot").header("origin", &origin);
            let request = request.header("x-forwarded-for", format!("192.0.2.{number}"));
            let answer = Server::send(filled(request, &[("email", email)])).await;
            taken += usize::from(answer.status == 200);
        }
        assert_eq!(taken, 12, "{email}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessing_is_slowed_and_the_owner_still_gets_in() {
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.mail.url = url.into();
    // A proxy names the addresses here.
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    app(
        &server,
        "club",
        json!({"mode": "clerk", "clerk_allowed_providers": ["email"]}),
    )
    .await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    ada.post("/_auth/sign-out", &[]).await;

    // What may be tried again comes with time, and none passes by itself.
    server.app.clock().hold();
    few_guesses_reach_the_hash(&server).await;
    // Ada's own browser is known.
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &right).await.status, 303);
    each_wait_is_longer(&server).await;
    mails_to_an_address_are_as_many(&server).await;
}
