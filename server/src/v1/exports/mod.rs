//! Exports: the documents of a collection as a file to download, or as several, written by a task in flat memory, and copied
//! into a storage of the organization's own where it says so.

mod columns;
mod delivering;
mod pages;
mod parquet;
mod routes;
mod rows;
mod running;
mod samples;
mod store;
mod tar;

use std::time::Duration;

use loupe_wire::{
    AuditAction, CollectionExportRequest, CollectionExportResponse, ExportFormat,
    NamespaceOperation, ResourceType, TaskResponse, TaskStatusEnum, TaskType, reading,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use routes::router;
pub use rows::csv;
pub use running::{give_up, run};
pub use store::sweep;

use super::{
    audit::{self, Change},
    collections::{COLLECTIONS, lifecycle},
    documents,
    tasks::{self, NewTask},
};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result, Violation},
    id,
    list::parse_filter,
};

/// The queue's word for an export.
pub const EXPORT: &str = "export_collection";

/// Seconds that files stay, and their addresses with them.
const KEPT_SECONDS: u64 = 86_400;

/// How long a request waits for its file before it answers with the task.
const WAITED: Duration = Duration::from_secs(20);

/// Fields that can be named.
const MAX_FIELDS: usize = 1_000;

/// What is exported: the work of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Work {
    export_id: String,
    collection_id: String,
    request: CollectionExportRequest,
    /// The end user whose documents are meant.
    principal: Option<String>,
    /// The scopes of documents that the key had; nothing where it covered the collection.
    #[serde(default)]
    only: Option<Vec<String>>,
}

/// The folder of an export's files. It lies with the files of the namespace, and goes with them.
fn folder(namespace_id: &str, export_id: &str) -> String {
    format!("{namespace_id}/exports/{export_id}")
}

/// What a request is answered with: the file, or the task that makes it still.
pub enum Exported {
    File(Box<CollectionExportResponse>),
    Task(Box<TaskResponse>),
}

fn check(request: &CollectionExportRequest) -> Result<()> {
    if request.include_media && request.format != ExportFormat::Webdataset {
        let msg = "a table holds no files: ask for the format webdataset";
        let fault = Violation::body(&["include_media"], "value_error", msg, true.into());
        return Err(fault.into());
    }
    let fields = request.select_fields.as_ref().map_or(0, Vec::len);
    if fields > MAX_FIELDS {
        let msg = format!("at most {MAX_FIELDS} fields can be named");
        return Err(Violation::body(&["select_fields"], "too_long", msg, fields.into()).into());
    }
    if let Some(filter) = &request.filters {
        parse_filter(&filter.0, "filters")?;
    }
    Ok(())
}

/// Leaves the task of an export and waits a while for its file.
///
/// # Errors
/// 404 for an unknown collection or connection, 422 for what is not written, what the task ended in.
pub async fn export(
    app: &App,
    scope: &Scope<Read>,
    collection: &str,
    mut request: CollectionExportRequest,
) -> Result<Exported> {
    let operation = NamespaceOperation::ReadData;
    // The signal of annotations is no collection that the task would find.
    let known = COLLECTIONS.known(app.db(), &scope.namespace_id, collection);
    let id = known.await?.id.clone();
    let (collection, sight) = documents::open(app, scope, &id, operation).await?;
    lifecycle::check_here(&collection)?;
    check(&request)?;
    if let Some(destination) = &mut request.destination {
        delivering::check(app, &scope.caller, destination).await?;
    }
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let work = Work {
        export_id: id::new("exp_"),
        collection_id: collection.id.clone(),
        principal: scope.caller.principal().map(ToOwned::to_owned),
        only: sight.patterns(&scope.caller),
        request,
    };
    let mut task = NewTask::work(
        &scope.caller.org_id,
        &scope.namespace_id,
        TaskType::ApiCollectionsExport,
        EXPORT,
        serde_json::to_value(&work).map_err(ApiError::internal)?,
    );
    task.inputs = vec![json!({ "collection_id": collection.id })];
    task.description = format!("Export of {}", collection.name);
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let caller = scope.caller.clone();
    let until = now + i64::try_from(KEPT_SECONDS).unwrap_or(i64::MAX) * 1_000_000;
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::insert(tx, &namespace_id, &work.export_id, until).await?;
                let change = Change {
                    action: AuditAction::CollectionAccessed,
                    resource: (ResourceType::Collection, &work.collection_id),
                    changes: json!({
                        "change": "collection_exported", "export_id": work.export_id, "format": work.request.format,
                        "delivered": work.request.destination.is_some(),
                    }),
                };
                audit::record(tx, &caller, change, now).await?;
                tasks::insert(tx, task, now).await
            })
        })
        .await?;
    app.work.notify_waiters();
    wait(app, scope, &task.task_id).await
}

async fn wait(app: &App, scope: &Scope<Read>, task_id: &str) -> Result<Exported> {
    let started = std::time::Instant::now();
    let mut pause = Duration::from_millis(10);
    loop {
        let task = tasks::get(app, &scope.caller, Some(&scope.namespace_id), task_id).await?;
        match task.status {
            TaskStatusEnum::Completed => {
                let made = task.outputs.unwrap_or_default().into_iter().next();
                let made = reading::from_value(&made.unwrap_or_default());
                return Ok(Exported::File(Box::new(made.map_err(ApiError::internal)?)));
            }
            status if tasks::is_terminal(status) => {
                let reason = task
                    .error
                    .unwrap_or_else(|| "the export was stopped".into());
                return Err(ApiError::processing("export_failed", reason));
            }
            _ if started.elapsed() > WAITED => return Ok(Exported::Task(Box::new(task))),
            _ => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}
