//! Sign-in of hosted apps, against a mail server and a provider that do what real ones do, and what attackers would.

use serde_json::{Value, json};

use crate::{
    apps::{at, host, visit},
    browser::{Browser, GOOD, Mails, app, filled, server_with_mail, token_of},
    harness::{Answer, Database, Server},
};

/// Makes an account, by the mail of this number.
pub async fn sign_up(browser: &mut Browser<'_>, mails: &Mails, email: &str, count: usize) {
    let form = [
        ("email", email),
        ("password", GOOD),
        ("name", "Ada"),
        ("return_to", "/films?x=1"),
    ];
    assert_eq!(browser.post("/_auth/sign-up", &form).await.status, 200);
    let token = token_of(&mails.wait(count).await);
    assert_eq!(
        browser
            .get(&format!("/_auth/verify?token={token}"))
            .await
            .status,
        200
    );
    assert_eq!(
        browser.who().await,
        Value::Null,
        "reading a page signs nobody in"
    );
    let done = browser.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(
        (done.status, done.headers["location"].to_str().unwrap()),
        (303, "/films?x=1")
    );
    let again = browser.post("/_auth/verify", &[("token", &token)]).await;
    let words = again.body.as_str().unwrap();
    assert!(words.contains("confirmed already"), "{words}");
    assert!(
        !again.headers.contains_key("set-cookie"),
        "a link opens once"
    );
}

const NEW: &str = "a new lamp there";

async fn sign_in(browser: &mut Browser<'_>, email: &str, password: &str) -> Answer {
    let form = [("email", email), ("password", password)];
    browser.post("/_auth/sign-in", &form).await
}

async fn forgot(browser: &mut Browser<'_>, email: &str) {
    browser
        .post("/_auth/forgot", &[("email", email)])
        .await
        .ok();
}

async fn reset(browser: &mut Browser<'_>, token: &str, password: &str) -> u16 {
    let form = [("token", token), ("password", password)];
    browser.post("/_auth/reset", &form).await.status
}

/// A page but for the address in it and the policy's number.
pub fn page_without(answer: &Answer, email: &str) -> String {
    let page = answer.body.as_str().unwrap().replace(email, "EMAIL");
    let start = page.find("nonce=").unwrap();
    let end = start + page[start..].find('>').unwrap();
    format!("{}{}", &page[..start], &page[end..])
}

/// The script is in every page, with the configuration, and answers without anybody signed in.
async fn a_script_comes_with_every_page(server: &Server) {
    let page = visit(server, "club", "/").await;
    let text = page.body.as_str().unwrap().to_owned();
    assert!(text.contains(r#"<head><script src="/_auth/sdk.js" data-config="{&quot;app&quot;:&quot;club&quot;}"></script><title>"#), "{text}");
    let script = visit(server, "club", "/_auth/sdk.js").await;
    assert_eq!(
        script.headers["content-type"],
        "application/javascript; charset=utf-8"
    );
    let script = script.body.as_str().unwrap();
    assert!(script.contains("LoupeAuth") && script.contains("window.__LOUPE__ = config;"));
}

async fn nobody_is_told_anything(ada: &mut Browser<'_>) {
    for path in ["/_auth/me", "/_auth/users", "/api/retrievers"] {
        ada.get(path).await.error(401, "AuthenticationError");
    }
    assert_eq!(
        ada.get("/_auth/session").await.ok(),
        json!({"is_signed_in": false, "user": null})
    );
}

/// An account, by a link in a mail.
async fn an_account_is_made(ada: &mut Browser<'_>, mails: &Mails) {
    for (password, why) in [
        ("short", "at least 8"),
        ("password123", "guessed first"),
        (&*"x".repeat(129), "at most 128"),
    ] {
        let form = [("email", "ada@example.com"), ("password", password)];
        let refused = ada.post("/_auth/sign-up", &form).await;
        assert_eq!(refused.status, 422, "{password}");
        let page = refused.body.as_str().unwrap();
        assert!(page.contains(why), "{page}");
    }
    sign_up(ada, mails, "Ada@Example.com", 1).await;
    assert_eq!(ada.who().await, "ada@example.com");
    let me = ada.get("/_auth/me").await.ok();
    assert_eq!((&me["name"], me.get("password")), (&json!("Ada"), None));
    assert_eq!(me.get("avatar_url"), Some(&Value::Null), "{me:#}");
    assert_eq!(me["role"], "org:member");
    assert_eq!(ada.get("/_auth/session").await.ok()["user"], me);
    // What the owner made of somebody is told to nobody else.
    let mut listed = me;
    assert_eq!(listed["signed_in_with"], "password");
    for own in ["role", "signed_in_with"] {
        listed.as_object_mut().unwrap().remove(own);
    }
    let users = ada.get("/_auth/users").await;
    assert_eq!(users.headers["x-total-count"], "1");
    assert_eq!(users.ok(), json!([listed]));
}

/// Signing out and in: a new session each time, the old one is dead. Answers the second one.
async fn each_session_is_another(server: &Server, ada: &mut Browser<'_>) -> String {
    let is_dead = async |session: &str| {
        let asked =
            at(server, "club", "GET", "/_auth/me").header("cookie", format!("loupe_app={session}"));
        assert_eq!(Server::send(asked).await.status, 401);
    };
    let first = ada.session().unwrap().clone();
    sign_in(ada, "ada@example.com", GOOD).await;
    let second = ada.session().unwrap().clone();
    assert_ne!(first, second);
    is_dead(&first).await;
    let out = ada
        .post("/_auth/sign-out", &[("return_to", "//evil.example")])
        .await;
    assert_eq!(
        (out.status, out.headers["location"].to_str().unwrap()),
        (303, "/")
    );
    is_dead(&second).await;
    second
}

async fn a_wrong_password_is_answered_as_an_unknown_address(ada: &mut Browser<'_>) {
    let wrong = sign_in(ada, "ada@example.com", "a lamp in the cove").await;
    let nobody = sign_in(ada, "bob@example.com", GOOD).await;
    assert_eq!((wrong.status, nobody.status), (401, 401));
    assert_eq!(
        page_without(&wrong, "ada@example.com"),
        page_without(&nobody, "bob@example.com")
    );
}

/// Nothing of the account works at another app, and no other page signs anybody in or out.
async fn a_session_is_of_one_app(server: &Server, ada: &mut Browser<'_>) {
    sign_in(ada, "ada@example.com", GOOD).await;
    let cookie = format!("loupe_app={}", ada.session().unwrap());
    let there = at(server, "elsewhere", "GET", "/_auth/me").header("cookie", &cookie);
    assert_eq!(Server::send(there).await.status, 401);
    for origin in [
        "https://evil.example",
        "null",
        &format!("http://{}", host(server, "elsewhere")),
        &server.url,
    ] {
        let crossed = at(server, "club", "POST", "/_auth/sign-out")
            .header("cookie", &cookie)
            .header("origin", origin);
        let crossed = filled(crossed, &[("a", "b")]);
        assert_eq!(Server::send(crossed).await.status, 403, "{origin}");
    }
    let silent = at(server, "club", "POST", "/_auth/sign-out").header("cookie", &cookie);
    let silent = filled(silent, &[("a", "b")]);
    assert_eq!(Server::send(silent).await.status, 403);
    assert_eq!(ada.who().await, "ada@example.com");
}

/// Asking for an account that exists tells the page nothing and the owner of the address something.
async fn strangers_learn_nothing_of_accounts(server: &Server, mails: &Mails) {
    let mut eve = Browser::new(server, "club");
    let form = |email| {
        [
            ("email", email),
            ("password", "another password"),
            ("name", "Eve"),
        ]
    };
    let known = eve.post("/_auth/sign-up", &form("ada@example.com")).await;
    assert!(mails.wait(2).await.contains("You have one already"));
    let unknown = eve.post("/_auth/sign-up", &form("new@example.com")).await;
    assert_eq!(
        page_without(&known, "ada@example.com"),
        page_without(&unknown, "new@example.com")
    );
    // The link of an account that somebody else asked for needs the password that they chose.
    let token = token_of(&mails.wait(3).await);
    let mut victim = Browser::new(server, "club");
    let verified = victim.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(verified.status, 401);
    assert_eq!(victim.who().await, Value::Null);
}

/// A forgotten password: one link, half an hour, and every session is over.
async fn a_forgotten_password_is_replaced(
    server: &Server,
    mails: &Mails,
    ada: &mut Browser<'_>,
    lost: &mut Browser<'_>,
) {
    forgot(lost, "nobody@example.com").await;
    forgot(lost, "ada@example.com").await;
    let token = token_of(&mails.wait(4).await);
    server.app.clock().advance(31 * 60);
    assert_eq!(reset(lost, &token, NEW).await, 410);
    forgot(lost, "ada@example.com").await;
    let token = token_of(&mails.wait(5).await);
    assert_eq!(reset(lost, &token, "12345678").await, 422);
    assert_eq!(reset(lost, &token, NEW).await, 303);
    assert!(mails.wait(6).await.contains("was changed"));
    assert_eq!(ada.who().await, Value::Null);
    assert_eq!(lost.who().await, "ada@example.com");
    assert_eq!(reset(lost, &token, "once more again").await, 410);
}

async fn one_signs_out_everywhere_at_once(ada: &mut Browser<'_>, lost: &mut Browser<'_>) {
    sign_in(ada, "ada@example.com", NEW).await;
    assert_eq!(ada.who().await, "ada@example.com");
    lost.post("/_auth/sign-out", &[("everywhere", "true")])
        .await;
    assert_eq!(ada.who().await, Value::Null);
}

/// The owner sees people, gives roles, closes the list, and removes them.
async fn the_owner_looks_after_people(
    server: &Server,
    ada: &mut Browser<'_>,
    id: &str,
    other: &str,
) {
    let path = format!("/v1/apps/{id}/users");
    let users = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(
        (&users["total"], &users["users"][0]["role"]),
        (&json!(1), &json!("org:member"))
    );
    for (query, found) in [
        ("search=ADA%40", 1),
        ("search=nobody", 0),
        ("search=%25", 0),
        ("limit=1&offset=1", 0),
    ] {
        let page = server
            .call("GET", &format!("{path}?{query}"), Value::Null)
            .await
            .ok();
        assert_eq!(page["users"].as_array().unwrap().len(), found, "{query}");
    }
    let wrong = format!("{path}?limit=0");
    let wrong = server.call("GET", &wrong, Value::Null).await;
    wrong.invalid(&["query", "limit"], "range");
    let user = users["users"][0]["user_id"].as_str().unwrap();
    let of_user = format!("{path}/{user}");
    let role = json!({"role": "editor"});
    let role = server.call("PATCH", &format!("{of_user}/role"), role).await;
    assert_eq!(role.ok()["role"], "editor");
    sign_in(ada, "ada@example.com", NEW).await;
    assert_eq!(ada.get("/_auth/me").await.ok()["role"], "editor");
    let theirs = format!("/v1/apps/{other}/users/{user}");
    let theirs = server.call("DELETE", &theirs, Value::Null).await;
    theirs.error(404, "NotFoundError");
    let path = format!("/v1/apps/{id}");
    for (who, status) in [
        ("role:curator", 403),
        ("role:curator, editor", 200),
        ("off", 403),
        ("On", 200),
        ("roles:editor", 403),
    ] {
        let build = json!({"build_config": {"env_vars": {"LOUPE_LIST_USERS": who}}});
        server.call("PATCH", &path, build).await.ok();
        assert_eq!(ada.get("/_auth/users").await.status, status, "{who}");
    }
    server.call("DELETE", &of_user, Value::Null).await.ok();
    assert_eq!(ada.who().await, Value::Null);
}

/// A session ends after a week without a visit, and after a month in any case.
async fn a_session_ends(server: &Server, mails: &Mails, ada: &mut Browser<'_>, id: &str) {
    let path = format!("/v1/apps/{id}/users");
    let invited = json!({"email_address": "ada@example.com", "role": "curator"});
    let invite = format!("{path}/invite");
    server.call("POST", &invite, invited).await.ok();
    assert!(mails.wait(7).await.contains("invited"));
    sign_up(ada, mails, "ada@example.com", 8).await;
    let users = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(users["users"][0]["role"], "curator");
    for days in [6, 6, 6, 6, 5] {
        server.app.clock().advance(days * 86_400);
        assert_eq!(ada.who().await, "ada@example.com");
    }
    server.app.clock().advance(86_400);
    assert_eq!(ada.who().await, Value::Null);
    sign_in(ada, "ada@example.com", GOOD).await;
    server.app.clock().advance(7 * 86_400 + 1);
    assert_eq!(ada.who().await, Value::Null);
}

async fn mail_and_password(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", json!({"mode": "clerk"})).await;
    let other = app(&server, "elsewhere", json!({"mode": "clerk"})).await;
    let mut ada = Browser::new(&server, "club");
    let mut lost = Browser::new(&server, "club");
    a_script_comes_with_every_page(&server).await;
    nobody_is_told_anything(&mut ada).await;
    an_account_is_made(&mut ada, &mails).await;
    let session = each_session_is_another(&server, &mut ada).await;
    a_wrong_password_is_answered_as_an_unknown_address(&mut ada).await;
    a_session_is_of_one_app(&server, &mut ada).await;
    strangers_learn_nothing_of_accounts(&server, &mails).await;
    a_forgotten_password_is_replaced(&server, &mails, &mut ada, &mut lost).await;
    one_signs_out_everywhere_at_once(&mut ada, &mut lost).await;
    the_owner_looks_after_people(&server, &mut ada, &id, &other).await;
    a_session_ends(&server, &mails, &mut ada, &id).await;
    // No secret is in the database.
    let rows: Vec<(String, String)> = server
        .app
        .db()
        .all("SELECT token_hash, user_id FROM app_sessions", vec![])
        .await
        .unwrap();
    assert!(
        rows.iter()
            .all(|(hash, _)| hash.len() == 64 && *hash != session)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_by_mail_and_password_on_sqlite() {
    mail_and_password(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_by_mail_and_password_on_postgres() {
    mail_and_password(Database::Postgres).await;
}

async fn a_reset_ends_the_others(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&server, "club", auth).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    sign_up(
        &mut Browser::new(&server, "club"),
        &mails,
        "bob@example.com",
        2,
    )
    .await;
    let mut lost = Browser::new(&server, "club");
    let mut tokens = Vec::new();
    for (count, email) in [
        (3, "ada@example.com"),
        (4, "ada@example.com"),
        (5, "bob@example.com"),
    ] {
        lost.post("/_auth/forgot", &[("email", email)]).await.ok();
        tokens.push(token_of(&mails.wait(count).await));
    }
    let mut statuses = Vec::new();
    for token in [&tokens[1], &tokens[0], &tokens[2]] {
        let form = [("token", token.as_str()), ("password", "a new lamp there")];
        statuses.push(
            Browser::new(&server, "club")
                .post("/_auth/reset", &form)
                .await
                .status,
        );
    }
    // The older link of the same account is over with the newer one; another person's is not.
    assert_eq!(statuses, [303, 410, 303]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_ends_the_others_on_sqlite() {
    a_reset_ends_the_others(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_ends_the_others_on_postgres() {
    a_reset_ends_the_others(Database::Postgres).await;
}
