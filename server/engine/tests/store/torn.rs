//! The embedded engine's log cut at many places of its end, and with a bit flipped at many others: the store opens with
//! nothing of what was flushed lost or changed, or says which shard is damaged, and takes what is written next.
//!
//! `LOUPE_TEST_LONG=1` cuts it at every byte of its last 4 KiB and flips 1,000 bits; `LOUPE_SEED` repeats a run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loupe_engine::store::edge::{Edge, EdgeOptions};
use loupe_engine::store::{
    CollectionSpec, Distance, DocStore, Document, ListQuery, Selection, StoreError, WithVectors,
};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tempfile::TempDir;

use crate::edge::options;
use crate::world::{document, reach, spec};

/// Bytes of the log's end that it is cut in.
const TAIL: u64 = 4096;

/// Longer files are sparse: all that these few documents take of them is at their beginnings.
const USED: u64 = 1 << 20;

/// What may be read of each document: each state since the flush, and none before its first or after its removal.
type Allowed = BTreeMap<String, Vec<Option<u64>>>;

fn collection() -> CollectionSpec {
    spec("ns", "col", &[("text", 4, Distance::Dot)])
}

/// A document that says in each of its parts which write it is of.
fn numbered(part: u64, number: u64) -> Document {
    let text = format!("document {part} as it was written at {number}");
    let mut made = document(
        "col",
        &part.to_string(),
        json!({"number": number, "text": text}),
    );
    made.vectors = [("text".to_owned(), vec![number as f32; 4])].into();
    made.keywords = Some(text);
    made
}

/// Nothing is flushed but by the test.
fn patient() -> EdgeOptions {
    EdgeOptions {
        flush_every: Duration::from_secs(3600),
        optimize_every: Duration::from_secs(3600),
        ..options()
    }
}

/// A store with flushed and other writes, as a process that is killed leaves it.
async fn left(dir: &Path) -> Allowed {
    let source = tempfile::tempdir().unwrap();
    let store = Edge::open(source.path(), patient()).unwrap();
    let mut states: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut number = 0;
    for part in (0..24).chain(0..8) {
        number += 1;
        let written = vec![numbered(part, number)];
        store.upsert(&collection(), written).await.unwrap();
        states.insert(part, Some(number));
    }
    store.flush().await.unwrap();
    let mut allowed: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
    for part in 0..32 {
        allowed.insert(part, vec![states.get(&part).copied().flatten()]);
    }
    for part in (4..32).chain(0..12) {
        number += 1;
        let state = if part % 10 == 9 {
            let ids = vec![numbered(part, 0).document_id];
            let reach = reach("ns", &["col"]);
            store.delete(&reach, Selection::Ids(ids)).await.unwrap();
            None
        } else {
            let written = vec![numbered(part, number)];
            store.upsert(&collection(), written).await.unwrap();
            Some(number)
        };
        allowed.entry(part).or_default().push(state);
    }
    copy(source.path(), dir);
    let by_id = |(part, states): (u64, Vec<Option<u64>>)| (numbered(part, 0).document_id, states);
    allowed.into_iter().map(by_id).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
            continue;
        }
        let mut used = Vec::new();
        let file = File::open(&from).unwrap();
        (&file).take(USED).read_to_end(&mut used).unwrap();
        let mut copied = File::create(&to).unwrap();
        copied.write_all(&used).unwrap();
        copied.set_len(file.metadata().unwrap().len()).unwrap();
    }
}

/// The file that records are appended to, and where they end.
fn log_of(dir: &Path) -> (PathBuf, u64) {
    let shards = fs::read_dir(dir.join("shards")).unwrap();
    let mut logs = shards.map(|shard| shard.unwrap().path().join("wal/open-1"));
    let log = logs.next().unwrap();
    assert!(logs.next().is_none(), "one shard");
    let mut used = Vec::new();
    let file = File::open(&log).unwrap();
    file.take(USED).read_to_end(&mut used).unwrap();
    let end = used.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(end as u64 > 2 * TAIL, "{end} bytes are too few");
    (log, end as u64)
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut(u64),
    Flip(u64, u32),
}

impl Damage {
    fn apply(self, log: &Path) {
        let mut file = File::options().read(true).write(true).open(log).unwrap();
        match self {
            Self::Cut(at) => file.set_len(at).unwrap(),
            Self::Flip(at, bit) => {
                let mut byte = [0];
                file.seek(SeekFrom::Start(at)).unwrap();
                file.read_exact(&mut byte).unwrap();
                byte[0] ^= 1 << bit;
                file.seek(SeekFrom::Start(at)).unwrap();
                file.write_all(&byte).unwrap();
            }
        }
    }
}

async fn all(store: &Edge) -> Result<Vec<Document>, StoreError> {
    let query = ListQuery {
        limit: 1_000,
        vectors: WithVectors::Yes,
        ..ListQuery::default()
    };
    let page = store.list(&reach("ns", &["col"]), query).await?;
    Ok(page.documents)
}

/// Opens a damaged store; false when it refuses.
async fn survives(dir: &Path, allowed: &Allowed, damage: Damage) -> bool {
    let store = Edge::open(dir, patient()).unwrap();
    let found = match all(&store).await {
        Ok(found) => found,
        Err(error) => {
            let named = error.to_string().contains("shard");
            assert!(named, "{damage:?}: nobody knows what is damaged: {error}");
            return false;
        }
    };
    let mut found: BTreeMap<String, Document> = found
        .into_iter()
        .map(|one| (one.document_id.clone(), one))
        .collect();
    for (id, states) in allowed {
        let one = found.remove(id);
        let read = match &one {
            Some(one) => {
                let payload = one.payload.get("number").and_then(|said| said.as_u64());
                vec![payload.or(Some(0)), Some(one.vectors["text"][0] as u64)]
            }
            None => vec![None],
        };
        assert!(
            read.iter().all(|number| states.contains(number)),
            "{damage:?}: {one:?} is none of {states:?}"
        );
    }
    assert!(found.is_empty(), "{damage:?}: nobody wrote {found:?}");
    // What is acknowledged now is there, now and later.
    let written = sorted((0..40).map(|part| numbered(part, 1_000)).collect());
    for some in written.chunks(8) {
        store.upsert(&collection(), some.to_vec()).await.unwrap();
    }
    assert_eq!(sorted(all(&store).await.unwrap()), written, "{damage:?}");
    drop(store);
    let store = Edge::open(dir, patient()).unwrap();
    assert_eq!(sorted(all(&store).await.unwrap()), written, "{damage:?}");
    true
}

fn sorted(mut documents: Vec<Document>) -> Vec<Document> {
    documents.sort_by(|a, b| a.document_id.cmp(&b.document_id));
    documents
}

/// Places that are tried where nobody asks for all.
const FEW: u64 = 20;

/// Whether all are asked for, and what chooses them otherwise.
fn chosen() -> (bool, StdRng) {
    let seed = std::env::var("LOUPE_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("LOUPE_SEED={seed}");
    let long = std::env::var_os("LOUPE_TEST_LONG").is_some();
    (long, StdRng::seed_from_u64(seed))
}

async fn tried(damages: impl FnOnce(u64) -> Vec<Damage>) {
    let dir = tempfile::tempdir().unwrap();
    let allowed = left(dir.path()).await;
    let (_, end) = log_of(dir.path());
    let damages = damages(end);
    let (count, mut refused) = (damages.len(), 0);
    for damage in damages {
        let damaged = TempDir::new().unwrap();
        copy(dir.path(), damaged.path());
        damage.apply(&log_of(damaged.path()).0);
        refused += usize::from(!survives(damaged.path(), &allowed, damage).await);
    }
    println!("{count} places, {refused} refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_cut_loses_nothing_that_was_flushed() {
    let (long, mut rng) = chosen();
    tried(|end| match long {
        true => (end - TAIL..end).map(Damage::Cut).collect(),
        false => (0..FEW)
            .map(|_| Damage::Cut(rng.random_range(end - TAIL..end)))
            .collect(),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_a_log_changes_no_answer() {
    let (long, mut rng) = chosen();
    tried(|end| {
        let mut flips = vec![Damage::Flip(0, 0), Damage::Flip(5, 1), Damage::Cut(0)];
        let random = |_| Damage::Flip(rng.random_range(0..end), rng.random_range(0..8));
        flips.extend((0..if long { 1_000 } else { FEW }).map(random));
        flips
    })
    .await;
}
