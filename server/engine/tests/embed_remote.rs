//! Encoders behind HTTP against a server with scripted answers.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex, OnceLock};

use loupe_engine::embed::{
    EmbedError, Endpoint, ModelConfig, Models, PictureShape, Pixels, Protocol,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Gives its answers in order, one a connection, and keeps what it was asked.
struct Script {
    url: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Script {
    async fn start(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let question = read(&mut stream).await;
                log.lock().unwrap().push(question);
                let head = format!(
                    "HTTP/1.1 {status} x\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                // The client may hang up on an answer that is too long.
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body.as_bytes()).await;
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let line = line.to_lowercase();
            line.strip_prefix("content-length: ").map(str::to_owned)
        });
        if body.len() >= length.unwrap().parse().unwrap() {
            return (head.to_owned(), serde_json::from_str(body).unwrap());
        }
    }
}

fn endpoint(script: &Script, protocol: Protocol) -> Endpoint {
    Endpoint {
        output: "remote_v1".to_owned(),
        protocol,
        url: script.url.clone(),
        model: Some("some-model".to_owned()),
        api_key: Some("secret-key".to_owned().into()),
        dims: 2,
        pictures: false,
        picture_shape: PictureShape::DataUri,
        batch: 2,
        timeout_seconds: 5,
    }
}

fn models(endpoint: Endpoint) -> Result<Models, EmbedError> {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
    });
    let config = ModelConfig {
        endpoints: vec![endpoint],
        ..ModelConfig::default()
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a test asks an endpoint of its own"
    )]
    let client = reqwest::Client::builder().build().unwrap();
    Models::open(config, client, Arc::new(|_| ()))
}

async fn embed(endpoint: Endpoint, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let encoder = models(endpoint)?.text("remote_v1").await?;
    let texts = texts.iter().map(|text| (*text).to_owned());
    encoder.embed(texts.collect()).await
}

fn rows(rows: &[(usize, [f32; 2])]) -> (u16, String) {
    let rows = rows
        .iter()
        .map(|(index, vector)| json!({"index": index, "embedding": vector}));
    let answer = json!({"data": rows.collect::<Vec<_>>(), "usage": {"total_tokens": 3}});
    (200, answer.to_string())
}

#[tokio::test]
async fn openai_answers_are_put_in_order_and_scaled() {
    let answers = vec![
        rows(&[(1, [0.0, 2.0]), (0, [3.0, 4.0])]),
        rows(&[(0, [5.0, 0.0])]),
    ];
    let script = Script::start(answers).await;
    let vectors = embed(endpoint(&script, Protocol::OpenAi), &["a", "b", "c"])
        .await
        .unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]]);
    let asked = script.asked();
    assert!(asked[0].0.starts_with("POST /v1/embeddings "));
    assert!(asked[0].0.contains("Bearer secret-key"));
    assert_eq!(asked[0].1["input"], json!(["a", "b"]));
    assert_eq!(asked[0].1["model"], "some-model");
    assert_eq!(asked[1].1["input"], json!(["c"]));
}

#[tokio::test]
async fn tei_is_asked_its_own_way() {
    let script = Script::start(vec![(200, "[[0.0, 7.0]]".to_owned())]).await;
    let vectors = embed(endpoint(&script, Protocol::Tei), &["a"]).await;
    assert_eq!(vectors.unwrap(), [[0.0, 1.0]]);
    let asked = script.asked();
    assert!(asked[0].0.starts_with("POST /v1/embed "));
    assert_eq!(asked[0].1["inputs"], json!(["a"]));
}

#[tokio::test]
async fn trouble_that_passes_is_tried_once_more_and_no_oftener() {
    for status in [429, 503] {
        let busy = || (status, "busy".to_owned());
        let script = Script::start(vec![busy(), rows(&[(0, [1.0, 0.0])])]).await;
        let vectors = embed(endpoint(&script, Protocol::OpenAi), &["a"]).await;
        assert_eq!(vectors.unwrap(), [[1.0, 0.0]]);

        let script = Script::start(vec![busy(), busy(), rows(&[(0, [1.0, 0.0])])]).await;
        let failed = embed(endpoint(&script, Protocol::OpenAi), &["a"]).await;
        assert!(matches!(failed, Err(EmbedError::Failed(reason)) if reason.contains("busy")));
        assert_eq!(script.asked().len(), 2);
    }
}

#[tokio::test]
async fn refusals_are_not_repeated() {
    let script = Script::start(vec![(422, "too long".to_owned())]).await;
    let refused = embed(endpoint(&script, Protocol::OpenAi), &["a"]).await;
    assert!(matches!(refused, Err(EmbedError::Invalid(reason)) if reason.contains("too long")));
    let script = Script::start(vec![(404, "no such model".to_owned())]).await;
    let refused = embed(endpoint(&script, Protocol::OpenAi), &["a"]).await;
    assert!(matches!(refused, Err(EmbedError::Unavailable(_))));
}

#[tokio::test]
async fn an_account_that_lacks_something_is_asked_once() {
    let spent = json!({"error": {"message": "no money", "code": "insufficient_quota"}});
    for (status, said) in [
        (401, "who are you".to_owned()),
        (402, "pay first".to_owned()),
        (403, "not you".to_owned()),
        (429, spent.to_string()),
    ] {
        let good = rows(&[(0, [1.0, 0.0])]);
        let script = Script::start(vec![(status, said), good]).await;
        let refused = embed(endpoint(&script, Protocol::OpenAi), &["a"]).await;
        assert!(matches!(refused, Err(EmbedError::Refused(_))), "{status}");
        assert_eq!(script.asked().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn answers_that_would_spoil_an_index_are_refused() {
    let answers = [
        ("[[1.0, 2.0, 3.0]]".to_owned(), "3 dimensions"),
        ("[[1.0, 2.0], [1.0, 2.0]]".to_owned(), "2 vectors for 1"),
        ("[[1.0, 1e99]]".to_owned(), ""),
        ("{\"hello\": 1}".to_owned(), "not understood"),
        (format!("[[1.0, 2.0{}]]", " ".repeat(200_000)), "more than"),
    ];
    for (answer, expected) in answers {
        let script = Script::start(vec![(200, answer)]).await;
        let refused = embed(endpoint(&script, Protocol::Tei), &["a"]).await;
        let reason = refused.unwrap_err().to_string();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn pictures_go_to_the_endpoint_as_jpeg() {
    let script = Script::start(vec![rows(&[(0, [0.0, 3.0])])]).await;
    let mut endpoint = endpoint(&script, Protocol::OpenAi);
    endpoint.pictures = true;
    let encoder = models(endpoint).unwrap().image("remote_v1").await.unwrap();
    let image = Pixels {
        width: 4,
        height: 3,
        rgb: vec![99; 36],
    };
    let features = encoder.embed(vec![image]).await.unwrap();
    assert_eq!(features[0].vector, [0.0, 1.0]);
    let (_, body) = script.asked().remove(0);
    assert_eq!(body["modality"], "image");
    let sent = body["input"][0].as_str().unwrap();
    assert!(sent.starts_with("data:image/jpeg;base64,/9j/"), "{sent}");
}

#[tokio::test]
async fn a_misconfigured_endpoint_is_refused_at_the_start() {
    let script = Script::start(Vec::new()).await;
    let good = endpoint(&script, Protocol::OpenAi);
    let mut no_model = good.clone();
    no_model.model = None;
    let mut no_url = good.clone();
    no_url.url = "ftp://example.org".to_owned();
    let mut no_dims = good;
    no_dims.dims = 0;
    for endpoint in [no_model, no_url, no_dims] {
        let refused = models(endpoint).err().unwrap().to_string();
        assert!(refused.contains("misconfigured"), "{refused}");
    }
}
