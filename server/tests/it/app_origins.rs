//! S-43: what signs people in to hosted apps listens to pages of the app itself, and to no other.

use serde_json::json;

use crate::{
    apps::{at, host},
    both,
    browser::{GOOD, app, filled},
    harness::{Answer, Server},
};

/// Every address below `/_auth` that changes something.
const CHANGING: [&str; 14] = [
    "sign-in",
    "sign-up",
    "verify",
    "forgot",
    "reset",
    "sign-out",
    "start",
    "passkeys/options",
    "passkeys/sign-in",
    "passkeys/add",
    "passkeys/remove",
    "sessions/end",
    "account",
    "password",
];

/// Headers that a browser sends on its own.
type Told<'a> = &'a [(&'a str, &'a str)];

fn post(server: &Server, path: &str, told: Told<'_>) -> reqwest::RequestBuilder {
    let request = at(server, "club", "POST", &format!("/_auth/{path}"));
    let add = |request: reqwest::RequestBuilder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    told.iter().fold(request, add)
}

async fn sent(server: &Server, path: &str, told: Told<'_>) -> Answer {
    let form = [("email", "ada@example.com"), ("password", GOOD)];
    Server::send(filled(post(server, path, told), &form)).await
}

/// Whether it was the page that was not listened to.
fn is_elsewhere(answer: &Answer) -> bool {
    answer.status == 403 && answer.body.to_string().contains("page of another origin")
}

both! {
    async fn no_page_elsewhere_changes_anything(server) {
        app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["email", "passkey"]})).await;
        let beside = format!("http://{}.evil.example", host(&server, "club"));
        let another = format!("http://{}", host(&server, "other"));
        let own = format!("http://{}", host(&server, "club"));
        let cookie = ("cookie", "loupe_app=one");
        let elsewhere: [Told<'_>; 9] = [
            &[("origin", "https://evil.example")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")],
            &[("origin", "null")],
            &[("origin", server.url.as_str())],
            &[("origin", another.as_str())],
            &[("origin", beside.as_str())],
            // Without an origin, a browser's own word for where the page is; what says neither has no cookie.
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site"), cookie],
            &[cookie],
        ];
        for path in CHANGING {
            for told in elsewhere {
                let answer = sent(&server, path, told).await;
                assert!(is_elsewhere(&answer), "{path} {told:?}: {} {}", answer.status, answer.body);
            }
        }
        for counted in ["SELECT CAST(COUNT(*) AS BIGINT) FROM app_users", "SELECT CAST(COUNT(*) AS BIGINT) FROM app_tokens"] {
            assert_eq!(server.app.db().number(counted, vec![]).await.unwrap(), 0, "{counted}");
        }
        let here: [Told<'_>; 3] = [&[("origin", own.as_str()), cookie], &[("sec-fetch-site", "same-origin"), cookie], &[]];
        for path in CHANGING {
            for told in here {
                let answer = sent(&server, path, told).await;
                assert!(!is_elsewhere(&answer), "{path} {told:?}: {}", answer.body);
            }
            // A form that any page may send without asking is none that is read.
            let plain = post(&server, path, here[0]).header("content-type", "text/plain").body("{\"email\": \"ada@example.com\"}");
            assert_eq!(Server::send(plain).await.status, 400, "{path}");
        }
    }
}
