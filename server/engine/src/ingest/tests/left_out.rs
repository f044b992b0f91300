//! What is in none of the documents is counted, with its reason.

use super::*;

/// A page that draws a picture, and one in a font that is not there, as texts of a page of [`samples::pdf`].
const PICTURE: &str = ") Tj ET q /P Do Q BT (";
const BROKEN: &str = ") Tj /F9 24 Tf (x";

async fn outcome(extractor: &str, parameters: Value, file: BlobInput) -> ObjectOutcome {
    let plan = plan(extractor, json!({ "parameters": parameters }));
    let mut one = object(0, json!({}));
    one.blobs = vec![file];
    let outcomes = run(&Moody::default(), &plan, vec![one], Try::More).await;
    outcomes.unwrap().remove(0)
}

/// The same, where pictures are seen.
async fn seen(extractor: &str, file: BlobInput) -> ObjectOutcome {
    let plan = plan(extractor, json!({}));
    let ingest = Ingest {
        extraction: Extraction::in_process(),
        encoders: Arc::new(large::Seeing::of(&plan)),
        web: None,
    };
    let mut one = object(0, json!({}));
    one.blobs = vec![file];
    let outcomes = ingest.run(&plan, vec![one], NOW, Try::More).await;
    outcomes.unwrap().remove(0)
}

fn pdf(pages: &[&str]) -> BlobInput {
    file("a.pdf", "pdf", "application/pdf", samples::pdf(pages))
}

fn counts(counted: &[(&str, i64)]) -> std::collections::BTreeMap<String, i64> {
    let counted = counted.iter();
    counted
        .map(|(reason, count)| ((*reason).to_owned(), *count))
        .collect()
}

#[tokio::test]
async fn pages_that_are_short_or_cannot_be_read() {
    let pages = [
        "Words enough to be a page of their own",
        PICTURE,
        BROKEN,
        "few",
        "",
    ];
    let made = outcome("document_graph_extractor", json!({}), pdf(&pages)).await;
    let documents = made.documents.unwrap();
    assert_eq!(documents.len(), 1, "{documents:?}");
    assert_eq!(documents[0].payload["total_pages"], 5);
    let reasons = [("min_text_length", 1), ("no_ocr", 1), ("unreadable", 1)];
    assert_eq!(made.dropped.pages, counts(&reasons), "a blank page is none");
    let told = "left out: 1 pages (min_text_length), 1 pages (no_ocr), 1 pages (unreadable)";
    assert_eq!(made.dropped.told(), told);
}

#[tokio::test]
async fn pictures_after_the_first_of_a_file() {
    for extractor in [
        "image_extractor",
        "multimodal_extractor",
        "universal_extractor",
    ] {
        for (name, mime, bytes, left) in [
            ("scan.tiff", "image/tiff", samples::tiff(3), 2),
            ("moves.gif", "image/gif", samples::gif(5), 4),
            ("one.tiff", "image/tiff", samples::tiff(1), 0),
        ] {
            let made = seen(extractor, file(name, "image", mime, bytes)).await;
            assert_eq!(made.documents.unwrap().len(), 1, "{extractor} {name}");
            let told = made.dropped.pages.get("first_picture_only").copied();
            assert_eq!(told.unwrap_or_default(), left, "{extractor} {name}");
        }
    }
}

#[tokio::test]
async fn pictures_that_look_like_texts_are_no_texts() {
    let ppm = b"P6\n4 4\n255\nabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv".as_slice();
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><text>words</text></svg>".as_slice();
    for extractor in ["multimodal_extractor", "universal_extractor"] {
        for kind in ["image", "text"] {
            let made = seen(extractor, file("a", kind, "text/plain", ppm)).await;
            let documents = made.documents.unwrap();
            assert_eq!(documents[0].payload["width"], 4, "{extractor} {kind}");
            assert!(!documents[0].payload.contains_key("text"), "{documents:?}");
            let made = seen(extractor, file("a", kind, "text/plain", svg)).await;
            let refused = made.documents.unwrap_err().error;
            assert!(refused.contains("an SVG drawing"), "{extractor}: {refused}");
        }
        let made = seen(extractor, file("a", "image", "image/png", "words")).await;
        let refused = made.documents.unwrap_err().error;
        assert!(refused.contains("not a picture"), "{extractor}: {refused}");
    }
    for bytes in [ppm, svg] {
        let made = outcome(
            "text_extractor",
            json!({}),
            file("a", "text", "text/plain", bytes),
        )
        .await;
        let refused = made.documents.unwrap_err().error;
        assert!(refused.contains("the file is not text"), "{refused}");
    }
}

#[tokio::test]
async fn a_whole_file_leaves_nothing_out() {
    for (extractor, file) in [
        ("text_extractor", pdf(&["one", "two"])),
        ("universal_extractor", pdf(&["one", "two"])),
        (
            "text_extractor",
            file("a.eml", "text", "message/rfc822", samples::email()),
        ),
    ] {
        let made = outcome(extractor, json!({}), file).await;
        assert!(made.documents.is_ok(), "{extractor}: {made:?}");
        assert!(made.dropped.is_empty(), "{extractor}: {made:?}");
    }
}

#[tokio::test]
async fn pages_beyond_those_that_are_asked_for() {
    let pages = pdf(&["one", "two", "three", PICTURE, ""]);
    let made = outcome(
        "universal_extractor",
        json!({"max_document_pages": 2}),
        pages,
    )
    .await;
    let documents = made.documents.unwrap();
    let seen: Vec<Value> = documents
        .iter()
        .map(|one| json!([one.payload["page_number"], one.payload["total_pages"]]))
        .collect();
    assert_eq!(seen, [json!([1, 5]), json!([2, 5])]);
    assert_eq!(made.dropped.pages, counts(&[("max_document_pages", 2)]));
}

#[tokio::test]
async fn what_is_attached_to_a_mail_beyond_the_first_or_cannot_be_read() {
    use std::fmt::Write as _;

    let mut mail = "From: a@example.com\r\nTo: b@example.com\r\nSubject: Bees\r\nMIME-Version: 1.0\r\n\
                    Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThe hive.\r\n"
        .to_owned();
    for number in 0..53 {
        let content = if number == 0 {
            "PK\u{3}\u{4} no archive"
        } else {
            "words"
        };
        write!(
            mail,
            "--b\r\nContent-Type: text/plain; name=\"{number}.txt\"\r\n\
             Content-Disposition: attachment; filename=\"{number}.txt\"\r\n\r\n{content}\r\n"
        )
        .unwrap();
    }
    mail += "--b--\r\n";
    let mail = file("a.eml", "text", "message/rfc822", mail.into_bytes());
    let made = outcome("text_extractor", json!({}), mail).await;
    assert!(made.documents.is_ok(), "{made:?}");
    let reasons = [("attachment_limit", 3), ("unreadable_attachment", 1)];
    assert_eq!(made.dropped.pages, counts(&reasons));
}
