//! The scripts of `/_auth`: each is packed once, when it is asked for first.

use std::sync::LazyLock;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use loupe_hosted::{app::files, auth};
use sha2::{Digest, Sha256};

use crate::{
    hosting::files::{knows, takes},
    v1::apps::packing::brotli,
};

/// A script in both forms.
pub(super) struct Script {
    plain: &'static str,
    packed: Option<Bytes>,
    hash: String,
}

pub(super) static SDK: LazyLock<Script> = LazyLock::new(|| Script::of(auth::SDK));
pub(super) static FORM: LazyLock<Script> = LazyLock::new(|| Script::of(auth::FORM));
pub(super) static PASSKEYS: LazyLock<Script> = LazyLock::new(|| Script::of(auth::PASSKEYS));

impl Script {
    fn of(plain: &'static str) -> Self {
        Self {
            plain,
            packed: brotli(plain.as_bytes()).map(Bytes::from),
            hash: hex::encode(&Sha256::digest(plain.as_bytes())[..12]),
        }
    }

    pub fn answer(&self, asked: &HeaderMap) -> Response {
        let packed = self.packed.as_ref().filter(|_| takes(asked, "br"));
        let ending = if packed.is_some() { ".br" } else { "" };
        let tag = format!("\"{}{ending}\"", self.hash);
        let mut response = match packed {
            _ if knows(asked, &tag) => StatusCode::NOT_MODIFIED.into_response(),
            Some(packed) => ([(header::CONTENT_ENCODING, "br")], packed.clone()).into_response(),
            None => self.plain.into_response(),
        };
        let headers = response.headers_mut();
        // The word of the interface for it; browsers take both.
        let kind = HeaderValue::from_static("application/javascript; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        // They say that the form depends on what is accepted, too.
        files::common(headers);
        response
    }
}

/// The script of the forms.
pub(in crate::hosting) fn form(asked: &HeaderMap) -> Response {
    FORM.answer(asked)
}
