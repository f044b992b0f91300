//! Executing a taxonomy: shown for some documents at once, or stored for many by a task.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use futures::StreamExt as _;
use loupe_engine::{
    stage::{
        RunError, Searchable,
        taxonomy::{Match, Subject, Taxonomy},
    },
    store::{Document, ListQuery, WithVectors},
};
use loupe_wire::{
    ApplyTaxonomyRequest, ApplyTaxonomyResponse, CollectionResponse, ExecuteTaxonomyRequest,
    HierarchicalEnrichmentStyle, JoinMode, JoinResponse, JoinStats, NamespaceOperation, Object,
    TaskResponse, TaxonomyMatch, TaxonomyResponse, Value, reading,
};
use serde_json::json;

use super::{
    applying::{self, Apply},
    at_version, building,
    enriched::style_of,
};
use crate::{
    app::App,
    auth::{Level, Scope, Write},
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
    jobs::Claim,
    limits::quota,
    list::parse_filter,
    v1::{collections, namespaces::push_event, retrievers, tasks},
};

/// Documents that one request shows.
const SHOWN: usize = 100;
/// Documents whose nodes are looked for at once.
pub(super) const AT_ONCE: usize = 4;

/// A document whose nodes are looked for.
pub(super) struct Candidate {
    /// As rows of retrievers are.
    pub value: Value,
    pub vectors: BTreeMap<String, Vec<f32>>,
}

impl From<Document> for Candidate {
    fn from(document: Document) -> Self {
        let mut value = Object::new();
        value.insert("document_id".into(), document.document_id.into());
        value.insert("collection_id".into(), document.collection_id.into());
        for (name, member) in document.payload {
            value.entry(name).or_insert(member);
        }
        Self {
            value: Value::Object(value),
            vectors: document.vectors,
        }
    }
}

/// The nodes of one document. The search takes a turn like any other.
///
/// # Errors
/// The mappings do not give what the retriever takes, or a search fails.
pub(super) async fn classify<L: Level>(
    app: &App,
    scope: &Scope<L>,
    taxonomy: &Taxonomy,
    candidate: &Candidate,
    collection: Option<&Searchable>,
) -> Result<Vec<Match>, RunError> {
    let ground = retrievers::ground(app, scope).await;
    let subject = Subject {
        value: &candidate.value,
        vectors: &candidate.vectors,
        collection,
    };
    taxonomy.classify(&ground, &subject, taxonomy.top_k).await
}

/// As [`classify`], with the milliseconds that it took.
pub(super) async fn classify_timed<L: Level>(
    app: &App,
    scope: &Scope<L>,
    taxonomy: &Taxonomy,
    candidate: &Candidate,
    collection: Option<&Searchable>,
) -> (Result<Vec<Match>, RunError>, f64) {
    let began = Instant::now();
    let found = classify(app, scope, taxonomy, candidate, collection).await;
    (found, began.elapsed().as_secs_f64() * 1e3)
}

pub(super) async fn execute(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    version: Option<i64>,
    request: ExecuteTaxonomyRequest,
) -> Result<JoinResponse> {
    quota::check_spend(app, &scope.caller.org_id).await?;
    let operation = NamespaceOperation::ReadData;
    let stored = at_version(app, scope, identifier, version, operation).await?;
    check_sent(&stored, &request)?;
    if request.join_mode == JoinMode::Batch {
        return begin(app, scope, &stored, request).await;
    }
    let instead = match retriever_of(&request)? {
        Some(id) => Some(retrievers::known(app, scope, &id).await?.id.clone()),
        None => None,
    };
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let taxonomy = building::build(app, org_id, namespace_id, &stored, instead.as_deref()).await?;
    show(app, scope, &taxonomy, shown(app, scope, request).await?).await
}

/// Documents that are shown as they would be.
struct Shown {
    candidates: Vec<Candidate>,
    /// Whose they are; of nobody's where they were sent.
    collection: Option<Arc<Record<CollectionResponse>>>,
}

/// What typed clients repeat has to be what the address names.
fn check_sent(stored: &TaxonomyResponse, request: &ExecuteTaxonomyRequest) -> Result<()> {
    let sent = request
        .taxonomy
        .as_ref()
        .and_then(|sent| sent.get("taxonomy_id"));
    match sent.filter(|sent| !sent.is_null()) {
        Some(other) if other.as_str() != stored.taxonomy_id.as_deref() => {
            let msg = "this is not the taxonomy of the address";
            let path = ["taxonomy", "taxonomy_id"];
            Err(Violation::body(&path, "value_error", msg, other.clone()).into())
        }
        _ => Ok(()),
    }
}

fn retriever_of(request: &ExecuteTaxonomyRequest) -> Result<Option<String>> {
    let Some(sent) = &request.retriever else {
        return Ok(None);
    };
    match sent.get("retriever_id").and_then(Value::as_str) {
        Some(id) => Ok(Some(id.to_owned())),
        None => {
            let msg = "name a stored retriever: {retriever_id}";
            Err(Violation::body(&["retriever", "retriever_id"], "missing", msg, Value::Null).into())
        }
    }
}

/// The documents that are shown: those sent, or the first of a collection.
async fn shown(app: &App, scope: &Scope<Write>, request: ExecuteTaxonomyRequest) -> Result<Shown> {
    let fault = |member: &str, kind: &str, msg: String| {
        ApiError::from(Violation::body(&[member], kind, msg, Value::Null))
    };
    match (request.source_documents, request.source_collection_id) {
        (Some(documents), None) => {
            if documents.len() > SHOWN {
                let msg = format!(
                    "at most {SHOWN} documents are shown at once: store with join_mode batch"
                );
                return Err(fault("source_documents", "too_long", msg));
            }
            Ok(Shown {
                candidates: documents.into_iter().map(sent).collect(),
                collection: None,
            })
        }
        (None, Some(identifier)) => {
            let operation = NamespaceOperation::ReadData;
            let collection = collections::known(app, scope, &identifier, operation).await?;
            collections::lifecycle::check_here(&collection)?;
            let filters = request.scroll_filters.as_ref().map(|filters| &filters.0);
            let filter = filters
                .map(|tree| parse_filter(tree, "scroll_filters"))
                .transpose()?;
            let query = ListQuery {
                filter,
                limit: usize::try_from(request.batch_size)
                    .unwrap_or(SHOWN)
                    .min(SHOWN),
                vectors: WithVectors::Yes,
                ..Default::default()
            };
            let reach = scope.reach(vec![collection.id.clone()]);
            let page = app.store().list(&reach, query).await?;
            Ok(Shown {
                candidates: page.documents.into_iter().map(Candidate::from).collect(),
                collection: Some(collection),
            })
        }
        _ => {
            let msg = "send source_documents or source_collection_id, one of them";
            Err(fault("source_documents", "missing", msg.into()))
        }
    }
}

/// A document as a caller writes it; `vectors` holds its vectors by name.
fn sent(mut document: Object) -> Candidate {
    let vectors = document
        .remove("vectors")
        .and_then(|vectors| reading::from_value(&vectors).ok());
    Candidate {
        value: Value::Object(document),
        vectors: vectors.unwrap_or_default(),
    }
}

/// The documents as they would be, and their nodes.
async fn show(
    app: &App,
    scope: &Scope<Write>,
    taxonomy: &Taxonomy,
    shown: Shown,
) -> Result<JoinResponse> {
    let Shown {
        candidates,
        collection,
    } = shown;
    let collection = collection.as_deref();
    let searchable = collection.map(|one| collections::searchable(app, one));
    let style = collection.map_or(HierarchicalEnrichmentStyle::Combined, |one| {
        style_of(one, &taxonomy.taxonomy_id, None)
    });
    let work: Vec<_> = candidates
        .iter()
        .map(|one| classify(app, scope, taxonomy, one, searchable.as_ref()))
        .collect();
    let found: Vec<_> = futures::stream::iter(work)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut answer = JoinResponse {
        stats: JoinStats {
            batches: 1,
            ..Default::default()
        },
        ..Default::default()
    };
    let mut results = Vec::with_capacity(candidates.len());
    for (candidate, found) in candidates.into_iter().zip(found) {
        answer.stats.processed_docs += 1;
        let mut value = candidate.value;
        match found {
            Ok(matches) if !matches.is_empty() => {
                answer.stats.enriched += 1;
                let written = taxonomy.enrich(&mut value, &matches, None, style);
                let told = matches
                    .iter()
                    .map(|one| told(taxonomy, &value, one, &written));
                answer.matches.extend(told);
            }
            Ok(_) => {}
            Err(RunError::Invalid(reason) | RunError::Away(reason)) => {
                answer.stats.errors += 1;
                answer.first_error.get_or_insert(reason);
            }
            Err(error) => return Err(retrievers::run_error(error)),
        }
        if let Value::Object(shown) = value {
            results.push(shown);
        }
    }
    answer.results = Some(results);
    Ok(answer)
}

fn told(taxonomy: &Taxonomy, document: &Value, found: &Match, written: &[String]) -> TaxonomyMatch {
    let id = document.get("document_id").and_then(Value::as_str);
    TaxonomyMatch {
        document_id: id.map(ToOwned::to_owned),
        taxonomy_id: Some(taxonomy.taxonomy_id.clone()),
        taxonomy_name: Some(taxonomy.name.clone()),
        node_id: Some(found.node_id.clone()),
        label: Some(found.label.clone()),
        score: found.score,
        path: found.path.clone(),
        hierarchy_level: i64::try_from(found.depth).ok(),
        enriched_fields: written.to_vec(),
    }
}

/// Leaves the task that stores what a taxonomy gives to a collection.
async fn begin(
    app: &App,
    scope: &Scope<Write>,
    stored: &TaxonomyResponse,
    request: ExecuteTaxonomyRequest,
) -> Result<JoinResponse> {
    if request.source_documents.is_some() || request.retriever.is_some() {
        let msg = "what is stored is a collection's, found by the taxonomy's own retriever: send source_collection_id";
        let path = ["join_mode"];
        return Err(Violation::body(&path, "value_error", msg, "batch".into()).into());
    }
    let Some(collection) = request.source_collection_id else {
        let msg = "name the collection whose documents are enriched";
        let path = ["source_collection_id"];
        return Err(Violation::body(&path, "missing", msg, Value::Null).into());
    };
    let filters = request.scroll_filters.and_then(|filters| match filters.0 {
        Value::Object(tree) => Some(tree),
        _ => None,
    });
    let work = Apply {
        taxonomy_id: stored.taxonomy_id.clone().unwrap_or_default(),
        version: Some(stored.version),
        collection_id: collection,
        target_collection_id: request.target_collection_id,
        filters: filters.unwrap_or_default(),
        batch_size: request.batch_size,
        ..Default::default()
    };
    let (task, documents, _) = enqueue(app, scope, work).await?;
    let size = request.batch_size.max(1);
    Ok(JoinResponse {
        stats: JoinStats {
            batches: documents.saturating_add(size - 1) / size,
            ..Default::default()
        },
        task_id: Some(task.task_id),
        ..Default::default()
    })
}

/// Checks what is asked for and leaves the task; answers it with the number of documents and the collection's id.
async fn enqueue(
    app: &App,
    scope: &Scope<Write>,
    mut work: Apply,
) -> Result<(TaskResponse, i64, String)> {
    applying::check(app, scope, &mut work).await?;
    let filter = applying::filter_of(&work)?;
    let reach = scope.reach(vec![work.collection_id.clone()]);
    let documents = app.store().count(&reach, filter.as_ref()).await?;
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let (now, collection_id) = (app.clock().micros(), work.collection_id.clone());
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let task = applying::task(&org_id, &namespace_id, &work)?;
                tasks::insert(tx, task, now).await
            })
        })
        .await?;
    app.work.notify_one();
    let documents = i64::try_from(documents).unwrap_or(i64::MAX);
    Ok((task, documents, collection_id))
}

/// Applies a taxonomy to what a collection holds.
pub(super) async fn apply_to(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    request: ApplyTaxonomyRequest,
) -> Result<ApplyTaxonomyResponse> {
    quota::check_spend(app, &scope.caller.org_id).await?;
    let limits = request.budget_limits.unwrap_or_default();
    let work = Apply {
        taxonomy_id: request.taxonomy_id,
        collection_id: collection.to_owned(),
        filters: request.scroll_filters.unwrap_or_default(),
        batch_size: request.batch_size,
        parallelism: request.parallelism,
        max_time_ms: limits.max_time_ms,
        ..Default::default()
    };
    let taxonomy = super::find(app, scope, &work.taxonomy_id, NamespaceOperation::ReadData).await?;
    let (task, documents, collection_id) = enqueue(app, scope, work).await?;
    Ok(ApplyTaxonomyResponse {
        task_id: task.task_id,
        status: tasks::name_of(task.status),
        collection_id,
        taxonomy_id: taxonomy.taxonomy_id.unwrap_or_default(),
        estimated_documents: Some(documents),
    })
}

/// Tells the change feed what came of a task that applies a taxonomy.
pub(super) async fn tell_end(
    tx: &mut Tx,
    claim: &Claim,
    kind: &'static str,
    work: &Apply,
    more: Value,
    now: i64,
) -> Result<()> {
    let mut payload = json!({
        "resource_type": "taxonomy", "resource_id": work.taxonomy_id, "taxonomy_id": work.taxonomy_id,
        "collection_id": work.collection_id, "task_id": claim.task_id,
    });
    if let (Some(payload), Value::Object(more)) = (payload.as_object_mut(), more) {
        payload.extend(more);
    }
    let namespace_id = claim.namespace_id.as_deref().unwrap_or_default();
    push_event(tx, &claim.org_id, namespace_id, kind, payload, now).await
}

/// What a task that applied a taxonomy tells.
pub fn outputs(work: &Apply, done: &applying::Applied) -> Vec<Value> {
    vec![json!({
        "taxonomy_id": work.taxonomy_id, "collection_id": work.collection_id,
        "target_collection_id": work.target_collection_id, "processed_docs": done.stats.processed_docs,
        "enriched": done.stats.enriched, "errors": done.stats.errors, "batches": done.stats.batches,
        "first_error": done.first_error, "stopped_by_budget": done.out_of_time,
    })]
}
