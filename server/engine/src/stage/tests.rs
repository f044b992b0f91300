use std::sync::Arc;

use indexmap::IndexMap;
use loupe_wire::{Object, RetrieverPagination, StageConfigInput, Value};
use serde_json::json;

use super::testing::{Memory, Plain};
use super::*;
use crate::store::Document;

mod beside;
mod bounds;
mod decompose;
mod figures;
mod hostile;
mod levels;
mod links;
mod local;
mod outside;
mod refusals;
mod running;
mod weights;

const FLAT: &str = "loupe://text_extractor@v1/flat_v1";
const IMAGE: &str = "loupe://image_extractor@v1/image_v1";

fn document(id: &str, vector: [f32; 2], keywords: &str, payload: Value) -> Document {
    let (index, collection) = if id.starts_with("pic") {
        ("image_index", "col_p")
    } else {
        ("flat_index", "col_a")
    };
    Document {
        document_id: id.into(),
        collection_id: collection.into(),
        payload: payload.as_object().unwrap().clone().into(),
        vectors: [(index.to_owned(), vector.to_vec())].into(),
        keywords: (!keywords.is_empty()).then(|| keywords.to_owned()),
    }
}

fn store() -> Memory {
    Memory {
        documents: vec![
            document(
                "a",
                [0.9, 0.1],
                "blue boat",
                json!({"color": "blue", "n": 3, "g": 1}),
            ),
            document(
                "b",
                [0.8, 0.6],
                "red boat red",
                json!({"color": "red", "n": 1, "g": 1}),
            ),
            document(
                "c",
                [0.7, 0.2],
                "red car",
                json!({"color": "red", "n": 2, "g": 2}),
            ),
            document(
                "d",
                [0.1, 0.9],
                "green tree",
                json!({"color": "green", "n": null}),
            ),
            document("pic1", [0.9, 0.1], "", json!({"color": "red"})),
            document("pic2", [0.1, 0.9], "", json!({"color": "blue"})),
        ],
        ..Memory::default()
    }
}

fn collections() -> Vec<Searchable> {
    let index = |uri: &str, name: &str| SearchIndex {
        feature_uri: Some(uri.into()),
        name: name.into(),
        output: uri.rsplit('/').next().unwrap().into(),
        dims: 2,
    };
    vec![
        Searchable {
            collection_id: "col_a".into(),
            name: "texts".into(),
            indexes: vec![index(FLAT, "flat_index")],
        },
        Searchable {
            collection_id: "col_p".into(),
            name: "pictures".into(),
            indexes: vec![index(IMAGE, "image_index")],
        },
    ]
}

fn stages(list: Value) -> Vec<StageConfigInput> {
    let stage = |(id, parameters): (&String, &Value)| {
        let name = id.clone();
        let id = id.trim_end_matches('2');
        json!({"stage_name": name, "config": {"stage_id": id, "parameters": parameters}})
    };
    list.as_object()
        .unwrap()
        .iter()
        .map(stage)
        .map(|s| serde_json::from_value(s).unwrap())
        .collect()
}

fn plan(list: Value) -> Plan {
    Plan::compile(&stages(list), &IndexMap::new())
        .map_err(|p| panic!("{p:?}"))
        .unwrap()
}

fn run(store: Memory, inputs: Value) -> Run {
    Run {
        store: Arc::new(store),
        encoders: Arc::new(Plain::default()),
        namespace_id: "ns_1".into(),
        principal: None,
        collections: collections(),
        references: Vec::new(),
        taxonomies: Vec::new(),
        inputs: inputs.as_object().unwrap().clone(),
        filter: None,
        now: chrono::DateTime::parse_from_rfc3339("2026-11-21T12:00:00Z")
            .unwrap()
            .to_utc(),
        max_time_ms: None,
        pagination: None,
        limit: None,
        return_vectors: false,
        explain: false,
        secrets: Default::default(),
        web: None,
        web_search: None,
        outside: Default::default(),
        keeping: None,
        watch: None,
        acts: Default::default(),
        around: None,
        shown: None,
        counted: Vec::new(),
    }
}

async fn answer(list: Value, inputs: Value) -> Outcome {
    plan(list).run(run(store(), inputs)).await.unwrap()
}

async fn failure(list: Value, inputs: Value) -> String {
    plan(list)
        .run(run(store(), inputs))
        .await
        .unwrap_err()
        .to_string()
}

fn ids(outcome: &Outcome) -> Vec<&str> {
    outcome
        .documents
        .iter()
        .map(|d| d["document_id"].as_str().unwrap())
        .collect()
}

fn search(more: Value) -> Value {
    let mut search =
        json!({"feature_uri": FLAT, "query": {"input_mode": "text", "value": "{{INPUT.query}}"}});
    search
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    search
}

fn one(more: Value) -> Value {
    json!({"feature_search": {"searches": [search(more)]}})
}

#[tokio::test]
async fn one_search_ranks_by_similarity_and_keeps_its_scores() {
    let out = answer(one(json!({})), json!({"query": "1,0"})).await;
    assert_eq!(ids(&out), ["a", "b", "c", "d"]);
    assert!((out.documents[0]["score"].as_f64().unwrap() - 0.9).abs() < 1e-6);
    assert_eq!(out.documents[0]["collection_id"], "col_a");
    assert_eq!(out.documents[0]["color"], "blue");
    let told = &out.statistics.stages["feature_search"];
    assert_eq!(
        (told.input_count, told.output_count, told.error.as_ref()),
        (0, 4, None)
    );
    let out = answer(
        one(json!({"min_score": 0.75, "top_k": 3})),
        json!({"query": "1,0"}),
    )
    .await;
    assert_eq!(ids(&out), ["a", "b"]);
}

#[tokio::test]
async fn the_short_form_and_the_alias_are_one_search() {
    let flat = json!({"feature_filter": {"feature_uri": FLAT, "query": "{{INPUT.query}}", "final_top_k": 2}});
    assert_eq!(
        ids(&answer(flat, json!({"query": "0,1"})).await),
        ["d", "b"]
    );
}

#[tokio::test]
async fn hybrid_fuses_by_rank_as_computed_by_hand() {
    // Dense order for (1, 0): a, b, c, d. Keywords "red car": c has both words (1st), b has one (2nd).
    let out = answer(one(json!({"lexical": true})), json!({"query": "red car"})).await;
    assert_eq!(ids(&out), ["c", "b", "a", "d"]);
    let expected = [
        1.0 / 63.0 + 1.0 / 61.0,
        1.0 / 62.0 + 1.0 / 62.0,
        1.0 / 61.0,
        1.0 / 64.0,
    ];
    for (document, expected) in out.documents.iter().zip(expected) {
        assert!(
            (document["score"].as_f64().unwrap() - expected).abs() < 1e-12,
            "{document:?}"
        );
    }
    assert_eq!(out.documents[0]["scores"]["search_0_lexical"], json!(6.0));
    assert_eq!(out.documents[2]["scores"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn several_searches_are_weighted_and_embedded_in_one_call() {
    let two = |fusion: &str| {
        json!({"feature_search": {"fusion": fusion, "searches": [
            search(json!({"weight": 1.0})),
            {"feature_uri": FLAT, "query": {"input_mode": "text", "text": "0,1"}, "weight": 0.5}]}})
    };
    let encoders = Plain::default();
    let calls = encoders.calls.clone();
    let mut with = run(store(), json!({"query": "1,0"}));
    with.encoders = Arc::new(encoders);
    let out = plan(two("rrf")).run(with).await.unwrap();
    assert_eq!(*calls.lock().unwrap(), [["1,0", "0,1"]]);
    // First list a b c d, second d b c a at half weight.
    let a = 1.0 / 61.0 + 0.5 / 64.0;
    assert!((out.documents[0]["score"].as_f64().unwrap() - a).abs() < 1e-12);
    assert_eq!(ids(&out), ["a", "b", "d", "c"]);
    // Weighted: shares of the best score, 0.9 in both lists: b = 0.8/0.9 + 0.5 * 0.6/0.9.
    let out = answer(two("weighted"), json!({"query": "1,0"})).await;
    assert_eq!(ids(&out)[0], "b");
    assert!((out.documents[0]["score"].as_f64().unwrap() - (0.8 + 0.3) / 0.9).abs() < 1e-6);
    let out = answer(two("max"), json!({"query": "1,0"})).await;
    assert!((out.documents[0]["score"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(
        ids(&answer(two("dbsf"), json!({"query": "1,0"})).await).len(),
        4
    );
}

#[tokio::test]
async fn a_feature_that_nobody_has_gives_nothing_and_a_warning() {
    let other = json!({"feature_search": {"searches": [search(json!({"feature_uri": "loupe://text_extractor@v1/other_v9", "lexical": true}))]}});
    let out = answer(other, json!({"query": "red"})).await;
    assert!(out.documents.is_empty());
    assert_eq!(out.warnings.len(), 1);
    assert!(out.warnings[0].contains("other_v9"));
    // The same output segment is the same space, whichever extractor filled it.
    let same = one(json!({"feature_uri": "loupe://document_extractor@v3/flat_v1"}));
    assert_eq!(
        answer(same, json!({"query": "1,0"})).await.documents.len(),
        4
    );
    assert_eq!(
        answer(
            one(json!({"feature_uri": "flat_index"})),
            json!({"query": "1,0"})
        )
        .await
        .documents
        .len(),
        4
    );
}

#[tokio::test]
async fn filters_go_to_the_store_and_missing_inputs_relax_them() {
    let memory = Arc::new(store());
    let list = json!({"feature_search": {
        "filters": {"AND": [{"color": "{{INPUT.color}}"}, {"n": {"$gte": {"type": "dynamic", "field": "inputs.least"}}}]},
        "searches": [search(json!({"pre_filters": {"NOT": {"document_id": "c"}}}))]}});
    let mut with = run(Memory::default(), json!({"query": "1,0", "color": "red"}));
    with.store = memory.clone();
    let out = plan(list).run(with).await.unwrap();
    assert_eq!(ids(&out), ["b"]);
    let sent = memory.searches.lock().unwrap()[0]
        .1
        .filter
        .as_ref()
        .unwrap()
        .to_string();
    assert_eq!(sent, r#"color eq "red" and (none of document_id eq "c")"#);
    let relaxed = out.interpretation["relaxations"].as_array().unwrap();
    assert_eq!(relaxed.len(), 1);
    assert!(relaxed[0].as_str().unwrap().contains("least"));
}

#[tokio::test]
async fn facets_count_and_groups_gather() {
    let list = json!({"feature_search": {"searches": [search(json!({}))], "filters": {"n": {"$exists": true}},
        "facets": [{"key": "color", "limit": 2}], "group_by": {"field": "g", "max_per_group": 2, "output_mode": "all"}}});
    let out = answer(list.clone(), json!({"query": "1,0"})).await;
    assert_eq!(out.facets[0]["key"], "color");
    assert_eq!(
        out.facets[0]["values"][0],
        json!({"value": "red", "count": 2})
    );
    assert_eq!(ids(&out), ["a", "c", "d"]);
    assert_eq!(out.documents[0]["count"], 2);
    assert_eq!(out.documents[0]["documents"][1]["document_id"], "b");
    let mode = |mode: &str| {
        let mut list = list.clone();
        list["feature_search"]["group_by"]["output_mode"] = json!(mode);
        list
    };
    assert_eq!(
        ids(&answer(mode("first"), json!({"query": "1,0"})).await),
        ["a", "c", "d"]
    );
    assert_eq!(
        ids(&answer(mode("flatten"), json!({"query": "1,0"})).await),
        ["a", "b", "c", "d"]
    );
}

#[tokio::test]
async fn queries_by_vector_document_and_picture() {
    let by = |uri: &str, query: Value| json!({"feature_search": {"searches": [{"feature_uri": uri, "query": query}]}});
    let out = answer(
        by(
            FLAT,
            json!({"input_mode": "vector", "value": "{{INPUT.v}}"}),
        ),
        json!({"v": [0, 1]}),
    )
    .await;
    assert_eq!(ids(&out)[0], "d");
    let wrong = failure(
        by(FLAT, json!({"input_mode": "vector", "value": [1, 2, 3]})),
        json!({}),
    )
    .await;
    assert!(
        wrong.contains("3 numbers") && wrong.contains("has 2"),
        "{wrong}"
    );
    let like = json!({"input_mode": "document", "document_ref": {"document_id": "{{INPUT.id}}"}});
    let out = answer(by(FLAT, like.clone()), json!({"id": "d"})).await;
    assert_eq!(
        ids(&out),
        ["b", "c", "a"],
        "a document does not find itself"
    );
    assert!(
        failure(by(FLAT, like), json!({"id": "zz"}))
            .await
            .contains("no document `zz`")
    );
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_pixel(4, 4, image::Rgb([0, 0, 255]))
        .write_to(&mut png, image::ImageFormat::Png)
        .unwrap();
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(png.into_inner());
    let picture = json!({"input_mode": "content", "content": {"base64": "{{INPUT.file}}"}});
    let out = answer(by(IMAGE, picture), json!({"file": encoded})).await;
    assert_eq!(ids(&out), ["pic2", "pic1"]);
    let remote = json!({"input_mode": "content", "value": "https://example.com/a.png"});
    assert!(
        failure(by(IMAGE, remote), json!({}))
            .await
            .contains("by URL")
    );
}

#[tokio::test]
async fn empty_queries_and_absent_models_do_what_the_search_says() {
    assert!(
        failure(one(json!({})), json!({}))
            .await
            .contains("is empty")
    );
    assert!(
        answer(one(json!({"optional": true})), json!({}))
            .await
            .documents
            .is_empty()
    );
    assert_eq!(
        answer(one(json!({"on_empty": "random"})), json!({}))
            .await
            .documents
            .len(),
        4
    );
    let text_on_images = json!({"feature_uri": IMAGE});
    assert!(
        failure(one(text_on_images.clone()), json!({"query": "red"}))
            .await
            .contains("image_v1")
    );
    let both = json!({"feature_search": {"searches": [search(text_on_images), search(json!({}))]}});
    let out = answer(both, json!({"query": "1,0"})).await;
    assert_eq!(out.documents.len(), 4);
    assert_eq!(out.degraded[0].resource, "feature");
}

#[tokio::test]
async fn a_filter_that_comes_first_is_left_to_the_store() {
    let memory = Arc::new(store());
    let filter = json!({"field": "color", "operator": "in", "value": ["red", "green"]});
    let list =
        json!({"attribute_filter": filter, "sort_attribute": {"field": "n", "direction": "asc"}});
    let mut with = run(Memory::default(), json!({}));
    with.store = memory.clone();
    with.pagination =
        serde_json::from_value(json!({"method": "offset", "page_size": 2, "page_number": 1}))
            .unwrap();
    let out = plan(list).run(with).await.unwrap();
    assert_eq!(ids(&out), ["b", "c"]);
    assert_eq!((out.total, &out.pagination["total_pages"]), (4, &json!(2)));
    let lists = std::mem::take(&mut *memory.lists.lock().unwrap());
    assert_eq!(
        (
            lists.len(),
            lists[0].limit,
            lists[0].sort.as_ref().unwrap().field.as_str()
        ),
        (1, 2, "n")
    );
    let list = json!({"attribute_filter": filter, "feature_search": {"searches": [search(json!({}))]},
        "attribute_filter2": {"field": "n", "operator": "gt", "value": "{{INPUT.n}}"}});
    let out = answer(list, json!({"query": "1,0", "n": 1})).await;
    assert_eq!(ids(&out), ["c"]);
    assert_eq!(out.statistics.stages["attribute_filter"].output_count, 4);
}
