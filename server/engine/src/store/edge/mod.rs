//! The embedded engine, in process: `qdrant-edge`.
//!
//! # Durability
//! A write that was acknowledged survives a killed process: the engine's log has it. It survives a power cut after the
//! next flush, which [`super::DocStore::flush`] does at once and upkeep does every few seconds. So:
//! - a batch's chunk calls `flush` and then announces its documents;
//! - a single write is journalled by the server first. Its rows up to the last acknowledged one may be deleted once a
//!   `flush` that began after that acknowledgement has returned. When the server starts it applies the remaining rows
//!   in their order, calls `flush` and deletes them: an upsert that was applied before changes nothing.
//!
//! # Shards
//! Collections with the same vectors share a shard, for every shard costs threads and memory. The first to come lives
//! there alone, and is read without a condition on its scope, until a second one comes. A large one is left alone: the
//! second then begins another shard, and a collection that grows large among others moves out.
//!
//! # Damage
//! A log that was cut or changed on the disk is looked at before the engine opens it, in `log`.
//!
//! [`Edge::progress`] says how far writes and flushes are, without waiting.

mod catalogue;
mod convert;
mod disk;
mod log;
mod moving;
mod payloads;
mod pool;
mod slot;
mod upkeep;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use qdrant_edge as q;
use uuid::Uuid;

use self::catalogue::Catalogue;
use self::disk::Disk;
pub use self::disk::{Probe, Space, system_probe};
use self::moving::Moves;
use self::payloads::Payloads;
use self::pool::Pool;
use self::slot::Slot;
use self::upkeep::Upkeep;
use super::packed::Packed;
use super::shards::{Cond, Found, Point, Query, Read, Scored, Shard, Shards};
use super::{CollectionSpec, Result, StoreError, layout};

/// The embedded document store.
pub type Edge = Packed<EdgeShards>;

/// Points written at once. The engine holds a segment against its readers for that long, up to 32 points, and the scheduler takes
/// a processor away after 4 ms at the earliest: what else is asked would wait that long beside a batch.
const PIECE: usize = 8;

/// How the embedded store behaves. The defaults are right for one machine.
#[derive(Clone)]
pub struct EdgeOptions {
    /// How often written shards are flushed.
    pub flush_every: Duration,
    /// How often written shards are looked at for indexes to build.
    pub optimize_every: Duration,
    /// After this a call is given up.
    pub deadline: Duration,
    /// Reads at once.
    pub readers: usize,
    /// Writes at once.
    pub writers: usize,
    /// Shards open at once; the least recently used are closed.
    pub open_shards: usize,
    /// Kilobytes of vectors of a segment above which it gets an index; below, search is exact.
    pub indexing_threshold_kb: Option<usize>,
    /// Documents from which on a collection has a shard of its own.
    pub large_collection: usize,
    /// Writes are refused with less than this free,
    pub min_free_bytes: u64,
    /// or less than this share of the disk.
    pub min_free_share: f64,
    /// How free space is found out.
    pub free_space: Probe,
}

impl Default for EdgeOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            flush_every: Duration::from_secs(2),
            optimize_every: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
            readers: (cores * 2).max(4),
            writers: cores.max(2),
            open_shards: 256,
            indexing_threshold_kb: None,
            large_collection: 20_000,
            min_free_bytes: 1 << 30,
            min_free_share: 0.05,
            free_space: system_probe(),
        }
    }
}

impl fmt::Debug for EdgeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeOptions")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// How far the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Writes acknowledged since the store was opened.
    pub written: u64,
    /// How many of those, from the first on, are safe from a power cut.
    pub flushed: u64,
}

/// The shards of one folder.
#[derive(Debug)]
pub struct EdgeShards {
    inner: Arc<Inner>,
    readers: Pool,
    writers: Pool,
    upkeep: Upkeep,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    catalogue: RwLock<Catalogue>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    moves: Moves,
    payloads: Payloads,
    open_shards: usize,
    indexing_threshold_kb: Option<usize>,
    large_collection: usize,
    disk: Disk,
    turn: AtomicU64,
    written: AtomicU64,
    flushed: AtomicU64,
    closed: AtomicBool,
    /// Held while the store is open: two processes on one folder would destroy it.
    _lock: File,
}

impl Packed<EdgeShards> {
    /// Opens the store in a folder, made if absent.
    pub fn open(dir: &Path, options: EdgeOptions) -> Result<Self> {
        let failed = |what: &str, error: std::io::Error| {
            StoreError::Unavailable(format!("{what} {}: {error}", dir.display()))
        };
        fs::create_dir_all(dir.join("shards")).map_err(|error| failed("cannot make", error))?;
        let lock = File::create(dir.join("lock")).map_err(|error| failed("cannot lock", error))?;
        lock.try_lock().map_err(|_| {
            StoreError::Unavailable(format!("{} is in use by another process", dir.display()))
        })?;
        let catalogue = Catalogue::open(dir).map_err(|error| failed("cannot read", error))?;
        let inner = Arc::new(Inner {
            dir: dir.to_owned(),
            catalogue: RwLock::new(catalogue),
            slots: Mutex::new(HashMap::new()),
            moves: Moves::default(),
            payloads: Payloads::default(),
            open_shards: options.open_shards.max(1),
            indexing_threshold_kb: options.indexing_threshold_kb,
            large_collection: options.large_collection.max(1),
            disk: Disk {
                dir: dir.to_owned(),
                probe: options.free_space.clone(),
                min_free_bytes: options.min_free_bytes,
                min_free_share: options.min_free_share,
            },
            turn: AtomicU64::new(0),
            written: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            _lock: lock,
        });
        let upkeep = Upkeep::start(&inner, &options)
            .map_err(|error| StoreError::Unavailable(format!("cannot start a thread: {error}")))?;
        let shards = EdgeShards {
            inner,
            readers: Pool::new(options.readers, options.deadline),
            writers: Pool::new(options.writers, options.deadline),
            upkeep,
        };
        Ok(Self { shards })
    }

    /// How far writes and flushes are.
    pub fn progress(&self) -> Progress {
        // Flushed first: it never runs ahead of written.
        let flushed = self.shards.inner.flushed.load(Ordering::Acquire);
        Progress {
            written: self.shards.inner.written.load(Ordering::Acquire),
            flushed,
        }
    }

    /// Builds the indexes that are due now rather than in the background.
    pub async fn optimize(&self) -> Result<()> {
        let inner = self.shards.inner.clone();
        self.shards.writers.run(move || inner.optimize()).await
    }
}

impl Inner {
    fn slot(&self, shard: &Arc<Shard>) -> Result<Arc<Slot>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.slots.lock();
        let slot = slots.entry(shard.name.clone()).or_insert_with(|| {
            let dir = self.dir.join("shards").join(&shard.name);
            let threshold = self.indexing_threshold_kb;
            Arc::new(Slot::new(shard.clone(), dir, threshold, &self.payloads))
        });
        slot.used.store(turn, Ordering::Relaxed);
        let slot = slot.clone();
        if slots.len() > self.open_shards && !slot.is_open() {
            let open: Vec<_> = slots
                .values()
                .filter(|slot| slot.is_open())
                .cloned()
                .collect();
            drop(slots);
            if open.len() >= self.open_shards
                && let Some(oldest) = open
                    .iter()
                    .min_by_key(|slot| slot.used.load(Ordering::Relaxed))
            {
                oldest.evict();
            }
        }
        Ok(slot)
    }

    fn flush(&self) -> Result<()> {
        let written = self.written.load(Ordering::Acquire);
        let slots: Vec<_> = self.slots.lock().values().cloned().collect();
        for slot in slots {
            slot.flush()?;
        }
        self.flushed.fetch_max(written, Ordering::AcqRel);
        Ok(())
    }

    /// Gives large collections shards of their own, then builds indexes.
    fn optimize(&self) -> Result<()> {
        // Building an index writes the segment anew.
        self.disk.check_write()?;
        self.part()?;
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2));
        let budget = q::ResourceBudget::new(threads, threads);
        let slots: Vec<_> = self.slots.lock().values().cloned().collect();
        for slot in slots.iter().filter(|slot| slot.is_open()) {
            slot.optimize(&budget)?;
            slot.warm();
        }
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let slots: Vec<_> = self.slots.lock().drain().map(|(_, slot)| slot).collect();
        let mut result = Ok(());
        for slot in slots {
            result = result.and(slot.close());
        }
        result
    }

    /// The shards of these vectors that one collection fills so far that no other is to join it.
    fn large(&self, base: &Shard) -> Result<BTreeSet<String>> {
        let alone = self.catalogue.read().alone(&base.vectors);
        let mut large = BTreeSet::new();
        for shard in alone {
            let count = q::CountRequest::new();
            let points = self.slot(&shard)?.with(|shard| shard.count(count))?;
            if points >= self.large_collection {
                large.insert(shard.name.clone());
            }
        }
        Ok(large)
    }

    fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }
}

impl EdgeShards {
    async fn read<T: Send + 'static>(
        &self,
        shard: &Arc<Shard>,
        call: impl FnOnce(&Slot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (inner, shard) = (self.inner.clone(), shard.clone());
        self.readers.run(move || call(&*inner.slot(&shard)?)).await
    }

    async fn write(
        &self,
        shard: &Arc<Shard>,
        call: impl FnOnce(&Slot, &Inner) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (inner, shard) = (self.inner.clone(), shard.clone());
        self.writers
            .run(move || {
                call(&*inner.slot(&shard)?, &inner)?;
                inner.wrote();
                Ok(())
            })
            .await
    }
}

fn catalogue_failed(error: std::io::Error) -> StoreError {
    StoreError::Internal(format!("the catalogue cannot be written: {error}"))
}

#[async_trait]
impl Shards for EdgeShards {
    async fn of(&self, namespace_id: &str, collection_ids: &[String]) -> Result<Vec<Arc<Shard>>> {
        let catalogue = self.inner.catalogue.read();
        let mut found: Vec<Arc<Shard>> = Vec::new();
        for collection in collection_ids {
            for shard in catalogue.of(&layout::scope(namespace_id, collection)) {
                if !found.iter().any(|known| known.name == shard.name) {
                    found.push(shard.clone());
                }
            }
        }
        Ok(found)
    }

    async fn ensure(&self, collection: &CollectionSpec) -> Result<Arc<Shard>> {
        let scope = layout::scope(&collection.namespace_id, &collection.collection_id);
        let base = Shard::of(&collection.vectors);
        if let Some(known) = self.inner.catalogue.read().home(&scope, &base.vectors) {
            return Ok(known);
        }
        let inner = self.inner.clone();
        self.writers
            .run(move || {
                inner.disk.check_write()?;
                let large = inner.large(&base)?;
                let settled = inner.catalogue.write().settle(&scope, base, &large);
                settled.map_err(catalogue_failed)
            })
            .await
    }

    async fn forget(&self, namespace_id: &str, collection_id: &str) -> Result<()> {
        let scope = layout::scope(namespace_id, collection_id);
        let inner = self.inner.clone();
        self.writers
            .run(move || {
                let forgotten = inner.catalogue.write().forget(&scope);
                forgotten.map_err(catalogue_failed)
            })
            .await
    }

    async fn upsert(&self, shard: &Arc<Shard>, points: Vec<Point>) -> Result<()> {
        self.write(shard, move |slot, inner| {
            inner.disk.check_write()?;
            let mut points = points.into_iter();
            loop {
                let piece: Vec<Point> = points.by_ref().take(PIECE).collect();
                if piece.is_empty() {
                    return Ok(());
                }
                inner.moves.upsert(slot, piece)?;
                std::thread::yield_now();
            }
        })
        .await
    }

    async fn retrieve(&self, shard: &Arc<Shard>, ids: Vec<Uuid>, read: Read) -> Result<Vec<Found>> {
        if read == Read::PAYLOAD
            && let Some(points) = self.inner.slot(shard)?.kept(&ids)
        {
            return Ok(points);
        }
        self.read(shard, move |slot| slot.retrieve(&ids, read))
            .await
    }

    async fn scroll(
        &self,
        shard: &Arc<Shard>,
        filter: Cond,
        from: Option<Uuid>,
        limit: usize,
        read: Read,
    ) -> Result<Vec<Found>> {
        self.read(shard, move |slot| {
            let points = slot.scroll(filter, from, limit, read)?;
            Ok(points.into_iter().map(layout::found).collect())
        })
        .await
    }

    async fn count(&self, shard: &Arc<Shard>, filter: Cond) -> Result<u64> {
        self.read(shard, move |slot| {
            let mut request = q::CountRequest::new();
            request.filter = convert::restriction(filter)?;
            Ok(slot.with(|shard| shard.count(request))? as u64)
        })
        .await
    }

    async fn query(&self, shard: &Arc<Shard>, query: Query) -> Result<Vec<Scored>> {
        self.read(shard, move |slot| slot.query(query)).await
    }

    async fn delete(&self, shard: &Arc<Shard>, filter: Cond) -> Result<()> {
        self.write(shard, move |slot, inner| {
            inner.disk.check_delete()?;
            inner.moves.delete(slot, &filter)
        })
        .await
    }

    async fn flush(&self) -> Result<()> {
        let inner = self.inner.clone();
        if inner.closed.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        }
        self.writers.run(move || inner.flush()).await
    }

    async fn ping(&self) -> Result<()> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        }
        self.inner.disk.check_write()
    }

    async fn close(&self) -> Result<()> {
        self.upkeep.stop();
        let inner = self.inner.clone();
        self.writers.run(move || inner.close()).await
    }
}

impl Drop for EdgeShards {
    fn drop(&mut self) {
        // The threads let go of the folder before it can be opened again.
        self.upkeep.join();
    }
}
