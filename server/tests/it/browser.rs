//! A browser at hosted apps, and the mails that the server sends meanwhile.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{
    apps::{at, deploy, host, make},
    harness::{Answer, Database, Server, config},
};

/// The request with the fields of a form.
pub fn filled<V: AsRef<str>>(
    request: reqwest::RequestBuilder,
    form: &[(&str, V)],
) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

/// A mail server that keeps what it gets.
#[derive(Clone, Default)]
pub struct Mails(Arc<Mutex<Vec<String>>>);

impl Mails {
    pub async fn start() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let mails = Self::default();
        let kept = mails.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(kept.clone().talk(stream));
            }
        });
        (mails, url)
    }

    async fn talk(self, stream: tokio::net::TcpStream) {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        write.write_all(b"220 here\r\n").await.unwrap();
        let (mut in_mail, mut mail) = (false, String::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let answer = match (in_mail, line.as_str()) {
                (true, ".") => {
                    in_mail = false;
                    self.0.lock().unwrap().push(std::mem::take(&mut mail));
                    "250 kept\r\n"
                }
                (true, line) => {
                    mail += line.strip_suffix('=').unwrap_or(line);
                    if !line.ends_with('=') {
                        mail.push('\n');
                    }
                    continue;
                }
                (false, "DATA") => {
                    in_mail = true;
                    "354 go on\r\n"
                }
                (false, "QUIT") => "221 bye\r\n",
                _ => "250 good\r\n",
            };
            if write.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Waits for so many mails, and answers the last one.
    pub async fn wait(&self, count: usize) -> String {
        for _ in 0..1_200 {
            let mails = self.0.lock().unwrap().clone();
            if mails.len() >= count {
                assert_eq!(mails.len(), count);
                return mails[count - 1].replace("=3D", "=");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} of {count} mails came", self.0.lock().unwrap().len());
    }
}

pub fn token_of(mail: &str) -> String {
    let rest = mail
        .split("token=")
        .nth(1)
        .unwrap_or_else(|| panic!("no link in {mail}"));
    rest.chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

/// A browser: it keeps cookies, and says where it is.
pub struct Browser<'s> {
    pub server: &'s Server,
    pub slug: &'static str,
    pub cookies: BTreeMap<String, String>,
}

impl<'s> Browser<'s> {
    pub fn new(server: &'s Server, slug: &'static str) -> Self {
        Self {
            server,
            slug,
            cookies: BTreeMap::new(),
        }
    }

    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> Answer {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = if cookies.is_empty() {
            request
        } else {
            request.header("cookie", cookies.join("; "))
        };
        let answer = Server::send(request).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            for part in ["Path=/", "HttpOnly", "SameSite=Lax"] {
                assert!(cookie.contains(part), "{cookie}");
            }
            assert!(!cookie.contains("Domain"), "{cookie}");
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let request = at(self.server, self.slug, "GET", path).header("accept", "text/html,*/*");
        self.send(request).await
    }

    /// A form of a page of the app itself.
    pub async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", host(self.server, self.slug));
        let request = at(self.server, self.slug, "POST", path).header("origin", origin);
        self.send(filled(request, form)).await
    }

    pub async fn who(&mut self) -> Value {
        let session = self.get("/_auth/session").await.ok();
        session["user"]["email"].clone()
    }

    pub fn session(&self) -> Option<&String> {
        self.cookies.get("loupe_app")
    }
}

pub async fn server_with_mail(database: Database) -> (Server, Mails) {
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database, &folder).await;
    config.mail.url = url.into();
    (Server::start_with(config, folder, None).await, mails)
}

pub async fn app(server: &Server, slug: &str, auth: Value) -> String {
    let body = json!({"slug": slug, "meta": {"title": "Club"}, "auth_config": auth});
    let app = make(server, body).await;
    deploy(
        server,
        &app,
        "production",
        json!({"index.html": "<!doctype html><head><title>Club</title></head><h1>Club</h1>"}),
    )
    .await;
    app
}

pub const GOOD: &str = "a lamp in the cave";
