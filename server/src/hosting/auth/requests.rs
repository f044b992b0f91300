//! Reading what browsers send to `/_auth`.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderMap, header},
};

use crate::error::{ApiError, Result};

/// Members of a form or a query.
pub(in crate::hosting) type Fields = BTreeMap<String, String>;

/// Bytes of a form.
const LARGEST: usize = 16 << 10;

pub(in crate::hosting) fn fields(text: &[u8]) -> Fields {
    url::form_urlencoded::parse(text)
        .take(20)
        .map(|(name, value)| (name.into_owned(), value.chars().take(2_000).collect()))
        .collect()
}

/// A form, or an object of texts and truth values.
pub(in crate::hosting) async fn body(headers: &HeaderMap, body: Body) -> Result<Fields> {
    let bytes = crate::body::read(body, LARGEST).await?;
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    match kind.and_then(|kind| kind.split(';').next()).map(str::trim) {
        Some("application/x-www-form-urlencoded") => Ok(fields(&bytes)),
        Some("application/json") => {
            let object: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&bytes)
                .map_err(|_| ApiError::bad_request("", "the body is not a JSON object"))?;
            let text = |value: serde_json::Value| match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            Ok(object
                .into_iter()
                .take(20)
                .map(|(name, value)| (name, text(value)))
                .collect())
        }
        None if bytes.is_empty() => Ok(Fields::default()),
        _ => Err(ApiError::bad_request("", "send a form, or JSON")),
    }
}

/// A path of the app itself; anything else leads to its start.
pub(in crate::hosting) fn own_path(sent: &str) -> String {
    let odd = sent.len() > 1_000
        || !sent.starts_with('/')
        || sent.starts_with("//")
        || sent.contains(|c: char| c == '\\' || c.is_control());
    // A browser drops tabs and line ends, and reads `/%09/` as it stands: nothing there leaves the host.
    if odd { "/".into() } else { sent.to_owned() }
}

/// A cookie's value.
pub(in crate::hosting) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(found, value)| (found == name).then_some(value))
}

/// An address as it is kept, if it can be one.
pub(crate) fn address(sent: &str) -> Option<String> {
    let sent = sent.trim().to_lowercase();
    let (local, domain) = sent.rsplit_once('@')?;
    let good = !local.is_empty()
        && sent.len() <= 254
        && domain.contains('.')
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !sent.contains(|c: char| c.is_whitespace() || c.is_control() || "<>,;\"".contains(c));
    good.then_some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_back_stay_on_the_host() {
        assert_eq!(own_path("/films?q=a#b"), "/films?q=a#b");
        for odd in [
            "",
            "films",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\n/b",
            "/\t/evil.example",
            "javascript:alert(1)",
        ] {
            assert_eq!(own_path(odd), "/", "{odd:?}");
        }
    }

    #[test]
    fn cookies_are_read_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "cookie",
            "a=1; loupe_app=two; x_loupe_app=3".parse().unwrap(),
        );
        assert_eq!(cookie(&headers, "loupe_app"), Some("two"));
        assert_eq!(cookie(&headers, "app"), None);
    }

    #[test]
    fn addresses_are_kept_in_one_spelling() {
        assert_eq!(
            address(" Ada@Example.com ").as_deref(),
            Some("ada@example.com")
        );
        for odd in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "ada@host",
            "a b@example.com",
            "<a@example.com>",
        ] {
            assert_eq!(address(odd), None, "{odd}");
        }
    }
}
