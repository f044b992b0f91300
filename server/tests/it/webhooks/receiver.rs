//! Receivers that answer what they are told to, and what they find of a message's signatures.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, response::IntoResponse};
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What came: headers and body.
pub type Message = (HeaderMap, Vec<u8>);

/// What was received, and the statuses that are answered next; 200 when there is none, and no answer for [`HANG`].
#[derive(Clone, Default)]
pub struct Receiver {
    pub(super) received: Arc<Mutex<Vec<Message>>>,
    answers: Arc<Mutex<VecDeque<u16>>>,
    pub url: String,
}

/// In place of a status: the receiver does not answer.
pub const HANG: u16 = 0;

impl Receiver {
    /// Listens where the tests' servers may send to.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let receiver = Self {
            url: format!("http://{}/hook", listener.local_addr().unwrap()),
            ..Self::default()
        };
        let router = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    pub fn answer(&self, statuses: &[u16]) {
        self.answers.lock().unwrap().extend(statuses);
    }

    /// Waits for so many messages, and that no more come.
    pub async fn wait(&self, count: usize) -> Vec<Message> {
        let start = Instant::now();
        while self.received.lock().unwrap().len() < count {
            assert!(
                start.elapsed() < Duration::from_secs(180),
                "{} of {count} messages came",
                self.received.lock().unwrap().len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
        let received = self.received.lock().unwrap().clone();
        assert_eq!(received.len(), count, "more came than should");
        received
    }
}

async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    receiver
        .received
        .lock()
        .unwrap()
        .push((headers, body.to_vec()));
    let status = receiver.answers.lock().unwrap().pop_front().unwrap_or(200);
    if status == HANG {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let status = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    // A redirect that is followed is one message more.
    let elsewhere = format!("{}/elsewhere", receiver.url);
    (status, [("location", elsewhere)], "what the receiver says")
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Verifies a message as a library of Standard Webhooks does: step by step what that for Python does (`standardwebhooks` 1.1.0).
pub fn verify(headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Result<(), String> {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.ok_or_else(|| format!("{name} is missing"))
    };
    let key = secret.strip_prefix("whsec_").unwrap_or(secret);
    let key = STANDARD.decode(key).map_err(|error| error.to_string())?;
    let (id, at, passed) = (
        header("webhook-id")?,
        header("webhook-timestamp")?,
        header("webhook-signature")?,
    );
    let seconds: i64 = at.parse().map_err(|_| format!("{at} is no timestamp"))?;
    if (now - seconds).abs() > 300 {
        return Err(format!("{at} is not of {now}"));
    }
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let expected = mac(&key, format!("{id}.{seconds}.{text}").as_bytes());
    for one in passed.split(' ') {
        let parts: Vec<&str> = one.split(',').collect();
        let [version, signature] = parts[..] else {
            return Err(format!("{one} is no version and signature"));
        };
        if version == "v1" && STANDARD.decode(signature).is_ok_and(|one| one == expected) {
            return Ok(());
        }
    }
    Err(format!("none of {passed} matches"))
}

/// Whether the message carries this secret's signatures, in both forms.
pub fn is_signed(headers: &HeaderMap, body: &[u8], secret: &str) -> bool {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, at) = (text("webhook-id"), text("webhook-timestamp"));
    let key = STANDARD
        .decode(secret.trim_start_matches("whsec_"))
        .unwrap();
    let standard = mac(
        &key,
        &[id.as_bytes(), b".", at.as_bytes(), b".", body].concat(),
    );
    let own = mac(secret.as_bytes(), &[at.as_bytes(), b".", body].concat());
    text("webhook-signature")
        .split(' ')
        .any(|one| one == format!("v1,{}", STANDARD.encode(&standard)))
        && text("x-loupe-signature").starts_with(&format!("t={at},"))
        && text("x-loupe-signature")
            .split(',')
            .any(|one| one == format!("v1={}", hex::encode(&own)))
}

/// A receiver that takes everything, and says more than anybody reads, or packs it.
pub async fn talkative() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(talk);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn talk(uri: axum::http::Uri) -> impl IntoResponse {
    let packed = uri.path() == "/packed";
    let encoding = if packed { "gzip" } else { "identity" };
    ([("content-encoding", encoding)], "x".repeat(100_000))
}
