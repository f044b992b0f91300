//! Films, sounds, scans and structures through the whole of ingestion: real programs, real models, scripted endpoints.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use loupe_engine::{
    embed::{Language, ModelConfig, Models, Transcription},
    extract::{Extraction, Outputs, Place, tools::Tools},
    ingest::{BlobInput, BlobRole, CollectionPlan, Ingest, ObjectInput, ObjectOutcome, Try},
    store::CollectionSpec,
};
use loupe_wire::FeatureExtractorConfigOutput;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every request with the next of its texts and keeps what it was asked.
struct Script {
    url: String,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Script {
    async fn start(answers: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                while !whole(&bytes) {
                    let mut part = [0; 65_536];
                    let count = stream.read(&mut part).await.unwrap();
                    assert!(count > 0, "cut off");
                    bytes.extend_from_slice(&part[..count]);
                }
                log.lock().unwrap().push(bytes);
                let body = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }
}

fn whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    bytes.len() >= end + 4 + length.unwrap().parse::<usize>().unwrap()
}

fn ingest(language: Option<&Script>, speech: Option<&Script>) -> Ingest {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
    });
    let config = ModelConfig {
        offline: true,
        language: language.map(|script| Language {
            url: script.url.clone(),
            model: "writer".into(),
            api_key: None,
            provider: None,
            pictures: true,
            timeout_seconds: 10,
        }),
        transcription: speech.map(|script| Transcription {
            url: script.url.clone(),
            model: "listener".into(),
            api_key: None,
            timeout_seconds: 10,
        }),
        ..ModelConfig::default()
    };
    #[expect(clippy::disallowed_methods, reason = "a test asks its own endpoints")]
    let client = reqwest::Client::builder().build().unwrap();
    let tools = Tools::find().with_languages("eng");
    assert!(tools.media().is_ok(), "the tests need ffmpeg");
    Ingest {
        extraction: Extraction::in_process().with_tools(tools),
        encoders: Arc::new(Models::open(config, client, Arc::new(|_| ())).unwrap()),
        web: None,
    }
}

fn plan(extractor: &str, parameters: Value) -> CollectionPlan {
    let config = json!({
        "feature_extractor_name": extractor, "version": "v1", "feature_extractor_id": format!("{extractor}_v1"),
        "parameters": parameters,
    });
    let config: FeatureExtractorConfigOutput = serde_json::from_value(config).unwrap();
    let spec = CollectionSpec {
        namespace_id: "ns_1".into(),
        collection_id: "col_1".into(),
        vectors: Vec::new(),
    };
    CollectionPlan::new(spec, "org_1", &config, &Outputs::builtin()).unwrap()
}

fn object(name: &str, kind: &str, bytes: Vec<u8>) -> ObjectInput {
    ObjectInput {
        object_id: "obj_1".into(),
        bucket_id: "bkt_1".into(),
        blobs: vec![BlobInput {
            blob_id: "blob_1".into(),
            property: "file".into(),
            kind: kind.into(),
            filename: Some(name.into()),
            mime: None,
            url: format!("blob://{name}"),
            bytes: bytes.into(),
            role: BlobRole::Source,
        }],
        ..Default::default()
    }
}

async fn run(ingest: &Ingest, plan: &CollectionPlan, object: ObjectInput) -> ObjectOutcome {
    let made = ingest
        .run(plan, vec![object], "2026-11-21T08:00:00Z", Try::Last)
        .await;
    made.unwrap().remove(0)
}

/// A file that ffmpeg makes of nothing.
fn made(arguments: &str, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error"])
        .args(arguments.split(' '))
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::read(Path::new(&path)).unwrap()
}

/// Three seconds of a test card, three of black, with a tone.
fn film() -> Vec<u8> {
    made(
        "-f lavfi -i testsrc=s=320x240:r=10:d=3 -f lavfi -i color=black:s=320x240:r=10:d=3 -f lavfi -i sine=d=6 \
         -filter_complex [0:v][1:v]concat=n=2:v=1[v] -map [v] -map 2:a -pix_fmt yuv420p -c:v libx264 -c:a aac -g 10 \
         -metadata title=Cards -shortest -y",
        "film.mp4",
    )
}

/// Two seconds of tone, two of silence, two of tone.
fn sound() -> Vec<u8> {
    made(
        "-f lavfi -i sine=d=6 -af volume=0:enable='between(t,2,4)' -ac 1 -ar 16000 -y",
        "sound.ogg",
    )
}

#[tokio::test]
async fn a_film_is_cut_by_time_and_every_segment_has_its_picture() {
    let plan = plan("multimodal_extractor", json!({"time_split_interval": 3}));
    let outcome = run(
        &ingest(None, None),
        &plan,
        object("red_barn.mp4", "video", film()),
    )
    .await;
    let documents = outcome.documents.unwrap();
    let times: Vec<Value> = documents
        .iter()
        .map(|one| {
            json!([
                one.payload["start_time"],
                one.payload["segment_index"],
                one.payload["total_segments"]
            ])
        })
        .collect();
    assert_eq!(times, [json!([0.0, 0, 2]), json!([3.0, 1, 2])]);
    let first = &documents[0];
    assert_eq!(first.payload["width"], 320);
    assert_eq!(first.payload["title"], "Cards");
    assert_eq!(first.payload["_internal"]["mime_type"], "video/mp4");
    let names: Vec<&String> = first.vectors.keys().collect();
    assert_eq!(
        names,
        [
            "multimodal_extractor_v1_all_minilm_l6_v2_v1",
            "multimodal_extractor_v1_efficientnet_lite0_v1"
        ]
    );
    assert_ne!(
        first.vectors[names[1]], documents[1].vectors[names[1]],
        "two pictures"
    );
    assert!(
        first.keywords.as_deref().unwrap().contains("red barn"),
        "{:?}",
        first.keywords
    );
    assert_eq!(outcome.generated.len(), 2, "a thumbnail each");
    assert!(
        outcome
            .generated
            .iter()
            .all(|file| file.content_type == "image/jpeg")
    );
}

#[tokio::test]
async fn a_film_is_cut_where_the_picture_changes_and_described() {
    let answer = |words: &str| json!({"choices": [{"message": {"content": words}}]});
    let script = Script::start(vec![answer("A test card."), answer("Darkness.")]).await;
    let parameters = json!({"split_method": "scene", "run_video_description": true});
    let plan = plan("multimodal_extractor", parameters);
    let ingest = ingest(Some(&script), None);
    let outcome = run(&ingest, &plan, object("film.mp4", "video", film())).await;
    let documents = outcome.documents.unwrap();
    assert_eq!(documents.len(), 2, "{documents:?}");
    let cut = documents[1].payload["start_time"].as_f64().unwrap();
    assert!((cut - 3.0).abs() < 0.2, "cut at {cut}");
    assert_eq!(documents[0].payload["description"], "A test card.");
    assert_eq!(documents[1].payload["description"], "Darkness.");
    let asked = String::from_utf8_lossy(&script.asked.lock().unwrap()[0]).into_owned();
    assert!(
        asked.contains("data:image/jpeg;base64,"),
        "the picture is sent"
    );
}

#[tokio::test]
async fn a_sound_is_cut_at_its_silence_and_written_down() {
    let said = json!({"text": "one two three", "segments": [
        {"start": 0.2, "end": 1.8, "text": " one two"}, {"start": 4.2, "end": 5.5, "text": "three "},
    ]});
    let script = Script::start(vec![said]).await;
    let plan = plan(
        "multimodal_extractor",
        json!({"split_method": "silence", "run_transcription": true}),
    );
    let ingest = ingest(None, Some(&script));
    let outcome = run(&ingest, &plan, object("talk.ogg", "audio", sound())).await;
    let documents = outcome.documents.unwrap();
    assert_eq!(documents.len(), 2, "{documents:?}");
    assert_eq!(documents[0].payload["transcription"], "one two");
    assert_eq!(documents[1].payload["transcription"], "three");
    let cut = documents[1].payload["start_time"].as_f64().unwrap();
    assert!((cut - 3.0).abs() < 0.3, "cut at {cut}");
    assert_eq!(
        documents[0].vectors.len(),
        1,
        "words only: {:?}",
        documents[0].vectors.keys()
    );
    assert_eq!(outcome.generated.len(), 2, "a picture of the sound each");
    let asked = script.asked.lock().unwrap();
    let asked = String::from_utf8_lossy(&asked[0]);
    for part in [
        "POST /v1/audio/transcriptions",
        "name=\"model\"\r\n\r\nlistener",
        "name=\"language\"\r\n\r\nen",
        "RIFF",
    ] {
        assert!(asked.contains(part), "{part}");
    }
}

#[tokio::test]
async fn a_film_is_converted_and_kept() {
    let plan = plan(
        "transcoding_extractor",
        json!({"preset": "ultrafast", "max_resolution": 144}),
    );
    let outcome = run(
        &ingest(None, None),
        &plan,
        object("film.mp4", "video", film()),
    )
    .await;
    let documents = outcome.documents.unwrap();
    assert_eq!(documents[0].payload["output_codec"], "libx264");
    let converted = &outcome.generated[0];
    assert!(
        converted.key.ends_with("/converted.mp4"),
        "{}",
        converted.key
    );
    assert_eq!(&converted.bytes.sample()[4..8], b"ftyp");
    assert!(
        matches!(converted.bytes.place(), Place::Disk(_)),
        "it is never in memory as a whole"
    );
    let blobs = &documents[0].payload["_internal"]["document_blobs"];
    let roles: Vec<&Value> = blobs
        .as_array()
        .unwrap()
        .iter()
        .map(|blob| &blob["role"])
        .collect();
    assert_eq!(roles, ["source", "processed", "thumbnail"]);
}

#[tokio::test]
async fn broken_recordings_are_failed_objects_with_a_reason() {
    let ingest = ingest(None, None);
    let plan = plan("multimodal_extractor", json!({}));
    let film = film();
    for (name, bytes, words) in [
        ("cut.mp4", film[..200].to_vec(), "ffprobe says"),
        ("words.mp4", b"just words that are no film".to_vec(), ""),
        (
            "noise.mkv",
            [b"\x1aE\xdf\xa3".as_slice(), &film[..400]].concat(),
            "",
        ),
    ] {
        let outcome = run(&ingest, &plan, object(name, "video", bytes)).await;
        let failure = match outcome.documents {
            Err(failure) => failure,
            Ok(documents) => {
                assert_eq!(name, "words.mp4", "{documents:?}");
                continue;
            }
        };
        assert_eq!(failure.error_type, "permanent", "{name}: {failure:?}");
        assert!(failure.error.contains(words), "{name}: {failure:?}");
    }
}

/// A PDF whose only page is a picture of words: what a scanner makes.
fn scan(words: &str) -> Vec<u8> {
    let text = pdf(&format!("BT /F1 36 Tf 40 120 Td ({words}) Tj ET"), None);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.pdf"), text).unwrap();
    let drawn = Command::new("pdftoppm")
        .args(["-jpeg", "-r", "150", "-singlefile", "a.pdf", "a"])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(drawn.success());
    let jpeg = std::fs::read(folder.path().join("a.jpg")).unwrap();
    pdf("600 0 0 200 0 0 cm /P Do", Some(&jpeg))
}

/// One page of 600 by 200 points.
fn pdf(content: &str, jpeg: Option<&[u8]>) -> Vec<u8> {
    let mut objects: Vec<Vec<u8>> = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> \
          /XObject << /P 6 0 R >> >> >>"
            .to_vec(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
    ];
    if let Some(jpeg) = jpeg {
        let mut picture = format!(
            "<< /Type /XObject /Subtype /Image /Width 1250 /Height 417 /ColorSpace /DeviceRGB /BitsPerComponent 8 \
             /Filter /DCTDecode /Length {} >>\nstream\n",
            jpeg.len()
        )
        .into_bytes();
        picture.extend(jpeg);
        picture.extend(b"\nendstream");
        objects.push(picture);
    }
    let (mut file, mut places) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", number + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    file.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .bytes(),
    );
    file
}

#[tokio::test]
async fn a_scanned_page_is_read_and_drawn() {
    let plan = plan("document_graph_extractor", json!({}));
    let outcome = run(
        &ingest(None, None),
        &plan,
        object("scan.pdf", "pdf", scan("The honest lighthouse keeper")),
    )
    .await;
    let documents = outcome.documents.unwrap();
    let text = documents[0].payload["text"].as_str().unwrap();
    assert!(text.contains("honest lighthouse"), "{text}");
    assert_eq!(
        documents[0].payload["_internal"]["metadata"]["ocr_pages"],
        json!([1])
    );
    assert_eq!(outcome.generated.len(), 1, "a thumbnail");
    assert!(outcome.dropped.is_empty(), "{:?}", outcome.dropped);
}

#[tokio::test]
async fn segments_beyond_those_that_are_asked_for_are_counted() {
    let long = made("-f lavfi -i sine=d=25 -ac 1 -ar 8000 -y", "long.ogg");
    let plan = plan("universal_extractor", json!({"max_video_segments": 1}));
    let outcome = run(
        &ingest(None, None),
        &plan,
        object("long.ogg", "audio", long),
    )
    .await;
    assert_eq!(outcome.documents.unwrap().len(), 1);
    assert_eq!(
        outcome.dropped.told(),
        "left out: 2 segments (max_video_segments)"
    );
}

#[tokio::test]
async fn a_language_model_fills_in_what_was_asked_for() {
    let words = "Here it is: {\"year\": 1927, \"author\": null, \"_internal\": 3, \"other\": 4}";
    let script = Script::start(vec![json!({"choices": [{"message": {"content": words}}]})]).await;
    let parameters = json!({"response_shape": {"year": "integer", "author": "string"}});
    let plan = plan("text_extractor", parameters);
    let one = object("a.txt", "text", b"Metropolis is of 1927.".to_vec());
    let documents = run(&ingest(Some(&script), None), &plan, one)
        .await
        .documents
        .unwrap();
    assert_eq!(documents[0].payload["year"], 1927);
    assert!(
        !documents[0].payload.contains_key("author") && !documents[0].payload.contains_key("other")
    );
    let asked = String::from_utf8_lossy(&script.asked.lock().unwrap()[0]).into_owned();
    assert!(
        asked.contains("POST /v1/chat/completions") && asked.contains("json_schema"),
        "{asked}"
    );
}

#[tokio::test]
async fn files_of_every_kind_become_documents_of_one_collection() {
    let ingest = ingest(None, None);
    let plan = plan("universal_extractor", json!({"max_video_segments": 1}));
    for (name, kind, bytes, member) in [
        ("note.txt", "text", b"A note.".to_vec(), "text"),
        (
            "page.pdf",
            "pdf",
            pdf("BT /F1 36 Tf 40 120 Td (Some words) Tj ET", None),
            "page_number",
        ),
        ("film.mp4", "video", film(), "start_time"),
        ("tone.ogg", "audio", sound(), "end_time"),
        (
            "card.avif",
            "image",
            made(
                "-f lavfi -i testsrc=s=64x48:d=0.1 -frames:v 1 -c:v libaom-av1 -cpu-used 8 -still-picture 1 -y",
                "a.avif",
            ),
            "labels",
        ),
    ] {
        let documents = run(&ingest, &plan, object(name, kind, bytes))
            .await
            .documents
            .expect(name);
        assert_eq!(documents.len(), 1, "{name}");
        assert!(
            documents[0].payload.contains_key(member),
            "{name}: {:?}",
            documents[0].payload
        );
    }
}
