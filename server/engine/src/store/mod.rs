//! Documents, vectors, payload filters and keywords behind one trait: [`DocStore`].
//!
//! Embedded: [`edge`] (`qdrant-edge`, in process). Past one machine: [`remote`] (a Qdrant cluster). Both pass the one
//! conformance suite in `tests/store/`, against an exact in-memory oracle.

pub mod edge;
mod facets;
pub mod layout;
pub mod packed;
mod payload;
pub mod pushdown;
pub mod remote;
pub mod shards;

use std::collections::BTreeMap;

use async_trait::async_trait;
use loupe_wire::Value;

use crate::filter::Filter;

pub use edge::{Edge, EdgeOptions};
pub use facets::Counts;
pub use layout::view;
pub use payload::Payload;
pub use remote::{Remote, RemoteOptions};

/// What a call may touch. The store itself ANDs it into every filter, facet, count and delete, never the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reach {
    pub namespace_id: String,
    /// Collections of that namespace. Empty reaches nothing.
    pub collection_ids: Vec<String>,
    /// Set for keys of end users: only documents that this principal owns, was granted or that are public
    /// (`_internal._acl` = {owner, read[], write[], public}).
    pub principal: Option<String>,
}

/// How the distance of two vectors of an index is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distance {
    Cosine,
    Dot,
    Euclid,
}

/// One named vector index of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct VectorSpec {
    /// `{extractor}_{version}_{suffix}`, or the caller's name for vectors of its own.
    pub name: String,
    pub dims: usize,
    pub distance: Distance,
}

/// Bytes of a vector's name.
const LONGEST_NAME: usize = 200;

/// Refuses what cannot be a vector's name. The engines make a folder of it, so theirs is the rule; whoever lets a name in
/// asks first, for a document that was acknowledged could never be written under another one.
///
/// # Errors
/// A sentence about the name.
pub fn check_vector_name(name: &str) -> std::result::Result<(), String> {
    const FORBIDDEN: [char; 9] = ['<', '>', ':', '"', '/', '\\', '|', '?', '*'];
    let forbidden = |character: char| character.is_control() || FORBIDDEN.contains(&character);
    let is_folder = !matches!(name.trim(), "" | "." | "..");
    if is_folder && name.len() <= LONGEST_NAME && !name.contains(forbidden) {
        return Ok(());
    }
    Err(format!(
        "a vector's name has 1 to {LONGEST_NAME} bytes, is not . or .., and has no control character and none of {}",
        FORBIDDEN.map(String::from).join(" ")
    ))
}

/// Where documents of a collection live and with which vectors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct CollectionSpec {
    pub namespace_id: String,
    pub collection_id: String,
    pub vectors: Vec<VectorSpec>,
}

/// A document as stored. `payload` holds user fields at the top level and system fields under `_internal`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Document {
    /// `doc_` + 32 hex digits; see [`document_id`].
    pub document_id: String,
    pub collection_id: String,
    pub payload: Payload,
    /// Index name -> vector. Present on writes; on reads only when asked for.
    #[serde(default)]
    pub vectors: BTreeMap<String, Vec<f32>>,
    /// The text that keyword search (`lexical`) reads; read with the vectors. Never part of an answer.
    #[serde(default)]
    pub keywords: Option<String>,
}

/// Deterministic id of one part of one object in one collection: a repeated chunk writes the same ids.
pub fn document_id(collection_id: &str, object_id: &str, part: &str) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for piece in [collection_id, object_id, part] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece.as_bytes());
    }
    format!("doc_{}", hex::encode(&hash.finalize()[..16]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithVectors {
    #[default]
    No,
    Yes,
}

/// Which documents a delete removes.
#[derive(Debug, Clone)]
pub enum Selection {
    Ids(Vec<String>),
    Matching(Option<Filter>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Debug, Clone)]
pub struct Sort {
    /// Dot path.
    pub field: String,
    pub direction: Direction,
}

/// A page of a listing. Without `sort` the order is by document id, so a cursor never skips or repeats.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub filter: Option<Filter>,
    pub sort: Option<Sort>,
    pub limit: usize,
    pub offset: usize,
    /// [`ListPage::next`] of the page before.
    pub cursor: Option<String>,
    pub vectors: WithVectors,
}

#[derive(Debug, Clone, Default)]
pub struct ListPage {
    pub documents: Vec<Document>,
    /// Opaque; absent on the last page.
    pub next: Option<String>,
}

/// What a search ranks by.
#[derive(Debug, Clone)]
pub enum Ranking {
    /// Similarity to a vector of the named index. Cosine and dot: higher is nearer; Euclid: 1 / (1 + distance).
    Nearest { index: String, vector: Vec<f32> },
    /// BM25 over [`Document::keywords`].
    Keywords { text: String },
}

#[derive(Debug, Clone)]
pub struct SearchQuery {
    pub ranking: Ranking,
    pub filter: Option<Filter>,
    pub limit: usize,
    pub min_score: Option<f32>,
    pub vectors: WithVectors,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub document: Document,
    pub score: f32,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FacetCount {
    pub value: Value,
    pub count: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The caller's vectors or filter cannot be stored or run; safe to show.
    #[error("{0}")]
    Invalid(String),
    /// This cursor is none of the listing's.
    #[error("the cursor is not one of this listing")]
    Cursor(String),
    /// Less than max(1 GiB, 5 %) of the disk is free: writes are refused, reads go on.
    #[error("the disk is almost full: writes are refused until space is freed")]
    DiskFull,
    /// A dependency is away or busy; try again.
    #[error("the document store is not available: {0}")]
    Unavailable(String),
    #[error("the document store failed: {0}")]
    Internal(String),
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// Documents and their vectors. Every method is cancel-safe and never blocks the async runtime.
#[async_trait]
pub trait DocStore: Send + Sync + 'static {
    /// Inserts or replaces whole documents. Refuses NaN, infinities and wrong dimensions before anything is written.
    /// Acknowledged writes survive a killed process; [`DocStore::flush`] makes them survive a power cut.
    async fn upsert(&self, collection: &CollectionSpec, documents: Vec<Document>) -> Result<()>;

    /// Returns when everything upserted before the call is on disk.
    async fn flush(&self) -> Result<()>;

    /// The documents found, each once, in the order of `ids`; unknown or unreachable ids are left out.
    async fn get(
        &self,
        reach: &Reach,
        ids: &[String],
        vectors: WithVectors,
    ) -> Result<Vec<Document>>;

    /// How many were removed.
    async fn delete(&self, reach: &Reach, which: Selection) -> Result<u64>;

    async fn list(&self, reach: &Reach, query: ListQuery) -> Result<ListPage>;

    async fn count(&self, reach: &Reach, filter: Option<&Filter>) -> Result<u64>;

    /// Best first; ties by document id. A named index that no reachable collection has gives no rows.
    async fn search(&self, reach: &Reach, query: SearchQuery) -> Result<Vec<Hit>>;

    /// The most frequent values of a field, most frequent first, ties by value.
    async fn facet(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        field: &str,
        limit: usize,
    ) -> Result<Vec<FacetCount>>;

    /// Removes every document of a collection.
    async fn drop_collection(&self, namespace_id: &str, collection_id: &str) -> Result<()>;

    /// Whether documents can be read and written.
    async fn ping(&self) -> Result<()>;

    /// Flushes and closes; later calls answer [`StoreError::Unavailable`].
    async fn close(&self) -> Result<()>;
}
