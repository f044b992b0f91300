//! Origins that a key may be used from: exact, or any subdomain of a domain.

use axum::http::{HeaderMap, header};
use loupe_wire::APIKeyModel;

use crate::error::{ApiError, Result};

/// Whether this can be an allowed origin at all: a scheme, a host and maybe a port, nothing behind it; the host may
/// start with `*.`. A browser names a host in ASCII (`xn--`), so nothing else would ever be equal to it.
pub fn is_pattern(pattern: &str) -> bool {
    let Some((scheme, rest)) = pattern.split_once("://") else {
        return false;
    };
    let host = rest.strip_prefix("*.").unwrap_or(rest);
    let scheme_ok = !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    scheme_ok
        && host.is_ascii()
        && url::Url::parse(&format!("{scheme}://{host}")).is_ok_and(|url| {
            url.host_str().is_some_and(|name| !name.is_empty())
                && !host.contains(['/', '?', '#', '@', '*'])
        })
}

/// A browser names the page's origin; a key with a list is refused from any other.
///
/// # Errors
/// 403 from an origin that is not on the key's list.
pub(crate) fn check(key: &APIKeyModel, headers: &HeaderMap) -> Result<()> {
    let Some(allowed) = key
        .allowed_origins
        .as_ref()
        .filter(|allowed| !allowed.is_empty())
    else {
        return Ok(());
    };
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
    if allowed
        .iter()
        .any(|pattern| matches(&pattern.to_ascii_lowercase(), &origin))
    {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "origin_not_allowed",
        "this API key may not be used from this origin",
    ))
}

/// `https://*.example.com` matches one label or more, never the bare domain; scheme and port must be equal.
fn matches(pattern: &str, origin: &str) -> bool {
    match pattern.split_once("://*.") {
        None => pattern == origin,
        Some((scheme, domain)) => origin
            .strip_prefix(scheme)
            .and_then(|rest| rest.strip_prefix("://"))
            .and_then(|host| host.strip_suffix(domain))
            .and_then(|labels| labels.strip_suffix('.'))
            .is_some_and(|labels| {
                !labels.is_empty()
                    && labels
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_pattern, matches};

    #[test]
    fn wildcard_origins_match_subdomains_only() {
        let pattern = "https://*.example.com";
        for good in ["https://a.example.com", "https://a.b.example.com"] {
            assert!(matches(pattern, good), "{good}");
        }
        for bad in [
            "https://example.com",
            "http://a.example.com",
            "https://a.example.com:8443",
            "https://a.example.com.evil.org",
            "https://evil-example.com",
            "null",
            "https://evil.org/.example.com",
        ] {
            assert!(!matches(pattern, bad), "{bad}");
        }
    }

    #[test]
    fn patterns_are_origins() {
        for good in [
            "https://example.com",
            "http://localhost:3000",
            "https://*.example.com",
            "https://*.example.com:8443",
        ] {
            assert!(is_pattern(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "example.com",
            "https://",
            "https://*",
            "https://example.com/",
            "https://example.com/page",
            "https://a.*.example.com",
            "https://me@example.com",
            "null",
        ] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
