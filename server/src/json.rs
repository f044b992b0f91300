//! Answers in JSON.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::error::ApiError;

/// A value that is answered as JSON. The framework's own writes each bracket and comma through several calls: a sixth of the
/// instructions of a list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        respond(serde_json::to_vec(&self.0))
    }
}

fn respond(written: serde_json::Result<Vec<u8>>) -> Response {
    let mut response = match written {
        Ok(text) => text.into_response(),
        Err(error) => return ApiError::internal(error).into_response(),
    };
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
