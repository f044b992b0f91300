//! Members of `components.result_card`.

use serde_json::{Value, json};

use super::{Case, display, hold, laid, shown, token};

const COVER: &str = "https://pictures.example/walden.jpg";
const SPINE: &str = "https://pictures.example/spine.jpg";
const SITE: &str = "https://www.walden.example/read";
const ITEM: &str = "/r/books/item/doc_0";

fn book() -> Value {
    json!({
        "title": "Walden", "description": "A pond in the woods near Concord, where he lived.", "author": "Thoreau",
        "tags": ["pond"], "year": 1854, "cover": COVER, "spine": SPINE, "site": SITE,
    })
}

/// Books with a picture, and with a place elsewhere.
fn shelf() -> Value {
    let over = json!({
        "exposed_fields": ["title", "description", "author", "tags", "year", "cover", "spine", "site"],
        "field_mappings": {"thumbnail": "cover", "url": "site"},
    });
    laid(display(), &over)
}

fn card(properties: Value) -> Value {
    json!({"components": {"result_card": properties}})
}

#[tokio::test]
async fn a_card_is_drawn_as_the_owner_says() {
    let cases: [Case; 11] = [
        (
            card(json!({"layout": "horizontal"})),
            "article",
            "class",
            "result across",
            "result",
        ),
        (
            card(json!({"show_thumbnail": false})),
            "article img",
            "src",
            "",
            COVER,
        ),
        (
            card(json!({"thumbnail_field": "spine"})),
            "article img",
            "src",
            SPINE,
            COVER,
        ),
        // Room is kept for the picture before it is there.
        (
            card(json!({"thumbnail_aspect_ratio": "2/3"})),
            "article img",
            "width",
            "80",
            "640",
        ),
        (
            card(json!({"thumbnail_aspect_ratio": "2/3"})),
            "article img",
            "height",
            "120",
            "360",
        ),
        (
            card(json!({"show_score": true})),
            "article .score",
            "",
            "0.50",
            "",
        ),
        (
            card(json!({"title_field": "author"})),
            "article h3",
            "",
            "Thoreau",
            "Walden",
        ),
        (
            card(json!({"truncate_title": 3})),
            "article h3",
            "",
            "Wal…",
            "Walden",
        ),
        (
            card(json!({"truncate_description": 24})),
            "article .text",
            "",
            "A pond in the woods…",
            "A pond in the woods near Concord, where he lived.",
        ),
        (
            card(json!({"field_order": ["year", "tags"]})),
            "article .particulars dt",
            "",
            "Year | Tags",
            "Tags | Year",
        ),
        (
            card(json!({"card_fields": ["author"]})),
            "article .particulars dt",
            "",
            "Author",
            "Tags | Year",
        ),
    ];
    hold(shelf(), book(), "/r/books", cases).await;
}

#[tokio::test]
async fn pictures_have_the_proportions_and_the_fit_that_were_chosen() {
    let usual = shown(shelf(), book(), "/r/books").await;
    assert_eq!(token(&usual, "thumb-ratio"), "16/9");
    assert_eq!(token(&usual, "thumb-fit"), "cover");
    let chosen = card(json!({"thumbnail_aspect_ratio": "2/3", "thumbnail_fit": "contain"}));
    let chosen = shown(laid(shelf(), &chosen), book(), "/r/books").await;
    assert_eq!(token(&chosen, "thumb-ratio"), "2/3");
    assert_eq!(token(&chosen, "thumb-fit"), "contain");
}

#[tokio::test]
async fn a_card_leads_where_the_owner_says() {
    let action = |name: &str| card(json!({"card_click_action": name}));
    let cases: [Case; 5] = [
        (action("none"), "article a.cover", "href", "", ITEM),
        (action("none"), "article h3", "", "Walden", "Walden"),
        (action("none"), "article .enlarge", "type", "", "button"),
        (action("openUrl"), "article a.cover", "href", SITE, ITEM),
        (
            action("openUrl"),
            "article a.cover",
            "rel",
            "noopener noreferrer nofollow",
            "",
        ),
    ];
    hold(shelf(), book(), "/r/books", cases).await;
}

#[tokio::test]
async fn an_items_page_lists_the_fields_that_were_chosen_for_it() {
    let cases: [Case; 1] = [(
        card(json!({"modal_fields": ["year"]})),
        ".particulars.full dt",
        "",
        "Year",
        "Author | Tags | Year | Spine | Site",
    )];
    hold(shelf(), book(), ITEM, cases).await;
}
