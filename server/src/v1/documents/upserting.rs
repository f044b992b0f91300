//! Documents under ids and with vectors of their caller, many at a time: what is sent again changes nothing.
//!
//! The store numbers the documents of everybody by their ids, so a caller's own id becomes one that is derived from it, from
//! its collection and, for keys of end users, from the user: nobody meets a document of somebody else under an id of their
//! own.

mod making;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loupe_engine::store::{CollectionSpec, Document, WithVectors, layout};
use loupe_wire::{
    BYODocument, BYOUpsertRequest, BYOUpsertResponse, CollectionResponse, NamespaceOperation,
    Value, WriteConsistency,
};
use sha2::{Digest, Sha256};

use making::Making;

use super::{
    checking::{Checks, aside, refusal},
    editing::Tries,
    journal::Entry,
    may, others,
    sight::Sight,
    turns::Turn,
    vectors::check_vectors,
    writing::{Beside, write_with},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    limits::quota,
    v1::{collections, events, taxonomies},
};

/// Characters of an id.
const MOST: usize = 512;

/// The ids that a text may stand for in a collection, the likeliest first: one that the server gave, the caller's own.
pub fn ids_of(collection_id: &str, principal: Option<&str>, sent: &str) -> Vec<String> {
    let given = layout::point_id(sent).map(|_| sent.to_owned());
    let own = principal.map(|user| own_id(collection_id, Some(user), sent));
    let of_all = own_id(collection_id, None, sent);
    given.into_iter().chain(own).chain([of_all]).collect()
}

fn own_id(collection_id: &str, principal: Option<&str>, sent: &str) -> String {
    // No id of a bucket's object begins like this.
    let whose = principal.map_or_else(|| "own".to_owned(), |user| format!("own of {user}"));
    loupe_engine::store::document_id(collection_id, &whose, sent)
}

/// A document of the request, checked.
#[derive(Clone)]
struct Sent {
    vectors: BTreeMap<String, Vec<f32>>,
    /// The id that it has where it was written under the caller's own.
    own: String,
    /// The id that the document has or gets.
    id: String,
    /// What was sent, as one number.
    mark: String,
    document: BYODocument,
}

/// What becomes of the documents.
#[derive(Default)]
struct Outcome {
    written: Vec<Document>,
    created: Vec<String>,
    changed: Vec<String>,
    dropped: Vec<(String, Vec<String>)>,
}

/// Documents that may be written as they are, by nobody else of this process until this is written or dropped.
pub struct Checked {
    turn: Turn,
    sent: Vec<Sent>,
    found: Found,
    write_token: bool,
    /// What is not as the collection's schema says, where that is told only.
    warnings: Vec<String>,
}

/// Documents of a request that are there already, as they were read after an event.
struct Found {
    documents: HashMap<String, Document>,
    since: i64,
}

/// Checks whole documents against a collection, as it is or as it is about to be; nothing is written.
///
/// # Errors
/// An id that is none or is sent twice, vectors that the collection has no index for, a document that the caller may not
/// change, no room, a collection that is put away.
pub async fn checked(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: BYOUpsertRequest,
) -> Result<Checked> {
    collections::lifecycle::check_active(collection)?;
    quota::check_writing(app, &scope.caller.org_id).await?;
    let spec = collections::spec(app, &scope.namespace_id, collection);
    let sent = check(&spec, scope, request.documents)?;
    let ids = sent
        .iter()
        .flat_map(|one| [&one.id, &one.document.document_id]);
    let turn = app.writers.turn(ids).await;
    let (sent, found) = find(app, scope, &spec, sent).await?;
    let (sent, warnings) = conform(collection, sent).await?;
    let is_new = |one: &&Sent| !found.documents.contains_key(&one.id);
    let new = sent.iter().filter(is_new);
    let new = i64::try_from(new.count()).unwrap_or(i64::MAX);
    if new > 0 {
        quota::check_documents(app, &scope.caller, new).await?;
    }
    Ok(Checked {
        turn,
        sent,
        found,
        write_token: request.options.is_some_and(|options| options.write_token),
        warnings,
    })
}

/// Writes documents that were checked; one that is there already is replaced. What another process wrote of them since is read
/// again, so that it is not made twice, and whom it was shared with meanwhile still sees it.
///
/// # Errors
/// Other processes go on writing them, or took the caller's right to; a store or the database fails.
pub async fn upsert(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    checked: Checked,
) -> Result<BYOUpsertResponse> {
    let Checked {
        turn,
        mut sent,
        mut found,
        write_token: token,
        warnings,
    } = checked;
    let bare = sent.iter().filter(|one| one.vectors.is_empty());
    let unsearchable = bare.map(|one| one.document.document_id.clone()).collect();
    let writing = Writing {
        app,
        scope,
        collection,
        spec: collections::spec(app, &scope.namespace_id, collection),
        turn,
    };
    let mut tries = Tries::new(app, scope);
    let written = loop {
        let written = writing.once(sent.clone(), found).await;
        if let Some(written) = tries.outcome(written) {
            break written?;
        }
        (sent, found) = find(app, scope, &writing.spec, sent).await?;
    };
    // Copies have a turn of their own.
    drop(writing);
    taxonomies::keep(app, &scope.caller.org_id, written.copies).await?;
    let document_ids: Vec<String> = sent.into_iter().map(|one| one.id).collect();
    Ok(BYOUpsertResponse {
        inserted: i64::try_from(document_ids.len()).unwrap_or(i64::MAX),
        document_ids,
        write_token: token.then(|| format!("wt_{}", app.clock().micros())),
        dropped_payload_fields: written.dropped.into_iter().collect(),
        unsearchable_document_ids: unsearchable,
        consistency: Some(WriteConsistency {
            retriever_visible: "immediate".into(),
            write_token_available: token,
            expected_visible_within_ms: Some(0),
            ..Default::default()
        }),
        warnings,
    })
}

fn check(
    spec: &CollectionSpec,
    scope: &Scope<Write>,
    documents: Vec<BYODocument>,
) -> Result<Vec<Sent>> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(documents.len());
    for (place, document) in documents.into_iter().enumerate() {
        let place = place.to_string();
        let id = document.document_id.as_str();
        let bad = |kind: &str, msg: &str| {
            let path = ["documents", &place, "document_id"];
            ApiError::from(Violation::body(&path, kind, msg, id.into()))
        };
        if id.trim().is_empty() || id.chars().count() > MOST || id.chars().any(char::is_control) {
            let msg = "an id has 1 to 512 characters, none of them a control character";
            return Err(bad("value_error", msg));
        }
        if !seen.insert(id.to_owned()) {
            return Err(bad("value_error", "the id is sent twice"));
        }
        let path = ["documents", &place, "vectors"];
        let vectors = check_vectors(spec, &document.vectors, &path)?;
        let mark = serde_json::to_vec(&document).map_err(ApiError::internal)?;
        let own = own_id(&spec.collection_id, scope.caller.principal(), id);
        checked.push(Sent {
            vectors,
            id: own.clone(),
            own,
            mark: hex::encode(Sha256::digest(&mark)),
            document,
        });
    }
    Ok(checked)
}

/// Refuses documents that are not as the collection's schema says; answers what is told only.
async fn conform(
    collection: &CollectionResponse,
    sent: Vec<Sent>,
) -> Result<(Vec<Sent>, Vec<String>)> {
    let Some(checks) = Checks::of(collection)? else {
        return Ok((sent, Vec::new()));
    };
    aside(move || warnings(&checks, &sent).map(|told| (sent, told))).await?
}

fn warnings(checks: &Checks, sent: &[Sent]) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for (place, one) in sent.iter().enumerate() {
        let (place, document) = (place.to_string(), &one.document);
        let mut fields = document.payload.clone().unwrap_or_default();
        if let Some(metadata) = &document.metadata {
            fields.insert("metadata".into(), Value::Object(metadata.clone()));
        }
        let told = checks.check(&fields);
        let told = told.map_err(|faults| refusal(&["documents", &place, "payload"], faults))?;
        let id = &document.document_id;
        warnings.extend(told.into_iter().map(|fault| format!("{id}: {fault}")));
    }
    Ok(warnings)
}

/// Notes the same in the documents themselves.
async fn mark(
    collection: &CollectionResponse,
    mut documents: Vec<Document>,
) -> Result<Vec<Document>> {
    let Some(checks) = Checks::of(collection)? else {
        return Ok(documents);
    };
    let marked = aside(move || {
        let marked = documents.iter_mut().try_for_each(|one| checks.admit(one));
        marked.map(|()| documents)
    });
    let marked = marked.await?;
    marked.map_err(|faults| refusal(&["documents"], faults))
}

/// Finds what is there already, which the caller has to be allowed to change. An id that the server gave stands for its document
/// where the caller sees it.
async fn find(
    app: &App,
    scope: &Scope<Write>,
    spec: &CollectionSpec,
    mut sent: Vec<Sent>,
) -> Result<(Vec<Sent>, Found)> {
    let since = events::newest(app.db(), &scope.caller.org_id).await?;
    let given = |one: &Sent| layout::point_id(&one.document.document_id).is_some();
    let given: Vec<String> = sent
        .iter()
        .filter(|one| given(one))
        .map(|one| one.document.document_id.clone())
        .collect();
    let own = sent.iter().map(|one| one.own.clone());
    let ids: Vec<String> = own.chain(given).collect();
    let reach = scope.reach(vec![spec.collection_id.clone()]);
    let found = others::current(app, &reach, &ids, WithVectors::No).await?;
    let found: HashMap<String, Document> = found
        .into_iter()
        .map(|document| (document.document_id.clone(), document))
        .collect();
    let mut seen = BTreeSet::new();
    for (place, one) in sent.iter_mut().enumerate() {
        one.id
            .clone_from(match found.contains_key(&one.document.document_id) {
                true => &one.document.document_id,
                false => &one.own,
            });
        if !seen.insert(one.id.clone()) {
            let path = ["documents", &place.to_string(), "document_id"];
            let msg = "another document of the request is the same one";
            let id = one.document.document_id.as_str().into();
            return Err(Violation::body(&path, "value_error", msg, id).into());
        }
    }
    allow(scope, &sent, &found)?;
    let found = Found {
        documents: found,
        since,
    };
    Ok((sent, found))
}

/// Whether the caller may change what is there.
fn allow(scope: &Scope<Write>, sent: &[Sent], found: &HashMap<String, Document>) -> Result<()> {
    for one in sent {
        let Some(before) = found.get(&one.id) else {
            continue;
        };
        let shares = one.document.acl.is_some();
        if !may(&scope.caller, before, NamespaceOperation::WriteData)
            || (shares && !may(&scope.caller, before, NamespaceOperation::ManagePermissions))
        {
            let message = match shares {
                true => "only the owner of the document says who may see it",
                false => "the document was shared for reading only",
            };
            let error = ApiError::forbidden("permission_denied", message);
            return Err(error.with("document_id", one.document.document_id.as_str()));
        }
    }
    Ok(())
}

/// Copies of documents for other collections.
type Copies = Vec<(CollectionSpec, Vec<Document>)>;

/// What came of a request's documents.
struct Written {
    /// Members that were dropped, by the ids that their documents were sent with.
    dropped: Vec<(String, Vec<String>)>,
    copies: Copies,
}

/// Documents of a request on their way.
struct Writing<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    collection: &'a CollectionResponse,
    spec: CollectionSpec,
    turn: Turn,
}

impl Writing<'_> {
    /// Writes them over what was found.
    async fn once(&self, sent: Vec<Sent>, found: Found) -> Result<Written> {
        let making = Making {
            scope: self.scope,
            spec: &self.spec,
            at: self.app.clock().now().to_rfc3339(),
        };
        let mut outcome = making.run(sent, found.documents);
        outcome.written = mark(self.collection, outcome.written).await?;
        let dropped = std::mem::take(&mut outcome.dropped);
        let copies = self.keep(outcome, found.since).await?;
        Ok(Written { dropped, copies })
    }

    /// Writes what is new or other than before, and tells of it; answers what taxonomies make of it elsewhere.
    async fn keep(&self, outcome: Outcome, since: i64) -> Result<Copies> {
        let mut documents = outcome.written;
        if documents.is_empty() {
            return Ok(Copies::new());
        }
        let (app, scope) = (self.app, self.scope);
        let (caller, namespace_id) = (&scope.caller, &scope.namespace_id);
        let made = &mut documents;
        let copies =
            taxonomies::at_ingest(app, caller, namespace_id, self.collection, made, false).await?;
        let entry = Entry::Upsert {
            collection: self.spec.clone(),
            documents,
        };
        let created = match outcome.created.len() {
            1 => "document.created",
            _ => "collection.documents.written",
        };
        let changed = match outcome.changed.len() {
            1 => "document.updated",
            _ => "documents.updated.batch",
        };
        let told = [
            (created, outcome.created.as_slice()),
            (changed, outcome.changed.as_slice()),
        ];
        let beside = Beside {
            since: Some(since),
            turn: Some(self.turn.clone()),
            ..Beside::default()
        };
        write_with(app, scope, entry, &told, beside).await?;
        Ok(copies)
    }
}

/// The document that a text stands for, of those in sight; in whichever collection, in their order.
pub async fn find_sent(app: &App, sight: &Sight, sent: &str) -> Result<Document> {
    let principal = sight.reach.principal.as_deref();
    let ids = sight
        .reach
        .collection_ids
        .iter()
        .flat_map(|collection| ids_of(collection, principal, sent));
    let mut ids: Vec<String> = ids.collect();
    // What the server gave is the same in every collection.
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    let found = sight.get(app, &ids, WithVectors::No).await?;
    let first = found.into_iter().next();
    first.ok_or_else(|| ApiError::not_found("document", sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_id_is_another_for_every_user_and_collection() {
        let ids: BTreeSet<String> = [("col_1", None), ("col_1", Some("ann")), ("col_2", None)]
            .into_iter()
            .map(|(collection, user)| own_id(collection, user, "one"))
            .collect();
        assert_eq!(ids.len(), 3);
        let given = own_id("col_1", None, "one");
        assert_eq!(ids_of("col_1", None, &given)[0], given);
        assert_eq!(ids_of("col_1", None, "one"), [given]);
    }
}
