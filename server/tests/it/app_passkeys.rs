//! Passkeys as a way into an app, with a device that does what real ones do, and what attackers would.

mod device;

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::{at, host, visit},
    browser::{Browser, GOOD, Mails, app, filled, server_with_mail},
    harness::{Answer, Database, Server},
};
use device::{Asked, Device, Form, UNLOCKED};

/// Their settings: people sign in by mail, and then with passkeys.
fn ways() -> Value {
    json!({"mode": "clerk", "clerk_allowed_providers": ["email", "passkey"]})
}

/// What the server wants of a device.
async fn wanted(browser: &mut Browser<'_>, purpose: &str) -> Value {
    let form = [("for", purpose)];
    browser.post("/_auth/passkeys/options", &form).await.ok()
}

fn challenge(wanted: &Value) -> String {
    wanted["challenge"].as_str().unwrap().to_owned()
}

/// The form that adds one.
const FORM: &str = r#"data-passkey="add""#;

/// What the page of a browser asks a device for.
fn asked(browser: &Browser<'_>, kind: &'static str, wanted: &Value) -> Asked {
    Asked {
        kind,
        challenge: challenge(wanted),
        origin: format!("http://{}", host(browser.server, browser.slug)),
        crosses: false,
        host: format!("{}.localhost", browser.slug),
        flags: UNLOCKED,
        handle: String::new(),
        spoiled: false,
    }
}

async fn post(browser: &mut Browser<'_>, path: &str, form: &Form) -> Answer {
    let form: Vec<(&str, &str)> = form
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    browser.post(path, &form).await
}

/// Adds a passkey of this name, after a change of what the page asks for.
async fn add(
    browser: &mut Browser<'_>,
    device: &mut Device,
    name: &str,
    change: impl FnOnce(&mut Asked),
) -> Answer {
    let wanted = wanted(browser, "add").await;
    device.handle = wanted["user"]["id"].as_str().unwrap().to_owned();
    let mut asked = asked(browser, "webauthn.create", &wanted);
    change(&mut asked);
    let mut form = device.make(&asked);
    form.push(("name", name.to_owned()));
    form.push(("return_to", "/films?x=1".to_owned()));
    post(browser, "/_auth/passkeys/add", &form).await
}

/// A proof for a browser that was just asked for one, after a change of it.
async fn proof(
    browser: &mut Browser<'_>,
    device: &mut Device,
    change: impl FnOnce(&mut Asked),
) -> Form {
    // An address has so many tries in a minute.
    browser.server.app.clock().advance(61);
    let wanted = wanted(browser, "sign-in").await;
    assert_eq!(wanted["rpId"], format!("{}.localhost", browser.slug));
    assert_eq!(wanted["userVerification"], "required");
    let mut asked = asked(browser, "webauthn.get", &wanted);
    asked.handle.clone_from(&device.handle);
    change(&mut asked);
    let mut form = device.sign(&asked);
    form.push(("return_to", "/films?x=1".to_owned()));
    form
}

async fn sign_in(
    browser: &mut Browser<'_>,
    device: &mut Device,
    change: impl FnOnce(&mut Asked),
) -> Answer {
    let form = proof(browser, device, change).await;
    post(browser, "/_auth/passkeys/sign-in", &form).await
}

/// Signs in in a new browser.
async fn signs_in(server: &Server, device: &mut Device) {
    let mut browser = Browser::new(server, "club");
    let done = sign_in(&mut browser, device, |_| ()).await;
    assert_eq!(done.status, 303, "{:#}", done.body);
    assert_eq!(done.headers["location"], "/films?x=1");
    assert_eq!(browser.who().await, "ada@example.com");
}

/// What no browser but one with a passkey of this app opens.
fn is_refused(answer: &Answer, browser: &Browser<'_>, why: &str) {
    assert_eq!(answer.status, 401, "{why}: {:#}", answer.body);
    let page = answer.body.as_str().unwrap();
    assert!(page.contains(r#"id="error""#), "{why}: {page}");
    assert_eq!(browser.session(), None, "{why}");
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

async fn records(server: &Server, user: &str) -> Vec<Value> {
    let path = "/v1/organizations/audit/logs?limit=1000&action=user_updated";
    let path = format!("{path}&resource_id={user}");
    let told = server.call("GET", &path, Value::Null).await.ok();
    let records = told["results"].as_array().unwrap().iter();
    records.map(|one| one["changes"].clone()).collect()
}

/// What pages show of passkeys, where an owner wants them and where not.
async fn pages_offer_them_where_they_are_allowed(server: &Server) {
    let page = visit(server, "club", "/_auth/sign-in").await;
    for part in [
        r#"data-passkey="sign-in" hidden>"#,
        r#"autocomplete="username webauthn""#,
        r#"<script src="/_auth/passkeys.js" defer></script>"#,
    ] {
        assert!(text(&page).contains(part), "{part}: {}", text(&page));
    }
    let script = visit(server, "club", "/_auth/passkeys.js").await;
    assert_eq!(
        script.headers["content-type"],
        "application/javascript; charset=utf-8"
    );
    assert!(text(&script).contains("navigator.credentials"));
    let home = visit(server, "club", "/").await;
    assert!(text(&home).contains("&quot;passkeys&quot;:true"));
    let away = visit(server, "club", "/_auth/passkeys").await;
    assert_eq!(away.status, 303);
    assert_eq!(
        away.headers["location"],
        "/_auth/sign-in?return_to=%2F_auth%2Fpasskeys%3Freturn_to%3D%252F"
    );

    let page = visit(server, "plain", "/_auth/sign-in").await;
    assert!(!text(&page).contains("/_auth/passkeys") && !text(&page).contains("webauthn"));
    let mut eve = Browser::new(server, "plain");
    for purpose in ["sign-in", "add"] {
        let form = [("for", purpose)];
        let options = eve.post("/_auth/passkeys/options", &form).await;
        options.error(403, "ForbiddenError");
    }
    for path in ["sign-in", "add", "remove"] {
        let refused = eve.post(&format!("/_auth/passkeys/{path}"), &[]).await;
        assert_eq!(refused.status, 403, "{path}");
    }
}

/// What owners are told of their settings.
async fn settings_are_checked(server: &Server, id: &str) {
    let path = format!("/v1/apps/{id}");
    let alone = json!({"auth_config": {"mode": "clerk", "clerk_allowed_providers": ["passkey"]}});
    let alone = server.call("PATCH", &path, alone).await;
    alone.invalid(
        &["body", "auth_config", "clerk_allowed_providers"],
        "value_error",
    );
    let path = format!("{path}/sign-in/test");
    let tested = server.call("POST", &path, json!({})).await.ok();
    assert_eq!(tested["success"], true, "{tested:#}");
    assert_eq!(tested["providers"][1]["provider"], "passkey", "{tested:#}");
}

/// Two devices of one person, by whose passkeys she signs in.
async fn two_are_added(ada: &mut Browser<'_>, mails: &Mails) -> (Device, Device) {
    let (mut phone, mut key) = (Device::p256(), Device::ed25519());
    let added = add(ada, &mut phone, " <b>Phone</b> ", |_| ()).await;
    assert_eq!(added.status, 303, "{:#}", added.body);
    assert_eq!(
        added.headers["location"],
        "/_auth/passkeys?return_to=%2Ffilms%3Fx%3D1"
    );
    assert!(mails.wait(2).await.contains("A passkey was added"));
    assert_eq!(add(ada, &mut key, "", |_| ()).await.status, 303);
    assert!(mails.wait(3).await.contains("A passkey was added"));
    let page = ada.get("/_auth/passkeys").await;
    assert!(text(&page).contains("<div>&lt;b&gt;Phone&lt;/b&gt;<small>Added "));
    assert!(text(&page).contains("<div>Passkey of 2") && !text(&page).contains("last used"));
    // A device that is asked again knows that it need not.
    let known = wanted(ada, "add").await;
    assert_eq!(
        known["excludeCredentials"],
        json!([{"type": "public-key", "id": phone.id()}, {"type": "public-key", "id": key.id()}])
    );
    assert_eq!(add(ada, &mut phone, "", |_| ()).await.status, 409);
    (phone, key)
}

/// Nobody removes another's; who removes an own one stays signed in.
async fn one_is_removed(server: &Server, ada: &mut Browser<'_>, mails: &Mails, phone: &mut Device) {
    let mut bob = Browser::new(server, "club");
    sign_up(&mut bob, mails, "bob@example.com", 4).await;
    let id = phone.id();
    let form = [("credential", id.as_str())];
    let removed = bob.post("/_auth/passkeys/remove", &form).await;
    assert_eq!(removed.status, 404);
    let mut eve = Browser::new(server, "club");
    let removed = eve.post("/_auth/passkeys/remove", &form).await;
    assert_eq!(removed.status, 401);
    let odd = [("credential", "\0")];
    assert_eq!(ada.post("/_auth/passkeys/remove", &odd).await.status, 404);
    signs_in(server, phone).await;
    let removed = ada.post("/_auth/passkeys/remove", &form).await;
    assert_eq!(removed.status, 303);
    assert_eq!(ada.who().await, "ada@example.com");
    let refused = sign_in(&mut eve, phone, |_| ()).await;
    is_refused(&refused, &eve, "removed");
}

async fn a_passkey_signs_in(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", ways()).await;
    app(&server, "plain", json!({"mode": "clerk"})).await;
    pages_offer_them_where_they_are_allowed(&server).await;
    settings_are_checked(&server, &id).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let (mut phone, mut key) = two_are_added(&mut ada, &mails).await;
    for device in [&mut phone, &mut key] {
        signs_in(&server, device).await;
        signs_in(&server, device).await;
    }
    let page = ada.get("/_auth/passkeys").await;
    assert_eq!(text(&page).matches(", last used ").count(), 2);

    let me = ada.get("/_auth/me").await.ok();
    let told = records(&server, me["id"].as_str().unwrap()).await;
    let count = |changes: Value| told.iter().filter(|one| **one == changes).count();
    let way = "POST /_auth/passkeys/sign-in";
    let signed_in = json!({"signed_in": true, "operation": way, "app_id": id});
    assert_eq!(count(signed_in), 4, "{told:?}");
    let added = json!({"passkey": "added", "app_id": id});
    assert_eq!(count(added), 2, "{told:?}");
    one_is_removed(&server, &mut ada, &mails, &mut phone).await;
    signs_in(&server, &mut key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passkey_signs_in_on_sqlite() {
    a_passkey_signs_in(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passkey_signs_in_on_postgres() {
    a_passkey_signs_in(Database::Postgres).await;
}

/// What an attack changes of what a page and a device say.
type Change = fn(&mut Asked);

/// Each changes one thing.
const ATTACKS: [(&str, Change); 11] = [
    ("another app's page", |asked| {
        asked.origin = asked.origin.replace("club", "elsewhere");
    }),
    ("another port", |asked| asked.origin.push('0')),
    ("another scheme", |asked| {
        asked.origin = asked.origin.replace("http:", "https:");
    }),
    ("a page within another one", |asked| asked.crosses = true),
    ("a device asked by another host", |asked| {
        asked.host = "localhost".into();
    }),
    ("something else was asked for", |asked| {
        asked.kind = "webauthn.create";
    }),
    ("nobody there", |asked| asked.flags = 0x04),
    ("not unlocked", |asked| asked.flags = 0x01),
    ("a challenge of one's own", |asked| {
        asked.challenge = "A".repeat(43);
    }),
    ("somebody else's", |asked| {
        asked.handle = "ZXVfMDAwMDAwMDAwMDAwMDAwMDAwMDA".into();
    }),
    ("another signature", |asked| asked.spoiled = true),
];

/// Proofs that are good, at the wrong time or place.
async fn good_proofs_elsewhere(server: &Server, phone: &mut Device) {
    let mut browser = Browser::new(server, "club");
    let form = proof(&mut browser, phone, |_| ()).await;
    let mut eve = Browser::new(server, "club");
    let refused = post(&mut eve, "/_auth/passkeys/sign-in", &form).await;
    is_refused(&refused, &eve, "given to another browser");
    let refused = post(&mut browser, "/_auth/passkeys/sign-in", &form).await;
    is_refused(&refused, &browser, "a challenge that somebody tried");

    let form = proof(&mut browser, phone, |_| ()).await;
    let done = post(&mut browser, "/_auth/passkeys/sign-in", &form).await;
    assert_eq!(done.status, 303, "{:#}", done.body);
    browser.cookies.remove("loupe_app");
    let refused = post(&mut browser, "/_auth/passkeys/sign-in", &form).await;
    is_refused(&refused, &browser, "a second time");

    let form = proof(&mut browser, phone, |_| ()).await;
    server.app.clock().advance(5 * 60 + 1);
    let refused = post(&mut browser, "/_auth/passkeys/sign-in", &form).await;
    is_refused(&refused, &browser, "too late");

    phone.count -= 3;
    let refused = sign_in(&mut browser, phone, |_| ()).await;
    is_refused(&refused, &browser, "a device that counts back");
    phone.count += 3;

    let mut there = Browser::new(server, "elsewhere");
    let refused = sign_in(&mut there, phone, |_| ()).await;
    is_refused(&refused, &there, "a passkey of another app");
    let theirs = wanted(&mut there, "sign-in").await;
    let theirs = challenge(&theirs);
    let refused = sign_in(&mut browser, phone, |asked| asked.challenge = theirs).await;
    is_refused(&refused, &browser, "a challenge of another app");
}

/// Pages of other origins sign nobody in.
async fn only_own_pages_ask(server: &Server, phone: &mut Device) {
    let mut browser = Browser::new(server, "club");
    let form = proof(&mut browser, phone, |_| ()).await;
    let cookie = format!("loupe_passkey={}", browser.cookies["loupe_passkey"]);
    for origin in ["https://evil.example", "null", &server.url] {
        for path in ["options", "sign-in", "add", "remove"] {
            let path = format!("/_auth/passkeys/{path}");
            let crossed = at(server, "club", "POST", &path)
                .header("cookie", &cookie)
                .header("origin", origin);
            let crossed = Server::send(filled(crossed, &form)).await;
            assert_eq!(crossed.status, 403, "{path} of {origin}");
        }
    }
}

async fn attacks(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", ways()).await;
    app(&server, "elsewhere", ways()).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let mut phone = Device::p256();
    assert_eq!(add(&mut ada, &mut phone, "", |_| ()).await.status, 303);
    for (name, change) in ATTACKS {
        let mut eve = Browser::new(&server, "club");
        let refused = sign_in(&mut eve, &mut phone, change).await;
        is_refused(&refused, &eve, name);
    }
    let stranger = &mut Device::p256();
    stranger.handle.clone_from(&phone.handle);
    let mut eve = Browser::new(&server, "club");
    let refused = sign_in(&mut eve, stranger, |_| ()).await;
    is_refused(&refused, &eve, "a passkey that nobody added");
    good_proofs_elsewhere(&server, &mut phone).await;
    only_own_pages_ask(&server, &mut phone).await;
    signs_in(&server, &mut phone).await;

    // Without them nobody signs in with one; they are there when they are wanted again.
    let path = format!("/v1/apps/{id}");
    let off = json!({"auth_config": {"mode": "clerk", "clerk_allowed_providers": ["email"]}});
    server.call("PATCH", &path, off).await.ok();
    let mut browser = Browser::new(&server, "club");
    let form = [("for", "sign-in")];
    let options = browser.post("/_auth/passkeys/options", &form).await;
    options.error(403, "ForbiddenError");
    let on = json!({"auth_config": ways()});
    server.call("PATCH", &path, on).await.ok();
    signs_in(&server, &mut phone).await;

    // Whoever is removed has none any more.
    let me = ada.get("/_auth/me").await.ok();
    let user = format!("{path}/users/{}", me["id"].as_str().unwrap());
    server.call("DELETE", &user, Value::Null).await.ok();
    let refused = sign_in(&mut browser, &mut phone, |_| ()).await;
    is_refused(&refused, &browser, "somebody who was removed");
    let left: Vec<(String,)> = server
        .app
        .db()
        .all("SELECT credential_id FROM app_passkeys", vec![])
        .await
        .unwrap();
    assert_eq!(left.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_proves_nothing_opens_nothing_on_sqlite() {
    attacks(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_proves_nothing_opens_nothing_on_postgres() {
    attacks(Database::Postgres).await;
}

/// What a device made for somebody or something else is not kept.
async fn only_what_was_asked_for_is_added(ada: &mut Browser<'_>) {
    let changes: [(&str, Change); 6] = [
        ("another page", |asked| {
            asked.origin = "https://evil.example".into();
        }),
        ("another host", |asked| asked.host = "localhost".into()),
        ("something else", |asked| asked.kind = "webauthn.get"),
        ("nobody there", |asked| asked.flags = 0x04),
        ("not unlocked", |asked| asked.flags = 0x01),
        ("another challenge", |asked| {
            asked.challenge = "A".repeat(43);
        }),
    ];
    let mut device = Device::ed25519();
    for (name, change) in changes {
        let refused = add(ada, &mut device, "", change).await;
        assert_eq!(refused.status, 400, "{name}: {:#}", refused.body);
    }
    // A challenge to sign in with, and one that an earlier session of the same person was given.
    let other = challenge(&wanted(ada, "sign-in").await);
    let refused = add(ada, &mut device, "", |asked| asked.challenge = other).await;
    assert_eq!(refused.status, 400);
    let earlier = challenge(&wanted(ada, "add").await);
    ada.server.app.clock().advance(61);
    let mail = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &mail).await.status, 303);
    let refused = add(ada, &mut device, "", |asked| asked.challenge = earlier).await;
    assert_eq!(refused.status, 400);
    let page = ada.get("/_auth/passkeys").await;
    assert!(text(&page).contains("You have none here."));
}

async fn adding(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    app(&server, "club", ways()).await;
    let form = [("for", "add")];
    let mut eve = Browser::new(&server, "club");
    let options = eve.post("/_auth/passkeys/options", &form).await;
    options.error(401, "AuthenticationError");
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    only_what_was_asked_for_is_added(&mut ada).await;

    // Ten, and no more.
    for number in 0..10 {
        let name = format!("Device {number}");
        let added = add(&mut ada, &mut Device::p256(), &name, |_| ()).await;
        assert_eq!(added.status, 303, "{:#}", added.body);
    }
    let options = ada.post("/_auth/passkeys/options", &form).await;
    options.error(409, "ConflictError");
    let page = ada.get("/_auth/passkeys").await;
    assert!(text(&page).contains("Device 9") && !text(&page).contains(FORM));

    // After an hour, whoever wants to add one signs in again.
    let ids = text(&page).split(r#"name="credential" value=""#);
    let id = ids.skip(1).find_map(|rest| rest.split('"').next()).unwrap();
    let remove = [("credential", id)];
    let removed = ada.post("/_auth/passkeys/remove", &remove).await;
    assert_eq!(removed.status, 303);
    let page = ada.get("/_auth/passkeys").await;
    assert!(text(&page).contains(FORM));
    server.app.clock().advance(3_601);
    let options = ada.post("/_auth/passkeys/options", &form).await;
    options.error(403, "ForbiddenError");
    let page = ada.get("/_auth/passkeys").await;
    assert!(text(&page).contains("Sign in again to add a passkey"));
    assert!(!text(&page).contains(FORM));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_whoever_just_signed_in_adds_a_passkey_on_sqlite() {
    adding(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_whoever_just_signed_in_adds_a_passkey_on_postgres() {
    adding(Database::Postgres).await;
}
