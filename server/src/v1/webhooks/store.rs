use crate::{
    args,
    db::{Db, Tx},
    error::{ApiError, Result},
    list::Window,
};

crate::sql! {
    const HEALTH = "SELECT webhook_id, channel, failures, last_success_at, last_failure_at, last_error, paused_for FROM webhook_health WHERE org_id = $1";
    const HEALTH_OF = "SELECT webhook_id, channel, failures, last_success_at, last_failure_at, last_error, paused_for FROM webhook_health WHERE org_id = $1 AND webhook_id = $2";
    const HEALTH_OF_CHANNEL = "SELECT webhook_id, channel, failures, last_success_at, last_failure_at, last_error, paused_for FROM webhook_health WHERE org_id = $1 AND webhook_id = $2 AND channel = $3";
    // A receiver that does well is written down once a minute, not with every delivery.
    const SUCCEEDED = "INSERT INTO webhook_health (webhook_id, channel, org_id, failures, last_success_at, last_failure_at, last_error, paused_for) VALUES ($1, $4, $2, 0, $3, 0, '', '') ON CONFLICT (webhook_id, channel) DO UPDATE SET failures = 0, last_success_at = $3 WHERE webhook_health.failures > 0 OR webhook_health.last_success_at < $3 - 60000000";
    const FAILED = "INSERT INTO webhook_health (webhook_id, channel, org_id, failures, last_success_at, last_failure_at, last_error, paused_for) VALUES ($1, $5, $2, 1, 0, $3, $4, '') ON CONFLICT (webhook_id, channel) DO UPDATE SET failures = webhook_health.failures + 1, last_failure_at = $3, last_error = $4";
    const PAUSED = "UPDATE webhook_health SET paused_for = $4 WHERE org_id = $1 AND webhook_id = $2 AND channel = $3";
    const RESUMED = "UPDATE webhook_health SET paused_for = '', failures = 0 WHERE org_id = $1 AND webhook_id = $2";
    const FORGET_CHANNEL = "DELETE FROM webhook_health WHERE org_id = $1 AND webhook_id = $2 AND channel = $3";
    const FORGET = "DELETE FROM webhook_health WHERE org_id = $1 AND webhook_id = $2";

    const INSERT = "INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, channel, seq, event_type, status, attempts, created_at, due_at, claimed_until, last_status, last_error, ended_at) VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, $7, $7, 0, 0, '', 0) ON CONFLICT (delivery_id) DO NOTHING";
    // Work of every organization, as the queue's. What goes where something is under way waits until that has ended, and what is
    // of an organization that has its share under way until some of that has.
    const DUE = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT d.delivery_id FROM webhook_deliveries d WHERE d.status = 'pending' AND d.due_at <= $1 AND d.claimed_until < $1 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries held WHERE held.webhook_id = d.webhook_id AND held.channel = d.channel AND held.status = 'pending' AND held.claimed_until > 0 AND held.claimed_until >= $1) AND d.org_id NOT IN (SELECT org_id FROM webhook_deliveries WHERE claimed_until > 0 AND claimed_until >= $1 GROUP BY org_id HAVING COUNT(*) >= $2) LIMIT 1) found";
    // Of what is due longest, of organizations with the least under way first, so many for each channel; one for those of a channel that failed the last time. Organizations take
    // turns, first those that have the least under way, and within them their channels do.
    const CLAIM = "UPDATE webhook_deliveries SET claimed_until = $2, attempts = attempts + 1 WHERE delivery_id IN (SELECT delivery_id FROM (SELECT one.delivery_id, one.due_at, one.held + ROW_NUMBER() OVER (PARTITION BY one.org_id ORDER BY one.place, one.due_at, one.delivery_id) AS turn FROM (SELECT near.delivery_id, near.org_id, near.due_at, near.held, COALESCE(h.failures, 0) AS failures, ROW_NUMBER() OVER (PARTITION BY near.webhook_id, near.channel ORDER BY near.due_at, near.delivery_id) AS place FROM (SELECT d.delivery_id, d.org_id, d.webhook_id, d.channel, d.due_at, COALESCE(busy.held, 0) AS held FROM webhook_deliveries d LEFT JOIN (SELECT org_id, COUNT(*) AS held FROM webhook_deliveries WHERE claimed_until > 0 AND claimed_until >= $1 GROUP BY org_id) busy ON busy.org_id = d.org_id WHERE d.status = 'pending' AND d.due_at <= $1 AND d.claimed_until < $1 AND COALESCE(busy.held, 0) < $5 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries held WHERE held.webhook_id = d.webhook_id AND held.channel = d.channel AND held.status = 'pending' AND held.claimed_until > 0 AND held.claimed_until >= $1) ORDER BY COALESCE(busy.held, 0), d.due_at, d.delivery_id LIMIT 256) near LEFT JOIN webhook_health h ON h.webhook_id = near.webhook_id AND h.channel = near.channel) one WHERE one.place <= CASE WHEN one.failures > 0 THEN 1 ELSE CAST($4 AS BIGINT) END) shared WHERE turn <= $5 ORDER BY turn, due_at, delivery_id LIMIT $3) AND status = 'pending' AND claimed_until < $1 RETURNING delivery_id, org_id, webhook_id, channel, seq, event_type, status, attempts, created_at, due_at, last_status, last_error, ended_at";
    // Nobody knows what came of it: it is sent again, and that was no try.
    const RELEASE = "UPDATE webhook_deliveries SET claimed_until = 0, attempts = attempts - 1 WHERE delivery_id = $1 AND attempts = $2 AND org_id = $3 AND status = 'pending'";
    // Whoever claims later raises the attempts: an answer that comes too late changes nothing.
    const FINISH = "UPDATE webhook_deliveries SET status = $3, due_at = $4, claimed_until = 0, last_status = $5, last_error = $6, ended_at = $7 WHERE delivery_id = $1 AND attempts = $2 AND org_id = $8 AND status = 'pending'";
    const LIST = "SELECT delivery_id, org_id, webhook_id, channel, seq, event_type, status, attempts, created_at, due_at, last_status, last_error, ended_at FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 AND ($3 = '' OR status = $3) AND created_at <= $6 AND (created_at < $6 OR delivery_id > $7) ORDER BY created_at DESC, delivery_id LIMIT $4 OFFSET $5";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 AND ($3 = '' OR status = $3)";
    const REPLAY = "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = $4, claimed_until = 0, ended_at = 0 WHERE org_id = $1 AND webhook_id = $2 AND delivery_id = $3 AND status <> 'pending' RETURNING delivery_id, org_id, webhook_id, channel, seq, event_type, status, attempts, created_at, due_at, last_status, last_error, ended_at";
    const FIND = "SELECT delivery_id, org_id, webhook_id, channel, seq, event_type, status, attempts, created_at, due_at, last_status, last_error, ended_at FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2 AND delivery_id = $3";
    const DROP_DELIVERIES = "DELETE FROM webhook_deliveries WHERE org_id = $1 AND webhook_id = $2";
    const SWEEP = "DELETE FROM webhook_deliveries WHERE created_at < $1";
}

crate::row! {
    /// How the receiver of one channel does.
    #[derive(Debug, Clone)]
    pub(super) struct Health {
        pub webhook_id: String,
        /// The channel's key.
        pub channel: i64,
        /// Attempts that failed since the last one that did not.
        pub failures: i64,
        pub last_success_at: i64,
        pub last_failure_at: i64,
        pub last_error: String,
        /// Why the server stopped sending; empty while it sends.
        pub paused_for: String,
    }
}

crate::row! {
    /// One message to one channel.
    #[derive(Debug, Clone)]
    pub(super) struct Delivery {
        pub delivery_id: String,
        pub org_id: String,
        pub webhook_id: String,
        /// The channel's key, not its place.
        pub channel: i64,
        pub seq: i64,
        pub event_type: String,
        pub status: String,
        pub attempts: i64,
        pub created_at: i64,
        pub due_at: i64,
        pub last_status: i64,
        pub last_error: String,
        pub ended_at: i64,
    }
}

pub(super) async fn health(db: &Db, org_id: &str) -> Result<Vec<Health>> {
    db.all(HEALTH, args![org_id]).await
}

pub(super) async fn health_of(db: &Db, org_id: &str, webhook_id: &str) -> Result<Vec<Health>> {
    db.all(HEALTH_OF, args![org_id, webhook_id]).await
}

pub(super) async fn succeeded(tx: &mut Tx, delivery: &Delivery, now: i64) -> Result<()> {
    let args = args![
        &delivery.webhook_id,
        &delivery.org_id,
        now,
        delivery.channel
    ];
    tx.run(SUCCEEDED, args).await?;
    Ok(())
}

pub(super) async fn failed(tx: &mut Tx, delivery: &Delivery, error: &str, now: i64) -> Result<()> {
    let args = args![
        &delivery.webhook_id,
        &delivery.org_id,
        now,
        error,
        delivery.channel
    ];
    tx.run(FAILED, args).await?;
    Ok(())
}

/// Whether the channel delivered anything since, as far as it was written down.
pub(super) async fn has_succeeded(tx: &mut Tx, delivery: &Delivery, since: i64) -> Result<bool> {
    let args = args![&delivery.org_id, &delivery.webhook_id, delivery.channel];
    let health: Option<Health> = tx.one(HEALTH_OF_CHANNEL, args).await?;
    Ok(health.is_some_and(|health| health.last_success_at >= since))
}

/// Writes down why nothing is sent to the channel of a delivery any more.
pub(super) async fn pause(tx: &mut Tx, delivery: &Delivery, why: &str) -> Result<()> {
    let of = (&delivery.org_id, &delivery.webhook_id, delivery.channel);
    tx.run(PAUSED, args![of.0, of.1, of.2, why]).await?;
    Ok(())
}

/// Begins anew with every channel of a webhook.
pub(super) async fn resume(tx: &mut Tx, org_id: &str, webhook_id: &str) -> Result<()> {
    tx.run(RESUMED, args![org_id, webhook_id]).await?;
    Ok(())
}

/// What a delivery is made from.
#[derive(Debug)]
pub(super) struct New {
    pub delivery_id: String,
    pub webhook_id: String,
    pub channel: i64,
    pub seq: i64,
    pub event_type: String,
}

pub(super) async fn insert(tx: &mut Tx, org_id: &str, new: &New, now: i64) -> Result<()> {
    let row = args![
        &new.delivery_id,
        org_id,
        &new.webhook_id,
        new.channel,
        new.seq,
        &new.event_type,
        now
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

/// How much is claimed at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub in_all: i64,
    /// Together with what it has under way.
    pub of_organization: i64,
    /// Of those that nothing is under way to.
    pub of_channel: i64,
}

/// Whether anything can be sent now, where an organization has at most its `share` under way.
pub(super) async fn is_due(db: &Db, now: i64, share: i64) -> Result<bool> {
    Ok(db.number(DUE, args![now, share]).await? > 0)
}

/// Claims what is due.
pub(super) async fn claim(tx: &mut Tx, now: i64, until: i64, most: Most) -> Result<Vec<Delivery>> {
    let args = args![
        now,
        until,
        most.in_all,
        most.of_channel,
        most.of_organization
    ];
    tx.all(CLAIM, args).await
}

/// Gives a claim back.
pub(super) async fn release(tx: &mut Tx, delivery: &Delivery) -> Result<()> {
    let args = args![&delivery.delivery_id, delivery.attempts, &delivery.org_id];
    tx.run(RELEASE, args).await?;
    Ok(())
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct End {
    pub status: &'static str,
    pub due_at: i64,
    pub last_status: i64,
    pub last_error: String,
    pub ended_at: i64,
}

/// False when somebody claimed it again meanwhile.
pub(super) async fn finish(tx: &mut Tx, delivery: &Delivery, end: &End) -> Result<bool> {
    let args = args![
        &delivery.delivery_id,
        delivery.attempts,
        end.status,
        end.due_at,
        end.last_status,
        &end.last_error,
        end.ended_at,
        &delivery.org_id
    ];
    Ok(tx.run(FINISH, args).await? > 0)
}

/// A page with one more than asked, newest first.
pub(super) async fn list(
    db: &Db,
    org_id: &str,
    webhook_id: &str,
    status: &str,
    window: Window,
) -> Result<Vec<Delivery>> {
    let Window {
        limit,
        offset,
        at,
        id,
    } = window;
    let args = args![org_id, webhook_id, status, limit, offset, at, id];
    db.all(LIST, args).await
}

pub(super) async fn count(db: &Db, org_id: &str, webhook_id: &str, status: &str) -> Result<i64> {
    db.number(COUNT, args![org_id, webhook_id, status]).await
}

/// Sends it once more from the beginning of the schedule; one that waits already is left as it is.
pub(super) async fn replay(
    tx: &mut Tx,
    org_id: &str,
    webhook_id: &str,
    delivery_id: &str,
    now: i64,
) -> Result<Delivery> {
    let again: Option<Delivery> = tx
        .one(REPLAY, args![org_id, webhook_id, delivery_id, now])
        .await?;
    if let Some(again) = again {
        return Ok(again);
    }
    let waiting: Option<Delivery> = tx.one(FIND, args![org_id, webhook_id, delivery_id]).await?;
    waiting.ok_or_else(|| ApiError::not_found("delivery", delivery_id))
}

/// How a channel did that was removed.
pub(super) async fn forget_channel(
    tx: &mut Tx,
    org_id: &str,
    webhook_id: &str,
    channel: i64,
) -> Result<()> {
    tx.run(FORGET_CHANNEL, args![org_id, webhook_id, channel])
        .await?;
    Ok(())
}

/// What a webhook leaves behind; in the order in which whoever ends a delivery changes it.
pub(super) async fn forget(tx: &mut Tx, org_id: &str, webhook_id: &str) -> Result<()> {
    for sql in [DROP_DELIVERIES, FORGET] {
        tx.run(sql, args![org_id, webhook_id]).await?;
    }
    Ok(())
}

/// Removes deliveries of before a moment.
pub(super) async fn sweep(tx: &mut Tx, before: i64) -> Result<u64> {
    tx.run(SWEEP, args![before]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(number: i64) -> New {
        New {
            delivery_id: format!("msg_{number}"),
            webhook_id: format!("wh_{number}"),
            channel: 0,
            seq: number,
            event_type: "collection.created".into(),
        }
    }

    #[tokio::test]
    async fn organizations_take_turns_however_much_is_due_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::sqlite(&folder.path().join("test.db")).await.unwrap();
        let written = db.write(|tx| {
            Box::pin(async move {
                for number in 0..300 {
                    insert(tx, "org_many", &new(number), 1).await?;
                }
                insert(tx, "org_few", &new(300), 2).await
            })
        });
        written.await.unwrap();
        let most = Most {
            in_all: 1,
            of_organization: 8,
            of_channel: 8,
        };
        for org_id in ["org_many", "org_few", "org_many"] {
            let claimed = db.write(move |tx| Box::pin(claim(tx, 10, 1_000, most)));
            let claimed = claimed.await.unwrap();
            let owners: Vec<&str> = claimed.iter().map(|one| one.org_id.as_str()).collect();
            assert_eq!(owners, [org_id]);
        }
        db.close().await;
    }
}
