use super::super::super::{Distance, VectorSpec};
use super::*;

#[test]
fn a_panic_costs_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let shard = Arc::new(Shard::of(&[]));
    let slot = Slot::new(shard, dir.path().join("shard"), None, &Payloads::default());
    let point = Point {
        id: uuid::Uuid::from_u128(7),
        payload: serde_json::Map::new(),
        vectors: Default::default(),
    };
    slot.update(convert::upsert(vec![point])).unwrap();
    let hit = slot.with(|_| -> q::OperationResult<()> { panic!("the engine met something") });
    assert!(matches!(hit, Err(StoreError::Unavailable(_))));
    let count = slot
        .with(|shard| shard.count(q::CountRequest::new()))
        .unwrap();
    assert_eq!(count, 1, "the shard was opened anew with all it had");
}

#[test]
fn what_came_in_pieces_becomes_one_index_once_nobody_writes() {
    let dir = tempfile::tempdir().unwrap();
    let shard = Arc::new(Shard::of(&[VectorSpec {
        name: "v".to_owned(),
        dims: 64,
        distance: Distance::Cosine,
    }]));
    let slot = Slot::new(
        shard,
        dir.path().join("shard"),
        Some(64),
        &Payloads::default(),
    );
    let budget = q::ResourceBudget::new(1, 1);
    let write = |from: u128, count: u128| {
        let point = |number: u128| Point {
            id: uuid::Uuid::from_u128(number),
            payload: serde_json::Map::new(),
            vectors: [("v".to_owned(), vec![1.0 + number as f32; 64])].into(),
        };
        let points = (from..from + count).map(point).collect();
        slot.update(convert::upsert(points)).unwrap();
    };
    let state = || {
        let info = slot.with(q::EdgeShard::info).unwrap();
        let apart = info.points_count - info.indexed_vectors_count;
        (info.points_count, info.segments_count <= 2 && apart == 0)
    };
    for piece in 0..6 {
        write(1 + piece * 500, 500);
        slot.optimize(&budget).unwrap();
    }
    write(3_001, 50);
    slot.optimize(&budget).unwrap();
    assert_eq!(
        state(),
        (3_050, false),
        "the last ones are too few for an index"
    );
    slot.optimize(&budget).unwrap();
    assert_eq!(state(), (3_050, true));
    // A few more do not have all of them written anew, a tenth more does.
    for (from, count, settled) in [(3_051, 100, false), (3_151, 300, true)] {
        write(from, count);
        slot.optimize(&budget).unwrap();
        slot.optimize(&budget).unwrap();
        assert_eq!(state().1, settled);
    }
    let threshold = slot.with(|shard| Ok(shard.config().optimizers().get_indexing_threshold_kb()));
    assert_eq!(
        threshold.unwrap(),
        64,
        "what is written next is treated as ever"
    );
    let warmed = [slot.warm() > 0, slot.warm() > 0];
    assert_eq!(warmed, [true, false], "what was built is read ahead once");
}
