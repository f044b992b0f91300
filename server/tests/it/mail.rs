//! E-mail: alerts and webhooks through a mail server that listens.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::harness::{Database, Server, config, retriever};

/// A letter: who it is for, and its text with the head.
type Letter = (Vec<String>, String);

/// A mail server. It answers the next letters with these codes, the rest with 250.
#[derive(Clone, Default)]
struct Mailbox {
    letters: Arc<Mutex<Vec<Letter>>>,
    codes: Arc<Mutex<VecDeque<u16>>>,
    url: String,
}

impl Mailbox {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mailbox = Self {
            url: format!("smtp://{}", listener.local_addr().unwrap()),
            ..Self::default()
        };
        let serving = mailbox.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.talk(stream).await });
            }
        });
        mailbox
    }

    async fn talk(&self, stream: TcpStream) -> Option<()> {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        write.write_all(b"220 mailbox\r\n").await.ok()?;
        let mut to = Vec::new();
        while let Some(line) = lines.next_line().await.ok()? {
            let answer = match line.get(..4).unwrap_or_default() {
                "EHLO" | "HELO" | "MAIL" | "RSET" => "250 ok".to_owned(),
                "RCPT" => {
                    to.push(line[8..].trim_matches(['<', '>']).to_owned());
                    "250 ok".to_owned()
                }
                "DATA" => {
                    write.write_all(b"354 go on\r\n").await.ok()?;
                    let mut text = String::new();
                    while let Some(line) = lines.next_line().await.ok()?.filter(|line| line != ".")
                    {
                        text += &line;
                        text.push('\n');
                    }
                    let code = self.codes.lock().unwrap().pop_front().unwrap_or(250);
                    if code == 250 {
                        let letter = (std::mem::take(&mut to), text);
                        self.letters.lock().unwrap().push(letter);
                    }
                    format!("{code} so be it")
                }
                "QUIT" => return write.write_all(b"221 bye\r\n").await.ok(),
                _ => "502 what".to_owned(),
            };
            write
                .write_all(format!("{answer}\r\n").as_bytes())
                .await
                .ok()?;
        }
        Some(())
    }

    async fn wait(&self, count: usize) -> Vec<Letter> {
        let start = Instant::now();
        while self.letters.lock().unwrap().len() < count {
            assert!(
                start.elapsed() < Duration::from_secs(180),
                "too few letters"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.letters.lock().unwrap().clone()
    }
}

async fn server(mailbox: &Mailbox) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.mail.url = mailbox.url.clone().into();
    config.mail.from = "Loupe <loupe@example.com>".into();
    Server::start_with(config, folder, None).await
}

/// Deliveries that lie in the queue for later.
async fn waiting(server: &Server) -> i64 {
    let sql = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'alert_delivery' AND status = 'QUEUED' AND run_after > $1";
    let now = server.app.clock().micros();
    let found = server.app.db().number(sql, loupe_server::args![now]).await;
    found.unwrap()
}

/// The letters of a webhook are made by its templates, which name no other receiver.
async fn a_webhook_is_sent_as_mail(server: &Server, mailbox: &Mailbox, namespace: &str) {
    let webhook = json!({
        "webhook_name": "post", "event_types": ["collection.created"],
        "channels": [{"channel": "email", "configs": {
            "to_addresses": ["desk@example.com"], "subject_template": "made:\r\nBcc: evil@example.com {{INPUT.event_type}}",
            "body_template": "<b>{{INPUT.payload.collection_id}}</b>", "content_type": "html",
        }}],
    });
    server
        .call("POST", "/v1/organizations/webhooks", webhook)
        .await
        .ok();
    let collection = json!({
        "collection_name": "told", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
    });
    let made = server
        .call_in(namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    let letter = mailbox.wait(2).await[1].clone();
    assert_eq!(
        letter.0,
        ["desk@example.com"],
        "a subject is no place for another receiver"
    );
    assert!(letter.1.contains("Content-Type: text/html"), "{}", letter.1);
    let id = made["collection_id"].as_str().unwrap();
    assert!(
        letter
            .1
            .replace("=\n", "")
            .contains(&format!("<b>{id}</b>")),
        "{}",
        letter.1
    );
}

/// Waits until the newest notification of an alert stands so as mail; answers them.
async fn delivered(server: &Server, status: &str) -> Value {
    let start = Instant::now();
    loop {
        let list = json!({"notification_type": "custom"});
        let list = server
            .call("POST", "/v1/notifications/list", list)
            .await
            .ok();
        let of = |place: usize| &list["results"][place]["delivery_status"]["email"];
        if of(0) == status {
            return list;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{list:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_and_webhooks_are_sent_as_mail() {
    let mailbox = Mailbox::start().await;
    let server = server(&mailbox).await;
    let (namespace, retriever) = retriever(&server, "post").await;
    let alert = json!({
        "name": "nothing there", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
        "notification_config": {"channels": [{"channel_type": "email", "config": {
            "to_addresses": ["desk@example.com"], "bcc_addresses": ["boss@example.com"],
        }}]},
    });
    let alert = server
        .call_in(&namespace, "POST", "/v1/alerts", alert)
        .await
        .ok();
    // The mail server is busy for a while: it is asked again, and not before this test lets time pass.
    server.app.clock().hold();
    mailbox.codes.lock().unwrap().extend([451; 4]);
    let path = format!("/v1/alerts/{}", alert["alert_id"].as_str().unwrap());
    server
        .call_in(&namespace, "POST", &format!("{path}/execute"), Value::Null)
        .await
        .ok();
    for left in (0..4).rev() {
        let start = Instant::now();
        // Until it lies in the queue again.
        while mailbox.codes.lock().unwrap().len() > left || waiting(&server).await == 0 {
            assert!(
                start.elapsed() < Duration::from_secs(180),
                "not asked again"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.app.clock().advance(20);
    }
    let letters = mailbox.wait(1).await;
    assert_eq!(letters[0].0, ["desk@example.com", "boss@example.com"]);
    for words in [
        "From: Loupe <loupe@example.com>",
        "To: desk@example.com",
        "Subject: nothing there: ",
        "\"match_count\": 0",
    ] {
        assert!(letters[0].1.contains(words), "{words} in {}", letters[0].1);
    }
    assert!(!letters[0].1.contains("boss@example.com"));

    a_webhook_is_sent_as_mail(&server, &mailbox, &namespace).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_are_sent_as_mail_where_the_preferences_say_so() {
    let mailbox = Mailbox::start().await;
    let server = server(&mailbox).await;
    let (namespace, retriever) = retriever(&server, "news").await;
    let preferences = json!({"preferences": {"custom": {"in_app": false, "email": true}}});
    server
        .call("PUT", "/v1/notifications/preferences", preferences)
        .await
        .ok();
    let alert = json!({
        "name": "nothing there", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
        "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["desk@example.com"]}}]},
    });
    let alert = server
        .call_in(&namespace, "POST", "/v1/alerts", alert)
        .await
        .ok();
    let path = format!("/v1/alerts/{}/execute", alert["alert_id"].as_str().unwrap());
    server
        .call_in(&namespace, "POST", &path, Value::Null)
        .await
        .ok();
    // Nobody said where to.
    let list = delivered(&server, "not_configured").await;
    assert_eq!(list["results"][0]["delivery_status"]["in_app"], "off");
    assert_eq!(list["results"][0]["read"], true);

    let address = json!({"notifications_email": "team@example.com"});
    server
        .call("PATCH", "/v1/organizations", address)
        .await
        .ok();
    server.app.clock().advance(3_600);
    mailbox.codes.lock().unwrap().push_back(451);
    server
        .call_in(&namespace, "POST", &path, Value::Null)
        .await
        .ok();
    // The channel of the alert has two, the notification one.
    let letters = mailbox.wait(3).await;
    let told: Vec<_> = letters
        .iter()
        .filter(|(to, _)| to == &["team@example.com"])
        .collect();
    assert_eq!(told.len(), 1);
    let text = &told[0].1;
    assert!(text.contains("Subject: Alert nothing there"), "{text}");
    delivered(&server, "delivered").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_cannot_be_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.mail.url = "mail.example.com".to_owned().into();
    config.mail.from = "loupe@example.com".into();
    let refused = loupe_server::boot::open(config).await.err().unwrap();
    assert!(format!("{refused:#}").contains("mail.url"), "{refused:#}");
}
