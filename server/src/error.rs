//! Errors and their one translation to status codes and envelopes. No other file knows status codes.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use loupe_wire::{ErrorDetail, ErrorResponse, Object, Value};
use serde::Serialize;

use crate::json::Json;

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// The code of an error of a model whose endpoint does not let this server in, or whose balance is used up.
const MODEL_REFUSED: &str = "model_refused";

/// What a caller is told. Anything internal is logged and answered as a bare 500.
#[derive(Debug)]
pub enum ApiError {
    /// 422 in the shape of request validation.
    Validation(Vec<Violation>),
    /// Everything else: one envelope with a stable type.
    Envelope(Box<Envelope>),
}

#[derive(Debug)]
pub struct Envelope {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    message: String,
    details: Object,
    retry_after: Option<u64>,
}

/// Goes with the answer of a refusal, for the audit log: the code of the error.
#[derive(Debug, Clone, Copy)]
pub struct Refused(pub &'static str);

/// One fault of a request: where, what, and the value found there.
#[derive(Debug, Clone, Serialize)]
pub struct Violation {
    pub loc: Vec<String>,
    pub msg: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub input: Value,
    pub ctx: Value,
}

impl Violation {
    /// A fault of the body at a path such as `["stages", "0", "config"]`.
    pub fn body(path: &[&str], kind: &str, msg: impl Into<String>, input: Value) -> Self {
        let pieces = ["body"].iter().chain(path);
        Self {
            loc: pieces.map(|piece| (*piece).to_owned()).collect(),
            msg: msg.into(),
            kind: kind.into(),
            input,
            ctx: Value::Object(Object::new()),
        }
    }

    pub fn query(name: &str, kind: &str, msg: impl Into<String>, input: Value) -> Self {
        Self::at("query", name, kind, msg, input)
    }

    pub fn path(name: &str, kind: &str, msg: impl Into<String>, input: Value) -> Self {
        Self::at("path", name, kind, msg, input)
    }

    fn at(place: &str, name: &str, kind: &str, msg: impl Into<String>, input: Value) -> Self {
        Self {
            loc: vec![place.into(), name.into()],
            msg: msg.into(),
            kind: kind.into(),
            input,
            ctx: Value::Object(Object::new()),
        }
    }
}

impl From<Violation> for ApiError {
    fn from(violation: Violation) -> Self {
        Self::Validation(vec![violation])
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $kind:literal;)*) => {
        impl ApiError {
            $($(#[$doc])*
            pub fn $name(code: &'static str, message: impl Into<String>) -> Self {
                Self::new(StatusCode::$status, $kind, (!code.is_empty()).then_some(code), message.into())
            })*
        }
    };
}

constructors! {
    bad_request = BAD_REQUEST, "BadRequestError";
    /// Missing, malformed, unknown, revoked or expired key.
    unauthenticated = UNAUTHORIZED, "AuthenticationError";
    forbidden = FORBIDDEN, "ForbiddenError";
    /// Missing or mismatched namespace header.
    unauthorized = FORBIDDEN, "UnauthorizedError";
    plan_required = FORBIDDEN, "PlanRequiredError";
    /// More than a limit that is set beside the plan's; see [`ApiError::quota_exceeded`].
    over_limit = FORBIDDEN, "QuotaExceededError";
    not_enabled = FORBIDDEN, "NotEnabledError";
    conflict = CONFLICT, "ConflictError";
    already_exists = CONFLICT, "AlreadyExistsError";
    too_many_requests = TOO_MANY_REQUESTS, "TooManyRequestsError";
    processing = INTERNAL_SERVER_ERROR, "ProcessingError";
    unavailable = SERVICE_UNAVAILABLE, "ServiceUnavailableError";
    model_unavailable = SERVICE_UNAVAILABLE, "InferenceServiceUnavailableError";
    timeout = GATEWAY_TIMEOUT, "TimeoutError";
    disk_full = INSUFFICIENT_STORAGE, "ServiceUnavailableError";
    payload_too_large = PAYLOAD_TOO_LARGE, "BadRequestError";
    method_not_allowed = METHOD_NOT_ALLOWED, "BadRequestError";
    gone = GONE, "NotFoundError";
}

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: Option<&'static str>,
        message: String,
    ) -> Self {
        Self::Envelope(Box::new(Envelope {
            status,
            kind,
            code,
            message,
            details: Object::new(),
            retry_after: None,
        }))
    }

    /// The same answer for an id that does not exist and one of another organization.
    pub fn not_found(resource: &str, id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFoundError",
            Some("resource_not_found"),
            format!("{resource} not found"),
        )
        .with("resource", resource)
        .with("id", id)
    }

    pub fn quota_exceeded(
        resource: &str,
        current: impl Into<Value>,
        limit: impl Into<Value>,
        tier: &str,
    ) -> Self {
        let (current, limit) = (current.into(), limit.into());
        let message =
            format!("the quota of {resource} is used up: {current} of {limit} on the {tier} tier");
        Self::new(
            StatusCode::FORBIDDEN,
            "QuotaExceededError",
            Some("quota_exceeded"),
            message,
        )
        .with("resource", resource)
        .with("current", current)
        .with("limit", limit)
        .with("tier", tier)
    }

    /// Logs the cause; the caller learns only that something failed.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(error = %cause, request_id = crate::front::id(), "request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalServerError",
            None,
            "an internal error occurred".into(),
        )
    }

    /// Adds a member of `error.details`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        if let Self::Envelope(envelope) = &mut self {
            envelope.details.insert(member.into(), value.into());
        }
        self
    }

    /// Says of a refusal which kind of requests it counts.
    #[must_use]
    pub fn naming_kind(mut self, kind: &'static str) -> Self {
        if let Self::Envelope(envelope) = &mut self {
            envelope.message += &format!(" (requests of the kind {kind})");
        }
        self.with("kind", kind)
    }

    /// Seconds after which a try makes sense: the header and the details say so.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Self::Envelope(envelope) = &mut self {
            envelope.retry_after = Some(seconds);
            envelope.details.insert("retryable".into(), true.into());
            envelope
                .details
                .insert("retry_after_seconds".into(), seconds.into());
        }
        self
    }

    /// Faults of a part of the body, at their places in the whole.
    #[must_use]
    pub fn under(mut self, path: &[&str]) -> Self {
        if let Self::Validation(violations) = &mut self {
            for violation in violations {
                let whole = Violation::body(path, "", "", Value::Null).loc;
                let rest = violation.loc.drain(..).skip(1);
                violation.loc = whole.into_iter().chain(rest).collect();
            }
        }
        self
    }

    /// What a record of a failure keeps, such as the `error` of a task.
    pub fn message(&self) -> String {
        match self {
            Self::Validation(violations) => violations
                .iter()
                .map(|violation| violation.msg.as_str())
                .collect::<Vec<_>>()
                .join("; "),
            Self::Envelope(envelope) => envelope.message.clone(),
        }
    }

    /// Whether a model's service refuses to answer this server.
    pub fn is_refusal(&self) -> bool {
        self.has_code(MODEL_REFUSED)
    }

    /// The stable `error.type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Validation(_) => "ValidationError",
            Self::Envelope(envelope) => envelope.kind,
        }
    }

    /// Seconds after which a caller that sends too much, or to a server that has too much to do, may come again.
    pub fn wait(&self) -> Option<u64> {
        match self {
            Self::Envelope(envelope)
                if envelope.status == StatusCode::TOO_MANY_REQUESTS
                    || envelope.code == Some("overloaded") =>
            {
                envelope.retry_after
            }
            _ => None,
        }
    }

    /// Whether the same request may succeed later. A model that refuses this server needs somebody who sees to it first.
    pub fn is_transient(&self) -> bool {
        let passes = |status: StatusCode| {
            status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
        };
        matches!(self, Self::Envelope(envelope) if passes(envelope.status) && envelope.code != Some(MODEL_REFUSED))
    }

    /// Seconds after which another try makes sense, where something that was missed says so or is known to come back.
    pub fn comes_back(&self) -> Option<u64> {
        match self {
            Self::Validation(_) => None,
            Self::Envelope(envelope) => envelope.retry_after,
        }
    }

    /// Whether the request itself is at fault: sending it again changes nothing.
    pub fn is_callers(&self) -> bool {
        match self {
            Self::Validation(_) => true,
            Self::Envelope(envelope) => envelope.status.is_client_error() && !self.is_transient(),
        }
    }

    /// The stable `error.code`, where there is one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Validation(_) => None,
            Self::Envelope(envelope) => envelope.code,
        }
    }

    /// What no database keeps.
    pub(crate) fn nul() -> Self {
        Self::bad_request("", "the character U+0000 is in no text that is kept")
    }

    /// Whether `error.code` is this one.
    pub fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::Envelope(envelope) if envelope.code == Some(code))
    }

    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Envelope(envelope) if envelope.status == StatusCode::CONFLICT)
    }

    /// A unique key that another row has.
    fn taken() -> Self {
        Self::already_exists("name_taken", "a resource with this name exists already")
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Envelope(envelope) if envelope.status == StatusCode::NOT_FOUND)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message())
    }
}

impl std::error::Error for ApiError {}

/// Whether what is looked up is longer than an index allows. Other limits have the same code, such as transactions running out, and are
/// no caller's fault; their words are in the language of the database.
fn is_too_long(cause: &(dyn sqlx::error::DatabaseError + 'static)) -> bool {
    let told = cause.try_downcast_ref::<sqlx::postgres::PgDatabaseError>();
    let routine = told
        .and_then(sqlx::postgres::PgDatabaseError::routine)
        .unwrap_or_default();
    cause.code().as_deref() == Some("54000")
        && (routine.starts_with("index_form_tuple") || routine == "_bt_check_third_page")
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(cause) if cause.is_unique_violation() => Self::taken(),
            // In a text and in JSON: PostgreSQL keeps it nowhere.
            sqlx::Error::Database(cause)
                if matches!(cause.code().as_deref(), Some("22021" | "22P05")) =>
            {
                Self::nul()
            }
            // Each waited for the other, and one of them was undone as a whole.
            sqlx::Error::Database(cause)
                if matches!(cause.code().as_deref(), Some("40P01" | "40001")) =>
            {
                tracing::warn!(%error, "two changes stood in each other's way");
                Self::unavailable("", "another change stood in the way of this one: try again")
                    .retry_after(1)
            }
            sqlx::Error::Database(cause) if is_too_long(cause.as_ref()) => {
                tracing::warn!(%error, "a key is too long for its index");
                Self::bad_request("", "a name or key of this request is too long")
            }
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
                tracing::error!(%error, "the database is not available");
                Self::unavailable("", "the database is not available").retry_after(2)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::{ErrorCode, ffi};
        if matches!(error, rusqlite::Error::NulError(_)) {
            return Self::nul();
        }
        let Some(cause) = error.sqlite_error() else {
            return Self::internal(error);
        };
        match (cause.code, cause.extended_code) {
            (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => Self::taken(),
            (ErrorCode::DiskFull, _) => {
                tracing::error!(%error, "the disk is full");
                Self::disk_full(
                    "",
                    "the disk is full: writes are refused until space is freed",
                )
            }
            (ErrorCode::DatabaseBusy | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure, _) => {
                tracing::error!(%error, "the database is not available");
                Self::unavailable("", "the database is not available").retry_after(2)
            }
            _ => Self::internal(error),
        }
    }
}

impl From<loupe_engine::store::StoreError> for ApiError {
    fn from(error: loupe_engine::store::StoreError) -> Self {
        use loupe_engine::store::StoreError;
        match error {
            StoreError::Invalid(message) => Self::bad_request("", message),
            StoreError::Cursor(sent) => crate::list::wrong_cursor(&sent).into(),
            StoreError::DiskFull => Self::disk_full("", error.to_string()),
            StoreError::Unavailable(_) => Self::unavailable("", error.to_string()).retry_after(2),
            StoreError::Internal(message) => Self::internal(message),
        }
    }
}

impl From<loupe_engine::embed::EmbedError> for ApiError {
    fn from(error: loupe_engine::embed::EmbedError) -> Self {
        use loupe_engine::embed::EmbedError;
        match error {
            EmbedError::Unavailable(message) => Self::model_unavailable("", message),
            EmbedError::Invalid(message) => Self::bad_request("", message),
            EmbedError::Refused(message) => Self::model_unavailable(MODEL_REFUSED, message),
            // An endpoint that is away or answers nonsense is no fault of this server's, and may be well at another try.
            EmbedError::Failed(message) => {
                tracing::warn!(error = %message, request_id = crate::front::id(), "a model failed");
                Self::model_unavailable("", message).retry_after(2)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Validation(detail) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Json(serde_json::json!({ "detail": detail })),
            )
                .into_response(),
            Self::Envelope(envelope) => {
                let body = ErrorResponse {
                    success: false,
                    status: i64::from(envelope.status.as_u16()),
                    error: ErrorDetail {
                        message: envelope.message,
                        r#type: envelope.kind.into(),
                        code: envelope.code.map(Into::into),
                        details: Some(envelope.details),
                    },
                };
                let mut response = (envelope.status, Json(body)).into_response();
                if envelope.kind == "ForbiddenError" {
                    response
                        .extensions_mut()
                        .insert(Refused(envelope.code.unwrap_or("forbidden")));
                }
                if let Some(seconds) = envelope.retry_after {
                    response
                        .headers_mut()
                        .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
        }
    }
}
