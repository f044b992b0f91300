//! Readers inside the server: what acts on the feed keeps its place in the database, so that each event is acted on once,
//! whichever process reads it.

use crate::{
    args,
    db::{Db, Tx},
    error::Result,
};

crate::sql! {
    // One that is there is held until the transaction ends: whoever is about to stop it waits, and then sees what it is for.
    const ENSURE = "INSERT INTO feed_readers (org_id, name, seq) SELECT org_id, $2, event_seq FROM organizations WHERE org_id = $1 ON CONFLICT (org_id, name) DO UPDATE SET seq = feed_readers.seq";
    const DROP = "DELETE FROM feed_readers WHERE org_id = $1 AND name = $2";
    // Of every organization: the reader is the server's.
    const BEHIND = "SELECT r.org_id, r.seq, o.event_seq FROM feed_readers r JOIN organizations o ON o.org_id = r.org_id WHERE r.name = $1 AND o.event_seq > r.seq";
    const ADVANCE = "UPDATE feed_readers SET seq = $4 WHERE org_id = $1 AND name = $2 AND seq = $3";
}

/// A reader by its name. It reads the feeds of the organizations that it was started for.
#[derive(Debug, Clone, Copy)]
pub struct Reader(pub &'static str);

impl Reader {
    /// Reads the organization's feed from now on, if it is not read already.
    pub async fn ensure(self, tx: &mut Tx, org_id: &str) -> Result<()> {
        tx.run(ENSURE, args![org_id, self.0]).await?;
        Ok(())
    }

    /// Reads the organization's feed no more.
    pub async fn stop(self, tx: &mut Tx, org_id: &str) -> Result<()> {
        tx.run(DROP, args![org_id, self.0]).await?;
        Ok(())
    }

    /// Organizations with events that were not looked at, the last that was, and the newest.
    pub async fn behind(self, db: &Db) -> Result<Vec<(String, i64, i64)>> {
        db.all(BEHIND, args![self.0]).await
    }

    /// Whether nobody else moved the reader from that place meanwhile. What follows from the events belongs into the
    /// same transaction.
    pub async fn advance(self, tx: &mut Tx, org_id: &str, from: i64, to: i64) -> Result<bool> {
        Ok(tx.run(ADVANCE, args![org_id, self.0, from, to]).await? > 0)
    }
}
