//! Who may become a person of an app: only who was invited where its owner says so, and what a provider says nothing of.

use serde_json::{Value, json};

use crate::{
    app_providers::{Idp, signs_in_as},
    app_sign_in::sign_up,
    apps::visit,
    both,
    browser::{Browser, GOOD, app, server_with_mail, token_of},
    harness::{Database, Server},
};

async fn invite(server: &Server, id: &str, email: &str) -> String {
    let body = json!({"email_address": email, "role": "editor"});
    let path = format!("/v1/apps/{id}/users/invite");
    let made = server.call("POST", &path, body).await.ok();
    made["invitation_id"].as_str().unwrap().to_owned()
}

async fn close(server: &Server, id: &str, word: &str) {
    let build = json!({"build_config": {"env_vars": {"LOUPE_SIGN_UP": word}}});
    let path = format!("/v1/apps/{id}");
    server.call("PATCH", &path, build).await.ok();
}

async fn ask(browser: &mut Browser<'_>, email: &str) -> String {
    let form = [("email", email), ("password", GOOD)];
    let page = browser.post("/_auth/sign-up", &form).await;
    assert_eq!(page.status, 200);
    page.body.as_str().unwrap().replace(email, "EMAIL")
}

/// A page but for the numbers of its policy.
fn words(page: &str) -> &str {
    page.split("<main>").nth(1).unwrap()
}

async fn only_who_was_invited_makes_an_account(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    let id = app(&server, "club", auth).await;
    let odd = json!({"build_config": {"env_vars": {"LOUPE_SIGN_UP": "never"}}});
    let place = ["body", "build_config", "env_vars", "LOUPE_SIGN_UP"];
    let refused = server.call("PATCH", &format!("/v1/apps/{id}"), odd).await;
    refused.invalid(&place, "value_error");
    close(&server, &id, "invited").await;
    let page = visit(&server, "club", "/_auth/sign-up").await;
    assert!(
        page.body
            .as_str()
            .unwrap()
            .contains("Only people who were invited")
    );

    // The page tells nobody who was invited; the mail does.
    let mut eve = Browser::new(&server, "club");
    let uninvited = ask(&mut eve, "eve@example.com").await;
    let mail = mails.wait(1).await;
    assert!(
        mail.contains("were invited") && !mail.contains("token="),
        "{mail}"
    );
    let taken_back = invite(&server, &id, "bob@example.com").await;
    mails.wait(2).await;
    let mut bob = Browser::new(&server, "club");
    let invited = ask(&mut bob, "bob@example.com").await;
    assert_eq!(words(&invited), words(&uninvited));
    let token = token_of(&mails.wait(3).await);
    // An invitation that is taken back meanwhile opens nothing.
    let path = format!("/v1/apps/{id}/users/invitations/{taken_back}");
    server.call("DELETE", &path, Value::Null).await.ok();
    let late = bob.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(late.status, 410);
    // There is nothing to fill in for a link that is over, and a way to another.
    let over = late.body.as_str().unwrap();
    assert!(
        over.contains("/_auth/sign-up?") && !over.contains("<form"),
        "{over}"
    );
    assert_eq!(bob.session(), None);

    invite(&server, &id, "ada@example.com").await;
    mails.wait(4).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 5).await;
    assert_eq!(ada.get("/_auth/me").await.ok()["role"], "editor");
    // Whoever is there stays, and everybody comes where the owner says so.
    server.app.clock().advance(61);
    close(&server, &id, "on").await;
    let mut eve = Browser::new(&server, "club");
    sign_up(&mut eve, &mails, "eve@example.com", 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_was_invited_makes_an_account_on_sqlite() {
    only_who_was_invited_makes_an_account(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_was_invited_makes_an_account_on_postgres() {
    only_who_was_invited_makes_an_account(Database::Postgres).await;
}

/// An app whose people come by this provider.
async fn club(server: &Server, idp: &Idp) -> String {
    let secret = json!({"secret_name": "idp", "secret_value": "the secret"});
    let made = server
        .call("POST", "/v1/organizations/secrets", secret)
        .await;
    made.ok();
    let auth = json!({"mode": "sso_oidc", "oidc_issuer": idp.issuer, "oidc_client_id": "club", "oidc_client_secret_name": "idp"});
    app(server, "club", auth).await
}

both! {
    async fn a_provider_brings_nobody_who_was_not_invited(server) {
        let idp = Idp::start().await;
        let id = club(&server, &idp).await;
        close(&server, &id, "invited").await;
        let mut ada = Browser::new(&server, "club");
        let refused = signs_in_as(&idp, &mut ada, |_| {}).await;
        assert_eq!((refused.status, ada.session()), (403, None));
        assert!(refused.body.as_str().unwrap().contains("were invited"));
        // What nobody has proven is no invited address.
        invite(&server, &id, "ada@example.com").await;
        let refused = signs_in_as(&idp, &mut ada, |claims| claims["email_verified"] = Value::Null).await;
        assert_eq!(refused.status, 403);
        assert_eq!(signs_in_as(&idp, &mut ada, |_| {}).await.status, 303);
        assert_eq!(ada.get("/_auth/me").await.ok()["role"], "editor");
        // Who is there comes again, invited or not.
        let mut again = Browser::new(&server, "club");
        assert_eq!(signs_in_as(&idp, &mut again, |_| {}).await.status, 303);
    }

    async fn a_provider_in_a_network_of_ones_own_is_asked_where_the_settings_say(server) {
        let idp = Idp::start().await;
        let server = server.restart_with(|config| config.outbound.allow = Vec::new()).await;
        let auth = json!({"mode": "sso_oidc", "oidc_issuer": idp.issuer, "oidc_client_id": "club"});
        let body = json!({"slug": "club", "meta": {"title": "Club"}, "auth_config": auth});
        let refused = server.call("POST", "/v1/apps", body).await;
        refused.invalid(&["body", "auth_config", "oidc_issuer"], "value_error");
        let server = server.restart_with(|config| {
            config.outbound.allow = Vec::new();
            config.sign_in.oidc_addresses = vec!["127.0.0.2".into()];
        }).await;
        club(&server, &idp).await;
        let mut ada = Browser::new(&server, "club");
        assert_eq!(signs_in_as(&idp, &mut ada, |_| {}).await.status, 303);
        // Nothing else reaches it.
        assert!(server.app.outbound().check(&idp.issuer).is_err());
    }

    async fn an_address_that_nobody_has_proven_signs_in_and_finds_nothing(server) {
        let idp = Idp::start().await;
        let id = club(&server, &idp).await;
        let mut proven = Browser::new(&server, "club");
        let said = signs_in_as(&idp, &mut proven, |claims| claims["email_verified"] = json!("True")).await;
        assert_eq!(said.status, 303);
        let ada = proven.get("/_auth/me").await.ok();
        assert_eq!((&ada["email"], ada.get("email_verified")), (&json!("ada@example.com"), None));
        assert_eq!(ada["signed_in_with"], "oidc");
        let mut ids = Vec::new();
        for name in ["Eve", "Eva"] {
            let mut eve = Browser::new(&server, "club");
            let silent = signs_in_as(&idp, &mut eve, |claims| {
                claims["sub"] = json!("5678");
                claims["name"] = json!(name);
                claims.as_object_mut().unwrap().remove("email_verified");
            }).await;
            assert_eq!(silent.status, 303);
            let me = eve.get("/_auth/me").await.ok();
            assert_eq!((&me["email"], &me["email_verified"], &me["name"]), (&json!("ada@example.com"), &json!(false), &json!(name)));
            ids.push(me["id"].clone());
        }
        assert_eq!(ids[0], ids[1]);
        assert_ne!(ids[0], ada["id"]);
        for denied in [json!(false), json!("no"), json!(1)] {
            let mut eve = Browser::new(&server, "club");
            let refused = signs_in_as(&idp, &mut eve, |claims| {
                claims["sub"] = json!("9999");
                claims["email_verified"] = denied.clone();
            }).await;
            assert_eq!((refused.status, eve.session()), (400, None), "{denied}");
        }
        let list = server.call("GET", &format!("/v1/apps/{id}/users?search=ada@"), Value::Null).await.ok();
        let users = list["users"].as_array().unwrap();
        let told: Vec<_> = users.iter().map(|one| (&one["email"], &one["email_verified"], &one["last_signed_in_with"])).collect();
        let (email, way) = (json!("ada@example.com"), json!("oidc"));
        assert_eq!(told, [(&email, &Value::Null, &way), (&email, &json!(false), &way)]);
        // Who is invited is whoever has proven the address, and no one else.
        invite(&server, &id, "ada@example.com").await;
        let list = server.call("GET", &format!("/v1/apps/{id}/users"), Value::Null).await.ok();
        let roles: Vec<_> = list["users"].as_array().unwrap().iter().map(|one| one["role"].clone()).collect();
        assert_eq!(roles, ["editor", "org:member"]);
    }
}
