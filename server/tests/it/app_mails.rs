//! What the mails of an app say: where they lead, and who is asked to come.

use serde_json::{Value, json};

use crate::{
    app_sign_in::{page_without, sign_up},
    browser::{Browser, GOOD, app, filled, server_with_mail, token_of},
    domains,
    harness::{Database, Server},
};

/// Whatever host a request names, mails lead to the app's own name, or to its first domain while that is proven.
async fn mails_lead_home(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", json!({"mode": "clerk"})).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let port = server.url.rsplit(':').next().unwrap();
    let domain = domains::name(&server);
    let path = format!("/v1/apps/{id}/domains");
    for (name, first) in [("second", false), ("first", true)] {
        let name = format!("{name}-{domain}");
        let body = json!({"domain": name, "is_primary": first});
        let added = server.call("POST", &path, body).await.ok();
        domains::publish(&name, &[added["verification_token"].as_str().unwrap()]);
        let verify = format!("{path}/{name}/verify");
        let proven = server.call("POST", &verify, Value::Null).await.ok();
        assert_eq!(proven["status"], "active");
    }
    let forgot = async |authority: String| {
        let request = server
            .request("POST", "/_auth/forgot")
            .header("host", &authority)
            .header("origin", format!("http://{authority}"));
        let form = [("email", "ada@example.com")];
        Server::send(filled(request, &form)).await.ok();
    };
    let link = |host: &str| format!("http://{host}:{port}/_auth/reset?token=");
    let first = format!("first-{domain}");
    forgot(format!("second-{domain}:6666")).await;
    let mail = mails.wait(2).await;
    assert!(mail.contains(&link(&first)), "{mail}");
    // Where the app has its own name, also that of a preview, people stay there.
    for (count, slug) in [(3, "club"), (4, "club--v1")] {
        forgot(format!("{slug}.localhost:6666")).await;
        let mail = mails.wait(count).await;
        assert!(mail.contains(&link(&format!("{slug}.localhost"))), "{mail}");
    }
    // A domain whose record is gone may be somebody else's by now, though it still serves the app.
    domains::unpublish(&first);
    server.app.clock().advance(3 * 86_400);
    loupe_server::v1::apps::recheck(&server.app).await.unwrap();
    forgot(format!("{first}:{port}")).await;
    let mail = mails.wait(5).await;
    assert!(mail.contains(&link("club.localhost")), "{mail}");

    // Who is here already has the role of an invitation at once.
    let path = format!("/v1/apps/{id}/users");
    let body = json!({"email_address": "ada@example.com", "role": "curator"});
    let invited = server.call("POST", &format!("{path}/invite"), body).await;
    assert_eq!(invited.ok()["status"], "accepted");
    assert!(mails.wait(6).await.contains("/_auth/sign-in"));
    let users = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(users["users"][0]["role"], "curator");
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &right).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mails_lead_home_on_sqlite() {
    mails_lead_home(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mails_lead_home_on_postgres() {
    mails_lead_home(Database::Postgres).await;
}

/// S-53: who asks learns nothing of others, a link opens something for half an hour, and what is kept of it opens nothing.
async fn links_are_told_to_mails_alone(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&server, "club", auth).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;

    let mut eve = Browser::new(&server, "club");
    let known = [("email", "ada@example.com")];
    let known = eve.post("/_auth/forgot", &known).await;
    let token = token_of(&mails.wait(2).await);
    let unknown = [("email", "new@example.com")];
    let unknown = eve.post("/_auth/forgot", &unknown).await;
    is_kept_as_a_hash(&server, &token).await;
    assert_eq!((known.status, unknown.status), (200, 200));
    assert_eq!(
        page_without(&known, "ada@example.com"),
        page_without(&unknown, "new@example.com")
    );

    let mut bob = Browser::new(&server, "club");
    let mut statuses = Vec::new();
    for (mail, minutes) in [(3, 29), (4, 31)] {
        let email = format!("bob{mail}@example.com");
        let form = [("email", email.as_str()), ("password", GOOD)];
        assert_eq!(bob.post("/_auth/sign-up", &form).await.status, 200);
        let token = token_of(&mails.wait(mail).await);
        is_kept_as_a_hash(&server, &token).await;
        server.app.clock().advance(minutes * 60);
        let verified = bob.post("/_auth/verify", &[("token", &token)]).await;
        statuses.push(verified.status);
    }
    assert_eq!(statuses, [303, 410]);
}

/// What is kept of links, and of ways to providers, is neither this token nor anything that it is part of.
async fn is_kept_as_a_hash(server: &Server, token: &str) {
    let rows = "SELECT token_hash, CAST(data AS TEXT) FROM app_tokens";
    let rows: Vec<(String, String)> = server.app.db().all(rows, vec![]).await.unwrap();
    assert!(!rows.is_empty());
    for (hash, data) in rows {
        let is_hash = hash.len() == 64 && hash.bytes().all(|one| one.is_ascii_hexdigit());
        assert!(is_hash && !data.contains(token), "{hash}: {data}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_are_told_to_mails_alone_on_sqlite() {
    links_are_told_to_mails_alone(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_are_told_to_mails_alone_on_postgres() {
    links_are_told_to_mails_alone(Database::Postgres).await;
}
