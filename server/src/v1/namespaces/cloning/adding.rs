//! The same into a namespace that is there.

use loupe_wire::{AuditAction, ResourceType, Value};

use super::Clone;
use crate::{
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
    v1::{
        audit::{self, Change},
        namespaces::{NAMESPACES, is_being_made},
    },
};

impl Clone {
    /// Writes the rows into the namespace, which is there and stays what it is, and the audit log's record of that.
    ///
    /// # Errors
    /// The namespace is gone or being made, something has one of the names by now, or there is no room.
    pub async fn add(&self, tx: &mut Tx, caller: &Caller, changes: Value, now: i64) -> Result<()> {
        let id = self.namespace.namespace_id.as_deref().unwrap_or_default();
        // So that nobody removes it meanwhile.
        let target = NAMESPACES.hold(tx, &caller.org_id, id).await?;
        if is_being_made(&target) {
            let message = "the namespace that is extended is being made still";
            return Err(ApiError::conflict("namespace_not_ready", message));
        }
        self.insert_rows(tx, caller, id, now).await?;
        let change = Change {
            action: AuditAction::NamespaceUpdated,
            resource: (ResourceType::Namespace, id),
            changes,
        };
        audit::record(tx, caller, change, now).await
    }
}
