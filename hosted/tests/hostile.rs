//! Whatever the owner or a document says, it stays text.

#![allow(clippy::unwrap_used)]
// Of the one literal that has every member.
#![recursion_limit = "256"]

mod common;

use std::sync::Arc;

use common::{fake, get};
use loupe_hosted::{Hit, Media};
use scraper::Html;
use serde_json::{Value, json};

const PAYLOADS: [&str; 40] = [
    "<script>pwn()</script>",
    "</script><script>pwn()</script>",
    "</title><script>pwn()</script>",
    "</style><script>pwn()</script>",
    "<img src=x onerror=pwn()>",
    "\"><img src=x onerror=pwn()>",
    "'><svg onload=pwn()>",
    "<svg/onload=pwn()>",
    "\" onmouseover=\"pwn()\" x=\"",
    "' onfocus='pwn()' autofocus='",
    "javascript:pwn()",
    "JaVaScRiPt:pwn()",
    "java\tscript:pwn()",
    " javascript:pwn()",
    "data:text/html,<script>pwn()</script>",
    "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9cHduKCk+",
    "vbscript:pwn()",
    "//pwn.example/x.js",
    "<iframe srcdoc='<script>pwn()</script>'></iframe>",
    "<a href=\"javascript:pwn()\">x</a> [x](javascript:pwn())",
    "<!--><script>pwn()</script>-->",
    "red;}*{background:url(//pwn.example)}",
    "<math><mtext></p><script>pwn()</script>",
    "<base href=//pwn.example/><meta http-equiv=refresh content=0;url=javascript:pwn()>",
    "</textarea><script>pwn()</script>",
    "<svg><script>pwn()</script></svg>",
    "<svg><animate onbegin=pwn() attributeName=x>",
    "<body onload=pwn()>",
    "<details open ontoggle=pwn()>",
    "<input autofocus onfocus=pwn()>",
    "<video><source onerror=pwn()></video>",
    "<object data=javascript:pwn()></object>",
    "<embed src=javascript:pwn()>",
    "![x](x\"onerror=\"pwn())",
    "<javascript:pwn()>",
    "\u{1}javascript:pwn()",
    "<p title=\"</noscript><svg onload=pwn()>",
    "<math><mtext><img src=x onerror=pwn()>",
    "{{constructor.constructor('pwn()')()}}",
    "[x]: javascript:pwn()\n\n[x]",
];

/// Every field of the display configuration and of a document set to the payload.
fn poisoned(p: &str) -> (Value, Value) {
    let display = json!({
        "title": p, "description": p, "logo_url": p, "icon_base64": p,
        "seo": {"meta_title": p, "meta_description": p, "keywords": [p], "og_image_url": p, "og_image_alt": p, "og_type": p,
            "twitter_card": p, "twitter_site": p, "twitter_creator": p, "robots": p, "canonical_url": p, "site_name": p,
            "author": p, "locale": p, "logo_url": p, "favicon_url": p,
            "structured_data": {"type": p, "additional_properties": {"name": p, p: p}}},
        "markdowns": [{"title": p, "content": p}],
        "theme": {"primary_color": p, "secondary_color": p, "font_family": p, "background_color": p, "text_color": p,
            "heading_font_family": p, "surface_color": p, "muted_color": p, "border_color": p, "border_radius": p,
            "card_style": p, "card_hover_effect": p},
        "inputs": [
            {"field_name": "query", "field_schema": {"type": "text"}, "label": p, "placeholder": p, "helper_text": p, "suggestions": [p], "required": false},
            {"field_name": p, "field_schema": {"type": "string", "enum": [p]}, "input_type": "select", "label": p, "required": false, "order": 1},
            {"field_name": "m", "field_schema": {"type": "array", "items": {"type": "string", "enum": [p]}}, "input_type": "multiselect", "label": p, "required": false, "order": 2},
            {"field_name": "o", "field_schema": {"type": "string"}, "input_type": p, "label": p, "required": false, "order": 3},
            {"field_name": "s", "field_schema": {"type": "string"}, "input_type": "select", "label": p, "placeholder": p, "suggestions": [p], "order": 4},
            {"field_name": "d", "field_schema": {"type": "document_reference"}, "label": p, "required": false, "order": 5},
            {"field_name": "f", "field_schema": {"type": "image"}, "input_type": "image", "label": p, "helper_text": p, "required": false, "order": 6}],
        "layout": {"mode": p, "columns": 3, "gap": p},
        "exposed_fields": ["title", "description", "url", "image", "tags", "meta", "date", "plain", "sold", "pages", p],
        "components": {"show_filters": true, "result_layout": p, "result_card": {"layout": p, "thumbnail_aspect_ratio": p, "thumbnail_fit": p,
            "show_score": true, "card_click_action": "openUrl", "field_order": [p, "url"], "card_style": p, "thumbnail_field": "image", "show_find_similar": true,
            "modal_fields": [p, "meta", "sold", "pages", "plain", "date", "tags", "image"]}},
        "field_config": {
            "url": {"format": "url", "format_options": {"label": p, "show_domain": true}},
            "image": {"format": "image", "format_options": {"label": p, "aspect_ratio": p, "object_fit": p}},
            "tags": {"format": "array", "format_options": {"label": p, "separator": p}},
            "meta": {"format": "object", "format_options": {"label": p}},
            "sold": {"format": "boolean", "format_options": {"label": p, "true_label": p, "false_label": p}},
            "pages": {"format": "number", "format_options": {"label": p, "prefix": p, "suffix": p}},
            "date": {"format": "date", "format_options": {"label": p, "date_format": p}},
            "plain": {"format": "text", "format_options": {"label": p, "prefix": p, "suffix": p}}},
        "custom_cta": {"label": p, "markdown_content": p},
        "external_links": [{"name": p, "url": p}],
        "template_type": p, "field_mappings": {p: "title", "badge": "plain", "url": "url"},
        "retriever_config": {"stages": [{"stage_name": p, "stage_id": p}, p], "feature_extractors": [{"extractor": p, "version": p, "output": p}, p]},
        "extensions": {p: p, "facets": ["tags", p], "markdowns": p, "embed": {"frame_ancestors": [p]}}
    });
    let document = json!({"title": p, "description": p, "url": p, "image": p, "tags": [p, p], "meta": {p: p}, "date": p, "plain": p, "sold": true, "pages": 7, p: p});
    (display, document)
}

/// A template of the owner's own, with the payload wherever there is room for one.
fn own_template(p: &str) -> Value {
    json!({
        "character": "media-search", "picture": {"field": "image", "place": "beside", "ratio": "2/3"},
        "card": {"badge": ["plain"], "eyebrow": ["tags", "url"], "heading": [p], "line": ["date", "meta"], "text": ["description"]},
        "item": {"eyebrow": ["url"], "line": ["tags", "plain"], "text": ["description", p], "facts": ["meta", "date", "image"]}
    })
}

fn dangers(html: &str) -> Vec<String> {
    let dom = Html::parse_document(html);
    let mut found = Vec::new();
    for node in dom.tree.nodes() {
        let Some(element) = node.value().as_element() else {
            continue;
        };
        let name = element.name();
        match name {
            "script" if element.attr("nonce").is_none() => {
                found.push("script without nonce".to_owned())
            }
            "script" if !matches!(element.attr("type"), Some("application/ld+json" | "module")) => {
                found.push("live script".to_owned())
            }
            "iframe" | "object" | "embed" | "base" | "math" => found.push(name.to_owned()),
            _ => {}
        }
        for (attribute, value) in element.attrs() {
            let value = value.trim().to_lowercase().replace(['\t', '\n'], "");
            if attribute.starts_with("on")
                || attribute == "style"
                || attribute == "srcdoc"
                || attribute == "http-equiv"
            {
                found.push(format!("{name} {attribute}"));
            }
            if matches!(attribute, "href" | "src" | "action")
                && (value.starts_with("javascript:")
                    || value.starts_with("vbscript:")
                    || value.starts_with("//")
                    || (value.starts_with("data:") && value != "data:,"))
            {
                found.push(format!("{name} {attribute}={value}"));
            }
        }
    }
    found
}

#[tokio::test]
async fn no_payload_in_any_field_gets_out_of_its_text() {
    for payload in PAYLOADS {
        let (plain, document) = poisoned(payload);
        let mut own = plain.clone();
        own["extensions"]["template"] = own_template(payload);
        for display in [plain, own] {
            every_view_is_safe(display, &document, payload).await;
        }
    }
}

async fn every_view_is_safe(display: Value, document: &Value, payload: &str) {
    let mut host = fake(display, &[document.clone(), document.clone()]);
    host.total = 100;
    host.facets[0].values[0].value = json!(payload);
    let part = |hit: &Hit, start| Hit {
        media: Some(Media {
            url: payload.to_owned(),
            start: Some(start),
            ..Media::default()
        }),
        ..hit.clone()
    };
    let parts = vec![part(&host.hits[0], 1.0), part(&host.hits[1], 2.0)];
    host.hits[0].media = Some(Media {
        url: "/film.mp4".to_owned(),
        parts,
        ..Media::default()
    });
    let host = Arc::new(host);
    let query: String = loupe_query(payload);
    for path in [
        "/r/books".to_owned(),
        format!("/r/books?query={query}&f.tags={query}&o={query}&page=2"),
        "/r/books/embed".to_owned(),
        format!("/r/books/embed?query={query}&f.tags={query}"),
        "/r/books/item/doc_0".to_owned(),
        format!("/r/books/item/doc_0?query={query}"),
    ] {
        let reply = get(&host, &path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(
            dangers(&reply.body),
            Vec::<String>::new(),
            "{payload} at {path}"
        );
        let style = reply.texts("style").concat();
        assert!(
            !style.contains("url(") && !style.contains('<') && style.matches('}').count() == 1,
            "{style}"
        );
        for data in reply.texts("script[type='application/ld+json']") {
            serde_json::from_str::<Value>(&data).expect("data stays JSON");
        }
    }
}

#[tokio::test]
async fn a_search_without_results_keeps_the_query_as_text() {
    for payload in PAYLOADS {
        let (display, _) = poisoned(payload);
        let host = Arc::new(fake(display, &[]));
        let query = loupe_query(payload);
        let reply = get(&host, &format!("/r/books?query={query}&f.tags={query}")).await;
        assert_eq!(dangers(&reply.body), Vec::<String>::new(), "{payload}");
        assert!(
            reply
                .texts(".state h2")
                .concat()
                .starts_with("Nothing found for")
        );
    }
}

#[test]
fn the_detector_sees_what_it_must() {
    assert_eq!(
        dangers("<script>pwn()</script><img src=x onerror=pwn()><a href='javascript:x'>").len(),
        3
    );
}

fn loupe_query(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
