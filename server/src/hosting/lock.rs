//! Apps with one password for everybody (`auth_config.mode: password`): before a visitor has given it, nothing of the app is
//! told but its name and how its pages look.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use loupe_hosted::auth::{Field, Page, render};
use loupe_wire::AuthConfigOutputMode;
use subtle::ConstantTimeEq;

use super::{
    Site,
    auth::{requests, same_origin, scripts},
    is_secure,
};
use crate::{
    app::App,
    error::{ApiError, Result},
    front,
    password::{self, Checked, hashing::salt},
    v1::{
        apps,
        audit::{Stranger, repeats},
    },
};

/// Where the password goes.
const UNLOCK: &str = "/_auth/unlock";

/// The script of the form, which tells nothing of the app.
const SCRIPT: &str = "/_auth/form.js";

/// How long a visitor who gave the password need not give it again.
const SECONDS: i64 = 24 * 3600;

/// What keeps an app closed: the hash of its password.
pub(super) fn hash(site: &Site) -> Option<&str> {
    let auth = site.hosted.auth_config.as_ref()?;
    // One whose hash is gone opens for nobody.
    (auth.mode == AuthConfigOutputMode::Password)
        .then(|| auth.password_hash.as_deref().unwrap_or_default())
}

/// Whether a visitor who sends these headers has given the password.
///
/// # Errors
/// The server has no key to sign with.
pub(super) fn is_open(app: &App, site: &Site, hash: &str, headers: &HeaderMap) -> Result<bool> {
    let sent = requests::cookie(headers, &cookie_name(app, site));
    let Some((until, sent)) = sent.and_then(|cookie| cookie.split_once('.')) else {
        return Ok(false);
    };
    let Ok(until) = until.parse::<i64>() else {
        return Ok(false);
    };
    let expected = signature(app, site, hash, until)?;
    let same = bool::from(expected.as_bytes().ct_eq(sent.as_bytes()));
    Ok(same && until > app.clock().micros() / 1_000_000 && !hash.is_empty())
}

/// Answers whoever has not given the password: by the form, by trying what it sent, or by a refusal for scripts.
pub(super) async fn answer(app: &App, site: &Site, hash: &str, request: Request) -> Response {
    let path = request.uri().path();
    if request.method() == Method::POST && path == UNLOCK {
        return match unlock(app, site, hash, request).await {
            Ok(response) => response,
            Err(error) => refused(site, error, "/"),
        };
    }
    let get = matches!(*request.method(), Method::GET | Method::HEAD);
    if get && path == SCRIPT {
        return scripts::form(request.headers());
    }
    let navigates = loupe_hosted::app::files::navigates(request.headers());
    if navigates && get {
        let uri = request.uri().path_and_query();
        let uri = uri.filter(|uri| uri.path() != UNLOCK);
        let return_to = uri.map_or("/", |uri| uri.as_str());
        return form(site, StatusCode::UNAUTHORIZED, Told::default(), return_to);
    }
    let message = "this app has a password: give it on one of its pages first";
    let mut response = ApiError::unauthenticated("password_required", message)
        .with("password_protected", true)
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whether somebody gives the password, also who has given it in another tab.
pub(super) fn is_unlocking(request: &Request) -> bool {
    request.uri().path() == UNLOCK
}

/// Leads whoever is let in already to where the form would have.
pub(super) async fn passed(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let sent = match parts.method {
        Method::POST => requests::body(&parts.headers, body)
            .await
            .unwrap_or_default(),
        _ => Default::default(),
    };
    let to = requests::own_path(sent.get("return_to").map_or("/", String::as_str));
    let to = HeaderValue::from_str(&to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// What an open visitor gets is for nobody else: no cache on the way keeps it.
pub(super) fn keep_private(response: &mut Response) {
    let headers = response.headers_mut();
    let told = headers.get(header::CACHE_CONTROL);
    let told = told.and_then(|value| value.to_str().ok());
    let private = told.map(|told| {
        let told = told.to_ascii_lowercase();
        if told.split(',').any(|one| one.trim() == "no-store") {
            return told;
        }
        let shared = |one: &&str| *one == "public" || one.starts_with("s-maxage");
        // `private="set-cookie"` is of that header alone.
        let kept = told.split(',').map(str::trim);
        let kept =
            kept.filter(|one| !one.is_empty() && !shared(one) && !one.starts_with("private"));
        let kept: Vec<&str> = std::iter::once("private").chain(kept).collect();
        kept.join(", ")
    });
    if let Some(Ok(private)) = private.map(|told| HeaderValue::from_str(&told)) {
        headers.insert(header::CACHE_CONTROL, private);
    }
    headers.append(header::VARY, HeaderValue::from_static("cookie"));
}

async fn unlock(app: &App, site: &Site, hash: &str, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    same_origin(&parts.headers, &parts.uri)?;
    let sent = requests::body(&parts.headers, body).await?;
    let text = |name: &str| sent.get(name).map_or("", String::as_str);
    let return_to = requests::own_path(text("return_to"));
    let tried = text("password");
    let noted = |code| {
        let visitor = Stranger {
            org_id: &site.org_id,
            app_id: site.app_id(),
            way: "POST /_auth/unlock",
            headers: &parts.headers,
        };
        repeats::not_signed_in(app, &visitor, None, code);
    };
    // A hash that is gone is no hash of anything.
    let checked = match hash {
        "" => Ok(Checked::Wrong),
        _ => password::check(app, site.app_id(), front::address(), hash, tried).await,
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(error) => {
            if error.kind() == "TooManyRequestsError" {
                noted("too_many_tries");
            }
            return Ok(refused(site, error, &return_to));
        }
    };
    if !checked.is_right() {
        noted("password_wrong");
        let told = Told {
            error: Some("This is not the password.".to_owned()),
            wait: None,
        };
        return Ok(form(site, StatusCode::UNAUTHORIZED, told, &return_to));
    }
    if checked == Checked::Right {
        apps::renew_password(app, (&site.org_id, site.app_id()), hash, tried).await;
    }
    let until = app.clock().micros() / 1_000_000 + SECONDS;
    let (name, signature) = (cookie_name(app, site), signature(app, site, hash, until)?);
    let secure = if is_secure(app) { "; Secure" } else { "" };
    let cookie = format!(
        "{name}={until}.{signature}; Path=/; Max-Age={SECONDS}; HttpOnly; SameSite=Lax{secure}"
    );
    let value = |text: &str| HeaderValue::from_str(text).map_err(ApiError::internal);
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, value(&return_to)?);
    headers.insert(header::SET_COOKIE, value(&cookie)?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What went wrong, and the seconds until another try.
#[derive(Default)]
struct Told {
    error: Option<String>,
    wait: Option<u64>,
}

fn form(site: &Site, status: StatusCode, told: Told, return_to: &str) -> Response {
    let field = Field {
        name: "password",
        label: "Password",
        kind: "password",
        autocomplete: "current-password",
        value: String::new(),
        hint: "",
    };
    let page = Page {
        title: "Password".into(),
        text: "Whoever runs this app gives you its password.".into(),
        error: told.error,
        wait: told.wait,
        action: Some(UNLOCK),
        fields: vec![field],
        button: "Open",
        return_to: requests::own_path(return_to),
        ..Default::default()
    };
    render(status, &site.style(), &page)
}

/// Too many tries, or no form at all: told on the page, with how long to wait. It leads to where it would have.
fn refused(site: &Site, error: ApiError, return_to: &str) -> Response {
    let (wait, message) = (error.wait(), error.message());
    let status = error.into_response().status();
    let told = Told {
        error: Some(message),
        wait,
    };
    let mut response = form(site, status, told, return_to);
    if let Some(seconds) = wait {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The prefix makes browsers refuse such a cookie from a neighbour's host.
fn cookie_name(app: &App, site: &Site) -> String {
    let prefix = if is_secure(app) { "__Host-" } else { "" };
    format!("{prefix}loupe_open_{}", site.app_id())
}

/// The salt of the hash is among the words: whoever knows the old password does not know the new one, and a hash that is renewed
/// shuts nobody out.
fn signature(app: &App, site: &Site, hash: &str, until: i64) -> Result<String> {
    let (salt, until) = (salt(hash), until.to_string());
    app.vault().signature(&["app", site.app_id(), salt, &until])
}
