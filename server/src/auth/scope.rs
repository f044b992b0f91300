//! Extractors that authenticate a request: [`Org`] for the organization, [`Scope`] for one namespace of it.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, header, request::Parts},
};
use loupe_engine::store::Reach;
use loupe_wire::{
    APIKeyModel, APIKeyType, KeyStatus, NamespaceOperation, Permission, ResourceType,
};

use serde::{Serialize, de::DeserializeOwned};

use super::{Level, key, level::rank, origin};
use crate::{
    app::App,
    db::Table,
    error::{ApiError, Result},
    hosting::api::{Only, no_namespace},
    list::{ListParams, Page},
    unresolved::{Nowhere, is_nowhere},
    v1::{api_keys, namespaces},
};

const NAMESPACE_HEADER: &str = "x-namespace";

/// A key that was accepted, and whose it is.
#[derive(Debug, Clone)]
pub struct Caller {
    pub org_id: String,
    pub key: Arc<APIKeyModel>,
    /// What the request says about itself.
    pub via: Arc<Via>,
    /// The namespace that the request is about, as it names it: a scope of it covers what it holds.
    pub within: Option<Arc<str>>,
}

/// What the audit log tells about a request besides its key.
#[derive(Debug, Clone, Default)]
pub struct Via {
    /// `X-Change-Reason`.
    pub reason: Option<String>,
    pub user_agent: Option<String>,
    pub address: Option<String>,
    /// Who calls an app, where one makes the call for somebody.
    pub visitor: Option<Visitor>,
}

/// Who calls an app.
#[derive(Debug, Clone)]
pub enum Visitor {
    /// A person of the app; or the app's id and, behind a slash, whom a token is about, or the name of a key.
    Known(String),
    /// Nobody in particular.
    Anybody,
}

impl Via {
    pub(crate) fn of(headers: &HeaderMap, address: Option<&str>) -> Self {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?.trim();
            // A header may be long; a record is not.
            (!value.is_empty()).then(|| value.chars().take(500).collect())
        };
        Self {
            reason: text("x-change-reason"),
            user_agent: text("user-agent"),
            address: address.map(ToOwned::to_owned),
            visitor: None,
        }
    }
}

impl Caller {
    /// A caller that is the server itself or whoever sits at it.
    pub fn internal(key: APIKeyModel) -> Self {
        Self {
            org_id: key.organization_id.clone().unwrap_or_default(),
            key: Arc::new(key),
            via: Arc::default(),
            within: None,
        }
    }

    /// The server itself, in an organization.
    pub fn system(org_id: &str) -> Self {
        Self::internal(APIKeyModel {
            key_id: Some("system".into()),
            internal_id: org_id.to_owned(),
            organization_id: Some(org_id.to_owned()),
            permissions: vec![Permission::Admin],
            ..Default::default()
        })
    }

    /// Takes down why the caller does this, where its body says so: the audit log tells it.
    pub fn gives(&mut self, reason: Option<String>) {
        if reason.is_some() {
            let via = Via::clone(&self.via);
            self.via = Arc::new(Via { reason, ..via });
        }
    }

    /// Id that changes of this caller are recorded under.
    pub fn actor(&self) -> &str {
        self.key.key_id.as_deref().unwrap_or_default()
    }

    /// Set for keys of end users, which see only what they own or were granted.
    pub fn principal(&self) -> Option<&str> {
        self.key.principal_id.as_deref()
    }

    /// A key for browsers that executes one retriever and can do nothing else.
    pub fn is_retriever_key(&self) -> bool {
        self.key.key_type == APIKeyType::Retriever
    }

    pub fn has(&self, permission: Permission) -> bool {
        self.key
            .permissions
            .iter()
            .any(|held| rank(*held) >= rank(permission))
    }

    /// Whether the key's scopes let it do `operation` on this resource. No scopes: everything the level grants. A scope
    /// of the namespace or of the organization covers what they hold.
    pub fn covers(&self, kind: ResourceType, id: &str, operation: NamespaceOperation) -> bool {
        let within = self.within.as_deref();
        self.key.scopes.is_empty()
            || self.key.scopes.iter().any(|scope| {
                let operations = scope.operations.as_ref();
                let held = match scope.resource_type {
                    ResourceType::Organization => Some(self.org_id.as_str()),
                    ResourceType::Namespace if kind != ResourceType::Namespace => within,
                    of if of == kind => Some(id),
                    _ => None,
                };
                held.is_some_and(|id| matches(&scope.resource_id, id))
                    && operations.is_none_or(|operations| operations.contains(&operation))
            })
    }

    /// The ids and beginnings of ids that the key's own scopes name of a kind, for an operation.
    pub fn patterns(
        &self,
        kind: ResourceType,
        operation: NamespaceOperation,
    ) -> impl Iterator<Item = &str> {
        let scopes = self.key.scopes.iter();
        let named = scopes.filter(move |scope| {
            let operations = scope.operations.as_ref();
            scope.resource_type == kind
                && operations.is_none_or(|operations| operations.contains(&operation))
        });
        named.map(|scope| scope.resource_id.as_str())
    }

    /// A page of what the key may read: all of the owner's, or what its scopes cover.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn list<T>(
        &self,
        app: &App,
        table: &Table<T>,
        kind: ResourceType,
        owner: &str,
        params: &ListParams,
    ) -> Result<Page<T>>
    where
        T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
    {
        if self.key.scopes.is_empty() {
            return table.list(app.db(), owner, params).await;
        }
        let covered = |id: &str| self.covers(kind, id, NamespaceOperation::ReadData);
        table.list_some(app.db(), owner, params, covered).await
    }

    /// As [`Caller::covers`].
    ///
    /// # Errors
    /// 403 when the scopes do not cover the resource.
    pub fn allow(&self, kind: ResourceType, id: &str, operation: NamespaceOperation) -> Result<()> {
        if self.covers(kind, id, operation) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "scope_denied",
            "the scopes of this key do not cover this resource",
        ))
    }
}

/// An id, `*`, or the beginning of ids followed by `*`.
fn matches(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => id.starts_with(prefix),
        None => pattern == id,
    }
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
    pub fn internal(mut caller: Caller, namespace_id: String) -> Self {
        caller.within = Some(namespace_id.as_str().into());
        Self {
            caller,
            namespace_id,
            level: PhantomData,
        }
    }
}

impl<L: Level> OptionalScope<L> {
    /// The caller, for an operation on the namespace of the path: the header, where it is sent, names the same one.
    ///
    /// # Errors
    /// 400 when they are two, 404 when the one of the path is not there.
    pub async fn at(&self, app: &App, identifier: &str) -> Result<&Caller> {
        let header = self.namespace_id.as_deref();
        let Some(header) = header.filter(|id| *id != identifier) else {
            return Ok(&self.caller);
        };
        let found = namespaces::NAMESPACES
            .find(app.db(), &self.caller.org_id, identifier)
            .await?;
        if found.id == header {
            return Ok(&self.caller);
        }
        if is_nowhere(header) {
            return Err(ApiError::not_found("namespace", header));
        }
        Err(ApiError::bad_request(
            "namespace_mismatch",
            "X-Namespace and the path name different namespaces",
        ))
    }
}

/// Whose key a request carries, from where it may be used.
///
/// # Errors
/// 401 for every kind of wrong key, 403 for a wrong origin.
pub async fn authenticate(app: &App, headers: &HeaderMap, address: Option<&str>) -> Result<Caller> {
    let caller = identify(app, headers, address).await?;
    check_alive(app, &caller)?;
    welcome(&caller, headers)?;
    Ok(caller)
}

/// Refuses keys that have ended: they tell whose they were, and open nothing.
///
/// # Errors
/// 401 for a key that was revoked or has expired.
pub(crate) fn check_alive(app: &App, caller: &Caller) -> Result<()> {
    let key = &caller.key;
    if key.status == KeyStatus::Revoked {
        return Err(ApiError::unauthenticated(
            "api_key_revoked",
            "this API key was revoked",
        ));
    }
    if key.status == KeyStatus::Expired || key.expires_at.is_some_and(|at| at <= app.clock().now())
    {
        return Err(ApiError::unauthenticated(
            "api_key_expired",
            "this API key has expired",
        ));
    }
    Ok(())
}

/// Refuses origins that the key may not be used from.
///
/// # Errors
/// 403 for a wrong origin.
pub(crate) fn welcome(caller: &Caller, headers: &HeaderMap) -> Result<()> {
    origin::check(&caller.key, headers)
}

/// Finds whose key a request carries, ended or not: its checksum without I/O, then the cache, then one indexed read.
///
/// # Errors
/// 401 for a key that is missing, malformed or not known.
pub(crate) async fn identify(
    app: &App,
    headers: &HeaderMap,
    address: Option<&str>,
) -> Result<Caller> {
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
    let org_id = stored.organization_id.clone().unwrap_or_default();
    Ok(Caller {
        org_id,
        key: stored,
        via: Arc::new(Via::of(headers, address)),
        within: None,
    })
}

async fn caller<L: Level>(parts: &Parts, app: &App) -> Result<Caller> {
    let caller = match parts.extensions.get::<Caller>() {
        Some(ready) => ready.clone(),
        None => authenticate(app, &parts.headers, None).await?,
    };
    check_level(&caller, L::PERMISSION)?;
    Ok(caller)
}

/// Whether the key has the level that an operation takes. What only an admin may do is not for end users, whatever their
/// key says: it would let them make a key that sees everything.
pub(crate) fn check_level(caller: &Caller, needed: Permission) -> Result<()> {
    if caller.has(needed) && !(needed == Permission::Admin && caller.principal().is_some()) {
        return Ok(());
    }
    let needed = serde_json::to_value(needed).unwrap_or_default();
    Err(ApiError::forbidden(
        "permission_denied",
        "this API key lacks the permission for this operation",
    )
    .with("required_permission", needed))
}

pub(crate) fn namespace_header(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(NAMESPACE_HEADER) else {
        return Ok(None);
    };
    let value = value.to_str().unwrap_or_default().trim();
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

/// The namespace that the header names. A list whose header names none is read where nothing is.
async fn resolve(parts: &Parts, app: &App, caller: &Caller, sent: &str) -> Result<String> {
    if namespaces::exists(app, caller, sent).await? {
        return Ok(sent.to_owned());
    }
    if is_visitors(parts) {
        return Err(no_namespace());
    }
    match parts.extensions.get::<Nowhere>() {
        Some(nowhere) => Ok(nowhere.instead_of(sent)),
        None => Err(ApiError::not_found("namespace", sent)),
    }
}

/// Whether a visitor of an app calls, who can name no namespace.
fn is_visitors(parts: &Parts) -> bool {
    parts.extensions.get::<Only>().is_some()
}

fn header_missing(parts: &Parts) -> ApiError {
    if is_visitors(parts) {
        return no_namespace();
    }
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
        let sent = namespace_header(&parts.headers)?.ok_or_else(|| header_missing(parts))?;
        let namespace_id = resolve(parts, &app, &caller, &sent).await?;
        let mut scope = Self::internal(caller, namespace_id);
        scope.caller.within = Some(sent.into());
        Ok(scope)
    }
}

impl<L: Level, S: Send + Sync> FromRequestParts<S> for OptionalScope<L>
where
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let app = App::from_ref(state);
        let mut caller = caller::<L>(parts, &app).await?;
        let sent = namespace_header(&parts.headers)?;
        let namespace_id = match &sent {
            Some(sent) => Some(resolve(parts, &app, &caller, sent).await?),
            None => None,
        };
        caller.within = sent.map(Into::into);
        Ok(Self {
            caller,
            namespace_id,
            level: PhantomData,
        })
    }
}
