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

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use sqlx::PgPool;

pub use arg::{Arg, Args, check_kept, verbatim};
pub use migrate::{MIGRATIONS, Migration};
pub use row::{Cell, Cells, FromCell, Json, Row, Rows};
pub use table::{Record, Table, TableSql};

use crate::{
    cause::Cause,
    error::{ApiError, Result},
    front,
};

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
pub struct Db(Arc<dyn AsRef<Opened> + Send + Sync>);

struct Opened {
    link: Link,
    known: Arc<known::Known>,
}

impl AsRef<Self> for Opened {
    fn as_ref(&self) -> &Self {
        self
    }
}

enum Link {
    Sqlite {
        read: sqlite::Readers,
        writer: writer::Writer,
    },
    Postgres(PgPool),
}

/// What a transaction does.
type Work = Box<dyn for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<()>> + Send>;

/// What is undone on SQLite where work fails that shares its commit with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// What it did itself.
    Alone,
    /// If it wrote, all that the commit would have kept; the others are told to try again. For work that has decided before it
    /// writes, so that only a database in trouble fails it later: it needs no savepoint, which copies each page that changes.
    Shared,
}

/// An open transaction.
pub struct Tx {
    link: TxLink,
    /// What it wrote to, of what is kept in memory.
    touched: known::Touched,
    /// The newest event of each organization that it wrote.
    events: Vec<(String, i64)>,
    origin: Origin,
}

/// What a transaction is part of.
#[derive(Debug, Clone, Default)]
struct Origin {
    /// The id of the request; empty outside of one.
    trace_id: String,
    /// The id of its key.
    key_id: Option<String>,
    /// What led to the work.
    cause: Cause,
}

impl Origin {
    fn here() -> Self {
        Self {
            trace_id: front::id(),
            key_id: front::key_id(),
            cause: front::cause(),
        }
    }
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
        let db = Self::of(link, known);
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
        let db = Self::of(Link::Postgres(pool), Arc::new(known::Known::new(true)));
        migrate::run(&db).await?;
        Ok(db)
    }

    fn of(link: Link, known: Arc<known::Known>) -> Self {
        Self(Arc::new(Opened { link, known }))
    }

    fn opened(&self) -> &Opened {
        (*self.0).as_ref()
    }

    fn known(&self) -> &known::Known {
        &self.opened().known
    }

    pub async fn all<T: Row>(&self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        self.fetch(sql, args, usize::MAX).await?.read()
    }

    pub async fn one<T: Row>(&self, sql: &'static str, args: Args) -> Result<Option<T>> {
        Ok(self.fetch(sql, args, 1).await?.read()?.pop())
    }

    /// Of an erased type, like every future here that reaches a driver: the compiler would otherwise look through both
    /// drivers for each place that waits for the database, which is a third of its time.
    fn fetch(&self, sql: &'static str, args: Args, most: usize) -> BoxFuture<'_, Result<Rows>> {
        match &self.opened().link {
            Link::Sqlite { read, .. } => Box::pin(read.fetch(sql, args, most)),
            Link::Postgres(pool) => Box::pin(async move {
                postgres::fetch(&mut *pool.acquire().await?, sql, args, most).await
            }),
        }
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
    pub fn write<T, F>(&self, work: F) -> BoxFuture<'_, Result<T>>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T>> + Send + 'static,
    {
        self.transact(Undo::Alone, work)
    }

    /// The same, with what a failure undoes said.
    pub fn transact<T, F>(&self, undo: Undo, work: F) -> BoxFuture<'_, Result<T>>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T>> + Send + 'static,
    {
        let answer = Arc::new(Mutex::new(None));
        let slot = answer.clone();
        let work: Work = Box::new(move |tx| {
            Box::pin(async move {
                let answer = work(tx).await?;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                Ok(())
            })
        });
        let written = self.run(undo, work);
        Box::pin(async move {
            written.await?;
            let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            answer.ok_or_else(|| ApiError::internal("a transaction ended without an answer"))
        })
    }

    /// Of one type, whatever a transaction answers: what is around it would otherwise be compiled for each of hundreds.
    fn run(&self, undo: Undo, work: Work) -> BoxFuture<'_, Result<()>> {
        // Here, for the writer is on a thread of its own.
        let origin = Origin::here();
        match &self.opened().link {
            Link::Sqlite { writer, .. } => Box::pin(writer.write(origin, undo, work)),
            Link::Postgres(pool) => Box::pin(async move {
                let mut tx = Tx::new(TxLink::Postgres(pool.begin().await?));
                tx.origin = origin;
                work(&mut tx).await?;
                self.commit(tx).await
            }),
        }
    }

    async fn commit(&self, mut tx: Tx) -> Result<()> {
        let link = std::mem::replace(&mut tx.link, TxLink::Ended);
        let TxLink::Postgres(link) = link else {
            return Err(ApiError::internal("a transaction changed its database"));
        };
        link.commit().await?;
        tx.committed(self.known());
        Ok(())
    }

    /// Whether an organization's feed is known to end with this event. Where several processes write, nobody knows.
    pub async fn ends_feed(&self, org_id: &str, seq: i64) -> Result<bool> {
        if self.is_postgres() {
            return Ok(false);
        }
        if let Some(newest) = self.known().newest_event(org_id) {
            return Ok(newest == seq);
        }
        let newest = self.number(NEWEST_EVENT, crate::args![org_id]).await?;
        self.known().event(org_id.to_owned(), newest);
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
        match &self.opened().link {
            Link::Sqlite { read, .. } => read.prepare(sql).await,
            Link::Postgres(pool) => postgres::prepare(&mut *pool.acquire().await?, sql).await,
        }
    }

    pub async fn close(&self) {
        match &self.opened().link {
            Link::Sqlite { read, writer } => {
                writer.close().await;
                read.close().await;
            }
            Link::Postgres(pool) => pool.close().await,
        }
    }

    /// Connections of the pool, and how many of them wait for work.
    pub fn connections(&self) -> (u32, usize) {
        match &self.opened().link {
            Link::Sqlite { read, .. } => read.connections(),
            Link::Postgres(pool) => (pool.size(), pool.num_idle()),
        }
    }

    /// Counts commits that wrote to namespaces, buckets, collections or retrievers.
    pub fn definitions(&self) -> u64 {
        self.known().changes()
    }

    /// Counts commits that wrote to people of apps or to their sessions; none where other processes write to them, too.
    pub fn people(&self) -> Option<u64> {
        self.known().people()
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.opened().link, Link::Postgres(_))
    }
}

impl Tx {
    fn new(link: TxLink) -> Self {
        Self {
            link,
            touched: known::Touched::default(),
            events: Vec::new(),
            origin: Origin::default(),
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.link, TxLink::Postgres(_))
    }

    /// The id of the request that changes something here; none where the server does so by itself.
    pub fn trace_id(&self) -> Option<&str> {
        Some(&*self.origin.trace_id).filter(|id| !id.is_empty())
    }

    /// The id of the key that the request carries; none where the server does so by itself.
    pub fn key_id(&self) -> Option<&str> {
        self.origin.key_id.as_deref()
    }

    /// What led to what is written here.
    pub fn cause(&self) -> &Cause {
        &self.origin.cause
    }

    /// What is written from here on came of this.
    pub fn set_cause(&mut self, cause: Cause) {
        self.origin.cause = cause;
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
        self.touched = known::Touched::default();
        self.events.clear();
    }

    /// What memory has to learn of a commit, before anybody hears of it.
    fn committed(&mut self, known: &known::Known) {
        known.changed(std::mem::take(&mut self.touched));
        for (org_id, seq) in self.events.drain(..) {
            known.event(org_id, seq);
        }
    }

    pub async fn all<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        self.fetch(sql, args, usize::MAX).await?.read()
    }

    pub async fn one<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Option<T>> {
        Ok(self.fetch(sql, args, 1).await?.read()?.pop())
    }

    fn fetch(&mut self, sql: &'static str, args: Args, most: usize) -> BoxFuture<'_, Result<Rows>> {
        self.touched.note(sql);
        match &mut self.link {
            TxLink::Sqlite(connection) => {
                let rows = sqlite::fetch(connection, sql, args, most).map_err(Into::into);
                Box::pin(std::future::ready(rows))
            }
            TxLink::Postgres(tx) => Box::pin(postgres::fetch(tx, sql, args, most)),
            TxLink::Ended => Box::pin(std::future::ready(Err(ended()))),
        }
    }

    pub async fn number(&mut self, sql: &'static str, args: Args) -> Result<i64> {
        Ok(self.one::<(i64,)>(sql, args).await?.map_or(0, |row| row.0))
    }

    /// Rows changed.
    pub fn run(&mut self, sql: &'static str, args: Args) -> BoxFuture<'_, Result<u64>> {
        self.touched.note(sql);
        match &mut self.link {
            TxLink::Sqlite(connection) => {
                let changed = sqlite::run(connection, sql, args);
                let changed = changed.map(|rows| rows as u64).map_err(Into::into);
                Box::pin(std::future::ready(changed))
            }
            TxLink::Postgres(tx) => Box::pin(postgres::run(tx, sql, args)),
            TxLink::Ended => Box::pin(std::future::ready(Err(ended()))),
        }
    }

    pub const fn is_sqlite(&self) -> bool {
        matches!(self.link, TxLink::Sqlite(_))
    }

    /// Waits for whoever has this name and keeps it to the end of the transaction. What is looked for and then made under a
    /// name is made once: on PostgreSQL transactions run beside each other, on SQLite one writes at a time.
    pub async fn lock(&mut self, name: &str) -> Result<()> {
        if !self.is_sqlite() {
            self.run(postgres::LOCK, vec![name.into()]).await?;
        }
        Ok(())
    }
}

fn ended() -> ApiError {
    ApiError::internal("a statement came after its transaction's end")
}
