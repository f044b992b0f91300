//! Sessions of people of hosted apps: seen by them, and ended one by one.

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::{at, host},
    browser::{Browser, GOOD, app, filled, server_with_mail},
    harness::Database,
};

/// The sessions that a page tells of: what it says of each, and its name in the form.
async fn sessions_of(browser: &mut Browser<'_>) -> Vec<(String, String)> {
    let page = browser.get("/_auth/sessions?return_to=%2Ffilms").await;
    let page = page.body.as_str().unwrap();
    assert!(page.contains("Sign out everywhere"), "{page}");
    let found = page.split("<li><div>").skip(1).map(|item| {
        let (told, rest) = item.split_once("</small>").unwrap();
        let (_, id) = rest.split_once(r#"name="session" value=""#).unwrap();
        (told.to_owned(), id.split('"').next().unwrap().to_owned())
    });
    found.collect()
}

async fn sessions_are_seen_and_ended(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    app(&server, "club", json!({"mode": "clerk"})).await;
    let [mut ada, mut lost, mut bob] = [(); 3].map(|()| Browser::new(&server, "club"));
    let away = ada.get("/_auth/sessions?return_to=%2Ffilms").await;
    assert_eq!(away.status, 303);
    assert_eq!(
        away.headers["location"],
        "/_auth/sign-in?return_to=%2F_auth%2Fsessions%3Freturn_to%3D%252Ffilms"
    );
    assert_eq!(ada.post("/_auth/sessions/end", &[]).await.status, 401);
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    sign_up(&mut bob, &mails, "bob@example.com", 2).await;
    let form = [("email", "ada@example.com"), ("password", GOOD)];
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let signs_in = at(&server, "club", "POST", "/_auth/sign-in")
        .header("origin", format!("http://{}", host(&server, "club")))
        .header("user-agent", firefox);
    lost.send(filled(signs_in, &form)).await;
    assert_eq!(lost.who().await, "ada@example.com");

    let is_firefox = |told: &str| told.starts_with("Firefox on Linux<small>");
    let seen = sessions_of(&mut lost).await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    for (told, _) in &seen {
        let about = if is_firefox(told) {
            "This browser, signed in <time>2"
        } else {
            "A browser<small>Signed in <time>2"
        };
        assert!(told.contains(about), "{told}");
    }
    let theirs = sessions_of(&mut bob).await;
    assert!(
        theirs.len() == 1 && !seen.contains(&theirs[0]),
        "{theirs:?}"
    );
    // Nobody ends another's; that is answered as one that is none.
    for id in [seen[0].1.as_str(), "nothing", ""] {
        let refused = bob.post("/_auth/sessions/end", &[("session", id)]).await;
        assert_eq!(refused.status, 404, "{id}");
    }
    let of_lost = seen.iter().find(|(told, _)| is_firefox(told)).unwrap();
    assert_eq!(
        end(&mut ada, &of_lost.1).await,
        "/_auth/sessions?return_to=%2Ffilms"
    );
    assert_eq!(
        (lost.who().await, ada.who().await),
        (Value::Null, json!("ada@example.com"))
    );
    // Whoever ends the own one is signed out.
    let left = sessions_of(&mut ada).await;
    assert!(
        left.len() == 1 && left[0].0.contains("This browser"),
        "{left:?}"
    );
    assert_eq!(end(&mut ada, &left[0].1).await, "/films");
    assert_eq!(ada.session(), None);
    assert_eq!(ada.who().await, Value::Null);
    assert_eq!(bob.who().await, "bob@example.com");
}

/// Ends a session; answers where that leads.
async fn end(browser: &mut Browser<'_>, id: &str) -> String {
    let form = [("session", id), ("return_to", "/films")];
    let ended = browser.post("/_auth/sessions/end", &form).await;
    assert_eq!(ended.status, 303, "{:#}", ended.body);
    ended.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_seen_and_ended_on_sqlite() {
    sessions_are_seen_and_ended(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_seen_and_ended_on_postgres() {
    sessions_are_seen_and_ended(Database::Postgres).await;
}
