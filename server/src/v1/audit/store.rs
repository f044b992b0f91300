use loupe_wire::AuditEventResponse;

use crate::{
    args,
    db::{Arg, Args, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const INSERT = "INSERT INTO audit_log (audit_id, org_id, created_at, resource_type, resource_id, action, actor_id, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    const LIST = "SELECT created_at, audit_id, data FROM audit_log WHERE org_id = $1 AND ($2 = '' OR resource_type = $2) AND ($3 = '' OR resource_id = $3) AND ($4 = '' OR actor_id = $4) AND ($5 = '' OR action = $5) AND created_at >= $6 AND created_at < $7 ORDER BY created_at DESC, audit_id LIMIT $8 OFFSET $9";
    // The page after a record: older ones, and those of its moment with a higher id.
    const AFTER = "SELECT created_at, audit_id, data FROM audit_log WHERE org_id = $1 AND ($2 = '' OR resource_type = $2) AND ($3 = '' OR resource_id = $3) AND ($4 = '' OR actor_id = $4) AND ($5 = '' OR action = $5) AND created_at >= $6 AND created_at < $7 AND (created_at < $8 OR (created_at = $8 AND audit_id > $9)) ORDER BY created_at DESC, audit_id LIMIT $10";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM audit_log WHERE org_id = $1 AND ($2 = '' OR resource_type = $2) AND ($3 = '' OR resource_id = $3) AND ($4 = '' OR actor_id = $4) AND ($5 = '' OR action = $5) AND created_at >= $6 AND created_at < $7";
    const FIND = "SELECT created_at, audit_id, data FROM audit_log WHERE org_id = $1 AND audit_id = $2";
}

/// Where a record stands: its moment and its id.
pub(super) type Place = (i64, String);

crate::row! {
    pub(super) struct Row {
        created_at: i64,
        audit_id: String,
        pub data: Json<AuditEventResponse>,
    }
}

impl Row {
    pub fn place(&self) -> Place {
        (self.created_at, self.audit_id.clone())
    }
}

/// Which records are wanted; an empty word matches every one.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub resource_type: String,
    pub resource_id: String,
    pub actor_id: String,
    pub action: String,
    /// Microseconds, included.
    pub start: i64,
    /// Microseconds, excluded.
    pub end: i64,
}

impl Wanted {
    fn args(&self, org_id: &str) -> Args {
        args![
            org_id,
            &self.resource_type,
            &self.resource_id,
            &self.actor_id,
            &self.action,
            self.start,
            self.end,
        ]
    }
}

pub(super) async fn list(
    db: &Db,
    org_id: &str,
    wanted: &Wanted,
    skip: i64,
    limit: i64,
) -> Result<Vec<Row>> {
    let mut args = wanted.args(org_id);
    args.extend(args![limit, skip]);
    db.all(LIST, args).await
}

pub(super) async fn after(
    db: &Db,
    org_id: &str,
    wanted: &Wanted,
    place: Place,
    limit: i64,
) -> Result<Vec<Row>> {
    let mut args = wanted.args(org_id);
    args.extend(args![place.0, place.1, limit]);
    db.all(AFTER, args).await
}

pub(super) async fn count(db: &Db, org_id: &str, wanted: &Wanted) -> Result<i64> {
    db.number(COUNT, wanted.args(org_id)).await
}

pub(super) async fn find(db: &Db, org_id: &str, audit_id: &str) -> Result<AuditEventResponse> {
    let row: Option<Row> = db.one(FIND, args![org_id, audit_id]).await?;
    row.map(|row| row.data.0)
        .ok_or_else(|| ApiError::not_found("audit_log", audit_id))
}

pub(super) async fn insert(
    tx: &mut Tx,
    org_id: &str,
    event: &AuditEventResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        &event.audit_id,
        org_id,
        now,
        &event.resource_type,
        &event.resource_id,
        &event.action,
        &event.actor_id,
        Arg::json(event),
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}
