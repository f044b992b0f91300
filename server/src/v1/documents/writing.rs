//! Writing documents: journalled, applied, told of.

use std::collections::{BTreeMap, HashSet};

use loupe_engine::store::{CollectionSpec, Document, WithVectors};
use loupe_wire::{CollectionResponse, DocumentCreateRequest, NamespaceOperation, Object, Value};
use serde_json::json;

use super::{
    applying, checking,
    journal::{self, Entry},
    may,
    noted::Noted,
    related::{Below, made_of},
    vectors::check_vectors,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
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
    /// The documents are as they were read after this event, and others may write them too.
    pub since: Option<i64>,
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
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let collection_id = entry.place().1.to_owned();
    let place = (namespace_id.as_str(), collection_id.as_str());
    let events = told_events(place, told, &beside.readers);
    let deleted = match &entry {
        Entry::Delete { document_ids, .. } => document_ids.clone(),
        Entry::Upsert { .. } => Vec::new(),
    };
    let removed = (!deleted.is_empty()).then(|| Noted::removed(&collection_id, &deleted));
    let noted = beside.noted.or(removed);
    let (since, left) = (beside.since, beside.left);
    // What comes again under an id of one's own has its annotations again.
    let is_made = |kind: &str| matches!(kind, "document.created" | "collection.documents.written");
    let made = told.iter().filter(|(kind, _)| is_made(kind));
    let moved = made.flat_map(|(_, ids)| ids.iter()).chain(&deleted);
    let moved: Vec<String> = moved.cloned().collect();
    let caller = scope.caller.clone();
    let least = app.next_journal_seq();
    let (journalled, written) = (entry.clone(), collection_id.clone());
    let (seq, annotated) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let own = events.len();
                for (kind, payload) in events {
                    push_event(tx, &org_id, &namespace_id, kind, payload, now).await?;
                }
                // Asked behind the event: its number is one lock with that of a change of state. Either the change is seen
                // here, or whoever puts the documents away finds this entry.
                let table = &collections::COLLECTIONS;
                let found = table.find_in(tx, &namespace_id, &written).await?;
                collections::lifecycle::check_active(&found)?;
                if let Some(since) = since {
                    let mut told = events::since(tx, &org_id, &namespace_id, since).await?;
                    told.truncate(told.len().saturating_sub(own));
                    check_untold(&told, &journalled)?;
                }
                let seq = journal::insert(tx, least, &journalled, now).await?;
                if let Some(noted) = noted {
                    audit::record(tx, &caller, noted.change(), now).await?;
                }
                let annotated = signal::note_documents(tx, &namespace_id, &moved, now).await?;
                removal::leave_in(tx, &org_id, &namespace_id, &left, now).await?;
                Ok((seq, annotated))
            })
        })
        .await?;
    let behind = applying::apply(app, seq, entry, since.is_some()).await?;
    if annotated > 0
        && let Err(error) = signal::forget_documents(app, &scope.namespace_id, &deleted).await
    {
        // They were noted, and go later.
        tracing::warn!(%error, collection_id, "annotations of removed documents are still mirrored");
    }
    Ok(behind)
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
fn told_events(
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

fn removal_event(ids: &[String]) -> &'static str {
    match ids.len() {
        1 => "document.deleted",
        _ => "documents.deleted.batch",
    }
}

/// The events that tell of documents which are removed with what they were made of, by collection.
pub fn removal_events(namespace_id: &str, documents: &[Document]) -> Vec<(&'static str, Value)> {
    let mut removed: BTreeMap<&str, (Vec<String>, Object)> = BTreeMap::new();
    for one in documents {
        let (ids, readers) = removed.entry(&one.collection_id).or_default();
        let internal = one.payload.get("_internal");
        // Nobody can ask later who could see a document that is gone.
        if let Some(acl) = internal.and_then(|internal| internal.get("_acl")) {
            readers.insert(one.document_id.clone(), acl.clone());
        }
        ids.push(one.document_id.clone());
    }
    let told = removed
        .into_iter()
        .flat_map(|(collection, (ids, readers))| {
            let told = [(removal_event(&ids), ids.as_slice())];
            told_events((namespace_id, collection), &told, &readers)
        });
    told.collect()
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

pub(super) async fn save(
    app: &App,
    scope: &Scope<impl Level>,
    collection: &CollectionResponse,
    documents: Vec<Document>,
) -> Result<()> {
    save_with(app, scope, collection, documents, Beside::default()).await
}

/// The same with what comes beside it.
pub(super) async fn save_with(
    app: &App,
    scope: &Scope<impl Level>,
    collection: &CollectionResponse,
    mut documents: Vec<Document>,
    beside: Beside,
) -> Result<()> {
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
        collection: collections::spec(app, &scope.namespace_id, collection),
        documents,
    };
    let told = [(kind, ids.as_slice())];
    let written = write_with(app, scope, entry, &told, beside).await;
    written.map(drop)
}

pub async fn delete(
    app: &App,
    scope: &Scope<Delete>,
    collection: &str,
    document_ids: Vec<String>,
) -> Result<Vec<String>> {
    let operation = NamespaceOperation::DeleteData;
    let (collection, sight) = super::open(app, scope, collection, operation).await?;
    let collection_id = collection.id.clone();
    let mut found = app
        .store()
        .get(&sight.reach, &document_ids, WithVectors::No)
        .await?;
    // A single one that the scopes do not cover is refused; of many those go that they cover.
    if let ([_], [one]) = (document_ids.as_slice(), found.as_slice()) {
        sight.check(&scope.caller, one)?;
    }
    found.retain(|one| {
        sight.check(&scope.caller, one).is_ok() && may(&scope.caller, one, operation)
    });
    // Nobody can ask later who could see a document that is gone.
    let readers = found.iter().filter_map(|one| {
        let acl = one.payload.get("_internal")?.get("_acl")?;
        Some((one.document_id.clone(), acl.clone()))
    });
    let readers = readers.collect();
    let left = |one: &Document| Left::of(&scope.namespace_id, one);
    let left: Vec<Left> = found.iter().filter_map(left).collect();
    let found: Vec<String> = found.into_iter().map(|one| one.document_id).collect();
    if found.is_empty() {
        return Ok(found);
    }
    // What was made of them goes first: a process that dies in between leaves nothing without its source.
    for (below, removed) in made_of(app, &scope.namespace_id, &found).await? {
        let (mut ids, mut readers, mut left) = (Vec::new(), Object::new(), Vec::new());
        for one in removed {
            let Below {
                document_id,
                acl,
                left: own,
            } = one;
            readers.extend(acl.map(|acl| (document_id.clone(), acl)));
            left.extend(own);
            ids.push(document_id);
        }
        remove(app, scope, below, ids, readers, left).await?;
    }
    remove(app, scope, collection_id, found.clone(), readers, left).await?;
    // Their files go once nothing shows them.
    app.work.notify_one();
    Ok(found)
}

async fn remove(
    app: &App,
    scope: &Scope<Delete>,
    collection_id: String,
    ids: Vec<String>,
    readers: Object,
    left: Vec<Left>,
) -> Result<()> {
    let kind = removal_event(&ids);
    let entry = Entry::Delete {
        namespace_id: scope.namespace_id.clone(),
        collection_id,
        document_ids: ids.clone(),
    };
    let beside = Beside {
        readers,
        left,
        ..Beside::default()
    };
    let written = write_with(app, scope, entry, &[(kind, &ids)], beside).await;
    written.map(drop)
}
