//! What makes alerts look: documents that were written, read from the change feed.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use loupe_engine::{
    filter,
    store::{Reach, WithVectors},
};
use loupe_wire::{
    AlertExecutionMode, AlertInputMapping, AlertSource, InputMappingSourceSourceType, Object,
    TaskType, Value,
};
use serde::{Deserialize, Serialize};

use super::{
    Alert, READER, delivery,
    evaluation::{self, Cause},
    selecting::watching,
    store, timed,
};
use crate::{
    app::App,
    cause::Cause as Origin,
    error::{ApiError, Result},
    jobs::{Claim, is_last_try},
    v1::{
        collections::COLLECTIONS,
        documents,
        events::{self, EventRow},
        retrievers::RETRIEVERS,
        tasks::{self, NewTask},
    },
};

/// The queue's word for alerts that look at what was written, and for those that do at the clock's next moment.
pub const INGEST: &str = "alert_ingest";
pub const GATHERED: &str = "alert_gathered";

/// Events read at a time, and documents that are gathered before alerts look.
const EVENTS: i64 = 500;
const AT_ONCE: usize = 5000;

/// Looks that one task has under way.
const TOGETHER: usize = 4;

/// After looks that took longer than this, those of an organization rest so many times as long, and no longer than `MOST_REST`:
/// what many alerts look for takes a fifth of the time at most, however fast documents come. Microseconds.
const SHORT: i64 = 100_000;
const REST: i64 = 4;
const MOST_REST: i64 = 10_000_000;

/// Documents read at a time.
const STEP: usize = 500;

/// What was written to one collection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Written {
    collection_id: String,
    documents: Vec<String>,
    /// Nothing more of the same batch is to come.
    ended: bool,
    /// What led to it: that of the task.
    #[serde(skip)]
    origin: Origin,
    /// The moment of the clock at which alerts look; without one they look at once.
    #[serde(default)]
    moment: Option<i64>,
}

impl Written {
    /// Which alerts look at it.
    fn mode(&self) -> AlertExecutionMode {
        match self.moment {
            Some(_) => AlertExecutionMode::Scheduled,
            None => AlertExecutionMode::OnIngest,
        }
    }

    /// What a look at one of the documents is known by. One that was written twice before a moment is looked at once.
    fn key(&self, claim: &Claim, document_id: &str) -> String {
        match self.moment {
            Some(moment) => format!("clock:{moment}:{document_id}"),
            None => format!("{}:{document_id}", claim.task_id),
        }
    }
}

/// Leaves a task for every collection that was written to and that alerts watch, and another one for those that wait for the
/// clock. While the last such task of an organization is under way, and a while after it, more is gathered: alerts fall behind
/// together, they do not pile up.
///
/// # Errors
/// The database does not answer.
pub async fn dispatch(app: &App) -> Result<()> {
    for (org_id, seen, _) in READER.behind(app.db()).await? {
        if store::under_way(app.db(), &org_id, INGEST).await? {
            continue;
        }
        let now = app.clock().micros();
        let place = (org_id.as_str(), INGEST);
        let until = store::rests_until(app.db(), place, now - MOST_REST, REST, SHORT).await?;
        if until > now {
            continue;
        }
        let (written, last) = gather(app, &org_id, seen).await?;
        let mut watched = Vec::new();
        for (namespace_id, written) in written {
            let found = watchers(app, &org_id, &namespace_id, &written.collection_id).await?;
            let at_once = |one: &Watcher| one.mode == AlertExecutionMode::OnIngest;
            if found.iter().any(at_once) {
                watched.push((namespace_id.clone(), written.clone()));
            }
            if found.iter().any(Watcher::waits) {
                let moment = Some(timed::moment(app) + 1);
                watched.push((namespace_id, Written { moment, ..written }));
            }
        }
        advance(app, &org_id, (seen, last), watched).await?;
    }
    Ok(())
}

/// What the events say was written since, and the last of them.
async fn gather(app: &App, org_id: &str, mut seen: i64) -> Result<(Vec<(String, Written)>, i64)> {
    let mut written = BTreeMap::new();
    let mut documents = 0;
    while documents < AT_ONCE {
        let events = events::list(app.db(), org_id, seen, "", "", EVENTS).await?;
        let Some(last) = events.last() else { break };
        seen = last.seq;
        for event in events {
            documents += note(&mut written, event);
        }
    }
    let each = written.into_iter();
    Ok((
        each.map(|((namespace, ..), written)| (namespace, written))
            .collect(),
        seen,
    ))
}

/// A namespace, a collection of it, and what led to what was written there.
type Place = (String, String, Origin);

/// Adds what an event tells; how many documents that are.
fn note(written: &mut BTreeMap<Place, Written>, event: EventRow) -> usize {
    let ended = match event.event_type.as_str() {
        // What is not of a batch is written at once.
        "collection.documents.written" => event.payload.get("batch_id").is_none_or(Value::is_null),
        "document.created" | "collection.documents.batch_completed" => true,
        _ => return 0,
    };
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
    let (Some(namespace_id), Some(collection_id)) = (&event.namespace_id, text("collection_id"))
    else {
        return 0;
    };
    let origin = event.cause();
    let place = (
        namespace_id.clone(),
        collection_id.to_owned(),
        origin.clone(),
    );
    let entry = written.entry(place).or_insert_with(|| Written {
        collection_id: collection_id.to_owned(),
        origin,
        ..Written::default()
    });
    let many = event.payload.get("document_ids").and_then(Value::as_array);
    let many = many.into_iter().flatten().filter_map(Value::as_str);
    let before = entry.documents.len();
    entry
        .documents
        .extend(text("document_id").into_iter().chain(many).map(Into::into));
    entry.ended |= ended;
    entry.documents.len() - before
}

async fn advance(
    app: &App,
    org_id: &str,
    (from, to): (i64, i64),
    watched: Vec<(String, Written)>,
) -> Result<()> {
    let (org_id, now) = (org_id.to_owned(), app.clock().micros());
    let (found, period) = (!watched.is_empty(), timed::period(app));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !READER.advance(tx, &org_id, from, to).await? {
                    // Another process was faster.
                    return Ok(());
                }
                for (namespace_id, written) in watched {
                    let work = serde_json::to_value(&written).map_err(ApiError::internal)?;
                    let task_type = TaskType::ApiRetrieversExecute;
                    let kind = match written.moment {
                        Some(_) => GATHERED,
                        None => INGEST,
                    };
                    let mut task = NewTask::work(&org_id, &namespace_id, task_type, kind, work);
                    task.parent_id = Some(written.collection_id);
                    tx.set_cause(written.origin);
                    let task = tasks::insert(tx, task, now).await?;
                    if let Some(moment) = written.moment {
                        let after = moment.saturating_mul(period);
                        store::delay(tx, &org_id, &task.task_id, after).await?;
                    }
                }
                Ok(())
            })
        })
        .await?;
    if found {
        app.work.notify_one();
    }
    Ok(())
}

/// An alert that looks at a collection: when it is written to, or by the clock.
pub(super) struct Watcher {
    pub(super) owner: String,
    pub(super) alert: Alert,
    pub(super) mappings: Vec<AlertInputMapping>,
    mode: AlertExecutionMode,
}

impl Watcher {
    /// Whether it asks something else for each document.
    pub(super) fn is_per_document(&self) -> bool {
        needs_document(&self.mappings)
    }

    /// Whether it may look at what a task tells of. One that has documents processed does not at those which come of it: what
    /// it finds would be processed without end.
    fn may_look(&self, claim: &Claim) -> bool {
        !delivery::processes(&self.alert) || claim.cause.lets(self.alert.id())
    }

    /// Whether it looks at what was written, but not before the clock's next moment.
    fn waits(&self) -> bool {
        self.mode == AlertExecutionMode::Scheduled && self.is_per_document()
    }

    /// Whether it looks at every moment of the clock, whatever was written.
    pub(super) fn is_timed(&self) -> bool {
        self.mode == AlertExecutionMode::Scheduled && !self.is_per_document()
    }
}

/// Whether inputs come from a document.
pub(super) fn needs_document(mappings: &[AlertInputMapping]) -> bool {
    mappings
        .iter()
        .any(|mapping| mapping.source.source_type != InputMappingSourceSourceType::Constant)
}

/// Those that the collection applies, and those on ingest whose retriever reads it.
pub(super) async fn watchers(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    collection_id: &str,
) -> Result<Vec<Watcher>> {
    let alerts = watching(app, org_id, namespace_id).await?;
    if alerts.is_empty() {
        return Ok(Vec::new());
    }
    let collection = match COLLECTIONS
        .known(app.db(), namespace_id, collection_id)
        .await
    {
        Ok(collection) => collection,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut reads = BTreeMap::new();
    for record in RETRIEVERS.all(app.db(), namespace_id).await? {
        let reads_it = record.collection_ids.iter().any(|id| id == collection_id);
        for name in [&record.id, &record.name] {
            reads.insert(name.clone(), reads_it);
        }
    }
    let applied = collection.alert_applications.clone().unwrap_or_default();
    let mut watchers = Vec::new();
    for (owner, alert) in alerts {
        if alert.source() != AlertSource::Retriever {
            continue;
        }
        let names = [alert.id(), alert.alert.name.as_str()];
        let application = applied
            .iter()
            .find(|application| names.contains(&application.alert_id.as_str()));
        let mode = match application {
            Some(application) => application.execution_mode,
            None => {
                let retriever = alert.alert.retriever_id.as_deref().unwrap_or_default();
                let reads_it = reads.get(retriever).copied();
                // One that has another name by now: the look fails, and says so. Those of the organization may ask elsewhere.
                match reads_it.unwrap_or(owner == namespace_id) {
                    true if alert.mode() == AlertExecutionMode::OnIngest => alert.mode(),
                    _ => AlertExecutionMode::OnDemand,
                }
            }
        };
        if mode != AlertExecutionMode::OnDemand {
            watchers.push(Watcher {
                owner,
                alert,
                mappings: application
                    .map(|application| application.input_mappings.clone())
                    .unwrap_or_default(),
                mode,
            });
        }
    }
    Ok(watchers)
}

/// Lets the alerts of a collection look at what was written.
///
/// # Errors
/// One of them may do better later: the queue tries again those that have not looked yet.
pub(super) async fn run(app: &App, claim: &Claim) -> Result<()> {
    let written = Written::deserialize(&claim.work).map_err(ApiError::internal)?;
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    let collection_id = &written.collection_id;
    let mut watchers = watchers(app, &claim.org_id, namespace_id, collection_id).await?;
    watchers.retain(|watcher| watcher.mode == written.mode() && watcher.may_look(claim));
    let mut looks = Vec::new();
    let (each, once): (Vec<_>, Vec<_>) = watchers.into_iter().partition(Watcher::is_per_document);
    // What needs no document looks by the clock itself.
    let at_once = written.ended && written.moment.is_none();
    for watcher in once.into_iter().filter(|_| at_once) {
        let cause = Cause {
            key: claim.task_id.clone(),
            namespace_id: namespace_id.to_owned(),
            collection_id: collection_id.clone(),
            documents: written.documents.clone(),
            inputs: inputs(app, &watcher.mappings, &Value::Null),
            ..Cause::default()
        };
        looks.push((watcher.owner, watcher.alert, cause));
    }
    look_all(app, claim, looks).await?;
    if each.is_empty() {
        return Ok(());
    }
    let reach = Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: vec![collection_id.clone()],
        principal: None,
    };
    for ids in written.documents.chunks(STEP) {
        let found = app.store().get(&reach, ids, WithVectors::No).await?;
        let mut looks = Vec::new();
        for document in found {
            let value = Value::from(document.payload);
            for watcher in &each {
                let cause = Cause {
                    key: written.key(claim, &document.document_id),
                    namespace_id: namespace_id.to_owned(),
                    collection_id: collection_id.clone(),
                    documents: vec![document.document_id.clone()],
                    inputs: inputs(app, &watcher.mappings, &value),
                    is_new_question: true,
                    ..Cause::default()
                };
                looks.push((watcher.owner.clone(), watcher.alert.clone(), cause));
            }
        }
        look_all(app, claim, looks).await?;
    }
    Ok(())
}

/// Looks with all of them. One that cannot be evaluated does not keep the others from it.
pub(super) async fn look_all(
    app: &App,
    claim: &Claim,
    looks: Vec<(String, Alert, Cause)>,
) -> Result<()> {
    let (mut later, comes_again) = (None, !is_last_try(claim));
    let mut ends = stream::iter(looks)
        .map(async |(owner, alert, cause)| {
            let cause = Cause {
                comes_again,
                ..cause
            };
            let found = evaluation::look(app, &owner, &alert, cause).await;
            (alert.id().to_owned(), found)
        })
        .buffer_unordered(TOGETHER);
    while let Some((alert_id, found)) = ends.next().await {
        if let Err(error) = found {
            tracing::warn!(%error, alert_id, "an alert could not be evaluated");
            if error.is_transient() {
                later = Some(error);
            }
        }
    }
    later.map_or(Ok(()), Err)
}

/// The inputs that a document gives.
pub(super) fn inputs(app: &App, mappings: &[AlertInputMapping], document: &Value) -> Object {
    let mut inputs = Object::new();
    for mapping in mappings {
        let path = mapping.source.path.as_deref().unwrap_or_default();
        let value = match mapping.source.source_type {
            InputMappingSourceSourceType::Constant => mapping.source.value.clone(),
            InputMappingSourceSourceType::DocumentField => {
                filter::value_at(document, path).cloned()
            }
            InputMappingSourceSourceType::SourceBlob => blob(app, document, path),
        };
        if let Some(value) = value {
            inputs.insert(mapping.input_key.clone(), value);
        }
    }
    inputs
}

/// The address of the file that a document was made from: of the one with this field or property, else of the first.
fn blob(app: &App, document: &Value, path: &str) -> Option<Value> {
    let blobs = document["_internal"]["document_blobs"].as_array()?;
    let named = blobs.iter().find(|blob| {
        ["field", "property"]
            .iter()
            .any(|member| !path.is_empty() && blob[*member] == path)
    });
    let mut blob = named.or(blobs.first())?.clone();
    documents::presign(app, &mut blob);
    Some(blob["presigned_url"].clone()).filter(Value::is_string)
}
