//! S-40: what the cookies of apps are like where visitors come by TLS.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::{at, host},
    browser::{Browser, GOOD, Mails, app, filled},
    harness::{Answer, Database, Server, config},
};

const GIVEN: &str = "sesame, the third";

/// A server whose address in the settings is this one, whatever its port speaks.
async fn server_at(database: Database, address: &str) -> (Server, Mails) {
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database, &folder).await;
    config.mail.url = url.into();
    config.base_url = address.into();
    (Server::start_with(config, folder, None).await, mails)
}

/// Names, values and attributes of the cookies that an answer sets.
fn cookies(answer: &Answer) -> Vec<(String, String, BTreeSet<String>)> {
    let lines = answer.headers.get_all("set-cookie").iter();
    let cookies = lines.map(|line| {
        let mut parts = line.to_str().unwrap().split("; ");
        let (name, value) = parts.next().unwrap().split_once('=').unwrap();
        (
            name.to_owned(),
            value.to_owned(),
            parts.map(ToOwned::to_owned).collect(),
        )
    });
    cookies.collect()
}

fn attributes(age: i64) -> BTreeSet<String> {
    let age = format!("Max-Age={age}");
    ["Path=/", "HttpOnly", "SameSite=Lax", "Secure", age.as_str()]
        .map(ToOwned::to_owned)
        .into()
}

/// A form from a page of the app, with a header that anybody can send.
async fn sent(server: &Server, path: &str, form: &[(&str, &str)], scheme: &str) -> Answer {
    let request = at(server, "club", "POST", path)
        .header("origin", format!("https://{}", host(server, "club")))
        .header("x-forwarded-proto", scheme);
    Server::send(filled(request, form)).await
}

async fn cookies_are_bound_to_the_host(database: Database) {
    let (server, mails) = server_at(database, "https://loupe.example").await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    let id = app(&server, "club", auth).await;
    let path = format!("/v1/apps/{id}");
    let told = server.call("GET", &path, Value::Null);
    assert_eq!(told.await.ok()["url"], "https://club.localhost");
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    assert!(ada.cookies.contains_key("__Host-loupe_app"));
    assert!(ada.cookies.keys().all(|name| name.starts_with("__Host-")));

    // The address in the settings decides, and nothing that a request says.
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    let done = sent(&server, "/_auth/sign-in", &right, "http").await;
    assert_eq!(done.status, 303);
    let set = cookies(&done);
    let names: Vec<&str> = set.iter().map(|(name, _, _)| name.as_str()).collect();
    let all = [
        "__Host-loupe_app",
        "__Host-loupe_flow",
        "__Host-loupe_known",
    ];
    assert_eq!(names, all);
    let ages = [30 * 86_400, 0, 365 * 86_400];
    for ((name, _, found), age) in set.iter().zip(ages) {
        assert_eq!(*found, attributes(age), "{name}");
    }
    // 43 letters and digits are 256 bits.
    let token = &set[0].1;
    assert!(token.len() == 43 && token.bytes().all(|one| one.is_ascii_alphanumeric()));

    // A neighbour can plant cookies without the prefix only, and those are nobody's.
    let asked = |cookie: String| {
        let request = at(&server, "club", "GET", "/_auth/session").header("cookie", cookie);
        Server::send(request)
    };
    let planted = asked(format!("loupe_app={token}")).await.ok();
    assert_eq!(planted["is_signed_in"], false);
    let both = format!("loupe_app=planted; __Host-loupe_app={token}");
    assert_eq!(asked(both).await.ok()["user"]["email"], "ada@example.com");

    let out = ada.post("/_auth/sign-out", &[("return_to", "/")]).await;
    let gone = cookies(&out);
    assert_eq!(
        gone,
        [("__Host-loupe_app".into(), String::new(), attributes(0))]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_are_bound_to_the_host_on_sqlite() {
    cookies_are_bound_to_the_host(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_are_bound_to_the_host_on_postgres() {
    cookies_are_bound_to_the_host(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_the_cookie_of_an_app_with_one_password() {
    for (address, prefix, secure) in [("https://loupe.example", "__Host-", true), ("", "", false)] {
        let (server, _mails) = server_at(Database::Sqlite, address).await;
        let id = app(
            &server,
            "club",
            json!({"mode": "password", "password": GIVEN}),
        )
        .await;
        let form = [("password", GIVEN)];
        let done = sent(&server, "/_auth/unlock", &form, "https").await;
        let set = cookies(&done);
        assert_eq!(set.len(), 1, "{:#}", done.body);
        let (name, _, mut found) = set[0].clone();
        assert_eq!(name, format!("{prefix}loupe_open_{id}"));
        assert_eq!(found.remove("Secure"), secure);
        let rest = ["Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=86400"];
        assert_eq!(found, BTreeSet::from(rest.map(ToOwned::to_owned)));
    }
}
