//! What strangers send: it fails by itself, with a reason, and what came with it is kept.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{bomb, process, red_square},
    both,
    harness::Server,
};

/// A PDF of one page with a line of text.
pub fn pdf(words: &str) -> Vec<u8> {
    pdf_of(&[words])
}

/// A PDF with a line of text on each page.
pub fn pdf_of(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len())
        .map(|n| format!("{} 0 R", 4 + 2 * n))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            pages.len(),
            kids.join(" ")
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for words in pages {
        let content = format!("BT /F1 24 Tf 72 700 Td ({words}) Tj ET");
        let at = objects.len() + 2;
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {at} 0 R >>"));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let (start, size) = (file.len(), objects.len() + 1);
    file += &format!(
        "xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.into_bytes()
}

/// A bucket of papers with photos and a collection over each; answers namespace and bucket.
async fn archive(server: &Server) -> (String, String) {
    let namespace = server.namespace("archive").await;
    let schema = json!({"properties": {
        "title": {"type": "string"}, "paper": {"type": "pdf"}, "photo": {"type": "image"},
    }});
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let bucket = bucket["bucket_id"].as_str().unwrap().to_owned();
    for (name, extractor, input, property) in [
        ("papers", "text_extractor", "text", "paper"),
        ("photos", "image_extractor", "image", "photo"),
    ] {
        let collection = collection(name, &bucket, extractor, json!({ input: property }));
        server
            .call_in(&namespace, "POST", "/v1/collections", collection)
            .await
            .ok();
    }
    (namespace, bucket)
}

fn collection(name: &str, bucket: &str, extractor: &str, mappings: Value) -> Value {
    json!({
        "collection_name": name,
        "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {
            "feature_extractor_name": extractor, "version": "v1", "input_mappings": mappings,
            "field_passthrough": [{"source_path": "title"}],
        },
    })
}

/// The titles and the detected types of a collection's documents, in the order of the titles.
async fn kept(server: &Server, namespace: &str, collection: &str) -> Vec<(String, String)> {
    let path = format!("/v1/collections/{collection}/documents/list");
    let list = server
        .call_in(namespace, "POST", &path, json!({"limit": 100}))
        .await
        .ok();
    let documents = list["results"].as_array().unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let mut kept: Vec<_> = documents
        .iter()
        .map(|document| {
            (
                word(&document["title"]),
                word(&document["_internal"]["mime_type"]),
            )
        })
        .collect();
    kept.sort();
    kept
}

/// A search finds what is good, the nearest first.
async fn what_is_kept_is_found(server: &Server, namespace: &str, count: usize) {
    let retriever = json!({
        "retriever_name": "search", "collection_identifiers": ["papers"],
        "input_schema": {"query": {"type": "text", "required": true}},
        "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{
                "feature_uri": "loupe://text_extractor@v1/all_minilm_l6_v2_v1",
                "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": 10,
            }],
            "final_top_k": 10,
        }}}],
    });
    let retriever = server
        .call_in(namespace, "POST", "/v1/retrievers", retriever)
        .await
        .ok();
    let execute = format!(
        "/v1/retrievers/{}/execute",
        retriever["retriever_id"].as_str().unwrap()
    );
    let answer = server
        .call_in(
            namespace,
            "POST",
            &execute,
            json!({"inputs": {"query": "mammals of the sea"}}),
        )
        .await
        .ok();
    assert_eq!(answer["documents"].as_array().unwrap().len(), count);
    assert_eq!(
        answer["documents"][0]["title"], "another good one",
        "{answer:#}"
    );
}

both! {
    async fn one_batch_keeps_the_good_files_and_tells_of_the_bad(server) {
        let (namespace, bucket) = archive(&server).await;
        let mut broken = pdf("words");
        broken.truncate(200);
        let (paper, photo) = (|| pdf("An engine of steam"), red_square);
        let objects = format!("/v1/buckets/{bucket}/objects");
        let mut expected = BTreeMap::new();
        for (title, paper, photo, failure) in [
            ("a good one", paper(), photo(), None),
            ("a broken PDF", broken, photo(), Some(("the PDF is broken", "permanent"))),
            ("a picture that claims to be a PDF", photo(), photo(), Some(("not: it looks like a PNG picture", "permanent"))),
            ("a bomb", paper(), bomb(), Some(("100 megapixels", "resource"))),
            ("an empty file", paper(), Vec::new(), Some(("the file is empty", "permanent"))),
            ("words that claim to be a picture", paper(), b"words".to_vec(), Some(("not a picture that can be read: it looks like text", "permanent"))),
            ("another good one", pdf("Whales breathe air and sing"), photo(), None),
        ] {
            let blobs = json!([
                {"property": "paper", "type": "pdf", "data": STANDARD.encode(paper)},
                {"property": "photo", "type": "image", "data": STANDARD.encode(photo)},
            ]);
            let made = server.call_in(&namespace, "POST", &objects, json!({"title": title, "blobs": blobs})).await.ok();
            if let Some(failure) = failure {
                expected.insert(made["object_id"].as_str().unwrap().to_owned(), failure);
            }
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");
        assert_eq!(batch["failed_object_count"], 5, "{batch:#}");

        let path = format!("/v1/buckets/{bucket}/batches/{}/failed-documents", batch["batch_id"].as_str().unwrap());
        let failed = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let failed = failed["results"].as_array().unwrap();
        assert_eq!(failed.len(), expected.len(), "{failed:#?}");
        for failure in failed {
            let (reason, kind) = expected[failure["object_id"].as_str().unwrap()];
            assert!(failure["error"].as_str().unwrap().contains(reason), "{reason}: {failure:#}");
            assert_eq!(failure["error_type"], kind, "{failure:#}");
        }

        // What is good of an object is kept, in the collection that reads it.
        let all = |titles: &[&str], mime: &str| -> Vec<(String, String)> {
            titles.iter().map(|title| ((*title).to_owned(), mime.to_owned())).collect()
        };
        let papers = ["a bomb", "a good one", "an empty file", "another good one", "words that claim to be a picture"];
        let photos = ["a broken PDF", "a good one", "a picture that claims to be a PDF", "another good one"];
        assert_eq!(kept(&server, &namespace, "papers").await, all(&papers, "application/pdf"));
        assert_eq!(kept(&server, &namespace, "photos").await, all(&photos, "image/png"));

        what_is_kept_is_found(&server, &namespace, papers.len()).await;
    }

    async fn an_object_that_no_database_keeps_costs_no_other(server) {
        let (namespace, bucket) = archive(&server).await;
        let objects = json!([{"title": "one"}, {"title": "a\u{0}b"}, {"title": "two"}]);
        let path = format!("/v1/buckets/{bucket}/objects/batch");
        let made = server.call_in(&namespace, "POST", &path, json!({"objects": objects})).await.ok();
        assert_eq!((&made["succeeded_count"], &made["failed_count"], &made["failed"][0]["object_index"]), (&json!(2), &json!(1), &json!(1)), "{made:#}");
        assert!(made["failed"][0]["error"].as_str().unwrap().contains("U+0000"), "{made:#}");
    }

    async fn mappings_that_no_object_can_fill_are_refused(server) {
        let (namespace, bucket) = archive(&server).await;
        for (mappings, place) in [
            (json!({"words": "paper"}), vec!["words"]),
            (json!({"text": "story"}), vec!["text"]),
            (json!([{"input_key": "text", "path": "paper"}, {"input_key": "text", "path": "story"}]), vec!["1", "path"]),
            (json!([{"input_key": "image", "path": "photo"}]), vec!["0", "input_key"]),
            (json!("paper"), vec![]),
        ] {
            let refused = collection("refused", &bucket, "text_extractor", mappings);
            let answer = server.call_in(&namespace, "POST", "/v1/collections", refused).await;
            let mut loc = vec!["body", "feature_extractor", "input_mappings"];
            loc.extend(place);
            answer.invalid(&loc, "value_error");
        }
        // An object may have any field where the bucket declares none.
        let free = json!({"bucket_name": "free", "bucket_schema": {"properties": {}}});
        let free = server.call_in(&namespace, "POST", "/v1/buckets", free).await.ok();
        let taken = collection("taken", free["bucket_id"].as_str().unwrap(), "text_extractor", json!({"text": "story"}));
        server.call_in(&namespace, "POST", "/v1/collections", taken).await.ok();
    }
}
