use super::*;

fn check(name: &str, parameters: Value) -> Result<Params, Violation> {
    find(name, "v1")
        .expect("in the catalogue")
        .check_params(&parameters, &Outputs::builtin())
}

#[test]
fn names_and_versions_are_found() {
    for info in catalogue() {
        assert_eq!(
            info.feature_extractor_id,
            format!("{}_{}", info.name, info.version)
        );
        for spelling in ["v1", "1", "1.0", "1.0.0"] {
            assert_eq!(
                find(info.name, spelling).map(|found| found.name),
                Some(info.name)
            );
        }
        assert!(find(info.name, "v2").is_none());
        let checked = info.check_params(&info.default_parameters(), &Outputs::builtin());
        let absent = info.extractor == Extractor::Absent;
        assert_eq!(checked.is_err(), absent, "{}: {checked:?}", info.name);
        let reason = info.unavailable(&Outputs::builtin());
        assert!(
            !absent || reason.is_some_and(|reason| reason.len() > 20),
            "{}",
            info.name
        );
    }
    assert!(find("nothing", "v1").is_none());
}

#[test]
fn indexes_are_named_by_extractor_version_and_output() {
    let params = check("text_extractor", Value::Null).expect("valid");
    let index = &params.indexes()[0];
    assert_eq!(
        index.feature_uri,
        "loupe://text_extractor@v1/all_minilm_l6_v2_v1"
    );
    assert_eq!(index.name, "text_extractor_v1_all_minilm_l6_v2_v1");
    assert_eq!((index.dims, index.distance), (384, Distance::Cosine));
}

#[test]
fn violations_name_their_field() {
    let cases = [
        ("text_extractor", json!({"chunk_size": 0}), "chunk_size"),
        ("text_extractor", json!({"chunk_size": "ten"}), "chunk_size"),
        (
            "text_extractor",
            json!({"split_by": "words", "chunk_size": 5, "chunk_overlap": 5}),
            "chunk_overlap",
        ),
        ("text_extractor", json!({"split_by": "verses"}), "split_by"),
        (
            "text_extractor",
            json!({"split_by": "time_segments"}),
            "split_by",
        ),
        (
            "text_extractor",
            json!({"source_type": "youtube"}),
            "source_type",
        ),
        (
            "text_extractor",
            json!({"embedding_model": "text-embedding-3-small"}),
            "embedding_model",
        ),
        ("text_extractor", json!({"chunk_sise": 5}), "chunk_sise"),
        (
            "text_extractor",
            json!({"extractor_type": "image_extractor"}),
            "extractor_type",
        ),
        (
            "document_graph_extractor",
            json!({"render_dpi": 10}),
            "render_dpi",
        ),
        (
            "image_extractor",
            json!({"enable_thumbnails": 3}),
            "enable_thumbnails",
        ),
        (
            "passthrough_extractor",
            json!({"row_format": "csv"}),
            "row_format",
        ),
        (
            "passthrough_extractor",
            json!({"vector_fields": [{"field": "v", "name": "v", "dimensions": 0}]}),
            "vector_fields",
        ),
    ];
    for (name, parameters, field) in cases {
        let violation = check(name, parameters.clone()).expect_err(&parameters.to_string());
        assert_eq!(
            violation.loc.first().map(String::as_str),
            Some(field),
            "{parameters}: {violation}"
        );
    }
}

#[test]
fn a_model_behind_an_endpoint_becomes_available() {
    let parameters = json!({"embedding_model": "multilingual_e5_large_instruct_v1"});
    let refused = check("text_extractor", parameters.clone()).expect_err("not built in");
    assert!(
        refused.msg.contains("not available on this server"),
        "{refused}"
    );
    let outputs =
        Outputs::builtin().with("multilingual_e5_large_instruct_v1", 1024, Source::TextModel);
    let info = find("text_extractor", "v1").expect("in the catalogue");
    let params = info
        .check_params(&parameters, &outputs)
        .expect("available now");
    assert_eq!(params.indexes()[0].dims, 1024);
}
