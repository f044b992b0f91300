//! Extractors that authenticate a request: [`Org`] for the organization, [`Scope`] for one namespace of it.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, header, request::Parts},
};
use loupe_engine::store::Reach;
use loupe_wire::{
    APIKeyModel, KeyStatus, NamespaceOperation, Permission, ResourceScope, ResourceType,
};

use super::{Level, key, level::rank};
use crate::{
    app::App,
    error::{ApiError, Result},
    v1::{api_keys, namespaces},
};

const NAMESPACE_HEADER: &str = "x-namespace";

/// A key that was accepted, and whose it is.
#[derive(Debug, Clone)]
pub struct Caller {
    pub org_id: String,
    pub key: Arc<APIKeyModel>,
}

impl Caller {
    /// Id that changes of this caller are recorded under.
    pub fn actor(&self) -> &str {
        self.key.key_id.as_deref().unwrap_or_default()
    }

    /// Set for keys of end users, which see only what they own or were granted.
    pub fn principal(&self) -> Option<&str> {
        self.key.principal_id.as_deref()
    }

    fn has(&self, permission: Permission) -> bool {
        self.key
            .permissions
            .iter()
            .any(|held| rank(*held) >= rank(permission))
    }

    /// Whether the key's scopes let it do `operation` on this resource. No scopes: everything the level grants.
    pub fn allow(&self, kind: ResourceType, id: &str, operation: NamespaceOperation) -> Result<()> {
        if self.key.scopes.is_empty()
            || self
                .key
                .scopes
                .iter()
                .any(|scope| covers(scope, kind, id, operation))
        {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "scope_denied",
            "the scopes of this key do not cover this resource",
        ))
    }
}

fn covers(
    scope: &ResourceScope,
    kind: ResourceType,
    id: &str,
    operation: NamespaceOperation,
) -> bool {
    let matches = match scope.resource_id.strip_suffix('*') {
        Some(prefix) => id.starts_with(prefix),
        None => scope.resource_id == id,
    };
    let operations = scope.operations.as_ref();
    matches
        && scope.resource_type == kind
        && operations.is_none_or(|operations| operations.contains(&operation))
}

/// A caller of at least level `L`, for organization-wide operations.
#[derive(Debug, Clone)]
pub struct Org<L> {
    pub caller: Caller,
    level: PhantomData<L>,
}

/// A caller of at least level `L` inside one of its namespaces.
#[derive(Debug, Clone)]
pub struct Scope<L> {
    pub caller: Caller,
    pub namespace_id: String,
    level: PhantomData<L>,
}

/// For lists: a namespace that does not resolve is an empty page, not an error.
#[derive(Debug, Clone)]
pub enum ListScope<L> {
    Resolved(Scope<L>),
    Unresolved { sent: String },
}

/// For operations where the header is optional: it narrows when sent.
#[derive(Debug, Clone)]
pub struct OptionalScope<L> {
    pub caller: Caller,
    pub namespace_id: Option<String>,
    level: PhantomData<L>,
}

impl<L: Level> Scope<L> {
    /// What the store may touch for this caller in these collections.
    pub fn reach(&self, collection_ids: Vec<String>) -> Reach {
        let principal = self.caller.principal().map(ToOwned::to_owned);
        Reach {
            namespace_id: self.namespace_id.clone(),
            collection_ids,
            principal,
        }
    }

    /// A scope made by the server itself: jobs, public pages, the demo.
    pub fn internal(caller: Caller, namespace_id: String) -> Self {
        Self {
            caller,
            namespace_id,
            level: PhantomData,
        }
    }
}

/// Checks the key of a request: its checksum without I/O, then the cache, then one indexed read.
///
/// # Errors
/// 401 for every kind of wrong key, 403 for a wrong origin.
pub async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller> {
    let Some(header) = headers.get(header::AUTHORIZATION) else {
        return Err(ApiError::unauthenticated(
            "api_key_missing",
            "send the header: Authorization: Bearer <API key>",
        ));
    };
    let secret = header.to_str().ok().and_then(|text| {
        let (scheme, secret) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let Some(secret) = secret.filter(|secret| key::is_well_formed(secret)) else {
        return Err(ApiError::unauthenticated(
            "api_key_malformed",
            "this is not an API key: check for typing errors",
        ));
    };
    let stored = api_keys::find_by_hash(app, &key::hash(secret)).await?;
    let Some(stored) = stored else {
        return Err(ApiError::unauthenticated(
            "api_key_unknown",
            "this API key is not known",
        ));
    };
    if stored.status == KeyStatus::Revoked {
        return Err(ApiError::unauthenticated(
            "api_key_revoked",
            "this API key was revoked",
        ));
    }
    if stored.status == KeyStatus::Expired
        || stored.expires_at.is_some_and(|at| at <= app.clock().now())
    {
        return Err(ApiError::unauthenticated(
            "api_key_expired",
            "this API key has expired",
        ));
    }
    check_origin(&stored, headers)?;
    api_keys::touch(app, &stored);
    let org_id = stored.organization_id.clone().unwrap_or_default();
    Ok(Caller {
        org_id,
        key: stored,
    })
}

fn check_origin(key: &APIKeyModel, headers: &HeaderMap) -> Result<()> {
    let Some(allowed) = key
        .allowed_origins
        .as_ref()
        .filter(|allowed| !allowed.is_empty())
    else {
        return Ok(());
    };
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
    if allowed
        .iter()
        .any(|pattern| origin_matches(&pattern.to_ascii_lowercase(), &origin))
    {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "origin_not_allowed",
        "this API key may not be used from this origin",
    ))
}

/// `https://*.example.com` matches one label or more, never the bare domain; scheme and port must be equal.
fn origin_matches(pattern: &str, origin: &str) -> bool {
    match pattern.split_once("://*.") {
        None => pattern == origin,
        Some((scheme, domain)) => origin
            .strip_prefix(scheme)
            .and_then(|rest| rest.strip_prefix("://"))
            .and_then(|host| host.strip_suffix(domain))
            .and_then(|labels| labels.strip_suffix('.'))
            .is_some_and(|labels| {
                !labels.is_empty()
                    && labels
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
            }),
    }
}

async fn caller<L: Level>(parts: &Parts, app: &App) -> Result<Caller> {
    let caller = match parts.extensions.get::<Caller>() {
        Some(ready) => ready.clone(),
        None => authenticate(app, &parts.headers).await?,
    };
    if caller.has(L::PERMISSION) {
        return Ok(caller);
    }
    let needed = serde_json::to_value(L::PERMISSION).unwrap_or_default();
    Err(ApiError::forbidden(
        "permission_denied",
        "this API key lacks the permission for this operation",
    )
    .with("required_permission", needed))
}

fn namespace_header(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(NAMESPACE_HEADER) else {
        return Ok(None);
    };
    let value = value.to_str().unwrap_or_default().trim();
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

fn header_missing() -> ApiError {
    ApiError::unauthorized(
        "namespace_header_missing",
        "send the header X-Namespace with the id of a namespace (ns_…)",
    )
}

impl<L: Level, S: Send + Sync> FromRequestParts<S> for Org<L>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let app = App::from_ref(state);
        Ok(Self {
            caller: caller::<L>(parts, &app).await?,
            level: PhantomData,
        })
    }
}

impl<L: Level, S: Send + Sync> FromRequestParts<S> for Scope<L>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let app = App::from_ref(state);
        let caller = caller::<L>(parts, &app).await?;
        let sent = namespace_header(&parts.headers)?.ok_or_else(header_missing)?;
        if !namespaces::exists(&app, &caller, &sent).await? {
            return Err(ApiError::not_found("namespace", &sent));
        }
        Ok(Self {
            caller,
            namespace_id: sent,
            level: PhantomData,
        })
    }
}

impl<L: Level, S: Send + Sync> FromRequestParts<S> for ListScope<L>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let app = App::from_ref(state);
        let caller = caller::<L>(parts, &app).await?;
        let sent = namespace_header(&parts.headers)?.ok_or_else(header_missing)?;
        if !namespaces::exists(&app, &caller, &sent).await? {
            return Ok(Self::Unresolved { sent });
        }
        Ok(Self::Resolved(Scope {
            caller,
            namespace_id: sent,
            level: PhantomData,
        }))
    }
}

impl<L: Level, S: Send + Sync> FromRequestParts<S> for OptionalScope<L>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let app = App::from_ref(state);
        let caller = caller::<L>(parts, &app).await?;
        let namespace_id = namespace_header(&parts.headers)?;
        if let Some(sent) = &namespace_id
            && !namespaces::exists(&app, &caller, sent).await?
        {
            return Err(ApiError::not_found("namespace", sent));
        }
        Ok(Self {
            caller,
            namespace_id,
            level: PhantomData,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::origin_matches;

    #[test]
    fn wildcard_origins_match_subdomains_only() {
        let pattern = "https://*.example.com";
        for good in ["https://a.example.com", "https://a.b.example.com"] {
            assert!(origin_matches(pattern, good), "{good}");
        }
        for bad in [
            "https://example.com",
            "http://a.example.com",
            "https://a.example.com:8443",
            "https://a.example.com.evil.org",
            "https://evil-example.com",
            "null",
            "https://evil.org/.example.com",
        ] {
            assert!(!origin_matches(pattern, bad), "{bad}");
        }
    }
}
