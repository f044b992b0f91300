//! `/api` of an app: the server's own API, in process, with the owner's authority, as far as the owner lets visitors go.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use loupe_hosted::app::files;
use loupe_wire::{APIKeyModel, APIKeyType, Permission};
use tower::ServiceExt;

use super::{Site, allowed::is_open, auth, limits};
use crate::{
    app::App,
    auth::{self as access, Caller, Via, table::Row},
    error::{ApiError, Result},
    front,
    limits::{Places, Standing},
    v1::{
        apps::{self, Hosted},
        namespaces, retrievers,
    },
};

/// The only headers of a visitor that the API hears of.
static PASSED: [HeaderName; 5] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
];

const NAMESPACE: HeaderName = HeaderName::from_static("x-namespace");

/// What calls of visitors need of an app: made once for many of them.
pub(super) struct Calls {
    /// Who calls.
    owner: Caller,
    /// Each visitor sees and changes only what is theirs.
    own: bool,
    /// Visitors are called as tokens and keys of the owner's call them, which may be as anybody is called.
    named_elsewhere: bool,
    /// Whether the app says in which namespace, and how the API hears of it.
    names_namespace: bool,
    namespace: Option<HeaderValue>,
    together: limits::Together,
}

impl Calls {
    pub fn of(app: &App, org_id: &str, hosted: &Hosted) -> Self {
        let named = apps::named(hosted);
        Self {
            owner: owner(org_id, hosted),
            own: apps::check::is_own(hosted),
            named_elsewhere: apps::has_bearers(hosted.auth_config.as_ref()),
            names_namespace: named.is_some(),
            namespace: named.and_then(|id| HeaderValue::from_str(id).ok()),
            together: limits::Together::of(app, org_id, &hosted.app_id),
        }
    }

    /// Who calls for this visitor. With the variable `LOUPE_PRINCIPAL` set to `user`, visitors see and change only what is
    /// theirs; without sign-in nobody owns anything.
    fn caller(&self, visitor: Option<&str>, headers: &HeaderMap) -> Caller {
        let mut caller = match self.own {
            false => self.owner.clone(),
            true => Caller::internal(APIKeyModel {
                key_type: APIKeyType::UserScoped,
                principal_id: Some(visitor.unwrap_or("nobody").to_owned()),
                ..APIKeyModel::clone(&self.owner.key)
            }),
        };
        let name = visitor.map(|visitor| match self.named_elsewhere {
            true => [self.owner.actor(), "/", visitor].concat(),
            false => visitor.to_owned(),
        });
        caller.via = Arc::new(via(name, headers));
        caller
    }
}

/// What the audit log tells of a call: it is the visitor's, not the owner's.
fn via(visitor: Option<String>, headers: &HeaderMap) -> Via {
    let address = front::address().map(|address| address.to_string());
    Via {
        // A reason is for those who change something of their own.
        reason: None,
        visitor: Some(match visitor {
            Some(visitor) => access::Visitor::Known(visitor),
            None => access::Visitor::Anybody,
        }),
        ..Via::of(headers, address.as_deref())
    }
}

/// The owner, through the app: all of the organization's data, none of its keys and people.
fn owner(org_id: &str, hosted: &Hosted) -> Caller {
    Caller::internal(APIKeyModel {
        key_id: Some(hosted.app_id.clone()),
        internal_id: org_id.to_owned(),
        organization_id: Some(org_id.to_owned()),
        user_id: hosted.created_by.clone(),
        name: format!("app {}", hosted.slug),
        permissions: vec![Permission::Delete],
        key_type: APIKeyType::default(),
        ..Default::default()
    })
}

/// How far visitors may go; the gate asks once it knows the operation.
#[derive(Clone)]
pub struct Only {
    site: Arc<Site>,
    /// Who calls: who is signed in, else the network that the call comes from.
    visitor: Arc<str>,
    /// How the organization stood when the call was counted.
    standing: Standing,
}

impl Only {
    /// Whether the owner opened this operation.
    ///
    /// # Errors
    /// 404: what is not open is not there.
    pub fn check(&self, row: &Row, method: &Method, path: &str) -> Result<()> {
        let build = self.site.hosted.build_config.as_ref();
        let rules = match build {
            Some(build) => build.api_allow.as_slice(),
            None => &[],
        };
        if is_open(rules, row, method, path) {
            return Ok(());
        }
        Err(ApiError::not_found("path", path))
    }

    /// Who calls, as visitors of this app are told apart.
    pub fn visitor(&self) -> &str {
        &self.visitor
    }

    /// What was found for this call already: how the organization stands, and where its visitors are counted.
    pub fn brought(&self) -> (Standing, Places) {
        (self.standing, self.site.calls.together.places())
    }
}

/// What a visitor is told of a call that would need a namespace, where the app names none that is there.
pub fn no_namespace() -> ApiError {
    ApiError::unauthorized(
        "app_without_namespace",
        "This app is not set up completely: whoever runs it has to choose what it searches.",
    )
}

/// Answers a call of an app's own `/api`.
pub(super) async fn answer(
    app: &App,
    server: &Router,
    site: &Arc<Site>,
    request: Request,
) -> Response {
    let mut response = match pass(app, site, request).await {
        Ok((request, visitor)) => {
            let mut response = match server.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            if let Some(visitor) = visitor {
                response.extensions_mut().insert(Visitor(visitor));
            }
            response
        }
        Err(error) => error.into_response(),
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        // What is not open is not there, in whatever way it is asked for.
        response = ApiError::not_found("path", "/api").into_response();
    }
    let headers = response.headers_mut();
    // A session of the API is none of the app, and what is answered is for this visitor.
    headers.remove(header::SET_COOKIE);
    files::common(headers);
    headers.insert(header::CACHE_CONTROL, PRIVATE);
    response
}

const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-store");

/// Who made a call, for the owner's log.
#[derive(Debug, Clone)]
pub(super) struct Visitor(pub String);

/// The visitor's request as the API hears it, and who the visitor is.
async fn pass(app: &App, site: &Arc<Site>, request: Request) -> Result<(Request, Option<String>)> {
    let (mut parts, body) = request.into_parts();
    let uri = target(&parts.uri)?;
    let visitor = visitor(app, site, &parts.headers).await?;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        auth::same_origin(&parts.headers, &parts.uri)?;
        is_json(&parts.headers)?;
    }
    let place = (site.org_id.as_str(), site.app_id());
    let who: Arc<str> = match &visitor {
        Some(visitor) => visitor.as_str().into(),
        None => front::network(front::address()).into(),
    };
    let standing = limits::take_own(app, place, &who).await?;
    site.calls.together.take(app)?;
    let namespace = namespace(app, site, uri.path()).await?;
    let caller = site.calls.caller(visitor.as_deref(), &parts.headers);
    parts.headers = passed(parts.headers, namespace);
    parts.uri = uri;
    // What the split of the host left there is none of the API.
    parts.extensions.clear();
    let mut request = Request::from_parts(parts, body);
    let extensions = request.extensions_mut();
    extensions.insert(caller);
    extensions.insert(Only {
        site: site.clone(),
        visitor: who,
        standing,
    });
    Ok((request, visitor))
}

/// The headers that the API hears of. Of one that comes several times the first counts.
fn passed(sent: HeaderMap, namespace: Option<HeaderValue>) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(PASSED.len() + 1);
    for (name, value) in sent {
        // Only the first of several has a name.
        if let Some(name) = name.filter(|name| PASSED.contains(name)) {
            kept.insert(name, value);
        }
    }
    if let Some(namespace) = namespace {
        kept.insert(NAMESPACE, namespace);
    }
    kept
}

/// Who calls, as the app asks for it: who is signed in, whom the token is about, which key it is; nobody where everybody may.
async fn visitor(app: &App, site: &Site, headers: &HeaderMap) -> Result<Option<String>> {
    let settings = site.hosted.auth_config.as_ref();
    if let Some(settings) = settings.filter(|_| apps::has_bearers(settings)) {
        // In a box, as the session is: most calls need neither, and all have room for both.
        let outcome = Box::pin(auth::bearer(app, settings, headers)).await;
        if outcome.is_err() {
            // Who proves nothing has as few tries as a visitor has calls.
            let network = front::network(front::address());
            limits::take_own(app, (&site.org_id, site.app_id()), &network).await?;
        }
        return outcome.map(Some);
    }
    if !apps::has_sign_in(settings) {
        return Ok(None);
    }
    match Box::pin(auth::visitor(app, site, headers)).await? {
        Some(user) => Ok(Some(user.user_id)),
        None => Err(ApiError::unauthenticated(
            "sign_in_required",
            "sign in to this app first",
        )),
    }
}

/// Where the API has what a visitor calls.
fn target(sent: &Uri) -> Result<Uri> {
    let path = path(sent.path())?;
    let long = sent.path_and_query().map_or(0, |all| all.as_str().len());
    let mut target = String::with_capacity(long + "/v1?".len());
    target.push_str("/v1");
    target.push_str(path);
    if let Some(query) = sent.query() {
        target.push('?');
        target.push_str(query);
    }
    Uri::try_from(target).map_err(|_| ApiError::not_found("path", sent.path()))
}

/// What follows `/v1`: `/api/retrievers` and `/api/v1/retrievers` are both `/v1/retrievers`. A path that somebody could read
/// differently is none.
fn path(sent: &str) -> Result<&str> {
    let rest = sent.strip_prefix("/api").unwrap_or_default();
    let rest = rest.strip_prefix("/v1").unwrap_or(rest);
    let odd = rest.bytes().any(|byte| matches!(byte, b'%' | b'\\' | b';'));
    let twice = |at: &[u8]| matches!(at, b"//" | b"..");
    let odd = odd || rest.as_bytes().windows(2).any(twice);
    if !rest.starts_with('/') || odd {
        return Err(ApiError::not_found("path", sent));
    }
    Ok(rest.trim_end_matches('/'))
}

/// A page of another origin can send forms and plain text without asking; it cannot send JSON.
pub(super) fn is_json(headers: &HeaderMap) -> Result<()> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let empty = headers
        .get(header::CONTENT_LENGTH)
        .is_none_or(|length| length == "0")
        && !headers.contains_key(header::TRANSFER_ENCODING);
    let json =
        kind.is_some_and(|kind| kind.split(';').next().map(str::trim) == Some("application/json"));
    if json || (kind.is_none() && empty) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "json_required",
        "send the body as application/json",
    ))
}

/// The namespace that the call is about: the app's own, that of the retriever that is called, or the only one there is.
async fn namespace(app: &App, site: &Site, path: &str) -> Result<Option<HeaderValue>> {
    if site.calls.names_namespace {
        return Ok(site.calls.namespace.clone());
    }
    let retriever = path
        .strip_prefix("/v1/retrievers/")
        .and_then(|rest| rest.split('/').next());
    Box::pin(found(app, &site.org_id, retriever.unwrap_or_default())).await
}

/// The namespace of a retriever, else the only one there is; from memory for a moment, while none was made or removed here.
async fn found(app: &App, org_id: &str, retriever: &str) -> Result<Option<HeaderValue>> {
    let key = (org_id.to_owned(), retriever.to_owned());
    let changes = app.db().definitions();
    if let Some((known_at, known)) = app.hosting.namespaces.get(&key)
        && known_at == changes
    {
        return Ok(known);
    }
    let mut found = match retriever {
        "" => None,
        id => retrievers::namespace_of(app.db(), org_id, id).await?,
    };
    if found.is_none() {
        found = namespaces::only_one(app.db(), org_id).await?;
    }
    let found = found.and_then(|id| HeaderValue::from_str(&id).ok());
    let told = (changes, found.clone());
    app.hosting.namespaces.insert(key, told);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_are_none() {
        assert_eq!(
            path("/api/retrievers/x/execute").unwrap(),
            "/retrievers/x/execute"
        );
        assert_eq!(path("/api/v1/retrievers/").unwrap(), "/retrievers");
        for (sent, called) in [
            ("/api/documents/a?x=1&y=/", "/v1/documents/a?x=1&y=/"),
            ("/api/v1/documents/?", "/v1/documents?"),
        ] {
            let target = target(&Uri::from_static(sent)).unwrap();
            assert_eq!(target.to_string(), called);
        }
        for odd in [
            "/api",
            "/apiretrievers",
            "/api/v1retrievers",
            "/api/../v1/organizations",
            "/api/retrievers/%2e%2e/x",
            "/api//retrievers",
            "/api/retrievers\\x",
            "/api/retrievers;x",
        ] {
            assert!(path(odd).is_err(), "{odd}");
        }
    }
}
