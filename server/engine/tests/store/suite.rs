//! What every document store does, whatever its engine.

mod apart;
mod documents;
mod listing;
mod ranking;

use async_trait::async_trait;
use loupe_engine::filter::Filter;
use loupe_engine::store::{
    DocStore, Document, ListQuery, Ranking, Reach, SearchQuery, WithVectors,
};

pub use self::apart::*;
pub use self::documents::*;
pub use self::listing::*;
pub use self::ranking::*;
use crate::oracle::Oracle;
use crate::world::{documents as some_documents, reach, text_spec};

/// A store and the way to open it anew.
#[async_trait]
pub trait Bed: Send {
    fn store(&self) -> &dyn DocStore;
    async fn reopen(&mut self);
}

/// One `#[tokio::test]` for every function named here, on the bed that the expression makes.
#[macro_export]
macro_rules! conformance {
    ($bed:expr) => {
        $crate::conformance!(@ $bed,
            upserts_and_replaces, keeps_the_last_of_equal_ids, refuses_bad_vectors, refuses_the_ids_of_others,
            lists_in_the_order_of_ids, lists_in_the_order_of_values, answers_every_operator_as_the_oracle,
            answers_nested_filters, counts_facets, ranks_by_nearness, ranks_by_every_distance,
            ranks_with_a_filter_that_lets_little_through, ranks_by_keywords, merges_shards, keeps_namespaces_apart,
            keeps_principals_apart, deletes_by_ids, deletes_by_filter, drops_collections, moves_to_new_vectors,
            keeps_everything_over_a_reopening, works_without_vectors, is_unavailable_when_closed);
    };
    (@ $bed:expr, $($name:ident),*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let mut bed = $bed.await;
            $crate::suite::$name(&mut bed).await;
        })*
    };
}

pub(super) fn ids<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<String> {
    documents
        .into_iter()
        .map(|d| d.document_id.clone())
        .collect()
}

pub(super) async fn all(
    store: &dyn DocStore,
    reach: &Reach,
    filter: Option<Filter>,
) -> Vec<Document> {
    let query = ListQuery {
        filter,
        limit: 10_000,
        ..ListQuery::default()
    };
    store.list(reach, query).await.unwrap().documents
}

pub(super) fn nearest(vector: &[f32], filter: Option<Filter>, limit: usize) -> SearchQuery {
    let ranking = Ranking::Nearest {
        index: "text".to_owned(),
        vector: vector.to_vec(),
    };
    SearchQuery {
        ranking,
        filter,
        limit,
        min_score: None,
        vectors: WithVectors::No,
    }
}

pub(super) fn keywords(text: &str, limit: usize) -> SearchQuery {
    let ranking = Ranking::Keywords {
        text: text.to_owned(),
    };
    SearchQuery {
        ranking,
        filter: None,
        limit,
        min_score: None,
        vectors: WithVectors::No,
    }
}

pub(super) fn stripped(document: &Document) -> Document {
    Document {
        vectors: Default::default(),
        keywords: None,
        ..document.clone()
    }
}

/// A collection of random documents, in the store and in the oracle.
pub(super) async fn filled(bed: &mut impl Bed, n: usize) -> (Reach, Oracle, Vec<Document>) {
    let spec = text_spec("ns_a", "col_a");
    let written = some_documents(&spec, n, 7);
    bed.store().upsert(&spec, written.clone()).await.unwrap();
    let mut oracle = Oracle::default();
    oracle.upsert("ns_a", &written);
    (reach("ns_a", &["col_a"]), oracle, written)
}

pub(super) async fn walk(store: &dyn DocStore, reach: &Reach, mut query: ListQuery) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..1_000 {
        let page = store.list(reach, query.clone()).await.unwrap();
        assert!(page.documents.len() <= query.limit);
        seen.extend(ids(&page.documents));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return seen;
        }
    }
    panic!("the cursor never ends");
}
