//! What connections tell of how they are used.

use loupe_wire::StorageConnectionModel;

use super::CONNECTIONS;
use crate::{app::App, clock, error::Result};

/// Microseconds after a use that was noted within which another one is no news.
const NEWS: i64 = 60_000_000;

/// Letters of an error that are kept.
const TOLD: usize = 1000;

/// Notes in a connection that it was used, and why that failed, if it did.
pub(super) fn used(connection: &mut StorageConnectionModel, error: Option<&str>, now: i64) {
    connection.last_used_at = Some(clock::time(now));
    connection.consecutive_failures = match error {
        Some(_) => connection.consecutive_failures + 1,
        None => 0,
    };
    connection.last_error = error.map(|error| error.chars().take(TOLD).collect());
}

/// Whether that is to be noted: failures are, and what ends them, and else a use a minute.
fn is_news(connection: &StorageConnectionModel, error: Option<&str>, now: i64) -> bool {
    let last = connection.last_used_at;
    error.is_some()
        || connection.consecutive_failures > 0
        || last.is_none_or(|at| at.timestamp_micros() + NEWS <= now)
}

/// Notes that a connection was used, and why its storage failed, if it did. What it was used for goes on, whether or not that can
/// be noted.
pub async fn note_use(app: &App, org_id: &str, id: &str, error: Option<&str>) {
    if let Err(failed) = note(app, org_id, id, error).await {
        tracing::warn!(error = %failed, connection_id = id, "the use of a connection could not be noted");
    }
}

async fn note(app: &App, org_id: &str, id: &str, error: Option<&str>) -> Result<()> {
    let now = app.clock().micros();
    let found = CONNECTIONS.find(app.db(), org_id, id).await?;
    if !is_news(&found, error, now) {
        return Ok(());
    }
    let (org_id, id, error) = (org_id.to_owned(), id.to_owned(), error.map(str::to_owned));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let found = CONNECTIONS.hold(tx, &org_id, &id).await?;
                let mut connection = found.data.0;
                used(&mut connection, error.as_deref(), now);
                let name = connection.name.as_str();
                CONNECTIONS
                    .update(tx, &org_id, &found.id, name, now, &connection)
                    .await
            })
        })
        .await
}
