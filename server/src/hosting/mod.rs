//! Hosted apps as visitors meet them: which host is whose, and what answers there. The split by host comes before every
//! path: nothing of the server itself is reachable on the host of an app, and nothing of an app on the server's.

pub mod allowed;
pub mod api;
pub mod auth;
mod before;
mod files;
pub mod limits;
mod lock;
mod notes;
pub mod visits;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
pub use before::lead;
use bytes::Bytes;
use loupe_hosted::{
    app::{
        files::{self as served, Manifest},
        headers::Rules,
    },
    auth::{Page, Style, render},
};
use moka::sync::Cache;

use crate::{
    app::App,
    config::Config,
    error::Result,
    v1::apps::{self, Hosted, PRODUCTION, STAGING, store},
};

/// How long what is known of a host is told without asking. Another process's change is seen within a second, also by whoever
/// asked for the app just before it and is told just after it.
const SEEN: Duration = Duration::from_millis(750);

/// The same where no other process changes anything.
const SEEN_ALONE: Duration = Duration::from_secs(5);

/// Bytes of files that are kept in memory, and of lists of files.
const KEPT: u64 = 64 << 20;
const LISTS: u64 = 32 << 20;

/// What this process knows of apps.
pub struct Hosting {
    /// Hosts that are the server's own.
    own: Vec<String>,
    /// `.example.com`: apps are the names before it.
    suffix: String,
    /// Each with the number of changes when it was read: what was read before the last is not told.
    sites: Cache<String, (u64, Known)>,
    changes: AtomicU64,
    /// Namespaces by organization and retriever, or of organizations with one, each with the number of changes of definitions.
    namespaces: Cache<(String, String), (u64, Option<HeaderValue>)>,
    contents: Cache<(String, i64), Arc<Content>>,
    files: Cache<String, Bytes>,
    /// Sign-in: attempts, and what providers say of themselves.
    pub auth: auth::Known,
    /// What visitors did, on its way to the database.
    pub visits: visits::Visits,
    /// Keys of apps that lay in the database in clear were looked for.
    pub has_cleared: AtomicBool,
}

/// What a version serves. It never changes.
#[derive(Debug)]
pub struct Content {
    pub files: Manifest,
    /// What the app says of them.
    pub headers: Rules,
}

/// An app at one of its hosts.
pub struct Site {
    pub org_id: String,
    pub hosted: Hosted,
    pub version: i64,
    pub content: Arc<Content>,
    /// Versions that were served here a while ago, the last one first.
    pub earlier: Vec<i64>,
    /// Not what everybody sees: search engines stay away.
    pub preview: bool,
    /// The host that was asked, by the name that is the app's, with the scheme and the port of this server: what a request
    /// adds to it, such as another port, leads nobody anywhere.
    pub origin: String,
    /// The address that mails name, without a slash at the end. The host of a request may be anything that leads here.
    pub home: String,
    /// What the script in the pages is told; absent without sign-in.
    pub script: Option<String>,
    calls: api::Calls,
}

impl Site {
    pub fn app_id(&self) -> &str {
        &self.hosted.app_id
    }

    /// What its pages of sign-in look like.
    pub fn style(&self) -> Style {
        let page = self.hosted.page();
        Style {
            name: page.meta.title.clone(),
            logo: page.meta.logo_url.clone(),
            primary: page.theme.primary_color.clone(),
            background: page.theme.background_color.clone(),
            text: page.theme.text_color.clone(),
            surface: page.theme.surface_color.clone(),
            border: page.theme.border_color.clone(),
            font: page.theme.font_family.clone(),
            radius: page.theme.border_radius.clone(),
            icon: self.icon(),
        }
    }

    /// The app's own icon: the one that its page names, else one of its files, else its logo. Of an app that a password closes
    /// the files are closed, too.
    fn icon(&self) -> Option<String> {
        const FILES: [&str; 3] = ["favicon.svg", "favicon.ico", "favicon.png"];
        let meta = &self.hosted.page().meta;
        let named = meta.favicon_url.as_ref().filter(|url| !url.is_empty());
        let is_closed = self.hosted.is_password_protected();
        let has = |name: &&&str| !is_closed && self.content.files.contains_key(**name);
        let file = FILES.iter().find(has).map(|name| format!("/{name}"));
        named.cloned().or(file).or_else(|| meta.logo_url.clone())
    }
}

/// Whose a host is.
pub enum Split {
    /// The server's own.
    Server,
    /// An app's; absent when there is none of this name, or it serves nothing.
    App(Option<Arc<Site>>),
    /// One that an app had before: the address that it has now, without a slash at the end.
    Moved(Arc<str>),
}

/// What is known of a host.
#[derive(Clone)]
enum Known {
    /// No app has it.
    Nobodys,
    /// An app has it and serves nothing there.
    Empty,
    /// An app had it, and is elsewhere now.
    Moved(Arc<str>),
    Site(Arc<Site>),
}

impl Known {
    fn split(self) -> Split {
        match self {
            Self::Site(site) => Split::App(Some(site)),
            Self::Moved(to) => Split::Moved(to),
            Self::Nobodys | Self::Empty => Split::App(None),
        }
    }
}

impl Hosting {
    pub fn new(config: &Config) -> Self {
        let address = url::Url::parse(&config.address()).ok();
        let own = address.and_then(|url| url.host_str().map(str::to_ascii_lowercase));
        let weight =
            |_: &String, bytes: &Bytes| u32::try_from(bytes.len() + 200).unwrap_or(u32::MAX);
        let seen = match config.is_postgres() {
            true => SEEN,
            false => SEEN_ALONE,
        };
        Self {
            own: own.into_iter().chain(["localhost".to_owned()]).collect(),
            suffix: format!(".{}", domain(config)),
            sites: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(seen)
                .build(),
            changes: AtomicU64::new(0),
            namespaces: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(SEEN)
                .build(),
            contents: Cache::builder()
                .max_capacity(LISTS)
                .weigher(|_, content: &Arc<Content>| weight_of(content))
                .build(),
            files: Cache::builder().max_capacity(KEPT).weigher(weight).build(),
            auth: auth::Known::default(),
            visits: visits::Visits::default(),
            has_cleared: AtomicBool::new(false),
        }
    }

    /// Whether a host is the server's own, or one of the names that apps have below its domain.
    pub fn is_own(&self, name: &str) -> bool {
        self.own.iter().any(|own| own == name)
            || name.ends_with(&self.suffix)
            || name == &self.suffix[1..]
    }

    /// An app changed, and that is committed: the next request reads it anew.
    pub fn forget(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

/// About the bytes that a list of files takes in memory: each has a path, a hash, a type and its place.
fn weight_of(content: &Content) -> u32 {
    let one = |path: &String| path.len() + 300;
    let all: usize = content.files.keys().map(one).sum();
    u32::try_from(all + content.headers.weight() + 200).unwrap_or(u32::MAX)
}

/// The domain below which apps have their names.
fn domain(config: &Config) -> &str {
    match config.apps.domain.trim_matches('.') {
        "" => "localhost",
        domain => domain,
    }
}

/// The host of an app, without its port.
pub fn host(app: &App, slug: &str) -> String {
    format!("{slug}.{}", domain(app.config()))
}

/// The address of an app by its name, without a slash at the end.
pub fn url(app: &App, slug: &str) -> String {
    url_of_domain(app, &host(app, slug))
}

/// The address of an app by a host: scheme and port are the server's own.
pub fn url_of_domain(app: &App, host: &str) -> String {
    let address = app.config().address();
    let own = url::Url::parse(&address).ok();
    let scheme = own.as_ref().map_or("http", |url| url.scheme());
    match own.as_ref().and_then(url::Url::port) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Whether visitors come by TLS.
pub fn is_secure(app: &App) -> bool {
    app.config().address().starts_with("https://")
}

/// The host that a request names, with its port.
pub fn authority<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Option<&'r str> {
    let named = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    named.or_else(|| uri.authority().map(|authority| authority.as_str()))
}

/// Whose the host of this request is.
///
/// # Errors
/// The database does not answer.
pub async fn split(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<Split> {
    let Some(authority) = authority(headers, uri) else {
        return Ok(Split::Server);
    };
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if app.hosting.own.contains(&name) {
        return Ok(Split::Server);
    }
    if let Some(label) = name.strip_suffix(&app.hosting.suffix) {
        return Ok(known(app, &name, Some(label)).await?.split());
    }
    if name.starts_with('[') || name.parse::<IpAddr>().is_ok() {
        return Ok(Split::Server);
    }
    // A domain that was proven is its app's, and never the server's, whether or not the app serves something.
    Ok(match known(app, &name, None).await? {
        Known::Nobodys => Split::Server,
        known => known.split(),
    })
}

/// What there is at a host, from memory for a moment.
async fn known(app: &App, host: &str, label: Option<&str>) -> Result<Known> {
    let changes = app.hosting.changes.load(Ordering::SeqCst);
    if let Some((read_at, known)) = app.hosting.sites.get(host)
        && read_at == changes
    {
        return Ok(known);
    }
    // In a box: every request has room for it, and few ask an app.
    let known = Box::pin(read(app, host, label)).await?;
    let told = (changes, known.clone());
    app.hosting.sites.insert(host.to_owned(), told);
    Ok(known)
}

async fn read(app: &App, host: &str, label: Option<&str>) -> Result<Known> {
    // `slug--staging` and `slug--v7` are previews; no slug has two hyphens in a row.
    let (slug, part) = match label.map(|label| label.split_once("--").unwrap_or((label, ""))) {
        Some((slug, part)) => (slug, part),
        None => ("", ""),
    };
    let found = match label {
        Some(_) if slug.is_empty() || slug.contains('.') => None,
        Some(_) => store::by_slug(app.db(), slug).await?,
        None => store::by_domain(app.db(), host).await?,
    };
    let Some((org_id, hosted)) = found else {
        return before::moved(app, slug, label).await;
    };
    if !hosted.is_active {
        return Ok(Known::Empty);
    }
    let environment = match part {
        "" => hosted.environments.get(PRODUCTION),
        STAGING => hosted.environments.get(STAGING),
        _ => None,
    };
    let numbered = part
        .strip_prefix('v')
        .and_then(|number| number.parse().ok());
    let version = environment.map(|one| one.version).or(numbered);
    let earlier = before::earlier(app, environment);
    let Some(version) = version else {
        return Ok(Known::Empty);
    };
    let Some(content) = content(app, &org_id, &hosted.app_id, version).await? else {
        return Ok(Known::Empty);
    };
    let home = match label {
        Some(label) => url(app, label),
        None => {
            let domains = store::domains(app.db(), &org_id, &hosted.app_id).await?;
            apps::mailed(app, &hosted.slug, &domains)
        }
    };
    let script = script(&hosted);
    let calls = api::Calls::of(app, &org_id, &hosted);
    Ok(Known::Site(Arc::new(Site {
        calls,
        org_id,
        version,
        content,
        earlier,
        preview: !part.is_empty(),
        origin: url_of_domain(app, host),
        home,
        script,
        hosted,
    })))
}

/// What the script of sign-in is told; nothing without sign-in.
fn script(hosted: &Hosted) -> Option<String> {
    let settings = hosted.auth_config.as_ref();
    if !apps::has_sign_in(settings) {
        return None;
    }
    let mut told = serde_json::json!({ "app": hosted.slug });
    if apps::has_passkeys(settings) {
        told["passkeys"] = true.into();
    }
    Some(told.to_string())
}

/// The files of a version, with what is said of them.
async fn content(
    app: &App,
    org_id: &str,
    app_id: &str,
    version: i64,
) -> Result<Option<Arc<Content>>> {
    let key = (app_id.to_owned(), version);
    if let Some(known) = app.hosting.contents.get(&key) {
        return Ok(Some(known));
    }
    let content = match store::find_version(app.db(), org_id, app_id, version).await {
        Ok(found) => Arc::new(Content {
            files: found.files,
            headers: found.headers,
        }),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    app.hosting.contents.insert(key, content.clone());
    Ok(Some(content))
}

/// Answers a request to the host of an app; `server` is the API itself.
pub async fn answer(
    app: &App,
    server: &Router,
    site: Option<Arc<Site>>,
    request: Request,
) -> Response {
    let Some(site) = site else {
        return nothing_here();
    };
    let path = request.uri().path();
    let is = |name: &str| {
        let rest = path.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (notes, signs_in) = (path == notes::PATH, is("/_auth"));
    let mut asked = visits::Asked {
        method: request.method().clone(),
        path: path.to_owned(),
        call: is("/api"),
        navigates: served::navigates(request.headers()) && !served::is_ahead(request.headers()),
        user_id: None,
    };
    let began = Instant::now();
    let hash = lock::hash(&site);
    let open = match hash {
        Some(hash) => lock::is_open(app, &site, hash, request.headers()),
        None => Ok(true),
    };
    // Each way in a box of its own: no request has room for all of them, nor is moved with it.
    let mut response = match (open, hash) {
        (Err(error), _) => error.into_response(),
        (Ok(false), Some(hash)) => Box::pin(lock::answer(app, &site, hash, request)).await,
        (Ok(true), Some(_)) if lock::is_unlocking(&request) => lock::passed(request).await,
        _ if asked.call => Box::pin(api::answer(app, server, &site, request)).await,
        _ if notes => Box::pin(notes::answer(app, &site, request)).await,
        _ if signs_in => Box::pin(auth::answer(app, site.clone(), request)).await,
        _ => {
            let (parts, _) = request.into_parts();
            Box::pin(files::answer(app, &site, &parts)).await
        }
    };
    if hash.is_some() {
        lock::keep_private(&mut response);
    }
    if let Some(api::Visitor(user_id)) = response.extensions().get() {
        asked.user_id = Some(user_id.clone());
    }
    // Pages of sign-in are visited too, but are no pages of the app.
    asked.navigates = asked.navigates && !asked.path.starts_with("/_auth");
    visits::note(app, &site, asked, &response, began.elapsed());
    response
}

/// There is no app at this host, or it serves nothing.
fn nothing_here() -> Response {
    let page = Page {
        title: "Nothing here".into(),
        text: "There is no app at this address, or it serves nothing yet.".into(),
        ..Default::default()
    };
    let style = Style {
        name: "404".into(),
        ..Default::default()
    };
    render(StatusCode::NOT_FOUND, &style, &page).into_response()
}
