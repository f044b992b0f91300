use loupe_wire::AnnotationResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

/// The moment that a version which is still the current one was superseded at.
pub(super) const NEVER: i64 = i64::MAX;

crate::sql! {
    const INSERT = "INSERT INTO annotations (annotation_id, version, namespace_id, document_id, collection_id, label, actor_id, retriever_id, created_at, valid_from, valid_to, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    const FIND = "SELECT created_at, data FROM annotations WHERE namespace_id = $1 AND annotation_id = $2 AND valid_to = $3";
    const VERSION = "SELECT created_at, data FROM annotations WHERE namespace_id = $1 AND annotation_id = $2 AND version = $3 AND EXISTS (SELECT 1 FROM annotations latest WHERE latest.annotation_id = $2 AND latest.valid_to = $4)";
    const LIST = "SELECT created_at, data FROM annotations WHERE namespace_id = $1 AND valid_from <= $2 AND valid_to > $2 AND ($3 = '' OR document_id = $3) AND ($4 = '' OR collection_id = $4) AND ($5 = '' OR label = $5) AND ($6 = '' OR actor_id = $6) AND ($7 = '' OR retriever_id = $7) ORDER BY created_at DESC, annotation_id LIMIT $8 OFFSET $9";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM annotations WHERE namespace_id = $1 AND valid_from <= $2 AND valid_to > $2 AND ($3 = '' OR document_id = $3) AND ($4 = '' OR collection_id = $4) AND ($5 = '' OR label = $5) AND ($6 = '' OR actor_id = $6) AND ($7 = '' OR retriever_id = $7)";
    const BY_LABEL = "SELECT label, CAST(COUNT(*) AS BIGINT) FROM annotations WHERE namespace_id = $1 AND valid_to = $2 AND ($3 = '' OR document_id = $3) AND ($4 = '' OR collection_id = $4) GROUP BY label ORDER BY label";
    const SUPERSEDE = "UPDATE annotations SET valid_to = $4, data = $5 WHERE namespace_id = $1 AND annotation_id = $2 AND version = $3 AND valid_to = $6";
    // A deletion ends the last version: lists as of an earlier moment still have it.
    const END = "UPDATE annotations SET valid_to = $4 WHERE namespace_id = $1 AND annotation_id = $2 AND valid_to = $3";
    const DELETE = "DELETE FROM annotations WHERE valid_to < $1 AND valid_to <> 9223372036854775807 AND NOT EXISTS (SELECT 1 FROM annotations latest WHERE latest.annotation_id = annotations.annotation_id AND latest.valid_to >= $1)";
}

/// What a list is narrowed to; empty members match everything.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The versions that were current at this moment; the current ones of today without it.
    pub as_of: Option<i64>,
    pub document_id: String,
    pub collection_id: String,
    pub label: String,
    pub actor_id: String,
    pub retriever_id: String,
}

impl Wanted {
    fn args(&self, namespace_id: &str) -> Vec<Arg> {
        args![
            namespace_id,
            self.as_of.unwrap_or(NEVER - 1),
            &self.document_id,
            &self.collection_id,
            &self.label,
            &self.actor_id,
            &self.retriever_id
        ]
    }
}

/// One version, and when its annotation was made.
pub(super) type Version = (i64, Json<AnnotationResponse>);

pub(super) async fn insert(
    tx: &mut Tx,
    annotation: &AnnotationResponse,
    created_at: i64,
    now: i64,
) -> Result<()> {
    let row = args![
        annotation.annotation_id.as_deref().unwrap_or_default(),
        annotation.version,
        &annotation.namespace_id,
        &annotation.document_id,
        annotation.collection_id.as_deref().unwrap_or_default(),
        &annotation.label,
        &annotation.actor_id,
        annotation.retriever_id.as_deref().unwrap_or_default(),
        created_at,
        now,
        NEVER,
        Arg::json(annotation)
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

pub(super) async fn find(db: &Db, namespace_id: &str, id: &str) -> Result<AnnotationResponse> {
    let row: Option<Version> = db.one(FIND, args![namespace_id, id, NEVER]).await?;
    row.map(|(_, data)| data.0)
        .ok_or_else(|| ApiError::not_found("annotation", id))
}

pub(super) async fn find_in(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<Version> {
    let row: Option<Version> = tx.one(FIND, args![namespace_id, id, NEVER]).await?;
    row.ok_or_else(|| ApiError::not_found("annotation", id))
}

pub(super) async fn find_version(
    db: &Db,
    namespace_id: &str,
    id: &str,
    version: i64,
) -> Result<Option<AnnotationResponse>> {
    let row: Option<Version> = db
        .one(VERSION, args![namespace_id, id, version, NEVER])
        .await?;
    Ok(row.map(|(_, data)| data.0))
}

/// Newest first, with how many there are.
pub(super) async fn list(
    db: &Db,
    namespace_id: &str,
    wanted: &Wanted,
    limit: i64,
    skip: i64,
) -> Result<(Vec<AnnotationResponse>, i64)> {
    let total = db.number(COUNT, wanted.args(namespace_id)).await?;
    let mut page = wanted.args(namespace_id);
    page.extend(args![limit, skip]);
    let rows: Vec<Version> = db.all(LIST, page).await?;
    Ok((rows.into_iter().map(|(_, data)| data.0).collect(), total))
}

pub(super) async fn count_by_label(
    db: &Db,
    namespace_id: &str,
    document_id: &str,
    collection_id: &str,
) -> Result<Vec<(String, i64)>> {
    let args = args![namespace_id, NEVER, document_id, collection_id];
    db.all(BY_LABEL, args).await
}

/// Ends a version: it stays as what was true until now. False when somebody else ended it first, as a deletion does.
pub(super) async fn supersede(tx: &mut Tx, version: &AnnotationResponse, now: i64) -> Result<bool> {
    let id = version.annotation_id.as_deref().unwrap_or_default();
    let args = args![
        &version.namespace_id,
        id,
        version.version,
        now,
        Arg::json(version),
        NEVER
    ];
    Ok(tx.run(SUPERSEDE, args).await? > 0)
}

/// Ends an annotation: only lists as of an earlier moment have it from now on. False when an edit put another version in the place of
/// the current one meanwhile.
pub(super) async fn end(tx: &mut Tx, namespace_id: &str, id: &str, now: i64) -> Result<bool> {
    let args = args![namespace_id, id, NEVER, now];
    Ok(tx.run(END, args).await? > 0)
}

/// Every version of those that ended before a moment, of all namespaces; answers how many versions those were.
pub(super) async fn delete(tx: &mut Tx, ended: i64) -> Result<u64> {
    tx.run(DELETE, args![ended]).await
}
