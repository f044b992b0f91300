//! The document store with a count of what was written, so that answers made of older documents are known to be old.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use loupe_engine::{
    filter::Filter,
    store::{
        CollectionSpec, DocStore, Document, FacetCount, Hit, ListPage, ListQuery, Reach, Result,
        SearchQuery, Selection, WithVectors,
    },
};
use moka::sync::Cache;

/// Counts that are kept at most, and how long: who goes away from a write leaves it to end after its version was raised.
const MOST_COUNTS: u64 = 10_000;
const COUNTS_LAST: Duration = Duration::from_secs(10);

/// Versions of namespaces: how often documents of each were about to change or had changed.
#[derive(Clone)]
pub struct Versions {
    counts: Cache<String, Arc<AtomicU64>>,
    /// Where a namespace begins that was forgotten: never where it was before.
    base: Arc<AtomicU64>,
}

impl Default for Versions {
    fn default() -> Self {
        let base = Arc::new(AtomicU64::new(0));
        Self {
            counts: Cache::new(100_000),
            base,
        }
    }
}

impl Versions {
    fn of(&self, namespace_id: &str) -> Arc<AtomicU64> {
        self.counts.get_with(namespace_id.to_owned(), || {
            // Far above every count of the one that was forgotten.
            let begin = self.base.fetch_add(1, Ordering::AcqRel) << 40;
            Arc::new(AtomicU64::new(begin))
        })
    }

    pub fn get(&self, namespace_id: &str) -> u64 {
        self.of(namespace_id).load(Ordering::Acquire)
    }

    /// Raises the version now and, however the write ends, once more then.
    fn writing(&self, namespace_id: &str) -> Writing {
        let count = self.of(namespace_id);
        count.fetch_add(1, Ordering::AcqRel);
        Writing(count)
    }
}

struct Writing(Arc<AtomicU64>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// A number of documents, and the version of the namespace that they were counted in.
type Counted = (u64, u64);

/// A store whose writes are counted.
pub struct Watched {
    store: Arc<dyn DocStore>,
    versions: Versions,
    /// How many documents are within reach: the store looks at each of them to tell. None where others write to it, too.
    counts: Option<Cache<Reach, Counted>>,
}

impl Watched {
    /// `alone` where nobody but this process writes to the store.
    pub fn new(store: Arc<dyn DocStore>, versions: Versions, alone: bool) -> Self {
        Self {
            store,
            versions,
            counts: alone.then(|| {
                let counts = Cache::builder().max_capacity(MOST_COUNTS);
                counts.time_to_live(COUNTS_LAST).build()
            }),
        }
    }
}

#[async_trait]
impl DocStore for Watched {
    async fn upsert(&self, collection: &CollectionSpec, documents: Vec<Document>) -> Result<()> {
        let _writing = self.versions.writing(&collection.namespace_id);
        self.store.upsert(collection, documents).await
    }

    async fn flush(&self) -> Result<()> {
        self.store.flush().await
    }

    async fn get(
        &self,
        reach: &Reach,
        ids: &[String],
        vectors: WithVectors,
    ) -> Result<Vec<Document>> {
        self.store.get(reach, ids, vectors).await
    }

    async fn delete(&self, reach: &Reach, which: Selection) -> Result<u64> {
        let _writing = self.versions.writing(&reach.namespace_id);
        self.store.delete(reach, which).await
    }

    async fn list(&self, reach: &Reach, query: ListQuery) -> Result<ListPage> {
        self.store.list(reach, query).await
    }

    async fn count(&self, reach: &Reach, filter: Option<&Filter>) -> Result<u64> {
        let (Some(counts), None) = (&self.counts, filter) else {
            return self.store.count(reach, filter).await;
        };
        let version = self.versions.get(&reach.namespace_id);
        if let Some((count, counted_in)) = counts.get(reach)
            && counted_in == version
        {
            return Ok(count);
        }
        let count = self.store.count(reach, None).await?;
        // What is written meanwhile has raised the version, and once more when it ends.
        if self.versions.get(&reach.namespace_id) == version {
            counts.insert(reach.clone(), (count, version));
        }
        Ok(count)
    }

    async fn search(&self, reach: &Reach, query: SearchQuery) -> Result<Vec<Hit>> {
        self.store.search(reach, query).await
    }

    async fn facet(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        field: &str,
        limit: usize,
    ) -> Result<Vec<FacetCount>> {
        self.store.facet(reach, filter, field, limit).await
    }

    async fn drop_collection(&self, namespace_id: &str, collection_id: &str) -> Result<()> {
        let _writing = self.versions.writing(namespace_id);
        self.store
            .drop_collection(namespace_id, collection_id)
            .await
    }

    async fn ping(&self) -> Result<()> {
        self.store.ping().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_raises_the_version_twice() {
        let versions = Versions::default();
        let before = versions.get("ns_a");
        let other = versions.get("ns_b");
        let writing = versions.writing("ns_a");
        let meanwhile = versions.get("ns_a");
        drop(writing);
        assert!(before < meanwhile && meanwhile < versions.get("ns_a"));
        assert_eq!(versions.get("ns_b"), other);
        versions.counts.invalidate("ns_a");
        assert!(versions.get("ns_a") > meanwhile + 1);
    }
}
