//! Passwords whose hashes were made with less than what is asked for today.

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, Version};
use loupe_server::{
    args,
    db::{Arg, Json},
};
use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    browser::{Browser, GOOD, app, server_with_mail},
    harness::{Database, Server},
};

/// The hash that another day would have made.
fn weak(password: &str) -> String {
    let params = Params::new(8 * 1024, 1, 1, None).unwrap();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash: PasswordHash = argon.hash_password(password.as_bytes()).unwrap();
    hash.to_string()
}

/// What is kept of the app's only person.
async fn kept(server: &Server) -> Value {
    let db = server.app.db();
    let rows: Vec<(Json<Value>,)> = db.all("SELECT data FROM app_users", vec![]).await.unwrap();
    assert_eq!(rows.len(), 1);
    rows[0].0.0.clone()
}

async fn keep(server: &Server, profile: Value) {
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            tx.run("UPDATE app_users SET data = $1", args![Arg::json(&profile)])
                .await
        })
    });
    assert_eq!(write.await.unwrap(), 1);
}

async fn a_weak_hash_is_renewed_at_sign_in(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&server, "club", auth).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let strong = kept(&server).await["password"].clone();

    // A hash of today stays as it is.
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    let mut again = Browser::new(&server, "club");
    assert_eq!(again.post("/_auth/sign-in", &right).await.status, 303);
    assert_eq!(kept(&server).await["password"], strong);

    let mut profile = kept(&server).await;
    let old = weak(GOOD);
    profile["password"] = json!(old);
    keep(&server, profile).await;
    // A wrong password changes nothing.
    let mut eve = Browser::new(&server, "club");
    let wrong = [
        ("email", "ada@example.com"),
        ("password", "a lamp in the cove"),
    ];
    assert_eq!(eve.post("/_auth/sign-in", &wrong).await.status, 401);
    assert_eq!(kept(&server).await["password"], json!(old));

    // The right one is kept as those of today are, with everything else; nobody is signed out by it.
    let mut home = Browser::new(&server, "club");
    assert_eq!(home.post("/_auth/sign-in", &right).await.status, 303);
    let now = kept(&server).await;
    let hash = now["password"].as_str().unwrap();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{hash}"
    );
    assert_ne!(now["password"], strong);
    assert_eq!(now["name"], "Ada");
    for browser in [&mut ada, &mut again, &mut home] {
        assert_eq!(browser.who().await, "ada@example.com");
    }
    let mut later = Browser::new(&server, "club");
    assert_eq!(later.post("/_auth/sign-in", &right).await.status, 303);
    assert_eq!(kept(&server).await, now);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weak_hash_is_renewed_at_sign_in_on_sqlite() {
    a_weak_hash_is_renewed_at_sign_in(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weak_hash_is_renewed_at_sign_in_on_postgres() {
    a_weak_hash_is_renewed_at_sign_in(Database::Postgres).await;
}
