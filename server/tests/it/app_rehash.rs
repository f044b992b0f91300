//! Passwords whose hashes were made with less than what is asked for today.

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, Version};
use loupe_server::{
    args,
    db::{Arg, Json},
};
use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    both,
    browser::{Browser, GOOD, app, server_with_mail},
    harness::{Database, Server},
    locked::{PUBLIC, cookie_of, plain, vault},
};

/// How hashes of today begin.
const TODAY: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

/// The hash that another day would have made in place of this one.
fn weak(password: &str, hash: &str) -> String {
    let params = Params::new(8 * 1024, 1, 1, None).unwrap();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let salt = PasswordHash::new(hash).unwrap().salt.unwrap();
    let hash: PasswordHash = argon
        .hash_password_with_salt(password.as_bytes(), &salt)
        .unwrap();
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
    let old = weak(GOOD, strong.as_str().unwrap());
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
    assert!(hash.starts_with(TODAY), "{hash}");
    assert_ne!(now["password"], strong);
    assert_eq!(now["name"], "Ada");
    for browser in [&mut ada, &mut again, &mut home] {
        assert_eq!(browser.who().await, "ada@example.com");
    }
    let mut later = Browser::new(&server, "club");
    assert_eq!(later.post("/_auth/sign-in", &right).await.status, 303);
    assert_eq!(kept(&server).await["password"], now["password"]);
}

/// The hash of the only page's password.
async fn of_page(server: &Server) -> String {
    let db = server.app.db();
    let hashes = "SELECT hash FROM page_passwords";
    let rows: Vec<(String,)> = db.all(hashes, vec![]).await.unwrap();
    assert_eq!(rows.len(), 1);
    rows[0].0.clone()
}

/// What is kept of the only app.
async fn of_app(server: &Server) -> Value {
    let db = server.app.db();
    let rows: Vec<(Json<Value>,)> = db.all("SELECT data FROM apps", vec![]).await.unwrap();
    assert_eq!(rows.len(), 1);
    rows[0].0.0.clone()
}

both! {
    async fn the_weak_hash_of_a_page_is_renewed_when_somebody_gives_its_password(server) {
        let right = "open sesame";
        vault(&server, json!({"password_secret_name": "gate"})).await;
        let verify = async |password: &str| plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": password})).await;
        let config = async |header: (&str, &str)| plain(&server, "GET", &format!("{PUBLIC}/config"), &[header], Value::Null).await.status;
        let early = cookie_of(&verify(right).await);
        let strong = of_page(&server).await;
        assert!(strong.starts_with(TODAY), "{strong}");
        let old = weak(right, &strong);
        let set = old.clone();
        let write = server.app.db().write(move |tx| Box::pin(async move { tx.run("UPDATE page_passwords SET hash = $1", args![&set]).await }));
        assert_eq!(write.await.unwrap(), 1);
        // A wrong password changes nothing.
        assert_eq!(verify("open").await.ok(), json!({"valid": false}));
        assert_eq!(of_page(&server).await, old);
        // The right one does, in a header, too; who was in stays in.
        assert_eq!(config(("x-retriever-password", right)).await, 200);
        assert_eq!(of_page(&server).await, strong);
        // While the hash is not yet written, those who come with the same password are known without another one.
        let set = old.clone();
        let write = server.app.db().write(move |tx| Box::pin(async move { tx.run("UPDATE page_passwords SET hash = $1", args![&set]).await }));
        assert_eq!(write.await.unwrap(), 1);
        let hashes = server.app.passwords.hashing.runs();
        assert_eq!(config(("x-retriever-password", right)).await, 200);
        assert_eq!((server.app.passwords.hashing.runs(), of_page(&server).await), (hashes, old));
        let set = strong.clone();
        let write = server.app.db().write(move |tx| Box::pin(async move { tx.run("UPDATE page_passwords SET hash = $1", args![&set]).await }));
        assert_eq!(write.await.unwrap(), 1);
        assert_eq!(config(("cookie", &early)).await, 200);
        let late = cookie_of(&verify(right).await);
        assert_eq!(config(("cookie", &late)).await, 200);
        assert_eq!(of_page(&server).await, strong);
    }

    async fn the_weak_hash_of_an_app_is_renewed_when_somebody_gives_its_password(server) {
        let given = "sesame, the third";
        app(&server, "vault", json!({"mode": "password", "password": given})).await;
        let mut early = Browser::new(&server, "vault");
        assert_eq!(early.post("/_auth/unlock", &[("password", given)]).await.status, 303);
        let mut kept = of_app(&server).await;
        let before = kept.clone();
        let strong = kept["auth_config"]["password_hash"].as_str().unwrap().to_owned();
        assert!(strong.starts_with(TODAY), "{strong}");
        kept["auth_config"]["password_hash"] = json!(weak(given, &strong));
        let set = kept.clone();
        let write = server.app.db().write(move |tx| Box::pin(async move { tx.run("UPDATE apps SET data = $1", args![Arg::json(&set)]).await }));
        assert_eq!(write.await.unwrap(), 1);
        server.app.hosting.forget();
        // A wrong password changes nothing.
        let mut late = Browser::new(&server, "vault");
        assert_eq!(late.post("/_auth/unlock", &[("password", "sesame, the first")]).await.status, 401);
        assert_eq!(of_app(&server).await, kept);
        // The right one does, and nothing else of the app; who was in stays in.
        assert_eq!(late.post("/_auth/unlock", &[("password", given)]).await.status, 303);
        assert_eq!(of_app(&server).await, before);
        for browser in [&mut early, &mut late] {
            assert_eq!(browser.get("/").await.status, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weak_hash_is_renewed_at_sign_in_on_sqlite() {
    a_weak_hash_is_renewed_at_sign_in(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weak_hash_is_renewed_at_sign_in_on_postgres() {
    a_weak_hash_is_renewed_at_sign_in(Database::Postgres).await;
}
