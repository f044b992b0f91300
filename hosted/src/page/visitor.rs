//! Who asks, read from the headers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Visitor;

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = |name: &str| parts.headers.get(name)?.to_str().ok();
        Ok(Self {
            cookies: text("cookie").unwrap_or_default().to_owned(),
            unfollowed: text("dnt") == Some("1") || text("sec-gpc") == Some("1"),
            steps: None,
        })
    }
}
