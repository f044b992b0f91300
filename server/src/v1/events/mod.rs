//! The change feed: every change's event is written in the transaction of the change.

mod own;
mod reader;
mod routes;
mod store;

use loupe_wire::Object;

pub use own::READERS;
pub use reader::Reader;
pub use routes::{router, told};
pub use store::{EventRow, list, newest, since};

use crate::{app::App, db::Tx, error::Result};

/// Days that events are kept.
const KEPT_DAYS: i64 = 90;

/// Events that are forgotten in one transaction, and transactions of one sweep: what is left is for the next one, for whoever
/// leads has other things to do.
const FORGOTTEN: i64 = 1_000;
const SWEEPS: usize = 100;

/// One change to tell of.
pub struct Event {
    pub org_id: String,
    pub namespace_id: Option<String>,
    /// From the vocabulary of the contract, such as `bucket.created`.
    pub event_type: &'static str,
    pub payload: Object,
}

impl Event {
    /// An event whose payload names the resource.
    pub fn new(
        org_id: &str,
        namespace_id: Option<&str>,
        event_type: &'static str,
        payload: serde_json::Value,
    ) -> Self {
        let payload = match payload {
            serde_json::Value::Object(payload) => payload,
            _ => Object::new(),
        };
        Self {
            org_id: org_id.into(),
            namespace_id: namespace_id.map(Into::into),
            event_type,
            payload,
        }
    }

    /// insert, update, delete or other.
    fn operation(&self) -> &'static str {
        match self.event_type.rsplit('.').next().unwrap_or_default() {
            "created" | "written" => "insert",
            "updated" | "paused" | "resumed" => "update",
            "deleted" => "delete",
            _ if self.event_type == "objects.created.batch" => "insert",
            _ if self.event_type == "documents.updated.batch" => "update",
            _ if self.event_type == "documents.deleted.batch" => "delete",
            _ => "other",
        }
    }
}

/// Appends to the feed with the organization's next `seq`, inside the transaction of the change.
pub async fn push(tx: &mut Tx, event: Event, now: i64) -> Result<()> {
    store::insert(tx, event, now).await
}

/// Forgets events that were kept long enough. A reader who stood before them goes on with the oldest that is left.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    for _ in 0..SWEEPS {
        let forgotten = app
            .db()
            .write(move |tx| Box::pin(async move { store::sweep(tx, before, FORGOTTEN).await }));
        if forgotten.await? < FORGOTTEN as u64 {
            break;
        }
    }
    Ok(())
}
