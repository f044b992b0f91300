//! Several processes share a key's bucket: one row in the database, from which each takes small blocks of tokens that it
//! hands out by itself. A block is what flows in within half a second, so tokens that lie unused in blocks make the sum of
//! all processes exceed the limit by a few per cent at most.

use super::{
    Entry,
    bucket::{Bucket, Rate, Verdict, Window},
};
use crate::{app::App, args, error::Result};

crate::sql! {
    // The key's id is the owner: it is unique over all organizations.
    const FIND = "SELECT minute_tokens, second_tokens, refilled_at FROM rate_limits WHERE key_id = $1";
    const INSERT = "INSERT INTO rate_limits (key_id, minute_tokens, second_tokens, refilled_at) VALUES ($1, $2, $3, $4) ON CONFLICT (key_id) DO NOTHING";
    // Only when nobody else took any since it was read.
    const REPLACE = "UPDATE rate_limits SET minute_tokens = $5, second_tokens = $6, refilled_at = $7 WHERE key_id = $1 AND minute_tokens = $2 AND second_tokens = $3 AND refilled_at = $4";
    const SWEEP = "DELETE FROM rate_limits WHERE refilled_at < $1";
}

/// Tokens that this process has taken and not handed out, and what was left in the row then.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Leased {
    tokens: i64,
    left: i64,
    full_at: i64,
    /// Blocks are for one second; older tokens go back to nobody.
    until: i64,
}

impl Leased {
    fn take(&mut self, now: i64) -> Option<Verdict> {
        if self.tokens < 1 || now > self.until {
            return None;
        }
        self.tokens -= 1;
        Some(Verdict::Taken {
            remaining: self.left + self.tokens,
            full_in: (self.full_at - now).max(0),
        })
    }
}

/// Tries to replace the row this often before the request is refused for a second.
const TRIES: usize = 20;

/// Other processes were always faster.
const BUSY: Verdict = Verdict::Refused {
    window: Window::Second,
    wait: 1_000_000,
};

/// A token of the block of this process, or of a new block.
pub(super) async fn take(app: &App, owner: &str, entry: &Entry, rate: &Rate, now: i64) -> Verdict {
    if let Some(taken) = entry.local().leased.take(now) {
        return taken;
    }
    // One at a time asks the database; who waited may find a token of the new block.
    let _leasing = entry.leasing.lock().await;
    if let Some(taken) = entry.local().leased.take(now) {
        return taken;
    }
    match lease(app, owner, rate, now).await {
        Ok(Ok(mut leased)) => {
            let taken = leased.take(now);
            entry.local().leased = leased;
            taken.unwrap_or(BUSY)
        }
        Ok(Err(refused)) => refused,
        Err(error) => {
            // Without the database the process counts alone; the request will hear of the database by itself.
            tracing::warn!(%error, "the shared bucket of a key cannot be read");
            entry.local().bucket.take(rate, now)
        }
    }
}

/// Takes a block out of the shared row.
async fn lease(
    app: &App,
    owner: &str,
    rate: &Rate,
    now: i64,
) -> Result<std::result::Result<Leased, Verdict>> {
    let block = (rate.per_minute / 120).clamp(1, (rate.per_second / 10).max(1));
    for _ in 0..TRIES {
        let row: Option<(i64, i64, i64)> = app.db().one(FIND, args![owner]).await?;
        let Some((minute, second, at)) = row else {
            let (minute, second, at) = Bucket::full(rate, now).parts();
            run(app, INSERT, args![owner, minute, second, at]).await?;
            continue;
        };
        let mut bucket = Bucket::stored(minute, second, at);
        let taken = match bucket.take_block(rate, now, block) {
            Ok(taken) => taken,
            Err(refused) => return Ok(Err(refused)),
        };
        let (new_minute, new_second, new_at) = bucket.parts();
        let args = args![owner, minute, second, at, new_minute, new_second, new_at];
        if run(app, REPLACE, args).await? == 1 {
            let (left, full_in) = bucket.left(rate);
            return Ok(Ok(Leased {
                tokens: taken,
                left,
                full_at: now + full_in,
                until: now + 1_000_000,
            }));
        }
    }
    Ok(Err(BUSY))
}

async fn run(app: &App, sql: &'static str, args: crate::db::Args) -> Result<u64> {
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(sql, args).await }))
        .await
}

/// Rows of keys that were not used for an hour are full again and say nothing.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - 3_600_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(SWEEP, args![before]).await.map(|_| ()) }))
        .await
}
