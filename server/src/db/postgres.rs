//! PostgreSQL: arguments bound by type, rows read by the type of each column.

use serde_json::value::RawValue;
use sqlx::{
    Column, Executor, PgConnection, Postgres, Row as _, SqlSafeStr, TypeInfo,
    postgres::PgArguments, postgres::PgRow, query::Query, types::Json,
};

use super::{Arg, Args, Cell, Rows};
use crate::error::{ApiError, Result};

fn query(sql: &'static str, args: Args) -> Query<'static, Postgres, PgArguments> {
    let mut query = sqlx::query(sql);
    for arg in args {
        query = match arg {
            Arg::Int(value) => query.bind(value),
            Arg::Real(value) => query.bind(value),
            Arg::Text(value) => query.bind(value),
            Arg::Bool(value) => query.bind(value),
            Arg::Bytes(value) => query.bind(value),
            Arg::Json(value) => query.bind(value.map(Json)),
        };
    }
    query
}

/// Takes a name until the transaction ends.
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// The rows that are found, one at most where `most` is 1.
pub(super) async fn fetch(
    connection: &mut PgConnection,
    sql: &'static str,
    args: Args,
    most: usize,
) -> Result<Rows> {
    if most == 1 {
        let row = query(sql, args).fetch_optional(connection).await?;
        return rows(row.into_iter().collect());
    }
    rows(query(sql, args).fetch_all(connection).await?)
}

/// Answers how many rows were changed.
pub(super) async fn run(
    connection: &mut PgConnection,
    sql: &'static str,
    args: Args,
) -> Result<u64> {
    Ok(query(sql, args).execute(connection).await?.rows_affected())
}

pub(super) async fn prepare(connection: &mut PgConnection, sql: &'static str) -> Result<()> {
    let prepared = connection.prepare(sql.into_sql_str()).await;
    prepared
        .map(drop)
        .map_err(|error| ApiError::bad_request("", error.to_string()))
}

fn rows(found: Vec<PgRow>) -> Result<Rows> {
    let mut rows = Rows::default();
    if let Some(first) = found.first() {
        rows.names = first
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
    }
    for row in &found {
        for column in row.columns() {
            rows.cells
                .push(cell(row, column.ordinal(), column.type_info().name())?);
        }
    }
    Ok(rows)
}

fn cell(row: &PgRow, at: usize, kind: &str) -> Result<Cell> {
    let cell = match kind {
        "INT8" => row.try_get::<Option<i64>, _>(at)?.map(Cell::Int),
        "INT4" => row
            .try_get::<Option<i32>, _>(at)?
            .map(|value| Cell::Int(value.into())),
        "FLOAT8" => row.try_get::<Option<f64>, _>(at)?.map(Cell::Real),
        "BOOL" => row
            .try_get::<Option<bool>, _>(at)?
            .map(|value| Cell::Int(value.into())),
        "TEXT" | "VARCHAR" | "NAME" => row.try_get::<Option<String>, _>(at)?.map(Cell::Text),
        "BYTEA" => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Cell::Bytes),
        "JSONB" | "JSON" => row
            .try_get::<Option<Json<Box<RawValue>>>, _>(at)?
            .map(|value| Cell::Text(String::from(Box::<str>::from(value.0)))),
        other => {
            return Err(ApiError::internal(format!(
                "a column of the type {other} is not read"
            )));
        }
    };
    Ok(cell.unwrap_or(Cell::Null))
}
