use super::*;

#[test]
fn names_become_addresses() {
    assert_eq!(slug("My  Films!"), "my-films");
}

#[test]
fn what_the_form_does_not_know_stays() {
    let owner = Owner::new();
    owner.set();
    let page = Record(json!({"public_name": "films", "display_config": {
        "title": "Films", "inputs": [], "exposed_fields": ["title"], "custom_cta": {"label": "More"},
        "theme": {"primary_color": "#A0B", "muted_color": "#888888"}, "extensions": {"color_scheme": "auto"},
        "seo": {"meta_title": "Films", "author": "Somebody"}, "retriever_config": {"stages": []},
    }}));
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    assert_eq!(
        (draft.theme.primary.get(), draft.theme.fixed.get()),
        ("#aa00bb".to_owned(), false)
    );
    draft.title.set("New films".into());
    draft.listed.set(false);
    let display = draft.display();
    assert_eq!(display["custom_cta"]["label"], "More");
    assert_eq!(display["theme"]["muted_color"], "#888888");
    assert_eq!(
        display["seo"],
        json!({"author": "Somebody", "robots": "noindex, nofollow"})
    );
    assert_eq!(draft.told().0, "New films");
    assert!(display.get("retriever_config").is_none() && display.get("layout").is_none());
    draft.template.set("custom".into());
    let own = draft.display()["extensions"]["template"].clone();
    assert_eq!(own["card"], json!({"heading": ["title"]}));
    draft.template.set(String::new());
    assert!(draft.display()["extensions"].get("template").is_none());
}

#[test]
fn every_part_of_a_theme_and_the_filters_are_chosen() {
    let owner = Owner::new();
    owner.set();
    let page = Record(json!({"public_name": "films", "display_config": {
        "title": "Films", "exposed_fields": ["title", "kind"], "seo": {"meta_description": "Search Films: plots"},
        "theme": {"surface_color": "#eee", "card_hover_effect": "glow"},
        "components": {"show_filters": true}, "extensions": {"facets": ["kind", "gone"]},
    }}));
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    draft.theme.secondary.set("#0f766e".into());
    draft.theme.heading.set("Georgia, serif".into());
    draft.theme.hover.set(String::new());
    let display = draft.display();
    assert_eq!(display["theme"]["surface_color"], "#eee");
    assert_eq!(display["theme"]["secondary_color"], "#0f766e");
    assert_eq!(display["theme"]["heading_font_family"], "Georgia, serif");
    assert!(display["theme"].get("card_hover_effect").is_none());
    assert_eq!(display["extensions"]["facets"], json!(["kind"]));
    // What publishing wrote follows the title and the collections.
    assert!(display["seo"].get("meta_description").is_none());
    draft.filtered.set(Vec::new());
    assert!(draft.display()["extensions"].get("facets").is_none());
    let bare = Record(
        json!({"public_name": "films", "display_config": {"components": {"show_filters": true}, "extensions": {"facets": []}}}),
    );
    let draft = Draft::new(&Record::default(), &bare, Vec::new());
    assert_eq!(draft.display()["extensions"]["facets"], json!([]));
}

#[test]
fn what_robots_are_told_stays_until_the_box_is_changed() {
    let owner = Owner::new();
    owner.set();
    let of = |robots: &str| {
        let page = Record(json!({"public_name": "films", "display_config": {
            "title": "Films", "exposed_fields": ["title"], "seo": {"author": "Somebody", "robots": robots},
        }}));
        Draft::new(&Record::default(), &page, Vec::new())
    };
    let told = |draft: Draft| draft.display()["seo"]["robots"].clone();
    for (robots, listed) in [
        ("none", false),
        ("NoIndex", false),
        ("noindex, follow", false),
        ("index, max-snippet:-1", true),
        ("index, follow", true),
    ] {
        let draft = of(robots);
        assert_eq!(draft.listed.get(), listed, "{robots}");
        assert_eq!(told(draft), robots);
    }
    let draft = of("index, max-snippet:-1");
    draft.listed.set(false);
    assert_eq!(told(draft), "noindex, nofollow, max-snippet:-1");
    let draft = of("none");
    draft.listed.set(true);
    assert_eq!(told(draft), Value::Null);
}

#[test]
fn tags_and_a_category_are_set_and_taken_away() {
    let owner = Owner::new();
    owner.set();
    let page = Record(
        json!({"public_name": "films", "tags": ["film", "silent"], "category": "Archives", "display_config": {
            "title": "Films", "exposed_fields": ["title"],
        }}),
    );
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    let body = draft.change();
    assert_eq!(body["tags"], json!(["film", "silent"]));
    assert_eq!(body["category"], "Archives");
    draft.tags.set("film, ".into());
    draft.category.set(String::new());
    let body = draft.body();
    assert_eq!(body["tags"], json!(["film"]));
    assert_eq!(body["category"], "");
}

#[test]
fn an_icon_and_a_layout_stay_are_chosen_and_go() {
    let owner = Owner::new();
    owner.set();
    let layout = json!({"mode": "masonry", "columns": 4, "gap": "10px", "full_width": true});
    let page = Record(json!({"public_name": "films", "display_config": {
        "title": "Films", "exposed_fields": ["title"], "icon_base64": "iVBORw0KGgo=", "layout": layout,
    }}));
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    let display = draft.display();
    assert_eq!(
        (&display["layout"], &display["icon_base64"]),
        (&layout, &json!("iVBORw0KGgo="))
    );
    draft.gap.set("24px".into());
    draft.wide.set(false);
    draft.icon.set(String::new());
    let display = draft.display();
    let layout = json!({"mode": "masonry", "columns": 4, "gap": "24px", "full_width": false});
    assert_eq!(display["layout"], layout);
    assert!(display.get("icon_base64").is_none(), "{display:#}");
    // What nobody chose the template says.
    draft.columns.set(String::new());
    let layout = json!({"mode": "masonry", "gap": "24px", "full_width": false});
    assert_eq!(draft.display()["layout"], layout);
    draft.arrangement.set(String::new());
    draft.icon.set("data:image/png;base64,iVBORw0KGgo=".into());
    let display = draft.display();
    assert!(display.get("layout").is_none(), "{display:#}");
    assert_eq!(display["icon_base64"], "data:image/png;base64,iVBORw0KGgo=");
    // The page's own is shown, and goes as well.
    let page = Record(
        json!({"public_name": "films", "icon_base64": "iVBORw0KGgo=", "display_config": {"title": "Films"}}),
    );
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    assert_eq!(draft.icon.get(), "iVBORw0KGgo=");
    assert!(draft.display().get("icon_base64").is_none());
    draft.icon.set(String::new());
    assert_eq!(draft.display()["icon_base64"], "");
}

#[test]
fn keywords_follow_the_tags_until_there_are_own_ones() {
    let owner = Owner::new();
    owner.set();
    let retriever = Record(json!({"tags": ["film"]}));
    let keywords = |words: &[&str]| {
        let page = Record(
            json!({"public_name": "films", "tags": ["film", "silent"], "display_config": {
                "title": "Films", "exposed_fields": ["title"], "seo": {"keywords": words, "canonical_url": "https://example.com/"},
            }}),
        );
        let display = Draft::new(&retriever, &page, Vec::new()).display();
        assert_eq!(display["seo"]["canonical_url"], "https://example.com/");
        display["seo"].get("keywords").cloned()
    };
    assert_eq!(keywords(&["film", "silent"]), None);
    assert_eq!(keywords(&["old", "silent"]), Some(json!(["old", "silent"])));
}

#[test]
fn a_template_that_is_a_name_alone_stays_one_until_something_is_chosen() {
    let owner = Owner::new();
    owner.set();
    let page = Record(json!({"public_name": "films", "display_config": {
        "title": "Films", "exposed_fields": ["title"], "template_type": "shop-window",
    }}));
    let draft = Draft::new(&Record::default(), &page, Vec::new());
    draft.title.set("New films".into());
    let display = draft.display();
    assert_eq!(display["template_type"], "shop-window");
    assert!(
        display["extensions"].get("template").is_none(),
        "{display:#}"
    );
    draft.own.character.set("media-search".into());
    let own = draft.display()["extensions"]["template"].clone();
    assert_eq!(own["character"], "media-search");
    assert_eq!(own["card"], json!({"heading": ["title"]}));
}
