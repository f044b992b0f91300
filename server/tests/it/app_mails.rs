//! What the mails of an app say: where they lead, and who is asked to come.

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    browser::{Browser, GOOD, app, filled, server_with_mail},
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
