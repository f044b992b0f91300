//! What the form of a page holds by itself, and how much of a search is taken.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::http::StatusCode;
use common::{Fake, Reply, books, display, fake, get};
use serde_json::{Value, json};

/// A page of these inputs, which the retriever takes as `schema` has them.
fn shelf(inputs: &Value, schema: &Value) -> Fake {
    let mut whole = display();
    let drawn = inputs.as_object().unwrap().iter().enumerate();
    let drawn = drawn.map(|(order, (name, field))| json!({"field_name": name, "field_schema": field, "label": name, "order": order}));
    whole["inputs"] = drawn.collect();
    let mut host = fake(whole, &[json!({"title": "Moby-Dick"})]);
    host.page.input_schema = serde_json::from_value(schema.clone()).unwrap();
    host
}

fn defaults() -> Value {
    json!({
        "query": {"type": "text", "default": "whale"},
        "kind": {"type": "string", "enum": ["film", "book"], "default": "book"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["sea", "pond"]}, "default": ["sea"]},
        "level": {"type": "integer", "default": 3, "required": true},
        "day": {"type": "datetime", "default": "2026-03-01T00:00:00Z"},
        "subtitles": {"type": "boolean", "default": true},
    })
}

fn asked(host: &Fake) -> Value {
    Value::Object(host.asked.lock().unwrap().pop().unwrap().inputs)
}

fn form(page: &Reply) -> [Vec<String>; 5] {
    [
        page.attributes("input[type=search]", "value"),
        page.attributes("option[selected]", "value"),
        page.attributes("input[type=checkbox][checked]", "value"),
        page.attributes("input[type=number]", "value"),
        page.attributes("input[type=date]", "value"),
    ]
}

#[tokio::test]
async fn defaults_stand_in_the_form_and_are_no_search() {
    let host = Arc::new(shelf(&defaults(), &defaults()));
    let landing = get(&host, "/r/books").await;
    let usual: [Vec<String>; 5] = [
        vec!["whale".into()],
        vec!["book".into()],
        vec!["sea".into(), "true".into()],
        vec!["3".into()],
        vec!["2026-03-01".into()],
    ];
    assert_eq!(form(&landing), usual, "{}", landing.body);
    assert_eq!(landing.robots(), "index, follow");
    // The retriever has them by itself.
    assert_eq!(asked(&host), json!({}));
    // What is given stands before them, and the others stay.
    let path = "/r/books?query=pond&kind=film&tags=pond&level=4";
    let found = get(&host, path).await;
    assert_eq!(found.status, StatusCode::OK);
    let [words, kind, ticked, level, day] = form(&found);
    assert_eq!([words, kind, level], [["pond"], ["film"], ["4"]]);
    assert_eq!(
        (ticked, day),
        (vec!["pond".into(), "true".into()], usual[4].clone())
    );
    assert_eq!(
        asked(&host),
        json!({"query": "pond", "kind": "film", "tags": ["pond"], "level": 4})
    );
    // A form sends what was left open as nothing: what has a default lacks nothing.
    let open = get(&host, "/r/books?query=pond&kind=&level=&day=").await;
    assert_eq!(open.status, StatusCode::OK);
    assert_eq!(asked(&host), json!({"query": "pond"}));
    // The script fills the form in as an address has it.
    let of = |selector: &str, name: &str| open.attributes(selector, name);
    assert_eq!(of("input[type=search]", "data-default"), ["whale"]);
    assert_eq!(of("select", "data-default"), ["book"]);
    assert_eq!(of("input[data-ticked]", "value"), ["sea", "true"]);
    assert_eq!(of("input[data-else]", "data-else"), ["false"]);
}

#[tokio::test]
async fn a_box_that_is_ticked_by_itself_is_unticked() {
    let host = Arc::new(shelf(&defaults(), &defaults()));
    // Without script a form tells that the box was there.
    let sent = get(&host, "/r/books").await;
    let names = sent.attributes("label.tick input[type=hidden]", "name");
    assert_eq!(names, ["subtitles"]);
    for (query, subtitles) in [
        ("subtitles=", json!(false)),
        ("subtitles=false", json!(false)),
        ("subtitles=&subtitles=true", json!(true)),
    ] {
        let found = get(&host, &format!("/r/books?query=pond&{query}")).await;
        let expected = json!({"query": "pond", "subtitles": subtitles});
        assert_eq!(asked(&host), expected, "{query}");
        assert_eq!(
            found.attributes("[data-share]", "data-share"),
            [format!("/r/books?query=pond&subtitles={subtitles}")]
        );
        let ticked = form(&found)[2].contains(&"true".to_owned());
        assert_eq!(json!(ticked), subtitles, "{query}");
    }
}

#[tokio::test]
async fn what_the_page_alone_has_by_itself_is_searched_with() {
    let of_page = json!({"kind": {"type": "string", "enum": ["film", "book"], "default": "book"}});
    let of_retriever =
        json!({"kind": {"type": "string", "enum": ["film", "book"], "required": true}});
    let host = Arc::new(shelf(&of_page, &of_retriever));
    let landing = get(&host, "/r/books").await;
    assert_eq!(landing.robots(), "index, follow");
    assert_eq!(asked(&host), json!({"kind": "book"}));
    get(&host, "/r/books?kind=film").await;
    assert_eq!(asked(&host), json!({"kind": "film"}));
}

#[tokio::test]
async fn more_filters_than_are_searched_with_are_refused() {
    let host = Arc::new(books());
    let of = |field: &str, count: usize| {
        let values = (0..count).map(|number| format!("&f.{field}=v{number}"));
        format!("/r/books?query=sea{}", values.collect::<String>())
    };
    assert_eq!(get(&host, &of("tags", 50)).await.status, StatusCode::OK);
    host.asked.lock().unwrap().clear();
    for path in [of("tags", 51), of("tags", 300), of("other", 300)] {
        let refused = get(&host, &path).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.texts(".state h2"), ["Too many choices"]);
        assert_eq!(
            refused.attributes(".state a", "href"),
            ["/r/books?query=sea"]
        );
    }
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn new_results_are_told_to_those_who_hear_the_page() {
    let mut silent = books();
    silent.page.display_config.components =
        serde_json::from_value(json!({"show_results_header": false})).unwrap();
    let found = get(&Arc::new(silent), "/r/books?query=sea").await;
    assert_eq!(found.attributes("[role=status]", "class"), ["sr"]);
    assert!(found.texts("[role=status]").concat().contains("3 results"));
    let mut partial = books();
    partial.is_partial = true;
    let found = get(&Arc::new(partial), "/r/books?query=sea").await;
    let told = found.texts("[role=status]");
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("there may be more"), "{told:?}");
}

#[tokio::test]
async fn a_page_without_a_form_has_filters_that_the_script_follows() {
    let mut host = books();
    host.page.display_config.components =
        serde_json::from_value(json!({"show_search": false, "show_filters": true})).unwrap();
    let page = get(&Arc::new(host), "/r/books").await;
    assert_eq!(page.attributes("form[data-search]", "action"), ["/r/books"]);
    assert_eq!(page.attributes("form[data-search]", "hidden").len(), 1);
    assert!(page.texts("input, button, search").is_empty());
    assert_eq!(
        page.attributes(".facets a", "href"),
        ["/r/books?f.tags=sea"]
    );
}
