//! Texts that documents hold, embedded again: of those that were changed since they were made, or came without vectors.

use std::collections::BTreeMap;

use loupe_engine::{
    embed::EmbedError,
    extract::{IndexInfo, Params, registry::Source},
    store::{CollectionSpec, Document, ListQuery, Reach, WithVectors},
};
use loupe_wire::{
    CollectionResponse, StoredTextReembedRequest, TaskType, TriggerCollectionResponse, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    journal::Entry,
    others,
    turns::Turn,
    writing::{self, Beside, CHANGED},
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result, Violation},
    jobs::{self, Claim},
    limits::quota,
    v1::{
        collections::{self, COLLECTIONS, lifecycle},
        events,
        tasks::{self, NewTask},
    },
};

/// The queue's word for it.
pub const REEMBED: &str = "reembed_texts";

/// The one output that is asked for by name: documents in which somebody speaks.
const SPOKEN: &str = "transcription_embedding";

/// Documents whose texts are embedded at once.
const PAGE: usize = 64;

/// How often documents are embedded that somebody changes all the while.
const TRIES: usize = 5;

#[derive(Debug, Serialize, Deserialize)]
struct Work {
    collection_id: String,
    /// The name of the index.
    index: String,
    /// Only documents with a transcription.
    spoken: bool,
    /// Only documents without a vector in the index.
    only_missing: bool,
    /// They are counted, and stay as they are.
    dry_run: bool,
    /// Every document where absent.
    document_ids: Option<Vec<String>>,
}

fn fault(member: &str, msg: impl Into<String>, input: Value) -> ApiError {
    Violation::body(&["reembed", member], "value_error", msg, input).into()
}

/// Queues the work of a request.
///
/// # Errors
/// The 422 list for outputs and indexes that the collection does not have, 409 for one that is not active, 403 where nothing may
/// be paid for.
pub async fn begin(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: StoredTextReembedRequest,
) -> Result<TriggerCollectionResponse> {
    lifecycle::check_active(collection)?;
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    quota::check_writing(app, org_id).await?;
    quota::check_spend(app, org_id).await?;
    let work = read(app, collection, request)?;
    let collection_id = work.collection_id.clone();
    let message = match work.dry_run {
        true => "nothing is embedded: the outputs of the task tell how many texts would be",
        false => "stored texts are embedded again: the outputs of the task tell how many",
    };
    let written = serde_json::to_value(&work).map_err(ApiError::internal)?;
    let kind = TaskType::ApiCollectionsReembed;
    let mut task = NewTask::work(org_id, namespace_id, kind, REEMBED, written);
    task.inputs = vec![collection_id.clone().into()];
    task.description = format!("Embed stored texts of {}", collection.collection_name);
    let now = app.clock().micros();
    let task = app
        .db()
        .write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }))
        .await?;
    app.work.notify_one();
    Ok(TriggerCollectionResponse {
        task_ids: vec![task.task_id.clone()],
        task_id: task.task_id,
        collection_id,
        total_tiers: 1,
        message: message.into(),
        ..Default::default()
    })
}

fn read(
    app: &App,
    collection: &CollectionResponse,
    request: StoredTextReembedRequest,
) -> Result<Work> {
    let outputs = request.outputs.unwrap_or_default();
    if let Some(other) = outputs.iter().find(|one| one.as_str() != SPOKEN) {
        let msg = format!("the one output is {SPOKEN}; without it every stored text is meant");
        return Err(fault("outputs", msg, other.clone().into()));
    }
    let index = index(app, collection, request.target_feature_uri.as_deref())?;
    Ok(Work {
        collection_id: collection.collection_id.clone().unwrap_or_default(),
        index: index.name,
        spoken: !outputs.is_empty(),
        only_missing: request.only_missing,
        dry_run: request.dry_run,
        document_ids: request.document_ids,
    })
}

/// The index that is asked for, by its address or its name, or the first one of stored texts.
fn index(app: &App, collection: &CollectionResponse, asked: Option<&str>) -> Result<IndexInfo> {
    let params = collections::params(app, collection);
    let params = params.filter(|params| !params.stored_texts().is_empty());
    let indexes = params.as_ref().map(Params::indexes).unwrap_or_default();
    let of_texts = || {
        indexes
            .iter()
            .filter(|index| index.source == Source::TextModel)
    };
    let is_it = |index: &&IndexInfo| {
        asked.is_none_or(|asked| index.feature_uri == asked || index.name == asked)
    };
    let found = of_texts().find(is_it).cloned();
    found.ok_or_else(|| {
        let there: Vec<&str> = of_texts().map(|index| index.feature_uri.as_str()).collect();
        let msg = match there.is_empty() {
            true => {
                "documents of this collection hold no texts that they are embedded by".to_owned()
            }
            false => {
                let there = there.join(", ");
                format!("the collection has no such index of texts; it has: {there}")
            }
        };
        fault("target_feature_uri", msg, json!(asked))
    })
}

/// Runs the task; safe to repeat.
///
/// # Errors
/// The collection is gone or not active, the model or a store does not answer.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    let namespace_id = claim.namespace_id.clone().unwrap_or_default();
    let scope: Scope<Write> = Scope::internal(Caller::system(&claim.org_id), namespace_id);
    let pass = Pass::new(app, claim, &scope, &work).await?;
    let mut done = Done::default();
    match &work.document_ids {
        Some(ids) => {
            for some in ids.chunks(PAGE) {
                pass.some(some, &mut done).await?;
            }
        }
        None => pass.all(&mut done).await?,
    }
    let told = json!({
        "documents": done.documents, "embedded": done.embedded, "dry_run": work.dry_run,
        "feature_uri": pass.index.feature_uri,
    });
    tasks::succeed(app, claim, vec![told]).await
}

/// What came of it.
#[derive(Default)]
struct Done {
    /// Documents whose texts were meant.
    documents: usize,
    /// Those that have new vectors.
    embedded: usize,
}

struct Pass<'a> {
    app: &'a App,
    claim: &'a Claim,
    scope: &'a Scope<Write>,
    work: &'a Work,
    params: Params,
    index: IndexInfo,
    spec: CollectionSpec,
    reach: Reach,
}

impl<'a> Pass<'a> {
    async fn new(
        app: &'a App,
        claim: &'a Claim,
        scope: &'a Scope<Write>,
        work: &'a Work,
    ) -> Result<Self> {
        let namespace_id = &scope.namespace_id;
        let found = COLLECTIONS.find(app.db(), namespace_id, &work.collection_id);
        let collection = found.await?.data.0;
        let params = collections::params(app, &collection);
        let index = params.as_ref().and_then(|params| {
            let mut indexes = params.indexes().iter();
            indexes.find(|index| index.name == work.index).cloned()
        });
        let (Some(params), Some(index)) = (params, index) else {
            let message = "the model of the collection's texts is not here any more";
            return Err(ApiError::bad_request("", message));
        };
        Ok(Self {
            spec: collections::spec(app, namespace_id, &collection),
            reach: scope.reach(vec![work.collection_id.clone()]),
            app,
            claim,
            scope,
            work,
            params,
            index,
        })
    }

    async fn all(&self, done: &mut Done) -> Result<()> {
        let mut query = ListQuery {
            limit: PAGE,
            ..Default::default()
        };
        loop {
            let page = self.app.store().list(&self.reach, query.clone()).await?;
            let ids = page.documents.into_iter().map(|one| one.document_id);
            self.some(&ids.collect::<Vec<_>>(), done).await?;
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn some(&self, ids: &[String], done: &mut Done) -> Result<()> {
        let todo = self.texts(ids).await?;
        done.documents += todo.len();
        if !self.work.dry_run {
            done.embedded += self.renew(todo).await?;
        }
        let told = json!({ "documents": done.documents, "embedded": done.embedded });
        tasks::note(self.app, self.claim, "progress", told).await
    }

    /// Documents as they are now.
    async fn read(&self, ids: &[String]) -> Result<Vec<Document>> {
        others::current(self.app, &self.reach, ids, WithVectors::Yes).await
    }

    /// Those of these documents that are to be embedded, with their texts.
    async fn texts(&self, ids: &[String]) -> Result<Vec<(String, String)>> {
        let found = self.read(ids).await?;
        let texts = found
            .iter()
            .filter_map(|one| Some((one.document_id.clone(), self.text(one)?)));
        Ok(texts.collect())
    }

    /// Embeds texts; those of documents that are changed meanwhile again, as they are then. Answers how many documents have new
    /// vectors.
    async fn renew(&self, mut todo: Vec<(String, String)>) -> Result<usize> {
        let mut embedded = 0;
        for _ in 0..TRIES {
            if todo.is_empty() {
                break;
            }
            let texts = todo.iter().map(|(_, text)| text.clone()).collect();
            let vectors = self.embed(texts).await?;
            let (written, changed) = self.write(todo, vectors).await?;
            embedded += written;
            todo = match changed.is_empty() {
                true => Vec::new(),
                false => self.texts(&changed).await?,
            };
        }
        Ok(embedded)
    }

    /// The text of a document that is to be embedded.
    fn text(&self, document: &Document) -> Option<String> {
        let said = document.payload.get("transcription");
        let is_spoken = said
            .and_then(Value::as_str)
            .is_some_and(|said| !said.trim().is_empty());
        let is_there = document.vectors.contains_key(&self.index.name);
        if (self.work.only_missing && is_there) || (self.work.spoken && !is_spoken) {
            return None;
        }
        self.params.stored_text(&document.payload)
    }

    /// One vector a text; none for one that the model does not take.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Option<Vec<f32>>>> {
        match self.vectors(texts.clone()).await {
            Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
            // One of them is too long, say: that costs it alone.
            Err(error) if error.is_callers() => {
                let mut vectors = Vec::with_capacity(texts.len());
                for text in texts {
                    vectors.push(match self.vectors(vec![text]).await {
                        Ok(mut one) => one.pop(),
                        Err(error) if error.is_callers() => None,
                        Err(error) => return Err(error),
                    });
                }
                Ok(vectors)
            }
            Err(error) => Err(error),
        }
    }

    async fn vectors(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>> {
        let encoder = self.app.encoders().text(&self.index.output).await?;
        let count = texts.len();
        let vectors = encoder.embed(texts).await.map_err(|error| match error {
            EmbedError::Failed(message) => ApiError::model_unavailable("", message).retry_after(2),
            error => error.into(),
        })?;
        let fits = |vector: &Vec<f32>| {
            vector.len() == self.index.dims && vector.iter().all(|number| number.is_finite())
        };
        match vectors.len() == count && vectors.iter().all(fits) {
            true => Ok(vectors),
            false => {
                let output = &self.index.output;
                let message = format!("{output} gave other vectors than its index takes");
                Err(ApiError::model_unavailable("", message))
            }
        }
    }

    /// Gives documents their vectors, unless they say something else by now; answers how many, and which were changed meanwhile.
    async fn write(
        &self,
        todo: Vec<(String, String)>,
        vectors: Vec<Option<Vec<f32>>>,
    ) -> Result<(usize, Vec<String>)> {
        let app = self.app;
        let made = todo.into_iter().zip(vectors);
        let mut made: BTreeMap<String, (String, Vec<f32>)> = made
            .filter_map(|((id, text), vector)| Some((id, (text, vector?))))
            .collect();
        let ids: Vec<String> = made.keys().cloned().collect();
        // Embedding takes its time: what callers wrote meanwhile must not be written over.
        let turn = app.writers.turn(&ids).await;
        let since = events::newest(app.db(), &self.scope.caller.org_id).await?;
        let mut documents = self.read(&ids).await?;
        let mut changed = Vec::new();
        documents.retain_mut(|one| match made.remove(&one.document_id) {
            Some((text, vector))
                if self.params.stored_text(&one.payload).as_ref() == Some(&text) =>
            {
                one.vectors.insert(self.index.name.clone(), vector);
                true
            }
            _ => {
                changed.push(one.document_id.clone());
                false
            }
        });
        if documents.is_empty() {
            return Ok((0, changed));
        }
        if !jobs::is_held(app.db(), self.claim).await? {
            return Err(ApiError::conflict("", "the lease of this task was lost"));
        }
        let written = self.keep(documents, (since, turn), &mut changed).await?;
        Ok((written, changed))
    }

    /// Writes documents as they were read after an event, and notes those that are not so any more; answers how many were written.
    async fn keep(
        &self,
        documents: Vec<Document>,
        (since, turn): (i64, Turn),
        changed: &mut Vec<String>,
    ) -> Result<usize> {
        let ids: Vec<String> = documents
            .iter()
            .map(|one| one.document_id.clone())
            .collect();
        let kind = match ids.len() {
            1 => "document.updated",
            _ => "documents.updated.batch",
        };
        let entry = Entry::Upsert {
            collection: self.spec.clone(),
            documents,
        };
        let told = [(kind, ids.as_slice())];
        let beside = Beside {
            since: Some(since),
            turn: Some(turn),
            ..Beside::default()
        };
        match writing::write_with(self.app, self.scope, entry, &told, beside).await {
            Ok(behind) => {
                let written = ids.len() - behind.len();
                changed.extend(behind);
                Ok(written)
            }
            Err(error) if error.has_code(CHANGED) => {
                changed.extend(ids);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}
