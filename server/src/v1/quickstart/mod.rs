//! The demo: from nothing to a page that answers, made of the same steps that any caller would take.

mod data;
mod plan;
mod routes;

use loupe_wire::{
    BatchModel, BucketResponse, CreateBatchRequest, SubmitBatchRequest, TaskStatusEnum, Value,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

pub use routes::router;

use super::{
    batches::{self, store::Asked},
    buckets::{self, BUCKETS},
    collections::{self, COLLECTIONS},
    namespaces::{self, NAMESPACES},
    objects, publishing,
    retrievers::{self, RETRIEVERS},
    tasks,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    list::Window,
};
use data::request;

/// The demo's namespace, by which it is known again, and the name in its page's address.
pub const NAME: &str = "demo";

/// Objects written in one transaction.
const AT_ONCE: usize = 50;

/// Two requests at once would make two of everything that is missing.
static TURN: Mutex<()> = Mutex::const_new(());

/// Where the demo is, and the task that fills it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuickstartDemoResponse {
    /// The task to follow: `GET /v1/tasks/{task_id}` tells its progress in `additional_data.progress`.
    pub task_id: String,
    pub namespace_id: String,
    pub bucket_id: String,
    pub collection_ids: Vec<String>,
    pub retriever_id: String,
    pub public_name: String,
    pub public_url: String,
}

/// The id of a resource that is there, or none.
fn known<T: serde::de::DeserializeOwned>(
    found: Result<crate::db::Record<T>>,
) -> Result<Option<String>> {
    match found {
        Ok(record) => Ok(Some(record.id)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes what is missing of the demo and answers where it is. Every step looks first, so that a demo that was
/// interrupted is completed by asking again.
///
/// # Errors
/// As the steps.
pub async fn demo(app: &App, caller: &Caller) -> Result<QuickstartDemoResponse> {
    let _turn = TURN.lock().await;
    let namespace_id = match known(NAMESPACES.find(app.db(), &caller.org_id, NAME).await)? {
        Some(id) => id,
        None => namespaces::create(app, caller, request(plan::namespace())?)
            .await?
            .namespace_id
            .unwrap_or_default(),
    };
    let scope = Scope::<Write>::internal(caller.clone(), namespace_id.clone());
    let bucket = bucket(app, &scope).await?;
    let bucket_id = bucket.bucket_id.clone().unwrap_or_default();
    fill(app, &scope, &bucket).await?;
    let texts = collection(app, &scope, plan::texts(&bucket_id)).await?;
    let pictures = collection(app, &scope, plan::pictures(&bucket_id)).await?;
    let retriever_id = retriever(app, &scope, plan::retriever(&texts)).await?;
    retriever(app, &scope, plan::picture_retriever(&pictures)).await?;
    let public_name = publish(app, &scope, &retriever_id).await?;
    let task_id = process(app, &scope, &bucket_id).await?;
    Ok(QuickstartDemoResponse {
        task_id,
        namespace_id,
        bucket_id,
        collection_ids: vec![texts, pictures],
        retriever_id,
        public_url: publishing::public_url(app, &public_name),
        public_name,
    })
}

/// The name that a plan gives its resource.
fn name<'a>(plan: &'a Value, member: &str) -> &'a str {
    plan.get(member).and_then(Value::as_str).unwrap_or_default()
}

async fn bucket(app: &App, scope: &Scope<Write>) -> Result<BucketResponse> {
    let plan = plan::bucket();
    let found = BUCKETS
        .find(app.db(), &scope.namespace_id, name(&plan, "bucket_name"))
        .await;
    match found {
        Ok(record) => Ok(record.data.0),
        Err(error) if error.is_not_found() => buckets::create(app, scope, request(plan)?).await,
        Err(error) => Err(error),
    }
}

/// Sends the objects that the bucket lacks; its unique key tells them apart.
async fn fill(app: &App, scope: &Scope<Write>, bucket: &BucketResponse) -> Result<()> {
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    let there = objects::store::count(app.db(), &scope.namespace_id, bucket_id).await?;
    if usize::try_from(there).unwrap_or(0) >= data::count()? {
        return Ok(());
    }
    let requests = tokio::task::spawn_blocking(data::objects)
        .await
        .map_err(ApiError::internal)??;
    let (policy, pace) = (objects::Policy::Insert, objects::Pace::of_request(app));
    for some in requests.chunks(AT_ONCE) {
        for made in objects::create_many(app, scope, bucket, some.to_vec(), policy, pace).await? {
            match made {
                Err(error) if !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

async fn collection(app: &App, scope: &Scope<Write>, plan: Value) -> Result<String> {
    let found = COLLECTIONS
        .find(
            app.db(),
            &scope.namespace_id,
            name(&plan, "collection_name"),
        )
        .await;
    match known(found)? {
        Some(id) => Ok(id),
        None => Ok(collections::create(app, scope, request(plan)?)
            .await?
            .collection_id
            .unwrap_or_default()),
    }
}

async fn retriever(app: &App, scope: &Scope<Write>, plan: Value) -> Result<String> {
    let found = RETRIEVERS
        .find(app.db(), &scope.namespace_id, name(&plan, "retriever_name"))
        .await;
    match known(found)? {
        Some(id) => Ok(id),
        None => Ok(retrievers::create(app, scope, request(plan)?)
            .await?
            .retriever_id
            .unwrap_or_default()),
    }
}

/// The page's name: that of the publication that is there, else `demo`, else one that nobody else has.
async fn publish(app: &App, scope: &Scope<Write>, retriever_id: &str) -> Result<String> {
    if let Some(published) = publishing::lookup(app, scope, retriever_id).await? {
        return Ok(published.public_name);
    }
    let public_name = if publishing::is_available(app, scope, retriever_id, NAME).await? {
        NAME.to_owned()
    } else {
        let unique = scope.namespace_id.trim_start_matches("ns_").to_lowercase();
        format!("{NAME}-{}", unique.chars().take(8).collect::<String>())
    };
    let request = request(plan::publication(&public_name))?;
    publishing::publish(app, scope, retriever_id, request).await?;
    Ok(public_name)
}

/// The task of the newest batch that did not fail; else a new batch of every object.
async fn process(app: &App, scope: &Scope<Write>, bucket_id: &str) -> Result<String> {
    let asked = Asked {
        org_id: scope.caller.org_id.clone(),
        namespace_id: scope.namespace_id.clone(),
        bucket_id: bucket_id.to_owned(),
        ..Default::default()
    };
    let mut newest = batches::store::list(app.db(), &asked, Window::first(1)).await?;
    match newest.pop().map(|(batch, _)| batch) {
        Some(BatchModel {
            status,
            task_id: Some(task_id),
            ..
        }) if is_good(status) => Ok(task_id),
        Some(BatchModel {
            batch_id: Some(batch_id),
            ..
        }) => submit(app, scope, bucket_id, &batch_id).await,
        _ => {
            let batch = CreateBatchRequest {
                batch_name: Some(NAME.to_owned()),
                ..Default::default()
            };
            let batch = batches::create(app, scope, bucket_id, batch).await?;
            submit(
                app,
                scope,
                bucket_id,
                batch.batch_id.as_deref().unwrap_or_default(),
            )
            .await
        }
    }
}

/// Under way or done.
fn is_good(status: TaskStatusEnum) -> bool {
    status == TaskStatusEnum::Completed
        || (status != TaskStatusEnum::Draft && !tasks::is_terminal(status))
}

async fn submit(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<String> {
    let request = SubmitBatchRequest::default();
    // Also one that somebody canceled.
    let again = batches::Again::Resubmitted;
    batches::submit(app, scope, bucket_id, batch_id, request, again)
        .await
        .map(|task| task.task_id)
}
