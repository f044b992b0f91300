//! One text of SQL on two databases. Dialect differences live in this folder alone.
//!
//! Statements are constants made by [`sql!`], which registers them: one test prepares every one on both databases.
//! Time is BIGINT microseconds, JSON goes through [`sqlx::types::Json`], booleans are booleans.

mod arg;
mod migrate;
mod table;
mod writer;

use futures::future::BoxFuture;
use sqlx::{
    PgConnection, PgPool, SqliteConnection, SqlitePool, postgres::PgRow, sqlite::SqliteRow,
};

pub use arg::{Arg, Args};
pub use migrate::{MIGRATIONS, Migration};
pub use table::{Record, Table, TableSql};

use crate::error::{ApiError, Result};

/// A statement known to the tests.
pub struct Statement {
    pub file: &'static str,
    pub text: &'static str,
}

inventory::collect!(Statement);

/// Declares SQL constants and registers them for the test that prepares each on both databases.
#[macro_export]
macro_rules! sql {
    ($($(#[$meta:meta])* $vis:vis const $name:ident = $text:expr;)*) => {
        $($(#[$meta])* $vis const $name: &str = $text;
        inventory::submit! { $crate::db::Statement { file: file!(), text: $name } })*
    };
}

/// Arguments of a statement, in the order of `$1`, `$2`, …
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Arg::from($value)),*] };
}

/// A type that both databases' rows decode to; derive `sqlx::FromRow`.
pub trait Row:
    for<'r> sqlx::FromRow<'r, SqliteRow> + for<'r> sqlx::FromRow<'r, PgRow> + Send + Unpin + 'static
{
}
impl<T> Row for T where
    T: for<'r> sqlx::FromRow<'r, SqliteRow>
        + for<'r> sqlx::FromRow<'r, PgRow>
        + Send
        + Unpin
        + 'static
{
}

/// The resource database.
#[derive(Clone)]
pub enum Db {
    Sqlite {
        read: SqlitePool,
        writer: writer::Writer,
    },
    Postgres(PgPool),
}

/// An open transaction.
pub enum Tx {
    Sqlite(SqliteConnection),
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

macro_rules! fetch {
    ($executor:expr, $sql:expr, $args:expr, $method:ident) => {{
        let mut query = sqlx::query_as($sql);
        for arg in $args {
            query = arg.bind(query);
        }
        query.$method($executor).await
    }};
}

impl Db {
    /// Opens SQLite at `file` and brings its schema up to date.
    ///
    /// # Errors
    /// Settings that would lose data, a newer schema, or a file that cannot be opened.
    pub async fn sqlite(file: &std::path::Path) -> anyhow::Result<Self> {
        let (read, writer) = writer::open(file).await?;
        let db = Self::Sqlite { read, writer };
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
        let db = Self::Postgres(pool);
        migrate::run(&db).await?;
        Ok(db)
    }

    pub async fn all<T: Row>(&self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        Ok(match self {
            Self::Sqlite { read, .. } => fetch!(read, sql, args, fetch_all)?,
            Self::Postgres(pool) => fetch!(pool, sql, args, fetch_all)?,
        })
    }

    pub async fn one<T: Row>(&self, sql: &'static str, args: Args) -> Result<Option<T>> {
        Ok(match self {
            Self::Sqlite { read, .. } => fetch!(read, sql, args, fetch_optional)?,
            Self::Postgres(pool) => fetch!(pool, sql, args, fetch_optional)?,
        })
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
        match self {
            Self::Sqlite { writer, .. } => writer.write(work).await,
            Self::Postgres(pool) => {
                let mut tx = Tx::Postgres(pool.begin().await?);
                let answer = work(&mut tx).await?;
                let Tx::Postgres(tx) = tx else {
                    return Err(ApiError::internal("a transaction changed its database"));
                };
                tx.commit().await?;
                Ok(answer)
            }
        }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        self.one::<(i64,)>("SELECT CAST(1 AS BIGINT)", vec![])
            .await
            .map(|_| ())
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite { read, writer } => {
                writer.close().await;
                read.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }

    /// Connections of the pool, and how many of them wait for work.
    pub fn connections(&self) -> (u32, usize) {
        match self {
            Self::Sqlite { read, .. } => (read.size(), read.num_idle()),
            Self::Postgres(pool) => (pool.size(), pool.num_idle()),
        }
    }

    pub const fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

impl Tx {
    pub async fn all<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Vec<T>> {
        Ok(match self {
            Self::Sqlite(connection) => {
                fetch!(connection as &mut SqliteConnection, sql, args, fetch_all)?
            }
            Self::Postgres(tx) => fetch!(&mut **tx as &mut PgConnection, sql, args, fetch_all)?,
        })
    }

    pub async fn one<T: Row>(&mut self, sql: &'static str, args: Args) -> Result<Option<T>> {
        Ok(match self {
            Self::Sqlite(connection) => fetch!(
                connection as &mut SqliteConnection,
                sql,
                args,
                fetch_optional
            )?,
            Self::Postgres(tx) => {
                fetch!(&mut **tx as &mut PgConnection, sql, args, fetch_optional)?
            }
        })
    }

    pub async fn number(&mut self, sql: &'static str, args: Args) -> Result<i64> {
        Ok(self.one::<(i64,)>(sql, args).await?.map_or(0, |row| row.0))
    }

    /// Rows changed.
    pub async fn run(&mut self, sql: &'static str, args: Args) -> Result<u64> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let mut query = sqlx::query(sql);
                for arg in args {
                    query = arg.bind_plain(query);
                }
                query
                    .execute(connection as &mut SqliteConnection)
                    .await?
                    .rows_affected()
            }
            Self::Postgres(tx) => {
                let mut query = sqlx::query(sql);
                for arg in args {
                    query = arg.bind_plain(query);
                }
                query
                    .execute(&mut **tx as &mut PgConnection)
                    .await?
                    .rows_affected()
            }
        })
    }
}
