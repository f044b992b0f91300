//! S-7: who is not signed in learns nothing from how long it took: the same work is done for a wrong password and for nobody,
//! and none for either once there were too many tries. The times themselves are measured by `end2end/timing.py`.

use serde_json::Value;

use crate::{
    app_sign_in::sign_up,
    browser::{Browser, app, server_with_mail},
    harness::{Database, Server},
};

/// Hashes that the server has made.
async fn hashes(server: &Server) -> u64 {
    let text = Server::send(server.request("GET", "/metrics")).await.ok();
    let text = text.as_str().unwrap();
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("loupe_password_hashes_total "));
    found.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_fails_is_compared_with_one_hash() {
    let (server, mails) = server_with_mail(Database::Sqlite).await;
    app(&server, "club", serde_json::json!({"mode": "clerk"})).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    // Makes the hash that stands for nobody's.
    let first = [("email", "eve@example.com"), ("password", "whatever it is")];
    ada.post("/_auth/sign-in", &first).await;
    server.app.clock().hold();
    let mut found = Vec::new();
    for email in ["ada@example.com", "bob@example.com"] {
        server.app.clock().advance(61);
        // Of nobody it is known that they were here.
        let mut stranger = Browser::new(&server, "club");
        let mut tries = Vec::new();
        for _ in 0..6 {
            let before = hashes(&server).await;
            let form = [("email", email), ("password", "a lamp in the cove")];
            let answer = stranger.post("/_auth/sign-in", &form).await;
            tries.push((answer.status, hashes(&server).await - before));
        }
        assert_eq!(stranger.who().await, Value::Null);
        found.push(tries);
    }
    let expected = [(401, 1), (401, 1), (401, 1), (401, 1), (401, 1), (429, 0)];
    assert_eq!(found, [expected, expected]);
}
