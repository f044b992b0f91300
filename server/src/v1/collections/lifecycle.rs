//! What a collection is for at the moment: filled and searched, searched alone, or put away. See docs/lifecycle.md.

use std::time::{Duration, Instant};

use loupe_wire::{
    AuditAction, CollectionResponse, LifecycleState, LifecycleStatusResponse, NamespaceOperation,
    ResourceType, TaskType, TransitionLifecycleRequest, reading,
};
use serde_json::json;

use super::{COLLECTIONS, archiving, find, store};
use crate::{
    app::App,
    auth::{Caller, Level, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    v1::{
        audit::{self, Change},
        batches,
        namespaces::push_event,
        tasks::{self, NewTask, name_of},
    },
};

/// How long a request waits for the end of a move.
const WAITED: Duration = Duration::from_secs(20);

/// The state of a collection. One that cannot be read is as at first.
pub fn state(collection: &CollectionResponse) -> LifecycleState {
    reading::from_value(&collection.lifecycle_state.clone().into()).unwrap_or_default()
}

/// Whether it is filled and written to.
pub fn is_active(collection: &CollectionResponse) -> bool {
    state(collection) == LifecycleState::Active
}

/// Whether its documents are, or are to be, in a file instead of the search engine.
pub fn is_away(collection: &CollectionResponse) -> bool {
    keeps_away(state(collection))
}

const fn keeps_away(state: LifecycleState) -> bool {
    matches!(state, LifecycleState::Archived | LifecycleState::Frozen)
}

fn refusal(collection: &CollectionResponse, code: &'static str, what: &str) -> ApiError {
    let (name, state) = (&collection.collection_name, &collection.lifecycle_state);
    let message = format!("the collection '{name}' is {state}: {what}");
    ApiError::conflict(code, message).with("lifecycle_state", state.as_str())
}

/// Refuses to read the documents of a collection that is put away.
///
/// # Errors
/// 409 if it is.
pub fn check_here(collection: &CollectionResponse) -> Result<()> {
    match is_away(collection) {
        true => Err(refusal(
            collection,
            "collection_archived",
            "its documents are in a file, make it active or cold first",
        )),
        false => Ok(()),
    }
}

/// Refuses to write documents into a collection that is not active.
///
/// # Errors
/// 409 if it is not.
pub fn check_active(collection: &CollectionResponse) -> Result<()> {
    match is_active(collection) {
        true => Ok(()),
        false => Err(refusal(
            collection,
            "collection_not_active",
            "make it active first",
        )),
    }
}

/// Refuses to read the documents of a collection that is put away, on the row as it is now: tasks ask before they read a
/// collection and after, for what was moved meanwhile was not read whole.
///
/// # Errors
/// 404; 409 if it is away.
pub async fn still_here(app: &App, namespace_id: &str, id: &str) -> Result<()> {
    let found = COLLECTIONS.find(app.db(), namespace_id, id).await?;
    check_here(&found)
}

/// Whether documents may be written into a collection, on the row as it is now.
///
/// # Errors
/// The database does not answer.
pub async fn still_active(app: &App, namespace_id: &str, id: &str) -> Result<bool> {
    match COLLECTIONS.find(app.db(), namespace_id, id).await {
        Ok(found) => Ok(is_active(&found)),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses to delete a collection that is frozen.
///
/// # Errors
/// 409 if it is.
pub fn check_deletable(collection: &CollectionResponse) -> Result<()> {
    match state(collection) {
        LifecycleState::Frozen => Err(refusal(
            collection,
            "collection_frozen",
            "bring it into another state before you delete it",
        )),
        _ => Ok(()),
    }
}

/// What searches leave out, said to whoever searches.
pub fn warnings<'c>(collections: impl Iterator<Item = &'c CollectionResponse>) -> Vec<String> {
    let away = collections.filter(|one| is_away(one));
    away.map(|one| {
        let (name, state) = (&one.collection_name, &one.lifecycle_state);
        format!("the collection '{name}' is {state} and was not searched")
    })
    .collect()
}

/// The state, where the documents are, and the move that is under way.
///
/// # Errors
/// 404; the store or the database does not answer.
pub(super) async fn show<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<LifecycleStatusResponse> {
    let collection = find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let id = collection.collection_id.clone().unwrap_or_default();
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let task_id = store::moving(app.db(), org_id, namespace_id, &id).await?;
    let reach = scope.reach(vec![id.clone()]);
    let here = app.store().count(&reach, None).await?;
    let state = state(&collection);
    let filed = collection.s3_vector_index.is_some();
    Ok(LifecycleStatusResponse {
        collection_id: id,
        lifecycle_state: state,
        vector_document_count: i64::try_from(here).ok(),
        s3_vector_count: collection.document_count.filter(|_| filed),
        s3_vector_index: collection.s3_vector_index,
        last_transitioned_at: collection.last_lifecycle_transition,
        warning: warning(state, task_id.is_some()).map(Into::into),
        task_id,
        namespace_storage_tier: None,
    })
}

fn warning(state: LifecycleState, moves: bool) -> Option<&'static str> {
    match (state, moves) {
        (LifecycleState::Active, _) => None,
        (LifecycleState::Cold, _) => Some("batches pass it over and nothing is written to it"),
        (_, true) => Some("its documents are being moved: they are neither searched nor read"),
        (_, false) => Some("its documents are neither searched nor read until they are back"),
    }
}

/// Brings the collection into a state. What moves documents is a task.
///
/// # Errors
/// 409 while documents are moved, or while batches fill what is to be put away.
pub(super) async fn transition(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: TransitionLifecycleRequest,
) -> Result<LifecycleStatusResponse> {
    let operation = NamespaceOperation::ModifyInfrastructure;
    let collection = find(app, scope, identifier, operation).await?;
    let turn = Turn {
        caller: scope.caller.clone(),
        namespace_id: scope.namespace_id.clone(),
        id: collection.collection_id.clone().unwrap_or_default(),
        to: request.lifecycle_state,
        now: app.clock().micros(),
    };
    let moves = app
        .db()
        .write(move |tx| Box::pin(async move { turn.take(tx).await }))
        .await?;
    app.work.notify_waiters();
    let mut told = show(app, scope, identifier).await?;
    if moves && !request.async_transition {
        let started = Instant::now();
        while told.task_id.is_some() && started.elapsed() < WAITED {
            tokio::time::sleep(Duration::from_millis(50)).await;
            told = show(app, scope, identifier).await?;
        }
    }
    Ok(told)
}

/// One change of state.
struct Turn {
    caller: Caller,
    namespace_id: String,
    id: String,
    to: LifecycleState,
    now: i64,
}

impl Turn {
    /// True when documents are to be moved. The row is held from here on: of two changes at once the second one sees the
    /// task of the first.
    async fn take(self, tx: &mut Tx) -> Result<bool> {
        let (org_id, namespace_id) = (&self.caller.org_id, &self.namespace_id);
        let found = COLLECTIONS.hold(tx, namespace_id, &self.id).await?;
        let mut collection = found.data.0;
        let from = state(&collection);
        if from == self.to {
            return Ok(false);
        }
        check_still(tx, org_id, namespace_id, &self.id).await?;
        let (puts_away, brings_back) = (
            keeps_away(self.to) && !keeps_away(from),
            !keeps_away(self.to) && keeps_away(from),
        );
        if puts_away && batches::store::fills(tx, namespace_id, &self.id).await? {
            let message = "batches that fill the collection wait or run: cancel them, or wait";
            return Err(ApiError::conflict("", message));
        }
        if puts_away || brings_back {
            self.check_idle(tx).await?;
            self.enqueue(tx, from, collection.s3_vector_index.as_deref())
                .await?;
        }
        // What is brought back stays out of reach until it is there.
        if !brings_back {
            collection.lifecycle_state = name_of(self.to);
            collection.last_lifecycle_transition = Some(clock::time(self.now));
            self.write(tx, from, &collection).await?;
        }
        Ok(puts_away || brings_back)
    }

    /// Refuses while tasks read the collection or write to it: copies, exports, snapshots, what taxonomies and clusters
    /// tell. They ask for its state before they begin, so none begins once it has changed.
    async fn check_idle(&self, tx: &mut Tx) -> Result<()> {
        let (org_id, namespace_id) = (&self.caller.org_id, &self.namespace_id);
        let Some(task_id) = store::busy(tx, org_id, namespace_id, &self.id).await? else {
            return Ok(());
        };
        let message = "tasks read the collection or write to it: wait for them, or cancel them";
        Err(ApiError::conflict("collection_busy", message).with("task_id", task_id))
    }

    async fn enqueue(&self, tx: &mut Tx, from: LifecycleState, file: Option<&str>) -> Result<()> {
        let work = json!({"collection_id": self.id, "from": from, "to": self.to, "file": file});
        let (org_id, namespace_id) = (&self.caller.org_id, &self.namespace_id);
        let task_type = TaskType::Materialize;
        let mut task = NewTask::work(org_id, namespace_id, task_type, archiving::MOVE, work);
        task.inputs = vec![self.id.clone().into()];
        task.description = format!("{} from {} to {}", self.id, name_of(from), name_of(self.to));
        tasks::insert(tx, task, self.now).await?;
        Ok(())
    }

    async fn write(
        &self,
        tx: &mut Tx,
        from: LifecycleState,
        collection: &CollectionResponse,
    ) -> Result<()> {
        let change = json!({"lifecycle_state": {"before": from, "after": self.to}});
        let change = Change {
            action: AuditAction::CollectionUpdated,
            resource: (ResourceType::Collection, &self.id),
            changes: change,
        };
        audit::record(tx, &self.caller, change, self.now).await?;
        write(
            tx,
            &self.caller.org_id,
            &self.namespace_id,
            collection,
            self.now,
        )
        .await
    }
}

/// Refuses while documents of a collection are moved. The caller holds its row.
pub(super) async fn check_still(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    id: &str,
) -> Result<()> {
    match store::moving_in(tx, org_id, namespace_id, id).await? {
        true => {
            let message = "documents of the collection are being moved: wait for the task";
            Err(ApiError::conflict("lifecycle_transition_running", message))
        }
        false => Ok(()),
    }
}

/// Writes a collection whose state changed, and tells of it.
pub(super) async fn write(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    collection: &CollectionResponse,
    now: i64,
) -> Result<()> {
    let id = collection.collection_id.as_deref().unwrap_or_default();
    let name = &collection.collection_name;
    COLLECTIONS
        .update(tx, namespace_id, id, name, now, collection)
        .await?;
    let told = json!({"collection_id": id, "lifecycle_state": collection.lifecycle_state});
    push_event(tx, org_id, namespace_id, "collection.updated", told, now).await
}
