//! Resources that nearly every request looks up, kept in memory until a statement writes to one of their tables, how often
//! somebody wrote to people of apps and their sessions, which are kept elsewhere by that count, and how far the change feed of
//! each organization is, so that whoever polls its end costs no read.
//!
//! In one process that is exact. Several processes on one PostgreSQL learn of each other's changes after [`SHARED_FOR`] at
//! most, as they do of revoked keys; what is shown or changed is read from the database, never from here.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;

/// How long another process's change may stay unseen.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// How long something that nobody asks for is kept.
const IDLE: Duration = Duration::from_secs(300);

/// What is kept, by the tables that it is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Definitions,
    People,
}

const TABLES: [(&str, Kept); 6] = [
    ("namespaces", Kept::Definitions),
    ("buckets", Kept::Definitions),
    ("collections", Kept::Definitions),
    ("retrievers", Kept::Definitions),
    ("app_users", Kept::People),
    ("app_sessions", Kept::People),
];

/// What a transaction wrote to, of what is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Touched([bool; 2]);

impl Touched {
    pub(super) fn note(&mut self, sql: &str) {
        if let Some(kept) = writes(sql) {
            self.0[kept as usize] = true;
        }
    }
}

/// Table, owner, and the id or name that was asked for.
type Key = (&'static str, String, String);

struct Entry {
    /// The number of changes when it was read.
    changes: u64,
    record: Arc<dyn Any + Send + Sync>,
}

pub struct Known {
    records: Cache<Key, Arc<Entry>>,
    /// Counts commits that wrote to one of the tables of each: what was read before the last is not used.
    changes: [AtomicU64; 2],
    /// The newest event of each organization; only where no other process may add one.
    newest: Option<Cache<String, i64>>,
}

impl Known {
    pub(super) fn new(several_processes: bool) -> Self {
        let records = Cache::builder().max_capacity(10_000).time_to_idle(IDLE);
        let records = if several_processes {
            records.time_to_live(SHARED_FOR)
        } else {
            records
        };
        Self {
            records: records.build(),
            changes: Default::default(),
            newest: (!several_processes).then(|| Cache::new(10_000)),
        }
    }

    /// The newest event of the organization, if known.
    pub(super) fn newest_event(&self, org_id: &str) -> Option<i64> {
        self.newest.as_ref()?.get(org_id)
    }

    /// Notes a committed event; they may come in any order.
    pub(super) fn event(&self, org_id: String, seq: i64) {
        if let Some(newest) = &self.newest {
            newest
                .entry(org_id)
                .and_upsert_with(|entry| entry.map_or(seq, |entry| entry.into_value().max(seq)));
        }
    }

    /// Of definitions: to be taken before the database is read, and given to [`Known::keep`].
    pub(super) fn changes(&self) -> u64 {
        self.of(Kept::Definitions).load(Ordering::Acquire)
    }

    /// The same of people of apps; none where other processes change them, too.
    pub(super) fn people(&self) -> Option<u64> {
        let alone = self.newest.is_some();
        alone.then(|| self.of(Kept::People).load(Ordering::Acquire))
    }

    pub(super) fn changed(&self, touched: Touched) {
        for (changes, touched) in self.changes.iter().zip(touched.0) {
            if touched {
                changes.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    const fn of(&self, kept: Kept) -> &AtomicU64 {
        &self.changes[kept as usize]
    }

    pub(super) fn get<R: Send + Sync + 'static>(&self, key: &Key) -> Option<Arc<R>> {
        let entry = self.records.get(key)?;
        if entry.changes != self.changes() {
            return None;
        }
        entry.record.clone().downcast().ok()
    }

    pub(super) fn keep<R: Send + Sync + 'static>(&self, key: Key, changes: u64, record: Arc<R>) {
        self.records
            .insert(key, Arc::new(Entry { changes, record }));
    }
}

/// What is kept of the table that a statement writes to.
fn writes(sql: &str) -> Option<Kept> {
    let sql = sql.trim_start();
    let written = ["INSERT INTO ", "UPDATE ", "DELETE FROM "]
        .iter()
        .find_map(|verb| sql.strip_prefix(verb))
        .and_then(|rest| rest.split([' ', '(']).next())?;
    let found = TABLES.iter().find(|(table, _)| *table == written);
    found.map(|(_, kept)| *kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Statement;

    #[test]
    fn every_statement_that_writes_to_a_kept_table_is_seen() {
        let mut seen = 0;
        for Statement { file, text, .. } in inventory::iter::<Statement> {
            let mentioned = TABLES.iter().find(|(table, _)| {
                ["INTO", "UPDATE", "DELETE FROM"]
                    .iter()
                    .any(|verb| text.contains(&format!("{verb} {table} ")))
            });
            let kept = mentioned.map(|(_, kept)| *kept);
            assert_eq!(kept, writes(text), "{file}: {text}");
            seen += usize::from(kept.is_some());
        }
        assert!(seen >= 6 * 4, "only {seen} statements write to them");
    }

    #[test]
    fn what_was_read_before_a_change_is_not_used_after_it() {
        let known = Known::new(false);
        let key = || ("buckets", "ns".to_owned(), "films".to_owned());
        let before = known.changes();
        known.keep(key(), before, Arc::new(1_u8));
        assert_eq!(known.get::<u8>(&key()).as_deref(), Some(&1));
        let mut touched = Touched::default();
        touched.note("UPDATE app_users SET data = $1");
        known.changed(touched);
        assert_eq!(known.get::<u8>(&key()).as_deref(), Some(&1));
        assert_eq!(known.people(), Some(1));
        touched.note("DELETE FROM buckets WHERE bucket_id = $1");
        known.changed(touched);
        assert_eq!(known.get::<u8>(&key()), None);
        // A reader that was slower than the change.
        known.keep(key(), before, Arc::new(1_u8));
        assert_eq!(known.get::<u8>(&key()), None);
        assert_eq!(Known::new(true).people(), None);
    }
}
