//! A manifest as it is sent: a file in a form, with the values of its parameters.

use axum::{
    RequestExt as _,
    extract::{FromRef, FromRequest, Multipart, Request, multipart::MultipartError},
};
use loupe_wire::{Object, Value};

use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// What was sent.
#[derive(Debug)]
pub struct Upload {
    pub text: String,
    pub parameters: Object,
}

impl<S> FromRequest<S> for Upload
where
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let form = request.extract::<Multipart, _>().await;
        let mut form = form.map_err(|_| missing())?;
        let (mut text, mut parameters) = (None, Object::new());
        while let Some(field) = form.next_field().await.map_err(unreadable)? {
            let name = field.name().unwrap_or_default().to_owned();
            let bytes = field.bytes().await.map_err(unreadable)?;
            match name.as_str() {
                "manifest_file" => text = Some(words(&name, &bytes)?),
                "parameters" => parameters = values(&words(&name, &bytes)?)?,
                other => {
                    return Err(fault(
                        other,
                        "extra_forbidden",
                        "the form has no such field",
                    ));
                }
            }
        }
        let text = text.ok_or_else(missing)?;
        Ok(Self { text, parameters })
    }
}

fn fault(name: &str, kind: &str, message: &str) -> ApiError {
    Violation::body(&[name], kind, message, Value::Null).into()
}

fn missing() -> ApiError {
    let message = "send the manifest as the file manifest_file of a form (multipart/form-data)";
    fault("manifest_file", "missing", message)
}

fn unreadable(error: MultipartError) -> ApiError {
    match error.status().as_u16() {
        413 => ApiError::payload_too_large("", "the form is larger than this server takes"),
        _ => ApiError::bad_request("", "the form could not be read"),
    }
}

fn words(name: &str, bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(_) => Err(fault(name, "string_type", "the text is not UTF-8")),
    }
}

fn values(text: &str) -> Result<Object> {
    if text.trim().is_empty() {
        return Ok(Object::new());
    }
    serde_json::from_str(text).map_err(|_| {
        fault(
            "parameters",
            "json_invalid",
            "values are a JSON object by the names of parameters",
        )
    })
}
