//! What the owner's display configuration does to a page.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Reply, books, display, fake, get};
use loupe_hosted::{Media, MediaKind, Picture};
use serde_json::{Value, json};

#[tokio::test]
async fn files_open_at_the_place_that_was_found() {
    let mut host = books();
    host.hits[1].media = Some(Media {
        kind: MediaKind::Video,
        url: "/v1/blobs/film.mp4?expires=9".into(),
        start: Some(65.5),
        ..Media::default()
    });
    host.hits[1].thumbnail = Some(Picture {
        url: "/small.webp".into(),
        ..Picture::default()
    });
    host.hits[2].media = Some(Media {
        url: "javascript:alert(1)".into(),
        ..Media::default()
    });
    let host = Arc::new(host);
    let film = get(&host, "/r/books/item/doc_1?query=whale").await;
    let address = "/v1/blobs/film.mp4?expires=9#t=65.5";
    assert_eq!(film.attributes("video", "src"), [address]);
    assert_eq!(film.attributes("video", "poster"), ["/small.webp"]);
    assert_eq!(film.attributes(".about-item a", "href"), [address]);
    assert_eq!(film.texts(".about-item a"), ["Open the video at 1:05"]);
    assert_eq!(
        film.attributes("a[download]", "href"),
        ["/v1/blobs/film.mp4?expires=9"]
    );
    // Others get the item without what was searched for.
    assert_eq!(
        film.attributes("[data-copy]", "data-copy"),
        ["/r/books/item/doc_1"]
    );
    assert_eq!(film.texts("mark"), ["whale"]);
    let hostile = get(&host, "/r/books/item/doc_2").await;
    assert!(hostile.attributes("video", "src").is_empty() && !hostile.body.contains("javascript:"));

    // A file elsewhere, in a field that the owner named for it.
    let mut mapped = display();
    mapped["exposed_fields"] = json!(["title", "scan", "page_number"]);
    mapped["field_mappings"] = json!({"pdf": "scan", "video": "secret"});
    let fields = json!({"title": "Log", "scan": "https://a.example/x.pdf", "page_number": 3, "secret": "https://a.example/x.mp4"});
    let paper = get(&Arc::new(fake(mapped, &[fields])), "/r/books/item/doc_0").await;
    assert_eq!(
        paper.attributes(".about-item .button", "href"),
        ["https://a.example/x.pdf#page=3"]
    );
    assert!(paper.attributes("video", "src").is_empty());
}

#[tokio::test]
async fn a_page_without_a_picture_of_its_own_gets_one() {
    let drawn = get(&Arc::new(books()), "/r/books").await;
    let image = drawn.attributes("meta[property='og:image']", "content");
    assert!(
        image[0].starts_with("https://search.example.com/r/books/preview.png?v="),
        "{image:?}"
    );
    assert_eq!(
        drawn.attributes("meta[property='og:image:width']", "content"),
        ["1200"]
    );
    assert_eq!(
        drawn.attributes("meta[name='twitter:image']", "content"),
        image
    );
    assert_eq!(
        drawn.attributes("meta[name='twitter:card']", "content"),
        ["summary_large_image"]
    );
    let mut own = display();
    own["seo"] = json!({"og_image_url": "/own.png"});
    let own = get(&Arc::new(fake(own, &[])), "/r/books").await;
    assert_eq!(
        own.attributes("meta[property='og:image']", "content"),
        ["https://search.example.com/own.png"]
    );
    assert!(!own.body.contains("og:image:width"));
    let mut closed = books();
    closed.page.is_protected = true;
    let closed = get(&Arc::new(closed), "/r/books").await;
    assert!(!closed.body.contains("preview.png"));
}

#[tokio::test]
async fn a_configured_field_says_that_it_is_empty() {
    let host = Arc::new(books());
    for path in ["/r/books", "/r/books/item/doc_2"] {
        let said = get(&host, path).await.texts(".none");
        assert_eq!(said, ["Not given"], "{path}");
    }
}

/// The page of these books with this display configuration laid over the usual one.
async fn shown(over: Value) -> Reply {
    let mut whole = display();
    for (name, value) in over.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let book = json!({"title": "Walden", "description": "A pond.", "tags": ["pond"], "year": 1854});
    get(&Arc::new(fake(whole, &[book])), "/r/books").await
}

fn has_class(reply: &Reply, wanted: &str) -> bool {
    let class = reply.attributes("body", "class").concat();
    class.split(' ').any(|one| one == wanted)
}

#[tokio::test]
async fn a_list_or_a_masonry_is_a_choice_wherever_it_is_made() {
    for (layout, components, class) in [
        (json!({}), json!({}), "m-grid"),
        (
            json!({"columns": 2}),
            json!({"result_layout": "list"}),
            "m-list",
        ),
        (json!({"mode": "masonry"}), json!({}), "m-masonry"),
        (
            json!({"mode": "list"}),
            json!({"result_layout": "masonry"}),
            "m-list",
        ),
    ] {
        let page = shown(json!({"layout": layout, "components": components})).await;
        assert!(has_class(&page, class), "{layout} {components}");
    }
    // The template's own stands where neither is sent.
    let reading = shown(json!({"template_type": "document-search"})).await;
    assert!(has_class(&reading, "m-list"));
    let chosen = json!({"template_type": "document-search", "layout": {"columns": 3}});
    assert!(has_class(&shown(chosen).await, "m-grid"));
}

#[tokio::test]
async fn what_is_chosen_stands_and_the_rest_is_the_templates() {
    let card = |card: Value| json!({ "result_card": card });
    let cases = [
        // Nothing is chosen by what is said beside it.
        ("portrait-gallery", json!({}), card(json!({})), ("4", "4/5")),
        (
            "portrait-gallery",
            json!({"gap": "8px"}),
            card(json!({"show_score": true})),
            ("4", "4/5"),
        ),
        (
            "portrait-gallery",
            json!({"mode": "masonry"}),
            json!({}),
            ("4", "4/5"),
        ),
        // What is as the interface has it by itself is a choice where it is sent.
        (
            "portrait-gallery",
            json!({"columns": 3}),
            card(json!({"thumbnail_aspect_ratio": "16/9"})),
            ("3", "16/9"),
        ),
        (
            "document-search",
            json!({"gap": "8px"}),
            json!({}),
            ("1", "3/4"),
        ),
        (
            "document-search",
            json!({"mode": "grid"}),
            json!({}),
            ("3", "3/4"),
        ),
        (
            "document-search",
            json!({"mode": "grid", "columns": 2}),
            json!({}),
            ("2", "3/4"),
        ),
    ];
    for (template, layout, components, (columns, ratio)) in cases {
        let page =
            shown(json!({"template_type": template, "layout": layout, "components": components}))
                .await;
        let css = page.texts("style").concat();
        for token in [
            format!("--columns:{columns};"),
            format!("--thumb-ratio:{ratio};"),
        ] {
            assert!(
                css.contains(&token),
                "{template} {layout} {components}: {token} in {css}"
            );
        }
    }
    let grid = json!({"template_type": "document-search", "components": {"result_layout": "grid"}});
    assert!(has_class(&shown(grid).await, "m-grid"));
    let list = json!({"template_type": "document-search", "layout": {"gap": "8px"}});
    assert!(has_class(&shown(list).await, "m-list"));
}

#[tokio::test]
async fn the_style_of_a_card_is_one_of_edges_or_of_a_template() {
    for (style, class) in [
        ("portrait-discovery", "t-portrait"),
        ("media-search", "t-media"),
        ("document-search", "t-document"),
        ("default", "t-custom"),
        ("glass", "c-glass"),
    ] {
        let card = json!({"components": {"result_card": {"card_style": style}}});
        assert!(has_class(&shown(card).await, class), "{style}");
    }
    // The template that is named stands before it.
    let named = json!({"template_type": "media-search", "components": {"result_card": {"card_style": "document-search"}}});
    assert!(has_class(&shown(named).await, "t-media"));
    // What a theme says nothing of is as the interface says.
    let themed = shown(json!({"theme": {"primary_color": "#b4530a"}})).await;
    assert!(has_class(&themed, "c-elevated"));
    assert!(themed.texts("style").concat().contains("--radius:12px;"));
    let flat = shown(json!({"theme": {"card_style": "flat", "border_radius": "3px"}})).await;
    assert!(has_class(&flat, "c-flat"));
    assert!(flat.texts("style").concat().contains("--radius:3px;"));
    assert!(has_class(&shown(json!({})).await, "c-bordered"));
}

#[tokio::test]
async fn inputs_beside_the_words_are_chosen_and_required() {
    let text = json!({"type": "string"});
    let input = |name: &str, input_type: &str, required: bool| {
        json!({"field_name": name, "field_schema": text, "input_type": input_type, "label": name,
            "required": required, "suggestions": ["a few", "many"]})
    };
    let inputs = json!([
        {"field_name": "query", "field_schema": {"type": "text"}, "label": "Search", "suggestions": ["ponds"]},
        input("pages", "select", true),
        input("shelf", "select", false),
        {"field_name": "year", "field_schema": {"type": "integer"}, "input_type": "number", "label": "Year"},
        {"field_name": "until", "field_schema": {"type": "integer"}, "input_type": "number", "label": "Until", "required": false},
    ]);
    let page = shown(json!({ "inputs": inputs })).await;
    assert_eq!(
        page.texts("select[name=pages] option"),
        ["Any", "a few", "many"]
    );
    assert_eq!(
        page.texts(".suggestions a"),
        ["ponds"],
        "a list shows what there is by itself"
    );
    assert_eq!(
        page.attributes("select[required]", "name"),
        ["pages"],
        "one may be left open"
    );
    assert_eq!(
        page.attributes("input[required]", "name"),
        ["query", "year"]
    );
}

#[tokio::test]
async fn days_and_moments_are_asked_for_as_retrievers_take_them() {
    let schema = json!({"day": {"type": "date"}, "since": {"type": "datetime"}, "until": {"type": "datetime"}, "lent": {"type": "boolean"}});
    let input = |name: &str, input_type: &str| {
        json!({"field_name": name, "field_schema": schema[name], "input_type": input_type, "label": name,
            "required": false, "helper_text": format!("The {name}.")})
    };
    let mut whole = display();
    whole["inputs"] = json!([
        input("day", "date"),
        input("since", "date"),
        input("until", "datetime"),
        input("lent", "boolean"),
    ]);
    whole["inputs"][2]["helper_text"].take();
    let mut host = fake(whole, &[json!({"title": "Walden"})]);
    host.page.input_schema = serde_json::from_value(schema.clone()).unwrap();
    let host = Arc::new(host);
    let asked = "day=1854-08-09&since=1854-08-09&until=1904-01-01T10:30&lent=true";
    let page = get(&host, &format!("/r/books?{asked}")).await;
    assert_eq!(page.status, 200);
    let inputs = host.asked.lock().unwrap().pop().unwrap().inputs;
    let expected = json!({"day": "1854-08-09", "since": "1854-08-09T00:00:00Z", "until": "1904-01-01T10:30:00Z", "lent": true});
    assert_eq!(Value::Object(inputs), expected);
    assert_eq!(
        page.attributes("input[type=datetime-local]", "value"),
        ["1904-01-01T10:30"]
    );
    assert_eq!(page.texts("#in-lent-note"), ["The lent."]);
    // Browsers tell no zone.
    assert_eq!(page.texts("#in-until-note"), ["The time is that of UTC."]);
    assert_eq!(
        page.attributes("input[type=checkbox]", "aria-describedby"),
        ["in-lent-note"]
    );
    // What is no day is said beside its input, and nothing is asked.
    let wrong = get(&host, "/r/books?since=soon").await;
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.texts("#in-since-note"), ["Enter a date."]);
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_like_a_result_is_found_by_its_title_where_documents_are_no_input() {
    let mut whole = display();
    whole["components"]["result_card"] = json!({"show_find_similar": true});
    let similar = |page: &Reply| page.attributes("a[aria-label='Find similar to Walden']", "href");
    let book = || json!({"title": "Walden"});
    let page = get(&Arc::new(fake(whole.clone(), &[book()])), "/r/books").await;
    assert_eq!(similar(&page), ["/r/books?query=Walden"]);
    let mut host = fake(whole.clone(), &[book()]);
    let like = json!({"field_name": "like", "field_schema": {"type": "document_reference"}, "label": "Like", "required": false});
    host.page
        .display_config
        .inputs
        .push(serde_json::from_value(like).unwrap());
    let page = get(&Arc::new(host), "/r/books").await;
    assert_eq!(similar(&page), ["/r/books?like=doc_0"]);
    // A card that leads there does so by the same way.
    whole["components"]["result_card"] = json!({"card_click_action": "findSimilar"});
    let page = get(&Arc::new(fake(whole, &[book()])), "/r/books").await;
    assert_eq!(
        page.attributes("a.cover", "href"),
        ["/r/books?query=Walden"]
    );
}

#[tokio::test]
async fn what_a_search_lacks_is_said_beside_its_input() {
    let schema = json!({"query": {"type": "text", "required": true}, "year": {"type": "integer", "required": true},
        "shelf": {"type": "string", "required": true, "default": "all"}, "note": {"type": "string"}});
    let mut whole = display();
    let input = |(name, schema): (&String, &Value)| json!({"field_name": name, "field_schema": schema, "label": name});
    let inputs: Vec<Value> = schema.as_object().unwrap().iter().map(input).collect();
    whole["inputs"] = json!(inputs);
    let mut host = fake(whole, &[]);
    host.page.input_schema = serde_json::from_value(schema).unwrap();
    host.page.allows_empty_query = false;
    let host = Arc::new(host);
    let waiting = get(&host, "/r/books").await;
    assert!(waiting.status == 200 && waiting.texts(".note.bad").is_empty());
    // A form with nothing in it asks nothing.
    for address in ["/r/books?query=", "/r/books?query=+&year=", "/r/books?q="] {
        let same = get(&host, address).await;
        assert_eq!(same.status, 200, "{address}");
        assert!(same.texts(".note.bad").is_empty(), "{address}");
    }
    let lacking = get(&host, "/r/books?query=sea").await;
    assert_eq!(lacking.status, 400);
    assert_eq!(lacking.texts("#in-year-note"), ["Fill this in."]);
    assert_eq!(lacking.texts(".note.bad").len(), 1);
    assert!(host.asked.lock().unwrap().is_empty());
    let whole = get(&host, "/r/books?query=sea&year=1904").await;
    assert_eq!(whole.status, 200);
}

#[tokio::test]
async fn what_a_form_leaves_open_is_asked_for_by_the_server_too() {
    let boxes = json!({"type": "array", "items": {"type": "string", "enum": ["film", "photo"]}});
    let mut whole = display();
    whole["inputs"] = json!([
        {"field_name": "query", "field_schema": {"type": "text"}, "label": "Search"},
        {"field_name": "kinds", "field_schema": boxes, "input_type": "multiselect", "label": "Kinds", "order": 1},
        {"field_name": "marks", "field_schema": boxes, "input_type": "multiselect", "label": "Marks", "required": false, "order": 2},
        {"field_name": "shelf", "field_schema": {"type": "string"}, "input_type": "select", "suggestions": ["a"], "label": "Shelf", "order": 3},
    ]);
    let host = Arc::new(fake(whole, &[json!({"title": "Walden"})]));
    let landing = get(&host, "/r/books").await;
    assert_eq!(landing.status, 200);
    assert_eq!(
        landing.attributes("fieldset[data-required]", "aria-describedby"),
        ["in-kinds-note"]
    );
    assert_eq!(landing.texts("#in-kinds-note"), ["Choose at least one."]);
    assert_eq!(
        landing.attributes("form[data-search] input[type=hidden]", "name"),
        ["kinds"]
    );
    host.asked.lock().unwrap().clear();
    // As browsers send the form that check nothing.
    let sent = get(&host, "/r/books?query=&kinds=&shelf=").await;
    assert_eq!(sent.status, 400);
    assert_eq!(
        sent.texts(".note.bad"),
        ["Fill this in.", "Choose at least one.", "Fill this in."]
    );
    let wrong = "form[data-search] [aria-invalid=true]";
    assert_eq!(sent.attributes(wrong, "name"), ["query", "shelf"]);
    assert!(host.asked.lock().unwrap().is_empty());
    let filled = get(
        &host,
        "/r/books?query=pond&kinds=&kinds=film&kinds=photo&shelf=a",
    )
    .await;
    assert_eq!(filled.status, 200);
    let inputs = host.asked.lock().unwrap().pop().unwrap().inputs;
    let expected = json!({"query": "pond", "kinds": ["film", "photo"], "shelf": "a"});
    assert_eq!(Value::Object(inputs), expected);
    // Links ask for what they name and leave the rest to the retriever.
    for link in ["/r/books?query=pond", "/r/books?f.tags=sea"] {
        assert_eq!(get(&host, link).await.status, 200, "{link}");
    }
}

#[tokio::test]
async fn more_boxes_than_are_taken_are_refused_and_none_is_dropped() {
    let names: Vec<String> = (0..60).map(|number| format!("shelf-{number}")).collect();
    let shelves = json!({"type": "array", "items": {"type": "string", "enum": names}});
    let mut whole = display();
    whole["inputs"] = json!([{"field_name": "shelves", "field_schema": shelves, "input_type": "multiselect", "label": "Shelves"}]);
    let host = Arc::new(fake(whole, &[json!({"title": "Walden"})]));
    let chosen = |count: usize| {
        let pairs: Vec<String> = names[..count]
            .iter()
            .map(|name| format!("shelves={name}"))
            .collect();
        format!("/r/books?{}", pairs.join("&"))
    };
    let refused = get(&host, &chosen(51)).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.texts(".note.bad"), ["Choose at most 50."]);
    assert!(host.asked.lock().unwrap().is_empty());
    assert_eq!(get(&host, &chosen(50)).await.status, 200);
    let inputs = host.asked.lock().unwrap().pop().unwrap().inputs;
    assert_eq!(inputs["shelves"], json!(names[..50]));
}

#[tokio::test]
async fn boxes_are_all_there_however_many_they_are() {
    let names: Vec<String> = (0..90).map(|number| format!("shelf {number}")).collect();
    let shelves = json!({"type": "array", "items": {"type": "string", "enum": names}});
    let inputs = json!([{"field_name": "shelves", "field_schema": shelves, "input_type": "multiselect", "label": "Shelves"}]);
    let page = shown(json!({ "inputs": inputs })).await;
    assert_eq!(
        page.attributes(".boxes.many input[name=shelves]", "value"),
        names
    );
}

#[tokio::test]
async fn dates_follow_a_pattern_of_the_owners() {
    for (format, expected) in [
        ("DD.MM.YYYY", "09.08.1854"),
        ("%B %Y", "August 1854"),
        ("iso", "1854-08-09"),
        ("<b>", "9 August 1854"),
    ] {
        let mut whole = display();
        whole["exposed_fields"] = json!(["title", "published"]);
        whole["field_config"] =
            json!({"published": {"format": "date", "format_options": {"date_format": format}}});
        let book = json!({"title": "Walden", "published": "1854-08-09"});
        let host = Arc::new(fake(whole, &[book]));
        assert_eq!(get(&host, "/r/books").await.texts("time"), [expected]);
    }
}

#[tokio::test]
async fn a_page_tells_how_it_works_where_its_owner_lets_it() {
    let config = json!({
        "stages": [{"stage_name": "by meaning", "stage_id": "feature_search"}, {"stage_name": "rerank", "stage_id": "rerank"}],
        "feature_extractors": [{"extractor": "text_extractor", "version": "v1", "output": "all_minilm"}],
    });
    let told = shown(json!({ "retriever_config": config })).await;
    assert_eq!(told.texts(".foot button"), ["How it works"]);
    let opened = told.attributes(".foot button", "popovertarget");
    assert_eq!(told.attributes(".sheet", "id"), opened);
    assert_eq!(told.texts(".sheet h2"), ["How it works"]);
    assert_eq!(
        told.texts(".sheet ol li"),
        ["by meaning feature_search", "rerank"]
    );
    assert_eq!(told.texts(".sheet ul li"), ["text_extractor v1 all_minilm"]);
    let silent = shown(json!({})).await;
    assert!(silent.texts(".foot button").is_empty());
}
