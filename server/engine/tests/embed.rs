//! The in-process models against the reference implementation, and the downloader's refusals.
//!
//! The models are fetched into the cache once; without a network and without them these tests fail, as an engine
//! that cannot embed is not one to ship.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loupe_engine::embed::catalog::{EFFICIENTNET_OUTPUT, MINILM_OUTPUT};
use loupe_engine::embed::{EmbedError, ModelConfig, Models, Pixels, TextEncoder};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    text: String,
    vector: String,
}

fn reference() -> Vec<(String, Vec<f32>)> {
    let rows: Vec<Row> =
        serde_json::from_str(include_str!("fixtures/minilm_reference.json")).unwrap();
    let rows = rows.into_iter();
    rows.map(|row| (row.text, decode(&row.vector))).collect()
}

/// A vector of 16-bit numbers, as the reference script packs it.
fn decode(packed: &str) -> Vec<f32> {
    let bytes = STANDARD.decode(packed).unwrap();
    let (pairs, _) = bytes.as_chunks::<2>();
    let values = pairs
        .iter()
        .map(|pair| f32::from(i16::from_le_bytes(*pair)));
    values.map(|value| value / 32767.0).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[expect(clippy::disallowed_methods, reason = "a test asks for models only")]
fn client() -> reqwest::Client {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
    });
    reqwest::Client::builder().build().unwrap()
}

fn open(config: ModelConfig) -> Models {
    Models::open(config, client(), Arc::new(|_| ())).unwrap()
}

/// Loading takes seconds in a test build: once for all tests, in a runtime that outlives them.
fn minilm() -> Arc<dyn TextEncoder> {
    static LOADED: OnceLock<Arc<dyn TextEncoder>> = OnceLock::new();
    let load = || {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime
                .block_on(async { open(ModelConfig::default()).text(MINILM_OUTPUT).await })
                .unwrap()
        })
        .join()
        .unwrap()
    };
    LOADED.get_or_init(load).clone()
}

#[tokio::test]
async fn agrees_with_the_reference_on_fifty_texts() {
    let encoder = minilm();
    let (texts, expected): (Vec<_>, Vec<_>) = reference().into_iter().unzip();
    assert_eq!(texts.len(), 50);
    assert_eq!(encoder.dims(), 384);
    let vectors = encoder.embed(texts.clone()).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    for ((text, expected), vector) in texts.iter().zip(&expected).zip(&vectors) {
        let agreement = cosine(expected, vector);
        assert!(agreement >= 0.999, "{agreement} for {text:?}");
        let length = vector.iter().map(|value| value * value).sum::<f32>();
        assert!((length - 1.0).abs() < 1e-4, "length {length} for {text:?}");
    }
}

#[tokio::test]
async fn a_batch_gives_what_single_calls_give_in_the_same_order() {
    let encoder = minilm();
    let texts: Vec<String> = reference().into_iter().map(|(text, _)| text).collect();
    let together = encoder.embed(texts.clone()).await.unwrap();
    for (text, together) in texts.into_iter().zip(together) {
        let alone = encoder.embed(vec![text.clone()]).await.unwrap();
        let agreement = cosine(&alone[0], &together);
        assert!(agreement > 0.99999, "{agreement} for {text:?}");
    }
}

#[tokio::test]
async fn a_huge_text_counts_by_its_beginning_alone() {
    let encoder = minilm();
    let words = "harbour tide lamp pilot ".repeat(2_000);
    let huge = words.clone() + &"completely unrelated ending ".repeat(20_000);
    let vectors = encoder.embed(vec![words, huge]).await.unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > 0.99999);
}

#[tokio::test]
async fn no_texts_give_no_vectors() {
    assert!(minilm().embed(Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn parallel_calls_all_get_their_own_answers() {
    let encoder = minilm();
    let calls = (0..40).map(|call| {
        let encoder = Arc::clone(&encoder);
        async move {
            let texts = (0..5)
                .map(|n| format!("item {call} of shelf {n}"))
                .collect();
            encoder.embed(texts).await.unwrap()
        }
    });
    let answers = futures::future::join_all(calls).await;
    let again = encoder.embed(vec!["item 17 of shelf 3".to_owned()]).await;
    assert!(cosine(&answers[17][3], &again.unwrap()[0]) > 0.99999);
}

fn offline(cache: &Path) -> ModelConfig {
    ModelConfig {
        cache_dir: cache.to_owned(),
        offline: true,
        ..ModelConfig::default()
    }
}

async fn refusal(config: ModelConfig) -> String {
    match open(config).text(MINILM_OUTPUT).await {
        Err(EmbedError::Unavailable(reason)) => reason,
        Err(other) => panic!("unexpected error: {other}"),
        Ok(_) => panic!("the model was loaded"),
    }
}

#[tokio::test]
async fn an_empty_cache_without_network_names_the_alternatives() {
    let cache = tempfile::tempdir().unwrap();
    let reason = refusal(offline(cache.path())).await;
    for part in [
        "model.safetensors",
        "model path",
        "pip",
        "endpoint",
        "switched off",
    ] {
        assert!(reason.contains(part), "{part:?} is missing in: {reason}");
    }
}

#[tokio::test]
async fn a_file_with_a_wrong_checksum_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("all-minilm-l6-v2");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), vec![b' '; 612]).unwrap();
    std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    // The right length and the wrong bytes: only the checksum can tell.
    let file = std::fs::File::create(folder.join("model.safetensors")).unwrap();
    file.set_len(90_868_376).unwrap();
    let reason = refusal(offline(cache.path())).await;
    assert!(reason.contains("wrong checksum"), "{reason}");
}

#[tokio::test]
async fn an_unknown_output_names_the_known_ones() {
    let cache = tempfile::tempdir().unwrap();
    let error = open(offline(cache.path())).text("word2vec_v1").await.err();
    let reason = error.unwrap().to_string();
    assert!(
        reason.contains("word2vec_v1") && reason.contains(MINILM_OUTPUT),
        "{reason}"
    );
}

#[tokio::test]
async fn the_status_says_what_is_missing_without_loading_it() {
    let cache = tempfile::tempdir().unwrap();
    let status = open(offline(cache.path())).status();
    let text = status
        .iter()
        .find(|one| one.output == MINILM_OUTPUT)
        .unwrap();
    assert!(!text.available && text.reason.contains("not on disk"));
    assert_eq!(text.dims, 384);
}

#[derive(Deserialize)]
struct Picture {
    kind: u32,
    width: u32,
    height: u32,
    label: String,
    share: f32,
    vector: String,
}

impl Picture {
    /// The picture the reference was given: a gradient, a disc or a chess board.
    fn pixels(&self) -> Pixels {
        let (w, h) = (self.width, self.height);
        let paint = |x: u32, y: u32| match self.kind {
            0 => [x * 255 / w, y * 255 / h, (x + y) * 255 / (w + h)],
            1 => {
                let (dx, dy) = (x.abs_diff(w / 2), y.abs_diff(h / 2));
                let inside = dx * dx + dy * dy < (w.min(h) / 3).pow(2);
                if inside {
                    [230, 120, 20]
                } else {
                    [20, 60, 200]
                }
            }
            _ => {
                let field = (x / 16 + y / 16) % 2 * 255;
                [field, field, x / 40 % 3 * 100]
            }
        };
        let rows = (0..h).flat_map(|y| (0..w).map(move |x| (x, y)));
        let rgb = rows.flat_map(|(x, y)| paint(x, y).map(|v| u8::try_from(v).unwrap()));
        Pixels {
            width: w,
            height: h,
            rgb: rgb.collect(),
        }
    }
}

#[tokio::test]
async fn pictures_agree_with_the_reference() {
    let models = open(ModelConfig::default());
    let encoder = models.image(EFFICIENTNET_OUTPUT).await.unwrap();
    let pictures: Vec<Picture> =
        serde_json::from_str(include_str!("fixtures/efficientnet_reference.json")).unwrap();
    let images: Vec<Pixels> = pictures.iter().map(Picture::pixels).collect();
    let together = encoder.embed(images.clone()).await.unwrap();
    for ((picture, image), found) in pictures.iter().zip(images).zip(together) {
        assert_eq!(found.vector.len(), encoder.dims());
        let agreement = cosine(&decode(&picture.vector), &found.vector);
        assert!(agreement >= 0.999, "{agreement} for kind {}", picture.kind);
        let (label, share) = &found.labels[0];
        assert_eq!(label, &picture.label);
        assert!((share - picture.share).abs() < 0.02, "{share} for {label}");
        let alone = encoder.embed(vec![image]).await.unwrap();
        assert!(cosine(&alone[0].vector, &found.vector) > 0.99999);
    }
}

#[tokio::test]
async fn a_picture_without_pixels_is_refused() {
    let models = open(ModelConfig::default());
    let encoder = models.image(EFFICIENTNET_OUTPUT).await.unwrap();
    for (width, height, bytes) in [(0, 5, 0), (4, 4, 47), (u32::MAX, u32::MAX, 3)] {
        let rgb = vec![0; bytes];
        let image = Pixels { width, height, rgb };
        let refused = encoder.embed(vec![image]).await;
        assert!(matches!(refused, Err(EmbedError::Invalid(_))));
    }
}
