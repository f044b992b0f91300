//! Listings, filters and facets.

use std::collections::BTreeSet;

use loupe_engine::filter::{Filter, Operator};
use loupe_engine::store::{Direction, ListQuery, Sort, StoreError};
use serde_json::{Value, json};

use super::{Bed, all, filled, ids, walk};

pub async fn lists_in_the_order_of_ids(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 53).await;
    let store = bed.store();
    let expected = ids(oracle.matching(&reach, None));
    for limit in [1, 7, 53, 100] {
        assert_eq!(
            walk(
                store,
                &reach,
                ListQuery {
                    limit,
                    ..ListQuery::default()
                }
            )
            .await,
            expected,
            "{limit}"
        );
    }
    let query = ListQuery {
        limit: 10,
        offset: 45,
        ..ListQuery::default()
    };
    assert_eq!(
        ids(&store.list(&reach, query).await.unwrap().documents),
        expected[45..]
    );
    let filter = Some(Filter::leaf("title", Operator::Text, json!("river")));
    let query = ListQuery {
        limit: 4,
        filter: filter.clone(),
        ..ListQuery::default()
    };
    assert_eq!(
        walk(store, &reach, query).await,
        ids(oracle.matching(&reach, filter.as_ref()))
    );
    let bad = ListQuery {
        limit: 4,
        cursor: Some("nonsense".to_owned()),
        ..ListQuery::default()
    };
    assert!(matches!(
        store.list(&reach, bad).await,
        Err(StoreError::Cursor(_))
    ));
}

pub async fn lists_in_the_order_of_values(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 60).await;
    let store = bed.store();
    for field in [
        "year",
        "title",
        "mixed",
        "created",
        "meta.lang",
        "absent",
        "meta.sizes.w",
    ] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let sort = Sort {
                field: field.to_owned(),
                direction,
            };
            let expected = ids(oracle.sorted(&reach, None, &sort));
            let query = ListQuery {
                sort: Some(sort),
                limit: 11,
                ..ListQuery::default()
            };
            assert_eq!(
                walk(store, &reach, query.clone()).await,
                expected,
                "{field} {direction:?}"
            );
            let query = ListQuery {
                offset: 17,
                ..query
            };
            assert_eq!(
                ids(&store.list(&reach, query).await.unwrap().documents),
                expected[17..28],
                "{field}"
            );
        }
    }
}

/// Conditions for each of the twenty operators.
fn conditions() -> Vec<(Operator, &'static str, Value)> {
    use Operator as O;
    let berlin = json!({"center": {"lat": 52.5, "lon": 13.4}, "radius": 6_000_000});
    let area =
        json!({"top_left": {"lat": 60, "lon": -100}, "bottom_right": {"lat": -20, "lon": 90}});
    let ring = json!({"exterior": {"points": [
        {"lat": 0, "lon": 0}, {"lat": 70, "lon": 0}, {"lat": 70, "lon": 160}, {"lat": 0, "lon": 160}]}});
    let mut list = vec![
        (O::Gt, "year", json!(1994)),
        (O::Gte, "price", json!(5)),
        (O::Lt, "created", json!("2026-05-01")),
        (O::Lte, "meta.sizes.w", json!(1)),
        (O::Contains, "title", json!("mountain")),
        (O::Contains, "tags", json!("red")),
        (O::StartsWith, "title", json!("riv")),
        (O::EndsWith, "title", json!("station")),
        (O::Regex, "title", json!("^(river|Ember) .*n")),
        (O::Text, "title", json!("ANTER")),
        (O::Phrase, "title", json!("river mountain")),
        (O::Words, "title", json!("runs rivers")),
        (O::GeoRadius, "place", berlin),
        (O::GeoBoundingBox, "place", area),
        (O::GeoPolygon, "place", ring),
    ];
    let values = [
        json!(1),
        json!("1"),
        json!(true),
        Value::Null,
        json!("Books"),
        json!("red"),
        json!("en"),
        json!({"a": 1}),
    ];
    for field in [
        "mixed",
        "category",
        "tags",
        "meta.lang",
        "note",
        "meta.sizes.unit",
        "absent",
        "tags.0",
        "year",
    ] {
        for value in &values {
            list.push((O::Eq, field, value.clone()));
            list.push((O::Ne, field, value.clone()));
        }
        list.push((O::In, field, Value::Array(values[..3].to_vec())));
        list.push((O::Nin, field, Value::Array(values[3..6].to_vec())));
        for wanted in [true, false] {
            list.push((O::Exists, field, json!(wanted)));
            list.push((O::IsNull, field, json!(wanted)));
        }
    }
    list
}

pub async fn answers_every_operator_as_the_oracle(bed: &mut impl Bed) {
    let (reach, oracle, written) = filled(bed, 80).await;
    let store = bed.store();
    let conditions = conditions();
    let covered: BTreeSet<&str> = conditions
        .iter()
        .map(|(operator, ..)| operator.word())
        .collect();
    assert_eq!(
        covered.len(),
        Operator::ALL.len(),
        "every operator has a condition"
    );
    for (operator, field, value) in conditions {
        let filter = Filter::leaf(field, operator, value);
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(
            ids(&all(store, &reach, Some(filter.clone())).await),
            expected,
            "list {filter}"
        );
        assert_eq!(
            store.count(&reach, Some(&filter)).await.unwrap(),
            expected.len() as u64,
            "count {filter}"
        );
    }
    let some = json!([written[0].document_id, written[9].document_id, "doc_none"]);
    for operator in [Operator::In, Operator::Nin] {
        let filter = Filter::leaf("document_id", operator, some.clone());
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(ids(&all(store, &reach, Some(filter)).await), expected);
    }
}

pub async fn answers_nested_filters(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 80).await;
    for text in [
        json!({"AND": [{"category": "film"}, {"field": "year", "operator": "gt", "value": 1993}]}),
        json!({"OR": [{"category": "film"}, {"field": "title", "operator": "words", "value": "river"}]}),
        json!({"NOT": [{"category": "film"}, {"field": "year", "operator": "gt", "value": 1993}]}),
        json!({"NOT": {"AND": [{"meta.lang": "en"}, {"NOT": {"tags": "red"}}]}}),
        json!({"category": "BOOKS", "case_sensitive": false}),
        json!({"AND": []}),
        json!({"OR": []}),
        json!({"NOT": []}),
        json!({"NOT": {"OR": []}}),
        json!({"NOT": {"AND": []}}),
        json!({"OR": [{"AND": []}, {"category": "film"}]}),
        json!({"AND": [{"OR": []}, {"category": "film"}]}),
    ] {
        let Ok(filter) = Filter::parse(&text) else {
            continue;
        };
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(
            ids(&all(bed.store(), &reach, Some(filter)).await),
            expected,
            "{text}"
        );
    }
    for (filter, n) in [
        (Filter::All(vec![]), 80),
        (Filter::Any(vec![]), 0),
        (Filter::None(vec![]), 80),
    ] {
        assert_eq!(
            bed.store().count(&reach, Some(&filter)).await.unwrap(),
            n,
            "{filter:?}"
        );
    }
}

pub async fn counts_facets(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 80).await;
    let filter = Filter::leaf("title", Operator::Contains, json!("e"));
    for field in [
        "category",
        "tags",
        "mixed",
        "year",
        "meta.sizes.w",
        "absent",
        "meta",
    ] {
        for filter in [None, Some(&filter)] {
            let found = bed.store().facet(&reach, filter, field, 100).await.unwrap();
            let order: Vec<u64> = found.iter().map(|f| f.count).collect();
            assert!(order.is_sorted_by(|a, b| a >= b), "most frequent first");
            let found = found
                .into_iter()
                .map(|f| (f.value.to_string(), f.count))
                .collect();
            assert_eq!(oracle.facet(&reach, filter, field), found, "{field}");
        }
    }
    assert_eq!(
        bed.store()
            .facet(&reach, None, "category", 2)
            .await
            .unwrap()
            .len(),
        2
    );
}
