//! Keys that the storage library cannot read: one with an empty piece (`a//b`), or a piece of dots, would cost the whole list
//! that it stands in. Such pieces are marked on the way into the library, and the marks taken away on the way out.
//!
//! The library reads lists, and what it is told of failures, to their end: they are bounded here, in size and in time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use http::Method;
use object_store::client::{
    HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

/// Bytes of a list, or of what a storage says of a failure. A list has at most 1,000 files.
const MOST: usize = 8 << 20;

/// A list, the head of a file or a part that is written, from the question to the last byte.
const PATIENCE: Duration = Duration::from_secs(30);

/// From the private part of Unicode: no key has it.
const MARK: char = '\u{E000}';

/// The guarded client, as the library asks it.
#[derive(Debug)]
pub(super) struct Marking(pub reqwest::Client);

#[async_trait::async_trait]
impl HttpService for Marking {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let asked = tokio::time::timeout(PATIENCE, self.ask(request)).await;
        asked.unwrap_or_else(|elapsed| Err(HttpError::new(HttpErrorKind::Timeout, elapsed)))
    }
}

impl Marking {
    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let query = request.uri().query();
        let lists = query.is_some_and(|query| query.contains("list-type=2"));
        let file = request.method() == Method::GET && !lists;
        let answer = self.0.call(request).await?;
        let succeeds = answer.status().is_success();
        if file && succeeds {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let bytes = bounded(body).await?;
        // What is no text is the library's to refuse.
        let whole = match std::str::from_utf8(&bytes) {
            Ok(text) if lists && succeeds => marked(text).into(),
            _ => bytes.into(),
        };
        Ok(HttpResponse::from_parts(parts, whole))
    }
}

async fn bounded(body: HttpResponseBody) -> Result<Bytes, HttpError> {
    let mut pieces = body.bytes_stream();
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.try_next().await? {
        if whole.len() + piece.len() > MOST {
            let error = std::io::Error::other(format!("the answer is larger than {MOST} bytes"));
            return Err(HttpError::new(HttpErrorKind::Decode, error));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// A list whose keys the library can read.
fn marked(list: &str) -> String {
    let mut pieces = list.split("<Key>");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (key, rest) = piece.split_once("</Key>").unwrap_or((piece, ""));
        text += "<Key>";
        text += &mark(key);
        text += "</Key>";
        text += rest;
    }
    text
}

fn mark(key: &str) -> String {
    let last = key.split('/').count() - 1;
    let pieces = key.split('/').enumerate().map(|(place, piece)| {
        // A key that ends in a slash is that of a folder.
        let unreadable = matches!(piece, "." | "..") || (piece.is_empty() && place < last);
        match unreadable {
            true => format!("{MARK}{piece}"),
            false => piece.to_owned(),
        }
    });
    pieces.collect::<Vec<_>>().join("/")
}

/// The key as the storage has it.
pub(super) fn unmarked(key: &str) -> String {
    key.replace(MARK, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_out_as_they_went_in() {
        let list = "<R><Token>a//b</Token><Contents><Key>a//b/../c&amp;d</Key><Size>1</Size></Contents><Contents><Key>e/</Key></Contents></R>";
        let marked = marked(list);
        assert!(marked.contains("<Token>a//b</Token>") && marked.contains("<Key>e/</Key>"));
        let key = marked
            .split_once("<Key>")
            .and_then(|(_, rest)| rest.split_once("</Key>"))
            .map(|(key, _)| key)
            .unwrap();
        assert!(object_store::path::Path::parse(key).is_ok(), "{key}");
        assert_eq!(unmarked(&marked), list);
    }
}
