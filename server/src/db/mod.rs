//! One text of SQL on two databases. Dialect differences live in this folder alone.
//!
//! Statements are constants made by [`sql!`], which registers them: one test prepares every one on both databases.
//! Time is BIGINT microseconds, JSON goes through [`Json`], booleans are booleans.

mod arg;
mod known;
mod migrate;
mod postgres;
mod row;
mod sqlite;
mod table;
mod writer;

use std::sync::Arc;

use futures::future::BoxFuture;
use sqlx::PgPool;

pub use arg::{Arg, Args, verbatim};
pub use migrate::{MIGRATIONS, Migration};
pub use row::{Cell, Cells, FromCell, Json, Row, Rows};
pub use table::{Record, Table, TableSql};

use crate::error::{ApiError, Result};

/// A statement known to the tests.
pub struct Statement {
    pub file: &'static str,
    pub name: &'static str,
    pub text: &'static str,
}

inventory::collect!(Statement);

/// Declares SQL constants and registers them for the test that prepares each on both databases.
#[macro_export]
macro_rules! sql {
    ($($(#[$meta:meta])* $vis:vis const $name:ident = $text:expr;)*) => {
        $($(#[$meta])* $vis const $name: &str = $text;
        inventory::submit! { $crate::db::Statement { file: file!(), name: stringify!($name), text: $name } })*
    };
}

/// Arguments of a statement, in the order of `$1`, `$2`, …
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Arg::from($value)),*] };
}

crate::sql! {
    const NEWEST_EVENT = "SELECT event_seq FROM organizations WHERE org_id = $1";
}

/// The resource database.
#[derive(Clone)]
pub struct Db {
    link: Link,
    known: Arc<known::Known>,
}

#[derive(Clone)]
enum Link {
    Sqlite {
        read: sqlite::Readers,
        writer: writer::Writer,
    },
    Postgres(PgPool),
}

/// An open transaction.
pub struct Tx {
    link: TxLink,
    /// Whether it wrote to a table whose rows are kept in memory.
    changed_known: bool,
    /// The newest event of each organization that it wrote.
    events: Vec<(String, i64)>,
}

enum TxLink {
    Sqlite(rusqlite::Connection),
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
    /// Being committed.
    Ended,
}

impl Db {
    /// Opens SQLite at `file` and brings its schema up to date.
    ///
    /// # Errors
    /// Settings that would lose data, a newer schema, or a file that cannot be opened.
    pub async fn sqlite(file: &std::path::Path) -> anyhow::Result<Self> {
        let path = file.to_owned();
        let known = Arc::new(known::Known::new(false));
        let kept = known.clone();
        let link = tokio::task::spawn_blocking(move || {
            anyhow::Ok(Link::Sqlite {
                writer: writer::start(&path, kept)?,
                read: sqlite::Readers::new(&path),
            })
        })
        .await??;
        let db = Self { link, known };
        migrate::run(&db).await?;
        Ok(db)
    }

    /// Opens PostgreSQL and brings its schema up to date.
    ///
    /// # Errors
    /// `synchronous_commit = off`, a newer schema, or a server that does not answer.
    pub async fn postgres(url: &str, connections: u32) -> anyhow::Result<Self> {
        let pool = sqlx::postgres::PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(std::time::Duration::from_secs(4))
            .connect(url)
            .await?;
        let (commit,): (String,) = sqlx::query_as("SHOW synchronous_commit")
            .fetch_one(&pool)
            .await?;
        anyhow::ensure!(
            commit != "off",
            "synchronous_commit is off on this PostgreSQL: acknowledged writes could be lost"
        );
        let db = Self {
            link: Link::Postgres(pool),
            known: Arc::new(known::Known::new(true)),
        };
        migrate::run(&db).await?;
        Ok(db)
    }

    pub async fn all<T: Row>(&self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        let rows = match &self.link {
            Link::Sqlite { read, .. } => read.fetch(sql, args, usize::MAX).await?,
            Link::Postgres(pool) => {
                postgres::fetch_all(&mut *pool.acquire().await?, sql, args).await?
            }
        };
        rows.read()
    }

    pub async fn one<T: Row>(&self, sql: &'static str, args: Args) -> Result<Option<T>> {
        let rows = match &self.link {
            Link::Sqlite { read, .. } => read.fetch(sql, args, 1).await?,
            Link::Postgres(pool) => {
                postgres::fetch_one(&mut *pool.acquire().await?, sql, args).await?
            }
        };
        Ok(rows.read()?.pop())
    }

    /// The single number of a `SELECT CAST(COUNT(*) AS BIGINT) …`.
    pub async fn number(&self, sql: &'static str, args: Args) -> Result<i64> {
        Ok(self.one::<(i64,)>(sql, args).await?.map_or(0, |row| row.0))
    }

    /// Runs `work` in one transaction that commits when it answers `Ok`. On SQLite many calls share one commit, so
    /// `work` must only speak to `tx`: anything slow in it holds up every other writer.
    ///
    /// ```ignore
    /// db.write(move |tx| Box::pin(async move { tx.run(INSERT, args![id]).await })).await?;
    /// ```
    pub async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T>> + Send + 'static,
    {
        match &self.link {
            Link::Sqlite { writer, .. } => writer.write(work).await,
            Link::Postgres(pool) => {
                let mut tx = Tx::new(TxLink::Postgres(pool.begin().await?));
                let answer = work(&mut tx).await?;
                let link = std::mem::replace(&mut tx.link, TxLink::Ended);
                let TxLink::Postgres(link) = link else {
                    return Err(ApiError::internal("a transaction changed its database"));
                };
                link.commit().await?;
                tx.committed(&self.known);
                Ok(answer)
            }
        }
    }

    /// Whether an organization's feed is known to end with this event. Where several processes write, nobody knows.
    pub async fn ends_feed(&self, org_id: &str, seq: i64) -> Result<bool> {
        if self.is_postgres() {
            return Ok(false);
        }
        if let Some(newest) = self.known.newest_event(org_id) {
            return Ok(newest == seq);
        }
        let newest = self.number(NEWEST_EVENT, crate::args![org_id]).await?;
        self.known.event(org_id.to_owned(), newest);
        Ok(newest == seq)
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        self.one::<(i64,)>("SELECT CAST(1 AS BIGINT)", vec![])
            .await
            .map(|_| ())
    }

    /// Compiles a statement without running it: what the tests ask of every one.
    pub async fn prepare(&self, sql: &'static str) -> Result<()> {
        match &self.link {
            Link::Sqlite { read, .. } => read.prepare(sql).await,
            Link::Postgres(pool) => postgres::prepare(&mut *pool.acquire().await?, sql).await,
        }
    }

    pub async fn close(&self) {
        match &self.link {
            Link::Sqlite { read, writer } => {
                writer.close().await;
                read.close().await;
            }
            Link::Postgres(pool) => pool.close().await,
        }
    }

    /// Connections of the pool, and how many of them wait for work.
    pub fn connections(&self) -> (u32, usize) {
        match &self.link {
            Link::Sqlite { read, .. } => read.connections(),
            Link::Postgres(pool) => (pool.size(), pool.num_idle()),
        }
    }

    /// Counts commits that wrote to namespaces, buckets, collections or retrievers.
    pub fn definitions(&self) -> u64 {
        self.known.changes()
    }

    pub const fn is_postgres(&self) -> bool {
        matches!(self.link, Link::Postgres(_))
    }
}

impl Tx {
    const fn new(link: TxLink) -> Self {
        Self {
            link,
            changed_known: false,
            events: Vec::new(),
        }
    }

    /// Notes an event that is told when this transaction commits.
    pub fn note_event(&mut self, org_id: &str, seq: i64) {
        match self.events.iter_mut().find(|(org, _)| org == org_id) {
            Some((_, newest)) => *newest = seq,
            None => self.events.push((org_id.to_owned(), seq)),
        }
    }

    /// Drops what was noted: the transaction did not commit.
    fn forget(&mut self) {
        self.changed_known = false;
        self.events.clear();
    }

    /// What memory has to learn of a commit, before anybody hears of it.
    fn committed(&mut self, known: &known::Known) {
        if std::mem::take(&mut self.changed_known) {
            known.changed();
        }
        for (org_id, seq) in self.events.drain(..) {
            known.event(org_id, seq);
        }
    }

    pub async fn all<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        self.changed_known |= known::writes(sql);
        let rows = match &mut self.link {
            TxLink::Sqlite(connection) => sqlite::fetch(connection, sql, args, usize::MAX)?,
            TxLink::Postgres(tx) => postgres::fetch_all(tx, sql, args).await?,
            TxLink::Ended => return Err(ended()),
        };
        rows.read()
    }

    pub async fn one<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Option<T>> {
        self.changed_known |= known::writes(sql);
        let rows = match &mut self.link {
            TxLink::Sqlite(connection) => sqlite::fetch(connection, sql, args, 1)?,
            TxLink::Postgres(tx) => postgres::fetch_one(tx, sql, args).await?,
            TxLink::Ended => return Err(ended()),
        };
        Ok(rows.read()?.pop())
    }

    pub async fn number(&mut self, sql: &'static str, args: Args) -> Result<i64> {
        Ok(self.one::<(i64,)>(sql, args).await?.map_or(0, |row| row.0))
    }

    /// Rows changed.
    pub async fn run(&mut self, sql: &'static str, args: Args) -> Result<u64> {
        self.changed_known |= known::writes(sql);
        Ok(match &mut self.link {
            TxLink::Sqlite(connection) => sqlite::run(connection, sql, args)? as u64,
            TxLink::Postgres(tx) => postgres::run(tx, sql, args).await?,
            TxLink::Ended => return Err(ended()),
        })
    }
}

fn ended() -> ApiError {
    ApiError::internal("a statement came after its transaction's end")
}
