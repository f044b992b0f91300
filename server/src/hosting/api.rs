//! `/api` of an app: the server's own API, in process, with the owner's authority, as far as the owner lets visitors go.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use loupe_hosted::app::files;
use loupe_wire::{APIKeyModel, APIKeyType, ApiAllowRule, Permission};
use tower::ServiceExt;

use super::{Site, auth, limits};
use crate::{
    app::App,
    auth::{
        Caller,
        table::{Access, Row, TABLE},
    },
    error::{ApiError, Result},
    front,
    v1::{apps, namespaces, retrievers},
};

/// What visitors may call where the owner says nothing: reading and searching.
const READING: [&str; 20] = [
    "GET /v1/retrievers",
    "POST /v1/retrievers/list",
    "GET /v1/retrievers/{retriever_id}",
    "POST /v1/retrievers/{retriever_id}/execute",
    "GET /v1/collections",
    "POST /v1/collections/list",
    "GET /v1/collections/{collection_identifier}",
    "GET /v1/collections/{collection_identifier}/documents",
    "POST /v1/collections/{collection_identifier}/documents/list",
    "GET /v1/collections/{collection_identifier}/documents/{document_id}",
    "POST /v1/collections/{collection_identifier}/documents/aggregate",
    "POST /v1/collections/{collection_identifier}/documents/distinct",
    "GET /v1/documents/{document_id}",
    "POST /v1/documents/batch-get",
    "POST /v1/documents/list",
    "GET /v1/marketplace/catalog",
    "GET /v1/marketplace/catalog/{public_name}",
    "GET /v1/marketplace/catalog/{public_name}/config",
    "GET /v1/marketplace/catalog/{public_name}/template",
    "POST /v1/marketplace/catalog/{public_name}/execute",
];

/// Beginnings of operations that an owner may open, and pieces of those that nobody may.
const OPEN: [&str; 4] = [
    "/v1/retrievers",
    "/v1/collections",
    "/v1/documents",
    "/v1/marketplace",
];
const CLOSED: [&str; 3] = ["api-keys", "publish", "/acl"];

/// What takes stages: a visitor would say which databases are read, which services are asked and what is spent.
const OF_STAGES: [&str; 3] = [
    "POST /v1/retrievers",
    "POST /v1/retrievers/execute",
    "POST /v1/retrievers/{retriever_id}/clone",
];

/// The only headers of a visitor that the API hears of.
const PASSED: [HeaderName; 5] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
];

/// How far visitors may go; the gate asks once it knows the operation.
#[derive(Debug, Clone)]
pub struct Only {
    rules: Vec<ApiAllowRule>,
    path: String,
}

impl Only {
    /// Whether the owner opened this operation.
    ///
    /// # Errors
    /// 404: what is not open is not there.
    pub fn check(&self, row: &Row, method: &Method) -> Result<()> {
        let open = if self.rules.is_empty() {
            READING.contains(&row.operation)
        } else {
            may_be_opened(row)
                && (self.rules.iter()).any(|rule| fits(rule, method.as_str(), &self.path, is))
        };
        if open {
            return Ok(());
        }
        Err(ApiError::not_found("path", &self.path))
    }
}

/// Whether a rule lets through this method and path, by what makes a name of its pattern one of the path.
fn fits(rule: &ApiAllowRule, method: &str, path: &str, is: fn(&str, &str) -> bool) -> bool {
    let takes = |name: &String| name == "*" || name.eq_ignore_ascii_case(method);
    let pattern = rule.pattern.strip_prefix("/v1").unwrap_or(&rule.pattern);
    let pattern = pattern.strip_prefix("/api").unwrap_or(pattern);
    let path = path.strip_prefix("/v1").unwrap_or(path);
    (rule.methods.is_empty() || rule.methods.iter().any(takes)) && matches(pattern, path, is)
}

/// The levels of the operations that visitors may call by these rules: what they do, the owner does.
pub fn levels(rules: &[ApiAllowRule]) -> Vec<Permission> {
    let asks = |level: &Permission| {
        let rows = TABLE.iter();
        let rows = rows.filter(|row| rules.iter().any(|rule| opens(rule, row)));
        let mut asked = rows.map(|row| match row.access {
            Access::Level(level) => level,
            Access::Public | Access::AnyKey | Access::Execute => Permission::Read,
        });
        *level == Permission::Read || asked.any(|asked| asked == *level)
    };
    [Permission::Read, Permission::Write, Permission::Delete]
        .into_iter()
        .filter(asks)
        .collect()
}

/// Whether visitors may call anything at all by this rule.
pub fn opens_something(rule: &ApiAllowRule) -> bool {
    TABLE.iter().any(|row| opens(rule, row))
}

/// Whether a rule opens an operation for some of what its path may name.
fn opens(rule: &ApiAllowRule, row: &Row) -> bool {
    let stands = |wanted: &str, name: &str| is(wanted, name) || name.starts_with('{');
    let parts = row.operation.split_once(' ');
    may_be_opened(row) && parts.is_some_and(|(method, path)| fits(rule, method, path, stands))
}

fn may_be_opened(row: &Row) -> bool {
    if OF_STAGES.contains(&row.operation) {
        return false;
    }
    let Some((_, path)) = row.operation.split_once(' ') else {
        return false;
    };
    let open = OPEN.iter().any(|start| {
        path.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    open && !CLOSED.iter().any(|piece| path.contains(piece))
        && row.access != Access::Level(Permission::Admin)
}

/// `*` stands for one name, `**` at the end for all that follows.
fn matches(pattern: &str, path: &str, is: fn(&str, &str) -> bool) -> bool {
    let mut names = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return names.next().is_some_and(|name| !name.is_empty());
        }
        match names.next() {
            Some(name) if is(wanted, name) => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// Whether a name of a pattern is this name of a path.
fn is(wanted: &str, name: &str) -> bool {
    wanted == name || (wanted == "*" && !name.is_empty())
}

/// Answers a call of an app's own `/api`.
pub(super) async fn answer(app: &App, server: &Router, site: &Site, request: Request) -> Response {
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
    // A session of the API is none of the app, and what is answered is for this visitor.
    response.headers_mut().remove(header::SET_COOKIE);
    let cache = HeaderValue::from_static("private, no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, cache);
    files::common(response.headers_mut());
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        // What is not open is not there, in whatever way it is asked for.
        return ApiError::not_found("path", "/api").into_response();
    }
    response
}

/// Who made a call, for the owner's log.
#[derive(Debug, Clone)]
pub(super) struct Visitor(pub String);

/// The visitor's request as the API hears it, and who the visitor is.
async fn pass(app: &App, site: &Site, request: Request) -> Result<(Request, Option<String>)> {
    let (mut parts, body) = request.into_parts();
    let path = path(parts.uri.path())?;
    let visitor = visitor(app, site, &parts.headers).await?;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        auth::same_origin(&parts.headers, &parts.uri)?;
        is_json(&parts.headers)?;
    }
    let who = visitor.clone();
    let who = who.unwrap_or_else(|| front::network(front::address()));
    limits::take(app, &site.org_id, site.app_id(), &who).await?;
    let namespace = namespace(app, site, &path).await?;
    let kept = PASSED
        .into_iter()
        .filter_map(|name| Some((name.clone(), parts.headers.get(&name)?.clone())));
    parts.headers = kept.collect();
    if let Some(namespace) = namespace.and_then(|id| HeaderValue::from_str(&id).ok()) {
        parts.headers.insert("x-namespace", namespace);
    }
    let query = parts
        .uri
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    parts.uri =
        Uri::try_from(format!("{path}{query}")).map_err(|_| ApiError::not_found("path", &path))?;
    // What the split of the host left there is none of the API.
    parts.extensions = axum::http::Extensions::new();
    let mut request = Request::from_parts(parts, body);
    request
        .extensions_mut()
        .insert(caller(site, visitor.clone()));
    let build = site.hosted.build_config.as_ref();
    let rules = build.map(|build| build.api_allow.clone());
    let rules = rules.unwrap_or_default();
    request.extensions_mut().insert(Only { rules, path });
    Ok((request, visitor))
}

/// Who calls, as the app asks for it: who is signed in, whom the token is about, which key it is; nobody where everybody may.
async fn visitor(app: &App, site: &Site, headers: &HeaderMap) -> Result<Option<String>> {
    let settings = site.hosted.auth_config.as_ref();
    if let Some(settings) = settings.filter(|_| apps::has_bearers(settings)) {
        let outcome = auth::bearer(app, settings, headers).await;
        if outcome.is_err() {
            // Who proves nothing has as few tries as a visitor has calls.
            let network = front::network(front::address());
            limits::take_own(app, &site.org_id, site.app_id(), &network).await?;
        }
        return outcome.map(Some);
    }
    let visitor = auth::visitor(app, site, headers).await?;
    if apps::has_sign_in(settings) && visitor.is_none() {
        return Err(ApiError::unauthenticated(
            "sign_in_required",
            "sign in to this app first",
        ));
    }
    Ok(visitor.map(|user| user.user_id))
}

/// `/api/retrievers` and `/api/v1/retrievers` are both `/v1/retrievers`. A path that somebody could read differently is none.
fn path(sent: &str) -> Result<String> {
    let rest = sent.strip_prefix("/api").unwrap_or_default();
    let rest = rest.strip_prefix("/v1").unwrap_or(rest);
    let odd = rest.bytes().any(|byte| matches!(byte, b'%' | b'\\' | b';'));
    let twice = |at: &[u8]| matches!(at, b"//" | b"..");
    let odd = odd || rest.as_bytes().windows(2).any(twice);
    if !rest.starts_with('/') || odd {
        return Err(ApiError::not_found("path", sent));
    }
    Ok(format!("/v1{}", rest.trim_end_matches('/')))
}

/// A page of another origin can send forms and plain text without asking; it cannot send JSON.
fn is_json(headers: &HeaderMap) -> Result<()> {
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

/// The owner, through the app: all of the organization's data, none of its keys and people. With the variable
/// `LOUPE_PRINCIPAL` set to `user`, visitors see and change only what is theirs.
fn caller(site: &Site, user: Option<String>) -> Caller {
    let own = apps::variable(&site.hosted, "LOUPE_PRINCIPAL") == Some("user");
    // Without sign-in nobody owns anything.
    let principal_id = own.then(|| user.unwrap_or_else(|| "nobody".into()));
    Caller::internal(APIKeyModel {
        key_id: Some(site.app_id().to_owned()),
        internal_id: site.org_id.clone(),
        organization_id: Some(site.org_id.clone()),
        user_id: site.hosted.created_by.clone(),
        name: format!("app {}", site.hosted.slug),
        permissions: vec![Permission::Delete],
        key_type: if principal_id.is_some() {
            APIKeyType::UserScoped
        } else {
            APIKeyType::default()
        },
        principal_id,
        ..Default::default()
    })
}

/// The namespace that the call is about: the app's own, that of the retriever that is called, or the only one there is.
async fn namespace(app: &App, site: &Site, path: &str) -> Result<Option<String>> {
    let named = apps::variable(&site.hosted, apps::NAMESPACE).map(ToOwned::to_owned);
    if let Some(namespace) = named.or_else(|| site.hosted.namespace_id.clone()) {
        return Ok(Some(namespace));
    }
    let retriever = path
        .strip_prefix("/v1/retrievers/")
        .and_then(|rest| rest.split('/').next());
    if let Some(id) = retriever
        && let Some(found) = retrievers::namespace_of(app.db(), &site.org_id, id).await?
    {
        return Ok(Some(found));
    }
    namespaces::only_one(app.db(), &site.org_id).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, path, expected) in [
            ("/retrievers/*/execute", "/retrievers/ret_1/execute", true),
            (
                "/retrievers/*/execute",
                "/retrievers/ret_1/execute/x",
                false,
            ),
            ("/retrievers/*/execute", "/retrievers//execute", false),
            ("/documents/**", "/documents/a/b", true),
            ("/documents/**", "/documents", false),
            ("/documents/**", "/documents/", false),
            ("/documents", "/documents", true),
            ("/doc*", "/documents", false),
        ] {
            assert_eq!(matches(pattern, path, is), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn no_rule_opens_keys_people_or_pages() {
        let everything = Only {
            rules: vec![ApiAllowRule {
                methods: Vec::new(),
                pattern: "/**".into(),
            }],
            path: "/v1/anything".into(),
        };
        let (mut open, mut closed) = (0, 0);
        for row in TABLE {
            let (method, path) = row.operation.split_once(' ').unwrap();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let allowed = everything.check(row, &method).is_ok();
            let data = OPEN.iter().any(|start| path.starts_with(start));
            assert!(!allowed || data, "{} is open", row.operation);
            assert!(
                !allowed || !(path.contains("api-keys") || path.contains("publish")),
                "{} is open",
                row.operation
            );
            assert!(
                !allowed || !OF_STAGES.contains(&row.operation),
                "{} is open",
                row.operation
            );
            if allowed { open += 1 } else { closed += 1 }
        }
        assert!(open > 30 && closed > 120, "{open} open, {closed} closed");
        for operation in READING.iter().chain(&OF_STAGES) {
            assert!(
                TABLE.iter().any(|row| row.operation == *operation),
                "{operation}"
            );
        }
    }

    #[test]
    fn rules_ask_for_the_levels_of_what_they_open() {
        use Permission::{Delete, Read, Write};
        for (methods, pattern, expected) in [
            (&["POST"][..], "/retrievers/*/execute", &[Read][..]),
            // As the id of a benchmark the last word is one that is deleted.
            (&[], "/retrievers/*/execute", &[Read, Delete]),
            (&["GET"], "/**", &[Read]),
            (&["post"], "/collections/films/documents", &[Read, Write]),
            (&["DELETE"], "/collections/*", &[Read, Delete]),
            (&["*"], "/v1/documents/*", &[Read, Write]),
            (&[], "/api/collections/**", &[Read, Write, Delete]),
            (&["DELETE"], "/organizations/**", &[Read]),
        ] {
            let rule = ApiAllowRule {
                methods: methods.iter().map(ToString::to_string).collect(),
                pattern: pattern.into(),
            };
            assert_eq!(levels(&[rule]), expected, "{methods:?} {pattern}");
        }
    }

    #[test]
    fn rules_that_open_nothing_are_known() {
        for (methods, pattern, opens) in [
            (&["get"][..], "/documents/doc_1", true),
            (&[], "/retrievers/*/execute", true),
            (&[], "/v1/collections/films/documents", true),
            (&["DELETE"], "/marketplace/catalog", false),
            (&["PUT"], "/retrievers/*/execute", false),
            (&[], "/organizations/**", false),
            (&["POST"], "/retrievers/*/publish", false),
            (&["POST"], "/retrievers", false),
            (&[], "/collection/films", false),
        ] {
            let rule = ApiAllowRule {
                methods: methods.iter().map(ToString::to_string).collect(),
                pattern: pattern.into(),
            };
            assert_eq!(opens_something(&rule), opens, "{methods:?} {pattern}");
        }
    }

    #[test]
    fn odd_paths_are_none() {
        assert_eq!(
            path("/api/retrievers/x/execute").unwrap(),
            "/v1/retrievers/x/execute"
        );
        assert_eq!(path("/api/v1/retrievers/").unwrap(), "/v1/retrievers");
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
