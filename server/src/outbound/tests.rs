//! What strangers may try (S-20, S-21), with a listener that counts who came.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use loupe_engine::web::{Ask, Web, WebError};
use reqwest::{Method, StatusCode, header};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Lookup, Outbound, Rule};

/// Names as a test wants them: each look-up takes the next answer, the last one stays.
#[derive(Default)]
struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parsed = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.answers.lock().unwrap().insert(name.into(), parsed);
        self
    }

    fn answer(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut answers = self.answers.lock().unwrap();
        let left = answers.get_mut(name)?;
        Some(if left.len() > 1 {
            left.remove(0)
        } else {
            left[0].clone()
        })
    }
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let Some(answer) = self.answer(name) else {
            return super::System.addresses(name).await;
        };
        Ok(answer
            .into_iter()
            .map(|ip| SocketAddr::new(ip, 0))
            .collect())
    }
}

fn outbound(allowed: &[&str], names: Arc<Names>) -> Outbound {
    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    Outbound::with(Rule::new(&allowed).unwrap(), names).unwrap()
}

/// A server that answers every request the same way; the address of this machine, and how many connections it took.
async fn server<F>(
    at: &str,
    answer: impl Fn(TcpStream) -> F + Send + 'static,
) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((at, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer(stream));
        }
    });
    (port, count)
}

/// Reads the request's head.
async fn head(stream: &mut TcpStream) -> String {
    let (mut text, mut piece) = (Vec::new(), [0; 1024]);
    while !text.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(size) => text.extend_from_slice(&piece[..size]),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

async fn hello(mut stream: TcpStream) {
    head(&mut stream).await;
    let _ = stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        .await;
}

fn quick(url: &str) -> Ask {
    Ask {
        timeout: Duration::from_secs(2),
        ..Ask::get(url)
    }
}

/// Spellings of this machine and of networks that are nobody's business. `{}` is the port of a listener on all of
/// this machine's addresses.
const SPELLINGS: [&str; 64] = [
    "http://127.0.0.1:{}/",
    "http://127.1:{}/",
    "http://127.0.1:{}/",
    "http://0x7f.1:{}/",
    "http://0x7f.0x0.0x0.0x1:{}/",
    "http://0x7f000001:{}/",
    "http://2130706433:{}/",
    "http://017700000001:{}/",
    "http://0177.0.0.1:{}/",
    "http://0177.0.0.01:{}/",
    "http://127.0.0.1.:{}/",
    "http://127.255.255.254:{}/",
    "http://0:{}/",
    "http://0.0.0.0:{}/",
    "http://0x0:{}/",
    "http://[::1]:{}/",
    "http://[0:0:0:0:0:0:0:1]:{}/",
    "http://[::]:{}/",
    "http://[::ffff:127.0.0.1]:{}/",
    "http://[::ffff:7f00:1]:{}/",
    "http://[::127.0.0.1]:{}/",
    "http://[64:ff9b::7f00:1]:{}/",
    "http://[64:ff9b:1::7f00:1]:{}/",
    "http://[2002:7f00:1::]:{}/",
    "http://[2001:0:7f00:1::1]:{}/",
    "http://[2001:db8::1]:{}/",
    "http://[3fff::1]:{}/",
    "http://[100::1]:{}/",
    "http://[fe80::1]:{}/",
    "http://[fec0::1]:{}/",
    "http://[fc00::1]:{}/",
    "http://[fd00:ec2::254]:{}/",
    "http://[ff02::1]:{}/",
    "http://[5f00::1]:{}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://[::ffff:169.254.169.254]/",
    "http://10.0.0.1:{}/",
    "http://10.255.255.255:{}/",
    "http://172.16.0.1:{}/",
    "http://172.31.255.255:{}/",
    "http://192.168.0.1:{}/",
    "http://192.0.0.1:{}/",
    "http://192.0.2.1:{}/",
    "http://198.51.100.1:{}/",
    "http://203.0.113.1:{}/",
    "http://100.64.0.1:{}/",
    "http://198.18.0.1:{}/",
    "http://224.0.0.1:{}/",
    "http://240.0.0.1:{}/",
    "http://255.255.255.255:{}/",
    "http://localhost:{}/",
    "http://localhost.:{}/",
    "http://LOCALHOST:{}/",
    "http://127。0。0。1:{}/",
    "http://127．0．0．1:{}/",
    "http://①②⑦.⓪.⓪.①:{}/",
    "http://ｌｏｃａｌｈｏｓｔ:{}/",
    "http://user@127.0.0.1:{}/",
    "http://example.com@127.0.0.1:{}/",
    "http://user:word@example.com:{}/",
    "http://127.0.0.1:{}#@example.com/",
    "http:127.0.0.1:{}/",
    "http:\\\\127.0.0.1:{}\\",
];

#[tokio::test]
async fn no_spelling_of_a_private_address_is_asked() {
    let (port, count) = server("::", hello).await;
    let outbound = outbound(&[], Arc::default());
    for spelling in SPELLINGS {
        let url = spelling.replace("{}", &port.to_string());
        let answer = outbound.ask(quick(&url)).await.unwrap_err();
        // The system's own resolver may not know every form of its own name.
        let unknown = url.contains("ocalhost.") && matches!(answer, WebError::Failed(_));
        assert!(
            unknown || matches!(answer, WebError::Refused(_)),
            "{url}: {answer}"
        );
    }
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com:70/",
        "data:text/plain,hello",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:6379/",
        "http://example.com:5432/",
        "http://example.com:11211/",
        "https://example.com:2375/",
        "//example.com/",
        "",
    ] {
        let answer = outbound.ask(quick(url)).await;
        assert!(
            matches!(answer, Err(WebError::Refused(_))),
            "{url}: {answer:?}"
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    // The listener does count: with the network opened, the same client reaches it.
    let open = self::outbound(&["127.0.0.0/8"], Arc::default());
    let answer = open
        .ask(quick(&format!("http://127.1:{port}/")))
        .await
        .unwrap();
    assert_eq!(answer.body, "hello");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn names_are_judged_by_every_address_they_have_and_looked_up_once() {
    let (port, count) = server("::", hello).await;
    let names = Names::default()
        .with("private.example", &[&["10.0.0.1"]])
        .with("alias.example", &[&["127.0.0.1"]])
        .with("six.example", &[&["::1"]])
        .with("both.example", &[&["93.184.215.14", "127.0.0.1"]])
        .with("mapped.example", &[&["::ffff:127.0.0.1"]])
        .with("none.example", &[&[]]);
    let closed = outbound(&[], Arc::new(names));
    for name in ["private", "alias", "six", "both", "mapped"] {
        let answer = closed
            .ask(quick(&format!("http://{name}.example:{port}/")))
            .await;
        assert!(
            matches!(answer, Err(WebError::Refused(_))),
            "{name}: {answer:?}"
        );
    }
    let answer = closed
        .ask(quick(&format!("http://none.example:{port}/")))
        .await;
    assert!(matches!(answer, Err(WebError::Failed(_))), "{answer:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);

    // A name that is harmless when it is looked up first and private afterwards: the connection goes to what was
    // checked. 127.0.0.2 plays the public address; the listener of ::1 must never be reached.
    let (target, reached) = server("127.0.0.2", hello).await;
    let names = Arc::new(Names::default().with("rebind.example", &[&["127.0.0.2"], &["::1"]]));
    let open = outbound(&["127.0.0.2"], names.clone());
    let url = format!("http://rebind.example:{target}/");
    assert_eq!(open.ask(quick(&url)).await.unwrap().body, "hello");
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    assert_eq!(reached.load(Ordering::SeqCst), 1);
    let again = open
        .ask(quick(&format!("http://rebind.example:{port}/")))
        .await;
    assert!(matches!(again, Err(WebError::Refused(_))), "{again:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

async fn redirecting(to: String) -> (u16, Arc<AtomicUsize>) {
    let answer = format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    server("127.0.0.2", move |mut stream| {
        let answer = answer.clone();
        async move {
            head(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await
}

#[tokio::test]
async fn redirects_are_checked_like_the_first_address_and_end_after_three() {
    let (port, count) = server("::", hello).await;
    let names = Names::default().with("inside.example", &[&["127.0.0.1"]]);
    let open = outbound(&["127.0.0.2"], Arc::new(names));
    for target in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://inside.example:{port}/"),
        format!("//2130706433:{port}/"),
        "file:///etc/passwd".into(),
        "http://169.254.169.254/".into(),
    ] {
        let (from, _) = redirecting(target.clone()).await;
        let answer = open.ask(quick(&format!("http://127.0.0.2:{from}/"))).await;
        assert!(
            matches!(answer, Err(WebError::Refused(_))),
            "{target}: {answer:?}"
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let (circle, rounds) = redirecting("/again".into()).await;
    let url = format!("http://127.0.0.2:{circle}/");
    let answer = open.ask(quick(&url)).await.unwrap_err();
    assert!(answer.to_string().contains("more than 3 times"), "{answer}");
    assert_eq!(rounds.load(Ordering::SeqCst), 4);
    // A call of an API, or a webhook, gets the redirect as its answer.
    let call = Ask {
        timeout: Duration::from_secs(2),
        ..Ask::call(Method::POST, &url, "{}")
    };
    assert_eq!(open.ask(call).await.unwrap().status, StatusCode::FOUND);
    assert_eq!(rounds.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn what_is_meant_for_one_origin_is_not_told_another() {
    let heard = Arc::new(Mutex::new(String::new()));
    let ears = heard.clone();
    let (port, _) = server("127.0.0.2", move |mut stream| {
        let ears = ears.clone();
        async move {
            let text = head(&mut stream).await;
            *ears.lock().unwrap() = text;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let (from, _) = redirecting(format!("http://127.0.0.2:{port}/")).await;
    let mut ask = quick(&format!("http://127.0.0.2:{from}/"));
    ask.method = Method::POST;
    ask.body = "a secret body".into();
    ask.headers
        .insert(header::AUTHORIZATION, "Bearer secret".parse().unwrap());
    ask.headers.insert("x-api-key", "secret".parse().unwrap());
    ask.headers
        .insert(header::HOST, "inside.example".parse().unwrap());
    outbound(&["127.0.0.2"], Arc::default())
        .ask(ask)
        .await
        .unwrap();
    let heard = heard.lock().unwrap().clone();
    assert!(heard.starts_with("GET / HTTP/1.1"), "{heard}");
    assert!(
        heard.contains(&format!("host: 127.0.0.2:{port}")),
        "{heard}"
    );
    assert!(!heard.contains("secret"), "{heard}");
}

/// The most memory that this process ever held, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[tokio::test]
async fn answers_without_end_are_cut() {
    let (endless, _) = server("127.0.0.2", |mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await;
        let chunk = [b"10000\r\n".as_slice(), &[0; 0x10000], b"\r\n"].concat();
        while stream.write_all(&chunk).await.is_ok() {}
    })
    .await;
    let (announced, _) = server("127.0.0.2", |mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
            .await;
    })
    .await;
    let (packed, _) = server("127.0.0.2", |mut stream| async move {
        let head = head(&mut stream).await;
        assert!(head.contains("accept-encoding: identity"), "{head}");
        let _ = stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
            )
            .await;
    })
    .await;
    let (headers, _) = server("127.0.0.2", |mut stream| async move {
        head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let line = [b"x: ".as_slice(), &[b'a'; 1000], b"\r\n"].concat();
        while stream.write_all(&line).await.is_ok() {}
    })
    .await;
    let (slow, _) = server("127.0.0.2", |mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
            .await;
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let open = outbound(&["127.0.0.2"], Arc::default());
    let ask = async |port: u16| {
        let mut ask = quick(&format!("http://127.0.0.2:{port}/"));
        ask.max_bytes = 4 << 20;
        ask.timeout = Duration::from_secs(5);
        open.ask(ask).await.unwrap_err()
    };
    let before = peak();
    assert!(matches!(ask(endless).await, WebError::TooLarge(_)));
    assert!(matches!(ask(announced).await, WebError::TooLarge(_)));
    assert!(matches!(ask(packed).await, WebError::Refused(_)));
    assert!(matches!(ask(headers).await, WebError::Failed(_)));
    let grown = peak() - before;
    assert!(grown < 16 << 20, "{grown} bytes");
    let begun = std::time::Instant::now();
    let mut patient = quick(&format!("http://127.0.0.2:{slow}/"));
    patient.timeout = Duration::from_secs(1);
    let cut = open.ask(patient).await.unwrap_err();
    assert!(matches!(cut, WebError::Timeout(_)), "{cut}");
    // All that it sends would take ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(6));
}

#[test]
fn settings_open_networks_and_single_addresses() {
    let rule = Rule::new(&["10.1.0.0/16".into(), "::1".into()]).unwrap();
    for (address, open) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("10.2.0.1", false),
        ("::1", true),
        ("127.0.0.1", false),
        ("1.1.1.1", true),
        ("2606:4700:4700::1111", true),
    ] {
        assert_eq!(rule.takes(address.parse().unwrap()), open, "{address}");
    }
    assert!(Rule::new(&["everything".into()]).is_err());
}

#[tokio::test]
async fn without_tls_only_what_the_settings_open_is_safe() {
    let open = outbound(&["10.1.0.0/16", "127.0.0.0/8", "::1"], Arc::default());
    for (url, safe) in [
        ("https://login.example.com/keys", true),
        ("https://1.1.1.1/keys", true),
        ("http://1.1.1.1/keys", false),
        ("http://[2606:4700:4700::1111]/keys", false),
        ("http://10.1.2.3/keys", true),
        ("http://[::ffff:10.1.2.3]/keys", true),
        ("http://10.2.0.1/keys", false),
        ("http://localhost:8080/keys", true),
        ("http://nowhere.invalid/keys", false),
    ] {
        let url = url::Url::parse(url).unwrap();
        assert_eq!(open.is_safe(&url).await, safe, "{url}");
    }
}
