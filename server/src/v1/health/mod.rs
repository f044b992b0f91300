//! Health, as the interface has it. Balancers use `/healthz` and `/readyz`.

use axum::{Json, extract::State};
use loupe_wire::{
    HealthCheckResponse, HealthServiceErrors, HealthServiceStatus, HealthStatusOutput,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_health))
        .routes(routes!(get_liveness))
}

/// Whether the server and what it depends on answer.
#[utoipa::path(get, path = "/v1/health", tag = "health", responses((status = 200, body = HealthCheckResponse)))]
async fn get_health(State(app): State<App>) -> Json<HealthCheckResponse> {
    let database = app.db().ping().await.is_ok();
    let status = if database {
        HealthStatusOutput::Ok
    } else {
        HealthStatusOutput::Degraded
    };
    let data = HealthServiceStatus {
        cache: true,
        metadata: database,
        vector_store: true,
        object_storage: true,
        task_queue: database,
        inference: true,
        analytics: None,
    };
    let errors = (!database).then(|| HealthServiceErrors {
        metadata: Some("the database does not answer".into()),
        ..Default::default()
    });
    Json(HealthCheckResponse {
        status,
        data,
        errors,
        meta: None,
    })
}

/// Whether the process runs.
#[utoipa::path(get, path = "/v1/health/liveness", tag = "health", responses((status = 200, body = HealthCheckResponse)))]
async fn get_liveness() -> Json<HealthCheckResponse> {
    Json(HealthCheckResponse {
        status: HealthStatusOutput::Ok,
        ..Default::default()
    })
}
