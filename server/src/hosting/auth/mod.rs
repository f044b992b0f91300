//! Sign-in of hosted apps, at `/_auth` of each: e-mail and password, providers of OpenID Connect, Google, GitHub, passkeys.
//! Every app has people and sessions of its own.

mod account;
mod arriving;
mod bearer;
mod described;
mod flow;
mod inspect;
mod keys;
mod oidc;
mod passkeys;
mod password;
mod provider;
pub(super) mod requests;
pub(super) mod scripts;
mod session;
mod sessions;
pub mod store;
mod throttle;
mod views;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Response},
};
use loupe_hosted::{
    app::files,
    auth::{Page, render},
};
use sha2::{Digest, Sha256};

pub use bearer::bearer;
pub use inspect::inspect;
pub(crate) use requests::address;
pub use session::{sweep, visitor};
pub use store::User;

use super::{Site, authority};
use crate::{
    app::App,
    error::{ApiError, Result},
    v1::{
        apps,
        audit::{self, repeats},
    },
};

/// What this process remembers of attempts, providers and sessions.
#[derive(Default)]
pub struct Known {
    throttle: throttle::Throttle,
    providers: provider::Providers,
    sessions: session::Kept,
}

/// A request to `/_auth`, taken apart.
struct Asked<'a> {
    app: &'a App,
    site: &'a Site,
    headers: &'a HeaderMap,
    query: requests::Fields,
    form: requests::Fields,
    /// The way in that the request takes; empty where it leads to no session.
    way: &'static str,
    /// Seconds until it may come again, where it came too early.
    wait: Option<u64>,
}

impl Asked<'_> {
    /// Who is there, as the audit log tells it.
    fn visitor(&self) -> audit::Stranger<'_> {
        visitor_of(self.site, self.way, self.headers)
    }

    /// The path of the app that all this leads back to.
    fn return_to(&self) -> String {
        let sent = self
            .form
            .get("return_to")
            .or_else(|| self.query.get("return_to"));
        requests::own_path(sent.map_or("", String::as_str))
    }

    fn text(&self, name: &str) -> &str {
        self.form.get(name).map_or("", |text| text.trim())
    }

    fn page(&self, status: StatusCode, page: &Page) -> Response {
        let wait = self.wait.or(page.wait);
        let page = Page {
            wait,
            ..page.clone()
        };
        waiting(render(status, &self.site.style(), &page), wait)
    }
}

/// An answer that says when to come again, where it came too early.
fn waiting(mut response: Response, wait: Option<u64>) -> Response {
    if let Some(seconds) = wait {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Answers a request to `/_auth` of an app.
pub(super) async fn answer(app: &App, site: Arc<Site>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().strip_prefix("/_auth").unwrap_or_default();
    let get = matches!(parts.method, Method::GET | Method::HEAD);
    match path {
        "/sdk.js" if get => return scripts::SDK.answer(&parts.headers),
        "/form.js" if get => return scripts::FORM.answer(&parts.headers),
        "/passkeys.js" if get => return scripts::PASSKEYS.answer(&parts.headers),
        _ => {}
    }
    if !apps::has_sign_in(site.hosted.auth_config.as_ref()) {
        return missing(&site);
    }
    let query = requests::fields(parts.uri.query().unwrap_or_default().as_bytes());
    let mut back = requests::own_path(query.get("return_to").map_or("", String::as_str));
    let outcome = match (get, parts.method == Method::POST) {
        (true, _) => read(app, &site, path, (&parts, query)).await,
        (_, true) => write(app, &site, path, (&parts, query, body), &mut back).await,
        _ => Err(ApiError::method_not_allowed(
            "",
            "this address is read, or posted to",
        )),
    };
    let way = way_in(get, path);
    if let Some(failed) = Failed::of(&outcome).filter(|_| !way.is_empty()) {
        let visitor = visitor_of(&site, way, &parts.headers);
        repeats::not_signed_in(app, &visitor, failed.user_id.as_deref(), failed.code);
    }
    let mut response = outcome.unwrap_or_else(|error| refused(&site, path, &back, error));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    files::common(headers);
    // Forms name the page's origin only where the page may tell it.
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    response
}

/// The way in that a request takes, as the audit log names it; empty for what signs nobody in.
fn way_in(get: bool, path: &str) -> &'static str {
    match (get, path) {
        (false, "/sign-in") => "POST /_auth/sign-in",
        (false, "/verify") => "POST /_auth/verify",
        (false, "/reset") => "POST /_auth/reset",
        (false, "/password") => "POST /_auth/password",
        (false, "/passkeys/sign-in") => "POST /_auth/passkeys/sign-in",
        (true, "/callback/google") => "GET /_auth/callback/google",
        (true, "/callback/github") => "GET /_auth/callback/github",
        (true, "/callback/oidc") => "GET /_auth/callback/oidc",
        _ => "",
    }
}

fn visitor_of<'a>(
    site: &'a Site,
    way: &'static str,
    headers: &'a HeaderMap,
) -> audit::Stranger<'a> {
    audit::Stranger {
        org_id: &site.org_id,
        app_id: site.app_id(),
        way,
        headers,
    }
}

/// Goes with an answer that signs nobody in: who was meant, where that is known, and why not.
#[derive(Debug, Clone)]
struct Failed {
    user_id: Option<String>,
    code: &'static str,
}

impl Failed {
    /// The same answer, as one that failed.
    fn mark(mut response: Response, user_id: Option<String>, code: &'static str) -> Response {
        response.extensions_mut().insert(Self { user_id, code });
        response
    }

    /// What failed for a reason of the visitor's; a fault of the server or of a provider is told in its log.
    fn of(outcome: &Result<Response>) -> Option<Self> {
        match outcome {
            Ok(response) => response.extensions().get::<Self>().cloned(),
            Err(error) if error.is_callers() || error.kind() == "TooManyRequestsError" => {
                let user_id = None;
                error.code().map(|code| Self { user_id, code })
            }
            Err(_) => None,
        }
    }
}

async fn read(
    app: &App,
    site: &Site,
    path: &str,
    (parts, query): (&Parts, requests::Fields),
) -> Result<Response> {
    let asked = Asked {
        app,
        site,
        headers: &parts.headers,
        query,
        form: requests::Fields::default(),
        way: way_in(true, path),
        wait: None,
    };
    match path {
        "/session" => session::tell(&asked).await,
        "/me" => session::me(&asked).await,
        "/users" => session::people(&asked).await,
        "/sign-in" => Ok(views::sign_in(&asked, StatusCode::OK, None)),
        "/sign-up" => Ok(views::sign_up(&asked, StatusCode::OK, None)),
        "/forgot" => Ok(views::forgot(&asked, StatusCode::OK, None)),
        "/reset" => Ok(views::reset(&asked, StatusCode::OK, None)),
        "/verify" => flow::verify_page(&asked).await,
        "/done" => Ok(views::done(&asked)),
        "/passkeys" => passkeys::page(&asked).await,
        "/sessions" => sessions::page(&asked).await,
        "/account" => account::page(&asked).await,
        "/password" => account::password_page(&asked).await,
        path => match path.strip_prefix("/callback/") {
            Some(name) => provider::callback(&asked, name).await,
            None => Ok(missing(site)),
        },
    }
}

/// `back` becomes the path of the app that the form leads back to, also where it fails.
async fn write(
    app: &App,
    site: &Site,
    path: &str,
    (parts, query, body): (&Parts, requests::Fields, Body),
    back: &mut String,
) -> Result<Response> {
    same_origin(&parts.headers, &parts.uri)?;
    let form = requests::body(&parts.headers, body).await?;
    let asked = Asked {
        app,
        site,
        headers: &parts.headers,
        query,
        form,
        way: way_in(false, path),
        wait: None,
    };
    *back = asked.return_to();
    match written(&asked, path).await {
        Err(error) => again(asked, path, error),
        answered => answered,
    }
}

async fn written(asked: &Asked<'_>, path: &str) -> Result<Response> {
    match path {
        "/sign-in" => flow::sign_in(asked).await,
        "/sign-up" => flow::sign_up(asked).await,
        "/verify" => flow::verify(asked).await,
        "/forgot" => flow::forgot(asked).await,
        "/reset" => flow::reset(asked).await,
        "/sign-out" => session::sign_out(asked).await,
        "/start" => provider::start(asked).await,
        "/passkeys/options" => passkeys::options(asked).await,
        "/passkeys/sign-in" => passkeys::sign_in(asked).await,
        "/passkeys/add" => passkeys::add(asked).await,
        "/passkeys/remove" => passkeys::remove(asked).await,
        "/sessions/end" => sessions::end(asked).await,
        "/account" => account::rename(asked).await,
        "/password" => account::change_password(asked).await,
        _ => Ok(missing(asked.site)),
    }
}

/// A form that came too early is there again as it was filled in, with how long to wait. Any other fault is told by itself.
fn again(asked: Asked<'_>, path: &str, error: ApiError) -> Result<Response> {
    if error.wait().is_none() || !views::has_form(path) {
        return Err(error);
    }
    let (wait, message) = (error.wait(), error.message());
    let code = error.code();
    let code = code.filter(|_| error.kind() == "TooManyRequestsError");
    let status = error.into_response().status();
    let asked = Asked { wait, ..asked };
    let page = views::again(&asked, path, status, message);
    Ok(match code {
        Some(code) => Failed::mark(page, None, code),
        None => page,
    })
}

/// Whether a page of this very host sends the request: browsers say so, and no page can say it for them.
///
/// # Errors
/// 403 from anywhere else.
pub fn same_origin(headers: &HeaderMap, uri: &Uri) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let own = match text("origin") {
        Some(origin) => origin.split_once("://").is_some_and(|(scheme, host)| {
            matches!(scheme, "http" | "https") && Some(host) == authority(headers, uri)
        }),
        // Without an origin only what a browser says of itself counts; programs without cookies may come.
        None => match text("sec-fetch-site") {
            Some(site) => site == "same-origin",
            None => !headers.contains_key(header::COOKIE),
        },
    };
    if own {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "origin_not_allowed",
        "this comes from a page of another origin",
    ))
}

fn missing(site: &Site) -> Response {
    let page = Page {
        title: "Page not found".into(),
        text: "There is nothing at this address.".into(),
        links: vec![("/".into(), "To the app")],
        ..Default::default()
    };
    render(StatusCode::NOT_FOUND, &site.style(), &page)
}

/// What scripts ask is refused in JSON, what people see on a page, from which they sign in to where they were going.
fn refused(site: &Site, path: &str, back: &str, error: ApiError) -> Response {
    let by_script = [
        "/session",
        "/me",
        "/users",
        "/sign-out",
        "/passkeys/options",
    ];
    if by_script.contains(&path) {
        return error.into_response();
    }
    let wait = error.wait();
    let message = error.message();
    let answer = error.into_response();
    let page = Page {
        title: "That did not work".into(),
        error: Some(message),
        wait,
        links: vec![
            (views::link_back("sign-in", back), "Sign in"),
            ("/".into(), "To the app"),
        ],
        ..Default::default()
    };
    waiting(render(answer.status(), &site.style(), &page), wait)
}

/// What is kept instead of a secret that a browser holds.
fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}
