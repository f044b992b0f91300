//! Pushed down or evaluated in process: the same answer, for any filter and any document.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use loupe_engine::filter::{Condition, Filter, Operator};
use loupe_engine::store::Edge;
use loupe_engine::store::shards::Cond;
use loupe_engine::store::{DocStore, Document, ListQuery, layout, pushdown, view};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world;

/// Few names and few values, so that filters and documents meet.
fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "b",
        "c",
        "0",
        "a.b",
        "",
        "_internal",
        "namespace_id",
    ])
    .prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = String> {
    let known = [
        "a",
        "b",
        "c",
        "a.b",
        "b.a",
        "a.b.c",
        "a.0",
        "b.c",
        "0",
        "",
        "a.",
        "document_id",
        "collection_id",
        "_internal.namespace_id",
        "_internal.a",
    ];
    prop::sample::select(known.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        prop::sample::select(vec![1.0, -0.0, 0.5, 1e300]).prop_map(Value::from),
        prop::sample::select(vec![
            9_007_199_254_740_992_i64,
            9_007_199_254_740_993,
            i64::MAX
        ])
        .prop_map(Value::from),
        Just(json!(u64::MAX)),
        prop::sample::select(vec!["x", "X", "1", "", "true", "Größe", "GRÖSSE", "col_p"])
            .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn payload() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), value()), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn leaf() -> impl Strategy<Value = Filter> {
    (
        path(),
        prop::sample::select(Operator::ALL.to_vec()),
        value(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(field, operator, value, case_sensitive, list)| {
            let value = match operator {
                Operator::Exists | Operator::IsNull if !list => json!(case_sensitive),
                Operator::In | Operator::Nin if !value.is_array() => json!([value]),
                _ => value,
            };
            Filter::Leaf(Condition {
                field,
                operator,
                value,
                case_sensitive,
            })
        })
}

fn filter() -> impl Strategy<Value = Filter> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::vec(inner, 0..4);
        prop_oneof![
            members.clone().prop_map(Filter::All),
            members.clone().prop_map(Filter::Any),
            members.prop_map(Filter::None),
        ]
    })
}

/// What an engine does with a condition.
fn holds(cond: &Cond, document: &Document, terms: &BTreeSet<i64>) -> bool {
    match cond {
        Cond::All(members) => members.iter().all(|m| holds(m, document, terms)),
        Cond::Any(members) => members.iter().any(|m| holds(m, document, terms)),
        Cond::Not(member) => !holds(member, document, terms),
        Cond::Term { any, .. } => any.iter().any(|term| terms.contains(term)),
        Cond::Ids(ids) => {
            layout::point_id(&document.document_id).is_some_and(|id| ids.contains(&id))
        }
        Cond::Keyword { path, any } => {
            assert_eq!(
                *path,
                layout::SCOPE,
                "of filters only those on the collection"
            );
            any.contains(&layout::scope("ns_p", &document.collection_id))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_condition_is_as_wide_as_its_filter(filter in filter(), payload in payload()) {
        let document = world::document("col_p", "1", payload);
        let seen = view(&document);
        let pushed = pushdown::push(Some(&filter), "ns_p");
        let (held, matched) = (holds(&pushed.cond, &document, &pushdown::terms(&seen)), filter.matches(&seen));
        prop_assert!(held || !matched, "too narrow: {pushed:?}");
        prop_assert!(!pushed.exact || held == matched, "said to be exact: {pushed:?}");
    }
}

/// One store for all cases: each has a collection of its own.
fn store() -> &'static (tokio::runtime::Runtime, Edge, tempfile::TempDir) {
    static STORE: OnceLock<(tokio::runtime::Runtime, Edge, tempfile::TempDir)> = OnceLock::new();
    STORE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = Edge::open(dir.path(), crate::edge::options()).unwrap();
        (tokio::runtime::Runtime::new().unwrap(), store, dir)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_answers_as_the_filter(
        payloads in prop::collection::vec(payload(), 1..12),
        filters in prop::collection::vec(filter(), 16),
        seed in any::<u64>(),
    ) {
        let (runtime, store, _) = store();
        let collection = format!("col_{seed}");
        let spec = world::spec("ns_p", &collection, &[]);
        let documents: Vec<_> =
            payloads.into_iter().enumerate().map(|(i, p)| world::document(&collection, &i.to_string(), p)).collect();
        runtime.block_on(store.upsert(&spec, documents.clone())).unwrap();
        let reach = world::reach("ns_p", &[&collection]);
        for filter in filters {
            let expected: BTreeSet<_> =
                documents.iter().filter(|d| filter.matches(&view(d))).map(|d| d.document_id.clone()).collect();
            let query = ListQuery { filter: Some(filter.clone()), limit: 100, ..ListQuery::default() };
            let found = runtime.block_on(store.list(&reach, query)).unwrap().documents;
            let found: BTreeSet<_> = found.into_iter().map(|d| d.document_id).collect();
            prop_assert_eq!(found, expected, "{}", filter);
            let count = runtime.block_on(store.count(&reach, Some(&filter))).unwrap();
            let matching = documents.iter().filter(|d| filter.matches(&view(d))).count() as u64;
            prop_assert_eq!(count, matching);
        }
    }
}
