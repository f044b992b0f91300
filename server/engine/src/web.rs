//! How the engine reaches the web: through the server's guarded client, which no caller can aim at the server's own
//! network. Extractors and stages that fetch take a [`Web`]; nothing here opens a connection.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Method, StatusCode, header::HeaderMap};
use url::Url;

/// One request and its bounds.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Redirects that are followed, each checked like the first address, never more than 3; with 0 the answer that
    /// redirects is the answer.
    pub redirects: u8,
    /// Largest body of the answer.
    pub max_bytes: u64,
    /// From the first lookup to the body's last byte.
    pub timeout: Duration,
}

impl Ask {
    /// A page or a file: 3 redirects, 10 MiB, 30 seconds.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            redirects: 3,
            max_bytes: 10 << 20,
            timeout: Duration::from_secs(30),
        }
    }

    /// A call of somebody's API: no redirects, 10 MiB, 30 seconds.
    pub fn call(method: Method, url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            body: body.into(),
            redirects: 0,
            ..Self::get(url)
        }
    }
}

/// What came back, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    /// Where the answer came from, after redirects.
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WebError {
    /// This address is not asked, now or later.
    #[error("{0}")]
    Refused(String),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the answer took longer than {} seconds", .0.as_secs_f64())]
    Timeout(Duration),
    /// No connection, or one that broke.
    #[error("{0}")]
    Failed(String),
}

impl WebError {
    /// Whether the same request may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Failed(_))
    }
}

/// Something that asks the web.
#[async_trait]
pub trait Web: Send + Sync {
    /// # Errors
    /// Any status is an answer; an error is a request without one.
    async fn ask(&self, ask: Ask) -> Result<Answer, WebError>;
}
