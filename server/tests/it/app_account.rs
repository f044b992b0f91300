//! The own account of whoever is signed in to an app: name, password, sessions, without a script.

use serde_json::{Value, json};

use crate::{
    app_providers::{Idp, signs_in_as},
    app_sign_in::sign_up,
    apps::deploy,
    both,
    browser::{Browser, GOOD, app, server_with_mail},
    harness::{Answer, Database},
};

const NEW: &str = "a new lamp there";

fn text(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

async fn change(browser: &mut Browser<'_>, current: &str, new: &str) -> Answer {
    let form = [
        ("current", current),
        ("password", new),
        ("return_to", "/films"),
    ];
    browser.post("/_auth/password", &form).await
}

async fn an_account_is_its_persons_own(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email", "passkey"]});
    let id = app(&server, "club", auth).await;
    let mut nobody = Browser::new(&server, "club");
    for page in ["account", "password"] {
        let away = nobody.get(&format!("/_auth/{page}?return_to=/films")).await;
        assert_eq!(away.status, 303);
        let to = away.headers["location"].to_str().unwrap();
        assert!(
            to.starts_with("/_auth/sign-in?return_to=") && to.contains(page),
            "{to}"
        );
        assert_eq!(
            nobody.post(&format!("/_auth/{page}"), &[]).await.status,
            401
        );
    }

    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let page = ada.get("/_auth/account?return_to=/films").await;
    for part in [
        "ada@example.com",
        r#"value="Ada""#,
        "This browser, signed in",
        "with the password",
        "Sign out everywhere",
        "/_auth/password?return_to=%2Ffilms",
        "/_auth/passkeys?return_to=%2Ffilms",
        r#"href="/films""#,
    ] {
        assert!(text(&page).contains(part), "{part}: {}", text(&page));
    }
    let renamed = ada
        .post(
            "/_auth/account",
            &[("name", " Ada <L> "), ("return_to", "/films")],
        )
        .await;
    assert_eq!(
        renamed.headers["location"],
        "/_auth/account?return_to=%2Ffilms"
    );
    assert_eq!(ada.get("/_auth/me").await.ok()["name"], "Ada <L>");
    assert!(text(&ada.get("/_auth/account").await).contains("Ada &lt;L&gt;"));

    // A password is changed by whoever knows it, and ends what was signed in with the old one.
    server.app.clock().advance(61);
    let mut other = Browser::new(&server, "club");
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(other.post("/_auth/sign-in", &right).await.status, 303);
    assert_eq!(change(&mut ada, "a wrong one here", NEW).await.status, 401);
    assert_eq!(change(&mut ada, GOOD, "short").await.status, 422);
    assert_eq!(other.who().await, "ada@example.com");
    let before = ada.session().cloned();
    let changed = change(&mut ada, GOOD, NEW).await;
    assert_eq!(
        (
            changed.status,
            changed.headers["location"].to_str().unwrap()
        ),
        (303, "/_auth/account?return_to=%2Ffilms")
    );
    assert!(mails.wait(2).await.contains("was changed"));
    assert_ne!(ada.session().cloned(), before);
    assert_eq!(
        (ada.who().await, other.who().await),
        (json!("ada@example.com"), Value::Null)
    );
    assert_eq!(other.post("/_auth/sign-in", &right).await.status, 401);
    let right = [("email", "ada@example.com"), ("password", NEW)];
    assert_eq!(other.post("/_auth/sign-in", &right).await.status, 303);

    // The pages have the app's own icon, as far as it has one.
    assert!(text(&ada.get("/_auth/account").await).contains(r#"<link rel="icon" href="data:,">"#));
    deploy(&server, &id, "production", json!({"index.html": "<h1>Club", "favicon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>"})).await;
    assert!(
        text(&ada.get("/_auth/account").await).contains(r#"<link rel="icon" href="/favicon.svg">"#)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_is_its_persons_own_on_sqlite() {
    an_account_is_its_persons_own(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_is_its_persons_own_on_postgres() {
    an_account_is_its_persons_own(Database::Postgres).await;
}

both! {
    async fn who_has_no_password_changes_none_and_keeps_the_own_name(server) {
        let idp = Idp::start().await;
        let secret = json!({"secret_name": "idp", "secret_value": "the secret"});
        server.call("POST", "/v1/organizations/secrets", secret).await.ok();
        let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email", "oidc"], "oidc_issuer": idp.issuer, "oidc_client_id": "club", "oidc_client_secret_name": "idp"});
        app(&server, "club", auth).await;
        let mut ada = Browser::new(&server, "club");
        assert_eq!(signs_in_as(&idp, &mut ada, |_| {}).await.status, 303);
        let page = ada.get("/_auth/password").await;
        assert!(text(&page).contains("without a password") && !text(&page).contains("<form"), "{}", text(&page));
        assert_eq!(change(&mut ada, GOOD, NEW).await.status, 409);
        ada.post("/_auth/account", &[("name", "Countess")]).await;
        let mut again = Browser::new(&server, "club");
        assert_eq!(signs_in_as(&idp, &mut again, |_| {}).await.status, 303);
        assert_eq!(again.get("/_auth/me").await.ok()["name"], "Countess");
        // Without a name of the own it is the provider's again.
        again.post("/_auth/account", &[("name", " ")]).await;
        assert_eq!(signs_in_as(&idp, &mut Browser::new(&server, "club"), |_| {}).await.status, 303);
        assert_eq!(again.get("/_auth/me").await.ok()["name"], "Ada");
    }
}
