//! One shard on disk: opened when asked for, closed and opened again after a panic, closed when too many are open.

use std::any::Any;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use qdrant_edge as q;
use uuid::Uuid;

use super::super::shards::{Cond, Found, Point, Query, Read, Scored, Shard};
use super::super::{Result, StoreError, layout};
use super::payloads::{OfShard, Payloads, Written};
use super::{convert, log};

/// The file by which the engine says that a shard was made.
const MADE: &str = "edge_config.json";

/// Where the engine keeps a segment's payloads.
const PAYLOADS: &str = "payload_storage";

/// Bytes of a shard's payloads that are read ahead at most.
const AHEAD: u64 = 512 << 20;

/// Passes in which what is apart is brought together at most.
const PASSES: usize = 3;

/// A place for a shard. Every call holds the lock for reading, so none works on a shard that is being replaced.
#[derive(Debug)]
pub struct Slot {
    pub shard: Arc<Shard>,
    dir: PathBuf,
    indexing_threshold_kb: Option<usize>,
    open: RwLock<Option<q::EdgeShard>>,
    closed: AtomicBool,
    written: AtomicU64,
    flushed: AtomicU64,
    optimized: AtomicU64,
    settled: AtomicU64,
    /// Points written since all of them were brought together.
    apart: AtomicU64,
    looked: AtomicU64,
    /// Whether payloads lie on the disk alone, as far as is known.
    cold: AtomicBool,
    payloads: OfShard,
    /// The turn of the last call: the least recently used is closed first.
    pub used: AtomicU64,
}

impl Slot {
    pub fn new(
        shard: Arc<Shard>,
        dir: PathBuf,
        indexing_threshold_kb: Option<usize>,
        payloads: &Payloads,
    ) -> Self {
        Self {
            payloads: payloads.of_shard(),
            shard,
            dir,
            indexing_threshold_kb,
            open: RwLock::new(None),
            closed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            optimized: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            apart: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            cold: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }

    /// Calls the engine. A panic in it costs this call alone: the shard is opened anew from its files.
    pub fn with<T>(&self, call: impl FnOnce(&q::EdgeShard) -> q::OperationResult<T>) -> Result<T> {
        let guard = self.opened()?;
        let Some(shard) = guard.as_ref() else {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        };
        match catch_unwind(AssertUnwindSafe(|| call(shard))) {
            Ok(result) => result.map_err(convert::error),
            Err(panic) => {
                drop(guard);
                tracing::error!(
                    shard = self.shard.name,
                    panic = message(&panic),
                    "the engine panicked; reopening"
                );
                self.shut();
                Err(StoreError::Unavailable(
                    "a part of it had to be restarted".to_owned(),
                ))
            }
        }
    }

    /// [`Slot::with`] for a change.
    pub fn update(&self, operation: q::UpdateOperation) -> Result<()> {
        let written = convert::written(&operation);
        if let Written::Points(ids) = &written {
            self.apart.fetch_add(ids.len() as u64, Ordering::Relaxed);
        }
        let updated = self.with(|shard| shard.update(operation));
        // One that failed may have changed something all the same.
        self.payloads.forget(written);
        updated?;
        self.written.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Puts everything written before the call on disk.
    pub fn flush(&self) -> Result<()> {
        let written = self.written.load(Ordering::Acquire);
        if self.flushed.load(Ordering::Acquire) < written {
            self.with(q::EdgeShard::flush)?;
            self.flushed.fetch_max(written, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Builds indexes and merges segments where that is due; once nothing was written since the last time, it settles.
    pub fn optimize(&self, budget: &q::ResourceBudget) -> Result<bool> {
        let written = self.written.load(Ordering::Acquire);
        if self.optimized.load(Ordering::Acquire) == written {
            return self.settle(written, budget);
        }
        let changed = self.with(|shard| shard.optimize_with_budget(budget.clone()))?;
        self.optimized.fetch_max(written, Ordering::AcqRel);
        self.cold.fetch_or(changed, Ordering::AcqRel);
        Ok(changed)
    }

    /// Brings everything into one index, so that a search walks one graph and looks at nothing one by one. That writes every
    /// point anew: it is worth it when a tenth of them came since, and a segment as large as the engine makes stays apart.
    fn settle(&self, written: u64, budget: &q::ResourceBudget) -> Result<bool> {
        if self.settled.swap(written, Ordering::AcqRel) == written {
            return Ok(false);
        }
        let info = self.with(q::EdgeShard::info)?;
        let apart = self.apart.load(Ordering::Relaxed);
        // Where no segment was worth an index yet, all of it is looked at in no time.
        if info.indexed_vectors_count == 0 || apart * 10 < info.points_count as u64 {
            return Ok(false);
        }
        let changed = self.bring_together(info, budget);
        self.with(|shard| shard.set_optimizers_config(self.optimizers()))?;
        let changed = changed?;
        self.cold.fetch_or(changed, Ordering::AcqRel);
        self.apart.fetch_sub(apart, Ordering::Relaxed);
        Ok(changed)
    }

    /// One pass joins what is apart, but may leave out the segment that is written to, which is small beside all of that: it is
    /// worth a pass of its own then.
    fn bring_together(&self, mut info: q::ShardInfo, budget: &q::ResourceBudget) -> Result<bool> {
        let mut changed = false;
        for _ in 0..PASSES {
            let together = q::EdgeOptimizersConfig {
                default_segment_number: Some(1),
                indexing_threshold: Some(self.worth_an_index(&info)),
                ..Default::default()
            };
            self.with(|shard| shard.set_optimizers_config(together))?;
            changed |= self.with(|shard| shard.optimize_with_budget(budget.clone()))?;
            info = self.with(q::EdgeShard::info)?;
            let bare = info.points_count.saturating_sub(self.indexed(&info));
            if bare * 100 <= info.points_count {
                break;
            }
        }
        Ok(changed)
    }

    /// Kilobytes from which on what is not indexed yet is brought in: all of it, unless it is less than a hundredth. The engine
    /// goes on for as long as there is so much, so a few that are written meanwhile must not be enough to begin anew.
    fn worth_an_index(&self, info: &q::ShardInfo) -> usize {
        let dims = self.shard.vectors.iter().map(|spec| spec.dims).max();
        let kilobytes = |points: usize| points * dims.unwrap_or(0) * size_of::<f32>() / 1024;
        let bare = info.points_count.saturating_sub(self.indexed(info));
        kilobytes(bare)
            .max(kilobytes(info.points_count) / 100)
            .max(1)
    }

    /// Points that have all their vectors in an index.
    fn indexed(&self, info: &q::ShardInfo) -> usize {
        info.indexed_vectors_count / self.shard.vectors.len().max(1)
    }

    /// Reads payloads ahead that were built anew, or that nobody has read since the shard was opened; answers how many bytes.
    /// The engine drops what it built from the page cache: each hit of a search would wait for the disk.
    pub fn warm(&self) -> u64 {
        if !self.cold.swap(false, Ordering::AcqRel) {
            return 0;
        }
        read_ahead(&self.dir.join("segments")).unwrap_or_else(|error| {
            tracing::debug!(shard = self.shard.name, %error, "payloads could not be read ahead");
            0
        })
    }

    /// Whether nothing was written since this was asked before.
    pub fn looked_at(&self) -> bool {
        let written = self.written.load(Ordering::Acquire);
        self.looked.swap(written, Ordering::AcqRel) == written
    }

    /// The points of these ids whose payloads are kept, in their order; nothing unless all of them are.
    pub fn kept(&self, ids: &[Uuid]) -> Option<Vec<Found>> {
        ids.iter().map(|id| self.payloads.find(*id)).collect()
    }

    /// The points of these ids, in any order.
    pub fn retrieve(&self, ids: &[Uuid], read: Read) -> Result<Vec<Found>> {
        if read != Read::PAYLOAD {
            return self.retrieve_anew(ids, read);
        }
        let mut points = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        for id in ids {
            match self.payloads.find(*id) {
                Some(point) => points.push(point),
                None => missing.push(*id),
            }
        }
        if !missing.is_empty() {
            let mark = self.payloads.mark();
            let read = self.retrieve_anew(&missing, read)?;
            self.payloads.keep(mark, &read);
            points.extend(read);
        }
        Ok(points)
    }

    fn retrieve_anew(&self, ids: &[Uuid], read: Read) -> Result<Vec<Found>> {
        let ids = ids.iter().copied().map(q::PointId::Uuid).collect();
        let mut request = q::RetrieveRequest::new(ids);
        request.with_payload = Some(convert::with_payload(read));
        request.with_vector = Some(q::WithVector::Bool(read.vectors));
        let records = self.with(|shard| shard.retrieve(request))?;
        Ok(records
            .into_iter()
            .filter_map(|r| convert::point(r.id, r.payload, r.vector))
            .map(layout::found)
            .collect())
    }

    /// Best first.
    pub fn query(&self, query: Query) -> Result<Vec<Scored>> {
        let read = query.read;
        let apart = read == Read::PAYLOAD;
        let request = convert::query(Query {
            read: if apart { Read::IDS } else { read },
            ..query
        })?;
        let hits = self.with(|shard| shard.query(request))?;
        let mut hits: Vec<Scored> = hits.into_iter().filter_map(convert::scored).collect();
        if apart {
            let ids: Vec<Uuid> = hits.iter().map(|hit| hit.point.id).collect();
            let points = self.retrieve(&ids, read)?;
            let mut points: HashMap<Uuid, Found> =
                points.into_iter().map(|point| (point.id, point)).collect();
            // One that was removed meanwhile is no hit.
            hits.retain_mut(|hit| match points.remove(&hit.point.id) {
                Some(point) => {
                    hit.point = point;
                    true
                }
                None => false,
            });
        }
        Ok(hits)
    }

    /// Points in the order of their ids, from `from` on (inclusive).
    pub fn scroll(
        &self,
        filter: Cond,
        from: Option<Uuid>,
        limit: usize,
        read: Read,
    ) -> Result<Vec<Point>> {
        let mut request = q::ScrollRequest::new();
        request.filter = convert::restriction(filter)?;
        request.offset = from.map(q::PointId::Uuid);
        request.limit = Some(limit);
        request.with_payload = Some(convert::with_payload(read));
        request.with_vector = q::WithVector::Bool(read.vectors);
        let (records, _) = self.with(|shard| shard.scroll(request))?;
        Ok(records
            .into_iter()
            .filter_map(|r| convert::point(r.id, r.payload, r.vector))
            .collect())
    }

    pub fn is_open(&self) -> bool {
        self.open.try_read().is_none_or(|open| open.is_some())
    }

    /// Closes the shard unless somebody is using it. The engine flushes as it closes.
    pub fn evict(&self) {
        if let Some(mut open) = self.open.try_write() {
            drop(open.take());
            self.flushed
                .fetch_max(self.written.load(Ordering::Acquire), Ordering::AcqRel);
        }
    }

    /// Closes for good. A call that goes on for longer than a moment keeps the shard, flushed, until it ends.
    pub fn close(&self) -> Result<()> {
        let flushed = if self.is_open() { self.flush() } else { Ok(()) };
        self.closed.store(true, Ordering::Release);
        if let Some(mut open) = self.open.try_write_for(Duration::from_secs(5)) {
            drop(open.take());
        }
        flushed
    }

    fn shut(&self) {
        let shard = self.open.write().take();
        // Closing flushes, which may meet what made the engine panic.
        if catch_unwind(AssertUnwindSafe(|| drop(shard))).is_err() {
            tracing::error!(
                shard = self.shard.name,
                "the engine panicked again as it closed"
            );
        }
        self.payloads.forget(Written::Anything);
        // What replay restores from the log is not known to be on disk.
        self.written.fetch_add(1, Ordering::Release);
    }

    fn opened(&self) -> Result<RwLockReadGuard<'_, Option<q::EdgeShard>>> {
        loop {
            if self.closed.load(Ordering::Acquire) {
                return Err(StoreError::Unavailable("it is closed".to_owned()));
            }
            let open = self.open.read();
            if open.is_some() {
                return Ok(open);
            }
            drop(open);
            let mut open = self.open.write();
            if open.is_none() {
                let loaded = catch_unwind(AssertUnwindSafe(|| self.load()));
                *open = Some(loaded.map_err(|panic| {
                    StoreError::Unavailable(format!(
                        "shard {} does not open: {}",
                        self.shard.name,
                        message(&panic)
                    ))
                })??);
            }
        }
    }

    fn load(&self) -> Result<q::EdgeShard> {
        let place = self.dir.display();
        let made = self.dir.join(MADE).exists();
        let shard = if made {
            log::check(&self.dir).map_err(|error| {
                StoreError::Internal(format!("the log of {place} cannot be read: {error}"))
            })?;
            q::EdgeShard::load(&self.dir, Some(self.config()))
        } else {
            q::EdgeShard::new(&self.dir, self.config())
        };
        let shard = shard.map_err(|error| match convert::error(error) {
            StoreError::Internal(why) => {
                StoreError::Internal(format!("{place} does not open: {why}"))
            }
            other => other,
        })?;
        let info = shard.info().map_err(convert::error)?;
        let apart = info.points_count.saturating_sub(self.indexed(&info));
        self.apart.store(apart as u64, Ordering::Relaxed);
        let present = info.payload_schema;
        for (field_name, schema) in convert::payload_indexes()? {
            if present.contains_key(&field_name) {
                continue;
            }
            let create = q::CreateIndex {
                field_name,
                field_schema: Some(schema),
            };
            let operation = q::UpdateOperation::FieldIndexOperation(
                q::FieldIndexOperations::CreateIndex(create),
            );
            shard.update(operation).map_err(convert::error)?;
        }
        if !made {
            shard.flush().map_err(convert::error)?;
            let sync = || -> std::io::Result<()> {
                File::open(&self.dir)?.sync_all()?;
                self.dir
                    .parent()
                    .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
            };
            sync().map_err(|error| {
                StoreError::Internal(format!("a new shard is not on disk: {error}"))
            })?;
        }
        // The log may have held more than was flushed.
        self.written.fetch_add(1, Ordering::Release);
        self.cold.store(made, Ordering::Release);
        Ok(shard)
    }

    fn optimizers(&self) -> q::EdgeOptimizersConfig {
        q::EdgeOptimizersConfig {
            indexing_threshold: self.indexing_threshold_kb,
            ..Default::default()
        }
    }

    fn config(&self) -> q::EdgeConfig {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2));
        let mut config = q::EdgeConfig::builder()
            .max_search_threads(1)
            .hnsw_config(q::HnswIndexConfig {
                max_indexing_threads: threads,
                ..Default::default()
            })
            .optimizers(self.optimizers());
        for spec in &self.shard.vectors {
            config = config.vector(spec.name.clone(), convert::vector_params(spec));
        }
        config.build()
    }
}

/// Reads the payloads of every segment, as far as there is room for them.
fn read_ahead(segments: &Path) -> io::Result<u64> {
    let mut left = AHEAD;
    for segment in fs::read_dir(segments)? {
        let payloads = segment?.path().join(PAYLOADS);
        // What a segment lacks, or loses meanwhile, nobody waits for.
        let Ok(files) = fs::read_dir(payloads) else {
            continue;
        };
        for file in files {
            let file = File::open(file?.path())?;
            let read = io::Read::take(BufReader::with_capacity(1 << 20, file), left);
            left -= io::copy(&mut { read }, &mut io::sink())?;
        }
    }
    Ok(AHEAD - left)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
