//! Payloads that were read lately. The engine keeps them as JSON on disk, and every read of one parses it anew: most of what
//! a page of a listing costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moka::sync::Cache;
use parking_lot::RwLock;
use uuid::Uuid;

use super::super::Payload;
use super::super::shards::Found;
use crate::weight;

/// Bytes kept, as far as they can be told.
const ROOM: u64 = 32 << 20;

/// What answers are made of.
#[derive(Debug, Clone)]
struct Kept {
    scope: Arc<str>,
    payload: Payload,
}

/// The payloads of every shard of a store. A shard's number is part of the key, and changes when all of it is to be forgotten.
#[derive(Debug, Clone)]
pub struct Payloads {
    kept: Cache<(u64, Uuid), Kept>,
    numbers: Arc<AtomicU64>,
}

impl Default for Payloads {
    fn default() -> Self {
        Self {
            kept: Cache::builder()
                .max_capacity(ROOM)
                .weigher(|_, kept: &Kept| {
                    // And the text that is kept with them once they were answered: half of it, at most times.
                    let weight = weight::of_object(&kept.payload);
                    u32::try_from(weight + weight / 2).unwrap_or(u32::MAX)
                })
                .build(),
            numbers: Arc::default(),
        }
    }
}

impl Payloads {
    /// Those of one shard, of which nothing is kept yet.
    pub fn of_shard(&self) -> OfShard {
        OfShard {
            number: AtomicU64::new(self.number()),
            all: self.clone(),
            writes: RwLock::new(0),
        }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a write may have changed.
pub enum Written {
    Points(Vec<Uuid>),
    Anything,
}

/// The payloads of one shard.
///
/// What is read while a write goes on may be older than the write, and must not be kept once the write is acknowledged. So
/// whoever reads the engine takes a [`mark`](Self::mark) first, and what was read is kept only if no write has ended since.
#[derive(Debug)]
pub struct OfShard {
    number: AtomicU64,
    all: Payloads,
    /// How many writes have ended. Held for reading while something is kept, for writing while something is forgotten.
    writes: RwLock<u64>,
}

impl OfShard {
    /// The point, if its payload is kept.
    pub fn find(&self, id: Uuid) -> Option<Found> {
        let number = self.number.load(Ordering::Acquire);
        let kept = self.all.kept.get(&(number, id))?;
        Some(Found {
            id,
            scope: Some(kept.scope),
            payload: kept.payload,
            ..Found::default()
        })
    }

    /// To be taken before the engine is read.
    pub fn mark(&self) -> u64 {
        *self.writes.read()
    }

    /// Keeps what answers are made of, unless a write has ended since the mark.
    pub fn keep(&self, mark: u64, points: &[Found]) {
        let writes = self.writes.read();
        if *writes != mark {
            return;
        }
        let number = self.number.load(Ordering::Acquire);
        for point in points {
            let Some(scope) = point.scope.clone() else {
                continue;
            };
            let payload = point.payload.clone();
            self.all
                .kept
                .insert((number, point.id), Kept { scope, payload });
        }
    }

    /// To be called when a write has ended, however it did, and before it is acknowledged.
    pub fn forget(&self, written: Written) {
        let mut writes = self.writes.write();
        *writes += 1;
        match written {
            Written::Points(ids) => {
                let number = self.number.load(Ordering::Acquire);
                for id in ids {
                    self.all.kept.invalidate(&(number, id));
                }
            }
            Written::Anything => self.number.store(self.all.number(), Ordering::Release),
        }
    }
}
