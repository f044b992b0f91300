//! Google and GitHub as ways into an app, and the hosts that they send people back to.

mod fake;

use loupe_server::config::{OauthClient, SignIn};
use serde_json::{Value, json};

use crate::{
    apps::{at, host, visit},
    browser::{Browser, app, filled},
    domains,
    harness::{Answer, Database, Server, config},
};
use fake::{Fake, GITHUB, GOOGLE};

/// A server that both know.
async fn server_known_to(fake: &Fake, database: Database) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database, &folder).await;
    let client = |(id, secret): (&str, &str)| OauthClient {
        client_id: id.to_owned(),
        client_secret: secret.into(),
        issuer: Some(fake.base.clone()),
    };
    config.sign_in = SignIn {
        google: Some(client(GOOGLE)),
        github: Some(client(GITHUB)),
        ..SignIn::default()
    };
    Server::start_with(config, folder, None).await
}

/// An app with these ways in, whose address both know.
async fn club(fake: &Fake, server: &Server, ways: Value) -> String {
    for provider in ["google", "github"] {
        let host = host(server, "club");
        fake.register(format!("http://{host}/_auth/callback/{provider}"));
    }
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ways});
    app(server, "club", auth).await
}

fn location(answer: &Answer) -> String {
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// From the button to the provider; answers where that leads back to.
async fn agree(browser: &mut Browser<'_>, provider: &str) -> url::Url {
    browser.server.app.clock().advance(61);
    let form = [("provider", provider), ("return_to", "/films?x=1")];
    let away = browser.post("/_auth/start", &form).await;
    assert_eq!(away.status, 303, "{:#}", away.body);
    #[expect(
        clippy::disallowed_methods,
        reason = "a test goes where a browser does"
    )]
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let agreed = Server::send(client.get(location(&away))).await;
    assert_eq!(agreed.status, 302, "{:#}", agreed.body);
    let back = url::Url::parse(&location(&agreed)).unwrap();
    let named = format!("{}:{}", back.host_str().unwrap(), back.port().unwrap());
    assert_eq!(named, host(browser.server, browser.slug));
    assert_eq!(back.path(), format!("/_auth/callback/{provider}"));
    back
}

async fn come_back(browser: &mut Browser<'_>, back: &url::Url) -> Answer {
    let path = format!("{}?{}", back.path(), back.query().unwrap());
    browser.get(&path).await
}

/// Signs in; answers who that is.
async fn sign_in(browser: &mut Browser<'_>, provider: &str) -> Value {
    let back = agree(browser, provider).await;
    let done = come_back(browser, &back).await;
    assert_eq!(done.status, 303, "{:#}", done.body);
    assert_eq!(location(&done), "/films?x=1");
    browser.get("/_auth/me").await.ok()
}

/// Goes the same way, and is let in nowhere.
async fn is_refused(server: &Server, provider: &str) {
    let mut eve = Browser::new(server, "club");
    let back = agree(&mut eve, provider).await;
    assert_eq!(come_back(&mut eve, &back).await.status, 400, "{provider}");
    assert_eq!(eve.session(), None, "{provider}");
}

/// A code that another browser was given opens nothing, as Google and GitHub each say it.
async fn no_code_of_another(server: &Server, provider: &str) {
    let (mut ada, mut eve) = (Browser::new(server, "club"), Browser::new(server, "club"));
    let theirs = agree(&mut ada, provider).await;
    let mut own = agree(&mut eve, provider).await;
    let code = |url: &url::Url| {
        let mut pairs = url.query_pairs();
        let found = pairs.find(|(name, _)| name == "code").unwrap();
        found.1.into_owned()
    };
    let state = own.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    let code = code(&theirs);
    own.query_pairs_mut()
        .clear()
        .append_pair("state", &state)
        .append_pair("code", &code);
    assert_eq!(come_back(&mut eve, &own).await.status, 400, "{provider}");
    assert_eq!(eve.session(), None, "{provider}");
}

async fn google_signs_in(database: Database) {
    let fake = Fake::start().await;
    let server = server_known_to(&fake, database).await;
    let id = club(&fake, &server, json!(["google"])).await;
    let page = visit(&server, "club", "/_auth/sign-in").await;
    let page = page.body.as_str().unwrap();
    assert!(page.contains("Continue with Google") && !page.contains("GitHub"));

    let claims = |sub: &str, email: &str, name: &str, verified: bool| {
        json!({"sub": sub, "email": email, "email_verified": verified, "name": name, "given_name": name,
            "family_name": "Lovelace", "picture": "https://pictures.example/a/ACg8ocI=s96-c"})
    };
    fake.google(claims(
        "110169484474386276334",
        "Ada@Example.com",
        "Ada",
        true,
    ));
    let ada = sign_in(&mut Browser::new(&server, "club"), "google").await;
    assert_eq!(
        (&ada["email"], &ada["name"], &ada["avatar_url"]),
        (
            &json!("ada@example.com"),
            &json!("Ada"),
            &json!("https://pictures.example/a/ACg8ocI=s96-c")
        )
    );
    // Another name and another address by now: who it is, the number says.
    fake.google(claims(
        "110169484474386276334",
        "countess@example.com",
        "Countess",
        true,
    ));
    let again = sign_in(&mut Browser::new(&server, "club"), "google").await;
    assert_eq!(
        (&again["id"], &again["email"], &again["name"]),
        (&ada["id"], &json!("ada@example.com"), &json!("Countess"))
    );
    // Nobody comes by an address that Google has not verified, least of all to somebody else's account.
    fake.google(claims("2", "ada@example.com", "Eve", false));
    is_refused(&server, "google").await;
    let mut other = claims("3", "eve@example.com", "Eve", true);
    other["iss"] = json!("accounts.elsewhere.example");
    fake.google(other);
    is_refused(&server, "google").await;
    fake.google(claims("4", "eve@example.com", "Eve", true));
    no_code_of_another(&server, "google").await;
    let users = format!("/v1/apps/{id}/users");
    let users = server.call("GET", &users, Value::Null).await.ok();
    assert_eq!(users["total"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn google_signs_in_on_sqlite() {
    google_signs_in(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn google_signs_in_on_postgres() {
    google_signs_in(Database::Postgres).await;
}

/// Somebody who says no is led back, and not signed in.
async fn a_refusal_is_taken(server: &Server) {
    let mut late = Browser::new(server, "club");
    let mut back = agree(&mut late, "github").await;
    let state = back.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    back.query_pairs_mut()
        .clear()
        .append_pair("error", "access_denied")
        .append_pair(
            "error_description",
            "The user has denied your application access.",
        )
        .append_pair("state", &state);
    assert_eq!(come_back(&mut late, &back).await.status, 400);
    assert_eq!(late.session(), None);
}

/// People are offered the services in the order in which the owner names them.
async fn services_stand_as_they_are_named(server: &Server, id: &str) {
    for (names, first, second) in [
        (json!(["oauth_github", "google"]), "GitHub", "Google"),
        (json!(["google", "email", "github"]), "Google", "GitHub"),
    ] {
        let auth = json!({"mode": "clerk", "clerk_allowed_providers": names});
        let change = json!({ "auth_config": auth });
        let path = format!("/v1/apps/{id}");
        server.call("PATCH", &path, change).await.ok();
        let page = visit(server, "club", "/_auth/sign-in").await;
        let text = page.body.as_str().unwrap();
        let at = |label: &str| text.find(&format!("Continue with {label}")).unwrap();
        assert!(at(first) < at(second), "{names}: {text}");
    }
}

async fn github_signs_in(database: Database) {
    let fake = Fake::start().await;
    let server = server_known_to(&fake, database).await;
    let id = club(&fake, &server, json!(["google", "github"])).await;
    fake.google(
        json!({"sub": "1", "email": "ada@example.com", "email_verified": true, "name": "Ada"}),
    );
    let ada = sign_in(&mut Browser::new(&server, "club"), "google").await;

    // Both have proven the address: one person, who stays the same under another login with another address.
    let of_ada = [
        ("583231+ada@users.noreply.example", false, true),
        ("ADA@example.com", true, true),
    ];
    fake.github(583_231, "ada", Value::Null, &of_ada);
    let joined = sign_in(&mut Browser::new(&server, "club"), "github").await;
    assert_eq!(joined["id"], ada["id"]);
    let of_countess = [("countess@example.com", true, true)];
    fake.github(583_231, "countess", json!("Countess"), &of_countess);
    let again = sign_in(&mut Browser::new(&server, "club"), "github").await;
    assert_eq!(
        (&again["id"], &again["email"], &again["name"]),
        (&ada["id"], &json!("ada@example.com"), &json!("Countess"))
    );
    assert_eq!(again["avatar_url"], "https://avatars.example/u/583231?v=4");

    // An address that GitHub has not verified is nobody's, and a verified one that is not the first stands for nobody.
    let claimed = [
        ("ada@example.com", true, false),
        ("eve@example.com", false, true),
    ];
    fake.github(999, "ada", json!("Ada"), &claimed);
    is_refused(&server, "github").await;
    fake.github(999, "ada", json!("Ada"), &[]);
    is_refused(&server, "github").await;
    // The login of somebody else does not make them them.
    let of_eve = [
        ("ada@example.com", false, false),
        ("eve@example.com", true, true),
    ];
    fake.github(999, "ada", Value::Null, &of_eve);
    let eve = sign_in(&mut Browser::new(&server, "club"), "github").await;
    assert_ne!(eve["id"], ada["id"]);
    assert_eq!(
        (&eve["email"], &eve["name"]),
        (&json!("eve@example.com"), &json!("ada"))
    );

    no_code_of_another(&server, "github").await;
    a_refusal_is_taken(&server).await;
    let users = format!("/v1/apps/{id}/users");
    let users = server.call("GET", &users, Value::Null).await.ok();
    assert_eq!(users["total"], 2);
    services_stand_as_they_are_named(&server, &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn github_signs_in_on_sqlite() {
    github_signs_in(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn github_signs_in_on_postgres() {
    github_signs_in(Database::Postgres).await;
}

/// Begins at this host; answers where a provider is asked to send people back to, if it is asked at all.
async fn way_back(server: &Server, named: &str) -> Option<String> {
    server.app.clock().advance(61);
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("host", named.parse().unwrap());
    headers.insert("origin", format!("http://{named}").parse().unwrap());
    let request = at(server, "club", "POST", "/_auth/start").headers(headers);
    let answer = Server::send(filled(request, &[("provider", "github")])).await;
    assert!(answer.status == 303 || answer.status == 404, "{named}");
    let away = url::Url::parse(answer.headers.get("location")?.to_str().unwrap()).unwrap();
    let way = away.query_pairs().find(|(name, _)| name == "redirect_uri");
    Some(way.unwrap().1.into_owned())
}

async fn people_come_back_to_hosts_of_the_app_alone(database: Database) {
    let fake = Fake::start().await;
    let server = server_known_to(&fake, database).await;
    let id = club(&fake, &server, json!(["github"])).await;
    let port = server.url.rsplit(':').next().unwrap();
    let own = format!("http://club.localhost:{port}/_auth/callback/github");
    // However the host is spelled, and whatever port it is said to have.
    for named in [
        &*host(&server, "club"),
        "club.localhost",
        "club.localhost:9",
        "CLUB.localhost:443",
        "club.localhost.",
    ] {
        let way = way_back(&server, named).await;
        assert_eq!(way.as_ref(), Some(&own), "{named}");
    }
    let preview = format!("club--v1.localhost:{port}");
    assert_eq!(
        way_back(&server, &preview).await,
        Some(format!("http://{preview}/_auth/callback/github"))
    );
    // No other host is the app's, also not a domain that is only noted.
    let domain = domains::name(&server);
    let path = format!("/v1/apps/{id}/domains");
    let noted = server.call("POST", &path, json!({"domain": domain})).await;
    let token = noted.ok()["verification_token"].clone();
    for named in [
        "evil.example",
        "club.evil.example",
        "club.localhost.evil.example",
        "evil.club.localhost",
        "127.0.0.1",
        "localhost",
        &domain,
    ] {
        assert_eq!(way_back(&server, named).await, None, "{named}");
    }
    domains::publish(&domain, &[token.as_str().unwrap()]);
    let verify = format!("{path}/{domain}/verify");
    let proven = server.call("POST", &verify, Value::Null).await.ok();
    assert_eq!(proven["status"], "active");
    for named in [domain.clone(), format!("{domain}:9")] {
        let way = way_back(&server, &named).await;
        let expected = format!("http://{domain}:{port}/_auth/callback/github");
        assert_eq!(way, Some(expected), "{named}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_come_back_to_hosts_of_the_app_alone_on_sqlite() {
    people_come_back_to_hosts_of_the_app_alone(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_come_back_to_hosts_of_the_app_alone_on_postgres() {
    people_come_back_to_hosts_of_the_app_alone(Database::Postgres).await;
}
