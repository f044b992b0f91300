//! What documents that are sent become: new ones, others than before, or nothing where they are as they were.

use std::collections::HashMap;

use loupe_engine::store::{CollectionSpec, Document};
use loupe_wire::{BYODocument, BYODocumentACL, Value};
use serde_json::json;

use super::{
    super::writing::{SYSTEM, keywords},
    Outcome, Sent,
};
use crate::auth::{Scope, Write};

/// Where a document's `_internal` keeps what it was last sent as.
const SENT: &str = "upserted";

/// What all documents of a request have in common.
pub(super) struct Making<'a> {
    pub scope: &'a Scope<Write>,
    pub spec: &'a CollectionSpec,
    pub at: String,
}

impl Making<'_> {
    pub(super) fn run(&self, sent: Vec<Sent>, mut found: HashMap<String, Document>) -> Outcome {
        let mut outcome = Outcome::default();
        for mut one in sent {
            let dropped = drop_system(&mut one.document);
            if !dropped.is_empty() {
                let id = one.document.document_id.clone();
                outcome.dropped.push((id, dropped));
            }
            let before = found.remove(&one.id);
            match &before {
                None => outcome.created.push(one.id.clone()),
                Some(before) if is_same(before, &one.mark) => continue,
                Some(_) => outcome.changed.push(one.id.clone()),
            }
            outcome.written.push(self.document(one, before.as_ref()));
        }
        outcome
    }

    fn document(&self, one: Sent, before: Option<&Document>) -> Document {
        let internal = self.internal(&one, before);
        let mut payload = one.document.payload.unwrap_or_default();
        if let Some(metadata) = one.document.metadata {
            payload.insert("metadata".into(), Value::Object(metadata));
        }
        let text = keywords(&payload);
        payload.insert("_internal".into(), internal);
        Document {
            document_id: one.id,
            collection_id: self.spec.collection_id.clone(),
            payload: payload.into(),
            vectors: one.vectors,
            keywords: Some(text),
        }
    }

    fn internal(&self, one: &Sent, before: Option<&Document>) -> Value {
        let document = &one.document;
        let before = before.and_then(|before| before.payload.get("_internal"));
        let kept = |member: &str| before.and_then(|before| before.get(member)).cloned();
        let source = document.source_type.map(|of| json!(of));
        let mut internal = json!({
            "internal_id": self.scope.caller.org_id, "namespace_id": self.scope.namespace_id,
            "document_id": one.id, "collection_id": self.spec.collection_id,
            "external_id": kept("external_id").unwrap_or_else(|| document.document_id.clone().into()),
            "created_at": kept("created_at").unwrap_or_else(|| self.at.clone().into()),
            "updated_at": self.at, "content_hash": document.content_hash,
            "lineage": {
                "source_type": source.unwrap_or_else(|| "direct_upsert".into()),
                "path": document.lineage_path, "chain": document.lineage_chain.as_deref().unwrap_or_default(),
                "root_object_id": document.root_object_id, "root_bucket_id": document.root_bucket_id,
                "source_object_id": document.source_object_id,
                "source_document_id": document.source_document_id,
                "source_collection_id": document.source_collection_id,
            },
        });
        internal[SENT] = json!({ "mark": one.mark, "at": self.at });
        let principal = self.scope.caller.principal();
        if let Some(acl) = acl(kept("_acl"), document.acl.as_ref(), principal) {
            internal["_acl"] = acl;
        }
        internal
    }
}

/// Who may see the document: what is sent, over what was said before; a new one of an end user is the user's.
fn acl(
    before: Option<Value>,
    sent: Option<&BYODocumentACL>,
    principal: Option<&str>,
) -> Option<Value> {
    let mut acl = match (before, sent, principal) {
        (Some(before), _, _) => before,
        (None, _, Some(owner)) => {
            json!({"owner": owner, "read": [], "write": [], "public": false})
        }
        (None, Some(_), None) => json!({"read": [], "write": [], "public": false}),
        (None, None, None) => return None,
    };
    if let Some(sent) = sent {
        for (name, value) in [
            ("read", json!(sent.read)),
            ("write", json!(sent.write)),
            ("public", json!(sent.public)),
        ] {
            if !value.is_null() {
                acl[name] = value;
            }
        }
    }
    Some(acl)
}

/// Whether the document is as it was last sent, and was sent so.
fn is_same(before: &Document, mark: &str) -> bool {
    let internal = before.payload.get("_internal");
    internal.is_some_and(|internal| {
        internal[SENT]["mark"] == mark && internal[SENT]["at"] == internal["updated_at"]
    })
}

/// Takes out what only the server writes, and names it.
fn drop_system(document: &mut BYODocument) -> Vec<String> {
    let both = document.metadata.is_some();
    let Some(payload) = &mut document.payload else {
        return Vec::new();
    };
    let mut dropped = Vec::new();
    payload.retain(|name, _| {
        let goes = SYSTEM.contains(&name.as_str()) || (both && name == "metadata");
        if goes {
            dropped.push(name.clone());
        }
        !goes
    });
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_see_it_is_kept_unless_said_anew() {
        let before = json!({"owner": "ann", "read": ["bob"], "write": [], "public": false});
        let sent = BYODocumentACL {
            public: Some(true),
            ..Default::default()
        };
        let acl_of = |sent: Option<&BYODocumentACL>, user| acl(Some(before.clone()), sent, user);
        assert_eq!(acl_of(None, Some("bob")), Some(before.clone()));
        let shared = acl_of(Some(&sent), Some("ann")).unwrap();
        assert_eq!(
            (&shared["owner"], &shared["read"][0]),
            (&json!("ann"), &json!("bob"))
        );
        assert_eq!(shared["public"], true);
        assert_eq!(acl(None, None, None), None);
        assert_eq!(acl(None, None, Some("eve")).unwrap()["owner"], "eve");
    }
}
