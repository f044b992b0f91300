//! Who sees a document: its owner, and those whom the owner names.

use loupe_engine::store::Document;
use loupe_wire::{UpdateDocumentACLRequest, Value};
use serde_json::json;

use super::noted::Noted;

/// Says anew who may see and change a document; answers what the audit log is told.
pub(super) fn share(
    document: &mut Document,
    request: &UpdateDocumentACLRequest,
    at: &str,
) -> Option<Noted> {
    let (collection_id, document_id) = (&document.collection_id, &document.document_id);
    let internal = document.payload.get_mut("_internal")?;
    let before = internal["_acl"].clone();
    let mut acl = match &before {
        Value::Null => json!({"read": [], "write": [], "public": false}),
        before => before.clone(),
    };
    for (name, value) in [
        ("read", json!(request.read)),
        ("write", json!(request.write)),
        ("public", json!(request.public)),
    ] {
        if !value.is_null() {
            acl[name] = value;
        }
    }
    let noted = Noted::shared(collection_id, document_id, &before, &acl);
    internal["_acl"] = acl;
    internal["updated_at"] = at.into();
    Some(noted)
}
