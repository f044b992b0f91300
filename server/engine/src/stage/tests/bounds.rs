//! What documents and parameters of strangers may not take: the stack, the memory, or the truth of an answer.

use super::local::{q, searched};
use super::taxonomy::Finder;
use super::*;

/// One document.
fn lone(payload: Value) -> Memory {
    Memory {
        documents: vec![document("a", [1.0, 0.0], "", payload)],
        ..Memory::default()
    }
}

/// So many documents with the same text.
fn many(count: usize) -> Memory {
    let one = |number: usize| {
        document(
            &format!("d{number:05}"),
            [1.0, 0.0],
            "",
            json!({"content": "one and the same", "n": number}),
        )
    };
    Memory {
        documents: (0..count).map(one).collect(),
        ..Memory::default()
    }
}

#[tokio::test]
async fn a_path_of_many_steps_makes_no_object_of_each() {
    let path = format!("{}a", "a.".repeat(99_999));
    let out = answer(
        searched(json!({"score_normalize": {"output_field": path}})),
        q(),
    )
    .await;
    let (mut at, mut depth) = (&out.documents[0]["a"], 1);
    while let Some(next) = at.as_object().and_then(|object| object.values().next()) {
        (at, depth) = (next, depth + 1);
    }
    assert_eq!((at, depth), (&json!(1.0), 32));
    let out = answer(
        searched(json!({"score_normalize": {"output_field": "scores.scaled"}})),
        q(),
    )
    .await;
    assert_eq!(out.documents[0]["scores"]["scaled"], 1.0);
}

#[tokio::test]
async fn a_long_list_becomes_so_many_documents_and_no_more() {
    let unwound = async |items: usize, beside: usize| {
        let list: Vec<usize> = (0..items).collect();
        let memory = lone(json!({"list": list, "beside": "x".repeat(beside)}));
        plan(json!({"unwind": {"field": "list"}}))
            .run(run(memory, q()))
            .await
            .unwrap()
    };
    let out = unwound(3, 1).await;
    assert_eq!((out.total, out.warnings.len()), (3, 0));
    assert_eq!(
        (&out.documents[2]["list"], &out.documents[2]["beside"]),
        (&json!(2), &json!("x"))
    );
    let out = unwound(10_001, 1).await;
    assert_eq!(out.total, 10_000);
    assert!(
        out.warnings[0].contains("the rest was left out"),
        "{:?}",
        out.warnings
    );
    // Each would have eight megabytes.
    let out = unwound(1_000, 8 << 20).await;
    assert!((16..=32).contains(&out.total), "{}", out.total);
    assert_eq!(out.warnings.len(), 1);
}

#[tokio::test]
async fn pairs_are_counted_as_far_as_there_is_room() {
    let of = async |count: usize| {
        let tags: Vec<String> = (0..count).map(|number| format!("t{number:04}")).collect();
        let list = json!({"aggregate": {"aggregations": [
            {"function": "co_occurrence", "field": "tags", "alias": "pairs", "top_k": 2}]}});
        plan(list).run(run(lone(json!({"tags": tags})), q())).await
    };
    let out = of(30).await.unwrap();
    assert_eq!(
        out.documents[0]["pairs"],
        json!([{"value": "t0000", "value_b": "t0001", "count": 1}, {"value": "t0000", "value_b": "t0002", "count": 1}])
    );
    let told = of(4_000).await.unwrap_err().to_string();
    assert!(told.contains("5000000 pairs at most"), "{told}");
}

#[tokio::test]
async fn stages_say_that_they_have_not_read_everything() {
    for stage in [
        json!({"sample": {"count": 1}}),
        json!({"sort_attribute": {"field": "n", "nulls_last": false}}),
    ] {
        let out = plan(stage.clone())
            .run(run(many(10_001), q()))
            .await
            .unwrap();
        assert!(
            out.warnings[0].contains("only the first 10000 documents"),
            "{stage}: {:?}",
            out.warnings
        );
    }
}

#[tokio::test]
async fn texts_that_were_not_compared_are_told() {
    let repeated = async |count: usize| {
        plan(json!({"deduplicate": {"strategy": "content"}}))
            .run(run(many(count), q()))
            .await
            .unwrap()
    };
    let out = repeated(2_000).await;
    assert_eq!((out.total, out.warnings.len()), (1, 0));
    let out = repeated(2_001).await;
    assert_eq!(out.total, 2);
    assert!(
        out.warnings[0].contains("may repeat others"),
        "{:?}",
        out.warnings
    );
}

#[tokio::test]
async fn a_lone_search_keeps_scores_below_zero_whatever_the_fusion() {
    let list = json!({"feature_search": {"fusion": "max", "searches": [search(json!({}))]}});
    let out = answer(list, json!({"query": "-1,0"})).await;
    assert_eq!(ids(&out), ["d", "c", "b", "a"]);
    assert!((out.documents[3]["score"].as_f64().unwrap() + 0.9).abs() < 1e-6);
}

/// A page by key of everything that the store has.
async fn keyed(memory: &Arc<Memory>, after: Value) -> Result<Outcome, RunError> {
    let mut with = run(Memory::default(), q());
    with.store = memory.clone();
    let sent = json!({"method": "keyset", "limit": 500, "after": after});
    with.pagination = Some(serde_json::from_value(sent).unwrap());
    let all = json!({"attribute_filter": {"field": "n", "operator": "gte", "value": 0}});
    plan(all).run(with).await
}

#[tokio::test]
async fn keys_read_their_page_alone_of_what_nobody_has_read() {
    let memory = Arc::new(many(1_100));
    let (mut seen, mut after) = (0, Value::Null);
    loop {
        let out = keyed(&memory, after).await.unwrap();
        assert_eq!((out.total, &out.documents[0]["n"]), (1_100, &json!(seen)));
        seen += out.documents.len();
        after = out.pagination["after"].clone();
        assert_eq!(out.pagination["has_next"], !after.is_null());
        if after.is_null() {
            break;
        }
    }
    assert_eq!(seen, 1_100);
    let asked = std::mem::take(&mut *memory.lists.lock().unwrap());
    assert!(asked.len() == 3 && asked.iter().all(|one| one.limit == 500 && one.offset == 0));
}

#[tokio::test]
async fn keys_go_deeper_than_numbers_and_are_told_where_they_are_none() {
    let memory = Arc::new(many(10_050));
    // A key that somebody made knows its document, as far as a listing goes; the one it gets in return goes on.
    let made = json!({"document_id": "d09400"});
    let out = keyed(&memory, made).await.unwrap();
    assert_eq!((ids(&out)[0], out.total), ("d09401", 10_050));
    let out = keyed(&memory, out.pagination["after"].clone())
        .await
        .unwrap();
    assert_eq!((ids(&out)[0], out.documents.len()), ("d09901", 149));
    assert_eq!(out.pagination["has_next"], false);
    for (key, told) in [
        (json!({"document_id": "gone"}), "no document of the first"),
        (json!({"score": 1.0}), "send it as it is"),
        (json!({"position": "of another"}), "send it as it is"),
    ] {
        let refused = keyed(&memory, key.clone()).await.unwrap_err();
        assert!(
            matches!(&refused, RunError::Cursor(reason) if reason.contains(told)),
            "{key}: {refused:?}"
        );
    }
}

/// Retrievers that run one inside of the other: `middle` runs `leaf` for each document.
struct Nested;

#[async_trait::async_trait]
impl Retrievers for Nested {
    async fn find(&self, identifier: &str) -> Result<Called, String> {
        let plan = match identifier {
            "middle" => within("leaf"),
            _ => plan(json!({"limit": {"limit": 1}})),
        };
        Ok(Called {
            finder: Finder {
                plan,
                input_schema: IndexMap::new(),
                references: Vec::new(),
                secrets: Default::default(),
                fallen: Default::default(),
            },
            collections: collections(),
            taxonomies: Vec::new(),
            max_time_ms: None,
        })
    }
}

fn within(named: &str) -> Plan {
    let inputs = json!({"n": "{{ DOC.n }}"});
    let parameters =
        json!({"retriever_id": named, "retriever_inputs": inputs, "output_field": "found"});
    plan(json!({"document_enrich": parameters}))
}

#[tokio::test]
async fn retrievers_inside_of_one_another_run_so_often_in_all() {
    // Thirty runs of the one would be nine hundred of the other.
    let memory = Arc::new(many(30));
    let mut with = run(Memory::default(), q());
    with.store = memory.clone();
    with.outside.retrievers = Some(Arc::new(Nested));
    let out = within("middle").run(with).await.unwrap();
    assert_eq!(out.total, 30);
    let told = out.warnings.join("; ");
    assert!(told.contains("more inputs were left out"), "{told}");
    let lists = memory.lists.lock().unwrap().len();
    assert!((500..600).contains(&lists), "{lists}");
}
