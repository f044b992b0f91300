use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn filter(value: Value) -> Filter {
    Filter::parse(&value).unwrap()
}

fn holds(f: Value, document: Value) -> bool {
    filter(f).matches(&document)
}

fn leaf(field: &str, operator: &str, value: Value) -> Value {
    json!({"field": field, "operator": operator, "value": value})
}

#[test]
fn every_operator_tells_a_match_from_a_miss() {
    let paris = json!({"lat": 48.8566, "lon": 2.3522});
    let doc = json!({
        "name": "Red Running Shoes", "price": 40, "rate": 4.5, "tags": ["Sport", "sale"], "at": "2026-03-01T10:00:00+02:00",
        "none": null, "place": paris, "items": [{"sku": "a1", "n": 1}, {"sku": "b2", "n": 7}],
    });
    let square = json!({"exterior": {"points": [
        {"lat": 48.0, "lon": 2.0}, {"lat": 49.0, "lon": 2.0}, {"lat": 49.0, "lon": 3.0}, {"lat": 48.0, "lon": 3.0}]}});
    let far = json!({"points": [{"lat": 1, "lon": 1}, {"lat": 2, "lon": 1}, {"lat": 2, "lon": 2}]});
    let cases = [
        ("price", "eq", json!(40.0), json!("40")),
        (
            "name",
            "ne",
            json!("red running shoes"),
            json!("Red Running Shoes"),
        ),
        ("rate", "gt", json!(4), json!(4.5)),
        ("price", "gte", json!(40), json!(40.5)),
        (
            "at",
            "lt",
            json!("2026-03-01T08:00:01Z"),
            json!("2026-03-01T08:00:00Z"),
        ),
        (
            "at",
            "lte",
            json!("2026-03-01T08:00:00Z"),
            json!("2026-03-01"),
        ),
        ("tags", "in", json!(["sale", "x"]), json!(["sport"])),
        ("tags", "nin", json!(["sport"]), json!(["Sport"])),
        ("name", "contains", json!("RUNNING"), json!("walking")),
        ("name", "starts_with", json!("red"), json!("running")),
        ("name", "ends_with", json!("SHOES"), json!("running")),
        ("name", "regex", json!("^Red .*s$"), json!("^red")),
        ("none", "exists", json!(true), json!(false)),
        ("gone", "is_null", json!(true), json!(false)),
        ("name", "text", json!("ed runn"), json!("edrunn")),
        ("name", "phrase", json!("running shoes"), json!("red shoes")),
        ("name", "words", json!("shoe run"), json!("shoe walk")),
        (
            "place",
            "geo_radius",
            json!({"center": {"lat": 48.85, "lon": 2.35}, "radius": 1000}),
            json!({"center": {"lat": 51.5, "lon": -0.12}, "radius": 100_000}),
        ),
        (
            "place",
            "geo_bounding_box",
            json!({"top_left": {"lat": 49, "lon": 2}, "bottom_right": {"lat": 48, "lon": 3}}),
            json!({"top_left": {"lat": 49, "lon": 3}, "bottom_right": {"lat": 48, "lon": 4}}),
        ),
        ("place", "geo_polygon", square, far),
    ];
    assert_eq!(cases.len(), Operator::ALL.len());
    for (field, operator, hit, miss) in cases {
        assert!(
            holds(leaf(field, operator, hit.clone()), doc.clone()),
            "{field} {operator} {hit} must match"
        );
        assert!(
            !holds(leaf(field, operator, miss.clone()), doc.clone()),
            "{field} {operator} {miss} must not match"
        );
    }
    assert!(holds(leaf("items.n", "gt", json!(5)), doc.clone()));
    assert!(holds(leaf("items.0.sku", "eq", json!("a1")), doc.clone()));
    assert!(!holds(leaf("items.1.sku", "eq", json!("a1")), doc));
}

#[test]
fn absent_fields_satisfy_only_what_speaks_of_absence() {
    let doc = json!({"a": 1});
    for operator in Operator::ALL {
        let value = match operator {
            Operator::In | Operator::Nin => json!([1]),
            Operator::Exists | Operator::IsNull => json!(true),
            Operator::GeoRadius => json!({"center": {"lat": 0, "lon": 0}, "radius": 1}),
            Operator::GeoBoundingBox => json!({"top_left": [0, 1], "bottom_right": [1, 0]}),
            Operator::GeoPolygon => json!([[0, 0], [0, 1], [1, 1]]),
            _ => json!("x"),
        };
        let expected = matches!(operator, Operator::Ne | Operator::Nin | Operator::IsNull);
        assert_eq!(
            holds(leaf("gone.deep", operator.word(), value), doc.clone()),
            expected,
            "{operator:?}"
        );
    }
}

#[test]
fn case_is_inherited_from_the_nearest_node() {
    let doc = json!({"name": "Shoe"});
    assert!(!holds(json!({"name": "shoe"}), doc.clone()));
    assert!(holds(
        json!({"case_sensitive": false, "AND": [{"name": "shoe"}]}),
        doc.clone()
    ));
    assert!(holds(leaf("name", "contains", json!("SHO")), doc.clone()));
    assert!(!holds(
        json!({"case_sensitive": true, "OR": [leaf("name", "contains", json!("SHO"))]}),
        doc.clone()
    ));
    let inner = json!({"case_sensitive": true, "AND": [{"case_sensitive": false, "OR": [{"name": "SHOE"}]}]});
    assert!(holds(inner, doc));
}

#[test]
fn the_shorthands_of_list_filters_are_read() {
    let doc = json!({"color": "red", "size": 5});
    assert!(holds(json!({"color": "red", "size": 5}), doc.clone()));
    assert!(!holds(json!({"color": "red", "size": 6}), doc.clone()));
    assert!(holds(json!({"color": ["blue", "red"]}), doc.clone()));
    assert!(holds(
        json!({"color": {"$in": ["blue", "red"]}}),
        doc.clone()
    ));
    assert!(holds(json!({"size": {"$gte": 5, "$lt": 6}}), doc.clone()));
    assert!(!holds(json!({"size": {"$gt": 5, "$lt": 6}}), doc.clone()));
    assert!(holds(json!({"NOT": {"color": "blue"}}), doc.clone()));
    assert!(!holds(
        json!({"NOT": [{"color": "blue"}, {"size": 5}]}),
        doc.clone()
    ));
    assert!(
        holds(json!({"AND": [], "OR": []}), doc),
        "empty groups say nothing"
    );
}

#[test]
fn bad_filters_are_refused_with_their_place() {
    let place = |f: Value| {
        let e = Filter::parse(&f).unwrap_err();
        (e.loc.join("."), e.msg)
    };
    assert_eq!(
        place(json!({"AND": [leaf("a", "eqq", json!(1))]})).0,
        "AND.0.operator"
    );
    assert_eq!(
        place(json!({"OR": [{"a": {"$near": 1}}]})).0,
        "OR.0.a.$near"
    );
    assert!(
        place(leaf("a", "in", json!("x")))
            .1
            .contains("takes a list")
    );
    assert!(
        place(leaf("a", "regex", json!("(")))
            .1
            .contains("not valid")
    );
    assert!(
        place(leaf("a", "regex", json!("a{1000}{1000}")))
            .1
            .contains("too large")
    );
    assert!(
        place(leaf("a", "regex", json!("a".repeat(600))))
            .1
            .contains("512 bytes")
    );
    assert!(place(leaf("a..b", "eq", json!(1))).1.contains("dot path"));
    assert!(place(json!({"and": [{"a": 1}]})).1.contains("`AND`"));
    assert_eq!(
        place(json!({"field": "a", "value": 1, "values": 2})).0,
        "values"
    );
    let mut deep = json!({"a": 1});
    for _ in 0..40 {
        deep = json!({"AND": [deep]});
    }
    assert!(place(deep).1.contains("deep"));
    let wide: Vec<Value> = (0..600).map(|i| json!({"a": i})).collect();
    assert!(place(json!({"OR": wide})).1.contains("500 conditions"));
}

#[test]
fn dynamic_values_take_inputs_and_missing_ones_remove_their_condition() {
    let dynamic = |name: &str| json!({"type": "dynamic", "field": name});
    let f = filter(json!({"AND": [
        {"color": dynamic("inputs.color")},
        {"OR": [{"size": dynamic("inputs.size")}]},
        {"NOT": [{"brand": dynamic("inputs.filters.brand")}]},
    ]}));
    let inputs = json!({"color": "red", "filters": {"brand": "x"}});
    let (resolved, removed) = f.resolve(inputs.as_object().unwrap()).unwrap();
    assert_eq!(
        resolved,
        filter(json!({"AND": [{"AND": [{"color": "red"}]}, {"NOT": [{"brand": "x"}]}]})).flat()
    );
    assert_eq!(removed, ["size eq: the input `size` is not there"]);
    assert!(
        !f.matches(&json!({"color": "red", "size": null})),
        "an unresolved condition never holds"
    );
    let (nothing, removed) = f.resolve(&Default::default()).unwrap();
    assert!(nothing.is_trivial());
    assert_eq!(removed.len(), 3);
    let list = filter(json!({"field": "a", "operator": "in", "value": dynamic("inputs.list")}));
    assert!(
        list.resolve(json!({"list": "no list"}).as_object().unwrap())
            .is_err()
    );
}

impl Filter {
    /// Test helper: single-member `All` inside `All` unwrapped.
    fn flat(self) -> Filter {
        match self {
            Filter::All(members) if members.len() == 1 => {
                members.into_iter().next().unwrap().flat()
            }
            Filter::All(members) => Filter::All(members.into_iter().map(Filter::flat).collect()),
            other => other,
        }
    }
}

#[test]
fn boxes_cross_the_date_line() {
    let f = leaf(
        "p",
        "geo_bounding_box",
        json!({"top_left": [170, 10], "bottom_right": [-170, -10]}),
    );
    assert!(holds(f.clone(), json!({"p": {"lat": 0, "lon": 179}})));
    assert!(holds(f.clone(), json!({"p": {"lat": 0, "lon": -179}})));
    assert!(!holds(f, json!({"p": {"lat": 0, "lon": 0}})));
}

#[test]
fn sorting_puts_nulls_last_and_orders_moments_by_time() {
    let mut list = vec![
        json!(null),
        json!("b"),
        json!(10),
        json!("2026-01-01T12:00:00+09:00"),
        json!("2026-01-01T04:00:00Z"),
        json!(9.5),
        json!(true),
        json!("a"),
    ];
    list.sort_by(|a, b| sort_values(Some(a), Some(b)));
    let expected = [
        json!(9.5),
        json!(10),
        json!("2026-01-01T12:00:00+09:00"),
        json!("2026-01-01T04:00:00Z"),
        json!("a"),
        json!("b"),
        json!(true),
        json!(null),
    ];
    assert_eq!(list, expected);
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-3i64..4).prop_map(|n| json!(n as f64 + 0.5)),
        "[aAbB]{0,2}".prop_map(Value::from),
        Just(json!("2026-01-01")),
        Just(json!("2026-01-01T00:00:00Z")),
    ];
    scalar.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[xy]", inner, 0..3).prop_map(|m| json!(m)),
        ]
    })
}

fn condition() -> impl Strategy<Value = Filter> {
    let operator = prop::sample::select(Operator::ALL[..17].to_vec());
    let field = prop::sample::select(vec!["x", "y", "x.y", "y.x"]);
    (field, operator, value(), any::<bool>()).prop_map(
        |(field, operator, value, case_sensitive)| {
            let value = match operator {
                Operator::In | Operator::Nin => json!([value, 1]),
                Operator::Exists | Operator::IsNull => json!(case_sensitive),
                _ => value,
            };
            Filter::Leaf(Condition {
                field: field.into(),
                operator,
                value,
                case_sensitive,
            })
        },
    )
}

fn tree() -> impl Strategy<Value = Filter> {
    condition().prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner, 0..3);
        prop_oneof![
            list.clone().prop_map(Filter::All),
            list.clone().prop_map(Filter::Any),
            list.prop_map(Filter::None),
        ]
    })
}

fn not(filter: &Filter) -> Filter {
    Filter::None(vec![filter.clone()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn de_morgan_and_double_negation_hold(a in tree(), b in tree(), doc in value()) {
        let doc = json!({"x": doc, "y": {"x": doc.clone()}});
        let both = Filter::All(vec![a.clone(), b.clone()]);
        let either = Filter::Any(vec![a.clone(), b.clone()]);
        prop_assert_eq!(not(&both).matches(&doc), Filter::Any(vec![not(&a), not(&b)]).matches(&doc));
        prop_assert_eq!(not(&either).matches(&doc), Filter::All(vec![not(&a), not(&b)]).matches(&doc));
        prop_assert_eq!(not(&either).matches(&doc), Filter::None(vec![a.clone(), b.clone()]).matches(&doc));
        prop_assert_eq!(not(&not(&a)).matches(&doc), a.matches(&doc));
        prop_assert_eq!(a.clone().and(b).matches(&doc), both.matches(&doc));
    }

    #[test]
    fn opposites_are_opposites(field in "[xy]", to in value(), doc in value(), case_sensitive: bool) {
        let doc = json!({"x": doc});
        let test = |operator, value: Value| {
            Filter::Leaf(Condition { field: field.clone(), operator, value, case_sensitive }).matches(&doc)
        };
        prop_assert_ne!(test(Operator::Eq, to.clone()), test(Operator::Ne, to.clone()));
        prop_assert_ne!(test(Operator::In, json!([to])), test(Operator::Nin, json!([to])));
        prop_assert_eq!(test(Operator::Eq, to.clone()), test(Operator::In, json!([to])));
        prop_assert_ne!(test(Operator::Exists, json!(true)), test(Operator::Exists, json!(false)));
        prop_assert_eq!(test(Operator::IsNull, json!(true)), test(Operator::Eq, json!(null)) && !members(&doc, &field));
    }

    #[test]
    fn sorting_is_a_total_order(a in value(), b in value(), c in value()) {
        let order = |p: &Value, q: &Value| sort_values(Some(p), Some(q));
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
    }

    #[test]
    fn parsing_never_panics(text in "\\PC{0,60}", v in value()) {
        let _ = Filter::parse(&json!({"AND": [{"field": "a", "operator": "regex", "value": text.clone()}, {text: v}]}));
    }
}

/// Whether an array with a null among its members makes `eq null` true where `is_null` is not.
fn members(doc: &Value, field: &str) -> bool {
    value_at(doc, field).is_some_and(Value::is_array)
}

#[test]
fn numbers_beyond_what_a_fraction_tells_apart_have_an_order() {
    let sorted = [
        json!(-9_007_199_254_740_993_i64),
        json!(-9_007_199_254_740_992.0),
        json!(1),
        json!(9_007_199_254_740_992.0),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_994.0),
        json!(u64::MAX),
    ];
    for (i, one) in sorted.iter().enumerate() {
        for (j, other) in sorted.iter().enumerate() {
            let order = sort_values(Some(one), Some(other));
            assert_eq!(order, i.cmp(&j), "{one} and {other}");
        }
    }
    assert!(sort_values(Some(&json!(1)), Some(&json!(1.0))).is_eq());
}

#[test]
fn a_phrase_without_words_is_refused() {
    let node = json!({"field": "text", "operator": "phrase", "value": "!?"});
    let error = Filter::parse(&json!({"AND": [node]})).unwrap_err();
    assert_eq!(error.loc, ["AND", "0"]);
    assert!(error.msg.contains("one word or more"), "{}", error.msg);
}
