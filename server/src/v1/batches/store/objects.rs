//! The objects of batches: which wait where, what became of them, and what collections have made of them.

use std::collections::HashSet;

use loupe_wire::ObjectResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    v1::batches::fillings,
};

crate::sql! {
    const ADD_OBJECT = "INSERT INTO batch_objects (batch_id, object_id, position, status, updated_at) VALUES ($1, $2, $3, 'PENDING', $4) ON CONFLICT (batch_id, object_id) DO NOTHING";
    const NEXT_POSITION = "SELECT CAST(COALESCE(MAX(position) + 1, 0) AS BIGINT) FROM batch_objects WHERE batch_id = $1";
    const OBJECT_IDS = "SELECT object_id FROM batch_objects WHERE batch_id = $1 ORDER BY position";
    const BUCKET_OBJECTS = "SELECT object_id FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED') ORDER BY created_at, object_id LIMIT $3";
    // A hundred ids at once: fewer are filled up with the last one.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const KNOWN_OBJECTS = "SELECT object_id FROM objects WHERE namespace_id || '' = $1 AND bucket_id || '' = $2 AND object_id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102)";
    const SPAN = "SELECT object_id FROM batch_objects WHERE batch_id = $1 AND position >= $2 AND position < $3 AND status = 'PENDING' AND tier = $4 ORDER BY position";
    const CHUNK = "SELECT o.data, o.content_hash FROM batch_objects b JOIN objects o ON o.object_id = b.object_id AND o.namespace_id = $2 WHERE b.batch_id = $1 AND b.position >= $3 AND b.position < $4 AND b.status = 'PENDING' AND b.tier = $5 AND o.status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED') ORDER BY b.position";
    // What is being written, or was and nobody knows how far, is of no content that is known.
    const PROCESSED = "SELECT p.object_id, CASE WHEN f.object_id IS NULL THEN p.content_hash ELSE '' END FROM batch_objects b JOIN processed p ON p.object_id = b.object_id AND p.collection_id = $2 AND p.namespace_id = $5 LEFT JOIN fillings f ON f.object_id = p.object_id AND f.collection_id = p.collection_id WHERE b.batch_id = $1 AND b.position >= $3 AND b.position < $4";
    const SET_PROCESSED = "INSERT INTO processed (object_id, collection_id, namespace_id, content_hash, documents, updated_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (object_id, collection_id) DO UPDATE SET content_hash = $4, documents = $5, updated_at = $6";
    const FORGET_COLLECTION = "DELETE FROM processed WHERE namespace_id = $1 AND collection_id = $2";
    // An object that the last tier passes over is done all the same if a tier before made something of it.
    // `made`: 0 while no tier made anything, 1 once one did, 2 when that was in a run that was counted already.
    const SET_OBJECT = "UPDATE batch_objects SET status = CASE WHEN $3 = 'SKIPPED' AND made + $10 > 0 THEN 'COMPLETED' ELSE $3 END, error = CASE WHEN CAST($4 AS TEXT) IS NULL AND made > 0 THEN error ELSE $4 END, error_type = CASE WHEN CAST($4 AS TEXT) IS NULL AND made > 0 THEN error_type ELSE $5 END, collection_id = $6, documents = documents + $7, updated_at = $8, tier = $9, made = CASE WHEN made + $10 > made THEN 1 ELSE made END, document_id = $11 WHERE batch_id = $1 AND object_id = $2 RETURNING status, made";
    const SET_OBJECT_STATUS = "UPDATE objects SET status = $3, error = $5, updated_at = $4 WHERE namespace_id = $1 AND object_id = $2 AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED')";
    const COUNTS = "SELECT status, CAST(COUNT(*) AS BIGINT), CAST(COALESCE(SUM(documents), 0) AS BIGINT), CAST(COALESCE(SUM(tier), 0) AS BIGINT) FROM batch_objects WHERE batch_id = $1 GROUP BY status";
    const FAILED = "SELECT object_id, collection_id, COALESCE(error, '') AS error, COALESCE(error_type, 'permanent') AS error_type, updated_at, tier, document_id FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' AND ($4 < 0 OR tier = $4) AND ($5 = '' OR collection_id = $5) ORDER BY position LIMIT $2 OFFSET $3";
    const COUNT_FAILED = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' AND ($2 < 0 OR tier = $2) AND ($3 = '' OR collection_id = $3)";
    const NEXT_TIER = "SELECT CAST(COALESCE(MIN(tier), -1) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND status = 'PENDING'";
    // From the back: chunks begin at the front, and what they leave for later tiers waits there.
    const WAITS_FOR = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT object_id FROM batch_objects WHERE batch_id = $1 AND status = 'PENDING' AND tier = $2 ORDER BY position DESC LIMIT 1) found";
    const IN_TIER = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND tier >= $2 AND (status <> 'CANCELED' OR tier > $2)";
    const FAILED_IN_TIER = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' AND tier = $2";
    // The tiers are others than before: whatever waits begins anew.
    const BACK_TO_FIRST = "UPDATE batch_objects SET tier = 0 WHERE batch_id = $1 AND status = 'PENDING'";
    const BACK_TO = "UPDATE batch_objects SET made = CASE WHEN status = 'COMPLETED' THEN 2 ELSE made END, status = 'PENDING', error = NULL, error_type = NULL, document_id = NULL, tier = $2, updated_at = $3 WHERE batch_id = $1 AND tier >= $2";
    const FIRST_ERROR = "SELECT COALESCE(error, '') FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' ORDER BY position LIMIT 1";
    const RESET_FAILED = "UPDATE batch_objects SET status = 'PENDING', error = NULL, error_type = NULL, document_id = NULL, updated_at = $2 WHERE batch_id = $1 AND status = 'FAILED' AND ($3 = '' OR error_type = $3) AND ($4 < 0 OR tier = $4)";
    const RESET_ALL = "UPDATE batch_objects SET status = 'PENDING', error = NULL, error_type = NULL, document_id = NULL, updated_at = $2 WHERE batch_id = $1 AND status IN ('FAILED', 'CANCELED')";
    const RESET_STOPPED = "UPDATE batch_objects SET status = 'PENDING', error = NULL, error_type = NULL, document_id = NULL, updated_at = $3 WHERE batch_id = $1 AND tier = $2 AND status IN ('PENDING', 'FAILED', 'CANCELED')";
    const RESET_MISSING = "UPDATE batch_objects SET made = CASE WHEN status = 'COMPLETED' THEN 2 ELSE made END, status = 'PENDING', error = NULL, error_type = NULL, tier = $2, updated_at = $3 WHERE batch_id = $1 AND tier >= $2 AND status IN ('COMPLETED', 'SKIPPED') AND NOT EXISTS (SELECT 1 FROM processed p WHERE p.namespace_id = $6 AND p.object_id = batch_objects.object_id AND p.collection_id = $4) AND (NOT $5 OR EXISTS (SELECT 1 FROM objects o WHERE o.namespace_id = $6 AND o.object_id = batch_objects.object_id AND o.status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED')))";
    const CANCEL_TIER = "UPDATE batch_objects SET status = 'CANCELED', updated_at = $3 WHERE batch_id = $1 AND status = 'PENDING' AND tier = $2";
    const CANCEL_OBJECTS = "UPDATE batch_objects SET status = 'CANCELED', updated_at = $2 WHERE batch_id = $1 AND status = 'PENDING'";
}

crate::row! {
    /// One failed object.
    #[derive(Debug, Clone)]
    pub struct FailedRow {
        pub object_id: String,
        pub collection_id: Option<String>,
        pub error: String,
        pub error_type: String,
        pub updated_at: i64,
        pub tier: i64,
        pub document_id: Option<String>,
    }
}

/// What became of one object.
#[derive(Debug, Clone)]
pub struct ObjectEnd {
    pub object_id: String,
    /// COMPLETED, SKIPPED or FAILED.
    pub status: &'static str,
    pub error: Option<String>,
    pub error_type: Option<String>,
    pub collection_id: Option<String>,
    /// The document of a tier before that could not be processed.
    pub document_id: Option<String>,
    pub documents: i64,
}

/// Which failures are asked for; by default all.
#[derive(Debug, Clone)]
pub struct Failures {
    /// Below zero every one.
    pub tier: i64,
    pub collection_id: String,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            tier: -1,
            collection_id: String::new(),
        }
    }
}

/// How many objects of a batch stand where.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub total: i64,
    pub pending: i64,
    pub completed: i64,
    pub skipped: i64,
    pub failed: i64,
    pub canceled: i64,
    pub documents: i64,
    /// Tiers that unfinished objects have behind them.
    pub tiers_passed: i64,
}

impl Counts {
    fn from_rows(rows: Vec<(String, i64, i64, i64)>) -> Self {
        let mut counts = Self::default();
        for (status, number, documents, tiers) in rows {
            counts.total += number;
            counts.documents += documents;
            if status == "PENDING" {
                counts.tiers_passed += tiers;
            }
            match status.as_str() {
                "COMPLETED" => counts.completed += number,
                "SKIPPED" => counts.skipped += number,
                "FAILED" => counts.failed += number,
                "CANCELED" => counts.canceled += number,
                _ => counts.pending += number,
            }
        }
        counts
    }
}

pub async fn add_objects(
    tx: &mut Tx,
    batch_id: &str,
    object_ids: &[String],
    now: i64,
) -> Result<()> {
    let mut position = tx.number(NEXT_POSITION, args![batch_id]).await?;
    for object_id in object_ids {
        let added = tx
            .run(ADD_OBJECT, args![batch_id, object_id, position, now])
            .await?;
        // Positions have no gaps, for chunks are spans of them: an object named twice takes one.
        position += i64::try_from(added).unwrap_or(0);
    }
    Ok(())
}

pub async fn object_ids(db: &Db, batch_id: &str) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db.all(OBJECT_IDS, args![batch_id]).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// Every object of a bucket, oldest first.
pub async fn bucket_objects(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    limit: i64,
) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db
        .all(BUCKET_OBJECTS, args![namespace_id, bucket_id, limit])
        .await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// Ids looked up by one statement.
const LOOKED_UP: usize = 100;

/// What asks for up to so many ids of a bucket's objects.
fn looked_up(namespace_id: &str, bucket_id: &str, some: &[String]) -> Vec<Arg> {
    let mut args = args![namespace_id, bucket_id];
    let last = some.last().into_iter().cycle();
    args.extend(some.iter().chain(last).take(LOOKED_UP).map(Arg::from));
    args
}

/// Those ids, in their order, that objects of the bucket have.
pub async fn known(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    ids: &[String],
) -> Result<Vec<String>> {
    let mut kept = Vec::with_capacity(ids.len());
    for some in ids.chunks(LOOKED_UP) {
        let args = looked_up(namespace_id, bucket_id, some);
        let rows: Vec<(String,)> = db.all(KNOWN_OBJECTS, args).await?;
        let known: HashSet<String> = rows.into_iter().map(|(id,)| id).collect();
        kept.extend(some.iter().filter(|id| known.contains(*id)).cloned());
    }
    Ok(kept)
}

/// The first id that no object of the bucket has.
pub async fn first_unknown<'i>(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    ids: &'i [String],
) -> Result<Option<&'i str>> {
    for some in ids.chunks(LOOKED_UP) {
        let args = looked_up(namespace_id, bucket_id, some);
        let known: Vec<(String,)> = tx.all(KNOWN_OBJECTS, args).await?;
        let known: HashSet<&str> = known.iter().map(|(id,)| id.as_str()).collect();
        if let Some(unknown) = some.iter().find(|id| !known.contains(id.as_str())) {
            return Ok(Some(unknown));
        }
    }
    Ok(None)
}

/// A part of a batch: positions, the second one excluded, of the objects that wait for a tier.
#[derive(Debug, Clone)]
pub struct Span {
    pub batch_id: String,
    pub from: i64,
    pub to: i64,
    pub tier: i64,
}

/// Ids of the objects that wait there.
pub async fn pending(db: &Db, span: &Span) -> Result<Vec<String>> {
    let args = args![&span.batch_id, span.from, span.to, span.tier];
    let rows: Vec<(String,)> = db.all(SPAN, args).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// The objects of a chunk that have not ended, each with the hash of its content.
pub async fn chunk_objects(
    db: &Db,
    namespace_id: &str,
    span: &Span,
) -> Result<Vec<(ObjectResponse, String)>> {
    let args = args![&span.batch_id, namespace_id, span.from, span.to, span.tier];
    let rows: Vec<(Json<ObjectResponse>, String)> = db.all(CHUNK, args).await?;
    Ok(rows
        .into_iter()
        .map(|(data, hash)| (data.0, hash))
        .collect())
}

/// Which objects of a chunk a collection was filled from before, and with which content.
pub async fn processed(
    db: &Db,
    namespace_id: &str,
    collection_id: &str,
    span: &Span,
) -> Result<Vec<(String, String)>> {
    let args = args![
        &span.batch_id,
        collection_id,
        span.from,
        span.to,
        namespace_id
    ];
    db.all(PROCESSED, args).await
}

/// What a collection has made of an object.
#[derive(Debug, Clone)]
pub struct Processed {
    pub object_id: String,
    pub collection_id: String,
    pub content_hash: String,
    pub documents: i64,
}

pub async fn set_processed(
    tx: &mut Tx,
    namespace_id: &str,
    one: &Processed,
    now: i64,
) -> Result<()> {
    let args = args![
        &one.object_id,
        &one.collection_id,
        namespace_id,
        &one.content_hash,
        one.documents,
        now
    ];
    tx.run(SET_PROCESSED, args).await?;
    Ok(())
}

/// Forgets what was made for a collection that is gone.
pub async fn forget_collection(tx: &mut Tx, namespace_id: &str, collection_id: &str) -> Result<()> {
    tx.run(FORGET_COLLECTION, args![namespace_id, collection_id])
        .await?;
    fillings::forget_collection(tx, namespace_id, collection_id).await
}

/// Where an object goes from a tier.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub tier: i64,
    /// No tier comes after.
    pub is_last: bool,
    /// The batch is of objects, which know where they stand; not of documents.
    pub of_objects: bool,
}

/// Ends an object in a tier: it waits for the next one, or has ended. True when it was processed, which is paid for.
pub async fn end_object(
    tx: &mut Tx,
    namespace_id: &str,
    batch_id: &str,
    end: &ObjectEnd,
    step: Step,
    now: i64,
) -> Result<bool> {
    let failed = end.status == "FAILED";
    let goes_on = !failed && !step.is_last;
    let args = args![
        batch_id,
        &end.object_id,
        if goes_on { "PENDING" } else { end.status },
        end.error.clone(),
        end.error_type.clone(),
        end.collection_id.clone(),
        end.documents,
        now,
        step.tier + i64::from(goes_on),
        i64::from(end.status == "COMPLETED"),
        end.document_id.clone(),
    ];
    let ended: Option<(String, i64)> = tx.one(SET_OBJECT, args).await?;
    let processed = ended.is_some_and(|(status, made)| status == "COMPLETED" && made == 1);
    if goes_on || !step.of_objects {
        return Ok(processed);
    }
    let status = if failed { "FAILED" } else { "COMPLETED" };
    let error = end.error.clone().filter(|_| failed);
    let args = args![namespace_id, &end.object_id, status, now, error];
    tx.run(SET_OBJECT_STATUS, args).await?;
    Ok(processed)
}

/// The first tier that an object waits for; none when none waits.
pub async fn next_tier(tx: &mut Tx, batch_id: &str) -> Result<Option<i64>> {
    let tier = tx.number(NEXT_TIER, args![batch_id]).await?;
    Ok((tier >= 0).then_some(tier))
}

/// Whether any object waits for this tier. Unlike [`next_tier`] it does not look at all that wait.
pub async fn waits_for(tx: &mut Tx, batch_id: &str, tier: i64) -> Result<bool> {
    Ok(tx.number(WAITS_FOR, args![batch_id, tier]).await? > 0)
}

/// How many objects failed in a tier, and how many came out of it at all.
pub async fn tier_counts(tx: &mut Tx, batch_id: &str, tier: i64) -> Result<(i64, i64)> {
    let all = tx.number(IN_TIER, args![batch_id, tier]).await?;
    let failed = tx.number(FAILED_IN_TIER, args![batch_id, tier]).await?;
    Ok((failed, all))
}

/// Lets everything that waits begin at the first tier.
pub async fn back_to_first(tx: &mut Tx, batch_id: &str) -> Result<()> {
    tx.run(BACK_TO_FIRST, args![batch_id]).await?;
    Ok(())
}

/// Puts everything back that came as far as a tier.
pub async fn back_to(tx: &mut Tx, batch_id: &str, tier: i64, now: i64) -> Result<u64> {
    tx.run(BACK_TO, args![batch_id, tier, now]).await
}

pub async fn counts(tx: &mut Tx, batch_id: &str) -> Result<Counts> {
    Ok(Counts::from_rows(tx.all(COUNTS, args![batch_id]).await?))
}

pub async fn counts_of(db: &Db, batch_id: &str) -> Result<Counts> {
    Ok(Counts::from_rows(db.all(COUNTS, args![batch_id]).await?))
}

pub async fn failed(
    db: &Db,
    batch_id: &str,
    which: &Failures,
    limit: i64,
    offset: i64,
) -> Result<Vec<FailedRow>> {
    let args = args![batch_id, limit, offset, which.tier, &which.collection_id];
    db.all(FAILED, args).await
}

pub async fn count_failed(db: &Db, batch_id: &str, which: &Failures) -> Result<i64> {
    let args = args![batch_id, which.tier, &which.collection_id];
    db.number(COUNT_FAILED, args).await
}

pub async fn first_error(tx: &mut Tx, batch_id: &str) -> Result<Option<String>> {
    Ok(tx
        .one::<(String,)>(FIRST_ERROR, args![batch_id])
        .await?
        .map(|(error,)| error))
}

/// Puts failed objects back; an empty `error_type` means every one, a tier below zero all of them.
pub async fn reset_failed(
    tx: &mut Tx,
    batch_id: &str,
    error_type: &str,
    tier: i64,
    now: i64,
) -> Result<u64> {
    let args = args![batch_id, now, error_type, tier];
    tx.run(RESET_FAILED, args).await
}

/// Puts everything back that did not finish.
pub async fn reset_unfinished(tx: &mut Tx, batch_id: &str, now: i64) -> Result<u64> {
    tx.run(RESET_ALL, args![batch_id, now]).await
}

pub async fn cancel_objects(tx: &mut Tx, batch_id: &str, now: i64) -> Result<u64> {
    tx.run(CANCEL_OBJECTS, args![batch_id, now]).await
}

/// Cancels what waits for a tier; answers how many objects that were.
pub async fn cancel_tier(tx: &mut Tx, batch_id: &str, tier: i64, now: i64) -> Result<u64> {
    tx.run(CANCEL_TIER, args![batch_id, tier, now]).await
}

/// Puts back what did not come out of a tier.
pub async fn reset_stopped(tx: &mut Tx, batch_id: &str, tier: i64, now: i64) -> Result<u64> {
    tx.run(RESET_STOPPED, args![batch_id, tier, now]).await
}

/// Puts back what came out of a tier although the collection was not filled from it. Objects that are gone stay so; documents
/// are asked of the store when the chunk runs.
pub async fn reset_missing(
    tx: &mut Tx,
    (namespace_id, batch_id): (&str, &str),
    tier: i64,
    collection_id: &str,
    of_objects: bool,
    now: i64,
) -> Result<u64> {
    let args = args![batch_id, tier, now, collection_id, of_objects, namespace_id];
    tx.run(RESET_MISSING, args).await
}
