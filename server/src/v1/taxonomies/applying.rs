//! Storing what a taxonomy gives: to the documents that a collection has, by a task.

use std::{collections::BTreeMap, time::Instant};

use futures::StreamExt as _;
use loupe_engine::{
    filter::Filter,
    stage::{
        RunError,
        taxonomy::{Match, Taxonomy},
    },
    store::{CollectionSpec, Document, ListQuery, WithVectors},
};
use loupe_wire::{
    HierarchicalEnrichmentStyle, JoinStats, NamespaceOperation, NotificationPriority,
    NotificationType, Object, TaskType, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    building,
    enriched::{copied, copy_id, is_done, put, style_of},
    executing::{self, Candidate, classify_timed},
    store::{self, TAXONOMIES},
};
use crate::{
    app::App,
    auth::{Caller, Level, Scope, Write},
    error::{ApiError, Result},
    jobs::Claim,
    limits::quota,
    list::parse_filter,
    v1::{
        collections::{self, COLLECTIONS, lifecycle},
        documents,
        namespaces::push_event,
        notifications::{self, Notice},
        retrievers,
        tasks::{self, NewTask},
    },
};

/// The queue's word for a taxonomy that is applied.
pub const APPLY: &str = "apply_taxonomy";

/// Documents that are in memory at once, with their vectors.
const PAGE: i64 = 200;
/// Documents whose nodes are looked for at once, whatever is asked for: each takes a search's turn.
const AT_ONCE: i64 = 4;

/// What is applied to what.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Apply {
    pub taxonomy_id: String,
    /// The newest where it is absent.
    #[serde(default)]
    pub version: Option<i64>,
    pub collection_id: String,
    /// Where the enriched documents go; in place where it is absent.
    #[serde(default)]
    pub target_collection_id: Option<String>,
    #[serde(default)]
    pub filters: Object,
    #[serde(default)]
    pub batch_size: i64,
    #[serde(default)]
    pub parallelism: i64,
    /// Documents that this version was applied to before are passed over.
    #[serde(default)]
    pub incremental: bool,
    #[serde(default)]
    pub max_time_ms: Option<i64>,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    pub stats: JoinStats,
    pub first_error: Option<String>,
    pub out_of_time: bool,
}

/// Checks that the caller may do it, and puts ids in place of names.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, 409 for collections that cannot be read or written to,
/// the 422 list for a filter that cannot be read.
pub async fn check<L: Level>(app: &App, scope: &Scope<L>, work: &mut Apply) -> Result<()> {
    let taxonomy = super::find(app, scope, &work.taxonomy_id, NamespaceOperation::ReadData).await?;
    work.taxonomy_id = taxonomy.taxonomy_id.unwrap_or_default();
    let operation = NamespaceOperation::WriteData;
    let source = match work.target_collection_id {
        Some(_) => NamespaceOperation::ReadData,
        None => operation,
    };
    let collection = collections::known(app, scope, &work.collection_id, source).await?;
    work.collection_id = collection.id.clone();
    lifecycle::check_here(&collection)?;
    if let Some(target) = &mut work.target_collection_id {
        let found = collections::known(app, scope, target, operation).await?;
        lifecycle::check_active(&found)?;
        target.clone_from(&found.id);
    }
    if work.target_collection_id.as_ref() == Some(&work.collection_id) {
        work.target_collection_id = None;
    }
    if work.target_collection_id.is_none() {
        lifecycle::check_active(&collection)?;
    }
    filter_of(work).map(|_| ())
}

/// The documents that are meant.
///
/// # Errors
/// The 422 list.
pub fn filter_of(work: &Apply) -> Result<Option<Filter>> {
    if work.filters.is_empty() {
        return Ok(None);
    }
    let tree = Value::Object(work.filters.clone());
    parse_filter(&tree, "scroll_filters").map(Some)
}

/// The task that does it.
pub fn task(org_id: &str, namespace_id: &str, work: &Apply) -> Result<NewTask> {
    let written = serde_json::to_value(work).map_err(ApiError::internal)?;
    let kind = TaskType::ApiTaxonomiesMaterialize;
    let mut task = NewTask::work(org_id, namespace_id, kind, APPLY, written);
    task.inputs = vec![
        work.taxonomy_id.clone().into(),
        work.collection_id.clone().into(),
    ];
    task.description = format!("taxonomy {} on {}", work.taxonomy_id, work.collection_id);
    Ok(task)
}

/// Runs the task; safe to repeat, for a document that is enriched again stays the same.
///
/// # Errors
/// The taxonomy or the collection is gone, or a store does not answer.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Apply::deserialize(&claim.work).map_err(ApiError::internal)?;
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let scope: Scope<Write> = Scope::internal(Caller::system(&claim.org_id), namespace_id);
    let done = apply(app, &scope, &work, Some(claim)).await?;
    let outputs = executing::outputs(&work, &done);
    let told = outputs.first().cloned().unwrap_or_default();
    let (of, now) = (claim.clone(), app.clock().micros());
    let kind = "resource.executed";
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                tasks::succeed_in(tx, &of, outputs, now).await?;
                executing::tell_end(tx, &of, kind, &work, told, now).await
            })
        })
        .await
}

/// Applies a taxonomy to a collection, page by page.
///
/// # Errors
/// As [`run`].
pub async fn apply(
    app: &App,
    scope: &Scope<Write>,
    work: &Apply,
    claim: Option<&Claim>,
) -> Result<Applied> {
    let began = Instant::now();
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let stored = match work.version {
        Some(version) => store::version(app.db(), namespace_id, &work.taxonomy_id, version).await?,
        None => {
            let found = TAXONOMIES
                .find(app.db(), namespace_id, &work.taxonomy_id)
                .await?;
            found.data.0
        }
    };
    let taxonomy = building::build(app, org_id, namespace_id, &stored, None).await?;
    let pass = Pass::new(app, scope, work, &taxonomy).await?;
    let mut query = ListQuery {
        filter: filter_of(work)?,
        limit: usize::try_from(work.batch_size.clamp(1, PAGE)).unwrap_or(1),
        vectors: WithVectors::Yes,
        ..Default::default()
    };
    let reach = scope.reach(vec![work.collection_id.clone()]);
    let mut done = Applied::default();
    loop {
        pass.check().await?;
        documents::settle(app, &scope.namespace_id, &work.collection_id).await?;
        let page = app.store().list(&reach, query.clone()).await?;
        pass.page(page.documents, &mut done).await?;
        if let Some(claim) = claim {
            let told = json!({
                "processed": done.stats.processed_docs, "enriched": done.stats.enriched,
                "errors": done.stats.errors,
            });
            tasks::note(app, claim, "progress", told).await?;
        }
        query.cursor = page.next;
        let limit = work.max_time_ms.and_then(|most| u128::try_from(most).ok());
        done.out_of_time = limit.is_some_and(|most| began.elapsed().as_millis() >= most);
        if query.cursor.is_none() || done.out_of_time {
            done.out_of_time &= query.cursor.is_some();
            return Ok(done);
        }
    }
}

/// One collection that a taxonomy is applied to.
struct Pass<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    work: &'a Apply,
    taxonomy: &'a Taxonomy,
    source: loupe_engine::stage::Searchable,
    style: HierarchicalEnrichmentStyle,
    /// Where the documents go.
    spec: CollectionSpec,
}

impl<'a> Pass<'a> {
    async fn new(
        app: &'a App,
        scope: &'a Scope<Write>,
        work: &'a Apply,
        taxonomy: &'a Taxonomy,
    ) -> Result<Self> {
        let namespace_id = &scope.namespace_id;
        let target = work
            .target_collection_id
            .as_ref()
            .unwrap_or(&work.collection_id);
        let named = [work.collection_id.clone(), target.clone()];
        let found = collections::resolve(app, namespace_id, &named).await?;
        Ok(Self {
            app,
            scope,
            work,
            taxonomy,
            source: collections::searchable(app, &found[0]),
            style: style_of(
                &found[0],
                &work.taxonomy_id,
                work.target_collection_id.as_deref(),
            ),
            spec: collections::spec(app, namespace_id, &found[1]),
        })
    }

    /// Refuses to go on with collections that can no longer be read or written to: their rows as they are now.
    async fn check(&self) -> Result<()> {
        let (db, namespace_id) = (self.app.db(), &self.scope.namespace_id);
        let source = COLLECTIONS.find(db, namespace_id, &self.work.collection_id);
        lifecycle::check_here(&source.await?.data.0)?;
        let target = COLLECTIONS.find(db, namespace_id, &self.spec.collection_id);
        lifecycle::check_active(&target.await?.data.0)
    }

    async fn page(&self, documents: Vec<Document>, done: &mut Applied) -> Result<()> {
        let (app, work) = (self.app, self.work);
        let todo: Vec<Document> = documents
            .into_iter()
            .filter(|one| !work.incremental || !is_done(one, self.taxonomy))
            .collect();
        if todo.is_empty() {
            return Ok(());
        }
        done.stats.batches += 1;
        let candidates: Vec<Candidate> = todo.iter().cloned().map(Candidate::from).collect();
        let searches: Vec<_> = candidates
            .iter()
            .map(|one| classify_timed(app, self.scope, self.taxonomy, one, Some(&self.source)))
            .collect();
        let at_once = usize::try_from(work.parallelism.clamp(1, AT_ONCE)).unwrap_or(1);
        let found: Vec<_> = futures::stream::iter(searches)
            .buffered(at_once)
            .collect()
            .await;
        let mut said = BTreeMap::new();
        for (document, (found, took_ms)) in todo.into_iter().zip(found) {
            done.stats.processed_docs += 1;
            match found {
                Ok(matches) if !matches.is_empty() => {
                    done.stats.enriched += 1;
                    said.insert(document.document_id, (matches, took_ms));
                }
                Ok(_) => {}
                Err(RunError::Invalid(reason) | RunError::Away(reason)) => {
                    done.stats.errors += 1;
                    done.first_error.get_or_insert(reason);
                }
                Err(error) => return Err(retrievers::run_error(error)),
            }
        }
        match &work.target_collection_id {
            None => self.replace(&said).await,
            Some(_) => self.copy(&said).await,
        }
    }

    /// Puts what nodes say of a document into it, as it is now.
    fn put(&self, document: &mut Document, said: &Said, at: &str) -> bool {
        let Some((matches, took_ms)) = said.get(&document.document_id) else {
            return false;
        };
        put(self.taxonomy, document, matches, self.style, (at, *took_ms));
        true
    }

    /// Writes into the documents themselves.
    async fn replace(&self, said: &Said) -> Result<()> {
        let ids: Vec<String> = said.keys().cloned().collect();
        let at = self.app.clock().now().to_rfc3339();
        let put = |document: &mut Document| self.put(document, said, &at);
        documents::rewrite(self.app, self.scope, &self.spec, &ids, &put)
            .await
            .map(drop)
    }

    /// Writes into copies of the documents, of those that are there still.
    async fn copy(&self, said: &Said) -> Result<()> {
        let (app, spec) = (self.app, &self.spec);
        let count = i64::try_from(said.len()).unwrap_or(i64::MAX);
        quota::check_documents(app, &self.scope.caller, count).await?;
        let ids: Vec<String> = said.keys().cloned().collect();
        let copies = ids.iter().map(|id| copy_id(spec, id, self.taxonomy));
        let copies: Vec<String> = copies.collect();
        // Read and copied in one turn: what was removed meanwhile leaves no copy.
        let turn = app.writers.turn(ids.iter().chain(&copies)).await;
        let source = &self.work.collection_id;
        documents::settle(app, &self.scope.namespace_id, source).await?;
        let reach = self.scope.reach(vec![source.clone()]);
        let found = app.store().get(&reach, &ids, WithVectors::Yes).await?;
        let at = app.clock().now().to_rfc3339();
        let copies = found.into_iter().filter_map(|mut document| {
            let is_said = self.put(&mut document, said, &at);
            is_said.then(|| copied(document, spec, self.taxonomy))
        });
        let copies = copies.collect();
        keep_in(app, &self.scope.caller.org_id, spec, copies, turn).await
    }
}

/// What nodes say of documents, and how long they took to say it, in milliseconds.
type Said = BTreeMap<String, (Vec<Match>, f64)>;

async fn tell(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    kind: &'static str,
    payload: Value,
) -> Result<()> {
    let (org_id, namespace_id) = (org_id.to_owned(), namespace_id.to_owned());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(
                async move { push_event(tx, &org_id, &namespace_id, kind, payload, now).await },
            )
        })
        .await
}

/// Stores copies of documents in the collections that they are for, and tells of it. Those that are not active, or gone by
/// now, get none, as batches pass them over.
///
/// # Errors
/// A store or the database does not answer.
pub async fn keep(
    app: &App,
    org_id: &str,
    copies: Vec<(CollectionSpec, Vec<Document>)>,
) -> Result<()> {
    for (spec, documents) in copies {
        let turn = app
            .writers
            .turn(documents.iter().map(|one| &one.document_id));
        let turn = turn.await;
        keep_in(app, org_id, &spec, documents, turn).await?;
    }
    Ok(())
}

/// As [`keep`], of one collection, in a turn that these documents are in.
async fn keep_in(
    app: &App,
    org_id: &str,
    spec: &CollectionSpec,
    documents: Vec<Document>,
    turn: documents::Turn,
) -> Result<()> {
    let active = lifecycle::still_active(app, &spec.namespace_id, &spec.collection_id);
    if documents.is_empty() || !active.await? {
        return Ok(());
    }
    let ids: Vec<String> = documents
        .iter()
        .map(|one| one.document_id.clone())
        .collect();
    let (store, written) = (app.clone(), spec.clone());
    app.to_its_end(async move {
        documents::settle(&store, &written.namespace_id, &written.collection_id).await?;
        store.store().upsert(&written, documents).await?;
        store.store().flush().await?;
        drop(turn);
        Ok(())
    })
    .await?;
    let payload = json!({
        "namespace_id": spec.namespace_id, "collection_id": spec.collection_id, "batch_id": null,
        "document_ids": ids, "count": ids.len(),
    });
    let kind = "collection.documents.written";
    tell(app, org_id, &spec.namespace_id, kind, payload).await
}

/// Tells people of a task that was given up.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let work = Apply::deserialize(&claim.work).map_err(ApiError::internal)?;
    let (of, reason) = (claim.clone(), reason.to_owned());
    let notice = Notice {
        kind: NotificationType::PipelineFailure,
        priority: NotificationPriority::High,
        title: "A taxonomy could not be applied".into(),
        content: format!(
            "Taxonomy {} was not applied to the whole of collection {}: {reason}. Apply it again when the cause is gone.",
            work.taxonomy_id, work.collection_id
        ),
        about: json!({
            "namespace_id": claim.namespace_id, "taxonomy_id": work.taxonomy_id,
            "collection_id": work.collection_id, "task_id": claim.task_id,
        }),
    };
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let (kind, more) = ("resource.execution_failed", json!({ "error": reason }));
                notifications::notify(tx, &of.org_id, notice, now).await?;
                executing::tell_end(tx, &of, kind, &work, more, now).await
            })
        })
        .await
}
