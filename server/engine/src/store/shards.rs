//! What both engines have in common: shards of points, and the few primitives that a store is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use loupe_wire::Object;
use uuid::Uuid;

use super::{CollectionSpec, Distance, Payload, Result, VectorSpec};

/// Collections with one vector schema share a shard, but for large ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Shard {
    /// Derived from the vectors, so every process finds the same one.
    pub name: String,
    /// Sorted by name.
    pub vectors: Vec<VectorSpec>,
    /// The scope of the only collection that has ever lived here: what reads it needs no condition on the scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sole: Option<String>,
}

impl Shard {
    /// The shard of a vector schema.
    pub fn of(vectors: &[VectorSpec]) -> Self {
        use sha2::{Digest, Sha256};
        let mut vectors = vectors.to_vec();
        vectors.sort_by(|a, b| a.name.cmp(&b.name));
        let mut hash = Sha256::new();
        for spec in &vectors {
            hash.update((spec.name.len() as u64).to_be_bytes());
            hash.update(spec.name.as_bytes());
            hash.update((spec.dims as u64).to_be_bytes());
            hash.update([spec.distance as u8]);
        }
        Self {
            name: format!("v{}", hex::encode(&hash.finalize()[..10])),
            vectors,
            sole: None,
        }
    }

    /// The same shard, to be spoken to as if others lived there.
    pub fn shared(&self) -> Arc<Self> {
        Arc::new(Self {
            sole: None,
            ..self.clone()
        })
    }

    /// The named index, if this shard has it.
    pub fn index(&self, name: &str) -> Option<&VectorSpec> {
        self.vectors.iter().find(|spec| spec.name == name)
    }
}

/// What an engine keeps: an id, a payload in the layout of [`super::layout`], named vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub id: Uuid,
    pub payload: Object,
    pub vectors: BTreeMap<String, Vec<f32>>,
}

/// A point as it was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    pub id: Uuid,
    /// Where it lives, see [`super::layout::scope`]; nothing when its payload was not asked for.
    pub scope: Option<Arc<str>>,
    /// The document's own fields.
    pub payload: Payload,
    /// The text of keyword search.
    pub keywords: Option<String>,
    pub vectors: BTreeMap<String, Vec<f32>>,
}

/// A point with the engine's own score.
#[derive(Debug, Clone)]
pub struct Scored {
    pub point: Found,
    pub score: f32,
}

/// What a read brings along besides the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub payload: bool,
    pub vectors: bool,
}

impl Read {
    pub const IDS: Self = Self {
        payload: false,
        vectors: false,
    };
    pub const PAYLOAD: Self = Self {
        payload: true,
        vectors: false,
    };
    pub const ALL: Self = Self {
        payload: true,
        vectors: true,
    };
}

/// A condition that an engine decides exactly. Paths are those of the stored payload.
#[derive(Debug, Clone, PartialEq)]
pub enum Cond {
    /// All of them; of none, everything.
    All(Vec<Cond>),
    /// One of them; of none, nothing.
    Any(Vec<Cond>),
    Not(Box<Cond>),
    /// The keyword (or one of the array) is one of these.
    Keyword {
        path: &'static str,
        any: Vec<String>,
    },
    /// The integer (or one of the array) is one of these.
    Term {
        path: &'static str,
        any: Vec<i64>,
    },
    Ids(Vec<Uuid>),
}

impl Cond {
    /// The condition that holds everywhere.
    pub fn everything() -> Cond {
        Cond::All(Vec::new())
    }

    /// Whether it is known to hold everywhere.
    pub fn is_everything(&self) -> bool {
        matches!(self, Cond::All(members) if members.is_empty())
    }

    /// Both conditions.
    pub fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::All(mut members), Cond::All(more)) => {
                members.extend(more);
                Cond::All(members)
            }
            (Cond::All(members), one) | (one, Cond::All(members)) if members.is_empty() => one,
            (Cond::All(mut members), one) => {
                members.push(one);
                Cond::All(members)
            }
            (one, other) => Cond::All(vec![one, other]),
        }
    }
}

/// What a query scores by.
#[derive(Debug, Clone)]
pub enum Score {
    Nearest {
        index: String,
        distance: Distance,
        vector: Vec<f32>,
    },
    /// BM25 over the keywords, with the statistics of the corpus alone.
    Keywords { text: String, corpus: Cond },
}

/// One ranked read of one shard.
#[derive(Debug, Clone)]
pub struct Query {
    pub score: Score,
    pub filter: Cond,
    pub limit: usize,
    pub read: Read,
}

/// An engine. Its caller has put the reach into every condition.
#[async_trait]
pub trait Shards: Send + Sync + 'static {
    /// The shards that may hold documents of these collections. While the answer is the same, so is what is read by it:
    /// collections may come to live in a shard, and move to another.
    async fn of(&self, namespace_id: &str, collection_ids: &[String]) -> Result<Vec<Arc<Shard>>>;

    /// The shard that the collection's documents go to, made if absent.
    async fn ensure(&self, collection: &CollectionSpec) -> Result<Arc<Shard>>;

    /// Forgets that a collection lives anywhere.
    async fn forget(&self, namespace_id: &str, collection_id: &str) -> Result<()>;

    async fn upsert(&self, shard: &Arc<Shard>, points: Vec<Point>) -> Result<()>;

    async fn retrieve(&self, shard: &Arc<Shard>, ids: Vec<Uuid>, read: Read) -> Result<Vec<Found>>;

    /// Points in the order of their ids, from `from` on (inclusive).
    async fn scroll(
        &self,
        shard: &Arc<Shard>,
        filter: Cond,
        from: Option<Uuid>,
        limit: usize,
        read: Read,
    ) -> Result<Vec<Found>>;

    /// Exact.
    async fn count(&self, shard: &Arc<Shard>, filter: Cond) -> Result<u64>;

    /// Best first.
    async fn query(&self, shard: &Arc<Shard>, query: Query) -> Result<Vec<Scored>>;

    async fn delete(&self, shard: &Arc<Shard>, filter: Cond) -> Result<()>;

    async fn flush(&self) -> Result<()>;

    /// Whether the engine answers and has room.
    async fn ping(&self) -> Result<()>;

    async fn close(&self) -> Result<()>;
}
