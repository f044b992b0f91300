//! Objects that are soft deleted: their record and their files stay, what was made of them goes, and batches pass them over
//! until they are taken back.

use std::collections::BTreeSet;

use loupe_wire::{
    AuditAction, BulkSoftDeleteRequest, BulkSoftDeleteResponse, NamespaceOperation, ObjectResponse,
    ResourceType, TaskStatusEnum, Value,
};
use serde_json::json;

use super::{bucket, payload, store};
use crate::{
    app::App,
    auth::{Caller, Delete, Scope},
    clock,
    db::Tx,
    error::{Result, Violation},
    v1::{
        audit::{self, Change},
        namespaces::push_event,
        removal::{self, Gone},
    },
};

/// Whether an object of this status is soft deleted.
pub const fn is_shelved(status: TaskStatusEnum) -> bool {
    use TaskStatusEnum::{Archived, Deactivated, Suspended};
    matches!(status, Archived | Deactivated | Suspended)
}

/// The status that a state gives; that of an object which is new to batches takes it back.
fn status(state: &str) -> Result<TaskStatusEnum> {
    match state {
        "disabled" => Ok(TaskStatusEnum::Deactivated),
        "suspended" => Ok(TaskStatusEnum::Suspended),
        "archived" => Ok(TaskStatusEnum::Archived),
        "active" => Ok(TaskStatusEnum::Draft),
        other => {
            let msg = "the states are disabled, suspended and archived, and active to take back";
            Err(Violation::body(&["lifecycle_state"], "enum", msg, other.into()).into())
        }
    }
}

/// Brings the objects into a state, in one transaction. Ids that the bucket does not have are passed over, as are objects
/// that are in the state already.
///
/// # Errors
/// 422 for an unknown state.
pub(super) async fn soft_delete(
    app: &App,
    scope: &Scope<Delete>,
    bucket_id: &str,
    request: BulkSoftDeleteRequest,
) -> Result<BulkSoftDeleteResponse> {
    let bucket = bucket(app, scope, bucket_id, NamespaceOperation::DeleteData).await?;
    let status = status(&request.lifecycle_state)?;
    let requested = i64::try_from(request.object_ids.len()).unwrap_or(i64::MAX);
    let shelf = Shelf {
        caller: scope.caller.clone(),
        namespace_id: scope.namespace_id.clone(),
        bucket_id: bucket.id.clone(),
        status,
        request,
    };
    let now = app.clock().micros();
    let (changed, collections) = app
        .db()
        .write(move |tx| Box::pin(async move { shelf.take(tx, now).await }))
        .await?;
    app.work.notify_one();
    Ok(BulkSoftDeleteResponse {
        soft_deleted: i64::try_from(changed).unwrap_or(i64::MAX),
        requested,
        collections: i64::try_from(collections).unwrap_or(i64::MAX),
    })
}

/// Objects named in a record of their deletion.
const NAMED: usize = 100;

/// What is done to which objects.
struct Shelf {
    caller: Caller,
    namespace_id: String,
    bucket_id: String,
    status: TaskStatusEnum,
    request: BulkSoftDeleteRequest,
}

impl Shelf {
    /// How many objects changed, and how many collections lose documents.
    async fn take(self, tx: &mut Tx, now: i64) -> Result<(usize, usize)> {
        let ids: BTreeSet<&String> = self.request.object_ids.iter().collect();
        let ids: Vec<String> = ids.into_iter().cloned().collect();
        let (namespace_id, bucket_id) = (&self.namespace_id, &self.bucket_id);
        // Held before they are read, in the order of their ids: what others change meanwhile is not written over.
        for id in &ids {
            store::hold(tx, namespace_id, id).await?;
        }
        let found = store::find_many(tx, namespace_id, bucket_id, &ids).await?;
        let changed = found.into_iter().filter(|one| self.changes(one));
        let changed: Vec<ObjectResponse> = changed.map(|one| self.state_of(one, now)).collect();
        let ids: Vec<String> = changed
            .iter()
            .filter_map(|one| one.object_id.clone())
            .collect();
        let mut collections = BTreeSet::new();
        if is_shelved(self.status) {
            collections = store::filled_from(tx, namespace_id, &ids).await?;
            let gone = Gone::documents(ids);
            removal::enqueue(tx, &self.caller.org_id, namespace_id, gone, now).await?;
        }
        for object in &changed {
            store::set_state(tx, namespace_id, object, now).await?;
            let told = self.told(object);
            let org_id = &self.caller.org_id;
            push_event(tx, org_id, namespace_id, "object.updated", told, now).await?;
        }
        self.record(tx, &changed, now).await?;
        Ok((changed.len(), collections.len()))
    }

    /// Tells the audit log, once for all of them.
    async fn record(&self, tx: &mut Tx, changed: &[ObjectResponse], now: i64) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let ids = changed.iter().filter_map(|one| one.object_id.as_deref());
        let named: Vec<&str> = ids.take(NAMED).collect();
        let change = Change {
            action: AuditAction::DocumentBulkSoftDeleted,
            resource: (ResourceType::Bucket, &self.bucket_id),
            changes: json!({
                "lifecycle_state": self.request.lifecycle_state, "reason": self.request.reason,
                "source": self.request.source, "object_ids": named, "count": changed.len(),
            }),
        };
        audit::record(tx, &self.caller, change, now).await
    }

    fn changes(&self, object: &ObjectResponse) -> bool {
        match is_shelved(self.status) {
            true => object.status != self.status,
            // What was never taken away is not taken back.
            false => is_shelved(object.status),
        }
    }

    fn state_of(&self, object: ObjectResponse, now: i64) -> ObjectResponse {
        let BulkSoftDeleteRequest {
            lifecycle_state,
            reason,
            source,
            ..
        } = &self.request;
        ObjectResponse {
            status: self.status,
            error: is_shelved(self.status)
                .then(|| format!("{lifecycle_state} by {source}: {reason}")),
            updated_at: Some(clock::time(now)),
            ..object
        }
    }

    fn told(&self, object: &ObjectResponse) -> Value {
        let mut told = payload(object);
        for (member, value) in [
            ("lifecycle_state", &self.request.lifecycle_state),
            ("reason", &self.request.reason),
            ("source", &self.request.source),
        ] {
            told[member] = json!(value);
        }
        told
    }
}

/// Removes what a batch has made, meanwhile, of objects that are gone or soft deleted.
///
/// # Errors
/// The database does not answer.
pub async fn withdraw(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    object_ids: Vec<String>,
    now: i64,
) -> Result<()> {
    let there: BTreeSet<String> = store::living(tx, namespace_id, &object_ids).await?;
    let gone: Vec<String> = object_ids
        .into_iter()
        .filter(|id| !there.contains(id))
        .collect();
    let gone = Gone::documents(gone);
    removal::enqueue(tx, org_id, namespace_id, gone, now).await
}
