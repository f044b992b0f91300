//! The one client for addresses that a caller can aim: files by URL, pages, calls of stages, webhooks. A name is looked
//! up once, every address found is checked, and the connection goes to one of those; redirects are checked the same
//! way. Bodies and time are bounded.

mod address;
pub mod names;
#[cfg(test)]
mod tests;
pub mod tls;

use std::{
    error::Error,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use loupe_engine::web::{Answer, Ask, Web, WebError};
use reqwest::{
    Method, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use tokio::time::Instant;
use url::{Host, Url};

pub use address::Rule;

use crate::error::ApiError;

/// Redirects that are followed at most.
const REDIRECTS: u8 = 3;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(5);

/// Headers that belong to the connection, not to the caller.
const OWN_HEADERS: [HeaderName; 8] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];

/// Cheap to clone; one a process.
#[derive(Clone)]
pub struct Outbound {
    client: reqwest::Client,
    rule: Arc<Rule>,
}

/// Where names become addresses.
#[async_trait]
trait Lookup: Send + Sync {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<SocketAddr>>;
}

/// The system's own resolver.
struct System;

#[async_trait]
impl Lookup for System {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.collect())
    }
}

/// Gives the connection checked addresses only: there is no second lookup that could answer differently.
struct Guard {
    rule: Arc<Rule>,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (rule, lookup) = (self.rule.clone(), self.lookup.clone());
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?;
            // One private address among public ones is a trap, or a mistake that is as bad.
            if found.iter().any(|address| !rule.takes(address.ip())) {
                return Err(address::private().into());
            }
            if found.is_empty() {
                return Err(format!("the name '{}' has no address", name.as_str()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Outbound {
    /// A client for public addresses and the networks in `allowed`.
    ///
    /// # Errors
    /// A network that cannot be read, or no TLS on this system.
    pub fn new(allowed: &[String]) -> anyhow::Result<Self> {
        Self::with(Rule::new(allowed)?, Arc::new(System))
    }

    fn with(rule: Rule, lookup: Arc<dyn Lookup>) -> anyhow::Result<Self> {
        let rule = Arc::new(rule);
        let guard = Guard {
            rule: rule.clone(),
            lookup,
        };
        #[expect(clippy::disallowed_methods, reason = "the guarded client itself")]
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client_config()?)
            .dns_resolver(Arc::new(guard))
            .redirect(redirect::Policy::none())
            // A proxy would look names up once more, where nobody checks.
            .no_proxy()
            .connect_timeout(CONNECT)
            .pool_idle_timeout(Duration::from_secs(10))
            .pool_max_idle_per_host(4)
            .user_agent(concat!("loupe/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, rule })
    }

    /// Whether the address may be asked, as far as that is known before its name is looked up.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &str) -> Result<Url, WebError> {
        self.rule.parse(url)
    }

    /// The addresses of a host that may be connected to by something else than this client.
    ///
    /// # Errors
    /// The host has no address, or one that is not asked.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, WebError> {
        let found = System.addresses(host).await;
        let found = found.map_err(|_| WebError::Failed(format!("'{host}' has no address")))?;
        if found.iter().any(|address| !self.rule.takes(address.ip())) {
            return Err(address::private());
        }
        Ok(found.iter().map(SocketAddr::ip).collect())
    }

    /// Whether nobody in between can answer in place of an address: it is asked by TLS, or lies in a network that the settings
    /// open, which is the operator's own.
    pub async fn is_safe(&self, url: &Url) -> bool {
        if url.scheme() == "https" {
            return true;
        }
        match url.host() {
            None => false,
            Some(Host::Ipv4(address)) => self.rule.opens(address.into()),
            Some(Host::Ipv6(address)) => self.rule.opens(address.into()),
            Some(Host::Domain(name)) => {
                let found = tokio::time::timeout(CONNECT, self.addresses(name)).await;
                let opens = |all: &[IpAddr]| all.iter().all(|one| self.rule.opens(*one));
                matches!(found, Ok(Ok(all)) if !all.is_empty() && opens(&all))
            }
        }
    }

    /// The guarded client itself, for a library that makes its own requests to an address that was
    /// [checked](Self::check). It follows no redirects.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Asks and gives the answer's head; its body is read piece by piece, within the same bounds.
    ///
    /// # Errors
    /// An address that is refused, no connection, too many redirects, a body that is announced too large.
    pub async fn open(&self, ask: Ask) -> Result<Opened, WebError> {
        self.reach(ask).await?.readable()
    }

    /// Asks for the status above all: of the body comes what can be read within the bounds, and a body that is too large,
    /// compressed or breaks off takes nothing from the answer.
    ///
    /// # Errors
    /// An address that is refused, no connection, no answer in time.
    pub async fn tell(&self, ask: Ask) -> Result<Answer, WebError> {
        let mut opened = self.reach(ask).await?;
        let mut body = Vec::new();
        if !opened.is_packed() {
            while let Ok(Some(piece)) = opened.next().await {
                body.extend_from_slice(&piece);
            }
        }
        Ok(opened.with(body))
    }

    /// An answer's head, whatever its body is.
    async fn reach(&self, ask: Ask) -> Result<Opened, WebError> {
        let (deadline, timeout) = (Instant::now() + ask.timeout, ask.timeout);
        let (max_bytes, redirects) = (ask.max_bytes, ask.redirects.min(REDIRECTS));
        let mut hop = Hop::first(self.rule.parse(&ask.url)?, ask);
        for followed in 0..=redirects {
            let sent = tokio::time::timeout_at(deadline, self.send(&hop)).await;
            let response = sent.map_err(|_| WebError::Timeout(timeout))??;
            let target = redirects > 0 && response.status().is_redirection();
            let Some(target) = target.then(|| location(&response)).flatten() else {
                return Ok(Opened {
                    status: response.status(),
                    url: hop.url,
                    headers: response.headers().clone(),
                    response,
                    left: max_bytes,
                    max_bytes,
                    deadline,
                    timeout,
                });
            };
            if followed < redirects {
                self.rule.check(&target)?;
                hop = hop.follow(response.status(), target);
            }
        }
        Err(WebError::Refused(format!(
            "the address redirects more than {redirects} times"
        )))
    }

    async fn send(&self, hop: &Hop) -> Result<Response, WebError> {
        let request = self
            .client
            .request(hop.method.clone(), hop.url.clone())
            .headers(hop.headers.clone())
            .body(hop.body.clone());
        request.send().await.map_err(|error| failed(&error))
    }
}

#[async_trait]
impl Web for Outbound {
    async fn ask(&self, ask: Ask) -> Result<Answer, WebError> {
        let mut opened = self.open(ask).await?;
        let mut body = Vec::new();
        while let Some(piece) = opened.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(opened.with(body))
    }
}

/// One request on the way through redirects.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Hop {
    fn first(url: Url, ask: Ask) -> Self {
        let mut headers = ask.headers;
        for name in OWN_HEADERS {
            headers.remove(name);
        }
        // What is unpacked could be a thousand times larger than what was counted.
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
        Self {
            method: ask.method,
            url,
            headers,
            body: ask.body,
        }
    }

    /// The request after a redirect: what was meant for one origin is not told another.
    fn follow(mut self, status: StatusCode, target: Url) -> Self {
        if self.url.origin() != target.origin() {
            let kept = [header::ACCEPT, header::ACCEPT_ENCODING, header::USER_AGENT];
            let headers = std::mem::take(&mut self.headers);
            let kept = kept.into_iter().filter_map(|name| {
                let value = headers.get(&name)?.clone();
                Some((name, value))
            });
            self.headers = kept.collect();
            if !matches!(self.method, Method::GET | Method::HEAD) {
                self.body = Bytes::new();
                self.method = Method::GET;
            }
        }
        let repeats = matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        if !repeats && self.method != Method::HEAD {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        self.url = target;
        self
    }
}

fn location(response: &Response) -> Option<Url> {
    let target = response.headers().get(header::LOCATION)?.to_str().ok()?;
    response.url().join(target).ok()
}

/// An answer whose body is still on its way.
#[derive(Debug)]
pub struct Opened {
    pub status: StatusCode,
    /// Where the answer came from, after redirects.
    pub url: Url,
    pub headers: HeaderMap,
    response: Response,
    left: u64,
    max_bytes: u64,
    deadline: Instant,
    timeout: Duration,
}

impl Opened {
    /// Refuses a body that is announced too large, or that is compressed.
    fn readable(self) -> Result<Self, WebError> {
        let size = self.response.content_length();
        if size.is_some_and(|size| size > self.max_bytes) {
            return Err(WebError::TooLarge(self.max_bytes));
        }
        if self.is_packed() {
            return Err(WebError::Refused(
                "the answer is compressed although it was asked for as it is".into(),
            ));
        }
        Ok(self)
    }

    fn is_packed(&self) -> bool {
        let encoded = self.headers.get(header::CONTENT_ENCODING);
        encoded.is_some_and(|encoding| encoding != "identity")
    }

    /// The answer with this body.
    fn with(self, body: Vec<u8>) -> Answer {
        Answer {
            status: self.status,
            url: self.url,
            headers: self.headers,
            body: body.into(),
        }
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// The body is larger or slower than the request allows, or broke off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, WebError> {
        let read = tokio::time::timeout_at(self.deadline, self.response.chunk()).await;
        let piece = read
            .map_err(|_| WebError::Timeout(self.timeout))?
            .map_err(|error| failed(&error))?;
        if let Some(piece) = &piece {
            let size = piece.len() as u64;
            self.left = self
                .left
                .checked_sub(size)
                .ok_or(WebError::TooLarge(self.max_bytes))?;
        }
        Ok(piece)
    }
}

/// The innermost reason: the library's own text names only the address.
fn failed(error: &reqwest::Error) -> WebError {
    let mut cause: &dyn Error = error;
    loop {
        if let Some(refused) = cause.downcast_ref::<WebError>() {
            return refused.clone();
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return WebError::Failed(format!("the address cannot be read: {cause}")),
        }
    }
}

impl From<WebError> for ApiError {
    fn from(error: WebError) -> Self {
        match &error {
            WebError::Refused(message) => Self::bad_request("address_refused", message.as_str()),
            WebError::TooLarge(_) => Self::payload_too_large("", error.to_string()),
            WebError::Timeout(_) => Self::bad_request("address_timeout", error.to_string()),
            WebError::Failed(message) => Self::bad_request("address_unreachable", message.as_str()),
        }
    }
}
