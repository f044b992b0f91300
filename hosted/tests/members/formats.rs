//! Members of `field_config`.

use serde_json::{Value, json};

use super::{Case, display, hold, laid};

const SITE: &str = "https://www.walden.example/read";

/// Books with a field `it` that is drawn so.
fn shelf(config: &Value) -> Value {
    let over = json!({
        "exposed_fields": ["title", "cover", "it"],
        // Else the first picture among the fields would stand above them.
        "components": {"result_card": {"thumbnail_field": "cover"}},
        "field_config": {"it": config},
    });
    laid(display(), &over)
}

/// One case on the page of a book with this value of `it`.
async fn holds(usual: Value, value: Value, case: Case) {
    let book = json!({"title": "Walden", "cover": "/cover.png", "it": value});
    hold(shelf(&usual), book, "/r/books/item/doc_0", [case]).await;
}

#[tokio::test]
async fn a_value_is_drawn_with_its_options() {
    let (cell, link, image) = (".particulars dd", ".particulars a", ".particulars img");
    let scan = || json!("/scan.png");
    for (format, value, options, selector, attribute, expected, usual) in [
        (
            "text",
            json!("nine"),
            json!({"label": "Where"}),
            ".particulars dt",
            "",
            "Where",
            "It",
        ),
        (
            "text",
            json!(""),
            json!({"show_empty": false}),
            ".particulars .none",
            "",
            "",
            "Not given",
        ),
        (
            "text",
            json!("Reading in the woods"),
            json!({"truncate_chars": 6}),
            cell,
            "",
            "Readin…",
            "Reading in the woods",
        ),
        (
            "text",
            json!("nine"),
            json!({"prefix": "No. "}),
            cell,
            "",
            "No. nine",
            "nine",
        ),
        (
            "text",
            json!("nine"),
            json!({"suffix": " miles"}),
            cell,
            "",
            "nine miles",
            "nine",
        ),
        (
            "number",
            json!(12000),
            json!({"suffix": " km"}),
            cell,
            "",
            "12,000 km",
            "12,000",
        ),
        (
            "number",
            json!(5),
            json!({"prefix": "€ "}),
            cell,
            "",
            "€ 5",
            "5",
        ),
        (
            "number",
            json!(1.23456),
            json!({"decimals": 2}),
            cell,
            "",
            "1.23",
            "1.235",
        ),
        (
            "array",
            json!(["a", "b", "c"]),
            json!({"max_items": 2}),
            ".particulars li",
            "",
            "a | b | 1 more",
            "a | b | c",
        ),
        (
            "array",
            json!(["a", "b", "c"]),
            json!({"separator": " / "}),
            cell,
            "",
            "a / b / c",
            "abc",
        ),
        (
            "boolean",
            json!(true),
            json!({"true_label": "On loan"}),
            cell,
            "",
            "On loan",
            "Yes",
        ),
        (
            "boolean",
            json!(false),
            json!({"false_label": "At home"}),
            cell,
            "",
            "At home",
            "No",
        ),
        (
            "url",
            json!(SITE),
            json!({"show_domain": true}),
            link,
            "",
            "walden.example",
            SITE,
        ),
        (
            "url",
            json!(SITE),
            json!({"open_in_new_tab": false}),
            link,
            "target",
            "",
            "_blank",
        ),
        (
            "image",
            scan(),
            json!({"lazy_load": false}),
            image,
            "loading",
            "eager",
            "lazy",
        ),
        (
            "image",
            scan(),
            json!({"width": 120}),
            image,
            "width",
            "120",
            "240",
        ),
        (
            "image",
            scan(),
            json!({"width": 120}),
            image,
            "height",
            "90",
            "180",
        ),
        (
            "image",
            scan(),
            json!({"height": 100}),
            image,
            "width",
            "133",
            "240",
        ),
        (
            "image",
            scan(),
            json!({"aspect_ratio": "1/2"}),
            image,
            "height",
            "480",
            "180",
        ),
        (
            "image",
            scan(),
            json!({"object_fit": "contain"}),
            image,
            "class",
            "inline-image fit-contain",
            "inline-image fit-cover",
        ),
    ] {
        let plain = json!({"format": format, "format_options": {}});
        let over = json!({"field_config": {"it": {"format_options": options}}});
        holds(plain, value, (over, selector, attribute, expected, usual)).await;
    }
}

#[tokio::test]
async fn a_value_is_drawn_by_its_format() {
    let binding = || json!({"cloth": "green", "pages": 3});
    for (format, value, selector, attribute, expected, usual) in [
        (
            "url",
            json!("/read/walden"),
            ".particulars a",
            "href",
            "/read/walden",
            "",
        ),
        (
            "image",
            json!("/scan.png"),
            ".particulars img",
            "src",
            "/scan.png",
            "",
        ),
        (
            "object",
            binding(),
            ".particulars .members dt",
            "",
            "cloth | pages",
            "",
        ),
        (
            "object",
            binding(),
            ".particulars .members dd",
            "",
            "green | 3",
            "",
        ),
        (
            "array",
            json!(["a", "b"]),
            ".particulars .tags li",
            "",
            "a | b",
            "",
        ),
        (
            "number",
            json!("12000"),
            ".particulars dd",
            "",
            "12,000",
            "12000",
        ),
        ("boolean", json!("yes"), ".particulars dd", "", "Yes", "yes"),
        (
            "date",
            json!("1854-08-09"),
            ".particulars time",
            "datetime",
            "1854-08-09T00:00:00Z",
            "",
        ),
    ] {
        let over = json!({"field_config": {"it": {"format": format}}});
        let case = (over, selector, attribute, expected, usual);
        holds(json!({"format": "text"}), value, case).await;
    }
}
