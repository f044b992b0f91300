//! Writing documents: journalled, applied, told of.

use std::collections::HashSet;

use loupe_engine::store::{CollectionSpec, Document};
use loupe_wire::{DocumentCreateRequest, NamespaceOperation, Object, Value};
use serde_json::json;

use super::{
    applying, checking,
    journal::{self, Entry},
    noted::Noted,
    turns::Turn,
    vectors::check_vectors,
};
use crate::{
    app::App,
    auth::{Caller, Level, Scope, Write},
    error::{ApiError, Result, Violation},
    limits::quota,
    v1::{
        annotations::signal,
        audit, collections, events,
        namespaces::push_event,
        removal::{self, Left},
        taxonomies,
    },
};

/// Members that only the server writes.
pub(super) const SYSTEM: [&str; 6] = [
    "document_id",
    "collection_id",
    "_internal",
    "document_blobs",
    "expanded",
    "_expanded",
];

/// Members of a create request that are not user fields.
const LINEAGE: [&str; 5] = [
    "root_object_id",
    "root_bucket_id",
    "source_object_id",
    "source_document_id",
    "source_collection_id",
];

/// The code of what is refused because somebody changed it meanwhile.
pub(super) const CHANGED: &str = "document_changed";

/// What a write comes with.
#[derive(Default)]
pub(super) struct Beside {
    /// Who could see documents that are gone.
    pub readers: Object,
    /// Files that they leave behind.
    pub left: Vec<Left>,
    /// What the audit log is told.
    pub noted: Option<Noted>,
    /// The documents are as they were read after this event: what another process has changed since is not written over.
    pub since: Option<i64>,
    /// The turn in which they were read, where others may write them too. It lasts until they are written, whether or not
    /// somebody waits for that.
    pub turn: Option<Turn>,
}

/// Journals and applies one write, and tells of it: each kind of event names its documents.
pub(super) async fn write(
    app: &App,
    scope: &Scope<impl Level>,
    entry: Entry,
    told: &[(&'static str, &[String])],
) -> Result<()> {
    let beside = Beside::default();
    write_with(app, scope, entry, told, beside).await.map(drop)
}

/// The same with what comes beside it; answers the documents that somebody else has written behind it already.
///
/// # Errors
/// As [`write`]; [`CHANGED`] where a document is not as it was read.
pub(super) async fn write_with(
    app: &App,
    scope: &Scope<impl Level>,
    entry: Entry,
    told: &[(&'static str, &[String])],
    beside: Beside,
) -> Result<HashSet<String>> {
    let events = told_events(
        (&scope.namespace_id, entry.place().1),
        told,
        &beside.readers,
    );
    // What comes again under an id of one's own has its annotations again.
    let is_made = |kind: &str| matches!(kind, "document.created" | "collection.documents.written");
    let made = told.iter().filter(|(kind, _)| is_made(kind));
    let writing = Writing {
        app: app.clone(),
        caller: scope.caller.clone(),
        namespace_id: scope.namespace_id.clone(),
        events,
        made: made.flat_map(|(_, ids)| ids.iter().cloned()).collect(),
        beside,
    };
    // Who has the next turn reads all of it or nothing.
    app.to_its_end(writing.run(entry)).await
}

/// A write on its way.
struct Writing {
    app: App,
    caller: Caller,
    namespace_id: String,
    events: Vec<(&'static str, Value)>,
    /// Documents that were not there before.
    made: Vec<String>,
    beside: Beside,
}

impl Writing {
    async fn run(mut self, entry: Entry) -> Result<HashSet<String>> {
        let turn = self.beside.turn.take();
        let (app, namespace_id) = (self.app.clone(), self.namespace_id.clone());
        let collection_id = entry.place().1.to_owned();
        let deleted = match &entry {
            Entry::Delete { document_ids, .. } => document_ids.clone(),
            Entry::Upsert { .. } => Vec::new(),
        };
        if !deleted.is_empty() && self.beside.noted.is_none() {
            self.beside.noted = Some(Noted::removed(&collection_id, &deleted));
        }
        self.made.extend(deleted.iter().cloned());
        let in_order = turn.is_some();
        let (seq, annotated) = self.journal(entry.clone()).await?;
        let behind = applying::apply(&app, seq, entry, in_order).await?;
        if annotated > 0
            && let Err(error) = signal::forget_documents(&app, &namespace_id, &deleted).await
        {
            // They were noted, and go later.
            tracing::warn!(%error, collection_id, "annotations of removed documents are still mirrored");
        }
        drop(turn);
        Ok(behind)
    }

    /// The entry's number, and how many annotations its documents have.
    async fn journal(self, entry: Entry) -> Result<(i64, u64)> {
        let (db, now) = (self.app.db().clone(), self.app.clock().micros());
        let least = self.app.next_journal_seq();
        db.write(move |tx| {
            Box::pin(async move {
                let (org_id, namespace_id) =
                    (self.caller.org_id.as_str(), self.namespace_id.as_str());
                let own = self.events.len();
                for (kind, payload) in self.events {
                    push_event(tx, org_id, namespace_id, kind, payload, now).await?;
                }
                // Asked behind the event: its number is one lock with that of a change of state. Either the change is seen
                // here, or whoever puts the documents away finds this entry.
                let table = &collections::COLLECTIONS;
                let found = table.find_in(tx, namespace_id, entry.place().1).await?;
                collections::lifecycle::check_active(&found)?;
                if let Some(since) = self.beside.since {
                    let mut told = events::since(tx, org_id, namespace_id, since).await?;
                    told.truncate(told.len().saturating_sub(own));
                    check_untold(&told, &entry)?;
                }
                let seq = journal::insert(tx, least, &entry, now).await?;
                if let Some(noted) = self.beside.noted {
                    audit::record(tx, &self.caller, noted.change(), now).await?;
                }
                let annotated = signal::note_documents(tx, namespace_id, &self.made, now).await?;
                removal::leave_in(tx, org_id, namespace_id, &self.beside.left, now).await?;
                Ok((seq, annotated))
            })
        })
        .await
    }
}

/// Refuses an entry with documents that events tell of.
fn check_untold(told: &[Object], entry: &Entry) -> Result<()> {
    let named: HashSet<&str> = told
        .iter()
        .flat_map(|payload| {
            let many = payload.get("document_ids").and_then(Value::as_array);
            many.into_iter().flatten().chain(payload.get("document_id"))
        })
        .filter_map(Value::as_str)
        .collect();
    if entry.ids().any(|id| named.contains(id.as_str())) {
        let message = "a document was changed meanwhile: read it and try again";
        return Err(ApiError::conflict(CHANGED, message));
    }
    Ok(())
}

/// The events of a write, with what each tells.
pub(super) fn told_events(
    (namespace_id, collection_id): (&str, &str),
    told: &[(&'static str, &[String])],
    readers: &Object,
) -> Vec<(&'static str, Value)> {
    let payload = |kind: &str, ids: &[String]| {
        let mut payload = match ids {
            // As of a batch, though these documents are of none.
            many if kind == "collection.documents.written" => {
                json!({"namespace_id": namespace_id, "collection_id": collection_id, "batch_id": null, "document_ids": many, "count": many.len()})
            }
            [one] => json!({"collection_id": collection_id, "document_id": one}),
            many => {
                json!({"collection_id": collection_id, "document_ids": many, "count": many.len()})
            }
        };
        if !readers.is_empty() {
            payload[events::READERS] = Value::Object(readers.clone());
        }
        payload
    };
    let told = told.iter().filter(|(_, ids)| !ids.is_empty());
    told.map(|(kind, ids)| (*kind, payload(kind, ids)))
        .collect()
}

/// The text that keyword search reads: every text member, in order.
pub fn keywords(payload: &Object) -> String {
    fn collect(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            Value::Object(members) => members.values().for_each(|member| collect(member, out)),
            _ => {}
        }
    }
    let mut text = String::new();
    payload
        .iter()
        .filter(|(name, _)| *name != "_internal")
        .for_each(|(_, value)| collect(value, &mut text));
    text
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    request: DocumentCreateRequest,
) -> Result<Document> {
    let operation = NamespaceOperation::WriteData;
    let (collection, sight) = super::open(app, scope, collection, operation).await?;
    sight.check_new(&scope.caller)?;
    quota::check_writing(app, &scope.caller.org_id).await?;
    quota::check_documents(app, &scope.caller, 1).await?;
    let spec = collections::spec(app, &scope.namespace_id, &collection);
    let sent = serde_json::to_value(&request).map_err(ApiError::internal)?;
    if let Some(sent) = sent.as_object() {
        let own = [collection.id.as_str(), collection.name.as_str()];
        check_id(sent, "collection_id", &own)?;
    }
    check_unnamed(&request)?;
    check_plain(&request)?;
    let document = first_state(app, scope, &spec, request, &sent)?;
    let mut documents = [checking::admit(&collection, document).await?];
    let (caller, made) = (&scope.caller, &mut documents);
    let copies =
        taxonomies::at_ingest(app, caller, &scope.namespace_id, &collection, made, false).await?;
    let [document] = documents;
    let ids = [document.document_id.clone()];
    let entry = Entry::Upsert {
        collection: spec,
        documents: vec![document.clone()],
    };
    let told = [("document.created", ids.as_slice())];
    write(app, scope, entry, &told).await?;
    taxonomies::keep(app, &caller.org_id, copies).await?;
    Ok(document)
}

/// The document of a create request, with an id and with what the server writes of it.
fn first_state(
    app: &App,
    scope: &Scope<Write>,
    spec: &CollectionSpec,
    request: DocumentCreateRequest,
    sent: &Value,
) -> Result<Document> {
    let document_id = format!("doc_{}", uuid::Uuid::new_v4().simple());
    let at = app.clock().now().to_rfc3339();
    let lineage = lineage(&request, sent);
    let mut payload: Object = request
        .extra
        .into_iter()
        .filter(|(name, _)| !SYSTEM.contains(&name.as_str()))
        .collect();
    if let Some(metadata) = request.metadata {
        payload.insert("metadata".into(), Value::Object(metadata));
    }
    let text = keywords(&payload);
    let mut internal = json!({
        "internal_id": scope.caller.org_id, "namespace_id": scope.namespace_id, "document_id": document_id,
        "collection_id": spec.collection_id, "created_at": at, "updated_at": at, "lineage": lineage,
        "content_hash": request.content_hash,
    });
    if let Some(version) = request.document_schema_version {
        internal["document_schema_version"] = version.into();
    }
    if let Some(principal) = scope.caller.principal() {
        internal["_acl"] = json!({"owner": principal, "read": [], "write": [], "public": false});
    }
    payload.insert("_internal".into(), internal);
    let vectors = sent.get("vectors").and_then(Value::as_object).cloned();
    Ok(Document {
        document_id,
        collection_id: spec.collection_id.clone(),
        payload: payload.into(),
        vectors: check_vectors(spec, &vectors.unwrap_or_default(), &["vectors"])?,
        keywords: Some(text),
    })
}

/// Refuses a document that its caller gave an id. The store numbers the documents of everybody by their ids: a chosen one could
/// be somebody else's.
fn check_unnamed(request: &DocumentCreateRequest) -> Result<()> {
    let Some(chosen) = request.extra.get("document_id") else {
        return Ok(());
    };
    let msg =
        "ids are given by the server: change a document at its own address, with PATCH or PUT";
    Err(Violation::body(&["document_id"], "value_error", msg, chosen.clone()).into())
}

/// Refuses features beside the fields and vectors that a document has: nothing would be made of them.
fn check_plain(request: &DocumentCreateRequest) -> Result<()> {
    if request.features.as_ref().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    let msg = "send what features say as fields of the document, and their vectors as vectors, by the names of indexes";
    Err(Violation::body(&["features"], "not_enabled", msg, Value::Null).into())
}

/// Where a document comes from, as its caller says.
fn lineage(request: &DocumentCreateRequest, sent: &Value) -> Value {
    let mut lineage = json!({"source_type": request.source_type, "path": request.lineage_path});
    for member in LINEAGE {
        lineage[member] = sent.get(member).cloned().unwrap_or(Value::Null);
    }
    if lineage["source_type"].is_null() {
        lineage["source_type"] = "direct_upsert".into();
    }
    if let Some(chain) = sent.get("lineage_chain") {
        lineage["chain"] = chain.clone();
    }
    lineage
}

/// Refuses an id in a body that is not the one of the address. What was read may be sent back whole.
pub(super) fn check_id(sent: &Object, member: &str, own: &[&str]) -> Result<()> {
    let Some(id) = sent.get(member).filter(|id| !id.is_null()) else {
        return Ok(());
    };
    if id.as_str().is_some_and(|id| own.contains(&id)) {
        return Ok(());
    }
    let msg = format!("{member} is that of the address, and does not change");
    Err(Violation::body(&[member], "immutable_field", msg, id.clone()).into())
}

/// Writes documents that were read over themselves, with what comes beside it.
pub(super) async fn save(
    app: &App,
    scope: &Scope<impl Level>,
    spec: &CollectionSpec,
    mut documents: Vec<Document>,
    beside: Beside,
) -> Result<HashSet<String>> {
    // A document that was read comes without the text that keyword search reads.
    for document in &mut documents {
        document.keywords = Some(keywords(&document.payload));
    }
    let ids: Vec<String> = documents
        .iter()
        .map(|document| document.document_id.clone())
        .collect();
    let kind = if ids.len() == 1 {
        "document.updated"
    } else {
        "documents.updated.batch"
    };
    let entry = Entry::Upsert {
        collection: spec.clone(),
        documents,
    };
    write_with(app, scope, entry, &[(kind, ids.as_slice())], beside).await
}
