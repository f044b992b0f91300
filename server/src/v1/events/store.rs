use loupe_wire::Object;

use super::Event;
use crate::{
    args,
    cause::Cause,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const BUMP = "UPDATE organizations SET event_seq = event_seq + 1 WHERE org_id = $1";
    const NEXT = "UPDATE organizations SET event_seq = event_seq + 1 WHERE org_id = $1 RETURNING event_seq";
    const INSERT = "INSERT INTO events (org_id, seq, namespace_id, event_type, operation, payload, created_at, trace_id, cause) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    const LIST = "SELECT seq, namespace_id, event_type, operation, payload, created_at, trace_id, cause FROM events WHERE org_id = $1 AND seq > $2 AND ($3 = '' OR namespace_id = $3) AND ($4 = '' OR event_type = $4) ORDER BY seq LIMIT $5";
    const NEWEST = "SELECT event_seq FROM organizations WHERE org_id = $1";
    const BEFORE_LAST = "SELECT seq FROM events WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR event_type = $3) ORDER BY seq DESC LIMIT 1 OFFSET $4";
    const SINCE = "SELECT payload FROM events WHERE org_id = $1 AND seq > $2 AND namespace_id = $3 ORDER BY seq";
    // Of every organization: the clock is one. Numbers are counted with the organization, so none is given twice.
    const SWEEP = "DELETE FROM events WHERE (org_id, seq) IN (SELECT org_id, seq FROM events WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
}

crate::row! {
    pub struct EventRow {
        pub seq: i64,
        pub namespace_id: Option<String>,
        pub event_type: String,
        pub operation: String,
        pub payload: Json<Object>,
        pub created_at: i64,
        pub trace_id: Option<String>,
        pub cause: Option<String>,
    }
}

impl EventRow {
    /// What led to it.
    pub fn cause(&self) -> Cause {
        Cause::read(self.cause.as_deref())
    }
}

pub(super) async fn insert(tx: &mut Tx, event: Event, now: i64) -> Result<()> {
    let next: Option<(i64,)> = if tx.is_sqlite() {
        // It answers RETURNING from a table that it makes for it: two statements are quicker.
        tx.run(BUMP, args![&event.org_id]).await?;
        tx.one(NEWEST, args![&event.org_id]).await?
    } else {
        tx.one(NEXT, args![&event.org_id]).await?
    };
    let (seq,) =
        next.ok_or_else(|| ApiError::internal("an event names an unknown organization"))?;
    tx.note_event(&event.org_id, seq);
    let operation = event.operation();
    let args = args![
        &event.org_id,
        seq,
        event.namespace_id,
        event.event_type,
        operation,
        Arg::json(&event.payload),
        now,
        tx.trace_id(),
        tx.cause().text()
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

/// Events of the organization after `seq`, oldest first. Empty filters match everything.
pub async fn list(
    db: &Db,
    org_id: &str,
    after: i64,
    namespace: &str,
    kind: &str,
    limit: i64,
) -> Result<Vec<EventRow>> {
    if db.ends_feed(org_id, after).await? {
        return Ok(Vec::new());
    }
    db.all(LIST, args![org_id, after, namespace, kind, limit])
        .await
}

/// The number of the newest event in the organization's feed.
pub async fn newest(db: &Db, org_id: &str) -> Result<i64> {
    db.number(NEWEST, args![org_id]).await
}

/// The place behind which so many of the organization's newest events lie that match; empty filters match everything.
pub(super) async fn before_last(
    db: &Db,
    org_id: &str,
    (namespace, kind): (&str, &str),
    count: i64,
) -> Result<i64> {
    let args = args![org_id, namespace, kind, count];
    let row: Option<(i64,)> = db.one(BEFORE_LAST, args).await?;
    Ok(row.map_or(0, |(seq,)| seq))
}

/// What events of a namespace after `seq` tell, oldest first. Behind an event of its own a transaction finds all there will be
/// before that one.
pub async fn since(tx: &mut Tx, org_id: &str, namespace_id: &str, seq: i64) -> Result<Vec<Object>> {
    let args = args![org_id, seq, namespace_id];
    let rows: Vec<(Json<Object>,)> = tx.all(SINCE, args).await?;
    Ok(rows.into_iter().map(|(payload,)| payload.0).collect())
}

/// Forgets so many events of before a moment; how many there were.
pub(super) async fn sweep(tx: &mut Tx, before: i64, most: i64) -> Result<u64> {
    tx.run(SWEEP, args![before, most]).await
}
