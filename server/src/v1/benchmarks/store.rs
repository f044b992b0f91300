use loupe_wire::BenchmarkResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT = "INSERT INTO benchmarks (benchmark_id, namespace_id, retriever_id, status, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const FIND = "SELECT data FROM benchmarks WHERE namespace_id = $1 AND benchmark_id = $2";
    const LIST = "SELECT data FROM benchmarks WHERE namespace_id = $1 AND ($2 = '' OR status = $2) ORDER BY created_at DESC, benchmark_id LIMIT $3 OFFSET $4";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM benchmarks WHERE namespace_id = $1 AND ($2 = '' OR status = $2)";
    const NAMING = "SELECT data FROM benchmarks WHERE namespace_id = $1 AND CAST(data AS TEXT) LIKE $2 AND ($3 = '' OR status = $3) ORDER BY created_at DESC, benchmark_id";
    const UNDER_WAY = "SELECT CAST(COUNT(*) AS BIGINT) FROM benchmarks WHERE namespace_id = $1 AND status NOT IN ('completed', 'failed')";
    const UPDATE = "UPDATE benchmarks SET status = $3, data = $4 WHERE namespace_id = $1 AND benchmark_id = $2";
    const DELETE = "DELETE FROM benchmarks WHERE namespace_id = $1 AND benchmark_id = $2";
}

type Row = (Json<BenchmarkResponse>,);

pub(super) async fn insert(
    tx: &mut Tx,
    namespace_id: &str,
    benchmark: &BenchmarkResponse,
    now: i64,
) -> Result<()> {
    let row = args![
        &benchmark.benchmark_id,
        namespace_id,
        &benchmark.baseline_retriever_id,
        name_of(benchmark.status),
        now,
        Arg::json(benchmark)
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

pub(super) async fn find(
    db: &Db,
    namespace_id: &str,
    id: &str,
) -> Result<Option<BenchmarkResponse>> {
    let row: Option<Row> = db.one(FIND, args![namespace_id, id]).await?;
    Ok(row.map(|(data,)| data.0))
}

/// Newest first, and how many there are; an empty status is any.
pub(super) async fn list(
    db: &Db,
    namespace_id: &str,
    status: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<BenchmarkResponse>, i64)> {
    let rows: Vec<Row> = db
        .all(LIST, args![namespace_id, status, limit, offset])
        .await?;
    let total = db.number(COUNT, args![namespace_id, status]).await?;
    Ok((rows.into_iter().map(|(data,)| data.0).collect(), total))
}

/// All that name a retriever as their baseline or a candidate, newest first; an empty status is any.
pub(super) async fn of_retriever(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
    status: &str,
) -> Result<Vec<BenchmarkResponse>> {
    // A namespace has few: which of those whose text has the id are meant is seen when they are read.
    let has_id = format!("%\"{retriever_id}\"%");
    let rows: Vec<Row> = db.all(NAMING, args![namespace_id, &has_id, status]).await?;
    let is_in = |one: &BenchmarkResponse| {
        one.baseline_retriever_id == retriever_id
            || one
                .candidate_retriever_ids
                .iter()
                .any(|id| id == retriever_id)
    };
    let found = rows.into_iter().map(|(data,)| data.0);
    Ok(found.filter(is_in).collect())
}

pub(super) async fn under_way(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(UNDER_WAY, args![namespace_id]).await
}

/// One that is gone stays gone.
pub(super) async fn update(
    tx: &mut Tx,
    namespace_id: &str,
    benchmark: &BenchmarkResponse,
) -> Result<()> {
    let row = args![
        namespace_id,
        &benchmark.benchmark_id,
        name_of(benchmark.status),
        Arg::json(benchmark)
    ];
    tx.run(UPDATE, row).await?;
    Ok(())
}

pub(super) async fn delete(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<()> {
    match tx.run(DELETE, args![namespace_id, id]).await? {
        0 => Err(ApiError::not_found("benchmark", id)),
        _ => Ok(()),
    }
}
