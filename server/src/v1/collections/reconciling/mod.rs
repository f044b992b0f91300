//! What a collection should hold and what it does.

mod store;

use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_wire::{
    CollectionReconciliationResponse, NamespaceOperation, ReconciliationDiscrepancy,
    ReconciliationReason,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result, Violation},
    json::Json,
    list,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(reconcile_collection))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LimitQuery {
    /// Discrepancies that are named: 1 to 1000, default 100.
    limit: Option<i64>,
}

impl<S: Send + Sync> FromRequestParts<S> for LimitQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Objects of the collection's buckets beside those that it holds documents of, the missing ones with the reason. Of a
/// collection over collections the buckets are those at the bottom.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/reconciliation", tag = "collections", params(LimitQuery), responses((status = 200, body = CollectionReconciliationResponse)))]
async fn reconcile_collection(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    query: LimitQuery,
) -> Result<Json<CollectionReconciliationResponse>> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        let msg = "limit lies between 1 and 1000";
        return Err(Violation::query("limit", "range", msg, limit.into()).into());
    }
    reconcile(&app, &scope, &identifier, limit).await.map(Json)
}

async fn reconcile(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    limit: i64,
) -> Result<CollectionReconciliationResponse> {
    let operation = NamespaceOperation::ReadData;
    let collection = super::known(app, scope, identifier, operation).await?;
    let (db, namespace_id, id) = (app.db(), &scope.namespace_id, &collection.id);
    let reach = scope.reach(vec![id.clone()]);
    let mut answer = CollectionReconciliationResponse {
        collection_id: id.clone(),
        document_count: i64::try_from(app.store().count(&reach, None).await?).unwrap_or(i64::MAX),
        limit,
        ..Default::default()
    };
    let source = &collection.source;
    let buckets = source.bucket_ids.iter().chain(&source.inherited_bucket_ids);
    let buckets: Vec<String> = buckets.flatten().cloned().collect();
    for bucket_id in &buckets {
        let (all, produced) = store::counts(db, namespace_id, bucket_id, id).await?;
        answer.source_object_count += all;
        answer.produced_object_count += produced;
        // One more than is named tells whether something is left out.
        let named = i64::try_from(answer.discrepancies.len()).unwrap_or(i64::MAX);
        let room = limit - named + 1;
        let missing = store::missing(db, namespace_id, bucket_id, id, room).await?;
        let now = app.clock().micros();
        let told = missing.into_iter().map(|one| told(one, bucket_id, now));
        answer.discrepancies.extend(told);
    }
    answer.delta = answer.source_object_count - answer.produced_object_count;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    answer.discrepancies_truncated = answer.discrepancies.len() > most;
    answer.discrepancies.truncate(most);
    Ok(answer)
}

fn told(one: store::Missing, bucket_id: &str, now: i64) -> ReconciliationDiscrepancy {
    let reason = match one.status.as_str() {
        "FAILED" => ReconciliationReason::Failed,
        "QUEUED" | "PENDING" | "PROCESSING" | "IN_PROGRESS" => ReconciliationReason::Processing,
        // It was read, and gave nothing.
        _ if one.documents >= 0 => ReconciliationReason::Skipped,
        _ => ReconciliationReason::NoDocument,
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "ages are far below 2^52 microseconds"
    )]
    let age = (now - one.created_at) as f64 / 1e6;
    ReconciliationDiscrepancy {
        object_id: one.object_id,
        bucket_id: Some(bucket_id.to_owned()),
        reason,
        status: Some(one.status),
        age_seconds: Some(age.max(0.0)),
        error: None,
    }
}
