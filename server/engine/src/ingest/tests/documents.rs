//! What documents tell of their files, and how they are found.

use super::*;

#[tokio::test]
async fn a_chunk_is_found_by_its_own_words_and_by_the_other_fields() {
    let plan = plan(
        "text_extractor",
        json!({
            "parameters": {"split_by": "words", "chunk_size": 2, "chunk_overlap": 0},
            "input_mappings": {"text": "story"},
            "include_all_source_fields": true,
        }),
    );
    let fields = json!({"story": "one two three four", "author": "Ada"});
    let made = documents(&plan, object(0, fields.clone())).await.unwrap();
    let words: Vec<&str> = made.iter().filter_map(|d| d.keywords.as_deref()).collect();
    assert_eq!(words, ["one two\nAda", "three four\nAda"]);
    assert_eq!(made[1].payload["author"], "Ada");
    assert_eq!(made[1].payload["text"], "three four");
    assert!(
        !made[1].payload.contains_key("story"),
        "each chunk has its own words, not all of them"
    );
    let whole = self::plan(
        "text_extractor",
        json!({
            "input_mappings": {"text": "story"}, "include_all_source_fields": true,
        }),
    );
    let made = documents(&whole, object(0, fields.clone())).await.unwrap();
    assert_eq!(
        made[0].payload["story"], fields["story"],
        "one document repeats nothing"
    );
}

#[tokio::test]
async fn rows_bring_their_own_fields() {
    let plan = plan(
        "passthrough_extractor",
        json!({
            "parameters": {
                "row_format": "jsonl",
                "vector_fields": [{"field": "v", "name": "own", "dimensions": 2}],
            },
            "field_passthrough": [
                {"source_path": "name.first", "target_path": "first", "required": true},
                {"source_path": "shelf"},
            ],
        }),
    );
    let rows = concat!(
        "{\"name\": {\"first\": \"Ada\"}, \"v\": [1, 2], \"shelf\": \"own\"}\n\n",
        "{\"name\": {\"first\": \"Bo\"}, \"v\": [3, 4]}\n",
    );
    let with = |rows: &str| {
        let mut one = object(0, json!({"shelf": "of the file"}));
        one.blobs = vec![file(
            "people.jsonl",
            "text",
            "application/x-ndjson",
            rows.to_owned(),
        )];
        one
    };
    let made = documents(&plan, with(rows)).await.unwrap();
    let seen: Vec<Value> = made
        .iter()
        .map(|d| {
            json!([
                d.payload["row_index"],
                d.payload["first"],
                d.payload["shelf"],
                d.vectors["own"]
            ])
        })
        .collect();
    assert_eq!(
        seen,
        [
            json!([0, "Ada", "own", [1.0, 2.0]]),
            json!([1, "Bo", "of the file", [3.0, 4.0]])
        ]
    );
    assert_eq!(
        made[0].payload["_internal"]["mime_type"],
        "application/x-ndjson"
    );
    assert_eq!(made[0].keywords.as_deref(), Some("Ada\nown\nAda"));
    for (rows, reason) in [
        (
            "{\"v\": [1, 2]}",
            "the object has no field name.first, which the collection requires",
        ),
        (
            "{\"name\": {\"first\": \"Ada\"}, \"v\": [1, 2]}\n{\"v\": [1]}",
            "row 1: the vector in the field v has 1 numbers; the index has 2 dimensions",
        ),
        ("{\"v\": ", "line 1 of the file is not a JSON object"),
    ] {
        let failure = documents(&plan, with(rows)).await.unwrap_err();
        assert!(failure.error.starts_with(reason), "{failure:?}");
        assert_eq!(failure.error_type, "permanent");
    }
}

#[tokio::test]
async fn rows_of_tables_bring_their_fields_and_vectors() {
    let plan = plan(
        "passthrough_extractor",
        json!({"parameters": {
            "row_format": "parquet",
            "vector_fields": [{"field": "vector", "name": "own", "dimensions": 2}],
        }}),
    );
    let table = include_bytes!("../../../tests/fixtures/table_snappy.parquet");
    let with = |bytes: Vec<u8>| {
        let mut one = object(0, json!({"shelf": "of the file"}));
        let mime = "application/vnd.apache.parquet";
        one.blobs = vec![file("table.parquet", "text", mime, bytes)];
        one
    };
    let made = documents(&plan, with(table.to_vec())).await.unwrap();
    let seen: Vec<Value> = made
        .iter()
        .map(|d| {
            let title = d.payload.get("title");
            json!([d.payload["row_index"], title, d.vectors["own"]])
        })
        .collect();
    assert_eq!(
        seen,
        [
            json!([0, "lion", [1.0, 0.0]]),
            json!([1, null, [0.0, 1.0]]),
            json!([2, "lion", [0.5, 0.5]])
        ]
    );
    assert_eq!(made[0].payload["inner"], json!({"x": 1, "y": "z"}));
    let failure = documents(&plan, with(b"{}\n".to_vec())).await.unwrap_err();
    let reason = "the file cannot be read as Parquet: ";
    assert!(failure.error.starts_with(reason), "{failure:?}");
    assert_eq!(failure.error_type, "permanent");
}

#[tokio::test]
async fn documents_tell_the_type_that_their_file_has() {
    let passthrough = plan("passthrough_extractor", json!({}));
    let text = plan("text_extractor", json!({}));
    let png = samples::png(4, 4);
    for (plan, name, kind, claimed, bytes, mime) in [
        (
            &passthrough,
            "a.jpg",
            "image",
            "image/jpeg",
            png,
            "image/png",
        ),
        (
            &passthrough,
            "b.pdf",
            "pdf",
            "application/pdf",
            b"words".to_vec(),
            "text/plain",
        ),
        (
            &passthrough,
            "c",
            "text",
            "text/plain",
            b"\x00\x01".to_vec(),
            "application/octet-stream",
        ),
        (
            &text,
            "d.txt",
            "text",
            "image/png",
            b"BM is no bitmap".to_vec(),
            "text/plain",
        ),
        (
            &text,
            "e.txt",
            "text",
            "text/csv; charset=utf-8",
            b"a,b".to_vec(),
            "text/csv",
        ),
        (
            &text,
            "f.txt",
            "pdf",
            "text/plain",
            samples::pdf(&["words"]),
            "application/pdf",
        ),
        (
            &text,
            "g.txt",
            "text",
            "text/plain",
            b"<!doctype html><p>words".to_vec(),
            "text/html",
        ),
        (
            &text,
            "h.md",
            "text",
            "text/plain",
            b"# words".to_vec(),
            "text/markdown",
        ),
    ] {
        let mut one = object(0, json!({}));
        one.blobs = vec![file(name, kind, claimed, bytes)];
        let internal = &documents(plan, one).await.expect(name)[0].payload["_internal"];
        assert_eq!(internal["mime_type"], mime, "{name}");
        assert_eq!(internal["source_blobs"][0]["content_type"], mime, "{name}");
    }
}

#[tokio::test]
async fn a_text_of_a_field_is_told_apart_from_the_files_beside_it() {
    let plan = plan(
        "text_extractor",
        json!({"input_mappings": {"text": "note"}}),
    );
    let mut one = object(0, json!({"note": "words"}));
    one.blobs = vec![file("a.png", "image", "image/png", samples::png(4, 4))];
    let made = documents(&plan, one).await.unwrap();
    let internal = &made[0].payload["_internal"];
    assert_eq!(
        (&internal["modality"], &internal["mime_type"]),
        (&json!("text"), &Value::Null)
    );
}

#[tokio::test]
async fn what_is_mapped_twice_is_one_document() {
    let mapping = |source: Value| {
        let mut mapping = json!({"input_key": "text"});
        let members = mapping.as_object_mut().unwrap();
        members.extend(source.as_object().unwrap().clone());
        mapping
    };
    let mappings = json!([
        mapping(json!({"path": "note"})),
        mapping(json!({"path": "payload.note"})),
        mapping(json!({"override": "one"})),
        mapping(json!({"override": "two"})),
    ]);
    let plan = plan("text_extractor", json!({ "input_mappings": mappings }));
    let made = documents(&plan, object(0, json!({"note": "words"}))).await;
    let made = made.unwrap();
    let texts: Vec<&Value> = made.iter().map(|d| &d.payload["text"]).collect();
    assert_eq!(texts, ["words", "one", "two"]);
    let ids: std::collections::HashSet<&String> = made.iter().map(|d| &d.document_id).collect();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn results_for_one_object_are_documents_of_their_own() {
    let plan = plan("passthrough_extractor", json!({}));
    let of = |result: &str| ObjectInput {
        result: Some(result.to_owned()),
        ..object(0, json!({"title": "one"}))
    };
    let mut made = Vec::new();
    for result in ["result/a", "result/b", "result/a"] {
        made.extend(documents(&plan, of(result)).await.unwrap());
    }
    assert_ne!(made[0].document_id, made[1].document_id);
    assert_eq!(made[0].document_id, made[2].document_id);
    let root = |number: usize| &made[number].payload["_internal"]["lineage"]["root_object_id"];
    assert_eq!((root(0), root(1)), (&json!("obj_0"), &json!("obj_0")));
}
