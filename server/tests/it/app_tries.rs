//! Tries to sign in to hosted apps, counted for all processes together.

use futures::future::join_all;
use loupe_server::hosting::auth::sweep;
use serde_json::json;

use crate::{
    apps::{at, host},
    both,
    browser::{app, filled},
    harness::{Answer, Database, Server},
};

/// A password that is wrong, whoever it is tried for.
async fn guess(server: &Server, email: &str) -> Answer {
    let form = [("email", email), ("password", "a lamp in the cove")];
    post(server, "/_auth/sign-in", &form).await
}

async fn post(server: &Server, path: &str, form: &[(&str, &str)]) -> Answer {
    let origin = format!("http://{}", host(server, "club"));
    let request = at(server, "club", "POST", path).header("origin", origin);
    Server::send(filled(request, form)).await
}

/// Seconds that a refusal says.
fn wait(answer: &Answer) -> i64 {
    let told = answer.headers["retry-after"].to_str().unwrap();
    told.parse().unwrap()
}

both! {
    async fn a_restart_forgets_no_wrong_tries(server) {
        app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["email"]})).await;
        server.app.clock().hold();
        // Until the next wait is longer than any restart takes.
        let mut waited = 0;
        while waited < 160 {
            let answer = guess(&server, "ada@example.com").await;
            if answer.status == 429 {
                waited = wait(&answer);
                server.app.clock().advance(waited);
            }
        }
        assert_eq!(guess(&server, "ada@example.com").await.status, 401);
        // Who tried what is not to be read.
        let names: Vec<(String,)> = server.app.db().all("SELECT name FROM app_tries", vec![]).await.unwrap();
        assert!(!names.is_empty() && names.iter().all(|(name,)| name.len() == 64), "{names:?}");

        let server = server.restart().await;
        let refused = guess(&server, "ada@example.com").await;
        assert_eq!(refused.status, 429);
        assert!(wait(&refused) > 100, "{}", wait(&refused));
        assert_eq!(guess(&server, "bob@example.com").await.status, 401);
    }
}

both! {
    async fn what_came_too_early_need_not_be_typed_again(server) {
        app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["email"]})).await;
        server.app.clock().hold();
        let form = [("email", "ada@example.com"), ("password", "a lamp in the cove"), ("return_to", "/films?q=sea")];
        let mut refused = post(&server, "/_auth/sign-in", &form).await;
        for _ in 0..10 {
            if refused.status == 429 {
                break;
            }
            refused = post(&server, "/_auth/sign-in", &form).await;
        }
        assert_eq!(refused.status, 429);
        let page = refused.body.as_str().unwrap();
        let passing = format!("<span data-wait aria-live=\"off\">{}</span> s", wait(&refused));
        for part in ["value=\"ada@example.com\"", "name=\"return_to\" value=\"/films?q=sea\"", "action=\"/_auth/sign-in\"", passing.as_str()] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("a lamp in the cove"), "{page}");

        // What is no address is told beside the field, too.
        let odd = post(&server, "/_auth/forgot", &[("email", "no address")]).await;
        assert_eq!(odd.status, 422);
        let page = odd.body.as_str().unwrap();
        assert!(page.contains("no e-mail address") && page.contains("value=\"no address\""), "{page}");
    }
}

both! {
    async fn a_restart_forgets_no_wrong_password_of_an_app(server) {
        app(&server, "club", json!({"mode": "password", "password": "sesame, the first"})).await;
        server.app.clock().hold();
        let mut waited = 0;
        while waited < 64 {
            let answer = post(&server, "/_auth/unlock", &[("password", "sesame, the last")]).await;
            if answer.status == 429 {
                waited = wait(&answer);
                server.app.clock().advance(waited);
            }
        }
        let wrong = [("password", "sesame, the last")];
        assert_eq!(post(&server, "/_auth/unlock", &wrong).await.status, 401);
        let server = server.restart().await;
        let refused = post(&server, "/_auth/unlock", &[("password", "sesame, the first")]).await;
        assert_eq!(refused.status, 429);
        assert!(wait(&refused) > 100, "{}", wait(&refused));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_count_the_same_tries() {
    let first = Server::start(Database::Postgres).await;
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    app(&first, "club", auth).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = first.app.config().clone();
    config.data = folder.path().join("data");
    config.listen.set_port(0);
    let second = Server::start_with(config, folder, Some(first.key.clone())).await;
    let both = [&first, &second];
    for server in both {
        server.app.clock().hold();
    }

    // Five wrong tries, whichever process they come to, and nobody tries again at once.
    for number in 0..5 {
        let answer = guess(both[number % 2], "ada@example.com").await;
        assert_eq!(answer.status, 401, "{number}");
    }
    for server in [&second, &first, &second] {
        assert_eq!(guess(server, "ada@example.com").await.status, 429);
    }
    // One address has twenty tries a minute at all of them, of which that were eight.
    let mut taken = 8;
    while guess(both[taken % 2], "no address").await.status == 401 {
        taken += 1;
    }
    assert_eq!(taken, 20);
    assert_eq!(guess(&first, "no address").await.status, 429);
    assert_eq!(guess(&second, "no address").await.status, 429);
}

both! {
    async fn tries_and_the_removal_of_old_ones_wait_for_each_other_in_turn(server) {
        app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["email"]})).await;
        server.app.clock().hold();
        let guesses = async || {
            let emails = ["ada@example.com", "bob@example.com", "cyd@example.com", "dan@example.com"];
            let answers = join_all(emails.map(|email| guess(&server, email))).await;
            for answer in answers {
                assert_eq!(answer.status, 401, "{:#}", answer.body);
            }
        };
        guesses().await;
        for _ in 0..5 {
            // Nothing of before counts any more.
            server.app.clock().advance(2 * 3600);
            let (swept, ()) = tokio::join!(sweep(&server.app), guesses());
            swept.unwrap();
        }
        server.app.clock().advance(2 * 3600);
        sweep(&server.app).await.unwrap();
        let left: Vec<(String,)> = server.app.db().all("SELECT name FROM app_tries", vec![]).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}
