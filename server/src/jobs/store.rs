use std::sync::LazyLock;

use loupe_wire::{TaskStatusEnum, Value};

use crate::{
    args,
    cause::Cause,
    db::{Db, Json, Tx},
    error::Result,
    v1::{
        alerts::DELIVER,
        batches::{self, callbacks::CALL},
        notifications::letters::LETTER,
        syncs,
        tasks::name_of,
    },
};

crate::sql! {
    // Work of every organization: the queue is one. The outer condition is checked again after a concurrent claim of
    // the same row, so two workers never hold one row.
    const CLAIM = "UPDATE tasks SET lease_owner = $1, lease_until = $2, attempt = attempt + 1, status = 'PROCESSING', updated_at = $3 WHERE task_id = (SELECT task_id FROM tasks WHERE status IN ('QUEUED', 'PROCESSING') AND kind IS NOT NULL AND (kind IN ($4, $5, $7, $8, $9)) = $6 AND ((status = 'QUEUED' AND run_after <= $3) OR (status = 'PROCESSING' AND lease_until < $3)) ORDER BY created_at, task_id LIMIT 1) AND ((status = 'QUEUED' AND run_after <= $3) OR (status = 'PROCESSING' AND lease_until < $3)) RETURNING task_id, org_id, namespace_id, parent_id, kind, work, lease_owner, attempt, tries, cause";
    // The same for what is sent: first of organizations that have the least under way, and none of those that have their share.
    const CLAIM_SEND = "UPDATE tasks SET lease_owner = $1, lease_until = $2, attempt = attempt + 1, status = 'PROCESSING', updated_at = $3 WHERE task_id = (SELECT t.task_id FROM tasks t LEFT JOIN (SELECT org_id, COUNT(*) AS held FROM tasks WHERE kind IN ($4, $5, $6) AND status = 'PROCESSING' AND lease_until >= $3 GROUP BY org_id) busy ON busy.org_id = t.org_id WHERE t.kind IN ($4, $5, $6) AND t.status IN ('QUEUED', 'PROCESSING') AND ((t.status = 'QUEUED' AND t.run_after <= $3) OR (t.status = 'PROCESSING' AND t.lease_until < $3)) AND COALESCE(busy.held, 0) < $7 ORDER BY COALESCE(busy.held, 0), t.created_at, t.task_id LIMIT 1) AND ((status = 'QUEUED' AND run_after <= $3) OR (status = 'PROCESSING' AND lease_until < $3)) RETURNING task_id, org_id, namespace_id, parent_id, kind, work, lease_owner, attempt, tries, cause";
    const RENEW = "UPDATE tasks SET lease_until = $4 WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
    const FINISH = "UPDATE tasks SET status = $4, updated_at = $5, ended_at = $5, lease_owner = NULL, lease_until = NULL WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
    const HOLDS = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
    const REQUEUE = "UPDATE tasks SET status = 'QUEUED', updated_at = $4, run_after = $5, tries = tries + 1, lease_owner = NULL, lease_until = NULL WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
    // A release is no failed try.
    const RELEASE = "UPDATE tasks SET status = 'QUEUED', updated_at = $4, attempt = attempt - 1, lease_owner = NULL, lease_until = NULL WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
    // For the one process that owns an SQLite database: whoever held these leases is dead.
    const RECLAIM = "UPDATE tasks SET status = 'QUEUED', lease_owner = NULL, lease_until = NULL WHERE kind IS NOT NULL AND status = 'PROCESSING'";
    const CANCEL_CHILDREN = "UPDATE tasks SET status = 'CANCELED', updated_at = $2, ended_at = $2, lease_owner = NULL, lease_until = NULL WHERE parent_id = $1 AND status IN ('QUEUED', 'PROCESSING')";
    const HAND_BACK = "UPDATE tasks SET status = 'QUEUED', updated_at = $2, run_after = 0, lease_owner = NULL, lease_until = NULL WHERE parent_id = $1 AND ((status = 'PROCESSING' AND ($3 OR lease_until < $2)) OR (status = 'QUEUED' AND run_after > $2))";
    const UNFINISHED = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE parent_id = $1 AND status IN ('QUEUED', 'PROCESSING')";
    const HOLD_LEASE = "INSERT INTO leases (name, owner, until) VALUES ($1, $2, $4) ON CONFLICT (name) DO UPDATE SET owner = $2, until = $4 WHERE leases.owner = $2 OR leases.until < $3";
    const DROP_LEASE = "DELETE FROM leases WHERE name = $1 AND owner = $2";
    const DROP_LEASES = "DELETE FROM leases";
    const ARCHIVE = "INSERT INTO tasks_archive (task_id, org_id, namespace_id, task_type, status, created_at, updated_at, ended_at, data, started_by) SELECT task_id, org_id, namespace_id, task_type, status, created_at, updated_at, ended_at, data, started_by FROM tasks WHERE ended_at < $1 AND parent_id IS NULL ON CONFLICT (task_id) DO NOTHING";
    const CLEAR = "DELETE FROM tasks WHERE ended_at < $1";
}

/// The same where several claim at once: each takes another row, instead of waiting for one that it then has not got. SQLite has
/// no such words, and one writer.
static CLAIM_UNLOCKED: LazyLock<String> =
    LazyLock::new(|| CLAIM.replace("LIMIT 1)", "LIMIT 1 FOR UPDATE SKIP LOCKED)"));
static CLAIM_SEND_UNLOCKED: LazyLock<String> =
    LazyLock::new(|| CLAIM_SEND.replace("LIMIT 1)", "LIMIT 1 FOR UPDATE OF t SKIP LOCKED)"));

/// A row that a worker holds. Owner and attempt fence late writers: who lost the lease changes no row.
#[derive(Debug, Clone)]
pub struct Claim {
    pub task_id: String,
    pub org_id: String,
    pub namespace_id: Option<String>,
    pub parent_id: Option<String>,
    pub kind: String,
    pub work: Value,
    pub owner: String,
    pub attempt: i64,
    /// Ends in an error so far.
    pub tries: i64,
    /// What led to it.
    pub cause: Cause,
}

crate::row! {
    struct Row {
        task_id: String,
        org_id: String,
        namespace_id: Option<String>,
        parent_id: Option<String>,
        kind: String,
        work: Option<Json<Value>>,
        lease_owner: String,
        attempt: i64,
        tries: i64,
        cause: Option<String>,
    }
}

/// Which work a worker takes. What waits for servers of somebody else more than it works has lanes of its own: it keeps no
/// worker from what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// All that no other lane takes.
    Work,
    /// Looks into storages.
    Looks,
    /// Chunks of batches that read pages of the web.
    Crawls,
    /// What people are told through channels and by mail.
    Sends,
}

impl Lane {
    /// Kinds of work, and whether it is those or all others.
    const fn kinds(self) -> ([&'static str; 5], bool) {
        match self {
            Self::Work => ([syncs::LOOK, batches::CRAWL, DELIVER, LETTER, CALL], false),
            Self::Looks => ([syncs::LOOK; 5], true),
            Self::Crawls => ([batches::CRAWL; 5], true),
            Self::Sends => ([DELIVER, LETTER, CALL, DELIVER, LETTER], true),
        }
    }
}

/// Claims what waits longest in a lane; of what is sent an organization has at most its `share` under way.
pub(super) async fn claim(
    tx: &mut Tx,
    owner: &str,
    lane: Lane,
    share: i64,
    now: i64,
    until: i64,
) -> Result<Option<Claim>> {
    let ([first, second, third, fourth, fifth], of_them) = lane.kinds();
    let row: Option<Row> = if lane == Lane::Sends {
        let args = args![owner, until, now, first, second, third, share];
        let sql = match tx.is_postgres() {
            true => CLAIM_SEND_UNLOCKED.as_str(),
            false => CLAIM_SEND,
        };
        tx.one(sql, args).await?
    } else {
        let args = args![
            owner, until, now, first, second, of_them, third, fourth, fifth
        ];
        let sql = match tx.is_postgres() {
            true => CLAIM_UNLOCKED.as_str(),
            false => CLAIM,
        };
        tx.one(sql, args).await?
    };
    Ok(row.map(|row| Claim {
        task_id: row.task_id,
        org_id: row.org_id,
        namespace_id: row.namespace_id,
        parent_id: row.parent_id,
        kind: row.kind,
        work: row.work.map(|work| work.0).unwrap_or_default(),
        owner: row.lease_owner,
        attempt: row.attempt,
        tries: row.tries,
        cause: Cause::read(row.cause.as_deref()),
    }))
}

/// Whether the claim is held still.
pub async fn holds(tx: &mut Tx, claim: &Claim) -> Result<bool> {
    let args = args![&claim.task_id, &claim.owner, claim.attempt];
    Ok(tx.number(HOLDS, args).await? > 0)
}

/// The same outside of a transaction: asked before each step that nothing takes back. What is told to stop writes at most
/// the step that it is at.
pub async fn is_held(db: &Db, claim: &Claim) -> Result<bool> {
    let args = args![&claim.task_id, &claim.owner, claim.attempt];
    Ok(db.number(HOLDS, args).await? > 0)
}

/// False when the lease is gone.
pub(super) async fn renew(tx: &mut Tx, claim: &Claim, until: i64) -> Result<bool> {
    Ok(tx
        .run(
            RENEW,
            args![&claim.task_id, &claim.owner, claim.attempt, until],
        )
        .await?
        == 1)
}

/// Ends the row if the lease still holds; false when it does not.
pub async fn finish(tx: &mut Tx, claim: &Claim, status: TaskStatusEnum, now: i64) -> Result<bool> {
    let args = args![
        &claim.task_id,
        &claim.owner,
        claim.attempt,
        name_of(status),
        now
    ];
    Ok(tx.run(FINISH, args).await? == 1)
}

pub(super) async fn requeue(tx: &mut Tx, claim: &Claim, now: i64, after: i64) -> Result<()> {
    tx.run(
        REQUEUE,
        args![&claim.task_id, &claim.owner, claim.attempt, now, after],
    )
    .await?;
    Ok(())
}

pub(super) async fn release(tx: &mut Tx, claim: &Claim, now: i64) -> Result<()> {
    tx.run(
        RELEASE,
        args![&claim.task_id, &claim.owner, claim.attempt, now],
    )
    .await?;
    Ok(())
}

/// Frees every lease; answers how many there were.
pub(super) async fn reclaim(tx: &mut Tx) -> Result<u64> {
    tx.run(RECLAIM, vec![]).await
}

/// Cancels the inner work of a task; answers how many pieces that were.
pub async fn cancel_children(tx: &mut Tx, task_id: &str, now: i64) -> Result<i64> {
    Ok(i64::try_from(tx.run(CANCEL_CHILDREN, args![task_id, now]).await?).unwrap_or(i64::MAX))
}

/// Lets inner work of a task that stands still start at once: that of dead workers, and what waits for another try; with
/// `held` also what a worker is at, who notices by its lease. Answers how many pieces that were.
pub async fn hand_back(tx: &mut Tx, task_id: &str, held: bool, now: i64) -> Result<i64> {
    let handed = tx.run(HAND_BACK, args![task_id, now, held]).await?;
    Ok(i64::try_from(handed).unwrap_or(i64::MAX))
}

/// Pieces of a task's inner work that have not ended.
pub async fn unfinished(tx: &mut Tx, task_id: &str) -> Result<i64> {
    tx.number(UNFINISHED, args![task_id]).await
}

/// Takes or renews a named lease; false while another process holds it.
pub(super) async fn hold_lease(
    tx: &mut Tx,
    name: &str,
    owner: &str,
    now: i64,
    until: i64,
) -> Result<bool> {
    Ok(tx.run(HOLD_LEASE, args![name, owner, now, until]).await? == 1)
}

pub(super) async fn drop_lease(tx: &mut Tx, name: &str, owner: &str) -> Result<()> {
    tx.run(DROP_LEASE, args![name, owner]).await?;
    Ok(())
}

/// Gives every lease back: for the one process that owns an SQLite database.
pub(super) async fn drop_leases(tx: &mut Tx) -> Result<()> {
    tx.run(DROP_LEASES, vec![]).await?;
    Ok(())
}

/// Tasks moved.
pub(super) async fn archive(tx: &mut Tx, before: i64) -> Result<u64> {
    let moved = tx.run(ARCHIVE, args![before]).await?;
    tx.run(CLEAR, args![before]).await?;
    Ok(moved)
}
