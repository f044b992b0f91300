//! `traverse_edge`: along edges and fields, there and back, within its bounds.

use super::*;

fn of_object(id: &str, object: &str, collection: &str, edges: Value, payload: Value) -> Document {
    let mut made = document(id, [1.0, 0.0], "", payload);
    made.collection_id = collection.into();
    let internal = json!({"lineage": {"root_object_id": object}, "edges": edges});
    made.payload.insert("_internal".into(), internal);
    made
}

fn edge(kind: &str, target: &str) -> Value {
    json!({"type": kind, "target_object_id": target, "direction": "out"})
}

/// Papers that cite each other in a ring, `a` to `d`; a review that `b` says is about it; a picture of `b`.
fn papers() -> Memory {
    let about = json!({"type": "reviews", "target_object_id": "o_r", "direction": "in", "attributes": {"stars": 4}});
    let picture =
        json!({"type": "shows", "target_object_id": "o_b", "target_collection_id": "pictures"});
    Memory {
        documents: vec![
            of_object(
                "a",
                "o_a",
                "col_a",
                json!([edge("cites", "o_b"), edge("cites", "o_c")]),
                json!({"n": 1, "by": "Ada"}),
            ),
            of_object(
                "b",
                "o_b",
                "col_a",
                json!([edge("cites", "o_c"), about]),
                json!({"n": 2, "by": ["Ada", "Bo"]}),
            ),
            of_object(
                "c",
                "o_c",
                "col_a",
                json!([edge("cites", "o_d")]),
                json!({"n": 3, "by": "Cy"}),
            ),
            of_object(
                "d",
                "o_d",
                "col_a",
                json!([edge("cites", "o_a")]),
                json!({"n": 4, "friend": ["Cy", "Bo"]}),
            ),
            of_object("r", "o_r", "col_a", json!([]), json!({"n": 9})),
            of_object("pic1", "o_b", "col_p", json!([]), json!({"n": 2})),
            of_object("pic2", "o_p", "col_p", json!([picture]), json!({"n": 2})),
        ],
        ..Memory::default()
    }
}

/// What leads from one document, and the questions that the store was asked for it.
async fn from(id: &str, more: Value) -> (Outcome, usize) {
    let store = Arc::new(papers());
    let list = json!({"attribute_filter": {"field": "document_id", "operator": "eq", "value": id}, "traverse_edge": more});
    let mut with = run(Memory::default(), json!({"query": "x"}));
    with.store = store.clone();
    let out = plan(list).run(with).await.unwrap();
    // The first question is that of the filter.
    let asked = store.lists.lock().unwrap().len() - 1;
    (out, asked)
}

#[tokio::test]
async fn edges_lead_to_documents_step_by_step() {
    let (out, asked) = from("a", json!({"target_collection_id": "texts"})).await;
    assert_eq!((ids(&out), asked), (vec!["b", "c"], 1));
    assert_eq!(
        out.documents[0]["edge"],
        json!({"depth": 1, "from_document_id": "a", "direction": "out", "type": "cites"})
    );
    // Around the ring: nothing twice, nothing of where it began, one question a step.
    let more = json!({"target_collection_id": "texts", "max_depth": 5, "edge_types": ["cites"]});
    let (out, asked) = from("a", more).await;
    assert_eq!((ids(&out), asked), (vec!["b", "c", "d"], 3));
    let told = &out.statistics.stages["traverse_edge"].metadata["hops"];
    assert_eq!(
        told[1],
        json!({"depth": 2, "from": 2, "read": 3, "linked": 1})
    );
    assert_eq!(out.documents[2]["edge"]["depth"], 2);
    // With what it began with, into another field.
    let more = json!({"target_collection_id": "texts", "include_sources": true, "output_field": "why.link"});
    let (out, _) = from("a", more).await;
    assert_eq!(ids(&out), ["a", "b", "c"]);
    assert_eq!(
        (
            out.documents[0].get("why"),
            &out.documents[1]["why"]["link"]["type"]
        ),
        (None, &json!("cites"))
    );
}

#[tokio::test]
async fn edges_are_followed_in_both_directions_wherever_they_were_said() {
    let (out, _) = from("a", json!({"direction": "in"})).await;
    assert_eq!(ids(&out), ["d"]);
    // `b` says that the review is about it: the review leads to `b`, and `b` comes from the review.
    let (out, _) = from("r", json!({})).await;
    assert_eq!(ids(&out), ["b"]);
    let told = json!({"depth": 1, "from_document_id": "r", "direction": "out", "type": "reviews", "attributes": {"stars": 4}});
    assert_eq!(out.documents[0]["edge"], told);
    let (out, _) = from("b", json!({"direction": "in", "edge_types": ["reviews"]})).await;
    assert_eq!(
        (ids(&out), &out.documents[0]["edge"]["direction"]),
        (vec!["r"], &json!("in"))
    );
    let (out, _) = from("r", json!({"edge_types": ["cites"]})).await;
    assert!(ids(&out).is_empty());
    // An edge may mean the documents of one collection alone.
    let (out, _) = from("pic2", json!({})).await;
    assert_eq!(ids(&out), ["pic1"]);
    let (out, _) = from("b", json!({"direction": "both"})).await;
    assert_eq!(
        ids(&out),
        ["a", "c", "r"],
        "and no picture that is not named by that edge"
    );
}

#[tokio::test]
async fn fields_link_documents_as_keys_do() {
    let with = |direction: &str| json!({"source_field": "friend", "target_field": "by", "direction": direction});
    let (out, _) = from("d", with("out")).await;
    assert_eq!(ids(&out), ["b", "c"]);
    assert_eq!(out.documents[1]["edge"]["value"], "Cy");
    let (out, _) = from("c", with("in")).await;
    assert_eq!(ids(&out), ["d"]);
    assert!(ids(&from("c", with("out")).await.0).is_empty());
}

#[tokio::test]
async fn what_is_cut_is_told_and_conditions_hold_on_the_way() {
    let (out, _) = from("a", json!({"fan_out": 1, "target_collection_id": "texts"})).await;
    assert_eq!(ids(&out), ["b"]);
    assert!(
        out.warnings[0].contains("1 linked documents were left out"),
        "{:?}",
        out.warnings
    );
    let (out, asked) = from(
        "a",
        json!({"limit": 1, "max_depth": 5, "target_collection_id": "texts"}),
    )
    .await;
    assert_eq!((ids(&out), asked), (vec!["b"], 1));
    assert!(
        out.warnings[0].contains("only the first 1 linked"),
        "{:?}",
        out.warnings
    );
    // What does not satisfy the conditions is not gone through.
    let more =
        json!({"max_depth": 5, "target_collection_id": "texts", "filters": {"n": {"$ne": 3}}});
    assert_eq!(ids(&from("a", more).await.0), ["b"]);
    // Neither is what the request leaves out.
    let mut with = run(papers(), json!({"query": "x"}));
    let asked = json!({"field": "document_id", "operator": "in", "value": ["a", "c"]});
    with.filter = Some(crate::filter::Filter::parse(&asked).unwrap());
    let list = json!({"attribute_filter": {"field": "document_id", "operator": "eq", "value": "a"}, "traverse_edge": {"max_depth": 2}});
    assert_eq!(ids(&plan(list).run(with).await.unwrap()), ["c"]);
}

#[tokio::test]
async fn only_documents_that_the_condition_means_lead_on() {
    let list = json!({"sort_attribute": {"field": "document_id", "direction": "asc"},
        "traverse_edge": {"when": {"document_id": "a"}, "pre_filters": {"n": {"$lt": 2}}, "post_filters": {"n": 3}}});
    let out = plan(list)
        .run(run(papers(), json!({"query": "x"})))
        .await
        .unwrap();
    assert_eq!(ids(&out), ["c"]);
    let told = plan(json!({"traverse_edge": {"max_depth": 3}})).explain(Surroundings {
        collections: &collections(),
        documents: 7,
        inputs: None,
        now: chrono::DateTime::UNIX_EPOCH,
        configured: Configured::default(),
    });
    assert!(told[0].optimization_notes[0].contains("up to 3 steps"));
}

#[tokio::test]
async fn thousands_that_are_linked_with_thousands_take_no_longer_than_they_must() {
    // Every chunk of one book cites every chunk of another.
    let cites: Value = (0..20).map(|_| edge("cites", "o_2")).collect();
    let chunk = |book: &str, number: usize, edges: &Value| {
        let id = format!("{book}{number}");
        of_object(
            &id,
            &format!("o_{book}"),
            "col_a",
            edges.clone(),
            json!({"book": book}),
        )
    };
    let ours = (0..2_000).map(|number| chunk("1", number, &cites));
    let theirs = (0..2_000).map(|number| chunk("2", number, &json!([])));
    let mut with = run(Memory::default(), json!({"query": "x"}));
    with.store = Arc::new(Memory {
        documents: ours.chain(theirs).collect(),
        ..Memory::default()
    });
    let list = json!({"attribute_filter": {"field": "book", "operator": "eq", "value": "1"},
        "traverse_edge": {"fan_out": 2, "limit": 5000}});
    let start = std::time::Instant::now();
    let out = plan(list).run(with).await.unwrap();
    let told = &out.statistics.stages["traverse_edge"].metadata["hops"][0];
    assert_eq!(
        (&told["read"], &told["linked"]),
        (&json!(2_000), &json!(2_000))
    );
    // Two lead from each, in the order of those that lead.
    let from: Vec<&str> = [0, 1, 2, 3]
        .iter()
        .map(|place| {
            out.documents[*place]["edge"]["from_document_id"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!((from[0], from[2]), (from[1], from[3]));
    assert_ne!(from[0], from[2]);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
