//! What makes alerts look: documents that were written, read from the change feed, and the clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
};

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
use serde_json::json;

use super::{
    Alert, READER,
    evaluation::{self, Cause},
    selecting::watching,
    store::{self, ALERTS},
};
use crate::{
    app::App,
    error::{ApiError, Result},
    jobs::Claim,
    v1::{
        collections::COLLECTIONS,
        documents,
        events::{self, EventRow},
        retrievers::RETRIEVERS,
        tasks::{self, NewTask},
    },
};

/// The queue's word for alerts that look at what was written, and for those that look by the clock.
pub const INGEST: &str = "alert_ingest";
pub const CLOCK: &str = "alert_clock";

/// Events read at a time, and documents that are gathered before alerts look.
const EVENTS: i64 = 500;
const GATHERED: usize = 5000;

/// Looks that one task has under way.
const TOGETHER: usize = 4;

/// Documents read at a time.
const STEP: usize = 500;

/// What was written to one collection.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    collection_id: String,
    documents: Vec<String>,
    /// Nothing more of the same batch is to come.
    ended: bool,
}

/// Leaves a task for every collection that was written to and that alerts watch. While the last such task of an
/// organization is under way, more is gathered: alerts fall behind together, they do not pile up.
///
/// # Errors
/// The database does not answer.
pub async fn dispatch(app: &App) -> Result<()> {
    for (org_id, seen, _) in READER.behind(app.db()).await? {
        if store::under_way(app.db(), &org_id, INGEST).await? {
            continue;
        }
        let (written, last) = gather(app, &org_id, seen).await?;
        let mut watched = Vec::new();
        for (namespace_id, written) in written {
            if !watchers(app, &org_id, &namespace_id, &written.collection_id)
                .await?
                .is_empty()
            {
                watched.push((namespace_id, written));
            }
        }
        advance(app, &org_id, (seen, last), watched).await?;
    }
    Ok(())
}

/// What the events say was written since, and the last of them.
async fn gather(app: &App, org_id: &str, mut seen: i64) -> Result<(Vec<(String, Written)>, i64)> {
    let mut written: BTreeMap<(String, String), Written> = BTreeMap::new();
    let mut documents = 0;
    while documents < GATHERED {
        let events = events::list(app.db(), org_id, seen, "", "", EVENTS).await?;
        let Some(last) = events.last() else { break };
        seen = last.seq;
        for event in events {
            documents += note(&mut written, event);
        }
    }
    let each = written.into_iter();
    Ok((
        each.map(|((namespace, _), written)| (namespace, written))
            .collect(),
        seen,
    ))
}

/// Adds what an event tells; how many documents that are.
fn note(written: &mut BTreeMap<(String, String), Written>, event: EventRow) -> usize {
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
    let place = (namespace_id.clone(), collection_id.to_owned());
    let entry = written.entry(place).or_insert_with(|| Written {
        collection_id: collection_id.to_owned(),
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
    let found = !watched.is_empty();
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
                    let mut task = NewTask::work(&org_id, &namespace_id, task_type, INGEST, work);
                    task.parent_id = Some(written.collection_id);
                    tasks::insert(tx, task, now).await?;
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

/// An alert that looks when a collection is written to.
struct Watcher {
    owner: String,
    alert: Alert,
    mappings: Vec<AlertInputMapping>,
}

impl Watcher {
    /// Whether it asks something else for each document.
    fn is_per_document(&self) -> bool {
        self.mappings
            .iter()
            .any(|mapping| mapping.source.source_type != InputMappingSourceSourceType::Constant)
    }
}

/// Those that the collection applies, and those on ingest whose retriever reads it.
async fn watchers(
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
        let on_ingest = match application {
            Some(application) => application.execution_mode == AlertExecutionMode::OnIngest,
            None => {
                let retriever = alert.alert.retriever_id.as_deref().unwrap_or_default();
                alert.mode() == AlertExecutionMode::OnIngest
                    && reads.get(retriever).copied().unwrap_or(false)
            }
        };
        if on_ingest {
            watchers.push(Watcher {
                owner,
                alert,
                mappings: application
                    .map(|application| application.input_mappings.clone())
                    .unwrap_or_default(),
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
    let watchers = watchers(app, &claim.org_id, namespace_id, collection_id).await?;
    let mut looks = Vec::new();
    let (each, once): (Vec<_>, Vec<_>) = watchers.into_iter().partition(Watcher::is_per_document);
    for watcher in once.into_iter().filter(|_| written.ended) {
        let cause = Cause {
            key: claim.task_id.clone(),
            collection_id: collection_id.clone(),
            documents: written.documents.clone(),
            inputs: inputs(app, &watcher.mappings, &Value::Null),
            ..Cause::default()
        };
        looks.push((watcher.owner, watcher.alert, cause));
    }
    look_all(app, looks).await?;
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
                    key: format!("{}:{}", claim.task_id, document.document_id),
                    collection_id: collection_id.clone(),
                    documents: vec![document.document_id.clone()],
                    inputs: inputs(app, &watcher.mappings, &value),
                    is_new_question: true,
                    ..Cause::default()
                };
                looks.push((watcher.owner.clone(), watcher.alert.clone(), cause));
            }
        }
        look_all(app, looks).await?;
    }
    Ok(())
}

/// Looks with all of them. One that cannot be evaluated does not keep the others from it.
async fn look_all(app: &App, looks: Vec<(String, Alert, Cause)>) -> Result<()> {
    let mut later = None;
    let mut ends = stream::iter(looks)
        .map(async |(owner, alert, cause)| {
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
fn inputs(app: &App, mappings: &[AlertInputMapping], document: &Value) -> Object {
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

/// Leaves a task for each organization with alerts that look by the clock, once for each of its moments.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let seconds = i64::try_from(app.config().jobs.alert_seconds.max(1)).unwrap_or(300);
    let moment = now / (seconds * 1_000_000);
    if app.alert_moment.swap(moment, Ordering::Relaxed) == moment {
        return Ok(());
    }
    let organizations: BTreeSet<String> = store::everywhere(app.db())
        .await?
        .into_iter()
        .filter(is_timed)
        .map(|alert| alert.org_id)
        .collect();
    for org_id in organizations {
        if store::under_way(app.db(), &org_id, CLOCK).await? {
            continue;
        }
        let mut task = NewTask::work(
            &org_id,
            "",
            TaskType::ApiRetrieversExecute,
            CLOCK,
            json!({ "moment": moment }),
        );
        task.namespace_id = None;
        task.parent_id = Some(org_id);
        app.db()
            .write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }))
            .await?;
        app.work.notify_one();
    }
    Ok(())
}

fn is_timed(alert: &Alert) -> bool {
    let mode = alert.mode();
    alert.alert.enabled
        && (mode == AlertExecutionMode::Scheduled
            || (alert.source() == AlertSource::System && mode != AlertExecutionMode::OnDemand))
}

/// Lets the alerts of an organization look that look by the clock.
///
/// # Errors
/// As [`run`].
pub(super) async fn run_clock(app: &App, claim: &Claim) -> Result<()> {
    let key = format!("clock:{}", claim.work.get("moment").unwrap_or(&Value::Null));
    let mut owners = store::namespace_ids(app.db(), &claim.org_id).await?;
    owners.push(claim.org_id.clone());
    let mut looks = Vec::new();
    for owner in owners {
        for record in ALERTS.all(app.db(), &owner).await? {
            if is_timed(&record) {
                let cause = Cause {
                    key: key.clone(),
                    ..Cause::default()
                };
                looks.push((owner.clone(), record.data.0, cause));
            }
        }
    }
    look_all(app, looks).await
}
