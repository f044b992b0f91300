//! Documents to test with: every kind of value, some absent, two schemas, three principals.

use std::collections::BTreeMap;

use loupe_engine::store::{CollectionSpec, Distance, Document, Reach, VectorSpec, document_id};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

pub const DIMS: usize = 16;
pub const WORDS: [&str; 12] = [
    "river", "Mountain", "lantern", "harbour", "running", "quiet", "golden", "orchard", "signal",
    "Ember", "violet", "station",
];

pub fn spec(
    namespace: &str,
    collection: &str,
    vectors: &[(&str, usize, Distance)],
) -> CollectionSpec {
    CollectionSpec {
        namespace_id: namespace.to_owned(),
        collection_id: collection.to_owned(),
        vectors: vectors
            .iter()
            .map(|(name, dims, distance)| VectorSpec {
                name: (*name).to_owned(),
                dims: *dims,
                distance: *distance,
            })
            .collect(),
    }
}

pub fn text_spec(namespace: &str, collection: &str) -> CollectionSpec {
    spec(namespace, collection, &[("text", DIMS, Distance::Cosine)])
}

pub fn reach(namespace: &str, collections: &[&str]) -> Reach {
    Reach {
        namespace_id: namespace.to_owned(),
        collection_ids: collections.iter().map(|c| (*c).to_owned()).collect(),
        principal: None,
    }
}

pub fn document(collection: &str, part: &str, payload: Value) -> Document {
    Document {
        document_id: document_id(collection, "object", part),
        collection_id: collection.to_owned(),
        payload: payload.as_object().cloned().unwrap_or_default().into(),
        ..Document::default()
    }
}

/// `n` documents, the same for the same seed.
pub fn documents(spec: &CollectionSpec, n: usize, seed: u64) -> Vec<Document> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..n)
        .map(|i| {
            let text = sentence(&mut rng);
            let mut document = document(
                &spec.collection_id,
                &format!("{seed}-{i}"),
                payload(&mut rng, &text, i),
            );
            document.keywords = Some(text);
            document.vectors = spec
                .vectors
                .iter()
                .map(|v| {
                    (
                        v.name.clone(),
                        (0..v.dims).map(|_| rng.random_range(-1.0..1.0)).collect(),
                    )
                })
                .collect::<BTreeMap<_, _>>();
            document
        })
        .collect()
}

fn sentence(rng: &mut StdRng) -> String {
    let n = rng.random_range(2..8);
    (0..n)
        .filter_map(|_| WORDS.choose(rng).copied())
        .collect::<Vec<_>>()
        .join(" ")
}

fn payload(rng: &mut StdRng, text: &str, i: usize) -> Value {
    let principals = ["ada", "grace", "linus"];
    let mut payload = json!({
        "title": text,
        "category": (["Books", "books", "film", "music"].choose(rng)),
        "tags": principals.iter().chain(&["red", "green"]).filter(|_| rng.random_bool(0.4)).collect::<Vec<_>>(),
        "year": rng.random_range(1990..2000),
        "price": f64::from(rng.random_range(0..40)) / 4.0,
        "created": format!("2026-0{}-1{}T08:00:00Z", rng.random_range(1..10), rng.random_range(0..10)),
        "meta": {"lang": (["en", "de"].choose(rng)), "sizes": [{"w": i % 5}, {"w": i % 7, "unit": "cm"}]},
        "place": {"lat": rng.random_range(-80.0..80.0), "lon": rng.random_range(-170.0..170.0)},
        "_internal": {
            "batch_id": format!("btch_{}", i % 3),
            "_acl": {
                "owner": principals.choose(rng), "public": rng.random_bool(0.1),
                "read": principals.iter().filter(|_| rng.random_bool(0.2)).collect::<Vec<_>>(),
                "write": principals.iter().filter(|_| rng.random_bool(0.1)).collect::<Vec<_>>(),
            },
        },
    });
    let mixed = [
        json!(1),
        json!("1"),
        json!(true),
        Value::Null,
        json!([1, "one", null]),
        json!(1.0),
        json!({"a": 1}),
    ];
    if rng.random_bool(0.8) {
        payload["mixed"] = mixed.choose(rng).cloned().unwrap_or_default();
    }
    if rng.random_bool(0.5) {
        payload["note"] = if rng.random_bool(0.5) {
            Value::Null
        } else {
            json!("Some Note")
        };
    }
    payload
}
