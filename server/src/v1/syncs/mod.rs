//! Syncs: buckets that follow a folder of a storage. Every look compares the storage's list with what is known of it.

mod ending;
mod files;
mod making;
mod memory;
mod routes;
mod running;
mod store;

use loupe_wire::{
    IngestFilter, ListSyncConfigurationsRequest, ListSyncJobsRequest, NamespaceOperation, Object,
    ReconcileSettings, ResourceType, SyncConfigurationModel, SyncCreateRequest, SyncJobModel,
    SyncJobTrigger, SyncUpdateRequest, TaskResponse, TaskStatusEnum, Value,
};

pub use ending::give_up;
pub use files::{sync_of, unmark};
pub use routes::router;
pub use running::{LOOK, run, sweep, tick};
pub use store::forget_borrowed;

use serde_json::json;

use self::{files::Rules, store::Place};
use super::{
    audit::{self, PartOf},
    buckets, collections, connections, objects,
    tasks::name_of,
};
use crate::{
    app::App,
    auth::{Caller, Delete, Level, Read, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id as ids,
    list::{ListParams, Page},
};

/// Syncs of one namespace.
const MOST: i64 = 100;

/// Syncs that are named where a connection is held.
const NAMED: usize = 20;

/// Files of one look, where nobody says how many.
const FILES: i64 = 100_000;

fn not_yet(member: &str, msg: &str) -> ApiError {
    Violation::body(&[member], "not_enabled", msg, Value::Null).into()
}

/// Refuses filters that syncs do not have.
fn check_filters(of_provider: Option<&Object>) -> Result<()> {
    if of_provider.is_some_and(|filters| !filters.is_empty()) {
        return Err(not_yet(
            "provider_filters",
            "this storage has no filters of its own: use file_filters",
        ));
    }
    Ok(())
}

/// What changed is extracted anew, all of it.
fn reextracts(reconcile: Option<&ReconcileSettings>) -> Result<()> {
    let Some(sent) = reconcile else { return Ok(()) };
    let refused = |member: &str, msg: &str, input: Value| {
        let path = ["reconcile", member];
        Err(Violation::body(&path, "not_enabled", msg, input).into())
    };
    if !sent.re_extract_on_update {
        let msg = "a file that changed is processed as what it is now: on_update: false leaves its object as it was";
        return refused("re_extract_on_update", msg, false.into());
    }
    if !sent.re_extract_fields.is_empty() {
        let msg = "a file that changed is processed whole: no fields are left as they were";
        let sent = sent.re_extract_fields.clone();
        return refused("re_extract_fields", msg, sent.into());
    }
    Ok(())
}

/// Where a sync is, if the caller's scopes cover its bucket.
async fn place<L: Level>(
    app: &App,
    scope: &Scope<L>,
    bucket: &str,
    sync_id: &str,
    operation: NamespaceOperation,
) -> Result<Place> {
    let bucket = objects::bucket(app, scope, bucket, operation).await?;
    Ok(Place {
        namespace_id: scope.namespace_id.clone(),
        bucket_id: bucket.id.clone(),
        sync_id: sync_id.to_owned(),
    })
}

/// Whether the caller may have done what looks do: files become objects, and these are processed unless the sync leaves that
/// to others.
fn allow(caller: &Caller, model: &SyncConfigurationModel) -> Result<()> {
    if model.skip_batch_submission {
        return Ok(());
    }
    let operation = NamespaceOperation::ExecuteJob;
    caller.allow(ResourceType::Bucket, &model.bucket_id, operation)
}

/// Makes a sync and looks for the first time.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    request: SyncCreateRequest,
) -> Result<SyncConfigurationModel> {
    let bucket = objects::bucket(app, scope, bucket, NamespaceOperation::WriteData).await?;
    check_filters(request.provider_filters.as_ref())?;
    reextracts(request.reconcile.as_ref())?;
    // Whether it may be read is known before anything is kept.
    let named = Some(request.connection_id.as_str());
    let (connection_id, _) = connections::for_s3(app, &scope.caller, named).await?;
    let ingest_filter = buckets::check_filter(app, scope, request.ingest_filter).await?;
    let mut filters = files::filters(request.file_filters)?;
    if let Some(from) = request.sync_from {
        // Both hold: the later of the two is what counts.
        let after = &mut filters.get_or_insert_default().modified_after;
        *after = (*after).max(Some(from));
    }
    let now = app.clock().micros();
    let mut model = SyncConfigurationModel {
        sync_config_id: Some(ids::new("sync_")),
        bucket_id: bucket.id.clone(),
        connection_id,
        internal_id: scope.caller.org_id.clone(),
        namespace_id: scope.namespace_id.clone(),
        source_path: request.source_path.unwrap_or_default(),
        source_type: Some("s3".into()),
        file_filters: filters,
        schema_mapping: request.schema_mapping,
        sync_mode: request.sync_mode,
        polling_interval_seconds: request.polling_interval_seconds,
        batch_size: request.batch_size,
        skip_duplicates: request.skip_duplicates,
        skip_batch_submission: request.skip_batch_submission,
        batch_collection_ids: collection_ids(app, scope, &request.batch_collection_ids).await?,
        ingest_filter,
        reconcile: request.reconcile,
        description: request.description,
        metadata: request.metadata,
        max_objects_per_run: request.max_objects_per_run.unwrap_or(FILES),
        sync_concurrency: request.sync_concurrency,
        created_by_user_id: scope.caller.key.user_id.clone(),
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    allow(&scope.caller, &model)?;
    Rules::read(&model)?;
    ending::plan(&mut model, now, 0);
    let place = Place::of(&model);
    insert(app, &scope.caller, model, now).await?;
    store::find(app.db(), &place).await
}

/// Refuses while syncs look through the connection, those that rest too: they could not be resumed.
///
/// # Errors
/// 409 that names them.
pub async fn check_unused(tx: &mut Tx, org_id: &str, connection_id: &str) -> Result<()> {
    let syncs = store::through(tx, org_id, connection_id).await?;
    if syncs.is_empty() {
        return Ok(());
    }
    let named = syncs.iter().take(NAMED);
    let ids: Vec<&str> = named.clone().map(store::id).collect();
    let message = format!(
        "syncs look into a storage through this connection: {}; delete them first",
        ids.join(", ")
    );
    let places: Vec<Value> = named
        .map(|one| {
            json!({
                "sync_config_id": one.sync_config_id, "bucket_id": one.bucket_id,
                "namespace_id": one.namespace_id,
            })
        })
        .collect();
    Err(ApiError::conflict("connection_in_use", message).with("syncs", places))
}

/// Writes a new sync and begins its first look.
async fn insert(app: &App, caller: &Caller, model: SyncConfigurationModel, now: i64) -> Result<()> {
    let caller = caller.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // So that nobody deletes it meanwhile.
                let (org_id, connection_id) = (&caller.org_id, &model.connection_id);
                connections::CONNECTIONS
                    .hold(tx, org_id, connection_id)
                    .await?;
                if store::count_in(tx, &model.namespace_id).await? >= MOST {
                    let message = format!("a namespace has at most {MOST} syncs");
                    return Err(ApiError::conflict("", message).with("limit", MOST));
                }
                store::insert(tx, &model, now).await?;
                record(tx, &caller, &Place::of(&model), "sync_created", now).await?;
                let trigger = SyncJobTrigger::Scheduled;
                running::begin(tx, &Place::of(&model), trigger, false, now).await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}

/// Tells the audit log what somebody did to a sync.
async fn record(tx: &mut Tx, caller: &Caller, place: &Place, change: &str, now: i64) -> Result<()> {
    let changes = json!({"change": change, "sync_config_id": place.sync_id});
    audit::record_part(tx, caller, PartOf::Bucket(&place.bucket_id), changes, now).await
}

async fn collection_ids(
    app: &App,
    scope: &Scope<Write>,
    identifiers: &[String],
) -> Result<Vec<String>> {
    let found = collections::resolve(app, &scope.namespace_id, identifiers).await?;
    Ok(found.iter().map(|one| one.id.clone()).collect())
}

pub async fn get(
    app: &App,
    scope: &Scope<Read>,
    bucket: &str,
    sync_id: &str,
) -> Result<SyncConfigurationModel> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::ReadData).await?;
    store::find(app.db(), &place).await
}

/// The bucket's syncs that match, newest first.
pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    bucket: &str,
    params: &ListParams,
    request: &ListSyncConfigurationsRequest,
) -> Result<Page<SyncConfigurationModel>> {
    let bucket = objects::bucket(app, scope, bucket, NamespaceOperation::ReadData).await?;
    let mut all = store::list(app.db(), &scope.namespace_id, &bucket.id).await?;
    all.retain(|one| {
        let connection = request.connection_id.as_ref();
        connection.is_none_or(|id| *id == one.connection_id)
            && request.status.is_none_or(|status| status == one.status)
            && request
                .is_active
                .is_none_or(|active| active == one.is_active)
    });
    Page::from_all(all, params)
}

/// Changes a sync from its next look on.
pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    sync_id: &str,
    mut request: SyncUpdateRequest,
) -> Result<SyncConfigurationModel> {
    check_filters(request.provider_filters.as_ref())?;
    if request.status.is_some() {
        return Err(not_yet(
            "status",
            "a sync's status comes of its looks: pause, resume or set is_active",
        ));
    }
    reextracts(request.reconcile.as_ref())?;
    let filter = buckets::change_filter(app, scope, request.ingest_filter.take()).await?;
    let collections = collection_ids(app, scope, &request.batch_collection_ids).await?;
    let caller = scope.caller.clone();
    let of = (bucket, sync_id, "sync_updated");
    change(app, scope, of, move |model, now| {
        let planned = (model.is_active, model.polling_interval_seconds);
        model.description = request.description.or(model.description.take());
        model.metadata = request.metadata.or(model.metadata.take());
        model.is_active = request.is_active.unwrap_or(model.is_active);
        model.polling_interval_seconds = request
            .polling_interval_seconds
            .unwrap_or(model.polling_interval_seconds);
        model.batch_size = request.batch_size.unwrap_or(model.batch_size);
        model.schema_mapping = request.schema_mapping.or(model.schema_mapping.take());
        model.skip_batch_submission = request
            .skip_batch_submission
            .unwrap_or(model.skip_batch_submission);
        if let Some(filter) = filter {
            model.ingest_filter = filter;
        }
        if !collections.is_empty() {
            model.batch_collection_ids = collections;
        }
        model.max_objects_per_run = request
            .max_objects_per_run
            .unwrap_or(model.max_objects_per_run);
        model.sync_concurrency = request.sync_concurrency.or(model.sync_concurrency);
        model.reconcile = request.reconcile.or(model.reconcile.take());
        allow(&caller, model)?;
        Rules::read(model)?;
        // A look that is under way plans the next one itself.
        if !model.locked && planned != (model.is_active, model.polling_interval_seconds) {
            let rest = model.polling_interval_seconds;
            ending::plan(model, now, if planned.0 { rest } else { 0 });
        }
        Ok(())
    })
    .await
}

async fn change(
    app: &App,
    scope: &Scope<Write>,
    (bucket, sync_id, told): (&str, &str, &'static str),
    edit: impl FnOnce(&mut SyncConfigurationModel, i64) -> Result<()> + Send + 'static,
) -> Result<SyncConfigurationModel> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::WriteData).await?;
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    let model = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut model = store::hold(tx, &place).await?;
                edit(&mut model, now)?;
                model.updated_at = Some(clock::time(now));
                store::update(tx, &model, now).await?;
                record(tx, &caller, &place, told, now).await?;
                Ok(model)
            })
        })
        .await?;
    app.work.notify_one();
    Ok(model)
}

/// Looks no more until it is resumed; a look that is under way ends where it is.
pub async fn pause(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    sync_id: &str,
) -> Result<SyncConfigurationModel> {
    let by = scope.caller.key.user_id.clone();
    let of = (bucket, sync_id, "sync_paused");
    change(app, scope, of, |model, now| {
        model.paused = true;
        model.paused_at = Some(clock::time(now));
        model.paused_by_user_id = Some(by);
        ending::plan(model, now, 0);
        Ok(())
    })
    .await
}

/// Looks again, at once.
pub async fn resume(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    sync_id: &str,
) -> Result<SyncConfigurationModel> {
    let caller = scope.caller.clone();
    let of = (bucket, sync_id, "sync_resumed");
    change(app, scope, of, move |model, now| {
        allow(&caller, model)?;
        model.paused = false;
        (model.paused_at, model.paused_by_user_id) = (None, None);
        model.pause_reason = None;
        model.consecutive_failures = 0;
        model.status = TaskStatusEnum::Pending;
        if !model.locked {
            ending::plan(model, now, 0);
        }
        Ok(())
    })
    .await
}

/// Looks now, whatever the plan says. `full` reads files again that did not change.
pub async fn trigger(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    sync_id: &str,
    full: bool,
) -> Result<TaskResponse> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::WriteData).await?;
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                allow(&caller, &store::hold(tx, &place).await?)?;
                record(tx, &caller, &place, "sync_triggered", now).await?;
                let begun = running::begin(tx, &place, SyncJobTrigger::Manual, full, now).await?;
                let message = "a look into this storage is under way already";
                begun.ok_or_else(|| ApiError::conflict("sync_running", message))
            })
        })
        .await?;
    app.work.notify_one();
    Ok(task)
}

/// Removes a sync. What it made stays.
pub async fn delete(app: &App, scope: &Scope<Delete>, bucket: &str, sync_id: &str) -> Result<()> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::DeleteData).await?;
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::delete(tx, &place).await?;
                record(tx, &caller, &place, "sync_deleted", now).await
            })
        })
        .await
}

/// The filter of what a sync brings to a bucket; none where it has none of its own, or is gone.
///
/// # Errors
/// The database does not answer.
pub async fn filter_of(
    app: &App,
    (namespace_id, bucket_id): (&str, &str),
    sync_id: &str,
) -> Result<Option<IngestFilter>> {
    let place = Place {
        namespace_id: namespace_id.to_owned(),
        bucket_id: bucket_id.to_owned(),
        sync_id: sync_id.to_owned(),
    };
    match store::find(app.db(), &place).await {
        Ok(model) => Ok(model.ingest_filter),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks of a sync, newest first.
pub async fn jobs(
    app: &App,
    scope: &Scope<Read>,
    bucket: &str,
    sync_id: &str,
    params: &ListParams,
    request: &ListSyncJobsRequest,
) -> Result<Page<SyncJobModel>> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::ReadData).await?;
    store::find(app.db(), &place).await?;
    let status = request.status.map(name_of).unwrap_or_default();
    let rows = store::jobs(app.db(), &place, &status, params.window()).await?;
    let total = match params.include_total {
        true => Some(store::count_jobs(app.db(), &place, &status).await?),
        false => None,
    };
    Ok(Page::from_window(rows, params, total))
}

pub async fn job(
    app: &App,
    scope: &Scope<Read>,
    bucket: &str,
    sync_id: &str,
    job_id: &str,
) -> Result<SyncJobModel> {
    let place = place(app, scope, bucket, sync_id, NamespaceOperation::ReadData).await?;
    store::find(app.db(), &place).await?;
    store::find_job(app.db(), &place, job_id).await
}
