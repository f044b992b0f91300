//! A collection that has grown large gets a shard of its own.
//!
//! While its documents are copied, what is written to them goes to both shards and reads go to the old one. Then the
//! catalogue says the new one, and the old documents are removed. Whoever was told the old shard and writes to it after
//! that is led to the new one; whoever reads it finds that the catalogue has changed, and reads again.

use std::fs;
use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use qdrant_edge as q;

use super::super::shards::{Cond, Point, Read, Shard};
use super::super::{Result, StoreError, layout};
use super::catalogue::Leftover;
use super::slot::Slot;
use super::{Inner, catalogue_failed, convert};

/// Documents copied at once: writers wait for so long.
const CHUNK: usize = 256;
/// Collections of one shard looked at, largest first.
const LOOK: usize = 16;

/// The moves since the store was opened. A write holds it for reading, a step of a move for writing.
#[derive(Debug, Default)]
pub struct Moves(RwLock<Vec<Move>>);

#[derive(Debug)]
struct Move {
    from: String,
    scope: String,
    to: Arc<Slot>,
    done: bool,
}

impl Moves {
    /// Writes points of one collection to the shard they belong in, or to both while they move.
    pub fn upsert(&self, slot: &Slot, points: Vec<Point>) -> Result<()> {
        let moves = self.0.read();
        let scope = points
            .first()
            .and_then(|p| p.payload.get(layout::SCOPE)?.as_str());
        let to = moves
            .iter()
            .find(|m| m.from == slot.shard.name && Some(m.scope.as_str()) == scope);
        match to {
            None => slot.update(convert::upsert(points)),
            Some(to) if to.done => to.to.update(convert::upsert(points)),
            Some(to) => {
                slot.update(convert::upsert(points.clone()))?;
                to.to.update(convert::upsert(points))
            }
        }
    }

    /// Deletes from the shard and from those that collections of it have moved to.
    pub fn delete(&self, slot: &Slot, filter: &Cond) -> Result<()> {
        let delete = || -> Result<_> {
            let delete = q::PointOperations::DeletePointsByFilter(convert::filter(filter.clone())?);
            Ok(q::UpdateOperation::PointOperation(delete))
        };
        let moves = self.0.read();
        slot.update(delete()?)?;
        for to in moves.iter().filter(|m| m.from == slot.shard.name) {
            to.to.update(delete()?)?;
        }
        Ok(())
    }
}

impl Inner {
    /// Moves collections that have grown large out of the shards they share, and removes what earlier moves left.
    pub fn part(&self) -> Result<()> {
        let shared = self.catalogue.read().shared();
        for shard in shared {
            let slot = self.slot(&shard)?;
            if !slot.looked_at()
                && let Some(scope) = self.largest(&slot)?
            {
                self.disk.check_write()?;
                self.move_out(&slot, scope)?;
            }
        }
        let leftovers = self.catalogue.read().leftovers();
        for (leftover, shard) in leftovers {
            self.remove(&leftover, &shard)?;
        }
        Ok(())
    }

    /// The scope of the largest collection, if it is large and not alone.
    fn largest(&self, slot: &Slot) -> Result<Option<String>> {
        let points = slot.with(|shard| shard.count(q::CountRequest::new()))?;
        if points < self.large_collection {
            return Ok(None);
        }
        let mut request = q::FacetRequest::new(convert::path(layout::SCOPE)?);
        request.limit = LOOK;
        let found = slot.with(|shard| shard.facet(request))?;
        let left = self.catalogue.read().leftovers();
        let large = found.hits.into_iter().filter_map(|hit| match hit.value {
            q::FacetValue::Keyword(scope) if hit.count >= self.large_collection => Some(scope),
            _ => None,
        });
        let mut moving = large.filter(|scope| {
            let gone = |l: &Leftover| l.shard == slot.shard.name && l.scope == *scope;
            !left.iter().any(|(leftover, _)| gone(leftover))
        });
        Ok(moving.next())
    }

    fn move_out(&self, from: &Slot, scope: String) -> Result<()> {
        let shard = Arc::new(self.catalogue.read().apart(&scope, &from.shard));
        tracing::info!(
            from = from.shard.name,
            to = shard.name,
            "a large collection gets a shard of its own"
        );
        let dir = self.dir.join("shards").join(&shard.name);
        match fs::remove_dir_all(&dir) {
            // A move that did not come to its end may have left something.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::Internal(format!(
                    "cannot clear {}: {error}",
                    dir.display()
                )));
            }
            _ => {}
        }
        let to = self.slot(&shard)?;
        self.moves.0.write().push(Move {
            from: from.shard.name.clone(),
            scope: scope.clone(),
            to: to.clone(),
            done: false,
        });
        let moved = self.copy(from, &scope, &to).and_then(|()| to.flush());
        // From here on nobody writes until all are led to the new shard.
        let mut moves = self.moves.0.write();
        let moved = moved.and_then(|()| to.flush()).and_then(|()| {
            let noted = self
                .catalogue
                .write()
                .moved(&scope, &from.shard, shard.clone());
            noted.map_err(catalogue_failed)
        });
        match moved {
            Ok(()) => moves
                .iter_mut()
                .filter(|m| m.to.shard.name == shard.name)
                .for_each(|m| m.done = true),
            Err(_) => {
                moves.retain(|m| m.to.shard.name != shard.name);
                self.slots.lock().remove(&shard.name);
            }
        }
        moved
    }

    /// Copies every document of the scope, some at a time.
    fn copy(&self, from: &Slot, scope: &str, to: &Slot) -> Result<()> {
        let cond = Cond::Keyword {
            path: layout::SCOPE,
            any: vec![scope.to_owned()],
        };
        let mut next = None;
        loop {
            let _alone = self.moves.0.write();
            let mut points = from.scroll(cond.clone(), next, CHUNK + 1, Read::ALL)?;
            next = points.get(CHUNK).map(|point| point.id);
            points.truncate(CHUNK);
            if !points.is_empty() {
                to.update(convert::upsert(points))?;
            }
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn remove(&self, leftover: &Leftover, shard: &Arc<Shard>) -> Result<()> {
        let filter = convert::filter(Cond::Keyword {
            path: layout::SCOPE,
            any: vec![leftover.scope.clone()],
        })?;
        let delete = q::PointOperations::DeletePointsByFilter(filter);
        let slot = self.slot(shard)?;
        slot.update(q::UpdateOperation::PointOperation(delete))?;
        slot.flush()?;
        self.catalogue
            .write()
            .cleaned(leftover)
            .map_err(catalogue_failed)
    }
}
