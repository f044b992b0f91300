use loupe_wire::Notification;

use crate::{
    args, clock,
    db::{Arg, Args, Db, Json, Tx},
    error::{ApiError, Result},
    list::{ListParams, Mark},
};

crate::sql! {
    const INSERT = "INSERT INTO notifications (id, org_id, user_id, type, priority, created_at, read_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    // Read at no moment: unread. A notification without a user is for everybody: it counts for each, and a list of one user's has
    // what is for that user alone.
    const LIST = "SELECT read_at, data, created_at, id FROM notifications WHERE org_id = $1 AND ($2 = '' OR type = $2) AND ($3 = '' OR priority = $3) AND ($4 < 0 OR ($4 = 0 AND read_at = 0) OR ($4 = 1 AND read_at > 0)) AND ($5 = '' OR user_id = $5) AND created_at <= $8 AND (created_at < $8 OR id > $9) ORDER BY created_at DESC, id LIMIT $6 OFFSET $7";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM notifications WHERE org_id = $1 AND ($2 = '' OR type = $2) AND ($3 = '' OR priority = $3) AND ($4 < 0 OR ($4 = 0 AND read_at = 0) OR ($4 = 1 AND read_at > 0)) AND ($5 = '' OR user_id = $5)";
    const UNREAD = "SELECT CAST(COUNT(*) AS BIGINT) FROM notifications WHERE org_id = $1 AND ($2 = '' OR user_id = '' OR user_id = $2) AND read_at = 0";
    const FIND = "SELECT read_at, data FROM notifications WHERE org_id = $1 AND id = $2";
    const READ = "UPDATE notifications SET read_at = $3 WHERE org_id = $1 AND id = $2 AND read_at = 0";
    const READ_ALL = "UPDATE notifications SET read_at = $3 WHERE org_id = $1 AND ($2 = '' OR user_id = '' OR user_id = $2) AND read_at = 0";
    const CHANGE = "UPDATE notifications SET data = $3 WHERE org_id = $1 AND id = $2";
    const DELETE = "DELETE FROM notifications WHERE org_id = $1 AND id = $2";
    const SWEEP = "DELETE FROM notifications WHERE created_at < $1";
}

/// What a list is narrowed to; empty members match everything.
#[derive(Debug)]
pub(super) struct Wanted {
    pub kind: String,
    pub priority: String,
    pub read: Option<bool>,
    pub user_id: String,
}

impl Wanted {
    fn args(&self, org_id: &str) -> Args {
        args![
            org_id,
            &self.kind,
            &self.priority,
            self.read.map_or(-1, i64::from),
            &self.user_id
        ]
    }
}

type Row = (i64, Json<Notification>);

fn notification((read_at, data): Row) -> Notification {
    Notification {
        read: read_at > 0,
        read_at: (read_at > 0).then(|| clock::time(read_at)),
        ..data.0
    }
}

pub(super) async fn insert(
    tx: &mut Tx,
    notification: &Notification,
    kind: &str,
    priority: &str,
    now: i64,
) -> Result<()> {
    let row = args![
        notification.id.as_deref().unwrap_or_default(),
        &notification.organization_id,
        notification.user_id.as_deref().unwrap_or_default(),
        kind,
        priority,
        now,
        notification.read_at.map_or(0, |at| at.timestamp_micros()),
        Arg::json(notification)
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

/// A page with one more than asked, newest first.
pub(super) async fn list(
    db: &Db,
    org_id: &str,
    wanted: &Wanted,
    params: &ListParams,
) -> Result<Vec<(Notification, Mark)>> {
    let (mut args, window) = (wanted.args(org_id), params.window());
    args.extend(args![window.limit, window.offset, window.at, window.id]);
    let rows: Vec<(i64, Json<Notification>, i64, String)> = db.all(LIST, args).await?;
    let marked = |(read_at, data, at, id)| (notification((read_at, data)), (at, id));
    Ok(rows.into_iter().map(marked).collect())
}

pub(super) async fn count(db: &Db, org_id: &str, wanted: &Wanted) -> Result<i64> {
    db.number(COUNT, wanted.args(org_id)).await
}

/// How many nobody has read: all of them, or those of one user and of everybody.
pub(super) async fn unread(db: &Db, org_id: &str, user_id: &str) -> Result<i64> {
    db.number(UNREAD, args![org_id, user_id]).await
}

pub(super) async fn find(db: &Db, org_id: &str, id: &str) -> Result<Notification> {
    let row: Option<Row> = db.one(FIND, args![org_id, id]).await?;
    row.map(notification)
        .ok_or_else(|| ApiError::not_found("notification", id))
}

/// Marks one as read; one that is stays read since when it was.
pub(super) async fn read(tx: &mut Tx, org_id: &str, id: &str, now: i64) -> Result<Notification> {
    tx.run(READ, args![org_id, id, now]).await?;
    let row: Option<Row> = tx.one(FIND, args![org_id, id]).await?;
    row.map(notification)
        .ok_or_else(|| ApiError::not_found("notification", id))
}

/// How many were unread.
pub(super) async fn read_all(tx: &mut Tx, org_id: &str, user_id: &str, now: i64) -> Result<u64> {
    tx.run(READ_ALL, args![org_id, user_id, now]).await
}

pub(super) async fn delete(tx: &mut Tx, org_id: &str, id: &str) -> Result<bool> {
    Ok(tx.run(DELETE, args![org_id, id]).await? > 0)
}

/// Removes those of before a moment.
pub(super) async fn sweep(tx: &mut Tx, before: i64) -> Result<u64> {
    tx.run(SWEEP, args![before]).await
}

/// Notes how the delivery over a channel went; nothing where the notification was removed.
pub(super) async fn set_delivery(
    tx: &mut Tx,
    org_id: &str,
    id: &str,
    channel: &str,
    status: &str,
) -> Result<()> {
    let row: Option<Row> = tx.one(FIND, args![org_id, id]).await?;
    let Some((_, mut data)) = row else {
        return Ok(());
    };
    data.0
        .delivery_status
        .insert(channel.to_owned(), status.to_owned());
    tx.run(CHANGE, args![org_id, id, Arg::json(&data.0)])
        .await?;
    Ok(())
}
