use loupe_wire::{EvaluationDataset, EvaluationRecord, GroundTruthQuery, QueryOutcome};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT_DATASET = "INSERT INTO evaluation_datasets (dataset_id, namespace_id, name, created_at, data, queries) VALUES ($1, $2, $3, $4, $5, $6)";
    const FIND_DATASET = "SELECT data, queries FROM evaluation_datasets WHERE namespace_id = $1 AND (dataset_id = $2 OR name = $2) ORDER BY CASE WHEN dataset_id = $2 THEN 0 ELSE 1 END LIMIT 1";
    const DATASET_ID = "SELECT dataset_id FROM evaluation_datasets WHERE namespace_id = $1 AND (dataset_id = $2 OR name = $2) ORDER BY CASE WHEN dataset_id = $2 THEN 0 ELSE 1 END LIMIT 1";
    const NAME_TAKEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluation_datasets WHERE namespace_id = $1 AND name = $2";
    const LIST_DATASETS = "SELECT data FROM evaluation_datasets WHERE namespace_id = $1 ORDER BY created_at DESC, dataset_id LIMIT $2 OFFSET $3";
    const COUNT_DATASETS = "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluation_datasets WHERE namespace_id = $1";
    const INSERT = "INSERT INTO evaluations (evaluation_id, namespace_id, retriever_id, dataset_id, dataset_name, status, created_at, data, outcomes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    const FIND = "SELECT data, outcomes FROM evaluations WHERE namespace_id = $1 AND evaluation_id = $2";
    const LIST = "SELECT data FROM evaluations WHERE namespace_id = $1 AND retriever_id = $2 AND ($3 = '' OR status = $3) AND ($4 = '' OR dataset_name = $4) ORDER BY created_at DESC, evaluation_id LIMIT $5 OFFSET $6";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluations WHERE namespace_id = $1 AND retriever_id = $2 AND ($3 = '' OR status = $3) AND ($4 = '' OR dataset_name = $4)";
    const LAST = "SELECT data FROM evaluations WHERE namespace_id = $1 AND retriever_id = $2 AND dataset_id = $3 AND status = 'completed' ORDER BY created_at DESC, evaluation_id LIMIT 1";
    const UNDER_WAY = "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluations WHERE namespace_id = $1 AND status IN ('pending', 'in_progress')";
    const UPDATE = "UPDATE evaluations SET status = $3, data = $4, outcomes = $5 WHERE namespace_id = $1 AND evaluation_id = $2";
}

pub(super) async fn insert_dataset(
    tx: &mut Tx,
    dataset: &EvaluationDataset,
    queries: &[GroundTruthQuery],
    now: i64,
) -> Result<()> {
    let row = args![
        &dataset.dataset_id,
        &dataset.namespace_id,
        &dataset.dataset_name,
        now,
        Arg::json(dataset),
        Arg::json(&queries)
    ];
    tx.run(INSERT_DATASET, row).await?;
    Ok(())
}

pub(super) async fn is_name_taken(tx: &mut Tx, namespace_id: &str, name: &str) -> Result<bool> {
    Ok(tx.number(NAME_TAKEN, args![namespace_id, name]).await? > 0)
}

/// By id, else by name, with its queries.
pub(super) async fn find_dataset(
    db: &Db,
    namespace_id: &str,
    identifier: &str,
) -> Result<EvaluationDataset> {
    type Row = (Json<EvaluationDataset>, Json<Vec<GroundTruthQuery>>);
    let row: Option<Row> = db
        .one(FIND_DATASET, args![namespace_id, identifier])
        .await?;
    let (mut dataset, queries) =
        row.ok_or_else(|| ApiError::not_found("evaluation_dataset", identifier))?;
    dataset.0.queries = queries.0;
    Ok(dataset.0)
}

/// The id of the dataset of this id, else of this name.
pub(super) async fn dataset_id(
    db: &Db,
    namespace_id: &str,
    identifier: &str,
) -> Result<Option<String>> {
    let row: Option<(String,)> = db.one(DATASET_ID, args![namespace_id, identifier]).await?;
    Ok(row.map(|(id,)| id))
}

pub(super) async fn count_datasets(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(COUNT_DATASETS, args![namespace_id]).await
}

/// Newest first, without their queries, and how many there are.
pub(super) async fn list_datasets(
    db: &Db,
    namespace_id: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<EvaluationDataset>, i64)> {
    let rows: Vec<(Json<EvaluationDataset>,)> = db
        .all(LIST_DATASETS, args![namespace_id, limit, offset])
        .await?;
    let total = db.number(COUNT_DATASETS, args![namespace_id]).await?;
    Ok((rows.into_iter().map(|(data,)| data.0).collect(), total))
}

pub(super) async fn insert(tx: &mut Tx, record: &EvaluationRecord, now: i64) -> Result<()> {
    let row = args![
        &record.evaluation_id,
        &record.namespace_id,
        &record.retriever_id,
        &record.dataset_id,
        &record.dataset_name,
        name_of(record.status),
        now,
        Arg::json(record),
        Arg::json(&Vec::<QueryOutcome>::new())
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

/// With what came of each query.
pub(super) async fn find(
    db: &Db,
    namespace_id: &str,
    id: &str,
) -> Result<Option<EvaluationRecord>> {
    type Row = (Json<EvaluationRecord>, Json<Vec<QueryOutcome>>);
    let row: Option<Row> = db.one(FIND, args![namespace_id, id]).await?;
    Ok(row.map(|(mut record, outcomes)| {
        record.0.query_results = outcomes.0;
        record.0
    }))
}

/// What a list is narrowed to; empty members match everything.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub retriever_id: String,
    pub status: String,
    pub dataset_name: String,
}

/// Newest first, without what came of each query, and how many there are.
pub(super) async fn list(
    db: &Db,
    namespace_id: &str,
    wanted: &Wanted,
    limit: i64,
    offset: i64,
) -> Result<(Vec<EvaluationRecord>, i64)> {
    let narrowed = || {
        args![
            namespace_id,
            &wanted.retriever_id,
            &wanted.status,
            &wanted.dataset_name
        ]
    };
    let mut page = narrowed();
    page.extend(args![limit, offset]);
    let rows: Vec<(Json<EvaluationRecord>,)> = db.all(LIST, page).await?;
    let total = db.number(COUNT, narrowed()).await?;
    Ok((rows.into_iter().map(|(data,)| data.0).collect(), total))
}

/// The last completed one of the retriever over the dataset.
pub(super) async fn last(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
    dataset_id: &str,
) -> Result<Option<EvaluationRecord>> {
    let row: Option<(Json<EvaluationRecord>,)> = db
        .one(LAST, args![namespace_id, retriever_id, dataset_id])
        .await?;
    Ok(row.map(|(data,)| data.0))
}

pub(super) async fn under_way(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(UNDER_WAY, args![namespace_id]).await
}

/// Replaces all but whose it is. One that is gone stays gone.
pub(super) async fn update(tx: &mut Tx, mut record: EvaluationRecord) -> Result<()> {
    let outcomes = std::mem::take(&mut record.query_results);
    let row = args![
        &record.namespace_id,
        &record.evaluation_id,
        name_of(record.status),
        Arg::json(&record),
        Arg::json(&outcomes)
    ];
    tx.run(UPDATE, row).await?;
    Ok(())
}
