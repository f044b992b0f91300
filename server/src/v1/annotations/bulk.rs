//! Many annotations in one request: each is done or refused for itself, in the order create, update, delete.

use loupe_wire::{
    BulkAnnotationResult, BulkAnnotationUpdate, BulkAnnotationsRequest, BulkAnnotationsResponse,
    CreateAnnotationRequest, NamespaceOperation, PatchAnnotationRequest, Permission,
};

use super::{
    ANY, Edit, allow, homes, new,
    signal::{self, Changed},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    db::{Tx, check_kept},
    error::{ApiError, Result},
};

const CREATE: &str = "create";
const UPDATE: &str = "update";
const DELETE: &str = "delete";

/// Deletions need a key that may delete.
pub async fn run(
    app: &App,
    scope: &Scope<Write>,
    request: BulkAnnotationsRequest,
) -> Result<BulkAnnotationsResponse> {
    let deleted = request.delete.unwrap_or_default();
    if !deleted.is_empty() && !scope.caller.has(Permission::Delete) {
        let message = "this key may not delete: leave `delete` out, or use a key that may";
        return Err(ApiError::forbidden("permission_denied", message));
    }
    let created = create(app, scope, request.create.unwrap_or_default()).await?;
    let changed = changes(scope, request.update.unwrap_or_default());
    let deleted = deletions(scope, deleted);
    let edit = Edit::new(app, &scope.caller);
    let namespace_id = scope.namespace_id.clone();
    let (results, now) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut now = Changed::default();
                let mut results = Vec::new();
                for one in created {
                    results.push(insert(tx, &edit, one, &mut now).await?);
                }
                for (id, request) in changed {
                    results.push(update(tx, &edit, &namespace_id, (id, request), &mut now).await?);
                }
                for (id, allowed) in deleted {
                    results.push(remove(tx, &edit, &namespace_id, (id, allowed), &mut now).await?);
                }
                Ok((results, now))
            })
        })
        .await?;
    signal::mirror(app, &scope.namespace_id, now).await;
    Ok(answer(results))
}

type New = std::result::Result<loupe_wire::AnnotationResponse, ApiError>;

async fn create(
    app: &App,
    scope: &Scope<Write>,
    requests: Vec<loupe_wire::BulkAnnotationCreate>,
) -> Result<Vec<New>> {
    let wanted = |one: &loupe_wire::BulkAnnotationCreate| {
        (one.collection_id.clone(), one.document_id.clone())
    };
    if !requests.is_empty() {
        allow(&scope.caller, ANY, NamespaceOperation::WriteData)?;
    }
    let homes = homes(app, scope, requests.iter().map(wanted).collect()).await?;
    let made = requests.into_iter().map(|one| {
        check_kept(&one)?;
        let Some(collection) = homes.get(&wanted(&one)).cloned() else {
            return Err(ApiError::not_found("document", &one.document_id));
        };
        let request = CreateAnnotationRequest {
            document_id: one.document_id,
            collection_id: one.collection_id,
            label: one.label,
            confidence: one.confidence,
            reasoning: one.reasoning,
            payload: Some(one.payload),
            metadata: None,
            retriever_id: one.retriever_id,
            execution_id: one.execution_id,
            stage_name: one.stage_name,
        };
        Ok(new(app, scope, request, collection))
    });
    Ok(made.collect())
}

type Change = (
    String,
    std::result::Result<PatchAnnotationRequest, ApiError>,
);

fn changes(scope: &Scope<Write>, requests: Vec<BulkAnnotationUpdate>) -> Vec<Change> {
    let change = |one: BulkAnnotationUpdate| {
        // What the database refuses, it refuses all that is written with it for.
        let allowed = check_kept(&one).and_then(|()| {
            let operation = NamespaceOperation::WriteData;
            allow(&scope.caller, &one.annotation_id, operation)
        });
        let request = PatchAnnotationRequest {
            label: one.label,
            confidence: one.confidence,
            reasoning: one.reasoning,
            payload: one.payload,
            metadata: None,
        };
        (one.annotation_id, allowed.map(|()| request))
    };
    requests.into_iter().map(change).collect()
}

fn deletions(scope: &Scope<Write>, ids: Vec<String>) -> Vec<(String, Result<()>)> {
    let deletion = |id: String| {
        let allowed = check_kept(&id)
            .and_then(|()| allow(&scope.caller, &id, NamespaceOperation::DeleteData));
        (id, allowed)
    };
    ids.into_iter().map(deletion).collect()
}

async fn insert(
    tx: &mut Tx,
    edit: &Edit,
    one: New,
    now: &mut Changed,
) -> Result<BulkAnnotationResult> {
    let annotation = match one {
        Ok(annotation) => annotation,
        Err(error) => return refused(CREATE, None, error),
    };
    edit.insert(tx, &annotation).await?;
    now.current(&annotation);
    Ok(done(CREATE, annotation.annotation_id))
}

async fn update(
    tx: &mut Tx,
    edit: &Edit,
    namespace_id: &str,
    (id, request): Change,
    now: &mut Changed,
) -> Result<BulkAnnotationResult> {
    let outcome = match request {
        Ok(request) => edit.apply(tx, namespace_id, &id, request).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(annotation) => {
            now.current(&annotation);
            Ok(done(UPDATE, Some(id)))
        }
        Err(error) => refused(UPDATE, Some(id), error),
    }
}

async fn remove(
    tx: &mut Tx,
    edit: &Edit,
    namespace_id: &str,
    (id, allowed): (String, Result<()>),
    now: &mut Changed,
) -> Result<BulkAnnotationResult> {
    let outcome = match allowed {
        Ok(()) => edit.remove(tx, namespace_id, &id).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => {
            now.gone(id.clone());
            Ok(done(DELETE, Some(id)))
        }
        Err(error) => refused(DELETE, Some(id), error),
    }
}

fn done(operation: &str, annotation_id: Option<String>) -> BulkAnnotationResult {
    BulkAnnotationResult {
        annotation_id,
        operation: operation.to_owned(),
        success: true,
        error: None,
    }
}

/// What a caller got wrong is its item's; what the server cannot do ends the request with nothing done.
fn refused(
    operation: &str,
    annotation_id: Option<String>,
    error: ApiError,
) -> Result<BulkAnnotationResult> {
    if !error.is_callers() {
        return Err(error);
    }
    Ok(BulkAnnotationResult {
        annotation_id,
        operation: operation.to_owned(),
        success: false,
        error: Some(error.message()),
    })
}

fn answer(results: Vec<BulkAnnotationResult>) -> BulkAnnotationsResponse {
    let count = |operation: &str| {
        let done = results
            .iter()
            .filter(|one| one.success && one.operation == operation);
        i64::try_from(done.count()).unwrap_or(i64::MAX)
    };
    BulkAnnotationsResponse {
        created_count: count(CREATE),
        updated_count: count(UPDATE),
        deleted_count: count(DELETE),
        failed_count: i64::try_from(results.iter().filter(|one| !one.success).count())
            .unwrap_or(i64::MAX),
        results,
    }
}
