//! Keys of a body that nobody declared: ignored and named in `warnings` before 2 November 2026, refused from then.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use axum::{
    body::{Body, to_bytes},
    extract::{MatchedPath, Request},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use loupe_wire::{DegradedEntry, Value};

use crate::{app::App, error::ApiError, unresolved};

/// 2026-11-02T00:00:00Z.
const REFUSED_FROM_MICROS: i64 = 1_793_577_600_000_000;

/// A key that was ignored.
#[derive(Debug)]
pub struct Unknown {
    /// Such as `stages.0.config.colour`.
    pub path: String,
    /// The keys that are declared at its place.
    pub accepted: Vec<String>,
}

/// Rides in a request while unknown keys are tolerated; a body that finds none of it is read strictly.
#[derive(Debug, Clone, Default)]
pub struct Ignored(Arc<Mutex<Vec<Unknown>>>);

impl Ignored {
    pub fn add(&self, unknown: Unknown) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(unknown);
    }

    fn take(&self) -> Vec<Unknown> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a request of the API under the rule of the day.
pub async fn run(app: &App, mut request: Request, next: Next) -> Response {
    if app.clock().micros() >= REFUSED_FROM_MICROS {
        return unresolved::run(request, next).await;
    }
    let entries = warns_with_entries(&request);
    let ignored = Ignored::default();
    request.extensions_mut().insert(ignored.clone());
    let response = unresolved::run(request, next).await;
    let unknown = ignored.take();
    if unknown.is_empty() || !response.status().is_success() {
        return response;
    }
    name(&unknown, entries, response).await
}

/// Adds the keys to the answer's `warnings`. What is no JSON object, such as a stream of events, has no place for them.
async fn name(unknown: &[Unknown], entries: bool, response: Response) -> Response {
    let json = response.headers().get(header::CONTENT_TYPE);
    if json.is_none_or(|kind| kind != "application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return ApiError::internal(error).into_response(),
    };
    let mut answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let warnings = answer.as_object_mut().map(|members| {
        members
            .entry("warnings")
            .or_insert_with(|| Value::Array(vec![]))
    });
    let Some(Value::Array(warnings)) = warnings else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    warnings.extend(unknown.iter().map(|one| one.warning(entries)));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(answer.to_string()))
}

impl Unknown {
    fn warning(&self, entry: bool) -> Value {
        let next_step = format!(
            "do not send it: it is refused from 2026-11-02; accepted keys: {}",
            self.accepted.join(", ")
        );
        if !entry {
            let path = &self.path;
            return format!("the key {path} is not known and was ignored: {next_step}").into();
        }
        let entry = DegradedEntry {
            resource: "body".into(),
            id: Some(self.path.clone()),
            reason: "unknown_key".into(),
            next_step,
            stage: None,
        };
        serde_json::to_value(entry).unwrap_or_default()
    }
}

/// Lists warn with entries, everything else with sentences, as the description of the API says.
fn warns_with_entries(request: &Request) -> bool {
    static OPERATIONS: LazyLock<HashSet<(Method, String)>> =
        LazyLock::new(crate::openapi::warn_with_entries);
    let path = request.extensions().get::<MatchedPath>();
    path.is_some_and(|path| {
        OPERATIONS.contains(&(request.method().clone(), path.as_str().to_owned()))
    })
}
