//! Who sees a document: its owner, and those whom the owner names.

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{NamespaceOperation, UpdateDocumentACLRequest, Value};
use serde_json::json;

use super::{
    noted::Noted,
    writing::{Beside, save_with},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    error::Result,
};

/// Who may see and change a document.
pub async fn set_acl(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    document_id: &str,
    request: UpdateDocumentACLRequest,
) -> Result<Document> {
    let operation = NamespaceOperation::ManagePermissions;
    let (collection, mut document) = super::find(
        app,
        scope,
        collection,
        document_id,
        operation,
        WithVectors::Yes,
    )
    .await?;
    let mut noted = None;
    if let Some(internal) = document.payload.get_mut("_internal") {
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
        noted = Some(Noted::shared(&collection.id, document_id, &before, &acl));
        internal["_acl"] = acl;
        internal["updated_at"] = clock::time(app.clock().micros()).to_rfc3339().into();
    }
    let beside = Beside {
        noted,
        ..Beside::default()
    };
    save_with(app, scope, &collection, vec![document.clone()], beside).await?;
    Ok(document)
}
