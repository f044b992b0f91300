//! E-mail under STARTTLS: a password and letters are for a mail server that shows a certificate which this machine trusts, and
//! for no other.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    alerts::{is_delivered, results},
    harness::{self, Database, Server, config, retriever},
};

/// An authority that nobody trusts but a process of this test, and what it vouches for: 127.0.0.1, with a key that is secret to
/// nobody.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBfjCCASSgAwIBAgIUZrUYqaQNRiyMwf7CxQZ4oxMxqRIwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRbWFpbGJveCBhdXRob3JpdHkwIBcNMjAwMTAxMDAwMDAwWhgP
MjEyMDAxMDEwMDAwMDBaMBwxGjAYBgNVBAMMEW1haWxib3ggYXV0aG9yaXR5MFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfCogcDPURIKDPeR/+46+HcskxVDFUIRD
iJQQ1lg8N4KT0ozSyR6PuE5SJ8uFC3+ouFBpGywotdNm81Tv0sUjoqNCMEAwDwYD
VR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAgQwHQYDVR0OBBYEFNSvNlO2XiAd
IfE5A3M0Wk3FjluoMAoGCCqGSM49BAMCA0gAMEUCIFmEvX0CUtgLwwEEOsR9cBRG
dS0sS38BtvQPhInpv6stAiEA9ztijec+PpwMdEZyK+4xX2BRse2BcC3LN2agukiy
Q/o=
-----END CERTIFICATE-----";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBpTCCAUugAwIBAgIUGi0XogxxjYRt8Q8Z4S9vJoxuR/swCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRbWFpbGJveCBhdXRob3JpdHkwIBcNMjAwMTAxMDAwMDAwWhgP
MjEyMDAxMDEwMDAwMDBaMBIxEDAOBgNVBAMMB21haWxib3gwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAR4ZLNJAdlt1opBd2ZPMiukifIc8yehtEEkGIvNZM1aiJfK
wNHD5n3MVlb0QZfw5F1awzc3O0M9+KSe5Xkkt1O2o3MwcTAPBgNVHREECDAGhwR/
AAABMBMGA1UdJQQMMAoGCCsGAQUFBwMBMAkGA1UdEwQCMAAwHQYDVR0OBBYEFEyU
N+2G20CKu4+ILRNfNMHuHNbHMB8GA1UdIwQYMBaAFNSvNlO2XiAdIfE5A3M0Wk3F
jluoMAoGCCqGSM49BAMCA0gAMEUCIGx7OFVsbD62aHDh3u0uxt0S7VaT/XWnOGXe
tc70XhvaAiEA6G+4/48gwZgrnDEp8JUdv4qj0LJuezgzmmvww42vk2I=
-----END CERTIFICATE-----";
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZmRnE4H5SIGD32em
WDCyy9504LC6/vQiXDeUQy/D962hRANCAAR4ZLNJAdlt1opBd2ZPMiukifIc8yeh
tEEkGIvNZM1aiJfKwNHD5n3MVlb0QZfw5F1awzc3O0M9+KSe5Xkkt1O2
-----END PRIVATE KEY-----";

/// What a mail server was told, in the clear and under TLS.
#[derive(Default)]
struct Told {
    clear: Vec<String>,
    sealed: Vec<String>,
}

/// A mail server with or without STARTTLS.
struct Mailbox {
    told: Arc<Mutex<Told>>,
    url: String,
}

impl Mailbox {
    fn start(has_tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::new(Mutex::new(Told::default()));
        let heard = told.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = heard.clone();
                // Whoever hangs up ends the talk.
                std::thread::spawn(move || talk(stream, has_tls, &heard));
            }
        });
        Self {
            told,
            url: format!("smtp://desk:open-sesame@{address}?tls=required"),
        }
    }

    fn clear(&self) -> Vec<String> {
        self.told.lock().unwrap().clear.clone()
    }

    fn sealed(&self) -> Vec<String> {
        self.told.lock().unwrap().sealed.clone()
    }
}

fn talk(mut stream: TcpStream, has_tls: bool, told: &Mutex<Told>) -> std::io::Result<()> {
    let say = |line: &str| told.lock().unwrap().clear.push(line.to_owned());
    stream.write_all(b"220 mailbox\r\n")?;
    if !answered(&mut stream, has_tls, say)? {
        return Ok(());
    }
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let connection = ServerConnection::new(Arc::new(config)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let say = |line: &str| told.lock().unwrap().sealed.push(line.to_owned());
    answered(&mut stream, false, say).map(drop)
}

/// Answers until the other side leaves; true when it begins with TLS.
fn answered(
    stream: &mut (impl Read + Write),
    has_tls: bool,
    say: impl Fn(&str),
) -> std::io::Result<bool> {
    loop {
        let line = line(stream)?;
        say(&line);
        let answer = match line.get(..4).unwrap_or_default() {
            "EHLO" if has_tls => "250-mailbox\r\n250 STARTTLS",
            "EHLO" => "250-mailbox\r\n250 AUTH PLAIN",
            "STAR" => "220 go on",
            "AUTH" => "235 welcome",
            "DATA" => "354 go on",
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes())?;
        stream.flush()?;
        match line.get(..4).unwrap_or_default() {
            "STAR" => return Ok(true),
            "QUIT" => return Ok(false),
            "DATA" => {
                while self::line(stream)? != "." {}
                stream.write_all(b"250 taken\r\n")?;
                stream.flush()?;
            }
            _ => {}
        }
    }
}

/// The next line, and not a byte of what follows it: that may be of TLS.
fn line(stream: &mut impl Read) -> std::io::Result<String> {
    let mut line = String::new();
    // A buffer of one byte reads no further.
    BufReader::with_capacity(1, stream).read_line(&mut line)?;
    match line.is_empty() {
        true => Err(std::io::ErrorKind::UnexpectedEof.into()),
        false => Ok(line.trim_end().to_owned()),
    }
}

/// An alert that sends a letter.
async fn alert(server: &Server) -> (String, String) {
    let (namespace, retriever) = retriever(server, "post").await;
    let alert = json!({
        "name": "nothing there", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
        "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["desk@example.com"]}}]},
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/alerts", alert)
        .await
        .ok();
    let id = made["alert_id"].as_str().unwrap().to_owned();
    (namespace, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_to_a_mail_server_that_cannot_be_trusted() {
    for has_tls in [true, false] {
        let mailbox = Mailbox::start(has_tls);
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(Database::Sqlite, &folder).await;
        config.mail.url = mailbox.url.clone().into();
        config.mail.from = "loupe@example.com".into();
        let server = Server::start_with(config, folder, None).await;
        let (namespace, alert) = alert(&server).await;
        let path = format!("/v1/alerts/{alert}/test");
        let tried = server
            .call_in(&namespace, "POST", &path, Value::Null)
            .await
            .ok();
        let result = &tried["results"][0];
        assert_eq!(
            (&tried["success"], &result["status"]),
            (&json!(false), &json!("failed")),
            "{tried:#}"
        );
        let why = result["message"].as_str().unwrap();
        assert!(why.starts_with("the mail server did not take"), "{why}");
        // Neither a password nor a letter.
        let clear = mailbox.clear();
        let harmless = |line: &String| {
            let words = ["EHLO", "STARTTLS", "QUIT"];
            words.iter().any(|word| line.starts_with(word))
        };
        assert!(!clear.is_empty() && clear.iter().all(harmless), "{clear:?}");
        assert_eq!(mailbox.sealed(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_are_sent_under_starttls() {
    let mailbox = Mailbox::start(true);
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Postgres, &folder).await;
    config.master_key = "5a".repeat(32).into();
    // What this one leaves is sent by a process that trusts the authority.
    config.jobs.workers = 0;
    let server = Server::start_with(config, folder, None).await;
    let (namespace, alert) = alert(&server).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let mut sender = sender(&server, &mailbox, elsewhere.path());
    let path = format!("/v1/alerts/{alert}/execute");
    server
        .call_in(&namespace, "POST", &path, Value::Null)
        .await
        .ok();
    results(&server, &namespace, &alert, is_delivered).await;
    sender.kill().await.unwrap();
    let (clear, sealed) = (mailbox.clear(), mailbox.sealed());
    assert_eq!(
        clear.last().map(String::as_str),
        Some("STARTTLS"),
        "{clear:?}"
    );
    for word in ["AUTH PLAIN ", "MAIL FROM:", "RCPT TO:<desk@example.com>"] {
        let is_it = |line: &String| line.starts_with(word);
        assert!(
            sealed.iter().any(is_it) && !clear.iter().any(is_it),
            "{word} in {sealed:?}, {clear:?}"
        );
    }
}

/// A process of its own on the database of this server, which sends mail and trusts the authority.
fn sender(server: &Server, mailbox: &Mailbox, folder: &std::path::Path) -> tokio::process::Child {
    use secrecy::ExposeSecret;
    let config = server.app.config();
    let trusted = folder.join("authority.pem");
    std::fs::write(&trusted, AUTHORITY).unwrap();
    tokio::process::Command::from(harness::serve())
        .env("SSL_CERT_FILE", trusted)
        .env("LOUPE_DATA", folder.join("data"))
        .env("LOUPE_LISTEN", "127.0.0.1:0")
        .env("LOUPE_DATABASE_URL", config.database_url.expose_secret())
        .env("LOUPE_MASTER_KEY", config.master_key.expose_secret())
        .env("LOUPE_MAIL__URL", &mailbox.url)
        .env("LOUPE_MAIL__FROM", "loupe@example.com")
        .env("LOUPE_MODELS__OFFLINE", "true")
        .env("LOUPE_LIMITS__FREE_DISK_BYTES", "1048576")
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}
