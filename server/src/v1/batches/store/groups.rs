//! Buckets that are split into batches: how far each was read, and what was made of it.

use loupe_wire::BulkSubmitBatchesRequest;
use serde::{Deserialize, Serialize};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const INSERT = "INSERT INTO batch_groups (group_id, org_id, namespace_id, bucket_id, digest, seen_at, seen_id, batch_id, held, objects, batches, steps, created_at, ended_at, error, data) VALUES ($1, $2, $3, $4, $5, 0, '', $6, 0, 0, 0, 0, $7, 0, '', $8)";
    const FIND = "SELECT group_id, org_id, namespace_id, bucket_id, seen_at, seen_id, batch_id, held, objects, batches, steps, ended_at, error, data FROM batch_groups WHERE namespace_id = $1 AND group_id = $2";
    const SAME = "SELECT g.group_id FROM batch_groups g WHERE g.namespace_id = $1 AND g.bucket_id = $2 AND g.digest = $3 AND (g.ended_at = 0 OR EXISTS (SELECT 1 FROM batch_group_members m JOIN batches b ON b.batch_id = m.batch_id AND b.namespace_id = $1 WHERE m.group_id = g.group_id AND b.status IN ('QUEUED', 'PROCESSING'))) ORDER BY g.created_at DESC, g.group_id LIMIT 1";
    // Those of every organization: a small bucket does not wait for a large one.
    const OPEN = "SELECT group_id, org_id, namespace_id, bucket_id, seen_at, seen_id, batch_id, held, objects, batches, steps, ended_at, error, data FROM batch_groups WHERE ended_at = 0 ORDER BY steps, group_id LIMIT 4";
    const HOLD = "UPDATE batch_groups SET steps = steps + 1 WHERE group_id = $1 AND namespace_id = $2 AND steps = $3 AND ended_at = 0";
    const SAVE = "UPDATE batch_groups SET seen_at = $3, seen_id = $4, batch_id = $5, held = $6, objects = $7, batches = $8, ended_at = $9, error = $10 WHERE group_id = $1 AND namespace_id = $2";
    const ADD_MEMBER = "INSERT INTO batch_group_members (group_id, place, namespace_id, batch_id, objects) VALUES ($1, $2, $3, $4, $5)";
    const MEMBERS = "SELECT m.batch_id, m.objects, COALESCE(b.status, 'DELETED'), COALESCE(q.position, 0) FROM batch_group_members m LEFT JOIN batches b ON b.batch_id = m.batch_id AND b.namespace_id = $1 LEFT JOIN (SELECT batch_id, ROW_NUMBER() OVER (ORDER BY queued_at, batch_id) AS position FROM batches WHERE status = 'QUEUED') q ON q.batch_id = m.batch_id WHERE m.namespace_id = $1 AND m.group_id = $2 ORDER BY m.place";
    const OBJECTS_OF = "SELECT o.status, CAST(COUNT(*) AS BIGINT) FROM batch_group_members m JOIN batch_objects o ON o.batch_id = m.batch_id WHERE m.namespace_id = $1 AND m.group_id = $2 GROUP BY o.status";
    const FIRST_ERROR = "SELECT o.error FROM batch_group_members m JOIN batch_objects o ON o.batch_id = m.batch_id AND o.status = 'FAILED' WHERE m.namespace_id = $1 AND m.group_id = $2 AND o.error IS NOT NULL ORDER BY m.place, o.position LIMIT 1";
    const COUNT_OBJECTS = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED')";
    const PAGE = "SELECT object_id, created_at FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $3 AND created_at >= $4 AND (created_at > $4 OR object_id > $5) AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED') ORDER BY created_at, object_id LIMIT $6";
    // A hundred ids at once: fewer are filled up with the last one. Positions have no gaps.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const FILL = "INSERT INTO batch_objects (batch_id, object_id, position, status, updated_at) SELECT CAST($1 AS TEXT), object_id, CAST($2 AS BIGINT) + ROW_NUMBER() OVER (ORDER BY created_at, object_id) - 1, 'PENDING', CAST($3 AS BIGINT) FROM objects WHERE namespace_id || '' = $4 AND object_id IN ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102, $103, $104)";
    const SAMPLE = "SELECT object_id FROM batch_objects WHERE batch_id = $1 AND position < 5 ORDER BY position";
    const DROP_HELD = "DELETE FROM batch_objects WHERE batch_id = $1";
    const SWEEP = "DELETE FROM batch_groups WHERE namespace_id = $1 AND ended_at > 0 AND ended_at < $2";
    const SWEEP_MEMBERS = "DELETE FROM batch_group_members WHERE namespace_id = $1 AND NOT EXISTS (SELECT 1 FROM batch_groups g WHERE g.group_id = batch_group_members.group_id)";
}

/// Ids looked up by one statement.
const LOOKED_UP: usize = 100;

/// What a group is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    pub request: BulkSubmitBatchesRequest,
    /// Who asked for it.
    pub actor: String,
    /// Objects that were made later are not in it.
    pub until: i64,
    /// Objects that it has at most.
    pub bound: i64,
}

crate::row! {
    /// A bucket that is split into batches.
    #[derive(Debug, Clone)]
    pub struct Group {
        pub group_id: String,
        pub org_id: String,
        pub namespace_id: String,
        pub bucket_id: String,
        /// The object that was read last.
        pub seen_at: i64,
        pub seen_id: String,
        /// The batch that is being filled, and the objects that it holds.
        pub batch_id: String,
        pub held: i64,
        /// Objects and batches that are queued.
        pub objects: i64,
        pub batches: i64,
        pub steps: i64,
        /// 0 while it is being split.
        pub ended_at: i64,
        /// Why it could not be split to its end.
        pub error: String,
        pub data: Json<Wanted>,
    }
}

/// A batch of a group: its id, its objects, its status, and its place in the queue or 0.
pub type Member = (String, i64, String, i64);

pub async fn insert(tx: &mut Tx, group: &Group, digest: &str, now: i64) -> Result<()> {
    let args = args![
        &group.group_id,
        &group.org_id,
        &group.namespace_id,
        &group.bucket_id,
        digest,
        &group.batch_id,
        now,
        Arg::json(&group.data)
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

pub async fn find(db: &Db, namespace_id: &str, group_id: &str) -> Result<Group> {
    let found = db.one(FIND, args![namespace_id, group_id]).await?;
    // Its bucket was removed meanwhile.
    found.ok_or_else(|| ApiError::not_found("batch group", group_id))
}

/// The group that the same request has made, while something of it waits or runs.
pub async fn find_same(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    digest: &str,
) -> Result<Option<String>> {
    let args = args![namespace_id, bucket_id, digest];
    Ok(tx.one::<(String,)>(SAME, args).await?.map(|row| row.0))
}

/// Some that are being split, those with the fewest steps behind them first.
pub async fn list_open(db: &Db) -> Result<Vec<Group>> {
    db.all(OPEN, vec![]).await
}

/// Holds a group until the transaction ends; false when somebody else went on with it.
pub async fn hold(tx: &mut Tx, group: &Group) -> Result<bool> {
    let args = args![&group.group_id, &group.namespace_id, group.steps];
    Ok(tx.run(HOLD, args).await? > 0)
}

pub async fn update(tx: &mut Tx, group: &Group) -> Result<()> {
    let args = args![
        &group.group_id,
        &group.namespace_id,
        group.seen_at,
        &group.seen_id,
        &group.batch_id,
        group.held,
        group.objects,
        group.batches,
        group.ended_at,
        &group.error
    ];
    tx.run(SAVE, args).await?;
    Ok(())
}

/// Notes that the batch which was filled is queued.
pub async fn insert_member(tx: &mut Tx, group: &Group) -> Result<()> {
    let args = args![
        &group.group_id,
        group.batches,
        &group.namespace_id,
        &group.batch_id,
        group.held
    ];
    tx.run(ADD_MEMBER, args).await?;
    Ok(())
}

pub async fn members(db: &Db, group: &Group) -> Result<Vec<Member>> {
    db.all(MEMBERS, args![&group.namespace_id, &group.group_id])
        .await
}

/// How many objects of the group's batches have which status.
pub async fn statuses(db: &Db, group: &Group) -> Result<Vec<(String, i64)>> {
    db.all(OBJECTS_OF, args![&group.namespace_id, &group.group_id])
        .await
}

/// What the first of its objects that failed failed of.
pub async fn first_error(db: &Db, group: &Group) -> Result<Option<String>> {
    let args = args![&group.namespace_id, &group.group_id];
    let found: Option<(String,)> = db.one(FIRST_ERROR, args).await?;
    Ok(found.map(|(error,)| error))
}

/// How many objects of a bucket batches take.
pub async fn count_objects(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    db.number(COUNT_OBJECTS, args![namespace_id, bucket_id])
        .await
}

/// The objects that come next, with the moments they were made at.
pub async fn page(db: &Db, group: &Group, limit: i64) -> Result<Vec<(String, i64)>> {
    let args = args![
        &group.namespace_id,
        &group.bucket_id,
        group.data.0.until,
        group.seen_at,
        &group.seen_id,
        limit
    ];
    db.all(PAGE, args).await
}

/// Puts objects into the batch that is being filled; answers how many were there still.
pub async fn fill(tx: &mut Tx, group: &Group, ids: &[String], now: i64) -> Result<i64> {
    let mut held = group.held;
    for some in ids.chunks(LOOKED_UP) {
        let mut args = args![&group.batch_id, held, now, &group.namespace_id];
        let last = some.last().into_iter().cycle();
        args.extend(some.iter().chain(last).take(LOOKED_UP).map(Arg::from));
        held += i64::try_from(tx.run(FILL, args).await?).unwrap_or(0);
    }
    Ok(held - group.held)
}

/// The first objects of a batch.
pub async fn sample(tx: &mut Tx, batch_id: &str) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx.all(SAMPLE, args![batch_id]).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// Drops what a batch holds that will not be made.
pub async fn drop_held(tx: &mut Tx, group: &Group) -> Result<()> {
    tx.run(DROP_HELD, args![&group.batch_id]).await?;
    Ok(())
}

/// Removes the groups of a namespace that ended before a moment.
pub async fn sweep(tx: &mut Tx, namespace_id: &str, before: i64) -> Result<()> {
    tx.run(SWEEP, args![namespace_id, before]).await?;
    tx.run(SWEEP_MEMBERS, args![namespace_id]).await?;
    Ok(())
}
