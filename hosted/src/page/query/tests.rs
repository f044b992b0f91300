use super::*;
use loupe_wire::{DisplayConfig, RetrieverInputSchemaField};

fn page() -> Page {
    let field = |kind| RetrieverInputSchemaField {
        r#type: kind,
        ..Default::default()
    };
    Page {
        public_name: "books".into(),
        input_schema: [
            ("query".to_owned(), field(Kind::Text)),
            ("page".to_owned(), field(Kind::Integer)),
        ]
        .into(),
        display_config: DisplayConfig {
            exposed_fields: vec!["title".into(), "tags".into()],
            extensions: json!({"facets": ["tags", "secret"]}).as_object().cloned(),
            components: Some(loupe_wire::ComponentsConfig {
                show_filters: true,
                ..Default::default()
            }),
            ..Default::default()
        },
        ..Default::default()
    }
}

fn read(raw: &str) -> Query {
    let page = page();
    Query::read(&page, &Look::of(&page.display_config), raw, View::Page)
}

#[test]
fn only_declared_inputs_and_offered_facets_pass() {
    let query = read("q=blue+hat&other=1&f.tags=sea&f.secret=x&input.page=7&page=3");
    let request = query.request(24);
    assert_eq!(
        Value::Object(request.inputs),
        json!({"query": "blue hat", "page": 7})
    );
    assert_eq!(
        request.filters,
        Some(json!({"AND": [{"field": "tags", "operator": "in", "value": ["sea"]}]}))
    );
    assert_eq!((request.page, query.facets), (3, vec!["tags".to_owned()]));
    // As far as a search goes: 24 at once, 10,000 in all.
    assert_eq!(read("page=999999").page, 416);
}

#[test]
fn a_chosen_number_or_truth_is_found_as_what_it_is() {
    let filters = read("f.tags=1922&f.tags=true&f.tags=+1e&f.tags=null")
        .request(1)
        .filters;
    let values = json!(["1922", 1922, "true", true, "1e", "null"]);
    let leaf = json!({"field": "tags", "operator": "in", "value": values});
    assert_eq!(filters, Some(json!({ "AND": [leaf] })));
}

#[test]
fn addresses_keep_what_was_asked() {
    let query = read("query=a%26b&f.tags=x&f.tags=y&page=2");
    assert_eq!(
        query.at_page(3),
        "/r/books?query=a%26b&f.tags=x&f.tags=y&page=3"
    );
    assert_eq!(
        query.without_filter("tags", "x"),
        "/r/books?query=a%26b&f.tags=y"
    );
    assert_eq!(
        query.item("doc/1"),
        "/r/books/item/doc%2F1?query=a%26b&f.tags=x&f.tags=y&page=2"
    );
}

#[test]
fn a_file_is_in_no_address() {
    let mut page = page();
    page.input_schema.insert(
        "picture".to_owned(),
        RetrieverInputSchemaField {
            r#type: Kind::Image,
            ..Default::default()
        },
    );
    let look = Look::of(&page.display_config);
    let mut query = Query::read(&page, &look, "query=sea&picture=cat.png", View::Page);
    let inputs = |query: &Query| Value::Object(query.request(24).inputs);
    assert_eq!(inputs(&query), json!({"query": "sea"}));
    query.attach("query", Err("no input for files"));
    query.attach(
        "picture",
        Ok(Upload {
            name: "cat.png".into(),
            data: "data:image/png;base64,AA==".into(),
            held: None,
        }),
    );
    assert!(!query.has_errors());
    assert_eq!(
        inputs(&query),
        json!({"query": "sea", "picture": "data:image/png;base64,AA=="})
    );
    assert_eq!(Value::Object(query.told()), json!({"query": "sea"}));
    assert_eq!(query.at_page(2), "/r/books?query=sea&page=2");
    assert_eq!(query.item("doc"), "/r/books/item/doc");
}

#[test]
fn a_word_where_a_number_belongs_is_an_error_of_that_input() {
    let query = read("input.page=many");
    assert!(query.has_errors());
    assert!(query.request(1).inputs.is_empty());
}
