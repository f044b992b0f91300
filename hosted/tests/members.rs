//! Members of a display configuration: what a page holds with each of them, and what without.

#![allow(clippy::unwrap_used)]

mod common;

#[path = "members/cards.rs"]
mod cards;
#[path = "members/formats.rs"]
mod formats;

use std::sync::Arc;

use common::{Reply, display, fake, get};
use serde_json::{Value, json};

/// A member; a selector and the attribute that is read there (the text where it is empty); what that is on a page with the
/// member, and on one without. Several are joined, and nothing is an empty text.
type Case = (
    Value,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Lays a configuration over another, member by member. A list takes the place of a list.
fn lay(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                lay(under.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

fn laid(mut under: Value, over: &Value) -> Value {
    lay(&mut under, over);
    under
}

/// The page at this path of one book.
async fn shown(display: Value, book: Value, path: &str) -> Reply {
    let told = display.to_string();
    let reply = get(&Arc::new(fake(display, &[book])), path).await;
    assert_eq!(reply.status, 200, "{told}");
    reply
}

fn at(reply: &Reply, selector: &str, attribute: &str) -> String {
    let found = match attribute {
        "" => reply.texts(selector),
        name => reply.attributes(selector, name),
    };
    found.join(" | ")
}

/// Each case on the page at this path of one book.
async fn hold<const N: usize>(display: Value, book: Value, path: &str, cases: [Case; N]) {
    let without = shown(display.clone(), book.clone(), path).await;
    for (over, selector, attribute, expected, usual) in cases {
        let with = shown(laid(display.clone(), &over), book.clone(), path).await;
        assert_eq!(at(&with, selector, attribute), expected, "with {over}");
        assert_eq!(at(&without, selector, attribute), usual, "without {over}");
    }
}

fn book() -> Value {
    json!({"title": "Walden", "description": "A pond.", "tags": ["pond"], "year": 1854})
}

/// The value of a token of the page's own style.
fn token(reply: &Reply, name: &str) -> String {
    let css = reply.texts("style").concat();
    let wanted = format!("--{name}:");
    let mut rules = css.split(['{', ';', '}']);
    let found = rules.find_map(|rule| rule.strip_prefix(wanted.as_str()));
    found.unwrap_or_default().to_owned()
}

fn is_of(reply: &Reply, class: &str) -> bool {
    let classes = reply.attributes("body", "class").concat();
    classes.split(' ').any(|one| one == class)
}

#[tokio::test]
async fn the_head_says_what_the_owner_says() {
    let seo = |member: &str, value: &str| json!({"seo": {member: value}});
    let cases: [Case; 17] = [
        (
            seo("meta_title", "Ponds"),
            "head > title",
            "",
            "Ponds",
            "Old books",
        ),
        (
            seo("meta_description", "All ponds."),
            "meta[name='description']",
            "content",
            "All ponds.",
            "All of them.",
        ),
        (
            json!({"seo": {"keywords": ["ponds", "woods"]}}),
            "meta[name='keywords']",
            "content",
            "ponds, woods",
            "",
        ),
        (
            seo("robots", "noindex"),
            "meta[name='robots']",
            "content",
            "noindex",
            "index, follow",
        ),
        (
            seo("og_image_alt", "A shelf"),
            "meta[property='og:image:alt']",
            "content",
            "A shelf",
            "Old books",
        ),
        (
            seo("og_type", "book"),
            "meta[property='og:type']",
            "content",
            "book",
            "website",
        ),
        (
            seo("twitter_card", "summary"),
            "meta[name='twitter:card']",
            "content",
            "summary",
            "summary_large_image",
        ),
        (
            seo("twitter_site", "@books"),
            "meta[name='twitter:site']",
            "content",
            "@books",
            "",
        ),
        (
            seo("twitter_creator", "@reader"),
            "meta[name='twitter:creator']",
            "content",
            "@reader",
            "",
        ),
        (
            seo("canonical_url", "https://books.example/all"),
            "link[rel='canonical']",
            "href",
            "https://books.example/all",
            "https://search.example.com/r/books",
        ),
        (
            seo("canonical_url", "https://books.example/all"),
            "meta[property='og:url']",
            "content",
            "https://books.example/all",
            "https://search.example.com/r/books",
        ),
        (
            seo("site_name", "The library"),
            "meta[property='og:site_name']",
            "content",
            "The library",
            "Loupe",
        ),
        (
            seo("author", "A. Reader"),
            "meta[name='author']",
            "content",
            "A. Reader",
            "",
        ),
        (
            seo("locale", "de_DE"),
            "meta[property='og:locale']",
            "content",
            "de_DE",
            "en_US",
        ),
        (seo("locale", "de_DE"), "html", "lang", "de-DE", "en-US"),
        (seo("locale", "no such"), "html", "lang", "en", "en-US"),
        (
            seo("favicon_url", "/own.ico"),
            "link[rel='icon']",
            "href",
            "/own.ico",
            "/assets/favicon.svg",
        ),
    ];
    hold(display(), book(), "/r/books", cases).await;
}

/// What the page tells search engines of this kind.
fn told(reply: &Reply, kind: &str) -> Option<Value> {
    let all = reply.texts("script[type='application/ld+json']");
    let mut all = all
        .iter()
        .map(|data| serde_json::from_str::<Value>(data).unwrap());
    all.find(|data| data["@type"] == kind)
}

#[tokio::test]
async fn search_engines_read_the_owners_logo_and_data() {
    let page = async |over: Value| shown(laid(display(), &over), book(), "/r/books").await;
    let logo = |reply: &Reply| told(reply, "WebSite").unwrap()["image"].clone();
    let plain = page(json!({})).await;
    assert_eq!(logo(&plain), Value::Null);
    assert_eq!(told(&plain, "Library"), None);
    assert_eq!(told(&plain, "WebApplication"), None);

    let own = page(json!({"logo_url": "/logo.png"})).await;
    assert_eq!(logo(&own), "https://search.example.com/logo.png");
    let seo =
        json!({"logo_url": "/logo.png", "seo": {"logo_url": "https://pictures.example/logo.png"}});
    assert_eq!(logo(&page(seo).await), "https://pictures.example/logo.png");

    let data = json!({"type": "Library", "additional_properties": {"telephone": "555"}});
    let library = page(json!({"seo": {"structured_data": data}})).await;
    let library = told(&library, "Library").unwrap();
    assert_eq!(library["telephone"], "555");
    assert_eq!(library["name"], "Old books");
    assert_eq!(library["url"], "https://search.example.com/r/books");
    let usual = page(json!({"seo": {"structured_data": {}}})).await;
    assert!(told(&usual, "WebApplication").is_some());
}

#[tokio::test]
async fn the_bar_holds_the_owners_logo_links_and_button() {
    let cta = || json!({"custom_cta": {"label": "About", "markdown_content": "Open **daily**."}});
    let links =
        || json!({"external_links": [{"name": "Library", "url": "https://library.example/"}]});
    let cases: [Case; 6] = [
        (
            json!({"logo_url": "/logo.png"}),
            ".brand img",
            "src",
            "/logo.png",
            "",
        ),
        (cta(), ".links button", "", "About", ""),
        (cta(), "#cta h2", "", "About", ""),
        (cta(), "#cta strong", "", "daily", ""),
        (links(), ".links a", "", "Library", ""),
        (links(), ".links a", "href", "https://library.example/", ""),
    ];
    hold(display(), book(), "/r/books", cases).await;
}

#[tokio::test]
async fn a_theme_is_the_pages_tokens() {
    let page = async |theme: Value| {
        let over = json!({ "theme": theme });
        shown(laid(display(), &over), book(), "/r/books").await
    };
    let usual = page(json!({})).await;
    for (member, value, name, expected) in [
        ("primary_color", "#b4530a", "primary", "#b4530a"),
        ("background_color", "#fafafa", "bg", "#fafafa"),
        ("text_color", "#102030", "text", "#102030"),
        ("surface_color", "#eeeeee", "surface", "#eeeeee"),
        ("muted_color", "#444444", "muted", "#444444"),
        ("border_color", "#123456", "line", "#123456"),
        // What answers a query stands on a tint of it.
        ("secondary_color", "#000000", "mark", "#c7c7c7"),
    ] {
        let themed = page(json!({ member: value })).await;
        assert_eq!(token(&themed, name), expected, "{member}");
        assert_ne!(token(&usual, name), expected, "without {member}");
    }

    let family = |reply: &Reply, name: &str| {
        let stack = token(reply, name);
        stack.split(',').next().unwrap_or_default().to_owned()
    };
    assert_eq!(family(&usual, "font"), "system-ui");
    assert_eq!(family(&usual, "font-heading"), "");
    let fonts = json!({"font_family": "Georgia, serif", "heading_font_family": "ui-monospace"});
    let fonts = page(fonts).await;
    assert_eq!(family(&fonts, "font"), "Charter");
    assert_eq!(family(&fonts, "font-heading"), "ui-monospace");
}

#[tokio::test]
async fn cards_move_under_the_pointer_as_the_owner_says() {
    let page = async |theme: Value| {
        let over = json!({ "theme": theme });
        shown(laid(display(), &over), book(), "/r/books").await
    };
    assert!(is_of(&page(json!({})).await, "h-lift"));
    for (effect, class) in [
        ("glow", "h-glow"),
        ("scale", "h-scale"),
        ("none", "h-still"),
    ] {
        let themed = page(json!({ "card_hover_effect": effect })).await;
        assert!(is_of(&themed, class), "{effect}");
        assert!(!is_of(&themed, "h-lift"), "{effect}");
    }
}

#[tokio::test]
async fn a_layout_has_its_columns_its_gap_and_its_width() {
    let page = async |layout: Value| {
        let over = json!({ "layout": layout });
        shown(laid(display(), &over), book(), "/r/books").await
    };
    let usual = shown(display(), book(), "/r/books").await;
    assert_eq!(token(&usual, "columns"), "3");
    assert_eq!(token(&usual, "gap"), "16px");
    assert!(!is_of(&usual, "wide"));
    assert_eq!(token(&page(json!({"columns": 5})).await, "columns"), "5");
    assert_eq!(token(&page(json!({"gap": "24px"})).await, "gap"), "24px");
    assert!(is_of(&page(json!({"full_width": true})).await, "wide"));
}

#[tokio::test]
async fn parts_of_a_page_are_left_out() {
    let hidden = |part: &str| json!({"components": {part: false}});
    let cases: [Case; 3] = [
        // Readers of screens still hear the title.
        (hidden("show_hero"), ".hero", "class", "hero sr", "hero"),
        (
            hidden("show_search"),
            "form.search",
            "action",
            "",
            "/r/books",
        ),
        (
            hidden("show_results_header"),
            "p.count",
            "",
            "",
            "1 to browse",
        ),
    ];
    hold(display(), book(), "/r/books", cases).await;
}

#[tokio::test]
async fn an_empty_input_says_what_may_stand_in_it() {
    let inputs = |placeholder: Option<&str>| {
        let mut inputs = json!([
            {"field_name": "query", "field_schema": {"type": "text"}, "label": "Search"},
            {"field_name": "shelf", "field_schema": {"type": "string"}, "input_type": "select", "label": "Shelf",
                "suggestions": ["a", "b"]},
            {"field_name": "year", "field_schema": {"type": "integer"}, "input_type": "number", "label": "Year"},
        ]);
        for input in inputs.as_array_mut().unwrap() {
            if let Some(placeholder) = placeholder {
                input["placeholder"] = json!(placeholder);
            }
        }
        json!({ "inputs": inputs })
    };
    let with = || inputs(Some("Say it"));
    let cases: [Case; 3] = [
        (
            with(),
            "input[type='search']",
            "placeholder",
            "Say it",
            "Search",
        ),
        (with(), "select option:first-child", "", "Say it", "Any"),
        (with(), "input[type='number']", "placeholder", "Say it", ""),
    ];
    hold(laid(display(), &inputs(None)), book(), "/r/books", cases).await;
}
