//! Health, as the interface has it. Balancers use `/healthz` and `/readyz`.

use std::time::{Duration, Instant};

use axum::{
    extract::{FromRequestParts, State},
    http::request::Parts,
};
use loupe_wire::{
    HealthCheckResponse, HealthServiceErrors, HealthServiceStatus, HealthStatusOutput, Object,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Org, Read},
    error::{ApiError, Result},
    json::Json,
    list,
    openapi::routes,
};

/// A dependency that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_health))
        .routes(routes!(get_liveness))
        .routes(routes!(get_beat))
        .routes(routes!(get_deep_health))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DeepQuery {
    /// Load the text model as well, as the next search would. Default false.
    deep: Option<bool>,
    /// Say how long each dependency took to answer. Default false.
    metrics: Option<bool>,
}

impl<S: Send + Sync> FromRequestParts<S> for DeepQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Whether the server and what it depends on answer.
#[utoipa::path(get, path = "/v1/health", tag = "health", responses((status = 200, body = HealthCheckResponse)))]
async fn get_health(State(app): State<App>) -> Json<HealthCheckResponse> {
    Json(check(&app).await.0)
}

/// Whether the process runs. Nothing is asked, so nothing is told to be unwell.
#[utoipa::path(get, path = "/v1/health/liveness", tag = "health", responses((status = 200, body = HealthCheckResponse)))]
async fn get_liveness() -> Json<HealthCheckResponse> {
    Json(HealthCheckResponse {
        status: HealthStatusOutput::Ok,
        data: HealthServiceStatus {
            cache: true,
            metadata: true,
            vector_store: true,
            object_storage: true,
            task_queue: true,
            inference: true,
            analytics: None,
        },
        ..Default::default()
    })
}

/// Answers as soon as the process can answer anything.
#[utoipa::path(get, path = "/v1/health/beat", tag = "health", responses((status = 200, body = Object)))]
async fn get_beat() -> Json<Object> {
    Json([("status".to_owned(), "ok".into())].into_iter().collect())
}

/// As the health, with the models and, when asked for, the time that each dependency took.
#[utoipa::path(get, path = "/v1/health/deep", tag = "health", params(DeepQuery), responses((status = 200, body = HealthCheckResponse)))]
async fn get_deep_health(
    State(app): State<App>,
    _: Org<Read>,
    query: DeepQuery,
) -> Json<HealthCheckResponse> {
    let (mut health, mut times) = check(&app).await;
    if query.deep == Some(true) {
        let started = Instant::now();
        let model = loupe_engine::extract::registry::TEXT_OUTPUT;
        if let Err(error) = app.models.text(model).await {
            let error = ApiError::from(error).message();
            health.data.inference = false;
            health.status = HealthStatusOutput::Degraded;
            health.errors.get_or_insert_default().inference = Some(error);
        }
        times.insert("inference".into(), milliseconds(started).into());
    }
    let models = app.models.status().into_iter().map(|model| {
        let (output, available) = (model.output, model.available);
        serde_json::json!({ "output": output, "available": available })
    });
    let mut meta = Object::new();
    meta.insert("models".into(), models.collect());
    if query.metrics == Some(true) {
        meta.insert("milliseconds".into(), times.into());
    }
    health.meta = Some(meta);
    Json(health)
}

fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).round() / 1e3
}

/// What failed and how long it took; a failure says no more than a stranger may know.
async fn probe(asking: impl Future<Output = Result<()>>) -> (Option<String>, f64) {
    let started = Instant::now();
    let failure = match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "a dependency is not well");
            Some("it does not answer or refuses writes".to_owned())
        }
        Err(_) => Some("it does not answer in time".to_owned()),
    };
    (failure, milliseconds(started))
}

/// Asks every dependency at once; how long each took is told beside.
async fn check(app: &App) -> (HealthCheckResponse, Object) {
    let blobs = async {
        app.blobs()
            .check_room(app.config().limits.free_disk_bytes)?;
        app.blobs().head("health").await.map(|_| ())
    };
    let documents = async { Ok(app.store().ping().await?) };
    let (database, documents, blobs) =
        tokio::join!(probe(app.db().ping()), probe(documents), probe(blobs));
    let data = HealthServiceStatus {
        cache: true,
        metadata: database.0.is_none(),
        vector_store: documents.0.is_none(),
        object_storage: blobs.0.is_none(),
        task_queue: database.0.is_none(),
        inference: true,
        analytics: None,
    };
    let is_well = data.metadata && data.vector_store && data.object_storage;
    let times = [
        ("metadata".to_owned(), database.1.into()),
        ("vector_store".to_owned(), documents.1.into()),
        ("object_storage".to_owned(), blobs.1.into()),
    ];
    let errors = (!is_well).then(|| HealthServiceErrors {
        task_queue: database.0.clone(),
        metadata: database.0,
        vector_store: documents.0,
        object_storage: blobs.0,
        ..Default::default()
    });
    let health = HealthCheckResponse {
        status: if is_well {
            HealthStatusOutput::Ok
        } else {
            HealthStatusOutput::Degraded
        },
        data,
        errors,
        meta: None,
    };
    (health, times.into_iter().collect())
}
