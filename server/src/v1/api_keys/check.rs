//! What a key may be asked to be, beyond the limits of its wire type.

use chrono::{DateTime, Utc};
use loupe_wire::{
    APIKeyCreateRequest, APIKeyUpdateRequest, KeyStatus, ResourceScope, UserModel, UserStatus,
};
use serde_json::json;

use crate::{
    auth::origin,
    error::{ApiError, Result, Violation},
};

pub(super) fn create(request: &APIKeyCreateRequest, now: i64) -> Result<()> {
    let mut faults = Vec::new();
    scopes(request.scopes.as_deref(), &mut faults);
    origins(request.allowed_origins.as_deref(), &mut faults);
    expiry(request.expires_at, now, &mut faults);
    if request
        .principal_id
        .as_ref()
        .is_some_and(|id| id.trim().is_empty())
    {
        let msg = "the id of an end user is not blank";
        faults.push(Violation::body(
            &["principal_id"],
            "value_error",
            msg,
            json!(request.principal_id),
        ));
    }
    done(faults)
}

pub(super) fn update(request: &APIKeyUpdateRequest, now: i64) -> Result<()> {
    let mut faults = Vec::new();
    scopes(request.scopes.as_deref(), &mut faults);
    origins(request.allowed_origins.as_deref(), &mut faults);
    expiry(request.expires_at.flatten(), now, &mut faults);
    if let Some(Some(cap)) = request.rate_limit_override
        && cap < 1
    {
        let msg = "input should be greater than or equal to 1";
        faults.push(Violation::body(
            &["rate_limit_override"],
            "greater_than_equal",
            msg,
            cap.into(),
        ));
    }
    if let Some(status) = request.status
        && status != KeyStatus::Active
    {
        let msg = "a key ends by DELETE, and expires by expires_at; both are final";
        faults.push(Violation::body(
            &["status"],
            "immutable_field",
            msg,
            json!(status),
        ));
    }
    done(faults)
}

/// Keys of people that were suspended are not made.
pub(super) fn is_active(user: &UserModel) -> Result<()> {
    if user.status == UserStatus::Suspended {
        return Err(ApiError::conflict(
            "user_suspended",
            "this user is suspended and can hold no active keys",
        ));
    }
    Ok(())
}

pub(super) fn origins(origins: Option<&[String]>, faults: &mut Vec<Violation>) {
    for (index, pattern) in origins.into_iter().flatten().enumerate() {
        if !origin::is_pattern(pattern) {
            let msg = "an origin is a scheme and a host such as https://example.com or https://*.example.com";
            faults.push(Violation::body(
                &["allowed_origins", &index.to_string()],
                "value_error",
                msg,
                pattern.clone().into(),
            ));
        }
    }
}

/// As browsers name them: without the port that a scheme has by itself.
pub(super) fn as_sent(origins: Vec<String>) -> Vec<String> {
    let plain = |origin: String| {
        let lower = origin.to_ascii_lowercase();
        let port = match lower.split_once("://") {
            Some(("https", _)) => ":443",
            Some(("http", _)) => ":80",
            _ => return origin,
        };
        let kept = origin.len() - if lower.ends_with(port) { port.len() } else { 0 };
        origin[..kept].to_owned()
    };
    origins.into_iter().map(plain).collect()
}

pub(super) fn expiry(at: Option<DateTime<Utc>>, now: i64, faults: &mut Vec<Violation>) {
    if at.is_some_and(|at| at.timestamp_micros() <= now) {
        faults.push(Violation::body(
            &["expires_at"],
            "value_error",
            "expires_at lies in the past",
            json!(at),
        ));
    }
}

pub(super) fn done(faults: Vec<Violation>) -> Result<()> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ApiError::Validation(faults))
    }
}

/// An id, `*`, or the beginning of ids and `*`: a star elsewhere would match nothing and look as if it did.
fn scopes(scopes: Option<&[ResourceScope]>, faults: &mut Vec<Violation>) {
    for (index, scope) in scopes.into_iter().flatten().enumerate() {
        let index = index.to_string();
        let id = &scope.resource_id;
        if id.strip_suffix('*').unwrap_or(id).contains('*') {
            let msg = "a star stands at the end: an id, *, or the beginning of ids followed by *";
            let path = ["scopes", index.as_str(), "resource_id"];
            faults.push(Violation::body(
                &path,
                "value_error",
                msg,
                id.clone().into(),
            ));
        }
    }
}
