//! S-41: the id of a session is new whenever somebody signs up or in, changes the password or signs out, and the old one is dead.

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::at,
    browser::{Browser, GOOD, Mails, app, server_with_mail, token_of},
    harness::{Database, Server},
};

const COOKIE: &str = "loupe_app";
const ADA: &str = "ada@example.com";
const NEW: &str = "a new lamp there";

/// Whom this id of a session is of.
async fn holder(server: &Server, session: &str) -> Option<Value> {
    let asked = at(server, "club", "GET", "/_auth/me");
    let answer = Server::send(asked.header("cookie", format!("{COOKIE}={session}"))).await;
    assert!(matches!(answer.status, 200 | 401), "{}", answer.status);
    (answer.status == 200).then(|| answer.body["email"].clone())
}

/// Somebody signs up in a browser that has another one's session: nobody else comes to hold the new one.
async fn signing_up_takes_no_planted_session(server: &Server, mails: &Mails) {
    let mut eve = Browser::new(server, "club");
    sign_up(&mut eve, mails, "eve@example.com", 1).await;
    let planted = eve.session().unwrap().clone();
    let mut ada = Browser::new(server, "club");
    ada.cookies.insert(COOKIE.into(), planted.clone());
    let form = [("email", ADA), ("password", GOOD), ("name", "Ada")];
    ada.post("/_auth/sign-up", &form).await.ok();
    assert_eq!(
        ada.session(),
        Some(&planted),
        "an address that is not verified is nobody's yet"
    );
    let token = token_of(&mails.wait(2).await);
    let done = ada.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(done.status, 303);
    assert_ne!(ada.session(), Some(&planted));
    assert_eq!(ada.who().await, ADA);
    assert_eq!(holder(server, &planted).await, None);
}

/// What somebody made up is no session, and none after somebody signed in with it.
async fn signing_in_takes_no_made_up_session(server: &Server) {
    let planted = "x".repeat(43);
    let mut ada = Browser::new(server, "club");
    ada.cookies.insert(COOKIE.into(), planted.clone());
    let form = [("email", ADA), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &form).await.status, 303);
    assert_ne!(ada.session(), Some(&planted));
    assert_eq!(ada.who().await, ADA);
    assert_eq!(holder(server, &planted).await, None);
}

/// A browser that is signed in gets another session for the new password; that and its neighbours are dead.
async fn a_new_password_is_a_new_session(server: &Server, mails: &Mails) {
    let form = [("email", ADA), ("password", GOOD)];
    let (mut ada, mut phone) = (Browser::new(server, "club"), Browser::new(server, "club"));
    for browser in [&mut ada, &mut phone] {
        assert_eq!(browser.post("/_auth/sign-in", &form).await.status, 303);
    }
    let old = ada.session().unwrap().clone();
    ada.post("/_auth/forgot", &[("email", ADA)]).await.ok();
    let token = token_of(&mails.wait(3).await);
    let form = [("token", token.as_str()), ("password", NEW)];
    assert_eq!(ada.post("/_auth/reset", &form).await.status, 303);
    let new = ada.session().unwrap().clone();
    assert_ne!(new, old);
    assert_eq!(holder(server, &new).await, Some(json!(ADA)));
    for dead in [&old, phone.session().unwrap()] {
        assert_eq!(holder(server, dead).await, None);
    }

    ada.post("/_auth/sign-out", &[("return_to", "/")]).await;
    assert_eq!(ada.session(), None);
    assert_eq!(holder(server, &new).await, None);
}

/// The database itself keeps an id from being given twice.
async fn an_id_is_given_once(server: &Server) {
    let add = async |sql: &'static str| {
        let db = server.app.db();
        db.write(move |tx| Box::pin(tx.run(sql, vec![]))).await
    };
    // Nothing but the ids stands against it.
    let none = add("INSERT INTO app_sessions SELECT * FROM app_sessions WHERE 1 = 0");
    assert_eq!(none.await.unwrap(), 0);
    let twice = add("INSERT INTO app_sessions SELECT * FROM app_sessions").await;
    assert!(twice.is_err(), "{twice:?}");
}

async fn sessions_are_not_fixed(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&server, "club", auth).await;
    signing_up_takes_no_planted_session(&server, &mails).await;
    signing_in_takes_no_made_up_session(&server).await;
    an_id_is_given_once(&server).await;
    a_new_password_is_a_new_session(&server, &mails).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_not_fixed_on_sqlite() {
    sessions_are_not_fixed(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_not_fixed_on_postgres() {
    sessions_are_not_fixed(Database::Postgres).await;
}
