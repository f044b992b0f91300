//! The suite on the embedded engine, and what only it does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use loupe_engine::store::edge::{Edge, EdgeOptions, Space};
use loupe_engine::store::{DocStore, Ranking, SearchQuery, Selection, StoreError, WithVectors};
use tempfile::TempDir;

use crate::suite::Bed;
use crate::world::{documents, reach, spec, text_spec};

/// A disk with room, whatever the machine's is like.
pub fn options() -> EdgeOptions {
    EdgeOptions {
        free_space: Arc::new(|_: &Path| {
            Ok(Space {
                free: 1 << 40,
                total: 1 << 40,
            })
        }),
        ..EdgeOptions::default()
    }
}

struct EdgeBed {
    dir: TempDir,
    store: Option<Edge>,
}

#[async_trait]
impl Bed for EdgeBed {
    fn store(&self) -> &dyn DocStore {
        self.store.as_ref().unwrap()
    }

    async fn reopen(&mut self) {
        drop(self.store.take());
        self.store = Some(Edge::open(self.dir.path(), options()).unwrap());
    }
}

async fn bed() -> EdgeBed {
    let dir = tempfile::tempdir().unwrap();
    let store = Edge::open(dir.path(), options()).unwrap();
    EdgeBed {
        dir,
        store: Some(store),
    }
}

crate::conformance!(bed());

#[tokio::test]
async fn refuses_writes_on_a_full_disk_and_goes_on_reading() {
    let dir = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX / 2));
    let probe = free.clone();
    let options = EdgeOptions {
        free_space: Arc::new(move |_: &Path| {
            Ok(Space {
                free: probe.load(Ordering::SeqCst),
                total: 100 << 30,
            })
        }),
        ..options()
    };
    let store = Edge::open(dir.path(), options).unwrap();
    let (spec, reach) = (text_spec("ns", "col"), reach("ns", &["col"]));
    store.upsert(&spec, documents(&spec, 10, 1)).await.unwrap();
    for (bytes, refused) in [((5 << 30) - 1, true), (5 << 30, false), (3 << 30, true)] {
        free.store(bytes, Ordering::SeqCst);
        let written = store.upsert(&spec, documents(&spec, 1, 2)).await;
        assert_eq!(
            matches!(written, Err(StoreError::DiskFull)),
            refused,
            "{bytes}: {written:?}"
        );
        assert_eq!(written.is_ok(), !refused);
        assert!(
            store.count(&reach, None).await.unwrap() >= 10,
            "reads go on"
        );
    }
    let some = documents(&spec, 1, 1).remove(0).document_id;
    assert_eq!(
        store
            .delete(&reach, Selection::Ids(vec![some]))
            .await
            .unwrap(),
        1,
        "deleting is the way out"
    );
}

#[tokio::test]
async fn belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = Edge::open(dir.path(), options()).unwrap();
    let second = Edge::open(dir.path(), options());
    assert!(matches!(second, Err(StoreError::Unavailable(_))));
    drop(first);
    Edge::open(dir.path(), options()).unwrap();
}

#[tokio::test]
async fn flushes_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let options = EdgeOptions {
        flush_every: Duration::from_millis(50),
        ..options()
    };
    let store = Edge::open(dir.path(), options).unwrap();
    let spec = text_spec("ns", "col");
    store.upsert(&spec, documents(&spec, 10, 1)).await.unwrap();
    assert_eq!(store.progress().written, 1);
    for _ in 0..1_200 {
        if store.progress().flushed == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not flushed after a minute");
}

#[tokio::test]
async fn keeps_few_shards_open() {
    let dir = tempfile::tempdir().unwrap();
    let options = EdgeOptions {
        open_shards: 2,
        ..options()
    };
    let store = Edge::open(dir.path(), options).unwrap();
    let collections: Vec<String> = (0..6).map(|i| format!("col_{i}")).collect();
    for round in 0..2 {
        for (i, collection) in collections.iter().enumerate() {
            let distance = loupe_engine::store::Distance::Dot;
            let spec = spec("ns", collection, &[("text", i + 1, distance)]);
            store
                .upsert(&spec, documents(&spec, 5, round))
                .await
                .unwrap();
        }
    }
    for collection in &collections {
        assert_eq!(
            store
                .count(&reach("ns", &[collection]), None)
                .await
                .unwrap(),
            10,
            "closed shards open again"
        );
    }
}

#[tokio::test]
async fn an_index_keeps_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let options = EdgeOptions {
        indexing_threshold_kb: Some(50),
        // An index is built slowly by a debug build beside others.
        deadline: Duration::from_secs(120),
        ..options()
    };
    let store = Edge::open(dir.path(), options).unwrap();
    let (spec, reach) = (text_spec("ns", "col"), reach("ns", &["col"]));
    let written = documents(&spec, 3_000, 1);
    store.upsert(&spec, written.clone()).await.unwrap();
    let mut oracle = crate::oracle::Oracle::default();
    oracle.upsert("ns", &written);
    store.optimize().await.unwrap();
    let mut found = 0;
    for document in &written[..40] {
        let vector = document.vectors["text"].clone();
        let expected = oracle.nearest(&reach, None, &spec.vectors[0], &vector, 10);
        let ranking = Ranking::Nearest {
            index: "text".to_owned(),
            vector,
        };
        let query = SearchQuery {
            ranking,
            filter: None,
            limit: 10,
            min_score: None,
            vectors: WithVectors::No,
        };
        let hits = store.search(&reach, query).await.unwrap();
        found += expected
            .iter()
            .filter(|(id, _)| hits.iter().any(|h| h.document.document_id == *id))
            .count();
    }
    assert!(found >= 392, "recall {found} of 400");
    assert_eq!(store.count(&reach, None).await.unwrap(), 3_000);
}

/// A read that begins after a write was acknowledged sees it, whatever was kept of earlier reads and by whom.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_kept_of_reads_is_never_older_than_an_acknowledged_write() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Edge::open(dir.path(), options()).unwrap());
    let (spec, reach) = (text_spec("ns", "col"), reach("ns", &["col"]));
    let document = documents(&spec, 1, 1).remove(0);
    let id = [document.document_id.clone()];
    let numbered = |number: u64| {
        let mut document = document.clone();
        document.payload.insert("number".to_owned(), number.into());
        vec![document]
    };
    store.upsert(&spec, numbered(0)).await.unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let mut readers = Vec::new();
    for _ in 0..4 {
        let (store, acknowledged, done) = (store.clone(), acknowledged.clone(), done.clone());
        let (reach, id) = (reach.clone(), id.clone());
        readers.push(tokio::spawn(async move {
            let mut reads = 0_u32;
            while done.load(Ordering::SeqCst) == 0 {
                let least = acknowledged.load(Ordering::SeqCst);
                let found = store.get(&reach, &id, WithVectors::No).await.unwrap();
                let number = found[0].payload["number"].as_u64().unwrap();
                assert!(
                    number >= least,
                    "{number} was read after {least} was written"
                );
                reads += 1;
            }
            reads
        }));
    }
    for number in 1..=300 {
        store.upsert(&spec, numbered(number)).await.unwrap();
        acknowledged.store(number, Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
    done.store(1, Ordering::SeqCst);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    let removed = store
        .delete(&reach, Selection::Ids(id.to_vec()))
        .await
        .unwrap();
    assert_eq!(removed, 1);
    let found = store.get(&reach, &id, WithVectors::No).await.unwrap();
    assert!(found.is_empty(), "what was deleted is gone");
}
