//! What the audit log tells of documents.

use loupe_wire::{AuditAction, ResourceType, Value};
use serde_json::json;

use crate::v1::audit::Change;

/// Documents named in a record of their deletion.
const NAMED: usize = 100;

/// One record.
pub(super) struct Noted {
    action: AuditAction,
    /// The document's id, or `*` for several.
    id: String,
    changes: Value,
}

impl Noted {
    /// Documents were deleted.
    pub fn removed(collection_id: &str, ids: &[String]) -> Self {
        let named: Vec<&String> = ids.iter().take(NAMED).collect();
        Self {
            action: AuditAction::DocumentDeleted,
            id: match ids {
                [one] => one.clone(),
                _ => "*".into(),
            },
            changes: json!({"collection_id": collection_id, "document_ids": named, "count": ids.len()}),
        }
    }

    /// Others than before may see or change a document.
    pub fn shared(collection_id: &str, document_id: &str, before: &Value, after: &Value) -> Self {
        Self {
            action: AuditAction::PermissionUpdated,
            id: document_id.to_owned(),
            changes: json!({"collection_id": collection_id, "acl": {"before": before, "after": after}}),
        }
    }

    pub fn change(&self) -> Change<'_> {
        Change {
            action: self.action,
            resource: (ResourceType::Document, &self.id),
            changes: self.changes.clone(),
        }
    }
}
